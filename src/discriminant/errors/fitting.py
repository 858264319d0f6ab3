"""Errors and warnings about fitting: convergence, separation, inference, label trees, moments."""

from __future__ import annotations

from collections.abc import Sequence

from discriminant.errors.base import (
    DiscriminantError,
    DiscriminantWarning,
    InputError,
    enumerate_first,
    format_count,
    quote,
    template,
)


class ResamplingError(InputError):
    """Rows cannot be resampled as requested."""

    @classmethod
    def of_neighbours(cls, label: object, rows: int, neighbours: int) -> ResamplingError:
        fewer = f"neighbours={rows - 1} or less, or " if rows > 1 else ""
        return cls(
            f"Class '{label}' has {rows} row(s), but SMOTE with neighbours={neighbours} needs at "
            f"least {neighbours + 1}: a row and {neighbours} other(s). Pass {fewer}method='over', "
            "which repeats rows, or weight the classes (Reweighted)."
        )

    no_other_neighbours = template("label, neighbours")(
        "All {neighbours} nearest neighbours of every row of class '{label}' belong to the class, "
        "so ADASYN has no row to start from. Pass method='smote', or more neighbours."
    )

    no_danger = template("label, neighbours")(
        "No row of class '{label}' is in danger: for that, at least half, but not all, of its "
        "{neighbours} nearest neighbours must belong to other classes. Pass another "
        "danger_neighbours, or method='smote'."
    )

    of_gaussian = template("label, rows")(
        "Class '{label}' has {rows:n row}, and a Gaussian needs 2 or more. Pass method='over', "
        "which repeats rows."
    )

    of_method_categories = template("method, columns")(
        "method='{method}' needs numbers, and {columns:n column} of X are categories. Pass "
        "method='smote' or 'over', or encode the columns first."
    )

    of_ratio = template("ratio, least")(
        "strategy={ratio:g} is a ratio of rare to frequent rows, and without resampling the "
        "ratio is already {least:.4g}. Pass a larger ratio, up to 1, or 'auto' for equal class "
        "sizes."
    )

    ratio_of_many = template("ratio, labels")(
        "strategy={ratio:g} is a ratio of two classes, but there are {labels:len}: {labels:names "
        "20}. Pass {{class: rows}} or 'auto'."
    )

    of_rows = template("label, requested, rows, method")(
        "Class '{label}' has {rows:n row} and strategy requests {requested}, which "
        "method='{method}' cannot give: 'under' only removes rows, the other methods only add rows."
    )

    of_sample_weight = template("name")(
        "{name} samples whole rows and does not support sample_weight. Weight classes instead of "
        "resampling them (Reweighted, whose fit accepts sample_weight), or omit sample_weight."
    )

    of_weighted_moments = template("label, rows, weight")(
        "Rows are sampled one by one, but in these moments the {rows:n row} of class '{label}' "
        "have weights, {weight:g} in total. Pass moments of unweighted rows, or weight the "
        "classes (Reweighted)."
    )

    nominal_missing = template("column, rows")(
        "Nominal column '{column}' has {rows:n missing cell}. Fill the missing cells, for instance "
        "with a separate category."
    )

    nominal_sparse = template()(
        "Columns of a sparse matrix cannot be nominal. Pass an array or a data frame, or "
        "nominal=None."
    )

    of_nominal = template("columns, width")(
        "nominal={columns!r} names columns that are not among the {width} columns of X. Pass "
        "their names, or their positions counted from 0."
    )


class MixtureError(InputError):
    """A mixture of Gaussian components cannot be fitted to the rows of a class."""

    too_few_rows = template("label, components, rows")(
        "components={components} for class {label!r}, which has {rows:n different row}: pass at "
        "most {rows}, or components='bic'."
    )

    collapsed = template("label, components")(
        "A component of class {label!r} collapsed: it has hardly any rows, or a singular "
        "covariance. The class has {components:n component}. Pass fewer components or "
        "components='bic', shrinkage > 0, or covariance='shared'."
    )


class ClassWeightError(InputError):
    """Class weights are not valid."""

    of_class = template("label, value")(
        "The weight of class '{label}' is {value:g}: it must be positive and finite. To leave a "
        "class out, drop its rows."
    )

    not_supported = template("name")(
        "{name} does not support sample_weight, so its classes cannot be weighted. Resample the "
        "classes (Resampled, EasyEnsemble), or move the threshold afterwards (Decision)."
    )


class StrategyNotEvaluatedWarning(DiscriminantWarning):
    """A strategy for rare classes could not be evaluated by cross-validation."""

    of = template("strategy, fold, why")(
        "Strategy '{strategy}' is not evaluated, because it cannot be fitted without the rows of "
        "fold {fold}: {why} Pass fewer folds, or other strategies."
    )


