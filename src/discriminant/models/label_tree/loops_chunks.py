"""Loops that unpack the chunks of a layer: children from their bits, zeros where no weight is.

This file imports Numba, and is itself imported when a search is about to run. How chunks are packed
is told in `packing`.
"""

from __future__ import annotations

from typing import Any, cast

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from discriminant.moments.compiling import F, compiled, within

_FILLED = 1 << 18  # numbers of a chunk, at most, that is filled up with zeros
_FULL = 4  # as many times its weights, at most, are the numbers of such a chunk
_HALF = np.float32(2.0**112)  # what the exponents of half and single precision differ by


def native(made: F) -> F:
    """An instruction that Python has no word for."""
    return cast(F, intrinsic(made))


def real(weight: Any) -> Any:
    """A weight as a number; half precision comes as its 16 bits, which Numba cannot read."""
    return weight


@overload(real)
def _real(weight: Any) -> Any:
    if isinstance(weight, numba.types.Integer):
        return _half
    return _same


def _same(weight: Any) -> Any:
    return weight


def _half(weight: Any) -> Any:
    bits = np.uint32(weight)
    size = np.uint32((bits & np.uint32(0x7FFF)) << np.uint32(13)).view(np.float32) * _HALF
    return -size if bits & np.uint32(0x8000) else size


@native
def pointer(context: Any, address: Any = None) -> Any:
    """An address as a pointer."""

    def made(_: Any, builder: Any, __: Any, given: Any) -> Any:
        return builder.inttoptr(given[0], cgutils.voidptr_t)

    return types.voidptr(address), made


@native
def lowest(context: Any, bits: Any = None) -> Any:
    """Which is the lowest bit that is set, of one or more."""

    def made(_: Any, builder: Any, __: Any, given: Any) -> Any:
        return builder.cttz(given[0], cgutils.true_bit)

    return bits(bits), made


@compiled
def spread(node: int, layer: Any, spread: Any) -> Any:
    """The children of a chunk's entries, from their bits, in `spread` or a larger array."""
    low, high = layer.chunks[node], layer.chunks[node + 1]
    each = (layer.children[node + 1] - layer.children[node] + 7) >> 3
    most = 8 * (high - low) * each
    if len(spread) < most:
        spread = np.empty(most, np.uint8)
    e, at = 0, layer.marks[node]
    for _ in range(low, high):
        for byte in range(each):
            bits = np.uint64(layer.places[at + byte])
            while bits != np.uint64(0):
                spread[e] = 8 * byte + np.int64(lowest(bits))
                e += 1
                bits &= bits - np.uint64(1)
        at += each
    return spread


@compiled
def is_full(node: int, layer: Any) -> Any:
    """Whether the rows of a chunk have so many weights that zeros for the others are worth it."""
    low, high = layer.chunks[node], layer.chunks[node + 1]
    cells = (high - low) * (layer.children[node + 1] - layer.children[node])
    begin = layer.begins[low >> 5] + layer.beyond[low]
    end = layer.begins[high >> 5] + layer.beyond[high]
    return cells <= _FILLED and cells <= _FULL * (end - begin)


@compiled
def filled(node: int, layer: Any, filled: Any) -> Any:
    """The weights of a chunk, zeros where there are none, in `filled` or a larger array."""
    low, high = layer.chunks[node], layer.chunks[node + 1]
    children = layer.children[node + 1] - layer.children[node]
    if len(filled) < (high - low) * children:
        filled = np.empty((high - low) * children, filled.dtype)
    filled[: (high - low) * children] = 0
    each = (children + 7) >> 3
    for r in range(low, high):
        margin = filled[(r - low) * children : (r - low + 1) * children]
        first = layer.begins[r >> 5] + layer.beyond[r]
        last = layer.begins[(r + 1) >> 5] + layer.beyond[r + 1]
        if layer.listed == 0:
            at = layer.marks[node] + (r - low) * each
            add_bits(first, 1.0, layer.weight, layer.places, at, each, margin)
        for e in range(first, last if layer.listed else first):
            margin[_child(e, layer)] = real(layer.weight[e])
    return filled


@within
def _child(e: int, layer: Any) -> Any:
    """The child of an entry, of children that are listed."""
    if layer.listed == 1:
        return np.int64(layer.places[e])
    if layer.listed == 2:
        return np.int64(layer.places.view(np.uint16)[e])
    return np.int64(layer.places.view(np.uint32)[e])


@within
def add_bits(e: int, x: float, weight: Any, places: Any, bits: int, each: int, margin: Any) -> None:
    """Add x times the weights from entry e on to the children whose bits are set."""
    for first in range(0, each, 8):
        word = np.uint64(0)
        for b in range(min(each - first, 8)):
            word |= np.uint64(places[bits + first + b]) << np.uint64(8 * b)
        while word != np.uint64(0):
            margin[8 * first + np.int64(lowest(word))] += x * real(weight[e])
            e += 1
            word &= word - np.uint64(1)
