"""Inference for classes: logistic regression by any link, and softmax.

The log likelihood is that of the labels, minus the summed loss; its null has the shares of the
classes alone:

    log L = -sum w l        log L_0 = sum_k W_k log(W_k / W)

Two classes have Tjur's coefficient too: the mean probability of the second class among its own rows
less that among the others. Both sums are read in one pass, as loss and as slope of the intercept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from discriminant.assessment.inference import Inference, Likelihood, infer
from discriminant.models.coordinates import Coordinates
from discriminant.moments.anchor import Anchor
from discriminant.moments.losses import TWO_SIDED, LinkName
from discriminant.moments.slope import Local, Pass, Slope, SlopeReading, Want
from discriminant.table.schema import Block, Floats


@dataclass(frozen=True, slots=True, eq=False)
class ClassFit:
    """What inference keeps of a fit to classes; no rows."""

    theta: Floats  # (q, m)
    slope: Slope  # of the loss without penalty at theta, with its curvature
    coordinates: Coordinates
    anchor: Anchor
    features: tuple[str, ...]  # d
    labels: npt.NDArray[np.object_]  # (K,)
    weight: Floats  # (K,) of each class
    rows: int  # of positive weight
    link: LinkName = "logit"
    told: npt.NDArray[np.bool_] | None = None  # (d,) see `inference.estimable`
    tjur: float | None = None

    def infer(
        self, title: str, *, passes: int = 0, steps: int = 0, converged: bool = True
    ) -> Inference:
        """Estimates against the first class, with their errors and tests."""
        assert self.slope.curvature is not None
        return infer(
            self.theta,
            curvature=self.coordinates.curvature(self.slope.curvature),
            coordinates=self.coordinates,
            anchor=self.anchor,
            features=self.features,
            likelihood=self.likelihood,
            title=title,
            labels=self.labels,
            told=self.told,
            odds=self.link == "logit",
            passes=passes,
            steps=steps,
            converged=converged,
        )

    @property
    def likelihood(self) -> Likelihood:
        """Of the labels, given the features."""
        m, q = len(self.labels) - 1, self.coordinates.size
        null = self._null()
        return Likelihood(
            deviance=2.0 * self.slope.loss,
            null_deviance=-2.0 * null,
            log_likelihood=-self.slope.loss,
            null_log_likelihood=null,
            rows=self.rows,
            df_residual=m * (self.rows - q),
            df_null=m * (self.rows - self.coordinates.free),
            numbers=m * q,
            tjur=self.tjur,
        )

    def _null(self) -> float:
        """Log likelihood without features: of the shares, or without an intercept of score zero."""
        if self.coordinates.free:
            return float(xlogy(self.weight, self.weight / self.weight.sum()).sum())
        if len(self.weight) > 2:
            return -float(self.weight.sum() * np.log(len(self.weight)))
        zero = TWO_SIDED[self.link](np.zeros(1))
        return float(self.weight[0] * zero.log_zero[0] + self.weight[1] * zero.log_one[0])


@dataclass(frozen=True, slots=True)
class SecondClass:
    """Probability of the second class, summed over its own rows (loss) and the others (slope)."""

    link: LinkName

    @property
    def columns(self) -> int:
        """One score."""
        return 1

    def at(self, scores: Floats, tile: Block, *, want: Want) -> Local:
        """The two sums."""
        chance = np.exp(TWO_SIDED[self.link](scores[0]).log_one)
        if tile.weight is not None:
            chance = chance * tile.weight
        own = tile.codes.astype(bool)
        others = np.where(own, 0.0, chance)[None]
        return Local(float(chance[own].sum()), others, None, None, np.inf)


def tjur(
    read: Pass,
    theta: Floats,
    *,
    coordinates: Coordinates,
    anchor: Anchor,
    features: tuple[str, ...],
    weight: Floats,
    link: LinkName = "logit",
) -> float:
    """Tjur's coefficient of discrimination of two classes; one pass."""
    coef, intercept = coordinates.coefficients(theta)
    found = read(SlopeReading(features, anchor, coef, intercept, SecondClass(link)))
    return float(found.loss / weight[1] - found.gradient[-1, 0] / weight[0])
