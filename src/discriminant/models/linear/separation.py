"""Detection of separated classes, for which no maximum-likelihood fit is finite.

Scores s = [u, 1] B of K classes, or without an intercept s = u B; a row of class y has margins
s_y - s_c, one for each other class. The scores without a negative margin form a cone,

    cone = { B : no margin is negative }

and the likelihood has a finite maximum if and only if all margins are zero on the whole cone
(Albert & Anderson 1984):

    complete   some B has only positive margins
    quasi      some B of the cone has a positive margin, but none has only positive ones
    none       all margins of the cone are zero: the classes overlap

A linear programme (after Konis 2007) finds a B with as many positive margins as possible, and the
span of the cone. Columns that are zero in its span have finite coefficients; all others do not.
With a margin a'b for each row of A and caps c >= 1,

    max  sum_i min(a_i'b, c_i)   over   a_i'b >= 0     =     min  c'm   over   A'(m - n) = A'1,
                                                             0 <= m <= 1,  0 <= n

A cone can be scaled, so at the maximum every margin that can be positive is at its cap or above:
the others, the tight ones, are zero on the whole cone, and the cone spans their null space.

A margin of a row of class a to class c involves the scores of these two only. So two classes that
overlap, and whose rows span the whole space, have the same scores on the whole cone: they form one
group, and the programme is one of groups.

Rows are read by cutting planes. A B that some rows allow is checked against all of them; the rows
it violates most are added, and so on. If the active rows overlap and span what all rows span, then
all rows overlap, since the whole cone is within theirs; if no row is violated, B is the
certificate. The programme is solved in coordinates in which the active rows are white (relative
rank 1e-9), so that units, offsets and collinear columns change nothing. A margin of less than 1e-9
of its terms counts as zero.
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
from discriminant.moments.margin_counts import MarginReading, Margins
from discriminant.table.blocks import Floats, Labels, Places

SLACK = 1e-9  # of the terms of a margin: what counts as zero
RANK = 1e-9  # of the largest singular value
_STEPS = 1000  # of descent, before a programme is asked
_ENOUGH = 1e-4  # of the largest score: a margin that descent goes on to
_GOLDEN = 0.6180339887498949  # its multiples modulo one are in no relation with one another


@dataclass(frozen=True, slots=True, eq=False)
class Cone:
    """Scores in r white coordinates that are nowhere wrong; classes of a group have the same."""

    group: Places  # (K,) the group of each class, of G
    inside: Floats  # (r, K) with as many positive margins as there can be
    span: Floats | None  # (r (G - 1), v) what the cone spans, first group zero; None is everything

    def anywhere(self) -> Floats:
        """(r, K) one of the span, in no relation to the axes."""
        if self.span is None:
            return self.inside
        return _spread_out(self.span @ quasi_random(self.span.shape[1]), self.group)

    def frees(self, rows: Floats, codes: Places) -> npt.NDArray[np.bool_]:
        """(n,) rows with a margin of zero here, but not all over the span."""
        if self.span is None:
            return np.ones(len(rows), dtype=np.bool_)
        free = np.zeros(len(rows), dtype=np.bool_)
        inside = self.inside[:, np.unique(self.group, return_index=True)[1]]
        for which, margins in _margin_rows(rows, self.group[codes], inside.shape[1]):
            here = margins @ (inside[:, 1:] - inside[:, :1]).T.ravel()
            size = np.abs(margins).sum(axis=1)
            moves = np.abs(margins @ self.span).max(axis=1, initial=0.0) > 1e-6 * size
            free[which] |= moves & (np.abs(here) <= 1e-6 * size * np.abs(inside).max())
        return free


def find_cone(rows: Floats, codes: Places, classes: int) -> Cone | None:
    """The cone of rows in white coordinates, or None if it has no positive margin."""
    descended = _descended(rows, codes, classes) if classes > 2 else None
    if descended is not None:
        return Cone(np.arange(classes), descended, None)
    group = _overlapping(rows, codes, classes)
    groups = int(group.max()) + 1
    if groups == 1:
        return None
    margins = _all_margins(rows, group[codes], groups)
    found = _widest(margins)
    if found is None:
        return None
    inside, span = found
    return Cone(group, _spread_out(inside, group), span)


def _descended(rows: Floats, codes: Places, classes: int) -> Floats | None:
    """(r, K) scores with only positive margins, if likelihood soon leads to some.

    Of many classes a programme takes long, and where they are completely separated it is not
    needed: the likelihood goes to one, and long before it is there no margin is negative.
    """
    each, own = np.arange(len(rows)), np.eye(classes)[codes]

    def loss(flat: Floats) -> tuple[float, Floats]:
        scores = rows @ flat.reshape(-1, classes)
        level = logsumexp(scores, axis=1)
        slope = rows.T @ (np.exp(scores - level[:, None]) - own)
        return float((level - scores[each, codes]).mean()), slope.ravel() / len(rows)

    def apart(flat: Floats) -> float:
        scores = rows @ flat.reshape(-1, classes)
        margins = scores[each, codes][:, None] - np.where(own > 0, -np.inf, scores)
        return float(margins.min() / max(np.abs(scores).max(), 1e-300))

    def stop(flat: Floats) -> None:
        if apart(flat) > _ENOUGH:
            raise StopIteration

    begin = np.zeros(rows.shape[1] * classes)
    options: Any = {"maxiter": _STEPS, "gtol": 0.0, "ftol": 0.0}
    result = minimize(loss, begin, jac=True, method="L-BFGS-B", callback=stop, options=options)  # type: ignore[call-overload]
    last = np.asarray(result.x)
    return last.reshape(-1, classes) if apart(last) > 10 * SLACK else None


def _overlapping(rows: Floats, codes: Places, classes: int) -> Places:
    """(K,) classes in groups that must have the same scores.

    A margin of a row of class a to class c is one of these two classes alone. If they overlap, and
    their rows span all there is, all over the cone their scores are the same.
    """
    group = np.arange(classes)
    if classes > 2:
        for a, c in combinations(range(classes), 2):
            if group[a] != group[c]:
                pair = np.isin(codes, (a, c))
                own = np.where(codes[pair] == c, 1.0, -1.0)[:, None] * rows[pair]
                if _rank(own) == rows.shape[1] and _widest(own) is None:
                    group[group == group[c]] = group[a]
    return np.asarray(np.unique(group, return_inverse=True)[1])


def _widest(margins: Any) -> tuple[Floats, Floats] | None:
    """A b of { b : margins b >= 0 } with most positive margins, and a basis of what it spans."""
    m = margins.shape[0]
    caps = 1.0 + quasi_random(m)
    turned = margins.T
    stack: Any = sparse.hstack if sparse.issparse(margins) else np.hstack
    limits: Any = np.zeros((2 * m, 2))
    limits[:m, 1], limits[m:, 1] = 1.0, np.inf
    answer = linprog(
        np.append(caps, np.zeros(m)),
        A_eq=stack([turned, -turned]),
        b_eq=np.asarray(turned.sum(axis=1)).ravel(),
        bounds=limits,
        method="highs-ds",
    )
    if answer.fun is None or answer.fun < 0.5:
        return None
    return _on_face(margins, np.asarray(answer.eqlin.marginals))


def _on_face(margins: Any, found: Floats) -> tuple[Floats, Floats] | None:
    """The solution with its tight margins zero to the last digits; others must stay positive."""
    tight = margins @ found < 0.5
    size = abs(margins)
    while True:
        span = _null(margins[np.flatnonzero(tight)])
        inside = span @ (span.T @ found)
        wrong = ~tight & (margins @ inside <= SLACK * (size @ np.abs(inside)))
        if tight.all() or not span.shape[1]:
            return None
        if not wrong.any():
            return _centred(margins[np.flatnonzero(~tight)] @ span, span), span
        tight |= wrong


def _centred(loose: Floats, span: Floats) -> Floats:
    """The b of the span whose smallest margin, of those that can be positive, is largest.

    It is as far as can be from wronging any row, so that fewer are wronged that were not looked at.
    """
    v = span.shape[1]
    bounds: list[tuple[float, float | None]] = [(-1.0, 1.0)] * v + [(0.0, None)]
    answer = linprog(
        np.append(np.zeros(v), -1.0),
        A_ub=np.hstack([-loose, np.ones((len(loose), 1))]),
        b_ub=np.zeros(len(loose)),
        bounds=bounds,
        method="highs-ds",
    )
    assert answer.x is not None
    return np.asarray(span @ answer.x[:v])


def _all_margins(rows: Floats, codes: Places, groups: int) -> Any:
    """(n (G - 1), r (G - 1)) what margins are made of, each block of columns one group's scores."""
    if groups == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None] * rows
    return sparse.csr_array(np.vstack([part for _, part in _margin_rows(rows, codes, groups)]))


