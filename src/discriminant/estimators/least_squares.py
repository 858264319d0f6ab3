"""LeastSquares: classes by regression on their codes, and which of them are masked."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from discriminant.assessment.leverage import without_each
from discriminant.engines.engine import fold, read_classes, read_moments
from discriminant.errors import MaskedClassWarning, OptionError, ShapeError, tell
from discriminant.estimators.base import LinearScores
from discriminant.estimators.regression import PRECISIONS, check_ridge
from discriminant.models.gaussian import class_prior
from discriminant.models.indicator import (
    CODINGS,
    IndicatorRule,
    class_codes,
    class_line,
    class_problem,
    coded_anchor,
)
from discriminant.models.least_squares import Problem, from_factor
from discriminant.models.wide import is_wide
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.class_rows import ClassRows
from discriminant.moments.factor import FactorReading
from discriminant.table.basis import Expanded, PolynomialBasis
from discriminant.table.schema import Floats
from discriminant.table.source import Table

_ENOUGH = 8.0  # digits of a fit from moments: decisions need no more
_TALLY = 1 << 20  # fitted values looked at at a time when looking for masked classes


class LeastSquares(LinearScores):
    """Classes by least squares: regression on codes of the classes, the largest fitted value wins.

    Quick and simple, and with two classes the direction is Fisher's; with three or more a class
    may be masked, that is, never predicted: a warning says which. LDA has no such fault.

    Parameters
    ----------
    coding
        'indicator': 0 and 1, fitted values sum to one. 'sign': -1 and 1, the same decisions.
        'fisher': N/N_1 and -N/N_2, for two classes, both counted alike.
    degree
        2: regress on products of two features too, which can unmask a class; the columns are named
        in `moments_.features` and counted from an origin near the rows, as `coef_` and `ridge` are.
    ridge
        Penalty on the sum of squares, as in `LinearRegression`.
    precision
        'standard': from moments. 'high': from the triangular factor of the rows. 'auto': that only
        where columns almost depend on one another and rows are at hand.

    Attributes
    ----------
    masked_
        Labels that no training row is given to; None if fitted without rows at hand
        (`fit_moments`, `partial_fit`), where it is not known.

    Notes
    -----
    Fitted values are `decision_function`'s (with two classes, their difference). They are not
    probabilities: `predict_proba` sets what is negative to zero and divides by the sum, so a
    probability of zero means no more than a fitted value below zero.

    Examples
    --------
    >>> model = LeastSquares().fit([[0.0], [1.0], [4.0], [5.0]], ["low", "low", "high", "high"])
    >>> model.predict([[0.4], [4.4]]).tolist()
    ['low', 'high']
    """

    masked_: npt.NDArray[Any] | None
    _basis: PolynomialBasis | None

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
        """Products of features cannot be had from the moments of the features."""
        return bool(self.degree != 1)

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
        codes = class_codes(class_prior(moments, None), self.coding)
        problem = class_problem(moments, codes=codes, ridge=self.ridge)
        return self._rule(moments, problem)

    def scores_without_each(self, moments: Any, table: Table) -> Floats | None:
        """(N, K) log memberships of each row by the fit to all others, by its leverage."""
        return without_each(self.rule_from(moments), moments, table, ridge=self.ridge)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Read the rows once and fit, then look whether a class is masked."""
        self._basis = None
        return super().fit(X, y, sample_weight)

    def fit_moments(self, moments: Any) -> Self:
        """Fit from moments; those of products of features are to be read with degree=1."""
        if self.degree != 1:
            allowed = "1 where there are no rows: moments say nothing of products of features"
            raise OptionError.of("degree", self.degree, allowed)
        self._basis = None
        return super().fit_moments(moments)

    def predict(self, X: Any, prior: npt.ArrayLike | None = None) -> npt.NDArray[Any]:
        """The class of the largest fitted value, or membership if another `prior` is given."""
        if prior is not None:
            return super().predict(X, prior)
        return np.asarray(self.rule_.labels[self._values(X).argmax(axis=1)])

    def decision_function(self, X: Any) -> Floats:
        """Fitted values (n, K); with two classes second less first, (n,)."""
        fitted = self._values(X)
        return np.asarray(fitted[:, 1] - fitted[:, 0]) if fitted.shape[1] == 2 else fitted

    # --- inside -----------------------------------------------------------------------------------

    def _checked(self) -> None:
        check_ridge(self.ridge)
        for name, allowed in (("coding", CODINGS), ("precision", PRECISIONS)):
            if getattr(self, name) not in allowed:
                raise OptionError.of(name, getattr(self, name), f"one of {', '.join(allowed)}")
        if self.degree not in (1, 2, 3):
            raise OptionError.of("degree", self.degree, "1, 2 or 3")

    def _open(
        self, X: Any, y: Any, weight: Any, labels: Any = None, *, more: bool = False
    ) -> Table:
        self._checked()
        table = super()._open(X, y, weight, labels, more=more)
        if self.degree == 1:
            return table
        basis = getattr(self, "_basis", None)
        if basis is None:
            basis = self._basis = _basis_of(table, self.degree)
        if table.width != len(basis.features):
            raise ShapeError.of_width(table.width, len(basis.features), type(self).__name__)
        schema = type(table.schema)(basis.names, table.schema.labels, table.schema.named)
        return Table(schema, Expanded(table.features, basis), table.codes, table.weight)

    def _fit_table(self, table: Table) -> Self:
        moments = read_classes(table, self.detail_for(len(table), table.width))
        codes = class_codes(class_prior(moments, None), self.coding)
        problem = class_problem(moments, codes=codes, ridge=self.ridge)
        few = problem.solver.digits < _ENOUGH and self.precision == "auto"
        if moments.detail != "rows" and (few or self.precision == "high"):
            anchor = coded_anchor(moments.anchor, codes.shape[1])
            names = (*moments.features, *(f"code {j}" for j in range(codes.shape[1])))
            factor = fold(table, FactorReading(names, anchor, codes))
            problem = from_factor(factor, responses=codes.shape[1], ridge=self.ridge)
        rule = self._rule(moments, problem)
        self._hold(moments, rule, named=table.schema.named)
        self.masked_ = _masked(table, rule)
        return self

    def _rule(self, moments: Any, problem: Problem) -> IndicatorRule:
        problem.warn()
        line = class_line(problem, problem.solve(), moments.labels)
        return IndicatorRule(line, moments.weight, self.coding, getattr(self, "_basis", None))

    def _hold(self, moments: Any, rule: Any = None, *, named: bool | None = None) -> None:
        super()._hold(moments, rule, named=named)
        self.masked_ = None
        basis = getattr(self, "_basis", None)
        if basis is not None:
            self._remember(basis.features, named)

    def _slopes(self) -> tuple[Floats, Floats]:
        rule = self.rule_
        assert isinstance(rule, IndicatorRule)
        slope, intercept = rule.line.slopes()
        if len(intercept) == 2:
            return slope[1:] - slope[:1], intercept[1:] - intercept[:1]
        return slope, intercept

    def _values(self, X: Any) -> Floats:
        rule = self.rule_
        assert isinstance(rule, IndicatorRule)
        if not self._plain(X):
            X = self._features(X)
        return self._finite(rule.fitted, X)


def _basis_of(table: Table, degree: int) -> PolynomialBasis:
    """Products about the mean of the rows: weights and repeated rows give the same."""
    found = read_moments(table, detail="diagonal")
    weight, apart = found.weight, found.mean - found.centre
    variance = (found.pooled + weight @ apart**2) / weight.sum()
    anchor = found.anchor
    return PolynomialBasis.about(
        anchor.values(found.centre),
        np.sqrt(variance) * anchor.unit,
        table.schema.features,
        degree=degree,
    )


def _masked(table: Table, rule: IndicatorRule) -> npt.NDArray[Any]:
    """Classes that no row of positive weight is given to; rows are told until all are seen."""
    line, seen = rule.line, np.zeros(len(rule.labels), dtype=np.bool_)
    for block in table.blocks(max(_TALLY // len(seen), 256)):
        some = slice(None) if block.weight is None else block.weight > 0
        told = line.scores(block.features)[some].argmax(axis=1)
        seen |= np.bincount(told, minlength=len(seen)) > 0
        if seen.all():
            break
    masked = rule.labels[~seen]
    if len(masked):
        tell(MaskedClassWarning.of_classes(masked.tolist()))
    return masked
