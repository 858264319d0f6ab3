"""What Reweighted, Resampled and EasyEnsemble share: decisions as fitted, honest probabilities.

A classifier fitted to weighed or resampled rows has posteriors of another population, one in which
the rare class is not rare. Bayes brings them back, with the class shares q of that population and
p of the rows as they came,

    P(k|x) ~ P_q(k|x) p_k / q_k
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from discriminant.errors import LabelError, OptionError, ShapeError
from discriminant.estimators.posteriors import log_posterior_of, stated_prior
from discriminant.estimators.saving import Saving
from discriminant.posterior import log_posterior, reweighed
from discriminant.table.labels import encode_labels
from discriminant.table.schema import Codes, Floats, Labels, is_sparse

_GIVEN = ("prior", "priors", "class_prior")  # options that say the priors, whatever the rows are


def _has_posterior(self: Any) -> bool:
    model = getattr(self, "estimator_", self.estimator)
    return hasattr(model, "predict_proba") or hasattr(model, "predict_log_proba")


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

    @available_if(_has_posterior)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Floats:
        """(n, K) log posteriors: of the rows as they came, or with the classes as fitted."""
        self._need_fit()
        found = self._fitted_log_posterior(X)
        if not self.keep_probabilities:
            return found
        return reweighed(found, self.fitted_prior_, self.class_shares_)

    @available_if(_has_posterior)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """(n, K) posteriors: of the rows as they came, or with the classes as fitted."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

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

        Priors that do not come from the rows are those of the user, and stay.
        """
        self.classes_ = np.asarray(model.classes_)
        shares, fitted = before / before.sum(), after / after.sum()
        stated = stated_prior(model, self.classes_)
        if _says_prior(model) or (stated is not None and np.abs(stated - fitted).max() > 1e-6):
            shares = fitted = fitted if stated is None else stated
        self.class_shares_, self.fitted_prior_ = shares, fitted
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
            elif hasattr(self, name):
                delattr(self, name)


def arrayed(X: Any) -> Any:
    """Rows whose number is known and that can be taken by their numbers."""
    if is_sparse(X):
        return X.tocsr()
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


def made_from_moments(model: Any) -> bool:
    """Whether a classifier is a function of class moments, with the options that it has."""
    return hasattr(model, "rule_from") and not getattr(model, "needs_rows", False)


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


def log_of(posterior: Floats) -> Floats:
    """(n, K) logs of probabilities; of 0 it is -inf."""
    with np.errstate(divide="ignore"):
        return log_posterior(np.log(posterior))


def _says_prior(model: Any) -> bool:
    """Whether an option of the classifier, or of the one it ends in, sets its priors."""
    inner = model.steps[-1][1] if hasattr(model, "steps") else model
    options = inner.get_params(deep=False) if hasattr(inner, "get_params") else {}
    return any(options.get(name) is not None for name in _GIVEN)
