"""Who the rows of a source are, where no file says it: how many, and a sum over them.

    sum over rows of h(cells of the row),   modulo 2^64

The sum is of no order, so it is the same however a database or a cluster gives the rows; that other
rows have the same has one chance in 2^64. They are read once for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from discriminant.errors import DiscriminantError
from discriminant.table.cells import Cells, Frame
from discriminant.table.parts import Part, Partial, Source

Bits = npt.NDArray[np.uint64]
_ODD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Of some rows."""

    rows: int
    total: int

    def __add__(self, other: Fingerprint) -> Fingerprint:
        """Of the rows of both."""
        return Fingerprint(self.rows + other.rows, (self.total + other.total) % 2**64)


@dataclass(frozen=True, slots=True)
class FingerprintWork:
    """Look at all cells of some columns."""

    columns: tuple[str, ...]

    def __call__(self, part: Part) -> Partial[Fingerprint]:
        """Of the rows of a part."""
        found = Fingerprint(0, 0)
        try:
            for frame in part.frames(self.columns):
                found += Fingerprint(len(frame), _total(frame, self.columns))
        except DiscriminantError as fault:
            return Partial.of_fault(fault, part, found.rows)
        return Partial(found, found.rows)


def fingerprint(source: Source, columns: Sequence[str]) -> Fingerprint:
    """Of all rows of a source."""
    found = source.summed(FingerprintWork(tuple(columns))).checked().total
    return found or Fingerprint(0, 0)


def _total(frame: Frame, columns: Sequence[str]) -> int:
    """The sum of the hashes of rows; each cell stirs the hash of its row."""
    state = np.zeros(len(frame), dtype=np.uint64)
    for name in columns:
        state ^= _bits(frame[name])
        state *= _ODD
        state ^= state >> _SHIFT
    state *= _ODD
    state ^= state >> _SHIFT
    return int(state.sum(dtype=np.uint64))


def _bits(cells: Cells) -> Bits:
    """64 bits for each cell; all that are missing have the same, and so have 0 and -0."""
    if cells.kind == "text":
        each = [int.from_bytes(blake2b(t.encode(), digest_size=8).digest()) for t in cells.levels]
        return np.asarray(np.array([*each, 1], dtype=np.uint64)[cells.values])
    if cells.values.dtype.kind != "f":
        return np.asarray(cells.values.astype(np.int64).view(np.uint64))
    numbers = cells.values.astype(np.float64) + 0.0
    numbers[np.isnan(numbers)] = np.nan
    return numbers.view(np.uint64)
