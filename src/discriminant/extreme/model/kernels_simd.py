"""SIMD instructions on eight numbers, one for each child of a block, and unpacking of chunks.

Numba does not keep vectors of eight numbers in registers, so these few steps are written in LLVM
IR: a lane is a child, its numbers are summed in the written order, and other lanes are never read.
They work for float32 and float64 and check nothing: arrays are contiguous and of one type, as
`gather_rows` and `solve_children` create them. `prefetch` is also used by the search.

The unpacking kernels expand the bitmaps of children and fill chunks with zeros where there is no
weight; the packed format is described in `extreme.model.tree`.
"""

from __future__ import annotations

from typing import Any, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils as _cgutils, types
from numba.extending import intrinsic, overload

from discriminant.extreme.model.tasks import BLOCK
from discriminant.numba_cache import F, cached_njit, inline_njit

_FILLED = 1 << 18  # largest size of a chunk that is filled with zeros
_FULL = 4  # largest ratio of its size to its number of weights
_HALF = np.float32(2.0**112)  # ratio of the exponents of single and half precision


def llvm_intrinsic(made: F) -> F:
    """Declare an LLVM intrinsic."""
    return cast(F, intrinsic(made))


def as_real(weight: Any) -> Any:
    """Return a weight as a float; half precision is passed as its 16 bits."""
    return weight


@overload(as_real)
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


@llvm_intrinsic
def pointer(context: Any, address: Any = None) -> Any:
    """Convert an address to a pointer."""

    def made(_: Any, builder: Any, __: Any, given: Any) -> Any:
        return builder.inttoptr(given[0], cgutils.voidptr_t)

    return types.voidptr(address), made


@llvm_intrinsic
def lowest_bit(context: Any, bits: Any = None) -> Any:
    """Index of the lowest bit that is set; at least one must be."""

    def made(_: Any, builder: Any, __: Any, given: Any) -> Any:
        return builder.cttz(given[0], cgutils.true_bit)

    return bits(bits), made


@cached_njit
def expand_children(node: int, layer: Any, spread: Any) -> Any:
    """Expand the bitmaps of a chunk to children, in `spread` or a larger array."""
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
                spread[e] = 8 * byte + np.int64(lowest_bit(bits))
                e += 1
                bits &= bits - np.uint64(1)
        at += each
    return spread


@cached_njit
def is_dense(node: int, layer: Any) -> Any:
    """Whether a chunk has so many weights that filling it with zeros pays off."""
    low, high = layer.chunks[node], layer.chunks[node + 1]
    cells = (high - low) * (layer.children[node + 1] - layer.children[node])
    begin = layer.begins[low >> 5] + layer.beyond[low]
    end = layer.begins[high >> 5] + layer.beyond[high]
    return cells <= _FILLED and cells <= _FULL * (end - begin)


@cached_njit
def densify(node: int, layer: Any, filled: Any) -> Any:
    """Fill a chunk with zeros where it has no weights, in `filled` or a larger array."""
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
            margin[_child(e, layer)] = as_real(layer.weight[e])
    return filled


@inline_njit
def _child(e: int, layer: Any) -> Any:
    """Child of an entry, if children are stored as a list."""
    if layer.listed == 1:
        return np.int64(layer.places[e])
    if layer.listed == 2:
        return np.int64(layer.places.view(np.uint16)[e])
    return np.int64(layer.places.view(np.uint32)[e])


@inline_njit
def add_bits(e: int, x: float, weight: Any, places: Any, bits: int, each: int, margin: Any) -> None:
    """Add x times the weights from entry e on to the children whose bits are set."""
    for first in range(0, each, 8):
        word = np.uint64(0)
        for b in range(min(each - first, 8)):
            word |= np.uint64(places[bits + first + b]) << np.uint64(8 * b)
        while word != np.uint64(0):
            margin[8 * first + np.int64(lowest_bit(word))] += x * as_real(weight[e])
            e += 1
            word &= word - np.uint64(1)


