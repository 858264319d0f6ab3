"""Box's M test of equal covariances, and Hotelling's T2 test of equal means.

Box's M: with C_k the covariance of class k on v_k = n_k - 1 degrees of freedom and C the pooled
covariance on v = n - K:

    M = v log|C| - sum v_k log|C_k|

    c1 = (sum 1/v_k - 1/v) (2 d^2 + 3 d - 1) / (6 (d + 1)(K - 1))
    c2 = (sum 1/v_k^2 - 1/v^2) (d - 1)(d + 2) / (6 (K - 1))

    chi-square   (1 - c1) M on a = d (d + 1)(K - 1) / 2                            (SAS, heplots)
    F            with df2 = (a + 2) / |c2 - c1^2|, on a and df2:                    (SPSS)
                 c2 > c1^2:  M / b, b = a / (1 - c1 - a / df2)
                 c2 < c1^2:  df2 M / (a (b - M)), b = df2 / (1 - c1 + 2 / df2)

Box (1949), Biometrika 36. Determinants are computed for standardised columns, so that units do not
matter; the printed determinants are in the user's units. M is sensitive to heavy tails: a small
p-value may mean that the rows are not Gaussian, not that the covariances differ.

Hotelling's T2 compares the means of two classes, or of two tables with the same columns (drift).
With C the pooled covariance within both, on v = n_1 + n_2 - 2 degrees of freedom:

    D2 = (m_2 - m_1)' C^-1 (m_2 - m_1)        T2 = n_1 n_2 / (n_1 + n_2) D2
    F  = (v - d + 1) / (v d) T2  on d and v - d + 1

and for each feature t_j = (m_2j - m_1j) / (sd_j sqrt(1/n_1 + 1/n_2)) on v degrees of freedom. If
two tables are compared, the rows of each table (all of them, or those with the given labels) form
one class. Without labels, a change of the class frequencies also counts as drift.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from discriminant.assessment.inference.manova import (
    FTest,
    StandardisedScatter,
    check_products,
    f_p_value,
    invertible_metric,
    moments_with_detail,
    standardise,
)
from discriminant.assessment.printed_results import (
    PrintedResult,
    format_degrees,
    format_number,
    format_p,
    text_table,
)
from discriminant.errors import InferenceError
from discriminant.models.gaussian.covariance import rounding_variance
from discriminant.moments.class_moments import ClassMoments, find_columns
from discriminant.moments.rows_instead_of_moments import ClassRows
from discriminant.table.blocks import Floats, Labels
from discriminant.table.column_cells import import_pandas

_BOX_M = "Box's M"


@dataclass(frozen=True, slots=True, eq=False)
class BoxM(PrintedResult):
    """Result of `box_m`: the statistic with its chi-square and F approximations."""

    labels: Labels  # (K,) classes
    features: tuple[str, ...]  # names of the d features
    rows: Floats  # (K,) number of rows of each class
    logdet: Floats  # (K,) log determinant of each class covariance, in the user's units
    logdet_pooled: float
    m: float
    chi2: float
    df: float
    p: float  # p-value of chi2
    f: FTest

    @property
    def text(self) -> str:
        """Tables in the layout of SPSS, followed by the chi-square test of SAS."""
        determinants = [
            [str(label), format_degrees(rows), format_number(logdet)]
            for label, rows, logdet in (
                *zip(self.labels, self.rows, self.logdet, strict=True),
                ("Pooled", float(self.rows.sum()), self.logdet_pooled),
            )
        ]
        tests = [
            ["Chi-square", format_number(self.chi2), format_degrees(self.df), "", format_p(self.p)],
            [
                "F",
                format_number(self.f.f),
                format_degrees(self.f.df1),
                format_degrees(self.f.df2),
                format_p(self.f.p),
            ],
        ]
        return "\n".join(
            [
                *text_table("Log determinants", ["Class", "Rows", "Log determinant"], determinants),
                "",
                f"Box's M: {format_number(self.m)}",
                "",
                *text_table("", ["", "Approx.", "df1", "df2", "Sig."], tests),
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dictionary of plain numbers, lists and texts."""
        return {
            "features": list(self.features),
            "classes": self._records(),
            "logdet_pooled": self.logdet_pooled,
            "m": self.m,
            "chi2": self.chi2,
            "df": self.df,
            "p": self.p,
            "f": self.f.to_dict(),
        }

    def frame(self) -> Any:
        """Return a pandas frame with a row for each class."""
        return import_pandas().DataFrame(self._records()).set_index("label")

    def _records(self) -> list[dict[str, Any]]:
        columns = (self.labels.tolist(), self.rows.tolist(), self.logdet.tolist())
        return [
            {"label": label, "rows": rows, "logdet": logdet}
            for label, rows, logdet in zip(*columns, strict=True)
        ]


