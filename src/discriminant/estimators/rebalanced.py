"""What Reweighted, Resampled and EasyEnsemble share: decisions as fitted, honest probabilities.

A classifier fitted to weighed or resampled rows has posteriors of another population, one in which
the rare class is not rare. Bayes brings them back, with the class shares q of that population and
p of the rows as they came,

    P(k|x) ~ P_q(k|x) p_k / q_k
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

from discriminant.assessment.refit import given_prior
from discriminant.engines.local import map_rows
from discriminant.errors import (
    LabelError,
    OptionError,
    PosteriorError,
    ResamplingError,
    ShapeError,
)
from discriminant.estimators.available import only_if
from discriminant.estimators.posteriors import inmost, log_posterior_of, stated_prior
from discriminant.estimators.saving import Saving
from discriminant.posterior import log_posterior, not_probabilistic, reweighed
from discriminant.table.labels import encode_labels
from discriminant.table.schema import Codes, Floats, Labels, canonical_rows, is_sparse


def has_posterior(self: Any) -> bool:
    """Whether there are any: to bring posteriors back, the classifier must give probabilities."""
    model = getattr(self, "estimator_", self.estimator)
    if self.keep_probabilities and (name := not_probabilistic(model)) is not None:
        what = f"{type(self).__name__}(keep_probabilities=True).predict_proba"
        raise AttributeError(str(PosteriorError.not_probabilities(name, what)))
    return hasattr(model, "predict_proba") or hasattr(model, "predict_log_proba")


def _has_decision(self: Any) -> bool:
    return hasattr(getattr(self, "estimator_", self.estimator), "decision_function")


class Rebalanced(ClassifierMixin, MetaEstimatorMixin, Saving, BaseEstimator):
    """What all share: decisions as fitted, probabilities of the rows as they came."""

    estimator: Any
    keep_probabilities: Any
    estimator_: Any
    classes_: Labels
    fitted_prior_: Floats
    class_shares_: Floats

    # --- using ------------------------------------------------------------------------------------

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class that the classifier decides for, as it was fitted."""
        self._need_fit()
        return np.asarray(self.estimator_.predict(X))

    @only_if(_has_decision)
    def decision_function(self, X: Any) -> Floats:
        """What the classifier decides by, as it was fitted: (n, K), with two classes (n,)."""
        self._need_fit()
        return np.asarray(self.estimator_.decision_function(X), dtype=np.float64)

    @only_if(has_posterior)
    def predict_log_proba(self, X: Any) -> Floats:
        """(n, K) log posteriors: of the rows as they came, or with the classes as fitted."""
        self._need_fit()
        found = self._fitted_log_posterior(X)
        if not self.keep_probabilities:
            return found
        old, new = self.fitted_prior_, self.class_shares_
        return map_rows(lambda logs: reweighed(logs, old, new), found)

    @only_if(has_posterior)
    def predict_proba(self, X: Any) -> Floats:
        """(n, K) posteriors: of the rows as they came, or with the classes as fitted."""
        return map_rows(np.exp, self.predict_log_proba(X))

    @property
    def prior_(self) -> Floats:
        """(K,) the priors that the posteriors are under."""
        self._need_fit()
        return self.class_shares_ if self.keep_probabilities else self.fitted_prior_

    def __sklearn_is_fitted__(self) -> bool:
        """Whether rows or moments have been seen."""
        return hasattr(self, "classes_")

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

    def _need_fit(self) -> None:
        if not hasattr(self, "classes_"):
            name = self.__class__.__name__
            raise NotFittedError(f"This {name} instance is not fitted yet: call fit first.")

    def _hold(self, model: Any, before: Floats, after: Floats) -> None:
        """Keep a fitted classifier, and the weight of each class as it came and as it was fitted.

        Where the classifier states the priors that its posteriors are under, these are what is
        brought back, whether they come from the rows or not. Priors of the user stay.
        """
        self.classes_ = np.asarray(model.classes_)
        stated = stated_prior(model, self.classes_)
        self.fitted_prior_ = after / after.sum() if stated is None else stated
        given = _says_prior(model)
        self.class_shares_ = self.fitted_prior_ if given else before / before.sum()
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
            elif hasattr(self, name):
                delattr(self, name)


def arrayed(X: Any) -> Any:
    """Rows whose number is known and that can be taken by their numbers."""
    if is_sparse(X):
        return canonical_rows(X) if X.ndim == 2 else X
    return X if hasattr(X, "shape") else np.asarray(X)


def classes_of(X: Any, y: Any) -> tuple[Labels, Codes]:
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


def no_weights(model: Any, others: dict[str, Any]) -> None:
    """Refuse sample_weight, which drawing rows has no use for, by name."""
    if others.pop("sample_weight", None) is not None:
        raise ResamplingError.of_sample_weight(type(model).__name__)
    if others:
        raise TypeError(f"{type(model).__name__}.fit() got an unexpected keyword: {list(others)}")


def whole_number(name: str, value: Any) -> None:
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


def ranking_of(model: Any, X: Any) -> Floats:
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


def log_of(posterior: Floats) -> Floats:
    """(n, K) logs of probabilities; of 0 it is -inf."""

    def logs(part: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return log_posterior(np.log(part))

    return map_rows(logs, posterior)


def _says_prior(model: Any) -> bool:
    """Whether an option of the classifier, or of the one it ends in, sets its priors."""
    found = given_prior(inmost(model))
    return found is not None and found[1] is not None
