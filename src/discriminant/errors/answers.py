"""Labels, responses, weights, priors and options that cannot be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from discriminant.errors.base import InputError, listing


class LabelError(InputError):
    """The labels cannot be used."""

    @classmethod
    def of_dates(cls, column: str) -> LabelError:
        return cls(
            f"Column '{column}', which holds the classes, is one of dates. A date is a number of "
            "days, not a class: name another column, or write the classes as texts, such as "
            "'2024' or '2024-03'."
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

    @classmethod
    def none_left(cls, target: str, rows: int) -> LabelError:
        return cls(
            f"Column '{target}' is missing in all {rows} rows, so that missing='drop' leaves none: "
            "name another target."
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
            " Add rows of another class, or name another target."
        )

    @classmethod
    def unknown(cls, labels: Sequence[object], known: Sequence[object]) -> LabelError:
        return cls(f"Unknown class(es) {listing(labels)}; the classes are {listing(known, 20)}.")

    @classmethod
    def unseen(cls, counts: Mapping[object, int], known: Sequence[object]) -> LabelError:
        return cls(
            f"{sum(counts.values())} row(s) are of {len(counts)} class(es) that the model does not "
            f"know: {_counted(counts)}; its classes are {listing(known, 20)}. Drop or relabel "
            "these rows, or pass unseen='count': then they count, and are never right."
        )

    @classmethod
    def strange(cls, counts: Mapping[object, int], known: Sequence[object]) -> LabelError:
        return cls(
            f"Decisions that are no class: {_counted(counts)}; the classes are "
            f"{listing(known, 20)}. Correct them, or name actions that are no class in actions=."
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

    @classmethod
    def uncoded(cls, labels: Sequence[object]) -> LabelError:
        return cls(
            f"The rows have labels, {listing(labels)}, and nothing says which column of "
            "log_posterior is whose: pass classes=, the label of each column, such as "
            "model.classes_."
        )


def _counted(counts: Mapping[object, int], most: int = 20) -> str:
    """Labels with their numbers of rows, the first few of them."""
    shown = ", ".join(f"'{label}' ({count} rows)" for label, count in list(counts.items())[:most])
    return shown if len(counts) <= most else f"{shown} and {len(counts) - most} more"


class TooFewRowsError(InputError):
    """A class, or the table, has too few rows for what is asked."""

    @classmethod
    def of_regression(cls, rows: int, needed: int, name: str) -> TooFewRowsError:
        return cls(
            f"{rows} row(s) (n_samples={rows}): {name} needs {needed} or more, since 1 sample "
            "shows no slope. Add rows."
        )

    @classmethod
    def for_columns(cls, rows: int, columns: int, name: str) -> TooFewRowsError:
        return cls(
            f"{rows} rows for {columns} columns: {name} could fit any responses without error, in "
            f"many ways. Pass ridge > 0, or keep fewer than {rows} columns."
        )

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
    def of_outliers(cls, rows: int, needed: int, width: int, classes: int) -> TooFewRowsError:
        return cls(
            f"{rows} row(s) (n_samples={rows}) for {width} features and {classes} classes: how far "
            f"a row is from its class can be judged from {needed} rows on. Add rows, keep fewer "
            "features, or pass outlier=None."
        )

    @classmethod
    def of_table(cls, rows: int, classes: int, what: str) -> TooFewRowsError:
        return cls(
            f"{rows} row(s) (n_samples={rows}) in {classes} class(es): {what} needs more rows than "
            "classes, since 1 sample a class gives its mean and shows no spread. Add rows or merge "
            "classes."
        )


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
    def not_taken(cls, name: str) -> WeightError:
        return cls(
            f"{name} takes no sample_weight, so rows cannot be weighed: pass sample_weight=None, "
            "or another classifier."
        )

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
    def of_missing(cls, missing: Sequence[object], labels: Sequence[object]) -> PriorError:
        return cls(
            f"prior has no entry for class(es) {listing(missing)}: pass one for each of "
            f"{listing(labels)}."
        )

    @classmethod
    def without_classes(cls, labels: Sequence[object]) -> PriorError:
        return cls(
            f"Priors are given by label, {listing(labels, 20)}, and nothing says which column of "
            "log_posterior is whose: pass classes=, the label of each column, such as "
            "model.classes_; or priors as a list in the order of the columns."
        )

    @classmethod
    def of_sum(cls, total: float) -> PriorError:
        return cls(f"The priors sum to {total:.9g}, not 1: divide them by their sum.")


class OptionError(InputError):
    """An option has a value it cannot have."""

    @classmethod
    def of(cls, name: str, value: object, allowed: str) -> OptionError:
        return cls(f"{name}={_shown(value)} is not possible: it must be {allowed}.")

    @classmethod
    def beyond_reach(cls, asked: int, found: int, names: Sequence[str]) -> OptionError:
        return cls(
            f"n_features={asked} is not possible: {found} feature(s) are in and no other can "
            f"enter, since each of {listing(names)} is constant or follows from these within "
            f"classes. Ask for at most {found}, or pass a smaller tolerance."
        )


def _shown(value: object) -> str:
    """A value as Python writes it; of rows given by mistake only the shape: they are private."""
    shape = getattr(value, "shape", None)
    if shape:
        return f"<{type(value).__name__} of shape {tuple(shape)}>"
    found = repr(value)
    return found if len(found) <= 200 else f"{found[:100]}..."
