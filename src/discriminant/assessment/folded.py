"""Rows dealt into folds once, summed once, for as many models as one likes.

    part_f    rows of fold f, side by side in memory       moments_f    their moments
    train_f = moments_0 + ... + moments_{F-1} without moments_f        whole = all of them

`cross_validate` reads and sums the rows for one model. Here that is done for all: what is left of a
model made from moments is algebra on `train_f` and one scoring of `part_f`. A model that must see
rows is fitted to the other parts, or to some of their rows where these are very many; held out and
scored are all rows in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from discriminant.assessment.answers import Answers, Gathered, class_scores
from discriminant.assessment.folds import (
    FoldNumbers,
    Places,
    all_but_one,
    only_present,
    rows_by_fold,
)
from discriminant.assessment.grid import Candidates, Grid, grid_sums
from discriminant.assessment.measures import Assessment
from discriminant.assessment.refit import for_classes, present_classes
from discriminant.engines.engine import anchor_of, read_moments
from discriminant.engines.local import available_threads, one_blas_thread
from discriminant.errors import WeightError, carried, gathered
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.table.schema import Floats, dense, is_sparse
from discriminant.table.source import Table

T = TypeVar("T")
_PIECE = 8192  # rows scored at a time, so that they stay in the cache


@dataclass(frozen=True, slots=True, eq=False)
class Folded:
    """A table in F parts, with the sums of all but each."""

    table: Table
    fold: FoldNumbers  # (N,)
    rows: tuple[Places, ...]  # F: numbers of the rows of each part
    parts: tuple[Table, ...]  # F
    trains: tuple[ClassMoments, ...]  # F, or none where models are to be fitted to rows
    whole: ClassMoments | None  # of all rows

    @classmethod
    def of(cls, table: Table, fold: FoldNumbers, *, detail: Detail | None) -> Folded:
        """Deal out the rows, and sum them in a detail; None: do not sum."""
        rows = tuple(rows_by_fold(fold))
        anchor = None if detail is None else anchor_of(table)

        def work(some: Places) -> tuple[Table, ClassMoments | None]:
            part = _in_rows(table.take(some))
            return part, None if detail is None else read_moments(
                part, detail=detail, anchor=anchor
            )

        with one_blas_thread(), ThreadPoolExecutor(available_threads()) as pool:
            parts, sums = zip(*pool.map(carried(work), rows), strict=True)
        if detail is None:
            return cls(table, fold, rows, parts, (), None)
        trains = tuple(all_but_one(sums))
        return cls(table, fold, rows, parts, trains, trains[0] + sums[0])

    @classmethod
    def around(
        cls, table: Table, fold: FoldNumbers, trains: Sequence[ClassMoments], whole: ClassMoments
    ) -> Folded:
        """Some rows of a larger table, with the sums over all rows of that."""
        rows = tuple(np.flatnonzero(fold == f) for f in range(len(trains)))
        parts = tuple(_in_rows(table.take(some)) for some in rows)
        return cls(table, fold, rows, parts, tuple(trains), whole)

    def answers(self, estimator: Any) -> tuple[Answers, tuple[Assessment, ...]]:
        """What models made from the sums of all other parts say of each row, and how each did."""
        return self.answers_by(lambda f: estimator)

    def answers_by(self, model_of: Callable[[int], Any]) -> tuple[Answers, tuple[Assessment, ...]]:
        """The same with a model, not yet fitted, of each part's own."""
        found = Answers.blank(len(self.table), len(self.table.schema.labels))

        def work(f: int) -> Assessment:
            said = self._scored(f, model_of(f))
            found.put(
                self.rows[f], np.arange(len(said.log_posterior.T)), said.log_posterior, said.decided
            )
            return self.tally(f, said)

        with one_blas_thread(), ThreadPoolExecutor(available_threads()) as pool:
            return found, tuple(pool.map(carried(work), range(len(self.rows))))

    def _scored(self, f: int, estimator: Any) -> Answers:
        """What is said of the rows of a part, in their order there."""
        labels, train, part = self.table.schema.labels, self.trains[f], self.parts[f]
        present = train.rows > 0
        model = for_classes(estimator, present, labels)
        own = only_present(train)
        if model.needs_rows_for(own):
            rule = model.rule_of(self.table.take(self._others(f)))
        else:
            rule = model.rule_from(own)
        found, columns = Answers.blank(len(part), len(labels)), np.flatnonzero(present)
        for lo in range(0, len(part), _PIECE):
            some = slice(lo, lo + _PIECE)
            found.put(some, columns, *model.answers_by(rule, part.features[some]))
        return found

    def tally(self, f: int, said: Answers) -> Assessment:
        """How a model did that said so of the rows of a part."""
        part = self.parts[f]
        return Assessment.of(
            part.codes,
            said.decided,
            labels=part.schema.labels,
            others=said.others,
            log_posterior=said.log_posterior,
            weight=part.weight,
        )

    def tallies(self, said: Answers) -> tuple[Assessment, ...]:
        """The same of all parts, from what was said of all rows."""
        return tuple(self.tally(f, said.of(rows)) for f, rows in enumerate(self.rows))

    def refitted(
        self, estimator: Any, *, most: int, seed: int, told: Callable[[int], object] = id
    ) -> Refitted:
        """Models fitted to rows of all other parts, to at most so many of them."""
        gathering = Gathered(self.table.schema.labels, len(self.table))
        fit = self.fitting(estimator, most=most, seed=seed, told=told)

        def work(f: int) -> tuple[bool, Floats | None]:
            model, features = fit(f), self.parts[f].features
            able = hasattr(model, "predict_log_proba")
            with nullcontext() if able else gathered():
                gathering.ask(model, features, self.rows[f])
            scores = None if able else class_scores(model, features, gathering.labels)
            return bool(getattr(model, "converged_", True)), scores

        done = self._each(estimator, work)
        converged = all(ended for ended, _ in done)
        scores = self._together([scores for _, scores in done])
        return Refitted(gathering.answers(), scores, self.drawn(most), converged)

    def refits(
        self, estimator: Any, *, most: int, seed: int, told: Callable[[int], object] = id
    ) -> list[Any]:
        """The models themselves, without any asked of rows."""
        return self._each(estimator, self.fitting(estimator, most=most, seed=seed, told=told))

    def fitting(
        self, estimator: Any, *, most: int, seed: int, told: Callable[[int], object]
    ) -> Callable[[int], Any]:
        """What fits the model to at most so many rows of all parts but one."""
        labels = self.table.schema.labels
        if self.table.weight is not None and not has_fit_parameter(estimator, "sample_weight"):
            raise WeightError.not_taken(type(estimator).__name__)
        draw = np.random.default_rng(seed)
        drawn = [self._some(self._others(f), most, draw) for f in range(len(self.parts))]

        def fit(f: int) -> Any:
            told(f)
            train = _in_rows(self.table.take(drawn[f]))
            present = present_classes(train.codes, train.weight, labels)
            model = for_classes(clone(estimator), present, labels)
            more = {} if train.weight is None else {"sample_weight": train.weight}
            return model.fit(dense(train.features), labels[train.codes], **more)

        return fit

    def drawn(self, most: int) -> int:
        """How many rows a model is fitted to, in the largest training part."""
        return min(most, len(self.table) - min(map(len, self.rows)))

    def _each(self, estimator: Any, work: Callable[[int], T]) -> list[T]:
        """Work on all parts, on all cores if that is safe."""
        threads = available_threads() if _our_own(estimator) else 1
        held = one_blas_thread() if threads > 1 else nullcontext()
        with held, ThreadPoolExecutor(threads) as pool:
            return list(pool.map(carried(work), range(len(self.parts))))

    def _together(self, scores: Sequence[Floats | None]) -> Floats | None:
        """(N, K) scores of all rows from those of the parts."""
        if scores[0] is None:
            return None
        found = np.empty((scores[0].shape[1], len(self.table))).T
        for rows, some in zip(self.rows, scores, strict=True):
            found[rows] = some
        return found

    def grid(self, candidates: Candidates, *, most: int, seed: int) -> tuple[Grid, list[Grid]]:
        """Losses of RDA models on at most so many held-out rows: of all folds, of all but each."""
        draw = np.random.default_rng(seed)
        share = max(most // len(self.parts), 1)
        jobs = [
            (part, self._some(np.arange(len(part)), share, draw), train)
            for part, train in zip(self.parts, self.trains, strict=True)
        ]
        sums = grid_sums(jobs, candidates)
        others = [[one for g, one in enumerate(sums) if g != f] for f in range(len(sums))]
        every = Grid.of(candidates, sums, self.fold)
        return every, [Grid.of(candidates, some, self.fold) for some in others]

    def _others(self, f: int) -> Places:
        return np.flatnonzero(self.fold != f)

    @staticmethod
    def _some(rows: Places, most: int, draw: np.random.Generator) -> Places:
        if len(rows) <= most:
            return rows
        return np.sort(draw.choice(rows, most, replace=False))


@dataclass(frozen=True, slots=True, eq=False)
class Refitted:
    """What models fitted to rows say."""

    answers: Answers
    scores: Floats | None  # (N, K), of models without probabilities
    used: int  # rows each was fitted to
    converged: bool


def _in_rows(part: Table) -> Table:
    """Rows side by side, each in one piece, as scoring and the perceptron like them."""
    if is_sparse(part.features):
        return part
    features = np.ascontiguousarray(dense(part.features), dtype=np.float64)
    return Table(part.schema, features, part.codes, part.weight, part.responses)


def _our_own(estimator: Any) -> bool:
    """Whether two of them may be fitted at the same time: others need not allow for that."""
    return type(estimator).__module__.startswith("discriminant.")
