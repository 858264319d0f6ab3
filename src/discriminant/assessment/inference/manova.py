"""One-way multivariate analysis of variance (MANOVA) from moments.

All results follow from the scatter matrices W, within classes, and B, of the class means. The
eigenvalues of W^-1 B give four multivariate tests and the canonical directions; the diagonals of W
and B give a test of each feature,

    F_j = (B_jj / (K - 1)) / (W_jj / (n - K)),   lambda_j = W_jj / T_jj

Weights count rows: n is the sum of the weights. Rows are not read, so moments merged from many
files are tested as one table. Features that are collinear within classes raise an error that names
them.

The four tests of equal class means, each as an F: with l the eigenvalues of W^-1 B, d features,
q = K - 1 and v = n - K degrees of freedom and s = min(d, q):

    Wilks             prod 1 / (1 + l)     Rao's F: with t = sqrt((d^2 q^2 - 4) / (d^2 + q^2 - 5))
                                           (1 if d^2 + q^2 <= 5) and m = v - (d - q + 1) / 2,
                                           (L^(-1/t) - 1) df2 / df1 on d q, m t - d q / 2 + 1
    Pillai            sum l / (1 + l)      P / (s - P) df2 / df1 on s max(d, q), s (v - d + s)
    Hotelling-Lawley  sum l                H df2 / (s df1) on s max(d, q), s (v - d - 1) + 2
    Roy               max l                R df2 / df1 on max(d, q), v - max(d, q) + q;
                                           this F is an upper bound, so its p-value is a lower bound

R's summary.manova uses the same approximations. If there are no positive degrees of freedom, F and
p are NaN.

Scatter within and between classes is standardised, so that no test depends on the units of columns:

    degrees = n - K            n the sum of weights, K the number of classes that have rows
    sd_j    = sqrt(W_jj / degrees)
    within  = W_ij / (degrees sd_i sd_j)      correlations within classes
    deviations_k = (mean_k - mean) / sd

A column that is constant in all rows is dropped with a warning. A column that is constant within
every class but differs between classes has an infinite F and raises an error.

Canonical discriminant analysis: the directions v that separate the classes solve B v = l W v and
are scaled to variance 1 within classes. For the directions i = 1 .. s, s = min(d, K - 1):

    correlation_i = sqrt(l_i / (1 + l_i))      share_i = l_i / sum l
    wilks_i       = prod over j >= i of 1 / (1 + l_j): tests whether the directions from i on are
                    zero, by Rao's F (SAS, candisc) and Bartlett's chi-square (SPSS),
                    -(n - 1 - (d + K) / 2) log wilks_i on (d - i + 1)(K - i)

    raw          v in the user's units: score = (x - mean) . raw = constant + x . raw
    standardised raw_j sd_j, sd within classes (SPSS, candisc, SAS "pooled within-class")
    total        raw_j sd of all rows (SAS "total-sample")
    structure    correlation, within classes, of column j and score i: `within` v, in units of sd
    structure_total    the same over all rows: since T v = (1 + l) W v, it is
                 structure sqrt((1 + l) W_jj / T_jj)
    means        scores of the class means (SPSS "functions at group centroids")

The sign of a direction is chosen so that the mean score is positive for the last class whose mean
differs from the centre.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from discriminant.assessment.printed_results import (
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
    factorise,
    rounding_variance,
)
from discriminant.models.gaussian.fisher import canonical_variates
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.rows_instead_of_moments import ClassRows
from discriminant.table.blocks import Floats, Labels
from discriminant.table.column_cells import import_pandas
from discriminant.table.memory import as_table


@dataclass(frozen=True, slots=True)
class DegreesOfFreedom:
    """Number of features, degrees of freedom between classes (K - 1) and within them (n - K)."""

    features: int
    between: int
    within: float


@dataclass(frozen=True, slots=True)
class FTest:
    """A test statistic with its F value, degrees of freedom and p-value."""

    name: str
    value: float
    f: float
    df1: float
    df2: float
    p: float

    def to_dict(self) -> dict[str, Any]:
        """Return the test as a dictionary of plain numbers."""
        return asdict(self)


def four_tests(eigenvalues: Floats, degrees: DegreesOfFreedom) -> tuple[FTest, FTest, FTest, FTest]:
    """Return the tests of Wilks, Pillai, Hotelling-Lawley and Roy.

    >>> degrees = DegreesOfFreedom(1, 1, 4.0)
    >>> [round(test.f, 6) for test in four_tests(np.array([2.0]), degrees)]
    [8.0, 8.0, 8.0, 8.0]
    """
    return (
        wilks(-float(np.log1p(eigenvalues).sum()), degrees),
        pillai(float((eigenvalues / (1.0 + eigenvalues)).sum()), degrees),
        _hotelling_lawley(float(eigenvalues.sum()), degrees),
        _roy(float(eigenvalues.max(initial=0.0)), degrees),
    )


def wilks(log_value: float, degrees: DegreesOfFreedom, *, skipped: int = 0) -> FTest:
    """Return Rao's F test of Wilks' lambda, without the first `skipped` eigenvalues.

    `log_value` is the log of lambda.
    """
    d, q = degrees.features, degrees.between
    middle = degrees.within - (d - q + 1) / 2
    d, q = d - skipped, q - skipped
    below = d * d + q * q - 5
    t = float(np.sqrt(((d * q) ** 2 - 4) / below)) if below > 0 else 1.0
    df2 = middle * t - d * q / 2 + 1
    return _test("Wilks", float(np.exp(log_value)), np.expm1(-log_value / t), d * q, df2)


def pillai(value: float, degrees: DegreesOfFreedom) -> FTest:
    """Return the F test of Pillai's trace."""
    d, q = degrees.features, degrees.between
    s = min(d, q)
    ratio = value / (s - value) if value < s else np.inf
    return _test("Pillai", value, ratio, s * max(d, q), s * (degrees.within - d + s))


