"""Shrinkage discriminant analysis against LDA, F tests, matrix functions and its own moments."""

import tracemalloc

import numpy as np
import pytest
from scipy.linalg import fractional_matrix_power
from scipy.stats import false_discovery_control
from sklearn.datasets import load_wine
from sklearn.feature_selection import f_classif

import discriminant as dd
from discriminant.errors import ConstantColumnWarning, NoFeatureSelectedWarning, OptionError

NONE = {"shrinkage": 0.0, "variance_shrinkage": 0.0, "frequency_shrinkage": 0.0}


def few_rows(n=40, d=600, seed=0, weighted=False):
    """Fewer rows than columns; neighbouring columns are correlated."""
    rng = np.random.default_rng(seed)
    y = np.repeat(["ash", "birch"], [n // 2 - 5, n - n // 2 + 5])
    noise = rng.normal(size=(n, d + 1))
    X = noise[:, :-1] + 0.8 * noise[:, 1:] + 5.0
    X[y == "birch", :5] += 2.0
    return X, y, rng.integers(1, 4, n).astype(float) if weighted else None


def test_without_shrinkage_it_is_lda():
    X, y = load_wine(return_X_y=True)
    model, wanted = dd.SDA(**NONE).fit(X, y), dd.LDA().fit(X, y)
    np.testing.assert_allclose(
        model.predict_log_proba(X), wanted.predict_log_proba(X), rtol=1e-8, atol=1e-8
    )


def test_without_correlations_and_variance_shrinkage_it_is_diagonal_lda():
    X, y = load_wine(return_X_y=True)
    model, wanted = dd.SDA(**NONE | {"shrinkage": 1.0}).fit(X, y), dd.LDA(shrinkage=1.0).fit(X, y)
    np.testing.assert_allclose(
        model.predict_log_proba(X), wanted.predict_log_proba(X), rtol=1e-10, atol=1e-10
    )


def test_scores_without_shrinkage_are_f_statistics():
    X, y = load_wine(return_X_y=True)
    model = dd.SDA(**NONE | {"shrinkage": 1.0}, n_features=4).fit(X, y)
    statistics, p_values = f_classif(X, y)
    np.testing.assert_allclose(model.scores_ / 2, statistics, rtol=1e-10)
    np.testing.assert_allclose(model.p_values_, p_values, rtol=1e-8)
    assert model.ranking_.tolist() == np.argsort(-statistics)[:4].tolist()


@pytest.mark.parametrize("amount", [0.0, 0.3])
def test_cat_scores_are_t_scores_times_the_root_of_the_inverse_correlations(amount):
    X, y = load_wine(return_X_y=True)
    t = dd.SDA(shrinkage=1.0).fit(X, y).cat_scores_
    centred = X - np.array([X[y == k].mean(axis=0) for k in range(3)])[y]
    R = (1 - amount) * np.corrcoef(centred.T) + amount * np.eye(13)
    model = dd.SDA(shrinkage=amount).fit(X, y)
    np.testing.assert_allclose(
        model.cat_scores_, t @ fractional_matrix_power(R, -0.5), rtol=1e-8, atol=1e-8
    )


def test_features_by_false_discovery_rate_are_those_of_benjamini_and_hochberg():
    X, y, _ = few_rows(n=60)
    model = dd.SDA(n_features="fdr", fdr=0.1, shrinkage=1.0).fit(X, y)
    passing = false_discovery_control(model.p_values_, method="bh") <= 0.1
    assert 0 < passing.sum() < 600 and np.array_equal(model.support_, passing)


def test_no_discovery_is_named():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 30)), np.repeat(["a", "b"], [10, 50])
    with pytest.warns(NoFeatureSelectedWarning, match=r"at most 0.001.* 'x\d+'\)"):
        model = dd.SDA(n_features="fdr", fdr=0.001).fit(X, y)
    assert model.n_selected_ == 0 and set(model.predict(X)) == {"b"}


