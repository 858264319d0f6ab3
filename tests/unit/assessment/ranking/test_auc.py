"""AUC with its interval and its tests: as R's pROC, scikit-learn, or a count of pairs says."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

import discriminant
from discriminant.errors import NoSpreadWarning, OptionError, ScoreError, ShapeError
from tests.parity.golden import answers, frozen

SETS = list(answers("proc"))
MODELS = ["first", "second"]


@pytest.fixture(params=SETS)
def golden(request):
    return answers("proc")[request.param]


# --- pROC -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("level", [0.95, 0.8])
def test_the_auc_and_its_interval_are_those_of_proc(golden, place, level):
    found = discriminant.auc(golden["y"], golden[MODELS[place]], interval=level)
    expected = [golden["auc"][place], *golden[f"ci_{level * 100:.0f}"][place]]
    np.testing.assert_allclose([found.value, found.low, found.high], expected, rtol=0, atol=1e-10)
    assert found.standard_error**2 == pytest.approx(golden["variance"][place], rel=1e-10)


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_the_paired_test_is_that_of_proc(golden, alternative):
    found = discriminant.compare_auc(
        golden["y"], golden["first"], golden["second"], alternative=alternative
    )
    less = golden["less"]["p"]
    expected = {"two-sided": golden["test"]["p"], "less": less, "greater": 1.0 - less}[alternative]
    assert found.statistic == pytest.approx(golden["test"]["statistic"], abs=1e-10)
    assert found.p == pytest.approx(expected, abs=1e-10)
    np.testing.assert_allclose([found.low, found.high], golden["test"]["ci"], rtol=0, atol=1e-10)


@pytest.mark.parametrize("pair", list(frozen("proc")["unpaired"]))
def test_the_test_of_different_rows_is_that_of_proc(pair):
    one, two = (answers("proc")[name] for name in pair.split("_"))
    found = discriminant.compare_auc(one["y"], one["first"], two["first"], second_labels=two["y"])
    golden = frozen("proc")["unpaired"][pair]
    expected = [golden["statistic"], golden["df"], golden["p"]]
    np.testing.assert_allclose([found.statistic, found.df, found.p], expected, rtol=1e-10)


@pytest.mark.parametrize("place", [0, 1])
def test_the_partial_area_is_that_of_proc(golden, place):
    found = discriminant.roc(golden["y"], golden[MODELS[place]])
    expected = golden["partial"][place]
    assert found.partial_area(0.2, standardised=False) == pytest.approx(expected, abs=1e-10)


def test_the_auc_of_s100b_after_a_haemorrhage_is_the_published_one(shared_data):
    from csv import DictReader

    with (shared_data / "roc_asah" / "aSAH.csv").open() as file:
        table = list(DictReader(file))
    outcome = [row["outcome"] for row in table]
    s100b, wfns = ([float(row[name]) for row in table] for name in ("s100b", "wfns"))
    found = discriminant.auc(outcome, s100b, positive="Poor")
    assert f"{found.value:.4f}, {found.low:.4f}-{found.high:.4f}" == "0.7314, 0.6301-0.8326"
    test = discriminant.compare_auc(outcome, s100b, wfns, positive="Poor")
    assert f"{test.statistic:.3f}, {test.p:.5f}" == "-2.209, 0.02718"


# --- other ways -----------------------------------------------------------------------------------


def by_pairs(scores, own, weight=None):
    """AUC, and DeLong's variance, from all pairs one by one."""
    above = np.sign(scores[own][:, None] - scores[~own]) / 2 + 0.5
    mine, theirs = np.ones(own.sum()), np.ones((~own).sum())
    if weight is not None:
        mine, theirs = weight[own], weight[~own]
    value = mine @ above @ theirs / mine.sum() / theirs.sum()
    spread = 0.0
    for placed, w in ((above @ theirs / theirs.sum(), mine), (mine @ above / mine.sum(), theirs)):
        spread += w @ (placed - value) ** 2 / (w.sum() - 1) / w.sum()
    return value, spread


@given(seed=st.integers(0, 999), levels=st.sampled_from([1, 4, 1000]))
def test_value_and_variance_are_those_of_all_pairs(seed, levels):
    rng = np.random.default_rng(seed)
    own = np.append([True] * 2 + [False] * 2, rng.random(30) < 0.4)
    scores = np.round((rng.standard_normal(34) + own) * levels)
    found = discriminant.auc(own, scores)
    expected = by_pairs(scores, own)
    assert (found.value, found.standard_error**2) == pytest.approx(expected, rel=1e-12, abs=1e-15)


