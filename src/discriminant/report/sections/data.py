"""Section 1: what was read, and what became of each column.

Section 6: how to use the model that was saved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.engines.partitioned import AnyTable, PartitionedTable
from discriminant.report.fact_types import ClassFacts, ColumnFacts, ReadFacts, UseFacts


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
    """Rows, classes, and columns.

    Parameters
    ----------
    table
        The rows that are used: all of them, be they in memory or in parts.
    source, target
        What they were read from, and the column that is predicted.
    columns
        What became of each column: anything with `name`, `kind`, `features` (names) and `note`, as
        the columns of an Encoding; without them every feature is a column of numbers.
    missing
        {column: how many cells were missing}.
    rows_read
        How many rows there were before some were set aside.
    said, warnings
        Sentences: what was detected or dropped; and warnings, as texts or as they were raised.
    """
    gone = missing or {}
    found = [_column(column, gone) for column in columns]
    return ReadFacts(
        source=source,
        target=target,
        rows=len(table),
        rows_read=len(table) if rows_read is None else rows_read,
        features=table.width,
        weighted=_weighted(table),
        classes=_classes(table),
        columns=found or [_number(name, gone) for name in table.schema.features],
        said=list(said),
        warnings=list(dict.fromkeys(message(warning) for warning in warnings)),
    )


def message(warning: Any) -> str:
    """The text of a warning, be it a text, an exception or a record of `warnings.catch_warnings`.

    >>> message(UserWarning("too few"))
    'too few'
    """
    return str(getattr(warning, "message", warning))


def _weighted(table: AnyTable) -> bool:
    return (table.plan if isinstance(table, PartitionedTable) else table).weight is not None


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


def _column(column: Any, missing: dict[str, int]) -> ColumnFacts:
    return ColumnFacts(
        name=str(column.name),
        kind=str(column.kind),
        features=len(column.features),
        note=str(column.note or ""),
        missing=int(missing.get(column.name, 0)),
    )


def _number(name: str, missing: dict[str, int]) -> ColumnFacts:
    return ColumnFacts(
        name=name, kind="number", features=1, note="", missing=int(missing.get(name, 0))
    )


def use_section(
    *, file: str = "", python: str = "", sql: str = "", command: str = ""
) -> UseFacts | None:
    """File, code and command, those that there are; without Python code, what loads the file."""
    if file and not python:
        python = python_code(file)
    parts = {"file": file, "python": python, "sql": sql, "command": command}
    found = {name: text for name, text in parts.items() if text}
    return UseFacts(**found) if found else None  # type: ignore[typeddict-item]


def python_code(file: str, *, decides: bool = False, likeliest: object = "") -> str:
    """What loads the file and asks the model.

    Parameters
    ----------
    decides
        Whether it has costs or a reject option.
    likeliest
        A label, to list the rows that are most likely of this class; '': none. None where the
        model gives no probabilities.
    """
    lines = ["import discriminant as dd", "", f"model = dd.load({file!r})"]
    if decides:
        lines.append("model.decide(rows)           # what to do: a class, or passing the row on")
    lines.append("model.predict(rows)          # the class of each row")
    if likeliest is not None:
        lines.append("model.predict_proba(rows)    # and how probable every class is")
    if likeliest not in (None, ""):
        lines += [
            "",
            f"place = model.classes_.tolist().index({likeliest!r})",
            "order = model.predict_proba(rows)[:, place].argsort()[::-1]",
            f"order[:20]                   # places of the 20 rows most likely {likeliest!r}",
        ]
    return "\n".join(lines)
