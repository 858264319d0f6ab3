"""Codec of model files: encodes Python objects as JSON and arrays, and decodes them.

The manifest is a flat list of objects; each comes after all objects that it contains. Null,
booleans, integers, finite numbers, texts and lists are stored as JSON values. Anything else is a
tagged JSON object:

    {"float": "nan"}                    a float that JSON cannot represent
    {"numpy": "<f8", "value": 1.5}      a NumPy scalar
    {"tuple": [..]}  {"dict": [[k, v], ..]}  {"slice": [a, b, c]}
    {"texts": 3}                        a tuple of texts: entry 3 of the manifest's "texts"
    {"array": "rule_.coef"}             a numeric array of the file; also "axes" if its axes have
                                        another order in memory, "dtype" if it is not numeric
    {"objects": [3], "of": value}       an array of Python objects, here of shape (3,)
    {"object": 7}                       entry 7 of the manifest's "objects"

Shared objects are written once and are shared again after loading. The memory order of arrays is
preserved, because the last bit of a product can depend on it. A value of any other type raises an
error that states where in the model it is.

Objects are decoded in the order of the list, and may refer only to objects before them. Therefore
cycles and unbounded nesting are impossible. The fields of an object are checked by its class
(`store.kinds`) before it is constructed, so that constructors receive only values of the declared
types.
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
    pipeline_reason,
)

_FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
_DTYPES = "biufUSmM"
_LETTERS = 0x10FFFF


class InvalidPartError(Exception):
    """Raised if a part of a file is invalid, with the reason."""

    def __init__(self, part: str, why: str) -> None:
        super().__init__(f"{part}: {why}")
        self.part, self.why = part, why


class UnknownKindError(Exception):
    """Raised for a kind of object that is not in the table of kinds."""


@dataclass(slots=True, eq=False)
class Decoder:
    """Decoder of a manifest. The decoder stores the objects that are already decoded."""

    arrays: Mapping[str, npt.NDArray[Any]]
    texts: list[tuple[str, ...]] = field(default_factory=list)
    objects: list[Any] = field(default_factory=list)
    used: dict[str, tuple[Any, npt.NDArray[Any]]] = field(default_factory=dict)  # with reference
    part: str = "the manifest"

    def decode(self, manifest: Any) -> Any:
        """Decode the manifest; return its last object, which contains all others."""
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
        unused = set(self.arrays) - set(self.used)
        if unused:
            raise InvalidPartError(f"array '{min(unused)[:100]}'", "no object uses it")
        return self.objects[-1]

    # --- objects ------------------------------------------------------------------------------

    def _object(self, entry: Any) -> Any:
        if not isinstance(entry, dict) or "kind" not in entry:
            self._refuse("it has no kind")
        kind = entry["kind"]
        if not is_kind(kind):
            raise UnknownKindError(str(kind)[:100])
        self.part += f" ({kind})"
        if is_dictionary(kind):
            return self._dictionary(class_of(kind), entry)
        return (self._estimator if is_estimator(kind) else self._value)(class_of(kind), entry)

    def _value(self, cls: type[Any], entry: dict[str, Any]) -> Any:
        self._check_keys(entry, "fields")
        parts = self._named(entry["fields"])
        unknown = set(parts) - set(fields_of(cls))
        if unknown:
            self._refuse(f"it has no field '{min(unknown)[:100]}'")
        self._refuse_if(invalid_reason(cls, parts))
        return cls(**parts)

    def _dictionary(self, cls: type[Any], entry: dict[str, Any]) -> Any:
        self._check_keys(entry, "told")
        value = cls.from_dict(self.value(entry["told"]))
        self._refuse_if(invalid_reason_within(value))
        return value

    def _estimator(self, cls: type[Any], entry: dict[str, Any]) -> Any:
        self._check_keys(entry, "options", "state")
        options, state = self._named(entry["options"]), self._named(entry["state"])
        if entry["kind"] == "Pipeline":
            self._refuse_if(pipeline_reason(options))
        model = cls(**options)
        for name in state:
            if name in vars(model) or not name.isidentifier() or not _is_free(cls, name):
                self._refuse(f"'{name[:100]}' is not a fitted attribute of its class")
        self._refuse_if(invalid_reason(cls, state) or (nan_reason(cls, options) if state else None))
        if is_sklearn(entry["kind"]):
            model.__setstate__(vars(model) | state)  # warns of another version of scikit-learn
        else:
            vars(model).update(state)
        return model

    def _named(self, values: Any) -> dict[str, Any]:
        if not isinstance(values, dict):
            self._refuse("its parts must have names")
        return {name: self.value(value) for name, value in values.items()}

    def _check_keys(self, entry: dict[str, Any], *names: str) -> None:
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
        decode = self._decoders().get(str(tag))
        if decode is None:
            self._refuse(f"'{str(tag)[:100]}' is not a tag")
        return decode(value)

    def _decoders(self) -> dict[str, Callable[[dict[str, Any]], Any]]:
        """Return a dictionary from tags to decoding functions."""
        return {
            "float": lambda value: _FLOATS[self._only(value, "float")],
            "numpy": self._scalar,
            "tuple": lambda value: tuple(self._list(self._only(value, "tuple"))),
            "dict": lambda value: {k: v for k, v in self._list(self._only(value, "dict"))},
            "slice": self._slice,
            "texts": lambda value: self._lookup(self.texts, self._only(value, "texts")),
            "array": self._array,
            "objects": self._objects,
            "object": lambda value: self._lookup(self.objects, self._only(value, "object")),
        }

    def _only(self, value: dict[str, Any], *names: str) -> Any:
        if set(value) != set(names):
            self._refuse(f"{names[0]} must have {', '.join(names)} and nothing else")
        return value[names[0]]

    def _list(self, values: Any) -> list[Any]:
        if not isinstance(values, list):
            self._refuse("a tuple, dict or slice must hold a list")
        return [self.value(item) for item in values]

    def _lookup(self, decoded: list[Any], number: Any) -> Any:
        if type(number) is not int or not 0 <= number < len(decoded):
            self._refuse(f"it refers to an object that is not before it ({str(number)[:20]})")
        return decoded[number]

    def _slice(self, value: dict[str, Any]) -> slice:
        first, last, step = self._list(self._only(value, "slice"))
        return slice(first, last, step)

    def _scalar(self, value: dict[str, Any]) -> Any:
        self._only(value, "numpy", "value")
        return self._dtype(value["numpy"]).type(self.value(value["value"]))

    def _dtype(self, text: Any) -> np.dtype[Any]:
        """Return the dtype with a given name; unlike in NumPy, only plain types are allowed."""
        if not isinstance(text, str) or len(text) > 20 or text[1:2] not in tuple(_DTYPES):
            self._refuse("it has an array of an unknown type")
        dtype = np.dtype(text)
        if dtype.kind not in _DTYPES or dtype.hasobject or dtype.fields or dtype.subdtype:
            self._refuse("it has an array of an unknown type")
        return dtype

    def _array(self, value: dict[str, Any]) -> npt.NDArray[Any]:
        name = value["array"]
        if not isinstance(name, str) or name not in self.arrays:
            self._refuse(f"array '{str(name)[:100]}' is not in the file")
        if set(value) - {"array", "axes", "dtype"}:
            self._refuse(f"array '{name[:100]}' has more than axes and dtype")
        if name not in self.used:
            array = self._convert(self.arrays[name], value)
            self.used[name] = value, self._restore_axes(array, value)
        reference, array = self.used[name]
        if reference != value:
            self._refuse(f"array '{name[:100]}' is used in two forms")
        return array

    def _convert(self, values: npt.NDArray[Any], value: dict[str, Any]) -> npt.NDArray[Any]:
        """Convert stored numbers to dates, to text, or to the other byte order."""
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
            self._refuse("a text has an invalid character")
        return values.view(dtype).reshape(values.shape[:-1])

    def _restore_axes(self, values: npt.NDArray[Any], value: dict[str, Any]) -> npt.NDArray[Any]:
        """Return an array with its original order of axes, without copying."""
        axes = value.get("axes", list(range(values.ndim)))
        are_integers = isinstance(axes, list) and all(type(axis) is int for axis in axes)
        if not are_integers or sorted(axes) != list(range(values.ndim)):
            self._refuse("axes must be each of the axes once")
        return values.transpose(np.argsort(axes).tolist()) if "axes" in value else values

    def _objects(self, value: dict[str, Any]) -> npt.NDArray[Any]:
        shape, items = self._only(value, "objects", "of"), self.value(value["of"])
        if not isinstance(items, tuple) or not isinstance(shape, list):
            self._refuse("an array of objects must be a tuple of them")
        array = np.empty(len(items), dtype=object)
        for index, item in enumerate(items):
            array[index] = item
        return array.reshape(shape)

    def _refuse(self, why: str) -> NoReturn:
        raise InvalidPartError(self.part, why)

    def _refuse_if(self, why: str | None) -> None:
        if why is not None:
            self._refuse(why)


def _is_texts(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is str for value in values)


def _is_free(cls: type[Any], name: str) -> bool:
    """Return whether a fitted attribute of this name would hide no method or property."""
    member = getattr_static(cls, name, None)
    is_slot = isinstance(member, MemberDescriptorType)
    return is_slot or not (callable(member) or hasattr(member, "__get__"))


_PLAIN = (type(None), bool, int, str)
_SCALARS = "biufU"
_NOT_STORED = ("progress", "checkpoint")  # options that matter only during a fit


@dataclass(slots=True, eq=False)
class Encoder:
    """Encoder of an object. The encoder stores the objects that are already encoded."""

    # arrays, as they are written to the file
    arrays: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    texts: dict[tuple[str, ...], int] = field(default_factory=dict)
    objects: list[dict[str, Any]] = field(default_factory=list)
    # References by identity. The objects are kept, so that no other object gets the same identity.
    references: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    within: list[int] = field(default_factory=list)  # identities of the objects being encoded

    def manifest(self) -> dict[str, Any]:
        """Return the manifest: everything except the arrays, as JSON."""
        return {"texts": [list(texts) for texts in self.texts], "objects": self.objects}

    def value(self, value: Any, path: str) -> Any:
        """Encode a value as JSON."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        encode = self._encoders().get(kind)
        if encode is not None:
            return encode(value, path)
        if isinstance(value, np.generic):
            return self._scalar(value, path)
        return self._object(value, path)

    def _encoders(self) -> dict[type, Callable[[Any, str], Any]]:
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
        if id(values) not in self.references:
            plain = np.asarray(values)
            encode = self._objects if plain.dtype.kind == "O" else self._numbers
            self.references[id(values)] = encode(plain, path), values
        return self.references[id(values)][0]

    def _objects(self, values: npt.NDArray[Any], path: str) -> Any:
        items = tuple(values.ravel().tolist())
        return {"objects": list(values.shape), "of": self._tuple(items, path)}

    def _numbers(self, values: npt.NDArray[Any], path: str) -> Any:
        stored = _to_numbers(values, path)
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
        if id(thing) not in self.references:
            kind = kind_of(thing)
            if kind is None:
                raise _not_storable(thing, path)
            self._enter(thing, path)
            entry: dict[str, Any] = {"kind": kind}
            start = f"{path}." if path else ""
            for group, parts in _parts(kind, thing, path).items():
                entry[group] = encoded = {}
                for name, part in parts.items():
                    encoded[name] = self.value(part, start + name)
            if is_dictionary(kind):
                entry["told"] = self.value(thing.to_dict(), path)
            self.within.pop()
            self.references[id(thing)] = {"object": len(self.objects)}, thing
            self.objects.append(entry)
        return self.references[id(thing)][0]

    def _enter(self, thing: Any, path: str) -> None:
        """Raise an error if an object contains itself."""
        if id(thing) in self.within:
            raise StateError.of_part(path, f"{type(thing).__name__} that contains itself")
        self.within.append(id(thing))


