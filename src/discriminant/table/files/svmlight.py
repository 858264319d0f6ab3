"""Reading and writing of svmlight files and of XMC text: sparse rows with labels.

XMC text, the format of the Extreme Classification Repository, counts from 0 and has a header:

    rows features labels                     3 1836 159
    label,label feature:value feature:value  12,47 0:0.5 17:1.25
    (a row without labels starts with a space) 3:1

A variant has two files, one with features and one with labels. Each of the two files has a header
(rows, columns) and lines `column:value`. Pass the second file as `labels`.

svmlight has no header. The format counts features from 1, but some writers count from 0;
`_first_feature` detects which of the two, as far as the file allows. The label of a row, any
number, is its class. With `many`, a row has a set of label numbers, as in XMC text; +1 means label
1. Text after `#` is skipped.

Files may be compressed with gzip or xz, which is detected from their first bytes. Small files that
decompress to an enormous size are rejected as in `files.text_decoding`; for xz a larger ratio is
allowed, because xz compresses better. A missing header, wrong counts in a header, feature or label
numbers that are out of range or repeated in a row, and values that are not finite are errors. The
message states the line, counted from 1.

There are two parsers for the same lines. `scan_block` parses a whole block of bytes at once. A
number is a sequence of the characters `0123456789.eE+-`, and the adjacent characters determine its
meaning:

    after it `:`      a feature
    before it `:`     a value
    neither           a label: at the start of its line or after a comma

If the block contains anything else, `scan_block` returns None, and `parse_each_line` parses it line
by line. `parse_each_line` accepts unusual but valid lines (comments, a label after a space) and
names the line of an error. So `parse_each_line` defines the format, and `scan_block` is a fast path
for usual lines.

Before anything is written, rows that could not be read back are rejected: those with values that
are not finite, with label indicators that are negative or not integers, and in svmlight empty rows.
"""

from __future__ import annotations

import codecs
import gzip
import lzma
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any, BinaryIO, Literal, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discriminant.errors import (
    FileError,
    FirstFeatureWarning,
    LabelSetError,
    MoreFeaturesWarning,
    ShapeError,
    SparseFileError,
    warn,
)
from discriminant.table.blocks import Floats
from discriminant.table.files.atomic import atomic_write
from discriminant.table.files.formats import regular_file
from discriminant.table.files.text_decoding import MAX_BYTES, TextStream

Ints = npt.NDArray[np.int64]

_NUMBER, _SPACE, _COMMA, _COLON, _END, _OTHER = range(6)
_KINDS = np.full(256, _OTHER, dtype=np.uint8)
_KINDS[list(b"0123456789.eE+-")] = _NUMBER
_KINDS[list(b" \t\r")] = _SPACE
_KINDS[list(b",")] = _COMMA
_KINDS[list(b":")] = _COLON
_KINDS[list(b"\n")] = _END
_NOT_DIGIT = np.zeros(256, dtype=bool)
_NOT_DIGIT[list(b".eE+-")] = True
_BLANK = bytes.maketrans(b",:\n", b"   ")
MAX_NUMBER = 2**31 - 1  # largest label or feature number: they are stored as 32-bit integers


@dataclass(frozen=True, slots=True, eq=False)
class SparseLines:
    """Labels and features of n lines."""

    label_ends: Ints  # (n + 1,) labels of line i: label_ends[i] : label_ends[i + 1]
    label: Floats  # (.,)
    feature_ends: Ints  # (n + 1,)
    feature: Ints  # (.,)
    value: Floats  # (.,)

    def __len__(self) -> int:
        return len(self.label_ends) - 1

    def drop_empty(self) -> SparseLines:
        """Return the lines that have a label or a feature."""
        filled = (np.diff(self.label_ends) > 0) | (np.diff(self.feature_ends) > 0)
        ends = np.concatenate([[True], filled])
        return SparseLines(
            self.label_ends[ends], self.label, self.feature_ends[ends], self.feature, self.value
        )

    def below(self, feature: int) -> SparseLines:
        """Remove all features with a number of `feature` or higher."""
        below = self.feature < feature
        ends = np.concatenate([[0], np.cumsum(below)])[self.feature_ends]
        return replace(
            self, feature_ends=ends, feature=self.feature[below], value=self.value[below]
        )


