"""Peers that iterate, each with the largest tolerance of its own that reaches a common gradient.

The criterion is computed here in the same way for every program, from its predictions:

    g = max_j | sum_i z_ij (mu_i - y_i) | / N     z the columns divided by their root mean square,
                                                  with a column of ones; plus the penalty's gradient

A peer that does not reach 1e-7 within 2,000 iterations at any tolerance, or within its time, is
reported as not reached, with its time and gradient.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from contest import OURS, Contest, announce, announced, fastest_variants, race, timed
from threads import single_threaded

GRADIENT = 1e-7
ITERATIONS = 2000
_TOLERANCES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10, 1e-12)
# Times our time, and 5 seconds: a peer whose fits take longer together, up to the one that
# converges, is left out, with the gradient that it reached. So a case with four peers takes at most
# some 80 times our time, and 20 seconds.
_PATIENCE = 20.0
_BLOCK = 1 << 15


@dataclass(frozen=True)
class Peer:
    """A fit by another program."""

    name: str
    fit: Callable[[float], Any]  # from its tolerance
    predict: Callable[[Any], Any]  # (n,) means or (n, K) posteriors, of all rows


def converged_contest(fit, peers, steepness, input_bytes, *, limit=GRADIENT) -> Contest:
    """Return a contest between our fit and the peers that reach the common gradient.

    `steepness(predictions, model)` is the criterion, which must be at most `limit`; `fit` returns
    our model with `predictions`.
    """

    def run():
        warnings.simplefilter("ignore")
        fit()
        seconds, (model, predictions) = announced(OURS, fit)
        result = {"unreached": {}, "notes": {OURS: f"{steepness(predictions, model):.0e}"}}
        contenders, cost = {OURS: lambda: fit(predict=False)}, {OURS: seconds}
        for peer in peers:
            announce(peer.name)
            took, tolerance, reached = _settle(peer, steepness, limit, _PATIENCE * seconds + 5.0)
            if tolerance is None:
                note = f"not reached, {reached:.0e}" if reached is not None else "not reached"
                result["unreached"][peer.name] = {"seconds": took, "note": note}
                continue
            call = lambda peer=peer, tolerance=tolerance: peer.fit(tolerance)  # noqa: E731
            for name, variant in (
                (peer.name, call),
                (f"{peer.name}, one thread", single_threaded(call)),
            ):
                contenders[name], cost[name] = variant, took
                announce(name, took)
                result["notes"][name] = f"{reached:.0e}"
        close = {name: contenders[name] for name in fastest_variants(cost, 4.0)}
        best, _ = race(Contest(close, lambda _: [], 0))
        return result | {"best": best, "apart": None}

    return Contest({OURS: lambda: fit(predict=False)}, lambda _: [], input_bytes, run=run)


def _settle(peer, steepness, limit, patience):
    """Return the seconds, tolerance and gradient of the cheapest fit that converges."""
    reached, took, spent = None, 0.0, 0.0
    for tolerance in _TOLERANCES:
        took, model = timed(single_threaded(lambda: peer.fit(tolerance)))  # noqa: B023
        spent += took
        reached = steepness(peer.predict(model), model)
        if reached <= limit:
            return took, tolerance, reached
        if spent > patience or np.max(getattr(model, "n_iter_", 0)) >= ITERATIONS:
            break
    return took, None, reached


def scaled_gradient(X, residuals, ridge_gradient=None):
    """Return the largest entry of the gradient of the mean loss, columns scaled to unit size.

    `residuals` (n, m) are mean minus response; `ridge_gradient` (d, m) is added, if any.
    """
    N = X.shape[0]
    if hasattr(X, "indptr"):
        size = np.sqrt(np.asarray(X.multiply(X).sum(axis=0)).ravel() / N)
        gradient = X.T @ residuals / N
    else:
        blocks = [slice(lo, lo + _BLOCK) for lo in range(0, N, _BLOCK)]
        mean = sum(X[rows].sum(axis=0) for rows in blocks) / N
        size = np.sqrt(sum(((X[rows] - mean) ** 2).sum(axis=0) for rows in blocks) / N)
        gradient = sum((X[rows] - mean).T @ residuals[rows] for rows in blocks) / N
    if ridge_gradient is not None:
        gradient = gradient + ridge_gradient
    used = size > 0
    largest = np.abs(gradient[used] / size[used][:, None]).max()
    if ridge_gradient is None:
        largest = max(largest, np.abs(residuals.sum(axis=0)).max() / N)
    return float(largest)
