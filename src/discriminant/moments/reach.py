"""How far from an origin rows of any weight go, column by column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discriminant.table.schema import Block, Floats, dense


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """The largest distance in each column; of two sets of rows the larger."""

    furthest: Floats  # (m,)
    lightest: float = np.inf  # the least weight of a row that counts

    def __add__(self, other: Reach) -> Reach:
        """Of the rows of both."""
        return Reach(np.maximum(self.furthest, other.furthest), min(self.lightest, other.lightest))


@dataclass(frozen=True, slots=True, eq=False)
class ReachReading:
    """Look at some columns, responses after the features."""

    origin: Floats  # (m,) of the columns looked at
    columns: npt.NDArray[np.intp]  # (m,)

    @property
    def numbers(self) -> int:
        """Size of the summary."""
        return len(self.columns) + 1

    def read(self, block: Block) -> Reach:
        """The reach of a block."""
        values = dense(block.features)
        if block.responses is not None:
            values = np.hstack([values, block.responses])
        lightest = 1.0
        if block.weight is not None:
            some = block.weight > 0
            values, lightest = values[some], float(block.weight.min(where=some, initial=np.inf))
        with np.errstate(over="ignore"):
            apart = np.abs(values[:, self.columns] - self.origin)
        most = np.finfo(np.float64).max
        return Reach(np.minimum(apart.max(axis=0, initial=0.0), most), lightest)
