"""Generalised linear models whose least lies on the edge of what means can be, or nowhere."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_iris

from discriminant import GLM
from discriminant.errors import BoundaryWarning, InferenceError
from discriminant.moments.glm_families import BOUNDARIES, BarrierLoss, Deviance

FALLING = np.array([9.0, 5, 3, 2, 1, 0, 0, 0, 0, 0])
LINE = np.arange(10.0)[:, None]


def quiet(model, X, y, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BoundaryWarning)
        return model.fit(X, y, **more)


def test_counts_by_the_identity_end_on_the_edge_where_their_sum_says():
    # On s(9) = 0 the line is c (9 - x), and the Poisson sum rule gives c = 20 / 45.
    with pytest.warns(BoundaryWarning, match="fitted mean of 0"):
        model = GLM("poisson", "identity").fit(LINE, FALLING)
    assert model.converged_
    np.testing.assert_allclose([model.intercept_, model.coef_[0]], [4.0, -4.0 / 9.0], rtol=1e-11)


def test_counts_by_the_root_end_on_the_edge_where_their_sum_says():
    # Means c (9 - x)^2: the sum rule gives c = 20 / 285.
    model = quiet(GLM("poisson", "sqrt"), LINE, FALLING)
    root = np.sqrt(20.0 / 285.0)
    assert model.converged_
    np.testing.assert_allclose([model.intercept_, model.coef_[0]], [9 * root, -root], rtol=1e-11)


def test_shares_by_the_log_end_where_a_constrained_search_does():
    X, y = load_iris(return_X_y=True)
    X, y = X[y > 0][:, :2], y[y > 0] - 1.0
    rows = np.column_stack([np.ones(len(X)), X - X.mean(axis=0)])

    def deviance(beta):
        below = np.minimum(rows @ beta, -1e-300)
        return -2 * np.where(y == 1, rows @ beta, np.log(-np.expm1(below))).sum()

    inside = {"type": "ineq", "fun": lambda beta: -(rows @ beta)}
    exact = {"ftol": 1e-14, "maxiter": 1000}
    best = minimize(deviance, [-1.0, 0, 0], constraints=inside, method="SLSQP", options=exact)
    model = quiet(GLM("binomial", "log"), X, y)
    assert model.converged_ and model.deviance_ == pytest.approx(best.fun, rel=1e-9)
    np.testing.assert_allclose(model.coef_, best.x[1:], atol=1e-5)


@pytest.mark.parametrize("link", ["identity", "sqrt"])
def test_at_the_edge_multipliers_of_the_rows_there_balance_the_gradient_and_push_inwards(link):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (40, 2))
    y = rng.poisson(np.maximum(2 - 3 * X[:, 0], 0)).astype(float)
    model = quiet(GLM("poisson", link), X, y)
    score = model.predict_linear(X)
    held, rows = np.flatnonzero(score < 1e-9), np.column_stack([np.ones(40), X])
    free = np.setdiff1d(np.arange(40), held)
    mean, rate = Deviance("poisson", link).mean(score), 1.0 if link == "identity" else 2 * score
    pull = ((y / np.maximum(mean, 1e-300) - 1) * rate)[free] @ rows[free]
    own = -1.0 if link == "identity" else 0.0  # slope of the loss of a count of 0 at its edge
    sought = np.linalg.lstsq(rows[held].T, -pull - own * rows[held].sum(axis=0), rcond=None)[0]
    assert len(held) and model.converged_ and (sought >= 0).all()
    np.testing.assert_allclose(rows[held].T @ (sought + own), -pull, atol=1e-7)


def test_a_least_inside_is_found_as_before_and_has_errors():
    X = np.repeat([[0.0], [1.0]], 4, axis=0)
    model = GLM("binomial", "log").fit(X, [1, 1, 1, 0, 0, 0, 1, 0])
    np.testing.assert_allclose(model.coef_[0], np.log(0.25 / 0.75), rtol=1e-10)
    assert np.isfinite(model.inference().std_error).all()


def test_estimates_at_an_edge_explain_missing_standard_errors():
    model = quiet(GLM("poisson", "identity"), LINE, FALLING)
    with pytest.raises(InferenceError, match="largest at the boundary"):
        model.summary()


def test_diverging_estimates_explain_missing_standard_errors():
    model = quiet(GLM("binomial"), LINE, (LINE[:, 0] > 4.5).astype(float))
    with pytest.raises(InferenceError, match="no finite estimate"):
        model.summary()


@pytest.mark.parametrize("kind", sorted(BOUNDARIES))
def test_derivatives_of_the_wall_are_those_of_finite_differences(kind):
    side = BOUNDARIES[kind][1]
    scores = side * np.linspace(0.2, 2.0, 7)
    response = np.array([0.0, 1, 0, 1, 0, 1, 0])
    wall, h = BarrierLoss(Deviance(*kind), 0.3), 1e-5
    low, here, high = (wall.rows(scores + step, response)[0] for step in (-h, 0.0, h))
    np.testing.assert_allclose(here.slope, (high.loss - low.loss) / (2 * h), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(here.curvature, (high.slope - low.slope) / (2 * h), rtol=1e-6)


def test_scaling_a_column_moves_nothing_at_the_edge():
    plain = quiet(GLM("poisson", "identity"), LINE, FALLING)
    scaled = quiet(GLM("poisson", "identity"), 1e6 * LINE, FALLING)
    np.testing.assert_allclose(scaled.coef_ * 1e6, plain.coef_, rtol=1e-11)


@pytest.mark.parametrize("seed", [2, 8])
def test_responses_far_from_their_means_still_come_to_the_score_equations(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 2))
    y = np.exp(2 * rng.normal(size=12))
    model = GLM("gamma", "log").fit(X, y)
    assert model.converged_
    rows = np.column_stack([np.ones(12), X])
    np.testing.assert_allclose(rows.T @ (y / model.predict(X) - 1), 0.0, atol=1e-5)
