"""Prediction sets by MAPIE 1.6: python make_prediction_sets.py > prediction_sets.json

`scores`: a classifier that returns given probabilities; conformity scores and sets of split
conformal prediction, of LAC and of randomised APS, with the uniform numbers that APS used.
`iris`: cross-conformal and leave-one-out sets of scikit-learn's LDA (covariance over N) in 100 rows
of iris, by LAC. With 100 rows MAPIE's threshold of these sets is that of Romano et al. (2020); for
other numbers of rows it may differ by one row.
"""

import json
import sys
from importlib.metadata import version

import numpy as np
from mapie.classification import CrossConformalClassifier, SplitConformalClassifier
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import LeaveOneOut, PredefinedSplit

LEVELS = [0.8, 0.9, 0.95]
SEED = 7


class Given(ClassifierMixin, BaseEstimator):
    """The rows are the probabilities."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.n_features_in_ = X.shape[1]
        return self

    def predict_proba(self, X):
        return np.asarray(X)

    def predict(self, X):
        return self.classes_[np.asarray(X).argmax(axis=1)]


def probabilities(rng, rows, classes=4):
    """Probabilities and labels, of which the classifier is somewhat too sure."""
    p = rng.dirichlet(np.full(classes, 0.5), rows)
    tempered = p**0.7 / (p**0.7).sum(axis=1, keepdims=True)
    return p, np.array([rng.choice(classes, p=row) for row in tempered])


def scores():
    rng = np.random.default_rng(SEED)
    p, y = probabilities(rng, 117)
    new, _ = probabilities(rng, 60)
    answer = {"p": p.tolist(), "y": y.tolist(), "new": new.tolist(), "levels": LEVELS}
    for score in ("lac", "aps"):
        model = SplitConformalClassifier(
            Given().fit(p, y), LEVELS, score, prefit=True, random_state=SEED
        )
        model.conformalize(p, y)
        option = {"include_last_label": "randomized"} if score == "aps" else None
        _, sets = model.predict_set(new, option)
        answer[score] = {
            "scores": np.ravel(model.conformity_scores).tolist(),
            "sets": sets.transpose(2, 0, 1).astype(int).tolist(),
        }
    answer["uniform"] = np.random.RandomState(SEED).uniform(size=len(p)).tolist()
    answer["uniform_new"] = np.random.RandomState(SEED).uniform(size=len(new)).tolist()
    return answer


def iris():
    X, y = load_iris(return_X_y=True)
    X = X[:, :2]  # two features, so that classes overlap
    order = np.random.default_rng(SEED).permutation(len(y))
    train, new = order[:100], order[100:]
    fold = np.arange(100) % 5
    answer = {
        "train": train.tolist(),
        "new": new.tolist(),
        "fold": fold.tolist(),
        "levels": LEVELS,
    }
    for name, cv in (("cross", PredefinedSplit(fold)), ("jackknife", LeaveOneOut())):
        model = CrossConformalClassifier(LinearDiscriminantAnalysis(), LEVELS, "lac", cv=cv)
        model.fit_conformalize(X[train], y[train])
        _, sets = model.predict_set(X[new], agg_scores="crossval")
        answer[name] = sets.transpose(2, 0, 1).astype(int).tolist()
    return answer


json.dump(
    {
        "made_by": f"MAPIE {version('mapie')}, scikit-learn {version('scikit-learn')}",
        "scores": scores(),
        "iris": iris(),
    },
    sys.stdout,
)
print()
