"""Sparse rows with sets of labels, written as XMC text and svmlight: what `xmc` reads.

What no reader takes is refused before anything is written: values that are not finite, labels that
are neither there nor not, a row of nothing in svmlight.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from scipy import sparse

from discriminant.errors import LabelSetError, ShapeError, SparseFileError
from discriminant.table.sparse_pieces import Path, written

_AT_ONCE = 10_000  # rows turned into text together


def write_xmc(path: Path, features: Any, labels: Any) -> None:
    """Write rows as XMC text, packed if the name ends with .gz or .xz; reading gives the same."""
    x, y = _pair(path, features, labels)
    with written(path) as file:
        file.write(f"{x.shape[0]} {x.shape[1]} {y.shape[1]}\n".encode())
        for lo in range(0, x.shape[0], _AT_ONCE):
            part = slice(lo, lo + _AT_ONCE)
            file.write("".join(_text(x[part], _sets(y[part]), first=0)).encode())


def write_svmlight(path: Path, features: Any, labels: Any, *, first: Literal[0, 1] = 1) -> None:
    """Write rows as svmlight; `labels` (n,) numbers, or an (n, L) matrix of sets of labels."""
    if sparse.issparse(labels) or np.ndim(labels) == 2:
        x, y = _pair(path, features, labels)
        _refuse_nothing(path, x, y)
    else:
        x, y = _finite_csr(path, features), np.asarray(labels, dtype=np.float64)
        if x.shape[0] != len(y):
            raise ShapeError.of_lengths("labels", len(y), x.shape[0])
    with written(path) as file:
        for lo in range(0, x.shape[0], _AT_ONCE):
            part = slice(lo, lo + _AT_ONCE)
            some = [_plain(one) for one in y[part].tolist()] if y.ndim == 1 else _sets(y[part])
            file.write("".join(_text(x[part], some, first=first)).encode())


# --- inside --------------------------------------------------------------------------------------


def _pair(path: Path, features: Any, labels: Any) -> tuple[Any, Any]:
    if not sparse.issparse(labels) and np.asarray(labels).dtype.kind not in "biuf":
        raise LabelSetError.of_names()
    x, y = _finite_csr(path, features), _sorted_csr(labels)
    if x.shape[0] != y.shape[0]:
        raise ShapeError.of_lengths("labels", y.shape[0], x.shape[0])
    y.eliminate_zeros()
    for at in np.flatnonzero(~((y.data >= 1) & (y.data % 1 == 0))):
        raise LabelSetError.of_entry(_row(y, at), int(y.indices[at]), y.data[at])
    return x, y


def _finite_csr(path: Path, values: Any) -> Any:
    """Rows whose numbers can be read again."""
    found = _sorted_csr(values)
    for at in np.flatnonzero(~np.isfinite(found.data)):
        raise SparseFileError.unwritable(
            str(path), _row(found, at), int(found.indices[at]), found.data[at]
        )
    return found


def _row(matrix: Any, at: Any) -> int:
    """The row of an entry."""
    return int(np.searchsorted(matrix.indptr, at, side="right")) - 1


def _refuse_nothing(path: Path, x: Any, y: Any) -> None:
    """svmlight has no way to write a row without labels and features."""
    nothing = np.flatnonzero((np.diff(x.indptr) == 0) & (np.diff(y.indptr) == 0))
    if len(nothing):
        raise SparseFileError.of_nothing(str(path), int(nothing[0]), len(nothing))


def _sorted_csr(values: Any) -> Any:
    found = sparse.csr_matrix(values, copy=True)
    found.sum_duplicates()
    return found


def _sets(y: Any) -> list[str]:
    """The labels of each row, parted by commas."""
    told = list(map(str, y.indices.tolist()))
    ends = y.indptr.tolist()
    return [",".join(told[lo:hi]) for lo, hi in pairwise(ends)]


def _plain(number: float) -> str:
    return str(int(number)) if number.is_integer() else repr(number)


def _text(x: Any, labels: list[str], *, first: int) -> Iterator[str]:
    """Lines of rows. A value has the fewest digits that read back as the same number."""
    told = [
        f"{feature + first}:{value}"
        for feature, value in zip(x.indices.tolist(), x.data.astype(str).tolist(), strict=True)
    ]
    ends = x.indptr.tolist()
    for row, (lo, hi) in enumerate(pairwise(ends)):
        yield f"{labels[row]} {' '.join(told[lo:hi])}\n" if hi > lo else f"{labels[row]}\n"
