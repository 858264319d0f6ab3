"""Calibrated classifiers: parity with scikit-learn, laws, partitioned tables, bad input."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import PredefinedSplit
from sklearn.svm import LinearSVC

import discriminant as dd
from discriminant import LDA, QDA, SVM, Calibrated, Decision, LeastSquares, Logistic, evaluate
from discriminant.assessment.resampling.folds import content_folds
from discriminant.errors import DiscriminantError, OptionError, PosteriorError, WeightError
from discriminant.models.calibration import FITS
from discriminant.posterior import gives_posterior
from discriminant.table.hash_folds import row_hash_folds
from tests.unit.estimators.meta.test_prediction_sets import sample

pytestmark = pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")
every_method = pytest.mark.parametrize("method", FITS)


# --- parity ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "theirs", "tolerance"),
    [("platt", "sigmoid", 1e-4), ("isotonic", "isotonic", 1e-6), ("temperature",) * 2 + (1e-5,)],
)
@pytest.mark.parametrize("estimator", [LogisticRegression(max_iter=2000), LinearSVC(tol=1e-12)])
def test_two_classes_are_calibrated_as_by_scikit_learn(method, theirs, tolerance, estimator):
    X, y = sample(300, 0, classes=2)
    fold = np.arange(300) % 4
    ours = Calibrated(estimator, method, folds=fold).fit(X, y)
    split = PredefinedSplit(fold)
    other = CalibratedClassifierCV(estimator, method=theirs, cv=split, ensemble=False).fit(X, y)
    new = sample(100, 1, classes=2)[0]
    np.testing.assert_allclose(ours.predict_proba(new), other.predict_proba(new), atol=tolerance)


def test_temperature_of_three_classes_is_that_of_scikit_learn():
    X, y = sample(300, 0)
    fold = np.arange(300) % 4
    model = LogisticRegression(max_iter=2000)
    ours = Calibrated(model, "temperature", folds=fold).fit(X, y)
    split = PredefinedSplit(fold)
    other = CalibratedClassifierCV(model, method="temperature", cv=split, ensemble=False).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), other.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("model", [Calibrated(LDA()), dd.PredictionSets(LDA(), 0.8)], ids=repr)
def test_a_class_of_weight_zero_is_named(model):
    X, y = sample(300, 0)
    with pytest.raises(WeightError, match="total weight 0"):
        model.fit(X, y, sample_weight=(y != y[0]).astype(float))


# --- what calibration is for ----------------------------------------------------------------------


@every_method
def test_calibration_lowers_the_log_loss_of_a_model_that_is_too_sure(method):
    rows, codes = load_breast_cancer(return_X_y=True)
    train, test = np.arange(len(codes)) % 2 == 0, np.arange(len(codes)) % 2 == 1
    plain = evaluate(QDA().fit(rows[train], codes[train]), rows[test], codes[test])
    model = Calibrated(QDA(), method).fit(rows[train], codes[train])
    ours = evaluate(model, rows[test], codes[test])
    if method == "isotonic":  # its probabilities of 0 and 1 may be wrong once
        assert ours.brier < plain.brier
    else:
        assert ours.log_loss < 0.7 * plain.log_loss


def test_temperature_changes_no_predicted_class():
    X, y = sample(200, 0)
    model = Calibrated(QDA(), "temperature").fit(X, y)
    assert np.array_equal(model.predict(X), model.estimator_.predict(X))


def test_scores_without_probabilities_become_probabilities():
    X, y = sample(300, 0)
    for estimator in (SVM(), LeastSquares(), LinearSVC()):
        model = Calibrated(estimator).fit(X, y)
        assert not model.from_posteriors_ and gives_posterior(model)
        p = model.predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        assert set(Decision(Calibrated(estimator), reject=0.4).fit(X, y).predict(X)) <= {*y}


def test_a_frozen_classifier_is_calibrated_on_all_rows():
    (X, y), (held, truth) = sample(200, 0), sample(200, 1)
    fitted = QDA().fit(X, y)
    model = Calibrated(FrozenEstimator(fitted), "temperature").fit(held, truth)
    assert model.estimator_ is fitted
    logs, codes = fitted.predict_log_proba(held), np.unique(truth, return_inverse=True)[1]
    wanted = FITS["temperature"](logs, codes, None, posterior=True)
    assert model.calibrator_.temperature == wanted.temperature


# --- laws -----------------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize("estimator", [LDA(), Logistic(ridge=0.1)], ids=repr)
def test_an_integer_weight_is_equivalent_to_repeated_rows(method, estimator):
    X, y = sample(90, 0)
    times = np.random.default_rng(2).integers(0, 4, 90)
    weighted = Calibrated(estimator, method).fit(X, y, times)
    repeated = Calibrated(estimator, method).fit(X.repeat(times, 0), y.repeat(times))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-7)


@every_method
def test_the_order_of_the_rows_has_no_effect(method):
    X, y = sample(120, 0)
    order = np.random.default_rng(3).permutation(120)
    first, second = (Calibrated(LDA(), method).fit(X[o], y[o]) for o in (slice(None), order))
    np.testing.assert_allclose(first.predict_proba(X), second.predict_proba(X), atol=1e-8)


@pytest.mark.parametrize("estimator", [LDA(), QDA()], ids=repr)
def test_adding_moments_equals_refitting_each_fold(estimator):
    X, y = sample(150, 0)
    fold = np.arange(150) % 5
    model = Calibrated(estimator, folds=fold).fit(X, y)
    logs, codes = np.empty((150, 3)), np.unique(y, return_inverse=True)[1]
    for f in range(5):
        fitted = clone(estimator).fit(X[fold != f], y[fold != f])
        logs[fold == f] = fitted.predict_log_proba(X[fold == f])
    wanted = FITS["platt"](logs, codes, None, posterior=True)
    np.testing.assert_allclose(model.calibrator_.slope, wanted.slope, rtol=1e-8)


@every_method
def test_a_partitioned_table_gives_the_numbers_of_memory(method, tmp_path, monkeypatch):
    from discriminant.table.files import splits

    for name, size in (("SMALL", 1), ("BATCH", 100), ("RANGE", 6000)):
        monkeypatch.setattr(splits, name, size)
    X, y = sample(600, 0)
    frame = pd.DataFrame(X, columns=list("pqrs")).assign(kind=y)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pandas(frame), path, row_group_size=100)
    fold = row_hash_folds(X, np.unique(y, return_inverse=True)[1], 5)
    for estimator in (LDA(), Logistic(ridge=0.1)):
        ours = Calibrated(estimator, method).fit(dd.rows(str(path), target="kind"))
        theirs = Calibrated(estimator, method, folds=fold).fit(frame[list("pqrs")], y)
        new = frame[list("pqrs")][:50]
        np.testing.assert_allclose(ours.predict_proba(new), theirs.predict_proba(new), atol=1e-8)


def test_equal_rows_are_held_out_together_whatever_their_order_and_classes():
    rng = np.random.default_rng(5)
    X = np.repeat(rng.normal(size=(40, 2)), 3, axis=0)
    codes = rng.integers(0, 3, 120)
    fold = content_folds(X, codes, None, 5)
    assert np.array_equal(fold[::3], fold[1::3]) and np.array_equal(fold[::3], fold[2::3])
    assert np.bincount(fold).tolist() == [24] * 5
    order = rng.permutation(120)
    assert np.array_equal(content_folds(X[order], codes[order], None, 5), fold[order])
    distinct, first, times = np.unique(X[:, 0] * 9 + codes, return_index=True, return_counts=True)
    assert len(distinct) < 120, "no row has copies of its own class"
    weighted = content_folds(X[first], codes[first], times.astype(float), 5)
    assert np.array_equal(weighted, fold[first])


def test_discrete_rows_are_divided_among_the_folds():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (400, 2)).astype(float)
    y = (rng.random(400) < 0.2 + 0.5 * X[:, 0]).astype(int)
    model = Calibrated(LDA(), "platt").fit(X, y)
    for corner in np.unique(X, axis=0):
        share = y[(corner == X).all(axis=1)].mean()
        assert abs(model.predict_proba([corner])[0, 1] - share) < 0.12


# --- bad input ------------------------------------------------------------------------------------


def test_an_unknown_method_is_rejected():
    with pytest.raises(OptionError, match="platt, temperature, isotonic, beta"):
        Calibrated(LDA(), "sigmoid").fit(*sample(90, 0))


def test_beta_calibration_of_scores_is_rejected_with_the_way_out():
    with pytest.raises(PosteriorError, match=r"SVM has none\. Pass method='platt'"):
        Calibrated(SVM(), "beta").fit(*sample(90, 0))


def test_a_regressor_is_rejected():
    with pytest.raises(DiscriminantError, match="classifier"):
        Calibrated(LinearRegression()).fit(*sample(90, 0))


def test_foreign_names_of_options_are_translated():
    with pytest.raises(TypeError, match="folds"):
        Calibrated(LDA(), cv=5)
    with pytest.raises(TypeError, match="a single calibrator"):
        Calibrated(LDA(), ensemble=False)
