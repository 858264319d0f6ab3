"""Fisher's discriminant: against R's MASS, published tables, plain formulas, and its own laws."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import assume, given, strategies as st
from packaging.version import Version
from scipy.linalg import eigh, subspace_angles
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from discriminant import LDA, Fisher, moments
from discriminant.errors import (
    CollinearWarning,
    ConstantColumnWarning,
    NotConvergedWarning,
    OptionError,
    SeparatingColumnWarning,
    ShrinkageChosenWarning,
    TooFewRowsError,
)
from discriminant.models.gaussian.family import GaussianFamily, pooled_metric
from discriminant.models.gaussian.fisher import best_trace_ratio
from tests.shared.blocks import random_rows, rows_of
from tests.shared.paths import GOLDEN

MASS = json.loads((GOLDEN / "mass.json").read_text())["sets"]
SETS = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer}
DENOMINATORS = {"moment": "unbiased", "mle": "ml"}
ANSWERS = [(s, m, a) for s in SETS for m in DENOMINATORS for a in ("default", "prior_at_fit")]


def bundled(name):
    X, y = SETS[name](return_X_y=True)
    return X[:, :10] if name == "breast_cancer" else X, y


def fitted_as(name, method, answer, **options):
    prior = MASS[name]["prior"] if answer == "prior_at_fit" else None
    return Fisher(prior=prior, denominator=DENOMINATORS[method], **options).fit(*bundled(name))


def scatters(X, y):
    """S_w and S_b, written out."""
    groups = [X[y == label] for label in np.unique(y)]
    centred = np.vstack([g - g.mean(axis=0) for g in groups])
    apart = np.vstack([np.sqrt(len(g)) * (g.mean(axis=0) - X.mean(axis=0)) for g in groups])
    return centred.T @ centred, apart.T @ apart


def problem(seed, **shape):
    rows = random_rows(seed, **shape)
    return rows.features, rows.y


def enough():
    """Tables whose within-class scatter has an inverse."""
    return rows_of(least=30, most=60, classes=(2, 4), weighted=False)


# --- as R's MASS has it --------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "method", "answer"), ANSWERS)
def test_scalings_are_those_of_mass_up_to_sign(name, method, answer):
    theirs = np.array(MASS[name]["lda"][method][answer]["scaling"])
    ours = fitted_as(name, method, answer).scalings_
    ours = ours * np.sign((ours * theirs).sum(axis=0))
    assert np.abs(ours / theirs - 1).max() < 1e-10


@pytest.mark.parametrize(("name", "method", "answer"), ANSWERS)
def test_eigenvalues_are_the_squares_of_mass_svd_times_its_degrees(name, method, answer):
    theirs = np.array(MASS[name]["lda"][method][answer]["svd"])
    n, K = len(bundled(name)[1]), len(MASS[name]["prior"])
    degrees = (n - K) / (K - 1) if method == "moment" else n / K
    ours = np.sqrt(fitted_as(name, method, answer).eigenvalues_ * degrees)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)


@pytest.mark.parametrize(("name", "method", "answer"), ANSWERS)
def test_posteriors_of_all_directions_are_those_of_mass(name, method, answer):
    theirs = MASS[name]["lda"][method][answer]["posterior"]
    ours = fitted_as(name, method, answer).predict_proba(bundled(name)[0])[MASS[name]["rows"]]
    np.testing.assert_allclose(ours, theirs, atol=1e-10)


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize(("name", "method", "answer"), [a for a in ANSWERS if a[0] in "iris wine"])
def test_reduced_rank_posteriors_are_those_of_mass(name, method, answer, dimension):
    theirs = MASS[name]["lda"][method][answer][f"dimen_{dimension}"]
    model = fitted_as(name, method, answer, n_components=dimension)
    ours = model.predict_proba(bundled(name)[0])[MASS[name]["rows"]]
    np.testing.assert_allclose(ours, theirs["posterior"], atol=1e-10)


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer"])
def test_a_prior_at_prediction_does_what_it_does_in_mass(name):
    theirs = MASS[name]["lda"]["moment"]["prior_at_predict"]["posterior"]
    model = fitted_as(name, "moment", "default")
    ours = model.predict_proba(bundled(name)[0], prior=MASS[name]["prior"])[MASS[name]["rows"]]
    np.testing.assert_allclose(ours, theirs, atol=1e-10)


# --- as published --------------------------------------------------------------------------------


def test_iris_has_the_canonical_correlations_that_sas_prints():
    model = Fisher().fit(*bundled("iris"))
    np.testing.assert_allclose(model.canonical_correlations_, [0.984821, 0.471197], atol=5e-7)


def test_iris_has_the_wilks_lambda_that_sas_prints():
    model = Fisher().fit(*bundled("iris"))
    assert np.prod(1 / (1 + model.eigenvalues_)) == pytest.approx(0.02343863, abs=5e-9)


def test_the_first_share_of_iris_is_the_proportion_of_trace_that_mass_prints():
    shares = Fisher(n_components=1).fit(*bundled("iris")).explained_variance_ratio_
    np.testing.assert_allclose(shares, [0.9912126049653672], rtol=1e-12)


def test_setosa_and_versicolor_give_the_compound_of_fisher_1936():
    X, y = bundled("iris")
    slope = Fisher().fit(X[y < 2], y[y < 2]).scalings_[:, 0]
    np.testing.assert_allclose(slope / slope[0], [1, 5.9037, -7.1299, -10.1036], atol=2e-4)


def test_sepals_of_the_uci_iris_give_the_direction_of_zaki_and_meira(shared_data):
    table = pd.read_csv(shared_data / "iris" / "iris_uci.csv")
    y = np.where(table["Species"].str.contains("setosa"), "setosa", "others")
    slope = Fisher().fit(table.iloc[:, :2].to_numpy(), y).scalings_[:, 0]
    np.testing.assert_allclose(-slope / np.linalg.norm(slope), [0.551, -0.834], atol=5e-4)


def test_reduced_rank_errors_on_vowels_are_those_of_mass(shared_data):
    folder = shared_data / "esl_vowel"
    train, test = (pd.read_csv(folder / f"vowel_{part}.csv") for part in ("train", "test"))
    table = json.loads((folder / "reference.json").read_text())["reduced_rank_lda"]["rows"]
    found = []
    for dimension, _, _ in table:
        model = Fisher(n_components=dimension).fit(train.iloc[:, 1:], train["y"])
        errors = [(model.predict(part.iloc[:, 1:]) != part["y"]).mean() for part in (train, test)]
        found.append([dimension, *errors])
    np.testing.assert_allclose(found, table, rtol=1e-12)


# --- what a direction is -------------------------------------------------------------------------


@given(enough())
def test_directions_solve_the_generalised_eigenproblem(rows):
    within, between = scatters(rows.features, rows.y)
    model = Fisher().fit(rows.features, rows.y)
    expected = eigh(between, within, eigvals_only=True)[::-1][: len(model.eigenvalues_)]
    np.testing.assert_allclose(model.eigenvalues_, expected, rtol=1e-9, atol=1e-12)


@given(enough(), st.sampled_from(["ratio_trace", "trace_ratio", "mean_difference"]))
def test_projected_rows_have_identity_covariance_within_and_eigenvalues_between(rows, how):
    options = {"method": how} if how == "mean_difference" else {"criterion": how}
    model = Fisher(**options).fit(rows.features, rows.y)
    within, between = scatters(model.transform(rows.features), rows.y)
    degrees = len(rows) - len(model.classes_)
    expected = np.hstack([np.eye(len(model.eigenvalues_)), np.diag(model.eigenvalues_)])
    found = np.hstack([within, between]) / degrees
    np.testing.assert_allclose(found, expected, atol=1e-9 * (1 + model.eigenvalues_[0]))


@given(enough())
def test_two_classes_are_told_apart_along_the_inverse_scatter_times_the_mean_difference(rows):
    y = np.where(rows.codes == 0, "first", "second")
    within, _ = scatters(rows.features, y)
    means = [rows.features[y == label].mean(axis=0) for label in ("first", "second")]
    expected = np.linalg.solve(within, means[1] - means[0])
    found = Fisher().fit(rows.features, y).scalings_[:, 0]
    np.testing.assert_allclose(found * (expected @ expected) / (found @ expected), expected)


@given(enough())
def test_least_squares_on_n_over_n1_and_minus_n_over_n2_has_the_same_direction(rows):
    first = rows.codes == 0
    n = len(rows)
    target = np.where(first, n / first.sum(), -n / (~first).sum())
    design = np.column_stack([rows.features - rows.features.mean(axis=0), np.ones(n)])
    slope = np.linalg.lstsq(design, target, rcond=None)[0][:-1]
    found = Fisher().fit(rows.features, first).scalings_[:, 0]
    assert 1 - abs(slope @ found) / np.linalg.norm(slope) / np.linalg.norm(found) <= 1e-12


@pytest.mark.parametrize("name", list(SETS))
def test_transform_is_that_of_scikit_learn_up_to_sign(name):
    X, y = bundled(name)
    theirs = LinearDiscriminantAnalysis().fit(X, y).transform(X)
    denominator = "ml" if Version(sklearn.__version__) >= Version("1.9") else "unbiased"
    ours = Fisher(denominator=denominator).fit(X, y).transform(X)
    ours *= np.sign((ours * theirs).sum(axis=0))
    np.testing.assert_allclose(ours, theirs, atol=1e-10)


@pytest.mark.parametrize("options", [{}, {"shrinkage": 1.0}, {"shrinkage": "auto"}])
def test_lda_projects_on_the_same_directions(options):
    X, y = bundled("wine")
    found = LDA(**options).fit_transform(X, y)
    np.testing.assert_allclose(found, Fisher(**options).fit_transform(X, y), atol=1e-10)


@pytest.mark.parametrize("options", [{}, {"shrinkage": 0.4}, {"shrinkage": 1.0}])
def test_all_directions_together_are_lda(options):
    X, y = bundled("wine")
    expected = LDA(**options).fit(X, y).predict_log_proba(X)
    np.testing.assert_allclose(
        Fisher(**options).fit(X, y).predict_log_proba(X), expected, atol=1e-9
    )


@given(enough(), st.integers(0, 999))
def test_an_affine_map_of_the_features_changes_no_projection_not_even_its_sign(rows, seed):
    rng = np.random.default_rng(seed)
    d = rows.features.shape[1]
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0] * 10.0 ** rng.integers(-3, 4, d)
    shift = 100 * rng.standard_normal(d)
    expected = Fisher(n_components=1).fit_transform(rows.features, rows.y)
    found = Fisher(n_components=1).fit_transform(rows.features @ turn + shift, rows.y)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@given(enough(), st.randoms(use_true_random=False))
def test_permuted_features_permute_the_scalings(rows, random):
    order = list(range(rows.features.shape[1]))
    random.shuffle(order)
    expected = Fisher().fit(rows.features, rows.y).scalings_[order]
    found = Fisher().fit(rows.features[:, order], rows.y).scalings_
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


@given(enough(), st.integers(1, 3))
def test_whole_weights_are_repeated_rows(rows, most):
    counts = np.random.default_rng(most).integers(1, most + 1, len(rows))
    weighted = Fisher().fit(rows.features, rows.y, sample_weight=counts)
    repeated = Fisher().fit(np.repeat(rows.features, counts, axis=0), np.repeat(rows.y, counts))
    np.testing.assert_allclose(weighted.eigenvalues_, repeated.eigenvalues_, rtol=1e-9, atol=1e-12)


def test_adding_and_forgetting_rows_leaves_the_directions():
    X, y = bundled("wine")
    model = Fisher().partial_fit(X[::2], y[::2]).partial_fit(X[1::2], y[1::2])
    model.partial_fit(X[:20] + 1, y[:20]).forget(X[:20] + 1, y[:20])
    np.testing.assert_allclose(model.scalings_, Fisher().fit(X, y).scalings_, rtol=1e-8)


def test_a_far_origin_costs_no_digit_of_the_projection():
    X, y = bundled("iris")
    near = np.round(X * 64) / 64  # so that adding 2^27 is exact
    expected = Fisher().fit_transform(near, y)
    np.testing.assert_allclose(Fisher().fit_transform(near + 2.0**27, y), expected, atol=1e-11)


def test_extreme_units_change_no_projection():
    X, y = bundled("iris")
    unit = np.array([2.0**-900, 1.0, 2.0**900, 1.0])
    np.testing.assert_allclose(
        Fisher().fit_transform(X * unit, y), Fisher().fit_transform(X, y), atol=1e-9
    )


@pytest.mark.parametrize(
    "options", [{}, {"criterion": "trace_ratio"}, {"method": "mean_difference"}]
)
def test_units_that_no_double_can_compare_leave_finite_answers(options):
    X, y = bundled("iris")
    model = Fisher(**options).fit(X * [1e-200, 1.0, 1e200, 1.0], y)
    answers = [
        model.scalings_.ravel(),
        model.eigenvalues_,
        [model.ratio_trace_, model.trace_ratio_],
    ]
    assert np.isfinite(np.concatenate(answers)).all()


# --- the two criteria ----------------------------------------------------------------------------


def orthonormal_ratio(directions, within, between):
    W = np.linalg.qr(directions)[0]
    return np.trace(W.T @ between @ W) / np.trace(W.T @ within @ W)


def many_classes(seed):
    rng = np.random.default_rng(seed)
    return problem(seed, n=80, width=int(rng.integers(3, 8)), classes=int(rng.integers(3, 6)))


@pytest.mark.parametrize("seed", range(60))
def test_the_true_trace_ratio_is_never_below_that_of_the_ratio_trace(seed):
    X, y = many_classes(seed)
    within, between = scatters(X, y)
    closed, true = (
        orthonormal_ratio(Fisher(2, criterion=c).fit(X, y).scalings_, within, between)
        for c in ("ratio_trace", "trace_ratio")
    )
    assert true >= closed * (1 - 1e-12)


@pytest.mark.parametrize("seed", range(60))
def test_trace_ratio_directions_span_the_top_eigenvectors_of_their_own_problem(seed):
    X, y = many_classes(seed)
    within, between = scatters(X, y)
    found = Fisher(2, criterion="trace_ratio").fit(X, y).scalings_
    ratio = orthonormal_ratio(found, within, between)
    top = eigh(between - ratio * within)[1][:, -2:]
    assert subspace_angles(found, top).max() < 1e-6


@pytest.mark.parametrize("criterion", ["ratio_trace", "trace_ratio"])
@pytest.mark.parametrize("method", ["fisher", "mean_difference"])
def test_both_criterion_values_are_those_of_the_scatters(criterion, method):
    X, y = many_classes(1)
    within, between = scatters(X, y)
    model = Fisher(2, criterion=criterion, method=method).fit(X, y)
    W = model.scalings_
    ratio_trace = np.trace(np.linalg.solve(W.T @ within @ W, W.T @ between @ W))
    expected = ratio_trace, orthonormal_ratio(W, within, between)
    np.testing.assert_allclose([model.ratio_trace_, model.trace_ratio_], expected, rtol=1e-10)


def test_no_random_plane_has_a_larger_trace_ratio():
    X, y = many_classes(7)
    within, between = scatters(X, y)
    best = Fisher(2, criterion="trace_ratio").fit(X, y).criterion_value_
    planes = np.random.default_rng(0).standard_normal((5000, X.shape[1], 2))
    assert best >= max(orthonormal_ratio(plane, within, between) for plane in planes)


def test_with_one_direction_both_criteria_agree():
    X, y = many_classes(3)
    true = Fisher(1, criterion="trace_ratio").fit(X, y)
    assert true.criterion_value_ == pytest.approx(Fisher(1).fit(X, y).criterion_value_, rel=1e-12)


def test_the_trace_ratio_of_one_direction_is_its_eigenvalue_in_any_units():
    X, y = bundled("iris")
    model = Fisher(1, method="mean_difference").fit(X * [1e-200, 1.0, 1e200, 1.0], y)
    assert model.trace_ratio_ == pytest.approx(model.ratio_trace_, rel=1e-12)


def test_an_iteration_that_is_cut_short_says_so():
    rng = np.random.default_rng(0)
    with pytest.warns(NotConvergedWarning, match=r"trace ratio stopped after 1 steps"):
        best_trace_ratio(rng.standard_normal((4, 5)), within=np.eye(5), components=2, steps=1)


# --- the mean difference -------------------------------------------------------------------------


@given(enough())
def test_the_mean_difference_ignores_the_spread(rows):
    y = rows.codes > 0
    model = Fisher(method="mean_difference").fit(rows.features, y)
    difference = rows.features[y].mean(axis=0) - rows.features[~y].mean(axis=0)
    found = model.scalings_[:, 0]
    np.testing.assert_allclose(
        found / np.linalg.norm(found), difference / np.linalg.norm(difference), atol=1e-10
    )


def test_the_mean_difference_needs_no_inverse():
    X, y = problem(0, n=12, width=40, classes=2, spread=3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Fisher(method="mean_difference").fit(X, y).score(X, y) == 1.0


# --- the threshold -------------------------------------------------------------------------------


def lopsided(seed=0):
    """Two classes of different size and spread."""
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(0, 1, (60, 2)), rng.normal([3, 1], [3, 2], (20, 2))])
    return X, np.repeat(["narrow", "wide"], [60, 20])


def test_midpoint_lies_half_way_between_the_projected_means():
    X, y = lopsided()
    model = Fisher(threshold="midpoint").fit(X, y)
    z = model.transform(X)[:, 0]
    assert model.threshold_ == pytest.approx((z[y == "narrow"].mean() + z[y == "wide"].mean()) / 2)


def test_at_equal_error_both_gaussian_tails_weigh_the_same():
    X, y = lopsided()
    model = Fisher(threshold="equal_error").fit(X, y)
    z = model.transform(X)[:, 0]
    narrow, wide = (norm(z[y == c].mean(), z[y == c].std(ddof=1)) for c in ("narrow", "wide"))
    assert narrow.sf(model.threshold_) == pytest.approx(wide.cdf(model.threshold_), rel=1e-10)


def test_the_gaussian_threshold_is_that_of_lda():
    X, y = lopsided()
    np.testing.assert_allclose(
        Fisher().fit(X, y).decision_function(X), LDA().fit(X, y).decision_function(X), atol=1e-10
    )


@given(
    enough(),
    st.sampled_from(["gaussian", "midpoint", "equal_error"]),
    st.sampled_from(["fisher", "mean_difference"]),
)
def test_two_classes_are_parted_at_the_threshold_and_scores_agree(rows, threshold, method):
    y = rows.codes > 0
    assume(2 <= y.sum() <= len(y) - 2)
    model = Fisher(threshold=threshold, method=method).fit(rows.features, y)
    above = model.transform(rows.features)[:, 0] > model.threshold_
    ways = [
        model.predict(rows.features),
        model.decision_function(rows.features) > 0,
        model.predict_proba(rows.features)[:, 1] > 0.5,
    ]
    assert np.array_equal(ways, [above] * 3)


def test_midpoint_with_many_classes_is_the_nearest_projected_mean():
    X, y = bundled("wine")
    model = Fisher(threshold="midpoint").fit(X, y)
    z = model.transform(X)
    means = np.array([z[y == k].mean(axis=0) for k in range(3)])
    nearest = ((z[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert np.array_equal(model.predict(X), nearest)


def test_a_prior_at_prediction_replaces_the_equal_one_of_the_midpoint():
    X, y = lopsided()
    prior = [0.9, 0.1]
    found = Fisher(threshold="midpoint").fit(X, y).predict_proba(X, prior=prior)
    np.testing.assert_allclose(found, LDA(prior=prior).fit(X, y).predict_proba(X), atol=1e-10)


# --- no inverse ----------------------------------------------------------------------------------


def test_a_constant_column_is_named_and_counts_for_nothing():
    X, y = bundled("iris")
    with pytest.warns(ConstantColumnWarning, match="'x4'"):
        model = Fisher().fit(np.column_stack([X, np.full(len(X), 7.0)]), y)
    np.testing.assert_allclose(model.scalings_[4], 0.0)


def test_a_repeated_column_changes_no_posterior():
    X, y = bundled("iris")
    twice = np.column_stack([X, X[:, 0] + 2 * X[:, 1]])
    with pytest.warns(CollinearWarning, match=r"rank 4 of 5"):
        model = Fisher().fit(twice, y)
    np.testing.assert_allclose(
        model.predict_proba(twice), Fisher().fit(X, y).predict_proba(X), atol=1e-10
    )


def test_more_features_than_rows_are_shrunk_aloud_and_projected():
    X, y = problem(2, n=20, width=60, classes=3, spread=3.0)
    with pytest.warns(ShrinkageChosenWarning, match="60 features"):
        model = Fisher().fit(X, y)
    assert model.transform(X).shape == (20, 2)


@pytest.mark.parametrize("options", [{}, {"shrinkage": 0.3}, {"shrinkage": "oas"}])
def test_rows_kept_whole_and_their_products_give_the_same_projection(options):
    X, y = problem(3, n=30, width=520, classes=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShrinkageChosenWarning)
        kept = Fisher(**options).fit(X, y)
        summed = Fisher(**options).fit_moments(moments(X, y, detail="pooled"))
    np.testing.assert_allclose(kept.transform(X), summed.transform(X), atol=1e-9)


def test_more_features_than_rows_have_a_trace_ratio():
    X, y = problem(2, n=20, width=60, classes=3, spread=3.0)
    with pytest.warns(ShrinkageChosenWarning):
        closed, true = Fisher().fit(X, y), Fisher(criterion="trace_ratio").fit(X, y)
    assert true.trace_ratio_ > closed.trace_ratio_


def test_a_column_that_varies_only_between_classes_decides():
    X, y = problem(5, n=40, width=3, classes=2, spread=0.0)
    with pytest.warns(SeparatingColumnWarning, match="'x3'"):
        model = Fisher().fit(np.column_stack([X, y == "birch"]).astype(float), y)
    assert model.score(np.column_stack([X, y == "birch"]).astype(float), y) == 1.0


def test_means_on_a_line_leave_one_direction():
    noise = np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    X = np.vstack([noise + np.array([4 * k, 8 * k]) for k in range(3)])
    assert Fisher().fit_transform(X, np.repeat([0, 1, 2], 4)).shape == (12, 1)


def test_a_covariance_comes_back_from_its_metric_whatever_the_units():
    X, y = problem(4, n=50, width=3, classes=2)
    X = X * [1e-12, 1.0, 1e12]
    found = pooled_metric(moments(X, y), GaussianFamily()).covariance()
    np.testing.assert_allclose(found, scatters(X, y)[0] / (len(y) - 2), rtol=1e-10)


# --- asking for what cannot be -------------------------------------------------------------------


@pytest.mark.parametrize("components", [0, 3, 1.5, True, "all"])
def test_a_number_of_directions_that_cannot_be_is_told_the_range(components):
    with pytest.raises(OptionError, match=r"from 1 to 2 \(3 classes, 4 features\)"):
        Fisher(n_components=components).fit(*bundled("iris"))


@pytest.mark.parametrize("option", ["criterion", "method", "threshold"])
def test_a_word_that_is_no_option_is_told_which_are(option):
    with pytest.raises(OptionError, match=f"{option}='best' is not valid: it must be one of"):
        Fisher(**{option: "best"}).fit(*bundled("iris"))


def test_equal_error_is_for_two_classes():
    with pytest.raises(OptionError, match="with 3 classes: it takes two"):
        Fisher(threshold="equal_error").fit(*bundled("iris"))


def test_equal_error_needs_a_spread_in_each_class():
    with pytest.raises(TooFewRowsError, match="Class 'b' has 1 row"):
        Fisher(threshold="equal_error").fit([[0.0], [1.0], [3.0]], ["a", "a", "b"])


# --- as a transformer ----------------------------------------------------------------------------


def test_projected_columns_are_named_after_the_class():
    assert Fisher().fit(*bundled("iris")).get_feature_names_out().tolist() == ["fisher0", "fisher1"]


def test_set_output_gives_a_frame_with_the_index_of_the_rows():
    X, y = bundled("iris")
    frame = pd.DataFrame(X, index=np.arange(100, 250))
    out = Fisher().set_output(transform="pandas").fit_transform(frame, y)
    assert (out.columns.tolist(), out.index[0]) == (["fisher0", "fisher1"], 100)


def test_the_transform_is_the_rows_from_the_centre_times_the_scalings():
    X, y = bundled("wine")
    model = Fisher(prior=[0.2, 0.3, 0.5]).fit(X, y)
    centre = np.array([0.2, 0.3, 0.5]) @ [X[y == k].mean(axis=0) for k in range(3)]
    np.testing.assert_allclose(model.transform(X), (X - centre) @ model.scalings_, atol=1e-9)
