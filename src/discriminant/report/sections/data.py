"""Section 1 of the report: the data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.engines.partitioned_table import AnyTable, PartitionedTable
from discriminant.report.fact_types import ClassFacts, ColumnFacts, ReadFacts


def read_section(
    table: AnyTable,
    *,
    source: str,
    target: str = "",
    columns: Iterable[Any] = (),
    missing: dict[str, int] | None = None,
    rows_read: int | None = None,
    said: Sequence[str] = (),
    warnings: Iterable[Any] = (),
) -> ReadFacts:
    """Return the facts about rows, classes and columns.

    Parameters
    ----------
    table
        The rows used, in memory or partitioned.
    source, target
        Name of the source, and the target column.
    columns
        Objects with `name`, `kind`, `features` (names) and `note`, such as the columns of an
        Encoding (default: every feature is a numeric column).
    missing
        Number of missing cells per column.
    rows_read
        Number of rows before some were dropped.
    said, warnings
        Notes on what was detected or dropped, and warnings (texts or records of `catch_warnings`).
    """
    counts = missing or {}
    encoded = [
        ColumnFacts(
            name=str(column.name),
            kind=str(column.kind),
            features=len(column.features),
            note=str(column.note or ""),
            missing=int(counts.get(column.name, 0)),
        )
        for column in columns
    ]
    numeric = [
        ColumnFacts(name=name, kind="number", features=1, note="", missing=int(counts.get(name, 0)))
        for name in ([] if encoded else table.schema.features)
    ]
    return ReadFacts(
        source=source,
        target=target,
        rows=len(table),
        rows_read=len(table) if rows_read is None else rows_read,
        features=table.width,
        weighted=(table.plan if isinstance(table, PartitionedTable) else table).weight is not None,
        classes=_classes(table),
        columns=encoded or numeric,
        said=list(said),
        warnings=list(dict.fromkeys(warning_text(warning) for warning in warnings)),
    )


def warning_text(warning: Any) -> str:
    """Return the text of a warning, given as a text, an exception or a record of `catch_warnings`.

    >>> warning_text(UserWarning("too few"))
    'too few'
    """
    return str(getattr(warning, "message", warning))


def _classes(table: AnyTable) -> list[ClassFacts]:
    rows: npt.NDArray[Any]
    weight: npt.NDArray[Any]
    if isinstance(table, PartitionedTable):
        rows, weight = table.moments.rows, table.moments.weight
    else:
        K = len(table.schema.labels)
        rows = weight = np.bincount(table.codes, minlength=K)
        if table.weight is not None:
            weight = np.bincount(table.codes, table.weight, minlength=K)
    return [
        ClassFacts(label=str(label), rows=int(n), weight=float(w))
        for label, n, w in zip(table.schema.labels.tolist(), rows, weight, strict=True)
    ]
