"""GLM and LogLinear: numbers whose mean is a function of a linear score.

Responses at the door of generalised linear models: numbers that their family can have.

What generalised linear models share: rows to a problem, a problem to a fit, a fit to inference.

More features than rows are fitted in the directions that the rows span (`models.row_space`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import RegressorMixin

from discriminant.assessment.inference.profile import Peak
from discriminant.assessment.inference.wald import Inference, Likelihood, estimable, infer
from discriminant.engines.engine import anchor_of, fold, read_moments
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
from discriminant.estimators.base import RowEstimator
from discriminant.estimators.linear.iterative_linear import RowSpaceTable
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
from discriminant.models.linear.whitening import Coordinates
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
from discriminant.table.labels import one_dimensional
from discriminant.table.memory import Table, open_table, open_weight

_RANGES: dict[str, tuple[str, Callable[[Floats], Any]]] = {
    "binomial": ("a share from 0 to 1", lambda y: (y >= 0) & (y <= 1)),
    "poisson": ("a number that is 0 or more", lambda y: y >= 0),
    "gamma": ("a number above 0", lambda y: y > 0),
}


class Responses(NamedTuple):
    """A response for each row, and what it weighs."""

    response: Floats  # (n,)
    weight: Floats | None  # (n,)

    def mean(self, values: Floats) -> float:
        """Weighted mean of a value for each row; one of no weight is not looked at."""
        if self.weight is None:
            return float(values.mean())
        some = self.weight > 0
        return float(np.average(values[some], weights=self.weight[some]))


def open_glm_responses(y: Any, weight: Any, *, family: str, name: str) -> Responses:
    """One number a row that the family can have, and the weight.

    Of a binomial family y may be two columns, successes and failures, as in R. Then the response
    is the share of successes, and the weight is multiplied by the number of trials.
    """
    if family == "binomial":
        _not_names(y, name)
        found = open_responses(y, name) if y is not None else None
        if found is not None and found.ndim == 2 and found.shape[1] == 2:
            return _shares(found, weight)
    response = open_single_response(y, name)
    return Responses(_in_range(response, family), open_weight(weight, len(response)))


def open_single_response(y: Any, name: str) -> Floats:
    """One finite number a row."""
    if y is None:
        raise ResponseError.absent(name)
    found = open_responses(y, name)
    if found.ndim == 2 and found.shape[1] > 1:
        raise ResponseError.of_columns(found.shape)
    return one_dimensional(found)


def check_response_size(response: Floats, deviance: Deviance) -> None:
    """Responses whose squares, or whose fourth powers for an inverse link, are still numbers."""
    if deviance.family not in ("gaussian", "gamma"):
        return
    kind = deviance.family, deviance.link
    bound = 1e70 if kind == ("gaussian", "inverse") else 1e150
    least = 0.0 if kind == ("gaussian", "identity") else 1.0 / bound
    size = float(np.abs(response).max())
    if size and not least <= size <= bound:
        raise ResponseError.out_of_reach(size, bound)


def null_loss(given: Responses, deviance: Deviance, offset: Any) -> float:
    """Mean of half the deviance from the best constant mean; with an offset, constant beside it."""
    response, weight = given
    if offset is None:
        level = np.full(len(response), given.mean(response))
        return given.mean(half_deviance(response, level, deviance.family))
    beside = np.broadcast_to(np.asarray(offset, dtype=np.float64), response.shape)
    table = open_table(
        np.zeros((len(response), 1)), responses=np.column_stack([response, beside]), weight=weight
    )
    slope = fit_null(null_problem(table, deviance)).point.slope
    return slope.loss / slope.weight


def null_problem(table: Table, deviance: Deviance) -> GLMProblem:
    """The problem of the responses of a table, and none of its features."""
    narrow = without_features(table)
    read = partial(fold, narrow)
    moments = read_moments(narrow, detail="pooled")
    return GLMProblem(read, read, moments, 1, deviance, intercept=True, ridge=0.0)


def without_features(table: Table) -> Table:
    """The same rows, with one column of zeros in place of their features."""
    schema = Schema(("none",), table.schema.labels)
    nothing = np.zeros((len(table), 1))
    return Table(schema, nothing, table.codes, table.weight, table.responses)


def _not_names(y: Any, name: str) -> None:
    """Classes by name have a model of their own."""
    found = np.asarray(y)
    if found.dtype.kind not in "OSU" or not found.size or y is None:
        return
    try:
        found.astype(np.float64)
    except (TypeError, ValueError):
        if isinstance(found.flat[0], str):
            raise ResponseError.of_names(name) from None


def _shares(counts: Floats, weight: Any) -> Responses:
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
    given = open_weight(weight, len(trials))
    return Responses(share, trials if given is None else trials * given)


def _in_range(response: Floats, family: str) -> Floats:
    """Responses that a family can have."""
    if family not in _RANGES:
        return response
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
    return response


_MANY = 8192  # rows; of more, some are fitted first


class GLMState(NamedTuple):
    """A fit, and what else inference asks for; no rows."""

    deviance: Deviance
    fit: GLMFit
    anchor: Anchor  # of the features
    responses: SaturatedLikelihood
    told: Any  # (d,) features whose coefficient the rows tell
    level: float  # what was taken off the response, and belongs to the intercept
    offset: bool  # whether there was one
    ridge: float


class _GLMTableFit(NamedTuple):
    """A fit, in what its coordinates are of."""

    fit: GLMFit
    anchor: Anchor  # of the features, or directions
    told: Any  # (d,) as in `_Kept`; None where there is no inference
    spanned: RowSpaceTable | None  # the way back from directions


class GeneralisedLinearModel(RegressorMixin, LikelihoodInference, RowEstimator):
    """What both models share: rows to a problem, a problem to a fit."""

    _fitted_attribute = "rule_"
    _fit_methods = "fit"

    rule_: LinearRule  # the score, without the offset
    coef_: Floats  # (d,) in the user's numbers
    intercept_: float
    _kept: GLMState

    ridge: Any
    intercept: Any
    max_iter: Any
    progress: Progress | None

    # --- its parts, besides `rule_` --------------------------------------------------------------

    @property
    def link_(self) -> str:
        """The function of the mean that the score is."""
        self._check_is_fitted()
        return self._kept.deviance.link

    @property
    def with_offset_(self) -> bool:
        """Whether it was fitted with an offset, which `rule_` does not hold."""
        self._check_is_fitted()
        return self._kept.offset

    # --- fitting ----------------------------------------------------------------------------------

    def _fit(self, X: Any, response: Floats, weight: Any, offset: Any, deviance: Deviance) -> None:
        self._check()
        table, level = self._table(X, response, weight, offset, deviance)
        _not_at_an_edge(table, deviance.family)
        self._set_features(table.schema.features, table.schema.named)
        found = self._found(table, deviance)
        responses = fold(table, SaturatedLikelihoodReading(deviance.family))
        self._kept = GLMState(
            deviance,
            found.fit,
            found.anchor,
            responses,
            found.told,
            level,
            offset is not None,
            float(self.ridge),
        )
        rule = _rule(self._kept)
        self._settle(rule if found.spanned is None else found.spanned.to_features(rule))

    def _found(self, table: Table, deviance: Deviance) -> _GLMTableFit:
        """In the way that suits the table; where that does not end, by the directions of rows."""
        if not (self.ridge and is_large_sparse(table)):
            return self._white(table, deviance)
        found = self._scaled(table, deviance)
        if found.fit.converged or not is_wide(len(table), table.width):
            return found
        again = self._white(table, deviance)
        passes = found.fit.passes + again.fit.passes
        return again._replace(fit=replace(again.fit, passes=passes))

    def _white(self, table: Table, deviance: Deviance) -> _GLMTableFit:
        """By the products of the features, or of the directions that rows span."""
        spanned = self._spanned(table) if is_wide(len(table), table.width) else None
        if spanned is not None:
            table = spanned.table
        problem = self._problem(table, deviance, standardize=spanned is None)
        fit = fit_glm(problem, most=int(self.max_iter), progress=self.progress)
        assert isinstance(fit.coordinates, Coordinates)
        told = estimable(fit.coordinates, problem.scale())
        return _GLMTableFit(fit, problem.features.anchor, told, spanned)

    def _scaled(self, table: Table, deviance: Deviance) -> _GLMTableFit:
        """By sparse columns, of which there are too many for products."""
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

    def _table(
        self, X: Any, response: Floats, weight: Any, offset: Any, deviance: Deviance
    ) -> tuple[Table, float]:
        """Rows at the door, with response and offset side by side; and what was taken off.

        Where the score is the mean of a Gaussian, responses can be counted from near their own
        middle. Then a large mean costs no digit.
        """
        name = type(self).__name__
        plain = deviance == Deviance("gaussian", "identity") and bool(self.intercept)
        level = float(np.median(response)) if plain else 0.0
        columns = (response - level)[:, None]
        if offset is not None:
            columns = np.column_stack([columns, open_offset(offset, len(response))])
        table = open_table(X, responses=columns, weight=weight, name=name)
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

    def _spanned(self, table: Table) -> RowSpaceTable:
        """The directions that the rows span."""
        anchor = self._anchor(table).select(np.arange(table.width))
        return RowSpaceTable.of(table, anchor, centred=bool(self.intercept))

    def _settle(self, rule: LinearRule) -> None:
        kept, self.rule_ = self._kept, rule
        fit = kept.fit
        slope, at_zero = self.rule_.slopes()
        self.coef_, self.intercept_ = slope[0], float(at_zero[0]) if self.intercept else 0.0
        self.rank_ = fit.coordinates.size
        self.deviance_, self.null_deviance_ = fit.deviance, fit.null
        self.dispersion_ = _dispersion(kept)
        self.converged_, self.loss_path_ = fit.converged, np.array(fit.path)
        self.n_passes_, self.n_iter_ = fit.passes + 1, max(len(fit.path) - 1, 1)
        self._tell()

    def _tell(self) -> None:
        fit, name = self._kept.fit, type(self).__name__
        if fit.diverging:
            warn(BoundaryWarning.of(name, self.n_passes_, fit.stride))
        elif fit.at_edge:
            warn(BoundaryWarning.of_edge(name))
        elif not fit.converged:
            warn(NotConvergedWarning.of_gradient(name, len(fit.path), fit.steepness, GRADIENT))

    def _check(self) -> None:
        check_ridge(self.ridge)
        if not (isinstance(self.max_iter, Integral) and int(self.max_iter) > 0):
            raise OptionError.of("max_iter", self.max_iter, "a whole number, 1 or more")

    # --- using ------------------------------------------------------------------------------------

    def predict_linear(self, X: Any, offset: Any = None) -> Floats:
        """(n,) scores, the offset among them."""
        self._check_is_fitted()
        scores = self._score_rows(self.rule_.scores, X)[:, 0]
        if offset is None and self._kept.offset:
            raise OffsetError.forgotten()
        return scores if offset is None else scores + open_offset(offset, len(scores))

    def inference(self) -> Inference:
        """Estimates, their covariance, tests and criteria."""
        self._check_is_fitted()
        kept = self._kept
        if kept.ridge:
            raise InferenceError.of_ridge(kept.ridge)
        fit = kept.fit
        if fit.diverging:
            raise NoEstimateError.of_infinite(type(self).__name__)
        if fit.at_edge:
            raise NoEstimateError.of_edge(type(self).__name__)
        assert fit.slope.curvature is not None and isinstance(fit.coordinates, Coordinates)
        return infer(
            fit.theta,
            curvature=fit.coordinates.curvature(fit.slope.curvature),
            coordinates=fit.coordinates,
            anchor=kept.anchor,
            features=self._schema.features,
            likelihood=_likelihood(kept, self.dispersion_),
            title=self._title(),
            told=kept.told,
            level=kept.level,
            odds=kept.deviance.link == "logit",
            rates=self._rates(),
            passes=self.n_passes_,
            steps=self.n_iter_,
            converged=self.converged_,
        )

    def _title(self) -> str:
        """What was fitted."""
        deviance = self._kept.deviance
        return f"{type(self).__name__}: {deviance.family}, link {deviance.link}"

    def _rates(self) -> bool:
        """Whether the exponential of a coefficient multiplies what is predicted."""
        return self._kept.deviance.link == "log"

    def _peak_of(self, X: Any, response: Floats, weight: Any, offset: Any) -> Peak:
        kept = self._kept
        names = self._schema if self._schema.named else None
        columns = (response - kept.level)[:, None]
        if offset is not None:
            columns = np.column_stack([columns, open_offset(offset, len(response))])
        table = open_table(X, responses=columns, weight=weight, match=names)
        if len(columns) != len(table):
            raise ShapeError.of_lengths("y", len(columns), len(table))
        if table.width != self.n_features_in_:
            raise ShapeError.of_width(table.width, self.n_features_in_, type(self).__name__)
        objective = kept.fit.objective(
            lambda reading: fold(table, reading), table.schema.features, kept.anchor, kept.deviance
        )
        return Peak(RescaledObjective(objective, kept.fit.unit), kept.fit.theta, kept.fit.unit)


_EDGES = {"binomial": (0.0, 1.0), "poisson": (0.0,)}


def _not_at_an_edge(table: Table, family: str) -> None:
    """Responses that all are the least, or the most, that a mean can be have no finite score."""
    assert table.responses is not None
    counted = table.responses[:, 0]
    if table.weight is not None:
        counted = counted[table.weight > 0]
    for edge in _EDGES.get(family, ()):
        if (counted == edge).all():
            raise ResponseError.of_one_value(edge, family)


def open_offset(offset: Any, rows: int) -> Floats:
    """(n,) finite numbers; one number stands for all rows."""
    try:
        found = np.asarray(offset, dtype=np.float64)
    except (TypeError, ValueError):
        raise OffsetError.not_numbers() from None
    if found.ndim == 0:
        found = np.full(rows, float(found))
    if found.ndim != 1:
        raise OffsetError.of_shape(found.shape, rows)
    if len(found) != rows:
        raise ShapeError.of_lengths("offset", len(found), rows)
    if not np.isfinite(found).all():
        raise OffsetError.not_finite(int(np.argmin(np.isfinite(found))))
    return found


def _rule(kept: GLMState) -> LinearRule:
    coef, at_origin = kept.fit.coordinates.coefficients(kept.fit.theta)
    return LinearRule(np.zeros(1), kept.anchor, coef.T, at_origin + kept.level)


# --- after the fit --------------------------------------------------------------------------------


def _dispersion(kept: GLMState) -> float:
    if kept.deviance.family not in FREE_DISPERSION:
        return 1.0
    left = kept.responses.rows - kept.fit.coordinates.size
    return kept.fit.pearson / left if left > 0 else float("nan")


def _likelihood(kept: GLMState, dispersion: float) -> Likelihood:
    fit, responses, family = kept.fit, kept.responses, kept.deviance.family
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
    """Generalised linear model: g(mean of y) = x'w + b + offset, by iterated least squares.

    Maximum likelihood by default. Every step reads the rows once.

    Parameters
    ----------
    family
        'gaussian', 'binomial' (y is a share and sample_weight the number of trials, or y has two
        columns, successes and failures), 'poisson' or 'gamma'.
    link
        None for the canonical one. gaussian: 'identity', 'log', 'inverse'; binomial: 'logit',
        'probit', 'cloglog', 'cauchit', 'log'; poisson: 'log', 'identity', 'sqrt'; gamma:
        'inverse', 'log', 'identity'.
    ridge
        Minimises  mean of deviance / 2  +  ridge/2 times the sum of squared coefficients of
        standardised features (without an intercept, of root mean square one); the intercept is
        free. Then there are no standard errors.
    intercept
        False: through the origin.
    max_iter
        Passes of the iteration, at most. Without them, the rows are read once each for their
        moments, the null deviance, the start, the dispersion and the log likelihood.
    progress
        Called after every pass of the iteration with its number, the loss and the largest entry of
        the gradient.

    Attributes
    ----------
    coef_, intercept_
        In the user's numbers. `predict` does not use `intercept_`: it counts from an origin near
        the rows.
    deviance_, null_deviance_, dispersion_
        The dispersion is Pearson's chi-squared over the residual degrees of freedom for gaussian
        and gamma, and 1 for the others.
    converged_, n_iter_, n_passes_, loss_path_
        Whether the gradient vanished, or on the edge of what means can be holds rows there (a
        `BoundaryWarning` says so); steps; passes over the rows in all; loss of each step.
    rank_
        Numbers estimated: less than there are columns where these depend on one another.

    Examples
    --------
    >>> model = GLM("poisson").fit([[0.0], [0.0], [1.0], [1.0]], [1, 3, 3, 5])
    >>> round(float(model.coef_[0]), 9), round(model.intercept_, 9)  # log 2: means 2 and 4
    (0.693147181, 0.693147181)
    """

    def __init__(
        self,
        family: Any = "gaussian",
        link: Any = None,
        *,
        ridge: Any = 0.0,
        intercept: Any = True,
        max_iter: Any = 200,
        progress: Any = None,
    ) -> None:
        self.family = family
        self.link = link
        self.ridge = ridge
        self.intercept = intercept
        self.max_iter = max_iter
        self.progress = progress

    def __sklearn_tags__(self) -> Any:
        """Counts and gamma responses are not negative."""
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.family in ("poisson", "gamma")
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Read the rows, and again for each step."""
        deviance = _deviance(self.family, self.link)
        given = self._answers(y, sample_weight, deviance)
        check_response_size(given.response, deviance)
        self._fit(X, given.response, given.weight, offset, deviance)
        return self

    def predict(self, X: Any, offset: Any = None) -> Floats:
        """(n,) means."""
        return self._kept_deviance().mean(self.predict_linear(X, offset))

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """D2, the share of the deviance of y that is explained: 1 is perfect, 0 a constant mean.

        For the gaussian family it is R2. Of a fit with an offset, pass that of these rows: they are
        then compared with the best constant beside it.
        """
        deviance = self._kept_deviance()
        given = self._answers(y, sample_weight, deviance)
        scores = self.predict_linear(X, offset)
        if len(given.response) != len(scores):
            raise ShapeError.of_lengths("y", len(given.response), len(scores))
        left = given.mean(deviance.rows(scores, given.response).loss)
        null = null_loss(given, deviance, offset)
        if null == 0.0:
            return float(left == 0.0)
        return 1.0 - left / null

    def _answers(self, y: Any, weight: Any, deviance: Deviance) -> Responses:
        return open_glm_responses(y, weight, family=deviance.family, name=type(self).__name__)

    def _kept_deviance(self) -> Deviance:
        self._check_is_fitted()
        return self._kept.deviance

    def _likelihood_peak(self, X: Any, y: Any, weight: Any, offset: Any) -> Peak:
        given = self._answers(y, weight, self._kept.deviance)
        return self._peak_of(X, given.response, given.weight, offset)


