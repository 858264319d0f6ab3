"""Every summary, as the laws see it. A new one joins by one entry in `KINDS`.

An entry says how the summary is read, what it must say of rows (by a formula from the rows, not by
the reading), what it does say, and which verbs it has:

    remove    rows can be taken out again          cancel   and that can cost digits
    scale     classes can be weighted              uneven   each by a factor of its own
    group     classes can be merged                classes  some of them can be kept
    select    features can be chosen               reduce   and details left out
    labels    it knows which class is which
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import helmert
from scipy.special import gammaln

from discriminant.extreme.ranking_measures import TopK
from discriminant.imbalance.rebalance import SubsetMoments, SubsetsReading
from discriminant.models.linear.ordered import OrderedLossReading
from discriminant.moments.accumulate import MomentsReading
from discriminant.moments.anchor import Anchor
from discriminant.moments.class_moments import DETAILS, ClassMoments
from discriminant.moments.confusion import (
    PredictedCounts,
    PredictedCountsReading,
    Tally,
    TallyReading,
)
from discriminant.moments.glm_families import (
    Deviance,
    SaturatedLikelihood,
    SaturatedLikelihoodReading,
)
from discriminant.moments.held_out_tallies import HeldOutReading, HeldOutSums, ModelSums
from discriminant.moments.loss_gradient_sums import (
    LossReading,
    LossSums,
    ResidualReading,
    ResidualSums,
    WeightedProducts,
    WeightedProductsReading,
)
from discriminant.moments.margins_and_mistakes import (
    LinearWeights,
    MarginReading,
    Margins,
    Mistakes,
    MistakesReading,
    RowScaling,
)
from discriminant.moments.qr_factor import ScatterFactor, ScatterFactorReading
from discriminant.moments.ranking import Ranking, RankingReading
from discriminant.moments.rows_instead_of_moments import ClassRows, RowsReading
from discriminant.moments.softmax_loss import JeffreysGradient, JeffreysGradientReading, SoftmaxLoss
from discriminant.moments.summary_base import FoldSums, FoldSumsReading
from discriminant.table.hash_folds import row_hash_folds
from tests.shared.blocks import LABELS, Rows, assert_facts, expected, frame_of, near, seen


@dataclass(frozen=True)
class Kind:
    """One kind of summary."""

    name: str
    reading: Callable[[Rows, Anchor], Any]  # the reading of these rows about an anchor
    empty: Callable[[Rows, Anchor], Any]  # the summary of no rows
    expected: Callable[[Rows, Anchor], dict[str, np.ndarray]]  # the truth, in numbers of a frame
    seen: Callable[[Any, Anchor], dict[str, np.ndarray]]  # what a summary says, likewise
    bits: Callable[[Any, np.ndarray], list[np.ndarray]]  # all its numbers of these classes
    verbs: frozenset[str] = frozenset()
    counts: tuple[str, ...] = ("rows", "weight2")  # facts in which two rows are not one of weight 2
    anchored: bool = True  # it carries its origin and unit, and the names of its features

    def __repr__(self):
        return self.name

    def can(self, verb):
        return verb in self.verbs

    def read(self, rows, anchor=None):
        return self.reading(rows, anchor or near(rows)).read(rows.block())

    def says(self, summary, rows, tolerance=1e-12, leave_out=()):
        """The right side of every law: this summary says what is true of these rows."""
        frame = frame_of(rows)
        found, wanted = self.seen(summary, frame), self.expected(rows, frame)
        assert_facts(found, wanted, tolerance, leave_out)


# --- class moments --------------------------------------------------------------------------------


def moments_kind(detail, many=0):
    """Read as if these rows were some of so many."""
    verbs = {"labels", "remove", "cancel", "scale", "group", "select", "reduce"}
    return Kind(
        name=f"ClassMoments-{detail}{'-of-many-rows' * (many > 0)}",
        reading=lambda rows, anchor: MomentsReading(rows.labels, rows.names, anchor, detail, many),
        empty=lambda rows, anchor: ClassMoments.empty(
            rows.labels, rows.names, detail=detail, anchor=anchor
        ),
        expected=lambda rows, frame: expected(rows, detail, frame),
        seen=seen,
        bits=partial(_moments_bits, detail),
        verbs=frozenset(verbs if detail == "pooled" else verbs | {"classes", "uneven"}),
    )


def _moments_bits(detail, found, labels):
    kept = np.isin(found.labels, labels)
    each = [found.rows, found.weight, found.weight2, found.mean]
    whole = [found.scatter] if detail == "pooled" else []
    each += [] if detail == "pooled" else [found.scatter, found.lost]
    each += [found.third, found.fourth] if detail == "fourth" else []
    return [values[kept] for values in each] + whole


# --- the rows themselves --------------------------------------------------------------------------


def _rows_seen(found, frame):
    stretch, shift = _to_frame(found.anchor, frame)
    held = Rows(found.offsets * stretch + shift, found.codes, found.weights, found.labels)
    facts = expected(held, "fourth", Anchor.zero(len(stretch)))
    mean = np.where((found.rows > 0)[:, None], found.mean * stretch + shift, 0.0)
    return facts | {
        "rows": found.rows,
        "weight": found.weight,
        "weight2": found.weight2,
        "mean": mean,
    }


def _rows_bits(found, labels):
    kept = np.isin(found.labels[found.codes], labels)
    mine = np.isin(found.labels, labels)
    return [found.offsets[kept], found.weights[kept], found.mean[mine], found.weight[mine]]


ROWS = Kind(
    name="ClassRows",
    reading=lambda rows, anchor: RowsReading(rows.labels, rows.names, anchor, len(rows)),
    empty=lambda rows, anchor: ClassRows.empty(rows.labels, rows.names, anchor=anchor),
    expected=lambda rows, frame: expected(rows, "fourth", frame),
    seen=_rows_seen,
    bits=_rows_bits,
    verbs=frozenset(
        {"labels", "remove", "scale", "uneven", "group", "classes", "select", "reduce"}
    ),
)


# --- the triangular factor ------------------------------------------------------------------------


def _factor_expected(rows, frame):
    one = replace(rows, codes=np.zeros(len(rows), dtype=np.intp), labels=rows.labels[:1])
    facts = expected(one, "class", frame)
    return {name: facts[name][0] for name in ("rows", "weight", "mean", "scatter")}


def _factor_seen(found, frame):
    stretch, shift = _to_frame(found.anchor, frame)
    centred = found.centred * stretch
    mean = found.mean * stretch + shift if found.rows else found.mean
    return {
        "rows": np.array(found.rows),
        "weight": np.array(found.weight),
        "mean": mean,
        "scatter": centred.T @ centred,
    }


FACTOR = Kind(
    name="ScatterFactor",
    reading=lambda rows, anchor: ScatterFactorReading(
        rows.names, anchor, coding=np.zeros((len(rows.labels), 0))
    ),
    empty=lambda rows, anchor: ScatterFactor.empty(rows.names, anchor=anchor),
    expected=_factor_expected,
    seen=_factor_seen,
    bits=lambda found, labels: [found.root, found.anchor.origin, found.anchor.unit],
)


# --- what a fit leaves over -----------------------------------------------------------------------


@dataclass(frozen=True)
class Responding:
    """Rows that respond with twice their first feature, fitted by half of it."""

    reading: ResidualReading

    @classmethod
    def about(cls, rows, anchor, exact):
        coef = np.eye(1, len(rows.names)).T / 2
        level = -1.5 * anchor.origin[:1] / anchor.unit[:1]
        return cls(ResidualReading(rows.names, _responding(anchor), coef, level, exact))

    @property
    def summary_size(self):
        return self.reading.summary_size

    def read(self, block):
        return self.reading.read(replace(block, responses=2.0 * block.features[:, :1]))


def _responding(anchor):
    """The anchor of features, and of the response."""
    return Anchor(np.append(anchor.origin, 2 * anchor.origin[0]), anchor.unit[_ends(anchor)])


def _ends(anchor):
    return np.append(np.arange(len(anchor.unit)), 0)


def _pull_expected(rows, frame):
    left = rows.ones * 1.5 * rows.features[:, 0] / frame.unit[0]
    u = (rows.features - frame.origin) / frame.unit
    return {"rows": np.array((rows.ones > 0).sum()), "sums": np.append(left.sum(), u.T @ left)}


def _pull_seen(found, frame):
    stretch, shift = _to_frame(found.anchor.select(np.arange(len(found.features))), frame)
    total, *slope = found.sums[:, 0] * found.anchor.unit[-1] / frame.unit[0]
    return {"rows": np.array(found.rows), "sums": np.append(total, slope * stretch + shift * total)}


def pull_kind(exact):
    return Kind(
        name="ResidualSums-exact" if exact else "ResidualSums",
        reading=lambda rows, anchor: Responding.about(rows, anchor, exact),
        empty=lambda rows, anchor: ResidualSums.empty(rows.names, anchor=_responding(anchor)),
        expected=_pull_expected,
        seen=_pull_seen,
        bits=lambda found, labels: [found.high, found.low, found.anchor.origin, found.anchor.unit],
    )


# --- rows told by a rule --------------------------------------------------------------------------

_TOLD = np.random.default_rng(0).standard_normal((4, 9))  # slopes of four classes


def _told_reading(rows, anchor):
    slope = _TOLD[:, : len(rows.names)]
    return PredictedCountsReading(rows.names, anchor, slope * anchor.unit, slope @ anchor.origin)


def _told_expected(rows, frame):
    told = (rows.features @ _TOLD[:, : len(rows.names)].T).argmax(axis=1)
    return {"told": np.bincount(told[rows.ones > 0], minlength=4)}


TOLD = Kind(
    name="PredictedCounts",
    reading=_told_reading,
    empty=lambda rows, anchor: PredictedCounts.empty(rows.names, 4),
    expected=_told_expected,
    seen=lambda found, frame: {"told": found.counts},
    bits=lambda found, labels: [found.counts],
    counts=("told",),
)


# --- margins of a rule ----------------------------------------------------------------------------

_SLOPES = np.random.default_rng(1).standard_normal((len(LABELS), 9))
_KEEP = 3


@dataclass(frozen=True)
class Coded:
    """Margins of rows whose codes are places in `LABELS`, whichever classes they know."""

    reading: MarginReading
    places: np.ndarray

    @classmethod
    def about(cls, rows, anchor):
        slope = _SLOPES[:, : len(rows.names)]
        coef, level = slope * anchor.unit, slope @ anchor.origin
        reading = MarginReading(rows.names, anchor, coef, level, _KEEP)
        return cls(reading, np.searchsorted(LABELS, rows.labels))

    @property
    def summary_size(self):
        return self.reading.summary_size

    def read(self, block):
        return self.reading.read(replace(block, codes=self.places[block.codes]))


def _margins_expected(rows, frame):
    K, d = len(LABELS), len(rows.names)
    places = np.searchsorted(LABELS, rows.labels)[rows.codes]
    u = (rows.features - frame.origin) / frame.unit
    counts = {name: np.zeros((K, K)) for name in ("negative", "zero", "positive")}
    kept, least, offsets = np.zeros((K, _KEEP)), np.zeros(K), np.zeros((K, _KEEP, d))
    for y in range(K):
        own = (places == y) & (rows.ones > 0)
        scores = rows.features[own] @ _SLOPES[:, :d].T
        margins = np.delete(scores[:, [y]] - scores, y, axis=1)
        others = np.delete(np.arange(K), y)
        counts["negative"][y, others] = (margins < 0).sum(axis=0)
        counts["zero"][y, others] = (margins == 0).sum(axis=0)
        counts["positive"][y, others] = (margins > 0).sum(axis=0)
        _, once = np.unique(rows.features[own], axis=0, return_index=True)
        smallest = margins.min(axis=1)[once]
        first = np.argsort(smallest)[:_KEEP]
        kept[y, : len(first)], offsets[y, : len(first)] = smallest[first], u[own][once][first]
        least[y] = kept[y, 0]
    return counts | {"kept": kept, "least": least, "offsets": offsets}


def _margins_seen(found, frame):
    K, d = len(LABELS), len(found.features)
    stretch, shift = _to_frame(found.anchor, frame)
    kept, least, offsets = np.zeros((K, _KEEP)), np.zeros(K), np.zeros((K, _KEEP, d))
    for y in np.unique(found.codes):
        own = found.codes == y
        kept[y, : own.sum()] = found.margin[own]
        offsets[y, : own.sum()] = found.offsets[own] * stretch + shift
        least[y] = kept[y, 0]
    counts = {name: getattr(found, name) for name in ("negative", "zero", "positive")}
    return counts | {"kept": kept, "least": least, "offsets": offsets}


def _margins_bits(found, labels):
    seen = (found.negative + found.zero + found.positive).sum(axis=1)
    if len(labels) == 1:  # of a class by itself, what does not depend on which class it is
        return [seen[np.isin(LABELS, labels)]]
    counts = [found.negative, found.zero, found.positive]
    return [*counts, found.codes, found.margin, found.tiebreak, found.offsets, found.anchor.origin]


MARGINS = Kind(
    name="Margins",
    reading=Coded.about,
    empty=lambda rows, anchor: Margins.empty(rows.names, len(LABELS), anchor=anchor, keep=_KEEP),
    expected=_margins_expected,
    seen=_margins_seen,
    bits=_margins_bits,
    counts=("negative", "zero", "positive", "kept", "offsets"),
)


# --- truth by decision ----------------------------------------------------------------------------

_CALL = "call"  # an action that is no class


def _logs(features):
    """(n, K) log posteriors of all classes, whichever are known."""
    scores = features @ _SLOPES[:, : features.shape[1]].T
    return (
        scores
        - np.log(np.exp(scores - scores.max(axis=1)[:, None]).sum(axis=1))[:, None]
        - (scores.max(axis=1)[:, None])
    )


def _bold(logs):
    """The most probable class, or a call where none is more probable than not."""
    return np.where(logs.max(axis=1) < np.log(0.5), len(LABELS), logs.argmax(axis=1))


@dataclass(frozen=True)
class Counted:
    """A tally of rows whose codes are places in `LABELS`, whichever classes they know."""

    reading: TallyReading
    places: np.ndarray

    @classmethod
    def about(cls, rows, anchor):
        reading = TallyReading(LABELS, _logs, _bold, (_CALL,))
        return cls(reading, np.searchsorted(LABELS, rows.labels))

    @property
    def summary_size(self):
        return self.reading.summary_size

    def read(self, block):
        return self.reading.read(replace(block, codes=self.places[block.codes]))


def _tally_expected(rows, frame):
    K = len(LABELS)
    rows = rows.take(rows.ones > 0)
    own = np.searchsorted(LABELS, rows.labels)[rows.codes]
    logs = _logs(rows.features)
    facts = {name: np.zeros((K + 1, K)) for name in ("rows", "weight", "weight2")}
    facts |= {"log_loss": np.zeros((4, K)), "brier": np.zeros((4, K))}
    facts |= {"bins": np.zeros((3, K, 60)), "top": np.zeros((3, 60)), "scored": np.zeros((2, K))}
    for a, y, w, log in zip(_bold(logs), own, rows.ones, logs, strict=True):
        p, true = np.exp(log), np.eye(K)[y]
        for name, value in (("rows", 1), ("weight", w), ("weight2", w * w)):
            facts[name][a, y] += value
        for name, loss in (("log_loss", -log[y]), ("brier", ((p - true) ** 2).sum())):
            facts[name][:, y] += w * loss, w * loss**2, w**2 * loss, w**2 * loss**2
        place = np.ceil(60 * p).astype(int).clip(1) - 1
        for k in range(K):
            facts["bins"][:, k, place[k]] += w, w * p[k], w * true[k]
        best = p.argmax()
        facts["top"][:, place[best]] += w, w * p[best], w * true[best]
        facts["scored"][:, y] += w, w**2
    return facts


def _tally_seen(found, frame):
    scored = found.scored
    losses = {"log_loss": scored.log_loss, "brier": scored.brier, "scored": scored.weight}
    binned = {"bins": scored.bins, "top": scored.top}
    return {name: getattr(found, name) for name in ("rows", "weight", "weight2")} | losses | binned


def _tally_bits(found, labels):
    if len(labels) == 1:  # of a class by itself, what does not depend on which class it is
        return [values[:, found.labels == labels] for values in (found.rows, found.weight)]
    return [*_tally_seen(found, None).values()]


TALLY = Kind(
    name="Tally",
    reading=Counted.about,
    empty=lambda rows, anchor: Tally.empty(rows.labels),
    expected=_tally_expected,
    seen=_tally_seen,
    bits=_tally_bits,
    counts=("rows", "weight2", "log_loss", "brier", "scored"),
    anchored=False,
)


# --- by fold, and held out ------------------------------------------------------------------------

_FOLDS = 3


@dataclass(frozen=True)
class Dealt:
    """A reading of rows that are dealt into folds by what they hold."""

    reading: Any
    places: np.ndarray

    @property
    def summary_size(self):
        return self.reading.summary_size

    def read(self, block):
        codes = self.places[block.codes]
        return self.reading.read(
            replace(block, codes=codes).with_folds(_dealt(block.features, codes))
        )


def _folds(rows):
    own = np.searchsorted(LABELS, rows.labels)[rows.codes]
    return _dealt(rows.features, own)


def _dealt(features, codes):
    """A fold that the row alone says: copies too, which ByRow tells apart by their company."""
    each = zip(features, codes, strict=True)
    found = [row_hash_folds(row[None], np.array([code]), _FOLDS)[0] for row, code in each]
    return np.array(found, dtype=np.intp)


def _by_fold(facts):
    return {f"{name} {f}": value for f, one in enumerate(facts) for name, value in one.items()}


def _by_fold_seen(found, frame):
    none = Tally.empty(LABELS, others=(_CALL,))
    return _by_fold([_tally_seen(none if one is None else one, frame) for one in found.parts])


def _by_fold_bits(found, labels):
    if len(labels) == 1:  # which fold a row is dealt to depends on its class
        return []
    return [*_by_fold_seen(found, None).values()]


_COUNTS = tuple(f"{name} {f}" for name in TALLY.counts for f in range(_FOLDS))

BY_FOLD = Kind(
    name="FoldSums",
    reading=lambda rows, anchor: Dealt(
        FoldSumsReading(TallyReading(LABELS, _logs, _bold, (_CALL,)), _FOLDS),
        np.searchsorted(LABELS, rows.labels),
    ),
    empty=lambda rows, anchor: FoldSums((None,) * _FOLDS),
    expected=lambda rows, frame: _by_fold(
        [_tally_expected(rows.take(_folds(rows) == f), frame) for f in range(_FOLDS)]
    ),
    seen=_by_fold_seen,
    bits=_by_fold_bits,
    counts=_COUNTS,
    anchored=False,
)


@dataclass(frozen=True)
class Said:
    """A model that is bold, or takes the most probable class."""

    bold: bool

    def predict(self, features):
        logs = _logs(features)
        return logs, _bold(logs) if self.bold else logs.argmax(axis=1), (_CALL,)


def _held_out_expected(rows, frame):
    own = np.searchsorted(LABELS, rows.labels)[rows.codes]
    logs = _logs(rows.features)
    right = np.array([_bold(logs) == own, logs.argmax(axis=1) == own]).astype(float)
    parts = [_tally_expected(rows.take(_folds(rows) == f), frame) for f in range(_FOLDS)]
    return _by_fold(parts) | {"right": (right * rows.ones) @ right.T, "weight": rows.ones.sum()}


def _held_out_seen(found, frame):
    tallies = [one.among(LABELS, (_CALL,)) for one in found.models[0].tallies]
    facts = _by_fold([_tally_seen(one, frame) for one in tallies])
    return facts | {"right": found.right, "weight": np.asarray(found.weight)}


def _held_out_empty(rows, anchor):
    none = ModelSums((Tally.empty(LABELS, others=(_CALL,)),) * _FOLDS, ())
    return HeldOutSums((none, none), np.zeros((2, 2)), 0.0)


HELD_OUT = Kind(
    name="HeldOutSums",
    reading=lambda rows, anchor: Dealt(
        HeldOutReading(LABELS, tuple((Said(bold),) * _FOLDS for bold in (True, False)), False),
        np.searchsorted(LABELS, rows.labels),
    ),
    empty=_held_out_empty,
    expected=_held_out_expected,
    seen=_held_out_seen,
    bits=lambda found, labels: [] if len(labels) == 1 else [*_held_out_seen(found, None).values()],
    counts=_COUNTS,
    anchored=False,
)


# --- loss and derivatives of a score --------------------------------------------------------------

_SCORES = 0.1 * np.random.default_rng(1).standard_normal((9, 3))  # slopes of three scores


@dataclass(frozen=True)
class Answering:
    """Rows whose class is the sign, and whose response is the square, of their first feature."""

    reading: Any

    @property
    def summary_size(self):
        return self.reading.summary_size

    def read(self, block):
        first = np.asarray(block.features)[:, :1]
        codes = 1 + np.sign(first[:, 0]).astype(np.intp)
        return self.reading.read(replace(block, codes=codes, responses=first**2))


def slope_kind(loss, derivatives):
    """A loss about a fixed origin: coefficients belong to one, so parts must share it."""
    m = loss.columns

    def reading(rows, anchor):
        d = len(rows.names)
        zero = Anchor.zero(d)
        return Answering(
            LossReading(rows.names, zero, _SCORES[:d, :m], _SCORES[0, :m], loss, "curvature")
        )

    def empty(rows, anchor):
        p = len(rows.names) + 1
        return LossSums(0, 0.0, 0.0, np.zeros((p, m)), np.zeros((m * p, m * p)), np.inf)

    def expected(rows, frame):
        ones = np.column_stack([rows.features, np.ones(len(rows))])
        scores = rows.features @ _SCORES[: len(rows.names), :m] + _SCORES[0, :m]
        value, first, second = derivatives(scores, rows.features[:, 0])
        side = m * ones.shape[1]
        curvature = np.einsum("n,nab,ni,nj->aibj", rows.ones, second, ones, ones)
        return {
            "weight": np.array(rows.ones.sum()),
            "loss": np.array(rows.ones @ value),
            "gradient": np.einsum("n,ni,na->ia", rows.ones, ones, first),
            "curvature": curvature.reshape(side, side),
        }

    return Kind(
        name=f"Slope-{type(loss).__name__}",
        reading=reading,
        empty=empty,
        expected=expected,
        seen=lambda found, frame: {
            name: np.asarray(getattr(found, name))
            for name in ("weight", "loss", "gradient", "curvature")
        },
        bits=lambda found, labels: [found.loss, found.gradient, found.curvature, found.least],
        anchored=False,
    )


def _softmax(scores, first):
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    true = np.eye(3)[1 + np.sign(first).astype(int)]
    second = np.einsum("na,ab->nab", chances, np.eye(3)) - np.einsum("na,nb->nab", chances, chances)
    return -np.log((chances * true).sum(axis=1)), chances - true, second


def _poisson(scores, first):
    mean, response = np.exp(scores), first[:, None] ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(response > 0, response * np.log(response / mean), 0.0)
    return (logs - response + mean)[:, 0], mean - response, mean[:, :, None]


_THRESHOLDS = np.array([-0.3, 0.4])


def _ordered_expected(rows, frame):
    """By the two linear functions t_k = threshold_k - score of a row, through their Jacobian."""
    d = len(rows.names)
    codes = 1 + np.sign(rows.features[:, 0]).astype(int)
    total = {"weight": rows.ones.sum(), "loss": 0.0}
    gradient, curvature = np.zeros(d + 3), np.zeros((d + 3, d + 3))
    for x, code, weight in zip(rows.features, codes, rows.ones, strict=True):
        t = _THRESHOLDS - (x @ _SCORES[:d, 0] + 0.1)
        below = 1 / (1 + np.exp(-t))
        density = below * (1 - below)
        bend = density * (1 - 2 * below)
        sign = np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0]])[code]  # of F in the probability
        p = np.array([below[0], below[1] - below[0], 1 - below[1]])[code]
        first = sign * density / p
        second = np.outer(first, first) - np.diag(sign * bend / p)
        jacobian = np.zeros((2, d + 3))
        jacobian[:, :2], jacobian[:, 2:-1], jacobian[:, -1] = np.eye(2), -x, -1.0
        total["loss"] -= weight * np.log(p)
        gradient -= weight * jacobian.T @ first
        curvature += weight * jacobian.T @ second @ jacobian
    return total | {"gradient": gradient[:, None], "curvature": curvature}


def _ordered_reading(rows, anchor):
    d = len(rows.names)
    slopes, positions = _SCORES[:d, 0], np.arange(3)
    facts = rows.names, Anchor.zero(d), slopes, 0.1, _THRESHOLDS, positions
    return Answering(OrderedLossReading(*facts, "logit", "curvature"))


ORDERED = Kind(
    name="Slope-ordered",
    reading=_ordered_reading,
    empty=lambda rows, anchor: LossSums(
        0,
        0.0,
        0.0,
        np.zeros((len(rows.names) + 3, 1)),
        np.zeros((len(rows.names) + 3,) * 2),
        np.inf,
    ),
    expected=lambda rows, frame: {
        name: np.asarray(value) for name, value in _ordered_expected(rows, frame).items()
    },
    seen=lambda found, frame: {
        name: np.asarray(getattr(found, name))
        for name in ("weight", "loss", "gradient", "curvature")
    },
    bits=lambda found, labels: [found.loss, found.gradient, found.curvature, found.least],
    anchored=False,
)


# --- what a likelihood has of the responses -------------------------------------------------------


def _saturation_expected(rows, frame):
    response = rows.features[:, 0] ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(response > 0, response * np.log(response), 0.0)
    log = logs - response - gammaln(response + 1)
    some = rows.ones > 0
    return {"rows": some.sum(), "weight": rows.ones.sum(), "log": rows.ones @ log}


SATURATION = Kind(
    name="SaturatedLikelihood",
    reading=lambda rows, anchor: Answering(SaturatedLikelihoodReading("poisson")),
    empty=lambda rows, anchor: SaturatedLikelihood(0, 0.0, 0.0),
    expected=lambda rows, frame: {
        name: np.array(value) for name, value in _saturation_expected(rows, frame).items()
    },
    seen=lambda found, frame: {
        name: np.array(getattr(found, name)) for name in ("rows", "weight", "log")
    },
    bits=lambda found, labels: [found.rows, found.weight, found.log],
    anchored=False,
)


# --- the pull of Jeffreys' prior ------------------------------------------------------------------


def leverage_kind(classes):
    """Two classes by one score, or K by K; the reading is told a curvature, here any matrix."""
    K, m = (1, 1) if classes == 2 else (classes, classes - 1)
    contrast = None if classes == 2 else helmert(classes).T

    def half(q):
        return np.random.default_rng(2).standard_normal((m * q, m * q))

    def reading(rows, anchor):
        d = len(rows.names)
        root = half(d + 1).reshape(m, d + 1, m * (d + 1))
        coef, level = _SCORES[:d, :K], _SCORES[0, :K]
        return JeffreysGradientReading(Anchor.zero(d), coef, level, np.eye(d + 1), contrast, root)

    def expected(rows, frame):
        d = len(rows.names)
        ones = np.column_stack([rows.features, np.ones(len(rows))])
        scores = rows.features @ _SCORES[:d, :K] + _SCORES[0, :K]
        total = np.zeros((d + 1, K))
        for z, score, weight in zip(ones, scores, rows.ones, strict=True):
            inverse = half(d + 1) @ half(d + 1).T
            if contrast is None:
                mean = 1 / (1 + np.exp(-score))
                pull = mean * (1 - mean) * (z @ inverse @ z) * (0.5 - mean)
            else:
                p = np.exp(score) / np.exp(score).sum()
                each = np.kron(contrast, z)
                V = each @ inverse @ each.T
                pull = p * (np.diag(V) - np.diag(V) @ p) / 2 - p * (V @ p - p @ V @ p)
            total += weight * np.outer(z, pull)
        return {"gradient": total}

    return Kind(
        name=f"JeffreysGradient-{classes}",
        reading=reading,
        empty=lambda rows, anchor: JeffreysGradient(np.zeros((len(rows.names) + 1, K))),
        expected=expected,
        seen=lambda found, frame: {"gradient": found.gradient},
        bits=lambda found, labels: [found.gradient],
        anchored=False,
    )


# --- products of rows, weighed by their places ----------------------------------------------------


def _products_expected(rows, frame):
    ones = np.column_stack([rows.features, np.ones(len(rows))])
    weighed = rows.ones[:, None] * ones
    return {"gram": np.tril(weighed.T @ ones), "pull": weighed.T @ rows.features[:, :1]}


PRODUCTS = Kind(
    name="WeightedProducts",
    reading=lambda rows, anchor: WeightedProductsReading(
        Anchor.zero(len(rows.names)), rows.ones[:, None] * rows.features[:, :1], rows.ones
    ),
    empty=lambda rows, anchor: WeightedProducts(
        np.zeros((len(rows.names) + 1, len(rows.names) + 1)), np.zeros((len(rows.names) + 1, 1))
    ),
    expected=_products_expected,
    seen=lambda found, frame: {"gram": np.tril(found.gram), "pull": found.rhs},
    bits=lambda found, labels: [found.gram, found.rhs],
    anchored=False,
)


# --- rows judged by a perceptron ------------------------------------------------------------------


@dataclass(frozen=True)
class Judging:
    """Rows that count, of three classes by the sign of their first feature."""

    reading: MistakesReading

    @classmethod
    def about(cls, rows, anchor):
        d = len(rows.names)
        weights = LinearWeights(_SCORES[:d].T.copy(), _SCORES[0].copy())
        return cls(MistakesReading(weights, RowScaling(np.ones(d), np.full(d, 2.0), 1.0)))

    @property
    def summary_size(self):
        return self.reading.summary_size

    def read(self, block):
        some = slice(None) if block.weight is None else block.weight > 0
        rows = np.asarray(block.features)[some]
        codes = 1 + np.sign(rows[:, 0]).astype(np.intp)
        return self.reading.read(replace(block, features=rows, codes=codes, weight=None))


def _judgement_expected(rows, frame):
    d = len(rows.names)
    z = 2.0 * (rows.features[rows.ones > 0] - 1.0)
    wrong, least, radius, lacking = 0, np.inf, 0.0, 0.0
    moves = np.zeros((3, d + 1))
    for row, first in zip(z, rows.features[rows.ones > 0, 0], strict=True):
        scores = _SCORES[:d].T @ row + _SCORES[0]
        own = 1 + int(np.sign(first))
        rival = max((k for k in range(3) if k != own), key=lambda k: scores[k])
        lead = scores[own] - scores[rival]
        least, radius = min(least, lead), max(radius, np.sqrt(row @ row + 1.0))
        if not lead > 0:
            wrong, lacking = wrong + 1, lacking - lead
            moves[own] += np.append(row, 1.0)
            moves[rival] -= np.append(row, 1.0)
    facts = {
        "count": wrong,
        "min_margin": least,
        "radius": radius,
        "criterion": lacking,
        "update": moves,
    }
    return {name: np.asarray(value) for name, value in facts.items()}


def _judgement_seen(found, frame):
    names = ("count", "min_margin", "radius", "criterion")
    facts = {name: np.asarray(getattr(found, name)) for name in names}
    return facts | {"update": np.column_stack([found.update.slope, found.update.intercept])}


JUDGEMENT = Kind(
    name="Mistakes",
    reading=Judging.about,
    empty=lambda rows, anchor: Mistakes(
        0, np.inf, 0.0, 0.0, LinearWeights.zero(3, len(rows.names))
    ),
    expected=_judgement_expected,
    seen=_judgement_seen,
    bits=lambda found, labels: [*_judgement_seen(found, None).values()],
    counts=("count", "criterion", "update"),
    anchored=False,
)


# --- scores ranked in bins ------------------------------------------------------------------------


@dataclass(frozen=True)
class Calling:
    """A reading that is one function."""

    read: Callable[[Any], Any]
    summary_size: int = 100


def ranking_kind(bins, spacing):
    """Rows ranked by their first feature, those above zero in the last positive; with ties."""

    def scores(features):
        return np.round(np.asarray(features)[:, 0] / spacing) * spacing

    def read(block):
        positive = (np.asarray(block.features)[:, -1] > 0).astype(np.intp)
        return RankingReading("yes", 1, scores, bins).read(replace(block, codes=positive))

    def expected(rows, frame):
        """As many sums as there are leading bits of scores, cut off as late as they fit in."""
        some = rows.ones > 0
        texts = [_ordered_bits(score) for score in scores(rows.features)[some]]
        kept = next(n for n in range(64, -1, -1) if len({text[:n] for text in texts}) <= bins)
        sums = {}
        for text, row, weight in zip(texts, rows.features[some], rows.ones[some], strict=True):
            sums.setdefault(text[:kept], np.zeros(2))[int(row[-1] > 0)] += weight
        weight = np.zeros((bins, 2))
        weight[: len(sums)] = [sums[text] for text in sorted(sums)] or np.zeros((0, 2))
        return {"dropped": np.asarray(64.0 - kept), "weight": weight}

    def seen(found, frame):
        weight = np.zeros((bins, 2))
        weight[: found.weight.shape[1]] = found.weight.T
        return {"dropped": np.asarray(float(found.dropped)), "weight": weight}

    return Kind(
        name=f"Ranking-{bins}",
        reading=lambda rows, anchor: Calling(read),
        empty=lambda rows, anchor: Ranking.empty("yes", bins=bins),
        expected=expected,
        seen=seen,
        bits=lambda found, labels: [found.keys, found.weight, np.asarray(found.dropped)],
        counts=(),
        anchored=False,
    )


def _ordered_bits(score):
    """64 zeros and ones whose order is that of the numbers."""
    bits = "".join(f"{byte:08b}" for byte in struct.pack(">d", score + 0.0))
    if bits[0] == "0":
        return "1" + bits[1:]
    return "".join("10"[int(bit)] for bit in bits)


# --- moments of several subsets -------------------------------------------------------------------


def _subsets_of(rows):
    """Which rows are in each of three subsets: they overlap, and go by what a row is."""
    first, last = rows.features[:, 0] > 0, rows.features[:, -1] > 0
    return first, last, np.ones(len(rows), dtype=bool)


def _each_subset(facts):
    return {f"{name} of {t}": value for t, part in enumerate(facts) for name, value in part.items()}


SUBSETS = Kind(
    name="SubsetMoments",
    reading=lambda rows, anchor: SubsetsReading(
        MomentsReading(rows.labels, rows.names, anchor, "class"),
        tuple(np.flatnonzero(some) for some in _subsets_of(rows)),
    ),
    empty=lambda rows, anchor: SubsetMoments(
        (ClassMoments.empty(rows.labels, rows.names, anchor=anchor),) * 3
    ),
    expected=lambda rows, frame: _each_subset(
        [expected(rows.take(some), "class", frame) for some in _subsets_of(rows)]
    ),
    seen=lambda found, frame: _each_subset([seen(part, frame) for part in found.parts]),
    bits=lambda found, labels: [
        values for part in found.parts for values in _moments_bits("class", part, labels)
    ],
    counts=tuple(f"{name} of {t}" for t in range(3) for name in ("rows", "weight2")),
    anchored=False,
)


def _to_frame(anchor, frame):
    return anchor.unit / frame.unit, (anchor.origin - frame.origin) / frame.unit


# --- ranked labels --------------------------------------------------------------------------------

_WORTH = np.array([1.0, 4.0, 2.0, 3.0, 1.5])  # inverse propensities of `LABELS`
_RANKED = ("precision", "recall", "ndcg", "ps_precision", "ps_ndcg")


@dataclass(frozen=True)
class Ranked:
    """Lists of the three most probable classes; rows have their own class, some one more."""

    places: np.ndarray
    summary_size = 20

    def read(self, block):
        lists = np.argsort(-_logs(block.features), axis=1, kind="stable")[:, :3]
        truth = _one_or_two(block.features, self.places[block.codes])
        return TopK.of(lists, truth, inverse_propensity=_WORTH, weight=block.weight)


def _one_or_two(features, own):
    """(n, 5) the class of each row; rows above 0 in their first feature have the last as well."""
    truth = np.eye(len(LABELS))[own]
    truth[features[:, 0] > 0, -1] = 1.0
    return truth


def _ranked_expected(rows, frame):
    """Row by row, with the sums that the formulas name."""
    own = np.searchsorted(LABELS, rows.labels)[rows.codes]
    truth, logs = _one_or_two(rows.features, own), _logs(rows.features)
    sums = dict.fromkeys(_RANKED, 0.0)
    best, discount = np.zeros((2, 3)), 1 / np.log2([2.0, 3.0, 4.0])
    for has, log, w in zip(truth, logs, rows.ones, strict=True):
        first = np.argsort(-log, kind="stable")[:3]
        hit, many = has[first], int(has.sum())
        ideal = np.cumsum(discount * (np.arange(3) < many))
        worth = np.append(np.sort(_WORTH[has > 0])[::-1], np.zeros(3))[:3]
        sums["precision"] += w * np.cumsum(hit) / [1, 2, 3]
        sums["recall"] += w * np.cumsum(hit) / many
        sums["ndcg"] += w * np.cumsum(hit * discount) / ideal
        sums["ps_precision"] += w * np.cumsum(hit * _WORTH[first])
        sums["ps_ndcg"] += w * np.cumsum(hit * _WORTH[first] * discount) / ideal
        best[0] += w * np.cumsum(worth)
        best[1] += w * np.cumsum(worth * discount) / ideal
    total = rows.ones.sum()
    over = (total, total, total, best[0], best[1])
    means = {name: sums[name] / by for name, by in zip(_RANKED, over, strict=True) if total > 0}
    return means | {"weight": np.array(total), "rows": np.array((rows.ones > 0).sum())}


def _ranked_seen(found, frame):
    means = {name: getattr(found, name) for name in _RANKED if found.weight > 0}
    return means | {"weight": np.array(found.weight), "rows": np.array(found.rows)}


RANKED_LABELS = Kind(
    name="TopK",
    reading=lambda rows, anchor: Ranked(np.searchsorted(LABELS, rows.labels)),
    empty=lambda rows, anchor: TopK.empty(labels=len(LABELS), k=3),
    expected=_ranked_expected,
    seen=_ranked_seen,
    bits=lambda found, labels: [found.label_rows[np.isin(LABELS, labels)]],
    counts=("rows",),
    anchored=False,
)


KINDS = [
    *(moments_kind(detail) for detail in DETAILS),
    moments_kind("class", many=10**9),
    ROWS,
    FACTOR,
    *(pull_kind(exact) for exact in (False, True)),
    TOLD,
    TALLY,
    BY_FOLD,
    HELD_OUT,
    MARGINS,
    slope_kind(SoftmaxLoss(3), _softmax),
    slope_kind(Deviance("poisson", "log"), _poisson),
    ORDERED,
    SATURATION,
    *(leverage_kind(classes) for classes in (2, 3)),
    PRODUCTS,
    JUDGEMENT,
    SUBSETS,
    ranking_kind(4, spacing=1e-9),
    ranking_kind(800, spacing=0.5),
    RANKED_LABELS,
]
