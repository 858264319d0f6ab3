"""Ranking measures for label lists: P@k, recall@k, nDCG@k and their propensity-scored forms.

Row i has the true labels Y_i and a predicted list with one label at each rank r = 1 .. K. hit_r is
1 if the label at rank r is in Y_i, else 0, and d_r = 1 / log2(r + 1):

    P@k         mean of      sum_{r <= k} hit_r / k
    recall@k    mean of      sum_{r <= k} hit_r / |Y_i|
    nDCG@k      mean of      sum_{r <= k} hit_r d_r / sum_{r <= min(k, |Y_i|)} d_r
    PSP@k       sum over i   sum_{r <= k} hit_r / p_r          over the same for the best list
    PSnDCG@k    sum over i   sum_{r <= k} hit_r d_r / p_r / sum_{r <= min(k, |Y_i|)} d_r
                                                               over the same for the best list

p_r is the propensity of the label at rank r (`extreme.model.propensity`). The best possible list of
a row consists of its true labels, sorted by increasing propensity. As `psprecision_at_k` and
`psndcg_at_k` of napkinXC 0.7.2, PSP@k and PSnDCG@k are ratios of sums over all rows, not means of
ratios. (`psdcg_at_k` of napkinXC is PSnDCG@k without division by the sum over d_r, so that rows
with few labels have less weight.) A row without true labels is included in P@k; all its predictions
are wrong. Such a row is excluded from recall@k and nDCG@k, which would be 0/0 for it.

Rare labels hardly affect means over rows. Therefore hits, predictions and rows are also counted for
every label, and `by_frequency` averages recall, precision and F1 over labels of similar frequency.

The true labels are converted to one sparse matrix of codes:

    indicator    (n, L), sparse or dense, with 1 where a row has a label
    codes        (n,) code of the label of each row, with `labels`=L
    names        (n,) label of each row, or a set of labels per row, with `classes`: the code of a
                 label is its index there

A name that is not in `classes` raises an error, because it could never be predicted.
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
from discriminant.table.labels import check_same_label_type, encode_labels

_SETS = (set, frozenset, list, tuple, np.ndarray)


def label_indicator(truth: Any, *, labels: int | None = None, classes: Any = None) -> Any:
    """Return the true labels as a CSR matrix (n, L) with sorted columns and no stored zeros.

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
    """Return whether lists may be meant as an indicator matrix: each has L numbers, all 0 or 1."""
    plain = all(isinstance(own, list | tuple) and len(own) == labels for own in rows)
    return labels > 1 and plain and set(chain.from_iterable(rows)) <= {0, 1}


def _from_table(table: Any, known: Labels) -> Any:
    """Convert a table, which is an indicator matrix or contains the label names of each row."""
    if table.dtype.kind in "OUST":
        return _from_names(table.ravel(), np.arange(0, table.size + 1, table.shape[1]), known)
    if not np.isin(table, (0, 1)).all():
        raise RankedLabelsError.of_truth(table.shape, table.dtype, len(known))
    return _from_matrix(sparse.csr_matrix(table), len(known))


def _from_names(names: Any, ends: Any, known: Labels) -> Any:
    """Convert the concatenated names of all rows.

    The names of row i are `names[ends[i]:ends[i + 1]]`.
    """
    code_of = {label: code for code, label in enumerate(known.tolist())}
    if len(code_of) < len(known):
        raise LabelError.duplicate_classes(known.tolist())
    labels, codes = encode_labels(names) if len(names) else (known[:0], np.zeros(0, np.intp))
    check_same_label_type(labels, known)
    unknown = [label for label in labels.tolist() if label not in code_of]
    if unknown:
        raise RankedLabelsError.unknown(unknown, len(known))
    codes = np.array([code_of[label] for label in labels.tolist()], dtype=np.int64)[codes]
    ones = np.ones(len(codes))
    return _from_matrix(sparse.csr_matrix((ones, codes, ends), (len(ends) - 1, len(known))), None)


def _from_codes(truth: Any, labels: int | None) -> Any:
    """Convert codes, one for each row, or a dense indicator."""
    try:
        codes = np.asarray(truth)
    except ValueError:  # the lists have different lengths
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
    """Mean measures over the labels that have `least` to `most` training rows.

    Attributes
    ----------
    least : int
    most : float
        Largest number of training rows; infinite in the last bin.
    labels : int
        Number of labels in the bin that occur in the assessed rows.
    recall, precision, f1 : float
        Means over these labels. The precision of a label that is never predicted counts as 0.
    """

    least: int
    most: float
    labels: int
    recall: float
    precision: float
    f1: float