class LogLinear(GeneralisedLinearModel):
    """Log-linear regression: ln y = x'w + b, by least squares on ln y.

    Errors are taken to be equal on the scale of ln y, so that they multiply y. A GLM with a log
    link fits the log of the mean of y instead, and its errors add to y.

    Parameters
    ----------
    predicted
        What `predict` gives. 'median': exp(x'w + b), the median of y where errors are symmetric.
        'mean': exp(x'w + b + s^2/2), its mean where they are normal. 'smearing': exp(x'w + b)
        times the mean of exp(residual), its mean whatever their shape (Duan 1983).
    ridge, intercept
        As in GLM.

    Attributes
    ----------
    coef_, intercept_
        A step of one in a column multiplies y by exp(coef_).
    deviance_, null_deviance_, dispersion_
        Sums of squares, and the variance s^2, of ln y. So are those of `summary()`.
    smearing_
        Mean of exp(residual).

    Examples
    --------
    >>> model = LogLinear().fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 4.0])
    >>> model.predict([[3.0]]).round(9).tolist()
    [8.0]
    """

    max_iter = 100
    progress = None

    def __init__(
        self, *, ridge: Any = 0.0, intercept: Any = True, predicted: Any = "median"
    ) -> None:
        self.ridge = ridge
        self.intercept = intercept
        self.predicted = predicted

    def __sklearn_tags__(self) -> Any:
        """A logarithm wants positive numbers."""
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Read the rows and fit."""
        _correction(self.predicted)
        logs = self._logs(y)
        self._fit(X, logs, sample_weight, None, Deviance("gaussian", "identity"))
        left = np.exp(logs - self.predict_linear(X))
        weight = open_weight(sample_weight, len(left))
        self.smearing_ = float(np.average(left, weights=weight))
        return self

    def predict(self, X: Any) -> Floats:
        """(n,) y: its median, or as `predicted` asks its mean."""
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
    """What the fitted median is multiplied by."""
    ways: dict[str, Callable[[Any], float]] = {
        "median": lambda model: 1.0,
        "mean": lambda model: float(np.exp(0.5 * model.dispersion_)),
        "smearing": lambda model: model.smearing_,
    }
    if not isinstance(predicted, str) or predicted not in ways:
        raise OptionError.of("predicted", predicted, f"one of {', '.join(ways)}")
    return ways[predicted]
