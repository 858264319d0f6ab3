"""The cone of linear scores that are wrong of no row, in coordinates in which the rows are white.

A linear programme (after Konis 2007) finds a b of the cone with as many positive margins as there
can be. With a margin a'b for each row of A and caps c >= 1,

    max  sum_i min(a_i'b, c_i)   over   a_i'b >= 0     =     min  c'm   over   A'(m - n) = A'1,
                                                             0 <= m <= 1,  0 <= n

A cone can be scaled, so at the maximum every margin that can be positive is at its cap or above:
the others, the tight ones, are zero all over the cone, and the cone spans their null space.

A margin of a row of class a to class c is one of the scores of these two alone. So two classes that
overlap, and whose rows span all there is, have the same scores all over the cone: they are one
group, and the programme is one of groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import qr, svd
from scipy.optimize import linprog, minimize
from scipy.special import logsumexp

from discriminant.moments.naming import Places
from discriminant.table.schema import Floats

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
        return _spread_out(self.span @ generic(self.span.shape[1]), self.group)

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


def cone_of(rows: Floats, codes: Places, classes: int) -> Cone | None:
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
    found = minimize(loss, begin, jac=True, method="L-BFGS-B", callback=stop, options=options)  # type: ignore[call-overload]
    last = np.asarray(found.x)
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
    caps = 1.0 + generic(m)
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
    size, axes = svd_of(rows)
    return np.asarray(axes[int((size > RANK * size[0]).sum()) :].T)


def _rank(rows: Floats) -> int:
    size = svd_of(rows)[0]
    return int((size > RANK * size[0]).sum())


def svd_of(rows: Floats) -> tuple[Floats, Floats]:
    """Singular values and all right axes; of many rows by way of their triangular factor."""
    if len(rows) > 2 * rows.shape[1]:
        rows = np.asarray(qr(rows, mode="r", check_finite=False)[0][: rows.shape[1]])
    _, size, axes = svd(rows, full_matrices=True, check_finite=False)
    return np.asarray(size), np.asarray(axes)


def generic(count: int) -> Floats:
    """(count,) numbers of (0, 1) in no simple relation."""
    return np.asarray(np.arange(1, count + 1) * _GOLDEN % 1.0)
