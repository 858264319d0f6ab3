"""Class labels: encode them as codes, and match spellings of labels, levels and columns.

A label is the name of a class in the user's data; a code is the number of the class, from 0 to K -
1. Sorting a million labels takes longer than summing their rows, so only labels other than integers
and booleans are sorted; integers and booleans are encoded by counting. Labels keep their type:
text, number and boolean are never converted into one another, and different labels stay different.

This module also matches names that users and sources write in several ways:

1. Columns by class. If a table has a column for each class, and these columns have names, they are
matched to the classes by name. An array has no column names, and a data frame made from an array
has only numbered columns (0, 1, ... in pandas, column_0, column_1, ... in Polars); such columns are
assumed to be in the order of the classes. A label that is a number may be written as text, because
Polars and Arrow allow only texts as column names.

2. Spellings of a level. Sources spell a category of integers or truth values differently: 1 in a
column of integers, 1.0 in a column of floats in a CSV, true in a database, 1 in a database without
truth values. A text that equals a level means that level. Any other text means the level of which
it is another spelling, unless several levels are possible:

    integers        1, 1.0
    truth values    True, true, TRUE; also 1 and 1.0 if all levels are truth values
    yes and no      also True and False, if there are no other levels, as databases read them
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import ColumnNamesError, LabelError, warn
from discriminant.table.blocks import Codes, Labels
from discriminant.table.files.csv_dialect import FALSE, TRUE


def classes_of_score_columns(given: Any, *, labels: Sequence[Any], classes: Any, what: str) -> Any:
    """Return the class of each column, or None if column names do not determine the classes.

    None means that the columns are in the order of the classes.

    Parameters
    ----------
    given : array or data frame of shape (N, K)
        One column for each class.
    labels : sequence
        Labels that occur in the rows.
    classes : sequence or None
        Classes of the columns if the caller states them. Column names take precedence over
        `classes` if they are the same labels in another order; names that have nothing in common
        with `classes` are ignored.
    what : str
        How messages refer to `given`.

    Returns
    -------
    list or None
        Class of each column.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame([[0.1, 0.9]], columns=["b", "a"])
    >>> classes_of_score_columns(frame, labels=["a", "b"], classes=None, what="posterior")
    ['b', 'a']
    """
    known = list(labels if classes is None else classes)
    names = _column_labels(given, known)
    if names is None or len(names) < 2:
        return classes
    if classes is None and set(labels) <= set(names) and len(set(names)) == len(names):
        return names
    if classes is not None and len(names) == len(known) and set(names) == set(known):
        return names
    if classes is not None and not set(names) & set(known):
        return classes
    raise ColumnNamesError.not_classes(what, names, known)


def _column_labels(given: Any, labels: Sequence[Any]) -> list[Any] | None:
    """Match the column names of a data frame to labels; return None for an array."""
    if hasattr(given, "column_names"):
        names = list(given.column_names)
    elif hasattr(given, "columns") and hasattr(given, "shape"):
        names = list(given.columns)
    else:
        return None
    return labels_of_column_names(names, labels)


def labels_of_column_names(names: list[Any], labels: Sequence[Any]) -> list[Any] | None:
    """Return the label for each column name, which is the label or its text.

    Names that do not match the labels are returned unchanged. If the names are only numbers of
    columns, return None.
    """
    for by_name in ({label: label for label in labels}, {str(label): label for label in labels}):
        if set(names) == set(by_name):
            return [by_name[name] for name in names]  # 0 and 1 of pandas match False and True
    numbered = (list(range(len(names))), [f"column_{j}" for j in range(len(names))])
    return None if names in numbered else names


_EXACT = 2.0**53  # float64 does not represent every larger integer
_MAX_INT64 = (1 << 63) - 1
_NUMBERS = (int, float, np.integer, np.floating)
_COUNTABLE = 1 << 16  # integers within a range of this size are always encoded by counting


def encode_labels(y: Any) -> tuple[Labels, Codes]:
    """Return the distinct labels, sorted, and the code of every row.

    >>> labels, codes = encode_labels(["b", "a", "b"])
    >>> labels.tolist(), codes.tolist()
    (['a', 'b'], [1, 0, 1])
    """
    y = as_vector(y)
    if y.dtype.kind == "b":
        labels, codes = _count(y.view(np.uint8))
        return labels.astype(bool), codes
    if y.dtype.kind in "iu":
        return _count(y)
    if y.dtype.kind == "f":
        _check_integers(y)
        if len(y) and np.abs(y).max() >= _EXACT:
            return _sort(y)
        labels, codes = _count(y.astype(np.int64))
        return labels.astype(y.dtype), codes
    if y.dtype.kind == "O":
        return _encode_objects(y)
    if y.dtype.kind in "mM" and np.isnat(y).any():
        raise LabelError.missing(np.flatnonzero(np.isnat(y)).tolist())
    return _sort(y)


def declared_order(y: Any) -> list[Any] | None:
    """Return the ordered categories of a categorical (pandas) or an enum (Polars).

    Return None for labels without a declared order.
    """
    dtype = getattr(y, "dtype", None)
    if getattr(dtype, "ordered", False) is True or type(dtype).__name__ == "Enum":
        return list(dtype.categories)  # type: ignore[union-attr]
    return None


def drop_empty_classes(labels: Labels, codes: Codes) -> tuple[Labels, Codes]:
    """Remove classes without rows; return the remaining labels and the new codes."""
    present: npt.NDArray[np.bool_] = np.bincount(codes, minlength=len(labels)) > 0
    if present.all():
        return labels, codes
    new_codes = np.cumsum(present) - 1
    return labels[present], compact_codes(new_codes[codes], int(present.sum()))


def is_missing_label(y: Any) -> npt.NDArray[np.bool_]:
    """Return a boolean array (n,): True where the label is missing (None, NaN, NaT or NA).

    >>> is_missing_label(["a", None]).tolist(), is_missing_label([1, 2]).tolist()
    ([False, True], [False, False])
    """
    labels = np.asarray(y)
    if labels.dtype.kind == "f":
        return np.asarray(np.isnan(labels))
    if labels.dtype.kind in "mM":
        return np.asarray(np.isnat(labels))
    if labels.dtype.kind != "O" or labels.ndim != 1:
        return np.zeros(len(labels), dtype=bool)
    return np.array([_is_missing(value) for value in labels], dtype=bool)


def encode_known_labels(y: Any, labels: Labels) -> Codes:
    """Return the code of each row: the position of its label in `labels`.

    Any other label raises LabelError.
    """
    present, codes = encode_labels(y)
    check_same_label_type(present, labels)
    code_of = {label: code for code, label in enumerate(labels.tolist())}
    unknown = [label for label in present.tolist() if label not in code_of]
    if unknown:
        raise LabelError.unknown(unknown, labels.tolist())
    known_codes = np.array([code_of[label] for label in present.tolist()], dtype=np.intp)
    return compact_codes(known_codes[codes], len(labels))


def check_same_label_type(ours: Labels, theirs: Labels) -> None:
    """Raise LabelError unless both sets of labels are of one type: text, number or boolean."""
    if len(ours) and len(theirs) and _kind(ours) != _kind(theirs):
        types = {type(label).__name__ for label in (*ours.tolist(), *theirs.tolist())}
        raise LabelError.mixed(sorted(types))


def _kind(labels: Labels) -> str:
    """Return the kind of sorted labels: 'boolean', 'number', or the name of another type."""
    first = labels[:1].tolist()[0]
    if isinstance(first, bool):
        return "boolean"
    return "number" if isinstance(first, _NUMBERS) else type(first).__name__


def same_labels(ours: Labels, theirs: Labels) -> bool:
    """Whether both arrays have the same labels. True and 1 are different labels."""
    if ours is theirs:
        return True
    same_kind = (ours.dtype.kind == "b") == (theirs.dtype.kind == "b")
    return same_kind and np.array_equal(ours, theirs)


def union_labels(ours: Labels, theirs: Labels) -> Labels:
    """Return the distinct labels of both arrays, sorted."""
    check_same_label_type(ours, theirs)
    if not len(ours) or not len(theirs):
        return ours if len(ours) else theirs
    both = np.concatenate([ours, theirs])
    if both.dtype.kind == "f" and not both.dtype == ours.dtype == theirs.dtype:
        # float64 does not represent all integers: sort the Python objects
        return encode_labels(_object_array([*ours.tolist(), *theirs.tolist()]))[0]
    return np.unique(both)


def as_vector(y: Any) -> npt.NDArray[Any]:
    """Return `y` as a vector.

    An array with a single column is flattened, with scikit-learn's warning.
    """
    vector = np.asarray(y)
    if isinstance(y, (list, tuple)) and vector.ndim == 1 and vector.dtype.kind in "USiufb":
        kinds = {type(value) for value in y}
        if len(kinds) > 1 or (kinds == {int} and vector.dtype.kind == "f"):
            vector = _object_array(y)  # NumPy would merge 1 and '1', nan and 'nan', 1 and True
    if vector.ndim == 2 and vector.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warn(
            DataConversionWarning(
                "A column-vector y was passed when a 1d array was expected. "
                "Please change the shape of y to (n_samples,), for example using ravel()."
            )
        )
        vector = vector[:, 0]
    if vector.ndim != 1:
        raise LabelError.not_one_dimensional(vector.shape)
    return vector


def compact_codes(codes: Codes, classes: int) -> Codes:
    """Return codes in the smallest integer type, because NumPy sorts 16-bit integers faster."""
    dtype = np.uint8 if classes <= 1 << 8 else np.uint16 if classes <= 1 << 16 else np.intp
    return codes.astype(dtype, copy=False)


def _count(y: npt.NDArray[Any]) -> tuple[Labels, Codes]:
    if not len(y):
        return y, np.zeros(0, dtype=np.uint8)
    low, high = int(y.min()), int(y.max())
    if high - low > max(_COUNTABLE, 4 * len(y)) or high > _MAX_INT64:
        return _sort(y)
    offset = y.astype(np.intp, copy=False)
    if low:
        offset = offset - low
    present = np.flatnonzero(np.bincount(offset))
    labels = (present + low).astype(y.dtype)
    if len(present) == high - low + 1:  # every integer of the range occurs: offsets are codes
        codes = compact_codes(offset, len(present))
        return labels, codes.copy() if codes is y else codes
    code_of = np.zeros(high - low + 1, dtype=np.intp)
    code_of[present] = np.arange(len(present))
    return labels, compact_codes(code_of, len(present))[offset]


def _sort(y: npt.NDArray[Any]) -> tuple[Labels, Codes]:
    labels, codes = np.unique(y, return_inverse=True)
    return labels, compact_codes(codes, len(labels))


def _check_integers(y: npt.NDArray[Any]) -> None:
    if not np.isfinite(y).all():
        missing = np.flatnonzero(np.isnan(y))
        if len(missing):
            raise LabelError.missing(missing.tolist())
        raise LabelError.infinite(int(np.flatnonzero(np.isinf(y))[0]))
    fractional = y != np.floor(y)
    if fractional.any():
        row = int(np.argmax(fractional))
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
        raise LabelError.unsortable(kinds.pop().__name__) from None


def _encode_numbers(y: npt.NDArray[Any], kinds: set[type]) -> tuple[Labels, Codes]:
    """Encode numbers in a type that represents all of them exactly.

    If no such type exists, the numbers are encoded as Python objects.
    """
    if not all(issubclass(kind, (int, np.integer)) for kind in kinds):
        floats = y.astype(np.float64)
        _check_integers(floats)
        return encode_labels(floats) if (floats == y).all() else _sorted_codes(y)
    low, high = int(min(y)), int(max(y))
    if low >= -_MAX_INT64 - 1 and high <= _MAX_INT64:
        return encode_labels(y.astype(np.int64))
    if low >= 0 and high < 1 << 64:
        return encode_labels(y.astype(np.uint64))
    return _sorted_codes(y)


def _sorted_codes(y: npt.NDArray[Any]) -> tuple[Labels, Codes]:
    distinct = sorted(set(y.tolist()))
    code_of = {label: code for code, label in enumerate(distinct)}
    codes = np.fromiter((code_of[value] for value in y), dtype=np.intp, count=len(y))
    return _object_array(distinct), compact_codes(codes, len(distinct))


def _object_array(values: Sequence[Any]) -> npt.NDArray[Any]:
    """Return an object array of the values, without unpacking or converting any of them."""
    objects = np.empty(len(values), dtype=object)
    for position, value in enumerate(values):
        objects[position] = value
    return objects


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def lookalike_pairs(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return pairs of names that differ only in case, spaces or Unicode form.

    >>> lookalike_pairs(["A", "a ", "b"])
    [('A', 'a ')]
    """
    first: dict[str, str] = {}
    pairs = []
    for name in names:
        plain = "".join(unicodedata.normalize("NFKC", name).casefold().split())
        if first.setdefault(plain, name) != name:
            pairs.append((first[plain], name))
    return pairs


