"""Comparing models on held-out rows: R, arithmetic by hand, and how often a test is wrong."""

from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.dummy import DummyClassifier

from discriminant import LDA, QDA, NearestMean, compare_models, cross_validate
from discriminant.assessment.resampling.compare import corrected_t, mcnemar
from discriminant.assessment.resampling.held_out_folds import HeldOutPredictions
from discriminant.errors import ComparisonError, NoSpreadWarning, OptionError
from tests.parity.golden import frozen


def held(right, fold, weight=None):
    """Two classes, all rows of the first, of which a model has some right."""
    log = np.log(np.where(np.asarray(right)[:, None], [0.9, 0.1], [0.2, 0.8]))
    codes = np.zeros(len(log), dtype=np.intp)
    labels = np.array(["a", "b"])
    return HeldOutPredictions(
        labels, codes, np.asarray(fold), log, log.argmax(axis=1), weight=weight
    )


# --- corrected resampled t ------------------------------------------------------------------------


def two_models():
    """Errors by fold of 4, 4 and 2 rows: 1/4, 0, 1/2 and 1/2, 3/4, 1/2."""
    fold = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2])
    good = held([0, 1, 1, 1, 1, 1, 1, 1, 0, 1], fold)
    poor = held([0, 0, 1, 1, 0, 0, 0, 1, 0, 1], fold)
    return {"good": good, "poor": poor}


