"""Least squares: laws, other people's numbers, and what must be said aloud."""

import json
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy import sparse
from scipy.spatial import ConvexHull
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import Ridge

import discriminant
from discriminant import LDA, LeastSquares, LinearRegression, cross_validate, leave_one_out
from discriminant.errors import (
    CollinearWarning,
    ConstantColumnWarning,
    MaskedClassWarning,
    MomentsMismatchError,
    OptionError,
    PrecisionLostError,
    ResponseError,
    ShapeError,
)
from discriminant.moments.loss_gradient_sums import add_double_double, exact_product, sum_pairs
from discriminant.table.basis import PolynomialBasis
from discriminant.table.blocks import Block
from tests.shared.blocks import random_rows
from tests.shared.paths import GOLDEN

DIABETES = json.loads((GOLDEN / "sklearn.json").read_text())["diabetes"]
PRECISIONS = ("auto", "standard", "high")

# Classes of random rows may well be masked; where that matters a test asks for the warning.
pytestmark = pytest.mark.filterwarnings("ignore::discriminant.errors.MaskedClassWarning")


def regression_rows(seed, n=40, width=3, responses=1, mean=0.0):
    rng = np.random.default_rng(seed)
    X = mean + rng.standard_normal((n, width)) @ (np.eye(width) + 0.5)
    y = X @ rng.standard_normal((width, responses)) + rng.standard_normal((n, responses))
    return X, y[:, 0] if responses == 1 else y


def by_hand(X, y, weight=None):
    """Shortest solution of the centred rows, by NumPy's SVD."""
    w = np.ones(len(X)) if weight is None else weight
    mean, level = np.average(X, axis=0, weights=w), np.average(y, axis=0, weights=w)
    root = np.sqrt(w)[:, None]
    right = root * (y - level).reshape(len(X), -1)
    coef = np.linalg.lstsq(root * (X - mean), right, rcond=1e-10)[0].T
    return coef, level - coef @ mean


# --- linear regression: other people's numbers ----------------------------------------------------


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", DIABETES)
def test_diabetes_is_as_scikit_learn_has_it_with_ridge_for_alpha(name, precision):
    X, y = load_diabetes(return_X_y=True)
    golden = DIABETES[name]
    model = LinearRegression(ridge=golden.get("alpha", 0.0), precision=precision).fit(X, y)
    found = np.append(model.coef_, model.intercept_)
    np.testing.assert_allclose(found, [*golden["coef"], golden["intercept"]], rtol=1e-10)


