"""Lines of sparse rows, `label,label feature:value feature:value`, as arrays.

Two readers of the same lines. `scanned` looks at a whole block of bytes at once: a number is a run
of number signs; what stands before and after it tells what it is,

    after it `:`      a feature
    before it `:`     a value
    neither           a label: at the start of its line or after a comma

and anything out of that order makes it give up. `walked` then goes line by line, takes what is odd
and right (comments, a label after a space), and names the line of what is wrong. So the second is
the meaning and the first its speed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import SparseFileError
from discriminant.table.schema import Floats

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
LARGEST = 2**31 - 1  # of a label or feature: they are kept as 32-bit numbers


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Labels and features of n lines, as they stand."""

    label_ends: Ints  # (n + 1,) labels of line i: label_ends[i] : label_ends[i + 1]
    label: Floats  # (.,)
    feature_ends: Ints  # (n + 1,)
    feature: Ints  # (.,)
    value: Floats  # (.,)

    def __len__(self) -> int:
        return len(self.label_ends) - 1

    def some(self, kept: npt.NDArray[np.bool_]) -> Lines:
        """Without lines that hold nothing."""
        ends = np.concatenate([[True], kept])
        return Lines(
            self.label_ends[ends], self.label, self.feature_ends[ends], self.feature, self.value
        )

    def below(self, feature: int) -> Lines:
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


def lines_of(text: bytes, bounds: Bounds, *, line: int) -> Lines:
    """Lines of a block that ends with a line end; `line` is the number of its first."""
    found = scanned(text, whole=bounds.whole)
    if found is not None and not _faulty(found, bounds):
        return found
    return walked(text, bounds, line=line)


# --- a block at once ------------------------------------------------------------------------------


def scanned(text: bytes, *, whole: bool = True) -> Lines | None:
    """The lines, or None if they are not of the plainest kind.

    >>> found = scanned(b"3,4 0:1 7:0.5\\n 2:1\\n")
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
    return Lines(
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


def _faulty(found: Lines, bounds: Bounds) -> bool:
    """Whether a label or feature is out of range or stands twice, or a value is not finite."""
    last = bounds.first + (LARGEST if bounds.features is None else bounds.features) - 1
    out = not np.isfinite(found.value).all() or not np.isfinite(found.label).all()
    out = out or found.feature.max(initial=bounds.first) > last
    out = out or found.feature.min(initial=bounds.first) < bounds.first
    if bounds.whole:
        most = LARGEST if bounds.labels is None else bounds.labels
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


def walked(text: bytes, bounds: Bounds, *, line: int) -> Lines:
    """The lines, or the error that names the first wrong one."""
    label, feature, value, label_ends, feature_ends = [], [], [], [0], [0]
    for number, row in _rows(text, line):
        walk = _Walk(bounds, number)
        label += walk.labels(row)
        pairs = walk.pairs(row)
        feature += [pair[0] for pair in pairs]
        value += [pair[1] for pair in pairs]
        label_ends.append(len(label))
        feature_ends.append(len(feature))
    return Lines(
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
class _Walk:
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
        if not (digits.isascii() and digits.isdigit() and int(digits) <= LARGEST):
            raise self._fault(text, wanted)
        return int(digits)

    def _within(self, kind: str, found: int, *, first: int, many: int | None) -> None:
        if found < first or (many is not None and found >= first + many):
            most = LARGEST if many is None else many
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