@given(seed=st.integers(0, 999))
def test_whole_weights_are_repeated_rows_in_value_interval_and_test(seed):
    rng = np.random.default_rng(seed)
    own = np.append([True] * 2 + [False] * 2, rng.random(30) < 0.4)
    scores = np.round(2 * (rng.standard_normal((2, 34)) + own))
    times = rng.integers(0, 4, 34)
    times[:4] = 2
    found = discriminant.compare_auc(own, *scores, sample_weight=times)
    rows = np.repeat(np.arange(34), times)
    expected = discriminant.compare_auc(own[rows], *scores[:, rows])
    for name in ("difference", "low", "high", "p"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-9, abs=1e-12)
    assert found.first.low == pytest.approx(expected.first.low, rel=1e-12)


def test_the_logit_interval_is_the_interval_of_the_log_odds():
    golden = answers("proc")["smooth"]
    found = discriminant.auc(golden["y"], golden["first"], method="logit")
    value, sd = golden["auc"][0], np.sqrt(golden["variance"][0])
    ends = expit(logit(value) + norm.ppf([0.025, 0.975]) * sd / (value * (1 - value)))
    np.testing.assert_allclose([found.low, found.high], ends, rtol=1e-10)


@given(seed=st.integers(0, 999))
def test_a_rising_map_of_the_scores_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    own, scores = np.arange(40) < 15, rng.standard_normal(40)
    found, mapped = (discriminant.auc(own, s) for s in (scores, np.exp(3 * scores)))
    assert (found.value, found.low, found.high) == (mapped.value, mapped.low, mapped.high)


def test_infinite_scores_rank_first_and_last():
    labels, scores = [0, 0, 1, 1], [-np.inf, 1.0, 0.5, np.inf]
    assert discriminant.auc(labels, scores).value == discriminant.auc(labels, [-9, 1, 0.5, 9]).value


def test_the_interval_holds_the_true_auc_about_as_often_as_it_says():
    rng = np.random.default_rng(7)
    own, true = np.arange(200) < 80, norm.cdf(1 / np.sqrt(2))
    held = []
    for _ in range(1000):
        found = discriminant.auc(own, rng.standard_normal(200) + own)
        held.append(found.low <= true <= found.high)
    assert 0.93 < np.mean(held) < 0.97


# --- many classes ---------------------------------------------------------------------------------


def three_classes(seed=0, n=120, weighted=False):
    rng = np.random.default_rng(seed)
    y = rng.choice(["ash", "birch", "cedar"], n, p=[0.2, 0.3, 0.5])
    own = y[:, None] == ["ash", "birch", "cedar"]
    scores = np.exp(np.round(2 * (rng.standard_normal((n, 3)) + own)) / 2)
    return y, scores / scores.sum(axis=1, keepdims=True), rng.random(n) if weighted else None


@pytest.mark.parametrize("average", ["macro", "weighted", "micro"])
@pytest.mark.parametrize("weighted", [False, True])
def test_classes_against_the_rest_are_those_of_scikit_learn(average, weighted):
    y, scores, weight = three_classes(weighted=weighted)
    found = discriminant.auc(y, scores, None, average=average, sample_weight=weight)
    expected = roc_auc_score(y, scores, multi_class="ovr", average=average, sample_weight=weight)
    assert found.value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_pairs_of_classes_are_those_of_hand_and_till_by_scikit_learn(average):
    y, scores, _ = three_classes()
    found = discriminant.auc(y, scores, versus="pairs", average=average)
    expected = roc_auc_score(y, scores, multi_class="ovo", average=average)
    assert found.value == pytest.approx(expected, abs=1e-12)


def test_each_class_is_shown_beside_the_mean():
    y, scores, _ = three_classes()
    expected = {
        label: roc_auc_score(y == label, scores[:, k])
        for k, label in enumerate(["ash", "birch", "cedar"])
    }
    assert discriminant.auc(y, scores).parts == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("versus", ["rest", "pairs"])
