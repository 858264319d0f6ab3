"""Fold a reading over rows in one pass with any engine, and compute moments that way."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt

from discriminant.engines import local
from discriminant.engines.parted import AnyTable, Parted, in_memory
from discriminant.errors import InfiniteValueError, OptionError
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import DETAILS, ClassMoments, Detail
from discriminant.moments.class_rows import ClassRows, RowsReading
from discriminant.moments.reach import ReachReading
from discriminant.moments.reading import MomentsReading
from discriminant.moments.summary import Reading, Summary
from discriminant.table.schema import Floats, is_sparse
from discriminant.table.source import Table, open_table

M = TypeVar("M", ClassMoments, ClassRows)
S = TypeVar("S", bound=Summary)


def fold(table: AnyTable, reading: Reading[S], *, threads: int | None = None) -> S:
    """The sum of a reading over all rows of a table, whoever does the summing."""
    if isinstance(table, Parted):
        return table.fold(reading)
    return local.fold(table, reading, threads=threads)


@overload
def moments(
    X: Any,
    y: Any = None,
    weight: Any = None,
    *,
    detail: Literal["rows"],
    threads: int | None = None,
    target: None = None,
) -> ClassRows: ...


@overload
def moments(
    X: Any,
    y: Any = None,
    weight: Any = None,
    detail: Literal["diagonal", "pooled", "class", "fourth"] = "class",
    *,
    threads: int | None = None,
    target: str | None = None,
    **options: Any,
) -> ClassMoments: ...


@np.errstate(under="ignore")
def moments(
    X: Any,
    y: Any = None,
    weight: Any = None,
    detail: Detail = "class",
    *,
    threads: int | None = None,
    target: str | None = None,
    **options: Any,
) -> ClassMoments | ClassRows:
    """Read the rows once: weight, mean and scatter of every class.

    Parameters
    ----------
    X
        (N, d) array of any order and number type, SciPy sparse matrix, or data frame. With a
        `target` any source of rows: files that need not fit into memory (a path, a glob, a
        folder, a list), a Dask or Spark frame, a database (`discriminant.sql`), a data frame.
    y
        (N,) labels.
    weight
        (N,) weight of each row: how often it counts. None is once. With a `target` the name of
        the column.
    detail
        'class' for everything; 'pooled' if classes share a covariance; 'diagonal' for variances
        only; 'fourth' also has what the best shrinkage needs; 'rows' keeps the rows themselves,
        which is the least where there are fewer rows than features.
    threads
        None: all cores.
    target
        The column of labels.
    options
        With a `target`: all that `discriminant.rows` takes. With reference=None moments of tables
        that met different levels add; `with_reference()` of the sum is what models are made from.

    Examples
    --------
    >>> found = moments([[0.0], [2.0], [5.0], [7.0]], ["a", "a", "b", "b"])
    >>> found.means.ravel().tolist(), found.within().tolist()
    ([1.0, 6.0], [[4.0]])
    """
    if detail not in (*DETAILS, "rows"):
        raise OptionError.of("detail", detail, f"one of {', '.join(DETAILS)} or rows")
    if target is not None:
        return _of_source(X, y, detail, target=target, weight=weight, **options)
    for name in options:
        _check_reads(name)
        raise OptionError.of(name, options[name], "left out, or given along with target=")
    if y is None:
        raise OptionError.of("y", None, "the labels; or name their column by target=")
    table = open_table(X, y, weight=weight)
    if detail == "rows":
        return read_rows(table)
    return read_moments(table, detail=detail, threads=threads)


def _check_reads(option: str) -> None:
    """Raise a TypeError for an option that no source has, with or without target=."""
    from discriminant.engines.opening import rows
    from discriminant.table.opening import open_source

    if option not in {*signature(rows).parameters, *signature(open_source).parameters}:
        raise TypeError(f"moments() got an unexpected keyword argument '{option}'")


def _of_source(source: Any, y: Any, detail: Detail, **options: Any) -> ClassMoments | ClassRows:
    """Moments of rows that have their labels in a column, wherever they are."""
    from discriminant.engines.opening import rows, takes
    from discriminant.engines.table_moments import TableMoments
    from discriminant.table.opening import open_source

    if y is not None:
        raise OptionError.of("y", "labels", "left out, since target= names their column")
    if takes(source) and detail != "rows":
        parts = rows(source, detail=detail, **options)
        return TableMoments.of(read_moments(parts, detail=detail), parts.plan.encoding)
    opened = open_source(source, **options)
    if detail == "rows":
        return read_rows(opened.table)
    return TableMoments.of(read_moments(opened.table, detail=detail), opened.encoding)


def read_moments(
    table: AnyTable, *, detail: Detail, anchor: Anchor | None = None, threads: int | None = None
) -> ClassMoments:
    """Class moments of an open table, about `anchor` or one placed near its rows.

    The unit of a column is a guess from a few rows. Where the sums show that it was a bad one, the
    rows are read again in a unit that suits them all.
    """
    if detail not in DETAILS:
        raise OptionError.of("detail", detail, f"one of {', '.join(DETAILS)}")
    if isinstance(table, Parted) and table.moments.holds(detail) and anchor is None:
        return table.moments.reduce(detail)  # they were read when it was opened
    anchor = anchor_of(table) if anchor is None else anchor
    names = table.schema.features
    if isinstance(table, Table) and table.responses is not None:
        names = (*names, *(f"response {j}" for j in range(table.responses.shape[1])))

    def read(anchor: Anchor) -> ClassMoments:
        rows = len(table) if isinstance(table, Parted) else 0  # in memory, rows lie side by side
        reading = MomentsReading(table.schema.labels, names, anchor, detail, rows)
        return fold(table, reading, threads=threads)

    return _in_units_that_suit(table, read(anchor), read)


def read_rows(table: Table, *, anchor: Anchor | None = None) -> ClassRows:
    """The rows of an open table as a summary, about `anchor` or one placed near them."""
    anchor = anchor_of(table) if anchor is None else anchor
    schema = table.schema

    def read(anchor: Anchor) -> ClassRows:
        return fold(table, RowsReading(schema.labels, schema.features, anchor, len(table)))

    return _in_units_that_suit(table, read(anchor), read)


def read_classes(
    table: AnyTable, detail: Detail, *, anchor: Anchor | None = None
) -> ClassMoments | ClassRows:
    """Moments of an open table in that detail, or its rows; about `anchor` or one of its own."""
    if detail == "rows":
        return read_rows(in_memory(table, "A model that keeps rows"), anchor=anchor)
    return read_moments(table, detail=detail, anchor=anchor)


def _in_units_that_suit(table: AnyTable, found: M, read: Callable[[Anchor], M]) -> M:
    """What was read, or where sums overflow or vanish what is read in other units."""
    columns = found.strained()
    if not columns.any():
        return found
    spread = np.zeros(len(columns))
    spread[columns] = _spread(table, found.anchor, np.flatnonzero(columns))
    anchor = found.anchor.fit_to(spread)
    if not anchor.same_as(found.anchor):
        found = read(anchor)
    for j in np.flatnonzero(found.overflown()):
        raise InfiniteValueError.of_sums(found.features[j])
    return found


def _spread(table: AnyTable, anchor: Anchor, columns: npt.NDArray[np.intp]) -> Floats:
    """How far from the origin rows of any weight go, in some columns."""
    return fold(table, ReachReading(anchor.origin[columns], columns)).furthest


def anchor_of(table: AnyTable) -> Anchor:
    """Origin and unit near the rows of a table; a sparse table keeps its zeros."""
    some = table.some.at_hand if isinstance(table, Parted) else table
    return Anchor.of(np.asarray(some.sample()), at_zero=is_sparse(some.features))
