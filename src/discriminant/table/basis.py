"""Features to features: powers and products of offsets up to a degree, and Gaussian kernels.

With u = (x - origin) / unit the columns of a polynomial are all u_j, then all u_i u_j with i <= j,
and so on: for degree 2 and two features u1, u2, u1^2, u1 u2, u2^2 (lecture 3). Their span, with an
intercept, is that of the powers of x itself, but near the rows squares keep all digits: at a mean
of 1e8 the columns x and x^2 cannot be told apart. Left out may be the powers (products of different
features are left: `interactions="only"`) or the products (`interactions=False`).

A kernel is near 1 for rows near its centre c and 0 for rows far from it (lecture 4):

    exp(-|x - c|^2 / (2 width^2))

Differences are taken before they are squared: how far from zero the rows are does not matter.
How origin, centres and width come from rows is said in `estimators.basis`.
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
_ROOM = 900  # a power beyond 2**+-900 is too near the ends of float64: then there is a unit
_SHOWN = 4  # numbers of a centre that its name shows, at most
_DIGITS = (3, 4, 5, 6, 7)  # of each of them


_MAX_DEGREE, _MAX_COLUMNS = 64, 10_000_000  # of a basis in a file


class _Run(NamedTuple):
    """Columns lo to hi: one feature times columns, in a row, of degree one less."""

    lo: int
    hi: int
    feature: int
    first: int  # the first of those columns


@dataclass(frozen=True, slots=True, eq=False)
class PolynomialBasis:
    """Powers and products of d features."""

    features: tuple[str, ...]  # d names
    origin: Floats  # (d,)
    unit: Floats  # (d,) powers of two
    degree: int
    interactions: Interactions = True
    plain: bool = False  # columns of degree one are x as it is, and names tell origins and units
    terms: tuple[tuple[int, ...], ...] = field(init=False)  # the features each column multiplies
    _runs: tuple[_Run, ...] = field(init=False)

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return why these fields cannot form a polynomial basis, or None."""
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
        """Basis of rows with this mean and spread, in about the unit of the spread."""
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
        """Powers about the origin in the user's own unit, unless rows that far away overflow it."""
        power = np.frexp(np.where(reach > 0, reach, 1.0))[1]
        power = np.where(np.abs(power) * degree > _ROOM, power, 0)
        unit = np.ldexp(1.0, np.clip(power, -1000, 1000))
        return cls(features, origin, unit, degree, interactions, plain=True)

    @property
    def width(self) -> int:
        """How many columns."""
        return len(self.terms)

    @property
    def names(self) -> tuple[str, ...]:
        """What the columns are.

        >>> PolynomialBasis(("a", "b"), np.zeros(2), np.ones(2), 2).names
        ('a', 'b', 'a^2', 'a × b', 'b^2')
        >>> PolynomialBasis(("a",), np.array([40.0]), np.ones(1), 2, plain=True).names
        ('a', '(a - 40)^2')
        """
        alone = self.features
        factors = [self._factor(j) for j in range(len(alone))] if self.plain else alone
        return tuple(
            alone[term[0]]
            if len(term) == 1
            else " × ".join(
                factors[j] if power == 1 else f"{factors[j]}^{power}"
                for j, power in Counter(term).items()
            )
            for term in self.terms
        )

    def expand(self, features: Features, out: Floats | None = None) -> Floats:
        """(n, columns) of rows (n, d).

        >>> basis = PolynomialBasis(("a", "b"), np.zeros(2), np.ones(2), 2)
        >>> basis.expand(np.array([[2.0, 3.0]]))
        array([[2., 3., 4., 6., 9.]])
        """
        x = dense(features)
        found = np.empty((len(x), len(self.terms)), order="F") if out is None else out
        shape = len(x), len(self.features)
        u = np.empty(shape, order="F" if out is None else "C")  # as `found`: twice as fast
        np.subtract(x, self.origin, out=u, dtype=np.float64)
        u /= self.unit
        d = len(self.features)
        found[:, :d] = x if self.plain else u
        for lo, hi, feature, first in self._runs:
            lower = (u if first < d else found)[:, first : first + hi - lo]
            np.multiply(u[:, feature, None], lower, out=found[:, lo:hi])
        return found

    def expand_sparse(self, features: Any) -> Any:
        """CSR columns of CSR rows; the origin must be zero, so that zeros stay zeros."""
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
            every = PolynomialFeatures(self.degree, interaction_only=only, include_bias=False)
            powers = [every.fit_transform(u)[:, u.shape[1] :]]
        return sparse.hstack([x, *powers], format="csr")

    def _factor(self, j: int) -> str:
        """One feature as it stands in a product."""
        name, origin, unit = self.features[j], self.origin[j], self.unit[j]
        if origin:
            name = f"({name} {'-' if origin > 0 else '+'} {_text(abs(origin))})"
        return name if unit == 1 else f"({name} / 2^{int(np.log2(unit))})"


