"""Calibration: observed frequencies against predicted probabilities, in the bins of a tally.

    curve             in each bin of p_k: mean p_k against the share of rows that are class k
    expected error    ECE = sum over bins of (weight of the bin / weight) |share - mean p|

of the largest posterior and of being right (top-label, Guo et al. 2017), or of one class. Bins
are of equal width; those of a tally are put together to as many as are asked for.
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
    """What was said against what came true, in the bins that have rows."""

    of: object  # the class, or 'top' for the most probable one
    low: Floats  # (m,) ends of the bins
    high: Floats  # (m,)
    predicted: Floats  # (m,) mean posterior
    observed: Floats  # (m,) share of rows for which it came true
    weight: Floats  # (m,) of the rows

    @property
    def error(self) -> float:
        """Expected calibration error: mean distance of the two, by weight."""
        return float(self._gaps() @ self.weight / self.weight.sum()) if len(self.weight) else np.nan

    @property
    def largest_error(self) -> float:
        """Maximum calibration error: the largest distance of any bin that has rows."""
        return float(self._gaps().max(initial=0.0)) if len(self.weight) else np.nan

    def _gaps(self) -> Floats:
        return np.asarray(np.abs(self.observed - self.predicted))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists."""
        names = ("low", "high", "predicted", "observed", "weight")
        return {"of": self.of, "error": self.error} | {
            name: getattr(self, name).tolist() for name in names
        }

    def frame(self) -> Any:
        """A pandas frame with a row for each bin."""
        facts = self.to_dict()
        del facts["of"], facts["error"]
        return import_pandas().DataFrame(facts)


def curve_of(of: object, sums: Floats, *, bins: int) -> CalibrationCurve:
    """From the (3, B) sums of a tally, in `bins` that divide B."""
    B = sums.shape[1]
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1 or B % bins:
        divisors = ", ".join(str(n) for n in range(1, B + 1) if B % n == 0)
        raise OptionError.of("bins", bins, f"one of {divisors}: the tally has {B} to put together")
    weight, predicted, observed = sums.reshape(3, bins, -1).sum(axis=2)
    some = weight > 0
    ends = np.arange(bins + 1) / bins
    return CalibrationCurve(
        of,
        ends[:-1][some],
        ends[1:][some],
        ratio((predicted[some], weight[some])),
        ratio((observed[some], weight[some])),
        weight[some],
    )
