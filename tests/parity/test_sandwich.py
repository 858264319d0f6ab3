"""Robust covariances, influence, nested fits, goodness of fit and marginal effects.

References: R's sandwich, lmtest and stats (sandwich_r.json), statsmodels (margins.json).
"""

from functools import cache

import numpy as np
import pytest

from discriminant import GLM, Logistic, compare_fits
from tests.parity.golden import frozen

SETS = frozen("glm_sets")
R = frozen("sandwich_r")
STATSMODELS = frozen("margins")
GROUPS = R["clusters"]

every_fit = pytest.mark.parametrize("name", R["fits"])


def problem_of(name):
    kind, link, *weighted = name.split("-")
    rows = SETS["glm"]
    weight = rows["times" if kind == "binomial" else "weight"] if weighted else None
    response = np.array(rows["responses"][f"{kind}-{link}"], float)
    return kind.lower(), link, np.array(rows["features"], float), response, weight


@cache
def fit_of(name):
    family, link, features, response, weight = problem_of(name)
    return GLM(family, link).fit(features, response, weight)


def two_classes():
    features, codes = np.array(SETS["classes"]["features"]), np.array(SETS["classes"]["codes"])
    return features[codes < 2], codes[codes < 2]


# --- robust covariances ---------------------------------------------------------------------------


@every_fit
@pytest.mark.parametrize("cov", ["HC0", "HC1", "HC2", "HC3"])
def test_sandwich_covariances_are_those_of_vcovhc(name, cov):
    _, _, features, response, weight = problem_of(name)
    summary = fit_of(name).summary(cov=cov, X=features, y=response, sample_weight=weight)
    wanted = np.array(R["fits"][name]["robust"][cov])
    scale = np.sqrt(np.outer(np.diag(wanted), np.diag(wanted)))
    np.testing.assert_allclose(summary.inference.covariance / scale, wanted / scale, atol=1e-7)


@every_fit
def test_clustered_covariances_are_those_of_vcovcl(name):
    _, _, features, response, weight = problem_of(name)
    summary = fit_of(name).summary(
        cov="cluster", X=features, y=response, sample_weight=weight, groups=GROUPS
    )
    wanted = np.array(R["fits"][name]["cluster"])
    scale = np.sqrt(np.outer(np.diag(wanted), np.diag(wanted)))
    np.testing.assert_allclose(summary.inference.covariance / scale, wanted / scale, atol=1e-7)


@every_fit
def test_robust_z_statistics_are_those_of_coeftest(name):
    _, _, features, response, weight = problem_of(name)
    summary = fit_of(name).summary(cov="HC1", X=features, y=response, sample_weight=weight)
    found = summary.inference.statistic
    np.testing.assert_allclose(found, R["fits"][name]["hc1_statistic"], rtol=1e-6)


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
def test_robust_errors_of_logistic_are_those_of_the_binomial_glm(link):
    _, _, features, response, _ = problem_of(f"binomial-{link}")
    codes = response.astype(int)
    for cov in ("HC0", "HC3"):
        model = Logistic(link).fit(features, codes)
        found = model.summary(cov=cov, X=features, y=codes).inference.std_error
        wanted = np.sqrt(np.diag(R["fits"][f"binomial-{link}"]["robust"][cov]))
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_clustered_errors_of_statsmodels_have_another_factor():
    features, codes = two_classes()
    golden = STATSMODELS["clusters"]
    model = Logistic().fit(features, codes)
    found = model.summary(cov="cluster", X=features, y=codes, groups=golden["groups"])
    n, P = len(codes), 1 + features.shape[1]
    factor = np.sqrt((n - 1) / (n - P))  # statsmodels' correction for the number of estimates
    np.testing.assert_allclose(factor * found.inference.std_error, golden["se"], rtol=1e-7)


def test_sandwich_errors_of_several_classes_are_those_of_mnlogit():
    features, codes = np.array(SETS["classes"]["features"]), np.array(SETS["classes"]["codes"])
    model = Logistic().fit(features, codes)
    found = model.summary(cov="HC0", X=features, y=codes).inference.std_error
    np.testing.assert_allclose(found, np.ravel(STATSMODELS["classes_hc0"]), rtol=1e-6)


