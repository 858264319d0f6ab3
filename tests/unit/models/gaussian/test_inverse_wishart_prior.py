"""Empirical Bayes pooling against the F distribution, simulation and brute force."""

import numpy as np
import pytest
from scipy.stats import f, invwishart, wishart

import discriminant as dd
from discriminant.errors import OptionError
from discriminant.models.gaussian.inverse_wishart_prior import (
    friedman_pooling,
    marginal_log_likelihood,
    marginal_slope,
    scatter_eigenvalues,
)
from tests.parity.golden import rows_of

IRIS, SPECIES = rows_of("iris")


def test_marginal_likelihood_of_one_feature_is_that_of_the_f_distribution():
    scatter, degrees, variance = np.array([3.0, 11.0, 0.4]), np.array([4.0, 7.0, 2.0]), 1.3
    eigenvalues = (scatter / variance)[:, None]

    def exact(t):  # W / v is (t C / a) times F(v, a) with a = t + 2
        scale = degrees * t * variance / (t + 2)
        return float((f.logpdf(scatter / scale, degrees, t + 2) - np.log(scale)).sum())

    for t in (0.1, 1.0, 8.0, 300.0):
        ours = marginal_log_likelihood(t, eigenvalues, degrees)
        ours -= marginal_log_likelihood(2.0, eigenvalues, degrees)
        assert ours == pytest.approx(exact(t) - exact(2.0), rel=1e-9, abs=1e-10)


def test_slope_is_the_derivative():
    eigenvalues = np.array([[3.0, 0.5], [40.0, 2.0], [0.1, 0.0]])
    degrees = np.array([4.0, 30.0, 1.0])
    for t in (0.05, 1.0, 70.0):
        step = 1e-6 * t
        ends = [marginal_log_likelihood(t + s, eigenvalues, degrees) for s in (-step, step)]
        slope = marginal_slope(t, eigenvalues, degrees)
        assert slope == pytest.approx((ends[1] - ends[0]) / (2 * step), rel=1e-5, abs=1e-7)


def test_marginal_likelihood_is_the_mean_over_random_covariances():
    rng = np.random.default_rng(0)
    C, W, v = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([[9.0, 1.0], [1.0, 7.0]]), 6
    eigenvalues = np.linalg.eigvals(np.linalg.solve(C, W)).real[None]

    def simulated(t):
        draws = invwishart(t + 3, t * C).rvs(40_000, random_state=rng)
        inverse = np.linalg.inv(draws)
        logs = -0.5 * v * np.linalg.slogdet(draws)[1] - 0.5 * np.einsum("nij,ij->n", inverse, W)
        return np.log(np.mean(np.exp(logs + 6.0))) - 6.0

    ours = [marginal_log_likelihood(t, eigenvalues, np.array([float(v)])) for t in (3.0, 20.0)]
    assert ours[1] - ours[0] == pytest.approx(simulated(20.0) - simulated(3.0), abs=0.02)


@pytest.mark.parametrize("t", [4.0, 40.0])
def test_degrees_of_freedom_of_simulated_classes_are_recovered(t):
    K, d, v = 200, 3, 25
    draws = invwishart(t + d + 1, t * np.eye(d)).rvs(K, random_state=1)
    scatters = np.array([wishart(v, each).rvs(random_state=k) for k, each in enumerate(draws)])
    moments = dd.moments(np.zeros((2 * K, d)), np.repeat(np.arange(K), 2))
    from dataclasses import replace

    weight = np.full(K, v + 1.0)
    moments = replace(
        moments, weight=weight, weight2=weight, rows=weight.astype(np.int64), scatter=scatters
    )
    p = friedman_pooling(moments, "unbiased")
    assert p / (1 - p) * K * v == pytest.approx(t, rel=0.35)


def test_pooling_is_the_maximum_over_a_fine_grid():
    model = dd.RDA(pooling="empirical_bayes").fit(IRIS, SPECIES)
    moments = model.moments_
    total, degrees = 147.0, np.full(3, 49.0)
    eigenvalues = scatter_eigenvalues(moments, total)
    ours = model.pooling_ / (1 - model.pooling_) * total
    grid = np.geomspace(0.01, 1e5, 5000)
    values = [marginal_log_likelihood(t, eigenvalues, degrees) for t in grid]
    assert marginal_log_likelihood(ours, eigenvalues, degrees) >= max(values) - 1e-9
    assert ours == pytest.approx(grid[int(np.argmax(values))], rel=0.01)


def test_covariances_are_posterior_means():
    model = dd.RDA(pooling="empirical_bayes").fit(IRIS, SPECIES)
    t = model.pooling_ / (1 - model.pooling_) * 147.0
    pooled = dd.LDA().fit(IRIS, SPECIES).covariance_
    own = dd.QDA().fit(IRIS, SPECIES).covariance_
    np.testing.assert_allclose(model.covariance_, (49 * own + t * pooled) / (49 + t), rtol=1e-9)
    given = dd.RDA(pooling=model.pooling_, weighting="friedman").fit(IRIS, SPECIES)
    np.testing.assert_allclose(model.predict_proba(IRIS), given.predict_proba(IRIS), atol=1e-12)


def test_equal_covariances_are_pooled_and_different_ones_are_not():
    rng = np.random.default_rng(2)
    y = np.repeat([0, 1, 2], 300)
    X = rng.normal(size=(900, 3))
    equal = dd.RDA(pooling="empirical_bayes").fit(X, y)
    share = 900 * equal.pooling_ / (1 - equal.pooling_)
    assert share / (share + 299) > 0.8  # weight of the pooled covariance
    different = dd.RDA(pooling="empirical_bayes").fit(X * np.array([1.0, 3.0, 9.0])[y, None], y)
    share = 900 * different.pooling_ / (1 - different.pooling_)
    assert share / (share + 299) < 0.1


@pytest.mark.parametrize("denominator", ["unbiased", "ml", "reliability"])
def test_units_and_linear_maps_change_nothing(denominator):
    model = dd.RDA(pooling="empirical_bayes", denominator=denominator)
    matrix = np.random.default_rng(0).normal(size=(4, 4)) * np.array([1e-5, 1.0, 1e4, 3.0])
    first = model.fit(IRIS, SPECIES).pooling_
    assert model.fit(IRIS @ matrix + 100.0, SPECIES).pooling_ == pytest.approx(first, rel=1e-6)


def test_constant_and_dependent_features_are_left_out():
    first = dd.RDA(pooling="empirical_bayes").fit(IRIS, SPECIES).pooling_
    wider = np.column_stack([IRIS, np.ones(150), IRIS[:, 0] + IRIS[:, 1]])
    with pytest.warns():
        model = dd.RDA(pooling="empirical_bayes").fit(wider, SPECIES)
    assert model.pooling_ == pytest.approx(first, rel=1e-6)


def test_it_needs_a_number_for_shrinkage():
    with pytest.raises(OptionError):
        dd.RDA(pooling="empirical_bayes", shrinkage="cv").fit(IRIS, SPECIES)
    with pytest.raises(OptionError):
        dd.RDA(pooling="empirical_bayes", shrinkage="auto").fit(IRIS, SPECIES)
