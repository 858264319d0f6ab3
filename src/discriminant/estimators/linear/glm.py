"""GLM and LogLinear: generalised linear models and log-linear regression.

    g(E y) = x'w + b + offset        g the link, y of an exponential family

The estimators validate responses, offsets and options, and choose how a table is fitted: by the
products of its features, by the directions that its rows span if features outnumber rows, or by
scaled columns alone for very many sparse features. The iterations are in `models.linear.glm`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from sklearn.base import RegressorMixin

from discriminant.assessment.inference.profile_likelihood import Peak
from discriminant.assessment.inference.wald import Inference, Likelihood, estimable, infer
from discriminant.engines.dispatch import anchor_of, fold, read_moments
from discriminant.errors import (
    BoundaryWarning,
    InferenceError,
    NoEstimateError,
    NotConvergedWarning,
    OffsetError,
    OptionError,
    ResponseError,
    ShapeError,
    TooFewRowsError,
    warn,
)
from discriminant.estimators.base import IterativeEstimator
from discriminant.estimators.linear.iterative import RowSpaceTable
from discriminant.estimators.linear.linear_regression import check_ridge, open_responses
from discriminant.estimators.linear.logistic import (
    LikelihoodInference,
    is_large_sparse,
    read_column_sums,
    sample_rows,
)
from discriminant.models.gaussian.wide import is_wide
from discriminant.models.linear.glm import (
    GLMFit,
    GLMProblem,
    RescaledObjective,
    fit_glm,
    fit_glm_scaled,
    fit_null,
)
from discriminant.models.linear.optimise import GRADIENT, Progress
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
        """Weighted mean of one value per row; rows of weight zero are ignored."""
        if self.weight is None:
            return float(values.mean())
        weighted = self.weight > 0
        return float(np.average(values[weighted], weights=self.weight[weighted]))


def open_glm_responses(y: Any, weight: Any, *, family: str, name: str) -> Responses:
    """Validate one response per row, in the range of the family, and the weights.

    For a binomial family y may have two columns, successes and failures, as in R. Then the response
    is the share of successes, and the weight is multiplied by the number of trials.
    """
    if family == "binomial":
        _reject_class_names(y, name)
        counts = open_responses(y, name) if y is not None else None
        if counts is not None and counts.ndim == 2 and counts.shape[1] == 2:
            return _shares_of_trials(counts, weight)
    response = open_single_response(y, name)
    _check_range(response, family)
    return Responses(response, check_weight(weight, len(response)))


def open_single_response(y: Any, name: str) -> Floats:
    """Validate one finite number per row."""
    if y is None:
        raise ResponseError.absent(name)
    response = open_responses(y, name)
    if response.ndim == 2 and response.shape[1] > 1:
        raise ResponseError.of_columns(response.shape)
    return as_vector(response)


def check_response_size(response: Floats, deviance: Deviance) -> None:
    """Raise if squares of responses, or fourth powers for an inverse link, leave float64."""
    if deviance.family not in ("gaussian", "gamma"):
        return
    kind = deviance.family, deviance.link
    bound = 1e70 if kind == ("gaussian", "inverse") else 1e150
    least = 0.0 if kind == ("gaussian", "identity") else 1.0 / bound
    size = float(np.abs(response).max())
    if size and not least <= size <= bound:
        raise ResponseError.too_large(size, bound)


def null_loss(responses: Responses, deviance: Deviance, offset: Any) -> float:
    """Mean of half the deviance from the best constant, or constant + offset."""
    response, weight = responses
    if offset is None:
        level = np.full(len(response), responses.mean(response))
        return responses.mean(half_deviance(response, level, deviance.family))
    offsets = np.broadcast_to(np.asarray(offset, dtype=np.float64), response.shape)
    columns = np.column_stack([response, offsets])
    table = as_table(np.zeros((len(response), 1)), responses=columns, weight=weight)
    slope = fit_null(null_problem(table, deviance)).point.slope
    return slope.loss / slope.weight


def null_problem(table: Table, deviance: Deviance) -> GLMProblem:
    """Problem of the responses of a table without its features."""
    narrow = without_features(table)
    read = partial(fold, narrow)
    moments = read_moments(narrow, detail="pooled")
    return GLMProblem(read, read, moments, 1, deviance, intercept=True, ridge=0.0)


def without_features(table: Table) -> Table:
    """The same rows, with one column of zeros in place of their features."""
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
    wrong = np.flatnonzero((counts < 0).any(axis=1))
    if len(wrong):
        raise ResponseError.of_range(
            int(wrong[0]),
            len(wrong),
            asking="a column of successes and one of failures",
            allowed="two counts that are 0 or more",
            instead="pass shares",
        )
    trials = counts.sum(axis=1)
    share = np.divide(counts[:, 0], trials, out=np.zeros(len(trials)), where=trials > 0)
    given = check_weight(weight, len(trials))
    return Responses(share, trials if given is None else trials * given)


def _check_range(response: Floats, family: str) -> None:
    if family not in _RANGES:
        return
    allowed, within = _RANGES[family]
    wrong = np.flatnonzero(~within(response))
    if len(wrong):
        both = "pass two columns, successes and failures"
        raise ResponseError.of_range(
            int(wrong[0]),
            len(wrong),
            asking=f"family='{family}'",
            allowed=allowed,
            instead=both if family == "binomial" else "choose another family",
        )


_MANY = 8192  # rows; with more, a sample is fitted first


class GLMState(NamedTuple):
    """Stored state of a fit: all that inference needs, without rows.

    The names of the fields are part of the file format.
    """

    deviance: Deviance
    fit: GLMFit
    anchor: Anchor  # of the features
    responses: SaturatedLikelihood
    told: Any  # (d,) whether the coefficient of each feature can be estimated
    level: float  # subtracted from the response; part of the intercept
    offset: bool  # whether there was one
    ridge: float


class _GLMTableFit(NamedTuple):
    """A fit in the coordinates that suit the table."""

    fit: GLMFit
    anchor: Anchor  # of the features, or directions
    estimable: Any  # (d,) `told` of GLMState; None if there is no inference
    directions: RowSpaceTable | None  # the map back to features


class GeneralisedLinearModel(RegressorMixin, LikelihoodInference, IterativeEstimator):
    """Common base of GLM and LogLinear: from rows to a problem, a fit and inference.

    `rule_` is the linear score without the offset.
    """

    coef_: Floats  # (d,) in the user's numbers
    intercept_: float
    _kept: GLMState

    ridge: float
    intercept: bool
    max_iter: int
    progress: Progress | None

    # --- for export, besides `rule_` -------------------------------------------------------------

    @property
    def link_(self) -> str:
        """Link function: what the score is of the mean."""
        self._check_is_fitted()
        return self._kept.deviance.link

    @property
    def with_offset_(self) -> bool:
        """Whether the model was fitted with an offset, which is not part of `rule_`."""
        self._check_is_fitted()
        return self._kept.offset

    # --- fitting ----------------------------------------------------------------------------------

    def _fit(self, X: Any, response: Floats, weight: Any, offset: Any, deviance: Deviance) -> None:
        self._check_options()
        table, level = self._open_table(X, response, weight, offset, deviance)
        _reject_boundary(table, deviance.family)
        self._set_features(table.schema.features, table.schema.named)
        result = self._fit_table(table, deviance)
        responses = fold(table, SaturatedLikelihoodReading(deviance.family))
        self._kept = GLMState(
            deviance,
            result.fit,
            result.anchor,
            responses,
            result.estimable,
            level,
            offset is not None,
            float(self.ridge),
        )
        rule = _rule(self._kept)
        self._set_fit(rule if result.directions is None else result.directions.to_features(rule))

    def _fit_table(self, table: Table, deviance: Deviance) -> _GLMTableFit:
        """Fit in the coordinates that suit the table; if that fails to converge, by directions."""
        if not (self.ridge and is_large_sparse(table)):
            return self._fit_whitened(table, deviance)
        first = self._fit_scaled(table, deviance)
        if first.fit.converged or not is_wide(len(table), table.width):
            return first
        again = self._fit_whitened(table, deviance)
        passes = first.fit.passes + again.fit.passes
        return again._replace(fit=replace(again.fit, passes=passes))

    def _fit_whitened(self, table: Table, deviance: Deviance) -> _GLMTableFit:
        """Fit by the products of the features, or of the directions that the rows span."""
        directions = None
        if is_wide(len(table), table.width):
            anchor = self._anchor(table).select(np.arange(table.width))
            directions = RowSpaceTable.of(table, anchor, centred=bool(self.intercept))
            table = directions.table
        problem = self._problem(table, deviance, standardize=directions is None)
        fit = fit_glm(problem, most=int(self.max_iter), progress=self.progress)
        assert isinstance(fit.coordinates, Coordinates)
        known = estimable(fit.coordinates, problem.scale())
        return _GLMTableFit(fit, problem.features.anchor, known, directions)

    def _fit_scaled(self, table: Table, deviance: Deviance) -> _GLMTableFit:
        """Fit by scaled sparse columns, too many to form their products."""
        problem = replace(
            null_problem(table, deviance),
            read=partial(fold, table),
            intercept=bool(self.intercept),
            ridge=float(self.ridge),
        )
        fit = fit_glm_scaled(
            problem,
            read_column_sums(table),
            sample_rows(table),
            features=table.schema.features,
            most=int(self.max_iter),
            progress=self.progress,
        )
        return _GLMTableFit(fit, Anchor.zero(table.width), None, None)

    def _open_table(
        self, X: Any, response: Floats, weight: Any, offset: Any, deviance: Deviance
    ) -> tuple[Table, float]:
        """Table with response and offset as columns, and the level subtracted from the response.

        For a Gaussian family with identity link the median is subtracted, so that a large mean
        loses no digits.
        """
        name = type(self).__name__
        centred = deviance == Deviance("gaussian", "identity") and bool(self.intercept)
        level = float(np.median(response)) if centred else 0.0
        columns = (response - level)[:, None]
        if offset is not None:
            columns = np.column_stack([columns, open_offset(offset, len(response))])
        table = as_table(X, responses=columns, weight=weight, name=name)
        if len(columns) != len(table):
            raise ShapeError.of_lengths("y", len(columns), len(table))
        if len(table) == 1:
            raise TooFewRowsError.of_regression(1, 2, name)
        if is_wide(len(table), table.width) and not self.ridge:
            raise TooFewRowsError.for_columns(len(table), table.width, name)
        return table, level

    def _anchor(self, table: Table) -> Anchor:
        anchor = anchor_of(table)
        return anchor if self.intercept else Anchor(np.zeros(len(anchor.unit)), anchor.unit)

    def _problem(self, table: Table, deviance: Deviance, *, standardize: bool) -> GLMProblem:
        sample = sample_rows(table) if len(table) > _MANY else None
        if sample is not None and 4 * len(sample) > len(table):
            sample = None
        return GLMProblem(
            partial(fold, table),
            partial(fold, without_features(table)),
            read_moments(table, detail="pooled", anchor=self._anchor(table)),
            table.width,
            deviance,
            bool(self.intercept),
            float(self.ridge),
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

    def _check_options(self) -> None:
        check_ridge(self.ridge)
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
            Offset of these rows; required if the model was fitted with one.

        Returns
        -------
        array of shape (n,)
        """
        scores = self._rule_scores(X)[:, 0]
        if offset is None and self._kept.offset:
            raise OffsetError.absent()
        return scores if offset is None else scores + open_offset(offset, len(scores))

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
        assert fit.slope.curvature is not None and isinstance(fit.coordinates, Coordinates)
        return infer(
            fit.theta,
            curvature=fit.coordinates.curvature(fit.slope.curvature),
            coordinates=fit.coordinates,
            anchor=state.anchor,
            features=self._schema.features,
            likelihood=_likelihood(state, self.dispersion_),
            title=self._title(),
            told=state.told,
            level=state.level,
            odds=state.deviance.link == "logit",
            rates=self._rates(),
            passes=self.n_passes_,
            steps=self.n_iter_,
            converged=self.converged_,
        )

    def _title(self) -> str:
        deviance = self._kept.deviance
        return f"{type(self).__name__}: {deviance.family}, link {deviance.link}"

    def _rates(self) -> bool:
        """Whether exp(coefficient) multiplies the prediction."""
        return self._kept.deviance.link == "log"

    def _peak_of(self, X: Any, response: Floats, weight: Any, offset: Any) -> Peak:
        state = self._kept
        names = self._schema if self._schema.named else None
        columns = (response - state.level)[:, None]
        if offset is not None:
            columns = np.column_stack([columns, open_offset(offset, len(response))])
        table = as_table(X, responses=columns, weight=weight, match=names)
        if len(columns) != len(table):
            raise ShapeError.of_lengths("y", len(columns), len(table))
        if table.width != self.n_features_in_:
            raise ShapeError.of_width(table.width, self.n_features_in_, type(self).__name__)
        objective = state.fit.objective(
            lambda reading: fold(table, reading),
            table.schema.features,
            state.anchor,
            state.deviance,
        )
        return Peak(RescaledObjective(objective, state.fit.unit), state.fit.theta, state.fit.unit)


