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
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from discriminant.assessment.four_tests import FTest, f_chance
from discriminant.assessment.layout import Printed, chance, degree, number, table
from discriminant.assessment.standard import Standard, moments_of, solid, standardised
from discriminant.errors import InferenceError
from discriminant.models.support import rounding
from discriminant.moments.class_moments import ClassMoments
from discriminant.moments.naming import columns_of
from discriminant.table.frames import pandas
from discriminant.table.schema import Floats, Labels

_WHAT = "Box's M"


@dataclass(frozen=True, slots=True, eq=False)
class BoxM(Printed):
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
            [str(label), degree(rows), number(logdet)]
            for label, rows, logdet in zip(self.labels, self.rows, self.logdet, strict=True)
        ]
        dets.append(["Pooled", degree(float(self.rows.sum())), number(self.logdet_pooled)])
        tests = [
            ["Chi-square", number(self.chi2), degree(self.df), "", chance(self.p)],
            ["F", number(self.f.f), degree(self.f.df1), degree(self.f.df2), chance(self.f.p)],
        ]
        return "\n".join(
            [
                *table("Log determinants", ["Class", "Rows", "Log determinant"], dets),
                "",
                f"Box's M: {number(self.m)}",
                "",
                *table("", ["", "Approx.", "df1", "df2", "Sig."], tests),
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
        return pandas().DataFrame(self._records()).set_index("label")

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
    moments = moments_of(moments, y, _WHAT, detail="class")
    standard = standardised(moments, _WHAT)
    _check_weight(standard)
    pooled = standard.metric(_WHAT).logdet
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


def _log_determinants(moments: ClassMoments, standard: Standard) -> Floats:
    """(K,) of the covariance of each class, in units of the pooled sd."""
    columns = columns_of(moments.features, list(standard.features))
    square, found = np.ix_(columns, columns), []
    for code in np.flatnonzero(moments.weight > 0):
        label = moments.labels[code]
        covariance = moments.scatter[code][square] / (moments.weight[code] - 1)
        still = np.diagonal(covariance) <= rounding(moments.mean[code][None, columns])
        if still.any():
            names = np.array(standard.features, dtype=object)[still].tolist()
            raise InferenceError.flat_class(_WHAT, label, names)
        covariance = covariance / standard.sd[:, None] / standard.sd
        found.append(solid(covariance, standard.features, f"{_WHAT}, class '{label}'").logdet)
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
    p = f_chance(max(f, 0.0), df, df2) if gap else special.chdtrc(df, max(f * df, 0.0))
    return FTest(_WHAT, m, float(f), df, float(df2), float(p))


def _check_weight(standard: Standard) -> None:
    d = len(standard.features)
    light = standard.weight - 1 < d
    if light.any():
        labels, rows = standard.labels[light].tolist(), standard.weight[light].tolist()
        raise InferenceError.light_classes(_WHAT, labels, rows, d)
