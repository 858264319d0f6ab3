"""Compiled loop (Numba) that sums products of rows by class, for tables stored column by column.

Modules of compiled loops are imported only when a loop is about to run, since Numba is slow to
load. A loop is compiled on first use and cached on disk, so loops are few, small and flat.

`class_products` receives the memory address of each column. This loop sorts a tile of rows by
class, subtracts the reference of the class from each row, and stores the rows in an array that
stays in the cache (the panel). Each line of the panel is a column of the table. The products of
these lines are then summed class by class, in blocks of 4 x 3 products that are held in registers.
The last line contains ones, or the square roots of the weights, so that products with this line are
sums.
"""

from __future__ import annotations

from typing import Any

import numba
import numba.extending

from discriminant.cached_njit import fastmath_njit

_numba: Any = numba  # Numba has incomplete type annotations


def _float_pointer(context: Any, address: Any) -> Any:
    """Return the signature and the code generator of an intrinsic function for Numba.

    The function converts an address, an integer, to a pointer to float64 numbers.
    """
    pointer = _numba.types.CPointer(_numba.types.float64)

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], target.get_value_type(pointer))

    return pointer(_numba.types.intp), generate


_floats_at = _numba.extending.intrinsic(_float_pointer)
_array = _numba.carray


@fastmath_njit
def class_products(
    addresses: Any,
    codes: Any,
    centres: Any,
    root: Any,
    panel: Any,
    order: Any,
    ends: Any,
    products: Any,
) -> None:
    """Add products of the rows of class k, centred at `centres[k]`, to `products[k]`.

    Only the lower triangle is filled.

    `addresses` (d,) holds the memory addresses of the columns, each with n numbers. `codes` has the
    shape (n,) and `centres` (K, d). `root` (n,) holds the square roots of the weights, or is empty
    if all weights are 1. `panel` has the shape (4 m + 2, T); its line d contains ones, and the
    lines after it zeros. `order` (T,) and `ends` (K + 1,) are buffers. `products` has the shape (K,
    4 m, 4 m + 2), where 4 m > d.
    """
    (K, d), n, tile = centres.shape, len(codes), panel.shape[1]
    for lo in range(0, n, tile):
        tile_codes = codes[lo : min(lo + tile, n)]
        sort_by_class(tile_codes, order, ends)
        for j in range(d):
            values = _array(_floats_at(addresses[j]), (n,))[lo:]
            for k in range(K):
                first, last = ends[k], ends[k + 1]
                centre_values(values, order[first:last], centres[k, j], panel[j, first:last])
        if len(root):
            centre_values(root[lo:], order[: len(tile_codes)], 0.0, panel[d])
            for j in range(d):
                panel[j] *= panel[d]
        for k in range(K):
            if ends[k + 1] > ends[k]:
                add_inner_products(panel, ends[k], ends[k + 1], products[k])


@fastmath_njit
def sort_by_class(codes: Any, order: Any, ends: Any) -> None:
    """Sort rows by class: the rows of class k are `order[ends[k]:ends[k + 1]]`."""
    ends[:] = 0
    for code in codes:
        ends[code + 1] += 1
    for k in range(1, len(ends)):
        ends[k] += ends[k - 1]
    for i in range(len(codes)):
        order[ends[codes[i]]] = i
        ends[codes[i]] += 1
    for k in range(len(ends) - 1, 0, -1):
        ends[k] = ends[k - 1]
    ends[0] = 0


@fastmath_njit
def centre_values(values: Any, rows: Any, centre: Any, out: Any) -> None:
    """Store `values[rows] - centre` in `out`."""
    for t in range(len(rows)):
        out[t] = values[rows[t]] - centre


@fastmath_njit
def add_inner_products(panel: Any, lo: Any, hi: Any, out: Any) -> None:
    """Add the inner product of `panel[i, lo:hi]` and `panel[j, lo:hi]` to `out[i, j]` for j <= i.

    Some entries with j > i are computed as well, because products are computed in blocks of 4 x 3.
    """
    for i in range(0, len(out), 4):
        a0, a1 = panel[i, lo:hi], panel[i + 1, lo:hi]
        a2, a3 = panel[i + 2, lo:hi], panel[i + 3, lo:hi]
        for j in range(0, i + 4, 3):
            b0, b1, b2 = panel[j, lo:hi], panel[j + 1, lo:hi], panel[j + 2, lo:hi]
            s00 = s01 = s02 = s10 = s11 = s12 = 0.0
            s20 = s21 = s22 = s30 = s31 = s32 = 0.0
            for t in range(hi - lo):
                x0, x1, x2 = b0[t], b1[t], b2[t]
                y0, y1, y2, y3 = a0[t], a1[t], a2[t], a3[t]
                s00, s01, s02 = s00 + y0 * x0, s01 + y0 * x1, s02 + y0 * x2
                s10, s11, s12 = s10 + y1 * x0, s11 + y1 * x1, s12 + y1 * x2
                s20, s21, s22 = s20 + y2 * x0, s21 + y2 * x1, s22 + y2 * x2
                s30, s31, s32 = s30 + y3 * x0, s31 + y3 * x1, s32 + y3 * x2
            out[i, j] += s00
            out[i, j + 1] += s01
            out[i, j + 2] += s02
            out[i + 1, j] += s10
            out[i + 1, j + 1] += s11
            out[i + 1, j + 2] += s12
            out[i + 2, j] += s20
            out[i + 2, j + 1] += s21
            out[i + 2, j + 2] += s22
            out[i + 3, j] += s30
            out[i + 3, j + 1] += s31
            out[i + 3, j + 2] += s32
