"""Predictions against scikit-learn, of many rows at once and of one."""

from __future__ import annotations

from contest import OURS, Case, Contest, Goal
from rows import gaussian_rows
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from threads import either

import discriminant

_PAIRS = {
    "LDA": (discriminant.LDA, LinearDiscriminantAnalysis),
    "QDA": (discriminant.QDA, QuadraticDiscriminantAnalysis),
}
_FITTED = 20_000  # rows to fit on, more than enough


def batch(model, verb, N, d, K):
    return Case(
        f"{model.lower()}-{verb}-{d}",
        f"{model} {verb}",
        f"{N:,} × {d}, {K} classes",
        _contest(model, verb, N, d, K),
        (Goal("scikit-learn", at_least=1.0),),
    )


def single(model, verb, d, K):
    return Case(
        f"{model.lower()}-{verb}-one-{d}",
        f"{model} {verb}, one row",
        f"1 × {d}, {K} classes",
        _contest(model, verb, 1, d, K),
        (Goal("scikit-learn", at_least=5.0),),
        calls=2000,
        memory=False,
    )


def _contest(model, verb, N, d, K):
    def prepare(share):
        rows = max(int(N * share), 1)
        X, y = gaussian_rows(max(rows, _FITTED), d, K)
        ours, theirs = _PAIRS[model]
        mine = getattr(ours(denominator="ml").fit(X[:_FITTED], y[:_FITTED]), verb)
        peer = getattr(theirs().fit(X[:_FITTED], y[:_FITTED]), verb)
        X = X[:rows]
        peers = {"scikit-learn": lambda: peer(X)}
        ways = {OURS: lambda: mine(X)} | (peers if rows == 1 else either(peers))
        return Contest(ways, lambda result: result, X.nbytes)

    return prepare
