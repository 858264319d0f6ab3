"""Calibrated classifiers: probabilities from held-out scores of any classifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from discriminant.assessment.classifier_outputs import class_scores, log_predict_proba
from discriminant.assessment.resampling.held_out_folds import check_supports_partitions
from discriminant.errors import LabelError, PosteriorError, merge_warnings
from discriminant.estimators.base import (
    ClassifierWrapper,
    LogPosteriorMixin,
    check_choice,
    has_probabilities,
    partitioned_or_none,
    require_classifier,
)
from discriminant.estimators.meta.cross_fit import (
    CrossFitRows,
    Hashes,
    HeldOutValues,
    check_seed,
    cross_fit_partitions,
    fit_folds,
    held_out_values,
)
from discriminant.models.calibration import FITS, Calibrator
from discriminant.posterior import log_posterior, not_probabilistic
from discriminant.table.blocks import Floats, Labels, Places


class Calibrated(LogPosteriorMixin, ClassifierWrapper):
    """Calibrate the probabilities of a classifier, or turn its scores into probabilities.

    The calibrator is fitted to scores of held-out rows: the scores of each fold are those of a
    classifier fitted to the other folds. The classifier itself is then fitted to all rows. A
    classifier that is fitted from moments (LDA, QDA, ...) is not refitted to the rows of the other
    folds: their moments are added.

    Parameters
    ----------
    estimator : classifier
        Classifier with `predict_proba`, `predict_log_proba` or `decision_function`. The classifier
        is cloned before it is fitted. To calibrate a fitted classifier on other rows, wrap it in
        scikit-learn's `FrozenEstimator`.
    method : {'platt', 'temperature', 'isotonic', 'beta'}, default 'platt'
        'platt': a sigmoid of the log odds of each class. 'temperature': all log posteriors divided
        by one number, so the predicted class does not change. 'isotonic': an increasing function,
        for many rows. 'beta': a sigmoid of a log p - b log(1 - p) + c with a, b >= 0. With more
        than two classes, all methods but 'temperature' calibrate each class against all others, and
        divide by the sum.
    folds : int, array of shape (n,) or splitter, default 5
        Number of folds, stratified by class and assigned by a hash of each row's values; or the
        fold of each row; or a scikit-learn splitter that holds out every row once. For a
        partitioned table, this is a number or the name of a column.
    seed : int, default 0
        Seed of the hash.

    Attributes
    ----------
    estimator_ : classifier
        The classifier, fitted to all rows.
    calibrator_ : SigmoidCalibrator, TemperatureCalibrator, IsotonicCalibrator or BetaCalibrator
        The fitted parameters.
    from_posteriors_ : bool
        Whether the calibrated scores are log posteriors; else, values of the decision function.

    See Also
    --------
    PredictionSets : Sets of classes with guaranteed coverage.
    Decision : Costs and a reject option, which need calibrated probabilities.

    Notes
    -----
    Rows with equal values are held out together, so an integer weight is equivalent to repeated
    rows. The held-out scores of all rows of a partitioned table are stored in memory, one number
    for each row and class.

    References
    ----------
    Platt (2000), Probabilistic outputs for support vector machines. Zadrozny and Elkan (2002),
    Transforming classifier scores into accurate multiclass probability estimates. Guo, Pleiss, Sun
    and Weinberger (2017), On calibration of modern neural networks. Kull, Silva Filho and Flach
    (2017), Beta calibration.

    Examples
    --------
    >>> from discriminant import SVM
    >>> rows = [[float(i)] for i in range(12)]
    >>> model = Calibrated(SVM(), folds=3).fit(rows, list("aaaabababbbb"))
    >>> model.predict_proba([[0.0], [5.5]]).round(2).tolist()
    [[0.88, 0.12], [0.51, 0.49]]
    """

    probabilistic = True
    _fitted_attribute = "calibrator_"
    estimator_: Any
    classes_: Labels
    calibrator_: Any
    from_posteriors_: bool

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why these fitted attributes are inconsistent, or None if they agree."""
        expected = {"estimator_", "classes_", "calibrator_", "from_posteriors_"}
        absent = expected - set(parts)
        if absent == expected:
            return None  # not fitted
        if absent:
            return f"it has no {min(absent)}"
        K = len(parts["classes_"])
        n_margins = parts["calibrator_"].n_margins
        if n_margins not in (None, 1 if K == 2 else K):
            return f"its calibrator has {n_margins} margins for {K} classes"
        return None

    def __init__(
        self,
        estimator: Any,
        method: Literal["platt", "temperature", "isotonic", "beta"] = "platt",
        *,
        folds: Any = 5,
        seed: int = 0,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.folds = folds
        self.seed = seed

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the classifier to all rows, and the calibrator to held-out scores.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d), or partitioned table
            Rows. A partitioned table (`discriminant.rows`) has its own labels and weights.
        y : array of shape (n,)
            Class labels.
        sample_weight : array of shape (n,), default None
            Weight of each row, for the classifier and for the calibrator.

        Returns
        -------
        self
        """
        require_classifier(self.estimator, "Calibrated", "calibrates probabilities of classes")
        check_choice("method", self.method, FITS)
        seed = check_seed(self.seed)
        table = partitioned_or_none(X, y, sample_weight)
        with merge_warnings():
            if table is None:
                held = self._fit_rows(X, y, sample_weight, seed)
            else:
                held = self._fit_partitions(table, seed)
        self._copy_input_names(self.estimator_)
        self.from_posteriors_ = gives_log_posterior(self.estimator_)
        self.calibrator_ = FITS[self.method](
            held.values, held.codes, held.weight, posterior=self.from_posteriors_
        )
        return self

    def predict_log_proba(self, X: Any) -> Floats:
        """Return calibrated log posteriors (n, K)."""
        self._check_is_fitted()
        scores = scores_to_calibrate(self.estimator_, X)
        calibrator: Calibrator = self.calibrator_
        return log_posterior(calibrator.log_weights(scores, posterior=self.from_posteriors_))

    # --- inside -----------------------------------------------------------------------------------

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any, seed: int) -> HeldOutValues:
        frozen = isinstance(self.estimator, FrozenEstimator)
        rows = CrossFitRows.of(X, y, sample_weight, frozen=frozen)
        if frozen:
            return self._score_frozen(rows)
        self.estimator_ = rows.fit(self._unfitted_classifier())
        self.classes_ = np.asarray(self.estimator_.classes_)
        adds = gives_log_posterior(self.estimator_)
        fold = rows.folds(self.estimator_, self._option("folds"), seed)
        models = fit_folds(self.estimator, rows, fold, adds=adds)
        return held_out_values(
            models, rows, fold, score=scores_to_calibrate, values=scores_as_values, seed=seed
        )

    def _fit_partitions(self, table: Any, seed: int) -> HeldOutValues:
        check_supports_partitions(self.estimator, table)
        self.estimator_ = self._unfitted_classifier().fit(table)
        self.classes_ = np.asarray(self.estimator_.classes_)
        folds = self._option("folds")
        score, values = scores_to_calibrate, scores_as_values
        return cross_fit_partitions(
            self.estimator, table, folds=folds, seed=seed, score=score, values=values
        )[1]

    def _score_frozen(self, rows: CrossFitRows) -> HeldOutValues:
        model = self.estimator.estimator
        self._check_scores(model)
        self.estimator_, self.classes_ = model, np.asarray(model.classes_)
        codes = known_codes(rows, self.classes_)
        scores = scores_to_calibrate(model, rows.X)
        return HeldOutValues(scores, codes, np.zeros(len(codes), dtype=np.intp), rows.weight)

    def _unfitted_classifier(self) -> Any:
        model = clone(self.estimator)
        self._check_scores(model)
        return model

    def _check_scores(self, model: Any) -> None:
        if self.method == "beta" and not gives_log_posterior(model):
            raise PosteriorError.not_calibrated(type(model).__name__)
        if not (has_probabilities(model) or hasattr(model, "decision_function")):
            raise PosteriorError.without_scores(type(model).__name__)


def gives_log_posterior(model: Any) -> bool:
    """Return whether the scores to calibrate are log posteriors, not decision values."""
    return has_probabilities(model) and (
        not_probabilistic(model) is None or not hasattr(model, "decision_function")
    )


def scores_to_calibrate(model: Any, X: Any) -> Floats:
    """Return the scores (n, K) of a fitted classifier: log posteriors, or its decision function."""
    if gives_log_posterior(model):
        logs = log_predict_proba(model, X)
        assert logs is not None
        return logs
    return class_scores(model, X, np.asarray(model.classes_))


def scores_as_values(scores: Floats, codes: Places, hashes: Callable[[], Hashes]) -> Floats:
    """Return the scores themselves."""
    return scores


def known_codes(rows: CrossFitRows, classes: Labels) -> Places:
    """Return the class code of each row in a fitted model; unknown classes raise an error."""
    unknown = np.setdiff1d(rows.labels, classes)
    if len(unknown):
        raise LabelError.unknown(unknown.tolist(), classes.tolist())
    return np.asarray(np.searchsorted(classes, rows.labels)[rows.codes], dtype=np.intp)
