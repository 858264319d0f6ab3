"""How good a label tree is on a file of labelled rows, some megabytes at a time.

Of each block the k best labels are found, and `TopK` adds up what they were worth. How frequent
labels were in training is known to the model: PSP@k and PSnDCG@k, and means over labels of about
the same frequency, need no more. A label that the model does not know cannot be found; where such
are counted, it is one of its row's that was missed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discriminant.assessment.top_k import FrequencyBin, TopK
from discriminant.errors import LabelError
from discriminant.estimators.label_tree import LabelTree
from discriminant.models.label_tree.propensity import inverse_propensity
from discriminant.report.words import between, percent, whole
from discriminant.study.label_files import labelled_blocks, one_file

Progress = Callable[[int, int], object]
Ints = npt.NDArray[np.int64]

EDGES = (0, 1, 2, 5, 20, 100, 500, 2000, 10_000, 100_000)


@dataclass(frozen=True, slots=True, eq=False)
class LabelsAssessed:
    """A label tree measured on a file."""

    found: TopK
    bins: tuple[FrequencyBin, ...] | None  # those that have labels; None: frequency is not known
    pairs: int  # labels of all rows
    unknown: int  # those that the model does not know
    seconds: float  # of the search

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers by name."""
        told = self.found.to_dict() | {"labels_a_row": self.pairs / max(self.found.rows, 1)}
        told |= {"unknown": self.unknown, "seconds": self.seconds}
        if self.bins is not None:
            told["by_frequency"] = [
                {name: getattr(one, name) for name in FrequencyBin.__dataclass_fields__}
                for one in self.bins
            ]
        return told

    def __str__(self) -> str:
        lines = [str(self.found)]
        if self.bins:
            lines += ["", "Means over labels, by the rows that they had in training:"]
            lines.append(f"{'rows':>16}{'labels':>10}{'recall':>9}{'precision':>11}{'F1':>8}")
            lines += [
                f"{between(one.least, one.most):>16}{whole(one.labels):>10}{percent(one.recall):>9}"
                f"{percent(one.precision):>11}{percent(one.f1):>8}"
                for one in self.bins
            ]
        if self.unknown:
            lines += ["", f"{self.unknown:,} labels are unknown to the model, and count as missed"]
        return "\n".join(lines)


def assessed_labels(
    model: LabelTree,
    source: Any,
    *,
    k: int = 5,
    unknown: str = "error",
    told: Progress = lambda done, of: None,
) -> LabelsAssessed:
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
    for block, of in labelled_blocks(model, one_file(source)):
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
    return LabelsAssessed(total, bins, pairs, strange, seconds)


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
