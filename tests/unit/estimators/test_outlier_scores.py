"""Scores of unusual rows, and classes of one row each."""

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris

import discriminant as dd
from discriminant.errors import OptionError, ScarceRowsWarning, TooFewRowsError

X, Y = load_iris(return_X_y=True)
FAR = X + 20.0
KINDS = ("mahalanobis", "relative_mahalanobis", "energy")
MODELS = [
    dd.LDA(),
    dd.LDA(shrinkage=0.3),
    dd.LDA(shrinkage=1.0),
    dd.LDA(shrinkage="auto"),
    dd.QDA(),
    dd.RDA(pooling=0.5, shrinkage=0.2),
    dd.NearestMean(),
    dd.MDA(components=2, covariance="class"),
]


def distances(rows, mean, covariance):
    gaps = rows - mean
    return np.einsum("ni,ij,nj->n", gaps, np.linalg.inv(covariance), gaps)


def test_lda_scores_follow_their_definitions():
    model = dd.LDA().fit(X, Y)
    means = np.array([X[k == Y].mean(axis=0) for k in range(3)])
    pooled = np.mean([np.cov(X[k == Y].T) for k in range(3)], axis=0)
    nearest = np.min([distances(FAR, mean, pooled) for mean in means], axis=0)
    np.testing.assert_allclose(model.outlier_scores(FAR), nearest, rtol=1e-8)
    relative = nearest - distances(FAR, X.mean(axis=0), np.cov(X.T))
    np.testing.assert_allclose(
        model.outlier_scores(FAR, "relative_mahalanobis"), relative, rtol=1e-8
    )
    logs = [np.log(1 / 3) + multivariate_normal(mean, pooled).logpdf(X) for mean in means]
    np.testing.assert_allclose(
        model.outlier_scores(X, "energy"), -logsumexp(logs, axis=0), rtol=1e-8
    )


def test_mda_with_one_component_scores_as_qda():
    options = {"components": 1, "covariance": "class"}
    mda, qda = dd.MDA(**options).fit(X, Y), dd.QDA(denominator="ml").fit(X, Y)
    for kind in ("mahalanobis", "energy"):
        np.testing.assert_allclose(
            mda.outlier_scores(X, kind), qda.outlier_scores(X, kind), rtol=1e-6
        )
    relative = mda.outlier_scores(FAR, "relative_mahalanobis")
    expected = mda.outlier_scores(FAR) - distances(FAR, X.mean(axis=0), np.cov(X.T, bias=True))
    np.testing.assert_allclose(relative, expected, rtol=1e-6)


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_distant_rows_have_larger_scores(model, kind):
    if kind == "relative_mahalanobis" and isinstance(model, dd.QDA):
        return  # a class covariance can exceed the covariance of all rows in some direction
    model.fit(X, Y)
    near, far = model.outlier_scores(X, kind), model.outlier_scores(FAR, kind)
    assert near.shape == (150,) and far.min() > near.max()


def test_wide_rows_have_scores():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 400))
    model = dd.LDA(shrinkage=0.5).fit(rows, np.arange(30) % 3)
    for kind in KINDS:
        scores = model.outlier_scores(np.vstack([rows, 5 * rng.normal(size=(5, 400))]), kind)
        assert np.isfinite(scores).all() and scores[30:].min() > scores[:30].max()


def test_a_relative_score_ignores_an_irrelevant_common_direction():
    """A direction that varies much in all rows does not count."""
    rng = np.random.default_rng(1)
    y = np.arange(400) % 2
    rows = np.column_stack([4 * y + rng.normal(size=400), rng.normal(0, 5, 400)])
    model = dd.LDA().fit(rows, y)
    odd = np.array([[0.0, 25.0]])  # unusual only in the direction without classes
    assert model.outlier_scores(odd)[0] > 20
    assert abs(model.outlier_scores(odd, "relative_mahalanobis")[0]) < 2


@pytest.mark.parametrize("model", [dd.LDA(), dd.MDA(components=1)], ids=repr)
def test_an_unknown_kind_is_named(model):
    with pytest.raises(OptionError, match="mahalanobis, relative_mahalanobis, energy"):
        model.fit(X, Y).outlier_scores(X, "distance")


# --- one row of each class ----------------------------------------------------------------------


def test_one_row_of_each_class_gives_the_nearest_row():
    rng = np.random.default_rng(0)
    rows, new = rng.normal(size=(40, 6)), rng.normal(size=(300, 6))
    labels = rng.permutation(40)
    with pytest.warns(ScarceRowsWarning, match="Each of the 40 classes has one row"):
        model = dd.NearestMean().fit(rows, labels)
    nearest = labels[cdist(new, rows).argmin(axis=1)]
    np.testing.assert_array_equal(model.predict(new), nearest)
    variance = rows.var(axis=0, ddof=1).mean()
    np.testing.assert_allclose(model.covariance_, variance * np.eye(6), rtol=1e-9)
    assert np.allclose(model.predict_proba(new).sum(axis=1), 1.0)


def test_rows_are_added_to_classes_of_one_row():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScarceRowsWarning)
        model = dd.NearestMean().fit(X[::50], Y[::50])
    rest = np.setdiff1d(np.arange(150), [0, 50, 100])
    model.partial_fit(X[rest], Y[rest])
    np.testing.assert_allclose(model.covariance_, dd.NearestMean().fit(X, Y).covariance_, rtol=1e-9)


def test_lda_still_needs_more_rows_than_classes():
    with pytest.raises(TooFewRowsError):
        dd.LDA().fit(X[::50], Y[::50])
