"""Section 2 of the report, comparison: models on held-out rows, and the selected model.

Every measure is computed on held-out rows. Errors have Wilson's and AUCs have DeLong's intervals;
both ignore the variation between fitted models. Unless a model is named, the model with the lowest
log loss is selected: its probabilities are the most reliable, and decisions depend on
probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from discriminant.assessment.ranking.auc import AUC, auc
from discriminant.assessment.resampling.compare import mcnemar
from discriminant.assessment.resampling.held_out_folds import HeldOutPredictions
from discriminant.assessment.resampling.rda_grid import Grid
from discriminant.errors import DiscriminantError
from discriminant.report.fact_types import ComparisonFacts, ModelFacts, SurfaceFacts
from discriminant.report.format import count_with_noun, name_list, percent

_LEVEL = 0.05  # significance level
NO_PROBABILITIES = (
    "The model gives scores but no probabilities: no log loss or calibration is available."
)
INFINITE_LOSS = "The true class of some rows had probability 0, so its log loss is infinite."


def comparison_section(
    held: Mapping[str, HeldOutPredictions],
    *,
    chosen: str | None = None,
    why: str | None = None,
    titles: Mapping[str, str] | None = None,
    seconds: Mapping[str, float] | None = None,
    notes: Mapping[str, str] | None = None,
    surface: Grid | None = None,
    level: float = 0.95,
) -> ComparisonFacts:
    """Return the comparison of models.

    Parameters
    ----------
    held
        Result of `cross_validate` or `leave_one_out` for each model, on the same rows.
    chosen
        Name of the selected model (default: the one with the lowest log loss).
    why
        Reason for the selection (default: written from the numbers).
    titles, seconds, notes
        Dictionaries by name of the model: title on the page, seconds taken, and a note.
    surface
        Losses of RDA: the result of `rda_grid`, or `RDA.cv_`.
    """
    selected = _least_loss(held) if chosen is None else chosen
    models = [
        _model(
            name,
            predictions,
            level=level,
            chosen=name == selected,
            title=(titles or {}).get(name, name),
            seconds=(seconds or {}).get(name),
            note=(notes or {}).get(name, ""),
        )
        for name, predictions in held.items()
    ]
    first = next(iter(held.values()))
    section = ComparisonFacts(
        models=models,
        why=_why(held, selected, models) if why is None else why,
        folds=_folds(first),
        level=level,
        baseline=_baseline(first),
    )
    if surface is not None:
        section["surface"] = surface_facts(surface)
    return section


def surface_facts(grid: Grid) -> SurfaceFacts:
    """Return the loss at each pooling and shrinkage, with the prior of the best candidate."""
    p, s, r = grid.best()
    return SurfaceFacts(
        pooling=[float(value) for value in grid.pooling],
        shrinkage=[
            str(value) if isinstance(value, str) else f"{value:g}" for value in grid.shrinkage
        ],
        error=grid.error[:, :, r].tolist(),
        log_loss=grid.log_loss[:, :, r].tolist(),
        best=[p, s],
    )


def held_auc(held: HeldOutPredictions, level: float | None = 0.95) -> AUC | None:
    """Return the AUC of the second of two classes, or the mean one-vs-rest AUC."""
    logs, present = held.log_posterior, np.bincount(held.codes, minlength=len(held.labels))
    if (present == 0).any():
        return None
    scores = log_odds(logs) if logs.shape[1] == 2 else logs
    try:
        return auc(held.codes, scores, level, sample_weight=held.weight)
    except DiscriminantError:
        return None


def log_odds(logs: Any) -> Any:
    """Return the log odds of the second of two classes, (N,).

    Log odds are infinite where the probability is 0 or 1.
    """
    with np.errstate(invalid="ignore"):
        return logs[:, 1] - logs[:, 0]


def _model(
    name: str,
    held: HeldOutPredictions,
    *,
    level: float,
    chosen: bool,
    title: str,
    seconds: float | None,
    note: str,
) -> ModelFacts:
    tally = held.tally
    error, area = tally.interval("error", level=level), held_auc(held, level)
    known = held.probabilistic
    notes = [
        note,
        INFINITE_LOSS if math.isinf(tally.log_loss) else "",
        "" if known else NO_PROBABILITIES,
    ]
    return ModelFacts(
        name=name,
        label=title,
        error=float(error.value),
        error_low=float(error.low),
        error_high=float(error.high),
        log_loss=tally.log_loss if known else None,
        auc=None if area is None else area.value,
        auc_low=None if area is None else area.low,
        auc_high=None if area is None else area.high,
        brier=tally.brier if known else None,
        calibration=tally.calibration_error() if known else None,
        seconds=seconds,
        note=" ".join(filter(None, notes)),
        chosen=chosen,
    )


def _least_loss(held: Mapping[str, HeldOutPredictions]) -> str:
    """Return the name of the model with the lowest log loss.

    A model without probabilities is returned only if no model has probabilities.
    """

    def rank(name: str) -> tuple[bool, float, float]:
        one = held[name]
        return not one.probabilistic, one.log_loss if one.probabilistic else 0.0, one.error

    return min(held, key=rank)


def _folds(held: HeldOutPredictions) -> str:
    folds = int(held.fold.max()) + 1
    return "leave-one-out" if folds == len(held.codes) else f"{folds} folds"


def _baseline(held: HeldOutPredictions) -> float:
    weight = np.bincount(held.codes, held.weight, minlength=len(held.labels))
    return float(1.0 - weight.max() / weight.sum())


def _why(held: Mapping[str, HeldOutPredictions], selected: str, models: list[ModelFacts]) -> str:
    own = next(model for model in models if model["chosen"])
    lowest = selected == _least_loss(held)
    reason = (
        "has the lowest log loss of all models on held-out rows"
        if lowest and len(models) > 1 and held[selected].probabilistic
        else "was selected as requested"
    )
    share = percent(own["error"]) if own["error"] else "none"
    mistakes = f"It misclassified {share} of these rows."
    tests = [
        (model["label"], *_paired(held[selected], held[model["name"]]))
        for model in models
        if not model["chosen"]
    ]
    return " ".join(
        filter(None, [f"{own['label']} {reason}.", mistakes, describe_error_tests(tests)])
    )


def describe_error_tests(tests: Sequence[tuple[str, float, float]]) -> str:
    """Return a sentence on whether the errors of other models differ from the selected model's.

    `tests` holds, for each other model, its title, how many more rows the selected model classifies
    correctly, and McNemar's p-value. The level is Bonferroni-corrected.

    >>> describe_error_tests([("QDA", 3.0, 0.4)])
    "Its error does not differ significantly from that of QDA (McNemar's test at level 0.05)."
    """
    if not tests:
        return ""
    level = _LEVEL / len(tests)
    better = [title for title, gain, p in tests if gain < 0 and p < level]
    alike = [title for title, _, p in tests if p >= level]
    corrected = f", Bonferroni-corrected for {len(tests)} comparisons" if len(tests) > 1 else ""
    test = f"(McNemar's test at level {_LEVEL}{corrected})"
    if better:
        return f"By error alone, {name_list(better)} did significantly better {test}."
    if not alike:
        return f"Its error is significantly lower than that of every other model {test}."
    them = name_list(alike) if len(alike) <= 3 else count_with_noun(len(alike), "other model")
    return f"Its error does not differ significantly from that of {them} {test}."


def _paired(own: HeldOutPredictions, other: HeldOutPredictions) -> tuple[float, float]:
    """Return how many more rows the first model predicts correctly, and McNemar's p-value."""
    right = [held.decided == held.codes for held in (own, other)]
    weight = np.ones(len(own.codes)) if own.weight is None else own.weight
    b, c = float(weight[right[0] & ~right[1]].sum()), float(weight[right[1] & ~right[0]].sum())
    return b - c, mcnemar(round(b), round(c), exact=True)[2]
