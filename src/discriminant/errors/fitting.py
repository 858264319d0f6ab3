"""What is told of a fit: what was dropped, chosen, not reached."""

from __future__ import annotations

import math
from collections.abc import Sequence

from discriminant.errors.base import DiscriminantWarning, listing


class ShrinkageChosenWarning(DiscriminantWarning):
    """There are too few rows for a covariance to have an inverse, so it was shrunk."""

    @classmethod
    def of(cls, what: str, rank: int, features: int, amount: float) -> ShrinkageChosenWarning:
        return cls(
            f"{what} has rank {rank} for {features} features, so it has no inverse: too few rows, "
            "or columns that depend on others. "
            f"It was shrunk {amount:.3g} of the way to its diagonal (OAS). Pass shrinkage= to "
            "choose yourself, or keep fewer features."
        )


class ConstantColumnWarning(DiscriminantWarning):
    """A column has one value in all rows."""

    @classmethod
    def of_columns(cls, columns: Sequence[str], what: str = "class") -> ConstantColumnWarning:
        return cls(f"Constant column(s) {listing(columns)} say nothing of the {what}: left out.")


class ConstantInClassWarning(DiscriminantWarning):
    """A column has one value in a class, but not in others."""

    @classmethod
    def of_columns(cls, columns: Sequence[str], label: object) -> ConstantInClassWarning:
        return cls(
            f"Column(s) {listing(columns)} have one value only in class '{label}': their pooled "
            "variance is used there. Drop them, or share one covariance (LDA, RDA with pooling)."
        )


class SeparatingColumnWarning(DiscriminantWarning):
    """A direction does not vary within classes but differs between them."""

    @classmethod
    def of_columns(
        cls, columns: Sequence[str], labels: Sequence[object]
    ) -> SeparatingColumnWarning:
        return cls(
            f"Column(s) {listing(columns)} do not vary within class {listing(labels)} but differ "
            "between classes: they separate these classes perfectly and decide alone, so that "
            "posteriors are 0 or 1. If a column was made from the label, drop it."
        )


class CollinearWarning(DiscriminantWarning):
    """Columns depend on one another within classes."""

    @classmethod
    def of_columns(
        cls,
        columns: Sequence[str],
        *,
        rank: int,
        features: int,
        condition: float,
        remedy: str = "shrinkage",
    ) -> CollinearWarning:
        digits = max(0.0, 16.0 - _log10(condition))
        if rank < features:
            return cls(
                f"Column(s) {listing(columns)} depend linearly on one another: rank {rank} of "
                f"{features}, condition number {condition:.1e}, 0 correct digits expected in their "
                "coefficients. What they say twice is left out once. "
                f"Drop {features - rank} of them or pass {remedy} > 0."
            )
        return cls(
            f"Column(s) {listing(columns)} almost depend linearly on one another: rank {rank} of "
            f"{features}, condition number {condition:.1e}, about {digits:.0f} correct digits "
            f"expected in the coefficients. Drop one of them or pass {remedy} > 0."
        )


def _log10(value: float) -> float:

    return math.log10(value) if math.isfinite(value) and value > 0 else 16.0


class MaskedClassWarning(DiscriminantWarning):
    """A class is never predicted on the rows the rule was fitted to."""

    @classmethod
    def of_classes(cls, labels: Sequence[object]) -> MaskedClassWarning:
        return cls(
            f"Class(es) {listing(labels)} are masked: no training row is given to them. "
            "Use LDA, or a quadratic basis (degree=2)."
        )


class NotConvergedWarning(DiscriminantWarning):
    """An iteration stopped before it was done."""

    @classmethod
    def of(cls, what: str, steps: int, change: float, tolerance: float) -> NotConvergedWarning:
        return cls(
            f"{what} stopped after {steps} steps with a change of {change:.1e} "
            f"(goal {tolerance:.1e}). Raise the number of steps or scale the columns."
        )


class ClassMissingWarning(DiscriminantWarning):
    """A class has no row outside one fold, so its held-out rows cannot be right."""

    @classmethod
    def of_class(cls, label: object, fold: int, rows: int) -> ClassMissingWarning:
        return cls(
            f"All {rows} row(s) of class '{label}' are in fold {fold}, so the model for that fold "
            "does not know the class: its log posterior there is -inf. Use fewer folds, spread "
            "the class over folds, or leave it out."
        )


class NoPosteriorWarning(DiscriminantWarning):
    """A classifier has decisions but no posteriors."""

    @classmethod
    def of(cls, name: str) -> NoPosteriorWarning:
        return cls(
            f"{name} has neither predict_log_proba nor predict_proba: its log posterior is taken "
            "as 0 for the class it predicts and -inf for the others. Wrap it, for instance in "
            "sklearn.calibration.CalibratedClassifierCV, to get posteriors."
        )
