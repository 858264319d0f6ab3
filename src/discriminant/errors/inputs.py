"""Errors and warnings about inputs: labels, weights, priors, options, columns and cells."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

from discriminant.errors.base import (
    DiscriminantError,
    DiscriminantWarning,
    InputError,
    enumerate_first,
    quote,
    template,
)


class LabelError(InputError):
    """Labels are not valid."""

    of_dates = template("column")(
        "Column '{column}', the target, holds dates, and a date is not a class. Name another "
        "column, or write the classes as text, such as '2024' or '2024-03'."
    )

    missing = template("rows")(
        "Input y contains NaN or None: the label is missing in row(s) {rows:list 5} (counted from "
        "0). Drop these rows (the functions that read a table do so with missing='drop', 'mean', "
        "'indicator' or 'marginal'), or give missing labels a class of their own."
    )

    missing_in_table = template("column, rows")(
        "Column '{column}', the target: the label is missing in row(s) {rows:list 5} (counted "
        "from 0). Drop these rows with missing='drop' (--missing drop), which also drops rows "
        "with other missing cells, or with missing='mean' (--missing mean), which imputes those."
    )

    none_left = template("target, rows")(
        "Column '{target}', the target, is missing in all {rows} rows, so no row is "
        "left. Name another target."
    )

    infinite = template("row")(
        "Input y contains infinity in row {row} (counted from 0): a label must be a name or an "
        "integer. Correct or drop the row."
    )

    mixed = template("kinds")(
        "Labels have mixed types ({kinds:list}), so 1 and '1' could be two classes or one. "
        "Convert all labels to one type, for instance y.astype(str)."
    )

    unsortable = template("kind")(
        "Unknown label type: values of type {kind} cannot be sorted. Labels are texts, whole "
        "numbers or booleans: convert them, for instance to str."
    )

    continuous = template("row, distinct")(
        "Unknown label type: continuous. The label of row {row} is not a whole number, and the "
        "first rows hold {distinct} distinct values, so this is a regression target. Use "
        "LinearRegression, or bin the values into classes."
    )

    not_one_dimensional = template("shape")(
        "y should be a 1d array, got an array of shape {shape} instead: pass one label for each "
        "row. Several labels per row are not supported."
    )

    absent = template("name")(
        "{name} requires y to be passed, but the target y is None: pass one label for each row."
    )

    one_class = template("label")(
        "Only one class is present ('{label}'), and a classifier needs rows of 2 or more "
        "classes. Add rows of another class, or name another target."
    )

    one_class_in_training = template("absent, only")(
        "All rows of class(es) {absent:names 5} are in one fold, so the model without that fold "
        "would be fitted to rows of class '{only}' only. Add rows of class(es) {absent:names 5}, "
        "or distribute them over two or more folds."
    )

    unordered = template("labels")(
        "The classes {labels:names 20} are texts, and their order is not known. Pass order=[...], "
        "the classes from lowest to highest, or y as an ordered categorical; order='sorted' uses "
        "the sorted order. Logistic needs no order."
    )

    not_in_order = template("labels, order")(
        "Class(es) {labels:names} are not in the order of the classes, {order:names 20}. Name "
        "every class in order=, from lowest to highest."
    )

    unknown = template("labels, known")(
        "Unknown class(es) {labels:names}; the classes are {known:names 20}."
    )

    @classmethod
    def unseen(cls, counts: Mapping[object, int], known: Sequence[object]) -> LabelError:
        return cls(
            f"{sum(counts.values())} row(s) belong to {len(counts)} class(es) that the model does "
            f"not know: {_count_rows(counts)}; its classes are {quote(known, 20)}. Drop or relabel "
            "these rows, or pass unseen='count' to count them as errors."
        )

    @classmethod
    def unknown_decisions(cls, counts: Mapping[object, int], known: Sequence[object]) -> LabelError:
        return cls(
            f"Decisions that are not classes: {_count_rows(counts)}; the classes are "
            f"{quote(known, 20)}. Correct them, or list actions other than classes in actions=."
        )

    undecided = template("rows")(
        "The decision is missing (NaN or None) in row(s) {rows:list 5} (counted from 0). Drop "
        "these rows, or pass REJECT as their decision."
    )

    duplicate_classes = template("labels")(
        "classes={labels!r} names a class twice. Name each class once."
    )

    code_out_of_range = template("row, code, classes")(
        "The class code of row {row} (counted from 0) is {code}, but log_posterior has {classes} "
        "columns, so codes must be 0 to {classes - 1}. To pass labels instead, pass classes=, the "
        "label of each column, such as model.classes_."
    )

    without_classes = template("labels")(
        "The rows have labels ({labels:names}), but nothing says which class each column of "
        "log_posterior belongs to. Pass classes=, the label of each column, such as "
        "model.classes_."
    )


def _count_rows(counts: Mapping[object, int]) -> str:
    return enumerate_first([f"'{label}' ({rows} rows)" for label, rows in counts.items()], 20)


class TooFewRowsError(InputError):
    """A class, or the table, has too few rows."""

    of_regression = template("rows, needed, name")(
        "{rows:n row} (n_samples={rows}) is too few: {name} needs {needed} or more, since 1 "
        "sample shows no slope. Add rows."
    )

    for_columns = template("rows, columns, name")(
        "{rows} rows for {columns} columns is too few: {name} fits any responses without error, "
        "in more than one way. Pass ridge > 0, or keep fewer than {rows} columns."
    )

    of_class = template("label, rows, needed, what")(
        "Class '{label}' has {rows:n row}, and {what} needs at least {needed}. Add rows, merge "
        "the class with another, or use a model that pools the classes (LDA)."
    )

    of_one_row = template("name, needed")(
        "1 row (n_samples=1) is too few: {name} needs {needed} or more, of at least 2 classes, "
        "since one sample has neither a second class nor a variance. Add rows."
    )

    of_outliers = template("rows, needed, width, classes")(
        "{rows:n row} (n_samples={rows}) is too few to detect outliers among {width} features "
        "and {classes} classes: {needed} or more are needed. Add rows, keep fewer features, or "
        "pass outlier=None."
    )

    of_table = template("rows, classes, what")(
        "{rows:n row} (n_samples={rows}) in {classes:n class} is too few: {what} needs more rows "
        "than classes, since 1 sample per class gives a mean but no variance. Add rows or merge "
        "classes."
    )


class WeightError(InputError):
    """Sample weights are not valid."""

    negative = template("row, weight")(
        "sample_weight of row {row} (counted from 0) is {weight:g}: weights must not be "
        "negative. To leave the row out, give it weight 0."
    )

    not_finite = template("row, weight")(
        "sample_weight of row {row} (counted from 0) is {weight:g}: weights must be finite. To "
        "leave the row out, give it weight 0."
    )

    not_numbers = template("kind")(
        "sample_weight holds {kind}, not numbers: pass one number for each row."
    )

    not_supported = template("name")(
        "{name} does not support sample_weight. Pass sample_weight=None, or use another classifier."
    )

    all_zero = template()(
        "sample_weight is zero for every row: at least one weight must be positive. Pass "
        "sample_weight=None to weight all rows equally."
    )

    zero_class = template("label")(
        "Class '{label}' has total weight 0. Give one of its rows a positive weight, or drop the "
        "rows of that class."
    )

    wrong_shape = template("shape, rows")(
        "sample_weight has shape {shape} for {rows} rows: pass a 1D array with one number for "
        "each row."
    )

    denominator_not_positive = template("weight, groups")(
        "The weights sum to {weight:g}, which is not more than the {groups:n mean} estimated, so "
        "the unbiased denominator (sum of weights minus number of means) is not positive. If "
        "weights are not counts of rows, pass denominator='reliability' or 'ml'."
    )

    not_whole = template("row, weight, name")(
        "sample_weight of row {row} (counted from 0) is {weight:g}: {name} counts a row of weight "
        "2 as two rows, so weights must be whole numbers. Round them, or use LDA or QDA."
    )


class PriorError(InputError):
    """Prior probabilities are not valid."""

    of_length = template("entries, labels")(
        "prior has {entries} entries for {labels:len} classes: pass one for each class, in the "
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
        "Priors are given by label ({labels:names 20}), but nothing says which class each column "
        "of log_posterior belongs to. Pass classes=, the label of each column, such as "
        "model.classes_; or pass the priors as a list in the order of the columns."
    )

    of_sum = template("total")(
        "The priors sum to {total:.9g}, not 1. Divide the priors by their sum."
    )


class OptionError(InputError):
    """The value of an option is not valid."""

    of = template("name, value, allowed")(
        "{name}={value:value} is not valid: it must be {allowed}."
    )

    too_many_features = template("asked, available, names")(
        "n_features={asked} is more than can be selected: after {available:n feature}, each of "
        "{names:names} is constant or a linear combination of the selected ones within classes. "
        "Pass n_features={available} or less, or a smaller tolerance."
    )


class ConstantColumnWarning(DiscriminantWarning):
    """A column has one value in all rows."""

    of_columns = template("columns, what='class'")(
        "Constant column(s) {columns:names} carry no information about the {what} and are ignored."
    )


class ConstantInClassWarning(DiscriminantWarning):
    """A column has one value in a class, but not in others."""

    of_columns = template("columns, label")(
        "Column(s) {columns:names} are constant in class '{label}', so their pooled variance is "
        "used for this class. Drop these columns, or use one covariance for all classes (LDA, "
        "RDA with pooling)."
    )


class SeparatingColumnWarning(DiscriminantWarning):
    """A combination of columns is constant within classes but differs between classes."""

    of_columns = template("columns, labels")(
        "Column(s) {columns:names} do not vary within class {labels:names} but differ between "
        "classes: they separate these classes perfectly, so posteriors are 0 or 1 whatever the "
        "other columns. If a column was derived from the label, drop it."
    )

    of_direction = template("columns, labels")(
        "A combination of column(s) {columns:names} does not vary within class {labels:names} "
        "but differs between classes: it separates these classes perfectly, so posteriors are 0 "
        "or 1 whatever the other columns. If a column was derived from the label, drop it; if "
        "many rows are copies of a few, pass shrinkage='auto'."
    )


class CollinearWarning(DiscriminantWarning):
    """Columns are linearly dependent within classes."""

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
        way_out = "" if remedy is None else f" or pass {remedy} > 0"
        almost, digits, drop = (
            ("", "0", f"Redundant columns are ignored. Drop {features - rank}")
            if rank < features
            else ("almost ", f"about {_digits(condition)}", "Drop one")
        )
        return cls(
            f"Column(s) {quote(columns)} {almost}depend linearly on one another: rank {rank} of "
            f"{features}, condition number {condition:.1e}, {digits} correct digits expected in "
            f"their coefficients. {drop} of them{way_out}."
        )

    @classmethod
    def of_test(cls, what: str, columns: Sequence[str], condition: float) -> CollinearWarning:
        return cls(
            f"{what}: column(s) {quote(columns)} almost depend linearly on one another (condition "
            f"number {condition:.1e}), so about {_digits(condition)} digits of the statistics are "
            "correct. Leave one of the columns out: moments.select([...])."
        )


def _digits(condition: float) -> str:
    known = math.isfinite(condition) and condition > 0
    return f"{max(0.0, 16.0 - math.log10(condition)) if known else 0.0:.0f}"


class BasisError(InputError):
    """A basis cannot be built from these features."""

    too_wide = template("columns, limit, *, features, degree")(
        "The basis of {features:n feature}{degree:? up to degree {degree}} would have {columns:,} "
        "columns; the limit is {limit:,}. Lower degree, pass interactions='only' or False, keep "
        "fewer features or centres, or pass max_columns={columns}."
    )

    of_centres = template("shape, features")(
        "centres has shape {shape} for {features:n feature}: pass one row for each centre, with "
        "{features:n number} in the order of the columns."
    )

    centre_not_finite = template("centre")(
        "Centre {centre} (counted from 0) has a number that is not finite. Correct it."
    )

    more_centres = template("centres, rows, distinct=None")(
        "{centres} centres for {rows:n row} (n_samples={rows}){distinct:?, {distinct} of them "
        "distinct,} cannot all differ. Pass centres={distinct:?{distinct}|{rows}} or fewer."
    )

    no_width = template("centres")(
        "The {centres:n centre} and all rows are the same point, so the width of the kernels "
        "cannot be derived from distances. Pass width."
    )

    overflow = template("row, column")(
        "Row {row} (counted from 0): '{column}' exceeds the range of float64 (1.8e308). Lower "
        "degree, or rescale the column to a smaller unit."
    )

    sparse = template()(
        "Kernels of sparse rows, and random features, are nowhere zero, so the result would not "
        "be sparse. Pass "
        "X.toarray(), or reduce the columns first (for instance with TruncatedSVD)."
    )

    sparse_centred = template("column")(
        "'{column}' of sparse rows is not sparse, since it is measured from an origin other than "
        "zero. Fit to sparse rows or with origin='zero', or pass X.toarray()."
    )


class MissingValueError(InputError):
    """A cell holds NaN."""

    of_cell = template("row, column, *, rows=None, columns=None")(
        "Row {row} (counted from 0), column '{column}': missing (NaN or None{rows:?; {rows} row(s) "
        "in {columns} column(s) in total}). Drop such rows, or fill them with Encoded(model, "
        "missing='mean') or 'indicator'; 'marginal' predicts without them, and 'drop' leaves such "
        "rows out."
    )


class InfiniteValueError(InputError):
    """A cell holds an infinity."""

    of_cell = template("row, column")(
        "Row {row} (counted from 0), column '{column}': infinity (inf), or a number too large "
        "for float64. Correct or drop the row; if the column is a ratio, its denominator may be "
        "zero."
    )

    of_text = template("row, column, text")(
        "Row {row} (counted from 0), column '{column}': the text {text!r} is infinity (inf), or "
        "a number too large for float64 (more than 1.8e308). Correct or drop the row."
    )

    of_sums = template("column")(
        "Column '{column}': differences or sums of squares overflow float64 (more than 1.8e308), "
        "so its variance becomes infinity (inf). Divide the column, or the weights, by a large "
        "number, or drop the extreme rows."
    )

    of_row = template("row, name")(
        "Row {row} (counted from 0): its values are so large that {name} overflows float64 (more "
        "than 1.8e308). Correct or drop the row, or divide the columns by a large number before "
        "fitting."
    )


class TextInNumberError(InputError):
    """A cell holds text where a number is needed."""

    _of = template("row, column, text, decimal_comma")(
        "Row {row} (counted from 0), column '{column}': could not convert the text {text!r} to a "
        "number. {decimal_comma:?It looks like a decimal comma: replace ',' by '.'.|Convert the "
        "column to numbers, or let discriminant.Encoded(...) encode it.}"
    )

    @classmethod
    def of_cell(cls, row: int, column: str, text: str) -> TextInNumberError:
        return cls._of(row, column, text, _has_decimal_comma(text))


def _has_decimal_comma(text: str) -> bool:
    return text.count(",") == 1 and text.replace(",", "", 1).strip("+- ").isdigit()


class CellTypeError(InputError, TypeError):
    """A cell holds neither a number nor text."""

    of_cell = template("row, column, kind")(
        "Row {row} (counted from 0), column '{column}': argument must be a string or a number, "
        "not {kind!r}. Convert or drop the column."
    )


class ColumnTypeError(InputError):
    """A column has a type that is not numeric."""

    @classmethod
    def of_column(cls, column: str, dtype: str) -> ColumnTypeError:
        if "complex" in dtype:
            return cls(
                f"Complex data not supported: column '{column}' is {dtype}. "
                "Pass its real and imaginary parts as two columns."
            )
        hint = "encode it (discriminant.Encoded(...) does)"
        if "date" in dtype.lower():
            hint = "convert dates to numbers (days since some date)"
        elif "delta" in dtype.lower() or "duration" in dtype.lower():
            hint = "convert durations to numbers (seconds)"
        return cls(f"Column '{column}' has type {dtype}, not a number: {hint}, or drop it.")

    of_categories = template("column, categories")(
        "Column '{column}' holds {categories} categories, not numbers. Encode the column (with "
        "discriminant.Encoded(...) or OneHotEncoder), drop it, or convert it to numbers if order "
        "and distances are meaningful."
    )


class LargeIntegerWarning(DiscriminantWarning):
    """Integers beyond 2**53 lose digits as float64."""

    of_columns = template("columns")(
        "Column(s) {columns:names} hold integers beyond 2**53, which lose digits as float64, so "
        "different values may become equal. Drop a column that is an identifier."
    )


class ShapeError(InputError):
    """The table has the wrong shape."""

    @classmethod
    def not_two_dimensional(cls, ndim: int) -> ShapeError:
        if ndim > 2:
            return cls(
                f"Expected 2D array, got {ndim}D array instead. Rows are samples: Reshape your "
                "data with X.reshape(len(X), -1) to put all features of a sample in one row."
            )
        return cls(
            f"Expected 2D array, got {ndim}D array instead. Rows are samples: Reshape your data "
            "with X.reshape(-1, 1) if it has a single feature or X.reshape(1, -1) if it is one row."
        )

    @classmethod
    def not_a_table(cls, kind: str) -> ShapeError:
        if kind == "PartitionedTable":
            return cls(
                "Expected 2D array, got a partitioned table (discriminant.rows) instead, whose "
                "predictions need not fit into memory. Pass its files or table to "
                "predict_file(model, source, out), a Dask or Spark frame to predict_frame(model, "
                "frame), or call evaluate(model, rows) for the measures."
            )
        hint = " Call its collect() first." if "lazy" in kind.lower() else ""
        return cls(
            f"Expected 2D array, got {kind} instead. Pass an array, a sparse matrix or a data "
            f"frame with one row for each sample.{hint}"
        )

    of_pointers = template()(
        "The row pointers (indptr) of the sparse matrix do not increase from 0 to the number of "
        "its entries. Build the matrix again, for instance with scipy.sparse.coo_array((data, "
        "(i, j)))."
    )

    ragged = template("row, entries, first")(
        "Row {row} (counted from 0) has {entries} entries and row 0 has {first}, but all rows "
        "need the same features. Fill the missing entries or drop the row."
    )

    no_rows = template("rows, needed=1")(
        "Found array with {rows} sample(s) while a minimum of {needed} is required: there are no "
        "rows to read."
    )

    no_features = template("rows")(
        "0 feature(s) (shape=({rows}, 0)) while a minimum of 1 is required: keep at least one "
        "numeric column."
    )

    of_lengths = template("what, entries, rows")(
        "{what} has {entries} entries for {rows} rows: pass one for each row."
    )

    of_widget = template("rows, features, classes, most")(
        "The widget shows at most {most} rows, 2 or more features and 2 to 8 classes; this table "
        "has {rows:n row}, {features:n feature} and {classes:n class}. Pass a sample of the rows, "
        "or some of the classes."
    )

    of_truth = template("labels, rows")(
        "X has {rows} rows and y has {labels} labels: pass one label for each row."
    )

    of_width = template("width, fitted, name")(
        "X has {width} features, but {name} is expecting {fitted} features as input. An array "
        "has no column names to match by: pass the same columns in the same order."
    )


class ColumnNamesError(InputError):
    """Column names do not match, or are not valid."""

    not_classes = template("what, names, labels")(
        "The columns of {what} are named {names:names 20}, but the classes are {labels:names 20}. "
        "Name each column by its class; or pass classes=, the class of each column in order; or "
        "pass an array whose columns are in the order of the sorted labels."
    )

    @classmethod
    def of_missing(cls, missing: Sequence[str], extra: Sequence[str]) -> ColumnNamesError:
        note = f" Columns not used by the model: {quote(extra)}." if extra else ""
        way_out = "Rename or add the missing columns."
        if any(name.partition("=")[0] in set(extra) for name in missing if "=" in name):
            way_out = (
                "Some are levels of categories: fit the model within Encoded(...), which accepts "
                "the columns as they are, in memory or from discriminant.rows."
            )
        return cls(
            f"Missing column(s) {quote(missing)}: the model was fitted with them.{note} {way_out}"
        )

    @classmethod
    def of_mixed(cls, texts: Sequence[str], others: Sequence[object]) -> ColumnNamesError:
        kinds = ", ".join(sorted({type(name).__name__ for name in others}))
        return cls(
            f"Feature names are only supported if all input features have string names: column(s) "
            f"{quote(texts)} are named by text and {quote(others)} by {kinds}. Rename them, "
            "for instance with X.columns = X.columns.astype(str)."
        )

    of_header = template("path, name, places")(  # positions are counted from 1, as in spreadsheets
        "{path}, first line: {name:?the column name '{name}' occurs at positions {places:list 5}. "
        "Rename one of them; if the file has no header, put a line of names there.|the names at "
        "positions {places:list 5} are empty. Delete titles and empty lines above the header, or "
        "name the columns.}"
    )

    of_duplicates = template("name, positions")(
        "Column name '{name}' occurs at positions {positions:list}. Rename one of them."
    )


class NamesUncheckedWarning(DiscriminantWarning):
    """Columns are matched by position, since one of two tables has no column names."""

    given_without = template("name")(
        "X does not have valid feature names, but {name} was fitted with feature names: columns "
        "are matched by position, unchecked. Pass a data frame to match columns by name."
    )

    fitted_without = template("name")(
        "X has feature names, but {name} was fitted without feature names: columns are matched "
        "by position, unchecked. Fit to a data frame to match columns by name."
    )


class ExtraColumnsWarning(DiscriminantWarning):
    """Columns that the model was not fitted with are ignored."""

    of_columns = template("extra")(
        "Ignored column(s) {extra:names}: the model was fitted without them."
    )


# 1,001 may be a thousand and one, or have a decimal comma
_ONE_GROUP = re.compile("[+-]?[1-9][0-9]{0,2},[0-9]{3}")
_GROUPS = re.compile("[+-]?[1-9][0-9]{0,2}(,[0-9]{3}){2,}")


# Location of a cell: lines are counted from 1, as in editors, and rows from 0.
_CELL = "Row {row} (counted from 0{line:?, line {line} of the file}), column '{column}'"


class BadNumberError(TextInNumberError):
    """A cell in a column of numbers holds text that is not a number."""

    _ambiguous = template("row, column, line, text, groups")(
        _CELL + ": the text {text!r} may be {groups[0]}{groups[1]} or {groups[0]}.{groups[1]}. "
        "Pass thousands=',' if the comma groups digits, or decimal=',' if it is a decimal comma; "
        "or list the column in categories if it is not a number, or in exclude."
    )

    _not_a_number = template("row, column, line, text, kind, hint")(
        _CELL + ": the text {text:short} is not a {kind}, unlike the others in the column. "
        "{hint}Correct it, add it to missing_texts if it means 'missing', or list the column in "
        "categories if it is not a number, or in exclude."
    )

    @classmethod
    def of(
        cls, row: int, column: str, text: str, *, line: int | None = None, kind: str = "number"
    ) -> BadNumberError:
        if kind == "number" and _ONE_GROUP.fullmatch(text.strip()):
            return cls._ambiguous(row, column, line, text, text.strip().split(","))
        return cls._not_a_number(row, column, line, text, kind, _hint(text))


def _hint(text: str) -> str:
    stripped = text.strip().lower()
    if _GROUPS.fullmatch(stripped):
        return "If its commas group digits, pass thousands=','. "
    if _has_decimal_comma(text):
        return "The text looks like a number with a decimal comma: write '.'. "
    if stripped.startswith("0x"):
        return "Hexadecimal numbers are not supported. "
    if "_" in text:
        return "Digits grouped by '_' are not supported. "
    return "The text is a truth value, not a number. " if stripped in ("true", "false") else ""


class InfiniteCellError(InfiniteValueError):
    """A cell holds an infinity, or a number too large for float64."""

    of = template("row, column, *, text=None, line=None")(
        _CELL
        + ": {text:?the text {text:short} is }infinity (inf), or a number too large for float64 "
        "(more than 1.8e308). Correct or drop the row; in a ratio, the denominator may be zero."
    )


class MissingCellError(MissingValueError):
    """A cell is missing, and missing='error'."""

    in_formula = template("row, column, *, rows, columns, fitted=False, line=None")(
        _CELL + ": missing ({rows} row(s) in {columns} column(s) in total). {fitted:?Fill the cell "
        "in the table|Drop such rows with missing='drop' (--missing drop), or fill the cells in "
        "the table}: a formula computes features of complete rows only."
    )

    of = template("row, column, *, rows, columns, fitted=False, line=None")(
        _CELL + ": missing ({rows} row(s) in {columns} column(s) in total). {fitted:?The model was "
        "fitted with missing='error' or 'drop': fill the cell, or fit with missing='mean', "
        "'indicator' or 'marginal'.|Drop such rows with missing='drop' (--missing drop), or fill "
        "them: 'mean', 'indicator', 'marginal'.}"
    )

    of_class_column = template("column, label")(
        "Column '{column}' is missing in all rows of class '{label}', so missing='em' cannot "
        "estimate its mean. Exclude the column, or pass missing='mean' or 'indicator'."
    )

    of_few_complete = template("label, complete, features")(
        "missing='em' cannot estimate the covariance of {label:?class '{label}'|the classes}, "
        "which becomes singular, from {complete:n row} without missing cells for {features} "
        "features. {label:?Share one covariance (LDA), or pass|Pass} missing='mean' "
        "with shrinkage='auto', or exclude the columns with most missing cells."
    )

    of_all = template("rows, columns")(
        "All {rows} rows have a missing cell in one of {columns:names}, so missing='drop' leaves "
        "no row. Exclude the columns with most missing cells, or pass missing='mean' or "
        "'indicator'."
    )


class EmptyColumnError(MissingValueError):
    """All cells of a column are missing."""

    of = template("column, rows")("Column '{column}' is missing in all {rows} rows. Exclude it.")


class CategoryError(InputError):
    """A category was not seen during fitting, or the order of categories is not valid."""

    unseen = template("row, column, value, *, known, rows=1, line=None")(
        _CELL + ": the category {value:short} was not seen during fitting ({rows} such row(s) in "
        "that column); known are {known:names}. Correct it, or fit with unseen='ignore' (it "
        "counts as none of the known categories) or unseen='reject' (such rows are rejected)."
    )

    of_order = template("column, value, levels")(
        "ordered={{'{column}': ...}} lists the levels {levels:names}, but the column also holds "
        "{value:short}. List every level, from lowest to highest."
    )

    of_orders = template("column, levels")(
        "Column '{column}' is an ordered category, but parts of the table list its levels in "
        "different orders (levels: {levels:names}). Pass one order, from lowest to highest: "
        "ordered={{'{column}': [...]}}."
    )


class FormulaError(InputError):
    """A formula is not valid, or cannot be used with the table or the model."""

    not_text = template("kind")(
        "A formula is a text such as 'y ~ age + C(education)', not a {kind} or an empty text."
    )

    of_syntax = template("text, column, reason")(
        "The formula cannot be parsed{column:?, at character {column}}: {reason} (in {text:short "
        "60}). Join terms by +, : or *, and put names with spaces in backticks."
    )

    too_long = template("length, limit")(
        "An expression of the formula has {length} characters; the limit is {limit}. Add a column "
        "to the table instead."
    )

    too_wide = template("limit")(
        "The formula has more than {limit:,} terms or features. Use fewer interactions, or "
        "categories with fewer levels."
    )

    of_function = template("function, column, allowed, *, advice=''")(
        "At character {column} of the formula: the function '{function}' is not allowed. "
        "{advice:?Instead, {advice}. }Allowed are {allowed:join , }. For anything else, add a "
        "column to the table."
    )

    of_part = template("part, column")(
        "At character {column} of the formula: {part} is not allowed. An expression contains "
        "columns, numbers, + - * / **, comparisons and functions such as log; for anything else, "
        "add a column to the table."
    )

    of_arguments = template("function, expected")(
        "In the formula, {function}(...) takes {expected}."
    )

    of_coding = template("given, allowed")(
        "{given} is not the name of contrasts. Allowed are {allowed:join , }, as in C(x, sum) or "
        'C(x, treatment("b")).'
    )

    of_scaling = template("number")(
        "The number {number} stands in the formula as a term. To multiply a column, write "
        "I({number} * x)."
    )

    @classmethod
    def unknown_column(
        cls, name: str, column: int, columns: Sequence[str], nearest: str | None
    ) -> FormulaError:
        place = f" (character {column})" if column else ""
        hint = f" Did you mean '{nearest}'?" if nearest else ""
        return cls(
            f"The formula names the column '{name}'{place}, which the table does not have.{hint} "
            f"The columns are {quote(columns, 20)}."
        )

    no_column = template("name, columns")(
        "The formula needs the column '{name}'; the columns are {columns:names 20}."
    )

    response_inside = template("name, text")(
        "The response '{name}' is also on the right-hand side of the formula ({text:short 60}), so "
        "it would predict itself. Remove it there."
    )

    no_response = template("text, model")(
        "The formula '{text}' has no response, and y is not given. Write the response on its "
        "left-hand side (y ~ ...), or pass the labels or numbers: Encoded({model}(), "
        "formula=...).fit(X, y)."
    )

    one_response = template("text")(
        "The left-hand side of the formula must be one column or expression ({text:short 60}). "
        "Write y ~ a + b; for several responses, fit each of them."
    )

    two_responses = template("response")(
        "The formula names the response '{response}', and y is given too. Leave y out, or write "
        "the formula without a left-hand side."
    )

    other_target = template("response, target")(
        "The response of the formula is '{response}', but target='{target}'. Leave the target out, "
        "or write the formula without a left-hand side."
    )

    needs_column = template("response")(
        "The left-hand side of the formula, '{response}', is not a column. Here the response must "
        "be a column of the table: add one."
    )

    no_terms = template("text")(
        "The formula has no terms besides the intercept ({text:short 60}). Name at least one "
        "column on its right-hand side."
    )

    constant = template("expression")(
        "'{expression}' in the formula does not depend on any column. Remove it."
    )

    constant_column = template("expression")(
        "'{expression}' in the formula: the column has one value in all rows of the fit. Remove it."
    )

    one_level = template("expression, level")(
        "'{expression}' in the formula has one level in the rows of the fit, '{level}', so it has "
        "no contrasts. Remove it."
    )

    many_levels = template("expression, levels, limit")(
        "'{expression}' in the formula has {levels:,} levels; the limit is {limit:,}. Merge rare "
        "levels, or leave the column out."
    )

    many_column_levels = template("column, levels, limit")(
        "Column '{column}' in the formula has {levels:,} levels; the limit is {limit:,} "
        "(max_levels). Leave the column out (- {column}), merge rare levels, or write C({column}) "
        "to use every level."
    )

    no_level = template("expression, level, levels")(
        "'{expression}' in the formula: no row has the reference level '{level}'. The levels are "
        "{levels:names 20}."
    )

    unlisted_level = template("expression, level, levels")(
        "'{expression}' in the formula: a row has the level '{level}', which is not among those "
        "listed, {levels:names 20}. List every level."
    )

    unseen = template("row, expression, rows")(
        "Row {row} (counted from 0): '{expression}' has a level that was not seen during fitting "
        "({rows} such row(s)). Correct it, or fit with unseen='ignore' (it counts as none of the "
        "levels) or unseen='reject' (such rows are rejected)."
    )

    few_values = template("expression, needed, distinct")(
        "'{expression}' in the formula needs {needed} different values of the column, which has "
        "{distinct}. Lower the degree."
    )

    not_finite = template("expression, row")(
        "'{expression}' in the formula is not finite in row {row} (counted from 0), such as the "
        "logarithm of 0. Correct the row, or change the expression, for instance to log1p."
    )

    outside = template("expression, row, low, high")(
        "'{expression}' in the formula: row {row} (counted from 0) lies outside {low:.6g} to "
        "{high:.6g}, the range of the fit, where the spline is not defined. Use poly, or drop the "
        "row."
    )

    not_numbers = template("expression")(
        "'{expression}' in the formula is not a number, so there is no arithmetic with it. For a "
        "category write C(...)."
    )

    changed_kind = template("expression, kind")(
        "'{expression}' in the formula was a {kind} when the model was fitted, and is not now. "
        "Convert the column to the type it had."
    )

    needs_option = template("model")(
        "The formula has no intercept (- 1 or + 0), and {model} has no option to leave it out. "
        "Write the formula with an intercept."
    )

    intercept_option = template("model, option")(
        "{model}({option}=False) contradicts the formula, which has an intercept. Leave the option "
        "out, and write '- 1' in the formula."
    )

    needs_intercept = template()(
        "The formula has no intercept (- 1 or + 0), and models are compared with an intercept. "
        "Write the formula with an intercept, or use Logistic.from_formula."
    )

    needs_memory = template("engine")(
        "A formula needs all rows in memory, and these are read in partitions ({engine}). Pass "
        "engine='memory' (--engine memory), or add the columns to the table and leave the formula "
        "out."
    )

    no_predictions = template("model")(
        "{model} predicts nothing, so it has no formula. Use it in a pipeline, or write I(x**2) "
        "and a:b in the formula of a classifier."
    )


class EmptyLevelWarning(DiscriminantWarning):
    """A declared level of a category has no rows."""

    of = template("expression, levels")(
        "'{expression}' in the formula: no row of the fit has the level(s) {levels:names}, so they "
        "have no coefficient, and are unknown levels when predicting. In pandas, "
        "remove_unused_categories() drops them."
    )


class TargetError(LabelError):
    """The target column is not valid."""

    no_column = template("target, columns, nearest, *, what='target'")(
        "There is no column '{target}' for the {what}.{nearest:? Did you mean '{nearest}'?} The "
        "columns are {columns:names 20}."
    )

    no_header = template("target, columns")(
        "There is no column '{target}'; the first line holds {columns:names}, which look like "
        "values. If the file has no header, put a line of names before the rows."
    )

    all_unique = template("target, rows")(
        "Column '{target}' has {rows} different labels in {rows} rows, so every row is its own "
        "class: it looks like an identifier. Name another target."
    )

    too_many = template("target, classes, rows, limit")(
        "Column '{target}' has {classes} different labels in {rows} rows, more than "
        "max_classes={limit}. If the column is neither an identifier nor a number, raise "
        "max_classes (--max-classes)."
    )

    continuous_text = template("target, distinct, rows")(
        "Column '{target}' holds {distinct} different numbers in {rows} rows, written with "
        "decimals, so it is a regression target. Use LinearRegression, or bin the values into "
        "classes."
    )


class NoFeaturesError(ShapeError):
    """No column is left as a feature."""

    of = template("excluded")(
        "0 feature(s) are left, while a minimum of 1 is required: no column except the target can "
        "be used.{excluded:? Not used: {excluded:join ; }.} List the columns to use in columns=."
    )


class ColumnKindError(ColumnTypeError):
    """The type of a column is not supported, or is not the type that it had during fitting."""

    of = template("column, kind")(
        "Column '{column}' has type {kind}, which is neither number, truth value, date nor text. "
        "Convert the column, or leave it out with exclude=['{column}']."
    )

    changed = template("column, *, was, now")(
        "Column '{column}' holds {now}, but held {was} when the model was fitted. Convert the "
        "column to its type in the fit."
    )


class LookalikeWarning(DiscriminantWarning):
    """Some names or labels look alike but differ."""

    of = template("what, pairs")(
        "Some {what} differ only by case, spaces or the form of their letters: {pairs:pairs}. "
        "They are treated as different; correct them if they are meant to be the same."
    )


class UnreadTextWarning(DiscriminantWarning):
    """Text columns look like numbers or dates but are not read as such."""

    @classmethod
    def of(cls, columns: Sequence[tuple[str, str, str, str, bool]]) -> UnreadTextWarning:
        """Return the warning.

        `columns` holds tuples: name, apparent type, example, reason why the column is not read as
        this type, and whether it is used.
        """
        shown = enumerate_first(
            [
                f"'{name}' looks like {kind} ({example[:80]!r}) and is "
                f"{'used as a category' if used else 'not used'}, because {why}"
                for name, kind, example, why, used in columns
            ],
            separator="; ",
        )
        return cls(
            f"Text columns that look like numbers or dates: {shown}. Write the values as plain "
            "numbers (1234.5) or dates (2023-10-27), and list texts that mean 'missing' in "
            "missing_texts; or list the columns in categories or exclude to confirm."
        )


class UnknownOptionError(DiscriminantError, TypeError):
    """An estimator or a function was given an option that it does not have."""

    @classmethod
    def of(
        cls, estimator: str, option: str, *, known: Sequence[str], instead: str | None
    ) -> UnknownOptionError:
        """Return the error.

        `instead` states what to do in this library instead of passing the option.
        """
        near = get_close_matches(option, known, n=1)
        if instead is None and near:
            instead = f"did you mean {near[0]}?"
        elif instead is not None:
            instead = f"{instead} (see docs/from_sklearn.md)."
        hint = f": {instead}" if instead else "."
        return cls(
            f"{estimator} has no option '{option}'{hint} Its options are {', '.join(known)}."
        )


class ResponseError(InputError):
    """Responses of a regression are not valid."""

    missing = template("row, column")(
        "Input y contains NaN: response {column} is missing in row {row}. Drop such rows."
    )

    infinite = template("row, column")(
        "Input y contains infinity or a value too large for dtype('float64'): response {column} "
        "of row {row}. Correct or drop the row."
    )

    @classmethod
    def not_numbers(cls, dtype: str) -> ResponseError:
        if "complex" in dtype:
            return cls("Complex data not supported: y is complex. Pass two columns of responses.")
        return cls(f"y holds {dtype}, not numbers. To predict names use a classifier, such as LDA.")

    absent = template("name")(
        "{name} requires y to be passed, but the target y is None: pass one number for each row."
    )

    of_classes = template("name")(
        "The target of a partitioned table is a class, and {name} needs numbers. Read the rows "
        "into memory and pass X and y, or fit a classifier."
    )

    several = template("name, responses")(
        "{name} was fitted to {responses} responses, and a file has one column of predictions. "
        "Fit one model for each response, or call predict on a frame."
    )

    of_names = template("name")(
        "y holds names, and {name} needs numbers. For two named classes fit Logistic(), or pass "
        "1.0 for rows of the class of interest and 0.0 for all other rows."
    )

    of_shape = template("shape")(
        "y has shape {shape}: pass one number for each row, or (rows, responses)."
    )

    of_columns = template("shape")(
        "y has shape {shape}: pass one number for each row. Only family='binomial' takes two "
        "columns, successes and failures."
    )

    of_width = template("width, fitted")(
        "y has {width:n response}, but the model was fitted to {fitted} before. Pass the same "
        "number of responses."
    )

    of_range = template("row, count, *, asking, allowed, instead")(
        "y of row {row}{count:more}, counted from 0, is not {allowed}, which {asking} requires. "
        "Correct or drop the row, or {instead}."
    )

    of_one_value = template("value, family")(
        "y is {value:g} in every row, so the most likely {family} mean is {value:g}, its linear "
        "predictor is infinite and there is nothing to fit. Add rows with other responses."
    )

    too_large = template("size, bound")(
        "The largest absolute response is {size:.3g}, and powers of it overflow float64: it must "
        "lie between {1 / bound:.0e} and {bound:.0e}. Rescale y: pass y / {size:.0e}."
    )


class OffsetError(InputError):
    """An offset is not valid."""

    not_finite = template("row")(
        "offset of row {row} (counted from 0) is not a finite number. Correct or drop the row."
    )

    of_shape = template("shape, rows")(
        "offset has shape {shape} for {rows} rows: pass one number for each row."
    )

    not_numbers = template()(
        "offset holds values that are not numbers: pass one number for each row."
    )

    absent = template()(
        "The model was fitted with an offset, so predictions need an offset. Pass offset=, or "
        "offset=0 to predict without one."
    )
