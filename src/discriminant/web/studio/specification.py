"""The user's choices in the page: model, hyperparameters, priors, costs, features, edited rows.

A specification comes from a page, so every part of it is checked here. `ModelChoice.code` returns
the Python statements that make the same model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discriminant.errors import InputError

MODELS = {  # name in the page: class, and which dials it has
    "lda": ("LDA", ("shrinkage", "prior")),
    "qda": ("QDA", ("shrinkage", "prior")),
    "rda": ("RDA", ("pooling", "shrinkage", "prior")),
    "student": ("LDA", ("shrinkage", "prior")),
    "nearest_mean": ("NearestMean", ("prior",)),
    "ridge": ("LeastSquares", ("ridge",)),
    "logistic": ("Logistic", ("ridge", "prior")),
}
MOST_TERMS = 120  # features, squares and products; as in model.js
_FIXED = {"student": {"predictive": "student"}}


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model, its hyperparameters, the decision, and the columns that are left out."""

    model: str
    options: tuple[tuple[str, Any], ...]  # arguments of the constructor
    cost: tuple[tuple[float, ...], ...] | None = None  # (K, K): cost[decision][class]
    reject: float | None = None
    off: tuple[str, ...] = ()  # columns
    degree: int = 1  # 2: squares and products are features, too

    @classmethod
    def of(cls, given: Any, *, labels: Sequence[str], columns: Sequence[str]) -> ModelChoice:
        """Check the choice of a page."""
        given = _mapping(given, "model")
        name = given.get("model", "lda")
        if not isinstance(name, str) or name not in MODELS:
            raise InputError(f"model must be one of {', '.join(MODELS)}.")
        options: dict[str, Any] = dict(_FIXED.get(name, {}))
        for option in MODELS[name][1]:
            value = given.get(option)
            if option == "prior":
                if value is not None:
                    options["prior"] = _prior(value, len(labels))
            elif value is not None:
                high = math.inf if option == "ridge" else 1.0
                checked = number(value, option, 0.0, high)
                if option == "pooling" or checked > 0:  # 0 is the default of the others
                    options[option] = checked
        off = given.get("off") or []
        if not isinstance(off, list) or any(column not in columns for column in off):
            raise InputError("off must be a list of columns of the table.")
        if len(set(off)) >= len(columns):
            raise InputError("Every column is left out. Use at least one.")
        probabilistic = name != "ridge"
        reject, degree = given.get("reject"), given.get("degree", 1)
        if degree not in (1, 2) or isinstance(degree, bool):
            raise InputError("degree must be 1 or 2.")
        return cls(
            name,
            tuple(options.items()),
            _costs(given.get("cost"), len(labels)) if probabilistic else None,
            number(reject, "reject", 0.0, math.inf)
            if reject is not None and probabilistic
            else None,
            tuple(sorted(set(off), key=list(columns).index)),
            int(degree),
        )

    def estimator(self, origin: Sequence[float]) -> Any:
        """Return the unfitted classifier. `origin` is that of the squares and products."""
        import discriminant as dd

        options = {name: list(value) if name == "prior" else value for name, value in self.options}
        model = getattr(dd, MODELS[self.model][0])(**options)
        if self.degree == 1:
            return model
        from sklearn.pipeline import make_pipeline

        return make_pipeline(dd.Basis(degree=2, origin=list(origin)), model)

    def cost_by_label(self, labels: Sequence[Any]) -> dict[Any, dict[Any, float]] | None:
        """Return the costs in the form that `Decision` expects."""
        if self.cost is None:
            return None
        return {
            action: dict(zip(labels, row, strict=True))
            for action, row in zip(labels, self.cost, strict=True)
        }

    @property
    def decides(self) -> bool:
        """Whether there are costs or a reject option."""
        return self.cost is not None or self.reject is not None

    def constructor(self, origin: Sequence[float] = ()) -> str:
        """Return the constructor as Python code.

        >>> ModelChoice("rda", (("pooling", 0.5), ("prior", (0.2, 0.8)))).constructor()
        'dd.RDA(pooling=0.5, prior=[0.2, 0.8])'
        """
        shown = (
            f"{name}={list(value) if isinstance(value, tuple) else value!r}"
            for name, value in self.options
        )
        model = f"dd.{MODELS[self.model][0]}({', '.join(shown)})"
        if self.degree == 1:
            return model
        return f"make_pipeline(dd.Basis(degree=2, origin={list(origin)}), {model})"


@dataclass(frozen=True, slots=True)
class Edits:
    """Rows that were changed in the page: by number in the table, from 0."""

    removed: tuple[int, ...] = ()
    added: tuple[tuple[int, tuple[float, ...]], ...] = ()  # code of the class, features
    shifts: tuple[tuple[int, tuple[float, ...]], ...] = ()  # of all other rows of a class

    def __bool__(self) -> bool:
        return bool(self.removed or self.added or self.shifts)

    @classmethod
    def of(cls, given: Any, *, rows: int, classes: int, features: int) -> Edits:
        """Check the edits of a page."""
        if given is None:
            return cls()
        given = _mapping(given, "edits")
        removed = given.get("removed") or []
        if not isinstance(removed, list) or not all(
            type(row) is int and 0 <= row < rows for row in removed
        ):
            raise InputError(f"edits.removed must be a list of row numbers below {rows}.")
        if len(set(removed)) < len(removed):
            raise InputError("edits.removed lists a row twice.")
        return cls(
            tuple(sorted(removed)),
            _coded_rows(given.get("added"), "added", classes, features),
            _coded_rows(given.get("shifts"), "shifts", classes, features),
        )


def number(value: Any, name: str, low: float, high: float) -> float:
    """Return a finite number between two bounds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"{name} must be a number.")
    if not low <= value <= high:
        bounds = f"{low:g} or more" if math.isinf(high) else f"between {low:g} and {high:g}"
        raise InputError(f"{name} must be {bounds}.")
    return float(value)


def numbers(value: Any, name: str, size: int) -> tuple[float, ...]:
    """Return a list of finite numbers."""
    if not isinstance(value, list) or len(value) != size:
        raise InputError(f"{name} must be a list of {size} numbers.")
    return tuple(number(each, name, -math.inf, math.inf) for each in value)


def _mapping(given: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(given, dict):
        raise InputError(f"{name} must be an object.")
    return given


def _prior(value: Any, classes: int) -> tuple[float, ...]:
    prior = numbers(value, "prior", classes)
    if min(prior) <= 0 or abs(sum(prior) - 1) > 1e-6:
        raise InputError(f"prior must be {classes} positive numbers with sum 1.")
    return prior


def _costs(value: Any, classes: int) -> tuple[tuple[float, ...], ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != classes:
        raise InputError(f"cost must be a list of {classes} lists.")
    costs = tuple(numbers(row, "cost", classes) for row in value)
    if min(map(min, costs)) < 0:
        raise InputError("cost must be 0 or more.")
    return costs


def _coded_rows(
    value: Any, name: str, classes: int, features: int
) -> tuple[tuple[int, tuple[float, ...]], ...]:
    rows: list[tuple[int, tuple[float, ...]]] = []
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InputError(f"edits.{name} must be a list of pairs: class number, features.")
    for item in value:
        valid = isinstance(item, list) and len(item) == 2 and type(item[0]) is int
        if not valid or not 0 <= item[0] < classes:
            raise InputError(f"edits.{name} must be a list of pairs: class number, features.")
        rows.append((item[0], numbers(item[1], f"edits.{name}", features)))
    return tuple(rows)