def _parts(kind: str, thing: Any, path: str) -> dict[str, dict[str, Any]]:
    """Return the parts of an object: options and state of an estimator, or fields of a value.

    Raise an error if the parts are invalid.
    """
    if is_dictionary(kind):
        _raise_if_invalid(invalid_reason_within(thing), path or kind)
        return {}
    if is_estimator(kind):
        return _estimator_parts(kind, thing, path)
    fields = {name: getattr(thing, name) for name in fields_of(type(thing))}
    _raise_if_invalid(invalid_reason(type(thing), fields), path or kind)
    return {"fields": fields}


def _estimator_parts(kind: str, model: Any, path: str) -> dict[str, dict[str, Any]]:
    from_sklearn = is_sklearn(kind)
    options = model.get_params(deep=False) if from_sklearn else model.options_in_effect()
    for name in _NOT_STORED:
        if name in options and (name == "checkpoint" or callable(options[name])):
            options[name] = None
    attributes = model.__getstate__() if from_sklearn else vars(model)
    # options that were copied: the copy that is in effect is written
    left_out = {*options, "_copied"}
    state = {name: value for name, value in attributes.items() if name not in left_out}
    if kind == "Pipeline":
        _raise_if_invalid(pipeline_reason(options), path or kind)
    nan = nan_reason(type(model), options) if state else None
    _raise_if_invalid(invalid_reason(type(model), state) or nan, path or kind)
    return {"options": options, "state": state}


def _raise_if_invalid(reason: str | None, path: str) -> None:
    if reason is not None:
        raise StateError.invalid(path, reason)


def _float(value: float) -> Any:
    return value if np.isfinite(value) else {"float": str(value)}


def _to_numbers(values: npt.NDArray[Any], path: str) -> npt.NDArray[Any]:
    """Reinterpret the bytes of an array as numbers.

    An array of texts gets one more axis, with one code per character.
    """
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


def _not_storable(thing: Any, path: str) -> StateError:
    kind = f"{type(thing).__module__}.{type(thing).__qualname__}"
    part = path or "This"
    if hasattr(thing, "get_params") and hasattr(thing, "fit"):
        return StateError.of_estimator(part, kind)
    return StateError.of_part(part, kind.removeprefix("builtins."))
