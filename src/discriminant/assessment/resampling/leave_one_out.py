"""Every row scored by the model of all the others, without fitting N models.

Leaving out a row of class k and weight w, at z from the class mean, changes the sums by

    n_k' = n_k - w        u - mean_k' = z n_k / n_k'        W_k' = W_k - c z z',  c = w n_k / n_k'

and W' = W - c z z'. So the covariance of class l without the row is, in a basis where W_l and W are
both diagonal, a diagonal less a matrix of rank one:

    S = diag(e) - r y y'          y = z in that basis
    own class   e = a' L_k + b'   r = c (a' + b')      other class   e = a L_l + b'   r = c b'

with a = (1 - pooling) / degrees of the class, b = pooling / degrees of the whole, and ' for the
degrees without the row. Distances follow by Sherman and Morrison, determinants by the matrix
determinant lemma:

    v' S^-1 v = v' e^-1 v + r (v' e^-1 y)^2 / left     log|S| = sum log e + log left
    left = 1 - r y' e^-1 y

Shrinkage of a pooled covariance toward (tr S / d) I or I keeps the eigenvectors of W and only
changes e; shrinkage=1 toward the diagonal has e = diag(W - c z z') / degrees and r = 0.

Rows without which a covariance (almost) loses its inverse, and other members of the family, are
scored by the rule of the moments less the row: `by_removal`. R's MASS does LDA and QDA in closed
form too (CV=TRUE), with priors fixed.

Least squares with one row left out, in closed form.

With h_i the leverage of row i, its share in its own fitted value,

    h_i = w_i [1 / n + (u_i - mean)' (S + ridge)^-1 (u_i - mean)]
    fitted without row i = (fitted_i - h_i code_i) / (1 - h_i)

which holds for any penalty that does not depend on the rows, and with a free intercept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.base import clone

from discriminant.assessment.resampling.folds import fit_rule_without
from discriminant.assessment.scorers import Predictions
from discriminant.engines.dispatch import read_classes
from discriminant.errors import OptionError, PrecisionLostError, TooFewRowsError
from discriminant.models.gaussian.covariance import (
    Metric,
    class_degrees,
    factorise,
    pooled_degrees,
    rounding_variance,
)
from discriminant.models.gaussian.family import GaussianFamily, class_prior
from discriminant.models.linear.least_squares import SAME, IndicatorRule, class_codes, class_problem
from discriminant.moments.class_moments import ClassMoments
from discriminant.posterior import log_posterior
from discriminant.table.blocks import Codes, Floats
from discriminant.table.memory import Table

_LEFT = 1e-6  # less than this left of a covariance in some direction, and it is worked out anew
_DIGITS = 10.0  # of the variances after a removal; fewer, and the other rows are read again


@dataclass(frozen=True, slots=True, eq=False)
class LeaveOneOutTerms:
    """The sums of N rows without each of them."""

    moments: ClassMoments  # of all rows
    codes: Codes  # (N,) k, the class of the row left out
    offsets: Floats  # (N, d)
    away: Floats  # (N,) w, the weight that goes
    loss: Floats  # (N,) c
    stretch: Floats  # (N,) n_k / n_k'
    degrees: Floats  # (N,) of class k without the row
    total: Floats  # (N,) of the pooled scatter without the row

    @classmethod
    def of(cls, moments: ClassMoments, table: Table, family: GaussianFamily) -> LeaveOneOutTerms:
        codes = table.codes.astype(np.intp)
        away = np.ones(len(table)) if table.weight is None else table.weight
        weight, weight2 = moments.weight[codes] - away, moments.weight2[codes] - away**2
        degrees = {
            "ml": weight,
            "unbiased": weight - 1.0,
            "reliability": weight - weight2 / weight,
        }[family.denominator]
        whole = class_degrees(moments, family.denominator)
        total = pooled_degrees(moments, family.denominator) - whole[codes] + degrees
        # Without a positive number of degrees there is no covariance: left to the refit to say.
        total = np.where(total > 0, total, np.nan)
        if family.weighting == "covariance" and not family.linear:
            degrees = np.where(degrees > 0, degrees, np.nan)
        stretch = moments.weight[codes] / weight
        offsets = moments.anchor.offsets(table.features[:])
        return cls(moments, codes, offsets, away, away * stretch, stretch, degrees, total)


def predict_left_out(estimator: Any, table: Table, *, fixed_prior: bool) -> Predictions:
    """What is said of each row by the rule of all the others."""
    moments = read_classes(table, estimator.detail)
    if fixed_prior:
        estimator = _with_prior(estimator, moments)
    scores: Floats | None = estimator.leave_one_out_scores(moments, table)
    if scores is None:
        return by_downdating(estimator, table, moments, np.arange(len(table)))
    clear = ~np.isnan(scores).any(axis=1)
    if clear.all():
        return Predictions(log_posterior(scores), scores.argmax(axis=1))
    found, every = Predictions.empty(*scores.shape), np.arange(scores.shape[1])
    some, doubtful = np.flatnonzero(clear), np.flatnonzero(~clear)
    found.fill(some, every, log_posterior(scores[some]), scores[some].argmax(axis=1))
    again = by_downdating(estimator, table, moments, doubtful)
    found.fill(doubtful, every, again.log_posterior, again.decided)
    return found


def gaussian_left_out_scores(
    moments: ClassMoments,
    table: Table,
    *,
    family: GaussianFamily,
    prior: Callable[[ClassMoments], Floats],
) -> Floats | None:
    """(N, K) scores of each row by a member of the family fitted to all others, NaN as above.

    `prior` says what priors a fit to given moments has.
    """
    _check_rows(moments, table, family)
    scores = closed_form(LeaveOneOutTerms.of(moments, table, family), family)
    if scores is None:
        return None
    scores = scores + np.log(_priors(prior, moments, table))
    return np.where(np.isfinite(scores).all(axis=1, keepdims=True), scores, np.nan)


def closed_form(without: LeaveOneOutTerms, family: GaussianFamily) -> Floats | None:
    """(N, K) scores without priors; a row of NaN where left out it matters too much.

    None where this member of the family has no closed form, or the covariance no inverse.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        if not family.linear:
            return _quadratic(without, family) if family.shrinkage == 0.0 else None
        if family.shrinkage == 0.0:
            return _whitened(without)
        if isinstance(family.shrinkage, str):
            return None
        if family.target == "diagonal":
            return _diagonal(without) if family.shrinkage == 1.0 else None
        return _rounded(without, family, family.shrinkage)


