"""Whether class means differ, from moments alone: one-way multivariate analysis of variance.

All follows from the eigenvalues of W^-1 B, W the scatter within classes and B that of their means:
the four tests (`assessment.four_tests`), the canonical directions (`assessment.canonical`), and, of
each feature alone,

    F_j = (B_jj / (K - 1)) / (W_jj / (n - K)),   lambda_j = W_jj / T_jj

Weights count rows: n is their sum. Rows are not read, so that moments merged from many files are
tested as one. Features that depend on one another within classes are named in an error.

Wilks, Pillai, Hotelling-Lawley and Roy: four ways to say that class means differ, each as an F.

Of the eigenvalues l of W^-1 B, in d features with q = K - 1 and v = n - K degrees of freedom and
s = min(d, q):

    Wilks             prod 1 / (1 + l)     Rao's F: with t = sqrt((d^2 q^2 - 4) / (d^2 + q^2 - 5))
                                           (1 if d^2 + q^2 <= 5) and m = v - (d - q + 1) / 2,
                                           (L^(-1/t) - 1) df2 / df1 on d q, m t - d q / 2 + 1
    Pillai            sum l / (1 + l)      P / (s - P) df2 / df1 on s max(d, q), s (v - d + s)
    Hotelling-Lawley  sum l                H df2 / (s df1) on s max(d, q), s (v - d - 1) + 2
    Roy               max l                R df2 / df1 on max(d, q), v - max(d, q) + q;
                                           an upper bound of F, so that its p is a lower bound

These are the approximations of R's summary.manova. Where degrees of freedom are not positive there
is no approximation, and F and p are nan.

Scatter within and between classes, in units in which no test depends on the columns' own.

    degrees = n - K            n the sum of weights (they count rows), K the classes that have any
    sd_j    = sqrt(W_jj / degrees)
    within  = W_ij / (degrees sd_i sd_j)      correlations within classes
    apart_k = (mean_k - mean) / sd

A column that is constant in all rows is left out and named. One that is constant within every
class but not between them has no test: its F is infinite, and that is said as an error.

Canonical discriminant analysis: the directions that tell classes apart, and how they are read.

With W v = the scatter within classes along v, B v = l W v and v scaled to variance 1 within
classes, for the directions i = 1 .. s, s = min(d, K - 1):

    correlation_i = sqrt(l_i / (1 + l_i))      share_i = l_i / sum l
    wilks_i       = prod over j >= i of 1 / (1 + l_j): whether the directions from i on say nothing,
                    by Rao's F (SAS, candisc) and Bartlett's chi-square (SPSS),
                    -(n - 1 - (d + K) / 2) log wilks_i on (d - i + 1)(K - i)

    raw          v in the user's units: score = (x - mean) . raw = constant + x . raw
    standardised raw_j sd_j, sd within classes (SPSS, candisc, SAS "pooled within-class")
    total        raw_j sd of all rows (SAS "total-sample")
    structure    correlation within classes of column j and score i: within v, in units of sd
    structure_total, of all rows: T v = (1 + l) W v, so structure sqrt((1 + l) W_jj / T_jj)
    means        scores of the class means (SPSS "functions at group centroids")

A direction is turned so that the last class it tells from the centre has a positive mean.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from discriminant.assessment.inference.summary import (
    PrintedResult,
    format_degrees,
    format_number,
    format_p,
    text_matrix,
    text_table,
)
from discriminant.engines.dispatch import read_moments
from discriminant.errors import (
    CollinearWarning,
    ConstantColumnWarning,
    InferenceError,
    LabelError,
    MomentsMismatchError,
    OptionError,
    TooFewRowsError,
    warn,
)
from discriminant.models.gaussian.covariance import (
    Metric,
    RankDeficiency,
    factorise,
    rounding_variance,
)
from discriminant.models.gaussian.fisher import canonical_variates
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.stored_rows import ClassRows
from discriminant.table.blocks import Floats, Labels
from discriminant.table.cells import import_pandas
from discriminant.table.memory import as_table


@dataclass(frozen=True, slots=True)
class Degrees:
    """Of freedom: of the features, between classes (K - 1) and within them (n - K)."""

    features: int
    between: int
    within: float


@dataclass(frozen=True, slots=True)
class FTest:
    """A statistic and what an F says of it."""

    name: str
    value: float
    f: float
    df1: float
    df2: float
    p: float

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        return asdict(self)


def four_tests(eigenvalues: Floats, degrees: Degrees) -> tuple[FTest, FTest, FTest, FTest]:
    """All four, in the order of the module's table.

    >>> [round(test.f, 6) for test in four_tests(np.array([2.0]), Degrees(1, 1, 4.0))]
    [8.0, 8.0, 8.0, 8.0]
    """
    kept = eigenvalues / (1.0 + eigenvalues)
    return (
        wilks(-float(np.log1p(eigenvalues).sum()), degrees),
        pillai(float(kept.sum()), degrees),
        _hotelling_lawley(float(eigenvalues.sum()), degrees),
        _roy(float(eigenvalues.max(initial=0.0)), degrees),
    )


def wilks(log_value: float, degrees: Degrees, *, skipped: int = 0) -> FTest:
    """Rao's F of the logarithm of Wilks' lambda; of all eigenvalues but the first `skipped`."""
    d, q = degrees.features, degrees.between
    middle = degrees.within - (d - q + 1) / 2
    d, q = d - skipped, q - skipped
    below = d * d + q * q - 5
    t = float(np.sqrt(((d * q) ** 2 - 4) / below)) if below > 0 else 1.0
    df2 = middle * t - d * q / 2 + 1
    return _test("Wilks", float(np.exp(log_value)), np.expm1(-log_value / t), d * q, df2)


def pillai(value: float, degrees: Degrees) -> FTest:
    """The F of Pillai's trace."""
    d, q = degrees.features, degrees.between
    s = min(d, q)
    ratio = value / (s - value) if value < s else np.inf
    return _test("Pillai", value, ratio, s * max(d, q), s * (degrees.within - d + s))


