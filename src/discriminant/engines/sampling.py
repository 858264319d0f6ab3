"""Samples of rows: evenly spaced rows of files, and rows of each class chosen by a hash.

Files are often sorted, so a systematic sample of n out of N rows is taken. It is deterministic:

    Parquet, Arrow           rows [N (i + 1/2) / n], i = 0 .. n - 1, from a limited number of parts:
                             parts are chosen at even distances, in proportion to their rows
    seekable text            a few lines at each of many positions, at even distances in bytes
    short, compressed text   every m-th row; m is doubled whenever 2 n rows have been stored

At most 2 n rows, and one batch per core, are in memory. `sample_part_heads` returns the first rows
of parts instead: this is faster and sufficient for planning the encoding.

For a sample of each class, the rows whose content has the smallest hashes are chosen. A sample that
is chosen by hashes does not depend on partitions or on the order of rows. Equal rows count as one
row with the sum of their weights. So a table in memory and the same table in partitions give the
same sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.engines.summation import available_threads, ordered_map
from discriminant.errors import DiscriminantError
from discriminant.moments.summary_base import Summable
from discriminant.table.blocks import Block, Codes, Floats, dense
from discriminant.table.files.csv_dialect import MAX_LINE
from discriminant.table.files.splits import CsvPart, FilePart, JsonPart, SplitError
from discriminant.table.hash_folds import row_hashes

_MAX_POSITIONS = 256  # largest number of positions in a text, and of parts, that are sampled
_MIN_PARTS = 16  # parts that are sampled, however many cells they have
_MAX_CELLS = 1 << 26  # most cells decoded for a sample, if _MIN_PARTS parts allow it
_SHORT = 1 << 23  # a text with at most this many bytes is read completely

Rows = npt.NDArray[np.int64]
PartSample = tuple[FilePart, int, int]  # a part, and the numbers of rows and of positions to sample


def systematic_sample(parts: Sequence[FilePart], columns: Sequence[str], *, rows: int) -> list[Any]:
    """Return at most `rows` evenly spaced rows, in order, as Arrow tables."""
    if not _is_text(parts):
        samples = _choose_parts(parts, rows, width=len(columns))
        tables = _read_all(partial(_systematic_rows, columns=columns), samples)
    elif not _is_seekable(parts) or _is_short(parts):
        chosen = _spread_parts(parts, _MAX_POSITIONS)
        tables = thin_stream((t for part in chosen for t in part.tables(columns)), rows)
    else:
        samples = [
            (part, -(-rows * positions // _MAX_POSITIONS), positions)
            for part, positions in _count(parts, _parts_hit(parts, _MAX_POSITIONS))
        ]
        tables = _read_all(partial(_lines, columns=columns), samples)
    return [table for table in tables if len(table)]


def sample_part_heads(parts: Sequence[FilePart], columns: Sequence[str], *, rows: int) -> list[Any]:
    """Return the first rows of evenly spaced parts, at most `rows` in total, as Arrow tables.

    From seekable text, evenly spaced rows are sampled instead, which is as fast.
    """
    text = _is_text(parts)
    if text and (_is_seekable(parts) or _is_short(parts)):
        return systematic_sample(parts, columns, rows=rows)
    if not text and sum(part.size for part in parts) <= rows:
        chosen, limit = parts, rows
    else:
        chosen = _spread_parts(parts, min(_MAX_POSITIONS, rows))
        limit = rows // max(len(chosen), 1)
    samples = [(part, limit, 1) for part in chosen]
    tables = _read_all(partial(_first_rows, columns=columns), samples)
    return [table for table in tables if len(table)]


def thin_stream(tables: Iterable[Any], rows: int) -> list[Any]:
    """Return at most `rows` evenly spaced rows of a stream of Arrow tables."""
    stored: list[Any] = []
    step, start, count = 1, 0, 0
    for table in tables:
        stored.append(table.take(np.arange(-start % step, len(table), step)))
        start, count = start + len(table), count + len(stored[-1])
        while count >= 2 * rows:
            joined = _concat_tables(stored)
            stored, step = [joined.take(np.arange(0, count, 2))], 2 * step
            count = len(stored[0])
    return [_concat_tables(stored).take(systematic_positions(count, rows))] if count else []


def systematic_positions(count: int, rows: int) -> Rows:
    """Return the positions of `rows` evenly spaced rows out of `count` rows.

    >>> systematic_positions(10, 5)
    array([1, 3, 5, 7, 9])
    >>> systematic_positions(3, 5)
    array([0, 1, 2])
    """
    size = min(count, rows)
    return ((2 * np.arange(size, dtype=np.int64) + 1) * count) // max(2 * size, 1)


def _first_rows(sample: PartSample, *, columns: Sequence[str]) -> list[Any]:
    part, rows, _ = sample
    tables: list[Any] = []
    for table in part.tables(columns, max_rows=rows):
        tables.append(table.slice(0, rows))
        rows -= len(tables[-1])
        if rows <= 0:
            break
    return tables


def _choose_parts(parts: Sequence[FilePart], rows: int, *, width: int) -> list[PartSample]:
    """Return the parts to sample, and the number of rows to sample from each."""
    total = sum(part.size for part in parts)
    if total <= rows:
        return [(part, part.size, 1) for part in parts]
    limit = max(_MAX_CELLS * len(parts) // (total * max(width, 1)), _MIN_PARTS)
    limit = min(limit, _MAX_POSITIONS)
    if limit >= len(parts):
        chosen = _parts_hit(parts, rows)
    else:  # each part chosen also represents the parts near it
        chosen = _parts_hit(parts, limit)[systematic_positions(limit * rows, rows) // rows]
    return [(part, count, 1) for part, count in _count(parts, chosen)]


def _parts_hit(parts: Sequence[FilePart], count: int) -> Rows:
    """Return the indices of the parts that contain `count` evenly spaced positions."""
    ends = np.cumsum([part.size for part in parts], dtype=np.int64)
    return np.searchsorted(ends, systematic_positions(int(ends[-1]), count), side="right")


def _count(parts: Sequence[FilePart], chosen: Rows) -> list[tuple[FilePart, int]]:
    """Return the chosen parts, and how often each was chosen."""
    indices, counts = np.unique(chosen, return_counts=True)
    return [(parts[j], int(n)) for j, n in zip(indices, counts, strict=True)]


def _systematic_rows(sample: PartSample, *, columns: Sequence[str]) -> list[Any]:
    part, rows, _ = sample
    positions = systematic_positions(part.size, rows)
    tables, start = [], 0
    for table in part.tables(columns):
        lo, hi = np.searchsorted(positions, [start, start + len(table)])
        tables.append(table.take(positions[lo:hi] - start))
        start += len(table)
    return tables


# --- text ----------------------------------------------------------------------------------------


def _is_text(parts: Sequence[FilePart]) -> bool:
    return all(isinstance(part, CsvPart | JsonPart) for part in parts)


def _is_seekable(parts: Sequence[Any]) -> bool:
    return all(part.span is not None for part in parts)


def _is_short(parts: Sequence[FilePart]) -> bool:
    return sum(part.size for part in parts) <= _SHORT


def _lines(sample: PartSample, *, columns: Sequence[str]) -> list[Any]:
    """Return some lines at each position of a part.

    If a position lies within a quoted field, or if the positions in the part are close together,
    all lines of the part are returned.
    """
    part, rows, positions = sample
    assert isinstance(part, CsvPart | JsonPart)
    spans = _spans(part, -(-rows // positions), positions)
    try:
        if spans is not None:
            tables = (t for span in spans for t in replace(part, span=span).tables(columns))
            return thin_stream(tables, rows)
    except (DiscriminantError, SplitError):  # may not be a line; the whole part is read
        pass
    return thin_stream(part.tables(columns), rows)


def _spans(part: CsvPart | JsonPart, lines: int, positions: int) -> list[tuple[int, int]] | None:
    """Return the byte ranges of `lines` lines at each position.

    If the ranges would cover nearly the whole part, return None.
    """
    assert part.span is not None
    first, end = part.span
    step = (end - first) / positions
    spans: list[tuple[int, int]] = []
    with open(part.identity.path, "rb") as file:
        for position in range(positions):
            file.seek(first + int(step * position))
            file.readline(MAX_LINE)
            lo = file.tell()
            if not all(_is_complete(file.readline(MAX_LINE), part) for _ in range(lines)):
                return None
            spans.append((lo, min(file.tell(), end)))
            if file.tell() > first + step * (position + 1):
                return None
    return spans


def _is_complete(line: bytes, part: CsvPart | JsonPart) -> bool:
    """Whether the text ends outside a quoted field, so that no field continues on the next line."""
    if isinstance(part, JsonPart):
        return True
    dialect = part.plan.format.dialect
    assert dialect is not None
    return line.count(dialect.quote.encode()) % 2 == 0


# --- reading -------------------------------------------------------------------------------------


def _read_all(read: Callable[[PartSample], list[Any]], samples: Sequence[PartSample]) -> list[Any]:
    """Return the tables of all samples in order, read on all cores."""
    threads = available_threads()
    with ThreadPoolExecutor(threads) as pool:
        results: Iterator[list[Any]] = ordered_map(pool, read, samples, 2 * threads)
        return [table for tables in results for table in tables]


def _spread_parts(parts: Sequence[FilePart], limit: int) -> list[FilePart]:
    return [parts[j] for j in systematic_positions(len(parts), limit)]


def _concat_tables(tables: Sequence[Any]) -> Any:
    import pyarrow as pa

    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


@dataclass(frozen=True, slots=True, eq=False)
class BottomKSample(Summable):
    """Bottom-k sample: of each class, at most `limit` rows, those with the smallest hashes."""

    limit: int
    hashes: npt.NDArray[np.uint64]  # (n,)
    features: Floats  # (n, d)
    codes: Codes  # (n,)
    weight: Floats  # (n,)

    @classmethod
    def of(
        cls,
        limit: int,
        hashes: npt.NDArray[np.uint64],
        features: Any,
        codes: Codes,
        weight: Floats,
    ) -> BottomKSample:
        """Return the sample of some rows. Equal rows are merged, with the sum of their weights."""
        order = np.lexsort((hashes, codes))
        new = np.ones(len(order), dtype=bool)
        new[1:] = (np.diff(codes[order]) != 0) | (hashes[order][1:] != hashes[order][:-1])
        first = order[new]
        totals: Floats = np.bincount(np.cumsum(new) - 1, weight[order]).astype(np.float64)
        rank = np.arange(len(first)) - np.searchsorted(codes[first], codes[first])
        chosen = rank < limit
        selected = first[chosen]
        return cls(limit, hashes[selected], features[selected], codes[selected], totals[chosen])

    def __add__(self, other: BottomKSample) -> BottomKSample:
        return BottomKSample.of(
            self.limit,
            np.concatenate([self.hashes, other.hashes]),
            np.concatenate([self.features, other.features]),
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.weight, other.weight]),
        )


@dataclass(frozen=True, slots=True)
class RowSampleReading:
    """Sample at most `limit` rows of each class."""

    limit: int
    width: int  # number of features
    classes: int
    seed: int = 0

    @property
    def summary_size(self) -> int:
        return self.limit * self.classes * self.width

    def read(self, block: Block) -> BottomKSample:
        weight = np.ones(len(block)) if block.weight is None else block.weight
        positive = np.flatnonzero(weight > 0)
        codes, weight = block.codes[positive].astype(np.intp), weight[positive]
        features = dense(block.features[positive]).astype(np.float64) + 0.0  # no negative zeros
        hashes = row_hashes(features, codes, seed=self.seed)
        return BottomKSample.of(self.limit, hashes, features, codes, weight)
