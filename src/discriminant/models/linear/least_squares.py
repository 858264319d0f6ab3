"""Least squares from sums: linear regression, and classification by regression on class codes.

    minimise  sum of weight |v - b - u'W|^2  +  ridge |W|^2        u, v offsets of x and y

    S W = C,   b = mean(v) - mean(u)'W        S = scatter of u (+ ridge), C = scatter of u with v

S comes as a root, S = root'root, C = root'target: from moments by Cholesky, which has half the
digits; from a `ScatterFactor` as it is; from wide rows as the centred rows themselves. The penalty
is on the sum of squares, and the intercept is free: `ridge` is the alpha of scikit-learn's Ridge.

`RootSolver` solves root w = target in the least-squares sense, whatever the rank. With the columns
of the root scaled to length one, root / scale = U s V':

    rank       singular values above a tolerance relative to the largest
    w          V s^-1 U' target / scale                if the rank is full
    w          the shortest w in the user's units      if not: w = Q T'^-1 s^-1 U' target,
                                                       where (scale V) = Q T spans the rows

Standardised columns determine the rank, so units never do; the norm that is minimised is that of
the coefficients as the user reads them. A well-conditioned triangle is solved directly.

Classification regresses codes of the classes on the features, from class moments:

    C = sum of weight_k (mean_k - mean) code_k'        the scatter of features with codes

    indicator  code_k = e_k         fitted values sum to one (ESL 4.2)
    sign       code_k = 2 e_k - 1   the same decisions
    fisher     N/N_1 and -N/N_2     two classes: W is Fisher's direction, the cut at the mean of all

The largest fitted value decides. A class may be masked by others: on the training rows, none of
which has its fitted value as the largest; or everywhere, so that no point x of the feature space
does (`masked_everywhere`). The second implies the first.

Fitted values estimate posteriors, E(indicator | x), but not within [0, 1]. As memberships, negative
values are set to zero and the rest divided by their sum: the order of the classes is preserved,
nothing else is claimed. (A softmax would treat shares as logs.) Fisher's coding weights both
classes equally, so its memberships are under equal priors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.linalg import cholesky, eigh, lapack, qr, solve_triangular, svd
from scipy.optimize import linprog

from discriminant.errors import CollinearWarning, ConstantColumnWarning, OptionError, warn
from discriminant.models.expressions import Expression, basis_expression
from discriminant.models.gaussian.covariance import thin_svd
from discriminant.models.rules import LinearRule
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.stored_rows import ClassRows
from discriminant.moments.loss import ResidualSums, add_pairs, exact_product
from discriminant.moments.qr_factor import ScatterFactor, triangular_factor
from discriminant.table.basis import ExpandedFeatures, JoinedBasis, PolynomialBasis
from discriminant.table.blocks import Features, Floats, Labels

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class RootSolver:
    """The pseudo-inverse of a root, in factors."""

    scale: Floats  # (d,) lengths of the columns
    rank: int
    digits: float  # expected in the coefficients
    weakest: Floats  # (d, k) directions of no or least length, in standardised columns
    upper: Floats | None  # (d, d) the root itself, where it is a good triangle
    left: Floats  # (r, k) U
    gain: Floats  # (k,) 1 / s
    right: Floats  # (d, k) V / scale
    lift: Floats  # (d, k) from coordinates to coefficients

    @classmethod
    def from_root(
        cls, root: Floats, *, unit: Floats, squared: bool = False, ridge: float = 0.0
    ) -> RootSolver:
        """Solver of a root (r, d); `squared` if it comes from sums of squares.

        A `ridge` is for roots too wide to have it built in.
        """
        scale = np.linalg.norm(root, axis=0)
        if ridge:
            return _ridged(root, scale, unit, ridge)
        standard = root / scale
        reciprocal = _reciprocal(standard)
        if reciprocal > (1e-5 if squared else 1e-9):
            none = np.zeros((len(scale), 0))
            empty = np.zeros((len(root), 0))
            digits = 16.0 + (2 if squared else 1) * float(np.log10(reciprocal))
            row = np.zeros(0)
            return cls(scale, len(scale), digits, none, root, empty, row, none, none)
        return _by_svd(standard, scale, unit, squared)

    @property
    def width(self) -> int:
        """Columns."""
        return len(self.scale)

    def solve(self, target: Floats) -> Floats:
        """(d, m) w with root w = target."""
        if self.upper is not None and self.width:
            return np.asarray(solve_triangular(self.upper, target))
        return np.asarray(self.lift @ (self.gain[:, None] * (self.left.T @ target)))

    def solve_transposed(self, pull: Floats) -> Floats:
        """(r, m) t with root' t = pull."""
        if self.upper is not None and self.width:
            return np.asarray(solve_triangular(self.upper, pull, trans="T"))
        return np.asarray(self.left @ (self.gain[:, None] * (self.right.T @ pull)))

    def collinear(self) -> npt.NDArray[np.bool_]:
        """(d,) columns that take part in a direction of (almost) no length."""
        part = np.abs(self.weakest).max(axis=1, initial=0.0)
        return np.asarray(part > 1e-3 * part.max(initial=0.0))


