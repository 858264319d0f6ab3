"""Mixture discriminant analysis against R's mclust (MclustDA), at its parameters and by EM."""

import numpy as np
import pytest

from discriminant import MDA
from tests.parity.golden import answers, rows_of

PEER = answers("mixtures")
CASES = [(name, structure) for name in PEER for structure in ("class", "component")]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}-{case[1]}")
def case(request):
    """Rows, labels, structure of the covariances, and the answers of mclust."""
    name, structure = request.param
    features, codes = rows_of(name)
    return features[:, PEER[name]["columns"]], codes, structure, PEER[name]


def model_of(peer, structure, prior):
    """Return the model with the parameters of mclust."""
    classes = list(peer["classes"].values())
    covariances = [list(each["covariances"].values()) for each in classes]
    return MDA.from_parameters(
        [each["means"] for each in classes],
        covariances if structure == "component" else [each[0] for each in covariances],
        [each["shares"] for each in classes],
        prior,
    )


def test_posterior_and_likelihood_at_the_parameters_of_mclust(case):
    X, y, structure, golden = case
    peer, prior = golden[structure], np.bincount(y) / len(y)
    model = model_of(peer, structure, prior)
    np.testing.assert_allclose(
        model.predict_proba(X[golden["rows"]]), peer["posterior"], rtol=1e-9, atol=1e-12
    )
    # the log likelihood of MclustDA is that of the rows without their labels
    assert model.log_density(X).sum() == pytest.approx(peer["log_likelihood"], rel=1e-10)


def test_em_reaches_at_least_the_likelihood_of_mclust(case):
    X, y, structure, golden = case
    peer = model_of(golden[structure], structure, np.bincount(y) / len(y))
    likelihood = peer.log_density(X, by_class=True)[np.arange(len(y)), y].sum()
    model = MDA(components=2, covariance=structure, starts=20, tolerance=1e-9, max_steps=5000)
    assert model.fit(X, y).log_likelihood_ >= likelihood - 1e-3
