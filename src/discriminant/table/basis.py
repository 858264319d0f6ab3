"""Basis expansions of features: polynomials about an origin, and Gaussian kernels.

Let `u = (x - origin) / unit`. The columns of a polynomial basis are all `u_j`, then all `u_i u_j`
with `i <= j`, and so on. For two features and degree 2 the columns are `u1, u2, u1^2, u1 u2, u2^2`
(lecture 3). Together with an intercept the columns span the same functions as the powers of `x`,
but they are more accurate: at a mean of 1e8 the columns `x` and `x^2` are numerically collinear.
`interactions="only"` leaves out powers and keeps products of different features;
`interactions=False` leaves out these products.

A kernel is near 1 for rows near its centre `c` and near 0 for rows far from it (lecture 4):

    exp(-|x - c|^2 / (2 width^2))

Random features (`RandomBasis`) are functions of random projections of the standardised features.

Differences are computed before they are squared, so no digits are lost if all values of a feature
are large. `estimators.basis` chooses origin, centres and width from the data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, combinations_with_replacement
from math import comb, floor, log10
from typing import Any, Literal, NamedTuple

import numpy as np

from discriminant.table.blocks import Features, Floats, dense

Interactions = Literal[True, False, "only"]
_MAX_POWER = 900  # values above 2**900 or below 2**-900 need a unit
_SHOWN = 4  # largest number of coordinates in the name of a centre
_DIGITS = (3, 4, 5, 6, 7)  # digits of each coordinate; the fewest that make names distinct
_MAX_DEGREE, _MAX_COLUMNS = 64, 10_000_000  # largest basis that is read from a file


class _Run(NamedTuple):
    """Columns `lo` to `hi`, which are products of one feature and columns of the next lower degree.

    The columns of the lower degree are consecutive.
    """

    lo: int
    hi: int
    feature: int
    first: int  # first of these columns of lower degree


@dataclass(frozen=True, slots=True, eq=False)
class PolynomialBasis:
    """Powers and products of d features up to a given degree."""

    features: tuple[str, ...]  # d names
    origin: Floats  # (d,)
    unit: Floats  # (d,) powers of two
    degree: int
    interactions: Interactions = True
    plain: bool = False  # columns of degree one are x, not u; the other names show origin and unit
    terms: tuple[tuple[int, ...], ...] = field(init=False)  # features whose product each column is
    _runs: tuple[_Run, ...] = field(init=False)

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the fields of a basis are invalid, or None if they are valid."""
        d, degree = len(parts["features"]), parts["degree"]
        if not 0 < degree <= _MAX_DEGREE:
            return f"degree {degree} must be from 1 to {_MAX_DEGREE}"
        columns = d * degree if parts.get("interactions") is False else comb(d + degree, degree)
        if columns > _MAX_COLUMNS:
            return f"degree {degree} of {d} features makes more than {_MAX_COLUMNS:,} columns"
        return None

    def __post_init__(self) -> None:
        terms = tuple(_terms(len(self.features), self.degree, self.interactions))
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "_runs", tuple(_runs(terms)))

    @classmethod
    def centred_at(
        cls, mean: Floats, spread: Floats, features: tuple[str, ...], *, degree: int
    ) -> PolynomialBasis:
        """Return the basis with the mean as origin, and units near the standard deviations."""
        power = np.frexp(np.where(spread > 0, spread, 1.0))[1]
        return cls(features, mean, np.ldexp(1.0, np.clip(power, -1000, 1000)), degree)

    @classmethod
    def in_user_units(
        cls,
        origin: Floats,
        reach: Floats,
        features: tuple[str, ...],
        *,
        degree: int,
        interactions: Interactions = True,
    ) -> PolynomialBasis:
        """Return the basis with a given origin and unit one.

        A feature gets another unit only if powers of offsets as large as `reach` would overflow or
        underflow.
        """
        power = np.frexp(np.where(reach > 0, reach, 1.0))[1]
        power = np.where(np.abs(power) * degree > _MAX_POWER, power, 0)
        unit = np.ldexp(1.0, np.clip(power, -1000, 1000))
        return cls(features, origin, unit, degree, interactions, plain=True)

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.terms)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns.

        >>> PolynomialBasis(("a", "b"), np.zeros(2), np.ones(2), 2).names
        ('a', 'b', 'a^2', 'a × b', 'b^2')
        >>> PolynomialBasis(("a",), np.array([40.0]), np.ones(1), 2, plain=True).names
        ('a', '(a - 40)^2')
        """
        names = self.features
        factors = [self._factor(j) for j in range(len(names))] if self.plain else names

        def name(term: tuple[int, ...]) -> str:
            if len(term) == 1:
                return names[term[0]]
            powers = Counter(term).items()
            return " × ".join(factors[j] if k == 1 else f"{factors[j]}^{k}" for j, k in powers)

        return tuple(name(term) for term in self.terms)

    def expand(self, features: Features, out: Floats | None = None) -> Floats:
        """Return the (n, columns) expansion of rows (n, d); if `out` is given, write to it.

        >>> basis = PolynomialBasis(("a", "b"), np.zeros(2), np.ones(2), 2)
        >>> basis.expand(np.array([[2.0, 3.0]]))
        array([[2., 3., 4., 6., 9.]])
        """
        x, d = dense(features), len(self.features)
        columns = np.empty((len(x), len(self.terms)), order="F") if out is None else out
        if self.plain and len(self.terms) == d:
            columns[...] = x
            return columns
        u = np.empty((len(x), d), order="F" if out is None else "C")  # order of `columns`: faster
        np.subtract(x, self.origin, out=u, dtype=np.float64)
        u /= self.unit
        columns[:, :d] = x if self.plain else u
        for lo, hi, feature, first in self._runs:
            lower = (u if first < d else columns)[:, first : first + hi - lo]
            np.multiply(u[:, feature, None], lower, out=columns[:, lo:hi])
        return columns

    def expand_sparse(self, features: Any) -> Any:
        """Return the expansion of CSR rows as CSR.

        The origin must be zero, so that zeros stay zeros.
        """
        from scipy import sparse
        from sklearn.preprocessing import PolynomialFeatures

        x = features.astype(np.float64)
        if self.degree == 1:
            return x
        u = x.copy()
        u.data /= self.unit[u.indices]
        if self.interactions is False:
            powers = [u.power(k) for k in range(2, self.degree + 1)]
        else:
            only = self.interactions == "only"
            expansion = PolynomialFeatures(self.degree, interaction_only=only, include_bias=False)
            powers = [expansion.fit_transform(u)[:, u.shape[1] :]]
        return sparse.hstack([x, *powers], format="csr")

    def _factor(self, j: int) -> str:
        """Return how feature `j` is written in the name of a product."""
        name, origin, unit = self.features[j], self.origin[j], self.unit[j]
        if origin:
            name = f"({name} {'-' if origin > 0 else '+'} {_text(abs(origin))})"
        return name if unit == 1 else f"({name} / 2^{int(np.log2(unit))})"


@dataclass(frozen=True, slots=True, eq=False)
class KernelBasis:
    """Gaussian kernels of one width at m centres."""

    centres: Floats  # (m, d)
    spread: float  # width: distance from the centre at which a kernel is exp(-1/2)

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.centres)

    @property
    def names(self) -> tuple[str, ...]:
        """Names that show the coordinates of each centre.

        Coordinates have three digits, or more if names would be equal otherwise.

        Names that are still equal get numbers.

        >>> KernelBasis(np.array([[5.1, 3714.2], [6.0, 2.0]]), 900.0).names
        ('near (5.1, 3710)', 'near (6, 2)')
        """
        for digits in _DIGITS:
            names = [self._name(centre, digits) for centre in self.centres]
            if len(set(names)) == len(names):
                return tuple(names)
        names = [self._name(centre, _DIGITS[0]) for centre in self.centres]
        return tuple(f"{name} #{number}" for number, name in enumerate(names, start=1))

    def _name(self, centre: Floats, digits: int) -> str:
        shown = ", ".join(_text(float(f"{c:.{digits - 1}e}")) for c in centre[:_SHOWN])
        return f"near ({shown}{', …' if len(centre) > _SHOWN else ''})"

    def expand(self, features: Features, out: Floats | None = None) -> Floats:
        """Return the (n, m) kernel values of rows (n, d); if `out` is given, write to it.

        >>> KernelBasis(np.array([[0.0], [3.0]]), 1.0).expand(np.array([[1.0]])).round(4)
        array([[0.6065, 0.1353]])
        """
        from scipy.spatial.distance import cdist

        # In this unit, squares of distances near the width are neither 0 nor infinite.
        power = int(np.frexp(self.spread)[1])
        unit = np.ldexp(1.0, power) if abs(power) > _MAX_POWER // 2 else 1.0
        rows = np.asarray(dense(features), dtype=np.float64) / unit
        distance = cdist(rows, self.centres / unit, "sqeuclidean")
        distance /= -2.0 * (self.spread / unit) ** 2
        return np.asarray(np.exp(distance, out=out))


Activation = Literal["relu", "fourier"]
ACTIVATIONS: tuple[Activation, ...] = ("relu", "fourier")


@dataclass(frozen=True, slots=True, eq=False)
class RandomBasis:
    """Random features: m functions of random projections of d features.

        u = (x - origin) inverse_unit;   p = u . weights + bias
        relu     max(0, p)                   one layer of a network with random weights
        fourier  sqrt(2 / m) cos p           Rahimi & Recht (2007)

    The weights are standard normal. For Fourier features the bias is uniform on a circle, so that
    the inner product of the features of two rows u and v is, on average, the Gaussian kernel
    exp(-|u - v|^2 / 2). For ReLU features the bias is -v'w / 2 with a random row v. The kink then
    lies halfway between the mean of the rows and the row v, so every feature has its kink within
    the data, and none is constant or linear.
    """

    origin: Floats  # (d,)
    inverse_unit: Floats  # (d,) zero for constant columns
    weights: Floats  # (d, m)
    bias: Floats  # (m,)
    activation: str

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the fields of a basis are invalid, or None if they are valid."""
        (d,), weights = parts["origin"].shape, parts["weights"]
        if parts["inverse_unit"].shape != (d,) or weights.ndim != 2 or len(weights) != d:
            return f"weights {weights.shape} must have one row for each of {d} features"
        if parts["bias"].shape != weights.shape[1:]:
            return f"bias {parts['bias'].shape} must have one number per column of the weights"
        if parts["activation"] not in ACTIVATIONS:
            return f"activation {parts['activation']!r} must be one of {', '.join(ACTIVATIONS)}"
        return None

    @classmethod
    def draw(
        cls,
        rows: Floats,
        origin: Floats,
        inverse_unit: Floats,
        *,
        activation: Activation,
        rng: np.random.Generator,
    ) -> RandomBasis:
        """Return a basis of m features with random weights, given m random rows (m, d)."""
        weights = rng.standard_normal((len(origin), len(rows)))
        if activation == "fourier":
            bias = rng.uniform(0, 2 * np.pi, len(rows))
        else:
            u = (rows - origin) * inverse_unit
            bias = -0.5 * np.einsum("jd,dj->j", u, weights)
        return cls(origin, inverse_unit, weights, bias, activation)

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.bias)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns: 'relu 1', 'relu 2' and so on, or 'cos 1' for Fourier features."""
        name = "relu" if self.activation == "relu" else "cos"
        return tuple(f"{name} {number}" for number in range(1, self.width + 1))

    def expand(self, features: Features, out: Floats | None = None) -> Floats:
        """Return the (n, m) random features of rows (n, d); if `out` is given, write to it.

        >>> weights = np.array([[1.0, -1.0]])
        >>> basis = RandomBasis(np.zeros(1), np.ones(1), weights, np.zeros(2), "relu")
        >>> basis.expand(np.array([[3.0]]))
        array([[3., 0.]])
        """
        u = np.subtract(dense(features), self.origin, dtype=np.float64)
        u *= self.inverse_unit
        columns = u @ self.weights
        columns += self.bias
        target = columns if out is None else out
        if self.activation == "relu":
            return np.asarray(np.maximum(columns, 0.0, out=target))
        np.cos(columns, out=target)
        target *= np.sqrt(2.0 / self.width)
        return np.asarray(target)


@dataclass(frozen=True, slots=True, eq=False)
class JoinedBasis:
    """Columns of several bases side by side."""

    parts: tuple[PolynomialBasis | KernelBasis | RandomBasis, ...]

    @property
    def width(self) -> int:
        """Number of columns."""
        return sum(part.width for part in self.parts)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(name for part in self.parts for name in part.names)

    def expand(self, features: Features, out: Floats | None = None) -> Floats:
        """Return the (n, columns) expansion of rows (n, d); if `out` is given, write to it."""
        rows = dense(features)
        columns = np.empty((len(rows), self.width)) if out is None else out
        lo = 0
        for part in self.parts:
            part.expand(rows, out=columns[:, lo : lo + part.width])
            lo += part.width
        return columns


@dataclass(frozen=True, slots=True, eq=False)
class ExpandedFeatures:
    """Features of a basis expansion, which are computed when rows are indexed."""

    features: Features  # (N, d)
    basis: PolynomialBasis

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.features.shape[0]), len(self.basis.terms)

    def __getitem__(self, rows: Any) -> Floats:
        return self.basis.expand(self.features[rows])


def count_terms(width: int, degree: int, interactions: Interactions) -> int:
    """Return the number of columns of a polynomial basis, without the intercept.

    >>> count_terms(2, 2, True), count_terms(2, 2, "only"), count_terms(2, 2, False)
    (5, 3, 4)
    """
    if interactions is False:
        return width * degree
    if interactions == "only":
        return sum(comb(width, k) for k in range(1, min(degree, width) + 1))
    return comb(width + degree, degree) - 1


def readable_origin(mean: Floats, spread: Floats) -> Floats:
    """Return the mean, rounded to the leading decimal place of the standard deviation.

    The rounded mean is easy to read, and differs from the mean by at most half a standard
    deviation. For a constant column the result is the constant itself.

    >>> readable_origin(np.array([5.843, 35_210.0, 0.02]), np.array([0.83, 21_000.0, 1.0])).tolist()
    [5.8, 40000.0, 0.0]
    """
    rounded = [
        round(float(m), -floor(log10(s))) if s > 0 else float(m)
        for m, s in zip(mean, spread, strict=True)
    ]
    return np.array(rounded) + 0.0  # avoids -0.0


def _terms(width: int, degree: int, interactions: Interactions) -> Iterator[tuple[int, ...]]:
    """Yield, for each column, the features of which it is the product."""
    features = range(width)
    for power in range(1, degree + 1):
        if interactions is False:
            yield from ((j,) * power for j in features)
        elif interactions == "only":
            yield from combinations(features, power)
        else:
            yield from combinations_with_replacement(features, power)


def _runs(terms: Sequence[tuple[int, ...]]) -> Iterator[_Run]:
    """Group the columns of degree two or more into runs, as few as possible.

    One array product computes all columns of a run.
    """
    column_of = {term: column for column, term in enumerate(terms)}
    lo = sum(len(term) == 1 for term in terms)
    while lo < len(terms):
        feature, first = terms[lo][0], column_of[terms[lo][1:]]
        degree, hi = len(terms[lo]), lo + 1
        while (
            hi < len(terms)
            and len(terms[hi]) == degree
            and terms[hi] == (feature, *terms[first + hi - lo])
        ):
            hi += 1
        yield _Run(lo, hi, feature, first)
        lo = hi


def _text(value: float) -> str:
    """Return the shortest text of a number.

    >>> _text(40.0), _text(5.8)
    ('40', '5.8')
    """
    return repr(float(value)).removesuffix(".0")
