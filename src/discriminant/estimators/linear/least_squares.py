"""LeastSquares: classification by least-squares regression on class codes, and masked classes.

The regression is `models.linear.least_squares`. Moments are enough unless columns are nearly
collinear; then the rows are read again for their triangular factor, which does not square the
condition number.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from discriminant.assessment.resampling.leave_one_out import least_squares_left_out_scores
from discriminant.engines.dispatch import anchor_of, fold, read_classes, read_moments
from discriminant.engines.partitioned_table import AnyTable, PartitionedTable
from discriminant.errors import (
    MaskedClassWarning,
    OptionError,
    PosteriorError,
    ShapeError,
    warn,
)
from discriminant.estimators.base import LinearMomentClassifier, Prior
from discriminant.estimators.linear.linear_regression import PRECISIONS, check_ridge
from discriminant.models.gaussian.family import class_prior
from discriminant.models.gaussian.wide import is_wide
from discriminant.models.linear.least_squares import (
    CODINGS,
    SAME,
    Coding,
    IndicatorRule,
    LeastSquaresProblem,
    anchor_with_codes,
    class_codes,
    class_problem,
    class_rule,
    factor_problem,
    masked_everywhere,
)
from discriminant.models.rules import LinearRule, Rule
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.stored_rows import ClassRows
from discriminant.moments.confusion import PredictedCountsReading
from discriminant.moments.qr_factor import ScatterFactor, ScatterFactorReading
from discriminant.table.basis import ExpandedFeatures, PolynomialBasis
from discriminant.table.blocks import Floats, Labels
from discriminant.table.memory import Table

_ENOUGH = 8.0  # correct digits of a fit from moments that decisions need


class LeastSquares(LinearMomentClassifier):
    """Classification by least squares: regress class codes on the features; the largest value wins.

    Fast and simple; with two classes the direction is Fisher's. With three or more a class may be
    masked by others: a warning names the classes that no training row is predicted as (`masked_`).
    LDA has no such fault.

    Parameters
    ----------
    coding : {'indicator', 'sign', 'fisher'}, default 'indicator'
        Codes of the classes. 'indicator': 0 and 1, fitted values sum to one. 'sign': -1 and 1, the
        same decisions. 'fisher': N/N_1 and -N/N_2, for two classes, both with equal weight.
    degree : {1, 2, 3}, default 1
        2 adds products of two features as regressors, which can unmask a class; 3 also of three.
        `moments_.features` names the columns; `coef_` and `ridge` refer to an origin near the rows.
    ridge : float, default 0.0
        Penalty on the sum of squared coefficients, as in `LinearRegression`.
    precision : {'auto', 'standard', 'high'}, default 'auto'
        'standard': from moments. 'high': from the triangular factor of the rows, which
        `partial_fit` then stores. 'auto': 'high' only if columns are nearly collinear and the rows
        are available.

    Attributes
    ----------
    classes_ : array of shape (K,)
        Class labels, sorted.
    prior_, means_ : arrays of shape (K,) and (K, d)
        Class shares and class means.
    coef_, intercept_ : arrays of shape (K, d) and (K,); (1, d) and (1,) for two classes
        Coefficients of `decision_function` in the user's units.
    beta_ : array of shape (d + 1,), or (d + 1, K) for more than two classes
        Coefficients of `fitted_values` as textbooks write them, (X'X)^-1 X'y, intercept first.
    threshold_ : float or None
        Threshold on `fitted_values` between two classes; None for more classes.
    masked_ : array or None
        Labels that no training row is predicted as; None after `fit_moments` or `partial_fit`.
    masked_everywhere_ : array or None
        Labels that have the largest fitted value nowhere in the feature space. A subset of
        `masked_`, often empty: with K - 1 or more features in general position every class has a
        region, if only far from all rows. Decided by one linear programme per class when first
        used; None if `degree` is 2 or 3.
    moments_ : ClassMoments
        Moments of the fit; `partial_fit` and `forget` update them.
    n_features_in_, feature_names_in_
        Number of features, and their names if the rows had any.

    See Also
    --------
    LDA : Linear boundaries without masking, with probabilities.
    LinearRegression : Regression of numeric responses.

    Notes
    -----
    With two classes `decision_function`, `coef_` and `intercept_` are the difference of the two
    fitted values: 2 f - 1, where f is the regression on 0 and 1, and twice the regression on -1 and
    1. `fitted_values` and `beta_` are the regression itself. Fitted values are not probabilities:
    `predict_proba` sets negative values to zero and divides by the sum. Therefore `prior=` is
    refused when predicting, `Decision` and `Fusion` refuse this model unless it is calibrated, and
    it has no log loss.

    Examples
    --------
    >>> model = LeastSquares().fit([[0.0], [1.0], [4.0], [5.0]], ["low", "low", "high", "high"])
    >>> model.predict([[0.4], [4.4]]).tolist()
    ['low', 'high']
    """

    probabilistic = False
    masked_: npt.NDArray[Any] | None
    _basis: PolynomialBasis | None
    _factor: ScatterFactor | None  # of the features and the indicators of `moments_.labels`

    def __init__(
        self,
        *,
        coding: Coding = "indicator",
        degree: Any = 1,
        ridge: Any = 0.0,
        precision: Any = "auto",
    ) -> None:
        self.coding = coding
        self.degree = degree
        self.ridge = ridge
        self.precision = precision

    @property
    def detail(self) -> Detail:
        """Sums that the moments must contain: one scatter for all classes."""
        return "pooled"

    @property
    def needs_rows(self) -> bool:
        """Whether moments are not enough: for products of features, or for high precision."""
        return bool(self.degree != 1 or self.precision == "high")

    def needs_rows_for(self, moments: Any) -> bool:
        """Whether moments are too inexact to replace their rows."""
        return self._problem(moments).solver.digits < SAME

    def detail_for(self, rows: int, width: int) -> Detail:
        """Detail to read: the rows themselves if there are fewer of them than features."""
        return "rows" if is_wide(rows, width) else "pooled"

    def prior_from(self, moments: ClassMoments | ClassRows) -> Floats:
        """(K,) class shares, the implicit priors of least squares; equal for 'fisher' coding."""
        if self.coding == "fisher":
            return np.full(len(moments.labels), 1.0 / len(moments.labels))
        return class_prior(moments, None)

    def rule_from(self, moments: Any) -> IndicatorRule:
        """Return the rule fitted to moments; nothing is stored."""
        self._check_options()
        if self.precision == "high" and moments.detail != "rows":
            raise OptionError.of(
                "precision", "high", "'auto' or 'standard' where there are no rows"
            )
        return self._rule(moments, self._problem(moments))

    def rule_from_table(self, table: AnyTable) -> IndicatorRule:
        """Return the rule fitted to the rows of a table, as `fit` does; nothing is stored."""
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
        """(N, K) log memberships of each row by the fit to all other rows, from its leverage."""
        return least_squares_left_out_scores(
            self.rule_from(moments), moments, table, ridge=self.ridge
        )

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model, then check whether a class is masked.

        Parameters
        ----------
        X, y, sample_weight
            As in `LDA.fit`. A partitioned table is read once more for products of features, and if
            a class is masked in its sample.

        Returns
        -------
        self
        """
        self._basis = None
        return super().fit(X, y, sample_weight)

    def fit_moments(self, moments: Any) -> Self:
        """Fit the model from moments; with `degree` above 1 rows are needed."""
        if self.degree != 1:
            allowed = "1 without rows: moments do not include products of features"
            raise OptionError.of("degree", self.degree, allowed)
        self._basis = None
        return super().fit_moments(moments)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to the fit; high precision also stores their factor. As `LDA.partial_fit`."""
        held, factor = getattr(self, "moments_", None), getattr(self, "_factor", None)
        high = self.precision == "high"
        if high and held is not None and held.detail != "rows" and factor is None:
            allowed = "'auto' or 'standard': of the rows before only moments are kept"
            raise OptionError.of("precision", "high", allowed)
        super().partial_fit(X, y, classes, sample_weight)
        if high and self.moments_.detail != "rows":
            table = self._open_table(X, y, sample_weight, more=True)
            part = _factor_of(table, self.moments_.labels)
            if held is not None and factor is not None:
                part = _among(factor, held.labels, part.columns, self.moments_.labels) + part
            self._factor = part
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Remove rows from the fit, as if they had never been included."""
        self._check_is_fitted()
        if self._factor is not None:
            allowed = "'auto' or 'standard' for rows to be removed: a factor keeps them"
            raise OptionError.of("precision", self.precision, allowed)
        return super().forget(X, y, sample_weight)

    def predict(self, X: Any, prior: Prior | None = None) -> npt.NDArray[Any]:
        """Predict the class with the largest fitted value; `prior` is refused."""
        if prior is not None:
            raise PosteriorError.not_probabilities("LeastSquares", "prior=")
        return np.asarray(self.rule_.labels[self._finite_values(X).argmax(axis=1)])

    def decision_function(self, X: Any) -> Floats:
        """(n, K) fitted values; with two classes (n,), second minus first."""
        fitted = self._values(X)
        return np.asarray(fitted[:, 1] - fitted[:, 0]) if fitted.shape[1] == 2 else fitted

    def fitted_values(self, X: Any) -> Floats:
        """Compute f(x) = b0 + x'b of the regression: (n,) with two classes, else (n, K).

        With two classes, in sorted order, y is 0 and 1 for coding='indicator', -1 and 1 for 'sign',
        N/N_1 and -N/N_2 for 'fisher'. `predict` gives the second class where f is above
        `threshold_`; for 'fisher' the first, whose y is positive.
        """
        fitted = self._values(X)
        return fitted[:, self._response()] if fitted.shape[1] == 2 else fitted

    @property
    def beta_(self) -> Floats:
        """(d + 1,) coefficients of `fitted_values`, intercept first; (d + 1, K) of K > 2 classes.

        With `degree` they are of the columns `moments_.features`, counted from their origin.
        """
        slope, intercept = self._linear_rule().slopes()
        beta = np.vstack([intercept, slope.T])
        return beta[:, self._response()] if len(intercept) == 2 else beta

    @property
    def threshold_(self) -> float | None:
        """Threshold on `fitted_values` of two classes: 0.5 for 0 and 1, else 0; None for more."""
        if len(self.rule_.labels) > 2:
            return None
        return 0.5 if self._asked.coding == "indicator" else 0.0

    @property
    def masked_everywhere_(self) -> npt.NDArray[Any] | None:
        """Labels that have the largest fitted value nowhere in the feature space."""
        labels: npt.NDArray[Any] | None = self._cached("masked_everywhere", self._without_region)
        return labels

    # --- inside -----------------------------------------------------------------------------------

    def _response(self) -> int:
        """Index of the class whose code is positive: its fitted value is the regression."""
        return 0 if self._asked.coding == "fisher" else 1

    def _without_region(self) -> npt.NDArray[Any] | None:
        rule = self.rule_
        assert isinstance(rule, IndicatorRule)
        if rule.basis is not None:
            return None
        mean, deviation = _column_moments(self._present_moments)
        line = rule.line
        slope = line.coef * (deviation / line.anchor.unit)
        level = line.intercept + line.coef @ ((mean - line.anchor.origin) / line.anchor.unit)
        return np.asarray(rule.labels[masked_everywhere(slope, level)])

    def _check_options(self) -> None:
        check_ridge(self.ridge)
        for name, allowed in (("coding", CODINGS), ("precision", PRECISIONS)):
            if getattr(self, name) not in allowed:
                raise OptionError.of(name, getattr(self, name), f"one of {', '.join(allowed)}")
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
            basis = self._basis = _basis_of(table, self.degree)
        if table.width != len(basis.features):
            raise ShapeError.of_width(table.width, len(basis.features), type(self).__name__)
        if isinstance(table, PartitionedTable):
            return table.expand(basis)
        schema = type(table.schema)(basis.names, table.schema.labels, table.schema.named)
        return Table(schema, ExpandedFeatures(table.features, basis), table.codes, table.weight)

    def _fit_table(self, table: AnyTable) -> Self:
        moments = read_classes(table, self.detail_for(len(table), table.width))
        rule, factor = self._refine(moments, table)
        self._set_state(moments, rule, named=table.schema.named)
        self._factor = factor if self.precision == "high" else None
        self.masked_ = _masked(table, rule)
        return self

    def _refine(self, moments: Any, table: AnyTable) -> tuple[IndicatorRule, ScatterFactor | None]:
        """The rule from moments, or from the factor of the rows if moments are too inexact."""
        problem = self._problem(moments)
        few = problem.solver.digits < _ENOUGH and self.precision == "auto"
        if moments.detail == "rows" or not (few or self.precision == "high"):
            return self._rule(moments, problem), None
        factor = _factor_of(table, moments.labels)
        return self._factor_rule(factor, moments), factor

    def _problem(self, moments: Any) -> LeastSquaresProblem:
        codes = class_codes(class_prior(moments, None), self.coding)
        return class_problem(moments, codes=codes, ridge=self.ridge)

    def _factor_rule(self, factor: ScatterFactor, moments: ClassMoments) -> IndicatorRule:
        some = moments.weight > 0
        present = moments.classes(moments.labels[some].tolist())
        codes = class_codes(class_prior(present, None), self.coding)
        problem = factor_problem(factor, codes=codes, ridge=self.ridge, present=some)
        return self._rule(present, problem)

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
        """Rows are not reduced to moments for high precision."""
        return moments if self.precision == "high" else super()._reduce_rows(moments)

    def _linear_rule(self) -> LinearRule:
        rule = self.rule_
        assert isinstance(rule, IndicatorRule)
        return rule.line

    def _rule_scores(self, X: Any) -> Floats:
        """Logs of memberships, which may be -inf; the fitted values must be finite."""
        rule = self.rule_
        assert isinstance(rule, IndicatorRule)
        return rule.log_memberships(self._finite_values(X))

    def _scores(self, X: Any, prior: Prior | None) -> Floats:
        if prior is not None:
            raise PosteriorError.not_probabilities("LeastSquares", "prior=")
        return super()._scores(X, prior)

    def _values(self, X: Any) -> Floats:
        rule = self.rule_
        assert isinstance(rule, IndicatorRule)
        return self._score_rows(rule.fitted, X)

    def _finite_values(self, X: Any) -> Floats:
        rule = self.rule_
        assert isinstance(rule, IndicatorRule)
        return self._score_rows(rule.finite_fitted, X)


def _basis_of(table: AnyTable, degree: int) -> PolynomialBasis:
    """Polynomial terms about the mean of the rows."""
    mean, deviation = _column_moments(read_moments(table, detail="diagonal"))
    return PolynomialBasis.centred_at(mean, deviation, table.schema.features, degree=degree)


def _column_moments(moments: ClassMoments | ClassRows) -> tuple[Floats, Floats]:
    """(d,) mean and standard deviation of each column over all rows."""
    sums: ClassMoments = moments.reduce("diagonal") if isinstance(moments, ClassRows) else moments
    weight, apart = sums.weight, sums.mean - sums.centre
    within = sums.pooled if sums.detail == "diagonal" else np.diagonal(sums.pooled)
    variance = (within + weight @ apart**2) / weight.sum()
    return sums.anchor.values(sums.centre), np.sqrt(variance) * sums.anchor.unit


def _factor_of(table: AnyTable, labels: Labels) -> ScatterFactor:
    """Triangular factor of the features and of the indicators of these classes."""
    K = len(labels)
    anchor = anchor_with_codes(anchor_of(table), K)
    coding = np.zeros((len(table.schema.labels), K))
    place = np.searchsorted(labels, table.schema.labels)
    coding[np.arange(len(place)), place] = 1.0
    return fold(table, ScatterFactorReading(_columns(table.schema.features, K), anchor, coding))


def _among(
    factor: ScatterFactor, labels: Labels, columns: tuple[str, ...], more: Labels
) -> ScatterFactor:
    """A factor over some classes as one over more classes."""
    d = len(factor.columns) - len(labels)
    return factor.reindex(columns, np.append(np.arange(d), d + np.searchsorted(more, labels)))


def _columns(features: tuple[str, ...], classes: int) -> tuple[str, ...]:
    return (*features, *(f"class {k}" for k in range(classes)))


def _drop_empty_classes(table: AnyTable) -> AnyTable:
    """The rows of positive weight and the classes they have."""
    if isinstance(table, PartitionedTable):
        return table  # its training parts know only classes that they have
    if table.weight is not None:
        table = table.take(np.flatnonzero(table.weight > 0))
    present, codes = np.unique(table.codes, return_inverse=True)
    schema = replace(table.schema, labels=table.schema.labels[present])
    return replace(table, schema=schema, codes=codes)


def _masked(table: AnyTable, rule: IndicatorRule) -> Labels:
    """Classes that no row of positive weight is predicted as; warns if there are any.

    Two rows of each class usually suffice to show that there are none. Otherwise a class is looked
    for among its own rows, and only then among all rows.
    """
    line = rule.line
    reading = PredictedCountsReading(table.schema.features, line.anchor, line.coef, line.intercept)
    sample = (
        table.sample if isinstance(table, PartitionedTable) else table.take(_two_of_each(table))
    )
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


def _two_of_each(table: Table) -> npt.NDArray[np.intp]:
    """The first and the last row of each class."""
    rows, K = np.arange(len(table)), len(table.schema.labels)
    first, last = np.zeros(K, dtype=np.intp), np.zeros(K, dtype=np.intp)
    first[table.codes[::-1]] = rows[::-1]
    last[table.codes] = rows
    return np.concatenate([first, last])
