"""Into which fold of a cross-validation a row goes, said by the row itself.

Rows in parts have no order that holds: a database or a cluster gives them as it likes, and files
may be cut differently tomorrow. So what a row holds says where it goes. With x the float64 bits of
its d features and k the code of its class,

    h = seed;   h = (h ^ x_j ^ (x_j >> 32)) * odd   for j = 1..d;   then k;   fold = mix(h) mod F

or, where rows belong together, a hash of the cell that says to what. Folds are of nearly equal
size, by the law of large numbers and not by dealing.

Where features are few and discrete, rows are copies of each other, each an observation of its own:
in one fold they would leave the others without a share of their cell. So rows that occur more than
once in their block are dealt round, from a fold that the row and the company it is in say:

    fold = (mix(h ^ salt) + i) mod F      i-th of its copies
    salt = mix(start + sum (2r + 1) h_r)  over the rows r of the block that begins at row `start`

Blocks are the same in every reading of a source, so the fold of a row is too.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import MissingCellError
from discriminant.table.blocks import Block, Codes, Floats, Places
from discriminant.table.cells import Cells, Frame

Hashes = npt.NDArray[np.uint64]
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_HALF = np.uint64(32)
_TILE = 8192  # rows at a time, so that they stay in the cache


@dataclass(frozen=True, slots=True)
class RowHashFolds:
    """Deal rows by what they hold: a step of a plan."""

    folds: int
    seed: int = 0

    def __call__(self, block: Block) -> Block:
        """The block with the fold of each row."""
        rows, codes, start = block.features, block.codes, block.start
        return block.with_folds(
            row_hash_folds(rows, codes, self.folds, seed=self.seed, start=start)
        )


@dataclass(frozen=True, slots=True)
class ColumnFolds:
    """Deal rows by the cells of one column: rows with the same cell stay together."""

    column: str
    levels: tuple[str, ...] = ()  # a fold for each; of none, cells are hashed into `folds`
    folds: int = 0
    seed: int = 0

    def fold_numbers(self, frame: Frame) -> Places:
        """(n,) the fold of each row."""
        cells = frame[self.column].as_text()
        if cells.n_missing:
            row = int(np.argmax(cells.missing))
            line = frame.line_number(row)
            raise MissingCellError.of(
                row, self.column, rows=cells.n_missing, columns=1, fitted=False, line=line
            )
        return np.asarray(self._each(cells)[cells.values], dtype=np.intp)

    def _each(self, cells: Cells) -> Places:
        """The fold of each level."""
        if not self.levels:
            hashes = [_hash_of(level, self.seed) % self.folds for level in cells.levels]
            return np.array(hashes, dtype=np.intp)
        place = {level: fold for fold, level in enumerate(self.levels)}
        return np.array([place.get(level, 0) for level in cells.levels], dtype=np.intp)


def row_hash_folds(
    features: Any, codes: Codes, folds: int, *, seed: int = 0, start: int = 0
) -> Places:
    """(n,) the fold of each row of a block, 0 to folds - 1.

    >>> rows = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])
    >>> found = dealt_by_row(rows, np.array([0, 1, 0]), 5)
    >>> int((found[2] - found[0]) % 5), bool((found < 5).all())
    (1, True)
    """
    alone, own = _hashes(features, codes, seed)
    found = (own % np.uint64(folds)).astype(np.intp)
    again = _repeated(alone)
    if len(again):
        odd = 2 * np.arange(len(own), dtype=np.uint64) + np.uint64(1)
        salt = _mixed((odd * own).sum(keepdims=True) + np.array([start], dtype=np.uint64))
        keys = _mixed(own[again] ^ salt)
        found[again] = (keys % np.uint64(folds)).astype(np.intp) + _ordinals(keys)
        found[again] %= folds
    return found


def _hashes(features: Any, codes: Codes, seed: int) -> tuple[Hashes, Hashes]:
    """(n,) of the features of each row, and of those and its class."""
    start = np.uint64((seed + 1) * int(_ODD) % (1 << 64))
    alone, own = (np.empty(len(codes), dtype=np.uint64) for _ in range(2))
    for lo in range(0, len(codes), _TILE):
        some = slice(lo, min(lo + _TILE, len(codes)))
        state = np.full(some.stop - lo, start)
        for j in range(features.shape[1]):
            _stir(state, np.asarray(features[some, j], dtype=np.float64))
        alone[some] = state
        _stir(state, codes[some].astype(np.float64))
        own[some] = _mixed(state)
    return alone, own


def _repeated(hashes: Hashes) -> Places:
    """Places of those that occur more than once."""
    order = np.sort(hashes)
    again = order[1:][order[1:] == order[:-1]]
    if not len(again):
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(np.isin(hashes, again))


def _ordinals(keys: Hashes) -> Places:
    """(n,) how many equal ones stand before each.

    >>> _ordinals(np.array([7, 5, 7, 7], dtype=np.uint64)).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(keys, kind="stable")
    place = np.arange(len(keys))
    new = np.concatenate(([True], keys[order][1:] != keys[order][:-1]))
    found = np.empty(len(keys), dtype=np.intp)
    found[order] = place - np.maximum.accumulate(np.where(new, place, 0))
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


# --- folds of rows at hand ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ObservedFolds:
    """Which folds rows came into, by what they hold."""

    keys: Hashes  # (n,)
    folds: Places  # (n,)

    def __add__(self, other: ObservedFolds) -> ObservedFolds:
        """Of the rows of both."""
        return ObservedFolds(
            np.concatenate([self.keys, other.keys]), np.concatenate([self.folds, other.folds])
        )

    def match(self, block: Block) -> Places | None:
        """(n,) folds for the same rows in another order; None where they are not the same.

        Copies of a row share the folds of its copies: which of them has which makes no difference.
        """
        keys = _keys(block)
        mine, theirs = np.lexsort((self.folds, self.keys)), np.argsort(keys, kind="stable")
        if not np.array_equal(self.keys[mine], keys[theirs]):
            return None
        found = np.empty(len(keys), dtype=np.intp)
        found[theirs] = self.folds[mine]
        return found


@dataclass(frozen=True, slots=True)
class ObservedFoldsReading:
    """Look which folds the rows of a small table come into."""

    @property
    def summary_size(self) -> int:
        """Of each row two."""
        return 2

    def read(self, block: Block) -> ObservedFolds:
        """Of one block."""
        assert block.fold is not None
        return ObservedFolds(_keys(block), block.fold)


def has_repeated_rows(block: Block) -> bool:
    """Whether some rows have the same features."""
    return len(_repeated(_hashes(block.features, block.codes, 0)[0])) > 0


def _keys(block: Block) -> Hashes:
    own = _hashes(block.features, block.codes, 0)[1]
    if block.weight is not None:
        _stir(own, block.weight.astype(np.float64))
    return own