def by_downdating(estimator: Any, table: Table, moments: Any, rows: Iterable[Any]) -> Predictions:
    """What is said of each of the rows by the rule of the moments less that row."""
    logs, codes = [], []
    for i in rows:
        alone = table.take(np.array([i]))
        rule = fit_rule_without(estimator, _less(moments, alone, table, int(i)), table, i)
        log, code = estimator.predict_with_rule(rule, alone.features)
        logs.append(log)
        codes.append(code)
    return Predictions(np.concatenate(logs), np.concatenate(codes))


def _less(moments: Any, alone: Table, table: Table, i: int) -> Any:
    """Moments without one row; where too few digits would be left, the other rows are read."""
    if alone.weight is not None and not alone.weight[0]:
        return moments
    gone = read_classes(alone, moments.detail, anchor=moments.anchor)
    if moments.detail == "rows":
        return moments - gone
    try:
        return moments.remove(gone, digits=_DIGITS)
    except PrecisionLostError:
        others = table.take(np.delete(np.arange(len(table)), i))
        return read_classes(others, moments.detail, anchor=moments.anchor)


def _with_prior(estimator: Any, moments: Any) -> Any:
    """The estimator with the priors of all rows given."""
    if "prior" not in estimator.get_params(deep=False):
        allowed = f"'refit': {type(estimator).__name__} has no option for its priors"
        raise OptionError.of("prior", "fixed", allowed)
    return clone(estimator).set_params(prior=estimator.prior_from(moments))


def _check_rows(moments: ClassMoments, table: Table, family: GaussianFamily) -> None:
    """Every class with a covariance of its own must keep one when a row of it is left out."""
    if family.linear or family.weighting == "friedman":
        return
    heaviest = np.zeros(len(moments.labels))
    np.maximum.at(heaviest, table.codes, 1.0 if table.weight is None else table.weight)
    least = moments.weight - heaviest - (0.0 if family.denominator == "ml" else 1.0)
    short = (moments.rows < 3) | ((least <= 0) & (family.denominator != "reliability"))
    for k in np.flatnonzero(short):
        raise TooFewRowsError.of_class(
            moments.labels[k],
            int(moments.rows[k]),
            3,
            "a covariance of its own with one row left out",
        )


