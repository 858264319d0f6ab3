"""Standardised weights, models from given weights, and numbers of parameters."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import discriminant as dd
from discriminant.errors import InputError, LinearModelError, OptionError, ShapeError

X, Y = load_iris(return_X_y=True)
RESPONSE = X @ [0.5, -1.0, 2.0, 0.0] + 3.0


@pytest.mark.parametrize(
    "model", [dd.LDA(), dd.Logistic(ridge=0.01), LogisticRegression(max_iter=500)], ids=repr
)
def test_standardised_weights_are_those_of_standardised_columns(model):
    raw = dd.importance(model.fit(X, Y), X)
    np.testing.assert_allclose(raw.standardised, raw.weight * X.std(axis=0))
    np.testing.assert_allclose(raw.share.sum(axis=1), 1.0)
    assert raw.scores == (0, 1, 2)


def test_standardised_weights_of_lda_do_not_depend_on_units():
    units = np.array([10.0, 0.01, 1.0, 3.0])
    here, there = dd.importance(dd.LDA().fit(X, Y)), dd.importance(dd.LDA().fit(X * units, Y))
    np.testing.assert_allclose(here.standardised, there.standardised, rtol=1e-8)


@pytest.mark.parametrize("model", [dd.LDA(), dd.NearestMean(), dd.LeastSquares()], ids=repr)
def test_the_scale_of_stored_moments_is_that_of_the_rows(model):
    model.fit(X, Y)
    np.testing.assert_allclose(dd.importance(model).scale, X.std(axis=0), rtol=1e-9)


def test_regression_stores_the_scale_of_the_features_only():
    model = dd.LinearRegression().fit(X, RESPONSE)
    table = dd.importance(model)
    np.testing.assert_allclose(table.scale, X.std(axis=0), rtol=1e-9)
    assert table.frame().index[0] == "x2" and table.scores == (None,)


def test_columns_of_a_frame_are_matched_by_name():
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = dd.Logistic(ridge=0.01).fit(frame, Y)
    scale = dd.importance(model, frame[list("dbca")]).scale
    np.testing.assert_allclose(scale, X.std(axis=0), rtol=1e-12)
    with pytest.raises(InputError, match="'d'"):
        dd.importance(model, frame[list("abc")].assign(e=1.0))


def test_a_model_without_moments_or_weights_is_named():
    with pytest.raises(OptionError, match="Logistic does not store their moments"):
        dd.importance(dd.Logistic(ridge=0.1).fit(X, Y))
    with pytest.raises(LinearModelError, match="QDA has no weights"):
        dd.importance(dd.QDA().fit(X, Y), X)
    with pytest.raises(ShapeError):
        dd.importance(dd.LDA().fit(X, Y), X[:, :2])


def test_weights_of_computed_features_are_not_those_of_the_columns():
    pytest.importorskip("formulaic", reason="formulas need formulaic")
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    model = dd.Encoded(dd.LDA(), formula="log(a) + b").fit(frame, Y)
    with pytest.raises(LinearModelError, match="Encoded has no weights of its features"):
        dd.importance(model, frame)
    plain = dd.Encoded(dd.LDA()).fit(frame, Y)
    np.testing.assert_allclose(dd.importance(plain, frame).weight, plain.coef_)


# --- given weights --------------------------------------------------------------------------------


def test_the_watermelon_of_the_chapter():
    model = dd.LinearRegression.from_weights(
        [0.2, 0.5, 0.3], 1.0, features=["colour", "root", "sound"]
    )
    melon = pd.DataFrame({"sound": [1.0], "root": [1.0], "colour": [0.5]})
    assert model.predict(melon) == pytest.approx([0.2 * 0.5 + 0.5 + 0.3 + 1])
    assert model.coef_.tolist() == [0.2, 0.5, 0.3] and model.intercept_ == 1.0


def test_given_weights_of_several_responses_are_saved(tmp_path):
    model = dd.LinearRegression.from_weights([[1.0, 2.0], [0.0, -1.0]], [0.5, 0.0])
    assert model.predict([[1.0, 1.0]]).tolist() == [[3.5, -1.0]]
    model.save(tmp_path / "model.dd")
    assert dd.load(tmp_path / "model.dd").predict([[1.0, 1.0]]).tolist() == [[3.5, -1.0]]


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: dd.LinearRegression.from_weights(["a"]), "numbers of shape"),
        (lambda: dd.LinearRegression.from_weights([1.0], [1.0, 2.0]), "a number, or 1 numbers"),
        (lambda: dd.LinearRegression.from_weights([np.inf]), "finite"),
        (
            lambda: dd.LinearRegression.from_weights([1.0, 2.0], features=["a", "a"]),
            "2 different names",
        ),
    ],
)
def test_invalid_weights_are_named(call, words):
    with pytest.raises(OptionError, match=words):
        call()


# --- numbers of parameters ------------------------------------------------------------------------

K, D = 3, 4
FULL = D * (D + 1) // 2


@pytest.mark.parametrize(
    "model, expected",
    [
        (dd.LDA(), (K * D, FULL, K - 1, 0)),
        (dd.LDA(prior=[0.2, 0.3, 0.5]), (K * D, FULL, 0, 0)),
        (dd.LDA(shrinkage=1.0), (K * D, D, K - 1, 0)),
        (dd.LDA(shrinkage=0.5), (K * D, FULL, K - 1, 0)),
        (dd.QDA(), (K * D, K * FULL, K - 1, 0)),
        (dd.QDA(shrinkage=1.0), (K * D, K * D, K - 1, 0)),
        (dd.RDA(pooling=0.5), (K * D, K * FULL, K - 1, 0)),
        (dd.RDA(pooling=1.0), (K * D, FULL, K - 1, 0)),
        (dd.NearestMean(), (K * D, 1, 0, 0)),
        (dd.Fisher(), (K * D, FULL, K - 1, 0)),
        (dd.LaplaceNB(), (K * D, K * D, K - 1, 0)),
        (dd.MDA(components=2, covariance="component"), (6 * D, 6 * FULL, 3 + K - 1, 0)),
        (dd.MDA(components=2, covariance="shared"), (6 * D, FULL, 3 + K - 1, 0)),
        (dd.Logistic(ridge=0.1), (0, 0, 0, (K - 1) * (D + 1))),
        (dd.LeastSquares(), (0, 0, 0, (K - 1) * (D + 1))),
        (dd.SVM(), (0, 0, 0, K * (D + 1))),
        (dd.OneVsRest(dd.LDA()), (K * 2 * D, K * FULL, K, 0)),
        (dd.Decision(dd.LDA()), (K * D, FULL, K - 1, 0)),
        (make_pipeline(StandardScaler(), dd.LDA()), (K * D, FULL, K - 1, 0)),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")
def test_parameters_are_counted_by_kind(model, expected):
    count = dd.count_parameters(model.fit(X, Y))
    assert tuple(count) == expected and count.total == sum(expected)


def test_options_set_after_the_fit_do_not_change_the_count():
    model = dd.LDA().fit(X, Y)
    assert dd.count_parameters(model.set_params(shrinkage=1.0, prior=[0.2, 0.3, 0.5])).total == (
        K * D + FULL + K - 1
    )


def test_two_classes_have_one_score():
    assert dd.count_parameters(dd.Logistic(ridge=0.1).fit(X[Y > 0], Y[Y > 0])).total == D + 1
    assert dd.count_parameters(dd.LinearRegression().fit(X, RESPONSE)).total == D + 1
    without = dd.LinearRegression(fit_intercept=False).fit(X, RESPONSE)
    assert dd.count_parameters(without).total == D


def test_the_bic_of_a_mixture_uses_the_same_count():
    model = dd.MDA(components=2, covariance="class").fit(X, Y)
    penalty = model.bic_ + 2 * model.log_likelihood_
    count = dd.count_parameters(model)
    assert penalty / np.log(len(X)) == pytest.approx(count.total - count.priors + 3)


def test_an_unknown_model_is_named():
    with pytest.raises(LinearModelError, match="parameters of StandardScaler"):
        dd.count_parameters(StandardScaler().fit(X))


@pytest.mark.parametrize(
    ("model", "covariances"),
    [
        (dd.QDA(covariance="diagonal"), 3 * 4),
        (dd.QDA(covariance="spherical"), 3),
        (dd.QDA(covariance="factor", factors=1), 3 * (4 + 4)),
        (dd.QDA(groups=[[0, 1]]), 2 * 10),
        (dd.RobustLDA(), 10),
        (dd.RobustQDA(), 3 * 10),
    ],
)
def test_parameters_of_structured_and_robust_covariances(model, covariances):
    X, y = load_iris(return_X_y=True)
    X += np.random.default_rng(0).normal(scale=0.01, size=X.shape)  # no two rows are equal
    assert dd.count_parameters(model.fit(X, y)) == (12, covariances, 2, 0)


@pytest.mark.parametrize(
    ("model", "means", "covariances"),
    [
        (dd.SDA(), 12, 10),
        (dd.SDA(n_features=2), 6, 3),
        (dd.SDA(n_features=2, shrinkage=1.0), 6, 2),
        (dd.SparseLDA(penalty=0.0), 12, 4),
        (dd.ShrunkenCentroids(threshold=0.0), 12, 4),
    ],
)
def test_parameters_of_models_that_select_features(model, means, covariances):
    X, y = load_iris(return_X_y=True)
    assert dd.count_parameters(model.fit(X, y)) == (means, covariances, 2, 0)


def test_parameters_of_shrunken_centroids_are_those_that_are_left():
    X, y = load_iris(return_X_y=True)
    model = dd.ShrunkenCentroids(threshold=10.0).fit(X, y)
    left = np.count_nonzero(model.differences_)
    p = int(model.differences_.any(axis=0).sum())
    assert p < 4
    assert left < 3 * p
    assert dd.count_parameters(model) == (p + left, p, 2, 0)