def _reciprocal(standard: Floats) -> float:
    """One over the condition number of a triangle; zero if it is none."""
    r, d = standard.shape
    if d == 0:
        return 1.0
    if r != d or np.tril(standard, -1).any() or not np.diagonal(standard).all():
        return 0.0
    found, _ = lapack.dtrcon(standard, norm="1", uplo="U")
    return float(found)


def _by_svd(standard: Floats, scale: Floats, unit: Floats, squared: bool) -> RootSolver:
    left, values, right = thin_svd(standard, driver="gesvd")
    d = len(scale)
    tolerance = 8 * max(standard.shape) * _EPS
    kept = values > values[0] * (np.sqrt(tolerance) if squared else tolerance)
    rank = int(kept.sum())
    least = values[-1] / values[0] if rank == d else _EPS
    digits = 16.0 + (2 if squared and rank == d else 1) * float(np.log10(max(least, _EPS)))
    weakest = _null(right[:rank]) if rank < d else right[-1:].T
    left, values, right = left[:, :rank], values[:rank], right[:rank].T
    lift = _shortest(right, scale * unit, unit) if rank < d else right / scale[:, None]
    return RootSolver(
        scale, rank, max(digits, 0.0), weakest, None, left, 1 / values, right / scale[:, None], lift
    )


def _shortest(right: Floats, size: Floats, unit: Floats) -> Floats:
    """Coordinates to the shortest coefficients; in standardised columns if sizes are too uneven."""
    basis, upper = qr(right * (size / size.max())[:, None], mode="economic")
    found: Floats = np.full(right.shape, np.nan)
    if upper.diagonal().all():
        with np.errstate(all="ignore"):
            found = solve_triangular(upper, basis.T).T * (unit / size.max())[:, None]
    return np.asarray(found if np.isfinite(found).all() else right * (unit / size)[:, None])


def _null(rows: Floats) -> Floats:
    """(d, 1) how much each column lacks in the rows' space: what it can be changed by, unseen."""
    inside = np.einsum("kd,kd->d", rows, rows)
    return np.asarray(np.sqrt(np.maximum(1.0 - inside, 0.0))[:, None])


def _ridged(root: Floats, scale: Floats, unit: Floats, ridge: float) -> RootSolver:
    """V s / (s^2 + ridge) U' in the user's units."""
    left, values, right = thin_svd(root * unit, driver="gesvd")
    kept = values > 0
    left, values, right = left[:, kept], values[kept], right[kept].T
    below = values**2 + ridge
    condition = float(np.sqrt(below.max(initial=ridge) / ridge))
    digits = 16.0 - float(np.log10(condition))
    none = np.zeros((len(scale), 0))
    lift = right * unit[:, None]
    return RootSolver(scale, len(scale), digits, none, None, left, values / below, lift, lift)


_DOUBTFUL = 6.0  # fewer digits than this are told


