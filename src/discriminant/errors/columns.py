"""Columns that a model cannot use as they are."""

from __future__ import annotations

import math
from collections.abc import Sequence

from discriminant.errors.base import DiscriminantWarning, InputError, listing


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

    @classmethod
    def of_direction(
        cls, columns: Sequence[str], labels: Sequence[object]
    ) -> SeparatingColumnWarning:
        return cls(
            f"A combination of column(s) {listing(columns)} does not vary within class "
            f"{listing(labels)} but differs between classes: it separates these classes perfectly "
            "and decides alone, so that posteriors are 0 or 1. If a column was made from the "
            "label, drop it; if many rows are copies of a few, pass shrinkage='auto'."
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
        remedy: str | None = "shrinkage",
    ) -> CollinearWarning:
        digits = max(0.0, 16.0 - _log10(condition))
        way_out = "" if remedy is None else f" or pass {remedy} > 0"
        if rank < features:
            return cls(
                f"Column(s) {listing(columns)} depend linearly on one another: rank {rank} of "
                f"{features}, condition number {condition:.1e}, 0 correct digits expected in their "
                "coefficients. What they say twice is left out once. "
                f"Drop {features - rank} of them{way_out}."
            )
        return cls(
            f"Column(s) {listing(columns)} almost depend linearly on one another: rank {rank} of "
            f"{features}, condition number {condition:.1e}, about {digits:.0f} correct digits "
            f"expected in the coefficients. Drop one of them{way_out}."
        )

    @classmethod
    def of_test(cls, what: str, columns: Sequence[str], condition: float) -> CollinearWarning:
        digits = max(0.0, 16.0 - _log10(condition))
        return cls(
            f"{what}: column(s) {listing(columns)} almost depend linearly on one another "
            f"(condition number {condition:.1e}), so about {digits:.0f} digits of "
            "the statistics are correct. Leave one of them out: moments.select([...])."
        )


def _log10(value: float) -> float:
    return math.log10(value) if math.isfinite(value) and value > 0 else 16.0


class BasisError(InputError):
    """Columns cannot be made from these features."""

    @classmethod
    def too_wide(cls, columns: int, limit: int, *, features: int, degree: int | None) -> BasisError:
        powers = "" if degree is None else f" to degree {degree}"
        return cls(
            f"The basis of {features} feature(s){powers} would have {columns:,} columns; the limit "
            f"is {limit:,}. Lower degree, pass interactions='only' or False, keep fewer features "
            f"or centres, or pass max_columns={columns}."
        )

    @classmethod
    def of_centres(cls, shape: tuple[int, ...], features: int) -> BasisError:
        return cls(
            f"centres has shape {shape} for {features} feature(s): pass one row a centre with "
            f"{features} number(s), in the order of the columns."
        )

    @classmethod
    def centre_not_finite(cls, centre: int) -> BasisError:
        return cls(f"Centre {centre} (counted from 0) has a number that is not finite: correct it.")

    @classmethod
    def more_centres(cls, centres: int, rows: int, distinct: int | None = None) -> BasisError:
        found = "" if distinct is None else f", {distinct} of them distinct,"
        return cls(
            f"{centres} centres for {rows} row(s) (n_samples={rows}){found} cannot all differ: "
            f"pass centres={rows if distinct is None else distinct} or fewer."
        )

    @classmethod
    def no_width(cls, centres: int) -> BasisError:
        return cls(
            f"The {centres} centre(s) and all rows are one point, so that there is no distance to "
            "take the width of the kernels from: pass width."
        )

    @classmethod
    def overflow(cls, row: int, column: str) -> BasisError:
        return cls(
            f"Row {row} (counted from 0): '{column}' is beyond the range of float64 (1.8e308). "
            "Lower degree, or bring the column to a smaller unit first."
        )

    @classmethod
    def sparse(cls) -> BasisError:
        return cls(
            "Kernels of sparse rows are nowhere zero, so that they would not be sparse: pass "
            "X.toarray(), or few columns made of them (for instance with TruncatedSVD)."
        )

    @classmethod
    def sparse_about(cls, column: str) -> BasisError:
        return cls(
            f"'{column}' of sparse rows is not sparse, since it is not counted from zero. Fit to "
            "sparse rows or with origin='zero', or pass X.toarray()."
        )