@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_the_variance_over_classes_is_that_of_the_bootstrap(versus, average):
    y, scores, _ = three_classes(n=300)
    found = discriminant.auc(y, scores, versus=versus, average=average)
    rng = np.random.default_rng(0)
    members = [np.flatnonzero(y == label) for label in np.unique(y)]
    drawn = []
    for _ in range(400):
        rows = np.concatenate([rng.choice(some, len(some)) for some in members])
        one = discriminant.auc(y[rows], scores[rows], None, versus=versus, average=average)
        drawn.append(one.value)
    assert found.standard_error == pytest.approx(np.std(drawn), rel=0.12)


@pytest.mark.parametrize("options", [{"average": "weighted"}, {"versus": "pairs"}, {}])
def test_two_classes_whose_columns_are_complements_have_one_auc(options):
    golden = answers("proc")["rounded"]
    y, scores = np.array(golden["y"]), np.array(golden["first"])
    third = np.append(y, [2, 2]), np.append(scores, [0, 0])  # so that K > 2 is asked for
    columns = np.column_stack([-third[1], third[1], np.zeros(len(third[1]))])
    columns[:, 2] = third[0] == 2
    found = discriminant.auc(*(third[0], columns), versus="pairs")
    assert found.parts[0, 1] == pytest.approx(golden["auc"][0], abs=1e-12)
    both = discriminant.auc(y, columns[:-2, :2], **options)
    assert both.low == pytest.approx(golden["ci_95"][0][0], abs=1e-10)


def test_two_models_of_many_classes_are_compared_on_the_same_rows():
    y, scores, _ = three_classes()
    worse = scores + 0.5 * np.random.default_rng(1).random(scores.shape)
    found = discriminant.compare_auc(y, scores, worse)
    gap = roc_auc_score(y, scores, multi_class="ovr") - np.mean(
        [roc_auc_score(y == label, worse[:, k]) for k, label in enumerate(np.unique(y))]
    )
    assert found.difference == pytest.approx(gap, abs=1e-12)
    assert found.standard_error < np.hypot(found.first.standard_error, found.second.standard_error)


# --- refusing and warning -------------------------------------------------------------------------


def test_a_class_of_one_row_has_an_auc_but_no_interval():
    labels, scores = ["ill", "well", "well"], [2.0, 1.0, 3.0]
    assert discriminant.auc(labels, scores, None, positive="ill").value == 0.5
    with pytest.raises(ScoreError, match=r"class 'ill' have a total weight of 1,.*interval=None"):
        discriminant.auc(labels, scores, positive="ill")
    with pytest.raises(ScoreError, match="class 'ill' have a total weight of 1,"):
        discriminant.auc(labels, scores, positive="well")


def test_constant_scores_say_nothing_and_that_is_said():
    with pytest.warns(NoSpreadWarning, match="all 4 rows are equal"):
        found = discriminant.auc([0, 0, 1, 1], [0.3] * 4)
    assert (found.value, found.low, found.high) == (0.5, 0.5, 0.5)


def test_a_perfect_auc_warns_that_its_interval_has_no_width():
    with pytest.warns(NoSpreadWarning, match="AUC is 1, .* no width"):
        discriminant.auc([0, 0, 1, 1], [1, 2, 3, 4])


def test_two_models_that_rank_alike_do_not_differ_and_no_test_is_made_of_it():
    with pytest.warns(NoSpreadWarning, match=r"difference \(0\).*p-value is meaningless"):
        found = discriminant.compare_auc([0, 0, 1, 1], [1, 3, 2, 4], [10, 30, 20, 40])
    assert (found.difference, found.p) == (0.0, 1.0)


def test_a_class_with_a_column_but_no_row_is_named():
    with pytest.raises(ScoreError, match="Class 'c' has a column of scores but no row"):
        discriminant.auc(["a", "b", "a"], np.eye(3), classes=["a", "b", "c"])


def test_a_missing_score_is_named_by_row_and_class():
    scores = np.eye(3)
    scores[2, 1] = np.nan
    with pytest.raises(ScoreError, match=r"row 2, counted from 0, for class 'b' is NaN"):
        discriminant.auc(["a", "b", "c"], scores)


def test_scores_of_fewer_rows_are_refused_by_their_numbers():
    with pytest.raises(ShapeError, match="second"):
        discriminant.compare_auc([0, 0, 1, 1], [1, 2, 3, 4], [1, 2, 3])


@pytest.mark.parametrize(
    "options",
    [{"versus": "all"}, {"average": "mean"}, {"method": "wald"}, {"interval": 95}],
)
def test_an_option_that_is_none_is_refused_by_its_name(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        discriminant.auc([0, 0, 1, 1], [1, 2, 3, 4], **options)
