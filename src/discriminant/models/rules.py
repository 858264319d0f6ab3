"""Rules: fitted models that score the classes of a row.

    LinearRule     score_k(u) = u . w_k + b_k
    QuadraticRule  score_k(u) = log prior_k - (logdet_k + distance_k(u)^2) / 2  [- d/2 log 2 pi]
    MeanRule       mean of the posteriors of T linear rules, computed by one product

with u = (x - origin) / unit, the offsets of a row x from an anchor. A score is the log posterior of
a class up to a term common to all classes; `posterior` normalises scores to log posteriors.

If the scores of a row overflow float64, they are computed from offsets divided by a power of two,
and returned minus the largest score of the row, which leaves the posteriors unchanged. If a score
is more than 1.8e308 below the largest score, it is -inf. No score of a finite row is NaN.

A `MeanRule` of T rules and K classes stores T K rows of slopes, all relative to one origin near the
data. For two classes it stores only T rows, each the second score minus the first:

    f_t(u) = u . w_t + b_t        P(2|x) = mean_t 1 / (1 + exp(-f_t))
                                  P(1|x) = mean_t 1 / (1 + exp(f_t))

The posteriors of both classes are computed separately, so that neither loses digits if it is small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from discriminant.models.expressions import Expression, offset_expression, stack
from discriminant.models.gaussian.covariance import Metric, non_finite_message
from discriminant.moments.anchor import Anchor, Powers
from discriminant.table.blocks import Features, Floats, Labels, is_sparse

_LARGEST = 1000  # scores are bounded by 2^1000, so that sums of them are finite
_EPS = float(np.finfo(np.float64).eps)
_NEGLIGIBLE = 1e-13  # tolerated error of log posteriors (relative error of posteriors)
_UNDERFLOW = 1e-290  # sums of products smaller than this lose digits
_ROWS = 4096  # rows scored at a time, so that a block stays in the cache
_FEW = 8  # up to this many rows, all classes are scored by one product
_STACKED = 1 << 20  # largest number of values in the bases that are stored for this product


class Rule(Protocol):
    """A fitted model that scores K classes."""

    @property
    def labels(self) -> Labels:
        """(K,) labels of the classes, in the order of the scores."""
        ...

    def scores(self, features: Features) -> Floats:
        """Return the (n, K) scores of the classes for the rows `features` (n, d)."""
        ...

    def expression(self, x: Expression, names: Sequence[str]) -> Expression:
        """Return the (K,) scores as an expression of the features of one row.

        `names` are the names of the classes.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class LinearRule:
    """Rule with m linear predictors of the offsets of a row.

    The predictors are the scores of K classes. Two classes may have a single predictor, which is
    the second score minus the first.
    """

    labels: Labels  # (K,)
    anchor: Anchor
    coef: Floats  # (m, d) slopes for offsets; m is K, or 1 for two classes
    intercept: Floats  # (m,)

    def scores(self, features: Features) -> Floats:
        """Return the (n, m) scores; if a row overflows, they are relative to its largest score."""
        scores = self._predictors(features)
        for rows in overflow_rows(scores):
            scaled, power = self._scaled(features[rows])
            single = len(self.intercept) == 1
            scores[rows] = (scale_by_power if single else relative_to_largest)(scaled, power)
        return scores

    def values(self, features: Features) -> Floats:
        """Return the (n, m) linear predictors, which are infinite where they exceed float64."""
        values = self._predictors(features)
        for rows in overflow_rows(values):
            values[rows] = scale_by_power(*self._scaled(features[rows]))
        return values

    def contrast(self) -> LinearRule:
        """Return the rule of two classes with one predictor, the second score minus the first."""
        if len(self.intercept) == 1:
            return self
        coef, intercept = np.diff(self.coef, axis=0), np.diff(self.intercept)
        return LinearRule(self.labels, self.anchor, coef, intercept)

    def for_values(self) -> LinearRule:
        """Return a rule for values instead of offsets, or this rule if the other is less accurate.

        The predictor w'x + (b - w'origin) takes no subtraction. Compared with w'(x - origin) + b,
        its rounding error is larger by at most 2 (d + 1) eps sum_j |origin_j w_j|, which is
        negligible if the origin is near zero.
        """
        origin = self.anchor.origin
        excess = 2 * (len(origin) + 1) * _EPS * (np.abs(self.coef) @ np.abs(origin))
        if self.anchor.idle or not self.anchor.plain or not (excess <= _NEGLIGIBLE).all():
            return self
        intercept = self.intercept - self.coef @ origin
        return LinearRule(self.labels, Anchor.zero(len(origin)), self.coef, intercept)

    def finite_values(self, features: Features) -> Floats:
        """Return the (n, m) linear predictors, all finite.

        If a predictor of a row overflows, all predictors of this row are divided by the same power
        of two.
        """
        values = self._predictors(features)
        for rows in overflow_rows(values):
            scaled, power = self._scaled(features[rows])
            largest = np.frexp(scaled)[1].max(axis=1)
            values[rows] = scale_by_power(scaled, np.minimum(power, _LARGEST - largest))
        return values

    def _scaled(self, features: Features) -> tuple[Floats, Powers]:
        """Return the (n, m) linear predictors, divided by 2^power, and the (n,) powers."""
        offsets, power = self.anchor.scaled_offsets(features)
        return offsets @ self.coef.T + np.ldexp(self.intercept, -power[:, None]), power

    @np.errstate(over="ignore", invalid="ignore")
    def _predictors(self, features: Features) -> Floats:
        """Return the (n, m) linear predictors u'coef + intercept, which may overflow."""
        if is_sparse(features) and not self.anchor.origin.any():
            return self._sparse_predictors(features)
        rows, intercept = features.shape[0], self.intercept[:, None]
        if rows <= 2 * _ROWS:
            values = self.coef @ self._offsets(features[:]).T
            values += intercept
            return np.asarray(values.T)
        values = np.empty((len(intercept), rows))  # the scores of a class are contiguous
        for lo, hi in _spans(rows):
            np.matmul(self.coef, self._offsets(features[lo:hi]).T, out=values[:, lo:hi])
        values += intercept
        return values.T

    def _offsets(self, rows: Features) -> Floats:
        """Return the offsets of the rows; if they equal the rows, the rows are returned."""
        if self.anchor.idle and isinstance(rows, np.ndarray) and rows.dtype == np.float64:
            return rows
        return self.anchor.offsets(rows)

    def _sparse_predictors(self, features: Features) -> Floats:
        """Return the linear predictors of sparse rows without making them dense."""
        rows = features
        if not self.anchor.plain:
            rows = features.astype(np.float64)
            rows.data /= self.anchor.unit[rows.indices]
        return np.asarray(rows @ self.coef.T + self.intercept)

    def expression(
        self, x: Expression, names: Sequence[str] = (), *, name: str = "score"
    ) -> Expression:
        """Return the (m,) linear predictors as an expression of the features of one row."""
        scores = offset_expression(x, self.anchor).affine(self.coef, self.intercept)
        return scores.with_name(name, names if scores.width > 1 else ())

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the fields of a rule are invalid, or None if they are valid."""
        coef, d = parts["coef"], len(parts["anchor"].origin)
        (K,) = parts["labels"].shape
        if coef.ndim != 2 or coef.shape[0] not in (K, 1) or coef.shape[1] != d:
            return f"coef {coef.shape} must be {K} classes by {d} features"
        if parts["intercept"].shape != coef.shape[:1]:
            return f"intercept {parts['intercept'].shape} must have one number per row of coef"
        return non_finite_message("coef", coef)

    def slopes(self) -> tuple[Floats, Floats]:
        """Return the (m, d) slopes and (m,) intercepts for the features x instead of offsets."""
        slope = self.coef / self.anchor.unit
        return slope, self.intercept - slope @ self.anchor.origin


@dataclass(frozen=True, slots=True, eq=False)
class CertainCodes:
    """Predictions of two classes by a fast formula, limited to those that rounding cannot change.

    For a linear rule, the second score minus the first is

        f(x) = (x - origin) . w + b = x . w + c,      c = b - origin . w

    The right-hand side is faster to compute, but loses digits if the origin is far from zero. With
    eps the machine precision, all rounding errors of both sides are together less than

        4 (d + 4) eps [(|x| + |origin|) (|w_1| + |w_2| + |w|) + |b_1| + |b_2|]

    A code is certain if |f(x)| exceeds this bound. |x| is at most the root of the sum of squares of
    all numbers of a block, which takes one product.
    """

    slope: Floats  # (d,) w
    constant: float  # c
    growth: float  # error bound for each unit of |x|
    least: float  # error bound for x = 0

    @classmethod
    def of(cls, rule: LinearRule) -> CertainCodes | None:
        """Create from a rule of two classes; return None if a feature has a unit other than one."""
        if not rule.anchor.plain:
            return None
        origin, contrast = rule.anchor.origin, rule.contrast()
        slope, intercept = contrast.coef[0], float(contrast.intercept[0])
        length = float(np.linalg.norm(slope) + np.linalg.norm(rule.coef, axis=1).sum())
        growth = 4 * (len(slope) + 4) * _EPS * length
        error = 4 * (len(slope) + 4) * _EPS * float(np.abs(rule.intercept).sum() + abs(intercept))
        least = growth * float(np.linalg.norm(origin)) + error + _UNDERFLOW
        return cls(slope, intercept - float(slope @ origin), growth, least)

    def predict(
        self, rows: Floats, exact: Callable[[Floats], npt.NDArray[np.signedinteger[Any]]]
    ) -> npt.NDArray[np.int8] | None:
        """Return the (n,) codes of a C-contiguous block of rows (n, d).

        Codes that are not certain are computed by `exact`. Return None if many codes are not
        certain, or if numbers of the block are very small, very large or not finite.
        """
        flat = rows.reshape(-1)
        squares = float(np.dot(flat, flat))
        if not _UNDERFLOW < squares < 1.0 / _UNDERFLOW:
            return None
        values = np.dot(rows, self.slope)
        values += self.constant
        codes: npt.NDArray[np.int8] = (values > 0.0).view(np.int8)
        bound = self.least + self.growth * float(np.sqrt(squares))
        np.abs(values, out=values)
        if values.min() > bound:
            return codes
        doubtful = np.flatnonzero(~(values > bound))
        if len(doubtful) > len(rows) // 8:
            return None
        codes[doubtful] = exact(rows[doubtful])
        return codes


@dataclass(frozen=True, slots=True, eq=False)
class QuadraticRule:
    """Rule of K Gaussian classes, each with its own metric (factorised covariance)."""

    labels: Labels  # (K,)
    anchor: Anchor
    mean: Floats  # (K, d) offsets of the class means
    metrics: tuple[Metric, ...]  # K
    log_prior: Floats  # (K,)
    constant: Floats = field(init=False)  # (K,) log prior - logdet / 2
    stack: Floats | None = field(init=False)  # (K, d, r) bases of all metrics, to score few rows

    def __post_init__(self) -> None:
        logdet = np.array([metric.logdet for metric in self.metrics])
        object.__setattr__(self, "constant", self.log_prior - 0.5 * logdet)
        object.__setattr__(self, "stack", _stack_bases(self.metrics))

    def scores(self, features: Features) -> Floats:
        """Return the (n, K) scores of the classes."""
        scores = self._distances(features)
        scores *= -0.5
        scores += self.constant
        for rows in overflow_rows(scores):
            scaled, power = self._scaled(features[rows])
            scores[rows] = relative_to_largest(-0.5 * scaled, 2 * power) + self.constant
        return scores

    def expression(self, x: Expression, names: Sequence[str]) -> Expression:
        """Return the (K,) scores as an expression of the features of one row."""
        scores = self.distance_expression(x, names) * -0.5 + self.constant
        return scores.with_name("score", names)

    def distance_expression(self, x: Expression, names: Sequence[str]) -> Expression:
        """Return the (K,) squared distances of one row from the class means, as an expression."""
        u = offset_expression(x, self.anchor)
        classes = zip(self.mean, self.metrics, names, strict=True)
        return stack([metric.expression(u - mean, u, name) for mean, metric, name in classes])

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the fields of a rule are invalid, or None if they are valid."""
        mean, metrics, d = parts["mean"], parts["metrics"], len(parts["anchor"].origin)
        (K,) = parts["labels"].shape
        if mean.shape != (K, d) or parts["log_prior"].shape != (K,) or len(metrics) != K:
            return f"mean, log_prior and metrics must be of {K} classes and {d} features"
        if any(metric.basis.shape[0] != d for metric in metrics):
            return f"the metrics must be of {d} features"
        return non_finite_message("mean", mean)

    def distances(self, features: Features) -> Floats:
        """Return the (n, K) squared Mahalanobis distances from the class means.

        A distance beyond the range of float64 is infinite.
        """
        distances = self._distances(features)
        for rows in overflow_rows(distances):
            scaled, power = self._scaled(features[rows])
            distances[rows] = scale_by_power(scaled, 2 * power)
        return distances

    def _scaled(self, features: Features) -> tuple[Floats, Powers]:
        """Return the (n, K) squared distances, divided by 4^power, and the (n,) powers."""
        offsets, power = self.anchor.scaled_offsets(features)
        distances = [
            metric.squared_distances(offsets - np.ldexp(mean, -power[:, None]))
            for mean, metric in zip(self.mean, self.metrics, strict=True)
        ]
        return np.column_stack(distances), power

    @np.errstate(over="ignore", invalid="ignore")
    def _distances(self, features: Features) -> Floats:
        rows = features.shape[0]
        if rows <= _FEW and self.stack is not None:
            offsets = self.anchor.offsets(features[:]) - self.mean[:, None]
            white = np.matmul(offsets, self.stack)
            return np.asarray(np.vecdot(white, white).T)
        distances = np.empty((len(self.metrics), rows))  # the distances from a class are contiguous
        for lo, hi in _spans(rows):
            offsets = np.ascontiguousarray(self.anchor.offsets(features[lo:hi]).T)  # (d, n)
            for k, metric in enumerate(self.metrics):
                metric.write_squared_distances(
                    offsets - self.mean[k][:, None], out=distances[k, lo:hi]
                )
        return distances.T


