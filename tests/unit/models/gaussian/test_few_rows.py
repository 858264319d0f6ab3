"""Rows that hardly suffice for a covariance, or do not: one honest answer, whatever is missing."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import invwishart
from sklearn.covariance import oas
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import LeaveOneOut, StratifiedKFold, cross_val_predict

from discriminant import (
    LDA,
    QDA,
    RDA,
    Fisher,
    cross_validate,
    leave_one_out,
    moments,
    rda_grid,
    study,
)
from discriminant.errors import (
    CollinearWarning,
    DiscriminantWarning,
    ScarceRowsWarning,
    SeparatingColumnWarning,
    ShrinkageChosenWarning,
)

WINE, KIND = load_wine(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(len(KIND))
CLASSES, FEATURES = 3, 13


def wines(n):
    return WINE[ORDER[:n]], KIND[ORDER[:n]]


def others(n):
    return WINE[ORDER[n:]], KIND[ORDER[n:]]


def told(work):
    """What a piece of work warns of, and what it returns."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", DiscriminantWarning)
        result = work()
    return [type(one.message) for one in found], result


def best_amount(X, y):
    """Scikit-learn's OAS of rows about their class means, in units of their spread."""
    apart = X - np.array([X[y == k].mean(axis=0) for k in y])
    return oas(apart / np.sqrt((apart**2).mean(axis=0)), assume_centered=True)[1]


# --- too few -------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [LDA(), RDA(pooling=1.0, shrinkage=0.0)])
@pytest.mark.parametrize("n", [FEATURES + CLASSES - missing for missing in (4, 2, 1)])
def test_whatever_rank_is_missing_the_shrinkage_is_the_best_and_told(model, n):
    kinds, fitted = told(lambda: model.fit(*wines(n)))
    assert (kinds, fitted.shrinkage_) == (
        [ShrinkageChosenWarning],
        pytest.approx(best_amount(*wines(n)), rel=1e-9),
    )


def test_fisher_shrinks_too_few_rows_as_lda_does():
    X, y = wines(15)
    kinds, fitted = told(lambda: Fisher().fit(X, y))
    shrunk = LDA(shrinkage=best_amount(X, y)).fit(X, y)
    same = np.allclose(fitted.predict_log_proba(WINE), shrunk.predict_log_proba(WINE))
    assert (kinds, same) == ([ShrinkageChosenWarning], True)


@pytest.mark.filterwarnings("ignore::discriminant.errors.ShrinkageChosenWarning")
def test_one_row_too_few_is_no_worse_than_two():
    right = [LDA().fit(*wines(n)).score(*others(n)) for n in (14, 15)]
    assert right[1] >= right[0]


@pytest.mark.filterwarnings("ignore::discriminant.errors.ShrinkageChosenWarning")
def test_rows_forgotten_leave_what_too_few_rows_give():
    X, y = wines(20)
    fitted = LDA().partial_fit(X, y).forget(X[15:], y[15:])
    np.testing.assert_allclose(
        fitted.predict_log_proba(WINE),
        LDA().fit(X[:15], y[:15]).predict_log_proba(WINE),
        rtol=1e-7,
        atol=1e-7,
    )


@pytest.mark.filterwarnings("ignore::discriminant.errors.ShrinkageChosenWarning")
@pytest.mark.parametrize("detail", ["pooled", "class"])
def test_moments_of_too_few_rows_say_what_the_rows_say(detail):
    X, y = wines(15)
    np.testing.assert_allclose(
        LDA().fit_moments(moments(X, y, detail=detail)).predict_log_proba(WINE),
        LDA(shrinkage=best_amount(X, y)).fit(X, y).predict_log_proba(WINE),
        rtol=1e-9,
        atol=1e-9,
    )


@pytest.mark.parametrize("missing", [5, 1])
def test_a_class_of_too_few_rows_is_shrunk_whatever_rank_is_missing(missing):
    keep = np.r_[ORDER[KIND[ORDER] > 0], ORDER[KIND[ORDER] == 0][: FEATURES + 1 - missing]]
    kinds, fitted = told(lambda: QDA().fit(WINE[keep], KIND[keep]))
    own = WINE[keep][KIND[keep] == 0]
    assert (kinds, fitted.shrinkage_.tolist()) == (
        [ShrinkageChosenWarning],
        pytest.approx([best_amount(own, np.zeros(len(own))), 0.0, 0.0]),
    )


def test_mixtures_of_too_few_rows_are_shrunk_in_every_class():
    kinds, fitted = told(lambda: RDA(pooling=0.5, shrinkage=0.0).fit(*wines(15)))
    assert (kinds, (fitted.shrinkage_ > 0).all()) == ([ShrinkageChosenWarning], True)


@pytest.mark.filterwarnings("ignore::discriminant.errors.ShrinkageChosenWarning")
@pytest.mark.filterwarnings("ignore::discriminant.errors.ScarceRowsWarning")
@pytest.mark.parametrize("n", [15, 16, 17])
def test_leaving_out_the_row_that_was_enough_is_as_a_fit_to_the_others(n):
    X, y = wines(n)
    each = cross_val_predict(LDA(), X, y, cv=LeaveOneOut(), method="predict_log_proba")
    np.testing.assert_allclose(leave_one_out(LDA(), X, y).log_posterior, each, atol=1e-6)