@dataclass(frozen=True, slots=True)
class NumberRanges:
    """Ranges of valid label and feature numbers of a file."""

    path: str
    labels: int | None = None  # number of labels, or None if unknown
    features: int | None = None
    first: int = 0  # number of the first feature
    whole: bool = True  # whether labels are codes from 0; if False, any numbers
    comments: bool = False  # whether comments (#) and query numbers (qid:1) are skipped


def parse_lines(text: bytes, bounds: NumberRanges, *, line: int) -> SparseLines:
    """Parse a block of complete lines. `line` is the number of the first line, for messages."""
    lines = scan_block(text, whole=bounds.whole)
    if lines is not None and _is_valid(lines, bounds):
        return lines
    return parse_each_line(text, bounds, line=line)


# --- a block at once ------------------------------------------------------------------------------


def scan_block(text: bytes, *, whole: bool = True) -> SparseLines | None:
    """Parse a block of lines at once, or return None if a line is not in the simplest form.

    >>> lines = scan_block(b"3,4 0:1 7:0.5\\n 2:1\\n")
    >>> lines.label.tolist(), lines.label_ends.tolist(), lines.feature.tolist()
    ([3.0, 4.0], [0, 2, 2], [0, 7, 2])
    """
    characters = np.frombuffer(text, dtype=np.uint8)
    kind = _KINDS[characters]
    if kind.max(initial=0) == _OTHER:
        return None
    inside = np.zeros(len(kind) + 1, dtype=np.int8)
    inside[1:] = kind == _NUMBER
    step = np.diff(inside)
    start, end = np.flatnonzero(step == 1), np.flatnonzero(step == -1)
    before = np.where(start > 0, kind[start - 1], _END) if len(start) else kind[:0]
    after = kind[end]
    is_feature, is_value = after == _COLON, before == _COLON
    is_label = ~(is_feature | is_value)
    if not _in_order(kind, before, after, is_feature, is_value, is_label):
        return None
    decimal = np.searchsorted(start, np.flatnonzero(_NOT_DIGIT[characters]), side="right") - 1
    if not (is_value[decimal] if whole else ~is_feature[decimal]).all():
        return None
    number = _parse_numbers(text, len(start))
    if number is None:
        return None
    stop = np.flatnonzero(kind == _END)
    labels, features = np.flatnonzero(is_label), np.flatnonzero(is_feature)
    return SparseLines(
        _ends(start[labels], stop),
        number[labels],
        _ends(start[features], stop),
        number[features].astype(np.int64),
        number[features + 1],
    )


def _in_order(kind: Any, before: Any, after: Any, feature: Any, value: Any, label: Any) -> bool:
    """Whether every number and every separator has valid adjacent characters."""
    colons, commas = int((kind == _COLON).sum()), int((kind == _COMMA).sum())
    features = np.flatnonzero(feature)
    return bool(
        not (feature & value).any()
        and len(features) == colons == int(value.sum())
        and (not len(features) or value[np.minimum(features + 1, len(value) - 1)].all())
        and np.isin(before[feature], (_SPACE, _END)).all()
        and np.isin(after[value], (_SPACE, _END)).all()
        and np.isin(before[label], (_COMMA, _END)).all()
        and int((before[label] == _COMMA).sum()) == commas == int((after[label] == _COMMA).sum())
    )


def _parse_numbers(text: bytes, count: int) -> Floats | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            numbers = np.fromstring(text.translate(_BLANK), dtype=np.float64, sep=" ")
        except (DeprecationWarning, ValueError):
            return None
    return numbers if len(numbers) == count else None


def _ends(start: Ints, stop: Ints) -> Ints:
    return np.concatenate([[0], np.searchsorted(start, stop)]).astype(np.int64)


