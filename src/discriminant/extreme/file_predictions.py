"""Files of sparse rows for label trees: reading, predicting and assessing a model on them.

A file is XMC text or svmlight. Features in XMC text are numbered from 0, those in svmlight files
from 0 or from 1. The model stores the number of its first feature as `first_feature_`; a model
without this attribute infers it from the file. Rows are read, scored and written in blocks of a few
megabytes. Predictions have one line per row, with the columns

    label_1, score_1, label_2, score_2, ..

The best label comes first. If the search reaches fewer labels for a row, the remaining columns are
empty. The output file is replaced atomically.

To assess a model, the k best labels of each block are added to a `TopK`. PSP@k, PSnDCG@k and the
means by label frequency use the number of training rows of each label, which the model stores. A
label that is unknown to the model cannot be predicted: by default an error is raised; on request
the label counts as a miss.
"""

from __future__ import annotations

import csv
import io
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discriminant.errors import LabelError, OptionError, SparseFileError
from discriminant.extreme.model.propensity import inverse_propensity
from discriminant.extreme.ranking_measures import FrequencyBin, TopK
from discriminant.report.format import count_range, percent, whole
from discriminant.study.data_source import label_columns, reject_table
from discriminant.study.prediction_writers import ArrowWriter, safe_cell
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

Ints = npt.NDArray[np.int64]
Progress = Callable[[int, int], object]  # called with the rows done and the total number of rows

EDGES = (0, 1, 2, 5, 20, 100, 500, 2000, 10_000, 100_000)
_ARROW = (".parquet", ".arrow", ".feather")


class LabelRanker(Protocol):
    """Interface of a fitted model that ranks labels, such as a `LabelTree`."""

    classes_: Any
    kind_: Any
    n_features_in_: int
    n_rows_: int

    def predict_topk(self, X: Any, k: int = 5) -> tuple[Any, Any]:
        """Return codes (n, k) and scores (n, k) of the k best labels of each row."""
        ...


def read_labelled_rows(source: Any, *, first: FirstFeature = "auto") -> LabelledRows:
    """Return all rows of a file of sparse rows, with their label sets."""
    path = single_file(source)
    rows = read_xmc(path) if is_xmc(path) else read_svmlight_sets(path, first=first)
    if not len(rows):
        raise SparseFileError.without_rows(os.fspath(path))
    return rows


def is_xmc(path: Any) -> bool:
    """Return whether a file begins with the header of XMC text."""
    return xmc_header(path) is not None


def xmc_header(path: Any) -> tuple[int, ...] | None:
    """Return the number of rows, of features and of labels in the header of XMC text.

    Return None for other files.
    """
    for piece in line_blocks(path):
        words = piece.split(b"\n", 1)[0].split()
        is_header = len(words) == 3 and all(word.isdigit() for word in words)
        return tuple(int(word) for word in words) if is_header else None
    return None


def check_same_width(path: Any, other: Any) -> None:
    """Raise an error if the headers of two XMC files state different numbers of features."""
    ours, theirs = xmc_header(path), xmc_header(other)
    if ours is not None and theirs is not None and ours[1] != theirs[1]:
        raise SparseFileError.of_width(os.fspath(other), theirs[1], ours[1])


def write_predictions(
    model: LabelRanker,
    source: Any,
    out: str | os.PathLike[str],
    *,
    k: int,
    safe: bool,
    progress: Progress,
) -> tuple[int, dict[str, int], tuple[str, ...]]:
    """Write the k best labels of every row of `source` to the file `out`.

    Returns
    -------
    rows : int
    counts : dict
        Number of rows for which each label is ranked first.
    columns : tuple of str
        Columns written.
    """
    rows, counts = 0, Counter[str]()
    names = label_columns(k)
    texts = np.array([str(label) for label in model.classes_.tolist()] + [""], dtype=object)
    with atomic_write(out) as file:
        writer: Any
        if Path(out).suffix in _ARROW:
            parquet = Path(out).suffix == ".parquet"
            writer = _ArrowLabelWriter(ArrowWriter(file, parquet=parquet), names)
        else:
            writer = _CsvLabelWriter(file, names, safe)
        for block, total in read_blocks(model, single_file(source)):
            codes, scores = model.predict_topk(block.features, k=k)
            # code -1, for no label, selects the last text, which is empty
            writer.add(texts[codes], scores)
            counts.update(texts[codes[:, 0]].tolist())
            rows += len(codes)
            progress(rows, total)
        writer.close()
    return rows, dict(counts), tuple(names)


