"""Leave-one-out predictions in closed form, without fitting N models.

Let u be a row of class k and weight w, and z its difference from the class mean. Leaving the row
out changes the sums by

    n_k' = n_k - w        u - mean_k' = z n_k / n_k'        W_k' = W_k - c z z',  c = w n_k / n_k'

and W' = W - c z z'. So, in a basis in which W_l and W are both diagonal, the covariance S of class
l without the row is a diagonal matrix minus a matrix of rank one:

    S = diag(e) - r y y'          y = z in that basis
    own class   e = a' L_k + b'   r = c (a' + b')      other class   e = a L_l + b'   r = c b'

with a = (1 - pooling) / degrees of the class and b = pooling / degrees of the pooled scatter; a'
and b' have the degrees without the row. Distances follow from the Sherman-Morrison formula,
determinants from the matrix determinant lemma:

    v' S^-1 v = v' e^-1 v + r (v' e^-1 y)^2 / left     log|S| = sum log e + log left
    left = 1 - r y' e^-1 y

Shrinkage of a pooled covariance toward (tr S / d) I or I keeps the eigenvectors of W and only
changes e; shrinkage=1 toward the diagonal has e = diag(W - c z z') / degrees and r = 0.

If a covariance is (almost) singular without the row, or the model has no closed form, the row is
scored by a rule fitted to the moments minus the row: `by_downdating`. R's MASS also has LDA and QDA
in closed form (CV=TRUE), with fixed priors.

Least squares: with h_i the leverage of row i, that is, the weight of its own response in its fitted
value,

    h_i = w_i [1 / n + (u_i - mean)' (S + ridge)^-1 (u_i - mean)]
    fitted without row i = (fitted_i - h_i code_i) / (1 - h_i)

This holds for an unpenalised intercept and any penalty that does not depend on the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import eigh
from sklearn.base import clone

from discriminant.assessment.classifier_outputs import Predictions
from discriminant.assessment.resampling.folds import fit_rule_without
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
from discriminant.models.linear.least_squares import (
    REPRODUCIBLE_DIGITS,
    IndicatorRule,
    class_codes,
    class_problem,
)
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.posterior import log_posterior
from discriminant.table.blocks import Codes, Features, Floats, Labels, dense
from discriminant.table.memory import Table

# least share of a covariance that must remain in every direction; else the row is refitted
_MIN_LEFT = 1e-6
# correct digits of the variances after a removal; with fewer, the other rows are read again
_MIN_DIGITS = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class LeaveOneOutTerms:
    """Terms of the formulas at the top of this module, for each of N rows left out."""

    moments: ClassMoments  # moments of all rows
    codes: Codes  # (N,) k, the class of the row left out
    offsets: Floats  # (N, d) z, the row minus the mean of its class
    away: Floats  # (N,) w, the weight of the row
    loss: Floats  # (N,) c, the factor of the change of scatter
    stretch: Floats  # (N,) n_k / n_k'
    degrees: Floats  # (N,) degrees of freedom of class k without the row
    total: Floats  # (N,) degrees of freedom of the pooled scatter without the row

    @classmethod
    def of(cls, moments: ClassMoments, table: Table, family: GaussianFamily) -> LeaveOneOutTerms:
        """Return the terms for all rows of a table that has these moments."""
        codes = table.codes.astype(np.intp)
        away = np.ones(len(table)) if table.weight is None else table.weight
        weight, weight2 = moments.weight[codes] - away, moments.weight2[codes] - away**2
        degrees = {
            "ml": weight,
            "unbiased": weight - 1.0,
            "reliability": weight - weight2 / weight,
        }[family.denominator]
        all_degrees = class_degrees(moments, family.denominator)
        total = pooled_degrees(moments, family.denominator) - all_degrees[codes] + degrees
        # Without positive degrees of freedom there is no covariance: NaN leads to a refit, which
        # raises.
        total = np.where(total > 0, total, np.nan)
        if family.weighting == "covariance" and not family.linear:
            degrees = np.where(degrees > 0, degrees, np.nan)
        stretch = moments.weight[codes] / weight
        offsets = moments.anchor.offsets(table.features[:])
        return cls(moments, codes, offsets, away, away * stretch, stretch, degrees, total)


def predict_left_out(estimator: Any, table: Table, *, fixed_prior: bool) -> Predictions:
    """Predict each row by the rule fitted to all other rows."""
    moments = read_classes(table, estimator.detail)
    if fixed_prior:
        estimator = _fix_prior(estimator, moments)
    scores: Floats | None = estimator.leave_one_out_scores(moments, table)
    if scores is None:
        return by_downdating(estimator, table, moments, np.arange(len(table)))
    clear = ~np.isnan(scores).any(axis=1)
    if clear.all():
        return Predictions(log_posterior(scores), scores.argmax(axis=1))
    predictions, classes = Predictions.empty(*scores.shape), np.arange(scores.shape[1])
    rows, scores = np.flatnonzero(clear), scores[clear]
    predictions.fill(rows, classes, log_posterior(scores), scores.argmax(axis=1))
    rows = np.flatnonzero(~clear)
    refitted = by_downdating(estimator, table, moments, rows)
    predictions.fill(rows, classes, refitted.log_posterior, refitted.decided)
    return predictions


def gaussian_left_out_scores(
    moments: ClassMoments,
    table: Table,
    *,
    family: GaussianFamily,
    prior: Callable[[ClassMoments], Floats],
) -> Floats | None:
    """Return the scores of each row by a Gaussian model fitted to all other rows, (N, K).

    Scores are NaN where the covariance without the row is nearly singular. The result is None if
    the model has no closed form. `prior` is a function that returns the priors of a fit to given
    moments.
    """
    _check_rows(moments, table, family)
    scores = closed_form(LeaveOneOutTerms.of(moments, table, family), family)
    if scores is None:
        return None
    scores = scores + np.log(_priors(prior, moments, table))
    return np.where(np.isfinite(scores).all(axis=1, keepdims=True), scores, np.nan)


def student_left_out_scores(
    moments: ClassMoments,
    table: Table,
    *,
    family: GaussianFamily,
    prior: Callable[[ClassMoments], Floats],
) -> Floats | None:
    """Return the scores by Student-t densities fitted to all other rows, (N, K).

    The result is None unless the family is linear and its distances have a closed form. The
    density is a function of the distance: see `models.gaussian.predictive_densities`.
    """
    if not family.linear:
        return None
    without = LeaveOneOutTerms.of(moments, table, family)
    scores = closed_form(without, family)
    if scores is None or isinstance(family.shrinkage, str):
        return None
    degrees, share = without.total, family.shrinkage
    if family.denominator == "ml":
        degrees = LeaveOneOutTerms.of(moments, table, replace(family, denominator="unbiased")).total
    own = np.arange(len(moments.labels)) == without.codes[:, None]
    weight = moments.weight - own * without.away[:, None]
    spread = 1.0 / weight
    if family.denominator == "reliability":
        spread = (moments.weight2 - own * without.away[:, None] ** 2) / weight**2
    distances, d = -2.0 * scores / (1.0 + spread), len(moments.features)
    if share == 1.0:
        scores = -0.5 * distances
    else:
        power = 0.5 * (degrees + without.total * (share / (1.0 - share)) + 1.0)
        power = np.where(2.0 * power >= d + 1.0, power, np.nan)  # too few degrees of freedom
        scores = -power[:, None] * np.log1p(distances / without.total[:, None] * (1.0 - share))
    scores = scores - 0.5 * d * np.log1p(spread) + np.log(_priors(prior, moments, table))
    return np.where(np.isfinite(scores).all(axis=1, keepdims=True), scores, np.nan)


def closed_form(without: LeaveOneOutTerms, family: GaussianFamily) -> Floats | None:
    """Return scores (N, K) that do not include priors; NaN for rows that have no closed form.

    The result is None if the model has no closed form, or the covariance is singular.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        if not family.linear:
            return _quadratic(without, family) if family.shrinkage == 0.0 else None
        metrics = _linear_metrics(without, family)
        return None if metrics is None else _linear(without, *metrics)


