"""Basis: polynomial terms and Gaussian kernels of the features, as a scikit-learn transformer.

One pass over the rows gives means and standard deviations, and with them the origin of the powers;
kernel centres are given, or found by k-means in a sample of the rows. The columns themselves are
computed by `table.basis`.
"""

from __future__ import annotations

from numbers import Integral, Number, Real
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _check_feature_names_in

from discriminant.engines.dispatch import read_moments
from discriminant.errors import BasisError, ColumnNamesError, OptionError, ShapeError
from discriminant.estimators.base import RowEstimator
from discriminant.table.basis import (
    Interactions,
    JoinedBasis,
    KernelBasis,
    PolynomialBasis,
    count_terms,
    readable_origin,
)
from discriminant.table.blocks import Features, Floats, Schema, dense, is_sparse, numbered_names
from discriminant.table.memory import Table, as_features

_BLOCK = 1 << 17  # numbers in a block of rows, so that it stays in the cache
_SAMPLE = 1 << 13  # rows in the sample for k-means
_EACH = 32  # rows per centre in the sample, if centres are many


class Basis(TransformerMixin, RowEstimator):
    """Polynomial terms and Gaussian kernels: curved boundaries by linear models.

    Columns are, in this order: the features themselves; their powers and products about an origin;
    kernels exp(-|x - centre|^2 / (2 width^2)). There is no column of ones: every model of this
    package has an intercept.

    Parameters
    ----------
    degree : int or None, default 2
        Degree of the polynomial. 1: the features themselves; None: kernels alone.
    interactions : bool or 'only', default True
        True: powers and products; 'only': products of different features without powers; False:
        powers without products.
    origin : {'mean', 'zero'} or array of shape (d,), default 'mean'
        Origin of powers and products. 'mean': (x - origin)^2 with the mean of the column, rounded
        to the leading decimal of its standard deviation so that names are readable; the coefficient
        of x is then the slope near the mean, and squares lose no digits. 'zero': x^2 itself, R's
        I(x^2). The span is the same, so that fits without a penalty agree up to rounding. For
        sparse rows 'mean' is zero, which keeps them sparse.
    centres : int, array of shape (m, d), data frame or None, default None
        Kernel centres: their number, for k-means, or their coordinates. None: no kernels.
    width : float or None, default None
        Width of the kernels, in the unit of the features (scale features of different units first).
        None: the median distance between centres; for a single centre the root mean square
        distance of the rows from it.
    max_columns : int, default 10_000
        Raise an error before making more columns than this.
    random_state : int or RandomState, default 0
        Seed of k-means and of its sample: 8,192 rows, or 32 per centre, if there are more.

    Attributes
    ----------
    origin_, unit_ : arrays of shape (d,) or None
        Powers are of (x - origin_) / unit_; the unit is 1 except for columns whose powers would
        leave the range of float64. None without a polynomial.
    centres_ : array of shape (m, d) or None
        Kernel centres.
    width_ : float or None
        Kernel width.
    basis_ : JoinedBasis
        The basis functions.
    n_features_in_, feature_names_in_
        Number of features, and their names if the rows had any.

    See Also
    --------
    LeastSquares : Has its own `degree`.

    Examples
    --------
    >>> basis = Basis(degree=2).fit([[38.0, 1.0], [42.0, -1.0], [44.0, 0.0]])
    >>> basis.get_feature_names_out().tolist()
    ['x0', 'x1', '(x0 - 41)^2', '(x0 - 41) × x1', 'x1^2']
    >>> basis.transform([[43.0, 3.0]]).tolist()
    [[43.0, 3.0, 4.0, 6.0, 9.0]]
    """

    _fitted_attribute = "_basis"
    _fit_methods = "fit"
    _basis: JoinedBasis

    def __init__(
        self,
        *,
        degree: Any = 2,
        interactions: Any = True,
        origin: Any = "mean",
        centres: Any = None,
        width: Any = None,
        max_columns: Any = 10_000,
        random_state: Any = 0,
    ) -> None:
        self.degree = degree
        self.interactions = interactions
        self.origin = origin
        self.centres = centres
        self.width = width
        self.max_columns = max_columns
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Sparse rows are supported without kernels."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.centres is None
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the origin, the centres and the width from rows X of shape (n, d); y is ignored."""
        table = _open(X)
        self._check(table)
        mean, spread = _mean_and_spread(table)
        polynomial = self._polynomial(table, mean, spread)
        kernels = self._kernels(table, mean, spread)
        basis = JoinedBasis(tuple(part for part in (polynomial, kernels) if part is not None))
        _check_names(basis.names)
        self._set_features(table.schema.features, table.schema.named)
        self._basis = basis
        self.origin_ = None if polynomial is None else polynomial.origin
        self.unit_ = None if polynomial is None else polynomial.unit
        self.centres_ = None if kernels is None else kernels.centres
        self.width_ = None if kernels is None else kernels.spread
        return self

    @property
    def basis_(self) -> JoinedBasis:
        """The fitted basis functions."""
        self._check_is_fitted()
        return self._basis

    def transform(self, X: Any) -> Any:
        """(n, columns) float64 array of basis functions of rows X; CSR for sparse rows."""
        self._check_is_fitted()
        features = self._rows_to_score(X)
        if is_sparse(features):
            return self._expand_sparse(features)
        rows, columns = features.shape[0], self._basis.width
        found = np.empty((rows, columns))
        size = max(_BLOCK // columns, 64)
        with np.errstate(over="ignore", invalid="ignore"):
            for lo in range(0, rows, size):
                block = dense(features[lo : lo + size])
                part = self._basis.expand(block, out=found[lo : lo + size])
                if not (np.isfinite(block).all() and np.isfinite(part).all()):
                    self._blame(features, part, lo)
        return found

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Names of the columns, such as '(age - 40)^2', 'age × income', 'near (5.1, 3.5)'."""
        self._check_is_fitted()
        names = tuple(str(name) for name in _check_feature_names_in(self, input_features))
        renamed = (
            PolynomialBasis(
                names, part.origin, part.unit, part.degree, part.interactions, part.plain
            )
            if isinstance(part, PolynomialBasis)
            else part
            for part in self._basis.parts
        )
        return np.array(JoinedBasis(tuple(renamed)).names, dtype=object)

    # --- inside -----------------------------------------------------------------------------------

    def _check(self, table: Table) -> None:
        """Raise for invalid options or too many columns."""
        if not (self.degree is None or (_whole(self.degree) and self.degree >= 1)):
            allowed = (
                "a whole number, 1 (the features themselves) or more, or None for kernels alone"
            )
            raise OptionError.of("degree", self.degree, allowed)
        if self.degree is None and self.centres is None:
            raise OptionError.of("degree", None, "1 or more where there are no centres")
        if not (isinstance(self.interactions, bool | np.bool_) or self.interactions == "only"):
            raise OptionError.of("interactions", self.interactions, "True, False or 'only'")
        one = isinstance(self.centres, Number | str)
        if one and not (_whole(self.centres) and self.centres >= 1):
            allowed = "None, the number of centres, or their coordinates, one row a centre"
            raise OptionError.of("centres", self.centres, allowed)
        if not (_whole(self.max_columns) and self.max_columns >= 1):
            raise OptionError.of("max_columns", self.max_columns, "a whole number, 1 or more")
        if self.centres is not None and is_sparse(table.features):
            raise BasisError.sparse()
        self._check_count(table.width)

    def _check_count(self, features: int) -> None:
        terms = 0 if self.degree is None else count_terms(features, self.degree, self._interactions)
        kernels = 0
        if self.centres is not None:
            shape = getattr(self.centres, "shape", None)
            kernels = (
                self.centres if _whole(self.centres) else shape[0] if shape else len(self.centres)
            )
        if terms + kernels > self.max_columns:
            raise BasisError.too_wide(
                terms + kernels, self.max_columns, features=features, degree=self.degree
            )

    @property
    def _interactions(self) -> Interactions:
        return (
            "only" if self.interactions == "only" else cast(Interactions, bool(self.interactions))
        )

    def _polynomial(self, table: Table, mean: Floats, spread: Floats) -> PolynomialBasis | None:
        if self.degree is None:
            return None
        origin = self._origin_of(table, mean, spread)
        reach = np.hypot(spread, mean - origin)
        return PolynomialBasis.in_user_units(
            origin,
            reach,
            table.schema.features,
            degree=int(self.degree),
            interactions=self._interactions,
        )

    def _origin_of(self, table: Table, mean: Floats, spread: Floats) -> Floats:
        if isinstance(self.origin, str):
            if self.origin not in ("mean", "zero"):
                raise OptionError.of(
                    "origin", self.origin, "'mean', 'zero' or one number a feature"
                )
            if self.origin == "mean" and not is_sparse(table.features):
                return readable_origin(mean, spread)
            return np.zeros(table.width)
        found = np.asarray(self.origin)
        number = found.dtype.kind in "fiub" and found.shape == (table.width,)
        if not number or not np.isfinite(found).all():
            allowed = f"'mean', 'zero' or {table.width} finite numbers, one a feature"
            raise OptionError.of("origin", self.origin, allowed)
        if found.any() and is_sparse(table.features):
            raise OptionError.of(
                "origin", self.origin, "'zero' for sparse rows, to keep them sparse"
            )
        return found.astype(np.float64)

    def _kernels(self, table: Table, mean: Floats, spread: Floats) -> KernelBasis | None:
        if self.centres is None:
            return None
        if _whole(self.centres):
            centres = _find_centres(table, int(self.centres), mean, spread, self.random_state)
        else:
            centres = _given_centres(self.centres, table.schema)
        if self.width is None:
            return KernelBasis(centres, _typical_width(centres, mean, spread))
        number = isinstance(self.width, Real) and not isinstance(self.width, bool)
        if not number or not 0 < self.width < np.inf:
            raise OptionError.of("width", self.width, "a positive number, or None")
        return KernelBasis(centres, float(self.width))

    def _expand_sparse(self, features: Any) -> Any:
        """Sparse columns of sparse rows; raise if the fit does not allow that."""
        if self.centres_ is not None:
            raise BasisError.sparse()
        (basis,) = self._basis.parts
        assert isinstance(basis, PolynomialBasis)
        if basis.degree > 1 and basis.origin.any():
            raise BasisError.sparse_centred(basis.names[-1])
        with np.errstate(over="ignore", invalid="ignore"):
            found = basis.expand_sparse(features)
        for at in np.flatnonzero(~np.isfinite(found.data))[:1]:
            row = int(np.searchsorted(found.indptr, at, side="right")) - 1
            self._blame(features, found[row].toarray(), row)
        return found

    def _blame(self, features: Features, part: Floats, start: int) -> None:
        """Raise an error that names the cell, or the power of it, that is not finite."""
        codes = np.zeros(features.shape[0], dtype=np.uint8)
        Table(self._schema, features, codes).raise_bad_cell()
        for row, column in np.argwhere(~np.isfinite(part))[:1]:
            raise BasisError.overflow(start + int(row), self._basis.names[column])


