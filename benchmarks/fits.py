"""Fits of LDA and QDA against scikit-learn and one product of the rows, `X.T @ X`."""

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

_COMPARED = 500  # rows whose posteriors are compared
GRAM = "X.T @ X"


def lda_fit(N, d, K, *, goal=None, gram=None, dtype=np.float64, order="C", frame=False):
    return _fit("LDA", N, d, K, goal, gram, dtype, order, frame)


def qda_fit(N, d, K, *, goal=None, gram=None, dtype=np.float64, order="C", frame=False):
    return _fit("QDA", N, d, K, goal, gram, dtype, order, frame)


def wide_fit(N, d, K, *, goal=None, shrinkage=None):
    """More features than rows."""

    def prepare(share):
        X, y = gaussian_rows(N, d, K, mixed=False)
        contenders = {OURS: lambda: discriminant.LDA(shrinkage=shrinkage or 0.0).fit(X, y)}
        if shrinkage is None:
            model = LinearDiscriminantAnalysis(solver="svd")
            contenders |= either({"scikit-learn, svd": lambda: model.fit(X, y)})
        elif d < 5000:  # beyond that its d x d matrix takes gigabytes
            model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")
            contenders |= either({"scikit-learn, lsqr": lambda: model.fit(X, y)})
        # Without shrinkage scikit-learn fits another model (see the method on the page).
        answer = (lambda _: []) if shrinkage is None else lambda model: model.predict(X)
        return Contest(contenders, answer, X.nbytes)

    task = "LDA fit, wide" + ("" if shrinkage is None else f", shrinkage '{shrinkage}'")
    name = f"lda-wide-{d}" + ("" if shrinkage is None else "-shrunk")
    return Case(name, task, size(N, d, K), prepare, (Goal("scikit-learn", at_least=goal),))


def threads_fit(N, d, K, *, goal):
    """Two threads against one."""

    def prepare(share):
        X, y = gaussian_rows(int(N * share), d, K)
        contenders = {
            OURS: lambda: discriminant.moments(X, y, threads=2),
            "one thread": lambda: discriminant.moments(X, y, threads=1),
        }
        return Contest(contenders, lambda moments: moments.means, X.nbytes)

    goals = (Goal("one thread", at_least=goal),)
    return Case(
        "threads", "moments, two threads", size(N, d, K), prepare, goals, peers=("one thread",)
    )


def big_moments(N, d, K, *, order, dtype):
    """Moments of 2 GB in bounded memory."""

    def prepare(share):
        X, y = gaussian_rows(max(int(N * share), 4 * d), d, K, dtype=dtype, order=order)
        contenders = {OURS: lambda: discriminant.moments(X, y, detail="pooled")}
        return Contest(contenders | either({GRAM: lambda: X.T @ X}), lambda _: [], X.nbytes)

    kind = np.dtype(dtype).name
    return Case(
        f"moments-2gb-{order}-{kind}",
        f"moments of 2 GB, {order} order, {kind}",
        size(N, d, K),
        prepare,
        (Goal(GRAM),),
        memory_goal=200.0,
        peers=(GRAM,),
        long=True,
    )


def size(N, d, K):
    return f"{N:,} × {d:,}, {K:,} classes"


def _fit(model, N, d, K, goal, gram, dtype, order, frame):
    def prepare(share):
        X, y = gaussian_rows(max(int(N * share), 4 * d, 10 * K), d, K, order=order)
        rows, ours = (
            X.astype(dtype, order=order),
            {"LDA": discriminant.LDA, "QDA": discriminant.QDA},
        )
        if frame:
            import pandas

            rows = pandas.DataFrame(X, columns=[f"x{j}" for j in range(d)])
        contenders = {OURS: lambda: ours[model](denominator="ml").fit(rows, y)}
        peers = {}
        if gram is not None:
            C = np.ascontiguousarray(X)
            peers[GRAM] = lambda: C.T @ C
        if goal is not None:
            for solver in ("svd", "lsqr", "eigen") if model == "LDA" else ("svd", "eigen"):
                cls = LinearDiscriminantAnalysis
                cls = cls if model == "LDA" else QuadraticDiscriminantAnalysis
                peer = cls(solver=solver)
                peers[f"scikit-learn, {solver}"] = lambda peer=peer: peer.fit(rows, y)
        few = rows.iloc[:_COMPARED] if frame else rows[:_COMPARED]
        return Contest(
            contenders | either(peers), lambda fitted: fitted.predict_proba(few), X.nbytes
        )

    goals = (Goal("scikit-learn", at_least=goal),) if goal is not None else ()
    goals += (Goal(GRAM, at_most=gram),) if gram is not None else ()
    kind = np.dtype(dtype).name
    details = [kind] * (kind != "float64") + ["F order"] * (order == "F") + ["frame"] * frame
    name = "-".join([f"{model.lower()}-fit-{N}-{d}-{K}", *details]).replace(" ", "-")
    return Case(name, ", ".join([f"{model} fit", *details]), size(N, d, K), prepare, goals)
