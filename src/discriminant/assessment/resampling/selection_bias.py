"""Measures of a selected model, corrected for its selection: bootstrap bias-corrected CV.

The best of M models on held-out rows looks better than it is, because it was selected by the same
rows. Bootstrap bias-corrected cross-validation (Tsamardinos, Greasidou and Borboudakis 2018,
Machine Learning 107) repeats the selection without fitting any model again. With the loss L_im of
model m on held-out row i, for b = 1 .. B:

    draw N rows with replacement         c_i = how often row i was drawn
    select on the drawn rows             m_b = selection of  sum_i c_i L_im / sum_i c_i
    measure on the rows not drawn        e_b = mean of L_im_b over the rows with c_i = 0

The corrected loss is the mean of e_b, and the ends of its interval are quantiles of e_b. About 37%
of the rows are not drawn, so the interval is wider than that of a fixed model on N rows. The
additional width accounts for the variation between training sets, which held-out rows alone do not
show.

If there are more than `MAX_BLOCKS` rows, they are first summed in this number of blocks of random
rows, and blocks are drawn instead of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from discriminant.table.blocks import Floats

MAX_BLOCKS = 5_000
_DRAWS = 500

Selection = Callable[[Floats], npt.NDArray[np.intp]]  # (B, M) mean losses to (B,) selected models


@dataclass(frozen=True, slots=True)
class CorrectedLoss:
    """Mean loss of the selected model on rows that were not used to select it."""

    value: float
    low: float
    high: float


def correct_losses(
    criterion: Floats,
    measures: Mapping[str, tuple[Floats, Floats]],
    select: Selection,
    *,
    weight: Floats | None = None,
    level: float = 0.95,
    draws: int = _DRAWS,
    seed: int = 0,
) -> dict[str, CorrectedLoss]:
    """Return measures of the selected model, corrected for the selection.

    Parameters
    ----------
    criterion
        (N, M) loss of each row by which models are selected.
    measures
        Losses (N, M) to correct, each with an array (N,): the share of each row that counts in the
        measure, 0 for rows that the measure leaves out.
    select
        Function from mean losses (B, M) to the selected models (B,).
    weight
        (N,) weights of the rows.
    level
        Level of the intervals.
    draws
        Number of bootstrap samples.
    seed
        Seed of the bootstrap.

    Examples
    --------
    Twenty models that guess: the best of them seems better than 0.5, but is not.

    >>> wrong = np.random.default_rng(0).random((100, 20)) < 0.5
    >>> least = lambda losses: losses.argmin(axis=1)
    >>> losses = wrong.astype(float)
    >>> corrected = correct_losses(losses, {"error": (losses, np.ones(100))}, least)["error"]
    >>> float(losses.mean(axis=0).min()), round(corrected.value, 1)
    (0.43, 0.5)
    """
    blocks = RowBlocks.of(len(criterion), weight, draws=draws, seed=seed)
    sums = {
        name: (blocks.sums_of_columns(losses, share), blocks.sums(share))
        for name, (losses, share) in measures.items()
    }
    return correct_sums(blocks.sums_of_columns(criterion), sums, select, blocks, level=level)


@dataclass(frozen=True, slots=True, eq=False)
class RowBlocks:
    """Rows, or blocks of random rows if there are many, and the bootstrap samples of them."""

    rows: int  # N
    block: npt.NDArray[np.intp] | None  # (N,) block of each row; None: each row is a block
    weight: Floats | None  # (N,) weights of the rows
    counts: Floats  # (B, n) how often each block is in a sample

    @classmethod
    def of(
        cls, rows: int, weight: Floats | None, *, draws: int = _DRAWS, seed: int = 0
    ) -> RowBlocks:
        """Divide the rows into blocks and draw the bootstrap samples."""
        generator, block = np.random.default_rng(seed), None
        if rows > MAX_BLOCKS:
            block = generator.permutation(rows) % MAX_BLOCKS
        n = min(rows, MAX_BLOCKS)
        counts = generator.multinomial(n, np.full(n, 1.0 / n), size=draws).astype(np.float64)
        return cls(rows, block, weight, counts)

    def sums(self, values: Floats) -> Floats:
        """Return the weighted sum of the values (N,) of each block, (n,)."""
        weighted = values
        if self.weight is not None:  # a row of weight 0 may have an infinite loss
            weighted = np.where(self.weight > 0, values, 0.0) * self.weight
        if self.block is None:
            return weighted
        return np.asarray(
            np.bincount(self.block, weighted, minlength=self.counts.shape[1]), dtype=np.float64
        )

    def sums_of_columns(self, losses: Floats, share: Floats | None = None) -> Floats:
        """Return the sums of every column of losses (N, M), each row counted by its share."""
        return np.column_stack([self.sums(counted(column, share)) for column in losses.T])


def counted(losses: Floats, share: Floats | None) -> Floats:
    """Return losses times shares; a row whose share is 0 may have an infinite loss."""
    return losses if share is None else np.where(share > 0, losses, 0.0) * share


def correct_sums(
    criterion: Floats,
    measures: Mapping[str, tuple[Floats, Floats]],
    select: Selection,
    blocks: RowBlocks,
    *,
    level: float = 0.95,
) -> dict[str, CorrectedLoss]:
    """Return measures of the selected model from sums of the blocks; see `correct_losses`.

    Parameters
    ----------
    criterion
        (n, M) sums of the loss by which models are selected.
    measures
        Sums (n, M) of losses to correct, each with the sums (n,) of the shares of the rows.
    select
        Function from mean losses (B, M) to the selected models (B,).
    blocks
        The blocks and the bootstrap samples.
    level
        Level of the intervals.
    """
    counts = blocks.counts
    sampled_weight = counts @ blocks.sums(np.ones(blocks.rows))[:, None]
    selected = select((counts @ criterion) / sampled_weight)
    left = (counts == 0).astype(np.float64)
    each = np.arange(len(counts))
    corrected = {}
    for name, (losses, share) in measures.items():
        total = (left @ share[:, None])[:, 0]
        used = total > 0
        means = (left @ losses)[each[used], selected[used]] / total[used]
        if not len(means):
            continue
        low, high = np.quantile(means, (0.5 - level / 2, 0.5 + level / 2))
        corrected[name] = CorrectedLoss(float(means.mean()), float(low), float(high))
    return corrected
