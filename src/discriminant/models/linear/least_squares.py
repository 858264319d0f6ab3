"""Least squares: linear regression, and classification by regression on class codes.

    minimise  sum of weight |v - b - u'W|^2  +  ridge |W|^2        u, v offsets of x and y

    S W = C,   b = mean(v) - mean(u)'W        S = scatter of u (+ ridge), C = scatter of u with v

S is represented by a matrix `root` with S = root'root, and C by `target` with C = root'target.
There are three ways to obtain the root: by Cholesky factorisation of the moments, which loses half
of the digits; from the rows, as their triangular factor (`ScatterFactor`); or, for wide rows, the
root is the matrix of centred rows itself. The penalty is added to the sum of squares, not to the
mean, and the intercept is not penalised. So `ridge` is the alpha of scikit-learn's Ridge.

`RootSolver` solves `root @ w = target` by least squares, for a root of any rank. `scale`
holds the lengths of the columns of the root. With the SVD root / scale = U s V':

    rank       number of singular values above a tolerance relative to the largest
    w          V s^-1 U' target / scale                if the rank is full
    w          the shortest w in units of the data     if not: w = Q T'^-1 s^-1 U' target,
                                                       where (scale V) = Q T spans the rows

The rank is computed for standardised columns, so it does not depend on the units of the columns.
The shortest w is the one with the least norm in the units of the data. If the root is a
well-conditioned triangular matrix, the system is solved directly.

Classification regresses codes of the classes on the features, using class moments:

    C = sum of weight_k (mean_k - mean) code_k'        the scatter of features with codes

    indicator  code_k = e_k         fitted values sum to one (ESL 4.2)
    sign       code_k = 2 e_k - 1   the same predictions as indicator
    fisher     N/N_1 and -N/N_2     two classes: W is Fisher's direction; threshold at the mean

The class with the largest fitted value is predicted. A class is masked on the training rows if it
is predicted for no training row. A class is masked everywhere if it is predicted at no point of the
feature space (`never_predicted_classes`); such a class is also masked on the training rows.

Fitted values estimate posteriors, E(indicator | x), but may lie outside [0, 1]. To obtain
memberships, negative values are set to zero and positive values are divided by their sum.
Memberships show only the order of the classes; they are not probabilities. (A softmax would be
wrong, since fitted values are not log probabilities.) Fisher's coding weights both classes equally,
so its memberships refer to equal priors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.linalg import cholesky, eigh, lapack, qr, solve_triangular, svd
from scipy.optimize import linprog

from discriminant.errors import CollinearWarning, ConstantColumnWarning, OptionError, warn
from discriminant.models.expressions import Expression, basis_expression
from discriminant.models.gaussian.covariance import thin_svd
from discriminant.models.rules import LinearRule
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.loss_gradient_sums import ResidualSums, add_double_double, exact_product
from discriminant.moments.qr_factor import ScatterFactor, triangular_factor
from discriminant.moments.rows_instead_of_moments import ClassRows
from discriminant.table.basis import ExpandedFeatures, JoinedBasis, PolynomialBasis
from discriminant.table.blocks import Features, Floats, Labels

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class RootSolver:
    """Solver of least-squares problems with a given root, by the pseudo-inverse of the root."""

    scale: Floats  # (d,) lengths of the columns
    rank: int
    digits: float  # expected number of correct digits of the coefficients
    weakest: Floats  # (d, k) how much columns take part in null, or weakest, directions
    upper: Floats | None  # (d, d) the root itself, if it is triangular and well-conditioned
    left: Floats  # (r, k) U
    gain: Floats  # (k,) 1 / s
    right: Floats  # (d, k) V / scale
    lift: Floats  # (d, k) map from U' target / s to coefficients

    @classmethod
    def from_root(
        cls, root: Floats, *, unit: Floats, squared: bool = False, ridge: float = 0.0
    ) -> RootSolver:
        """Factorise a root (r, d).

        Parameters
        ----------
        root
            (r, d) matrix.
        unit
            (d,) units by which the columns have been divided.
        squared
            Whether the root was computed from sums of squares, so that it has only half of the
            digits.
        ridge
            Penalty, if it is not yet included in the root (for wide rows).
        """
        scale = np.linalg.norm(root, axis=0)
        if ridge:
            return _ridge_solver(root, scale, unit, ridge)
        standard = root / scale
        reciprocal = _reciprocal_condition(standard)
        if reciprocal > (1e-5 if squared else 1e-9):
            empty = np.zeros((len(scale), 0))
            no_left = np.zeros((len(root), 0))
            digits = 16.0 + (2 if squared else 1) * float(np.log10(reciprocal))
            none = np.zeros(0)
            return cls(
                scale,
                len(scale),
                digits,
                empty,
                root,
                no_left,
                none,
                empty,
                empty,
            )
        return _svd_solver(standard, scale, unit, squared)

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.scale)

    def solve(self, target: Floats) -> Floats:
        """Return the (d, m) least-squares solution w of `root @ w = target`."""
        if self.upper is not None and self.width:
            return np.asarray(solve_triangular(self.upper, target))
        return np.asarray(self.lift @ (self.gain[:, None] * (self.left.T @ target)))

    def solve_transposed(self, rhs: Floats) -> Floats:
        """Return the (r, m) least-squares solution t of `root.T @ t = rhs`."""
        if self.upper is not None and self.width:
            return np.asarray(solve_triangular(self.upper, rhs, trans="T"))
        return np.asarray(self.left @ (self.gain[:, None] * (self.right.T @ rhs)))

    def collinear(self) -> npt.NDArray[np.bool_]:
        """Return a boolean array (d,): True for columns that are (nearly) linearly dependent."""
        share = np.abs(self.weakest).max(axis=1, initial=0.0)
        return np.asarray(share > 1e-3 * share.max(initial=0.0))


def _reciprocal_condition(standard: Floats) -> float:
    """Return the reciprocal condition number of an upper triangular matrix.

    Return zero if the matrix is singular or not upper triangular.
    """
    r, d = standard.shape
    if d == 0:
        return 1.0
    if r != d or np.tril(standard, -1).any() or not np.diagonal(standard).all():
        return 0.0
    reciprocal, _ = lapack.dtrcon(standard, norm="1", uplo="U")
    return float(reciprocal)


def _svd_solver(standard: Floats, scale: Floats, unit: Floats, squared: bool) -> RootSolver:
    left, values, right = thin_svd(standard, driver="gesvd")
    d = len(scale)
    tolerance = 8 * max(standard.shape) * _EPS
    nonzero = values > values[0] * (np.sqrt(tolerance) if squared else tolerance)
    rank = int(nonzero.sum())
    least = values[-1] / values[0] if rank == d else _EPS
    digits = 16.0 + (2 if squared and rank == d else 1) * float(np.log10(max(least, _EPS)))
    weakest = _missing_length(right[:rank]) if rank < d else right[-1:].T
    left, values, right = left[:, :rank], values[:rank], right[:rank].T
    lift = _minimum_norm_map(right, scale * unit, unit) if rank < d else right / scale[:, None]
    return RootSolver(
        scale, rank, max(digits, 0.0), weakest, None, left, 1 / values, right / scale[:, None], lift
    )


def _minimum_norm_map(right: Floats, size: Floats, unit: Floats) -> Floats:
    """Return the (d, k) map to the coefficients with the least norm in the units of the data.

    `right` is V; `size` (d,) holds the lengths of the columns in the units of the data. If the
    units differ too much, the norm of the coefficients of standardised columns is minimised
    instead.
    """
    basis, upper = qr(right * (size / size.max())[:, None], mode="economic")
    lift: Floats = np.full(right.shape, np.nan)
    if upper.diagonal().all():
        with np.errstate(all="ignore"):
            lift = solve_triangular(upper, basis.T).T * (unit / size.max())[:, None]
    return np.asarray(lift if np.isfinite(lift).all() else right * (unit / size)[:, None])


def _missing_length(rows: Floats) -> Floats:
    """Return a (d,) array: the length of each unit vector's part outside the span of the rows."""
    inside = np.einsum("kd,kd->d", rows, rows)
    return np.asarray(np.sqrt(np.maximum(1.0 - inside, 0.0))[:, None])


