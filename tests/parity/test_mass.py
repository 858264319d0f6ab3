"""Parity with R's MASS 7.3-58.2, by the answers frozen in tests/golden/mass.json."""

import numpy as np
import pytest

from discriminant import LDA, QDA
from tests.parity.golden import NAMES, answers, assert_says, rows_of

MASS = answers("mass")
DENOMINATOR = {"moment": "unbiased", "mle": "ml"}

every_set = pytest.mark.parametrize("name", NAMES)
both_methods = pytest.mark.parametrize("method", list(DENOMINATOR))
both_models = pytest.mark.parametrize("kind", ["lda", "qda"])


def model_of(kind, method, prior=None):
    return {"lda": LDA, "qda": QDA}[kind](prior=prior, denominator=DENOMINATOR[method])


def golden_of(name, kind, method, answer):
    return {"rows": MASS[name]["rows"]} | MASS[name][kind][method][answer]


@every_set
@both_models
@both_methods
def test_posteriors_with_class_shares_are_those_of_mass(name, kind, method):
    model = model_of(kind, method).fit(*rows_of(name))
    assert_says(model, name, golden_of(name, kind, method, "default"))


@every_set
@both_models
@both_methods
def test_posteriors_with_a_prior_at_fit_are_those_of_mass(name, kind, method):
    model = model_of(kind, method, MASS[name]["prior"]).fit(*rows_of(name))
    assert_says(model, name, golden_of(name, kind, method, "prior_at_fit"))


@every_set
@both_models
@both_methods
def test_posteriors_with_a_prior_at_predict_are_those_of_mass(name, kind, method):
    model = model_of(kind, method).fit(*rows_of(name))
    golden = golden_of(name, kind, method, "prior_at_predict")
    assert_says(model, name, golden, prior=MASS[name]["prior"])


@every_set
def test_priors_and_means_are_those_of_mass(name):
    model = LDA().fit(*rows_of(name))
    golden = MASS[name]["lda"]["moment"]["default"]
    np.testing.assert_allclose(model.prior_, golden["prior"], rtol=1e-14)
    np.testing.assert_allclose(model.means_, golden["means"], rtol=1e-13)


@every_set
@both_methods
def test_log_determinants_are_those_of_mass(name, method):
    features, codes = rows_of(name)
    model = model_of("qda", method).fit(features, codes)
    # At a class mean log p(x | class) is -(log det + d log 2 pi) / 2.
    peak = np.diagonal(model.log_density(model.means_, by_class=True))
    found = -2 * peak - features.shape[1] * np.log(2 * np.pi)
    golden = MASS[name]["qda"][method]["default"]["ldet"]
    np.testing.assert_allclose(found, golden, rtol=1e-10)


@every_set
@both_methods
def test_rows_scaled_by_mass_have_our_distances(name, method):
    # MASS's scaling turns the pooled covariance into the identity, on the span of the class means:
    # there the distances between means are ours.
    features, codes = rows_of(name)
    model = model_of("lda", method).fit(features, codes)
    means = model.means_ @ np.array(MASS[name]["lda"][method]["default"]["scaling"])
    apart = ((means[:, None] - means) ** 2).sum(axis=2)
    np.testing.assert_allclose(model.mahalanobis(model.means_), apart, rtol=1e-10, atol=1e-10)
