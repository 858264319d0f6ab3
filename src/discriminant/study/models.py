"""The models that a study compares: candidates of the catalogue, or the user's own classifiers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from discriminant import catalog
from discriminant.assessment.resampling.folds import is_moment_based
from discriminant.errors import StudyError

POOL = "pool"  # name of the weighted mean of the models of a comparison


@dataclass(frozen=True, slots=True)
class StudyModel:
    """A model to compare."""

    name: str
    title: str
    make: Callable[[], Any]  # function that returns the unfitted classifier
    simplicity: int = 2  # rank in `catalog.SIMPLICITY`
    default: bool = False  # whether it is compared unless models are named
    tuning: str = ""  # how a comparison chooses its hyperparameters: "", "grid" or "path"
    basis: Mapping[str, Any] | None = None  # options of the basis in which features are expanded
    may_stop_early: bool = False  # whether its fit usually stops at the limit of passes
    compiled: bool = False  # whether its first fit compiles a loop

    @property
    def moment_based(self) -> bool:
        """Whether the model is fitted to moments rather than to rows."""
        model = self.make()
        return is_moment_based(model) and model.detail != "rows"

    def load(self) -> None:
        """Compile the loop of the model by a fit to two rows.

        Times that are measured later then exclude the compilation.
        """
        if self.compiled:
            self.make().fit([[0.0], [1.0]], [0, 1])

    @classmethod
    def of_candidate(cls, estimator: str, candidate: catalog.Candidate) -> StudyModel:
        """Return the study model of a candidate in the catalogue."""

        def make() -> Any:
            home = import_module(f"discriminant.{catalog.HOMES[estimator]}")
            model = getattr(home, estimator)(**candidate.options)
            if candidate.basis is None:
                return model
            from discriminant.estimators.basis import Basis

            return make_pipeline(Basis(**candidate.basis), model)

        return cls(
            candidate.name,
            candidate.title,
            make,
            candidate.simplicity,
            candidate.default,
            candidate.tuning,
            candidate.basis,
            candidate.may_stop_early,
            candidate.compiled,
        )

    @classmethod
    def of_pool(cls) -> StudyModel:
        """Return the study model of the pool, whose members are those of a comparison."""

        def make() -> Any:
            from discriminant.estimators.meta.pool import Pool

            return Pool([])

        return cls(POOL, "Pool", make, max(catalog.SIMPLICITY))

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
