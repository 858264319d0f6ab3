"""Least squares from sums: the problem, its solution, and how the rows correct it.

    minimise  sum of weight |v - b - u'W|^2  +  ridge |W|^2        u, v offsets of x and y

    S W = C,   b = mean(v) - mean(u)'W        S = scatter of u (+ ridge), C = scatter of u with v

S comes as a root, S = root'root, C = root'target: from moments by Cholesky, which has half the
digits; from a `ScatterFactor` as it is; from wide rows as the centred rows themselves. The penalty
is on the sum of squares, and the intercept is free: `ridge` is the alpha of scikit-learn's Ridge.
How classes are told by least squares is `models.indicator`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

import numpy as np
import numpy.typing as npt
from scipy.linalg import cholesky, eigh, solve_triangular

from discriminant.errors import CollinearWarning, ConstantColumnWarning, tell
from discriminant.models.pseudo import Solver
from discriminant.models.rules import LinearRule
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.factor import ScatterFactor, triangle
from discriminant.moments.residual import Pull, added, product
from discriminant.table.schema import Floats, Labels

_EPS = float(np.finfo(np.float64).eps)
_DOUBTFUL = 6.0  # fewer digits than this are told


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What is to be solved for d features and m responses."""

    features: tuple[str, ...]  # d names
    anchor: Anchor  # of features, then responses
    weight: float  # sum of weights; zero where there is no intercept
    mean: Floats  # (d,) of the features, zero where there is no intercept
    level: Floats  # (m,) mean of the responses, the same
    penalty: Floats  # (d,) ridge, in units of the anchor
    moving: npt.NDArray[np.bool_]  # (d,) columns that are not constant; the others get zero
    target: Floats  # (r, m)
    solver: Solver  # of the (r, moving) root

    def solve(self) -> Line:
        """The fit."""
        coef = self._spread(self.solver.back(self.target))
        return Line(coef, self.level - self.mean @ coef)

    def correct(self, line: Line, pull: Pull) -> tuple[Line, float]:
        """A fit corrected by the pull it leaves, and how much that changed it, relatively."""
        total, slope = pull.sums[0], pull.sums[1:]
        centred = slope - self.mean[:, None] * total - self.penalty[:, None] * line.coef
        change = self._spread(self.solver.back(self.solver.half(centred[self.moving])))
        shift = (total / self.weight if self.weight else 0.0 * total) - self.mean @ change
        size = self.solver.scale[:, None]
        large = np.abs(size * line.coef[self.moving]).max(initial=0.0)
        small = np.abs(size * change[self.moving]).max(initial=0.0)
        coef, rest = added((line.coef, np.zeros_like(change)), (change, np.zeros_like(change)))
        moved = Line(coef, line.intercept + shift, rest)
        return moved, float(small / large) if large else 0.0

    def warn(self) -> None:
        """Tell of constant columns, of missing rank and of few digits."""
        names = np.array(self.features, dtype=object)
        if not self.moving.all():
            still = names[~self.moving].tolist()
            tell(ConstantColumnWarning.of_columns(still, "response"))
        found = self.solver
        if found.digits < _DOUBTFUL or found.rank < found.width:
            warning = CollinearWarning.of_columns(
                [str(name) for name in names[self.moving][found.involved()]],
                rank=found.rank,
                features=found.width,
                condition=10.0 ** (16.0 - found.digits),
                remedy="ridge",
            )
            tell(warning)

    def _spread(self, coef: Floats) -> Floats:
        wide = np.zeros((len(self.moving), coef.shape[1]))
        wide[self.moving] = coef
        return wide


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A linear fit of offsets: v = u'coef + intercept."""

    coef: Floats  # (d, m)
    intercept: Floats  # (m,)
    rest: Floats | None = None  # (d, m) what a correction had beyond the last digit of coef

    def rule(self, problem: Problem, labels: Labels) -> LinearRule:
        """The fit as a rule about the mean of the rows."""
        d = len(self.coef)
        u, v = _split(problem.anchor, d)
        anchor, moved = u.moved(problem.mean)
        coef = self.coef * v.unit
        intercept = (self.intercept + moved @ self.coef) * v.unit + v.origin
        return LinearRule(labels, anchor, coef.T, intercept)

    def slopes(self, anchor: Anchor) -> tuple[Floats, Floats]:
        """(m, d) slopes and (m,) intercepts in the user's numbers.

        The intercept at x = 0 may be far from all rows, so its terms are summed exactly.
        """
        u, v = _split(anchor, len(self.coef))
        slope = (self.coef * v.unit).T / u.unit
        high, low = product(-slope, u.origin)
        if self.rest is not None:
            low = low - (self.rest * v.unit).T / u.unit * u.origin
        terms = np.hstack([(self.intercept * v.unit)[:, None], v.origin[:, None], high, low])
        return slope, np.array([fsum(row) for row in terms])


def from_moments(
    moments: ClassMoments, *, responses: int, ridge: float = 0.0, intercept: bool = True
) -> Problem:
    """Problem of moments over d features and then the responses.

    Examples
    --------
    >>> from discriminant.engines.engine import moments
    >>> found = moments([[0.0, 1.0], [1.0, 3.0], [2.0, 5.0]], [0, 0, 0], detail="pooled")
    >>> problem = from_moments(found, responses=1)  # y = 1 + 2 x
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
    return from_scatter(
        moments.features[:d],
        moments.anchor,
        weight,
        (centre[:d], centre[d:]),
        scatter[:d, :d],
        scatter[:d, d:],
        ridge,
    )


def from_factor(
    factor: ScatterFactor, *, responses: int, ridge: float = 0.0, intercept: bool = True
) -> Problem:
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
        root = triangle(
            np.vstack([root, np.hstack([np.diag(np.sqrt(penalty)), np.zeros((d, responses))])])
        )
    if not moving.all():
        root = triangle(root[:, np.append(moving, np.ones(responses, dtype=bool))])
    width = int(moving.sum())
    solver = Solver.of(root[:width, :width], unit=unit[moving])
    return Problem(
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


def from_rows(
    features: tuple[str, ...],
    anchor: Anchor,
    offsets: tuple[Floats, Floats],
    *,
    weight: Floats | None = None,
    ridge: float = 0.0,
    intercept: bool = True,
) -> Problem:
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
    solver = Solver.of(root[:, moving], unit=unit[moving], ridge=ridge)
    target = np.sqrt(heavy)[:, None] * (v - level)
    penalty = _penalty(ridge, unit)
    return Problem(features, anchor, total, mean, level, penalty, moving, target, solver)


def from_scatter(
    features: tuple[str, ...],
    anchor: Anchor,
    weight: float,
    means: tuple[Floats, Floats],
    scatter: Floats,
    cross: Floats,
    ridge: float,
) -> Problem:
    """Problem of a scatter (d, d) of features and (d, m) of features with responses."""
    unit = anchor.unit[: len(features)]
    penalty = _penalty(ridge, unit)
    moving = _moving(np.sqrt(np.maximum(np.diagonal(scatter), 0.0)), means[0], weight)
    kept = scatter[np.ix_(moving, moving)] + np.diag(penalty[moving])
    root, target = _root(kept, cross[moving])
    solver = Solver.of(root, unit=unit[moving], squared=True)
    return Problem(features, anchor, weight, *means, penalty, moving, target, solver)


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