_EDGES = {"binomial": (0.0, 1.0), "poisson": (0.0,)}


def _reject_boundary(table: Table, family: str) -> None:
    """Raise if all responses are at one end of the range of the mean: no finite score exists."""
    assert table.responses is not None
    responses = table.responses[:, 0]
    if table.weight is not None:
        responses = responses[table.weight > 0]
    for edge in _EDGES.get(family, ()):
        if (responses == edge).all():
            raise ResponseError.of_one_value(edge, family)


def open_offset(offset: Any, rows: int) -> Floats:
    """(n,) finite offsets; a single number applies to all rows."""
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


def _rule(state: GLMState) -> LinearRule:
    coef, at_origin = state.fit.coordinates.coefficients(state.fit.theta)
    return LinearRule(np.zeros(1), state.anchor, coef.T, at_origin + state.level)


# --- after the fit --------------------------------------------------------------------------------


def _dispersion(state: GLMState) -> float:
    if state.deviance.family not in FREE_DISPERSION:
        return 1.0
    left = state.responses.rows - state.fit.coordinates.size
    return state.fit.pearson / left if left > 0 else float("nan")


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

    Maximum likelihood by default; every iteration reads the rows once. With `ridge`, minimises

        mean of deviance / 2  +  ridge / 2 |w|^2        w of standardised features

    Parameters
    ----------
    family : {'gaussian', 'binomial', 'poisson', 'gamma'}, default 'gaussian'
        Distribution of the response. For 'binomial' y is a share and sample_weight the number of
        trials, or y has two columns, successes and failures.
    link : str or None, default None
        Link function g; None for the canonical one. gaussian: 'identity', 'log', 'inverse';
        binomial: 'logit', 'probit', 'cloglog', 'cauchit', 'log'; poisson: 'log', 'identity',
        'sqrt'; gamma: 'inverse', 'log', 'identity'.
    ridge : float, default 0.0
        Penalty on the coefficients of standardised features (without an intercept, of features
        with root mean square one); the intercept is not penalised. With a penalty there are no
        standard errors.
    intercept : bool, default True
        Whether to fit an intercept.
    max_iter : int, default 200
        Maximum number of passes of the iteration. The rows are read five more times: for their
        moments, the null deviance, the start, the dispersion and the log likelihood.
    progress : callable or None, default None
        Called after every pass with its number, the loss and the largest entry of the gradient.

    Attributes
    ----------
    coef_ : array of shape (d,)
        Coefficients in the user's units.
    intercept_ : float
        Intercept for `coef_`; `predict` uses an origin near the rows instead.
    deviance_, null_deviance_ : float
        Deviance of the fit, and of a constant mean.
    dispersion_ : float
        Pearson's chi-squared over the residual degrees of freedom for gaussian and gamma, else 1.
    converged_ : bool
        Whether the gradient vanished, or on the boundary of possible means holds rows there (with
        a BoundaryWarning).
    n_iter_, n_passes_ : int
        Steps, and passes over the rows in all.
    loss_path_ : array
        Loss of each step.
    rank_ : int
        Number of parameters estimated: fewer than columns if these are linearly dependent.
    link_ : str
        Link function.
    n_features_in_, feature_names_in_
        Number of features, and their names if the rows had any.

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
        ridge: float = 0.0,
        intercept: bool = True,
        max_iter: int = 200,
        progress: Progress | None = None,
    ) -> None:
        self.family = family
        self.link = link
        self.ridge = ridge
        self.intercept = intercept
        self.max_iter = max_iter
        self.progress = progress

    def __sklearn_tags__(self) -> Any:
        """Poisson and gamma responses are not negative."""
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
            Known part of the score.

        Returns
        -------
        self
        """
        deviance = _deviance(self.family, self.link)
        responses = self._open_responses(y, sample_weight, deviance)
        check_response_size(responses.response, deviance)
        self._fit(X, responses.response, responses.weight, offset, deviance)
        return self

    def predict(self, X: Any, offset: Any = None) -> Floats:
        """(n,) predicted means; arguments as in `predict_linear`."""
        self._check_is_fitted()
        return self._kept.deviance.mean(self.predict_linear(X, offset))

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """D2, the share of the deviance of y that is explained: 1 is perfect, 0 a constant mean.

        For the gaussian family it is R2. With an offset, the null model is constant + offset.
        Arguments as in `fit`.
        """
        self._check_is_fitted()
        deviance = self._kept.deviance
        responses = self._open_responses(y, sample_weight, deviance)
        scores = self.predict_linear(X, offset)
        if len(responses.response) != len(scores):
            raise ShapeError.of_lengths("y", len(responses.response), len(scores))
        residual = responses.mean(deviance.rows(scores, responses.response).loss)
        null = null_loss(responses, deviance, offset)
        if null == 0.0:
            return float(residual == 0.0)
        return 1.0 - residual / null

    def _open_responses(self, y: Any, weight: Any, deviance: Deviance) -> Responses:
        return open_glm_responses(y, weight, family=deviance.family, name=type(self).__name__)

    def _likelihood_peak(self, X: Any, y: Any, weight: Any, offset: Any) -> Peak:
        responses = self._open_responses(y, weight, self._kept.deviance)
        return self._peak_of(X, responses.response, responses.weight, offset)


class LogLinear(GeneralisedLinearModel):
    """Log-linear regression: ln y = x'w + b, by least squares on ln y.

    Errors have the same variance on the scale of ln y, so that they multiply y. A GLM with a log
    link models the log of the mean of y instead, and its errors add to y.

    Parameters
    ----------
    ridge : float, default 0.0
        Penalty, as in `GLM`.
    intercept : bool, default True
        Whether to fit an intercept.
    predicted : {'median', 'mean', 'smearing'}, default 'median'
        What `predict` returns. 'median': exp(x'w + b), the median of y for symmetric errors.
        'mean': exp(x'w + b + s^2/2), its mean for normal errors. 'smearing': exp(x'w + b) times
        the mean of exp(residual), its mean for errors of any shape (Duan 1983).

    Attributes
    ----------
    coef_ : array of shape (d,)
        Coefficients: an increase of one in a column multiplies y by exp(coef_).
    intercept_ : float
        Intercept for `coef_`.
    deviance_, null_deviance_, dispersion_ : float
        Sums of squares, and the variance s^2, of ln y; `summary()` is about ln y too.
    smearing_ : float
        Mean of exp(residual).
    converged_, n_iter_, n_passes_, loss_path_, rank_
        As in `GLM`.
    n_features_in_, feature_names_in_
        Number of features, and their names if the rows had any.

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
        """Responses must be positive."""
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to rows X and positive responses y; arguments as in `GLM.fit`."""
        _correction(self.predicted)
        logs = self._logs(y)
        self._fit(X, logs, sample_weight, None, Deviance("gaussian", "identity"))
        residual = np.exp(logs - self.predict_linear(X))
        weight = check_weight(sample_weight, len(residual))
        self.smearing_ = float(np.average(residual, weights=weight))
        return self

    def predict(self, X: Any) -> Floats:
        """(n,) predicted responses: medians or means, as the option `predicted` says."""
        factor = _correction(self.predicted)
        scores = self.predict_linear(X)
        with np.errstate(over="ignore"):  # beyond float64 it is infinite
            return np.asarray(np.exp(scores) * factor(self))

    def _title(self) -> str:
        return "LogLinear: least squares on ln y (deviance, AIC and log likelihood are of ln y too)"

    def _rates(self) -> bool:
        return True

    def _logs(self, y: Any) -> Floats:
        response = open_single_response(y, type(self).__name__)
        wrong = np.flatnonzero(response <= 0)
        if len(wrong):
            raise ResponseError.of_range(
                int(wrong[0]),
                len(wrong),
                asking="its logarithm",
                allowed="a number above 0",
                instead="fit GLM('poisson'), which takes zeros",
            )
        return np.log(response)

    def _likelihood_peak(self, X: Any, y: Any, weight: Any, offset: Any) -> Peak:
        return self._peak_of(X, self._logs(y), weight, offset)


# --- options --------------------------------------------------------------------------------------


def _deviance(family: Any, link: Any) -> Deviance:
    if not isinstance(family, str) or family not in LINKS:
        raise OptionError.of("family", family, f"one of {', '.join(LINKS)}")
    links = LINKS[family]
    if link is not None and link not in links:
        raise OptionError.of(
            "link", link, f"one of {', '.join(links)} for family='{family}', or None for {links[0]}"
        )
    return Deviance(family, links[0] if link is None else link)


def _correction(predicted: Any) -> Callable[[Any], float]:
    """Factor of the fitted median."""
    factors: dict[str, Callable[[Any], float]] = {
        "median": lambda model: 1.0,
        "mean": lambda model: float(np.exp(0.5 * model.dispersion_)),
        "smearing": lambda model: model.smearing_,
    }
    if not isinstance(predicted, str) or predicted not in factors:
        raise OptionError.of("predicted", predicted, f"one of {', '.join(factors)}")
    return factors[predicted]
