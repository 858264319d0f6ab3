"""Whether classes have one covariance (Box's M).

With C_k the covariance of class k on v_k = n_k - 1 degrees of freedom and C the pooled one on
v = n - K:

    M = v log|C| - sum v_k log|C_k|

    c1 = (sum 1/v_k - 1/v) (2 d^2 + 3 d - 1) / (6 (d + 1)(K - 1))
    c2 = (sum 1/v_k^2 - 1/v^2) (d - 1)(d + 2) / (6 (K - 1))

    chi-square   (1 - c1) M on a = d (d + 1)(K - 1) / 2                            (SAS, heplots)
    F            with df2 = (a + 2) / |c2 - c1^2|, on a and df2:                    (SPSS)
                 c2 > c1^2:  M / b, b = a / (1 - c1 - a / df2)
                 c2 < c1^2:  df2 M / (a (b - M)), b = df2 / (1 - c1 + 2 / df2)

Box (1949), Biometrika 36. Determinants are of columns over their pooled sd, so that no unit
matters; those shown are in the user's. M is sensitive to tails: a small p may mean tails that are
not Gaussian rather than covariances that differ.

Whether two means differ (Hotelling's T2): of two classes, or of two tables of one make (drift).

With C the covariance within both, on v = n_1 + n_2 - 2 degrees of freedom:

    D2 = (m_2 - m_1)' C^-1 (m_2 - m_1)        T2 = n_1 n_2 / (n_1 + n_2) D2
    F  = (v - d + 1) / (v d) T2  on d and v - d + 1

and of each feature alone t_j = (m_2j - m_1j) / (sd_j sqrt(1/n_1 + 1/n_2)) on v. Two tables are
each taken as one class of all their rows, or of those of the labels named: without labels a change
of the shares of classes counts as drift as well.
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
    moments_of,
    standardise,
)
from discriminant.assessment.inference.summary import (
    PrintedResult,
    format_degrees,
    format_number,
    format_p,
    text_table,
)
from discriminant.errors import InferenceError
from discriminant.models.gaussian.covariance import rounding_variance
from discriminant.moments.class_moments import ClassMoments, find_columns
from discriminant.moments.stored_rows import ClassRows
from discriminant.table.blocks import Floats, Labels
from discriminant.table.cells import import_pandas

_BOX_M = "Box's M"


@dataclass(frozen=True, slots=True, eq=False)
class BoxM(PrintedResult):
    """What `box_m` returns: `print` it, or ask for `frame()` or `to_dict()`."""

    labels: Labels  # (K,)
    features: tuple[str, ...]  # d names
    rows: Floats  # (K,)
    logdet: Floats  # (K,) of the covariance of each class, in the user's units
    logdet_pooled: float
    m: float
    chi2: float
    df: float
    p: float  # of chi2
    f: FTest

    @property
    def text(self) -> str:
        """Laid out as SPSS prints it, with the chi-square of SAS."""
        dets = [
            [str(label), format_degrees(rows), format_number(logdet)]
            for label, rows, logdet in zip(self.labels, self.rows, self.logdet, strict=True)
        ]
        dets.append(
            ["Pooled", format_degrees(float(self.rows.sum())), format_number(self.logdet_pooled)]
        )
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
                *text_table("Log determinants", ["Class", "Rows", "Log determinant"], dets),
                "",
                f"Box's M: {format_number(self.m)}",
                "",
                *text_table("", ["", "Approx.", "df1", "df2", "Sig."], tests),
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and texts."""
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
        """The classes as a pandas frame, a row each."""
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
    moments
        Of detail 'class', with more rows than features in every class; or rows X, with their
        labels as `y`.
    y
        (N,) labels of rows; left out beside moments.

    Examples
    --------
    Two classes of one feature, with variances 2 and 2 on 1 degree of freedom each: no difference.

    >>> from discriminant import moments
    >>> found = box_m(moments([[0.0], [2.0], [5.0], [7.0]], ["a", "a", "b", "b"]))
    >>> found.m, found.p
    (0.0, 1.0)
    """
    moments = moments_of(moments, y, _BOX_M, detail="class")
    standard = standardise(moments, _BOX_M)
    _check_weight(standard)
    pooled = standard.metric(_BOX_M).logdet
    each = _log_determinants(moments, standard)
    units = 2 * float(np.log(standard.sd).sum() + np.log(standard.unit).sum())
    v = standard.weight - 1
    m = max(float(v @ (pooled - each)), 0.0)  # below zero only by rounding
    return BoxM(
        standard.labels,
        standard.features,
        standard.weight,
        each + units,
        pooled + units,
        m,
        *_approximations(m, v, len(standard.features)),
    )


def _log_determinants(moments: ClassMoments, standard: StandardisedScatter) -> Floats:
    """(K,) of the covariance of each class, in units of the pooled sd."""
    columns = find_columns(moments.features, list(standard.features))
    square, found = np.ix_(columns, columns), []
    for code in np.flatnonzero(moments.weight > 0):
        label = moments.labels[code]
        covariance = moments.scatter[code][square] / (moments.weight[code] - 1)
        still = np.diagonal(covariance) <= rounding_variance(moments.mean[code][None, columns])
        if still.any():
            names = np.array(standard.features, dtype=object)[still].tolist()
            raise InferenceError.constant_in_class(_BOX_M, label, names)
        covariance = covariance / standard.sd[:, None] / standard.sd
        found.append(
            invertible_metric(covariance, standard.features, f"{_BOX_M}, class '{label}'").logdet
        )
    return np.array(found)


def _approximations(m: float, v: Floats, d: int) -> tuple[float, float, float, FTest]:
    """Chi-square with its degrees and p, and F."""
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


def _check_weight(standard: StandardisedScatter) -> None:
    d = len(standard.features)
    light = standard.weight - 1 < d
    if light.any():
        labels, rows = standard.labels[light].tolist(), standard.weight[light].tolist()
        raise InferenceError.small_classes(_BOX_M, labels, rows, d)


_HOTELLING = "Hotelling's T2"
_TABLES = ("first", "second")


@dataclass(frozen=True, slots=True, eq=False)
class Hotelling(PrintedResult):
    """What `hotelling` returns: `print` it, or ask for `frame()` or `to_dict()`."""

    labels: tuple[Any, Any]  # of the two classes, or 'first' and 'second' table
    features: tuple[str, ...]  # d names
    rows: tuple[float, float]
    d2: float  # squared Mahalanobis distance of the means
    t2: FTest
    difference: Floats  # (d,) second less first, in the user's units
    effect: Floats  # (d,) the same in sd
    t: Floats  # (d,)
    t_df: float
    p: Floats  # (d,) of t, two-sided

    @property
    def text(self) -> str:
        """The test, then each feature."""
        test, (first, second) = self.t2, self.labels
        rows = [
            [
                name,
                format_number(difference),
                format_number(effect),
                format_number(t, 4),
                format_p(p),
            ]
            for name, difference, effect, t, p in zip(
                self.features, self.difference, self.effect, self.t, self.p, strict=True
            )
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
        """Plain numbers, lists and texts."""
        return {
            "labels": list(self.labels),
            "rows": list(self.rows),
            "d2": self.d2,
            "t2": self.t2.to_dict(),
            "features": self._records(),
        }

    def frame(self) -> Any:
        """The features as a pandas frame, a row each."""
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
    moments
        Of detail 'pooled' or finer; to choose among classes of detail 'class'. Or rows X.
    other
        Moments of a second table of the same columns, for instance of a later month; or, with one
        table, the two labels; or, with rows, their (N,) labels.
    labels
        Without `other`: the two classes to compare, None if there are two. With `other`: the
        classes whose rows are compared between the tables, None for all.

    Examples
    --------
    >>> from discriminant import moments
    >>> found = hotelling(moments([[0.0], [2.0], [5.0], [7.0]], ["a", "a", "b", "b"]))
    >>> round(found.t2.value, 6), round(found.d2, 6)  # 5 apart, variance 2
    (12.5, 12.5)
    """
    if not isinstance(moments, (ClassMoments, ClassRows)):
        moments, other = moments_of(moments, other, _HOTELLING, detail="class"), None
    if isinstance(other, list | tuple | np.ndarray) and np.ndim(other) == 1:
        return hotelling(moments, labels=list(other))
    chosen = _classes(moments, labels) if other is None else _tables(moments, other, labels)
    standard = standardise(chosen, _HOTELLING)
    order = [0, 1] if labels is None or other is not None else _order(standard.labels, labels)
    first, second = order
    step = standard.apart[second] - standard.apart[first]
    n = standard.weight[order]
    d2 = float(standard.metric(_HOTELLING).squared_distances(step[None])[0])
    size = float(n.prod() / n.sum())
    t = step * np.sqrt(size)
    return Hotelling(
        (standard.labels.tolist()[first], standard.labels.tolist()[second]),
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
    """Two classes of one table."""
    check_products(moments, _HOTELLING)
    found = moments.labels[moments.weight > 0].tolist() if labels is None else list(labels)
    if len(found) != 2:
        raise InferenceError.not_two(_HOTELLING, found)
    return moments.classes(found).reduce("pooled")


def _tables(moments: ClassMoments, other: Any, labels: Sequence[Any] | None) -> ClassMoments:
    """Two tables as two classes."""
    parts: list[ClassMoments] = []
    for name, part in zip(_TABLES, (moments, other), strict=True):
        check_products(part, _HOTELLING)
        kept = part if labels is None else part.classes(list(labels))
        parts.append(kept.reduce("pooled").group({name: kept.labels.tolist()}))
    return parts[0] + parts[1]


def _order(found: Any, labels: Sequence[Any]) -> list[int]:
    """The places of the labels in the order they were asked for."""
    return [found.tolist().index(label) for label in labels]
