"""A comparison on rows in memory: what a model says of every held-out row is kept and measured."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from discriminant.assessment.folded import Folded
from discriminant.assessment.folds import FoldNumbers
from discriminant.assessment.resampling import warn_of_missing
from discriminant.engines.local import available_threads
from discriminant.errors import kept
from discriminant.moments.class_moments import ClassMoments
from discriminant.study.measuring import Outcome, area_of, outcome_of, right_together
from discriminant.study.members import Member
from discriminant.study.running import Run, Said
from discriminant.table.schema import Floats
from discriminant.table.source import Table

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
            self.told("summing", 0, 1)
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
        with kept() as told:
            warn_of_missing(table.codes, table.weight, table.schema.labels, self.fold)
        return tuple(told)

    def outcomes(
        self, members: list[Member], left_out: list[tuple[str, str]]
    ) -> tuple[tuple[Outcome, ...], Floats]:
        """One model is measured while the next is scored."""
        waiting: list[Future[tuple[Outcome, Right]]] = []
        K = len(self.table.schema.labels)
        keep = 8 * len(self.table) * K * len(members) <= _KEPT_BYTES
        with ThreadPoolExecutor(available_threads()) as pool:
            for member, said, seconds, told in self.worked(members, self.said, left_out):
                warnings = (*told, *self._missing)
                found = pool.submit(self._measured, member, said, seconds, warnings, keep)
                waiting.append(found)
                if not keep:
                    found.result()
            measured = [found.result() for found in waiting]
        if not measured:
            return (), np.zeros((0, 0))
        right = right_together(np.array([right for _, right in measured]), self.table.weight)
        return tuple(outcome for outcome, _ in measured), right

    def _measured(
        self, member: Member, said: Said, seconds: float, warnings: tuple[Warning, ...], keep: bool
    ) -> tuple[Outcome, Right]:
        held = self.held_of(member, said.answers)
        with kept():  # an AUC of 1 has no spread: the table shows that
            found = outcome_of(
                member,
                said.tallies or self.folded.tallies(said.answers),
                area=area_of(held, said.scores),
                able=held.probabilistic,
                seconds=seconds,
                note=said.note,
                warnings=warnings,
                converged=said.converged,
                held=held if keep else None,
            )
        return found, np.asarray(held.decided == held.codes)