class CodeError(InputError):
    """A code matrix does not separate the classes, or is not valid."""

    of_shape = template("shape, labels")(
        "The code has shape {shape} for {labels:len} classes: pass one row for each class, in "
        "the order {labels:names 20}, and one column for each classifier."
    )

    of_entry = template("label, column, value")(
        "The code of class '{label}' in column {column} (counted from 0) is {value}: it must be "
        "-1, 0 (the class is left out of that classifier) or 1."
    )

    one_sided = template("column, side")(
        "Column {column} (counted from 0) of the code has no class on side {side:+d}, so there "
        "is nothing to separate. 0 leaves a class out: pass a code of 0 and 1 as 2 * code - 1."
    )

    equal_rows = template("pairs")(
        "{pairs:len} pair(s) of classes are never on opposite sides of a column, so the code "
        "does not separate them: {pairs:pairs}. Add columns that separate these classes, or "
        "merge them."
    )

    too_many = template("kind, columns, classes, most")(
        "The {kind} code of {classes} classes has {columns:,} columns, more than the limit of "
        "{most:,}. Pass code='dense', 'sparse' or 'designed', with any number of `columns`."
    )

    too_long = template("kind, columns, classes, most")(
        "columns={columns} is too many: code='{kind}' has only {most:,} different columns for "
        "{classes} classes, not counting complements. Pass columns={most} or fewer, or None."
    )

    no_search = template("classes, most")(
        "code='optimal' compares all codes, which takes too long for {classes} classes (limit "
        "{most}): the search is NP-hard. Pass code='dense' or 'designed', which compare some codes."
    )

    search_too_long = template("columns, nodes")(
        "The search for the best code of {columns} columns was stopped after {nodes:,} partial "
        "codes. Pass fewer `columns`, or code='dense' or 'designed', which compare some codes."
    )

    @classmethod
    def too_short(cls, kind: str, columns: int, classes: int) -> CodeError:
        return cls(
            f"No {kind} code of {columns} column(s) was found that separates all {classes} classes;"
            f" at least {max((classes - 1).bit_length(), 1)} columns are needed. Pass a larger "
            "`columns`, or None."
        )


class RepeatedColumnsWarning(DiscriminantWarning):
    """Several columns of a code matrix define the same two-class classifier."""

    @classmethod
    def of_columns(cls, pairs: Sequence[tuple[int, int, bool]]) -> RepeatedColumnsWarning:
        shown = enumerate_first(
            [
                f"{first} and {second} ({'complements' if opposite else 'equal'})"
                for first, second, opposite in pairs
            ],
            separator="; ",
        )
        return cls(
            f"{len(pairs)} pair(s) of columns of the code (counted from 0) define the same "
            f"classifier: {shown}. Two such classifiers make the same errors, so the second "
            "corrects nothing: keep one of each pair."
        )


class CouplingWarning(DiscriminantWarning):
    """The coupled class probabilities did not converge."""

    of = template("rows, of_rows, steps, change")(
        "The coupled probabilities of {rows} of {of_rows} rows still change by {change:.1e} "
        "after {steps} steps, so further digits are not reliable. The classes that `predict` "
        "returns do not depend on these probabilities."
    )


class ShrinkageChosenWarning(DiscriminantWarning):
    """A covariance has no inverse, because there are too few rows, so it was shrunk."""

    of = template("what, rank, features, amount")(
        "{what} has rank {rank} for {features} features, so it has no inverse: there are too few "
        "rows, or columns depend on others. The covariance was shrunk by {amount:.3g} towards "
        "its diagonal (OAS). Pass shrinkage= to choose the amount, or keep fewer features."
    )


class ScarceRowsWarning(DiscriminantWarning):
    """There are so few rows that the inverse covariance is inaccurate and predictions suffer.

    If rows are Gaussian, the inverse of a covariance of d features with m degrees of freedom is on
    average m / (m - d - 1) times the true inverse.
    """

    one_row_per_class = template("classes")(
        "Each of the {classes} classes has one row, so the variance within classes cannot be "
        "estimated. A row is predicted as the class of the nearest training row, but probabilities "
        "are not reliable: they are based on the variance of all rows. Add rows."
    )

    @classmethod
    def of(cls, what: str, *, rows: int, degrees: int, features: int) -> ScarceRowsWarning:
        left = degrees - features - 1
        factor = f"about {degrees / left:.2g}-fold" if left > 0 else "without bound"
        return cls(
            f"{what} of {features} features comes from {rows} rows ({degrees} degrees of freedom), "
            f"fewer than two per feature: its inverse is overestimated {factor}, so predictions on "
            "new rows suffer. Pass shrinkage='auto', use RDA(pooling='cv', shrinkage='cv'), or "
            f"keep at most {format_count(degrees // 2, 'feature')}."
        )

    of_predictive = template("what, degrees, features")(
        "{what} has {degrees:.3g} degrees of freedom, and a Student-t density of {features} "
        "features needs {features}, so the covariance is treated as if it had {features}. Pass a "
        "larger shrinkage=, add rows, or keep fewer features."
    )


