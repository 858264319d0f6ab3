"""Held-out losses of every model of an RDA grid, without fitting the models one by one.

    S_k = (1 - pooling) C_k + pooling C(shrinkage)

For a given shrinkage one basis makes both matrices diagonal, B' C(shrinkage) B = I and
B' C_k B = diag(l_k), so that for every pooling, with v = B' (u - mean_k) and up to terms that all
classes share,

    e = (1 - pooling) l_k + pooling     distance^2 = sum_i v_i^2 / e_i     log|S_k| = sum_i log e_i

One eigenproblem for each fold, class and shrinkage serves all poolings, which then cost d instead
of d^2 operations a row: all their distances are one product, v^2 times a (d, P) table of 1/e.

Candidates whose e is too uneven to keep its digits, folds whose covariance has no inverse, and
mixtures that are shrunk after mixing are fitted one by one by `models.gaussian`.

For a partitioned table the bases of all folds are computed from the moments and sent to the
partitions; one pass scores every candidate. If the bases would need too much memory, the
shrinkages are divided among several passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.assessment.resampling.folds import (
    FoldNumbers,
    MemoryFolds,
    PartitionedFolds,
    RowNumbers,
    drop_empty_classes,
    sample_rows,
)
from discriminant.engines.local import available_threads, one_blas_thread
from discriminant.engines.partitioned_table import AnyTable, PartitionedTable
from discriminant.errors import (
    ScarceRowsWarning,
    TooFewRowsError,
    capture_warnings,
    in_thread,
    merge_warnings,
    warn,
)
from discriminant.models.gaussian.covariance import (
    Shrinkage,
    class_covariances,
    class_degrees,
    pooled_covariance,
    rounding_variance,
    target_diagonal,
)
from discriminant.models.gaussian.family import GaussianFamily, check_classes, class_prior
from discriminant.models.gaussian.wide import family_shrinkage, fit_family, is_wide
from discriminant.models.rules import Rule
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.stored_rows import ClassRows
from discriminant.moments.summary_base import FoldSums, split_by_fold
from discriminant.table.blocks import Block, Codes, Floats
from discriminant.table.memory import Table

Moments = ClassMoments | ClassRows
STEPS = tuple(np.linspace(0.0, 1.0, 11).round(10).tolist())
_UNEVEN = 1e-5  # of the least to the largest e; below it, digits would be lost
_PIVOT = 1e-8  # of the least pivot of a standardised covariance; below it, so would they
_ROOM = 1 << 21  # numbers worked on at a time


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Held-out losses of every candidate."""

    pooling: Floats  # (P,)
    shrinkage: tuple[Shrinkage, ...]  # S
    prior: tuple[Any, ...]  # R: (K,) each, or None for the shares of the training rows
    log_loss: Floats  # (P, S, R) mean of -log posterior of the true class
    error: Floats  # (P, S, R) share of the weight in a wrong class
    fold: FoldNumbers  # (N,); of rows in parts (0,)

    def __repr__(self) -> str:
        """One line: what was tried, and what was best."""
        p, s, r = self.best()
        return (
            f"Grid({len(self.pooling)} poolings, {len(self.shrinkage)} shrinkages, "
            f"{len(self.prior)} prior(s), best: pooling={self.pooling[p]:g}, "
            f"shrinkage={self.shrinkage[s]}, log_loss={self.log_loss[p, s, r]:.4g})"
        )

    @classmethod
    def of(cls, candidates: Candidates, sums: Sequence[GridSums], fold: FoldNumbers) -> Grid:
        """From sums over folds, some or all."""
        loss, wrong = np.sum([found.losses for found in sums], axis=0)
        weight = sum(found.weight for found in sums)
        places = candidates.pooling, candidates.shrinkage, candidates.prior
        return cls(*places, loss / weight, wrong / weight, fold)

    def best(self) -> tuple[int, int, int]:
        """Place of the least log loss; of equal ones that of more pooling, then more shrinkage."""
        least = float(self.log_loss.min())
        near = np.argwhere(self.log_loss <= least + 1e-12 * (1.0 + abs(least)))
        p, s, r = (int(i) for i in max(near.tolist(), key=lambda place: (*place[:2], -place[2])))
        return p, s, r


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """What is tried: every pooling with every shrinkage and every prior."""

    family: GaussianFamily  # target, denominator, and how to mix
    pooling: Floats  # (P,) rising
    shrinkage: tuple[Shrinkage, ...]  # S, rising
    prior: tuple[Any, ...] = (None,)  # R

    @property
    def share_basis(self) -> bool:
        """Whether poolings share a basis."""
        late = self.family.shrink == "mixed" and any(s != 0.0 for s in self.shrinkage)
        return self.family.weighting == "covariance" and not late


