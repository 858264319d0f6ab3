"""Training tasks of a label tree: which rows reach which nodes, and division of a level into tasks.

A row reaches a node if one of its labels is below the node. First, the labels of each row are
replaced by their positions in the leaf order and sorted. At every level, the nodes that a row
reaches are then in increasing order, and the rows of each node are collected by a counting sort.

An entry of the label matrix may be a weight: how much the row counts as an example of the label.
If a row has several labels below a node, the largest of their weights is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from discriminant.extreme.model.fitted_tree import Ints, LabelPartition, Reals

BLOCK = 8  # number of children solved together: one vector register of float32
_MAX_WORK = 4_000_000  # a task that reads more values than this in one sweep is divided
_MAX_CHILDREN = 2**16  # largest number of children in a task


@dataclass(frozen=True, slots=True, eq=False)
class NodeRows:
    """Rows that reach each of the M nodes of a level."""

    starts: Ints  # (M + 1,) offsets into `rows`
    rows: Ints  # the rows of node m, in increasing order, are rows[starts[m] : starts[m + 1]]
    weight: Reals | None  # weight of each of `rows`; None if all are 1


@dataclass(frozen=True, slots=True)
class Task:
    """Unit of work of a thread: all children of one node, or some children of a large node."""

    level: int
    node: int
    first: int  # first child, as a node of the level below
    last: int  # last child, exclusive
    block: int  # index of the first block within the node
    work: int  # number of values that one sweep reads


def rows_by_level(partition: LabelPartition, labels: sparse.csr_matrix) -> Iterator[NodeRows]:
    """Yield the rows that reach the nodes of each level, from the root down."""
    n, L = labels.shape
    place = np.empty(L, np.int32)
    place[partition.label_of] = np.arange(L, dtype=np.int32)
    weighted = bool((labels.data != 1).any())
    values = labels.data if weighted else np.ones(labels.nnz, np.int8)
    placed = sparse.csr_matrix((values, place[labels.indices], labels.indptr), shape=(n, L))
    placed = placed.copy() if weighted else placed
    placed.sort_indices()
    row_starts = placed.indptr[:-1][np.diff(placed.indptr) > 0]
    for borders in partition.levels:
        node = np.repeat(np.arange(len(borders) - 1, dtype=np.int32), np.diff(borders))
        yield _rows_of_nodes(placed, node[placed.indices], row_starts, len(borders) - 1, weighted)


def _rows_of_nodes(
    placed: sparse.csr_matrix, node: Ints, row_starts: Ints, nodes: int, weighted: bool
) -> NodeRows:
    """Return the rows of each node of a level; `node` holds the node above each label of a row."""
    new = np.ones(len(node), bool)
    new[1:] = node[1:] != node[:-1]
    new[row_starts] = True
    starts = np.concatenate([[0], np.cumsum(new)])[placed.indptr]
    first = np.flatnonzero(new)
    weight = placed.data[first]
    if weighted and len(first):
        weight = np.maximum.reduceat(placed.data, first)
    by_row = sparse.csr_matrix((weight, node[first], starts), shape=(placed.shape[0], nodes))
    by_node = by_row.tocsc()
    indptr = by_node.indptr.astype(np.int64)
    return NodeRows(indptr, by_node.indices, by_node.data if weighted else None)


def make_tasks(level: int, children: Ints, reach: NodeRows, row_starts: Ints) -> list[Task]:
    """Return the tasks of all nodes with more than one child, in the order of nodes."""
    size = np.concatenate([[0], np.cumsum(np.diff(row_starts)[reach.rows], dtype=np.int64)])
    size = np.diff(size[reach.starts]) + np.diff(reach.starts)
    tasks = []
    for node in np.flatnonzero(np.diff(children) > 1).tolist():
        begin, end = int(children[node]), int(children[node + 1])
        at_once = max(1, min(_MAX_WORK // max(int(size[node]), 1), _MAX_CHILDREN // BLOCK)) * BLOCK
        for first in range(begin, end, at_once):
            last = min(first + at_once, end)
            work = int(size[node]) * n_blocks(first, last)
            tasks.append(Task(level, node, first, last, (first - begin) // BLOCK, work))
    return tasks


def n_blocks(first: int, last: int) -> int:
    """Return the number of blocks for the children `first` to `last`, exclusive."""
    return (last - first + BLOCK - 1) // BLOCK


def total_work(partition: LabelPartition, labels: sparse.csr_matrix, row_starts: Ints) -> int:
    """Return the number of values that one sweep of every classifier reads."""
    total = 0
    for level, reach in enumerate(rows_by_level(partition, labels)):
        if level + 1 < len(partition.levels):
            children = child_offsets(partition, level)
            total += sum(task.work for task in make_tasks(level, children, reach, row_starts))
    return total


def child_offsets(partition: LabelPartition, level: int) -> Ints:
    """Return the offsets (P + 1,) of each node's children in the next level."""
    above, below = partition.levels[level : level + 2]
    return np.searchsorted(below, above).astype(np.int64)
