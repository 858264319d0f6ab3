"""Generalised linear models (GLM) and log-linear regression.

    g(E y) = x'w + b + offset        g: link, y: from an exponential family

The estimators validate responses, offsets and options, and choose the coordinates in which a table
is fitted. Most tables are fitted with the products of their features. Tables with more features
than rows are fitted in the directions that the rows span; tables with very many sparse features are
fitted with scaled columns. The iterations are in `models.linear.glm`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, Self, overload

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from discriminant.assessment.inference.coefficient_summary import Inference, Likelihood
from discriminant.assessment.inference.mean_intervals import (
    MeanIntervals,
    mean_ends,
    normal_quantile,
)
from discriminant.assessment.inference.profile_likelihood import LikelihoodMaximum
from discriminant.assessment.inference.wald import identified_features, infer
from discriminant.assessment.resampling.penalty_search import (
    ChoiceRule,
    PenalisedModel,
    PenaltyPath,
    PenaltySearch,
    check_penalty,
    fit_net,
    is_cv,
    penalty_path,
    warn_response_in_one_fold,
)
from discriminant.engines.dispatch import fold, read_moments
from discriminant.engines.local import one_blas_thread
from discriminant.errors import (
    BoundaryWarning,
    InferenceError,
    NoEstimateError,
    NoPenaltyWarning,
    NotConvergedWarning,
    OffsetError,
    OptionError,
    ResponseError,
    ShapeError,
    TooFewRowsError,
    merge_warnings,
    warn,
)
from discriminant.estimators.base import IterativeEstimator, check_choice
from discriminant.estimators.linear.iterative import RowSpaceTable
from discriminant.estimators.linear.linear_regressor import (
    check_ridge,
    table_anchor,
    validate_responses,
)
from discriminant.estimators.linear.logistic import (
    START_SHARE,
    is_large_sparse,
    read_column_sums,
    sample_rows,
)
from discriminant.estimators.linear.maximum_likelihood import check_interval
from discriminant.estimators.linear.robust_errors_and_influence import RowInference
from discriminant.models.gaussian.wide import is_wide
from discriminant.models.linear.glm import (
    GLMFit,
    GLMProblem,
    RescaledObjective,
    ScoringResult,
    fit_glm,
    fit_glm_scaled,
    fit_null,
    make_fit,
)
from discriminant.models.linear.optimise import (
    GRADIENT,
    OptimisationResult,
    PenalisedLoss,
    Progress,
)
from discriminant.models.linear.penalty_path import HalfDeviance
from discriminant.models.linear.preconditioning import Coordinates
from discriminant.models.rules import LinearRule
from discriminant.moments.anchor import Anchor
from discriminant.moments.glm_families import (
    FREE_DISPERSION,
    LINKS,
    Deviance,
    SaturatedLikelihood,
    SaturatedLikelihoodReading,
    half_deviance,
    log_likelihood,
)
from discriminant.table.blocks import Floats, Schema
from discriminant.table.labels import as_vector
from discriminant.table.memory import Table, as_table, check_weight

_RANGES: dict[str, tuple[str, Callable[[Floats], Any]]] = {
    "binomial": ("a share from 0 to 1", lambda y: (y >= 0) & (y <= 1)),
    "poisson": ("a number that is 0 or more", lambda y: y >= 0),
    "gamma": ("a number above 0", lambda y: y > 0),
}


class Responses(NamedTuple):
    """Response and weight of each row."""

    response: Floats  # (n,)
    weight: Floats | None  # (n,)

    def mean(self, values: Floats) -> float:
        """Return the weighted mean of `values` (n,); rows of weight zero are ignored."""
        if self.weight is None:
            return float(values.mean())
        weighted = self.weight > 0
        return float(np.average(values[weighted], weights=self.weight[weighted]))


def validate_glm_responses(y: Any, weight: Any, *, family: str, name: str) -> Responses:
    """Validate responses and weights: one response per row, in the range of the family.

    For the binomial family, y may have two columns, successes and failures, as in R. The response
    is then the share of successes, and the weight is multiplied by the number of trials.
    """
    if family == "binomial":
        _reject_class_names(y, name)
        counts = validate_responses(y, name) if y is not None else None
        if counts is not None and counts.ndim == 2 and counts.shape[1] == 2:
            return _shares_of_trials(counts, weight)
    response = validate_single_response(y, name)
    if family in _RANGES:
        allowed, within = _RANGES[family]
        instead = "choose another family"
        if family == "binomial":
            instead = "pass two columns, successes and failures"
        asking = f"family='{family}'"
        _check_range(within(response), asking=asking, allowed=allowed, instead=instead)
    return Responses(response, check_weight(weight, len(response)))


def validate_single_response(y: Any, name: str) -> Floats:
    """Return responses (n,) as floats; raise an error unless each row has one finite number."""
    if y is None:
        raise ResponseError.absent(name)
    response = validate_responses(y, name)
    if response.ndim == 2 and response.shape[1] > 1:
        raise ResponseError.of_columns(response.shape)
    return as_vector(response)


def check_response_size(response: Floats, deviance: Deviance) -> None:
    """Raise an error if squares (for an inverse link, fourth powers) of responses overflow."""
    if deviance.family not in ("gaussian", "gamma"):
        return
    kind = deviance.family, deviance.link
    bound = 1e70 if kind == ("gaussian", "inverse") else 1e150
    least = 0.0 if kind == ("gaussian", "identity") else 1.0 / bound
    size = float(np.abs(response).max())
    if size and not least <= size <= bound:
        raise ResponseError.too_large(size, bound)


def null_loss(responses: Responses, deviance: Deviance, offset: Any) -> float:
    """Return half the mean deviance of the null model: a constant, plus any offset."""
    response, weight = responses
    if offset is None:
        constant = np.full(len(response), responses.mean(response))
        return responses.mean(half_deviance(response, constant, deviance.family))
    offsets = np.broadcast_to(np.asarray(offset, dtype=np.float64), response.shape)
    columns = np.column_stack([response, offsets])
    table = as_table(np.zeros((len(response), 1)), responses=columns, weight=weight)
    slope = fit_null(null_problem(table, deviance)).point.slope
    return slope.loss / slope.weight


def null_problem(table: Table, deviance: Deviance) -> GLMProblem:
    """Return the problem of fitting the null model (no features) to the responses of a table."""
    narrow = without_features(table)
    read = partial(fold, narrow)
    moments = read_moments(narrow, detail="pooled")
    return GLMProblem(read, read, moments, 1, deviance, intercept=True, ridge=0.0)


def without_features(table: Table) -> Table:
    """Return the same table with one column of zeros in place of its features."""
    schema = Schema(("none",), table.schema.labels)
    return Table(schema, np.zeros((len(table), 1)), table.codes, table.weight, table.responses)


def _reject_class_names(y: Any, name: str) -> None:
    values = np.asarray(y)
    if values.dtype.kind not in "OSU" or not values.size or y is None:
        return
    try:
        values.astype(np.float64)
    except (TypeError, ValueError):
        if isinstance(values.flat[0], str):
            raise ResponseError.of_names(name) from None


def _shares_of_trials(counts: Floats, weight: Any) -> Responses:
    _check_range(
        (counts >= 0).all(axis=1),
        asking="a column of successes and one of failures",
        allowed="two counts that are 0 or more",
        instead="pass shares",
    )
    trials = counts.sum(axis=1)
    share = np.divide(counts[:, 0], trials, out=np.zeros(len(trials)), where=trials > 0)
    given = check_weight(weight, len(trials))
    return Responses(share, trials if given is None else trials * given)


def _check_range(valid: Any, **facts: str) -> None:
    """Raise `ResponseError` for the first row where `valid` is False."""
    wrong = np.flatnonzero(~valid)
    if len(wrong):
        raise ResponseError.of_range(int(wrong[0]), len(wrong), **facts)


_SAMPLED = 8192  # with more rows, a sample is fitted first, for a starting point


class GLMState(NamedTuple):
    """Stored state of a fit: everything that inference needs, without the rows.

    The field names must not change: they are part of the file format.
    """

    deviance: Deviance
    fit: GLMFit
    anchor: Anchor  # origin and unit of each feature
    responses: SaturatedLikelihood
    told: Any  # (d,) whether the coefficient of each feature can be estimated
    level: float  # number subtracted from the response, and added to the intercept
    offset: bool  # whether the fit had an offset
    ridge: float


class _GLMTableFit(NamedTuple):
    """Fit of a table, with the coordinates (features or directions) in which it was computed."""

    fit: GLMFit
    anchor: Anchor  # origin and unit of each feature, or of each direction
    identified_features: Any  # (d,) the field of `GLMState`; None if there is no inference
    directions: RowSpaceTable | None  # map from directions back to features


class GeneralisedLinearModel(RegressorMixin, RowInference, IterativeEstimator):
    """Base class of GLM and LogLinear: fitting of a table, and inference.

    `rule_` is the linear score without the offset.
    """

    coef_: Floats  # (d,) in the user's units
    intercept_: float
    ridge_: float
    path_: PenaltyPath | None = None
    _kept: GLMState

    ridge: Any
    l1_ratio: float = 0.0
    intercept: bool
    max_iter: int
    progress: Progress | None

    # --- for export, besides `rule_` -------------------------------------------------------------

    @property
    def link_(self) -> str:
        """Link function g: the score is g(mean)."""
        self._check_is_fitted()
        return self._kept.deviance.link

    @property
    def with_offset_(self) -> bool:
        """Whether the model was fitted with an offset; `rule_` does not include the offset."""
        self._check_is_fitted()
        return self._kept.offset

    # --- fitting ----------------------------------------------------------------------------------

    def _fit(self, X: Any, response: Floats, weight: Any, offset: Any, deviance: Deviance) -> None:
        self._check_options()
        table, level = self._open_table(X, response, weight, offset, deviance)
        _reject_boundary(table, deviance.family)
        self._set_features(table.schema.features, table.schema.named)
        with merge_warnings(), one_blas_thread():
            self.ridge_ = self._choose_penalty(table, deviance)
            fit, anchor, estimated, directions = self._fit_table(table, deviance)
            responses = fold(table, SaturatedLikelihoodReading(deviance.family))
        given, ridge = offset is not None, self.ridge_
        self._kept = GLMState(deviance, fit, anchor, responses, estimated, level, given, ridge)
        coef, at_origin = fit.coordinates.coefficients(fit.theta)
        rule = LinearRule(np.zeros(1), anchor, coef.T, at_origin + level)
        self._set_fit(rule if directions is None else directions.to_features(rule))

    def _fit_table(self, table: Table, deviance: Deviance) -> _GLMTableFit:
        """Fit with an l1 penalty, or else in scaled or in whitened coordinates.

        Scaled columns need no products of features, which would be too many for large sparse
        tables. If such a fit does not converge and there are more features than rows, fit again in
        whitened coordinates.
        """
        if self.l1_ratio and self.ridge_:
            return self._fit_net(table, deviance)
        if not (self.ridge_ and is_large_sparse(table)):
            return self._fit_whitened(table, deviance)
        first = self._fit_scaled(table, deviance)
        if first.fit.converged or not is_wide(len(table), table.width):
            return first
        again = self._fit_whitened(table, deviance)
        passes = first.fit.passes + again.fit.passes
        return again._replace(fit=replace(again.fit, passes=passes))

    def _fit_whitened(self, table: Table, deviance: Deviance) -> _GLMTableFit:
        """Fit in whitened coordinates, computed from the products of the features.

        If there are more features than rows, the features are first replaced by the coordinates of
        the rows in the few directions that the rows span.
        """
        directions = None
        if is_wide(len(table), table.width):
            anchor = table_anchor(table, intercept=self.intercept).select(np.arange(table.width))
            directions = RowSpaceTable.from_table(table, anchor, centred=bool(self.intercept))
            table = directions.table
        problem = self._problem(table, deviance, standardize=directions is None)
        fit = fit_glm(problem, max_passes=int(self.max_iter), progress=self.progress)
        assert isinstance(fit.coordinates, Coordinates)
        known = identified_features(fit.coordinates, problem.scale())
        return _GLMTableFit(fit, problem.features.anchor, known, directions)

    def _fit_scaled(self, table: Table, deviance: Deviance) -> _GLMTableFit:
        """Fit with scaled columns, for sparse rows with too many features to form products."""
        problem = replace(
            null_problem(table, deviance),
            read=partial(fold, table),
            intercept=bool(self.intercept),
            ridge=self.ridge_,
        )
        fit = fit_glm_scaled(
            problem,
            read_column_sums(table),
            sample_rows(table),
            features=table.schema.features,
            max_passes=int(self.max_iter),
            progress=self.progress,
        )
        return _GLMTableFit(fit, Anchor.zero(table.width), None, None)

    def _fit_net(self, table: Table, deviance: Deviance) -> _GLMTableFit:
        """Fit with an elastic net, in columns of variance one."""
        net = fit_net(table, self._row_loss(table, deviance), self._penalty(), self.ridge_)
        penalised = PenalisedLoss(
            partial(fold, table), table.schema.features, net.anchor, deviance, net.coordinates, None
        )
        problem = null_problem(table, deviance)
        objective = RescaledObjective(penalised, problem.unit)
        point = objective.evaluate(net.theta)
        end = OptimisationResult(net.theta, point, net.converged, 0.0, (point.value,))
        scoring = ScoringResult(end, end.path, 1, net.converged)
        fit = make_fit(objective, scoring, fit_null(problem), passes=1)
        return _GLMTableFit(fit, net.anchor, None, None)

    def _choose_penalty(self, table: Table, deviance: Deviance) -> float:
        """Return the penalty; with ridge='cv', choose it by cross-validation and set `path_`."""
        self.path_ = None
        if self.l1_ratio and not self.ridge:
            warn(NoPenaltyWarning.of("l1_ratio", self.l1_ratio))
        if not is_cv(self.ridge):
            return float(self.ridge)
        loss, search = self._row_loss(table, deviance), self._penalty_search()
        if deviance.family == "binomial":
            warn_response_in_one_fold(table, search)
        self.path_ = penalty_path(table, loss, self._penalty(), search)
        return self.path_.ridge

    def _penalty(self) -> PenalisedModel:
        return PenalisedModel(float(self.l1_ratio), True, bool(self.intercept))

    def _penalty_search(self) -> PenaltySearch:
        raise NotImplementedError

    def _row_loss(self, table: Table, deviance: Deviance) -> HalfDeviance:
        """Return the loss of the rows, for fits along a path of penalties."""
        assert table.responses is not None
        offset = table.responses[:, 1] if table.responses.shape[1] > 1 else None
        loss = HalfDeviance(deviance, table.responses[:, 0], offset)
        if loss.guarded:
            what = f"0, and ridge a number, for link '{deviance.link}' of '{deviance.family}'"
            raise OptionError.of("l1_ratio", self.l1_ratio, what)
        return loss

    def _open_table(
        self, X: Any, response: Floats, weight: Any, offset: Any, deviance: Deviance
    ) -> tuple[Table, float]:
        """Return a table with response and offset columns, and the level subtracted from responses.

        For a Gaussian family with identity link, the median response is subtracted, so that
        responses with a large mean lose no digits; for other models, 0 is.
        """
        name = type(self).__name__
        centred = deviance == Deviance("gaussian", "identity") and bool(self.intercept)
        level = float(np.median(response)) if centred else 0.0
        table = _response_table(X, response - level, weight, offset, name=name)
        if len(table) == 1:
            raise TooFewRowsError.of_regression(1, 2, name)
        if is_wide(len(table), table.width) and not self.ridge:
            raise TooFewRowsError.for_columns(len(table), table.width, name)
        return table, level

    def _problem(self, table: Table, deviance: Deviance, *, standardize: bool) -> GLMProblem:
        sample = sample_rows(table, share=START_SHARE) if len(table) > _SAMPLED else None
        if sample is not None and 4 * len(sample) > len(table):
            sample = None
        anchor = table_anchor(table, intercept=self.intercept)
        return GLMProblem(
            partial(fold, table),
            partial(fold, without_features(table)),
            read_moments(table, detail="pooled", anchor=anchor),
            table.width,
            deviance,
            bool(self.intercept),
            self.ridge_,
            standardize,
            sample,
        )

    def _set_fit(self, rule: LinearRule) -> None:
        fit, self.rule_ = self._kept.fit, rule
        slope, at_zero = self.rule_.slopes()
        self.coef_, self.intercept_ = slope[0], float(at_zero[0]) if self.intercept else 0.0
        self.rank_ = fit.coordinates.size
        self.deviance_, self.null_deviance_ = fit.deviance, fit.null
        self.dispersion_ = _dispersion(self._kept)
        self.converged_, self.loss_path_ = fit.converged, np.array(fit.path)
        self.n_passes_, self.n_iter_ = fit.passes + 1, max(len(fit.path) - 1, 1)
        name = type(self).__name__
        if fit.diverging:
            warn(BoundaryWarning.of(name, self.n_passes_, fit.stride))
        elif fit.at_edge:
            warn(BoundaryWarning.of_edge(name))
        elif not fit.converged:
            warn(NotConvergedWarning.of_gradient(name, len(fit.path), fit.steepness, GRADIENT))

    def _check_ridge(self) -> None:
        check_ridge(self.ridge)

    def _check_options(self) -> None:
        self._check_ridge()
        limit: Any = self.max_iter
        if not (isinstance(limit, Integral) and int(limit) > 0):
            raise OptionError.of("max_iter", limit, "a whole number, 1 or more")

    # --- using ------------------------------------------------------------------------------------

    def predict_linear(self, X: Any, offset: Any = None) -> Floats:
        """Compute the linear predictor x'w + b + offset.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Rows.
        offset : float or array of shape (n,), default None
            Offset of each row; required if the model was fitted with an offset.

        Returns
        -------
        array of shape (n,)
        """
        scores = self._rule_scores(X)[:, 0]
        if offset is None and self._kept.offset:
            raise OffsetError.absent()
        return scores if offset is None else scores + validate_offset(offset, len(scores))

    def inference(self) -> Inference:
        """Return the estimates with their covariance, tests and information criteria."""
        self._check_is_fitted()
        state = self._kept
        if state.ridge:
            raise InferenceError.of_ridge(state.ridge)
        fit = state.fit
        if fit.diverging:
            raise NoEstimateError.of_infinite(type(self).__name__)
        if fit.at_edge:
            raise NoEstimateError.of_edge(type(self).__name__)
        assert isinstance(fit.coordinates, Coordinates)
        return infer(
            fit.theta,
            curvature=self._summed_curvature(),
            coordinates=fit.coordinates,
            anchor=state.anchor,
            features=self._schema.features,
            likelihood=_likelihood(state, self.dispersion_),
            title=self._title(),
            identified=state.told,
            level=state.level,
            odds=state.deviance.link == "logit",
            rates=self._has_rate_ratios(),
            passes=self.n_passes_,
            steps=self.n_iter_,
            converged=self.converged_,
        )

    def _title(self) -> str:
        deviance = self._kept.deviance
        return f"{type(self).__name__}: {deviance.family}, link {deviance.link}"

    def _has_rate_ratios(self) -> bool:
        """Return whether coefficients are logs of rate ratios."""
        return self._kept.deviance.link == "log"

    def _peak(self, X: Any, response: Floats, weight: Any, offset: Any) -> LikelihoodMaximum:
        state, names = self._kept, self._schema if self._schema.named else None
        table = _response_table(X, response - state.level, weight, offset, match=names)
        self._check_width(table.width)
        objective = state.fit.objective(
            partial(fold, table), table.schema.features, state.anchor, state.deviance
        )
        scaled = RescaledObjective(objective, state.fit.unit)
        return LikelihoodMaximum(scaled, state.fit.theta, state.fit.unit, table)

    def _row_coordinates(self) -> tuple[Anchor, Coordinates, Deviance | None]:
        state = self._kept
        assert isinstance(state.fit.coordinates, Coordinates)
        return state.anchor, state.fit.coordinates, state.deviance

    def _summed_curvature(self) -> Floats:
        fit = self._kept.fit
        assert fit.slope.curvature is not None and isinstance(fit.coordinates, Coordinates)
        return fit.coordinates.curvature(fit.slope.curvature)


_EDGES = {"binomial": (0.0, 1.0), "poisson": (0.0,)}


def _response_table(X: Any, response: Floats, weight: Any, offset: Any, **options: Any) -> Table:
    """Return a table with the response and the offset, if any, as response columns."""
    columns = response[:, None]
    if offset is not None:
        columns = np.column_stack([columns, validate_offset(offset, len(response))])
    table = as_table(X, responses=columns, weight=weight, **options)
    if len(columns) != len(table):
        raise ShapeError.of_lengths("y", len(columns), len(table))
    return table


def _reject_boundary(table: Table, family: str) -> None:
    """Raise an error if all responses are at one end of the range of the mean, so that scores are
    infinite.
    """
    assert table.responses is not None
    responses = table.responses[:, 0]
    if table.weight is not None:
        responses = responses[table.weight > 0]
    for edge in _EDGES.get(family, ()):
        if (responses == edge).all():
            raise ResponseError.of_one_value(edge, family)


def validate_offset(offset: Any, rows: int) -> Floats:
    """Return finite offsets (n,); a single number applies to all rows."""
    try:
        offsets = np.asarray(offset, dtype=np.float64)
    except (TypeError, ValueError):
        raise OffsetError.not_numbers() from None
    if offsets.ndim == 0:
        offsets = np.full(rows, float(offsets))
    if offsets.ndim != 1:
        raise OffsetError.of_shape(offsets.shape, rows)
    if len(offsets) != rows:
        raise ShapeError.of_lengths("offset", len(offsets), rows)
    if not np.isfinite(offsets).all():
        raise OffsetError.not_finite(int(np.argmin(np.isfinite(offsets))))
    return offsets


# --- after the fit --------------------------------------------------------------------------------


def _dispersion(state: GLMState) -> float:
    if state.deviance.family not in FREE_DISPERSION:
        return 1.0
    degrees = state.responses.rows - state.fit.coordinates.size
    return state.fit.pearson / degrees if degrees > 0 else float("nan")


def _likelihood(state: GLMState, dispersion: float) -> Likelihood:
    fit, responses, family = state.fit, state.responses, state.deviance.family
    free = family in FREE_DISPERSION
    return Likelihood(
        deviance=fit.deviance,
        null_deviance=fit.null,
        log_likelihood=log_likelihood(family, fit.deviance, responses),
        null_log_likelihood=log_likelihood(family, fit.null, responses),
        rows=responses.rows,
        df_residual=responses.rows - fit.coordinates.size,
        df_null=responses.rows - fit.coordinates.free,
        numbers=fit.coordinates.size + free,
        dispersion=dispersion,
        free=free,
        gaussian=family == "gaussian",
    )


class GLM(GeneralisedLinearModel):
    """Generalised linear model, by iteratively reweighted least squares.

        g(E y) = x'w + b + offset

    The fit is by maximum likelihood; every iteration reads the rows once. With `ridge` it minimises

        mean of deviance / 2  +  ridge / 2 |w|^2        w: coefficients of standardised features

    Parameters
    ----------
    family : {'gaussian', 'binomial', 'poisson', 'gamma'}, default 'gaussian'
        Distribution of the response. For 'binomial', either y is the share of successes and
        `sample_weight` the number of trials, or y has two columns, successes and failures.
    link : str or None, default None
        Link function g. None means the canonical link of the family. gaussian: 'identity', 'log',
        'inverse'; binomial: 'logit', 'probit', 'cloglog', 'cauchit', 'log'; poisson: 'log',
        'identity', 'sqrt'; gamma: 'inverse', 'log', 'identity'.
    ridge : float or 'cv', default 0.0
        Penalty on the coefficients of standardised features; without an intercept, features are
        scaled to root mean square 1. The intercept is not penalised. A fit with a penalty has no
        standard errors. 'cv': the penalty with the smallest held-out deviance.
    l1_ratio : float, default 0.0
        Share of the penalty on absolute coefficients, from 0 (ridge) to 1 (lasso). If it is above
        0, the penalty is ridge (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2), and some coefficients may
        be exactly zero. A value above 0 requires a link with a valid mean for every score, such as
        'log'.
    intercept : bool, default True
        Whether to fit an intercept.
    max_iter : int, default 200
        Maximum number of iterations, each of which is a pass over the rows. The rows are read five
        more times: for their moments, the null deviance, the starting point, the dispersion and the
        log likelihood.
    progress : callable or None, default None
        Called after every pass with its number, the loss and the largest entry of the gradient.
    ridges : None, int or array of shape (P,), default None
        Penalties that ridge='cv' compares: an array of penalties, or the number of penalties on a
        geometric sequence. None means 50.
    folds : int, array of shape (n,) or splitter, default 10
        Folds for ridge='cv': their number, or the fold of each row.
    rule : {'min', 'one_se'}, default 'min'
        Choice for ridge='cv'. 'min': the penalty with the smallest held-out deviance. 'one_se': the
        largest penalty whose deviance is within one standard error of the smallest.

    Attributes
    ----------
    ridge_ : float
        Penalty of the fit.
    path_ : PenaltyPath or None
        With ridge='cv': penalties, mean held-out losses (half the deviance), their standard errors,
        and the number of non-zero coefficients.
    coef_ : array of shape (d,)
        Coefficients in the user's units.
    intercept_ : float
        Fitted score at x = 0. `predict` does not use it: for accuracy, it measures features from an
        origin near the rows.
    deviance_, null_deviance_ : float
        Deviance of the fit, and deviance of a model with a constant mean.
    dispersion_ : float
        Pearson's chi-squared over the residual degrees of freedom for gaussian and gamma, else 1.
    converged_ : bool
        Whether the iteration converged: the gradient is zero, or, with a `BoundaryWarning`, the
        maximum is at the boundary of the possible means.
    n_iter_, n_passes_ : int
        Number of steps, and total number of passes over the rows.
    loss_path_ : array
        Loss after each step.
    rank_ : int
        Number of parameters that could be estimated. The number is reduced by linearly dependent
        columns.
    link_ : str
        Link function.

    See Also
    --------
    LogLinear : Least squares on the logarithm of the response.
    Logistic : Class labels instead of shares.

    Examples
    --------
    >>> model = GLM("poisson").fit([[0.0], [0.0], [1.0], [1.0]], [1, 3, 3, 5])
    >>> round(float(model.coef_[0]), 9), round(model.intercept_, 9)  # log 2: means 2 and 4
    (0.693147181, 0.693147181)
    """

    def __init__(
        self,
        family: Literal["gaussian", "binomial", "poisson", "gamma"] = "gaussian",
        link: str | None = None,
        *,
        ridge: float | Literal["cv"] = 0.0,
        l1_ratio: float = 0.0,
        intercept: bool = True,
        max_iter: int = 200,
        progress: Progress | None = None,
        ridges: int | npt.ArrayLike | None = None,
        folds: Any = 10,
        rule: ChoiceRule = "min",
    ) -> None:
        self.family = family
        self.link = link
        self.ridge = ridge
        self.l1_ratio = l1_ratio
        self.intercept = intercept
        self.max_iter = max_iter
        self.progress = progress
        self.ridges = ridges
        self.folds = folds
        self.rule = rule

    def __sklearn_tags__(self) -> Any:
        """Return the tags: Poisson and gamma responses must not be negative."""
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.family in ("poisson", "gamma")
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Rows.
        y : array of shape (n,), or (n, 2) for 'binomial'
            Responses.
        sample_weight : array of shape (n,), default None
            Weight of each row; for 'binomial' with shares, the number of trials.
        offset : float or array of shape (n,), default None
            Term that is added to the score of each row and not estimated.

        Returns
        -------
        self
        """
        deviance = _deviance(self.family, self.link)
        responses = self._validate_responses(y, sample_weight, deviance)
        check_response_size(responses.response, deviance)
        self._fit(X, responses.response, responses.weight, offset, deviance)
        return self

    @overload
    def predict(self, X: Any, offset: Any = None, *, interval: None = None) -> Floats: ...

    @overload
    def predict(self, X: Any, offset: Any = None, *, interval: float) -> MeanIntervals: ...

    def predict(
        self, X: Any, offset: Any = None, *, interval: float | None = None
    ) -> Floats | MeanIntervals:
        """Predict the mean of the response of each row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Rows.
        offset : float or array of shape (n,), default None
            Offset of each row; required if the model was fitted with an offset.
        interval : float or None, default None
            Confidence level of intervals of the means, such as 0.95. None returns only the means.

        Returns
        -------
        array of shape (n,), or MeanIntervals
            With `interval`, a tuple (estimate, low, high) of arrays of shape (n,). The ends of a
            Wald interval of the linear predictor are transformed by the inverse link.
        """
        self._check_is_fitted()
        deviance = self._kept.deviance
        scores = self.predict_linear(X, offset)
        means = deviance.mean(scores)
        if interval is None:
            return means
        quantile = normal_quantile(check_interval(interval))
        reach = quantile * self._score_rows(self._score_errors().of_score, X)[:, 0]
        return MeanIntervals(means, *mean_ends(deviance, scores, reach))

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """Return D2, the explained share of deviance: 1 for a perfect fit, 0 for a constant mean.

        For the gaussian family D2 equals R2. With an offset, the null model is a constant plus the
        offset. Arguments are as in `fit`.
        """
        self._check_is_fitted()
        deviance = self._kept.deviance
        responses = self._validate_responses(y, sample_weight, deviance)
        scores = self.predict_linear(X, offset)
        if len(responses.response) != len(scores):
            raise ShapeError.of_lengths("y", len(responses.response), len(scores))
        residual = responses.mean(deviance.rows(scores, responses.response).loss)
        null = null_loss(responses, deviance, offset)
        if null == 0.0:
            return float(residual == 0.0)
        return 1.0 - residual / null

    def _check_ridge(self) -> None:
        check_penalty(self.ridge)
        if is_cv(self.ridge):
            self._penalty_search().check()
        l1_ratio: Any = self.l1_ratio
        if not (isinstance(l1_ratio, Real) and 0.0 <= float(l1_ratio) <= 1.0):
            raise OptionError.of("l1_ratio", l1_ratio, "a number from 0 to 1")

    def _penalty_search(self) -> PenaltySearch:
        options = self.options_in_effect()
        return PenaltySearch(options["ridges"], options["folds"], "deviance", self.rule)

    def _validate_responses(self, y: Any, weight: Any, deviance: Deviance) -> Responses:
        return validate_glm_responses(y, weight, family=deviance.family, name=type(self).__name__)

    def _likelihood_peak(self, X: Any, y: Any, weight: Any, offset: Any) -> LikelihoodMaximum:
        responses = self._validate_responses(y, weight, self._kept.deviance)
        return self._peak(X, responses.response, responses.weight, offset)


