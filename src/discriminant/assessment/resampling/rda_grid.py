"""RDA grid: held-out losses of every candidate, without fitting the models one by one.

    S_k = (1 - pooling) C_k + pooling C(shrinkage)

For a given shrinkage and class, one basis B makes both matrices diagonal: B' C(shrinkage) B = I and
B' C_k B = diag(l_k). So for every pooling, with v = B' (u - mean_k) and up to terms that all
classes share,

    e = (1 - pooling) l_k + pooling     distance^2 = sum_i v_i^2 / e_i     log|S_k| = sum_i log e_i

One eigenproblem for each fold, class and shrinkage serves all P values of pooling. Each value then
costs d instead of d^2 operations for a row: the distances for all values are one product, v^2
times a (d, P) table of 1/e.

Candidates are fitted one by one by `models.gaussian` if e is ill-conditioned, if a covariance is
singular in the fold, or if the mixture of covariances is shrunk after mixing.

For a partitioned table the bases of all folds are computed from the moments and sent to the
partitions; one pass scores every candidate. If the bases would need too much memory, the
shrinkages are divided among several passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.assessment.resampling.folds import (
    FoldNumbers,
    MemoryFolds,
    PartitionedFolds,
    RowNumbers,
    check_training_classes,
    drop_empty_classes,
    fold_numbers,
    sample_rows,
)
from discriminant.engines.local import available_threads, one_blas_thread
from discriminant.engines.partitioned_table import AnyTable, PartitionedTable
from discriminant.errors import (
    ClassMissingWarning,
    LabelError,
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
from discriminant.models.gaussian.wide import (
    family_shrinkage,
    fit_gaussian_from_moments_or_rows,
    is_wide,
)
from discriminant.models.rules import Rule
from discriminant.moments.class_moments import ClassMoments, Detail
from discriminant.moments.rows_instead_of_moments import ClassRows
from discriminant.moments.summary_base import FoldSums, split_by_fold
from discriminant.table.blocks import Block, Codes, Floats
from discriminant.table.memory import Table

Moments = ClassMoments | ClassRows
STEPS = tuple(np.linspace(0.0, 1.0, 11).round(10).tolist())
# least ratio of the smallest to the largest e; smaller ratios lose too many digits
_MIN_CONDITION = 1e-5
_MIN_PIVOT = 1e-8  # least pivot of a standardised covariance, for the same reason
_MAX_NUMBERS = 1 << 21  # numbers processed at a time


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Held-out losses of every candidate of an RDA grid."""

    pooling: Floats  # (P,) values of pooling
    shrinkage: tuple[Shrinkage, ...]  # S values of shrinkage
    prior: tuple[Any, ...]  # R priors: (K,) each, or None for the class frequencies in training
    log_loss: Floats  # (P, S, R) mean of -log posterior of the true class
    error: Floats  # (P, S, R) weighted share of misclassified rows
    fold: FoldNumbers  # (N,) fold of each row; (0,) for a partitioned table

    def __repr__(self) -> str:
        p, s, r = self.best()
        return (
            f"Grid({len(self.pooling)} poolings, {len(self.shrinkage)} shrinkages, "
            f"{len(self.prior)} prior(s), best: pooling={self.pooling[p]:g}, "
            f"shrinkage={self.shrinkage[s]}, log_loss={self.log_loss[p, s, r]:.4g})"
        )

    @classmethod
    def of(cls, candidates: Candidates, sums: Sequence[GridSums], fold: FoldNumbers) -> Grid:
        """Return the grid of losses from the sums over each fold."""
        loss, wrong = np.sum([part.losses for part in sums], axis=0)
        weight = sum(part.weight for part in sums)
        axes = candidates.pooling, candidates.shrinkage, candidates.prior
        return cls(*axes, loss / weight, wrong / weight, fold)

    def best(self) -> tuple[int, int, int]:
        """Return the indices of the candidate with the smallest log loss.

        Among equal losses the candidate with the most pooling is best, then the one with the most
        shrinkage.
        """
        least = float(self.log_loss.min())
        ties = np.argwhere(self.log_loss <= least + 1e-12 * (1.0 + abs(least)))
        p, s, r = (int(i) for i in max(ties.tolist(), key=lambda place: (*place[:2], -place[2])))
        return p, s, r


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Candidate models: all combinations of pooling, shrinkage and prior."""

    family: GaussianFamily  # target, denominator and kind of mixture of the covariance
    pooling: Floats  # (P,) values of pooling, increasing
    shrinkage: tuple[Shrinkage, ...]  # S values of shrinkage, increasing
    prior: tuple[Any, ...] = (None,)  # R priors

    @property
    def share_basis(self) -> bool:
        """Whether one basis serves all values of pooling."""
        mixed = self.family.shrink == "mixed" and any(s != 0.0 for s in self.shrinkage)
        return self.family.weighting == "covariance" and not mixed


_SEED = 1  # seed of the folds of a partitioned table; an outer cross-validation uses another one


def grid_on_folds(table: AnyTable, candidates: Candidates, folds: Any) -> Grid:
    """Return the held-out losses of all candidates, given the option `folds` of an estimator."""
    if len(table.schema.labels) < 2:
        raise LabelError.one_class(table.schema.labels[0])
    if isinstance(table, PartitionedTable):
        return score_grid(table, candidates, folds, seed=_SEED)
    return score_grid(table, candidates, fold_numbers(folds, table.codes))


def score_grid(
    table: AnyTable, candidates: Candidates, folds: Any = None, *, groups: Any = None, seed: int = 0
) -> Grid:
    """Return the held-out log loss and error of every candidate.

    For a table in memory `folds` are (N,) fold numbers; for a partitioned table `folds`, `groups`
    and `seed` are as in `cross_validate`. Rows whose class is missing from their training set are
    not counted: every candidate misclassifies them.
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


