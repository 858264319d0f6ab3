"""GLM and LogLinear: numbers whose mean is a function of a linear score."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import RegressorMixin

from discriminant.assessment.inference import Inference, Likelihood, estimable, infer
from discriminant.assessment.profile import Peak
from discriminant.engines.engine import anchor_of, fold, read_moments
from discriminant.errors import (
    BoundaryWarning,
    InferenceError,
    NotConvergedWarning,
    OffsetError,
    OptionError,
    ResponseError,
    ShapeError,
    TooFewRowsError,
    tell,
)
from discriminant.estimators.base import Rows
from discriminant.estimators.inferring import Inferring
from discriminant.estimators.regression import check_ridge, open_responses
from discriminant.models.descent import GRADIENT, Progress
from discriminant.models.glm import GLMFit, Problem, Scaled, fit_glm
from discriminant.models.rules import LinearRule
from discriminant.models.wide import is_wide
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.families import FREE_DISPERSION, LINKS, Deviance
from discriminant.moments.saturation import Saturation, SaturationReading, log_likelihood
from discriminant.table.schema import Floats
from discriminant.table.source import Table, open_table


class _Kept(NamedTuple):
    """A fit, and what else inference asks for; no rows."""

    deviance: Deviance
    fit: GLMFit
    anchor: Anchor  # of the features
    responses: Saturation
    told: Any  # (d,) features whose coefficient the rows tell
    level: float  # what was taken off the response, and belongs to the intercept
    offset: bool  # whether there was one
    ridge: float


class _Generalised(RegressorMixin, Inferring, Rows):
    """What both models share: rows to a problem, a problem to a fit."""

    _mark = "rule_"
    _ways_to_fit = "fit"

    rule_: LinearRule  # the score, without the offset
    coef_: Floats  # (d,) in the user's numbers
    intercept_: float
    _kept: _Kept

    ridge: Any
    intercept: Any
    max_iter: Any
    progress: Progress | None

    # --- fitting ----------------------------------------------------------------------------------

    def _fit(self, X: Any, response: Floats, weight: Any, offset: Any, deviance: Deviance) -> None:
        self._check()
        table, level = self._table(X, response, weight, offset, deviance)
        moments = self._read(table)
        problem = self._problem(table, moments, deviance)
        most = int(self.max_iter)
        fit = fit_glm(problem, most=most, progress=self.progress)
        responses = fold(table, SaturationReading(deviance.family))
        told = estimable(fit.coordinates, problem.scale())
        anchor = problem.features.anchor
        some = offset is not None
        kept = _Kept(deviance, fit, anchor, responses, told, level, some, float(self.ridge))
        self._settle(table, kept)

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

    def _read(self, table: Table) -> ClassMoments:
        anchor = anchor_of(table)
        if not self.intercept:
            anchor = Anchor(np.zeros(len(anchor.unit)), anchor.unit)
        return read_moments(table, detail="pooled", anchor=anchor)

    def _problem(self, table: Table, moments: ClassMoments, deviance: Deviance) -> Problem:
        return Problem(
            lambda reading: fold(table, reading),
            moments,
            table.width,
            deviance,
            bool(self.intercept),
            float(self.ridge),
        )

    def _settle(self, table: Table, kept: _Kept) -> None:
        fit = kept.fit
        coef, at_origin = fit.coordinates.coefficients(fit.theta)
        self._remember(table.schema.features, table.schema.named)
        self._kept = kept
        self.rule_ = LinearRule(np.zeros(1), kept.anchor, coef.T, at_origin + kept.level)
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
            tell(BoundaryWarning.of(name, self.n_passes_, fit.stride))
        elif not fit.converged:
            tell(NotConvergedWarning.of(name, len(fit.path), fit.steepness, GRADIENT))

    def _check(self) -> None:
        check_ridge(self.ridge)
        if not (isinstance(self.max_iter, Integral) and int(self.max_iter) > 0):
            raise OptionError.of("max_iter", self.max_iter, "a whole number, 1 or more")

    # --- using ------------------------------------------------------------------------------------

    def predict_linear(self, X: Any, offset: Any = None) -> Floats:
        """(n,) scores, the offset among them."""
        self._need_fit()
        if not self._plain(X):
            X = self._features(X)
        scores = self._finite(self.rule_.scores, X)[:, 0]
        if offset is None and self._kept.offset:
            raise OffsetError.forgotten()
        return scores if offset is None else scores + open_offset(offset, len(scores))

    @property
    def inference_(self) -> Inference:
        """Estimates, their covariance, tests and criteria."""
        self._need_fit()
        kept = self._kept
        if kept.ridge:
            raise InferenceError.of_ridge(kept.ridge)
        fit = kept.fit
        assert fit.slope.curvature is not None
        return infer(
            fit.theta,
            curvature=fit.coordinates.curvature(fit.slope.curvature),
            coordinates=fit.coordinates,
            anchor=kept.anchor,
            features=self._schema.features,
            likelihood=_likelihood(kept, self.dispersion_),
            title=f"{type(self).__name__}: {kept.deviance.family}, link {kept.deviance.link}",
            told=kept.told,
            level=kept.level,
            odds=kept.deviance.link == "logit",
            passes=self.n_passes_,
            steps=self.n_iter_,
        )

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
        return Peak(Scaled(objective, kept.fit.unit), kept.fit.theta, kept.fit.unit)


class GLM(_Generalised):
    """Generalised linear model: g(mean of y) = x'w + b + offset, by iterated least squares.

    Maximum likelihood by default. Every step reads the rows once.

    Parameters
    ----------
    family
        'gaussian', 'binomial' (y is a share, sample_weight the number of trials), 'poisson' or
        'gamma'.
    link
        None for the canonical one. gaussian: 'identity', 'log', 'inverse'; binomial: 'logit',
        'probit', 'cloglog', 'cauchit', 'log'; poisson: 'log', 'identity', 'sqrt'; gamma:
        'inverse', 'log', 'identity'.
    ridge
        Minimises  mean of deviance / 2  +  ridge/2 times the sum of squared coefficients of
        standardised features; the intercept is free.
    intercept
        False: through the origin.
    max_iter
        Passes of the iteration, at most.
    progress
        Called after every pass with its number, the loss and the largest entry of the gradient.

    Attributes
    ----------
    coef_, intercept_
        In the user's numbers. `predict` does not use `intercept_`: it counts from an origin near
        the rows.
    deviance_, null_deviance_, dispersion_
        The dispersion is Pearson's chi-squared over the residual degrees of freedom for gaussian
        and gamma, and 1 for the others.
    converged_, n_iter_, n_passes_, loss_path_
        Whether the gradient vanished; steps; passes over the rows in all; loss of each step.
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
        max_iter: Any = 100,
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
        response = _in_range(_flat(y, type(self).__name__), sample_weight, deviance.family)
        self._fit(X, response, sample_weight, offset, deviance)
        return self

    def predict(self, X: Any, offset: Any = None) -> Floats:
        """(n,) means."""
        return self._kept_deviance().mean(self.predict_linear(X, offset))

    def _kept_deviance(self) -> Deviance:
        self._need_fit()
        return self._kept.deviance

    def _peak(self, X: Any, y: Any, weight: Any, offset: Any) -> Peak:
        response = _in_range(_flat(y, "GLM"), weight, self._kept.deviance.family)
        return self._peak_of(X, response, weight, offset)


