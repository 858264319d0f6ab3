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

Lines of sparse rows, `label,label feature:value feature:value`, as arrays.

Two readers of the same lines. `scanned` looks at a whole block of bytes at once: a number is a run
of number signs; what stands before and after it tells what it is,

    after it `:`      a feature
    before it `:`     a value
    neither           a label: at the start of its line or after a comma

and anything out of that order makes it give up. `walked` then goes line by line, takes what is odd
and right (comments, a label after a space), and names the line of what is wrong. So the second is
the meaning and the first its speed.

Whole lines of a text file, plain or packed with gzip or xz, some megabytes at a time.

What a file is packed with is found from its first bytes; the guards against a few bytes that unpack
to a disk full are those of `table.stream`, for xz with a larger ratio: it packs better.

Sparse rows with sets of labels, written as XMC text and svmlight: what `xmc` reads.

What no reader takes is refused before anything is written: values that are not finite, labels that
are neither there nor not, a row of nothing in svmlight.
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
from itertools import pairwise
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
MAX_NUMBER = 2**31 - 1  # of a label or feature: they are kept as 32-bit numbers


@dataclass(frozen=True, slots=True, eq=False)
class SparseLines:
    """Labels and features of n lines, as they stand."""

    label_ends: Ints  # (n + 1,) labels of line i: label_ends[i] : label_ends[i + 1]
    label: Floats  # (.,)
    feature_ends: Ints  # (n + 1,)
    feature: Ints  # (.,)
    value: Floats  # (.,)

    def __len__(self) -> int:
        return len(self.label_ends) - 1

    def select(self, kept: npt.NDArray[np.bool_]) -> SparseLines:
        """Without lines that hold nothing."""
        ends = np.concatenate([[True], kept])
        return SparseLines(
            self.label_ends[ends], self.label, self.feature_ends[ends], self.feature, self.value
        )

    def below(self, feature: int) -> SparseLines:
        """Without the entries of features from this one on."""
        kept = self.feature < feature
        ends = np.concatenate([[0], np.cumsum(kept)])[self.feature_ends]
        return replace(self, feature_ends=ends, feature=self.feature[kept], value=self.value[kept])


@dataclass(frozen=True, slots=True)
class Bounds:
    """What labels and features may be."""

    path: str
    labels: int | None = None  # None: not known beforehand
    features: int | None = None
    first: int = 0  # the number of the first feature
    whole: bool = True  # labels are codes from 0; otherwise any numbers, as classes of svmlight
    comments: bool = False  # what follows # is none of the row's; qid:1 is skipped


def parse_lines(text: bytes, bounds: Bounds, *, line: int) -> SparseLines:
    """Lines of a block that ends with a line end; `line` is the number of its first."""
    found = scan_block(text, whole=bounds.whole)
    if found is not None and not _faulty(found, bounds):
        return found
    return parse_each_line(text, bounds, line=line)


# --- a block at once ------------------------------------------------------------------------------


def scan_block(text: bytes, *, whole: bool = True) -> SparseLines | None:
    """The lines, or None if they are not of the plainest kind.

    >>> found = scan_block(b"3,4 0:1 7:0.5\\n 2:1\\n")
    >>> found.label.tolist(), found.label_ends.tolist(), found.feature.tolist()
    ([3.0, 4.0], [0, 2, 2], [0, 7, 2])
    """
    sign = np.frombuffer(text, dtype=np.uint8)
    kind = _KINDS[sign]
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
    odd = np.searchsorted(start, np.flatnonzero(_NOT_DIGIT[sign]), side="right") - 1
    if not (is_value[odd] if whole else ~is_feature[odd]).all():
        return None
    number = _numbers(text, len(start))
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
    """Whether every sign has the neighbours that it should."""
    colons, commas = int((kind == _COLON).sum()), int((kind == _COMMA).sum())
    at = np.flatnonzero(feature)
    return bool(
        not (feature & value).any()
        and len(at) == colons == int(value.sum())
        and (not len(at) or value[np.minimum(at + 1, len(value) - 1)].all())
        and np.isin(before[feature], (_SPACE, _END)).all()
        and np.isin(after[value], (_SPACE, _END)).all()
        and np.isin(before[label], (_COMMA, _END)).all()
        and int((before[label] == _COMMA).sum()) == commas == int((after[label] == _COMMA).sum())
    )


