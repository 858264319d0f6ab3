"""Columns and labels of a table in the form that the data checks use.

Each column is a vector of numbers (NaN where missing) or of codes of texts (-1 where missing), over
all labelled rows in the order of the file. Columns that are not features (identifiers, constants)
are included, because some checks concern them.

Checks that need only a part of the rows use an evenly spread random sample of at most
`SAMPLE_ROWS` rows, in the order of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.report.fact_types import CheckFacts
from discriminant.report.format import name_list, shown
from discriminant.table.blocks import Codes, Floats, Labels, Places
from discriminant.table.column_cells import Frame, encode_label_cells
from discriminant.table.encoding import Column, Encoding
from discriminant.table.formula.expressions import Categories
from discriminant.table.missing_and_unseen import Unseen

SAMPLE_ROWS = 50_000  # largest number of rows of checks that use a sample
_FEATURE_KINDS = ("number", "boolean", "date", "ordered", "category")


@dataclass(frozen=True, slots=True, eq=False)
class InputColumn:
    """A column: numbers, or codes of texts."""

    name: str
    kind: str  # how the encoding uses the column: number, date, category, identifier, ...
    values: npt.NDArray[Any]  # (n,) numbers, or codes of `levels`
    levels: tuple[str, ...] | None = None  # texts; None for numbers
    excluded: bool = False  # whether the column is not a feature

    @property
    def is_text(self) -> bool:
        """Whether the values are codes of texts."""
        return self.levels is not None

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        """(n,) mask of missing cells."""
        if self.is_text:
            return np.asarray(self.values < 0)
        if self.values.dtype.kind != "f":
            return np.zeros(len(self.values), dtype=bool)
        return np.asarray(np.isnan(self.values))

    @property
    def known(self) -> npt.NDArray[Any]:
        """Values of the cells that are not missing."""
        return self.values[~self.missing]

    @property
    def is_whole(self) -> bool:
        """Whether the values are integers."""
        if self.is_text:
            return False
        start = self.values[:200]
        for values in (start, self.values):
            known = values[~np.isnan(values)] if values.dtype.kind == "f" else values
            if known.dtype.kind == "f" and not (known == np.floor(known)).all():
                return False
        return True

    def take(self, rows: Places) -> InputColumn:
        """Return the column with the given rows."""
        return replace(self, values=self.values[rows])


@dataclass(eq=False)
class PreparedTable:
    """Columns, labels and folds of the labelled rows."""

    columns: tuple[InputColumn, ...]
    labels: Labels
    codes: Codes  # (n,)
    fold: npt.NDArray[np.intp] | None = None  # (n,) fold of each row, -1 for rows that are not used
    seed: int = 0
    unseen: Unseen = "error"  # treatment of levels that these rows do not have

    @classmethod
    def of(
        cls,
        frame: Frame,
        encoding: Encoding,
        *,
        target: str,
        fold: npt.NDArray[np.intp] | None = None,
        seed: int = 0,
    ) -> PreparedTable:
        """Return the columns of a frame whose rows all have a label."""
        labels, codes = encode_label_cells(frame[target])
        present = [
            column
            for column in encoding.columns
            if column.name in frame.positions and column.kind not in ("target", "weight")
        ]
        columns = tuple(_input_column(column, frame, encoding) for column in present)
        return cls(columns, labels, codes, fold, seed, encoding.unseen)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def features(self) -> tuple[InputColumn, ...]:
        """Columns that are features."""
        return tuple(column for column in self.columns if not column.excluded)

    @cached_property
    def sample(self) -> PreparedTable:
        """The table, or a random sample of its rows in the order of the file."""
        if len(self) <= SAMPLE_ROWS:
            return self
        generator = np.random.default_rng(self.seed)
        rows = np.sort(generator.choice(len(self), SAMPLE_ROWS, replace=False))
        columns = tuple(column.take(rows) for column in self.columns)
        fold = None if self.fold is None else self.fold[rows]
        return replace(self, columns=columns, codes=self.codes[rows], fold=fold)

    @cached_property
    def counts(self) -> npt.NDArray[np.intp]:
        """(K,) number of rows of each class."""
        return np.bincount(self.codes, minlength=len(self.labels))

    @cached_property
    def numbers(self) -> tuple[InputColumn, ...]:
        """Features that are numbers and vary."""
        return tuple(column for column in self.features if not column.is_text)

    @cached_property
    def matrix(self) -> Floats:
        """(n, d) numeric features, with the mean of the column in place of missing cells."""
        matrix = np.empty((len(self), len(self.numbers)), order="F")
        for j, column in enumerate(self.numbers):
            values = column.values.astype(np.float64)
            missing = np.isnan(values)
            if missing.any():
                values = np.where(missing, values[~missing].mean(), values)
            matrix[:, j] = values
        return matrix


def _input_column(column: Column, frame: Frame, encoding: Encoding) -> InputColumn:
    cells, kind = frame[column.name], column.kind
    excluded = kind not in _FEATURE_KINDS
    if kind == "category" or (excluded and cells.kind == "text"):
        cells = cells.as_text()
        return InputColumn(column.name, kind, cells.values, cells.levels, excluded)
    if cells.kind != "text" and kind != "ordered":
        return InputColumn(column.name, kind, cells.values, None, excluded)
    single = replace(encoding, columns=(column,), missing="mean", unseen="ignore", formula=None)
    parsed: Any = single.raw_columns(replace(frame, columns=(cells,), excluded=()), fitting=True)
    values = parsed[column.name]
    if isinstance(values, Categories):  # ordered levels, or truth values
        values = np.where(values.codes < 0, np.nan, values.codes.astype(np.float64))
    return InputColumn(column.name, kind, values)


def name(column: str) -> str:
    """Return the name of a column for a sentence.

    >>> name("age")
    "'age'"
    """
    return f"'{shown(column, 40)}'"


def names(columns: Sequence[str], most: int = 4) -> str:
    """Return the names of columns as a list in a sentence.

    >>> names(["a", "b"])
    "'a' and 'b'"
    """
    texts = [name(column) for column in columns[:most]]
    if len(columns) > most:
        return f"{', '.join(texts)} and {len(columns) - most} more"
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def finding(
    kind: str,
    severity: str,
    title: str,
    text: str,
    columns: Sequence[str] = (),
    rows: int | None = None,
) -> CheckFacts:
    """Return a finding of the data checks."""
    return CheckFacts(
        kind=kind,
        severity=severity,
        title=title,
        text=text,
        columns=list(columns),
        rows=rows,
    )


def class_names(labels: Sequence[object]) -> str:
    """Return class labels as a list in a sentence."""
    return name_list([shown(label, 40) for label in labels])
