"""How good ranked lists of labels are, from sums that add.

Row i has the labels Y_i; its list has the label at rank r = 1 .. K; hit_r is 1 if that one is in
Y_i, and d_r = 1 / log2(r + 1):

    P@k         mean of      sum_{r <= k} hit_r / k
    recall@k    mean of      sum_{r <= k} hit_r / |Y_i|
    nDCG@k      mean of      sum_{r <= k} hit_r d_r / sum_{r <= min(k, |Y_i|)} d_r
    PSP@k       sum over i   sum_{r <= k} hit_r / p_r          over the same of the best list
    PSnDCG@k    sum over i   sum_{r <= k} hit_r d_r / p_r / sum_{r <= min(k, |Y_i|)} d_r
                                                               over the same of the best list

p is the propensity of a label (`models.label_tree.propensity`); the best list has the row's own
labels, the least likely ones first. Sums over all rows are divided, not row by row; both are as in
napkinXC 0.7.2, `psprecision_at_k` and `psndcg_at_k` (its `psdcg_at_k` is PSnDCG@k without the last
sum, by which rows of few labels count more). A row without labels can only be wrong: P@k counts it;
recall and nDCG, which are 0/0 there, leave it out.

Labels that few rows have are lost in such means. So hits, lists and rows of every label are summed
too, and `by_frequency` has recall, precision and F1 of labels, averaged over the labels that are
about as frequent as each other.

What rows are truly labelled with, as one sparse matrix of codes.

    indicator    (n, L), sparse or not, with 1 where a row has a label
    codes        (n,) the label of each row, with L
    names        (n,) the label of each row, or a set of labels for each, with `classes`: the code
                 of a label is its place there

A name that is not among the classes is refused: no list of their codes could have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from discriminant.errors import LabelError, OptionError, RankedLabelsError
from discriminant.table.blocks import Floats, Labels, canonical_rows
from discriminant.table.labels import check_same_kind, encode_labels

_SETS = (set, frozenset, list, tuple, np.ndarray)


def label_indicator(truth: Any, *, labels: int | None = None, classes: Any = None) -> Any:
    """The truth as (n, L) CSR, sorted and without entries that are zero.

    >>> label_indicator([{"a", "c"}, set()], classes=["a", "b", "c"]).toarray().astype(int).tolist()
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
            raise RankedLabelsError.ambiguous_indicator(len(known))
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
        raise LabelError.duplicate_classes(known.tolist())
    labels, codes = encode_labels(names) if len(names) else (known[:0], np.zeros(0, np.intp))
    check_same_kind(labels, known)
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


Ints = npt.NDArray[np.int64]

EDGES = (1, 2, 5, 20, 100)
_PS = ("ps_hits", "ps_best", "ps_gained", "ps_ideal")
_SUMS = ("weight", "labelled", "hits", "recalled", "gained", "ps_weight", *_PS)
_OF_LABELS = ("label_hits", "label_lists", "label_rows")


@dataclass(frozen=True, slots=True)
class FrequencyBin:
    """Labels with `least` to `most` training rows, and the means over them."""

    least: int
    most: float  # a count, infinite in the last bin
    labels: int  # how many of them the assessed rows have
    recall: float
    precision: float  # a label that is in no list counts 0
    f1: float


