"""Reweighted, Resampled and EasyEnsemble: classifiers for imbalanced classes.

Rare classes get more weight, or more rows, in the fit; decisions follow that, while probabilities
are corrected to the class shares p of the original rows. With class shares q of the rows as fitted,

    P(k|x) ~ P_q(k|x) p_k / q_k

Resampling happens in `fit` alone: held-out rows are never drawn, nor used for synthetic rows.

EasyEnsemble (Liu, Wu and Zhou 2009) averages classifiers on many undersamples. One undersample of m
of the n rows of a frequent class discards most of them; T independent ones use the share
1 - (1 - m/n)^T on average: of n = T m rows more than a third are never used. Divided into n/m
disjoint parts, every row is used once. Moments add: a classifier from moments reads the rows only
once for all T: what the undersamples share is summed once, the rest once for each, in one pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils.validation import has_fit_parameter

from discriminant.assessment.resampling.folds import (
    drop_empty_classes,
    is_moment_based,
    prior_option,
)
from discriminant.engines.dispatch import anchor_of, fold, read_moments
from discriminant.engines.local import available_threads, blas_context, map_rows, one_blas_thread
from discriminant.engines.partitioned_table import PartitionedTable
from discriminant.errors import (
    ClassWeightError,
    LabelError,
    OptionError,
    PosteriorError,
    ResamplingError,
    ShapeError,
    WeightError,
    merge_warnings,
)
from discriminant.estimators.base import (
    EstimatorMixin,
    MomentClassifier,
    as_partitioned,
    available_if,
    require_classifier,
    to_memory,
)
from discriminant.estimators.meta.decision import (
    declared_prior,
    final_estimator,
    log_posterior_of,
    training_shares,
)
from discriminant.estimators.meta.smote_rows import SmoteTable
from discriminant.imbalance.rebalance import (
    RowNumbers,
    SubsetsReading,
    Target,
    class_weights,
    divided,
    drawn_in_the_mean,
    over_sample,
    scatter_shares,
    target_of,
    under_sample,
    under_samples,
    with_rows,
)
from discriminant.imbalance.smote import expected_moments, neighbours_of
from discriminant.models.rules import LinearRule, MeanRule
from discriminant.moments.accumulate import MomentsReading
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.posterior import log_posterior, not_probabilistic, reweighed
from discriminant.table.blocks import Codes, Floats, Labels, canonical_rows, dense, is_sparse
from discriminant.table.labels import encode_labels
from discriminant.table.memory import Table, as_table, check_weight


def has_posterior(self: Any) -> bool:
    """Whether there are posteriors; raise AttributeError if they cannot be corrected."""
    model = getattr(self, "estimator_", self.estimator)
    if self.keep_probabilities and (name := not_probabilistic(model)) is not None:
        what = f"{type(self).__name__}(keep_probabilities=True).predict_proba"
        raise AttributeError(str(PosteriorError.not_probabilities(name, what)))
    return hasattr(model, "predict_proba") or hasattr(model, "predict_log_proba")


def _has_decision(self: Any) -> bool:
    return hasattr(getattr(self, "estimator_", self.estimator), "decision_function")


class RebalancingClassifier(ClassifierMixin, MetaEstimatorMixin, EstimatorMixin, BaseEstimator):
    """Common base: decisions as fitted, probabilities of the original class shares."""

    _fitted_attribute = "classes_"
    estimator: Any
    keep_probabilities: Any
    estimator_: Any
    classes_: Labels
    fitted_prior_: Floats
    class_shares_: Floats

    # --- using ------------------------------------------------------------------------------------

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the class of each row by the classifier as it was fitted."""
        self._check_is_fitted()
        return np.asarray(self.estimator_.predict(X))

    @available_if(_has_decision)
    def decision_function(self, X: Any) -> Floats:
        """(n, K) scores of the classifier as it was fitted; with two classes (n,)."""
        self._check_is_fitted()
        return np.asarray(self.estimator_.decision_function(X), dtype=np.float64)

    @available_if(has_posterior)
    def predict_log_proba(self, X: Any) -> Floats:
        """(n, K) log posteriors for the original class shares, or the classes as fitted."""
        self._check_is_fitted()
        found = self._fitted_log_posterior(X)
        if not self.keep_probabilities:
            return found
        old, new = self.fitted_prior_, self.class_shares_
        return map_rows(lambda logs: reweighed(logs, old, new), found)

    @available_if(has_posterior)
    def predict_proba(self, X: Any) -> Floats:
        """(n, K) posteriors for the original class shares, or the classes as fitted."""
        return map_rows(np.exp, self.predict_log_proba(X))

    @property
    def prior_(self) -> Floats:
        """(K,) class priors of the posteriors."""
        self._check_is_fitted()
        return self.class_shares_ if self.keep_probabilities else self.fitted_prior_

    def __sklearn_tags__(self) -> Any:
        """Tags of the classifier."""
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.target_tags = inner.target_tags
        tags.classifier_tags = inner.classifier_tags
        return tags

    # --- inside -----------------------------------------------------------------------------------

    def _fitted_log_posterior(self, X: Any) -> Floats:
        return log_posterior_of(self.estimator_, X)

    def _set_state(self, model: Any, before: Floats, after: Floats) -> None:
        """Set the class shares before and after rebalancing from those of the fitted classifier.

        If the classifier declares the priors of its posteriors, these are corrected, whether they
        come from the rows or not. Priors that are an option of the classifier stay.
        """
        self.classes_ = np.asarray(model.classes_)
        stated = declared_prior(model, self.classes_)
        self.fitted_prior_ = after / after.sum() if stated is None else stated
        given = _has_prior_option(model)
        self.class_shares_ = self.fitted_prior_ if given else before / before.sum()
        self._copy_input_names(model)