@pytest.mark.parametrize("ridge", [0.0, 3.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_weights_and_several_responses_are_as_in_scikit_learn(ridge, intercept):
    X, y = regression_rows(1, responses=2)
    weight = np.random.default_rng(2).gamma(2.0, 0.5, len(X))
    ours = LinearRegression(ridge=ridge, fit_intercept=intercept).fit(X, y, weight)
    theirs = Ridge(ridge, fit_intercept=intercept, solver="svd").fit(X, y, weight)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_dependent_columns_get_the_shortest_coefficients_and_are_named(precision):
    X, y = regression_rows(3)
    X = np.column_stack([X, X[:, 0] + 2 * X[:, 1], 1e6 * X[:, 2]])
    with pytest.warns(CollinearWarning, match=r"'x0', 'x1'.*rank 3 of 5.*pass ridge > 0"):
        model = LinearRegression(precision=precision).fit(X, y)
    coef, intercept = by_hand(X, y)
    np.testing.assert_allclose(model.coef_, coef[0], rtol=1e-7, atol=1e-9)
    assert model.intercept_ == pytest.approx(intercept[0], abs=1e-9)


@pytest.mark.parametrize("width", [60, 700])
@pytest.mark.parametrize("ridge", [0.0, 2.0])
def test_more_features_than_rows_give_the_shortest_fit(width, ridge):
    X, y = regression_rows(4, n=30, width=width, responses=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollinearWarning)
        model = LinearRegression(ridge=ridge).fit(X, y)
    wanted = Ridge(ridge, solver="svd").fit(X, y).coef_ if ridge else by_hand(X, y)[0]
    np.testing.assert_allclose(model.coef_, wanted, atol=1e-10)


def test_a_constant_column_gets_zero_and_is_named():
    X, y = regression_rows(5)
    X[:, 1] = 0.1
    with pytest.warns(ConstantColumnWarning, match="'x1' carry no information about the response"):
        model = LinearRegression().fit(X, y)
    assert model.coef_[1] == 0.0


# --- linear regression: laws ----------------------------------------------------------------------


@given(seed=st.integers(0, 999), cut=st.integers(1, 39), weighted=st.booleans())
def test_rows_in_parts_give_the_fit_of_the_whole(seed, cut, weighted):
    X, y = regression_rows(seed)
    weight = np.random.default_rng(seed).gamma(2.0, 0.5, len(X)) if weighted else np.ones(len(X))
    coef, intercept = by_hand(X, y, weight)
    for precision in PRECISIONS:
        model = LinearRegression(precision=precision)
        for part in (slice(cut), slice(cut, None)):
            model.partial_fit(X[part], y[part], weight[part])
        np.testing.assert_allclose(model.coef_, coef[0], rtol=1e-9, atol=1e-11)
        assert model.intercept_ == pytest.approx(intercept[0], abs=1e-10)


@given(seed=st.integers(0, 999), away=st.sampled_from([0.0, 1e4, 1e8]))
def test_residuals_are_at_right_angles_to_every_column(seed, away):
    X, y = regression_rows(seed, mean=away)
    left = y - LinearRegression().fit(X, y).predict(X)
    centred = X - X.mean(axis=0)
    assert np.abs(np.append(centred.T @ left, left.sum())).max() < 1e-7 * np.abs(y).max()


def test_forgotten_rows_leave_no_trace():
    X, y = regression_rows(6)
    model = LinearRegression().fit(X, y).forget(X[:10], y[:10])
    np.testing.assert_allclose(model.coef_, by_hand(X[10:], y[10:])[0][0], rtol=1e-10)


def test_a_factor_cannot_forget_and_says_so():
    X, y = regression_rows(6)
    with pytest.raises(OptionError, match="precision='high'"):
        LinearRegression(precision="high").fit(X, y).forget(X[:10], y[:10])


def test_rows_are_not_added_to_a_wide_fit_that_kept_none():
    X, y = regression_rows(6, n=20, width=600)
    model = LinearRegression(ridge=1.0).fit(X, y)
    with pytest.raises(MomentsMismatchError, match="fit to 600 features"):
        model.partial_fit(X, y)


def test_moments_alone_are_enough():
    X, y = regression_rows(7, responses=2)
    found = discriminant.moments(np.hstack([X, y]), np.zeros(len(X)), detail="pooled")
    model = LinearRegression().fit_moments(found, responses=2)
    np.testing.assert_allclose(model.coef_, by_hand(X, y)[0], rtol=1e-10)


def test_feature_named_response_stays_a_feature():
    X, y = regression_rows(7)
    names = ["response rate", "response 7", "response time", "response 0"]
    frame = pd.DataFrame(np.column_stack([X, y]), columns=names)
    found = discriminant.moments(frame, np.zeros(len(X)), detail="pooled")
    np.testing.assert_allclose(
        LinearRegression().fit_moments(found).coef_, by_hand(X, y)[0][0], rtol=1e-10
    )


def test_high_precision_is_refused_where_there_are_only_moments():
    X, y = regression_rows(7)
    found = discriminant.moments(np.column_stack([X, y]), np.zeros(len(X)), detail="pooled")
    with pytest.raises(OptionError, match=r"precision='high'.*no rows"):
        LinearRegression(precision="high").fit_moments(found)


def test_high_precision_is_refused_once_rows_have_become_moments():
    X, y = regression_rows(7)
    model = LinearRegression().partial_fit(X[:20], y[:20]).set_params(precision="high")
    with pytest.raises(OptionError, match="only the moments of earlier rows"):
        model.partial_fit(X[20:], y[20:])


def test_rows_added_after_a_factor_was_given_up_count():
    X, y = regression_rows(7)
    model = LinearRegression(precision="high").partial_fit(X[:20], y[:20])
    model.set_params(precision="standard").partial_fit(X[20:], y[20:])
    np.testing.assert_allclose(model.coef_, by_hand(X, y)[0][0], rtol=1e-10)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("larger", [1e-200, 1e200])
def test_a_later_batch_may_be_of_quite_another_size(precision, larger):
    """Beside the larger rows the smaller ones are zeros, and rows of zeros are what they add."""
    X, y = regression_rows(6, n=80)
    size = np.where(np.arange(80) < 40, 1.0, larger)
    model = LinearRegression(precision=precision, fit_intercept=False)
    for part in (slice(40), slice(40, None)):
        model.partial_fit(X[part] * size[part, None], y[part] * size[part])
    alone = slice(40) if larger < 1 else slice(40, None)
    np.testing.assert_allclose(
        model.coef_, np.linalg.lstsq(X[alone], y[alone], rcond=None)[0], rtol=1e-9
    )


def test_rows_of_quite_another_size_are_forgotten():
    X, y = regression_rows(6, n=80)
    model = LinearRegression().partial_fit(X, y).partial_fit(1e200 * X, 1e200 * y)
    model.forget(X, y)
    np.testing.assert_allclose(model.coef_, by_hand(X, y)[0][0], rtol=1e-9)


def test_moments_of_classes_are_regressed_on_as_one_table():
    X, y = regression_rows(8)
    codes = np.arange(len(X)) % 3
    found = discriminant.moments(np.column_stack([X, y]), codes)
    np.testing.assert_allclose(
        LinearRegression().fit_moments(found, responses=1).coef_, by_hand(X, y)[0][0], rtol=1e-10
    )


def test_moments_of_classes_need_the_number_of_responses():
    X, _ = regression_rows(8)
    with pytest.raises(OptionError, match="3 classes"):
        LinearRegression().fit_moments(discriminant.moments(X, np.arange(len(X)) % 3))


def test_integer_weights_are_repeated_rows():
    X, y = regression_rows(9)
    times = np.arange(len(X)) % 4
    weighted = LinearRegression().fit(X, y, times)
    repeated = LinearRegression().fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-12)


def test_a_large_mean_costs_no_digit_of_the_slope():
    """Exact: y = 3 x at x = 1e8 + i, in integers."""
    x = 1e8 + np.arange(50.0)
    model = LinearRegression().fit(x[:, None], 3 * x)
    assert abs(model.coef_[0] - 3.0) < 1e-15 and abs(model.intercept_) < 1e-7


def test_the_unit_of_a_column_changes_no_fitted_value():
    X, y = regression_rows(10)
    unit = np.array([1e-250, 1.0, 1e250])
    plain, scaled = LinearRegression().fit(X, y), LinearRegression().fit(X * unit, y)
    np.testing.assert_allclose(scaled.predict(X * unit), plain.predict(X), rtol=1e-10)


@pytest.mark.parametrize("kind", [np.asfortranarray, sparse.csr_array, pd.DataFrame, np.float32])
def test_rows_of_any_kind_give_the_same_fit(kind):
    X, y = regression_rows(11)
    X = X.astype(np.float32).astype(np.float64)
    columns = kind(X)
    if kind is pd.DataFrame:
        columns.columns = list("abc")
    np.testing.assert_allclose(
        LinearRegression().fit(columns, y).predict(columns),
        by_hand(X, y)[0][0] @ X.T + by_hand(X, y)[1][0],
        rtol=1e-9,
        atol=1e-11,
    )


def test_a_removal_that_would_cost_all_digits_is_refused():
    X, y = regression_rows(12)
    X[0] = 1e12
    model = LinearRegression().partial_fit(X, y)
    with pytest.raises(PrecisionLostError):
        model.forget(X[:1], y[:1])


@pytest.mark.parametrize(
    ("y", "error", "words"),
    [
        ([1.0, np.nan, 2.0, 3.0], ResponseError, "NaN.*row 1"),
        ([1.0, 2.0, np.inf, 3.0], ResponseError, "infinity.*row 2"),
        (["a", "b", "c", "d"], ResponseError, "use a classifier"),
        ([1.0, 2.0], ShapeError, "y has 2 entries for 4 rows"),
        (np.zeros((4, 2, 2)), ResponseError, r"shape \(4, 2, 2\)"),
    ],
)
def test_bad_responses_are_named(y, error, words):
    with pytest.raises(error, match=words):
        LinearRegression().fit(np.eye(4), y)


@pytest.mark.parametrize("options", [{"ridge": -1.0}, {"ridge": "x"}, {"precision": "most"}])
def test_options_that_cannot_be_are_named(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        LinearRegression(**options).fit(np.eye(3), np.arange(3.0))


# --- numbers in pairs -----------------------------------------------------------------------------


@given(st.lists(st.floats(-1e50, 1e50).filter(lambda x: x == 0 or abs(x) > 1e-50), min_size=2))
def test_pairs_carry_products_and_sums_as_fractions_do(numbers):
    a, b = np.array(numbers[:-1]), np.array(numbers[1:])
    high, low = sum_pairs(exact_product(a, b))
    exact = sum(Fraction(x) * Fraction(y) for x, y in zip(a.tolist(), b.tolist(), strict=True))
    size = sum(abs(Fraction(x) * Fraction(y)) for x, y in zip(a.tolist(), b.tolist(), strict=True))
    assert abs(Fraction(float(high)) + Fraction(float(low)) - exact) <= size / 10**29


def test_a_pair_keeps_what_a_sum_would_drop():
    high, low = add_double_double((np.array(1e16), np.array(0.0)), (np.array(1.0), np.array(0.0)))
    assert float(high - 1e16) + float(low) == 1.0


# --- classes --------------------------------------------------------------------------------------


def indicator_by_hand(rows, weight=None):
    codes = np.eye(len(rows.labels))[rows.codes]
    return by_hand(rows.features, codes, weight)


@given(seed=st.integers(0, 999), classes=st.integers(2, 5), weighted=st.booleans())
def test_class_moments_give_the_regression_on_the_indicator_matrix(seed, classes, weighted):
    rows = random_rows(seed, n=60, classes=classes, weighted=weighted)
    model = LeastSquares().fit(rows.features, rows.y, rows.weight)
    coef, intercept = indicator_by_hand(rows, rows.weight)
    fitted = model.rule_.fitted(rows.features)
    np.testing.assert_allclose(fitted, rows.features @ coef.T + intercept, atol=1e-10)


@given(seed=st.integers(0, 999), ridge=st.sampled_from([0.0, 10.0]), degree=st.integers(1, 2))
def test_fitted_values_sum_to_one(seed, ridge, degree):
    rows = random_rows(seed, n=60)
    model = LeastSquares(ridge=ridge, degree=degree).fit(rows.features, rows.y)
    assert np.abs(model.rule_.fitted(rows.features).sum(axis=1) - 1.0).max() < 1e-11


@given(seed=st.integers(0, 999), classes=st.integers(2, 4))
def test_every_coding_decides_what_the_indicator_decides(seed, classes):
    rows = random_rows(seed, n=60, classes=classes)
    found = [
        LeastSquares(coding=coding).fit(rows.features, rows.y).predict(rows.features)
        for coding in ("indicator", "sign")
    ]
    assert (found[0] == found[1]).all()


@given(seed=st.integers(0, 999), coding=st.sampled_from(["indicator", "sign", "fisher"]))
def test_the_likeliest_class_is_the_one_predicted(seed, coding):
    rows = random_rows(seed, n=60, classes=2 if coding == "fisher" else 4, spread=4.0)
    model = LeastSquares(coding=coding).fit(rows.features, rows.y)
    shares = model.predict_proba(3.0 * rows.features)
    assert (model.classes_[shares.argmax(axis=1)] == model.predict(3.0 * rows.features)).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)


@given(seed=st.integers(0, 999), coding=st.sampled_from(["indicator", "sign", "fisher"]))
def test_with_two_classes_the_direction_is_fishers(seed, coding):
    rows = random_rows(seed, n=60, classes=2)
    ours = LeastSquares(coding=coding).fit(rows.features, rows.y).coef_[0]
    apart = [rows.features[rows.codes == k] for k in (0, 1)]
    within = sum((len(x) - 1) * np.cov(x.T) for x in apart)
    theirs = np.linalg.solve(within, apart[1].mean(axis=0) - apart[0].mean(axis=0))
    cosine = ours @ theirs / np.linalg.norm(ours) / np.linalg.norm(theirs)
    assert cosine == pytest.approx(1.0, abs=1e-12)


def test_fishers_coding_cuts_at_the_mean_of_all_rows():
    rows = random_rows(3, n=50, classes=2)
    model = LeastSquares(coding="fisher").fit(rows.features, rows.y)
    assert abs(model.decision_function(rows.features.mean(axis=0, keepdims=True))[0]) < 1e-12


def test_fishers_coding_is_for_two_classes():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(OptionError, match="there are 3 classes"):
        LeastSquares(coding="fisher").fit(X, y)


# --- masking --------------------------------------------------------------------------------------


def three_in_a_line(n=200):
    """Classes 1, 2 and 3 along the diagonal of a plane, apart enough to be told (lecture 3).

    With every row its mirror image is there, so the fit of class 2 is 1/3 everywhere, and that of
    class 1 or of class 3 is more.
    """
    rng = np.random.default_rng(0)
    side, middle = 4.0 + rng.standard_normal((n, 2)), rng.standard_normal((n // 2, 2))
    return np.vstack([-side, middle, -middle, side]), np.repeat([1, 2, 3], n)


def test_the_class_in_the_middle_is_masked_and_named():
    X, y = three_in_a_line()
    with pytest.warns(MaskedClassWarning, match=r"'2' are masked on the training rows"):
        model = LeastSquares().fit(X, y)
    assert model.masked_everywhere_.tolist() == [2]  # its fit is 1/3 everywhere
    assert model.masked_.tolist() == [2] and 1 - model.score(X, y) == pytest.approx(1 / 3, abs=0.01)


def test_a_quadratic_basis_unmasks_it():
    X, y = three_in_a_line()
    model = LeastSquares(degree=2).fit(X, y)
    assert model.masked_.tolist() == [] and 1 - model.score(X, y) < 0.04


def test_rows_of_no_weight_unmask_nobody():
    X, y = three_in_a_line()
    far = np.array([[0.0, 1e5], [1e5, 0.0], [0.0, -1e5], [-1e5, 0.0]])
    weight = np.append(np.ones(len(X)), np.zeros(4))
    with pytest.warns(MaskedClassWarning):
        model = LeastSquares().fit(np.vstack([X, far]), np.append(y, [2, 2, 2, 2]), weight)
    assert model.masked_.tolist() == [2]


@given(seed=st.integers(0, 999), classes=st.integers(3, 12), weighted=st.booleans())
def test_masked_classes_are_never_predicted(seed, classes, weighted):
    rows = random_rows(seed, n=60, width=2, classes=3, weighted=weighted)
    y = rows.codes + 3 * (np.arange(60) % (classes // 3))
    weight = None
    if rows.weight is not None:
        weight = np.where(rows.weight < 0.7, 0.0, rows.weight)
        weight[np.unique(y, return_index=True)[1]] = 1.0  # no class is without weight
    model = LeastSquares().fit(rows.features, y, weight)
    told = model.predict(rows.features if weight is None else rows.features[weight > 0])
    assert model.masked_.tolist() == np.setdiff1d(model.classes_, told).tolist()


def test_without_rows_nothing_is_claimed_of_masking():
    X, y = three_in_a_line()
    assert LeastSquares().fit_moments(discriminant.moments(X, y, detail="pooled")).masked_ is None


def upper_hull(slope, level):
    """Classes with a region: the vertices of (w_k, c_k) that can be seen from far above."""
    points = np.column_stack([slope, level])
    below = np.append(points[:, :-1].mean(axis=0), level.min() - 1e7)
    found = ConvexHull(np.vstack([points, below])).vertices
    return np.setdiff1d(found, [len(points)])


@pytest.mark.parametrize(("classes", "width"), [(4, 1), (9, 1), (6, 2), (15, 2), (12, 3)])
@pytest.mark.parametrize("seed", range(4))
def test_masked_everywhere_are_the_classes_inside_the_upper_hull(classes, width, seed):
    """f_k(x) = c_k + w_k'x is the largest somewhere iff (w_k, c_k) is a vertex of that hull."""
    rng = np.random.default_rng([classes, width, seed])
    y = np.append(np.arange(classes), rng.integers(classes, size=20 * classes))
    centres = 2.0 * rng.standard_normal((classes, width))
    X = centres[y] + rng.standard_normal((len(y), width))
    model = LeastSquares().fit(X, y)
    beta = np.linalg.lstsq(np.column_stack([np.ones(len(X)), X]), np.eye(classes)[y], rcond=None)[0]
    seen = upper_hull(beta[1:].T, beta[0])
    assert model.masked_everywhere_.tolist() == np.setdiff1d(np.arange(classes), seen).tolist()
    assert set(model.masked_everywhere_) <= set(model.masked_)


@given(seed=st.integers(0, 99), scale=st.sampled_from([1e-100, 1e-9, 1.0, 1e9, 1e100]))
def test_masked_everywhere_does_not_depend_on_units_or_constant_columns(seed, scale):
    rng = np.random.default_rng(seed)
    y = np.append(np.arange(6), rng.integers(6, size=60))
    X = rng.standard_normal((6, 2))[y] + rng.standard_normal((66, 2))
    masked = LeastSquares().fit(X, y).masked_everywhere_.tolist()
    units = X * [scale, 1.0] + [3.0 * scale, 0.0]
    assert LeastSquares().fit(units, y).masked_everywhere_.tolist() == masked
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantColumnWarning)
        wider = LeastSquares().fit(np.column_stack([X, np.full(66, 7.0)]), y)
    assert wider.masked_everywhere_.tolist() == masked


def test_three_clouds_in_the_plane_leave_the_middle_a_wedge():
    """Lecture 3: in the plane the middle class always has a region, though rows may miss it.

    With equal numbers of rows all fitted values are 1/3 at the mean of all rows. On a line that is
    a point, where all three meet; in the plane the middle class has a wedge that begins there.
    """
    never = {1: 0, 2: 0}
    for seed in range(20):
        for width in (1, 2):
            rng = np.random.default_rng(seed)
            X = rng.standard_normal((300, width)) + np.repeat([[0.0], [4.0], [8.0]], 100, axis=0)
            model = LeastSquares().fit(X, np.repeat([1, 2, 3], 100))
            assert model.masked_everywhere_.tolist() == ([2] if width == 1 else [])
            never[width] += 2 in model.masked_
    assert never[1] == 20 and never[2] < 20


def test_masked_everywhere_needs_no_rows_but_straight_lines():
    X, y = three_in_a_line()
    known = LeastSquares().fit_moments(discriminant.moments(X, y, detail="pooled"))
    assert known.masked_everywhere_.tolist() == [2]
    assert LeastSquares(degree=2).fit(X, y).masked_everywhere_ is None


@pytest.mark.parametrize("flat", [True, False])
def test_uninformative_features_leave_a_region_to_the_largest_class_only(flat):
    x = np.zeros(6) if flat else np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantColumnWarning)
        model = LeastSquares().fit(x[:, None], list("aabbbb"))
    assert model.masked_.tolist() == model.masked_everywhere_.tolist() == ["a"]


# --- the regression itself ------------------------------------------------------------------------

TARGETS = {
    "indicator": lambda second: second.astype(float),
    "sign": lambda second: np.where(second, 1.0, -1.0),
    "fisher": lambda second: np.where(
        second, -len(second) / second.sum(), len(second) / (~second).sum()
    ),
}


@pytest.mark.parametrize("coding", TARGETS)
def test_beta_and_fitted_values_of_two_classes_solve_the_normal_equations(coding):
    """Lecture 3: beta = (X'X)^-1 X'y with a column of ones; lecture 4: y = N/N_1, -N/N_2."""
    X, species = load_iris(return_X_y=True)
    X, second = X[50:138], species[50:138] == 2  # 50 rows and 38
    ones = np.column_stack([np.ones(len(X)), X])
    beta = np.linalg.solve(ones.T @ ones, ones.T @ TARGETS[coding](second))
    model = LeastSquares(coding=coding).fit(X, second)
    np.testing.assert_allclose(model.beta_, beta, rtol=1e-9)
    np.testing.assert_allclose(model.fitted_values(X), ones @ beta, rtol=1e-9, atol=1e-12)
    assert model.threshold_ == (0.5 if coding == "indicator" else 0.0)
    above = ones @ beta > model.threshold_
    assert (model.predict(X) == (~above if coding == "fisher" else above)).all()


def test_beta_and_fitted_values_of_many_classes_are_the_matrix_of_the_lecture():
    X, y = load_iris(return_X_y=True)
    ones = np.column_stack([np.ones(len(X)), X])
    B = np.linalg.solve(ones.T @ ones, ones.T @ np.eye(3)[y])
    model = LeastSquares().fit(X, y)
    np.testing.assert_allclose(model.beta_, B, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.fitted_values(X), ones @ B, atol=1e-11)
    assert model.threshold_ is None


# --- a basis of products --------------------------------------------------------------------------


@given(seed=st.integers(0, 999), away=st.sampled_from([0.0, 1e3, 1e8]))
def test_products_span_what_powers_of_the_rows_themselves_span(seed, away):
    """However far away the rows are, where x and x^2 themselves could not be told apart."""
    rows = random_rows(seed, n=80, width=2)
    near = np.round(rows.features * 2**16) / 2**16  # so that moving them far away is exact
    u = np.column_stack([near, near[:, 0] ** 2, near[:, 0] * near[:, 1], near[:, 1] ** 2])
    coef, intercept = by_hand(u, np.eye(3)[rows.codes])
    model = LeastSquares(degree=2).fit(near + away, rows.y)
    fitted = model.rule_.fitted(near + away)
    np.testing.assert_allclose(fitted, u @ coef.T + intercept, atol=1e-8)


def test_products_of_three_are_counted_and_named():
    basis = PolynomialBasis(("a", "b"), np.array([1.0, 0.0]), np.array([1.0, 2.0]), 3)
    found = dict(zip(basis.names, basis.expand(np.array([[3.0, 4.0]]))[0].tolist(), strict=True))
    assert found["a^2 × b"] == 8.0 and found["a"] == 2.0 and len(found) == 9


@given(seed=st.integers(0, 999))
def test_integer_weights_are_repeated_rows_for_products_too(seed):
    rows = random_rows(seed, n=40)
    times = 1 + np.arange(len(rows)) % 3
    weighted = LeastSquares(degree=2, ridge=1.0).fit(rows.features, rows.y, times)
    X, y = np.repeat(rows.features, times, axis=0), np.repeat(rows.y, times)
    repeated = LeastSquares(degree=2, ridge=1.0).fit(X, y)
    np.testing.assert_allclose(weighted.rule_.fitted(X), repeated.rule_.fitted(X), atol=1e-11)


def test_products_are_read_in_parts_too():
    X, y = load_iris(return_X_y=True)
    whole = LeastSquares(degree=2).fit(X, y)
    parts = LeastSquares(degree=2)
    for start in range(3):
        parts.partial_fit(X[start::3], y[start::3])
    np.testing.assert_allclose(parts.rule_.fitted(X), whole.rule_.fitted(X), atol=1e-9)
    assert parts.n_features_in_ == 4


def test_moments_of_rows_cannot_say_products():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(OptionError, match="degree=2"):
        LeastSquares(degree=2).fit_moments(discriminant.moments(X, y))


# --- classes: the rest ----------------------------------------------------------------------------


def test_vowels_are_regressed_on_as_by_qr_in_r(shared_data):
    folder = shared_data / "esl_vowel"
    train, test = (pd.read_csv(folder / f"vowel_{part}.csv") for part in ("train", "test"))
    reference = json.loads((folder / "reference.json").read_text())["indicator_regression"]
    model = LeastSquares().fit(train.drop(columns="y"), train["y"])
    golden = np.array(reference["coef_rows_intercept_first"])
    np.testing.assert_allclose(np.vstack([model.intercept_, model.coef_.T]), golden, atol=1e-12)
    errors = [1 - model.score(part.drop(columns="y"), part["y"]) for part in (train, test)]
    assert errors == pytest.approx([reference["train_error"], reference["test_error"]], abs=1e-12)


def test_almost_dependent_columns_are_read_again_as_a_factor():
    """Moments lose 12 of 16 digits here; the fitted values are those of well-chosen columns."""
    rows = random_rows(5, n=60)
    X = rows.features.copy()
    X[:, 2] = X[:, 0] + 2.0**-28 * np.round(X[:, 2] * 256)
    plain = np.column_stack([rows.features[:, :2], X[:, 2] - X[:, 0]])
    model = LeastSquares().fit(X, rows.y)
    coef, intercept = by_hand(plain, np.eye(3)[rows.codes])
    np.testing.assert_allclose(model.rule_.fitted(X), plain @ coef.T + intercept, atol=1e-8)


def test_moments_of_almost_dependent_columns_are_doubted_aloud():
    rows = random_rows(5, n=60)
    X = rows.features.copy()
    X[:, 2] = X[:, 0] + 2.0**-28 * np.round(X[:, 2] * 256)
    with pytest.warns(CollinearWarning, match="'x0', 'x2'"):
        LeastSquares().fit_moments(discriminant.moments(X, rows.y, detail="pooled"))


def nearly_equal_columns(n=300, apart=1e-7):
    """Two columns 1e-7 apart, which is where all the difference between the classes is."""
    rng = np.random.default_rng(8)
    codes = np.arange(n) % 3
    thin = codes + 0.2 * rng.standard_normal(n)
    first = rng.standard_normal(n)
    return np.column_stack([first, first + apart * thin, thin**2]), codes


def test_high_precision_holds_for_rows_in_parts_too():
    X, y = nearly_equal_columns()
    model = LeastSquares(precision="high")
    order = np.argsort(y, kind="stable")  # so that every part knows other classes
    for part in np.array_split(order, 7):
        model.partial_fit(X[part], y[part])
    plain = np.column_stack([X[:, 0], 1e7 * (X[:, 1] - X[:, 0]), X[:, 2]])
    coef, intercept = by_hand(plain, np.eye(3)[y])
    np.testing.assert_allclose(model.rule_.fitted(X), plain @ coef.T + intercept, atol=1e-6)


def test_high_precision_follows_the_options_of_the_last_rows():
    rows = random_rows(4, n=60, classes=2)
    whole = LeastSquares(coding="fisher", ridge=1.0).fit(rows.features, rows.y)
    parts = LeastSquares(coding="fisher", ridge=1.0, precision="high")
    for some in (slice(30), slice(30, None)):
        parts.partial_fit(rows.features[some], rows.y[some])
    np.testing.assert_allclose(parts.coef_, whole.coef_, rtol=1e-10)


def test_more_features_than_rows_keep_their_digits_as_rows():
    X, y = np.random.default_rng(0).standard_normal((700, 600)), np.arange(700) % 3
    model = LeastSquares(precision="high").partial_fit(X[:400], y[:400])
    model.partial_fit(X[400:], y[400:])
    fitted = LeastSquares().fit(X, y).rule_.fitted(X)
    np.testing.assert_allclose(model.rule_.fitted(X), fitted, atol=1e-9)


def test_high_precision_of_classes_is_refused_where_there_are_only_moments():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(OptionError, match=r"precision='high'.*no rows"):
        LeastSquares(precision="high").fit_moments(discriminant.moments(X, y))


def test_high_precision_of_classes_is_refused_once_rows_have_become_moments():
    X, y = load_iris(return_X_y=True)
    model = LeastSquares().partial_fit(X, y).set_params(precision="high")
    with pytest.raises(OptionError, match="only the moments of earlier rows"):
        model.partial_fit(X, y)


def test_a_factor_of_classes_cannot_forget_and_says_so():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(OptionError, match="precision='high'"):
        LeastSquares(precision="high").fit(X, y).forget(X[:10], y[:10])


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("apart", [1e-7, 1e-4, 1e-2])
@pytest.mark.parametrize("folds", [5, "each row"])
def test_held_out_predictions_of_nearly_collinear_columns_equal_refits(precision, apart, folds):
    X, y = nearly_equal_columns(n=60, apart=apart)
    fold = np.arange(60) if folds == "each row" else np.arange(60) % folds
    model = LeastSquares(precision=precision)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollinearWarning)
        held = cross_validate(model, X, y, fold) if folds == 5 else leave_one_out(model, X, y)
        wanted = np.empty((60, 3))
        for k in np.unique(fold):
            fitted = clone(model).fit(X[fold != k], y[fold != k])
            wanted[fold == k] = fitted.predict_proba(X[fold == k])
    np.testing.assert_allclose(np.exp(held.log_posterior), wanted, atol=1e-10)


def test_a_fold_that_has_all_rows_of_a_class_is_refitted_without_it():
    X, y = nearly_equal_columns(n=60)
    with pytest.warns(discriminant.errors.ClassMissingWarning):
        held = cross_validate(LeastSquares(), X, y, np.where(y == 1, 0, 1 + np.arange(60) % 2))
    wanted = LeastSquares().fit(X[y != 1], y[y != 1]).predict_proba(X[y == 1])
    assert (held.log_posterior[y == 1][:, 1] == -np.inf).all()
    np.testing.assert_allclose(np.exp(held.log_posterior[y == 1][:, [0, 2]]), wanted, atol=1e-10)


def test_no_class_is_too_many_for_memberships_of_sparse_rows():
    """Memberships of zero are no fault of the rows, which stay sparse."""
    rng = np.random.default_rng(2)
    X = sparse.random_array((3000, 400), density=0.01, rng=rng, format="csr")
    y = np.arange(3000) % 3
    model = LeastSquares(ridge=1.0).fit(X, y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Block, "raise_bad_cell", lambda *_, **__: pytest.fail("rows were searched"))
        shares = model.predict_proba(100.0 * X)
    assert (shares == 0.0).any()


def test_cubes_are_regressed_on_too():
    rows = random_rows(5, n=60, width=1)
    u = rows.features
    coef, intercept = by_hand(np.hstack([u, u**2, u**3]), np.eye(3)[rows.codes])
    fitted = LeastSquares(degree=3).fit(u, rows.y).rule_.fitted(u)
    np.testing.assert_allclose(fitted, np.hstack([u, u**2, u**3]) @ coef.T + intercept, atol=1e-9)


def test_more_features_than_rows_use_the_shortest_coefficients():
    rng = np.random.default_rng(0)
    X, codes = rng.standard_normal((40, 900)), np.arange(40) % 3
    with pytest.warns(CollinearWarning, match="rank 39 of 900"):
        model = LeastSquares().fit(X, codes)
    np.testing.assert_allclose(model.coef_, by_hand(X, np.eye(3)[codes])[0], atol=1e-10)


@given(seed=st.integers(0, 999))
def test_adding_and_forgetting_rows_changes_nothing(seed):
    rows, more = random_rows(seed, n=40), random_rows(seed + 1, n=20)
    model = LeastSquares().partial_fit(rows.features, rows.y).partial_fit(more.features, more.y)
    model.forget(more.features, more.y)
    coef, intercept = indicator_by_hand(rows)
    fitted = model.rule_.fitted(rows.features)
    np.testing.assert_allclose(fitted, rows.features @ coef.T + intercept, atol=1e-9)


def test_folds_by_adding_moments_are_folds_by_refitting():
    X, y = load_iris(return_X_y=True)
    fold = np.arange(len(y)) % 5
    held = cross_validate(LeastSquares(), X, y, fold)
    for k in range(5):
        model = LeastSquares(precision="standard").fit(X[fold != k], y[fold != k])
        wanted = model.predict_proba(X[fold == k])
        np.testing.assert_allclose(np.exp(held.log_posterior[fold == k]), wanted, atol=1e-10)


def test_two_distant_classes_are_predicted_as_by_lda():
    """With as many rows in each class both cut at the same place (ESL, exercise 4.2)."""
    rng = np.random.default_rng(1)
    codes = np.repeat([0, 1], 100)
    X = rng.standard_normal((200, 3)) + 1e8 + 2.0 * codes[:, None]
    assert (LeastSquares().fit(X, codes).predict(X) == LDA().fit(X, codes).predict(X)).all()
