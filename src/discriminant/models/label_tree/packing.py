"""Which entries a row of a chunk has, and of which children, in few bytes.

    entries    before row r: begins[r // 32] + beyond[r], 8 bytes for 32 rows and 2 for each
    children   a list, a number for each entry; or bits, one for each child of the parent:

                   chunk of p    (rows of its chunk, bytes_p) from marks[p]
                   bytes_p       (children of p + 7) // 8

               whichever is smaller: bits where a row has weights for many children, or there are
               few children
    feature    2 bytes where that is enough

Nothing needs to be unpacked before it is used: a file can be left where it is. Arrays are gone
through some millions of numbers at a time, since they may be larger than the memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[Any]

ROWS = 32  # for each number of `begins`
_AT_ONCE = 1 << 20
_ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.int64)


def narrowed(feature: Ints) -> Ints:
    """As uint16 where that holds all."""
    return feature.astype(np.uint16 if int(feature.max(initial=0)) < 1 << 16 else np.int32)


def entries_packed(entries: Ints) -> tuple[Ints, Ints]:
    """`begins` and `beyond` of entries (R + 1,)."""
    begins = np.array(entries[::ROWS], np.int64)
    after = np.append(begins[1:], entries[-1])
    most = int((after - begins).max())
    beyond = np.empty(len(entries), np.uint16 if most < 1 << 16 else np.uint32)
    for first in range(0, len(entries), _AT_ONCE):
        part = np.asarray(entries[first : first + _AT_ONCE])
        beyond[first : first + len(part)] = (
            part - begins[np.arange(first, first + len(part)) // ROWS]
        )
    return begins, beyond


def entries_of(begins: Ints, beyond: Ints, first: int, last: int) -> Ints:
    """Where the entries of rows `first` to `last`, not included, begin."""
    before = begins[np.arange(first, min(last, len(beyond))) // ROWS]
    return np.asarray(before + beyond[first:last].astype(np.int64))


def bytes_of(children: Ints) -> Ints:
    """(P,) bytes of the bits of each parent's children."""
    return np.asarray((np.diff(children) + 7) >> 3)


def marks_of(children: Ints, chunks: Ints) -> Ints:
    """(P + 1,) where the bits of each chunk begin."""
    sizes = np.diff(chunks) * bytes_of(children)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def children_packed(children: Ints, chunks: Ints, entries: Ints, child: Ints) -> tuple[Ints, Ints]:
    """`marks` and `places`."""
    marks = marks_of(children, chunks)
    if marks[-1] >= child.nbytes:
        return np.empty(0, np.int64), child
    places = np.zeros(int(marks[-1]), np.uint8)
    for low, high in _parents(chunks):
        bits = _first_bits(children, chunks, marks, low, high)
        count = np.diff(entries[int(chunks[low]) : int(chunks[high]) + 1])
        at = slice(int(entries[chunks[low]]), int(entries[chunks[high]]))
        bit = np.repeat(bits, count) + child[at]
        some = np.zeros(8 * int(marks[high] - marks[low]), np.uint8)
        some[bit - 8 * marks[low]] = 1
        places[int(marks[low]) : int(marks[high])] = np.packbits(some, bitorder="little")
    return marks, places


def children_of_bits(children: Ints, chunks: Ints, places: Ints) -> Ints:
    """(E,) the children that bits stand for."""
    marks, found = marks_of(children, chunks), [np.empty(0, np.int64)]
    for low, high in _parents(chunks):
        part = places[int(marks[low]) : int(marks[high])]
        bit = np.flatnonzero(np.unpackbits(part, bitorder="little")) + 8 * marks[low]
        first = _first_bits(children, chunks, marks, low, high)
        found.append(bit - first[np.searchsorted(first, bit, side="right") - 1])
    return np.concatenate(found)


def bits_fault(
    children: Ints, chunks: Ints, entries: tuple[Ints, Ints], places: Ints
) -> str | None:
    """What is wrong with bits: those of a row are as many as its entries, and of children."""
    marks = marks_of(children, chunks)
    for low, high in _parents(chunks):
        first = _first_bits(children, chunks, marks, low, high) - 8 * marks[low]
        part = places[int(marks[low]) : int(marks[high])]
        found = np.add.reduceat(_ONES[part], first >> 3)
        begin = entries_of(*entries, int(chunks[low]), int(chunks[high]) + 1)
        if not np.array_equal(found, np.diff(begin)):
            return "the bits of a row are not as many as its weights"
        width = np.repeat(np.diff(children[low : high + 1]), np.diff(chunks[low : high + 1]))
        last = part[np.append(first[1:] >> 3, len(part)) - 1]
        if (last >> (((width - 1) & 7) + 1)).any():
            return "a bit is of a child that its parent does not have"
    return None


def _first_bits(children: Ints, chunks: Ints, marks: Ints, low: int, high: int) -> Ints:
    """The first bit of every row of the chunks of some parents."""
    rows = np.diff(chunks[low : high + 1])
    within = np.arange(int(chunks[low]), int(chunks[high])) - np.repeat(chunks[low:high], rows)
    each = np.repeat(bytes_of(children[low : high + 1]), rows)
    return np.asarray(8 * (np.repeat(marks[low:high], rows) + within * each))


def _parents(chunks: Ints) -> Iterator[tuple[int, int]]:
    """Runs of parents whose chunks have some hundred thousand rows together, each with some."""
    low = 0
    while low < len(chunks) - 1:
        high = int(np.searchsorted(chunks, chunks[low] + (_AT_ONCE >> 3), side="right"))
        high = min(max(high - 1, low + 1), len(chunks) - 1)
        if chunks[high] > chunks[low]:
            yield low, high
        low = high
