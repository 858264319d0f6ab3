"""Prediction sets with guaranteed coverage, by conformal prediction, for any classifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from discriminant.assessment.classifier_outputs import log_predict_proba
from discriminant.assessment.prediction_set_assessment import SetAssessment, assess_sets
from discriminant.assessment.resampling.held_out_folds import (
    can_add_moments,
    check_supports_partitions,
)
from discriminant.assessment.resampling.leave_one_out import (
    LeftOutQuadraticRules,
    LeftOutRules,
)
from discriminant.decision.prediction_sets import (
    SCORES,
    CalibrationScores,
    check_coverage,
    conformity_of,
    needed_rows,
    p_values,
    prediction_sets,
    uniform_numbers,
)
from discriminant.engines.dispatch import read_classes
from discriminant.engines.local import blas_context
from discriminant.engines.partitioned_table import PartitionedTable
from discriminant.errors import (
    CoverageError,
    NeedsMemoryError,
    OptionError,
    PosteriorError,
    TooFewRowsError,
    merge_warnings,
)
from discriminant.estimators.base import (
    ClassifierWrapper,
    available_if,
    check_choice,
    has_probabilities,
    partitioned_or_none,
    require_classifier,
)
from discriminant.estimators.meta.calibrated import known_codes
from discriminant.estimators.meta.cross_fit import (
    LEAVE_ONE_OUT,
    CrossFitRows,
    Hashes,
    HeldOutValues,
    check_seed,
    cross_fit_partitions,
    fit_folds,
    hashes_of,
    held_out_values,
    scores_among,
)
from discriminant.posterior import log_posterior
from discriminant.table.blocks import Floats, Labels, Places
from discriminant.table.memory import as_table

METHODS = ("split", "cross", "jackknife+")


@dataclass(frozen=True, slots=True, eq=False)
class TrueClassConformity:
    """Conformity of each row with its true class."""

    score: str

    def __call__(self, logs: Floats, codes: Places, hashes: Callable[[], Hashes]) -> Floats:
        """Return the conformity (n, 1)."""
        if self.score == "lac":
            return logs[np.arange(len(codes)), codes][:, None]
        values = conformity_of(logs, self.score, uniform_numbers(hashes()))
        return values[np.arange(len(codes)), codes][:, None]


class PredictionSets(ClassifierWrapper):
    """Sets of classes that contain the true class with a chosen probability.

    A set contains all classes whose p-value exceeds 1 - coverage. The p-value of a class is the
    share of calibration rows whose conformity to their own class is at most the conformity of the
    new row to this class. Nothing is assumed about the classifier or the classes, except that rows
    are exchangeable: new rows come from the same population as the rows of the fit.

    Parameters
    ----------
    estimator : classifier
        Classifier with `predict_proba` or `predict_log_proba`. The classifier is cloned before it
        is fitted. To calibrate sets of a fitted classifier on other rows, wrap it in scikit-learn's
        `FrozenEstimator` and pass method='split'.
    coverage : float, default 0.9
        Probability that a set contains the true class. It can be changed after the fit.
    method : {'cross', 'split', 'jackknife+'}, default 'cross'
        'split': calibrate with rows that the classifier is not fitted to. The coverage is
        guaranteed. 'cross' (cross-conformal, CV+): calibrate with all rows, each scored by a
        classifier fitted to the other folds. The guaranteed coverage is 2 coverage - 1, minus a
        term that vanishes as the folds grow; in practice it is near `coverage`. 'jackknife+': each
        row is a fold; the guaranteed coverage is 2 coverage - 1. A classifier that is fitted from
        moments (LDA, QDA, ...) is not refitted for 'cross' and 'jackknife+': moments are added, and
        LDA, QDA and NearestMean have a closed form for the fit without a row.
    conformity : {'lac', 'aps'}, default 'lac'
        How well a row conforms to a class: by its log posterior, or by the sum of the smaller
        posteriors plus a random share of its own posterior. 'lac': sets are as small as possible on
        average. 'aps': sets are larger for rows whose classes are harder to distinguish, so that
        coverage is more even over rows.
    by_class : bool, default False
        Calibrate each class by its own rows (Mondrian), so that every class, even a rare or
        difficult one, is covered with the chosen probability.
    nonempty : bool, default False
        Replace an empty set, which means that no class conforms, by the most probable class. The
        coverage is then higher than guaranteed.
    folds : int, array of shape (n,) or splitter, default 10
        Folds for 'cross', as in `Calibrated`.
    calibration_size : float, default 0.25
        Share of the rows that 'split' calibrates with, a random sample. For a partitioned table it
        is rounded to 1/2, 1/3, 1/4, ...
    seed : int, default 0
        Seed of the hash that assigns rows to folds and breaks the ties of 'aps'.

    Attributes
    ----------
    estimator_ : classifier
        The classifier, fitted to all rows; with 'split', to the rows that are not used for
        calibration.
    estimators_ : list
        The classifiers fitted without each fold; empty if the fit without a row has a closed form,
        and with 'split'.
    calibration_ : CalibrationScores
        Conformity of the calibration rows with their classes.

    See Also
    --------
    Calibrated : Calibrated probabilities.
    Decision : Costs and a reject option. A set that does not have exactly one class rejects the
        row.

    Notes
    -----
    Integer weights are equivalent to repeated rows, except with 'jackknife+', which leaves out a
    row with all its weight. Partitioned tables are supported by 'split' and 'cross'; one number for
    each calibration row is stored in memory.

    References
    ----------
    Vovk (2015), Cross-conformal predictors. Sadinle, Lei and Wasserman (2019), Least ambiguous
    set-valued classifiers with bounded error levels. Romano, Sesia and Candes (2020),
    Classification with valid and adaptive coverage. Barber, Candes, Ramdas and Tibshirani (2021),
    Predictive inference with the jackknife+.

    Examples
    --------
    >>> from discriminant import LDA
    >>> rows = [[float(i)] for i in range(20)]
    >>> model = PredictionSets(LDA(), coverage=0.9).fit(rows, list("aaaaaabaabbabbbbbbbb"))
    >>> model.predict_set([[0.0], [8.5], [19.0]]).tolist()
    [[True, False], [True, True], [False, True]]
    """

    _fitted_attribute = "calibration_"
    estimator_: Any
    estimators_: list[Any]
    classes_: Labels
    calibration_: CalibrationScores
    _left_out: LeftOutRules | LeftOutQuadraticRules | None

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why these fitted attributes are inconsistent, or None if they agree."""
        expected = {"estimator_", "estimators_", "classes_", "calibration_", "_left_out"}
        absent = expected - set(parts)
        if absent == expected:
            return None  # not fitted
        if absent:
            return f"it has no {min(absent)}"
        scores, left_out = parts["calibration_"], parts["_left_out"]
        if scores.codes.max() >= len(parts["classes_"]):
            return "its calibration rows have more classes than it"
        models = max(len(parts["estimators_"]), 1)
        if left_out is not None:
            models = left_out.n_rules
            if models != len(scores.codes):
                return f"it has {models} rules for {len(scores.codes)} calibration rows"
        if scores.fold.max() >= models:
            return f"its calibration rows belong to more than {models} folds"
        return None

    def __init__(
        self,
        estimator: Any,
        coverage: float = 0.9,
        *,
        method: Literal["cross", "split", "jackknife+"] = "cross",
        conformity: Literal["lac", "aps"] = "lac",
        by_class: bool = False,
        nonempty: bool = False,
        folds: Any = 10,
        calibration_size: float = 0.25,
        seed: int = 0,
    ) -> None:
        self.estimator = estimator
        self.coverage = coverage
        self.method = method
        self.conformity = conformity
        self.by_class = by_class
        self.nonempty = nonempty
        self.folds = folds
        self.calibration_size = calibration_size
        self.seed = seed

    # --- fitting ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the classifier, and compute the conformity of the calibration rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d), or partitioned table
            Rows. A partitioned table (`discriminant.rows`) has its own labels and weights.
        y : array of shape (n,)
            Class labels.
        sample_weight : array of shape (n,), default None
            Weight of each row, for the classifier and for the calibration.

        Returns
        -------
        self
        """
        require_classifier(self.estimator, "PredictionSets", "returns sets of classes")
        seed = self._check_options()
        table = partitioned_or_none(X, y, sample_weight)
        self._left_out, self.estimators_ = None, []
        with merge_warnings():
            if table is not None:
                held = self._fit_partitions(table, seed)
            else:
                frozen = isinstance(self.estimator, FrozenEstimator)
                rows = CrossFitRows.of(X, y, sample_weight, frozen=frozen)
                held = (self._fit_split if self.method == "split" else self._fit_cross)(rows, seed)
        self._copy_input_names(self.estimator_)
        scores = CalibrationScores(
            held.values[:, 0], held.codes, held.fold, held.weight, self.conformity, seed
        )
        self._check_rows(scores)
        self.calibration_ = scores
        return self

    # --- using ------------------------------------------------------------------------------------

    def predict_set(self, X: Any) -> npt.NDArray[np.bool_]:
        """Return the prediction sets (n, K): True where the set of a row contains the class.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Rows.

        Returns
        -------
        array of shape (n, K)
            Columns are in the order of `classes_`.
        """
        self._check_is_fitted()
        coverage = check_coverage(self.coverage)
        self._check_rows(self.calibration_)
        p_value, logs = self._p_values(X)
        return prediction_sets(p_value, coverage, logs if self.nonempty else None)

    def p_values(self, X: Any) -> Floats:
        """Return p-values (n, K); a set contains the classes whose p-value exceeds 1 - coverage."""
        self._check_is_fitted()
        return self._p_values(X)[0]

    def evaluate(self, X: Any, y: Any, sample_weight: Any = None) -> SetAssessment:
        """Assess the sets on labelled rows: coverage with its interval, sizes, coverage by class.

        Parameters
        ----------
        X, y, sample_weight
            Rows, labels and weights.

        Returns
        -------
        SetAssessment
        """
        sets = self.predict_set(X)
        return assess_sets(
            sets, y, self.classes_, coverage=float(self.coverage), sample_weight=sample_weight
        )

    def rejected(self, X: Any) -> npt.NDArray[np.bool_]:
        """Return True for each row (n,) whose set does not have exactly one class.

        `Decision(PredictionSets(...)).decide` rejects these rows.
        """
        return np.asarray(self.predict_set(X).sum(axis=1) != 1)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the class of each row by the classifier."""
        self._check_is_fitted()
        return np.asarray(self.estimator_.predict(X))

    @available_if(lambda self: hasattr(self._classifier, "predict_proba"))
    def predict_proba(self, X: Any) -> Floats:
        """Return the posteriors (n, K) of the classifier."""
        self._check_is_fitted()
        return np.asarray(self.estimator_.predict_proba(X))

    @available_if(lambda self: hasattr(self._classifier, "predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Floats:
        """Return the log posteriors (n, K) of the classifier."""
        self._check_is_fitted()
        return np.asarray(self.estimator_.predict_log_proba(X))

    @available_if(lambda self: hasattr(self._classifier, "decision_function"))
    def decision_function(self, X: Any) -> Floats:
        """Return the scores of the classifier."""
        self._check_is_fitted()
        return np.asarray(self.estimator_.decision_function(X))

    @property
    def prior_(self) -> Floats:
        """Class priors (K,) of the classifier, if it declares them."""
        self._check_is_fitted()
        return np.asarray(self.estimator_.prior_)

    # --- inside -----------------------------------------------------------------------------------

    @property
    def _classifier(self) -> Any:
        return getattr(self, "estimator_", self.estimator)

    def _check_options(self) -> int:
        """Raise `OptionError` for an invalid option; return the seed."""
        check_coverage(self.coverage)
        check_choice("method", self.method, METHODS)
        check_choice("conformity", self.conformity, SCORES)
        for name in ("by_class", "nonempty"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise OptionError.of(name, getattr(self, name), "True or False")
        size = self.calibration_size
        if not isinstance(size, float | np.floating) or not 0.0 < size < 1.0:
            raise OptionError.of("calibration_size", size, "a number above 0 and below 1")
        if not has_probabilities(self.estimator):
            raise PosteriorError.without_sets(type(self.estimator).__name__)
        if isinstance(self.estimator, FrozenEstimator) and self.method != "split":
            allowed = "'split': a frozen classifier cannot be fitted to folds"
            raise OptionError.of("method", self.method, allowed)
        return check_seed(self.seed)

    def _check_rows(self, scores: CalibrationScores) -> None:
        """Raise an error unless there are enough calibration rows for the coverage."""
        coverage = float(self.coverage)
        needed, K = needed_rows(coverage), len(self.classes_)
        present = np.unique(scores.codes)
        if len(present) == 1:
            raise CoverageError.one_class(self.classes_[present[0]], len(scores.codes))
        total = scores.total(K, by_class=bool(self.by_class))
        least = int(np.argmin(total))
        if total[least] < needed:
            facts = float(total[least]), needed, coverage
            if self.by_class:
                raise CoverageError.of_class(self.classes_[least], *facts)
            raise CoverageError.of_rows(*facts, split=self.method == "split")

    def _fit_split(self, rows: CrossFitRows, seed: int) -> HeldOutValues:
        if isinstance(self.estimator, FrozenEstimator):
            model = self.estimator.estimator
            classes, held_out = np.asarray(model.classes_), rows
            codes = known_codes(rows, classes)
        else:
            calibrates = rows.split(float(self.calibration_size), seed)
            if not calibrates.any():
                facts = 0.0, needed_rows(float(self.coverage)), float(self.coverage)
                raise CoverageError.of_rows(*facts, split=True)
            if (left := int((~calibrates).sum())) < 2:
                size = float(self.calibration_size)
                raise CoverageError.of_training(left, len(calibrates), size)
            model = rows.take(np.flatnonzero(~calibrates)).fit(clone(self.estimator))
            classes, held_out = rows.labels, rows.take(np.flatnonzero(calibrates))
            self._check_training_classes(model, classes, np.bincount(rows.codes))
            codes = held_out.codes.astype(np.intp)
        self.estimator_, self.classes_ = model, classes
        logs = self._log_posterior(model, held_out.X)
        values = TrueClassConformity(self.conformity)(
            logs, codes, partial(hashes_of, model, held_out.X, logs, seed)
        )
        return HeldOutValues(values, codes, np.zeros(len(codes), dtype=np.intp), held_out.weight)

    def _fit_cross(self, rows: CrossFitRows, seed: int) -> HeldOutValues:
        self.estimator_ = rows.fit(clone(self.estimator))
        self.classes_ = np.asarray(self.estimator_.classes_)
        folds = self._option("folds")
        if self.method == "jackknife+":
            held = self._fit_closed_form(rows, seed)
            if held is not None:
                return held
            folds = LEAVE_ONE_OUT
        fold = rows.folds(self.estimator_, folds, seed)
        self.estimators_ = fit_folds(self.estimator, rows, fold, adds=True)
        values = TrueClassConformity(self.conformity)
        return held_out_values(
            self.estimators_, rows, fold, score=_log_posteriors, values=values, seed=seed
        )

    def _check_training_classes(self, model: Any, classes: Labels, count: Any) -> None:
        """Raise an error if all rows of a class are calibration rows."""
        for k in np.flatnonzero(~np.isin(classes, model.classes_)):
            what = "a fit without the calibration rows"
            raise TooFewRowsError.of_class(classes[k], int(count[k]), 2, what)

    def _fit_closed_form(self, rows: CrossFitRows, seed: int) -> HeldOutValues | None:
        """Return the conformity of all rows, and set the rules fitted without each row.

        Return None if there is no closed form.
        """
        estimator = self.estimator
        if not (hasattr(estimator, "left_out_rules") and can_add_moments(estimator, rows.X)):
            return None
        if np.bincount(rows.codes).min() < 2:
            return None  # without its only row, a class is not known
        y, name = rows.labels[rows.codes], type(estimator).__name__
        table = as_table(rows.X, y, weight=rows.weight, name=name)
        with blas_context(table.width):
            moments = read_classes(table, estimator.detail)
            left_out = estimator.left_out_rules(moments, table)
            scores = estimator.leave_one_out_scores(moments, table)
        if left_out is None or scores is None or np.isnan(scores).any():
            return None
        logs = log_posterior(scores)
        codes = rows.codes.astype(np.intp)
        hashes = partial(hashes_of, self.estimator_, rows.X, logs, seed)
        values = TrueClassConformity(self.conformity)(logs, codes, hashes)
        self._left_out = left_out
        return HeldOutValues(values, codes, np.arange(len(codes)), rows.weight)

    def _fit_partitions(self, table: PartitionedTable, seed: int) -> HeldOutValues:
        if self.method == "jackknife+":
            source, sampled = table.source.name, len(table.sample)
            raise NeedsMemoryError.of_jackknife(source, len(table), sampled)
        check_supports_partitions(self.estimator, table)
        split = self.method == "split"
        folds = max(2, round(1.0 / self.calibration_size)) if split else self._option("folds")
        models, held = cross_fit_partitions(
            self.estimator,
            table,
            folds=folds,
            seed=seed,
            score=_log_posteriors,
            values=TrueClassConformity(self.conformity),
            only=0 if split else None,
        )
        if split:
            self.estimator_ = models[0]
            count = table.moments.rows
            self._check_training_classes(models[0], table.schema.labels, count)
        else:
            self.estimator_, self.estimators_ = clone(self.estimator).fit(table), models
        self.classes_ = np.asarray(table.schema.labels)
        return held

    def _p_values(self, X: Any) -> tuple[Floats, Floats]:
        """Return the p-values and the log posteriors of the classifier, both (n, K)."""
        logs, scores = self._log_posterior(self.estimator_, X), self.calibration_
        uniform = np.zeros(len(logs))
        if scores.score == "aps":
            uniform = uniform_numbers(hashes_of(self.estimator_, X, logs, scores.seed))
        by_class = bool(self.by_class)
        if self._left_out is not None:
            counts = self._count_left_out(self._left_out, X, uniform)
        else:
            counts = np.zeros(logs.shape)
            for f, model in enumerate(self.estimators_ or [self.estimator_]):
                own = self._log_posterior(model, X) if self.estimators_ else logs
                values = conformity_of(own, scores.score, uniform)
                counts += scores.count(f, values, by_class=by_class)
        return p_values(counts, scores.total(len(self.classes_), by_class=by_class)), logs

    def _log_posterior(self, model: Any, X: Any) -> Floats:
        return scores_among(model, X, self.classes_, _log_posteriors)

    def _count_left_out(
        self, left_out: LeftOutRules | LeftOutQuadraticRules, X: Any, uniform: Floats
    ) -> Floats:
        """Return the number of calibration rows with at most the conformity of each row, (n, K)."""
        features, scores = self.estimator_._rows_to_score(X), self.calibration_
        counts = np.empty((features.shape[0], len(self.classes_)))
        for piece, logs in left_out.log_posteriors(features):
            if scores.score != "lac":
                K, n, N = logs.shape
                flat = logs.transpose(1, 2, 0).reshape(n * N, K)
                values = conformity_of(flat, scores.score, np.repeat(uniform[piece], N))
                logs = values.reshape(n, N, K).transpose(2, 0, 1)
            counts[piece] = scores.count_each(logs, by_class=bool(self.by_class))
        return counts


def _log_posteriors(model: Any, X: Any) -> Floats:
    """Return the log posteriors (n, k) of a fitted classifier."""
    logs = log_predict_proba(model, X)
    if logs is None:
        raise PosteriorError.without_sets(type(model).__name__)
    return logs
