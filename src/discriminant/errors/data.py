"""Cells, columns and the shape of a table that cannot be used.

Labels, responses, weights, priors and options that cannot be used.

Columns that a model cannot use as they are.

Columns and cells that cannot become features, and labels that cannot become classes.

Options that an estimator does not have.

Responses and offsets of a regression that cannot be used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from discriminant.errors.base import (
    DiscriminantError,
    DiscriminantWarning,
    InputError,
    quote,
    template,
)


class LabelError(InputError):
    """The labels cannot be used."""

    of_dates = template("column")(
        "Column '{column}', which holds the classes, is one of dates. A date is a number of "
        "days, not a class: name another column, or write the classes as texts, such as '2024' "
        "or '2024-03'."
    )

    @classmethod
    def missing(cls, rows: Sequence[int]) -> LabelError:
        where = ", ".join(str(r) for r in list(rows)[:5])
        more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
        return cls(
            f"Input y contains NaN or None: the label is missing in row(s) {where}{more} (counted "
            "from 0). Drop these rows (missing='drop' does so where a table is read) or give the "
            "missing its own label."
        )

    none_left = template("target, rows")(
        "Column '{target}' is missing in all {rows} rows, so that missing='drop' leaves none: "
        "name another target."
    )

    infinite = template("row")(
        "Input y contains infinity in row {row}: a label must be a name or an integer."
    )

    mixed = template("kinds")(
        "Labels are of mixed types ({kinds:list}), so 1 and '1' could be two classes or one. "
        "Convert them all to one type, for instance y.astype(str)."
    )

    unordered = template("kind")(
        "Unknown label type: {kind} cannot be put in order. Labels are texts, whole numbers or "
        "booleans: convert them, for instance to str."
    )

    continuous = template("row, distinct")(
        "Unknown label type: continuous. The label of row {row} is not a whole number and there "
        "are {distinct} distinct values among the first rows: this is a regression target. Use "
        "LinearRegression, or cut it into classes."
    )

    not_one_dimensional = template("shape")(
        "y should be a 1d array, got an array of shape {shape} instead: pass one label for each "
        "row. Several labels a row are not supported."
    )

    absent = template("name")(
        "{name} requires y to be passed, but the target y is None: pass one label a row."
    )

    one_class = template("label")(
        "Only one class is present ('{label}'): a classifier needs rows of 2 or more classes. "
        "Add rows of another class, or name another target."
    )

    unknown = template("labels, known")(
        "Unknown class(es) {labels:names}; the classes are {known:names 20}."
    )

    @classmethod
    def unseen(cls, counts: Mapping[object, int], known: Sequence[object]) -> LabelError:
        return cls(
            f"{sum(counts.values())} row(s) are of {len(counts)} class(es) that the model does not "
            f"know: {_counted(counts)}; its classes are {quote(known, 20)}. Drop or relabel "
            "these rows, or pass unseen='count': then they count, and are never right."
        )

    @classmethod
    def strange(cls, counts: Mapping[object, int], known: Sequence[object]) -> LabelError:
        return cls(
            f"Decisions that are no class: {_counted(counts)}; the classes are "
            f"{quote(known, 20)}. Correct them, or name actions that are no class in actions=."
        )

    @classmethod
    def undecided(cls, rows: Sequence[int]) -> LabelError:
        where = ", ".join(str(r) for r in list(rows)[:5])
        more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
        return cls(
            f"The decision is missing (NaN or None) in row(s) {where}{more} (counted from 0). "
            "Drop these rows, or decide REJECT."
        )

    @classmethod
    def twice(cls, labels: Sequence[object]) -> LabelError:
        return cls(f"classes={list(labels)!r} names a class twice: name each once.")

    @classmethod
    def no_code(cls, row: int, code: int, classes: int) -> LabelError:
        return cls(
            f"The code of row {row} (counted from 0) is {code}, and log_posterior has {classes} "
            f"columns: codes count them, 0 to {classes - 1}. For labels pass classes=, the label "
            "of each column, such as model.classes_."
        )

    uncoded = template("labels")(
        "The rows have labels, {labels:names}, and nothing says which column of log_posterior is "
        "whose: pass classes=, the label of each column, such as model.classes_."
    )


def _counted(counts: Mapping[object, int], most: int = 20) -> str:
    """Labels with their numbers of rows, the first few of them."""
    shown = ", ".join(f"'{label}' ({count} rows)" for label, count in list(counts.items())[:most])
    return shown if len(counts) <= most else f"{shown} and {len(counts) - most} more"


class TooFewRowsError(InputError):
    """A class, or the table, has too few rows for what is asked."""

    of_regression = template("rows, needed, name")(
        "{rows} row(s) (n_samples={rows}): {name} needs {needed} or more, since 1 sample shows "
        "no slope. Add rows."
    )

    for_columns = template("rows, columns, name")(
        "{rows} rows for {columns} columns: {name} could fit any responses without error, in "
        "many ways. Pass ridge > 0, or keep fewer than {rows} columns."
    )

    of_class = template("label, rows, needed, what")(
        "Class '{label}' has {rows} row(s) where {what} needs at least {needed}. Add rows, merge "
        "it with another class, or use a model that pools classes (LDA)."
    )

    of_one_row = template("name, needed")(
        "1 row (n_samples=1): {name} needs {needed} or more, of at least 2 classes, since one "
        "sample shows neither a second class nor any spread. Add rows."
    )

    of_outliers = template("rows, needed, width, classes")(
        "{rows} row(s) (n_samples={rows}) for {width} features and {classes} classes: how far a "
        "row is from its class can be judged from {needed} rows on. Add rows, keep fewer "
        "features, or pass outlier=None."
    )

    of_table = template("rows, classes, what")(
        "{rows} row(s) (n_samples={rows}) in {classes} class(es): {what} needs more rows than "
        "classes, since 1 sample a class gives its mean and shows no spread. Add rows or merge "
        "classes."
    )


class WeightError(InputError):
    """Weights cannot be used."""

    negative = template("row, weight")(
        "sample_weight of row {row} (counted from 0) is {weight:g}: a weight must not be "
        "negative. To leave the row out, give it weight 0."
    )

    not_finite = template("row, weight")(
        "sample_weight of row {row} (counted from 0) is {weight:g}: a weight must be a finite "
        "number. To leave the row out, give it weight 0."
    )

    not_numbers = template("kind")(
        "sample_weight holds {kind}, not numbers: pass one number for each row."
    )

    not_taken = template("name")(
        "{name} takes no sample_weight, so rows cannot be weighed: pass sample_weight=None, or "
        "another classifier."
    )

    all_zero = template()(
        "sample_weight is zero for every row: at least one weight must be positive. Pass "
        "sample_weight=None to count every row once."
    )

    class_without = template("label")(
        "Class '{label}' has total weight 0: give one of its rows a positive weight, or drop the "
        "rows of that class."
    )

    wrong_shape = template("shape, rows")(
        "sample_weight has shape {shape} for {rows} rows: pass a 1D array with one number for "
        "each row."
    )

    too_light = template("weight, groups")(
        "The weights sum to {weight:g}, not more than the {groups} mean(s) estimated, so the "
        "unbiased denominator (sum of weights minus means) is not positive. If weights are not "
        "counts of rows pass denominator='reliability' or 'ml'."
    )


class PriorError(InputError):
    """Prior probabilities cannot be used."""

    of_length = template("found, labels")(
        "prior has {found} entries for {labels:len} classes: pass one for each class, in the "
        "order {labels:names}."
    )

    not_numbers = template("kind, labels")(
        "prior is {kind}, not {labels:len} numbers: pass the probability of each class, in the "
        "order {labels:names}."
    )

    of_class = template("label, value")(
        "The prior of class '{label}' is {value:g}: it must be positive and finite. To leave a "
        "class out, drop it from the moments or the rows."
    )

    of_missing = template("missing, labels")(
        "prior has no entry for class(es) {missing:names}: pass one for each of {labels:names}."
    )

    without_classes = template("labels")(
        "Priors are given by label, {labels:names 20}, and nothing says which column of "
        "log_posterior is whose: pass classes=, the label of each column, such as "
        "model.classes_; or priors as a list in the order of the columns."
    )

    of_sum = template("total")("The priors sum to {total:.9g}, not 1: divide them by their sum.")


class OptionError(InputError):
    """An option has a value it cannot have."""

    @classmethod
    def of(cls, name: str, value: object, allowed: str) -> OptionError:
        return cls(f"{name}={_shown(value)} is not possible: it must be {allowed}.")

    beyond_reach = template("asked, found, names")(
        "n_features={asked} is not possible: {found} feature(s) are in and no other can enter, "
        "since each of {names:names} is constant or follows from these within classes. Ask for "
        "at most {found}, or pass a smaller tolerance."
    )


def _shown(value: object) -> str:
    """A value as Python writes it; of rows given by mistake only the shape: they are private."""
    shape = getattr(value, "shape", None)
    if shape:
        return f"<{type(value).__name__} of shape {tuple(shape)}>"
    found = repr(value)
    return found if len(found) <= 200 else f"{found[:100]}..."


class ConstantColumnWarning(DiscriminantWarning):
    """A column has one value in all rows."""

    @classmethod
    def of_columns(cls, columns: Sequence[str], what: str = "class") -> ConstantColumnWarning:
        return cls(f"Constant column(s) {quote(columns)} say nothing of the {what}: left out.")


class ConstantInClassWarning(DiscriminantWarning):
    """A column has one value in a class, but not in others."""

    of_columns = template("columns, label")(
        "Column(s) {columns:names} have one value only in class '{label}': their pooled variance "
        "is used there. Drop them, or share one covariance (LDA, RDA with pooling)."
    )


class SeparatingColumnWarning(DiscriminantWarning):
    """A direction does not vary within classes but differs between them."""

    of_columns = template("columns, labels")(
        "Column(s) {columns:names} do not vary within class {labels:names} but differ between "
        "classes: they separate these classes perfectly and decide alone, so that posteriors are "
        "0 or 1. If a column was made from the label, drop it."
    )

    of_direction = template("columns, labels")(
        "A combination of column(s) {columns:names} does not vary within class {labels:names} "
        "but differs between classes: it separates these classes perfectly and decides alone, so "
        "that posteriors are 0 or 1. If a column was made from the label, drop it; if many rows "
        "are copies of a few, pass shrinkage='auto'."
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
                f"Column(s) {quote(columns)} depend linearly on one another: rank {rank} of "
                f"{features}, condition number {condition:.1e}, 0 correct digits expected in their "
                "coefficients. What they say twice is left out once. "
                f"Drop {features - rank} of them{way_out}."
            )
        return cls(
            f"Column(s) {quote(columns)} almost depend linearly on one another: rank {rank} of "
            f"{features}, condition number {condition:.1e}, about {digits:.0f} correct digits "
            f"expected in the coefficients. Drop one of them{way_out}."
        )

    @classmethod
    def of_test(cls, what: str, columns: Sequence[str], condition: float) -> CollinearWarning:
        digits = max(0.0, 16.0 - _log10(condition))
        return cls(
            f"{what}: column(s) {quote(columns)} almost depend linearly on one another "
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

    of_centres = template("shape, features")(
        "centres has shape {shape} for {features} feature(s): pass one row a centre with "
        "{features} number(s), in the order of the columns."
    )

    centre_not_finite = template("centre")(
        "Centre {centre} (counted from 0) has a number that is not finite: correct it."
    )

    @classmethod
    def more_centres(cls, centres: int, rows: int, distinct: int | None = None) -> BasisError:
        found = "" if distinct is None else f", {distinct} of them distinct,"
        return cls(
            f"{centres} centres for {rows} row(s) (n_samples={rows}){found} cannot all differ: "
            f"pass centres={rows if distinct is None else distinct} or fewer."
        )

    no_width = template("centres")(
        "The {centres} centre(s) and all rows are one point, so that there is no distance to "
        "take the width of the kernels from: pass width."
    )

    overflow = template("row, column")(
        "Row {row} (counted from 0): '{column}' is beyond the range of float64 (1.8e308). Lower "
        "degree, or bring the column to a smaller unit first."
    )

    sparse = template()(
        "Kernels of sparse rows are nowhere zero, so that they would not be sparse: pass "
        "X.toarray(), or few columns made of them (for instance with TruncatedSVD)."
    )

    sparse_about = template("column")(
        "'{column}' of sparse rows is not sparse, since it is not counted from zero. Fit to "
        "sparse rows or with origin='zero', or pass X.toarray()."
    )


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

    of_sums = template("column")(
        "Column '{column}': differences or sums of squares overflow float64 (more than 1.8e308), "
        "so that its spread becomes infinity (inf). Divide the column, or the weights, by a "
        "large number, or drop the rows that are that far out."
    )

    of_row = template("row, name")(
        "Row {row} (counted from 0): its values are so large that {name} overflows float64 (more "
        "than 1.8e308) and has no answer. Correct or drop the row, or divide the columns by a "
        "large number before the fit."
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

    of_categories = template("column, categories")(
        "Column '{column}' holds {categories} categories, not numbers. Encode it "
        "(discriminant.Encoded(...) does, or a OneHotEncoder), drop it, or convert it to numbers "
        "if their order and distances are meant."
    )


class LargeIntegerWarning(DiscriminantWarning):
    """Integers beyond 2**53 lose digits as float64."""

    of_columns = template("columns")(
        "Column(s) {columns:names} hold integers beyond 2**53: digits are lost as float64, so "
        "different values may become equal. Drop a column that is an identifier."
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
        if kind == "PartitionedTable":
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

    of_pointers = template()(
        "The row pointers (indptr) of the sparse matrix do not rise from 0 to the number of its "
        "entries. Build it again, for instance with scipy.sparse.coo_array((data, (i, j)))."
    )

    ragged = template("row, found, first")(
        "Row {row} (counted from 0) has {found} entries and row 0 has {first}: all rows need the "
        "same features. Fill what is missing or drop the row."
    )

    @classmethod
    def no_rows(cls, rows: int, needed: int = 1) -> ShapeError:
        return cls(
            f"Found array with {rows} sample(s) while a minimum of {needed} is required: "
            "there are no rows to read."
        )

    no_features = template("rows")(
        "0 feature(s) (shape=({rows}, 0)) while a minimum of 1 is required: keep at least one "
        "numeric column."
    )

    of_lengths = template("what, found, rows")(
        "{what} has {found} entries for {rows} rows: pass one for each row."
    )

    of_truth = template("labels, rows")(
        "X has {rows} rows and y has {labels} labels: pass one label for each row."
    )

    of_width = template("found, fitted, name")(
        "X has {found} features, but {name} is expecting {fitted} features as input. An array "
        "has no column names to match by: pass the same columns in the same order."
    )


class ColumnNamesError(InputError):
    """Names of columns do not fit."""

    not_classes = template("what, names, labels")(
        "The columns of {what} are named {names:names 20}, and the classes are {labels:names "
        "20}. Name each column by its class; or pass classes=, the class of each column in "
        "order; or an array, its columns in the order of the sorted labels."
    )

    @classmethod
    def of_missing(cls, missing: Sequence[str], extra: Sequence[str]) -> ColumnNamesError:
        note = f" Columns not used by the model: {quote(extra)}." if extra else ""
        way = "Rename or add the missing ones."
        if any(name.partition("=")[0] in set(extra) for name in missing if "=" in name):
            way = (
                "Some are levels of categories: fit the model within Encoded(...), which takes the "
                "columns as they are, and fits rows of discriminant.rows too."
            )
        return cls(
            f"Missing column(s) {quote(missing)}: the model was fitted with them.{note} {way}"
        )

    @classmethod
    def of_mixed(cls, texts: Sequence[str], others: Sequence[object]) -> ColumnNamesError:
        kinds = ", ".join(sorted({type(name).__name__ for name in others}))
        return cls(
            f"Feature names are only supported if all input features have string names: column(s) "
            f"{quote(texts)} are named by text and {quote(others)} by {kinds}. Rename them, "
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

    given_without = template("name")(
        "X does not have valid feature names, but {name} was fitted with feature names: columns "
        "are taken in order, unchecked. Pass a data frame to match them by name."
    )

    fitted_without = template("name")(
        "X has feature names, but {name} was fitted without feature names: columns are taken in "
        "order, unchecked. Fit to a data frame to match them by name."
    )


class ExtraColumnsWarning(DiscriminantWarning):
    """Columns the model was not fitted with are ignored."""

    of_columns = template("extra")(
        "Ignored column(s) {extra:names}: the model was fitted without them."
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

    of_all = template("rows, columns")(
        "All {rows} rows have a missing cell in one of {columns:names}, so that missing='drop' "
        "leaves none: exclude the emptiest columns, or pass missing='mean' or 'indicator'."
    )


class EmptyColumnError(MissingValueError):
    """A column of missing cells only."""

    of = template("column, rows")("Column '{column}' is missing in all {rows} rows: exclude it.")


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
            f"({rows} such row(s) in that column); known are {quote(known)}. Correct it, or fit "
            "with unseen='ignore' (no indicator is 1) or 'reject' (such rows are not decided)."
        )

    of_order = template("column, value, levels")(
        "ordered={{'{column}': ...}} names the levels {levels:names}, and the column also holds "
        "{value:short}: name every level, from lowest to highest."
    )

    of_orders = template("column, levels")(
        "Column '{column}' is an ordered category, but parts of the table list its levels in "
        "different orders ({levels:names} occur). Give one order, from lowest to highest: "
        "ordered={{'{column}': [...]}}."
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
            f"{quote(columns, 20)}."
        )

    headless = template("target, columns")(
        "There is no column '{target}'; the first line holds {columns:names}, which look like "
        "values: does the file lack a line of names? Put one before the rows."
    )

    all_unique = template("target, rows")(
        "Column '{target}' has {rows} different labels in {rows} rows, so that every row is its "
        "own class: it looks like an identifier. Name another target."
    )

    too_many = template("target, classes, rows, limit")(
        "Column '{target}' has {classes} different labels in {rows} rows, more than "
        "max_classes={limit}. If it is no identifier and no number, raise max_classes "
        "(--max-classes)."
    )

    continuous_text = template("target, distinct, rows")(
        "Column '{target}' holds {distinct} different numbers in {rows} rows, written with "
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

    of = template("column, kind")(
        "Column '{column}' is of type {kind}, which is neither number, truth value, date nor "
        "text: convert it, or leave it out with exclude=['{column}']."
    )

    changed = template("column, *, was, found")(
        "Column '{column}' holds {found}, and at the fit it was {was}: convert it to what it was."
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


class UnknownOptionError(DiscriminantError, TypeError):
    """An estimator or a function was given an option that it does not have."""

    @classmethod
    def of(
        cls, estimator: str, option: str, *, known: Sequence[str], instead: str | None
    ) -> UnknownOptionError:
        """`instead` is what does here what the option does elsewhere."""
        near = get_close_matches(option, known, n=1)
        if instead is None and near:
            instead = f"did you mean {near[0]}?"
        elif instead is not None:
            instead = f"{instead} (see docs/from_sklearn.md)."
        has = f"Its options are {', '.join(known)}."
        return cls(
            f"{estimator} has no option '{option}'"
            + (f": {instead}" if instead else ".")
            + f" {has}"
        )


class ResponseError(InputError):
    """The numbers to regress on cannot be used."""

    missing = template("row, column")(
        "Input y contains NaN: response {column} is missing in row {row}. Drop such rows."
    )

    infinite = template("row, column")(
        "Input y contains infinity or a value too large for dtype('float64'): response {column} "
        "of row {row}. Correct or drop the row."
    )

    @classmethod
    def no_number(cls, dtype: str) -> ResponseError:
        if "complex" in dtype:
            return cls("Complex data not supported: y is complex. Pass two columns of responses.")
        return cls(f"y holds {dtype}, not numbers: to predict names use a classifier, say LDA.")

    absent = template("name")(
        "{name} requires y to be passed, but the target y is None: pass one number a row."
    )

    of_classes = template("name")(
        "The target of partitioned rows is a class, and {name} needs numbers: read the rows into "
        "memory and pass X and y, or fit a classifier."
    )

    several = template("name, responses")(
        "{name} was fitted to {responses} responses, and a file has one column of predictions: "
        "fit one model for each response, or call predict on a frame."
    )

    of_names = template("name")(
        "y holds names, and {name} needs numbers: for two classes by name fit Logistic(), or "
        "pass 1.0 for rows of the class that is counted and 0.0 for the others."
    )

    of_shape = template("shape")(
        "y has shape {shape}: pass one number a row, or (rows, responses)."
    )

    of_columns = template("shape")(
        "y has shape {shape}: pass one number a row. Only family='binomial' takes two columns, "
        "of successes and of failures."
    )

    of_width = template("found, fitted")(
        "y has {found} response(s), but {fitted} were fitted before: pass as many."
    )

    @classmethod
    def of_range(
        cls, row: int, count: int, *, asking: str, allowed: str, instead: str
    ) -> ResponseError:
        others = f" (and of {count - 1} more)" if count > 1 else ""
        return cls(
            f"y of row {row}{others}, counted from 0, is not {allowed}, as {asking} needs it. "
            f"Correct or drop the row, or {instead}."
        )

    of_one_value = template("value, family")(
        "y is {value:g} in every row, so that the most likely {family} mean is {value:g} and its "
        "score is infinite: there is nothing to fit. Add rows with other responses."
    )

    @classmethod
    def out_of_reach(cls, size: float, bound: float) -> ResponseError:
        return cls(
            f"The largest response is {size:.3g} in size, and powers of such numbers are no longer "
            f"doubles: it must lie between {1 / bound:.0e} and {bound:.0e}. Measure y in another "
            f"unit: pass y / {size:.0e}."
        )


class OffsetError(InputError):
    """An offset cannot be used."""

    not_finite = template("row")(
        "offset of row {row} (counted from 0) is not a finite number: correct or drop the row."
    )

    of_shape = template("shape, rows")(
        "offset has shape {shape} for {rows} rows: pass one number for each row."
    )

    not_numbers = template()(
        "offset holds something other than numbers: pass one number for each row."
    )

    forgotten = template()(
        "The fit had an offset, so what it predicts depends on one: pass offset=, or offset=0 to "
        "predict without."
    )
