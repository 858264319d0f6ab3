"""Products of rows, each weighed as whoever iterates over them wishes.

For rows u about an anchor, followed by a 1, and numbers that each row has by its place in the
table,

    gram = sum of curve u u'        pull = sum of u pull'

`gram` has its lower triangle only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discriminant.moments.anchor import Anchor
from discriminant.table.schema import Block, Floats, dense

_TILE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """Sums of products of rows and a 1. Sums of parts add."""

    gram: Floats  # (d + 1, d + 1) sum of curve u u', or (0, 0)
    pull: Floats  # (d + 1, m) sum of u pull

    def __add__(self, other: Products) -> Products:
        return Products(self.gram + other.gram, self.pull + other.pull)

    def __radd__(self, other: object) -> Products:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented


@dataclass(frozen=True, slots=True, eq=False)
class ProductsReading:
    """Read sums of products of rows about an anchor, with weights by number of row."""

    anchor: Anchor
    pull: Floats  # (N, m)
    curve: Floats | None = None  # (N,) not negative

    @property
    def numbers(self) -> int:
        """Size of the summary."""
        return (len(self.anchor.unit) + 1) ** 2

    def read(self, block: Block) -> Products:
        """The sums of one block, tile by tile."""
        d = len(self.anchor.unit)
        size = max(_TILE_BYTES // (8 * d), d, 64)
        curved = 0 if self.curve is None else d + 1
        total = Products(np.zeros((curved, curved)), np.zeros((d + 1, self.pull.shape[1])))
        for lo in range(0, len(block), size):
            self._add(block.rows(lo, min(lo + size, len(block))), total)
        return total

    def _add(self, tile: Block, total: Products) -> None:
        offsets = self.anchor.offsets(dense(tile.features))
        rows = slice(tile.start, tile.start + len(tile))
        pull = self.pull[rows]
        total.pull[:-1] += offsets.T @ pull
        total.pull[-1] += pull.sum(axis=0)
        if self.curve is None:
            return
        curve = self.curve[rows]
        active = np.flatnonzero(curve)
        if 4 * len(active) < 3 * len(curve):
            offsets, curve = offsets[active], curve[active]
        root = np.sqrt(curve)
        heavy = offsets * root[:, None]
        total.gram[:-1, :-1] += heavy.T @ heavy
        total.gram[-1, :-1] += root @ heavy
        total.gram[-1, -1] += curve.sum()
