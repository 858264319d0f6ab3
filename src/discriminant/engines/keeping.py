"""Serialise summaries as plain arrays and JSON, never as pickles, and digest readings.

A summary is a frozen dataclass of arrays, numbers, texts, tuples, dictionaries and such classes
again. It is taken apart by its fields and put together again field by field; only classes of this
package are, and none of their code runs. Arrays come back with every bit, in the order they lay.
"""

from __future__ import annotations

import hashlib
import io
import json
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from copyreg import dispatch_table
from dataclasses import fields, is_dataclass
from importlib import import_module
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np
import numpy.typing as npt

_PACKAGE = "discriminant."
_PLAIN = (type(None), bool, int, float, str)
_DAMAGED = (  # what a file with other content than ours raises, beside ValueError
    zipfile.BadZipFile,
    zlib.error,
    LookupError,
    EOFError,
    TypeError,
    AttributeError,
    ImportError,
    RecursionError,
    NotImplementedError,
)
_CODED = (FunctionType, MethodType, BuiltinFunctionType)
_CLOSED = (GeneratorType, ModuleType, CodeType)
VERSIONED = {  # packages whose code is what a journal notes the version of
    "discriminant": "discriminant",
    "numpy": "numpy",
    "scipy": "scipy",
    "sklearn": "scikit-learn",
    "pandas": "pandas",
    "pyarrow": "pyarrow",
}


class CannotKeepError(Exception):
    """Something is no summary that could be taken apart; then it is worked out again."""


def packed(value: Any, facts: Mapping[str, Any]) -> bytes:
    """A summary and some facts as a file: arrays of NumPy in a zip, the rest as JSON."""
    arrays: list[npt.NDArray[Any]] = []
    text = json.dumps({"facts": facts, "value": _apart(value, arrays)})
    held = {f"a{k}": array for k, array in enumerate(arrays)}
    file = io.BytesIO()
    np.savez(file, text=np.frombuffer(text.encode(), dtype=np.uint8), **held)  # type: ignore[arg-type]
    return file.getvalue()


def unpacked(content: bytes) -> tuple[Any, dict[str, Any]]:
    """The summary and the facts; ValueError says why not."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as held:
            told = json.loads(held["text"].tobytes())
            arrays = [held[f"a{k}"] for k in range(len(held.files) - 1)]
        return _together(told["value"], arrays), told["facts"]
    except _DAMAGED as fault:
        raise ValueError(f"{type(fault).__name__}: {fault}") from None


def digest(value: Any) -> str:
    """A name for the content of a value: the same for the same work in any process.

    CannotKeepError where something cannot be looked into: better no name than a doubtful one.
    """
    found = hashlib.sha256()
    for piece in _pieces(value, ()):
        found.update(piece)
        found.update(b"\0")
    return found.hexdigest()[:32]


def _apart(value: Any, arrays: list[npt.NDArray[Any]]) -> Any:
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.hasobject:
            some = [_apart(one, arrays) for one in np.asarray(value).ravel().tolist()]
            return {"objects": some, "shape": value.shape}
        arrays.append(np.asarray(value))
        return {"array" if isinstance(value, np.ndarray) else "number": len(arrays) - 1}
    if type(value) in (tuple, list):
        return {type(value).__name__: [_apart(one, arrays) for one in value]}
    if type(value) is dict:
        return {"dict": [[_apart(k, arrays), _apart(v, arrays)] for k, v in value.items()]}
    if type(value) is frozenset:
        return {"frozenset": [_apart(one, arrays) for one in sorted(value, key=repr)]}
    if is_dataclass(value) and type(value).__module__.startswith(_PACKAGE):
        name = f"{type(value).__module__}:{type(value).__qualname__}"
        held = {one.name: _apart(getattr(value, one.name), arrays) for one in fields(value)}
        return {"class": name, "fields": held}
    raise CannotKeepError(type(value).__name__)


def _together(told: Any, arrays: list[npt.NDArray[Any]]) -> Any:
    if not isinstance(told, dict):
        return told
    if "array" in told:
        return arrays[told["array"]]
    if "number" in told:
        return arrays[told["number"]][()]
    if "objects" in told:
        some = np.empty(len(told["objects"]), dtype=object)
        some[:] = [_together(one, arrays) for one in told["objects"]]
        return some.reshape(told["shape"])
    for kind in (tuple, list, frozenset):
        if kind.__name__ in told:
            return kind(_together(one, arrays) for one in told[kind.__name__])
    if "dict" in told:
        return {_together(k, arrays): _together(v, arrays) for k, v in told["dict"]}
    return _instance(told, arrays)


def _instance(told: dict[str, Any], arrays: list[npt.NDArray[Any]]) -> Any:
    module, _, name = told["class"].partition(":")
    if not module.startswith(_PACKAGE):
        raise ValueError(f"{module} is not of this package")
    kind = getattr(import_module(module), name)
    if not (isinstance(kind, type) and is_dataclass(kind)):
        raise ValueError(f"{name} is no summary")
    made = object.__new__(kind)
    for field in fields(kind):
        object.__setattr__(made, field.name, _together(told["fields"][field.name], arrays))
    return made


# --- what a value is made of ---------------------------------------------------------------------

Above = tuple[int, ...]  # what is being looked into, so that nothing is for ever


def _pieces(value: Any, above: Above) -> Iterator[bytes]:
    if isinstance(value, (*_PLAIN, np.generic, bytes)):
        yield f"{type(value).__name__} {value!r}".encode()
        return
    if id(value) in above:
        yield f"above {above[::-1].index(id(value))}".encode()
        return
    above = (*above, id(value))
    if isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape}".encode()
        whole = not value.dtype.hasobject
        yield from [np.ascontiguousarray(value).tobytes()] if whole else _all(value.flat, above)
    elif isinstance(value, tuple | list | set | frozenset):
        yield f"{type(value).__name__} {len(value)}".encode()
        order = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        yield from _all(order, above)
    elif isinstance(value, Mapping):
        yield from _pieces(list(value.items()), above)
    elif isinstance(value, type):
        yield from _class(value, above)
    elif isinstance(value, _CODED):
        yield from _function(value, above)
    else:
        yield from _pieces(type(value), above)
        yield from _all(_held(value), above)


def _all(values: Iterable[Any], above: Above) -> Iterator[bytes]:
    for one in values:
        yield from _pieces(one, above)


def _class(kind: type, above: Above) -> Iterator[bytes]:
    """Its name; of a class of nobody's version also what it does."""
    yield f"{kind.__module__}.{kind.__qualname__}".encode()
    if not _versioned(kind.__module__):
        yield from _all(kind.__bases__, above)
        for name, held in sorted(vars(kind).items()):
            if isinstance(held, property | staticmethod | classmethod):
                held = getattr(held, "fget", None) or getattr(held, "__func__", None)
            own = isinstance(held, (*_PLAIN, tuple)) and not name.startswith("__")
            if own or isinstance(held, _CODED):
                yield from _all((name, held), above)


