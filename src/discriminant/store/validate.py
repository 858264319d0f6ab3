"""Whether the parts of a value can be: of the types its class declares, of shapes that go together.

Of a model, the parts are its fitted attributes. It is asked before a value is made from a file, so
that no number in a file can make a constructor take all memory or all time; and before a value is
written, so that what is saved can be loaded. A rule with a coefficient that is no number is
refused: it would answer, and be wrong.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from math import comb
from numbers import Integral, Real
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from discriminant.store.kinds import MAY_BE_NAN
from discriminant.table.blocks import holds_throughout

_COLUMNS = 10_000_000  # of a polynomial basis
_DEGREE = 64


def invalid_reason(cls: type[Any], parts: Mapping[str, Any]) -> str | None:
    """What is wrong with the parts of a value of this class, if anything."""
    hints = _hints(cls)  # type: ignore[arg-type]  # a class can be hashed
    for name, value in parts.items():
        if name in hints and not matches_type(value, hints[name]):
            return f"{name} is {_said(value)}, and that is not what it must be"
    check = getattr(cls, "invalid_reason", None) or _CHECKS.get(cls.__name__)
    try:
        wrong = None if check is None else check(parts)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return "its parts do not go together"
    return wrong or nan_reason(cls, parts)


def nan_reason(cls: type[Any], parts: Mapping[str, Any]) -> str | None:
    """Which part of a value of this class, or option of a fitted model, holds NaN, if any.

    A class with `checks_nan` does that itself, in `invalid_reason`.
    """
    if getattr(cls, "checks_nan", False):
        return None
    for name, value in parts.items():
        if (cls.__name__, name) not in MAY_BE_NAN and _has_nan(value):
            return f"{name} holds NaN (not a number)"
    return None


def invalid_reason_within(value: Any) -> str | None:
    """What is wrong with a value that is plain facts, or with the values in its tuples."""
    own = {field.name: getattr(value, field.name) for field in fields(value)}
    held = [part for parts in own.values() if isinstance(parts, tuple) for part in parts]
    for part in held:
        wrong = invalid_reason_within(part) if is_dataclass(part) else None
        if wrong is not None:
            return f"{type(part).__name__} '{str(getattr(part, 'name', ''))[:100]}': {wrong}"
    return invalid_reason(type(value), own)


@cache
def _hints(cls: type[Any]) -> dict[str, Any]:
    try:
        return get_type_hints(cls)
    except NameError:  # a name that only type checkers import
        return {}


def matches_type(value: Any, hint: Any) -> bool:
    """Whether a value is of a declared type; what cannot be judged is let through."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(matches_type(value, arg) for arg in args)
    if origin is Literal:
        return any(type(value) is type(arg) and value == arg for arg in args)
    if origin is tuple:
        return isinstance(value, tuple) and _each_fits(value, args)
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and _is_of(value, args)
    if origin is not None:
        return isinstance(value, origin) if isinstance(origin, type) else True
    return _is_plainly(value, hint)


def _each_fits(values: tuple[Any, ...], args: tuple[Any, ...]) -> bool:
    if len(args) == 2 and args[1] is Ellipsis:
        return all(matches_type(value, args[0]) for value in values)
    return len(values) == len(args) and all(map(matches_type, values, args))


def _is_of(values: np.ndarray[Any, Any], args: tuple[Any, ...]) -> bool:
    wanted = get_args(args[1])[0] if len(args) == 2 and get_args(args[1]) else Any
    wanted = get_origin(wanted) or wanted
    return wanted is Any or np.issubdtype(values.dtype, wanted)


def _is_plainly(value: Any, hint: Any) -> bool:
    if hint is type(None):
        return value is None
    if hint is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    if not isinstance(hint, type) or getattr(hint, "_is_protocol", False):
        return True
    return isinstance(value, hint)