def _ridge_solver(root: Floats, scale: Floats, unit: Floats, ridge: float) -> RootSolver:
    """Return the ridge solver, w = V s / (s^2 + ridge) U' target, in the units of the data."""
    left, values, right = thin_svd(root * unit, driver="gesvd")
    nonzero = values > 0
    left, values, right = left[:, nonzero], values[nonzero], right[nonzero].T
    damped = values**2 + ridge
    condition = float(np.sqrt(damped.max(initial=ridge) / ridge))
    digits = 16.0 - float(np.log10(condition))
    empty = np.zeros((len(scale), 0))
    lift = right * unit[:, None]
    return RootSolver(scale, len(scale), digits, empty, None, left, values / damped, lift, lift)


_FEW_DIGITS = 6.0  # a warning is issued if fewer correct digits of coefficients are expected


@dataclass(frozen=True, slots=True, eq=False)
class LeastSquaresProblem:
    """Least-squares problem of d features and m responses."""

    features: tuple[str, ...]  # d names
    anchor: Anchor  # anchor of the d features followed by the m responses
    weight: float  # sum of weights; zero without an intercept
    mean: Floats  # (d,) means of the features; zero without an intercept
    mean_response: Floats  # (m,) means of the responses; zero without an intercept
    penalty: Floats  # (d,) ridge of the offsets (x - origin) / unit
    varying: npt.NDArray[np.bool_]  # (d,) False for constant columns, whose coefficients are 0
    target: Floats  # (r, m)
    solver: RootSolver  # solver of the root, which has only the columns that vary

    def solve(self) -> LinearFit:
        """Return the least-squares fit."""
        coef = self._to_all_columns(self.solver.solve(self.target))
        return LinearFit(coef, self.mean_response - self.mean @ coef)

    def correct(self, line: LinearFit, residuals: ResidualSums) -> tuple[LinearFit, float]:
        """Return the fit `line` after one step of iterative refinement, and its relative change.

        `residuals` holds sums over the rows: of the residuals of `line`, and of the products of
        residuals and features.
        """
        total, products = residuals.sums[0], residuals.sums[1:]
        centred = products - self.mean[:, None] * total - self.penalty[:, None] * line.coef
        coef_change = self._to_all_columns(
            self.solver.solve(self.solver.solve_transposed(centred[self.varying]))
        )
        intercept_change = (
            total / self.weight if self.weight else 0.0 * total
        ) - self.mean @ coef_change
        size = self.solver.scale[:, None]
        coef_size = np.abs(size * line.coef[self.varying]).max(initial=0.0)
        change_size = np.abs(size * coef_change[self.varying]).max(initial=0.0)
        coef, rest = add_double_double(
            (line.coef, np.zeros_like(coef_change)), (coef_change, np.zeros_like(coef_change))
        )
        corrected = LinearFit(coef, line.intercept + intercept_change, rest)
        return corrected, float(change_size / coef_size) if coef_size else 0.0

    def warn(self) -> None:
        """Warn about constant columns, linear dependences, and coefficients with few digits."""
        names = np.array(self.features, dtype=object)
        if not self.varying.all():
            constant = names[~self.varying].tolist()
            warn(ConstantColumnWarning.of_columns(constant, "response"))
        solver = self.solver
        if solver.digits < _FEW_DIGITS or solver.rank < solver.width:
            warning = CollinearWarning.of_columns(
                [str(name) for name in names[self.varying][solver.collinear()]],
                rank=solver.rank,
                features=solver.width,
                condition=10.0 ** (16.0 - solver.digits),
                remedy="ridge",
            )
            warn(warning)

    def _to_all_columns(self, coef: Floats) -> Floats:
        coefficients = np.zeros((len(self.varying), coef.shape[1]))
        coefficients[self.varying] = coef
        return coefficients


