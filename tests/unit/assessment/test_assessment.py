"""Measures equal scikit-learn's; tallies add; what cannot be measured is told."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from sklearn import metrics
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_iris, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from discriminant import (
    LDA,
    OUTLIER,
    REJECT,
    Decision,
    assess,
    compare_models,
    cross_validate,
    evaluate,
    leave_one_out,
)
from discriminant.assessment.assessment import Assessment
from discriminant.engines.local import fold
from discriminant.errors import (
    CostError,
    InputError,
    LabelError,
    MomentsMismatchError,
    OptionError,
    PosteriorError,
    ShapeError,
    WeightError,
)
from discriminant.moments.confusion import Tally, TallyReading
from discriminant.table.memory import as_table

TREES = np.array(["ash", "birch", "cedar", "date", "elm"])
CLOSE = {"rtol": 1e-12, "atol": 1e-13}


def drawn(seed, K=3, n=200, weighted=False, refuse=False):
    """Truth, decisions, posteriors and weights of some rows."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, K, n)
    scores = rng.normal(size=(n, K)) + 1.5 * np.eye(K)[truth]
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    said = TREES[p.argmax(axis=1)].astype(object)
    if refuse:
        said[p.max(axis=1) < 0.5] = REJECT
        said[rng.random(n) < 0.05] = OUTLIER
    return TREES[truth], said, p, rng.gamma(2.0, 0.5, n) if weighted else None


def as_texts(said):
    """Refusals as labels, which is all that scikit-learn knows."""
    return np.array([str(action) for action in said])


cases = pytest.mark.parametrize(
    ("seed", "K", "weighted", "refuse"),
    [
        (seed, K, weighted, refuse)
        for seed, K in ((0, 2), (1, 3), (2, 5))
        for weighted in (False, True)
        for refuse in (False, True)
    ],
)


# --- scikit-learn --------------------------------------------------------------------------------

WHOLE = {
    "balanced_accuracy": metrics.balanced_accuracy_score,
    "mcc": metrics.matthews_corrcoef,
    "kappa": metrics.cohen_kappa_score,
}


@cases
@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.filterwarnings("ignore:y_pred contains classes")
def test_a_measure_of_all_rows_is_that_of_scikit_learn(seed, K, weighted, refuse, name):
    truth, said, _, weight = drawn(seed, K, weighted=weighted, refuse=refuse)
    found = getattr(assess(truth, said, sample_weight=weight), name)
    theirs = WHOLE[name](truth, as_texts(said), sample_weight=weight)
    np.testing.assert_allclose(found, theirs, **CLOSE)


@cases
def test_accuracy_and_error_are_those_of_scikit_learn_on_the_decided_rows(
    seed, K, weighted, refuse
):
    truth, said, _, weight = drawn(seed, K, weighted=weighted, refuse=refuse)
    found = assess(truth, said, sample_weight=weight)
    decided = ~np.isin(said, [REJECT, OUTLIER])
    some = None if weight is None else weight[decided]
    theirs = metrics.accuracy_score(truth[decided], said[decided].astype(str), sample_weight=some)
    np.testing.assert_allclose([found.accuracy, 1 - found.error], theirs, **CLOSE)


@cases
@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_measures_of_each_class_are_those_of_scikit_learn(seed, K, weighted, refuse, beta):
    truth, said, _, weight = drawn(seed, K, weighted=weighted, refuse=refuse)
    found = assess(truth, said, sample_weight=weight)
    theirs = metrics.precision_recall_fscore_support(
        truth, as_texts(said), beta=beta, labels=TREES[:K], sample_weight=weight
    )
    ours = [found.precision, found.recall, found.f(beta), found.support]
    np.testing.assert_allclose(ours, theirs, **CLOSE)


@cases
@pytest.mark.parametrize("average", ["macro", "micro", "weighted"])
def test_averages_over_classes_are_those_of_scikit_learn(seed, K, weighted, refuse, average):
    truth, said, _, weight = drawn(seed, K, weighted=weighted, refuse=refuse)
    found = assess(truth, said, sample_weight=weight)
    theirs = metrics.precision_recall_fscore_support(
        truth, as_texts(said), beta=2.0, labels=TREES[:K], sample_weight=weight, average=average
    )
    ours = [found.average(name, average, beta=2.0) for name in ("precision", "recall", "f")]
    np.testing.assert_allclose(ours, theirs[:3], **CLOSE)