def by_downdating(estimator: Any, table: Table, moments: Any, rows: Iterable[Any]) -> Predictions:
    """Predict each of the given rows by a rule fitted to the moments minus that row."""
    logs, codes = [], []
    for i in rows:
        row = table.take(np.array([i]))
        rule = fit_rule_without(estimator, _remove_row(moments, row, table, int(i)), table, i)
        log, code = estimator.predict_with_rule(rule, row.features)
        logs.append(log)
        codes.append(code)
    return Predictions(np.concatenate(logs), np.concatenate(codes))


def _remove_row(moments: Any, row: Table, table: Table, i: int) -> Any:
    """Return the moments without row i.

    If subtraction would lose too many digits, the moments are computed from the other rows.
    """
    if row.weight is not None and not row.weight[0]:
        return moments
    row_moments = read_classes(row, moments.detail, anchor=moments.anchor)
    if moments.detail == "rows":
        return moments - row_moments
    try:
        return moments.remove(row_moments, digits=_MIN_DIGITS)
    except PrecisionLostError:
        others = table.take(np.delete(np.arange(len(table)), i))
        return read_classes(others, moments.detail, anchor=moments.anchor)


def _fix_prior(estimator: Any, moments: Any) -> Any:
    """Return the estimator with its priors fixed at those estimated from all rows."""
    if "prior" not in estimator.get_params(deep=False):
        allowed = f"'refit': {type(estimator).__name__} has no option for its priors"
        raise OptionError.of("prior", "fixed", allowed)
    return clone(estimator).set_params(prior=estimator.prior_from(moments))