@dataclass(frozen=True, slots=True, eq=False)
class LinearFit:
    """Linear fit v = u'coef + intercept, for offsets u of the features and v of the responses."""

    coef: Floats  # (d, m)
    intercept: Floats  # (m,)
    rest: Floats | None = None  # (d, m) rounding error of coef: coef + rest is more accurate

    def rule(self, problem: LeastSquaresProblem, labels: Labels) -> LinearRule:
        """Return the fit as a linear rule for offsets from the mean of the rows."""
        d = len(self.coef)
        u, v = _split(problem.anchor, d)
        anchor, moved = u.shift(problem.mean)
        coef = self.coef * v.unit
        intercept = (self.intercept + moved @ self.coef) * v.unit + v.origin
        return LinearRule(labels, anchor, coef.T, intercept)

    def slopes(self, anchor: Anchor) -> tuple[Floats, Floats]:
        """Return the (m, d) slopes and (m,) intercepts in the units of the data.

        If all rows are far from x = 0, the intercept is a sum of large terms that nearly cancel.
        These terms are therefore summed exactly.
        """
        u, v = _split(anchor, len(self.coef))
        slope = (self.coef * v.unit).T / u.unit
        high, low = exact_product(-slope, u.origin)
        if self.rest is not None:
            low = low - (self.rest * v.unit).T / u.unit * u.origin
        terms = np.hstack([(self.intercept * v.unit)[:, None], v.origin[:, None], high, low])
        return slope, np.array([fsum(row) for row in terms])