def _numbers(text: bytes, many: int) -> Floats | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = np.fromstring(text.translate(_BLANK), dtype=np.float64, sep=" ")
        except (DeprecationWarning, ValueError):
            return None
    return found if len(found) == many else None


def _ends(start: Ints, stop: Ints) -> Ints:
    return np.concatenate([[0], np.searchsorted(start, stop)]).astype(np.int64)


def _faulty(found: SparseLines, bounds: Bounds) -> bool:
    """Whether a label or feature is out of range or stands twice, or a value is not finite."""
    last = bounds.first + (MAX_NUMBER if bounds.features is None else bounds.features) - 1
    out = not np.isfinite(found.value).all() or not np.isfinite(found.label).all()
    out = out or found.feature.max(initial=bounds.first) > last
    out = out or found.feature.min(initial=bounds.first) < bounds.first
    if bounds.whole:
        most = MAX_NUMBER if bounds.labels is None else bounds.labels
        out = out or found.label.max(initial=0) >= max(most, 1)
        out = out or (most == 0 and len(found.label) > 0)
    return bool(
        out
        or _any_twice(found.feature, found.feature_ends)
        or _any_twice(found.label, found.label_ends)
    )


def _any_twice(number: Any, ends: Ints) -> bool:
    """Whether a row has a number twice; rows that rise have none."""
    first = np.zeros(len(number) + 1, dtype=bool)
    first[ends] = True
    if len(number) < 2 or (first[1:-1] | (np.diff(number) > 0)).all():
        return False
    row = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    order = np.lexsort((number, row))
    return bool(((np.diff(number[order]) == 0) & (np.diff(row[order]) == 0)).any())


# --- line by line ---------------------------------------------------------------------------------


def parse_each_line(text: bytes, bounds: Bounds, *, line: int) -> SparseLines:
    """The lines, or the error that names the first wrong one."""
    label, feature, value, label_ends, feature_ends = [], [], [], [0], [0]
    for number, row in _rows(text, line):
        walk = _LineParser(bounds, number)
        label += walk.labels(row)
        pairs = walk.pairs(row)
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


def _rows(text: bytes, line: int) -> Iterator[tuple[int, str]]:
    for place, row in enumerate(text.removesuffix(b"\n").split(b"\n")):
        yield line + place, row.decode("utf-8", errors="replace")


