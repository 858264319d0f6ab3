"""Cumulative link models against R's clm and polr, and statsmodels' OrderedModel.

clm converges to its maximum, so coefficients agree to 1e-7; polr has a numerical Hessian.
"""

import numpy as np
import pytest

from discriminant import OrderedLogistic
from tests.parity.golden import frozen

SETS = frozen("ordered_r")["sets"]
STATSMODELS = frozen("margins")["ordered"]
CASES = [(name, link) for name in SETS for link in ("logit", "probit", "cloglog")]

every_fit = pytest.mark.parametrize(("name", "link"), CASES)


def fit_of(name, link, **options):
    rows = SETS[name]
    model = OrderedLogistic(link, **options)
    return model.fit(rows["features"], rows["level"], sample_weight=rows["weight"])


@every_fit
def test_estimates_are_those_of_clm(name, link):
    model, golden = fit_of(name, link), SETS[name]["clm"][link]
    np.testing.assert_allclose(model.coef_, golden["coef"], rtol=1e-7)
    np.testing.assert_allclose(model.thresholds_, golden["thresholds"], rtol=1e-7)


@every_fit
def test_standard_errors_and_tests_are_those_of_clm(name, link):
    inference, golden = fit_of(name, link).inference(), SETS[name]["clm"][link]
    d = len(golden["coef"])
    np.testing.assert_allclose(inference.std_error[:d], golden["se"], rtol=1e-6)
    np.testing.assert_allclose(inference.std_error[d:], golden["threshold_se"], rtol=1e-6)
    np.testing.assert_allclose(inference.statistic[:d], golden["z"], rtol=1e-6)
    np.testing.assert_allclose(inference.p[:d], golden["p"], rtol=1e-5)


@every_fit
def test_likelihood_and_probabilities_are_those_of_clm(name, link):
    model, golden = fit_of(name, link), SETS[name]["clm"][link]
    likelihood = model.inference().likelihood
    assert likelihood.log_likelihood == pytest.approx(golden["loglik"], rel=1e-11)
    assert likelihood.aic == pytest.approx(golden["aic"], rel=1e-11)
    shown = np.array(SETS[name]["features"])[golden["shown"]]
    np.testing.assert_allclose(model.predict_proba(shown), golden["fitted"], rtol=1e-6)


@every_fit
def test_intervals_of_probabilities_are_those_of_clm(name, link):
    model, golden = fit_of(name, link), SETS[name]["clm"][link]
    shown = np.array(SETS[name]["features"])[golden["shown"]]
    _, low, high = model.predict_proba(shown, interval=0.9)
    np.testing.assert_allclose(low, golden["low"], rtol=1e-6)
    np.testing.assert_allclose(high, golden["high"], rtol=1e-6)


@pytest.mark.parametrize("name", SETS)
def test_profile_intervals_are_those_of_clm(name):
    rows, golden = SETS[name], np.array(SETS[name]["clm"]["logit"]["profile"])
    found = fit_of(name, "logit").intervals(
        0.95, "profile", rows["features"], rows["level"], rows["weight"]
    )
    # clm interpolates the profile by a spline
    np.testing.assert_allclose(found[: len(golden)], golden, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("name", SETS)
def test_logit_fits_are_those_of_polr(name):
    model, golden = fit_of(name, "logit"), SETS[name]["polr"]
    inference = model.inference()
    np.testing.assert_allclose(model.coef_, golden["coef"], rtol=1e-4)
    np.testing.assert_allclose(model.thresholds_, golden["thresholds"], rtol=1e-4)
    np.testing.assert_allclose(inference.std_error[: len(model.coef_)], golden["se"], rtol=1e-3)
    assert inference.likelihood.deviance == pytest.approx(golden["deviance"], rel=1e-8)
    assert inference.likelihood.aic == pytest.approx(golden["aic"], rel=1e-8)


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_fits_are_those_of_statsmodels(link):
    model, golden = fit_of("drawn", link), STATSMODELS[link]
    inference = model.inference()
    np.testing.assert_allclose(model.coef_, golden["coef"], rtol=1e-6)
    np.testing.assert_allclose(model.thresholds_, golden["thresholds"], rtol=1e-6)
    np.testing.assert_allclose(inference.std_error[: len(model.coef_)], golden["se"], rtol=1e-4)
    assert inference.likelihood.log_likelihood == pytest.approx(golden["loglik"], rel=1e-11)
