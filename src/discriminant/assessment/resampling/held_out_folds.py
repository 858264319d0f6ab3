"""Held-out predictions: fit models without each fold and score the rows of that fold.

    models from moments   a rule from the moments of the other folds (algebra, no rows are read)
    other models          fitted to the rows outside the fold, or to a sample of them

`score_folds` does this for rows in memory and for partitioned tables. In memory the predictions of
every row are stored. A partitioned table is read once more for all models together, and only sums
are returned: a confusion table for each fold, rankings, and the weight of the rows that two models
both classify correctly. With the same folds the results agree.

If a model has a method `decide`, its decisions are measured, even if they are not the most
probable classes; otherwise its predictions are measured. A class that is missing from a training
set cannot be predicted there: its log posterior is -inf.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import add
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from discriminant.assessment.assessment import Assessment
from discriminant.assessment.classifier_outputs import (
    DecisionScorer,
    ModelScorer,
    PredictionCollector,
    Predictions,
    RuleScorer,
    class_scores,
    without_feature_names,
)
from discriminant.assessment.ranking.auc import AUC, auc
from discriminant.assessment.resampling.folds import (
    FoldedTable,
    FoldNumbers,
    MemoryFolds,
    PartitionedFolds,
    check_training_classes,
    drop_empty_classes,
    is_moment_based,
    present_classes,
    restrict_prior,
    rows_by_fold,
)
from discriminant.engines.local import available_threads, blas_context, one_blas_thread
from discriminant.engines.partitioned_table import PartitionedTable
from discriminant.errors import (
    DiscriminantError,
    NeedsMemoryError,
    OptionError,
    WeightError,
    capture_warnings,
    in_thread,
    merge_warnings,
    warn,
)
from discriminant.moments.class_moments import Detail
from discriminant.moments.confusion import Actions
from discriminant.moments.held_out_tallies import HeldOutReading, ModelSums, Scorer
from discriminant.moments.probability_scores import ProbabilityScores
from discriminant.moments.ranking import Ranking
from discriminant.table.blocks import Codes, Floats, Labels, Places, dense

T = TypeVar("T")
_PIECE = 8192  # rows scored at a time, so that they stay in the cache


@dataclass(frozen=True, slots=True, eq=False)
class FoldModel:
    """A model to be fitted without each fold."""

    estimator: Any  # unfitted estimator
    from_moments: bool  # True: fitted by adding moments; False: fitted to rows
    by_fold: Sequence[Any] = ()  # an estimator for each of the F folds, if they differ
    scorers: Sequence[Scorer] = ()  # a scorer for each of the F folds, if they are fitted already
    max_rows: int | None = None  # largest number of training rows; None: all
    seed: int = 0  # seed of the sample of training rows
    progress: Callable[[int], object] = id  # called with the fold that is being fitted
    decide: bool = True  # True: measure `decide` if the model has it; False: always `predict`
    # whether to return the `decision_function` of a model without probabilities
    ranks: Callable[[Any], bool] = lambda fitted: False

    def without(self, fold: int) -> Any:
        """Return the unfitted estimator of one fold."""
        return self.by_fold[fold] if self.by_fold else self.estimator


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutScores:
    """Held-out predictions of one model, their sums, or the error that prevented them."""

    name: str
    predictions: Predictions | None = None  # predictions for rows in memory
    sums: ModelSums | None = None  # sums over the rows of a partitioned table
    # (M,) weight of the rows that this and each other model predict correctly (partitioned)
    both_correct: Floats | None = None
    # (N, K) scores of a model without probabilities, for rows in memory
    class_scores: Floats | None = None
    converged: bool = True
    seconds: float = 0.0
    warnings: tuple[Warning, ...] = ()
    error: DiscriminantError | None = None
    failed_fold: int | None = None  # the fold whose fit raised the error


def score_folds(
    folded: FoldedTable,
    models: Mapping[str, Callable[[], FoldModel]],
    *,
    prepare: Callable[[str], object] = id,
) -> Iterator[HeldOutScores]:
    """Fit models without each fold and score the rows of that fold.

    Parameters
    ----------
    folded : MemoryFolds or PartitionedFolds
        Table divided into folds.
    models : mapping of str to function
        Functions that return the model to fit. If the function or a fit raises an error of this
        package, the other models are still scored; the error is part of the result.
    prepare : function, optional
        Called with the name of a model before its time is measured.

    Yields
    ------
    HeldOutScores
        One for each model, in order. In memory, each result is yielded as soon as the model is
        scored. On a partitioned table all models are fitted first and then scored in one pass.
    """
    if isinstance(folded, PartitionedFolds):
        yield from _score_partitioned(folded, models, prepare)
        return
    assert isinstance(folded, MemoryFolds)
    for name, make in models.items():
        prepare(name)
        yield _run(name, partial(_score_in_memory, folded, make))


def score_one_model(folded: FoldedTable, model: FoldModel) -> HeldOutScores:
    """Score one model; issue its warnings, and raise its error if it has one."""
    (scores,) = score_folds(folded, {"model": lambda: model})
    if scores.error is not None:
        raise scores.error
    for warning in scores.warnings:
        warn(warning)
    return scores


def _run(name: str, work: Callable[[_FoldErrors], HeldOutScores]) -> HeldOutScores:
    """Run the work for one model: measure its time, capture its warnings and return its error."""
    started, errors = time.perf_counter(), _FoldErrors()
    with capture_warnings() as warnings:
        try:
            scores = work(errors)
        except DiscriminantError as error:
            return HeldOutScores(name, error=error, failed_fold=errors.fold)
    seconds = time.perf_counter() - started
    return replace(scores, name=name, seconds=seconds, warnings=tuple(warnings))


@dataclass(slots=True, eq=False)
class _FoldErrors:
    """Record of the first fold whose fit raised an error."""

    fold: int | None = field(default=None)

    def watch(self, fit: Callable[[int], T]) -> Callable[[int], T]:
        """Return a function that calls `fit` and records the fold if the call fails."""

        def watched(fold: int) -> T:
            try:
                return fit(fold)
            except DiscriminantError:
                self.fold = fold if self.fold is None else min(fold, self.fold)
                raise

        return watched


# --- rows in memory -------------------------------------------------------------------------------


def _score_in_memory(
    folded: MemoryFolds, make: Callable[[], FoldModel], errors: _FoldErrors
) -> HeldOutScores:
    model = make()
    labels, columns = folded.labels, np.arange(len(folded.labels))
    collector = PredictionCollector(labels, len(folded.codes))
    if model.from_moments or model.scorers:

        def score(f: int) -> tuple[bool, Floats | None]:
            features = folded.held_out(f)
            scorer = (
                model.scorers[f] if model.scorers else fit_without_fold(folded, model.without(f), f)
            )
            for lo in range(0, len(folded.rows[f]), _PIECE):
                piece = slice(lo, lo + _PIECE)
                logs, codes, _ = scorer.predict(features[piece])
                collector.predicted.fill(folded.rows[f][piece], columns, logs, codes)
            return True, None

    else:
        fit = _refit(folded, model)

        def score(f: int) -> tuple[bool, Floats | None]:
            fitted, X = fit(f), folded.held_out(f)
            able = hasattr(fitted, "predict_log_proba") or hasattr(fitted, "predict_proba")
            with nullcontext() if able else merge_warnings():
                collector.add(fitted, X, folded.rows[f], decide=model.decide)
            ranks = model.ranks(fitted) and hasattr(fitted, "decision_function")
            scores = class_scores(fitted, X, labels) if ranks else None
            return bool(getattr(fitted, "converged_", True)), scores

    folds = range(folded.n_folds)
    # fits may run in parallel; estimators of other packages may not allow it
    ours = model.from_moments or model.scorers or _is_own(model.estimator)
    if folded.parts and ours:
        with one_blas_thread(), ThreadPoolExecutor(available_threads()) as pool:
            results = list(pool.map(in_thread(errors.watch(score)), folds))
    else:
        blas = nullcontext() if folded.table is None else blas_context(folded.table.width)
        with blas:
            results = [errors.watch(score)(f) for f in folds]
    converged = all(fold_converged for fold_converged, _ in results)
    scores = _join_scores(folded, [scores for _, scores in results])
    return HeldOutScores("", collector.predictions(), class_scores=scores, converged=converged)


def fit_without_fold(folded: FoldedTable, estimator: Any, fold: int) -> RuleScorer:
    """Fit a moment-based model to the added moments of all folds but one."""
    train = folded.training_moments(fold, estimator.detail)
    present = train.rows > 0
    check_training_classes(present, folded.labels)
    model = restrict_prior(estimator, present, folded.labels)
    own = drop_empty_classes(train)
    if model.needs_rows_for(own):
        rule = model.rule_from_table(folded.training(fold))
    else:
        rule = model.rule_from(own)
    return RuleScorer(model, rule, np.flatnonzero(present), len(present))


def _refit(folded: MemoryFolds, model: FoldModel) -> Callable[[int], Any]:
    """Return a function that fits a clone to the rows outside a fold, or to a sample of them."""
    labels = folded.labels
    weighted = folded.weight is not None
    if weighted and folded.parts and not has_fit_parameter(model.estimator, "sample_weight"):
        raise WeightError.not_supported(type(model.estimator).__name__)
    samples = [] if model.max_rows is None else folded.training_samples(model.max_rows, model.seed)

    def fit(f: int) -> Any:
        model.progress(f)
        rows = samples[f] if samples else folded.training_rows(f)
        codes = folded.codes[rows]
        weight = None if folded.weight is None else folded.weight[rows]
        present = present_classes(codes, weight, labels)
        if _is_own(model.estimator):  # estimators of other packages may accept one class
            check_training_classes(present, labels)
        estimator = restrict_prior(clone(model.without(f)), present, labels)
        options = {} if weight is None else {"sample_weight": weight}
        X = folded.take(rows)
        return estimator.fit(dense(X) if folded.parts else X, labels[codes], **options)

    return fit


def _is_own(estimator: Any) -> bool:
    """Return whether the estimator is of this package."""
    return type(estimator).__module__.startswith("discriminant.")


def _join_scores(folded: MemoryFolds, scores: Sequence[Floats | None]) -> Floats | None:
    """Return the scores of all rows, (N, K), from the scores of each fold; None without scores."""
    if scores[0] is None:
        return None
    joined = np.empty((scores[0].shape[1], len(folded.codes))).T
    for rows, fold_scores in zip(folded.rows, scores, strict=True):
        joined[rows] = np.nan if fold_scores is None else fold_scores
    return joined


# --- partitioned tables ---------------------------------------------------------------------------


def _score_partitioned(
    folded: PartitionedFolds,
    models: Mapping[str, Callable[[], FoldModel]],
    prepare: Callable[[str], object],
) -> Iterator[HeldOutScores]:
    fits: list[tuple[HeldOutScores, tuple[Scorer | None, ...]]] = []
    for name, make in models.items():
        prepare(name)
        scorers: list[Scorer | None] = []

        def fit(
            errors: _FoldErrors,
            make: Callable[[], FoldModel] = make,
            scorers: list[Scorer | None] = scorers,
        ) -> HeldOutScores:
            fold_scorers, converged = _fold_scorers(folded, make(), errors)
            scorers.extend(fold_scorers)
            return HeldOutScores("", converged=converged)

        scores = _run(name, fit)
        if scores.error is None:
            fits.append((scores, tuple(scorers)))
        else:
            yield scores
    if not fits:
        return
    prepare("")
    with capture_warnings() as warnings:
        reading = HeldOutReading(folded.labels, tuple(scorers for _, scorers in fits))
        sums = folded.rows.fold(reading)
    for (scores, _), model_sums, both in zip(fits, sums.models, sums.right, strict=True):
        all_warnings = (*scores.warnings, *warnings)
        yield replace(scores, sums=model_sums, both_correct=both, warnings=all_warnings)


def _fold_scorers(
    folded: PartitionedFolds, model: FoldModel, errors: _FoldErrors
) -> tuple[list[Scorer | None], bool]:
    """Return a scorer for every fold, and whether all fits converged.

    The scorer of an empty fold is None.
    """
    scorers: list[Scorer | None] = [None] * folded.n_folds
    if model.scorers:
        return [*model.scorers], True
    if model.from_moments:
        fit = errors.watch(lambda f: fit_without_fold(folded, model.without(f), f))
        with one_blas_thread(), ThreadPoolExecutor(available_threads()) as pool:
            for f, rule in zip(folded.filled, pool.map(in_thread(fit), folded.filled), strict=True):
                scorers[f] = rule
        return scorers, True
    if model.max_rows is None:
        for f in folded.filled:
            scorers[f] = errors.watch(lambda f: _fit_partitioned(folded, model.without(f), f))(f)
        fitted = [scorer.model for scorer in scorers if isinstance(scorer, ModelScorer)]
    else:
        sample = folded.in_memory
        fitted = _map_folds(sample, model, errors.watch(_refit(sample, model)))
        scorers = list(_portable_scorers(fitted, folded.labels))
    return scorers, all(bool(getattr(fit, "converged_", True)) for fit in fitted)


def _map_folds(folded: MemoryFolds, model: FoldModel, work: Callable[[int], T]) -> list[T]:
    """Apply `work` to all folds, in parallel if that is safe."""
    threads = available_threads() if _is_own(model.estimator) else 1
    blas = one_blas_thread() if threads > 1 else nullcontext()
    with blas, ThreadPoolExecutor(threads) as pool:
        return list(pool.map(in_thread(work), range(folded.n_folds)))


def _fit_partitioned(folded: PartitionedFolds, estimator: Any, fold: int) -> ModelScorer:
    present = folded.trains[fold].rows > 0
    check_training_classes(present, folded.labels)
    fitted = restrict_prior(clone(estimator), present, folded.labels).fit(folded.training(fold))
    return ModelScorer(without_feature_names(fitted), folded.labels)


def _portable_scorers(models: Sequence[Any], labels: Labels) -> Iterator[Scorer]:
    """Yield fitted models as scorers, without training rows, to be sent to the partitions."""
    able = hasattr(models[0], "predict_log_proba")
    for model in models:
        if able and hasattr(model, "predict_with_rule"):
            columns = np.searchsorted(labels, model.classes_)
            yield RuleScorer(clone(model), model.rule_, columns, len(labels))
        else:
            yield (ModelScorer if able else DecisionScorer)(model, labels)


# --- results --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutPredictions:
    """Held-out predictions of a model: log posteriors and decisions for every row."""

    labels: Labels  # (K,)
    codes: Codes  # (N,) the true class of each row
    fold: FoldNumbers  # (N,) the fold in which the row is held out
    log_posterior: Floats  # (N, K), -inf for a class that the training rows lacked
    decided: Places  # (N,) index of the decision in the list of the labels followed by `others`
    others: Actions = ()  # decisions that are not classes: REJECT, OUTLIER, actions with a cost
    weight: Floats | None = None  # (N,) weight of each row
    probabilistic: bool = True  # False: the model gives no probabilities, so there is no log loss

    @classmethod
    def of(
        cls, folded: MemoryFolds, predictions: Predictions, *, probabilistic: bool = True
    ) -> HeldOutPredictions:
        """Return the result for rows in memory from their predictions."""
        return cls(
            folded.labels,
            folded.codes,
            folded.fold,
            predictions.log_posterior,
            predictions.decided,
            predictions.others,
            folded.weight,
            probabilistic,
        )

    def __repr__(self) -> str:
        """One line with the number of rows, classes and folds, the error and the log loss."""
        return (
            f"HeldOutPredictions({len(self.codes)} rows, {len(self.labels)} classes, "
            f"{int(self.fold.max()) + 1} folds, error={self.error:.4g}, "
            f"log_loss={self.log_loss:.4g})"
        )

    def take(self, rows: Places) -> HeldOutPredictions:
        """Return the predictions of some of the rows."""
        return replace(
            self,
            codes=self.codes[rows],
            fold=self.fold[rows],
            log_posterior=self.log_posterior[rows],
            decided=self.decided[rows],
            weight=None if self.weight is None else self.weight[rows],
        )

    @property
    def predicted(self) -> npt.NDArray[Any]:
        """Predicted label of each row, or another decision such as REJECT, (N,)."""
        if not self.others:
            return np.asarray(self.labels[self.decided])
        names = np.empty(len(self.labels) + len(self.others), dtype=object)
        names[:] = [*self.labels.tolist(), *self.others]
        return np.asarray(names[self.decided])

    @property
    def wrong(self) -> npt.NDArray[np.bool_]:
        """Boolean array (N,): True where the row is assigned to a wrong class.

        A rejected row is not wrong.
        """
        return np.asarray((self.decided != self.codes) & (self.decided < len(self.labels)))

    @property
    def error(self) -> float:
        """Weighted share of the decided rows that are assigned to a wrong class."""
        weight = np.ones(len(self.codes)) if self.weight is None else self.weight
        decided = weight * (self.decided < len(self.labels))
        return float(decided @ self.wrong / decided.sum()) if decided.any() else float("nan")

    @property
    def log_loss(self) -> float:
        """Mean of -log posterior of the true class; NaN if the model gives no probabilities."""
        if not self.probabilistic:
            return float("nan")
        weight = np.ones(len(self.codes)) if self.weight is None else self.weight
        rows = np.flatnonzero(weight)  # rows of weight 0 may have an infinite loss
        own = self.log_posterior[rows, self.codes[rows]]
        return float(-np.average(own, weights=weight[rows]))

    @property
    def tally(self) -> Assessment:
        """Assessment of all held-out rows, from which all measures follow."""
        return self._tally(slice(None))

    @property
    def tallies(self) -> list[Assessment]:
        """Assessments of the folds, one for each; their sum is `tally`."""
        return [self._tally(rows) for rows in rows_by_fold(self.fold)]

    def _tally(self, rows: Any) -> Assessment:
        return Assessment.from_decisions(
            self.codes[rows],
            self.decided[rows],
            labels=self.labels,
            others=self.others,
            log_posterior=self.log_posterior[rows] if self.probabilistic else None,
            weight=None if self.weight is None else self.weight[rows],
        )


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutTally:
    """Held-out predictions of a model on a partitioned table, summed over rows."""

    labels: Labels  # (K,)
    tallies: tuple[Assessment, ...]  # one assessment for each of the F folds; it may be empty
    # one ranking for the second of two classes; for more classes, one for each
    rankings: tuple[Ranking, ...]

    @classmethod
    def of(cls, labels: Labels, sums: ModelSums, *, probabilistic: bool = True) -> HeldOutTally:
        """Return the result from the sums of one model.

        A model that is not probabilistic has no log loss.
        """
        tallies = [Assessment.of_tally(tally) for tally in sums.tallies]
        if not probabilistic:
            no_scores = ProbabilityScores.empty(len(labels))
            tallies = [replace(tally, scored=no_scores) for tally in tallies]
        return cls(labels, tuple(tallies), sums.rankings)

    def __repr__(self) -> str:
        """One line with the number of rows, classes and folds, the error and the log loss."""
        tally = self.tally
        folds = sum(bool(fold.rows.any()) for fold in self.tallies)
        return (
            f"HeldOutTally({int(tally.rows.sum())} rows, {len(self.labels)} classes, "
            f"{folds} folds, error={tally.error:.4g}, log_loss={tally.log_loss:.4g})"
        )

    @property
    def tally(self) -> Assessment:
        """Assessment of all held-out rows, from which all measures follow."""
        return reduce(add, self.tallies)

    @property
    def error(self) -> float:
        """Weighted share of the decided rows that are assigned to a wrong class."""
        return self.tally.error

    @property
    def log_loss(self) -> float:
        """Mean of -log posterior of the true class; NaN if the model gives no probabilities."""
        return self.tally.log_loss

    @property
    def auc(self) -> AUC | None:
        """Area under the ROC curve of the second of two classes; for more classes, the mean AUC.

        Rows are ranked in bounded memory, so the area is approximate; `auc.error` bounds its error.
        None if a class has no rows, or if there are more than 20 classes.
        """
        return auc_of_rankings(self.rankings)


def auc_of_rankings(rankings: Sequence[Ranking], interval: float | None = None) -> AUC | None:
    """Return the AUC of two classes with its interval, or the mean AUC of more classes.

    For the mean, each class is ranked against all others.
    """
    if not rankings:
        return None
    level = interval if len(rankings) == 1 else None
    try:
        areas = [auc(ranking, interval=level) for ranking in rankings]
    except DiscriminantError:  # a class without rows
        return None
    if len(areas) == 1:
        return areas[0]
    value, error = (
        float(np.mean([getattr(area, name) for area in areas])) for name in ("value", "error")
    )
    by_class = {area.positive: area.value for area in areas}
    nan = float("nan")
    return AUC(value, nan, nan, nan, None, areas[0].weight, None, by_class, error)


# --- what a model supports ------------------------------------------------------------------------


def fold_model(estimator: Any) -> Callable[[], FoldModel]:
    """Return the function that `score_folds` calls to get the model that it fits.

    The model is fitted to moments if it is moment-based.
    """
    return lambda: FoldModel(estimator, is_moment_based(estimator))


def can_add_moments(estimator: Any, X: Any) -> bool:
    """Return whether a model can be fitted by adding moments rather than refitted to rows X.

    If there are more than half as many features as rows, the answer is False: refitting is less
    work.
    """
    if not is_moment_based(estimator):
        return False
    rows, width = np.shape(X) if not hasattr(X, "shape") else X.shape[:2]
    return bool(estimator.detail == "diagonal" or 2 * width <= rows)


def needed_moments_detail(estimator: Any) -> Detail:
    """Return the kind of moments that a model needs; models that read the rows need 'pooled'."""
    if not is_moment_based(estimator):
        return "pooled"
    detail: Detail = estimator.detail
    return detail


def check_supports_partitions(model: Any, rows: PartitionedTable) -> None:
    """Raise an error, before any work, if a model cannot be fitted to a partitioned table."""
    name = type(model).__name__
    if hasattr(model, "encode"):
        allowed = f"the classifier inside {name}: a partitioned table is already encoded"
        raise OptionError.of("estimator", name, allowed)
    if not supports_partitions(model, rows):
        raise NeedsMemoryError.of(name, rows.source.name, len(rows), len(rows.sample))


def supports_partitions(model: Any, rows: PartitionedTable) -> bool:
    """Return whether a model can be fitted to this partitioned table."""
    stores_rows = is_moment_based(model) and getattr(model, "detail", None) == "rows"
    return rows.sample_is_complete or (_is_ours(model) and not stores_rows)


def _is_ours(model: Any) -> bool:
    """Return whether a classifier, and any classifier inside it, belong to this package."""
    inner = getattr(model, "estimator", None)
    ours = type(model).__module__.split(".")[0] == __name__.split(".")[0]
    return ours and (inner is None or _is_ours(inner))