class NoFeatureSelectedWarning(DiscriminantWarning):
    """A sparse model has no feature left."""

    of_threshold = template("threshold, largest, column")(
        "threshold={threshold:g} removes every feature, so every row is predicted as the class "
        "with the largest prior. The largest standardised difference is {largest:.4g} (column "
        "'{column}'). Unless cross-validation chose this threshold, pass a smaller one, or "
        "threshold='cv'."
    )

    of_penalty = template("penalty")(
        "penalty={penalty:g} removes every feature, so every row is predicted as the class with "
        "the largest prior. Unless cross-validation chose this penalty, pass a smaller one, or "
        "penalty='cv'."
    )

    of_fdr = template("fdr, smallest, column")(
        "No feature has a false discovery rate of at most {fdr:g}, so every row is predicted as "
        "the class with the largest prior. The smallest rate is {smallest:.3g} (column "
        "'{column}'): pass a larger fdr, or the number of features."
    )

    of_constant = template()(
        "All columns are constant within and between the classes, so no feature can be selected "
        "and every row is predicted as the class with the largest prior. Add other columns."
    )


class NoRobustEstimateWarning(DiscriminantWarning):
    """Robust estimates cannot be computed from the rows of a class, so other estimates are used."""

    few_rows = template("what, rows, features, least, instead")(
        "{what} has {rows:n row} for {features:n feature}, and a robust covariance needs at least "
        "{least}. {instead} Add rows, or keep fewer features."
    )

    equal_values = template("what, columns, instead")(
        "{what} has equal values of {columns:names} in half of its rows or more, so its robust "
        "covariance has no inverse. {instead} Leave such columns out if outlying rows matter."
    )

    on_hyperplane = template("what, instead")(
        "{what} has linearly dependent columns in half of its rows or more, so its robust "
        "covariance has no inverse. {instead} Leave one of the dependent columns out."
    )


class MaskedClassWarning(DiscriminantWarning):
    """A class is never predicted on the rows that the rule was fitted to."""

    of_classes = template("labels")(
        "Class(es) {labels:names} are masked on the training rows: no row is predicted as one of "
        "them (masked_everywhere_ lists classes that are predicted at no point of the feature "
        "space). Use LDA, or a quadratic basis (degree=2)."
    )


class NotConvergedWarning(DiscriminantWarning):
    """An iteration stopped before it converged."""

    of = template("what, steps, change, tolerance")(
        "{what} stopped after {steps} steps with a change of {change:.1e} (tolerance "
        "{tolerance:.1e}). Raise the number of steps or scale the columns."
    )

    of_gap = template("what, steps, gap, tolerance")(
        "{what} stopped after {steps} steps; its objective may still exceed the minimum by a "
        "relative {gap:.1e} (tolerance {tolerance:.1e}). Raise max_steps, or scale the columns "
        "(standardize=True)."
    )

    of_gradient = template("what, passes, gradient, tolerance, way_out=None")(
        "{what} stopped after {passes} passes with a scaled gradient of {gradient:.1e} (tolerance "
        "{tolerance:.1e}), so its last digits are not reliable. Raise max_iter, or "
        "{way_out:?{way_out}|pass ridge > 0 if the columns are nearly collinear}."
    )

    of_perceptron = template("wrong, rows, passes, *, weights, separable")(
        "The perceptron did not converge in {passes} passes: {wrong} of {rows} rows are "
        "misclassified by the {weights}. {separable:?A linear programme shows that a separating "
        "boundary exists, so more passes will find it: pass max_passes={10 * passes}.|It is not "
        "known whether a separating boundary exists: pass max_passes={10 * passes} to continue. If "
        "the classes overlap, use LDA, Logistic or SVM, or add features (Basis).}"
    )

    of_average = template("wrong, rows")(
        "The average of the perceptron's weights has not converged: it misclassifies {wrong} of "
        '{rows} rows, though the final weights classify every row correctly. Pass keep="pocket" '
        "to use the final weights."
    )

    of_mixture = template("steps, change, tolerance")(
        "EM stopped after {steps} steps with a change of {change:.1e} of the mean log likelihood "
        "(tolerance {tolerance:.1e}). Raise max_steps or tolerance."
    )

    of_factors = template("steps, factors")(
        "The covariance with {factors:n factor} has not converged after {steps} steps. Pass fewer "
        "factors, or covariance='full'."
    )

    of_missing_cells = template("steps, change, tolerance")(
        "EM for missing cells stopped after {steps} steps with a change of {change:.1e} standard "
        "deviations (tolerance {tolerance:.1e}): a column may have hardly any values. "
        "Exclude columns that are mostly missing."
    )

    of_priors = template("steps, gap, tolerance")(
        "The estimate of the priors stopped after {steps} steps; the log likelihood per row may "
        "still be {gap:.1e} below its maximum (tolerance {tolerance:.1e}). Raise max_iter."
    )


