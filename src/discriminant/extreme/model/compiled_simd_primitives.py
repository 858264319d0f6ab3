"""SIMD operations on eight numbers at a time, and loops that unpack chunks of weights.

Numba does not keep vectors of eight numbers in registers, so a few functions are written in LLVM
IR. A vector holds one number for each of the eight children of a block; its eight places are called
lanes. Sums are formed separately in each lane, and the compiler is not allowed to reorder their
terms. The functions work for float32 and float64 and do not check their arguments: arrays must be
contiguous and of one type, as `gather_rows` and `solve_children` create them. The search uses
`prefetch` too.

The unpacking loops expand the bitmaps of children and fill chunks with zeros for weights that are
not stored; the packed format is described in `extreme.model.fitted_tree`.
"""

from __future__ import annotations

from typing import Any, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils as _cgutils, types
from numba.extending import intrinsic, overload

from discriminant.cached_njit import F, cached_njit, inline_njit
from discriminant.extreme.model.training_tasks import BLOCK

_MAX_CELLS = 1 << 18  # largest size of a chunk that is expanded to a dense array
_MAX_CELLS_PER_WEIGHT = 4  # largest ratio of that size to the number of weights
# 2 to the difference of the exponent biases of single and half precision
_EXPONENT_RATIO = np.float32(2.0**112)


def llvm_intrinsic(declaration: F) -> F:
    """Declare an LLVM intrinsic.

    `declaration` returns its signature and the function that generates its code.
    """
    return cast(F, intrinsic(declaration))


def as_real(weight: Any) -> Any:
    """Return a weight as a float; a half-precision weight is given by its 16 bits."""
    return weight


@overload(as_real)
def _overload_real(weight: Any) -> Any:
    if isinstance(weight, numba.types.Integer):
        return _half_to_single
    return _identity


def _identity(weight: Any) -> Any:
    return weight


def _half_to_single(weight: Any) -> Any:
    bits = np.uint32(weight)
    size = np.uint32((bits & np.uint32(0x7FFF)) << np.uint32(13)).view(np.float32) * _EXPONENT_RATIO
    return -size if bits & np.uint32(0x8000) else size


@llvm_intrinsic
def pointer(context: Any, address: Any = None) -> Any:
    """Return an address as a pointer."""

    def generate(_: Any, builder: Any, __: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], cgutils.voidptr_t)

    return types.voidptr(address), generate


@llvm_intrinsic
def lowest_bit(context: Any, bits: Any = None) -> Any:
    """Return the index of the lowest bit that is set; at least one bit must be set."""

    def generate(_: Any, builder: Any, __: Any, args: Any) -> Any:
        return builder.cttz(args[0], cgutils.true_bit)

    return bits(bits), generate


@cached_njit
def expand_children(node: int, layer: Any, expanded: Any) -> Any:
    """Return the children of a chunk, decoded from bitmaps.

    The result is written to `expanded`, or to a new array if `expanded` is too small.
    """
    low, high = layer.chunks[node], layer.chunks[node + 1]
    row_bytes = (layer.children[node + 1] - layer.children[node] + 7) >> 3
    size = 8 * (high - low) * row_bytes
    if len(expanded) < size:
        expanded = np.empty(size, np.uint8)
    e, at = 0, layer.marks[node]
    for _ in range(low, high):
        for byte in range(row_bytes):
            bits = np.uint64(layer.places[at + byte])
            while bits != np.uint64(0):
                expanded[e] = 8 * byte + np.int64(lowest_bit(bits))
                e += 1
                bits &= bits - np.uint64(1)
        at += row_bytes
    return expanded


@cached_njit
def is_dense(node: int, layer: Any) -> Any:
    """Return whether a chunk has enough weights for expanding it to a dense array to be faster."""
    low, high = layer.chunks[node], layer.chunks[node + 1]
    cells = (high - low) * (layer.children[node + 1] - layer.children[node])
    begin = layer.begins[low >> 5] + layer.beyond[low]
    end = layer.begins[high >> 5] + layer.beyond[high]
    return cells <= _MAX_CELLS and cells <= _MAX_CELLS_PER_WEIGHT * (end - begin)


