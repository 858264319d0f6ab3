"""The family that a study compares: every linear and Gaussian classifier of the package.

A member has a name for code and one for people, and a place in the order of simplicity, by which
the simplest of models that do equally well is found:

    1  a mean for each class            2  linear borders
    3  a spread for each feature        4  between linear and quadratic borders
    5  quadratic borders: a covariance for each class
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from discriminant.assessment.refit import made_from_moments
from discriminant.errors import StudyError

SIMPLEST = {
    1: "only the means of the classes",
    2: "linear borders",
    3: "a spread for each feature and class",
    4: "borders between linear and quadratic",
    5: "quadratic borders",
}


@dataclass(frozen=True, slots=True)
class Member:
    """A model to compare."""

    name: str
    title: str
    make: Callable[[], Any]  # the classifier, not yet fitted
    level: int = 2  # of simplicity
    chosen: bool = False  # whether its options are chosen on held-out rows
    unending: bool = False  # whether its fit rarely ends by itself, and need not
    compiled: bool = False  # whether its loop is compiled, or loaded, when it is first used

    @property
    def by_moments(self) -> bool:
        """Whether it is a function of moments; else it is fitted to rows."""
        model = self.make()
        return made_from_moments(model) and model.detail != "rows"

    def load(self) -> None:
        """Have its loop compiled, by a fit of two rows: that is no part of how long it takes."""
        if self.compiled:
            self.make().fit([[0.0], [1.0]], [0, 1])

    @classmethod
    def of(cls, name: str, model: Any) -> Member:
        """Somebody's own classifier, which stays as it is: clones of it are fitted."""
        return cls(name, name, lambda: clone(model, safe=False), 3)


def family() -> dict[str, Member]:
    """All of them, in the order in which they are compared."""
    from discriminant.estimators.fisher import Fisher
    from discriminant.estimators.gaussian import LDA, QDA, NearestMean
    from discriminant.estimators.laplace import LaplaceNB
    from discriminant.estimators.least_squares import LeastSquares
    from discriminant.estimators.logistic import Logistic
    from discriminant.estimators.perceptron import Perceptron
    from discriminant.estimators.regularised import RDA
    from discriminant.estimators.svm import SVM

    members = (
        Member("lda", "LDA", LDA),
        Member("lda_shrunk", "LDA, shrunk", lambda: LDA(shrinkage="auto")),
        Member("qda", "QDA", QDA, 5),
        Member("rda", "RDA", RDA, 4, chosen=True),
        Member("nearest_mean", "Nearest mean", NearestMean, 1),
        Member("fisher", "Fisher, midpoint", lambda: Fisher(threshold="midpoint")),
        Member("least_squares", "Least squares", LeastSquares),
        Member("laplace_nb", "Laplace naive Bayes", LaplaceNB, 3),
        Member("logistic", "Logistic", lambda: Logistic(ridge=1e-4)),
        Member("logistic_ml", "Logistic, no penalty", Logistic),
        Member("svm", "SVM", lambda: SVM(standardize=True)),
        Member(
            "perceptron",
            "Perceptron",
            lambda: Perceptron(keep="average", max_passes=100, prove=False),
            unending=True,
            compiled=True,
        ),
    )
    return {member.name: member for member in members}


def chosen_members(models: Any) -> list[Member]:
    """The members named, or all; a mapping {name: classifier} brings some of one's own."""
    every = family()
    if models is None:
        return list(every.values())
    if isinstance(models, str):
        models = [models]
    if hasattr(models, "items"):
        return [Member.of(str(name), model) for name, model in models.items()]
    return [_named(name, every) for name in _once(models)]


def _once(names: Iterable[Any]) -> list[Any]:
    found = list(dict.fromkeys(names))
    if not found:
        raise StudyError.no_models()
    return found


def _named(name: Any, every: dict[str, Member]) -> Member:
    if name not in every:
        raise StudyError.unknown_model(name, list(every))
    return every[name]