def f_p_value(f: float | Floats, df1: float, df2: float) -> Any:
    """Return the p-value P(F > f) of an F distribution with df1 and df2 degrees of freedom."""
    return special.fdtrc(df1, df2, f)


def _hotelling_lawley(value: float, degrees: DegreesOfFreedom) -> FTest:
    d, q = degrees.features, degrees.between
    s = min(d, q)
    df2 = s * (degrees.within - d - 1) + 2
    return _test("Hotelling-Lawley", value, value / s, s * max(d, q), df2)


def _roy(value: float, degrees: DegreesOfFreedom) -> FTest:
    df1 = max(degrees.features, degrees.between)
    return _test("Roy", value, value, df1, degrees.within - df1 + degrees.between)


def _test(name: str, value: float, ratio: float, df1: float, df2: float) -> FTest:
    if df2 <= 0:
        return FTest(name, value, float("nan"), float(df1), float(df2), float("nan"))
    f = float(ratio) * df2 / df1
    return FTest(name, value, f, float(df1), float(df2), float(f_p_value(f, df1, df2)))


@dataclass(frozen=True, slots=True, eq=False)
class StandardisedScatter:
    """Standardised scatter of K classes, in the d features that vary within classes."""

    labels: Labels  # (K,) classes
    features: tuple[str, ...]  # names of the d features
    weight: Floats  # (K,) weight of each class
    deviations: Floats  # (K, d) class means minus the overall mean, in units of sd
    within: Floats  # (d, d) correlations within classes
    sd: Floats  # (d,) standard deviations within classes of the offsets (x - origin) / unit
    unit: Floats  # (d,) unit of each column in the anchor
    centre: Floats  # (d,) mean of all rows, in the user's units

    @property
    def rows(self) -> float:
        """Number of rows: the sum of their weights."""
        return float(self.weight.sum())

    @property
    def degrees(self) -> float:
        """Degrees of freedom within classes."""
        return self.rows - len(self.labels)

    def between(self) -> Floats:
        """Return the standardised scatter of the means, `B_ij / (degrees sd_i sd_j)`, (d, d)."""
        root = np.sqrt(self.weight / self.degrees)[:, None] * self.deviations
        return np.asarray(root.T @ root)

    def metric(self, what: str) -> Metric:
        """Factorise the correlations within classes; `what` names the analysis in errors."""
        d = len(self.features)
        if self.degrees < d:
            raise InferenceError.too_wide(what, self.rows, len(self.labels), d)
        return invertible_metric(self.within, self.features, what)