@cached_njit
def densify(node: int, layer: Any, dense: Any) -> Any:
    """Expand a chunk to a dense array, with zeros for weights that are not stored.

    The result is written to `dense`, or to a new array if `dense` is too small.
    """
    low, high = layer.chunks[node], layer.chunks[node + 1]
    children = layer.children[node + 1] - layer.children[node]
    if len(dense) < (high - low) * children:
        dense = np.empty((high - low) * children, dense.dtype)
    dense[: (high - low) * children] = 0
    row_bytes = (children + 7) >> 3
    for r in range(low, high):
        margin = dense[(r - low) * children : (r - low + 1) * children]
        first = layer.begins[r >> 5] + layer.beyond[r]
        last = layer.begins[(r + 1) >> 5] + layer.beyond[r + 1]
        if layer.listed == 0:
            at = layer.marks[node] + (r - low) * row_bytes
            add_bits(first, 1.0, layer.weight, layer.places, at, row_bytes, margin)
        for e in range(first, last if layer.listed else first):
            margin[_child(e, layer)] = as_real(layer.weight[e])
    return dense


@inline_njit
def _child(e: int, layer: Any) -> Any:
    """Return the child of an entry, for children stored as a list."""
    if layer.listed == 1:
        return np.int64(layer.places[e])
    if layer.listed == 2:
        return np.int64(layer.places.view(np.uint16)[e])
    return np.int64(layer.places.view(np.uint32)[e])


@inline_njit
def add_bits(
    e: int, x: float, weight: Any, places: Any, bits: int, row_bytes: int, margin: Any
) -> None:
    """Add x times the weights, beginning at entry e, to the margins of children with a set bit."""
    for first in range(0, row_bytes, 8):
        word = np.uint64(0)
        for b in range(min(row_bytes - first, 8)):
            word |= np.uint64(places[bits + first + b]) << np.uint64(8 * b)
        while word != np.uint64(0):
            margin[8 * first + np.int64(lowest_bit(word))] += x * as_real(weight[e])
            e += 1
            word &= word - np.uint64(1)