def f_p_value(f: float | Floats, df1: float, df2: float) -> Any:
    """P(F > f)."""
    return special.fdtrc(df1, df2, f)


def _hotelling_lawley(value: float, degrees: Degrees) -> FTest:
    d, q = degrees.features, degrees.between
    s = min(d, q)
    df2 = s * (degrees.within - d - 1) + 2
    return _test("Hotelling-Lawley", value, value / s, s * max(d, q), df2)


def _roy(value: float, degrees: Degrees) -> FTest:
    most = max(degrees.features, degrees.between)
    return _test("Roy", value, value, most, degrees.within - most + degrees.between)


def _test(name: str, value: float, ratio: float, df1: float, df2: float) -> FTest:
    if df2 <= 0:
        return FTest(name, value, float("nan"), float(df1), float(df2), float("nan"))
    f = float(ratio) * df2 / df1
    return FTest(name, value, f, float(df1), float(df2), float(f_p_value(f, df1, df2)))


@dataclass(frozen=True, slots=True, eq=False)
class StandardisedScatter:
    """K classes of some weight in d features that vary within them."""

    labels: Labels  # (K,)
    features: tuple[str, ...]  # d names
    weight: Floats  # (K,)
    apart: Floats  # (K, d) class means from the centre, in sd
    within: Floats  # (d, d) correlations
    sd: Floats  # (d,) within classes, in units of the anchor
    unit: Floats  # (d,) of the anchor
    centre: Floats  # (d,) mean of all rows in the user's numbers

    @property
    def rows(self) -> float:
        """How many rows, counted by weight."""
        return float(self.weight.sum())

    @property
    def degrees(self) -> float:
        """Of freedom within classes."""
        return self.rows - len(self.labels)

    def between(self) -> Floats:
        """(d, d) B_ij / (degrees sd_i sd_j)."""
        root = np.sqrt(self.weight / self.degrees)[:, None] * self.apart
        return np.asarray(root.T @ root)

    def metric(self, what: str) -> Metric:
        """The correlations within classes, factorised; `what` is who asks."""
        d = len(self.features)
        if self.degrees < d:
            raise InferenceError.too_wide(what, self.rows, len(self.labels), d)
        return invertible_metric(self.within, self.features, what)


