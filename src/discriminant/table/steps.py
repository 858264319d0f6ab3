"""What is done to the rows of a part once they are features: steps of a plan, one after the other.

    ByRow (table.dealing)    say which fold each row goes to
    Without                  leave one fold out: the training part of a cross-validation
    Weighed                  count the rows of each class so many times
    Recoded                  leave out classes that no row has any more
    Expanding                products and kernels of the features

A step is a pure function of a block, and can be pickled: it travels with the plan to the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discriminant.table.schema import Block, Codes, Floats, dense


@dataclass(frozen=True, slots=True)
class Without:
    """The rows of all folds but one."""

    fold: int

    def __call__(self, block: Block) -> Block:
        """Its rows that stay."""
        assert block.fold is not None
        return block.take(np.flatnonzero(block.fold != self.fold))


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """Every row as often as its class says."""

    factors: Floats  # (K,)

    def __call__(self, block: Block) -> Block:
        """The block with other weights."""
        each = self.factors[block.codes]
        return replace(block, weight=each if block.weight is None else each * block.weight)


@dataclass(frozen=True, slots=True, eq=False)
class Recoded:
    """Other codes for the classes."""

    codes: Codes  # (K,) the new code of each class; whatever, of one without rows

    def __call__(self, block: Block) -> Block:
        """The block with other codes."""
        return replace(block, codes=self.codes[block.codes])


@dataclass(frozen=True, slots=True, eq=False)
class Expanding:
    """Features of features."""

    basis: Any  # a basis of `table.basis`

    def __call__(self, block: Block) -> Block:
        """The block in more features."""
        return replace(block, features=self.basis.expand(dense(block.features)))
