"""Perceptrons and support vector machines against scikit-learn's.

Perceptrons stop by rules of their own: "same number of passes" gives scikit-learn's as many passes
as ours made; otherwise it stops by its own rule. Support vector machines: liblinear, primal and
dual, at its largest tolerance whose objective is within 1e-8 of the lowest; ours proves 1e-8 by the
duality gap.
"""

from __future__ import annotations

import numpy as np
from contest import OURS, Case, Contest, Goal, announce, announced, timed
from rows import gaussian_rows, scored_rows, sparse_rows
from scipy import sparse
from sklearn.linear_model import Perceptron
from sklearn.svm import LinearSVC

import discriminant

_OBJECTIVE = 1e-8  # relative


def perceptron(N, d, K, *, goal=1.0, same_passes=True):
    make = gaussian_rows if same_passes else scored_rows
    return _perceptron(
        f"-{N}",
        "",
        f"{N:,} × {d:,}, {K:,} classes",
        lambda share: make(int(N * share), d, K),
        goal,
        same_passes,
    )


def sparse_perceptron(N, d, entries, *, goal=1.0, same_passes=True):
    return _perceptron(
        "-sparse",
        ", sparse",
        f"{N:,} × {d:,}, {entries} entries per row",
        lambda share: sparse_rows(int(N * share), d, entries),
        goal,
        same_passes,
    )


def svm(N, d, *, goal=1.0):
    size = f"{N:,} × {d:,}, 2 classes"
    return _svm(f"svm-{N}", "SVM fit", size, lambda share: scored_rows(int(N * share), d, 2), goal)


def sparse_svm(N, d, entries, *, goal=1.0):
    size = f"{N:,} × {d:,}, {entries} entries per row"
    make = lambda share: sparse_rows(int(N * share), d, entries)  # noqa: E731
    return _svm("svm-sparse", "SVM fit, sparse", size, make, goal)


def _perceptron(suffix, kind, size, make, goal, same_passes):
    def prepare(share):
        X, y = make(share)
        options = {}
        if same_passes:
            options = {"max_iter": discriminant.Perceptron().fit(X, y).n_passes_, "tol": None}
        contenders = {
            OURS: lambda: discriminant.Perceptron().fit(X, y),
            "scikit-learn": lambda: Perceptron(n_jobs=-1, **options).fit(X, y),
            "scikit-learn, one job": lambda: Perceptron(**options).fit(X, y),
        }
        return Contest(contenders, lambda _: [], _bytes(X))

    stop = "same number of passes" if same_passes else "scikit-learn's own stop"
    return Case(
        f"perceptron{suffix}" + ("" if same_passes else "-own"),
        f"Perceptron fit{kind}, {stop}",
        size,
        prepare,
        (Goal("scikit-learn", at_least=goal),),
    )


def _svm(name, task, size, make, goal):
    def prepare(share):
        X, y = make(share)
        signs = np.where(y == 1, 1.0, -1.0)

        def objective(model):
            margins = signs * model.decision_function(X)
            return 0.5 * (model.coef_**2).sum() + (np.maximum(1 - margins, 0) ** 2).sum()

        fits = {
            f"scikit-learn, dual={dual}": lambda tol, dual=dual: LinearSVC(
                dual=dual, tol=tol, max_iter=1000, intercept_scaling=1e3
            ).fit(X, y)
            for dual in (False, True)
        }
        ours = lambda: discriminant.SVM().fit(X, y)  # noqa: E731
        seconds, model = announced(OURS, ours)
        lowest = objective(model)
        contenders = {OURS: ours}
        for peer, fit in fits.items():
            announce(peer)
            spent = 0.0
            for tolerance in (1e-2, 1e-4, 1e-6, 1e-8):
                took, fitted = timed(lambda: fit(tolerance))  # noqa: B023
                spent += took
                if objective(fitted) <= lowest * (1 + _OBJECTIVE):
                    contenders[peer] = lambda fit=fit, tolerance=tolerance: fit(tolerance)
                    break
                if spent > 20 * seconds + 5:  # left out: it would take minutes
                    break
        return Contest(contenders, lambda model: model.predict(X[:500]), _bytes(X))

    return Case(name, task, size, prepare, (Goal("scikit-learn", at_least=goal),))


def _bytes(X):
    return X.data.nbytes + X.indices.nbytes if sparse.issparse(X) else X.nbytes
