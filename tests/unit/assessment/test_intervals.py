"""Intervals of rates against R and statsmodels; of all else against laws that are known."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import expit
from sklearn import metrics
from sklearn.datasets import load_wine

from discriminant import (
    LDA,
    REJECT,
    assess,
    compare_models,
    cross_validate,
    interval_over,
)
from discriminant.assessment.intervals import clopper_pearson, resample_tables, wilson
from discriminant.assessment.resampling.held_out_folds import HeldOutPredictions
from discriminant.errors import OptionError
from tests.parity.golden import frozen

TREES = np.array(["ash", "birch", "cedar"])
WAYS = {"wilson": wilson, "exact": clopper_pearson}


def some_rows(seed=0, n=300, weighted=False):
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    scores = 1.2 * np.eye(3)[truth] + rng.normal(size=(n, 3))
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    said = TREES[p.argmax(axis=1)].astype(object)
    said[p.max(axis=1) < 0.45] = REJECT
    weight = rng.gamma(2.0, 0.5, n) if weighted else None
    return TREES[truth], said, p, weight


def assessed(seed=0, n=300, weighted=False):
    truth, said, p, weight = some_rows(seed, n, weighted)
    return assess(truth, said, posterior=p, sample_weight=weight)


# --- rates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", WAYS)
@pytest.mark.parametrize("peer", ["intervals_r", "intervals_statsmodels"])
def test_intervals_of_a_rate_are_those_of_the_peer(peer, method):
    golden = frozen(peer)
    counts = zip(golden["x"], golden["n"], golden["level"], strict=True)
    found = [WAYS[method]((np.array(x), np.array(n)), level) for x, n, level in counts]
    # R solves for the ends of binom.test by the same Beta quantiles; statsmodels leaves 0 as 1e-17
    np.testing.assert_allclose(found, golden[method], rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("method", WAYS)
@pytest.mark.parametrize("name", ["precision", "recall", "specificity", "error", "rejected"])
def test_the_interval_of_a_measure_is_that_of_its_counts(name, method):
    truth, said, _, _ = some_rows()
    found = assess(truth, said).interval(name, method=method, level=0.9)
    rejected = said == REJECT
    one = (said[:, None] == TREES, truth[:, None] == TREES)
    pairs = {
        "precision": ((one[0] & one[1]).sum(axis=0), one[0].sum(axis=0)),
        "recall": ((one[0] & one[1]).sum(axis=0), one[1].sum(axis=0)),
        "specificity": ((~one[0] & ~one[1]).sum(axis=0), (~one[1]).sum(axis=0)),
        "error": (((said != truth) & ~rejected).sum(), (~rejected).sum()),
        "rejected": (rejected.sum(), len(truth)),
    }
    way = {"wilson": "wilson", "exact": "exact"}[method]
    pairs = [np.atleast_1d(value) for value in pairs[name]]
    wanted = [
        stats.binomtest(int(x), int(n)).proportion_ci(0.9, method=way)
        for x, n in zip(*np.broadcast_arrays(*pairs), strict=True)
    ]
    np.testing.assert_allclose(np.atleast_1d(found.low), [w.low for w in wanted], rtol=1e-10)
    np.testing.assert_allclose(np.atleast_1d(found.high), [w.high for w in wanted], rtol=1e-10)


def test_whole_weights_are_rows():
    truth, said, _, _ = some_rows()
    times = np.random.default_rng(1).integers(0, 4, len(truth))
    weighed = assess(truth, said, sample_weight=times).interval("recall")
    repeated = assess(np.repeat(truth, times), np.repeat(said, times)).interval("recall")
    np.testing.assert_allclose(weighed.low, repeated.low, rtol=1e-13)


def test_reliability_weights_are_worth_as_many_rows_as_kish_says():
    truth, said, _, weight = some_rows(weighted=True)
    found = assess(truth, said, sample_weight=weight).interval("recall", weights="reliability")
    for k, label in enumerate(TREES):
        w = weight[truth == label]
        n = w.sum() ** 2 / (w**2).sum()
        p = np.average(said[truth == label] == label, weights=w)
        ends = [float(end) for end in wilson((np.array(p * n), np.array(n)))]
        assert [found.low[k], found.high[k]] == pytest.approx(ends, rel=1e-12)


@pytest.mark.parametrize("name", ["error", "mcc", "log_loss"])
def test_the_unit_of_reliability_weights_does_not_matter(name):
    truth, said, p, weight = some_rows(weighted=True)
    one, two = (
        assess(truth, said, posterior=p, sample_weight=w).interval(name, weights="reliability")
        for w in (weight, 1e-6 * weight)
    )
    assert (one.low, one.high) == pytest.approx((two.low, two.high), rel=1e-10)


def test_a_rate_of_no_rows_has_no_interval():
    found = assess(["ash", "birch"], ["ash", "ash"]).interval("precision")
    assert np.isnan([found.value[1], found.low[1], found.high[1]]).all()


# --- bootstrap -----------------------------------------------------------------------------------


def test_the_bootstrap_of_a_rate_follows_the_binomial_law():
    found = assessed()
    n, p = 300, found.coverage
    ends = found.interval("coverage", method="bootstrap", draws=40_000)
    law = stats.binom(n, p)
    for end, tail in ((ends.low, 0.025), (ends.high, 0.975)):
        near = law.ppf([tail - 0.004, tail + 0.004]) / n  # four standard errors of the share
        assert near[0] <= end <= near[1]


def test_stratified_draws_keep_the_rows_of_each_class():
    found = assessed()
    tables = resample_tables(found, 50, np.random.default_rng(0), stratified=True)
    np.testing.assert_allclose(tables.sum(axis=1), np.tile(found.support, (50, 1)), rtol=1e-13)


@pytest.mark.parametrize("weights", ["counts", "reliability"])
@pytest.mark.parametrize("stratified", [False, True])
def test_drawn_tables_have_the_mean_of_the_table(weights, stratified):
    found = assessed(weighted=True)
    rng = np.random.default_rng(0)
    tables = resample_tables(found, 20_000, rng, weights, stratified=stratified)
    error = tables.std(axis=0) / np.sqrt(20_000)
    assert (np.abs(tables.mean(axis=0) - found.weight) <= 6 * error + 0.02).all()


@pytest.mark.parametrize(
    ("name", "measure"),
    [
        ("mcc", metrics.matthews_corrcoef),
        ("balanced_accuracy", metrics.balanced_accuracy_score),
        ("macro_f1", lambda y, s: metrics.f1_score(y, s, average="macro", labels=TREES)),
    ],
)
@pytest.mark.filterwarnings("ignore:y_pred contains classes")
def test_drawing_cells_is_drawing_rows(name, measure):
    truth, said, _, _ = some_rows(n=120)
    texts = np.array([str(action) for action in said])
    rng = np.random.default_rng(3)
    by_rows = [measure(truth[some], texts[some]) for some in rng.integers(0, 120, (1500, 120))]
    found = assess(truth, said).interval(name, draws=20_000)
    reach = np.std(by_rows)
    for end, tail in ((found.low, 0.025), (found.high, 0.975)):
        assert abs(end - np.quantile(by_rows, tail)) < 0.25 * reach


def test_a_seed_gives_the_same_interval_again():
    found = assessed()
    one, two, other = (found.interval("f1", seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.low, two.low)
    assert not np.array_equal(one.low, other.low)


def test_the_cost_has_an_interval():
    found = assessed()
    cost = {"ash": {"cedar": 20}}
    ends = found.interval("cost", cost=cost, reject=0.3)
    assert ends.value == found.cost(cost, reject=0.3)
    assert ends.low < ends.value < ends.high


# --- losses and parts ----------------------------------------------------------------------------


def losses_of(name, truth, p):
    codes = np.searchsorted(TREES, truth)
    if name == "log_loss":
        return -np.log(p[np.arange(len(p)), codes])
    return ((p - np.eye(3)[codes]) ** 2).sum(axis=1)


def score_ends(mean, variance, t, bounds):
    """Both ends by turning round the test with variance proportional to (mu - a)(b - mu)."""
    low, high = bounds

    def beyond(mu):
        room = (mu - low) / (mean - low)
        room *= 1.0 if np.isinf(high) else (high - mu) / (high - mean)
        return (mean - mu) ** 2 - t**2 * variance * room

    far = mean + 100 * (mean - low) + 100 if np.isinf(high) else high
    return brentq(beyond, low, mean, xtol=1e-15), brentq(beyond, mean, far, xtol=1e-15)


@pytest.mark.parametrize(("name", "most"), [("log_loss", np.inf), ("brier", 2.0)])
def test_the_interval_of_a_mean_loss_inverts_the_score_test(name, most):
    truth, said, p, _ = some_rows()
    loss = losses_of(name, truth, p)
    found = assess(truth, said, posterior=p).interval(name, level=0.9)
    t = stats.t.ppf(0.95, 299)
    wanted = score_ends(loss.mean(), loss.var(ddof=1) / 300, t, (0.0, most))
    assert (found.low, found.high) == pytest.approx(wanted, rel=1e-10)


def test_the_brier_score_of_two_classes_has_one_for_its_bound():
    rng = np.random.default_rng(5)
    p = rng.beta(0.6, 0.4, 80)
    truth = np.where(rng.random(80) < p, "b", "a")
    loss = (p - (truth == "b")) ** 2
    found = assess(truth, posterior=np.column_stack([1 - p, p])).interval("brier")
    t = stats.t.ppf(0.975, 79)
    wanted = score_ends(loss.mean(), loss.var(ddof=1) / 80, t, (0.0, 1.0))
    assert (found.low, found.high) == pytest.approx(wanted, rel=1e-10)


def test_the_interval_of_a_weighted_mean_loss_has_the_sandwich_variance():
    truth, said, p, weight = some_rows(weighted=True)
    loss = losses_of("log_loss", truth, p)
    mean = np.average(loss, weights=weight)
    n = weight.sum() ** 2 / (weight**2).sum()
    variance = (weight**2 * (loss - mean) ** 2).sum() / weight.sum() ** 2 * n / (n - 1)
    found = assess(truth, said, posterior=p, sample_weight=weight)
    ends = found.interval("log_loss", weights="reliability")
    wanted = score_ends(mean, variance, stats.t.ppf(0.975, n - 1), (0.0, np.inf))
    assert (ends.low, ends.high) == pytest.approx(wanted, rel=1e-10)


@pytest.mark.parametrize("weights", ["counts", "reliability"])
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("name", ["log_loss", "brier", "brier_sum"])
@pytest.mark.parametrize("seed", range(5))
def test_the_interval_of_a_loss_stays_in_its_range(name, K, weights, seed):
    """Few rows, nearly all certain and right: a normal interval begins below 0."""
    rng = np.random.default_rng(seed)
    certain = np.full((12, K), 1e-4)
    codes = rng.integers(0, K, 12)
    certain[np.arange(12), codes] = 1 - 1e-4 * (K - 1)
    certain[0] = np.roll(certain[0], 1)
    weight = rng.gamma(2.0, 0.5, 12) + 0.1
    found = assess(
        TREES[codes], posterior=certain, classes=TREES[:K], sample_weight=weight
    ).interval(name, weights=weights)
    most = {"log_loss": np.inf, "brier": 1.0 if K == 2 else 2.0, "brier_sum": 2.0}[name]
    assert 0.0 < found.low < found.value < found.high <= most


@pytest.mark.parametrize("right", [True, False])
def test_losses_at_a_bound_have_the_interval_of_a_share_at_it(right):
    truth = np.array(["a", "b"] * 10)
    p = np.eye(2)[(truth == "b").astype(int)]
    found = assess(truth, posterior=p if right else p[:, ::-1]).interval("brier")
    t2 = stats.t.ppf(0.975, 19) ** 2
    far = t2 / (20 + t2)  # Wilson's interval of 0 of 20
    wanted = (0.0, far) if right else (1.0 - far, 1.0)
    assert (found.low, found.high) == pytest.approx(wanted, abs=1e-12)


def test_one_row_has_no_interval_of_a_loss():
    found = assess(["a"], posterior=[[0.8, 0.2]], classes=["a", "b"]).interval("log_loss")
    assert np.isnan([found.low, found.high]).all()


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "least"), [(150, 0.905), (500, 0.935)])
def test_intervals_of_losses_cover_more_often_than_normal_ones(rows, least):
    """Calibrated posteriors of two classes, 5 % wrong; the mean losses by numerical integration."""
    spread = 1.2 * np.sqrt(5.0)
    odds = stats.norm(5.0, spread)

    def both(z):
        p = expit(z)
        return [p * np.log1p(np.exp(-z)) + (1 - p) * np.log1p(np.exp(z)), p * (1 - p)]

    truths = [quad(lambda z, i=i: odds.pdf(z) * both(z)[i], -30, 40, limit=500)[0] for i in (0, 1)]
    rng = np.random.default_rng(1)
    hits = np.zeros((2, 2))
    for _ in range(1000):
        z = rng.normal(5.0, spread, rows)
        second = (rng.random(rows) < expit(z)).astype(int)
        p = np.column_stack([expit(-z), expit(z)])
        found = assess(second, posterior=p, classes=[0, 1])
        each = -np.log(p[np.arange(rows), second]), p[np.arange(rows), 1 - second] ** 2
        for i, name in enumerate(("log_loss", "brier")):
            ends, mean, se = found.interval(name), each[i].mean(), stats.sem(each[i])
            hits[i] += ends.low <= truths[i] <= ends.high, abs(mean - truths[i]) <= 1.96 * se
    share = hits / 1000
    assert (share[:, 0] >= least).all() and (share[:, 0] <= 0.97).all()
    assert (share[:, 0] > share[:, 1]).all()


@pytest.mark.parametrize("name", ["error", "mcc"])
def test_over_folds_the_interval_is_that_of_the_mean_of_folds(name):
    X, y = load_wine(return_X_y=True)
    held = cross_validate(LDA(), X[:, :4], y, 5)
    folds = [held.fold == f for f in range(5)]
    measure = metrics.matthews_corrcoef if name == "mcc" else metrics.zero_one_loss
    each = [measure(y[f], held.predicted[f]) for f in folds]
    found = interval_over(held.tallies, name)
    bounds = (-1.0 if name == "mcc" else 0.0, 1.0)
    wanted = score_ends(np.mean(each), stats.sem(each) ** 2, stats.t.ppf(0.975, 4), bounds)
    assert (found.low, found.high) == pytest.approx(wanted, rel=1e-10)


def test_folds_without_a_class_do_not_count_for_its_recall():
    parts = [
        assess(list("aab"), list("abb"), classes=["a", "b"]),
        assess(list("aaa"), list("aab"), classes=["a", "b"]),
        assess(list("abb"), list("aba"), classes=["a", "b"]),
    ]
    found = interval_over(parts, "recall")
    variance = stats.sem([1.0, 0.5]) ** 2
    wanted = score_ends(0.75, variance, stats.t.ppf(0.975, 1), (0.0, 1.0))
    assert (found.low[1], found.high[1]) == pytest.approx(wanted, rel=1e-10)


EVERY = ["error", "accuracy", "recall", "f1", "balanced_accuracy", "mcc", "kappa", "macro_f1"]


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("wrong", [0, 1, 30])
def test_over_folds_no_interval_leaves_the_range_or_is_a_point(name, wrong):
    """No error, one error, all wrong: folds without a spread still leave something unknown."""
    truth = np.array(["a", "b"] * 15)
    said = truth.copy()
    said[:wrong] = np.where(truth[:wrong] == "a", "b", "a")
    parts = [assess(truth[i::3], said[i::3]) for i in range(3)]
    for found in (interval_over(parts, name), interval_over(parts, name, method="bootstrap")):
        low, value, high = map(np.asarray, (found.low, found.value, found.high))
        assert (low >= (-1 if name in ("mcc", "kappa") else 0)).all() and (high <= 1).all()
        assert (low <= value).all() and (value <= high).all() and (low < high).all()


def test_bootstrap_of_a_perfect_table_of_many_classes_stays_near_the_exact_interval():
    y = np.arange(150) % 10
    high = assess(y, y).interval("error", method="bootstrap").high
    exact = 1 - 0.025 ** (1 / 150)  # Clopper and Pearson: 0 errors of 150
    assert exact < high < 3 * exact


@pytest.mark.parametrize("weights", ["counts", "reliability"])
@pytest.mark.parametrize("stratified", [False, True])
@pytest.mark.parametrize("name", ["f1", "balanced_accuracy", "mcc", "kappa", "macro_f1"])
def test_a_perfect_table_has_an_interval_that_is_no_point(name, stratified, weights):
    """With 60 rows and no error, 5 % errors are not ruled out (exactly: 4.9 %, one-sided 95 %)."""
    truth = np.array(["a", "b", "c"] * 20)
    found = assess(truth, truth, sample_weight=np.full(60, 2.0 if weights != "counts" else 1.0))
    ends = found.interval(name, stratified=stratified, weights=weights)
    assert np.all(ends.high == 1.0)
    assert np.all((ends.low > 0.8) & (ends.low < 0.97))


def test_differences_of_errors_stay_in_their_range():
    y = np.arange(8) % 2
    fold, logs = np.repeat([0, 1], 4), np.zeros((8, 2)) - np.log(2)
    few = np.where(np.arange(8) < 4, y, 1 - y)
    held = {
        name: HeldOutPredictions(np.array([0, 1]), y, fold, logs, said)
        for name, said in (("always right", y), ("half right", few))
    }
    pair = compare_models(held).pairs[0]
    assert (pair.difference, pair.low, pair.high) == (-0.5, -1.0, 1.0)


def test_parts_drawn_with_replacement_say_how_much_sites_differ():
    sites = [assessed(seed, n=40 + 30 * seed) for seed in range(6)]
    found = interval_over(sites, "recall", method="bootstrap", draws=20_000)
    cells = np.array([site.weight for site in sites])
    rng = np.random.default_rng(9)
    tables = cells[rng.integers(0, 6, (20_000, 6))].sum(axis=1)
    recall = np.einsum("bkk->bk", tables[:, :3]) / tables.sum(axis=1)
    np.testing.assert_allclose(found.low, np.quantile(recall, 0.025, axis=0), atol=0.01)


# --- what has no interval ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("measure", "options", "words"),
    [
        ("mcc", {"method": "wilson"}, "'bootstrap': mcc is not a share of rows"),
        ("log_loss", {"method": "exact"}, "'score': log_loss is not a share"),
        ("error", {"method": "wald"}, r"'wilson', 'exact' \(Clopper-Pearson\) or 'bootstrap'"),
        ("errors", {}, "one of error, accuracy"),
        ("error", {"level": 95}, "level=95.*between 0 and 1"),
        ("error", {"weights": "kish"}, "'counts' or 'reliability'"),
        ("cost", {}, "'cost', with cost="),
    ],
)
def test_what_has_no_such_interval_is_told(measure, options, words):
    with pytest.raises(OptionError, match=words):
        assessed().interval(measure, **options)


def test_one_part_does_not_show_how_parts_differ():
    with pytest.raises(OptionError, match=r"parts=1.*two or more"):
        interval_over([assessed()], "error")