class ClassMissingWarning(DiscriminantWarning):
    """All rows of a class are in one fold, so its held-out predictions are wrong."""

    of_class = template("label, fold, rows")(
        "All {rows:n row} of class '{label}' are in fold {fold}, so the model for that fold does "
        "not know the class and its log posterior there is -inf. Use fewer folds, distribute the "
        "class over folds, or leave the class out."
    )

    of_choice = template("label, rows")(
        "All {rows:n row} of class '{label}' are in one fold, so cross-validation chooses the "
        "penalty or shrinkage without held-out predictions of this class. Use fewer folds, add "
        "rows, or pass a number."
    )


class NoPosteriorWarning(DiscriminantWarning):
    """A classifier gives decisions but no posteriors."""

    of = template("name")(
        "{name} has neither predict_log_proba nor predict_proba, so its log posterior is 0 for "
        "the class it predicts and -inf for the others. Wrap the classifier, for instance in "
        "sklearn.calibration.CalibratedClassifierCV, to get posteriors."
    )

    of_measures = template("name")(
        "{name} has neither predict_log_proba nor predict_proba, so log loss, Brier score, "
        "calibration and moved thresholds are left out; AUC and average precision use "
        "decision_function, if there is one. Wrap the classifier, for instance in "
        "sklearn.calibration.CalibratedClassifierCV, to get posteriors."
    )


class NotSeparatedWarning(DiscriminantWarning):
    """No linear boundary separates the classes, so a perceptron does not converge."""

    of = template("wrong, rows, passes, *, weights, proof")(
        "The classes are not linearly separable: after {passes} passes {wrong} of {rows} rows "
        "are misclassified by the {weights}. {proof} that no linear boundary separates them, so "
        "more passes do not help. For overlapping classes use LDA, Logistic or SVM, or add "
        "features (Basis)."
    )


class SeparationWarning(DiscriminantWarning):
    """Linear scores separate the classes, so maximum-likelihood estimates are infinite."""

    @classmethod
    def of(
        cls, kind: str, columns: Sequence[str], classes: Sequence[tuple[object, object]]
    ) -> SeparationWarning:
        pairs = [f"{one}' and '{other}" for one, other in classes]
        by = f"column(s) {quote(columns)}" if columns else "the intercept"
        how = (
            "completely separated: a linear score classifies every row correctly"
            if kind == "complete"
            else "quasi-completely separated: no row is misclassified, but some lie exactly on "
            "the boundary"
        )
        return cls(
            f"Class(es) {quote(pairs)} are {how}. So there is no finite maximum-likelihood "
            f"estimate: coefficients and standard errors of {by} grow without limit and are "
            'meaningless. Pass bias_reduction="jeffreys" (Firth) or ridge > 0, or drop the '
            "column or merge the category that separates the classes, for instance a column "
            "derived from the label or a rare category."
        )

    of_ordered = template("labels")(
        "A score separates ordered classes ({labels:names 20}), so there is no finite "
        "maximum-likelihood estimate: coefficients and thresholds grow without limit. Pass ridge > "
        "0, or drop the column that separates the classes, for instance a column derived from the "
        "label."
    )


class ClassOrderWarning(DiscriminantWarning):
    """The classes are probably not ordered as assumed."""

    of = template("low, high, z")(
        "The mean score of class {low!r} is above that of class {high!r} ({z:.1f} standard "
        "errors), although {low!r} is the lower class. Check order=, or fit Logistic, which "
        "assumes no order."
    )


