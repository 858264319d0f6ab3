"""Minimum covariance determinant (MCD): location and covariance that outlying rows do not shift.

The raw MCD of n rows is the mean and the covariance of those h rows whose covariance has the
smallest determinant, with h between about n/2 and n. These rows are searched for by the
deterministic algorithm of Hubert, Rousseeuw and Verdonck (2012):

    columns are centred at their medians and divided by a robust scale (the tau scale)
    six starts       principal axes P of six robust matrices, see `_starting_axes`
                     scales l of the rows along these axes, location m from the medians of the
                     sphered rows, and the h rows with the smallest Mahalanobis distances for mean m
                     and covariance P l^2 P'
    concentration    mean and covariance of the h rows; then the h rows of smallest distance;
                     repeated until the rows stay the same, so that the determinant never rises
    result           the h rows with the smallest determinant over all starts

The covariance is then multiplied by two factors. The first factor makes it consistent for Gaussian
rows (Croux and Haesbroeck 1999): with q the quantile of chi2(d) at h/n,

    c(d, h/n) = (h/n) / P(chi2(d + 2) <= q)

The second factor corrects for small n (Pison, Van Aelst and Willems 2002). Rows are retained if
their squared distance by the raw estimate is at most the 97.5% quantile of chi2(d). The mean and
the covariance of the retained rows are the reweighted MCD, which is more efficient; the covariance
is multiplied by c(d, share retained) and by another small-sample factor. Factors and starts are
those of R's robustbase, with `scalefn = scaleTau2`.

Rows are sorted first, so that the result does not depend on their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh, lapack
from scipy.special import chdtr, chdtri, ndtr, ndtri

from discriminant.table.blocks import Floats

Subset = npt.NDArray[np.bool_]

_EPS = float(np.finfo(np.float64).eps)
_MAX_STEPS = 200  # concentration steps from one start
_PAIRED = 1 << 21  # largest number of sums of pairs of columns in memory at a time


@dataclass(frozen=True, slots=True, eq=False)
class MCD:
    """Reweighted and raw minimum covariance determinant estimates of d features."""

    location: Floats  # (d,)
    covariance: Floats  # (d, d)
    raw_location: Floats  # (d,) mean of the h rows
    raw_covariance: Floats  # (d, d) with its factors
    logdet: float  # log determinant of the covariance of the h rows, without factors


def cutoff(features: int) -> float:
    """Return the squared distance beyond which a row is outlying: the 97.5% quantile of chi2(d)."""
    return float(chdtri(features, 0.025))


def least_rows(features: int) -> int:
    """Return the smallest number of rows for an MCD estimate of `features` features."""
    return max(2 * features, features + 2)


def columns_with_zero_mad(rows: Floats) -> npt.NDArray[np.bool_]:
    """Return a boolean array (d,): True for columns whose median absolute deviation (MAD) is zero.

    In such a column at least half of the rows equal the median.
    """
    gaps = np.abs(rows - np.median(rows, axis=0))
    noise = 16 * _EPS * np.abs(rows).max(axis=0, initial=0.0)
    return np.asarray(np.median(gaps, axis=0) <= noise)


def fit_mcd(rows: Floats, *, support_fraction: float = 0.5) -> MCD | None:
    """Return the MCD estimates for rows (n, d), or None if h of the rows lie on a hyperplane.

    There must be at least `least_rows(d)` rows, and no column whose median absolute deviation is
    zero (`columns_with_zero_mad`).

    Examples
    --------
    >>> rows = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [1000.0]])
    >>> estimate = fit_mcd(rows)
    >>> estimate.location.tolist()  # the mean of the rows but the last
    [2.5]
    """
    n, d = rows.shape
    rows = rows[np.lexsort(rows.T[::-1])]
    centre = np.median(rows, axis=0)
    scale = tau_scale((rows - centre).T)
    h = subset_size(support_fraction, n, d)
    standard = (rows - centre) / scale
    best = _univariate_subset(standard[:, 0], h) if d == 1 else _best_subset(standard, h)
    if best is None:
        return None
    estimate = _mean_and_factor(standard[best])
    if estimate is None:
        return None
    mean, lower = estimate
    factor = consistency_factor(d, h / n) * small_sample_factor(d, n, support_fraction, "raw")
    retained = _squared_distances(standard, mean, lower) / factor < cutoff(d)
    reweighted = _reweighted(standard[retained], n, support_fraction)
    square = scale[:, None] * scale
    return MCD(
        centre + scale * reweighted[0],
        reweighted[1] * square,
        centre + scale * mean,
        factor * (lower @ lower.T) * square,
        2.0 * float(np.log(np.diagonal(lower)).sum() + np.log(scale).sum()),
    )


def subset_size(support_fraction: float, rows: int, features: int) -> int:
    """Return h, the number of rows of the subset whose covariance is estimated.

    A fraction of 1 gives all rows, and a fraction of 0.5 the smallest possible number.
    """
    least = (rows + features + 1) // 2
    return int(2 * least - rows + 2 * (rows - least) * support_fraction)


def _reweighted(rows: Floats, n: int, support_fraction: float) -> tuple[Floats, Floats]:
    """Return the mean and the covariance of the retained rows, with the two factors applied."""
    m, d = rows.shape
    mean = rows.mean(axis=0)
    covariance = (rows - mean).T @ (rows - mean) / (m - 1)
    if m < n:
        covariance *= consistency_factor(d, m / n)
        covariance *= small_sample_factor(d, n, support_fraction, "reweighted")
    return mean, covariance


# --- search of the subset -------------------------------------------------------------------------


def _univariate_subset(values: Floats, h: int) -> Subset:
    """Return a boolean array (n,): True for the h consecutive values of smallest variance.

    `values` (n,) is sorted.
    """
    sums = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values**2)])
    total = sums[h:] - sums[:-h]
    first = int(np.argmin(squares[h:] - squares[:-h] - total**2 / h))
    places = np.arange(len(values))
    return np.asarray((places >= first) & (places < first + h))


def _best_subset(rows: Floats, h: int) -> Subset | None:
    """Return the h rows with the smallest covariance determinant, or None if this is zero."""
    best, smallest, visited = None, np.inf, set[bytes]()
    for axes in _starting_axes(rows):
        subset = _nearest(_axis_distances(rows, axes), h)
        for _ in range(_MAX_STEPS):
            # Another start that has reached these rows continues in the same way.
            key = np.packbits(subset).tobytes()
            if key in visited:
                break
            visited.add(key)
            estimate = _mean_and_factor(rows[subset])
            if estimate is None:
                return None
            mean, lower = estimate
            logdet = 2.0 * float(np.log(np.diagonal(lower)).sum())
            if logdet < smallest:
                best, smallest = subset, logdet
            subset = _nearest(_squared_distances(rows, mean, lower), h)
    return best


def _nearest(distances: Floats, h: int) -> Subset:
    """Return a boolean array (n,): True for the h rows of smallest distance."""
    subset = np.zeros(len(distances), dtype=np.bool_)
    subset[np.argpartition(distances, h - 1)[:h]] = True
    return subset


def _mean_and_factor(rows: Floats) -> tuple[Floats, Floats] | None:
    """Return mean and Cholesky factor of the covariance, or None for a singular covariance."""
    mean = rows.mean(axis=0)
    centred = rows - mean
    covariance = centred.T @ centred / (len(rows) - 1)
    lower, failed = lapack.dpotrf(covariance, lower=True)
    # the share of the variance of a column that the columns before it do not explain
    left = np.diagonal(lower) ** 2 <= 64 * len(lower) * _EPS * np.diagonal(covariance)
    return None if failed or left.any() else (mean, lower)


def _squared_distances(rows: Floats, mean: Floats, lower: Floats) -> Floats:
    white = rows - mean
    white = white @ lapack.dtrtri(lower, lower=True)[0].T
    return np.asarray(np.vecdot(white, white))


def _axis_distances(rows: Floats, axes: Floats) -> Floats:
    """Return the (n,) squared distances, computed from robust scales along orthogonal axes."""
    along = rows @ axes
    scale = _positive_scale(along)
    # The location is the median of the rows sphered by P l^-1 P', mapped back by P l P'.
    sphered = (along / scale) @ axes.T
    location = np.median(sphered, axis=0) @ (axes * scale)
    gaps = (along - location) / scale
    return np.asarray(np.einsum("nj,nj->n", gaps, gaps))


def _positive_scale(rows: Floats) -> Floats:
    """Return the tau scale of each column, or its standard deviation if the tau scale is zero."""
    scale = tau_scale(rows.T)
    if (scale > 0).all():
        return scale
    deviation = rows.std(axis=0)
    return np.where(scale > 0, scale, np.where(deviation > 0, deviation, 1.0))


def _starting_axes(rows: Floats) -> Iterator[Floats]:
    """Yield the eigenvectors of six robust matrices of the standardised rows.

    The matrices are the correlations after transforming the columns to hyperbolic tangents, to
    ranks and to normal scores; the covariance of the spatial signs; the covariance of the half of
    the rows nearest to the centre; and the matrix of Gnanadesikan and Kettenring (1972).
    """
    n = len(rows)
    yield _eigenvectors(np.corrcoef(np.tanh(rows), rowvar=False))
    ranks = np.column_stack([_ranks(column) for column in rows.T])
    yield _eigenvectors(np.corrcoef(ranks, rowvar=False))
    yield _eigenvectors(np.corrcoef(ndtri((ranks - 1 / 3) / (n + 1 / 3)), rowvar=False))
    length = np.sqrt(np.vecdot(rows, rows))
    signs = rows / np.where(length > _EPS, length, 1.0)[:, None]
    yield _eigenvectors(signs.T @ signs)
    yield _eigenvectors(np.cov(rows[np.argsort(length, kind="stable")[: -(-n // 2)]].T))
    yield _eigenvectors(_gnanadesikan_kettenring(rows))


def _ranks(values: Floats) -> Floats:
    """Return the ranks of values (n,), starting at 1; equal values get the mean of their ranks."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - 0.5 * (counts - 1))[places])