def problem_from_moments(
    moments: ClassMoments, *, responses: int, ridge: float = 0.0, intercept: bool = True
) -> LeastSquaresProblem:
    """Return the least-squares problem, given the moments of d features followed by the responses.

    Examples
    --------
    >>> from discriminant.engines.dispatch import moments
    >>> sums = moments([[0.0, 1.0], [1.0, 3.0], [2.0, 5.0]], [0, 0, 0], detail="pooled")
    >>> problem = problem_from_moments(sums, responses=1)  # y = 1 + 2 x
    >>> slope, at_zero = problem.solve().slopes(problem.anchor)
    >>> slope.round(12).tolist(), at_zero.round(12).tolist()
    ([[2.0]], [1.0])
    """
    if not intercept:
        moments = moments.at(Anchor(np.zeros(len(moments.features)), moments.anchor.unit))
    weight = float(moments.weight.sum())
    scatter = moments.pooled + moments.spread_of_means()
    centre = moments.centre
    if not intercept:
        scatter = scatter + weight * centre[:, None] * centre
        weight, centre = 0.0, np.zeros_like(centre)
    d = len(moments.features) - responses
    return problem_from_scatter(
        moments.features[:d],
        moments.anchor,
        weight,
        (centre[:d], centre[d:]),
        scatter[:d, :d],
        scatter[:d, d:],
        ridge,
    )


def problem_from_factor(
    factor: ScatterFactor, *, responses: int, ridge: float = 0.0, intercept: bool = True
) -> LeastSquaresProblem:
    """Return the least-squares problem, given the triangular factor of features and responses.

    The d features are followed by the responses.
    """
    d = len(factor.columns) - responses
    weight, mean = factor.weight, factor.mean
    root = factor.centred if intercept else factor.uncentred
    if not intercept:
        weight, mean = 0.0, np.zeros_like(mean)
        factor = factor.at(Anchor(mean, factor.anchor.unit))
    unit = factor.anchor.unit[:d]
    penalty = _penalty(ridge, unit)
    varying = _varying_columns(np.linalg.norm(root[:, :d], axis=0), mean[:d], factor.weight)
    if ridge:
        root = triangular_factor(
            np.vstack([root, np.hstack([np.diag(np.sqrt(penalty)), np.zeros((d, responses))])])
        )
    if not varying.all():
        root = triangular_factor(root[:, np.append(varying, np.ones(responses, dtype=bool))])
    width = int(varying.sum())
    solver = RootSolver.from_root(root[:width, :width], unit=unit[varying])
    return LeastSquaresProblem(
        factor.columns[:d],
        factor.anchor,
        weight,
        mean[:d],
        mean[d:],
        penalty,
        varying,
        root[:width, width:],
        solver,
    )


def problem_from_rows(
    features: tuple[str, ...],
    anchor: Anchor,
    offsets: tuple[Floats, Floats],
    *,
    weight: Floats | None = None,
    ridge: float = 0.0,
    intercept: bool = True,
) -> LeastSquaresProblem:
    """Return the least-squares problem of wide data, which have more features d than rows n.

    The offsets are passed as two arrays: of the features (n, d) and of the responses (n, m). No d x
    d matrix is formed: the root consists of the centred rows.
    """
    u, v = offsets
    weights = np.ones(len(u)) if weight is None else weight
    total = float(weights.sum()) if intercept else 0.0
    mean = weights @ u / total if intercept else np.zeros(u.shape[1])
    mean_v = weights @ v / total if intercept else np.zeros(v.shape[1])
    root = np.sqrt(weights)[:, None] * (u - mean)
    varying = _varying_columns(np.linalg.norm(root, axis=0), mean, float(weights.sum()))
    unit = anchor.unit[: u.shape[1]]
    solver = RootSolver.from_root(root[:, varying], unit=unit[varying], ridge=ridge)
    target = np.sqrt(weights)[:, None] * (v - mean_v)
    penalty = _penalty(ridge, unit)
    return LeastSquaresProblem(
        features, anchor, total, mean, mean_v, penalty, varying, target, solver
    )


