"""Decisions: costs, priors, reject and outliers, by laws, by hand and by the book."""

# ruff: noqa: E501 -- a table of cases is read line by line

import copy
import pickle
import re
from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from scipy.stats import chi2, f
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import (
    BaggingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from discriminant import (
    LDA,
    OUTLIER,
    QDA,
    REJECT,
    SVM,
    Calibrated,
    Decision,
    EasyEnsemble,
    Encoded,
    Fusion,
    LeastSquares,
    OneVsOne,
    OneVsRest,
    Pool,
    Resampled,
    Reweighted,
    compare_models,
    cross_validate,
    evaluate,
    leave_one_out,
    select_features,
)
from discriminant.decision import (
    Costs,
    Reject,
    cost_curve,
    cost_threshold,
    decided,
    expected_cost,
    least_cost,
    rejected,
    rescaled_odds,
    risk_coverage,
    tuned_reject,
    tuned_threshold,
)
from discriminant.errors import (
    ColumnNamesError,
    CostError,
    LabelError,
    NeverRejectsWarning,
    NoClassDecidedWarning,
    OptionError,
    PosteriorError,
    PriorError,
    ShapeError,
    ThresholdError,
    TooFewRowsError,
    WeightError,
)
from discriminant.posterior import gives_posterior, log_posterior, typicality

X, Y = load_iris(return_X_y=True)
SPECIES = np.array(["setosa", "versicolor", "virginica"])[Y]
LABELS = np.array(["a", "b", "c"])
PAIR = np.array(["-", "+"])

seeds = st.integers(0, 999)


def posteriors(seed, rows=30, classes=3):
    """Log posteriors and costs with a zero diagonal, drawn at random."""
    rng = np.random.default_rng(seed)
    cost = rng.exponential(size=(classes, classes)) * (1 - np.eye(classes))
    return log_posterior(2 * rng.standard_normal((rows, classes))), cost


# --- least expected cost -------------------------------------------------------------------------


@given(seeds)
def test_expected_cost_is_the_sum_over_classes(seed):
    log_p, cost = posteriors(seed)
    by_hand = [
        [sum(np.exp(row[k]) * cost[a, k] for k in range(3)) for a in range(3)] for row in log_p
    ]
    found = expected_cost(log_p, Costs(LABELS, tuple("abc"), cost))
    np.testing.assert_allclose(found, by_hand, rtol=1e-12)


@given(seeds)
def test_without_costs_the_most_probable_class_is_decided(seed):
    log_p, _ = posteriors(seed)
    with_ones = least_cost(log_p, Costs.zero_one(LABELS))
    for found, same in zip(least_cost(log_p), with_ones, strict=True):
        np.testing.assert_allclose(found, same, rtol=1e-12)


@given(seeds, st.sampled_from(list(permutations(range(3)))))
def test_permuting_classes_and_costs_permutes_the_actions(seed, order):
    log_p, cost = posteriors(seed)
    order = list(order)
    plain = decided(log_p, labels=LABELS, costs=Costs(LABELS, tuple("abc"), cost))
    names = LABELS[order]
    costs = Costs(names, tuple(names.tolist()), cost[np.ix_(order, order)])
    assert decided(log_p[:, order], labels=names, costs=costs).tolist() == plain.tolist()


@given(seeds, st.floats(0.01, 100))
def test_costs_in_another_currency_change_no_action(seed, rate):
    log_p, cost = posteriors(seed)
    before, after = (
        decided(log_p, labels=LABELS, costs=Costs(LABELS, tuple("abc"), c))
        for c in (cost, rate * cost)
    )
    assert before.tolist() == after.tolist()


def test_a_class_that_it_is_dear_to_miss_is_decided_sooner():
    model = Decision(LDA()).fit(X, SPECIES)
    before = (model.predict(X) == "virginica").sum()
    missed = {"versicolor": {"virginica": 20}, "setosa": {"virginica": 20}}
    after = (model.set_params(cost=missed).predict(X) == "virginica").sum()
    assert after > before


def test_action_that_is_no_class_is_chosen_where_it_costs_least():
    log_p = np.log([[0.98, 0.02], [0.6, 0.4]])
    costs = Costs.of({"+": {}, "look again": {"+": 0.1, "-": 0.1}}, PAIR)
    assert decided(log_p, labels=PAIR, costs=costs).tolist() == ["-", "look again"]


def test_actions_may_have_nothing_to_do_with_the_classes():
    cost = {"treat": {"versicolor": 1, "setosa": 1, "virginica": 0}}
    cost["wait"] = {"versicolor": 0, "setosa": 0, "virginica": 1}
    with pytest.warns(NoClassDecidedWarning, match=r"'treat', 'wait' .*decide\(\) never returns a"):
        model = Decision(LDA(), cost=cost).fit(X, SPECIES)
    assert model.actions_ == ("treat", "wait")
    model.set_params(cost=pd.DataFrame(cost).T)  # as a frame it is meant, and nothing is told
    assert model.decide(X[[0, 149]]).tolist() == ["wait", "treat"]
    assert model.predict(X[[0, 149]]).tolist() == ["setosa", "virginica"]


def test_mapping_array_frame_and_reordered_frame_are_the_same_costs():
    cost = np.array([[0, 1, 2], [3, 0, 4], [5, 6, 0.0]])
    frame = pd.DataFrame(cost, index=LABELS, columns=LABELS)
    given = [
        cost,
        {a: {b: cost[i, j] for j, b in enumerate("abc")} for i, a in enumerate("abc")},
        frame,
        frame.loc[list("cab"), list("bca")],
        frame.loc[list("cab"), list("cab")].reset_index(drop=True),  # rows without names
        pl.from_pandas(frame.loc[list("cab"), list("cab")]),
        pl.from_pandas(frame.loc[list("cab"), list("bca")].reset_index()),  # rows named by a column
        pa.Table.from_pandas(frame[list("bca")].reset_index(), preserve_index=False),
        Costs.of(cost, LABELS),
    ]
    for form in given:
        np.testing.assert_array_equal(Costs.of(form, LABELS).cost, cost)


def test_labels_that_are_numbers_are_known_by_the_digits_in_the_names_of_a_frame():
    cost = pl.DataFrame({"2": [0, 3], "1": [5, 0]})
    assert Costs.of(cost, np.array([1, 2])).cost.tolist() == [[0, 3], [5, 0]]


def test_errors_not_mentioned_cost_one():
    found = Costs.of({"a": {"c": 7}}, LABELS).cost
    np.testing.assert_array_equal(found, [[0, 1, 7], [1, 0, 1], [1, 1, 0]])


# --- thresholds ----------------------------------------------------------------------------------


@given(seeds, st.floats(0, 1))
def test_a_threshold_says_the_second_class_where_its_posterior_exceeds_it(seed, t):
    log_p, _ = posteriors(seed, classes=2)
    found = decided(log_p, labels=PAIR, costs=Costs.of_threshold(t, PAIR))
    assert found.tolist() == np.where(np.exp(log_p[:, 1]) > t, "+", "-").tolist()


@given(seeds, st.floats(0.01, 100), st.floats(0.01, 100))
def test_costs_of_two_errors_are_a_threshold(seed, positive, negative):
    log_p, _ = posteriors(seed, classes=2)
    costs = Costs.of({"-": {"+": positive}, "+": {"-": negative}}, PAIR)
    above = np.exp(log_p[:, 1]) > cost_threshold(positive, negative)
    assert decided(log_p, labels=PAIR, costs=costs).tolist() == np.where(above, "+", "-").tolist()


@given(seeds, st.integers(1, 99))
def test_rescaling_is_the_threshold_at_the_share_of_the_positives(seed, positive):
    log_p, _ = posteriors(seed, classes=2)
    odds = rescaled_odds(log_p[:, 1] - log_p[:, 0], positive=positive, negative=100 - positive)
    found = decided(log_p, labels=PAIR, costs=Costs.of_threshold(positive / 100, PAIR))
    assert found.tolist() == np.where(odds > 0, "+", "-").tolist()


@given(seeds)
def test_largest_ratio_of_posterior_to_threshold_decides(seed):
    log_p, cost = posteriors(seed)
    t = cost[0] + 0.1
    t /= t.sum()
    found = decided(log_p, labels=LABELS, costs=Costs.of_threshold(t, LABELS))
    assert found.tolist() == LABELS[(np.exp(log_p) / t).argmax(axis=1)].tolist()


@pytest.mark.parametrize(
    ("threshold", "printed"),
    [(0.5, [[9644, 252], [23, 81]]), (0.2, [[9432, 138], [235, 195]])],  # ISLR tables 4.4 and 4.5
)
@pytest.mark.parametrize("way", ["number", "mapping", "cost"])
def test_default_is_decided_as_in_islr(shared_data, threshold, printed, way):
    table = pd.read_csv(shared_data / "islr_default" / "Default.csv")
    student = table.filter(like="student").iloc[:, 0].isin(["Yes", 1, True])
    features = np.column_stack([table["balance"], student]).astype(float)
    model = Decision(LDA()).fit(features, table["default"])
    labels = model.classes_.tolist()
    given = {
        "number": {"threshold": threshold},
        "mapping": {"threshold": {labels[1]: threshold}},
        "cost": {"cost": {labels[0]: {labels[1]: (1 - threshold) / threshold}}},
    }[way]
    called = model.set_params(**given).predict(features)
    assert pd.crosstab(called, table["default"]).to_numpy().tolist() == printed


@pytest.mark.parametrize("threshold", [0.0, 0.05, 0.5, 0.95, 1.0])
def test_a_threshold_is_that_of_scikit_learn(threshold):
    two = Y > 0
    inner = LogisticRegression(max_iter=500).fit(X[two], SPECIES[two])
    theirs = FixedThresholdClassifier(
        FrozenEstimator(inner), threshold=threshold, response_method="predict_proba"
    )
    ours = Decision.of_fitted(inner, threshold=threshold).predict(X)
    assert np.array_equal(ours, theirs.fit(X[two], SPECIES[two]).predict(X))


# --- reject --------------------------------------------------------------------------------------


@given(seeds)
def test_rejecting_for_nothing_rejects_all_and_at_infinity_none(seed):
    log_p, cost = posteriors(seed)
    costs = Costs(LABELS, tuple("abc"), cost)
    for found in (None, costs):
        assert rejected(log_p, Reject(cost=0.0), found).all()
        assert not rejected(log_p, Reject(cost=np.inf), found).any()


def test_rejecting_for_nothing_rejects_even_what_is_certain():
    assert rejected(np.array([[0.0, -np.inf]]), Reject(cost=0.0)).all()


@given(seeds, st.floats(0, 1))
def test_if_errors_cost_one_a_reject_cost_is_a_threshold_of_one_minus_it(seed, cost):
    log_p, _ = posteriors(seed)
    by_cost = rejected(log_p, Reject(cost=cost), Costs.zero_one(LABELS))
    by_threshold = rejected(log_p, Reject(threshold=1 - cost))
    near = np.abs(np.exp(log_p.max(axis=1)) - (1 - cost)) < 1e-12
    assert np.array_equal(by_cost[~near], by_threshold[~near] | (cost == 0))


@given(seeds, st.floats(0, 2))
def test_rejecting_by_cost_is_one_more_action_of_constant_cost(seed, reject):
    log_p, cost = posteriors(seed)
    costs = Costs(LABELS, tuple("abc"), cost)
    wider = Costs(LABELS, (*"abc", REJECT), np.vstack([cost, np.full(3, reject)]))
    plain = decided(log_p, labels=LABELS, costs=costs, reject=Reject(reject))
    doubt = expected_cost(log_p, costs).min(axis=1)
    clear = np.abs(doubt - reject) > 1e-9
    assert plain[clear].tolist() == decided(log_p, labels=LABELS, costs=wider)[clear].tolist()


def test_the_more_rejecting_costs_the_less_is_rejected():
    model = Decision(LDA()).fit(X, SPECIES)
    shares = []
    for cost in (0, 0.001, 0.01, 0.1, 0.3, np.inf):
        shares.append((model.set_params(reject=cost).decide(X) == REJECT).mean())
    assert shares[0] == 1 and shares[-1] == 0 and shares == sorted(shares, reverse=True)


@pytest.mark.parametrize("votes", [60, 70, 80, 90, 95])
@pytest.mark.parametrize("kind", ["threshold", "cost", "second class"])
def test_a_vote_share_equal_to_the_limit_is_a_tie(votes, kind):
    """k of 100 votes, summed in any order, is k/100: not below a threshold, not above it."""
    share = votes / 100
    near = share * (1 + np.arange(-8, 9) * 2.0**-52)  # what different orders of summation give
    logs = np.log(np.column_stack([1 - near, near]))
    if kind == "second class":
        assert not least_cost(logs, Costs.of_threshold(share, PAIR))[0].any()
        return
    option = Reject(threshold=share) if kind == "threshold" else Reject(cost=1 - share)
    assert not rejected(logs, option).any()
    assert rejected(logs - 1e-8, option).all()


def test_a_forest_is_not_rejected_at_the_threshold_itself():
    """Rows with exactly 80 or 90 of 100 votes have no posterior below 0.8 or 0.9."""
    rows, codes = make_classification(2000, flip_y=0.1, random_state=0)
    forest = RandomForestClassifier(100, random_state=0).fit(rows[:1000], codes[:1000])
    votes = np.rint(100 * forest.predict_proba(rows[1000:]).max(axis=1))
    for limit in (60, 70, 80, 90):
        for reject in ({"threshold": limit / 100}, (100 - limit) / 100):
            model = Decision.of_fitted(forest, reject=reject)
            is_rejected = model.decide(rows[1000:]) == REJECT
            assert (votes == limit).any()
            np.testing.assert_array_equal(is_rejected, votes < limit)


def test_a_tuned_bound_counts_tied_rows_as_decide_does():
    p = np.array([0.9, 0.1 + 0.7, 0.8, 0.6])  # 0.1 + 0.7 is the double below 0.8
    logs, truth = np.log(np.column_stack([p, 1 - p])), np.array([0, 0, 0, 1])
    tuned = tuned_reject(logs, truth, reject=0.3)
    assert tuned.rejected == rejected(logs, Reject(cost=tuned.bound)).mean() == 0.25
    assert risk_coverage(logs, truth).coverage.tolist() == [0.25, 0.75, 1.0]


def test_predict_always_returns_a_class():
    model = Decision(LDA(), reject=0.0, outlier=1.0).fit(X, SPECIES)
    assert np.array_equal(model.predict(X), LDA().fit(X, SPECIES).predict(X))


@pytest.mark.parametrize("verdict", [REJECT, OUTLIER])
def test_a_verdict_is_one_thing_however_it_is_copied(verdict):
    for same in (pickle.loads(pickle.dumps(verdict)), copy.deepcopy(verdict), copy.copy(verdict)):
        assert same is verdict
    assert repr(verdict) == str(verdict) == verdict.name


@pytest.mark.parametrize("labels", [["b", "a"], [3, 1], [True, False]])
def test_verdicts_are_sorted_after_every_label(labels):
    actions = np.array([REJECT, labels[0], OUTLIER, labels[1]], dtype=object)
    in_order = [*sorted(labels), OUTLIER, REJECT]
    assert np.unique(actions).tolist() == sorted(actions) == in_order
    assert pd.crosstab(actions, np.zeros(4)).index.tolist() == in_order


@given(seeds)
def test_the_most_that_one_pays_is_the_most_over_many_posteriors(seed):
    _, cost = posteriors(seed)
    costs = Costs(LABELS, tuple("abc"), cost)
    steps = np.linspace(0, 1, 60)
    p = np.array([(a, b, 1 - a - b) for a in steps for b in steps if a + b <= 1 + 1e-12])
    on_grid = (p @ cost.T).min(axis=1).max()
    assert on_grid <= costs.max_least_cost() + 1e-9
    assert costs.max_least_cost() <= on_grid + cost.max() * 2 / 59


# --- priors --------------------------------------------------------------------------------------

PRIOR = [0.7, 0.2, 0.1]


@pytest.mark.parametrize("model", [LDA(), QDA()], ids=repr)
def test_other_priors_are_as_good_as_another_fit(model):
    refitted = type(model)(prior=PRIOR).fit(X, SPECIES)
    changed = Decision(model).fit(X, SPECIES).set_params(prior=PRIOR)
    np.testing.assert_allclose(
        changed.predict_log_proba(X), refitted.predict_log_proba(X), rtol=1e-9, atol=1e-12
    )


def test_other_priors_of_scikit_learn_are_as_good_as_another_fit():
    refitted = GaussianNB(priors=PRIOR).fit(X, SPECIES).predict_proba(X)
    changed = Decision(GaussianNB(), prior=PRIOR).fit(X, SPECIES).predict_proba(X)
    np.testing.assert_allclose(changed, refitted, rtol=1e-8, atol=1e-14)


def test_priors_start_from_those_that_the_model_was_given():
    changed = Decision(LDA(prior=[0.1, 0.1, 0.8]), prior=PRIOR).fit(X, SPECIES)
    refitted = LDA(prior=PRIOR).fit(X, SPECIES)
    np.testing.assert_allclose(changed.predict_proba(X), refitted.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner: inner,
        lambda inner: make_pipeline(StandardScaler(), inner),
        lambda inner: GridSearchCV(inner, {"C": [1.0]}, cv=2),
    ],
    ids=["alone", "pipeline", "search"],
)
def test_class_weight_of_pipeline_or_search_is_used(wrap):
    rare = np.append(np.arange(60), np.arange(100, 150))
    inner = LogisticRegression(class_weight="balanced", max_iter=1000)
    model = Decision(wrap(inner)).fit(X[rare], SPECIES[rare])
    np.testing.assert_allclose(model.fitted_prior_, [1 / 3] * 3)