def _open(X: Any) -> Table:
    """Validate rows without labels."""
    features, names = as_features(X)
    rows, width = features.shape
    if not rows:
        raise ShapeError.no_rows(rows)
    if not width:
        raise ShapeError.no_features(rows)
    schema = Schema(numbered_names(width) if names is None else names, np.zeros(1), bool(names))
    return Table(schema, features, np.zeros(rows, dtype=np.uint8))


def _mean_and_spread(table: Table) -> tuple[Floats, Floats]:
    """(d,) mean and standard deviation of each column."""
    found = read_moments(table, detail="diagonal")
    variance = found.pooled / found.weight.sum()
    return found.anchor.values(found.mean[0]), np.sqrt(variance) * found.anchor.unit


def _find_centres(table: Table, count: int, mean: Floats, spread: Floats, seed: Any) -> Floats:
    """(m, d) cluster means of the rows by k-means, the best of ten starts."""
    import warnings

    from sklearn.cluster import KMeans
    from sklearn.utils import check_random_state
    from threadpoolctl import threadpool_limits

    if count > len(table):
        raise BasisError.more_centres(count, len(table))
    random = check_random_state(seed)
    rows, most = np.arange(len(table)), max(_SAMPLE, _EACH * count)
    if len(rows) > most:
        rows = np.sort(random.choice(len(table), most, replace=False))
    unit = np.ldexp(1.0, np.frexp(spread.max() or 1.0)[1])
    offsets = (dense(table.features[rows]).astype(np.float64) - mean) / unit
    # One thread: so few rows are not worth two, which wait long for each other on a busy machine.
    with warnings.catch_warnings(), threadpool_limits(1):  # duplicate clusters raise an error below
        warnings.simplefilter("ignore")
        found = KMeans(count, n_init=10, random_state=random).fit(offsets)
    distinct = len(np.unique(found.labels_))
    if distinct < count:
        raise BasisError.more_centres(count, len(table), distinct=distinct)
    centres = found.cluster_centers_ * unit + mean
    return np.asarray(
        centres[np.lexsort(centres.T[::-1])]
    )  # sorted, so that the order does not depend on the seed