def score_grid(
    table: AnyTable, candidates: Candidates, folds: Any = None, *, groups: Any = None, seed: int = 0
) -> Grid:
    """Return the held-out log loss and error of every candidate.

    `folds` of a table in memory are (N,) fold numbers; of a partitioned table, as `groups` and
    `seed`, those of `cross_validate`. Rows whose class is missing from their training set do not
    distinguish candidates and are not counted.
    """
    auto = any(isinstance(s, str) for s in candidates.shrinkage)
    detail: Detail = "fourth" if auto else "class"
    with merge_warnings():
        if isinstance(table, PartitionedTable):
            folded = PartitionedFolds.of(table, folds, groups=groups, seed=seed, detail=detail)
            sums = _partitioned_sums(folded, candidates)
            return Grid.of(candidates, sums, np.zeros(0, dtype=np.intp))
        if is_wide(len(table), table.width):
            detail = "rows"
        sums = grid_sums(MemoryFolds.of_table(table, folds, detail=detail), candidates)
    return Grid.of(candidates, sums, folds)


def tune_by_fold(
    folded: MemoryFolds, candidates: Candidates, *, max_rows: int, seed: int
) -> tuple[Grid, list[Grid]]:
    """Return the grid of all folds and, for each fold, the grid of the other folds.

    At most `max_rows` held-out rows are scored.
    """
    sums = grid_sums(folded, candidates, max_rows=max_rows, seed=seed)
    others = [[one for g, one in enumerate(sums) if g != f] for f in range(len(sums))]
    grids = [Grid.of(candidates, some, folded.fold) for some in others]
    return Grid.of(candidates, sums, folded.fold), grids