def test_uniform_priors_of_scikit_learn_are_known():
    counts = np.round(X * 10)[20:]
    model = Decision(MultinomialNB(fit_prior=False)).fit(counts, SPECIES[20:])
    np.testing.assert_allclose(model.fitted_prior_, [1 / 3] * 3)


def test_priors_by_label_are_those_in_order():
    named = {"virginica": 0.5, "setosa": 0.2, "versicolor": 0.3}
    listed = [0.2, 0.3, 0.5]
    by_name = Decision(LDA(), prior=named, fitted_prior=dict.fromkeys(named, 1 / 3)).fit(X, SPECIES)
    in_order = Decision(LDA(), prior=listed, fitted_prior=[1 / 3] * 3).fit(X, SPECIES)
    np.testing.assert_array_equal(by_name.predict_proba(X), in_order.predict_proba(X))


def test_options_change_after_the_fit_without_another():
    class Counting(LDA):
        fits = 0

        def fit(self, X, y, sample_weight=None):
            Counting.fits += 1
            return super().fit(X, y, sample_weight)

    model = Decision(Counting()).fit(X, SPECIES)
    for options in ({"prior": PRIOR}, {"cost": {"setosa": {"virginica": 5}}}, {"reject": 0.1}):
        model.set_params(**options).decide(X)
    assert Counting.fits == 1


