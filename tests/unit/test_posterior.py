"""Posteriors under other priors, priors of a new population, fusion of sources."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import minimize
from scipy.stats import chi2
from sklearn.datasets import load_iris
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from discriminant import LDA, QDA, Decision, Fusion
from discriminant.errors import (
    ColumnNamesError,
    FusionError,
    NotConvergedWarning,
    PosteriorError,
    PriorError,
    ShapeError,
    SharedColumnsWarning,
    WeightError,
)
from discriminant.models.gaussian.covariance import factorise
from discriminant.models.gaussian.family import quadratic_rule
from discriminant.posterior import change_prior, estimated_prior, fuse_posteriors, log_posterior

X, Y = load_iris(return_X_y=True)
SPECIES = np.array(["setosa", "versicolor", "virginica"])[Y]
SEPAL, PETAL = [0, 1], [2, 3]
NAMES = ["sepal length", "sepal width", "petal length", "petal width"]
PRIOR = np.array([0.7, 0.2, 0.1])

seeds = st.integers(0, 999)


def drawn(seed, rows=200, classes=3):
    rng = np.random.default_rng(seed)
    old, new = rng.dirichlet(3 * np.ones(classes), 2)
    return log_posterior(2 * rng.standard_normal((rows, classes)) + np.log(old)), old, new


# --- other priors --------------------------------------------------------------------------------


@given(seeds)
def test_priors_are_replaced_by_their_ratio(seed):
    log_p, old, new = drawn(seed)
    by_hand = np.exp(log_p) * new / old
    by_hand /= by_hand.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(change_prior(log_p, old, new)), by_hand, rtol=1e-11)


@given(seeds)
def test_there_and_back_again_changes_nothing(seed):
    log_p, old, new = drawn(seed)
    again = change_prior(change_prior(log_p, old, new), new, old)
    np.testing.assert_allclose(again, log_p, rtol=1e-11, atol=1e-13)


def test_far_tails_keep_their_digits_under_other_priors():
    found = change_prior(np.array([[0.0, -800.0]]), np.array([0.5, 0.5]), np.array([0.9, 0.1]))
    assert found[0, 1] == pytest.approx(-800 - np.log(9), rel=1e-15)


# --- priors of a new population ------------------------------------------------------------------


@given(seeds)
def test_estimated_priors_are_the_most_likely_ones(seed):
    log_p, old, _ = drawn(seed)
    ratio = np.exp(log_p) / old

    def minus_likelihood(free):
        prior = np.exp(np.append(free, 0.0))
        return -np.log(ratio @ (prior / prior.sum())).sum()

    theirs = minimize(
        minus_likelihood,
        np.zeros(2),
        method="Nelder-Mead",
        options={"fatol": 1e-11, "xatol": 1e-9, "maxiter": 4000},
    )
    found = estimated_prior(log_p, old)
    assert found.converged
    likelihood = np.log(ratio @ found.prior).sum()
    assert likelihood >= -theirs.fun - 1e-8
    assert found.statistic == pytest.approx(2 * likelihood, abs=1e-8)
    assert found.p_value == pytest.approx(chi2.sf(found.statistic, 2), rel=1e-9)


def test_a_step_of_em_is_that_of_saerens():
    log_p, old, _ = drawn(1)
    once = np.exp(log_p).mean(axis=0)
    with pytest.warns(NotConvergedWarning, match="stopped after 1 steps"):
        found = estimated_prior(log_p, old, max_iter=1)
    np.testing.assert_allclose(found.prior, once, rtol=1e-12)


def test_a_shift_of_the_classes_is_found_and_no_shift_is_not():
    rng = np.random.default_rng(0)

    def rows(sizes):
        y = np.repeat([0, 1, 2], sizes)
        return rng.standard_normal((len(y), 2)) + 2.0 * np.eye(3)[y][:, :2], y

    model = Decision(LDA()).fit(*rows([2000, 2000, 2000]))
    moved = model.estimate_prior(rows([2000, 700, 300])[0])
    assert np.abs(moved.prior - [2 / 3, 7 / 30, 0.1]).max() < 0.05 and moved.p_value < 1e-6
    assert model.estimate_prior(rows([1000, 1000, 1000])[0]).p_value > 0.01


@given(seeds)
def test_a_whole_weight_is_a_repeated_row_for_estimated_priors(seed):
    log_p, old, _ = drawn(seed, rows=50)
    weight = np.random.default_rng(seed).integers(0, 4, 50)
    weighed = estimated_prior(log_p, old, sample_weight=weight.astype(float))
    repeated = estimated_prior(np.repeat(log_p, weight, axis=0), old)
    np.testing.assert_allclose(weighed.prior, repeated.prior, atol=1e-6)


# --- fusion --------------------------------------------------------------------------------------


@given(seeds, st.integers(1, 4))
def test_sources_are_fused_by_their_product_over_the_prior(seed, count):
    sources = [drawn(seed + 1000 * i)[0] for i in range(count)]
    prior = drawn(seed)[1]
    by_hand = np.prod([np.exp(log_p) for log_p in sources], axis=0) / prior ** (count - 1)
    by_hand /= by_hand.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(fuse_posteriors(sources, prior)), by_hand, rtol=1e-9)


def test_a_source_that_knows_only_the_prior_adds_nothing():
    log_p, prior, _ = drawn(0)
    ignorant = np.tile(np.log(prior), (len(log_p), 1))
    np.testing.assert_allclose(fuse_posteriors([log_p, ignorant], prior), log_p, atol=1e-12)


def blocks(model):
    """The posterior of the joint model whose covariances are the blocks of two, by hand."""
    joint = type(model)().fit(X, SPECIES)
    covariance = np.array(joint.covariance_)
    covariance[..., :2, 2:] = covariance[..., 2:, :2] = 0.0
    each = np.broadcast_to(covariance, (3, 4, 4))
    metrics = tuple(factorise(np.array(one))[0] for one in each)
    return log_posterior(
        quadratic_rule(joint.moments_, metrics=metrics, prior=joint.prior_).scores(X)
    )


@pytest.mark.parametrize("model", [LDA(), QDA()], ids=repr)
def test_fusion_of_gaussian_blocks_is_the_joint_model_of_independent_blocks(model):
    fusion = Fusion([("sepal", model, SEPAL), ("petal", model, PETAL)]).fit(X, SPECIES)
    np.testing.assert_allclose(fusion.predict_log_proba(X), blocks(model), rtol=1e-9, atol=1e-10)


def test_fusion_of_single_columns_is_naive_bayes():
    fusion = Fusion([(f"x{j}", QDA(denominator="ml"), [j]) for j in range(4)]).fit(X, SPECIES)
    theirs = GaussianNB(var_smoothing=0.0).fit(X, SPECIES)
    np.testing.assert_allclose(fusion.predict_proba(X), theirs.predict_proba(X), atol=1e-10)


def test_priors_of_a_fusion_can_be_changed_after_the_fit():
    members = [("sepal", LDA(), SEPAL), ("petal", QDA(), PETAL)]
    fusion = Fusion(members).fit(X, SPECIES)
    before = fusion.predict_log_proba(X)
    after = fusion.set_params(prior=PRIOR).predict_log_proba(X)
    np.testing.assert_allclose(after, change_prior(before, np.full(3, 1 / 3), PRIOR), atol=1e-10)


def test_sources_with_priors_of_their_own_are_brought_to_one():
    plain = Fusion([("sepal", LDA(), SEPAL), ("petal", LDA(), PETAL)]).fit(X, SPECIES)
    mixed = Fusion([("sepal", LDA(prior=PRIOR), SEPAL), ("petal", LDA(), PETAL)]).fit(X, SPECIES)
    np.testing.assert_allclose(mixed.predict_proba(X), plain.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize(
    "columns",
    [
        (["sepal length", "sepal width"], ["petal length", "petal width"]),
        (slice(2), slice(2, 4)),
        ([True, True, False, False], [-2, -1]),
    ],
)
def test_columns_are_given_by_names_places_slices_or_masks(columns):
    frame = pd.DataFrame(X, columns=NAMES)
    fusion = Fusion([("a", LDA(), columns[0]), ("b", LDA(), columns[1])]).fit(frame, SPECIES)
    plain = Fusion([("a", LDA(), SEPAL), ("b", LDA(), PETAL)]).fit(X, SPECIES)
    found = fusion.predict_proba(frame[NAMES[::-1]])
    np.testing.assert_allclose(found, plain.predict_proba(X), atol=1e-12)


def test_text_and_numbers_are_fused():
    frame = pd.DataFrame(
        {"size": np.r_[0.0, 1, 2, 10, 11, 12], "note": ["a b", "b a", "a", "c d", "d", "c"]}
    )
    words = make_pipeline(
        FunctionTransformer(np.ravel), CountVectorizer(token_pattern=r"\w"), MultinomialNB()
    )
    y = list("uuuvvv")
    fusion = Fusion([("size", LDA(), ["size"]), ("words", words, ["note"])]).fit(frame, y)
    assert fusion.predict(frame).tolist() == y


def test_a_fusion_can_be_decided_upon():
    fusion = Fusion([("sepal", LDA(), SEPAL), ("petal", LDA(), PETAL)])
    model = Decision(fusion, prior=PRIOR).fit(X, SPECIES)
    again = fusion.set_params(prior=PRIOR).fit(X, SPECIES)
    np.testing.assert_allclose(model.predict_proba(X), again.predict_proba(X), atol=1e-12)


def test_options_of_a_source_are_set_by_its_name():
    fusion = Fusion([("sepal", LDA(), SEPAL), ("petal", LDA(), PETAL)])
    fusion.set_params(petal__shrinkage=0.5, sepal=QDA())
    same = Fusion([("sepal", QDA(), SEPAL), ("petal", LDA(shrinkage=0.5), PETAL)])
    assert fusion.get_params()["petal__shrinkage"] == 0.5
    found = fusion.fit(X, SPECIES).predict_proba(X)
    np.testing.assert_array_equal(found, same.fit(X, SPECIES).predict_proba(X))


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "error", "said"),
    [
        ([], FusionError, r"list of \(name, classifier, columns\)"),
        ([("a", LDA())], FusionError, r"list of \(name, classifier, columns\)"),
        ([("a", LDA(), [0]), ("a", LDA(), [1])], FusionError, r"each name once"),
        ([("a", LDA(), [0, 7])], FusionError, r"4 feature\(s\), but columns=\[0, 7\] of 'a'"),
        ([("a", LDA(), ["petal"])], FusionError, r"columns=\['petal'\] of 'a'"),
        ([("a", LDA(), [])], FusionError, r"of 'a' are not among them, or are empty"),
        (
            [("a", LinearSVC(), [0])],
            PosteriorError,
            r"'a' is LinearSVC.*Calibrated\(LinearSVC",
        ),
    ],
)
def test_sources_that_cannot_be_fused_are_named(members, error, said):
    with pytest.raises(error, match=said):
        Fusion(members).fit(X, SPECIES)


def test_columns_that_count_twice_are_told():
    with pytest.warns(SharedColumnsWarning, match="'x1' belong to more than one source"):
        Fusion([("a", LDA(), [0, 1]), ("b", LDA(), [1, 2])]).fit(X, SPECIES)


def test_sources_that_leave_no_class_are_told():
    y = np.repeat([0, 1], 10)
    rows = np.column_stack([y, y]).astype(float)
    tree = DecisionTreeClassifier()
    fusion = Fusion([("left", tree, [0]), ("right", tree, [1])]).fit(rows, y)
    with pytest.raises(PosteriorError, match=r"row 1 .* by one of 'left', 'right'"):
        fusion.predict([[0.0, 0.0], [0.0, 1.0]])


def test_missing_columns_and_wrong_widths_are_named():
    fusion = Fusion([("a", LDA(), SEPAL), ("b", LDA(), PETAL)])
    frame = pd.DataFrame(X, columns=NAMES)
    with pytest.raises(ColumnNamesError, match="petal width"):
        fusion.fit(frame, SPECIES).predict(frame[NAMES[:3]])
    with pytest.raises(ShapeError, match="3 features, but Fusion is expecting 4"):
        fusion.fit(X, SPECIES).predict(X[:, :3])


def test_priors_of_a_fusion_are_checked():
    fusion = Fusion([("a", LDA(), SEPAL)], prior=[0.5, 0.5]).fit(X, SPECIES)
    with pytest.raises(PriorError, match="2 entries for 3 classes"):
        fusion.predict(X)


def test_a_source_without_weights_refuses_them():
    from sklearn.neighbors import KNeighborsClassifier

    members = [("a", LogisticRegression(), SEPAL), ("b", KNeighborsClassifier(), PETAL)]
    with pytest.raises(WeightError, match="KNeighborsClassifier does not support sample_weight"):
        Fusion(members).fit(X, SPECIES, sample_weight=np.ones(150))
