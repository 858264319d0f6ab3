"""Mixture discriminant analysis against R's mda: the same start, step of EM by step of EM."""

from functools import partial

import numpy as np
import pytest

from discriminant import MDA
from discriminant.engines.dispatch import fold, read_moments
from discriminant.models.gaussian.mixture import MixtureModel, MixtureSums, run_em
from discriminant.posterior import posterior
from discriminant.table.memory import as_table
from tests.parity.golden import answers, rows_of

PEER = answers("mda")
COMPONENTS = 2
CASES = [(name, steps) for name in PEER for steps in PEER[name]["steps"]]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def case(request):
    """Rows, labels, golden values of the set, and number of maximisation steps."""
    name, steps = request.param
    features, codes = rows_of(name)
    return features[:, PEER[name]["columns"]], codes, PEER[name], steps


def fitted_mixture(X, y, first, steps):
    """Return the model and its mixture after maximisation steps from given components."""
    table = as_table(X, y)
    moments = read_moments(table, detail="class")
    model = MixtureModel.of("shared", moments, shrinkage=0.0, target="diagonal")
    K = len(moments.labels)
    member = np.eye(K * COMPONENTS)[y * COMPONENTS + np.array(first)]  # (n, C)
    weight, mean = member.sum(axis=0), np.repeat(moments.mean, COMPONENTS, axis=0)
    sums = member.T @ moments.anchor.offsets(X) - weight[:, None] * mean
    start = MixtureSums(weight.astype(int), weight, sums, np.zeros(K), None)
    mixture = model.maximise(start, mean, COMPONENTS * np.arange(K + 1))
    if steps > 1:
        read = partial(fold, table)
        mixture = run_em(model, mixture, read, tolerance=0.0, max_steps=steps - 1)
    return model, mixture


def component_weights(densities, X, k):
    """Return the probabilities (n, C_k) of the components of class k."""
    scores = densities.scores(X)[:, COMPONENTS * k : COMPONENTS * (k + 1)]
    return np.exp(scores - np.logaddexp.reduce(scores, axis=1)[:, None])


def test_each_step_of_em_is_that_of_mda(case):
    X, y, golden, steps = case
    peer = golden["steps"][steps]
    model, mixture = fitted_mixture(X, y, golden["start"], int(steps))
    rule, densities = model.rule(mixture, np.bincount(y) / len(y))
    tolerance = 1e-9 if steps != "2000" else 1e-6  # a fixed point is reached at a linear rate
    proba = posterior(rule.scores(X))
    np.testing.assert_allclose(proba[golden["rows"]], peer["posterior"], atol=tolerance)
    for k, weights in enumerate(peer["weights"].values()):
        own = component_weights(densities, X[y == k], k)
        np.testing.assert_allclose(own, weights, atol=tolerance)
    deviance = -2.0 * np.log(proba[np.arange(len(y)), y]).sum()
    assert deviance == pytest.approx(peer["deviance"], rel=tolerance)


@pytest.mark.parametrize("name", PEER)
def test_fit_reaches_at_least_the_likelihood_of_mda(name):
    features, y = rows_of(name)
    X = features[:, PEER[name]["columns"]]
    peer = fitted_mixture(X, y, PEER[name]["start"], 2000)[1]
    options = {"starts": 20, "tolerance": 1e-9, "max_steps": 5000}
    model = MDA(components=COMPONENTS, covariance="shared", **options).fit(X, y)
    assert model.log_likelihood_ >= peer.log_likelihood - 1e-3
