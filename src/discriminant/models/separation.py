"""Whether classes are separated by linear scores, so that no maximum-likelihood fit is finite.

Scores s = [u, 1] B of K classes, or without an intercept s = u B; a row of class y has margins
s_y - s_c, one for each other class. The scores that are nowhere wrong form a cone,

    cone = { B : no margin is negative }

and the likelihood has a finite maximum if and only if all margins are zero all over the cone
(Albert & Anderson 1984):

    complete   some B has only positive margins
    quasi      some B of the cone has a positive margin, but none has only positive ones
    none       all margins of the cone are zero: the classes overlap

`models.cone` finds, by a linear programme (Konis 2007), a B with as many positive margins as there
can be, and what the cone spans. Columns that are zero in its span have finite coefficients; all
others have not.

Rows are read by cutting planes. A B that some rows allow is held against all of them; the rows it
wrongs most are added, and so on. If the rows looked at overlap and span what all rows span, then
all rows overlap, for the whole cone is within theirs; if no row is wronged, B is the certificate.
The programme is solved in coordinates in which the rows looked at are white (relative rank
1e-9), so that units, offsets and collinear columns change nothing. A margin of less than 1e-9 of
its terms counts as zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from discriminant.models.cone import RANK, SLACK, cone_of, generic, svd_of
from discriminant.moments.anchor import Anchor
from discriminant.moments.margins import MarginReading, Margins
from discriminant.moments.naming import Places
from discriminant.table.schema import Floats, Labels

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


def separation(
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
    asking = _Asking(read, anchor, features, spread, intercept, len(labels), keep)
    if not (intercept or (spread > 0).any()):  # all margins are zero, whatever the coefficients
        return Separation("none", None, (), (), 0)
    sample = asking.margins(np.zeros((len(features) + 1, len(labels))))
    held = _Held.none(len(features)).with_rows(sample)
    if start is not None:
        found = asking.margins(start)
        if found.positive.any() and not (found.negative.any() or found.zero.any()):
            return _separated("complete", start, spread > 0, asking, labels, found, 0)
        held = held.with_rows(found)
    held = _spanning(asking, held)
    return _decided(asking, held, labels)


def _decided(asking: _Asking, held: _Held, labels: Labels) -> Separation:
    """Cutting planes from rows that span what all rows span."""
    while True:  # every round looks at more rows, until it is decided
        frame = _Frame.of(held, asking)
        cone = cone_of(frame.white(held.offsets), held.codes, len(labels))
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
    asking: _Asking,
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
class _Asking:
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
class _Held:
    """Rows looked at."""

    offsets: Floats  # (n, d)
    codes: Places  # (n,)
    seen: frozenset[tuple[int, bytes]]

    @classmethod
    def none(cls, width: int) -> _Held:
        return cls(np.zeros((0, width)), np.zeros(0, dtype=np.intp), frozenset())

    def with_rows(self, found: Margins, chosen: npt.NDArray[np.bool_] | None = None) -> _Held:
        """These and the rows that a reading brought back, or those chosen of them."""
        places = np.arange(len(found.codes)) if chosen is None else np.flatnonzero(chosen)
        keys = {(int(found.codes[i]), found.offsets[i].tobytes()): i for i in places}
        new = np.array([i for key, i in keys.items() if key not in self.seen], dtype=np.intp)
        return _Held(
            np.vstack([self.offsets, found.offsets[new]]),
            np.append(self.codes, found.codes[new]),
            self.seen.union(keys),
        )


def _spanning(asking: _Asking, held: _Held) -> _Held:
    """Rows that span what all rows span.

    Scores that are zero on all rows held are zero on all rows, or single out those that are not in
    the span: of two classes, those on one side, so that the other is asked for as well.
    """
    while True:
        frame = _Frame.of(held, asking)
        if not frame.null.shape[1]:
            return held
        still = frame.null @ generic(frame.null.shape[1])
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
class _Frame:
    """Coordinates in which rows are white: [(u - centre) / scale, one] times `basis`."""

    centre: Floats  # (d,)
    scale: Floats  # (d,) infinite for a constant column
    one: float  # 1, or 0 without an intercept: then the centre is zero too
    basis: Floats  # (d + 1, r)
    null: Floats  # (d + 1, d + 1 - r) what is zero on the rows, constant columns aside

    @classmethod
    def of(cls, held: _Held, asking: _Asking) -> _Frame:
        spread, one = asking.spread, float(asking.intercept)
        centre = one * held.offsets.mean(axis=0)
        none = np.zeros((len(spread) + 1, 0))
        frame = cls(centre, np.where(spread > 0, spread, np.inf), one, none, none)
        active = np.append(spread > 0, asking.intercept)
        size, axes = svd_of(frame.standard(held.offsets)[:, active])
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
        found = np.column_stack([_sparsest(self.basis @ column, self.null) for column in inside.T])
        return self.unscaled(found / np.abs(found).max())

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
        found = np.column_stack([_sparsest(self.basis @ column, self.null) for column in inside.T])
        size = np.abs(found - found[:, :1]).max(axis=1)
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