@dataclass(frozen=True, slots=True)
class _LineParser:
    """One line, token by token."""

    bounds: Bounds
    line: int

    def labels(self, row: str) -> list[float]:
        first = next(iter(self._tokens(row)), ":")
        if ":" in first:
            return []
        found = [self._label(text) for text in first.split(",")]
        self._once("label", found)
        return found

    def pairs(self, row: str) -> list[tuple[int, float]]:
        tokens = self._tokens(row)
        found = [self._pair(text) for text in tokens[bool(tokens) and ":" not in tokens[0] :]]
        self._once("feature", [pair[0] for pair in found])
        return found

    def _tokens(self, row: str) -> list[str]:
        if not self.bounds.comments:
            return row.split()
        tokens = row.partition("#")[0].split()
        return [text for text in tokens if not text.startswith("qid:")]

    def _label(self, text: str) -> float:
        if self.bounds.whole:
            if text.startswith("-") and text[1:].isdigit():
                raise SparseFileError.negative(self.bounds.path, self.line, text)
            plus = self.bounds.comments and text.startswith("+")  # svmlight's +1 is 1
            found = self._whole(text, "the number of a label, counted from 0,", skip=int(plus))
            self._within("label", found, first=0, many=self.bounds.labels)
            return found
        number = _float(text)
        if number is None or not np.isfinite(number):
            raise self._fault(text, "a label, a finite number,")
        return number

    def _pair(self, text: str) -> tuple[int, float]:
        left, colon, right = text.partition(":")
        if not colon:
            raise self._fault(text, "feature:value")
        feature = self._whole(left, "the number of a feature")
        self._within("feature", feature, first=self.bounds.first, many=self.bounds.features)
        value = _float(right)
        if value is None:
            raise self._fault(text, "feature:value")
        if not np.isfinite(value):
            raise SparseFileError.not_finite(self.bounds.path, self.line, feature, right)
        return feature, value

    def _whole(self, text: str, wanted: str, *, skip: int = 0) -> int:
        digits = text[skip:]
        if not (digits.isascii() and digits.isdigit() and int(digits) <= MAX_NUMBER):
            raise self._fault(text, wanted)
        return int(digits)

    def _within(self, kind: str, found: int, *, first: int, many: int | None) -> None:
        if found < first or (many is not None and found >= first + many):
            most = MAX_NUMBER if many is None else many
            raise SparseFileError.of_range(
                self.bounds.path, self.line, kind, found, first=first, many=most
            )

    def _once(self, kind: str, found: list[Any]) -> None:
        if len(set(found)) < len(found):
            twice = next(one for place, one in enumerate(found) if one in found[:place])
            raise SparseFileError.repeated(self.bounds.path, self.line, kind, int(twice))

    def _fault(self, text: str, wanted: str) -> SparseFileError:
        return SparseFileError.of_token(self.bounds.path, self.line, text, wanted)


def _float(text: str) -> float | None:
    """A text as a number; Python takes 1_000 and other digits too, which files do not mean."""
    try:
        return float(text) if text.isascii() and "_" not in text else None
    except ValueError:
        return None


Path = str | os.PathLike[str]

PIECE = 1 << 22  # bytes of text parsed at once
MAX_ROW = 1 << 28  # bytes of a line: a row of some ten million features
_RATIO = 1000
_TRUSTED = 1 << 24


def line_blocks(path: Path, *, size: int = PIECE) -> Iterator[bytes]:
    """Bytes of whole lines, the last made to end with a line end; nothing of an empty file.

    The mark with which some writers begin UTF-8 is skipped.
    """
    name, rest, lines, mark = regular_file(path), b"", 1, codecs.BOM_UTF8
    if not os.path.getsize(name):  # also files of the kernel, whose content may never end
        return
    for piece in _unpacked(name, size):
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
    """A file to be filled, packed as its name ends: .gz, .xz or anything else for plain text."""
    name = os.fspath(path)
    with atomic_write(name) as file:
        if name.endswith(".gz"):
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                yield cast("BinaryIO", packed)
        elif name.endswith(".xz"):
            with lzma.LZMAFile(file, "wb") as tight:
                yield cast("BinaryIO", tight)
        else:
            yield file


def _unpacked(name: str, size: int) -> Iterator[bytes]:
    try:
        with open(name, "rb") as file:
            start = file.read(6)
    except OSError as fault:
        raise FileError.not_allowed(name, fault.strerror or str(fault)) from None
    if start == b"\xfd7zXZ\0":
        yield from _of_xz(name, size)
        return
    with TextStream(name, gzip=start[:2] == b"\x1f\x8b", encoding=None) as text:
        while piece := text.read(size):
            yield piece


def _of_xz(name: str, size: int) -> Iterator[bytes]:
    given = 0
    with open(name, "rb") as file, lzma.LZMAFile(file) as text:
        while piece := _next(text, name, size, given):
            given += len(piece)
            if given > MAX_BYTES:
                raise FileError.too_large(name, MAX_BYTES)
            if given > _TRUSTED and given > _RATIO * file.tell():
                raise FileError.bomb(name, file.tell(), given, _RATIO)
            yield piece


def _next(text: Any, name: str, size: int, given: int) -> bytes:
    try:
        return bytes(text.read(size))
    except EOFError:
        raise FileError.cut_off(name, "its xz stream has no end") from None
    except lzma.LZMAError as fault:
        raise FileError.damaged(name, f"xz after {given} bytes of text", str(fault)) from None


