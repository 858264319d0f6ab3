"""Rules: fitted models that score the classes of a row.

    LinearRule     score_k(u) = u . w_k + b_k
    QuadraticRule  score_k(u) = log prior_k - (logdet_k + distance_k(u)^2) / 2  [- d/2 log 2 pi]
    MeanRule       mean of the posteriors of T linear rules, computed by one product

with u = (x - origin) / unit. Scores are logs up to a term common to all classes; `posterior` turns
them into log posteriors.

If the scores of a row overflow float64, its offsets are scaled by a power of two and its scores are
returned relative to the largest, on which alone posteriors depend. A score that is lower by more
than 1.8e308 is -inf. No finite row has NaN for a score.

T rules of K classes have T K rows of slopes, all about one origin near the rows; for two classes T
rows are enough, the second score minus the first:

    f_t(u) = u . w_t + b_t        P(2|x) = mean_t 1 / (1 + exp(-f_t)),  P(1|x) = mean_t of the other

Both sides are computed separately, so that neither loses digits where it is small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from discriminant.models.expressions import Expression, offset_expression, stack
from discriminant.models.gaussian.covariance import Metric, non_finite_reason
from discriminant.moments.anchor import Anchor, Powers
from discriminant.table.blocks import Features, Floats, Labels, is_sparse

_LARGEST = 1000  # scores are bounded by 2^1000, so that sums of them are finite
_ROWS = 4096  # rows scored at a time, so that a block stays in the cache
_FEW = 8  # up to this many rows, all classes are scored by one product
_STACKED = 1 << 20  # largest stack of bases stored for that


class Rule(Protocol):
    """A fitted model."""

    @property
    def labels(self) -> Labels:
        """(K,) classes, in the order of the scores."""
        ...

    def scores(self, features: Features) -> Floats:
        """(n, K) score of each class for rows (n, d)."""
        ...

    def expression(self, x: Expression, names: Sequence[str]) -> Expression:
        """(K,) scores as an expression of the features of one row; `names` of the classes."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class LinearRule:
    """K linear scores, or for two classes one: the second score minus the first."""

    labels: Labels  # (K,)
    anchor: Anchor
    coef: Floats  # (K, d) for offsets, or (1, d)
    intercept: Floats  # (K,), or (1,)

    def scores(self, features: Features) -> Floats:
        """(n, K) score of each class."""
        scores = self._lines(features)
        for rows in overflow_rows(scores):
            scaled, power = self._scaled(features[rows])
            one = len(self.intercept) == 1
            scores[rows] = (scale_by_power if one else relative_to_largest)(scaled, power)
        return scores

    def values(self, features: Features) -> Floats:
        """(n, m) linear predictors; infinite on overflow."""
        values = self._lines(features)
        for rows in overflow_rows(values):
            values[rows] = scale_by_power(*self._scaled(features[rows]))
        return values

    def finite_values(self, features: Features) -> Floats:
        """(n, m) linear predictors; rows that overflow are divided by a power of two."""
        values = self._lines(features)
        for rows in overflow_rows(values):
            scaled, power = self._scaled(features[rows])
            largest = np.frexp(scaled)[1].max(axis=1)
            values[rows] = scale_by_power(scaled, np.minimum(power, _LARGEST - largest))
        return values

    def _scaled(self, features: Features) -> tuple[Floats, Powers]:
        """(n, m) lines divided by 2^power (n,)."""
        offsets, power = self.anchor.scaled_offsets(features)
        return offsets @ self.coef.T + np.ldexp(self.intercept, -power[:, None]), power

    @np.errstate(over="ignore", invalid="ignore")
    def _lines(self, features: Features) -> Floats:
        """(n, m) coef . u + intercept."""
        if is_sparse(features) and not self.anchor.origin.any():
            return self._sparse_scores(features)
        rows, above = features.shape[0], self.intercept[:, None]
        if rows <= _ROWS:
            return np.asarray((self.coef @ self.anchor.offsets(features[:]).T + above).T)
        values = np.empty((len(above), rows))  # the scores of a class are contiguous
        for lo, hi in _spans(rows):
            np.matmul(self.coef, self.anchor.offsets(features[lo:hi]).T, out=values[:, lo:hi])
        values += above
        return values.T

    def _sparse_scores(self, features: Features) -> Floats:
        """Scores of sparse rows, without making them dense."""
        rows = features
        if not self.anchor.plain:
            rows = features.astype(np.float64)
            rows.data /= self.anchor.unit[rows.indices]
        return np.asarray(rows @ self.coef.T + self.intercept)

    def expression(
        self, x: Expression, names: Sequence[str] = (), *, name: str = "score"
    ) -> Expression:
        """(m,) linear predictors as an expression of the features of one row."""
        scores = offset_expression(x, self.anchor).affine(self.coef, self.intercept)
        return scores.with_name(name, names if scores.width > 1 else ())

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return why these fields cannot form a linear rule, or None."""
        coef, d = parts["coef"], len(parts["anchor"].origin)
        (K,) = parts["labels"].shape
        if coef.ndim != 2 or coef.shape[0] not in (K, 1) or coef.shape[1] != d:
            return f"coef {coef.shape} must be {K} classes by {d} features"
        if parts["intercept"].shape != coef.shape[:1]:
            return f"intercept {parts['intercept'].shape} must have one number per row of coef"
        return non_finite_reason("coef", coef)

    def slopes(self) -> tuple[Floats, Floats]:
        """(K, d) slopes and (K,) intercepts for x itself, in the user's units."""
        slope = self.coef / self.anchor.unit
        return slope, self.intercept - slope @ self.anchor.origin