cgutils: Any = _cgutils  # it has no type annotations
_CONTRACT = ("contract",)  # allow fused multiply-add
MOVED, ACTIVE = 1, 2  # flags returned by `dual_step`


@llvm_intrinsic
def row_scores(
    context: Any,
    places: Any = None,
    values: Any = None,
    P: Any = None,
    first: Any = None,
    beyond: Any = None,
    out: Any = None,
) -> Any:
    """out (8,) = x.P + the bias of P (features + 1, 8), of a row whose entries are first to beyond.

    Even and odd entries are summed separately, so that one sum does not wait for the other.
    """

    def made(context: Any, builder: Any, sig: Any, given: Any) -> Any:
        lanes = Lanes(context, builder, P.dtype)
        spots, numbers, rows, to = (lanes.data(sig.args[at], given[at]) for at in (0, 1, 2, 5))
        begin, end = given[3], given[4]
        last = builder.sub(lanes.length(P, given[2]), lanes.whole(1))
        sums = [lanes.variable(lanes.row(rows, last)), lanes.variable(lanes.zero)]
        pairs = builder.lshr(builder.sub(end, begin), lanes.whole(1))
        with cgutils.for_range(builder, pairs) as pair:
            at = builder.add(begin, builder.shl(pair.index, lanes.whole(1)))
            for odd, total in enumerate(sums):
                lanes.gain(total, spots, numbers, rows, builder.add(at, lanes.whole(odd)))
        odd = builder.trunc(builder.sub(end, begin), ir.IntType(1))
        with builder.if_then(odd):
            lanes.gain(sums[0], spots, numbers, rows, builder.sub(end, lanes.whole(1)))
        both = builder.fadd(builder.load(sums[0]), builder.load(sums[1]))
        lanes.put(both, to)
        return context.get_dummy_value()

    return types.void(places, values, P, types.intp, types.intp, out), made


@llvm_intrinsic
def add_scaled_row(
    context: Any,
    places: Any = None,
    values: Any = None,
    W: Any = None,
    first: Any = None,
    beyond: Any = None,
    step: Any = None,
) -> Any:
    """Add x times step (8,) to W (features + 1, 8), and the step itself to the bias."""

    def made(context: Any, builder: Any, sig: Any, given: Any) -> Any:
        lanes = Lanes(context, builder, W.dtype)
        spots, numbers, rows, by = (lanes.data(sig.args[at], given[at]) for at in (0, 1, 2, 5))
        move = lanes.take(by)
        last = builder.sub(lanes.length(W, given[2]), lanes.whole(1))
        lanes.put(builder.fadd(lanes.row(rows, last), move), lanes.spot(rows, last))
        with cgutils.for_range_slice(
            builder, given[3], given[4], lanes.whole(1), intp=lanes.whole(1).type
        ) as (at, _):
            to = lanes.spot(rows, lanes.place(spots, at))
            x = lanes.all(lanes.number(numbers, at))
            more = builder.fmul(x, move, flags=_CONTRACT)
            lanes.put(builder.fadd(lanes.take(to), more, flags=_CONTRACT), to)
        return context.get_dummy_value()

    return types.void(places, values, W, types.intp, types.intp, step), made


