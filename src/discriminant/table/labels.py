"""Labels to codes: a label is what the user calls a class, a code its number.

Sorting a million labels takes longer than summing their rows, so integers and booleans are coded
by counting, and only what cannot be counted is sorted. Labels keep their kind: text, number and
boolean never become one another, and no two become one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import LabelError, tell
from discriminant.table.schema import Codes, Labels

_EXACT = 2.0**53  # from here on float64 does not hold every whole number
_MOST = (1 << 63) - 1  # the largest int64
_NUMBERS = (int, float, np.integer, np.floating)
_COUNTABLE = 1 << 16  # a range of integers this small is counted whatever the number of rows


def encode_labels(y: Any) -> tuple[Labels, Codes]:
    """Distinct labels in order, and the code of every row.

    >>> labels, codes = encode_labels(["b", "a", "b"])
    >>> labels.tolist(), codes.tolist()
    (['a', 'b'], [1, 0, 1])
    """
    y = one_dimensional(y)
    if y.dtype.kind == "b":
        labels, codes = _count(y.view(np.uint8))
        return labels.astype(bool), codes
    if y.dtype.kind in "iu":
        return _count(y)
    if y.dtype.kind == "f":
        _check_whole(y)
        if len(y) and np.abs(y).max() >= _EXACT:
            return _sort(y)
        labels, codes = _count(y.astype(np.int64))
        return labels.astype(y.dtype), codes
    if y.dtype.kind == "O":
        return _encode_objects(y)
    if y.dtype.kind in "mM" and np.isnat(y).any():
        raise LabelError.missing(np.flatnonzero(np.isnat(y)).tolist())
    return _sort(y)


def missing_labels(y: Any) -> npt.NDArray[np.bool_]:
    """(n,) whether a label is missing: None, NaN, NaT or NA.

    >>> missing_labels(["a", None]).tolist(), missing_labels([1, 2]).tolist()
    ([False, True], [False, False])
    """
    found = np.asarray(y)
    if found.dtype.kind == "f":
        return np.asarray(np.isnan(found))
    if found.dtype.kind in "mM":
        return np.asarray(np.isnat(found))
    if found.dtype.kind != "O" or found.ndim != 1:
        return np.zeros(len(found), dtype=bool)
    return np.array([_is_missing(value) for value in found], dtype=bool)


def code_labels(y: Any, labels: Labels) -> Codes:
    """Codes of rows whose classes are already known; refuses any other."""
    found, codes = encode_labels(y)
    check_kinds(found, labels)
    place = {label: code for code, label in enumerate(labels.tolist())}
    unknown = [label for label in found.tolist() if label not in place]
    if unknown:
        raise LabelError.unknown(unknown, labels.tolist())
    return compact(np.array([place[v] for v in found.tolist()], dtype=np.intp)[codes], len(labels))


def check_kinds(ours: Labels, theirs: Labels) -> None:
    """Refuse to put texts beside numbers, or booleans beside either."""
    if len(ours) and len(theirs) and _kind(ours) != _kind(theirs):
        raise LabelError.mixed(
            sorted({type(v).__name__ for v in (*ours.tolist(), *theirs.tolist())})
        )


def _kind(labels: Labels) -> str:
    """Text, number, boolean or whatever else sorted labels are."""
    first = labels[:1].tolist()[0]
    if isinstance(first, bool):
        return "boolean"
    return "number" if isinstance(first, _NUMBERS) else type(first).__name__


def same_labels(ours: Labels, theirs: Labels) -> bool:
    """Whether both are the same classes; True is not 1."""
    alike = (ours.dtype.kind == "b") == (theirs.dtype.kind == "b")
    return alike and np.array_equal(ours, theirs)


def joined(ours: Labels, theirs: Labels) -> Labels:
    """The labels of both, sorted, each once."""
    check_kinds(ours, theirs)
    if not len(ours) or not len(theirs):
        return ours if len(ours) else theirs
    both = np.concatenate([ours, theirs])
    if both.dtype.kind == "f" and not both.dtype == ours.dtype == theirs.dtype:
        # float64 has no room for all integers: sort them as they are, and see
        return encode_labels(_objects([*ours.tolist(), *theirs.tolist()]))[0]
    return np.unique(both)


def one_dimensional(y: Any) -> npt.NDArray[Any]:
    """`y` as a vector; a single column is unrolled, as scikit-learn does, with its warning."""
    found = np.asarray(y)
    if isinstance(y, (list, tuple)) and found.ndim == 1 and found.dtype.kind in "USiufb":
        kinds = {type(value) for value in y}
        if len(kinds) > 1 or (kinds == {int} and found.dtype.kind == "f"):
            found = _objects(y)  # NumPy would make one of 1 and '1', nan and 'nan', 1 and True
    if found.ndim == 2 and found.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        tell(
            DataConversionWarning(
                "A column-vector y was passed when a 1d array was expected. "
                "Please change the shape of y to (n_samples,), for example using ravel()."
            )
        )
        found = found[:, 0]
    if found.ndim != 1:
        raise LabelError.not_one_dimensional(found.shape)
    return found


def compact(codes: Codes, classes: int) -> Codes:
    """Codes in the smallest type: NumPy sorts 16-bit integers by counting."""
    kind = np.uint8 if classes <= 1 << 8 else np.uint16 if classes <= 1 << 16 else np.intp
    return codes.astype(kind, copy=False)


def _count(y: npt.NDArray[Any]) -> tuple[Labels, Codes]:
    if not len(y):
        return y, np.zeros(0, dtype=np.uint8)
    low, high = int(y.min()), int(y.max())
    if high - low > max(_COUNTABLE, 4 * len(y)) or high > _MOST:
        return _sort(y)
    place = y.astype(np.intp) - low
    present = np.flatnonzero(np.bincount(place))
    table = np.zeros(high - low + 1, dtype=np.intp)
    table[present] = np.arange(len(present))
    return (present + low).astype(y.dtype), compact(table, len(present))[place]


def _sort(y: npt.NDArray[Any]) -> tuple[Labels, Codes]:
    labels, codes = np.unique(y, return_inverse=True)
    return labels, compact(codes, len(labels))


def _check_whole(y: npt.NDArray[Any]) -> None:
    if not np.isfinite(y).all():
        missing = np.flatnonzero(np.isnan(y))
        if len(missing):
            raise LabelError.missing(missing.tolist())
        raise LabelError.infinite(int(np.flatnonzero(np.isinf(y))[0]))
    broken = y != np.floor(y)
    if broken.any():
        row = int(np.argmax(broken))
        raise LabelError.continuous(row, len(np.unique(y[:10000])))


def _encode_objects(y: npt.NDArray[Any]) -> tuple[Labels, Codes]:
    kinds = {type(value) for value in y}
    missing = [row for row, value in enumerate(y) if _is_missing(value)]
    if missing:
        raise LabelError.missing(missing)
    if all(issubclass(kind, (str, np.str_)) for kind in kinds):
        return _sorted_codes(y)
    if all(issubclass(kind, (bool, np.bool_)) for kind in kinds):
        return encode_labels(y.astype(bool))
    if all(issubclass(kind, _NUMBERS) and not issubclass(kind, bool) for kind in kinds):
        return _encode_numbers(y, kinds)
    if len(kinds) > 1:
        raise LabelError.mixed(sorted({kind.__name__ for kind in kinds}))
    try:
        return _sorted_codes(y)
    except TypeError:
        raise LabelError.unordered(kinds.pop().__name__) from None


def _encode_numbers(y: npt.NDArray[Any], kinds: set[type]) -> tuple[Labels, Codes]:
    """Numbers in a type that holds them all exactly; where there is none, as they are."""
    if not all(issubclass(kind, (int, np.integer)) for kind in kinds):
        found = y.astype(np.float64)
        _check_whole(found)
        return encode_labels(found) if (found == y).all() else _sorted_codes(y)
    low, high = int(min(y)), int(max(y))
    if low >= -_MOST - 1 and high <= _MOST:
        return encode_labels(y.astype(np.int64))
    if low >= 0 and high < 1 << 64:
        return encode_labels(y.astype(np.uint64))
    return _sorted_codes(y)


def _sorted_codes(y: npt.NDArray[Any]) -> tuple[Labels, Codes]:
    distinct = sorted(set(y.tolist()))
    place = {label: code for code, label in enumerate(distinct)}
    codes = np.fromiter((place[value] for value in y), dtype=np.intp, count=len(y))
    return _objects(distinct), compact(codes, len(distinct))


def _objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    """An array of the values as they are, none of them unpacked or converted."""
    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        found[place] = value
    return found


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value
