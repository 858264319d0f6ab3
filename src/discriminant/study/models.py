"""The models that a study compares: the candidates of the catalogue, or the user's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
    make: Callable[[], Any]  # the classifier, not yet fitted
    simplicity: int = 2  # of simplicity
    tuned: bool = False  # whether its options are chosen on held-out rows
    may_stop_early: bool = False  # whether its fit rarely ends by itself, and need not
    compiled: bool = False  # whether its loop is compiled, or loaded, when it is first used

    @property
    def moment_based(self) -> bool:
        """Whether it is a function of moments; else it is fitted to rows."""
        model = self.make()
        return is_moment_based(model) and model.detail != "rows"

    def load(self) -> None:
        """Have its loop compiled, by a fit of two rows: that is no part of how long it takes."""
        if self.compiled:
            self.make().fit([[0.0], [1.0]], [0, 1])

    @classmethod
    def of_candidate(cls, estimator: str, candidate: catalog.Candidate) -> StudyModel:
        """A configuration that the catalogue lists, of an estimator of this package."""

        def make() -> Any:
            home = import_module(f"discriminant.{catalog.HOMES[estimator]}")
            return getattr(home, estimator)(**candidate.options)

        return cls(
            candidate.name,
            candidate.title,
            make,
            candidate.simplicity,
            candidate.tuned,
            candidate.may_stop_early,
            candidate.compiled,
        )

    @classmethod
    def of(cls, name: str, model: Any) -> StudyModel:
        """Somebody's own classifier, which stays as it is: clones of it are fitted."""
        return cls(name, name, lambda: clone(model, safe=False), 3)


def candidate_models() -> dict[str, StudyModel]:
    """All candidates of the catalogue, in its order."""
    return {one.name: StudyModel.of_candidate(home, one) for home, one in catalog.CANDIDATES}


def resolve_models(models: Any) -> list[StudyModel]:
    """The members named, or all; a mapping {name: classifier} brings some of one's own."""
    every = candidate_models()
    if models is None:
        return list(every.values())
    if isinstance(models, str):
        models = [models]
    if hasattr(models, "items"):
        return [StudyModel.of(str(name), model) for name, model in models.items()]
    return [_named(name, every) for name in _once(models)]


def _once(names: Iterable[Any]) -> list[Any]:
    found = list(dict.fromkeys(names))
    if not found:
        raise StudyError.no_models()
    return found


def _named(name: Any, every: dict[str, StudyModel]) -> StudyModel:
    if name not in every:
        raise StudyError.unknown_model(name, list(every))
    return every[name]
