"""Basis expansion: polynomials, Gaussian kernels and random features, as a transformer.

One pass over the rows computes the means and standard deviations, from which the origin of the
powers is chosen. Kernel centres are given by the user, or found by k-means in a sample of the rows.
The basis functions are evaluated by `table.basis`.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral, Number, Real
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_feature_names_in

from discriminant.engines.dispatch import read_moments
from discriminant.errors import BasisError, ColumnNamesError, OptionError, ShapeError
from discriminant.estimators.base import RowEstimator, check_choice
from discriminant.table.basis import (
    ACTIVATIONS,
    Interactions,
    JoinedBasis,
    KernelBasis,
    PolynomialBasis,
    RandomBasis,
    count_terms,
    readable_origin,
)
from discriminant.table.blocks import Features, Floats, Schema, dense, is_sparse, numbered_names
from discriminant.table.memory import Table, as_features

_BLOCK = 1 << 17  # size of a block of rows, in numbers, that stays in the cache
_SAMPLE = 1 << 13  # number of rows in the sample for k-means
_ROWS_PER_CENTRE = 32  # rows per centre in the sample, if there are many centres


class Basis(TransformerMixin, RowEstimator):
    """Polynomials, Gaussian kernels and random features: curved boundaries by linear models.

    The columns of `transform` are, in this order: the features themselves, their powers and
    products about an origin, the kernels exp(-|x - centre|^2 / (2 width^2)), and random features.
    There is no column of ones, because every model of this package has an intercept.

    Parameters
    ----------
    degree : int or None, default 2
        Degree of the polynomial. 1: only the features themselves. None means kernels or random
        features without polynomial terms.
    interactions : bool or 'only', default True
        True: powers and products; 'only': products of different features without powers; False:
        powers without products.
    origin : {'mean', 'zero'} or array of shape (d,), default 'mean'
        Origin of powers and products, such as (x - origin)^2. 'mean': the mean of the column,
        rounded to the leading decimal of its standard deviation so that names are readable. The
        coefficient of x is then the slope near the mean, and squares lose no digits. 'zero': the
        powers are x^2 itself, as with I(x^2) in R. The polynomials of 'mean' and 'zero' span the
        same functions, so fits without a penalty agree up to rounding. For sparse rows, 'mean'
        means zero, so that they stay sparse.
    centres : int, array of shape (m, d), data frame or None, default None
        Kernel centres: their coordinates, or their number, for centres computed by k-means. None
        means no kernels.
    width : float or None, default None
        Width of the kernels, and unit of random features, in the unit of the features; scale
        features of different units first. None means, for kernels, the median distance between
        centres, or with a single centre the root mean square distance of the rows from the centre;
        for random features, it means sqrt(d) times the standard deviation of each of the d
        features.
    max_columns : int, default 10_000
        Largest number of columns; `fit` raises an error if there would be more.
    random_features : int or None, default None
        Number of random features: functions of w'u + b, where w has standard normal entries and u
        is the row, measured from its mean in units of `width`. None means no random features.
    activation : {'relu', 'fourier'}, default 'relu'
        Function of random features. 'relu': max(0, w'u + b), a layer of a network with random
        weights, and b = -w'v / 2 with a random row v, so that no feature is constant. 'fourier':
        cos(w'u + b), with b uniform on a circle; a ridge model on many of these features
        approximates a model with the Gaussian kernel of this width.
    random_state : int or RandomState, default 0
        Seed of random features, of k-means, and of the sample of rows that k-means uses: 8,192
        rows, or 32 per centre if that is more.

    Attributes
    ----------
    origin_, unit_ : arrays of shape (d,) or None
        The powers are computed from (x - origin_) / unit_. The unit is 1 except for columns whose
        powers would overflow or underflow float64. None if `degree` is None.
    centres_ : array of shape (m, d) or None
        Kernel centres.
    width_ : float or None
        Kernel width.
    random_weights_ : array of shape (d, random_features) or None
        Weights w of the random features. They are stored in the file of the model.
    basis_ : JoinedBasis
        The basis functions.

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
    random_weights_: Floats | None = None

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
        random_features: Any = None,
        activation: Any = "relu",
    ) -> None:
        self.degree = degree
        self.interactions = interactions
        self.origin = origin
        self.centres = centres
        self.width = width
        self.max_columns = max_columns
        self.random_state = random_state
        self.random_features = random_features
        self.activation = activation

    def __sklearn_tags__(self) -> Any:
        """Return the tags: sparse rows are supported if there are only polynomial terms."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.centres is None and self.random_features is None
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the origin, the centres and the width from rows X (n, d); y is ignored."""
        table = _table_of_rows(X)
        self._check_options(table)
        mean, scale = _mean_and_scale(table)
        polynomial = self._polynomial(table, mean, scale)
        kernels = self._kernels(table, mean, scale)
        random = self._random_features(table, mean, scale)
        parts = tuple(part for part in (polynomial, kernels, random) if part is not None)
        basis = JoinedBasis(parts)
        _check_names(basis.names)
        self._set_features(table.schema.features, table.schema.named)
        self._basis = basis
        self.origin_ = None if polynomial is None else polynomial.origin
        self.unit_ = None if polynomial is None else polynomial.unit
        self.centres_ = None if kernels is None else kernels.centres
        self.width_ = None if kernels is None else kernels.spread
        self.random_weights_ = None if random is None else random.weights
        return self

    @property
    def basis_(self) -> JoinedBasis:
        """The fitted basis functions."""
        self._check_is_fitted()
        return self._basis

    def transform(self, X: Any) -> Any:
        """Return the basis functions of rows X, as (n, columns) float64; CSR for sparse rows."""
        self._check_is_fitted()
        features = self._rows_to_score(X)
        if is_sparse(features):
            return self._expand_sparse(features)
        rows, columns = features.shape[0], self._basis.width
        expanded = np.empty((rows, columns))
        size = max(_BLOCK // columns, 64)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, rows, size):
                block = dense(features[start : start + size])
                part = self._basis.expand(block, out=expanded[start : start + size])
                if not (np.isfinite(block).all() and np.isfinite(part).all()):
                    self._raise_not_finite(features, part, start)
        return expanded

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Return the column names, such as '(age - 40)^2', 'age × income', 'near (5.1, 3.5)'."""
        self._check_is_fitted()
        names = tuple(str(name) for name in _check_feature_names_in(self, input_features))
        renamed = (
            replace(part, features=names) if isinstance(part, PolynomialBasis) else part
            for part in self._basis.parts
        )
        return np.array(JoinedBasis(tuple(renamed)).names, dtype=object)

    # --- inside -----------------------------------------------------------------------------------

    def _check_options(self, table: Table) -> None:
        """Raise an error for invalid options or too many columns."""
        if not (self.degree is None or _is_positive_int(self.degree)):
            allowed = (
                "a whole number, 1 (the features themselves) or more, or None for kernels only"
            )
            raise OptionError.of("degree", self.degree, allowed)
        if self.degree is None and self.centres is None and self.random_features is None:
            allowed = "1 or more if there are no centres and no random features"
            raise OptionError.of("degree", None, allowed)
        if not (self.random_features is None or _is_positive_int(self.random_features)):
            allowed = "None, or the number of random features, 1 or more"
            raise OptionError.of("random_features", self.random_features, allowed)
        check_choice("activation", self.activation, ACTIVATIONS)
        self._check_width_option()
        if not (isinstance(self.interactions, bool | np.bool_) or self.interactions == "only"):
            raise OptionError.of("interactions", self.interactions, "True, False or 'only'")
        if isinstance(self.centres, Number | str) and not _is_positive_int(self.centres):
            allowed = "None, the number of centres, or their coordinates, one row per centre"
            raise OptionError.of("centres", self.centres, allowed)
        if not _is_positive_int(self.max_columns):
            raise OptionError.of("max_columns", self.max_columns, "a whole number, 1 or more")
        if self._dense_only and is_sparse(table.features):
            raise BasisError.sparse()
        columns = self._count_kernels() + int(self.random_features or 0)
        if self.degree is not None:
            columns += count_terms(table.width, self.degree, self._interactions)
        if columns > self.max_columns:
            raise BasisError.too_wide(
                columns, self.max_columns, features=table.width, degree=self.degree
            )

    def _count_kernels(self) -> int:
        if self.centres is None:
            return 0
        if _is_positive_int(self.centres):
            return int(self.centres)
        shape = getattr(self.centres, "shape", None)
        return int(shape[0]) if shape else len(self.centres)

    @property
    def _interactions(self) -> Interactions:
        products = self.interactions if self.interactions == "only" else bool(self.interactions)
        return cast(Interactions, products)

    def _polynomial(self, table: Table, mean: Floats, scale: Floats) -> PolynomialBasis | None:
        if self.degree is None:
            return None
        origin = self._origin(table, mean, scale)
        return PolynomialBasis.in_user_units(
            origin,
            np.hypot(scale, mean - origin),
            table.schema.features,
            degree=int(self.degree),
            interactions=self._interactions,
        )

    def _origin(self, table: Table, mean: Floats, scale: Floats) -> Floats:
        sparse = is_sparse(table.features)
        if isinstance(self.origin, str):
            if self.origin not in ("mean", "zero"):
                allowed = "'mean', 'zero' or one number per feature"
                raise OptionError.of("origin", self.origin, allowed)
            use_mean = self.origin == "mean" and not sparse
            return readable_origin(mean, scale) if use_mean else np.zeros(table.width)
        origin = np.asarray(self.origin)
        numeric = origin.dtype.kind in "fiub" and origin.shape == (table.width,)
        if not numeric or not np.isfinite(origin).all():
            allowed = f"'mean', 'zero' or {table.width} finite numbers, one per feature"
            raise OptionError.of("origin", self.origin, allowed)
        if origin.any() and sparse:
            allowed = "'zero' for sparse rows, to keep them sparse"
            raise OptionError.of("origin", self.origin, allowed)
        return origin.astype(np.float64)

    def _kernels(self, table: Table, mean: Floats, scale: Floats) -> KernelBasis | None:
        if self.centres is None:
            return None
        if _is_positive_int(self.centres):
            centres = _find_centres(table, int(self.centres), mean, scale, self.random_state)
        else:
            centres = _given_centres(self.centres, table.schema)
        if self.width is None:
            return KernelBasis(centres, _typical_width(centres, mean, scale))
        return KernelBasis(centres, float(self.width))

    def _random_features(self, table: Table, mean: Floats, scale: Floats) -> RandomBasis | None:
        if self.random_features is None:
            return None
        unit = scale * np.sqrt(len(scale))
        if self.width is not None:
            unit = np.full_like(scale, float(self.width))
        inverse_unit = np.divide(1.0, unit, out=np.zeros_like(scale), where=scale > 0)
        rng = np.random.default_rng(check_random_state(self.random_state).randint(1 << 31))
        sample = np.sort(rng.integers(len(table), size=int(self.random_features)))
        rows = dense(table.features[sample]).astype(np.float64)
        return RandomBasis.draw(rows, mean, inverse_unit, activation=self.activation, rng=rng)

    def _check_width_option(self) -> None:
        number = isinstance(self.width, Real) and not isinstance(self.width, bool)
        if self.width is not None and (not number or not 0 < self.width < np.inf):
            raise OptionError.of("width", self.width, "a positive number, or None")

    @property
    def _dense_only(self) -> bool:
        """Whether there are kernels or random features, whose values are dense (not zero)."""
        return self.centres is not None or self.random_features is not None

    def _expand_sparse(self, features: Any) -> Any:
        """Return the basis functions of sparse rows as CSR; all of them must be sparse."""
        if self.centres_ is not None or self.random_weights_ is not None:
            raise BasisError.sparse()
        (basis,) = self._basis.parts
        assert isinstance(basis, PolynomialBasis)
        if basis.degree > 1 and basis.origin.any():
            raise BasisError.sparse_centred(basis.names[-1])
        with np.errstate(over="ignore", invalid="ignore"):
            expanded = basis.expand_sparse(features)
        for entry in np.flatnonzero(~np.isfinite(expanded.data))[:1]:
            row = int(np.searchsorted(expanded.indptr, entry, side="right")) - 1
            self._raise_not_finite(features, expanded[row].toarray(), row)
        return expanded

    def _raise_not_finite(self, features: Features, part: Floats, start: int) -> None:
        """Raise an error that names the cell that is not finite, or whose power is not."""
        codes = np.zeros(features.shape[0], dtype=np.uint8)
        Table(self._schema, features, codes).raise_bad_cell()
        for row, column in np.argwhere(~np.isfinite(part))[:1]:
            raise BasisError.overflow(start + int(row), self._basis.names[column])


def _table_of_rows(X: Any) -> Table:
    """Validate rows without labels."""
    features, names = as_features(X)
    rows, width = features.shape
    if not rows:
        raise ShapeError.no_rows(rows)
    if not width:
        raise ShapeError.no_features(rows)
    schema = Schema(numbered_names(width) if names is None else names, np.zeros(1), bool(names))
    return Table(schema, features, np.zeros(rows, dtype=np.uint8))


def _mean_and_scale(table: Table) -> tuple[Floats, Floats]:
    """Return the mean (d,) and the standard deviation (d,) of each column."""
    moments = read_moments(table, detail="diagonal")
    variance = moments.pooled / moments.weight.sum()
    return moments.anchor.values(moments.mean[0]), np.sqrt(variance) * moments.anchor.unit


def _find_centres(table: Table, count: int, mean: Floats, scale: Floats, seed: Any) -> Floats:
    """Return the cluster means (m, d) found by k-means, the best of ten starts."""
    import warnings

    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    if count > len(table):
        raise BasisError.more_centres(count, len(table))
    random = check_random_state(seed)
    rows, size = np.arange(len(table)), max(_SAMPLE, _ROWS_PER_CENTRE * count)
    if len(rows) > size:
        rows = np.sort(random.choice(len(table), size, replace=False))
    unit = np.ldexp(1.0, np.frexp(scale.max() or 1.0)[1])
    offsets = (dense(table.features[rows]).astype(np.float64) - mean) / unit
    # One thread is used: for so few rows, a second thread mostly waits, in particular on a busy
    # machine.
    with warnings.catch_warnings(), threadpool_limits(1):  # duplicate clusters raise an error below
        warnings.simplefilter("ignore")
        clusters = KMeans(count, n_init=10, random_state=random).fit(offsets)
    distinct = len(np.unique(clusters.labels_))
    if distinct < count:
        raise BasisError.more_centres(count, len(table), distinct=distinct)
    centres = clusters.cluster_centers_ * unit + mean
    # Sorted, so that the order does not depend on the seed.
    return np.asarray(centres[np.lexsort(centres.T[::-1])])


def _given_centres(centres: Any, schema: Schema) -> Floats:
    features, _ = as_features(centres, match=schema)
    points = np.array(dense(features[:]), dtype=np.float64)
    if points.shape[1] != len(schema.features) or not len(points):
        raise BasisError.of_centres(points.shape, len(schema.features))
    finite = np.isfinite(points).all(axis=1)
    if not finite.all():
        raise BasisError.centre_not_finite(int(np.argmin(finite)))
    return points


def _typical_width(centres: Floats, mean: Floats, scale: Floats) -> float:
    """Return the median distance between two centres.

    For a single centre, return the root mean square distance of the rows from the centre.
    """
    from scipy.spatial.distance import pdist

    unit = np.ldexp(1.0, np.frexp(max(scale.max(), np.ptp(centres, axis=0).max()) or 1.0)[1])
    distances = pdist(centres / unit)
    distances = distances[distances > 0]
    if not len(distances):
        distance = np.linalg.norm(np.append(scale, mean - centres[0]) / unit)
        distances = np.array([distance]) if distance > 0 else distances
    if not len(distances):
        raise BasisError.no_width(len(centres))
    return float(np.median(distances) * unit)


def _check_names(names: tuple[str, ...]) -> None:
    """Raise an error if a feature has the same name as a power of another feature."""
    if len(set(names)) == len(names):
        return
    duplicate = next(name for i, name in enumerate(names) if name in names[:i])
    places = [i for i, name in enumerate(names) if name == duplicate]
    raise ColumnNamesError.of_duplicates(duplicate, places)


def _is_positive_int(value: Any) -> bool:
    whole = isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
    return whole and int(value) >= 1