def test_a_fitted_model_is_wrapped_without_rows():
    inner = LDA().fit(X, SPECIES)
    model = Decision.of_fitted(inner, prior=PRIOR, outlier=0.01)
    np.testing.assert_allclose(
        model.predict_proba(X), inner.predict_proba(X, prior=PRIOR), atol=1e-12
    )
    assert model.estimator_ is inner and OUTLIER in model.decide(X + 50).tolist()


def test_a_frozen_model_stays_as_it_is():
    inner = LogisticRegression(max_iter=500).fit(X, SPECIES)
    frozen = Decision(FrozenEstimator(inner)).fit(X[:60], SPECIES[:60])
    np.testing.assert_allclose(frozen.predict_proba(X), inner.predict_proba(X), atol=1e-12)
    with pytest.raises(PosteriorError, match="fitted_prior"):  # those 60 rows are not its own
        frozen.set_params(prior=PRIOR).predict(X)


# --- calibration ---------------------------------------------------------------------------------


@pytest.mark.parametrize("calibrate", ["platt", "temperature", "isotonic"])
def test_calibrate_is_a_decision_of_the_calibrated_classifier(calibrate):
    model = Decision(LinearSVC(), calibrate=calibrate, reject=0.1).fit(X, SPECIES)
    wanted = Decision(Calibrated(LinearSVC(), calibrate), reject=0.1).fit(X, SPECIES)
    np.testing.assert_array_equal(model.predict_proba(X), wanted.predict_proba(X))
    assert (model.decide(X) == wanted.decide(X)).all()