def _is_valid(lines: SparseLines, bounds: NumberRanges) -> bool:
    """Whether labels and features are in range and not repeated, and all values are finite."""
    last = bounds.first + (MAX_NUMBER if bounds.features is None else bounds.features) - 1
    if not np.isfinite(lines.value).all() or not np.isfinite(lines.label).all():
        return False
    if lines.feature.max(initial=bounds.first) > last:
        return False
    if lines.feature.min(initial=bounds.first) < bounds.first:
        return False
    if bounds.whole:
        most = MAX_NUMBER if bounds.labels is None else bounds.labels
        if lines.label.max(initial=0) >= max(most, 1) or (most == 0 and len(lines.label)):
            return False
    return not (
        _has_duplicates(lines.feature, lines.feature_ends)
        or _has_duplicates(lines.label, lines.label_ends)
    )


def _has_duplicates(number: Any, ends: Ints) -> bool:
    """Whether a row contains a number twice. The test is fast if rows are in increasing order."""
    first = np.zeros(len(number) + 1, dtype=bool)
    first[ends] = True
    if len(number) < 2 or (first[1:-1] | (np.diff(number) > 0)).all():
        return False
    row = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    order = np.lexsort((number, row))
    return bool(((np.diff(number[order]) == 0) & (np.diff(row[order]) == 0)).any())


# --- line by line ---------------------------------------------------------------------------------


def parse_each_line(text: bytes, bounds: NumberRanges, *, line: int) -> SparseLines:
    """Parse lines one by one. Raise the error for the first invalid line."""
    label, feature, value, label_ends, feature_ends = [], [], [], [0], [0]
    for position, row in enumerate(text.removesuffix(b"\n").split(b"\n")):
        parser = _LineParser(bounds, line + position)
        labels, pairs = parser.parse(row.decode("utf-8", errors="replace"))
        label += labels
        feature += [pair[0] for pair in pairs]
        value += [pair[1] for pair in pairs]
        label_ends.append(len(label))
        feature_ends.append(len(feature))
    return SparseLines(
        np.array(label_ends),
        np.array(label, dtype=np.float64),
        np.array(feature_ends),
        np.array(feature, dtype=np.int64),
        np.array(value, dtype=np.float64),
    )


@dataclass(frozen=True, slots=True)
class _LineParser:
    """Parser of one line, token by token."""

    bounds: NumberRanges
    line: int

    def parse(self, row: str) -> tuple[list[float], list[tuple[int, float]]]:
        """Return the labels of a line, and its pairs (feature, value)."""
        tokens, labels = self._tokens(row), list[float]()
        if tokens and ":" not in tokens[0]:
            labels = [self._label(text) for text in tokens.pop(0).split(",")]
            self._check_distinct("label", labels)
        pairs = [self._pair(text) for text in tokens]
        self._check_distinct("feature", [feature for feature, _ in pairs])
        return labels, pairs

    def _tokens(self, row: str) -> list[str]:
        if not self.bounds.comments:
            return row.split()
        tokens = row.partition("#")[0].split()
        return [text for text in tokens if not text.startswith("qid:")]

    def _label(self, text: str) -> float:
        if self.bounds.whole:
            if text.startswith("-") and text[1:].isdigit():
                raise SparseFileError.negative(self.bounds.path, self.line, text)
            plus = self.bounds.comments and text.startswith("+")  # +1 in svmlight means 1
            label = self._integer(text, "the number of a label, counted from 0,", skip=int(plus))
            self._check_range("label", label, first=0, count=self.bounds.labels)
            return label
        number = _float(text)
        if number is None or not np.isfinite(number):
            raise self._error(text, "a label, a finite number,")
        return number

    def _pair(self, text: str) -> tuple[int, float]:
        left, colon, right = text.partition(":")
        if not colon:
            raise self._error(text, "feature:value")
        feature = self._integer(left, "the number of a feature")
        first, count = self.bounds.first, self.bounds.features
        self._check_range("feature", feature, first=first, count=count)
        value = _float(right)
        if value is None:
            raise self._error(text, "feature:value")
        if not np.isfinite(value):
            raise SparseFileError.not_finite(self.bounds.path, self.line, feature, right)
        return feature, value

    def _integer(self, text: str, expected: str, *, skip: int = 0) -> int:
        digits = text[skip:]
        if not (digits.isascii() and digits.isdigit() and int(digits) <= MAX_NUMBER):
            raise self._error(text, expected)
        return int(digits)

    def _check_range(self, kind: str, number: int, *, first: int, count: int | None) -> None:
        if number < first or (count is not None and number >= first + count):
            path, most = self.bounds.path, MAX_NUMBER if count is None else count
            raise SparseFileError.of_range(path, self.line, kind, number, first=first, many=most)

    def _check_distinct(self, kind: str, numbers: list[Any]) -> None:
        if len(set(numbers)) < len(numbers):
            repeated = next(number for j, number in enumerate(numbers) if number in numbers[:j])
            raise SparseFileError.repeated(self.bounds.path, self.line, kind, int(repeated))

    def _error(self, text: str, expected: str) -> SparseFileError:
        return SparseFileError.of_token(self.bounds.path, self.line, text, expected)


