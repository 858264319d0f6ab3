"""Inexact Newton steps for many classes: products, preconditioner, and the fit they give."""

from __future__ import annotations

import numpy as np
import pytest

from discriminant import Logistic
from discriminant.engines.dispatch import read_moments
from discriminant.engines.local import fold
from discriminant.errors import NotConvergedWarning
from discriminant.estimators.linear import logistic as estimator
from discriminant.models.linear.logistic import penalty_factors, reading_anchor
from discriminant.models.linear.optimise import PenalisedLoss
from discriminant.models.linear.preconditioning import white_coordinates
from discriminant.models.linear.truncated_newton import SinglePrecisionLoss
from discriminant.moments.softmax_loss import SoftmaxLoss
from discriminant.table.memory import as_table

N, WIDTH, CLASSES, RIDGE = 1200, 60, 30, 1e-3


def scored_rows(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, WIDTH)) @ (np.eye(WIDTH) + 0.1 * rng.standard_normal((WIDTH,) * 2))
    scores = X @ rng.standard_normal((WIDTH, CLASSES)) * 0.3 + rng.gumbel(size=(N, CLASSES))
    y = scores.argmax(axis=1)
    y[:CLASSES] = np.arange(CLASSES)
    return 5.0 + 3.0 * X, y


def losses(weight=None):
    """Return the mean loss in double precision, and the same in single precision."""
    table = as_table(*scored_rows(), weight=weight)
    moments = read_moments(table, detail="pooled")
    moments = moments.at(reading_anchor(moments, intercept=True))
    scale = penalty_factors(moments, standardize=False, intercept=True)
    coordinates = white_coordinates(moments, classes=CLASSES, ridged=scale)
    objective = PenalisedLoss(
        lambda reading: fold(table, reading),
        moments.features,
        moments.anchor,
        SoftmaxLoss(CLASSES),
        coordinates,
        RIDGE * coordinates.penalty(scale),
    )
    return objective, SinglePrecisionLoss(table.block(0, N), objective, map)


def weights(kind):
    return None if kind is None else np.random.default_rng(1).integers(0, 4, size=N).astype(float)


@pytest.mark.parametrize("kind", [None, "frequencies"])
def test_single_precision_loss_equals_double(kind):
    objective, single = losses(weights(kind))
    theta = np.random.default_rng(2).standard_normal((objective.coordinates.size, CLASSES - 1))
    exact, rough = objective.evaluate(theta), single.evaluate(theta)
    assert rough.value == pytest.approx(exact.value, rel=1e-5)
    np.testing.assert_allclose(rough.gradient, exact.gradient, atol=1e-5)


@pytest.mark.parametrize("kind", [None, "frequencies"])
def test_product_equals_change_of_gradient(kind):
    objective, single = losses(weights(kind))
    rng = np.random.default_rng(3)
    shape = objective.coordinates.size, CLASSES - 1
    theta, change = 0.3 * rng.standard_normal(shape), rng.standard_normal(shape)
    single.evaluate(theta)
    product = single.from_classes(single.product(single.to_classes(change)))
    ahead, behind = (objective.evaluate(theta + h * change).gradient for h in (1e-5, -1e-5))
    np.testing.assert_allclose(product, (ahead - behind) / 2e-5, atol=2e-6)


def test_preconditioner_inverts_the_diagonal_blocks(monkeypatch):
    monkeypatch.setattr("discriminant.models.linear.truncated_newton._LARGEST_ROWS", N)
    _, single = losses()
    rng = np.random.default_rng(4)
    theta = 0.3 * rng.standard_normal((WIDTH + 1, CLASSES - 1))
    single.evaluate(theta)
    rows = np.vstack([part.rows for part in single.parts]).astype(float)
    probability = np.hstack([part.probability for part in single.parts]).astype(float)
    change = rng.standard_normal((CLASSES, WIDTH + 1))
    blocks = []
    for p in probability:
        uncertainty = p * (1 - p) / N
        diagonal = np.maximum(single.penalty, 1e-3 * uncertainty.sum())
        blocks.append((rows.T * uncertainty) @ rows + np.diag(diagonal))
    gradient = np.stack([block @ row for block, row in zip(blocks, change, strict=True)])
    solution = single.preconditioner().solve(gradient)
    expected = change - change.mean(axis=0)
    assert np.linalg.norm(solution - expected) < 0.02 * np.linalg.norm(expected)


@pytest.mark.parametrize("kind", [None, "frequencies"])
@pytest.mark.parametrize("intercept", [True, False])
def test_same_solution_as_lbfgs(kind, intercept):
    X, y = scored_rows()
    options = {"ridge": RIDGE, "intercept": intercept}
    fits = [
        Logistic(solver=solver, **options).fit(X, y, sample_weight=weights(kind))
        for solver in ("auto", "lbfgs")
    ]
    assert all(fit.converged_ for fit in fits)
    assert fits[0].n_passes_ < fits[1].n_passes_
    np.testing.assert_allclose(fits[0].predict_proba(X), fits[1].predict_proba(X), atol=1e-6)


def test_same_bits_for_any_number_of_threads(monkeypatch):
    X, y = scored_rows()
    one = Logistic(ridge=RIDGE).fit(X, y)
    monkeypatch.setattr(estimator, "_MIN_PRODUCTS_OF_THREADS", 0)
    monkeypatch.setattr(estimator, "available_threads", lambda: 3)
    three = Logistic(ridge=RIDGE).fit(X, y)
    np.testing.assert_array_equal(one.coef_, three.coef_)


def test_progress_counts_passes_and_max_iter_limits_them():
    X, y = scored_rows()
    counts = []
    with pytest.warns(NotConvergedWarning):
        model = Logistic(
            ridge=RIDGE, max_iter=4, progress=lambda count, *_: counts.append(count)
        ).fit(X, y)
    assert counts == [1, 2, 3, 4] and model.n_passes_ == 4 and not model.converged_


def test_converges_from_separated_classes_with_a_small_ridge():
    rng = np.random.default_rng(5)
    centres = 8.0 * rng.standard_normal((CLASSES, WIDTH))
    y = np.arange(N) % CLASSES
    X = centres[y] + rng.standard_normal((N, WIDTH))
    model = Logistic(ridge=1e-8).fit(X, y)
    assert model.converged_ and (model.predict(X) == y).all()