FirstFeature = Literal["auto", 0, 1]


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
    return concatenate_rows(xmc_blocks(path, dtype=dtype))


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
    first: FirstFeature = "auto",
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


def read_svmlight_sets(path: Path, *, first: FirstFeature = "auto") -> LabelledRows:
    """All rows of svmlight with sets of labels, and what their first feature is called."""
    bounds = Bounds(str(path), whole=True, comments=True)
    at, found, low = _svmlight(path, bounds, None, first, np.float32)
    return LabelledRows(at, _indicator(found, None, np.float32), first=low)


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
        warn(MoreFeaturesWarning.of(str(path), high, low, d))
    L = last + 1 if labels is None else labels
    start = 0
    tight = replace(loose, features=None if dropped else d, first=low)
    for found in _bodies(path, tight, size):
        found = found.below(low + d) if dropped else found
        x = _csr(found.feature - low, found.value.astype(dtype), found.feature_ends, d)
        yield LabelledRows(x, _indicator(found, L, dtype), start, low), rows
        start += len(found)


def concatenate_rows(blocks: Iterable[LabelledRows]) -> LabelledRows:
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
) -> Iterator[tuple[tuple[int, ...], SparseLines, int]]:
    """The counts of the header with each block of lines, and the number of its first row."""
    pieces = line_blocks(path, size=size)
    top, _, first = next(pieces, b"").partition(b"\n")
    counts = _header(str(path), top, many, wanted)
    bounds = Bounds(str(path), counts[-1] if many == 3 else 0, counts[1])
    start = 0
    for text in _first_of(first, pieces):
        text = _without_tail(text, bounds, start, counts[0])
        if text or start == 0:
            found = parse_lines(text, bounds, line=start + 2) if text else _NOTHING
            yield counts, found, start
            start += len(found)
    if start < counts[0]:
        raise SparseFileError.too_few(str(path), stated=counts[0], rows=start)


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
    if max(counts) > MAX_NUMBER:
        raise SparseFileError.of_size(path, max(counts), MAX_NUMBER)
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


def _bodies(path: Path, bounds: Bounds, size: int = PIECE) -> Iterator[SparseLines]:
    """Blocks of svmlight; lines that hold nothing are no rows."""
    line = 1
    for text in line_blocks(path, size=size):
        found = parse_lines(text, bounds, line=line)
        if not bounds.whole:
            _one_each(found, bounds, line)
        yield found.select((np.diff(found.label_ends) > 0) | (np.diff(found.feature_ends) > 0))
        line += text.count(b"\n")


def _one_each(found: SparseLines, bounds: Bounds, line: int) -> None:
    labels, full = np.diff(found.label_ends), np.diff(found.feature_ends) > 0
    wrong = np.flatnonzero((labels > 1) | ((labels == 0) & full))
    if len(wrong):
        row = int(wrong[0])
        raise SparseFileError.one_label(bounds.path, line + row, int(labels[row]))


def _together(parts: Iterable[SparseLines]) -> SparseLines:
    found = list(parts) or [_NOTHING]
    return SparseLines(
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
    path: Path, bounds: Bounds, features: int | None, first: FirstFeature, dtype: npt.DTypeLike
) -> tuple[Any, SparseLines, int]:
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
        warn(FirstFeatureWarning.of(str(path), features))
    return 1


def _check_svmlight(
    path: Path, found: SparseLines, bounds: Bounds, first: int, features: int | None
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


def _indicator(lines: SparseLines, labels: int | None, dtype: npt.DTypeLike) -> Any:
    L = int(lines.label.max(initial=-1)) + 1 if labels is None else labels
    return _csr(lines.label, np.ones(len(lines.label), dtype=dtype), lines.label_ends, L)


_NOTHING = SparseLines(
    np.zeros(1, np.int64), np.zeros(0), np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0)
)


_AT_ONCE = 10_000  # rows turned into text together


