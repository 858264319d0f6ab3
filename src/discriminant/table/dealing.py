"""Into which fold of a cross-validation a row goes, said by the row itself.

Rows in parts have no order that holds: a database or a cluster gives them as it likes, and files
may be cut differently tomorrow. So what a row holds says where it goes. With x the float64 bits of
its d features and k the code of its class,

    h = seed;   h = (h ^ x_j ^ (x_j >> 32)) * odd   for j = 1..d;   then k;   fold = mix(h) mod F

or, where rows belong together, a hash of the cell that says to what. Equal rows come into one fold,
which is as it should be: a copy of a row in the training part would tell about the row held out.
Folds are of nearly equal size, by the law of large numbers and not by dealing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import DiscriminantError, MissingCellError
from discriminant.table.cells import Cells, Frame
from discriminant.table.parts import Part, Partial
from discriminant.table.schema import Block, Codes, Floats, Places

Hashes = npt.NDArray[np.uint64]
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_HALF = np.uint64(32)
_TILE = 8192  # rows at a time, so that they stay in the cache


@dataclass(frozen=True, slots=True)
class ByRow:
    """Deal rows by what they hold: a step of a plan."""

    folds: int
    seed: int = 0

    def __call__(self, block: Block) -> Block:
        """The block with the fold of each row."""
        return block.dealt(dealt_by_row(block.features, block.codes, self.folds, seed=self.seed))


@dataclass(frozen=True, slots=True)
class ByColumn:
    """Deal rows by the cells of one column: rows with the same cell stay together."""

    column: str
    levels: tuple[str, ...] = ()  # a fold for each; of none, cells are hashed into `folds`
    folds: int = 0
    seed: int = 0

    def numbers(self, frame: Frame) -> Places:
        """(n,) the fold of each row."""
        cells = frame[self.column].as_text()
        if cells.gaps:
            row = int(np.argmax(cells.missing))
            line = frame.line(row)
            raise MissingCellError.of(
                row, self.column, rows=cells.gaps, columns=1, fitted=False, line=line
            )
        return np.asarray(self._each(cells)[cells.values], dtype=np.intp)

    def _each(self, cells: Cells) -> Places:
        """The fold of each level."""
        if not self.levels:
            hashes = [_hash_of(level, self.seed) % self.folds for level in cells.levels]
            return np.array(hashes, dtype=np.intp)
        place = {level: fold for fold, level in enumerate(self.levels)}
        return np.array([place.get(level, 0) for level in cells.levels], dtype=np.intp)


def dealt_by_row(features: Any, codes: Codes, folds: int, *, seed: int = 0) -> Places:
    """(n,) the fold of each row, 0 to folds - 1.

    >>> rows = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])
    >>> found = dealt_by_row(rows, np.array([0, 1, 0]), 5)
    >>> bool(found[0] == found[2]), bool((found < 5).all())
    (True, True)
    """
    start = np.uint64((seed + 1) * int(_ODD) % (1 << 64))
    found = np.empty(len(codes), dtype=np.intp)
    for lo in range(0, len(codes), _TILE):
        some = slice(lo, min(lo + _TILE, len(codes)))
        state = np.full(some.stop - lo, start)
        for j in range(features.shape[1]):
            _stir(state, np.asarray(features[some, j], dtype=np.float64))
        _stir(state, codes[some].astype(np.float64))
        found[some] = _mixed(state) % np.uint64(folds)
    return found


def _stir(state: Hashes, values: Floats) -> None:
    """Take one more number of every row in; 0 and -0 are one number."""
    bits = (values + 0.0).view(np.uint64)
    state ^= bits
    bits >>= _HALF  # round numbers differ in their high bits alone
    state ^= bits
    state *= _ODD


def _mixed(state: Hashes) -> Hashes:
    """Every bit of the answer depends on every bit of the state (SplitMix64)."""
    state ^= state >> np.uint64(30)
    state *= _MIX[0]
    state ^= state >> np.uint64(27)
    state *= _MIX[1]
    state ^= state >> np.uint64(31)
    return state


def _hash_of(text: str, seed: int) -> int:
    key = seed.to_bytes(8, "little", signed=False)
    return int.from_bytes(blake2b(text.encode(), digest_size=8, key=key).digest(), "little")


# --- the levels of a column -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Levels:
    """Texts that were met."""

    texts: frozenset[str]

    def __add__(self, other: Levels) -> Levels:
        """Met in either."""
        return Levels(self.texts | other.texts)


@dataclass(frozen=True, slots=True)
class LevelsWork:
    """Look at one column of a part."""

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        """That column alone."""
        return (self.column,)

    def __call__(self, part: Part) -> Partial[Levels]:
        """The levels of its rows."""
        found: frozenset[str] = frozenset()
        rows = 0
        try:
            for frame in part.frames([self.column]):
                cells = frame[self.column].as_text()
                rows += len(frame)
                found |= frozenset(_present(cells))
        except DiscriminantError as fault:
            return Partial.of_fault(fault, part, rows)
        return Partial(Levels(found), rows)


def _present(cells: Cells) -> Iterable[str]:
    some = np.unique(cells.values)
    return (cells.levels[code] for code in some.tolist() if code >= 0)
