"""How likely a true label is to be among those that were noted (Jain, Prabhu and Varma, 2016).

Nobody notes all labels of a row, and rare ones are missed most. With N rows, of which N_l have the
label l,

    p_l = 1 / (1 + C exp(-A log(N_l + B)))        C = (log N - 1) (B + 1)^A

A and B were fitted to sets whose true labels were known: 0.55 and 1.5 in general, 0.5 and 0.4 for
articles of Wikipedia, 0.6 and 2.6 for goods of Amazon. Measures and training that weigh a label
by 1 / p_l are then right on average for the labels that were true, not for those that were noted.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discriminant.errors import RankedLabelsError
from discriminant.table.blocks import Floats


def inverse_propensity(frequency: Any, *, rows: int, a: float = 0.55, b: float = 1.5) -> Floats:
    """(L,) 1 / p_l of labels that `frequency` of the `rows` training rows have; at least one.

    Of less than three rows the formula would make C negative and rare labels the more likely ones;
    every label counts one then.

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
    """(L,) p_l, from 0 to 1."""
    return np.asarray(1.0 / inverse_propensity(frequency, rows=rows, a=a, b=b))