def grids_without_each_fold(
    folded: MemoryFolds, candidates: Candidates, *, max_rows: int, seed: int
) -> tuple[Grid, list[Grid]]:
    """Return the grid over all folds and, for each fold, the grid over the other folds.

    At most `max_rows` held-out rows are scored.
    """
    sums = grid_sums(folded, candidates, max_rows=max_rows, seed=seed)
    grids = [
        Grid.of(candidates, [*sums[:f], *sums[f + 1 :]], folded.fold) for f in range(len(sums))
    ]
    return Grid.of(candidates, sums, folded.fold), grids


def grid_sums(
    folded: MemoryFolds, candidates: Candidates, *, max_rows: int | None = None, seed: int = 0
) -> list[GridSums]:
    """Sum the losses over the rows of each fold, or over a sample of them."""
    for train in folded.trains:
        check_training(train, candidates)
    counts = np.array([train.rows for train in folded.trains])
    for k in np.flatnonzero((counts == 0).any(axis=0) & (counts > 0).any(axis=0)):
        warn(ClassMissingWarning.of_choice(folded.labels[k], int(counts[:, k].max())))
    jobs: list[tuple[Table, RowNumbers, Moments]] = []
    generator = np.random.default_rng(seed)
    for f, train in enumerate(folded.trains):
        if max_rows is None:
            assert folded.table is not None
            jobs.append((folded.table, folded.rows[f], train))
            continue
        part, share = folded.parts[f], max(max_rows // folded.n_folds, 1)
        jobs.append((part, sample_rows(np.arange(len(part)), share, generator), train))
    with merge_warnings(), one_blas_thread(), ThreadPoolExecutor(available_threads()) as pool:
        work = in_thread(lambda job: _fold_losses(job[0], job[1], job[2], candidates))
        return list(pool.map(work, jobs))


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutRows:
    """Rows of a fold, sorted by class."""

    offsets: Floats  # (n, d) rows minus the origin
    # (n,) class of each row, increasing, as an index into the classes present in training
    codes: Codes
    weight: Floats  # (n,) weight of each row

    @classmethod
    def of(cls, table: Table | Block, rows: npt.NDArray[np.intp], train: Moments) -> HeldOutRows:
        """Return the rows with these numbers, without rows of classes absent from training."""
        known = train.rows > 0
        codes = table.codes[rows].astype(np.intp)
        rows, codes = rows[known[codes]], (np.cumsum(known) - 1)[codes[known[codes]]]
        order = np.argsort(codes, kind="stable")
        rows = rows[order]
        weight = np.ones(len(rows)) if table.weight is None else table.weight[rows]
        return cls(train.anchor.offsets(table.features[rows]), codes[order], weight)

    def take(self, rows: slice) -> HeldOutRows:
        """Return some consecutive rows."""
        return HeldOutRows(self.offsets[rows], self.codes[rows], self.weight[rows])


@dataclass(frozen=True, slots=True, eq=False)
class GridSums:
    """Sums of losses over the rows of a fold."""

    losses: Floats  # (2, P, S, R) summed -log posterior of the true class, and misclassified weight
    weight: float

    def __add__(self, other: GridSums) -> GridSums:
        return GridSums(self.losses + other.losses, self.weight + other.weight)


def _fold_losses(
    table: Table, rows: npt.NDArray[np.intp], train: Moments, candidates: Candidates
) -> GridSums:
    """Sum the losses over the rows of one fold, for a few values of shrinkage at a time."""
    held = HeldOutRows.of(table, rows, train)
    priors = log_priors(train, candidates)
    train = drop_empty_classes(train)
    d = len(train.features)
    step = max(1, _MAX_NUMBERS // (len(train.labels) * d * (d + len(held.codes)) + 1))
    sums = []
    for batch in _shrinkage_batches(candidates, step):
        scores = candidate_scores(train, held.offsets, batch)
        by_prior = [sum_losses(scores + prior[:, None, None], held) for prior in priors]
        sums.append(np.stack(by_prior, axis=-1))
    return GridSums(np.concatenate(sums, axis=1).transpose(0, 2, 1, 3), float(held.weight.sum()))


def _shrinkage_batches(candidates: Candidates, size: int) -> list[Candidates]:
    """Divide the candidates into batches with at most `size` values of shrinkage."""
    return [
        replace(candidates, shrinkage=candidates.shrinkage[start : start + size])
        for start in range(0, len(candidates.shrinkage), size)
    ]


def candidate_scores(train: Moments, offsets: Floats, candidates: Candidates) -> Floats:
    """Return the scores of n rows, without log priors, by every candidate fitted to `train`.

    The shape is (S, K, n, P), for S values of shrinkage, K classes and P values of pooling.
    """
    return FittedCandidates.of(train, candidates).scores(offsets)


@dataclass(frozen=True, slots=True, eq=False)
class FittedCandidates:
    """Every candidate fitted to the training rows of a fold."""

    train: Moments  # training moments, in which all classes have rows
    bases: _Bases | None
    # (S, K, d, P) eigenvalues of the pooled covariances; 1 where these are ill-conditioned
    e: Floats
    # (S, P) True for candidates that are scored by the bases, not by a fitted rule
    by_basis: npt.NDArray[np.bool_]
    rules: Mapping[tuple[int, int], Rule]  # fitted rules of all other candidates, by their indices

    @classmethod
    def of(cls, train: Moments, candidates: Candidates) -> FittedCandidates:
        """Solve an eigenproblem for each class and shrinkage.

        Candidates for which this is not possible are fitted one by one.
        """
        amounts, pooling = _amounts(train, candidates), candidates.pooling
        by_basis, e = np.zeros((len(amounts), len(pooling)), dtype=np.bool_), np.zeros(0)
        bases = None
        if candidates.share_basis and isinstance(train, ClassMoments):
            bases = _bases(train, candidates.family, amounts)
        if bases is not None:
            e, by_basis = _pooled_eigenvalues(bases, pooling)
        return cls(train, bases, e, by_basis, _fit_rules(train, candidates, amounts, by_basis))

    def scores(self, offsets: Floats) -> Floats:
        """Return the scores of n rows by all candidates, without log priors: (S, K, n, P)."""
        S, P = self.by_basis.shape
        scores = np.empty((S, len(self.train.labels), len(offsets), P))
        if self.bases is not None:
            assert isinstance(self.train, ClassMoments)
            v = np.matmul(offsets[None] - self.train.mean[:, None], self.bases.basis)
            np.square(v, out=v)
            np.matmul(v, -0.5 / self.e, out=scores)
            scores -= 0.5 * np.log(self.e).sum(axis=2)[:, :, None]
        rows = self.train.anchor.values(offsets) if self.rules else offsets
        # several candidates may share a rule
        by_rule = {id(rule): rule for rule in self.rules.values()}
        rule_scores = {key: rule.scores(rows).T for key, rule in by_rule.items()}
        for (s, p), rule in self.rules.items():
            scores[s, :, :, p] = rule_scores[id(rule)]
        return scores


def _fit_rules(
    train: Moments, candidates: Candidates, amounts: Floats, by_basis: npt.NDArray[np.bool_]
) -> dict[tuple[int, int], Rule]:
    """Fit rules, priors excluded, for the candidates that are not scored in the bases."""
    K = len(train.labels)
    fitted: dict[tuple[float, float], Rule] = {}
    rules: dict[tuple[int, int], Rule] = {}
    for s, p in np.argwhere(~by_basis).tolist():
        pooling, amount = float(candidates.pooling[p]), float(amounts[s])
        unshrunk = pooling == 0.0 and candidates.family.shrink == "pooled"
        key = (pooling, 0.0 if unshrunk else amount)
        if key not in fitted:
            family = replace(candidates.family, pooling=pooling, shrinkage=key[1])
            with capture_warnings() as warnings:
                fitted[key] = fit_gaussian_from_moments_or_rows(
                    train, family=family, prior=np.full(K, 1.0 / K)
                )
            for warning in warnings:
                if not isinstance(warning, ScarceRowsWarning):  # the held-out losses show this
                    warn(warning)
        rules[s, p] = fitted[key]
    return rules


@dataclass(frozen=True, slots=True, eq=False)
class _Bases:
    """For every shrinkage and class, a basis in which two covariances are diagonal.

    The two are the covariance of the class and the shrunk pooled covariance.
    """

    basis: Floats  # (S, K, d, d)
    # (S, K, d) eigenvalues of the class covariance relative to the shrunk pooled covariance: l_k
    values: Floats


def _bases(train: ClassMoments, family: GaussianFamily, amounts: Floats) -> _Bases | None:
    """Return the bases, or None if a covariance is nearly singular."""
    pooled = pooled_covariance(train, family.denominator)
    variance = np.diagonal(pooled)
    if (variance <= 4 * rounding_variance(train.mean)).any():
        return None
    sd = np.sqrt(variance)
    square = sd[:, None] * sd
    target = target_diagonal(variance, family.target, train.anchor.unit) / variance
    shrunk = (1 - amounts)[:, None, None] * (pooled / square)
    np.einsum("sii->si", shrunk)[...] += amounts[:, None] * target
    with np.errstate(invalid="ignore"):
        own = class_covariances(train, family.denominator) / square
    own[~np.isfinite(own)] = 0.0  # a class with one row, which only full pooling allows
    try:
        low = np.linalg.cholesky(shrunk)
    except np.linalg.LinAlgError:
        return None
    pivots = np.einsum("sii->si", low) ** 2 / np.einsum("sii->si", shrunk)
    if pivots.min() < _MIN_PIVOT:
        return None
    whiten = np.linalg.solve(low, np.eye(len(sd)))
    mixed = whiten[:, None] @ own @ whiten.transpose(0, 2, 1)[:, None]
    values, vectors = np.linalg.eigh(mixed)
    basis = whiten.transpose(0, 2, 1)[:, None] @ vectors / sd[:, None]
    return _Bases(basis, np.maximum(values, 0.0))


def _pooled_eigenvalues(bases: _Bases, pooling: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return the eigenvalues of the pooled covariances, and which candidates can use them.

    The eigenvalues e have the shape (S, K, d, P), for S values of shrinkage, K classes, d features
    and P values of pooling. The second result is a boolean array (S, P): True for candidates whose
    covariances are well-conditioned.
    """
    e = (1 - pooling) * bases.values[..., None] + pooling
    clear = e.min(axis=2) > _MIN_CONDITION * e.max(axis=2)
    return np.where(clear[:, :, None], e, 1.0), np.asarray(clear.all(axis=1))


def log_priors(train: Moments, candidates: Candidates) -> list[Floats]:
    """Return the log of each candidate prior, restricted to the classes that have rows."""
    present, own = train.rows > 0, drop_empty_classes(train)
    priors = [_restrict(prior, own, present) for prior in candidates.prior]
    return [np.log(class_prior(own, prior)) for prior in priors]


def sum_losses(joint: Floats, held: HeldOutRows) -> Floats:
    """Return the log loss and the misclassified weight of every candidate, summed over rows.

    The result has the shape (2, S, P), for S values of shrinkage and P values of pooling. `joint`
    (S, K, n, P) holds the scores including log priors; it is overwritten.
    """
    ends = np.searchsorted(held.codes, np.arange(joint.shape[1] + 1)).tolist()
    spans = [slice(*span) for span in pairwise(ends)]
    own = np.concatenate([joint[:, k, rows] for k, rows in enumerate(spans)], axis=1)
    top = joint.max(axis=1)
    own -= top  # the log posterior is `own - log total`
    joint -= top[:, None]
    total = np.exp(joint, out=joint).sum(axis=1)
    wrong = np.matmul(held.weight, own < 0.0)
    loss = _sum_of_logs(total, held.weight, joint.shape[1]) - np.matmul(held.weight, own)
    return np.stack([loss, wrong])


def _sum_of_logs(total: Floats, weight: Floats, upper: int) -> Floats:
    """Return the weighted sum over rows of log(total), (S, P), given `total` (S, n, P).

    Every number of `total` lies between 1 and `upper`.

    If all weights are 1, totals are multiplied over as many rows as possible without overflow, and
    one log is taken of each product.
    """
    if not (weight == 1.0).all():
        return np.asarray(np.matmul(weight, np.log(total)))
    factors = max(1, int(600 / np.log(upper)))
    starts = np.arange(0, total.shape[1], factors)
    return np.asarray(np.log(np.multiply.reduceat(total, starts, axis=1)).sum(axis=1))


def _amounts(train: Moments, candidates: Candidates) -> Floats:
    """Return the S values of shrinkage as numbers; 'auto' is estimated from the moments."""
    families = [replace(candidates.family, shrinkage=s) for s in candidates.shrinkage]
    return np.array([family_shrinkage(train, family) for family in families])


def _restrict(prior: Any, train: Moments, present: npt.NDArray[np.bool_]) -> Any:
    """Return a prior restricted to the classes of `train`, or None if `prior` is None."""
    if prior is None or present.all():
        return prior
    if isinstance(prior, Mapping):
        values = np.array([prior[label] for label in train.labels.tolist()], dtype=np.float64)
    else:
        values = np.asarray(prior, dtype=np.float64)[present]
    return values / values.sum()


def check_training(train: Any, candidates: Candidates) -> None:
    """Raise an error unless two or more classes have enough rows for their covariances."""
    check_training_classes(train.rows > 0, train.labels)
    check_classes(drop_empty_classes(train))
    if candidates.pooling.min() == 1.0:
        return
    degrees = class_degrees(train, candidates.family.denominator)
    for k in np.flatnonzero((train.rows > 0) & ((degrees <= 0) | (train.rows < 2))):
        raise TooFewRowsError.of_class(
            train.labels[k], int(train.rows[k]), 2, "each training set of a cross-validation"
        )


_MAX_BYTES = 1 << 29  # memory for the bases of all folds


def _partitioned_sums(folded: PartitionedFolds, candidates: Candidates) -> list[GridSums]:
    """Sum the losses over the rows of each fold that is not empty."""
    for f in folded.filled:
        check_training(folded.trains[f], candidates)
    d, K = len(folded.parts[0].features), len(folded.parts[0].labels)
    step = max(1, _MAX_BYTES // (8 * folded.n_folds * K * d * d))
    batches = _shrinkage_batches(candidates, step)
    passes = [folded.rows.fold(_reading(folded, batch)).parts for batch in batches]
    return [_join_shrinkages([parts[f] for parts in passes]) for f in folded.filled]


def _join_shrinkages(batches: list[GridSums | None]) -> GridSums:
    sums = [batch for batch in batches if batch is not None]
    return GridSums(np.concatenate([batch.losses for batch in sums], axis=2), sums[0].weight)


def _reading(folded: PartitionedFolds, candidates: Candidates) -> GridReading:
    with one_blas_thread(), ThreadPoolExecutor(available_threads()) as pool:
        fit = in_thread(lambda train: FoldFit.of(train, candidates))
        return GridReading(tuple(pool.map(fit, folded.trains)))


@dataclass(frozen=True, slots=True, eq=False)
class FoldFit:
    """Candidates fitted to all rows outside one fold."""

    train: ClassMoments
    priors: list[Floats]  # R arrays of shape (K,)
    fitted: FittedCandidates

    @classmethod
    def of(cls, train: ClassMoments, candidates: Candidates) -> FoldFit:
        """Fit the candidates to the moments of the other folds."""
        priors = log_priors(train, candidates)
        return cls(train, priors, FittedCandidates.of(drop_empty_classes(train), candidates))

    def losses(self, block: Block) -> GridSums:
        """Sum the losses over those rows of the fold that are in one block."""
        held = HeldOutRows.of(block, np.arange(len(block)), self.train)
        S, P = self.fitted.by_basis.shape
        sums = np.zeros((2, S, P, len(self.priors)))
        size = max(_MAX_NUMBERS // (S * len(self.train.labels) * (P + held.offsets.shape[1])), 64)
        for start in range(0, len(held.codes), size):
            rows = held.take(slice(start, start + size))
            scores = self.fitted.scores(rows.offsets)
            for r, prior in enumerate(self.priors):
                sums[..., r] += sum_losses(scores + prior[:, None, None], rows)
        return GridSums(sums.transpose(0, 2, 1, 3), float(held.weight.sum()))


@dataclass(frozen=True, slots=True, eq=False)
class GridReading:
    """Score each row by every candidate that was fitted without the row's fold."""

    fits: tuple[FoldFit, ...]  # F fits, one for each fold

    @property
    def summary_size(self) -> int:
        """Size of the sums that `read` returns."""
        fit = self.fits[0]
        return 2 * len(self.fits) * fit.fitted.by_basis.size * len(fit.priors)

    def read(self, block: Block) -> FoldSums[GridSums]:
        """Sum the losses over the rows of one block."""
        sums: list[GridSums | None] = [None] * len(self.fits)
        for f, part in split_by_fold(block):
            sums[f] = self.fits[f].losses(part)
        return FoldSums(tuple(sums))