class InferenceError(InputError):
    """Standard errors, intervals or tests are not available."""

    of_ridge = template("ridge")(
        "ridge={ridge:g} biases the estimates, so standard errors, intervals and tests of "
        "maximum likelihood are not valid. Fit with ridge=0, or resample the rows."
    )

    of_logistic = template("why")("There are no standard errors, intervals or tests: {why}")

    needs_rows = template("what")(
        "{what} reads the rows again, and a fitted model stores no rows. Pass X and y (and "
        "sample_weight and offset, if there were any) as they were passed to fit."
    )

    no_odds = template("title")(
        "The estimates of {title} are not log odds: only a logit link gives log odds. Fit with "
        "link='logit'; for ratios of means with a log link call rate_ratios()."
    )

    no_rates = template("title")(
        "The estimates of {title} are not logarithms of means; only a log link gives those. "
        "Fit with link='log'; for odds ratios with a logit link call odds_ratios()."
    )

    not_converged = template("what, gradient")(
        "{what} starts from the maximum of the likelihood, and this fit has not converged: the "
        "scaled gradient is {gradient:.1e}. Raise max_iter and fit again."
    )

    not_single = template("what")(
        "{what} are defined for a model with one score: two classes, or one response. Fit two "
        "classes at a time."
    )

    one_cluster = template()(
        "groups has one cluster, and a clustered covariance needs at least two, preferably dozens. "
        "Pass cov='HC1' for errors without clusters."
    )

    too_few_for_hc1 = template("rows, estimates")(
        "HC1 divides by the number of rows minus the number of estimates, and there are {rows} "
        "rows for {estimates} estimates. Keep fewer columns."
    )

    few_groups = template("groups")(
        "The fitted probabilities form {groups:n group}, and the test of Hosmer and Lemeshow needs "
        "three or more. Pass test='le_cessie', which needs no groups."
    )

    only_logit = template("test, link")(
        "The test '{test}' is for two classes with the logit link, and this fit has "
        "link='{link}'. Pass test='hosmer_lemeshow'."
    )

    biased = template("what")(
        "{what} needs a maximum-likelihood fit, and this one has bias_reduction='jeffreys'. Fit "
        "with bias_reduction=None."
    )

    no_error = template("names")(
        "The contrast uses estimates without a standard error ({names:names}), since columns "
        "depend on one another. Drop the columns that the warning of the fit names."
    )

    no_mean_error = template("names")(
        "Intervals of predictions are not available: the coefficients of {names:names} are not "
        "identified, since columns are constant or depend on one another. Drop the columns that "
        "the warning of the fit names."
    )

    dependent_contrasts = template("contrasts, rank")(
        "The {contrasts} contrasts are linearly dependent (rank {rank}). Leave out "
        "{contrasts - rank} of them."
    )

    unknown_estimate = template("name, names")(
        "{name!r} is not an estimate of this model; its estimates are {names:names 20}."
    )

    other_models = template("one, other")(
        "The fits are of different models ('{one}' and '{other}'), so a likelihood-ratio test "
        "does not apply. Fit both with the same class and options, or compare their AIC."
    )

    other_rows = template("rows, other, null, other_null")(
        "The models were fitted to different rows: {rows} and {other} rows, with null deviances of "
        "{null:.9g} and {other_null:.9g}. Fit both models to the same rows."
    )

    not_nested = template("names")(
        "The models are not nested{names:?: {names:names} are only in the smaller model|}. One "
        "model must have all columns of the other and at least one more. Name columns by passing "
        "data frames."
    )

    other_gradient = template("gradient")(
        "These are not the rows of the fit: the fit converged on its own rows, but on these rows "
        "the scaled gradient is {gradient:.1e}. Pass X, y, sample_weight and offset as they were "
        "passed to fit."
    )

    other_deviance = template("deviance, fitted")(
        "These are not the rows of the fit: their deviance is {deviance:.9g}, but the deviance "
        "of the fit was {fitted:.9g}. Pass X, y, sample_weight and offset as they were passed to "
        "fit."
    )

    @classmethod
    def too_wide(cls, what: str, rows: float, classes: int, features: int) -> InferenceError:
        return cls(
            f"{what} of {features} features needs {features + classes} or more rows in {classes} "
            f"classes, and there are {rows:g}: the within-class scatter has no inverse. Add rows "
            f"or keep at most {format_count(max(int(rows) - classes, 0), 'feature')}: "
            "moments.select([...])."
        )

    collinear = template("what, columns, rank, features")(
        "{what}: column(s) {columns:names} depend linearly on one another within classes (rank "
        "{rank} of {features}), so the scatter has no inverse. Leave out {features - rank} of "
        "the columns: moments.select([...])."
    )

    no_variance = template("what, columns")(
        "{what}: column(s) {columns:names} do not vary within any class but differ between "
        "classes, so they separate the classes without error, F is infinite and there is nothing "
        "to test. If a column was derived from the label, drop it: moments.select([...])."
    )

    all_constant = template("what, columns")(
        "{what}: none of the {columns:len} column(s) {columns:names} varies, so there is nothing "
        "to test. Read columns that vary."
    )

    @classmethod
    def small_classes(
        cls, what: str, labels: Sequence[object], rows: Sequence[float], features: int
    ) -> InferenceError:
        shown = ", ".join(f"'{k}': {n:g}" for k, n in list(zip(labels, rows, strict=True))[:5])
        return cls(
            f"{what} of {features} features needs {features + 1} or more rows in every class; "
            f"these have too few: {shown}. Leave these classes out (moments.classes([...])), merge "
            "them (moments.group({...})) or keep fewer features (moments.select([...]))."
        )

    constant_in_class = template("what, label, columns")(
        "{what}: column(s) {columns:names} are constant in class '{label}', so its covariance "
        "has no inverse. Leave out the columns (moments.select([...])) or the class "
        "(moments.classes([...]))."
    )

    not_two = template("what, labels")(
        "{what} compares two classes, and there are {labels:len} ({labels:names}). Pass "
        "labels=(one, other), or the moments of two tables."
    )


