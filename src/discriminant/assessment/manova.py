"""Whether class means differ, from moments alone: one-way multivariate analysis of variance.

All follows from the eigenvalues of W^-1 B, W the scatter within classes and B that of their means:
the four tests (`assessment.four_tests`), the canonical directions (`assessment.canonical`), and, of
each feature alone,

    F_j = (B_jj / (K - 1)) / (W_jj / (n - K)),   lambda_j = W_jj / T_jj

Weights count rows: n is their sum. Rows are not read, so that moments merged from many files are
tested as one. Features that depend on one another within classes are named in an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from discriminant.assessment.canonical import Canonical, canonical
from discriminant.assessment.four_tests import Degrees, FTest, f_chance, four_tests
from discriminant.assessment.layout import Printed, chance, degree, matrix, number, table
from discriminant.assessment.standard import Standard, moments_of, standardised
from discriminant.errors import OptionError
from discriminant.table.frames import pandas
from discriminant.table.schema import Floats, Labels

_WHAT = "A multivariate analysis of variance"
Part = Literal[
    "tests", "univariate", "canonical", "raw", "standardised", "total", "structure",
    "structure_total", "means",
]  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Univariate:
    """The test of each of d features alone."""

    f: Floats  # (d,)
    df1: float
    df2: float
    p: Floats  # (d,)
    wilks: Floats  # (d,) W_jj / T_jj
    r2: Floats  # (d,) B_jj / T_jj


@dataclass(frozen=True, slots=True, eq=False)
class Manova(Printed):
    """What `manova` returns: `print` it, or ask for `frame(part)` or `to_dict()`."""

    labels: Labels  # (K,)
    features: tuple[str, ...]  # d names
    rows: float
    wilks: FTest
    pillai: FTest
    hotelling_lawley: FTest
    roy: FTest
    univariate: Univariate
    canonical: Canonical

    @property
    def tests(self) -> tuple[FTest, FTest, FTest, FTest]:
        """Wilks, Pillai, Hotelling-Lawley, Roy."""
        return self.wilks, self.pillai, self.hotelling_lawley, self.roy

    @property
    def text(self) -> str:
        """Laid out as SAS's CANDISC prints it."""
        parts = [
            [f"{self.rows:g} rows, {len(self.features)} features, {len(self.labels)} classes"],
            _tests_text(self.tests),
            _univariate_text(self.features, self.univariate),
            _canonical_text(self.canonical),
            _directions_text(self.canonical),
            *(self._matrix_text(part) for part in _TITLES),
        ]
        return "\n\n".join("\n".join(lines) for lines in parts)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and texts."""
        return {
            "labels": self.labels.tolist(),
            "features": list(self.features),
            "rows": self.rows,
            "tests": _by_name(self.tests),
            "univariate": self._records("univariate"),
            "canonical": self._records("canonical"),
            "constant": self.canonical.constant.tolist(),
        } | {part: getattr(self.canonical, part).tolist() for part in _TITLES}

    def frame(self, part: Part = "tests") -> Any:
        """One of the tables as a pandas frame."""
        frames = pandas()
        if part in ("tests", "univariate", "canonical"):
            found = frames.DataFrame(self._records(part))
            return found.set_index(found.columns[0])
        if part not in _TITLES:
            known = ["tests", "univariate", "canonical", *_TITLES]
            raise OptionError.of("part", part, f"one of {', '.join(known)}")
        index = self.labels if part == "means" else self.features
        return frames.DataFrame(
            getattr(self.canonical, part), index=list(index), columns=self._columns()
        )

    def _records(self, part: str) -> list[dict[str, Any]]:
        if part == "tests":
            return [test.to_dict() for test in self.tests]
        if part == "univariate":
            return _univariate_records(self.features, self.univariate)
        return _canonical_records(self.canonical)

    def _columns(self) -> list[str]:
        return [f"Can{i + 1}" for i in range(len(self.canonical.eigenvalues))]

    def _matrix_text(self, part: str) -> list[str]:
        names = self.labels.tolist() if part == "means" else self.features
        return matrix(_TITLES[part], names, self._columns(), getattr(self.canonical, part))


_TITLES = {
    "structure": "Pooled within canonical structure",
    "structure_total": "Total canonical structure",
    "standardised": "Pooled within-class standardized canonical coefficients",
    "total": "Total-sample standardized canonical coefficients",
    "raw": "Raw canonical coefficients",
    "means": "Class means on canonical variables",
}


@np.errstate(under="ignore")
def manova(moments: Any, y: Any = None) -> Manova:
    """Test whether class means differ, and along which directions.

    Parameters
    ----------
    moments
        Of detail 'pooled' or finer, of two classes or more; or rows X, with their labels as `y`.
    y
        (N,) labels of rows; left out beside moments.

    Examples
    --------
    >>> from discriminant import moments
    >>> found = manova(moments([[0.0], [2.0], [5.0], [7.0]], ["a", "a", "b", "b"]))
    >>> round(found.wilks.value, 4), round(found.wilks.f, 4)  # W = 4, B = 25, F = 25 / (4 / 2)
    (0.1379, 12.5)
    """
    standard = standardised(moments_of(moments, y, _WHAT), _WHAT)
    metric = standard.metric(_WHAT)
    degrees = Degrees(len(standard.features), len(standard.labels) - 1, standard.degrees)
    directions = canonical(standard, metric=metric, degrees=degrees)
    return Manova(
        standard.labels,
        standard.features,
        standard.rows,
        *four_tests(directions.eigenvalues, degrees),
        _univariate(standard, degrees),
        directions,
    )


def _univariate(standard: Standard, degrees: Degrees) -> Univariate:
    ratio = np.diagonal(standard.between())
    f = ratio * degrees.within / degrees.between
    p = np.asarray(f_chance(f, degrees.between, degrees.within))
    kept = 1.0 / (1.0 + ratio)
    return Univariate(f, float(degrees.between), degrees.within, p, kept, ratio * kept)


def _by_name(tests: tuple[FTest, ...]) -> dict[str, Any]:
    keys = ("wilks", "pillai", "hotelling_lawley", "roy")
    return {key: test.to_dict() for key, test in zip(keys, tests, strict=True)}


def _univariate_records(features: tuple[str, ...], found: Univariate) -> list[dict[str, Any]]:
    return [
        {
            "feature": name,
            "wilks": float(found.wilks[j]),
            "r2": float(found.r2[j]),
            "f": float(found.f[j]),
            "df1": found.df1,
            "df2": found.df2,
            "p": float(found.p[j]),
        }
        for j, name in enumerate(features)
    ]


def _canonical_records(found: Canonical) -> list[dict[str, Any]]:
    return [
        {
            "direction": i + 1,
            "eigenvalue": float(found.eigenvalues[i]),
            "share": float(found.share[i]),
            "cumulative": float(found.share[: i + 1].sum()),
            "correlation": float(found.correlation[i]),
            "wilks": test.value,
            "f": test.f,
            "df1": test.df1,
            "df2": test.df2,
            "p": test.p,
            "chi2": float(found.chi2[i]),
            "chi2_df": float(found.chi2_df[i]),
            "chi2_p": float(found.chi2_p[i]),
        }
        for i, test in enumerate(found.tests)
    ]


def _tests_text(tests: tuple[FTest, ...]) -> list[str]:
    rows = [[test.name, *_f_cells(test)] for test in tests]
    head = ["Statistic", "Value", "F Value", "Num DF", "Den DF", "Pr > F"]
    return table("Multivariate statistics and F approximations", head, rows)


def _f_cells(test: FTest) -> list[str]:
    return [
        number(test.value), number(test.f, 4), degree(test.df1), degree(test.df2), chance(test.p)
    ]  # fmt: skip


def _univariate_text(features: tuple[str, ...], found: Univariate) -> list[str]:
    rows = [
        [name, number(wilks), number(r2), number(f, 4), chance(p)]
        for name, wilks, r2, f, p in zip(
            features, found.wilks, found.r2, found.f, found.p, strict=True
        )
    ]
    title = f"Univariate test statistics, F on {degree(found.df1)} and {degree(found.df2)}"
    return table(title, ["Variable", "Wilks", "R-Square", "F Value", "Pr > F"], rows)


def _canonical_text(found: Canonical) -> list[str]:
    rows = [
        [f"{i + 1}", number(value), *map(number, (share, total, correlation, correlation**2))]
        for i, (value, share, total, correlation) in enumerate(
            zip(
                found.eigenvalues,
                found.share,
                np.cumsum(found.share),
                found.correlation,
                strict=True,
            )
        )
    ]
    head = ["", "Eigenvalue", "Proportion", "Cumulative", "Canonical Corr.", "Squared"]
    return table("Canonical correlations", head, rows)


def _directions_text(found: Canonical) -> list[str]:
    rows = [
        [f"{i + 1}", *_f_cells(test), number(chi2, 4), degree(df), chance(p)]
        for i, (test, chi2, df, p) in enumerate(
            zip(found.tests, found.chi2, found.chi2_df, found.chi2_p, strict=True)
        )
    ]
    head = ["", "Wilks", "F Value", "Num DF", "Den DF", "Pr > F", "Chi-Square", "DF", "Pr > ChiSq"]
    return table("Test that this direction and all that follow are zero", head, rows)
