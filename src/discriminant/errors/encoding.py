"""Columns and cells that cannot become features, and labels that cannot become classes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from discriminant.errors.answers import LabelError
from discriminant.errors.base import DiscriminantWarning, InputError, listing
from discriminant.errors.rows import (
    ColumnTypeError,
    InfiniteValueError,
    MissingValueError,
    ShapeError,
    TextInNumberError,
)

_ONE_GROUP = re.compile("[+-]?[1-9][0-9]{0,2},[0-9]{3}")  # 1,001: thousands or decimals
_GROUPS = re.compile("[+-]?[1-9][0-9]{0,2}(,[0-9]{3}){2,}")


def _place(row: int, column: str, line: int | None) -> str:
    """Where a cell stands; a line is counted from 1 as editors do, a row from 0."""
    at = "" if line is None else f", line {line} of the file"
    return f"Row {row} (counted from 0{at}), column '{column}'"


class BadNumberError(TextInNumberError):
    """A text in a column of numbers."""

    @classmethod
    def of(
        cls, row: int, column: str, text: str, *, line: int | None = None, kind: str = "number"
    ) -> BadNumberError:
        if kind == "number" and _ONE_GROUP.fullmatch(text.strip()):
            whole, part = text.strip().split(",")
            return cls(
                f"{_place(row, column, line)}: the text {text!r} may be {whole}{part} or "
                f"{whole}.{part}. Pass thousands=',' if the comma groups digits, or decimal=',' if "
                "it is a decimal comma; or name the column in categories if it is no number, or in "
                "exclude."
            )
        return cls(
            f"{_place(row, column, line)}: the text {text[:80]!r} is no {kind}, and the others are."
            f" {_hint(text)}Correct it, name it in missing_texts if it means 'missing', or name "
            "the column in categories if it is no number, or in exclude."
        )


def _hint(text: str) -> str:
    stripped = text.strip().lower()
    if _GROUPS.fullmatch(stripped):
        return "If its commas group digits, pass thousands=','. "
    if text.count(",") == 1 and text.replace(",", "", 1).strip("+- ").isdigit():
        return "It looks like a decimal comma: write '.'. "
    if stripped.startswith("0x"):
        return "Hexadecimal numbers are not read. "
    if "_" in text:
        return "Digits are not grouped by '_'. "
    return "It is a truth value, not a number. " if stripped in ("true", "false") else ""


class InfiniteCellError(InfiniteValueError):
    """A cell that is an infinity, or too large for float64."""

    @classmethod
    def of(
        cls, row: int, column: str, *, text: str | None = None, line: int | None = None
    ) -> InfiniteCellError:
        what = "infinity (inf)" if text is None else f"the text {text[:80]!r} is infinity (inf)"
        return cls(
            f"{_place(row, column, line)}: {what}, or a number too large for float64 (more than "
            "1.8e308). Correct or drop the row; of a ratio, the denominator may be zero."
        )


class MissingCellError(MissingValueError):
    """A missing cell where the policy is to have none."""

    @classmethod
    def of(
        cls,
        row: int,
        column: str,
        *,
        rows: int,
        columns: int,
        fitted: bool = False,
        line: int | None = None,
    ) -> MissingCellError:
        way_out = (
            "The model was fitted with missing='error' or 'drop': fill the cell, or fit with "
            "missing='mean', 'indicator' or 'marginal'."
            if fitted
            else "Drop such rows with missing='drop' (--missing drop), or fill them: 'mean', "
            "'indicator', 'marginal'."
        )
        return cls(
            f"{_place(row, column, line)}: missing ({rows} row(s) in {columns} column(s) in all). "
            f"{way_out}"
        )

    @classmethod
    def of_all(cls, rows: int, columns: Sequence[str]) -> MissingCellError:
        return cls(
            f"All {rows} rows have a missing cell in one of {listing(columns)}, so that "
            "missing='drop' leaves none: exclude the emptiest columns, or pass missing='mean' or "
            "'indicator'."
        )


class EmptyColumnError(MissingValueError):
    """A column of missing cells only."""

    @classmethod
    def of(cls, column: str, rows: int) -> EmptyColumnError:
        return cls(f"Column '{column}' is missing in all {rows} rows: exclude it.")


class CategoryError(InputError):
    """A category that the model has not seen."""

    @classmethod
    def unseen(
        cls,
        row: int,
        column: str,
        value: str,
        *,
        known: Sequence[str],
        rows: int = 1,
        line: int | None = None,
    ) -> CategoryError:
        return cls(
            f"{_place(row, column, line)}: the category {value[:80]!r} was not seen at the fit "
            f"({rows} such row(s) in that column); known are {listing(known)}. Correct it, or fit "
            "with unseen='ignore' (no indicator is 1) or 'reject' (such rows are not decided)."
        )

    @classmethod
    def of_order(cls, column: str, value: str, levels: Sequence[str]) -> CategoryError:
        return cls(
            f"ordered={{'{column}': ...}} names the levels {listing(levels)}, and the column also "
            f"holds {value[:80]!r}: name every level, from lowest to highest."
        )

    @classmethod
    def of_orders(cls, column: str, levels: Sequence[str]) -> CategoryError:
        return cls(
            f"Column '{column}' is an ordered category, but parts of the table list its levels in "
            f"different orders ({listing(levels)} occur). Give one order, from lowest to highest: "
            f"ordered={{'{column}': [...]}}."
        )


class TargetError(LabelError):
    """The column of labels cannot be used."""

    @classmethod
    def no_column(
        cls, target: str, columns: Sequence[str], nearest: str | None, *, what: str = "target"
    ) -> TargetError:
        guess = "" if nearest is None else f" Did you mean '{nearest}'?"
        return cls(
            f"There is no column '{target}' for the {what}.{guess} The columns are "
            f"{listing(columns, 20)}."
        )

    @classmethod
    def headless(cls, target: str, columns: Sequence[str]) -> TargetError:
        return cls(
            f"There is no column '{target}'; the first line holds {listing(columns)}, which look "
            "like values: does the file lack a line of names? Put one before the rows."
        )

    @classmethod
    def all_unique(cls, target: str, rows: int) -> TargetError:
        return cls(
            f"Column '{target}' has {rows} different labels in {rows} rows, so that every row is "
            "its own class: it looks like an identifier. Name another target."
        )

    @classmethod
    def too_many(cls, target: str, classes: int, rows: int, limit: int) -> TargetError:
        return cls(
            f"Column '{target}' has {classes} different labels in {rows} rows, more than "
            f"max_classes={limit}. If it is no identifier and no number, raise max_classes "
            "(--max-classes)."
        )

    @classmethod
    def continuous_text(cls, target: str, distinct: int, rows: int) -> TargetError:
        return cls(
            f"Column '{target}' holds {distinct} different numbers in {rows} rows, written with "
            "decimals: a regression target. Use LinearRegression, or cut it into classes."
        )


class NoFeaturesError(ShapeError):
    """No column is left to learn from."""

    @classmethod
    def of(cls, aside: Sequence[str]) -> NoFeaturesError:
        told = f" Set aside: {'; '.join(aside)}." if aside else ""
        return cls(
            f"0 feature(s) are left, while a minimum of 1 is required: no column but the target "
            f"can be used.{told} Name columns to keep in columns=."
        )


class ColumnKindError(ColumnTypeError):
    """A column of a kind that is not read."""

    @classmethod
    def of(cls, column: str, kind: str) -> ColumnKindError:
        return cls(
            f"Column '{column}' is of type {kind}, which is neither number, truth value, date nor "
            f"text: convert it, or leave it out with exclude=['{column}']."
        )

    @classmethod
    def changed(cls, column: str, *, was: str, found: str) -> ColumnKindError:
        return cls(
            f"Column '{column}' holds {found}, and at the fit it was {was}: convert it to what it "
            "was."
        )


class LookalikeWarning(DiscriminantWarning):
    """Names that a reader would take for one another."""

    @classmethod
    def of(cls, what: str, pairs: Sequence[tuple[str, str]]) -> LookalikeWarning:
        shown = ", ".join(f"{one!r} and {other!r}" for one, other in list(pairs)[:5])
        more = f" and {len(pairs) - 5} more pair(s)" if len(pairs) > 5 else ""
        return cls(
            f"Some {what} differ only by case, spaces or the form of their letters: {shown}{more}. "
            "They are kept apart; correct them if they are meant to be one."
        )


class UnreadTextWarning(DiscriminantWarning):
    """Texts that look like numbers or dates, and are not read as such."""

    @classmethod
    def of(cls, columns: Sequence[tuple[str, str, str, str, bool]]) -> UnreadTextWarning:
        """Of each: name, what it looks like, an example, why it is not read, whether it is used."""
        told = "; ".join(
            f"'{name}' looks like {kind} ({example[:80]!r}) and is "
            f"{'used as a category' if used else 'not used'}, because {why}"
            for name, kind, example, why, used in list(columns)[:5]
        )
        more = f"; and {len(columns) - 5} more" if len(columns) > 5 else ""
        return cls(
            f"Columns of texts that may be worth more: {told}{more}. Write them as plain numbers "
            "(1234.5) or dates (2023-10-27), name texts that mean 'missing' in missing_texts; or "
            "name the columns in categories or exclude, if that is what they are."
        )