def _priors(prior: Callable[[ClassMoments], Floats], moments: ClassMoments, table: Table) -> Floats:
    """(N, K) priors without each row: they depend only on its class and weight."""
    amounts, amount = np.ones(1), np.zeros(len(table), dtype=np.intp)
    if table.weight is not None:
        amounts, amount = np.unique(table.weight, return_inverse=True)
    pairs, which = np.unique(
        table.codes.astype(np.intp) * len(amounts) + amount, return_inverse=True
    )
    found = []
    for k, w in zip(*np.divmod(pairs, len(amounts)), strict=True):
        weight = moments.weight.copy()
        weight[k] -= amounts[w]
        found.append(prior(replace(moments, weight=weight)))
    return np.array(found)[which]


# --- one covariance for all classes: e and r are the same for every class -------------------------


def _whitened(without: LeaveOneOutTerms) -> Floats | None:
    """LDA: in a basis that whitens the pooled covariance of all rows."""
    moments = without.moments
    degrees = float(moments.weight.sum())  # any will do: it cancels
    metric = _clean_metric(moments, moments.pooled / degrees)
    if metric is None:
        return None
    scale = (degrees / without.total)[:, None]
    return _linear(without, metric.basis, scale, without.loss / without.total)


def _diagonal(without: LeaveOneOutTerms) -> Floats:
    """Diagonal LDA: every feature by itself."""
    moments = without.moments
    variance = moments.pooled if moments.pooled.ndim == 1 else np.diagonal(moments.pooled)
    z = without.offsets - moments.mean[without.codes]
    left = variance - without.loss[:, None] * z**2
    left[left < _LEFT * variance] = np.nan
    noise = _noise(moments)
    left[:, variance <= noise * moments.weight.sum()] = np.nan
    return _linear(without, None, left / without.total[:, None], np.zeros(len(z)))


def _rounded(without: LeaveOneOutTerms, family: GaussianFamily, amount: float) -> Floats | None:
    """LDA shrunk toward a multiple of the identity: the eigenvectors stay."""
    moments = without.moments
    if not moments.anchor.plain:
        return None
    pooled, d = moments.pooled, len(moments.features)
    total, loss = without.total[:, None], without.loss[:, None]
    z = without.offsets - moments.mean[without.codes]
    trace = float(pooled.sum() if pooled.ndim == 1 else np.trace(pooled))
    floor = (trace - loss * (z**2).sum(axis=1, keepdims=True)) / total / d
    if (floor < _LEFT * trace / total / d).any():
        return None
    if family.target == "identity":
        floor = np.ones_like(floor)
    if amount == 1.0:
        return _linear(without, None, floor, np.zeros(len(z)))
    values, vectors = eigh(pooled)
    scale = (1 - amount) * np.maximum(values, 0.0) / total + amount * floor
    return _linear(without, vectors, scale, (1 - amount) * without.loss / without.total)


def _linear(without: LeaveOneOutTerms, basis: Floats | None, scale: Floats, drop: Floats) -> Floats:
    """(N, K) minus half the distances in diag(scale) - drop y y', basis None for the features."""
    mean = without.moments.mean if basis is None else without.moments.mean @ basis
    rows = without.offsets if basis is None else without.offsets @ basis
    gone = rows - mean[without.codes]
    inner = gone / scale
    left = _enough(1.0 - drop * _dot(gone, inner))
    scores = np.empty((len(rows), len(mean)))
    for k, centre in enumerate(mean):
        v = rows - centre
        crossed = drop * _dot(v, inner) ** 2 / left
        scores[:, k] = _dot(v, v / scale) + crossed
    own = (np.arange(len(rows)), without.codes)
    scores[own] *= without.stretch**2
    scores *= -0.5
    return scores


# --- a covariance for each class ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class JointBasis:
    """A basis in which the scatter of a class and the pooled scatter are both diagonal."""

    basis: Floats  # (d, d)
    own: Floats  # (d,) L, the scatter of the class
    shared: float  # the pooled scatter, a multiple of the identity
    logdet: float  # what the basis takes from the log determinant, less what all classes share


def _quadratic(without: LeaveOneOutTerms, family: GaussianFamily) -> Floats | None:
    """QDA, and RDA without shrinkage."""
    moments = without.moments
    whole = class_degrees(moments, family.denominator)
    pairs = _pairs(moments, family)
    if pairs is None:
        return None
    scores = np.empty((len(without.codes), len(pairs)))
    for k, pair in enumerate(pairs):
        mean = moments.mean @ pair.basis
        for own in (True, False):
            rows = np.flatnonzero((without.codes == k) == own)
            z = without.offsets[rows] @ pair.basis
            gone = z - mean[without.codes[rows]]
            v = gone * without.stretch[rows, None] if own else z - mean[k]
            degrees = without.degrees[rows] if own else whole[k : k + 1]
            a, b = _coefficients(family, degrees, without.total[rows])
            drop = without.loss[rows] * (a + b if own else b)
            scale = _once(a)[:, None] * pair.own + _once(b)[:, None] * pair.shared
            scores[rows, k] = -0.5 * (pair.logdet + _downdated(v, gone, scale, drop))
    return scores


