"""Generalised linear models: laws, closed forms, exact arithmetic. R's answers: tests/parity."""

import json
import pickle
import warnings

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st
from scipy import sparse
from scipy.special import gammaln
from sklearn.linear_model import PoissonRegressor

from discriminant import GLM, LinearRegression, Logistic, LogLinear
from discriminant.errors import (
    BoundaryWarning,
    CollinearWarning,
    InputError,
    NotConvergedWarning,
    OffsetError,
    OptionError,
    ResponseError,
    ShapeError,
    TooFewRowsError,
    WeightError,
)
from discriminant.moments.glm_families import LINKS, SCORES, Deviance
from tests.shared.paths import NIST

FAMILY_LINKS = [(family, link) for family, links in LINKS.items() for link in links]
every_link = pytest.mark.parametrize(
    ("family", "link"), FAMILY_LINKS, ids=[f"{family}-{link}" for family, link in FAMILY_LINKS]
)
LINEAR = json.loads((NIST / "linear.json").read_text())


def problem_of(family, link, seed=0, n=60):
    """Rows and responses whose mean follows the link, well inside what the family can have."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 2))
    score = X @ [0.3, -0.2] + (-1.0 if link == "log" else 0.3 if family == "binomial" else 1.5)
    mean = Deviance(family, link).mean(score)
    y = {
        "gaussian": lambda: mean + 0.05 * rng.standard_normal(n),
        "binomial": lambda: (rng.random(n) < mean).astype(float),
        "poisson": lambda: rng.poisson(20 * mean) / 20,
        "gamma": lambda: rng.gamma(10, mean / 10),
    }[family]()
    return X, y


def both(model):
    return np.append(model.intercept_, model.coef_)


# --- closed forms ---------------------------------------------------------------------------------


@every_link
def test_two_groups_are_fitted_by_the_link_of_their_means(family, link):
    y = np.array([0.2, 0.4, 0.9, 0.3, 0.6, 0.7])
    X = np.array([[0.0], [0], [0], [1], [1], [1]])
    weight = np.array([1.0, 2, 1, 3, 1, 1])
    model = GLM(family, link).fit(X, y, weight)
    low, high = (np.average(y[rows], weights=weight[rows]) for rows in (slice(3), slice(3, 6)))
    ends = SCORES[link](np.array([low, high]))
    np.testing.assert_allclose(both(model), [ends[0], ends[1] - ends[0]], rtol=1e-12)
    np.testing.assert_allclose(model.predict([[0.0], [1.0]]), [low, high], rtol=1e-12)


@pytest.mark.parametrize("name", ["Norris", "Pontius", "NoInt1", "NoInt2", "Longley"])
def test_a_gaussian_fit_has_the_certified_digits_of_nist(name):
    held = LINEAR[name]
    x = np.array(held["x"])
    if held["degree"] > 1:
        x = np.hstack([x**power for power in range(1, held["degree"] + 1)])
    model = GLM(intercept=held["intercept"]).fit(x, held["y"])
    found, certified = model.inference(), held["certified"]
    np.testing.assert_allclose(found.estimate, certified["coef"], rtol=1e-9)
    np.testing.assert_allclose(found.std_error, certified["sd"], rtol=1e-9)
    assert model.deviance_ == pytest.approx(certified["residual_ss"], rel=1e-9)


# --- exact arithmetic -----------------------------------------------------------------------------

ETA = {
    "log": mpmath.exp,
    "identity": lambda s: s,
    "inverse": lambda s: 1 / s,
    "sqrt": lambda s: s * s,
    "logit": lambda s: 1 / (1 + mpmath.exp(-s)),
    "probit": mpmath.ncdf,
    "cloglog": lambda s: 1 - mpmath.exp(-mpmath.exp(s)),
    "cauchit": lambda s: mpmath.mpf(1) / 2 + mpmath.atan(s) / mpmath.pi,
}
VARIANCE = {
    "gaussian": lambda mean: mpmath.mpf(1),
    "binomial": lambda mean: mean * (1 - mean),
    "poisson": lambda mean: mean,
    "gamma": lambda mean: mean * mean,
}


def exact_fit(family, link, X, y, start):
    """Coefficients at which the score equations vanish in 40 digits, by scoring from `start`."""
    rows = [[mpmath.mpf(1), *(mpmath.mpf(float(value)) for value in row)] for row in X]
    beta = mpmath.matrix([mpmath.mpf(float(value)) for value in start])
    with mpmath.workdps(40):
        for _ in range(200):
            pull, curve = mpmath.zeros(3, 1), mpmath.zeros(3, 3)
            for row, response in zip(rows, y, strict=True):
                score = sum(a * b for a, b in zip(row, beta, strict=True))
                mean, rate = ETA[link](score), mpmath.diff(ETA[link], score)
                over = rate / VARIANCE[family](mean)
                for a in range(3):
                    pull[a] += (mpmath.mpf(float(response)) - mean) * over * row[a]
                    for b in range(3):
                        curve[a, b] += rate * over * row[a] * row[b]
            step = mpmath.lu_solve(curve, pull)
            beta = beta + step
            if max(abs(value) for value in step) < mpmath.mpf(10) ** -20:
                return np.array([float(value) for value in beta])
    raise AssertionError("the reference did not converge")


@every_link
def test_coefficients_have_twelve_digits(family, link):
    X, y = problem_of(family, link, seed=3, n=25)
    model = GLM(family, link).fit(X, y)
    exact = exact_fit(family, link, X, y, start=both(model))
    np.testing.assert_allclose(both(model), exact, rtol=1e-12, atol=1e-13)


# --- laws -----------------------------------------------------------------------------------------


@every_link
def test_integer_weights_are_repeated_rows(family, link):
    X, y = problem_of(family, link)
    times = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = GLM(family, link).fit(X, y, times)
    repeated = GLM(family, link).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(both(weighted), both(repeated), rtol=1e-10)
    assert weighted.deviance_ == pytest.approx(repeated.deviance_, rel=1e-10)


@every_link
@settings(max_examples=10)
@given(seed=st.integers(0, 99), power=st.integers(-6, 6))
def test_an_affine_map_of_the_features_changes_no_mean(family, link, seed, power):
    rng = np.random.default_rng(seed)
    X, y = problem_of(family, link)
    mix = np.eye(2) + 0.4 * rng.standard_normal((2, 2))
    mapped = (X @ mix + 10 * rng.standard_normal(2)) * [1.0, 10.0**power]
    found, plain = GLM(family, link).fit(mapped, y), GLM(family, link).fit(X, y)
    np.testing.assert_allclose(found.predict(mapped), plain.predict(X), rtol=1e-10)


@pytest.mark.parametrize("unit", [1e-12, 1e-3, 1e7, 1e12])
@pytest.mark.parametrize(
    ("family", "link"), [pair for pair in FAMILY_LINKS if pair[0] in ("gaussian", "gamma")]
)
def test_the_unit_of_the_response_is_the_unit_of_its_mean(family, link, unit):
    X, y = problem_of(family, link)
    found, plain = GLM(family, link).fit(X, unit * y), GLM(family, link).fit(X, y)
    assert found.converged_
    np.testing.assert_allclose(found.predict(X), unit * plain.predict(X), rtol=1e-11)


@every_link
def test_a_constant_offset_moves_the_intercept_alone(family, link):
    X, y = problem_of(family, link)
    plain = GLM(family, link).fit(X, y)
    moved = GLM(family, link).fit(X, y, offset=np.full(len(y), -0.25))
    np.testing.assert_allclose(both(moved) - [0.25, 0, 0], both(plain), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(moved.predict(X, offset=-0.25), plain.predict(X), rtol=1e-11)


@every_link
def test_an_offset_that_is_a_feature_takes_its_part(family, link):
    X, y = problem_of(family, link)
    plain = GLM(family, link).fit(X, y)
    rest = GLM(family, link).fit(X, y, offset=plain.coef_[1] * X[:, 1])
    np.testing.assert_allclose(rest.coef_, [plain.coef_[0], 0.0], rtol=1e-8, atol=1e-8)
    assert rest.deviance_ == pytest.approx(plain.deviance_, rel=1e-12)


@every_link
def test_the_null_deviance_is_that_of_a_fit_to_noise_left_out(family, link):
    X, y = problem_of(family, link)
    offset = 0.1 * X[:, 1]
    with pytest.warns(UserWarning, match="Constant"):
        alone = GLM(family, link).fit(np.zeros((len(y), 1)), y, offset=offset)
    found = GLM(family, link).fit(X, y, offset=offset).null_deviance_
    assert found == pytest.approx(alone.deviance_, rel=1e-12)


@given(seed=st.integers(0, 99))
def test_a_large_mean_of_the_features_costs_no_digit(seed):
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((80, 2)) * 1024) / 1024
    y = rng.poisson(np.exp(X @ [0.5, -0.3]))
    near, far = GLM("poisson").fit(X, y), GLM("poisson").fit(X + 2.0**26, y)
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=1e-11)
    np.testing.assert_allclose(far.predict(X + 2.0**26), near.predict(X), rtol=1e-11)


def test_a_gaussian_fit_is_linear_regression():
    X, y = problem_of("gaussian", "identity")
    glm, line = GLM().fit(X, 1e9 + y), LinearRegression().fit(X, 1e9 + y)
    np.testing.assert_allclose(glm.coef_, line.coef_, rtol=1e-8)
    np.testing.assert_allclose(glm.predict(X), line.predict(X), rtol=1e-15)


def test_sparse_rows_and_frames_are_fitted_as_their_array():
    X, y = problem_of("poisson", "log")
    X[np.abs(X) < 0.3] = 0.0
    plain = GLM("poisson").fit(X, y)
    for kind in (sparse.csr_matrix(X), pd.DataFrame(X, columns=["a", "b"]), X.astype(np.float32)):
        tolerance = 1e-6 if getattr(kind, "dtype", None) == np.float32 else 1e-11
        found = GLM("poisson").fit(kind, y)
        np.testing.assert_allclose(both(found), both(plain), rtol=tolerance)


# --- ridge and wide rows --------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("d", [3, 620])
def test_a_ridge_ends_where_the_penalised_gradient_vanishes(intercept, d):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, d)) * rng.uniform(0.1, 10, d) + 3
    y, weight = rng.poisson(2, 40), rng.uniform(0.5, 2, 40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollinearWarning)
        model = GLM("poisson", ridge=0.3, intercept=intercept).fit(X, y, weight)
    mean = np.average(X, axis=0, weights=weight) if intercept else np.zeros(d)
    variance = np.average((X - mean) ** 2, axis=0, weights=weight)
    pull = weight * (model.predict(X) - y) / weight.sum()
    slope = (pull @ X + 0.3 * variance * model.coef_) / np.sqrt(variance)
    assert np.abs(slope).max() < 1e-10 and (not intercept or abs(pull.sum()) < 1e-10)


def test_wide_rows_without_a_ridge_are_refused_with_both_sizes():
    with pytest.raises(TooFewRowsError, match=r"20 rows for 600 columns.*ridge > 0"):
        GLM().fit(np.random.default_rng(0).standard_normal((20, 600)), np.arange(20.0))


def test_collinear_columns_are_named_and_change_no_mean():
    X, y = problem_of("poisson", "log")
    twice = np.column_stack([X, X[:, 0] - X[:, 1]])
    with pytest.warns(CollinearWarning, match="'x0', 'x1', 'x2'.*rank 2 of 3"):
        found = GLM("poisson").fit(twice, y)
    assert found.rank_ == 3
    np.testing.assert_allclose(found.predict(twice), GLM("poisson").fit(X, y).predict(X))


def many_columns(n=300, d=1600, seed=0):
    rng = np.random.default_rng(seed)
    X = sparse.random(n, d, density=0.01, format="csr", random_state=seed)
    score = 3.0 * (X[:, :200] @ rng.standard_normal(200))
    return X, score, rng


def test_many_sparse_columns_are_fitted_as_logistic_regression_fits_them():
    X, score, rng = many_columns()
    y = (rng.random(300) < 1 / (1 + np.exp(-score))).astype(float)
    ours, theirs = GLM("binomial", ridge=0.1).fit(X, y), Logistic(ridge=0.1).fit(X, y)
    assert ours.converged_ and ours.coef_ == pytest.approx(theirs.coef_[0], abs=1e-7)
    assert ours.intercept_ == pytest.approx(float(theirs.intercept_[0]), abs=1e-9)


@pytest.mark.parametrize("kind", [("poisson", "log"), ("gaussian", "identity"), ("gamma", "log")])
def test_many_sparse_columns_are_fitted_as_the_same_dense_ones(kind):
    X, score, rng = many_columns()
    mean = np.exp(score) if kind[0] != "gaussian" else 1e3 + score
    draw = {"poisson": rng.poisson, "gaussian": rng.normal, "gamma": lambda m: rng.gamma(2, m / 2)}
    y = draw[kind[0]](mean).astype(float)
    sparse_fit, dense_fit = (GLM(*kind, ridge=1.0).fit(rows, y) for rows in (X, X.toarray()))
    assert sparse_fit.converged_
    np.testing.assert_allclose(sparse_fit.predict(X), dense_fit.predict(X), rtol=1e-5)


def test_many_sparse_columns_whose_way_is_long_are_fitted_by_the_directions_of_their_rows():
    X, score, rng = many_columns(60)
    y = rng.poisson(np.exp(score)).astype(float)
    quick = GLM("poisson", ridge=1e-4, max_iter=60).fit(X, y)
    assert quick.converged_
    np.testing.assert_allclose(
        quick.predict(X), GLM("poisson", ridge=1e-4).fit(X.toarray(), y).predict(X), rtol=1e-8
    )


def test_a_start_from_some_of_many_rows_leads_to_the_same_end_in_few_passes():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200_000, 3))
    y = rng.poisson(np.exp(X @ [0.3, -0.2, 0.1]))
    exact = PoissonRegressor(alpha=0.0, solver="newton-cholesky", tol=1e-12).fit(X, y)
    model = GLM("poisson").fit(X, y)
    np.testing.assert_allclose(model.coef_, exact.coef_, rtol=1e-9)
    assert model.n_passes_ <= 6


@pytest.mark.parametrize("rows", [400, 40_000])
def test_standard_errors_of_gamma_with_log_link_are_those_of_least_squares(rows):
    # The expected curvature of a row is 1 whatever its mean, so the covariance is (Z'Z)^-1.
    rng = np.random.default_rng(3)
    X = rng.standard_normal((rows, 3)) * [1.0, 5.0, 0.2] + [0.0, 40.0, -1.0]
    y = rng.gamma(2.0, np.exp((X - [0.0, 40.0, -1.0]) @ [0.3, -0.05, 1.0]))
    model = GLM("gamma", "log").fit(X, y)
    Z = np.column_stack([np.ones(rows), X])
    mean = np.exp(Z @ np.append(model.intercept_, model.coef_))
    dispersion = (((y - mean) / mean) ** 2).sum() / (rows - 4)
    np.testing.assert_allclose(
        np.sum(Z * ((y - mean) / mean)[:, None], axis=0) / rows, 0, atol=1e-11
    )
    assert model.dispersion_ == pytest.approx(dispersion, rel=1e-10)
    wanted = np.sqrt(dispersion * np.diagonal(np.linalg.inv(Z.T @ Z)))
    np.testing.assert_allclose(model.inference().std_error, wanted, rtol=1e-8)


@pytest.mark.parametrize("responses", ["counts", "large counts", "shares"])
def test_poisson_log_likelihood_is_the_sum_of_the_log_probabilities(responses):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((300, 2))
    y = rng.poisson(np.exp(X @ [0.5, -0.3] + (8.0 if responses == "large counts" else 0.5)))
    y = y + 0.5 if responses == "shares" else y.astype(float)
    model = GLM("poisson").fit(X, y)
    mean = model.predict(X)
    wanted = (y * np.log(mean) - mean - gammaln(y + 1.0)).sum()
    assert model.inference().likelihood.log_likelihood == pytest.approx(wanted, rel=1e-12)


# --- convergence ----------------------------------------------------------------------------------


def test_a_fit_stopped_early_says_after_how_many_passes_and_how_far_from_the_end():
    X, y = problem_of("binomial", "cauchit")
    with pytest.warns(NotConvergedWarning, match=r"GLM stopped after 2 passes.*tolerance 1.0e-08"):
        model = GLM("binomial", "cauchit", max_iter=2).fit(X, y)
    assert not model.converged_


@pytest.mark.parametrize("link", LINKS["binomial"][:4])
def test_separated_classes_warn_of_infinite_estimates(link):
    X = np.arange(10.0)[:, None]
    with pytest.warns((BoundaryWarning, NotConvergedWarning)):
        model = GLM("binomial", link).fit(X, (X[:, 0] > 4.5).astype(float))
    assert not model.converged_


def test_group_without_events_warns_of_infinite_estimate():
    X = np.repeat([[0.0], [1.0]], 5, axis=0)
    with pytest.warns(BoundaryWarning, match="no finite estimate.*ridge > 0"):
        model = GLM("poisson").fit(X, [2, 1, 3, 2, 1, 0, 0, 0, 0, 0])
    assert not model.converged_


def test_loss_path_ends_at_half_the_mean_deviance_and_is_reported():
    X, y = problem_of("poisson", "log")
    told = []
    model = GLM("poisson", progress=lambda *facts: told.append(facts)).fit(X, y)
    assert [value for _, value, _ in told] == model.loss_path_.tolist()
    assert model.loss_path_[-1] == pytest.approx(model.deviance_ / 2 / len(y), rel=1e-9)


def test_a_pickled_model_carries_no_rows():
    rng = np.random.default_rng(0)
    few, many = (
        len(pickle.dumps(GLM("poisson").fit(rng.standard_normal((n, 2)), rng.poisson(2, n))))
        for n in (100, 5000)
    )
    assert abs(many - few) < 500


# --- log-linear -----------------------------------------------------------------------------------


def test_log_linear_is_least_squares_on_the_logarithm():
    X, y = problem_of("gamma", "log")
    found, line = LogLinear().fit(X, y), LinearRegression().fit(X, np.log(y))
    np.testing.assert_allclose(both(found), both(line), rtol=1e-11)
    np.testing.assert_allclose(found.predict(X), np.exp(line.predict(X)), rtol=1e-12)


def test_log_linear_predicts_a_median_or_a_mean():
    X, y = problem_of("gamma", "log")
    line = LinearRegression().fit(X, np.log(y))
    left = np.log(y) - line.predict(X)
    variance = left @ left / (len(y) - 3)
    factors = {
        kind: LogLinear(predicted=kind).fit(X, y).predict(X) / np.exp(line.predict(X))
        for kind in ("median", "mean", "smearing")
    }
    wanted = {"median": 1.0, "mean": np.exp(variance / 2), "smearing": np.exp(left).mean()}
    for kind, factor in factors.items():
        np.testing.assert_allclose(factor, wanted[kind], rtol=1e-11)


# --- bad input ------------------------------------------------------------------------------------

X6 = np.arange(6.0)[:, None]
Y6 = np.array([1.0, 2, 1, 3, 2, 4])
SHARE = Y6 / 4


BAD = {
    "a negative count": (
        lambda: GLM("poisson").fit(X6, [1, 2, -1, 3, -2, 4]),
        ResponseError,
        r"row 2 \(and 1 more\).*0 or more.*'poisson'",
    ),
    "a share above one": (
        lambda: GLM("binomial").fit(X6, SHARE * 2),
        ResponseError,
        "row 3.*from 0 to 1.*'binomial'",
    ),
    "a gamma response of zero": (
        lambda: GLM("gamma").fit(X6, Y6 - 1),
        ResponseError,
        "row 0.*above 0.*'gamma'",
    ),
    "the logarithm of zero": (lambda: LogLinear().fit(X6, Y6 - 1), ResponseError, "row 0.*above 0"),
    "no events": (lambda: GLM("poisson").fit(X6, Y6 * 0), ResponseError, "0 in every row"),
    "all successes": (lambda: GLM("binomial").fit(X6, Y6**0), ResponseError, "1 in every row"),
    "no events where it counts": (
        lambda: GLM("poisson").fit(X6, X6[:, 0] > 4, [1, 1, 1, 1, 1, 0]),
        ResponseError,
        "0 in every row",
    ),
    "a missing response": (
        lambda: GLM().fit(X6, [1, 2, np.nan, 3, 4, 5]),
        ResponseError,
        "NaN.*row 2",
    ),
    "two responses": (
        lambda: GLM().fit(X6, np.column_stack([Y6, Y6])),
        ResponseError,
        r"shape \(6, 2\)",
    ),
    "a link the family cannot take": (
        lambda: GLM("gamma", "logit").fit(X6, Y6),
        OptionError,
        "link='logit'.*inverse, log, identity.*'gamma'",
    ),
    "an unknown family": (
        lambda: GLM("tweedie").fit(X6, Y6),
        OptionError,
        "family='tweedie'.*gaussian, binomial, poisson, gamma",
    ),
    "a family that is no name": (lambda: GLM(["poisson"]).fit(X6, Y6), OptionError, "family="),
    "a negative weight": (
        lambda: GLM().fit(X6, Y6, [1, 1, 1, -2, 1, 1]),
        WeightError,
        "row 3.*-2.*negative",
    ),
    "no weight at all": (lambda: GLM().fit(X6, Y6, np.zeros(6)), WeightError, "zero for every row"),
    "too few weights": (lambda: GLM().fit(X6, Y6, np.ones(5)), ShapeError, "5.*6 rows"),
    "too short an offset": (lambda: GLM().fit(X6, Y6, offset=[1.0]), ShapeError, "offset has 1.*6"),
    "an offset that is missing": (
        lambda: GLM().fit(X6, Y6, offset=[0, 0, np.nan, 0, 0, 0]),
        OffsetError,
        "row 2.*not a finite number",
    ),
    "an offset in words": (lambda: GLM().fit(X6, Y6, offset=["a"] * 6), OffsetError, "numbers"),
    "an offset of two columns": (
        lambda: GLM().fit(X6, Y6, offset=np.zeros((6, 2))),
        OffsetError,
        r"shape \(6, 2\) for 6 rows",
    ),
    "an offset forgotten": (
        lambda: GLM().fit(X6, Y6, offset=np.ones(6)).predict(X6),
        OffsetError,
        "with an offset.*offset=0",
    ),
    "one row": (lambda: GLM().fit([[1.0]], [1.0]), TooFewRowsError, "n_samples=1"),
    "a ridge below zero": (lambda: GLM(ridge=-1).fit(X6, Y6), OptionError, "ridge=-1"),
    "no passes": (lambda: GLM(max_iter=0).fit(X6, Y6), OptionError, "max_iter=0"),
    "a prediction that is neither": (
        lambda: LogLinear(predicted="mode").fit(X6, Y6),
        OptionError,
        "predicted='mode'.*median, mean, smearing",
    ),
    "responses whose squares are out of range": (
        lambda: GLM("gamma", link="log").fit(X6, 1e-200 * (1.0 + X6[:, 0])),
        ResponseError,
        r"absolute response is 6e-200.*between 1e-150 and 1e\+150.*y / 6e-200",
    ),
    "responses whose fourth powers are": (
        lambda: GLM("gaussian", link="inverse").fit(X6, 1e90 * (1.0 + X6[:, 0])),
        ResponseError,
        r"between 1e-70 and 1e\+70",
    ),
    "fewer responses than rows": (lambda: GLM().fit(X6, Y6[:4]), ShapeError, "y has 4.*6"),
}


@pytest.mark.parametrize("case", BAD, ids=list(BAD))
def test_bad_input_is_refused_with_its_place_and_a_way_out(case):
    ask, kind, words = BAD[case]
    with pytest.raises(kind, match=words) as caught:
        ask()
    assert isinstance(caught.value, InputError)
