"""Assessment of prediction sets on labelled rows: coverage, sizes, and both for each class.

    coverage   weight of the rows whose set contains the true class / weight of all rows
    mean size  weighted mean number of classes in a set

Coverage has Clopper and Pearson's interval. Sums over rows suffice, so assessments of disjoint rows
can be added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.assessment.intervals import Interval, check_level, clopper_pearson
from discriminant.assessment.measures import ratio
from discriminant.assessment.printed_results import PrintedResult, text_table
from discriminant.errors import LabelError, ShapeError
from discriminant.table.blocks import Floats, Labels, check_weight
from discriminant.table.column_cells import import_pandas
from discriminant.table.labels import encode_labels


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SetAssessment(PrintedResult):
    """Coverage and sizes of prediction sets; printing it shows all of them.

    Attributes
    ----------
    labels : array of shape (K,)
        Classes.
    weight : array of shape (K, K + 1)
        Weight of the rows of each class by the number of classes in their set.
    covered : array of shape (K,)
        Weight of the rows of each class whose set contains the class.
    rows : int
        Number of rows.
    goal : float or None
        Requested coverage of the sets.
    """

    labels: Labels  # (K,)
    weight: Floats  # (K, K + 1)
    covered: Floats  # (K,)
    rows: int
    goal: float | None = None

    def __add__(self, other: SetAssessment) -> SetAssessment:
        """Return the assessment of both sets of rows."""
        if not np.array_equal(self.labels, other.labels):
            raise LabelError.unknown(other.labels.tolist(), self.labels.tolist())
        goal = self.goal if self.goal == other.goal else None
        weight, covered = self.weight + other.weight, self.covered + other.covered
        return SetAssessment(self.labels, weight, covered, self.rows + other.rows, goal)

    @property
    def coverage(self) -> float:
        """Share of the rows whose set contains the true class."""
        return float(self.covered.sum() / self.weight.sum())

    @property
    def coverage_by_class(self) -> Floats:
        """Coverage of the rows of each class, (K,); NaN for a class without rows."""
        return np.asarray(ratio((self.covered, self.weight.sum(axis=1))))

    @property
    def mean_size(self) -> float:
        """Mean number of classes in a set."""
        sizes = np.arange(self.weight.shape[1])
        return float((self.weight @ sizes).sum() / self.weight.sum())

    @property
    def size_shares(self) -> Floats:
        """Share of the sets with 0, 1, ..., K classes, (K + 1,)."""
        return np.asarray(self.weight.sum(axis=0) / self.weight.sum())

    @property
    def empty(self) -> float:
        """Share of the sets that are empty."""
        return float(self.size_shares[0])

    @property
    def single(self) -> float:
        """Share of the sets with exactly one class."""
        return float(self.size_shares[1])

    def interval(self, level: float = 0.95) -> Interval:
        """Return the coverage with Clopper and Pearson's interval."""
        check_level(level)
        total = np.asarray(self.weight.sum())
        low, high = clopper_pearson((np.asarray(self.covered.sum()), total), level)
        return Interval("coverage", self.coverage, float(low), float(high), level, "exact")

    @property
    def text(self) -> str:
        """Number of rows, coverage with its interval, sizes, and a line for each class."""
        head = f"{self.rows} rows of {len(self.labels)} classes"
        head += "" if self.goal is None else f", sets for coverage {self.goal:g}"
        interval = self.interval()
        ends = f"{interval.low:.4f} to {interval.high:.4f}"
        lines = [
            ["coverage", f"{self.coverage:.4f}", ends],
            ["mean set size", f"{self.mean_size:.4f}", ""],
            ["empty sets", f"{self.empty:.4f}", ""],
            ["one class", f"{self.single:.4f}", ""],
            ["several classes", f"{1.0 - self.empty - self.single:.4f}", ""],
        ]
        rates = ("coverage", "mean size")
        classes = [
            [str(each["class"]), *(f"{each[name]:.4f}" for name in rates), f"{each['support']:g}"]
            for each in self._records()
        ]
        overall = text_table("", ["", "value", "95% interval"], lines)
        by_class = text_table("", ["", "coverage", "mean size", "support"], classes)
        return "\n".join([head, "", *overall, "", *by_class])

    def to_dict(self) -> dict[str, Any]:
        """Return the assessment as a dictionary of plain numbers and lists."""
        return {
            "labels": self.labels.tolist(),
            "rows": self.rows,
            "goal": self.goal,
            "coverage": self.interval().to_dict(),
            "mean_size": self.mean_size,
            "size_shares": self.size_shares.tolist(),
            "classes": self._records(),
        }

    def frame(self) -> Any:
        """Return a pandas frame with a row for each class."""
        return import_pandas().DataFrame(self._records()).set_index("class")

    def _records(self) -> list[dict[str, Any]]:
        support = self.weight.sum(axis=1)
        sizes = ratio((self.weight @ np.arange(self.weight.shape[1]), support))
        columns = zip(self.labels.tolist(), self.coverage_by_class, sizes, support, strict=True)
        return [
            {"class": k, "coverage": float(c), "mean size": float(s), "support": float(n)}
            for k, c, s, n in columns
        ]


def assess_sets(
    sets: npt.NDArray[np.bool_],
    truth: Any,
    classes: Any,
    *,
    coverage: float | None = None,
    sample_weight: Any = None,
) -> SetAssessment:
    """Assess prediction sets (n, K) against the true labels.

    Rows of a class that is not among `classes` are never covered; they raise an error.

    Examples
    --------
    >>> result = assess_sets(np.array([[True, False], [True, True]]), ["a", "b"], ["a", "b"])
    >>> result.coverage, result.mean_size
    (1.0, 1.5)
    """
    labels, codes = encode_labels(truth)
    names = np.asarray(classes)
    if len(codes) != len(sets):
        raise ShapeError.of_lengths("y", len(codes), len(sets))
    unknown = np.setdiff1d(labels, names)
    if len(unknown):
        raise LabelError.unknown(unknown.tolist(), names.tolist())
    codes = np.searchsorted(names, labels)[codes]
    given = check_weight(sample_weight, len(codes))
    weight = np.ones(len(codes)) if given is None else given
    K = len(names)
    by_size = np.bincount(codes * (K + 1) + sets.sum(axis=1), weight, K * (K + 1)).astype(
        np.float64
    )
    covered = np.bincount(codes, weight * sets[np.arange(len(codes)), codes], K).astype(np.float64)
    return SetAssessment(names, by_size.reshape(K, K + 1), covered, len(codes), coverage)
