"""Logistic regression against scikit-learn and glum, all to the same gradient.

The measure is the largest entry of the gradient of the mean loss in columns of standard deviation
one, worked out here from everybody's probabilities, ours too:

    g = max | mean of z (p_k - [y = k]) |        z the standardised features and a 1

We go to 1e-8. A peer is given the largest tolerance of its own that brings it there; one that stops
by itself within ten times that counts as there, to its advantage, and what it reached is
told. A peer may take 1000 iterations, and twenty times our time on one core and five seconds more.
Two cores can make that half as long, so one that takes four times our time and more is run once on
one core and once on all, one that takes twenty times on one only; all others in turn with us.

Passes are readings of all rows: those of the descent, one for the moments, and any that a proof of
overlap or standard errors take. What a peer calls an iteration may be several passes.
"""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from time import perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np
from contest import OURS, Case, Contest, Goal
from margins import sparse_rows
from rows import scored_rows
from sklearn.linear_model import LogisticRegression
from threads import alone

import discriminant
from discriminant.estimators.linear import logistic

GRADIENT = 1e-8
_NEAR = 10.0  # times GRADIENT: where a peer counts as there
_TOLERANCES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10, 1e-12)
_ITERATIONS = 1000
_TIMES, _SECONDS = 20.0, 5.0  # of our time, and beyond it: a peer's time on one core
_CLOSE = 4.0  # times our time: who is quicker is timed again
_ROUNDS = 3
_LOOK = 500  # rows on which posteriors are compared
_BLOCK = 1 << 15
_ALONE = ", one thread"


@dataclass(frozen=True)
class Peer:
    """Somebody else's fit."""

    name: str
    fit: Callable[[float, int], Any]  # tolerance, most iterations
    positive: Callable[[Any, Any], Any] | None = None  # chance of the second class, where not usual
    few: bool = False  # whether its iterations are few and long

    def posterior(self, model, X):
        if self.positive is None:
            return model.predict_proba(X)
        chance = self.positive(model, X)
        return np.column_stack([1.0 - chance, chance])


# --- cases ----------------------------------------------------------------------------------------


def logistic_fit(N, d, K, *, scaled=False):
    names = ["lbfgs", "newton-cholesky", "newton-cg", "saga"]
    peers = [f"scikit-learn {name}" for name in names] + (["glum"] if K == 2 else [])
    goal = {"at_least": 10.0, "or_unreached": True} if scaled else {"at_least": 2.0}
    return Case(
        f"logistic-{d}" + ("-scaled" if scaled else ""),
        "Logistic fit" + (", columns of scale 1 … 1e4" if scaled else ""),
        f"{N:,} × {d:,}, {K:,} classes",
        _dense_contest(N, d, K, scaled),
        tuple(Goal(peer, **goal) for peer in peers),
        memory_goal=None if scaled else 200.0,
        memory=not scaled,
        peers=(),
        pass_goal=40,
    )


def sparse_logistic(N, d, entries):
    return Case(
        "logistic-sparse",
        "Logistic fit, ridge 1/N, sparse",
        f"{N:,} × {d:,}, {entries} entries per row",
        _sparse_contest(N, d, entries),
        (Goal("liblinear", at_least=1.0), Goal("liblinear dual", at_least=1.0)),
        memory_goal=200.0,
        peers=(),
    )


def big_logistic(N, d):
    def prepare(share):
        X, y = scored_rows(max(int(N * share), 4 * d), d, 2)
        ways = {OURS: lambda: discriminant.Logistic().fit(X, y)}
        return Contest(ways, lambda result: [], X.nbytes)

    size = f"{N:,} × {d:,}, 2 classes"
    return Case("logistic-2gb", "Logistic fit, 2 GB", size, prepare, memory_goal=200.0, peers=())


