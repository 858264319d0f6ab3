"""Errors and warnings about outputs: decisions, scores, comparisons, exports, plots, commands."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from discriminant.errors.base import (
    DiscriminantError,
    DiscriminantWarning,
    InputError,
    quote,
    template,
)


class CostError(InputError):
    """A cost matrix, or a cost of rejecting, is not valid."""

    of_shape = template("shape, labels")(
        "cost has shape {shape} for {labels:len} classes: pass ({labels:len}, {labels:len}), a row "
        "for each decision and a column for each true class, both in the order {labels:names 20}; "
        "or pass {{decision: {{class: cost}}}}, which needs no order."
    )

    of_columns = template("columns, labels")(
        "The columns of cost are {columns:names 20}, but the classes are {labels:names 20}. Name "
        "each class once."
    )

    of_class = template("action, label, labels")(
        "cost of '{action}' mentions '{label}', which is not one of the classes: {labels:names 20}."
    )

    of_action = template("action, missing, labels")(
        "cost mentions '{action}', which is not one of the classes: {labels:names 20}. An action "
        "that is not a class needs a cost for every class, and no cost is given for "
        "{missing:names 20}."
    )

    of_unnamed = template("rows, columns")(
        "The {rows} rows of cost have no names. The rows can only be read as the classes in the "
        "order of the columns ({columns:names 20}) if there are {columns:len} rows with 0 on the "
        "diagonal. Name the decisions: by the index of a pandas frame, or by a text column in "
        "any frame."
    )

    duplicate_action = template("action")(
        "cost has '{action}' more than once. Name each action once."
    )

    of_cell = template("action, label, value")(
        "The cost of deciding '{action}' where '{label}' is true is {value:value}: it must be a "
        "finite number of 0 or more. To rule a decision out, give it a very large cost."
    )

    of_row = template("action, given, labels")(
        "cost of '{action}' is {given!r}: pass {{class: cost}}, its cost for each true class of "
        "{labels:names 20}."
    )

    missing_actions = template("actions, known")(
        "Some decisions are {actions:names}, whose cost is not given; costs are given for "
        "{known:names 20}. Add these actions to cost=; the costs of REJECT and OUTLIER are set "
        "by reject= and outlier=."
    )

    of_diagonal = template("label, value")(
        "The cost of deciding '{label}' where '{label}' is true is {value:g}, but correct "
        "decisions must cost 0. Subtract this cost from all costs of that true class, which "
        "changes no decision."
    )

    not_costs = template("kind")(
        "cost is a {kind}: pass {{decision: {{class: cost}}}}, a square array in the order of "
        "the classes, or a data frame with decisions as rows and classes as columns."
    )

    of_reject = template("value")(
        "The cost of rejecting is {value}: it must be a number from 0 (reject every row) to "
        "infinity (reject none)."
    )


class ThresholdError(InputError):
    """A threshold is not valid."""

    of_value = template("name, value")(
        "{name} is {value}: it is compared with a probability, so it must be in [0, 1]."
    )

    of_class = template("label, value")(
        "The threshold of class '{label}' is {value}: thresholds for each class must be in (0, 1]."
    )

    of_labels = template("given, labels")(
        "threshold={given!r} does not fit the {labels:len} classes {labels:names 20}: pass one "
        "number for each of them, or with two classes one number, for the second."
    )

    unsorted = template("place, before, value")(
        "thresholds must increase, but entry {place} (counted from 0) is {value:g} after "
        "{before:g}. Sort the thresholds and remove duplicates."
    )

    unknown_groups = template("groups, known")(
        "No threshold was chosen for the group(s) {groups:names}; the groups are {known:names 20}. "
        "Choose thresholds on rows of every group."
    )

    group_without_positives = template("group")(
        "Group '{group}' has no row of the second class, so its recall is not defined. Add rows, "
        "or join it with another group."
    )

    and_cost = template()(
        "threshold and cost are both given, but a threshold t is equivalent to costs in the ratio "
        "t : 1 - t. Pass one of them."
    )


class PosteriorError(InputError):
    """Posteriors are missing or not valid."""

    absent = template("name")(
        "{name} has neither predict_proba nor predict_log_proba, and decisions by cost need "
        "probabilities. Calibrate its scores: pass Calibrated({name}()) in its place."
    )

    @classmethod
    def not_probabilities(cls, name: str, what: str) -> PosteriorError:
        return cls(
            f"The outputs of {name} are fitted values, not probabilities, and {what} needs "
            f"probabilities. Calibrate it: pass Calibrated({_call(name)}) in its place, or use "
            "Logistic or LDA."
        )

    @classmethod
    def not_combined(cls, member: str, name: str, *, clipped: bool = False) -> PosteriorError:
        reason = (
            "whose outputs are fitted values, not probabilities"
            if clipped
            else "which has neither predict_proba nor predict_log_proba"
        )
        return cls(
            f"Classifier '{member}' is {name}, {reason}, but only posteriors can be combined. "
            f"Calibrate it: pass Calibrated({_call(name)}) in its place, or use Logistic or LDA."
        )

    of_sum = template("row, total, name")(
        "The posteriors of {name} for row {row} (counted from 0) sum to {total:.6g}, not 1, so "
        "they are not probabilities of exclusive classes. Calibrate it: pass "
        "Calibrated({name}()) in its place."
    )

    not_a_number = template("row, name")(
        "The posterior of {name} for row {row} (counted from 0) is not a number. Check the row "
        "and the model."
    )

    of_shape = template("shape, classes")(
        "Posteriors have shape {shape} for {classes:?{classes} classes|(rows, classes)}: pass at "
        "least one row, and a column for each class."
    )

    of_columns = template("columns, labels")(
        "Posteriors have {columns:n column}, but there are {labels:len} classes, {labels:names "
        "20}. Pass classes=, the class of each column in order."
    )

    not_normalised = template("row, total, name")(
        "{name} of row {row} (counted from 0) gives probabilities that sum to {total:.6g}, not "
        "1. Pass probabilities as posterior= and their logarithms as log_posterior=; calibrate "
        "scores that are neither."
    )

    not_logs = template("row, total")(
        "log_posterior of row {row} (counted from 0) gives probabilities that sum to "
        "{total:.6g}, not 1. Pass the logarithms of posteriors, as predict_log_proba returns "
        "them, without NaN."
    )

    not_a_table = template()(
        "log_posterior is not a table of numbers: pass (n, K) logarithms of posteriors."
    )

    not_given = template("measure")(
        "{measure} is computed from posteriors, and none were given. Pass log_posterior= or "
        "posterior= with the decisions."
    )

    all_zero = template("row, names")(
        "In row {row} (counted from 0) every class has posterior 0 by one of {names:names}, so "
        "the fused posterior is zero everywhere. Smooth or calibrate the models that give 0."
    )

    unknown_prior = template("name")(
        "The class priors that the posteriors of {name} assume are not known, so they cannot be "
        "replaced. Pass fitted_prior=, the class proportions of the rows that {name} was fitted "
        "to."
    )

    without_moments = template("name")(
        "{name} was fitted without outlier=, so it has no class means and covariance. Fit once "
        "with outlier= at any level; the level can be changed afterwards."
    )

    without_sets = template("name")(
        "{name} has neither predict_proba nor predict_log_proba, and prediction sets are computed "
        "from probabilities, calibrated or not. Wrap it: PredictionSets(Calibrated({name}()))."
    )

    without_scores = template("name")(
        "{name} has none of predict_proba, predict_log_proba and decision_function, so it has no "
        "scores to calibrate. Choose a classifier that has one of them, such as LDA or SVM."
    )

    not_calibrated = template("name")(
        "Beta calibration maps probabilities, and {name} has none. Pass method='platt' or "
        "'isotonic', which map scores."
    )

    fitted_without_moments = template("name")(
        "{name} stores no class means and covariance and was already fitted, so outliers cannot "
        "be detected. Pass the rows to Decision(FrozenEstimator(model), outlier=...).fit(X, y), "
        "with scikit-learn's FrozenEstimator, which does not refit the classifier."
    )


def _call(name: str) -> str:
    """Return the code that creates a classifier; the name may already include options."""
    return name if name.endswith(")") else f"{name}()"


class CoverageError(InputError):
    """There are too few calibration rows for prediction sets."""

    of_rows = template("rows, needed, coverage, *, split=False")(
        "{rows:g} calibration rows are too few for coverage={coverage:g}: with fewer than "
        "{needed}, that is coverage / (1 - coverage), every set would hold all classes. Add rows"
        "{split:?, lower coverage, raise calibration_size, or pass method='cross', which "
        "calibrates with all rows| or lower coverage}."
    )

    of_training = template("left, rows, size")(
        "calibration_size={size:g} leaves {left} of {rows:n row} to fit the classifier to. Lower "
        "it, or pass method='cross', which fits and calibrates with all rows."
    )

    of_class = template("label, rows, needed, coverage")(
        "Class '{label}' has {rows:g} calibration rows, too few for coverage={coverage:g} by "
        "class: with fewer than {needed}, that is coverage / (1 - coverage), every set would hold "
        "this class. Add rows of the class, lower coverage, or pass by_class=False."
    )

    one_class = template("label, rows")(
        "All {rows} calibration rows are of class '{label}', so nothing is known about the "
        "coverage of other classes. Calibrate with rows of two or more classes."
    )


class FusionError(InputError):
    """Sources cannot be fused."""

    of_members = template("estimators")(
        "estimators={estimators!r} is not valid: pass a list of (name, classifier, columns), "
        "each name once."
    )

    of_columns = template("name, columns, width")(
        "X has {width} feature(s), but columns={columns!r} of '{name}' are not among them, or are "
        "empty. Pass names or positions of one or more columns."
    )

    of_classes = template("name, classes, first")(
        "'{name}' knows the classes {classes:names 20} and the first source {first:names 20}. "
        "Fit all to the same classes."
    )


class NeverRejectsWarning(DiscriminantWarning):
    """The reject option is never used."""

    of_cost = template("cost, most")(
        "The cost of rejecting, {cost:g}, is never the lowest: for any posterior some decision "
        "has an expected cost of {most:g} or less, so no row is ever rejected. Pass a cost below "
        "that."
    )


class NoClassDecidedWarning(DiscriminantWarning):
    """None of the actions for which a cost is given is a class."""

    of_actions = template("actions, labels")(
        "cost has the action(s) {actions:names} and none of the classes {labels:names}, so "
        "decide() never returns a class. To allow all classes, list at least one of them, as in "
        "{{{labels[0]!r}: {{}}, ...}}. If only other actions are intended, pass a data frame of "
        "actions (rows) by classes (columns), which does not warn."
    )


class SharedColumnsWarning(DiscriminantWarning):
    """Two sources to be fused use the same column."""

    of_columns = template("columns")(
        "Column(s) {columns:names} belong to more than one source, so their evidence is counted "
        "more than once: sources are fused as independent within each class. Give each column to "
        "one source."
    )


class ExportError(InputError):
    """A model has no equivalent in the target language; nothing was written."""

    of_model = template("name")(
        "{name} cannot be exported: it is neither an exportable model of this package (label "
        "trees are not) nor a pipeline of them. Nothing was written. Fit another model (LDA, "
        "Logistic, ...), or use the saved file."
    )

    of_part = template("part, why, instead")(
        "{part} cannot be exported: {why}. Nothing was written. {instead}"
    )

    not_fitted = template("name")(
        "This {name} is not fitted yet, so there is nothing to export. Fit it first."
    )

    of_output = template("name, known")(
        "There is no output '{name}'. This model has {known:names 9}."
    )

    of_probabilities = template("part, why, left")(
        "The probabilities of {part} cannot be exported: {why}. Nothing was written. To export "
        "the other outputs, pass outputs=[{left:names 20}]."
    )

    of_label = template("label")(
        "The class {label!r} is a {label.__class__.__name__}, and only text, integers, booleans "
        "and floats can be exported. Nothing was written. Fit with such labels."
    )

    reserved_class = template("name")(
        "A class is called '{name}', which is also the action for rows that are not decided, so "
        "the two could not be distinguished. Nothing was written. Rename the class and fit "
        "again, or leave the action out of outputs."
    )

    of_text = template("what, name")(
        "The {what} {name!r} contains a NUL or half of a surrogate pair, which no database "
        "accepts. Nothing was written. Rename this {what} and fit again."
    )

    of_case = template("first, second, target")(
        "The columns '{first}' and '{second}' differ only in case, which {target} does not "
        "distinguish. Nothing was written. Rename one of the columns and fit again."
    )

    of_target = template("given, allowed")(
        "There is no export to {given!r}. Choose among {allowed:names}."
    )

    not_finite = template("part")(
        "{part} holds a number that is not finite, which means different things in different "
        "targets. Nothing was written. Fit again and check the warnings."
    )


class LibraryMissingError(DiscriminantError, ImportError):
    """An optional library is not installed."""

    # `extra`: the extra of this package that installs the library
    of = template("library, *, what, extra=''")(
        "{what} needs {library}, which is not installed. Install it with: {extra:?pip install "
        "'discriminant[{extra}]' (in a clone: pip install '.[{extra}]')|pip install {library}}"
    )


class PlotError(InputError):
    """A plot cannot be drawn from this input."""

    of_model = template("figure, model, lacks, instead")(
        "{figure} cannot show {model}: it has no {lacks}. {instead}"
    )

    of_kind = template("figure, given, expected")(
        "{figure} cannot show a {given}: pass {expected}."
    )

    of_width = template("figure, features, needed, instead")(
        "{figure} needs {needed}, but the rows have {features:n feature}. {instead}"
    )

    of_feature = template("given, names")(
        "There is no feature {given!r}. There are {names:len}: {names:names 9}; pass a name, or a "
        "position counted from 0."
    )

    of_column = template("name")(
        "Column '{name}' does not hold finite numbers, so it cannot be an axis. Name another in "
        "features; columns that are not axes may have any type."
    )

    of_classes = template("figure, classes, needed")(
        "{figure} needs {needed}, but there are {classes}."
    )


class ScoreError(InputError):
    """Scores cannot be ranked."""

    missing = template("row, count, column=None")(
        "The score of row {row}{count:more}, counted from 0,{column:? for class '{column}'} is "
        "NaN, so it has no rank. Drop such rows, or check why the model gives no score for them."
    )

    absent = template()(
        "There are labels but no scores to rank them by. Pass scores=, one number for each row, "
        "such as model.predict_proba(X)[:, 1]; or a Ranking in place of the labels."
    )

    without_rows = template("positive")(
        "A Ranking of '{positive}' does not store which scores belong to one row, so two models "
        "cannot be compared by it. Pass labels and both scores of the same rows."
    )

    not_numbers = template("kind")("scores hold {kind}, not numbers: pass one number for each row.")

    of_shape = template("shape, rows, labels")(
        "scores have shape {shape} for {rows} rows of the classes {labels:names 20}: pass "
        "({rows},), one score per row, high for the positive class, or ({rows}, {labels:len}), a "
        "column for each class in the order of `classes` (sorted labels by default)."
    )

    which_column = template("labels")(
        "Each of the classes {labels:names 20} has a column of scores, but a curve compares one "
        "class with all others. Pass positive=, the label of that class; auc() and "
        "average_precision() average over all classes."
    )

    which_positive = template("labels")(
        "{labels:?The labels are {labels:names 20}, but one score per row ranks one class above "
        "the others. Pass positive=, the label with high scores, or a column of scores for each "
        "class.|There are no rows. Pass labels and scores of positive and negative rows.}"
    )

    without_positive = template("positive, labels")(
        "No row has the positive label '{positive}' and a positive weight; the labels are "
        "{labels:names 20}. A curve needs positive and negative rows: pass another positive=, or "
        "more rows."
    )

    only_positive = template("positive")(
        "Every row with positive weight is of the positive class '{positive}', so there is nothing "
        "to rank these rows above. Add rows of other classes."
    )

    class_absent = template("label")(
        "Class '{label}' has a column of scores but no row with positive weight, so its ranking "
        "is undefined. Leave out the column of this class (and its label in `classes`), or add "
        "rows."
    )

    too_few = template("label, weight")(
        "The rows of class '{label}' have a total weight of {weight:g}, and the variance of an "
        "AUC needs more than 1 for each class. Add rows, or pass interval=None for the value "
        "only."
    )

    of_positives = template("ours, theirs")(
        "Rankings of the positive classes '{ours}' and '{theirs}' cannot be added. Create both "
        "rankings with the same positive=."
    )

    of_bins = template("ours, theirs")(
        "Rankings of {ours} and {theirs} bins cannot be added: the result would depend on the "
        "order. Create both rankings with the same bins=."
    )


class LinearModelError(InputError):
    """A function of linear models does not apply to a model, or has no solution."""

    not_linear = template("name, function")(
        "{name} has no weights of its features (coef_), so {function} does not apply to it. Pass a "
        "fitted linear model such as LDA, Logistic or LinearRegression. For a pipeline, pass its "
        "last step and transformed rows."
    )

    not_by_weights = template("name, function")(
        "The classes that {name} predicts do not follow from one linear score for each class, so "
        "{function} does not apply to it. Pass a model such as LDA, Logistic or SVM."
    )

    no_parameters = template("name")(
        "The parameters of {name} are not known. Pass a fitted generative or linear model, or a "
        "pipeline or wrapper of such models."
    )

    outside = template("feature")(
        "The row lies outside the bounds of '{feature}'. Widen the bounds of this feature, or list "
        "it in `fixed`."
    )

    unreachable = template("label")(
        "No change within the bounds leads from class {label!r} to another class. Widen the "
        "bounds, or fix fewer features."
    )


class ComparisonError(InputError):
    """Models cannot be compared."""

    too_few = template("models")(
        "{models:n model} is too few to compare: pass two or more, {{name: held-out result}}."
    )

    nothing_decided = template("name, fold")(
        "'{name}' rejects every row of fold {fold}, so it has no error there. Compare models "
        "that reject less, or use fewer folds."
    )

    not_named = template("kind")(
        "compare_models takes held-out predictions by name, but this is a {kind}: pass {{name: "
        "held-out result}}, such as {{'LDA': cross_validate(LDA(), X, y, fold), ...}} with one "
        "array fold for all. To compare models on a table, use study(table, target=...).compare()."
    )

    not_held_out = template("name, kind")(
        "'{name}' is a {kind}, but models are compared by held-out predictions. Pass what "
        "cross_validate(model, X, y, fold) returns, or a list of such results."
    )

    none_held_out = template("name")(
        "'{name}' has no held-out results. Pass what cross_validate returns, one result or one "
        "for each repetition."
    )

    of_rows = template("first, second, what")(
        "The held-out results of '{first}' and '{second}' are not comparable: their {what} differ. "
        "Pass the same rows and folds to both: cross_validate(model, X, y, folds=fold) with one "
        "array fold."
    )

    of_repeats = template("first, ours, second, theirs")(
        "'{first}' has {ours:n repetition} and '{second}' has {theirs}. Pass the same number of "
        "each, in the same order, with the same folds."
    )

    repeated = template("name, repeats")(
        "'{name}' has {repeats} repetitions, but McNemar's test counts each row once. Pass one "
        "repetition, or test='resampled_t'."
    )

    fractional_weight = template()(
        "McNemar's test counts rows, but the weights are not whole numbers. Pass "
        "test='resampled_t', or cross-validate without sample_weight."
    )

    infinite_loss = template("name, fold")(
        "'{name}' gives a true class of fold {fold} probability 0, so its log loss is infinite "
        "and cannot be compared. Pass loss='error'."
    )


class NoSpreadWarning(DiscriminantWarning):
    """An estimated variance is zero, so an interval or a test based on it is meaningless."""

    of_constant = template("rows")(
        "The scores of all {rows} rows are equal, so they rank nothing: the AUC is 0.5 for any "
        "rows and its interval has no width."
    )

    of_auc = template("value")(
        "The AUC is {value:g}, so DeLong's variance is 0 and the interval has no width, however "
        "few the rows. A width of zero does not mean certainty."
    )

    of_comparison = template("difference")(
        "The difference ({difference:g}) is the same for every row, so its variance is 0 and the "
        "p-value is meaningless."
    )


class RankedLabelsError(InputError):
    """Ranked labels, or the true labels they are compared with, are not valid."""

    of_lists = template("shape, kind")(
        "The lists have shape {shape} and type {kind}: pass an integer array (rows, k) of label "
        "codes, the best first, -1 where a list is shorter."
    )

    @classmethod
    def of_truth(
        cls, shape: tuple[int, ...], kind: object, labels: int | None
    ) -> RankedLabelsError:
        if labels is None and len(shape) == 1:
            return cls(
                f"The truth is one label for each of {shape[0]} rows, but the number of labels is "
                "not known. Pass labels=, or classes=model.classes_ if the labels are names."
            )
        return cls(
            f"The truth has shape {shape} and type {kind}: pass an indicator (rows, labels), "
            "sparse or dense, or label codes (rows,) with labels=, or labels by name, one or a set "
            "per row, with classes=model.classes_."
        )

    of_names = template()(
        "The truth has labels by name, but the lists have codes. Pass classes=model.classes_, "
        "the name of each code."
    )

    mixed = template("row, labels")(
        "The truth of row {row} is {labels!r}, but the truth of row 0 is of another kind. Pass a "
        "set of labels for each row (empty if a row has no label), or one label for each row."
    )

    ambiguous_indicator = template("labels")(
        "The truth is lists of {labels} zeros and ones, which could be an indicator or labels "
        "named 0 and 1. Pass np.array(truth) for an indicator, or sets of labels."
    )

    unknown = template("labels, of_labels")(
        "{labels:len} label(s) of the truth are not among the {of_labels} classes: "
        "{labels:names}. No list can contain these labels: leave them out, or, to count them as "
        "missed, add them at the end of classes: classes=[*model.classes_, ...]."
    )

    of_lengths = template("lists, truth")(
        "There are lists for {lists} rows but the truth of {truth}. Pass the same number of "
        "lists and of true labels."
    )

    of_code = template("least, most, labels")(
        "Label codes range from {least} to {most}, but there are {labels} labels, 0 to {labels - "
        "1}. For labels by name pass classes=; check that both use the same labels."
    )

    duplicate_label = template("row, code")(
        "The list of row {row} has label {code} twice, so a hit would count double. List every "
        "label once."
    )

    of_values = template("name, shape, labels")(
        "{name} has shape {shape} for {labels} labels: pass one value for each."
    )

    of_frequency = template("code, frequency, rows")(
        "The frequency of label {code} is {frequency:g}, but there are {rows} training rows. "
        "Pass the number of training rows with each label, from 0 to all."
    )

    not_positive = template("code")(
        "The inverse propensity of label {code} is not a positive finite number. Propensities "
        "are above 0 and at most 1."
    )

    of_sizes = template("ours, theirs")(
        "Lists of {ours[0]} out of {ours[1]} labels and of {theirs[0]} out of {theirs[1]} cannot "
        "be added: assess both with the same k and the same labels."
    )


class StudyError(InputError):
    """A study does not have the requested model, or cannot fit it."""

    @classmethod
    def unknown_model(cls, name: object, known: Sequence[str]) -> StudyError:
        if name == "label-tree":
            return cls(
                "A label tree is for very many classes and is not compared with other models. "
                "Fit a label tree to a table with 'discriminant fit', --target and --model "
                "label-tree, and evaluate it on other rows with 'discriminant assess'. Models "
                f"that can be compared are {quote(known, most=20)}."
            )
        near = get_close_matches(str(name).casefold(), known, n=1)
        hint = f": did you mean '{near[0]}'?" if near else "."
        return cls(f"There is no model '{name}'{hint} Choose among {quote(known, most=20)}.")

    incomplete_row = template("row")(
        "Row {row} has missing cells, which this model integrates out, so the contributions of its "
        "columns are not defined. Fill in the cells, or explain another row."
    )

    time_needs_memory = template("column")(
        "Rows cannot be held out in order of the time '{column}', because they are read in "
        "partitions, which have no order. Read them into memory (engine='memory'), or split them "
        "by time into folds and name these (folds=)."
    )

    no_models = template()(
        "No model is named to compare. Name one or more, or 'all'; without this option, the "
        "default models are compared."
    )

    left_out = template("name, reason")(
        "Model '{name}' could not be compared: {reason} Choose another model."
    )

    not_compared = template("name, known")(
        "Model '{name}' was not compared. The compared models are {known:names 20}: choose one "
        "of them, or compare again with it."
    )

    @classmethod
    def none_left(cls, reasons: Sequence[tuple[str, str]]) -> StudyError:
        shown = " ".join(f"{name}: {why}" for name, why in reasons[:3])
        return cls(f"No model could be fitted. {shown}")

    not_gaussian = template()(
        "missing='marginal' is only for LDA, QDA, RDA and the nearest mean, which can predict "
        "without a feature. Use 'mean' or 'indicator' for all other models."
    )

    no_grid = template("rows, features")(
        "its hyperparameters are searched only if there are at least twice as many rows as "
        "features, and there are {rows} rows of {features} features. Use LDA with shrinkage."
    )

    no_pool = template()(
        "There is no pool of models: a pool needs two or more models with probabilities and a "
        "finite log loss, all in memory. Compare more models, or use select='auto'."
    )

    one_class_in_training = template("labels")(
        "All rows of class(es) {labels:names 5} are in one fold, and without that fold only one "
        "class is left. Use other folds."
    )

    too_many_numbers = template("columns, most")(
        "with its basis there would be {columns:,} columns or more, and the limit for a table of "
        "this size is {most:,}."
    )

    no_probabilities = template("name")(
        "Model '{name}' gives no probabilities, which this needs. Choose another, for example "
        "'lda'."
    )

    none_with_probabilities = template("names, use")(
        "No model among {names:names 20} gives probabilities, which {use}. Add a model that does, "
        "such as 'lda', or select by error (--by error) and leave costs and --reject out."
    )

    no_decision_probabilities = template("name")(
        "`decide` set costs or a reject option, but model '{name}' gives no probabilities for "
        "them. Choose another model, for example 'lda', or call `decide()` without arguments to "
        "remove costs and reject option."
    )


class SampledRowsWarning(DiscriminantWarning):
    """A model was fitted to a sample of the rows."""

    of = template("name, sampled, rows")(
        "{name} needs rows in memory and was fitted to a sample of {sampled:,} of the {rows:,} "
        "rows. Models fitted from moments, and Logistic, use all rows."
    )
    of_expanded = template("name, sampled, rows")(
        "{name} was fitted to a sample of {sampled:,} of the {rows:,} rows, as in the comparison: "
        "its expanded features of all rows would take too much time and memory."
    )


_AT_LIMIT = "{limit:? at the limit of {limit:MB} of address space}"
_LESS_MEMORY = (
    "Use fewer rows or columns, read the file in chunks with --engine files, or raise the limit."
)


class OutOfMemoryError(DiscriminantError):
    """A command needs more memory than is allowed."""

    limit_too_low = template("limit, required")(
        "Out of memory: this process is limited to {limit:MB} of address space, but needs at least "
        "{required:MB}. Raise the limit: ulimit -v {required // 1024}, or more for a large table."
    )

    while_running = template("limit")(f"Out of memory{_AT_LIMIT}. {_LESS_MEMORY}")

    ended_by = template("signal, limit")(
        f"Out of memory{_AT_LIMIT}, probably: a library ended the process ({{signal}}). "
        f"{_LESS_MEMORY}"
    )


class CommandError(InputError):
    """A command cannot be run with these arguments."""

    not_moments = template("path, kind")(
        "{path} holds {kind}, not moments. Create a file of moments with 'discriminant moments'."
    )

    unknown_suffix = template("path, suffix, known")(
        "{path}: no format of predictions has the suffix '{suffix}'. Name a file that ends in "
        "{known:list 10}."
    )

    no_rows = template("path, names")(
        "{path} holds moments, from which models can be fitted but not compared: a comparison "
        "needs held-out rows. Name a model with --model: {names:list}."
    )

    needs_rows = template("path, model, detail, names")(
        "{path} holds moments of detail '{detail}', from which '{model}' cannot be fitted. Name "
        "another with --model ({names:list}), read moments of detail 'class', or fit to the "
        "table itself."
    )

    @classmethod
    def not_a_model(cls, path: object, kind: str) -> CommandError:
        if kind.endswith("Moments"):
            return cls(
                f"{path} holds moments, not a model. Fit a model to them with 'discriminant fit "
                f"{path} --model lda --out ...'."
            )
        return cls(f"{path} holds {kind}, not a model. Fit a model with 'discriminant fit'.")

    needs_columns = template("path, kind")(
        "{path} holds a {kind} without the columns of a table. Use a model of 'discriminant fit' "
        "or 'discriminant report', or save an Encoded(...) of it."
    )

    @classmethod
    def unused(cls, option: str, reason: str) -> CommandError:
        other = (
            "; in Python, Decision(model, ...) decides by costs or rejects"
            if option in ("--cost", "--reject")
            else ""
        )
        return cls(f"{option} {reason}. Leave {option} out{other}.")

    sparse_rows = template("path, kind")(
        "{path} holds sparse rows ({kind}), not a table with named columns. To fit a label tree "
        "to it, pass --model label-tree and no --target; to predict, use a label tree that was "
        "fitted to such a file."
    )

    bad_json = template("option, text, why")(
        "{option} is not valid JSON ({why}): {text:short 60}. For example: "
        """'{{"yes": {{"no": 5}}}}'."""
    )

    same_file = template("path")(
        "{path} is both read and written. Name another output file, so that nothing is lost."
    )

    @classmethod
    def same_output(cls, first: object, second: object) -> CommandError:
        files = f"{first}" if str(first) == str(second) else f"{first} and {second}, one file,"
        return cls(
            f"{files} would be written twice, and the first content would be lost. Name another "
            "file for one of the outputs."
        )

    would_overwrite = template("path")(
        "{path} exists already and holds something else. Name another folder, or pass --force to "
        "overwrite it. Nothing was written."
    )

    duplicate_column = template("path, names")(
        "{path} already has column(s) {names:names}, which the predictions would repeat. Rename "
        "these columns, or pass a prefix (--prefix)."
    )


class CommandWarning(DiscriminantWarning):
    """A command is probably not what was intended."""

    @classmethod
    def counted_twice(cls, first: str, again: str) -> CommandWarning:
        same = f"{again} is named twice" if first == again else f"{first} and {again} are the same"
        return cls(
            f"{same}, so these rows count twice. Leave out one of the files unless the rows "
            "should count twice."
        )
