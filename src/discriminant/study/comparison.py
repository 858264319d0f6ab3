"""Result of a comparison: measures of models on the same held-out rows, and model selection.

    error        share of misclassified rows, with Wilson's interval
    AUC          area under the ROC curve of the second of two classes, with DeLong's interval; for
                 more classes the mean one-vs-rest AUC
    log loss, Brier score, calibration error      of models that give probabilities

The one-standard-error rule: let c_best be the criterion of the best model and c_f its value on fold
f. With the standard error  se = sqrt(mean_f (c_f - c_best)^2 / (F - 1)),  the rule selects the
simplest model whose criterion is at most  c_best + se.

If all rows of a class are in one fold, the model for that fold does not know the class. Log loss
and AUC then leave out the class, and a note in the result states this.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr

from discriminant.assessment.assessment import Assessment
from discriminant.assessment.measures import MEASURES
from discriminant.assessment.printed_results import PrintedResult, html_table, text_table
from discriminant.assessment.ranking.auc import AUC, auc
from discriminant.assessment.resampling.compare import corrected_t, mcnemar
from discriminant.assessment.resampling.held_out_folds import HeldOutPredictions
from discriminant.assessment.resampling.rda_grid import Grid
from discriminant.assessment.selection.refit_criterion import CriterionValues
from discriminant.catalog import SIMPLICITY
from discriminant.errors import (
    DiscriminantError,
    OptionError,
    StudyError,
    capture_warnings,
)
from discriminant.report.fact_types import (
    BestSingleFacts,
    ComparisonFacts,
    ModelFacts,
    PoolMemberFacts,
    plain,
)
from discriminant.report.format import (
    count_with_noun,
    duration,
    fixed,
    group_by_text,
    loss,
    model_notes,
    name_list,
    number,
    percent,
    pluralise,
    quoted,
)
from discriminant.report.overview import compare_with_baseline
from discriminant.report.sections.comparison import (
    INFINITE_LOSS,
    NO_PROBABILITIES,
    describe_error_tests,
    held_auc,
    log_odds,
    surface_facts,
)
from discriminant.study.headline import headline_of, selection_optimism
from discriminant.study.models import POOL, POOL_GAIN, ModelResult, StudyModel, candidate_models
from discriminant.table.blocks import Floats
from discriminant.table.column_cells import import_pandas

LEVEL = 0.95
_NAMED = 8  # largest number of models in a sentence on tests
_TEST_LEVEL = 0.05  # significance level of tests between models
RULES = ("least", "one_se")
SELECTIONS = ("auto", "single", "pool")
POOL_SHARE = 0.5  # least weight in the pool of a single model that replaces it
# Measures that models can be selected by, the default first.
CRITERIA = (
    "log_loss",
    *(entry.name for entry in MEASURES.values() if entry.criterion and entry.name != "log_loss"),
)


def describe_failed_fits(fits: str, *, separated: bool) -> str:
    """Return a sentence on fits that did not converge, with the reason if it is known.

    >>> describe_failed_fits("its fits", separated=True)
    'Some of its fits did not converge because the classes of their training rows are separated.'
    """
    why = " because the classes of their training rows are separated" if separated else ""
    return f"Some of {fits} did not converge{why}."


def measure_model(
    model: StudyModel,
    tallies: Sequence[Assessment],
    *,
    area: AUC | None,
    probabilistic: bool,
    seconds: float,
    note: str = "",
    warnings: tuple[Warning, ...] = (),
    converged: bool = True,
    predictions: HeldOutPredictions | None = None,
) -> ModelResult:
    """Compute all measures of a model; `tallies` are the assessments of its folds."""
    tallies = [tally for tally in tallies if tally.rows.any()]
    total = sum(tallies[1:], tallies[0])
    error = total.interval("error", level=LEVEL)
    known = classes_in_every_training_set(np.array([tally.rows.sum(axis=0) for tally in tallies]))
    # (F,) sums of `-w log p` over the rows of the known classes, and sums of `w`
    loss = np.array([tally.scored.log_loss[0, known].sum() for tally in tallies])
    weight = np.array([tally.scored.weight[0, known].sum() for tally in tallies])
    log_loss = float(loss.sum() / weight.sum()) if weight.any() else math.nan
    notes = [
        note,
        "" if probabilistic else NO_PROBABILITIES,
        INFINITE_LOSS if probabilistic and math.isinf(log_loss) else "",
    ]
    # an AUC of 1 has an interval of zero width, which is not shown
    interval = (area.low, area.high) if area is not None and area.low < area.high else (None, None)
    criteria: dict[str, float | None] = {
        by: getattr(total, by) if probabilistic or MEASURES[by].kind != "loss" else None
        for by in CRITERIA
    }
    criteria["log_loss"] = log_loss if probabilistic and math.isfinite(log_loss) else None
    facts = ModelFacts(
        name=model.name,
        label=model.title,
        error=float(error.value),
        error_low=float(error.low),
        error_high=float(error.high),
        log_loss=criteria["log_loss"],
        auc=None if area is None else area.value,
        auc_low=interval[0],
        auc_high=interval[1],
        brier=criteria["brier"],
        calibration=float(total.calibration_error()) if probabilistic else None,
        seconds=seconds,
        note=" ".join(filter(None, notes)),
        chosen=False,
    )
    standard_error = {
        by: _standard_error_of(by, tallies)
        for by, value in criteria.items()
        if by != "log_loss" and value is not None
    }
    if probabilistic:
        standard_error["log_loss"] = _standard_error(loss, weight)
    unlearned = tuple(str(label) for label in total.labels[~known & (total.rows.sum(axis=0) > 0)])
    with np.errstate(invalid="ignore"):
        fold_losses = loss / np.where(weight > 0, weight, np.nan) if probabilistic else None
    return ModelResult(
        model,
        facts,
        criteria,
        standard_error,
        predictions,
        warnings,
        converged,
        unlearned,
        fold_losses,
        weight,
    )


_MEANS = (
    *("error", "error_low", "error_high", "log_loss"),
    *("auc", "auc_low", "auc_high", "brier", "calibration"),
)


def join_repetitions(results: Sequence[ModelResult]) -> ModelResult:
    """Return the result of a model over several repetitions of the folds: the mean measures.

    Intervals of the error are computed from the mean error and the number of rows; counts of rows,
    such as confusion tables, are those of the first repetition.
    """
    first = results[0]
    if len(results) == 1:
        return first

    def mean(values: Iterable[float | None]) -> float | None:
        present = [value for value in values if value is not None]
        return float(np.mean(present)) if len(present) == len(results) else None

    facts: Any = dict(first.facts)
    for name in _MEANS:
        measures: list[Any] = [dict(result.facts)[name] for result in results]
        facts[name] = mean(measures)
    facts["seconds"] = sum(result.facts["seconds"] or 0.0 for result in results)
    losses = [result.fold_losses for result in results if result.fold_losses is not None]
    weights = [result.fold_weights for result in results if result.fold_weights is not None]
    return replace(
        first,
        facts=facts,
        criteria={by: mean(result.criteria[by] for result in results) for by in first.criteria},
        standard_error={
            by: float(np.mean([result.standard_error.get(by, error) for result in results]))
            for by, error in first.standard_error.items()
        },
        converged=all(result.converged for result in results),
        fold_losses=np.concatenate(losses) if len(losses) == len(results) else None,
        fold_weights=np.concatenate(weights) if len(weights) == len(results) else None,
        repetitions=tuple(
            result.predictions for result in results[1:] if result.predictions is not None
        ),
    )


def classes_in_every_training_set(rows: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return a boolean array (K,): True where the class has rows in every training set.

    `rows` are the numbers of rows of each fold and class, (F, K).

    If fewer than two classes have rows in every training set, the result is True for all classes,
    since otherwise nothing could be measured.

    >>> classes_in_every_training_set(np.array([[3, 4, 1], [2, 5, 0]])).tolist()
    [True, True, False]
    """
    known = np.asarray((rows > 0).sum(axis=0) > 1)
    return known if known.sum() > 1 else np.ones_like(known)