# --- wide tables ----------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", [{}, {"n_features": 20}, {"shrinkage": 0.4}], ids=str)
def test_rows_of_a_wide_table_give_the_model_of_their_moments(options, weighted):
    X, y, weight = few_rows(weighted=weighted)
    wide = dd.SDA(**options).fit(X, y, sample_weight=weight)
    assert wide.moments_.detail == "rows"
    tall = dd.SDA(**options).fit_moments(dd.moments(X, y, weight, detail="fourth"))
    assert tall.moments_.detail == "fourth"
    for name in ("shrinkage_", "variance_shrinkage_", "frequency_shrinkage_"):
        assert getattr(wide, name) == pytest.approx(getattr(tall, name), rel=1e-9)
    np.testing.assert_allclose(wide.cat_scores_, tall.cat_scores_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        wide.predict_log_proba(X), tall.predict_log_proba(X), rtol=1e-6, atol=1e-7
    )


def test_no_matrix_of_all_pairs_of_columns_is_formed():
    X, y, _ = few_rows(d=20_000)
    tracemalloc.start()
    dd.SDA(n_features=100).fit(X, y).predict(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 30 * X.nbytes  # 200 MB; a matrix of all pairs has 3,200 MB


def test_rows_of_a_wide_table_are_added_and_removed():
    X, y, _ = few_rows()
    model = (
        dd.SDA(n_features=10).fit(X[:30], y[:30]).partial_fit(X[30:], y[30:]).forget(X[:4], y[:4])
    )
    wanted = dd.SDA(n_features=10).fit(X[4:], y[4:])
    np.testing.assert_allclose(model.coef_, wanted.coef_, rtol=1e-8, atol=1e-10)


# --- unusual columns and options ------------------------------------------------------------------


@pytest.mark.parametrize("d", [12, 600])
def test_a_constant_column_is_ignored_with_a_warning(d):
    X, y, _ = few_rows(d=d)
    wider = np.column_stack([np.full(len(X), 0.1), X])
    with pytest.warns(ConstantColumnWarning, match="'x0'"):
        model = dd.SDA().fit(wider, y)
    wanted = dd.SDA().fit(X, y)
    assert model.scores_[0] == 0.0 and not model.support_[0]
    np.testing.assert_allclose(
        model.predict_log_proba(wider), wanted.predict_log_proba(X), rtol=1e-8, atol=1e-9
    )


@pytest.mark.parametrize("d", [12, 600])
@pytest.mark.parametrize("shrinkage", ["auto", 0.5, 1.0])
def test_a_column_that_varies_only_between_classes_is_finite(d, shrinkage):
    X, y, _ = few_rows(d=d)
    X[:, 3] = np.where(y == "ash", 1.0, 2.0)
    model = dd.SDA(shrinkage=shrinkage).fit(X, y)
    assert np.isfinite(model.predict_log_proba(X)).all() and np.isfinite(model.cat_scores_).all()


def test_priors_do_not_affect_the_ranking():
    X, y, _ = few_rows(d=30)
    one, other = (dd.SDA(n_features=5, prior=prior).fit(X, y) for prior in (None, [0.9, 0.1]))
    assert one.ranking_.tolist() == other.ranking_.tolist()
    assert other.prior_.tolist() == [0.9, 0.1]
    difference = np.log(one.prior_[1] / one.prior_[0]) - np.log(0.1 / 0.9)
    assert one.intercept_[0] - other.intercept_[0] == pytest.approx(difference)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shrinkage": 1.5}, "shrinkage=1.5.*a number from 0 to 1, or 'auto'"),
        ({"variance_shrinkage": "cv"}, "variance_shrinkage='cv'"),
        ({"frequency_shrinkage": -0.1}, "frequency_shrinkage=-0.1"),
        ({"n_features": 0}, "a whole number of 1 or more, 'fdr' or None"),
        ({"n_features": 31}, "at most 30: the rows have 30 feature"),
        ({"n_features": "fdr", "fdr": 0.0}, "a number above 0, at most 1"),
    ],
    ids=str,
)
def test_invalid_options_are_named(options, message):
    X, y, _ = few_rows(d=30)
    with pytest.raises(OptionError, match=message):
        dd.SDA(**options).fit(X, y)
