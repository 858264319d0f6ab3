"""Separation of classes: detect whether a maximum-likelihood fit has infinite coefficients.

The scores of K classes are s = [u, 1] B or, without an intercept, s = u B. A row of class y has the
margins s_y - s_c, one for each other class c. The coefficients B for which no row has a negative
margin form a cone,

    cone = { B : no margin is negative }

The likelihood has a finite maximum if and only if all margins are zero for every B of the cone
(Albert & Anderson 1984):

    complete   some B has only positive margins
    quasi      some B of the cone has a positive margin, but no B has only positive margins
    none       all margins are zero for every B of the cone: the classes overlap

A linear programme (after Konis 2007) yields a B with as many positive margins as possible, and the
linear span of the cone. The maximum-likelihood coefficients of a column are finite exactly if every
B of that span is zero in the column. Let the margins be the entries of A b, where b holds the
coefficients, and let c_i >= 1 be caps:

    max  sum_i min(a_i'b, c_i)   over   a_i'b >= 0     =     min  c'm   over   A'(m - n) = A'1,
                                                             0 <= m <= 1,  0 <= n

Any B of the cone remains in the cone if it is multiplied by a positive number. So at the maximum
every margin that can be positive is at its cap or above. All other margins are called tight. Tight
margins are zero on the whole cone, and the span of the cone is the null space of the tight margins.

The margin of a row of class a to class c involves only the scores of these two classes. So if two
classes overlap and their rows span the whole space, they have the same scores on the whole cone.
Classes with the same scores form a group, and the programme is solved for groups of classes.

The programme starts with some active rows; others are added by the method of cutting planes. B is
computed from the active rows and checked against all rows. The rows with the most negative margins
become active, and B is computed again. If the active rows overlap and span the space of all rows,
then all rows overlap, since the cone of all rows lies within the cone of the active rows. If no row
has a negative margin, B proves the separation. The programme is solved in coordinates in which the
active rows are white (with a relative tolerance of 1e-9 for the rank), so units, origins and
collinear columns do not matter. A margin of less than 1e-9 of the size of its terms counts as zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import qr, svd
from scipy.optimize import linprog, minimize
from scipy.special import logsumexp

from discriminant.moments.anchor import Anchor
from discriminant.moments.margins_and_mistakes import MarginReading, Margins
from discriminant.table.blocks import Floats, Labels, Places

SLACK = 1e-9  # smaller margins, relative to the size of their terms, count as zero
RANK = 1e-9  # smaller singular values, relative to the largest, count as zero
_STEPS = 1000  # steps of likelihood maximisation before the linear programme is solved
_MIN_MARGIN = 1e-4  # maximisation stops if all margins, relative to the largest score, are larger
_GOLDEN = 0.6180339887498949  # multiples of this number, modulo one, are quasi-random


@dataclass(frozen=True, slots=True, eq=False)
class Cone:
    """Cone of the coefficients for which no margin is negative, for r coordinates and K classes.

    The classes form G groups; classes of one group have the same scores on the whole cone.
    """

    group: Places  # (K,) group of each class, from 0 to G - 1
    inside: Floats  # (r, K) a point with as many positive margins as possible
    # (r (G - 1), v) basis of the linear span of the cone, for all groups but the first, whose
    # scores are zero; None if the span is the whole space
    span: Floats | None
    # (n, v) rows of the margin matrix whose margins can be positive, times the basis `span`
    margins: Floats | None = None

    def central(self) -> Cone:
        """Return the cone with its most central point: the one whose smallest margin is largest.

        Rows that are not yet active are then less likely to have a negative margin.
        """
        if self.margins is None or self.span is None:
            return self
        v = self.span.shape[1]
        bounds: list[tuple[float, float | None]] = [(-1.0, 1.0)] * v + [(0.0, None)]
        solution = linprog(
            np.append(np.zeros(v), -1.0),
            A_ub=np.hstack([-self.margins, np.ones((len(self.margins), 1))]),
            b_ub=np.zeros(len(self.margins)),
            bounds=bounds,
            method="highs-ds",
        )
        assert solution.x is not None
        inside = _class_scores(self.span @ solution.x[:v], self.group)
        return replace(self, inside=inside, margins=None)

    def generic_point(self) -> Floats:
        """Return the (r, K) coefficients of a quasi-random point of the linear span of the cone."""
        if self.span is None:
            return self.inside
        return _class_scores(self.span @ quasi_random(self.span.shape[1]), self.group)

    def is_free(self, rows: Floats, codes: Places) -> npt.NDArray[np.bool_]:
        """Return a boolean array (n,): True for rows with a margin that is not determined.

        Such a margin is zero at the point `inside`, but not on the whole linear span of the cone.
        """
        if self.span is None:
            return np.ones(len(rows), dtype=np.bool_)
        free = np.zeros(len(rows), dtype=np.bool_)
        inside = self.inside[:, np.unique(self.group, return_index=True)[1]]
        for selected, margins in _pairwise_margins(rows, self.group[codes], inside.shape[1]):
            values = margins @ (inside[:, 1:] - inside[:, :1]).T.ravel()
            size = np.abs(margins).sum(axis=1)
            varies = np.abs(margins @ self.span).max(axis=1, initial=0.0) > 1e-6 * size
            free[selected] |= varies & (np.abs(values) <= 1e-6 * size * np.abs(inside).max())
        return free


def find_cone(rows: Floats, codes: Places, classes: int) -> Cone | None:
    """Return the cone of rows in white coordinates, or None if no margin can be positive on it."""
    scores = _likelihood_scores(rows, codes, classes) if classes > 2 else None
    if scores is not None:
        return Cone(np.arange(classes), scores, None)
    group = _group_overlapping_classes(rows, codes, classes)
    groups = int(group.max()) + 1
    if groups == 1:
        return None
    margins = _margin_matrix(rows, group[codes], groups)
    solution = _largest_cone(margins)
    if solution is None:
        return None
    inside, span, free = solution
    return Cone(group, _class_scores(inside, group), span, free)


def _likelihood_scores(rows: Floats, codes: Places, classes: int) -> Floats | None:
    """Return (r, K) coefficients with only positive margins, or None if the search fails.

    The search maximises the likelihood, since the linear programme is slow for many classes. If
    classes are completely separated, all margins become positive long before the likelihood reaches
    its limit of one.
    """
    rows_index, indicator = np.arange(len(rows)), np.eye(classes)[codes]

    def loss(flat: Floats) -> tuple[float, Floats]:
        scores = rows @ flat.reshape(-1, classes)
        log_sum = logsumexp(scores, axis=1)
        slope = rows.T @ (np.exp(scores - log_sum[:, None]) - indicator)
        return float((log_sum - scores[rows_index, codes]).mean()), slope.ravel() / len(rows)

    def relative_margin(flat: Floats) -> float:
        scores = rows @ flat.reshape(-1, classes)
        margins = scores[rows_index, codes][:, None] - np.where(indicator > 0, -np.inf, scores)
        return float(margins.min() / max(np.abs(scores).max(), 1e-300))

    def stop(flat: Floats) -> None:
        if relative_margin(flat) > _MIN_MARGIN:
            raise StopIteration

    start = np.zeros(rows.shape[1] * classes)
    options: Any = {"maxiter": _STEPS, "gtol": 0.0, "ftol": 0.0}
    result = minimize(loss, start, jac=True, method="L-BFGS-B", callback=stop, options=options)  # type: ignore[call-overload]
    theta = np.asarray(result.x)
    return theta.reshape(-1, classes) if relative_margin(theta) > 10 * SLACK else None


def _group_overlapping_classes(rows: Floats, codes: Places, classes: int) -> Places:
    """Return the (K,) group numbers; classes of a group have equal scores on the whole cone.

    Two classes belong to one group if they overlap and their rows span the whole space.
    """
    group = np.arange(classes)
    if classes > 2:
        for a, c in combinations(range(classes), 2):
            if group[a] != group[c]:
                pair = np.isin(codes, (a, c))
                margins = np.where(codes[pair] == c, 1.0, -1.0)[:, None] * rows[pair]
                if _rank(margins) == rows.shape[1] and _largest_cone(margins) is None:
                    group[group == group[c]] = group[a]
    return np.asarray(np.unique(group, return_inverse=True)[1])


def _largest_cone(margins: Any) -> tuple[Floats, Floats, Floats] | None:
    """Return a point b of the cone { b : margins b >= 0 } with the most positive margins.

    Return also a basis of the linear span of the cone, as the columns of a matrix, and the product
    of this matrix with the rows of `margins` whose margin at b is positive. Return None if no
    margin can be positive.
    """
    m = margins.shape[0]
    caps = 1.0 + quasi_random(m)
    transposed = margins.T
    stack: Any = sparse.hstack if sparse.issparse(margins) else np.hstack
    bounds: Any = np.zeros((2 * m, 2))
    bounds[:m, 1], bounds[m:, 1] = 1.0, np.inf
    solution = linprog(
        np.append(caps, np.zeros(m)),
        A_eq=stack([transposed, -transposed]),
        b_eq=np.asarray(transposed.sum(axis=1)).ravel(),
        bounds=bounds,
        method="highs-ds",
        options={"presolve": bool(sparse.issparse(margins))},  # slower for few dense constraints
    )
    if solution.fun is None or solution.fun < 0.5:
        return None
    return _exact_face(margins, np.asarray(solution.eqlin.marginals))


def _exact_face(margins: Any, solution: Floats) -> tuple[Floats, Floats, Floats] | None:
    """Return a point whose tight margins are exactly zero and whose other margins are positive.

    `solution` satisfies this up to rounding. The other two results are as in `_largest_cone`.
    Return None if no margin can be positive.
    """
    tight = margins @ solution < 0.5
    size = abs(margins)
    while True:
        span = _null_space(margins[np.flatnonzero(tight)])
        inside = span @ (span.T @ solution)
        violated = ~tight & (margins @ inside <= SLACK * (size @ np.abs(inside)))
        if tight.all() or not span.shape[1]:
            return None
        if not violated.any():
            return inside, span, np.asarray(margins[np.flatnonzero(~tight)] @ span)
        tight |= violated


def _margin_matrix(rows: Floats, codes: Places, groups: int) -> Any:
    """Return the matrix of all margins, (n (G - 1), r (G - 1)).

    The matrix has a block of r columns for each group but the first.
    """
    if groups == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None] * rows
    return sparse.csr_array(np.vstack([part for _, part in _pairwise_margins(rows, codes, groups)]))


def _pairwise_margins(rows: Floats, codes: Places, groups: int) -> Iterator[tuple[Places, Floats]]:
    """Yield, for each ordered pair of groups, rows of the first and margins to the second."""
    r = rows.shape[1]
    for a in range(groups):
        own = np.flatnonzero(codes == a)
        for c in range(groups):
            if c != a:
                margins = np.zeros((len(own), groups, r))
                margins[:, a], margins[:, c] = rows[own], -rows[own]
                yield own, margins[:, 1:].reshape(len(own), (groups - 1) * r)


def _class_scores(scores: Floats, group: Places) -> Floats:
    """Convert the coefficients of all groups but the first to those of the classes, (r, K).

    `scores` is flat, of length r (G - 1). The coefficients of the first group are zero.
    """
    groups = int(group.max()) + 1
    blocks = np.vstack([np.zeros((1, len(scores) // (groups - 1))), scores.reshape(groups - 1, -1)])
    return np.asarray(blocks[group].T)


def _null_space(margins: Any) -> Floats:
    """Return a (q, v) orthonormal basis of the null space of margins."""
    rows = np.asarray(margins.toarray() if hasattr(margins, "toarray") else margins)
    if not len(rows):
        return np.eye(rows.shape[1])
    size, axes = right_svd(rows)
    return np.asarray(axes[int((size > RANK * size[0]).sum()) :].T)


def _rank(rows: Floats) -> int:
    size = right_svd(rows)[0]
    return int((size > RANK * size[0]).sum())


def right_svd(rows: Floats) -> tuple[Floats, Floats]:
    """Return the singular values and all right singular vectors; QR reduces tall matrices first."""
    if len(rows) > 2 * rows.shape[1]:
        rows = np.asarray(qr(rows, mode="r", check_finite=False)[0][: rows.shape[1]])
    _, size, axes = svd(rows, full_matrices=True, check_finite=False)
    return np.asarray(size), np.asarray(axes)


def quasi_random(count: int) -> Floats:
    """Return (count,) quasi-random numbers in (0, 1)."""
    return np.asarray(np.arange(1, count + 1) * _GOLDEN % 1.0)


Kind = Literal["none", "quasi", "complete"]
Read = Callable[[MarginReading], Margins]

_ROUNDING = 1e-11  # smaller coefficients of standardised columns (relative) are rounding errors
_MAX_DEPENDENCIES = 64  # with more linear dependences sparse coefficients are not computed


@dataclass(frozen=True, slots=True, eq=False)
class Separation:
    """Whether and how K classes are separated by linear scores of d features."""

    kind: Kind
    direction: Floats | None  # (d + 1, K) coefficients of separating scores, intercepts last
    columns: tuple[str, ...]  # features without a finite coefficient
    classes: tuple[tuple[Any, Any], ...]  # pairs of labels that are separated
    rows_looked_at: int  # number of rows in the linear programme

    def __bool__(self) -> bool:
        """Return True if the classes are separated, so that some coefficient is infinite."""
        return self.kind != "none"


def detect_separation(
    read: Read,
    *,
    anchor: Anchor,
    features: tuple[str, ...],
    labels: Labels,
    spread: Floats,
    intercept: bool = True,
    start: Floats | None = None,
    keep: int | None = None,
) -> Separation:
    """Determine whether the classes of a table are separated, and by which columns.

    Parameters
    ----------
    read
        Function that sums a reading over all rows: `lambda reading: fold(table, reading)`.
    anchor
        Origin and units of the offsets.
    features
        Names of the d columns.
    labels
        (K,) classes.
    spread
        (d,) standard deviations of the offsets. A column whose standard deviation is zero is
        constant and is left out. Without an intercept pass root mean squares, so that only columns
        of zeros are left out.
    intercept
        Whether scores have an intercept. Without an intercept, the anchor must be at zero.
    start
        (d + 1, K) coefficients for offsets, with the intercepts last, that are tried first. The
        better these coefficients separate the classes, the fewer rows become active. The default is
        to start from a sample of the rows.
    keep
        Number of rows of each class that a reading returns. The default is two for each coefficient
        of a class, but at least 32.
    """
    keep = max(2 * (len(features) + 1), 32) if keep is None else keep
    query = _MarginQuery(read, anchor, features, spread, intercept, len(labels), keep)
    if not (intercept or (spread > 0).any()):  # all margins are zero
        return Separation("none", None, (), (), 0)
    active = _ActiveRows.empty(len(features))
    if start is not None:
        margins = query.margins(start)
        if margins.positive.any() and not (margins.negative.any() or margins.zero.any()):
            return _separation("complete", start, spread > 0, query, labels, margins, 0)
        active = active.with_rows(margins)
    sample = query.margins(np.zeros((len(features) + 1, len(labels))))
    active = _spanning_rows(query, active.with_rows(sample))
    return _cutting_planes(query, active, labels)


def _cutting_planes(query: _MarginQuery, active: _ActiveRows, labels: Labels) -> Separation:
    """Detect separation by cutting planes. The active rows must span the space of all rows."""
    while True:  # every round adds active rows, until the kind is decided
        frame = _WhiteFrame.from_rows(active, query)
        cone = find_cone(frame.white(active.offsets), active.codes, len(labels))
        if cone is None:
            return Separation("none", None, (), (), len(active.codes))
        direction = frame.coefficients(cone.inside)
        margins = query.margins(direction)
        if margins.negative.any() and cone.margins is not None:
            cone = cone.central()
            direction = frame.coefficients(cone.inside)
            margins = query.margins(direction)
        added, zero = margins.margin < 0, margins.margin == 0
        added[zero] = cone.is_free(frame.white(margins.offsets[zero]), margins.codes[zero])
        more = active.with_rows(margins, added)
        if len(more.codes) == len(active.codes) and _returned_all_negative(margins):
            if margins.negative.any() or not margins.positive.any():  # within rounding
                return Separation("none", None, (), (), len(active.codes))
            kind: Kind = "quasi" if margins.zero.any() else "complete"
            columns = (
                query.spread > 0
                if kind == "complete"
                else frame.separating_columns(cone.generic_point())
            )
            return _separation(kind, direction, columns, query, labels, margins, len(active.codes))
        active, query = more, replace(query, keep=query.keep * 5 // 4 + 1)


def _returned_all_negative(margins: Margins) -> bool:
    """Return whether the pass returned all rows with a negative margin."""
    negative = np.bincount(margins.codes[margins.margin < 0], minlength=1)
    return bool(negative.max() < margins.keep)


def _separation(
    kind: Kind,
    direction: Floats,
    varying: npt.NDArray[np.bool_],
    query: _MarginQuery,
    labels: Labels,
    margins: Margins,
    rows: int,
) -> Separation:
    separated = (margins.positive + margins.positive.T) > 0
    pairs = combinations(range(len(labels)), 2)
    classes = tuple((labels[a], labels[c]) for a, c in pairs if separated[a, c])
    columns = tuple(query.features[j] for j in np.flatnonzero(varying))
    return Separation(kind, direction, columns, classes, rows)


# --- rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _MarginQuery:
    """Data needed to compute the margins of all rows by a pass."""

    read: Read
    anchor: Anchor
    features: tuple[str, ...]
    spread: Floats  # (d,)
    intercept: bool
    classes: int
    keep: int

    def margins(self, direction: Floats) -> Margins:
        coef, intercept = np.ascontiguousarray(direction[:-1].T), direction[-1]
        return self.read(
            MarginReading(
                self.features, self.anchor, coef, intercept, self.keep, self.spread, SLACK
            )
        ).at(self.anchor)


@dataclass(frozen=True, slots=True, eq=False)
class _ActiveRows:
    """Rows in the linear programme."""

    offsets: Floats  # (n, d)
    codes: Places  # (n,)
    seen: frozenset[tuple[int, bytes]]

    @classmethod
    def empty(cls, width: int) -> _ActiveRows:
        return cls(np.zeros((0, width)), np.zeros(0, dtype=np.intp), frozenset())

    def with_rows(
        self, margins: Margins, selected: npt.NDArray[np.bool_] | None = None
    ) -> _ActiveRows:
        """Return the active rows plus the rows of `margins`, or plus the selected rows of
        `margins`.
        """
        indices = np.arange(len(margins.codes)) if selected is None else np.flatnonzero(selected)
        keys = {(int(margins.codes[i]), margins.offsets[i].tobytes()): i for i in indices}
        new = np.array([i for key, i in keys.items() if key not in self.seen], dtype=np.intp)
        return _ActiveRows(
            np.vstack([self.offsets, margins.offsets[new]]),
            np.append(self.codes, margins.codes[new]),
            self.seen.union(keys),
        )


def _spanning_rows(query: _MarginQuery, active: _ActiveRows) -> _ActiveRows:
    """Add rows until the active ones span the space of all rows.

    Scores that are zero on all active rows are in general not zero on a row outside their span.
    Rows outside the span are identified by a negative margin. If such rows have only positive
    margins, the signs of the scores are reversed.
    """
    while True:
        frame = _WhiteFrame.from_rows(active, query)
        if not frame.null.shape[1]:
            return active
        null_scores = frame.null @ quasi_random(frame.null.shape[1])
        direction = frame.unscaled(null_scores[:, None] * np.arange(query.classes))
        margins = query.margins(direction)
        if not margins.negative.any() and margins.positive.any():
            margins = query.margins(-direction)
        more = active.with_rows(margins, margins.margin < 0)
        if len(more.codes) == len(active.codes):
            return active
        active = more


# --- coordinates ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _WhiteFrame:
    """Coordinates in which rows are white: [(u - centre) / scale, constant] times `basis`."""

    centre: Floats  # (d,)
    scale: Floats  # (d,) infinite for a constant column
    constant: float  # 1, or 0 without an intercept; then the centre is zero too
    basis: Floats  # (d + 1, r)
    null: Floats  # basis of the null space of the rows, with d + 1 rows; zero for constant columns

    @classmethod
    def from_rows(cls, active: _ActiveRows, query: _MarginQuery) -> _WhiteFrame:
        spread, constant = query.spread, float(query.intercept)
        centre = constant * active.offsets.mean(axis=0)
        empty = np.zeros((len(spread) + 1, 0))
        frame = cls(centre, np.where(spread > 0, spread, np.inf), constant, empty, empty)
        used = np.append(spread > 0, query.intercept)
        size, axes = right_svd(frame.standard(active.offsets)[:, used])
        rank = int((size > RANK * size[0]).sum())
        all_axes = np.zeros((len(used), len(axes)))
        all_axes[used] = axes.T
        basis = all_axes[:, :rank] * (np.sqrt(len(active.codes)) / size[:rank])
        return replace(frame, basis=basis, null=all_axes[:, rank:])

    def standard(self, offsets: Floats) -> Floats:
        scaled = (offsets - self.centre) / self.scale
        return np.hstack([scaled, np.full((len(offsets), 1), self.constant)])

    def white(self, offsets: Floats) -> Floats:
        return np.asarray(self.standard(offsets) @ self.basis)

    def coefficients(self, inside: Floats) -> Floats:
        """Return the (d + 1, K) coefficients for offsets from the coefficients for white
        coordinates.
        """
        standardised = self._standardised(inside)
        return self.unscaled(standardised / np.abs(standardised).max())

    def unscaled(self, standardised: Floats) -> Floats:
        """Return the (d + 1, K) coefficients for offsets from the coefficients for standardised
        columns.

        Coefficients that are only rounding errors are set to zero.
        """
        standardised = np.where(
            np.abs(standardised) > _ROUNDING * np.abs(standardised).max(initial=0.0),
            standardised,
            0.0,
        )
        slope = standardised[:-1] / self.scale[:, None]
        terms = np.vstack([standardised[-1:], -self.centre[:, None] * slope])
        level = terms.sum(axis=0)
        level[np.abs(level) <= _ROUNDING * np.abs(terms).sum(axis=0)] = 0.0
        return np.vstack([slope, level])

    def separating_columns(self, inside: Floats) -> npt.NDArray[np.bool_]:
        """Return a boolean array (d,): True for features whose coefficients differ by class."""
        coefficients = self._standardised(inside)
        size = np.abs(coefficients - coefficients[:, :1]).max(axis=1)
        return np.asarray(size[:-1] > 1e-7 * size.max())

    def _standardised(self, inside: Floats) -> Floats:
        """Return sparse (d + 1, K) coefficients for standardised columns.

        `inside` holds the coefficients for white coordinates.
        """
        return np.column_stack([_sparsest(self.basis @ column, self.null) for column in inside.T])


def _sparsest(coefficients: Floats, null: Floats) -> Floats:
    """Return the coefficients of least l1 norm among those that give rows the same scores.

    The intercept does not count in the norm. `null` is a basis of the null space of the rows.
    """
    if not 0 < null.shape[1] <= _MAX_DEPENDENCIES or not coefficients.any():
        return coefficients
    d, m = len(coefficients) - 1, null.shape[1]
    cost = np.append(np.zeros(m), np.ones(d))
    identity = np.eye(d)
    constraints = np.block([[null[:-1], -identity], [-null[:-1], -identity]])
    size = np.abs(coefficients).max()
    solution = linprog(
        cost,
        A_ub=constraints,
        b_ub=np.append(-coefficients[:-1], coefficients[:-1]) / size,
        bounds=[(None, None)] * m + [(0, None)] * d,
        method="highs",
    )
    if solution.x is None:
        return coefficients
    sparse = coefficients + size * (null @ solution.x[:m])
    return np.where(np.abs(sparse) > 1e-9 * np.abs(sparse).max(), sparse, 0.0)
