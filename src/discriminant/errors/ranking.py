"""Scores that cannot be ranked, and comparisons that say nothing."""

from __future__ import annotations

from collections.abc import Sequence

from discriminant.errors.base import DiscriminantWarning, InputError, listing


class ScoreError(InputError):
    """Scores cannot be ranked."""

    @classmethod
    def missing(cls, row: int, count: int, column: object = None) -> ScoreError:
        more = f" (and {count - 1} more)" if count > 1 else ""
        where = "" if column is None else f" for class '{column}'"
        return cls(
            f"The score of row {row}{more}, counted from 0,{where} is NaN, so it has no rank. Drop "
            "such rows, or find out why the model has no score for them."
        )

    @classmethod
    def absent(cls) -> ScoreError:
        return cls(
            "There are labels but no scores to rank them by: pass scores=, one number for each "
            "row, such as model.predict_proba(X)[:, 1]; or a Ranking in place of the labels."
        )

    @classmethod
    def without_rows(cls, positive: object) -> ScoreError:
        return cls(
            f"A Ranking of '{positive}' does not know which scores belong to one row, so that two "
            "models cannot be compared by it: pass labels and both scores of the same rows."
        )

    @classmethod
    def not_numbers(cls, kind: str) -> ScoreError:
        return cls(f"scores hold {kind}, not numbers: pass one number for each row.")

    @classmethod
    def of_shape(cls, shape: tuple[int, ...], rows: int, labels: Sequence[object]) -> ScoreError:
        K = len(labels)
        return cls(
            f"scores have shape {shape} for {rows} rows of the classes {listing(labels, 20)}: pass "
            f"({rows},), one score a row, high for the positive class, or ({rows}, {K}), a column "
            "for each class in the order of `classes` (sorted labels unless given)."
        )

    @classmethod
    def which_column(cls, labels: Sequence[object]) -> ScoreError:
        return cls(
            f"Each of the classes {listing(labels, 20)} has a column of scores, and a curve is of "
            "one of them against the others: pass positive=, its label. auc() and "
            "average_precision() average over all."
        )

    @classmethod
    def which_positive(cls, labels: Sequence[object]) -> ScoreError:
        if not labels:
            return cls("There are no rows: pass labels and scores of rows of both kinds.")
        return cls(
            f"The labels are {listing(labels, 20)}, and one score a row ranks one class above the "
            "others: pass positive=, the label that high scores speak for, or a column of scores "
            "for each class."
        )

    @classmethod
    def without_positive(cls, positive: object, found: Sequence[object]) -> ScoreError:
        return cls(
            f"No row has the positive label '{positive}' and a positive weight; the labels are "
            f"{listing(found, 20)}. A curve needs rows of both kinds: pass another positive=, or "
            "more rows."
        )

    @classmethod
    def only_positive(cls, positive: object) -> ScoreError:
        return cls(
            f"Every row that counts is of the positive class '{positive}': there is nothing to "
            "rank it above. A curve needs rows of both kinds."
        )

    @classmethod
    def class_absent(cls, label: object) -> ScoreError:
        return cls(
            f"Class '{label}' has a column of scores but no row that counts, so nothing says how "
            "it is ranked. Leave its column out (and out of `classes`), or add rows."
        )

    @classmethod
    def too_few(cls, label: object, weight: float) -> ScoreError:
        return cls(
            f"The rows of class '{label}' count {weight:g} in all, and the variance of an AUC "
            "needs more than 1 of each class. Add rows, or pass interval=None for the value alone."
        )

    @classmethod
    def of_positives(cls, ours: object, theirs: object) -> ScoreError:
        return cls(
            f"Rankings of the positive classes '{ours}' and '{theirs}' do not add. Make them with "
            "the same positive=."
        )

    @classmethod
    def of_bins(cls, ours: int, theirs: int) -> ScoreError:
        return cls(
            f"Rankings of {ours} and {theirs} bins do not add: which scores they tell apart would "
            "depend on the order. Make them with the same bins=."
        )


class ComparisonError(InputError):
    """Models cannot be compared as they are."""

    @classmethod
    def too_few(cls, models: int) -> ComparisonError:
        return cls(f"{models} model(s): pass two or more, {{name: held-out result}}.")

    @classmethod
    def nothing_decided(cls, name: object, fold: int) -> ComparisonError:
        return cls(
            f"'{name}' rejects every row of fold {fold}, so that it has no error there. Compare "
            "models that reject less, or use fewer folds."
        )

    @classmethod
    def not_named(cls, kind: str) -> ComparisonError:
        return cls(
            f"Models are compared by name, and this is a {kind}: pass {{name: held-out result}}, "
            "such as {'LDA': cross_validate(LDA(), X, y, fold), ...} with one array fold for all."
        )

    @classmethod
    def not_held_out(cls, name: object, kind: str) -> ComparisonError:
        return cls(
            f"'{name}' is a {kind}, and models are compared by what they say of held-out rows: "
            "pass what cross_validate(model, X, y, fold) returns, or a list of such results."
        )

    @classmethod
    def none_held_out(cls, name: object) -> ComparisonError:
        return cls(
            f"'{name}' has no held-out results: pass what cross_validate returns, one result or "
            "one for each repetition."
        )

    @classmethod
    def of_rows(cls, first: object, second: object, what: str) -> ComparisonError:
        return cls(
            f"'{first}' and '{second}' were not held out alike: their {what} differ. Pass the same "
            "rows and folds to both: cross_validate(model, X, y, folds=fold) with one array fold."
        )

    @classmethod
    def of_repeats(cls, first: object, ours: int, second: object, theirs: int) -> ComparisonError:
        return cls(
            f"'{first}' has {ours} repetition(s) and '{second}' {theirs}: pass as many of each, in "
            "the same order, with the same folds."
        )

    @classmethod
    def repeated(cls, name: object, repeats: int) -> ComparisonError:
        return cls(
            f"'{name}' has {repeats} repetitions, and McNemar's test counts each row once. Pass "
            "one of them, or test='resampled_t'."
        )

    @classmethod
    def broken_weight(cls) -> ComparisonError:
        return cls(
            "McNemar's test counts rows, and the weights are not whole numbers. Pass "
            "test='resampled_t', or hold out without sample_weight."
        )

    @classmethod
    def infinite_loss(cls, name: object, fold: int) -> ComparisonError:
        return cls(
            f"'{name}' gives a true class of fold {fold} probability 0, so that its log loss is "
            "infinite and nothing can be compared. Pass loss='error'."
        )