def test_an_unknown_calibration_is_refused():
    with pytest.raises(OptionError, match=r"calibrate='sigmoid'.*platt, temperature, isotonic"):
        Decision(LinearSVC(), calibrate="sigmoid").fit(X, SPECIES)


def test_scores_that_are_no_probabilities_are_refused():
    with pytest.raises(PosteriorError, match=r"LinearSVC.*Calibrated\(LinearSVC\(\)\)"):
        Decision(LinearSVC()).fit(X, SPECIES)


CLIPPED = {
    "least squares": LeastSquares(),
    "one against the rest": OneVsRest(LeastSquares()),
    "pairs": OneVsOne(LeastSquares()),
    "pipeline": make_pipeline(StandardScaler(), LeastSquares()),
    "search": GridSearchCV(LeastSquares(), {"ridge": [0.0, 1.0]}),
    "encoded": Encoded(LeastSquares()),
    "theirs against the rest": OneVsRestClassifier(LeastSquares()),
    "bagged": BaggingClassifier(LeastSquares(), n_estimators=2),
    "soft vote": VotingClassifier([("a", LeastSquares()), ("b", LDA())], voting="soft"),
    "without options": Decision(LeastSquares()),
    "as fitted": Reweighted(LeastSquares(), "balanced", keep_probabilities=False),
}
WEIGHING = {
    "reject": {"reject": 0.1},
    "threshold of rejecting": {"reject": {"threshold": 0.9}},
    "cost": {"cost": [[0, 1, 2], [1, 0, 1], [3, 1, 0]]},
    "threshold": {"threshold": [0.3, 0.3, 0.4]},
    "prior": {"prior": [0.2, 0.3, 0.5]},
}


@pytest.mark.parametrize("options", WEIGHING.values(), ids=WEIGHING)
@pytest.mark.parametrize("inner", CLIPPED.values(), ids=CLIPPED)
def test_fitted_values_are_rejected_as_probabilities(inner, options):
    """Clipped fits as posteriors: a reject cost of 0.1 rejected 83 % of iris, wrongly."""
    with pytest.raises(
        PosteriorError, match=r"LeastSquares are fitted values.*Calibrated\(LeastSquares\(\)\)"
    ):
        Decision(inner, **options).fit(X, Y)
    later = Decision(inner).fit(X, Y)
    assert (later.predict(X) == later.estimator_.predict(X)).all()
    for ask in (later.set_params(**options).decide, later.predict, later.costs):
        with pytest.raises(PosteriorError, match="LeastSquares"):
            ask(*([] if ask == later.costs else [X]))


def test_clipped_scores_of_scikit_learn_are_rejected():
    huber = SGDClassifier(loss="modified_huber", random_state=0)
    with pytest.raises(PosteriorError, match=r"SGDClassifier\(loss='modified_huber'\) are fitted"):
        Decision(huber, reject=0.1).fit(X, Y)


@pytest.mark.parametrize("ask", ["expected_cost", "estimate_prior"])
def test_what_follows_from_probabilities_needs_them(ask):
    model = Decision(LeastSquares()).fit(X, Y)
    with pytest.raises(PosteriorError, match="LeastSquares"):
        getattr(model, ask)(X)


