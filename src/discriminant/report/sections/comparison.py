"""Section 2: how models did on rows that they had not seen, which one is taken, and why.

Every measure is of held-out rows. Intervals of errors are Wilson's and those of AUCs DeLong's; both
take the model as it is. Unless one is named, the model of the least log loss is taken: it is the
one whose probabilities can be believed most, and a decision needs these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from discriminant.assessment.ranking.auc import AUC, auc
from discriminant.assessment.resampling.compare import mcnemar
from discriminant.assessment.resampling.cross_validate import HeldOutPredictions
from discriminant.assessment.resampling.rda_grid import Grid
from discriminant.errors import DiscriminantError
from discriminant.report.fact_types import ComparisonFacts, ModelFacts, SurfaceFacts
from discriminant.report.format import counted, percent, several

_ALIKE = 0.05  # level below which two models are told apart


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
    """The table of models.

    Parameters
    ----------
    held
        {name: what `cross_validate` or `leave_one_out` returned}, of the same rows.
    chosen
        Name of the model taken; None: that of the least log loss.
    why
        A sentence; None: one is written from the numbers.
    titles, seconds, notes
        {name: ...}: what a model is called on the page, how long it took, what to know of it.
    surface
        What `rda_grid` returned, or `RDA.cv_`.
    """
    taken = _least_loss(held) if chosen is None else chosen
    models = [
        _model(
            name,
            found,
            level=level,
            chosen=name == taken,
            title=(titles or {}).get(name, name),
            seconds=(seconds or {}).get(name),
            note=(notes or {}).get(name, ""),
        )
        for name, found in held.items()
    ]
    first = next(iter(held.values()))
    section = ComparisonFacts(
        models=models,
        why=_why(held, taken, models) if why is None else why,
        folds=_folds(first),
        level=level,
        baseline=_baseline(first),
    )
    if surface is not None:
        section["surface"] = surface_facts(surface)
    return section


def surface_facts(grid: Grid) -> SurfaceFacts:
    """Losses over pooling and shrinkage, under the prior of the best candidate."""
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
    """AUC of held-out log posteriors: of the second class, or the mean of each against the rest."""
    logs, present = held.log_posterior, np.bincount(held.codes, minlength=len(held.labels))
    if (present == 0).any():
        return None
    scores = log_odds(logs) if logs.shape[1] == 2 else logs
    try:
        return auc(held.codes, scores, level, sample_weight=held.weight)
    except DiscriminantError:
        return None


def log_odds(logs: Any) -> Any:
    """(N,) log odds of the second of two classes; a class ruled out is infinitely far."""
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
    endless = "Some rows were of a class that was given probability 0, so its log loss is infinite."
    none = "It gives no probabilities, only classes."
    known = held.probabilistic
    notes = [note, endless if math.isinf(tally.log_loss) else "", "" if known else none]
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
    """Name of the model of least log loss; one without probabilities only if none has any."""

    def rank(name: str) -> tuple[bool, float, float]:
        one = held[name]
        return not one.probabilistic, one.log_loss if one.probabilistic else 0.0, one.error

    return min(held, key=rank)


def _folds(held: HeldOutPredictions) -> str:
    folds = int(held.fold.max()) + 1
    return "leaving out one row at a time" if folds == len(held.codes) else f"{folds} folds"


def _baseline(held: HeldOutPredictions) -> float:
    weight = np.bincount(held.codes, held.weight, minlength=len(held.labels))
    return float(1.0 - weight.max() / weight.sum())


def _why(held: Mapping[str, HeldOutPredictions], taken: str, models: list[ModelFacts]) -> str:
    own = next(model for model in models if model["chosen"])
    least = taken == _least_loss(held)
    reason = (
        "gave the most trustworthy probabilities of all models on held-out rows (least log loss)"
        if least and len(models) > 1 and held[taken].probabilistic
        else "was taken as asked"
    )
    share = percent(own["error"]) if own["error"] else "none"
    mistakes = f"It was wrong on {share} of these rows."
    rivals = _rivals(held, taken, {model["name"]: model["label"] for model in models})
    return " ".join(filter(None, [f"{own['label']} {reason}.", mistakes, rivals]))


def _rivals(held: Mapping[str, HeldOutPredictions], taken: str, titles: Mapping[str, str]) -> str:
    """What McNemar's test says of the others."""
    others = [name for name in held if name != taken]
    if not others:
        return ""
    tested = {titles[name]: _paired(held[taken], held[name]) for name in others}
    level = _ALIKE / len(others)  # Bonferroni: it holds for all of them together
    better = [name for name, (gain, p) in tested.items() if gain < 0 and p < level]
    alike = [name for name, (_, p) in tested.items() if p >= level]
    if better:
        return f"By number of mistakes alone, {several(better)} did better."
    if not alike:
        return "It made clearly fewer mistakes than every other model."
    them = several(alike) if len(alike) <= 3 else counted(len(alike), "other model")
    return f"By number of mistakes it cannot be told from {them}: the difference may be chance."


def _paired(own: HeldOutPredictions, other: HeldOutPredictions) -> tuple[float, float]:
    """How many more rows the first has right, and p of McNemar's test."""
    right = [held.decided == held.codes for held in (own, other)]
    weight = np.ones(len(own.codes)) if own.weight is None else own.weight
    b, c = float(weight[right[0] & ~right[1]].sum()), float(weight[right[1] & ~right[0]].sum())
    return b - c, mcnemar(round(b), round(c), exact=True)[2]
