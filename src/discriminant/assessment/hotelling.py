"""Whether two means differ (Hotelling's T2): of two classes, or of two tables of one make (drift).

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

from discriminant.assessment.four_tests import FTest, f_chance
from discriminant.assessment.layout import Printed, chance, degree, number, table
from discriminant.assessment.standard import check_products, moments_of, standardised
from discriminant.errors import InferenceError
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.class_rows import ClassRows
from discriminant.table.frames import pandas
from discriminant.table.schema import Floats

_WHAT = "Hotelling's T2"
_TABLES = ("first", "second")


@dataclass(frozen=True, slots=True, eq=False)
class Hotelling(Printed):
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
            [name, number(difference), number(effect), number(t, 4), chance(p)]
            for name, difference, effect, t, p in zip(
                self.features, self.difference, self.effect, self.t, self.p, strict=True
            )
        ]
        title = f"Each feature, t on {degree(self.t_df)}"
        lines = [
            f"Two-sample Hotelling T2: '{second}' ({self.rows[1]:g} rows) less '{first}' "
            f"({self.rows[0]:g} rows)",
            "",
            f"T2 = {number(test.value, 4)}, F = {number(test.f, 4)}, df = {degree(test.df1)} and "
            f"{degree(test.df2)}, p {chance(test.p)}; Mahalanobis D2 = {number(self.d2, 4)}",
            "",
            *table(title, ["Variable", "Difference", "In sd", "t", "Pr > |t|"], rows),
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
        return pandas().DataFrame(self._records()).set_index("feature")

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
        moments, other = moments_of(moments, other, _WHAT, detail="class"), None
    if isinstance(other, list | tuple | np.ndarray) and np.ndim(other) == 1:
        return hotelling(moments, labels=list(other))
    chosen = _classes(moments, labels) if other is None else _tables(moments, other, labels)
    standard = standardised(chosen, _WHAT)
    order = [0, 1] if labels is None or other is not None else _order(standard.labels, labels)
    first, second = order
    step = standard.apart[second] - standard.apart[first]
    n = standard.weight[order]
    d2 = float(standard.metric(_WHAT).squared(step[None])[0])
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
    return FTest("Hotelling T2", value, f, float(d), v - d + 1, float(f_chance(f, d, v - d + 1)))


def _classes(moments: ClassMoments, labels: Sequence[Any] | None) -> ClassMoments:
    """Two classes of one table."""
    check_products(moments, _WHAT)
    found = moments.labels[moments.weight > 0].tolist() if labels is None else list(labels)
    if len(found) != 2:
        raise InferenceError.not_two(_WHAT, found)
    return moments.classes(found).reduce("pooled")


def _tables(moments: ClassMoments, other: Any, labels: Sequence[Any] | None) -> ClassMoments:
    """Two tables as two classes."""
    parts: list[ClassMoments] = []
    for name, part in zip(_TABLES, (moments, other), strict=True):
        check_products(part, _WHAT)
        kept = part if labels is None else part.classes(list(labels))
        parts.append(kept.reduce("pooled").group({name: kept.labels.tolist()}))
    return parts[0] + parts[1]


def _order(found: Any, labels: Sequence[Any]) -> list[int]:
    """The places of the labels in the order they were asked for."""
    return [found.tolist().index(label) for label in labels]