@pytest.mark.filterwarnings("ignore::discriminant.errors.ShrinkageChosenWarning")
@pytest.mark.filterwarnings("ignore:The least populated class")
def test_folds_that_are_short_of_one_row_are_as_fits_to_the_others():
    X, y = wines(20)
    folds = StratifiedKFold(4)  # 15 rows to fit to
    each = cross_val_predict(LDA(), X, y, cv=folds, method="predict_log_proba")
    np.testing.assert_allclose(cross_validate(LDA(), X, y, folds).log_posterior, each, atol=1e-7)


# --- what is said of columns is true of columns ---------------------------------------------------


@pytest.mark.filterwarnings("ignore::discriminant.errors.ShrinkageChosenWarning")
def test_of_too_few_rows_only_the_column_made_from_the_label_is_said_to_separate():
    X, y = wines(15)
    with pytest.warns(SeparatingColumnWarning, match=r"^Column\(s\) 'x13' do not vary"):
        told_of = LDA().fit(np.column_stack([X, y]), y)
    hidden = np.column_stack(others(15))
    assert told_of.score(hidden, others(15)[1]) == 1.0


def test_a_combination_that_does_not_vary_within_classes_is_called_one():
    X = np.column_stack([WINE, WINE[:, 2] + KIND])
    with pytest.warns(
        SeparatingColumnWarning, match=r"^A combination of column\(s\) 'x2', 'x13' d"
    ):
        assert LDA().fit(X, KIND).score(X, KIND) == 1.0


@pytest.mark.parametrize("n", [FEATURES + CLASSES, FEATURES + CLASSES + 1, 100])
def test_a_copied_column_is_collinear_and_changes_nothing_where_the_others_have_rows(n):
    X, y = wines(n)
    twice = np.column_stack([X, X[:, 2]])
    kinds, fitted = told(lambda: LDA().fit(twice, y))
    once = told(lambda: LDA().fit(X, y))[1].predict_log_proba(X)
    same = np.allclose(fitted.predict_log_proba(twice), once, rtol=1e-5, atol=1e-5)
    assert (kinds[0], same) == (CollinearWarning, True)


# --- hardly enough --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "expected"),
    [
        (FEATURES + CLASSES, True),
        (2 * FEATURES + CLASSES - 1, True),
        (2 * FEATURES + CLASSES, False),
    ],
)
def test_fewer_than_two_degrees_of_freedom_a_feature_are_told(n, expected):
    kinds, _ = told(lambda: LDA().fit(*wines(n)))
    assert kinds == [ScarceRowsWarning] * expected


def test_warning_states_the_mean_inflation_of_the_inverse():
    degrees = 20 - CLASSES
    mean = invwishart.mean(df=degrees, scale=degrees * np.eye(FEATURES))[0, 0]
    with pytest.warns(
        ScarceRowsWarning, match=rf"from 20 rows \(17 .* overestimated about {mean:.2g}-fold"
    ):
        LDA().fit(*wines(20))


def test_scarce_classes_are_told_once_and_shrinking_them_does_better():
    X, y = load_digits(return_X_y=True)
    some = np.random.default_rng(0).permutation(len(y))
    fit, new = some[:700], some[700:]
    kinds, plain = told(lambda: QDA().fit(X[fit], y[fit]))
    shrunk = told(lambda: QDA(shrinkage="auto").fit(X[fit], y[fit]))[1]
    better = shrunk.score(X[new], y[new]) > plain.score(X[new], y[new]) + 0.1
    assert (kinds.count(ScarceRowsWarning), better) == (1, True)


@pytest.mark.parametrize(
    "model",
    [
        LDA(shrinkage=0.1),
        LDA(shrinkage="auto"),
        LDA(shrinkage=1.0),
        RDA(pooling=0.5, shrinkage=0.1),
    ],
)
def test_a_shrunk_covariance_is_not_scarce(model):
    assert told(lambda: model.fit(*wines(17)))[0] == []


def test_one_feature_is_never_scarce():
    assert told(lambda: LDA().fit([[0.0], [1.0], [4.0], [5.5]], list("aabb")))[0] == []


def test_a_grid_that_is_judged_on_held_out_rows_does_not_speak_of_scarce_ones():
    X, y = wines(60)
    kinds, _ = told(lambda: rda_grid(X, y, 3, pooling=[0.0, 0.5, 1.0], shrinkage=[0.0, 0.5]))
    assert ScarceRowsWarning not in kinds


def test_a_study_says_it_once_of_each_model_that_it_holds_of():
    X, y = wines(60)
    compared = study(pd.DataFrame(X).assign(kind=y).rename(columns=str), target="kind", folds=3)
    compared.compare(["lda", "qda", "nearest_mean"])
    said = [
        [type(one) for one in compared.comparison[name].warnings].count(ScarceRowsWarning)
        for name in ("lda", "qda", "nearest_mean")
    ]
    assert said == [0, 1, 0]