class BoundaryWarning(DiscriminantWarning):
    """The likelihood is largest for infinite coefficients or at a limit of the range of means."""

    of = template("name, passes, step")(
        "{name} has no finite estimate: after {passes} passes the gradient vanishes, but the "
        "coefficients still move by {step:.1e} per step. Some fitted means approach the limit of "
        "their range (0, or 1); this happens if a column separates the zeros from the other "
        "responses. The standard errors of this fit are meaningless. Drop that column, or pass "
        "ridge > 0."
    )

    of_edge = template("name")(
        "{name}: the likelihood is largest at the boundary of the range of means, where some "
        "rows have a fitted mean of 0 (or, for proportions, 1). The coefficients are optimal "
        "within the valid range of means, but there are no standard errors. If a boundary is not "
        "intended, choose a link without one (logit, or log for counts)."
    )


class NoEstimateError(InferenceError):
    """Standard errors are not available because the likelihood has no interior maximum."""

    of_edge = template("name")(
        "{name} has no standard errors, intervals or tests: its likelihood is largest at the "
        "boundary of the range of means, where its gradient is not zero. Choose a link without "
        "such a boundary (logit, or log for counts), or resample the rows."
    )

    of_infinite = template("name")(
        "{name} has no standard errors, intervals or tests: its likelihood increases towards "
        "infinite coefficients, so there is no finite estimate. Drop the column that separates "
        "the classes, pass ridge > 0, or for two classes fit Logistic(bias_reduction='jeffreys')."
    )


class NoPenaltyWarning(DiscriminantWarning):
    """An option that concerns the penalty was passed, but there is no penalty."""

    of = template("name, value")(
        "{name}={value:g} has no effect without a penalty, and ridge is 0, so this is a "
        "maximum-likelihood fit. Pass ridge > 0, the strength of the penalty, or leave out "
        "{name}."
    )


class LabelSetError(InputError):
    """Label sets are not valid."""

    of_shape = template("shape")(
        "y has shape {shape}. Pass one label for each row, a list of label sets, or a matrix "
        "with one row for each row of X and one column for each label, 1 where the row has it."
    )

    of_entry = template("row, column, value")(
        "y[{row}, {column}] is {value}: an entry must be 1 where the row has the label and 0 or "
        "missing elsewhere."
    )

    of_names = template()(
        "The labels are names, but these files store labels as numbers. Pass a matrix with a "
        "column for each label, such as "
        "sklearn.preprocessing.MultiLabelBinarizer(sparse_output=True).fit_transform(sets)."
    )

    not_a_set = template("row, kind")(
        "y[{row}] is a {kind}, but y[0] is a set of labels. Pass a set, a list or a tuple for "
        "every row; for a row without labels, pass an empty set."
    )

    all_empty = template("rows")(
        "None of the {rows} rows has a label, so there is nothing to learn. Pass rows with labels."
    )

    one_label = template("label")(
        "There is only one label ('{label}'), and a label tree needs two or more. To separate "
        "rows with the label from rows without it, pass y as one label for each row, such as "
        "'yes' and 'no'."
    )


class LabelTreeError(InputError):
    """A label tree does not support what was requested."""

    overflows_float32 = template("row, column")(
        "Row {row} (counted from 0), column '{column}' is too large for float32 (more than "
        "3.4e38). Pass precision='float64', or scale the rows."
    )

    @classmethod
    def squares_overflow(cls, row: int, column: str, kind: str, most: float) -> LabelTreeError:
        other = "" if kind == "float64" else "precision='float64', "
        return cls(
            f"Row {row} (counted from 0), column '{column}' is too large to be squared in {kind} "
            f"(more than {most:.2g}). Pass {other}unit_rows=True, or scale the rows."
        )

    overflows_float16 = template("largest")(
        "A weight of {largest:.3g} is too large for float16, whose largest number is 65504. Pass "
        "precision='float32', or scale the rows up."
    )

    sparse_to_standardize = template()(
        "standardize=True needs dense rows: centring the columns of a sparse matrix would make it "
        "dense. Pass standardize=False and scale the columns first "
        "(sklearn.preprocessing.MaxAbsScaler keeps zeros), or pass X.toarray()."
    )

    invalid_sparse_rows = template("why")(
        "The sparse matrix X is not valid: {why}. Build the matrix again with "
        "scipy.sparse.csr_array((data, indices, indptr), shape=...), or call its check_format()."
    )

    too_many_cells = template("rows, labels, most")(
        "Probabilities of {rows:,} rows and {labels:,} labels are {rows * labels:,} numbers, more "
        "than the limit of {most:,}. Pass k for a sparse matrix of the k best labels of each row, "
        "use predict_topk, or pass fewer rows at a time."
    )

    moments_of_sets = template()(
        "tree='moments' needs one label for each row, since class moments are sums over the rows "
        "of one class, but y has label sets. Pass tree='balanced' for label sets."
    )

    needs_rows = template("tree")(
        "LabelTree(tree={tree!r}) is fitted to rows, not to moments. Pass the rows to fit(X, y), "
        "or choose LabelTree(tree='moments'), whose tree is built from class moments."
    )


