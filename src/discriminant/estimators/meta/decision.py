"""Decisions from posteriors: costs, priors, a reject option and outliers, for any classifier.

The module also obtains the log posteriors of any fitted classifier, and the class priors that these
assume. The decision theory is in `decision`, the change of priors in `posterior`.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from discriminant.decision.actions import REJECT, Reject, decided, expected_cost, least_cost
from discriminant.decision.costs import Costs, check_probability
from discriminant.engines.dispatch import read_moments
from discriminant.engines.local import map_rows
from discriminant.errors import (
    NeverRejectsWarning,
    NoClassDecidedWarning,
    PosteriorError,
    ShapeError,
    ThresholdError,
    TooFewRowsError,
    WeightError,
    warn,
)
from discriminant.estimators.base import (
    ClassifierWrapper,
    check_choice,
    fit_with_weight,
    has_probabilities,
    partitioned_or_none,
    require_classifier,
)
from discriminant.models.calibration import FITS
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
    change_prior,
    estimated_prior,
    invalid_probability_rows,
    log_posterior,
    not_probabilistic,
    typicality,
)
from discriminant.table.blocks import Block, Codes, Floats, Labels, Schema
from discriminant.table.labels import encode_known_labels
from discriminant.table.memory import as_features, as_table

# names of the attribute in this package, and in scikit-learn
_PRIORS = ("prior_", "priors_", "class_prior_")


def log_posterior_of(model: Any, X: Any) -> Floats:
    """Return the normalised log posteriors (n, K) of any fitted classifier."""
    name = type(model).__name__
    with np.errstate(divide="ignore"):  # the log of a posterior of 0 is -inf
        if hasattr(model, "predict_log_proba"):
            logs = np.asarray(model.predict_log_proba(X), dtype=np.float64)
        elif hasattr(model, "predict_proba"):
            logs = np.log(np.asarray(model.predict_proba(X), dtype=np.float64))
        else:
            raise PosteriorError.absent(name)
    if logs.ndim != 2 or logs.shape[1] != len(model.classes_):
        raise PosteriorError.of_shape(logs.shape, len(model.classes_))
    for row in np.flatnonzero(~(logs.max(axis=1) > -np.inf) | np.isnan(logs).any(axis=1)):
        raise PosteriorError.not_a_number(int(row), name)
    for place, total in invalid_probability_rows(np.exp(logs)):
        raise PosteriorError.of_sum(place, total, name)
    return log_posterior(logs)


def declared_prior(model: Any, labels: Labels) -> Floats | None:
    """Return the class priors (K,) that a fitted classifier declares, or None."""
    model = final_estimator(model)
    if hasattr(model, "class_log_prior_"):  # attribute of scikit-learn's naive Bayes for counts
        counted = np.exp(np.asarray(model.class_log_prior_, dtype=np.float64))
        return counted if counted.shape == labels.shape else None
    for name in _PRIORS:
        prior = getattr(model, name, None)
        if prior is not None and np.shape(prior) == labels.shape:
            return np.asarray(prior, dtype=np.float64)
    return None


def assumed_prior(model: Any, y: Any, sample_weight: Any, labels: Labels) -> Floats:
    """Return the class priors (K,) that the posteriors assume: declared, or the class shares."""
    declared = declared_prior(model, labels)
    return training_shares(model, y, sample_weight, labels) if declared is None else declared


def training_shares(model: Any, y: Any, sample_weight: Any, labels: Labels) -> Floats:
    """Return the class shares (K,) of the rows of a fit, weighted by `class_weight` if it is set.

    scikit-learn's classifiers multiply row weights by `class_weight`, so that their posteriors are
    those of a population with the weighted class shares. Raises `WeightError` if the total weight
    of a class is 0.
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
    """Return the factors (K,) by which scikit-learn's `class_weight` multiplies row weights.

    'balanced' uses the numbers of rows; newer versions of logistic regression use their weights.
    """
    option = getattr(model, "class_weight", None)
    if option is None:
        return np.ones(len(labels))
    if not isinstance(option, str):
        return np.array([float(option.get(label, 1.0)) for label in labels.tolist()])
    from sklearn.linear_model import LogisticRegression
    from sklearn.utils.class_weight import compute_class_weight

    sums_weights = "sample_weight" in signature(compute_class_weight).parameters
    by_weight = isinstance(model, LogisticRegression) and sums_weights
    count = np.bincount(codes, weights=weight if by_weight else None, minlength=len(labels))
    # for 'balanced_subsample' this is the mean over the subsamples
    return np.asarray(count.sum() / (len(labels) * count))


