"""Perceptron and support vectors against scikit-learn's.

Perceptrons stop by rules of their own, so scikit-learn's makes as many passes as ours has made.
Support vectors: liblinear in the way it chooses and in the others, with its tolerance of 1e-4,
which on these rows comes to within about 1e-9 of the least objective; ours to within 1e-8, proved
by the duality gap.
"""

from __future__ import annotations

import numpy as np
from contest import OURS, Case, Contest, Goal
from rows import gaussian_rows
from scipy import sparse
from sklearn.linear_model import Perceptron
from sklearn.svm import LinearSVC

import discriminant

_AS_FAST = (Goal("scikit-learn", at_least=1.0),)


def perceptron(N, d, K):
    return Case(
        f"perceptron-{d}",
        "Perceptron fit",
        f"{N:,} × {d:,}, {K:,} classes",
        _perceptrons(lambda share: gaussian_rows(int(N * share), d, K)),
        _AS_FAST,
    )


def sparse_perceptron(N, d, entries):
    return Case(
        "perceptron-sparse",
        "Perceptron fit, sparse",
        f"{N:,} × {d:,}, {entries} entries per row",
        _perceptrons(lambda share: sparse_rows(int(N * share), d, entries)),
        _AS_FAST,
        memory_goal=200.0,
    )


def svm(N, d):
    return Case(
        f"svm-{d}",
        "SVM fit",
        f"{N:,} × {d:,}, 2 classes",
        _svms(lambda share: gaussian_rows(int(N * share), d, 2), duals=(False,)),
        _AS_FAST,
    )


def sparse_svm(N, d, entries):
    return Case(
        "svm-sparse",
        "SVM fit, sparse",
        f"{N:,} × {d:,}, {entries} entries per row",
        _svms(lambda share: sparse_rows(int(N * share), d, entries), duals=(True, False)),
        _AS_FAST,
        memory_goal=200.0,
    )


def sparse_rows(N, d, entries, *, seed=0):
    """(N, d) CSR of normal entries at random places, and labels by a linear score with noise."""
    rng = np.random.default_rng(seed)
    places = np.sort(rng.integers(d, size=(N, entries), dtype=np.int32), axis=1).ravel()
    starts = np.arange(N + 1, dtype=np.int32) * entries
    rows = sparse.csr_array((rng.standard_normal(N * entries), places, starts), shape=(N, d))
    rows.sum_duplicates()
    score = rows @ rng.standard_normal(d)
    return rows, (score + 3.0 * rng.standard_normal(N) > 0).astype(int)


def _perceptrons(make):
    def prepare(share):
        X, y = make(share)
        passes = discriminant.Perceptron().fit(X, y).n_passes_
        ways = {
            OURS: lambda: discriminant.Perceptron().fit(X, y),
            "scikit-learn": lambda: Perceptron(max_iter=passes, tol=None, n_jobs=-1).fit(X, y),
            "scikit-learn, one job": lambda: Perceptron(max_iter=passes, tol=None).fit(X, y),
        }
        return Contest(ways, lambda result: [], _bytes(X))

    return prepare


def _svms(make, *, duals):
    def prepare(share):
        X, y = make(share)
        ways = {OURS: lambda: discriminant.SVM().fit(X, y)}
        for dual in duals:
            model = LinearSVC(dual=dual)
            ways[f"scikit-learn, dual={dual}"] = lambda model=model: model.fit(X, y)
        return Contest(ways, lambda model: model.predict(X[:500]), _bytes(X))

    return prepare


def _bytes(X):
    return X.data.nbytes + X.indices.nbytes if sparse.issparse(X) else X.nbytes
