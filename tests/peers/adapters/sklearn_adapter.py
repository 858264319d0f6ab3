"""scikit-learn's names and options for the estimators of this package.

An adapter translates options and names, nothing else: whatever it returns was computed by this
package. Options that only choose how scikit-learn computes (solver, tol, dual, n_jobs ...) have no
counterpart and are left out. A feature that is missing raises `Lacks`.
"""

from __future__ import annotations

import inspect
import warnings

import numpy as np
from calls import Lacks, LacksAttributeError, count_call
from sklearn import discriminant_analysis, linear_model, model_selection, multiclass, svm
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_sample_weight

import discriminant as dd
from discriminant.errors import NotConvergedWarning

_RENAMED = {"priors_": "prior_"}


class _Adapter(ClassifierMixin, BaseEstimator):
    """A peer's constructor around an estimator of ours, which answers everything else."""

    def __init_subclass__(cls, peer=None, **kwargs):
        super().__init_subclass__(**kwargs)
        if peer is None:
            return
        signature = inspect.signature(peer.__init__)

        def __init__(self, *args, **kwargs):  # noqa: N807
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            for name, value in list(bound.arguments.items())[1:]:
                setattr(self, name, value)

        __init__.__signature__ = signature
        cls.__init__ = __init__

    def _ours(self, weight):
        """The estimator of ours with the same meaning; `weight` is the sum of weights."""
        raise NotImplementedError

    def fit(self, X, y, sample_weight=None, **fit_params):
        self.__dict__.pop("ours_", None)
        count_call()
        weight, options = self._weights(y, sample_weight)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = self._ours(weight).fit(X, y, **options, **fit_params)
        for one in caught:
            peer = ConvergenceWarning if issubclass(one.category, NotConvergedWarning) else None
            warnings.warn(str(one.message), peer or one.category, stacklevel=2)
        self.ours_ = fitted
        return self

    def _weights(self, y, sample_weight):
        """Sum of weights, and the weights as an option of fit where there are any."""
        class_weight = getattr(self, "class_weight", None)
        if sample_weight is None and class_weight is None:
            return float(np.shape(y)[0] if hasattr(y, "shape") else len(y)), {}
        weights = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float)
        if class_weight is not None:
            weights = weights * compute_sample_weight(class_weight, y)
        return float(np.sum(weights)), {"sample_weight": weights}

    def predict(self, X):
        return self._fitted().predict(X)

    def score(self, X, y, sample_weight=None):
        return self._fitted().score(X, y, sample_weight)

    def _fitted(self):
        """Ours; before the fit an unfitted one, which refuses to predict."""
        return self.__dict__["ours_"] if "ours_" in self.__dict__ else self._ours(1.0)

    def __getattr__(self, name):
        hidden = name.startswith("__") or name == "ours_" or name in self._hidden()
        if not hidden and (self.__sklearn_is_fitted__() or not name.endswith("_")):
            ours = self._fitted()
            try:
                return getattr(ours, _RENAMED.get(name, name))
            except AttributeError:
                pass
        raise LacksAttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __setattr__(self, name, value):
        if name.endswith("_") and name != "ours_" and "ours_" in self.__dict__:
            raise Lacks(f"{name} cannot be set")
        else:
            super().__setattr__(name, value)

    def _hidden(self):
        """Attributes of ours that the peer does not have with these options."""
        return ()

    def __sklearn_is_fitted__(self):
        return "ours_" in self.__dict__

    def __sklearn_tags__(self):
        return self._ours(1.0).__sklearn_tags__()


# --- discriminant analysis ------------------------------------------------------------------------


class LinearDiscriminantAnalysis(_Adapter, peer=discriminant_analysis.LinearDiscriminantAnalysis):
    def _ours(self, weight):
        options = _shrinkage(self) | {"prior": self.priors, "denominator": "ml"}
        if self.n_components is not None:
            return dd.Fisher(self.n_components, **options)
        return dd.LDA(**options)

    def _hidden(self):
        return () if self.store_covariance or self.solver != "svd" else ("covariance_",)


class QuadraticDiscriminantAnalysis(
    _Adapter, peer=discriminant_analysis.QuadraticDiscriminantAnalysis
):
    def _ours(self, weight):
        options = _shrinkage(self)
        if self.reg_param:
            return dd.RDA.from_sklearn(reg_param=self.reg_param).set_params(prior=self.priors)
        return dd.QDA(prior=self.priors, denominator="ml", **options)

    def _hidden(self):
        return () if self.store_covariance else ("covariance_",)


def _shrinkage(peer):
    if peer.covariance_estimator is not None:
        raise Lacks("covariance_estimator")
    if peer.shrinkage == "auto":
        return {"shrinkage": "auto"}
    return {"shrinkage": peer.shrinkage or 0.0, "target": "scaled_identity"}


