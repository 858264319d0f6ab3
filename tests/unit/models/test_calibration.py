"""Calibrators on stored scores: scikit-learn, betacal, and direct maximisation."""

import numpy as np
import pytest
from scipy.special import expit, log_softmax, logsumexp

from discriminant.models.calibration import (
    FITS,
    IsotonicCalibrator,
    fit_beta,
    fit_isotonic,
    fit_sigmoid,
    fit_temperature,
    margins,
)
from discriminant.posterior import log_posterior
from tests.parity.golden import frozen

GOLDEN = frozen("calibration")
every_case = pytest.mark.parametrize("case", ["two", "three"])


def scores_of(case):
    given = GOLDEN[case]
    return np.array(given["logs"]), np.array(given["y"]), np.array(given["weight"])


# --- parity ---------------------------------------------------------------------------------------


@every_case
def test_platt_maximises_the_likelihood_and_agrees_with_scikit_learn(case):
    fit = fit_sigmoid(*scores_of(case), posterior=True)
    for m, wanted in enumerate(GOLDEN[case]["platt"]):
        ours = [fit.slope[m], fit.intercept[m]]
        np.testing.assert_allclose(ours, wanted["direct"], rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(ours, wanted["sklearn"], rtol=1e-4, atol=1e-5)


@every_case
def test_temperature_maximises_the_likelihood_and_agrees_with_scikit_learn(case):
    fit = fit_temperature(*scores_of(case), posterior=True)
    wanted = GOLDEN[case]["temperature"]
    assert fit.temperature == pytest.approx(wanted["direct"], rel=1e-6)
    assert fit.temperature == pytest.approx(wanted["sklearn"], rel=1e-6)
    assert fit.temperature > 1.2, "these scores are too sure"


@every_case
def test_isotonic_functions_equal_those_of_scikit_learn(case):
    fit = fit_isotonic(*scores_of(case), posterior=True)
    for m, wanted in enumerate(GOLDEN[case]["isotonic"]):
        ours = np.interp(wanted["at"], fit.margin[m], fit.value[m])
        np.testing.assert_allclose(ours, wanted["value"], atol=1e-9)


@pytest.mark.parametrize("which", ["beta", "beta_flat", "beta_skewed"])
def test_beta_agrees_with_betacal(which):
    logs, y, _ = scores_of("two")
    p = np.exp(logs[:, 1]) ** (3 if which == "beta_skewed" else 1)
    y = np.array(GOLDEN["two"]["flat"]) if which == "beta_flat" else y
    scores = np.log(np.column_stack([1 - p, p]))
    fit = fit_beta(scores, y, None, posterior=True)
    wanted = GOLDEN["two"][which]
    np.testing.assert_allclose([fit.a[0], fit.b[0]], [wanted["a"], wanted["b"]], atol=2e-3)
    at = np.array(wanted["at"])
    value = np.exp(
        log_posterior(fit.log_weights(np.log(np.column_stack([1 - at, at])), posterior=True))
    )
    np.testing.assert_allclose(value[:, 1], wanted["value"], atol=1e-3)


def test_beta_of_reversed_scores_is_constant():
    logs, y, weight = scores_of("two")
    fit = fit_beta(logs, 1 - y, weight, posterior=True)
    assert fit.a.tolist() == fit.b.tolist() == [0.0]
    share = np.average(1 - y, weights=weight)
    assert fit.c[0] == pytest.approx(np.log(share / (1 - share)))


# --- by hand --------------------------------------------------------------------------------------


def test_margins_of_three_classes_are_log_odds_also_where_they_are_large():
    logs = np.array([[0.0, -800.0, -900.0], [-1e-20, -46.0, -50.0], [-1.0, -1.0, -1.3]])
    logs[2] = log_softmax(logs[2])
    ours = margins(logs, posterior=True)
    assert ours[0].tolist() == [500.0, -500.0, -500.0]
    others = [logsumexp(np.delete(logs[1:], k, axis=1), axis=1) for k in range(3)]
    np.testing.assert_allclose(ours[1:], logs[1:] - np.array(others).T, rtol=1e-12)


def test_margins_of_impossible_classes_are_finite():
    with np.errstate(divide="ignore"):
        logs = np.log([[0.6, 0.4, 0.0], [1.0, 0.0, 0.0]])
    ours = margins(logs, posterior=True)
    np.testing.assert_allclose(ours[0], [np.log(1.5), -np.log(1.5), -500.0])
    assert ours[1].tolist() == [500.0, -500.0, -500.0]
    assert margins(logs[:, :2], posterior=True)[1].tolist() == [-500.0]


@every_case
@pytest.mark.parametrize("method", FITS)
def test_a_weight_of_two_is_equivalent_to_a_repeated_row(case, method):
    logs, y, weight = scores_of(case)
    times = weight.astype(int)
    weighted = FITS[method](logs, y, weight, posterior=True)
    repeated = FITS[method](logs.repeat(times, 0), y.repeat(times), None, posterior=True)
    at = log_softmax(np.random.default_rng(0).normal(size=(20, logs.shape[1])), axis=1)
    first, second = (
        np.exp(log_posterior(fit.log_weights(at, posterior=True))) for fit in (weighted, repeated)
    )
    np.testing.assert_allclose(first, second, atol=1e-8)


@pytest.mark.parametrize("method", ["platt", "beta", "temperature"])
def test_calibrated_rates_recover_a_known_distortion(method):
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, 200_000)
    y = (rng.random(len(z)) < expit(z)).astype(int)
    stated = 2.5 * z  # too sure by a factor
    scores = np.column_stack([np.zeros_like(z), stated])
    fit = FITS[method](log_softmax(scores, axis=1), y, None, posterior=True)
    at = log_softmax(np.column_stack([np.zeros(9), 2.5 * np.linspace(-3, 3, 9)]), axis=1)
    ours = np.exp(log_posterior(fit.log_weights(at, posterior=True)))[:, 1]
    np.testing.assert_allclose(ours, expit(np.linspace(-3, 3, 9)), atol=0.01)


@pytest.mark.parametrize("method", FITS)
def test_scores_that_separate_the_classes_give_finite_parameters(method):
    logs = log_softmax(np.array([[5.0, 0.0], [3.0, 0.0], [0.0, 2.0], [0.0, 4.0]]), axis=1)
    fit = FITS[method](logs, np.array([0, 0, 1, 1]), None, posterior=True)
    p = np.exp(log_posterior(fit.log_weights(logs, posterior=True)))
    assert np.isfinite(p).all() and (p.argmax(axis=1) == [0, 0, 1, 1]).all()


def test_isotonic_rows_that_belong_to_no_class_get_equal_probabilities():
    knots, value = (np.array([0.0, 1.0]),) * 3, (np.array([0.0, 1.0]),) * 3
    fit = IsotonicCalibrator(knots, value)
    logs = fit.log_weights(np.array([[-1.0, -2.0, -3.0], [0.5, 0.25, -1.0]]), posterior=False)
    np.testing.assert_allclose(np.exp(logs), [[1.0, 1.0, 1.0], [0.5, 0.25, 0.0]])
