"""Label trees from file to file: sparse rows in, XMC text or svmlight; the best labels out.

Whether features of svmlight count from 0 or from 1 is what the model's `first_feature_` says, which
the command line's fit leaves there, or else what the file tells; XMC text counts from 0.

Rows are read, answered and written some megabytes at a time. The answers, one row for each, have
the columns

    label_1, score_1, label_2, score_2, ..

best first, empty beyond the last label that a row reaches. They take the place of an old file whole
or not at all.

How good a label tree is on a file of labelled rows, some megabytes at a time.

Of each block the k best labels are found, and `TopK` adds up what they were worth. How frequent
labels were in training is known to the model: PSP@k and PSnDCG@k, and means over labels of about
the same frequency, need no more. A label that the model does not know cannot be found; where such
are counted, it is one of its row's that was missed.
"""

from __future__ import annotations

import csv
import io
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discriminant.errors import LabelError, OptionError, SparseFileError
from discriminant.extreme.label_tree import LabelTree
from discriminant.extreme.model.propensity import inverse_propensity
from discriminant.extreme.top_k import FrequencyBin, TopK
from discriminant.report.format import count_range, percent, whole
from discriminant.study.sources import label_columns, reject_table
from discriminant.study.writers import ArrowWriter, safe_cell
from discriminant.table.files.atomic import atomic_write
from discriminant.table.files.svmlight import (
    FirstFeature,
    LabelledRows,
    line_blocks,
    read_svmlight_sets,
    read_xmc,
    svmlight_blocks,
    xmc_blocks,
)

Progress = Callable[[int, int], object]
_ARROW = (".parquet", ".arrow", ".feather")


def read_labelled_rows(source: Any, *, first: First = "auto") -> LabelledRows:
    """All rows of a file of sparse rows, with their label sets."""
    path = single_file(source)
    found = read_xmc(path) if is_xmc(path) else read_svmlight_sets(path, first=first)
    if not len(found):
        raise SparseFileError.without_rows(os.fspath(path))
    return found


def is_xmc(path: Any) -> bool:
    """Whether a file begins as XMC text does."""
    return xmc_header(path) is not None


def xmc_header(path: Any) -> tuple[int, ...] | None:
    """Rows, features and labels as told by the first line of XMC text; None of other files."""
    for piece in line_blocks(path):
        words = piece.split(b"\n", 1)[0].split()
        found = len(words) == 3 and all(word.isdigit() for word in words)
        return tuple(int(word) for word in words) if found else None
    return None


def check_same_width(path: Any, other: Any) -> None:
    """Refuse two files of XMC text whose headers tell of different numbers of features."""
    ours, theirs = xmc_header(path), xmc_header(other)
    if ours is not None and theirs is not None and ours[1] != theirs[1]:
        raise SparseFileError.of_width(os.fspath(other), theirs[1], ours[1])