def _cov(X, shrinkage):
    """Covariance of one class, as that of two classes with the same rows."""
    count_call()
    amount = {"auto": "auto", "empirical": 0.0, None: 0.0}.get(shrinkage, shrinkage)
    rows = np.concatenate([X, np.asarray(X) + np.std(X, axis=0)])
    return (
        dd.LDA(shrinkage=amount, denominator="ml")
        .fit(rows, np.arange(2).repeat(len(X)))
        .covariance_
    )


# --- logistic, perceptron, support vectors --------------------------------------------------------


class LogisticRegression(_Adapter, peer=linear_model.LogisticRegression):
    def _ours(self, weight):
        l1_ratio = {"l1": 1.0, "l2": 0.0}.get(self.penalty, self.l1_ratio or 0.0)
        free = self.penalty is None or np.isinf(self.C)
        return dd.Logistic(
            ridge=0.0 if free else 1.0 / (self.C * weight),
            l1_ratio=0.0 if free else l1_ratio,
            standardize=False,
            intercept=self.fit_intercept,
            **({} if self.max_iter >= 100 else {"max_iter": self.max_iter}),
        )

    @property
    def n_iter_(self):
        return np.array([self.ours_.n_iter_], dtype=np.int32)


class Perceptron(_Adapter, peer=linear_model.Perceptron):
    def _ours(self, weight):
        if self.penalty is not None:
            raise Lacks("a penalised perceptron")
        return dd.Perceptron(
            keep="last",
            max_passes=self.max_iter,
            standardize=False,
            intercept=self.fit_intercept,
            shuffle=self.shuffle,
            random_state=self.random_state,
        )


class LinearSVC(_Adapter, peer=svm.LinearSVC):
    def _ours(self, weight):
        if self.penalty == "l1":
            raise Lacks("an l1 penalty of support vectors")
        if self.multi_class != "ovr":
            raise Lacks("multi_class='crammer_singer'")
        seed = self.random_state
        return dd.SVM(
            loss=self.loss,
            ridge=1.0 / (self.C * weight),
            intercept=self.fit_intercept,
            max_steps=self.max_iter,
            random_state=seed.randint(2**31) if hasattr(seed, "randint") else seed,
        )


# --- many classes ---------------------------------------------------------------------------------


class _ManyClasses(_Adapter):
    def _weights(self, y, sample_weight):
        return 1.0, {} if sample_weight is None else {"sample_weight": sample_weight}

    def _hidden(self):
        return ("partial_fit",)

    @property
    def n_classes_(self):
        return len(self.ours_.classes_)


class OneVsRestClassifier(_ManyClasses, peer=multiclass.OneVsRestClassifier):
    def _ours(self, weight):
        return dd.OneVsRest(self.estimator, n_jobs=self.n_jobs)


class OneVsOneClassifier(_ManyClasses, peer=multiclass.OneVsOneClassifier):
    def _ours(self, weight):
        return dd.OneVsOne(self.estimator, n_jobs=self.n_jobs)

    def decision_function(self, X):
        """Votes: ours are these less a constant, half a vote for each pair without the class."""
        scores, classes = self._fitted().decision_function(X), self.n_classes_
        if classes == 2:
            return scores
        return scores + (classes - 1) + (classes - 1) * (classes - 2) / 4


class OutputCodeClassifier(_ManyClasses, peer=multiclass.OutputCodeClassifier):
    """Theirs draws columns that may repeat; ours has each column once, so there may be fewer."""

    def fit(self, X, y, **fit_params):
        self._classes = len(np.unique(y)) if np.ndim(y) == 1 else 2
        return super().fit(X, y, **fit_params)

    def _ours(self, weight):
        classes = self.__dict__.get("_classes", 2)
        columns = min(max(int(classes * self.code_size), 1), 2 ** (classes - 1) - 1)
        seed = check_random_state(self.random_state).randint(2**31)
        return dd.OutputCodes(
            self.estimator, columns=columns, random_state=seed, n_jobs=self.n_jobs
        )


# --- thresholds -----------------------------------------------------------------------------------


class FixedThresholdClassifier(_Adapter, peer=model_selection.FixedThresholdClassifier):
    """Theirs decides for `pos_label` at the threshold; ours for the second class above it."""

    def fit(self, X, y, sample_weight=None, **fit_params):
        self._labels = np.unique(y)
        return super().fit(X, y, sample_weight, **fit_params)

    def __sklearn_is_fitted__(self):
        return super().__sklearn_is_fitted__() or hasattr(self.estimator, "classes_")

    def _ours(self, weight):
        fitted = "_labels" not in self.__dict__ and hasattr(self.estimator, "classes_")
        labels = self.estimator.classes_ if fitted else self.__dict__.get("_labels")
        model = dd.Decision(self.estimator, threshold=self._second(labels))
        return dd.Decision.of_fitted(self.estimator, threshold=model.threshold) if fitted else model

    def _second(self, labels):
        """The threshold on the posterior of the second class."""
        if self.response_method == "decision_function":
            raise Lacks("a threshold on decision_function")
        threshold = 0.5 if self.threshold == "auto" else self.threshold
        first = labels is not None and self.pos_label is not None and self.pos_label == labels[0]
        return 1.0 - threshold if first else threshold