def held_out_auc(held: HeldOutPredictions, scores: Floats | None = None) -> AUC | None:
    """Return the AUC of held-out rows.

    If the model has no posteriors, rows are ranked by `scores` (N, K).
    """
    K, F = len(held.labels), int(held.fold.max()) + 1
    known = classes_in_every_training_set(
        np.bincount(held.fold * K + held.codes, minlength=F * K).reshape(F, K)
    )
    if scores is None and known.all():
        return held_auc(held, LEVEL)
    rows = known[held.codes]
    codes = np.cumsum(known)[held.codes[rows]] - 1
    scores = (held.log_posterior if scores is None else scores)[np.ix_(rows, known)]
    weight = None if held.weight is None else held.weight[rows]
    scores = log_odds(scores) if scores.shape[1] == 2 else scores
    try:
        return auc(codes, scores, LEVEL, sample_weight=weight)
    except DiscriminantError:
        return None


def both_correct_weight(correct: npt.NDArray[np.bool_], weight: Floats | None) -> Floats:
    """Return, for each pair of M models, the weight of rows that both classify correctly, (M, M).

    `correct` (M, N) is True where the model classifies the row correctly.
    """
    if weight is not None:
        return np.asarray(np.dot(correct * weight, correct.T), dtype=np.float64)
    bits = np.packbits(correct, axis=1)
    counts = [np.bitwise_count(bits & row).sum(axis=1, dtype=np.int64) for row in bits]
    return np.array(counts, dtype=np.float64)