# --- influence ------------------------------------------------------------------------------------


@every_fit
def test_influence_is_that_of_influence_measures(name):
    _, _, features, response, weight = problem_of(name)
    found, golden = fit_of(name).influence(features, response, weight), R["fits"][name]
    np.testing.assert_allclose(found.leverage, golden["hat"], rtol=1e-6)
    np.testing.assert_allclose(found.cooks_distance, golden["cook"], rtol=2e-6, atol=1e-12)
    np.testing.assert_allclose(found.dfbetas, golden["dfbetas"], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.pearson, golden["pearson_residual"], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.deviance, golden["deviance_residual"], rtol=1e-6, atol=1e-9)


# --- nested fits and contrasts --------------------------------------------------------------------


@every_fit
def test_nested_fits_compare_as_by_anova(name):
    family, link, features, response, weight = problem_of(name)
    small = GLM(family, link).fit(features[:, :1], response, weight)
    found, golden = compare_fits(small, fit_of(name)), R["fits"][name]
    assert found.deviances[0] - found.deviances[1] == pytest.approx(
        golden["anova_deviance"], rel=1e-7
    )
    assert found.df == 2
    assert found.p == pytest.approx(golden["anova_p"], rel=1e-6)


@every_fit
def test_joint_contrasts_are_the_quadratic_form(name):
    model = fit_of(name)
    found = model.wald_test([[0, 1, 1, 0], [0, 0, 0, 1]], value=[0.1, 0.0])
    chi2 = found.statistic * (found.df if found.df_residual is not None else 1)
    assert chi2 == pytest.approx(R["fits"][name]["wald"], rel=1e-6)


# --- goodness of fit ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "link", "groups"),
    [
        ("hosmer_lemeshow", "logit", 10),
        ("hosmer_lemeshow_6", "logit", 6),
        ("hosmer_lemeshow_probit", "probit", 10),
    ],
)
def test_hosmer_and_lemeshow_as_written_out_in_r(key, link, groups):
    features, codes = two_classes()
    golden = R["goodness"][key]
    found = Logistic(link).fit(features, codes).goodness_of_fit(features, codes, groups=groups)
    assert found.statistic == pytest.approx(golden["statistic"], rel=1e-8)
    assert found.df == golden["df"]
    assert found.p == pytest.approx(golden["p"], rel=1e-8)


def test_le_cessie_and_van_houwelingen_as_written_out_in_r():
    features, codes = two_classes()
    golden = R["goodness"]["le_cessie"]
    found = Logistic().fit(features, codes).goodness_of_fit(features, codes, test="le_cessie")
    assert found.statistic == pytest.approx(golden["z"], rel=1e-6)
    assert found.p == pytest.approx(golden["p"], rel=1e-6)


# --- marginal effects -----------------------------------------------------------------------------


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_marginal_effects_of_two_classes_are_those_of_statsmodels(link):
    features, codes = two_classes()
    found = Logistic(link).fit(features, codes).marginal_effects(features, codes)
    np.testing.assert_allclose(found.effect, STATSMODELS[link]["effect"], rtol=1e-8)
    tolerance = 1e-7 if link == "logit" else 5e-2  # statsmodels uses the observed curvature
    np.testing.assert_allclose(found.std_error, STATSMODELS[link]["se"], rtol=tolerance)


def test_marginal_effects_of_several_classes_are_those_of_statsmodels():
    features, codes = np.array(SETS["classes"]["features"]), np.array(SETS["classes"]["codes"])
    found = Logistic().fit(features, codes).marginal_effects(features, codes)
    golden = STATSMODELS["classes"]
    np.testing.assert_allclose(found.effect, np.ravel(golden["effect"]), rtol=1e-7)
    np.testing.assert_allclose(found.std_error, np.ravel(golden["se"]), rtol=1e-6)


def test_marginal_effects_on_a_count_are_those_of_statsmodels():
    _, _, features, response, _ = problem_of("poisson-log")
    found = fit_of("poisson-log").marginal_effects(features, response)
    np.testing.assert_allclose(found.effect, STATSMODELS["poisson"]["effect"], rtol=1e-8)
    np.testing.assert_allclose(found.std_error, STATSMODELS["poisson"]["se"], rtol=1e-7)