class HierarchyError(InputError):
    """A hierarchy is not a tree over the labels."""

    @classmethod
    def cycle(cls, nodes: Sequence[object]) -> HierarchyError:
        path = " -> ".join(f"'{node}'" for node in list(nodes)[:10])
        return cls(
            f"The hierarchy has a cycle: {path}. Every node must lead up to the root: remove one "
            "of these links."
        )

    orphan = template("labels")(
        "{labels:len} label(s) are not in the hierarchy: {labels:names}. Add the labels to the "
        "hierarchy, or leave out their rows."
    )

    duplicate = template("label, places")(
        "Label '{label}' occurs {places:len} times in the hierarchy: {places:list 5}. Keep one of "
        "them."
    )

    two_parents = template("node, parents")(
        "Node '{node}' has {parents:len} parents in the hierarchy, {parents:names}. A node has "
        "one parent: keep one of these pairs."
    )

    @classmethod
    def unknown(cls, leaves: Sequence[object], place: str) -> HierarchyError:
        where = f"at {place}" if place.startswith("tree") else place
        return cls(
            f"{len(leaves)} leaf node(s) of the hierarchy are not labels: {quote(leaves)}; the "
            f"first is {where}. Leaves are the labels of y, with the same names and types: leave "
            "out all other leaves."
        )

    empty_node = template("count, place")(
        "The node {place} of the hierarchy is empty{count:more}: it has no label below it. Leave "
        "the node out, or add labels."
    )

    empty = template("labels")(
        "The hierarchy is empty, but there are {labels} labels to place in it. Pass nested lists "
        "of labels, a dict from each node to its parent, or tree='balanced'."
    )

    @classmethod
    def two_roots(cls, roots: Sequence[object]) -> HierarchyError:
        pairs = ", ".join(f"({root!r}, 'all')" for root in list(roots)[:2])
        return cls(
            f"The hierarchy has {len(roots)} roots: {quote(roots)}. Put one node above them: "
            f"{pairs}{', ..' if len(roots) > 2 else ''}."
        )

    def with_hint(self, intended: str | None) -> HierarchyError:
        """Append a hint: 'groups' if tuples may mean groups, 'pairs' if lists may mean pairs."""
        hints = {
            "groups": " Tuples of two are read as (child, parent): if these are groups of "
            "labels, write lists, [['a', 'b'], ['c', 'd']].",
            "pairs": " Lists are groups of labels: if these are pairs of child and parent, write "
            "tuples, [('a', 'top'), ('b', 'top')], or a dict.",
        }
        return self if intended is None else type(self)(f"{self}{hints[intended]}")

    of_kind = template("kind")(
        "A hierarchy cannot be built from a {kind}. Pass nested lists of labels, a dict from "
        "each node to its parent, or a name: tree='balanced', 'wide', 'huffman', 'moments', "
        "'one-vs-rest'."
    )


class UnseenLabelsWarning(DiscriminantWarning):
    """Some labels have no rows."""

    of = template("labels, of_labels")(
        "{labels:len} of {of_labels:,} labels have no row, so nothing is learnt about them and "
        "they are hardly ever predicted: {labels:names}."
    )


class UnlabelledRowsWarning(DiscriminantWarning):
    """Some rows have no labels."""

    of = template("rows, of_rows")(
        "{rows:,} of {of_rows:,} rows have no label, so nothing is learnt from them. Give these "
        "rows labels, or drop them."
    )

    dropped = template("rows, of_rows")(
        "{rows:,} of {of_rows:,} rows have no label and are dropped."
    )


class LongRowsWarning(DiscriminantWarning):
    """Rows have large norms, so weights are small, and the threshold removes relevant weights."""

    of = template("length, threshold")(
        "Rows have a median length of {length:.3g}, so weights are small, and "
        "threshold={threshold:g} removes weights that matter. Pass unit_rows=True (best for "
        "words), standardize=True (for columns of different units), or threshold={threshold / "
        "length:.1g}."
    )


