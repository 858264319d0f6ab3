"""Logit adjustment for imbalanced classes: decisions in favour of rare classes, after the fit.

With the posterior P(k|x) of any classifier and the class shares p of the rows of its fit (Menon,
Jayasumana, Rawat, Jain, Veit and Kumar 2021),

    decision(x) = argmax_k  log P(k|x) - tau log p_k

tau = 0 decides by the posterior and minimises the error. tau = 1 decides by the likelihood p(x|k),
as if all classes were equally frequent, and minimises the mean of the errors of the classes. The
classifier is not refitted, and its posterior stays available.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from discriminant.assessment.resampling.folds import estimator_with_class_order, fold_numbers
from discriminant.errors import LabelError, OptionError, PosteriorError, TooFewRowsError
from discriminant.estimators.base import (
    available_if,
    fit_with_weight,
    has_probabilities,
    partitioned_or_none,
    require_classifier,
    second_minus_first,
    to_memory,
)
from discriminant.estimators.meta.decision import assumed_prior, declared_prior, log_posterior_of
from discriminant.estimators.meta.resampling import (
    RebalancingClassifier,
    has_posterior,
)
from discriminant.posterior import log_posterior, not_probabilistic
from discriminant.table.blocks import Floats
from discriminant.table.labels import declared_order
from discriminant.table.memory import as_indexable, check_weight, encode_classes

_FOLDS = 5
CANDIDATES = np.linspace(0.0, 2.0, 41)  # of tau='auto'


class LogitAdjusted(RebalancingClassifier):
    """Predict the class with the largest posterior divided by its class share to the power tau.

        predict(x) = argmax_k  log P(k|x) - tau log p_k

    Parameters
    ----------
    estimator : classifier
        Classifier with probabilities. The classifier is cloned and fitted to the rows as they are.
    tau : float or 'auto', default 1.0
        Strength of the adjustment, 0 or more. 0: predict the most probable class. 1: predict as if
        all classes were equally frequent. 'auto': the value from 0 to 2 with the smallest balanced
        error in five-fold cross-validation.
    random_state : int, default 0
        Seed of the folds of 'auto'.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    tau_ : float
        Strength of the adjustment.
    class_shares_, fitted_prior_ : arrays of shape (K,)
        Class priors of the posterior, and those that the predictions assume: proportional to the
        class shares to the power 1 - tau.

    See Also
    --------
    Decision : Costs and thresholds in place of tau.
    Reweighted : Weights during the fit.

    References
    ----------
    Menon, Jayasumana, Rawat, Jain, Veit and Kumar (2021). Long-tail learning via logit adjustment.
    International Conference on Learning Representations.

    Examples
    --------
    >>> from discriminant import LDA
    >>> rows, y = [[0.0], [1.0], [2.0], [0.5], [1.5], [1.0], [2.0], [3.0]], list("aaaaaabb")
    >>> model = LogitAdjusted(LDA()).fit(rows, y)
    >>> model.predict([[2.0]]).tolist(), model.predict_proba([[2.0]]).round(2).tolist()
    (['b'], [[0.59, 0.41]])
    """

    tau_: float

    def __init__(
        self,
        estimator: Any,
        tau: Any = 1.0,
        *,
        keep_probabilities: Any = True,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.tau = tau
        self.keep_probabilities = keep_probabilities
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit a clone of the classifier; with tau='auto', cross-validate it first.

        Parameters
        ----------
        X, y, sample_weight
            Rows, labels and weights, as the classifier accepts them; or a partitioned table alone.

        Returns
        -------
        self
        """
        require_classifier(self.estimator, "LogitAdjusted", "adjusts posteriors of classes")
        if not has_probabilities(self.estimator):
            raise PosteriorError.absent(type(self.estimator).__name__)
        if (name := not_probabilistic(self.estimator)) is not None:
            raise PosteriorError.not_probabilities(name, "LogitAdjusted")
        choose = isinstance(self.tau, str)
        number = isinstance(self.tau, int | float | np.number) and not isinstance(self.tau, bool)
        if (choose and self.tau != "auto") or (
            not choose and not (number and 0.0 <= self.tau < np.inf)
        ):
            raise OptionError.of("tau", self.tau, "a number, 0 or more, or 'auto'")
        model, tau = clone(self.estimator), None if choose else float(self.tau)
        if choose:
            X, y, sample_weight = to_memory(X, y, sample_weight, "LogitAdjusted(tau='auto')")
        table = partitioned_or_none(X, y, sample_weight)
        if table is not None:
            model.fit(table)
            labels = np.asarray(model.classes_)
            total = table.moments.weight
            declared = declared_prior(model, labels)
            shares = total / total.sum() if declared is None else declared
        else:
            X = as_indexable(X)
            if y is None:
                raise LabelError.absent("LogitAdjusted")
            if tau is None:
                tau = self._choose_tau(X, y, sample_weight)
            fit_with_weight(model, X, y, sample_weight)
            shares = assumed_prior(model, y, sample_weight, np.asarray(model.classes_))
        assert tau is not None
        self.estimator_, self.tau_ = model, tau
        self.classes_ = np.asarray(model.classes_)
        self.class_shares_ = shares
        self.fitted_prior_ = np.exp(log_posterior((1.0 - tau) * np.log(shares)[None, :])[0])
        self._copy_input_names(model)
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the class with the largest adjusted posterior."""
        self._check_is_fitted()
        return np.asarray(self.classes_[self._fitted_log_posterior(X).argmax(axis=1)])

    @available_if(has_posterior)
    def decision_function(self, X: Any) -> Floats:
        """Return adjusted log posteriors (n, K), or for two classes their difference (n,)."""
        self._check_is_fitted()
        return second_minus_first(self._fitted_log_posterior(X))

    # --- inside -----------------------------------------------------------------------------------

    def _fitted_log_posterior(self, X: Any) -> Floats:
        return adjusted_log_posterior(
            log_posterior_of(self.estimator_, X), self.class_shares_, self.tau_
        )

    def _choose_tau(self, X: Any, y: Any, sample_weight: Any) -> float:
        """Return the tau with the smallest held-out balanced error; among ties the smallest."""
        from sklearn.utils import _safe_indexing

        labels, codes = encode_classes(X, y)
        weight = check_weight(sample_weight, len(codes))
        weight = np.ones(len(codes)) if weight is None else weight
        fewest = int(np.bincount(codes).min())
        if fewest < 2:
            raise TooFewRowsError.of_one_row("LogitAdjusted(tau='auto')", 2 * len(labels))
        fold = fold_numbers(min(_FOLDS, fewest), codes, seed=self.random_state)
        errors = np.zeros((len(CANDIDATES), len(labels)))
        estimator = estimator_with_class_order(self.estimator, declared_order(y))
        for f in range(int(fold.max()) + 1):
            train, test = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
            model = clone(estimator)
            given = None if sample_weight is None else weight[train]
            fit_with_weight(model, _safe_indexing(X, train), labels[codes[train]], given)
            shares = assumed_prior(model, labels[codes[train]], given, np.asarray(model.classes_))
            logs = log_posterior_of(model, _safe_indexing(X, test))
            for t, tau in enumerate(CANDIDATES):
                wrong = adjusted_log_posterior(logs, shares, tau).argmax(axis=1) != codes[test]
                errors[t] += np.bincount(codes[test], wrong * weight[test], minlength=len(labels))
        balanced = (errors / np.bincount(codes, weight)).mean(axis=1)
        return float(CANDIDATES[int(np.flatnonzero(balanced <= balanced.min() + 1e-12)[0])])


def adjusted_log_posterior(logs: Floats, shares: Floats, tau: float) -> Floats:
    """Return log P(k|x) - tau log p_k, normalised, (n, K).

    >>> adjusted_log_posterior(np.log([[0.9, 0.1]]), np.array([0.9, 0.1]), 1.0).round(3).tolist()
    [[-0.693, -0.693]]
    """
    return log_posterior(logs - tau * np.log(shares))