def standardise(moments: ClassMoments, what: str) -> StandardisedScatter:
    """Return the standardised scatter of moments; `what` names the analysis in errors."""
    check_products(moments, what)
    present = moments.weight > 0
    labels, weight = moments.labels[present], moments.weight[present]
    K, n = len(labels), float(weight.sum())
    if K == 1:
        raise LabelError.one_class(labels[0])
    if n <= K:
        raise TooFewRowsError.of_table(int(n), K, what)
    degrees = n - K
    deviations = (moments.mean - moments.centre)[present]
    variance = np.diagonal(moments.pooled) / degrees
    varying = _varying_columns(moments, variance, weight @ deviations**2 / degrees, what)
    sd = np.sqrt(variance[varying])
    centre = moments.anchor.values(moments.centre)
    return StandardisedScatter(
        labels,
        tuple(np.array(moments.features, dtype=object)[varying]),
        weight,
        deviations[:, varying] / sd,
        moments.pooled[np.ix_(varying, varying)] / degrees / sd[:, None] / sd,
        sd,
        moments.anchor.unit[varying],
        centre[varying],
    )


def moments_with_detail(
    given: Any, y: Any, what: str, *, detail: Detail = "pooled"
) -> ClassMoments:
    """Return moments of this detail or finer.

    If `given` are rows, their moments are computed, with the labels `y`.
    """
    if not isinstance(given, (ClassMoments, ClassRows)):
        if y is None:
            raise MomentsMismatchError.neither(what, type(given).__name__, detail)
        given = read_moments(as_table(given, y, name=what), detail=detail)
    elif y is not None:
        raise OptionError.of("y", "given", "omitted with moments, which include their classes")
    if isinstance(given, ClassMoments) and given.has(detail):
        return given
    own_detail = given.detail if isinstance(given, ClassMoments) else "rows"
    raise MomentsMismatchError.needs_detail(what, detail, own_detail)


def check_products(moments: ClassMoments, what: str) -> None:
    """Raise an error unless the moments include the products of columns."""
    detail = moments.detail if isinstance(moments, ClassMoments) else "rows"
    if detail in ("diagonal", "rows"):
        raise MomentsMismatchError.needs_detail(what, "pooled", detail)


def invertible_metric(correlation: Floats, features: tuple[str, ...], what: str) -> Metric:
    """Factorise a correlation matrix. Raise an error if it is singular, warn if it is nearly so."""
    metric, deficiency = factorise(correlation)
    if deficiency is None:
        assert metric is not None
        return metric
    part = np.abs(deficiency.weakest).max(axis=1)
    involved = [name for name, p in zip(features, part, strict=True) if p > 1e-3 * part.max()]
    if metric is None:
        raise InferenceError.collinear(what, involved, deficiency.rank, len(features))
    warn(CollinearWarning.of_test(what, involved, deficiency.condition))
    return metric


def _varying_columns(
    moments: ClassMoments, variance: Floats, between: Floats, what: str
) -> npt.NDArray[np.bool_]:
    """Return a boolean array (d,): True where the column varies within classes.

    Columns that are constant in all rows cause a warning. Columns that differ only between
    classes raise an error.
    """
    noise = rounding_variance(moments.mean)
    constant = variance <= noise
    names = np.array(moments.features, dtype=object)
    separating = constant & (between > 4 * noise * moments.weight.sum())
    if separating.any():
        raise InferenceError.no_variance(what, names[separating].tolist())
    if constant.all():
        raise InferenceError.all_constant(what, names.tolist())
    if constant.any():
        warn(ConstantColumnWarning.of_columns(names[constant].tolist()))
    return np.asarray(~constant)


@dataclass(frozen=True, slots=True, eq=False)
class CanonicalDirections:
    """Canonical directions: s directions that separate K classes in d features."""

    eigenvalues: Floats  # (s,) eigenvalues, decreasing
    share: Floats  # (s,) share of the sum of all eigenvalues
    correlation: Floats  # (s,) canonical correlations
    tests: tuple[FTest, ...]  # s tests, each of one direction together with all later directions
    chi2: Floats  # (s,) Bartlett's chi-square
    chi2_df: Floats  # (s,) degrees of freedom of chi-square
    chi2_p: Floats  # (s,) p-values of chi-square
    raw: Floats  # (d, s) coefficients in the user's units
    constant: Floats  # (s,) constant of each score
    standardised: Floats  # (d, s) coefficients standardised by the sd within classes
    total: Floats  # (d, s) coefficients standardised by the sd of all rows
    structure: Floats  # (d, s) correlations of features and scores within classes
    structure_total: Floats  # (d, s) correlations of features and scores over all rows
    means: Floats  # (K, s) mean scores of the classes