def _standard_error_of(by: str, tallies: Sequence[Assessment]) -> float:
    weight = np.array([tally.weight.sum() for tally in tallies])
    mean = np.array([getattr(tally, by) for tally in tallies])
    return _standard_error(mean * weight, weight)


def _standard_error(sums: Floats, weight: Floats) -> float:
    """Return the standard error of a mean over folds.

    `sums` (F,) are sums over the rows of each fold, `weight` (F,) the weights of the folds.
    """
    used = weight > 0
    with np.errstate(invalid="ignore"):
        error = float(CriterionValues.of_folds(sums[used, None], weight[used]).se[0])
    return error if math.isfinite(error) else 0.0


@dataclass(frozen=True, slots=True)
class Choice:
    """The selected model, and the reason for selecting it."""

    name: str
    title: str
    by: str
    rule: str
    why: str
    select: str = "auto"

    def __str__(self) -> str:
        return self.why


@dataclass(frozen=True, slots=True)
class PoolMember:
    """A model of the pool, and its weight."""

    name: str
    title: str
    weight: float


def describe_weights(members: Sequence[PoolMember]) -> str:
    """Return the members of a pool with their weights as text.

    >>> describe_weights([PoolMember("lda", "LDA", 0.75), PoolMember("qda", "QDA", 0.25)])
    'LDA 0.75, QDA 0.25'
    """
    return ", ".join(f"{member.title} {member.weight:.2f}" for member in members)


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(PrintedResult):
    """Result of `Study.compare`: `print` it, or call `frame()` or `to_dict()`."""

    results: tuple[ModelResult, ...]  # M results
    both_correct: Floats  # (M, M) weight of the rows that two models both classify correctly
    left_out: tuple[tuple[str, str], ...]  # title of the model, and why it was left out
    folds: int
    rows: int
    baseline: float  # error of always predicting the most frequent class
    # time taken by steps that all models share: reading, computing moments
    seconds: Mapping[str, float]
    surface: Grid | None
    labels: tuple[str, ...]
    weighted: bool = False  # whether rows are weighted, so that shares of rows are shares of weight
    fold_column: str | None = None  # the column whose values are the folds
    members: tuple[PoolMember, ...] = ()  # the models of the pool, the largest weight first
    baseline_log_loss: float = math.nan  # log loss of predicting the class shares
    repeats: int = 1  # how often the rows were divided into folds
    held_out_by: str = ""  # how rows are held out, if not at random
    optimisms: dict[str, float] = field(default_factory=dict)  # results of `optimism`, once known

    def __getitem__(self, name: str) -> ModelResult:
        """Return the result of the model with this name."""
        for result in self.results:
            if result.name == name:
                return result
        candidate, reasons = candidate_models().get(name), dict(self.left_out)
        if candidate is not None and candidate.title in reasons:
            raise StudyError.left_out(name, reasons[candidate.title])
        raise StudyError.not_compared(name, [result.name for result in self.results])

    @property
    def text(self) -> str:
        """Table of all measures, with notes."""
        title = (
            f"{count_with_noun(self.rows, 'row')}, "
            f"{count_with_noun(len(self.labels), 'class', 'classes')}, "
            f"{self._folds}; all measures are computed on held-out rows"
        )
        head = ["", "Error", "95% interval", "AUC", "Log loss", "Brier", "Calibration", "Time"]
        facts = [result.facts for result in self.results]
        return "\n".join(
            [
                *text_table(title, head, list(map(_cells, facts))),
                "",
                "Baseline (always predicting the most frequent class): error "
                f"{percent(self.baseline)}.",
                *filter(None, [self._unlearned()]),
                *model_notes(facts),
                *(
                    f"{name_list(names, 12)} {'was' if len(names) == 1 else 'were'} excluded: "
                    + pluralise(why, len(names))
                    for names, why in group_by_text(self.left_out)
                ),
            ]
        )

    def _repr_html_(self) -> str:
        head = ["Model", "Error", "95% interval", "AUC", "Log loss", "Brier", "Calibration", "Time"]
        title, *_ = self.text.splitlines()
        rows = [_cells(result.facts) for result in self.results]
        notes = f"Baseline (always predicting the most frequent class): {percent(self.baseline)}."
        return html_table(title, head, rows, notes)

    def frame(self) -> Any:
        """Return a pandas frame with a row for each model."""
        return import_pandas().DataFrame(self._records()).set_index("name")

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as a dictionary of plain numbers, lists and texts."""
        facts: dict[str, Any] = plain(
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
            facts["fold_column"] = self.fold_column
        if self.surface is not None:
            facts["surface"] = plain(surface_facts(self.surface))
        return facts

    def choose(self, by: str = "log_loss", rule: str = "least", *, select: str = "auto") -> Choice:
        """Select a model by a criterion and a rule, as `Study.choose` does."""
        if by not in CRITERIA:
            *names, last = map(repr, CRITERIA)
            raise OptionError.of("by", by, f"{', '.join(names)} or {last}")
        if rule not in RULES:
            raise OptionError.of("rule", rule, "'least' or 'one_se'")
        if select not in SELECTIONS:
            raise OptionError.of("select", select, "'auto', 'single' or 'pool'")
        if select == "pool":
            if not self.members:
                raise StudyError.no_pool()
            return self.choose_named(POOL)
        candidates = self._candidates(by)
        singles = [result for result in candidates if result.name != POOL]
        if not singles:
            if by == "log_loss" and any(
                result.value("brier") is not None for result in self.results
            ):
                choice = self.choose("brier", rule, select=select)
                infinite = "No model has a finite log loss, so models are compared by Brier score."
                return replace(choice, why=f"{infinite} {choice.why}")
            raise StudyError.no_probabilities(self.results[0].name)
        if select == "single":
            candidates = singles
        best = min(candidates, key=lambda result: (_loss(result, by), result.model.simplicity))
        selected = best if rule == "least" else _simplest(candidates, best, by)
        pool = next((result for result in candidates if result.name == POOL), None)
        if pool is not None and (rule == "least" or selected is pool):
            single = min(singles, key=lambda result: (_loss(result, by), result.model.simplicity))
            selected = single if self.replaces_pool(single, pool, by) else pool
        why = self._why(selected, best, by, rule, candidates)
        return Choice(selected.name, selected.title, by, rule, why, select)

    def replaces_pool(self, single: ModelResult, pool: ModelResult, by: str) -> bool:
        """Return whether a single model is nearly as good as the pool and has most of its weight.

        Its criterion, corrected for the selection among the single models, is at most 1% worse
        than that of the pool, and it has at least half of the weight in the pool. Where no model
        has, the mean of several is usually better on new rows, even if its criterion is not.
        """
        corrected = _loss(single, by) + self.optimism(by)
        limit = POOL_GAIN * _loss(pool, by)
        return corrected <= limit and single.name in self.heavy_members

    @property
    def heavy_members(self) -> frozenset[str]:
        """Names of the models with at least half of the weight in the pool."""
        return frozenset(member.name for member in self.members if member.weight >= POOL_SHARE)

    def optimism(self, by: str) -> float:
        """Return by how much the criterion of the best single model is too low on average."""
        if by not in self.optimisms:
            singles = [result for result in self._candidates(by) if result.name != POOL]
            best_first = sorted(singles, key=lambda result: _loss(result, by))
            self.optimisms[by] = selection_optimism(best_first, by) if len(singles) > 1 else 0.0
        return self.optimisms[by]

    def selectable(self, by: str, select: str) -> list[ModelResult]:
        """Return the results among which a model is selected."""
        candidates = self._candidates(by)
        if select == "single":
            return [result for result in candidates if result.name != POOL]
        return candidates

    def _candidates(self, by: str) -> list[ModelResult]:
        """Return the results with a finite criterion, without models that did not converge."""
        candidates = [result for result in self.results if result.value(by) is not None]
        return [result for result in candidates if result.converged] or candidates

    def best_single(self, by: str = "log_loss") -> ModelResult | None:
        """Return the best single model by a criterion, or None if no model has it."""
        singles = [result for result in self._candidates(by) if result.name != POOL]
        return min(singles, key=lambda result: _loss(result, by), default=None)

    def choose_named(self, name: str) -> Choice:
        """Select the model with this name."""
        result = self[name]
        reason = f"{quoted(result.title)} was selected as requested."
        why = f"{reason} {self._error_sentence(result)} {self._error_tests(result)}"
        return Choice(name, result.title, "", "asked", why.strip())

    def section(self, choice: Choice) -> ComparisonFacts:
        """Return the section of the report on the comparison."""
        models = [
            ModelFacts(**{**result.facts, "chosen": result.name == choice.name})
            for result in self.results
        ]
        section = ComparisonFacts(
            models=models,
            why=choice.why,
            folds=self._folds,
            level=LEVEL,
            baseline=self.baseline,
            baseline_log_loss=self.baseline_log_loss,
        )
        by = choice.by or "log_loss"
        section["selectable"] = len(self.selectable(by, choice.select or "auto"))
        selected = self[choice.name]
        headline = headline_of(
            selected,
            [selected] if choice.rule == "asked" else self.selectable(by, choice.select),
            by,
            rule=choice.rule,
            heavy_members=self.heavy_members,
            optimism=self.optimism,
        )
        if headline is not None:
            section["headline"] = headline
        if self.members:
            section["pool"] = [
                PoolMemberFacts(name=member.name, label=member.title, weight=member.weight)
                for member in self.members
            ]
        if choice.name == POOL and (single := self._best_single_facts()) is not None:
            section["best_single"] = single
        if self.surface is not None:
            section["surface"] = surface_facts(self.surface)
        if note := self._unlearned():
            section["note"] = note
        return section

    def _best_single_facts(self) -> BestSingleFacts | None:
        """Return the facts on the best single model, compared with the pool."""
        single = self.best_single()
        if single is None:
            return None
        own, pool = single.value("log_loss"), self[POOL].value("log_loss")
        ratio = own / pool if own is not None and pool else None
        return BestSingleFacts(
            name=single.name,
            label=single.title,
            error=single.facts["error"],
            log_loss=own,
            ratio=ratio,
            text=self._single_sentence(single),
        )

    def _single_sentence(self, single: ModelResult) -> str:
        """Return a sentence that compares the uncorrected log losses of the table."""
        own, pool = single.value("log_loss"), self[POOL].value("log_loss")
        name = f"The best single model is {quoted(single.title)}"
        if own is None or not pool:
            return f"{name}."
        if loss(own) == loss(pool):
            return f"{name}: its log loss is that of the pool, {loss(pool)}."
        if own < pool:
            return (
                f"{name}: its log loss, {loss(own)}, is lower than that of the pool, {loss(pool)}. "
                "But it is the best of several models on these rows, and is probably worse on new "
                "rows."
            )
        figures = f"{name}: its log loss is {loss(own)}"
        if pool < 0.001:
            return f"{figures}, that of the pool {loss(pool)}."
        ratio = float(f"{own:.3g}") / float(f"{pool:.3g}")  # of the figures shown
        more = f"{ratio:.2g} times" if ratio >= 2 else f"{percent(ratio - 1, 0)} more than"
        more = "less than 1% more than" if ratio < 1.01 else more
        return f"{figures}, {more} the {loss(pool)} of the pool."

    @property
    def _folds(self) -> str:
        by = "" if self.fold_column is None else f" (one for each value of '{self.fold_column}')"
        repeated = f", repeated {self.repeats} times" if self.repeats > 1 else ""
        return f"{self.folds} folds{by}{self.held_out_by}{repeated}"

    def _unlearned(self) -> str:
        """Return a note on the classes that log loss and AUC leave out."""
        labels = list(
            dict.fromkeys(label for result in self.results for label in result.unlearned_classes)
        )
        if not labels:
            return ""
        subject = "Class {} has" if len(labels) == 1 else "Each of the classes {} has"
        return (
            f"{subject.format(name_list(labels))} all its rows in one fold, so the model for that "
            "fold does not know it; log loss and AUC leave its rows out."
        )

    def _records(self) -> list[dict[str, Any]]:
        return [
            {
                "name": result.name,
                "title": result.title,
                **{k: value for k, value in result.facts.items() if k not in ("label", "chosen")},
                **{by: v for by, v in result.criteria.items() if by not in result.facts},
                **{f"{by}_se": error for by, error in result.standard_error.items()},
                "converged": result.converged,
            }
            for result in self.results
        ]

    def _why(
        self,
        selected: ModelResult,
        best: ModelResult,
        by: str,
        rule: str,
        candidates: list[ModelResult],
    ) -> str:
        """Return the reason for the selection: the error, and how it compares with others."""
        shown = percent if by == "error" else number
        name, own = quoted(selected.title), shown(selected.value(by))
        finite = [result for result in self.results if result.value(by) is not None]
        converged = "converged " if len(candidates) < len(finite) else ""
        criterion, extreme = MEASURES[by].criterion, MEASURES[by].best
        with_value = "" if len(finite) == len(self.results) else f" with a finite {criterion}"
        among = f"the {len(candidates)} {converged}models{with_value}"
        value, least = _loss(selected, by), _loss(best, by)
        if len(candidates) == 1:
            reason = f"{name} is the only {converged}model compared{with_value}."
        elif selected is best:
            ties = sum(shown(result.value(by)) == own for result in candidates) - 1
            equal = (
                ""
                if not ties
                else f" ({ties} more {'has' if ties == 1 else 'have'} the same at this precision)"
            )
            reason = (
                f"{name} has the {extreme} {criterion} on held-out rows, {own}, "
                f"among {among}{equal}."
            )
        elif selected.name == POOL and rule == "least":
            corrected = _loss(best, by) + self.optimism(by)
            corrected = corrected if MEASURES[by].best == "lowest" else -corrected
            same = shown(corrected) == shown(best.value(by))
            also = ", also" if same else f", or {shown(corrected)}"
            also += " when corrected for the selection among the models"
            reason = (
                f"{name} was selected: its {criterion} on held-out rows is {own}. The best single "
                f"model is {quoted(best.title)}: its {criterion} is {shown(best.value(by))}{also}. "
                f"A single model replaces the pool if its corrected {criterion} is at most 1% "
                "worse and it has half of the weight in the pool: otherwise the mean of several "
                "models is usually more accurate on new rows."
            )
        elif best.name == POOL and value <= POOL_GAIN * least:
            reason = (
                f"{name} has the {extreme} {criterion} of the single models on held-out rows, "
                f"{own}. A pool of {len(self.members)} models would be at most 1% better, so the "
                "single model was selected."
            )
        else:
            gap = shown(best.value(by))
            compared = (
                f"the same as the {extreme} at the precision shown"
                if gap == own
                else f"within one standard error ({shown(best.standard_error[by])}) of the "
                f"{extreme} among {among}, {gap} for {quoted(best.title)}"
            )
            reason = (
                f"{name} was selected by the one-standard-error rule: it is simpler "
                f"({SIMPLICITY[selected.model.simplicity]}), and its {criterion} on held-out rows, "
                f"{own}, is {compared}."
            )
        if selected.name == POOL:
            members, more = self.members[:3], len(self.members) - 3
            rest = f" and {more} more" if more > 0 else ""
            reason = (
                f"{reason} The pool is a weighted mean of the probabilities of "
                f"{len(self.members)} models: {describe_weights(members)}{rest}."
            )
        fits = "its fits" if len(candidates) == 1 else f"the fits of each of {among}"
        unconverged = (
            "" if selected.converged else describe_failed_fits(fits, separated=selected.separated)
        )
        sentences = [
            reason,
            unconverged,
            self._log_loss_tests(selected),
            self._error_sentence(selected),
            self._error_tests(selected),
            self._left_out(candidates, by),
        ]
        single = self.best_single(by)
        if selected.name == POOL and by == "log_loss" and single not in (None, best):
            sentences.append(self._single_sentence(single))
        return " ".join(filter(None, sentences))

    def _left_out(self, candidates: Sequence[ModelResult], by: str) -> str:
        """Return a sentence on the models that cannot be selected, and why."""
        others = [result for result in self.results if result not in candidates]
        if not others:
            return ""
        scores = [result for result in others if result.facts["brier"] is None]
        scores = [result for result in scores if result.value(by) is None]
        infinite = [result for result in others if result.value(by) is None]
        infinite = [result for result in infinite if result not in scores]
        failed = [result.title for result in others if result.value(by) is not None]
        if POOL in [result.name for result in others]:  # left out as requested
            failed.remove(self[POOL].title)
        parts = []
        for group, lack in ((scores, "probabilities"), (infinite, MEASURES[by].criterion)):
            if group:
                verb = "has" if len(group) == 1 else "have"
                finite = "finite " if group is infinite else ""
                titles = name_list([result.title for result in group])
                parts.append(f"{titles} {verb} no {finite}{lack}")
        if failed:
            parts.append(f"{name_list(failed)} did not converge")
        if not parts:
            return ""
        return (
            f"{len(self.results)} models were compared, and {len(candidates)} of them could be "
            f"selected: {'; '.join(parts)}."
        )

    def _error_sentence(self, result: ModelResult) -> str:
        share = percent(result.facts["error"]) if result.facts["error"] else "none"
        rows = "the weight of these rows" if self.weighted else "these rows"
        sentence, high = f"It misclassified {share} of {rows}.", result.facts["error_high"]
        if high is None or high < self.baseline:
            return sentence
        return f"{sentence} {compare_with_baseline(self.baseline, high)}"

    def _log_loss_tests(self, selected: ModelResult) -> str:
        """Return a sentence on the corrected resampled t tests of the log loss, Holm-adjusted."""
        tests = []
        for other in self.results:
            if other is selected or other.value("log_loss") is None:
                continue
            p = _log_loss_p(selected, other, self.folds)
            if p is not None:
                tests.append((other.title, p))
        if not tests or selected.value("log_loss") is None:
            return ""
        return describe_log_loss_tests(tests)

    def _error_tests(self, selected: ModelResult) -> str:
        others = [result for result in self.results if result is not selected]
        return describe_error_tests(
            [(other.title, *self._paired(selected, other)) for other in others]
        )

    def _paired(self, first: ModelResult, second: ModelResult) -> tuple[float, float]:
        """Return how many more rows the first model predicts correctly, and McNemar's p-value."""
        i, j = self.results.index(first), self.results.index(second)
        b, c = (float(self.both_correct[m, m] - self.both_correct[i, j]) for m in (i, j))
        exact = b + c < 10_000 and b.is_integer() and c.is_integer()
        return b - c, mcnemar(b, c, exact=exact)[2]


