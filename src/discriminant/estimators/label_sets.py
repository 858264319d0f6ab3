"""What rows are labelled with: one label each, or sets of labels, as one sparse matrix.

    one          y is a vector: a label for each row
    indicator    y is an (N, L) matrix, sparse or dense, with 1 where a row has a label
    sets         y is a list of sets (or lists) of labels

`members` has a 1 where a row has a label, each label of a row once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discriminant.errors import (
    LabelError,
    LabelSetError,
    UnlabelledRowsWarning,
    UnseenLabelsWarning,
    tell,
)
from discriminant.table.labels import encode_labels
from discriminant.table.schema import Labels, canonical_rows, is_sparse

Kind = Literal["one", "indicator", "sets"]
_SETS = (set, frozenset, list, tuple, np.ndarray)


@dataclass(frozen=True, slots=True, eq=False)
class LabelSets:
    """The labels of N rows, L in all."""

    kind: Kind
    labels: Labels  # (L,) sorted
    members: sparse.csr_matrix  # (N, L) of ones, float32

    def tell(self) -> None:
        """Say which labels have no rows, and how many rows have no labels."""
        count = np.bincount(self.members.indices, minlength=len(self.labels))
        unseen = np.flatnonzero(count == 0)
        if len(unseen):
            names = [*self.labels[unseen[:5]].tolist(), *unseen[5:].tolist()]
            tell(UnseenLabelsWarning.of(names, len(self.labels)))
        without = int((np.diff(self.members.indptr) == 0).sum())
        if without:
            tell(UnlabelledRowsWarning.of(without, self.members.shape[0]))


def open_labels(y: Any, *, name: str) -> LabelSets:
    """The labels of rows at the door, of whatever kind."""
    if y is None:
        raise LabelError.absent(name)
    if is_sparse(y):
        return _of_matrix(sparse.csr_matrix(canonical_rows(y)))
    if _are_sets(y):
        return _of_sets(y)
    if hasattr(y, "columns") and len(getattr(y, "shape", ())) == 2 and y.shape[1] > 1:
        found = open_labels(np.asarray(y), name=name)  # a data frame, a column for each label
        return replace(found, labels=np.array(list(y.columns)))
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] > 1 and y.dtype.kind in "biuf":
        return _of_matrix(sparse.csr_matrix(y))
    shape = getattr(y, "shape", ())
    if len(shape) > 2 or shape[1:] == (0,):
        raise LabelSetError.of_shape(shape)
    labels, codes = encode_labels(y)
    starts = np.arange(len(codes) + 1)
    return LabelSets("one", labels, _ones(codes, starts, len(labels)))


def _are_sets(y: Any) -> bool:
    if not isinstance(y, list | tuple):
        y = np.asarray(y)
        if y.ndim != 1 or y.dtype.kind != "O":
            return False
    return len(y) > 0 and isinstance(y[0], _SETS)


def _of_sets(y: Sequence[Any]) -> LabelSets:
    for row, held in enumerate(y):
        if not isinstance(held, _SETS):
            raise LabelSetError.no_set(row, type(held).__name__)
    starts = np.concatenate([[0], np.cumsum([len(held) for held in y])])
    if not starts[-1]:
        raise LabelSetError.all_empty(len(y))
    labels, codes = encode_labels(list(chain.from_iterable(y)))
    return LabelSets("sets", labels, _ones(codes, starts, len(labels)))


def _of_matrix(y: sparse.csr_matrix) -> LabelSets:
    if y.dtype.kind not in "biuf":
        raise LabelSetError.of_shape(y.shape)
    y.check_format(full_check=True)
    for at in np.flatnonzero(~((y.data >= 0) & (y.data % 1 == 0))):  # counts are no fault
        row = int(np.searchsorted(y.indptr, at, side="right")) - 1
        raise LabelSetError.of_entry(row, int(y.indices[at]), y.data[at])
    if not y.data.all():
        y = y.copy()  # its arrays may be the caller's
        y.eliminate_zeros()
    if not y.nnz:
        raise LabelSetError.all_empty(y.shape[0])
    return LabelSets("indicator", np.arange(y.shape[1]), _ones(y.indices, y.indptr, y.shape[1]))


def _ones(codes: npt.NDArray[Any], starts: npt.NDArray[Any], labels: int) -> sparse.csr_matrix:
    ones = np.ones(len(codes), np.float32)
    shape = (len(starts) - 1, labels)
    found = sparse.csr_matrix((ones, codes.astype(np.int32), starts), shape=shape)
    found.sum_duplicates()
    found.data[:] = 1.0
    return found