def _float(text: str) -> float | None:
    """Convert a text to a number, or return None if it is not a number.

    1_000 and digits of other alphabets are not numbers here.
    """
    try:
        return float(text) if text.isascii() and "_" not in text else None
    except ValueError:
        return None


Path = str | os.PathLike[str]

PIECE = 1 << 22  # bytes of text parsed at once
MAX_ROW = 1 << 28  # longest line in bytes: some ten million features
_MAX_RATIO = 1000  # largest ratio of decompressed to compressed bytes for xz
_TRUSTED = 1 << 24  # decompressed bytes up to which any ratio is accepted


def line_blocks(path: Path, *, size: int = PIECE) -> Iterator[bytes]:
    """Yield blocks of complete lines. If the last line has no line end, one is appended.

    Parameters
    ----------
    path : path
        A text file, plain or compressed with gzip or xz. An empty file has no blocks.
    size : int, default=PIECE
        Approximate number of bytes in a block.

    Notes
    -----
    A byte order mark at the beginning of the file is skipped.
    """
    name, rest, lines, mark = regular_file(path), b"", 1, codecs.BOM_UTF8
    if not os.path.getsize(name):  # includes /proc files, whose content may never end
        return
    for piece in _decompressed(name, size):
        piece, mark = piece.removeprefix(mark), b""
        head, end, tail = piece.rpartition(b"\n")
        if not end:
            rest += tail
            if len(rest) > MAX_ROW:
                raise FileError.long_line(name, lines, MAX_ROW)
            continue
        lines += piece.count(b"\n")
        yield rest + head + end
        rest = tail
    if rest:
        yield rest + b"\n"


@contextmanager
def open_for_writing(path: Path) -> Iterator[BinaryIO]:
    """Open a file for atomic writing, compressed if its name ends with .gz or .xz."""
    name = os.fspath(path)
    with atomic_write(name) as file:
        if name.endswith(".gz"):
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as gz:
                yield cast("BinaryIO", gz)
        elif name.endswith(".xz"):
            with lzma.LZMAFile(file, "wb") as xz:
                yield cast("BinaryIO", xz)
        else:
            yield file


def _decompressed(name: str, size: int) -> Iterator[bytes]:
    try:
        with open(name, "rb") as file:
            start = file.read(6)
    except OSError as fault:
        raise FileError.not_allowed(name, fault.strerror or str(fault)) from None
    if start == b"\xfd7zXZ\0":
        yield from _decompressed_xz(name, size)
        return
    with TextStream(name, gzip=start[:2] == b"\x1f\x8b", encoding=None) as text:
        while piece := text.read(size):
            yield piece


def _decompressed_xz(name: str, size: int) -> Iterator[bytes]:
    read = 0
    with open(name, "rb") as file, lzma.LZMAFile(file) as text:
        while True:
            try:
                piece = bytes(text.read(size))
            except EOFError:
                raise FileError.cut_off(name, "its xz stream has no end") from None
            except lzma.LZMAError as fault:
                where = f"xz after {read} bytes of text"
                raise FileError.damaged(name, where, str(fault)) from None
            if not piece:
                return
            read += len(piece)
            if read > MAX_BYTES:
                raise FileError.too_large(name, MAX_BYTES)
            if read > _TRUSTED and read > _MAX_RATIO * file.tell():
                raise FileError.bomb(name, file.tell(), read, _MAX_RATIO)
            yield piece


FirstFeature = Literal["auto", 0, 1]


