"""What rows are truly labelled with, as one sparse matrix of codes.

    indicator    (n, L), sparse or not, with 1 where a row has a label
    codes        (n,) the label of each row, with L
    names        (n,) the label of each row, or a set of labels for each, with `classes`: the code
                 of a label is its place there

A name that is not among the classes is refused: no list of their codes could have it.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse

from discriminant.errors import LabelError, RankedLabelsError
from discriminant.table.labels import check_kinds, encode_labels
from discriminant.table.schema import Labels, canonical_rows

_SETS = (set, frozenset, list, tuple, np.ndarray)


def indicator(truth: Any, *, labels: int | None = None, classes: Any = None) -> Any:
    """The truth as (n, L) CSR, sorted and without entries that are zero.

    >>> indicator([{"a", "c"}, set()], classes=["a", "b", "c"]).toarray().astype(int).tolist()
    [[1, 0, 1], [0, 0, 0]]
    """
    known = None if classes is None else np.asarray(classes)
    if known is not None and labels is not None and labels != len(known):
        raise RankedLabelsError.of_values("classes", known.shape, labels)
    if sparse.issparse(truth):
        return _of_matrix(truth, labels if known is None else len(known))
    if known is None:
        return _of_codes(truth, labels)
    held = truth if isinstance(truth, list | tuple) else np.asarray(truth)
    if isinstance(held, np.ndarray) and held.ndim == 2:
        return _of_table(held, known)
    if isinstance(held, np.ndarray) and held.ndim != 1:
        raise RankedLabelsError.of_truth(held.shape, held.dtype, len(known))
    if _are_sets(held):
        if _could_be_ones(held, len(known)):
            raise RankedLabelsError.as_rows_of_ones(len(known))
        ends = np.concatenate([[0], np.cumsum([len(own) for own in held])])
        return _of_names(list(chain.from_iterable(held)), ends, known)
    for row, own in enumerate(held):
        if isinstance(own, _SETS) != isinstance(held[0], _SETS):
            raise RankedLabelsError.mixed(row, own)
    return _of_names(held, np.arange(len(held) + 1), known)


def _are_sets(held: Any) -> bool:
    """Whether there is a set of labels for each row, or a list of them."""
    return len(held) > 0 and all(isinstance(own, _SETS) for own in held)


def _could_be_ones(held: Any, labels: int) -> bool:
    """Whether lists may be rows of an indicator: of its length, with no number but 0 and 1."""
    plain = all(isinstance(own, list | tuple) and len(own) == labels for own in held)
    return labels > 1 and plain and set(chain.from_iterable(held)) <= {0, 1}


def _of_table(held: Any, known: Labels) -> Any:
    """An indicator, or a table whose rows are the names that each has."""
    if held.dtype.kind in "OUST":
        return _of_names(held.ravel(), np.arange(0, held.size + 1, held.shape[1]), known)
    if not np.isin(held, (0, 1)).all():
        raise RankedLabelsError.of_truth(held.shape, held.dtype, len(known))
    return _of_matrix(sparse.csr_matrix(held), len(known))


def _of_names(names: Any, ends: Any, known: Labels) -> Any:
    """Names one after the other, those of a row up to its end."""
    place = {label: code for code, label in enumerate(known.tolist())}
    if len(place) < len(known):
        raise LabelError.twice(known.tolist())
    labels, codes = encode_labels(names) if len(names) else (known[:0], np.zeros(0, np.intp))
    check_kinds(labels, known)
    unknown = [label for label in labels.tolist() if label not in place]
    if unknown:
        raise RankedLabelsError.unknown(unknown, len(known))
    at = np.array([place[label] for label in labels.tolist()], dtype=np.int64)[codes]
    found = sparse.csr_matrix((np.ones(len(at)), at, ends), (len(ends) - 1, len(known)))
    return _of_matrix(found, None)


def _of_codes(truth: Any, labels: int | None) -> Any:
    """One code for each row, or a dense matrix."""
    try:
        codes = np.asarray(truth)
    except ValueError:  # lists of different lengths
        raise RankedLabelsError.of_names() from None
    if codes.dtype.kind in "OUST":
        raise RankedLabelsError.of_names()
    if codes.ndim == 2:
        return _of_matrix(sparse.csr_matrix(codes), labels)
    if labels is None or codes.dtype.kind not in "iu":
        raise RankedLabelsError.of_truth(codes.shape, codes.dtype, labels)
    if codes.size and not 0 <= codes.min() <= codes.max() < labels:
        raise RankedLabelsError.of_code(int(codes.min()), int(codes.max()), labels)
    ends = np.arange(len(codes) + 1)
    return sparse.csr_matrix((np.ones(len(codes)), codes, ends), (len(codes), labels))


def _of_matrix(truth: Any, labels: int | None) -> Any:
    found = canonical_rows(truth)
    if labels is not None and labels != found.shape[1]:
        raise RankedLabelsError.of_values("truth", found.shape, labels)
    return found
