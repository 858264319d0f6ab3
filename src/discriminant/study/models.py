"""Models that a study compares (candidates, or the user's own classifiers), and their results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from discriminant import catalog
from discriminant.assessment.resampling.folds import is_moment_based
from discriminant.assessment.resampling.held_out_folds import HeldOutPredictions
from discriminant.errors import SeparationWarning, StudyError
from discriminant.report.fact_types import ModelFacts
from discriminant.table.blocks import Floats

POOL = "pool"  # name of the weighted mean of the models of a comparison
POOL_GAIN = 1.01  # a single model replaces the pool up to this ratio of their log losses


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
    needs_order: bool = False  # whether it is for classes with an order

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
            model = catalog.estimator_class(estimator)(**candidate.options)
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
            candidate.needs_order,
        )

    def with_order(self, order: Sequence[Any]) -> StudyModel:
        """Return the model for classes in this order, lowest first."""
        make = self.make
        return replace(self, make=lambda: make().set_params(order=list(order)))

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


def resolve_models(models: Any, order: Sequence[Any] | None = None) -> list[StudyModel]:
    """Return the models to compare: named candidates, 'all' of them, or {name: classifier}.

    By default (None), these are the candidates that the catalogue marks as default. Models for
    classes with an order are among the default ones, and among all, only if `order` is given: the
    labels, lowest first.
    """
    candidates = candidate_models()
    if order is not None:
        candidates = {
            name: candidate.with_order(order) if candidate.needs_order else candidate
            for name, candidate in candidates.items()
        }
    applicable = [each for each in candidates.values() if order is not None or not each.needs_order]
    if models is None:
        return [candidate for candidate in applicable if candidate.default]
    if hasattr(models, "items"):
        return [StudyModel.of(str(name), model) for name, model in models.items()]
    names = list(dict.fromkeys([models] if isinstance(models, str) else models))
    if not names:
        raise StudyError.no_models()
    if names == ["all"]:
        return applicable
    for name in names:
        if name not in candidates:
            raise StudyError.unknown_model(name, list(candidates))
    return [candidates[name] for name in names]


@dataclass(frozen=True, slots=True, eq=False)
class ModelResult:
    """Measures of one model."""

    model: StudyModel
    facts: ModelFacts
    # {criterion: value}; None where the model has no such measure
    criteria: Mapping[str, float | None]
    standard_error: Mapping[str, float]  # {criterion: standard error over folds}
    # None if the predictions of all models would need too much memory
    predictions: HeldOutPredictions | None
    warnings: tuple[Warning, ...]
    converged: bool
    unlearned_classes: tuple[str, ...] = ()  # classes that log loss and AUC leave out
    # (J,) mean log loss of each fold of each repetition, and the weight of its rows
    fold_losses: Floats | None = None
    fold_weights: Floats | None = None
    repetitions: tuple[HeldOutPredictions, ...] = ()  # predictions with other folds

    @property
    def name(self) -> str:
        """Name of the model, in code and on the command line."""
        return self.model.name

    @property
    def title(self) -> str:
        """Name in tables and reports."""
        return self.model.title

    @property
    def separated(self) -> bool:
        """Whether a linear score separates the classes of the training rows of a fold."""
        return is_separated(self.warnings)

    def value(self, by: str) -> float | None:
        """Return the value of a criterion, or None if it is not finite."""
        value = self.criteria[by]
        return value if value is not None and math.isfinite(value) else None


def is_separated(warnings: Iterable[Warning]) -> bool:
    """Whether the warnings of a model report separated classes."""
    return any(isinstance(warning, SeparationWarning) for warning in warnings)
