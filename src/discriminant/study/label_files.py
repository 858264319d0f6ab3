"""Label trees from file to file: sparse rows in, XMC text or svmlight; the best labels out.

Whether features of svmlight count from 0 or from 1 is what the model's `first_feature_` says, which
the command line's fit leaves there, or else what the file tells; XMC text counts from 0.

Rows are read, answered and written some megabytes at a time. The answers, one row for each, have
the columns

    label_1, score_1, label_2, score_2, ..

best first, empty beyond the last label that a row reaches. They take the place of an old file whole
or not at all.
"""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from discriminant.errors import OptionError, SparseFileError
from discriminant.estimators.label_tree import LabelTree
from discriminant.study.sheets import ArrowSheet, safe_cell
from discriminant.study.sparse_or_table import label_columns, refuse_table
from discriminant.table.replacing import replacing
from discriminant.table.sparse_pieces import pieces_of
from discriminant.table.xmc import (
    First,
    LabelledRows,
    read_svmlight_sets,
    read_xmc,
    svmlight_blocks,
    xmc_blocks,
)

Progress = Callable[[int, int], object]
_ARROW = (".parquet", ".arrow", ".feather")


def read_labelled(source: Any, *, first: First = "auto") -> LabelledRows:
    """All rows of a file of sparse rows, with their label sets."""
    path = one_file(source)
    found = read_xmc(path) if is_xmc(path) else read_svmlight_sets(path, first=first)
    if not len(found):
        raise SparseFileError.without_rows(os.fspath(path))
    return found


def is_xmc(path: Any) -> bool:
    """Whether a file begins as XMC text does."""
    return head_of(path) is not None


def head_of(path: Any) -> tuple[int, ...] | None:
    """Rows, features and labels as told by the first line of XMC text; None of other files."""
    for piece in pieces_of(path):
        words = piece.split(b"\n", 1)[0].split()
        found = len(words) == 3 and all(word.isdigit() for word in words)
        return tuple(int(word) for word in words) if found else None
    return None


def check_widths(path: Any, other: Any) -> None:
    """Refuse two files of XMC text whose headers tell of different numbers of features."""
    ours, theirs = head_of(path), head_of(other)
    if ours is not None and theirs is not None and ours[1] != theirs[1]:
        raise SparseFileError.of_width(os.fspath(other), theirs[1], ours[1])


def answered_labels(
    model: LabelTree,
    source: Any,
    out: str | os.PathLike[str],
    *,
    k: int,
    safe: bool,
    told: Progress,
) -> tuple[int, dict[str, int], tuple[str, ...]]:
    """Answer a file; rows, rows whose best label is each, and the columns written."""
    rows, counts = 0, Counter[str]()
    names = label_columns(k)
    texts = np.array([str(label) for label in model.classes_.tolist()] + [""], dtype=object)
    with replacing(out) as file:
        sheet = _sheet(file, Path(out), names, safe)
        for block, of in labelled_blocks(model, one_file(source)):
            codes, scores = model.predict_topk(block.features, k=k)
            sheet.add(texts[codes], scores)  # -1 is the last: no label
            counts.update(texts[codes[:, 0]].tolist())
            rows += len(codes)
            told(rows, of)
        sheet.close()
    return rows, dict(counts), tuple(names)


def one_file(source: Any) -> Any:
    """The file that is meant: there can only be one."""
    if isinstance(source, list | tuple) and len(source) == 1:
        source = source[0]
    if not isinstance(source, str | os.PathLike):
        raise OptionError.of("source", source, "one file of sparse rows, XMC text or svmlight")
    refuse_table(source)
    return source


def labelled_blocks(model: LabelTree, path: Any) -> Iterator[tuple[LabelledRows, int]]:
    """Rows as wide as the model's with their label numbers, and how many there are in all."""
    some = False
    for block, of in _blocks(model, path):
        if len(block):
            some = True
            yield block, of
    if not some:
        raise SparseFileError.without_rows(os.fspath(path))


def _blocks(model: LabelTree, path: Any) -> Iterator[tuple[LabelledRows, int]]:
    d, head = model.n_features_in_, head_of(path)
    if head is None:
        yield from svmlight_blocks(path, features=d, first=_first_feature(model), more="drop")
        return
    for block in xmc_blocks(path):
        if block.features.shape[1] != d:
            raise SparseFileError.of_width(os.fspath(path), block.features.shape[1], d)
        yield block, head[0]


def _first_feature(model: LabelTree) -> First:
    first: First = getattr(model, "first_feature_", "auto")
    if first not in ("auto", 0, 1):
        raise OptionError.of("first_feature_", first, "0 or 1")
    return first


def _sheet(file: Any, out: Path, names: list[str], safe: bool) -> Any:
    if out.suffix in _ARROW:
        return _Columns(ArrowSheet(file, parquet=out.suffix == ".parquet"), names)
    return _Lines(file, names, safe)


class _Lines:
    """A CSV, in UTF-8."""

    def __init__(self, file: Any, names: list[str], safe: bool) -> None:
        self.safe = safe
        self.text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
        self.out = csv.writer(self.text, lineterminator="\n")
        self.out.writerow(names)

    def add(self, labels: Any, scores: Any) -> None:
        """Write some rows."""
        for said, sure in zip(labels.tolist(), scores.tolist(), strict=True):
            row: list[object] = []
            for label, score in zip(said, sure, strict=True):
                there = score > -np.inf
                row += [safe_cell(label) if self.safe else label, score if there else ""]
            self.out.writerow(row)

    def close(self) -> None:
        """Let go of the file."""
        self.text.detach()


class _Columns:
    """Parquet, or Arrow IPC."""

    def __init__(self, sheet: ArrowSheet, names: list[str]) -> None:
        self.sheet, self.names = sheet, names

    def add(self, labels: Any, scores: Any) -> None:
        """Write some rows."""
        import pyarrow as pa

        there = scores > -np.inf
        found: dict[str, Any] = {}
        for j in range(labels.shape[1]):
            label = pa.array(labels[:, j], pa.string(), mask=~there[:, j])
            score = pa.array(scores[:, j], mask=~there[:, j])
            found |= {self.names[2 * j]: label, self.names[2 * j + 1]: score}
        self.sheet.add(pa.table(found), None, {})  # type: ignore[arg-type]

    def close(self) -> None:
        """Write the footer."""
        self.sheet.close()