def standardise(moments: ClassMoments, what: str) -> StandardisedScatter:
    """The scatters of moments; `what` is who asks."""
    check_products(moments, what)
    some = moments.weight > 0
    labels, weight = moments.labels[some], moments.weight[some]
    degrees = _checked_degrees(labels, weight, what)
    apart = (moments.mean - moments.centre)[some]
    variance = np.diagonal(moments.pooled) / degrees
    moving = _moving(moments, variance, weight @ apart**2 / degrees, what)
    sd = np.sqrt(variance[moving])
    centre = moments.anchor.values(moments.centre)
    return StandardisedScatter(
        labels,
        tuple(np.array(moments.features, dtype=object)[moving]),
        weight,
        apart[:, moving] / sd,
        moments.pooled[np.ix_(moving, moving)] / degrees / sd[:, None] / sd,
        sd,
        moments.anchor.unit[moving],
        centre[moving],
    )


def moments_of(given: Any, y: Any, what: str, *, detail: Detail = "pooled") -> ClassMoments:
    """Moments of this detail or finer: those given, or those of rows and labels; one door."""
    if not isinstance(given, (ClassMoments, ClassRows)):
        if y is None:
            raise MomentsMismatchError.neither(what, type(given).__name__, detail)
        given = read_moments(as_table(given, y, name=what), detail=detail)
    elif y is not None:
        raise OptionError.of("y", "given", "left out beside moments, which have their classes")
    if isinstance(given, ClassMoments) and given.holds(detail):
        return given
    found = given.detail if isinstance(given, ClassMoments) else "rows"
    raise MomentsMismatchError.needs_detail(what, detail, found)


def check_products(moments: ClassMoments, what: str) -> None:
    """Moments that have products of columns."""
    found = moments.detail if isinstance(moments, ClassMoments) else "rows"
    if found in ("diagonal", "rows"):
        raise MomentsMismatchError.needs_detail(what, "pooled", found)


def invertible_metric(correlation: Floats, features: tuple[str, ...], what: str) -> Metric:
    """Metric of correlations that must have an inverse; few digits left are told."""
    metric, lost = factorise(correlation)
    if lost is None:
        assert metric is not None
        return metric
    if metric is None:
        raise InferenceError.collinear(what, _involved(lost, features), lost.rank, len(features))
    warn(CollinearWarning.of_test(what, _involved(lost, features), lost.condition))
    return metric


def _involved(lost: RankDeficiency, features: tuple[str, ...]) -> list[str]:
    part = np.abs(lost.weakest).max(axis=1)
    return [name for name, much in zip(features, part, strict=True) if much > 1e-3 * part.max()]


def _checked_degrees(labels: Labels, weight: Floats, what: str) -> float:
    K, n = len(labels), float(weight.sum())
    if K == 1:
        raise LabelError.one_class(labels[0])
    if n <= K:
        raise TooFewRowsError.of_table(int(n), K, what)
    return n - K


def _moving(
    moments: ClassMoments, variance: Floats, between: Floats, what: str
) -> npt.NDArray[np.bool_]:
    """(d,) columns that vary within classes."""
    noise = rounding_variance(moments.mean)
    still = variance <= noise
    names = np.array(moments.features, dtype=object)
    alone = still & (between > 4 * noise * moments.weight.sum())
    if alone.any():
        raise InferenceError.no_variance(what, names[alone].tolist())
    if still.all():
        raise InferenceError.all_constant(what, names.tolist())
    if still.any():
        warn(ConstantColumnWarning.of_columns(names[still].tolist()))
    return np.asarray(~still)


@dataclass(frozen=True, slots=True, eq=False)
class Canonical:
    """s directions of K classes in d features."""

    eigenvalues: Floats  # (s,) falling
    share: Floats  # (s,) of their sum
    correlation: Floats  # (s,)
    tests: tuple[FTest, ...]  # s: of the directions from this one on, together
    chi2: Floats  # (s,) Bartlett's
    chi2_df: Floats  # (s,)
    chi2_p: Floats  # (s,)
    raw: Floats  # (d, s) in the user's units
    constant: Floats  # (s,)
    standardised: Floats  # (d, s)
    total: Floats  # (d, s) standardised by the sd of all rows
    structure: Floats  # (d, s) within classes
    structure_total: Floats  # (d, s)
    means: Floats  # (K, s)


