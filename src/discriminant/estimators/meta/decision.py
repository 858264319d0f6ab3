"""Decision: costs, priors, a reject option and outliers around any classifier with probabilities.

Also here: the log posteriors of any fitted classifier, and the class priors that they assume. The
decision theory is in `decision`, the change of priors in `posterior`.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import has_fit_parameter

from discriminant.decision.actions import REJECT, Reject, decided, expected_cost, least_cost
from discriminant.decision.costs import Costs, unit
from discriminant.engines.dispatch import read_moments
from discriminant.engines.local import map_rows
from discriminant.errors import (
    NeverRejectsWarning,
    NoClassDecidedWarning,
    OptionError,
    PosteriorError,
    ShapeError,
    ThresholdError,
    TooFewRowsError,
    WeightError,
    warn,
)
from discriminant.estimators.base import (
    EstimatorMixin,
    as_partitioned,
    require_classifier,
    to_memory,
)
from discriminant.models.gaussian.family import (
    GaussianFamily,
    pooled_metric,
    quadratic_rule,
    validate_prior,
)
from discriminant.models.rules import QuadraticRule
from discriminant.moments.class_moments import ClassMoments
from discriminant.posterior import (
    EstimatedPrior,
    estimated_prior,
    log_posterior,
    not_probabilistic,
    off_one,
    reweighed,
    typicality,
)
from discriminant.table.blocks import Block, Codes, Floats, Labels, Schema
from discriminant.table.labels import encode_known_labels
from discriminant.table.memory import as_features, as_table

_BY_WEIGHT = "sample_weight" in signature(compute_class_weight).parameters
_PRIORS = ("prior_", "priors_", "class_prior_")  # ours, and scikit-learn's


def log_posterior_of(model: Any, X: Any) -> Floats:
    """(n, K) normalised log posteriors of any fitted classifier."""
    name = type(model).__name__
    with np.errstate(divide="ignore"):  # a posterior of 0 has the log -inf, and that is meant
        if hasattr(model, "predict_log_proba"):
            found = np.asarray(model.predict_log_proba(X), dtype=np.float64)
        elif hasattr(model, "predict_proba"):
            found = np.log(np.asarray(model.predict_proba(X), dtype=np.float64))
        else:
            raise PosteriorError.absent(name)
    if found.ndim != 2 or found.shape[1] != len(model.classes_):
        raise PosteriorError.of_shape(found.shape, len(model.classes_))
    for row in np.flatnonzero(~(found.max(axis=1) > -np.inf) | np.isnan(found).any(axis=1)):
        raise PosteriorError.not_a_number(int(row), name)
    for place, total in off_one(np.exp(found)):
        raise PosteriorError.of_sum(place, total, name)
    return log_posterior(found)


def declared_prior(model: Any, labels: Labels) -> Floats | None:
    """(K,) class priors that a fitted classifier declares, or None."""
    model = final_estimator(model)
    if hasattr(model, "class_log_prior_"):  # scikit-learn's naive Bayes for counts
        found = np.exp(np.asarray(model.class_log_prior_, dtype=np.float64))
        return found if found.shape == labels.shape else None
    for name in _PRIORS:
        prior = getattr(model, name, None)
        if prior is not None and np.shape(prior) == labels.shape:
            return np.asarray(prior, dtype=np.float64)
    return None


def training_shares(model: Any, y: Any, sample_weight: Any, labels: Labels) -> Floats:
    """(K,) class shares of the rows of a fit, including the `class_weight` of the classifier.

    With `class_weight`, classifiers of scikit-learn weight rows, so that posteriors are those of a
    population with other shares. Raises WeightError for a class without weight.
    """
    codes = encode_known_labels(np.ravel(np.asarray(y)), labels)
    given = 1.0 if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    weight = np.broadcast_to(given, codes.shape)
    total = np.bincount(codes, weights=weight, minlength=len(labels))
    for k in np.flatnonzero(total == 0):
        raise WeightError.zero_class(labels[k])
    weighted = total * _class_weight_of(final_estimator(model), codes, weight, labels)
    return np.asarray(weighted / weighted.sum())


def _class_weight_of(model: Any, codes: Codes, weight: Floats, labels: Labels) -> Floats:
    """(K,) factors of the row weights by the `class_weight` of a scikit-learn classifier.

    'balanced' counts rows; in newer versions, logistic regression sums their weights.
    """
    counted = getattr(model, "class_weight", None)
    if counted is None:
        return np.ones(len(labels))
    if not isinstance(counted, str):
        return np.array([float(counted.get(label, 1.0)) for label in labels.tolist()])
    from sklearn.linear_model import LogisticRegression

    weighed = isinstance(model, LogisticRegression) and _BY_WEIGHT
    count = np.bincount(codes, weights=weight if weighed else None, minlength=len(labels))
    return np.asarray(count.sum() / (len(labels) * count))  # 'balanced_subsample' in the mean


def final_estimator(model: Any) -> Any:
    """The last step of a pipeline, or the best estimator of a search."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps"):
            model = model.steps[-1][1]
        else:
            return model


