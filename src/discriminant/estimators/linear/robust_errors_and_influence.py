"""Inference that reads the rows of the fit again: robust errors, influence, marginal effects.

`RowInference` adds these methods to `Logistic`, `GLM` and `LogLinear`. A fitted model stores no
rows, so the methods need the rows, labels and weights that were passed to `fit`; other rows raise
an error, because the gradient of the likelihood is then not zero. A partitioned table is loaded if
it is small enough for memory.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discriminant.assessment.inference.coefficient_summary import (
    CoefficientSummary,
    Inference,
    PenalisedSummary,
)
from discriminant.assessment.inference.contrasts_and_nested_fits import ContrastTest, wald_test
from discriminant.assessment.inference.goodness_of_fit import (
    TESTS,
    GoodnessOfFit,
    hosmer_lemeshow,
    le_cessie,
)
from discriminant.assessment.inference.influence import Influence, influence
from discriminant.assessment.inference.marginal_effects import (
    MarginalEffects,
    class_marginal_effects,
    marginal_effects,
)
from discriminant.assessment.inference.mean_intervals import ScoreErrors
from discriminant.assessment.inference.profile_likelihood import LikelihoodMaximum
from discriminant.assessment.inference.row_terms import (
    COVARIANCES,
    RowTerms,
    robust_inference,
    row_terms,
)
from discriminant.engines.partitioned_table import table_in_memory
from discriminant.errors import InferenceError, OptionError
from discriminant.estimators.base import check_choice
from discriminant.estimators.linear.maximum_likelihood import LikelihoodInference, check_level
from discriminant.models.linear.preconditioning import Coordinates
from discriminant.moments.anchor import Anchor
from discriminant.moments.glm_families import Deviance
from discriminant.table.blocks import Floats

Covariance = Literal["HC0", "HC1", "HC2", "HC3", "cluster"]


class RowInference(LikelihoodInference):
    """Base class: robust standard errors, influence, marginal effects and goodness of fit.

    A subclass defines `_likelihood_peak`, `_row_coordinates` and `_summed_curvature`.
    """

    def _row_coordinates(self) -> tuple[Anchor, Coordinates, Deviance | None]:
        """Return the anchor and coordinates of the fit, and its loss (None stands for softmax)."""
        raise NotImplementedError

    def _summed_curvature(self) -> Floats:
        """Return the Hessian of the loss with respect to theta, summed over the rows of the fit."""
        raise NotImplementedError

    def summary(
        self,
        level: float = 0.95,
        cov: Covariance | None = None,
        X: Any = None,
        y: Any = None,
        sample_weight: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
    ) -> CoefficientSummary | PenalisedSummary:
        """Summarise the coefficients: standard errors, tests and Wald intervals.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level of the intervals.
        cov : {None, 'HC0', 'HC1', 'HC2', 'HC3', 'cluster'}, default None
            Covariance of the estimates. None means the inverse of the curvature. 'HC0' to 'HC3':
            the sandwich estimate, valid if the variance of the model is wrong. 'cluster': the
            sandwich estimate for rows that are dependent within `groups`.
        X, y, sample_weight, offset
            The rows of the fit, needed for `cov` because a model does not store them.
        groups : array of shape (n,), default None
            Cluster of each row, for cov='cluster'.

        Returns
        -------
        CoefficientSummary or PenalisedSummary
            `print` shows it as a table; `frame` and `to_dict` convert it. With ridge > 0, the
            summary of a classifier has coefficients without standard errors.
        """
        check_level(level)
        inference = self._robust_inference(cov, X, y, sample_weight, offset, groups)
        return CoefficientSummary(inference, float(level))

    def wald_test(
        self,
        contrasts: Any,
        value: Any = 0.0,
        cov: Covariance | None = None,
        X: Any = None,
        y: Any = None,
        sample_weight: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
    ) -> ContrastTest:
        """Test linear contrasts of the estimates, one by one and jointly.

        Parameters
        ----------
        contrasts : dict, list of dicts, or array of shape (k, p)
            Numbers by which the estimates are multiplied: by name, such as {"age": 1, "weight":
            -1}, or in the order of `summary()`. With more than two classes, a name is a pair
            (class, column).
        value : float or array of shape (k,), default 0.0
            Values of the contrasts under the hypothesis.
        cov, X, y, sample_weight, offset, groups
            As in `summary`.

        Returns
        -------
        ContrastTest
            `print` shows the contrasts and their joint test; `frame` and `to_dict` convert it.
        """
        inference = self._robust_inference(cov, X, y, sample_weight, offset, groups)
        return wald_test(inference, contrasts, value)

    def marginal_effects(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
        level: float = 0.95,
    ) -> MarginalEffects:
        """Estimate average marginal effects, with standard errors by the delta method.

        The effect of a feature is the derivative of the predicted mean (for classes, of the
        probability) with respect to this feature, averaged over the rows.

        Parameters
        ----------
        X, y, sample_weight, offset
            The rows of the fit: a model stores no rows.
        level : float, default 0.95
            Confidence level of the intervals.

        Returns
        -------
        MarginalEffects
            `print` shows it as a table; `frame` and `to_dict` convert it. With two classes, the
            effects are on the probability of the second class.
        """
        check_level(level)
        inference = self.inference()
        peak, terms = self._row_terms("A marginal effect", X, y, sample_weight, offset)
        anchor, coordinates, deviance = self._row_coordinates()
        if deviance is not None:
            return marginal_effects(inference, terms, deviance=deviance, level=level)
        assert coordinates.contrast is not None
        labels: list[Any] = self.classes_.tolist()  # type: ignore[attr-defined]
        return class_marginal_effects(
            inference,
            terms,
            theta=peak.theta,
            contrast=coordinates.contrast,
            slopes=coordinates.frame[:-1] / anchor.unit[:, None],
            labels=labels,
            features=self._schema.features,  # type: ignore[attr-defined]
            level=level,
        )

    def influence(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
    ) -> Influence:
        """Measure the influence of each row: leverage, Cook's distance and dfbetas.

        The measures are those of R's `influence.measures`, one-step approximations to a fit
        without the row.

        Parameters
        ----------
        X, y, sample_weight, offset
            The rows of the fit: a model stores no rows.

        Returns
        -------
        Influence
            `print` shows the rows with the largest Cook's distances; `frame` has all rows.
        """
        inference = self.inference()
        _, terms = self._row_terms("Influence", X, y, sample_weight, offset)
        deviance = self._row_coordinates()[2]
        if deviance is None:
            raise InferenceError.not_single("Leverages")
        return influence(inference, terms, decreasing=deviance.link == "inverse")

    def _score_errors(self) -> ScoreErrors:
        """Return the standard errors of scores; raise `InferenceError` if there are none."""
        inference = self.inference()
        unidentified = np.isnan(inference.std_error)
        if unidentified.any():
            names = dict.fromkeys(np.array(inference.names, dtype=object)[unidentified])
            raise InferenceError.no_mean_error(list(names))
        anchor, coordinates, _ = self._row_coordinates()
        return ScoreErrors.from_curvature(
            self._summed_curvature(),
            anchor=anchor,
            coordinates=coordinates,
            dispersion=inference.likelihood.dispersion,
        )

    def _robust_inference(
        self, cov: Any, X: Any, y: Any, weight: Any, offset: Any, groups: Any
    ) -> Inference:
        """Return the estimates with a robust covariance, or with the usual one if `cov` is None."""
        if cov is None:
            if X is not None or groups is not None:
                allowed = f"one of {', '.join(COVARIANCES)}, if rows or groups are passed"
                raise OptionError.of("cov", cov, allowed)
            return self.inference()
        check_choice("cov", cov, COVARIANCES)
        if groups is not None and cov != "cluster":
            raise OptionError.of("cov", cov, "'cluster', if groups are passed")
        inference = self.inference()
        _, terms = self._row_terms("A robust covariance", X, y, weight, offset)
        return robust_inference(inference, terms, kind=cov, groups=groups)

    def _row_terms(
        self, what: str, X: Any, y: Any, weight: Any, offset: Any
    ) -> tuple[LikelihoodMaximum, RowTerms]:
        """Return the likelihood of the rows of the fit, and its terms for each row."""
        if getattr(self, "bias_reduction", None) is not None:
            raise InferenceError.biased(what)
        peak = self._reopen_likelihood(what, X, y, weight, offset)
        table = table_in_memory(peak.table, what)
        anchor, coordinates, deviance = self._row_coordinates()
        terms = row_terms(peak, table, anchor=anchor, coordinates=coordinates, deviance=deviance)
        return peak, terms


class BinaryGoodnessOfFit(RowInference):
    """Base class that adds tests of goodness of fit to a classifier."""

    def goodness_of_fit(
        self,
        X: Any = None,
        y: Any = None,
        sample_weight: npt.ArrayLike | None = None,
        test: Literal["hosmer_lemeshow", "le_cessie"] = "hosmer_lemeshow",
        groups: int = 10,
    ) -> GoodnessOfFit:
        """Test whether the fitted probabilities of two classes agree with the labels.

        Parameters
        ----------
        X, y, sample_weight
            The rows of the fit: a model stores no rows.
        test : {'hosmer_lemeshow', 'le_cessie'}, default 'hosmer_lemeshow'
            'hosmer_lemeshow': chi-squared test over groups at the quantiles of the fitted
            probabilities. 'le_cessie': the unweighted sum of squares, which needs no groups; for
            the logit link.
        groups : int, default 10
            Number of groups of the test of Hosmer and Lemeshow.

        Returns
        -------
        GoodnessOfFit
            A small p-value is evidence against the model.
        """
        check_choice("test", test, TESTS)
        if not isinstance(groups, int | np.integer) or groups < 3:
            raise OptionError.of("groups", groups, "a whole number, 3 or more")
        _, terms = self._row_terms("A test of goodness of fit", X, y, sample_weight, None)
        link: str = self.link_  # type: ignore[attr-defined]
        if terms.row is None:
            raise InferenceError.not_single("Tests of goodness of fit")
        if test == "hosmer_lemeshow":
            return hosmer_lemeshow(terms, link=link, groups=int(groups))
        if link != "logit":
            raise InferenceError.only_logit(test, link)
        return le_cessie(terms)