def canonical(standard: StandardisedScatter, *, metric: Metric, degrees: Degrees) -> Canonical:
    """The table and the coefficients of the directions."""
    found = canonical_variates(
        _centred(standard),
        metric=metric,
        degrees=standard.degrees,
        prior=standard.weight / standard.rows,
        components=min(degrees.features, degrees.between),
    )
    values, along = found.eigenvalues, found.scalings
    spread = np.sqrt(1.0 + np.diagonal(standard.between()))[:, None]  # sqrt(T_jj / W_jj)
    per_df = np.sqrt(standard.degrees / (standard.rows - 1))
    structure = standard.within @ along
    raw = along / standard.sd[:, None] / standard.unit[:, None]
    return Canonical(
        values,
        found.share,
        np.sqrt(values / (1.0 + values)),
        *_successive(values, degrees),
        raw,
        -standard.centre @ raw,
        along,
        along * spread * per_df,
        structure,
        structure * np.sqrt(1.0 + values) / spread,
        found.projected,
    )


def _successive(
    eigenvalues: Floats, degrees: Degrees
) -> tuple[tuple[FTest, ...], Floats, Floats, Floats]:
    """What the directions from each one on say together: by F and by chi-square."""
    d, q = degrees.features, degrees.between
    left = -np.cumsum(np.log1p(eigenvalues)[::-1])[::-1]
    tests = tuple(wilks(float(log), degrees, skipped=i) for i, log in enumerate(left))
    place = np.arange(len(eigenvalues))
    df = ((d - place) * (q - place)).astype(np.float64)
    chi2 = -(degrees.within - (d - q + 1) / 2) * left
    return tests, chi2, df, np.asarray(special.chdtrc(df, chi2))


def _centred(standard: StandardisedScatter) -> ClassMoments:
    """The scatters as moments about the centre, in units of sd."""
    d, K = len(standard.features), len(standard.labels)
    return ClassMoments(
        standard.labels,
        standard.features,
        Anchor.zero(d),
        "pooled",
        np.ones(K, dtype=np.int64),
        standard.weight,
        standard.weight,
        standard.apart,
        standard.within * standard.degrees,
        np.zeros(d),
    )


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
class Manova(PrintedResult):
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
        frames = import_pandas()
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
        return text_matrix(_TITLES[part], names, self._columns(), getattr(self.canonical, part))


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
    standard = standardise(moments_of(moments, y, _WHAT), _WHAT)
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


def _univariate(standard: StandardisedScatter, degrees: Degrees) -> Univariate:
    ratio = np.diagonal(standard.between())
    f = ratio * degrees.within / degrees.between
    p = np.asarray(f_p_value(f, degrees.between, degrees.within))
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
    return text_table("Multivariate statistics and F approximations", head, rows)


def _f_cells(test: FTest) -> list[str]:
    return [
        format_number(test.value),
        format_number(test.f, 4),
        format_degrees(test.df1),
        format_degrees(test.df2),
        format_p(test.p),
    ]


def _univariate_text(features: tuple[str, ...], found: Univariate) -> list[str]:
    rows = [
        [name, format_number(wilks), format_number(r2), format_number(f, 4), format_p(p)]
        for name, wilks, r2, f, p in zip(
            features, found.wilks, found.r2, found.f, found.p, strict=True
        )
    ]
    degrees = f"{format_degrees(found.df1)} and {format_degrees(found.df2)}"
    title = f"Univariate test statistics, F on {degrees}"
    return text_table(title, ["Variable", "Wilks", "R-Square", "F Value", "Pr > F"], rows)


def _canonical_text(found: Canonical) -> list[str]:
    rows = [
        [
            f"{i + 1}",
            format_number(value),
            *map(format_number, (share, total, correlation, correlation**2)),
        ]
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
    return text_table("Canonical correlations", head, rows)


def _directions_text(found: Canonical) -> list[str]:
    rows = [
        [f"{i + 1}", *_f_cells(test), format_number(chi2, 4), format_degrees(df), format_p(p)]
        for i, (test, chi2, df, p) in enumerate(
            zip(found.tests, found.chi2, found.chi2_df, found.chi2_p, strict=True)
        )
    ]
    head = ["", "Wilks", "F Value", "Num DF", "Den DF", "Pr > F", "Chi-Square", "DF", "Pr > ChiSq"]
    return text_table("Test that this direction and all that follow are zero", head, rows)
