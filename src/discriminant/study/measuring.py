"""How one model did on held-out rows: every measure that a study compares models by.

    error        share of the rows in a wrong class, Wilson's interval
    AUC          of the second of two classes, DeLong's interval; of more, the mean of each class
                 against the rest
    log loss, Brier, calibration error      of the probabilities, where a model gives any

A class whose rows are all in one fold is unknown to every model that is asked of them. Log loss and
AUC are of the rows of the other classes then, and that is told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.assessment.auc import AUC, auc
from discriminant.assessment.judging import Found
from discriminant.assessment.measures import Assessment
from discriminant.assessment.resampling import HeldOut
from discriminant.errors import DiscriminantError
from discriminant.report.comparing import held_auc, log_odds
from discriminant.report.facts import ModelFacts
from discriminant.study.members import Member
from discriminant.table.schema import Floats

LEVEL = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """How one model did."""

    member: Member
    facts: ModelFacts
    spread: Mapping[str, float]  # {criterion: standard error over folds}
    held: HeldOut | None  # None where all of them would take too much room
    warnings: tuple[Warning, ...]
    converged: bool
    unlearned: tuple[str, ...] = ()  # classes that log loss and AUC leave out

    @property
    def name(self) -> str:
        """In code."""
        return self.member.name

    @property
    def title(self) -> str:
        """For people."""
        return self.member.title

    def value(self, by: str) -> float | None:
        """Of a criterion; None where it has none."""
        found: float | None = self.facts[by]  # type: ignore[literal-required]
        return found if found is not None and math.isfinite(found) else None


def outcome_of(
    member: Member,
    tallies: Sequence[Assessment],
    *,
    area: AUC | None,
    able: bool,
    seconds: float,
    note: str = "",
    warnings: tuple[Warning, ...] = (),
    converged: bool = True,
    held: HeldOut | None = None,
) -> Outcome:
    """All measures of what a model said of held-out rows.

    `tallies` are those of the folds; `able` is a model that gives probabilities.
    """
    tallies = [tally for tally in tallies if tally.rows.any()]
    tally = sum(tallies[1:], tallies[0])
    error = tally.interval("error", level=LEVEL)
    low, value, high = _span(area)
    known = learned(np.array([one.rows.sum(axis=0) for one in tallies]))
    loss, weight = _losses(tallies, known)
    whole = float(loss.sum() / weight.sum()) if weight.any() else math.nan
    endless = "Some rows were of a class that was given probability 0, so its log loss is infinite."
    none = "It gives no probabilities, only classes."
    notes = [note, "" if able else none, endless if able and math.isinf(whole) else ""]
    facts = ModelFacts(
        name=member.name,
        label=member.title,
        error=float(error.value),
        error_low=float(error.low),
        error_high=float(error.high),
        log_loss=_finite(whole) if able else None,
        auc=value,
        auc_low=low,
        auc_high=high,
        brier=float(tally.brier) if able else None,
        calibration=float(tally.calibration_error()) if able else None,
        seconds=seconds,
        note=" ".join(filter(None, notes)),
        chosen=False,
    )
    spread = {by: _se(by, tallies) for by in (("error", "brier") if able else ("error",))}
    if able:
        spread["log_loss"] = _se_of(loss, weight)
    without = tuple(str(label) for label in tally.labels[~known & (tally.rows.sum(axis=0) > 0)])
    return Outcome(member, facts, spread, held, warnings, converged, without)


def learned(rows: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """(K,) whether a class is in every training part, of (F, K) rows in each fold.

    Where that holds for less than two classes all are taken: nothing could be measured.

    >>> learned(np.array([[3, 4, 1], [2, 5, 0]])).tolist()
    [True, True, False]
    """
    found = np.asarray((rows > 0).sum(axis=0) > 1)
    return found if found.sum() > 1 else np.ones_like(found)


def _losses(tallies: Sequence[Assessment], known: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """(F,) sums of -w log p over the rows of some classes, and of w."""
    loss = np.array([one.scored.log_loss[0, known].sum() for one in tallies])
    return loss, np.array([one.scored.weight[0, known].sum() for one in tallies])


def area_of(held: HeldOut, scores: Floats | None = None) -> AUC | None:
    """Of what a model said of rows; `scores` (N, K) are those of one without probabilities."""
    said = held.log_posterior if scores is None else scores
    K, F = len(held.labels), int(held.fold.max()) + 1
    known = learned(np.bincount(held.fold * K + held.codes, minlength=F * K).reshape(F, K))
    if scores is None and known.all():
        return held_auc(held, LEVEL)
    some = known[held.codes]
    codes, said = np.cumsum(known)[held.codes[some]] - 1, said[np.ix_(some, known)]
    weight = None if held.weight is None else held.weight[some]
    said = log_odds(said) if said.shape[1] == 2 else said
    try:
        return auc(codes, said, LEVEL, sample_weight=weight)
    except DiscriminantError:
        return None


def right_together(right: npt.NDArray[np.bool_], weight: Floats | None) -> Floats:
    """(M, M) weight of the rows that both of two models have right, of (M, N) who is right."""
    if weight is not None:
        return np.asarray(np.dot(right * weight, right.T), dtype=np.float64)
    bits = np.packbits(right, axis=1)
    counts = [np.bitwise_count(bits & one).sum(axis=1, dtype=np.int64) for one in bits]
    return np.array(counts, dtype=np.float64)


def _se(by: str, tallies: Sequence[Assessment]) -> float:
    """Standard error over folds."""
    weight = np.array([tally.weight.sum() for tally in tallies])
    mean = np.array([getattr(tally, by) for tally in tallies])
    return _se_of(mean * weight, weight)


def _se_of(sums: Floats, weight: Floats) -> float:
    """Of (F,) sums over rows of (F,) weight."""
    some = weight > 0
    with np.errstate(invalid="ignore"):
        se = float(Found.of_folds(sums[some, None], weight[some]).se[0])
    return se if math.isfinite(se) else 0.0


Span = tuple[float | None, float | None, float | None]


def _span(found: AUC | None) -> Span:
    """Low end, value, high end; no ends where DeLong's interval has no width, as of an AUC of 1."""
    if found is None:
        return None, None, None
    wide = found.low < found.high
    return found.low if wide else None, found.value, found.high if wide else None


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