def _dense_contest(N, d, K, scaled):
    def prepare(share):
        X, y = scored_rows(max(int(N * share), 20 * d), d, K, scaled=scaled)
        peers = [_scikit(solver, X, y) for solver in ("lbfgs", "newton-cg", "saga")]
        peers.append(_scikit("newton-cholesky", X, y, few=True))
        if K == 2 and find_spec("glum"):
            peers.append(_glum(X, y))

        def fit():
            return discriminant.Logistic().fit(X, y)

        def steepness(peer, model):
            return _steepness(X, y, lambda rows: peer.posterior(model, rows))

        return Contest(
            {OURS: fit}, _nothing, X.nbytes, run=lambda: _race(fit, peers, steepness, X[:_LOOK])
        )

    return prepare


def _sparse_contest(N, d, entries):
    def prepare(share):
        X, y = sparse_rows(int(N * share), int(d * share), entries)
        peers = [
            Peer(name, lambda tol, most, dual=dual: _liblinear(tol, most, dual).fit(X, y))
            for name, dual in (("liblinear", False), ("liblinear dual", True))
        ]

        def fit():
            wish = {"ridge": 1.0 / X.shape[0], "standardize": False, "intercept": False}
            return discriminant.Logistic(**wish).fit(X, y)

        def steepness(peer, model):
            return _sparse_steepness(X, y, peer.posterior(model, X)[:, 1], model.coef_.ravel())

        return Contest(
            {OURS: fit}, _nothing, _bytes(X), run=lambda: _race(fit, peers, steepness, X[:_LOOK])
        )

    return prepare


# --- peers ----------------------------------------------------------------------------------------


def _scikit(solver, X, y, *, few=False):
    def fit(tolerance, most):
        return LogisticRegression(solver=solver, C=np.inf, tol=tolerance, max_iter=most).fit(X, y)

    return Peer(f"scikit-learn {solver}", fit, few=few)


def _glum(X, y):
    from glum import GeneralizedLinearRegressor

    def fit(tolerance, most):
        model = GeneralizedLinearRegressor(
            family="binomial", alpha=0, gradient_tol=tolerance, max_iter=most
        )
        return model.fit(X, y)

    return Peer("glum", fit, lambda model, rows: model.predict(rows), few=True)


def _liblinear(tolerance, most, dual):
    """C = 1 is a ridge of 1/N; its intercept would be penalised, so there is none."""
    return LogisticRegression(
        solver="liblinear", C=1.0, dual=dual, tol=tolerance, max_iter=most, fit_intercept=False
    )


# --- the gradient ---------------------------------------------------------------------------------


def _steepness(X, y, posterior):
    """Largest gradient of the mean loss by coefficients of standardised columns, block by block."""
    mean, spread = _columns(X)
    found = 0.0
    for lo in range(0, len(X), _BLOCK):
        rows, codes = X[lo : lo + _BLOCK], y[lo : lo + _BLOCK]
        left = posterior(rows)
        left[np.arange(len(codes)), codes] -= 1.0
        left = left[:, 1:] if left.shape[1] == 2 else left
        z = np.column_stack([(rows - mean) / spread, np.ones(len(rows))])
        found = found + z.T @ left
    return float(np.abs(found).max() / len(X))


def _columns(X):
    """Mean and standard deviation of each, without a copy of the rows."""
    parts = [X[lo : lo + _BLOCK] for lo in range(0, len(X), _BLOCK)]
    mean = sum(part.sum(axis=0) for part in parts) / len(X)
    square = sum(((part - mean) ** 2).sum(axis=0) for part in parts)
    return mean, np.sqrt(square / len(X))


def _sparse_steepness(X, y, chance, coef):
    """The same of a mean loss with a ridge of 1/N, columns counted from zero."""
    N = X.shape[0]
    size = np.sqrt(np.asarray(X.multiply(X).sum(axis=0)).ravel() / N)
    gradient = (X.T @ (chance - y) + coef) / N
    return float(np.abs(gradient[size > 0] / size[size > 0]).max())


# --- the race -------------------------------------------------------------------------------------


