"""Example tables: data sets of scikit-learn as CSV."""

from __future__ import annotations

import csv
import io
from typing import NamedTuple


class ExampleTable(NamedTuple):
    """Name of an example, its target column, and a sentence about it."""

    name: str
    target: str
    about: str

    def csv(self) -> bytes:
        """Return the rows as CSV."""
        from sklearn import datasets

        bunch = getattr(datasets, f"load_{self.name}")()
        names = [str(column) for column in bunch.feature_names]
        labels = [str(label) for label in bunch.target_names[bunch.target].tolist()]
        text = io.StringIO(newline="")
        out = csv.writer(text, lineterminator="\n")
        out.writerow([*names, self.target])
        for row, label in zip(bunch.data.tolist(), labels, strict=True):
            out.writerow([*(f"{value:g}" for value in row), label])
        return text.getvalue().encode("utf-8")


EXAMPLES = (
    ExampleTable("iris", "species", "150 flowers of three species: the classic of 1936."),
    ExampleTable("wine", "cultivar", "178 wines of three cultivars, by their chemistry."),
    ExampleTable(
        "breast_cancer",
        "diagnosis",
        "569 tumours, malignant or benign, by cells under a microscope.",
    ),
    ExampleTable("digits", "digit", "1,797 handwritten digits, by the ink in 64 squares."),
)