def test_calibrated_least_squares_is_accepted():
    model = Decision(LeastSquares(), reject=0.1, calibrate="platt").fit(X, Y)
    peer = Calibrated(LeastSquares()).fit(X, Y).predict_proba(X)
    assert ((model.decide(X) == REJECT) == (peer.max(axis=1) < 0.9)).all()
    stacked = StackingClassifier([("a", LeastSquares())], LogisticRegression())
    assert gives_posterior(Decision(stacked, reject=0.1).fit(X, Y))


@pytest.mark.parametrize("inner", CLIPPED.values(), ids=CLIPPED)
def test_fitted_values_are_not_fused(inner):
    sources = [("left", LDA(), [0, 1]), ("right", inner, [2, 3])]
    with pytest.raises(PosteriorError, match="'right' is LeastSquares, whose outputs are fitted"):
        Fusion(sources).fit(X, Y)


def test_the_way_out_for_scores_that_are_no_probabilities_works():
    for model in (SVM(), LeastSquares()):
        advice = f"Calibrated({type(model).__name__}())"
        for wrap in (
            lambda inner: Decision(inner, reject=0.1),
            lambda inner: Fusion([("left", LDA(), [0, 1]), ("right", inner, [2, 3])]),
            lambda inner: Pool([("first", LDA()), ("second", inner)]),
        ):
            with pytest.raises(PosteriorError, match=re.escape(advice)):
                wrap(model).fit(X, Y)
            proba = wrap(Calibrated(model)).fit(X, Y).predict_proba(X)
            np.testing.assert_allclose(proba.sum(axis=1), 1.0)


@pytest.mark.parametrize("wrap", [Reweighted, Resampled, EasyEnsemble])
def test_fitted_values_are_not_brought_back_to_other_shares(wrap):
    model = wrap(LeastSquares()).fit(X[:90], Y[:90])
    with pytest.raises(AttributeError) as told:
        model.predict_proba(X)
    assert "keep_probabilities=True" in str(told.value.__cause__ or told.value)
    assert model.decision_function(X).shape == (150,)


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "predict_log_proba"])
def test_least_squares_has_no_priors_to_change(ask):
    model = LeastSquares().fit(X, Y)
    with pytest.raises(PosteriorError, match=r"LeastSquares.*prior="):
        getattr(model, ask)(X, [0.2, 0.3, 0.5])


def test_fitted_values_have_no_log_loss():
    """No measure of probabilities is taken of what are none: held out, evaluated or compared."""
    held = cross_validate(LeastSquares(), X, Y, 5)
    for found in (held, held.tally, leave_one_out(LeastSquares(), X, Y), held.tallies[0]):
        assert np.isnan(found.log_loss)
    assert "log_loss" not in held.tally.to_dict()["measures"]
    assert "brier" not in evaluate(LeastSquares().fit(X, Y), X, Y).to_dict()["measures"]
    both = {"LeastSquares": held, "LDA": cross_validate(LDA(), X, Y, 5)}
    with pytest.raises(PosteriorError, match=r"LeastSquares.*a log loss"):
        compare_models(both, loss="log_loss")
    assert compare_models(both).pairs[0].first == "LeastSquares"
    with pytest.raises(PosteriorError, match=r"LeastSquares.*criterion='log_loss'"):
        select_features(LeastSquares(), X, Y, 5, criterion="log_loss")


def test_probabilities_that_do_not_sum_to_one_are_refused():
    class Halved(ClassifierMixin, BaseEstimator):
        classes_ = np.array([0, 1])

        def fit(self, rows, y):
            return self

        def predict_proba(self, rows):
            return np.full((len(rows), 2), 0.25)

    with pytest.raises(PosteriorError, match=r"Halved for row 0 .* sum to 0\.5"):
        Decision(Halved()).fit(X[:100], Y[:100]).predict(X)


def test_posteriors_of_zero_do_not_warn(recwarn):
    model = Decision(DecisionTreeClassifier(random_state=0), prior=PRIOR).fit(X, SPECIES)
    assert np.array_equal(model.predict(X), SPECIES) and not len(recwarn)


# --- outliers ------------------------------------------------------------------------------------


def test_the_law_of_one_class_is_that_of_the_textbook():
    n, d = 12, 3
    d2 = np.linspace(0.5, 40, 9)[:, None]
    by_hand = f.sf(d2 * n * (n - d) / (d * (n**2 - 1)), d, n - d)
    found = typicality(d2, width=d, weight=np.array([float(n)]), degrees=n - 1.0)
    np.testing.assert_allclose(found, by_hand, rtol=1e-10)


def test_with_many_rows_the_law_is_chi_squared():
    d2 = np.linspace(0.5, 30, 9)[:, None]
    found = typicality(d2, width=4, weight=np.array([1e9]), degrees=1e9)
    np.testing.assert_allclose(found, chi2.sf(d2, 4), rtol=1e-6)
    np.testing.assert_allclose(typicality(d2, width=4), chi2.sf(d2, 4), rtol=1e-12)


def test_outlier_rate_of_few_rows_equals_the_level():
    rng, level, p_values = np.random.default_rng(0), 0.1, []
    for _ in range(300):  # 5 and 7 rows in 3 columns: chi-squared would call 31 % of them
        rows = rng.standard_normal((12, 3))
        y = np.repeat([0, 1], [5, 7])
        rows[y == 1] += 1000.0
        model = Decision(LDA(), outlier=level).fit(rows, y)
        p_values.append(model.typicality(rng.standard_normal((4, 3)))[:, 0])
    share = (np.concatenate(p_values) < level).mean()
    assert abs(share - level) < 4 * np.sqrt(level * (1 - level) / 1200) * 1.5  # rows share a fit


@pytest.mark.parametrize("inner", [LogisticRegression(max_iter=500), GaussianNB()], ids=repr)
def test_rows_unlike_every_class_are_outliers_of_any_classifier(inner):
    model = Decision(inner, outlier=0.001, reject=0.2).fit(X, SPECIES)
    found = model.decide(np.vstack([X[0], X[0] + [30, 0, 0, 0]]))
    assert found.tolist() == ["setosa", OUTLIER]


