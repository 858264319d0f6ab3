"""Predictions do not depend on which rows are predicted together."""

import os
import time

import numpy as np
import pytest

import discriminant as dd
from discriminant.engines.local import map_rows
from discriminant.engines.threads import one_blas_thread, thread_pool


def tied_rows(seed):
    """Two classes that are mirror images, and rows half way between them."""
    rng = np.random.default_rng(seed)
    half = rng.integers(-4, 5, size=(30, 3)).astype(float)
    shift = np.array([6.0, 0.0, 0.0])
    X = np.vstack([half + shift, -half - shift]) + 1000.0
    y = np.repeat(["a", "b"], 30)
    middle = np.full((4500, 3), 1000.0)
    return X, y, middle


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("model", [dd.LDA(), dd.NearestMean(), dd.SVM(), dd.Logistic(ridge=0.1)])
def test_tied_rows_have_one_label_in_any_batch(model, seed):
    X, y, middle = tied_rows(seed)
    fitted = model.fit(X, y)
    labels = fitted.predict(middle)
    assert len(set(labels.tolist())) == 1
    assert fitted.predict(middle[:1])[0] == labels[0]
    assert (fitted.decision_function(middle) > 0).all() == (labels[0] == "b")
    if hasattr(fitted, "predict_proba"):
        first, second = fitted.predict_proba(middle).T  # equal if the difference is rounded away
        assert (second >= first if labels[0] == "b" else second <= first).all()


@pytest.mark.parametrize("origin", [0.0, 1e3, 1e8, -1e13])
@pytest.mark.parametrize("model", [dd.LDA(), dd.SVM(), dd.Logistic(ridge=0.1)])
def test_labels_of_many_rows_are_the_signs_of_centred_scores(model, origin):
    rng = np.random.default_rng(7)
    half = rng.integers(-3, 4, size=(400, 4)).astype(float)
    shift = np.array([3.0, 0.0, 0.0, 0.0])
    X = np.vstack([half + shift, -half - shift]) + origin
    y = np.repeat(["no", "yes"], 400)
    model = model.fit(X, y)
    rows = rng.integers(-6, 7, size=(9000, 4)).astype(float) + origin  # many rows are ties
    rows[::7] = origin
    expected = np.where(model.decision_function(rows) > 0, "yes", "no")
    np.testing.assert_array_equal(model.predict(rows), expected)


def test_labels_of_many_tiny_huge_or_invalid_rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 4))
    model = dd.LDA().fit(X, np.where(X[:, 0] > 0, "yes", "no"))
    for size in (1e-200, 1e200, 1e307):
        rows = size * rng.normal(size=(9000, 4))
        expected = np.where(model.decision_function(rows) > 0, "yes", "no")
        np.testing.assert_array_equal(model.predict(rows), expected)
    rows[8000, 2] = np.nan
    with pytest.raises(dd.errors.MissingValueError, match="Row 8000"):
        model.predict(rows)


def test_probabilities_of_two_classes_equal_those_by_logs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3)) * 50
    y = np.where(X[:, 0] + rng.normal(size=500) > 0, "yes", "no")
    model = dd.LDA().fit(X, y)
    np.testing.assert_allclose(
        model.predict_proba(X), np.exp(model.predict_log_proba(X)), rtol=1e-12, atol=1e-300
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
def test_forked_child_predicts_after_the_parent_used_its_threads():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120_000, 10)), np.arange(120_000) % 3
    model = dd.LDA().fit(X, y)
    expected = model.predict(X)
    thread_pool(2).submit(int).result()
    with one_blas_thread():
        child = os.fork()
        if child == 0:
            os._exit(0 if (dd.LDA().fit(X, y).predict(X) == expected).all() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_no_piece_is_scored_after_an_error_was_raised():
    scored = []

    def score(rows):
        if rows[0, 0] == 1.0:
            raise ValueError("bad piece")
        time.sleep(0.001)
        scored.append(len(rows))
        return rows[:, 0]

    X = np.zeros((400_000, 8))
    X[100_000:] = 1.0
    with pytest.raises(ValueError, match="bad piece"):
        map_rows(score, X, threads=2)
    before = len(scored)
    time.sleep(0.1)
    assert len(scored) == before
