"""Encoding of Python objects as JSON and arrays, and decoding.

The manifest is a flat list of objects, each after all it holds. A JSON value is itself if it is
null, a boolean, an integer or finite number, a text or a list; anything else is a tagged object:

    {"float": "nan"}                    a float that JSON cannot represent
    {"numpy": "<f8", "value": 1.5}      a NumPy scalar
    {"tuple": [..]}  {"dict": [[k, v], ..]}  {"slice": [a, b, c]}
    {"texts": 3}                        a tuple of texts: the fourth of the manifest's "texts"
    {"array": "rule_.coef"}             a numeric array of the file; "axes" where its axes have
                                        another order in memory, "dtype" where it is not numeric
    {"objects": [3], "of": value}       an array of Python objects, of that shape
    {"object": 7}                       the eighth of the manifest's "objects"

Shared objects are written once and are shared again after loading. The order in memory is kept,
because the last bit of a product can depend on it. Anything else is rejected, by its path in the
model.

Objects are decoded in the order of the list, each from those before it, so that there are no cycles
and no unbounded nesting. Parts that are not valid for their class (`store.kinds`) are rejected;
constructors see only values of the declared types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import getattr_static
from types import MemberDescriptorType
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from discriminant.errors import StateError
from discriminant.store.container import NAMES
from discriminant.store.kinds import (
    class_of,
    fields_of,
    invalid_reason,
    invalid_reason_within,
    is_dictionary,
    is_estimator,
    is_kind,
    is_sklearn,
    kind_of,
    nan_reason,
)

_FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
_DTYPES = "biufUSmM"
_LETTERS = 0x10FFFF


class InvalidPartError(Exception):
    """An invalid part of a file, and why."""

    def __init__(self, part: str, why: str) -> None:
        super().__init__(f"{part}: {why}")
        self.part, self.why = part, why


class UnknownKindError(Exception):
    """A kind that is not in the table."""


@dataclass(slots=True, eq=False)
class Decoder:
    """Objects decoded so far."""

    arrays: Mapping[str, npt.NDArray[Any]]
    texts: list[tuple[str, ...]] = field(default_factory=list)
    objects: list[Any] = field(default_factory=list)
    made: dict[str, tuple[Any, npt.NDArray[Any]]] = field(default_factory=dict)  # as asked for
    part: str = "the manifest"

    def decode(self, manifest: Any) -> Any:
        """Decode the manifest; return its last object, which holds all others."""
        if not isinstance(manifest, dict) or set(manifest) != {"texts", "objects"}:
            raise InvalidPartError(self.part, "it must have texts and objects")
        texts, objects = manifest["texts"], manifest["objects"]
        if not isinstance(texts, list) or not all(map(_is_texts, texts)):
            raise InvalidPartError("texts", "they must be lists of text")
        if not isinstance(objects, list) or not objects:
            raise InvalidPartError("objects", "there must be at least one")
        self.texts = [tuple(group) for group in texts]
        for number, entry in enumerate(objects):
            self.part = f"object {number}"
            self.objects.append(self._object(entry))
        spare = set(self.arrays) - set(self.made)
        if spare:
            raise InvalidPartError(f"array '{min(spare)[:100]}'", "no object has it")
        return self.objects[-1]

    # --- objects ------------------------------------------------------------------------------

    def _object(self, entry: Any) -> Any:
        if not isinstance(entry, dict) or "kind" not in entry:
            self._refuse("it has no kind")
        kind = entry["kind"]
        if not is_kind(kind):
            raise UnknownKindError(str(kind)[:100])
        self.part += f" ({kind})"
        make = self._estimator if is_estimator(kind) else self._value
        return (self._told if is_dictionary(kind) else make)(class_of(kind), entry)

    def _value(self, cls: type[Any], entry: dict[str, Any]) -> Any:
        self._has(entry, "fields")
        given = self._named(entry["fields"])
        strange = set(given) - set(fields_of(cls))
        if strange:
            self._refuse(f"it has no field '{min(strange)[:100]}'")
        wrong = invalid_reason(cls, given)
        if wrong is not None:
            self._refuse(wrong)
        return cls(**given)

    def _told(self, cls: type[Any], entry: dict[str, Any]) -> Any:
        self._has(entry, "told")
        made = cls.from_dict(self.value(entry["told"]))
        wrong = invalid_reason_within(made)
        if wrong is not None:
            self._refuse(wrong)
        return made

    def _estimator(self, cls: type[Any], entry: dict[str, Any]) -> Any:
        self._has(entry, "options", "state")
        options, state = self._named(entry["options"]), self._named(entry["state"])
        made = cls(**options)
        for name in state:
            if name in vars(made) or not name.isidentifier() or not _is_free(cls, name):
                self._refuse(f"'{name[:100]}' is no fitted attribute of it")
        wrong = invalid_reason(cls, state) or (nan_reason(cls, options) if state else None)
        if wrong is not None:
            self._refuse(wrong)
        if is_sklearn(entry["kind"]):
            made.__setstate__(vars(made) | state)  # warns of another version of scikit-learn
        else:
            vars(made).update(state)
        return made

    def _named(self, values: Any) -> dict[str, Any]:
        if not isinstance(values, dict):
            self._refuse("its parts must have names")
        return {name: self.value(value) for name, value in values.items()}

    def _has(self, entry: dict[str, Any], *names: str) -> None:
        if set(entry) != {"kind", *names}:
            self._refuse(f"it must have kind, {', '.join(names)}")

    # --- values -------------------------------------------------------------------------------

    def value(self, value: Any) -> Any:
        """Decode a JSON value."""
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if not isinstance(value, dict):
            return value
        tag = next(iter(value), None)
        decode = self._ways().get(str(tag))
        if decode is None:
            self._refuse(f"'{str(tag)[:100]}' is no tag")
        return decode(value)

    def _ways(self) -> dict[str, Callable[[dict[str, Any]], Any]]:
        return {
            "float": lambda of: _FLOATS[self._only(of, "float")],
            "numpy": self._scalar,
            "tuple": lambda of: tuple(self._list(self._only(of, "tuple"))),
            "dict": self._dict,
            "slice": self._slice,
            "texts": lambda of: self._at(self.texts, self._only(of, "texts")),
            "array": self._array,
            "objects": self._objects,
            "object": lambda of: self._at(self.objects, self._only(of, "object")),
        }

    def _only(self, value: dict[str, Any], *names: str) -> Any:
        if set(value) != set(names):
            self._refuse(f"{names[0]} must have {', '.join(names)} and nothing else")
        return value[names[0]]

    def _list(self, values: Any) -> list[Any]:
        if not isinstance(values, list):
            self._refuse("a tuple, dict or slice must hold a list")
        return [self.value(item) for item in values]

    def _at(self, made: list[Any], number: Any) -> Any:
        if type(number) is not int or not 0 <= number < len(made):
            self._refuse(f"it refers to what is not before it ({str(number)[:20]})")
        return made[number]

    def _dict(self, value: dict[str, Any]) -> dict[Any, Any]:
        pairs = self._list(self._only(value, "dict"))
        return {key: item for key, item in pairs}

    def _slice(self, value: dict[str, Any]) -> slice:
        first, last, step = self._list(self._only(value, "slice"))
        return slice(first, last, step)

    def _scalar(self, value: dict[str, Any]) -> Any:
        self._only(value, "numpy", "value")
        return self._dtype(value["numpy"]).type(self.value(value["value"]))

    def _dtype(self, text: Any) -> np.dtype[Any]:
        """A dtype of plain values; NumPy's dtype strings allow far more."""
        if not isinstance(text, str) or len(text) > 20 or text[1:2] not in tuple(_DTYPES):
            self._refuse("it has an array of no known type")
        dtype = np.dtype(text)
        if dtype.kind not in _DTYPES or dtype.hasobject or dtype.fields or dtype.subdtype:
            self._refuse("it has an array of no known type")
        return dtype

    def _array(self, value: dict[str, Any]) -> npt.NDArray[Any]:
        name = value["array"]
        if not isinstance(name, str) or name not in self.arrays:
            self._refuse(f"array '{str(name)[:100]}' is not in the file")
        if set(value) - {"array", "axes", "dtype"}:
            self._refuse(f"array '{name[:100]}' has more than axes and dtype")
        if name not in self.made:
            found = self._typed(self.arrays[name], value)
            self.made[name] = value, self._turned(found, value)
        asked, found = self.made[name]
        if asked != value:
            self._refuse(f"array '{name[:100]}' is asked for in two ways")
        return found

    def _typed(self, values: npt.NDArray[Any], value: dict[str, Any]) -> npt.NDArray[Any]:
        """Convert stored numbers to dates, text or the other byte order."""
        if "dtype" not in value:
            return values
        dtype = self._dtype(value["dtype"])
        size = dtype.itemsize // (4 if dtype.kind == "U" else 1)
        wanted = {"U": "<u4", "S": "|u1", "m": "<i8", "M": "<i8"}.get(dtype.kind)
        if wanted is None and values.dtype.newbyteorder(">") == dtype:
            return values.astype(dtype)
        if values.dtype.str != wanted:
            self._refuse(f"an array of {values.dtype} cannot be one of {dtype}")
        if dtype.kind in "mM":
            return values.astype(np.int64, copy=False).view(dtype.newbyteorder("="))
        if not values.ndim or values.shape[-1] != size or not size:
            self._refuse(f"an array of {dtype} must have {size} numbers for each text")
        if dtype.kind == "U" and values.size and values.max() > _LETTERS:
            self._refuse("a text has a letter that is none")
        return values.view(dtype).reshape(values.shape[:-1])

    def _turned(self, values: npt.NDArray[Any], value: dict[str, Any]) -> npt.NDArray[Any]:
        """Restore the order of the axes without moving memory."""
        axes = value.get("axes", list(range(values.ndim)))
        whole = isinstance(axes, list) and all(type(axis) is int for axis in axes)
        if not whole or sorted(axes) != list(range(values.ndim)):
            self._refuse("axes must be each of the axes once")
        return values.transpose(np.argsort(axes).tolist()) if "axes" in value else values

    def _objects(self, value: dict[str, Any]) -> npt.NDArray[Any]:
        shape, items = self._only(value, "objects", "of"), self.value(value["of"])
        if not isinstance(items, tuple) or not isinstance(shape, list):
            self._refuse("an array of objects must be a tuple of them")
        found = np.empty(len(items), dtype=object)
        for place, item in enumerate(items):
            found[place] = item
        return found.reshape(shape)

    def _refuse(self, why: str) -> NoReturn:
        raise InvalidPartError(self.part, why)


