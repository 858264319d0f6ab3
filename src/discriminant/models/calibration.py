"""Calibrators: from scores of classes to probabilities, fitted to held-out scores.

Two classes have one margin, s = score of the second class minus score of the first; it is the log
odds if the scores are log posteriors. For K > 2 classes, the margin of class k is its log odds
against all other classes, or its score if the scores are not log posteriors. Each margin is
calibrated separately, and the results q_k are divided by their sum.

    sigmoid      q = 1 / (1 + exp(-(a s + b)))                       Platt 2000
    beta         q = 1 / (1 + exp(-(a log p - b log(1 - p) + c)))    Kull, Silva Filho, Flach 2017
    isotonic     q = g(s), g increasing: least squares, linear between blocks; Zadrozny, Elkan 2002
    temperature  p_k ~ exp(score_k / T), all classes at once         Guo et al. 2017

with p = 1 / (1 + exp(-s)), a, b >= 0 for beta, and 1/T between e^-10 and e^10. The parameters of
sigmoid, beta and temperature maximise the likelihood. Platt's targets, (n_1 + 1) / (n_1 + 2) and
1 / (n_0 + 2) in place of 1 and 0, keep the sigmoid finite if the margins separate the classes. Beta
calibration uses Platt's targets only in this case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from discriminant.models.expressions import (
    Expression,
    constant,
    evaluate_polynomial,
    stack,
    where_greater,
)
from discriminant.table.blocks import Floats, Places

LARGEST = 500.0  # margins are clipped to this size, so that exponentials stay in range
_LOG_EPS = float(np.log(np.finfo(np.float64).eps))  # least log probability for beta
_STEPS = 200
_TOLERANCE = 1e-11  # tolerance of the gradient, relative to the weight of the rows
_HOTTEST = 10.0  # |log T| is at most this


class Calibrator(Protocol):
    """A fitted calibrator."""

    @property
    def n_margins(self) -> int | None:
        """Number of margins: 1 for two classes, else K; None if any number is accepted."""
        ...

    def log_weights(self, scores: Floats, *, posterior: bool) -> Floats:
        """Return the (n, K) log calibrated probabilities, up to a term common to all classes."""
        ...

    def expression(
        self, scores: Expression, *, posterior: bool
    ) -> tuple[Expression | None, Expression | None]:
        """Return the (K,) log probabilities and relative probabilities; one of them is None."""
        ...


def margins(scores: Floats, *, posterior: bool) -> Floats:
    """Return the (n, 1) margin of two classes, or the (n, K) margins of more classes.

    `scores` (n, K) are log posteriors if `posterior`, else scores such as a decision function.

    >>> margins(np.log([[0.6, 0.2, 0.2]]), posterior=True).round(4)
    array([[ 0.4055, -1.3863, -1.3863]])
    """
    with np.errstate(invalid="ignore", over="ignore", under="ignore", divide="ignore"):
        if scores.shape[1] == 2:
            values = np.diff(scores, axis=1)
        elif posterior:
            values = _log_odds(scores)
        else:
            values = scores.copy()
    # inf - inf is NaN: the row carries no information
    values[np.isnan(values)] = 0.0
    return np.clip(values, -LARGEST, LARGEST)


def _log_odds(logs: Floats) -> Floats:
    """Return the (n, K) log odds of each class against all others, from log posteriors."""
    rows, best = np.arange(len(logs)), logs.argmax(axis=1)
    shifted = logs - logs[rows, best][:, None]
    exponentials = np.exp(shifted)
    odds = shifted - np.log(exponentials.sum(axis=1, keepdims=True) - exponentials)
    # for the most probable class the difference would cancel
    others = shifted.copy()
    others[rows, best] = -np.inf
    second = np.maximum(others.max(axis=1), -1e300)
    odds[rows, best] = -(second + np.log(np.exp(others - second[:, None]).sum(axis=1)))
    return np.asarray(odds)


def margin_expression(scores: Expression, *, posterior: bool) -> Expression:
    """Return the margins as an expression, (1,) or (K,); see `margins`."""
    K = scores.width
    if K <= 2:
        values = scores if K == 1 else scores[1] - scores[0]
    elif posterior:
        shifted = (scores - scores.max().with_name("largest")).with_name("less")
        others = shifted.exp().affine(1.0 - np.eye(K), np.zeros(K)).with_name("others")
        values = shifted - others.log()
    else:
        values = scores
    return values.smaller(LARGEST).larger(-LARGEST).with_name("margin")


# --- calibrators ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class SigmoidCalibrator:
    """Sigmoid of each margin: q = 1 / (1 + exp(-(slope s + intercept)))."""

    slope: Floats  # (m,) m is 1 for two classes, else K
    intercept: Floats  # (m,)

    @property
    def n_margins(self) -> int | None:
        """Number of margins: 1 for two classes, else K."""
        return len(self.slope)

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the fields of a calibrator are invalid, or None."""
        return _invalid_vectors(parts, "slope", "intercept")

    def log_weights(self, scores: Floats, *, posterior: bool) -> Floats:
        """Return the (n, K) log calibrated probabilities, up to a term common to all classes."""
        return _log_sigmoids(self.slope * margins(scores, posterior=posterior) + self.intercept)

    def expression(
        self, scores: Expression, *, posterior: bool
    ) -> tuple[Expression | None, Expression | None]:
        """Return the (K,) log probabilities and relative probabilities; one of them is None."""
        margin = margin_expression(scores, posterior=posterior)
        return _log_sigmoid_expression(margin * self.slope + self.intercept), None