def test_outlyingness_is_that_of_lda_for_whatever_classifier():
    model = Decision(GaussianNB(), outlier=0.01).fit(X, SPECIES)
    distances = LDA().fit(X, SPECIES).mahalanobis(X)
    by_hand = f.sf(distances * 50 / 51 * (147 - 4 + 1) / (4 * 147), 4, 147 - 4 + 1)
    np.testing.assert_allclose(model.typicality(X), by_hand, rtol=1e-9)


# --- curves and tuning ---------------------------------------------------------------------------


def held_out(seed, rows=80, classes=3, bend=2.5):
    """Posteriors that are surer than they should be, and the classes drawn from honest ones."""
    rng = np.random.default_rng(seed)
    scores = 1.5 * rng.standard_normal((rows, classes))
    p = np.exp(log_posterior(scores))
    codes = np.array([rng.choice(classes, p=row) for row in p])
    cost = rng.exponential(size=(classes, classes)) * (1 - np.eye(classes))
    return log_posterior(bend * scores), codes, cost


@given(seeds)
def test_risk_at_a_coverage_is_the_error_of_the_surest_rows(seed):
    log_p, codes, _ = held_out(seed)
    found = risk_coverage(log_p, codes)
    order = np.argsort(-log_p.max(axis=1))
    wrong = (log_p.argmax(axis=1) != codes)[order]
    by_hand = np.cumsum(wrong) / np.arange(1, 81)
    np.testing.assert_allclose(
        np.interp(np.arange(1, 81) / 80, found.coverage, found.risk), by_hand, atol=1e-12
    )
    assert found.area == pytest.approx(by_hand.mean(), rel=1e-12)


@given(seeds)
def test_a_whole_weight_is_a_repeated_row_on_a_risk_curve(seed):
    log_p, codes, cost = held_out(seed)
    weight = np.random.default_rng(seed).integers(0, 4, len(codes))
    costs = Costs(LABELS, tuple("abc"), cost)
    weighed = risk_coverage(log_p, codes, sample_weight=weight.astype(float), costs=costs)
    repeated = risk_coverage(
        np.repeat(log_p, weight, axis=0), np.repeat(codes, weight), costs=costs
    )
    assert weighed.area == pytest.approx(repeated.area, rel=1e-10)
    assert weighed.risk[-1] == pytest.approx(repeated.risk[-1], rel=1e-10)


@given(seeds)
def test_a_cost_curve_is_the_least_over_all_thresholds(seed):
    log_p, codes, _ = held_out(seed, classes=2)
    grid = np.linspace(0, 1, 101)
    p, positive = np.exp(log_p[:, 1]), codes == 1
    lines = []
    for t in [-1.0, *p]:
        said = p > t
        fnr, fpr = (~said)[positive].mean(), said[~positive].mean()
        lines.append(fnr * grid + fpr * (1 - grid))
    found = cost_curve(log_p, codes)
    np.testing.assert_allclose(found.at(grid), np.min(lines, axis=0), atol=1e-12)
    assert found.area == pytest.approx(np.trapezoid(np.min(lines, axis=0), grid), abs=1e-3)


def test_scores_that_say_nothing_have_a_cost_curve_of_area_one_quarter():
    assert cost_curve(np.log(np.full((10, 2), 0.5)), np.arange(10) % 2).area == 0.25


@given(seeds, st.floats(0.01, 1))
def test_a_tuned_bound_is_the_best_of_all(seed, reject):
    log_p, codes, cost = held_out(seed)
    costs = Costs(LABELS, tuple("abc"), cost)
    best, doubt = least_cost(log_p, costs)
    paid = cost[best, codes]
    tried = [np.where(doubt <= b, paid, reject).mean() for b in [-1.0, *doubt]]
    found = tuned_reject(log_p, codes, reject=reject, costs=costs)
    assert found.cost == pytest.approx(min(tried), abs=1e-12)
    given = rejected(log_p, Reject(cost=found.bound), costs)
    assert np.where(given, reject, paid).mean() == pytest.approx(min(tried), abs=1e-12)


def test_where_rejecting_all_is_best_the_tuned_bound_says_so():
    log_p = np.log([[0.9, 0.1], [0.2, 0.8]])  # both wrong
    found = tuned_reject(log_p, np.array([1, 0]), reject=0.1)
    assert (found.bound, found.rejected) == (0.0, 1.0)
    assert rejected(log_p, Reject(cost=found.bound)).all()


@given(seeds)
def test_a_tuned_threshold_of_two_classes_is_the_best_of_all(seed):
    log_p, codes, cost = held_out(seed, classes=2)
    costs = Costs(PAIR, ("-", "+"), cost)
    p = np.exp(log_p[:, 1])
    tried = [cost[(p > t).astype(int), codes].mean() for t in [-1.0, *p]]
    found = tuned_threshold(log_p, codes, costs=costs)
    assert found.cost == pytest.approx(min(tried), abs=1e-12)
    decision = decided(log_p, labels=PAIR, costs=Costs.of_threshold(found.threshold, PAIR))
    said = (decision == "+").astype(int)
    assert cost[said, codes].mean() == pytest.approx(min(tried), abs=1e-12)


@given(seeds)
def test_tuned_thresholds_of_many_classes_are_better_than_many_drawn_at_random(seed):
    log_p, codes, cost = held_out(seed)
    costs = Costs(LABELS, tuple("abc"), cost)
    found = tuned_threshold(log_p, codes, costs=costs)
    drawn = np.random.default_rng(seed).dirichlet(np.ones(3), 30)
    tried = [cost[(np.exp(log_p) / t).argmax(axis=1), codes].mean() for t in drawn]
    assert found.cost <= np.quantile(tried, 0.1) + 1e-12
    chosen = (np.exp(log_p) / found.threshold).argmax(axis=1)
    assert cost[chosen, codes].mean() == pytest.approx(found.cost, abs=1e-12)