@dataclass(frozen=True, slots=True, eq=False)
class LabelledRows:
    """Consecutive rows of a file: n rows, d features, L labels."""

    features: Any  # (n, d) CSR float32 or float64
    labels: Any  # (n, L) CSR of ones
    start: int = 0  # number of the first row in the file
    first: int = 0  # number of the first feature in the file

    def __len__(self) -> int:
        return int(self.features.shape[0])


# --- reading --------------------------------------------------------------------------------------


def read_xmc(
    path: Path, *, labels: Path | None = None, dtype: npt.DTypeLike = np.float32
) -> LabelledRows:
    """Read all rows of a file of XMC text.

    Parameters
    ----------
    path : path
        The file, or the file of features of the variant in two files.
    labels : path, optional
        The file of labels of the variant in two files.
    dtype : dtype, default=float32
        Type of the values: float32 or float64.

    Returns
    -------
    LabelledRows
        Features and labels as CSR matrices.

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
        return _read_two_files(path, labels, dtype)
    return concatenate_rows(xmc_blocks(path, dtype=dtype))


def xmc_blocks(
    path: Path, *, dtype: npt.DTypeLike = np.float32, size: int = PIECE
) -> Iterator[LabelledRows]:
    """Yield the rows of XMC text in blocks of some megabytes, at least one block."""
    for (_, d, L), lines, start in _blocks_with_header(path, 3, "'rows features labels'", size):
        x = _csr(lines.feature, lines.value.astype(dtype), lines.feature_ends, d)
        yield LabelledRows(x, _indicator(lines, L, dtype), start)


def read_matrix(path: Path, *, dtype: npt.DTypeLike = np.float32) -> Any:
    """Read a file with the header 'rows columns' and lines `column:value` as a CSR matrix."""
    parts = [
        _csr(lines.feature, lines.value.astype(dtype), lines.feature_ends, d)
        for (_, d), lines, _ in _blocks_with_header(path, 2, "'rows columns'", PIECE)
    ]
    return parts[0] if len(parts) == 1 else sparse.vstack(parts, format="csr")


def read_svmlight(
    path: Path,
    *,
    features: int | None = None,
    labels: int | None = None,
    many: bool = False,
    first: FirstFeature = "auto",
    dtype: npt.DTypeLike = np.float64,
) -> tuple[Any, Any]:
    """Read all rows of an svmlight file.

    Parameters
    ----------
    path : path
        The file, plain or compressed.
    features, labels : int, optional
        Number of features d and number of labels L. By default, the largest feature number and the
        largest label number in the file determine d and L.
    many : bool, default=False
        Whether rows have sets of labels, numbered from 0.
    first : {'auto', 0, 1}, default='auto'
        Number of the first feature. 'auto' means 0 if any row has a feature 0, and 1 otherwise. A
        warning is raised if `features` is given and the file has neither feature 0 nor feature d,
        so that the file does not show whether features are counted from 0 or from 1.
    dtype : dtype, default=float64
        Type of the values.

    Returns
    -------
    x : CSR matrix of shape (n, d)
        Features.
    y : array of shape (n,) or CSR matrix of shape (n, L)
        The class of each row, or with `many` the indicators of its labels.
    """
    bounds = NumberRanges(str(path), labels, whole=many, comments=True)
    x, lines, _ = _read_svmlight(path, bounds, features, first, dtype)
    return x, _indicator(lines, labels, dtype) if many else lines.label


def read_svmlight_sets(path: Path, *, first: FirstFeature = "auto") -> LabelledRows:
    """Read all rows of an svmlight file with sets of labels."""
    bounds = NumberRanges(str(path), whole=True, comments=True)
    x, lines, low = _read_svmlight(path, bounds, None, first, np.float32)
    return LabelledRows(x, _indicator(lines, None, np.float32), first=low)


def svmlight_blocks(
    path: Path,
    *,
    features: int | None = None,
    labels: int | None = None,
    first: FirstFeature = "auto",
    more: Literal["refuse", "drop"] = "refuse",
    dtype: npt.DTypeLike = np.float32,
    size: int = PIECE,
) -> Iterator[tuple[LabelledRows, int]]:
    """Yield the rows of an svmlight file with sets of labels, in blocks of some megabytes.

    Each block comes with the total number of rows. The file is read twice, because the number of
    its first feature and the number of labels are known only at its end. Features with a number
    above the last valid one are either an error, or dropped with a single warning.
    """
    loose = NumberRanges(str(path), labels, comments=True)
    rows, low, high, last = 0, 1, 0, -1
    for lines in _svmlight_lines(path, loose, size):
        low = min(low, int(lines.feature.min(initial=1)))
        high = max(high, int(lines.feature.max(initial=0)))
        last, rows = max(last, int(lines.label.max(initial=-1))), rows + len(lines)
    low = _first_feature(path, low, high, features) if first == "auto" else first
    d = high - low + 1 if features is None else features
    dropped = more == "drop" and high - low >= d
    if dropped:
        warn(MoreFeaturesWarning.of(str(path), high, low, d))
    L = last + 1 if labels is None else labels
    start = 0
    tight = replace(loose, features=None if dropped else d, first=low)
    for lines in _svmlight_lines(path, tight, size):
        lines = lines.below(low + d) if dropped else lines
        x = _csr(lines.feature - low, lines.value.astype(dtype), lines.feature_ends, d)
        yield LabelledRows(x, _indicator(lines, L, dtype), start, low), rows
        start += len(lines)


def concatenate_rows(blocks: Iterable[LabelledRows]) -> LabelledRows:
    """Concatenate consecutive blocks of rows to one block."""
    parts = list(blocks)
    if len(parts) == 1:
        return parts[0]
    return LabelledRows(
        sparse.vstack([part.features for part in parts], format="csr"),
        sparse.vstack([part.labels for part in parts], format="csr"),
        parts[0].start,
        parts[0].first,
    )


def _blocks_with_header(
    path: Path, columns: int, expected: str, size: int
) -> Iterator[tuple[tuple[int, ...], SparseLines, int]]:
    """Yield the counts in the header, a block of lines, and the number of the block's first row."""
    pieces = line_blocks(path, size=size)
    top, _, first = next(pieces, b"").partition(b"\n")
    counts = _header(str(path), top, columns, expected)
    bounds = NumberRanges(str(path), counts[-1] if columns == 3 else 0, counts[1])
    start = 0
    for piece in chain([first], pieces):
        text = _check_end(piece, bounds, start, counts[0])
        if text or start == 0:
            lines = parse_lines(text, bounds, line=start + 2) if text else _NO_LINES
            yield counts, lines, start
            start += len(lines)
    if start < counts[0]:
        raise SparseFileError.too_few(str(path), stated=counts[0], rows=start)


