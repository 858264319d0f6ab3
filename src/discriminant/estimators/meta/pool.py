"""Pool of classifiers: a weighted mean of their posteriors, with weights from held-out rows.

    P(k|x) = sum_m w_m P_m(k|x)

The weights maximise the likelihood of held-out labels (`posterior.pool_weights`). A pool is
rarely worse than the best of its classifiers, and often better, because the errors of different
models partly cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from discriminant.assessment.resampling.cross_validate import cross_validate
from discriminant.assessment.resampling.folds import fold_numbers
from discriminant.errors import LabelError, OptionError, PosteriorError, merge_warnings
from discriminant.estimators.base import (
    fit_with_weight,
    has_probabilities,
    require_classifier,
    to_memory,
)
from discriminant.estimators.meta.decision import log_posterior_of
from discriminant.estimators.meta.fusion import NamedClassifiers
from discriminant.posterior import not_probabilistic, pool_log_posteriors, pool_weights
from discriminant.table.blocks import Floats, Labels, check_weight
from discriminant.table.labels import encode_labels
from discriminant.table.memory import as_indexable


class Pool(NamedClassifiers):
    """Weighted mean of the posteriors of several classifiers, with weights from held-out rows.

    The weights are those that give held-out labels the largest likelihood. They are estimated
    from the posteriors of cross-validation, so a classifier that overfits gets a small weight.
    All classifiers are then fitted to all rows.

    Parameters
    ----------
    estimators : list of (name, classifier)
        The classifiers, which are cloned. A classifier whose outputs are not probabilities
        (LeastSquares, SVM) raises an error unless it is calibrated.
    weights : array of shape (M,) or None, default None
        Weights of the classifiers, in their order; they are divided by their sum. None means that
        they are estimated.
    folds : int, default 10
        Number of folds of the cross-validation that estimates the weights.
    random_state : int, default 0
        Seed of the folds.

    Attributes
    ----------
    estimators_ : list
        The classifiers, fitted to all rows.
    named_estimators_ : dict
        The fitted classifiers by name.
    weights_ : array of shape (M,)
        Weights of the classifiers; their sum is 1.
    held_out_log_loss_ : array of shape (M + 1,) or None
        Log loss of each classifier, and of the pool, on the held-out rows. The log loss of each
        fold is computed with weights from the other folds. None if `weights` were given.
    classes_ : array of shape (K,)
        Class labels, sorted.
    n_features_in_, feature_names_in_
        Those of the first classifier.

    See Also
    --------
    Fusion : Product of posteriors, for classifiers on different columns.
    EasyEnsemble : Mean of classifiers fitted to balanced undersamples.

    References
    ----------
    .. [1] Smyth & Wolpert (1999), Linearly combining density estimators via stacking.

    Examples
    --------
    >>> from discriminant import LDA, QDA
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> model = Pool([("lda", LDA()), ("qda", QDA())]).fit(X, y)
    >>> model.predict(X[:2]).tolist(), bool(model.weights_.sum().round(12) == 1)
    ([0, 0], True)
    """

    _fitted_attribute = "estimators_"
    classes_: Labels
    estimators_: list[Any]
    weights_: Floats
    held_out_log_loss_: Floats | None

    def __init__(
        self,
        estimators: Any,
        *,
        weights: Any = None,
        folds: int = 10,
        random_state: int = 0,
    ) -> None:
        self.estimators = estimators
        self.weights = weights
        self.folds = folds
        self.random_state = random_state

    @classmethod
    def of_fitted(cls, estimators: Sequence[tuple[str, Any]], weights: npt.ArrayLike) -> Self:
        """Return the pool of classifiers that are fitted already.

        Parameters
        ----------
        estimators : list of (name, fitted classifier)
            All must have the same classes.
        weights : array of shape (M,)
            Weights of the classifiers; they are divided by their sum.

        Returns
        -------
        Pool
        """
        pool = cls(list(estimators), weights=np.asarray(weights, dtype=np.float64).tolist())
        pairs = pool._named_classifiers()
        first = np.asarray(pairs[0][1].classes_)
        for name, model in pairs:
            if not np.array_equal(model.classes_, first):
                raise OptionError.of(
                    "estimators", name, f"a classifier of the classes {first.tolist()}"
                )
        pool._set_fitted([model for _, model in pairs], pool._given_weights(len(pairs)))
        return pool

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Estimate the weights by cross-validation, and fit each classifier to all rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Rows.
        y : array of shape (n,)
            Class labels.
        sample_weight : array of shape (n,), default None
            Weight of each row.

        Returns
        -------
        self
        """
        pairs = self._named_classifiers()
        for name, model in pairs:
            require_classifier(model, "Pool", "averages probabilities of classes")
            if not has_probabilities(model):
                raise PosteriorError.not_combined(name, type(model).__name__)
            if (clipped := not_probabilistic(model)) is not None:
                raise PosteriorError.not_combined(name, clipped, clipped=True)
        X, y, sample_weight = to_memory(X, y, sample_weight, "Pool")
        if y is None:
            raise LabelError.absent("Pool")
        weights = self._given_weights(len(pairs)) if self.weights is not None else None
        losses = None
        with merge_warnings():
            if weights is None:
                weights, losses = self._estimate_weights(X, y, sample_weight)
            models = [fit_with_weight(clone(model), X, y, sample_weight) for _, model in pairs]
        self._set_fitted(models, weights, losses)
        return self

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logs of the mean posteriors (n, K)."""
        self._check_is_fitted()
        logs = np.array([log_posterior_of(model, X) for model in self.estimators_])
        return pool_log_posteriors(logs, self.weights_)

    # --- inside -----------------------------------------------------------------------------------

    def _named_classifiers(self) -> list[tuple[str, Any]]:
        given = self._option("estimators")
        wanted = "a list of (name, classifier), each name once"
        try:
            pairs = [(str(name), model) for name, model in given]
        except (TypeError, ValueError):
            raise OptionError.of("estimators", given, wanted) from None
        if not pairs or len({name for name, _ in pairs}) < len(pairs):
            raise OptionError.of("estimators", given, wanted)
        return pairs

    def _given_weights(self, number: int) -> Floats:
        given = self._option("weights")
        wanted = f"{number} numbers, 0 or more, at least one of them positive"
        try:
            weights = np.array(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise OptionError.of("weights", given, wanted) from None
        valid = weights.shape == (number,) and np.isfinite(weights).all() and weights.min() >= 0
        if not valid or weights.sum() == 0:
            raise OptionError.of("weights", given, wanted)
        return np.asarray(weights / weights.sum())

    def _estimate_weights(self, X: Any, y: Any, sample_weight: Any) -> tuple[Floats, Floats]:
        X = as_indexable(X)
        labels, codes = encode_labels(y)
        if len(labels) < 2:
            raise LabelError.one_class(labels[0] if len(labels) else "none")
        folds = fold_numbers(self.folds, codes, seed=self.random_state, X=X)
        weight = check_weight(sample_weight, len(codes))
        rows = np.arange(len(codes))
        held_out = [
            cross_validate(model, X, y, folds, sample_weight=sample_weight)
            for _, model in self._named_classifiers()
        ]
        logs = np.column_stack([held.log_posterior[rows, codes] for held in held_out])
        return pool_weights(logs, weight), held_out_log_losses(logs, folds, weight)

    def _set_fitted(self, models: list[Any], weights: Floats, losses: Floats | None = None) -> None:
        self.estimators_, self.weights_ = models, weights
        self.held_out_log_loss_ = losses
        self.classes_ = np.asarray(models[0].classes_)
        self._copy_input_names(models[0])


def held_out_log_losses(
    log_posteriors: Floats, folds: npt.NDArray[Any], weight: Floats | None = None
) -> Floats:
    """Return the log loss (M + 1,) of each of M classifiers, and of their pool, on held-out rows.

    `log_posteriors` (N, M) are the log posteriors that each classifier gives to the true class of
    each held-out row. The rows of a fold are pooled with the weights estimated on the other folds.
    Rows to which every classifier gives probability 0 are left out: their class is missing in the
    training rows of the fold.
    """
    pooled = np.empty(len(log_posteriors))
    for fold in np.unique(folds):
        own = folds == fold
        others = pool_weights(log_posteriors[~own], None if weight is None else weight[~own])
        pooled[own] = pool_log_posteriors(log_posteriors[own].T[:, :, None], others)[:, 0]
    usable = np.isfinite(pooled)
    logs = np.column_stack([log_posteriors, pooled])[usable]
    return np.asarray(-np.average(logs, axis=0, weights=None if weight is None else weight[usable]))
