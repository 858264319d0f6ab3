"""Training tasks of a label tree: which rows reach which nodes, and how a level is divided.

A row reaches a node if one of its labels lies below it. Labels are first numbered by their position
in the leaf order and sorted within each row, once; at any level the nodes of a row are then
increasing, and the rows of each node are collected by counting.

An entry of the label matrix may carry a weight: how much the row counts as an example of that
label. For a node above several labels of a row the largest weight counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from discriminant.extreme.model.fitted_tree import Ints, LabelPartition, Reals

BLOCK = 8  # children solved together: one vector register of float32
_LARGE = 4_000_000  # values read by one sweep; larger tasks are divided
_MOST = 2**16  # largest number of children of a task


@dataclass(frozen=True, slots=True, eq=False)
class NodeRows:
    """Rows that reach each of the M nodes of a level."""

    starts: Ints  # (M + 1,)
    rows: Ints  # those of node m, increasing: rows[starts[m] : starts[m + 1]]
    weight: Reals | None  # of the same length; None where all are 1


@dataclass(frozen=True, slots=True)
class Task:
    """Unit of work of a thread: all children of one node, or some of a large one."""

    level: int
    node: int
    first: int  # child, in the level below
    last: int  # one after
    block: int  # of the first child within its node
    work: int  # values read by one sweep


def rows_by_level(partition: LabelPartition, labels: sparse.csr_matrix) -> Iterator[NodeRows]:
    """Yield the rows that reach the nodes of each level, from the root down."""
    n, L = labels.shape
    place = np.empty(L, np.int32)
    place[partition.label_of] = np.arange(L, dtype=np.int32)
    weighted = bool((labels.data != 1).any())
    held = labels.data if weighted else np.ones(labels.nnz, np.int8)
    placed = sparse.csr_matrix((held, place[labels.indices], labels.indptr), shape=(n, L))
    placed = placed.copy() if weighted else placed
    placed.sort_indices()
    row_starts = placed.indptr[:-1][np.diff(placed.indptr) > 0]
    for borders in partition.levels:
        node = np.repeat(np.arange(len(borders) - 1, dtype=np.int32), np.diff(borders))
        yield _level(placed, node[placed.indices], row_starts, len(borders) - 1, weighted)


def _level(
    placed: sparse.csr_matrix, node: Ints, row_starts: Ints, nodes: int, weighted: bool
) -> NodeRows:
    """Rows of the nodes of one level; `node` is the node above each label of each row."""
    new = np.ones(len(node), bool)
    new[1:] = node[1:] != node[:-1]
    new[row_starts] = True
    starts = np.concatenate([[0], np.cumsum(new)])[placed.indptr]
    kept = np.flatnonzero(new)
    weight = placed.data[kept]
    if weighted and len(kept):
        weight = np.maximum.reduceat(placed.data, kept)
    by_row = sparse.csr_matrix((weight, node[kept], starts), shape=(placed.shape[0], nodes))
    found = by_row.tocsc()
    return NodeRows(found.indptr.astype(np.int64), found.indices, found.data if weighted else None)


def make_tasks(level: int, children: Ints, reach: NodeRows, row_starts: Ints) -> list[Task]:
    """Return the tasks of the nodes with more than one child, in the order of nodes."""
    size = np.concatenate([[0], np.cumsum(np.diff(row_starts)[reach.rows], dtype=np.int64)])
    size = np.diff(size[reach.starts]) + np.diff(reach.starts)
    tasks = []
    for node in np.flatnonzero(np.diff(children) > 1).tolist():
        begin, end = int(children[node]), int(children[node + 1])
        at_once = max(1, min(_LARGE // max(int(size[node]), 1), _MOST // BLOCK)) * BLOCK
        for first in range(begin, end, at_once):
            last = min(first + at_once, end)
            work = int(size[node]) * n_blocks(first, last)
            tasks.append(Task(level, node, first, last, (first - begin) // BLOCK, work))
    return tasks


def n_blocks(first: int, last: int) -> int:
    """Number of blocks of the children `first` to `last`."""
    return (last - first + BLOCK - 1) // BLOCK


def total_work(partition: LabelPartition, labels: sparse.csr_matrix, row_starts: Ints) -> int:
    """Number of values that one sweep of every classifier reads."""
    total = 0
    for level, reach in enumerate(rows_by_level(partition, labels)):
        if level + 1 < len(partition.levels):
            children = child_offsets(partition, level)
            total += sum(task.work for task in make_tasks(level, children, reach, row_starts))
    return total


def child_offsets(partition: LabelPartition, level: int) -> Ints:
    """(P + 1,) offsets of the children of each node of a level in the next level."""
    above, below = partition.levels[level : level + 2]
    return np.searchsorted(below, above).astype(np.int64)