def single_file(source: Any) -> Any:
    """Return the path of the source, which must be a single file of sparse rows."""
    if isinstance(source, list | tuple) and len(source) == 1:
        source = source[0]
    if not isinstance(source, str | os.PathLike):
        raise OptionError.of("source", source, "one file of sparse rows, XMC text or svmlight")
    reject_table(source)
    return source


def read_blocks(model: LabelRanker, path: Any) -> Iterator[tuple[LabelledRows, int]]:
    """Yield blocks of labelled rows with the model's features, and the total number of rows."""
    empty = True
    for block, total in _blocks(model, path):
        if len(block):
            empty = False
            yield block, total
    if empty:
        raise SparseFileError.without_rows(os.fspath(path))


def _blocks(model: LabelRanker, path: Any) -> Iterator[tuple[LabelledRows, int]]:
    d, header = model.n_features_in_, xmc_header(path)
    if header is None:
        yield from svmlight_blocks(path, features=d, first=_first_feature(model), more="drop")
        return
    for block in xmc_blocks(path):
        if block.features.shape[1] != d:
            raise SparseFileError.of_width(os.fspath(path), block.features.shape[1], d)
        yield block, header[0]


def _first_feature(model: LabelRanker) -> FirstFeature:
    first: FirstFeature = getattr(model, "first_feature_", "auto")
    if first not in ("auto", 0, 1):
        raise OptionError.of("first_feature_", first, "0 or 1")
    return first


class _CsvLabelWriter:
    """Writer of labels and scores as CSV in UTF-8."""

    def __init__(self, file: Any, names: list[str], safe: bool) -> None:
        self.safe = safe
        self.text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
        self.out = csv.writer(self.text, lineterminator="\n")
        self.out.writerow(names)

    def add(self, labels: Any, scores: Any) -> None:
        for row_labels, row_scores in zip(labels.tolist(), scores.tolist(), strict=True):
            cells: list[object] = []
            for label, score in zip(row_labels, row_scores, strict=True):
                cells.append(safe_cell(label) if self.safe else label)
                cells.append(score if score > -np.inf else "")
            self.out.writerow(cells)

    def close(self) -> None:
        self.text.detach()


class _ArrowLabelWriter:
    """Writer of labels and scores as Parquet or Arrow IPC."""

    def __init__(self, writer: ArrowWriter, names: list[str]) -> None:
        self.writer, self.names = writer, names

    def add(self, labels: Any, scores: Any) -> None:
        import pyarrow as pa

        absent = ~(scores > -np.inf)
        columns: dict[str, Any] = {}
        for j in range(labels.shape[1]):
            columns[self.names[2 * j]] = pa.array(labels[:, j], pa.string(), mask=absent[:, j])
            columns[self.names[2 * j + 1]] = pa.array(scores[:, j], mask=absent[:, j])
        self.writer.add(pa.table(columns), None, {})  # type: ignore[arg-type]

    def close(self) -> None:
        self.writer.close()


@dataclass(frozen=True, slots=True, eq=False)
class FileAssessment:
    """Accuracy of a label tree on a file of labelled rows."""

    top_k: TopK
    # bins that contain labels; None if the model has no label counts
    bins: tuple[FrequencyBin, ...] | None
    pairs: int  # number of (row, label) pairs
    unknown: int  # number of pairs whose label is unknown to the model
    seconds: float  # duration of the search

    def to_dict(self) -> dict[str, Any]:
        """Return the assessment as a dict of plain numbers."""
        measures = self.top_k.to_dict() | {"labels_a_row": self.pairs / max(self.top_k.rows, 1)}
        measures |= {"unknown": self.unknown, "seconds": self.seconds}
        if self.bins is not None:
            measures["by_frequency"] = [asdict(group) for group in self.bins]
        return measures

    def __str__(self) -> str:
        lines = [str(self.top_k)]
        if self.bins:
            lines += ["", "Means over labels, by number of training rows:"]
            lines.append(f"{'rows':>16}{'labels':>10}{'recall':>9}{'precision':>11}{'F1':>8}")
            lines += [
                f"{count_range(group.least, group.most):>16}{whole(group.labels):>10}"
                f"{percent(group.recall):>9}{percent(group.precision):>11}{percent(group.f1):>8}"
                for group in self.bins
            ]
        if self.unknown:
            lines += ["", f"{self.unknown:,} labels are unknown to the model and count as misses"]
        return "\n".join(lines)


