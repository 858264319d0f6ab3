"""Reweighted and Resampled: rare classes brought up for the fit, probabilities brought back.

`predict` decides as the weights ask, and `predict_proba` stays honest: `estimators.rebalanced`.
Resampling is done in `fit` alone: rows that are held out are never drawn, nor made up from.

What Reweighted, Resampled and EasyEnsemble share: decisions as fitted, honest probabilities.

A classifier fitted to weighed or resampled rows has posteriors of another population, one in which
the rare class is not rare. Bayes brings them back, with the class shares q of that population and
p of the rows as they came,

    P(k|x) ~ P_q(k|x) p_k / q_k

EasyEnsemble: many under-samples, a classifier for each, and their mean.

Liu, Wu and Zhou (2009). One under-sample of m of the n rows of a frequent class throws most of
them away; T of them, each drawn anew, see the share 1 - (1 - m/n)^T in the mean: of n = T m rows
more than a third are never used. Divided into n/m disjoint parts, every row is used once, as
lecture 5 has it ("divides negative samples into several smaller subsets").

Each under-sample has all rows of the rarest class and as many of every other; the posteriors of the
T classifiers are averaged, and where all are linear that is one product (`models.averaged`).

Moments add, so a classifier made from them reads the rows once for all T: what the under-samples
share is summed once, what they do not once for each, in the same pass (`imbalance.subsets`).
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
from discriminant.engines.engine import anchor_of, fold, read_moments
from discriminant.engines.local import available_threads, blas_context, map_rows, one_blas_thread
from discriminant.engines.partitioned import PartitionedTable
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
from discriminant.table.memory import Table, open_table, open_weight


def has_posterior(self: Any) -> bool:
    """Whether there are any: to bring posteriors back, the classifier must give probabilities."""
    model = getattr(self, "estimator_", self.estimator)
    if self.keep_probabilities and (name := not_probabilistic(model)) is not None:
        what = f"{type(self).__name__}(keep_probabilities=True).predict_proba"
        raise AttributeError(str(PosteriorError.not_probabilities(name, what)))
    return hasattr(model, "predict_proba") or hasattr(model, "predict_log_proba")


def _has_decision(self: Any) -> bool:
    return hasattr(getattr(self, "estimator_", self.estimator), "decision_function")


class RebalancingClassifier(ClassifierMixin, MetaEstimatorMixin, EstimatorMixin, BaseEstimator):
    """What all share: decisions as fitted, probabilities of the rows as they came."""

    _fitted_attribute = "classes_"
    estimator: Any
    keep_probabilities: Any
    estimator_: Any
    classes_: Labels
    fitted_prior_: Floats
    class_shares_: Floats

    # --- using ------------------------------------------------------------------------------------

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class that the classifier decides for, as it was fitted."""
        self._check_is_fitted()
        return np.asarray(self.estimator_.predict(X))

    @available_if(_has_decision)
    def decision_function(self, X: Any) -> Floats:
        """What the classifier decides by, as it was fitted: (n, K), with two classes (n,)."""
        self._check_is_fitted()
        return np.asarray(self.estimator_.decision_function(X), dtype=np.float64)

    @available_if(has_posterior)
    def predict_log_proba(self, X: Any) -> Floats:
        """(n, K) log posteriors: of the rows as they came, or with the classes as fitted."""
        self._check_is_fitted()
        found = self._fitted_log_posterior(X)
        if not self.keep_probabilities:
            return found
        old, new = self.fitted_prior_, self.class_shares_
        return map_rows(lambda logs: reweighed(logs, old, new), found)

    @available_if(has_posterior)
    def predict_proba(self, X: Any) -> Floats:
        """(n, K) posteriors: of the rows as they came, or with the classes as fitted."""
        return map_rows(np.exp, self.predict_log_proba(X))

    @property
    def prior_(self) -> Floats:
        """(K,) the priors that the posteriors are under."""
        self._check_is_fitted()
        return self.class_shares_ if self.keep_probabilities else self.fitted_prior_

    def __sklearn_tags__(self) -> Any:
        """Whatever rows the classifier takes."""
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.target_tags = inner.target_tags
        tags.classifier_tags = inner.classifier_tags
        return tags

    # --- inside -----------------------------------------------------------------------------------

    def _fitted_log_posterior(self, X: Any) -> Floats:
        return log_posterior_of(self.estimator_, X)

    def _hold(self, model: Any, before: Floats, after: Floats) -> None:
        """Keep a fitted classifier, and the weight of each class as it came and as it was fitted.

        Where the classifier states the priors that its posteriors are under, these are what is
        brought back, whether they come from the rows or not. Priors of the user stay.
        """
        self.classes_ = np.asarray(model.classes_)
        stated = declared_prior(model, self.classes_)
        self.fitted_prior_ = after / after.sum() if stated is None else stated
        given = _says_prior(model)
        self.class_shares_ = self.fitted_prior_ if given else before / before.sum()
        self._copy_input_names(model)