@dataclass(frozen=True, slots=True, eq=False)
class BetaCalibrator:
    """Beta calibration of each margin: logit q = a log p - b log(1 - p) + c."""

    a: Floats  # (m,) m is 1 for two classes, else K
    b: Floats  # (m,)
    c: Floats  # (m,)

    @property
    def n_margins(self) -> int | None:
        """Number of margins: 1 for two classes, else K."""
        return len(self.a)

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the fields of a calibrator are invalid, or None."""
        return _invalid_vectors(parts, "a", "b", "c")

    def log_weights(self, scores: Floats, *, posterior: bool) -> Floats:
        """Return the (n, K) log calibrated probabilities, up to a term common to all classes."""
        margin = margins(scores, posterior=posterior)
        log_p, log_q = _log_sides(margin)
        return _log_sigmoids(self.a * log_p - self.b * log_q + self.c)

    def expression(
        self, scores: Expression, *, posterior: bool
    ) -> tuple[Expression | None, Expression | None]:
        """Return the (K,) log probabilities and relative probabilities; one of them is None."""
        margin = margin_expression(scores, posterior=posterior)
        log_p = _log_sigmoid_of(margin).larger(_LOG_EPS)
        log_q = _log_sigmoid_of(margin * -1.0).larger(_LOG_EPS)
        return _log_sigmoid_expression(log_p * self.a - log_q * self.b + self.c), None


@dataclass(frozen=True, slots=True, eq=False)
class TemperatureCalibrator:
    """All scores divided by one temperature."""

    temperature: float

    @property
    def n_margins(self) -> int | None:
        """None, since any number of margins is accepted."""
        return None

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the field of a calibrator is invalid, or None if it is valid."""
        positive = 0.0 < parts["temperature"] < np.inf
        return None if positive else "temperature must be positive and finite"

    def log_weights(self, scores: Floats, *, posterior: bool) -> Floats:
        """Return the (n, K) log calibrated probabilities, up to a term common to all classes."""
        return _bounded(scores) / self.temperature

    def expression(
        self, scores: Expression, *, posterior: bool
    ) -> tuple[Expression | None, Expression | None]:
        """Return the (K,) log probabilities and relative probabilities; one of them is None."""
        if scores.width == 1:
            scores = stack([constant(0.0), scores])
        less = scores - scores.max().with_name("largest")
        return less.larger(-LARGEST) * (1.0 / self.temperature), None


