"""Classes by least squares: regression on codes of the classes, from class moments.

    C = sum of weight_k (mean_k - mean) code_k'        the scatter of features with codes

    indicator  code_k = e_k         fitted values sum to one (ESL 4.2)
    sign       code_k = 2 e_k - 1   the same decisions
    fisher     N/N_1 and -N/N_2     two classes: W is Fisher's direction, the cut at the mean of all

A row goes to the class of the largest fitted value. A class whose fitted value is nowhere the
largest is masked: three classes in a line are enough for that.

Fitted values estimate posteriors, E(indicator | x), but not within [0, 1]. As memberships, what is
negative is set to zero and the rest divided by its sum: the order of the classes stays, nothing
else is claimed. (A softmax would take numbers that are shares for logs.) Fisher's coding counts
both classes alike, so its memberships are under equal priors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from discriminant.errors import OptionError
from discriminant.models.least_squares import (
    Line,
    Problem,
    from_factor,
    from_rows,
    from_scatter,
)
from discriminant.models.rules import LinearRule
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.class_rows import ClassRows
from discriminant.moments.factor import ScatterFactor
from discriminant.table.basis import Expanded, PolynomialBasis
from discriminant.table.schema import Features, Floats, Labels

Coding = Literal["indicator", "sign", "fisher"]
CODINGS: tuple[Coding, ...] = ("indicator", "sign", "fisher")
SAME = 11.0  # digits of a fit from moments that make it the same however these were added up


@dataclass(frozen=True, slots=True, eq=False)
class IndicatorRule:
    """Fitted values of K classes, and the memberships they stand for."""

    line: LinearRule  # K fitted values; of the basis, if there is one
    weight: Floats  # (K,) of the classes
    coding: Coding
    basis: PolynomialBasis | None = None

    @property
    def labels(self) -> Labels:
        """(K,) classes."""
        return self.line.labels

    def fitted(self, features: Features) -> Floats:
        """(n, K) fitted values, in the numbers of the coding."""
        return self.line.values(self._columns(features))

    def scores(self, features: Features) -> Floats:
        """(n, K) logs of the memberships, -inf where the fitted value is not positive."""
        return self.log_memberships(self.bounded(features))

    def bounded(self, features: Features) -> Floats:
        """(n, K) fitted values, rows that overflow divided by a power of two: the largest stays."""
        return self.line.bounded(self._columns(features))

    def _columns(self, features: Features) -> Features:
        return features if self.basis is None else Expanded(features, self.basis)

    def log_memberships(self, fitted: Floats) -> Floats:
        """(n, K) logs of what fitted values stand for; NaN stays NaN."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(self.memberships(fitted)))

    def memberships(self, fitted: Floats) -> Floats:
        """(n, K) none negative, of sum one; the class that is largest stays the largest."""
        if self.coding == "fisher":
            shares = 1.0 + fitted * (self.weight[::-1] / self.weight.sum())
        else:
            shares = fitted if self.coding == "indicator" else 0.5 * (fitted + 1.0)
        kept = np.maximum(shares, 0.0)
        kept /= kept.sum(axis=1, keepdims=True)
        return _keep_first(kept, fitted.argmax(axis=1))


def _keep_first(shares: Floats, first: npt.NDArray[np.intp]) -> Floats:
    """Shares in which rounding has not made a tie that an earlier class would win."""
    rows = np.flatnonzero(shares.argmax(axis=1) != first)
    shares[rows, first[rows]] = np.nextafter(shares[rows].max(axis=1), 2.0)
    return shares


def class_codes(weight: Floats, coding: Coding) -> Floats:
    """(K, m) what each class responds with.

    >>> class_codes(np.array([1.0, 3.0]), "fisher").ravel().round(3).tolist()
    [4.0, -1.333]
    """
    K = len(weight)
    if coding == "indicator":
        return np.eye(K)
    if coding == "sign":
        return 2.0 * np.eye(K) - 1.0
    if K != 2:
        raise OptionError.of("coding", coding, f"'indicator' or 'sign': there are {K} classes")
    return np.array([[weight.sum() / weight[0]], [-weight.sum() / weight[1]]])


def class_problem(
    moments: ClassMoments | ClassRows, *, codes: Floats, ridge: float = 0.0
) -> Problem:
    """Problem in which every row responds with the code (K, m) of its class."""
    anchor = coded_anchor(moments.anchor, codes.shape[1])
    if isinstance(moments, ClassRows):
        rows = moments.offsets, codes[moments.codes]
        return from_rows(moments.features, anchor, rows, weight=moments.weights, ridge=ridge)
    weight, centre = float(moments.weight.sum()), moments.centre
    level = moments.weight / weight @ codes
    apart = moments.weight[:, None] * (moments.mean - centre)
    scatter = moments.pooled + moments.spread_of_means()
    cross = apart.T @ (codes - level)
    return from_scatter(moments.features, anchor, weight, (centre, level), scatter, cross, ridge)


def factor_problem(
    factor: ScatterFactor, *, codes: Floats, ridge: float = 0.0, present: npt.NDArray[np.bool_]
) -> Problem:
    """The same problem of the factor of features and then the indicators of all classes.

    Codes (K, m) are for the classes `present`, of which there are K.
    """
    d = len(factor.columns) - len(present)
    root = np.hstack([factor.root[:, : 1 + d], factor.root[:, 1 + d :][:, present] @ codes])
    m = codes.shape[1]
    names = (*factor.columns[:d], *(f"code {j}" for j in range(m)))
    anchor = coded_anchor(factor.anchor.select(np.arange(d)), m)
    coded = ScatterFactor(names, anchor, factor.rows, root)
    return from_factor(coded, responses=m, ridge=ridge)


def class_line(problem: Problem, line: Line, labels: Labels) -> LinearRule:
    """A fitted value for each class; a single response, as in Fisher's coding, speaks for both."""
    rule = line.rule(problem, labels)
    if len(rule.intercept) == len(labels):
        return rule
    coef = np.vstack([rule.coef, -rule.coef])
    return LinearRule(labels, rule.anchor, coef, np.append(rule.intercept, -rule.intercept))


def coded_anchor(anchor: Anchor, responses: int) -> Anchor:
    """The anchor of features, and of codes, which count from zero."""
    origin = np.append(anchor.origin, np.zeros(responses))
    return Anchor(origin, np.append(anchor.unit, np.ones(responses)))