def write_xmc(path: Path, features: Any, labels: Any) -> None:
    """Write rows as XMC text, packed if the name ends with .gz or .xz; reading gives the same."""
    x, y = _pair(path, features, labels)
    with open_for_writing(path) as file:
        file.write(f"{x.shape[0]} {x.shape[1]} {y.shape[1]}\n".encode())
        for lo in range(0, x.shape[0], _AT_ONCE):
            part = slice(lo, lo + _AT_ONCE)
            file.write("".join(_text(x[part], _sets(y[part]), first=0)).encode())


def write_svmlight(path: Path, features: Any, labels: Any, *, first: Literal[0, 1] = 1) -> None:
    """Write rows as svmlight; `labels` (n,) numbers, or an (n, L) matrix of sets of labels."""
    if sparse.issparse(labels) or np.ndim(labels) == 2:
        x, y = _pair(path, features, labels)
        _refuse_nothing(path, x, y)
    else:
        x, y = _finite_csr(path, features), np.asarray(labels, dtype=np.float64)
        if x.shape[0] != len(y):
            raise ShapeError.of_lengths("labels", len(y), x.shape[0])
    with open_for_writing(path) as file:
        for lo in range(0, x.shape[0], _AT_ONCE):
            part = slice(lo, lo + _AT_ONCE)
            some = [_plain(one) for one in y[part].tolist()] if y.ndim == 1 else _sets(y[part])
            file.write("".join(_text(x[part], some, first=first)).encode())


# --- inside --------------------------------------------------------------------------------------


def _pair(path: Path, features: Any, labels: Any) -> tuple[Any, Any]:
    if not sparse.issparse(labels) and np.asarray(labels).dtype.kind not in "biuf":
        raise LabelSetError.of_names()
    x, y = _finite_csr(path, features), _sorted_csr(labels)
    if x.shape[0] != y.shape[0]:
        raise ShapeError.of_lengths("labels", y.shape[0], x.shape[0])
    y.eliminate_zeros()
    for at in np.flatnonzero(~((y.data >= 1) & (y.data % 1 == 0))):
        raise LabelSetError.of_entry(_row(y, at), int(y.indices[at]), y.data[at])
    return x, y


def _finite_csr(path: Path, values: Any) -> Any:
    """Rows whose numbers can be read again."""
    found = _sorted_csr(values)
    for at in np.flatnonzero(~np.isfinite(found.data)):
        raise SparseFileError.unwritable(
            str(path), _row(found, at), int(found.indices[at]), found.data[at]
        )
    return found


def _row(matrix: Any, at: Any) -> int:
    """The row of an entry."""
    return int(np.searchsorted(matrix.indptr, at, side="right")) - 1


def _refuse_nothing(path: Path, x: Any, y: Any) -> None:
    """svmlight has no way to write a row without labels and features."""
    nothing = np.flatnonzero((np.diff(x.indptr) == 0) & (np.diff(y.indptr) == 0))
    if len(nothing):
        raise SparseFileError.empty_row(str(path), int(nothing[0]), len(nothing))


def _sorted_csr(values: Any) -> Any:
    found = sparse.csr_matrix(values, copy=True)
    found.sum_duplicates()
    return found


def _sets(y: Any) -> list[str]:
    """The labels of each row, parted by commas."""
    told = list(map(str, y.indices.tolist()))
    ends = y.indptr.tolist()
    return [",".join(told[lo:hi]) for lo, hi in pairwise(ends)]


def _plain(number: float) -> str:
    return str(int(number)) if number.is_integer() else repr(number)


def _text(x: Any, labels: list[str], *, first: int) -> Iterator[str]:
    """Lines of rows. A value has the fewest digits that read back as the same number."""
    told = [
        f"{feature + first}:{value}"
        for feature, value in zip(x.indices.tolist(), x.data.astype(str).tolist(), strict=True)
    ]
    ends = x.indptr.tolist()
    for row, (lo, hi) in enumerate(pairwise(ends)):
        yield f"{labels[row]} {' '.join(told[lo:hi])}\n" if hi > lo else f"{labels[row]}\n"