cgutils: Any = _cgutils  # llvmlite has no type annotations
_CONTRACT = ("contract",)  # flag that allows fused multiply-add
MOVED, ACTIVE = 1, 2  # bits of the return value of `dual_step`


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
    """Set `out` (8,) to x.P + bias, for the row x with the entries `first` to `beyond`, exclusive.

    The bias is the last row of P (features + 1, 8). Even and odd entries are summed separately, so
    that the processor can compute both sums in parallel.
    """

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = Lanes(context, builder, P.dtype)
        indices, numbers, rows, target = (lanes.data(sig.args[k], args[k]) for k in (0, 1, 2, 5))
        begin, end = args[3], args[4]
        last = builder.sub(lanes.length(P, args[2]), lanes.integer(1))
        sums = [lanes.variable(lanes.load_row(rows, last)), lanes.variable(lanes.zero)]
        pairs = builder.lshr(builder.sub(end, begin), lanes.integer(1))
        with cgutils.for_range(builder, pairs) as pair:
            at = builder.add(begin, builder.shl(pair.index, lanes.integer(1)))
            for odd, total in enumerate(sums):
                lanes.add_entry(total, indices, numbers, rows, builder.add(at, lanes.integer(odd)))
        odd = builder.trunc(builder.sub(end, begin), ir.IntType(1))
        with builder.if_then(odd):
            lanes.add_entry(sums[0], indices, numbers, rows, builder.sub(end, lanes.integer(1)))
        total = builder.fadd(builder.load(sums[0]), builder.load(sums[1]))
        lanes.store(total, target)
        return context.get_dummy_value()

    return types.void(places, values, P, types.intp, types.intp, out), generate


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
    """Add x times `step` (8,) to the weights W (features + 1, 8), and `step` to the bias."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = Lanes(context, builder, W.dtype)
        indices, numbers, rows, steps = (lanes.data(sig.args[k], args[k]) for k in (0, 1, 2, 5))
        move = lanes.load(steps)
        last = builder.sub(lanes.length(W, args[2]), lanes.integer(1))
        lanes.store(builder.fadd(lanes.load_row(rows, last), move), lanes.row_pointer(rows, last))
        with cgutils.for_range_slice(
            builder, args[3], args[4], lanes.integer(1), intp=lanes.integer(1).type
        ) as (at, _):
            target = lanes.row_pointer(rows, lanes.load_index(indices, at))
            x = lanes.broadcast(lanes.load_number(numbers, at))
            term = builder.fmul(x, move, flags=_CONTRACT)
            lanes.store(builder.fadd(lanes.load(target), term, flags=_CONTRACT), target)
        return context.get_dummy_value()

    return types.void(places, values, W, types.intp, types.intp, step), generate


@llvm_intrinsic
def dual_step(
    context: Any,
    sign: Any = None,
    alpha: Any = None,
    diagonal: Any = None,
    i: Any = None,
    square: Any = None,
    tiny: Any = None,
    rest: Any = None,
    step: Any = None,
    bounds: Any = None,
) -> Any:
    """Make one step of coordinate descent on row i, for eight children.

    When the function is called, `step` (8,) holds x.w + b; when it returns, the change of alpha t.
    `bounds` (2, 8) are the highest and lowest projected gradients so far. Returns MOVED if a step
    is above `tiny`, plus ACTIVE if a projected gradient is above `rest`.
    """

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = Lanes(context, builder, alpha.dtype)
        signs, duals, diagonal_data, steps, bound_data = (
            lanes.data(sig.args[k], args[k]) for k in (0, 1, 2, 7, 8)
        )
        at, one = args[3], lanes.broadcast(lanes.real(1.0))
        t = lanes.load_signs(signs, at)
        dual = lanes.row_pointer(duals, at)
        a = lanes.load(dual)
        if diagonal.ndim == 2:
            own_diagonal = lanes.load_row(diagonal_data, at)
        else:
            own_diagonal = lanes.broadcast(builder.load(diagonal_data))
        margin = builder.fmul(t, lanes.load(steps), flags=_CONTRACT)
        gradient = builder.fadd(
            builder.fsub(margin, one, flags=_CONTRACT),
            builder.fmul(a, own_diagonal, flags=_CONTRACT),
            flags=_CONTRACT,
        )
        inside = builder.fcmp_ordered(">", a, lanes.zero)
        projected = builder.select(inside, gradient, lanes.minimum(gradient, lanes.zero))
        for which, pick in ((0, lanes.maximum), (1, lanes.minimum)):
            bound = lanes.row_pointer(bound_data, lanes.integer(which))
            lanes.store(pick(lanes.load(bound), projected), bound)
        curve = builder.fadd(builder.fadd(lanes.broadcast(args[4]), one), own_diagonal)
        new = lanes.maximum(builder.fsub(a, builder.fdiv(gradient, curve)), lanes.zero)
        move = builder.fmul(builder.fsub(new, a), t)
        lanes.store(new, dual)
        lanes.store(move, steps)
        moved = lanes.flag_if_above(move, args[5], MOVED)
        return builder.or_(moved, lanes.flag_if_above(projected, args[6], ACTIVE))

    real = alpha.dtype
    signature = types.int64(sign, alpha, diagonal, types.intp, real, real, real, step, bounds)
    return signature, generate


@llvm_intrinsic
def lanes_above(context: Any, W: Any = None, row: Any = None, threshold: Any = None) -> Any:
    """Return eight bits, set for the weights of a row of W that exceed the threshold in size."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = Lanes(context, builder, W.dtype)
        numbers = lanes.load_row(lanes.data(sig.args[0], args[0]), args[1])
        return builder.zext(lanes.bits_above(numbers, args[2]), lanes.integer(0).type)

    return types.uint64(W, types.intp, W.dtype), generate


