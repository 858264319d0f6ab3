"""Linear regression of one or several numeric responses, by least squares.

    minimise  sum of weight (y - x'w - b)^2  +  ridge |w|^2

The fit is first computed from moments. If columns are nearly collinear and the rows are available,
the rows are read again: once for their triangular factor, whose condition number is not squared,
and then for the residuals, which correct the fit. The solver is `models.linear.least_squares`.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from discriminant.estimators.base import RowEstimator, check_choice
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
from discriminant.moments.loss_gradient_sums import ResidualReading
from discriminant.moments.qr_factor import ScatterFactor, ScatterFactorReading
from discriminant.table.blocks import Floats, numbered_names
from discriminant.table.memory import Table, as_table

PRECISIONS = ("auto", "standard", "high")
NEEDS_ROWS = "'auto' or 'standard' if there are no rows"
STORED_MOMENTS = "'auto' or 'standard': only the moments of earlier rows are stored"
KEEPS_ROWS = "'auto' or 'standard' to remove rows: a triangular factor cannot be reduced"
# if moments give this many correct digits, one correction by residuals is enough
_ENOUGH_DIGITS = 10.0
_CORRECTIONS = 3  # largest number of corrections by residuals


class RegressionFit(NamedTuple):
    """Stored fit. The field names must not change: they are part of the file format."""

    rule: LinearRule
    slope: Floats  # (m, d)
    at_zero: Floats  # (m,)
    rank: int


class LinearRegression(RegressorMixin, RowEstimator):
    """Least-squares regression of one or several numeric responses.

    Minimises  sum of weight (y - x'w - b)^2 + ridge |w|^2.  If columns are linearly dependent, the
    solution with the smallest norm is used, with a warning that names the columns.

    Parameters
    ----------
    ridge : float, default 0.0
        Penalty, relative to the sum (not the mean) of squared residuals, as `alpha` of
        scikit-learn's `Ridge`. The intercept is not penalised.
    fit_intercept : bool, default True
        Whether to fit an intercept.
    precision : {'auto', 'standard', 'high'}, default 'auto'
        'standard': fit from moments, in one pass. 'high': fit from the triangular factor of the
        rows, and correct the result by residuals in twice the precision; `partial_fit` then stores
        the factor. 'auto': fit from moments with one correction, or as 'high' if the columns are
        nearly collinear and the rows are available.

    Attributes
    ----------
    coef_ : array of shape (d,), or (m, d) for m responses
        Coefficients in the user's units.
    intercept_ : float, or array of shape (m,)
        Fitted value at x = 0. `predict` does not use it: for accuracy, it measures features from an
        origin near the rows.
    rank_ : int
        Rank of the standardised columns.
    moments_ : ClassMoments or None
        Moments of the features and responses; None if there are more features than rows.

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
        """Return the tags: several responses are supported."""
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
        table, flat = self._open_table(X, y, sample_weight)
        anchor = table_anchor(table, intercept=self.fit_intercept)
        if is_wide(len(table), table.width):
            self._set_state(None, table.schema.features, flat)
            self._set_fit(self._wide_problem(table, anchor))
            return self
        moments = read_moments(table, detail="pooled", anchor=anchor)
        self._set_state(moments, table.schema.features, flat)
        problem = self._problem()
        fit = (problem, None) if self.precision == "standard" else self._refine(table, problem)
        self._set_fit(*fit)
        return self

    def fit_moments(self, moments: ClassMoments, responses: int | None = None) -> Self:
        """Fit the model from moments of a table whose last columns are the responses.

        Parameters
        ----------
        moments : ClassMoments
            Moments of features and responses. Moments of several classes are merged.
        responses : int or None, default None
            Number of responses. None means the number of columns named 'response 0' and so on, as
            `fit` names them, or 1 if there are none. The number is required if the moments are by
            class.

        Returns
        -------
        self
        """
        if moments.detail == "diagonal":
            raise MomentsMismatchError.needs_detail(type(self).__name__, "pooled", "diagonal")
        if self.precision == "high":
            raise OptionError.of("precision", "high", NEEDS_ROWS)
        if responses is None and len(moments.labels) > 1:
            allowed = f"given for moments of {len(moments.labels)} classes (number of last columns)"
            raise OptionError.of("responses", None, allowed)
        count = _named_responses(moments.features) if responses is None else responses
        if not 0 < count < len(moments.features):
            largest = len(moments.features) - 1
            allowed = f"from 1 to {largest}, one less than the number of columns"
            raise OptionError.of("responses", count, allowed)
        self._check_options()
        self._set_state(moments, moments.features[:-count], count == 1)
        self._set_fit(self._problem())
        return self

    @classmethod
    def from_weights(
        cls,
        coef: npt.ArrayLike,
        intercept: npt.ArrayLike = 0.0,
        *,
        features: Sequence[str] | None = None,
    ) -> LinearRegression:
        """Return a model with the given coefficients, without fitting it.

        Parameters
        ----------
        coef : array of shape (d,), or (m, d) for m responses
            Weights.
        intercept : float, or array of shape (m,), default 0.0
            Fitted value at x = 0.
        features : sequence of str or None, default None
            Names of the d features.

        Returns
        -------
        LinearRegression

        Examples
        --------
        >>> model = LinearRegression.from_weights([0.2, 0.5, 0.3], 1.0)
        >>> model.predict([[1.0, 1.0, 0.0]]).tolist()
        [1.7]
        """
        given = np.asarray(coef)
        if given.dtype.kind not in "fiub" or given.ndim not in (1, 2) or not given.size:
            raise OptionError.of("coef", coef, "numbers of shape (d,) or (m, d)")
        slope = np.atleast_2d(given).astype(np.float64)
        constant = np.asarray(intercept, dtype=np.float64)
        if constant.shape not in ((), (len(slope),)):
            allowed = f"a number, or {len(slope)} numbers, one for each response"
            raise OptionError.of("intercept", intercept, allowed)
        if not (np.isfinite(slope).all() and np.isfinite(constant).all()):
            raise OptionError.of("coef", coef, "finite, as must be intercept")
        d = slope.shape[1]
        names = numbered_names(d) if features is None else tuple(str(name) for name in features)
        if len(names) != d or len(set(names)) != d:
            raise OptionError.of("features", features, f"{d} different names, or None")
        constant = np.broadcast_to(constant, (len(slope),)).copy()
        model = cls()
        model._set_state(None, names, given.ndim == 1)
        rule = LinearRule(np.arange(len(slope)), Anchor(np.zeros(d), np.ones(d)), slope, constant)
        model._fitted = RegressionFit(rule, slope, constant, d)
        return model

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows to the fit, which is updated when it is next used.

        Arguments are as in `fit`.
        """
        table, flat = self._open_table(X, y, sample_weight, more=True)
        self._check_has_moments()
        earlier = getattr(self, "moments_", None)
        if earlier is not None:
            self._check_same_shape(table)
        moments = self._read_moments(table)
        factor = self._factor_with(table, moments)
        moments = moments if earlier is None else earlier + moments
        self._set_state(moments, table.schema.features, flat, factor)
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Remove rows from the fit, as if they had never been included.

        Arguments are as in `fit`.
        """
        self._check_is_fitted()
        self._check_has_moments()
        if self._factor is not None:
            raise OptionError.of("precision", self.precision, KEEPS_ROWS)
        table, flat = self._open_table(X, y, sample_weight, more=True)
        self._check_same_shape(table)
        assert self.moments_ is not None
        moments = self.moments_ - self._read_moments(table)
        self._set_state(moments, table.schema.features, flat)
        return self

    # --- using ------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Floats:
        """Return the predicted responses of rows X: (n,), or (n, m) for m responses."""
        values = self._score_rows(self.rule_.values, X)
        return values[:, 0] if self._flat else values

    @property
    def rule_(self) -> LinearRule:
        """Fitted linear rule, with one score per response."""
        return self._current_fit().rule

    @property
    def coef_(self) -> Floats:
        """Coefficients in the user's units: (d,), or (m, d) for m responses."""
        slope = self._current_fit().slope
        return slope[0] if self._flat else slope

    @property
    def intercept_(self) -> Any:
        """Fitted value at x = 0: a number, or (m,) for m responses."""
        at_zero = self._current_fit().at_zero
        return float(at_zero[0]) if self._flat else at_zero

    @property
    def rank_(self) -> int:
        """Rank of the standardised columns."""
        return self._current_fit().rank

    # --- inside -----------------------------------------------------------------------------------

    def _check_has_moments(self) -> None:
        """Raise an error if the fit stored no moments (more features than rows)."""
        if getattr(self, "moments_", self) is None:
            raise MomentsMismatchError.not_stored(self.n_features_in_)

    def _check_options(self) -> None:
        check_ridge(self.ridge)
        check_choice("precision", self.precision, PRECISIONS)

    def _open_table(self, X: Any, y: Any, weight: Any, *, more: bool = False) -> tuple[Table, bool]:
        """Validate rows and responses and return them as a table.

        With `more`, columns are matched by name with the columns of the rows fitted before.
        """
        self._check_options()
        responses = validate_responses(y, type(self).__name__)
        flat = responses.ndim == 1
        columns = responses[:, None] if flat else responses
        match = self._schema if more and hasattr(self, "_schema") else None
        table = as_table(X, responses=columns, weight=weight, name=type(self).__name__, match=match)
        if len(columns) != len(table):
            raise ShapeError.of_lengths("y", len(columns), len(table))
        return table, flat

    def _read_moments(self, table: Table) -> ClassMoments:
        anchor = table_anchor(table, intercept=self.fit_intercept)
        return read_moments(table, detail="pooled", anchor=anchor)

    def _check_same_shape(self, table: Table) -> None:
        self._check_width(table.width)
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
        """Return the least-squares problem, from the QR factor or else from the moments."""
        assert self.moments_ is not None
        count = len(self.moments_.features) - self.n_features_in_
        if self._factor is not None:
            return problem_from_factor(self._factor, responses=count, **self._penalty())
        return problem_from_moments(self.moments_, responses=count, **self._penalty())

    def _penalty(self) -> dict[str, Any]:
        return {"ridge": self.ridge, "intercept": bool(self.fit_intercept)}

    def _factor_with(self, table: Table, moments: ClassMoments) -> ScatterFactor | None:
        """Return the QR factor of all rows: those of earlier fits and those of this table.

        Return None unless the precision is 'high'.
        """
        if self.precision != "high":
            return None
        earlier = getattr(self, "_factor", None)
        if earlier is None and hasattr(self, "moments_"):
            raise OptionError.of("precision", "high", STORED_MOMENTS)
        factor = fold(table, ScatterFactorReading(moments.features, moments.anchor))
        return factor if earlier is None else earlier + factor

    def _wide_problem(self, table: Table, anchor: Anchor) -> LeastSquaresProblem:
        assert table.responses is not None
        places = np.arange(len(anchor.unit))
        offsets = (
            anchor.select(places[: table.width]).offsets(table.features[:]),
            anchor.select(places[table.width :]).offsets(table.responses),
        )
        return problem_from_rows(
            table.schema.features, anchor, offsets, weight=table.weight, **self._penalty()
        )

    def _refine(
        self, table: Table, problem: LeastSquaresProblem
    ) -> tuple[LeastSquaresProblem, LinearFit]:
        """Read the rows again for residuals and, if moments are too inexact, for a QR factor."""
        assert self.moments_ is not None
        exact = self.precision == "high" or problem.solver.digits < _ENOUGH_DIGITS
        if exact:
            factor = fold(table, ScatterFactorReading(self.moments_.features, self.moments_.anchor))
            self._factor = factor if self.precision == "high" else None
            count = len(self.moments_.features) - table.width
            problem = problem_from_factor(factor, responses=count, **self._penalty())
        return problem, _correct_by_residuals(table, problem, exact=exact)


def _named_responses(columns: tuple[str, ...]) -> int:
    """Return the number of last columns named 'response 0' and so on, as `fit` names responses; at
    least 1.

    >>> _named_responses(("response time", "response 0", "response 1"))
    2
    """
    d = len(columns)
    for count in range(d - 1, 0, -1):
        if columns[d - count :] == tuple(f"response {j}" for j in range(count)):
            return count
    return 1


def _correct_by_residuals(table: Table, problem: LeastSquaresProblem, *, exact: bool) -> LinearFit:
    """Correct the fit by its residuals until a correction no longer improves or changes it."""
    line, last = problem.solve(), 0.5
    for _ in range(_CORRECTIONS if exact else 1):
        reading = ResidualReading(
            problem.features, problem.anchor, line.coef, line.intercept, exact
        )
        better, change = problem.correct(line, fold(table, reading))
        if not change < last:
            break
        line, last = better, change / 2
        if change * 10.0 ** (1.0 - problem.solver.digits) < 1e-17:  # size of another correction
            break
    return line


def table_anchor(table: Table, *, intercept: bool) -> Anchor:
    """Return the anchor of a table: origin and unit of each column.

    Without an intercept, the origin is zero.
    """
    anchor = anchor_of(table)
    return anchor if intercept else Anchor(np.zeros(len(anchor.unit)), anchor.unit)


def validate_responses(y: Any, name: str) -> npt.NDArray[Any]:
    """Return responses of shape (n,) or (n, m) as floats; reject values that are not finite."""
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
        missing = np.isnan(numbers[tuple(wrong[0])])
        error = ResponseError.missing if missing else ResponseError.infinite
        raise error(row, column[0] if column else 0)
    return numbers


def check_ridge(ridge: Any) -> None:
    """Raise `OptionError` unless `ridge` is a finite number of at least 0."""
    if not (isinstance(ridge, Real) and 0.0 <= float(ridge) < np.inf):
        raise OptionError.of("ridge", ridge, "a number, 0 or more")
