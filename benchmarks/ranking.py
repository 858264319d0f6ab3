"""ROC and AUC of many scores, against scikit-learn."""

from __future__ import annotations

import numpy as np
from contest import OURS, Case, Contest, Goal
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

import discriminant


def auc(N):
    return _case("auc", "AUC", N, _auc_ways)


def auc_interval(N):
    return _case("auc-interval", "AUC with interval, compared with AUC alone", N, _interval_ways)


def roc(N):
    return _case("roc", "ROC curve, all points", N, _roc_ways)


def average_precision(N):
    return _case("average-precision", "average precision", N, _precision_ways)


def _case(name, job, N, contenders):
    def prepare(share):
        y, scores = _scored(int(N * share))
        return Contest(*contenders(y, scores), scores.nbytes)

    goal = (Goal("scikit-learn", at_least=1.0),)
    return Case(name, job, f"{N:,} scores", prepare, goal)


def _scored(N):
    """Labels, three tenths of them positive, and scores that tell them apart with AUC 0.76."""
    rng = np.random.default_rng(0)
    y = (rng.random(N) < 0.3).astype(np.int64)
    return y, rng.standard_normal(N) + y


def _auc_ways(y, scores):
    ours = {OURS: lambda: discriminant.auc(y, scores, None).value}
    return ours | {"scikit-learn": lambda: roc_auc_score(y, scores)}, float


def _interval_ways(y, scores):
    ours = {OURS: lambda: discriminant.auc(y, scores)}
    return ours | {"scikit-learn": lambda: roc_auc_score(y, scores)}, float


def _roc_ways(y, scores):
    def ours():
        found = discriminant.roc(y, scores)
        return found.fpr, found.tpr

    contenders = {
        OURS: ours,
        "scikit-learn": lambda: roc_curve(y, scores, drop_intermediate=False)[:2],
    }
    return contenders, lambda rates: [rate[::1000] for rate in rates]


def _precision_ways(y, scores):
    ours = {OURS: lambda: discriminant.average_precision(y, scores)}
    return ours | {"scikit-learn": lambda: average_precision_score(y, scores)}, float