def test_the_corrected_t_is_that_of_exact_arithmetic():
    pair = compare_models(two_models()).pairs[0]
    d = [Fraction(-1, 4), Fraction(-3, 4), Fraction(0)]
    mean = sum(d) / 3
    s2 = sum((one - mean) ** 2 for one in d) / 2
    ratio = (Fraction(4, 6) + Fraction(4, 6) + Fraction(2, 8)) / 3  # mean of n_test / n_train
    variance = (Fraction(1, 3) + ratio) * s2
    t2 = mpmath.mpf((mean**2 / variance).numerator) / (mean**2 / variance).denominator
    # on 2 degrees of freedom: P(|T| > t) = 1 - t / sqrt(2 + t^2)
    p = 1 - mpmath.sqrt(t2 / (2 + t2))
    found = [pair.difference, pair.statistic, pair.p]
    expected = [float(mean), -float(mpmath.sqrt(t2)), float(p)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_interval_and_the_test_agree():
    pair = compare_models(two_models(), level=1 - compare_models(two_models()).pairs[0].p)
    assert pair.pairs[0].high == pytest.approx(0.0, abs=1e-12)


def test_without_training_rows_in_common_it_would_be_the_plain_t():
    from scipy.stats import ttest_1samp

    d = np.random.default_rng(0).standard_normal(9)
    assert corrected_t(d, 0.0)[1] == pytest.approx(ttest_1samp(d, 0).statistic, rel=1e-12)


def test_repetitions_are_more_folds():
    X, y = load_wine(return_X_y=True)
    X = X[:, :2]
    runs = {
        name: [cross_validate(model, X, y, 5, seed=seed) for seed in range(3)]
        for name, model in {"lda": LDA(), "qda": QDA()}.items()
    }
    pair = compare_models(runs, loss="log_loss").pairs[0]
    d = []
    for one, two in zip(runs["lda"], runs["qda"], strict=True):
        for f in range(5):
            rows = np.flatnonzero(one.fold == f)
            gap = two.log_posterior[rows, y[rows]] - one.log_posterior[rows, y[rows]]
            d.append(gap.mean())
    assert pair.df == 14
    assert pair.difference == pytest.approx(np.mean(d), rel=1e-10)


def test_models_that_are_equally_good_are_seldom_told_apart():
    rng = np.random.default_rng(5)
    found = []
    for _ in range(100):  # one feature each, of the same worth
        y = np.repeat([0, 1], 60)
        X = rng.standard_normal((120, 2)) + 0.8 * y[:, None]
        fold = rng.permutation(np.arange(120) % 10)
        runs = {j: cross_validate(LDA(), X[:, [j]], y, fold) for j in (0, 1)}
        found.append(compare_models(runs).pairs[0].p)
    assert np.mean(np.array(found) < 0.05) < 0.12


# --- McNemar --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(frozen("proc")["mcnemar"]))
def test_mcnemar_is_that_of_r(name):
    golden = frozen("proc")["mcnemar"][name]
    exact = mcnemar(golden["b"], golden["c"], exact=True)
    statistic, df, p = mcnemar(golden["b"], golden["c"], exact=False)
    assert exact[2] == pytest.approx(golden["exact_p"], rel=1e-12)
    assert (statistic, df, p) == pytest.approx((golden["chi2"], 1.0, golden["p"]), rel=1e-12)


def test_mcnemar_counts_the_rows_that_one_model_alone_has_right():
    pair = compare_models(two_models(), test="mcnemar").pairs[0]
    assert (pair.only_first, pair.only_second) == (4, 0)
    assert pair.p == pytest.approx(2 / 2**4, rel=1e-12)


def test_whole_weights_are_repeated_rows():
    times = np.array([1, 3, 0, 2, 1, 1, 2, 1, 1, 1])
    runs = two_models()
    weighed = {name: replace(one, weight=times.astype(float)) for name, one in runs.items()}
    rows = np.repeat(np.arange(10), times)
    repeated = {
        name: replace(
            one,
            codes=one.codes[rows],
            fold=one.fold[rows],
            log_posterior=one.log_posterior[rows],
            decided=one.decided[rows],
        )
        for name, one in runs.items()
    }
    for test in ("mcnemar", "resampled_t"):
        found, expected = (compare_models(r, test=test).pairs[0] for r in (weighed, repeated))
        assert (found.statistic, found.p) == pytest.approx((expected.statistic, expected.p))


# --- many models ----------------------------------------------------------------------------------


def test_all_pairs_are_compared_and_holm_holds_for_all_together():
    X, y = load_wine(return_X_y=True)
    fold = np.arange(len(y)) % 10
    models = {"lda": LDA(), "mean": NearestMean(), "none": DummyClassifier()}
    found = compare_models({n: cross_validate(m, X, y, fold) for n, m in models.items()})
    p = np.sort([pair.p for pair in found.pairs])
    holm = np.minimum(np.maximum.accumulate(p * [3, 2, 1]), 1.0)
    assert np.sort([pair.p_holm for pair in found.pairs]) == pytest.approx(holm, rel=1e-12)
    assert [(pair.first, pair.second) for pair in found.pairs] == [
        ("lda", "mean"),
        ("lda", "none"),
        ("mean", "none"),
    ]


def test_the_comparison_prints_and_becomes_a_frame():
    found = compare_models(two_models())
    assert "good - poor" in str(found)
    assert found.frame().loc[0, "p"] == found.pairs[0].p == found.to_dict()["pairs"][0]["p"]


# --- refusing -------------------------------------------------------------------------------------


def test_models_held_out_by_different_folds_are_refused_by_name():
    runs = two_models()
    other = held([1] * 10, np.arange(10) % 2)
    with pytest.raises(ComparisonError, match=r"'good' and 'other'.*their folds differ"):
        compare_models({"good": runs["good"], "other": other})


def test_one_model_alone_is_refused():
    with pytest.raises(ComparisonError, match=r"1 model is too few.*pass two or more"):
        compare_models({"good": two_models()["good"]})


def test_different_numbers_of_repetitions_are_refused():
    one = two_models()
    with pytest.raises(ComparisonError, match=r"'good' has 2 repetitions and 'poor' has 1"):
        compare_models({"good": [one["good"]] * 2, "poor": one["poor"]})


def test_mcnemar_refuses_repetitions_and_broken_weights():
    one = two_models()
    with pytest.raises(ComparisonError, match="'good' has 2 repetitions"):
        compare_models({name: [run] * 2 for name, run in one.items()}, test="mcnemar")
    half = {name: replace(run, weight=np.full(10, 0.5)) for name, run in one.items()}
    with pytest.raises(ComparisonError, match="not whole numbers"):
        compare_models(half, test="mcnemar")


def test_an_infinite_loss_is_named_by_model_and_fold():
    runs = two_models()
    log = runs["poor"].log_posterior.copy()
    log[5] = [-np.inf, 0.0]
    worse = replace(runs["poor"], log_posterior=log)
    with pytest.raises(ComparisonError, match=r"'worse' gives a true class of fold 1"):
        compare_models({"good": runs["good"], "worse": worse}, loss="log_loss")


def test_models_that_err_alike_warn_that_there_is_no_test():
    one = two_models()["good"]
    with pytest.warns(NoSpreadWarning, match=r"\(0\)"):
        assert compare_models({"one": one, "two": one}).pairs[0].p == 1.0


@pytest.mark.parametrize(
    "options", [{"test": "t"}, {"loss": "auc"}, {"level": 2}, {"loss": "log_loss"}]
)
def test_options_that_are_none_are_refused(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        compare_models(two_models(), **{"test": "mcnemar", **options})
