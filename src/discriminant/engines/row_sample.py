"""A sample of the rows of each class that does not depend on partitions or the order of rows.

The rows of a class with the smallest hashes of their content are sampled. Equal rows count as one
row with the sum of their weights. So the same rows are sampled from a table in memory and from the
same table in partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.moments.summary_base import Summable
from discriminant.table.blocks import Block, Codes, Floats, dense
from discriminant.table.hash_folds import row_hashes


@dataclass(frozen=True, slots=True, eq=False)
class RowSample(Summable):
    """At most `limit` different rows of each class, in the order of class and hash."""

    limit: int
    hashes: npt.NDArray[np.uint64]  # (n,)
    features: Floats  # (n, d)
    codes: Codes  # (n,)
    weight: Floats  # (n,)

    @classmethod
    def of(
        cls,
        limit: int,
        hashes: npt.NDArray[np.uint64],
        features: Any,
        codes: Codes,
        weight: Floats,
    ) -> RowSample:
        """Create from rows, of which some may be equal and some are left out."""
        order = np.lexsort((hashes, codes))
        new = np.ones(len(order), dtype=bool)
        new[1:] = (np.diff(codes[order]) != 0) | (hashes[order][1:] != hashes[order][:-1])
        first = order[new]
        totals: Floats = np.bincount(np.cumsum(new) - 1, weight[order]).astype(np.float64)
        rank = np.arange(len(first)) - np.searchsorted(codes[first], codes[first])
        chosen = rank < limit
        rows = first[chosen]
        return cls(limit, hashes[rows], features[rows], codes[rows], totals[chosen])

    def __add__(self, other: RowSample) -> RowSample:
        return RowSample.of(
            self.limit,
            np.concatenate([self.hashes, other.hashes]),
            np.concatenate([self.features, other.features]),
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.weight, other.weight]),
        )


@dataclass(frozen=True, slots=True)
class RowSampleReading:
    """Sample at most `limit` rows of each class."""

    limit: int
    width: int  # number of features
    classes: int
    seed: int = 0

    @property
    def summary_size(self) -> int:
        return self.limit * self.classes * self.width

    def read(self, block: Block) -> RowSample:
        weight = np.ones(len(block)) if block.weight is None else block.weight
        positive = np.flatnonzero(weight > 0)
        codes, weight = block.codes[positive].astype(np.intp), weight[positive]
        features = dense(block.features[positive]).astype(np.float64) + 0.0  # no negative zeros
        hashes = row_hashes(features, codes, seed=self.seed)
        return RowSample.of(self.limit, hashes, features, codes, weight)
