"""The fold: read rows once, whoever does the summing. And the moments read that way."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from discriminant.engines import local
from discriminant.errors import OptionError
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import DETAILS, ClassMoments, Detail
from discriminant.moments.class_rows import ClassRows, RowsReading
from discriminant.moments.reading import MomentsReading
from discriminant.table.schema import is_sparse
from discriminant.table.source import Table, open_table

fold = local.fold


@overload
def moments(
    X: Any, y: Any, weight: Any = None, *, detail: Literal["rows"], threads: int | None = None
) -> ClassRows: ...


@overload
def moments(
    X: Any,
    y: Any,
    weight: Any = None,
    detail: Literal["diagonal", "pooled", "class", "fourth"] = "class",
    *,
    threads: int | None = None,
) -> ClassMoments: ...


def moments(
    X: Any, y: Any, weight: Any = None, detail: Detail = "class", *, threads: int | None = None
) -> ClassMoments | ClassRows:
    """Read the rows once: weight, mean and scatter of every class.

    Parameters
    ----------
    X
        (N, d) array of any order and number type, SciPy sparse matrix, or data frame.
    y
        (N,) labels.
    weight
        (N,) weight of each row: how often it counts. None is once.
    detail
        'class' for everything; 'pooled' if classes share a covariance; 'diagonal' for variances
        only; 'fourth' also has what the best shrinkage needs; 'rows' keeps the rows themselves,
        which is the least where there are fewer rows than features.
    threads
        None: all cores.

    Examples
    --------
    >>> found = moments([[0.0], [2.0], [5.0], [7.0]], ["a", "a", "b", "b"])
    >>> found.means.ravel().tolist(), found.within().tolist()
    ([1.0, 6.0], [[4.0]])
    """
    if detail not in (*DETAILS, "rows"):
        raise OptionError.of("detail", detail, f"one of {', '.join(DETAILS)} or rows")
    table = open_table(X, y, weight=weight)
    if detail == "rows":
        return read_rows(table)
    return read_moments(table, detail=detail, threads=threads)


def read_moments(
    table: Table, *, detail: Detail, anchor: Anchor | None = None, threads: int | None = None
) -> ClassMoments:
    """Class moments of an open table, about `anchor` or one placed near its rows."""
    anchor = anchor_of(table) if anchor is None else anchor
    names = table.schema.features
    if table.responses is not None:
        names = (*names, *(f"response {j}" for j in range(table.responses.shape[1])))
    reading = MomentsReading(table.schema.labels, names, anchor, detail)
    return fold(table, reading, threads=threads)


def read_rows(table: Table, *, anchor: Anchor | None = None) -> ClassRows:
    """The rows of an open table as a summary, about `anchor` or one placed near them."""
    anchor = anchor_of(table) if anchor is None else anchor
    schema = table.schema
    return fold(table, RowsReading(schema.labels, schema.features, anchor, len(table)))


def anchor_of(table: Table) -> Anchor:
    """Origin and unit near the rows of a table; a sparse table keeps its zeros."""
    return Anchor.of(np.asarray(table.sample()), at_zero=is_sparse(table.features))
