"""Features chosen by held-out rows without fitting, against fitting every candidate."""

from __future__ import annotations

import numpy as np
from contest import OURS, Case, Contest, Goal
from rows import gaussian_rows
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.model_selection import PredefinedSplit

import discriminant

_SCORING = {"error": "accuracy", "log_loss": "neg_log_loss"}


def selection(N, d, K, *, taken, criterion):
    return Case(
        f"select-{criterion.replace('_', '-')}-{d}",
        f"LDA, forward selection of {taken} of {d} features by {criterion.replace('_', ' ')}, "
        "5 folds",
        f"{N:,} × {d}, {K} classes",
        _contest(N, d, K, taken, criterion),
        (Goal("scikit-learn", at_least=100.0),),
    )


def _contest(N, d, K, taken, criterion):
    def prepare(share):
        X, y = gaussian_rows(max(int(N * share), 1000), d, K)
        fold = np.random.default_rng(0).permutation(len(X)) % 5
        options = {"criterion": criterion, "n_features": taken}
        peer = SequentialFeatureSelector(  # its processes hold BLAS to a thread each
            LinearDiscriminantAnalysis(),
            n_features_to_select=taken,
            scoring=_SCORING[criterion],
            cv=PredefinedSplit(fold),
            n_jobs=-1,
        )
        ours = discriminant.LDA(denominator="ml")
        contenders = {
            OURS: lambda: discriminant.select_features(ours, X, y, fold, **options),
            "scikit-learn": lambda: peer.fit(X, y),
        }
        return Contest(contenders, lambda result: result.get_support(), X.nbytes)

    return prepare
