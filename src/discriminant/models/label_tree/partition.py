"""Trees over labels, from what their rows look like.

A label is represented by the mean of its rows, scaled to length one (its first moment, seen from
the origin). Labels whose rows are alike come to lie together:

    balanced      parts in two equal halves again and again, by spherical 2-means (Prabhu et al.
                  2018), of which every log2(arity)-th level is kept, counted from the leaves up
    wide          k-means of many centres, twice or so (Khandagale et al. 2019)
    one-vs-rest   no tree: all labels below the root

Labels are first put in an order of their own, by a random projection of their means. So the names
and the order of labels mean nothing to a tree: permuted labels give the permuted tree.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from scipy import sparse

from discriminant.models.label_tree.layers import Ints, Partition, Reals

_ROUNDS = 20  # of k-means
_SMALL = 1e-15  # of the largest number of rows: smaller, or 1 over it, their unit is changed
_GAIN = 1e-4  # of the mean likeness, below which k-means ends


def label_means(rows: sparse.csr_matrix, labels: sparse.csr_matrix) -> sparse.csr_matrix:
    """(L, d) float32 mean of each label's rows, of length one; zero for a label without rows."""
    pattern = sparse.csr_matrix(
        (np.ones(labels.nnz, np.float32), labels.indices, labels.indptr), shape=labels.shape
    )
    means = (pattern.T.tocsr() @ _single(rows)).tocsr()
    means.sort_indices()
    length = np.sqrt(
        np.add.reduceat(np.append(means.data.astype(np.float64) ** 2, 0.0), means.indptr[:-1])
    )
    length[np.diff(means.indptr) == 0] = 1.0
    length[length == 0.0] = 1.0
    means.data /= np.repeat(length, np.diff(means.indptr)).astype(np.float32)
    return sparse.csr_matrix(means)


def _single(rows: sparse.csr_matrix) -> sparse.csr_matrix:
    """Rows in float32, in other units where sums of them would overflow, or vanish."""
    most = float(np.abs(rows.data).max(initial=0.0))
    if not most or _SMALL < most < 1 / _SMALL:
        return rows.astype(np.float32, copy=False)
    data = np.ldexp(rows.data.astype(np.float64), -int(np.frexp(most)[1])).astype(np.float32)
    return sparse.csr_matrix((data, rows.indices, rows.indptr), shape=rows.shape)


def own_order(means: sparse.csr_matrix, *, seed: int) -> Ints:
    """(L,) labels in an order that depends on their means alone; equal means keep theirs."""
    direction = np.random.default_rng(seed).standard_normal(means.shape[1], dtype=np.float32)
    return np.argsort(means @ direction, kind="stable")


def one_vs_rest(n_labels: int) -> Partition:
    """All labels below the root."""
    return Partition(np.arange(n_labels), (np.array([0, n_labels]), np.arange(n_labels + 1)))


def balanced(
    means: sparse.csr_matrix,
    *,
    arity: int = 16,
    leaf: int = 100,
    seed: int = 0,
    threads: int | None = None,
) -> Partition:
    """Equal halves, again and again, until no part has more than `leaf` labels."""
    L = means.shape[0]
    groups = 1 << max(0, int(np.ceil(np.log2(max(L, 1) / leaf))))
    order = own_order(means, seed=seed)
    halves = Halves(means, order, seed=seed, threads=threads)
    levels, borders, held = [np.array([0, L])], np.array([0, L]), np.array([groups])
    for below in _heights(groups, arity):
        borders, held = halves.cut(borders, held, below)
        levels.append(borders)
    if len(borders) - 1 < L:
        levels.append(np.arange(L + 1))
    return Partition(order, tuple(levels))


def _heights(groups: int, arity: int) -> list[int]:
    """Groups in one node of each level below the root: 1 at the leaves, arity times more above."""
    found, size = [], 1
    while size < groups:
        found.append(size)
        size *= arity
    return found[::-1]


def wide(
    means: sparse.csr_matrix,
    *,
    arity: int = 100,
    depth: int = 2,
    leaf: int = 100,
    smallest: int = 2,
    seed: int = 0,
    threads: int | None = None,
) -> Partition:
    """Spherical k-means of `arity` centres, `depth` times; parts below `leaf` labels stay whole."""
    L = means.shape[0]
    order, levels = own_order(means, seed=seed), [np.array([0, L])]
    for level in range(depth):
        parts = list(pairwise(levels[-1].tolist()))
        cut = [i for i, (start, stop) in enumerate(parts) if stop - start >= max(leaf, 2)]
        if not cut:
            break
        within = 1 if len(cut) > 1 else threads or os.cpu_count() or 1

        tasks = [
            Centres(means, order[slice(*parts[i])], arity, [seed, level, i], within) for i in cut
        ]
        with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
            found = pool.map(lambda task: task.divide(smallest), tasks)
            sizes_of = dict(zip(cut, found, strict=True))
        sizes = [sizes_of.get(i, [stop - start]) for i, (start, stop) in enumerate(parts)]
        levels.append(np.concatenate([[0], np.cumsum([size for some in sizes for size in some])]))
    if len(levels[-1]) - 1 < L:
        levels.append(np.arange(L + 1))
    return Partition(order, tuple(levels))


def rare_first(partition: Partition, frequency: Ints) -> Partition:
    """The same tree with the children of each node in order of how many rows their labels have.

    Children are trained in blocks, in their order: much the same rows matter to those of a block.
    """
    before = np.concatenate([[0], np.cumsum(frequency[partition.label_of])])
    levels, place, order = [partition.levels[0]], np.zeros(1, np.int64), np.zeros(1, np.int64)
    for above, below in pairwise(partition.levels):
        parent = np.searchsorted(above, below[:-1], side="right") - 1
        order = np.lexsort((np.diff(before[below]), place[parent]))
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        levels.append(np.concatenate([[0], np.cumsum(np.diff(below)[order])]))
    return Partition(partition.label_of[order], tuple(levels))


