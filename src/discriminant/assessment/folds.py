"""Who is held out when, and the moments of everybody else.

    train_f = part_0 + ... + part_{f-1}  +  part_{f+1} + ... + part_{F-1}

The parts are added up from both ends, so some 3F additions give every training sum and nothing is
ever subtracted: no digit is lost, however much of the weight a fold holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.engines.engine import anchor_of, read_classes
from discriminant.errors import InfiniteValueError, MissingValueError, OptionError, ShapeError
from discriminant.moments.class_moments import Detail
from discriminant.table.schema import Codes
from discriminant.table.source import Table

FoldNumbers = npt.NDArray[np.intp]  # (N,) each in 0..F-1
Places = npt.NDArray[np.intp]  # numbers of rows
_FOLDS = 10


def fold_numbers(
    folds: Any, codes: Codes, *, groups: Any = None, seed: Any = 0, X: Any = None
) -> FoldNumbers:
    """The fold that holds out each row.

    Parameters
    ----------
    folds
        How many; or (N,) the fold of each row; or a scikit-learn splitter. None: 10, or one for
        each group.
    codes
        (N,) classes: rows are dealt so that every fold has its share of each.
    groups
        (N,) rows of one group are held out together.
    seed
        Of the shuffle, where rows are dealt.
    X
        Handed on to a splitter.

    Examples
    --------
    >>> fold_numbers(2, np.array([0, 0, 0, 0, 1, 1])).tolist().count(0)
    3
    >>> fold_numbers(None, np.array([0, 0, 1]), groups=["site", "home", "site"]).tolist()
    [1, 0, 1]
    """
    if groups is not None:
        groups = _one_each("groups", groups, len(codes))
    if hasattr(folds, "get_n_splits"):
        return _of_splitter(folds, codes, groups, X)
    if folds is not None and np.ndim(folds) == 1:
        return _numbered(_one_each("folds", folds, len(codes)), "folds")
    if folds is None and groups is not None:
        return _numbered(groups, "groups")
    many = _FOLDS if folds is None else folds
    if not isinstance(many, int | np.integer) or not 2 <= many <= len(codes):
        allowed = f"from 2 to the number of rows ({len(codes)}), fold numbers, or a splitter"
        raise OptionError.of("folds", many, allowed)
    if groups is not None:
        from sklearn.model_selection import StratifiedGroupKFold

        splitter = StratifiedGroupKFold(int(many), shuffle=True, random_state=seed)
        return _of_splitter(splitter, codes, groups, X)
    return dealt(codes, int(many), seed)


def dealt(codes: Codes, folds: int, seed: Any) -> FoldNumbers:
    """Shuffle the rows within their class, then deal them out like cards, class after class.

    Of each class, and in all, the folds' numbers of rows differ by at most one.
    """
    order = np.random.default_rng(seed).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    found = np.empty(len(codes), dtype=np.intp)
    found[order] = np.arange(len(codes)) % folds
    return found


def rows_by_fold(fold: FoldNumbers) -> list[Places]:
    """The rows of each fold, in order."""
    small = fold.max(initial=0) < 1 << 16  # then they are sorted by their digits, ten times as fast
    order = np.argsort(fold.astype(np.uint16) if small else fold, kind="stable")
    return np.split(order, np.cumsum(np.bincount(fold))[:-1])


def fold_moments(table: Table, fold: FoldNumbers, detail: Detail) -> list[Any]:
    """Moments of the rows of each fold, all about one origin and over the same classes."""
    anchor = anchor_of(table)
    parts = (table.take(rows) for rows in rows_by_fold(fold))
    try:
        return [read_classes(part, detail, anchor=anchor) for part in parts]
    except (MissingValueError, InfiniteValueError):
        table.block(0, len(table)).blame(table.schema.features)  # by its number in the table
        raise


def all_but_one(parts: Sequence[Any]) -> Iterator[Any]:
    """The sum of all parts but the first, of all but the second, and so on."""
    after = list(parts[1:])
    for f in range(len(after) - 2, -1, -1):
        after[f] = after[f] + after[f + 1]
    before = parts[0]
    yield after[0]
    for f in range(1, len(parts) - 1):
        yield before + after[f]
        before = before + parts[f]
    yield before


def only_present(moments: Any) -> Any:
    """The moments without the classes that have no rows."""
    some = moments.rows > 0
    return moments if some.all() else moments.classes(moments.labels[some].tolist())


def _of_splitter(splitter: Any, codes: Codes, groups: Any, X: Any) -> FoldNumbers:
    """Fold numbers of a splitter that holds out every row once and trains on all the others."""
    found = np.full(len(codes), -1, dtype=np.intp)
    rows = np.zeros((len(codes), 1)) if X is None else X
    for f, (train, test) in enumerate(splitter.split(rows, codes, groups)):
        if (found[test] >= 0).any() or len(np.union1d(train, test)) < len(codes):
            raise OptionError.of("folds", splitter, _PARTITION)
        found[test] = f
    if (found < 0).any():
        raise OptionError.of("folds", splitter, _PARTITION)
    return _numbered(found, "folds")


_PARTITION = (
    "a splitter that holds out every row once and trains on all the others, as KFold and "
    "GroupKFold do"
)


def _one_each(name: str, values: Any, rows: int) -> npt.NDArray[Any]:
    found = np.asarray(values)
    if found.shape != (rows,):
        raise ShapeError.of_lengths(name, len(found) if found.ndim else 1, rows)
    return found


def _numbered(values: npt.NDArray[Any], name: str) -> FoldNumbers:
    distinct, found = np.unique(values, return_inverse=True)
    if len(distinct) < 2:
        raise OptionError.of(name, distinct.tolist(), "of two or more kinds: one is held out")
    return found
