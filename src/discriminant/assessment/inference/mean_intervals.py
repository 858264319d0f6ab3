"""Confidence intervals of predicted means and probabilities, by the delta method.

A row has the coordinates z (`linear.preconditioning`), and a score s = z'theta. With H = R'R the
summed curvature, the standard error of a score is

    se = sqrt(dispersion) |R'^-1 z|

An interval of the score, s -+ normal quantile times se, is transformed by the inverse link, so its
ends are in the range of the mean. It is the Wald interval that follows from R's `predict(type =
"link", se.fit = TRUE)` and `qnorm`, even if the dispersion is estimated.

With more than two classes, the interval of each probability p_k is computed on the scale of its log
odds against all other classes, so that its ends are between 0 and 1:

    log odds_k = s_k - log sum_(j != k) exp(s_j)
    d log odds_k = d s_k - sum_(j != k) p_j / (1 - p_k) d s_j

With two classes, this is the interval above. Intervals are for one probability at a time, and for
the mean of a response, not for a new response. Priors and offsets are regarded as known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import expit, logsumexp
from scipy.stats import norm

from discriminant.models.linear.preconditioning import Coordinates
from discriminant.moments.anchor import Anchor
from discriminant.moments.glm_families import Deviance
from discriminant.posterior import posterior
from discriminant.table.blocks import Features, Floats

_CHUNK = 1 << 22  # numbers in the largest array for a chunk of rows


class MeanIntervals(NamedTuple):
    """Predicted means or probabilities with the ends of their confidence intervals."""

    estimate: Floats  # (n,) means, or (n, K) probabilities
    low: Floats  # lower ends, of the same shape
    high: Floats  # upper ends, of the same shape


@dataclass(frozen=True, slots=True, eq=False)
class ScoreErrors:
    """Standard errors of scores and of log odds of rows."""

    anchor: Anchor
    coordinates: Coordinates
    root: Floats | None  # (P, P) `R'^-1`; None if the curvature is singular
    dispersion: float

    @classmethod
    def from_curvature(
        cls, curvature: Floats, *, anchor: Anchor, coordinates: Coordinates, dispersion: float
    ) -> ScoreErrors:
        """Factorise the (P, P) curvature of theta, summed over the rows of the fit."""
        try:
            upper = cholesky(curvature)
        except LinAlgError:
            return cls(anchor, coordinates, None, dispersion)
        root = solve_triangular(upper, np.eye(len(upper)), trans="T")
        return cls(anchor, coordinates, np.asarray(root), dispersion)

    def of_score(self, features: Features) -> Floats:
        """Return the (n, 1) standard errors of a single score."""
        if self.root is None:
            return np.full((features.shape[0], 1), np.inf)
        roots = self._rows(features) @ self.root.T
        return self._norms(roots[:, None])

    def of_log_odds(self, features: Features, scores: Floats) -> Floats:
        """Return the (n, K) standard errors of the log odds of each class.

        `scores` (n, K) include terms that are regarded as known, such as priors.
        """
        errors = np.full(scores.shape, np.inf)
        if self.root is None:
            return errors
        contrast = self.coordinates.contrast
        assert contrast is not None
        (K, m), P = contrast.shape, len(self.root)
        blocks = self.root.T.reshape(m, P // m, P)
        z = self._rows(features)
        step = max(1, _CHUNK // (K * P))
        for start in range(0, len(z), step):
            rows = slice(start, start + step)
            roots = np.einsum("nq,aqp->nap", z[rows], blocks, optimize=True)
            errors[rows] = self._norms(_log_odds_slopes(scores[rows], contrast) @ roots)
        return errors

    def _rows(self, features: Features) -> Floats:
        """Return the coordinates z (n, q) of rows."""
        frame = self.coordinates.frame
        return np.asarray(self.anchor.offsets(features) @ frame[:-1] + frame[-1])

    def _norms(self, roots: Floats) -> Floats:
        """Return the (n, K) standard errors, the norms of the (n, K, P) roots of the variances."""
        return np.asarray(np.sqrt(self.dispersion * np.einsum("nkp,nkp->nk", roots, roots)))


def _log_odds_slopes(scores: Floats, contrast: Floats) -> Floats:
    """Return the (n, K, m) derivatives of the log odds with respect to the m contrasts."""
    n, K = scores.shape
    slopes = np.empty((n, K, contrast.shape[1]))
    for k in range(K):
        shares = posterior(np.delete(scores, k, axis=1))  # p_j / (1 - p_k)
        slopes[:, k] = contrast[k] - shares @ np.delete(contrast, k, axis=0)
    return slopes


def normal_quantile(level: float) -> float:
    """Return the number of standard errors from the estimate to an end of the interval."""
    return float(norm.isf(0.5 * (1.0 - level)))


def log_odds_ends(scores: Floats, reach: Floats) -> tuple[Floats, Floats]:
    """Return the lower and the upper ends, each (n, K), of intervals of class probabilities.

    `reach` (n, K) is the distance of both ends from the log odds.
    """
    odds = np.empty(scores.shape)
    for k in range(scores.shape[1]):
        odds[:, k] = scores[:, k] - logsumexp(np.delete(scores, k, axis=1), axis=1)
    return expit(odds - reach), expit(odds + reach)


def mean_ends(deviance: Deviance, scores: Floats, reach: Floats) -> tuple[Floats, Floats]:
    """Return the lower and the upper ends, each (n,), of intervals of means.

    The scores include the offset, and `reach` (n,) is the distance of both ends from the score.
    Some links allow scores whose mean is outside the range of the family; the ends stay in this
    range. With the inverse link, an interval of scores that contains zero has no finite upper end.
    """
    below, above = scores - reach, scores + reach
    if deviance.link == "sqrt":
        below, above = np.maximum(below, 0.0), np.maximum(above, 0.0)
        return below * below, above * above
    low, high = deviance.mean(below), deviance.mean(above)
    if deviance.link == "inverse":
        low, high = high, low
        crosses = (below <= 0.0) & (above >= 0.0)
        positive = (deviance.family == "gamma") & (scores > 0.0)
        return np.where(crosses & ~positive, -np.inf, low), np.where(crosses, np.inf, high)
    mean = deviance.mean(scores)
    if deviance.family in ("poisson", "gamma"):  # the mean of a new row may be out of range
        low = np.maximum(low, np.minimum(mean, 0.0))
    if deviance.family == "binomial":
        high = np.minimum(high, np.maximum(mean, 1.0))
    return low, high