_CALIBRATIONS = {"platt": "sigmoid", "isotonic": "isotonic"}


class Decision(ClassifierMixin, MetaEstimatorMixin, EstimatorMixin, BaseEstimator):
    """Decide by least expected cost, or reject, on the posteriors of any classifier.

        action(x) = argmin_a  sum_k cost[a, k] P(k|x),  or REJECT if that costs more than rejecting

    All options but `estimator` and `calibrate` are read when they are used: change them with
    `set_params` after the fit, without refitting.

    Parameters
    ----------
    estimator : classifier
        A classifier with predict_proba or predict_log_proba; cloned and fitted. A fitted one is
        used as it is inside scikit-learn's FrozenEstimator, or by `Decision.of_fitted`. With one
        whose outputs are not probabilities (LeastSquares), all options but `outlier` are refused
        unless `calibrate` is given.
    cost : dict, array of shape (K, K), data frame or None, default None
        Cost of each action for each true class: {action: {class: cost}}, a square array in the
        order of the classes, or a data frame. Actions need not be classes. None: an error costs 1.
    prior : array of shape (K,), dict by label or None, default None
        Class priors to decide under. None: those of the fit. Exact if p(x|class) is unchanged.
    reject : float, dict or None, default None
        Cost of rejecting (0 rejects every row, infinity none), or {"threshold": t}: reject if the
        most probable class has a posterior below t. Values that differ by a relative 1e-9 or less
        are equal: a posterior of 0.7999999999999999 is not below 0.8.
    threshold : float, array of shape (K,), dict or None, default None
        Predict the second of two classes if its posterior exceeds this; or one threshold per
        class, and the largest ratio of posterior to threshold wins. Replaces `cost`.
    outlier : float or None, default None
        A row is an outlier if its largest p-value over the classes is below this level, by
        Mahalanobis distance in the pooled covariance, with the F distribution of finite samples.
    calibrate : {None, 'platt', 'isotonic'}, default None
        Calibrate scores that are not probabilities, by scikit-learn's CalibratedClassifierCV.
    fitted_prior : array of shape (K,), dict by label or None, default None
        Class priors that the posteriors of `estimator` assume, if it does not declare them. None:
        its own `prior_`, or the class shares of the rows.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    classes_ : array of shape (K,)
        Class labels, sorted.
    actions_ : tuple
        Actions of `expected_cost`: the classes, then any others.
    fitted_prior_ : array of shape (K,) or None
        Class priors of the fit; None if they are unknown.
    moments_ : ClassMoments or None
        Class moments for `outlier`.
    n_features_in_, feature_names_in_
        As those of the classifier.

    See Also
    --------
    Reweighted : Class weights during the fit.

    Examples
    --------
    >>> from discriminant import LDA
    >>> model = Decision(LDA(), reject=0.1).fit([[0.0], [1.0], [4.0], [5.0]], list("aabb"))
    >>> model.decide([[0.5], [2.5]]).tolist(), model.predict([[2.6]]).tolist()
    (['a', REJECT], ['b'])
    >>> model.set_params(reject=None, cost={"b": {"a": 1000}}).predict([[2.6]]).tolist()
    ['a']
    """

    estimator_: Any
    classes_: Labels
    fitted_prior_: Floats | None
    moments_: ClassMoments | None
    _classes: tuple[ClassMoments, QuadraticRule, int] | None  # for `typicality`, when first asked

    def __init__(
        self,
        estimator: Any,
        *,
        cost: Any = None,
        prior: Any = None,
        reject: Any = None,
        threshold: Any = None,
        outlier: Any = None,
        calibrate: Any = None,
        fitted_prior: Any = None,
    ) -> None:
        self.estimator = estimator
        self.cost = cost
        self.prior = prior
        self.reject = reject
        self.threshold = threshold
        self.outlier = outlier
        self.calibrate = calibrate
        self.fitted_prior = fitted_prior

    # --- fitting ----------------------------------------------------------------------------------

    @classmethod
    def of_fitted(cls, estimator: Any, **options: Any) -> Decision:
        """Wrap a classifier that is already fitted; no rows are needed.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier.
        **options
            As in the constructor.

        Returns
        -------
        Decision
        """
        made = cls(FrozenEstimator(estimator), **options)
        made._copy_options()
        made._hold(estimator)
        made.fitted_prior_ = made._prior_of_fit(None, None)
        made.moments_ = made._classes = None
        return made

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit a clone of the classifier; for `outlier`, also read the class moments.

        Parameters
        ----------
        X, y, sample_weight
            Rows, labels and weights, as the classifier accepts them; or a partitioned table alone.

        Returns
        -------
        self
        """
        require_classifier(self.estimator, "Decision", "weighs probabilities of classes")
        model = self._to_fit()
        table = as_partitioned(X, y, sample_weight)
        if self.calibrate is not None:
            X, y, sample_weight = to_memory(X, y, sample_weight, "Decision(calibrate=...)")
        if table is not None and self.calibrate is None:
            model.fit(table)
        elif sample_weight is None:
            model.fit(X, y)
        elif has_fit_parameter(model, "sample_weight"):
            model.fit(X, y, sample_weight=sample_weight)
        else:
            raise WeightError.not_supported(type(model).__name__)
        self._hold(model)
        counted = (y, sample_weight)
        if table is not None:
            counted = (table.schema.labels, table.moments.weight)  # one total per class
        self.fitted_prior_ = self._prior_of_fit(*counted)
        self.moments_ = None if self.outlier is None else self._read(X, y, sample_weight)
        self._classes = None
        self.check_options()
        return self

    # --- using ------------------------------------------------------------------------------------

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the class of least expected cost; the most probable if no action is a class."""
        self._check_is_fitted()
        costs = self._costs()
        log_posterior = self._log_posterior(X)
        best, _ = least_cost(log_posterior, None if costs is None else costs.classes_only())
        return np.asarray(self.classes_[best])

    def decide(self, X: Any) -> npt.NDArray[np.object_]:
        """(n,) action of least expected cost of each row, or REJECT, or OUTLIER."""
        self._check_is_fitted()
        costs = self._costs()
        self._warn_if_no_class(costs)
        reject = self._reject(costs)
        outliers = None
        if self.outlier is not None:
            outliers = self.typicality(X).max(axis=1) < unit(self.outlier, "outlier")
        found = decided(
            self._log_posterior(X),
            labels=self.classes_,
            costs=costs,
            reject=reject,
            outliers=outliers,
        )
        if hasattr(self.estimator_, "rejected"):  # rows that the classifier itself will not decide
            found[self.estimator_.rejected(X)] = REJECT
        return found

    def expected_cost(self, X: Any) -> Floats:
        """(n, A) expected cost of each of `actions_`."""
        self._check_is_fitted()
        self._need_posterior("an expected cost")
        costs = self._costs()
        return expected_cost(self._log_posterior(X), costs)

    @property
    def actions_(self) -> tuple[Any, ...]:
        """Actions in the columns of `expected_cost`: the classes, then any others."""
        self._check_is_fitted()
        costs = self._costs()
        return tuple(self.classes_.tolist()) if costs is None else costs.actions

    def predict_log_proba(self, X: Any) -> Floats:
        """(n, K) log posteriors under `prior`."""
        self._check_is_fitted()
        return self._log_posterior(X)

    def predict_proba(self, X: Any) -> Floats:
        """(n, K) posteriors under `prior`."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def estimate_prior(self, X: Any) -> EstimatedPrior:
        """Estimate the class shares of unlabelled rows by EM, for use as `prior`."""
        self._check_is_fitted()
        self._need_posterior("estimate_prior")
        return estimated_prior(log_posterior_of(self.estimator_, X), self._known_prior())

    def typicality(self, X: Any) -> Floats:
        """(n, K) p-values of the Mahalanobis distances of rows from the class means."""
        self._check_is_fitted()
        moments, rule, width = self._gaussian()
        schema = Schema(moments.features, moments.labels, hasattr(self, "feature_names_in_"))
        features, _ = as_features(X, match=schema)
        if features.shape[1] != len(moments.features):
            raise ShapeError.of_width(features.shape[1], len(moments.features), "Decision")
        distances = map_rows(rule.distances, features, order="F")
        if not np.isfinite(distances).all():
            codes = np.zeros(features.shape[0], dtype=np.uint8)
            Block(features[:], codes).raise_bad_cell(moments.features)
        degrees = float(moments.weight.sum()) - len(moments.labels)
        return typicality(distances, width=width, weight=moments.weight, degrees=degrees)

    def __sklearn_tags__(self) -> Any:
        """Tags of the classifier."""
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags = inner.input_tags
        tags.target_tags = inner.target_tags
        tags.classifier_tags = inner.classifier_tags
        return tags

    # --- inside -----------------------------------------------------------------------------------

    def _to_fit(self) -> Any:
        model = clone(self.estimator)
        if self.calibrate is not None:
            if self.calibrate not in _CALIBRATIONS:
                raise OptionError.of("calibrate", self.calibrate, "None, 'platt' or 'isotonic'")
            return CalibratedClassifierCV(model, method=_CALIBRATIONS[self.calibrate])
        if not (hasattr(model, "predict_proba") or hasattr(model, "predict_log_proba")):
            raise PosteriorError.absent(type(model).__name__)
        return model

    def _hold(self, model: Any) -> None:
        self.estimator_ = model
        self.classes_ = np.asarray(model.classes_)
        self._copy_input_names(model)

    def _prior_of_fit(self, y: Any, sample_weight: Any) -> Floats | None:
        """(K,) class priors that the posteriors assume, or None if unknown."""
        found = declared_prior(self.estimator_, self.classes_)
        if found is not None or y is None or isinstance(self.estimator, FrozenEstimator):
            return found  # the rows of a frozen classifier's fit were others
        model = self.estimator_ if self.calibrate is None else None
        return training_shares(model, y, sample_weight, self.classes_)

    def _read(self, X: Any, y: Any, sample_weight: Any) -> ClassMoments:
        table = as_partitioned(X) or as_table(
            X, y, weight=sample_weight, name="Decision(outlier=...)"
        )
        moments = read_moments(table, detail="pooled")
        needed = len(moments.labels) + len(moments.features)
        if moments.weight.sum() < needed:
            raise TooFewRowsError.of_outliers(
                int(moments.rows.sum()), needed, len(moments.features), len(moments.labels)
            )
        return moments

    def _moments(self) -> ClassMoments:
        """Moments read by the fit, or those of the classifier."""
        for found in (self.moments_, getattr(self.estimator_, "moments_", None)):
            if isinstance(found, ClassMoments) and found.holds("pooled"):
                return found
        if isinstance(self.estimator, FrozenEstimator):
            raise PosteriorError.fitted_without_moments(type(self.estimator_).__name__)
        raise PosteriorError.without_moments("Decision")

    # --- its parts, as an export writes them down ------------------------------------------------

    def known_prior(self) -> Floats:
        """(K,) class priors that the posteriors of the classifier assume."""
        self._check_is_fitted()
        return self._known_prior()

    def costs(self) -> Costs | None:
        """Costs of the actions, by `cost` or `threshold`; None if every error costs the same."""
        self._check_is_fitted()
        self._check_posterior()
        return self._costs()

    def gaussian_classes(self) -> tuple[ClassMoments, QuadraticRule, int]:
        """Model for outliers: moments, classes with one covariance, and its rank."""
        self._check_is_fitted()
        return self._gaussian()

    def _gaussian(self) -> tuple[ClassMoments, QuadraticRule, int]:
        """Gaussian classes with one covariance, and its rank."""
        if self._classes is None:
            moments = self._moments()
            metric, K = pooled_metric(moments, GaussianFamily()), len(moments.labels)
            rule = quadratic_rule(moments, metrics=(metric,) * K, prior=np.full(K, 1.0 / K))
            self._classes = moments, rule, metric.basis.shape[1]
        return self._classes

    @property
    def probabilistic(self) -> bool:
        """Whether `predict_proba` returns probabilities: calibrated, or those of the classifier."""
        if self.calibrate is not None:
            return True
        return not_probabilistic(getattr(self, "estimator_", self.estimator)) is None

    def _need_posterior(self, what: str) -> None:
        if not self.probabilistic:
            name = not_probabilistic(self.estimator_) or type(self.estimator_).__name__
            raise PosteriorError.not_probabilities(name, what)

    def _check_posterior(self) -> None:
        """Raise for every option that needs probabilities if the classifier has none."""
        for option in ("cost", "threshold", "prior", "reject"):
            if getattr(self, option) is not None:
                self._need_posterior(f"Decision({option}=...)")

    def _known_prior(self) -> Floats:
        if self.fitted_prior is not None:
            return validate_prior(self._option("fitted_prior"), self.classes_)
        if self.fitted_prior_ is None:
            raise PosteriorError.unknown_prior(type(self.estimator_).__name__)
        return self.fitted_prior_

    def _log_posterior(self, X: Any) -> Floats:
        self._check_posterior()
        new = None if self.prior is None else validate_prior(self._option("prior"), self.classes_)
        found = log_posterior_of(self.estimator_, X)
        return found if new is None else reweighed(found, self._known_prior(), new)

    def _costs(self) -> Costs | None:
        if self.threshold is not None:
            if self.cost is not None:
                raise ThresholdError.and_cost()
            return Costs.of_threshold(self._option("threshold"), self.classes_)
        return None if self.cost is None else Costs.of(self._option("cost"), self.classes_)

    def _warn_if_no_class(self, costs: Costs | None) -> None:
        """Warn if none of the actions is a class."""
        labels = self.classes_.tolist()
        if (
            costs is not None
            and isinstance(self.cost, Mapping)
            and not {*costs.actions} & {*labels}
        ):
            warn(NoClassDecidedWarning.of_actions(costs.actions, labels))

    def _reject(self, costs: Costs | None) -> Reject | None:
        """The reject option; warn if it never applies."""
        if self.reject is None:
            return None
        reject = Reject.of(self._option("reject"))
        if np.isfinite(reject.cost) and costs is None:
            most = 1.0 - 1.0 / len(self.classes_)
            if reject.cost >= most:
                warn(NeverRejectsWarning.of_cost(reject.cost, most))
        elif np.isfinite(reject.cost) and costs and not costs.ever_exceeds(reject.cost):
            warn(NeverRejectsWarning.of_cost(reject.cost, costs.dearest()))
        return reject

    def check_options(self) -> None:
        """Raise now, as `fit` does, if an option is invalid."""
        self._check_posterior()
        costs = self._costs()
        self._warn_if_no_class(costs)
        self._reject(costs)
        if self.prior is not None:
            validate_prior(self._option("prior"), self.classes_)
        if self.prior is not None or self.fitted_prior is not None:
            self._known_prior()
        if self.outlier is not None:
            unit(self.outlier, "outlier")