class MomentsMismatchError(InputError):
    """Two summaries of rows, such as moments, cannot be added or subtracted."""

    @classmethod
    def of_features(cls, ours: Sequence[str], theirs: Sequence[str]) -> MomentsMismatchError:
        missing = [name for name in ours if name not in set(theirs)]
        extra = [name for name in theirs if name not in set(ours)]
        difference = (
            f"only in the first: {quote(missing) or 'none'}; "
            f"only in the second: {quote(extra) or 'none'}"
            if missing or extra
            else "the same names in another order"
        )
        return cls(
            f"Moments of {len(ours)} and {len(theirs)} features cannot be added ({difference}). "
            "Select the common features first: moments.select([...])."
        )

    of_detail = template("ours, theirs")(
        "Moments of detail '{ours}' and '{theirs}' cannot be added. First reduce the moments of "
        "finer detail with moments.reduce(detail)."
    )

    needs_detail = template("what, needed, detail")(
        "{what} needs moments of detail '{needed}', but these have detail '{detail}'. Compute "
        "moments(X, y, detail='{needed}')."
    )

    neither = template("what, kind, detail")(
        "{what} needs rows and their labels, or their moments, but got only an object of type "
        "{kind}. Pass X and y, or moments(X, y, detail='{detail}')."
    )

    of_shape = template("name, shape, expected")(
        "'{name}' has shape {shape}, but these classes, features and detail need {expected}. "
        "Read moments with moments(X, y), or start from ClassMoments.empty(...)."
    )

    of_removal = template("label, rows, removed")(
        "Cannot remove {removed:n row} of class '{label}': the moments include only {rows}. "
        "Check the labels of the rows to remove."
    )

    of_weight_removal = template("label, weight, removed")(
        "Cannot remove weight {removed:g} from class '{label}', whose total weight is "
        "{weight:g}. A row must be removed with the weight with which it was added."
    )

    of_rows = template("label, missing, removed, rows")(
        "Cannot remove {missing} of {removed:n row} of class '{label}': they are not among the "
        "{rows} stored, with the same values and weight. Pass rows exactly as they were passed "
        "to fit."
    )

    not_stored = template("features")(
        "The fit to {features} features stored no moments, because it has fewer rows than "
        "features, so rows cannot be added or removed. Fit again to all rows."
    )

    known_parameters = template("what")(
        "{what} requires rows or their moments, but this model was created from known parameters. "
        "Fit a model to rows, fit(X, y), or to moments, fit_moments(moments)."
    )

    not_included = template("label")(
        "The rows to remove cannot have been among the rows of {label:?class '{label}'|the "
        "classes}: without them a variance would be negative. Check their labels, values and "
        "weights."
    )


class SitesError(MomentsMismatchError):
    """The columns of two tables are encoded differently, so their moments cannot be combined."""

    of_option = template("what, ours, theirs")(
        "Moments cannot be added: the first were read with {what}={ours!r}, the second with "
        "{what}={theirs!r}. Read both tables with the same value (--{what})."
    )

    of_absent = template("column, *, first")(
        "Moments cannot be added: column '{column}' is used in the {first:?first|second} but not "
        "in the {first:?second|first}. Read both tables without it (exclude=['{column}']), or with "
        "the same columns (columns=[...])."
    )

    of_kinds = template("column, ours, theirs")(
        "Moments cannot be added: column '{column}' is {ours} in the first and {theirs} in the "
        "second. Read the column in the same way in both tables: as a category "
        "(categories=['{column}']), or not at all (exclude=['{column}'])."
    )

    of_reference = template("column, ours, theirs")(
        "Moments cannot be added: the reference level of column '{column}' is {ours!r} in the "
        "first and {theirs!r} in the second, so its indicators mean different things. Read both "
        "tables with reference=None (--reference none), which keeps all levels."
    )

    of_order = template("column, ours, theirs")(
        "Moments cannot be added: the levels of column '{column}' are {ours:names} in the first "
        "and {theirs:names} in the second. List all levels for both tables (ordered, --ordered)."
    )


class PrecisionLostError(DiscriminantError, ArithmeticError):
    """Removing rows would leave moments with too few correct digits."""

    @classmethod
    def of_column(cls, column: str, label: object, digits: float) -> PrecisionLostError:
        return cls(
            f"After this removal the variance of column '{column}' (class '{label}') would have "
            f"{max(digits, 0):.1f} correct digits left, since the remaining rows vary far less "
            "than the removed ones. Read the remaining rows again instead."
        )


class DecompositionError(DiscriminantError, ArithmeticError):
    """A matrix decomposition did not converge."""

    of_svd = template("rows, columns")(
        "The singular value decomposition of a matrix of {rows:,} by {columns:,} did not converge, "
        "because its columns are nearly collinear or of very different scales. Leave out redundant "
        "columns, or standardise the columns."
    )
