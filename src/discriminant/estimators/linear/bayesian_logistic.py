"""Bayesian logistic regression: a normal prior, the Laplace approximation, moderated predictions.

The approximation is in `models.linear.bayesian_logistic`.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discriminant.assessment.resampling.penalty_search import (
    FoldedRows,
    PenalisedModel,
    check_coefficients,
    logistic_loss_function,
)
from discriminant.engines.local import one_blas_thread
from discriminant.errors import NotConvergedWarning, OptionError, merge_warnings, warn
from discriminant.estimators.base import (
    WeightedIterativeClassifier,
    check_choice,
    predicted_codes,
    second_minus_first,
)
from discriminant.estimators.linear.iterative import LinearClassifier
from discriminant.models.linear.bayesian_logistic import LaplaceFit, ScoreVariance, fit_laplace
from discriminant.models.linear.preconditioning import ScaledCoordinates
from discriminant.models.rules import LinearRule
from discriminant.posterior import log_posterior, posterior
from discriminant.table.blocks import Features, Floats
from discriminant.table.memory import Table

PREDICTIVE = ("probit", "mode")


class BayesianLogistic(WeightedIterativeClassifier, LinearClassifier):
    """Bayesian logistic regression for two or more classes, by the Laplace approximation.

    The coefficients of standardised columns have independent normal priors with mean 0 and one
    precision; intercepts have a flat prior. The precision maximises the evidence, so no rows need
    to be held out. Predictions integrate over the posterior distribution of the coefficients:
    probabilities are less extreme where few rows are near.

    Parameters
    ----------
    precision : float or 'evidence', default 'evidence'
        Precision (1 / variance) of the prior of the coefficients. The mode is that of
        `Logistic(ridge=precision / n)` for n rows.
    predictive : {'probit', 'mode'}, default 'probit'
        'probit': probabilities integrate over the posterior, by the probit approximation. 'mode':
        probabilities of the most probable coefficients, as in `Logistic`.
    intercept : bool, default True
        Whether to fit intercepts.

    Attributes
    ----------
    coef_, intercept_ : arrays of shape (K, d) and (K,); (1, d) and (1,) for two classes
        The most probable coefficients (posterior mode), in the user's units.
    precision_ : float
        Precision of the prior.
    log_evidence_ : float
        Log of the integral of the likelihood times the prior, by the Laplace approximation.
    n_effective_ : float
        Number of slopes that the rows determine rather than the prior, from 0 to their number.
    converged_ : bool
        Whether the fit converged.

    See Also
    --------
    Logistic : `ridge='cv'` chooses the penalty on held-out rows.

    References
    ----------
    .. [1] MacKay (1992), The evidence framework applied to classification networks.
    .. [2] Bishop (2006), Pattern Recognition and Machine Learning, sections 4.4 and 4.5.

    Examples
    --------
    >>> model = BayesianLogistic().fit([[0.0], [0.0], [0.0], [1.0], [1.0], [1.0]], list("aabbba"))
    >>> model.predict([[0.0], [1.0]]).tolist()
    ['a', 'b']
    """

    precision_: float
    log_evidence_: float
    n_effective_: float
    converged_: bool
    _variance: ScoreVariance

    def __init__(
        self,
        *,
        precision: float | Literal["evidence"] = "evidence",
        predictive: Literal["probit", "mode"] = "probit",
        intercept: bool = True,
    ) -> None:
        self.precision = precision
        self.predictive = predictive
        self.intercept = intercept

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags; `poor_score` is set if there is no intercept."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = not self.intercept
        return tags

    def _fit_table(self, table: Table) -> None:
        loss = logistic_loss_function(table, l1=False)
        model = PenalisedModel(0.0, True, bool(self.intercept))
        free, precision = int(self.intercept), self.precision
        with merge_warnings(), one_blas_thread():
            rows = FoldedRows.of(table, loss, model, np.full(len(table), -1))
            problem = rows.problem()
            check_coefficients(problem.shape[1] * problem.shape[2], "precision", precision)
            given = None if isinstance(precision, str) else float(precision)
            fit = fit_laplace(problem, free, given)
            coordinates = rows.coordinates(getattr(loss, "contrast", None))
            coef, intercept = coordinates.coefficients(fit.theta)
            self._variance = ScoreVariance(rows.anchor, _score_roots(fit, coordinates))
            rule = LinearRule(table.schema.labels, rows.anchor, coef.T, intercept)
            self._set_rule(table, rule)
        self.precision_, self.log_evidence_ = fit.precision, fit.log_evidence
        self.n_effective_, self.converged_ = fit.effective, fit.converged
        if not fit.converged:
            warn(NotConvergedWarning.of_gradient("The fit", 1, np.inf, 0.0))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the most probable class of each row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Rows; columns of a data frame are matched by name.

        Returns
        -------
        array of shape (n,)
            Labels.
        """
        codes = predicted_codes(self._moderated_scores(X))
        return np.asarray(self.classes_[codes])

    def predict_proba(self, X: Any) -> Floats:
        """Return posterior predictive probabilities (n, K)."""
        return posterior(self._moderated_scores(X))

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logs of `predict_proba` (n, K), accurate for very small probabilities too."""
        scores = self._moderated_scores(X)
        if scores.shape[1] == 1:
            scores = np.hstack([np.zeros_like(scores), scores])
        return log_posterior(scores)

    def decision_function(self, X: Any) -> Floats:
        """Return the scores (n, K) that `predict` compares; with two classes (n,), the log odds."""
        scores = self._moderated_scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else second_minus_first(scores)

    def score_variance(self, X: Any) -> Floats:
        """Return the posterior variances of the scores: (n,) for two classes, else (n, K)."""
        self._check_is_fitted()
        variances = self._score_rows(self._variance.variances, X)
        return variances[:, 0] if variances.shape[1] == 1 else variances

    def _moderated_scores(self, X: Any) -> Floats:
        self._check_is_fitted()
        if self._option("predictive") == "mode":
            return self._rule_scores(X)

        def score(features: Features) -> Floats:
            return self._variance.moderate(self.rule_.scores(features), features)

        return self._score_rows(score, X)

    def _check_options(self) -> None:
        check_choice("predictive", self.predictive, PREDICTIVE)
        self._require_bool("intercept")
        value: Any = self.precision
        if isinstance(value, str) and value == "evidence":
            return
        if not (isinstance(value, Real) and 0.0 < float(value) < np.inf):
            raise OptionError.of("precision", value, "a positive number, or 'evidence'")


def _score_roots(fit: LaplaceFit, coordinates: ScaledCoordinates) -> Floats:
    """Return, for each score, a root R of the covariance of its coefficients: (s, d + 1, r).

    The variance of a score is |R' z|^2, where z is the offset `(x - origin) / unit` followed by
    1.
    """
    m, _, r = fit.root.shape
    free = coordinates.free
    scaled = coordinates.scale[:, None] * fit.root[:, free:]
    constant = fit.root[:, 0] if free else np.zeros((m, r))
    constant = constant - np.einsum("d,mdr->mr", coordinates.mean, scaled)
    root = np.concatenate([scaled, constant[:, None]], axis=1)
    if coordinates.contrast is None:
        return root
    return np.asarray(np.einsum("km,mdr->kdr", coordinates.contrast, root))
