"""A label tree out of class moments: no row is read for it.

All classes share their covariance C = W / n, as in LDA. Whitened, z = C^(-1/2) x, what is left of a
class is its mean; a tree is then made of K points of some weights n_k:

    the tree      a node is cut across a direction, where the points on either side differ least
                  from each other: first that in which points differ most, then, until the sides
                  stay, that in which the two sides are told best
    a node        two groups l and r of points. Within groups, rows scatter by
                      V = I + sum over both of n_k (z_k - z_g)(z_k - z_g)' / n
                  which is what grouped moments say; so the log odds of r are, as for any two
                  classes of LDA,
                      m(z) = (z - (z_l + z_r) / 2)' V^-1 (z_r - z_l) + log(n_r / n_l)

A node of two classes tells them as LDA does. The child r has the margin m and l has -m, so that
with the path score 'logistic' probabilities of the leaves sum to one.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve

from discriminant.models.gaussian import Family, check_classes, pooled_metric
from discriminant.models.label_tree.hierarchy import laid_out
from discriminant.models.label_tree.layers import Ints, Layer, Partition, Tree
from discriminant.models.label_tree.reaching import children_of
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.schema import Floats

_LEAST = 8  # a cut leaves at least 1 of so many classes on either side
_ROUNDS = 20  # of a cut, at most

Run = tuple[int, int]  # the leaves of a node: from the first, up to the last


class Fork(NamedTuple):
    """A node: the classes on its two sides."""

    left: Ints
    right: Ints


def separated(moments: ClassMoments) -> tuple[Tree, Floats]:
    """The tree of classes of these moments, pooled or in more detail, for rows less a centre (d,).

    Its path score is 'logistic'.
    """
    check_classes(moments)
    metric = pooled_metric(moments.reduce("pooled"), Family(denominator="ml"))
    anchor, moved = moments.anchor.moved(moments.centre)
    points = metric.whitened(moments.mean - moved)
    forks, partition = _divided(points, moments.weight)
    rules = [_rule(fork, points, moments.weight) for fork in forks]
    slope = metric.directions(np.array([rule[0] for rule in rules]).T).T / anchor.unit
    intercept = np.array([rule[1] for rule in rules])
    place = np.empty(len(points), np.int64)
    place[partition.label_of] = np.arange(len(points))
    node = {_run(fork, place): at for at, fork in enumerate(forks)}
    layers = [
        _layer(partition, level, node, slope, intercept)
        for level in range(len(partition.levels) - 1)
    ]
    return Tree(partition.label_of, tuple(layers)), anchor.origin


def _divided(points: Floats, weight: Floats) -> tuple[list[Fork], Partition]:
    """All forks, and the partition that they make."""
    K = len(points)
    below: list[list[int]] = [[] for _ in range(K + 1)]
    forks, waiting = list[Fork](), [(K, np.arange(K))]
    while waiting:
        node, codes = waiting.pop()
        fork = _cut(codes, points[codes], weight[codes])
        forks.append(fork)
        for side in fork:
            if len(side) == 1:
                below[node].append(int(side[0]))
                continue
            below.append([])
            below[node].append(len(below) - 1)
            waiting.append((len(below) - 1, side))
    return forks, laid_out(below, K, np.arange(K))


def _cut(codes: Ints, points: Floats, weight: Floats) -> Fork:
    """Two sides of some classes, far from each other."""
    if len(codes) == 2:
        return Fork(codes[:1], codes[1:])
    heavy = np.sqrt(weight)[:, None] * (points - weight @ points / weight.sum())
    fork = _across(np.linalg.svd(heavy, full_matrices=False)[2][0], points, weight)
    for _ in range(_ROUNDS):
        last, fork = fork, _across(_rule(fork, points, weight)[0], points, weight)
        if np.array_equal(last.left, fork.left):
            break
    return Fork(codes[fork.left], codes[fork.right])


def _across(direction: Floats, points: Floats, weight: Floats) -> Fork:
    """The two sides along a direction whose means are farthest from each other, by their weights.

    The first of the points is on the left.
    """
    n, along = len(points), points @ direction
    order = np.argsort(along, kind="stable")
    centred = along[order] - weight @ along / weight.sum()
    mass, moment = np.cumsum(weight[order]), np.cumsum(weight[order] * centred)
    apart = moment[:-1] ** 2 / (mass[:-1] * (mass[-1] - mass[:-1]))
    least = max(1, n // _LEAST)
    at = least + int(np.argmax(apart[least - 1 : n - least]))
    sides = np.sort(order[:at]), np.sort(order[at:])
    return Fork(*(sides if sides[0][0] == 0 else sides[::-1]))


def _rule(fork: Fork, points: Floats, weight: Floats) -> tuple[Floats, float]:
    """Direction and intercept, for whitened rows, of the log odds of the right side."""
    n = [float(weight[side].sum()) for side in fork]
    mean = [weight[side] @ points[side] / n_side for side, n_side in zip(fork, n, strict=True)]
    spread = np.concatenate(
        [
            np.sqrt(weight[side] / sum(n))[:, None] * (points[side] - centre)
            for side, centre in zip(fork, mean, strict=True)
            if len(side) > 1
        ]
        or [np.empty((0, points.shape[1]))]
    )
    direction = _within(spread, mean[1] - mean[0])
    return direction, float(np.log(n[1] / n[0]) - direction @ (mean[0] + mean[1]) / 2)


def _within(spread: Floats, apart: Floats) -> Floats:
    """(I + spread' spread)^-1 apart, in the smaller of the two dimensions."""
    n, d = spread.shape
    if n < d:
        small = np.eye(n) + spread @ spread.T
        return np.asarray(apart - spread.T @ solve(small, spread @ apart, assume_a="pos"))
    return np.asarray(solve(np.eye(d) + spread.T @ spread, apart, assume_a="pos"))


def _run(fork: Fork, place: Ints) -> Run:
    """The leaves of a fork, in leaf order."""
    first = int(min(place[side].min() for side in fork))
    return first, first + sum(len(side) for side in fork)


def _layer(
    partition: Partition, level: int, node: dict[Run, int], slope: Floats, intercept: Floats
) -> Layer:
    """The layer below a level: two children of every fork, one certain one of every leaf."""
    at = [node.get(run, -1) for run in pairwise(partition.levels[level].tolist())]
    forks = np.array([one for one in at if one >= 0])
    there, d = np.array(at) >= 0, slope.shape[1]
    children = children_of(partition, level)
    bias = np.full(int(children[-1]), np.inf)
    left = children[:-1][there]
    bias[left], bias[left + 1] = -intercept[forks], intercept[forks]
    return Layer.of(
        children=children,
        chunks=np.concatenate([[0], np.cumsum(there * d)]),
        feature=np.tile(np.arange(d, dtype=np.int32), len(forks)),
        entries=2 * np.arange(len(forks) * d + 1),
        child=np.tile(np.array([0, 1], np.uint8), len(forks) * d),
        weight=np.stack([-slope[forks], slope[forks]], axis=-1).ravel(),
        bias=bias,
    )