class Centres:
    """k-means of the unit means of some labels."""

    def __init__(
        self,
        means: sparse.csr_matrix,
        labels: Ints,
        k: int,
        seed: Sequence[int],
        workers: int,
    ) -> None:
        self.means, self.labels, self.k = means, labels, min(k, len(labels))
        self.workers, self.seed = workers, seed
        self.open = np.ones(self.k, bool)

    def divide(self, smallest: int) -> list[int]:
        """Put the labels in the order of their centres, and tell how many each has."""
        used = np.unique(self.means[self.labels].indices)
        self.local_of = np.zeros(self.means.shape[1], np.int32)
        self.local_of[used] = np.arange(len(used))
        self.centre = np.empty((len(used), self.k), np.float32)
        code = self._code(smallest)
        del self.centre, self.local_of
        self.labels[:] = self.labels[np.argsort(code, kind="stable")]
        return [int(size) for size in np.bincount(code) if size]

    def _code(self, smallest: int) -> Ints:
        """(labels,) the centre of each; centres with too few labels give them to others."""
        rng = np.random.default_rng(self.seed)
        first = rng.choice(len(self.labels), self.k, replace=False)
        self._centre(self.labels[first], np.arange(self.k))
        before = -2.0
        for _ in range(_ROUNDS):
            code, score = self._nearest(self.labels)
            now = float(score.mean(dtype=np.float64))
            if now - before < _GAIN:
                break
            before = now
            self._centre(self.labels, code)
        return self._merged(code, smallest)

    def _merged(self, code: Ints, smallest: int) -> Ints:
        count = np.bincount(code, minlength=self.k)
        self.open = count > 0
        while True:
            size = np.where(self.open, count, len(code) + 1)
            least = int(size.argmin())
            if size[least] >= smallest or self.open.sum() == 1:
                return code
            self.open[least] = False
            moved = np.flatnonzero(code == least)
            code[moved] = self._nearest(self.labels[moved])[0]
            count = np.bincount(code, minlength=self.k)

    def _nearest(self, labels: Ints) -> tuple[Ints, Reals]:
        from discriminant.models.label_tree.loops_partition import nearest

        code, score = np.empty(len(labels), np.int64), np.empty(len(labels), np.float32)
        Z, step = self.means, max(len(labels) // self.workers + 1, 256)

        def some(start: int) -> None:
            part = slice(start, start + step)
            out = code[part], score[part]
            rows = Z.indptr, Z.indices, Z.data, labels[part]
            nearest(*rows, self.centre, self.local_of, self.open, *out)

        if len(labels) <= step:
            some(0)
        else:
            with ThreadPoolExecutor(self.workers) as pool:
                list(pool.map(some, range(0, len(labels), step)))
        return code, score

    def _centre(self, labels: Ints, code: Ints) -> None:
        from discriminant.models.label_tree.loops_partition import centred

        Z = self.means
        centred(Z.indptr, Z.indices, Z.data, labels, code, self.local_of, self.centre)


class Halves:
    """Parts of an order of labels that are cut in two until they hold what they may."""

    def __init__(
        self, means: sparse.csr_matrix, order: Ints, *, seed: int, threads: int | None
    ) -> None:
        self.means, self.order = means, order
        self.seed, self.round = seed, 0
        self.workers = threads or os.cpu_count() or 1
        self.own = threading.local()

    def cut(self, borders: Ints, groups: Ints, most: int) -> tuple[Ints, Ints]:
        """The borders of parts with at most `most` groups each, and how many each has."""
        while groups.max() > most:
            borders, groups = self._round(borders, groups, most)
        return borders, groups

    def _round(self, borders: Ints, groups: Ints, most: int) -> tuple[Ints, Ints]:
        """Every part with too many groups in two."""
        starts, held, tasks = [], [], []
        for i, (start, stop, group) in enumerate(zip(borders, borders[1:], groups, strict=False)):
            nodes = (group + most - 1) // most  # of the level, that it becomes
            left = min((nodes + 1) // 2 * most, group)
            right = (stop - start) * (group - left) // group  # labels
            starts.append(start)
            if group <= most or stop - start == 1:
                held.append(min(group, most))
                continue
            held.append(left)
            if right > 0:
                tasks.append((start, stop, stop - start - right, self._seed(i)))
                starts.append(stop - right)
                held.append(group - left)
        self.round += 1
        with ThreadPoolExecutor(self.workers) as pool:
            list(pool.map(self._divide, sorted(tasks, key=lambda task: task[0] - task[1])))
        return np.array([*starts, borders[-1]]), np.array(held)

    def _seed(self, part: int) -> int:
        return hash_of(self.seed, self.round, part)

    def _divide(self, task: tuple[int, int, int, int]) -> None:
        from discriminant.models.label_tree import loops_partition as loops

        start, stop, first, seed = task
        if not hasattr(self.own, "centre"):
            self.own.centre = np.zeros((self.means.shape[1], 2), np.float32)
        Z = self.means
        loops.divided(
            Z.indptr,
            Z.indices,
            Z.data,
            self.order[start:stop],
            first,
            self.own.centre,
            _ROUNDS,
            seed,
        )


def hash_of(*numbers: int) -> int:
    """A 63-bit number from some: the same for the same, unlike for others (splitmix)."""
    key = 0
    for number in numbers:
        key = ((key ^ (number + 1)) * 0x9E3779B97F4A7C15) % 2**64
        key = ((key ^ (key >> 31)) * 0xBF58476D1CE4E5B9) % 2**64
        key ^= key >> 29
    return key >> 1 | 1
