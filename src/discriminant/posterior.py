"""Scores to log posteriors. Logs come before exponentials, so the tails stay exact.

log posterior_k = score_k - log sum_l exp(score_l)
"""

from __future__ import annotations

import numpy as np

from discriminant.table.schema import Floats


def log_posterior(scores: Floats) -> Floats:
    """(n, K) normalised logs; a far tail keeps its digits instead of becoming log 0.

    >>> log_posterior(np.array([[0.0, -800.0]]))
    array([[   0., -800.]])
    """
    apart = scores.T - scores.max(axis=1)  # (K, n): every step goes along the rows
    top = apart == 0.0
    others = np.exp(apart)
    others *= ~top
    rest = others.sum(axis=0) + (top.sum(axis=0) - 1)  # of several on top, one is no other
    apart -= np.log1p(rest)
    return np.asarray(apart.T)


def posterior(scores: Floats) -> Floats:
    """(n, K) probabilities, for those who need no logs.

    >>> posterior(np.array([[0.0, 0.0]]))
    array([[0.5, 0.5]])
    """
    shares = scores.T - scores.max(axis=1)  # (K, n), as above
    np.exp(shares, out=shares)
    shares /= shares.sum(axis=0)
    return np.asarray(shares.T)
