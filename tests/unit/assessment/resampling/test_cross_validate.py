"""Adding the moments of the other folds is fitting to the other folds."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import discriminant
from discriminant import (
    LDA,
    QDA,
    RDA,
    SVM,
    Calibrated,
    Logistic,
    Pool,
    PredictionSets,
    ShrunkenCentroids,
    SparseLDA,
    cross_validate,
    moments,
)
from discriminant.assessment.resampling.folds import fold_numbers, sums_without_each
from discriminant.errors import (
    ClassMissingWarning,
    LabelError,
    MissingValueError,
    NoPosteriorWarning,
    OptionError,
    ShapeError,
)
from tests.shared.assessed_models import MEMBERS, assert_same_logs, refitted, unequal_classes


@pytest.mark.parametrize("name", MEMBERS)
def test_folds_by_adding_equal_folds_by_refitting(name):
    X, y = unequal_classes(90)
    held = cross_validate(MEMBERS[name], X, y, 5)
    assert_same_logs(held.log_posterior, refitted(MEMBERS[name], X, y, held.fold))


@pytest.mark.parametrize("name", MEMBERS)
def test_weighted_folds_by_adding_equal_folds_by_refitting(name):
    X, y = unequal_classes(90)
    weight = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
    held = cross_validate(MEMBERS[name], X, y, 4, sample_weight=weight)
    assert_same_logs(held.log_posterior, refitted(MEMBERS[name], X, y, held.fold, weight))


@pytest.mark.parametrize("name", ["lda", "qda", "rda shrunk", "diagonal lda", "least squares"])
def test_leaving_a_group_out_equals_refitting(name):
    X, y = unequal_classes(90)
    site = np.random.default_rng(2).choice(["north", "south", "west"], len(y))
    held = cross_validate(MEMBERS[name], X, y, groups=site)
    assert_same_logs(held.log_posterior, refitted(MEMBERS[name], X, y, site))


class CountedLDA(LDA):
    """How often rows are fitted."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        CountedLDA.fits += 1
        return super().fit(X, y, sample_weight)


def test_no_model_from_moments_is_fitted_to_rows():
    X, y = unequal_classes(90)
    CountedLDA.fits = 0
    cross_validate(CountedLDA(), X, y)
    assert CountedLDA.fits == 0


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(max_iter=2000),
        LinearDiscriminantAnalysis(priors=[0.2, 0.3, 0.5]),
        make_pipeline(StandardScaler(), LDA()),
        RDA(pooling="cv"),
    ],
)
def test_any_other_classifier_is_refitted(model):
    X, y = unequal_classes(90)
    held = cross_validate(model, X, y, 3)
    assert_same_logs(held.log_posterior, refitted(model, X, y, held.fold))


def test_a_classifier_without_posteriors_is_taken_at_its_word():
    X, y = unequal_classes(90)
    with pytest.warns(NoPosteriorWarning, match="RidgeClassifier"):
        held = cross_validate(RidgeClassifier(), X, y, 3)
    folds = [held.fold == f for f in range(3)]
    wrong = [RidgeClassifier().fit(X[~f], y[~f]).predict(X[f]) != y[f] for f in folds]
    assert held.error == pytest.approx(np.concatenate(wrong).mean())


def test_more_features_than_rows_are_refitted_in_the_space_of_the_rows():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(24, 60)), np.repeat(["a", "b"], 12)
    model = LDA(shrinkage=0.5)
    held = cross_validate(model, X, y, 4)
    assert_same_logs(held.log_posterior, refitted(model, X, y, held.fold))


@pytest.mark.parametrize(
    "model", [LDA(), QDA(prior=[0.2, 0.3, 0.5]), LogisticRegression(max_iter=2000)]
)
def test_a_class_that_training_lacks_has_log_posterior_of_minus_infinity(model):
    X, y = unequal_classes(90)
    site = np.where(y == "ash", 0, np.arange(len(y)) % 3)
    with pytest.warns(ClassMissingWarning, match=r"All 15 row.*'ash' are in fold 0"):
        held = cross_validate(model, X, y, groups=site)
    assert np.array_equal(np.isneginf(held.log_posterior[:, 0]), site == 0)


def test_priors_are_shared_out_among_the_classes_that_training_has():
    X, y = unequal_classes(90)
    site = np.where(y == "ash", 0, np.arange(len(y)) % 3)
    with pytest.warns(ClassMissingWarning):
        found = cross_validate(LDA(prior=[0.2, 0.3, 0.5]), X, y, groups=site).log_posterior
    train, test = site != 0, site == 0
    others = LDA(prior=[3 / 8, 5 / 8]).fit(X[train], y[train])
    assert_same_logs(found[test][:, 1:], others.predict_log_proba(X[test]))


@pytest.mark.parametrize("count", [2, 3, 7])
def test_all_but_one_is_the_sum_of_the_others(count):
    X, y = unequal_classes(90)
    part = np.arange(len(y)) % count
    parts = [moments(X[part == f], y[part == f]) for f in range(count)]
    for f, train in enumerate(sums_without_each(parts)):
        alone = moments(X[part != f], y[part != f])
        np.testing.assert_allclose(train.within(), alone.within(), rtol=1e-12, atol=1e-10)


@given(
    counts=st.lists(st.integers(1, 30), min_size=1, max_size=5),
    folds=st.integers(2, 10),
    seed=st.integers(0, 99),
)
def test_every_fold_has_its_share_of_every_class(counts, folds, seed):
    codes = np.repeat(np.arange(len(counts)), counts)
    if folds > len(codes):
        return
    table = np.zeros((folds, len(counts)), dtype=int)
    np.add.at(table, (fold_numbers(folds, codes, seed=seed), codes), 1)
    assert (np.ptp(table, axis=0) <= 1).all() and np.ptp(table.sum(axis=1)) <= 1


