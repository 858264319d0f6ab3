"""Classification by least squares: regression on class codes, with a check for masked classes.

The regression is in `models.linear.least_squares` and is computed from moments. The rows are read
again only if columns are nearly collinear: for their triangular factor, whose condition number is
not squared.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from discriminant.assessment.resampling.folds import PartitionedFolds, fold_moments
from discriminant.assessment.resampling.leave_one_out import least_squares_left_out_scores
from discriminant.assessment.resampling.penalty_search import (
    ChoiceRule,
    PenaltyPath,
    PenaltySearch,
    check_penalty,
    is_cv,
    least_squares_penalty_path,
)
from discriminant.engines.dispatch import anchor_of, fold, read_classes, read_moments
from discriminant.engines.partitioned_table import AnyTable, PartitionedTable
from discriminant.errors import MaskedClassWarning, OptionError, PosteriorError, ShapeError, warn
from discriminant.estimators.base import (
    LinearMomentClassifier,
    Prior,
    check_choice,
    predicted_codes,
    second_minus_first,
)
from discriminant.estimators.linear.linear_regressor import (
    KEEPS_ROWS,
    NEEDS_ROWS,
    PRECISIONS,
    STORED_MOMENTS,
)
from discriminant.models.gaussian.family import class_prior
from discriminant.models.gaussian.wide import is_wide
from discriminant.models.linear.least_squares import (
    CODINGS,
    REPRODUCIBLE_DIGITS,
    Coding,
    IndicatorRule,
    LeastSquaresProblem,
    class_codes,
    class_problem,
    class_rule,
    factor_problem,
    never_predicted_classes,
    origin_and_unit_with_codes,
)
from discriminant.models.rules import LinearRule, Rule
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.confusion import PredictedCountsReading
from discriminant.moments.qr_factor import ScatterFactor, ScatterFactorReading
from discriminant.moments.rows_instead_of_moments import ClassRows
from discriminant.posterior import posterior
from discriminant.table.basis import ExpandedFeatures, PolynomialBasis
from discriminant.table.blocks import Floats, Labels
from discriminant.table.memory import Table

_ENOUGH_DIGITS = 8.0  # number of correct digits that a fit from moments must have
_SEED = 1  # seed of the folds of a partitioned table; an outer cross-validation uses another one


class LeastSquares(LinearMomentClassifier):
    """Classification by least squares: regress class codes on the features, and predict the class
    with the largest fitted value.

    The model is fast and simple. With two classes, `coef_` has the direction of Fisher's
    discriminant. With three or more classes, a class may be masked by others, so that it is never
    predicted: a warning names the classes that are predicted for no training row (`masked_`). LDA
    does not mask classes.

    Parameters
    ----------
    coding : {'indicator', 'sign', 'fisher'}, default 'indicator'
        Responses of the regression. 'indicator': 0 and 1; the fitted values sum to one. 'sign': -1
        and 1; the decisions are the same. 'fisher', for two classes: N/N_1 and -N/N_2, which gives
        both classes equal weight.
    degree : {1, 2, 3}, default 1
        Degree of the polynomial terms. 2 adds the products of two features, which can unmask a
        class; 3 adds those of three too. `moments_.features` names the terms, which are computed
        about an origin near the rows; `coef_` and `ridge` refer to these terms.
    ridge : float or 'cv', default 0.0
        Penalty on the sum of squared coefficients, as in `LinearRegression`. 'cv': the penalty with
        the smallest held-out squared error, which is computed from the moments of the folds.
    precision : {'auto', 'standard', 'high'}, default 'auto'
        'standard': fit from moments. 'high': fit from the triangular factor of the rows, which
        `partial_fit` then stores. 'auto': as 'high' if columns are nearly collinear and the rows
        are available, otherwise as 'standard'.
    ridges : None, int or array of shape (P,), default None
        Penalties that ridge='cv' compares: an array of penalties, or the number of penalties on a
        geometric sequence. None means 50.
    folds : int, array of shape (n,) or splitter, default 10
        Folds for ridge='cv'; as in `cross_validate`.
    rule : {'min', 'one_se'}, default 'min'
        Choice for ridge='cv': the penalty with the smallest held-out squared error, or the largest
        within one standard error of it.

    Attributes
    ----------
    ridge_ : float
        Penalty of the fit.
    path_ : PenaltyPath or None
        With ridge='cv': penalties, mean held-out squared errors and their standard errors.
        `partial_fit` and `forget` keep the chosen penalty; `fit` chooses again.
    prior_, means_ : arrays of shape (K,) and (K, d)
        Class shares and class means.
    coef_, intercept_ : arrays of shape (K, d) and (K,); (1, d) and (1,) for two classes
        Coefficients of `decision_function` in the user's units.
    beta_ : array of shape (d + 1,), or (d + 1, K) for more than two classes
        Coefficients of `fitted_values` as in textbooks, (X'X)^-1 X'y, with the intercept first.
    threshold_ : float or None
        Threshold on `fitted_values` between two classes; None for more classes.
    masked_ : array or None
        Labels that are predicted for no training row; None after `fit_moments` or `partial_fit`.
    masked_everywhere_ : array or None
        Labels that do not have the largest fitted value anywhere in the feature space. These labels
        are also in `masked_`. Often no class is masked everywhere: with K - 1 or more features in
        general position, every class has a region where it is predicted, possibly far from all
        rows. The attribute is computed on first access, by one linear programme per class; None if
        `degree` is 2 or 3.

    See Also
    --------
    LDA : Linear boundaries without masking, with probabilities.
    LinearRegression : Regression of numeric responses.

    Notes
    -----
    With two classes, `decision_function`, `coef_` and `intercept_` are the difference of the two
    fitted values. The difference is 2 f - 1 if f is the regression on the codes 0 and 1, and 2 f if
    f is the regression on -1 and 1. `fitted_values` and `beta_` are those of the regression itself.
    Fitted values are not probabilities: `predict_proba` sets negative values to zero and divides by
    the sum. Therefore `predict` does not accept `prior`, `Decision` and `Fusion` reject this model
    unless it is calibrated, and it has no log loss.

    Examples
    --------
    >>> model = LeastSquares().fit([[0.0], [1.0], [4.0], [5.0]], ["low", "low", "high", "high"])
    >>> model.predict([[0.4], [4.4]]).tolist()
    ['low', 'high']
    """

    probabilistic = False
    masked_: npt.NDArray[Any] | None
    path_: PenaltyPath | None = None
    _basis: PolynomialBasis | None
    # factor of the features and of the indicators of `moments_.labels`
    _factor: ScatterFactor | None

    def __init__(
        self,
        *,
        coding: Coding = "indicator",
        degree: Any = 1,
        ridge: Any = 0.0,
        precision: Any = "auto",
        ridges: int | npt.ArrayLike | None = None,
        folds: Any = 10,
        rule: ChoiceRule = "min",
    ) -> None:
        self.coding = coding
        self.degree = degree
        self.ridge = ridge
        self.precision = precision
        self.ridges = ridges
        self.folds = folds
        self.rule = rule

    @property
    def detail(self) -> Detail:
        """Level of detail of the moments that a fit needs: one scatter for all classes."""
        return "pooled"

    @property
    def needs_rows(self) -> bool:
        """Whether a fit needs rows, for products of features or for high precision."""
        return bool(self.degree != 1 or self.precision == "high" or is_cv(self.ridge))

    @property
    def ridge_(self) -> float:
        """Penalty of the fit."""
        self._check_is_fitted()
        return self._asked._penalty()

    def _penalty(self) -> float:
        if not is_cv(self.ridge):
            return float(self.ridge)
        if self.path_ is None:
            raise OptionError.of("ridge", "cv", "a number if there are no rows to hold out")
        return self.path_.ridge

    def _penalty_search(self) -> PenaltySearch:
        options = self.options_in_effect()
        return PenaltySearch(options["ridges"], options["folds"], "squared_error", self.rule)

    def _choose_penalty(self, table: AnyTable) -> None:
        """Set `path_`, the held-out squared errors of a path of penalties."""
        if is_wide(len(table), table.width):
            allowed = f"a number for {table.width:,} features and {len(table):,} rows"
            raise OptionError.of("ridge", "cv", allowed)
        search = self._penalty_search()
        if isinstance(table, PartitionedTable):
            parts = PartitionedFolds.of(table, self.folds, seed=_SEED, detail="pooled").parts
            moments = [part for part in parts if part.rows.any()]
        else:
            table = _drop_empty_classes(table)
            assert isinstance(table, Table)
            moments = fold_moments(table, search.fold_of_rows(table, split_classes=True), "pooled")
        self.path_ = least_squares_penalty_path(moments, self.coding, search)

    def needs_rows_for(self, moments: Any) -> bool:
        """Return whether moments are not accurate enough for a fit, so that it needs the rows."""
        return self._problem(moments).solver.digits < REPRODUCIBLE_DIGITS

    def detail_for(self, rows: int, width: int) -> Detail:
        """Return the level of detail to read: 'rows' if there are more features than rows."""
        return "rows" if is_wide(rows, width) else "pooled"

    def prior_from(self, moments: ClassMoments | ClassRows) -> Floats:
        """Return the implicit class priors (K,): class shares, or equal for 'fisher' coding."""
        if self.coding == "fisher":
            return np.full(len(moments.labels), 1.0 / len(moments.labels))
        return class_prior(moments, None)

    def rule_from(self, moments: Any) -> IndicatorRule:
        """Return the rule fitted to moments, without changing the model."""
        self._check_options()
        if self.precision == "high" and moments.detail != "rows":
            raise OptionError.of("precision", "high", NEEDS_ROWS)
        return self._rule(moments, self._problem(moments))

    def rule_from_table(self, table: AnyTable) -> IndicatorRule:
        """Return the rule that `fit` would fit to a table, without changing the model."""
        self._check_options()
        table = _drop_empty_classes(table)
        moments = read_classes(table, self.detail_for(len(table), table.width))
        return self._refine(moments, table)[0]

    @property
    def rule_(self) -> Rule:
        """The fitted rule."""
        self._check_is_fitted()
        if self._fitted is None and self._factor is not None:
            self._fitted = self._asked._factor_rule(self._factor, self.moments_)
        return super().rule_

    def leave_one_out_scores(self, moments: Any, table: Table) -> Floats | None:
        """Return log memberships (N, K), for each row those of the fit to all other rows.

        Memberships are the values of `predict_proba`. They are computed from leverages, without
        refitting.
        """
        return least_squares_left_out_scores(
            self.rule_from(moments), moments, table, ridge=self._penalty()
        )

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model and check whether a class is masked.

        Parameters
        ----------
        X, y, sample_weight
            As in `LDA.fit`. A partitioned table is read once more if `degree` is above 1, and once
            more if a class is masked in a sample of its rows.

        Returns
        -------
        self
        """
        self._basis = self.path_ = None
        return super().fit(X, y, sample_weight)

    def fit_moments(self, moments: Any) -> Self:
        """Fit the model from class moments. A `degree` above 1 needs rows and raises an error."""
        if self.degree != 1:
            allowed = "1 without rows: moments do not include products of features"
            raise OptionError.of("degree", self.degree, allowed)
        self._basis = self.path_ = None
        return super().fit_moments(moments)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to the fit, as `LDA.partial_fit` does.

        With precision='high', the QR factor of the rows is stored too.
        """
        earlier, factor = getattr(self, "moments_", None), getattr(self, "_factor", None)
        high = self.precision == "high"
        if high and earlier is not None and earlier.detail != "rows" and factor is None:
            raise OptionError.of("precision", "high", STORED_MOMENTS)
        super().partial_fit(X, y, classes, sample_weight)
        if high and self.moments_.detail != "rows":
            table, labels = self._open_table(X, y, sample_weight, more=True), self.moments_.labels
            self._factor = _read_factor(table, labels)
            if earlier is not None and factor is not None:
                d = len(factor.columns) - len(earlier.labels)
                places = np.append(np.arange(d), d + np.searchsorted(labels, earlier.labels))
                self._factor = factor.reindex(self._factor.columns, places) + self._factor
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Remove rows from the fit, as if they had never been included."""
        self._check_is_fitted()
        if self._factor is not None:
            raise OptionError.of("precision", self.precision, KEEPS_ROWS)
        return super().forget(X, y, sample_weight)

    def predict(self, X: Any, prior: Prior | None = None) -> npt.NDArray[Any]:
        """Predict the class with the largest fitted value. A `prior` raises an error."""
        if prior is not None:
            raise PosteriorError.not_probabilities("LeastSquares", "prior=")
        return np.asarray(self.rule_.labels[self._finite_values(X).argmax(axis=1)])

    def decision_function(self, X: Any) -> Floats:
        """Return fitted values (n, K); for two classes, second minus first as an (n,) array."""
        return second_minus_first(self._values(X))

    def fitted_values(self, X: Any) -> Floats:
        """Return the fitted values f(x) = b0 + x'b: (n,) with two classes, else (n, K).

        With two classes, the responses of the first and the second class (in sorted order) are 0
        and 1 for coding='indicator', -1 and 1 for 'sign', and N/N_1 and -N/N_2 for 'fisher'. Where
        f is above `threshold_`, `predict` returns the class with the larger response: the second
        class, but for 'fisher' the first.
        """
        fitted = self._values(X)
        return fitted[:, self._response()] if fitted.shape[1] == 2 else fitted

    @property
    def beta_(self) -> Floats:
        """Coefficients of `fitted_values`, intercept first: (d + 1,), or (d + 1, K) if K > 2.

        If `degree` is above 1, the coefficients belong to the terms `moments_.features`, relative
        to the origin of these terms.
        """
        slope, intercept = self._linear_rule().slopes()
        beta = np.vstack([intercept, slope.T])
        return beta[:, self._response()] if len(intercept) == 2 else beta

    @property
    def threshold_(self) -> float | None:
        """Threshold on `fitted_values` for two classes; None for more classes.

        The threshold is 0.5 for the codes 0 and 1, and 0 otherwise.
        """
        if len(self.rule_.labels) > 2:
            return None
        return 0.5 if self._asked.coding == "indicator" else 0.0

    @property
    def masked_everywhere_(self) -> npt.NDArray[Any] | None:
        """Labels that do not have the largest fitted value anywhere in the feature space."""
        return cast(Labels | None, self._cached("masked_everywhere", self._find_masked_everywhere))

    # --- inside -----------------------------------------------------------------------------------

    def _response(self) -> int:
        """Return the class whose code is positive; it has large `fitted_values`."""
        return 0 if self._asked.coding == "fisher" else 1

    def _find_masked_everywhere(self) -> Labels | None:
        rule = self._indicator_rule()
        if rule.basis is not None:
            return None
        mean, deviation = _column_moments(self._present_moments)
        line = rule.line
        slope = line.coef * (deviation / line.anchor.unit)
        level = line.intercept + line.coef @ ((mean - line.anchor.origin) / line.anchor.unit)
        return np.asarray(rule.labels[never_predicted_classes(slope, level)])

    def _check_options(self) -> None:
        check_penalty(self.ridge)
        if is_cv(self.ridge):
            self._penalty_search().check()
        check_choice("coding", self.coding, CODINGS)
        check_choice("precision", self.precision, PRECISIONS)
        if self.degree not in (1, 2, 3):
            raise OptionError.of("degree", self.degree, "1, 2 or 3")

    def _open_table(
        self, X: Any, y: Any, weight: Any, labels: Any = None, *, more: bool = False
    ) -> AnyTable:
        self._check_options()
        table = super()._open_table(X, y, weight, labels, more=more)
        if self.degree == 1:
            return table
        basis = getattr(self, "_basis", None)
        if basis is None:
            basis = self._basis = _polynomial_basis(table, self.degree)
        if table.width != len(basis.features):
            raise ShapeError.of_width(table.width, len(basis.features), type(self).__name__)
        if isinstance(table, PartitionedTable):
            return table.expand(basis)
        schema = type(table.schema)(basis.names, table.schema.labels, table.schema.named)
        return Table(schema, ExpandedFeatures(table.features, basis), table.codes, table.weight)

    def _fit_table(self, table: AnyTable) -> Self:
        if is_cv(self.ridge):
            self._choose_penalty(table)
        moments = read_classes(table, self.detail_for(len(table), table.width))
        rule, factor = self._refine(moments, table)
        self._set_state(moments, rule, named=table.schema.named)
        self._factor = factor if self.precision == "high" else None
        self.masked_ = _find_masked(table, rule)
        return self

    def _refine(self, moments: Any, table: AnyTable) -> tuple[IndicatorRule, ScatterFactor | None]:
        """Return the rule from moments or, if they are too inexact, from the rows."""
        problem = self._problem(moments)
        few = problem.solver.digits < _ENOUGH_DIGITS and self.precision == "auto"
        if moments.detail == "rows" or not (few or self.precision == "high"):
            return self._rule(moments, problem), None
        factor = _read_factor(table, moments.labels)
        return self._factor_rule(factor, moments), factor

    def _problem(self, moments: Any) -> LeastSquaresProblem:
        codes = class_codes(class_prior(moments, None), self.coding)
        return class_problem(moments, codes=codes, ridge=self._penalty())

    def _factor_rule(self, factor: ScatterFactor, moments: ClassMoments) -> IndicatorRule:
        present = moments.weight > 0
        moments = moments.classes(moments.labels[present].tolist())
        codes = class_codes(class_prior(moments, None), self.coding)
        problem = factor_problem(factor, codes=codes, ridge=self._penalty(), present=present)
        return self._rule(moments, problem)

    def _rule(self, moments: Any, problem: LeastSquaresProblem) -> IndicatorRule:
        problem.warn()
        line = class_rule(problem, problem.solve(), moments.labels)
        return IndicatorRule(line, moments.weight, self.coding, getattr(self, "_basis", None))

    def _set_state(self, moments: Any, rule: Any = None, *, named: bool | None = None) -> None:
        self._factor = None
        super()._set_state(moments, rule, named=named)
        self.masked_ = None
        basis = getattr(self, "_basis", None)
        if basis is not None:
            self._set_features(basis.features, named)

    def _reduce_rows(self, moments: Any) -> Any:
        """Replace stored rows by their moments, except for high precision."""
        return moments if self.precision == "high" else super()._reduce_rows(moments)

    def _indicator_rule(self) -> IndicatorRule:
        return cast(IndicatorRule, self.rule_)

    def _linear_rule(self) -> LinearRule:
        return self._indicator_rule().line

    def _rule_scores(self, X: Any) -> Floats:
        """Return the logs of memberships, which may be -inf; the fitted values must be finite."""
        return self._indicator_rule().log_memberships(self._finite_values(X))

    def _most_probable_labels(self, X: Any) -> npt.NDArray[Any]:
        return np.asarray(self.rule_.labels[predicted_codes(self._rule_scores(X))])

    def _posteriors(self, X: Any) -> Floats:
        return posterior(self._rule_scores(X))

    def _scores(self, X: Any, prior: Prior | None) -> Floats:
        if prior is not None:
            raise PosteriorError.not_probabilities("LeastSquares", "prior=")
        return super()._scores(X, prior)

    def _values(self, X: Any) -> Floats:
        return self._score_rows(self._indicator_rule().fitted, X)

    def _finite_values(self, X: Any) -> Floats:
        return self._score_rows(self._indicator_rule().finite_fitted, X)


def _polynomial_basis(table: AnyTable, degree: int) -> PolynomialBasis:
    """Return the polynomial terms about the mean of the rows, as a basis."""
    mean, deviation = _column_moments(read_moments(table, detail="diagonal"))
    return PolynomialBasis.centred_at(mean, deviation, table.schema.features, degree=degree)


def _column_moments(moments: ClassMoments | ClassRows) -> tuple[Floats, Floats]:
    """Return the mean (d,) and the standard deviation (d,) of each column over all rows."""
    sums: ClassMoments = moments.reduce("diagonal") if isinstance(moments, ClassRows) else moments
    weight, offsets = sums.weight, sums.mean - sums.centre
    within = sums.pooled if sums.detail == "diagonal" else np.diagonal(sums.pooled)
    variance = (within + weight @ offsets**2) / weight.sum()
    return sums.anchor.values(sums.centre), np.sqrt(variance) * sums.anchor.unit


def _read_factor(table: AnyTable, labels: Labels) -> ScatterFactor:
    """Read the rows and return the QR factor of the features and the class indicators."""
    K = len(labels)
    anchor = origin_and_unit_with_codes(anchor_of(table), K)
    coding = np.zeros((len(table.schema.labels), K))
    place = np.searchsorted(labels, table.schema.labels)
    coding[np.arange(len(place)), place] = 1.0
    columns = (*table.schema.features, *(f"class {k}" for k in range(K)))
    return fold(table, ScatterFactorReading(columns, anchor, coding))


def _drop_empty_classes(table: AnyTable) -> AnyTable:
    """Return the table without rows of weight zero and without classes that have no rows."""
    if isinstance(table, PartitionedTable):
        return table  # training sets of its folds have no empty classes
    if table.weight is not None:
        table = table.take(np.flatnonzero(table.weight > 0))
    present, codes = np.unique(table.codes, return_inverse=True)
    schema = replace(table.schema, labels=table.schema.labels[present])
    return replace(table, schema=schema, codes=codes)


def _find_masked(table: AnyTable, rule: IndicatorRule) -> Labels:
    """Return the classes that are predicted for no row of positive weight; warn if there are any.

    Usually, predicting two rows of each class shows that no class is masked. If a class is
    predicted for neither of its two rows, the search goes on to all rows of the class, and then to
    all rows of the table, until the class is predicted for a row.
    """
    line = rule.line
    reading = PredictedCountsReading(table.schema.features, line.anchor, line.coef, line.intercept)
    sample = table.sample if isinstance(table, PartitionedTable) else _first_and_last_rows(table)
    predicted = fold(sample, reading).counts
    if not predicted.all() and isinstance(table, Table):
        own = np.flatnonzero((predicted == 0)[table.codes])
        predicted = predicted + fold(table.take(own), reading).counts
    if not predicted.all():
        predicted = fold(table, reading).counts
    masked: Labels = rule.labels[predicted == 0]
    if len(masked):
        warn(MaskedClassWarning.of_classes(masked.tolist()))
    return masked


def _first_and_last_rows(table: Table) -> Table:
    """Return a table with the first and the last row of each class."""
    rows, K = np.arange(len(table)), len(table.schema.labels)
    first, last = np.zeros(K, dtype=np.intp), np.zeros(K, dtype=np.intp)
    first[table.codes[::-1]] = rows[::-1]
    last[table.codes] = rows
    return table.take(np.concatenate([first, last]))
