"""Every model on the same folds, and the moments of these read once.

Models made from moments are scored on all held-out rows. The dials of RDA are chosen, for each
fold, on the other folds, so that no row helps to choose the model it is held out from. Models that
read rows are fitted to at most `most` rows of each training part, and say so.

Here is what does not depend on where the rows are; `in_memory` and `in_parts` add how they are
scored. Of rows in parts, `table` and `folded` are some rows, drawn, with the sums over all.

A comparison on rows in memory: what a model says of every held-out row is kept and measured.

A comparison on rows in parts: two passes over all of them, whatever the number of models.

    pass 1    moments of each fold: models made from moments are exact
    some      `rows.sample`: models that read rows, and the dials of RDA
    pass 2    every row is scored by all models that have not seen its fold

No row is kept: measures are made from tallies of the folds, rankings, and who is right together.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from discriminant.assessment.assessment import Assessment
from discriminant.assessment.resampling.cross_validate import (
    Folded,
    HeldOutPredictions,
    auc_of_rankings,
    fold_rules,
    warn_missing_classes,
)
from discriminant.assessment.resampling.folds import Dealt, FoldNumbers
from discriminant.assessment.resampling.rda_grid import STEPS, Candidates, Grid
from discriminant.assessment.scorers import DecisionScorer, ModelScorer, Predictions, RuleScorer
from discriminant.engines.local import available_threads
from discriminant.engines.partitioned import AnyTable, PartitionedTable
from discriminant.errors import DiscriminantError, StudyError, capture_warnings
from discriminant.models.gaussian.family import GaussianFamily
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.held_out import HeldOutReading, ModelSums, Scorer
from discriminant.posterior import gives_posterior
from discriminant.study.comparison import (
    LEVEL,
    Comparison,
    ModelResult,
    both_correct_weight,
    held_out_auc,
    measure_model,
)
from discriminant.study.models import StudyModel
from discriminant.table.blocks import Floats, Labels
from discriminant.table.memory import Table

T = TypeVar("T")
Told = Callable[[str, int, int], object]
Ways = Callable[[int], Any]  # the model of each fold, not yet fitted
_GRID_ROWS = 20_000  # held-out rows on which the dials of RDA are chosen
_MOMENTS_BYTES = 1 << 30  # of all folds together


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """What a model says of held-out rows of the table."""

    answers: Predictions
    tallies: tuple[Assessment, ...] = ()  # of each fold, if they are at hand
    scores: Floats | None = None  # (N, K) of a model without probabilities
    note: str = ""
    converged: bool = True


@dataclass
class Run(ABC):
    """A comparison under way, and what it leaves for later: moments, the grid of RDA."""

    seed: int
    max_rows: int
    progress: Told
    seconds: dict[str, float]
    marginal: bool = False  # whether models are to do without features that are missing
    surface: Grid | None = None
    _by_fold: list[Grid] = field(default_factory=list)
    fold_column: str | None = field(default=None, kw_only=True)  # that defines the folds

    # --- where the rows are -----------------------------------------------------------------------

    @property
    @abstractmethod
    def rows(self) -> AnyTable:
        """All of them."""

    @property
    @abstractmethod
    def table(self) -> Table:
        """Those in memory: all, or some."""

    @property
    @abstractmethod
    def folded(self) -> Folded:
        """The rows in memory in folds, with the sums over all, summed when first asked for."""

    @property
    @abstractmethod
    def folds(self) -> int:
        """How many."""

    @property
    @abstractmethod
    def moments(self) -> ClassMoments | None:
        """Of all rows; None where features are so many that rows are kept instead."""

    @property
    @abstractmethod
    def shares(self) -> Floats:
        """(K,) weight of each class."""

    @property
    @abstractmethod
    def training(self) -> int:
        """How many rows a training part has."""

    @abstractmethod
    def outcomes(
        self, members: list[StudyModel], left_out: list[tuple[str, str]]
    ) -> tuple[tuple[ModelResult, ...], Floats]:
        """Of the models that could be fitted, and (M, M) what they have right together."""

    # --- comparing --------------------------------------------------------------------------------

    def compare(self, members: list[StudyModel]) -> Comparison:
        """The outcome of each."""
        left_out: list[tuple[str, str]] = []
        outcomes, right = self.outcomes(members, left_out)
        self.progress("done", len(members), len(members))
        if not outcomes:
            raise StudyError.none_left(left_out)
        return Comparison(
            outcomes,
            right,
            tuple(left_out),
            self.folds,
            len(self.rows),
            float(1.0 - self.shares.max() / self.shares.sum()),
            dict(self.seconds),
            self.surface,
            tuple(str(label) for label in self.rows.schema.labels.tolist()),
            self.table.weight is not None,
            self.fold_column,
        )

    def run_each(
        self,
        members: list[StudyModel],
        work: Callable[[StudyModel], T],
        left_out: list[tuple[str, str]],
    ) -> Iterator[tuple[StudyModel, T, float, tuple[Warning, ...]]]:
        """What work gives of each model, how long it took and what was told; or why not."""
        self.folded  # before the clock starts: it serves all  # noqa: B018
        for i, member in enumerate(members):
            self.progress(member.title, i, len(members))
            self._load(member)
            started = time.perf_counter()
            try:
                with capture_warnings() as told:
                    found = work(member)
            except DiscriminantError as reason:
                left_out.append((member.title, str(reason)))
                continue
            yield member, found, time.perf_counter() - started, tuple(told)

    def _load(self, member: StudyModel) -> None:
        if member.compiled and "compiling" not in self.seconds:
            started = time.perf_counter()
            member.load()
            self.seconds["compiling"] = time.perf_counter() - started

    def held(self, outcome: ModelResult) -> HeldOutPredictions:
        """Held-out answers of the rows in memory, worked out again where they were not kept."""
        if outcome.predictions is not None:
            return outcome.predictions
        with capture_warnings():
            return self.held_of(outcome.model, self.held_out_predictions(outcome.model).answers)

    def held_of(self, member: StudyModel, answers: Predictions) -> HeldOutPredictions:
        """Answers beside the truth."""
        table = self.table
        return HeldOutPredictions.of(
            table.schema.labels,
            table.codes,
            self.folded.fold,
            answers,
            table.weight,
            probabilistic=gives_posterior(member.make()),
        )

    # --- models -----------------------------------------------------------------------------------

    @property
    def detail(self) -> Detail | None:
        """What is summed: all there is use for, unless rows are the smaller thing."""
        N, d, K = len(self.rows), self.rows.width, len(self.rows.schema.labels)
        if 2 * d > N:
            return None
        return "fourth" if 24 * K * d * d * self.folds <= _MOMENTS_BYTES else "pooled"

    def unfitted(self, member: StudyModel) -> Any:
        """The classifier with the options that were chosen, not yet fitted."""
        if not member.tuned or self.detail is None:
            return member.make()
        p, s, _ = self._rda_grid().best()
        assert self.surface is not None
        return _rda(self.surface, p, s)

    def check(self, model: Any) -> None:
        """Refuse a model that cannot do what is asked of all."""
        if self.marginal and not getattr(model, "can_marginalise", False):
            raise StudyError.not_gaussian()

    def fold_estimators(self, member: StudyModel) -> Ways | None:
        """The model of each fold, to be made from moments; None: it is to be fitted to rows."""
        model, whole = member.make(), self.folded.whole
        self.check(model)
        if member.tuned and (whole is None or not whole.holds("class")):
            raise StudyError.no_grid(len(self.rows), self.rows.width)
        if not member.moment_based or whole is None:
            return None
        if not member.tuned:
            if not whole.holds(model.detail):
                model.fit_moments(whole)  # tells what is missing
            return lambda f: model
        self._rda_grid()
        made = [_rda(grid, *grid.best()[:2]) for grid in self._by_fold]
        return lambda f: made[f]

    def held_out_predictions(self, member: StudyModel) -> Said:
        """What a model says of the rows in memory, each held out in its turn."""
        ways = self.fold_estimators(member)
        if ways is not None:
            return Said(*self.folded.answers_by(ways), note=self.note(member))
        found = self.folded.refitted(
            member.make(), most=self.max_rows, seed=self.seed, told=self.fold_progress(member)
        )
        converged = found.converged or member.may_stop_early
        note = self.note(member, used=found.used, converged=converged)
        return Said(found.answers, (), found.scores, note, converged)

    def fold_progress(self, member: StudyModel) -> Callable[[int], object]:
        """What tells of the fold under way."""
        folds = self.folds
        return lambda f: self.progress(f"{member.title}, fold {f + 1} of {folds}", -1, 0)

    def note(self, member: StudyModel, *, used: int | None = None, converged: bool = True) -> str:
        """What is to be known of a model: its dials, or the rows that it was fitted to."""
        notes = [self._describe_tuning()] if member.tuned and used is None else []
        if used is not None and used < self.training:
            notes.append(f"Fitted to {used:,} rows drawn of each training part.")
        if not converged:
            notes.append("Some of its fits had not converged.")
        return " ".join(notes)

    def _describe_tuning(self) -> str:
        assert self.surface is not None
        p, s, _ = self.surface.best()
        pooling, shrinkage = self.surface.pooling[p], self.surface.shrinkage[s]
        tried = len(self.surface.pooling) * len(self.surface.shrinkage)
        drawn = f" on {_GRID_ROWS:,} held-out rows drawn of all"
        part = "" if len(self.rows) <= _GRID_ROWS else drawn
        taken = f"pooling {pooling:g} and shrinkage {shrinkage:g} were"
        if pooling == 0:
            taken = "pooling 0 (shrinkage then has no part) was"
        return f"Of {tried} settings, {taken} chosen{part}; for each fold, on the other folds."

    def _rda_grid(self) -> Grid:
        if self.surface is None:
            tried = Candidates(GaussianFamily(), np.array(STEPS), STEPS)
            self.surface, self._by_fold = self.folded.grid(tried, most=_GRID_ROWS, seed=self.seed)
        return self.surface


def _rda(grid: Grid, p: int, s: int) -> Any:
    from discriminant.estimators.gaussian.rda import RDA

    return RDA(pooling=float(grid.pooling[p]), shrinkage=grid.shrinkage[s])


_KEPT_BYTES = 1 << 29  # of held-out posteriors of all models together
Right = npt.NDArray[np.bool_]  # (N,) which rows a model has right


@dataclass(kw_only=True)
class RunInMemory(Run):
    """All rows are at hand."""

    all_rows: Table
    fold: FoldNumbers
    _folded: Folded | None = field(default=None, init=False)

    @property
    def rows(self) -> Table:
        """All of them."""
        return self.all_rows

    @property
    def table(self) -> Table:
        """All of them."""
        return self.all_rows

    @property
    def folded(self) -> Folded:
        """The rows in folds, dealt and summed when they are first asked for."""
        if self._folded is None:
            started = time.perf_counter()
            self.progress("summing", 0, 1)
            self._folded = Folded.of(self.table, self.fold, detail=self.detail)
            self.seconds["summing"] = time.perf_counter() - started
        return self._folded

    @property
    def folds(self) -> int:
        """How many."""
        return int(self.fold.max()) + 1

    @property
    def moments(self) -> ClassMoments | None:
        """Of all rows."""
        return self.folded.whole

    @property
    def shares(self) -> Floats:
        """(K,) weight of each class."""
        return np.bincount(self.table.codes, self.table.weight).astype(np.float64)

    @property
    def training(self) -> int:
        """How many rows a training part has."""
        return len(self.table) - len(self.folded.rows[0])

    @cached_property
    def _missing(self) -> tuple[Warning, ...]:
        """Classes that some training part lacks, told of every model."""
        table = self.table
        with capture_warnings() as told:
            warn_missing_classes(table.codes, table.weight, table.schema.labels, self.fold)
        return tuple(told)

    def outcomes(
        self, members: list[StudyModel], left_out: list[tuple[str, str]]
    ) -> tuple[tuple[ModelResult, ...], Floats]:
        """One model is measured while the next is scored."""
        waiting: list[Future[tuple[ModelResult, Right]]] = []
        K = len(self.table.schema.labels)
        keep = 8 * len(self.table) * K * len(members) <= _KEPT_BYTES
        with ThreadPoolExecutor(available_threads()) as pool:
            for member, said, seconds, told in self.run_each(
                members, self.held_out_predictions, left_out
            ):
                warnings = (*told, *self._missing)
                found = pool.submit(self._measured, member, said, seconds, warnings, keep)
                waiting.append(found)
                if not keep:
                    found.result()
            measured = [found.result() for found in waiting]
        if not measured:
            return (), np.zeros((0, 0))
        right = both_correct_weight(np.array([right for _, right in measured]), self.table.weight)
        return tuple(outcome for outcome, _ in measured), right

    def _measured(
        self,
        member: StudyModel,
        said: Said,
        seconds: float,
        warnings: tuple[Warning, ...],
        keep: bool,
    ) -> tuple[ModelResult, Right]:
        held = self.held_of(member, said.answers)
        with capture_warnings():  # an AUC of 1 has no spread: the table shows that
            found = measure_model(
                member,
                said.tallies or self.folded.tallies(said.answers),
                area=held_out_auc(held, said.scores),
                able=held.probabilistic,
                seconds=seconds,
                note=said.note,
                warnings=warnings,
                converged=said.converged,
                held=held if keep else None,
            )
        return found, np.asarray(held.decided == held.codes)


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A model fitted without each fold."""

    scorers: tuple[Scorer | None, ...]  # F; None of no rows
    able: bool = True  # whether it gives probabilities
    note: str = ""
    converged: bool = True