def final_estimator(model: Any) -> Any:
    """Return the estimator that predicts: last step of a pipeline, or best model of a search."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps"):
            model = model.steps[-1][1]
        else:
            return model


class Decision(ClassifierWrapper):
    """Decide by least expected cost, or reject, using the posteriors of any classifier.

        action(x) = argmin_a  sum_k cost[a, k] P(k|x),  or REJECT if that costs more than rejecting

    All options except `estimator` and `calibrate` can be changed after the fit, with `set_params`,
    without refitting.

    Parameters
    ----------
    estimator : classifier
        Classifier with `predict_proba` or `predict_log_proba`. The classifier is cloned before it
        is fitted. To use a fitted classifier unchanged, wrap it in scikit-learn's `FrozenEstimator`
        or use `Decision.of_fitted`. If its outputs are not probabilities (LeastSquares), all
        options except `outlier` raise an error unless `calibrate` is set.
    cost : dict, array of shape (K, K), data frame or None, default None
        Cost of each action for each true class: {action: {class: cost}}, a square array in the
        order of the classes, or a data frame. Actions need not be classes. None means that every
        error costs 1.
    prior : array of shape (K,), dict by label or None, default None
        Class priors for the decisions. None means the priors of the fit. The change of priors is
        exact if p(x|class) is the same in the new population.
    reject : float, dict or None, default None
        Cost of rejecting a row: with 0 every row is rejected, with infinity none. Or a dict
        {"threshold": t}: reject a row if the posterior of its most probable class is below t.
        Values whose relative difference is at most 1e-9 count as equal: 0.7999999999999999 is not
        below 0.8.
    threshold : float, array of shape (K,), dict or None, default None
        A number, for two classes: predict the second class if its posterior exceeds the threshold.
        One threshold per class: predict the class with the largest ratio of posterior to threshold.
        Use either `threshold` or `cost`.
    outlier : float or None, default None
        Significance level for outliers. A row is an outlier if it is atypical of every class: the
        p-values of its Mahalanobis distances from the class means, in the pooled covariance, are
        all below this level. The p-values use the F distribution for finite samples.
    calibrate : {None, 'platt', 'temperature', 'isotonic', 'beta'}, default None
        Method of `Calibrated` that turns scores into probabilities. None means no calibration.
    fitted_prior : array of shape (K,), dict by label or None, default None
        Class priors that the posteriors of `estimator` assume. None means the attribute `prior_` of
        the estimator, or, if it has none, the class shares of the rows.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    actions_ : tuple
        Actions in the columns of `expected_cost`: the classes first, then any other actions.
    fitted_prior_ : array of shape (K,) or None
        Class priors that the fitted posteriors assume; None if they are unknown.
    moments_ : ClassMoments or None
        Class moments, which `outlier` needs.

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
    _classes: tuple[ClassMoments, QuadraticRule, int] | None  # cache of `gaussian_classes`

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
        """Wrap a classifier that is already fitted, without refitting it.

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
        model = cls(FrozenEstimator(estimator), **options)
        model._copy_options()
        model._set_state(estimator, None, None)
        model.moments_ = None
        return model

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
        model = self._unfitted_classifier()
        table = partitioned_or_none(X, y, sample_weight)
        if table is None:
            fit_with_weight(model, X, y, sample_weight)
            self._set_state(model, y, sample_weight)
        else:
            model.fit(table)
            # total weight of each class
            self._set_state(model, table.schema.labels, table.moments.weight)
        self.moments_ = None if self.outlier is None else self._read_moments(X, y, sample_weight)
        self.check_options()
        return self

    # --- using ------------------------------------------------------------------------------------

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the class of least expected cost.

        If no action is a class, predict the most probable class.
        """
        self._check_is_fitted()
        costs = self._costs()
        log_posterior = self._log_posterior(X)
        best, _ = least_cost(log_posterior, None if costs is None else costs.classes_only())
        return np.asarray(self.classes_[best])

    def decide(self, X: Any) -> npt.NDArray[np.object_]:
        """Return for each row (n,) the action of least expected cost, or REJECT or OUTLIER."""
        self._check_is_fitted()
        costs = self._costs()
        self._warn_if_no_class(costs)
        reject = self._reject(costs)
        outliers = None
        if self.outlier is not None:
            outliers = self.typicality(X).max(axis=1) < check_probability(self.outlier, "outlier")
        logs = self._log_posterior(X)
        actions = decided(logs, labels=self.classes_, costs=costs, reject=reject, outliers=outliers)
        if hasattr(self.estimator_, "rejected"):  # the wrapped classifier itself rejects these rows
            actions[self.estimator_.rejected(X)] = REJECT
        return actions

    def expected_cost(self, X: Any) -> Floats:
        """Return the expected cost (n, A) of each of the A actions in `actions_`."""
        self._check_is_fitted()
        self._need_posterior("an expected cost")
        # checked before the rows are scored, so that an invalid option raises first
        costs = self._costs()
        return expected_cost(self._log_posterior(X), costs)

    @property
    def actions_(self) -> tuple[Any, ...]:
        """Actions in the columns of `expected_cost`: the classes first, then any other actions."""
        self._check_is_fitted()
        costs = self._costs()
        return tuple(self.classes_.tolist()) if costs is None else costs.actions

    def predict_log_proba(self, X: Any) -> Floats:
        """Return log posteriors (n, K) for the class priors `prior`."""
        self._check_is_fitted()
        return self._log_posterior(X)

    def predict_proba(self, X: Any) -> Floats:
        """Return posteriors (n, K) for the class priors `prior`."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def estimate_prior(self, X: Any) -> EstimatedPrior:
        """Estimate the class shares of unlabelled rows by EM, to be used as `prior`."""
        self._check_is_fitted()
        self._need_posterior("estimate_prior")
        return estimated_prior(log_posterior_of(self.estimator_, X), self.known_prior())

    def typicality(self, X: Any) -> Floats:
        """Return p-values (n, K) of the Mahalanobis distances of rows from the class means."""
        moments, rule, width = self.gaussian_classes()
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

    # --- inside -----------------------------------------------------------------------------------

    def _unfitted_classifier(self) -> Any:
        model = clone(self.estimator)
        if self.calibrate is not None:
            from discriminant.estimators.meta.calibrated import Calibrated

            check_choice("calibrate", self.calibrate, ("None", *FITS))
            return Calibrated(model, self.calibrate)
        if not has_probabilities(model):
            raise PosteriorError.absent(type(model).__name__)
        return model

    def _set_state(self, model: Any, y: Any, sample_weight: Any) -> None:
        """Set the fitted classifier and its class priors, which are None if they are unknown."""
        self.estimator_ = model
        self.classes_ = np.asarray(model.classes_)
        self._copy_input_names(model)
        self._classes = None
        self.fitted_prior_ = declared_prior(model, self.classes_)
        other_rows = y is None or isinstance(self.estimator, FrozenEstimator)
        if self.fitted_prior_ is None and not other_rows:
            weighting = model if self.calibrate is None else None
            self.fitted_prior_ = training_shares(weighting, y, sample_weight, self.classes_)

    def _read_moments(self, X: Any, y: Any, sample_weight: Any) -> ClassMoments:
        table = partitioned_or_none(X) or as_table(
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
        """Return the moments that `fit` read, or the moments of the wrapped classifier."""
        for moments in (self.moments_, getattr(self.estimator_, "moments_", None)):
            if isinstance(moments, ClassMoments) and moments.has("pooled"):
                return moments
        if isinstance(self.estimator, FrozenEstimator):
            raise PosteriorError.fitted_without_moments(type(self.estimator_).__name__)
        raise PosteriorError.without_moments("Decision")

    # --- components for export --------------------------------------------------------------------

    def known_prior(self) -> Floats:
        """Return the class priors (K,) that the posteriors assume; unknown priors are an error."""
        self._check_is_fitted()
        if self.fitted_prior is not None:
            return validate_prior(self._option("fitted_prior"), self.classes_)
        if self.fitted_prior_ is None:
            raise PosteriorError.unknown_prior(type(self.estimator_).__name__)
        return self.fitted_prior_

    def costs(self) -> Costs | None:
        """Return the costs given by `cost` or `threshold`; None if neither is set."""
        self._check_is_fitted()
        self._check_posterior()
        return self._costs()

    def gaussian_classes(self) -> tuple[ClassMoments, QuadraticRule, int]:
        """Return the model for outliers: moments, Gaussian classes, and the covariance rank."""
        self._check_is_fitted()
        if self._classes is None:
            moments = self._moments()
            metric, K = pooled_metric(moments, GaussianFamily()), len(moments.labels)
            rule = quadratic_rule(moments, metrics=(metric,) * K, prior=np.full(K, 1.0 / K))
            self._classes = moments, rule, metric.basis.shape[1]
        return self._classes

    @property
    def probabilistic(self) -> bool:
        """Whether `predict_proba` returns true probabilities, calibrated or of the classifier."""
        if self.calibrate is not None:
            return True
        return not_probabilistic(getattr(self, "estimator_", self.estimator)) is None

    def _need_posterior(self, what: str) -> None:
        if not self.probabilistic:
            name = not_probabilistic(self.estimator_) or type(self.estimator_).__name__
            raise PosteriorError.not_probabilities(name, what)

    def _check_posterior(self) -> None:
        """Raise an error if an option needs probabilities and the classifier has none."""
        for option in ("cost", "threshold", "prior", "reject"):
            if getattr(self, option) is not None:
                self._need_posterior(f"Decision({option}=...)")

    def _log_posterior(self, X: Any) -> Floats:
        self._check_posterior()
        new = None if self.prior is None else validate_prior(self._option("prior"), self.classes_)
        logs = log_posterior_of(self.estimator_, X)
        return logs if new is None else change_prior(logs, self.known_prior(), new)

    def _costs(self) -> Costs | None:
        if self.threshold is not None:
            if self.cost is not None:
                raise ThresholdError.and_cost()
            return Costs.of_threshold(self._option("threshold"), self.classes_)
        return None if self.cost is None else Costs.of(self._option("cost"), self.classes_)

    def _warn_if_no_class(self, costs: Costs | None) -> None:
        """Warn if none of the actions is a class."""
        if costs is None or not isinstance(self.cost, Mapping):
            return
        labels = self.classes_.tolist()
        if not {*costs.actions} & {*labels}:
            warn(NoClassDecidedWarning.of_actions(costs.actions, labels))

    def _reject(self, costs: Costs | None) -> Reject | None:
        """Return the reject option; warn if it never rejects a row."""
        if self.reject is None:
            return None
        reject = Reject.of(self._option("reject"))
        if np.isfinite(reject.cost) and costs is None:
            largest = 1.0 - 1.0 / len(self.classes_)
            if reject.cost >= largest:
                warn(NeverRejectsWarning.of_cost(reject.cost, largest))
        elif np.isfinite(reject.cost) and costs and not costs.ever_exceeds(reject.cost):
            warn(NeverRejectsWarning.of_cost(reject.cost, costs.max_least_cost()))
        return reject

    def check_options(self) -> None:
        """Raise the error that `fit` would raise for an invalid option."""
        self._check_posterior()
        costs = self._costs()
        self._warn_if_no_class(costs)
        self._reject(costs)
        if self.prior is not None:
            validate_prior(self._option("prior"), self.classes_)
        if self.prior is not None or self.fitted_prior is not None:
            self.known_prior()
        if self.outlier is not None:
            check_probability(self.outlier, "outlier")
