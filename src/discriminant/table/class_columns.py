"""Which class each column is of, where a table has a column for each: by name, if it has names.

An array has none, and a frame that was made of one has only counted ones (0, 1, ... in pandas,
column_0, column_1, ... in Polars): their columns are in the order of the classes. A label that is
a number may be named by its digits, since Polars and Arrow name columns by texts alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discriminant.errors import ColumnNamesError


def classes_of_columns(given: Any, *, found: Sequence[Any], classes: Any, what: str) -> Any:
    """The class of each column of `given`; None if nothing but the order says it.

    Parameters
    ----------
    given
        (N, K) array or data frame.
    found
        The labels that rows have.
    classes
        What the caller says the columns are, or None. Names win, where they name these classes in
        another order; columns that are called otherwise are what `classes` says.
    what
        Name of `given` in messages.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame([[0.1, 0.9]], columns=["b", "a"])
    >>> classes_of_columns(frame, found=["a", "b"], classes=None, what="posterior")
    ['b', 'a']
    """
    known = list(found if classes is None else classes)
    names = names_of(given, known)
    if names is None or len(names) < 2:
        return classes
    if classes is None and set(found) <= set(names) and len(set(names)) == len(names):
        return names
    if classes is not None and len(names) == len(known) and set(names) == set(known):
        return names
    if classes is not None and not set(names) & set(known):
        return classes
    raise ColumnNamesError.not_classes(what, names, known)


def names_of(given: Any, labels: Sequence[Any]) -> list[Any] | None:
    """Names of the columns of a frame, as labels where they are their texts; None: it has none."""
    if hasattr(given, "column_names"):
        names = list(given.column_names)
    elif hasattr(given, "columns") and hasattr(given, "shape"):
        names = list(given.columns)
    else:
        return None
    return as_labels(names, labels)


def as_labels(names: list[Any], labels: Sequence[Any]) -> list[Any] | None:
    """Names as labels where they are their texts; None if they only count."""
    for called in ({label: label for label in labels}, {str(label): label for label in labels}):
        if set(names) == set(called):
            return [called[name] for name in names]  # 0 and 1 of pandas for False and True, too
    counted = (list(range(len(names))), [f"column_{j}" for j in range(len(names))])
    return None if names in counted else names