def overflow_rows(scores: Floats) -> Iterator[npt.NDArray[np.intp]]:
    """Yield the indices of all rows with a score that is not finite.

    The indices are yielded as one array; nothing is yielded if all scores (n, K) are finite.
    """
    finite = np.isfinite(scores)
    if not finite.all():
        yield np.flatnonzero(~finite.all(axis=1))


@np.errstate(over="ignore", invalid="ignore")
def scale_by_power(scaled: Floats, power: Powers) -> Floats:
    """Return the (n, K) values times 2^power, with `power` (n,); overflow gives infinity."""
    return np.asarray(np.ldexp(scaled, power[:, None]))


@np.errstate(over="ignore", invalid="ignore")
def relative_to_largest(scaled: Floats, power: Powers) -> Floats:
    """Return the (n, K) scores minus the largest score of each row.

    `scaled` holds the scores divided by 2^power, with `power` (n,).
    """
    return scale_by_power(scaled - scaled.max(axis=1, keepdims=True), power)


def _stack_bases(metrics: tuple[Metric, ...]) -> Floats | None:
    """Return the (K, d, r) bases of the metrics, multiplied by the square roots of the gains.

    Return None if the shapes differ, or if the array would be large.
    """
    shape = metrics[0].basis.shape
    stackable = all(metric.basis.shape == shape and not metric.rest for metric in metrics)
    if not stackable or len(metrics) * shape[0] * shape[1] > _STACKED:
        return None
    return np.stack([metric.basis * np.sqrt(metric.gain) for metric in metrics])


