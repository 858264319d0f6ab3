"""Rows to race on: Gaussian classes of well-conditioned covariances."""

from __future__ import annotations

import numpy as np

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