def as_indexable(X: Any) -> Any:
    """Return rows that have a shape and can be indexed by row number."""
    if is_sparse(X):
        return canonical_rows(X) if X.ndim == 2 else X
    return X if hasattr(X, "shape") else np.asarray(X)


def encode_classes(X: Any, y: Any) -> tuple[Labels, Codes]:
    """Class labels, and the class code of each row; two classes or more."""
    if len(X.shape) != 2:
        raise ShapeError.not_two_dimensional(len(X.shape))
    if y is None:
        raise LabelError.absent("This model")
    labels, codes = encode_labels(y)
    rows = X.shape[0]
    if len(codes) != rows:
        raise ShapeError.of_lengths("y", len(codes), rows)
    if len(labels) < 2:
        raise LabelError.one_class(labels[0]) if rows else ShapeError.no_rows(rows)
    return labels, codes


def reject_sample_weight(model: Any, others: dict[str, Any]) -> None:
    """Raise if sample_weight is given, which resampling cannot use."""
    if others.pop("sample_weight", None) is not None:
        raise ResamplingError.of_sample_weight(type(model).__name__)
    if others:
        raise TypeError(f"{type(model).__name__}.fit() got an unexpected keyword: {list(others)}")


def check_positive_int(name: str, value: Any) -> None:
    """Raise OptionError unless value is a whole number, 1 or more."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < 1:
        raise OptionError.of(name, value, "a whole number, 1 or more")


def posterior_or_vote(model: Any, X: Any) -> Floats:
    """(n, K) posteriors; of a classifier without them, 1 for the predicted class."""
    if hasattr(model, "predict_proba") or hasattr(model, "predict_log_proba"):
        return np.asarray(np.exp(log_posterior_of(model, X)))
    chosen = np.asarray(model.predict(X))[:, None] == np.asarray(model.classes_)
    return np.asarray(chosen, dtype=np.float64)


def class_ranking(model: Any, X: Any) -> Floats:
    """(n, K) `decision_function`; with two classes its negative for the first.

    Scores of pairs of classes (one against one) are summed for each class.
    """
    found = np.asarray(model.decision_function(X), dtype=np.float64)
    if found.ndim == 1 or found.shape[1] == 1:
        return np.column_stack([-found.ravel(), found.ravel()])
    K = len(model.classes_)
    if found.shape[1] == K:
        return found
    total = np.zeros((len(found), K))
    for (i, j), said in zip(combinations(range(K), 2), found.T, strict=True):
        total[:, i] += said
        total[:, j] -= said
    return total


def safe_log(posterior: Floats) -> Floats:
    """(n, K) logs of probabilities; -inf for 0."""

    def logs(part: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return log_posterior(np.log(part))

    return map_rows(logs, posterior)


def _has_prior_option(model: Any) -> bool:
    """Whether an option of the classifier, or of the last step of a pipeline, sets its priors."""
    found = prior_option(final_estimator(model))
    return found is not None and found[1] is not None


def _ranks(self: Any) -> bool:
    """Whether there are votes or fitted values, but no posteriors."""
    return _votes(self) or not_probabilistic(self) is not None


def _votes(self: Any) -> bool:
    """Whether there are votes with a confidence, but no posteriors."""
    model = self.estimators_[0] if hasattr(self, "estimators_") else self.estimator
    likely = hasattr(model, "predict_proba") or hasattr(model, "predict_log_proba")
    return not likely and hasattr(model, "decision_function")


_SURE = 1e300  # scores are clipped to this, so that their means are finite


class EasyEnsemble(RebalancingClassifier):
    """Average of classifiers, each fitted to an undersample; probabilities stay calibrated.

    Each undersample has all rows of the rarest class and as many of every other class.

    Parameters
    ----------
    estimator : classifier
        Cloned and fitted to each undersample. One from moments (LDA, QDA, RDA, NearestMean, Fisher,
        LeastSquares) reads the rows once for all. One without probabilities votes, and
        `decision_function` breaks ties.
    subsets : int or 'divide', default 10
        Number of undersamples, drawn independently, so that some rows may be in none. 'divide':
        the rows of each frequent class are shuffled and divided into disjoint parts of the size of
        the rarest class, so that every row is used. Part sizes may differ by one row, and the
        fitted prior is the mean over parts.
    strategy : str, float or dict, default 'auto'
        Number of rows of each class in an undersample; see `Resampled`.
    keep_probabilities : bool, default True
        Whether probabilities are those of the original class shares; False: of the classes as
        fitted. Read when it is used; `predict` does not depend on it.
    random_state : int or RandomState, default 0
        Seed of the draws.

    Attributes
    ----------
    estimators_ : list
        The fitted classifiers.
    subset_rows_ : list of arrays
        Row numbers of each undersample.
    n_unused_ : int
        Number of rows in no undersample; 0 if they are divided.
    classes_ : array of shape (K,)
        Class labels, sorted.
    class_shares_, fitted_prior_ : arrays of shape (K,)
        Class priors of the original rows, and of the fit. Equal if the priors are an option of the
        classifier.
    n_features_in_, feature_names_in_
        As those of the classifier.

    See Also
    --------
    Resampled : A single under- or oversample.
    compare_imbalance : Compare strategies on held-out rows.

    Examples
    --------
    >>> from discriminant import LDA
    >>> rows, y = [[0.0], [1.0], [2.0], [0.5], [1.5], [1.0], [2.0], [3.0]], list("aaaaaabb")
    >>> model = EasyEnsemble(LDA(), subsets=20).fit(rows, y)
    >>> model.predict([[2.0]]).tolist(), len(model.subset_rows_[0])
    (['b'], 4)
    >>> model = EasyEnsemble(LDA(), "divide").fit(rows, y)  # six rows of 'a': three parts of two
    >>> [subset.tolist() for subset in model.subset_rows_], model.n_unused_
    ([[2, 5, 6, 7], [1, 3, 6, 7], [0, 4, 6, 7]], 0)
    """

    estimators_: list[Any]
    subset_rows_: list[RowNumbers]
    n_unused_: int

    def __init__(
        self,
        estimator: Any,
        subsets: Any = 10,
        *,
        strategy: Any = "auto",
        keep_probabilities: Any = True,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.subsets = subsets
        self.strategy = strategy
        self.keep_probabilities = keep_probabilities
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, **others: Any) -> Self:
        """Draw the undersamples of rows X with labels y, and fit a classifier to each."""
        require_classifier(self.estimator, "EasyEnsemble", "draws rows of each class")
        reject_sample_weight(self, others)
        X, y, weight = to_memory(X, y, None, "EasyEnsemble")
        if weight is not None:
            reject_sample_weight(self, {"sample_weight": weight})
        divide = isinstance(self.subsets, str) and self.subsets == "divide"
        if isinstance(self.subsets, str) and not divide:
            raise OptionError.of("subsets", self.subsets, "a whole number, 1 or more, or 'divide'")
        if not divide:
            check_positive_int("subsets", self.subsets)
        X = as_indexable(X)
        labels, codes = encode_classes(X, y)
        count = np.bincount(codes, minlength=len(labels))
        target = target_of(count, labels, self.strategy, "under")
        random = check_random_state(self.random_state)
        if divide:
            drawn = divided(codes, target, random)
        else:
            drawn = under_samples(codes, target, random, int(self.subsets))
        with merge_warnings():
            models = self._from_moments(X, y, drawn, target.drawn)
            if models is None:
                models = self._from_rows(X, codes, labels, drawn)
        self.estimators_, self.subset_rows_ = models, drawn
        self.n_unused_ = len(codes) - len(np.unique(np.concatenate(drawn)))
        fitted = training_shares(models[0], labels[codes[drawn[0]]], None, labels)
        self._set_state(models[0], count.astype(np.float64), fitted)
        if divide:
            self.fitted_prior_ = np.mean(
                [
                    _prior_of(model, labels[codes[rows]], labels)
                    for model, rows in zip(models, drawn, strict=True)
                ],
                axis=0,
            )
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the class with the largest mean posterior, as fitted, or with most votes."""
        self._check_is_fitted()
        scores = self._votes(X) if _votes(self) else self._mean_posterior(X)
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    @available_if(has_posterior)
    def predict_proba(self, X: Any) -> Floats:
        """(n, K) posteriors for the original class shares, or the classes as fitted."""
        self._check_is_fitted()
        found = self._mean_posterior(X)
        if self.keep_probabilities:
            found *= self.class_shares_ / self.fitted_prior_
            found /= found.sum(axis=1, keepdims=True)
        return found

    @available_if(_ranks)
    def decision_function(self, X: Any) -> Floats:
        """(n, K) votes with ties broken by confidence, or mean outputs that are not posteriors.

        With two classes (n,), second minus first.
        """
        self._check_is_fitted()
        scores = self._votes(X) if _votes(self) else self._mean_posterior(X)
        return scores if scores.shape[1] > 2 else np.asarray(scores[:, 1] - scores[:, 0])

    # --- inside -----------------------------------------------------------------------------------

    def _fitted_log_posterior(self, X: Any) -> Floats:
        return safe_log(self._mean_posterior(X))

    def _votes(self, X: Any) -> Floats:
        """(n, K) votes, plus less than half a vote for the mean confidence."""
        votes = sum(posterior_or_vote(model, X) for model in self.estimators_)
        each = [np.clip(class_ranking(model, X), -_SURE, _SURE) for model in self.estimators_]
        sure = np.mean(each, axis=0)
        return np.asarray(votes + sure / (3.0 * (np.abs(sure) + 1.0)))

    def _mean_posterior(self, X: Any) -> Floats:
        if (rule := self._linear_ensemble()) is not None:
            first = self.estimators_[0]
            return np.asarray(first._score_rows(rule.posterior, X))
        total = sum(posterior_or_vote(model, X) for model in self.estimators_)
        return np.asarray(total / len(self.estimators_))

    def _linear_ensemble(self) -> MeanRule | None:
        """All classifiers as one rule, if all are linear with posteriors of their scores."""
        plain = MomentClassifier.predict_log_proba
        if any(getattr(type(m), "predict_log_proba", None) is not plain for m in self.estimators_):
            return None
        rules = [model.rule_ for model in self.estimators_]
        return MeanRule.average(rules) if all(isinstance(r, LinearRule) for r in rules) else None

    def _from_rows(
        self, X: Any, codes: Codes, labels: Labels, drawn: list[RowNumbers]
    ) -> list[Any]:
        return [
            clone(self.estimator).fit(_safe_indexing(X, rows), labels[codes[rows]])
            for rows in drawn
        ]

    def _from_moments(
        self, X: Any, y: Any, drawn: list[RowNumbers], own: npt.NDArray[np.bool_]
    ) -> list[Any] | None:
        """Fit all classifiers in one pass; None if they need the rows themselves."""
        if not is_moment_based(self.estimator):
            return None
        table = as_table(X, y, name=type(self.estimator).__name__)
        detail = self.estimator.detail_for(min(map(len, drawn)), table.width)
        if detail == "rows":
            return None
        anchor = anchor_of(table)
        reading = MomentsReading(table.schema.labels, table.schema.features, anchor, detail)
        common, *parts = fold(table, SubsetsReading(reading, _disjoint(drawn, own, table))).parts
        wholes = [common + part for part in parts]
        if any(whole.strained().any() for whole in wholes):
            return None  # sums overflow or vanish: each under-sample is read in units of its own
        if any(self.estimator.needs_rows_for(whole) for whole in wholes):
            return None
        with blas_context(table.width):
            models = [clone(self.estimator).fit_moments(whole) for whole in wholes]
        for model in models:
            model._set_features(table.schema.features, table.schema.named)
        return models


