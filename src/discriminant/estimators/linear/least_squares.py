"""LeastSquares: classes by regression on their codes, and which of them are masked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from discriminant.assessment.resampling.leave_one_out import least_squares_left_out_scores
from discriminant.engines.engine import anchor_of, fold, read_classes, read_moments
from discriminant.engines.partitioned import AnyTable, PartitionedTable
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
from discriminant.moments.class_rows import ClassRows
from discriminant.moments.confusion import PredictedCountsReading
from discriminant.moments.scatter_factor import ScatterFactor, ScatterFactorReading
from discriminant.table.basis import Expanded, PolynomialBasis
from discriminant.table.blocks import Floats, Labels
from discriminant.table.memory import Table

_ENOUGH = 8.0  # digits of a fit from moments: decisions need no more


class LeastSquares(LinearMomentClassifier):
    """Classes by least squares: regression on codes of the classes, the largest fitted value wins.

    Quick and simple, and with two classes the direction is Fisher's; with three or more a class
    may be masked by others. A warning names the classes that no training row is predicted as
    (`masked_`); `masked_everywhere_` are those with no region in the whole feature space. LDA
    has no such fault.

    Parameters
    ----------
    coding
        'indicator': 0 and 1, fitted values sum to one. 'sign': -1 and 1, the same decisions.
        'fisher': N/N_1 and -N/N_2, for two classes, both counted alike.
    degree
        2: regress on products of two features too, which can unmask a class; 3: of three as well.
        The columns are named in `moments_.features` and counted from an origin near the rows, as
        `coef_` and `ridge` are.
    ridge
        Penalty on the sum of squares, as in `LinearRegression`.
    precision
        'standard': from moments. 'high': from the triangular factor of the rows, which
        `partial_fit` then keeps. 'auto': that only where columns almost depend on one another and
        rows are at hand.

    Attributes
    ----------
    masked_
        Labels that no training row is predicted as; None after `fit_moments` or `partial_fit`,
        where there are no rows to predict.
    masked_everywhere_
        Labels that have the largest fitted value, alone, at no point x of the feature space, near
        the rows or far. Some of `masked_`; often none: with K - 1 or more features in general
        position every class has a region, if only a wedge far from all rows. Decided by one linear
        programme for each class when it is first asked for; None if `degree` is 2 or 3, where
        regions are not polyhedra.
    beta_, threshold_
        The coefficients of the regression as textbooks write them, (X'X)^-1 X'y with the intercept
        first, and where two classes are cut; see `fitted_values`.

    Notes
    -----
    Fitted values are `decision_function`'s. With two classes that is the difference of the two,
    as `coef_` and `intercept_` are: 2 f - 1, where f is the regression on 0 and 1, and twice the
    regression on -1 and 1. The regression itself is `fitted_values` and `beta_`. Fitted values are
    not probabilities: `predict_proba` sets what is negative to zero and divides by the sum, so a
    probability of zero means no more than a fitted value below zero. Therefore `prior=` is refused
    when predicting, `Decision` and `Fusion` refuse this model unless it is calibrated, and it has
    no log loss.

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
        coding: Any = "indicator",
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
        """One scatter for all classes."""
        return "pooled"

    @property
    def needs_rows(self) -> bool:
        """Moments of the features have neither products of them nor the digits of a factor."""
        return bool(self.degree != 1 or self.precision == "high")

    def needs_rows_for(self, moments: Any) -> bool:
        """Whether these moments hold too few digits to say what a fit to their rows says."""
        return self._problem(moments).solver.digits < SAME

    def detail_for(self, rows: int, width: int) -> Detail:
        """The rows themselves where features outnumber them."""
        return "rows" if is_wide(rows, width) else "pooled"

    def prior_from(self, moments: ClassMoments | ClassRows) -> Floats:
        """(K,) shares of the classes, which least squares takes for priors; Fisher's are equal."""
        if self.coding == "fisher":
            return np.full(len(moments.labels), 1.0 / len(moments.labels))
        return class_prior(moments, None)

    def rule_from(self, moments: Any) -> IndicatorRule:
        """The fitted rule, from moments alone."""
        self._checked()
        if self.precision == "high" and moments.detail != "rows":
            raise OptionError.of(
                "precision", "high", "'auto' or 'standard' where there are no rows"
            )
        return self._rule(moments, self._problem(moments))

    def rule_from_table(self, table: AnyTable) -> IndicatorRule:
        """The fitted rule, from rows: what `fit` finds."""
        self._checked()
        table = _only_present(table)
        moments = read_classes(table, self.detail_for(len(table), table.width))
        return self._sharpened(moments, table)[0]

    @property
    def rule_(self) -> Rule:
        """The fitted rule."""
        self._check_is_fitted()
        if self._fitted is None and self._factor is not None:
            self._fitted = self._asked._factor_rule(self._factor, self.moments_)
        return super().rule_

    def leave_one_out_scores(self, moments: Any, table: Table) -> Floats | None:
        """(N, K) log memberships of each row by the fit to all others, by its leverage."""
        return least_squares_left_out_scores(
            self.rule_from(moments), moments, table, ridge=self.ridge
        )

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Read the rows once and fit, then look whether a class is masked.

        Rows in parts (`discriminant.rows`, without y) are read once more for that only if a class
        is masked among those drawn, and for products of features with `degree`.
        """
        self._basis = None
        return super().fit(X, y, sample_weight)

    def fit_moments(self, moments: Any) -> Self:
        """Fit from moments; those of products of features are to be read with degree=1."""
        if self.degree != 1:
            allowed = "1 where there are no rows: moments say nothing of products of features"
            raise OptionError.of("degree", self.degree, allowed)
        self._basis = None
        return super().fit_moments(moments)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows; 'high' precision keeps their factor too. Classes may come at any time."""
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
        """Remove rows that were fitted before, as if they had never been there."""
        self._check_is_fitted()
        if self._factor is not None:
            allowed = "'auto' or 'standard' for rows to be removed: a factor keeps them"
            raise OptionError.of("precision", self.precision, allowed)
        return super().forget(X, y, sample_weight)

    def predict(self, X: Any, prior: Prior | None = None) -> npt.NDArray[Any]:
        """The class of the largest fitted value; there are no posteriors to change a `prior` of."""
        if prior is not None:
            raise PosteriorError.not_probabilities("LeastSquares", "prior=")
        return np.asarray(self.rule_.labels[self._bounded(X).argmax(axis=1)])

    def decision_function(self, X: Any) -> Floats:
        """Fitted values (n, K); with two classes second less first, (n,)."""
        fitted = self._values(X)
        return np.asarray(fitted[:, 1] - fitted[:, 0]) if fitted.shape[1] == 2 else fitted

    def fitted_values(self, X: Any) -> Floats:
        """f(x) = b0 + x'b of the regression: (n,) with two classes, (n, K) of all with more.

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
        """Where `fitted_values` of two classes are cut: 0.5 for 0 and 1, else 0; None for more."""
        if len(self.rule_.labels) > 2:
            return None
        return 0.5 if self._asked.coding == "indicator" else 0.0

    @property
    def masked_everywhere_(self) -> npt.NDArray[Any] | None:
        """Labels with the largest fitted value at no point of the feature space; see the class."""
        labels: npt.NDArray[Any] | None = self._cached("masked_everywhere", self._without_region)
        return labels

    # --- inside -----------------------------------------------------------------------------------

    def _response(self) -> int:
        """Which of two fitted values is the regression: of the class whose code is positive."""
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

    def _checked(self) -> None:
        check_ridge(self.ridge)
        for name, allowed in (("coding", CODINGS), ("precision", PRECISIONS)):
            if getattr(self, name) not in allowed:
                raise OptionError.of(name, getattr(self, name), f"one of {', '.join(allowed)}")
        if self.degree not in (1, 2, 3):
            raise OptionError.of("degree", self.degree, "1, 2 or 3")

    def _open_table(
        self, X: Any, y: Any, weight: Any, labels: Any = None, *, more: bool = False
    ) -> AnyTable:
        self._checked()
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
        return Table(schema, Expanded(table.features, basis), table.codes, table.weight)

    def _fit_table(self, table: AnyTable) -> Self:
        moments = read_classes(table, self.detail_for(len(table), table.width))
        rule, factor = self._sharpened(moments, table)
        self._set_state(moments, rule, named=table.schema.named)
        self._factor = factor if self.precision == "high" else None
        self.masked_ = _masked(table, rule)
        return self

    def _sharpened(
        self, moments: Any, table: AnyTable
    ) -> tuple[IndicatorRule, ScatterFactor | None]:
        """The rule of moments, or of the factor of their rows if those leave too few digits."""
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
        """Rows stay rows where their digits are asked for."""
        return moments if self.precision == "high" else super()._reduce_rows(moments)

    def _linear_rule(self) -> LinearRule:
        rule = self.rule_
        assert isinstance(rule, IndicatorRule)
        return rule.line

    def _rule_scores(self, X: Any) -> Floats:
        """Logs of memberships, which may well be -inf: the fitted values are to be finite."""
        rule = self.rule_
        assert isinstance(rule, IndicatorRule)
        return rule.log_memberships(self._bounded(X))

    def _scores(self, X: Any, prior: Prior | None) -> Floats:
        if prior is not None:
            raise PosteriorError.not_probabilities("LeastSquares", "prior=")
        return super()._scores(X, prior)

    def _values(self, X: Any) -> Floats:
        rule = self.rule_
        assert isinstance(rule, IndicatorRule)
        return self._score_rows(rule.fitted, X)

    def _bounded(self, X: Any) -> Floats:
        rule = self.rule_
        assert isinstance(rule, IndicatorRule)
        return self._score_rows(rule.finite_fitted, X)


def _basis_of(table: AnyTable, degree: int) -> PolynomialBasis:
    """Products about the mean of the rows: weights and repeated rows give the same."""
    mean, deviation = _column_moments(read_moments(table, detail="diagonal"))
    return PolynomialBasis.about(mean, deviation, table.schema.features, degree=degree)


def _column_moments(moments: ClassMoments | ClassRows) -> tuple[Floats, Floats]:
    """(d,) mean and standard deviation of each column over all rows."""
    sums: ClassMoments = moments.reduce("diagonal") if isinstance(moments, ClassRows) else moments
    weight, apart = sums.weight, sums.mean - sums.centre
    within = sums.pooled if sums.detail == "diagonal" else np.diagonal(sums.pooled)
    variance = (within + weight @ apart**2) / weight.sum()
    return sums.anchor.values(sums.centre), np.sqrt(variance) * sums.anchor.unit


def _factor_of(table: AnyTable, labels: Labels) -> ScatterFactor:
    """Factor of the features and of the indicators of these classes, the table's among them."""
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


def _only_present(table: AnyTable) -> AnyTable:
    """The rows of positive weight and the classes they have."""
    if isinstance(table, PartitionedTable):
        return table  # its training parts know only classes that they have
    if table.weight is not None:
        table = table.take(np.flatnonzero(table.weight > 0))
    present, codes = np.unique(table.codes, return_inverse=True)
    schema = replace(table.schema, labels=table.schema.labels[present])
    return replace(table, schema=schema, codes=codes)


def _masked(table: AnyTable, rule: IndicatorRule) -> Labels:
    """Classes that no row of positive weight is predicted as.

    A row or two of each class usually show that there are none. If not, a class is looked for among
    its own rows, and only if it is not found there, among all.
    """
    line = rule.line
    reading = PredictedCountsReading(table.schema.features, line.anchor, line.coef, line.intercept)
    some = table.sample if isinstance(table, PartitionedTable) else table.take(_two_of_each(table))
    told = fold(some, reading).counts
    if not told.all() and isinstance(table, Table):
        own = np.flatnonzero((told == 0)[table.codes])
        told = told + fold(table.take(own), reading).counts
    if not told.all():
        told = fold(table, reading).counts
    masked: Labels = rule.labels[told == 0]
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
