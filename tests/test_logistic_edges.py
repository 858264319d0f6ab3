"""Logistic regression where rows, weights or threads are not as one expects."""

import threading
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from discriminant import GLM, Logistic
from discriminant.errors import OptionError, SeparationWarning, ShapeError

RNG = np.random.default_rng(0)


def test_no_thread_loses_its_warning():
    X = np.vstack([RNG.normal(-3, 1, (20, 2)), RNG.normal(3, 0.1, (20, 2))])
    y, warned, filters = np.repeat([0, 1], 20), [], list(warnings.filters)

    def work():
        for _ in range(20):
            try:
                Logistic().fit(X, y)
            except SeparationWarning:
                warned.append(1)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (len(warned), list(warnings.filters)) == (80, filters)


def test_rows_of_no_weight_are_not_sampled():
    X, y = RNG.standard_normal((40_000, 60)), RNG.integers(0, 3, 40_000)
    chosen = RNG.choice(len(X), 800, replace=False)
    weight = np.zeros(len(X))
    weight[chosen] = 1.0
    whole, part = Logistic().fit(X, y, sample_weight=weight), Logistic().fit(X[chosen], y[chosen])
    np.testing.assert_allclose(whole.predict_proba(X[:9]), part.predict_proba(X[:9]), atol=1e-7)


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
def test_a_row_far_on_its_own_side_changes_nothing(link):
    X = RNG.standard_normal((400, 1))
    y = (RNG.random(400) < 1 - np.exp(-np.exp(X[:, 0]))).astype(int)
    plain = Logistic(link).fit(X, y)
    more = Logistic(link).fit(np.append(X, [[3000.0]], axis=0), np.append(y, 1))
    np.testing.assert_allclose(more.coef_, plain.coef_, rtol=1e-8)


def test_a_sparse_column_far_from_zero_is_standardised_about_its_mean():
    X = RNG.standard_normal((500, 2000)) * (RNG.random((500, 2000)) < 0.01)
    X[:, 0] = 1e8 + RNG.standard_normal(500)
    y = RNG.integers(0, 2, 500)
    thin, full = (Logistic(ridge=0.01).fit(rows, y) for rows in (sparse.csr_array(X), X))
    np.testing.assert_allclose(thin.coef_, full.coef_, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore::discriminant.errors.ConstantColumnWarning")
@pytest.mark.parametrize("options", [{}, {"solver": "lbfgs"}, {"bias_reduction": "jeffreys"}])
def test_without_intercept_and_columns_every_class_is_as_likely(options):
    model = Logistic(intercept=False, **options).fit(np.zeros((20, 2)), np.repeat([0, 1], 10))
    assert (model.predict_proba([[0.0, 0.0]]) == 0.5).all() and model.converged_


def test_classes_apart_only_by_an_intercept_have_a_maximum_without_one():
    X, y = np.arange(1.0, 7.0)[:, None], np.repeat([0, 1], 3)
    model = Logistic("probit", intercept=False).fit(X, y)
    other = GLM("binomial", "probit", intercept=False).fit(X, y)
    assert (model.separation_, model.converged_) == ("none", True)
    np.testing.assert_allclose(model.coef_[0], other.coef_, rtol=1e-8)


def test_a_prior_is_held_against_the_shares_that_were_fitted():
    X, y = RNG.standard_normal((300, 3)), (RNG.random(300) < 0.2).astype(int)
    model = Logistic(intercept=False, class_weight="balanced", ridge=0.01).fit(X, y)
    np.testing.assert_allclose(
        model.predict_proba(X, prior=[0.5, 0.5]), model.predict_proba(X), atol=1e-12
    )


@pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")
def test_weights_of_all_sizes_do_not_keep_it_from_the_least_loss():
    found, least = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((10, 2)), rng.permutation(np.repeat([0, 1], 5))
        weight = rng.choice([1e-3, 1.0, 1e3], 10)
        model = Logistic().fit(X, y, sample_weight=weight)
        if model.separation_ != "none":
            continue

        def loss(b, X=X, y=y, weight=weight):
            against = np.where(y == 1, -1, 1) * (X @ b[1:] + b[0])
            return np.average(np.logaddexp(0, against), weights=weight)

        found.append(loss(np.append(model.intercept_, model.coef_)))
        least.append(minimize(loss, np.zeros(3), method="Nelder-Mead", tol=1e-12).fun)
    assert len(found) >= 5
    assert (np.array(found) <= np.array(least) * (1 + 1e-6)).all()


def test_rows_of_another_width_are_refused_for_a_profile():
    X, y = RNG.standard_normal((200, 2)), RNG.integers(0, 2, 200)
    model = Logistic().fit(X, y)
    with pytest.raises(ShapeError, match="3"):
        model.intervals(method="profile", X=np.hstack([X, X[:, :1]]), y=y)


def test_a_way_that_is_not_there_is_refused():
    X, y = RNG.standard_normal((60, 2)), RNG.integers(0, 2, 60)
    with pytest.raises(OptionError, match="solver"):
        Logistic(bias_reduction="jeffreys", solver="gradient").fit(X, y)
