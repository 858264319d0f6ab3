"""Summaries as plain arrays and JSON, and a digest of what is asked of rows. Never a pickle.

A summary is a frozen dataclass of arrays, numbers, texts, tuples, dictionaries and such classes
again. It is taken apart by its fields and put together again field by field; only classes of this
package are, and none of their code runs. Arrays come back with every bit, in the order they lay.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

_PACKAGE = "discriminant."
_PLAIN = (type(None), bool, int, float, str)


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
    except (zipfile.BadZipFile, KeyError, EOFError, TypeError, AttributeError) as fault:
        raise ValueError(f"{type(fault).__name__}: {fault}") from None


def digest(value: Any) -> str:
    """A name for the content of a value: the same for the same work in any process."""
    found = hashlib.sha256()
    for piece in _pieces(value):
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
    for kind in (tuple, list):
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


def _pieces(value: Any) -> Iterator[bytes]:
    if isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape}".encode()
        if value.dtype.hasobject:
            yield from _pieces(value.ravel().tolist())
        else:
            yield np.ascontiguousarray(value).tobytes()
    elif isinstance(value, tuple | list | set | frozenset):
        yield f"{type(value).__name__} {len(value)}".encode()
        order = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        for one in order:
            yield from _pieces(one)
    elif isinstance(value, Mapping):
        yield from _pieces(list(value.items()))
    elif isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        yield f"{value.__module__}.{value.__qualname__}".encode()
        for cell in getattr(value, "__closure__", None) or ():
            yield from _pieces(cell.cell_contents)
    elif isinstance(value, (*_PLAIN, np.generic, bytes)):
        yield f"{type(value).__name__} {value!r}".encode()
    else:
        yield f"{type(value).__module__}.{type(value).__qualname__}".encode()
        for name, held in _held(value):
            yield name.encode()
            yield from _pieces(held)


def _held(value: Any) -> list[tuple[str, Any]]:
    """What an object holds, by name."""
    if is_dataclass(value):
        return [(one.name, getattr(value, one.name)) for one in fields(value)]
    if hasattr(value, "__dict__"):
        return sorted(vars(value).items())
    return [("reduced", value.__reduce__()[1:])]