def _spans(rows: int) -> Iterator[tuple[int, int]]:
    for lo in range(0, rows, _ROWS):
        yield lo, min(lo + _ROWS, rows)


@dataclass(frozen=True, slots=True, eq=False)
class MeanRule:
    """Rule whose posterior is the mean over T linear rules of the same K classes."""

    labels: Labels  # (K,)
    line: LinearRule  # T predictors for two classes, else T K with the classes of a rule adjacent

    @classmethod
    def average(cls, rules: Sequence[LinearRule]) -> MeanRule:
        """Create from rules, converting all to the origin and the units of the first rule."""
        anchor, labels = rules[0].anchor, rules[0].labels
        coefs, intercepts = zip(*(_move_origin(rule, anchor) for rule in rules), strict=True)
        coef, intercept = np.concatenate(coefs), np.concatenate(intercepts)
        return cls(labels, LinearRule(np.arange(len(coef)), anchor, coef, intercept))

    def posterior(self, features: Features) -> Floats:
        """Return the (n, K) mean posteriors. A row with a score of NaN has posteriors of NaN."""
        scores = self.line.finite_values(features)
        K = len(self.labels)
        posterior = _binary_means(scores) if K == 2 else _multiclass_means(scores, K)
        posterior[np.isnan(scores).any(axis=1)] = np.nan
        return posterior


