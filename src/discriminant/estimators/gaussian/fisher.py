"""Fisher: discriminant directions, and the classes by a threshold or nearest mean along them."""

from __future__ import annotations

from typing import Any

import numpy as np

from discriminant.errors import OptionError
from discriminant.estimators.gaussian.lda_qda import DiscriminantProjection, check_family
from discriminant.models.gaussian.family import GaussianFamily
from discriminant.models.gaussian.fisher import (
    CRITERIA,
    METHODS,
    THRESHOLDS,
    FisherRule,
    ProjectionOptions,
)
from discriminant.models.gaussian.fit import fit_fisher_rule
from discriminant.models.gaussian.wide import is_wide
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.class_rows import ClassRows
from discriminant.table.blocks import Floats


class Fisher(DiscriminantProjection):
    """Fisher's discriminant: a classifier in a few directions, and a transformer onto them.

    With all directions and threshold 'gaussian' it is LDA; with fewer, reduced-rank LDA.

    Parameters
    ----------
    n_components
        How many directions, at most K - 1; None: all along which class means differ.
    prior
        (K,) probabilities of the classes in sorted order; None: their shares in the rows. As in
        MASS they weight the class means in S_b and their centre, and shift the border; they never
        touch S_w.
    criterion
        'ratio_trace': tr((W' S_w W)^-1 (W' S_b W)), closed form, does not change with the units
        of the columns. 'trace_ratio': tr(W' S_b W) / tr(W' S_w W) over orthonormal W, iterative;
        what textbooks often write and then solve as the other. It depends on the units (standardise
        the columns if they differ) and forms a d x d matrix. For one direction (always so with two
        classes) the two are the same. `criterion_value_` is the value of the one chosen;
        `ratio_trace_` and `trace_ratio_` are those of both.
    method
        'fisher', or 'mean_difference': the directions in which class means are farthest apart,
        whatever the spread within classes (then `criterion` plays no part). It inverts nothing.
    threshold
        Where the border lies. 'gaussian': where posteriors are equal, priors included.
        'midpoint': half way between projected means, whatever the priors. 'equal_error': two
        classes whose projected standard deviations differ err equally often. `predict_proba`
        follows it: posteriors are equal at the border.
    shrinkage, target, denominator
        Of the covariance within classes, as in `LDA`.

    Attributes
    ----------
    scalings_, centre_
        `transform(X)` is (X - centre_) @ scalings_; within-class covariance is then the identity.
        The last class that a direction tells from the centre lies on its positive side.
    eigenvalues_, canonical_correlations_, explained_variance_ratio_
        Of each direction; shares are of all directions for 'ratio_trace', else of those kept.
    threshold_
        With two classes, where the border lies on `transform(X)`; otherwise nan.

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
        n_components: Any = None,
        *,
        prior: Any = None,
        criterion: Any = "ratio_trace",
        method: Any = "fisher",
        threshold: Any = "gaussian",
        shrinkage: Any = 0.0,
        target: Any = "diagonal",
        denominator: Any = "unbiased",
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
        """The covariance within classes, with its options checked."""
        return check_family(GaussianFamily(1.0, self.shrinkage, self.target, self.denominator))

    @property
    def projection(self) -> ProjectionOptions:
        """How directions are chosen, with its options checked."""
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
        """What the moments must hold."""
        family, projection = self.family, self.projection
        if family.shrinkage == "auto":
            return "fourth"
        if projection.threshold == "equal_error":
            return "class"
        return "diagonal" if family.shrinkage == 1.0 and projection.closed else "pooled"

    def detail_for(self, rows: int, width: int) -> Detail:
        """What is kept of a table: its rows, where they are few and a metric is all it takes."""
        plain = self.projection.closed and self.threshold != "equal_error"
        keep = plain and self.detail != "diagonal" and is_wide(rows, width)
        return "rows" if keep else self.detail

    def rule_from(self, moments: ClassMoments | ClassRows) -> FisherRule:
        """The fitted rule, from moments alone."""
        prior = self.prior_from(moments)
        return fit_fisher_rule(moments, family=self.family, prior=prior, projection=self.projection)

    def directions(self) -> FisherRule:
        """The fitted rule, which knows its directions."""
        rule = self.rule_
        assert isinstance(rule, FisherRule)
        return rule

    @property
    def ratio_trace_(self) -> float:
        """tr((W' S_w W)^-1 (W' S_b W)) of the directions kept: the sum of their eigenvalues."""
        return float(self.eigenvalues_.sum())

    @property
    def trace_ratio_(self) -> float:
        """tr(W' S_b W) / tr(W' S_w W) of orthonormal W that span the directions kept."""
        return self.directions().trace_ratio

    @property
    def criterion_value_(self) -> float:
        """What `criterion` says of the directions kept."""
        return self.ratio_trace_ if self._asked.criterion == "ratio_trace" else self.trace_ratio_

    @property
    def threshold_(self) -> float:
        """With two classes, where the border lies on `transform(X)`; otherwise nan."""
        rule = self.directions()
        if len(rule.labels) != 2:
            return float("nan")
        apart = float(rule.projected[1, 0] - rule.projected[0, 0])
        lift = float(rule.intercept[0] - rule.intercept[1])
        return lift / apart + float(rule.shift[0]) if apart > 0 else float("nan")

    @property
    def prior_(self) -> Floats:
        """(K,) prior of each class: equal ones unless the threshold is Gaussian."""
        found = super().prior_
        gaussian = self._asked.threshold == "gaussian"
        return found if gaussian else np.full(len(found), 1.0 / len(found))
