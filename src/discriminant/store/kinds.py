"""Kinds of objects that a file may hold, and validation of their parts.

A file contains the names of kinds, and the table in this module maps each kind to a class. Names
from a file are never imported, and a kind keeps its name for ever, even if its class moves to
another module. A kind belongs to one of four groups:

    estimator    constructed from its options; then its fitted attributes are set
    value        a frozen dataclass or a named tuple, constructed from its fields
    dictionary   a class with to_dict and from_dict
    sklearn      the few scikit-learn classes that our estimators hold: frozen and calibrated
                 models, and pipelines

Estimators and values are listed in `discriminant.catalog` with their modules. A module is imported
only when a file contains one of its classes.

The parts of an object are the fields of a value, or the fitted attributes of an estimator. The
parts are validated twice. Before an object is constructed from a file, validation ensures that no
number in a file can make a constructor use unbounded memory or time. Before an object is saved, it
ensures that the file can be loaded. The checks are:

    types              must be those that the class declares
    consistency        by the static method `invalid_reason(parts)` of the class, if it has one
    NaN                is allowed only in fields that the class lists in `nan_fields`

For example, a rule with a NaN coefficient is rejected, because its predictions would be wrong.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from itertools import chain
from numbers import Integral, Real
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from discriminant import catalog
from discriminant.table.blocks import holds_for_all_values

_DICTIONARIES = {"Encoding": "table.encoding"}
_SKLEARN = {
    "FrozenEstimator": ("sklearn.frozen", "FrozenEstimator"),
    "CalibratedClassifierCV": ("sklearn.calibration", "CalibratedClassifierCV"),
    "SigmoidCalibration": ("sklearn.calibration", "_SigmoidCalibration"),
    "IsotonicRegression": ("sklearn.isotonic", "IsotonicRegression"),
    "Pipeline": ("sklearn.pipeline", "Pipeline"),
}
_CALIBRATED = "CalibratedMember"  # part of `CalibratedClassifierCV` that is not a dataclass
_CALIBRATED_FIELDS = ("estimator", "calibrators", "classes", "method")


def _location(kind: str, home: str) -> tuple[str, str]:
    """Return module and class name of a kind.

    `home` is the module, followed by the class if its name differs from the kind.
    """
    module, _, name = home.partition(":")
    return f"discriminant.{module}", name or kind


_LOCATIONS: dict[str, tuple[str, str]] = {
    **{
        kind: _location(kind, home)
        for kind, home in (catalog.HOMES | catalog.VALUES | _DICTIONARIES).items()
    },
    **_SKLEARN,
    _CALIBRATED: ("sklearn.calibration", "_CalibratedClassifier"),
}
_KINDS = {name: kind for kind, (_, name) in _LOCATIONS.items()}
KINDS = tuple(_LOCATIONS)


def kind_of(thing: object) -> str | None:
    """Return the kind of an object, given by its exact class, or None if it cannot be stored."""
    kind = _KINDS.get(type(thing).__qualname__)
    known = type(thing).__module__.startswith(("discriminant.", "sklearn."))
    return kind if kind is not None and known and class_of(kind) is type(thing) else None


def class_of(kind: str) -> type[Any]:
    """Return the class of a kind, which must be in the table of kinds."""
    module, name = _LOCATIONS[kind]
    cls: type[Any] = getattr(import_module(module), name)
    return cls


def is_kind(kind: object) -> bool:
    """Return whether a file may contain this kind."""
    return isinstance(kind, str) and kind in _LOCATIONS


def is_estimator(kind: str) -> bool:
    """Return whether a kind is an estimator: it has options and fitted attributes."""
    return kind in catalog.HOMES or kind in _SKLEARN


def is_sklearn(kind: str) -> bool:
    """Return whether a kind is an estimator of scikit-learn, which restores its own state."""
    return kind in _SKLEARN


def is_dictionary(kind: str) -> bool:
    """Return whether a kind is stored by `to_dict` and `from_dict`."""
    return kind in _DICTIONARIES


def fields_of(cls: type[Any]) -> tuple[str, ...]:
    """Return the fields from which a value is constructed, without derived fields."""
    if is_dataclass(cls):
        return tuple(field.name for field in fields(cls) if field.init)
    return tuple(getattr(cls, "_fields", _CALIBRATED_FIELDS))


# --- validation -----------------------------------------------------------------------------------


def invalid_reason(cls: type[Any], parts: Mapping[str, Any]) -> str | None:
    """Return the reason why the parts of an object are invalid, or None if they are valid."""
    hints = _type_hints(cls)  # type: ignore[arg-type]  # a class can be hashed
    for name, value in parts.items():
        if name in hints and not matches_type(value, hints[name]):
            return f"{name} is {_describe(value)}, which is not its declared type"
    check = getattr(cls, "invalid_reason", None)
    try:
        reason = None if check is None else check(parts)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return "its parts do not fit together"
    return reason or _wrapped_reason(parts) or nan_reason(cls, parts)


def invalid_reason_within(value: Any) -> str | None:
    """Return the reason why a dataclass, or a dataclass in its tuples, is invalid, or None."""
    parts = {field.name: getattr(value, field.name) for field in fields(value)}
    tuples = (value for value in parts.values() if isinstance(value, tuple))
    for part in chain.from_iterable(tuples):
        reason = invalid_reason_within(part) if is_dataclass(part) else None
        if reason is not None:
            return f"{type(part).__name__} '{str(getattr(part, 'name', ''))[:100]}': {reason}"
    return invalid_reason(type(value), parts)


def nan_reason(cls: type[Any], parts: Mapping[str, Any]) -> str | None:
    """Return which part of an object or option of a fitted model contains NaN, or None.

    If a class sets `checks_nan`, its method `invalid_reason` checks for NaN.
    """
    if getattr(cls, "checks_nan", False):
        return None
    allowed = getattr(cls, "nan_fields", ())
    for name, value in parts.items():
        if name not in allowed and _has_nan(value):
            return f"{name} holds NaN (not a number)"
    return None


def pipeline_reason(options: Mapping[str, Any]) -> str | None:
    """Return the reason why a pipeline is invalid, or None if it is valid.

    A pipeline from a file must not name a folder to which a later fit would write.
    """
    if options.get("memory") is not None:
        return "memory names a folder or a cache"
    steps = options.get("steps")
    pairs = isinstance(steps, list) and all(
        isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], str) for step in steps
    )
    if not pairs or not all(hasattr(step[1], "get_params") for step in steps or ()):
        return "its steps are not pairs of a name and an estimator"
    return None


def _wrapped_reason(parts: Mapping[str, Any]) -> str | None:
    """Return the reason why a model that wraps others is invalid, or None if it is valid."""
    wrapped = [parts[name] for name in ("estimator_", "_base") if parts.get(name) is not None]
    for model in (*wrapped, *parts.get("estimators_", ())):
        if not (hasattr(model, "fit") and hasattr(model, "get_params")):
            return f"a model inside it is {_describe(model)}"
    return None


@cache
def _type_hints(cls: type[Any]) -> dict[str, Any]:
    imported: dict[str, Any] = {}  # kinds that the module of the class imports only for annotations
    while True:
        try:
            return get_type_hints(cls, localns=imported)
        except NameError as error:
            if error.name not in _LOCATIONS or error.name in imported:
                return {}
            imported[error.name] = class_of(error.name)


def matches_type(value: Any, hint: Any) -> bool:
    """Return whether a value has a declared type.

    If a type cannot be checked, every value is accepted.
    """
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(matches_type(value, arg) for arg in args)
    if origin is Literal:
        return any(type(value) is type(arg) and value == arg for arg in args)
    if origin is tuple:
        return isinstance(value, tuple) and _items_match(value, args)
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and _dtype_matches(value, args)
    if origin is not None:
        return isinstance(value, origin) if isinstance(origin, type) else True
    if hint is type(None):
        return value is None
    if hint in (float, int):
        number = Real if hint is float else Integral
        return isinstance(value, number) and not isinstance(value, bool)
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    if not isinstance(hint, type) or getattr(hint, "_is_protocol", False):
        return True
    return isinstance(value, hint)


def _items_match(values: tuple[Any, ...], args: tuple[Any, ...]) -> bool:
    if len(args) == 2 and args[1] is Ellipsis:
        return all(matches_type(value, args[0]) for value in values)
    return len(values) == len(args) and all(map(matches_type, values, args))


def _dtype_matches(values: np.ndarray[Any, Any], args: tuple[Any, ...]) -> bool:
    dtype = get_args(args[1])[0] if len(args) == 2 and get_args(args[1]) else Any
    dtype = get_origin(dtype) or dtype
    return dtype is Any or np.issubdtype(values.dtype, dtype)


def _has_nan(value: Any, depth: int = 4) -> bool:
    """Return whether an array, or an array within tuples, lists or dictionaries, has NaN."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" and not holds_for_all_values(
            np.atleast_1d(value), lambda values: ~np.isnan(values)
        )
    inner = value.values() if isinstance(value, dict) else value
    nested = isinstance(value, tuple | list | dict) and depth > 0
    return nested and any(_has_nan(item, depth - 1) for item in inner)


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    return f"a {type(value).__name__}"
