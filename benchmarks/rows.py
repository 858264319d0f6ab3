"""Rows to race on: Gaussian classes of well-conditioned covariances."""

from __future__ import annotations

import numpy as np
from scipy import sparse

_BLOCK = 1 << 16


def gaussian_rows(N, d, K, *, seed=0, dtype=np.float64, order="C", mixed=True):
    """(N, d) rows and (N,) integer labels; made block by block, so that memory stays level.

    With `mixed` features are correlated; without, a wide table is made without a d x d matrix.
    """
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((K, d)) * (2.0 / np.sqrt(d))  # classes overlap, however wide
    mix = np.eye(d) + rng.standard_normal((d, d)) / (2 * np.sqrt(d)) if mixed else None
    codes = rng.integers(K, size=N)
    codes[: 2 * K] = np.tile(np.arange(K), 2)[: len(codes)]
    rows = np.empty((N, d), dtype=dtype, order=order)
    for lo in range(0, N, _BLOCK):
        part = codes[lo : lo + _BLOCK]
        noise = rng.standard_normal((len(part), d))
        noise *= 1.0 + 0.5 * (part % 3)[:, None]  # classes differ in spread, so QDA has a job
        rows[lo : lo + _BLOCK] = (noise if mix is None else noise @ mix) + means[part]
    return rows, codes


def scored_rows(N, d, K, *, seed=0, scaled=False):
    """(N, d) rows and (N,) labels of a softmax model: classes overlap, and there is a best rule.

    Features are independent, of mean 0 and standard deviation 1; `scaled`: of standard deviations
    from 1 to 1e4, and means of three of them.
    """
    rng = np.random.default_rng(seed)
    slopes = rng.standard_normal((d, K)) * (2.0 / np.sqrt(d))
    unit = np.logspace(0, 4, d)
    rows, codes = np.empty((N, d)), np.empty(N, dtype=np.int64)
    for lo in range(0, N, _BLOCK):
        part = rng.standard_normal((min(_BLOCK, N - lo), d))
        codes[lo : lo + _BLOCK] = (part @ slopes + rng.gumbel(size=(len(part), K))).argmax(axis=1)
        rows[lo : lo + _BLOCK] = (part + 3.0) * unit if scaled else part
    return rows, codes


def sparse_rows(N, d, entries, *, seed=0):
    """(N, d) CSR of normal entries at random places, and labels by a linear score with noise."""
    rng = np.random.default_rng(seed)
    places = np.sort(rng.integers(d, size=(N, entries), dtype=np.int32), axis=1).ravel()
    starts = np.arange(N + 1, dtype=np.int32) * entries
    rows = sparse.csr_array((rng.standard_normal(N * entries), places, starts), shape=(N, d))
    rows.sum_duplicates()
    score = rows @ rng.standard_normal(d)
    return rows, (score + 3.0 * rng.standard_normal(N) > 0).astype(int)


def tfidf_rows(N, d, entries, *, seed=0):
    """(N, d) CSR like tf-idf: words by Zipf's law, rows of length one; labels as above."""
    rng = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, d + 1)
    words = rng.choice(d, size=N * entries, p=frequency / frequency.sum()).astype(np.int32)
    rows = sparse.csr_array(
        (np.ones(N * entries), words, np.arange(N + 1, dtype=np.int32) * entries), shape=(N, d)
    )
    rows.sum_duplicates()
    documents = np.maximum(np.bincount(rows.indices, minlength=d), 1)
    rows.data *= np.log(N / documents[rows.indices]) + 1.0
    rows.data /= np.sqrt(rows.multiply(rows).sum(axis=1)).repeat(np.diff(rows.indptr))
    score = rows @ rng.standard_normal(d)
    return rows, (score / score.std() + 0.5 * rng.standard_normal(N) > 0).astype(int)


def separated_rows(N, d, *, quasi, seed=0):
    """(N, d) rows of two classes that a linear score separates; with `quasi`, up to ties."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((N, d))
    if quasi:
        rows[:, 0] = rng.integers(0, 2, size=N)
        noise = rows[:, 1:] @ rng.standard_normal(d - 1) + rng.logistic(size=N)
        return rows, np.where(rows[:, 0] == 1, 1, (noise > 0).astype(int))
    slope = rng.standard_normal(d)
    codes = (rows @ slope > 0).astype(int)
    return rows + np.outer(0.1 * codes - 0.05, slope / np.linalg.norm(slope)), codes