def test_labels_columns_by_name_and_codes_are_the_same_rows():
    log_p, codes, cost = held_out(3)
    costs = Costs(LABELS, tuple("abc"), cost)
    frame = pd.DataFrame(log_p, columns=LABELS)
    expected = risk_coverage(log_p, codes, costs=costs).area
    for found in (
        risk_coverage(log_p, LABELS[codes], classes=LABELS, costs=costs),
        risk_coverage(log_p, LABELS[codes], costs=costs),
        risk_coverage(frame[list("cab")], LABELS[codes], costs=costs),
        risk_coverage(log_p, codes.astype(float), costs=costs),
    ):
        assert found.area == expected


LOGS = np.log([[0.5, 0.3, 0.2], [0.2, 0.7, 0.1]])
HELD_OUT = [
    ("probabilities for logs", (np.exp(LOGS), [0, 1]), {}, PosteriorError, r"row 0 .*sum to 4\.21998, not 1. Pass the logarithms"),
    ("NaN", (np.where(np.isclose(LOGS, LOGS[1, 2]), np.nan, LOGS), [0, 1]), {}, PosteriorError, r"row 1 .*sum to nan.*without NaN"),
    ("no rows", (LOGS[:0], []), {}, PosteriorError, r"shape \(0, 3\)"),
    ("labels for codes", (LOGS, ["a", "b"]), {}, LabelError, r"labels \('a', 'b'\).*Pass classes=.*model\.classes_"),
    ("labels that are numbers", (LOGS, [1, 3]), {}, LabelError, r"row 1 .* is 3, .*0 to 2.*pass classes="),
    ("an unknown label", (LOGS, ["a", "z"]), {"classes": LABELS}, LabelError, r"Unknown class\(es\) 'z'"),
    ("a class twice", (LOGS, ["a", "b"]), {"classes": ["a", "b", "b"]}, LabelError, r"'b'"),
    ("classes too few", (LOGS, ["a", "b"]), {"classes": ["a", "b"]}, PosteriorError, r"\(2, 3\) for 2 classes"),
    ("other names", (pd.DataFrame(LOGS, columns=list("abz")), ["a", "b"]), {"classes": LABELS}, ColumnNamesError, r"named 'a', 'b', 'z', but the classes are 'a', 'b', 'c'"),
    ("labels too few", (LOGS, [0]), {}, ShapeError, r"2 entries for 1 rows"),
    ("a negative weight", (LOGS, [0, 1]), {"sample_weight": [1, -1]}, WeightError, r"row 1 .*is -1"),
]  # fmt: skip


@pytest.mark.parametrize("asked", [risk_coverage, cost_curve, tuned_threshold, tuned_reject])
@pytest.mark.parametrize(("what", "rows", "options", "error", "said"), HELD_OUT)
def test_held_out_rows_are_checked_at_the_door(asked, what, rows, options, error, said):
    more = {"reject": 0.1} if asked is tuned_reject else {}
    with pytest.raises(error, match=said):
        asked(*rows, **options, **more)


# --- bad input: the numbers are those of the project's list of cases ------------------------------

BAD = [
    (40, {"prior": [0.5, 0.3, 0.1]}, PriorError, r"sum to 0\.9, not 1"),
    (41, {"prior": [0.5, 0.6, -0.1]}, PriorError, r"'virginica' is -0\.1"),
    (41, {"prior": [0.5, np.nan, 0.5]}, PriorError, r"'versicolor' is nan"),
    (41, {"prior": [0.5, 0.5]}, PriorError, r"2 entries for 3 classes.*'setosa', 'versicolor'"),
    (41, {"prior": [1.0, 0.0, 0.0]}, PriorError, r"'versicolor' is 0"),
    (42, {"cost": np.ones((2, 3))}, CostError, r"\(2, 3\) for 3 classes.*'setosa', 'versicolor', 'virginica'"),
    (42, {"cost": {"setosa": {"rosa": 1}}}, CostError, r"'setosa' mentions 'rosa'.*'virginica'"),
    (42, {"cost": {"setos": {"setosa": 1}, "setosa": {}}}, CostError, r"cost mentions 'setos', which is not one of the classes.*no cost is given for 'versicolor', 'virginica'\."),
    (42, {"cost": pd.DataFrame(np.zeros((3, 3)), columns=list("abc"))}, CostError, r"columns of cost are 'a', 'b', 'c', but the classes are 'setosa'"),
    (42, {"cost": pl.DataFrame(1 - np.eye(3))}, CostError, r"columns of cost are 'column_0', .* classes are 'setosa'"),
    (42, {"cost": pl.DataFrame(1 - np.eye(3), schema=["virginica", "setosa", "versicolor"])[[1, 2, 0]]}, CostError, r"3 rows of cost have no names.*order of the columns \('virginica', 'setosa', 'versicolor'\).*Name the decisions"),
    (42, {"cost": pd.DataFrame(np.ones((2, 3)), columns=["setosa", "versicolor", "virginica"])}, CostError, r"2 rows of cost have no names.*if there are 3 rows"),
    (42, {"cost": "cheap"}, CostError, r"cost is a str"),
    (43, {"cost": {"setosa": 3}}, CostError, r"cost of 'setosa' is 3: pass \{class: cost\}"),
    (43, {"cost": [[0, 1, 1], [np.nan, 0, 1], [1, 1, 0]]}, CostError, r"'versicolor' where 'setosa' is true is nan"),
    (43, {"cost": [[0, np.inf, 1], [1, 0, 1], [1, 1, 0]]}, CostError, r"'setosa' where 'versicolor' is true is inf"),
    (43, {"cost": {"virginica": {"setosa": -2}}}, CostError, r"'virginica' where 'setosa' is true is -2"),
    (43, {"cost": {"virginica": {"setosa": "lots"}}}, CostError, r"'virginica' where 'setosa' is true is 'lots'"),
    (43, {"cost": [[0, 1, 1], [1, 0.5, 1], [1, 1, 0]]}, CostError, r"'versicolor' where 'versicolor' is true is 0\.5, but correct decisions must cost 0"),
    (44, {"reject": -0.1}, CostError, r"rejecting is -0\.1.*from 0.*to infinity"),
    (44, {"reject": np.nan}, CostError, r"rejecting is nan"),
    (44, {"reject": {"kost": 1}}, OptionError, r"kost"),
    (45, {"reject": {"threshold": 1.2}}, ThresholdError, r"threshold is 1\.2.*\[0, 1\]"),
    (45, {"threshold": [0.2, 0.3]}, ThresholdError, r"3 classes 'setosa'"),
    (45, {"threshold": 0.5}, ThresholdError, r"3 classes 'setosa'"),
    (45, {"threshold": [0.2, 0.0, 0.8]}, ThresholdError, r"'versicolor' is 0\.0.*\(0, 1\]"),
    (45, {"threshold": [0.2, np.nan, 0.8]}, ThresholdError, r"'versicolor' is nan.*\[0, 1\]"),
    (45, {"threshold": {"setosa": 0.2}}, ThresholdError, r"does not fit the 3 classes"),
    (45, {"outlier": 1.5}, ThresholdError, r"outlier is 1\.5.*\[0, 1\]"),
    (45, {"threshold": [0.2, 0.2, 0.6], "cost": np.zeros((3, 3))}, ThresholdError, r"both given"),
]  # fmt: skip