def _given_centres(centres: Any, schema: Schema) -> Floats:
    features, _ = as_features(centres, match=schema)
    found = np.array(dense(features[:]), dtype=np.float64)
    if found.shape[1] != len(schema.features) or not len(found):
        raise BasisError.of_centres(found.shape, len(schema.features))
    if not np.isfinite(found).all():
        raise BasisError.centre_not_finite(int(np.argmin(np.isfinite(found).all(axis=1))))
    return found


def _typical_width(centres: Floats, mean: Floats, spread: Floats) -> float:
    """Median distance between two centres, or of the rows from a single one."""
    from scipy.spatial.distance import pdist

    unit = np.ldexp(1.0, np.frexp(max(spread.max(), np.ptp(centres, axis=0).max()) or 1.0)[1])
    apart = pdist(centres / unit)
    apart = apart[apart > 0]
    if not len(apart):
        away = np.linalg.norm(np.append(spread, mean - centres[0]) / unit)
        apart = np.array([away]) if away > 0 else apart
    if not len(apart):
        raise BasisError.no_width(len(centres))
    return float(np.median(apart) * unit)


def _check_names(names: tuple[str, ...]) -> None:
    """Raise if a feature has the name of a power of another."""
    if len(set(names)) == len(names):
        return
    twice = next(name for i, name in enumerate(names) if name in names[:i])
    raise ColumnNamesError.of_duplicates(
        twice, [i for i, name in enumerate(names) if name == twice]
    )


def _whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
