"""Logit adjustment: decisions for other class shares, and the posterior as it was."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold

import discriminant as dd
from discriminant import LDA, SVM, LeastSquares, LogitAdjusted, NearestMean
from discriminant.errors import OptionError, PosteriorError
from discriminant.estimators.meta.logit_adjustment import CANDIDATES

X, Y = make_classification(
    n_samples=600,
    n_informative=4,
    n_redundant=0,
    n_classes=3,
    weights=[0.8, 0.15, 0.05],
    random_state=0,
)
SHARES = np.bincount(Y) / len(Y)


@pytest.mark.parametrize("tau", [0.0, 0.5, 1.0, 1.7])
def test_predictions_divide_the_posterior_by_a_power_of_the_shares(tau):
    model = LogitAdjusted(LogisticRegression(max_iter=500), tau).fit(X, Y)
    posterior = LogisticRegression(max_iter=500).fit(X, Y).predict_proba(X)
    adjusted = posterior / SHARES**tau
    assert model.predict(X).tolist() == adjusted.argmax(axis=1).tolist()
    np.testing.assert_allclose(model.predict_proba(X), posterior, rtol=1e-10)
    np.testing.assert_allclose(model.class_shares_, SHARES)
    model.set_params(keep_probabilities=False)
    adjusted /= adjusted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), adjusted, rtol=1e-10)


def test_with_tau_one_an_lda_decides_as_with_equal_priors():
    adjusted = LogitAdjusted(LDA()).fit(X, Y)
    equal = LDA(prior=[1 / 3] * 3).fit(X, Y)
    assert adjusted.predict(X).tolist() == equal.predict(X).tolist()


def test_a_classifier_with_priors_of_its_own_is_adjusted_from_these():
    """NearestMean assumes equal priors, so there is nothing to adjust."""
    model = LogitAdjusted(NearestMean(prior=[1 / 3] * 3)).fit(X, Y)
    plain = NearestMean(prior=[1 / 3] * 3).fit(X, Y)
    assert model.predict(X).tolist() == plain.predict(X).tolist()


def test_auto_has_the_least_balanced_error_of_the_held_out_rows():
    model = LogitAdjusted(LDA(), "auto").fit(X, Y)
    assert model.tau_ in CANDIDATES and model.tau_ > 0
    errors = {}
    for tau in (0.0, model.tau_):
        truth, guess = [], []
        for train, test in StratifiedKFold(5, shuffle=True, random_state=3).split(X, Y):
            fitted = LogitAdjusted(LDA(), tau).fit(X[train], Y[train])
            truth += Y[test].tolist()
            guess += fitted.predict(X[test]).tolist()
        errors[tau] = 1 - balanced_accuracy_score(truth, guess)
    assert errors[model.tau_] < errors[0.0]


def test_weights_are_repeats():
    weight = np.arange(len(Y)) % 3 + 1
    weighted = LogitAdjusted(LDA()).fit(X, Y, sample_weight=weight)
    repeated = LogitAdjusted(LDA()).fit(X.repeat(weight, axis=0), Y.repeat(weight))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X))


def test_partitioned_rows_give_the_numbers_of_memory(tmp_path):
    names = [f"c{j}" for j in range(X.shape[1])]
    table = pa.table({**dict(zip(names, X.T, strict=True)), "y": Y})
    pq.write_table(table, tmp_path / "rows.parquet")
    parts = LogitAdjusted(LDA()).fit(dd.rows(tmp_path / "rows.parquet", target="y"))
    memory = LogitAdjusted(LDA()).fit(table.select(names), Y)
    np.testing.assert_allclose(
        parts.decision_function(table.select(names)), memory.decision_function(table.select(names))
    )


def test_a_model_loads(tmp_path):
    model = LogitAdjusted(LDA(), "auto").fit(X, Y)
    model.save(tmp_path / "model.dd")
    loaded = dd.load(tmp_path / "model.dd")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert loaded.tau_ == model.tau_


@pytest.mark.parametrize("tau", [-1.0, float("nan"), float("inf"), True, "none", None])
def test_a_bad_tau_is_named(tau):
    with pytest.raises(OptionError, match=r"tau=.*a number, 0 or more, or 'auto'"):
        LogitAdjusted(LDA(), tau).fit(X, Y)


@pytest.mark.parametrize("classifier", [SVM(), LeastSquares()])
def test_a_classifier_without_probabilities_is_refused(classifier):
    with pytest.raises(PosteriorError, match=type(classifier).__name__):
        LogitAdjusted(classifier).fit(X, Y)
