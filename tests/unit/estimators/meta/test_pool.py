"""Pool: weights against direct maximisation, posteriors against their formula."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import discriminant as dd
from discriminant.assessment.resampling.folds import fold_numbers
from discriminant.errors import OptionError, PosteriorError
from discriminant.posterior import pool_log_posteriors, pool_weights

X, Y = load_wine(return_X_y=True)
MODELS = [("lda", dd.LDA(shrinkage="auto")), ("qda", dd.QDA(shrinkage=0.3))]


def test_weights_maximise_the_likelihood_of_held_out_labels():
    rng = np.random.default_rng(0)
    logs = np.log(rng.beta([4, 2, 3], [1, 1, 1.5], size=(300, 3)))
    weight = rng.integers(1, 4, 300).astype(float)

    def loss(free):
        weights = np.exp(np.append(free, 0.0))
        weights /= weights.sum()
        return -(weight @ np.log(np.exp(logs) @ weights) + np.log(weights).sum())

    best = minimize(loss, np.zeros(2), method="BFGS", options={"gtol": 1e-9}).x
    wanted = np.exp(np.append(best, 0.0))
    weights = pool_weights(logs, weight, tolerance=1e-12, max_iter=100_000)
    np.testing.assert_allclose(weights, wanted / wanted.sum(), atol=1e-6)


def test_weight_of_a_row_equals_repeated_rows():
    logs = np.log(np.random.default_rng(1).beta(3, 1, size=(40, 2)))
    repeats = np.arange(40) % 3
    np.testing.assert_allclose(
        pool_weights(logs, repeats.astype(float)),
        pool_weights(np.repeat(logs, repeats, axis=0)),
        atol=1e-7,
    )


def test_rows_that_every_classifier_calls_impossible_are_ignored():
    logs = np.log(np.random.default_rng(2).beta(3, 1, size=(40, 2)))
    with_impossible = np.vstack([logs, [[-np.inf, -np.inf]]])
    np.testing.assert_array_equal(pool_weights(with_impossible), pool_weights(logs))


def test_mean_of_tiny_posteriors_is_exact():
    logs = np.array([[[0.0, -800.0]], [[0.0, -900.0]]])
    pooled = pool_log_posteriors(logs, np.array([0.25, 0.75]))
    np.testing.assert_allclose(pooled, [[0.0, -800.0 + np.log(0.25)]], rtol=1e-15)


def test_posterior_is_the_weighted_mean():
    pool = dd.Pool(MODELS).fit(X, Y)
    lda, qda = pool.named_estimators_["lda"], pool.named_estimators_["qda"]
    wanted = pool.weights_[0] * lda.predict_proba(X) + pool.weights_[1] * qda.predict_proba(X)
    np.testing.assert_allclose(pool.predict_proba(X), wanted, rtol=1e-10, atol=1e-300)
    np.testing.assert_array_equal(pool.predict(X), wanted.argmax(axis=1))
    single = dd.LDA(shrinkage="auto").fit(X, Y)
    np.testing.assert_array_equal(lda.predict_proba(X), single.predict_proba(X))


def test_weights_are_those_of_held_out_posteriors():
    pool = dd.Pool(MODELS, folds=5, random_state=3).fit(X, Y)
    folds = fold_numbers(5, Y, seed=3)
    held_out = [dd.cross_validate(model, X, Y, folds) for _, model in MODELS]
    true = np.column_stack([h.log_posterior[np.arange(len(Y)), Y] for h in held_out])
    np.testing.assert_allclose(pool.weights_, pool_weights(true), atol=1e-12)
    np.testing.assert_allclose(pool.held_out_log_loss_[:2], -true.mean(axis=0), rtol=1e-12)
    assert pool.held_out_log_loss_[2] < 1.05 * pool.held_out_log_loss_[:2].min()


def test_classifier_that_overfits_gets_a_small_weight():
    rng = np.random.default_rng(4)
    rows = np.hstack([rng.normal(size=(120, 25)), rng.normal(size=(120, 1))])
    labels = (rows[:, -1] + 0.5 * rng.normal(size=120) > 0).astype(int)
    pool = dd.Pool([("qda", dd.QDA(shrinkage=0.01)), ("lda", dd.LDA(shrinkage="auto"))])
    assert pool.fit(rows, labels).weights_[1] > 0.8


def test_pool_of_scikit_learn_and_our_models_on_new_rows():
    rows, labels = load_breast_cancer(return_X_y=True)
    rows = (rows - rows[::2].mean(axis=0)) / rows[::2].std(axis=0)
    pool = dd.Pool(
        [("logistic", LogisticRegression(C=0.1, max_iter=2000)), ("lda", dd.LDA(shrinkage="auto"))]
    ).fit(rows[::2], labels[::2])
    losses = {
        name: log_loss(labels[1::2], model.predict_proba(rows[1::2]))
        for name, model in [*pool.named_estimators_.items(), ("pool", pool)]
    }
    assert losses["pool"] <= 1.02 * min(losses["logistic"], losses["lda"])


def test_given_weights_need_no_cross_validation():
    pool = dd.Pool(MODELS, weights=[3, 1]).fit(X, Y)
    assert pool.weights_.tolist() == [0.75, 0.25]
    assert pool.held_out_log_loss_ is None


def test_pool_of_fitted_classifiers():
    fitted = [(name, model.fit(X, Y)) for name, model in MODELS]
    pool, wanted = dd.Pool.of_fitted(fitted, [3, 1]), dd.Pool(MODELS, weights=[3, 1]).fit(X, Y)
    np.testing.assert_array_equal(pool.predict_proba(X), wanted.predict_proba(X))
    with pytest.raises(OptionError, match="a classifier of the classes"):
        dd.Pool.of_fitted([*fitted, ("two", dd.LDA().fit(X[:100], Y[:100]))], [1, 1, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimators": []}, "a list of \\(name, classifier\\), each name once"),
        ({"estimators": [("a", dd.LDA()), ("a", dd.QDA())]}, "each name once"),
        ({"estimators": dd.LDA()}, "a list of \\(name, classifier\\)"),
        ({"estimators": MODELS, "weights": [1]}, "2 numbers, 0 or more"),
        ({"estimators": MODELS, "weights": [0, 0]}, "at least one of them positive"),
        ({"estimators": MODELS, "weights": [1, -1]}, "0 or more"),
        ({"estimators": MODELS, "weights": "equal"}, "2 numbers"),
    ],
)
def test_invalid_options_are_named(options, message):
    with pytest.raises(OptionError, match=message):
        dd.Pool(**options).fit(X, Y)


def test_classifier_without_probabilities_is_refused_by_name():
    with pytest.raises(PosteriorError, match="squares"):
        dd.Pool([("lda", dd.LDA()), ("squares", dd.LeastSquares())]).fit(X, Y)