def _check_rows(moments: ClassMoments, table: Table, family: GaussianFamily) -> None:
    """Raise an error if the covariance of a class cannot be estimated with one row left out."""
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
            "a covariance of its own after one row is left out",
        )


def _priors(prior: Callable[[ClassMoments], Floats], moments: ClassMoments, table: Table) -> Floats:
    """Return an (N, K) array: the priors of the fit without each row.

    The priors depend only on the class and the weight of the row.
    """
    weights, index = np.ones(1), np.zeros(len(table), dtype=np.intp)
    if table.weight is not None:
        weights, index = np.unique(table.weight, return_inverse=True)
    pairs, which = np.unique(
        table.codes.astype(np.intp) * len(weights) + index, return_inverse=True
    )
    priors = []
    for k, w in zip(*np.divmod(pairs, len(weights)), strict=True):
        weight = moments.weight.copy()
        weight[k] -= weights[w]
        priors.append(prior(replace(moments, weight=weight)))
    return np.array(priors)[which]


# --- one covariance for all classes: e and r are the same for every class -------------------------

Metrics = tuple[Floats | None, Floats, Floats]  # basis (d, r), e (N, 1) or (N, r), r (N,)


def _linear_metrics(without: LeaveOneOutTerms, family: GaussianFamily) -> Metrics | None:
    """Return a basis, and the covariance of the fit without each row, in this basis.

    In the basis the covariance is `diag(scale) - drop y y'`, where y is the offset of the
    removed row from its class mean. The result is None if the model has no closed form, or the
    covariance is singular.
    """
    if family.shrinkage == 0.0:
        return _whitened(without)
    if isinstance(family.shrinkage, str):
        return None
    if family.target == "diagonal":
        return _diagonal(without) if family.shrinkage == 1.0 else None
    return _shrunk_to_identity(without, family, family.shrinkage)


def _whitened(without: LeaveOneOutTerms) -> Metrics | None:
    """Return the covariances of LDA, in a basis that whitens the pooled covariance of all rows."""
    moments = without.moments
    degrees = float(moments.weight.sum())  # any value would do, since it cancels
    metric = _clean_metric(moments, moments.pooled / degrees)
    if metric is None:
        return None
    scale = (degrees / without.total)[:, None]
    return metric.basis, scale, without.loss / without.total


def _diagonal(without: LeaveOneOutTerms) -> Metrics:
    """Return the variances of diagonal LDA."""
    moments = without.moments
    variance = moments.pooled if moments.pooled.ndim == 1 else np.diagonal(moments.pooled)
    z = without.offsets - moments.mean[without.codes]
    left = variance - without.loss[:, None] * z**2
    left[left < _MIN_LEFT * variance] = np.nan
    noise = _noise(moments)
    left[:, variance <= noise * moments.weight.sum()] = np.nan
    return None, left / without.total[:, None], np.zeros(len(z))


