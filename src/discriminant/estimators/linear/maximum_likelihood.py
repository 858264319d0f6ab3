"""Base class of models fitted by maximum likelihood: standard errors, intervals and tests.

Estimates, standard errors and Wald tests come from the state that a fit stores. Profile intervals
and likelihood-ratio tests maximise the likelihood again under constraints, so they need the rows of
the fit. `linear.robust_errors_and_influence` adds the methods that need the likelihood terms of
single rows.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, Literal

import numpy.typing as npt

from discriminant.assessment.inference.coefficient_summary import (
    CoefficientSummary,
    Inference,
    PenalisedSummary,
)
from discriminant.assessment.inference.contrasts_and_nested_fits import ContrastTest, wald_test
from discriminant.assessment.inference.profile_likelihood import (
    DropOneTests,
    LikelihoodMaximum,
    drop_each,
    profile_intervals,
)
from discriminant.engines.partitioned_table import PartitionedTable
from discriminant.errors import InferenceError, OptionError
from discriminant.estimators.base import check_choice
from discriminant.table.blocks import Floats

METHODS = ("wald", "profile")
_DEVIANCE_TOLERANCE = 1e-6  # relative difference between deviances of the same rows
_MAX_GRADIENT = 1e-5  # a steeper gradient is not at the maximum of the likelihood


class LikelihoodInference:
    """Base class: standard errors, intervals and tests for models fitted by maximum likelihood.

    A subclass defines `inference`, which uses state stored by its fit, and `_likelihood_peak`.
    """

    def inference(self) -> Inference:
        """Return the estimates with their covariance, tests and information criteria."""
        raise NotImplementedError

    def _likelihood_peak(self, X: Any, y: Any, weight: Any, offset: Any) -> LikelihoodMaximum:
        """Return the likelihood at its maximum. X, y, weight and offset are the rows of the fit."""
        raise NotImplementedError

    def summary(self, level: float = 0.95) -> CoefficientSummary | PenalisedSummary:
        """Summarise the coefficients: standard errors, tests and Wald intervals.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level of the intervals.

        Returns
        -------
        CoefficientSummary
            `print` shows it as a table; `to_frame` and `to_dict` convert it.
        """
        return CoefficientSummary(self.inference(), check_level(level))

    def intervals(
        self,
        level: float = 0.95,
        method: Literal["wald", "profile"] = "wald",
        X: Any = None,
        y: Any = None,
        sample_weight: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> Floats:
        """Compute confidence intervals of the coefficients.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level.
        method : {'wald', 'profile'}, default 'wald'
            'wald': the estimate plus and minus a normal quantile times the standard error.
            'profile': the values that a likelihood ratio test does not reject, with all other
            coefficients re-estimated for each value. Computing the intervals refits the model many
            times.
        X, y, sample_weight, offset
            The rows of the fit, needed for 'profile' because a model does not store them.
        progress : callable, default None
            Called after each end point of a profile interval, with the number of end points done
            and their total number.

        Returns
        -------
        array of shape (p, 2)
            Lower and upper end points, in the order of `summary()` with the intercept first.
        """
        check_level(level)
        check_choice("method", method, METHODS)
        inference = self.inference()
        if method == "wald":
            return inference.wald(level)
        peak = self._reopen_likelihood("A profile interval", X, y, sample_weight, offset)
        return profile_intervals(peak, inference, level=level, progress=progress)

    def drop_each(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
    ) -> DropOneTests:
        """Test each feature by a likelihood ratio test against the model without that feature.

        Parameters
        ----------
        X, y, sample_weight, offset
            The rows of the fit: a model stores no rows.

        Returns
        -------
        DropOneTests
            A list with one `DropOneTest` for each feature; `print` shows it as a table, `frame`
            and `to_dict` convert it.
        """
        inference = self.inference()
        peak = self._reopen_likelihood("A fit without a column", X, y, sample_weight, offset)
        return drop_each(peak, inference)

    def wald_test(self, contrasts: Any, value: Any = 0.0) -> ContrastTest:
        """Test linear contrasts of the estimates, one by one and jointly.

        Parameters
        ----------
        contrasts : dict, list of dicts, or array of shape (k, p)
            Numbers by which the estimates are multiplied: by name, such as {"age": 1, "weight":
            -1}, or in the order of `summary()`. With more than two classes, a name is a pair
            (class, column).
        value : float or array of shape (k,), default 0.0
            Values of the contrasts under the hypothesis.

        Returns
        -------
        ContrastTest
            `print` shows the contrasts and their joint test; `frame` and `to_dict` convert it.
        """
        return wald_test(self.inference(), contrasts, value)

    def _reopen_likelihood(
        self, what: str, X: Any, y: Any, weight: Any, offset: Any
    ) -> LikelihoodMaximum:
        """Return the likelihood of the rows of the fit; raise `InferenceError` for other rows."""
        if X is None or (y is None and not isinstance(X, PartitionedTable)):
            raise InferenceError.needs_rows(what)
        inference = self.inference()  # raises an error for a penalised fit
        peak = self._likelihood_peak(X, y, weight, offset)
        deviance, fitted = 2.0 * peak.point.slope.loss, inference.likelihood.deviance
        if not abs(deviance - fitted) <= _DEVIANCE_TOLERANCE * max(abs(fitted), 1e-6):
            raise InferenceError.other_deviance(deviance, fitted)
        if peak.point.max_gradient > _MAX_GRADIENT and inference.converged:
            raise InferenceError.other_gradient(peak.point.max_gradient)
        if peak.point.max_gradient > _MAX_GRADIENT:
            raise InferenceError.not_converged(what, peak.point.max_gradient)
        return peak


def check_level(level: Any) -> float:
    """Return a confidence level, or raise `OptionError` if it is not between 0 and 1."""
    if not (isinstance(level, Real) and 0.0 < float(level) < 1.0):
        allowed = "between 0 and 1, such as 0.95; the method and the rows are later arguments"
        raise OptionError.of("level", level, allowed)
    return float(level)


def check_interval(interval: Any) -> float:
    """Return the confidence level of intervals of predictions, or raise `OptionError`."""
    if not (isinstance(interval, Real) and 0.0 < float(interval) < 1.0):
        raise OptionError.of("interval", interval, "None, or a level between 0 and 1, such as 0.95")
    return float(interval)
