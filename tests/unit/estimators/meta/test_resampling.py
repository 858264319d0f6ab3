"""Rare classes: weights, rows drawn or made up, ensembles, and what they do to probabilities."""

import re
from itertools import combinations, product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, strategies as st
from imblearn.over_sampling import SMOTE, SMOTENC, RandomOverSampler
from imblearn.under_sampling import RandomUnderSampler
from imblearn.utils import check_sampling_strategy
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Perceptron as SklearnPerceptron,
)
from sklearn.metrics import brier_score_loss, f1_score, log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import has_fit_parameter

import discriminant
from discriminant import (
    LDA,
    QDA,
    RDA,
    Decision,
    EasyEnsemble,
    Fisher,
    LeastSquares,
    Logistic,
    NearestMean,
    OneVsOne,
    Resampled,
    Reweighted,
    compare_imbalance,
    cross_validate,
)
from discriminant.errors import (
    ClassWeightError,
    InfiniteValueError,
    LabelError,
    MissingValueError,
    NoPosteriorWarning,
    OptionError,
    ResamplingError,
    StrategyNotEvaluatedWarning,
    TooFewRowsError,
    WeightError,
)
from discriminant.estimators.meta.compare_imbalance import MEASURES
from discriminant.estimators.meta.resampling import SmoteTable
from discriminant.imbalance.rebalance import (
    class_weights,
    over_sample,
    split_under_samples,
    target_of,
    under_sample,
)
from discriminant.imbalance.synthetic_rows import (
    expected_moments,
    mixed_neighbours,
    nearest_neighbours,
    nominal_neighbours,
    value_differences,
)

pytestmark = pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")