@dataclass(frozen=True, slots=True, eq=False)
class KernelBasis:
    """Gaussian kernels of one width at m centres."""

    centres: Floats  # (m, d)
    spread: float  # the width: how far from its centre a kernel has fallen to exp(-1/2)

    @property
    def width(self) -> int:
        """How many columns."""
        return len(self.centres)

    @property
    def names(self) -> tuple[str, ...]:
        """Where each centre is, to three digits, or as many more as tell them apart.

        Centres that differ in none of the numbers shown are numbered.

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
        """(n, m) of rows (n, d).

        >>> KernelBasis(np.array([[0.0], [3.0]]), 1.0).expand(np.array([[1.0]])).round(4)
        array([[0.6065, 0.1353]])
        """
        from scipy.spatial.distance import cdist

        # Squares of distances like the width are to be neither 0 nor infinite.
        power = int(np.frexp(self.spread)[1])
        unit = np.ldexp(1.0, power) if abs(power) > _ROOM // 2 else 1.0
        rows = np.asarray(dense(features), dtype=np.float64) / unit
        distance = cdist(rows, self.centres / unit, "sqeuclidean")
        distance /= -2.0 * (self.spread / unit) ** 2
        return np.asarray(np.exp(distance, out=out))


@dataclass(frozen=True, slots=True, eq=False)
class JoinedBasis:
    """Columns of several bases side by side."""

    parts: tuple[PolynomialBasis | KernelBasis, ...]

    @property
    def width(self) -> int:
        """How many columns."""
        return sum(part.width for part in self.parts)

    @property
    def names(self) -> tuple[str, ...]:
        """What the columns are."""
        return tuple(name for part in self.parts for name in part.names)

    def expand(self, features: Features, out: Floats | None = None) -> Floats:
        """(n, columns) of rows (n, d)."""
        rows = dense(features)
        found = np.empty((len(rows), self.width)) if out is None else out
        lo = 0
        for part in self.parts:
            part.expand(rows, out=found[:, lo : lo + part.width])
            lo += part.width
        return found


@dataclass(frozen=True, slots=True, eq=False)
class ExpandedFeatures:
    """Features in a basis, worked out for the rows at hand only."""

    features: Features  # (N, d)
    basis: PolynomialBasis

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.features.shape[0]), len(self.basis.terms)

    def __getitem__(self, rows: Any) -> Floats:
        return self.basis.expand(self.features[rows])


def count_terms(width: int, degree: int, interactions: Interactions) -> int:
    """How many columns a polynomial has, without an intercept.

    >>> count_terms(2, 2, True), count_terms(2, 2, "only"), count_terms(2, 2, False)
    (5, 3, 4)
    """
    if interactions is False:
        return width * degree
    if interactions == "only":
        return sum(comb(width, k) for k in range(1, min(degree, width) + 1))
    return comb(width + degree, degree) - 1


def readable_origin(mean: Floats, spread: Floats) -> Floats:
    """The mean, rounded so that it can be read: to the decimal place that the spread begins at.

    It is at most half a spread away from the mean. A column of one value keeps that value.

    >>> readable_origin(np.array([5.843, 35_210.0, 0.02]), np.array([0.83, 21_000.0, 1.0])).tolist()
    [5.8, 40000.0, 0.0]
    """
    rounded = [
        round(float(m), -floor(log10(s))) if s > 0 else float(m)
        for m, s in zip(mean, spread, strict=True)
    ]
    return np.array(rounded) + 0.0  # no -0


def _terms(width: int, degree: int, interactions: Interactions) -> Iterator[tuple[int, ...]]:
    """The features that each column is the product of."""
    places = range(width)
    for power in range(1, degree + 1):
        if interactions is False:
            yield from ((j,) * power for j in places)
        elif interactions == "only":
            yield from combinations(places, power)
        else:
            yield from combinations_with_replacement(places, power)


def _runs(terms: Sequence[tuple[int, ...]]) -> Iterator[_Run]:
    """Columns of degree two and more, by as few multiplications as there can be."""
    place = {term: column for column, term in enumerate(terms)}
    lo = sum(len(term) == 1 for term in terms)
    while lo < len(terms):
        feature, first, degree, hi = terms[lo][0], place[terms[lo][1:]], len(terms[lo]), lo + 1
        while (
            hi < len(terms)
            and len(terms[hi]) == degree
            and terms[hi] == (feature, *terms[first + hi - lo])
        ):
            hi += 1
        yield _Run(lo, hi, feature, first)
        lo = hi


def _text(value: float) -> str:
    """The shortest text that is this number.

    >>> _text(40.0), _text(5.8)
    ('40', '5.8')
    """
    return repr(float(value)).removesuffix(".0")