@dataclass(frozen=True, slots=True, eq=False)
class LeastSquaresProblem:
    """What is to be solved for d features and m responses."""

    features: tuple[str, ...]  # d names
    anchor: Anchor  # of features, then responses
    weight: float  # sum of weights; zero where there is no intercept
    mean: Floats  # (d,) of the features, zero where there is no intercept
    mean_response: Floats  # (m,) mean of the responses, the same
    penalty: Floats  # (d,) ridge, in units of the anchor
    varying: npt.NDArray[np.bool_]  # (d,) columns that are not constant; the others get zero
    target: Floats  # (r, m)
    solver: RootSolver  # of the (r, moving) root

    def solve(self) -> LinearFit:
        """The fit."""
        coef = self._spread(self.solver.solve(self.target))
        return LinearFit(coef, self.mean_response - self.mean @ coef)

    def correct(self, line: LinearFit, pull: ResidualSums) -> tuple[LinearFit, float]:
        """A fit corrected by the pull it leaves, and how much that changed it, relatively."""
        total, slope = pull.sums[0], pull.sums[1:]
        centred = slope - self.mean[:, None] * total - self.penalty[:, None] * line.coef
        change = self._spread(
            self.solver.solve(self.solver.solve_transposed(centred[self.varying]))
        )
        shift = (total / self.weight if self.weight else 0.0 * total) - self.mean @ change
        size = self.solver.scale[:, None]
        large = np.abs(size * line.coef[self.varying]).max(initial=0.0)
        small = np.abs(size * change[self.varying]).max(initial=0.0)
        coef, rest = add_pairs((line.coef, np.zeros_like(change)), (change, np.zeros_like(change)))
        moved = LinearFit(coef, line.intercept + shift, rest)
        return moved, float(small / large) if large else 0.0

    def warn(self) -> None:
        """Tell of constant columns, of missing rank and of few digits."""
        names = np.array(self.features, dtype=object)
        if not self.varying.all():
            still = names[~self.varying].tolist()
            warn(ConstantColumnWarning.of_columns(still, "response"))
        found = self.solver
        if found.digits < _DOUBTFUL or found.rank < found.width:
            warning = CollinearWarning.of_columns(
                [str(name) for name in names[self.varying][found.collinear()]],
                rank=found.rank,
                features=found.width,
                condition=10.0 ** (16.0 - found.digits),
                remedy="ridge",
            )
            warn(warning)

    def _spread(self, coef: Floats) -> Floats:
        wide = np.zeros((len(self.varying), coef.shape[1]))
        wide[self.varying] = coef
        return wide


@dataclass(frozen=True, slots=True, eq=False)
class LinearFit:
    """A linear fit of offsets: v = u'coef + intercept."""

    coef: Floats  # (d, m)
    intercept: Floats  # (m,)
    rest: Floats | None = None  # (d, m) what a correction had beyond the last digit of coef

    def rule(self, problem: LeastSquaresProblem, labels: Labels) -> LinearRule:
        """The fit as a rule about the mean of the rows."""
        d = len(self.coef)
        u, v = _split(problem.anchor, d)
        anchor, moved = u.shift(problem.mean)
        coef = self.coef * v.unit
        intercept = (self.intercept + moved @ self.coef) * v.unit + v.origin
        return LinearRule(labels, anchor, coef.T, intercept)

    def slopes(self, anchor: Anchor) -> tuple[Floats, Floats]:
        """(m, d) slopes and (m,) intercepts in the user's numbers.

        The intercept at x = 0 may be far from all rows, so its terms are summed exactly.
        """
        u, v = _split(anchor, len(self.coef))
        slope = (self.coef * v.unit).T / u.unit
        high, low = exact_product(-slope, u.origin)
        if self.rest is not None:
            low = low - (self.rest * v.unit).T / u.unit * u.origin
        terms = np.hstack([(self.intercept * v.unit)[:, None], v.origin[:, None], high, low])
        return slope, np.array([fsum(row) for row in terms])


def problem_from_moments(
    moments: ClassMoments, *, responses: int, ridge: float = 0.0, intercept: bool = True
) -> LeastSquaresProblem:
    """Problem of moments over d features and then the responses.

    Examples
    --------
    >>> from discriminant.engines.dispatch import moments
    >>> found = moments([[0.0, 1.0], [1.0, 3.0], [2.0, 5.0]], [0, 0, 0], detail="pooled")
    >>> problem = problem_from_moments(found, responses=1)  # y = 1 + 2 x
    >>> slope, at_zero = problem.solve().slopes(problem.anchor)
    >>> slope.round(12).tolist(), at_zero.round(12).tolist()
    ([[2.0]], [1.0])
    """
    if not intercept:
        moments = moments.at(Anchor(np.zeros(len(moments.features)), moments.anchor.unit))
    weight = float(moments.weight.sum())
    scatter = moments.pooled + moments.spread_of_means()
    centre = moments.centre
    if not intercept:
        scatter = scatter + weight * centre[:, None] * centre
        weight, centre = 0.0, np.zeros_like(centre)
    d = len(moments.features) - responses
    return problem_from_scatter(
        moments.features[:d],
        moments.anchor,
        weight,
        (centre[:d], centre[d:]),
        scatter[:d, :d],
        scatter[:d, d:],
        ridge,
    )