@dataclass(frozen=True, slots=True, eq=False)
class TopK:
    """Sums over rows of lists of K labels out of L."""

    rows: int
    weight: float
    labelled: float  # weight of the rows that have labels
    hits: Floats  # (K,) sum of w hit_r
    recalled: Floats  # (K,) sum of w recall@k of the row
    gained: Floats  # (K,) sum of w nDCG@k of the row
    ps_weight: float  # weight of the rows read with propensities
    ps_hits: Floats  # (K,) sum of w hit_r / p_r
    ps_best: Floats  # (K,) the same of the best list
    ps_gained: Floats  # (K,) sum of w (sum over r <= k of hit_r d_r / p_r) / that of d_r
    ps_ideal: Floats  # (K,) the same of the best list
    label_hits: Floats  # (L,) weight of the rows with the label in their list and among their own
    label_lists: Floats  # (L,) of the rows with it in their list
    label_rows: Floats  # (L,) of the rows with it among their own

    @classmethod
    def empty(cls, *, labels: int, k: int = 5) -> Self:
        """Of no rows."""
        ranked, each = (np.zeros(k) for _ in range(7)), (np.zeros(labels) for _ in range(3))
        hits, recalled, gained, *scored = ranked
        return cls(0, 0.0, 0.0, hits, recalled, gained, 0.0, *scored, *each)

    @classmethod
    def of(
        cls,
        lists: Any,
        truth: Any,
        *,
        labels: int | None = None,
        classes: Any = None,
        inverse_propensity: Any = None,
        weight: Any = None,
    ) -> Self:
        """Read lists of labels and what was true.

        Parameters
        ----------
        lists
            (n, K) label codes, the best first; -1 where a list has fewer.
        truth
            (n, L) sparse indicator; or (n,) codes, one label a row, with `labels`; or labels by
            name, one or a set of them a row, with `classes`.
        classes
            (L,) the name of each code: `model.classes_`.
        inverse_propensity
            (L,) 1 / p of each label; None: without PSP@k and PSnDCG@k.
        weight
            (n,) None is one for every row; a row of weight 0 is absent.

        Examples
        --------
        >>> found = TopK.of([[2, 0], [1, 2]], np.array([0, 1]), labels=3)
        >>> found.precision.tolist(), found.recall.tolist()
        ([0.5, 0.5], [0.5, 1.0])
        >>> TopK.of([[2, 0], [1, 2]], [{"a", "c"}, {"b"}], classes=["a", "b", "c"]).precision
        array([1.  , 0.75])
        """
        told = _RankedRows.of(lists, truth, labels, classes, weight)
        hit = told.hit()
        ones = told.weight
        discount = 1.0 / np.log2(np.arange(told.lists.shape[1]) + 2.0)
        own = np.diff(told.truth.indptr)
        some = own > 0
        so_far = np.cumsum(hit, axis=1)[some]
        ideal = told.ideal(discount)
        found = cls.empty(labels=told.truth.shape[1], k=told.lists.shape[1])
        found = replace(
            found,
            rows=len(ones),
            weight=float(ones.sum()),
            labelled=float(ones[some].sum()),
            hits=ones @ hit,
            recalled=ones[some] @ (so_far / own[some, None]),
            gained=ones @ (np.cumsum(hit * discount, axis=1) / ideal),
        )
        found = replace(found, **told.by_label(hit))
        return found if inverse_propensity is None else found._with(told, hit, inverse_propensity)

    def _with(self, told: _RankedRows, hit: Floats, inverse_propensity: Any) -> Self:
        value = _checked_values(inverse_propensity, told.truth.shape[1])
        won = hit * np.where(told.lists >= 0, value[np.maximum(told.lists, 0)], 0.0)
        discount = 1.0 / np.log2(np.arange(told.lists.shape[1]) + 2.0)
        ideal, best = told.ideal(discount), told.best(value)
        return replace(
            self,
            ps_weight=self.weight,
            ps_hits=told.weight @ won,
            ps_best=told.weight @ best,
            ps_gained=told.weight @ (np.cumsum(won * discount, axis=1) / ideal),
            ps_ideal=told.weight @ (np.cumsum(best * discount, axis=1) / ideal),
        )

    def __add__(self, other: TopK) -> Self:
        """Over the rows of both."""
        mine, theirs = ((len(one.hits), len(one.label_rows)) for one in (self, other))
        if mine != theirs:
            raise RankedLabelsError.of_sizes(mine, theirs)
        sums = {name: getattr(self, name) + getattr(other, name) for name in (*_SUMS, *_OF_LABELS)}
        return replace(self, rows=self.rows + other.rows, **sums)

    def __radd__(self, other: object) -> Self:
        """So that `sum(parts)` works: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    # --- of all rows ------------------------------------------------------------------------------

    @property
    def precision(self) -> Floats:
        """(K,) P@1 .. P@K."""
        return _over(np.cumsum(self.hits), self.weight * (np.arange(len(self.hits)) + 1.0))

    @property
    def recall(self) -> Floats:
        """(K,) recall@1 .. recall@K over the rows that have labels."""
        return _over(self.recalled, self.labelled)

    @property
    def ndcg(self) -> Floats:
        """(K,) nDCG@1 .. nDCG@K over the rows that have labels."""
        return _over(self.gained, self.labelled)

    @property
    def ps_precision(self) -> Floats:
        """(K,) PSP@1 .. PSP@K; NaN unless all rows were read with propensities."""
        return self._scored(np.cumsum(self.ps_hits), np.cumsum(self.ps_best))

    @property
    def ps_ndcg(self) -> Floats:
        """(K,) PSnDCG@1 .. PSnDCG@K; NaN unless all rows were read with propensities."""
        return self._scored(self.ps_gained, self.ps_ideal)

    def _scored(self, won: Floats, best: Floats) -> Floats:
        if self.ps_weight != self.weight:
            return np.full(len(self.hits), np.nan)
        return _over(won, best)

    # --- of labels --------------------------------------------------------------------------------

    def by_frequency(
        self, frequency: Any, edges: Sequence[int] = EDGES
    ) -> tuple[FrequencyBin, ...]:
        """Means over labels of about the same frequency, of those that the rows have.

        Parameters
        ----------
        frequency
            (L,) training rows of each label.
        edges
            Rising; the least frequency of each bin. Labels below the first are left out.
        """
        count = np.asarray(frequency)
        if count.shape != self.label_rows.shape:
            raise RankedLabelsError.of_values("frequency", count.shape, len(self.label_rows))
        if any(above <= edge for edge, above in pairwise(edges)):
            raise OptionError.of("edges", edges, "rising numbers")
        ends = [*(edge - 1 for edge in edges[1:]), np.inf]
        return tuple(self._bin(count, *pair) for pair in zip(edges, ends, strict=True))

    def _bin(self, count: Any, least: int, most: float) -> FrequencyBin:
        some = (count >= least) & (count <= most) & (self.label_rows > 0)
        hits, lists, rows = (getattr(self, name)[some] for name in _OF_LABELS)
        precision = np.divide(hits, lists, out=np.zeros_like(hits), where=lists > 0)
        means = (_mean(each) for each in (hits / rows, precision, 2 * hits / (lists + rows)))
        return FrequencyBin(least, most, int(some.sum()), *means)

    # --- as text ----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers by name: 'P@1', 'nDCG@5'."""
        named = {"P": self.precision, "nDCG": self.ndcg, "recall": self.recall}
        if self.ps_weight == self.weight:
            named |= {"PSP": self.ps_precision, "PSnDCG": self.ps_ndcg}
        each = {
            f"{name}@{k}": v for name, at in named.items() for k, v in enumerate(at.tolist(), 1)
        }
        return {"rows": self.rows, **each}

    def __str__(self) -> str:
        facts = self.to_dict()
        names = list(dict.fromkeys(name.partition("@")[0] for name in facts if "@" in name))
        at = range(1, len(self.hits) + 1)
        lines = [f"{'':8}" + "".join(f"{f'@{k}':>8}" for k in at)]
        lines += [f"{n:8}" + "".join(f"{facts[f'{n}@{k}']:8.4f}" for k in at) for n in names]
        return "\n".join([*lines, f"{self.rows} rows"])


