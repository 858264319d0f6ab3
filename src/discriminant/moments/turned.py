"""Rows turned into other coordinates as they are read.

    z = [u, 1] A        u offsets of the features, A a frame (d+1, q)

Sums of products of columns that nearly depend on one another lose the square of what the columns
themselves lose. Sums of z lose it once: whatever is read of z belongs to rows that differ from the
given ones by their own rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discriminant.moments.anchor import Anchor
from discriminant.moments.slope import tile_rows
from discriminant.table.schema import Block, Floats


@dataclass(frozen=True, slots=True, eq=False)
class TurnedReading:
    """Read z in place of the features."""

    reading: Any  # of q columns, which are their own offsets
    features: tuple[str, ...]  # d names, for messages
    anchor: Anchor  # of the features
    frame: Floats  # (d+1, q) A

    @property
    def numbers(self) -> int:
        """Size of the summary."""
        return int(self.reading.numbers)

    def read(self, block: Block) -> Any:
        """What the reading finds in the rows of one block, turned."""
        size = tile_rows(sum(self.frame.shape))
        starts = range(0, max(len(block), 1), size)
        return sum(
            self.reading.read(self._turned(block.rows(lo, min(lo + size, len(block)))))
            for lo in starts
        )

    def _turned(self, tile: Block) -> Block:
        found = np.dot(self.anchor.offsets(tile.features), self.frame[:-1]) + self.frame[-1]
        if not np.isfinite(found).all():
            tile.blame(self.features)
        return replace(tile, features=found)
