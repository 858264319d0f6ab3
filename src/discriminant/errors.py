"""Every error and warning of the package, each built from facts.

A message names the place, the number and the way out. Callers pass facts to a class method; the
sentences live here. Rows are counted from 0, as Python does, and their values are never printed,
except a text that stands where a number should be.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_NOT_THE_USER = (__name__.partition(".")[0] + ".", "sklearn.", "contextlib", "concurrent.")


class DiscriminantError(Exception):
    """Root of everything this package raises on purpose."""


class InputError(DiscriminantError, ValueError):
    """The rows, labels, weights or options handed in cannot be used."""


class DiscriminantWarning(UserWarning):
    """Root of everything this package warns of."""


def tell(warning: Warning) -> None:
    """Warn at the line of the user's own code, however deep in the package it was noticed."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_NOT_THE_USER):
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    warnings.warn(warning, stacklevel=level)


@contextmanager
def gathered() -> Iterator[None]:
    """Tell warnings of one kind once: the first, and how many others there were."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    kinds: dict[type[Warning], dict[str, None]] = {}
    for found in caught:
        kinds.setdefault(found.category, {})[str(found.message)] = None
    for kind, texts in kinds.items():
        first, more = next(iter(texts)), len(texts) - 1
        tell(kind(f"{first} (And {more} more warning(s) of this kind.)" if more else first))


def listing(names: Sequence[object], most: int = 5) -> str:
    """Names in quotes, the first few of them.

    >>> listing(["a", "b"])
    "'a', 'b'"
    >>> listing(range(7), most=2)
    "'0', '1' and 5 more"
    """
    shown = ", ".join(f"'{name}'" for name in list(names)[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


# --- cells ----------------------------------------------------------------------------------


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


class TextInNumberError(InputError):
    """A cell holds a text where a number is needed."""

    @classmethod
    def of_cell(cls, row: int, column: str, text: str) -> TextInNumberError:
        hint = (
            "It looks like a decimal comma: replace ',' by '.'."
            if text.count(",") == 1 and text.replace(",", "", 1).strip("+- ").isdigit()
            else "Convert the column to numbers, or encode it (for instance with OneHotEncoder)."
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
        hint = "encode it as numbers (for instance with OneHotEncoder)"
        if "date" in dtype.lower():
            hint = "turn dates into numbers (days since some day)"
        elif "delta" in dtype.lower() or "duration" in dtype.lower():
            hint = "turn times into numbers (seconds)"
        return cls(f"Column '{column}' is of type {dtype}, not a number: {hint} or drop it.")

    @classmethod
    def of_categories(cls, column: str, categories: int) -> ColumnTypeError:
        return cls(
            f"Column '{column}' holds {categories} categories, not numbers. Encode it (for "
            "instance with OneHotEncoder), drop it, or convert it to numbers if their order and "
            "distances are meant."
        )


class LargeIntegerWarning(DiscriminantWarning):
    """Integers beyond 2**53 lose digits as float64."""

    @classmethod
    def of_columns(cls, columns: Sequence[str]) -> LargeIntegerWarning:
        return cls(
            f"Column(s) {listing(columns)} hold integers beyond 2**53: digits are lost as float64, "
            "so different values may become equal. Drop a column that is an identifier."
        )


# --- shape of the table ----------------------------------------------------------------------


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
        return cls(
            f"Expected 2D array, got {kind} instead. Pass an array, a sparse matrix or a data "
            f"frame that holds one row for each sample. {hint}".rstrip()
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
    def of_width(cls, found: int, fitted: int, name: str) -> ShapeError:
        return cls(
            f"X has {found} features, but {name} is expecting {fitted} features as input. "
            "An array has no column names to match by: pass the same columns in the same order."
        )


class ColumnNamesError(InputError):
    """Names of columns do not fit."""

    @classmethod
    def of_missing(cls, missing: Sequence[str], extra: Sequence[str]) -> ColumnNamesError:
        note = f" Columns not used by the model: {listing(extra)}." if extra else ""
        return cls(
            f"Missing column(s) {listing(missing)}: the model was fitted with them.{note} "
            "Rename or add the missing ones."
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


# --- labels -----------------------------------------------------------------------------------


class LabelError(InputError):
    """The labels cannot be used."""

    @classmethod
    def missing(cls, rows: Sequence[int]) -> LabelError:
        where = ", ".join(str(r) for r in list(rows)[:5])
        more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
        return cls(
            f"Input y contains NaN or None: the label is missing in row(s) {where}{more} (counted "
            "from 0). Drop these rows or give the missing its own label."
        )

    @classmethod
    def infinite(cls, row: int) -> LabelError:
        return cls(f"Input y contains infinity in row {row}: a label must be a name or an integer.")

    @classmethod
    def mixed(cls, kinds: Sequence[str]) -> LabelError:
        return cls(
            f"Labels are of mixed types ({', '.join(kinds)}), so 1 and '1' could be two classes "
            "or one. Convert them all to one type, for instance y.astype(str)."
        )

    @classmethod
    def unordered(cls, kind: str) -> LabelError:
        return cls(
            f"Unknown label type: {kind} cannot be put in order. Labels are texts, whole numbers "
            "or booleans: convert them, for instance to str."
        )

    @classmethod
    def continuous(cls, row: int, distinct: int) -> LabelError:
        return cls(
            "Unknown label type: continuous. The label of "
            f"row {row} is not a whole number and there are {distinct} distinct values among the "
            "first rows: this is a regression target. Use LinearRegression, or cut it into classes."
        )

    @classmethod
    def not_one_dimensional(cls, shape: tuple[int, ...]) -> LabelError:
        return cls(
            f"y should be a 1d array, got an array of shape {shape} instead: "
            "pass one label for each row. Several labels a row are not supported."
        )

    @classmethod
    def absent(cls, name: str) -> LabelError:
        return cls(
            f"{name} requires y to be passed, but the target y is None: pass one label a row."
        )

    @classmethod
    def one_class(cls, label: object) -> LabelError:
        return cls(
            f"Only one class is present ('{label}'): a classifier needs rows of 2 or more classes."
        )

    @classmethod
    def unknown(cls, labels: Sequence[object], known: Sequence[object]) -> LabelError:
        return cls(f"Unknown class(es) {listing(labels)}; the classes are {listing(known, 20)}.")


class ResponseError(InputError):
    """The numbers to regress on cannot be used."""

    @classmethod
    def missing(cls, row: int, column: int) -> ResponseError:
        return cls(
            f"Input y contains NaN: response {column} is missing in row {row}. Drop such rows."
        )

    @classmethod
    def infinite(cls, row: int, column: int) -> ResponseError:
        return cls(
            f"Input y contains infinity or a value too large for dtype('float64'): response "
            f"{column} of row {row}. Correct or drop the row."
        )

    @classmethod
    def no_number(cls, dtype: str) -> ResponseError:
        if "complex" in dtype:
            return cls("Complex data not supported: y is complex. Pass two columns of responses.")
        return cls(f"y holds {dtype}, not numbers: to predict names use a classifier, say LDA.")

    @classmethod
    def of_shape(cls, shape: tuple[int, ...]) -> ResponseError:
        return cls(f"y has shape {shape}: pass one number a row, or (rows, responses).")

    @classmethod
    def of_width(cls, found: int, fitted: int) -> ResponseError:
        return cls(f"y has {found} response(s), but {fitted} were fitted before: pass as many.")


class TooFewRowsError(InputError):
    """A class, or the table, has too few rows for what is asked."""

    @classmethod
    def of_class(cls, label: object, rows: int, needed: int, what: str) -> TooFewRowsError:
        return cls(
            f"Class '{label}' has {rows} row(s) where {what} needs at least {needed}. "
            "Add rows, merge it with another class, or use a model that pools classes (LDA)."
        )

    @classmethod
    def of_one_row(cls, name: str, needed: int) -> TooFewRowsError:
        return cls(
            f"1 row (n_samples=1): {name} needs {needed} or more, of at least 2 classes, since one "
            "sample shows neither a second class nor any spread. Add rows."
        )

    @classmethod
    def of_table(cls, rows: int, classes: int, what: str) -> TooFewRowsError:
        return cls(
            f"{rows} row(s) (n_samples={rows}) in {classes} class(es): {what} needs more rows than "
            "classes, since 1 sample a class gives its mean and shows no spread. Add rows or merge "
            "classes."
        )


# --- weights and priors -------------------------------------------------------------------------


class WeightError(InputError):
    """Weights cannot be used."""

    @classmethod
    def negative(cls, row: int, weight: float) -> WeightError:
        return cls(
            f"sample_weight of row {row} (counted from 0) is {weight:g}: a weight must not be "
            "negative. To leave the row out, give it weight 0."
        )

    @classmethod
    def not_finite(cls, row: int, weight: float) -> WeightError:
        return cls(
            f"sample_weight of row {row} (counted from 0) is {weight:g}: a weight must be a finite "
            "number. To leave the row out, give it weight 0."
        )

    @classmethod
    def not_numbers(cls, kind: str) -> WeightError:
        return cls(f"sample_weight holds {kind}, not numbers: pass one number for each row.")

    @classmethod
    def all_zero(cls) -> WeightError:
        return cls(
            "sample_weight is zero for every row: at least one weight must be positive. "
            "Pass sample_weight=None to count every row once."
        )

    @classmethod
    def class_without(cls, label: object) -> WeightError:
        return cls(
            f"Class '{label}' has total weight 0: give one of its rows a positive weight, "
            "or drop the rows of that class."
        )

    @classmethod
    def wrong_shape(cls, shape: tuple[int, ...], rows: int) -> WeightError:
        return cls(
            f"sample_weight has shape {shape} for {rows} rows: pass a 1D array with one "
            "number for each row."
        )

    @classmethod
    def too_light(cls, weight: float, groups: int) -> WeightError:
        return cls(
            f"The weights sum to {weight:g}, not more than the {groups} mean(s) estimated, so the "
            "unbiased denominator (sum of weights minus means) is not positive. If weights are "
            "not counts of rows pass denominator='reliability' or 'ml'."
        )


class PriorError(InputError):
    """Prior probabilities cannot be used."""

    @classmethod
    def of_length(cls, found: int, labels: Sequence[object]) -> PriorError:
        return cls(
            f"prior has {found} entries for {len(labels)} classes: pass one for each class, in the "
            f"order {listing(labels)}."
        )

    @classmethod
    def not_numbers(cls, kind: str, labels: Sequence[object]) -> PriorError:
        return cls(
            f"prior is {kind}, not {len(labels)} numbers: pass the probability of each class, in "
            f"the order {listing(labels)}."
        )

    @classmethod
    def of_class(cls, label: object, value: float) -> PriorError:
        return cls(
            f"The prior of class '{label}' is {value:g}: it must be positive and finite. "
            "To leave a class out, drop it from the moments or the rows."
        )

    @classmethod
    def of_sum(cls, total: float) -> PriorError:
        return cls(f"The priors sum to {total:.9g}, not 1: divide them by their sum.")


class OptionError(InputError):
    """An option has a value it cannot have."""

    @classmethod
    def of(cls, name: str, value: object, allowed: str) -> OptionError:
        return cls(f"{name}={value!r} is not possible: it must be {allowed}.")


# --- moments ------------------------------------------------------------------------------------


class MomentsMismatchError(InputError):
    """Two summaries cannot be put together."""

    @classmethod
    def of_features(cls, ours: Sequence[str], theirs: Sequence[str]) -> MomentsMismatchError:
        missing = [n for n in ours if n not in set(theirs)]
        extra = [n for n in theirs if n not in set(ours)]
        differ = (
            f"only in the first: {listing(missing) or 'none'}; "
            f"only in the second: {listing(extra) or 'none'}"
            if missing or extra
            else "the same names in another order"
        )
        return cls(
            f"Moments of {len(ours)} and {len(theirs)} features do not add ({differ}). "
            "Select the common features first: moments.select([...])."
        )

    @classmethod
    def of_detail(cls, ours: str, theirs: str) -> MomentsMismatchError:
        return cls(
            f"Moments of detail '{ours}' and '{theirs}' do not add. Bring the finer one down "
            "first with moments.reduce(detail)."
        )

    @classmethod
    def needs_detail(cls, what: str, needed: str, found: str) -> MomentsMismatchError:
        return cls(
            f"{what} needs moments of detail '{needed}' and these are '{found}'. "
            f"Read them with moments(X, y, detail='{needed}')."
        )

    @classmethod
    def of_shape(
        cls, name: str, found: tuple[int, ...], wanted: tuple[int, ...]
    ) -> MomentsMismatchError:
        return cls(
            f"'{name}' has shape {found} where these classes, features and detail make it {wanted}."
            " Read moments with moments(X, y), or start from ClassMoments.empty(...)."
        )

    @classmethod
    def of_removal(cls, label: object, rows: int, removed: int) -> MomentsMismatchError:
        return cls(
            f"Cannot remove {removed} row(s) of class '{label}': only {rows} are in the moments."
        )

    @classmethod
    def of_weight_removal(
        cls, label: object, weight: float, removed: float
    ) -> MomentsMismatchError:
        return cls(
            f"Cannot remove weight {removed:g} from class '{label}', which weighs {weight:g}. "
            "Remove rows with the weights they were added with."
        )

    @classmethod
    def of_rows(cls, label: object, missing: int, removed: int, rows: int) -> MomentsMismatchError:
        return cls(
            f"Cannot remove {missing} of {removed} row(s) of class '{label}': they are not among "
            f"the {rows} held, with the same values and weight. Pass rows as they were fitted."
        )

    @classmethod
    def not_kept(cls, features: int) -> MomentsMismatchError:
        return cls(
            f"No moments were kept of the fit to {features} features, which has fewer rows than "
            "that: rows cannot be added or removed. Fit again to all the rows that count."
        )

    @classmethod
    def not_among(cls, label: object | None) -> MomentsMismatchError:
        where = "the classes" if label is None else f"class '{label}'"
        return cls(
            f"The rows to remove cannot have been among the rows of {where}: without them a "
            "variance would be negative. Check their labels, values and weights."
        )


class PrecisionLostError(DiscriminantError, ArithmeticError):
    """A removal would leave too few correct digits."""

    @classmethod
    def of_column(cls, column: str, label: object, digits: float) -> PrecisionLostError:
        return cls(
            f"After this removal the variance of column '{column}' (class '{label}') would have "
            f"{max(digits, 0):.1f} correct digits left: what stays varies far less than what was "
            "removed, or not at all. Read the remaining rows again instead."
        )


# --- fitting ------------------------------------------------------------------------------------


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
    import math

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
