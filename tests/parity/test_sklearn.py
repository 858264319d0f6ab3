"""Parity with scikit-learn 1.9.1, by the answers frozen in tests/golden/sklearn.json."""

import numpy as np
import pytest

from discriminant import LDA, QDA, RDA, NearestMean
from tests.parity.golden import NAMES, answers, assert_says, rows_of

SKLEARN = answers("sklearn")

every_set = pytest.mark.parametrize("name", NAMES)


def golden_of(name, kind, answer):
    return {"rows": SKLEARN[name]["rows"]} | SKLEARN[name][kind][answer]


@every_set
@pytest.mark.parametrize("kind", ["lda", "qda"])
@pytest.mark.parametrize("answer", ["default", "prior"])
def test_posteriors_are_those_of_scikit_learn(name, kind, answer):
    prior = SKLEARN[name]["prior"] if answer == "prior" else None
    model = {"lda": LDA, "qda": QDA}[kind](prior=prior, denominator="ml").fit(*rows_of(name))
    assert_says(model, name, golden_of(name, kind, answer))


@every_set
def test_slopes_of_lda_are_those_of_scikit_learn_up_to_what_all_classes_share(name):
    model = LDA(denominator="ml").fit(*rows_of(name))
    golden = golden_of(name, "lda", "default")
    slopes, intercepts = np.array(golden["coef"]), np.array(golden["intercept"])
    if len(slopes) == 1:
        np.testing.assert_allclose(model.coef_, slopes, rtol=1e-7)
        np.testing.assert_allclose(model.intercept_, intercepts, rtol=1e-7)
        return
    size = np.abs(slopes).max()
    found = model.coef_ - model.coef_[0]
    np.testing.assert_allclose(found, slopes - slopes[0], rtol=0, atol=1e-9 * size)
    apart = model.intercept_ - model.intercept_[0]
    np.testing.assert_allclose(apart, intercepts - intercepts[0], rtol=1e-9)


@every_set
@pytest.mark.parametrize("answer", ["reg_param_0.3", "reg_param_0.3_prior"])
def test_reg_param_means_what_it_means_in_scikit_learn(name, answer):
    prior = SKLEARN[name]["prior"] if answer.endswith("prior") else None
    model = RDA.from_sklearn(reg_param=0.3, prior=prior).fit(*rows_of(name))
    assert_says(model, name, golden_of(name, "qda", answer))


@every_set
@pytest.mark.parametrize(("rule", "key"), [("auto", "ledoit_wolf"), ("oas", "oas")])
@pytest.mark.parametrize(("target", "kind"), [("scaled_identity", "raw"), ("diagonal", "scaled")])
def test_the_best_shrinkage_is_that_of_scikit_learn(name, rule, key, target, kind):
    model = LDA(shrinkage=rule, target=target).fit(*rows_of(name))
    assert model.shrinkage_ == pytest.approx(SKLEARN[name]["shrinkage"][kind][key], rel=1e-10)


@every_set
def test_the_nearest_mean_is_that_of_scikit_learn(name):
    features, codes = rows_of(name)
    labels = NearestMean().fit(features, codes).predict(features)
    golden = SKLEARN[name]["nearest_centroid"]
    assert labels[SKLEARN[name]["rows"]].tolist() == golden["class"]
    assert int((labels != codes).sum()) == golden["errors"]
