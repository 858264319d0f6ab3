"""Laplacian classes: medians, mean deviations, and the densities they make."""

import warnings

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import laplace

from discriminant import LaplaceNB, moments
from discriminant.errors import (
    ConstantColumnWarning,
    ConstantInClassWarning,
    MissingValueError,
    MomentsMismatchError,
    TooFewRowsError,
)
from discriminant.models.laplace_naive_bayes import weighted_median

PRIOR = np.array([0.2, 0.5, 0.3])


@pytest.fixture
def rows():
    rng = np.random.default_rng(5)
    y = rng.permutation(np.arange(47) % 3)
    return rng.laplace(size=(47, 4)) * [1.0, 2.0, 0.1, 30.0] + y[:, None] + 50.0, y


def by_formula(X, y, T):
    """(n, K) log p(x | class) with numpy's median and scipy's density."""
    found = []
    for k in np.unique(y):
        own = X[y == k]
        median = np.median(own, axis=0)
        scale = np.abs(own - median).mean(axis=0)
        found.append(laplace.logpdf(T, median, scale).sum(axis=1))
    return np.stack(found, axis=1)


def test_densities_are_those_of_scipy_at_the_maximum_likelihood_estimates(rows):
    X, y = rows
    found = LaplaceNB().fit(X, y).log_density(X, by_class=True)
    np.testing.assert_allclose(found, by_formula(X, y, X), rtol=1e-12)


def test_estimates_are_those_that_scipy_fits_by_maximum_likelihood(rows):
    X, y = rows
    model = LaplaceNB().fit(X, y)
    found = np.stack([model.medians_[1], model.scales_[1]])
    expected = np.array([laplace.fit(column) for column in X[y == 1].T]).T
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_posteriors_follow_bayes_rule(rows):
    X, y = rows
    joint = np.exp(by_formula(X, y, X)) * PRIOR
    found = LaplaceNB(prior=PRIOR).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(found, joint / joint.sum(axis=1, keepdims=True), rtol=1e-10)


def test_a_prior_at_prediction_is_as_good_as_one_at_the_fit(rows):
    X, y = rows
    late = LaplaceNB().fit(X, y).predict_log_proba(X, prior=PRIOR)
    np.testing.assert_allclose(
        late, LaplaceNB(prior=PRIOR).fit(X, y).predict_log_proba(X), rtol=1e-12, atol=1e-13
    )


def test_the_density_of_all_classes_is_their_mixture(rows):
    X, y = rows
    mixture = np.log(np.exp(by_formula(X, y, X)) @ PRIOR)
    found = LaplaceNB(prior=PRIOR).fit(X, y).log_density(X)
    np.testing.assert_allclose(found, mixture, rtol=1e-11)


@given(
    values=st.lists(st.integers(-3, 3), min_size=1, max_size=12),
    seed=st.integers(0, 999),
)
def test_a_median_with_integer_weights_is_that_of_repeated_values(values, seed):
    weights = np.random.default_rng(seed).integers(1, 5, len(values))
    column = np.array(values, dtype=float)[:, None]
    expected = np.median(np.repeat(column, weights, axis=0), axis=0)
    np.testing.assert_array_equal(weighted_median(column, weights.astype(float)), expected)


def test_the_unit_of_weights_does_not_move_a_median():
    values, weights = np.array([[1.0], [2.0], [4.0], [8.0]]), np.array([0.1, 0.2, 0.1, 0.2])
    assert weighted_median(values, weights) == weighted_median(values, 10 * weights) == 3.0


def test_an_integer_weight_is_a_repeated_row(rows):
    X, y = rows
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    weight[:3] = 1
    again = np.repeat(np.arange(len(y)), weight)
    np.testing.assert_allclose(
        LaplaceNB().fit(X, y, sample_weight=weight).predict_log_proba(X),
        LaplaceNB().fit(X[again], y[again]).predict_log_proba(X),
        rtol=1e-11,
        atol=1e-12,
    )


def test_scores_are_linear_between_medians(rows):
    X, y = rows
    model = LaplaceNB().fit(X, y)
    beyond = X.max(axis=0) + np.array([[1.0], [2.0], [3.0]])
    scores = model.decision_function(beyond)
    np.testing.assert_allclose(scores[2] - scores[1], scores[1] - scores[0], rtol=1e-10)


