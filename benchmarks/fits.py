"""Fits against scikit-learn, and against the least that any of them must do: one `X.T @ X`."""

from __future__ import annotations

import numpy as np
from contest import OURS, Case, Contest, Goal
from rows import gaussian_rows
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from threads import either

import discriminant

_LOOK = 500  # rows on which posteriors are compared


def lda_fit(N, d, K, *, goal):
    bare = 2.0 if d >= 100 else 3.0
    goals = (Goal("scikit-learn", at_least=goal), Goal("X.T @ X", at_most=bare))
    return Case(f"lda-fit-{d}", "LDA fit", _size(N, d, K), _lda_contest(N, d, K), goals)


def qda_fit(N, d, K, *, goal):
    goals = (Goal("scikit-learn", at_least=goal), Goal("X.T @ X"))
    return Case(f"qda-fit-{d}", "QDA fit", _size(N, d, K), _qda_contest(N, d, K), goals)


def wide_fit(N, d, K):
    return Case(
        f"wide-fit-{d}",
        "LDA fit, shrinkage 'auto', wide",
        _size(N, d, K),
        _wide_contest(N, d, K),
        (Goal("scikit-learn"),),
    )


def big_moments(N, d, K, *, order, dtype):
    kind = np.dtype(dtype).name
    return Case(
        f"moments-2gb-{order}-{kind}",
        f"moments of 2 GB, {order} order, {kind}",
        _size(N, d, K),
        _moments_contest(N, d, K, order, dtype),
        (Goal("X.T @ X"),),
        memory_goal=200.0,
        peers=("X.T @ X",),
    )


def _size(N, d, K):
    return f"{N:,} × {d:,}, {K:,} classes"


def _lda_contest(N, d, K):
    def prepare(share):
        X, y = gaussian_rows(_rows(N, share, d, K), d, K)
        peers = {"X.T @ X": lambda: X.T @ X}
        for solver in ("svd", "lsqr", "eigen"):
            model = LinearDiscriminantAnalysis(solver=solver)
            peers[f"scikit-learn, {solver}"] = lambda model=model: model.fit(X, y)
        ways = {OURS: lambda: discriminant.LDA(denominator="ml").fit(X, y)} | either(peers)
        return Contest(ways, lambda model: model.predict_proba(X[:_LOOK]), X.nbytes)

    return prepare


def _qda_contest(N, d, K):
    def prepare(share):
        X, y = gaussian_rows(_rows(N, share, d, K), d, K)
        peers = {"X.T @ X": lambda: X.T @ X}
        for solver in ("svd", "eigen"):
            model = QuadraticDiscriminantAnalysis(solver=solver)
            peers[f"scikit-learn, {solver}"] = lambda model=model: model.fit(X, y)
        ways = {OURS: lambda: discriminant.QDA(denominator="ml").fit(X, y)} | either(peers)
        return Contest(ways, lambda model: model.predict_proba(X[:_LOOK]), X.nbytes)

    return prepare


def _wide_contest(N, d, K):
    def prepare(share):
        X, y = gaussian_rows(N, d, K, mixed=False)
        ways = {OURS: lambda: discriminant.LDA(shrinkage="auto").fit(X, y)}
        if d < 5000:  # beyond, its d x d matrix takes gigabytes
            model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
            ways |= either({"scikit-learn, lsqr": lambda: model.fit(X, y)})
        # Both shrink by Ledoit and Wolf, but not class by class alike: labels are compared.
        return Contest(ways, lambda model: model.predict(X), X.nbytes)

    return prepare


def _moments_contest(N, d, K, order, dtype):
    def prepare(share):
        X, y = gaussian_rows(_rows(N, share, d, K), d, K, dtype=dtype, order=order)
        bare = either({"X.T @ X": lambda: X.T @ X})
        ways = {OURS: lambda: discriminant.moments(X, y, detail="pooled")} | bare
        return Contest(ways, lambda result: [], X.nbytes)

    return prepare


def _rows(N, share, d, K):
    return max(int(N * share), 4 * d, 10 * K)
