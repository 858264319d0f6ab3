"""A comparison on rows in parts: two passes over all of them, whatever the number of models.

    pass 1    moments of each fold: models made from moments are exact
    some      `rows.drawn`: models that read rows, and the dials of RDA
    pass 2    every row is scored by all models that have not seen its fold

No row is kept: measures are made from tallies of the folds, rankings, and who is right together.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from discriminant.assessment.dealt import Dealt
from discriminant.assessment.folded import Folded
from discriminant.assessment.measures import Assessment
from discriminant.assessment.scorers import ByModel, ByRule, ByScores
from discriminant.assessment.streamed import auc_of, ruled
from discriminant.engines.parted import Parted
from discriminant.errors import kept
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.held_out import HeldOutReading, ModelSums, Scorer
from discriminant.posterior import gives_posterior
from discriminant.study.measuring import LEVEL, Outcome, outcome_of
from discriminant.study.members import Member
from discriminant.study.running import Run
from discriminant.table.schema import Floats, Labels
from discriminant.table.source import Table


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

    parted: Parted
    dealing: Any  # how many folds, or the column that says them
    _dealt: Dealt | None = field(default=None, init=False)
    _folded: Folded | None = field(default=None, init=False)
    _missing: tuple[Warning, ...] = field(default=(), init=False)

    @property
    def rows(self) -> Parted:
        """All of them."""
        return self.parted

    @property
    def table(self) -> Table:
        """Those drawn, in the order in which they are dealt into folds."""
        return self.dealt.rows.drawn

    @property
    def dealt(self) -> Dealt:
        """All rows in folds, summed when they are first asked for."""
        if self._dealt is None:
            started = time.perf_counter()
            self.told("summing", 0, 1)
            with kept() as told:
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
            self._folded = Folded.around(dealt.rows.drawn, fold, dealt.trains, whole)
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
        self, members: list[Member], left_out: list[tuple[str, str]]
    ) -> tuple[tuple[Outcome, ...], Floats]:
        """All models are fitted first, then scored together."""
        tried = list(self.worked(members, self._fitted, left_out))
        if not tried:
            return (), np.zeros((0, 0))
        started = time.perf_counter()
        self.told("scoring", 0, 1)
        labels = self.parted.schema.labels
        with kept() as told:
            scorers = tuple(fitted.scorers for _, fitted, _, _ in tried)
            sums = self.dealt.rows.fold(HeldOutReading(labels, scorers))
        self.seconds["scoring"] = time.perf_counter() - started
        outcomes = [
            self._measured(member, fitted, one, seconds, (*own, *told, *self._missing))
            for (member, fitted, seconds, own), one in zip(tried, sums.models, strict=True)
        ]
        return tuple(outcomes), sums.right

    def _fitted(self, member: Member) -> Fitted:
        ways = self.ways(member)
        if ways is not None:
            able = gives_posterior(member.make())
            return Fitted(tuple(ruled(ways, self.dealt)), able, self.note(member))
        models = self.folded.refits(
            member.make(), most=self.most, seed=self.seed, told=self.telling(member)
        )
        ended = all(bool(getattr(model, "converged_", True)) for model in models)
        converged = ended or member.unending
        note = self.note(member, used=self.folded.drawn(self.most), converged=converged)
        labels = self.parted.schema.labels
        made = _scorers(models, labels, hasattr(models[0], "predict_log_proba"))
        return Fitted(tuple(made), gives_posterior(models[0]), note, converged)

    def _measured(
        self,
        member: Member,
        fitted: Fitted,
        sums: ModelSums,
        seconds: float,
        warnings: tuple[Warning, ...],
    ) -> Outcome:
        with kept():  # an AUC of 1 has no spread: the table shows that
            return outcome_of(
                member,
                [Assessment.of_tally(tally) for tally in sums.tallies],
                area=auc_of(sums.rankings, LEVEL),
                able=fitted.able,
                seconds=seconds,
                note=fitted.note,
                warnings=warnings,
                converged=fitted.converged,
            )


def _scorers(models: Sequence[Any], labels: Labels, able: bool) -> list[Scorer]:
    """Fitted models as they travel to the rows: without those that they were fitted to."""
    if able and hasattr(models[0], "answers_by"):
        places = [np.searchsorted(labels, model.classes_) for model in models]
        made = zip(models, places, strict=True)
        return [ByRule(clone(model), model.rule_, own, len(labels)) for model, own in made]
    kind = ByModel if able else ByScores
    return [kind(model, labels) for model in models]
