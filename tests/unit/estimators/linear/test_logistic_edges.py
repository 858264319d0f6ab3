"""Logistic regression where rows, weights or threads are not as one expects."""

import threading
import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.datasets import load_digits

from discriminant import GLM, LDA, Fisher, Logistic
from discriminant.errors import (
    CollinearWarning,
    NotConvergedWarning,
    OptionError,
    SeparationWarning,
    ShapeError,
)

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
    rng = np.random.default_rng(0)  # its own: what others drew before must not matter
    X = rng.standard_normal((500, 2000)) * (rng.random((500, 2000)) < 0.01)
    X[:, 0] = 1e8 + rng.standard_normal(500)
    y = rng.integers(0, 2, 500)
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


def test_jeffreys_rejects_other_solvers():
    X, y = RNG.standard_normal((60, 2)), RNG.integers(0, 2, 60)
    with pytest.raises(OptionError, match="solver"):
        Logistic(bias_reduction="jeffreys", solver="gradient").fit(X, y)


# --- separation and Jeffreys' prior ---------------------------------------------------------------


def digits(classes):
    X, y = load_digits(return_X_y=True)
    return X[y < classes], y[y < classes]


@pytest.mark.filterwarnings("ignore::discriminant.errors.ConstantColumnWarning")
def test_separated_digits_are_detected_in_a_few_passes():
    with pytest.warns(SeparationWarning, match="completely separated"):
        model = Logistic().fit(*digits(10))
    assert (model.separation_, model.n_passes_ <= 40) == ("complete", True)


@pytest.mark.parametrize("weight", [1e-9, 1.0, 1e9])
@pytest.mark.parametrize("link", ["logit", "probit", "cloglog", "cauchit"])
def test_overlapping_rows_of_small_weight_are_not_separated(weight, link):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 1))
    y = (X[:, 0] + rng.standard_normal(200) > 0).astype(int)
    light = weight * rng.uniform(0.5, 1.0, 200)
    model = Logistic(link).fit(X, y, sample_weight=light)
    assert (model.separation_, model.converged_) == ("none", True)


@pytest.mark.filterwarnings("ignore::discriminant.errors.ConstantColumnWarning")
def test_jeffreys_of_collinear_columns_is_that_without_one_of_them():
    X, y = digits(3)
    with pytest.warns(CollinearWarning, match=r"'x48', 'x56'.*Drop 1 of them\.$"):
        model = Logistic(bias_reduction="jeffreys").fit(X, y)
    less = np.delete(X, 48, axis=1)
    other = Logistic(bias_reduction="jeffreys").fit(less, y)
    assert model.converged_ and np.isfinite(model.loss_path_).all()
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(less), atol=1e-7)


def test_jeffreys_that_has_not_converged_does_not_advise_a_ridge():
    X, y = RNG.standard_normal((40, 3)), np.arange(40) % 2
    with pytest.warns(
        NotConvergedWarning, match=r"Raise max_iter, or drop nearly collinear columns\.$"
    ):
        Logistic(bias_reduction="jeffreys", max_iter=1).fit(X, y)


def test_jeffreys_of_more_coefficients_than_can_be_is_refused_before_a_step():
    X, y = RNG.standard_normal((9000, 500)), np.arange(9000) % 10
    with pytest.raises(OptionError, match=r"4,509 coefficients and 9,000 rows.*ridge > 0.*merge"):
        Logistic(bias_reduction="jeffreys").fit(X, y)


# --- priors and costs -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [LDA, Fisher, Logistic])
def test_priors_by_label_are_those_in_the_order_of_labels(kind):
    X, y = RNG.standard_normal((60, 2)), np.array(["low", "mid", "high"])[np.arange(60) % 3]
    shares = {"mid": 0.2, "low": 0.5, "high": 0.3}
    model, named = kind(prior=[0.3, 0.5, 0.2]).fit(X, y), kind(prior=shares).fit(X, y)
    np.testing.assert_array_equal(named.predict_proba(X), model.predict_proba(X))
    later = kind().fit(X, y).predict_proba(X, prior=shares)
    np.testing.assert_allclose(later, model.predict_proba(X), rtol=1e-9)


def test_decisions_with_costs_are_log_odds_plus_the_log_of_the_weights():
    X = RNG.standard_normal((80, 2))
    y = (X[:, 0] + RNG.standard_normal(80) > 0).astype(int)
    model = Logistic(class_weight={1: 4.0}).fit(X, y)
    log_zero, log_one = model.predict_log_proba(X).T
    np.testing.assert_allclose(
        model.decision_function(X), log_one - log_zero + np.log(4.0), rtol=1e-9, atol=1e-12
    )