def _race(fit, peers, steepness, look):
    """Seconds of each; what each reached; who did not; how far posteriors are apart."""
    mine, model = min((_timed(fit) for _ in range(2)), key=lambda pair: pair[0])
    us, passes = Peer(OURS, lambda tol, most: model), _passes(fit)
    found = {"best": {OURS: mine}, "unreached": {}, "notes": {}, "passes": passes}
    found["notes"][OURS] = f"{passes} passes, {steepness(us, model):.0e}"
    again, answers = {OURS: fit}, {OURS: us.posterior(model, look)}
    for peer in peers:
        seconds, model, tolerance = _settled(peer, steepness, _TIMES * mine + _SECONDS)
        if model is None or (reached := steepness(peer, model)) > _NEAR * GRADIENT:
            end = "" if model is None else f" {reached:.0e} after {_iterations(model)}"
            found["unreached"][peer.name] = {"seconds": seconds, "note": f"not reached{end}"}
            continue
        note = f"{_iterations(model)}, {reached:.0e}"
        ways = _variants(peer, tolerance)
        found["notes"] |= dict.fromkeys(ways, note)
        found["best"][f"{peer.name}{_ALONE}"] = seconds
        answers[peer.name] = peer.posterior(model, look)
        if seconds <= _CLOSE * mine:
            again |= ways
        elif seconds <= _TIMES * mine:
            found["best"][peer.name] = _timed(ways[peer.name])[0]
    _rounds(again, found["best"])
    apart = [float(np.abs(answers[OURS] - other).max()) for other in answers.values()]
    return found | {"apart": max(apart[1:], default=None)}


def _rounds(again, best):
    """All in turn, round after round; the best of each."""
    for _ in range(_ROUNDS):
        for name, run in again.items():
            best[name] = min(best.get(name, np.inf), _timed(run)[0])


def _variants(peer, tolerance):
    """On all cores and on one."""

    def run():
        return peer.fit(tolerance, _ITERATIONS)

    return {peer.name: run, f"{peer.name}{_ALONE}": alone(run)}


def _settled(peer, steepness, seconds):
    """Time, model and tolerance of the cheapest fit that comes to the gradient, or of the last.

    On one core, for BLAS threads that share theirs may stall. The model is None if not even the
    first was done in time.
    """
    end = perf_counter() + seconds
    took, model, (tolerance, *smaller) = seconds + _SECONDS, None, _TOLERANCES
    with suppress(_TimeIsUp), _alarm(seconds + _SECONDS):
        most = _ITERATIONS if peer.few else _most(peer, seconds)
        while True:
            took, model = _timed(alone(lambda: peer.fit(tolerance, most)))  # noqa: B023
            left = end - perf_counter()
            if left < 0 or steepness(peer, model) <= GRADIENT:
                break
            if np.max(model.n_iter_) < most and smaller:
                tolerance, *smaller = smaller
            elif np.max(model.n_iter_) >= most < _ITERATIONS and left > 2.0 * took:
                # the first few were slow
                most = min(int(most * left / took), _ITERATIONS)
            else:
                break
    return took, model, tolerance


def _most(peer, seconds):
    """Iterations that fit into a time, from the time of the first few."""
    few = 3
    took, _ = _timed(alone(lambda: peer.fit(1e-12, few)))
    return int(np.clip(seconds * few / took, few, _ITERATIONS))


class _TimeIsUp(BaseException):
    """Nobody is to catch it on its way."""


@contextmanager
def _alarm(seconds):
    def ring(*_):
        raise _TimeIsUp

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _passes(fit):
    """Readings of all rows by one fit of ours: folds, and the one for the moments."""
    with patch.object(logistic, "fold", side_effect=logistic.fold) as fold:
        fit()
    return fold.call_count + 1


def _timed(run):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = perf_counter()
        result = run()
        return perf_counter() - start, result


def _iterations(model):
    return f"{int(np.max(model.n_iter_))} iterations"


def _nothing(result):
    return []


def _bytes(X):
    return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