def _function(value: Any, above: Above) -> Iterator[bytes]:
    """Its name, and what it is bound to; of one of nobody's version also what it does."""
    module = getattr(value, "__module__", None)
    yield f"{module}.{value.__qualname__}".encode()
    bound = getattr(value, "__self__", None)
    if bound is not None and not isinstance(bound, ModuleType):
        yield from _pieces(bound, above)
    value = getattr(value, "__func__", value)
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        yield from _all((value.__defaults__, value.__kwdefaults__, cells), above)
        if not _versioned(module or ""):
            yield from _code(value.__code__, value.__globals__, above)


def _code(code: CodeType, around: Mapping[str, Any], above: Above) -> Iterator[bytes]:
    """What is done, with what numbers and texts, and with what that stands around it."""
    yield code.co_code
    yield repr((code.co_names, code.co_varnames, code.co_freevars)).encode()
    for held in code.co_consts:
        inner = isinstance(held, CodeType)
        yield from _code(held, around, above) if inner else _pieces(held, above)
    for name in code.co_names:
        held = around.get(name)
        yield from _pieces(held.__name__ if isinstance(held, ModuleType) else held, above)


def _versioned(module: str) -> bool:
    """Whether a version says what its code is: the standard library, and what a journal notes."""
    first = module.split(".")[0]
    return first in VERSIONED or first in sys.stdlib_module_names


def _held(value: Any) -> list[Any]:
    """What an object is made of."""
    if is_dataclass(value):
        return [[one.name, getattr(value, one.name)] for one in fields(value)]
    if isinstance(value, _CLOSED):
        raise CannotKeepError(type(value).__name__)
    reduced: Any = dispatch_table.get(type(value), lambda value: value.__reduce_ex__(4))
    try:
        found = reduced(value)
    except Exception:  # whatever it is that keeps it from being taken apart
        raise CannotKeepError(type(value).__name__) from None
    if isinstance(found, str):  # known by its name
        return [getattr(value, "__module__", ""), found]
    return [list(one) if isinstance(one, Iterator) else one for one in found[1:]]