def describe_log_loss_tests(tests: Sequence[tuple[str, float]]) -> str:
    """Return a sentence on which models the selected model differs from by log loss.

    `tests` holds the title of each other model and its p-value, which is adjusted here (Holm).

    >>> describe_log_loss_tests([("LDA", 0.001), ("QDA", 0.4)]).partition(" (")[0]
    'Its log loss differs significantly from that of LDA, not from that of QDA'
    """
    different: list[str] = []
    for rank, (title, p) in enumerate(sorted(tests, key=lambda test: test[1])):
        if p * (len(tests) - rank) >= _TEST_LEVEL:
            break
        different.append(title)
    alike = [title for title, _ in tests if title not in different]
    adjusted = f", Holm-adjusted for {len(tests)} comparisons" if len(tests) > 1 else ""
    test = f"(corrected resampled t test at level {_TEST_LEVEL}{adjusted})"
    if not alike:
        return f"Its log loss differs significantly from that of every other model {test}."
    many = count_with_noun(len(alike), "other model")
    if len(alike) <= (3 if not different else _NAMED):
        many = name_list(alike, _NAMED)
    if not different:
        return f"Its log loss does not differ significantly from that of {many} {test}."
    few = name_list(different)
    if len(different) > 3:
        few = count_with_noun(len(different), "other model")
    return f"Its log loss differs significantly from that of {few}, not from that of {many} {test}."