def closest_name(name: str, names: Sequence[str]) -> str | None:
    """Return the name in `names` that was most likely meant, or None if no name is similar.

    >>> closest_name("Default", ["id", "default"])
    'default'
    """
    plain = {other.casefold().strip(): other for other in names}
    matches = get_close_matches(str(name).casefold().strip(), list(plain), n=1, cutoff=0.6)
    return plain[matches[0]] if matches else None


_TRUTHS = (TRUE, FALSE)
_DIGITS = (("1", "1.0"), ("0", "0.0", "-0.0"))
_ANSWERS = (("yes", "no"), ("y", "n"), ("t", "f"))  # upper or lower case
_INTEGER = re.compile(r"(0|-?[1-9][0-9]{0,17})(\.0)?")


def other_spellings(levels: Sequence[str]) -> dict[str, str]:
    """Return a dictionary that maps other spellings of levels to the levels.

    >>> other_spellings(["1", "2"])
    {'1.0': '1', '2.0': '2'}
    >>> other_spellings(["True", "False"])["false"], other_spellings(["1", "1.0"])
    ('False', {})
    """
    if answers := _answers(levels):
        return answers
    truths_only = all(level in (*TRUE, *FALSE, *_DIGITS[0], *_DIGITS[1]) for level in levels)
    candidates: dict[str, list[str]] = {}
    for level in levels:
        for text in _spellings(level, truths_only):
            candidates.setdefault(text, []).append(level)
    known = set(levels)
    return {t: own[0] for t, own in candidates.items() if len(own) == 1 and t not in known}


def _answers(levels: Sequence[str]) -> dict[str, str]:
    """If the only levels are yes and no, return the truth values as other spellings.

    >>> _answers(["No", "Yes"])["true"], _answers(["No", "Yes", "?"])
    ('Yes', {})
    """
    by_word = {level.casefold(): level for level in levels}
    pair = next((pair for pair in _ANSWERS if set(pair) == set(by_word)), None)
    if pair is None or len(levels) != 2:
        return {}
    return {t: by_word[word] for word, texts in zip(pair, _TRUTHS, strict=True) for t in texts}


def _spellings(level: str, truths_only: bool) -> list[str]:
    """Return the other spellings of a level, without duplicates."""
    spellings = [level]
    for words, digits in zip(_TRUTHS, _DIGITS, strict=True):
        if level in words or (truths_only and level in digits):
            spellings += [*words, *(digits if truths_only else ())]
    if match := _INTEGER.fullmatch(level):
        spellings += [match[1], repr(float(match[1])), f"{match[1]}.0"]
        spellings += ["-0.0"] if match[1] == "0" else []
    return [text for text in dict.fromkeys(spellings) if text != level]