@llvm_intrinsic
def dual_step(
    context: Any,
    sign: Any = None,
    alpha: Any = None,
    half: Any = None,
    i: Any = None,
    square: Any = None,
    tiny: Any = None,
    rest: Any = None,
    step: Any = None,
    bounds: Any = None,
) -> Any:
    """One step of coordinate descent on row i, for eight children.

    On entry `step` (8,) is x.w + b; on return it is the change of alpha t. `bounds` (2, 8) are the
    highest and lowest projected gradients so far. Returns MOVED where a step is above `tiny`, plus
    PULLED where a projected slope is above `rest`.
    """

    def made(context: Any, builder: Any, sig: Any, given: Any) -> Any:
        lanes = Lanes(context, builder, alpha.dtype)
        signs, duals, leans, moves, ends = (
            lanes.data(sig.args[at], given[at]) for at in (0, 1, 2, 7, 8)
        )
        at, one = given[3], lanes.all(lanes.real(1.0))
        t = lanes.signs(signs, at)
        dual = lanes.spot(duals, at)
        a = lanes.take(dual)
        lean = lanes.row(leans, at) if half.ndim == 2 else lanes.all(builder.load(leans))
        margin = builder.fmul(t, lanes.take(moves), flags=_CONTRACT)
        slope = builder.fadd(
            builder.fsub(margin, one, flags=_CONTRACT),
            builder.fmul(a, lean, flags=_CONTRACT),
            flags=_CONTRACT,
        )
        inside = builder.fcmp_ordered(">", a, lanes.zero)
        pulled = builder.select(inside, slope, lanes.lower(slope, lanes.zero))
        for which, pick in ((0, lanes.higher), (1, lanes.lower)):
            bound = lanes.spot(ends, lanes.whole(which))
            lanes.put(pick(lanes.take(bound), pulled), bound)
        curve = builder.fadd(builder.fadd(lanes.all(given[4]), one), lean)
        new = lanes.higher(builder.fsub(a, builder.fdiv(slope, curve)), lanes.zero)
        move = builder.fmul(builder.fsub(new, a), t)
        lanes.put(new, dual)
        lanes.put(move, moves)
        moved = lanes.beyond(move, given[5], MOVED)
        return builder.or_(moved, lanes.beyond(pulled, given[6], ACTIVE))

    given = sign, alpha, half, types.intp, alpha.dtype, alpha.dtype, alpha.dtype, step, bounds
    return types.int64(*given), made


@llvm_intrinsic
def lanes_above(context: Any, W: Any = None, row: Any = None, threshold: Any = None) -> Any:
    """Bits of the lanes of a row of W (features + 1, 8) above the threshold in absolute value."""

    def made(context: Any, builder: Any, sig: Any, given: Any) -> Any:
        lanes = Lanes(context, builder, W.dtype)
        numbers = lanes.row(lanes.data(sig.args[0], given[0]), given[1])
        return builder.zext(lanes.bits_beyond(numbers, given[2]), lanes.whole(0).type)

    return types.uint64(W, types.intp, W.dtype), made


