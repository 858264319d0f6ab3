"""Costs, thresholds and posteriors that no decision can be made from.

Models, options and names that cannot be put into another language.

Figures that cannot be drawn, and libraries that are needed only for some things.

Scores that cannot be ranked, and comparisons that say nothing.

What a study, or the command line, cannot do.
"""

from __future__ import annotations

from collections.abc import Sequence

from discriminant.errors.base import (
    DiscriminantError,
    DiscriminantWarning,
    InputError,
    quote,
    template,
)


class CostError(InputError):
    """A cost matrix, or a cost of rejecting, cannot be used."""

    @classmethod
    def of_shape(cls, shape: tuple[int, ...], labels: Sequence[object]) -> CostError:
        K = len(labels)
        return cls(
            f"cost has shape {shape} for {K} classes: pass ({K}, {K}), a row for each decision and "
            f"a column for each true class, both in the order {quote(labels, 20)}; or pass "
            "{decision: {class: cost}}, where names tell the order."
        )

    of_columns = template("found, labels")(
        "The columns of cost are {found:names 20}, the classes are {labels:names 20}: name each "
        "class once."
    )

    of_class = template("action, label, labels")(
        "cost of '{action}' names the class '{label}'; the classes are {labels:names 20}."
    )

    of_action = template("action, missing, labels")(
        "'{action}' in cost is none of the classes {labels:names 20}. An action of its own needs "
        "a cost for every class, and none is given for {missing:names 20}."
    )

    of_unnamed = template("rows, columns")(
        "The {rows} rows of cost have no names. They would be the classes in the order of the "
        "columns, {columns:names 20}, and for that there must be {columns:len} rows with 0 where "
        "the two are the same. Name the decisions: by the index of a pandas frame, or by a "
        "column of texts in any frame."
    )

    of_twice = template("action")("cost has '{action}' more than once: name each action once.")

    @classmethod
    def of_cell(cls, action: object, label: object, value: object) -> CostError:
        shown = f"{value:g}" if isinstance(value, float) else repr(value)
        return cls(
            f"The cost of deciding '{action}' where '{label}' is true is {shown}: it must be a "
            "finite number of 0 or more. To rule a decision out, give it a very large cost."
        )

    of_row = template("action, given, labels")(
        "cost of '{action}' is {given!r}: pass {{class: cost}}, what it costs where each of the "
        "classes {labels:names 20} is true."
    )

    without = template("actions, known")(
        "Rows were decided {actions:names}, whose cost is not given; costs are given for "
        "{known:names 20}. Name these actions in cost=; REJECT and OUTLIER cost what reject= and "
        "outlier= say."
    )

    of_diagonal = template("label, value")(
        "The cost of deciding '{label}' where '{label}' is true is {value:g}: a right decision "
        "costs 0. Subtract it from all costs of that true class: no decision changes."
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
    """A threshold cannot be used."""

    of_value = template("name, value")(
        "{name} is {value}: it is held against a probability, so it must be in [0, 1]."
    )

    of_class = template("label, value")(
        "The threshold of class '{label}' is {value}: with one for each class they must be in "
        "(0, 1]."
    )

    of_labels = template("given, labels")(
        "threshold={given!r} does not fit the {labels:len} classes {labels:names 20}: pass one "
        "number for each of them, or with two classes one number, for the second."
    )

    unsorted = template("place, before, value")(
        "thresholds must increase: entry {place} (counted from 0) is {value:g} after {before:g}. "
        "Sort them and name each once."
    )

    and_cost = template()(
        "threshold and cost are both given, and a threshold t is the cost matrix t : 1 - t. Pass "
        "one of them."
    )


class PosteriorError(InputError):
    """There are no posteriors to decide from."""

    absent = template("name")(
        "{name} has neither predict_proba nor predict_log_proba, and costs are weighed by "
        'probabilities. Pass calibrate="platt" or "isotonic", or wrap it in scikit-learn\'s '
        "CalibratedClassifierCV."
    )

    @classmethod
    def not_probabilities(cls, name: str, what: str) -> PosteriorError:
        return cls(
            f"The outputs of {name} are fitted values, not probabilities, and {what} needs "
            f"probabilities. Calibrate it, by Decision({_call(name)}, calibrate='platt') or "
            "scikit-learn's CalibratedClassifierCV, or use Logistic or LDA."
        )

    @classmethod
    def not_fused(cls, source: str, name: str, *, clipped: bool = False) -> PosteriorError:
        reason = (
            "whose outputs are fitted values, not probabilities"
            if clipped
            else "which has neither predict_proba nor predict_log_proba"
        )
        return cls(
            f"Source '{source}' is {name}, {reason}, and posteriors are what is fused. Wrap it in "
            f"scikit-learn's CalibratedClassifierCV, or in Decision({_call(name)}, "
            'calibrate="platt"), or use Logistic or LDA.'
        )

    of_sum = template("row, total, name")(
        "The posteriors that {name} gives for row {row} (counted from 0) sum to {total:.6g}, not "
        "1: they are not probabilities of classes of which one is true. Calibrate it with "
        "scikit-learn's CalibratedClassifierCV."
    )

    no_number = template("row, name")(
        "The posterior that {name} gives for row {row} (counted from 0) is no number."
    )

    @classmethod
    def of_shape(cls, shape: tuple[int, ...], classes: int | None) -> PosteriorError:
        many = "(rows, classes)" if classes is None else f"{classes} classes"
        return cls(
            f"Posteriors have shape {shape} for {many}: pass a row or more, and a column for each "
            "class."
        )

    of_columns = template("columns, labels")(
        "Posteriors have {columns} column(s) and there are {labels:len} classes, {labels:names "
        "20}: pass classes=, the class of each column in order."
    )

    not_normalised = template("row, total, name")(
        "{name} of row {row} (counted from 0) makes probabilities that sum to {total:.6g}, not "
        "1. Pass probabilities as posterior=, their logarithms as log_posterior=; scores that "
        "are neither have to be calibrated first."
    )

    not_logs = template("row, total")(
        "log_posterior of row {row} (counted from 0) makes probabilities that sum to "
        "{total:.6g}, not 1: pass the logarithms of posteriors, as predict_log_proba gives them, "
        "and none that is NaN."
    )

    not_a_table = template()(
        "log_posterior is no table of numbers: pass (n, K) logarithms of posteriors."
    )

    none_kept = template("measure")(
        "{measure} follows from posteriors, and none were given: pass log_posterior= or "
        "posterior= beside the decisions."
    )

    contradicted = template("row, names")(
        "In row {row} (counted from 0) every class has posterior 0 by one of {names:names}, so "
        "that nothing is left. Smooth or calibrate the models that say 0."
    )

    unknown_prior = template("name")(
        "The priors that the posteriors of {name} have are not known, so they cannot be "
        "replaced: pass fitted_prior=, the class shares of the rows it was fitted to."
    )

    without_moments = template("name")(
        "{name} was fitted without outlier=, so the class means and their covariance were not "
        "read. Fit once with outlier= at any level; the level can be changed afterwards."
    )

    of_fitted_without = template("name")(
        "{name} keeps no class means and covariance, and came fitted, so that no rows were read "
        "to find them. Pass rows, which change nothing of the classifier: "
        "Decision(FrozenEstimator(model), outlier=...).fit(X, y), with scikit-learn's "
        "FrozenEstimator."
    )


def _call(name: str) -> str:
    """How a classifier is made; a name may have its options already."""
    return name if name.endswith(")") else f"{name}()"


class FusionError(InputError):
    """Sources cannot be fused."""

    of_members = template("found")(
        "estimators={found!r} is not possible: pass a list of (name, classifier, columns), each "
        "name once."
    )

    of_columns = template("name, columns, width")(
        "X has {width} feature(s), and columns={columns!r} of '{name}' are not among them, or "
        "are none. Pass names or positions of one or more columns."
    )

    of_classes = template("name, found, first")(
        "'{name}' knows the classes {found:names 20} and the first source {first:names 20}: fit "
        "all to the same classes."
    )


class NeverRejectsWarning(DiscriminantWarning):
    """The reject option can never be taken."""

    of_cost = template("cost, most")(
        "The cost of rejecting, {cost:g}, never pays: for any posterior there is a decision that "
        "costs {most:g} or less on average, so no row is ever rejected. Pass a cost below that."
    )


class NoClassDecidedWarning(DiscriminantWarning):
    """No action of a cost is a class."""

    @classmethod
    def of_actions(
        cls, actions: Sequence[object], labels: Sequence[object]
    ) -> NoClassDecidedWarning:
        return cls(
            f"cost names the action(s) {quote(actions)} and none of the classes "
            f"{quote(labels)}, so that decide() never says a class. Name a class too, as "
            f"{{{labels[0]!r}: {{}}, ...}}, and all of them can be. If none is meant to be, pass a "
            "data frame of actions (rows) by classes (columns): of that nothing is told."
        )


class SharedColumnsWarning(DiscriminantWarning):
    """Sources to be fused share columns."""

    of_columns = template("columns")(
        "Column(s) {columns:names} belong to more than one source, so what they say is counted "
        "more than once: sources are fused as independent within each class."
    )


class ExportError(InputError):
    """Something of a model has no equal in the target; nothing was written."""

    of_model = template("name")(
        "{name} cannot be exported: it is neither one of the models of this package that can be "
        "(label trees cannot) nor a pipeline of them. Nothing was written. Fit another of ours "
        "(LDA, Logistic, ...), or use the file of the model."
    )

    of_part = template("part, why, instead")(
        "{part} cannot be exported: {why}. Nothing was written. {instead}"
    )

    not_fitted = template("name")(
        "This {name} is not fitted yet, so that there is nothing to export. Fit it."
    )

    of_output = template("name, known")(
        "There is no output '{name}'. This model has {known:names 9}."
    )

    @classmethod
    def of_probabilities(cls, part: str, why: str, left: Sequence[str]) -> ExportError:
        return cls(
            f"The probabilities of {part} cannot be exported: {why}. Nothing was written. What "
            f"is left can be: pass outputs={list(left)!r}."
        )

    @classmethod
    def of_label(cls, label: object) -> ExportError:
        return cls(
            f"The class {label!r} is a {type(label).__name__}, and only text, integers, booleans "
            "and floats can be exported. Nothing was written. Fit with such labels."
        )

    of_verdict = template("name")(
        "A class is called '{name}', as a row is where it is not decided, so that nobody could "
        "tell them apart. Nothing was written. Rename the class and fit again, or leave the "
        "action out of outputs."
    )

    of_text = template("what, name")(
        "The {what} {name!r} has a NUL or half of a surrogate pair in it, which no database "
        "takes. Nothing was written. Rename it and fit again."
    )

    of_case = template("first, second, target")(
        "The columns '{first}' and '{second}' differ in case alone, which {target} does not tell "
        "apart. Nothing was written. Rename one of them and fit again."
    )

    of_target = template("given, allowed")(
        "There is no export to {given!r}. There is: {allowed:names}."
    )

    not_finite = template("part")(
        "{part} holds a number that is not finite, so that it would mean different things in "
        "different targets. Nothing was written. Fit again and look at the warnings."
    )


class LibraryMissingError(DiscriminantError, ImportError):
    """A library that is needed only for this is not installed."""

    @classmethod
    def of(cls, library: str, *, what: str, extra: str = "") -> LibraryMissingError:
        """`extra` is the one of this package that has it; '' where none does."""
        how = (
            f"pip install 'discriminant[{extra}]' (in a clone: pip install '.[{extra}]')"
            if extra
            else f"pip install {library}"
        )
        return cls(f"{what} needs {library}, which is not installed. Install it with: {how}")


class PlotError(InputError):
    """What was handed in does not have what the figure shows."""

    of_model = template("figure, model, lacks, instead")(
        "{figure} cannot show {model}: it has no {lacks}. {instead}"
    )

    of_kind = template("figure, given, wanted")("{figure} cannot show a {given}: pass {wanted}.")

    of_width = template("figure, found, needed, instead")(
        "{figure} needs {needed}, and the rows have {found} feature(s). {instead}"
    )

    @classmethod
    def of_feature(cls, given: object, names: Sequence[str]) -> PlotError:
        return cls(
            f"There is no feature {given!r}. There are {len(names)}: {quote(names, 9)}; pass a "
            f"name, or a place from 0 to {len(names) - 1}."
        )

    of_column = template("name")(
        "Column '{name}' is not made of finite numbers, so that it has no axis. Pass another in "
        "features; a column that is no axis may be of any kind."
    )

    of_classes = template("figure, found, needed")(
        "{figure} needs {needed}, and there are {found}."
    )


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

    absent = template()(
        "There are labels but no scores to rank them by: pass scores=, one number for each row, "
        "such as model.predict_proba(X)[:, 1]; or a Ranking in place of the labels."
    )

    without_rows = template("positive")(
        "A Ranking of '{positive}' does not know which scores belong to one row, so that two "
        "models cannot be compared by it: pass labels and both scores of the same rows."
    )

    not_numbers = template("kind")("scores hold {kind}, not numbers: pass one number for each row.")

    @classmethod
    def of_shape(cls, shape: tuple[int, ...], rows: int, labels: Sequence[object]) -> ScoreError:
        K = len(labels)
        return cls(
            f"scores have shape {shape} for {rows} rows of the classes {quote(labels, 20)}: pass "
            f"({rows},), one score a row, high for the positive class, or ({rows}, {K}), a column "
            "for each class in the order of `classes` (sorted labels unless given)."
        )

    which_column = template("labels")(
        "Each of the classes {labels:names 20} has a column of scores, and a curve is of one of "
        "them against the others: pass positive=, its label. auc() and average_precision() "
        "average over all."
    )

    @classmethod
    def which_positive(cls, labels: Sequence[object]) -> ScoreError:
        if not labels:
            return cls("There are no rows: pass labels and scores of rows of both kinds.")
        return cls(
            f"The labels are {quote(labels, 20)}, and one score a row ranks one class above the "
            "others: pass positive=, the label that high scores speak for, or a column of scores "
            "for each class."
        )

    without_positive = template("positive, found")(
        "No row has the positive label '{positive}' and a positive weight; the labels are "
        "{found:names 20}. A curve needs rows of both kinds: pass another positive=, or more "
        "rows."
    )

    only_positive = template("positive")(
        "Every row that counts is of the positive class '{positive}': there is nothing to rank "
        "it above. A curve needs rows of both kinds."
    )

    class_absent = template("label")(
        "Class '{label}' has a column of scores but no row that counts, so nothing says how it "
        "is ranked. Leave its column out (and out of `classes`), or add rows."
    )

    too_few = template("label, weight")(
        "The rows of class '{label}' count {weight:g} in all, and the variance of an AUC needs "
        "more than 1 of each class. Add rows, or pass interval=None for the value alone."
    )

    of_positives = template("ours, theirs")(
        "Rankings of the positive classes '{ours}' and '{theirs}' do not add. Make them with the "
        "same positive=."
    )

    of_bins = template("ours, theirs")(
        "Rankings of {ours} and {theirs} bins do not add: which scores they tell apart would "
        "depend on the order. Make them with the same bins=."
    )


class ComparisonError(InputError):
    """Models cannot be compared as they are."""

    too_few = template("models")("{models} model(s): pass two or more, {{name: held-out result}}.")

    nothing_decided = template("name, fold")(
        "'{name}' rejects every row of fold {fold}, so that it has no error there. Compare "
        "models that reject less, or use fewer folds."
    )

    not_named = template("kind")(
        "Models are compared by name, and this is a {kind}: pass {{name: held-out result}}, such "
        "as {{'LDA': cross_validate(LDA(), X, y, fold), ...}} with one array fold for all."
    )

    not_held_out = template("name, kind")(
        "'{name}' is a {kind}, and models are compared by what they say of held-out rows: pass "
        "what cross_validate(model, X, y, fold) returns, or a list of such results."
    )

    none_held_out = template("name")(
        "'{name}' has no held-out results: pass what cross_validate returns, one result or one "
        "for each repetition."
    )

    of_rows = template("first, second, what")(
        "'{first}' and '{second}' were not held out alike: their {what} differ. Pass the same "
        "rows and folds to both: cross_validate(model, X, y, folds=fold) with one array fold."
    )

    of_repeats = template("first, ours, second, theirs")(
        "'{first}' has {ours} repetition(s) and '{second}' {theirs}: pass as many of each, in "
        "the same order, with the same folds."
    )

    repeated = template("name, repeats")(
        "'{name}' has {repeats} repetitions, and McNemar's test counts each row once. Pass one "
        "of them, or test='resampled_t'."
    )

    broken_weight = template()(
        "McNemar's test counts rows, and the weights are not whole numbers. Pass "
        "test='resampled_t', or hold out without sample_weight."
    )

    infinite_loss = template("name, fold")(
        "'{name}' gives a true class of fold {fold} probability 0, so that its log loss is "
        "infinite and nothing can be compared. Pass loss='error'."
    )


class NoSpreadWarning(DiscriminantWarning):
    """An interval or test has no width, and says nothing of how sure the number is."""

    of_constant = template("rows")(
        "The scores of all {rows} rows are equal: they rank nothing, the AUC is 0.5 whatever the "
        "rows, and its interval has no width."
    )

    of_auc = template("value")(
        "The AUC is {value:g}, so that DeLong's variance is 0 and the interval has no width, "
        "however few the rows are: do not take it for certainty."
    )

    of_comparison = template("difference")(
        "The difference ({difference:g}) is the same whichever rows are looked at, so that its "
        "variance is 0 and no test can be made of it: the p-value says nothing."
    )


class RankedLabelsError(InputError):
    """Lists of labels, or the truth beside them, cannot be assessed."""

    of_lists = template("shape, kind")(
        "The lists have shape {shape} and type {kind}: pass an array (rows, k) of label codes, "
        "whole numbers, the best first, -1 where a list has fewer."
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

    of_names = template()(
        "The truth has labels by name, and the lists have codes: pass classes=model.classes_, "
        "which says what the code of each name is."
    )

    mixed = template("row, own")(
        "The truth of row {row} is {own!r}, and that of row 0 is of another kind: pass a set of "
        "labels for each row, empty where there are none, or one label for each."
    )

    as_rows_of_ones = template("labels")(
        "The truth is lists of {labels} zeros and ones: an indicator, or labels 0 and 1 by name? "
        "Pass np.array(truth) for an indicator, or sets of labels."
    )

    unknown = template("labels, of_labels")(
        "{labels:len} label(s) of the truth are not among the {of_labels} classes: "
        "{labels:names}. No list can have them: leave them out, or, to count them as missed, "
        "name them after the others: classes=[*model.classes_, ...]."
    )

    of_lengths = template("lists, truth")(
        "There are lists for {lists} rows and the truth of {truth}: pass as many."
    )

    @classmethod
    def of_code(cls, least: int, most: int, labels: int) -> RankedLabelsError:
        return cls(
            f"Label codes go from {least} to {most}, and there are {labels} labels, 0 to "
            f"{labels - 1}. Are these labels by name instead of codes, or of another set?"
        )

    of_twice = template("row, code")(
        "The list of row {row} has label {code} twice, and a hit would count double. List every "
        "label once."
    )

    of_values = template("name, shape, labels")(
        "{name} has shape {shape} where there are {labels} labels: pass one for each."
    )

    of_frequency = template("code, found, rows")(
        "Label {code} is said to have {found:g} of {rows} training rows: pass how many of them "
        "have each label, from 0 up to all."
    )

    not_positive = template("code")(
        "The inverse propensity of label {code} is not a positive finite number. Propensities "
        "lie above 0 and go up to 1."
    )

    @classmethod
    def of_sizes(cls, ours: tuple[int, int], theirs: tuple[int, int]) -> RankedLabelsError:
        return cls(
            f"Lists of {ours[0]} out of {ours[1]} labels and of {theirs[0]} out of {theirs[1]} do "
            "not add up: assess both with the same k and the same labels."
        )


class StudyError(InputError):
    """A study is asked for what it does not have."""

    @classmethod
    def unknown_model(cls, name: object, known: Sequence[str]) -> StudyError:
        if name == "label-tree":
            return cls(
                "A label tree is for very many classes, and is not compared with other models: "
                "'discriminant fit' with --target and --model label-tree makes one of a table, and "
                "'discriminant assess' measures it on other rows. Models that are compared are "
                f"{quote(known, most=20)}."
            )
        return cls(f"There is no model '{name}'. Choose among {quote(known, most=20)}.")

    no_models = template()(
        "No model is named to compare. Name one or more, or none at all for all."
    )

    not_compared = template("name, known")(
        "Model '{name}' was not compared. Compared were {known:names 20}: choose one of them, or "
        "compare again with it."
    )

    @classmethod
    def none_left(cls, reasons: Sequence[tuple[str, str]]) -> StudyError:
        told = " ".join(f"{name}: {why}" for name, why in reasons[:3])
        return cls(f"No model could be fitted. {told}")

    not_gaussian = template()(
        "missing='marginal' is for LDA, QDA, RDA and the nearest mean, which can do without a "
        "feature. Use 'mean' or 'indicator' for the others."
    )

    no_grid = template("rows, features")(
        "its settings are searched only where rows are at least twice as many as features, and "
        "here are {rows} rows of {features} features. LDA with shrinkage serves there."
    )

    no_probabilities = template("name")(
        "Model '{name}' gives no probabilities, which this needs. Take another, for example 'lda'."
    )

    @classmethod
    def none_with_probabilities(cls, names: Sequence[str], use: str) -> StudyError:
        give = "does not give" if len(names) == 1 else "do not give"
        return cls(
            f"{quote(names, most=20)} {give} probabilities, which {use}. Add a model that does, "
            "such as 'lda', or select by error (--by error) and leave costs and --reject out."
        )

    nothing_to_weigh = template("name")(
        "Costs or a reject option were asked for by `decide`, and model '{name}' gives no "
        "probabilities for them. Take another, for example 'lda', or call `decide()` before: "
        "without costs it takes them back."
    )


class ModelLeftOutWarning(DiscriminantWarning):
    """A model of the family does not suit the rows and is not compared."""

    of = template("name, why")("{name} is left out of the comparison: {why}")


class DrawnRowsWarning(DiscriminantWarning):
    """A model was fitted to some rows of many."""

    of = template("name, drawn, rows")(
        "{name} must see rows, and was fitted to {drawn:,} drawn of {rows:,} that are in parts. "
        "Models made from moments, and Logistic, are fitted to all."
    )


class OutOfMemoryError(DiscriminantError):
    """A command needs more memory than it may use."""

    @classmethod
    def limit_too_low(cls, limit: int, required: int) -> OutOfMemoryError:
        return cls(
            f"Out of memory: this process is limited to {limit >> 20:,} MB of address space, and "
            f"needs at least {required >> 20:,} MB. Raise the limit: ulimit -v {required >> 10}, "
            "or more for a large table."
        )

    @classmethod
    def while_running(cls, limit: int | None) -> OutOfMemoryError:
        return cls(f"Out of memory{_at_limit(limit)}. {_LESS_MEMORY}")

    @classmethod
    def ended_by(cls, signal: str, limit: int) -> OutOfMemoryError:
        return cls(
            f"Out of memory{_at_limit(limit)}, probably: a library ended the process ({signal}). "
            f"{_LESS_MEMORY}"
        )


_LESS_MEMORY = (
    "Use fewer rows or columns, read the file in parts with --engine files, or raise the limit."
)


def _at_limit(limit: int | None) -> str:
    return "" if limit is None else f" at the limit of {limit >> 20:,} MB of address space"


class CommandError(InputError):
    """The command line asks for what cannot be."""

    not_moments = template("path, kind")(
        "{path} holds {kind}, not moments. Make a file of moments with 'discriminant moments'."
    )

    no_rows = template("path, names")(
        "{path} holds moments, of which models are made but cannot be compared: that takes "
        "held-out rows. Name one with --model: {names:list}."
    )

    needs_rows = template("path, model, detail, names")(
        "{path} holds moments of detail '{detail}', and '{model}' cannot be made from these. "
        "Name another with --model ({names:list}), read moments of detail 'class', or fit to the "
        "table itself."
    )

    @classmethod
    def not_a_model(cls, path: object, kind: str) -> CommandError:
        if kind.endswith("Moments"):
            return cls(
                f"{path} holds moments, not a model. Make a model of them with 'discriminant fit "
                f"{path} --model lda --out ...'."
            )
        return cls(f"{path} holds {kind}, not a model. Make a model with 'discriminant fit'.")

    needs_columns = template("path, kind")(
        "{path} holds a {kind} that knows no columns of a table. Use a model of 'discriminant "
        "fit' or 'discriminant report', or save an Encoded(...) of it."
    )

    @classmethod
    def unused(cls, option: str, reason: str) -> CommandError:
        decided = option in ("--cost", "--reject")
        other = (
            "; Decision(model, ...) decides by costs, or rejects, from Python" if decided else ""
        )
        return cls(f"{option} {reason}. Leave {option} out{other}.")

    sparse_rows = template("path, kind")(
        "{path} holds sparse rows ({kind}), not a table: it has no columns of names, and the "
        "labels of a row stand at the start of its line. To fit a label tree to it, pass --model "
        "label-tree and no --target; to predict, use a label tree that was fitted to such a file."
    )

    @classmethod
    def bad_json(cls, option: str, text: str, why: str) -> CommandError:
        shown = text if len(text) <= 60 else f"{text[:60]}..."
        return cls(f"{option} is not valid JSON ({why}): {shown!r}. Write for example {_COST}.")

    same_file = template("path")(
        "{path} is both read and written. Name another file to write to, so that nothing is lost."
    )

    @classmethod
    def same_place(cls, first: object, second: object) -> CommandError:
        them = f"{first}" if str(first) == str(second) else f"{first} and {second}, one file,"
        return cls(
            f"{them} would be written twice, and what is written first would be lost. Name "
            "another file for one of them."
        )

    would_overwrite = template("path")(
        "{path} is there already and holds something else. Name another folder, or pass --force "
        "to write over it. Nothing was written."
    )

    taken_column = template("path, names")(
        "{path} has already column(s) {names:names}, which the answer would repeat. Rename them, "
        "or pass a prefix (--prefix)."
    )


class CommandWarning(DiscriminantWarning):
    """The command line asks for what is hardly meant."""

    @classmethod
    def counted_twice(cls, first: str, again: str) -> CommandWarning:
        same = f"{again} is named twice" if first == again else f"{first} and {again} are the same"
        return cls(f"{same}: these rows count twice in the sum. Leave one out if it is not meant.")


_COST = '\'{"yes": {"no": 5}}\''
