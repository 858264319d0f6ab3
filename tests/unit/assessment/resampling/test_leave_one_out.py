"""Leaving one row out in closed form is leaving it out."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from discriminant import LDA, QDA, RDA, LeastSquares, leave_one_out
from discriminant.assessment.resampling import leave_one_out as room
from discriminant.errors import ConstantColumnWarning, OptionError, TooFewRowsError, WeightError
from tests.shared.assessed_models import MEMBERS, assert_same_logs, refitted, unequal_classes
from tests.shared.paths import GOLDEN

_MASS = json.loads((GOLDEN / "mass.json").read_text())
_CLOSED = [
    "lda",
    "lda ml",
    "lda reliability",
    "lda shrunk to one variance",
    "lda shrunk to the identity",
    "diagonal lda",
    "identity lda",
    "nearest mean",
    "qda",
    "qda ml",
    "rda pooling 0.3",
    "rda pooling 0.3 ml",
    "rda friedman",
    "lda student",
    "diagonal lda student",
    "lda student shrunk to one variance",
]


def loaded(name):
    load = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer}[name]
    X, y = load(return_X_y=True)
    return X[:, :10] if name == "breast_cancer" else X, y


@pytest.mark.parametrize("name", MEMBERS)
def test_leaving_a_row_out_equals_a_fit_to_the_others(name):
    X, y = unequal_classes()
    expected = refitted(MEMBERS[name], X, y, np.arange(len(y)))
    assert_same_logs(leave_one_out(MEMBERS[name], X, y).log_posterior, expected)


@pytest.mark.parametrize("name", MEMBERS)
def test_leaving_a_weighted_row_out_takes_all_its_weight(name):
    X, y = unequal_classes()
    weight = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
    expected = refitted(MEMBERS[name], X, y, np.arange(len(y)), weight)
    found = leave_one_out(MEMBERS[name], X, y, sample_weight=weight)
    assert_same_logs(found.log_posterior, expected)


@pytest.mark.parametrize("name", _CLOSED)
def test_a_closed_form_fits_no_model_for_a_row(name, monkeypatch):
    X, y = unequal_classes()
    monkeypatch.setattr(room, "by_downdating", None)
    assert np.isfinite(leave_one_out(MEMBERS[name], X, y).log_posterior).all()


@settings(max_examples=25)
@given(
    seed=st.integers(0, 999),
    pooling=st.sampled_from([0.0, 0.01, 0.5, 1.0]),
    denominator=st.sampled_from(["unbiased", "ml"]),
    features=st.integers(1, 4),
)
def test_the_closed_form_holds_for_any_pooling(seed, pooling, denominator, features):
    X, y = unequal_classes(48, features, seed)
    model = RDA(pooling=pooling, denominator=denominator)
    expected = refitted(model, X, y, np.arange(len(y)))
    assert_same_logs(leave_one_out(model, X, y).log_posterior, expected, 1e-9)


@pytest.mark.parametrize("answer", ["loo_default", "loo_prior"])
@pytest.mark.parametrize("method", ["moment", "mle"])
@pytest.mark.parametrize("kind", ["lda", "qda"])
@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer"])
def test_with_priors_fixed_the_posteriors_are_those_of_mass(name, kind, method, answer):
    X, y = loaded(name)
    golden = _MASS["sets"][name]
    model = {"lda": LDA, "qda": QDA}[kind](
        prior=golden["prior"] if answer == "loo_prior" else None,
        denominator={"moment": "unbiased", "mle": "ml"}[method],
    )
    found = leave_one_out(model, X, y, prior="fixed").log_posterior[golden["rows"]]
    expected = np.array(golden[kind][method][answer]["posterior"])
    np.testing.assert_allclose(np.exp(found), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("answer", ["loo_default", "loo_prior"])
@pytest.mark.parametrize("kind", ["lda", "qda"])
@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer"])
def test_as_many_rows_are_wrong_as_in_mass(name, kind, answer):
    X, y = loaded(name)
    golden = _MASS["sets"][name]
    model = {"lda": LDA, "qda": QDA}[kind](prior=golden["prior"] if "prior" in answer else None)
    held = leave_one_out(model, X, y, prior="fixed")
    assert held.error * len(y) == pytest.approx(golden[kind]["moment"][answer]["errors"])


@pytest.mark.parametrize("kind", ["lda", "qda"])
@pytest.mark.parametrize(
    ("name", "file", "label"), [("wine", "wine.csv", -1), ("esl_vowel", "vowel_train.csv", 0)]
)
def test_on_real_sets_the_posteriors_are_those_of_mass(shared_data, name, file, label, kind):
    table = np.genfromtxt(shared_data / name / file, delimiter=",", skip_header=1)
    golden = json.loads((shared_data / name / "reference.json").read_text())[kind]["loo"]
    X, y = np.delete(table, label, axis=1), table[:, label].astype(int)
    held = leave_one_out({"lda": LDA, "qda": QDA}[kind](), X, y, prior="fixed")
    assert held.error == pytest.approx(golden["error"], abs=1e-12)
    expected = np.array(golden["posterior_first"])
    found = np.exp(held.log_posterior[: len(expected)])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


def test_priors_that_follow_the_rows_are_a_little_against_the_true_class():
    X, y = load_iris(return_X_y=True)
    own = np.arange(len(y)), y
    refit = leave_one_out(LDA(), X, y).log_posterior[own]
    fixed = leave_one_out(LDA(), X, y, prior="fixed").log_posterior[own]
    odds = np.log(49 / 50)  # the true class is left with 49 rows, the others have 50
    np.testing.assert_array_less(fixed + odds - 1e-12, refit)
    np.testing.assert_array_less(refit, fixed)


def test_a_row_without_which_a_column_is_constant_is_scored_by_the_other_rows():
    X, y = unequal_classes()
    X = np.column_stack([X, np.arange(len(y)) == 7])
    with pytest.warns(UserWarning, match="x3"):
        found = leave_one_out(LDA(), X, y).log_posterior
    assert_same_logs(found[7], refitted(LDA(), X, y, np.arange(len(y)))[7])


def test_a_large_common_offset_costs_no_digit():
    X, y = unequal_classes()
    grid = np.round((X - 50) * 2**20) / 2**20  # so that adding 1e8 is exact
    found = [leave_one_out(QDA(), grid + shift, y).log_posterior for shift in (0.0, 2.0**26)]
    assert_same_logs(found[1], found[0])


def test_a_classifier_that_is_not_ours_is_refitted():
    X, y = unequal_classes(36)
    expected = refitted(GaussianNB(), X, y, np.arange(len(y)))
    assert_same_logs(leave_one_out(GaussianNB(), X, y).log_posterior, expected)


def test_a_class_of_one_row_cannot_be_left_without_it():
    X, y = unequal_classes()
    y[0] = "date"
    with pytest.raises(TooFewRowsError, match=r"'date' has 1 row.*at least 2"):
        leave_one_out(LDA(), X, y)


def test_a_class_of_two_rows_has_no_covariance_without_one():
    X, y = unequal_classes()
    y[:2] = "date"
    with pytest.raises(TooFewRowsError, match=r"'date' has 2 row.*at least 3"):
        leave_one_out(QDA(), X, y)


@pytest.mark.parametrize("model", [LeastSquares(), LogisticRegression()])
def test_a_model_without_priors_cannot_have_them_fixed(model):
    X, y = unequal_classes()
    with pytest.raises(OptionError, match="has no option for its priors"):
        leave_one_out(model, X, y, prior="fixed")


def test_a_row_that_holds_too_much_of_the_weight_cannot_be_left_out():
    rng = np.random.default_rng(0)
    weight = np.array([1.2, 0.4] + [0.1] * 10)
    X, y = rng.normal(size=(12, 2)), np.arange(12) % 2
    with pytest.raises(WeightError, match="not positive"):
        leave_one_out(LDA(), X, y, sample_weight=weight)


def test_fixed_priors_are_shares_of_the_weight_whichever_way_is_taken():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    weight = np.where(y == 1, 3.0, 1.0)
    narrow = leave_one_out(LDA(), X, y, sample_weight=weight, prior="fixed")
    wider = np.hstack([X, np.zeros((30, 20))])  # too wide for moments to be the smaller thing
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantColumnWarning)
        refit = leave_one_out(LDA(), wider, y, sample_weight=weight, prior="fixed")
    np.testing.assert_allclose(narrow.log_posterior, refit.log_posterior, rtol=1e-9)
