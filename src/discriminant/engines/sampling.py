"""Some rows of files, drawn evenly: files are often in the order of time, or of a key.

Of N rows, n are wanted; the same ones are drawn every time.

    Parquet, Arrow      rows [N (i + 1/2) / n], i = 0 .. n - 1, of as many parts as there is time to
                        decode: parts are then hit in proportion to their rows, at even distances
    lines of a text     a few lines at each of many places, at even distances in bytes
    small, packed text  every m-th row as they go by; m doubles whenever 2 n rows are held

None holds more than 2 n rows and one batch for each core. To plan what columns become, the first
rows of each part do, and are cheap: `heads`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.engines.summation import available_threads, ordered_map
from discriminant.errors import DiscriminantError
from discriminant.table.files.csv_dialect import MAX_LINE
from discriminant.table.files.splits import CsvPart, FilePart, JsonPart, SplitError

_PLACES = 256  # of a text where lines are read; parts that rows are drawn from, at most
_FEWEST = 16  # parts, however many cells these hold
_CELLS = 1 << 26  # decoded for a draw, where fewer parts than all will do
_SHORT = 1 << 23  # bytes of text that are rather read through

Rows = npt.NDArray[np.int64]
Piece = tuple[FilePart, int, int]  # a part, how many rows to draw, at how many places


def systematic_sample(parts: Sequence[FilePart], columns: Sequence[str], *, rows: int) -> list[Any]:
    """Arrow tables of at most so many rows, in their order; all rows if there are no more."""
    if not all(isinstance(part, CsvPart | JsonPart) for part in parts):
        chosen = _chosen(parts, rows, width=len(columns))
        found = _at_once(partial(_counted, columns=columns), chosen)
    elif _to_read_through(parts):
        every = _evenly(parts, _PLACES)
        found = thin_stream((t for part in every for t in part.tables(columns)), rows)
    else:
        found = _at_once(partial(_lines, columns=columns), _places(parts, rows))
    return [table for table in found if len(table)]


def head_sample(parts: Sequence[FilePart], columns: Sequence[str], *, rows: int) -> list[Any]:
    """Arrow tables of at most so many rows, the first of parts at even distances.

    Text that can be entered in the middle is drawn from: that is as cheap.
    """
    text = all(isinstance(part, CsvPart | JsonPart) for part in parts)
    if text and (not _packed(parts) or sum(part.size for part in parts) <= _SHORT):
        return systematic_sample(parts, columns, rows=rows)
    every = not text and sum(part.size for part in parts) <= rows
    some = parts if every else _evenly(parts, min(_PLACES, rows))
    each = rows if every else rows // max(len(some), 1)
    pieces = [(part, each, 1) for part in some]
    return [table for table in _at_once(partial(_first, columns=columns), pieces) if len(table)]


def thin_stream(tables: Iterable[Any], rows: int) -> list[Any]:
    """At most so many of the rows that go by, at even distances."""
    held: list[Any] = []
    step, start, kept = 1, 0, 0
    for table in tables:
        held.append(table.take(np.arange(-start % step, len(table), step)))
        start, kept = start + len(table), kept + len(held[-1])
        while kept >= 2 * rows:
            held, step = _every_other(held), 2 * step
            kept = sum(map(len, held))
    return [_joined(held).take(systematic_positions(kept, rows))] if kept else []


def systematic_positions(count: int, rows: int) -> Rows:
    """Places of so many of `count` rows, at even distances.

    >>> systematic_positions(10, 5)
    array([1, 3, 5, 7, 9])
    >>> systematic_positions(3, 5)
    array([0, 1, 2])
    """
    taken = min(count, rows)
    return ((2 * np.arange(taken, dtype=np.int64) + 1) * count) // max(2 * taken, 1)


def _first(piece: Piece, *, columns: Sequence[str]) -> list[Any]:
    """The first rows of a part."""
    part, rows, _ = piece
    found: list[Any] = []
    for table in part.tables(columns, most=rows):
        found.append(table.slice(0, rows))
        rows -= len(found[-1])
        if rows <= 0:
            break
    return found


# --- rows that are counted -----------------------------------------------------------------------


def _chosen(parts: Sequence[FilePart], rows: int, *, width: int) -> list[Piece]:
    """Parts and how many rows of each."""
    ends = np.cumsum([part.size for part in parts], dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    if total <= rows:
        return [(part, part.size, 1) for part in parts]
    looks = max(_CELLS * len(parts) // (total * max(width, 1)), _FEWEST)
    looks = min(looks, _PLACES)
    if looks >= len(parts):
        hits = np.searchsorted(ends, systematic_positions(total, rows), side="right")
    else:  # a part stands for its neighbours
        seen = np.searchsorted(ends, systematic_positions(total, looks), side="right")
        hits = seen[systematic_positions(looks * rows, rows) // rows]
    found, many = np.unique(hits, return_counts=True)
    return [(parts[j], int(n), 1) for j, n in zip(found, many, strict=True)]


def _counted(piece: Piece, *, columns: Sequence[str]) -> list[Any]:
    """Rows of one part, at even distances."""
    part, rows, _ = piece
    wanted = systematic_positions(part.size, rows)
    found, start = [], 0
    for table in part.tables(columns):
        lo, hi = np.searchsorted(wanted, [start, start + len(table)])
        found.append(table.take(wanted[lo:hi] - start))
        start += len(table)
    return found


# --- lines of a text ------------------------------------------------------------------------------


def _to_read_through(parts: Sequence[Any]) -> bool:
    """Whether a text is short, or cannot be entered in the middle."""
    return _packed(parts) or sum(part.size for part in parts) <= _SHORT


def _packed(parts: Sequence[Any]) -> bool:
    return any(part.span is None for part in parts)


def _places(parts: Sequence[FilePart], rows: int) -> list[Piece]:
    """Parts, how many rows of each, and at how many places."""
    ends = np.cumsum([part.size for part in parts], dtype=np.int64)
    hits = np.searchsorted(ends, systematic_positions(int(ends[-1]), _PLACES), side="right")
    found, many = np.unique(hits, return_counts=True)
    return [
        (parts[j], -(-rows * int(n) // _PLACES), int(n)) for j, n in zip(found, many, strict=True)
    ]


def _lines(piece: Piece, *, columns: Sequence[str]) -> list[Any]:
    """Some lines at each place; where places lie too near each other, or in a quoted field, all."""
    part, rows, places = piece
    assert isinstance(part, CsvPart | JsonPart)
    spans = _spans(part, -(-rows // places), places)
    try:
        if spans is not None:
            some = (t for span in spans for t in replace(part, span=span).tables(columns))
            return thin_stream(some, rows)
    except (DiscriminantError, SplitError):  # of lines that are none: the whole part can tell
        pass
    return thin_stream(part.tables(columns), rows)


def _spans(part: CsvPart | JsonPart, lines: int, places: int) -> list[tuple[int, int]] | None:
    """Bytes of so many lines at each place; None if that is nearly all."""
    assert part.span is not None
    first, end = part.span
    step = (end - first) / places
    found: list[tuple[int, int]] = []
    with open(part.identity.path, "rb") as file:
        for place in range(places):
            file.seek(first + int(step * place))
            file.readline(MAX_LINE)
            lo = file.tell()
            if not all(_even(file.readline(MAX_LINE), part) for _ in range(lines)):
                return None
            found.append((lo, min(file.tell(), end)))
            if file.tell() > first + step * (place + 1):
                return None
    return found


def _even(line: bytes, part: CsvPart | JsonPart) -> bool:
    """Whether no quoted field goes on in the next line."""
    if isinstance(part, JsonPart):
        return True
    dialect = part.plan.format.dialect
    assert dialect is not None
    return line.count(dialect.quote.encode()) % 2 == 0


# --- inside ---------------------------------------------------------------------------------------


def _at_once(read: Any, pieces: Sequence[Piece]) -> list[Any]:
    """What is read from each, on all cores, in their order."""
    threads = available_threads()
    with ThreadPoolExecutor(threads) as pool:
        found: Iterator[list[Any]] = ordered_map(pool, read, pieces, 2 * threads)
        return [table for some in found for table in some]


def _evenly(parts: Sequence[FilePart], most: int) -> list[FilePart]:
    return [parts[j] for j in systematic_positions(len(parts), most)]


def _every_other(held: Sequence[Any]) -> list[Any]:
    table = _joined(held)
    return [table.take(np.arange(0, len(table), 2))]


def _joined(tables: Sequence[Any]) -> Any:
    import pyarrow as pa

    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()