@cases
def test_specificity_is_the_true_negative_rate_of_scikit_learn(seed, K, weighted, refuse):
    truth, said, _, weight = drawn(seed, K, weighted=weighted, refuse=refuse)
    table = metrics.multilabel_confusion_matrix(
        truth, as_texts(said), labels=TREES[:K], sample_weight=weight
    )
    wanted = table[:, 0, 0] / table[:, 0].sum(axis=1)
    np.testing.assert_allclose(
        assess(truth, said, sample_weight=weight).specificity, wanted, **CLOSE
    )


@cases
@pytest.mark.parametrize(
    ("ours", "theirs"), [(None, None), ("true", "true"), ("decided", "pred"), ("all", "all")]
)
def test_the_confusion_matrix_is_that_of_scikit_learn_transposed(
    seed, K, weighted, refuse, ours, theirs
):
    truth, said, _, weight = drawn(seed, K, weighted=weighted, refuse=False)
    found = assess(truth, said, sample_weight=weight).confusion(transpose=True, normalise=ours)
    wanted = metrics.confusion_matrix(
        truth, said.astype(str), sample_weight=weight, normalize=theirs
    )
    np.testing.assert_allclose(found, wanted, **CLOSE)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("K", [2, 3, 5])
def test_log_loss_and_brier_are_those_of_scikit_learn(K, weighted):
    truth, _, p, weight = drawn(4, K, weighted=weighted)
    found = assess(truth, posterior=p, sample_weight=weight)
    codes = np.searchsorted(TREES, truth)
    theirs = [
        metrics.log_loss(codes, p, sample_weight=weight),
        metrics.brier_score_loss(codes, p, sample_weight=weight, labels=range(K)),
        metrics.brier_score_loss(
            codes, p, sample_weight=weight, labels=range(K), scale_by_half=False
        ),
    ]
    np.testing.assert_allclose([found.log_loss, found.brier, found.brier_sum], theirs, **CLOSE)


@pytest.mark.parametrize("bins", [1, 5, 10, 15, 20, 60])
def test_the_calibration_curve_is_that_of_scikit_learn(bins):
    truth, _, p, _ = drawn(5, 3, n=2000)
    p = np.round(p, 2)  # many lie on the ends of bins
    p[:, 2] = 1.0 - p[:, 0] - p[:, 1]
    p = np.abs(p)
    curve = assess(truth, posterior=p).calibration("birch", bins=bins)
    observed, predicted = calibration_curve(truth == "birch", p[:, 1], n_bins=bins)
    np.testing.assert_allclose(curve.observed, observed, **CLOSE)
    np.testing.assert_allclose(curve.predicted, predicted, **CLOSE)


@pytest.mark.parametrize("zero_division", [0.0, 1.0, np.nan])
@pytest.mark.parametrize("average", ["macro", "micro", "weighted"])
def test_zero_over_zero_is_averaged_as_in_scikit_learn(zero_division, average):
    truth = ["ash", "ash", "birch", "birch", "cedar"]  # cedar is never said, date never true
    said = ["ash", "birch", "birch", "date", "ash"]
    found = assess(truth, said)
    theirs = metrics.precision_recall_fscore_support(
        truth, said, average=average, zero_division=zero_division
    )
    ours = [
        found.average(name, average, zero_division=zero_division)
        for name in ("precision", "recall", "f")
    ]
    np.testing.assert_allclose(ours, theirs[:3], **CLOSE)


def test_a_rate_of_no_rows_is_no_number():
    found = assess(["ash", "cedar"], ["ash", "date"])
    undefined = [np.isnan(values).tolist() for values in (found.precision, found.recall, found.f1)]
    assert undefined == [[False, True, False], [False, False, True], [False, False, False]]


def test_a_class_that_is_known_but_does_not_occur_is_left_out_of_averages():
    truth, said, _, _ = drawn(6, 3)
    known = assess(truth, said, classes=TREES[:4])
    theirs = metrics.f1_score(truth, said.astype(str), average="macro")
    assert known.average("f", "macro") == pytest.approx(theirs, abs=1e-14)


