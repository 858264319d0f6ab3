"""Classes by least squares: regression on codes of the classes, from class moments.

    C = sum of weight_k (mean_k - mean) code_k'        the scatter of features with codes

    indicator  code_k = e_k         fitted values sum to one (ESL 4.2)
    sign       code_k = 2 e_k - 1   the same decisions
    fisher     N/N_1 and -N/N_2     two classes: W is Fisher's direction, the cut at the mean of all

A row goes to the class of the largest fitted value. A class may be masked by others, in one of two
senses: on the training rows, none of which has its fitted value as the largest; or everywhere, so
that no point x of the whole feature space does (`masked_everywhere`). The second implies the first.

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
from scipy.linalg import svd
from scipy.optimize import linprog

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
_RANK = 1e-8  # of the largest: a smaller slope, or level, is rounding
_ROUNDING = 1e-12  # of codes, which are of order one
_REGION = 1e-9  # least margin of a region, in coordinates in which slopes are of order one
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


def masked_everywhere(slope: Floats, level: Floats) -> npt.NDArray[np.bool_]:
    """(K,) classes that have the largest fitted value, alone, at no point of the feature space.

    Class k has a region if some x has f_k(x) > f_j(x) for all j. On the cone of (x, s), s >= 0,
    that is a scale-free linear programme:

        max t  over  (w_k - w_j)'x + (c_k - c_j) s >= t,   |x| <= 1,  0 <= s <= 1,   t > 0

    An affine map of the features changes nothing, so that the slopes are replaced by an orthonormal
    basis of what they span over the classes, and the levels by what these do not span. Slopes of
    rank K - 1, which is all they can have, bring the fitted values into any order: then every class
    has a region, though it may be a wedge far from all rows. So only where features, or directions
    in which the class means differ, are fewer than K - 1, can a class be masked everywhere.

    Parameters
    ----------
    slope
        (K, d) slopes of the fitted values in columns of standard deviation one.
    level
        (K,) fitted values at the mean of the rows.

    Examples
    --------
    >>> slope, level = np.array([[-1.0], [0.0], [1.0]]), np.array([0.0, -0.1, 0.0])
    >>> masked_everywhere(slope, level).tolist(), masked_everywhere(slope, -level).tolist()
    ([False, True, False], [False, False, False])
    """
    K = len(slope)
    basis, size, _ = svd(slope - slope.mean(axis=0), full_matrices=False, check_finite=False)
    basis = basis[:, size > max(_RANK * size.max(initial=0.0), _ROUNDING)]
    if basis.shape[1] == K - 1:
        return np.zeros(K, dtype=np.bool_)
    centred = level - level.mean()
    rest = centred - basis @ (basis.T @ centred)
    length = float(np.linalg.norm(rest))
    spanned = length <= max(_RANK * float(np.linalg.norm(centred)), _ROUNDING)
    points = np.column_stack([basis, np.zeros(K) if spanned else rest / length])
    return np.array([_margin(points, k) <= _REGION for k in range(K)])


def _margin(points: Floats, k: int) -> float:
    """Largest t of the programme of class k; the last column of the points belongs to s."""
    apart = np.delete(points[k] - points, k, axis=0)
    width = apart.shape[1]
    answer = linprog(
        np.append(np.zeros(width), -1.0),
        A_ub=np.hstack([-apart, np.ones((len(apart), 1))]),
        b_ub=np.zeros(len(apart)),
        bounds=[*[(-1.0, 1.0)] * (width - 1), (0.0, 1.0), (0.0, None)],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert answer.x is not None  # zero is feasible, and the box bounds t
    return float((apart @ answer.x[:-1]).min())
