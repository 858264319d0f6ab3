"""What a classifier decides over a plane, and the borders between.

Decisions are asked for at the nodes of a grid. Wherever two neighbours differ, a border crosses the
edge between them, and is found by halving the edge:

    24 halvings put a crossing within 2^-24 of an edge, for any classifier at all: no scores are
    asked for, so that costs, thresholds and votes have their own borders, not those of posteriors.

In each cell the crossings of its edges are joined: two by a line, more by lines to their middle,
which is where three regions meet, to within the cell.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.table.schema import Floats

Decide = Callable[[Floats], npt.NDArray[np.intp]]  # of (m, 2) points, (m,) places of actions
Window = Sequence[tuple[float, float]]  # least and largest along x, and along y
_HALVINGS = 24


@dataclass(frozen=True, slots=True, eq=False)
class Regions:
    """Actions over a window."""

    x: Floats  # (g,) of the nodes
    y: Floats  # (g,)
    codes: npt.NDArray[np.intp]  # (g, g) place of the action at (x[j], y[i])
    crossings: Floats  # (c, 2) where a border crosses an edge of the grid
    borders: Floats  # (s, 2, 2) pieces of borders, from point to point

    @classmethod
    def of(cls, decide: Decide, window: Window, *, nodes: int) -> Regions:
        """Ask over the whole window."""
        x, y = (np.linspace(*ends, nodes) for ends in window)
        grid = np.stack(np.meshgrid(x, y), axis=-1)  # (g, g, 2)
        codes = decide(grid.reshape(-1, 2)).reshape(nodes, nodes)
        across = codes[:, :-1] != codes[:, 1:]  # (g, g-1) edges along x
        up = codes[:-1, :] != codes[1:, :]  # (g-1, g) edges along y
        start = np.concatenate([grid[:, :-1][across], grid[:-1, :][up]])
        stop = np.concatenate([grid[:, 1:][across], grid[1:, :][up]])
        own = np.concatenate([codes[:, :-1][across], codes[:-1, :][up]])
        crossings = halved(decide, start, stop, own)
        return cls(x, y, codes, crossings, _joined(crossings, across, up))

    def lines(self) -> list[Floats]:
        """(m, 2) each: the pieces of borders end to end, so that they can be dashed."""
        return chained(self.borders)


def halved(decide: Decide, start: Floats, stop: Floats, own: npt.NDArray[np.intp]) -> Floats:
    """(c, 2) where the action ceases to be that of `start` on the way to `stop`."""
    if not len(start):
        return start
    low, high = np.zeros(len(start)), np.ones(len(start))
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        same = decide(start + middle[:, None] * (stop - start)) == own
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return np.asarray(start + 0.5 * (low + high)[:, None] * (stop - start))


def _joined(crossings: Floats, across: npt.NDArray[np.bool_], up: npt.NDArray[np.bool_]) -> Floats:
    """(s, 2, 2) the crossings of each cell, joined."""
    number = np.full(across.shape, -1), np.full(up.shape, -1)
    number[0][across] = np.arange(across.sum())
    number[1][up] = across.sum() + np.arange(up.sum())
    sides = np.stack(  # (g-1, g-1, 4) the crossing on each side of a cell, -1 for none
        [number[0][:-1], number[0][1:], number[1][:, :-1], number[1][:, 1:]], axis=-1
    ).reshape(-1, 4)
    found = (sides >= 0).sum(axis=1)
    two = sides[found == 2]
    pairs = crossings[two[two >= 0].reshape(-1, 2)]
    more = sides[found > 2]
    spokes = [_to_middle(crossings[cell[cell >= 0]]) for cell in more]
    return np.concatenate([pairs.reshape(-1, 2, 2), *spokes])


def _to_middle(points: Floats) -> Floats:
    return np.stack([points, np.broadcast_to(points.mean(axis=0), points.shape)], axis=1)


def places(said: npt.NDArray[np.object_], actions: list[Hashable]) -> npt.NDArray[np.intp]:
    """(m,) place of each action among those known, which new ones join at the end."""
    known = {action: place for place, action in enumerate(actions)}
    for action in dict.fromkeys(said.tolist()):
        if action not in known:
            known[action] = len(actions)
            actions.append(action)
    return np.fromiter((known[action] for action in said.tolist()), np.intp, len(said))


def chained(pieces: Floats) -> list[Floats]:
    """Pieces from point to point as lines that are as long as they can be without a fork.

    >>> [line.tolist() for line in chained(np.array([[[0, 0], [1, 1]], [[2, 0], [1, 1]]]))]
    [[[0, 0], [1, 1], [2, 0]]]
    """
    points, ends = np.unique(pieces.reshape(-1, 2), axis=0, return_inverse=True)
    ends = ends.reshape(-1, 2)
    at: list[set[int]] = [set() for _ in points]
    for piece, (a, b) in enumerate(ends.tolist()):
        at[a].add(piece)
        at[b].add(piece)
    forks = [p for p, here in enumerate(at) if len(here) != 2]
    lines = []
    for start in (*forks, *range(len(points))):  # open lines first; then whatever is left is round
        while at[start]:
            lines.append(points[_walk(start, ends, at, set(forks))])
    return lines


def _walk(start: int, ends: npt.NDArray[Any], at: list[set[int]], forks: set[int]) -> list[int]:
    """Points from one on, to the next fork or until there is no way on; pieces are used up."""
    way = [start]
    while at[way[-1]] and (len(way) == 1 or way[-1] not in forks):
        piece = min(at[way[-1]])
        a, b = ends[piece].tolist()
        at[a].discard(piece)
        at[b].discard(piece)
        way.append(b if a == way[-1] else a)
    return way