@dataclass(kw_only=True)
class RunInParts(Run):
    """Rows are where they are; some of them, drawn, are at hand."""

    parted: PartitionedTable
    dealing: Any  # how many folds, or the column that says them
    _dealt: Dealt | None = field(default=None, init=False)
    _folded: Folded | None = field(default=None, init=False)
    _missing: tuple[Warning, ...] = field(default=(), init=False)

    @property
    def rows(self) -> PartitionedTable:
        """All of them."""
        return self.parted

    @property
    def table(self) -> Table:
        """Those drawn, in the order in which they are dealt into folds."""
        return self.dealt.rows.sample

    @property
    def dealt(self) -> Dealt:
        """All rows in folds, summed when they are first asked for."""
        if self._dealt is None:
            started = time.perf_counter()
            self.progress("summing", 0, 1)
            with capture_warnings() as told:
                self._dealt = Dealt.of(
                    self.parted, self.dealing, seed=self.seed, detail=self.detail or "pooled"
                )
            self._missing = tuple(told)
            self.seconds["summing"] = time.perf_counter() - started
        return self._dealt

    @property
    def folded(self) -> Folded:
        """The rows drawn in folds, with the sums over all rows."""
        if self._folded is None:
            dealt = self.dealt
            whole = dealt.rows.moments
            fold = dealt.drawn.astype(np.intp, copy=False)
            self._folded = Folded.around(dealt.rows.sample, fold, dealt.trains, whole)
        return self._folded

    @property
    def folds(self) -> int:
        """How many."""
        if self._dealt is not None:
            return self._dealt.folds
        return self.dealing if isinstance(self.dealing, int) else 10  # so many for a first guess

    @property
    def moments(self) -> ClassMoments:
        """Of all rows: those of the folds together, or as they were opened."""
        return self.parted.moments if self._dealt is None else self._dealt.rows.moments

    @property
    def shares(self) -> Floats:
        """(K,) weight of each class."""
        return self.parted.moments.weight

    @property
    def training(self) -> int:
        """How many rows a training part has."""
        return int(self.dealt.trains[0].rows.sum())

    def outcomes(
        self, members: list[StudyModel], left_out: list[tuple[str, str]]
    ) -> tuple[tuple[ModelResult, ...], Floats]:
        """All models are fitted first, then scored together."""
        tried = list(self.run_each(members, self._fitted, left_out))
        if not tried:
            return (), np.zeros((0, 0))
        started = time.perf_counter()
        self.progress("scoring", 0, 1)
        labels = self.parted.schema.labels
        with capture_warnings() as told:
            scorers = tuple(fitted.scorers for _, fitted, _, _ in tried)
            sums = self.dealt.rows.fold(HeldOutReading(labels, scorers))
        self.seconds["scoring"] = time.perf_counter() - started
        outcomes = [
            self._measured(member, fitted, one, seconds, (*own, *told, *self._missing))
            for (member, fitted, seconds, own), one in zip(tried, sums.models, strict=True)
        ]
        return tuple(outcomes), sums.right

    def _fitted(self, member: StudyModel) -> Fitted:
        ways = self.fold_estimators(member)
        if ways is not None:
            able = gives_posterior(member.make())
            return Fitted(tuple(fold_rules(ways, self.dealt)), able, self.note(member))
        models = self.folded.refits(
            member.make(), most=self.max_rows, seed=self.seed, told=self.fold_progress(member)
        )
        ended = all(bool(getattr(model, "converged_", True)) for model in models)
        converged = ended or member.may_stop_early
        note = self.note(member, used=self.folded.drawn(self.max_rows), converged=converged)
        labels = self.parted.schema.labels
        made = _scorers(models, labels, hasattr(models[0], "predict_log_proba"))
        return Fitted(tuple(made), gives_posterior(models[0]), note, converged)

    def _measured(
        self,
        member: StudyModel,
        fitted: Fitted,
        sums: ModelSums,
        seconds: float,
        warnings: tuple[Warning, ...],
    ) -> ModelResult:
        with capture_warnings():  # an AUC of 1 has no spread: the table shows that
            return measure_model(
                member,
                [Assessment.of_tally(tally) for tally in sums.tallies],
                area=auc_of_rankings(sums.rankings, LEVEL),
                able=fitted.able,
                seconds=seconds,
                note=fitted.note,
                warnings=warnings,
                converged=fitted.converged,
            )


def _scorers(models: Sequence[Any], labels: Labels, able: bool) -> list[Scorer]:
    """Fitted models as they travel to the rows: without those that they were fitted to."""
    if able and hasattr(models[0], "predict_with_rule"):
        places = [np.searchsorted(labels, model.classes_) for model in models]
        made = zip(models, places, strict=True)
        return [RuleScorer(clone(model), model.rule_, own, len(labels)) for model, own in made]
    kind = ModelScorer if able else DecisionScorer
    return [kind(model, labels) for model in models]
