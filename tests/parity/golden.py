"""The frozen answers of R, scikit-learn and others, and the sets they are of."""

import json

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from tests.shared.paths import GOLDEN

_SETS = {  # as in tests/golden/export_sets.py: loader and features kept
    "iris": (load_iris, 4),
    "wine": (load_wine, 13),
    "breast_cancer": (load_breast_cancer, 10),
}
NAMES = list(_SETS)


def answers(peer):
    """What a peer said, by name of the set."""
    return frozen(peer)["sets"]


def frozen(name):
    """A whole file of tests/golden."""
    return json.loads((GOLDEN / f"{name}.json").read_text())


def rows_of(name):
    loader, width = _SETS[name]
    features, codes = loader(return_X_y=True)
    return features[:, :width], codes


def assert_says(model, name, golden, prior=None):
    """The same posterior of the rows kept, to 1e-10 and in the tails to 1e-8 of their logs."""
    features, codes = rows_of(name)
    rows, posterior = golden["rows"], np.array(golden["posterior"])
    found = model.predict_log_proba(features[rows], prior=prior)
    np.testing.assert_allclose(np.exp(found), posterior, rtol=0, atol=1e-10)
    told = posterior > 1e-290  # below, the peer has no digits left, or none at all
    np.testing.assert_allclose(found[told], np.log(posterior[told]), rtol=1e-8, atol=1e-10)
    labels = model.predict(features, prior=prior)
    assert labels[rows].tolist() == golden["class"]
    assert int((labels != codes).sum()) == golden["errors"]