def _header(path: str, top: bytes, columns: int, expected: str) -> tuple[int, ...]:
    words = top.split()
    if not words and os.path.getsize(path) == 0:
        raise SparseFileError.without_header(path, expected)
    if len(words) != columns or not all(word.isdigit() for word in words):
        raise SparseFileError.of_header(path, top[:60].decode("utf-8", "replace"), expected)
    counts = tuple(int(word) for word in words)
    if max(counts) > MAX_NUMBER:
        raise SparseFileError.of_size(path, max(counts), MAX_NUMBER)
    return counts


def _check_end(text: bytes, bounds: NumberRanges, start: int, stated: int) -> bytes:
    """Return the text up to the end of the last row, given the number of rows in the header.

    Only empty lines may follow.
    """
    left = stated - start
    if text.count(b"\n") <= left:
        return text
    rows = text.split(b"\n", left)
    if rows[-1].strip():
        blank = len(rows[-1]) - len(rows[-1].lstrip())
        line = start + 2 + left + rows[-1][:blank].count(b"\n")
        raise SparseFileError.too_many(bounds.path, line, stated)
    return b"".join(row + b"\n" for row in rows[:-1])


def _svmlight_lines(path: Path, bounds: NumberRanges, size: int = PIECE) -> Iterator[SparseLines]:
    """Yield an svmlight file in blocks of parsed lines. Empty lines are skipped."""
    line = 1
    for text in line_blocks(path, size=size):
        lines = parse_lines(text, bounds, line=line)
        if not bounds.whole:
            _check_one_label(lines, bounds, line)
        yield lines.drop_empty()
        line += text.count(b"\n")


