"""Every model on the same folds, and the moments of these read once.

Models made from moments are scored on all held-out rows. The dials of RDA are chosen, for each
fold, on the other folds, so that no row helps to choose the model it is held out from. Models that
read rows are fitted to at most `most` rows of each training part, and say so.

Here is what does not depend on where the rows are; `in_memory` and `in_parts` add how they are
scored. Of rows in parts, `table` and `folded` are some rows, drawn, with the sums over all.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from discriminant.assessment.answers import Answers
from discriminant.assessment.folded import Folded
from discriminant.assessment.grid import STEPS, Candidates, Grid
from discriminant.assessment.measures import Assessment
from discriminant.assessment.resampling import HeldOut
from discriminant.engines.parted import AnyTable
from discriminant.errors import DiscriminantError, StudyError, kept
from discriminant.models.gaussian import Family
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.posterior import gives_posterior
from discriminant.study.comparison import Comparison
from discriminant.study.measuring import Outcome
from discriminant.study.members import Member
from discriminant.table.schema import Floats
from discriminant.table.source import Table

T = TypeVar("T")
Told = Callable[[str, int, int], object]
Ways = Callable[[int], Any]  # the model of each fold, not yet fitted
_GRID_ROWS = 20_000  # held-out rows on which the dials of RDA are chosen
_MOMENTS_BYTES = 1 << 30  # of all folds together


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """What a model says of held-out rows of the table."""

    answers: Answers
    tallies: tuple[Assessment, ...] = ()  # of each fold, if they are at hand
    scores: Floats | None = None  # (N, K) of a model without probabilities
    note: str = ""
    converged: bool = True


@dataclass
class Run(ABC):
    """A comparison under way, and what it leaves for later: moments, the grid of RDA."""

    seed: int
    most: int
    told: Told
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
        self, members: list[Member], left_out: list[tuple[str, str]]
    ) -> tuple[tuple[Outcome, ...], Floats]:
        """Of the models that could be fitted, and (M, M) what they have right together."""

    # --- comparing --------------------------------------------------------------------------------

    def compare(self, members: list[Member]) -> Comparison:
        """The outcome of each."""
        left_out: list[tuple[str, str]] = []
        outcomes, right = self.outcomes(members, left_out)
        self.told("done", len(members), len(members))
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

    def worked(
        self, members: list[Member], work: Callable[[Member], T], left_out: list[tuple[str, str]]
    ) -> Iterator[tuple[Member, T, float, tuple[Warning, ...]]]:
        """What work gives of each model, how long it took and what was told; or why not."""
        self.folded  # before the clock starts: it serves all  # noqa: B018
        for i, member in enumerate(members):
            self.told(member.title, i, len(members))
            self._load(member)
            started = time.perf_counter()
            try:
                with kept() as told:
                    found = work(member)
            except DiscriminantError as reason:
                left_out.append((member.title, str(reason)))
                continue
            yield member, found, time.perf_counter() - started, tuple(told)

    def _load(self, member: Member) -> None:
        if member.compiled and "compiling" not in self.seconds:
            started = time.perf_counter()
            member.load()
            self.seconds["compiling"] = time.perf_counter() - started

    def held(self, outcome: Outcome) -> HeldOut:
        """Held-out answers of the rows in memory, worked out again where they were not kept."""
        if outcome.held is not None:
            return outcome.held
        with kept():
            return self.held_of(outcome.member, self.said(outcome.member).answers)

    def held_of(self, member: Member, answers: Answers) -> HeldOut:
        """Answers beside the truth."""
        table = self.table
        return HeldOut.of(
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

    def made(self, member: Member) -> Any:
        """The classifier with the options that were chosen, not yet fitted."""
        if not member.chosen or self.detail is None:
            return member.make()
        p, s, _ = self._surface().best()
        assert self.surface is not None
        return _rda(self.surface, p, s)

    def check(self, model: Any) -> None:
        """Refuse a model that cannot do what is asked of all."""
        if self.marginal and not getattr(model, "can_marginalise", False):
            raise StudyError.not_gaussian()

    def ways(self, member: Member) -> Ways | None:
        """The model of each fold, to be made from moments; None: it is to be fitted to rows."""
        model, whole = member.make(), self.folded.whole
        self.check(model)
        if member.chosen and (whole is None or not whole.holds("class")):
            raise StudyError.no_grid(len(self.rows), self.rows.width)
        if not member.by_moments or whole is None:
            return None
        if not member.chosen:
            if not whole.holds(model.detail):
                model.fit_moments(whole)  # tells what is missing
            return lambda f: model
        self._surface()
        made = [_rda(grid, *grid.best()[:2]) for grid in self._by_fold]
        return lambda f: made[f]

    def said(self, member: Member) -> Said:
        """What a model says of the rows in memory, each held out in its turn."""
        ways = self.ways(member)
        if ways is not None:
            return Said(*self.folded.answers_by(ways), note=self.note(member))
        found = self.folded.refitted(
            member.make(), most=self.most, seed=self.seed, told=self.telling(member)
        )
        converged = found.converged or member.unending
        note = self.note(member, used=found.used, converged=converged)
        return Said(found.answers, (), found.scores, note, converged)

    def telling(self, member: Member) -> Callable[[int], object]:
        """What tells of the fold under way."""
        folds = self.folds
        return lambda f: self.told(f"{member.title}, fold {f + 1} of {folds}", -1, 0)

    def note(self, member: Member, *, used: int | None = None, converged: bool = True) -> str:
        """What is to be known of a model: its dials, or the rows that it was fitted to."""
        notes = [self._dials()] if member.chosen and used is None else []
        if used is not None and used < self.training:
            notes.append(f"Fitted to {used:,} rows drawn of each training part.")
        if not converged:
            notes.append("Some of its fits had not converged.")
        return " ".join(notes)

    def _dials(self) -> str:
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

    def _surface(self) -> Grid:
        if self.surface is None:
            tried = Candidates(Family(), np.array(STEPS), STEPS)
            self.surface, self._by_fold = self.folded.grid(tried, most=_GRID_ROWS, seed=self.seed)
        return self.surface


def _rda(grid: Grid, p: int, s: int) -> Any:
    from discriminant.estimators.regularised import RDA

    return RDA(pooling=float(grid.pooling[p]), shrinkage=grid.shrinkage[s])