def test_a_splitter_says_who_is_held_out():
    X, y = unequal_classes(60)
    held = cross_validate(LDA(), X, y, KFold(4))
    assert held.fold.tolist() == np.repeat(np.arange(4), 15).tolist()


def test_a_splitter_of_groups_keeps_groups_together():
    X, y = unequal_classes(60)
    site = np.arange(60) % 7
    fold = cross_validate(LDA(), X, y, GroupKFold(3), groups=site).fold
    assert all(len(np.unique(fold[site == g])) == 1 for g in range(7))


def test_so_many_folds_of_groups_keep_groups_together():
    X, y = unequal_classes(60)
    site = np.arange(60) % 7
    fold = cross_validate(LDA(), X, y, 3, groups=site).fold
    assert all(len(np.unique(fold[site == g])) == 1 for g in range(7)) and fold.max() == 2


@pytest.mark.parametrize("splitter", [ShuffleSplit(5), TimeSeriesSplit(4)])
def test_a_splitter_that_does_not_hold_out_every_row_once_is_refused(splitter):
    X, y = unequal_classes(60)
    with pytest.raises(OptionError, match="holds out every row once"):
        cross_validate(LDA(), X, y, splitter)


@pytest.mark.parametrize("folds", [1, 0, 61, 2.5, "ten"])
def test_an_impossible_number_of_folds_is_refused(folds):
    X, y = unequal_classes(60)
    with pytest.raises(OptionError, match=r"folds=.*from 2 to the number of rows \(60\)"):
        cross_validate(LDA(), X, y, folds)


def test_folds_of_the_wrong_length_are_refused():
    X, y = unequal_classes(60)
    with pytest.raises(ShapeError, match="folds has 59 entries for 60 rows"):
        cross_validate(LDA(), X, y, np.arange(59) % 3)


def test_a_missing_value_is_named_by_its_row_in_the_table():
    X, y = unequal_classes(60)
    X[41, 2] = np.nan
    with pytest.raises(MissingValueError, match=r"Row 41.*column 'x2'"):
        cross_validate(LDA(), X, y)


@pytest.mark.parametrize(
    "wrap", [pd.DataFrame, sparse.csr_array, lambda X: X.astype(np.float32), np.asfortranarray]
)
@pytest.mark.parametrize("model", [LDA(), LogisticRegression(max_iter=2000)])
def test_rows_may_come_as_frames_sparse_or_single(model, wrap):
    X, y = unequal_classes(60)
    X = X.astype(np.float32).astype(np.float64) - 50.0
    expected = cross_validate(model, X, y, 3).log_posterior
    found = cross_validate(model, wrap(X), y, 3).log_posterior
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_measures_are_those_of_scikit_learn():
    X, y = unequal_classes(60)
    weight = np.random.default_rng(4).random(60)
    held = cross_validate(LDA(), X, y, sample_weight=weight)
    posterior = np.exp(held.log_posterior)
    assert held.log_loss == pytest.approx(log_loss(y, posterior, sample_weight=weight), rel=1e-10)
    assert held.error == pytest.approx(np.average(held.predicted != y, weights=weight))


class SureOfShares(ClassifierMixin, BaseEstimator):
    """A classifier with probabilities, but no logs of them."""

    def fit(self, X, y):
        self.classes_, count = np.unique(y, return_counts=True)
        self.shares_ = count / count.sum()
        return self

    def predict_proba(self, X):
        return np.tile(self.shares_, (len(X), 1))

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def test_probabilities_do_where_logs_are_missing():
    X, y = unequal_classes(60)
    held = cross_validate(SureOfShares(), X, y, 2)
    assert_same_logs(held.log_posterior[0], np.log([1 / 6, 1 / 3, 1 / 2]))


@pytest.mark.parametrize(
    "fit",
    [
        LDA(shrinkage="cv").fit,
        ShrunkenCentroids(threshold="cv").fit,
        SparseLDA(penalty="cv").fit,
        Calibrated(SVM()).fit,
        PredictionSets(LDA()).fit,
        PredictionSets(Logistic()).fit,
        Pool([("a", LDA()), ("b", Logistic())]).fit,
        partial(cross_validate, LDA()),
        partial(cross_validate, Logistic()),
    ],
)
@pytest.mark.filterwarnings("ignore::discriminant.errors.ClassMissingWarning")
def test_training_rows_of_one_class_are_named_with_the_class_that_is_absent(fit):
    X = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises(LabelError, match=r"'oak' are in one fold.*class 'ash' only.*Add rows"):
        fit(X, np.array(["ash"] * 39 + ["oak"]))


def test_training_rows_of_one_class_are_named_for_a_partitioned_table(tmp_path):
    rows = np.random.default_rng(0).normal(size=(40, 2)).round(3)
    lines = [f"{a},{b},{'oak' if i == 39 else 'ash'}" for i, (a, b) in enumerate(rows)]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,tree", *lines]))
    table = discriminant.rows(str(tmp_path / "rows.csv"), target="tree")
    with pytest.raises(LabelError, match=r"'oak' are in one fold.*class 'ash' only"):
        cross_validate(LDA(), table)


def test_a_classifier_of_another_package_may_be_fitted_to_one_class():
    X = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.warns(ClassMissingWarning, match="'oak'"):
        held = cross_validate(DummyClassifier(), X, np.array(["ash"] * 39 + ["oak"]))
    assert held.error == pytest.approx(1 / 40)