def skewed(seed=0, counts=(150, 12), width=3, spread=1.2):
    """Gaussian classes of these sizes and unlike covariances, in mixed order."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(len(counts)), counts)
    centres = spread * rng.standard_normal((len(counts), width))
    mix = np.eye(width) + 0.4 * rng.standard_normal((len(counts), width, width))
    rows = centres[codes] + np.einsum(
        "ni,nij->nj", rng.standard_normal((len(codes), width)), mix[codes]
    )
    order = rng.permutation(len(codes))
    return rows[order], np.array(["common", "rare", "third"])[codes[order]]


X, Y = skewed()
X3, Y3 = skewed(1, (80, 9, 30))
MOMENT_BASES = [
    LDA(),
    QDA(),
    RDA(pooling=0.5, shrinkage=0.1),
    NearestMean(),
    Fisher(),
    LeastSquares(),
]


def outputs_of(model, rows):
    """Log posteriors, or scores of a model that gives no probabilities."""
    if hasattr(model, "predict_log_proba"):
        return model.predict_log_proba(rows)
    return model.decision_function(rows)


every_moment_base = pytest.mark.parametrize("base", MOMENT_BASES, ids=repr)

# --- weights --------------------------------------------------------------------------------------

counts_of = st.lists(st.integers(1, 10_000), min_size=2, max_size=6)


@given(counts_of)
def test_balanced_weights_are_those_of_scikit_learn(counts):
    labels = np.arange(len(counts))
    wanted = compute_class_weight("balanced", classes=labels, y=np.repeat(labels, counts))
    np.testing.assert_allclose(class_weights(np.array(counts, float), labels, "balanced"), wanted)


@given(counts_of)
def test_effective_weights_go_from_none_to_inverse(counts):
    count, labels = np.array(counts, float), np.arange(len(counts))
    none = class_weights(count, labels, "effective", beta=0.0)
    nearly = class_weights(count, labels, "effective", beta=1.0 - 1e-13)
    np.testing.assert_allclose(none, 1.0)
    np.testing.assert_allclose(nearly, class_weights(count, labels, "inverse"), rtol=1e-8)


def test_effective_weights_are_those_of_the_class_balanced_loss():
    # Cui et al. (2019), as in the code of the paper: (1 - beta) / (1 - beta^n), summing to K.
    counts, beta = [5000, 500, 50], 0.999
    raw = [(1 - beta) / (1 - beta**n) for n in counts]
    wanted = [3 * w / sum(raw) for w in raw]
    found = class_weights(
        np.array(counts, float), np.array(["a", "b", "c"]), "effective", beta=beta
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@every_moment_base
def test_whole_weights_are_repeated_rows(base):
    weighed = Reweighted(base, {"rare": 3.0}).fit(X, Y)
    rows = np.concatenate([np.arange(len(Y)), *[np.flatnonzero(Y == "rare")] * 2])
    repeated = clone(base).fit(X[rows], Y[rows])
    np.testing.assert_allclose(
        weighed.estimator_.predict_log_proba(X),
        repeated.predict_log_proba(X),
        rtol=1e-10,
        atol=1e-10,
    )


@every_moment_base
def test_weighing_rows_is_scaling_moments(base):
    from_rows = Reweighted(base).fit(X3, Y3)
    from_moments = Reweighted(base).fit_moments(discriminant.moments(X3, Y3))
    np.testing.assert_allclose(
        outputs_of(from_moments, X3), outputs_of(from_rows, X3), rtol=1e-10, atol=1e-10
    )


def test_weights_of_logistic_regression_are_its_class_weight():
    ours = Reweighted(LogisticRegression(), keep_probabilities=False).fit(X3, Y3)
    theirs = LogisticRegression(class_weight="balanced").fit(X3, Y3)
    np.testing.assert_allclose(ours.predict_proba(X3), theirs.predict_proba(X3), atol=1e-12)


def test_weights_multiply_those_of_the_rows():
    weight = np.random.default_rng(0).integers(1, 4, len(Y))
    rows = np.repeat(np.arange(len(Y)), weight)
    weighed = Reweighted(LDA()).fit(X, Y, sample_weight=weight)
    repeated = Reweighted(LDA()).fit(X[rows], Y[rows])
    np.testing.assert_allclose(weighed.predict_proba(X), repeated.predict_proba(X), atol=1e-12)


# --- honest probabilities ------------------------------------------------------------------------


def test_logistic_probabilities_are_brought_back_by_the_log_of_the_weights():
    # King and Zeng (2001): the intercept of a fit to other class shares is off by their log odds.
    model = Reweighted(LogisticRegression()).fit(X, Y)
    odds = model.estimator_.decision_function(X) - np.log(model.weights_[1] / model.weights_[0])
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-odds)), atol=1e-12)


@pytest.mark.parametrize("weights", ["balanced", "inverse", "effective", {"rare": 40.0}])
def test_weights_change_no_honest_probability_of_classes_with_their_own_covariance(weights):
    # The mean and (ml) covariance of a class do not depend on its weight: only the priors do.
    base = QDA(denominator="ml")
    weighed, plain = Reweighted(base, weights).fit(X, Y), clone(base).fit(X, Y)
    np.testing.assert_allclose(
        weighed.predict_log_proba(X), plain.predict_log_proba(X), rtol=1e-10, atol=1e-10
    )


def test_of_a_shared_covariance_only_the_pooling_changes():
    weighed = Reweighted(LDA()).fit(X, Y)
    shares = np.array([np.mean(label == Y) for label in ("common", "rare")])
    scaled = discriminant.moments(X, Y).scale(weighed.weights_)
    np.testing.assert_allclose(
        weighed.predict_proba(X), LDA(prior=shares).fit_moments(scaled).predict_proba(X), atol=1e-12
    )


@pytest.mark.parametrize(
    "model",
    [
        Reweighted(LDA()),
        Resampled(LDA(), "over"),
        Resampled(LogisticRegression(), "under"),
        Resampled(LogisticRegression(), "smote"),
        EasyEnsemble(LogisticRegression()),
    ],
    ids=repr,
)
def test_honest_probabilities_have_the_class_shares_and_others_do_not(model):
    y = np.repeat(["common", "rare"], [2000, 100])
    rows = np.random.default_rng(0).standard_normal((2100, 3)) + 0.8 * (y == "rare")[:, None]
    honest = clone(model).fit(rows, y)
    told = honest.predict_proba(rows)[:, 1].mean()
    raw = honest.set_params(keep_probabilities=False).predict_proba(rows)[:, 1].mean()
    assert abs(told - 100 / 2100) < 0.01 < 0.1 < raw


BALANCED = LogisticRegression(class_weight="balanced")
SEARCH = {"shrinkage": [0.0, 0.1]}
COUNTED = [
    BALANCED,
    LogisticRegression(class_weight={"rare": 4.0}),
    Logistic(class_weight="balanced"),
    NearestMean(),
    Fisher(threshold="midpoint"),
    GaussianNB(),
    make_pipeline(StandardScaler(), BALANCED),
    GridSearchCV(LDA(), SEARCH),
    GridSearchCV(BALANCED, {"C": [0.1, 1.0]}),
]


WEIGHED = [base for base in COUNTED if has_fit_parameter(base, "sample_weight")]
HONEST = [
    *(Reweighted(base, {"rare": 3.0}) for base in WEIGHED),
    *(Resampled(base, "over", strategy=0.2) for base in COUNTED),
    *(EasyEnsemble(base, 3, strategy=0.2) for base in COUNTED),
]


@pytest.mark.parametrize("model", HONEST, ids=lambda m: " ".join(repr(m).split())[:80])
def test_honest_probabilities_have_the_class_shares_whatever_the_classifier_counts(model):
    y = np.repeat(["common", "rare"], [2000, 100])
    rows = np.random.default_rng(0).standard_normal((2100, 3)) + 0.8 * (y == "rare")[:, None]
    told = clone(model).fit(rows, y).predict_proba(rows)[:, 1].mean()
    assert abs(told - 100 / 2100) < 0.006


def test_balanced_counts_are_of_weights_in_logistic_regression_and_of_rows_in_forests():
    weight = np.where(Y == "rare", 3.0, 1.0)
    line = Decision(BALANCED).fit(X, Y, sample_weight=weight)
    forest = Decision(RandomForestClassifier(5, class_weight="balanced", random_state=0))
    assert line.fitted_prior_.tolist() == pytest.approx([0.5, 0.5])
    # A rare row weighs 162 / 24 and then 3 times as much: 243 of 324.
    assert forest.fit(X, Y, sample_weight=weight).fitted_prior_.tolist() == pytest.approx(
        [0.25, 0.75]
    )


@pytest.mark.parametrize("model", [Reweighted(LDA()), EasyEnsemble(QDA())], ids=repr)
def test_decisions_do_not_depend_on_keep_probabilities(model):
    honest = clone(model).fit(X, Y)
    before = honest.predict(X)
    assert np.array_equal(before, honest.set_params(keep_probabilities=False).predict(X))
    assert np.array_equal(before, honest.classes_[honest.predict_proba(X).argmax(axis=1)])


def test_class_weights_decide_as_costs_do():
    model = Reweighted(LDA(), {"rare": 7.0}).fit(X, Y)
    costs = {"common": {"rare": 7.0}, "rare": {"common": 1.0}}
    assert np.array_equal(model.predict(X), Decision.of_fitted(model, cost=costs).predict(X))


@pytest.mark.parametrize(
    "base",
    [
        LDA(prior=[0.3, 0.7]),
        GaussianNB(priors=[0.3, 0.7]),
        NearestMean(prior=[0.3, 0.7]),
        make_pipeline(StandardScaler(), LDA(prior=[0.3, 0.7])),
        GridSearchCV(LDA(prior=[0.3, 0.7]), {"shrinkage": [0.0, 0.1]}),
    ],
    ids=lambda b: " ".join(repr(b).split())[:60],
)
def test_priors_that_the_user_gave_stay(base):
    model = Resampled(base).fit(X, Y)
    found, wanted = model.predict_proba(X), model.estimator_.predict_proba(X)
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    assert model.prior_.tolist() == pytest.approx([0.3, 0.7])


def test_a_decision_around_it_knows_its_priors():
    inner = Reweighted(QDA(denominator="ml"))
    around = Decision(inner, prior=[0.5, 0.5]).fit(X, Y)
    plain = Decision(QDA(denominator="ml"), prior=[0.5, 0.5]).fit(X, Y)
    np.testing.assert_allclose(around.predict_proba(X), plain.predict_proba(X), atol=1e-10)


# --- how many rows are drawn ---------------------------------------------------------------------

NAMED = ["auto", "minority", "majority", "not minority", "not majority", "all", 0.5, 1.0]


@pytest.mark.parametrize("strategy", NAMED)
@pytest.mark.parametrize("method", ["over", "under"])
@pytest.mark.parametrize("counts", [(90, 10), (10, 90), (30, 20, 40), (5, 5, 9)], ids=str)
def test_strategies_ask_for_as_many_rows_as_imbalanced_learn(counts, method, strategy):
    y = np.repeat(np.arange(len(counts)), counts)
    try:
        theirs = check_sampling_strategy(strategy, y, f"{method}-sampling")
    except ValueError:
        with pytest.raises((OptionError, ResamplingError)):
            target_of(np.array(counts), np.arange(len(counts)), strategy, method)
        return
    found = target_of(np.array(counts), np.arange(len(counts)), strategy, method)
    wanted = np.array(counts)
    for k, rows in theirs.items():
        wanted[k] = wanted[k] + rows if method == "over" else rows
    assert found.wanted.tolist() == wanted.tolist()
    assert np.flatnonzero(found.resampled).tolist() == sorted(theirs)


@pytest.mark.parametrize("strategy", ["auto", "all", {0: 25, 1: 12}], ids=str)
def test_undersample_equals_that_of_imbalanced_learn(strategy):
    codes = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [40, 12, 30]))
    theirs = RandomUnderSampler(sampling_strategy=strategy, random_state=3)
    theirs.fit_resample(np.arange(82)[:, None], codes)
    target = target_of(np.bincount(codes), np.arange(3), strategy, "under")
    found = under_sample(codes, target, check_random_state(3))
    assert found.tolist() == sorted(theirs.sample_indices_)


@pytest.mark.parametrize("strategy", ["auto", "all", {1: 25, 2: 50}], ids=str)
def test_of_one_seed_the_rows_repeated_are_those_of_imbalanced_learn(strategy):
    codes = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], [40, 12, 30]))
    theirs = RandomOverSampler(sampling_strategy=strategy, random_state=3)
    theirs.fit_resample(np.arange(82)[:, None], codes)
    target = target_of(np.bincount(codes), np.arange(3), strategy, "over")
    found = over_sample(codes, target, check_random_state(3))
    assert found.tolist() == theirs.sample_indices_.tolist()


# --- draws in the mean ---------------------------------------------------------------------------


def scatter_of(rows):
    """Mean and scatter of rows, as one list."""
    z = rows - rows.mean(axis=0)
    return np.concatenate([rows.mean(axis=0), (z.T @ z).ravel()])


def every_under_sample(rows, wanted):
    return [rows[list(chosen)] for chosen in combinations(range(len(rows)), wanted)]


def every_over_sample(rows, wanted):
    more = product(range(len(rows)), repeat=wanted - len(rows))
    return [np.vstack([rows, rows[list(chosen)]]) for chosen in more]


def every_smote(rows, wanted):
    # Scatter is quadratic in the step on a segment: two Gauss points have its mean exactly.
    near = NearestNeighbors(n_neighbors=2).fit(rows).kneighbors(return_distance=False)
    steps = (1 + np.array([-1, 1]) / np.sqrt(3)) / 2
    made = [
        x + u * (rows[j] - x) for x, js in zip(rows, near, strict=True) for j in js for u in steps
    ]
    return [np.vstack([rows, *new]) for new in product(made, repeat=wanted - len(rows))]


EVERY = {
    "under": (every_under_sample, 3),
    "over": (every_over_sample, 7),
    "smote": (every_smote, 7),
}


@pytest.mark.parametrize("method", EVERY)
def test_moments_without_a_draw_are_the_mean_over_all_draws_there_are(method):
    every, wanted = EVERY[method]
    rng = np.random.default_rng(4)
    rows, y = rng.standard_normal((14, 2)), np.repeat(["common", "rare"], [9, 5])
    options = {"strategy": {"rare": wanted}, "neighbours": 2}
    found = Resampled(QDA(), method, **options).fit(rows, y).estimator_.moments_
    mean = np.mean([scatter_of(drawn) for drawn in every(rows[9:], wanted)], axis=0)
    assert found.weight.tolist() == found.rows.tolist() == [9, wanted]
    ours = np.concatenate([found.means[1], found.scatter[1].ravel()])
    np.testing.assert_allclose(ours, mean, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("method", EVERY)
def test_moments_without_a_draw_are_what_draws_come_to(method):
    rows, y = skewed(7, (40, 8), width=2)
    changed = "common" if method == "under" else "rare"
    model = Resampled(QDA(), method)
    drawn = []
    for seed in range(400):
        new, labels = clone(model).set_params(random_state=seed).resample(rows, y)
        drawn.append(scatter_of(new[labels == changed]))
    found = model.fit(rows, y).estimator_.moments_
    k = ["common", "rare"].index(changed)
    expected = np.concatenate([found.means[k], found.scatter[k].ravel()])
    error = np.std(drawn, axis=0, ddof=1) / np.sqrt(400)
    assert (np.abs(np.mean(drawn, axis=0) - expected) < 4 * error).all()


@every_moment_base
@pytest.mark.parametrize("method", ["under", "over"])
def test_resampling_needs_moments_alone(base, method):
    from_rows = Resampled(base, method).fit(X3, Y3)
    from_moments = Resampled(base, method).fit_moments(discriminant.moments(X3, Y3))
    assert from_rows.expected_ and from_rows.rows_.tolist() == from_moments.rows_.tolist()
    np.testing.assert_allclose(
        outputs_of(from_moments, X3), outputs_of(from_rows, X3), rtol=1e-10, atol=1e-10
    )


@pytest.mark.parametrize("base", [LDA(), NearestMean(), Fisher()], ids=repr)
def test_a_class_brought_to_one_row_has_a_mean_and_no_scatter(base):
    model = Resampled(base, "under", strategy={"common": 1, "third": 20}).fit(X3, Y3)
    held = discriminant.moments(X3, Y3)
    share = np.array([0.0, 1.0, 19 / 29])[:, None, None]
    wanted = (held.scatter * share).sum(axis=0)
    found = model.estimator_.moments_.pooled
    np.testing.assert_allclose(found, wanted if found.ndim == 2 else np.diag(wanted), rtol=1e-10)
    np.testing.assert_allclose(model.estimator_.means_, held.means, rtol=1e-12)


@pytest.mark.parametrize("denominator", ["unbiased", "ml", "reliability"])
@pytest.mark.parametrize("expected", [None, False])
def test_one_row_of_each_class_has_no_spread_drawn_or_not(expected, denominator):
    rows, y = np.vstack([X, X[:1] + 1]), np.append(Y, "third")
    with pytest.raises(TooFewRowsError, match=r"3 row.*in 3 class"):
        Resampled(LDA(denominator=denominator), "under", expected=expected).fit(rows, y)


def test_weights_that_sum_to_the_number_of_classes_leave_no_degree_but_rounding():
    weight = np.where(Y == "common", 1 / 150, 1 / 12)
    with pytest.raises(WeightError, match="sum to 2, which is not more than the 2 mean"):
        LDA().fit(X, Y, sample_weight=weight)


@pytest.mark.parametrize("base", [LDA(shrinkage="auto"), QDA(shrinkage="auto")], ids=repr)
def test_fourth_moments_need_a_drawn_sample(base):
    assert not Resampled(base, "under").fit(X, Y).expected_


# --- SMOTE ----------------------------------------------------------------------------------------


def smote(rows, y, neighbours=5, seed=0, nominal=None, strategy="auto"):
    options = {"neighbours": neighbours, "nominal": nominal, "strategy": strategy}
    return Resampled(LDA(), "smote", random_state=seed, **options).resample(rows, y)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["array", "sparse"])
@pytest.mark.parametrize("neighbours", [1, 5])
def test_of_one_seed_synthetic_rows_are_those_of_imbalanced_learn(kind, neighbours):
    theirs, _ = SMOTE(k_neighbors=neighbours, random_state=7).fit_resample(X, Y)
    found, _ = smote(kind(X), Y, neighbours, seed=7)
    found = found.toarray() if sparse.issparse(found) else found
    np.testing.assert_allclose(found, theirs, atol=1e-12)


def test_of_one_stream_synthetic_rows_of_several_classes_are_those_of_imbalanced_learn():
    theirs, labels = SMOTE(random_state=np.random.RandomState(7)).fit_resample(X3, Y3)
    found, y = smote(X3, Y3, seed=np.random.RandomState(7))
    np.testing.assert_allclose(found, theirs, atol=1e-12)
    assert y.tolist() == labels.tolist()


@given(seed=st.integers(0, 999), neighbours=st.integers(1, 6))
def test_every_synthetic_row_lies_between_a_rare_row_and_one_of_its_neighbours(seed, neighbours):
    rows, y = skewed(seed, (30, 8), width=2)
    found, labels = smote(rows, y, neighbours, seed)
    rare, new = rows[y == "rare"], found[len(rows) :]
    near = NearestNeighbors(n_neighbors=neighbours).fit(rare).kneighbors(return_distance=False)
    start, end = rare[:, None, :], rare[near]  # (n, 1, 2), (n, k, 2)
    along = end - start
    step = np.einsum("mnkj,nkj->mnk", new[:, None, None] - start, along) / (along**2).sum(axis=2)
    off = new[:, None, None] - (start + np.clip(step, 0, 1)[..., None] * along)
    assert np.abs(off).max(axis=3).min(axis=(1, 2)).max() < 1e-10
    assert (labels[len(rows) :] == "rare").all() and len(new) == 22


def test_duplicates_are_neighbours_of_one_another_and_no_row_of_itself():
    rows = np.repeat([[0.0], [5.0], [9.0]], 2, axis=0)
    found = nearest_neighbours(rows, 1, "rare")
    assert found.ravel().tolist() == [1, 0, 3, 2, 5, 4]


@pytest.mark.parametrize("width", [3, 16, 40])
@pytest.mark.parametrize("rows", [7, 130, 700])
def test_neighbours_are_the_nearest_rows_by_their_differences(rows, width):
    z = np.random.default_rng(rows).standard_normal((rows, width))
    z[0] *= 1e9  # a row far away must not blur the others
    apart = ((z[:, None] - z) ** 2).sum(axis=2)
    np.fill_diagonal(apart, np.inf)
    wanted = np.argsort(apart, axis=1)[:, :5]
    found = nearest_neighbours(z, 5, "rare", threads=2)
    assert found[1:].tolist() == wanted[1:].tolist()


@pytest.mark.parametrize("width", [1, 20])
def test_of_equal_rows_each_has_others_for_neighbours(width):
    found = nearest_neighbours(np.ones((300, width)), 5, "rare")
    assert all(len({i, *near}) == 6 for i, near in enumerate(found.tolist()))


def test_a_far_origin_changes_no_neighbour():
    rows = np.round(1024 * X[Y == "rare"]) / 1024  # so that adding 1e9 loses nothing
    assert np.array_equal(
        nearest_neighbours(rows + 1e9, 3, "rare"), nearest_neighbours(rows, 3, "rare")
    )


@pytest.mark.parametrize("unit", [1e170, 1e-170, 1e-290])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["array", "sparse"])
@pytest.mark.parametrize("width", [3, 20])
def test_neighbours_do_not_depend_on_the_unit(width, kind, unit):
    rows = np.random.default_rng(0).standard_normal((40, width))
    found = nearest_neighbours(kind(rows * unit), 5, "rare")
    assert np.array_equal(found, nearest_neighbours(kind(rows), 5, "rare"))


@pytest.mark.parametrize("unit", [1e170, 1e-170])
def test_neighbours_by_numbers_and_categories_do_not_depend_on_the_unit(unit):
    rng = np.random.default_rng(0)
    numbers, nominal = rng.standard_normal((40, 3)), rng.integers(0, 3, (40, 2))
    found = mixed_neighbours(numbers * unit, nominal, 5, "rare")
    assert np.array_equal(found, mixed_neighbours(numbers, nominal, 5, "rare"))


@pytest.mark.parametrize("expected", [None, False])
def test_smote_in_another_unit_is_the_same_model(expected):
    model = Resampled(LDA(), "smote", expected=expected)
    plain = clone(model).fit(X, Y).predict_proba(X)
    for unit in (1e170, 1e-170):
        np.testing.assert_allclose(model.fit(X * unit, Y).predict_proba(X * unit), plain, rtol=1e-8)


@pytest.mark.parametrize("detail", ["diagonal", "pooled", "class"])
def test_moments_of_synthetic_rows_follow_without_drawing_them(detail):
    # Two Gauss points on every segment have the first two moments of a uniform step exactly.
    rows = X[Y == "rare"]
    near = nearest_neighbours(rows, 5, "rare")
    points = (1 + np.array([-1, 1]) / np.sqrt(3)) / 2
    start, end = rows[:, None, None, :], rows[near][:, :, None, :]
    all_rows = (start + points[:, None] * (end - start)).reshape(-1, 3)
    weight = np.full(len(all_rows), 100 / len(all_rows))
    wanted = discriminant.moments(all_rows, ["rare"] * len(all_rows), weight, detail)
    found = expected_moments(wanted, 0, wanted.anchor.offsets(rows), near, 100)
    np.testing.assert_allclose(found.mean, wanted.mean, atol=1e-12)
    kept = 1 - 1 / (len(rows) + 100)  # the rest is in how the mean moves from draw to draw
    np.testing.assert_allclose(found.scatter, kept * wanted.scatter, atol=1e-10)


def test_whole_numbers_may_become_fractions_and_single_precision_stays():
    whole, _ = smote(np.round(10 * X).astype(int), Y)
    single, _ = smote(X.astype(np.float32), Y)
    assert (whole[len(X) :] % 1 != 0).any() and single.dtype == np.float32


# --- SMOTE with categories -----------------------------------------------------------------------


def mixed(seed=0, n=120, rare=15):
    rng = np.random.default_rng(seed)
    y = np.array(["rare"] * rare + ["common"] * (n - rare))
    colour = np.where(rng.random(n) < np.where(y == "rare", 0.8, 0.3), "red", "blue")
    size = rng.integers(0, 3, n)
    return pd.DataFrame(
        {"u": rng.normal(size=n), "colour": colour, "v": rng.normal(size=n), "size": size}
    ), y


def test_neighbours_by_numbers_and_categories_are_those_of_the_paper():
    # SMOTE-NC: a differing category counts as the median standard deviation of the numbers.
    frame, y = mixed()
    rare = frame[y == "rare"]
    numbers, names = rare[["u", "v"]].to_numpy(), rare[["colour", "size"]].to_numpy()
    unit = np.median(numbers.std(axis=0))
    apart = ((numbers[:, None] - numbers) ** 2).sum(axis=2)
    apart += unit**2 * (names[:, None] != names).sum(axis=2)
    np.fill_diagonal(apart, np.inf)
    wanted = np.sort(np.argsort(apart, axis=1)[:, :4], axis=1)
    made = SmoteTable.from_rows(frame, ["colour", "size"])
    found = made._neighbours(np.flatnonzero(y == "rare"), None, 4, "rare")
    assert np.sort(found, axis=1).tolist() == wanted.tolist()


def test_of_one_seed_the_numbers_beside_categories_are_those_of_imbalanced_learn():
    frame, y = mixed()
    theirs, labels = SMOTENC([1, 3], random_state=4).fit_resample(frame, y)
    found, ours = smote(frame, y, nominal=["colour", "size"], seed=4)
    np.testing.assert_allclose(found[["u", "v"]].to_numpy(), theirs[["u", "v"]].to_numpy(float))
    assert ours.tolist() == labels.tolist()


def test_a_synthetic_category_is_one_that_most_neighbours_have():
    frame, y = mixed()
    found, _ = smote(frame, y, neighbours=5, nominal=["colour", "size"], seed=1)
    rare = np.flatnonzero(y == "rare")
    near = SmoteTable.from_rows(frame, ["colour", "size"])._neighbours(rare, None, 5, "rare")
    start = check_random_state(1).randint(0, near.size, size=len(found) - len(frame)) // 5
    names = frame["size"].to_numpy()[rare]
    for new, voters in zip(found["size"][len(frame) :], names[near][start], strict=True):
        assert (voters == new).sum() == np.bincount(voters).max()


@pytest.mark.parametrize("kind", [lambda f: f, pl.from_pandas], ids=["pandas", "polars"])
def test_a_frame_with_categories_comes_back_as_such_a_frame(kind):
    frame, y = mixed()
    found, labels = smote(kind(frame), y)  # colour is text, so it is nominal without being named
    assert type(found) is type(kind(frame)) and list(found.columns) == list(frame.columns)
    assert set(found["colour"]) == {"red", "blue"} and len(found) == len(labels) == 210


def test_categories_of_a_pandas_frame_stay_categories():
    frame, y = mixed()
    found, _ = smote(frame.astype({"colour": "category"}), y)
    assert found["colour"].dtype == "category"


def test_categories_are_as_far_apart_as_the_classes_of_their_rows():
    # Column: a a b b c c; classes 0 0 1 1 0 1. P(1|a) = 0, P(1|b) = 1, P(1|c) = 1/2.
    nominal, codes = np.array([[0], [0], [1], [1], [2], [2]]), np.array([0, 0, 1, 1, 0, 1])
    (found,) = value_differences(nominal, codes, 2)
    assert found.tolist() == [[0.0, 4.0, 1.0], [4.0, 0.0, 1.0], [1.0, 1.0, 0.0]]


def test_neighbours_by_categories_alone_are_the_nearest_by_that_distance():
    rng = np.random.default_rng(0)
    nominal, codes = rng.integers(0, 5, (60, 3)), rng.integers(0, 2, 60)
    tables = value_differences(nominal, codes, 2)
    near = nominal_neighbours(nominal, tables, 4, "rare")
    apart = sum(t[c][:, c] for t, c in zip(tables, nominal.T, strict=True))
    np.fill_diagonal(apart, np.inf)
    found = np.sort(np.take_along_axis(apart, near, axis=1), axis=1)
    np.testing.assert_array_equal(found, np.sort(apart, axis=1)[:, :4])


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, pl.DataFrame])
def test_categories_may_be_fractions(kind):
    frame, y = mixed()
    rows = np.column_stack([frame["u"], frame["size"] / 4, frame["v"]])
    found = np.asarray(smote(kind(rows), y, nominal=[1])[0], dtype=float)
    assert set(found[:, 1]) == {0.0, 0.25, 0.5}


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame])
def test_missing_category_raises_with_its_column(kind):
    rows = np.column_stack([ROWS, np.repeat([0.5, np.nan, 1.0], 20)])
    with pytest.raises(ResamplingError, match=r"column '(x)?2' has 20 missing"):
        smote(kind(rows), FEW, neighbours=1, nominal=[2])


def test_rows_of_categories_alone_get_categories_that_were_there():
    rng = np.random.default_rng(0)
    rows = rng.choice(["p", "q", "r"], (80, 4)).astype(object)
    found, labels = smote(rows, np.repeat(["rare", "common"], [10, 70]), nominal=range(4))
    assert found.shape == (140, 4) and set(found.ravel()) <= {"p", "q", "r"}
    assert (labels[80:] == "rare").all()


def test_a_pipeline_with_categories_is_fitted_to_synthetic_rows():
    frame, y = mixed()
    base = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    model = Resampled(base, "smote").fit(frame, y)
    assert model.rows_.tolist() == [105, 105] and model.predict_proba(frame).shape == (120, 2)


# --- EasyEnsemble --------------------------------------------------------------------------------


class NoRows(LDA):
    """LDA that can be fitted from moments alone."""

    def fit(self, X, y, sample_weight=None):
        raise AssertionError("rows were read again")


def test_classifiers_made_from_moments_never_see_the_rows():
    assert len(EasyEnsemble(NoRows(), 7).fit(X, Y).estimators_) == 7


def test_rows_are_read_once_whatever_the_number_of_subsets(monkeypatch):
    from discriminant.table.memory import Table

    seen = []
    block = Table.block
    monkeypatch.setattr(
        Table, "block", lambda self, lo, hi: seen.append(hi - lo) or block(self, lo, hi)
    )
    EasyEnsemble(LDA(), 25).fit(X, Y)
    assert sum(seen) == len(X)


@every_moment_base
def test_the_ensemble_from_one_reading_is_the_one_of_refits(base):
    model = EasyEnsemble(base, 6).fit(X3, Y3)
    refits = [clone(base).fit(X3[rows], Y3[rows]) for rows in model.subset_rows_]
    wanted = np.mean([refit.predict_proba(X3) for refit in refits], axis=0)
    found = model.set_params(keep_probabilities=False).predict_proba(X3)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize("base", [LDA(), NearestMean(), RDA(pooling=1.0)], ids=repr)
@pytest.mark.parametrize(("rows", "y"), [(X, Y), (X3 + 1e6, Y3)], ids=["two", "three"])
def test_linear_members_are_one_product(base, rows, y):
    model = EasyEnsemble(base, 6, keep_probabilities=False).fit(rows, y)
    assert model._linear_ensemble() is not None
    wanted = np.mean([member.predict_proba(rows) for member in model.estimators_], axis=0)
    np.testing.assert_allclose(model.predict_proba(rows), wanted, rtol=1e-7, atol=1e-300)


def test_neither_side_of_one_product_loses_its_digits():
    model = EasyEnsemble(LDA(), 6, keep_probabilities=False).fit(X, Y)
    far = np.vstack(
        [X[:1] + 600 * (X[label == Y].mean(axis=0) - X.mean(axis=0)) for label in set(Y)]
    )
    wanted = logsumexp([member.predict_log_proba(far) for member in model.estimators_], axis=0)
    assert wanted.min() < -100
    np.testing.assert_allclose(
        model.predict_log_proba(far), wanted - np.log(6), rtol=1e-9, atol=1e-15
    )


def test_honest_probabilities_of_the_ensemble_are_those_of_its_logs():
    model = EasyEnsemble(LDA(), 6).fit(X3, Y3)
    logs = model.predict_log_proba(X3)
    np.testing.assert_allclose(model.predict_proba(X3), np.exp(logs), rtol=1e-12)


@pytest.mark.parametrize("cell", [np.nan, np.inf])
def test_a_cell_that_is_no_number_is_named_when_all_members_are_asked_at_once(cell):
    model, rows = EasyEnsemble(LDA(), 3).fit(X, Y), X.copy()
    rows[17, 2] = cell
    with pytest.raises((MissingValueError, InfiniteValueError), match=r"[Rr]ow 17\b.*x2"):
        model.predict_proba(rows)


def test_every_subset_has_all_rare_rows_and_as_many_of_each_other_class():
    model = EasyEnsemble(LDA(), 5).fit(X3, Y3)
    for rows in model.subset_rows_:
        assert dict(zip(*np.unique(Y3[rows], return_counts=True), strict=True)) == dict.fromkeys(
            ["common", "rare", "third"], 9
        )
        assert set(np.flatnonzero(Y3 == "rare")) <= set(rows)


def test_columns_of_extreme_size_are_read_in_units_of_their_own():
    model = EasyEnsemble(LDA(), 3).fit(X * 1e200, Y)
    plain = EasyEnsemble(LDA(), 3).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(X * 1e200), plain.predict_proba(X), atol=1e-9)


def test_more_features_than_rows_are_no_obstacle():
    rng = np.random.default_rng(0)
    rows, y = rng.standard_normal((40, 60)), np.repeat([0, 1], [30, 10])
    model = EasyEnsemble(LDA(shrinkage=0.5), 3).fit(rows, y)
    refits = [LDA(shrinkage=0.5).fit(rows[r], y[r]).predict_proba(rows) for r in model.subset_rows_]
    found = model.set_params(keep_probabilities=False).predict_proba(rows)
    np.testing.assert_allclose(found, np.mean(refits, axis=0), atol=1e-10)


def test_classifiers_without_probabilities_vote():
    model = EasyEnsemble(SklearnPerceptron(), 9).fit(X, Y)
    votes = np.mean([member.predict(X) == "rare" for member in model.estimators_], axis=0)
    assert np.array_equal(model.predict(X) == "rare", votes > 0.5)


@pytest.mark.parametrize("model", [Reweighted(LinearSVC()), EasyEnsemble(LinearSVC(), 4)], ids=repr)
@pytest.mark.parametrize(("rows", "y"), [(X, Y), (X3, Y3)], ids=["two", "three"])
def test_decision_function_without_probabilities(model, rows, y):
    fitted = clone(model).fit(rows, y)
    scores = fitted.decision_function(rows)
    best = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
    assert np.array_equal(fitted.classes_[best], fitted.predict(rows))
    assert not hasattr(fitted, "predict_proba")


# --- only ever in the training rows --------------------------------------------------------------


class Memory(ClassifierMixin, BaseEstimator):
    """Remembers how many of the rows that it was fitted to are which."""

    def fit(self, X, y):
        self.classes_, self.rows_ = np.unique(y), X
        return self

    def predict_proba(self, X):
        # The share of the rows asked about that were there, or nearly, when it was fitted.
        known = (np.abs(X[:, None, :] - self.rows_).max(axis=2) < 1e-12).any(axis=1)
        return np.column_stack([1.0 - known, known])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


@pytest.mark.parametrize("method", ["under", "over", "smote"])
def test_held_out_rows_are_never_resampled(method):
    model = Resampled(Memory(), method, keep_probabilities=False)
    held = cross_validate(model, X, Y, 4)
    assert held.log_posterior[:, 1].max() == -np.inf


def test_resampling_before_the_split_would_leak():
    # One nearest neighbour, labels without meaning: repeats of a row on both sides look like skill.
    rng = np.random.default_rng(0)
    rows, y = rng.standard_normal((200, 5)), np.repeat([0, 1], [180, 20])
    nearest = KNeighborsClassifier(1)
    inside = cross_validate(Resampled(nearest, "over"), rows, y, 5)
    leaked_rows, leaked = RandomOverSampler(random_state=0).fit_resample(rows, y)
    outside = cross_validate(nearest, leaked_rows, leaked, 5)
    auc = [roc_auc_score(h.codes, np.exp(h.log_posterior[:, 1])) for h in (inside, outside)]
    assert auc[0] < 0.65 and auc[1] > 0.9


# --- the comparison ------------------------------------------------------------------------------

WAYS = [
    "plain",
    "threshold moved",
    "reweighted",
    "under-sampled",
    "over-sampled",
    "SMOTE",
    "EasyEnsemble",
]


@pytest.fixture(scope="module")
def compared():
    rows, y = skewed(5, (400, 40), spread=0.5)
    fold = np.arange(440) % 5
    return rows, y, fold, compare_imbalance(LDA(), rows, y, folds=fold)


def test_every_strategy_is_in_the_table(compared):
    found = compared[-1]
    assert list(found.ways) == WAYS
    assert found.frame().shape == (7, 8) and np.isfinite(found.values).all()
    assert found.to_dict()["ways"]["plain"]["auc"] == found.frame().loc["plain", "auc"]
    assert all(way in str(found) for way in WAYS)


def test_measures_are_those_of_scikit_learn(compared):
    rows, y, fold, found = compared
    held = cross_validate(LDA(), rows, y, fold)
    p, truth = np.exp(held.log_posterior[:, 1]), (y == "rare").astype(int)
    plain = dict(zip(MEASURES, found.values[0], strict=True))
    assert plain["auc"] == pytest.approx(roc_auc_score(truth, p), abs=1e-12)
    assert plain["f1"] == pytest.approx(f1_score(truth, p > 0.5), abs=1e-12)
    assert plain["log_loss"] == pytest.approx(log_loss(truth, p), abs=1e-12)
    assert plain["brier"] == pytest.approx(brier_score_loss(truth, p), abs=1e-12)
    assert plain["cost"] == pytest.approx(held.error, abs=1e-12)


def test_a_moved_threshold_is_the_rescaling_of_the_lecture(compared):
    rows, y, fold, found = compared
    p = np.exp(cross_validate(LDA(), rows, y, fold).log_posterior[:, 1])
    share = np.array([np.mean(y[fold != f] == "rare") for f in fold])
    said = p / (1 - p) > share / (1 - share)
    recall = [np.mean(said[y == "rare"]), np.mean(~said[y == "common"])]
    moved = dict(zip(MEASURES, found.values[1], strict=True))
    assert moved["balanced_error"] == pytest.approx(1 - np.mean(recall), abs=1e-12)
    assert moved["auc"] == found.values[0, 0]


def test_every_strategy_but_plain_detects_rare_rows(compared):
    error = compared[-1].frame()["balanced_error"]
    assert (error[1:] < error.iloc[0] - 0.03).all()


def test_with_a_cost_the_moved_threshold_is_the_cheapest(compared):
    rows, y, fold, _ = compared
    cost = {"common": {"rare": 25.0}, "rare": {"common": 1.0}}
    found = compare_imbalance(LDA(), rows, y, folds=fold, cost=cost).frame()["cost"]
    assert found["threshold moved"] < 0.7 * found["plain"]


def test_of_three_classes_measures_are_means_over_them():
    found = compare_imbalance(
        LDA(), X3, Y3, folds=3, strategies={"weighed": Reweighted(LDA(), "inverse")}
    )
    assert list(found.ways) == ["plain", "threshold moved", "weighed"] and found.positive is None
    held = cross_validate(LDA(), X3, Y3, 3)
    p = np.exp(held.log_posterior)
    assert found.values[0, 0] == pytest.approx(roc_auc_score(Y3, p, multi_class="ovr"), abs=1e-12)


@pytest.mark.parametrize("positive", [None, "rare"])
def test_of_three_classes_losses_are_of_all_of_them(positive):
    found = compare_imbalance(LDA(), X3, Y3, folds=3, strategies={}, positive=positive)
    p = np.exp(cross_validate(LDA(), X3, Y3, 3).log_posterior)
    measured = found.frame().loc["plain"]
    truth = np.eye(3)[np.unique(Y3, return_inverse=True)[1]]
    assert measured["brier"] == pytest.approx(((p - truth) ** 2).sum(axis=1).mean(), abs=1e-12)
    assert measured["log_loss"] == pytest.approx(log_loss(Y3, p), abs=1e-12)


def test_every_strategy_has_an_assessment(compared):
    found = compared[-1]
    held = found.assessments["reweighted"]
    measured = found.frame().loc["reweighted"]
    assert held.calibration_error("rare") == measured["calibration_error"]
    assert held.confusion().sum() == 440


def test_strategy_with_too_few_rows_in_a_fold_is_skipped_with_a_warning():
    rows, y = skewed(5, (60, 6))
    with pytest.warns(StrategyNotEvaluatedWarning, match=r"'SMOTE'.*fold.*'rare' has 5 row"):
        found = compare_imbalance(LDA(), rows, y, folds=6)
    missing = np.isnan(found.values).all(axis=1)
    assert [way for way, none in zip(found.ways, missing, strict=True) if none] == ["SMOTE"]
    assert np.isfinite(found.values[~missing]).all() and "SMOTE" not in found.assessments


def test_without_probabilities_rows_are_ranked_by_what_decides():
    rows, y = skewed(5, (200, 40))
    model = make_pipeline(StandardScaler(), LinearSVC())
    with pytest.warns(
        NoPosteriorWarning,
        match="log loss, Brier score, calibration and moved thresholds are left out",
    ):
        found = compare_imbalance(model, rows, y, folds=np.arange(240) % 4)
    scores = np.empty(240)
    for f in range(4):
        held = np.arange(240) % 4 == f
        scores[held] = clone(model).fit(rows[~held], y[~held]).decision_function(rows[held])
    measured = found.frame().loc["plain"]
    assert measured["auc"] == pytest.approx(roc_auc_score(y == "rare", scores), abs=1e-12)
    assert np.isnan(measured[["log_loss", "brier", "calibration_error"]]).all()
    assert np.isfinite(found.frame().loc["EasyEnsemble", "auc"]) and " -" in str(found)


@pytest.mark.parametrize("name", ["plain", "threshold moved"])
def test_names_that_are_always_there_are_refused(name):
    with pytest.raises(OptionError, match=f"strategies=.*{name}.*always compared"):
        compare_imbalance(LDA(), X, Y, folds=2, strategies={name: QDA()})


def test_usual_strategies_can_be_extended():
    more = discriminant.imbalance_strategies(LDA()) | {"heavier": Reweighted(LDA(), {"rare": 50.0})}
    assert compare_imbalance(LDA(), X, Y, folds=2, strategies=more).strategies[-1] == "heavier"


def test_reweighting_is_skipped_without_sample_weight():
    model = make_pipeline(StandardScaler(), KNeighborsClassifier())
    assert "reweighted" not in compare_imbalance(model, X, Y, folds=2).ways


def test_every_strategy_but_plain_detects_calcifications(shared_data):
    table = pd.read_csv(shared_data / "imb_mammography" / "mammography.csv")
    rows, y = table.filter(like="x").to_numpy(), table["y"].to_numpy()
    fold = table["fold"].to_numpy()
    found = compare_imbalance(LDA(denominator="ml"), rows, y, folds=fold).frame()
    error = found["balanced_error"]
    assert (error[1:] < error["plain"] - 0.04).all()


# ruff: noqa: E501 -- a table of cases is read line by line
# --- what is refused -----------------------------------------------------------------------------

FEW = np.array(["rare"] * 4 + ["common"] * 56)
ROWS = np.random.default_rng(0).standard_normal((60, 2))

REFUSED = [
    (Resampled(LDA(), "smote"), ResamplingError, "'rare' has 4 row.*neighbours=5 needs at least 6.*neighbours=3 or less"),
    (Resampled(GaussianNB(), "smote"), ResamplingError, "'rare' has 4 row.*method='over'"),
    (Resampled(LDA(), "smot"), OptionError, "method='smot'.*one of under, over, smote"),
    (Resampled(LDA(), "smote", neighbours=0), OptionError, "neighbours=0.*1 or more"),
    (Resampled(LDA(), strategy="majority"), OptionError, "strategy='majority'.*not majority"),
    (Resampled(LDA(), strategy=1.5), OptionError, r"strategy=1.5.*\(0, 1\]"),
    (Resampled(LDA(), strategy=0.05), ResamplingError, "0.05.*already 0.07143"),
    (Resampled(LDA(), strategy={"rare": 2}), ResamplingError, "'rare' has 4.*requests 2.*only add rows"),
    (Resampled(LDA(), "under", strategy={"common": 99}), ResamplingError, "'common' has 56.*99.*'under' only removes rows"),
    (Resampled(LDA(), strategy={"odd": 99}), LabelError, "odd"),
    (Resampled(GaussianNB(), expected=True), OptionError, "expected=True.*GaussianNB needs rows"),
    (Resampled(GaussianNB(), "smote", nominal=[5], neighbours=1), ResamplingError, r"nominal=\[5\].*2 columns of X"),
    (Reweighted(LDA(), "blanced"), OptionError, "weights='blanced'.*'balanced'"),
    (Reweighted(LDA(), "effective", beta=1.0), OptionError, "beta=1.0.*below 1"),
    (Reweighted(LDA(), {"odd": 2.0}), LabelError, "odd"),
    (Reweighted(LDA(), {"rare": 0.0}), ClassWeightError, "'rare' is 0.*drop its rows"),
    (Reweighted(LDA(), {"rare": -1.0}), OptionError, "weights=-1.0.*not negative"),
    (Reweighted(LDA(), [1.0, 2.0, 3.0]), OptionError, r"weights='array of shape \(3,\)'.*2 classes"),
    (Resampled(LDA(), "smote", neighbours=1, strategy={"rare": 2}), ResamplingError, "'rare' has 4.*requests 2.*'smote'.*only add rows"),
    (Reweighted(KNeighborsClassifier()), ClassWeightError, "KNeighborsClassifier does not support sample_weight.*Resampled"),
    (EasyEnsemble(LDA(), 0), OptionError, "subsets=0.*1 or more"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "error", "message"), REFUSED, ids=lambda v: str(v)[:60])
def test_what_cannot_be_is_refused_by_name_and_number(model, error, message):
    with pytest.raises(error) as told:
        model.fit(ROWS, FEW)
    assert re.search(message, str(told.value), flags=re.DOTALL)


@pytest.mark.parametrize(
    "model",
    [
        Reweighted(LogisticRegression()),
        Reweighted(LDA()),
        OneVsOne(LogisticRegression()),
        OneVsOne(LDA()),
        Decision(LogisticRegression()),
    ],
    ids=repr,
)
def test_a_class_of_no_weight_is_refused_by_name(model):
    with pytest.raises(WeightError, match="Class 'rare' has total weight 0"):
        model.fit(X3, Y3, sample_weight=(Y3 != "rare").astype(float))


@pytest.mark.parametrize("model", [Resampled(LDA()), EasyEnsemble(LDA())], ids=repr)
def test_resampling_rejects_weights(model):
    with pytest.raises(ResamplingError, match=r"does not support sample_weight.*Reweighted"):
        model.fit(X, Y, sample_weight=np.ones(len(Y)))


def test_moments_of_weighted_rows_cannot_be_resampled():
    held = discriminant.moments(X, Y, np.where(Y == "rare", 2.0, 1.0))
    with pytest.raises(ResamplingError, match=r"12 rows of class 'rare' have weights, 24 in total"):
        Resampled(LDA(), "under").fit_moments(held)


def test_smote_needs_rows():
    with pytest.raises(OptionError, match=r"method='smote'.*fit\(X, y\)"):
        Resampled(LDA(), "smote").fit_moments(discriminant.moments(X, Y))


def test_a_ratio_of_three_classes_is_refused():
    with pytest.raises(ResamplingError, match="ratio of two classes, but there are 3"):
        Resampled(LDA(), strategy=0.5).fit(X3, Y3)


def test_a_single_rare_row_has_no_neighbour_at_all():
    with pytest.raises(ResamplingError, match=r"1 row.*at least 2.*Pass method='over'"):
        Resampled(GaussianNB(), "smote", neighbours=1).fit(
            ROWS, np.array(["rare"] + ["common"] * 59)
        )


def test_nominal_columns_of_a_sparse_matrix_are_refused():
    with pytest.raises(ResamplingError, match="sparse"):
        Resampled(LogisticRegression(), "smote", nominal=[0]).fit(sparse.csr_array(X), Y)


@pytest.mark.parametrize(
    "model", [Resampled(GaussianNB(), "smote"), EasyEnsemble(LDA(), 2)], ids=repr
)
def test_a_missing_cell_is_named_even_in_a_row_that_is_not_drawn(model):
    for row in np.flatnonzero(Y == "common")[:20]:
        rows = X.copy()
        rows[row, 1] = np.nan
        with pytest.raises(MissingValueError, match=f"[Rr]ow {row}\\b.*x1"):
            clone(model).fit(rows, Y)


def test_a_cost_with_actions_that_are_no_classes_is_refused():
    cost = {"common": {}, "rare": {}, "wait": {"common": 0.1, "rare": 0.1}}
    with pytest.raises(OptionError, match="wait"):
        compare_imbalance(LDA(), X, Y, cost=cost, folds=2)


@pytest.mark.parametrize("wrapper", [Reweighted, Resampled, EasyEnsemble])
@pytest.mark.parametrize("base", [LinearRegression(), discriminant.LinearRegression()])
def test_balancing_refuses_a_regressor_by_name(wrapper, base):
    X, y = skewed()
    with pytest.raises(OptionError, match=f"LinearRegression.*'regressor'.*{wrapper.__name__}"):
        wrapper(base).fit(X, y)


# --- EasyEnsemble by division --------------------------------------------------------------------


@pytest.mark.parametrize("base", [LDA(), LogisticRegression()], ids=["moments", "rows"])
def test_division_uses_every_row_of_the_majority_once(base):
    """Lecture 5: the negatives are divided into subsets of the size of the positives."""
    X, y = skewed(counts=(200, 20))
    model = EasyEnsemble(base, "divide", random_state=0).fit(X, y)
    majority = [rows[y[rows] == model.classes_[0]] for rows in model.subset_rows_]
    assert [len(rows) for rows in majority] == [20] * 10
    assert sorted(np.concatenate(majority)) == np.flatnonzero(y == model.classes_[0]).tolist()
    rare = np.flatnonzero(y == model.classes_[1]).tolist()
    assert all(set(rare) < set(rows.tolist()) for rows in model.subset_rows_)
    assert model.n_unused_ == 0


def test_independent_draws_leave_about_a_third_of_the_majority_unused():
    X, y = skewed(counts=(200, 20))
    unused = EasyEnsemble(LDA(), 10, random_state=0).fit(X, y).n_unused_
    assert abs(unused - 200 * 0.9**10) < 20  # (1 - m/n)^T of n rows, in the mean


@given(counts=st.lists(st.integers(2, 60), min_size=2, max_size=4), seed=st.integers(0, 99))
def test_division_is_into_disjoint_parts_of_nearly_equal_size(counts, seed):
    codes = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    target = target_of(np.array(counts), np.arange(len(counts)), "auto", "under")
    parts = split_under_samples(codes, target, np.random.RandomState(seed))
    assert set(np.concatenate(parts)) == set(range(len(codes)))
    for k, count in enumerate(counts):
        own = {tuple(rows[codes[rows] == k].tolist()) for rows in parts}
        sizes = [len(rows) for rows in own]
        assert sum(sizes) == count and max(sizes) - min(sizes) <= 1  # distinct parts are disjoint
        assert abs(count / min(counts) - len(own)) <= 0.5


def test_division_has_the_mean_of_members_fitted_to_its_parts():
    X, y = skewed(counts=(130, 20))
    model = EasyEnsemble(LDA(), "divide", keep_probabilities=False).fit(X, y)
    each = [LDA().fit(X[rows], y[rows]) for rows in model.subset_rows_]
    mean = np.mean([member.predict_proba(X) for member in each], axis=0)
    np.testing.assert_allclose(model.predict_proba(X), mean, rtol=1e-9)
    rare = np.mean([(y[rows] == "rare").mean() for rows in model.subset_rows_])
    np.testing.assert_allclose(model.fitted_prior_, [1 - rare, rare], rtol=1e-12)


def test_divide_is_the_only_text_for_subsets():
    X, y = skewed()
    with pytest.raises(OptionError, match=r"subsets='split'.*'divide'"):
        EasyEnsemble(LDA(), "split").fit(X, y)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_smote_with_categories_returns_the_dtype_that_smote_returns(dtype):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (60, 3)).astype(dtype)
    y = np.repeat([0, 1], [45, 15])
    plain = Resampled(LDA(), "smote").resample(X, y)[0]
    assert Resampled(LDA(), "smote", nominal=[1]).resample(X, y)[0].dtype == plain.dtype


def test_old_names_of_strategies_warn_and_give_the_same_result():
    with pytest.warns(FutureWarning, match="use imbalance_strategies"):
        names = list(discriminant.imbalance_ways(LDA()))
    assert names == list(discriminant.imbalance_strategies(LDA()))
    with pytest.warns(FutureWarning, match="use strategies="):
        found = compare_imbalance(LDA(), X, Y, folds=2, ways={})
    assert found.ways == found.strategies == ("plain", "threshold moved")
