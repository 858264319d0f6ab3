"""Learning curve of a comparison: whether more rows would help.

Moments of folds add, so a model fitted to one, two, four or eight of ten folds costs no further
reading of the rows. Each fold is held out in turn, and the next m folds are the training folds:

    train(f, m) = part_{f+1} + ... + part_{f+m}   (modulo F),   m = 1, 2, 4, 8 and F - 1

The curve is that of the best compared model that is fitted to moments and has only fixed options.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from discriminant.assessment.classifier_outputs import RuleScorer
from discriminant.assessment.resampling.folds import (
    MemoryFolds,
    PartitionedFolds,
    drop_empty_classes,
    restrict_prior,
    sample_rows,
)
from discriminant.errors import DiscriminantError, capture_warnings
from discriminant.posterior import gives_posterior
from discriminant.report.fact_types import LearningCurveFacts
from discriminant.report.format import count_with_noun, fixed, percent, quoted
from discriminant.table.blocks import Floats

if TYPE_CHECKING:
    from discriminant.study.compare import ComparisonRun
    from discriminant.study.comparison import Comparison
    from discriminant.study.models import ModelResult

_HELD_ROWS = 2_000  # rows of each fold that are scored
_STEPS = (0.1, 0.2, 0.4, 0.8)
_CLEAR = 0.01  # least relative gain of the last doubling for which more rows are recommended


def learning_curve(run: ComparisonRun, comparison: Comparison) -> LearningCurveFacts | None:
    """Return held-out measures by training size; None without moments or if folds are few."""
    folded = run.folded
    sums = folded.parts if isinstance(folded, PartitionedFolds) else folded.sums
    result = _model(comparison)
    F = len(sums)
    if result is None or F < 5 or run.forward or any(not part.rows.any() for part in sums):
        return None
    estimator = result.model.make()
    if not sums[0].has(estimator.detail):
        return None
    counts = sorted({max(1, round(share * F)) for share in _STEPS} | {F - 1})
    points = []
    for m in counts:
        with capture_warnings():
            try:
                points.append(_point(run.in_memory, sums, estimator, m, run.seed))
            except DiscriminantError:
                continue  # too few rows for this model
    if len(points) < 2:
        return None
    rows = [round(float(sum(part.rows.sum() for part in sums)) * m / F) for m in counts]
    rows = rows[len(rows) - len(points) :]
    losses = np.array([loss for loss, _ in points])
    errors = [float(error.mean()) for _, error in points]
    return LearningCurveFacts(
        label=result.title,
        share=[m / F for m in counts[len(counts) - len(points) :]],
        rows=rows,
        error=list(errors),
        log_loss=[float(value) for value in losses.mean(axis=1)],
        text=_text(result.title, rows, losses, errors)
        + _difference_from_table(result, errors[-1], comparison.repeats),
    )


def _model(comparison: Comparison) -> ModelResult | None:
    """Return the best model that is fitted to moments and has no hyperparameter to choose."""
    able = [
        result
        for result in comparison.results
        if result.value("log_loss") is not None
        and not result.model.tuning
        and result.model.basis is None
        and result.model.moment_based
        and gives_posterior(result.model.make())
    ]
    return min(able, key=lambda result: result.value("log_loss") or 0.0, default=None)


def _point(
    folded: MemoryFolds, sums: Any, estimator: Any, m: int, seed: int
) -> tuple[Floats, Floats]:
    """Return the log loss and the error of each fold by the model fitted to the next `m` folds."""
    F, losses, errors = len(sums), [], []
    generator = np.random.default_rng(seed)
    for f in range(F):
        train = reduce(add, [sums[(f + 1 + i) % F] for i in range(m)])
        present = train.rows > 0
        own = drop_empty_classes(train)
        model = restrict_prior(estimator, present, folded.labels)
        scorer = RuleScorer(model, model.rule_from(own), np.flatnonzero(present), len(present))
        part = folded.parts[f]
        rows = sample_rows(np.arange(len(part)), _HELD_ROWS, generator)
        rows = rows[present[part.codes[rows]]]
        if not len(rows):
            continue
        logs, decided, _ = scorer.predict(part.features[rows])
        weight = np.ones(len(rows)) if part.weight is None else part.weight[rows]
        codes = part.codes[rows]
        losses.append(float(-np.average(logs[np.arange(len(rows)), codes], weights=weight)))
        errors.append(float(np.average(decided != codes, weights=weight)))
    return np.array(losses), np.array(errors)


def _text(title: str, rows: list[int], losses: Floats, errors: list[float]) -> str:
    """Return a sentence on whether more rows, or other features, would help."""
    mean = losses.mean(axis=1)
    half = int(np.argmin(np.abs(np.array(rows) - rows[-1] / 2)))
    gain = float(mean[half] - mean[-1])
    difference = losses[half] - losses[-1] if losses.shape[1] > 1 else np.zeros(1)
    error = float(difference.std(ddof=1) / np.sqrt(len(difference))) if len(difference) > 1 else 0.0
    figures = (
        f"For {quoted(title)}, the log loss goes from {fixed(mean[half], 3)} to "
        f"{fixed(mean[-1], 3)} from {rows[half]:,} to {count_with_noun(rows[-1], 'training row')}, "
        f"and the error from {percent(errors[half])} to {percent(errors[-1])}"
    )
    still = mean[-1] < mean[-2] or errors[-1] < errors[-2]
    if still and gain > max(_CLEAR * float(mean[-1]), 2.0 * error):
        return f"{figures}: more rows would probably help."
    if gain <= 0:
        reason = "The log loss does not fall"
    elif gain <= _CLEAR * float(mean[-1]):
        reason = f"The log loss falls by less than {percent(_CLEAR, 0)}"
    elif gain <= 2.0 * error:
        reason = (
            f"This fall of the log loss by {fixed(gain, 3)} is within chance (standard error "
            f"{fixed(error, 3)})"
        )
    else:
        reason = (
            f"At the end of the curve, from {rows[-2]:,} to {rows[-1]:,} rows, the log loss rises "
            f"by {fixed(float(mean[-1] - mean[-2]), 3)} and the error does not fall"
        )
    return f"{figures}. {reason}: no clear gain from more rows."


def _difference_from_table(result: ModelResult, error: float, repeats: int) -> str:
    """Return a sentence if the last point of the curve is not the error in the table of models."""
    table = result.value("error")
    if table is None or percent(table) == percent(error):
        return ""
    how = (
        f"which is the mean over {repeats} divisions into folds"
        if repeats > 1
        else "which counts every held-out row, while the curve is the mean of the folds"
    )
    return (
        f" The last point of the curve has an error of {percent(error)}, the table "
        f"{percent(table)}, {how}."
    )