@dataclass(frozen=True, slots=True, eq=False)
class QuadraticRule:
    """K Gaussian classes, each with its own metric."""

    labels: Labels  # (K,)
    anchor: Anchor
    mean: Floats  # (K, d) offsets
    metrics: tuple[Metric, ...]  # K
    log_prior: Floats  # (K,)
    constant: Floats = field(init=False)  # (K,) log prior - logdet / 2
    stack: Floats | None = field(init=False)  # (K, d, r) all bases, so that one row is quick

    def __post_init__(self) -> None:
        logdet = np.array([metric.logdet for metric in self.metrics])
        object.__setattr__(self, "constant", self.log_prior - 0.5 * logdet)
        object.__setattr__(self, "stack", _stacked(self.metrics))

    def scores(self, features: Features) -> Floats:
        """(n, K) score of each class."""
        scores = self._distances(features)
        scores *= -0.5
        scores += self.constant
        for rows in overflow_rows(scores):
            scaled, power = self._scaled(features[rows])
            scores[rows] = relative_to_largest(-0.5 * scaled, 2 * power) + self.constant
        return scores

    def expression(self, x: Expression, names: Sequence[str]) -> Expression:
        """(K,) scores as an expression of the features of one row."""
        scores = self.distance_expression(x, names) * -0.5 + self.constant
        return scores.with_name("score", names)

    def distance_expression(self, x: Expression, names: Sequence[str]) -> Expression:
        """(K,) squared distances from the class means, as an expression."""
        u = offset_expression(x, self.anchor)
        each = zip(self.mean, self.metrics, names, strict=True)
        return stack([metric.expression(u - mean, u, name) for mean, metric, name in each])

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return why these fields cannot form a quadratic rule, or None."""
        mean, metrics, d = parts["mean"], parts["metrics"], len(parts["anchor"].origin)
        (K,) = parts["labels"].shape
        if mean.shape != (K, d) or parts["log_prior"].shape != (K,) or len(metrics) != K:
            return f"mean, log_prior and metrics must be of {K} classes and {d} features"
        if any(metric.basis.shape[0] != d for metric in metrics):
            return f"the metrics must be of {d} features"
        return non_finite_reason("mean", mean)

    def distances(self, features: Features) -> Floats:
        """(n, K) squared Mahalanobis distance from each class mean, infinite beyond float64."""
        distances = self._distances(features)
        for rows in overflow_rows(distances):
            scaled, power = self._scaled(features[rows])
            distances[rows] = scale_by_power(scaled, 2 * power)
        return distances

    def _scaled(self, features: Features) -> tuple[Floats, Powers]:
        """(n, K) squared distances divided by 4^power (n,)."""
        offsets, power = self.anchor.scaled_offsets(features)
        each = [
            metric.squared_distances(offsets - np.ldexp(mean, -power[:, None]))
            for mean, metric in zip(self.mean, self.metrics, strict=True)
        ]
        return np.column_stack(each), power

    @np.errstate(over="ignore", invalid="ignore")
    def _distances(self, features: Features) -> Floats:
        rows = features.shape[0]
        if rows <= _FEW and self.stack is not None:
            apart = self.anchor.offsets(features[:]) - self.mean[:, None]
            along = np.matmul(apart, self.stack)
            return np.asarray(np.vecdot(along, along).T)
        distances = np.empty((len(self.metrics), rows))  # the distances from a class are contiguous
        for lo, hi in _spans(rows):
            offsets = np.ascontiguousarray(self.anchor.offsets(features[lo:hi]).T)  # (d, n)
            for k, metric in enumerate(self.metrics):
                metric.write_squared_distances(
                    offsets - self.mean[k][:, None], out=distances[k, lo:hi]
                )
        return distances.T


def overflow_rows(scores: Floats) -> Iterator[npt.NDArray[np.intp]]:
    """Yield the indices of the rows of (n, K) whose scores are not all finite, if any."""
    finite = np.isfinite(scores)
    if not finite.all():
        yield np.flatnonzero(~finite.all(axis=1))


@np.errstate(over="ignore", invalid="ignore")
def scale_by_power(scaled: Floats, power: Powers) -> Floats:
    """(n, K) numbers times 2^power (n,); infinite beyond float64."""
    return np.asarray(np.ldexp(scaled, power[:, None]))


@np.errstate(over="ignore", invalid="ignore")
def relative_to_largest(scaled: Floats, power: Powers) -> Floats:
    """(n, K) scores minus the largest of their row, from scores divided by 2^power (n,)."""
    return scale_by_power(scaled - scaled.max(axis=1, keepdims=True), power)


def _stacked(metrics: tuple[Metric, ...]) -> Floats | None:
    """(K, d, r) bases times root gains, if all have one shape and fit in little memory."""
    shape = metrics[0].basis.shape
    alike = all(metric.basis.shape == shape and not metric.rest for metric in metrics)
    if not alike or len(metrics) * shape[0] * shape[1] > _STACKED:
        return None
    return np.stack([metric.basis * np.sqrt(metric.gain) for metric in metrics])


def _spans(rows: int) -> Iterator[tuple[int, int]]:
    for lo in range(0, rows, _ROWS):
        yield lo, min(lo + _ROWS, rows)


@dataclass(frozen=True, slots=True, eq=False)
class MeanRule:
    """T linear rules of the same K classes."""

    labels: Labels  # (K,)
    line: LinearRule  # (T, d) of two classes, else (T K, d): the classes of a rule side by side

    @classmethod
    def average(cls, rules: Sequence[LinearRule]) -> MeanRule:
        """Stack rules, all relative to the origin and in the units of the first."""
        anchor, labels = rules[0].anchor, rules[0].labels
        parts = [_counted_from(rule, anchor) for rule in rules]
        coef = np.concatenate([part for part, _ in parts])
        intercept = np.concatenate([part for _, part in parts])
        return cls(labels, LinearRule(np.arange(len(coef)), anchor, coef, intercept))

    def posterior(self, features: Features) -> Floats:
        """(n, K) mean posteriors; NaN where a score is NaN."""
        scores = self.line.finite_values(features)
        posterior = _two(scores) if len(self.labels) == 2 else _many(scores, len(self.labels))
        posterior[np.isnan(scores).any(axis=1)] = np.nan
        return posterior


def _counted_from(rule: LinearRule, anchor: Anchor) -> tuple[Floats, Floats]:
    """Slopes and intercepts about another origin; for two classes second minus first."""
    coef = rule.coef * (anchor.unit / rule.anchor.unit)
    intercept = rule.intercept - coef @ ((rule.anchor.origin - anchor.origin) / anchor.unit)
    if len(coef) == len(rule.labels) == 2:
        return coef[1:] - coef[:1], intercept[1:] - intercept[:1]
    return coef, intercept


def _two(scores: Floats) -> Floats:
    """(n, 2) mean posteriors from log odds (n, T); one rule at a time fits in the cache."""
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


def _many(scores: Floats, classes: int) -> Floats:
    """(n, K) mean posteriors from scores (n, T K)."""
    each = scores.reshape(len(scores), -1, classes)
    powers = np.exp(each - each.max(axis=2, keepdims=True))
    powers /= powers.sum(axis=2, keepdims=True)
    return np.asarray(powers.mean(axis=1))
