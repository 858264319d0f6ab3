"""Labels to codes: a label is what the user calls a class, a code its number.

Sorting a million labels takes longer than summing their rows, so integers and booleans are coded
by counting, and only what cannot be counted is sorted. Labels keep their kind: text, number and
boolean never become one another, and no two become one.

Which class each column is of, where a table has a column for each: by name, if it has names.

An array has none, and a frame that was made of one has only counted ones (0, 1, ... in pandas,
column_0, column_1, ... in Polars): their columns are in the order of the classes. A label that is
a number may be named by its digits, since Polars and Arrow name columns by texts alone.

Names that a reader may take for one another.

One level, several spellings: 1 is 1.0, True is true.

A category of whole numbers or of truth values is written as its source writes it: 1 by a column of
integers, 1.0 by a column of floats in CSV, true by a database, 1 by a database that has no truth
values. A text that is a level is that level. Any other leads to the level that it is a spelling of,
unless it could be one of two.

    whole numbers   1, 1.0
    truth values    True, true, TRUE; where no level is anything else, 1 and 1.0 too
    yes and no      True and False too, where there is nothing else: databases read them as such
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


def classes_of_columns(given: Any, *, found: Sequence[Any], classes: Any, what: str) -> Any:
    """The class of each column of `given`; None if nothing but the order says it.

    Parameters
    ----------
    given
        (N, K) array or data frame.
    found
        The labels that rows have.
    classes
        What the caller says the columns are, or None. Names win, where they name these classes in
        another order; columns that are called otherwise are what `classes` says.
    what
        Name of `given` in messages.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame([[0.1, 0.9]], columns=["b", "a"])
    >>> classes_of_columns(frame, found=["a", "b"], classes=None, what="posterior")
    ['b', 'a']
    """
    known = list(found if classes is None else classes)
    names = names_of(given, known)
    if names is None or len(names) < 2:
        return classes
    if classes is None and set(found) <= set(names) and len(set(names)) == len(names):
        return names
    if classes is not None and len(names) == len(known) and set(names) == set(known):
        return names
    if classes is not None and not set(names) & set(known):
        return classes
    raise ColumnNamesError.not_classes(what, names, known)


def names_of(given: Any, labels: Sequence[Any]) -> list[Any] | None:
    """Names of the columns of a frame, as labels where they are their texts; None: it has none."""
    if hasattr(given, "column_names"):
        names = list(given.column_names)
    elif hasattr(given, "columns") and hasattr(given, "shape"):
        names = list(given.columns)
    else:
        return None
    return match_labels(names, labels)


def match_labels(names: list[Any], labels: Sequence[Any]) -> list[Any] | None:
    """Names as labels where they are their texts; None if they only count."""
    for called in ({label: label for label in labels}, {str(label): label for label in labels}):
        if set(names) == set(called):
            return [called[name] for name in names]  # 0 and 1 of pandas for False and True, too
    counted = (list(range(len(names))), [f"column_{j}" for j in range(len(names))])
    return None if names in counted else names


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
    y = as_vector(y)
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


def drop_empty_classes(labels: Labels, codes: Codes) -> tuple[Labels, Codes]:
    """Only the classes that have rows."""
    some: npt.NDArray[np.bool_] = np.bincount(codes, minlength=len(labels)) > 0
    if some.all():
        return labels, codes
    place = np.cumsum(some) - 1
    return labels[some], compact_codes(place[codes], int(some.sum()))


def is_missing_label(y: Any) -> npt.NDArray[np.bool_]:
    """(n,) whether a label is missing: None, NaN, NaT or NA.

    >>> is_missing_label(["a", None]).tolist(), is_missing_label([1, 2]).tolist()
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


def encode_known_labels(y: Any, labels: Labels) -> Codes:
    """Codes of rows whose classes are already known; refuses any other."""
    found, codes = encode_labels(y)
    check_same_kind(found, labels)
    place = {label: code for code, label in enumerate(labels.tolist())}
    unknown = [label for label in found.tolist() if label not in place]
    if unknown:
        raise LabelError.unknown(unknown, labels.tolist())
    return compact_codes(
        np.array([place[v] for v in found.tolist()], dtype=np.intp)[codes], len(labels)
    )


def check_same_kind(ours: Labels, theirs: Labels) -> None:
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


