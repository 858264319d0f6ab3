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
