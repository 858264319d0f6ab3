"""The smallest change of a row that makes a linear model predict another class.

A model with scores f_k predicts class k for a row x if f_k(x) is the largest. Let g = f_k(x) -
f_c(x) be the lead over another class c, and a the weights of class c minus those of class k. A
change z leads to class c if a'z > g. The smallest change, in each norm, has a closed form:

    l2      z = t a                 t = g / |a|^2; distance g / |a| from the boundary
    linf    z = t sign a            t = g / sum |a_j|: all features change by the same amount
    l1      z_j = g / a_j           for the feature j with the largest |a_j| only

With bounds on the features, each component of z is cut at its bound, and t is larger: a'z is then a
piecewise linear function of t, which is inverted by sorting the values of t at which components
reach their bounds. In the l1 norm, features change in the order of |a_j|, each up to its bound.
With more than two classes, the smallest of the changes to the other classes is the answer. Small
changes of many features that change the prediction are known as adversarial examples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discriminant.assessment.standardised_coefficients import linear_coefficients
from discriminant.errors import LinearModelError, OptionError, ShapeError
from discriminant.table.blocks import Floats, numbered_names
from discriminant.table.column_cells import import_pandas

Norm = Literal["l2", "l1", "linf"]
NORMS: tuple[Norm, ...] = ("l2", "l1", "linf")

_BEYOND = 1e-9  # relative distance by which the changed row lies beyond the boundary
_LARGEST_BEYOND = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class SmallestChange:
    """Smallest change of one row to another predicted class."""

    row: Floats  # (d,) the changed row
    change: Floats  # (d,) in the units of the features
    size: float  # norm of the change, in units of `scale`
    before: Any  # label predicted for the row
    after: Any  # label predicted for the changed row
    features: tuple[str, ...]

    def frame(self) -> Any:
        """Return a data frame of the features that change: value before and after, and change."""
        pd = import_pandas()
        columns = {"before": self.row - self.change, "after": self.row, "change": self.change}
        index = pd.Index(self.features, name="feature")
        return pd.DataFrame(columns, index=index)[self.change != 0]

    def __repr__(self) -> str:
        changed = int(np.count_nonzero(self.change))
        return (
            f"SmallestChange({self.before!r} to {self.after!r}: size {self.size:.4g}, "
            f"{changed} of {len(self.change)} features)"
        )


def smallest_change(
    model: Any,
    row: Any,
    *,
    norm: Norm = "l2",
    scale: npt.ArrayLike | None = None,
    bounds: tuple[Any, Any] | Mapping[Any, tuple[float, float]] | None = None,
    fixed: Sequence[Any] = (),
) -> SmallestChange:
    """Compute the smallest change of a row that changes the prediction of a linear classifier.

    Parameters
    ----------
    model : fitted classifier with `coef_`, `decision_function` and `classes_`
        Linear classifier of this package or another one.
    row : array or series of shape (d,), or array or data frame with one row
        Row to change. Named features are matched by name; `scale` and `bounds` have their order.
    norm : {'l2', 'l1', 'linf'}, default 'l2'
        Size of the change that is minimised: the Euclidean norm, the sum of absolute changes (which
        changes as few features as possible), or the largest absolute change.
    scale : array of shape (d,), default None
        Unit of each feature in which changes are measured, such as its standard deviation. None
        means 1.
    bounds : tuple (lower, upper) or dict of such tuples by feature, default None
        Smallest and largest allowed values, as numbers or arrays of shape (d,).
    fixed : sequence of names or positions, default ()
        Features that must not change.

    Returns
    -------
    SmallestChange
        The changed row, which lies just beyond the boundary, and the change.

    Examples
    --------
    >>> from discriminant import LDA
    >>> model = LDA().fit([[0, 0], [1, 0], [0, 1], [4, 4], [5, 4], [4, 5]], list("aaabbb"))
    >>> smallest_change(model, [0.0, 1.0])
    SmallestChange('a' to 'b': size 2.593, 2 of 2 features)
    >>> round(smallest_change(model, [0.0, 1.0], norm="l1", bounds=(0, 5)).size, 3)
    3.667
    """
    weights = np.atleast_2d(linear_coefficients(model, "smallest_change"))
    if hasattr(row, "to_frame") and not hasattr(row, "columns"):
        row = row.to_frame().T  # a pandas series, whose index names the features
    features = _feature_names(model, row, weights.shape[1])
    weights = weights[:, _fitted_positions(model, features)]
    x = np.asarray(row, dtype=np.float64).ravel()
    if not len(x) == len(features) == weights.shape[1]:
        raise ShapeError.of_width(len(x), weights.shape[1], type(model).__name__)
    if norm not in NORMS:
        raise OptionError.of("norm", norm, f"one of {', '.join(NORMS)}")
    unit = _check_scale(scale, len(x))
    lower, upper = _limits(x, bounds, fixed, features)
    labels = np.asarray(model.classes_)
    code, leads, slopes = _leads(model, _like(row, x), weights)
    best: Floats | None = None
    for lead, slope in zip(leads, slopes, strict=True):
        beyond = _BEYOND
        reach = np.abs(slope * x).max() or np.abs(slope * unit).max()
        while beyond <= _LARGEST_BEYOND:  # until the change is larger than rounding errors
            goal = lead + beyond * (lead + float(reach))
            steps = _solve(slope * unit, goal, lower / unit, upper / unit, norm)
            if steps is None or _predict(model, row, x + steps * unit) != labels[code]:
                break
            beyond *= 10.0
        if steps is not None and (best is None or _size(steps, norm) < _size(best, norm)):
            best = steps
    if best is None:
        raise LinearModelError.unreachable(labels.tolist()[code])
    changed = np.clip(x + best * unit, x + lower, x + upper)
    after = _predict(model, row, changed)
    before = labels.tolist()[code]
    if after == before:
        raise LinearModelError.not_by_weights(type(model).__name__, "smallest_change")
    return SmallestChange(changed, changed - x, _size(best, norm), before, after, features)


def _solve(slope: Floats, goal: float, lower: Floats, upper: Floats, norm: Norm) -> Floats | None:
    """Return the smallest z with slope . z = goal between the bounds; None if there is none.

    The bounds include zero, and the goal is positive.
    """
    size, limit = np.abs(slope), np.where(slope > 0, upper, -lower)
    used = (size > 0) & (limit > 0)
    if not used.any() or float(size[used] @ limit[used]) < goal:
        return None
    step = np.zeros(len(slope))
    if norm == "l1":
        left = goal
        for j in np.flatnonzero(used)[np.argsort(-size[used], kind="stable")]:
            step[j] = min(left / size[j], limit[j])
            left -= size[j] * step[j]
            if left <= 0:
                break
    else:
        speed = size[used] if norm == "l2" else np.ones(int(used.sum()))
        t = _invert(size[used] * speed, limit[used] / speed, goal)
        step[used] = np.minimum(t * speed, limit[used])
    return np.copysign(step, slope)


def _invert(rate: Floats, end: Floats, goal: float) -> float:
    """Return the number t for which the sum over j of rate_j min(t, end_j) equals `goal`."""
    order = np.argsort(end)
    rate, end = rate[order], end[order]
    finite = np.where(np.isfinite(end), end, 0.0)
    done = np.concatenate([[0.0], np.cumsum(rate * finite)[:-1]])
    active = np.cumsum(rate[::-1])[::-1]
    t = (goal - done) / active  # if exactly the components before j have reached their bounds
    j = int(np.argmax(t <= end)) if (t <= end).any() else len(end) - 1
    return float(t[j])


def _leads(model: Any, row: Any, weights: Floats) -> tuple[int, Floats, Floats]:
    """Return the predicted class, its leads over the other classes, and the slopes to them."""
    scores = np.asarray(model.decision_function(row), dtype=np.float64).ravel()
    if len(scores) == 1:
        code = int(scores[0] > 0)
        return code, np.abs(scores), (-weights if code else weights)
    if len(scores) != len(weights):
        raise LinearModelError.not_by_weights(type(model).__name__, "smallest_change")
    code = int(scores.argmax())
    others = np.arange(len(scores)) != code
    return code, scores[code] - scores[others], weights[others] - weights[code]


def _predict(model: Any, row: Any, values: Floats) -> Any:
    return np.asarray(model.predict(_like(row, values))).tolist()[0]


def _like(row: Any, values: Floats) -> Any:
    """Return the values as a single row, of the same type as `row`."""
    if not hasattr(row, "columns"):
        return values[None, :]
    pd = import_pandas()
    return pd.DataFrame(values[None, :], columns=list(row.columns))


def _size(steps: Floats, norm: Norm) -> float:
    return float(np.linalg.norm(steps, {"l2": 2, "l1": 1, "linf": np.inf}[norm]))


def _feature_names(model: Any, row: Any, d: int) -> tuple[str, ...]:
    names = getattr(row, "columns", getattr(model, "feature_names_in_", None))
    return numbered_names(d) if names is None else tuple(str(name) for name in names)


def _fitted_positions(model: Any, features: tuple[str, ...]) -> list[int]:
    """Return the position in the model of each feature of the row, which are matched by name."""
    names = [str(name) for name in getattr(model, "feature_names_in_", features)]
    if sorted(names) != sorted(features):
        return list(range(len(names)))  # the model raises an error for these columns
    return [names.index(name) for name in features]


def _check_scale(scale: Any, d: int) -> Floats:
    unit = np.ones(d) if scale is None else np.asarray(scale, dtype=np.float64)
    if unit.shape != (d,) or not ((unit > 0) & np.isfinite(unit)).all():
        raise OptionError.of("scale", scale, f"{d} positive numbers, one for each feature")
    return unit


def _limits(x: Floats, bounds: Any, fixed: Any, features: tuple[str, ...]) -> tuple[Floats, Floats]:
    """Return the largest allowed decrease (0 or negative) and increase of each feature."""
    lower, upper = np.full(len(x), -np.inf), np.full(len(x), np.inf)
    if isinstance(bounds, Mapping):
        for name, (low, high) in bounds.items():
            j = _position(name, features, "bounds")
            lower[j], upper[j] = low, high
    elif bounds is not None:
        lower, upper = (np.broadcast_to(np.asarray(b, np.float64), x.shape) for b in bounds)
    lower, upper = lower - x, upper - x
    for name in fixed:
        j = _position(name, features, "fixed")
        lower[j] = upper[j] = 0.0
    for column in np.flatnonzero((lower > 0) | (upper < 0)):
        raise LinearModelError.outside(features[column])
    return lower, upper


def _position(name: Any, features: tuple[str, ...], option: str) -> int:
    """Return the position of a feature, given by name or by position."""
    if isinstance(name, int | np.integer) and 0 <= name < len(features):
        return int(name)
    if str(name) not in features:
        allowed = f"names of features, or positions from 0 to {len(features) - 1}"
        raise OptionError.of(option, name, allowed)
    return features.index(str(name))
