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
    N = len(criterion)
    rows = np.ones(N) if weight is None else weight
    generator = np.random.default_rng(seed)
    blocks = np.arange(N)
    if N > MAX_BLOCKS:
        blocks = generator.permutation(N) % MAX_BLOCKS
    n = min(N, MAX_BLOCKS)

    def block_sums(values: Floats) -> Floats:
        if n == N:
            return values
        sums = [np.bincount(blocks, column, minlength=n) for column in values.T]
        return np.column_stack(sums)

    counts = generator.multinomial(n, np.full(n, 1.0 / n), size=draws).astype(np.float64)
    sampled_weight = counts @ block_sums(rows[:, None])
    selected = select((counts @ block_sums(criterion * rows[:, None])) / sampled_weight)
    left = (counts == 0).astype(np.float64)
    each = np.arange(draws)
    corrected = {}
    for name, (losses, share) in measures.items():
        own = (rows * share)[:, None]
        total = (left @ block_sums(own))[:, 0]
        used = total > 0
        sums = left @ block_sums(np.where(own > 0, losses, 0.0) * own)
        means = sums[each[used], selected[used]] / total[used]
        if not len(means):
            continue
        low, high = np.quantile(means, (0.5 - level / 2, 0.5 + level / 2))
        corrected[name] = CorrectedLoss(float(means.mean()), float(low), float(high))
    return corrected