class NoSpreadWarning(DiscriminantWarning):
    """An interval or test has no width, and says nothing of how sure the number is."""

    @classmethod
    def of_constant(cls, rows: int) -> NoSpreadWarning:
        return cls(
            f"The scores of all {rows} rows are equal: they rank nothing, the AUC is 0.5 whatever "
            "the rows, and its interval has no width."
        )

    @classmethod
    def of_auc(cls, value: float) -> NoSpreadWarning:
        return cls(
            f"The AUC is {value:g}, so that DeLong's variance is 0 and the interval has no width, "
            "however few the rows are: do not take it for certainty."
        )

    @classmethod
    def of_comparison(cls, difference: float) -> NoSpreadWarning:
        return cls(
            f"The difference ({difference:g}) is the same whichever rows are looked at, so that "
            "its variance is 0 and no test can be made of it: the p-value says nothing."
        )


class RankedLabelsError(InputError):
    """Lists of labels, or the truth beside them, cannot be assessed."""

    @classmethod
    def of_lists(cls, shape: tuple[int, ...], kind: object) -> RankedLabelsError:
        return cls(
            f"The lists have shape {shape} and type {kind}: pass an array (rows, k) of label "
            "codes, whole numbers, the best first, -1 where a list has fewer."
        )

    @classmethod
    def of_truth(
        cls, shape: tuple[int, ...], kind: object, labels: int | None
    ) -> RankedLabelsError:
        if labels is None and len(shape) == 1:
            return cls(
                f"The truth is one label for each of {shape[0]} rows, and how many labels there "
                "are is not told: pass labels=, or classes=model.classes_ if these are names."
            )
        return cls(
            f"The truth has shape {shape} and type {kind}: pass an indicator (rows, labels), "
            "sparse or not, or label codes (rows,) with labels=, or labels by name, one or a set "
            "a row, with classes=model.classes_."
        )

    @classmethod
    def of_names(cls) -> RankedLabelsError:
        return cls(
            "The truth has labels by name, and the lists have codes: pass classes=model.classes_, "
            "which says what the code of each name is."
        )

    @classmethod
    def mixed(cls, row: int, own: object) -> RankedLabelsError:
        return cls(
            f"The truth of row {row} is {own!r}, and that of row 0 is of another kind: pass a set "
            "of labels for each row, empty where there are none, or one label for each."
        )

    @classmethod
    def as_rows_of_ones(cls, labels: int) -> RankedLabelsError:
        return cls(
            f"The truth is lists of {labels} zeros and ones: an indicator, or labels 0 and 1 by "
            "name? Pass np.array(truth) for an indicator, or sets of labels."
        )

    @classmethod
    def unknown(cls, labels: Sequence[object], of_labels: int) -> RankedLabelsError:
        return cls(
            f"{len(labels)} label(s) of the truth are not among the {of_labels} classes: "
            f"{listing(labels)}. No list can have them: leave them out, or, to count them as "
            "missed, name them after the others: classes=[*model.classes_, ...]."
        )

    @classmethod
    def of_lengths(cls, lists: int, truth: int) -> RankedLabelsError:
        return cls(f"There are lists for {lists} rows and the truth of {truth}: pass as many.")

    @classmethod
    def of_code(cls, least: int, most: int, labels: int) -> RankedLabelsError:
        return cls(
            f"Label codes go from {least} to {most}, and there are {labels} labels, 0 to "
            f"{labels - 1}. Are these labels by name instead of codes, or of another set?"
        )

    @classmethod
    def of_twice(cls, row: int, code: int) -> RankedLabelsError:
        return cls(
            f"The list of row {row} has label {code} twice, and a hit would count double. List "
            "every label once."
        )

    @classmethod
    def of_values(cls, name: str, shape: tuple[int, ...], labels: int) -> RankedLabelsError:
        return cls(f"{name} has shape {shape} where there are {labels} labels: pass one for each.")

    @classmethod
    def of_frequency(cls, code: int, found: float, rows: int) -> RankedLabelsError:
        return cls(
            f"Label {code} is said to have {found:g} of {rows} training rows: pass how many of "
            "them have each label, from 0 up to all."
        )

    @classmethod
    def not_positive(cls, code: int) -> RankedLabelsError:
        return cls(
            f"The inverse propensity of label {code} is not a positive finite number. "
            "Propensities lie above 0 and go up to 1."
        )

    @classmethod
    def of_sizes(cls, ours: tuple[int, int], theirs: tuple[int, int]) -> RankedLabelsError:
        return cls(
            f"Lists of {ours[0]} out of {ours[1]} labels and of {theirs[0]} out of {theirs[1]} do "
            "not add up: assess both with the same k and the same labels."
        )
