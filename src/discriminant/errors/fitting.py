"""What is told of a fit: what was dropped, chosen, not reached.

Errors about classes that are rare: their weights, and rows drawn or made up for them.

Codes of classes that cannot be used.

What is told where a likelihood is largest at the end of what can be, or nowhere.

Label sets, trees over labels and what they are asked that cannot be.

Moments that do not fit together, or have lost their digits.
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


class ResamplingError(InputError):
    """Rows cannot be drawn or made up as asked."""

    @classmethod
    def of_neighbours(cls, label: object, rows: int, neighbours: int) -> ResamplingError:
        fewer = f"neighbours={rows - 1} or less, or " if rows > 1 else ""
        return cls(
            f"Class '{label}' has {rows} row(s), and SMOTE with neighbours={neighbours} needs at "
            f"least {neighbours + 1}: a row and {neighbours} other(s). Pass {fewer}method='over', "
            "which repeats rows, or weigh the classes (Reweighted)."
        )

    of_ratio = template("ratio, least")(
        "strategy={ratio:g} is a ratio of rare to frequent rows, and without resampling it is "
        "{least:.4g} already. Pass one above that and up to 1, or 'auto' for equal numbers."
    )

    ratio_of_many = template("ratio, labels")(
        "strategy={ratio:g} is a ratio of two classes, and there are {labels:len}: {labels:names "
        "20}. Pass {{class: rows}} or 'auto'."
    )

    @classmethod
    def of_rows(cls, label: object, wanted: int, rows: int, method: str) -> ResamplingError:
        bound = f"{rows} or fewer" if method == "under" else f"{rows} or more"
        return cls(
            f"Class '{label}' has {rows} row(s) and strategy asks for {wanted}: method='{method}' "
            f"can give it {bound}."
        )

    of_sample_weight = template("name")(
        "{name} draws whole rows and takes no sample_weight. Weigh classes instead of drawing "
        "from them (Reweighted, whose fit takes sample_weight), or leave it out."
    )

    of_weighted_moments = template("label, rows, weight")(
        "Rows are drawn one by one, and in these moments the {rows} row(s) of class '{label}' "
        "have weights, {weight:g} in all. Pass moments of rows without weights, or weigh the "
        "classes (Reweighted)."
    )

    nominal_missing = template("column, rows")(
        "Nominal column '{column}' has {rows} missing cell(s): fill them, with a category of "
        "their own perhaps."
    )

    nominal_sparse = template()(
        "Columns of a sparse matrix cannot be nominal: pass an array or a data frame, or "
        "nominal=None."
    )

    of_nominal = template("columns, width")(
        "nominal={columns!r} names columns that the {width} of X are not: pass their names, or "
        "their places counted from 0."
    )


class ClassWeightError(InputError):
    """Class weights cannot be used."""

    of_class = template("label, value")(
        "The weight of class '{label}' is {value:g}: it must be positive and finite. To leave a "
        "class out, drop its rows."
    )

    not_taken = template("name")(
        "{name} takes no sample_weight, so its classes cannot be weighed: resample them "
        "(Resampled, EasyEnsemble), or move the threshold afterwards (Decision)."
    )


class WayLeftOutWarning(DiscriminantWarning):
    """A treatment of rare classes could not be measured."""

    of = template("way, fold, why")(
        "'{way}' is not measured, for it cannot be fitted without the rows of fold {fold}: {why} "
        "Pass fewer folds, or other ways=."
    )


class CodeError(InputError):
    """A code matrix cannot tell the classes apart, or asks for what cannot be."""

    of_shape = template("shape, labels")(
        "The code has shape {shape} for {labels:len} classes: pass one row for each class, in "
        "the order {labels:names 20}, and one column for each classifier."
    )

    of_entry = template("label, column, value")(
        "The code of class '{label}' in column {column} (counted from 0) is {value}: it must be "
        "-1, 0 (the class is left out of that classifier) or 1."
    )

    one_sided = template("column, side")(
        "Column {column} (counted from 0) of the code has no class on side {side:+d}, so that "
        "there is nothing to tell apart. 0 leaves a class out: a code of 0 and 1 is to be passed "
        "as 2 * code - 1."
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

    too_many = template("kind, columns, classes, most")(
        "The {kind} code of {classes} classes has {columns:,} columns, and more than {most:,} "
        "are not made. Pass code='dense', 'sparse' or 'designed', with `columns` as many as you "
        "like."
    )

    too_long = template("kind, columns, classes, most")(
        "columns={columns}, but there are only {most:,} different columns of a {kind} code of "
        "{classes} classes, complements left out. Pass columns={most} or fewer, or None."
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

    of = template("rows, of_rows, steps, change")(
        "The coupled probabilities of {rows} of {of_rows} rows still change by {change:.1e} "
        "after {steps} steps: believe no more digits of them. Classes by `predict` do not depend "
        "on them."
    )


class ShrinkageChosenWarning(DiscriminantWarning):
    """There are too few rows for a covariance to have an inverse, so it was shrunk."""

    of = template("what, rank, features, amount")(
        "{what} has rank {rank} for {features} features, so it has no inverse: too few rows, or "
        "columns that depend on others. It was shrunk {amount:.3g} of the way to its diagonal "
        "(OAS). Pass shrinkage= to choose yourself, or keep fewer features."
    )


class ScarceRowsWarning(DiscriminantWarning):
    """A covariance has an inverse, but from so few rows that new rows are told apart badly.

    Of m degrees of freedom and d features the inverse is m / (m - d - 1) times the true one on
    average, if rows are Gaussian.
    """

    @classmethod
    def of(cls, what: str, *, rows: int, degrees: int, features: int) -> ScarceRowsWarning:
        left = degrees - features - 1
        factor = f"by a factor of {degrees / left:.2g}" if left > 0 else "without bound"
        return cls(
            f"{what} of {features} features comes from {rows} rows ({degrees} degrees of freedom), "
            f"fewer than two a feature: its inverse is too large {factor} on average, mostly by "
            "chance, so that new rows are told apart worse than need be. Pass shrinkage='auto', "
            f"use RDA(pooling='cv', shrinkage='cv'), or keep at most {degrees // 2} features."
        )


class MaskedClassWarning(DiscriminantWarning):
    """A class is never predicted on the rows the rule was fitted to."""

    of_classes = template("labels")(
        "Class(es) {labels:names} are masked on the training rows: no row is predicted as one of "
        "them (whether they have a region elsewhere: masked_everywhere_). Use LDA, or a "
        "quadratic basis (degree=2)."
    )


class NotConvergedWarning(DiscriminantWarning):
    """An iteration stopped before it was done."""

    of = template("what, steps, change, tolerance")(
        "{what} stopped after {steps} steps with a change of {change:.1e} (goal "
        "{tolerance:.1e}). Raise the number of steps or scale the columns."
    )

    of_gap = template("what, steps, gap, tolerance")(
        "{what} stopped after {steps} steps, up to {gap:.1e} of its objective above the least "
        "(goal {tolerance:.1e}). Raise max_steps, or scale the columns (standardize=True)."
    )

    @classmethod
    def of_gradient(
        cls,
        what: str,
        passes: int,
        steepness: float,
        tolerance: float,
        way_out: str = "pass ridge > 0 if the columns nearly depend on one another",
    ) -> NotConvergedWarning:
        return cls(
            f"{what} stopped after {passes} passes with a scaled gradient of {steepness:.1e} "
            f"(goal {tolerance:.1e}), so its last digits are not to be trusted. Raise max_iter, "
            f"or {way_out}."
        )

    @classmethod
    def of_perceptron(
        cls, wrong: int, rows: int, passes: int, *, kept: str, separable: bool | None
    ) -> NotConvergedWarning:
        """`separable`: True where a border is proved to exist, None where that is not known."""
        reason = (
            "A linear programme shows that a border exists, so that more passes end with every row "
            f"right: pass max_passes={10 * passes}."
            if separable
            else f"It is not known whether a border exists: pass max_passes={10 * passes} to go on."
            " If the classes overlap, use LDA, Logistic or SVM, or add features (Basis)."
        )
        return cls(
            f"The perceptron did not converge: it stopped after {passes} passes, and {wrong} of "
            f"{rows} rows are wrong by the {kept}. {reason}"
        )

    of_average = template("wrong, rows")(
        "The average of the perceptron's weights has not converged: {wrong} of {rows} rows are "
        'wrong by it, though the weights at the end have every row right. Pass keep="pocket" for '
        "these."
    )

    of_priors = template("steps, gap, tolerance")(
        "The estimate of the priors stopped after {steps} steps, up to {gap:.1e} a row below the "
        "largest log likelihood (goal {tolerance:.1e}). Raise max_iter."
    )


class ClassMissingWarning(DiscriminantWarning):
    """A class has no row outside one fold, so its held-out rows cannot be right."""

    of_class = template("label, fold, rows")(
        "All {rows} row(s) of class '{label}' are in fold {fold}, so the model for that fold "
        "does not know the class: its log posterior there is -inf. Use fewer folds, spread the "
        "class over folds, or leave it out."
    )


class NoPosteriorWarning(DiscriminantWarning):
    """A classifier has decisions but no posteriors."""

    of = template("name")(
        "{name} has neither predict_log_proba nor predict_proba: its log posterior is taken as 0 "
        "for the class it predicts and -inf for the others. Wrap it, for instance in "
        "sklearn.calibration.CalibratedClassifierCV, to get posteriors."
    )

    of_measures = template("name")(
        "There is neither predict_log_proba nor predict_proba in {name}: log loss, Brier score "
        "and calibration are left out, and so is a moved threshold; AUC and average precision "
        "are those of decision_function, if there is one. Wrap the classifier, for instance in "
        "sklearn.calibration.CalibratedClassifierCV, to get posteriors."
    )


class NotSeparatedWarning(DiscriminantWarning):
    """No linear border has every row on its own side, so that a perceptron cannot either."""

    of = template("wrong, rows, passes, *, kept, proof")(
        "The classes are not linearly separable: {wrong} of {rows} rows are wrong by the {kept} "
        "after {passes} passes. {proof} that no linear border separates them with every row on "
        "its own side, so that more passes do not help. For classes that overlap use LDA, "
        "Logistic or SVM, or add features (Basis)."
    )


class SeparationWarning(DiscriminantWarning):
    """Linear scores separate classes, so that the likelihood has no finite maximum."""

    @classmethod
    def of(
        cls, kind: str, columns: Sequence[str], classes: Sequence[tuple[object, object]]
    ) -> SeparationWarning:
        pairs = [f"{one}' and '{other}" for one, other in classes]
        by = f"column(s) {quote(columns)}" if columns else "the intercept"
        how = (
            "completely separated: scores give every row to its class"
            if kind == "complete"
            else "quasi-separated: scores are wrong of no row and tie in some"
        )
        return cls(
            f"Class(es) {quote(pairs)} are {how}. So there is no finite maximum-likelihood "
            f"estimate: coefficients and standard errors of {by} grow without limit and mean "
            'nothing. Pass bias_reduction="jeffreys" (Firth) or ridge > 0, or drop or merge '
            "what separates, for instance a column made from the label or a rare category."
        )


class InferenceError(InputError):
    """Standard errors, intervals or tests that cannot be had."""

    of_ridge = template("ridge")(
        "ridge={ridge:g} biases the estimates, so that standard errors, intervals and tests of "
        "maximum likelihood do not hold for them. Fit with ridge=0, or resample the rows."
    )

    of_logistic = template("why")("There are no standard errors, intervals or tests: {why}")

    needs_rows = template("what")(
        "{what} fits again, and a fitted model keeps no rows: pass X and y (and sample_weight "
        "and offset, if there were any) as they were at fit."
    )

    no_odds = template("title")(
        "The estimates of {title} are not logarithms of odds: only those of a logit are. Fit "
        "with link='logit'; for ratios of means by a log link call rate_ratios()."
    )

    no_rates = template("title")(
        "The estimates of {title} are not logarithms of means: only those of a log link are. Fit "
        "with link='log'; for ratios of odds by a logit call odds_ratios()."
    )

    not_at_peak = template("what, steepness")(
        "{what} starts from the largest likelihood, and this fit has not converged: the scaled "
        "gradient is {steepness:.1e}. Raise max_iter and fit again."
    )

    other_values = template("steepness")(
        "These are not the rows of the fit: it has converged on its own rows, but on these the "
        "scaled gradient is {steepness:.1e}. Pass X, y, sample_weight and offset as they were at "
        "fit."
    )

    other_rows = template("found, fitted")(
        "These are not the rows of the fit: their deviance is {found:.9g}, and that of the fit "
        "was {fitted:.9g}. Pass X, y, sample_weight and offset as they were at fit."
    )

    @classmethod
    def too_wide(cls, what: str, rows: float, classes: int, features: int) -> InferenceError:
        return cls(
            f"{what} of {features} features needs {features + classes} or more rows in {classes} "
            f"classes, and there are {rows:g}: the scatter within classes has no inverse. Add rows "
            f"or keep at most {max(int(rows) - classes, 0)} features: moments.select([...])."
        )

    @classmethod
    def collinear(
        cls, what: str, columns: Sequence[str], rank: int, features: int
    ) -> InferenceError:
        return cls(
            f"{what}: column(s) {quote(columns)} depend linearly on one another within classes "
            f"(rank {rank} of {features}), so that the scatter has no inverse. Leave out "
            f"{features - rank} of them: moments.select([...])."
        )

    no_spread = template("what, columns")(
        "{what}: column(s) {columns:names} do not vary within any class but differ between "
        "classes: they separate them without error, F is infinite and there is nothing to test. "
        "If a column was made from the label drop it: moments.select([...])."
    )

    all_constant = template("what, columns")(
        "{what}: none of the {columns:len} column(s) {columns:names} varies: each has one value "
        "in all rows, and there is nothing to test. Read columns that vary."
    )

    @classmethod
    def light_classes(
        cls, what: str, labels: Sequence[object], rows: Sequence[float], features: int
    ) -> InferenceError:
        found = ", ".join(f"'{k}': {n:g}" for k, n in list(zip(labels, rows, strict=True))[:5])
        return cls(
            f"{what} of {features} features needs {features + 1} or more rows in every class; too "
            f"few are in {found}. Leave these classes out (moments.classes([...])), merge them "
            "(moments.group({...})) or keep fewer features (moments.select([...]))."
        )

    flat_class = template("what, label, columns")(
        "{what}: column(s) {columns:names} have one value only in class '{label}', so that its "
        "covariance has no inverse. Leave out the columns (moments.select([...])) or the class "
        "(moments.classes([...]))."
    )

    not_two = template("what, labels")(
        "{what} compares two classes, and there are {labels:len} ({labels:names}): pass "
        "labels=(one, other), or the moments of two tables."
    )


class BoundaryWarning(DiscriminantWarning):
    """The likelihood is largest at the end of what can be: at infinity, or on an edge of means."""

    of = template("name, passes, stride")(
        "{name} has no finite estimate: after {passes} passes the gradient vanishes, but the "
        "coefficients still move by {stride:.1e} a step. Some fitted means go to the edge of "
        "what they can be (0, or 1), as where a column separates zeros from the rest. Standard "
        "errors mean nothing here. Drop that column, or pass ridge > 0."
    )

    of_edge = template("name")(
        "{name}: the likelihood is largest on the edge of what means can be, where some rows "
        "have a fitted mean of 0 (or, for shares, 1). The coefficients are the best that leave "
        "every row a mean, but there are no standard errors. Choose a link that has no such edge "
        "(logit, or log for counts) if that is not meant."
    )


class NoEstimateError(InferenceError):
    """Errors of an estimate that is not at a flat place of the likelihood."""

    of_edge = template("name")(
        "{name} has no standard errors, intervals or tests: its likelihood is largest on the "
        "edge of what means can be, where it is not flat. Choose a link that has no such edge "
        "(logit, or log for counts), or resample the rows."
    )

    of_infinite = template("name")(
        "{name} has no standard errors, intervals or tests: its likelihood rises on the way to "
        "infinity, so that there is no finite estimate. Drop the column that separates, pass "
        "ridge > 0, or for two classes fit Logistic(bias_reduction='jeffreys')."
    )


class NoPenaltyWarning(DiscriminantWarning):
    """An option of the penalty was given, and there is no penalty."""

    of = template("name, value")(
        "{name}={value:g} does nothing without a penalty, and ridge is 0: this is maximum "
        "likelihood. Pass ridge > 0, which is how strong the penalty is, or leave out {name}."
    )


class LabelSetError(InputError):
    """The label sets of rows cannot be used."""

    of_shape = template("shape")(
        "y has shape {shape}. Pass one label for each row, a list of label sets, or a matrix "
        "with a row for each row and a column for each label that is 1 where the row has it."
    )

    of_entry = template("row, column, value")(
        "y[{row}, {column}] is {value}: where a row has a label there is a 1, elsewhere a 0 or "
        "nothing."
    )

    of_names = template()(
        "The labels are names, and these files have numbers of labels. Pass a matrix with a "
        "column for each label, such as "
        "sklearn.preprocessing.MultiLabelBinarizer(sparse_output=True).fit_transform(sets)."
    )

    no_set = template("row, kind")(
        "y[{row}] is a {kind}, and y[0] is a set of labels: pass a set, a list or a tuple for "
        "every row, an empty one for a row without labels."
    )

    all_empty = template("rows")("None of the {rows} rows has a label: there is nothing to learn.")

    one_label = template("label")(
        "There is only one label ('{label}'): a label tree tells labels from each other, and "
        "needs two or more. To tell rows with the label from rows without, pass y as one label "
        "for each row, such as 'yes' and 'no'."
    )


class LabelTreeError(InputError):
    """A label tree is asked for what it cannot give."""

    beyond_single = template("row, column")(
        "Row {row} (counted from 0), column '{column}' is too large for float32 (more than "
        "3.4e38). Pass precision='float64', or scale the rows."
    )

    @classmethod
    def beyond_squares(cls, row: int, column: str, kind: str, most: float) -> LabelTreeError:
        other = "" if kind == "float64" else "precision='float64', "
        return cls(
            f"Row {row} (counted from 0), column '{column}' is too large to be squared in {kind} "
            f"(more than {most:.2g}). Pass {other}unit_rows=True, or scale the rows."
        )

    beyond_half = template("largest")(
        "A weight of {largest:.3g} is too large for float16, which ends at 65504. Pass "
        "precision='float32', or scale the rows up."
    )

    sparse_to_standardize = template()(
        "standardize=True is for dense rows: to centre the columns of a sparse matrix would fill "
        "it. Pass standardize=False, and scale the columns before "
        "(sklearn.preprocessing.MaxAbsScaler keeps zeros), or pass X.toarray()."
    )

    unsound_rows = template("why")(
        "The sparse matrix X is not sound: {why}. Build it anew with "
        "scipy.sparse.csr_array((data, indices, indptr), shape=...), or ask its check_format()."
    )

    @classmethod
    def too_many_cells(cls, rows: int, labels: int, most: int) -> LabelTreeError:
        return cls(
            f"Probabilities of {rows:,} rows and {labels:,} labels are {rows * labels:,} numbers; "
            f"more than {most:,} are not made at once. Pass k for a sparse matrix of the k best "
            "of each row, use predict_topk, or pass fewer rows at a time."
        )

    only_one_label = template("what")(
        "{what} is of one label for each row, and this label tree was fitted to label sets: use "
        "predict_topk, or predict_proba, which gives the probability of each label."
    )

    moments_of_sets = template()(
        "tree='moments' needs one label for each row, and y has sets of labels: the moments of a "
        "class are those of its rows. Pass tree='balanced' for sets of labels."
    )

    moments_elsewhere = template("tree")(
        "LabelTree(tree={tree!r}) is fitted to rows: pass them to fit(X, y), or choose "
        "LabelTree(tree='moments'), whose tree is made of class moments."
    )


class HierarchyError(InputError):
    """A hierarchy given for the labels is not a tree over them."""

    @classmethod
    def cycle(cls, nodes: Sequence[object]) -> HierarchyError:
        path = " -> ".join(f"'{node}'" for node in list(nodes)[:10])
        return cls(
            f"The hierarchy has a cycle: {path}. Each node must lead up to the root: remove one of "
            "these links."
        )

    orphan = template("labels")(
        "{labels:len} label(s) are not in the hierarchy: {labels:names}. Give each of them a "
        "place, or leave out its rows."
    )

    @classmethod
    def duplicate(cls, label: object, places: Sequence[str]) -> HierarchyError:
        where = ", ".join(places[:5]) + (", .." if len(places) > 5 else "")
        return cls(
            f"Label '{label}' comes {len(places)} times in the hierarchy: {where}. A label has one "
            "place: keep one of them."
        )

    two_parents = template("node, parents")(
        "Node '{node}' has {parents:len} parents in the hierarchy, {parents:names}. A node has "
        "one place: keep one of these pairs."
    )

    @classmethod
    def unknown(cls, leaves: Sequence[object], place: str) -> HierarchyError:
        many = len(leaves)
        said = "leaf of the hierarchy is no label" if many == 1 else "leaves are no labels"
        return cls(
            f"{many} {said}: {quote(leaves)}; the first stands {_at(place)}. Leaves are the "
            "labels of y, by the same names and of the same type: leave the others out."
        )

    @classmethod
    def hollow(cls, many: int, place: str) -> HierarchyError:
        others = "" if many == 1 else f" (and {many - 1} more)"
        return cls(
            f"The node {place} of the hierarchy is empty{others}: no label stands below it. Leave "
            "it out, or put labels there."
        )

    empty = template("labels")(
        "The hierarchy is empty, and there are {labels} labels to give a place in it. Pass "
        "nested lists of labels, a dict from each node to its parent, or tree='balanced'."
    )

    @classmethod
    def two_roots(cls, roots: Sequence[object]) -> HierarchyError:
        pairs = ", ".join(f"({root!r}, 'all')" for root in list(roots)[:2])
        return cls(
            f"The hierarchy has {len(roots)} roots: {quote(roots)}. Put one node above them: "
            f"{pairs}{', ..' if len(roots) > 2 else ''}."
        )

    def meaning(self, other: str | None) -> HierarchyError:
        """The same, with what may have been meant: 'groups' by tuples, or 'pairs' by lists."""
        hints = {
            "groups": " Tuples of two are taken for (child, parent): if these are groups of "
            "labels, write lists, [['a', 'b'], ['c', 'd']].",
            "pairs": " Lists are groups of labels: if these are pairs of child and parent, write "
            "tuples, [('a', 'top'), ('b', 'top')], or a dict.",
        }
        return self if other is None else type(self)(f"{self}{hints[other]}")

    of_kind = template("kind")(
        "A hierarchy cannot be made from a {kind}. Pass nested lists of labels, a dict from each "
        "node to its parent, or a word: tree='balanced', 'wide', 'huffman', 'moments', "
        "'one-vs-rest'."
    )


class UnseenLabelsWarning(DiscriminantWarning):
    """Some labels have no rows."""

    @classmethod
    def of(cls, labels: Sequence[object], of_labels: int) -> UnseenLabelsWarning:
        return cls(
            f"{len(labels):,} of {of_labels:,} labels have no row, so that nothing can be learnt "
            f"of them and they are hardly ever predicted: {quote(labels)}."
        )


class UnlabelledRowsWarning(DiscriminantWarning):
    """Some rows have no labels."""

    of = template("rows, of_rows")(
        "{rows:,} of {of_rows:,} rows have no label. They reach no node of the tree, so that "
        "nothing is learnt from them."
    )


class LongRowsWarning(DiscriminantWarning):
    """Rows are long, weights small, and the threshold takes them away."""

    @classmethod
    def of(cls, length: float, threshold: float) -> LongRowsWarning:
        return cls(
            f"Rows have a length of {length:.3g} (the median), so that weights are small, and "
            f"those below threshold={threshold:g} are left out though they matter. Pass "
            "unit_rows=True (best for words), standardize=True (for columns of different units), "
            f"or threshold={threshold / length:.1g}."
        )


def _at(place: str) -> str:
    return f"at {place}" if place.startswith("tree") else place


class MomentsMismatchError(InputError):
    """Two summaries cannot be put together."""

    @classmethod
    def of_features(cls, ours: Sequence[str], theirs: Sequence[str]) -> MomentsMismatchError:
        missing = [n for n in ours if n not in set(theirs)]
        extra = [n for n in theirs if n not in set(ours)]
        differ = (
            f"only in the first: {quote(missing) or 'none'}; "
            f"only in the second: {quote(extra) or 'none'}"
            if missing or extra
            else "the same names in another order"
        )
        return cls(
            f"Moments of {len(ours)} and {len(theirs)} features do not add ({differ}). "
            "Select the common features first: moments.select([...])."
        )

    of_detail = template("ours, theirs")(
        "Moments of detail '{ours}' and '{theirs}' do not add. Bring the finer one down first "
        "with moments.reduce(detail)."
    )

    needs_detail = template("what, needed, found")(
        "{what} needs moments of detail '{needed}' and these are '{found}'. Read them with "
        "moments(X, y, detail='{needed}')."
    )

    neither = template("what, kind, detail")(
        "{what} is found from rows and their labels, or from their moments, and this is a {kind} "
        "alone: pass X and y, or moments(X, y, detail='{detail}')."
    )

    of_shape = template("name, found, wanted")(
        "'{name}' has shape {found} where these classes, features and detail make it {wanted}. "
        "Read moments with moments(X, y), or start from ClassMoments.empty(...)."
    )

    of_removal = template("label, rows, removed")(
        "Cannot remove {removed} row(s) of class '{label}': only {rows} are in the moments."
    )

    of_weight_removal = template("label, weight, removed")(
        "Cannot remove weight {removed:g} from class '{label}', which weighs {weight:g}. Remove "
        "rows with the weights they were added with."
    )

    of_rows = template("label, missing, removed, rows")(
        "Cannot remove {missing} of {removed} row(s) of class '{label}': they are not among the "
        "{rows} held, with the same values and weight. Pass rows as they were fitted."
    )

    not_kept = template("features")(
        "No moments were kept of the fit to {features} features, which has fewer rows than that: "
        "rows cannot be added or removed. Fit again to all the rows that count."
    )

    @classmethod
    def not_among(cls, label: object | None) -> MomentsMismatchError:
        where = "the classes" if label is None else f"class '{label}'"
        return cls(
            f"The rows to remove cannot have been among the rows of {where}: without them a "
            "variance would be negative. Check their labels, values and weights."
        )


class SitesError(MomentsMismatchError):
    """Moments of two tables whose columns became different things."""

    of_option = template("what, ours, theirs")(
        "Moments do not add: the first were read with {what}={ours!r}, the second with "
        "{what}={theirs!r}. Read both tables with the same (--{what})."
    )

    @classmethod
    def of_absent(cls, column: str, *, first: bool) -> SitesError:
        where, other = ("first", "second") if first else ("second", "first")
        return cls(
            f"Moments do not add: column '{column}' is used in the {where} and not in the {other}."
            f" Read both tables without it (exclude=['{column}']), or with the same columns "
            "(columns=[...])."
        )

    of_kinds = template("column, ours, theirs")(
        "Moments do not add: column '{column}' is {ours} in the first and {theirs} in the "
        "second. Read both alike: as a category (categories=['{column}']), or without it "
        "(exclude=['{column}'])."
    )

    of_reference = template("column, ours, theirs")(
        "Moments do not add: the reference level of column '{column}' is {ours!r} in the first "
        "and {theirs!r} in the second, so that its indicators mean different things. Read both "
        "tables with reference=None (--reference none): then all levels are kept."
    )

    of_order = template("column, ours, theirs")(
        "Moments do not add: the levels of column '{column}' are {ours:names} in the first and "
        "{theirs:names} in the second. Name all of them for both (ordered, --ordered)."
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
