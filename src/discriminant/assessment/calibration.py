"""Calibration: observed frequencies against predicted probabilities, in the bins of a tally.

    curve             in each bin of p_k: mean p_k against the share of rows that are class k
    expected error    ECE = sum over bins of (weight of the bin / weight) |share - mean p|

Curve and error are computed for one given class, or for the most probable class (top-label, Guo et
al. 2017: p is the largest posterior, and a row counts if that class is its true class). Bins have
equal width; adjacent bins of a tally are merged to get the number of bins requested.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discriminant.assessment.measures import ratio
from discriminant.errors import OptionError
from discriminant.table.blocks import Floats
from discriminant.table.cells import import_pandas


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationCurve:
    """Calibration curve: predicted probability against observed frequency in non-empty bins."""

    of: object  # the class, or 'top' for the most probable class
    low: Floats  # (m,) lower ends of the bins
    high: Floats  # (m,) upper ends of the bins
    predicted: Floats  # (m,) mean posterior of the rows in the bin
    observed: Floats  # (m,) share of the rows in the bin whose true class is that class
    weight: Floats  # (m,) weight of the rows in the bin

    @property
    def error(self) -> float:
        """Expected calibration error: weighted mean of |observed - predicted|."""
        return float(self._gaps() @ self.weight / self.weight.sum()) if len(self.weight) else np.nan

    @property
    def largest_error(self) -> float:
        """Maximum calibration error: largest |observed - predicted| of a bin."""
        return float(self._gaps().max(initial=0.0)) if len(self.weight) else np.nan

    def _gaps(self) -> Floats:
        return np.asarray(np.abs(self.observed - self.predicted))

    def to_dict(self) -> dict[str, Any]:
        """Return the curve as a dictionary of plain numbers and lists."""
        names = ("low", "high", "predicted", "observed", "weight")
        return {"of": self.of, "error": self.error} | {
            name: getattr(self, name).tolist() for name in names
        }

    def frame(self) -> Any:
        """Return a pandas frame with a row for each bin."""
        facts = self.to_dict()
        del facts["of"], facts["error"]
        return import_pandas().DataFrame(facts)


def curve_of(of: object, sums: Floats, *, bins: int) -> CalibrationCurve:
    """Return the calibration curve from the (3, B) sums over the B bins of a tally.

    `bins`, the number of bins of the curve, must divide B.
    """
    B = sums.shape[1]
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1 or B % bins:
        divisors = ", ".join(str(n) for n in range(1, B + 1) if B % n == 0)
        raise OptionError.of(
            "bins", bins, f"one of {divisors}: the curve merges the {B} bins of the tally"
        )
    weight, predicted, observed = sums.reshape(3, bins, -1).sum(axis=2)
    filled = weight > 0
    ends = np.arange(bins + 1) / bins
    return CalibrationCurve(
        of,
        ends[:-1][filled],
        ends[1:][filled],
        ratio((predicted[filled], weight[filled])),
        ratio((observed[filled], weight[filled])),
        weight[filled],
    )