def _eigenvectors(matrix: Any) -> Floats:
    return np.asarray(eigh(matrix, check_finite=False)[1])


def _gnanadesikan_kettenring(rows: Floats) -> Floats:
    """Return the matrix [scale(x_i + x_j)^2 - scale(x_i - x_j)^2] / 4, with a unit diagonal."""
    n, d = rows.shape
    columns = np.ascontiguousarray(rows.T)
    first, second = np.triu_indices(d, 1)
    matrix = np.eye(d)
    step = max(_PAIRED // n, 1)
    for lo in range(0, len(first), step):
        i, j = first[lo : lo + step], second[lo : lo + step]
        plus, minus = tau_scale(columns[i] + columns[j]), tau_scale(columns[i] - columns[j])
        matrix[i, j] = matrix[j, i] = (plus**2 - minus**2) / 4
    return matrix


# --- scale and factors ----------------------------------------------------------------------------


def tau_scale(columns: Floats) -> Floats:
    """Return the tau scales (m,) of the rows of an (m, n) array (Maronna and Zamar 2002).

    With s the median absolute deviation from the median, w(u) = (1 - u^2)^2 for |u| < 1 and the
    location t the mean with weights w((x - median) / (4.5 s)),

        scale^2 = s^2 mean(min(((x - t) / s)^2, 9)) / e

    where the constant e makes the scale consistent for Gaussian values. If s is 0, the scale is 0.
    """
    gaps = columns - _medians(columns)[:, None]
    deviation = _medians(np.abs(gaps))
    divisor = np.where(deviation > 0, deviation, 1.0)[:, None]
    gaps /= divisor
    weight = np.maximum(1.0 - (gaps / 4.5) ** 2, 0.0) ** 2
    gaps -= (np.vecdot(weight, gaps) / weight.sum(axis=1))[:, None]
    rho = np.minimum(gaps * gaps, 9.0)
    return np.asarray(deviation * np.sqrt(rho.mean(axis=1) / _TAU_EXPECTED))


def _medians(columns: Floats) -> Floats:
    """Return the median of each row of an (m, n) array."""
    n = columns.shape[1]
    parts = np.partition(columns, (n // 2 - 1, n // 2) if n % 2 == 0 else n // 2, axis=1)
    return parts[:, n // 2] if n % 2 else 0.5 * (parts[:, n // 2 - 1] + parts[:, n // 2])


def _expected_rho(limit: float) -> float:
    """Return the mean of min(z^2, limit^2) for a standard normal z."""
    beyond = 2.0 * ndtr(-limit)
    density = np.exp(-0.5 * limit**2) / np.sqrt(2.0 * np.pi)
    return float(1.0 - beyond - 2.0 * limit * density + limit**2 * beyond)


_TAU_EXPECTED = _expected_rho(3.0 * float(ndtri(0.75)))


def consistency_factor(features: int, share: float) -> float:
    """Return the factor that corrects the covariance of the innermost `share` of Gaussian rows."""
    if share >= 1.0:
        return 1.0
    return share / float(chdtr(features + 2, chdtri(features, 1.0 - share)))


Kind = Literal["raw", "reweighted"]
_Coefficients = tuple[tuple[float, float], ...]
# For d = 1 and 2 features: (a, b) of 1 - exp(a) / n^b, for support fractions 0.5 and 0.875.
_FEW_FEATURES: Mapping[tuple[Kind, int], _Coefficients] = {
    ("raw", 1): (
        (0.262024211897096, 0.604756680630497),
        (-0.351584646688712, 1.01646567502486),
    ),
    ("raw", 2): (
        (0.673292623522027, 0.691365864961895),
        (0.446537815635445, 1.06690782995919),
    ),
    ("reweighted", 1): (
        (1.11098143415027, 1.5182890270453),
        (-0.66046776772861, 0.88939595831888),
    ),
    ("reweighted", 2): (
        (3.11101712909049, 1.91401056721863),
        (0.79473550581058, 1.10081930350091),
    ),
}
# For more features: (a, b) with 1 - a / d^b the factor at n = 2 d^2, and at n = 3 d^2.
_MORE_FEATURES: Mapping[tuple[Kind, float], _Coefficients] = {
    ("raw", 0.5): ((1.42764571687802, 1.26263336932151), (1.06141115981725, 1.28907991440387)),
    ("raw", 0.875): ((0.455179464070565, 1.11192541278794), (0.294241208320834, 1.09649329149811)),
    ("reweighted", 0.5): (
        (1.02842572724793, 1.67659883081926),
        (0.26800273450853, 1.35968562893582),
    ),
    ("reweighted", 0.875): (
        (0.544482443573914, 1.25994483222292),
        (0.343791072183285, 1.25159004257133),
    ),
}

# Simulated factors for a fraction of 0.5, where the rows are too few for the formulas: features,
# and the factors for n = 2 d, 2 d + 1, ...
_SIMULATED: Mapping[Kind, Mapping[int, tuple[float, ...]]] = {
    "raw": {
        2: (3.15342, 1.799889, 2.258497),
        3: (2.12777, 2.718898, 1.993509, 2.220433, 1.820585),
        4: (2.950549, 2.145387, 2.382224, 1.927077, 2.032489, 1.8371),
        5: (2.229573, 2.494447, 2.016117, 2.190061, 1.877996, 1.978964, 1.767284),
        6: (2.580264, 2.109121, 2.240741, 1.944719, 2.043397, 1.821808, 1.89725),
        7: (2.165233, 2.320281, 2.007836, 2.086471, 1.884052, 1.950563, 1.76926),
        8: (2.340443, 2.048262, 2.161097, 1.926082, 1.995422),
        9: (2.093386, 2.185793, 1.948989),
    },
    "reweighted": {
        2: (2.216302, 1.418526, 1.635601),
        3: (1.73511, 2.06681, 1.545905, 1.659655, 1.456835),
        4: (2.388892, 1.847626, 1.96998, 1.630723, 1.701272, 1.521008),
        5: (1.968153, 2.168931, 1.784373, 1.894409, 1.667912, 1.693007, 1.545176),
        6: (2.275891, 1.866587, 2.014249, 1.750567, 1.829363, 1.650019, 1.689043),
        7: (1.95771, 2.074066, 1.847385, 1.905408, 1.71393, 1.768425, 1.63908),
        8: (2.164121, 1.871024, 1.979485, 1.782417, 1.84489),
        9: (1.938822, 2.050409, 1.834863),
    },
}


def small_sample_factor(features: int, rows: int, support_fraction: float, kind: Kind) -> float:
    """Return the factor of Pison, Van Aelst and Willems for the covariance of few Gaussian rows.

    The inverse of the factor is interpolated between the fractions 0.5, 0.875 and 1.
    """
    half, most = (_inverse_factor(features, rows, fraction, kind) for fraction in (0.5, 0.875))
    return 1.0 / float(np.interp(support_fraction, [0.5, 0.875, 1.0], [half, most, 1.0]))


def _inverse_factor(features: int, rows: int, fraction: float, kind: Kind) -> float:
    simulated = _SIMULATED[kind].get(features, ()) if fraction == 0.5 else ()
    if rows - 2 * features < len(simulated):
        return 1.0 / float(simulated[rows - 2 * features])
    if features <= 2:
        a, b = _FEW_FEATURES[kind, features][0 if fraction == 0.5 else 1]
        return 1.0 - float(np.exp(a - b * np.log(rows)))
    points = [(2.0, *_MORE_FEATURES[kind, fraction][0]), (3.0, *_MORE_FEATURES[kind, fraction][1])]
    (x, y), (u, v) = (
        (np.log(multiple * features**2), np.log(a) - b * np.log(features))
        for multiple, a, b in points
    )
    return 1.0 - float(np.exp(y + (v - y) / (u - x) * (np.log(rows) - x)))
