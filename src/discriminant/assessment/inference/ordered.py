"""Standard errors, tests and the printed summary of models of ordered classes.

The estimates in the user's units are linear combinations of theta (`models.linear.ordered`): the
coefficients, followed by the thresholds at x = 0. The covariance is the inverse of the observed
curvature, as in R's `polr` and `clm`. The null model has only thresholds, so its log likelihood is
that of the class shares.

`OrderedFit` is the state that a fitted model stores for inference, without rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from discriminant.assessment.inference.coefficient_summary import (
    CoefficientSummary,
    Inference,
    Likelihood,
    coefficient_lines,
)
from discriminant.assessment.inference.wald import identified_features, root_of_covariance
from discriminant.assessment.printed_results import format_short
from discriminant.models.linear.logistic import penalty_factors
from discriminant.models.linear.ordered import OrderedResult, interval
from discriminant.models.linear.preconditioning import Coordinates
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.posterior import posterior
from discriminant.table.blocks import Features, Floats

_MAX_STEP = 2e-9  # a longer last step would change digits of the standard errors


@dataclass(frozen=True, slots=True, eq=False)
class OrderedFit:
    """State of a fitted model of ordered classes that inference needs; it contains no rows."""

    theta: Floats  # (K-1+q, 1) estimates
    curvature: Floats  # (K-1+q, K-1+q) curvature of the loss by theta, summed over rows
    loss: float  # summed over rows
    coordinates: Coordinates  # of the score
    anchor: Anchor
    features: tuple[str, ...]  # names of the d features
    levels: npt.NDArray[np.object_]  # (K,) classes in their order
    weight: Floats  # (K,) weight of each class
    rows: int  # number of rows of positive weight
    link: str
    identified: npt.NDArray[np.bool_] | None = None  # (d,) see `wald.identified_features`

    @staticmethod
    def invalid_reason(parts: Any) -> str | None:
        """Return the reason why these fields do not form a valid state, or None if they do."""
        K, q = len(parts["levels"]), parts["coordinates"].size
        size = K - 1 + q
        if parts["theta"].shape != (size, 1) or parts["curvature"].shape != (size, size):
            return f"theta and curvature must have {size} estimates"
        return None if parts["weight"].shape == (K,) else f"weight must have {K} classes"

    @property
    def directions(self) -> Floats:
        """Matrix (d+K-1, K-1+q) that maps theta to the estimates in the user's units."""
        m = len(self.levels) - 1
        frame, d = self.coordinates.frame, len(self.features)
        slopes = frame[:-1] / self.anchor.unit[:, None]
        directions = np.zeros((d + m, m + frame.shape[1]))
        directions[:d, m:] = slopes
        directions[d:, :m] = np.eye(m)
        directions[d:, m:] = self.anchor.origin @ slopes - frame[-1]
        return directions

    @property
    def likelihood(self) -> Likelihood:
        """Likelihood of the labels, given the features."""
        null = float(xlogy(self.weight, self.weight / self.weight.sum()).sum())
        size = len(self.theta)
        return Likelihood(
            deviance=2.0 * self.loss,
            null_deviance=-2.0 * null,
            log_likelihood=-self.loss,
            null_log_likelihood=null,
            rows=self.rows,
            df_residual=self.rows - size,
            df_null=self.rows - (len(self.levels) - 1),
            numbers=size,
        )

    def log_odds_errors(self, features: Features, tilt: Floats) -> Floats:
        """Return the (n, K) standard errors of the log odds of each class against all others.

        Classes are in their order; `tilt` (K,) is added to their log probabilities.
        """
        m, frame = len(self.levels) - 1, self.coordinates.frame
        root = root_of_covariance(self.curvature, np.eye(len(self.theta)))
        if not np.isfinite(root).all():
            return np.full((features.shape[0], m + 1), np.inf)
        rows = np.asarray(self.anchor.offsets(features) @ frame[:-1] + frame[-1])
        eta = rows @ self.theta[m:]
        ends = np.concatenate([[-np.inf], self.theta[:m, 0], [np.inf]])
        part = interval(self.link, ends[1:] - eta, ends[:-1] - eta)
        slopes = np.zeros((len(eta), m + 1, m + 1))  # of log probabilities, by thresholds and eta
        for k in range(m):
            slopes[:, k, k] = part.upper[:, k]
            slopes[:, k + 1, k] = -part.lower[:, k + 1]
        slopes[:, :, m] = part.lower - part.upper
        errors = np.empty((len(eta), m + 1))
        for k in range(m + 1):
            others = np.delete(part.log_p + tilt, k, axis=1)
            shares = posterior(others)  # p_j / (1 - p_k)
            step = slopes[:, k] - np.einsum("nj,njm->nm", shares, np.delete(slopes, k, axis=1))
            roots = step[:, :m] @ root[:, :m].T + (step[:, m:] * rows) @ root[:, m:].T
            errors[:, k] = np.sqrt(np.einsum("np,np->n", roots, roots))
        return errors

    def infer(self, *, passes: int, steps: int, converged: bool) -> Inference:
        """Return coefficients, then thresholds, with standard errors and tests."""
        directions = self.directions
        root = root_of_covariance(self.curvature, directions)
        if self.identified is not None and not self.identified.all():
            root[:, np.flatnonzero(~self.identified)] = np.nan
        texts = [str(level) for level in self.levels.tolist()]
        thresholds = [f"{low}|{high}" for low, high in pairwise(texts)]
        return Inference(
            f"OrderedLogistic, link {self.link}",
            (*self.features, *thresholds),
            None,
            directions @ self.theta[:, 0],
            directions,
            root,
            self.likelihood,
            odds=self.link == "logit",
            passes=passes,
            steps=steps,
            converged=converged,
            thresholds=len(thresholds),
        )


