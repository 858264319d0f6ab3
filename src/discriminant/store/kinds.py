"""What a file may hold: an explicit table of kinds, each a class of this package.

A file names a kind; the table says where its class is. Nothing is imported by a name from a file,
and a kind keeps its name for ever, wherever its class moves. A class is one of four sorts:

    estimator    made by its options; then its fitted attributes are set
    value        a frozen dataclass or a named tuple: made by its fields
    told         one that has to_dict and from_dict
    borrowed     the few of scikit-learn that our own estimators make: frozen and calibrated models

Estimators and values are listed in `discriminant.catalog` with their modules, and imported when a
file holds one.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

from discriminant import catalog

_TOLD = {"Encoding": "table.encoding"}
_BORROWED = {
    "FrozenEstimator": ("sklearn.frozen", "FrozenEstimator"),
    "CalibratedClassifierCV": ("sklearn.calibration", "CalibratedClassifierCV"),
    "SigmoidCalibration": ("sklearn.calibration", "_SigmoidCalibration"),
    "IsotonicRegression": ("sklearn.isotonic", "IsotonicRegression"),
}
_CALIBRATED = "CalibratedMember"  # of CalibratedClassifierCV: no dataclass, but as plain as one
_CALIBRATED_FIELDS = ("estimator", "calibrators", "classes", "method")

MAY_BE_NAN = {("GLMFit", "pearson")}  # fields of values that are NaN where nothing was estimated


def _place(kind: str, home: str) -> tuple[str, str]:
    """Module and class of a kind; a class has the name of its kind unless `home` gives another."""
    module, _, name = home.partition(":")
    return f"discriminant.{module}", name or kind


_PLACES: dict[str, tuple[str, str]] = {
    **{kind: _place(kind, home) for kind, home in (catalog.HOMES | catalog.VALUES | _TOLD).items()},
    **_BORROWED,
    _CALIBRATED: ("sklearn.calibration", "_CalibratedClassifier"),
}
_KINDS = {name: kind for kind, (_, name) in _PLACES.items()}
KINDS = tuple(_PLACES)


def kind_of(thing: object) -> str | None:
    """The kind of a thing by its class, not by a class above it; None if no file can hold it."""
    kind = _KINDS.get(type(thing).__qualname__)
    ours = type(thing).__module__.startswith(("discriminant.", "sklearn."))
    return kind if kind is not None and ours and class_of(kind) is type(thing) else None


def class_of(kind: str) -> type[Any]:
    """The class of a kind that is in the table."""
    module, name = _PLACES[kind]
    found: type[Any] = getattr(import_module(module), name)
    return found


def is_kind(kind: object) -> bool:
    """Whether a file may hold this kind."""
    return isinstance(kind, str) and kind in _PLACES


def is_estimator(kind: str) -> bool:
    """Whether it is made by options and has fitted attributes."""
    return kind in catalog.HOMES or kind in _BORROWED


def is_sklearn(kind: str) -> bool:
    """Whether it is an estimator of scikit-learn, which knows best how its state is kept."""
    return kind in _BORROWED


def is_dictionary(kind: str) -> bool:
    """Whether it tells itself as a dictionary."""
    return kind in _TOLD


def fields_of(cls: type[Any]) -> tuple[str, ...]:
    """Fields that make a value; what follows from them is worked out again."""
    if is_dataclass(cls):
        return tuple(field.name for field in fields(cls) if field.init)
    return tuple(getattr(cls, "_fields", _CALIBRATED_FIELDS))
