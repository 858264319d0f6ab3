"""What generalised linear models share: rows to a problem, a problem to a fit, a fit to inference.

More features than rows are fitted in the directions that the rows span (`models.row_space`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import RegressorMixin

from discriminant.assessment.inference import Inference, Likelihood, estimable, infer
from discriminant.assessment.profile import Peak
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
    tell,
)
from discriminant.estimators.base import Rows
from discriminant.estimators.inferring import Inferring
from discriminant.estimators.likelihood import column_sums, is_large, sample_of
from discriminant.estimators.regression import check_ridge
from discriminant.estimators.responses import problem_alone, without_features
from discriminant.estimators.spanned import Spanned
from discriminant.models.coordinates import Coordinates
from discriminant.models.descent import GRADIENT, Progress
from discriminant.models.glm import GLMFit, Problem, fit_glm
from discriminant.models.glm_scaled import fit_glm_scaled
from discriminant.models.rules import LinearRule
from discriminant.models.scoring import Scaled
from discriminant.models.wide import is_wide
from discriminant.moments.anchor import Anchor
from discriminant.moments.families import FREE_DISPERSION, Deviance
from discriminant.moments.saturation import Saturation, SaturationReading, log_likelihood
from discriminant.table.schema import Floats
from discriminant.table.source import Table, open_table

_MANY = 8192  # rows; of more, some are fitted first


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


class _Found(NamedTuple):
    """A fit, in what its coordinates are of."""

    fit: GLMFit
    anchor: Anchor  # of the features, or directions
    told: Any  # (d,) as in `_Kept`; None where there is no inference
    spanned: Spanned | None  # the way back from directions


class Generalised(RegressorMixin, Inferring, Rows):
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

    # --- its parts, besides `rule_` --------------------------------------------------------------

    @property
    def link_(self) -> str:
        """The function of the mean that the score is."""
        self._need_fit()
        return self._kept.deviance.link

    @property
    def with_offset_(self) -> bool:
        """Whether it was fitted with an offset, which `rule_` does not hold."""
        self._need_fit()
        return self._kept.offset

    # --- fitting ----------------------------------------------------------------------------------

    def _fit(self, X: Any, response: Floats, weight: Any, offset: Any, deviance: Deviance) -> None:
        self._check()
        table, level = self._table(X, response, weight, offset, deviance)
        _not_at_an_edge(table, deviance.family)
        self._remember(table.schema.features, table.schema.named)
        found = self._found(table, deviance)
        responses = fold(table, SaturationReading(deviance.family))
        self._kept = _Kept(
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
        self._settle(rule if found.spanned is None else found.spanned.widened(rule))

    def _found(self, table: Table, deviance: Deviance) -> _Found:
        """In the way that suits the table; where that does not end, by the directions of rows."""
        if not (self.ridge and is_large(table)):
            return self._white(table, deviance)
        found = self._scaled(table, deviance)
        if found.fit.converged or not is_wide(len(table), table.width):
            return found
        again = self._white(table, deviance)
        passes = found.fit.passes + again.fit.passes
        return again._replace(fit=replace(again.fit, passes=passes))

    def _white(self, table: Table, deviance: Deviance) -> _Found:
        """By the products of the features, or of the directions that rows span."""
        spanned = self._spanned(table) if is_wide(len(table), table.width) else None
        if spanned is not None:
            table = spanned.table
        problem = self._problem(table, deviance, standardize=spanned is None)
        fit = fit_glm(problem, most=int(self.max_iter), progress=self.progress)
        assert isinstance(fit.coordinates, Coordinates)
        told = estimable(fit.coordinates, problem.scale())
        return _Found(fit, problem.features.anchor, told, spanned)

    def _scaled(self, table: Table, deviance: Deviance) -> _Found:
        """By sparse columns, of which there are too many for products."""
        problem = replace(
            problem_alone(table, deviance),
            read=partial(fold, table),
            intercept=bool(self.intercept),
            ridge=float(self.ridge),
        )
        fit = fit_glm_scaled(
            problem,
            column_sums(table),
            sample_of(table),
            features=table.schema.features,
            most=int(self.max_iter),
            progress=self.progress,
        )
        return _Found(fit, Anchor.zero(table.width), None, None)

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

    def _problem(self, table: Table, deviance: Deviance, *, standardize: bool) -> Problem:
        sample = sample_of(table) if len(table) > _MANY else None
        if sample is not None and 4 * len(sample) > len(table):
            sample = None
        return Problem(
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

    def _spanned(self, table: Table) -> Spanned:
        """The directions that the rows span."""
        anchor = self._anchor(table).select(np.arange(table.width))
        return Spanned.of(table, anchor, centred=bool(self.intercept))

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
            tell(BoundaryWarning.of(name, self.n_passes_, fit.stride))
        elif fit.at_edge:
            tell(BoundaryWarning.of_edge(name))
        elif not fit.converged:
            tell(NotConvergedWarning.of_gradient(name, len(fit.path), fit.steepness, GRADIENT))

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

    def inference(self) -> Inference:
        """Estimates, their covariance, tests and criteria."""
        self._need_fit()
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
        return Peak(Scaled(objective, kept.fit.unit), kept.fit.theta, kept.fit.unit)


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


def _rule(kept: _Kept) -> LinearRule:
    coef, at_origin = kept.fit.coordinates.coefficients(kept.fit.theta)
    return LinearRule(np.zeros(1), kept.anchor, coef.T, at_origin + kept.level)


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