def _coefficients(family: GaussianFamily, degrees: Floats, total: Floats) -> tuple[Floats, Floats]:
    """a and b: the covariance is a times the class's scatter plus b times the pooled one."""
    pooling = family.pooling
    if family.weighting == "friedman":
        below = (1 - pooling) * degrees + pooling * total
        return (1 - pooling) / below, pooling / below
    return (1 - pooling) / degrees + 0.0 * total, pooling / total


def _downdated(v: Floats, gone: Floats, scale: Floats, drop: Floats) -> Floats:
    """(n,) squared distance plus log determinant in diag(scale) - drop gone gone'."""
    inner = gone / scale
    left = _enough(1.0 - drop * _dot(gone, inner))
    distance = _dot(v, v / scale) + drop * _dot(v, inner) ** 2 / left
    return np.asarray(distance + np.log(scale).sum(axis=1) + np.log(left))


def _pairs(moments: ClassMoments, family: GaussianFamily) -> list[JointBasis] | None:
    degrees = class_degrees(moments, "ml")[:, None, None]
    if family.pooling == 0.0:
        metrics = [_clean_metric(moments, covariance) for covariance in moments.scatter / degrees]
        return (
            [
                JointBasis(m.basis, np.full(m.basis.shape[1], n), 0.0, m.logdet)
                for m, n in zip(metrics, moments.weight, strict=True)
                if m is not None
            ]
            if all(m is not None for m in metrics)
            else None
        )
    pooled = moments.pooled
    if _clean_metric(moments, pooled / moments.weight.sum()) is None:
        return None
    sd = np.sqrt(np.diagonal(pooled))
    square = sd[:, None] * sd
    found = []
    for scatter in moments.scatter:
        values, vectors = eigh(scatter / square, pooled / square)
        found.append(JointBasis(vectors / sd[:, None], np.maximum(values, 0.0), 1.0, 0.0))
    return found


# --- small parts ---------------------------------------------------------------------------------


def _clean_metric(moments: ClassMoments, covariance: Floats) -> Metric | None:
    """The metric of a covariance of full rank and in good condition, else None."""
    if (np.diagonal(covariance) <= _noise(moments)).any():
        return None
    metric, lost = factorise(covariance)
    return None if lost is not None else metric


def _noise(moments: ClassMoments) -> Floats:
    """(d,) variances this small are rounding of the means, as in `models.support`."""
    return 4 * rounding_variance(moments.mean)  # twice as far: a row less moves the means


def _enough(left: Floats) -> Floats:
    """What is left of a covariance along a row, NaN where it is too little."""
    return np.where(left < _LEFT, np.nan, left)


def _once(values: Floats) -> Floats:
    """The values, or one of them if all are the same: logs of it are then taken once."""
    return values[:1] if len(values) and (values == values[0]).all() else values


def _dot(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.einsum("ni,ni->n", a, b))


_ROWS = 4096  # looked at at a time


def least_squares_left_out_scores(
    rule: IndicatorRule, moments: ClassMoments, table: Table, *, ridge: float
) -> Floats | None:
    """(N, K) log memberships of each row by the fit to all others, NaN where it matters too much.

    None where codes depend on how many rows a class has, or where moments leave too few digits.
    """
    if rule.coding == "fisher" or rule.basis is not None:
        return None
    codes = class_codes(class_prior(moments, None), rule.coding)
    problem = class_problem(moments, codes=codes, ridge=ridge)
    if problem.solver.digits < SAME:
        return None
    least = 10.0 ** (SAME - problem.solver.digits)  # 1 - h, which divides, takes digits away
    found = []
    for block in table.blocks(_ROWS):
        apart = (moments.anchor.offsets(block.features) - problem.mean)[:, problem.varying]
        half = problem.solver.solve_transposed(apart.T)
        weight = np.ones(len(block)) if block.weight is None else block.weight
        leverage = weight * (1.0 / problem.weight + np.einsum("ri,ri->i", half, half))
        rest = np.where(1.0 - leverage > least, 1.0 - leverage, np.nan)[:, None]
        fitted = (rule.fitted(block.features) - leverage[:, None] * codes[block.codes]) / rest
        found.append(rule.log_memberships(fitted))
    return np.concatenate(found)
