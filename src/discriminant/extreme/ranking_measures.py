"""Accuracy of ranked labels: P@k, recall@k, nDCG@k and their propensity-scored forms.

Row i has the labels Y_i; its list has a label at each rank r = 1 .. K; hit_r is 1 if that label is
in Y_i, and d_r = 1 / log2(r + 1):

    P@k         mean of      sum_{r <= k} hit_r / k
    recall@k    mean of      sum_{r <= k} hit_r / |Y_i|
    nDCG@k      mean of      sum_{r <= k} hit_r d_r / sum_{r <= min(k, |Y_i|)} d_r
    PSP@k       sum over i   sum_{r <= k} hit_r / p_r          over the same for the best list
    PSnDCG@k    sum over i   sum_{r <= k} hit_r d_r / p_r / sum_{r <= min(k, |Y_i|)} d_r
                                                               over the same for the best list

p is the propensity of a label (`extreme.model.propensity`); the best list consists of the row's own
labels, those of lowest propensity first. The sums over all rows are divided, not row by row, as in
napkinXC 0.7.2, `psprecision_at_k` and `psndcg_at_k` (its `psdcg_at_k` is PSnDCG@k without the last
sum, so that rows with few labels count more). A row without labels is always wrong: P@k counts it;
recall and nDCG, which are 0/0 there, leave it out.

Rare labels hardly affect such means. So hits, predictions and rows of every label are summed too,
and `by_frequency` averages recall, precision and F1 over labels of similar frequency.

The true labels are converted to one sparse matrix of codes:

    indicator    (n, L), sparse or dense, with 1 where a row has a label
    codes        (n,) code of the label of each row, with `labels`=L
    names        (n,) label of each row, or a set of labels per row, with `classes`: the code of a
                 label is its index there

A name that is not among the classes raises an error: no list of codes could contain it.
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
    """Return the true labels as an (n, L) CSR matrix, sorted and without zero entries.

    >>> label_indicator([{"a", "c"}, set()], classes=["a", "b", "c"]).toarray().astype(int).tolist()
    [[1, 0, 1], [0, 0, 0]]
    """
    known = None if classes is None else np.asarray(classes)
    if known is not None and labels is not None and labels != len(known):
        raise RankedLabelsError.of_values("classes", known.shape, labels)
    if sparse.issparse(truth):
        return _from_matrix(truth, labels if known is None else len(known))
    if known is None:
        return _from_codes(truth, labels)
    rows = truth if isinstance(truth, list | tuple) else np.asarray(truth)
    if isinstance(rows, np.ndarray) and rows.ndim == 2:
        return _from_table(rows, known)
    if isinstance(rows, np.ndarray) and rows.ndim != 1:
        raise RankedLabelsError.of_truth(rows.shape, rows.dtype, len(known))
    if len(rows) > 0 and all(isinstance(own, _SETS) for own in rows):
        if _looks_like_indicator(rows, len(known)):
            raise RankedLabelsError.ambiguous_indicator(len(known))
        ends = np.concatenate([[0], np.cumsum([len(own) for own in rows])])
        return _from_names(list(chain.from_iterable(rows)), ends, known)
    for row, own in enumerate(rows):
        if isinstance(own, _SETS) != isinstance(rows[0], _SETS):
            raise RankedLabelsError.mixed(row, own)
    return _from_names(rows, np.arange(len(rows) + 1), known)


def _looks_like_indicator(rows: Any, labels: int) -> bool:
    """Whether lists may be meant as rows of an indicator: L numbers each, all 0 or 1."""
    plain = all(isinstance(own, list | tuple) and len(own) == labels for own in rows)
    return labels > 1 and plain and set(chain.from_iterable(rows)) <= {0, 1}


def _from_table(table: Any, known: Labels) -> Any:
    """From an indicator, or from a table with the label names of each row."""
    if table.dtype.kind in "OUST":
        return _from_names(table.ravel(), np.arange(0, table.size + 1, table.shape[1]), known)
    if not np.isin(table, (0, 1)).all():
        raise RankedLabelsError.of_truth(table.shape, table.dtype, len(known))
    return _from_matrix(sparse.csr_matrix(table), len(known))


def _from_names(names: Any, ends: Any, known: Labels) -> Any:
    """From the names of all rows, concatenated; those of row i end at ends[i + 1]."""
    code_of = {label: code for code, label in enumerate(known.tolist())}
    if len(code_of) < len(known):
        raise LabelError.duplicate_classes(known.tolist())
    labels, codes = encode_labels(names) if len(names) else (known[:0], np.zeros(0, np.intp))
    check_same_kind(labels, known)
    unknown = [label for label in labels.tolist() if label not in code_of]
    if unknown:
        raise RankedLabelsError.unknown(unknown, len(known))
    codes = np.array([code_of[label] for label in labels.tolist()], dtype=np.int64)[codes]
    ones = np.ones(len(codes))
    return _from_matrix(sparse.csr_matrix((ones, codes, ends), (len(ends) - 1, len(known))), None)


def _from_codes(truth: Any, labels: int | None) -> Any:
    """From one code for each row, or from a dense indicator."""
    try:
        codes = np.asarray(truth)
    except ValueError:  # lists of different lengths
        raise RankedLabelsError.of_names() from None
    if codes.dtype.kind in "OUST":
        raise RankedLabelsError.of_names()
    if codes.ndim == 2:
        return _from_matrix(sparse.csr_matrix(codes), labels)
    if labels is None or codes.dtype.kind not in "iu":
        raise RankedLabelsError.of_truth(codes.shape, codes.dtype, labels)
    if codes.size and not 0 <= codes.min() <= codes.max() < labels:
        raise RankedLabelsError.of_code(int(codes.min()), int(codes.max()), labels)
    ends = np.arange(len(codes) + 1)
    return sparse.csr_matrix((np.ones(len(codes)), codes, ends), (len(codes), labels))


def _from_matrix(truth: Any, labels: int | None) -> Any:
    matrix = canonical_rows(truth)
    if labels is not None and labels != matrix.shape[1]:
        raise RankedLabelsError.of_values("truth", matrix.shape, labels)
    return matrix


Ints = npt.NDArray[np.int64]

EDGES = (1, 2, 5, 20, 100)
_PS = ("ps_hits", "ps_best", "ps_gained", "ps_ideal")
_SUMS = ("weight", "labelled", "hits", "recalled", "gained", "ps_weight", *_PS)
_LABEL_SUMS = ("label_hits", "label_lists", "label_rows")


@dataclass(frozen=True, slots=True)
class FrequencyBin:
    """Means over the labels with `least` to `most` training rows.

    Attributes
    ----------
    least : int
    most : float
        A count, infinite in the last bin.
    labels : int
        Number of these labels that occur in the assessed rows.
    recall, precision, f1 : float
        Means over labels; the precision of a label that is never predicted is 0.
    """

    least: int
    most: float
    labels: int
    recall: float
    precision: float
    f1: float


@dataclass(frozen=True, slots=True, eq=False)
class TopK:
    """Accuracy of lists of K ranked labels out of L, as sums over rows that can be added.

    Create it with `TopK.of`, add parts with `+` or `sum`, then read the properties `precision`,
    `recall`, `ndcg`, `ps_precision` and `ps_ndcg`, each of shape (K,).

    Attributes
    ----------
    rows : int
        Number of rows.
    weight, labelled, ps_weight : float
        Weight of all rows, of the rows with labels, and of the rows with propensities.
    hits, recalled, gained : ndarray of shape (K,)
        Weighted sums of hits at each rank, of recall@k and of nDCG@k.
    ps_hits, ps_best, ps_gained, ps_ideal : ndarray of shape (K,)
        Numerators and denominators of PSP@k and PSnDCG@k.
    label_hits, label_lists, label_rows : ndarray of shape (L,)
        Weight of the rows with a label predicted correctly, predicted, and true.

    See Also
    --------
    LabelTree : Classifier for very many labels; `predict_topk` returns ranked labels.

    Examples
    --------
    >>> measures = TopK.of([[2, 0], [1, 2]], np.array([0, 1]), labels=3)
    >>> measures.precision.tolist(), measures.recall.tolist()
    ([0.5, 0.5], [0.5, 1.0])
    """

    rows: int
    weight: float
    labelled: float  # weight of the rows with labels
    hits: Floats  # (K,) sum of w hit_r
    recalled: Floats  # (K,) sum of w recall@k of the row
    gained: Floats  # (K,) sum of w nDCG@k of the row
    ps_weight: float  # weight of the rows added with propensities
    ps_hits: Floats  # (K,) sum of w hit_r / p_r
    ps_best: Floats  # (K,) the same for the best list
    ps_gained: Floats  # (K,) sum of w (sum over r <= k of hit_r d_r / p_r) / that of d_r
    ps_ideal: Floats  # (K,) the same for the best list
    label_hits: Floats  # (L,) weight of the rows with the label predicted and true
    label_lists: Floats  # (L,) weight of the rows with it predicted
    label_rows: Floats  # (L,) weight of the rows with it true

    @classmethod
    def empty(cls, *, labels: int, k: int = 5) -> Self:
        """Return sums over no rows, the identity of `+`."""
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
        """Compare ranked labels with the true labels.

        Parameters
        ----------
        lists : array-like of shape (n, K)
            Label codes, best first; -1 where a list is shorter.
        truth : array-like or sparse matrix
            (n, L) indicator; or (n,) codes, one label per row, with `labels`; or labels by name,
            one or a set of them per row, with `classes`.
        labels : int, optional
            Number of labels L.
        classes : array-like of shape (L,), optional
            Name of each code: `model.classes_`.
        inverse_propensity : array-like of shape (L,), optional
            1 / p of each label (default: PSP@k and PSnDCG@k are not computed).
        weight : array-like of shape (n,), optional
            Row weights (default: 1 for every row); rows of weight 0 are ignored.

        Returns
        -------
        TopK

        Examples
        --------
        >>> TopK.of([[2, 0], [1, 2]], [{"a", "c"}, {"b"}], classes=["a", "b", "c"]).precision
        array([1.  , 0.75])
        """
        ranked = _RankedRows.of(lists, truth, labels, classes, weight)
        hit, w = ranked.hit(), ranked.weight
        discount = 1.0 / np.log2(np.arange(ranked.lists.shape[1]) + 2.0)
        n_own = np.diff(ranked.truth.indptr)
        labelled = n_own > 0
        n_hits = np.cumsum(hit, axis=1)[labelled]
        sums = replace(
            cls.empty(labels=ranked.truth.shape[1], k=ranked.lists.shape[1]),
            rows=len(w),
            weight=float(w.sum()),
            labelled=float(w[labelled].sum()),
            hits=w @ hit,
            recalled=w[labelled] @ (n_hits / n_own[labelled, None]),
            gained=w @ (np.cumsum(hit * discount, axis=1) / ranked.ideal(discount)),
            **ranked.by_label(hit),
        )
        if inverse_propensity is None:
            return sums
        return sums._with_propensity(ranked, hit, discount, inverse_propensity)

    def _with_propensity(
        self, ranked: _RankedRows, hit: Floats, discount: Floats, inverse_propensity: Any
    ) -> Self:
        value = _check_inverse_propensity(inverse_propensity, ranked.truth.shape[1])
        gain = hit * np.where(ranked.lists >= 0, value[np.maximum(ranked.lists, 0)], 0.0)
        ideal, best, w = ranked.ideal(discount), ranked.best(value), ranked.weight
        return replace(
            self,
            ps_weight=self.weight,
            ps_hits=w @ gain,
            ps_best=w @ best,
            ps_gained=w @ (np.cumsum(gain * discount, axis=1) / ideal),
            ps_ideal=w @ (np.cumsum(best * discount, axis=1) / ideal),
        )

    def __add__(self, other: TopK) -> Self:
        """Return the sums over the rows of both."""
        mine, theirs = ((len(one.hits), len(one.label_rows)) for one in (self, other))
        if mine != theirs:
            raise RankedLabelsError.of_sizes(mine, theirs)
        sums = {name: getattr(self, name) + getattr(other, name) for name in (*_SUMS, *_LABEL_SUMS)}
        return replace(self, rows=self.rows + other.rows, **sums)

    def __radd__(self, other: object) -> Self:
        """Support `sum(parts)`, which starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    # --- means over rows --------------------------------------------------------------------------

    @property
    def precision(self) -> Floats:
        """(K,) P@1 .. P@K."""
        return _ratio(np.cumsum(self.hits), self.weight * (np.arange(len(self.hits)) + 1.0))

    @property
    def recall(self) -> Floats:
        """(K,) recall@1 .. recall@K over the rows with labels."""
        return _ratio(self.recalled, self.labelled)

    @property
    def ndcg(self) -> Floats:
        """(K,) nDCG@1 .. nDCG@K over the rows with labels."""
        return _ratio(self.gained, self.labelled)

    @property
    def ps_precision(self) -> Floats:
        """(K,) PSP@1 .. PSP@K; NaN unless all rows were added with propensities."""
        return self._ps_ratio(np.cumsum(self.ps_hits), np.cumsum(self.ps_best))

    @property
    def ps_ndcg(self) -> Floats:
        """(K,) PSnDCG@1 .. PSnDCG@K; NaN unless all rows were added with propensities."""
        return self._ps_ratio(self.ps_gained, self.ps_ideal)

    def _ps_ratio(self, gained: Floats, best: Floats) -> Floats:
        if self.ps_weight != self.weight:
            return np.full(len(self.hits), np.nan)
        return _ratio(gained, best)

    # --- means over labels ------------------------------------------------------------------------

    def by_frequency(
        self, frequency: Any, edges: Sequence[int] = EDGES
    ) -> tuple[FrequencyBin, ...]:
        """Return mean recall, precision and F1 over labels of similar frequency.

        Only labels that occur in the assessed rows are included.

        Parameters
        ----------
        frequency : array-like of shape (L,)
            Number of training rows of each label: `model.label_rows_`.
        edges : sequence of int, default=(1, 2, 5, 20, 100)
            Lowest frequency of each bin, increasing. Rarer labels are left out.

        Returns
        -------
        tuple of FrequencyBin
        """
        count = np.asarray(frequency)
        if count.shape != self.label_rows.shape:
            raise RankedLabelsError.of_values("frequency", count.shape, len(self.label_rows))
        if any(above <= edge for edge, above in pairwise(edges)):
            raise OptionError.of("edges", edges, "rising numbers")
        ends = [*(edge - 1 for edge in edges[1:]), np.inf]
        return tuple(self._bin(count, *pair) for pair in zip(edges, ends, strict=True))

    def _bin(self, count: Any, least: int, most: float) -> FrequencyBin:
        inside = (count >= least) & (count <= most) & (self.label_rows > 0)
        hits, lists, rows = (getattr(self, name)[inside] for name in _LABEL_SUMS)
        precision = np.divide(hits, lists, out=np.zeros_like(hits), where=lists > 0)
        means = (_mean(each) for each in (hits / rows, precision, 2 * hits / (lists + rows)))
        return FrequencyBin(least, most, int(inside.sum()), *means)

    # --- as text ----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers by name: 'P@1', 'nDCG@5'."""
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
    """Validated ranked and true labels of n rows of positive weight."""

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
        w = np.asarray(weight, dtype=np.float64)
        positive = w > 0
        if positive.all():
            return cls(codes, own, w)
        return cls(codes[positive], own[positive], w[positive])

    def hit(self) -> Floats:
        """(n, K) 1 where the label at that rank is one of the row's."""
        L = max(self.truth.shape[1], 1)
        row = np.repeat(np.arange(len(self.lists)), np.diff(self.truth.indptr))
        own = row * L + self.truth.indices
        predicted = np.arange(len(self.lists))[:, None] * L + self.lists
        at = np.searchsorted(own, predicted)
        hit = np.zeros(self.lists.shape, dtype=bool)
        inside = (at < len(own)) & (self.lists >= 0)
        hit[inside] = own[at[inside]] == predicted[inside]
        return hit.astype(np.float64)

    def ideal(self, discount: Floats) -> Floats:
        """(n, K) sum of the discounts of the best list; one label if a row has none."""
        own = np.maximum(np.diff(self.truth.indptr), 1)[:, None]
        return np.asarray(np.cumsum(discount)[np.minimum(own, np.arange(len(discount)) + 1) - 1])

    def best(self, value: Floats) -> Floats:
        """(n, K) the r-th largest value among the row's labels, 0 beyond the last."""
        ends, own_value = self.truth.indptr, value[self.truth.indices]
        row = np.repeat(np.arange(len(self.lists)), np.diff(ends))
        order = np.lexsort((-own_value, row))
        rank = np.arange(len(row)) - ends[row]
        listed = rank < self.lists.shape[1]
        best = np.zeros(self.lists.shape)
        best[row[listed], rank[listed]] = own_value[order][listed]
        return best

    def by_label(self, hit: Floats) -> dict[str, Any]:
        L, listed = self.truth.shape[1], self.lists >= 0
        weight = np.broadcast_to(self.weight[:, None], self.lists.shape)
        row = np.repeat(np.arange(len(self.lists)), np.diff(self.truth.indptr))
        sums = (
            (self.lists[listed], (weight * hit)[listed]),
            (self.lists[listed], weight[listed]),
            (self.truth.indices, self.weight[row]),
        )
        totals = (np.bincount(label, each, minlength=L) for label, each in sums)
        return dict(
            zip(_LABEL_SUMS, (np.asarray(t, dtype=np.float64) for t in totals), strict=True)
        )


def _check_lists(codes: Ints, L: int) -> None:
    if codes.size and not -1 <= codes.min() <= codes.max() < L:
        raise RankedLabelsError.of_code(int(codes.min()), int(codes.max()), L)
    ordered = np.sort(codes, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if twice.any():
        row, place = (int(at[0]) for at in np.nonzero(twice))
        raise RankedLabelsError.duplicate_label(row, int(ordered[row, place]))


def _check_inverse_propensity(values: Any, L: int) -> Floats:
    value = np.asarray(values, dtype=np.float64)
    if value.shape != (L,):
        raise RankedLabelsError.of_values("inverse_propensity", value.shape, L)
    invalid = ~(value > 0) | ~np.isfinite(value)
    if invalid.any():
        raise RankedLabelsError.not_positive(int(np.flatnonzero(invalid)[0]))
    return value


def _ratio(sums: Any, by: Any) -> Floats:
    """The quotient, NaN for 0/0."""
    by = np.broadcast_to(np.asarray(by, dtype=np.float64), np.shape(sums))
    return np.asarray(np.divide(sums, by, out=np.full(np.shape(sums), np.nan), where=by > 0))


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else np.nan