def write_predictions(
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
    with atomic_write(out) as file:
        sheet = _sheet(file, Path(out), names, safe)
        for block, of in read_blocks(model, single_file(source)):
            codes, scores = model.predict_topk(block.features, k=k)
            sheet.add(texts[codes], scores)  # -1 is the last: no label
            counts.update(texts[codes[:, 0]].tolist())
            rows += len(codes)
            told(rows, of)
        sheet.close()
    return rows, dict(counts), tuple(names)


def single_file(source: Any) -> Any:
    """The file that is meant: there can only be one."""
    if isinstance(source, list | tuple) and len(source) == 1:
        source = source[0]
    if not isinstance(source, str | os.PathLike):
        raise OptionError.of("source", source, "one file of sparse rows, XMC text or svmlight")
    reject_table(source)
    return source


def read_blocks(model: LabelTree, path: Any) -> Iterator[tuple[LabelledRows, int]]:
    """Rows as wide as the model's with their label numbers, and how many there are in all."""
    some = False
    for block, of in _blocks(model, path):
        if len(block):
            some = True
            yield block, of
    if not some:
        raise SparseFileError.without_rows(os.fspath(path))


def _blocks(model: LabelTree, path: Any) -> Iterator[tuple[LabelledRows, int]]:
    d, head = model.n_features_in_, xmc_header(path)
    if head is None:
        yield from svmlight_blocks(path, features=d, first=_first_feature(model), more="drop")
        return
    for block in xmc_blocks(path):
        if block.features.shape[1] != d:
            raise SparseFileError.of_width(os.fspath(path), block.features.shape[1], d)
        yield block, head[0]


def _first_feature(model: LabelTree) -> FirstFeature:
    first: FirstFeature = getattr(model, "first_feature_", "auto")
    if first not in ("auto", 0, 1):
        raise OptionError.of("first_feature_", first, "0 or 1")
    return first


def _sheet(file: Any, out: Path, names: list[str], safe: bool) -> Any:
    if out.suffix in _ARROW:
        return _Columns(ArrowWriter(file, parquet=out.suffix == ".parquet"), names)
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

    def __init__(self, sheet: ArrowWriter, names: list[str]) -> None:
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


Ints = npt.NDArray[np.int64]

EDGES = (0, 1, 2, 5, 20, 100, 500, 2000, 10_000, 100_000)


@dataclass(frozen=True, slots=True, eq=False)
class FileAssessment:
    """A label tree measured on a file."""

    top_k: TopK
    bins: tuple[FrequencyBin, ...] | None  # those that have labels; None: frequency is not known
    pairs: int  # labels of all rows
    unknown: int  # those that the model does not know
    seconds: float  # of the search

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers by name."""
        told = self.top_k.to_dict() | {"labels_a_row": self.pairs / max(self.top_k.rows, 1)}
        told |= {"unknown": self.unknown, "seconds": self.seconds}
        if self.bins is not None:
            told["by_frequency"] = [
                {name: getattr(one, name) for name in FrequencyBin.__dataclass_fields__}
                for one in self.bins
            ]
        return told

    def __str__(self) -> str:
        lines = [str(self.top_k)]
        if self.bins:
            lines += ["", "Means over labels, by the rows that they had in training:"]
            lines.append(f"{'rows':>16}{'labels':>10}{'recall':>9}{'precision':>11}{'F1':>8}")
            lines += [
                f"{count_range(one.least, one.most):>16}{whole(one.labels):>10}"
                f"{percent(one.recall):>9}"
                f"{percent(one.precision):>11}{percent(one.f1):>8}"
                for one in self.bins
            ]
        if self.unknown:
            lines += ["", f"{self.unknown:,} labels are unknown to the model, and count as missed"]
        return "\n".join(lines)


def assess_file(
    model: LabelTree,
    source: Any,
    *,
    k: int = 5,
    unknown: str = "error",
    told: Progress = lambda done, of: None,
) -> FileAssessment:
    """Measure a label tree on a file of sparse rows, XMC text or svmlight.

    Parameters
    ----------
    k
        Labels that are found for each row.
    unknown
        'error', or 'count': labels that the model does not know are missed.
    """
    total: TopK | None = None
    pairs, strange, seconds = 0, 0, 0.0
    frequency = getattr(model, "label_rows_", None)
    for block, of in read_blocks(model, single_file(source)):
        truth, missed = _coded(model, block.labels, unknown)
        if total is None:
            model.predict_topk(block.features[:1], k=k)  # loads the loops: no part of the search
        began = time.perf_counter()
        codes, _ = model.predict_topk(block.features, k=k)
        seconds += time.perf_counter() - began
        worth = None if frequency is None else _worth(model, frequency, truth.shape[1])
        found = TopK.of(codes, truth, inverse_propensity=worth)
        total = found if total is None else total + found
        pairs, strange = pairs + truth.nnz, strange + missed
        told(total.rows, of)
    assert total is not None  # a file without rows was refused
    bins = None if frequency is None else _bins(total, frequency)
    return FileAssessment(total, bins, pairs, strange, seconds)


def _bins(total: TopK, frequency: Any) -> tuple[FrequencyBin, ...]:
    count = _widened(frequency, len(total.label_rows))
    return tuple(one for one in total.by_frequency(count, EDGES) if one.labels)


def _worth(model: LabelTree, frequency: Any, width: int) -> Any:
    return inverse_propensity(_widened(frequency, width), rows=model.n_rows_)


def _widened(frequency: Any, width: int) -> Any:
    """Frequencies of the model's labels, and of those that it does not know: none."""
    return np.concatenate([frequency, np.zeros(width - len(frequency), dtype=np.int64)])


def _coded(model: LabelTree, labels: Any, unknown: str) -> tuple[Any, int]:
    """Label numbers of a file as codes of the model; beyond its L, those that it does not know."""
    L, places = len(model.classes_), _places(model, labels.shape[1])
    codes = places[labels.indices]
    missed = codes >= L
    if missed.any() and unknown == "error":
        numbers, counts = np.unique(labels.indices[missed], return_counts=True)
        some = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
        raise LabelError.unseen(some, model.classes_[:20].tolist())
    width = max(L, int(places.max(initial=-1)) + 1)
    truth = sparse.csr_matrix((labels.data, codes, labels.indptr), (labels.shape[0], width))
    return truth, int(missed.sum())


def _places(model: LabelTree, width: int) -> Ints:
    """(width,) the code of each label number."""
    numbers, L = np.arange(width), len(model.classes_)
    found = np.full(width, -1)
    if model.kind_ == "indicator":
        found[:L] = numbers[:L]
    elif model.classes_.dtype.kind in "iuf":
        at = np.minimum(np.searchsorted(model.classes_, numbers), L - 1)
        same = model.classes_[at] == numbers
        found[same] = at[same]
    strange = found < 0
    found[strange] = L + np.arange(int(strange.sum()))
    return found
