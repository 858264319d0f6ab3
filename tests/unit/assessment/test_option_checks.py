"""What is asked in vain at the doors of assessment is refused by name, never ignored."""

import numpy as np
import pytest

from discriminant import (
    LDA,
    QDA,
    LinearRegression,
    assess,
    auc,
    average_precision,
    compare_auc,
    compare_models,
    cross_validate,
    estimated_prior,
    evaluate,
    interval_over,
    precision_recall,
    ranking,
    roc,
)
from discriminant.errors import (
    ComparisonError,
    OptionError,
    PosteriorError,
    PriorError,
    ScoreError,
    ShapeError,
    WeightError,
)
from tests.unit.assessment.test_intervals import score_ends

TRUTH, SAID = list("aabbab"), list("abbbaa")
SURE = [[0.9, 0.1], [0.3, 0.7], [0.2, 0.8], [0.4, 0.6], [0.6, 0.4], [0.5, 0.5]]


def rows_of(seed=0, n=60):
    rng = np.random.default_rng(seed)
    y = np.repeat(["a", "b"], n // 2)
    return rng.standard_normal((n, 2)) + (y == "b")[:, None], y


# --- assess, evaluate -----------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"reject": 0.1}, {"cost": {"a": {"b": 3}}}])
def test_what_was_decided_is_not_decided_again(options):
    with pytest.raises(OptionError, match=f"{next(iter(options))}=.*decisions are given"):
        assess(TRUTH, SAID, **options)


def test_a_regression_has_no_classes_to_measure():
    X, _ = rows_of()
    model = LinearRegression().fit(X, X[:, 0])
    with pytest.raises(OptionError, match=r"LinearRegression.*a classifier"):
        evaluate(model, X, X[:, 0])


@pytest.mark.parametrize("beta", [-1.0, float("nan"), float("inf"), "2"])
def test_recall_counts_no_less_than_nothing(beta):
    found = assess(TRUTH, SAID)
    curve = precision_recall([0, 1, 1], [0.1, 0.2, 0.3])
    for ask in (found.f, lambda beta: found.average("f", beta=beta), curve.best):
        with pytest.raises(OptionError, match=r"beta=.*0 or more"):
            ask(beta)


def test_where_recall_counts_for_nothing_f_is_precision():
    found = assess(TRUTH, SAID)
    np.testing.assert_allclose(found.f(0), found.precision)


# --- intervals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("draws", [0, -5, 2.5, True, "many"])
def test_a_bootstrap_draws_a_whole_number_of_tables(draws):
    found = assess(TRUTH, SAID)
    with pytest.raises(OptionError, match=r"draws=.*1 or more"):
        found.interval("f1", draws=draws)
    with pytest.raises(OptionError, match=r"draws=.*1 or more"):
        interval_over([found, found], "f1", method="bootstrap", draws=draws)


@pytest.mark.parametrize("seed", ["x", -1, 0.5])
def test_a_seed_that_is_none_is_named(seed):
    with pytest.raises(OptionError, match=r"seed=.*whole number.*Generator"):
        assess(TRUTH, SAID).interval("mcc", seed=seed)


@pytest.mark.parametrize("measure", ["log_loss", "brier", "brier_sum"])
def test_a_loss_without_posteriors_has_no_interval(measure):
    found = assess(TRUTH, SAID)
    with pytest.raises(PosteriorError, match=f"{measure} is computed from posteriors"):
        found.interval(measure)
    with pytest.raises(PosteriorError, match=f"{measure} is computed from posteriors"):
        interval_over([found, found], measure)


@pytest.mark.parametrize("measure", ["log_loss", "brier", "brier_sum"])
def test_a_loss_varies_over_parts_as_their_means_do(measure):
    X, y = rows_of()
    parts = cross_validate(LDA(), X, y, 5).tallies
    each = np.array([getattr(part, measure) for part in parts])
    found = interval_over(parts, measure)
    most = {"log_loss": np.inf, "brier": 1.0 if len(set(y)) == 2 else 2.0, "brier_sum": 2.0}
    t, variance = 2.7764451051977987, each.var(ddof=1) / 5  # of 4 degrees, 97.5 %
    assert found.value == pytest.approx(each.mean(), rel=1e-12)
    wanted = score_ends(each.mean(), variance, t, (0.0, most[measure]))
    assert (found.low, found.high) == pytest.approx(wanted, rel=1e-9)


def test_a_loss_of_parts_drawn_anew_is_that_of_the_whole_and_lies_among_the_parts():
    X, y = rows_of()
    held = cross_validate(LDA(), X, y, 5)
    found = interval_over(held.tallies, "log_loss", method="bootstrap")
    each = [part.log_loss for part in held.tallies]
    assert found.value == pytest.approx(held.log_loss, rel=1e-12)
    assert min(each) < found.low < found.value < found.high < max(each)


def test_a_cost_varies_over_parts_as_those_of_the_parts_do():
    X, y = rows_of()
    parts, cost = cross_validate(LDA(), X, y, 5).tallies, {"a": {"b": 4}}
    found = interval_over(parts, "cost", cost=cost)
    assert found.value == pytest.approx(np.mean([part.cost(cost) for part in parts]), rel=1e-12)


@pytest.mark.parametrize("parts", [[1, 2], "ab", [LDA(), LDA()], None])
def test_parts_are_tallies(parts):
    with pytest.raises(OptionError, match=r"parts=.*assessments or tallies"):
        interval_over(parts, "error")


# --- curves ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("curve", [auc, roc, precision_recall, average_precision])
def test_labels_are_not_ranked_without_scores(curve):
    with pytest.raises(ScoreError, match=r"no scores.*predict_proba.*Ranking"):
        curve([0, 1, 1])


@pytest.mark.parametrize("interval", ["a", 95, True, 0.0, -0.5])
def test_the_level_of_an_interval_is_a_number_below_one(interval):
    with pytest.raises(OptionError, match=r"interval=.*between 0 and 1"):
        auc([0, 1, 1, 0], [0.1, 0.2, 0.3, 0.05], interval)
    with pytest.raises(OptionError, match=r"level=.*between 0 and 1"):
        compare_auc([0, 1, 1, 0], [1, 2, 3, 4], [4, 1, 2, 3], level=interval)


@pytest.mark.parametrize("curve", [auc, roc, precision_recall, average_precision])
@pytest.mark.parametrize(
    "options",
    [{"classes": [0, 1]}, {"positive": 0}, {"sample_weight": [1, 1, 1]}, {"scores": [1, 2, 3]}],
)
def test_a_ranking_has_all_with_it(curve, options):
    one = ranking([0, 1, 1], [0.1, 0.2, 0.3])
    with pytest.raises(OptionError, match=f"{next(iter(options))}=.*a Ranking ranks one class"):
        curve(one, **options)


@pytest.mark.parametrize(
    ("curve", "options"),
    [
        (auc, {"average": "weighted"}),
        (auc, {"versus": "pairs"}),
        (average_precision, {"average": "micro"}),
    ],
)
def test_a_ranking_is_of_one_class_and_has_no_average(curve, options):
    with pytest.raises(OptionError, match=f"{next(iter(options))}=.*a Ranking ranks one class"):
        curve(ranking([0, 1, 1], [0.1, 0.2, 0.3]), **options)


def test_a_ranking_does_not_know_pairs_of_scores():
    one = ranking([0, 1, 1], [0.1, 0.2, 0.3])
    with pytest.raises(ScoreError, match=r"Ranking of '1'.*both scores"):
        compare_auc(one, [1, 2, 3], [1, 2, 3])


# --- comparing models -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (lambda held: [held, held], r"this is a list.*\{name: held-out result\}"),
        (lambda held: {"a": LDA(), "b": QDA()}, "'a' is a LDA.*cross_validate"),
        (lambda held: {"a": held, "b": [held, 3]}, "'b' is a int.*cross_validate"),
        (lambda held: {"a": [], "b": []}, "'a' has no held-out results"),
    ],
)
def test_models_are_compared_by_what_was_held_out(given, message):
    X, y = rows_of()
    with pytest.raises(ComparisonError, match=message):
        compare_models(given(cross_validate(LDA(), X, y, 3)))


