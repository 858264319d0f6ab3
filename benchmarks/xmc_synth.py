"""Generated rows with very many labels, shaped like the titles of a shop.

Labels are the leaves of a hidden tree of arity 16, under numbers that tell nothing of it. Every
node of the tree, leaf or not, has a few words of its own out of one vocabulary whose words are
used by Zipf's law, so that common words belong to many nodes and mean little.

    label of a row      Zipf-Mandelbrot: P(rank r) ~ 1 / (r + 10); every label has one row at least
    more labels         each of 6 companions of it with probability 0.22; most are close in the tree
    words of a row      3 + Poisson(4); of the label's leaf 0.30, of a node above it 0.35, any 0.35
    value of a word     (1 + log count) log(idf), rows of length one

A pure function of the sizes and the seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

ARITY = 16
OWN_WORDS = 12
COMPANIONS = 6


@dataclass(frozen=True)
class Size:
    """How much is generated."""

    labels: int
    train: int
    test: int
    words: int


SIZES = {
    "10k": Size(10_000, 25_000, 5_000, 20_000),
    "50k": Size(50_000, 115_000, 10_000, 40_000),
    "131k": Size(131_073, 294_805, 20_000, 40_000),
    "1m": Size(1_000_000, 2_000_000, 20_000, 120_000),
}


@dataclass(frozen=True)
class World:
    """What is true of all rows: L labels, V words."""

    leaf: np.ndarray  # (L,) place of each label among the leaves
    share: np.ndarray  # (L,) cumulated probability of being a row's first label
    companions: np.ndarray  # (L, 6) labels that come with it
    own: list[
        np.ndarray
    ]  # (nodes, 12) words of the nodes of each level, root excluded, leaves last
    common: np.ndarray  # (V,) cumulated probability of a word


def generate(size: Size, seed: int):
    """Features and labels of training and test rows, as four CSR matrices."""
    rng = np.random.default_rng([seed, size.labels])
    world = _world(size, rng)
    train_x, train_y = _rows(world, size, size.train, rng, every=True)
    test_x, test_y = _rows(world, size, size.test, rng, every=False)
    rows_with = np.bincount(train_x.indices, minlength=size.words)
    idf = np.log((1 + size.train) / (1 + rows_with)) + 1
    return _weighted(train_x, idf), train_y, _weighted(test_x, idf), test_y


def _world(size, rng):
    L = size.labels
    leaf = rng.permutation(L)
    label_at = np.argsort(leaf)
    share = rng.permutation(1 / (np.arange(L) + 11.0))
    near = leaf[:, None] + rng.integers(1, ARITY, (L, COMPANIONS)) * rng.choice(
        [-1, 1], (L, COMPANIONS)
    )
    anywhere = rng.integers(0, L, (L, COMPANIONS))
    companions = np.where(rng.random((L, COMPANIONS)) < 0.8, label_at[near % L], anywhere)
    common = np.cumsum((np.arange(size.words) + 21.0) ** -0.9)
    common /= common[-1]
    own, nodes = [], L
    while nodes > 1:
        own.insert(0, _words(common, (nodes, OWN_WORDS), rng))
        nodes = -(-nodes // ARITY)
    return World(leaf, np.cumsum(share / share.sum()), companions, own, common)


def _rows(world, size, n, rng, *, every):
    first = _drawn(world.share, n, rng)
    if every:
        first[rng.permutation(n)[: size.labels]] = np.arange(size.labels)
    row, label = _labels(world, first, rng)
    y = sp.csr_matrix((np.ones(len(row), np.float32), (row, label)), (n, size.labels))
    y.sum_duplicates()
    y.data[:] = 1
    length = 3 + rng.poisson(4, n)
    token_row = np.repeat(np.arange(n), length)
    word = _tokens(world, _speaker(y, first, token_row, rng), rng)
    ones = np.ones(len(word), np.float32)
    x = sp.csr_matrix((ones, (token_row, word)), (n, size.words))
    x.sum_duplicates()
    return x, y


def _labels(world, first, rng):
    """Row and label of every pair, the first label and its companions."""
    n = len(first)
    comes = rng.random((n, COMPANIONS)) < 0.22
    row = np.concatenate([np.arange(n), np.nonzero(comes)[0]])
    return row, np.concatenate([first, world.companions[first][comes]])


def _speaker(y, first, token_row, rng):
    """(T,) label that each word is about: one of the row's, the first twice as often."""
    many = np.diff(y.indptr)[token_row]
    pick = rng.integers(0, many + 1)
    which = y.indptr[token_row] + np.minimum(pick, many - 1)
    return np.where(pick == many, first[token_row], y.indices[which])


def _tokens(world, label, rng):
    """(T,) words said about these labels."""
    T, depth = len(label), len(world.own)
    word = _words(world.common, T, rng)
    kind, which = rng.random(T), rng.integers(0, OWN_WORDS, T)
    above = rng.integers(0, max(depth - 1, 1), T)
    for level, own in enumerate(world.own):
        is_leaf = level == depth - 1
        said = kind < 0.30 if is_leaf else (kind >= 0.30) & (kind < 0.65) & (above == level)
        node = world.leaf[label[said]] // ARITY ** (depth - 1 - level)
        word[said] = own[node, which[said]]
    return word


def _weighted(x, idf):
    x = x.copy()
    x.data = ((1 + np.log(x.data)) * idf[x.indices]).astype(np.float32)
    length = np.sqrt(np.asarray(x.multiply(x).sum(axis=1)).ravel())
    x.data /= np.repeat(length, np.diff(x.indptr)).astype(np.float32)
    x.sort_indices()
    return x


def _words(common, shape, rng):
    return _drawn(common, shape, rng).astype(np.int32)


def _drawn(cumulated, shape, rng):
    return np.minimum(np.searchsorted(cumulated, rng.random(shape)), len(cumulated) - 1)