def union_labels(ours: Labels, theirs: Labels) -> Labels:
    """The labels of both, sorted, each once."""
    check_same_kind(ours, theirs)
    if not len(ours) or not len(theirs):
        return ours if len(ours) else theirs
    both = np.concatenate([ours, theirs])
    if both.dtype.kind == "f" and not both.dtype == ours.dtype == theirs.dtype:
        # float64 has no room for all integers: sort them as they are, and see
        return encode_labels(_objects([*ours.tolist(), *theirs.tolist()]))[0]
    return np.unique(both)


def as_vector(y: Any) -> npt.NDArray[Any]:
    """`y` as a vector; a single column is unrolled, as scikit-learn does, with its warning."""
    found = np.asarray(y)
    if isinstance(y, (list, tuple)) and found.ndim == 1 and found.dtype.kind in "USiufb":
        kinds = {type(value) for value in y}
        if len(kinds) > 1 or (kinds == {int} and found.dtype.kind == "f"):
            found = _objects(y)  # NumPy would make one of 1 and '1', nan and 'nan', 1 and True
    if found.ndim == 2 and found.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning

        warn(
            DataConversionWarning(
                "A column-vector y was passed when a 1d array was expected. "
                "Please change the shape of y to (n_samples,), for example using ravel()."
            )
        )
        found = found[:, 0]
    if found.ndim != 1:
        raise LabelError.not_one_dimensional(found.shape)
    return found


def compact_codes(codes: Codes, classes: int) -> Codes:
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
    return (present + low).astype(y.dtype), compact_codes(table, len(present))[place]


def _sort(y: npt.NDArray[Any]) -> tuple[Labels, Codes]:
    labels, codes = np.unique(y, return_inverse=True)
    return labels, compact_codes(codes, len(labels))


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
        raise LabelError.unsortable(kinds.pop().__name__) from None


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
    return _objects(distinct), compact_codes(codes, len(distinct))


def _objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    """An array of the values as they are, none of them unpacked or converted."""
    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        found[place] = value
    return found


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def lookalike_pairs(names: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of names that differ only by case, spaces or the form of their letters.

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
    """The name that was most likely meant.

    >>> closest_name("Default", ["id", "default"])
    'default'
    """
    plain = {other.casefold().strip(): other for other in names}
    found = get_close_matches(str(name).casefold().strip(), list(plain), n=1, cutoff=0.6)
    return plain[found[0]] if found else None


_TRUTHS = (TRUE, FALSE)
_DIGITS = (("1", "1.0"), ("0", "0.0", "-0.0"))
_ANSWERS = (("yes", "no"), ("y", "n"), ("t", "f"))  # in any case
_WHOLE = re.compile(r"(0|-?[1-9][0-9]{0,17})(\.0)?")


def other_spellings(levels: Sequence[str]) -> dict[str, str]:
    """The level of each text that is not one of the levels but spells one of them.

    >>> other_spellings(["1", "2"])
    {'1.0': '1', '2.0': '2'}
    >>> other_spellings(["True", "False"])["false"], other_spellings(["1", "1.0"])
    ('False', {})
    """
    if answers := _answers(levels):
        return answers
    found: dict[str, list[str]] = {}
    every = [*_TRUTHS[0], *_TRUTHS[1], *_DIGITS[0], *_DIGITS[1]]
    truths = all(level in every for level in levels)
    for level in levels:
        for other in _ways(level, truths):
            found.setdefault(other, []).append(level)
    known = set(levels)
    return {o: of[0] for o, of in found.items() if len(of) == 1 and o not in known}


def _answers(levels: Sequence[str]) -> dict[str, str]:
    """Truth values as the levels of a column of nothing but yes and no.

    >>> _answers(["No", "Yes"])["true"], _answers(["No", "Yes", "?"])
    ('Yes', {})
    """
    said = {level.casefold(): level for level in levels}
    pair = next((pair for pair in _ANSWERS if set(pair) == set(said)), None)
    if pair is None or len(levels) != 2:
        return {}
    return {o: said[word] for word, others in zip(pair, _TRUTHS, strict=True) for o in others}


def _ways(level: str, truths: bool) -> list[str]:
    """Other ways to write a level, each once."""
    ways = [level]
    for words, digits in zip(_TRUTHS, _DIGITS, strict=True):
        if level in words or (truths and level in digits):
            ways += [*words, *(digits if truths else ())]
    if whole := _WHOLE.fullmatch(level):
        ways += [whole[1], repr(float(whole[1])), f"{whole[1]}.0"]
        ways += ["-0.0"] if whole[1] == "0" else []
    return [way for way in dict.fromkeys(ways) if way != level]
