"""Compare models by cross-validation on the same folds, whose moments are computed once.

Models based on moments are evaluated on all held-out rows. The hyperparameters of RDA are chosen,
for each fold, on the other folds, so that no held-out row influences the model that predicts it.
Models that read rows are fitted to at most `max_rows` rows of each training set; a note in the
result states this.

    in memory      predictions of every held-out row are stored and measured
    partitioned    pass 1    moments of each fold: models based on moments are exact
                   sample    rows in memory: models that read rows, and the hyperparameters of RDA
                   pass 2    every row is scored by all models fitted without its fold

Both cases use `held_out_folds.score_folds`. The measures of one model are in `study.comparison`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from discriminant.assessment.assessment import Assessment
from discriminant.assessment.classifier_outputs import BasisScorer, Predictions
from discriminant.assessment.resampling.fold_tuning import (
    FoldPenalties,
    FoldShrinkages,
    lda_by_fold,
    logistic_by_fold,
)
from discriminant.assessment.resampling.folds import (
    FoldNumbers,
    MemoryFolds,
    PartitionedFolds,
    class_counts,
    sample_rows,
    stratified_folds,
    warn_classes_in_one_fold,
)
from discriminant.assessment.resampling.held_out_folds import (
    FoldModel,
    HeldOutPredictions,
    HeldOutScores,
    auc_of_rankings,
    score_folds,
    score_one_model,
)
from discriminant.assessment.resampling.rda_grid import (
    STEPS,
    Candidates,
    Grid,
    grids_without_each_fold,
)
from discriminant.assessment.resampling.stacking_weights import (
    LEAST_WEIGHT,
    HeldOutPool,
)
from discriminant.engines.local import available_threads, one_blas_thread, threads_for
from discriminant.engines.partitioned_table import AnyTable
from discriminant.errors import StudyError, capture_warnings, warn
from discriminant.models.gaussian.family import GaussianFamily
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.posterior import gives_posterior
from discriminant.report.format import number, quoted
from discriminant.study.comparison import (
    LEVEL,
    Comparison,
    PoolMember,
    both_correct_weight,
    describe_failed_fits,
    describe_weights,
    held_out_auc,
    join_repetitions,
    measure_model,
)
from discriminant.study.models import POOL, ModelResult, StudyModel, is_separated
from discriminant.table.basis import JoinedBasis
from discriminant.table.blocks import Floats, dense, numbered_names
from discriminant.table.memory import ColumnarFeatures, NamedFeatures, Table

Progress = Callable[[str, int, int], object]
_PATH_ROWS = 20_000  # rows to which models with a path of penalties are fitted
_PATH_NUMBERS = 10_000_000  # largest number of entries of the expanded features of these rows
_CHOSEN_AGAIN = "for each fold, chosen again on the other folds"
_LEAST_RANDOM_FEATURES = 25
_PATH_COEFFICIENTS = 250  # largest number of coefficients of a model on expanded features
_GRID_ROWS = 20_000  # held-out rows on which the hyperparameters of RDA are chosen
_MOMENTS_BYTES = 1 << 30  # largest size of the moments of all folds together
_PREDICTIONS_BYTES = 1 << 29  # largest size of the held-out posteriors of all models together
_REPEATS = 3  # divisions into folds of a table with few rows
_FEW_ROWS = 250
_CONTENTION = 1.1  # ratio to the least log loss up to which a model is compared again
_TYPICAL_FOLDS = 10  # number of folds assumed before the column that defines them is read


@dataclass(frozen=True, slots=True, eq=False)
class _DivisionResults:
    """Results of the models on one division of the rows into folds."""

    results: tuple[ModelResult, ...]
    both_correct: Floats  # (M, M) weight of the rows that two models both classify correctly
    # weight of each model in the pool; if not empty, the pool is the last result
    weights: Mapping[str, float] = field(default_factory=dict)

    def without(self, names: set[str]) -> _DivisionResults:
        """Return the run without some of its models; none of them may be in the pool."""
        if not names:
            return self
        keep = [i for i, result in enumerate(self.results) if result.name not in names]
        results = tuple(self.results[i] for i in keep)
        return _DivisionResults(results, self.both_correct[np.ix_(keep, keep)], self.weights)


@dataclass(frozen=True, slots=True, eq=False)
class _TunedFits:
    """Fits of one model with the penalty or shrinkage chosen for each fold, and the basis."""

    chosen: FoldPenalties | FoldShrinkages
    basis: JoinedBasis | None
    basis_options: Mapping[str, Any] = field(default_factory=dict)  # changed to limit the columns

    def fold_model(self, estimator: Any) -> FoldModel:
        """Return the model for `score_folds`."""
        scorers: list[Any] = [*self.chosen.scorers]
        if self.basis is not None:
            scorers = [BasisScorer(self.basis, scorer) for scorer in scorers]
        return FoldModel(estimator, from_moments=False, scorers=scorers)


@dataclass(frozen=True, slots=True, eq=False)
class _AheadFits:
    """Fits of one model that another thread computed, with their warnings and their time."""

    fits: _TunedFits
    warnings: tuple[Warning, ...]
    seconds: float


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
    # column that defines groups of rows, which are held out together
    group_column: str | None = None
    time_column: str | None = None  # column by which later rows are held out from earlier ones
    repeats: int | None = None  # how often rows are divided into folds; None: by their number
    _paths: dict[str, _TunedFits] = field(default_factory=dict, init=False)
    # fits that another thread computes, and seconds by which the time of a model is corrected
    _ahead: dict[str, Future[_AheadFits]] = field(default_factory=dict, init=False)
    _overlap: dict[str, float] = field(default_factory=dict, init=False)
    _bases: dict[str, JoinedBasis] = field(default_factory=dict, init=False)  # by their options
    _folded: MemoryFolds | PartitionedFolds | None = field(default=None, init=False)
    _later: Table | None = field(default=None, init=False)
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
            return PartitionedFolds.of(
                rows, self.folds, groups=self.group_column, seed=self.seed, detail=detail
            )
        fold: FoldNumbers = self.folds
        folded = MemoryFolds.shared(rows, fold, detail=self.detail, forward=self.forward)
        if not self.forward:
            labels = rows.schema.labels
            warn_classes_in_one_fold(class_counts(rows.codes, rows.weight, labels, fold), labels)
        return folded

    @property
    def forward(self) -> bool:
        """Whether every fold is predicted by models that were fitted to earlier rows only."""
        return self.time_column is not None

    @property
    def in_memory(self) -> MemoryFolds:
        """The rows in memory (all of them, or a sample) in folds, with the moments of all rows."""
        folded = self.folded
        return folded if isinstance(folded, MemoryFolds) else folded.in_memory

    @property
    def table(self) -> Table:
        """The rows in memory that are held out: all of them, the later ones, or a sample."""
        table = self.in_memory.table
        assert table is not None
        if not self.forward:
            return table
        if self._later is None:
            self._later = table.take(np.flatnonzero(self.in_memory.fold >= 0))
        return self._later

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
        """Detail of the moments: 'fourth' if these fit in memory, otherwise 'pooled'.

        None if storing the rows takes less memory.
        """
        N, d, K = len(self.rows), self.rows.width, len(self.rows.schema.labels)
        if 2 * d > N:
            return None
        return "fourth" if 24 * K * d * d * self.n_folds <= _MOMENTS_BYTES else "pooled"

    # --- comparing --------------------------------------------------------------------------------

    def compare(self, models: list[StudyModel], *, distinct: bool = False) -> Comparison:
        """Score every model on the same folds and compute its measures.

        With `distinct`, a model whose predictions equal those of an earlier one is left out.
        """
        left_out: list[tuple[str, str]] = []
        first = self._compare_once(models, left_out, distinct=distinct)
        runs = [first]
        if first.results and self.n_repeats > 1:
            again = _in_contention(models, first)
            for other in self._other_divisions():
                runs.append(other._compare_once(again, []))
        results, members = _join_runs(runs)
        self.progress("done", len(models), len(models))
        if not results:
            raise StudyError.none_left(left_out)
        weight = self._held_out_class_weight()
        return Comparison(
            results,
            first.both_correct[: len(results), : len(results)],
            tuple(left_out),
            self.n_folds,
            len(self.table) if self.forward else len(self.rows),
            float(1.0 - weight.max() / weight.sum()),
            dict(self.seconds),
            self.grid,
            tuple(str(label) for label in self.rows.schema.labels.tolist()),
            self.table.weight is not None,
            self.fold_column,
            members,
            baseline_log_loss=_entropy(weight),
            repeats=len(runs),
            held_out_by=self._held_out_by(),
        )

    @property
    def n_repeats(self) -> int:
        """Number of divisions of the rows into folds: several if there are few rows."""
        able = isinstance(self.rows, Table) and not self.forward
        if not able or self.fold_column is not None or self.group_column is not None:
            return 1
        if self.repeats is not None:
            return self.repeats
        return _REPEATS if len(self.rows) < _FEW_ROWS else 1

    def _other_divisions(self) -> Iterator[ComparisonRun]:
        """Yield the same rows divided into folds with other seeds."""
        assert isinstance(self.rows, Table)
        for repeat in range(1, self.n_repeats):
            seed = self.seed + 7919 * repeat  # not the next seed, which a user may pass
            fold = stratified_folds(self.rows.codes, self.n_folds, seed)
            yield replace(self, folds=fold, seed=seed, grid=None, seconds={}, progress=_silent)

    def on(self, rows: Table, folds: FoldNumbers) -> ComparisonRun:
        """Return the same comparison on other rows in memory, divided into these folds."""
        return replace(
            self, rows=rows, folds=folds, grid=None, seconds={}, progress=_silent, repeats=1
        )

    def _held_out_by(self) -> str:
        if self.group_column is not None:
            return f", with the rows of each value of '{self.group_column}' held out together"
        if self.time_column is not None:
            return f", each predicted from the rows that are earlier by '{self.time_column}'"
        return ""

    def _held_out_class_weight(self) -> Floats:
        if not self.forward:
            return self.class_weight
        K = len(self.table.schema.labels)
        return np.bincount(self.table.codes, self.table.weight, minlength=K).astype(np.float64)

    def _compare_once(
        self, models: list[StudyModel], left_out: list[tuple[str, str]], *, distinct: bool = False
    ) -> _DivisionResults:
        """Score the models, and their pool, on one division of the rows into folds."""
        run = _DivisionResults(*self._results(models, left_out))
        if distinct:
            copies = _copies(run.results)
            left_out += [
                (copy.title, f"its predictions equal those of {quoted(first.title)}.")
                for copy, first in copies
            ]
            run = run.without({copy.name for copy, _ in copies})
        return self._with_pool(run)

    def _with_pool(self, run: _DivisionResults) -> _DivisionResults:
        """Add the pool of the models, and its weights.

        A pool needs at least two models that converged and have a finite log loss.
        """
        results = run.results
        pooled = [
            result
            for result in results
            if result.predictions is not None
            and result.converged
            and result.value("log_loss") is not None
        ]
        if len(pooled) < 2:
            return run
        started = time.perf_counter()
        held = [result.predictions for result in pooled if result.predictions is not None]
        logs, codes, fold = [each.log_posterior for each in held], held[0].codes, held[0].fold
        weight = held[0].weight
        pool = HeldOutPool.of(logs, codes, fold, weight, seed=self.seed)
        weights = {
            result.name: float(pool.weights[m])
            for m, result in enumerate(pooled)
            if pool.weights[m] > 0
        }
        log_posterior = pool.log_posterior(logs, fold)
        predictions = Predictions(log_posterior, log_posterior.argmax(axis=1))
        if self.forward:
            predictions = _among_all_rows(predictions, self.in_memory.fold >= 0)
        warnings = tuple(w for result in pooled if result.name in weights for w in result.warnings)
        # the pool needs the fits of its members
        seconds = time.perf_counter() - started
        seconds += sum(
            result.facts["seconds"] or 0.0 for result in pooled if result.name in weights
        )
        scores = HeldOutScores(POOL, predictions, seconds=seconds, warnings=warnings)
        result, correct = self._measure(StudyModel.of_pool(), scores, True, "")
        masks = [each.decided == each.codes for each in self._predictions(results)]
        both = both_correct_weight(np.array([*masks, correct]), self.table.weight)
        return _DivisionResults((*results, result), both, weights)

    def _predictions(self, results: tuple[ModelResult, ...]) -> list[HeldOutPredictions]:
        return [self.predictions_of(result) for result in results]

    def _results(
        self, models: list[StudyModel], left_out: list[tuple[str, str]]
    ) -> tuple[tuple[ModelResult, ...], Floats]:
        """Return the results of models that could be fitted, and weights of pairs of models.

        The second result is an (M, M) array: entry (i, j) is the weight of the rows that models i
        and j both predict correctly.

        In memory, the measures of one model are computed while the next model is scored.
        """
        by_name = {model.name: model for model in models}
        cells = len(self.table) * len(self.table.schema.labels) * len(models)
        keep = 8 * cells <= _PREDICTIONS_BYTES
        makers = {model.name: self._maker(model) for model in models}
        measured = []
        both: list[Floats] = []
        with ThreadPoolExecutor(available_threads()) as pool, self._tuning_ahead(models):
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

    @contextmanager
    def _tuning_ahead(self, models: list[StudyModel]) -> Iterator[None]:
        """Fit models with a chosen penalty or shrinkage while others are scored.

        Most of the work of these fits uses one core. For few rows a second thread would not save
        time.
        """
        self._overlap = {}
        tuned = [] if self.forward else [m for m in models if m.tuning == "path" or m.basis]
        tuned = [model for model in tuned if model.name not in self._paths]
        rows = self.in_memory
        if not tuned or threads_for(len(rows.codes) * self.rows.width) == 1:
            yield
            return

        def fit(model: StudyModel) -> _AheadFits:
            started = time.perf_counter()
            with capture_warnings() as warnings:
                fits = self._tune(model, model.make())
            return _AheadFits(fits, tuple(warnings), time.perf_counter() - started)

        with ThreadPoolExecutor(1) as pool:
            self._ahead = {model.name: pool.submit(fit, model) for model in tuned}
            try:
                yield
            finally:
                pool.shutdown(cancel_futures=True)
                self._ahead = {}

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
                seconds=scores.seconds + self._overlap.get(model.name, 0.0),
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
            scores = score_one_model(self.in_memory, self._maker(result.model)())
        assert scores.predictions is not None
        return self._join(result.model, scores.predictions)

    def _join(self, model: StudyModel, predictions: Predictions) -> HeldOutPredictions:
        probabilistic = gives_posterior(model.make())
        folded = self.in_memory
        held = HeldOutPredictions.of(folded, predictions, probabilistic=probabilistic)
        return held.take(np.flatnonzero(folded.fold >= 0)) if self.forward else held

    # --- models -----------------------------------------------------------------------------------

    def unfitted(self, model: StudyModel) -> Any:
        """Return the unfitted classifier with its selected hyperparameters."""
        estimator = model.make()
        if self.forward:
            return estimator
        if model.tuning == "path" or model.basis is not None:
            return self._with_tuning(estimator, model)
        if model.tuning == "grid" and self.detail is not None:
            return _with_grid(estimator, self._rda_grid())
        return estimator

    def final_rows(self, model: StudyModel) -> int:
        """Return the number of rows in memory to which a model is fitted after the comparison.

        Expanded features would take too much memory for more than `max_rows` rows.
        """
        table = self.in_memory.table
        assert table is not None
        rows = len(table)  # with the earliest rows, which are not held out in order of time
        return rows if model.basis is None else min(rows, self.max_rows)

    def check(self, model: Any) -> None:
        """Raise an error if a model lacks an ability that this study requires of all models."""
        if self.marginal and not getattr(model, "can_marginalise", False):
            raise StudyError.not_gaussian()

    def _maker(self, model: StudyModel) -> Callable[[], FoldModel]:
        """Return a function that creates the model for `score_folds`."""

        def make() -> FoldModel:
            estimator, moments = model.make(), self.in_memory.whole
            self.check(estimator)
            if self.forward and (model.tuning or model.basis is not None):
                moments = None  # the estimator chooses by cross-validation of its training rows
            elif model.tuning == "path" or model.basis is not None:
                return self._tuned_fits(model, estimator).fold_model(estimator)
            grid = model.tuning == "grid" and moments is not None and moments.has("class")
            if grid:
                self._rda_grid()
                by_fold = [_with_grid(estimator, grid) for grid in self._grid_by_fold]
                return FoldModel(by_fold[0], from_moments=True, by_fold=by_fold)
            if model.name == "rda" and not self.forward:
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

    def _tuned_fits(self, model: StudyModel, estimator: Any) -> _TunedFits:
        """Return the fits of a model with the penalty or shrinkage chosen for each fold."""
        if model.name not in self._paths:
            self._paths[model.name] = self._take_ahead(model) or self._tune(model, estimator)
        return self._paths[model.name]

    def _take_ahead(self, model: StudyModel) -> _TunedFits | None:
        """Return the fits that another thread computed, and issue their warnings."""
        future = self._ahead.get(model.name)
        if future is None:
            return None
        started = time.perf_counter()
        ahead = future.result()
        # the time of the model includes its fits, but not the wait for fits of other models
        self._overlap[model.name] = ahead.seconds - (time.perf_counter() - started)
        for warning in ahead.warnings:
            warn(warning)
        return ahead.fits

    def _tune(self, model: StudyModel, estimator: Any) -> _TunedFits:
        folded = self.in_memory
        table, fold = self.table, folded.fold
        rows = np.arange(len(table))
        if len(rows) > self._path_rows:
            generator = np.random.default_rng(self.seed)
            rows = sample_rows(rows, self._path_rows, generator)
            table, fold = table.take(rows), fold[rows]
        basis, options = None, {}
        if model.basis is not None:
            options = self._basis_options(estimator.steps[0][1], len(rows))
            basis = self._basis(clone(estimator.steps[0][1]).set_params(**options))
            schema = replace(table.schema, features=basis.names, named=False)
            expanded = basis.expand(np.asarray(dense(table.features[:]), dtype=np.float64))
            table = replace(table, schema=schema, features=expanded)
            estimator = estimator.steps[-1][1]
        chosen: FoldPenalties | FoldShrinkages
        with capture_warnings(), one_blas_thread():
            if model.tuning == "path":
                chosen = logistic_by_fold(table, fold, l1_ratio=estimator.l1_ratio)
            else:
                expanded_folds = MemoryFolds.shared(table, fold, detail="pooled")
                chosen = lda_by_fold(
                    expanded_folds, lambda s: clone(estimator).set_params(shrinkage=s)
                )
        return _TunedFits(chosen, basis, options)

    @property
    def _path_rows(self) -> int:
        return min(_PATH_ROWS, self.max_rows)

    def _basis_options(self, basis: Any, rows: int) -> dict[str, Any]:
        """Return the options of a basis that limit its columns for a table of this size.

        Products are left out if there would be too many, and there may be fewer random features.
        Raise an error if there are still too many columns.
        """
        d, K = self.rows.width, len(self.rows.schema.labels)
        most = min(_PATH_COEFFICIENTS // max(K - 1, 1), _PATH_NUMBERS // rows)
        if basis.random_features is not None:
            number = min(basis.random_features, most - d)
            if number < _LEAST_RANDOM_FEATURES:
                raise StudyError.too_many_numbers(d + _LEAST_RANDOM_FEATURES, most)
            return {} if number == basis.random_features else {"random_features": number}
        if d + d * (d + 1) // 2 <= most:
            return {}
        if 2 * d > most:
            raise StudyError.too_many_numbers(2 * d, most)
        return {"interactions": False}

    def _basis(self, basis: Any) -> JoinedBasis:
        """Return the basis of the features; models with the same options share it."""
        options = str(sorted(basis.get_params().items(), key=lambda option: option[0]))
        if options not in self._bases:
            features = self.table.features
            if isinstance(features, ColumnarFeatures):  # not copied to one array
                features = NamedFeatures(numbered_names(self.rows.width), features)
            self._bases[options] = basis.fit(features).basis_
        return self._bases[options]

    def _with_tuning(self, estimator: Any, model: StudyModel) -> Any:
        """Return the estimator with its chosen penalty or shrinkage, for a fit to all rows.

        A ridge that was chosen on a sample is multiplied by the ratio of the number of rows in the
        sample to the number of rows in memory.
        """
        fits = self._tuned_fits(model, estimator)
        chosen = fits.chosen
        if isinstance(chosen, FoldShrinkages):
            name, value = "shrinkage", chosen.shrinkage
        else:
            name, value = "ridge", chosen.ridge * chosen.rows / self.final_rows(model)
        if model.basis is None:
            return estimator.set_params(**{name: value})
        basis, classifier = (step for step, _ in estimator.steps)
        options = {f"{basis}__{option}": each for option, each in fits.basis_options.items()}
        return estimator.set_params(**options, **{f"{classifier}__{name}": value})

    def _fold_progress(self, model: StudyModel) -> Callable[[int], object]:
        folds = self.n_folds
        return lambda f: self.progress(f"{model.title}, fold {f + 1} of {folds}", -1, 0)

    def _note(self, model: StudyModel, converged: bool, *, separated: bool) -> str:
        """Return remarks on a model: its hyperparameters, or how many rows it was fitted to."""
        notes = []
        refit = not model.moment_based or self.in_memory.whole is None
        if model.name in self._paths:
            notes.append(_describe_basis(self._paths[model.name].basis_options))
            notes.append(self._describe_penalty(self._paths[model.name].chosen))
        elif model.tuning == "grid" and self.grid is not None:
            notes.append(self._describe_tuning(model))
        elif refit:
            used = self.in_memory.largest_training_sample(self.max_rows)
            if used < self._training_size():
                notes.append(f"Fitted to a sample of {used:,} rows of each training set.")
        if not converged:
            notes.append(describe_failed_fits("its fits", separated=separated))
        return " ".join(filter(None, notes))

    def _training_size(self) -> int:
        """Number of rows of the first training set."""
        folded = self.folded
        if isinstance(folded, PartitionedFolds):
            return int(folded.trains[0].rows.sum())
        return len(folded.codes) - len(folded.rows[0])

    def _describe_penalty(self, chosen: FoldPenalties | FoldShrinkages) -> str:
        sample = ""
        if chosen.rows < len(self.rows):
            sample = f" Fitted to a sample of {chosen.rows:,} rows."
        if isinstance(chosen, FoldShrinkages):
            what = f"Shrinkage {chosen.shrinkage:g}, chosen from {len(chosen.shrinkages)}"
        else:
            what = f"Penalty {number(chosen.ridge)}, chosen from {len(chosen.ridges)}"
        return f"{what}; {_CHOSEN_AGAIN}.{sample}"

    def _describe_tuning(self, model: StudyModel) -> str:
        grid = self._rda_grid()
        p, s, _ = _best_of_grid(model.make(), grid)
        pooling, shrinkage = grid.pooling[p], grid.shrinkage[s]
        candidates = len(grid.pooling) * len(grid.shrinkage)
        if model.name != "rda":
            candidates = len(grid.shrinkage)
        sampled = f" on a sample of {_GRID_ROWS:,} held-out rows"
        rows = "" if len(self.rows) <= _GRID_ROWS else sampled
        best = f"Pooling {pooling:g} and shrinkage {shrinkage:g}"
        if model.name != "rda":
            best = f"Shrinkage {shrinkage:g}"
        elif pooling == 0:
            best = "Pooling 0 (shrinkage then has no effect)"
        return f"{best}, chosen from {candidates}{rows}; {_CHOSEN_AGAIN}."

    def _rda_grid(self) -> Grid:
        if self.grid is None:
            candidates = Candidates(GaussianFamily(), np.array(STEPS), STEPS)
            self.grid, self._grid_by_fold = grids_without_each_fold(
                self.in_memory, candidates, max_rows=_GRID_ROWS, seed=self.seed
            )
        return self.grid


def _describe_basis(options: Mapping[str, Any]) -> str:
    """Return a sentence on the options of a basis that limit its columns."""
    if "random_features" in options:
        return f"With {options['random_features']} random features, to limit the time."
    if "interactions" in options:
        return "With squares only, without products of features, to limit the time."
    return ""


def _silent(step: str, done: int, total: int) -> None:
    """Progress of a comparison whose steps are not shown."""


def _among_all_rows(predictions: Predictions, held: npt.NDArray[np.bool_]) -> Predictions:
    """Return predictions of all rows from those of the rows that are held out."""
    every = Predictions.empty(len(held), predictions.log_posterior.shape[1])
    every.log_posterior[held] = predictions.log_posterior
    every.decided[held] = predictions.decided
    return replace(every, others=predictions.others)


def _copies(results: Sequence[ModelResult]) -> list[tuple[ModelResult, ModelResult]]:
    """Return pairs of results with equal held-out posteriors: the later and the earlier one."""
    copies: list[tuple[ModelResult, ModelResult]] = []
    for i, result in enumerate(results):
        copied = {copy.name for copy, _ in copies}
        for earlier in results[:i]:
            if earlier.name not in copied and _same_predictions(earlier, result):
                copies.append((result, earlier))
                break
    return copies


def _same_predictions(first: ModelResult, second: ModelResult) -> bool:
    a, b = first.value("log_loss"), second.value("log_loss")
    if a is None or b is None or abs(a - b) > 1e-9 * (1.0 + abs(a)):
        return False
    if first.predictions is None or second.predictions is None:
        return False
    logs = first.predictions.log_posterior, second.predictions.log_posterior
    return bool(np.allclose(np.exp(logs[0]), np.exp(logs[1]), rtol=0.0, atol=1e-9))


def _in_contention(models: Sequence[StudyModel], run: _DivisionResults) -> list[StudyModel]:
    """Return the models in the pool, and those whose log loss is at most 10% above the least.

    Other models cannot be selected, so further divisions into folds are not worth their time.
    """
    losses = {result.name: result.value("log_loss") for result in run.results}
    known = [loss for loss in losses.values() if loss is not None]
    limit = _CONTENTION * min(known, default=np.inf)
    near = {name for name, loss in losses.items() if loss is not None and loss <= limit}
    return [model for model in models if model.name in near or model.name in run.weights]


def _join_runs(
    runs: Sequence[_DivisionResults],
) -> tuple[tuple[ModelResult, ...], tuple[PoolMember, ...]]:
    """Return the results averaged over several divisions into folds, and the pool's members."""
    by_name = [{result.name: result for result in run.results} for run in runs]
    names = [result.name for result in runs[0].results]
    joined = {
        name: join_repetitions([results[name] for results in by_name if name in results])
        for name in names
    }
    total: dict[str, float] = dict.fromkeys(names, 0.0)
    for run in runs:
        for name, weight in run.weights.items():
            total[name] += weight / len(runs)
    used = {name: weight for name, weight in total.items() if weight >= LEAST_WEIGHT}
    if POOL not in joined or len(used) < 2:
        joined.pop(POOL, None)
        return tuple(joined.values()), ()
    members = tuple(
        PoolMember(name, joined[name].title, weight / sum(used.values()))
        for name, weight in sorted(used.items(), key=lambda item: -item[1])
    )
    pool = joined[POOL]
    note = f"Weights: {describe_weights(members)}."
    pool = replace(
        pool, facts={**pool.facts, "note": " ".join(filter(None, [note, pool.facts["note"]]))}
    )
    return (*(r for n, r in joined.items() if n != POOL), pool), members


def _entropy(weight: Floats) -> float:
    """Return the log loss of predicting the class shares that these weights imply."""
    share = weight[weight > 0] / weight.sum()
    return float(-(share @ np.log(share)))


def _best_of_grid(estimator: Any, grid: Grid) -> tuple[int, int, int]:
    """Return the indices of the best candidate of a grid; for LDA, only pooling 1 is allowed."""
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
