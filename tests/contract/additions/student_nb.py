"""StudentNB: naive Bayes with Student's t distribution, a function of class moments."""

from __future__ import annotations

from discriminant.models.student import StudentRule, fit_student

from discriminant.estimators.base import MomentClassifier, Prior
from discriminant.moments.class_moments import ClassMoments, Detail


class StudentNB(MomentClassifier):
    """Naive Bayes with heavy tails.

    Parameters
    ----------
    freedom : float, default=5.0
        Degrees of freedom.
    prior : array of shape (K,), dict by label or None, default None
        Class priors.
    """

    def __init__(self, *, freedom: float = 5.0, prior: Prior | None = None) -> None:
        self.freedom = freedom
        self.prior = prior

    @property
    def detail(self) -> Detail:
        """Variances are enough."""
        return "diagonal"

    def rule_from(self, moments: ClassMoments) -> StudentRule:
        """Return the rule fitted to moments."""
        return fit_student(
            moments.reduce("diagonal"), prior=self.prior_from(moments), freedom=self.freedom
        )