class LogLinear(GeneralisedLinearModel):
    """Log-linear regression: ln y = x'w + b, by least squares on ln y.

    Errors have constant variance on the scale of ln y, so they are multiplicative on the scale of
    y. By contrast, a GLM with a log link models the log of the mean of y, and its errors are added
    to y.

    Parameters
    ----------
    ridge : float, default 0.0
        Penalty, as in `GLM`.
    intercept : bool, default True
        Whether to fit an intercept.
    predicted : {'median', 'mean', 'smearing'}, default 'median'
        What `predict` returns. 'median': exp(x'w + b), the median of y if the errors are symmetric.
        'mean': exp(x'w + b + s^2/2), the mean of y if the errors are normal. 'smearing':
        exp(x'w + b) times the mean of exp(residual), the mean of y for errors of any distribution
        (Duan 1983).

    Attributes
    ----------
    coef_ : array of shape (d,)
        Coefficients. If a column increases by 1, y is multiplied by the exponential of its
        coefficient.
    intercept_ : float
        Intercept for `coef_`.
    deviance_, null_deviance_, dispersion_ : float
        Residual and total sum of squares of ln y, and the residual variance s^2. `summary()` refers
        to ln y too.
    smearing_ : float
        Mean of exp(residual).
    converged_, n_iter_, n_passes_, loss_path_, rank_
        As in `GLM`.

    See Also
    --------
    GLM : `GLM("poisson")` also accepts zeros.

    Examples
    --------
    >>> model = LogLinear().fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 4.0])
    >>> model.predict([[3.0]]).round(9).tolist()
    [8.0]
    """

    max_iter = 100
    progress = None

    def __init__(
        self,
        *,
        ridge: float = 0.0,
        intercept: bool = True,
        predicted: Literal["median", "mean", "smearing"] = "median",
    ) -> None:
        self.ridge = ridge
        self.intercept = intercept
        self.predicted = predicted

    def __sklearn_tags__(self) -> Any:
        """Return the tags: responses must be positive."""
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to rows X and positive responses y.

        Arguments are as in `GLM.fit`.
        """
        _median_factor(self.predicted)
        logs = self._log_response(y)
        self._fit(X, logs, sample_weight, None, Deviance("gaussian", "identity"))
        residual = np.exp(logs - self.predict_linear(X))
        weight = check_weight(sample_weight, len(residual))
        self.smearing_ = float(np.average(residual, weights=weight))
        return self

    @overload
    def predict(self, X: Any, *, interval: None = None) -> Floats: ...

    @overload
    def predict(self, X: Any, *, interval: float) -> MeanIntervals: ...

    def predict(self, X: Any, *, interval: float | None = None) -> Floats | MeanIntervals:
        """Predict the response of each row: its median or mean, depending on `predicted`.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Rows.
        interval : float or None, default None
            Confidence level of intervals of the medians or means, such as 0.95. None returns only
            the predictions.

        Returns
        -------
        array of shape (n,), or MeanIntervals
            With `interval`, a tuple (estimate, low, high) of arrays of shape (n,). The ends of a
            Wald interval of x'w + b are transformed by exp; the factor from the median to the mean
            is regarded as known.
        """
        scores = self.predict_linear(X)
        factor = _median_factor(self.predicted)(self)
        with np.errstate(over="ignore"):  # a prediction that overflows float64 is infinite
            estimate = np.asarray(np.exp(scores) * factor)
            if interval is None:
                return estimate
            quantile = normal_quantile(check_interval(interval))
            reach = quantile * self._score_rows(self._score_errors().of_score, X)[:, 0]
            return MeanIntervals(
                estimate, np.exp(scores - reach) * factor, np.exp(scores + reach) * factor
            )

    def _title(self) -> str:
        return "LogLinear: least squares on ln y (deviance, AIC and log likelihood are of ln y too)"

    def _has_rate_ratios(self) -> bool:
        return True

    def _log_response(self, y: Any) -> Floats:
        response = validate_single_response(y, type(self).__name__)
        _check_range(
            response > 0,
            asking="its logarithm",
            allowed="a number above 0",
            instead="fit GLM('poisson'), which allows zeros",
        )
        return np.log(response)

    def _likelihood_peak(self, X: Any, y: Any, weight: Any, offset: Any) -> LikelihoodMaximum:
        return self._peak(X, self._log_response(y), weight, offset)


# --- options --------------------------------------------------------------------------------------


def _deviance(family: Any, link: Any) -> Deviance:
    check_choice("family", family, LINKS)
    links = LINKS[family]
    if link is not None and link not in links:
        allowed = f"one of {', '.join(links)} for family='{family}', or None for {links[0]}"
        raise OptionError.of("link", link, allowed)
    return Deviance(family, links[0] if link is None else link)


def _median_factor(predicted: Any) -> Callable[[Any], float]:
    """Return the function that computes the factor of the median for the option `predicted`."""
    factors: dict[str, Callable[[Any], float]] = {
        "median": lambda model: 1.0,
        "mean": lambda model: float(np.exp(0.5 * model.dispersion_)),
        "smearing": lambda model: model.smearing_,
    }
    check_choice("predicted", predicted, factors)
    return factors[predicted]
