"""Headline of a comparison: error and log loss of the selected model, corrected for its selection.

The selection is repeated on bootstrap samples of the held-out rows and measured on the other rows
(`assessment.resampling.selection_bias`). Each row counts once, even if the folds are repeated: its
loss is then the mean over the repetitions. If the user named the model, nothing was selected: the
figures are not corrected, and the bootstrap gives only the intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from discriminant.assessment.resampling.held_out_folds import HeldOutPredictions
from discriminant.assessment.resampling.selection_bias import RowBlocks, correct_sums, counted
from discriminant.assessment.resampling.stacking_weights import true_class_log
from discriminant.engines.local import threads_for
from discriminant.report.fact_types import HeadlineFacts
from discriminant.study.models import POOL, POOL_GAIN, ModelResult
from discriminant.table.blocks import Floats

_OPTIMISM_DRAWS = 200
_PIECE = 65_536  # rows of the Brier score at a time


def headline_of(
    selected: ModelResult,
    candidates: Sequence[ModelResult],
    by: str,
    *,
    rule: str,
    heavy_members: Collection[str],
    optimism: Callable[[str], float],
) -> HeadlineFacts | None:
    """Return the corrected measures, or None if the predictions were not stored.

    `heavy_members` and `optimism` are those of the comparison, which may replace the pool by a
    single model.
    """
    requested = len(candidates) == 1  # nothing was selected
    if selected not in candidates or by not in _MEASURES:
        return None
    # if losses are equal, the first is selected, as in `Comparison.choose`
    candidates = sorted(candidates, key=lambda result: result.model.simplicity)
    if any(result.predictions is None for result in candidates):
        return None
    held = selected.predictions
    assert held is not None
    known = ~np.isin(held.labels.astype(str), selected.unlearned_classes)[held.codes]
    loss = selected.value("log_loss")
    blocks = RowBlocks.of(len(held.codes), held.weight)
    every = np.ones(len(held.codes))
    of_error = _block_sums(candidates, "error", blocks)
    measures = {"error": (of_error, blocks.sums(every))}
    criterion = of_error
    if by != "error":
        share = known.astype(np.float64) if by == "log_loss" and not known.all() else None
        criterion = _block_sums(candidates, by, blocks, share)
    if all(result.value("log_loss") is not None for result in candidates):
        share = None if known.all() else known.astype(np.float64)
        losses = criterion
        if by != "log_loss":
            losses = _block_sums(candidates, "log_loss", blocks, share)
        measures["log_loss"] = (losses, blocks.sums(every if share is None else share))
    corrected = correct_sums(
        criterion,
        measures,
        _Selection(candidates, by, rule=rule, heavy_members=heavy_members, optimism=optimism),
        blocks,
    )
    error = corrected["error"]
    raw_error = float(selected.facts["error"] or 0.0)
    # of a model that was named, the mean over the samples differs from the raw figure by chance
    # the correction of a selected model never improves a figure, which only chance would do
    shift = raw_error - error.value if requested else max(raw_error - error.value, 0.0)
    facts = HeadlineFacts(
        error=error.value + shift,
        error_low=max(error.low + shift, 0.0),
        error_high=min(error.high + shift, 1.0),
        error_raw=raw_error,
        log_loss=None,
        log_loss_low=None,
        log_loss_high=None,
        log_loss_raw=loss,
        method=_method(requested),
    )
    if "log_loss" in corrected and loss is not None:
        log = corrected["log_loss"]
        shift = loss - log.value if requested else max(loss - log.value, 0.0)
        facts["log_loss"] = log.value + shift
        facts["log_loss_low"] = max(log.low + shift, 0.0)
        facts["log_loss_high"] = log.high + shift
    return facts


def selection_optimism(candidates: Sequence[ModelResult], by: str) -> float:
    """Return by how much the criterion of the best model is too low on average.

    `candidates` are sorted, the best first. For each bootstrap sample, the model that is best on
    the drawn rows is measured on the rows that were not drawn. The result is the mean of these
    losses minus the loss of the first candidate. It is 0 without stored predictions, or for a
    criterion that is not a mean over rows.
    """
    if by not in _MEASURES or any(result.predictions is None for result in candidates):
        return 0.0
    held = candidates[0].predictions
    assert held is not None
    known = ~np.isin(held.labels.astype(str), candidates[0].unlearned_classes)[held.codes]
    blocks = RowBlocks.of(len(held.codes), held.weight, draws=_OPTIMISM_DRAWS)
    share = None if known.all() else known.astype(np.float64)
    sums = _block_sums(candidates, by, blocks, share)
    criterion = sums
    if share is not None and by != "log_loss":
        criterion = _block_sums(candidates, by, blocks)
    shares = blocks.sums(np.ones(len(known)) if share is None else share)
    best = correct_sums(
        criterion, {"criterion": (sums, shares)}, lambda means: means.argmin(axis=1), blocks
    )
    first = correct_sums(
        criterion[:, :1],
        {"criterion": (sums[:, :1], shares)},
        lambda means: np.zeros(len(means), dtype=np.intp),
        blocks,
    )
    return max(best["criterion"].value - first["criterion"].value, 0.0)


def _method(requested: bool) -> str:
    if requested:
        return (
            "The model was not selected by these rows, so its figures need no correction; the "
            "intervals come from a bootstrap of the held-out rows."
        )
    return (
        "The best of several models looks better than it is, so the figures at the top of the page "
        "are corrected: the selection is repeated on bootstrap samples of the held-out rows and "
        "measured on the rows that were not drawn."
    )


class _Selection:
    """The rule by which a comparison selects, applied to mean losses of bootstrap samples."""

    def __init__(
        self,
        candidates: Sequence[ModelResult],
        by: str,
        *,
        rule: str,
        heavy_members: Collection[str],
        optimism: Callable[[str], float],
    ) -> None:
        self.one_se = rule == "one_se"
        self.simplicity = np.array([result.model.simplicity for result in candidates])
        self.standard_error = np.array(
            [result.standard_error.get(by, 0.0) for result in candidates]
        )
        names = [result.name for result in candidates]
        self.heavy = np.array([name in heavy_members for name in names])
        self.pool = names.index(POOL) if POOL in names and len(names) > 1 else None
        self.optimism = 0.0 if self.pool is None else optimism(by)

    def __call__(self, losses: Floats) -> npt.NDArray[np.intp]:
        """Return the selected model of each sample, (B,), from the mean losses (B, M)."""
        each = np.arange(len(losses))
        best = losses.argmin(axis=1)
        selected = best
        if self.one_se:
            limit = losses[each, best] + self.standard_error[best]
            near = losses <= limit[:, None]
            rank = np.where(near, self.simplicity, np.iinfo(np.intp).max)
            simplest = near & (rank == rank.min(axis=1)[:, None])
            selected = np.where(simplest, losses, np.inf).argmin(axis=1)
        if self.pool is None:
            return np.asarray(selected)
        single = losses.copy()
        single[:, self.pool] = np.inf
        place = single.argmin(axis=1)
        limit = POOL_GAIN * losses[:, self.pool]
        replaces = (losses[each, place] + self.optimism <= limit) & self.heavy[place]
        pooled = np.where(replaces, place, self.pool)
        return np.where(selected == self.pool, pooled, selected) if self.one_se else pooled


def _block_sums(
    candidates: Sequence[ModelResult], by: str, blocks: RowBlocks, share: Floats | None = None
) -> Floats:
    """Return the (n, M) sums over blocks of the losses of the rows, each counted by its share.

    The loss of a row is its mean over the repetitions of the folds.
    """
    measure = _MEASURES[by]

    def sums(result: ModelResult) -> Floats:
        assert result.predictions is not None
        losses = measure(result.predictions)
        if result.repetitions:
            runs = [losses, *(measure(held) for held in result.repetitions)]
            losses = np.mean(runs, axis=0)
        return blocks.sums(counted(losses, share))

    with ThreadPoolExecutor(threads_for(blocks.rows * len(candidates))) as pool:
        return np.column_stack(list(pool.map(sums, candidates)))


def _errors(held: HeldOutPredictions) -> Floats:
    return held.wrong.astype(np.float64)


def _log_losses(held: HeldOutPredictions) -> Floats:
    losses: Floats = -true_class_log(held.log_posterior, held.codes)
    return losses


def _brier_scores(held: HeldOutPredictions) -> Floats:
    scores = np.empty(len(held.codes))
    for start in range(0, len(scores), _PIECE):
        rows = slice(start, start + _PIECE)
        proba = np.exp(held.log_posterior[rows])
        proba[np.arange(len(proba)), held.codes[rows]] -= 1.0
        scores[rows] = (proba * proba).sum(axis=1)
    return scores


_MEASURES = {"log_loss": _log_losses, "error": _errors, "brier": _brier_scores}
