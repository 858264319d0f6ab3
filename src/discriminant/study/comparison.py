"""What a comparison found: measures of each model on the same held-out rows, and which to take.

The one-standard-error rule: with c_f the criterion on fold f and se its standard error, of the best
model, sqrt(mean_f (c_f - c)^2 / (F - 1)), take the simplest model with  c <= c_best + se_best.

How one model did on held-out rows: every measure that a study compares models by.

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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.assessment.assessment import Assessment
from discriminant.assessment.inference.summary import PrintedResult, text_table
from discriminant.assessment.ranking.auc import AUC, auc
from discriminant.assessment.resampling.compare import mcnemar
from discriminant.assessment.resampling.held_out import HeldOutPredictions
from discriminant.assessment.resampling.rda_grid import Grid
from discriminant.assessment.selection.refit_criterion import CriterionValues
from discriminant.catalog import SIMPLICITY
from discriminant.errors import DiscriminantError, OptionError, StudyError
from discriminant.report.fact_types import ComparisonFacts, ModelFacts, plain
from discriminant.report.format import (
    count_with_noun,
    duration,
    fixed,
    group_by_text,
    model_notes,
    name_list,
    number,
    percent,
    quoted,
)
from discriminant.report.sections.comparison import held_auc, log_odds, surface_facts
from discriminant.study.models import StudyModel
from discriminant.table.blocks import Floats
from discriminant.table.cells import import_pandas

LEVEL = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class ModelResult:
    """How one model did."""

    model: StudyModel
    facts: ModelFacts
    standard_error: Mapping[str, float]  # {criterion: standard error over folds}
    predictions: HeldOutPredictions | None  # None where all of them would take too much room
    warnings: tuple[Warning, ...]
    converged: bool
    unlearned_classes: tuple[str, ...] = ()  # classes that log loss and AUC leave out

    @property
    def name(self) -> str:
        """In code."""
        return self.model.name

    @property
    def title(self) -> str:
        """For people."""
        return self.model.title

    def value(self, by: str) -> float | None:
        """Of a criterion; None where it has none."""
        found: float | None = self.facts[by]  # type: ignore[literal-required]
        return found if found is not None and math.isfinite(found) else None


def measure_model(
    member: StudyModel,
    tallies: Sequence[Assessment],
    *,
    area: AUC | None,
    able: bool,
    seconds: float,
    note: str = "",
    warnings: tuple[Warning, ...] = (),
    converged: bool = True,
    held: HeldOutPredictions | None = None,
) -> ModelResult:
    """All measures of what a model said of held-out rows.

    `tallies` are those of the folds; `able` is a model that gives probabilities.
    """
    tallies = [tally for tally in tallies if tally.rows.any()]
    tally = sum(tallies[1:], tallies[0])
    error = tally.interval("error", level=LEVEL)
    low, value, high = _span(area)
    known = classes_in_every_training_set(np.array([one.rows.sum(axis=0) for one in tallies]))
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
    return ModelResult(member, facts, spread, held, warnings, converged, without)


def classes_in_every_training_set(rows: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """(K,) whether a class is in every training part, of (F, K) rows in each fold.

    Where that holds for less than two classes all are taken: nothing could be measured.

    >>> classes_in_every_training_set(np.array([[3, 4, 1], [2, 5, 0]])).tolist()
    [True, True, False]
    """
    found = np.asarray((rows > 0).sum(axis=0) > 1)
    return found if found.sum() > 1 else np.ones_like(found)


def _losses(tallies: Sequence[Assessment], known: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """(F,) sums of -w log p over the rows of some classes, and of w."""
    loss = np.array([one.scored.log_loss[0, known].sum() for one in tallies])
    return loss, np.array([one.scored.weight[0, known].sum() for one in tallies])


def held_out_auc(held: HeldOutPredictions, scores: Floats | None = None) -> AUC | None:
    """Of what a model said of rows; `scores` (N, K) are those of one without probabilities."""
    said = held.log_posterior if scores is None else scores
    K, F = len(held.labels), int(held.fold.max()) + 1
    known = classes_in_every_training_set(
        np.bincount(held.fold * K + held.codes, minlength=F * K).reshape(F, K)
    )
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


def both_correct_weight(right: npt.NDArray[np.bool_], weight: Floats | None) -> Floats:
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
        se = float(CriterionValues.of_folds(sums[some, None], weight[some]).se[0])
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


CRITERIA = ("log_loss", "error", "brier")
RULES = ("one_se", "least")
_ALIKE = 0.05  # level below which two models are told apart
_WORDS = {"error": "share of mistakes", "log_loss": "log loss", "brier": "Brier score"}


@dataclass(frozen=True, slots=True)
class Choice:
    """The model taken, and why."""

    name: str
    title: str
    by: str
    rule: str
    why: str

    def __str__(self) -> str:
        return self.why


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(PrintedResult):
    """What `Study.compare` returns: `print` it, or ask for `frame()` or `to_dict()`."""

    results: tuple[ModelResult, ...]  # M
    both_correct: Floats  # (M, M) weight of the rows that both of two models have right
    left_out: tuple[tuple[str, str], ...]  # name and reason
    folds: int
    rows: int
    baseline: float  # error of always saying the most frequent class
    seconds: Mapping[str, float]  # reading, summing
    surface: Grid | None
    labels: tuple[str, ...]
    weighted: bool = False  # whether shares of rows are shares of their weight
    fold_column: str | None = None  # the column whose values are the folds

    def __getitem__(self, name: str) -> ModelResult:
        """The outcome of a model, by name."""
        for outcome in self.results:
            if outcome.name == name:
                return outcome
        raise StudyError.not_compared(name, [outcome.name for outcome in self.results])

    @property
    def text(self) -> str:
        """One table, then what is to be known of some lines of it."""
        title = (
            f"{count_with_noun(self.rows, 'row')}, "
            f"{count_with_noun(len(self.labels), 'class', 'classes')}, "
            f"{self._folds}; every figure is of rows that the model had not seen"
        )
        head = ["", "Error", "95% interval", "AUC", "Log loss", "Brier", "Calibration", "Time"]
        lines = text_table(title, head, [_cells(one.title, one.facts) for one in self.results])
        notes = [self._unlearned(), *model_notes([one.facts for one in self.results])]
        notes += [
            f"{name_list(names, 12)} {'is' if len(names) == 1 else 'are'} left out: {why}"
            for names, why in group_by_text(self.left_out)
        ]
        base = f"Always saying the most frequent class: error {percent(self.baseline)}."
        return "\n".join([*lines, "", base, *filter(None, notes)])

    def frame(self) -> Any:
        """A pandas frame, a row for each model."""
        return import_pandas().DataFrame(self._records()).set_index("name")

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and texts."""
        found: dict[str, Any] = plain(
            {
                "models": self._records(),
                "left_out": [{"name": name, "why": why} for name, why in self.left_out],
                "folds": self.folds,
                "rows": self.rows,
                "baseline": self.baseline,
                "seconds": dict(self.seconds),
            }
        )
        if self.fold_column is not None:
            found["fold_column"] = self.fold_column
        if self.surface is not None:
            found["surface"] = plain(surface_facts(self.surface))
        return found

    def choose(self, by: str = "log_loss", rule: str = "one_se") -> Choice:
        """The model to take."""
        if by not in CRITERIA:
            raise OptionError.of("by", by, "'log_loss', 'error' or 'brier'")
        if rule not in RULES:
            raise OptionError.of("rule", rule, "'one_se' or 'least'")
        able = [one for one in self.results if one.value(by) is not None]
        if (
            not able
            and by == "log_loss"
            and any(one.value("brier") is not None for one in self.results)
        ):
            found = self.choose("brier", rule)
            endless = "No model has a finite log loss, so the Brier score was asked."
            return replace(found, why=f"{endless} {found.why}")
        if not able:
            raise StudyError.no_probabilities(self.results[0].name)
        able = [one for one in able if one.converged] or able
        best = min(able, key=lambda one: (_least(one, by), one.model.simplicity))
        taken = best if rule == "least" else _simplest(able, best, by)
        return Choice(taken.name, taken.title, by, rule, self._why(taken, best, by, able))

    def choose_named(self, name: str) -> Choice:
        """A model that was asked for."""
        one = self[name]
        why = f"{quoted(one.title)} was taken as asked. {self._mistakes(one)} {self._rivals(one)}"
        return Choice(name, one.title, "", "asked", why.strip())

    def section(self, choice: Choice) -> ComparisonFacts:
        """The section of a report."""
        models = [
            ModelFacts(**{**one.facts, "chosen": one.name == choice.name}) for one in self.results
        ]
        found = ComparisonFacts(
            models=models,
            why=choice.why,
            folds=self._folds,
            level=LEVEL,
            baseline=self.baseline,
        )
        if self.surface is not None:
            found["surface"] = surface_facts(self.surface)
        if note := self._unlearned():
            found["note"] = note
        return found

    @property
    def _folds(self) -> str:
        """How many folds, and by which column."""
        by = "" if self.fold_column is None else f" (one for each value of '{self.fold_column}')"
        return f"{self.folds} folds{by}"

    def _unlearned(self) -> str:
        """What measures of probabilities leave out."""
        labels = list(
            dict.fromkeys(label for one in self.results for label in one.unlearned_classes)
        )
        if not labels:
            return ""
        those = "Class {} has its rows" if len(labels) == 1 else "Classes {} have their rows"
        return (
            f"{those.format(name_list(labels))} in one fold, when no model knew of the class: log "
            "losses and AUCs are of the rows of the other classes."
        )

    def _records(self) -> list[dict[str, Any]]:
        left = ("label", "chosen")
        return [
            {
                "name": one.name,
                "title": one.title,
                **{key: value for key, value in one.facts.items() if key not in left},
                **{f"{by}_se": se for by, se in one.standard_error.items()},
                "converged": one.converged,
            }
            for one in self.results
        ]

    def _why(self, taken: ModelResult, best: ModelResult, by: str, able: list[ModelResult]) -> str:
        said = percent if by == "error" else number
        least, own, se = (
            said(v) for v in (_least(best, by), _least(taken, by), best.standard_error[by])
        )
        some = [one for one in self.results if one.value(by) is not None]
        converged = " and had converged" if len(able) < len(some) else ""
        what, among = _WORDS[by], f"of the {len(able)} models that have one{converged}"
        as_good = [one for one in able if one.value(by) == best.value(by)]
        if len(able) == 1:
            reason = (
                f"{quoted(taken.title)} is the only model compared that has a {what}{converged}."
            )
        elif taken in as_good:
            also = "" if len(as_good) == 1 else f" ({len(as_good) - 1} more had the same)"
            reason = (
                f"{quoted(taken.title)} had the least {what} on held-out rows, {own}, "
                f"{among}{also}."
            )
        else:
            simple = (
                f"it is simpler ({SIMPLICITY[taken.model.simplicity]})"
                if taken.model.simplicity < best.model.simplicity
                else "it is as simple"
            )
            reason = (
                f"{quoted(taken.title)} was taken: {simple}, and its {what} on held-out rows, "
                f"{own}, is within one standard error ({se}) of the least {among}, {least} of "
                f"{quoted(best.title)}."
            )
        unfinished = "" if taken.converged else _unfinished(len(able))
        said_all = [reason, unfinished, self._mistakes(taken), self._rivals(taken)]
        return " ".join(filter(None, said_all))

    def _mistakes(self, one: ModelResult) -> str:
        """How many, and whether that is an achievement."""
        share = percent(one.facts["error"]) if one.facts["error"] else "none"
        whole = "the weight of these rows" if self.weighted else "these rows"
        said, high = f"It was wrong on {share} of {whole}.", one.facts["error_high"]
        if high is None or high < self.baseline:
            return said
        return (
            f"{said} Always saying the most frequent class would be wrong on "
            f"{percent(self.baseline)}: by number of mistakes it is not clearly better than that."
        )

    def _rivals(self, taken: ModelResult) -> str:
        """What McNemar's test says of the other models' mistakes."""
        others = [one for one in self.results if one is not taken]
        if not others:
            return ""
        level = _ALIKE / len(others)  # Bonferroni: it holds for all of them together
        tested = [(one.title, *self._paired(taken, one)) for one in others]
        better = [name for name, gain, p in tested if gain < 0 and p < level]
        alike = [name for name, _, p in tested if p >= level]
        if better:
            return f"By number of mistakes alone, {name_list(better)} did better."
        if not alike:
            return "It made clearly fewer mistakes than every other model."
        them = name_list(alike) if len(alike) <= 3 else count_with_noun(len(alike), "other model")
        return f"By number of mistakes it cannot be told from {them}: the difference may be chance."

    def _paired(self, own: ModelResult, other: ModelResult) -> tuple[float, float]:
        """How many more rows the first has right, and p of McNemar's test."""
        i, j = self.results.index(own), self.results.index(other)
        b, c = (float(self.both_correct[m, m] - self.both_correct[i, j]) for m in (i, j))
        exact = b + c < 10_000 and b.is_integer() and c.is_integer()
        return b - c, mcnemar(b, c, exact=exact)[2]


def _simplest(able: list[ModelResult], best: ModelResult, by: str) -> ModelResult:
    limit = _least(best, by) + best.standard_error[by]
    near = [one for one in able if _least(one, by) <= limit]
    return min(near, key=lambda one: (one.model.simplicity, _least(one, by)))


def _least(one: ModelResult, by: str) -> float:
    value = one.value(by)
    return math.inf if value is None else value


def _unfinished(models: int) -> str:
    """Of models of which none had converged."""
    fits = "its fits" if models == 1 else f"the fits of each of these {models} models"
    return f"Some of {fits} did not converge."


def _cells(title: str, facts: ModelFacts) -> list[str]:
    low, high = facts["error_low"], facts["error_high"]
    span = "–" if low is None or high is None else f"{percent(low)} to {percent(high)}"
    return [
        title,
        percent(facts["error"]),
        span,
        fixed(facts["auc"], 3),
        fixed(facts["log_loss"], 4),
        fixed(facts["brier"], 4),
        fixed(facts["calibration"], 4),
        duration(facts["seconds"]),
    ]
