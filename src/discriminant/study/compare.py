"""Compare models by cross-validation on the same folds, whose moments are computed once.

Models based on moments are evaluated on all held-out rows. The hyperparameters of RDA are chosen,
for each fold, on the other folds, so that no row helps to choose the model it is held out from.
Models that read rows are fitted to at most `max_rows` rows of each training set; a note in the
result states this.

    in memory      predictions of every held-out row are stored and measured
    partitioned    pass 1    moments of each fold: models based on moments are exact
                   sample    rows in memory: models that read rows, and the hyperparameters of RDA
                   pass 2    every row is scored by all models fitted without its fold

Both cases use `held_out.score_folds`. The measures of one model are in `study.comparison`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.assessment.assessment import Assessment
from discriminant.assessment.classifier_outputs import Predictions
from discriminant.assessment.resampling.folds import (
    FoldNumbers,
    MemoryFolds,
    PartitionedFolds,
    class_counts,
    warn_classes_in_one_fold,
)
from discriminant.assessment.resampling.held_out import (
    FoldModel,
    HeldOutPredictions,
    HeldOutScores,
    auc_of_rankings,
    score_folds,
    score_model,
)
from discriminant.assessment.resampling.rda_grid import STEPS, Candidates, Grid, grids_by_fold
from discriminant.engines.local import available_threads
from discriminant.engines.partitioned_table import AnyTable
from discriminant.errors import StudyError, capture_warnings
from discriminant.models.gaussian.family import GaussianFamily
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.posterior import gives_posterior
from discriminant.study.comparison import (
    LEVEL,
    Comparison,
    ModelResult,
    both_correct_weight,
    describe_failed_fits,
    held_out_auc,
    is_separated,
    measure_model,
)
from discriminant.study.models import StudyModel
from discriminant.table.blocks import Floats
from discriminant.table.memory import Table

Progress = Callable[[str, int, int], object]
_GRID_ROWS = 20_000  # held-out rows on which the hyperparameters of RDA are chosen
_MOMENTS_BYTES = 1 << 30  # largest size of the moments of all folds together
_PREDICTIONS_BYTES = 1 << 29  # largest size of the held-out posteriors of all models together
_TYPICAL_FOLDS = 10  # number of folds assumed before the column that defines them is read


@dataclass
class ComparisonRun:
    """A comparison of models; folds with their moments and the RDA grid are computed only once."""

    rows: AnyTable  # all rows, in memory or partitioned
    # (N,) fold numbers of rows in memory; else the number of folds, or the name of a column
    folds: Any
    seed: int
    max_rows: int  # largest number of training rows of a model that reads rows
    progress: Progress
    seconds: dict[str, float]
    marginal: bool = False  # whether models must be able to predict rows with missing features
    fold_column: str | None = None  # column that defines the folds
    grid: Grid | None = None  # losses of the RDA candidates, once computed
    _grid_by_fold: list[Grid] = field(default_factory=list, init=False)
    _folded: MemoryFolds | PartitionedFolds | None = field(default=None, init=False)
    # warnings about classes that occur in one fold only
    _missing: tuple[Warning, ...] = field(default=(), init=False)

    # --- the folded table -------------------------------------------------------------------------

    @property
    def folded(self) -> MemoryFolds | PartitionedFolds:
        """All rows divided into folds, with their moments; computed when first needed."""
        if self._folded is None:
            started = time.perf_counter()
            self.progress("summing", 0, 1)
            with capture_warnings() as warnings:
                self._folded = self._fold()
            self._missing = tuple(warnings)
            self.seconds["summing"] = time.perf_counter() - started
        return self._folded

    def _fold(self) -> MemoryFolds | PartitionedFolds:
        rows = self.rows
        if not isinstance(rows, Table):
            detail = self.detail or "pooled"
            return PartitionedFolds.of(rows, self.folds, seed=self.seed, detail=detail)
        fold: FoldNumbers = self.folds
        folded = MemoryFolds.shared(rows, fold, detail=self.detail)
        labels = rows.schema.labels
        warn_classes_in_one_fold(class_counts(rows.codes, rows.weight, labels, fold), labels)
        return folded

    @property
    def in_memory(self) -> MemoryFolds:
        """The rows in memory (all of them, or a sample) in folds, with the moments of all rows."""
        folded = self.folded
        return folded if isinstance(folded, MemoryFolds) else folded.in_memory

    @property
    def table(self) -> Table:
        """The rows in memory: all of them or a sample."""
        table = self.in_memory.table
        assert table is not None
        return table

    @property
    def n_folds(self) -> int:
        """Number of folds; an assumed number before the column that defines the folds is read."""
        if self._folded is not None:
            return self._folded.n_folds
        if isinstance(self.rows, Table):
            return int(self.folds.max()) + 1
        return self.folds if isinstance(self.folds, int) else _TYPICAL_FOLDS

    @property
    def moments(self) -> ClassMoments | None:
        """Moments of all rows; None if there are too many features, so that models use rows."""
        if isinstance(self.rows, Table):
            moments: ClassMoments | None = self.in_memory.whole
            return moments
        folded = self._folded
        return folded.rows.moments if isinstance(folded, PartitionedFolds) else self.rows.moments

    @property
    def class_weight(self) -> Floats:
        """(K,) weight of each class."""
        if isinstance(self.rows, Table):
            return np.bincount(self.rows.codes, self.rows.weight).astype(np.float64)
        return self.rows.moments.weight

    @property
    def detail(self) -> Detail | None:
        """Detail of the moments: the finest that fits, or None if the rows need less memory."""
        N, d, K = len(self.rows), self.rows.width, len(self.rows.schema.labels)
        if 2 * d > N:
            return None
        return "fourth" if 24 * K * d * d * self.n_folds <= _MOMENTS_BYTES else "pooled"

    # --- comparing --------------------------------------------------------------------------------

    def compare(self, models: list[StudyModel]) -> Comparison:
        """Score every model on the same folds and compute its measures."""
        left_out: list[tuple[str, str]] = []
        results, both_correct = self._results(models, left_out)
        self.progress("done", len(models), len(models))
        if not results:
            raise StudyError.none_left(left_out)
        weight = self.class_weight
        return Comparison(
            results,
            both_correct,
            tuple(left_out),
            self.n_folds,
            len(self.rows),
            float(1.0 - weight.max() / weight.sum()),
            dict(self.seconds),
            self.grid,
            tuple(str(label) for label in self.rows.schema.labels.tolist()),
            self.table.weight is not None,
            self.fold_column,
        )

    def _results(
        self, models: list[StudyModel], left_out: list[tuple[str, str]]
    ) -> tuple[tuple[ModelResult, ...], Floats]:
        """Return the results of models that could be fitted, and weights of pairs of models.

        Entry (i, j) of the (M, M) weights is the weight of the rows that models i and j both
        predict correctly.

        In memory, the measures of one model are computed while the next model is scored.
        """
        by_name = {model.name: model for model in models}
        cells = len(self.table) * len(self.table.schema.labels) * len(models)
        keep = 8 * cells <= _PREDICTIONS_BYTES
        makers = {model.name: self._maker(model) for model in models}
        measured = []
        both: list[Floats] = []
        with ThreadPoolExecutor(available_threads()) as pool:
            for scores in score_folds(self.folded, makers, prepare=self._prepare(by_name)):
                model = by_name[scores.name]
                if scores.error is not None:
                    left_out.append((model.title, str(scores.error)))
                    continue
                if scores.both_correct is not None:
                    if not both:
                        self.seconds["scoring"] += time.perf_counter()
                    both.append(scores.both_correct)
                measured.append(pool.submit(self._measure, model, scores, keep))
                if not keep:
                    measured[-1].result()
            results = [future.result() for future in measured]
        if not results:
            return (), np.zeros((0, 0))
        if both:
            return tuple(result for result, _ in results), np.array(both)
        correct = np.array([mask for _, mask in results])
        both_correct = both_correct_weight(correct, self.table.weight)
        return tuple(result for result, _ in results), both_correct

    def _prepare(self, models: dict[str, StudyModel]) -> Callable[[str], None]:
        """Return a function that reports progress and compiles a model before it is timed."""
        order = list(models)

        def prepare(name: str) -> None:
            if not name:
                self.progress("scoring", 0, 1)
                self.seconds["scoring"] = -time.perf_counter()
                return
            model = models[name]
            self.progress(model.title, order.index(name), len(order))
            if model.compiled and "compiling" not in self.seconds:
                started = time.perf_counter()
                model.load()
                self.seconds["compiling"] = time.perf_counter() - started

        return prepare

    def _measure(
        self, model: StudyModel, scores: HeldOutScores, keep: bool
    ) -> tuple[ModelResult, npt.NDArray[np.bool_]]:
        """Return the measures of one model, and a mask of the rows it predicts correctly."""
        converged = scores.converged or model.may_stop_early
        predictions, correct = None, np.zeros(0, dtype=np.bool_)
        # an AUC of 1 has no standard error; the table shows the 1, so there is no need to warn
        with capture_warnings():
            if scores.predictions is not None:
                predictions = self._join(model, scores.predictions)
                correct = np.asarray(predictions.decided == predictions.codes)
                tallies = self._tallies(scores.predictions)
                area = held_out_auc(predictions, scores.class_scores)
            else:
                assert scores.sums is not None
                tallies = [Assessment.of_tally(tally) for tally in scores.sums.tallies]
                area = auc_of_rankings(scores.sums.rankings, LEVEL)
            result = measure_model(
                model,
                tallies,
                area=area,
                probabilistic=gives_posterior(model.make()),
                seconds=scores.seconds,
                note=self._note(model, converged, separated=is_separated(scores.warnings)),
                warnings=(*scores.warnings, *self._missing),
                converged=converged,
                predictions=predictions if keep else None,
            )
        return result, correct

    def _tallies(self, predictions: Predictions) -> list[Assessment]:
        """Return the assessment of each fold, for rows in memory."""
        folded = self.in_memory
        tallies = []
        for part, rows in zip(folded.parts, folded.rows, strict=True):
            fold = predictions.take(rows)
            tallies.append(
                Assessment.from_decisions(
                    part.codes,
                    fold.decided,
                    labels=folded.labels,
                    others=fold.others,
                    log_posterior=fold.log_posterior,
                    weight=part.weight,
                )
            )
        return tallies

    def predictions_of(self, result: ModelResult) -> HeldOutPredictions:
        """Return the held-out predictions of rows in memory; compute them again if not stored."""
        if result.predictions is not None:
            return result.predictions
        with capture_warnings():
            scores = score_model(self.in_memory, self._maker(result.model)())
        assert scores.predictions is not None
        return self._join(result.model, scores.predictions)

    def _join(self, model: StudyModel, predictions: Predictions) -> HeldOutPredictions:
        probabilistic = gives_posterior(model.make())
        return HeldOutPredictions.of(self.in_memory, predictions, probabilistic=probabilistic)

    # --- models -----------------------------------------------------------------------------------

    def unfitted(self, model: StudyModel) -> Any:
        """Return the unfitted classifier with its selected hyperparameters."""
        if not model.uses_rda_grid or self.detail is None:
            return model.make()
        return _rda(self._rda_grid())

    def check(self, model: Any) -> None:
        """Raise if a model cannot do what this study requires of all models."""
        if self.marginal and not getattr(model, "can_marginalise", False):
            raise StudyError.not_gaussian()

    def _maker(self, model: StudyModel) -> Callable[[], FoldModel]:
        """Return a function that creates the model for `score_folds`."""

        def make() -> FoldModel:
            estimator, moments = model.make(), self.in_memory.whole
            self.check(estimator)
            if model.uses_rda_grid and (moments is None or not moments.has("class")):
                raise StudyError.no_grid(len(self.rows), self.rows.width)
            if not model.moment_based or moments is None:
                return FoldModel(
                    estimator,
                    from_moments=False,
                    max_rows=self.max_rows,
                    seed=self.seed,
                    progress=self._fold_progress(model),
                    ranks=lambda fitted: not hasattr(fitted, "predict_log_proba"),
                )
            if not model.uses_rda_grid:
                if not moments.has(estimator.detail):
                    estimator.fit_moments(moments)  # raises an error that names what is missing
                return FoldModel(estimator, from_moments=True)
            self._rda_grid()
            by_fold = [_rda(grid) for grid in self._grid_by_fold]
            return FoldModel(estimator, from_moments=True, by_fold=by_fold)

        return make

    def _fold_progress(self, model: StudyModel) -> Callable[[int], object]:
        folds = self.n_folds
        return lambda f: self.progress(f"{model.title}, fold {f + 1} of {folds}", -1, 0)

    def _note(self, model: StudyModel, converged: bool, *, separated: bool) -> str:
        """Return remarks on a model: its hyperparameters, or how many rows it was fitted to."""
        notes = []
        refit = not model.moment_based or self.in_memory.whole is None
        if model.uses_rda_grid and not refit:
            notes.append(self._describe_tuning())
        if refit:
            used = self.in_memory.largest_training_sample(self.max_rows)
            if used < self._training_size():
                notes.append(f"Fitted to a sample of {used:,} rows of each training set.")
        if not converged:
            notes.append(describe_failed_fits("its fits", separated=separated))
        return " ".join(notes)

    def _training_size(self) -> int:
        """Number of rows of the first training set."""
        folded = self.folded
        if isinstance(folded, PartitionedFolds):
            return int(folded.trains[0].rows.sum())
        return len(folded.codes) - len(folded.rows[0])

    def _describe_tuning(self) -> str:
        grid = self._rda_grid()
        p, s, _ = grid.best()
        pooling, shrinkage = grid.pooling[p], grid.shrinkage[s]
        candidates = len(grid.pooling) * len(grid.shrinkage)
        sampled = f" on a sample of {_GRID_ROWS:,} held-out rows"
        rows = "" if len(self.rows) <= _GRID_ROWS else sampled
        best = f"Pooling {pooling:g} and shrinkage {shrinkage:g} were"
        if pooling == 0:
            best = "Pooling 0 (shrinkage then has no effect) was"
        return (
            f"{best} selected from {candidates} candidates{rows}; the selection was repeated for "
            "each held-out fold on the other folds."
        )

    def _rda_grid(self) -> Grid:
        if self.grid is None:
            candidates = Candidates(GaussianFamily(), np.array(STEPS), STEPS)
            self.grid, self._grid_by_fold = grids_by_fold(
                self.in_memory, candidates, max_rows=_GRID_ROWS, seed=self.seed
            )
        return self.grid


def _rda(grid: Grid) -> Any:
    """Return an unfitted RDA with the best hyperparameters of a grid."""
    from discriminant.estimators.gaussian.rda import RDA

    p, s, _ = grid.best()
    return RDA(pooling=float(grid.pooling[p]), shrinkage=grid.shrinkage[s])
