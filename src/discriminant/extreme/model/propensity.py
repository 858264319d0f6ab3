"""Propensity of labels: the probability that a label is recorded for a row to which it applies.

The propensity model is due to Jain et al. (2016). Annotators do not record every label that applies
to a row, and they miss rare labels most often. If N_l of the N rows have the label l,

    p_l = 1 / (1 + C exp(-A log(N_l + B)))        C = (log N - 1) (B + 1)^A

A and B were fitted to data sets whose true labels were known: 0.55 and 1.5 in general, 0.5 and 0.4
for Wikipedia articles, 0.6 and 2.6 for Amazon products. Measures and training that weight a label
by 1 / p_l are then unbiased for the true labels rather than for the recorded ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discriminant.errors import RankedLabelsError
from discriminant.table.blocks import Floats


def inverse_propensity(frequency: Any, *, rows: int, a: float = 0.55, b: float = 1.5) -> Floats:
    """Return the inverse propensity of each label, which is at least 1.

    `frequency` (L,) holds the number of training rows of each label. With fewer than three rows, C
    would be negative, so that rare labels would be recorded more often than frequent ones. In this
    case 1 is returned for every label.

    Examples
    --------
    >>> inverse_propensity([0, 10, 1000], rows=1000).round(2)
    array([8.82, 3.55, 1.22])
    """
    count = np.asarray(frequency, dtype=np.float64)
    for label in np.flatnonzero(~((count >= 0) & (count <= rows))):
        raise RankedLabelsError.of_frequency(int(label), count.flat[label], rows)
    c = max(np.log(max(rows, 1)) - 1.0, 0.0) * (b + 1.0) ** a
    return np.asarray(1.0 + c * (count + b) ** -a, dtype=np.float64)


def propensity(frequency: Any, *, rows: int, a: float = 0.55, b: float = 1.5) -> Floats:
    """Return the propensity p_l of each label (L,), between 0 and 1."""
    return np.asarray(1.0 / inverse_propensity(frequency, rows=rows, a=a, b=b))