@pytest.mark.parametrize(("case", "options", "error", "said"), BAD, ids=lambda v: str(v)[:60])
@pytest.mark.parametrize("when", ["at the fit", "after it"])
def test_a_bad_option_is_named(case, options, error, said, when):
    with pytest.raises(error, match=said):
        if when == "at the fit":
            Decision(LDA(), **options).fit(X, SPECIES)
        else:
            wrapped = Decision.of_fitted(LDA().fit(X, SPECIES))
            wrapped.set_params(**options).decide(X)


@pytest.mark.parametrize(
    ("cost", "reject", "most"),
    [(None, 0.7, "0.666667"), (None, 1.0, "0.666667"), (2 * (1 - np.eye(3)), 1.4, "1.33333")],
)
def test_reject_cost_that_never_pays_warns(cost, reject, most):  # case 44
    said = f"{reject:g}, is never the lowest.*expected cost of {most} or less"
    with pytest.warns(NeverRejectsWarning, match=said):
        model = Decision(LDA(), cost=cost, reject=reject).fit(X, SPECIES)
    with pytest.warns(NeverRejectsWarning, match=said):
        assert REJECT not in model.decide(X).tolist()


@pytest.mark.parametrize(
    ("thresholds", "said"),
    [([0.2, 0.1], r"entry 1 .* is 0\.1 after 0\.2"), ([0.2, 1.1], r"1\.1"), ([np.nan], r"nan")],
)
def test_candidates_for_a_threshold_must_increase_in_the_unit_interval(thresholds, said):  # 45
    log_p, codes, _ = held_out(0, classes=2)
    with pytest.raises(ThresholdError, match=said):
        tuned_threshold(log_p, codes, thresholds=thresholds)


def test_outliers_need_rows_enough():
    with pytest.raises(
        TooFewRowsError, match=r"6 rows .*among 4 features and 3 classes: 7 or more"
    ):
        Decision(GaussianNB(), outlier=0.01).fit(X[::25], SPECIES[::25])


def test_outliers_of_a_fitted_model_need_rows_which_change_nothing_of_it():
    fitted = GaussianNB().fit(X, SPECIES)
    with pytest.raises(PosteriorError, match=r"Decision\(FrozenEstimator\(model\), outlier=...\)"):
        Decision.of_fitted(fitted, outlier=0.01).decide(X)
    found = Decision(FrozenEstimator(fitted), outlier=0.01).fit(X, SPECIES)
    assert OUTLIER in found.decide(X + 10).tolist()


def test_outlier_option_set_after_fit_raises_what_it_needs():
    fitted = Decision(GaussianNB()).fit(X, SPECIES).set_params(outlier=0.01)
    with pytest.raises(PosteriorError, match="without outlier="):
        fitted.decide(X)


def test_unknown_priors_are_not_guessed():
    class Bare(ClassifierMixin, BaseEstimator):
        classes_ = np.array([0, 1])

        def predict_proba(self, X):
            return np.full((len(X), 2), 0.5)

    with pytest.raises(PosteriorError, match=r"Bare assume are not known.*fitted_prior"):
        Decision.of_fitted(Bare(), prior=[0.1, 0.9]).predict(X)
    found = Decision.of_fitted(Bare(), prior=[0.1, 0.9], fitted_prior=[0.5, 0.5])
    assert found.predict_proba(X)[0] == pytest.approx([0.1, 0.9])


def test_posteriors_that_are_no_numbers_are_refused():
    class Broken(LDA):
        def predict_log_proba(self, X, prior=None):
            return np.where(np.arange(len(X))[:, None] == 7, np.nan, -np.log(3) + np.zeros((1, 3)))

    with pytest.raises(PosteriorError, match="Broken for row 7"):
        Decision(Broken()).fit(X, SPECIES).predict(X)


def test_weights_that_a_classifier_cannot_take_are_refused():
    from sklearn.neighbors import KNeighborsClassifier

    with pytest.raises(WeightError, match="KNeighborsClassifier does not support sample_weight"):
        Decision(KNeighborsClassifier()).fit(X, SPECIES, sample_weight=np.ones(150))


@pytest.mark.parametrize("calibrate", [None, "platt"])
def test_decision_refuses_a_regressor_by_name(calibrate):
    model = Decision(LinearRegression(), calibrate=calibrate)
    with pytest.raises(OptionError, match=r"LinearRegression.*'regressor'.*Decision"):
        model.fit(*load_iris(return_X_y=True))


def test_fusion_refuses_a_regressor_by_name():
    model = Fusion([("first", LDA(), slice(0, 2)), ("second", LinearRegression(), slice(2, 4))])
    with pytest.raises(OptionError, match=r"LinearRegression.*'regressor'.*Fusion"):
        model.fit(*load_iris(return_X_y=True))
