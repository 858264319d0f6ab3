"""Features to features: powers and products of offsets, up to a degree.

With u = (x - origin) / unit the columns are all u_j, then all u_i u_j with i <= j, and so on: for
degree 2 and two features u1, u2, u1^2, u1 u2, u2^2 (lecture 3). Their span, with an intercept, is
that of the powers of x itself, but near the rows and in a unit of their spread squares keep all
digits: at a mean of 1e8 the columns x and x^2 cannot be told apart.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from discriminant.table.schema import Features, Floats, dense


@dataclass(frozen=True, slots=True, eq=False)
class PolynomialBasis:
    """Powers and products of d features."""

    features: tuple[str, ...]  # d names
    origin: Floats  # (d,)
    unit: Floats  # (d,) powers of two
    degree: int

    @classmethod
    def about(
        cls, mean: Floats, spread: Floats, features: tuple[str, ...], *, degree: int
    ) -> PolynomialBasis:
        """Basis of rows with this mean and spread, in about the unit of the spread."""
        power = np.frexp(np.where(spread > 0, spread, 1.0))[1]
        return cls(features, mean, np.ldexp(1.0, np.clip(power, -1000, 1000)), degree)

    @property
    def terms(self) -> list[tuple[int, ...]]:
        """The features that each column is the product of."""
        places = range(len(self.features))
        return [
            term
            for power in range(1, self.degree + 1)
            for term in combinations_with_replacement(places, power)
        ]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, as scikit-learn's PolynomialFeatures gives them.

        >>> PolynomialBasis(("a", "b"), np.zeros(2), np.ones(2), 2).names
        ('a', 'b', 'a^2', 'a b', 'b^2')
        """
        return tuple(
            " ".join(
                self.features[j] if power == 1 else f"{self.features[j]}^{power}"
                for j, power in Counter(term).items()
            )
            for term in self.terms
        )

    def expand(self, features: Features) -> Floats:
        """(n, columns) of rows (n, d).

        >>> basis = PolynomialBasis(("a", "b"), np.zeros(2), np.ones(2), 2)
        >>> basis.expand(np.array([[2.0, 3.0]]))
        array([[2., 3., 4., 6., 9.]])
        """
        u = (dense(features) - self.origin) / self.unit
        place = {term: column for column, term in enumerate(self.terms)}
        found = np.empty((len(u), len(place)), order="F")
        found[:, : u.shape[1]] = u
        for term, column in place.items():
            if len(term) > 1:
                np.multiply(found[:, place[term[:-1]]], u[:, term[-1]], out=found[:, column])
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Expanded:
    """Features in a basis, worked out for the rows at hand only."""

    features: Features  # (N, d)
    basis: PolynomialBasis

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.features.shape[0]), len(self.basis.terms)

    def __getitem__(self, rows: Any) -> Floats:
        return self.basis.expand(self.features[rows])
