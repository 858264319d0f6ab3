"""What models fitted by likelihood share: standard errors, intervals, tests and a summary.

A class adds `inference()`, made from what the fit has kept, and `_peak(X, y, ...)`, which opens
rows again for what cannot be had without them.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

from discriminant.assessment.inference import Inference
from discriminant.assessment.profile import Dropped, Peak, drop_each, profile
from discriminant.assessment.summary import Summary
from discriminant.errors import InferenceError, OptionError
from discriminant.table.schema import Floats

METHODS = ("wald", "profile")
_SAME = 1e-6  # deviances of the same rows agree by more than this
_LEVEL = 1e-5  # a steeper gradient is not one of the largest likelihood


class Inferring:
    """A model that can say how sure it is of its coefficients."""

    def inference(self) -> Inference:
        """Estimates, their covariance, tests and criteria."""
        raise NotImplementedError

    def _peak(self, X: Any, y: Any, weight: Any, offset: Any) -> Peak:
        """The likelihood of rows that are given again, and where it is largest."""
        raise NotImplementedError

    def summary(self, level: float = 0.95) -> Summary:
        """Coefficients with standard errors, tests and Wald intervals; `print` it."""
        return Summary(self.inference(), _checked(level))

    def intervals(
        self,
        level: float = 0.95,
        method: str = "wald",
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        offset: Any = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Floats:
        """(p, 2) intervals of the estimates, in the order of `summary()`, the intercept first.

        `method`: 'wald' for estimate -+ quantile times standard error; 'profile' for where the
        likelihood, all else fitted anew, has fallen as far as chance allows. That fits many times,
        to X and y (and sample_weight, offset) as they were at fit: a model keeps no rows.
        `progress` is called after each end of a profile interval with how many are done, and of
        how many.
        """
        _checked(level)
        if method not in METHODS:
            raise OptionError.of("method", method, f"one of {', '.join(METHODS)}")
        if method == "wald":
            return self.inference().wald(level)
        found = self.inference()
        peak = self._again("A profile interval", X, y, sample_weight, offset)
        return profile(peak, found, level=level, progress=progress)

    def drop_each(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, offset: Any = None
    ) -> list[Dropped]:
        """Likelihood-ratio test of each feature, by a fit without it to X and y as at fit."""
        found = self.inference()
        return drop_each(self._again("A fit without a column", X, y, sample_weight, offset), found)

    def _again(self, what: str, X: Any, y: Any, weight: Any, offset: Any) -> Peak:
        if X is None or y is None:
            raise InferenceError.needs_rows(what)
        peak = self._peak(X, y, weight, offset)
        found, fitted = 2.0 * peak.point.slope.loss, self.inference().likelihood.deviance
        if not abs(found - fitted) <= _SAME * max(abs(fitted), 1e-6):
            raise InferenceError.other_rows(found, fitted)
        if peak.point.steepness > _LEVEL and self.inference().converged:
            raise InferenceError.other_values(peak.point.steepness)
        if peak.point.steepness > _LEVEL:
            raise InferenceError.not_at_peak(what, peak.point.steepness)
        return peak


def _checked(level: Any) -> float:
    if not (isinstance(level, Real) and 0.0 < float(level) < 1.0):
        allowed = "between 0 and 1, say 0.95; the method and the rows come after it"
        raise OptionError.of("level", level, allowed)
    return float(level)