def _move_origin(rule: LinearRule, anchor: Anchor) -> tuple[Floats, Floats]:
    """Return the slopes and intercepts of a rule for offsets from another anchor.

    If two classes have a score each, return the slopes and the intercept of the second minus the
    first.
    """
    coef = rule.coef * (anchor.unit / rule.anchor.unit)
    intercept = rule.intercept - coef @ ((rule.anchor.origin - anchor.origin) / anchor.unit)
    if len(coef) == len(rule.labels) == 2:
        return coef[1:] - coef[:1], intercept[1:] - intercept[:1]
    return coef, intercept


def _binary_means(scores: Floats) -> Floats:
    """Return the (n, 2) mean posteriors, given the log odds (n, T) of T rules."""
    total = np.zeros((2, len(scores)))
    for odds in scores.T:
        small = np.exp(-np.abs(odds))
        large = 1.0 / (1.0 + small)
        small *= large
        second = odds > 0
        total[0] += np.where(second, small, large)
        total[1] += np.where(second, large, small)
    total /= scores.shape[1]
    return total.T


def _multiclass_means(scores: Floats, classes: int) -> Floats:
    """Return the (n, K) mean posteriors, given the scores (n, T K) of T rules."""
    scores = scores.reshape(len(scores), -1, classes)
    posteriors = np.exp(scores - scores.max(axis=2, keepdims=True))
    posteriors /= posteriors.sum(axis=2, keepdims=True)
    return np.asarray(posteriors.mean(axis=1))
