"""The models that a study compares: candidates of the catalogue, or the user's own classifiers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from sklearn.base import clone

from discriminant import catalog
from discriminant.assessment.resampling.folds import is_moment_based
from discriminant.errors import StudyError


@dataclass(frozen=True, slots=True)
class StudyModel:
    """A model to compare."""

    name: str
    title: str
    make: Callable[[], Any]  # function that returns the unfitted classifier
    simplicity: int = 2  # rank in `catalog.SIMPLICITY`
    default: bool = False  # whether it is compared unless models are named
    tuned: bool = False  # whether its hyperparameters are chosen on held-out rows
    may_stop_early: bool = False  # whether its fit usually stops at the limit of passes
    compiled: bool = False  # whether its first fit compiles a loop

    @property
    def moment_based(self) -> bool:
        """Whether the model is fitted to moments rather than to rows."""
        model = self.make()
        return is_moment_based(model) and model.detail != "rows"

    @property
    def uses_rda_grid(self) -> bool:
        """Whether its hyperparameters are chosen from moments, by the losses of the RDA grid."""
        return self.tuned and self.moment_based

    def load(self) -> None:
        """Compile the loop of the model by a fit to two rows, so that later times exclude the
        compilation.
        """
        if self.compiled:
            self.make().fit([[0.0], [1.0]], [0, 1])

    @classmethod
    def of_candidate(cls, estimator: str, candidate: catalog.Candidate) -> StudyModel:
        """Return the study model of a candidate in the catalogue."""

        def make() -> Any:
            home = import_module(f"discriminant.{catalog.HOMES[estimator]}")
            return getattr(home, estimator)(**candidate.options)

        return cls(
            candidate.name,
            candidate.title,
            make,
            candidate.simplicity,
            candidate.default,
            candidate.tuned,
            candidate.may_stop_early,
            candidate.compiled,
        )

    @classmethod
    def of(cls, name: str, model: Any) -> StudyModel:
        """Return the study model of a user's classifier, which is cloned and not changed."""
        return cls(name, name, lambda: clone(model, safe=False), 3)


def candidate_models() -> dict[str, StudyModel]:
    """Return all candidates by name, in the order of the catalogue."""
    return {
        candidate.name: StudyModel.of_candidate(estimator, candidate)
        for estimator, candidate in catalog.CANDIDATES
    }


def resolve_models(models: Any) -> list[StudyModel]:
    """Return the models to compare: named candidates, 'all' of them, or {name: classifier}.

    By default (None), these are the candidates that the catalogue marks as default.
    """
    candidates = candidate_models()
    if models is None:
        return [candidate for candidate in candidates.values() if candidate.default]
    if hasattr(models, "items"):
        return [StudyModel.of(str(name), model) for name, model in models.items()]
    names = list(dict.fromkeys([models] if isinstance(models, str) else models))
    if not names:
        raise StudyError.no_models()
    if names == ["all"]:
        return list(candidates.values())
    for name in names:
        if name not in candidates:
            raise StudyError.unknown_model(name, list(candidates))
    return [candidates[name] for name in names]