class LogLinear(_Generalised):
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
        self.smearing_ = float(np.average(left, weights=sample_weight))
        return self

    def predict(self, X: Any) -> Floats:
        """(n,) y: its median, or as `predicted` asks its mean."""
        factor = _correction(self.predicted)
        scores = self.predict_linear(X)
        return np.asarray(np.exp(scores) * factor(self))

    def _logs(self, y: Any) -> Floats:
        return np.log(_in_range(_flat(y, type(self).__name__), None, "gamma", "a logarithm"))

    def _peak(self, X: Any, y: Any, weight: Any, offset: Any) -> Peak:
        return self._peak_of(X, self._logs(y), weight, offset)


# --- at the door ----------------------------------------------------------------------------------

_RANGES: dict[str, tuple[str, Callable[[Floats], Any]]] = {
    "binomial": ("a share from 0 to 1", lambda y: (y >= 0) & (y <= 1)),
    "poisson": ("a number that is 0 or more", lambda y: y >= 0),
    "gamma": ("a number above 0", lambda y: y > 0),
}
_EDGES = {"binomial": (0.0, 1.0), "poisson": (0.0,)}


def _flat(y: Any, name: str) -> Floats:
    """One finite number a row."""
    found = np.asarray(open_responses(y, name))
    if found.ndim == 2 and found.shape[1] == 1:
        return found[:, 0]
    if found.ndim != 1:
        raise ResponseError.of_shape(found.shape)
    return found


def _in_range(response: Floats, weight: Any, family: str, name: str | None = None) -> Floats:
    """Responses that a family can have, not all of them at one edge of it."""
    if family not in _RANGES:
        return response
    allowed, within = _RANGES[family]
    wrong = np.flatnonzero(~within(response))
    if len(wrong):
        asking = f"family='{family}'" if name is None else name
        raise ResponseError.of_range(int(wrong[0]), len(wrong), asking, allowed)
    counted = response
    if weight is not None and np.shape(weight) == response.shape:
        counted = response[np.asarray(weight, dtype=object) != 0]
    for edge in _EDGES.get(family, ()):
        if len(counted) and (counted == edge).all():
            raise ResponseError.of_one_value(edge, family)
    return response


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


# --- after the fit --------------------------------------------------------------------------------


def _dispersion(kept: _Kept) -> float:
    if kept.deviance.family not in FREE_DISPERSION:
        return 1.0
    left = kept.responses.rows - kept.fit.coordinates.size
    return kept.fit.pearson / left if left > 0 else float("nan")


def _likelihood(kept: _Kept, dispersion: float) -> Likelihood:
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
