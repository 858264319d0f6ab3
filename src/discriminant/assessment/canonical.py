"""Canonical discriminant analysis: the directions that tell classes apart, and how they are read.

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

from dataclasses import dataclass

import numpy as np
from scipy import special

from discriminant.assessment.four_tests import Degrees, FTest, wilks
from discriminant.assessment.standard import Standard
from discriminant.models.fisher import canonical_variates
from discriminant.models.metric import Metric
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.schema import Floats


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


def canonical(standard: Standard, *, metric: Metric, degrees: Degrees) -> Canonical:
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


def _centred(standard: Standard) -> ClassMoments:
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