@pytest.mark.parametrize(("truth", "said"), [("aaaa", "abab"), ("abab", "aaaa"), ("aaaa", "aaaa")])
def test_one_class_on_either_side_is_as_in_scikit_learn(truth, said):
    found = assess(list(truth), list(said), classes=["a", "b"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = [
            metrics.matthews_corrcoef(list(truth), list(said)),
            metrics.cohen_kappa_score(list(truth), list(said), labels=["a", "b"]),
        ]
    np.testing.assert_allclose([found.mcc, found.kappa], theirs, **CLOSE)


# --- refusals, costs, calibration ----------------------------------------------------------------


def test_decided_rejected_and_outlying_rows_are_all_rows():
    truth, said, _, weight = drawn(7, 4, weighted=True, refuse=True)
    found = assess(truth, said, sample_weight=weight)
    assert found.coverage + found.rejected + found.outliers == pytest.approx(1.0)
    assert found.accuracy + found.error == pytest.approx(1.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_error_means_the_same_rows_everywhere(weighted):
    """Of a model that rejects: evaluated, held out, over folds, on the page and in its facts."""
    X, y = load_iris(return_X_y=True)
    weight = np.random.default_rng(0).integers(1, 4, 150) if weighted else np.ones(150, dtype=int)
    model = Decision(LDA(), reject=0.2)
    fold = np.arange(150) % 5
    held = cross_validate(model, X, y, fold, sample_weight=weight)
    decided = held.decided < 3
    assert 0 < decided.sum() < 150 and held.error > 0
    wanted = np.average(held.predicted[decided] != y[decided], weights=weight[decided])
    facts, frame = held.tally.to_dict(), held.tally.frame("measures")
    found = [held.error, held.tally.error, facts["measures"]["error"], frame.loc["error", "value"]]
    assert found == pytest.approx([wanted] * 4, abs=1e-14)
    assert facts["measures"]["accuracy"] == pytest.approx(1 - wanted, abs=1e-14)
    assert facts["decided"] == weight[decided].sum()
    assert facts["measured_on"]["error"] == facts["measured_on"]["accuracy"] == "decided"
    assert facts["measured_on"]["log_loss"] == frame.loc["mcc", "rows"] == "all"
    page = str(held.tally).splitlines()
    assert f", {decided.sum()} decided (coverage {held.tally.coverage:.1%})" in page[0]
    assert [line.split()[-1] for line in page if line.startswith(("error", "accuracy"))] == [
        "decided",
        "decided",
    ]
    plain = cross_validate(LDA(), X, y, fold, sample_weight=weight)
    both = compare_models({"rejects": held, "all": plain})
    assert both.losses["rejects"] == held.error


def test_models_that_decide_no_row_have_no_error():
    found = assess(["ash", "birch"], [REJECT, REJECT])
    assert np.isnan([found.error, found.accuracy]).all() and found.coverage == 0.0


def test_cost_is_the_mean_of_what_each_row_cost():
    truth, said, _, weight = drawn(9, 3, weighted=True, refuse=True)
    said[:9] = "call"
    call = {"ash": 0.25, "birch": 0.5, "cedar": 0.75}
    cost = {"ash": {"birch": 5}, "call": call}
    paid = [
        0.1 if a is REJECT else 0.2 if a is OUTLIER else call[t] if a == "call"
        else 0.0 if a == t else 5.0 if (a, t) == ("ash", "birch") else 1.0
        for a, t in zip(said, truth, strict=True)
    ]  # fmt: skip
    found = assess(truth, said, sample_weight=weight, classes=TREES[:3], actions=["call"])
    wanted = np.average(paid, weights=weight)
    assert found.cost(cost, reject=0.1, outlier=0.2) == pytest.approx(wanted, abs=1e-13)


def test_an_action_without_a_cost_is_named():
    truth, said, _, _ = drawn(9, 3, refuse=True)
    with pytest.raises(CostError, match=r"'OUTLIER', 'REJECT'.*reject= and outlier="):
        assess(truth, said).cost({"ash": {"birch": 5}})


@pytest.mark.parametrize("weighted", [False, True])
def test_expected_calibration_error_is_the_mean_gap_over_bins(weighted):
    truth, _, p, weight = drawn(10, 3, n=500, weighted=weighted)
    w = np.ones(500) if weight is None else weight
    top, hit = p.max(axis=1), TREES[p.argmax(axis=1)] == truth
    gaps = 0.0
    for low in np.arange(15) / 15:
        some = (top > low) & (top <= low + 1 / 15)
        gaps += abs((w * (hit - top))[some].sum()) / w.sum()
    found = assess(truth, posterior=p, sample_weight=weight).calibration_error(bins=15)
    assert found == pytest.approx(gaps, abs=1e-12)


def test_a_true_class_of_posterior_0_makes_the_log_loss_infinite():
    found = assess(["a", "b"], posterior=[[1.0, 0.0], [1.0, 0.0]])
    assert found.log_loss == np.inf
    assert found.brier == 0.5


def test_posteriors_near_1_keep_the_digits_of_brier():
    found = assess(["a", "b"], log_posterior=[[-1e-20, np.log(1e-20)], [np.log(1e-20), -1e-20]])
    assert found.brier_sum == pytest.approx(2e-40, rel=1e-12)


def test_costs_and_a_reject_option_decide_from_posteriors_as_decision_does():
    X, y = load_iris(return_X_y=True)
    options = {"cost": {0: {1: 30}}, "reject": 0.2}
    model = Decision(LDA(), **options).fit(X, y)
    direct = assess(y, log_posterior=model.predict_log_proba(X), classes=[0, 1, 2], **options)
    assert np.array_equal(direct.weight, evaluate(model, X, y).weight)


# --- tallies add ---------------------------------------------------------------------------------


def same(one, two):
    assert one.actions == two.actions
    for name in ("rows", "weight", "weight2"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-12, atol=1e-12)
    for name in ("weight", "log_loss", "brier", "bins", "top"):
        np.testing.assert_allclose(
            getattr(one.scored, name), getattr(two.scored, name), rtol=1e-10, atol=1e-10
        )


@given(seed=st.integers(0, 999), cut=st.integers(1, 39), weighted=st.booleans())
def test_parts_add_to_the_whole(seed, cut, weighted):
    truth, said, p, weight = drawn(seed, 3, n=40, weighted=weighted, refuse=True)
    parts = [
        assess(
            truth[s],
            said[s],
            posterior=p[s],
            classes=TREES[:3],
            sample_weight=None if weight is None else weight[s],
        )
        for s in (slice(cut), slice(cut, None))
    ]
    same(sum(parts), assess(truth, said, posterior=p, classes=TREES[:3], sample_weight=weight))


@given(seed=st.integers(0, 999), cut=st.integers(1, 19))
def test_parts_that_know_different_classes_and_actions_add_to_the_union(seed, cut):
    truth, said, _, _ = drawn(seed, 5, n=20, refuse=True)
    parts = [assess(truth[s], said[s]) for s in (slice(cut), slice(cut, None))]
    both, whole = parts[0] + parts[1], assess(truth, said)
    assert both.actions == whole.actions
    assert np.array_equal(both.weight, whole.weight)


def test_a_sum_of_assessments_can_be_asked():
    truth, said, _, _ = drawn(1)
    found = sum(assess(truth[part], said[part]) for part in np.array_split(np.arange(200), 7))
    assert isinstance(found, Assessment)
    assert found.error == pytest.approx((truth != said).mean(), abs=1e-15)


def test_tallies_of_different_bins_refuse_to_add():
    labels = TREES[:2]
    with pytest.raises(MomentsMismatchError, match=r"'bins' .*\(3, 2, 10\).*\(3, 2, 60\)"):
        Tally.empty(labels) + Tally.empty(labels, bins=10)


def test_a_tally_folded_over_blocks_is_that_of_all_rows():
    X, y = load_wine(return_X_y=True)
    model = LDA().fit(X, y)
    read = TallyReading(model.classes_, model.predict_log_proba)
    many, codes = np.tile(X, (300, 1)), np.tile(y, 300)
    whole = assess(codes, log_posterior=np.tile(model.predict_log_proba(X), (300, 1)))
    same(fold(as_table(many, codes), read), whole)


# --- where they come from ------------------------------------------------------------------------


@pytest.mark.parametrize("way", [cross_validate, leave_one_out])
def test_what_was_held_out_has_a_tally(way):
    X, y = load_wine(return_X_y=True)
    held = way(LDA(), X[:, :4], y)
    theirs = metrics.recall_score(y, held.predicted, average=None)
    np.testing.assert_allclose(held.tally.recall, theirs, **CLOSE)
    assert held.tally.log_loss == pytest.approx(held.log_loss, rel=1e-12)


def test_the_tallies_of_the_folds_add_to_the_tally():
    X, y = load_wine(return_X_y=True)
    held = cross_validate(LDA(), X[:, :4], y, 7, sample_weight=1.0 + y)
    assert len(held.tallies) == 7
    same(sum(held.tallies), held.tally)


def test_a_classifier_without_posteriors_is_measured_by_what_it_predicts():
    X, y = load_iris(return_X_y=True)
    model = LinearSVC().fit(X, y)
    found = evaluate(model, X, y)
    assert found.accuracy == pytest.approx(model.score(X, y), abs=1e-15)
    assert np.isnan(found.log_loss)
    with pytest.raises(PosteriorError, match=r"computed from posteriors.*posterior="):
        found.calibration()


def test_any_classifier_of_scikit_learn_is_measured():
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=1000).fit(X, TREES[y])
    found = evaluate(model, X, TREES[y])
    wanted = metrics.log_loss(TREES[y], model.predict_proba(X))
    assert found.log_loss == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(
    ("threshold", "printed"),
    [(0.5, [[9644, 252], [23, 81]]), (0.2, [[9432, 138], [235, 195]])],  # ISLR tables 4.4 and 4.5
)
def test_default_is_confused_as_in_islr(shared_data, threshold, printed):
    table = pd.read_csv(shared_data / "islr_default" / "Default.csv")
    student = table.filter(like="student").iloc[:, 0].isin(["Yes", 1, True])
    features = np.column_stack([table["balance"], student]).astype(float)
    model = Decision(LDA(), threshold=threshold).fit(features, table["default"])
    assert evaluate(model, features, table["default"]).confusion().tolist() == printed


@pytest.mark.parametrize(
    "kind",
    [
        lambda y: TREES[y].tolist(),
        lambda y: TREES[y],
        lambda y: TREES[y].astype(object),
        lambda y: pd.Series(TREES[y], index=np.arange(len(y))[::-1]),
        lambda y: pd.Series(TREES[y], dtype="string"),
        lambda y: pd.Categorical(TREES[y]),
        lambda y: pd.Series(pd.Categorical(TREES[y])),
        lambda y: y,
        lambda y: y.astype(float),
        lambda y: y > 0,
        lambda y: y.astype(np.uint8),
    ],
    ids=[
        *("list", "text", "object", "series", "string", "categorical", "categories"),
        *("integer", "float", "boolean", "byte"),
    ],
)
def test_labels_of_any_kind_are_counted(kind):
    rng = np.random.default_rng(0)
    truth, said = rng.integers(0, 3, (2, 50))
    found = assess(kind(truth), kind(said))
    wanted = metrics.confusion_matrix(np.asarray(kind(truth)), np.asarray(kind(said)))
    assert np.array_equal(found.confusion(transpose=True), wanted)


def test_columns_are_those_of_labels_in_any_order():
    truth, _, p, _ = drawn(11)
    turned = assess(truth, posterior=p[:, ::-1], classes=["cedar", "birch", "ash"])
    same(turned, assess(truth, posterior=p))


# --- what cannot be measured ---------------------------------------------------------------------


def test_a_class_the_model_does_not_know_is_listed_with_its_rows():
    X, y = load_iris(return_X_y=True)
    model = LDA().fit(X[y > 0], TREES[y[y > 0]])
    with pytest.raises(
        LabelError, match=r"57 row\(s\) .*2 class.*'ash' \(50 rows\), 'elm' \(7 rows\).*'cedar'"
    ):
        evaluate(model, X, np.where(np.arange(150) > 142, "elm", TREES[y]))


def test_a_class_the_model_does_not_know_can_be_counted_and_is_never_right():
    X, y = load_iris(return_X_y=True)
    model = LDA().fit(X[y > 0], TREES[y[y > 0]])
    found = evaluate(model, X, TREES[y], unseen="count")
    wanted = (model.predict(X) != TREES[y]).mean()
    assert found.error == pytest.approx(wanted, abs=1e-15)
    assert found.labels.tolist() == ["ash", "birch", "cedar"]
    assert found.support.tolist() == [50, 50, 50]
    assert found.recall[0] == 0
    assert found.log_loss == np.inf


HALF = [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({}, OptionError, "decided=None.*log_posterior= or posterior="),
        ({"decided": ["a"]}, ShapeError, "1.*2"),
        ({"decided": ["a", None]}, LabelError, r"decision is missing.*row\(s\) 1"),
        ({"decided": ["a", "x"], "classes": ["a", "b"]}, LabelError, r"'x' \(1 rows\).*actions="),
        ({"decided": [0, 1]}, LabelError, "mixed types"),
        ({"decided": ["a", "b"], "classes": ["a", "a", "b"]}, LabelError, "twice"),
        ({"decided": ["a", "b"], "classes": ["a"]}, LabelError, r"'b' \(1 rows\)"),
        ({"decided": ["a", "b"], "unseen": "drop"}, OptionError, "'error' or 'count'"),
        ({"decided": ["a", "b"], "sample_weight": [1, -1]}, WeightError, "row 1"),
        ({"posterior": [[0.5, 0.5]]}, ShapeError, "posterior.*1.*2"),
        ({"posterior": [[1.0], [1.0]]}, PosteriorError, r"1 column.*2 classes.*classes="),
        ({"posterior": [[0.5, 0.5], [0.5, 0.1]]}, PosteriorError, "row 1.*0.6"),
        ({"posterior": [[0.5, 0.5], [np.nan, 0.1]]}, PosteriorError, "row 1.*nan"),
        ({"posterior": [[0.5, 0.5], [1.5, -0.5]]}, PosteriorError, "row 1"),
        ({"log_posterior": HALF}, PosteriorError, "log_posterior of row 0.*posterior="),
        ({"log_posterior": HALF, "posterior": HALF}, OptionError, "log_posterior is given"),
    ],
    ids=lambda value: next(iter(value), "nothing") if isinstance(value, dict) else None,
)
def test_what_does_not_fit_is_told(given, kind, words):
    with pytest.raises(kind, match=words):
        assess(["a", "b"], **given)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda found: found.frame("rows"), "'classes', 'confusion'"),
        (lambda found: found.average("f", "mean"), "'macro', 'micro'"),
        (lambda found: found.average("f1"), "'precision', 'recall' or 'f'"),
        (lambda found: found.confusion(normalise="pred"), "'true', 'decided'"),
        (lambda found: found.calibration(bins=7), "bins=7.*1, 2, 3, 4, 5, 6, 10"),
        (lambda found: found.calibration("x"), "'x'.*'ash', 'birch', 'cedar'"),
    ],
)
def test_what_is_asked_for_wrongly_is_told(call, words):
    truth, said, p, _ = drawn(1)
    with pytest.raises(InputError, match=words):
        call(assess(truth, said, posterior=p))


