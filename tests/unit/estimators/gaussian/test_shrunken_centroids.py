"""Nearest shrunken centroids: options, thresholds, unusual columns, partitioned rows."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_wine

import discriminant as dd
from discriminant.assessment.resampling.held_out_penalty_path import SelectionPath
from discriminant.errors import (
    ConstantColumnWarning,
    LabelError,
    NoFeatureSelectedWarning,
    OptionError,
    SeparatingColumnWarning,
    TooFewRowsError,
)


def few_of_many(n=60, d=40, seed=0):
    """Rows of three classes that differ in the first four columns only."""
    rng = np.random.default_rng(seed)
    y = np.repeat(["ash", "birch", "cedar"], n // 3)
    X = rng.normal(size=(n, d)) * rng.uniform(0.5, 2.0, d)
    X[y == "birch", :2] += 3.0
    X[y == "cedar", 2:4] -= 3.0
    return X, y


# --- the rule -------------------------------------------------------------------------------------


def test_without_threshold_classes_are_gaussian_with_the_offset_in_each_standard_deviation():
    X, y = load_wine(return_X_y=True)
    model = dd.ShrunkenCentroids(threshold=0.0, offset_percent=25.0).fit(X, y)
    means = np.array([X[y == k].mean(axis=0) for k in range(3)])
    sd = np.sqrt(((X - means[y]) ** 2).sum(axis=0) / (len(y) - 3))
    scales = sd + np.quantile(sd, 0.25)
    distance = (((X[:, None] - means) / scales) ** 2).sum(axis=2)
    scores = np.log(np.bincount(y) / len(y)) - 0.5 * distance
    wanted = scores - np.logaddexp.reduce(scores, axis=1)[:, None]
    np.testing.assert_allclose(model.predict_log_proba(X), wanted, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.centroids_, means, rtol=1e-12)


def test_columns_that_differ_are_selected_and_the_others_get_the_overall_mean():
    X, y = few_of_many()
    model = dd.ShrunkenCentroids(threshold=3.0).fit(X, y)
    assert model.selected_features_.tolist() == ["x0", "x1", "x2", "x3"]
    assert model.n_selected_ == 4 and model.threshold_ == 3.0
    others = ~model.support_
    overall = np.tile(X.mean(axis=0), (3, 1))
    np.testing.assert_allclose(model.centroids_[:, others], overall[:, others], rtol=1e-12)
    assert not model.coef_[:, others].any() and not model.differences_[:, others].any()


def test_a_unit_common_to_all_columns_changes_nothing():
    X, y = few_of_many()
    one, other = (dd.ShrunkenCentroids().fit(X * unit, y) for unit in (1.0, 1e-6))
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X * 1e-6), atol=1e-12)


def test_columns_of_extreme_size_give_finite_posteriors():
    X, y = few_of_many()
    X[:, 0] *= 1e200
    X[:, 1] *= 1e-200
    model = dd.ShrunkenCentroids(threshold=0.5).fit(X, y)
    assert np.isfinite(model.predict_log_proba(X)).all()
    assert np.isfinite(model.centroids_).all() and model.support_[0]


def test_sparse_rows_give_the_model_of_dense_rows():
    X, y = few_of_many()
    X[np.abs(X) < 0.5] = 0.0
    one, other = (dd.ShrunkenCentroids(threshold="cv").fit(rows, y) for rows in (X, csr_array(X)))
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-12)
    np.testing.assert_allclose(one.cv_.error, other.cv_.error, atol=1e-12)


# --- unusual columns and classes ------------------------------------------------------------------


def test_a_constant_column_is_ignored_with_a_warning():
    X, y = few_of_many()
    wider = np.column_stack([X, np.full(len(X), 0.1)])
    with pytest.warns(ConstantColumnWarning, match="'x40'"):
        model = dd.ShrunkenCentroids().fit(wider, y)
    wanted = dd.ShrunkenCentroids().fit(X, y)
    assert model.offset_ == wanted.offset_ and not model.support_[-1]
    np.testing.assert_allclose(model.predict_proba(wider), wanted.predict_proba(X), atol=1e-13)


@pytest.mark.filterwarnings("error::discriminant.errors.SeparatingColumnWarning")
def test_a_column_without_variance_in_classes_has_the_offset_as_its_scale():
    X, y = few_of_many()
    X[:, 5] = np.where(y == "ash", 1.0, 2.0)
    model = dd.ShrunkenCentroids(threshold=0.5).fit(X, y)
    assert model.scales_[5] == model.offset_ and model.support_[5]
    assert np.isfinite(model.predict_log_proba(X)).all()


def test_without_an_offset_such_a_column_determines_the_class():
    y = np.repeat(["a", "b"], 10)
    X = np.column_stack([np.random.default_rng(0).normal(size=20), (y == "b") * 1.0])
    with pytest.warns(SeparatingColumnWarning, match="'x1'"):
        model = dd.ShrunkenCentroids(threshold=0.0, offset_percent=0.0).fit(X, y)
    assert (model.predict(X) == y).all()


def test_a_threshold_that_removes_every_feature_is_named():
    X, y = few_of_many()
    with pytest.warns(NoFeatureSelectedWarning, match=r"threshold=50 removes every .* 'x\d'\)"):
        model = dd.ShrunkenCentroids(threshold=50.0, prior=[0.2, 0.3, 0.5]).fit(X, y)
    assert model.n_selected_ == 0 and set(model.predict(X)) == {"cedar"}
    np.testing.assert_allclose(model.predict_proba(X), np.tile([0.2, 0.3, 0.5], (60, 1)))


def test_constant_columns_alone_are_named():
    with (
        pytest.warns(NoFeatureSelectedWarning, match="All columns are constant"),
        pytest.warns(ConstantColumnWarning, match="'x0', 'x1'"),
    ):
        model = dd.ShrunkenCentroids().fit(np.ones((6, 2)), list("aabbbb"))
    assert set(model.predict(np.ones((2, 2)))) == {"b"}


def test_a_class_with_one_row_is_refused_and_named():
    X, y = few_of_many()
    y[:20] = ["rare", *["birch"] * 19]
    with pytest.raises(TooFewRowsError, match=r"Class 'rare' has 1 row.*needs at least 2"):
        dd.ShrunkenCentroids().fit(X, y)
    weight = np.where(y == "rare", 2.0, 1.0)
    twice = dd.ShrunkenCentroids().fit(X, y, sample_weight=weight)
    repeated = dd.ShrunkenCentroids().fit(np.vstack([X[:1], X]), np.append("rare", y))
    np.testing.assert_allclose(twice.predict_proba(X), repeated.predict_proba(X), atol=1e-12)


def test_one_class_is_refused():
    with pytest.raises(LabelError):
        dd.ShrunkenCentroids(threshold="cv").fit([[0.0], [1.0], [2.0]], list("aaa"))


# --- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": -1.0}, "a number of 0 or more, or 'cv'"),
        ({"threshold": "auto"}, "a number of 0 or more, or 'cv'"),
        ({"threshold": np.nan}, "a number of 0 or more, or 'cv'"),
        ({"offset_percent": 101}, "a number from 0 to 100"),
        ({"threshold": "cv", "thresholds": 1}, "a whole number of 2 or more, or an array"),
        ({"threshold": "cv", "thresholds": [0.0, -1.0]}, "an array of numbers of 0 or more"),
        ({"threshold": "cv", "folds": 1}, "folds=1"),
    ],
    ids=str,
)
def test_invalid_options_are_named(options, message):
    with pytest.raises(OptionError, match=message):
        dd.ShrunkenCentroids(**options).fit(*few_of_many())


def test_moments_have_no_rows_to_hold_out():
    X, y = few_of_many()
    moments = dd.moments(X, y, detail="diagonal")
    with pytest.raises(OptionError, match=r"threshold='cv'.*a number if there are no rows"):
        dd.ShrunkenCentroids(threshold="cv").fit_moments(moments)
    model = dd.ShrunkenCentroids(threshold=2.0).fit_moments(moments)
    np.testing.assert_allclose(
        model.coef_, dd.ShrunkenCentroids(threshold=2.0).fit(X, y).coef_, rtol=1e-12
    )


# --- cross-validation -----------------------------------------------------------------------------


def test_the_largest_threshold_with_the_smallest_error_is_used():
    X, y = few_of_many()
    model = dd.ShrunkenCentroids(threshold="cv", thresholds=[0.0, 1.0, 3.0, 40.0]).fit(X, y)
    path = model.cv_
    assert path.penalty.tolist() == [0.0, 1.0, 3.0, 40.0]
    assert path.n_features[[0, -1]].tolist() == [40, 0] and (np.diff(path.n_features) < 0).all()
    assert path.error[-1] == pytest.approx(2 / 3)
    assert model.threshold_ == path.penalty[path.error == path.error.min()].max()
    assert "features, error=" in repr(path)


def test_ties_go_to_the_largest_penalty():
    penalty, number = np.arange(4.0), np.array([9, 5, 3, 0])
    path = SelectionPath(penalty, number, np.array([0.2, 0.1, 0.1, 0.5]), np.zeros(4), np.zeros(0))
    assert path.best() == 2


def test_rows_added_and_removed_keep_the_chosen_threshold():
    X, y = few_of_many()
    model = dd.ShrunkenCentroids(threshold="cv").fit(X, y)
    chosen = model.threshold_
    more, labels = few_of_many(seed=1)
    model.partial_fit(more, labels).forget(X[:5], y[:5])
    assert model.threshold_ == chosen
    wanted = dd.ShrunkenCentroids(threshold=chosen)
    wanted.fit(np.vstack([X[5:], more]), np.append(y[5:], labels))
    np.testing.assert_allclose(model.coef_, wanted.coef_, rtol=1e-8, atol=1e-10)


@pytest.mark.filterwarnings("ignore::discriminant.errors.ClassMissingWarning")
def test_a_class_that_is_missing_from_a_training_set_is_not_counted():
    X, y = few_of_many()
    fold = np.where(y == "ash", 0, np.arange(len(y)) % 4)
    options = {"threshold": "cv", "thresholds": [0.0, 1.0], "prior": [0.2, 0.3, 0.5]}
    model = dd.ShrunkenCentroids(**options, folds=fold).fit(X, y)
    assert np.isfinite(model.cv_.log_loss).all() and (model.cv_.error < 0.1).all()


def rows_with_sites(tmp_path):
    """Rows in a Parquet file of several row groups, with a column of folds."""
    X, y = few_of_many(n=120)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    order = np.random.default_rng(3).permutation(len(y))
    frame = frame.assign(kind=y, site=np.arange(len(y)) % 5).iloc[order].reset_index(drop=True)
    frame["site"] = "site" + frame["site"].astype(str)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pandas(frame), path, row_group_size=30)
    return frame, dd.rows(str(path), target="kind", exclude=["site"])


@pytest.mark.parametrize(
    "model",
    [
        dd.ShrunkenCentroids(threshold=2.0),
        dd.SparseLDA(penalty=0.2),
        dd.SDA(n_features=5),
        dd.SDA(n_features="fdr"),
    ],
    ids=repr,
)
def test_partitioned_rows_give_the_model_of_rows_in_memory(model, tmp_path):
    frame, rows = rows_with_sites(tmp_path)
    X, y = frame.drop(columns=["kind", "site"]), frame["kind"]
    ours = type(model)(**model.get_params()).fit(rows)
    wanted = model.fit(X, y)
    assert ours.selected_features_.tolist() == wanted.selected_features_.tolist()
    np.testing.assert_allclose(ours.coef_, wanted.coef_, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", [dd.ShrunkenCentroids, dd.SparseLDA])
def test_partitioned_rows_in_the_same_folds_give_the_same_path(kind, tmp_path):
    frame, rows = rows_with_sites(tmp_path)
    X, y = frame.drop(columns=["kind", "site"]), frame["kind"]
    option = kind._penalty_option
    ours = kind(**{option: "cv"}, folds="site").fit(rows)
    wanted = kind(**{option: "cv"}, folds=frame["site"].to_numpy()).fit(X, y)
    for name in ("penalty", "n_features", "error", "log_loss"):
        found = getattr(ours.cv_, name)
        np.testing.assert_allclose(found, getattr(wanted.cv_, name), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(ours.coef_, wanted.coef_, rtol=1e-8, atol=1e-10)
