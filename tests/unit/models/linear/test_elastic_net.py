"""The elastic net: its optimality worked out from the rows, and laws."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit, log_softmax, softmax

from discriminant import Logistic
from discriminant.errors import (
    ConstantColumnWarning,
    InferenceError,
    NoPenaltyWarning,
    NotConvergedWarning,
    OptionError,
)
from discriminant.models.linear.elastic_net import L1Quadratic

# --- rows and what is least -----------------------------------------------------------------------


def rows(classes=2, *, count=240, width=8, seed=5):
    """Rows whose first columns tell of the class; columns are correlated and of all scales."""
    rng = np.random.default_rng(seed)
    white = rng.normal(size=(count, width))
    mixed = white + 0.5 * rng.normal(size=(count, 1))
    slopes = np.zeros((width, classes))
    slopes[:3] = rng.normal(size=(3, classes))
    codes = (mixed @ slopes + rng.gumbel(size=(count, classes))).argmax(axis=1)
    return mixed * 10.0 ** rng.uniform(-2, 2, width) + rng.normal(size=width), codes


def scores_of(model, features):
    scores = features @ model.coef_.T + model.intercept_
    return np.column_stack([np.zeros(len(scores)), scores]) if scores.shape[1] == 1 else scores


def value_of(model, features, codes):
    """The mean loss and the penalty, as the documentation has them."""
    loss = -log_softmax(scores_of(model, features), axis=1)[np.arange(len(codes)), codes].mean()
    sd = features.std(axis=0) if model.standardize else np.ones(features.shape[1])
    size = np.abs(model.coef_ * sd)
    share = model.l1_ratio
    return loss + model.ridge * (share * size.sum() + (1 - share) / 2 * (size**2).sum())


def residual(model, features, codes, *, weight=None):
    """How far the conditions of a least value are from being met, in columns of variance one.

    Intercepts: slope = 0. Coefficients that are not zero: slope + penalty' = 0. Zeros: |slope| <=
    ridge l1_ratio.
    """
    weight = np.ones(len(codes)) if weight is None else weight
    weight = weight / weight.sum()
    mean = weight @ features
    sd = np.sqrt(weight @ (features - mean) ** 2)
    wrong = softmax(scores_of(model, features), axis=1) - np.eye(len(model.classes_))[codes]
    wrong = weight[:, None] * (wrong[:, 1:] if len(model.coef_) == 1 else wrong)
    slope = wrong.T @ ((features - mean) / sd)
    unit = np.ones_like(sd) if model.standardize else 1 / sd
    theta = model.coef_ * sd
    slope = slope + model.ridge * (1 - model.l1_ratio) * unit**2 * theta
    corner = model.ridge * model.l1_ratio * unit
    out = np.maximum(np.abs(slope) - corner, 0)
    inside = np.where(theta == 0, out, np.abs(slope + corner * np.sign(theta)))
    free = np.abs(wrong.sum(axis=0)).max() if model.intercept else 0.0
    return max(inside.max(), free)


# --- the least value ------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize(("ridge", "l1_ratio"), [(0.1, 0.3), (0.02, 0.9), (0.02, 1.0), (1e-3, 0.5)])
def test_the_conditions_of_a_least_value_are_met(classes, standardize, ridge, l1_ratio):
    features, codes = rows(classes)
    model = Logistic(ridge=ridge, l1_ratio=l1_ratio, standardize=standardize).fit(features, codes)
    assert model.converged_
    assert residual(model, features, codes) <= 1.5e-8


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "gradient"])
@pytest.mark.parametrize("classes", [2, 3])
def test_every_solver_ends_at_a_least_value_with_the_same_zeros(solver, classes):
    features, codes = rows(classes)
    plan = {"ridge": 0.03, "l1_ratio": 0.8, "max_iter": 5000}
    model = Logistic(solver=solver, **plan).fit(features, codes)
    auto = Logistic(**plan).fit(features, codes)
    assert model.converged_
    assert residual(model, features, codes) <= 1.5e-8
    assert np.array_equal(model.coef_ == 0, auto.coef_ == 0)


@pytest.mark.parametrize(("count", "width", "classes"), [(60, 700, 2), (80, 600, 3)])
def test_more_features_than_rows_meet_them_too(count, width, classes):
    features, codes = rows(classes, count=count, width=width)
    model = Logistic(ridge=0.05, l1_ratio=0.5).fit(features, codes)
    assert model.converged_
    assert residual(model, features, codes) <= 1.5e-8
    assert 0 < (model.coef_ != 0).sum() < model.coef_.size / 2


def test_many_coefficients_that_gradients_are_too_slow_for_end_by_newton():
    rng = np.random.default_rng(2)
    features = rng.normal(size=(300, 1)) + 1e-3 * rng.normal(size=(300, 90))  # nearly one column
    codes = (features[:, 0] + 300 * (features[:, 1] - features[:, 2]) > 0).astype(int)
    model = Logistic(ridge=1e-5, l1_ratio=0.5).fit(features, codes)
    assert model.converged_
    assert residual(model, features, codes) <= 1.5e-8


@pytest.mark.parametrize("link", ["probit", "cloglog", "cauchit"])
def test_no_small_change_betters_another_link(link):
    features, codes = rows()
    scaled = (features - features.mean(axis=0)) / features.std(axis=0)
    model = Logistic(link, ridge=0.05, l1_ratio=0.6).fit(scaled, codes)

    def value(coef, intercept):
        loss = -model.predict_log_proba(features_for(coef, intercept))
        size = np.abs(coef)
        penalty = 0.6 * size.sum() + 0.4 / 2 * (size**2).sum()
        return loss[np.arange(len(codes)), codes].mean() + 0.05 * penalty

    def features_for(coef, intercept):
        """Rows that the fitted model gives the scores that other coefficients would."""
        along = model.coef_[0] / (model.coef_[0] @ model.coef_[0])
        return (scaled @ coef + intercept - model.intercept_[0])[:, None] * along

    best = value(model.coef_[0], model.intercept_[0])
    steps = [sign * 1e-4 * axis for axis in np.eye(9) for sign in (1, -1)]
    others = [value(model.coef_[0] + s[:8], model.intercept_[0] + s[8]) for s in steps]
    assert model.converged_
    assert min(others) > best


def test_the_path_ends_at_the_value_that_the_formula_has():
    features, codes = rows(3)
    model = Logistic(ridge=0.02, l1_ratio=0.5).fit(features, codes)
    assert model.loss_path_[-1] == pytest.approx(value_of(model, features, codes), rel=1e-12)
    assert len(model.loss_path_) == model.n_passes_


# --- ends of the range ----------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_a_share_near_zero_is_nearly_the_ridge(classes):
    features, codes = rows(classes)
    ridge = Logistic(ridge=0.05).fit(features, codes)
    net = Logistic(ridge=0.05, l1_ratio=1e-10, solver="newton").fit(features, codes)
    sd = features.std(axis=0)
    np.testing.assert_allclose(net.coef_ * sd, ridge.coef_ * sd, atol=1e-8)


def test_a_share_of_nothing_is_maximum_likelihood():
    features, codes = rows()
    likely = Logistic().fit(features, codes)
    with pytest.warns(NoPenaltyWarning, match=r"l1_ratio=0.7 has no effect.*ridge is 0"):
        none = Logistic(l1_ratio=0.7).fit(features, codes)
    assert np.array_equal(none.coef_, likely.coef_)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_large_ridge_leaves_intercepts_that_are_log_shares(classes):
    features, codes = rows(classes)
    model = Logistic(ridge=5.0, l1_ratio=0.5).fit(features, codes)
    level = np.log(np.bincount(codes))
    assert not model.coef_.any()
    apart = np.diff(model.intercept_) if classes > 2 else model.intercept_
    np.testing.assert_allclose(apart, np.diff(level), rtol=1e-12)


def test_the_first_coefficient_enters_where_the_steepest_slope_says():
    features, codes = rows()
    standard = (features - features.mean(axis=0)) / features.std(axis=0)
    most = np.abs(standard.T @ (codes - codes.mean())).max() / len(codes)
    assert not Logistic(ridge=1.0001 * most, l1_ratio=1.0).fit(features, codes).coef_.any()
    inside = Logistic(ridge=0.9999 * most, l1_ratio=1.0).fit(features, codes)
    assert (inside.coef_ != 0).sum() == 1


def test_one_column_of_two_values_is_solved_by_hand():
    # x is -1 or 1, half each, and P(y = 1 | x) is as likely as P(y = 0 | -x): the intercept is 0,
    # and the slope w > 0 has  P(y = 1 | 1) = expit(w) + ridge (l1_ratio + (1 - l1_ratio) w).
    share, ridge, w = 0.25, 0.05, np.log(3.0)
    likely = expit(w) + ridge * (share + (1 - share) * w)
    weight = np.array([likely, 1 - likely, 1 - likely, likely])
    model = Logistic(ridge=ridge, l1_ratio=share)
    model.fit([[1.0], [1.0], [-1.0], [-1.0]], [1, 0, 1, 0], sample_weight=weight)
    assert model.coef_[0, 0] == pytest.approx(w, rel=1e-12)
    assert model.intercept_[0] == pytest.approx(0.0, abs=1e-12)


# --- laws -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 4])
def test_units_and_origins_of_columns_change_nothing(classes):
    features, codes = rows(classes)
    unit, origin = 10.0 ** np.arange(-8, 8, 2), np.linspace(-1, 1, 8)
    plain = Logistic(ridge=0.02, l1_ratio=0.6).fit(features, codes)
    moved = Logistic(ridge=0.02, l1_ratio=0.6).fit((features + origin) * unit, codes)
    sd = features.std(axis=0)
    np.testing.assert_allclose(moved.coef_ * unit * sd, plain.coef_ * sd, atol=1e-7)
    assert np.array_equal(moved.coef_ == 0, plain.coef_ == 0)


def test_a_mean_of_a_hundred_million_costs_no_zero():
    features, codes = rows()
    features = np.round(features / features.std(axis=0) * 256) / 256
    plain = Logistic(ridge=0.02, l1_ratio=0.6).fit(features, codes)
    far = Logistic(ridge=0.02, l1_ratio=0.6).fit(features + 1e8, codes)
    np.testing.assert_allclose(far.coef_, plain.coef_, atol=1e-10)


@pytest.mark.parametrize("width", [8, 2000])
@pytest.mark.parametrize("standardize", [True, False])
def test_sparse_rows_give_what_dense_ones_do(width, standardize):
    rng = np.random.default_rng(8)
    features = sparse.random_array((300, width), density=0.05, rng=rng, format="csr")
    pull = features[:, :8] @ np.linspace(-8, 8, 8)
    codes = (pull + rng.logistic(size=300) > 0).astype(int)
    ridge = 0.02 if standardize else 0.004
    plan = {"ridge": ridge, "l1_ratio": 0.7, "standardize": standardize}
    thin, full = Logistic(**plan), Logistic(**plan)
    thin.fit(features, codes)
    full.fit(features.toarray(), codes)
    np.testing.assert_allclose(thin.coef_, full.coef_, atol=1e-6 * np.abs(full.coef_).max())
    assert np.array_equal(thin.coef_ == 0, full.coef_ == 0)
    assert full.coef_.any()


@pytest.mark.parametrize("classes", [2, 3])
def test_a_whole_weight_is_a_repeated_row(classes):
    features, codes = rows(classes)
    times = np.random.default_rng(1).integers(0, 4, len(codes))
    plan = {"ridge": 0.02, "l1_ratio": 0.6, "solver": "newton"}
    weighted = Logistic(**plan).fit(features, codes, sample_weight=times.astype(float))
    repeated = Logistic(**plan).fit(np.repeat(features, times, axis=0), np.repeat(codes, times))
    sd = features.std(axis=0)
    np.testing.assert_allclose(weighted.coef_ * sd, repeated.coef_ * sd, atol=1e-11)
    assert residual(weighted, features, codes, weight=times) <= 1e-8


def test_classes_in_another_order_have_the_same_coefficients():
    features, codes = rows(4)
    plan = {"ridge": 0.02, "l1_ratio": 0.6, "solver": "newton"}
    order = np.array([2, 0, 3, 1])
    plain, other = Logistic(**plan).fit(features, codes), Logistic(**plan)
    other.fit(features, order[codes])
    sd = features.std(axis=0)
    np.testing.assert_allclose(other.coef_[order] * sd, plain.coef_ * sd, atol=1e-11)


def test_no_common_part_of_the_coefficients_would_cost_less():
    features, codes = rows(4)
    model = Logistic(ridge=0.01, l1_ratio=0.5, solver="newton").fit(features, codes)
    size = model.coef_ * features.std(axis=0)

    def cost(shift):
        return 0.5 * np.abs(size - shift).sum(axis=0) + 0.25 * ((size - shift) ** 2).sum(axis=0)

    assert (np.array([cost(s) for s in np.linspace(-0.5, 0.5, 101)]).min(axis=0) >= cost(0.0)).all()
    assert np.abs(size.sum(axis=0)).max() > 0.01


def test_the_lasso_of_an_even_number_of_classes_has_a_zero_in_every_column():
    features, codes = rows(4)
    model = Logistic(ridge=1e-3, l1_ratio=1.0).fit(features, codes)
    assert (model.coef_ == 0).any(axis=0).all()
    assert residual(model, features, codes) <= 1.5e-8


@pytest.mark.parametrize("ridge", [1e-2, 1e-3, 1e-4])
def test_the_lasso_of_an_even_number_of_classes_is_the_same_by_any_way(ridge):
    features, codes = rows(4)
    ways = [Logistic(ridge=ridge, l1_ratio=1.0, solver=way) for way in ("newton", "lbfgs")]
    exact, other = (way.fit(features, codes).coef_ * features.std(axis=0) for way in ways)
    np.testing.assert_allclose(other, exact, atol=1e-5)


def test_without_an_intercept_scores_are_zero_where_features_are():
    features, codes = rows()
    model = Logistic(ridge=0.02, l1_ratio=0.5, intercept=False).fit(features, codes)
    assert model.intercept_[0] == 0.0
    sd = np.sqrt((features**2).mean(axis=0))  # about zero, where scores are
    wrong = expit(features @ model.coef_[0]) - codes
    theta = model.coef_[0] * sd
    slope = wrong @ (features / sd) / len(codes) + 0.01 * theta
    met = np.where(theta == 0, np.abs(slope) <= 0.01, np.abs(slope + 0.01 * np.sign(theta)) < 1e-8)
    assert met.all()


# --- what is said ---------------------------------------------------------------------------------


def test_copies_of_a_column_share_its_coefficient():
    features, codes = rows()
    both = np.hstack([features, features[:, :1]])
    model = Logistic(ridge=0.02, l1_ratio=0.5).fit(both, codes)
    assert model.converged_
    assert model.coef_[0, 0] == pytest.approx(model.coef_[0, -1], rel=1e-6)


def test_a_constant_column_is_named_and_out():
    features, codes = rows()
    features[:, 4] = 7.0
    with pytest.warns(ConstantColumnWarning, match="x4"):
        model = Logistic(ridge=0.02, l1_ratio=0.5).fit(features, codes)
    assert model.coef_[0, 4] == 0.0


@pytest.mark.parametrize("solver", ["newton", "lbfgs", "gradient"])
def test_too_few_passes_are_told_of(solver):
    features, codes = rows(3)
    model = Logistic(ridge=0.01, l1_ratio=0.5, solver=solver, max_iter=3)
    with pytest.warns(NotConvergedWarning, match="3 passes"):
        model.fit(features, codes)
    assert not model.converged_
    assert model.n_passes_ == 3


def test_progress_is_told_of_every_pass():
    heard = []
    model = Logistic(ridge=0.01, l1_ratio=0.5, progress=lambda *told: heard.append(told))
    model.fit(*rows(3))
    assert [passes for passes, _, _ in heard] == list(range(1, model.n_passes_ + 1))
    assert heard[-1][2] <= 1e-8


@pytest.mark.parametrize("wrong", [-0.1, 1.5, "half", np.nan])
def test_a_share_outside_zero_to_one_is_refused(wrong):
    with pytest.raises(OptionError, match="from 0 to 1"):
        Logistic(ridge=0.1, l1_ratio=wrong).fit(*rows())


def test_no_standard_errors_are_given():
    model = Logistic(ridge=0.1, l1_ratio=0.5).fit(*rows())
    with pytest.raises(InferenceError, match=r"ridge=0\.1"):
        model.inference()
    assert "std" not in str(model.summary().to_dict()["coefficients"])


# --- the step alone -------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [40, 12])
def test_the_least_of_a_quadratic_with_corners_meets_its_conditions(rank):
    rng = np.random.default_rng(3)
    root = rng.normal(size=(rank, 40)) * 10.0 ** rng.uniform(-2, 1, 40)
    corner, start = np.abs(rng.normal(size=40)), rng.normal(size=40)
    gradient = root.T @ rng.normal(size=rank) * 3
    found = L1Quadratic(gradient, root.T @ root, corner, start).minimise(tolerance=1e-10)
    slope = gradient + root.T @ (root @ (found - start))
    edge = np.where(found == 0, np.abs(slope) <= corner + 1e-9, False)
    face = np.abs(slope + corner * np.sign(found)) <= 1e-9 * np.abs(gradient).max()
    assert (edge | ((found != 0) & face)).all()


@pytest.mark.parametrize("intercept", [True, False])
def test_hardly_any_absolute_part_is_a_ridge(intercept):
    rng = np.random.default_rng(3)
    X, y = rng.normal(2.0, 1.0, (200, 3)), rng.integers(0, 2, 200)
    plain = Logistic(ridge=0.1, intercept=intercept).fit(X, y)
    nearly = Logistic(ridge=0.1, l1_ratio=1e-12, intercept=intercept).fit(X, y)
    np.testing.assert_allclose(nearly.coef_, plain.coef_, atol=1e-8)