def _is_texts(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is str for value in values)


def _is_free(cls: type[Any], name: str) -> bool:
    """Whether a fitted attribute may have this name: it hides no method, no property."""
    held = getattr_static(cls, name, None)
    return not (callable(held) or hasattr(held, "__get__")) or isinstance(
        held, MemberDescriptorType
    )


_PLAIN = (type(None), bool, int, str)
_SCALARS = "biufU"
_LEFT_OUT = ("progress", "checkpoint")  # options that only say what to show or keep during a fit


@dataclass(slots=True, eq=False)
class Encoder:
    """Objects encoded so far."""

    arrays: dict[str, npt.NDArray[Any]] = field(default_factory=dict)  # as they are to be written
    texts: dict[tuple[str, ...], int] = field(default_factory=dict)
    objects: list[dict[str, Any]] = field(default_factory=list)
    met: dict[int, tuple[Any, Any]] = field(default_factory=dict)  # by identity; and kept alive
    within: list[int] = field(default_factory=list)

    def manifest(self) -> dict[str, Any]:
        """Everything except the arrays."""
        return {"texts": [list(texts) for texts in self.texts], "objects": self.objects}

    def value(self, value: Any, path: str) -> Any:
        """Encode a value as JSON."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        encode = self._ways().get(kind)
        if encode is not None:
            return encode(value, path)
        if isinstance(value, np.generic):
            return self._scalar(value, path)
        return self._object(value, path)

    def _ways(self) -> dict[type, Callable[[Any, str], Any]]:
        return {
            float: lambda value, _: _float(value),
            list: self._items,
            tuple: self._tuple,
            dict: self._dict,
            slice: self._slice,
            np.ndarray: self._array,
            np.memmap: self._array,
        }

    def _items(self, values: Any, path: str) -> list[Any]:
        self._enter(values, path)
        items = [self.value(value, f"{path}[{i}]") for i, value in enumerate(values)]
        self.within.pop()
        return items

    def _tuple(self, values: tuple[Any, ...], path: str) -> Any:
        if values and all(type(value) is str for value in values):
            return {"texts": self.texts.setdefault(values, len(self.texts))}
        return {"tuple": self._items(values, path)}

    def _dict(self, values: dict[Any, Any], path: str) -> Any:
        self._enter(values, path)
        pairs = [
            [self.value(key, f"{path} (a key)"), self.value(value, f"{path}[{key!r}]")]
            for key, value in values.items()
        ]
        self.within.pop()
        return {"dict": pairs}

    def _slice(self, value: slice, path: str) -> Any:
        return {"slice": self._items([value.start, value.stop, value.step], path)}

    def _scalar(self, value: Any, path: str) -> Any:
        dtype = value.dtype
        if dtype.kind not in _SCALARS or (dtype.kind == "f" and dtype not in NAMES):
            raise StateError.of_dtype(path, value.dtype)
        return {"numpy": dtype.str, "value": self.value(value.item(), path)}

    # --- arrays -------------------------------------------------------------------------------

    def _array(self, values: npt.NDArray[Any], path: str) -> Any:
        if id(values) not in self.met:
            plain = np.asarray(values)
            made = self._objects if plain.dtype.kind == "O" else self._numbers
            self.met[id(values)] = made(plain, path), values
        return self.met[id(values)][0]

    def _objects(self, values: npt.NDArray[Any], path: str) -> Any:
        within = tuple(values.ravel().tolist())
        return {"objects": list(values.shape), "of": self._tuple(within, path)}

    def _numbers(self, values: npt.NDArray[Any], path: str) -> Any:
        stored = _plain(values, path)
        axes = sorted(range(values.ndim), key=lambda axis: -abs(values.strides[axis]))
        moved = not values.flags.c_contiguous and axes != list(range(values.ndim))
        name = path
        while name in self.arrays:
            name += "'"
        if moved:
            stored = stored.transpose([*axes, *range(values.ndim, stored.ndim)])
        self.arrays[name] = np.asarray(stored, order="C")
        reference: dict[str, Any] = {"array": name}
        if moved:
            reference["axes"] = axes
        if values.dtype not in NAMES:
            reference["dtype"] = values.dtype.str
        return reference

    # --- objects ------------------------------------------------------------------------------

    def _object(self, thing: Any, path: str) -> Any:
        if id(thing) not in self.met:
            kind = kind_of(thing)
            if kind is None:
                raise _refused(thing, path)
            self._enter(thing, path)
            entry = {"kind": kind, **self._parts(kind, thing, path)}
            self.within.pop()
            self.met[id(thing)] = {"object": len(self.objects)}, thing
            self.objects.append(entry)
        return self.met[id(thing)][0]

    def _parts(self, kind: str, thing: Any, path: str) -> dict[str, Any]:
        if is_dictionary(kind):
            _hold(invalid_reason_within(thing), path or kind)
            return {"told": self.value(thing.to_dict(), path)}
        if is_estimator(kind):
            return self._estimator(kind, thing, path)
        fields = {name: getattr(thing, name) for name in fields_of(type(thing))}
        _hold(invalid_reason(type(thing), fields), path or kind)
        return {"fields": self._named(fields, path)}

    def _estimator(self, kind: str, model: Any, path: str) -> dict[str, Any]:
        borrowed = is_sklearn(kind)
        options = model.get_params(deep=False) if borrowed else model.options_in_effect()
        for name in _LEFT_OUT:
            if name in options and (name == "checkpoint" or callable(options[name])):
                options[name] = None
        held = model.__getstate__() if borrowed else vars(model)
        left_out = {*options, "_copied"}  # copies of options: what is written is the copy
        state = {name: value for name, value in held.items() if name not in left_out}
        wrong = invalid_reason(type(model), state) or (
            nan_reason(type(model), options) if state else None
        )
        _hold(wrong, path or kind)
        return {"options": self._named(options, path), "state": self._named(state, path)}

    def _named(self, values: dict[str, Any], path: str) -> dict[str, Any]:
        start = f"{path}." if path else ""
        return {name: self.value(value, start + name) for name, value in values.items()}

    def _enter(self, thing: Any, path: str) -> None:
        """Raise if an object contains itself."""
        if id(thing) in self.within:
            raise StateError.of_part(path, f"{type(thing).__name__} that holds itself")
        self.within.append(id(thing))


def _hold(wrong: str | None, path: str) -> None:
    """Raise if a part is invalid: it could not be loaded."""
    if wrong is not None:
        raise StateError.invalid(path, wrong)


def _float(value: float) -> Any:
    return value if np.isfinite(value) else {"float": str(value)}


def _plain(values: npt.NDArray[Any], path: str) -> npt.NDArray[Any]:
    """The same bytes as an array of plain numbers; text has an axis more, one code for a letter."""
    little = values.astype(values.dtype.newbyteorder("<"), copy=False)
    if little.dtype in NAMES:
        return little
    kind, size = little.dtype.kind, little.dtype.itemsize
    if kind in "mM":
        return little.view("<i8")
    if kind in "US" and size:
        letters = np.ascontiguousarray(little).view("<u4" if kind == "U" else "u1")
        return letters.reshape(*values.shape, size // (4 if kind == "U" else 1))
    raise StateError.of_dtype(path, values.dtype)


def _refused(thing: Any, path: str) -> StateError:
    kind = f"{type(thing).__module__}.{type(thing).__qualname__}"
    part = path or "This"
    if hasattr(thing, "get_params") and hasattr(thing, "fit"):
        return StateError.of_estimator(part, kind)
    return StateError.of_part(part, kind.removeprefix("builtins."))
