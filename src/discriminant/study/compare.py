"""Compare models by cross-validation on the same folds, whose moments are computed once.

Models based on moments are evaluated on all held-out rows. The hyperparameters of RDA are chosen,
for each fold, on the other folds, so that no held-out row influences the model that predicts it.
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
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from discriminant.assessment.assessment import Assessment
from discriminant.assessment.classifier_outputs import BasisScorer, Predictions
from discriminant.assessment.resampling.fold_penalties import FoldPenalties, logistic_by_fold
from discriminant.assessment.resampling.folds import (
    FoldNumbers,
    MemoryFolds,
    PartitionedFolds,
    class_counts,
    sample_rows,
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
from discriminant.assessment.resampling.held_out_pool import HeldOutPool, true_class_logs
from discriminant.assessment.resampling.rda_grid import STEPS, Candidates, Grid, grids_by_fold
from discriminant.engines.local import available_threads, one_blas_thread
from discriminant.engines.partitioned_table import AnyTable
from discriminant.errors import StudyError, capture_warnings
from discriminant.models.gaussian.family import GaussianFamily
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.posterior import gives_posterior
from discriminant.report.format import number
from discriminant.study.comparison import (
    LEVEL,
    Comparison,
    ModelResult,
    PoolMember,
    both_correct_weight,
    describe_failed_fits,
    describe_weights,
    held_out_auc,
    is_separated,
    measure_model,
)
from discriminant.study.models import POOL, StudyModel
from discriminant.table.basis import JoinedBasis
from discriminant.table.blocks import Floats, dense
from discriminant.table.memory import Table

Progress = Callable[[str, int, int], object]
_PATH_ROWS = 20_000  # rows to which models with a path of penalties are fitted
_PATH_NUMBERS = 10_000_000  # largest number of entries of the expanded features of these rows
_PATH_COEFFICIENTS = 250  # largest number of coefficients of a model on expanded features
_GRID_ROWS = 20_000  # held-out rows on which the hyperparameters of RDA are chosen
_MOMENTS_BYTES = 1 << 30  # largest size of the moments of all folds together
_PREDICTIONS_BYTES = 1 << 29  # largest size of the held-out posteriors of all models together
_TYPICAL_FOLDS = 10  # assumed number of folds, until the column that defines them is read


@dataclass(frozen=True, slots=True, eq=False)
class _PenalisedFits:
    """Fits of a model with a path of penalties, and the basis of its features."""

    penalties: FoldPenalties
    basis: JoinedBasis | None

    def fold_model(self, estimator: Any) -> FoldModel:
        """Return the model for `score_folds`."""
        scorers: list[Any] = [*self.penalties.scorers]
        if self.basis is not None:
            scorers = [BasisScorer(self.basis, scorer) for scorer in scorers]
        return FoldModel(estimator, from_moments=False, scorers=scorers)


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
    _paths: dict[str, _PenalisedFits] = field(default_factory=dict, init=False)
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
        """Number of folds; an assumed number until the column that defines the folds is read."""
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
        """Detail of the moments: the finest that fits in memory, or None if rows take less."""
        N, d, K = len(self.rows), self.rows.width, len(self.rows.schema.labels)
        if 2 * d > N:
            return None
        return "fourth" if 24 * K * d * d * self.n_folds <= _MOMENTS_BYTES else "pooled"

    # --- comparing --------------------------------------------------------------------------------

    def compare(self, models: list[StudyModel]) -> Comparison:
        """Score every model on the same folds and compute its measures."""
        left_out: list[tuple[str, str]] = []
        results, both_correct = self._results(models, left_out)
        results, both_correct, members = self._with_pool(results, both_correct)
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
            members,
            baseline_log_loss=_entropy(weight),
        )

    def _with_pool(
        self, results: tuple[ModelResult, ...], both_correct: Floats
    ) -> tuple[tuple[ModelResult, ...], Floats, tuple[PoolMember, ...]]:
        """Add the pool of the models to their results, and return its members.

        There is no pool without at least two models with finite log loss that converged.
        """
        pooled = [
            result
            for result in results
            if result.predictions is not None
            and result.converged
            and result.value("log_loss") is not None
        ]
        if len(pooled) < 2:
            return results, both_correct, ()
        started = time.perf_counter()
        held = [result.predictions for result in pooled if result.predictions is not None]
        logs, codes, fold = [each.log_posterior for each in held], held[0].codes, held[0].fold
        weight = held[0].weight
        pool = HeldOutPool.of(true_class_logs(logs, codes), fold, weight, seed=self.seed)
        chosen = np.flatnonzero(pool.weights)
        if len(chosen) < 2:
            return results, both_correct, ()
        members = tuple(
            PoolMember(pooled[m].name, pooled[m].title, float(pool.weights[m]))
            for m in chosen[np.argsort(-pool.weights[chosen], kind="stable")]
        )
        log_posterior = pool.log_posterior(logs, fold)
        predictions = Predictions(log_posterior, log_posterior.argmax(axis=1))
        warnings = tuple(warning for m in chosen for warning in pooled[m].warnings)
        note = f"Weights: {describe_weights(members)}."
        seconds = time.perf_counter() - started
        scores = HeldOutScores(POOL, predictions, seconds=seconds, warnings=warnings)
        result, correct = self._measure(StudyModel.of_pool(), scores, True, note)
        masks = [each.decided == each.codes for each in self._predictions(results)]
        both = both_correct_weight(np.array([*masks, correct]), self.table.weight)
        return (*results, result), both, members

    def _predictions(self, results: tuple[ModelResult, ...]) -> list[HeldOutPredictions]:
        return [self.predictions_of(result) for result in results]

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
        """Return a function to call before each model.

        It reports progress and compiles the loops of the model, so that compilation is not part of
        the time of the model.
        """
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
        self, model: StudyModel, scores: HeldOutScores, keep: bool, note: str | None = None
    ) -> tuple[ModelResult, npt.NDArray[np.bool_]]:
        """Return the measures of one model, and a mask of the rows it predicts correctly."""
        converged = scores.converged or model.may_stop_early
        predictions, correct = None, np.zeros(0, dtype=np.bool_)
        # an AUC of 1 has no standard error; no warning is needed, since the table shows the 1
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
                note=self._note(model, converged, separated=is_separated(scores.warnings))
                if note is None
                else note,
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
        estimator = model.make()
        if model.tuning == "path":
            return self._with_penalty(estimator, model)
        if model.tuning == "grid" and self.detail is not None:
            return _with_grid(estimator, self._rda_grid())
        return estimator

    def check(self, model: Any) -> None:
        """Raise if a model cannot do what this study requires of all models."""
        if self.marginal and not getattr(model, "can_marginalise", False):
            raise StudyError.not_gaussian()

    def _maker(self, model: StudyModel) -> Callable[[], FoldModel]:
        """Return a function that creates the model for `score_folds`."""

        def make() -> FoldModel:
            estimator, moments = model.make(), self.in_memory.whole
            self.check(estimator)
            if model.tuning == "path":
                return self._penalised_fits(model, estimator).fold_model(estimator)
            grid = model.tuning == "grid" and moments is not None and moments.has("class")
            if grid:
                self._rda_grid()
                by_fold = [_with_grid(estimator, grid) for grid in self._grid_by_fold]
                return FoldModel(by_fold[0], from_moments=True, by_fold=by_fold)
            if model.name == "rda":
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
            if not moments.has(estimator.detail):
                estimator.fit_moments(moments)  # raises an error that names what is missing
            return FoldModel(estimator, from_moments=True)

        return make

    def _penalised_fits(self, model: StudyModel, estimator: Any) -> _PenalisedFits:
        """Return the fits of a model along a path of penalties; they are computed only once."""
        if model.name not in self._paths:
            folded = self.in_memory
            table, fold = self.table, folded.fold
            rows = np.arange(len(table))
            if len(rows) > self._path_rows:
                generator = np.random.default_rng(self.seed)
                rows = sample_rows(rows, self._path_rows, generator)
                table, fold = table.take(rows), fold[rows]
            basis = None
            if model.basis is not None:
                basis = self._basis(estimator.steps[0][1], len(rows))
                schema = replace(table.schema, features=basis.names, named=False)
                expanded = basis.expand(np.asarray(dense(table.features[:]), dtype=np.float64))
                table = replace(table, schema=schema, features=expanded)
                estimator = estimator.steps[-1][1]
            with capture_warnings(), one_blas_thread():
                penalties = logistic_by_fold(table, fold, l1_ratio=estimator.l1_ratio)
            self._paths[model.name] = _PenalisedFits(penalties, basis)
        return self._paths[model.name]

    @property
    def _path_rows(self) -> int:
        return min(_PATH_ROWS, self.max_rows)

    def _basis(self, basis: Any, rows: int) -> JoinedBasis:
        """Return the basis of the features; raise an error if it has too many columns."""
        d, K = self.rows.width, len(self.rows.schema.labels)
        columns = d + (d * (d + 1) // 2 if basis.degree == 2 else basis.random_features or 0)
        most = min(_PATH_COEFFICIENTS // max(K - 1, 1), _PATH_NUMBERS // rows)
        if columns > most:
            raise StudyError.too_many_numbers(columns, most)
        fitted: JoinedBasis = basis.fit(self.table.features[:]).basis_
        return fitted

    def _with_penalty(self, estimator: Any, model: StudyModel) -> Any:
        """Return the estimator with its chosen penalty, for a fit to all rows.

        A penalty per row that was chosen on a sample is divided by the ratio of the numbers of
        rows.
        """
        penalties = self._penalised_fits(model, estimator).penalties
        ridge = penalties.ridge * penalties.rows / len(self.table)
        name = "ridge" if model.basis is None else f"{estimator.steps[-1][0]}__ridge"
        return estimator.set_params(**{name: ridge})

    def _fold_progress(self, model: StudyModel) -> Callable[[int], object]:
        folds = self.n_folds
        return lambda f: self.progress(f"{model.title}, fold {f + 1} of {folds}", -1, 0)

    def _note(self, model: StudyModel, converged: bool, *, separated: bool) -> str:
        """Return remarks on a model: its hyperparameters, or how many rows it was fitted to."""
        notes = []
        refit = not model.moment_based or self.in_memory.whole is None
        if model.name in self._paths:
            notes.append(self._describe_penalty(self._paths[model.name].penalties))
        elif model.tuning == "grid" and self.grid is not None:
            notes.append(self._describe_tuning(model))
        elif refit:
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

    def _describe_penalty(self, penalties: FoldPenalties) -> str:
        sample = ""
        if penalties.rows < len(self.rows):
            sample = f" Fitted to a sample of {penalties.rows:,} rows."
        return (
            f"Ridge {number(penalties.ridge)} was selected from {len(penalties.ridges)} penalties; "
            f"the selection was repeated for each held-out fold on the other folds.{sample}"
        )

    def _describe_tuning(self, model: StudyModel) -> str:
        grid = self._rda_grid()
        p, s, _ = _best_of_grid(model.make(), grid)
        pooling, shrinkage = grid.pooling[p], grid.shrinkage[s]
        candidates = len(grid.pooling) * len(grid.shrinkage)
        if model.name != "rda":
            candidates = len(grid.shrinkage)
        sampled = f" on a sample of {_GRID_ROWS:,} held-out rows"
        rows = "" if len(self.rows) <= _GRID_ROWS else sampled
        best = f"Pooling {pooling:g} and shrinkage {shrinkage:g} were"
        if model.name != "rda":
            best = f"Shrinkage {shrinkage:g} was"
        elif pooling == 0:
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


def _entropy(weight: Floats) -> float:
    """Return the log loss of predicting the class shares of these weights."""
    share = weight[weight > 0] / weight.sum()
    return float(-(share @ np.log(share)))


def _best_of_grid(estimator: Any, grid: Grid) -> tuple[int, int, int]:
    """Return the indices of the best candidate of a grid; those of LDA have pooling 1."""
    if hasattr(estimator, "pooling"):
        return grid.best()
    pooled = int(np.flatnonzero(grid.pooling == 1.0)[0])
    losses = grid.log_loss[pooled : pooled + 1]
    _, s, r = replace(grid, pooling=grid.pooling[pooled : pooled + 1], log_loss=losses).best()
    return pooled, s, r


def _with_grid(estimator: Any, grid: Grid) -> Any:
    """Return an unfitted RDA or LDA with the best hyperparameters of a grid."""
    p, s, _ = _best_of_grid(estimator, grid)
    options: dict[str, Any] = {"shrinkage": grid.shrinkage[s]}
    if hasattr(estimator, "pooling"):
        options["pooling"] = float(grid.pooling[p])
    return clone(estimator).set_params(**options)
