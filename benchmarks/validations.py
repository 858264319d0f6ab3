"""Cross-validation without refitting, against refitting."""

from __future__ import annotations

import numpy as np
from contest import OURS, Case, Contest, Goal
from refits import grid_scores
from rows import gaussian_rows
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import LeaveOneOut, cross_val_predict

import discriminant

_GRID = np.linspace(0.0, 1.0, 11)


def rda_grid(N, d, K):
    return Case(
        f"rda-grid-{d}",
        "RDA, 10 folds of an 11 × 11 grid",
        f"{N:,} × {d}, {K} classes",
        _grid_contest(N, d, K),
        (Goal("refitting", at_least=100.0),),
        peers=("refitting",),
    )


def leave_one_out(N, d, K):
    return Case(
        f"lda-loo-{d}",
        "LDA, leave one out",
        f"{N:,} × {d}, {K} classes",
        _loo_contest(N, d, K),
        (Goal("scikit-learn", at_least=500.0),),
    )


def _grid_contest(N, d, K):
    def prepare(share):
        X, y = gaussian_rows(max(int(N * share), 400), d, K)
        ways = {
            OURS: lambda: discriminant.RDA(pooling="cv", shrinkage="cv").fit(X, y),
            "refitting": lambda: grid_scores(X, y, poolings=_GRID, shrinkages=_GRID, folds=10),
        }
        return Contest(ways, lambda result: [], X.nbytes)

    return prepare


def _loo_contest(N, d, K):
    def prepare(share):
        X, y = gaussian_rows(max(int(N * share), 100), d, K)
        model = discriminant.LDA(denominator="ml")
        peer = LinearDiscriminantAnalysis()
        ways = {
            OURS: lambda: discriminant.leave_one_out(model, X, y),
            "scikit-learn": lambda: cross_val_predict(
                peer, X, y, cv=LeaveOneOut(), method="predict_log_proba"
            ),
        }
        return Contest(ways, lambda result: result, X.nbytes)

    return prepare