def problem_from_factor(
    factor: ScatterFactor, *, responses: int, ridge: float = 0.0, intercept: bool = True
) -> LeastSquaresProblem:
    """Problem of a triangular factor over d features and then the responses."""
    d = len(factor.columns) - responses
    weight, mean = factor.weight, factor.mean
    root = factor.centred if intercept else factor.uncentred
    if not intercept:
        weight, mean = 0.0, np.zeros_like(mean)
        factor = factor.at(Anchor(mean, factor.anchor.unit))
    unit = factor.anchor.unit[:d]
    penalty = _penalty(ridge, unit)
    moving = _moving(np.linalg.norm(root[:, :d], axis=0), mean[:d], factor.weight)
    if ridge:
        root = triangular_factor(
            np.vstack([root, np.hstack([np.diag(np.sqrt(penalty)), np.zeros((d, responses))])])
        )
    if not moving.all():
        root = triangular_factor(root[:, np.append(moving, np.ones(responses, dtype=bool))])
    width = int(moving.sum())
    solver = RootSolver.from_root(root[:width, :width], unit=unit[moving])
    return LeastSquaresProblem(
        factor.columns[:d],
        factor.anchor,
        weight,
        mean[:d],
        mean[d:],
        penalty,
        moving,
        root[:width, width:],
        solver,
    )


def problem_from_rows(
    features: tuple[str, ...],
    anchor: Anchor,
    offsets: tuple[Floats, Floats],
    *,
    weight: Floats | None = None,
    ridge: float = 0.0,
    intercept: bool = True,
) -> LeastSquaresProblem:
    """Problem of wide rows, (n, d) features and (n, m) responses as offsets, with n < d.

    No d x d matrix is made: the rows, centred, are the root.
    """
    u, v = offsets
    heavy = np.ones(len(u)) if weight is None else weight
    total = float(heavy.sum()) if intercept else 0.0
    mean = heavy @ u / total if intercept else np.zeros(u.shape[1])
    level = heavy @ v / total if intercept else np.zeros(v.shape[1])
    root = np.sqrt(heavy)[:, None] * (u - mean)
    moving = _moving(np.linalg.norm(root, axis=0), mean, float(heavy.sum()))
    unit = anchor.unit[: u.shape[1]]
    solver = RootSolver.from_root(root[:, moving], unit=unit[moving], ridge=ridge)
    target = np.sqrt(heavy)[:, None] * (v - level)
    penalty = _penalty(ridge, unit)
    return LeastSquaresProblem(
        features, anchor, total, mean, level, penalty, moving, target, solver
    )


def problem_from_scatter(
    features: tuple[str, ...],
    anchor: Anchor,
    weight: float,
    means: tuple[Floats, Floats],
    scatter: Floats,
    cross: Floats,
    ridge: float,
) -> LeastSquaresProblem:
    """Problem of a scatter (d, d) of features and (d, m) of features with responses."""
    unit = anchor.unit[: len(features)]
    penalty = _penalty(ridge, unit)
    moving = _moving(np.sqrt(np.maximum(np.diagonal(scatter), 0.0)), means[0], weight)
    kept = scatter[np.ix_(moving, moving)] + np.diag(penalty[moving])
    root, target = _root(kept, cross[moving])
    solver = RootSolver.from_root(root, unit=unit[moving], squared=True)
    return LeastSquaresProblem(features, anchor, weight, *means, penalty, moving, target, solver)


def _penalty(ridge: float, unit: Floats) -> Floats:
    """(d,) what the ridge is for offsets; as good as infinite where the unit is tiny."""
    with np.errstate(over="ignore"):
        return np.minimum(ridge / unit / unit, 1e300)


def _moving(size: Floats, mean: Floats, weight: float) -> npt.NDArray[np.bool_]:
    """Columns whose length about the mean is more than the rounding of the mean."""
    return np.asarray(size > 16 * _EPS * np.sqrt(weight) * np.abs(mean))