def test_parts_fitted_one_by_one_equal_the_whole(rows):
    X, y = rows
    model = LaplaceNB().partial_fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
    np.testing.assert_allclose(
        model.predict_log_proba(X), LaplaceNB().fit(X, y).predict_log_proba(X), rtol=1e-10
    )


def test_forgotten_rows_leave_no_trace(rows):
    X, y = rows
    model = LaplaceNB().fit(X, y).forget(X[40:], y[40:])
    np.testing.assert_array_equal(model.medians_, LaplaceNB().fit(X[:40], y[:40]).medians_)


def test_far_rows_lose_no_digit():
    rng = np.random.default_rng(1)
    near, y = rng.integers(-8, 8, (30, 3)) / 4.0, np.arange(30) % 2
    np.testing.assert_allclose(
        LaplaceNB().fit(near + 2.0**40, y).predict_log_proba(near + 2.0**40),
        LaplaceNB().fit(near, y).predict_log_proba(near),
        rtol=1e-12,
        atol=1e-13,
    )


def test_columns_of_extreme_scale_give_the_same_posteriors(rows):
    X, y = rows
    stretch = np.array([1e-250, 1.0, 1e250, 1.0])
    np.testing.assert_allclose(
        LaplaceNB().fit(X * stretch, y).predict_log_proba(X * stretch),
        LaplaceNB().fit(X, y).predict_log_proba(X),
        rtol=1e-9,
        atol=1e-11,
    )


def test_draws_have_the_fitted_medians(rows):
    model = LaplaceNB().fit(*rows)
    drawn, labels = model.sample(40_000, seed=3)
    own = drawn[labels == 1]
    error = np.abs(np.median(own, axis=0) - model.medians_[1]) / model.scales_[1]
    assert error.max() < 5 / np.sqrt(len(own))  # sd of a Laplacian median: b / sqrt n


def test_draws_have_the_fitted_scales(rows):
    model = LaplaceNB().fit(*rows)
    drawn, labels = model.sample(40_000, seed=3)
    own = np.abs(drawn[labels == 1] - model.medians_[1]) / model.scales_[1]
    assert np.abs(own.mean(axis=0) - 1.0).max() < 5 / np.sqrt(len(own))


def test_a_seed_draws_the_same_rows_again(rows):
    model = LaplaceNB().fit(*rows)
    np.testing.assert_array_equal(model.sample(5, seed=1)[0], model.sample(5, seed=1)[0])


def test_a_constant_column_is_left_out_and_named(rows):
    X, y = rows
    with pytest.warns(ConstantColumnWarning, match="'x4'"):
        model = LaplaceNB().fit(np.column_stack([X, np.full(len(y), 7.0)]), y)
    found = model.predict_log_proba(np.column_stack([X, np.full(len(y), 9.0)]))
    np.testing.assert_allclose(found, LaplaceNB().fit(X, y).predict_log_proba(X), rtol=1e-12)


def test_a_column_constant_within_a_class_takes_the_pooled_spread_and_is_named(rows):
    X, y = rows
    X = X.copy()
    X[y == 2, 0] = 1000.0
    with pytest.warns(ConstantInClassWarning, match=r"'x0'.*class '2'"):
        model = LaplaceNB().fit(X, y)
    np.testing.assert_array_equal(model.predict(X) == 2, y == 2)


def test_a_missing_value_is_named(rows):
    X, y = rows
    X = X.copy()
    X[11, 2] = np.nan
    with pytest.raises(MissingValueError, match=r"Row 11\b.*column 'x2'"):
        LaplaceNB().fit(X, y)


def test_one_row_a_class_is_too_few():
    with pytest.raises(TooFewRowsError, match="2 row"):
        LaplaceNB().fit([[0.0], [1.0]], ["a", "b"])


def test_moments_without_rows_are_refused_with_the_way_out(rows):
    with pytest.raises(MomentsMismatchError, match="detail='rows'"):
        LaplaceNB().fit_moments(moments(*rows))


def test_it_fits_from_rows_read_earlier(rows):
    X, y = rows
    model = LaplaceNB().fit_moments(moments(X, y, detail="rows"))
    np.testing.assert_array_equal(model.predict_proba(X), LaplaceNB().fit(X, y).predict_proba(X))


def test_rows_without_outliers_warn_of_nothing(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LaplaceNB().fit(*rows).predict(rows[0])