def ordered_state(result: OrderedResult, moments: ClassMoments, levels: Any) -> OrderedFit:
    """Return the state for inference; if the last step was long, another pass is made.

    `levels` are the K classes in their order.
    """
    objective, point = result.objective, result.descent.point
    theta = result.theta
    moved = float(np.abs(point.theta - theta).max(initial=0.0)) > _MAX_STEP
    if moved or point.curvature is None:
        point = objective.evaluate(theta, want="curvature")
    assert point.curvature is not None
    identified = None
    if objective.coordinates.size < len(moments.features):
        scale = penalty_factors(moments, standardize=True, intercept=True)
        identified = identified_features(objective.coordinates, scale)
    order = np.argsort(objective.positions)
    return OrderedFit(
        theta,
        point.curvature * point.slope.weight,
        point.slope.loss,
        objective.coordinates,
        objective.anchor,
        moments.features,
        np.asarray(levels, dtype=object),
        moments.weight[order],
        int(moments.rows.sum()),
        objective.link,
        identified,
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OrderedSummary(CoefficientSummary):
    """Result of `OrderedLogistic.summary()`: coefficients and thresholds with tests."""

    levels: tuple[object, ...] = ()  # classes from lowest to highest

    @property
    def text(self) -> str:
        """Text in the layout of R's summary of a `polr`."""
        inference, fit = self.inference, self.inference.likelihood
        d = len(inference.names) - inference.thresholds
        places = np.arange(len(inference.names))
        lines = [
            f"{inference.title}: {' < '.join(str(level) for level in self.levels)}",
            "",
            "Coefficients:",
            *coefficient_lines(inference, places[:d], estimate="Value"),
            "",
            "Intercepts:",
            *coefficient_lines(inference, places[d:], estimate="Value"),
            "",
            f"Residual Deviance: {format_short(fit.deviance)}",
            f"AIC: {format_short(fit.aic)}   BIC: {format_short(fit.bic)}   "
            f"log likelihood: {format_short(fit.log_likelihood)}",
            "",
            f"Number of Newton iterations: {inference.steps} ({inference.passes} passes over "
            f"{fit.rows} rows)",
        ]
        if not inference.converged:
            lines.append("The fit has not converged: its standard errors and tests are not valid.")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as a dictionary of plain numbers, lists and texts."""
        # `super()` without arguments does not work in a dataclass with slots
        return {"levels": list(self.levels)} | CoefficientSummary.to_dict(self)