def canonical(
    standard: StandardisedScatter, *, metric: Metric, degrees: DegreesOfFreedom
) -> CanonicalDirections:
    """Compute the canonical directions with their tests and coefficients."""
    variates = canonical_variates(
        _centred(standard),
        metric=metric,
        degrees=standard.degrees,
        prior=standard.weight / standard.rows,
        components=min(degrees.features, degrees.between),
    )
    values, scalings = variates.eigenvalues, variates.scalings
    # `sqrt(T_jj / W_jj)`, the ratio of total to within-class sd
    total_sd = np.sqrt(1.0 + np.diagonal(standard.between()))[:, None]
    per_df = np.sqrt(standard.degrees / (standard.rows - 1))
    structure = standard.within @ scalings
    raw = scalings / standard.sd[:, None] / standard.unit[:, None]
    return CanonicalDirections(
        values,
        variates.share,
        np.sqrt(values / (1.0 + values)),
        *_successive_tests(values, degrees),
        raw,
        -standard.centre @ raw,
        scalings,
        scalings * total_sd * per_df,
        structure,
        structure * np.sqrt(1.0 + values) / total_sd,
        variates.projected,
    )


def _successive_tests(
    eigenvalues: Floats, degrees: DegreesOfFreedom
) -> tuple[tuple[FTest, ...], Floats, Floats, Floats]:
    """Test each direction together with all later directions, by F and by chi-square."""
    d, q = degrees.features, degrees.between
    log_wilks = -np.cumsum(np.log1p(eigenvalues)[::-1])[::-1]
    tests = tuple(wilks(float(log), degrees, skipped=i) for i, log in enumerate(log_wilks))
    place = np.arange(len(eigenvalues))
    df = ((d - place) * (q - place)).astype(np.float64)
    chi2 = -(degrees.within - (d - q + 1) / 2) * log_wilks
    return tests, chi2, df, np.asarray(special.chdtrc(df, chi2))


def _centred(standard: StandardisedScatter) -> ClassMoments:
    """Return the standardised scatter as moments about the overall mean, in units of sd."""
    d, K = len(standard.features), len(standard.labels)
    return ClassMoments(
        standard.labels,
        standard.features,
        Anchor.zero(d),
        "pooled",
        np.ones(K, dtype=np.int64),
        standard.weight,
        standard.weight,
        standard.deviations,
        standard.within * standard.degrees,
        np.zeros(d),
    )


_NAME = "A multivariate analysis of variance"
Part = Literal[
    "tests", "univariate", "canonical", "raw", "standardised", "total", "structure",
    "structure_total", "means",
]  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class UnivariateTests:
    """Univariate F tests, one for each of d features."""

    f: Floats  # (d,)
    df1: float
    df2: float
    p: Floats  # (d,)
    wilks: Floats  # (d,) Wilks' lambda, `W_jj / T_jj`
    r2: Floats  # (d,) R squared, `B_jj / T_jj`