@dataclass(frozen=True, slots=True, eq=False)
class IsotonicCalibrator:
    """Increasing function of each margin, linear between knots and constant beyond them."""

    margin: tuple[Floats, ...]  # knots of each of the m functions, increasing
    value: tuple[Floats, ...]  # q at the knots

    @property
    def n_margins(self) -> int | None:
        """Number of margins: 1 for two classes, else K."""
        return len(self.margin)

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the fields of a calibrator are invalid, or None."""
        pairs = [*zip(parts["margin"], parts["value"], strict=True)]
        for margin, value in pairs:
            if margin.ndim != 1 or margin.shape != value.shape or not len(margin):
                return "margin and value must be vectors of one length"
            if (np.diff(margin) <= 0).any() or (np.diff(value) < 0).any():
                return "margin and value must increase"
            if value[0] < 0 or value[-1] > 1:
                return "value must be from 0 to 1"
        return None if pairs else "there must be at least one function"

    def log_weights(self, scores: Floats, *, posterior: bool) -> Floats:
        """Return the (n, K) log calibrated probabilities, up to a term common to all classes.

        If every class has probability 0, all have the same weight.
        """
        margin = margins(scores, posterior=posterior)
        functions = zip(margin.T, self.margin, self.value, strict=True)
        q = np.column_stack([np.interp(s, knots, values) for s, knots, values in functions])
        if q.shape[1] == 1:
            q = np.hstack([1.0 - q, q])
        q[~q.any(axis=1)] = 1.0
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(q))

    def expression(
        self, scores: Expression, *, posterior: bool
    ) -> tuple[Expression | None, Expression | None]:
        """Return the (K,) log probabilities and relative probabilities; one of them is None."""
        margin = margin_expression(scores, posterior=posterior)
        q = stack(
            [
                _interpolation(margin[k], knots, values)
                for k, (knots, values) in enumerate(zip(self.margin, self.value, strict=True))
            ]
        )
        if q.width == 1:
            return None, stack([constant(1.0) - q, q])
        return None, where_greater(q.sum().with_name("all_shares"), 0.0, q, 1.0)


def _invalid_vectors(parts: Mapping[str, Any], *names: str) -> str | None:
    shape = parts[names[0]].shape
    if len(shape) != 1 or not shape[0] or any(parts[name].shape != shape for name in names):
        return f"{', '.join(names)} must be vectors of one length"
    if not all(np.isfinite(parts[name]).all() for name in names):
        return f"{', '.join(names)} must be finite"
    return None


def _log_sigmoids(z: Floats) -> Floats:
    """Return (n, K) log probabilities, given (n, 1) logits of the second class or (n, K) logits."""
    if z.shape[1] == 1:
        return np.hstack([np.zeros_like(z), z])
    with np.errstate(under="ignore"):
        return np.asarray(-np.logaddexp(0.0, -z))


def _log_sigmoid_expression(z: Expression) -> Expression:
    return stack([constant(0.0), z]) if z.width == 1 else _log_sigmoid_of(z)


def _log_sigmoid_of(z: Expression) -> Expression:
    """Return log(1 / (1 + exp(-z))) as min(z, 0) - log(1 + exp(-|z|))."""
    small = (constant(0.0) - z.abs()).exp()
    # for small x, log(1 + x) loses digits of x, so its series is used
    series = small * evaluate_polynomial(small, (1.0 / 3.0, -0.5, 1.0))
    return z.smaller(0.0) - where_greater(small, 1e-5, (small + 1.0).log(), series)


def _log_sides(margin: Floats) -> tuple[Floats, Floats]:
    """Return log p and log(1 - p) for p = 1 / (1 + exp(-margin)), not below log(2.2e-16)."""
    with np.errstate(under="ignore"):
        sides = (-np.logaddexp(0.0, -margin), -np.logaddexp(0.0, margin))
    return np.maximum(sides[0], _LOG_EPS), np.maximum(sides[1], _LOG_EPS)


def _bounded(scores: Floats) -> Floats:
    """Return each score minus the largest score of its row; differences are cut off at -LARGEST."""
    return np.asarray(np.maximum(scores - scores.max(axis=1, keepdims=True), -LARGEST))


def _interpolation(s: Expression, knots: Floats, values: Floats) -> Expression:
    """Return a piecewise linear function as a (1,) expression: its first value plus its rises."""
    rises = np.diff(values)
    used = np.flatnonzero(rises)
    if not len(used):
        return constant(values[0])
    low, wide = knots[used], np.diff(knots)[used]
    within = ((s - low) / wide).smaller(1.0).larger(0.0).with_name("within")
    return within.affine(rises[used][None], values[:1])


# --- fitting --------------------------------------------------------------------------------------


def fit_sigmoid(
    scores: Floats, codes: Places, weight: Floats | None, *, posterior: bool
) -> SigmoidCalibrator:
    """Fit Platt's sigmoid to each margin.

    Parameters
    ----------
    scores : array of shape (n, K)
        Held-out log posteriors or scores.
    codes : array of shape (n,)
        Class of each row.
    weight : array of shape (n,) or None
        Weight of each row.
    posterior : bool
        Whether the scores are log posteriors.
    """
    fits = [
        _maximise_likelihood(margin[:, None], _platt_targets(positive, weights), weights)
        for margin, positive, weights in _problems(scores, codes, weight, posterior=posterior)
    ]
    slope, intercept = np.array(fits).T
    return SigmoidCalibrator(slope, intercept)


def fit_beta(
    scores: Floats, codes: Places, weight: Floats | None, *, posterior: bool
) -> BetaCalibrator:
    """Fit beta calibration to each margin; the arguments are those of `fit_sigmoid`."""
    fits = []
    for margin, positive, weights in _problems(scores, codes, weight, posterior=posterior):
        log_p, log_q = _log_sides(margin)
        columns = np.column_stack([log_p, -log_q])
        coef = _fit_beta_columns(columns, positive, weights)
        used = [0, 1]
        if min(coef[:2]) < 0:  # as in the authors' package: drop one feature, and fit again
            used = [1] if coef[0] < 0 else [0]
            single = _fit_beta_columns(columns[:, used], positive, weights)
            if single[0] < 0:
                used, single = [], _fit_beta_columns(columns[:, :0], positive, weights)
            coef = np.zeros(3)
            coef[[*used, 2]] = single
        fits.append(coef)
    a, b, c = np.array(fits).T
    return BetaCalibrator(a, b, c)


def fit_temperature(
    scores: Floats, codes: Places, weight: Floats | None, *, posterior: bool
) -> TemperatureCalibrator:
    """Fit the temperature; the arguments are those of `fit_sigmoid`.

    The derivative of the log loss with respect to 1/T is increasing, so it has only one zero.
    """
    logs, rows = _bounded(scores), np.arange(len(scores))
    weights = np.ones(len(rows)) if weight is None else weight
    own = logs[rows, codes]

    def slope(log_inverse: float) -> float:
        with np.errstate(under="ignore"):
            p = np.exp(np.exp(log_inverse) * logs)
            expected = (p * logs).sum(axis=1) / p.sum(axis=1)
        return float(weights @ (expected - own))

    if slope(_HOTTEST) <= 0.0:
        return TemperatureCalibrator(float(np.exp(-_HOTTEST)))
    if slope(-_HOTTEST) >= 0.0:
        return TemperatureCalibrator(float(np.exp(_HOTTEST)))
    return TemperatureCalibrator(float(np.exp(-brentq(slope, -_HOTTEST, _HOTTEST, xtol=1e-13))))


def fit_isotonic(
    scores: Floats, codes: Places, weight: Floats | None, *, posterior: bool
) -> IsotonicCalibrator:
    """Fit an increasing function of each margin; the arguments are those of `fit_sigmoid`."""
    from sklearn.isotonic import IsotonicRegression

    knots, values = [], []
    for margin, positive, weights in _problems(scores, codes, weight, posterior=posterior):
        fit = IsotonicRegression(out_of_bounds="clip", y_min=0.0, y_max=1.0)
        fit.fit(margin, positive.astype(np.float64), sample_weight=weights)
        knots.append(np.asarray(fit.X_thresholds_, dtype=np.float64))
        values.append(np.asarray(fit.y_thresholds_, dtype=np.float64))
    return IsotonicCalibrator(tuple(knots), tuple(values))


FITS: dict[str, Callable[..., Calibrator]] = {
    "platt": fit_sigmoid,
    "temperature": fit_temperature,
    "isotonic": fit_isotonic,
    "beta": fit_beta,
}


def _problems(
    scores: Floats, codes: Places, weight: Floats | None, *, posterior: bool
) -> list[tuple[Floats, Any, Floats]]:
    """Return for each margin its values, a mask of the rows of its class, and the weights."""
    columns = margins(scores, posterior=posterior).T
    weights = np.ones(len(codes)) if weight is None else weight
    classes = [1] if len(columns) == 1 else range(len(columns))
    return [(s, codes == k, weights) for s, k in zip(columns, classes, strict=True)]


def _platt_targets(positive: Any, weight: Floats) -> Floats:
    n1 = float(weight[positive].sum())
    n0 = float(weight.sum()) - n1
    return np.asarray(np.where(positive, (n1 + 1.0) / (n1 + 2.0), 1.0 / (n0 + 2.0)))


def _fit_beta_columns(columns: Floats, positive: Any, weight: Floats) -> Floats:
    coef = _maximise_likelihood(columns, positive.astype(np.float64), weight)
    z = columns @ coef[:-1] + coef[-1]
    if (np.where(positive, z, -z) > 0).all():  # separated: the maximum is at infinity
        return _maximise_likelihood(columns, _platt_targets(positive, weight), weight)
    return coef


def _maximise_likelihood(columns: Floats, target: Floats, weight: Floats) -> Floats:
    """Return the slopes and the intercept of a logistic regression on targets from 0 to 1.

    The loss is minimised by Newton steps, after the columns have been centred and scaled. A step
    that does not decrease the loss is halved.
    """
    middle = weight @ columns / weight.sum()
    scale = np.abs(columns - middle).max(axis=0)
    scale[scale == 0] = 1.0
    x = np.column_stack([(columns - middle) / scale, np.ones(len(columns))])
    coef = np.zeros(x.shape[1])

    def loss(coef: Floats) -> float:
        z = x @ coef
        return float(weight @ (np.logaddexp(0.0, z) - target * z))

    with np.errstate(under="ignore", over="ignore"):
        current = loss(coef)
        for _ in range(_STEPS):
            p = expit(x @ coef)
            slope = x.T @ (weight * (target - p))
            if np.abs(slope).max() <= _TOLERANCE * weight.sum():
                break
            curvature = (x * (weight * p * (1.0 - p))[:, None]).T @ x
            ridge = 1e-14 * max(float(np.trace(curvature)), 1e-300)
            step = np.linalg.lstsq(curvature + ridge * np.eye(len(coef)), slope, rcond=None)[0]
            slack, length = 1e-13 * abs(current), 1.0  # the loss is rounded
            while (candidate := loss(coef + length * step)) > current + slack and length > 1e-10:
                length *= 0.5
            coef, current = coef + length * step, candidate
            if np.abs(length * step).max() <= _TOLERANCE * (1.0 + np.abs(coef).max()):
                break
    slopes = coef[:-1] / scale
    return np.append(slopes, coef[-1] - slopes @ middle)
