"""Logistic regression by maximum likelihood, with penalties, separation checks and inference.

The rows are read once for their moments and then once for each iteration. The solution does not
depend on the solver, nor on the units and origin of the columns. The coordinates in which a table
is fitted depend on its shape and on the penalty:

    tall      whitened coordinates from the products of the features
    wide      the directions that the rows span, for more features than rows
    sparse    scaled columns alone, for too many sparse features to form their products
    net       the columns themselves, for a penalty on absolute values

Standard errors and tests are in `linear.maximum_likelihood`, robust errors in
`linear.robust_errors_and_influence`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from discriminant.assessment.inference.coefficient_summary import (
    CoefficientSummary,
    Inference,
    PenalisedSummary,
)
from discriminant.assessment.inference.mean_intervals import (
    MeanIntervals,
    log_odds_ends,
    normal_quantile,
)
from discriminant.assessment.inference.profile_likelihood import LikelihoodMaximum
from discriminant.assessment.inference.wald import (
    INTERCEPT,
    ClassFit,
    inference_state,
)
from discriminant.assessment.resampling.penalty_search import (
    CRITERIA,
    ChoiceRule,
    Criterion,
    PenaltyPath,
    PenaltySearch,
    check_penalty,
    is_cv,
    logistic_penalty_path,
)
from discriminant.engines.dispatch import fold, read_moments
from discriminant.engines.local import available_threads, one_blas_thread
from discriminant.engines.partitioned_table import AnyTable, PartitionedTable, table_in_memory
from discriminant.engines.summation import ordered_map
from discriminant.engines.threads import thread_pool
from discriminant.errors import (
    InferenceError,
    NoPenaltyWarning,
    NotConvergedWarning,
    OptionError,
    SeparationWarning,
    merge_warnings,
    warn,
)
from discriminant.estimators.base import (
    Prior,
    WeightedIterativeClassifier,
    check_choice,
    class_totals,
    partitioned_or_none,
    predicted_codes,
    second_minus_first,
)
from discriminant.estimators.linear.iterative import (
    ClassWeight,
    LinearClassifier,
    RowSpaceTable,
    class_shares,
    class_weight_factors,
)
from discriminant.estimators.linear.linear_regressor import table_anchor
from discriminant.estimators.linear.maximum_likelihood import check_interval, check_level
from discriminant.estimators.linear.robust_errors_and_influence import (
    BinaryGoodnessOfFit,
    Covariance,
)
from discriminant.models.gaussian.family import validate_prior
from discriminant.models.gaussian.wide import is_wide
from discriminant.models.linear.elastic_net import ColumnScales, fit_elastic_net
from discriminant.models.linear.logistic import (
    FEW_COEFFICIENTS,
    SOLVERS,
    JeffreysLoss,
    LogisticFit,
    LogisticOptions,
    Solver,
    fit_logistic,
    fit_logistic_scaled,
    penalty_factors,
)
from discriminant.models.linear.optimise import GRADIENT, PenalisedLoss
from discriminant.models.linear.preconditioning import Coordinates
from discriminant.models.linear.separation import Separation, detect_separation
from discriminant.models.linear.truncated_newton import Each
from discriminant.models.rules import LinearRule
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.glm_families import Deviance
from discriminant.moments.loss_gradient_sums import Pass
from discriminant.moments.qr_factor import ColumnSums, ColumnSumsReading
from discriminant.moments.softmax_loss import LINK_TAILS, BinaryLoss, LinkName, SoftmaxLoss
from discriminant.posterior import log_posterior, posterior
from discriminant.table.blocks import Block, Features, Floats, Labels, is_sparse
from discriminant.table.memory import Table, as_table

_MAX_PRODUCTS = 1500  # features of sparse rows beyond which their products are not formed
_LONG_TABLE = 5_000_000  # numbers in a table that is not read again only to confirm convergence
_MIN_PRODUCTS_OF_THREADS = 10_000_000  # in a product of rows and scores, for threads to be faster
START_SHARE = 1 / 16  # share of the rows to which a starting point is fitted
_MIN_SAMPLE = 2048  # rows of a sample, if there are as many
_SAMPLE = 1 << 21  # numbers in the sample of rows for the initial curvature


class Logistic(BinaryGoodnessOfFit, WeightedIterativeClassifier, LinearClassifier):
    """Logistic regression for two or more classes.

    Models  log P(k|x) = x'w_k + b_k - log sum_j exp(x'w_j + b_j)  and minimises

        mean of -log P(class|x)  +  ridge (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2)

    The intercepts are not penalised. For separated classes no finite maximum of the likelihood
    exists; separation is detected and reported (`separation_`).

    Parameters
    ----------
    link : {'logit', 'probit', 'cloglog', 'cauchit'}, default 'logit'
        Link function. All but 'logit' require two classes.
    ridge : float or 'cv', default 0.0
        Strength of the penalty. With ridge=0 the model is fitted by maximum likelihood. 'cv': the
        penalty is chosen by cross-validation on the rows of the fit, which must be in memory.
    l1_ratio : float, default 0.0
        Share of the penalty on absolute coefficients, from 0 (ridge) to 1 (lasso); values in
        between are the elastic net. If l1_ratio is above 0, some coefficients may be exactly zero.
    standardize : bool, default True
        True: penalise the coefficients of standardised columns. False: penalise the coefficients of
        the columns in their own units.
    intercept : bool, default True
        Whether to fit intercepts.
    class_weight : None, 'balanced' or dict by label, default None
        Cost of misclassifying a row of each class. The fit weights the rows by these costs, and
        `predict` minimises the expected cost. The intercepts are corrected after the fit (King &
        Zeng 2001), so that probabilities refer to the unweighted rows; the predicted class is then
        not always the most probable class. With intercept=False, probabilities refer to the
        weighted rows.
    prior : array of shape (K,), dict by label or None, default None
        Class priors for prediction. None means the class shares of the rows.
    bias_reduction : {None, 'jeffreys'}, default None
        'jeffreys': Firth's penalty. The estimates are finite even for separated classes, and less
        biased if there are few rows.
    solver : {'auto', 'newton', 'lbfgs', 'gradient'}, default 'auto'
        Optimiser. All optimisers reach the same solution.
    max_iter : int, default 1000
        Maximum number of passes over the rows.
    progress : callable or None, default None
        Called after every pass with its number, the loss and the largest entry of the gradient.
    ridges : None, int or array of shape (P,), default None
        Penalties that ridge='cv' compares. An array lists the penalties; a number is how many to
        try, on a geometric sequence that starts where coefficients are nearly zero. None means 50
        penalties.
    folds : int, array of shape (n,) or splitter, default 10
        Folds for ridge='cv': their number, stratified by class, or the fold of each row. A class
        whose rows are all in one fold is never held out.
    criterion : {'log_loss', 'error'}, default 'log_loss'
        Held-out measure for ridge='cv'. Rows have the same weights as in the fit.
    rule : {'min', 'one_se'}, default 'min'
        Choice for ridge='cv'. 'min': the penalty with the smallest held-out loss. 'one_se': the
        largest penalty whose loss is within one standard error of the smallest.

    Attributes
    ----------
    ridge_ : float
        Penalty of the fit.
    path_ : PenaltyPath or None
        With ridge='cv': penalties, mean held-out losses, their standard errors, and the number of
        features with non-zero coefficients.
    coef_, intercept_ : arrays of shape (K, d) and (K,); (1, d) and (1,) for two classes
        Coefficients in the user's units. With two classes, they are the coefficients of the log
        odds of `classes_[1]` (for the logit link); with more classes, coefficients sum to zero over
        the classes.
    prior_ : array of shape (K,)
        Class priors that the posteriors assume: `prior`, or the class shares of the rows.
    separation_ : {'none', 'quasi', 'complete'} or None
        Whether the classes are separated. None if separation was not tested, because a penalty
        keeps the coefficients finite.
    separation_found_ : Separation or None
        Which columns separate which classes, if any do.
    converged_ : bool
        Whether the gradient for standardised columns is at most 1e-8, the Newton decrement is at
        most 1e-10, and no classes are separated.
    n_passes_, n_iter_ : int
        Number of passes over the rows during the iteration. Products of the curvature with a
        vector, which many classes with a ridge need, are not counted.
    loss_path_ : array of shape (passes,)
        Penalised mean loss at each pass.
    link_ : str
        Link function of the fit.

    See Also
    --------
    LDA : Linear boundaries from Gaussian classes, fitted in one pass.
    GLM : Binomial regression of proportions, and other families.
    Reweighted : Class weights for any classifier.

    References
    ----------
    .. [1] King & Zeng (2001), Logistic regression in rare events data.
    .. [2] Firth (1993), Bias reduction of maximum likelihood estimates.
    .. [3] Friedman, Hastie & Tibshirani (2010), Regularization paths for generalized linear models
       via coordinate descent.

    Examples
    --------
    >>> model = Logistic().fit([[0.0], [0.0], [0.0], [1.0], [1.0], [1.0]], list("aabbba"))
    >>> model.coef_.round(3).tolist()  # log odds ratio: log (2/1) - log (1/2)
    [[1.386]]
    >>> model.predict_proba([[1.0]]).round(3).tolist()
    [[0.333, 0.667]]
    """

    link_: LinkName
    separation_: str | None
    separation_found_: Separation | None
    ridge_: float
    path_: PenaltyPath | None = None
    _kept: ClassFit | None  # state for `inference`; None if there is no valid inference
    _partitions = True

    def __init__(
        self,
        link: LinkName = "logit",
        *,
        ridge: float | Literal["cv"] = 0.0,
        l1_ratio: float = 0.0,
        standardize: bool = True,
        intercept: bool = True,
        class_weight: ClassWeight | None = None,
        prior: Prior | None = None,
        bias_reduction: Literal["jeffreys"] | None = None,
        solver: Solver = "auto",
        max_iter: int = 1000,
        progress: Callable[[int, float, float], object] | None = None,
        ridges: int | npt.ArrayLike | None = None,
        folds: Any = 10,
        criterion: Criterion = "log_loss",
        rule: ChoiceRule = "min",
    ) -> None:
        self.link = link
        self.ridge = ridge
        self.l1_ratio = l1_ratio
        self.standardize = standardize
        self.intercept = intercept
        self.class_weight = class_weight
        self.prior = prior
        self.bias_reduction = bias_reduction
        self.solver = solver
        self.max_iter = max_iter
        self.progress = progress
        self.ridges = ridges
        self.folds = folds
        self.criterion = criterion
        self.rule = rule

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags; `poor_score` is set if there is no intercept."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = not self.intercept
        return tags

    def _fit_table(self, table: AnyTable) -> None:
        options, labels = self._solver_options(), table.schema.labels
        if len(labels) > 2 and options.link != "logit":
            raise OptionError.of("link", options.link, f"'logit' for {len(labels)} classes")
        with merge_warnings(), one_blas_thread():
            if options.l1_ratio and not self.ridge:
                warn(NoPenaltyWarning.of("l1_ratio", options.l1_ratio))
            costs = class_weight_factors(self.class_weight, table)
            weighted = table if costs is None else _reweight(table, costs)
            options = self._choose_penalty(weighted, options)
            result = fit_table(weighted, options)
            self._set_report(result, options, weighted=costs is not None)
            corrected = costs if options.intercept else None
            self._log_cost = np.zeros(len(labels)) if corrected is None else np.log(corrected)
            share = class_shares(table if options.intercept else weighted)
            self._tilt = self._prior_correction(share, labels)
            self._set_rule(table, self._with_prior(result.rule))

    def _choose_penalty(self, table: AnyTable, options: LogisticOptions) -> LogisticOptions:
        """Return the options with the penalty chosen by cross-validation, and set `path_`."""
        self.path_ = None
        if not is_cv(self.ridge):
            return options
        rows = table_in_memory(table, "A penalty chosen by cross-validation")
        self.path_ = logistic_penalty_path(rows, options, self._penalty_search())
        return replace(options, ridge=self.path_.ridge)

    def _set_report(self, result: TableFit, options: LogisticOptions, *, weighted: bool) -> None:
        """Set the attributes about convergence and separation, and warn if necessary."""
        end, separation = result.fit.descent, result.separation
        self.link_, self.ridge_ = options.link, options.ridge
        self.separation_ = None if separation is None else separation.kind
        self.separation_found_ = separation or None
        self.converged_ = end.converged and not separation
        self.n_passes_ = self.n_iter_ = end.passes
        self.loss_path_ = np.array(end.path)
        maximal = not weighted and (end.converged or not options.jeffreys)
        self._kept = result.inference if maximal else None
        self._why_not = _why_no_inference(result, options, weighted=weighted)
        if separation:
            warn(SeparationWarning.of(separation.kind, separation.columns, separation.classes))
        elif not end.converged:
            remedy = ["drop nearly collinear columns"] if self.bias_reduction else []
            facts = "The fit", end.passes, end.point.max_gradient, GRADIENT
            warn(NotConvergedWarning.of_gradient(*facts, *remedy))

    def _prior_correction(self, share: Floats, labels: Labels) -> Floats:
        """Return terms (K,) to add to log posteriors, and set `prior_`.

        The terms undo the effect of class weights and replace the class shares by `prior`.
        """
        self.prior_ = share
        if self.prior is None:
            return -self._log_cost
        self.prior_ = validate_prior(self.prior, labels)
        return np.asarray(np.log(self.prior_) - np.log(share) - self._log_cost)

    def _with_prior(self, rule: LinearRule) -> LinearRule:
        """Return the rule with the prior correction added to the intercepts; logit link only."""
        if self.link_ != "logit" or not self._tilt.any():
            return rule
        tilt = self._tilt if len(rule.intercept) > 1 else self._tilt[1:] - self._tilt[:1]
        return replace(rule, intercept=rule.intercept + tilt)

    # --- for export: posteriors are computed from `rule_` and the next two properties -------------

    @property
    def cost_lift_(self) -> Floats:
        """Log costs of misclassification (K,), which only `predict` adds to the log posteriors."""
        self._check_is_fitted()
        return self._log_cost

    @property
    def prior_lift_(self) -> Floats:
        """Terms (K,) that are added to log posteriors for priors and class weights.

        With the logit link, `rule_` already includes these terms.
        """
        self._check_is_fitted()
        return self._tilt

    # --- prediction -----------------------------------------------------------------------------

    def predict(self, X: Any, prior: Prior | None = None) -> npt.NDArray[Any]:
        """Predict the most probable class of each row; with `class_weight`, the class of least
        expected cost.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Rows; columns of a data frame are matched by name.
        prior : array of shape (K,) or dict by label, default None
            Class priors to use in place of the fitted ones.

        Returns
        -------
        array of shape (n,)
            Labels.
        """
        if prior is None and self._fast and not self._log_cost.any():
            return super().predict(X)
        scores = self._log_scores(X, prior) + self._log_cost
        return np.asarray(self.classes_[predicted_codes(scores)])

    def predict_log_proba(self, X: Any, prior: Prior | None = None) -> Floats:
        """Return log posteriors (n, K), accurate for very small probabilities too.

        Arguments are as in `predict`.
        """
        return log_posterior(self._log_scores(X, prior))

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
        """Compute the posterior probabilities of the classes.

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
            With `interval`, a tuple (estimate, low, high) of arrays of shape (n, K). With two
            classes, the ends of a Wald interval of the score are transformed by the inverse link;
            with more classes, those of a Wald interval of the log odds of each class against all
            others. Priors are regarded as known.
        """
        if interval is not None:
            return self._probability_intervals(X, prior, check_interval(interval))
        if prior is None and self._fast:
            return self._map_scores(self._prediction_rule(X).scores, posterior, X)
        return posterior(self._log_scores(X, prior))

    def decision_function(self, X: Any) -> Floats:
        """Return the scores (n, K) that `predict` compares; for two classes, the difference (n,).

        With `class_weight`, scores are the logs of `predict_proba` plus the logs of the class
        weights.
        """
        return second_minus_first(self._log_scores(X, None) + self._log_cost)

    @property
    def _fast(self) -> bool:
        """Whether the posterior is the softmax of the scores of `rule_`."""
        self._check_is_fitted()
        return self.link_ == "logit"

    def _probability_intervals(self, X: Any, prior: Prior | None, level: float) -> MeanIntervals:
        """Return the probabilities with their intervals, by the delta method."""
        self._check_is_fitted()
        errors, quantile = self._score_errors(), normal_quantile(level)
        probabilities = self.predict_proba(X, prior)
        if len(self.classes_) > 2:

            def log_odds_errors(features: Features) -> Floats:
                return errors.of_log_odds(features, shifted(features))

            def shifted(features: Features) -> Floats:
                return self._class_scores(self.rule_.scores(features), prior)

            reach = quantile * self._score_rows(log_odds_errors, X)
            ends = log_odds_ends(self._log_scores(X, prior), reach)
            return MeanIntervals(probabilities, *ends)
        scores, reach = self._rule_scores(X), quantile * self._score_rows(errors.of_score, X)
        below = posterior(self._class_scores(scores - reach, prior))
        above = posterior(self._class_scores(scores + reach, prior))
        low = np.column_stack([above[:, 0], below[:, 1]])
        high = np.column_stack([below[:, 0], above[:, 1]])
        return MeanIntervals(probabilities, low, high)

    def _log_scores(self, X: Any, prior: Prior | None) -> Floats:
        """Return log posteriors (n, K) up to a constant for each row."""
        return self._class_scores(self._rule_scores(X), prior)

    def _class_scores(self, scores: Floats, prior: Prior | None) -> Floats:
        """Return log posteriors (n, K), up to a constant for each row, from scores of the rule."""
        if self.link_ != "logit":
            # logs of tail probabilities that underflow are -inf
            with np.errstate(over="ignore", invalid="ignore"):
                sides = LINK_TAILS[self.link_](scores[:, 0])
            scores = np.column_stack([sides.log_zero, sides.log_one]) + self._tilt
        elif scores.shape[1] == 1:
            odds = scores[:, 0]
            infinite = odds == np.inf  # the score of one of the two classes must be finite
            first, second = np.where(infinite, -np.inf, 0.0), np.where(infinite, 0.0, odds)
            scores = np.column_stack([first, second])
        if prior is None:
            return scores
        return np.asarray(
            scores + np.log(validate_prior(prior, self.classes_)) - np.log(self.prior_)
        )

    # --- inference ----------------------------------------------------------------------------

    def summary(
        self,
        level: float = 0.95,
        cov: Covariance | None = None,
        X: Any = None,
        y: Any = None,
        sample_weight: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
    ) -> CoefficientSummary | PenalisedSummary:
        """Summarise the coefficients: standard errors, tests and Wald intervals.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level of the intervals.
        cov : {None, 'HC0', 'HC1', 'HC2', 'HC3', 'cluster'}, default None
            Covariance of the estimates. None means the inverse of the curvature. 'HC0' to 'HC3':
            the sandwich estimate. 'cluster': the sandwich estimate for rows that are dependent
            within `groups`.
        X, y, sample_weight
            The rows of the fit, needed for `cov` because a model does not store them.
        offset
            Not used: a logistic model has no offset.
        groups : array of shape (n,), default None
            Cluster of each row, for cov='cluster'.

        Returns
        -------
        CoefficientSummary or PenalisedSummary
            `print` shows it as a table; `frame` and `to_dict` convert it. With ridge > 0 the
            summary has coefficients without standard errors.
        """
        self._check_is_fitted()
        penalised = self._kept is None and self._why_not.startswith("ridge=")
        if cov is not None or not penalised:
            return super().summary(level, cov, X, y, sample_weight, offset, groups)
        check_level(level)
        labels = self.classes_.tolist()
        names = (*((INTERCEPT,) if self.intercept else ()), *self._schema.features)
        free = [self.intercept_[:, None]] if self.intercept else []
        theta = np.hstack([*free, self.coef_])
        if len(labels) > 2:
            theta = theta[1:] - theta[0]
        return PenalisedSummary(
            "Logistic" if self.link_ == "logit" else f"Logistic, link {self.link_}",
            names * len(theta),
            None
            if len(labels) == 2
            else tuple(label for label in labels[1:] for _ in range(len(names))),
            labels[0],
            labels[1] if len(labels) == 2 else None,
            theta.ravel(),
            f"No standard errors or tests: {self._why_not}",
        )

    def inference(self) -> Inference:
        """Return the estimates with their covariance, tests and information criteria."""
        self._check_is_fitted()
        if self._kept is None:
            raise InferenceError.of_logistic(self._why_not)
        title = "Logistic" if self.link_ == "logit" else f"Logistic, link {self.link_}"
        return self._kept.infer(
            title, passes=self.n_passes_, steps=self.n_iter_, converged=self.converged_
        )

    def _likelihood_peak(self, X: Any, y: Any, weight: Any, offset: Any) -> LikelihoodMaximum:
        assert self._kept is not None
        state, names = self._kept, self._schema if self._schema.named else None
        table: AnyTable = partitioned_or_none(X, y, weight) or as_table(
            X, y, weight=weight, labels=self.classes_, name="Logistic", match=names
        )
        self._check_width(table.width)
        K = len(self.classes_)
        loss = SoftmaxLoss(K) if K > 2 else BinaryLoss(self.link_)
        read = partial(fold, table)
        objective: Any = PenalisedLoss(
            read, state.features, state.anchor, loss, state.coordinates, None
        )
        if self.bias_reduction is not None:
            objective = JeffreysLoss(objective, state.coordinates)
        return LikelihoodMaximum(objective, state.theta, table=table)

    def _row_coordinates(self) -> tuple[Anchor, Coordinates, Deviance | None]:
        assert self._kept is not None
        loss = None if len(self.classes_) > 2 else Deviance("binomial", self.link_)
        return self._kept.anchor, self._kept.coordinates, loss

    def _summed_curvature(self) -> Floats:
        assert self._kept is not None and self._kept.slope.curvature is not None
        return self._kept.coordinates.curvature(self._kept.slope.curvature)

    # --- options --------------------------------------------------------------------------------

    def _check_options(self) -> None:
        check_choice("link", self.link, LINK_TAILS)
        check_penalty(self.ridge)
        if is_cv(self.ridge):
            check_choice("criterion", self.criterion, CRITERIA)
            self._penalty_search().check()
        l1_ratio: Any = self.l1_ratio
        if not (isinstance(l1_ratio, Real) and 0.0 <= float(l1_ratio) <= 1.0):
            raise OptionError.of("l1_ratio", l1_ratio, "a number from 0 to 1")
        check_choice("solver", self.solver, SOLVERS)
        if self.bias_reduction not in (None, "jeffreys"):
            raise OptionError.of("bias_reduction", self.bias_reduction, "None or 'jeffreys'")
        if self.bias_reduction and self.solver != "auto":
            raise OptionError.of("solver", self.solver, "'auto' with bias_reduction='jeffreys'")
        if self.bias_reduction and (self.link != "logit" or self.ridge):
            raise OptionError.of(
                "bias_reduction", self.bias_reduction, "None, unless link='logit' and ridge=0"
            )
        if not isinstance(self.max_iter, int | np.integer) or self.max_iter < 1:
            raise OptionError.of("max_iter", self.max_iter, "a whole number, 1 or more")
        self._require_bool("standardize", "intercept")
        if not (self.progress is None or callable(self.progress)):
            raise OptionError.of("progress", self.progress, "None or a function")

    def _penalty_search(self) -> PenaltySearch:
        options = self.options_in_effect()
        return PenaltySearch(options["ridges"], options["folds"], self.criterion, self.rule)

    def _solver_options(self) -> LogisticOptions:
        """Return the options of a fit; a penalty to be chosen by cross-validation is 0 at first."""
        return LogisticOptions(
            self.link,
            0.0 if is_cv(self.ridge) else float(self.ridge),
            bool(self.standardize),
            bool(self.intercept),
            self.bias_reduction is not None,
            self.solver,
            int(self.max_iter),
            self.progress,
            float(self.l1_ratio),
        )


def _why_no_inference(result: TableFit, options: LogisticOptions, *, weighted: bool) -> str:
    """Return the reason why there is no inference and what to do, as text."""
    if options.ridge:
        return f"ridge={options.ridge:g} biases the estimates. Fit with ridge=0."
    if result.separation:
        return (
            f"the classes are separated ({result.separation.kind}), so that no estimate is finite. "
            'Use bias_reduction="jeffreys" to get finite estimates.'
        )
    if weighted:
        return (
            "class_weight counts rows of some classes more than once. Fit without it, and give "
            "costs to the decision instead (Decision)."
        )
    if options.jeffreys and not result.fit.descent.converged:
        steep = result.fit.descent.point.max_gradient
        return (
            f"the fit has not converged (the scaled gradient is {steep:.1e}). Raise max_iter, or "
            "drop nearly collinear columns."
        )
    if result.wide:
        return "there are more columns than rows. Keep fewer columns."
    return (
        "the Hessian was not computed, because there are too many coefficients. "
        'solver="newton" always computes it.'
    )


def _reweight(table: AnyTable, factors: Floats) -> AnyTable:
    if isinstance(table, PartitionedTable):
        return table.reweight(factors)
    weight = factors[table.codes]
    return replace(table, weight=weight if table.weight is None else weight * table.weight)


# --- fitting in coordinates that depend on the shape of the table ---------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class TableFit:
    """Fit of a logistic model to a table."""

    fit: LogisticFit
    rule: LinearRule  # K scores; with two classes a single one
    separation: Separation | None = None  # None if separation was not tested
    inference: ClassFit | None = None  # None if there is no valid inference
    wide: bool = False  # whether there are more features than rows


def fit_table(table: AnyTable, options: LogisticOptions) -> TableFit:
    """Fit a table in coordinates that depend on its shape and on the penalty."""
    options = replace(
        options,
        skip_confirmation=len(table) * table.width > _LONG_TABLE,
        min_row_weight=smallest_row_weight(table),
        reuse_curvature=not isinstance(table, PartitionedTable),
    )
    if options.ridge and options.l1_ratio:
        return _fit_net(table, options)
    if is_large_sparse(table):
        return _fit_sparse(table_in_memory(table, "A fit to sparse rows"), options)
    if is_wide(len(table), table.width):
        return _fit_wide(table_in_memory(table, "A fit to fewer rows than features"), options)
    return _fit_tall(table, options)


def _fit_tall(table: AnyTable, options: LogisticOptions) -> TableFit:
    read = partial(fold, table)
    moments = read_moments(table, detail="pooled")
    has_test = not (options.ridge or options.jeffreys)
    test = partial(_test_separation, read, moments, options.intercept) if has_test else None
    rows = None
    if isinstance(table, Table) and not is_sparse(table.features):
        rows = partial(table.block, 0, len(table))
    fit = fit_logistic(
        read,
        moments,
        _sample_for(table, options),
        options,
        test=test,
        rows=rows,
        each=_on_threads(len(table) * table.width * len(moments.labels)),
    )
    rule = fit.rule(table.schema.labels)
    if options.ridge:
        return TableFit(fit, rule)
    separation = fit.separation
    if separation is None and fit.overlap and not options.jeffreys:
        separation = Separation("none", None, (), (), 0)
    elif separation is None and test is not None:
        assert isinstance(fit.coordinates, Coordinates)
        separation = test(fit.coordinates, fit.anchor, fit.descent.theta)
    state = None if separation else inference_state(fit, read, moments, options.link)
    return TableFit(fit, rule, separation, state)


def _on_threads(products: int) -> Each:
    """Return a function that maps parts of the rows on all cores, or `map` for few products."""
    threads = 1 if products < _MIN_PRODUCTS_OF_THREADS else available_threads()
    if threads == 1:
        return map
    return lambda work, parts: ordered_map(thread_pool(threads), work, parts, 2 * threads)


def _fit_wide(table: Table, options: LogisticOptions) -> TableFit:
    """Fit in the directions that the rows span, with standardised columns."""
    anchor = table_anchor(table, intercept=options.intercept)
    directions = RowSpaceTable.from_table(
        table, anchor, centred=options.intercept, standardize=options.standardize
    )
    result = _fit_tall(directions.table, replace(options, standardize=False))
    separation = result.separation
    if separation:
        separation = replace(separation, columns=table.schema.features, direction=None)
    return TableFit(result.fit, directions.to_features(result.rule), separation, wide=True)


def _fit_sparse(table: Table, options: LogisticOptions) -> TableFit:
    if not options.ridge or options.jeffreys:
        allowed = (
            f"more than 0 for sparse rows of {table.width} features (1/{len(table)}, one over "
            "the rows, is what liblinear calls C=1), without bias_reduction"
        )
        raise OptionError.of("ridge", options.ridge, allowed)
    if options.solver not in ("auto", "lbfgs"):
        allowed = f"'auto' or 'lbfgs' for sparse rows of {table.width} features"
        raise OptionError.of("solver", options.solver, allowed)
    fit = fit_logistic_scaled(
        partial(fold, table),
        read_column_sums(table),
        class_totals(table),
        sample_rows(table),
        features=table.schema.features,
        options=options,
    )
    return TableFit(fit, fit.rule(table.schema.labels))


def _fit_net(table: AnyTable, options: LogisticOptions) -> TableFit:
    if isinstance(table, Table) and is_large_sparse(table):
        sums, features = read_column_sums(table), table.schema.features
        columns = ColumnScales.of_sums(sums, features=features, weight=class_totals(table))
    else:
        moments = read_moments(table, detail="diagonal")
        columns = ColumnScales.of_moments(moments, intercept=options.intercept)
    fit = fit_elastic_net(partial(fold, table), columns, options)
    return TableFit(fit, fit.rule(table.schema.labels))


def is_large_sparse(table: AnyTable) -> bool:
    """Return whether rows are sparse and have too many columns to form products of features."""
    if isinstance(table, PartitionedTable):
        return False
    return is_sparse(table.features) and table.width > _MAX_PRODUCTS


def _test_separation(
    read: Pass,
    moments: ClassMoments,
    intercept: bool,
    coordinates: Coordinates,
    anchor: Anchor,
    theta: Floats,
) -> Separation:
    """Test for separated classes: first by the scores of theta, then by linear programming."""
    start = np.vstack(coordinates.coefficients(theta))
    if start.shape[1] == 1:
        start = np.hstack([-start, start])
    return detect_separation(
        read,
        anchor=anchor,
        features=moments.features,
        labels=moments.labels,
        spread=penalty_factors(moments.at(anchor), standardize=True, intercept=intercept),
        start=start,
        intercept=intercept,
    )


def read_column_sums(table: Table) -> ColumnSums:
    """Read the mean of each column, and in a second pass the sums of each column about its mean."""
    features = table.schema.features
    first: ColumnSums = fold(table, ColumnSumsReading(features, np.zeros(table.width)))
    return fold(table, ColumnSumsReading(features, first.mean))


def smallest_row_weight(table: AnyTable) -> float:
    """Return the smallest positive weight of a row."""
    if isinstance(table, PartitionedTable):
        return table.min_weight
    if table.weight is None:
        return 1.0
    return float(np.min(table.weight, where=table.weight > 0, initial=np.inf))


def _sample_for(table: AnyTable, options: LogisticOptions) -> Block:
    """Return the sample for a fit: small if it is used only for the start of Newton's method."""
    size = (table.width + 1) * (len(table.schema.labels) - 1)
    newton = options.solver == "newton" or (options.solver == "auto" and size <= FEW_COEFFICIENTS)
    return sample_rows(table, share=START_SHARE if newton and not options.jeffreys else 0.2)


def sample_rows(table: AnyTable, *, share: float = 0.2) -> Block:
    """Draw a quasi-random sample of rows with positive weight, without replacement.

    `share` is the share of rows to sample; the size of the sample is bounded for short and long
    tables.
    """
    if isinstance(table, PartitionedTable):
        table = table.sample
    weighted = None if table.weight is None else np.flatnonzero(table.weight > 0)
    rows = len(table) if weighted is None else len(weighted)
    largest = int(np.clip(_SAMPLE // table.numbers_per_row, _MIN_SAMPLE, 32768))
    count = min(rows, largest, max(_MIN_SAMPLE, int(share * rows)))
    if count == len(table):
        return table.block(0, count)
    places = np.arange(count) + np.random.default_rng(0).random(count)
    chosen = (places * (rows / count)).astype(np.intp)  # sorted
    chosen = chosen[np.diff(chosen, prepend=-1) > 0]
    sample = table.take(chosen if weighted is None else weighted[chosen])
    return sample.block(0, len(sample))