@dataclass(frozen=True, slots=True, eq=False)
class _RankedRows:
    """Lists and truth of n rows that count, checked."""

    lists: Ints  # (n, K)
    truth: Any  # (n, L) CSR, indices rising
    weight: Floats  # (n,) positive

    @classmethod
    def of(cls, lists: Any, truth: Any, labels: int | None, classes: Any, weight: Any) -> Self:
        codes = np.asarray(lists)
        if codes.ndim != 2 or (codes.size and codes.dtype.kind not in "iu"):
            raise RankedLabelsError.of_lists(codes.shape, codes.dtype)
        own = label_indicator(truth, labels=labels, classes=classes)
        if own.shape[0] != len(codes):
            raise RankedLabelsError.of_lengths(len(codes), own.shape[0])
        codes = codes.astype(np.int64, copy=False)
        _check_lists(codes, own.shape[1])
        if weight is None:
            return cls(codes, own, np.ones(len(codes)))
        ones = np.asarray(weight, dtype=np.float64)
        some = ones > 0
        return cls(codes, own, ones) if some.all() else cls(codes[some], own[some], ones[some])

    def hit(self) -> Floats:
        """(n, K) 1 where the label at that rank is one of the row's."""
        L = max(self.truth.shape[1], 1)
        row = np.repeat(np.arange(len(self.lists)), np.diff(self.truth.indptr))
        own = row * L + self.truth.indices
        asked = np.arange(len(self.lists))[:, None] * L + self.lists
        place = np.searchsorted(own, asked)
        found = np.zeros(self.lists.shape, dtype=bool)
        inside = (place < len(own)) & (self.lists >= 0)
        found[inside] = own[place[inside]] == asked[inside]
        return found.astype(np.float64)

    def ideal(self, discount: Floats) -> Floats:
        """(n, K) sum of the discounts of the best list; that of one label for a row of none."""
        own = np.maximum(np.diff(self.truth.indptr), 1)[:, None]
        return np.asarray(np.cumsum(discount)[np.minimum(own, np.arange(len(discount)) + 1) - 1])

    def best(self, value: Floats) -> Floats:
        """(n, K) the r-th largest value among the row's labels, 0 beyond the last."""
        ends, worth = self.truth.indptr, value[self.truth.indices]
        row = np.repeat(np.arange(len(self.lists)), np.diff(ends))
        order = np.lexsort((-worth, row))
        rank = np.arange(len(row)) - ends[row]
        some = rank < self.lists.shape[1]
        found = np.zeros(self.lists.shape)
        found[row[some], rank[some]] = worth[order][some]
        return found

    def by_label(self, hit: Floats) -> dict[str, Any]:
        L, listed = self.truth.shape[1], self.lists >= 0
        heavy = np.broadcast_to(self.weight[:, None], self.lists.shape)
        row = np.repeat(np.arange(len(self.lists)), np.diff(self.truth.indptr))
        sums = (
            (self.lists[listed], (heavy * hit)[listed]),
            (self.lists[listed], heavy[listed]),
            (self.truth.indices, self.weight[row]),
        )
        counted = (np.bincount(place, each, minlength=L) for place, each in sums)
        return dict(
            zip(_OF_LABELS, (np.asarray(c, dtype=np.float64) for c in counted), strict=True)
        )


def _check_lists(codes: Ints, L: int) -> None:
    if codes.size and not -1 <= codes.min() <= codes.max() < L:
        raise RankedLabelsError.of_code(int(codes.min()), int(codes.max()), L)
    ordered = np.sort(codes, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if twice.any():
        row, place = (int(at[0]) for at in np.nonzero(twice))
        raise RankedLabelsError.duplicate_label(row, int(ordered[row, place]))


def _checked_values(values: Any, L: int) -> Floats:
    found = np.asarray(values, dtype=np.float64)
    if found.shape != (L,):
        raise RankedLabelsError.of_values("inverse_propensity", found.shape, L)
    if not (np.isfinite(found).all() and (found > 0).all()):
        raise RankedLabelsError.not_positive(
            int(np.flatnonzero(~(found > 0) | ~np.isfinite(found))[0])
        )
    return found


def _over(sums: Any, by: Any) -> Floats:
    """The quotient, NaN of 0/0."""
    by = np.broadcast_to(np.asarray(by, dtype=np.float64), np.shape(sums))
    return np.asarray(np.divide(sums, by, out=np.full(np.shape(sums), np.nan), where=by > 0))


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else np.nan
