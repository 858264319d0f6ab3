"""Sparse rows with sets of labels in files: XMC text and svmlight, read (`xmc_writing` writes).

XMC text, the format of the Extreme Classification Repository, counts from 0 and has a header:

    rows features labels                     3 1836 159
    label,label feature:value feature:value  12,47 0:0.5 17:1.25
    (no labels: a space comes first)          3:1

There is a kind of it in two files, one of features and one of labels, each with a header of its own
(rows, columns) and lines `column:value`; pass the second as `labels`.

svmlight has no header and counts features from 1 (some writers: from 0; what can be told by a file
alone is told by `_first_feature`). The label is any number, the class of the row; with `many` it is
a set of label numbers as above, of which +1 is 1. What follows # is skipped.

Files may be packed with gzip or xz. A fault is told with the line it stands in, counted from 1: a
header that is missing or tells other counts, numbers out of range or twice in a row, a value that
is not finite.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discriminant.errors import (
    FirstFeatureWarning,
    MoreFeaturesWarning,
    SparseFileError,
    tell,
)
from discriminant.table.sparse_lines import LARGEST, Bounds, Lines, lines_of
from discriminant.table.sparse_pieces import PIECE, Path, pieces_of

First = Literal["auto", 0, 1]


@dataclass(frozen=True, slots=True, eq=False)
class LabelledRows:
    """Some consecutive rows of a file: n rows, d features, L labels."""

    features: Any  # (n, d) CSR float32 or float64
    labels: Any  # (n, L) CSR of ones
    start: int = 0  # number of the first row in its file
    first: int = 0  # what its first feature is called there

    def __len__(self) -> int:
        return int(self.features.shape[0])


# --- reading --------------------------------------------------------------------------------------


def read_xmc(
    path: Path, *, labels: Path | None = None, dtype: npt.DTypeLike = np.float32
) -> LabelledRows:
    """All rows of a file of XMC text.

    Parameters
    ----------
    labels
        A second file, with the labels: of the kind in two files.
    dtype
        Of the values: float32 or float64.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "two.txt"
    >>> _ = path.write_text("2 3 4\\n1,3 0:0.5 2:1\\n 1:2\\n")
    >>> rows = read_xmc(path)
    >>> rows.features.toarray().tolist(), rows.labels.toarray().astype(int).tolist()
    ([[0.5, 0.0, 1.0], [0.0, 2.0, 0.0]], [[0, 1, 0, 1], [0, 0, 0, 0]])
    """
    if labels is not None:
        return _of_two(path, labels, dtype)
    return joined(xmc_blocks(path, dtype=dtype))


def xmc_blocks(
    path: Path, *, dtype: npt.DTypeLike = np.float32, size: int = PIECE
) -> Iterator[LabelledRows]:
    """The rows of a file of XMC text, some megabytes of text at a time; one block at least."""
    wanted = "'rows features labels'"
    for (_, d, L), lines, start in _headed(path, 3, wanted, size):
        at = _csr(lines.feature, lines.value.astype(dtype), lines.feature_ends, d)
        yield LabelledRows(at, _indicator(lines, L, dtype), start)


def read_matrix(path: Path, *, dtype: npt.DTypeLike = np.float32) -> Any:
    """(n, d) CSR of a file with the header 'rows columns' and lines `column:value`."""
    parts = [
        _csr(lines.feature, lines.value.astype(dtype), lines.feature_ends, d)
        for (_, d), lines, _ in _headed(path, 2, "'rows columns'", PIECE)
    ]
    return parts[0] if len(parts) == 1 else sparse.vstack(parts, format="csr")


def read_svmlight(
    path: Path,
    *,
    features: int | None = None,
    labels: int | None = None,
    many: bool = False,
    first: First = "auto",
    dtype: npt.DTypeLike = np.float64,
) -> tuple[Any, Any]:
    """Features (n, d) CSR, and the class of each row (n,), or with `many` an (n, L) CSR of ones.

    Parameters
    ----------
    features, labels
        d and L; None: as many as the largest number needs.
    many
        Rows have sets of labels, numbered from 0.
    first
        The number of the first feature; 'auto' is 0 if any row has a feature 0, and 1 otherwise.
        It is told if there are `features` and neither the first nor the last is in the file.
    """
    bounds = Bounds(str(path), labels, whole=many, comments=True)
    at, found, _ = _svmlight(path, bounds, features, first, dtype)
    if many:
        return at, _indicator(found, labels, dtype)
    return at, found.label


def read_svmlight_sets(path: Path, *, first: First = "auto") -> LabelledRows:
    """All rows of svmlight with sets of labels, and what their first feature is called."""
    bounds = Bounds(str(path), whole=True, comments=True)
    at, found, low = _svmlight(path, bounds, None, first, np.float32)
    return LabelledRows(at, _indicator(found, None, np.float32), first=low)


def svmlight_blocks(
    path: Path,
    *,
    features: int | None = None,
    labels: int | None = None,
    first: First = "auto",
    more: Literal["refuse", "drop"] = "refuse",
    dtype: npt.DTypeLike = np.float32,
    size: int = PIECE,
) -> Iterator[tuple[LabelledRows, int]]:
    """The rows of svmlight with sets of labels, some megabytes of text at a time.

    With each block, how many rows there are in all. The file is read twice: what the first feature
    is called, and how many labels there are, can be known at its end alone. Features beyond the
    last are refused, or left out, which is told once.
    """
    loose = Bounds(str(path), labels, comments=True)
    rows, low, high, last = 0, 1, 0, -1
    for found in _bodies(path, loose, size):
        low = min(low, int(found.feature.min(initial=1)))
        high = max(high, int(found.feature.max(initial=0)))
        last, rows = max(last, int(found.label.max(initial=-1))), rows + len(found)
    low = _first_feature(path, low, high, features) if first == "auto" else first
    d = high - low + 1 if features is None else features
    dropped = more == "drop" and high - low >= d
    if dropped:
        tell(MoreFeaturesWarning.of(str(path), high, low, d))
    L = last + 1 if labels is None else labels
    start = 0
    tight = replace(loose, features=None if dropped else d, first=low)
    for found in _bodies(path, tight, size):
        found = found.below(low + d) if dropped else found
        x = _csr(found.feature - low, found.value.astype(dtype), found.feature_ends, d)
        yield LabelledRows(x, _indicator(found, L, dtype), start, low), rows
        start += len(found)


def joined(blocks: Iterable[LabelledRows]) -> LabelledRows:
    """Blocks that follow each other as one."""
    parts = list(blocks)
    if len(parts) == 1:
        return parts[0]
    return LabelledRows(
        sparse.vstack([part.features for part in parts], format="csr"),
        sparse.vstack([part.labels for part in parts], format="csr"),
        parts[0].start,
        parts[0].first,
    )


# --- inside ---------------------------------------------------------------------------------------


def _headed(
    path: Path, many: int, wanted: str, size: int
) -> Iterator[tuple[tuple[int, ...], Lines, int]]:
    """The counts of the header with each block of lines, and the number of its first row."""
    pieces = pieces_of(path, size=size)
    top, _, first = next(pieces, b"").partition(b"\n")
    counts = _header(str(path), top, many, wanted)
    bounds = Bounds(str(path), counts[-1] if many == 3 else 0, counts[1])
    start = 0
    for text in _first_of(first, pieces):
        text = _without_tail(text, bounds, start, counts[0])
        if text or start == 0:
            found = lines_of(text, bounds, line=start + 2) if text else _NOTHING
            yield counts, found, start
            start += len(found)
    if start < counts[0]:
        raise SparseFileError.too_few(str(path), told=counts[0], found=start)


def _first_of(first: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from pieces


def _header(path: str, top: bytes, many: int, wanted: str) -> tuple[int, ...]:
    words = top.split()
    if not words and os.path.getsize(path) == 0:
        raise SparseFileError.without_header(path, wanted)
    if len(words) != many or not all(word.isdigit() for word in words):
        raise SparseFileError.of_header(path, top[:60].decode("utf-8", "replace"), wanted)
    counts = tuple(int(word) for word in words)
    if max(counts) > LARGEST:
        raise SparseFileError.of_size(path, max(counts), LARGEST)
    return counts


def _without_tail(text: bytes, bounds: Bounds, start: int, told: int) -> bytes:
    """The rows that the header tells of; only empty lines may follow them."""
    left = told - start
    if text.count(b"\n") <= left:
        return text
    rows = text.split(b"\n", left)
    if rows[-1].strip():
        blank = len(rows[-1]) - len(rows[-1].lstrip())
        line = start + 2 + left + rows[-1][:blank].count(b"\n")
        raise SparseFileError.too_many(bounds.path, line, told)
    return b"".join(row + b"\n" for row in rows[:-1])


def _bodies(path: Path, bounds: Bounds, size: int = PIECE) -> Iterator[Lines]:
    """Blocks of svmlight; lines that hold nothing are no rows."""
    line = 1
    for text in pieces_of(path, size=size):
        found = lines_of(text, bounds, line=line)
        if not bounds.whole:
            _one_each(found, bounds, line)
        yield found.some((np.diff(found.label_ends) > 0) | (np.diff(found.feature_ends) > 0))
        line += text.count(b"\n")


def _one_each(found: Lines, bounds: Bounds, line: int) -> None:
    labels, full = np.diff(found.label_ends), np.diff(found.feature_ends) > 0
    wrong = np.flatnonzero((labels > 1) | ((labels == 0) & full))
    if len(wrong):
        row = int(wrong[0])
        raise SparseFileError.one_label(bounds.path, line + row, int(labels[row]))


def _together(parts: Iterable[Lines]) -> Lines:
    found = list(parts) or [_NOTHING]
    return Lines(
        _stacked([part.label_ends for part in found]),
        np.concatenate([part.label for part in found]),
        _stacked([part.feature_ends for part in found]),
        np.concatenate([part.feature for part in found]),
        np.concatenate([part.value for part in found]),
    )


def _stacked(ends: list[Any]) -> Any:
    counts = np.concatenate([np.diff(one) for one in ends])
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _svmlight(
    path: Path, bounds: Bounds, features: int | None, first: First, dtype: npt.DTypeLike
) -> tuple[Any, Lines, int]:
    """(n, d) CSR, the lines that it is of, and what its first feature is called."""
    found = _together(_bodies(path, bounds))
    if first == "auto":
        low, high = found.feature.min(initial=1), found.feature.max(initial=0)
        first = _first_feature(path, int(low), int(high), features)
    _check_svmlight(path, found, bounds, first, features)
    feature = found.feature - first
    d = int(feature.max(initial=-1)) + 1 if features is None else features
    return _csr(feature, found.value.astype(dtype), found.feature_ends, d), found, first


def _first_feature(path: Path, low: int, high: int, features: int | None) -> Literal[0, 1]:
    """What the first of d features is called, if `low` and `high` are in the file.

    Feature 0 is there when counted from 0 alone, feature d when counted from 1 alone.
    """
    if low == 0:
        return 0
    if features is not None and 0 < high < features:
        tell(FirstFeatureWarning.of(str(path), features))
    return 1


def _check_svmlight(
    path: Path, found: Lines, bounds: Bounds, first: int, features: int | None
) -> None:
    """Once it is known where features start, go back for the line of one out of range."""
    last = first + features - 1 if features is not None else None
    low, high = found.feature.min(initial=first), found.feature.max(initial=first)
    if low >= first and (last is None or high <= last or not len(found.feature)):
        return
    strict = Bounds(bounds.path, bounds.labels, features, first, bounds.whole, comments=True)
    for _ in _bodies(path, strict):
        pass


def _of_two(path: Path, labels: Path, dtype: npt.DTypeLike) -> LabelledRows:
    features, sets = read_matrix(path, dtype=dtype), read_matrix(labels, dtype=dtype)
    if features.shape[0] != sets.shape[0]:
        raise SparseFileError.of_lengths(str(path), features.shape[0], str(labels), sets.shape[0])
    sets.eliminate_zeros()
    sets.data[:] = 1
    return LabelledRows(features, sets)


def _csr(column: Any, value: Any, ends: Any, many: int) -> Any:
    found = sparse.csr_matrix((value, column.astype(np.int32), ends), (len(ends) - 1, many))
    found.sort_indices()
    return found


def _indicator(lines: Lines, labels: int | None, dtype: npt.DTypeLike) -> Any:
    L = int(lines.label.max(initial=-1)) + 1 if labels is None else labels
    return _csr(lines.label, np.ones(len(lines.label), dtype=dtype), lines.label_ends, L)


_NOTHING = Lines(
    np.zeros(1, np.int64), np.zeros(0), np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0)
)