def grid_sums(
    folded: MemoryFolds, candidates: Candidates, *, max_rows: int | None = None, seed: int = 0
) -> list[GridSums]:
    """Sums of the losses over the rows of each fold, or over a sample of them."""
    for train in folded.trains:
        check_training(train, candidates)
    jobs: list[tuple[Table, RowNumbers, Moments]] = []
    draw = np.random.default_rng(seed)
    for f, train in enumerate(folded.trains):
        if max_rows is None:
            assert folded.table is not None
            jobs.append((folded.table, folded.rows[f], train))
            continue
        part, share = folded.parts[f], max(max_rows // folded.n_folds, 1)
        jobs.append((part, sample_rows(np.arange(len(part)), share, draw), train))
    with merge_warnings(), one_blas_thread(), ThreadPoolExecutor(available_threads()) as pool:
        work = in_thread(lambda job: _fold_losses(job[0], job[1], job[2], candidates))
        return list(pool.map(work, jobs))


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutRows:
    """The rows of a fold, those of a class together."""

    offsets: Floats  # (n, d)
    codes: Codes  # (n,) rising, among the classes present in training
    weight: Floats  # (n,)

    def rows(self, lo: int, hi: int) -> HeldOutRows:
        """RowSample of them, in order."""
        return HeldOutRows(self.offsets[lo:hi], self.codes[lo:hi], self.weight[lo:hi])

    @classmethod
    def of(cls, table: Table | Block, rows: npt.NDArray[np.intp], train: Moments) -> HeldOutRows:
        known = train.rows > 0
        codes = table.codes[rows].astype(np.intp)
        rows, codes = rows[known[codes]], (np.cumsum(known) - 1)[codes[known[codes]]]
        order = np.argsort(codes, kind="stable")
        rows = rows[order]
        weight = np.ones(len(rows)) if table.weight is None else table.weight[rows]
        return cls(train.anchor.offsets(table.features[rows]), codes[order], weight)


@dataclass(frozen=True, slots=True, eq=False)
class GridSums:
    """Sums over the rows of a fold."""

    losses: Floats  # (2, P, S, R) of -log posterior of the true class, of the weight gone wrong
    weight: float

    def __add__(self, other: GridSums) -> GridSums:
        """Over the rows of both."""
        return GridSums(self.losses + other.losses, self.weight + other.weight)


def _fold_losses(
    table: Table, rows: npt.NDArray[np.intp], train: Moments, candidates: Candidates
) -> GridSums:
    """Losses of the rows of one fold, some shrinkages at a time."""
    held = HeldOutRows.of(table, rows, train)
    priors = log_priors(train, candidates)
    train = drop_empty_classes(train)
    d = len(train.features)
    step = max(1, _ROOM // (len(train.labels) * d * (d + len(held.codes)) + 1))
    found = []
    for lo in range(0, len(candidates.shrinkage), step):
        some = replace(candidates, shrinkage=candidates.shrinkage[lo : lo + step])
        scores = candidate_scores(train, held.offsets, some)
        each = [losses(scores + prior[:, None, None], held) for prior in priors]
        found.append(np.stack(each, axis=-1))
    return GridSums(np.concatenate(found, axis=1).transpose(0, 2, 1, 3), float(held.weight.sum()))


def candidate_scores(train: Moments, offsets: Floats, candidates: Candidates) -> Floats:
    """(S, K, n, P) scores without priors of every candidate fitted to `train`."""
    return FittedCandidates.of(train, candidates).scores(offsets)


@dataclass(frozen=True, slots=True, eq=False)
class FittedCandidates:
    """Every candidate fitted to a training part, ready for rows."""

    train: Moments  # of classes that all have rows
    bases: _Bases | None
    e: Floats  # (S, K, d, P) where the bases are; 1 where it is too uneven
    clear: npt.NDArray[np.bool_]  # (S, P) which candidates go by the bases
    rules: Mapping[tuple[int, int], Rule]  # of those that do not, by their places

    @classmethod
    def of(cls, train: Moments, candidates: Candidates) -> FittedCandidates:
        """One eigenproblem a class and shrinkage, or a fit for each candidate."""
        amounts, pooling = _amounts(train, candidates), candidates.pooling
        clear, e = np.zeros((len(amounts), len(pooling)), dtype=np.bool_), np.zeros(0)
        bases = None
        if candidates.share_basis and isinstance(train, ClassMoments):
            bases = _bases(train, candidates.family, amounts)
        if bases is not None:
            e, clear = _evened(bases, pooling)
        return cls(train, bases, e, clear, _one_by_one(train, candidates, amounts, clear))

    def scores(self, offsets: Floats) -> Floats:
        """(S, K, n, P) scores without priors."""
        S, P = self.clear.shape
        found = np.empty((S, len(self.train.labels), len(offsets), P))
        if self.bases is not None:
            assert isinstance(self.train, ClassMoments)
            along = np.matmul(offsets[None] - self.train.mean[:, None], self.bases.basis)
            np.square(along, out=along)
            np.matmul(along, -0.5 / self.e, out=found)
            found -= 0.5 * np.log(self.e).sum(axis=2)[:, :, None]
        said: dict[int, Floats] = {}  # a rule may stand for several candidates
        rows = self.train.anchor.values(offsets) if self.rules else offsets
        for (s, p), rule in self.rules.items():
            if id(rule) not in said:
                said[id(rule)] = rule.scores(rows)
            found[s, :, :, p] = said[id(rule)].T
        return found


def _one_by_one(
    train: Moments, candidates: Candidates, amounts: Floats, clear: npt.NDArray[np.bool_]
) -> dict[tuple[int, int], Rule]:
    """Rules without priors of the candidates that do not go by the bases."""
    K = len(train.labels)
    made: dict[tuple[float, float], Rule] = {}
    found: dict[tuple[int, int], Rule] = {}
    for s, p in np.argwhere(~clear).tolist():
        pooling, amount = float(candidates.pooling[p]), float(amounts[s])
        free = pooling == 0.0 and candidates.family.shrink == "pooled"  # shrinkage has no part
        key = (pooling, 0.0 if free else amount)
        if key not in made:
            family = replace(candidates.family, pooling=pooling, shrinkage=key[1])
            with capture_warnings() as told:
                made[key] = fit_family(train, family=family, prior=np.full(K, 1.0 / K))
            for warning in told:
                if not isinstance(warning, ScarceRowsWarning):  # held-out rows judge that
                    warn(warning)
        found[s, p] = made[key]
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Bases:
    """For every shrinkage and class a basis that makes both covariances diagonal."""

    basis: Floats  # (S, K, d, d)
    values: Floats  # (S, K, d) l, the class covariance where the shrunk one is the identity


def _bases(train: ClassMoments, family: GaussianFamily, amounts: Floats) -> _Bases | None:
    """None where a covariance is too close to having no inverse."""
    pooled = pooled_covariance(train, family.denominator)
    variance = np.diagonal(pooled)
    if (variance <= 4 * rounding_variance(train.mean)).any():
        return None
    sd = np.sqrt(variance)
    square = sd[:, None] * sd
    target = target_diagonal(variance, family.target, train.anchor.unit) / variance
    shrunk = (1 - amounts)[:, None, None] * (pooled / square)
    np.einsum("sii->si", shrunk)[...] += amounts[:, None] * target
    each = class_covariances(train, family.denominator) / square
    try:
        low = np.linalg.cholesky(shrunk)
    except np.linalg.LinAlgError:
        return None
    pivots = np.einsum("sii->si", low) ** 2 / np.einsum("sii->si", shrunk)
    if pivots.min() < _PIVOT:
        return None
    whiten = np.linalg.solve(low, np.eye(len(sd)))
    mixed = whiten[:, None] @ each @ whiten.transpose(0, 2, 1)[:, None]
    values, vectors = np.linalg.eigh(mixed)
    basis = whiten.transpose(0, 2, 1)[:, None] @ vectors / sd[:, None]
    return _Bases(basis, np.maximum(values, 0.0))


def _evened(bases: _Bases, pooling: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """(S, K, d, P) e, and (S, P) which candidates keep their digits."""
    e = (1 - pooling) * bases.values[..., None] + pooling
    clear = e.min(axis=2) > _UNEVEN * e.max(axis=2)
    return np.where(clear[:, :, None], e, 1.0), np.asarray(clear.all(axis=1))


def log_priors(train: Moments, candidates: Candidates) -> list[Floats]:
    """Of each prior that is tried, for the classes that have rows."""
    present, own = train.rows > 0, drop_empty_classes(train)
    return [np.log(class_prior(own, _kept(prior, own, present))) for prior in candidates.prior]


def losses(joint: Floats, held: HeldOutRows) -> Floats:
    """(2, S, P) sums over rows of -log posterior of the true class, and of wrong weight.

    `joint` (S, K, n, P) are scores with priors; it is used up.
    """
    ends = np.searchsorted(held.codes, np.arange(joint.shape[1] + 1)).tolist()
    spans = [slice(*span) for span in pairwise(ends)]
    own = np.concatenate([joint[:, k, rows] for k, rows in enumerate(spans)], axis=1)
    top = joint.max(axis=1)
    own -= top  # the log posterior is own - log total
    joint -= top[:, None]
    total = np.exp(joint, out=joint).sum(axis=1)
    wrong = np.matmul(held.weight, own < 0.0)
    loss = _sum_of_logs(total, held.weight, joint.shape[1]) - np.matmul(held.weight, own)
    return np.stack([loss, wrong])


def _sum_of_logs(total: Floats, weight: Floats, most: int) -> Floats:
    """(S, P) sum over n of weight * log total (S, n, P), which lies between 1 and `most`.

    Where all weights are 1 the log is taken of a product of as many rows as cannot overflow.
    """
    if not (weight == 1.0).all():
        return np.asarray(np.matmul(weight, np.log(total)))
    many = max(1, int(600 / np.log(most)))
    starts = np.arange(0, total.shape[1], many)
    return np.asarray(np.log(np.multiply.reduceat(total, starts, axis=1)).sum(axis=1))


def _amounts(train: Moments, candidates: Candidates) -> Floats:
    """(S,) shrinkages as numbers, those asked of the moments worked out."""
    family = candidates.family
    members = [replace(family, shrinkage=s) for s in candidates.shrinkage]
    return np.array([family_shrinkage(train, member) for member in members])


def _kept(prior: Any, train: Moments, present: npt.NDArray[np.bool_]) -> Any:
    """A prior for the classes present, which are those of `train`; None stays None."""
    if prior is None or present.all():
        return prior
    if isinstance(prior, Mapping):
        kept = np.array([prior[label] for label in train.labels.tolist()], dtype=np.float64)
    else:
        kept = np.asarray(prior, dtype=np.float64)[present]
    return kept / kept.sum()


def check_training(train: Any, candidates: Candidates) -> None:
    """Two classes in each training part, and every one with a covariance of its own."""
    check_classes(drop_empty_classes(train))
    if candidates.pooling.min() == 1.0:
        return
    degrees = class_degrees(train, candidates.family.denominator)
    for k in np.flatnonzero((train.rows > 0) & ((degrees <= 0) | (train.rows < 2))):
        raise TooFewRowsError.of_class(
            train.labels[k], int(train.rows[k]), 2, "each training part of a cross-validation"
        )


_BASES = 1 << 29  # bytes of the bases of all folds


def _partitioned_sums(folded: PartitionedFolds, candidates: Candidates) -> list[GridSums]:
    """Sums of the losses over the rows of each fold that has any."""
    for f in folded.filled:
        check_training(folded.trains[f], candidates)
    d, K = len(folded.parts[0].features), len(folded.parts[0].labels)
    step = max(1, _BASES // (8 * folded.n_folds * K * d * d))
    passes = [
        folded.rows.fold(
            _reading(folded, replace(candidates, shrinkage=candidates.shrinkage[lo : lo + step]))
        ).parts
        for lo in range(0, len(candidates.shrinkage), step)
    ]
    return [_side_by_side([parts[f] for parts in passes]) for f in folded.filled]


def _side_by_side(lots: list[GridSums | None]) -> GridSums:
    """Of all shrinkages."""
    found = [lot for lot in lots if lot is not None]
    return GridSums(np.concatenate([lot.losses for lot in found], axis=2), found[0].weight)


def _reading(folded: PartitionedFolds, candidates: Candidates) -> GridReading:
    with one_blas_thread(), ThreadPoolExecutor(available_threads()) as pool:
        work = in_thread(partial(_fold_fit, candidates))
        return GridReading(tuple(pool.map(work, folded.trains)))


def _fold_fit(candidates: Candidates, train: ClassMoments) -> FoldFit:
    return FoldFit(
        train,
        log_priors(train, candidates),
        FittedCandidates.of(drop_empty_classes(train), candidates),
    )


@dataclass(frozen=True, slots=True, eq=False)
class FoldFit:
    """Candidates fitted without a fold."""

    train: ClassMoments
    priors: list[Floats]  # R of (K,)
    fitted: FittedCandidates

    def losses(self, block: Block) -> GridSums:
        """Over rows of that fold."""
        held = HeldOutRows.of(block, np.arange(len(block)), self.train)
        S, P = self.fitted.clear.shape
        found = np.zeros((2, S, P, len(self.priors)))
        size = max(_ROOM // (S * len(self.train.labels) * (P + held.offsets.shape[1])), 64)
        for lo in range(0, len(held.codes), size):
            part = held.rows(lo, lo + size)
            scores = self.fitted.scores(part.offsets)
            for r, prior in enumerate(self.priors):
                found[..., r] += losses(scores + prior[:, None, None], part)
        return GridSums(found.transpose(0, 2, 1, 3), float(held.weight.sum()))


@dataclass(frozen=True, slots=True, eq=False)
class GridReading:
    """Score rows by every candidate that was fitted without their fold."""

    fits: tuple[FoldFit, ...]  # F

    @property
    def summary_size(self) -> int:
        """Size of the summary."""
        one = self.fits[0]
        return 2 * len(self.fits) * one.fitted.clear.size * len(one.priors)

    def read(self, block: Block) -> FoldSums[GridSums]:
        """Of the rows of one block."""
        found: list[GridSums | None] = [None] * len(self.fits)
        for f, part in split_by_fold(block):
            found[f] = self.fits[f].losses(part)
        return FoldSums(tuple(found))