@llvm_intrinsic
def prefetch(context: Any, rows: Any = None, at: Any = None) -> Any:
    """Prefetch row `at` of a two-dimensional array, or element `at` of a vector, into the cache."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = context.make_array(rows)(context, builder, args[0])
        width = BLOCK if rows.ndim == 2 else 1
        at = builder.mul(args[1], ir.Constant(args[1].type, width))
        kind = context.get_data_type(rows.dtype).as_pointer()
        element = builder.gep(builder.bitcast(array.data, kind), [at])
        void = builder.bitcast(element, cgutils.voidptr_t)
        word = ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, word, word, word])
        function = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0")
        builder.call(function, [void, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(rows, types.intp), generate


class Lanes:
    """Builder of LLVM instructions on vectors of eight numbers."""

    def __init__(self, context: Any, builder: Any, kind: Any) -> None:
        self.context, self.builder = context, builder
        self.kind = context.get_value_type(kind)
        self.bytes = kind.bitwidth // 8
        self.vector = ir.VectorType(self.kind, BLOCK)
        self.zero = ir.Constant(self.vector, [0.0] * BLOCK)

    def integer(self, number: int) -> Any:
        """Return an integer constant."""
        return self.context.get_constant(types.intp, number)

    def real(self, number: float) -> Any:
        """Return a constant of the type of the lanes."""
        return ir.Constant(self.kind, number)

    def data(self, kind: Any, array: Any) -> Any:
        """Return the pointer to the first element of an array."""
        return self.context.make_array(kind)(self.context, self.builder, array).data

    def length(self, kind: Any, array: Any) -> Any:
        """Return the number of rows of an array."""
        struct = self.context.make_array(kind)(self.context, self.builder, array)
        return self.builder.extract_value(struct.shape, 0)

    def variable(self, value: Any) -> Any:
        """Allocate a vector variable; LLVM keeps it in a register."""
        return cgutils.alloca_once_value(self.builder, value)

    def row_pointer(self, rows: Any, at: Any) -> Any:
        """Return the pointer to row `at` of an (n, 8) array."""
        return self.builder.gep(rows, [self.builder.mul(at, self.integer(BLOCK))])

    def load(self, pointer: Any) -> Any:
        """Load eight numbers from memory."""
        return self.builder.load(
            self.builder.bitcast(pointer, self.vector.as_pointer()), align=self.bytes
        )

    def store(self, vector: Any, pointer: Any) -> None:
        """Store eight numbers to memory."""
        self.builder.store(
            vector, self.builder.bitcast(pointer, self.vector.as_pointer()), align=self.bytes
        )

    def load_row(self, rows: Any, at: Any) -> Any:
        """Load row `at` of an (n, 8) array."""
        return self.load(self.row_pointer(rows, at))

    def broadcast(self, number: Any) -> Any:
        """Return a vector with a number in all lanes."""
        first = self.builder.insert_element(
            ir.Constant(self.vector, ir.Undefined), number, ir.IntType(32)(0)
        )
        order = ir.Constant(ir.VectorType(ir.IntType(32), BLOCK), [0] * BLOCK)
        return self.builder.shuffle_vector(first, ir.Constant(self.vector, ir.Undefined), order)

    def load_index(self, indices: Any, at: Any) -> Any:
        """Load the feature index of an entry."""
        index = self.builder.load(self.builder.gep(indices, [at]))
        return self.builder.sext(index, self.integer(0).type)

    def load_number(self, numbers: Any, at: Any) -> Any:
        """Load the value of an entry."""
        return self.builder.load(self.builder.gep(numbers, [at]))

    def add_entry(self, total: Any, indices: Any, numbers: Any, rows: Any, at: Any) -> None:
        """Return `total` plus (value of an entry) times (weights of its feature)."""
        x = self.broadcast(self.load_number(numbers, at))
        weights = self.load_row(rows, self.load_index(indices, at))
        term = self.builder.fmul(x, weights, flags=_CONTRACT)
        self.builder.store(
            self.builder.fadd(self.builder.load(total), term, flags=_CONTRACT), total
        )

    def load_signs(self, signs: Any, at: Any) -> Any:
        """Load the signs (+1 or -1) of a row as floats."""
        small = ir.VectorType(ir.IntType(8), BLOCK)
        pointer = self.builder.bitcast(self.row_pointer(signs, at), small.as_pointer())
        return self.builder.sitofp(self.builder.load(pointer, align=1), self.vector)

    def minimum(self, a: Any, b: Any) -> Any:
        """Return the minimum of two vectors, lane by lane."""
        return self.builder.select(self.builder.fcmp_ordered("<", b, a), b, a)

    def maximum(self, a: Any, b: Any) -> Any:
        """Return the maximum of two vectors, lane by lane."""
        return self.builder.select(self.builder.fcmp_ordered(">", b, a), b, a)

    def bits_above(self, vector: Any, limit: Any) -> Any:
        """Return eight bits, set for the lanes that exceed the limit in absolute value."""
        size = self.builder.select(
            self.builder.fcmp_ordered("<", vector, self.zero),
            self.builder.fsub(self.zero, vector),
            vector,
        )
        above = self.builder.fcmp_ordered(">", size, self.broadcast(limit))
        return self.builder.bitcast(above, ir.IntType(BLOCK))

    def flag_if_above(self, vector: Any, limit: Any, flag: int) -> Any:
        """Return `flag` if any lane exceeds the limit in absolute value, else 0."""
        bits = self.bits_above(vector, limit)
        any_above = self.builder.icmp_unsigned("!=", bits, ir.IntType(BLOCK)(0))
        return self.builder.select(any_above, self.integer(flag), self.integer(0))