@dataclass(frozen=True, slots=True, eq=False)
class Manova(PrintedResult):
    """Result of `manova`: multivariate and univariate tests, and canonical directions."""

    labels: Labels  # (K,) classes
    features: tuple[str, ...]  # names of the d features
    rows: float
    wilks: FTest
    pillai: FTest
    hotelling_lawley: FTest
    roy: FTest
    univariate: UnivariateTests
    canonical: CanonicalDirections

    @property
    def tests(self) -> tuple[FTest, FTest, FTest, FTest]:
        """Tests of Wilks, Pillai, Hotelling-Lawley and Roy."""
        return self.wilks, self.pillai, self.hotelling_lawley, self.roy

    @property
    def text(self) -> str:
        """All tables, in the layout of SAS's CANDISC."""
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
        """Return the result as a dictionary of plain numbers, lists and texts."""
        names = ("wilks", "pillai", "hotelling_lawley", "roy")
        return {
            "labels": self.labels.tolist(),
            "features": list(self.features),
            "rows": self.rows,
            "tests": {name: getattr(self, name).to_dict() for name in names},
            "univariate": self._records("univariate"),
            "canonical": self._records("canonical"),
            "constant": self.canonical.constant.tolist(),
        } | {part: getattr(self.canonical, part).tolist() for part in _TITLES}

    def frame(self, part: Part = "tests") -> Any:
        """Return one of the tables, named by `part`, as a pandas frame."""
        pandas = import_pandas()
        if part in ("tests", "univariate", "canonical"):
            frame = pandas.DataFrame(self._records(part))
            return frame.set_index(frame.columns[0])
        if part not in _TITLES:
            allowed = ["tests", "univariate", "canonical", *_TITLES]
            raise OptionError.of("part", part, f"one of {', '.join(allowed)}")
        index = self.labels if part == "means" else self.features
        return pandas.DataFrame(
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
    moments : ClassMoments or rows
        Moments of two or more classes, of detail 'pooled' or finer; or rows X, with their labels
        as `y`.
    y : array of shape (N,), optional
        Labels of the rows; omit with moments.

    Returns
    -------
    Manova

    Examples
    --------
    >>> from discriminant import moments
    >>> test = manova(moments([[0.0], [2.0], [5.0], [7.0]], ["a", "a", "b", "b"])).wilks
    >>> round(test.value, 4), round(test.f, 4)  # W = 4, B = 25, F = 25 / (4 / 2)
    (0.1379, 12.5)
    """
    standard = standardise(moments_with_detail(moments, y, _NAME), _NAME)
    metric = standard.metric(_NAME)
    degrees = DegreesOfFreedom(len(standard.features), len(standard.labels) - 1, standard.degrees)
    directions = canonical(standard, metric=metric, degrees=degrees)
    return Manova(
        standard.labels,
        standard.features,
        standard.rows,
        *four_tests(directions.eigenvalues, degrees),
        _univariate(standard, degrees),
        directions,
    )


def _univariate(standard: StandardisedScatter, degrees: DegreesOfFreedom) -> UnivariateTests:
    ratio = np.diagonal(standard.between())
    f = ratio * degrees.within / degrees.between
    p = np.asarray(f_p_value(f, degrees.between, degrees.within))
    wilks = 1.0 / (1.0 + ratio)
    return UnivariateTests(f, float(degrees.between), degrees.within, p, wilks, ratio * wilks)


def _univariate_records(features: tuple[str, ...], tests: UnivariateTests) -> list[dict[str, Any]]:
    return [
        {
            "feature": name,
            "wilks": float(tests.wilks[j]),
            "r2": float(tests.r2[j]),
            "f": float(tests.f[j]),
            "df1": tests.df1,
            "df2": tests.df2,
            "p": float(tests.p[j]),
        }
        for j, name in enumerate(features)
    ]


def _canonical_records(directions: CanonicalDirections) -> list[dict[str, Any]]:
    return [
        {
            "direction": i + 1,
            "eigenvalue": float(directions.eigenvalues[i]),
            "share": float(directions.share[i]),
            "cumulative": float(directions.share[: i + 1].sum()),
            "correlation": float(directions.correlation[i]),
            "wilks": test.value,
            "f": test.f,
            "df1": test.df1,
            "df2": test.df2,
            "p": test.p,
            "chi2": float(directions.chi2[i]),
            "chi2_df": float(directions.chi2_df[i]),
            "chi2_p": float(directions.chi2_p[i]),
        }
        for i, test in enumerate(directions.tests)
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


def _univariate_text(features: tuple[str, ...], tests: UnivariateTests) -> list[str]:
    columns = zip(features, tests.wilks, tests.r2, tests.f, tests.p, strict=True)
    rows = [
        [name, format_number(wilks), format_number(r2), format_number(f, 4), format_p(p)]
        for name, wilks, r2, f, p in columns
    ]
    degrees = f"{format_degrees(tests.df1)} and {format_degrees(tests.df2)}"
    title = f"Univariate test statistics, F on {degrees}"
    return text_table(title, ["Variable", "Wilks", "R-Square", "F Value", "Pr > F"], rows)


def _canonical_text(directions: CanonicalDirections) -> list[str]:
    share, correlation = directions.share, directions.correlation
    columns = [directions.eigenvalues, share, np.cumsum(share), correlation, correlation**2]
    numbers = np.column_stack(columns)
    rows = [[str(i), *map(format_number, line)] for i, line in enumerate(numbers, start=1)]
    head = ["", "Eigenvalue", "Proportion", "Cumulative", "Canonical Corr.", "Squared"]
    return text_table("Canonical correlations", head, rows)


def _directions_text(directions: CanonicalDirections) -> list[str]:
    columns = directions.tests, directions.chi2, directions.chi2_df, directions.chi2_p
    rows = [
        [str(i), *_f_cells(test), format_number(chi2, 4), format_degrees(df), format_p(p)]
        for i, (test, chi2, df, p) in enumerate(zip(*columns, strict=True), start=1)
    ]
    head = ["", "Wilks", "F Value", "Num DF", "Den DF", "Pr > F", "Chi-Square", "DF", "Pr > ChiSq"]
    return text_table("Test that this direction and all that follow are zero", head, rows)