def _root(scatter: Floats, cross: Floats) -> tuple[Floats, Floats]:
    """root'root = scatter and root'target = cross, by Cholesky or, failing that, eigenvalues."""
    sd = np.sqrt(np.diagonal(scatter))
    standard, cross = scatter / sd[:, None] / sd, cross / sd[:, None]
    try:
        upper = cholesky(standard)
    except np.linalg.LinAlgError:
        values, vectors = eigh(standard)
        root = np.sqrt(np.maximum(values, 0.0))
        along = vectors.T @ cross
        target = np.divide(along, root[:, None], out=np.zeros_like(along), where=root[:, None] > 0)
        return root[:, None] * vectors.T * sd, target
    return upper * sd, solve_triangular(upper, cross, trans="T")


def _split(anchor: Anchor, d: int) -> tuple[Anchor, Anchor]:
    places = np.arange(len(anchor.origin))
    return anchor.select(places[:d]), anchor.select(places[d:])


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
        return self.log_memberships(self.finite_fitted(features))

    def expression(self, x: Expression, names: Sequence[str]) -> Expression:
        """(K,) fitted values, which order the classes as `scores` do, as an expression."""
        columns = x if self.basis is None else basis_expression(x, JoinedBasis((self.basis,)))
        return self.line.expression(columns, names)

    def membership_expression(self, fitted: Expression) -> Expression:
        """(K,) memberships, non-negative with sum one, as an expression of the fitted values."""
        if self.coding == "fisher":
            shares: Expression = fitted * (self.weight[::-1] / self.weight.sum()) + 1.0
        else:
            shares = fitted if self.coding == "indicator" else (fitted + 1.0) * 0.5
        positive = shares.larger(0.0).with_name("share", fitted.components)
        return positive / positive.sum().with_name("shares")

    def finite_fitted(self, features: Features) -> Floats:
        """(n, K) fitted values, rows that overflow divided by a power of two: the largest stays."""
        return self.line.finite_values(self._columns(features))

    def _columns(self, features: Features) -> Features:
        return features if self.basis is None else ExpandedFeatures(features, self.basis)

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
) -> LeastSquaresProblem:
    """Problem in which every row responds with the code (K, m) of its class."""
    anchor = anchor_with_codes(moments.anchor, codes.shape[1])
    if isinstance(moments, ClassRows):
        rows = moments.offsets, codes[moments.codes]
        return problem_from_rows(
            moments.features, anchor, rows, weight=moments.weights, ridge=ridge
        )
    weight, centre = float(moments.weight.sum()), moments.centre
    level = moments.weight / weight @ codes
    apart = moments.weight[:, None] * (moments.mean - centre)
    scatter = moments.pooled + moments.spread_of_means()
    cross = apart.T @ (codes - level)
    return problem_from_scatter(
        moments.features, anchor, weight, (centre, level), scatter, cross, ridge
    )


def factor_problem(
    factor: ScatterFactor, *, codes: Floats, ridge: float = 0.0, present: npt.NDArray[np.bool_]
) -> LeastSquaresProblem:
    """The same problem of the factor of features and then the indicators of all classes.

    Codes (K, m) are for the classes `present`, of which there are K.
    """
    d = len(factor.columns) - len(present)
    root = np.hstack([factor.root[:, : 1 + d], factor.root[:, 1 + d :][:, present] @ codes])
    m = codes.shape[1]
    names = (*factor.columns[:d], *(f"code {j}" for j in range(m)))
    anchor = anchor_with_codes(factor.anchor.select(np.arange(d)), m)
    coded = ScatterFactor(names, anchor, factor.rows, root)
    return problem_from_factor(coded, responses=m, ridge=ridge)


def class_rule(problem: LeastSquaresProblem, line: LinearFit, labels: Labels) -> LinearRule:
    """A fitted value for each class; a single response, as in Fisher's coding, speaks for both."""
    rule = line.rule(problem, labels)
    if len(rule.intercept) == len(labels):
        return rule
    coef = np.vstack([rule.coef, -rule.coef])
    return LinearRule(labels, rule.anchor, coef, np.append(rule.intercept, -rule.intercept))


def anchor_with_codes(anchor: Anchor, responses: int) -> Anchor:
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
