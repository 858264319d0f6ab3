"""Many classes from two, by merged moments, against fitting every two-class classifier to rows."""

from __future__ import annotations

import numpy as np
from contest import OURS, Case, Contest, Goal, announced
from rows import gaussian_rows
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.multiclass import OneVsOneClassifier, OutputCodeClassifier
from threads import single_threaded

import discriminant

_SOLVERS = ("svd", "lsqr")
_TRIES = 5  # of ours, before and after each peer, which takes so long that it runs once
_LOOK = 2000


def pairs(N, d, K):
    return Case(
        f"lda-pairs-{d}",
        f"LDA, one-vs-one: {K * (K - 1) // 2} classifiers",
        f"{N:,} × {d}, {K} classes",
        _contest(N, d, K, _pairs),
        (Goal("scikit-learn", at_least=50.0),),
        peers=(),
    )


def codes(N, d, K, columns):
    return Case(
        f"lda-codes-{d}",
        f"LDA, output codes: {columns} classifiers",
        f"{N:,} × {d}, {K} classes",
        _contest(N, d, K, lambda: _codes(columns, K)),
        (Goal("scikit-learn", at_least=100.0),),
        peers=(),
    )


def _contest(N, d, K, members):
    def prepare(share):
        X, y = gaussian_rows(int(N * share), d, K)
        ours, peers = members()
        contenders = {OURS: lambda: ours.fit(X, y)}
        for name, peer in peers.items():
            contenders[name] = single_threaded(lambda peer=peer: peer.fit(X, y))
        return Contest(
            contenders,
            lambda fitted: fitted.predict(X[:_LOOK]),
            X.nbytes,
            lambda: _race(contenders, X),
        )

    return prepare


def _pairs():
    peers = {
        f"scikit-learn, {solver}": OneVsOneClassifier(LinearDiscriminantAnalysis(solver=solver))
        for solver in _SOLVERS
    }
    return discriminant.OneVsOne(discriminant.LDA(denominator="ml")), peers


def _codes(columns, K):
    peers = {
        f"scikit-learn, {solver}": OutputCodeClassifier(
            LinearDiscriminantAnalysis(solver=solver), code_size=columns / K, random_state=0
        )
        for solver in _SOLVERS
    }
    return discriminant.OutputCodes(discriminant.LDA(denominator="ml"), columns=columns), peers


def _race(contenders, X):
    """Best seconds; labels of pairs are to agree (the codes of two libraries are not the same)."""
    best, answers = dict.fromkeys(contenders, np.inf), {}
    for name in contenders:
        for turn in (OURS, name, OURS):
            for _ in range(_TRIES if turn == OURS else 1):
                seconds, fitted = announced(turn, contenders[turn])
                best[turn] = min(best[turn], seconds)
            if isinstance(fitted, OneVsOneClassifier | discriminant.OneVsOne):
                answers[turn] = fitted.predict(X[:_LOOK])
    apart = [float((answers[OURS] != other).sum()) for other in answers.values()]
    return {"best": best, "apart": max(apart) if apart else None}
