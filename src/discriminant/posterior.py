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
    apart = scores - scores.max(axis=1, keepdims=True)
    others = np.exp(apart)
    others[np.arange(len(apart)), apart.argmax(axis=1)] = 0.0
    return np.asarray(apart - np.log1p(others.sum(axis=1, keepdims=True)))


def posterior(scores: Floats) -> Floats:
    """(n, K) probabilities, for those who need no logs.

    >>> posterior(np.array([[0.0, 0.0]]))
    array([[0.5, 0.5]])
    """
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return np.asarray(shares)
