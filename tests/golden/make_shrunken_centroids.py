"""Nearest shrunken centroids by the published formulas, one number at a time -> JSON.

    python tests/golden/make_shrunken_centroids.py > tests/golden/shrunken_centroids.json

pamr cannot be installed everywhere; this is a second transcription of the formulas of Tibshirani,
Hastie, Narasimhan and Chu (Statistical Science 18, 2003, sections 2 and 3), with loops over
features and classes, and with every model of a cross-validation fitted to its own training rows. It
imports nothing of this package. tests/parity/test_high_dimension.py compares pamr's own answers
where the data are available.
"""

import json
import math
from importlib.metadata import version

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

SETS = {"iris": (load_iris, 4), "wine": (load_wine, 13), "breast_cancer": (load_breast_cancer, 10)}
THRESHOLDS = [0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0]
FOLDS = 5


def standard_deviations(x, y, classes):
    """Pooled standard deviations of all features."""
    result = []
    for j in range(x.shape[1]):
        total = 0.0
        for k in classes:
            mean = math.fsum(x[y == k, j]) / (y == k).sum()
            total += math.fsum((value - mean) ** 2 for value in x[y == k, j])
        result.append(math.sqrt(total / (len(y) - len(classes))))
    return result


def fit(x, y, threshold, percent):
    """Centroids, scales s_j + s_0, offset s_0, and whether each feature is selected."""
    classes = sorted(set(y.tolist()))
    sd = standard_deviations(x, y, classes)
    s0 = float(np.percentile(sd, percent))
    n, d = x.shape
    centroids = [[0.0] * d for _ in classes]
    selected = [False] * d
    for j in range(d):
        overall = math.fsum(x[:, j]) / n
        for i, k in enumerate(classes):
            n_k = int((y == k).sum())
            m_k = math.sqrt(1 / n_k - 1 / n)
            mean = math.fsum(x[y == k, j]) / n_k
            difference = (mean - overall) / (m_k * (sd[j] + s0))
            size = abs(difference) - threshold
            shrunken = math.copysign(size, difference) if size > 0 else 0.0
            selected[j] = selected[j] or shrunken != 0.0
            centroids[i][j] = overall + m_k * (sd[j] + s0) * shrunken
    return centroids, [s + s0 for s in sd], s0, selected


def posterior(row, centroids, scales, shares):
    """Posterior of one row, by the discriminant scores of section 3."""
    scores = [
        math.fsum(((v - c) / s) ** 2 for v, c, s in zip(row, centroid, scales, strict=True))
        - 2.0 * math.log(share)
        for centroid, share in zip(centroids, shares, strict=True)
    ]
    odds = [math.exp(-0.5 * (score - min(scores))) for score in scores]
    return [o / math.fsum(odds) for o in odds]


def shares_of(y):
    return [float((y == k).sum()) / len(y) for k in sorted(set(y.tolist()))]


def held_out_errors(x, y, threshold, percent):
    """Misclassified rows of a cross-validation in which row i is in fold i mod FOLDS."""
    classes, wrong = sorted(set(y.tolist())), 0
    for fold in range(FOLDS):
        train = np.arange(len(y)) % FOLDS != fold
        centroids, scales, *_ = fit(x[train], y[train], threshold, percent)
        shares = shares_of(y[train])
        for row, label in zip(x[~train], y[~train], strict=True):
            chances = posterior(row, centroids, scales, shares)
            wrong += int(classes[int(np.argmax(chances))] != label)
    return wrong


def answers(x, y, percent):
    result = []
    for threshold in THRESHOLDS:
        centroids, scales, s0, selected = fit(x, y, threshold, percent)
        rows = [posterior(row, centroids, scales, shares_of(y)) for row in x[::20]]
        result.append(
            {
                "threshold": threshold,
                "offset": s0,
                "selected": [j for j, chosen in enumerate(selected) if chosen],
                "centroids": centroids,
                "posterior": rows,
                "held_out_errors": held_out_errors(x, y, threshold, percent),
            }
        )
    return result


def main():
    sets = {}
    for name, (loader, width) in SETS.items():
        x, y = loader(return_X_y=True)
        sets[name] = {
            str(percent): answers(x[:, :width].astype(float), y, percent) for percent in (50, 90)
        }
    versions = {"numpy": version("numpy"), "scikit-learn": version("scikit-learn")}
    print(json.dumps({"versions": versions, "folds": FOLDS, "every": 20, "sets": sets}, indent=1))


if __name__ == "__main__":
    main()