@np.errstate(under="ignore")
def box_m(moments: Any, y: Any = None) -> BoxM:
    """Test whether all classes have the same covariance.

    Parameters
    ----------
    moments : ClassMoments or rows
        Moments of detail 'class', with more rows than features in every class; or rows X, with
        their labels as `y`.
    y : array of shape (N,), optional
        Labels of the rows; omit with moments.

    Returns
    -------
    BoxM

    Examples
    --------
    Two classes of one feature, with variances 2 and 2 on 1 degree of freedom each: no difference.

    >>> from discriminant import moments
    >>> test = box_m(moments([[0.0], [2.0], [5.0], [7.0]], ["a", "a", "b", "b"]))
    >>> test.m, test.p
    (0.0, 1.0)
    """
    moments = moments_with_detail(moments, y, _BOX_M, detail="class")
    standard = standardise(moments, _BOX_M)
    d, v = len(standard.features), standard.weight - 1
    small = v < d
    if small.any():
        labels, rows = standard.labels[small].tolist(), standard.weight[small].tolist()
        raise InferenceError.small_classes(_BOX_M, labels, rows, d)
    pooled = standard.metric(_BOX_M).logdet
    logdets = _log_determinants(moments, standard)
    units = 2 * float(np.log(standard.sd).sum() + np.log(standard.unit).sum())
    m = max(float(v @ (pooled - logdets)), 0.0)  # negative only by rounding
    return BoxM(
        standard.labels,
        standard.features,
        standard.weight,
        logdets + units,
        pooled + units,
        m,
        *_approximations(m, v, d),
    )


def _log_determinants(moments: ClassMoments, standard: StandardisedScatter) -> Floats:
    """Return the log determinant of each class covariance, (K,).

    Features are in units of their pooled standard deviation.
    """
    columns = find_columns(moments.features, list(standard.features))
    square, logdets = np.ix_(columns, columns), []
    for code in np.flatnonzero(moments.weight > 0):
        label = moments.labels[code]
        covariance = moments.scatter[code][square] / (moments.weight[code] - 1)
        constant = np.diagonal(covariance) <= rounding_variance(moments.mean[code][None, columns])
        if constant.any():
            names = np.array(standard.features, dtype=object)[constant].tolist()
            raise InferenceError.constant_in_class(_BOX_M, label, names)
        covariance = covariance / standard.sd[:, None] / standard.sd
        metric = invertible_metric(covariance, standard.features, f"{_BOX_M}, class '{label}'")
        logdets.append(metric.logdet)
    return np.array(logdets)


def _approximations(m: float, v: Floats, d: int) -> tuple[float, float, float, FTest]:
    """Return the chi-square approximation (value, degrees of freedom, p) and the F test."""
    q, total = len(v) - 1, float(v.sum())
    c1 = float((1 / v).sum() - 1 / total) * (2 * d * d + 3 * d - 1) / (6 * (d + 1) * q)
    c2 = float((1 / v**2).sum() - 1 / total**2) * (d - 1) * (d + 2) / (6 * q)
    df = d * (d + 1) * q / 2
    chi2 = (1 - c1) * m
    return chi2, df, float(special.chdtrc(df, max(chi2, 0.0))), _box_f(m, df, c1, c2)


def _box_f(m: float, df: float, c1: float, c2: float) -> FTest:
    gap = c2 - c1**2
    df2 = (df + 2) / abs(gap) if gap else np.inf
    if gap >= 0:
        f = m * (1 - c1 - df / df2) / df
    else:
        b = df2 / (1 - c1 + 2 / df2)
        f = df2 * m / (df * (b - m)) if m < b else np.inf
    p = f_p_value(max(f, 0.0), df, df2) if gap else special.chdtrc(df, max(f * df, 0.0))
    return FTest(_BOX_M, m, float(f), df, float(df2), float(p))


_HOTELLING = "Hotelling's T2"
_TABLES = ("first", "second")