def _log_loss_p(first: ModelResult, second: ModelResult, folds: int) -> float | None:
    """Return the p-value of the corrected resampled t test of the log loss of two models."""
    if first.fold_losses is None or second.fold_losses is None:
        return None
    common = min(len(first.fold_losses), len(second.fold_losses))  # repetitions of both models
    difference = first.fold_losses[:common] - second.fold_losses[:common]
    difference = difference[np.isfinite(difference)]
    if len(difference) < 2 or not difference.any():
        return None
    with capture_warnings():  # of differences that are all equal
        _, t = corrected_t(difference, 1.0 / max(folds - 1, 1))
    return float(2.0 * stdtr(len(difference) - 1, -abs(t)))


def _simplest(candidates: list[ModelResult], best: ModelResult, by: str) -> ModelResult:
    """Return the simplest model within one standard error of the best.

    Among equally simple models the one with the lower loss is returned.
    """
    limit = _loss(best, by) + best.standard_error[by]
    near = [result for result in candidates if _loss(result, by) <= limit]
    return min(near, key=lambda result: (result.model.simplicity, _loss(result, by)))


def _loss(result: ModelResult, by: str) -> float:
    """Return the value of a criterion, negated if higher values are better."""
    value = result.value(by)
    if value is None:
        return math.inf
    return value if MEASURES[by].best == "lowest" else -value


def _cells(facts: ModelFacts) -> list[str]:
    low, high = facts["error_low"], facts["error_high"]
    return [
        facts["label"],
        percent(facts["error"]),
        "–" if low is None or high is None else f"{percent(low)} to {percent(high)}",
        fixed(facts["auc"], 3),
        fixed(facts["log_loss"], 4),
        fixed(facts["brier"], 4),
        fixed(facts["calibration"], 4),
        duration(facts["seconds"]),
    ]
