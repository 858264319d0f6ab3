"""Functions in formulas that learn parameters from the training rows, as in R's model matrices.

    center(x)      x - mean
    scale(x)       (x - mean) / standard deviation, with denominator n - 1; also standardize(x)
    poly(x, k)     orthogonal polynomials of degree 1 to k; with raw=True the powers of x
    bs(x, df=k)    B-splines with knots at quantiles

`learn` returns the parameters as a tuple of floats, the state; `apply` computes the columns of any
rows from the state. Row weights have no influence on the parameters.

The polynomials have sums of squares 1 and are computed by the recurrence of R's `poly`,

    p_0 = 1,  p_1 = x - a_1,  p_i = (x - a_i) p_{i-1} - (s_{i-1} / s_{i-2}) p_{i-2}
    a_i = sum x p_{i-1}^2 / s_{i-1},  s_i = sum p_i^2  (over the rows of the fit)

each divided by the root of s_i (Kennedy and Gentle 1980, section 8.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discriminant.errors import FormulaError
from discriminant.table.blocks import Floats

_MAX_COLUMNS = 50
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class Transform:
    """A function that learns its parameters, the state, from the training rows."""

    options: tuple[str, ...]
    learn: Callable[..., tuple[float, ...]]
    apply: Callable[[Floats, Sequence[float], str], Floats]
    # function: reason why a state is invalid, or None
    invalid_reason: Callable[[Sequence[float]], str | None]


def _learn_center(x: Floats, text: str) -> tuple[float, ...]:
    return (float(x.mean()), 1.0)


def _learn_scale(x: Floats, text: str, center: Any = True, scale: Any = True) -> tuple[float, ...]:
    for name, value in (("center", center), ("scale", scale)):
        if not isinstance(value, bool):
            raise FormulaError.of_arguments("scale", f"{name}=True or False")
    middle = float(x.mean()) if center else 0.0
    if not scale:
        return (middle, 1.0)
    # without centring, R divides by the root of the sum of squares over n - 1
    deviation = float(np.sqrt(np.square(x - middle).sum() / max(len(x) - 1, 1)))
    if not deviation > 0:
        raise FormulaError.constant_column(text)
    return (middle, deviation)


def _apply_scale(x: Floats, state: Sequence[float], text: str) -> Floats:
    return np.asarray((x - state[0]) / state[1])


def _scale_reason(state: Sequence[float]) -> str | None:
    return None if len(state) == 2 and state[1] > 0 else "it is not a centre and a scale"


def _learn_poly(x: Floats, text: str, degree: Any = 1, raw: Any = False) -> tuple[float, ...]:
    whole = isinstance(degree, int) and not isinstance(degree, bool)
    if not whole or not 1 <= degree <= _MAX_COLUMNS or not isinstance(raw, bool):
        allowed = f"a degree from 1 to {_MAX_COLUMNS}, and raw=True or False"
        raise FormulaError.of_arguments("poly", allowed)
    distinct = len(np.unique(x))
    if distinct <= degree:
        raise FormulaError.few_values(text, degree + 1, distinct)
    if raw:
        return (float(degree),)
    alphas, squares = orthogonal_recurrence(x, degree)
    return (float(degree), *alphas, *squares)


def orthogonal_recurrence(x: Floats, degree: int) -> tuple[list[float], list[float]]:
    """Return the coefficients a_1 ... a_k and s_0 ... s_k of the recurrence."""
    before, now = np.zeros(len(x)), np.ones(len(x))
    alphas: list[float] = []
    squares = [float(len(x))]
    for i in range(degree):
        # measured from the mean, for accuracy of columns far from zero
        middle = alphas[0] if alphas else float(x.mean())
        alphas.append(middle + float(((x - middle) * now**2).sum()) / squares[-1])
        ratio = squares[-1] / squares[-2] if i else 0.0
        before, now = now, (x - alphas[-1]) * now - ratio * before
        squares.append(float((now**2).sum()))
    return alphas, squares


def _apply_poly(x: Floats, state: Sequence[float], text: str) -> Floats:
    degree = int(state[0])
    if len(state) == 1:
        return np.asarray(x[:, None] ** np.arange(1, degree + 1))
    return orthogonal_columns(x, state[1 : degree + 1], state[degree + 1 :])


def orthogonal_columns(x: Floats, alphas: Sequence[float], squares: Sequence[float]) -> Floats:
    """Return an (n, k) array: the orthogonal polynomials of degree 1 to k of x."""
    before, now = np.zeros(len(x)), np.ones(len(x))
    columns = []
    for i, alpha in enumerate(alphas):
        ratio = squares[i] / squares[i - 1] if i else 0.0
        before, now = now, (x - alpha) * now - ratio * before
        columns.append(now / np.sqrt(squares[i + 1]))
    return np.column_stack(columns)


def _poly_reason(state: Sequence[float]) -> str | None:
    degree = state[0] if state else 0.0
    if not (float(degree).is_integer() and 1 <= degree <= _MAX_COLUMNS):
        return "its degree is not valid"
    if len(state) == 1:
        return None
    if len(state) != 2 * int(degree) + 2 or min(state[int(degree) + 1 :]) <= 0:
        return "it is not a recurrence of polynomials"
    return None


def _learn_bs(
    x: Floats,
    text: str,
    df: Any = None,
    knots: Any = None,
    degree: Any = 3,
    intercept: Any = False,
) -> tuple[float, ...]:
    whole = isinstance(degree, int) and not isinstance(degree, bool)
    if not whole or not 1 <= degree <= 10 or not isinstance(intercept, bool):
        raise FormulaError.of_arguments("bs", "a degree from 1 to 10, and intercept=True or False")
    low, high = float(x.min()), float(x.max())
    if not low < high:
        raise FormulaError.constant_column(text)
    if knots is None:
        least = degree + intercept
        if df is not None and (not isinstance(df, int) or not least <= df <= _MAX_COLUMNS):
            raise FormulaError.of_arguments("bs", f"df from {least} to {_MAX_COLUMNS}")
        inner = (least if df is None else df) - least
        knots = np.quantile(x, np.arange(1, inner + 1) / (inner + 1)).tolist()
    elif df is not None:
        raise FormulaError.of_arguments("bs", "either df or knots")
    knots = [knots] if isinstance(knots, int | float) else knots
    numbers = isinstance(knots, list) and all(isinstance(k, int | float) for k in knots)
    if not numbers or any(not low < knot < high for knot in knots) or len(knots) > _MAX_COLUMNS:
        raise FormulaError.of_arguments("bs", "knots between the least and the largest value")
    return (float(degree), float(intercept), low, high, *sorted(map(float, knots)))


def _apply_bs(x: Floats, state: Sequence[float], text: str) -> Floats:
    from scipy.interpolate import BSpline

    degree, intercept, low, high = int(state[0]), bool(state[1]), state[2], state[3]
    margin = 8 * _EPS * max(abs(low), abs(high))
    for row in np.flatnonzero(~((x >= low - margin) & (x <= high + margin)))[:1].tolist():
        raise FormulaError.outside(text, row, low, high)
    ends = [[low] * (degree + 1), [high] * (degree + 1)]
    knots = np.array([*ends[0], *state[4:], *ends[1]])
    basis = BSpline.design_matrix(np.clip(x, low, high), knots, degree).toarray()
    return np.asarray(basis[:, 0 if intercept else 1 :])


def _bs_reason(state: Sequence[float]) -> str | None:
    if len(state) < 4 or len(state) > _MAX_COLUMNS + 4:
        return "it is not a spline"
    inner = list(state[4:])
    ordered = inner == sorted(inner) and all(state[2] < knot < state[3] for knot in inner)
    valid = state[0] in range(1, 11) and state[1] in (0.0, 1.0) and state[2] < state[3] and ordered
    return None if valid else "it is not a spline"


TRANSFORMS: Mapping[str, Transform] = {
    "center": Transform((), _learn_center, _apply_scale, _scale_reason),
    "scale": Transform(("center", "scale"), _learn_scale, _apply_scale, _scale_reason),
    "standardize": Transform(("center", "scale"), _learn_scale, _apply_scale, _scale_reason),
    "poly": Transform(("degree", "raw"), _learn_poly, _apply_poly, _poly_reason),
    "bs": Transform(("df", "knots", "degree", "intercept"), _learn_bs, _apply_bs, _bs_reason),
}