# --- pages ---------------------------------------------------------------------------------------


def test_a_page_shows_the_counts_and_the_measures():
    truth, said, p, _ = drawn(12, 3, refuse=True)
    found = assess(truth, said, posterior=p)
    text = str(found)
    words = ["200 rows of 3 classes", f"{found.error:.4f}", "REJECT", "Brier", f"{found.f1[1]:.4f}"]
    assert all(word in text for word in words)


def test_of_many_classes_the_largest_confusions_are_shown():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 40, 3000)
    said = np.where((truth == 7) & (rng.random(3000) < 0.5), 23, truth)
    line = next(line for line in str(assess(truth, said)).splitlines() if line.startswith("23"))
    assert line.split() == ["23", "7", str(((truth == 7) & (said == 23)).sum())]


@pytest.mark.parametrize("what", ["classes", "confusion", "averages", "measures"])
def test_frames_hold_what_the_measures_say(what):
    truth, said, p, _ = drawn(12, 3, refuse=True)
    found = assess(truth, said, posterior=p)
    frame = found.frame(what)
    wanted = {
        "classes": lambda: np.array_equal(frame["recall"], found.recall),
        "confusion": lambda: frame.loc[REJECT, "ash"] == found.weight[-1, 0],
        "averages": lambda: frame.loc["macro", "f1"] == found.average("f", "macro"),
        "measures": lambda: frame.loc["log_loss", "value"] == found.log_loss,
    }
    assert wanted[what]()


def test_a_dictionary_of_facts_can_be_written_as_json():
    truth, said, p, _ = drawn(12, 3, refuse=True)
    facts = json.loads(json.dumps(assess(truth, said, posterior=p).to_dict(), allow_nan=False))
    assert facts["actions"][-2:] == ["OUTLIER", "REJECT"]
    assert np.sum(facts["confusion"]) == 200
