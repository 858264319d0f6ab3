"""Cross-validation folds of a partitioned table, assigned by a hash of each row.

Rows in partitions have no fixed order: a database or a cluster may return them in any order, and
files may be split differently in another run. So the fold of a row must depend on its content. With
`x` the float64 bits of the d features of the row and `k` the code of its class,

    h = seed;   h = (h ^ x_j ^ (x_j >> 32)) * odd   for j = 1..d;   then k;   fold = mix(h) mod F

If rows belong to groups, the cell that names the group is hashed instead. Folds have nearly equal
sizes by the law of large numbers; they are not stratified.

If features are few and discrete, many rows have equal features, although each row is a separate
observation. A hash of the content alone would assign all of these rows to one fold, and the
training rows of this fold would lack this combination of features. So rows that occur more than
once in their block are assigned to consecutive folds. The first of these folds depends on the row
and the block:

    fold = (mix(h ^ salt) + i) mod F      i-th of its copies
    salt = mix(start + sum (2r + 1) h_r)  over the rows r of the block that begins at row `start`

Every pass over a source has the same blocks, and so assigns each row to the same fold.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import MissingCellError
from discriminant.table.blocks import Block, Codes, Floats, Places
from discriminant.table.column_cells import Frame

Hashes = npt.NDArray[np.uint64]
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_HALF = np.uint64(32)
_TILE = 8192  # number of rows hashed at a time, which fit into the processor's cache


@dataclass(frozen=True, slots=True)
class RowHashFolds:
    """Transform (see `ReadPlan`) that assigns rows to folds by a hash of their content."""

    folds: int
    seed: int = 0

    def __call__(self, block: Block) -> Block:
        """Return the block with the fold of each row."""
        rows, codes, start = block.features, block.codes, block.start
        return block.with_folds(
            row_hash_folds(rows, codes, self.folds, seed=self.seed, start=start)
        )


@dataclass(frozen=True, slots=True)
class ColumnFolds:
    """Assign rows to folds by one column: rows with the same value are in the same fold."""

    column: str
    levels: tuple[str, ...] = ()  # one fold per level; if empty, values are hashed
    folds: int = 0
    seed: int = 0

    def fold_numbers(self, frame: Frame) -> Places:
        """Return the fold of each row, (n,)."""
        cells = frame[self.column].as_text()
        if cells.n_missing:
            row = int(np.argmax(cells.missing))
            line = frame.line_number(row)
            raise MissingCellError.of(
                row, self.column, rows=cells.n_missing, columns=1, fitted=False, line=line
            )
        if self.levels:
            place = {level: fold for fold, level in enumerate(self.levels)}
            by_level = [place.get(level, 0) for level in cells.levels]
        else:
            by_level = [_hash_text(level, self.seed) % self.folds for level in cells.levels]
        return np.asarray(np.array(by_level, dtype=np.intp)[cells.values], dtype=np.intp)


def row_hash_folds(
    features: Any, codes: Codes, folds: int, *, seed: int = 0, start: int = 0
) -> Places:
    """Return the fold of each row of a block, (n,), from 0 to `folds - 1`.

    >>> rows = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])
    >>> fold = row_hash_folds(rows, np.array([0, 1, 0]), 5)
    >>> int((fold[2] - fold[0]) % 5), bool((fold < 5).all())
    (1, True)
    """
    feature_hash, row_hash = _row_hashes(features, codes, seed)
    fold = (row_hash % np.uint64(folds)).astype(np.intp)
    copies = _repeated(feature_hash)
    if len(copies):
        odd = 2 * np.arange(len(row_hash), dtype=np.uint64) + np.uint64(1)
        salt = _mix64((odd * row_hash).sum(keepdims=True) + np.array([start], dtype=np.uint64))
        keys = _mix64(row_hash[copies] ^ salt)
        fold[copies] = (keys % np.uint64(folds)).astype(np.intp) + _ordinals(keys)
        fold[copies] %= folds
    return fold


def has_repeated_rows(block: Block) -> bool:
    """Whether some rows of a block have equal features."""
    return len(_repeated(_row_hashes(block.features, block.codes, 0)[0])) > 0


@dataclass(frozen=True, slots=True, eq=False)
class FoldLookup:
    """Folds of the rows of a table, looked up by a hash of each row."""

    keys: Hashes  # (n,)
    folds: Places  # (n,)

    def __add__(self, other: FoldLookup) -> FoldLookup:
        """Return the fold lookup for the rows of both operands."""
        return FoldLookup(
            np.concatenate([self.keys, other.keys]), np.concatenate([self.folds, other.folds])
        )

    def match(self, block: Block) -> Places | None:
        """Return the folds (n,) of these rows, which may be in another order.

        Return None if the rows are not those of the table. Equal rows may exchange their folds,
        since they cannot be distinguished.
        """
        keys = _row_keys(block)
        mine, theirs = np.lexsort((self.folds, self.keys)), np.argsort(keys, kind="stable")
        if not np.array_equal(self.keys[mine], keys[theirs]):
            return None
        folds = np.empty(len(keys), dtype=np.intp)
        folds[theirs] = self.folds[mine]
        return folds


@dataclass(frozen=True, slots=True)
class FoldRecordReading:
    """Record to which folds the rows of a small table were assigned."""

    @property
    def summary_size(self) -> int:
        """Number of values that are stored for each row: its hash and its fold."""
        return 2

    def read(self, block: Block) -> FoldLookup:
        """Return the folds of the rows of one block."""
        assert block.fold is not None
        return FoldLookup(_row_keys(block), block.fold)


def row_hashes(features: Any, codes: Codes, *, seed: int = 0) -> Hashes:
    """Return a hash of the features and the class of each row, (n,)."""
    return _row_hashes(features, codes, seed)[1]


def _row_keys(block: Block) -> Hashes:
    keys = _row_hashes(block.features, block.codes, 0)[1]
    if block.weight is not None:
        _absorb(keys, block.weight.astype(np.float64))
    return keys


def _row_hashes(features: Any, codes: Codes, seed: int) -> tuple[Hashes, Hashes]:
    """Return two hashes of each row, each (n,): of the features, and of features and class."""
    start = np.uint64((seed + 1) * int(_ODD) % (1 << 64))
    feature_hash, row_hash = (np.empty(len(codes), dtype=np.uint64) for _ in range(2))
    for lo in range(0, len(codes), _TILE):
        tile = slice(lo, min(lo + _TILE, len(codes)))
        state = np.full(tile.stop - lo, start)
        for j in range(features.shape[1]):
            _absorb(state, np.asarray(features[tile, j], dtype=np.float64))
        feature_hash[tile] = state
        _absorb(state, codes[tile].astype(np.float64))
        row_hash[tile] = _mix64(state)
    return feature_hash, row_hash


def _absorb(state: Hashes, values: Floats) -> None:
    """Update the hash of every row with one more number. 0 and -0 give the same hash."""
    bits = (values + 0.0).view(np.uint64)
    state ^= bits
    bits >>= _HALF  # numbers with few digits differ only in their high bits
    state ^= bits
    state *= _ODD


def _mix64(state: Hashes) -> Hashes:
    """Mix the bits in place, so that each bit depends on every bit of the state (SplitMix64)."""
    state ^= state >> np.uint64(30)
    state *= _MIX[0]
    state ^= state >> np.uint64(27)
    state *= _MIX[1]
    state ^= state >> np.uint64(31)
    return state


def _repeated(hashes: Hashes) -> Places:
    """Return the positions of hashes that occur more than once."""
    order = np.sort(hashes)
    again = order[1:][order[1:] == order[:-1]]
    if not len(again):
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(np.isin(hashes, again))


def _ordinals(keys: Hashes) -> Places:
    """Return, for each key, how many equal keys precede it.

    >>> _ordinals(np.array([7, 5, 7, 7], dtype=np.uint64)).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(keys, kind="stable")
    place = np.arange(len(keys))
    new = np.concatenate(([True], keys[order][1:] != keys[order][:-1]))
    ordinals = np.empty(len(keys), dtype=np.intp)
    ordinals[order] = place - np.maximum.accumulate(np.where(new, place, 0))
    return ordinals


def _hash_text(text: str, seed: int) -> int:
    key = seed.to_bytes(8, "little", signed=False)
    return int.from_bytes(blake2b(text.encode(), digest_size=8, key=key).digest(), "little")
