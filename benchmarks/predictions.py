"""Predictions against scikit-learn: many rows at once, one row, one row of a data frame."""

from __future__ import annotations

import numpy as np
from contest import OURS, Case, Contest, Goal
from rows import gaussian_rows
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from threads import either

import discriminant

_PAIRS = {
    "LDA": (lambda: discriminant.LDA(denominator="ml"), LinearDiscriminantAnalysis),
    "QDA": (lambda: discriminant.QDA(denominator="ml"), QuadraticDiscriminantAnalysis),
    "Logistic": (discriminant.Logistic, lambda: LogisticRegression(C=np.inf, tol=1e-8)),
    "SVM": (discriminant.SVM, lambda: LinearSVC(dual=False, tol=1e-8)),
}
_FITTED = 5_000  # rows of the fit


def batch(model, method, N, d, K, *, goal):
    return Case(
        f"{model.lower()}-{method}-{d}-{K}",
        f"{model} {method}",
        f"{N:,} × {d}, {K} classes",
        _contest(model, method, N, d, K),
        (Goal("scikit-learn", at_least=goal),),
    )


def single(model, method, d, K, *, goal, frame=False):
    return Case(
        f"{model.lower()}-{method}-one" + ("-frame" if frame else ""),
        f"{model} {method}, one row" + (" of a pandas frame" if frame else ""),
        f"1 × {d}, {K} classes",
        _contest(model, method, 1, d, K, frame=frame),
        (Goal("scikit-learn", at_least=goal),),
        memory=False,
    )


def _contest(model, method, N, d, K, *, frame=False):
    def prepare(share):
        rows = max(int(N * share), 1)
        X, y = gaussian_rows(max(rows, _FITTED), d, K)
        train = X[:_FITTED]
        X = np.ascontiguousarray(X[:rows])
        if frame:
            import pandas

            names = [f"x{j}" for j in range(d)]
            train, X = (pandas.DataFrame(part, columns=names) for part in (train, X))
        ours, theirs = (getattr(new().fit(train, y[:_FITTED]), method) for new in _PAIRS[model])
        peers = {"scikit-learn": lambda: theirs(X)}
        contenders = {OURS: lambda: ours(X)} | (peers if rows == 1 else either(peers))
        compare = (lambda result: result) if model in ("LDA", "QDA") else (lambda result: [])
        return Contest(contenders, compare, 8 * rows * d)

    return prepare