@llvm_intrinsic
def prefetch(context: Any, rows: Any = None, at: Any = None) -> Any:
    """Prefetch row `at` of an array, or its element, into the cache."""

    def made(context: Any, builder: Any, sig: Any, given: Any) -> Any:
        array = context.make_array(rows)(context, builder, given[0])
        width = BLOCK if rows.ndim == 2 else 1
        at = builder.mul(given[1], ir.Constant(given[1].type, width))
        kind = context.get_data_type(rows.dtype).as_pointer()
        spot = builder.gep(builder.bitcast(array.data, kind), [at])
        void = builder.bitcast(spot, cgutils.voidptr_t)
        word = ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, word, word, word])
        ask = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0")
        builder.call(ask, [void, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(rows, types.intp), made


class Lanes:
    """Builder of LLVM instructions on vectors of eight numbers."""

    def __init__(self, context: Any, builder: Any, kind: Any) -> None:
        self.context, self.builder = context, builder
        self.kind = context.get_value_type(kind)
        self.bytes = kind.bitwidth // 8
        self.vector = ir.VectorType(self.kind, BLOCK)
        self.zero = ir.Constant(self.vector, [0.0] * BLOCK)

    def whole(self, number: int) -> Any:
        """A whole number."""
        return self.context.get_constant(types.intp, number)

    def real(self, number: float) -> Any:
        """A number of the kind of the lanes."""
        return ir.Constant(self.kind, number)

    def data(self, kind: Any, array: Any) -> Any:
        """Where an array's numbers begin."""
        return self.context.make_array(kind)(self.context, self.builder, array).data

    def length(self, kind: Any, array: Any) -> Any:
        """How many rows an array has."""
        held = self.context.make_array(kind)(self.context, self.builder, array)
        return self.builder.extract_value(held.shape, 0)

    def variable(self, value: Any) -> Any:
        """A vector that changes; it stays in a register."""
        return cgutils.alloca_once_value(self.builder, value)

    def spot(self, rows: Any, at: Any) -> Any:
        """Where row `at` of an (n, 8) array begins."""
        return self.builder.gep(rows, [self.builder.mul(at, self.whole(BLOCK))])

    def take(self, spot: Any) -> Any:
        """Eight numbers from memory."""
        return self.builder.load(
            self.builder.bitcast(spot, self.vector.as_pointer()), align=self.bytes
        )

    def put(self, vector: Any, spot: Any) -> None:
        """Eight numbers to memory."""
        self.builder.store(
            vector, self.builder.bitcast(spot, self.vector.as_pointer()), align=self.bytes
        )

    def row(self, rows: Any, at: Any) -> Any:
        """The numbers of row `at`."""
        return self.take(self.spot(rows, at))

    def all(self, number: Any) -> Any:
        """The same number in all lanes."""
        first = self.builder.insert_element(
            ir.Constant(self.vector, ir.Undefined), number, ir.IntType(32)(0)
        )
        order = ir.Constant(ir.VectorType(ir.IntType(32), BLOCK), [0] * BLOCK)
        return self.builder.shuffle_vector(first, ir.Constant(self.vector, ir.Undefined), order)

    def place(self, spots: Any, at: Any) -> Any:
        """The feature of an entry."""
        found = self.builder.load(self.builder.gep(spots, [at]))
        return self.builder.sext(found, self.whole(0).type)

    def number(self, numbers: Any, at: Any) -> Any:
        """The value of an entry."""
        return self.builder.load(self.builder.gep(numbers, [at]))

    def gain(self, total: Any, spots: Any, numbers: Any, rows: Any, at: Any) -> None:
        """Add the value of an entry times the weights of its feature."""
        x = self.all(self.number(numbers, at))
        weights = self.row(rows, self.place(spots, at))
        more = self.builder.fmul(x, weights, flags=_CONTRACT)
        self.builder.store(
            self.builder.fadd(self.builder.load(total), more, flags=_CONTRACT), total
        )

    def signs(self, signs: Any, at: Any) -> Any:
        """+1 and -1 of a row as numbers."""
        small = ir.VectorType(ir.IntType(8), BLOCK)
        spot = self.builder.bitcast(self.spot(signs, at), small.as_pointer())
        return self.builder.sitofp(self.builder.load(spot, align=1), self.vector)

    def lower(self, one: Any, other: Any) -> Any:
        """The lower of two, lane by lane."""
        return self.builder.select(self.builder.fcmp_ordered("<", other, one), other, one)

    def higher(self, one: Any, other: Any) -> Any:
        """The higher of two, lane by lane."""
        return self.builder.select(self.builder.fcmp_ordered(">", other, one), other, one)

    def bits_beyond(self, vector: Any, limit: Any) -> Any:
        """Which lanes, whatever their sign, are above the limit: eight bits."""
        size = self.builder.select(
            self.builder.fcmp_ordered("<", vector, self.zero),
            self.builder.fsub(self.zero, vector),
            vector,
        )
        above = self.builder.fcmp_ordered(">", size, self.all(limit))
        return self.builder.bitcast(above, ir.IntType(BLOCK))

    def beyond(self, vector: Any, limit: Any, flag: int) -> Any:
        """`flag` where any lane is above the limit, else 0."""
        bits = self.bits_beyond(vector, limit)
        some = self.builder.icmp_unsigned("!=", bits, ir.IntType(BLOCK)(0))
        return self.builder.select(some, self.whole(flag), self.whole(0))