def _has_nan(value: Any, depth: int = 4) -> bool:
    """Whether an array, or one within tuples, lists or dictionaries, holds NaN."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" and not holds_throughout(np.atleast_1d(value), _is_number)
    inner = value.values() if isinstance(value, dict) else value
    nested = isinstance(value, tuple | list | dict) and depth > 0
    return nested and any(_has_nan(one, depth - 1) for one in inner)


def _is_number(values: Any) -> Any:
    return ~np.isnan(values)


def _said(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype}"
    return f"a {type(value).__name__}"


# --- what must hold between fields ------------------------------------------------------------


def _anchor(of: Mapping[str, Any]) -> str | None:
    origin, unit = of["origin"], of["unit"]
    if origin.ndim != 1 or origin.shape != unit.shape:
        return f"origin {origin.shape} and unit {unit.shape} must be two vectors of one length"
    if not (np.isfinite(origin).all() and np.isfinite(unit).all() and (unit > 0).all()):
        return "origin and unit must be finite, and units positive"
    return None


def _metric(of: Mapping[str, Any]) -> str | None:
    root, basis, gain = of["root"], of["basis"], of["gain"]
    if root.ndim != 1 or basis.ndim != 2 or basis.shape != (len(root), len(gain)):
        return f"basis {basis.shape} must be {len(root)} features by {len(gain)} gains"
    return _numbers(of)


def _linear(of: Mapping[str, Any]) -> str | None:
    coef, K, d = of["coef"], *_sizes(of)
    if coef.ndim != 2 or coef.shape[0] not in (K, 1) or coef.shape[1] != d:
        return f"coef {coef.shape} must be {K} classes by {d} features"
    if of["intercept"].shape != coef.shape[:1]:
        return f"intercept {of['intercept'].shape} must have one number for each row of coef"
    return _numbers(of)


def _quadratic(of: Mapping[str, Any]) -> str | None:
    K, d = _sizes(of)
    if of["mean"].shape != (K, d) or of["log_prior"].shape != (K,) or len(of["metrics"]) != K:
        return f"mean, log_prior and metrics must be of {K} classes and {d} features"
    if any(metric.basis.shape[0] != d for metric in of["metrics"]):
        return f"the metrics must be of {d} features"
    return _numbers(of)


def _sizes(of: Mapping[str, Any]) -> tuple[int, int]:
    """Classes and features of a rule."""
    (K,) = of["labels"].shape
    return K, len(of["anchor"].origin)


def _numbers(of: Mapping[str, Any]) -> str | None:
    """No NaN in a rule; an infinity only where a log of zero belongs."""
    for name, value in of.items():
        if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
            continue
        wrong = ~np.isfinite(value) if name in ("coef", "mean", "basis") else np.isnan(value)
        if wrong.any():
            return f"{name} has {int(wrong.sum())} of {wrong.size} values that are no finite number"
    return None


def _rows(of: Mapping[str, Any]) -> str | None:
    codes, K = of["codes"], len(of["labels"])
    if codes.ndim != 1 or (len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < K):
        return f"codes must be from 0 to {K - 1}"
    return None


def _polynomial(of: Mapping[str, Any]) -> str | None:
    d, degree = len(of["features"]), of["degree"]
    if not 0 < degree <= _DEGREE:
        return f"degree {degree} must be from 1 to {_DEGREE}"
    columns = d * degree if of.get("interactions") is False else comb(d + degree, degree)
    if columns > _COLUMNS:
        return f"degree {degree} of {d} features makes more than {_COLUMNS:,} columns"
    return None


_MADE = ("number", "boolean", "date", "ordered", "category")  # columns that features are made of


def _column(of: Mapping[str, Any]) -> str | None:
    levels, made, reference = of["levels"], of["features"], of["reference"]
    if len(set(levels)) < len(levels):
        return "a level comes twice"
    if reference is not None and reference not in levels:
        return f"the reference '{reference[:100]}' is none of its {len(levels)} levels"
    wanted = len(levels) - (reference is not None) if of["kind"] == "category" else 1
    if of["kind"] not in _MADE:
        return f"a column of kind {of['kind']} has no features" if made else None
    if len(made) != wanted + of["indicator"]:
        return f"it has {len(made)} features, not {wanted + of['indicator']}"
    if of["fill"] and len(of["fill"]) != wanted:
        return f"it has {len(of['fill'])} numbers for missing cells, not {wanted}"
    return None if np.isfinite(of["fill"]).all() else "what missing cells become is no number"


def _encoding(of: Mapping[str, Any]) -> str | None:
    names = [column.name for column in of["columns"]]
    made = [name for column in of["columns"] for name in column.features]
    if len(set(names)) < len(names) or len(set(made)) < len(made):
        return "a column or a feature comes twice"
    if of["missing"] in ("mean", "indicator"):
        bare = [column.name for column in of["columns"] if column.features and not column.fill]
        return f"nothing stands for missing cells of '{bare[0][:100]}'" if bare else None
    return None


def _of_table(of: Mapping[str, Any]) -> str | None:
    made, named = of["encoding"].features, of["features"]
    if made != named:
        return f"its {len(named)} features are not the {len(made)} of its encoding"
    return None


def _wrapper(of: Mapping[str, Any]) -> str | None:
    """Models that hold others."""
    held = [of[name] for name in ("estimator_", "_base") if of.get(name) is not None]
    for model in (*held, *of.get("estimators_", ())):
        if not (hasattr(model, "fit") and hasattr(model, "get_params")):
            return f"a model that it holds is {_said(model)}"
    return None


def _encoded(of: Mapping[str, Any]) -> str | None:
    names = {"estimator_", "encoding_", "classes_"}
    if "estimator_" in of and not hasattr(of["estimator_"], "classes_"):
        names.discard("classes_")  # a regressor has none
    absent = names - set(of)
    if absent == names:
        return None  # not fitted
    if absent:
        return f"it has no {min(absent)}"
    d = len(of["encoding_"].features)
    width = getattr(of["estimator_"], "n_features_in_", d)
    if width != d:
        return f"its encoding makes {d} features, and its model takes {width}"
    return _wrapper(of)


_CHECKS: dict[str, Callable[[Mapping[str, Any]], str | None]] = {
    "Anchor": _anchor,
    "Metric": _metric,
    "LinearRule": _linear,
    "FisherRule": _linear,
    "QuadraticRule": _quadratic,
    "LaplaceRule": _numbers,
    "ClassRows": _rows,
    "PolynomialBasis": _polynomial,
    "Column": _column,
    "Encoding": _encoding,
    "Encoded": _encoded,
    "TableMoments": _of_table,
    **dict.fromkeys(("Decision", "Fusion", "Reweighted", "Resampled", "EasyEnsemble"), _wrapper),
    **dict.fromkeys(("OneVsRest", "OneVsOne", "OutputCodes"), _wrapper),
}