def assess_file(
    model: LabelRanker,
    source: Any,
    *,
    k: int = 5,
    unknown: str = "error",
    progress: Progress = lambda done, total: None,
) -> FileAssessment:
    """Assess a label tree on a file of sparse rows, XMC text or svmlight.

    Parameters
    ----------
    model : LabelTree
        Fitted model.
    source : path-like
        File of labelled rows.
    k : int, default=5
        Number of labels predicted for each row.
    unknown : {'error', 'count'}, default='error'
        Treatment of labels that are unknown to the model: 'error' raises an error, 'count' counts
        them as misses.
    progress : callable, optional
        Called with the number of processed rows and the total number of rows.

    Returns
    -------
    FileAssessment
    """
    total: TopK | None = None
    pairs, unknown_pairs, seconds = 0, 0, 0.0
    frequency = getattr(model, "label_rows_", None)
    for block, n_rows in read_blocks(model, single_file(source)):
        truth, n_unknown = _encode_truth(model, block.labels, unknown)
        if total is None:
            # compile or load the loops before the time is taken
            model.predict_topk(block.features[:1], k=k)
        start = time.perf_counter()
        codes, _ = model.predict_topk(block.features, k=k)
        seconds += time.perf_counter() - start
        weights = None
        if frequency is not None:
            counts = _pad_counts(frequency, truth.shape[1])
            weights = inverse_propensity(counts, rows=model.n_rows_)
        part = TopK.of(codes, truth, inverse_propensity=weights)
        total = part if total is None else total + part
        pairs, unknown_pairs = pairs + truth.nnz, unknown_pairs + n_unknown
        progress(total.rows, n_rows)
    assert total is not None  # read_blocks raises for a file without rows
    bins = None
    if frequency is not None:
        counts = _pad_counts(frequency, len(total.label_rows))
        bins = tuple(group for group in total.by_frequency(counts, EDGES) if group.labels)
    return FileAssessment(total, bins, pairs, unknown_pairs, seconds)


def _pad_counts(frequency: Any, width: int) -> Any:
    """Return the number of training rows of each label; 0 for labels unknown to the model."""
    return np.concatenate([frequency, np.zeros(width - len(frequency), dtype=np.int64)])


def _encode_truth(model: LabelRanker, labels: Any, unknown: str) -> tuple[Any, int]:
    """Convert label numbers to codes of the model; unknown labels get the codes L, L + 1, ..."""
    L, code_of = len(model.classes_), _codes_of_numbers(model, labels.shape[1])
    codes = code_of[labels.indices]
    is_unknown = codes >= L
    if is_unknown.any() and unknown == "error":
        numbers, counts = np.unique(labels.indices[is_unknown], return_counts=True)
        count_of = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
        raise LabelError.unseen(count_of, model.classes_[:20].tolist())
    width = max(L, int(code_of.max(initial=-1)) + 1)
    truth = sparse.csr_matrix((labels.data, codes, labels.indptr), (labels.shape[0], width))
    return truth, int(is_unknown.sum())


def _codes_of_numbers(model: LabelRanker, width: int) -> Ints:
    """Return the codes (width,) of all label numbers; unknown labels get codes of L or more."""
    numbers, L = np.arange(width), len(model.classes_)
    codes = np.full(width, -1)
    if model.kind_ == "indicator":
        codes[:L] = numbers[:L]
    elif model.classes_.dtype.kind in "iuf":
        at = np.minimum(np.searchsorted(model.classes_, numbers), L - 1)
        same = model.classes_[at] == numbers
        codes[same] = at[same]
    unknown = codes < 0
    codes[unknown] = L + np.arange(int(unknown.sum()))
    return codes