def problem_from_scatter(
    features: tuple[str, ...],
    anchor: Anchor,
    weight: float,
    means: tuple[Floats, Floats],
    scatter: Floats,
    cross: Floats,
    ridge: float,
) -> LeastSquaresProblem:
    """Return the least-squares problem, given scatter matrices.

    `scatter` (d, d) is the scatter of the features, `cross` (d, m) the scatter of features with
    responses.
    """
    unit = anchor.unit[: len(features)]
    penalty = _penalty(ridge, unit)
    varying = _varying_columns(np.sqrt(np.maximum(np.diagonal(scatter), 0.0)), means[0], weight)
    penalised = scatter[np.ix_(varying, varying)] + np.diag(penalty[varying])
    root, target = _scatter_root(penalised, cross[varying])
    solver = RootSolver.from_root(root, unit=unit[varying], squared=True)
    return LeastSquaresProblem(features, anchor, weight, *means, penalty, varying, target, solver)


def _penalty(ridge: float, unit: Floats) -> Floats:
    """Return the (d,) ridge penalties of the offsets `(x - origin) / unit`, each at most 1e300."""
    with np.errstate(over="ignore"):
        return np.minimum(ridge / unit / unit, 1e300)


def _varying_columns(size: Floats, mean: Floats, weight: float) -> npt.NDArray[np.bool_]:
    """Return a boolean array (d,): True for columns that vary by more than rounding errors.

    `size` (d,) holds the lengths of the centred columns.
    """
    return np.asarray(size > 16 * _EPS * np.sqrt(weight) * np.abs(mean))


def _scatter_root(scatter: Floats, cross: Floats) -> tuple[Floats, Floats]:
    """Return `root` and `target` such that root'root = scatter and root'target = cross.

    `root` is computed by Cholesky factorisation or, if that fails, from eigenvectors.
    """
    sd = np.sqrt(np.diagonal(scatter))
    standard, cross = scatter / sd[:, None] / sd, cross / sd[:, None]
    try:
        upper = cholesky(standard)
    except np.linalg.LinAlgError:
        values, vectors = eigh(standard)
        root = np.sqrt(np.maximum(values, 0.0))
        rotated = vectors.T @ cross
        target = np.divide(
            rotated, root[:, None], out=np.zeros_like(rotated), where=root[:, None] > 0
        )
        return root[:, None] * vectors.T * sd, target
    return upper * sd, solve_triangular(upper, cross, trans="T")


def _split(anchor: Anchor, d: int) -> tuple[Anchor, Anchor]:
    places = np.arange(len(anchor.origin))
    return anchor.select(places[:d]), anchor.select(places[d:])


Coding = Literal["indicator", "sign", "fisher"]
CODINGS: tuple[Coding, ...] = ("indicator", "sign", "fisher")
_RANK = 1e-8  # slopes or intercepts smaller than this, relative to the largest, are rounding errors
_ROUNDING = 1e-12  # smaller values are rounding errors of codes, which are of order one
_MIN_MARGIN = 1e-9  # a class with a smaller largest margin t has no region
REPRODUCIBLE_DIGITS = 11.0  # with so many digits a fit does not depend on the order of summation


