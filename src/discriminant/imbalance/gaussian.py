"""Synthetic rows from the Gaussian distribution of a class.

With the mean c of the n rows of a class, and their centred rows Z = U S V',

    s = c + V S g / sqrt(n - 1),    g ~ N(0, I)

has the mean and the covariance of the class, also if features outnumber rows. If r such rows are
added to n rows with scatter S, the expected scatter of all m = n + r rows about their mean is

    S (1 + (r - 1 + n / m) / (n - 1))

The r rows have the expected scatter (r - 1) S / (n - 1) about their mean, whose distance from c
adds n r / m times the covariance S / (n - 1) / r.
"""

from __future__ import annotations

import numpy as np

from discriminant.errors import ResamplingError
from discriminant.table.blocks import Floats


def gaussian_rows(
    features: Floats, count: int, label: object, random: np.random.RandomState
) -> Floats:
    """Return `count` rows from the Gaussian with the mean and covariance of the rows (n, d)."""
    n = len(features)
    if n < 2:
        raise ResamplingError.of_gaussian(label, n)
    mean = features.mean(axis=0, dtype=np.float64)
    _, singular, directions = np.linalg.svd(features - mean, full_matrices=False)
    normal = random.standard_normal((count, len(singular)))
    return np.asarray(mean + (normal * (singular / np.sqrt(n - 1.0))) @ directions)