def _prior_of(model: Any, y: Labels, labels: Labels) -> Floats:
    """(K,) class priors of the posteriors of one classifier."""
    stated = declared_prior(model, labels)
    return training_shares(model, y, None, labels) if stated is None else stated


def _disjoint(
    drawn: list[RowNumbers], own: npt.NDArray[np.bool_], table: Table
) -> tuple[RowNumbers, ...]:
    """Rows that all undersamples share, and then the other rows of each."""
    differ = own[table.codes]
    return (np.flatnonzero(~differ), *(rows[differ[rows]] for rows in drawn))


class Reweighted(RebalancingClassifier):
    """Fit a classifier with class weights; probabilities stay calibrated.

    Parameters
    ----------
    estimator : classifier
        A classifier whose fit accepts sample_weight; cloned and fitted.
    weights : {'balanced', 'inverse', 'effective'}, dict or array of shape (K,), default 'balanced'
        Weight of a row of each class. 'balanced': n / (K n_k), all classes count the same;
        'inverse': ~ 1 / n_k, with mean 1 over classes; 'effective': ~ (1 - beta) / (1 - beta^n_k),
        with mean 1 over classes (the class-balanced loss); {label: weight}, 1 if not named.
    beta : float, default 0.999
        Parameter of 'effective': 0 means no weights, towards 1 it becomes 'inverse'.
    keep_probabilities : bool, default True
        Whether probabilities are those of the original class shares; False: of the classes as
        fitted. Read when it is used; `predict` does not depend on it.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    weights_ : array of shape (K,)
        Weight of a row of each class.
    classes_ : array of shape (K,)
        Class labels, sorted.
    class_shares_, fitted_prior_ : arrays of shape (K,)
        Class priors of the original rows, and of the fit. Equal if the priors are an option of the
        classifier.
    n_features_in_, feature_names_in_
        As those of the classifier.

    See Also
    --------
    Resampled, EasyEnsemble : Resampling in place of weights.
    Decision : Costs after the fit.

    Examples
    --------
    >>> from discriminant import LDA
    >>> rows, y = [[0.0], [1.0], [2.0], [0.5], [1.5], [1.0], [2.0], [3.0]], list("aaaaaabb")
    >>> model = Reweighted(LDA()).fit(rows, y)
    >>> model.predict([[2.0]]).tolist(), model.predict_proba([[2.0]]).round(2).tolist()
    (['b'], [[0.56, 0.44]])
    """

    weights_: Floats

    def __init__(
        self,
        estimator: Any,
        weights: Any = "balanced",
        *,
        beta: Any = 0.999,
        keep_probabilities: Any = True,
    ) -> None:
        self.estimator = estimator
        self.weights = weights
        self.beta = beta
        self.keep_probabilities = keep_probabilities

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit a clone of the classifier, each row with the weight of its class times its own."""
        require_classifier(self.estimator, "Reweighted", "weights the classes")
        model = clone(self.estimator)
        if not has_fit_parameter(model, "sample_weight"):
            raise ClassWeightError.not_supported(type(model).__name__)
        found = as_partitioned(X, y, sample_weight)
        if found is not None:
            return self._fit_partitioned(model, found)
        X = as_indexable(X)
        labels, codes = encode_classes(X, y)
        weight = check_weight(sample_weight, len(codes))
        count = np.bincount(codes, weight, minlength=len(labels)).astype(np.float64)
        for k in np.flatnonzero(count == 0):
            raise WeightError.zero_class(labels[k])
        factor = class_weights(count, labels, self.weights, beta=self.beta)
        row = factor[codes] if weight is None else weight * factor[codes]
        model.fit(X, y, sample_weight=row)
        self.estimator_, self.weights_ = model, factor
        self._set_state(model, count, training_shares(model, labels[codes], row, labels))
        return self

    def _fit_partitioned(self, model: Any, rows: PartitionedTable) -> Self:
        count = rows.moments.weight
        for k in np.flatnonzero(count == 0):
            raise WeightError.zero_class(rows.schema.labels[k])
        factor = class_weights(count, rows.schema.labels, self.weights, beta=self.beta)
        model.fit(rows.reweight(factor))
        self.estimator_, self.weights_ = model, factor
        self._set_state(model, count, count * factor)
        return self

    def fit_moments(self, moments: ClassMoments) -> Self:
        """Fit from class moments, scaled by the class weights; no rows are needed."""
        model = _moment_clone(self.estimator)
        moments = drop_empty_classes(moments)
        factor = class_weights(moments.weight, moments.labels, self.weights, beta=self.beta)
        model.fit_moments(moments.scale(factor))
        self.estimator_, self.weights_ = model, factor
        self._set_state(model, moments.weight, moments.weight * factor)
        return self


class Resampled(RebalancingClassifier):
    """Fit a classifier to over- or undersampled rows, or with SMOTE; probabilities stay calibrated.

    Parameters
    ----------
    estimator : classifier
        Cloned and fitted.
    method : {'over', 'under', 'smote'}, default 'over'
        'under': drop rows of frequent classes; 'over': repeat rows of rare ones; 'smote': add
        synthetic rows on the segments between rows of a rare class and their neighbours.
    strategy : str, float or dict, default 'auto'
        'auto': equal numbers of rows; or, as in imbalanced-learn, 'minority', 'majority',
        'not minority', 'not majority', 'all'; a ratio in (0, 1] of rare to frequent rows, for two
        classes; or {label: rows}.
    neighbours : int, default 5
        Number of nearest rows of the same class for SMOTE.
    nominal : sequence of str or int, or None, default None
        Names or positions of the categorical columns, for SMOTE: their values are chosen by a vote
        of the neighbours. None: the columns of a data frame that are neither numbers nor booleans.
    expected : bool or None, default None
        True: instead of drawing, fit to the expected moments of the draws. None: do so if
        `estimator` is fitted from class moments (LDA, QDA, RDA, NearestMean, Fisher, LeastSquares;
        not with a shrinkage estimated from the rows, nor with fewer rows than columns). False:
        draw rows.
    keep_probabilities : bool, default True
        Whether probabilities are those of the original class shares; False: of the classes as
        fitted. Read when it is used; `predict` does not depend on it.
    random_state : int or RandomState, default 0
        Seed of the draws; with the same seed imbalanced-learn draws the same rows. Rows kept by
        'under' stay in their order, while imbalanced-learn sorts them by class.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    rows_ : array of shape (K,)
        Number of rows of each class after resampling.
    expected_ : bool
        Whether expected moments were used instead of a draw.
    classes_ : array of shape (K,)
        Class labels, sorted.
    class_shares_, fitted_prior_ : arrays of shape (K,)
        Class priors of the original rows, and of the fit. Equal if the priors are an option of the
        classifier.
    n_features_in_, feature_names_in_
        As those of the classifier.

    See Also
    --------
    EasyEnsemble : The mean over many undersamples.
    Reweighted : Weights in place of resampling.

    Examples
    --------
    >>> from discriminant import LDA
    >>> rows, y = [[0.0], [1.0], [2.0], [0.5], [1.5], [1.0], [2.0], [3.0]], list("aaaaaabb")
    >>> model = Resampled(LDA(), "smote", neighbours=1).fit(rows, y)
    >>> model.rows_.tolist(), model.predict([[2.0]]).tolist()
    ([6, 6], ['b'])
    """

    rows_: npt.NDArray[np.intp]
    expected_: bool

    def __init__(
        self,
        estimator: Any,
        method: Any = "over",
        *,
        strategy: Any = "auto",
        neighbours: Any = 5,
        nominal: Any = None,
        expected: Any = None,
        keep_probabilities: Any = True,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.strategy = strategy
        self.neighbours = neighbours
        self.nominal = nominal
        self.expected = expected
        self.keep_probabilities = keep_probabilities
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, **others: Any) -> Self:
        """Resample the rows and fit a clone of the classifier.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d), or partitioned table
            Rows; those of a partitioned table must fit into memory (for more there is
            `fit_moments(rows.moments)`).
        y : array of shape (n,)
            Class labels.

        Returns
        -------
        self
        """
        require_classifier(self.estimator, "Resampled", "draws rows of each class")
        reject_sample_weight(self, others)
        X, y, weight = to_memory(X, y, None, "Resampled")
        if weight is not None:
            reject_sample_weight(self, {"sample_weight": weight})
        X, labels, codes, target = self._open_rows(X, y)
        model, fitted = clone(self.estimator), target.wanted.astype(np.float64)
        self.expected_ = self._without_draw(model, X) and self._fit_expected(model, X, y, target)
        if not self.expected_:
            rows, drawn = self._draw(X, codes, labels, target)
            model.fit(rows, labels[drawn])
            fitted = training_shares(model, labels[drawn], None, labels)
        self.estimator_, self.rows_ = model, target.wanted
        self._set_state(model, np.bincount(codes).astype(np.float64), fitted)
        return self

    def fit_moments(self, moments: ClassMoments) -> Self:
        """Fit to the expected moments of resampled rows; not for SMOTE, which needs the rows.

        The rows of the moments must have had no weights.
        """
        model = _moment_clone(self.estimator)
        self._check_method()
        if self.method == "smote" or (self.expected is not None and not self.expected):
            name = "method" if self.method == "smote" else "expected"
            allowed = "another where there are moments alone; for rows there is fit(X, y)"
            raise OptionError.of(name, getattr(self, name), allowed)
        moments = drop_empty_classes(moments)
        target = target_of(moments.rows, moments.labels, self.strategy, self.method)
        model.fit_moments(drawn_in_the_mean(moments, target, self.method))
        self.estimator_, self.rows_, self.expected_ = model, target.wanted, True
        self._set_state(model, moments.weight, target.wanted.astype(np.float64))
        return self

    def resample(self, X: Any, y: Any) -> tuple[Any, npt.NDArray[Any]]:
        """Return the rows and labels that `fit` draws or synthesises; nothing is fitted."""
        X, labels, codes, target = self._open_rows(X, y)
        rows, codes = self._draw(X, codes, labels, target)
        return rows, np.asarray(labels[codes])

    # --- inside -----------------------------------------------------------------------------------

    def _open_rows(self, X: Any, y: Any) -> tuple[Any, Labels, Codes, Target]:
        """Rows, labels, codes, and the target number of rows of each class."""
        self._check_method()
        check_positive_int("neighbours", self.neighbours)
        X = as_indexable(X)
        labels, codes = encode_classes(X, y)
        count = np.bincount(codes, minlength=len(labels))
        return X, labels, codes, target_of(count, labels, self.strategy, self.method)

    def _check_method(self) -> None:
        if self.method not in ("under", "over", "smote"):
            raise OptionError.of("method", self.method, "'under', 'over' or 'smote'")

    def _without_draw(self, model: Any, X: Any) -> bool:
        """Whether expected moments replace a draw."""
        if self.expected is not None and not self.expected:
            return False
        able = is_moment_based(model)
        if able:  # the mean of third and fourth powers over draws is not worked out
            able = model.detail_for(*X.shape) in ("diagonal", "pooled", "class")
            able = able and (self.method != "smote" or self.nominal is None)
        if self.expected and not able:
            allowed = f"None or False: {type(model).__name__} needs rows for method={self.method!r}"
            raise OptionError.of("expected", True, allowed)
        return able

    def _draw(self, X: Any, codes: Codes, labels: Labels, target: Target) -> tuple[Any, Codes]:
        random = check_random_state(self.random_state)
        if self.method == "smote":
            made = SmoteTable.of(X, self.nominal)
            return made.oversample(codes, labels, target, int(self.neighbours), random)
        draw: Callable[..., Any] = under_sample if self.method == "under" else over_sample
        rows = draw(codes, target, random)
        return _safe_indexing(X, rows), codes[rows]

    def _fit_expected(self, model: Any, X: Any, y: Any, target: Target) -> bool:
        """Fit to the expected moments of draws, unless these are too inexact."""
        table = as_table(X, y, name=type(model).__name__)
        detail = model.detail_for(len(table), table.width)
        found = (self._with_synthetic if self.method == "smote" else self._expected_draw)(
            table, detail, target
        )
        if self.expected is None and model.needs_rows_for(found):
            return False
        model.fit_moments(found)
        model._set_features(table.schema.features, table.schema.named)
        return True

    def _expected_draw(self, table: Table, detail: Detail, target: Target) -> ClassMoments:
        """Expected moments of rows dropped or repeated at random."""
        share = scatter_shares(np.bincount(table.codes), target, self.method)
        if detail != "pooled" or not share.all():  # a class brought to one row keeps its mean
            found = read_moments(table, detail="class" if detail == "pooled" else detail)
            return drawn_in_the_mean(found, target, self.method).reduce(detail)
        weighed = replace(table, weight=share[table.codes])  # one scatter for all classes
        return with_rows(read_moments(weighed, detail=detail), target)

    def _with_synthetic(self, table: Table, detail: Detail, target: Target) -> ClassMoments:
        """Moments of the rows plus the expected moments of synthetic rows."""
        found = read_moments(table, detail=detail)
        whole, count = found, np.bincount(table.codes)
        for k in np.flatnonzero(target.wanted > count):
            rows = dense(table.features[np.flatnonzero(table.codes == k)])
            with one_blas_thread():
                near = neighbours_of(
                    rows,
                    int(self.neighbours),
                    table.schema.labels[k],
                    threads=available_threads(),
                )
            more = int(target.wanted[k] - count[k])
            offsets = found.anchor.offsets(rows)
            whole = whole + expected_moments(found, int(k), offsets, near, more)
        return whole


def _moment_clone(estimator: Any) -> Any:
    """Clone of a classifier that can be fitted from moments."""
    if not is_moment_based(estimator):
        allowed = "a classifier made from moments, such as LDA; for rows there is fit(X, y)"
        raise OptionError.of("estimator", type(estimator).__name__, allowed)
    return clone(estimator)