def _shrunk_to_identity(
    without: LeaveOneOutTerms, family: GaussianFamily, amount: float
) -> Metrics | None:
    """Return the covariances of LDA shrunk toward a multiple of the identity.

    The shrunk covariance has the same eigenvectors.
    """
    moments = without.moments
    if not moments.anchor.plain:
        return None
    pooled, d = moments.pooled, len(moments.features)
    total, loss = without.total[:, None], without.loss[:, None]
    z = without.offsets - moments.mean[without.codes]
    trace = float(pooled.sum() if pooled.ndim == 1 else np.trace(pooled))
    floor = (trace - loss * (z**2).sum(axis=1, keepdims=True)) / total / d
    if (floor < _MIN_LEFT * trace / total / d).any():
        return None
    if family.target == "identity":
        floor = np.ones_like(floor)
    if amount == 1.0:
        return None, floor, np.zeros(len(z))
    values, vectors = eigh(pooled)
    scale = (1 - amount) * np.maximum(values, 0.0) / total + amount * floor
    return vectors, scale, (1 - amount) * without.loss / without.total


def _linear(without: LeaveOneOutTerms, basis: Floats | None, scale: Floats, drop: Floats) -> Floats:
    """Return -1/2 times the squared Mahalanobis distances to the class means, (N, K).

    The covariance is `diag(scale) - drop y y'`.

    If `basis` is None, the features themselves are the basis.
    """
    mean = without.moments.mean if basis is None else without.moments.mean @ basis
    rows = without.offsets if basis is None else without.offsets @ basis
    y = rows - mean[without.codes]
    inner = y / scale
    left = _nan_if_small(1.0 - drop * _dot(y, inner))
    scores = np.empty((len(rows), len(mean)))
    for k, centre in enumerate(mean):
        v = rows - centre
        crossed = drop * _dot(v, inner) ** 2 / left
        scores[:, k] = _dot(v, v / scale) + crossed
    own = (np.arange(len(rows)), without.codes)
    scores[own] *= without.stretch**2
    scores *= -0.5
    return scores


