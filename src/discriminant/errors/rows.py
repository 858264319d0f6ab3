"""Cells, columns and the shape of a table that cannot be used."""

from __future__ import annotations

from collections.abc import Sequence

from discriminant.errors.base import DiscriminantWarning, InputError, listing


def _cell(row: int, column: str) -> str:
    return f"Row {row} (counted from 0), column '{column}'"


class MissingValueError(InputError):
    """A cell holds NaN."""

    @classmethod
    def of_cell(
        cls, row: int, column: str, *, rows: int | None = None, columns: int | None = None
    ) -> MissingValueError:
        extent = "" if rows is None else f"; {rows} row(s) in {columns} column(s) in all"
        return cls(
            f"{_cell(row, column)}: missing (NaN or None{extent}). "
            "Drop such rows, or fill them (for instance with sklearn.impute.SimpleImputer)."
        )


class InfiniteValueError(InputError):
    """A cell holds an infinity."""

    @classmethod
    def of_cell(cls, row: int, column: str) -> InfiniteValueError:
        return cls(
            f"{_cell(row, column)}: infinity (inf), or a number too large for float64. "
            "Correct or drop the row; if the column is a ratio, its denominator may be zero."
        )

    @classmethod
    def of_text(cls, row: int, column: str, text: str) -> InfiniteValueError:
        return cls(
            f"{_cell(row, column)}: the text {text!r} is infinity (inf), or a number too large for "
            "float64 (more than 1.8e308). Correct or drop the row."
        )

    @classmethod
    def of_sums(cls, column: str) -> InfiniteValueError:
        return cls(
            f"Column '{column}': differences or sums of squares overflow float64 (more than "
            "1.8e308), so that its spread becomes infinity (inf). Divide the column, or the "
            "weights, by a large number, or drop the rows that are that far out."
        )

    @classmethod
    def of_row(cls, row: int, name: str) -> InfiniteValueError:
        return cls(
            f"Row {row} (counted from 0): its values are so large that {name} overflows float64 "
            "(more than 1.8e308) and has no answer. Correct or drop the row, or divide the columns "
            "by a large number before the fit."
        )


class TextInNumberError(InputError):
    """A cell holds a text where a number is needed."""

    @classmethod
    def of_cell(cls, row: int, column: str, text: str) -> TextInNumberError:
        hint = (
            "It looks like a decimal comma: replace ',' by '.'."
            if text.count(",") == 1 and text.replace(",", "", 1).strip("+- ").isdigit()
            else "Convert the column to numbers, or let discriminant.Encoded(...) encode it."
        )
        return cls(f"{_cell(row, column)}: could not convert the text {text!r} to a number. {hint}")


class CellTypeError(InputError, TypeError):
    """A cell holds something that is no number at all."""

    @classmethod
    def of_cell(cls, row: int, column: str, kind: str) -> CellTypeError:
        return cls(
            f"{_cell(row, column)}: argument must be a string or a number, not {kind!r}. "
            "Features are numbers: convert or drop the column."
        )


class ColumnTypeError(InputError):
    """A column has a type that is not a number."""

    @classmethod
    def of_column(cls, column: str, dtype: str) -> ColumnTypeError:
        if "complex" in dtype:
            return cls(
                f"Complex data not supported: column '{column}' is {dtype}. "
                "Pass its real and imaginary parts as two columns."
            )
        hint = "let discriminant.Encoded(...) encode it, or do so as numbers"
        if "date" in dtype.lower():
            hint = "turn dates into numbers (days since some day)"
        elif "delta" in dtype.lower() or "duration" in dtype.lower():
            hint = "turn times into numbers (seconds)"
        return cls(f"Column '{column}' is of type {dtype}, not a number: {hint} or drop it.")

    @classmethod
    def of_categories(cls, column: str, categories: int) -> ColumnTypeError:
        return cls(
            f"Column '{column}' holds {categories} categories, not numbers. Encode it "
            "(discriminant.Encoded(...) does, or a OneHotEncoder), drop it, or convert it to "
            "numbers if their order and distances are meant."
        )


class LargeIntegerWarning(DiscriminantWarning):
    """Integers beyond 2**53 lose digits as float64."""

    @classmethod
    def of_columns(cls, columns: Sequence[str]) -> LargeIntegerWarning:
        return cls(
            f"Column(s) {listing(columns)} hold integers beyond 2**53: digits are lost as float64, "
            "so different values may become equal. Drop a column that is an identifier."
        )