@dataclass(frozen=True, slots=True, eq=False)
class TopK:
    """Accuracy of lists of K ranked labels out of L, stored as sums over rows.

    Create it with `TopK.of`. Results for different rows can be added with `+` or `sum`. The
    measures are the properties `precision`, `recall`, `ndcg`, `ps_precision` and `ps_ndcg`, each of
    shape (K,).

    Attributes
    ----------
    rows : int
        Number of rows.
    weight, labelled, ps_weight : float
        Total weight of all rows, of the rows that have labels, and of the rows that were added with
        propensities.
    hits, recalled, gained : ndarray of shape (K,)
        Weighted sums over rows of the hits at each rank, of recall@k, and of nDCG@k.
    ps_hits, ps_best, ps_gained, ps_ideal : ndarray of shape (K,)
        Numerators and denominators of PSP@k and PSnDCG@k.
    label_hits, label_lists, label_rows : ndarray of shape (L,)
        For each label, the total weight of the rows for which the label is predicted and true
        (`label_hits`), predicted (`label_lists`), and true (`label_rows`).

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
    label_hits: Floats  # (L,) weight of the rows for which the label is predicted and true
    label_lists: Floats  # (L,) weight of the rows for which it is predicted
    label_rows: Floats  # (L,) weight of the rows for which it is true

    @classmethod
    def empty(cls, *, labels: int, k: int = 5) -> Self:
        """Return sums over zero rows; adding them changes nothing."""
        hits, recalled, gained, *by_propensity = (np.zeros(k) for _ in range(7))
        by_label = (np.zeros(labels) for _ in range(3))
        return cls(0, 0.0, 0.0, hits, recalled, gained, 0.0, *by_propensity, *by_label)

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
            Predicted label codes, best first. A list of fewer than K labels is padded with -1.
        truth : array-like or sparse matrix
            True labels: an indicator (n, L); or codes (n,), one per row, together with `labels`; or
            names, one or a set of them per row, together with `classes`.
        labels : int, optional
            Number of labels L.
        classes : array-like of shape (L,), optional
            Name of the label of each code, as in `model.classes_`.
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
        """Return the sums over the rows of both operands."""
        mine, theirs = ((len(sums.hits), len(sums.label_rows)) for sums in (self, other))
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
        """Array (K,) of P@1 .. P@K."""
        return _ratio(np.cumsum(self.hits), self.weight * (np.arange(len(self.hits)) + 1.0))

    @property
    def recall(self) -> Floats:
        """Array (K,) of recall@1 .. recall@K, over the rows with labels."""
        return _ratio(self.recalled, self.labelled)

    @property
    def ndcg(self) -> Floats:
        """Array (K,) of nDCG@1 .. nDCG@K, over the rows with labels."""
        return _ratio(self.gained, self.labelled)

    @property
    def ps_precision(self) -> Floats:
        """Array (K,) of PSP@1 .. PSP@K; NaN unless all rows were added with propensities."""
        return self._ps_ratio(np.cumsum(self.ps_hits), np.cumsum(self.ps_best))

    @property
    def ps_ndcg(self) -> Floats:
        """Array (K,) of PSnDCG@1 .. PSnDCG@K; NaN unless all rows were added with propensities."""
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
            Number of training rows of each label, as in `model.label_rows_`.
        edges : sequence of int, default=(1, 2, 5, 20, 100)
            Smallest frequency of each bin, in increasing order. Labels with fewer training rows
            than the first bin are left out.

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
        f1 = 2 * hits / (lists + rows)
        means = (_mean(values) for values in (hits / rows, precision, f1))
        return FrequencyBin(least, most, int(inside.sum()), *means)

    # --- as text ----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the measures as a dict of plain numbers, with names such as 'P@1' and 'nDCG@5'."""
        named = {"P": self.precision, "nDCG": self.ndcg, "recall": self.recall}
        if self.ps_weight == self.weight:
            named |= {"PSP": self.ps_precision, "PSnDCG": self.ps_ndcg}
        measures = {
            f"{name}@{k}": value
            for name, values in named.items()
            for k, value in enumerate(values.tolist(), 1)
        }
        return {"rows": self.rows, **measures}

    def __str__(self) -> str:
        facts = self.to_dict()
        names = list(dict.fromkeys(name.partition("@")[0] for name in facts if "@" in name))
        ranks = range(1, len(self.hits) + 1)
        lines = [f"{'':8}" + "".join(f"{f'@{k}':>8}" for k in ranks)]
        lines += [f"{n:8}" + "".join(f"{facts[f'{n}@{k}']:8.4f}" for k in ranks) for n in names]
        return "\n".join([*lines, f"{self.rows} rows"])


@dataclass(frozen=True, slots=True, eq=False)
class _RankedRows:
    """Validated predicted and true labels of n rows of positive weight."""

    lists: Ints  # (n, K) predicted codes
    truth: Any  # (n, L) CSR with sorted columns
    weight: Floats  # (n,) row weights, all positive

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
        """Array (n, K): 1 if the label at a rank is one of the true labels of the row, else 0."""
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
        """Return the sums (n, K) of the discounts d_r of the best list of each row.

        A row without labels is treated as if it had one label.
        """
        own = np.maximum(np.diff(self.truth.indptr), 1)[:, None]
        return np.asarray(np.cumsum(discount)[np.minimum(own, np.arange(len(discount)) + 1) - 1])

    def best(self, value: Floats) -> Floats:
        """Return an (n, K) array: the r-th largest value among the true labels of a row, or 0."""
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
        totals = (
            np.asarray(np.bincount(label, values, minlength=L), dtype=np.float64)
            for label, values in sums
        )
        return dict(zip(_LABEL_SUMS, totals, strict=True))


def _check_lists(codes: Ints, L: int) -> None:
    if codes.size and not -1 <= codes.min() <= codes.max() < L:
        raise RankedLabelsError.of_code(int(codes.min()), int(codes.max()), L)
    ordered = np.sort(codes, axis=1)
    repeated = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if repeated.any():
        row, place = (int(indices[0]) for indices in np.nonzero(repeated))
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
    """Return the quotient, which is NaN for 0/0, without a warning."""
    by = np.broadcast_to(np.asarray(by, dtype=np.float64), np.shape(sums))
    return np.asarray(np.divide(sums, by, out=np.full(np.shape(sums), np.nan), where=by > 0))


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else np.nan
