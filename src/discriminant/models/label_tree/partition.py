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
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy import sparse

from discriminant.models.label_tree.layers import Ints, Partition

_ROUNDS = 20  # of 2-means


def label_means(rows: sparse.csr_matrix, labels: sparse.csr_matrix) -> sparse.csr_matrix:
    """(L, d) float32 mean of each label's rows, of length one; zero for a label without rows."""
    pattern = sparse.csr_matrix(
        (np.ones(labels.nnz, np.float32), labels.indices, labels.indptr), shape=labels.shape
    )
    means = (pattern.T.tocsr() @ rows.astype(np.float32, copy=False)).tocsr()
    means.sort_indices()
    length = np.sqrt(
        np.add.reduceat(np.append(means.data.astype(np.float64) ** 2, 0.0), means.indptr[:-1])
    )
    length[np.diff(means.indptr) == 0] = 1.0
    length[length == 0.0] = 1.0
    means.data /= np.repeat(length, np.diff(means.indptr)).astype(np.float32)
    return sparse.csr_matrix(means)


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
