"""Every model on the same folds, and the moments of these read once.

Models made from moments are scored on all held-out rows. The dials of RDA are chosen, for each
fold, on the other folds, so that no row helps to choose the model it is held out from. Models that
read rows are fitted to at most `most` rows of each training part, and say so.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from discriminant.assessment.answers import Answers
from discriminant.assessment.folded import Folded
from discriminant.assessment.folds import FoldNumbers
from discriminant.assessment.grid import STEPS, Candidates, Grid
from discriminant.assessment.measures import Assessment
from discriminant.assessment.resampling import HeldOut, warn_of_missing
from discriminant.engines.local import available_threads
from discriminant.errors import DiscriminantError, StudyError, kept
from discriminant.estimators.gaussian import GaussianClassifier
from discriminant.models.gaussian import Family
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.study.comparison import Comparison, Outcome, outcome_of
from discriminant.study.members import Member
from discriminant.table.schema import Floats
from discriminant.table.source import Table

_GRID_ROWS = 20_000  # held-out rows on which the dials of RDA are chosen
_MOMENTS_BYTES = 1 << 30  # of all folds together
_KEPT_BYTES = 1 << 29  # of held-out posteriors of all models together
Told = Callable[[str, int, int], object]


@dataclass
class Run:
    """A comparison under way, and what it leaves for later: moments, the grid of RDA."""

    table: Table
    fold: FoldNumbers
    seed: int
    most: int
    told: Told
    seconds: dict[str, float]
    marginal: bool = False  # whether models are to do without features that are missing
    _folded: Folded | None = None
    surface: Grid | None = None
    _by_fold: list[Grid] = field(default_factory=list)

    @property
    def folded(self) -> Folded:
        """The rows in folds, dealt and summed when they are first asked for."""
        if self._folded is None:
            started = time.perf_counter()
            self.told("summing", 0, 1)
            self._folded = Folded.of(self.table, self.fold, detail=self.detail)
            self.seconds["summing"] = time.perf_counter() - started
        return self._folded

    @property
    def detail(self) -> Detail | None:
        """What is summed: all there is use for, unless rows are the smaller thing."""
        N, d, K = len(self.table), self.table.width, len(self.table.schema.labels)
        if 2 * d > N:
            return None
        folds = int(self.fold.max()) + 1
        return "fourth" if 24 * K * d * d * folds <= _MOMENTS_BYTES else "pooled"

    @cached_property
    def _missing(self) -> tuple[Warning, ...]:
        """Classes that some training part lacks, told of every model."""
        table = self.table
        with kept() as told:
            warn_of_missing(table.codes, table.weight, table.schema.labels, self.fold)
        return tuple(told)

    @property
    def moments(self) -> ClassMoments | None:
        """Of all rows."""
        return self.folded.whole

    def compare(self, members: list[Member]) -> Comparison:
        """The outcome of each."""
        waiting: list[Future[Outcome]] = []
        left_out: list[tuple[str, str]] = []
        K = len(self.table.schema.labels)
        keep = 8 * len(self.table) * K * len(members) <= _KEPT_BYTES
        with ThreadPoolExecutor(available_threads()) as pool:  # measured while the next is scored
            for i, member in enumerate(members):
                self.told(member.title, i, len(members))
                try:
                    said = self._answered(member)
                except DiscriminantError as reason:
                    left_out.append((member.title, str(reason)))
                    continue
                waiting.append(pool.submit(self._measured, member, said, keep))
                if not keep:
                    waiting[-1].result()
            outcomes = [found.result() for found in waiting]
        self.told("done", len(members), len(members))
        if not outcomes:
            raise StudyError.none_left(left_out)
        shares = np.bincount(self.table.codes, self.table.weight)
        return Comparison(
            tuple(outcomes),
            tuple(left_out),
            int(self.fold.max()) + 1,
            len(self.table),
            float(1.0 - shares.max() / shares.sum()),
            dict(self.seconds),
            self.surface,
            tuple(str(label) for label in self.table.schema.labels.tolist()),
        )

    def _answered(self, member: Member) -> _Said:
        """What one model says of held-out rows, and how long it took."""
        folded = self.folded  # before the clock starts: it serves all
        started = time.perf_counter()
        with kept() as told:
            found = self._said(member, folded)
        taken = time.perf_counter() - started
        return replace(found, seconds=taken, warnings=(*told, *self._missing))

    def _measured(self, member: Member, said: _Said, keep: bool) -> Outcome:
        table = self.table
        held = HeldOut.of(table.schema.labels, table.codes, self.fold, said.answers, table.weight)
        with kept():  # an AUC of 1 has no spread: the table shows that
            return outcome_of(
                member,
                held,
                tallies=said.tallies or self.folded.tallies(said.answers),
                seconds=said.seconds,
                note=said.note,
                scores=said.scores,
                warnings=said.warnings,
                converged=said.converged,
                keep=keep,
            )

    def held(self, outcome: Outcome) -> HeldOut:
        """Held-out answers, worked out again where they were too many to be kept."""
        if outcome.held is not None:
            return outcome.held
        again = self._measured(outcome.member, self._answered(outcome.member), True).held
        assert again is not None
        return again

    def made(self, member: Member) -> Any:
        """The classifier with the options that were chosen, not yet fitted."""
        if not member.chosen or self.detail is None:
            return member.make()
        p, s, _ = self._surface(self.folded).best()
        assert self.surface is not None
        return _rda(self.surface, p, s)

    def check(self, model: Any) -> None:
        """Refuse a model that cannot do what is asked of all."""
        if self.marginal and not isinstance(model, GaussianClassifier):
            raise StudyError.not_gaussian()

    def _said(self, member: Member, folded: Folded) -> _Said:
        model = member.make()
        self.check(model)
        if member.chosen and (folded.whole is None or not folded.whole.holds("class")):
            raise StudyError.no_grid(len(self.table), self.table.width)
        if not member.by_moments or folded.whole is None:
            return self._refitted(member, model, folded)
        if not member.chosen:
            if not folded.whole.holds(model.detail):
                model.fit_moments(folded.whole)  # tells what is missing
            return _Said(*folded.answers(model))
        self._surface(folded)
        made = [_rda(grid, *grid.best()[:2]) for grid in self._by_fold]
        return _Said(*folded.answers_by(lambda f: made[f]), note=self._dials())

    def _dials(self) -> str:
        assert self.surface is not None
        p, s, _ = self.surface.best()
        pooling, shrinkage = self.surface.pooling[p], self.surface.shrinkage[s]
        tried = len(self.surface.pooling) * len(self.surface.shrinkage)
        drawn = f" on {_GRID_ROWS:,} held-out rows drawn of all"
        part = "" if len(self.table) <= _GRID_ROWS else drawn
        taken = f"pooling {pooling:g} and shrinkage {shrinkage:g} were"
        if pooling == 0:
            taken = "pooling 0 (shrinkage then has no part) was"
        return f"Of {tried} settings, {taken} chosen{part}; for each fold, on the other folds."

    def _surface(self, folded: Folded) -> Grid:
        if self.surface is None:
            tried = Candidates(Family(), np.array(STEPS), STEPS)
            self.surface, self._by_fold = folded.grid(tried, most=_GRID_ROWS, seed=self.seed)
        return self.surface

    def _refitted(self, member: Member, model: Any, folded: Folded) -> _Said:
        folds = len(folded.rows)
        found = folded.refitted(
            model,
            most=self.most,
            seed=self.seed,
            told=lambda f: self.told(f"{member.title}, fold {f + 1} of {folds}", -1, 0),
        )
        note = ""
        if found.used == self.most < len(self.table) - len(folded.rows[0]):
            note = f"Fitted to {found.used:,} rows drawn of each training part."
        converged = (
            found.converged or member.name == "perceptron"
        )  # which rarely ends, and need not
        if not converged:
            note += " Some of its fits had not converged."
        return _Said(found.answers, (), found.scores, note.strip(), converged)


@dataclass(frozen=True, slots=True, eq=False)
class _Said:
    answers: Answers
    tallies: tuple[Assessment, ...] = ()  # of each fold, if they are at hand
    scores: Floats | None = None
    note: str = ""
    converged: bool = True
    seconds: float = 0.0
    warnings: tuple[Warning, ...] = ()


def _rda(grid: Grid, p: int, s: int) -> Any:
    from discriminant.estimators.regularised import RDA

    return RDA(pooling=float(grid.pooling[p]), shrinkage=grid.shrinkage[s])
