"""What to do where a covariance has no inverse; nothing of it is done silently.

    a column constant in all rows              left out
    a column that varies only between classes  kept, with a small floor of variance: it decides
    a column constant in one class             takes the pooled variance there: what one class does
                                               not show is no reason to be sure of it
    a dependence that no class mean breaks     its direction is left out, as MASS does; where each
                                               class has a covariance, a column for all classes
    one direction that only means break        kept with a floor, as for a column
    many of them, or fewer rows than it takes  shrunk toward the diagonal, as much as OAS says
    fewer than two rows a column               used as it is

The rank that rows allow is known: a scatter about class means of n rows in K classes has n - K at
most. Directions beyond it are no finding about the columns, however few they are.

Each is told in a warning that names the columns, so that a user can do better.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from discriminant.errors import (
    CollinearWarning,
    ConstantColumnWarning,
    ConstantInClassWarning,
    ScarceRowsWarning,
    SeparatingColumnWarning,
    ShrinkageChosenWarning,
    tell,
)
from discriminant.models.covariance import oas, size_of
from discriminant.models.metric import (
    Deficiency,
    Metric,
    diagonal_metric,
    embedded,
    factor,
    independent,
    on_subspace,
)
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.schema import Floats

_EPS = float(np.finfo(np.float64).eps)
_FLOOR = 1e-12  # variance, relative to the total, of what does not vary within a class
# With m degrees of freedom, d features tell classes apart as if their distance were
# sqrt(m / (m - d)) times shorter (T_Sigma of Raudys and Young 2004, "Results in statistical
# discriminant analysis", J. Multivariate Anal. 89; the squared cosine between C^-1 a and S^-1 a in
# the metric of C has mean (m - d + 2) / (m + 1)): by sqrt(2) at m = 2 d, without bound down to d.
_PER_FEATURE = 2.0

Columns = npt.NDArray[np.bool_]


def shared_metric(moments: ClassMoments, covariance: Floats, *, degrees: float = np.inf) -> Metric:
    """Metric of one covariance for all classes; `degrees` is the rank that its rows allow."""
    covariance, moving, varying = _moving(moments, covariance)
    if not moving.any():
        return diagonal_metric(np.zeros(len(moving)))
    what = "The pooled covariance"
    metric, lost = factor(covariance)
    floor = np.zeros(0) if lost is None else _null_floor(moments, lost, moving)
    dependent = lost is not None and metric is None and not floor.any()
    if not dependent and (degrees < varying or (metric is None and (floor > 0).sum() > 1)):
        weight = float(moments.weight.sum())
        most = degrees + len(covariance) - varying
        return embedded(_shrunk(covariance, weight, _rank(lost, most), what), moving)
    if lost is not None:
        _warn_of(moments, lost, moving, separating=bool(floor.any()))
        metric = on_subspace(covariance, lost, floor) if metric is None else metric
        varying = min(varying, lost.rank)
    assert metric is not None
    _tell_if_scarce(what, int(moments.rows.sum()), degrees, varying)
    return embedded(metric, moving)


def class_metric(
    moments: ClassMoments, covariance: Floats, code: int, *, degrees: float = np.inf
) -> Metric:
    """Metric of the covariance of one class; `degrees` is the rank that its rows allow."""
    covariance, moving, varying = _moving(moments, covariance, code)
    if not moving.any():
        return diagonal_metric(np.zeros(len(moving)))
    what = f"The covariance of class '{moments.labels[code]}'"
    metric, lost = factor(covariance)
    if lost is not None and metric is None and _shared(moments, lost, moving):
        _warn_of(moments, lost, moving, separating=False)
        return _without_copies(moments, covariance, moving)
    if metric is None or degrees < varying:
        weight = float(moments.weight[code])
        most = degrees + len(covariance) - varying
        return embedded(_shrunk(covariance, weight, _rank(lost, most), what), moving)
    if lost is not None:
        _warn_of(moments, lost, moving, separating=False)
    if degrees < moments.rows[code]:  # else it is mixed with that of other classes
        _tell_if_scarce(what, int(moments.rows[code]), degrees, varying)
    return embedded(metric, moving)


def _rank(lost: Deficiency | None, most: float) -> int:
    """The rank that was found, or if rounding hides that it is less, the one that rows allow."""
    return int(most if lost is None else min(lost.rank, most))


def _tell_if_scarce(what: str, rows: int, degrees: float, features: int) -> None:
    """Tell of a covariance that has an inverse, but from too few rows to be of use.

    One feature is spared: its variance alone moves no direction.
    """
    if features > 1 and degrees < _PER_FEATURE * features:
        tell(ScarceRowsWarning.of(what, rows=rows, degrees=int(degrees), features=features))


def _without_copies(moments: ClassMoments, covariance: Floats, moving: Columns) -> Metric:
    """Metric of the columns that are left when those made from others are dropped.

    They are chosen by the pooled covariance, so that all classes drop the same: determinants of
    other columns could not be compared.
    """
    pooled = moments.pooled[np.ix_(moving, moving)]
    sd = np.sqrt(np.diagonal(pooled))
    kept = independent(pooled / sd[:, None] / sd)
    metric, _ = factor(covariance[np.ix_(kept, kept)])
    if metric is None:
        metric = diagonal_metric(np.diagonal(covariance)[kept])
    columns = moving.copy()
    columns[moving] = kept
    return embedded(metric, columns)


def rounding(mean: Floats) -> Floats:
    """(d,) variance that rows with no spread may seem to have, by the rounding of means (K, d)."""
    return np.asarray((16 * _EPS * np.abs(mean).max(axis=0, initial=0.0)) ** 2)


def floored(moments: ClassMoments, variance: Floats, code: int | None = None) -> Floats:
    """Variances with zero for columns constant everywhere and more for those constant within.

    'Constant' is up to the rounding of the class means: of all, or if these are variances of one
    class, of that one. A column that varies in other classes takes the pooled variance.
    """
    still = variance <= rounding(moments.mean if code is None else moments.mean[code][None])
    if not still.any():
        return variance
    pooled = moments.pooled if moments.pooled.ndim == 1 else np.diagonal(moments.pooled)
    apart = moments.mean - moments.centre
    total = (pooled + moments.weight @ apart**2) / moments.weight.sum()
    noise = rounding(moments.mean)
    constant = still & (total <= 4 * noise)
    here = still & ~constant & (pooled > 4 * noise * moments.weight.sum()) & (code is not None)
    separating = still & ~constant & ~here
    _tell_of(moments, constant, here, separating, code)
    variance = np.where(here, pooled / moments.weight.sum(), variance)
    return np.where(constant, 0.0, np.where(separating, _FLOOR * total, variance))


def _tell_of(
    moments: ClassMoments, constant: Columns, here: Columns, separating: Columns, code: int | None
) -> None:
    names = np.array(moments.features, dtype=object)
    if constant.any():
        tell(ConstantColumnWarning.of_columns(names[constant].tolist()))
    if here.any() and code is not None:
        label = moments.labels[code]
        tell(ConstantInClassWarning.of_columns(names[here].tolist(), label))
    if separating.any():
        found = SeparatingColumnWarning.of_columns(
            names[separating].tolist(), moments.labels.tolist()
        )
        tell(found)


def _moving(
    moments: ClassMoments, covariance: Floats, code: int | None = None
) -> tuple[Floats, Columns, int]:
    """The covariance of the columns that are not constant, its diagonal floored where it must be.

    And how many of these columns are as they were: their variances are what takes rows.
    """
    variance = floored(moments, np.diagonal(covariance), code)
    moving = variance > 0
    varying = int((variance[moving] == np.diagonal(covariance)[moving]).sum())
    kept = covariance.copy() if moving.all() else covariance[np.ix_(moving, moving)]
    np.fill_diagonal(kept, variance[moving])
    return kept, moving, varying


def _shrunk(covariance: Floats, weight: float, rank: int, what: str) -> Metric:
    """Metric of the covariance shrunk toward its diagonal by OAS."""
    sd = np.sqrt(np.diagonal(covariance))
    amount = oas(*size_of(covariance / sd[:, None] / sd), weight)
    shrunk = (1.0 - amount) * covariance
    np.fill_diagonal(shrunk, np.diagonal(covariance))
    tell(ShrinkageChosenWarning.of(what, rank, len(covariance), amount))
    metric, _ = factor(shrunk)
    if metric is None:
        return replace(diagonal_metric(np.diagonal(covariance)), shrunk=1.0)
    return replace(metric, shrunk=amount)


def _shared(moments: ClassMoments, lost: Deficiency, moving: Columns) -> bool:
    """Whether no class varies and no mean differs along the null directions."""
    pooled = moments.pooled[np.ix_(moving, moving)] / moments.weight.sum()
    along = lost.null / lost.sd[:, None]
    spread = np.einsum("im,ij,jm->m", along, pooled, along)
    scale = np.einsum("im,i,im->m", along, np.diagonal(pooled), along)
    return not ((spread > 1e-10 * scale).any() or _null_floor(moments, lost, moving).any())


def _null_floor(moments: ClassMoments, lost: Deficiency, moving: Columns) -> Floats:
    """(m,) floor of variance for null directions along which class means differ, else zero."""
    apart = (moments.mean - moments.centre)[:, moving] / lost.sd
    along = np.abs(apart @ lost.null).max(axis=0, initial=0.0)
    noise = 1e-7 * np.abs(apart).max(initial=0.0)
    return np.where(along > noise, _FLOOR * along**2, 0.0)


def _warn_of(moments: ClassMoments, lost: Deficiency, moving: Columns, *, separating: bool) -> None:
    columns = _involved(moments, lost, moving)
    if separating:
        found: Warning = SeparatingColumnWarning.of_direction(columns, moments.labels.tolist())
    else:
        found = CollinearWarning.of_columns(
            columns, rank=lost.rank, features=int(moving.sum()), condition=lost.condition
        )
    tell(found)


def _involved(moments: ClassMoments, lost: Deficiency, moving: Columns) -> list[str]:
    """Names of the columns that take part in a direction of (almost) no variance."""
    names = np.array(moments.features, dtype=object)[moving]
    part = np.abs(lost.weakest).max(axis=1)
    return [str(name) for name in names[part > 1e-3 * part.max()]]