def _margin_rows(rows: Floats, codes: Places, groups: int) -> Iterator[tuple[Places, Floats]]:
    """For every pair of groups: places of rows of the first, and their margins to the second."""
    r = rows.shape[1]
    for a in range(groups):
        own = np.flatnonzero(codes == a)
        for c in range(groups):
            if c != a:
                margins = np.zeros((len(own), groups, r))
                margins[:, a], margins[:, c] = rows[own], -rows[own]
                yield own, margins[:, 1:].reshape(len(own), (groups - 1) * r)


def _spread_out(found: Floats, group: Places) -> Floats:
    """(r, K) scores of each class from (r (G - 1),) of all groups but the first."""
    groups = int(group.max()) + 1
    each = np.vstack([np.zeros((1, len(found) // (groups - 1))), found.reshape(groups - 1, -1)])
    return np.asarray(each[group].T)


def _null(margins: Any) -> Floats:
    """(q, v) orthonormal basis of what all margins are zero for."""
    rows = np.asarray(margins.toarray() if hasattr(margins, "toarray") else margins)
    if not len(rows):
        return np.eye(rows.shape[1])
    size, axes = right_svd(rows)
    return np.asarray(axes[int((size > RANK * size[0]).sum()) :].T)


def _rank(rows: Floats) -> int:
    size = right_svd(rows)[0]
    return int((size > RANK * size[0]).sum())


def right_svd(rows: Floats) -> tuple[Floats, Floats]:
    """Singular values and all right axes; of many rows by way of their triangular factor."""
    if len(rows) > 2 * rows.shape[1]:
        rows = np.asarray(qr(rows, mode="r", check_finite=False)[0][: rows.shape[1]])
    _, size, axes = svd(rows, full_matrices=True, check_finite=False)
    return np.asarray(size), np.asarray(axes)


def quasi_random(count: int) -> Floats:
    """(count,) numbers of (0, 1) in no simple relation."""
    return np.asarray(np.arange(1, count + 1) * _GOLDEN % 1.0)


Kind = Literal["none", "quasi", "complete"]
Read = Callable[[MarginReading], Margins]

_DUST = 1e-11  # of the largest coefficient of standardised columns
_DEPENDENT = 64  # ways in which columns depend on others, up to which the sparsest is looked for


@dataclass(frozen=True, slots=True, eq=False)
class Separation:
    """How K classes are separated by linear scores of d features, if they are."""

    kind: Kind
    direction: Floats | None  # (d + 1, K) scores that are nowhere wrong; intercept last; offsets
    columns: tuple[str, ...]  # features without a finite coefficient
    classes: tuple[tuple[Any, Any], ...]  # pairs of labels that it pulls apart
    rows_looked_at: int  # by the linear programme

    def __bool__(self) -> bool:
        """Whether there is no finite maximum-likelihood estimate."""
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
    """Whether the classes of a table are separated, and by what.

    Parameters
    ----------
    read
        The fold over the rows: `lambda reading: fold(table, reading)`.
    spread
        (d,) standard deviations of the offsets; a column of spread zero is constant, left out.
        Without an intercept, root mean squares: a constant column is one like others, unless zero.
    intercept
        Whether scores have one. Without it the anchor must be at zero, as are the scores there.
    start
        (d + 1, K) coefficients for offsets, intercepts last, to look at first: the better they
        separate, the fewer rows are looked at. None starts from a sample of the rows.
    keep
        Rows of each class that a reading brings back; None is four for each coefficient, at
        least 64.
    """
    keep = max(4 * (len(features) + 1), 64) if keep is None else keep
    asking = _MarginQuery(read, anchor, features, spread, intercept, len(labels), keep)
    if not (intercept or (spread > 0).any()):  # all margins are zero, whatever the coefficients
        return Separation("none", None, (), (), 0)
    sample = asking.margins(np.zeros((len(features) + 1, len(labels))))
    held = _ActiveRows.none(len(features)).with_rows(sample)
    if start is not None:
        found = asking.margins(start)
        if found.positive.any() and not (found.negative.any() or found.zero.any()):
            return _separated("complete", start, spread > 0, asking, labels, found, 0)
        held = held.with_rows(found)
    held = _spanning(asking, held)
    return _decided(asking, held, labels)


def _decided(asking: _MarginQuery, held: _ActiveRows, labels: Labels) -> Separation:
    """Cutting planes from rows that span what all rows span."""
    while True:  # every round looks at more rows, until it is decided
        frame = _WhiteFrame.of(held, asking)
        cone = find_cone(frame.white(held.offsets), held.codes, len(labels))
        if cone is None:
            return Separation("none", None, (), (), len(held.codes))
        direction = frame.coefficients(cone.inside)
        found = asking.margins(direction)
        wanted, still = found.margin < 0, found.margin == 0
        wanted[still] = cone.frees(frame.white(found.offsets[still]), found.codes[still])
        more = held.with_rows(found, wanted)
        if len(more.codes) == len(held.codes) and _all_kept(found):
            if found.negative.any() or not found.positive.any():  # apart by less than rounding
                return Separation("none", None, (), (), len(held.codes))
            kind: Kind = "quasi" if found.zero.any() else "complete"
            moving = asking.spread > 0 if kind == "complete" else frame.moving(cone.anywhere())
            return _separated(kind, direction, moving, asking, labels, found, len(held.codes))
        held, asking = more, replace(asking, keep=asking.keep * 5 // 4 + 1)


def _all_kept(found: Margins) -> bool:
    """Whether all rows with a negative margin have been brought back."""
    wrong = np.bincount(found.codes[found.margin < 0], minlength=1)
    return bool(wrong.max() < found.keep)


def _separated(
    kind: Kind,
    direction: Floats,
    moving: npt.NDArray[np.bool_],
    asking: _MarginQuery,
    labels: Labels,
    found: Margins,
    rows: int,
) -> Separation:
    apart = (found.positive + found.positive.T) > 0
    pairs = combinations(range(len(labels)), 2)
    classes = tuple((labels[a], labels[c]) for a, c in pairs if apart[a, c])
    columns = tuple(asking.features[j] for j in np.flatnonzero(moving))
    return Separation(kind, direction, columns, classes, rows)


# --- rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _MarginQuery:
    """Reads margins of all rows."""

    read: Read
    anchor: Anchor
    features: tuple[str, ...]
    spread: Floats  # (d,)
    intercept: bool
    classes: int
    keep: int

    def margins(self, direction: Floats) -> Margins:
        coef, level = np.ascontiguousarray(direction[:-1].T), direction[-1]
        return self.read(
            MarginReading(self.features, self.anchor, coef, level, self.keep, self.spread, SLACK)
        ).at(self.anchor)


@dataclass(frozen=True, slots=True, eq=False)
class _ActiveRows:
    """Rows looked at."""

    offsets: Floats  # (n, d)
    codes: Places  # (n,)
    seen: frozenset[tuple[int, bytes]]

    @classmethod
    def none(cls, width: int) -> _ActiveRows:
        return cls(np.zeros((0, width)), np.zeros(0, dtype=np.intp), frozenset())

    def with_rows(self, found: Margins, chosen: npt.NDArray[np.bool_] | None = None) -> _ActiveRows:
        """These and the rows that a reading brought back, or those chosen of them."""
        places = np.arange(len(found.codes)) if chosen is None else np.flatnonzero(chosen)
        keys = {(int(found.codes[i]), found.offsets[i].tobytes()): i for i in places}
        new = np.array([i for key, i in keys.items() if key not in self.seen], dtype=np.intp)
        return _ActiveRows(
            np.vstack([self.offsets, found.offsets[new]]),
            np.append(self.codes, found.codes[new]),
            self.seen.union(keys),
        )


def _spanning(asking: _MarginQuery, held: _ActiveRows) -> _ActiveRows:
    """Rows that span what all rows span.

    Scores that are zero on all rows held are zero on all rows, or single out those that are not in
    the span: of two classes, those on one side, so that the other is asked for as well.
    """
    while True:
        frame = _WhiteFrame.of(held, asking)
        if not frame.null.shape[1]:
            return held
        still = frame.null @ quasi_random(frame.null.shape[1])
        direction = frame.unscaled(still[:, None] * np.arange(asking.classes))
        found = asking.margins(direction)
        if not found.negative.any() and found.positive.any():
            found = asking.margins(-direction)
        more = held.with_rows(found, found.margin < 0)
        if len(more.codes) == len(held.codes):
            return held
        held = more


# --- coordinates ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _WhiteFrame:
    """Coordinates in which rows are white: [(u - centre) / scale, one] times `basis`."""

    centre: Floats  # (d,)
    scale: Floats  # (d,) infinite for a constant column
    one: float  # 1, or 0 without an intercept: then the centre is zero too
    basis: Floats  # (d + 1, r)
    null: Floats  # (d + 1, d + 1 - r) what is zero on the rows, constant columns aside

    @classmethod
    def of(cls, held: _ActiveRows, asking: _MarginQuery) -> _WhiteFrame:
        spread, one = asking.spread, float(asking.intercept)
        centre = one * held.offsets.mean(axis=0)
        none = np.zeros((len(spread) + 1, 0))
        frame = cls(centre, np.where(spread > 0, spread, np.inf), one, none, none)
        active = np.append(spread > 0, asking.intercept)
        size, axes = right_svd(frame.standard(held.offsets)[:, active])
        rank = int((size > RANK * size[0]).sum())
        whole = np.zeros((len(active), len(axes)))
        whole[active] = axes.T
        basis = whole[:, :rank] * (np.sqrt(len(held.codes)) / size[:rank])
        return replace(frame, basis=basis, null=whole[:, rank:])

    def standard(self, offsets: Floats) -> Floats:
        scaled = (offsets - self.centre) / self.scale
        return np.hstack([scaled, np.full((len(offsets), 1), self.one)])

    def white(self, offsets: Floats) -> Floats:
        return np.asarray(self.standard(offsets) @ self.basis)

    def coefficients(self, inside: Floats) -> Floats:
        """(d + 1, K) coefficients for offsets, from those for white coordinates."""
        standardised = np.column_stack(
            [_sparsest(self.basis @ column, self.null) for column in inside.T]
        )
        return self.unscaled(standardised / np.abs(standardised).max())

    def unscaled(self, found: Floats) -> Floats:
        """(d + 1, K) coefficients for offsets, from those for standardised columns; no dust."""
        found = np.where(np.abs(found) > _DUST * np.abs(found).max(initial=0.0), found, 0.0)
        slope = found[:-1] / self.scale[:, None]
        terms = np.vstack([found[-1:], -self.centre[:, None] * slope])
        level = terms.sum(axis=0)
        level[np.abs(level) <= _DUST * np.abs(terms).sum(axis=0)] = 0.0
        return np.vstack([slope, level])

    def moving(self, inside: Floats) -> npt.NDArray[np.bool_]:
        """(d,) features with a coefficient that is not zero, relative to another class."""
        coefficients = np.column_stack(
            [_sparsest(self.basis @ column, self.null) for column in inside.T]
        )
        size = np.abs(coefficients - coefficients[:, :1]).max(axis=1)
        return np.asarray(size[:-1] > 1e-7 * size.max())


def _sparsest(found: Floats, null: Floats) -> Floats:
    """The same score by as few columns as can be: the smallest sum of sizes (intercept aside)."""
    if not 0 < null.shape[1] <= _DEPENDENT or not found.any():
        return found
    d, m = len(found) - 1, null.shape[1]
    cost = np.append(np.zeros(m), np.ones(d))
    each = np.eye(d)
    limits = np.block([[null[:-1], -each], [-null[:-1], -each]])
    size = np.abs(found).max()
    answer = linprog(
        cost,
        A_ub=limits,
        b_ub=np.append(-found[:-1], found[:-1]) / size,
        bounds=[(None, None)] * m + [(0, None)] * d,
        method="highs",
    )
    if answer.x is None:
        return found
    moved = found + size * (null @ answer.x[:m])
    return np.where(np.abs(moved) > 1e-9 * np.abs(moved).max(), moved, 0.0)