# --- priors of new rows ---------------------------------------------------------------------------


def test_lists_are_as_good_as_arrays_for_new_priors():
    logs = np.log(SURE)
    found = estimated_prior(logs.tolist(), [0.5, 0.5], sample_weight=[1, 2, 1, 1, 1, 1])
    wanted = estimated_prior(np.insert(logs, 1, logs[1], axis=0), np.array([0.5, 0.5]))
    np.testing.assert_allclose(found.prior, wanted.prior, rtol=1e-9)


@pytest.mark.parametrize(
    ("logs", "old", "options", "error", "message"),
    [
        ([[np.nan, -2.0]], [0.5, 0.5], {}, PosteriorError, r"row 0 .*without NaN"),
        ([[0.5, 0.5]], [0.5, 0.5], {}, PosteriorError, "sum to 3.2.*logarithms"),
        ([["x", "y"]], [0.5, 0.5], {}, PosteriorError, "not a table of numbers"),
        (np.log(SURE), [0.2, 0.3, 0.5], {}, PriorError, "3 entries for 2 classes"),
        (np.log(SURE), [1.0, 0.0], {}, PriorError, "class '1' is 0"),
        (np.log(SURE), [2.0, 1.0], {}, PriorError, "sum to 3"),
        (np.log(SURE), [0.5, 0.5], {"sample_weight": [-1] * 6}, WeightError, "row 0 .* is -1"),
        (np.log(SURE), [0.5, 0.5], {"sample_weight": [1, 1]}, ShapeError, "sample_weight"),
    ],
)
def test_new_priors_come_from_logs_of_posteriors_under_priors(logs, old, options, error, message):
    with pytest.raises(error, match=message):
        estimated_prior(logs, old, **options)