class ShapeError(InputError):
    """The table has the wrong shape."""

    @classmethod
    def not_two_dimensional(cls, ndim: int) -> ShapeError:
        if ndim > 2:
            return cls(
                f"Expected 2D array, got {ndim}D array instead. Rows are samples: Reshape your "
                "data with X.reshape(len(X), -1) to lay the features of a row side by side."
            )
        return cls(
            f"Expected 2D array, got {ndim}D array instead. Rows are samples: Reshape your data "
            "with X.reshape(-1, 1) if it has a single feature or X.reshape(1, -1) if it is one row."
        )

    @classmethod
    def not_a_table(cls, kind: str) -> ShapeError:
        hint = "Call its collect() first." if "lazy" in kind.lower() else ""
        if kind == "Parted":
            return cls(
                "Expected 2D array, got rows in parts (discriminant.rows) instead: their answers "
                "need not fit into memory. Pass predict_file(model, source, out) the files or the "
                "table they lie in, predict_frame(model, frame) a Dask or Spark frame, or "
                "evaluate(model, rows) to have them measured."
            )
        return cls(
            f"Expected 2D array, got {kind} instead. Pass an array, a sparse matrix or a data "
            f"frame that holds one row for each sample. {hint}".rstrip()
        )

    @classmethod
    def of_pointers(cls) -> ShapeError:
        return cls(
            "The row pointers (indptr) of the sparse matrix do not rise from 0 to the number of "
            "its entries. Build it again, for instance with scipy.sparse.coo_array((data, (i, j)))."
        )

    @classmethod
    def ragged(cls, row: int, found: int, first: int) -> ShapeError:
        return cls(
            f"Row {row} (counted from 0) has {found} entries and row 0 has {first}: all rows need "
            "the same features. Fill what is missing or drop the row."
        )

    @classmethod
    def no_rows(cls, rows: int, needed: int = 1) -> ShapeError:
        return cls(
            f"Found array with {rows} sample(s) while a minimum of {needed} is required: "
            "there are no rows to read."
        )

    @classmethod
    def no_features(cls, rows: int) -> ShapeError:
        return cls(
            f"0 feature(s) (shape=({rows}, 0)) while a minimum of 1 is required: "
            "keep at least one numeric column."
        )

    @classmethod
    def of_lengths(cls, what: str, found: int, rows: int) -> ShapeError:
        return cls(f"{what} has {found} entries for {rows} rows: pass one for each row.")

    @classmethod
    def of_truth(cls, labels: int, rows: int) -> ShapeError:
        return cls(f"X has {rows} rows and y has {labels} labels: pass one label for each row.")

    @classmethod
    def of_width(cls, found: int, fitted: int, name: str) -> ShapeError:
        return cls(
            f"X has {found} features, but {name} is expecting {fitted} features as input. "
            "An array has no column names to match by: pass the same columns in the same order."
        )


class ColumnNamesError(InputError):
    """Names of columns do not fit."""

    @classmethod
    def not_classes(
        cls, what: str, names: Sequence[object], labels: Sequence[object]
    ) -> ColumnNamesError:
        return cls(
            f"The columns of {what} are named {listing(names, 20)}, and the classes are "
            f"{listing(labels, 20)}. Name each column by its class; or pass classes=, the class of "
            "each column in order; or an array, its columns in the order of the sorted labels."
        )

    @classmethod
    def of_missing(cls, missing: Sequence[str], extra: Sequence[str]) -> ColumnNamesError:
        note = f" Columns not used by the model: {listing(extra)}." if extra else ""
        way = "Rename or add the missing ones."
        if any(name.partition("=")[0] in set(extra) for name in missing if "=" in name):
            way = (
                "Some are levels of categories: fit the model within Encoded(...), which takes the "
                "columns as they are, and fits rows of discriminant.rows too."
            )
        return cls(
            f"Missing column(s) {listing(missing)}: the model was fitted with them.{note} {way}"
        )

    @classmethod
    def of_mixed(cls, texts: Sequence[str], others: Sequence[object]) -> ColumnNamesError:
        kinds = ", ".join(sorted({type(name).__name__ for name in others}))
        return cls(
            f"Feature names are only supported if all input features have string names: column(s) "
            f"{listing(texts)} are named by text and {listing(others)} by {kinds}. Rename them, "
            "for instance with X.columns = X.columns.astype(str)."
        )

    @classmethod
    def of_header(cls, path: str, name: str, places: Sequence[int]) -> ColumnNamesError:
        """Places are counted from 1, as spreadsheets do."""
        where = " and ".join(str(place) for place in places[:5])
        more = f" and {len(places) - 5} more" if len(places) > 5 else ""
        if name:
            return cls(
                f"{path}, first line: the column name '{name}' stands at positions {where}{more}: "
                "rename one of them. If that line is no line of names, put one there."
            )
        return cls(
            f"{path}, first line: the names at positions {where}{more} are empty. It may not be "
            "the line of names: delete titles and empty lines above that, or name the columns."
        )

    @classmethod
    def of_duplicates(cls, name: str, positions: Sequence[int]) -> ColumnNamesError:
        where = " and ".join(str(p) for p in positions)
        return cls(f"Column name '{name}' stands at positions {where}: rename one of them.")


class NamesUncheckedWarning(DiscriminantWarning):
    """Columns are taken in order, since one side has no names to match by."""

    @classmethod
    def given_without(cls, name: str) -> NamesUncheckedWarning:
        return cls(
            f"X does not have valid feature names, but {name} was fitted with feature names: "
            "columns are taken in order, unchecked. Pass a data frame to match them by name."
        )

    @classmethod
    def fitted_without(cls, name: str) -> NamesUncheckedWarning:
        return cls(
            f"X has feature names, but {name} was fitted without feature names: columns are "
            "taken in order, unchecked. Fit to a data frame to match them by name."
        )


class ExtraColumnsWarning(DiscriminantWarning):
    """Columns the model was not fitted with are ignored."""

    @classmethod
    def of_columns(cls, extra: Sequence[str]) -> ExtraColumnsWarning:
        return cls(f"Ignored column(s) {listing(extra)}: the model was fitted without them.")