def as_indexable(X: Any) -> Any:
    """Rows whose number is known and that can be taken by their numbers."""
    if is_sparse(X):
        return canonical_rows(X) if X.ndim == 2 else X
    return X if hasattr(X, "shape") else np.asarray(X)


def encode_classes(X: Any, y: Any) -> tuple[Labels, Codes]:
    """Labels and codes of rows, of which there must be as many, of two classes or more."""
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
    """Refuse sample_weight, which drawing rows has no use for, by name."""
    if others.pop("sample_weight", None) is not None:
        raise ResamplingError.of_sample_weight(type(model).__name__)
    if others:
        raise TypeError(f"{type(model).__name__}.fit() got an unexpected keyword: {list(others)}")


def check_positive_int(name: str, value: Any) -> None:
    """Refuse what is no whole number of 1 or more."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < 1:
        raise OptionError.of(name, value, "a whole number, 1 or more")


def posterior_or_vote(model: Any, X: Any) -> Floats:
    """(n, K) posteriors; of a classifier without them, one for the class that it says."""
    if hasattr(model, "predict_proba") or hasattr(model, "predict_log_proba"):
        return np.asarray(np.exp(log_posterior_of(model, X)))
    chosen = np.asarray(model.predict(X))[:, None] == np.asarray(model.classes_)
    return np.asarray(chosen, dtype=np.float64)


def class_ranking(model: Any, X: Any) -> Floats:
    """(n, K) `decision_function`, of two classes with its negative for the first.

    Of pairs of classes (one against one) it is the sum of what they say for each class.
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
    """(n, K) logs of probabilities; of 0 it is -inf."""

    def logs(part: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return log_posterior(np.log(part))

    return map_rows(logs, posterior)


def _says_prior(model: Any) -> bool:
    """Whether an option of the classifier, or of the one it ends in, sets its priors."""
    found = prior_option(final_estimator(model))
    return found is not None and found[1] is not None


def _ranks(self: Any) -> bool:
    """Whether there are no posteriors, but votes or fitted values that rank the rows."""
    return _votes(self) or not_probabilistic(self) is not None


def _votes(self: Any) -> bool:
    """Whether there are no posteriors, but something that says how sure a vote is."""
    model = self.estimators_[0] if hasattr(self, "estimators_") else self.estimator
    likely = hasattr(model, "predict_proba") or hasattr(model, "predict_log_proba")
    return not likely and hasattr(model, "decision_function")


_SURE = 1e300  # scores beyond it are bounded, so that means of them are finite


class EasyEnsemble(RebalancingClassifier):
    """The mean of classifiers fitted to under-samples; probabilities stay honest.

    Parameters
    ----------
    estimator
        Any classifier; cloned and fitted to each under-sample. One made from moments (LDA, QDA,
        RDA, NearestMean, Fisher, LeastSquares) reads the rows once for all. One without
        probabilities votes, and `decision_function` breaks ties.
    subsets
        How many under-samples, each drawn anew; some rows are then in none of them. Or 'divide':
        the rows of each frequent class are shuffled and divided into disjoint parts of the size
        of the rarest class, so that every row is used. Parts are as equal as can be: where the
        sizes do not divide they differ by one row, and the fitted prior is the mean over parts.
    strategy
        How many rows of each class they have; see `Resampled`.
    keep_probabilities
        As in `Reweighted`.
    random_state
        Seed of the draws.

    Attributes
    ----------
    estimators_
        The fitted classifiers.
    subset_rows_
        The numbers of the rows of each under-sample.
    n_unused_
        How many rows are in no under-sample; 0 if they are divided.
    class_shares_, fitted_prior_
        (K,) priors of the rows as they came, and of the under-samples; see `Reweighted`.

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
        """Draw the under-samples and fit a classifier to each; rows have no weights."""
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
        self._hold(models[0], count.astype(np.float64), fitted)
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
        """The class of the largest mean posterior, as fitted, or of most votes."""
        self._check_is_fitted()
        scores = self._votes(X) if _votes(self) else self._mean_posterior(X)
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    @available_if(has_posterior)
    def predict_proba(self, X: Any) -> Floats:
        """(n, K) posteriors: of the rows as they came, or with the classes as fitted."""
        self._check_is_fitted()
        found = self._mean_posterior(X)
        if self.keep_probabilities:
            found *= self.class_shares_ / self.fitted_prior_
            found /= found.sum(axis=1, keepdims=True)
        return found

    @available_if(_ranks)
    def decision_function(self, X: Any) -> Floats:
        """Votes, ties broken by how sure they are, or the mean of outputs that are no posteriors.

        (n, K), with two classes (n,), second less first.
        """
        self._check_is_fitted()
        scores = self._votes(X) if _votes(self) else self._mean_posterior(X)
        return scores if scores.shape[1] > 2 else np.asarray(scores[:, 1] - scores[:, 0])

    # --- inside -----------------------------------------------------------------------------------

    def _fitted_log_posterior(self, X: Any) -> Floats:
        return safe_log(self._mean_posterior(X))

    def _votes(self, X: Any) -> Floats:
        """(n, K) votes, and less than half of one by the mean of what decides them."""
        votes = sum(posterior_or_vote(model, X) for model in self.estimators_)
        each = [np.clip(class_ranking(model, X), -_SURE, _SURE) for model in self.estimators_]
        sure = np.mean(each, axis=0)
        return np.asarray(votes + sure / (3.0 * (np.abs(sure) + 1.0)))

    def _mean_posterior(self, X: Any) -> Floats:
        if (rule := self._one_product()) is not None:
            first = self.estimators_[0]
            return np.asarray(first._score_rows(rule.posterior, X))
        total = sum(posterior_or_vote(model, X) for model in self.estimators_)
        return np.asarray(total / len(self.estimators_))

    def _one_product(self) -> MeanRule | None:
        """All members as one, where each is a linear rule and its posterior that of its scores."""
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
        """The classifiers from one reading; None where they need the rows themselves."""
        if not is_moment_based(self.estimator):
            return None
        table = open_table(X, y, name=type(self.estimator).__name__)
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
    """(K,) the priors that a member's posteriors are under."""
    stated = declared_prior(model, labels)
    return training_shares(model, y, None, labels) if stated is None else stated


def _disjoint(
    drawn: list[RowNumbers], own: npt.NDArray[np.bool_], table: Table
) -> tuple[RowNumbers, ...]:
    """The rows that all under-samples share, and then those of each that they do not."""
    differ = own[table.codes]
    return (np.flatnonzero(~differ), *(rows[differ[rows]] for rows in drawn))


class Reweighted(RebalancingClassifier):
    """Weigh classes for the fit, so that a rare one counts; probabilities stay honest.

    Parameters
    ----------
    estimator
        A classifier whose fit takes sample_weight; cloned and fitted.
    weights
        'balanced', n / (K n_k): all classes weigh the same; 'inverse', ~ 1 / n_k, with mean 1 over
        classes; 'effective', ~ (1 - beta) / (1 - beta^n_k), with mean 1 over classes: the
        class-balanced loss; {label: weight}, 1 where not named; or (K,) weights.
    beta
        Of 'effective': 0 is no weights, towards 1 it becomes 'inverse'.
    keep_probabilities
        Whether probabilities are those of the rows as they came. False: those of a population with
        the weighed classes. Read when it is used; `predict` does not depend on it.

    Attributes
    ----------
    estimator_
        The fitted classifier.
    weights_
        (K,) weight of a row of each class.
    class_shares_, fitted_prior_
        (K,) priors of the rows as they came, and as weighed. The same where the priors are an
        option of the classifier and do not come from the rows.

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
        """Fit a clone of the classifier to the rows, each with the weight of its class."""
        require_classifier(self.estimator, "Reweighted", "weights the classes")
        model = clone(self.estimator)
        if not has_fit_parameter(model, "sample_weight"):
            raise ClassWeightError.not_supported(type(model).__name__)
        found = as_partitioned(X, y, sample_weight)
        if found is not None:
            return self._fit_parted(model, found)
        X = as_indexable(X)
        labels, codes = encode_classes(X, y)
        weight = open_weight(sample_weight, len(codes))
        count = np.bincount(codes, weight, minlength=len(labels)).astype(np.float64)
        for k in np.flatnonzero(count == 0):
            raise WeightError.zero_class(labels[k])
        factor = class_weights(count, labels, self.weights, beta=self.beta)
        row = factor[codes] if weight is None else weight * factor[codes]
        model.fit(X, y, sample_weight=row)
        self.estimator_, self.weights_ = model, factor
        self._hold(model, count, training_shares(model, labels[codes], row, labels))
        return self

    def _fit_parted(self, model: Any, rows: PartitionedTable) -> Self:
        count = rows.moments.weight
        for k in np.flatnonzero(count == 0):
            raise WeightError.zero_class(rows.schema.labels[k])
        factor = class_weights(count, rows.schema.labels, self.weights, beta=self.beta)
        model.fit(rows.reweight(factor))
        self.estimator_, self.weights_ = model, factor
        self._hold(model, count, count * factor)
        return self

    def fit_moments(self, moments: ClassMoments) -> Self:
        """Fit from moments, of which each class is scaled; no rows are needed."""
        model = _moment_clone(self.estimator)
        moments = drop_empty_classes(moments)
        factor = class_weights(moments.weight, moments.labels, self.weights, beta=self.beta)
        model.fit_moments(moments.scale(factor))
        self.estimator_, self.weights_ = model, factor
        self._hold(model, moments.weight, moments.weight * factor)
        return self


class Resampled(RebalancingClassifier):
    """Draw rows of each class for the fit, or make some up; probabilities stay honest.

    Parameters
    ----------
    estimator
        A classifier; cloned and fitted.
    method
        'under': drop rows of frequent classes; 'over': repeat rows of rare ones; 'smote': make up
        rows on the segments between rows of a rare class and their neighbours.
    strategy
        'auto': equal numbers of rows; or, as in imbalanced-learn, 'minority', 'majority',
        'not minority', 'not majority', 'all'; a ratio in (0, 1] of rare to frequent rows, for two
        classes; or {label: rows}.
    neighbours
        Of SMOTE: how many of the nearest rows of the same class a row may be joined to.
    nominal
        Names or places of the columns that are categories, for SMOTE: they are voted on. None:
        the columns of a data frame that are neither numbers nor booleans.
    expected
        True: no draw, but a fit to the moments that draws have in the mean, which are known:
        weight, mean and scatter of each class. None: so where `estimator` is made from these
        (LDA, QDA, RDA, NearestMean, Fisher, LeastSquares; not with a shrinkage that is found from
        the rows, nor with fewer rows than columns), and as `expected_` says. False: draw.
    keep_probabilities
        As in `Reweighted`.
    random_state
        Seed of the draws; of one seed rows are those that imbalanced-learn draws. Rows kept by
        'under' stay in their order, while imbalanced-learn sorts them by class.

    Attributes
    ----------
    estimator_
        The fitted classifier.
    rows_
        (K,) rows of each class after resampling.
    expected_
        Whether there was no draw.
    class_shares_, fitted_prior_
        (K,) priors of the rows as they came, and as resampled; see `Reweighted`.

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
        """Resample, and fit a clone of the classifier to what there is then; rows have no weights.

        What is not drawn is fitted as `expected` says. Rows in parts must be few; of many there is
        `fit_moments(rows.moments)`.
        """
        require_classifier(self.estimator, "Resampled", "draws rows of each class")
        reject_sample_weight(self, others)
        X, y, weight = to_memory(X, y, None, "Resampled")
        if weight is not None:
            reject_sample_weight(self, {"sample_weight": weight})
        X, labels, codes, target = self._asked(X, y)
        model, fitted = clone(self.estimator), target.wanted.astype(np.float64)
        self.expected_ = self._without_draw(model, X) and self._fit_expected(model, X, y, target)
        if not self.expected_:
            rows, drawn = self._draw(X, codes, labels, target)
            model.fit(rows, labels[drawn])
            fitted = training_shares(model, labels[drawn], None, labels)
        self.estimator_, self.rows_ = model, target.wanted
        self._hold(model, np.bincount(codes).astype(np.float64), fitted)
        return self

    def fit_moments(self, moments: ClassMoments) -> Self:
        """Fit to what draws from the rows of these moments have for moments in the mean.

        Rows must have had no weights; SMOTE, which needs to know who is near whom, has its own.
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
        self._hold(model, moments.weight, target.wanted.astype(np.float64))
        return self

    def resample(self, X: Any, y: Any) -> tuple[Any, npt.NDArray[Any]]:
        """Rows and labels as they are drawn or made up for a fit; nothing is fitted."""
        X, labels, codes, target = self._asked(X, y)
        rows, codes = self._draw(X, codes, labels, target)
        return rows, np.asarray(labels[codes])

    # --- inside -----------------------------------------------------------------------------------

    def _asked(self, X: Any, y: Any) -> tuple[Any, Labels, Codes, Target]:
        """Rows, labels, codes, and how many rows of each class there shall be."""
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
        """Whether moments take the place of draws."""
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
        """Fit to the moments of draws in the mean, unless these have too few digits."""
        table = open_table(X, y, name=type(model).__name__)
        detail = model.detail_for(len(table), table.width)
        found = (self._with_synthetic if self.method == "smote" else self._kept)(
            table, detail, target
        )
        if self.expected is None and model.needs_rows_for(found):
            return False
        model.fit_moments(found)
        model._set_features(table.schema.features, table.schema.named)
        return True

    def _kept(self, table: Table, detail: Detail, target: Target) -> ClassMoments:
        """Mean moments of rows dropped or repeated at random."""
        share = scatter_shares(np.bincount(table.codes), target, self.method)
        if detail != "pooled" or not share.all():  # a class brought to one row keeps its mean
            found = read_moments(table, detail="class" if detail == "pooled" else detail)
            return drawn_in_the_mean(found, target, self.method).reduce(detail)
        weighed = replace(table, weight=share[table.codes])  # one scatter for all classes
        return with_rows(read_moments(weighed, detail=detail), target)

    def _with_synthetic(self, table: Table, detail: Detail, target: Target) -> ClassMoments:
        """Moments of the rows, with those that synthetic rows have in the mean."""
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
    """A clone of a classifier made from moments."""
    if not is_moment_based(estimator):
        allowed = "a classifier made from moments, such as LDA; for rows there is fit(X, y)"
        raise OptionError.of("estimator", type(estimator).__name__, allowed)
    return clone(estimator)
