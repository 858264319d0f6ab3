"""Fisher: discriminant directions, and classification by a threshold or nearest mean along them.

    S_w  within-class covariance       S_b  covariance of the class means, weighted by the priors
    directions W maximise  tr((W' S_w W)^-1 (W' S_b W))  or  tr(W' S_b W) / tr(W' S_w W)

The algebra is in `models.gaussian.fisher`.
"""

from __future__ import annotations

import numpy as np

from discriminant.errors import OptionError
from discriminant.estimators.base import Prior
from discriminant.estimators.gaussian.lda_qda import DiscriminantProjection, check_family
from discriminant.models.gaussian.covariance import Denominator, Shrinkage, Target
from discriminant.models.gaussian.family import GaussianFamily
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
from discriminant.moments.stored_rows import ClassRows
from discriminant.table.blocks import Floats


class Fisher(DiscriminantProjection):
    """Fisher's discriminant: a classifier along a few directions, and a transformer onto them.

    With all directions and threshold 'gaussian' it is LDA; with fewer, reduced-rank LDA.

    Parameters
    ----------
    n_components : int or None, default None
        Number of directions, at most K - 1. None: all along which class means differ.
    prior : array of shape (K,), dict by label or None, default None
        Class priors. None: the class shares of the rows. As in MASS they weight the class means in
        S_b and their centre, and shift the boundary; they never enter S_w.
    criterion : {'ratio_trace', 'trace_ratio'}, default 'ratio_trace'
        'ratio_trace': tr((W' S_w W)^-1 (W' S_b W)), in closed form and independent of units.
        'trace_ratio': tr(W' S_b W) / tr(W' S_w W) over orthonormal W, iterative; what textbooks
        often write and then solve as the other. It depends on the units of the columns and forms
        a d x d matrix. For one direction (always with two classes) the two are the same.
    method : {'fisher', 'mean_difference'}, default 'fisher'
        'mean_difference': the directions in which class means are farthest apart, whatever the
        within-class covariance; `criterion` is then ignored, and nothing is inverted.
    threshold : {'gaussian', 'midpoint', 'equal_error'}, default 'gaussian'
        Position of the boundary. 'gaussian': equal posteriors, priors included. 'midpoint': halfway
        between projected means, whatever the priors. 'equal_error': equal error rates of two
        classes with different projected standard deviations. `predict_proba` follows it:
        posteriors are equal at the boundary.
    shrinkage : float, 'auto' or 'oas', default 0.0
        Shrinkage of the within-class covariance, as in `LDA`.
    target : {'diagonal', 'scaled_identity', 'identity'}, default 'diagonal'
        Shrinkage target.
    denominator : {'unbiased', 'ml', 'reliability'}, default 'unbiased'
        Denominator of the covariance, as in `LDA`.

    Attributes
    ----------
    classes_ : array of shape (K,)
        Class labels, sorted.
    prior_ : array of shape (K,)
        Class priors; equal unless the threshold is 'gaussian'.
    means_ : array of shape (K, d)
        Class means.
    scalings_, centre_ : arrays of shape (d, r) and (d,)
        `transform(X)` is (X - centre_) @ scalings_; its within-class covariance is the identity.
        The last class that a direction separates from the centre is on its positive side.
    eigenvalues_, canonical_correlations_, explained_variance_ratio_ : arrays of shape (r,)
        Of each direction; shares are of all directions for 'ratio_trace', else of those kept.
    criterion_value_, ratio_trace_, trace_ratio_ : float
        Value of the chosen criterion, and of both.
    threshold_ : float
        With two classes, position of the boundary on `transform(X)`; otherwise nan.
    coef_, intercept_ : arrays of shape (K, d) and (K,); (1, d) and (1,) for two classes
        Coefficients in the user's units.
    moments_ : ClassMoments
        Moments of the fit; `partial_fit` and `forget` update them.
    n_features_in_, feature_names_in_
        Number of features, and their names if the rows had any.

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
    def family(self) -> GaussianFamily:
        """Within-class covariance, with its options checked."""
        return check_family(GaussianFamily(1.0, self.shrinkage, self.target, self.denominator))

    @property
    def projection(self) -> ProjectionOptions:
        """Choice of the directions, with its options checked."""
        for name, allowed in (
            ("criterion", CRITERIA),
            ("method", METHODS),
            ("threshold", THRESHOLDS),
        ):
            if getattr(self, name) not in allowed:
                raise OptionError.of(name, getattr(self, name), f"one of {', '.join(allowed)}")
        return ProjectionOptions(self.n_components, self.method, self.criterion, self.threshold)

    @property
    def detail(self) -> Detail:
        """Sums that the moments must contain."""
        family, projection = self.family, self.projection
        if family.shrinkage == "auto":
            return "fourth"
        if projection.threshold == "equal_error":
            return "class"
        return "diagonal" if family.shrinkage == 1.0 and projection.closed else "pooled"

    def detail_for(self, rows: int, width: int) -> Detail:
        """Detail to read: the rows themselves if there are fewer of them than features."""
        plain = self.projection.closed and self.threshold != "equal_error"
        keep = plain and self.detail != "diagonal" and is_wide(rows, width)
        return "rows" if keep else self.detail

    def rule_from(self, moments: ClassMoments | ClassRows) -> FisherRule:
        """Return the rule fitted to moments; nothing is stored."""
        prior = self.prior_from(moments)
        return fit_fisher_rule(moments, family=self.family, prior=prior, projection=self.projection)

    def directions(self) -> FisherRule:
        """Return the fitted rule, which has the directions."""
        rule = self.rule_
        assert isinstance(rule, FisherRule)
        return rule

    @property
    def ratio_trace_(self) -> float:
        """tr((W' S_w W)^-1 (W' S_b W)) of the directions: the sum of their eigenvalues."""
        return float(self.eigenvalues_.sum())

    @property
    def trace_ratio_(self) -> float:
        """tr(W' S_b W) / tr(W' S_w W) of orthonormal W that span the directions."""
        return self.directions().trace_ratio

    @property
    def criterion_value_(self) -> float:
        """Value of `criterion` for the directions."""
        return self.ratio_trace_ if self._asked.criterion == "ratio_trace" else self.trace_ratio_

    @property
    def threshold_(self) -> float:
        """With two classes, position of the boundary on `transform(X)`; otherwise nan."""
        rule = self.directions()
        if len(rule.labels) != 2:
            return float("nan")
        apart = float(rule.projected[1, 0] - rule.projected[0, 0])
        lift = float(rule.intercept[0] - rule.intercept[1])
        return lift / apart + float(rule.shift[0]) if apart > 0 else float("nan")

    @property
    def prior_(self) -> Floats:
        """(K,) class priors; equal unless the threshold is Gaussian."""
        prior = super().prior_
        gaussian = self._asked.threshold == "gaussian"
        return prior if gaussian else np.full(len(prior), 1.0 / len(prior))