@dataclass(frozen=True, slots=True, eq=False)
class Hotelling(PrintedResult):
    """Result of `hotelling`: the test of equal means, and a t test of each feature."""

    labels: tuple[Any, Any]  # the two classes; or 'first' and 'second', if two tables are compared
    features: tuple[str, ...]  # names of the d features
    rows: tuple[float, float]
    d2: float  # squared Mahalanobis distance of the means
    t2: FTest
    difference: Floats  # (d,) mean of the second minus mean of the first, in the user's units
    effect: Floats  # (d,) the same difference, in standard deviations within classes
    t: Floats  # (d,)
    t_df: float
    p: Floats  # (d,) two-sided p-values of t

    @property
    def text(self) -> str:
        """The test of all features together, then the test of each feature."""
        test, (first, second) = self.t2, self.labels
        columns = zip(self.features, self.difference, self.effect, self.t, self.p, strict=True)
        rows = [
            [name, *map(format_number, (difference, effect)), format_number(t, 4), format_p(p)]
            for name, difference, effect, t, p in columns
        ]
        title = f"Each feature, t on {format_degrees(self.t_df)}"
        lines = [
            f"Two-sample Hotelling T2: '{second}' ({self.rows[1]:g} rows) less '{first}' "
            f"({self.rows[0]:g} rows)",
            "",
            f"T2 = {format_number(test.value, 4)}, F = {format_number(test.f, 4)}, "
            f"df = {format_degrees(test.df1)} and {format_degrees(test.df2)}, "
            f"p {format_p(test.p)}; Mahalanobis D2 = {format_number(self.d2, 4)}",
            "",
            *text_table(title, ["Variable", "Difference", "In sd", "t", "Pr > |t|"], rows),
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dictionary of plain numbers, lists and texts."""
        return {
            "labels": list(self.labels),
            "rows": list(self.rows),
            "d2": self.d2,
            "t2": self.t2.to_dict(),
            "features": self._records(),
        }

    def frame(self) -> Any:
        """Return a pandas frame with a row for each feature."""
        return import_pandas().DataFrame(self._records()).set_index("feature")

    def _records(self) -> list[dict[str, Any]]:
        return [
            {
                "feature": name,
                "difference": float(self.difference[j]),
                "effect": float(self.effect[j]),
                "t": float(self.t[j]),
                "df": self.t_df,
                "p": float(self.p[j]),
            }
            for j, name in enumerate(self.features)
        ]


@np.errstate(under="ignore")
def hotelling(
    moments: Any,
    other: Any = None,
    *,
    labels: Sequence[Any] | None = None,
) -> Hotelling:
    """Test whether the means of two classes, or of two tables, differ.

    Parameters
    ----------
    moments : ClassMoments or rows
        Moments of detail 'pooled' or finer (of detail 'class', to compare two of several classes);
        or rows X.
    other : ClassMoments or array, optional
        Moments of a second table with the same columns, such as those of a later month. To compare
        two classes of one table, pass their two labels here. If `moments` are rows, pass the
        labels of the rows, (N,).
    labels : sequence, optional
        Without `other`, the two classes to compare; None if there are only two. With `other`, the
        classes whose rows are compared between the two tables; None for all classes.

    Returns
    -------
    Hotelling

    Examples
    --------
    >>> from discriminant import moments
    >>> test = hotelling(moments([[0.0], [2.0], [5.0], [7.0]], ["a", "a", "b", "b"]))
    >>> round(test.t2.value, 6), round(test.d2, 6)  # difference 5, variance 2
    (12.5, 12.5)
    """
    if not isinstance(moments, (ClassMoments, ClassRows)):
        moments, other = moments_with_detail(moments, other, _HOTELLING, detail="class"), None
    if isinstance(other, list | tuple | np.ndarray) and np.ndim(other) == 1:
        return hotelling(moments, labels=list(other))
    groups = _classes(moments, labels) if other is None else _tables(moments, other, labels)
    standard = standardise(groups, _HOTELLING)
    names, order = standard.labels.tolist(), [0, 1]
    if labels is not None and other is None:
        order = [names.index(label) for label in labels]
    first, second = order
    step = standard.deviations[second] - standard.deviations[first]
    n = standard.weight[order]
    d2 = float(standard.metric(_HOTELLING).squared_distances(step[None])[0])
    size = float(n.prod() / n.sum())
    t = step * np.sqrt(size)
    return Hotelling(
        (names[first], names[second]),
        standard.features,
        (float(n[0]), float(n[1])),
        d2,
        _t_squared(size * d2, len(step), standard.degrees),
        step * standard.sd * standard.unit,
        step,
        t,
        standard.degrees,
        np.asarray(2 * special.stdtr(standard.degrees, -np.abs(t))),
    )


def _t_squared(value: float, d: int, v: float) -> FTest:
    f = (v - d + 1) / (v * d) * value
    return FTest("Hotelling T2", value, f, float(d), v - d + 1, float(f_p_value(f, d, v - d + 1)))


def _classes(moments: ClassMoments, labels: Sequence[Any] | None) -> ClassMoments:
    """Return the moments of the two classes of one table that are compared."""
    check_products(moments, _HOTELLING)
    names = moments.labels[moments.weight > 0].tolist() if labels is None else list(labels)
    if len(names) != 2:
        raise InferenceError.not_two(_HOTELLING, names)
    return moments.classes(names).reduce("pooled")


def _tables(moments: ClassMoments, other: Any, labels: Sequence[Any] | None) -> ClassMoments:
    """Return the moments of two tables, each table as one class."""
    parts: list[ClassMoments] = []
    for name, part in zip(_TABLES, (moments, other), strict=True):
        check_products(part, _HOTELLING)
        selected = part if labels is None else part.classes(list(labels))
        parts.append(selected.reduce("pooled").group({name: selected.labels.tolist()}))
    return parts[0] + parts[1]
