"""Rare classes: synthetic rows, and ensembles of under-samples, against imbalanced-learn."""

from __future__ import annotations

import numpy as np
from contest import OURS, Case, Contest, Goal
from imblearn.ensemble import EasyEnsembleClassifier
from imblearn.over_sampling import SMOTE
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from threads import either

import discriminant

_RARE = 0.05


def smote(N, d):
    return Case(
        f"smote-{d}",
        "SMOTE, 5 neighbours, equal class sizes",
        f"{N:,} × {d}, 5% rare",
        _smote_contest(N, d),
        (Goal("imbalanced-learn", at_most=1.0),),
        peers=("imbalanced-learn",),
    )


def easy_ensemble(N, d):
    return Case(
        f"easy-ensemble-{d}",
        "EasyEnsemble with 10 LDA models",
        f"{N:,} × {d}, 5% rare",
        _ensemble_contest(N, d),
        (Goal("imbalanced-learn", at_least=5.0), Goal("refits", at_least=1.0)),
        peers=("imbalanced-learn", "refits"),
    )


def _skewed(N, d):
    rng = np.random.default_rng(0)
    codes = (rng.random(N) < _RARE).astype(np.int64)
    return rng.standard_normal((N, d)) + 0.3 * codes[:, None], codes


def _smote_contest(N, d):
    def prepare(share):
        X, y = _skewed(int(N * share), d)
        ours = discriminant.Resampled(discriminant.LDA(), "smote")
        contenders = {
            OURS: lambda: ours.resample(X, y)[0],
            **either({"imbalanced-learn": lambda: SMOTE(random_state=0).fit_resample(X, y)[0]}),
        }
        return Contest(contenders, lambda rows: rows, X.nbytes)

    return prepare


def _ensemble_contest(N, d):
    def prepare(share):
        X, y = _skewed(int(N * share), d)
        model = discriminant.EasyEnsemble(discriminant.LDA(denominator="ml"))
        drawn = model.fit(X, y).subset_rows_
        peer = LinearDiscriminantAnalysis()

        def refits():
            return [LinearDiscriminantAnalysis().fit(X[rows], y[rows]) for rows in drawn]

        contenders = {
            OURS: lambda: discriminant.EasyEnsemble(discriminant.LDA(denominator="ml")).fit(X, y),
            **either(
                {
                    "imbalanced-learn": lambda: EasyEnsembleClassifier(10, peer).fit(X, y),
                    "refits": refits,
                }
            ),
        }
        return Contest(contenders, lambda models: [], X.nbytes)  # draws differ: the tests compare

    return prepare