@dataclass(frozen=True, slots=True, eq=False)
class LeftOutRules:
    """N linear rules, each fitted to all rows but one, in closed form.

    With the terms of this module, and the mean of class k without the row,

        mean_k' = mean_k - (n_k / n_k' - 1) y   if the row is of class k, else mean_k
        slope_k = S^-1 mean_k'   intercept_k = log prior_k - mean_k' . slope_k / 2
    """

    labels: Labels  # (K,)
    anchor: Anchor
    basis: Floats | None  # (d, q); None: the features themselves
    origin: Floats  # (q,) point in the basis from which rows and means are measured
    slope: Floats  # (K, N, q)
    intercept: Floats  # (K, N)

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why these fields do not form rules, or None if they do."""
        K, d, basis = len(parts["labels"]), len(parts["anchor"].origin), parts["basis"]
        slope, q = parts["slope"], d if basis is None else basis.shape[1]
        if slope.ndim != 3 or slope.shape[::2] != (K, q) or not slope.shape[1]:
            return f"slope has shape {slope.shape} for {K} classes and {q} coordinates"
        if parts["intercept"].shape != slope.shape[:2] or parts["origin"].shape != (q,):
            return "intercept and origin do not fit slope"
        if basis is not None and basis.shape != (d, q):
            return f"basis has shape {basis.shape} for {d} features"
        return None

    @property
    def n_rules(self) -> int:
        """Number of rules."""
        return len(self.slope[0])

    def log_posteriors(
        self, features: Features, *, numbers: int = 1 << 16
    ) -> Iterator[tuple[slice, Floats]]:
        """Yield slices of rows with their log posteriors by each rule, (K, n, N).

        About `numbers` log posteriors are computed at a time; the next slice reuses the array.
        """
        rows = self.anchor.offsets(dense(features))
        rows = (rows if self.basis is None else rows @ self.basis) - self.origin
        rows = np.column_stack([rows, np.ones(len(rows))])
        coef = np.concatenate([self.slope, self.intercept[:, :, None]], axis=2)
        coef = np.ascontiguousarray(coef.transpose(0, 2, 1))
        size = max(numbers // (coef.shape[0] * coef.shape[2]), 1)
        for lo in range(0, len(rows), size):
            piece = slice(lo, min(lo + size, len(rows)))
            logs = rows[piece] @ coef
            _normalise(logs)
            yield piece, logs


def _normalise(logs: Floats) -> None:
    """Subtract from scores (K, n, N) the log of the sum of their exponentials over classes."""
    largest = logs.max(axis=0)
    logs -= largest
    total = np.exp(logs[0], out=largest)
    each = np.empty_like(total)
    for score in logs[1:]:
        total += np.exp(score, out=each)
    logs -= np.log(total, out=total)


@dataclass(frozen=True, slots=True, eq=False)
class LeftOutQuadraticRules:
    """N quadratic rules with a covariance for each class, each fitted to all rows but one.

    Without row i, only the density of its own class k changes. In a basis that whitens class k,
    with v = x - mean_k, y = row i - mean_k, s = stretch, e and r as in this module and q = y' y,
    the distance of x from class k by rule i needs one product of x and y, P = v' y:

        mean_k' = mean_k - (s - 1) y
        distance = (v' v + 2 (s - 1) P + (s - 1)^2 q) / e  +  r (P + (s - 1) q)^2 / (e^2 left)
                 = square v' v + linear P + quadratic P^2 + constant
    """

    labels: Labels  # (K,)
    anchor: Anchor
    basis: Floats  # (K, d, d) basis that whitens each class
    centre: Floats  # (K, d) class means in the basis of the class
    scale: Floats  # (K,) factor of v' v in the rules that leave out a row of another class
    codes: Codes  # (N,) class of each row
    offset: Floats  # (N, d) y, in the basis of the class of the row
    square: Floats  # (N,)
    linear: Floats  # (N,)
    quadratic: Floats  # (N,)
    intercept: Floats  # (K, N) log prior, log determinant and constant

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why these fields do not form rules, or None if they do."""
        K, d, codes = len(parts["labels"]), len(parts["anchor"].origin), parts["codes"]
        N = len(codes)
        shapes = {
            "basis": (K, d, d),
            "centre": (K, d),
            "scale": (K,),
            "codes": (N,),
            "offset": (N, d),
            "square": (N,),
            "linear": (N,),
            "quadratic": (N,),
            "intercept": (K, N),
        }
        for name, shape in shapes.items():
            if parts[name].shape != shape:
                return f"{name} has shape {parts[name].shape}, not {shape}"
        if not N or codes.min() < 0 or codes.max() >= K:
            return f"codes must be numbers from 0 to {K - 1}"
        return None

    @property
    def n_rules(self) -> int:
        """Number of rules."""
        return len(self.codes)

    def log_posteriors(
        self, features: Features, *, numbers: int = 1 << 16
    ) -> Iterator[tuple[slice, Floats]]:
        """Yield slices of rows with their log posteriors by each rule, (K, n, N).

        About `numbers` log posteriors are computed at a time.
        """
        rows, K, N = self.anchor.offsets(dense(features)), len(self.labels), self.n_rules
        own = [np.flatnonzero(self.codes == k) for k in range(K)]
        size = max(numbers // (K * N), 1)
        for lo in range(0, len(rows), size):
            piece = slice(lo, min(lo + size, len(rows)))
            logs = np.empty((K, piece.stop - lo, N))
            for k, places in enumerate(own):
                v = rows[piece] @ self.basis[k] - self.centre[k]
                squares = _dot(v, v)[:, None]
                np.add(-0.5 * self.scale[k] * squares, self.intercept[k], out=logs[k])
                product = v @ self.offset[places].T
                distance = squares * self.square[places] + product * (
                    self.linear[places] + self.quadratic[places] * product
                )
                logs[k][:, places] = self.intercept[k, places] - 0.5 * distance
            _normalise(logs)
            yield piece, logs


def left_out_rules(
    moments: ClassMoments,
    table: Table,
    *,
    family: GaussianFamily,
    prior: Callable[[ClassMoments], Floats],
) -> LeftOutRules | LeftOutQuadraticRules | None:
    """Return the rules of a Gaussian model fitted without each row of a table.

    The result is None if the model has no closed form, or a covariance without a row is nearly
    singular. The arguments are those of `gaussian_left_out_scores`.
    """
    if not family.linear:
        return _left_out_quadratic(moments, table, family, prior)
    without = LeaveOneOutTerms.of(moments, table, family)
    with np.errstate(divide="ignore", invalid="ignore"):
        metrics = _linear_metrics(without, family)
        if metrics is None:
            return None
        basis, scale, loss = metrics
        mean = moments.mean if basis is None else moments.mean @ basis
        rows = without.offsets if basis is None else without.offsets @ basis
        origin = moments.weight @ mean / moments.weight.sum()
        y = rows - mean[without.codes]
        inner = y / scale
        drop = loss / _nan_if_small(1.0 - loss * _dot(y, inner))
        slopes, intercepts = [], []
        for k, log_prior in enumerate(np.log(_priors(prior, moments, table)).T):
            shift = np.where(without.codes == k, without.stretch - 1.0, 0.0)
            left_out = mean[k] - origin - shift[:, None] * y
            slope = left_out / scale + (drop * _dot(inner, left_out))[:, None] * inner
            slopes.append(slope)
            intercepts.append(log_prior - 0.5 * _dot(left_out, slope))
    slope, intercept = np.array(slopes), np.array(intercepts)
    if not (np.isfinite(slope).all() and np.isfinite(intercept).all()):
        return None
    return LeftOutRules(moments.labels, moments.anchor, basis, origin, slope, intercept)


def _left_out_quadratic(
    moments: ClassMoments,
    table: Table,
    family: GaussianFamily,
    prior: Callable[[ClassMoments], Floats],
) -> LeftOutQuadraticRules | None:
    """Return the rules of QDA; None for RDA and for a shrunk or structured covariance."""
    if family.pooling != 0.0 or family.shrinkage != 0.0 or family.structured:
        return None
    _check_rows(moments, table, family)
    bases = _joint_bases(moments, family)
    if bases is None:
        return None
    without = LeaveOneOutTerms.of(moments, table, family)
    codes, (N, d) = without.codes, without.offsets.shape
    all_degrees = class_degrees(moments, family.denominator)
    scale = all_degrees / moments.weight  # in its own basis, a class has the covariance I / scale
    centre = np.array([moments.mean[k] @ joint.basis for k, joint in enumerate(bases)])
    offset = np.empty((N, d))
    for k, joint in enumerate(bases):
        own = codes == k
        offset[own] = without.offsets[own] @ joint.basis - centre[k]
    with np.errstate(divide="ignore", invalid="ignore"):
        e = moments.weight[codes] / without.degrees
        r = without.loss / without.degrees
        q, shift = _dot(offset, offset), without.stretch - 1.0
        left = _nan_if_small(1.0 - r * q / e)
        drop = r / (e**2 * left)
        intercept = np.log(_priors(prior, moments, table)).T
        logdet = np.array([joint.logdet for joint in bases])
        intercept = intercept - 0.5 * (logdet - d * np.log(scale))[:, None]
        constant = shift**2 * q / e + drop * (shift * q) ** 2
        changed = constant + d * np.log(e * scale[codes]) + np.log(left)
        intercept[codes, np.arange(N)] -= 0.5 * changed
    linear, quadratic = 2.0 * shift * (1.0 / e + drop * q), drop
    rules = LeftOutQuadraticRules(
        moments.labels,
        moments.anchor,
        np.array([joint.basis for joint in bases]),
        centre,
        scale,
        codes,
        offset,
        1.0 / e,
        linear,
        quadratic,
        intercept,
    )
    finite = [rules.intercept, rules.square, rules.linear, rules.quadratic]
    return rules if all(np.isfinite(values).all() for values in finite) else None


# --- a covariance for each class ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class JointBasis:
    """Basis in which the scatter of a class and the pooled scatter are both diagonal."""

    basis: Floats  # (d, d)
    own: Floats  # (d,) L, the diagonal of the class scatter in the basis
    shared: float  # diagonal of the pooled scatter, which is a multiple of the identity
    logdet: float  # log determinant of the basis, up to a constant that all classes share


def _quadratic(without: LeaveOneOutTerms, family: GaussianFamily) -> Floats | None:
    """Return the scores of QDA, or of RDA without shrinkage."""
    moments = without.moments
    all_degrees = class_degrees(moments, family.denominator)
    bases = _joint_bases(moments, family)
    if bases is None:
        return None
    scores = np.empty((len(without.codes), len(bases)))
    for k, joint in enumerate(bases):
        mean = moments.mean @ joint.basis
        for own in (True, False):
            rows = np.flatnonzero((without.codes == k) == own)
            z = without.offsets[rows] @ joint.basis
            y = z - mean[without.codes[rows]]
            v = y * without.stretch[rows, None] if own else z - mean[k]
            degrees = without.degrees[rows] if own else all_degrees[k : k + 1]
            a, b = _coefficients(family, degrees, without.total[rows])
            drop = without.loss[rows] * (a + b if own else b)
            scale = _collapse(a)[:, None] * joint.own + _collapse(b)[:, None] * joint.shared
            scores[rows, k] = -0.5 * (joint.logdet + _downdated(v, y, scale, drop))
    return scores


def _coefficients(family: GaussianFamily, degrees: Floats, total: Floats) -> tuple[Floats, Floats]:
    """Return the factors of the class scatter and of the pooled scatter in a class covariance."""
    pooling = family.pooling
    if family.weighting == "friedman":
        below = (1 - pooling) * degrees + pooling * total
        return (1 - pooling) / below, pooling / below
    return (1 - pooling) / degrees + 0.0 * total, pooling / total


def _downdated(v: Floats, y: Floats, scale: Floats, drop: Floats) -> Floats:
    """Return v' S^-1 v + log det S for each row, with S = diag(scale) - drop y y'."""
    inner = y / scale
    left = _nan_if_small(1.0 - drop * _dot(y, inner))
    distance = _dot(v, v / scale) + drop * _dot(v, inner) ** 2 / left
    return np.asarray(distance + np.log(scale).sum(axis=1) + np.log(left))


def _joint_bases(moments: ClassMoments, family: GaussianFamily) -> list[JointBasis] | None:
    degrees = class_degrees(moments, "ml")[:, None, None]
    bases = []
    if family.pooling == 0.0:
        for covariance, n in zip(moments.scatter / degrees, moments.weight, strict=True):
            metric = _clean_metric(moments, covariance)
            if metric is None:
                return None
            own = np.full(metric.basis.shape[1], n)
            bases.append(JointBasis(metric.basis, own, 0.0, metric.logdet))
        return bases
    pooled = moments.pooled
    if _clean_metric(moments, pooled / moments.weight.sum()) is None:
        return None
    sd = np.sqrt(np.diagonal(pooled))
    square = sd[:, None] * sd
    for scatter in moments.scatter:
        values, vectors = eigh(scatter / square, pooled / square)
        bases.append(JointBasis(vectors / sd[:, None], np.maximum(values, 0.0), 1.0, 0.0))
    return bases


# --- numerical checks ----------------------------------------------------------------------------


def _clean_metric(moments: ClassMoments, covariance: Floats) -> Metric | None:
    """Return the metric of a covariance, or None if it is singular or ill-conditioned."""
    if (np.diagonal(covariance) <= _noise(moments)).any():
        return None
    metric, deficiency = factorise(covariance)
    return None if deficiency is not None else metric


def _noise(moments: ClassMoments) -> Floats:
    """Return, for each feature, the largest variance that rounding of the means can cause."""
    # the sd is doubled, since leaving a row out moves the means
    return 4 * rounding_variance(moments.mean)


def _nan_if_small(left: Floats) -> Floats:
    return np.where(left < _MIN_LEFT, np.nan, left)


def _collapse(values: Floats) -> Floats:
    """Return the values, or only the first value if all are equal, so that one log is enough."""
    return values[:1] if len(values) and (values == values[0]).all() else values


def _dot(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.einsum("ni,ni->n", a, b))


_BLOCK_ROWS = 4096


def least_squares_left_out_scores(
    rule: IndicatorRule, moments: ClassMoments, table: Table, *, ridge: float
) -> Floats | None:
    """Return the (N, K) log memberships of each row by the least-squares fit to all other rows.

    Values are NaN where the leverage of the row is too large. The result is None if the codes
    depend on the class sizes, or if the moments have too few correct digits.
    """
    if rule.coding == "fisher" or rule.basis is not None:
        return None
    codes = class_codes(class_prior(moments, None), rule.coding)
    problem = class_problem(moments, codes=codes, ridge=ridge)
    if problem.solver.digits < REPRODUCIBLE_DIGITS:
        return None
    lost = REPRODUCIBLE_DIGITS - problem.solver.digits
    least = 10.0**lost  # dividing by `1 - h` loses digits
    memberships = []
    for block in table.blocks(_BLOCK_ROWS):
        centred = (moments.anchor.offsets(block.features) - problem.mean)[:, problem.varying]
        half = problem.solver.solve_transposed(centred.T)
        weight = np.ones(len(block)) if block.weight is None else block.weight
        leverage = weight * (1.0 / problem.weight + np.einsum("ri,ri->i", half, half))
        rest = np.where(1.0 - leverage > least, 1.0 - leverage, np.nan)[:, None]
        fitted = (rule.fitted(block.features) - leverage[:, None] * codes[block.codes]) / rest
        memberships.append(rule.log_memberships(fitted))
    return np.concatenate(memberships)
