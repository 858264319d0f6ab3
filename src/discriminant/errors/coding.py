"""Codes of classes that cannot be used."""

from __future__ import annotations

from collections.abc import Sequence

from discriminant.errors.base import DiscriminantWarning, InputError, listing


class CodeError(InputError):
    """A code matrix cannot tell the classes apart, or asks for what cannot be."""

    @classmethod
    def of_shape(cls, shape: tuple[int, ...], labels: Sequence[object]) -> CodeError:
        return cls(
            f"The code has shape {shape} for {len(labels)} classes: pass one row for each class, "
            f"in the order {listing(labels, 20)}, and one column for each classifier."
        )

    @classmethod
    def of_entry(cls, label: object, column: int, value: object) -> CodeError:
        return cls(
            f"The code of class '{label}' in column {column} (counted from 0) is {value}: it must "
            "be -1, 0 (the class is left out of that classifier) or 1."
        )

    @classmethod
    def one_sided(cls, column: int, side: int) -> CodeError:
        return cls(
            f"Column {column} (counted from 0) of the code has no class on side {side:+d}, so that "
            "there is nothing to tell apart. 0 leaves a class out: a code of 0 and 1 is to be "
            "passed as 2 * code - 1."
        )

    @classmethod
    def equal_rows(cls, pairs: Sequence[tuple[object, object]]) -> CodeError:
        told = "; ".join(f"'{first}' and '{second}'" for first, second in pairs[:5])
        more = f" and {len(pairs) - 5} more pairs" if len(pairs) > 5 else ""
        return cls(
            f"{len(pairs)} pair(s) of classes have no column that puts one on the other side than "
            f"the other, so that they cannot be told apart: {told}{more}. Add such columns, or "
            "merge the classes."
        )

    @classmethod
    def too_many(cls, kind: str, columns: int, classes: int, most: int) -> CodeError:
        return cls(
            f"The {kind} code of {classes} classes has {columns:,} columns, and more than {most:,} "
            "are not made. Pass code='dense', 'sparse' or 'designed', with `columns` as many as "
            "you like."
        )

    @classmethod
    def too_long(cls, kind: str, columns: int, classes: int, most: int) -> CodeError:
        return cls(
            f"columns={columns}, but there are only {most:,} different columns of a {kind} code of "
            f"{classes} classes, complements left out. Pass columns={most} or fewer, or None."
        )

    @classmethod
    def too_short(cls, kind: str, columns: int, classes: int) -> CodeError:
        least = max((classes - 1).bit_length(), 1)
        return cls(
            f"No {kind} code of {columns} column(s) was found that tells all {classes} classes "
            f"apart; {least} columns are the least that could. Pass a larger `columns`, or None."
        )


class RepeatedColumnsWarning(DiscriminantWarning):
    """Columns of a code make the same classifier twice."""

    @classmethod
    def of_columns(cls, pairs: Sequence[tuple[int, int, bool]]) -> RepeatedColumnsWarning:
        told = "; ".join(
            f"{first} and {second} ({'complements' if turned else 'equal'})"
            for first, second, turned in pairs[:5]
        )
        more = f" and {len(pairs) - 5} more pairs" if len(pairs) > 5 else ""
        return cls(
            f"{len(pairs)} pair(s) of columns of the code (counted from 0) make the same "
            f"classifier: {told}{more}. They err together, so that the second corrects nothing: "
            "keep one of each."
        )


class CouplingWarning(DiscriminantWarning):
    """Probabilities of classes were not found to the last digit."""

    @classmethod
    def of(cls, rows: int, of_rows: int, steps: int, change: float) -> CouplingWarning:
        return cls(
            f"The coupled probabilities of {rows} of {of_rows} rows still change by {change:.1e} "
            f"after {steps} steps: believe no more digits of them. Classes by `predict` do not "
            "depend on them."
        )