def _check_one_label(lines: SparseLines, bounds: NumberRanges, line: int) -> None:
    labels, filled = np.diff(lines.label_ends), np.diff(lines.feature_ends) > 0
    for row in np.flatnonzero((labels > 1) | ((labels == 0) & filled))[:1].tolist():
        raise SparseFileError.one_label(bounds.path, line + row, int(labels[row]))


def _concatenate_lines(blocks: Iterable[SparseLines]) -> SparseLines:
    parts = list(blocks) or [_NO_LINES]
    return SparseLines(
        _concatenate_ends([part.label_ends for part in parts]),
        np.concatenate([part.label for part in parts]),
        _concatenate_ends([part.feature_ends for part in parts]),
        np.concatenate([part.feature for part in parts]),
        np.concatenate([part.value for part in parts]),
    )


def _concatenate_ends(ends: list[Any]) -> Any:
    counts = np.concatenate([np.diff(each) for each in ends])
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _read_svmlight(
    path: Path,
    bounds: NumberRanges,
    features: int | None,
    first: FirstFeature,
    dtype: npt.DTypeLike,
) -> tuple[Any, SparseLines, int]:
    """Return the features as CSR (n, d), the parsed lines, and the number of the first feature."""
    lines = _concatenate_lines(_svmlight_lines(path, bounds))
    if first == "auto":
        low, high = lines.feature.min(initial=1), lines.feature.max(initial=0)
        first = _first_feature(path, int(low), int(high), features)
    _check_features(path, lines, bounds, first, features)
    feature = lines.feature - first
    d = int(feature.max(initial=-1)) + 1 if features is None else features
    return _csr(feature, lines.value.astype(dtype), lines.feature_ends, d), lines, first


def _first_feature(path: Path, low: int, high: int, features: int | None) -> Literal[0, 1]:
    """Return the number of the first of d features: 0 or 1.

    The feature numbers in the file range from `low` to `high`.

    If feature 0 occurs, features are counted from 0; if feature d occurs, they are counted from 1.
    """
    if low == 0:
        return 0
    if features is not None and 0 < high < features:
        warn(FirstFeatureWarning.of(str(path), features))
    return 1


def _check_features(
    path: Path, lines: SparseLines, bounds: NumberRanges, first: int, features: int | None
) -> None:
    """Raise an error if a feature is out of range; the file is read again to locate it."""
    last = first + features - 1 if features is not None else None
    low, high = lines.feature.min(initial=first), lines.feature.max(initial=first)
    if low >= first and (last is None or high <= last or not len(lines.feature)):
        return
    strict = NumberRanges(bounds.path, bounds.labels, features, first, bounds.whole, comments=True)
    for _ in _svmlight_lines(path, strict):
        pass


def _read_two_files(path: Path, labels: Path, dtype: npt.DTypeLike) -> LabelledRows:
    features, sets = read_matrix(path, dtype=dtype), read_matrix(labels, dtype=dtype)
    if features.shape[0] != sets.shape[0]:
        raise SparseFileError.of_lengths(str(path), features.shape[0], str(labels), sets.shape[0])
    sets.eliminate_zeros()
    sets.data[:] = 1
    return LabelledRows(features, sets)


def _csr(column: Any, value: Any, ends: Any, width: int) -> Any:
    matrix = sparse.csr_matrix((value, column.astype(np.int32), ends), (len(ends) - 1, width))
    matrix.sort_indices()
    return matrix


def _indicator(lines: SparseLines, labels: int | None, dtype: npt.DTypeLike) -> Any:
    L = int(lines.label.max(initial=-1)) + 1 if labels is None else labels
    return _csr(lines.label, np.ones(len(lines.label), dtype=dtype), lines.label_ends, L)


_NO_LINES = SparseLines(
    np.zeros(1, np.int64), np.zeros(0), np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0)
)


# --- writing --------------------------------------------------------------------------------------


_ROWS = 10_000  # rows formatted at a time


