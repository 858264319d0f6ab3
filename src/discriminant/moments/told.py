"""How many rows a linear rule gives to each class.

    told_k = number of rows of positive weight whose largest score is that of class k

Of equal scores the first counts, as in a prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from discriminant.errors import MomentsMismatchError
from discriminant.moments.anchor import Anchor
from discriminant.table.schema import Block, Floats

_TILE = 1 << 17  # scores worked out at a time, so that they stay in the cache


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """Rows in d features given to each of K classes by one rule."""

    features: tuple[str, ...]  # d names
    told: npt.NDArray[np.int64]  # (K,)

    @classmethod
    def empty(cls, features: Sequence[str], classes: int) -> Told:
        """Of no rows."""
        return cls(tuple(features), np.zeros(classes, dtype=np.int64))

    def __add__(self, other: Told) -> Told:
        """Over the rows of both, told by the same rule."""
        if self.features != other.features:
            raise MomentsMismatchError.of_features(self.features, other.features)
        return replace(self, told=self.told + other.told)

    def __radd__(self, other: object) -> Told:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented


@dataclass(frozen=True, slots=True, eq=False)
class ToldReading:
    """Tell rows by a linear rule and count."""

    features: tuple[str, ...]  # d names
    anchor: Anchor
    coef: Floats  # (K, d) for offsets
    intercept: Floats  # (K,)

    @property
    def numbers(self) -> int:
        """Size of the summary."""
        return len(self.intercept)

    def read(self, block: Block) -> Told:
        """Over the rows of one block."""
        K = len(self.intercept)
        size = max(_TILE // K, 64)
        told = np.zeros(K, dtype=np.int64)
        for lo in range(0, len(block), size):
            tile = block.rows(lo, min(lo + size, len(block)))
            scores = self.anchor.offsets(tile.features) @ self.coef.T
            scores += self.intercept
            chosen = scores.argmax(axis=1)
            if tile.weight is not None:
                chosen = chosen[tile.weight > 0]
            told += np.bincount(chosen, minlength=K)
        return Told(self.features, told)
