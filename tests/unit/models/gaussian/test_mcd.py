"""The minimum covariance determinant against its definition, and against R's robustbase."""

from itertools import combinations

import numpy as np
import pytest

from discriminant.models.gaussian.mcd import (
    columns_with_zero_mad,
    consistency_factor,
    fit_mcd,
    least_rows,
    small_sample_factor,
    subset_size,
    tau_scale,
)
from tests.parity.golden import answers, frozen, rows_of

ROBUST = frozen("robust")
SETS = answers("robust")
CLASSES = [(name, label) for name in SETS for label in SETS[name]["mcd"]]


def class_rows(name, label):
    features, codes = rows_of(name.removeprefix("shifted_"))
    if name.endswith("iris"):  # more than half of setosa have the same petal width
        features = features[:, :3]
    if name.startswith("shifted"):
        features = features.copy()
        features[::12] += 10
    return features[codes == int(label)]


# --- parity with robustbase -----------------------------------------------------------------------


@pytest.mark.parametrize(("name", "label"), CLASSES)
@pytest.mark.parametrize(("fraction", "golden"), [(0.5, "mcd"), (0.75, "mcd_75")])
def test_estimates_are_those_of_robustbase(name, label, fraction, golden):
    wanted = SETS[name][golden][label]
    estimate = fit_mcd(class_rows(name, label), support_fraction=fraction)
    sd = np.sqrt(np.diagonal(wanted["cov"]))
    square = sd[:, None] * sd
    np.testing.assert_allclose(estimate.logdet, wanted["logdet"], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        estimate.raw_location / sd, np.array(wanted["raw_center"]) / sd, rtol=0, atol=1e-10
    )
    np.testing.assert_allclose(
        estimate.raw_covariance / square, wanted["raw_cov"] / square, rtol=0, atol=1e-10
    )
    np.testing.assert_allclose(
        estimate.location / sd, np.array(wanted["center"]) / sd, rtol=0, atol=1e-10
    )
    np.testing.assert_allclose(
        estimate.covariance / square, wanted["cov"] / square, rtol=0, atol=1e-10
    )


def test_factors_for_few_rows_are_those_of_robustbase():
    for features, rows, fraction, raw, reweighted in ROBUST["factors"]:
        p, n = int(features), int(rows)
        small = n <= 20 and p >= 2 and fraction > 0.5
        if small:  # robustbase's formula is then used outside its range
            continue
        assert small_sample_factor(p, n, fraction, "raw") == pytest.approx(raw, rel=1e-9)
        assert small_sample_factor(p, n, fraction, "reweighted") == pytest.approx(
            reweighted, rel=1e-9
        )


def test_tau_scales_are_those_of_robustbase():
    features, _ = rows_of("wine")
    np.testing.assert_allclose(tau_scale(features.T), ROBUST["scales"]["wine"], rtol=1e-13)


# --- the definition -------------------------------------------------------------------------------


def test_the_determinant_is_close_to_the_smallest_of_all_subsets():
    gaps = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(14, 2)) @ np.array([[1.0, 0.8], [0.0, 0.5]])
        rows[:4] += 8.0
        subsets = combinations(range(14), subset_size(0.5, 14, 2))
        every = [np.linalg.slogdet(np.cov(rows[list(each)].T))[1] for each in subsets]
        gaps.append(fit_mcd(rows).logdet - min(every))
        assert np.median(every) - min(every) > 2.0
    assert min(gaps) > -1e-9 and max(gaps) < 0.25  # the search is not exhaustive
    assert np.median(gaps) < 1e-9


@pytest.mark.parametrize("n", [12, 13])
def test_one_feature_has_the_exact_minimum(n):
    values = np.random.default_rng(n).normal(size=(n, 1)) ** 3
    h = subset_size(0.5, n, 1)
    subsets = combinations(values[:, 0], h)
    least = min(np.var(subset, ddof=1) for subset in subsets)
    assert np.exp(fit_mcd(values).logdet) == pytest.approx(least, rel=1e-9)


def test_a_fraction_of_one_is_the_ordinary_covariance():
    rows = np.random.default_rng(0).normal(size=(60, 3))
    estimate = fit_mcd(rows, support_fraction=1.0)
    np.testing.assert_allclose(estimate.raw_location, rows.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(estimate.raw_covariance, np.cov(rows.T), rtol=1e-10)


def test_estimates_of_gaussian_rows_are_consistent():
    rng = np.random.default_rng(1)
    root = np.array([[2.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.0, -1.0, 0.5]])
    truth = root @ root.T
    estimates = [fit_mcd(rng.normal(size=(2000, 3)) @ root.T) for _ in range(20)]
    covariance = np.mean([each.covariance for each in estimates], axis=0)
    raw = np.mean([each.raw_covariance for each in estimates], axis=0)
    sd = np.sqrt(np.diagonal(truth))
    np.testing.assert_allclose(covariance / sd[:, None] / sd, truth / sd[:, None] / sd, atol=0.03)
    np.testing.assert_allclose(raw / sd[:, None] / sd, truth / sd[:, None] / sd, atol=0.05)


def test_order_and_units_of_rows_change_nothing():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(80, 4))
    rows[:20, 2] += 15
    first = fit_mcd(rows)
    second = fit_mcd(rows[rng.permutation(80)])
    assert np.array_equal(first.covariance, second.covariance)
    unit = np.array([1e-6, 1.0, 1e3, 1e9])
    scaled = fit_mcd(rows * unit + 5 * unit)
    np.testing.assert_allclose(scaled.location, (first.location + 5) * unit, rtol=1e-8)
    np.testing.assert_allclose(
        scaled.covariance / unit[:, None] / unit, first.covariance, rtol=1e-7, atol=1e-8
    )


@pytest.mark.parametrize("share", [0.1, 0.25, 0.4])
def test_outlying_rows_do_not_shift_the_estimates(share):
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(500, 5))
    wrong = int(share * 500)
    rows[:wrong] = rng.normal(20.0, 0.1, size=(wrong, 5))
    estimate = fit_mcd(rows)
    assert np.abs(estimate.location).max() < 0.25
    assert np.linalg.cond(estimate.covariance) < 3
    assert np.abs(rows.mean(axis=0)).max() > 1.5  # the ordinary mean


def test_rows_on_a_hyperplane_have_no_estimate():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(50, 3))
    rows[:40, 2] = rows[:40, 0] - rows[:40, 1]
    assert fit_mcd(rows) is None


def test_half_equal_columns_are_recognised():
    rows = np.random.default_rng(5).normal(size=(40, 3))
    rows[:21, 1] = 7.0
    rows[:19, 2] = 7.0
    assert columns_with_zero_mad(rows).tolist() == [False, True, False]


def test_consistency_factor_is_one_over_the_variance_of_the_innermost_share():
    z = np.random.default_rng(6).normal(size=400_000)
    inner = np.sort(np.abs(z))[:200_000]
    assert consistency_factor(1, 0.5) == pytest.approx(1 / np.mean(inner**2), rel=0.02)
    assert consistency_factor(4, 1.0) == 1.0


def test_least_rows():
    assert [least_rows(d) for d in (1, 2, 5)] == [3, 4, 10]
