"""From Python values to JSON and arrays: a flat list of objects, each after all it holds.

A value in JSON is itself if it is null, true, a whole or finite number, a text or a list; any other
is an object of JSON with a tag:

    {"float": "nan"}                    a float that JSON has no number for
    {"numpy": "<f8", "value": 1.5}      a scalar of NumPy
    {"tuple": [..]}  {"dict": [[k, v], ..]}  {"slice": [a, b, c]}
    {"texts": 3}                        a tuple of texts: the fourth of the manifest's "texts"
    {"array": "rule_.coef"}             a numeric array of the file; "axes" where its axes lie in
                                        another order in memory, "dtype" where it is no plain number
    {"objects": [3], "of": value}       an array of Python objects, of that shape
    {"object": 7}                       the eighth of the manifest's "objects"

What is shared is written once and is shared again after loading. Order in memory is kept, because
the last bit of a product can depend on it. Anything else is refused, by its place in the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import StateError
from discriminant.store.container import NAMES
from discriminant.store.kinds import fields_of, is_borrowed, is_estimator, is_told, kind_of
from discriminant.store.soundness import fault, fault_within, nan_fault

_PLAIN = (type(None), bool, int, str)
_SCALARS = "biufU"
_LEFT_OUT = ("progress", "checkpoint")  # options that only say what to show or keep during a fit


@dataclass(slots=True, eq=False)
class Encoder:
    """What has been met so far."""

    arrays: dict[str, npt.NDArray[Any]] = field(default_factory=dict)  # as they are to be written
    texts: dict[tuple[str, ...], int] = field(default_factory=dict)
    objects: list[dict[str, Any]] = field(default_factory=list)
    met: dict[int, tuple[Any, Any]] = field(default_factory=dict)  # by identity; and kept alive
    within: list[int] = field(default_factory=list)

    def manifest(self) -> dict[str, Any]:
        """All but the arrays."""
        return {"texts": [list(texts) for texts in self.texts], "objects": self.objects}

    def value(self, value: Any, path: str) -> Any:
        """A value as JSON."""
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
        found = [self.value(value, f"{path}[{i}]") for i, value in enumerate(values)]
        self.within.pop()
        return found

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
        found: dict[str, Any] = {"array": name}
        if moved:
            found["axes"] = axes
        if values.dtype not in NAMES:
            found["dtype"] = values.dtype.str
        return found

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
        if is_told(kind):
            _hold(fault_within(thing), path or kind)
            return {"told": self.value(thing.to_dict(), path)}
        if is_estimator(kind):
            return self._estimator(kind, thing, path)
        fields = {name: getattr(thing, name) for name in fields_of(type(thing))}
        _hold(fault(type(thing), fields), path or kind)
        return {"fields": self._named(fields, path)}

    def _estimator(self, kind: str, model: Any, path: str) -> dict[str, Any]:
        borrowed = is_borrowed(kind)
        options = model.get_params(deep=False) if borrowed else model.options_in_effect()
        for name in _LEFT_OUT:
            if name in options and (name == "checkpoint" or callable(options[name])):
                options[name] = None
        held = model.__getstate__() if borrowed else vars(model)
        left_out = {*options, "_copied"}  # copies of options: what is written is the copy
        state = {name: value for name, value in held.items() if name not in left_out}
        wrong = fault(type(model), state) or (nan_fault(type(model), options) if state else None)
        _hold(wrong, path or kind)
        return {"options": self._named(options, path), "state": self._named(state, path)}

    def _named(self, values: dict[str, Any], path: str) -> dict[str, Any]:
        start = f"{path}." if path else ""
        return {name: self.value(value, start + name) for name, value in values.items()}

    def _enter(self, thing: Any, path: str) -> None:
        """A thing that holds itself has no end."""
        if id(thing) in self.within:
            raise StateError.of_part(path, f"{type(thing).__name__} that holds itself")
        self.within.append(id(thing))


def _hold(wrong: str | None, path: str) -> None:
    """What could not be loaded is not saved."""
    if wrong is not None:
        raise StateError.unsound(path, wrong)


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
