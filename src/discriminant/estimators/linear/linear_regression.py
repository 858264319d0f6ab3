"""LinearRegression: least-squares regression of one or several numeric responses.

    minimise  sum of weight (y - x'w - b)^2  +  ridge |w|^2

Moments answer first. If columns are nearly collinear and the rows are available, the rows are read
again: for a triangular factor, which does not square the condition number, and for the residuals,
which correct the fit. The solver is `models.linear.least_squares`.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from discriminant.engines.dispatch import anchor_of, fold, read_moments
from discriminant.errors import (
    LabelError,
    MomentsMismatchError,
    OptionError,
    ResponseError,
    ShapeError,
)
from discriminant.estimators.base import RowEstimator
from discriminant.models.gaussian.wide import is_wide
from discriminant.models.linear.least_squares import (
    LeastSquaresProblem,
    LinearFit,
    problem_from_factor,
    problem_from_moments,
    problem_from_rows,
)
from discriminant.models.rules import LinearRule
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.loss import ResidualReading
from discriminant.moments.qr_factor import ScatterFactor, ScatterFactorReading
from discriminant.table.blocks import Floats
from discriminant.table.memory import Table, as_table

PRECISIONS = ("auto", "standard", "high")
_ENOUGH = 10.0  # correct digits from moments that one correction by residuals completes
_CORRECTIONS = 3  # maximum number of corrections by residuals


class RegressionFit(NamedTuple):
    """Stored fit; the names of the fields are part of the file format."""

    rule: LinearRule
    slope: Floats  # (m, d)
    at_zero: Floats  # (m,)
    rank: int


class LinearRegression(RegressorMixin, RowEstimator):
    """Least-squares regression of one or several numeric responses.

    Minimises  sum of weight (y - x'w - b)^2 + ridge |w|^2.  If columns are linearly dependent the
    shortest w is used, with a warning that names them.

    Parameters
    ----------
    ridge : float, default 0.0
        Penalty on the sum (not the mean) of squares, as alpha of scikit-learn's Ridge; the
        intercept is not penalised.
    fit_intercept : bool, default True
        Whether to fit an intercept.
    precision : {'auto', 'standard', 'high'}, default 'auto'
        'standard': from moments, one pass. 'high': from the triangular factor of the rows,
        corrected by residuals in twice the precision; `partial_fit` then stores the factor.
        'auto': moments and one correction, or 'high' if the columns are nearly collinear and the
        rows are available.

    Attributes
    ----------
    coef_ : array of shape (d,), or (m, d) for m responses
        Coefficients in the user's units.
    intercept_ : float, or array of shape (m,)
        Fitted value at x = 0; `predict` uses an origin near the rows instead.
    rank_ : int
        Rank of the standardised columns.
    moments_ : ClassMoments or None
        Moments of the features and responses; None if features outnumber rows.
    n_features_in_, feature_names_in_
        Number of features, and their names if the rows had any.

    See Also
    --------
    GLM : Standard errors, other families and links.
    LogLinear : Regression of the logarithm of a positive response.

    Examples
    --------
    >>> model = LinearRegression().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> model.coef_.round(12).tolist(), round(model.intercept_, 12)
    ([2.0], 1.0)
    """

    moments_: ClassMoments | None
    _fitted: RegressionFit | None
    _factor: ScatterFactor | None

    def __init__(
        self, *, ridge: Any = 0.0, fit_intercept: Any = True, precision: Any = "auto"
    ) -> None:
        self.ridge = ridge
        self.fit_intercept = fit_intercept
        self.precision = precision

    def __sklearn_tags__(self) -> Any:
        """Several responses are supported."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    # --- fitting ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Rows.
        y : array of shape (n,) or (n, m)
            Responses.
        sample_weight : array of shape (n,), default None
            Weight of each row.

        Returns
        -------
        self
        """
        table, flat = self._open(X, y, sample_weight)
        anchor = self._anchor(table)
        if is_wide(len(table), table.width):
            self._set_state(None, table.schema.features, flat)
            self._set_fit(self._wide(table, anchor))
            return self
        moments = read_moments(table, detail="pooled", anchor=anchor)
        self._set_state(moments, table.schema.features, flat)
        if self.precision == "standard":
            self._set_fit(self._problem())
        else:
            self._set_fit(*self._refine(table, self._problem()))
        return self

    def fit_moments(self, moments: ClassMoments, responses: int | None = None) -> Self:
        """Fit the model from moments of the features and, as last columns, the responses.

        Parameters
        ----------
        moments : ClassMoments
            Moments; those of several classes are used as one table.
        responses : int or None, default None
            Number of responses. None: the columns that `fit` named 'response 0' and so on, or else
            the last column. Required for moments of several classes.

        Returns
        -------
        self
        """
        if moments.detail == "diagonal":
            raise MomentsMismatchError.needs_detail(type(self).__name__, "pooled", "diagonal")
        if self.precision == "high":
            raise OptionError.of(
                "precision", "high", "'auto' or 'standard' where there are no rows"
            )
        if responses is None and len(moments.labels) > 1:
            allowed = f"given for moments of {len(moments.labels)} classes: how many last columns"
            raise OptionError.of("responses", None, allowed)
        count = _named_responses(moments.features) if responses is None else responses
        if not 0 < count < len(moments.features):
            most = len(moments.features) - 1
            raise OptionError.of("responses", count, f"from 1 to {most}, the columns less one")
        self._check_options()
        self._set_state(moments, moments.features[:-count], count == 1)
        self._set_fit(self._problem())
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows to the fit, which is computed when it is next used; arguments as in `fit`."""
        table, flat = self._open(X, y, sample_weight, more=True)
        self._check_has_moments()
        held = getattr(self, "moments_", None)
        if held is not None:
            self._check_same_shape(table)
        more = read_moments(table, detail="pooled", anchor=self._anchor(table))
        factor = self._factor_with(table, more)
        self._set_state(more if held is None else held + more, table.schema.features, flat, factor)
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Remove rows from the fit, as if they had never been included; arguments as in `fit`."""
        self._check_is_fitted()
        self._check_has_moments()
        if self._factor is not None:
            allowed = "'auto' or 'standard' for rows to be removed: a factor keeps them"
            raise OptionError.of("precision", self.precision, allowed)
        table, flat = self._open(X, y, sample_weight, more=True)
        self._check_same_shape(table)
        assert self.moments_ is not None
        gone = read_moments(table, detail="pooled", anchor=self._anchor(table))
        self._set_state(self.moments_ - gone, table.schema.features, flat)
        return self

    # --- using ------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Floats:
        """(n,) or (n, m) predicted responses of rows X."""
        rule = self._current_fit().rule
        found = self._score_rows(rule.values, X)
        return found[:, 0] if self._flat else found

    @property
    def rule_(self) -> LinearRule:
        """Fitted linear rule with one score per response."""
        return self._current_fit().rule

    @property
    def coef_(self) -> Floats:
        """(d,) or (m, d) coefficients in the user's units."""
        slope = self._current_fit().slope
        return slope[0] if self._flat else slope

    @property
    def intercept_(self) -> Any:
        """Fitted value at x = 0."""
        at_zero = self._current_fit().at_zero
        return float(at_zero[0]) if self._flat else at_zero

    @property
    def rank_(self) -> int:
        """Rank of the standardised columns."""
        return self._current_fit().rank

    # --- inside -----------------------------------------------------------------------------------

    def _check_has_moments(self) -> None:
        """Raise if the fit stored no moments, because features outnumber rows."""
        if getattr(self, "moments_", self) is None:
            raise MomentsMismatchError.not_stored(self.n_features_in_)

    def _check_options(self) -> None:
        check_ridge(self.ridge)
        if self.precision not in PRECISIONS:
            raise OptionError.of("precision", self.precision, f"one of {', '.join(PRECISIONS)}")

    def _open(self, X: Any, y: Any, weight: Any, *, more: bool = False) -> tuple[Table, bool]:
        """Validate rows and responses; with `more`, match the column names of earlier rows."""
        self._check_options()
        responses = open_responses(y, type(self).__name__)
        flat = responses.ndim == 1
        columns = responses[:, None] if flat else responses
        match = self._schema if more and hasattr(self, "_schema") else None
        table = as_table(X, responses=columns, weight=weight, name=type(self).__name__, match=match)
        if len(columns) != len(table):
            raise ShapeError.of_lengths("y", len(columns), len(table))
        return table, flat

    def _anchor(self, table: Table) -> Anchor:
        anchor = anchor_of(table)
        return anchor if self.fit_intercept else Anchor(np.zeros(len(anchor.unit)), anchor.unit)

    def _check_same_shape(self, table: Table) -> None:
        if table.width != self.n_features_in_:
            raise ShapeError.of_width(table.width, self.n_features_in_, type(self).__name__)
        assert self.moments_ is not None and table.responses is not None
        fitted = len(self.moments_.features) - self.n_features_in_
        if table.responses.shape[1] != fitted:
            raise ResponseError.of_width(table.responses.shape[1], fitted)

    def _set_state(
        self,
        moments: ClassMoments | None,
        features: tuple[str, ...],
        flat: bool,
        factor: ScatterFactor | None = None,
    ) -> None:
        self.moments_, self._factor, self._flat, self._fitted = moments, factor, flat, None
        self._set_features(features)

    def _set_fit(self, problem: LeastSquaresProblem, line: LinearFit | None = None) -> None:
        problem.warn()
        line = problem.solve() if line is None else line
        slope, at_zero = line.slopes(problem.anchor)
        rule = line.rule(problem, np.arange(len(at_zero)))
        self._fitted = RegressionFit(rule, slope, at_zero, problem.solver.rank)

    def _current_fit(self) -> RegressionFit:
        self._check_is_fitted()
        if self._fitted is None:
            self._set_fit(self._problem())
        assert self._fitted is not None
        return self._fitted

    def _problem(self) -> LeastSquaresProblem:
        """Problem from the moments, or from the factor if one is stored."""
        assert self.moments_ is not None
        count = len(self.moments_.features) - self.n_features_in_
        if self._factor is not None:
            return self._from_factor(self._factor, count)
        return problem_from_moments(
            self.moments_, responses=count, ridge=self.ridge, intercept=bool(self.fit_intercept)
        )

    def _from_factor(self, factor: ScatterFactor, responses: int) -> LeastSquaresProblem:
        return problem_from_factor(
            factor, responses=responses, ridge=self.ridge, intercept=bool(self.fit_intercept)
        )

    def _factor_with(self, table: Table, more: ClassMoments) -> ScatterFactor | None:
        """Factor of the earlier rows and these; only for high precision."""
        if self.precision != "high":
            return None
        kept = getattr(self, "_factor", None)
        if kept is None and hasattr(self, "moments_"):
            allowed = "'auto' or 'standard': of the rows before only moments are kept"
            raise OptionError.of("precision", "high", allowed)
        part = fold(table, ScatterFactorReading(more.features, more.anchor))
        return part if kept is None else kept + part

    def _wide(self, table: Table, anchor: Anchor) -> LeastSquaresProblem:
        assert table.responses is not None
        places = np.arange(len(anchor.unit))
        offsets = (
            anchor.select(places[: table.width]).offsets(table.features[:]),
            anchor.select(places[table.width :]).offsets(table.responses),
        )
        return problem_from_rows(
            table.schema.features,
            anchor,
            offsets,
            weight=table.weight,
            ridge=self.ridge,
            intercept=bool(self.fit_intercept),
        )

    def _refine(
        self, table: Table, problem: LeastSquaresProblem
    ) -> tuple[LeastSquaresProblem, LinearFit]:
        """Read the rows again: for a factor if moments are too inexact, and for residuals."""
        assert self.moments_ is not None
        exact = self.precision == "high" or problem.solver.digits < _ENOUGH
        if exact:
            factor = fold(table, ScatterFactorReading(self.moments_.features, self.moments_.anchor))
            self._factor = factor if self.precision == "high" else None
            problem = self._from_factor(factor, len(self.moments_.features) - table.width)
        return problem, _correct_by_residuals(table, problem, exact=exact)


def _named_responses(columns: tuple[str, ...]) -> int:
    """Number of last columns that are named as `fit` names responses; at least one.

    >>> _named_responses(("response time", "response 0", "response 1"))
    2
    """
    d = len(columns)
    for count in range(d - 1, 0, -1):
        if columns[d - count :] == tuple(f"response {j}" for j in range(count)):
            return count
    return 1


def _correct_by_residuals(table: Table, problem: LeastSquaresProblem, *, exact: bool) -> LinearFit:
    """Correct the fit by its residuals until that changes or improves nothing."""
    line, last = problem.solve(), 0.5
    for _ in range(_CORRECTIONS if exact else 1):
        reading = ResidualReading(
            problem.features, problem.anchor, line.coef, line.intercept, exact
        )
        better, change = problem.correct(line, fold(table, reading))
        if not change < last:
            break
        line, last = better, change / 2
        if change * 10.0 ** (1.0 - problem.solver.digits) < 1e-17:  # what is still to be corrected
            break
    return line


def open_responses(y: Any, name: str) -> npt.NDArray[Any]:
    """Validate responses: finite numbers of shape (n,) or (n, m)."""
    if y is None:
        raise LabelError.absent(name)
    values = np.asarray(y)
    if values.ndim not in (1, 2) or not values.size:
        raise ResponseError.of_shape(values.shape)
    if values.dtype.kind == "c":
        raise ResponseError.not_numbers("complex")
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        raise ResponseError.not_numbers(f"values such as {type(values.flat[0]).__name__}") from None
    wrong = np.argwhere(~np.isfinite(numbers))
    if len(wrong):
        row, *column = (int(i) for i in wrong[0])
        what = (
            ResponseError.missing if np.isnan(numbers[tuple(wrong[0])]) else ResponseError.infinite
        )
        raise what(row, column[0] if column else 0)
    return numbers


def check_ridge(ridge: Any) -> None:
    """Raise OptionError unless ridge is a finite number, 0 or more."""
    if not (isinstance(ridge, Real) and 0.0 <= float(ridge) < np.inf):
        raise OptionError.of("ridge", ridge, "a number that is not negative")
