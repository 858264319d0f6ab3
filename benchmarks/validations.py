"""Cross-validation without refitting, against refitting."""

from __future__ import annotations

import numpy as np
from contest import OURS, Case, Contest, Goal
from refits import grid_losses, search_losses
from rows import gaussian_rows
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from threads import single_threaded

import discriminant

_GRID = np.linspace(0.0, 1.0, 11)


def rda_grid(N, d, K):
    return Case(
        f"rda-grid-{d}",
        "RDA, 11 × 11 grid, 10 folds",
        f"{N:,} × {d}, {K} classes",
        _grid_contest(N, d, K),
        (Goal("GridSearchCV", at_least=100.0), Goal("NumPy loop", at_least=100.0)),
        peers=("GridSearchCV", "NumPy loop"),
    )


def leave_one_out(N, d, K):
    return Case(
        f"lda-loo-{d}",
        "LDA, leave-one-out",
        f"{N:,} × {d}, {K} classes",
        _loo_contest(N, d, K),
        (Goal("scikit-learn", at_least=500.0),),
    )


def _grid_contest(N, d, K):
    def prepare(share):
        X, y = gaussian_rows(max(int(N * share), 400), d, K)
        fold = np.random.default_rng(0).permutation(len(X)) % 10

        def by(search):  # small products are always quicker on one thread
            return single_threaded(
                lambda: search(X, y, poolings=_GRID, shrinkages=_GRID, fold=fold)
            )

        contenders = {
            OURS: lambda: discriminant.RDA(pooling="cv", shrinkage="cv", folds=fold).fit(X, y),
            "GridSearchCV": by(search_losses),
            "NumPy loop": by(grid_losses),
        }
        return Contest(contenders, _losses, X.nbytes)

    return prepare


def _losses(result):
    return result if isinstance(result, np.ndarray) else result.cv_.log_loss[:, :, 0]


def _loo_contest(N, d, K):
    def prepare(share):
        X, y = gaussian_rows(max(int(N * share), 100), d, K)
        ours, peer = discriminant.LDA(denominator="ml"), LinearDiscriminantAnalysis()

        def refit():
            return cross_val_predict(peer, X, y, cv=LeaveOneOut(), method="predict_log_proba")

        contenders = {
            OURS: lambda: discriminant.leave_one_out(ours, X, y).log_posterior,
            "scikit-learn": single_threaded(refit),
        }
        return Contest(contenders, lambda result: result, X.nbytes)

    return prepare