@dataclass(frozen=True, slots=True, eq=False)
class IndicatorRule:
    """Rule by regression on class codes: fitted values of K classes, and memberships."""

    line: LinearRule  # rule with K fitted values; its features are those of `basis`, if given
    weight: Floats  # (K,) weights of the classes
    coding: Coding
    basis: PolynomialBasis | None = None

    @property
    def labels(self) -> Labels:
        """(K,) labels of the classes."""
        return self.line.labels

    def fitted(self, features: Features) -> Floats:
        """Return the (n, K) fitted values on the scale of the coding."""
        return self.line.values(self._columns(features))

    def scores(self, features: Features) -> Floats:
        """Return the (n, K) log memberships, -inf for a membership of zero."""
        return self.log_memberships(self.finite_fitted(features))

    def expression(self, x: Expression, names: Sequence[str]) -> Expression:
        """Return the (K,) fitted values of one row as an expression.

        The fitted values order the classes in the same way as `scores`.
        """
        columns = x if self.basis is None else basis_expression(x, JoinedBasis((self.basis,)))
        return self.line.expression(columns, names)

    def membership_expression(self, fitted: Expression) -> Expression:
        """Return the (K,) memberships as an expression of the fitted values."""
        if self.coding == "fisher":
            shares: Expression = fitted * (self.weight[::-1] / self.weight.sum()) + 1.0
        else:
            shares = fitted if self.coding == "indicator" else (fitted + 1.0) * 0.5
        positive = shares.larger(0.0).with_name("share", fitted.components)
        return positive / positive.sum().with_name("shares")

    def finite_fitted(self, features: Features) -> Floats:
        """Return the (n, K) fitted values, all finite.

        If a value of a row overflows, all values of this row are divided by the same power of two.
        """
        return self.line.finite_values(self._columns(features))

    def _columns(self, features: Features) -> Features:
        return features if self.basis is None else ExpandedFeatures(features, self.basis)

    def log_memberships(self, fitted: Floats) -> Floats:
        """Return the (n, K) log memberships, given the fitted values (n, K). NaN stays NaN."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(self.memberships(fitted)))

    def memberships(self, fitted: Floats) -> Floats:
        """Return the (n, K) memberships, which are at least 0 and sum to one for each row.

        The class with the largest fitted value has the largest membership.
        """
        if self.coding == "fisher":
            shares = 1.0 + fitted * (self.weight[::-1] / self.weight.sum())
        else:
            shares = fitted if self.coding == "indicator" else 0.5 * (fitted + 1.0)
        positive = np.maximum(shares, 0.0)
        positive /= positive.sum(axis=1, keepdims=True)
        return _keep_first(positive, fitted.argmax(axis=1))


def _keep_first(shares: Floats, first: npt.NDArray[np.intp]) -> Floats:
    """Return the shares, adjusted so that class `first` (n,) of each row has the largest share.

    If an earlier class has the same share because of rounding, the share of `first` is increased by
    one unit in the last place.
    """
    rows = np.flatnonzero(shares.argmax(axis=1) != first)
    shares[rows, first[rows]] = np.nextafter(shares[rows].max(axis=1), 2.0)
    return shares


def class_codes(weight: Floats, coding: Coding) -> Floats:
    """Return the (K, m) codes of the classes: the responses of the regression on the features.

    >>> class_codes(np.array([1.0, 3.0]), "fisher").ravel().round(3).tolist()
    [4.0, -1.333]
    """
    K = len(weight)
    if coding == "indicator":
        return np.eye(K)
    if coding == "sign":
        return 2.0 * np.eye(K) - 1.0
    if K != 2:
        raise OptionError.of("coding", coding, f"'indicator' or 'sign': there are {K} classes")
    return np.array([[weight.sum() / weight[0]], [-weight.sum() / weight[1]]])


def class_problem(
    moments: ClassMoments | ClassRows, *, codes: Floats, ridge: float = 0.0
) -> LeastSquaresProblem:
    """Return the least-squares problem in which the response of a row is the code of its class.

    `codes` (K, m) holds the codes of the classes.
    """
    anchor = origin_and_unit_with_codes(moments.anchor, codes.shape[1])
    if isinstance(moments, ClassRows):
        offsets = moments.offsets, codes[moments.codes]
        return problem_from_rows(
            moments.features, anchor, offsets, weight=moments.weights, ridge=ridge
        )
    weight, centre = float(moments.weight.sum()), moments.centre
    mean = moments.weight / weight @ codes
    weighted_means = moments.weight[:, None] * (moments.mean - centre)
    scatter = moments.pooled + moments.spread_of_means()
    cross = weighted_means.T @ (codes - mean)
    return problem_from_scatter(
        moments.features, anchor, weight, (centre, mean), scatter, cross, ridge
    )


def factor_problem(
    factor: ScatterFactor, *, codes: Floats, ridge: float = 0.0, present: npt.NDArray[np.bool_]
) -> LeastSquaresProblem:
    """Return the problem of `class_problem`, given a triangular factor.

    The columns of the factor are the features, followed by the indicators of all classes. `codes`
    (K, m) holds the codes of the K classes for which `present` is True.
    """
    d = len(factor.columns) - len(present)
    root = np.hstack([factor.root[:, : 1 + d], factor.root[:, 1 + d :][:, present] @ codes])
    m = codes.shape[1]
    names = (*factor.columns[:d], *(f"code {j}" for j in range(m)))
    anchor = origin_and_unit_with_codes(factor.anchor.select(np.arange(d)), m)
    coded = ScatterFactor(names, anchor, factor.rows, root)
    return problem_from_factor(coded, responses=m, ridge=ridge)


def class_rule(problem: LeastSquaresProblem, line: LinearFit, labels: Labels) -> LinearRule:
    """Return the linear rule with a fitted value for each class.

    If two classes are coded by a single response, their fitted values have opposite signs.
    """
    rule = line.rule(problem, labels)
    if len(rule.intercept) == len(labels):
        return rule
    coef = np.vstack([rule.coef, -rule.coef])
    return LinearRule(labels, rule.anchor, coef, np.append(rule.intercept, -rule.intercept))


def origin_and_unit_with_codes(anchor: Anchor, responses: int) -> Anchor:
    """Return the anchor of the features followed by the codes. The origin of the codes is zero."""
    origin = np.append(anchor.origin, np.zeros(responses))
    return Anchor(origin, np.append(anchor.unit, np.ones(responses)))


def never_predicted_classes(slope: Floats, intercept: Floats) -> npt.NDArray[np.bool_]:
    """Return a boolean array (K,): True for classes that are predicted at no point x.

    Class k has the fitted value f_k(x) = w_k'x + c_k. It is predicted somewhere if some x has
    f_k(x) > f_j(x) for all j. Multiplying x and the intercepts c by a common factor s >= 0 turns
    this into a linear programme that does not depend on the scale of x. Class k is predicted
    somewhere if t > 0 in

        max t  over  (w_k - w_j)'x + (c_k - c_j) s >= t,   |x| <= 1,  0 <= s <= 1

    An affine map of the features does not change the result. So the slopes are replaced by an
    orthonormal basis of the space that their columns span, and the intercepts by their residual
    from this space. If the slopes have full rank K - 1, every order of the fitted values occurs at
    some x, so every class is predicted somewhere, though perhaps only in a wedge far from all rows.
    Therefore a class can be masked everywhere only if there are fewer than K - 1 features, or if
    the class means differ in fewer than K - 1 directions.

    Parameters
    ----------
    slope
        (K, d) slopes of the fitted values in columns of standard deviation one.
    intercept
        (K,) fitted values at the mean of the rows.

    Examples
    --------
    >>> slope, intercept = np.array([[-1.0], [0.0], [1.0]]), np.array([0.0, -0.1, 0.0])
    >>> never_predicted_classes(slope, intercept).tolist()
    [False, True, False]
    >>> never_predicted_classes(slope, -intercept).tolist()
    [False, False, False]
    """
    K = len(slope)
    basis, size, _ = svd(slope - slope.mean(axis=0), full_matrices=False, check_finite=False)
    basis = basis[:, size > max(_RANK * size.max(initial=0.0), _ROUNDING)]
    if basis.shape[1] == K - 1:
        return np.zeros(K, dtype=np.bool_)
    centred = intercept - intercept.mean()
    residual = centred - basis @ (basis.T @ centred)
    length = float(np.linalg.norm(residual))
    in_span = length <= max(_RANK * float(np.linalg.norm(centred)), _ROUNDING)
    points = np.column_stack([basis, np.zeros(K) if in_span else residual / length])
    return np.array([_margin(points, k) <= _MIN_MARGIN for k in range(K)])


def _margin(points: Floats, k: int) -> float:
    """Return the largest t of the linear programme of class k.

    Each row of `points` holds the slopes of one class and, in the last column, its intercept.
    """
    differences = np.delete(points[k] - points, k, axis=0)
    width = differences.shape[1]
    solution = linprog(
        np.append(np.zeros(width), -1.0),
        A_ub=np.hstack([-differences, np.ones((len(differences), 1))]),
        b_ub=np.zeros(len(differences)),
        bounds=[*[(-1.0, 1.0)] * (width - 1), (0.0, 1.0), (0.0, None)],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert solution.x is not None  # zero is feasible, and the box bounds t
    return float((differences @ solution.x[:-1]).min())
