"""From rows and label sets to trees: the options of a `LabelTree`, spelt out for the models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from discriminant.engines.local import available_threads
from discriminant.errors import LabelTreeError
from discriminant.estimators.label_options import seed_of
from discriminant.estimators.label_sets import LabelSets
from discriminant.models.label_tree.claiming import make
from discriminant.models.label_tree.hierarchy import given, huffman
from discriminant.models.label_tree.layers import Layer, Partition, Tree
from discriminant.models.label_tree.partition import (
    balanced,
    label_means,
    one_vs_rest,
    rare_first,
    wide,
)
from discriminant.models.label_tree.propensity import inverse_propensity
from discriminant.models.label_tree.sizing import Estimate, estimate
from discriminant.models.label_tree.training import Settings, train


def grown(model: Any, rows: sparse.csr_matrix, sets: LabelSets) -> tuple[Tree, ...]:
    """The trees that a `LabelTree` asks for."""
    threads, seed = model.threads or available_threads(), seed_of(model.random_state)
    if model.checkpoint is not None:
        make(Path(model.checkpoint) / "tree0")  # what cannot be is told before the work
    means = label_means(rows, sets.members)
    members = _leaned(sets.members) if model.weighting == "propensity" else sets.members
    count, found = how_many(model), []
    for t in range(count):
        tree = train(
            _partition(model, means, sets, seed + t, threads),
            rows,
            members,
            settings=_settings(model, seed + t),
            threads=threads,
            spool=None if model.checkpoint is None else Path(model.checkpoint) / f"tree{t}",
            progress=_progress(model.progress, t, count),
        )
        found.append(halved(tree) if model.precision == "float16" else tree)
    return tuple(found)


def tried(model: Any, rows: sparse.csr_matrix, sets: LabelSets) -> tuple[Estimate, int]:
    """What one of the trees will be, and the numbers in the mean rows of labels."""
    threads, seed = model.threads or available_threads(), seed_of(model.random_state)
    means = label_means(rows, sets.members)
    members = _leaned(sets.members) if model.weighting == "propensity" else sets.members
    partition = _partition(model, means, sets, seed, threads)
    return estimate(partition, rows, members, settings=_settings(model, seed)), means.nnz


def how_many(model: Any) -> int:
    """Trees; one where a further one would be the same again."""
    alone = not isinstance(model.tree, str) or model.tree in ("one-vs-rest", "huffman", "moments")
    return 1 if alone else int(model.trees)


def _settings(model: Any, seed: int) -> Settings:
    return Settings(
        loss=model.loss,
        cost=float(model.cost),
        tolerance=float(model.tolerance),
        max_sweeps=int(model.max_sweeps),
        threshold=float(model.threshold),
        precision="float64" if model.precision == "float64" else "float32",
        seed=seed,
    )


def _partition(
    model: Any, means: sparse.csr_matrix, sets: LabelSets, seed: int, threads: int
) -> Partition:
    frequency = np.bincount(sets.members.indices, minlength=len(sets.labels))
    found = _divided(model, means, sets, frequency, seed, threads)
    return rare_first(found, frequency)


def _divided(
    model: Any, means: sparse.csr_matrix, sets: LabelSets, frequency: Any, seed: int, threads: int
) -> Partition:
    if not isinstance(model.tree, str):
        return given(model.tree, sets.labels.tolist())
    if model.tree == "one-vs-rest":
        return one_vs_rest(len(sets.labels))
    if model.tree == "huffman":
        return huffman(frequency, arity=model.arity or 16)
    if model.tree == "wide":
        return wide(means, arity=model.arity or 100, leaf=model.leaf, seed=seed, threads=threads)
    return balanced(means, arity=model.arity or 16, leaf=model.leaf, seed=seed, threads=threads)


def _progress(
    told: Callable[[int, int], object] | None, tree: int, trees: int
) -> Callable[[int, int], object] | None:
    """How far a tree is, as part of them all."""
    if told is None:
        return None
    return lambda done, total: told(tree * total + done, trees * total)


def _leaned(members: sparse.csr_matrix) -> sparse.csr_matrix:
    """Labels that count 1 / propensity."""

    frequency = np.bincount(members.indices, minlength=members.shape[1])
    weight = inverse_propensity(frequency, rows=members.shape[0])
    values = weight[members.indices].astype(np.float32)
    return sparse.csr_matrix((values, members.indices, members.indptr), shape=members.shape)


def halved(tree: Tree) -> Tree:
    """The tree with weights of half precision."""
    return Tree(tree.label_of, tuple(_half(layer) for layer in tree.layers))


def _half(layer: Layer) -> Layer:
    largest = float(np.abs(layer.weight).max(initial=0.0))
    if largest > float(np.finfo(np.float16).max):
        raise LabelTreeError.beyond_half(largest)
    return replace(layer, weight=layer.weight.astype(np.float16))
