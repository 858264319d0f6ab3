"""Fisher's discriminant: directions that separate the classes, and classification along them.

    S_w  within-class covariance       S_b  covariance of the class means, weighted by the priors
    directions W maximise  tr((W' S_w W)^-1 (W' S_b W))  or  tr(W' S_b W) / tr(W' S_w W)

The algebra is in `models.gaussian.fisher`.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from discriminant.estimators.base import Prior, check_choice
from discriminant.estimators.gaussian.lda_qda import DiscriminantProjection
from discriminant.models.gaussian.covariance import Denominator, Shrinkage, Target
from discriminant.models.gaussian.fisher import (
    CRITERIA,
    METHODS,
    THRESHOLDS,
    Criterion,
    FisherRule,
    Method,
    ProjectionOptions,
    Threshold,
)
from discriminant.models.gaussian.wide import fit_fisher_rule, is_wide
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.rows_instead_of_moments import ClassRows
from discriminant.table.blocks import Floats


class Fisher(DiscriminantProjection):
    """Fisher's discriminant: project rows on the directions that separate the classes best.

    `predict` classifies the projected rows, and `transform` returns them. With all directions and
    threshold 'gaussian' the classifier is LDA; with fewer directions, reduced-rank LDA.

    Parameters
    ----------
    n_components : int or None, default None
        Number of directions, at most K - 1. None means all directions along which the class means
        differ.
    prior : array of shape (K,), dict by label or None, default None
        Class priors. None means the class shares of the rows. As in MASS, priors weight the class
        means in S_b and in `centre_`, and shift the boundary. Priors do not affect S_w.
    criterion : {'ratio_trace', 'trace_ratio'}, default 'ratio_trace'
        'ratio_trace': maximise tr((W' S_w W)^-1 (W' S_b W)). The solution is in closed form and
        does not depend on the units of the columns. 'trace_ratio': maximise
        tr(W' S_b W) / tr(W' S_w W) over orthonormal W. Textbooks often state the trace ratio but
        maximise the ratio trace. The trace ratio is maximised by iteration, depends on the units
        and needs a d x d matrix. For a single direction, and so for two classes, both criteria
        agree.
    method : {'fisher', 'mean_difference'}, default 'fisher'
        'fisher': directions that maximise `criterion`. 'mean_difference': directions in which the
        class means are farthest apart, ignoring the within-class covariance. `criterion` then has
        no effect, and no matrix is inverted.
    threshold : {'gaussian', 'midpoint', 'equal_error'}, default 'gaussian'
        Position of the boundary. 'gaussian': where the posteriors are equal, given the priors.
        'midpoint': halfway between the projected means, ignoring the priors. 'equal_error', for two
        classes: where both have the same error rate, given their projected standard deviations.
        `predict_proba` is consistent with the choice: posteriors are equal at the boundary.
    shrinkage : float, 'auto' or 'oas', default 0.0
        Shrinkage of the within-class covariance, as in `LDA`.
    target : {'diagonal', 'scaled_identity', 'identity'}, default 'diagonal'
        Shrinkage target.
    denominator : {'unbiased', 'ml', 'reliability'}, default 'unbiased'
        Denominator of the covariance, as in `LDA`.

    Attributes
    ----------
    prior_ : array of shape (K,)
        Class priors; equal unless the threshold is 'gaussian'.
    scalings_, centre_ : arrays of shape (d, r) and (d,)
        `transform(X)` is `(X - centre_) @ scalings_`; its within-class covariance is the identity.
        The sign of a direction is chosen so that the last class whose mean differs from the centre
        along it has a positive mean.
    eigenvalues_, canonical_correlations_, explained_variance_ratio_ : arrays of shape (r,)
        Values for each direction. The explained variance ratios are relative to the sum over all
        directions for 'ratio_trace', and otherwise to the sum over the directions used.
    criterion_value_, ratio_trace_, trace_ratio_ : float
        Value of the criterion chosen by `criterion`, and the values of both criteria.
    threshold_ : float
        With two classes, position of the boundary on `transform(X)`; otherwise nan.

    See Also
    --------
    LDA : The same directions, with the Gaussian rule.

    Examples
    --------
    >>> X = [[0.0, 1.0], [1.0, 0.0], [4.0, 0.0], [5.0, 2.0]]
    >>> model = Fisher(threshold="midpoint").fit(X, ["low", "low", "top", "top"])
    >>> model.predict([[0.4, 0.4], [4.4, 0.4]]).tolist()
    ['low', 'top']
    >>> model.get_feature_names_out().tolist()
    ['fisher0']
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        prior: Prior | None = None,
        criterion: Criterion = "ratio_trace",
        method: Method = "fisher",
        threshold: Threshold = "gaussian",
        shrinkage: Shrinkage = 0.0,
        target: Target = "diagonal",
        denominator: Denominator = "unbiased",
    ) -> None:
        self.n_components = n_components
        self.prior = prior
        self.criterion = criterion
        self.method = method
        self.threshold = threshold
        self.shrinkage = shrinkage
        self.target = target
        self.denominator = denominator

    @property
    def projection(self) -> ProjectionOptions:
        """Method that finds the directions, with its options validated."""
        check_choice("criterion", self.criterion, CRITERIA)
        check_choice("method", self.method, METHODS)
        check_choice("threshold", self.threshold, THRESHOLDS)
        return ProjectionOptions(self.n_components, self.method, self.criterion, self.threshold)

    @property
    def detail(self) -> Detail:
        """Level of detail of the moments that a fit needs."""
        family, projection = self.family, self.projection
        if family.shrinkage == "auto":
            return "fourth"
        if projection.threshold == "equal_error":
            return "class"
        return "diagonal" if family.shrinkage == 1.0 and projection.closed else "pooled"

    def detail_for(self, rows: int, width: int) -> Detail:
        """Return the level of detail to read: 'rows' if there are more features than rows."""
        detail = self.detail
        plain = self.projection.closed and self.threshold != "equal_error"
        return "rows" if plain and detail != "diagonal" and is_wide(rows, width) else detail

    def rule_from(self, moments: ClassMoments | ClassRows) -> FisherRule:
        """Return the rule fitted to moments, without changing the model."""
        prior = self.prior_from(moments)
        return fit_fisher_rule(moments, family=self.family, prior=prior, projection=self.projection)

    def directions(self) -> FisherRule:
        """Return the fitted rule, which contains the directions."""
        return cast(FisherRule, self.rule_)

    @property
    def ratio_trace_(self) -> float:
        """Value of tr((W' S_w W)^-1 (W' S_b W)) for the directions: the sum of the eigenvalues."""
        return float(self.eigenvalues_.sum())

    @property
    def trace_ratio_(self) -> float:
        """Value of tr(W' S_b W) / tr(W' S_w W), for an orthonormal basis W of the directions."""
        return self.directions().trace_ratio

    @property
    def criterion_value_(self) -> float:
        """Value of the criterion chosen by `criterion`."""
        return self.ratio_trace_ if self._asked.criterion == "ratio_trace" else self.trace_ratio_

    @property
    def threshold_(self) -> float:
        """With two classes, position of the boundary on `transform(X)`; otherwise nan."""
        rule = self.directions()
        if len(rule.labels) != 2:
            return float("nan")
        distance = float(rule.projected[1, 0] - rule.projected[0, 0])
        difference = float(rule.intercept[0] - rule.intercept[1])
        return difference / distance + float(rule.shift[0]) if distance > 0 else float("nan")

    @property
    def prior_(self) -> Floats:
        """Class priors (K,). Priors are equal unless `threshold` is 'gaussian'."""
        prior = super().prior_
        gaussian = self._asked.threshold == "gaussian"
        return prior if gaussian else np.full(len(prior), 1.0 / len(prior))
