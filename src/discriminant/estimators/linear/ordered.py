"""Regression for ordered classes: cumulative link models by maximum likelihood.

The rows are read once for their moments and then once for each Newton step. The formulas are in
`models.linear.ordered`, standard errors and the summary in `assessment.inference.ordered`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, Self, overload

import numpy as np
import numpy.typing as npt

from discriminant.assessment.inference.coefficient_summary import Inference
from discriminant.assessment.inference.mean_intervals import (
    MeanIntervals,
    log_odds_ends,
    normal_quantile,
)
from discriminant.assessment.inference.ordered import OrderedFit, OrderedSummary, ordered_state
from discriminant.assessment.inference.profile_likelihood import LikelihoodMaximum
from discriminant.engines.dispatch import fold, read_moments
from discriminant.engines.local import one_blas_thread
from discriminant.engines.partitioned_table import AnyTable, table_in_memory
from discriminant.errors import (
    ClassOrderWarning,
    InferenceError,
    LabelError,
    NotConvergedWarning,
    OptionError,
    SeparationWarning,
    merge_warnings,
    warn,
)
from discriminant.estimators.base import (
    IterativeClassifier,
    PosteriorMixin,
    Prior,
    check_choice,
    class_totals,
    partitioned_or_none,
)
from discriminant.estimators.linear.iterative import RowSpaceTable
from discriminant.estimators.linear.linear_regressor import check_ridge, table_anchor
from discriminant.estimators.linear.logistic import (
    START_SHARE,
    sample_rows,
    smallest_row_weight,
)
from discriminant.estimators.linear.maximum_likelihood import (
    LikelihoodInference,
    check_interval,
    check_level,
)
from discriminant.models.gaussian.family import validate_prior
from discriminant.models.gaussian.wide import is_wide
from discriminant.models.linear.logistic import penalty_factors, reading_anchor
from discriminant.models.linear.optimise import GRADIENT
from discriminant.models.linear.ordered import (
    ORDERED_LINKS,
    OrderedLink,
    OrderedObjective,
    OrderedOptions,
    OrderedResult,
    OrderedRule,
    fit_ordered,
)
from discriminant.models.rules import LinearRule
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.blocks import Block, Floats, Labels, Places
from discriminant.table.labels import declared_order
from discriminant.table.memory import as_table

_SAMPLED = 8192  # with more rows, a sample is fitted first, for a starting point
_REVERSED = 4.0  # standard errors by which class means must be reversed for a warning


class OrderedLogistic(PosteriorMixin, LikelihoodInference, IterativeClassifier):
    """Logistic regression for ordered classes: proportional odds and other cumulative links.

    Models  P(class <= k | x) = F(zeta_k - x'w)  with thresholds zeta_1 < ... < zeta_{K-1}, one for
    each boundary between neighbouring classes, and the same coefficients w for all of them. A
    positive coefficient means that larger values go with higher classes, as in R's `polr`.

    Parameters
    ----------
    link : {'logit', 'probit', 'cloglog'}, default 'logit'
        Link function, the inverse of F. 'logit': proportional odds. 'probit': a normal latent
        variable. 'cloglog': proportional hazards.
    order : array of labels, 'sorted' or None, default None
        Classes from lowest to highest. None means the order of an ordered categorical (pandas) or
        an enum (Polars), or the order of numbers, even if they are written as text; other text
        labels raise an error. 'sorted': the sorted order of the labels.
    ridge : float, default 0.0
        Strength of the penalty ridge / 2 |w|^2 that is added to the mean loss. Thresholds are not
        penalised.
    standardize : bool, default True
        True: penalise the coefficients of standardised columns. False: penalise the coefficients of
        the columns in their own units.
    prior : array of shape (K,), dict by label or None, default None
        Class priors for prediction, in the order of the sorted labels. None means the class shares
        of the rows.
    max_iter : int, default 200
        Maximum number of passes over the rows.
    progress : callable or None, default None
        Called after every pass with its number, the loss and the largest entry of the gradient.

    Attributes
    ----------
    coef_ : array of shape (d,)
        Coefficients in the user's units. With the logit link, if a column increases by one, the
        odds of a higher class are multiplied by the exponential of its coefficient.
    thresholds_ : array of shape (K-1,)
        Thresholds zeta for `coef_`, increasing. `predict` does not use them: for accuracy, it
        measures features from an origin near the rows.
    order_ : array of shape (K,)
        Classes from lowest to highest. The columns of `predict_proba` have the order of `classes_`,
        which are sorted.
    prior_ : array of shape (K,)
        Class priors: `prior`, or the class shares of the rows.
    converged_ : bool
        Whether the gradient for standardised columns is at most 1e-8, the Newton decrement is at
        most 1e-10, and the estimates are finite.
    n_passes_, n_iter_ : int
        Number of passes over the rows during the iteration.
    loss_path_ : array of shape (passes,)
        Penalised mean loss at each pass.
    link_ : str
        Link function of the fit.

    See Also
    --------
    Logistic : Classes without an order.
    LDA : Linear boundaries from Gaussian classes.

    References
    ----------
    .. [1] McCullagh (1980), Regression models for ordinal data.
    .. [2] Agresti (2010), Analysis of ordinal categorical data.

    Examples
    --------
    >>> X = [[0.0], [0.0], [0.0], [1.0], [1.0], [1.0], [2.0], [2.0], [2.0]]
    >>> y = ["low", "low", "mid", "low", "mid", "high", "mid", "high", "high"]
    >>> model = OrderedLogistic(order=["low", "mid", "high"]).fit(X, y)
    >>> model.coef_.round(3).tolist(), model.thresholds_.round(3).tolist()
    ([1.85], [0.77, 2.929])
    >>> model.predict([[0.0], [1.0], [2.0]]).tolist()
    ['low', 'mid', 'high']
    """

    rule_: OrderedRule  # type: ignore[assignment]
    link_: OrderedLink
    _ordered_fit: OrderedFit | None  # state for `inference`; None if there is no valid inference
    _partitions = True
    _orders_classes = True

    def __init__(
        self,
        link: OrderedLink = "logit",
        *,
        order: Sequence[Any] | Literal["sorted"] | None = None,
        ridge: float = 0.0,
        standardize: bool = True,
        prior: Prior | None = None,
        max_iter: int = 200,
        progress: Callable[[int, float, float], object] | None = None,
    ) -> None:
        self.link = link
        self.order = order
        self.ridge = ridge
        self.standardize = standardize
        self.prior = prior
        self.max_iter = max_iter
        self.progress = progress

    def __sklearn_tags__(self) -> Any:
        """Return the tags, with `poor_score`: accuracy may be poor if the classes have no order."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit the model; the rows are read once for every Newton step.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d), or partitioned table
            Rows. A partitioned table (`discriminant.rows`) has its own labels and weights.
        y : array of shape (n,)
            Class labels; the order of an ordered categorical is used if `order` is None.
        sample_weight : array of shape (n,), default None
            Weight of each row.

        Returns
        -------
        self
        """
        self._check_options()
        table = self._open_table(X, y, sample_weight)
        self._fit_levels(table, self._levels(table.schema.labels, declared_order(y)))
        return self

    def _fit_table(self, table: AnyTable) -> None:
        self._fit_levels(table, self._levels(table.schema.labels, None))

    def _levels(self, labels: Labels, declared: list[Any] | None) -> Places:
        """Return the indices of the labels from the lowest to the highest class."""
        present = labels.tolist()
        if isinstance(self.order, str):  # `_check_options` allows 'sorted' only
            return np.arange(len(present))
        order = declared if self.order is None else np.asarray(self.order).tolist()
        if order is None:
            if not isinstance(present[0], str):
                return np.arange(len(present))
            try:  # files and databases give the labels as texts
                numbers = np.array(present, dtype=np.float64)
            except ValueError:
                raise LabelError.unordered(present) from None
            return np.argsort(numbers, kind="stable")
        code_of = {label: code for code, label in enumerate(present)}
        missing = [label for label in present if label not in order]
        if missing:
            raise LabelError.not_in_order(missing, order)
        return np.array([code_of[label] for label in order if label in code_of], dtype=np.intp)

    def _fit_levels(self, table: AnyTable, levels: Places) -> None:
        labels = table.schema.labels
        options = OrderedOptions(
            self.link,
            float(self.ridge),
            bool(self.standardize),
            int(self.max_iter),
            self.progress,
            smallest_row_weight(table),
        )
        totals = class_totals(table)
        share = totals / totals.sum()
        prior = share if self.prior is None else validate_prior(self.prior, labels)
        with merge_warnings(), one_blas_thread():
            result, moments, line = _fit(table, np.argsort(levels), options)
            m = len(labels) - 1
            thresholds = result.theta[:m, 0]
            tilt = np.log(prior) - np.log(share) if self.prior is not None else np.zeros(m + 1)
            rule = OrderedRule(labels, line, thresholds, levels, tilt, options.link)
            self.prior_ = prior
            self._set_report(result, moments, labels[levels], options)
            self._set_rule(table, rule)  # type: ignore[arg-type]

    def _set_report(
        self,
        result: OrderedResult,
        moments: ClassMoments | None,
        order: Labels,
        options: OrderedOptions,
    ) -> None:
        """Set the attributes about convergence, and warn if necessary."""
        end = result.descent
        self.link_ = options.link
        self.converged_ = end.converged and not result.separated
        self.n_passes_ = self.n_iter_ = end.passes
        self.loss_path_ = np.array(end.path)
        self._ordered_fit, self._why_not = None, ""
        if options.ridge:
            self._why_not = f"ridge={options.ridge:g} biases the estimates. Fit with ridge=0."
        elif result.separated:
            self._why_not = (
                "the classes are separated, so that no estimate is finite. Pass ridge > 0, or "
                "drop the column that separates them."
            )
            warn(SeparationWarning.of_ordered(order.tolist()))
        elif moments is None:
            self._why_not = "there are more columns than rows. Keep fewer columns."
        else:
            self._ordered_fit = ordered_state(result, moments, order)
        if not end.converged and not result.separated:
            facts = "The fit", end.passes, end.point.max_gradient, GRADIENT
            warn(NotConvergedWarning.of_gradient(*facts))
        if moments is not None:
            _check_order(result, moments, order)

    # --- fitted attributes --------------------------------------------------------------------

    @property
    def coef_(self) -> Floats:
        """Coefficients (d,) in the user's units."""
        self._check_is_fitted()
        return np.asarray(self.rule_.line.slopes()[0][0])

    @property
    def thresholds_(self) -> Floats:
        """Thresholds (K-1,) for `coef_`, increasing."""
        self._check_is_fitted()
        return np.asarray(self.rule_.thresholds - self.rule_.line.slopes()[1][0])

    @property
    def order_(self) -> npt.NDArray[Any]:
        """Classes (K,) from lowest to highest."""
        self._check_is_fitted()
        return np.asarray(self.classes_[self.rule_.levels])

    # --- prediction -----------------------------------------------------------------------------

    @overload
    def predict_proba(
        self, X: Any, prior: Prior | None = None, *, interval: None = None
    ) -> Floats: ...

    @overload
    def predict_proba(
        self, X: Any, prior: Prior | None = None, *, interval: float
    ) -> MeanIntervals: ...

    def predict_proba(
        self, X: Any, prior: Prior | None = None, *, interval: float | None = None
    ) -> Floats | MeanIntervals:
        """Compute the posterior probabilities of the classes, in the order of `classes_`.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Rows; columns of a data frame are matched by name.
        prior : array of shape (K,) or dict by label, default None
            Class priors to use in place of the fitted ones.
        interval : float or None, default None
            Confidence level of intervals of the probabilities, such as 0.95. None returns only the
            probabilities.

        Returns
        -------
        array of shape (n, K), or MeanIntervals
            With `interval`, a tuple (estimate, low, high) of arrays of shape (n, K). The ends come
            from a Wald interval of the log odds of each class against all others (delta method).
            Priors are regarded as known.
        """
        if interval is None:
            return super().predict_proba(X, prior)
        quantile = normal_quantile(check_interval(interval))
        inference = self.inference()
        unidentified = np.isnan(inference.std_error)
        if unidentified.any():
            names = np.array(inference.names, dtype=object)[unidentified]
            raise InferenceError.no_mean_error(list(names))
        assert self._ordered_fit is not None
        levels = self.rule_.levels
        tilt = self.rule_.tilt
        if prior is not None:
            tilt = tilt + np.log(validate_prior(prior, self.classes_)) - np.log(self.prior_)
        errors_of = partial(self._ordered_fit.log_odds_errors, tilt=tilt[levels])
        errors = self._score_rows(errors_of, X)
        reach = quantile * errors[:, np.argsort(levels)]
        ends = log_odds_ends(self._scores(X, prior), reach)
        return MeanIntervals(super().predict_proba(X, prior), *ends)

    def predict_linear(self, X: Any) -> Floats:
        """Compute the score x'w of each row, which is compared with `thresholds_`.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Rows.

        Returns
        -------
        array of shape (n,)
        """
        self._check_is_fitted()
        line = self.rule_.line
        at_zero = line.slopes()[1][0]
        return np.asarray(self._score_rows(line.values, X)[:, 0] - at_zero)

    # --- inference ------------------------------------------------------------------------------

    def summary(self, level: float = 0.95) -> OrderedSummary:
        """Summarise coefficients and thresholds: standard errors, tests and Wald intervals.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level of the intervals.

        Returns
        -------
        OrderedSummary
            `print` shows it in the layout of R's `polr`; `frame` and `to_dict` convert it.
        """
        inference = self.inference()
        return OrderedSummary(inference, check_level(level), tuple(self.order_.tolist()))

    def inference(self) -> Inference:
        """Return coefficients, then thresholds, with their covariance, tests and criteria."""
        self._check_is_fitted()
        if self._ordered_fit is None:
            raise InferenceError.of_logistic(self._why_not)
        return self._ordered_fit.infer(
            passes=self.n_passes_, steps=max(self.n_iter_ - 1, 0), converged=self.converged_
        )

    def _likelihood_peak(self, X: Any, y: Any, weight: Any, offset: Any) -> LikelihoodMaximum:
        assert self._ordered_fit is not None
        state, names = self._ordered_fit, self._schema if self._schema.named else None
        table: AnyTable = partitioned_or_none(X, y, weight) or as_table(
            X, y, weight=weight, labels=self.classes_, name="OrderedLogistic", match=names
        )
        self._check_width(table.width)
        objective = OrderedObjective(
            partial(fold, table),
            state.features,
            state.anchor,
            state.coordinates,
            np.argsort(self.rule_.levels),
            state.link,
            None,
        )
        return LikelihoodMaximum(objective, state.theta, table=table)

    # --- options --------------------------------------------------------------------------------

    def _check_options(self) -> None:
        check_choice("link", self.link, ORDERED_LINKS)
        check_ridge(self.ridge)
        self._require_bool("standardize")
        if not isinstance(self.max_iter, int | np.integer) or self.max_iter < 1:
            raise OptionError.of("max_iter", self.max_iter, "a whole number, 1 or more")
        if not (self.progress is None or callable(self.progress)):
            raise OptionError.of("progress", self.progress, "None or a function")
        if self.order is None or (isinstance(self.order, str) and self.order == "sorted"):
            return
        allowed = "None, 'sorted' or the classes from lowest to highest, each once"
        if isinstance(self.order, str) or np.ndim(self.order) != 1:
            raise OptionError.of("order", self.order, allowed)
        labels = np.asarray(self.order).tolist()
        if len(set(labels)) < len(labels):
            raise OptionError.of("order", self.order, allowed)


def _fit(
    table: AnyTable, positions: Places, options: OrderedOptions
) -> tuple[OrderedResult, ClassMoments | None, LinearRule]:
    """Fit a table.

    Return the result, the moments of the features and the score of the rows. The moments are None
    if there are more columns than rows, which are then fitted in the directions that they span.
    """
    standardize, directions = options.standardize, None
    if is_wide(len(table), table.width):
        whole = table_in_memory(table, "A fit to fewer rows than features")
        anchor = table_anchor(whole, intercept=True)
        directions = RowSpaceTable.from_table(whole, anchor, centred=True, standardize=standardize)
        table, standardize = directions.table, False
    moments = read_moments(table, detail="pooled")
    moments = moments.at(reading_anchor(moments, intercept=True))
    scale = penalty_factors(moments, standardize=standardize, intercept=True)
    sample = _sample(table) if len(table) > _SAMPLED else None
    result = fit_ordered(
        partial(fold, table), moments, positions, options, scale=scale, sample=sample
    )
    line = result.line()
    if directions is None:
        return result, moments, line
    return result, None, directions.to_features(line)


def _sample(table: AnyTable) -> Callable[[Any], Any] | None:
    """Return a function that makes a pass over a sample of the rows.

    Return None if the sample lacks a class, or is not much smaller than the table.
    """
    block: Block = sample_rows(table, share=START_SHARE)
    totals = np.bincount(block.codes, block.weight, minlength=len(table.schema.labels))
    if 4 * len(block) > len(table) or (totals == 0).any():
        return None
    return lambda reading: reading.read(block)


def _check_order(result: OrderedResult, moments: ClassMoments, order: Labels) -> None:
    """Warn if the mean scores of neighbouring classes are significantly in the wrong order."""
    objective = result.objective
    m = len(order) - 1
    coef = objective.coordinates.coefficients(result.theta[m:])[0][:, 0]
    places = np.argsort(objective.positions)
    means, weight = (moments.mean @ coef)[places], moments.weight[places]
    rows = moments.rows[places]
    variance = float(coef @ moments.pooled @ coef) / float(weight.sum())
    if variance <= 0.0:  # the score is constant within each class, up to rounding
        return
    drop = means[:-1] - means[1:]
    error = np.sqrt(variance * (1.0 / rows[:-1] + 1.0 / rows[1:]))
    labels = order.tolist()
    for k in np.flatnonzero(drop > _REVERSED * error)[:1]:
        warn(ClassOrderWarning.of(labels[k], labels[k + 1], float(drop[k] / error[k])))
