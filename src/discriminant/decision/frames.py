"""Costs in a data frame of any make: a column for each true class, a row for each action.

Columns are matched by name. Rows are named by the index of a pandas frame, or by one column of
texts, which any frame may have. Rows without names, as those of an index that only counts, are the
classes in the order of the columns; their diagonal must be 0, or they are refused.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from discriminant.errors import CostError
from discriminant.table.class_columns import as_labels


def is_frame(given: Any) -> bool:
    """Whether columns can be asked for by name: pandas, Polars, Arrow and their like."""
    return hasattr(given, "column_names") or hasattr(given, "columns")


def cost_rows(given: Any, labels: list[Any]) -> dict[Hashable, dict[Any, Any]]:
    """Costs of each action by the labels of the classes.

    >>> import pandas as pd
    >>> cost_rows(pd.DataFrame({"b": [5, 0], "a": [0, 1]}, index=["a", "b"]), ["a", "b"])
    {'a': {'b': 5, 'a': 0}, 'b': {'b': 0, 'a': 1}}
    """
    columns = {name: np.asarray(given[name]).tolist() for name in _names(given)}
    actions = _taken_actions(given, columns, labels)
    classes = as_labels(list(columns), labels)
    classes = list(columns) if classes is None else classes
    if len(classes) != len(labels) or set(classes) != set(labels):
        raise CostError.of_columns(classes, labels)
    cells = list(zip(*columns.values(), strict=True))
    if actions is None:
        if len(cells) != len(classes) or any(cells[k][k] != 0 for k in range(len(cells))):
            raise CostError.of_unnamed(len(cells), classes)
        actions = classes
    for place, action in enumerate(actions):
        if action in actions[:place]:
            raise CostError.of_twice(action)
    return {a: dict(zip(classes, row, strict=True)) for a, row in zip(actions, cells, strict=True)}


def _names(given: Any) -> list[Any]:
    return list(given.column_names if hasattr(given, "column_names") else given.columns)


def _taken_actions(
    given: Any, columns: dict[Any, list[Any]], labels: list[Any]
) -> list[Any] | None:
    """Names of the rows, taken out of the columns if they are there; None: they have none."""
    called = {*labels, *map(str, labels)}
    for name, cells in columns.items():
        if name not in called and cells and all(isinstance(cell, str) for cell in cells):
            del columns[name]
            return _as_known(cells, labels)
    index = getattr(given, "index", None)
    if index is None or callable(index):
        return None
    found = _as_known(list(index), labels)
    return None if found == list(range(len(found))) and found != labels else found


def _as_known(names: list[Any], labels: list[Any]) -> list[Any]:
    """Labels that are no texts may be told by their texts."""
    text = {str(label): label for label in labels}
    return [name if name in labels else text.get(name, name) for name in names]