def write_xmc(path: Path, features: Any, labels: Any) -> None:
    """Write rows as XMC text, compressed if the name ends with .gz or .xz.

    Parameters
    ----------
    path : path
        File to write. An existing file is replaced.
    features : matrix of shape (n, d)
        Finite values.
    labels : matrix of shape (n, L)
        Indicators of labels: positive integers for the labels of a row.
    """
    x, y = _check_rows(path, features, labels)
    with open_for_writing(path) as file:
        file.write(f"{x.shape[0]} {x.shape[1]} {y.shape[1]}\n".encode())
        for lo in range(0, x.shape[0], _ROWS):
            part = slice(lo, lo + _ROWS)
            file.write("".join(_format_rows(x[part], _format_sets(y[part]), first=0)).encode())


def write_svmlight(path: Path, features: Any, labels: Any, *, first: Literal[0, 1] = 1) -> None:
    """Write rows as svmlight, compressed if the name ends with .gz or .xz.

    Parameters
    ----------
    path : path
        File to write. An existing file is replaced.
    features : matrix of shape (n, d)
        Finite values.
    labels : array of shape (n,) or matrix of shape (n, L)
        Class of each row as a number, or indicators of its labels.
    first : {0, 1}, default=1
        Number of the first feature.
    """
    if sparse.issparse(labels) or np.ndim(labels) == 2:
        x, y = _check_rows(path, features, labels)
        empty = np.flatnonzero((np.diff(x.indptr) == 0) & (np.diff(y.indptr) == 0))
        if len(empty):  # svmlight cannot represent a row without labels and features
            raise SparseFileError.empty_row(str(path), int(empty[0]), len(empty))
    else:
        x, y = _finite_csr(path, features), np.asarray(labels, dtype=np.float64)
        if x.shape[0] != len(y):
            raise ShapeError.of_lengths("labels", len(y), x.shape[0])
    with open_for_writing(path) as file:
        for lo in range(0, x.shape[0], _ROWS):
            part = slice(lo, lo + _ROWS)
            classes = y.ndim == 1
            texts = (
                [_format_number(c) for c in y[part].tolist()] if classes else _format_sets(y[part])
            )
            file.write("".join(_format_rows(x[part], texts, first=first)).encode())


def _check_rows(path: Path, features: Any, labels: Any) -> tuple[Any, Any]:
    """Return features and labels as CSR matrices.

    Raises an error if the rows could not be read back from the written file.
    """
    if not sparse.issparse(labels) and np.asarray(labels).dtype.kind not in "biuf":
        raise LabelSetError.of_names()
    x, y = _finite_csr(path, features), _sorted_csr(labels)
    if x.shape[0] != y.shape[0]:
        raise ShapeError.of_lengths("labels", y.shape[0], x.shape[0])
    y.eliminate_zeros()
    for entry in np.flatnonzero(~((y.data >= 1) & (y.data % 1 == 0))):
        raise LabelSetError.of_entry(_row_of(y, entry), int(y.indices[entry]), y.data[entry])
    return x, y


def _finite_csr(path: Path, values: Any) -> Any:
    x = _sorted_csr(values)
    for entry in np.flatnonzero(~np.isfinite(x.data)):
        row, column = _row_of(x, entry), int(x.indices[entry])
        raise SparseFileError.unwritable(str(path), row, column, x.data[entry])
    return x


def _row_of(matrix: Any, entry: Any) -> int:
    return int(np.searchsorted(matrix.indptr, entry, side="right")) - 1


def _sorted_csr(values: Any) -> Any:
    matrix = sparse.csr_matrix(values, copy=True)
    matrix.sum_duplicates()
    return matrix


def _format_sets(y: Any) -> list[str]:
    """Return the labels of each row as text, separated by commas."""
    labels = list(map(str, y.indices.tolist()))
    return [",".join(labels[lo:hi]) for lo, hi in pairwise(y.indptr.tolist())]


def _format_number(number: float) -> str:
    return str(int(number)) if number.is_integer() else repr(number)


def _format_rows(x: Any, labels: list[str], *, first: int) -> Iterator[str]:
    """Yield rows as lines of text.

    Values are written with the fewest digits from which the same number is read back.
    """
    columns, values = x.indices.tolist(), x.data.astype(str).tolist()
    entries = [f"{column + first}:{value}" for column, value in zip(columns, values, strict=True)]
    for label, (lo, hi) in zip(labels, pairwise(x.indptr.tolist()), strict=True):
        yield f"{label} {' '.join(entries[lo:hi])}\n" if hi > lo else f"{label}\n"
