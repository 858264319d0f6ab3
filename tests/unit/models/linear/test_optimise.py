"""What is proved on the way down, without reading the rows again: held against the rows.

`foreseen` bounds the gradient and the decrement after a Newton step; `proves_overlap` says that
classes cannot be separated. Both must hold for every problem, those nearly separated above all.
"""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, strategies as st

from discriminant.engines.dispatch import fold, read_moments
from discriminant.models.linear.logistic import intercept_only_start, proves_overlap, white_sample
from discriminant.models.linear.optimise import (
    ExactCurvature,
    PenalisedLoss,
    exact_curvature,
    gradient_bounds_after_newton_step,
    newton_descent,
)
from discriminant.models.linear.preconditioning import white_coordinates
from discriminant.moments.softmax_loss import BinaryLoss, SoftmaxLoss
from discriminant.table.memory import as_table
from tests.unit.models.linear.test_separation import made

APART = ("dummy", "tie", "complete")


class Problem:
    """Rows, and the loss that is to be made small."""

    def __init__(self, X, y, *, weight=None, ridge=0.0):
        table = as_table(X, y, weight=weight)
        moments = read_moments(table, detail="pooled")
        K = len(table.schema.labels)
        self.coordinates = white_coordinates(moments, classes=K if K > 2 else 0)
        penalty = ridge * self.coordinates.penalty(np.ones(X.shape[1])) if ridge else None
        self.objective = PenalisedLoss(
            partial(fold, table),
            moments.features,
            moments.anchor,
            SoftmaxLoss(K) if K > 2 else BinaryLoss(),
            self.coordinates,
            penalty,
        )
        self.table = table
        self.start = intercept_only_start(moments, self.coordinates)

    def at(self, theta):
        return self.objective.evaluate(theta, want="curvature")

    def sample(self, rows):
        return white_sample(self.table.block(0, rows), self.objective, self.coordinates)


def step_of(point):
    """A Newton step and its decrement."""
    step = -exact_curvature(point).solve(point.gradient)
    return step, -0.5 * float((point.gradient * step).sum())


def drawn(seed, classes, *, strength=1.0):
    """Rows with labels by chance: the stronger the scores, the fewer rows are on the wrong side."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(30, 90)), int(rng.integers(1, 5))
    X = rng.standard_normal((n, d))
    scores = strength * X @ rng.standard_normal((d, classes))
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    every = np.tile(np.arange(classes), d + 1)  # rows that span all, with every label: overlap
    return np.vstack([X, np.repeat(rng.standard_normal((d + 1, d)), classes, axis=0)]), np.append(
        y, every
    )


# --- limits on the number of passes -------------------------------------------------------------


def expensive_problem():
    """A problem whose curvature takes so long that it is reused."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 40))
    y = (X @ rng.standard_normal(40) + rng.logistic(size=4000) > 0).astype(int)
    problem = Problem(X, y)
    problem.wants = []
    evaluate = problem.objective.evaluate

    class Recorded:
        def evaluate(self, theta, *, want="gradient"):
            problem.wants.append(want)
            return evaluate(theta, want=want)

    problem.recorded = Recorded()
    return problem


@pytest.mark.parametrize("far", [False, True], ids=["near", "far"])
@pytest.mark.parametrize("reuse", [False, True], ids=["newton", "reused"])
def test_result_is_the_best_point_of_its_passes_for_every_limit(reuse, far):
    problem = expensive_problem()
    if far:  # full steps are too long: some are rejected
        away = np.random.default_rng(1).standard_normal(problem.start.shape)
        problem.start = problem.start + 1.2 * away
    losses = []
    for limit in range(1, 9):
        end = newton_descent(
            problem.recorded, problem.start, max_passes=limit, reuse_curvature=reuse
        )
        assert end.passes <= limit and end.point.curvature is not None
        assert end.point.value == min(end.path)
        if not end.converged:
            assert end.theta is end.point.theta
        losses.append(problem.at(end.theta).value)
        assert losses[-1] <= end.point.value + 1e-15
    assert (np.diff(losses) <= 1e-15).all() and losses[-1] < losses[0]
    assert ("gradient" in problem.wants) == reuse


def test_reused_curvature_takes_fewer_curvatures_and_more_passes():
    problem = expensive_problem()
    plain = newton_descent(problem.recorded, problem.start)
    in_newton, problem.wants = problem.wants, []
    reused = newton_descent(problem.recorded, problem.start, reuse_curvature=True)
    np.testing.assert_allclose(reused.theta, plain.theta, atol=1e-8)
    assert set(in_newton) == {"curvature"} and len(in_newton) == plain.passes
    assert reused.passes == len(problem.wants) > plain.passes
    assert problem.wants.count("curvature") < plain.passes


@pytest.mark.parametrize("factor", [1.0, 1.3, 0.2, 30.0])
def test_approximate_curvature_leads_to_the_same_minimum_and_its_own_curvature(factor):
    # A curvature that is 5 times too small makes steps too long: the line search shortens them.
    problem = expensive_problem()
    plain = newton_descent(problem.recorded, problem.start)
    problem.wants = []
    approximation = ExactCurvature(factor * plain.point.curvature)
    found = newton_descent(
        problem.recorded, problem.start, reuse_curvature=True, approximation=approximation
    )
    np.testing.assert_allclose(found.theta, plain.theta, atol=1e-8)
    np.testing.assert_allclose(found.point.curvature, plain.point.curvature, atol=1e-8)
    assert found.converged and problem.wants[0] == "gradient"


def test_stop_ends_the_steps_with_an_approximate_curvature_without_another_curvature():
    problem = expensive_problem()
    approximation = ExactCurvature(problem.at(problem.start).curvature)
    problem.wants = []
    found = newton_descent(
        problem.recorded, problem.start, approximation=approximation, stop=lambda point: True
    )
    assert problem.wants == ["gradient"] * 2
    assert not found.converged and found.passes == 2


# --- what is foreseen -----------------------------------------------------------------------------


@given(
    seed=st.integers(0, 9999),
    classes=st.integers(2, 5),
    strength=st.sampled_from([0.3, 3.0, 30.0]),
    ridge=st.sampled_from([0.0, 1e-3]),
    weighted=st.booleans(),
)
def test_what_is_foreseen_bounds_what_is_found(seed, classes, strength, ridge, weighted):
    rng = np.random.default_rng(seed)
    X, y = drawn(seed, classes, strength=strength)
    weight = rng.gamma(2, 1, len(y)) if weighted else None
    assert_bounded(Problem(X, y, weight=weight, ridge=ridge), rng)


@given(seed=st.integers(0, 9999))
def test_what_is_foreseen_bounds_what_is_found_of_four_rows(seed):
    # The fewer rows, the nearer the bound is to what it bounds: here to a factor of 5.
    rng = np.random.default_rng(seed)
    X, y = np.repeat(rng.standard_normal((2, 1)), 2, axis=0), np.array([0, 1, 0, 1])
    assert_bounded(Problem(X, y, weight=10.0 ** rng.uniform(-3, 0, 4)), rng)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_near_the_end_something_is_foreseen(classes):
    # So that the laws above are not empty: of 15 steps to 20 ends, for at least 3 each on average.
    problems = [Problem(*drawn(seed, classes, strength=0.3)) for seed in range(20)]
    bounded = [assert_bounded(each, np.random.default_rng(0)) for each in problems]
    assert np.mean(bounded) >= 3


def assert_bounded(problem, rng):
    """How many steps there was a bound for."""
    least = newton_descent(problem.objective, problem.start).theta
    away = rng.standard_normal(least.shape)
    bounded = 0
    for distance in np.geomspace(1e-7, 1.0, 15):
        point = problem.at(least + distance * away)
        step, decrement = step_of(point)
        gradient, left = gradient_bounds_after_newton_step(point, decrement)
        after = problem.at(point.theta + step)
        bounded += gradient < np.inf
        assert after.max_gradient <= gradient + 1e-13
        assert step_of(after)[1] <= left + 1e-24
    return bounded


@given(seed=st.integers(0, 9999), classes=st.integers(2, 4), kind=st.sampled_from(APART))
def test_no_gradient_is_foreseen_for_separated_classes(seed, classes, kind):
    problem = Problem(*made(kind, classes, seed % 50))
    point = problem.at(problem.start)
    for _ in range(25):
        step, decrement = step_of(point)
        assert gradient_bounds_after_newton_step(point, decrement) == (np.inf, np.inf)
        point = problem.at(point.theta + step)


# --- overlap --------------------------------------------------------------------------------------


def proved(point, some):
    return proves_overlap(point, some)


@given(
    seed=st.integers(0, 49),
    classes=st.integers(2, 5),
    kind=st.sampled_from(APART),
    size=st.sampled_from([0.0, 0.1, 1.0, 10.0]),
    read=st.booleans(),
)
def test_overlap_of_separated_classes_is_never_proved(seed, classes, kind, size, read):
    X, y = made(kind, classes, seed)
    problem = Problem(X, y)
    some = problem.sample(len(y) if seed % 2 else len(y) // 2)
    theta = problem.start + size * np.random.default_rng(seed).standard_normal(problem.start.shape)
    for _ in range(25):
        point = problem.at(theta)
        theta = theta + step_of(point)[0]
        if not read:  # as L-BFGS has it: only the sample tells of the curvature
            point = problem.objective.evaluate(point.theta)
        assert not proved(point, some)


@pytest.mark.parametrize("strength", [0.3, 1.0, 3.0, 30.0])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_overlap_is_proved_at_the_end_of_newtons_way(classes, strength):
    missed = []
    for seed in range(20):
        problem = Problem(*drawn(seed, classes, strength=strength))
        end = newton_descent(problem.objective, problem.start)
        if not (end.converged and proves_overlap(end.point, problem.sample(2))):
            missed.append(seed)
    assert missed == []


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_overlap_is_proved_by_gradients_and_some_rows(classes):
    for seed in range(20):
        problem = Problem(*drawn(seed, classes))
        end = newton_descent(problem.objective, problem.start).theta
        point = problem.objective.evaluate(end)
        assert point.curvature is None
        assert proved(point, problem.sample(len(problem.table) // 2))


def test_other_links_prove_nothing():
    problem = Problem(*drawn(0, 2))
    end = newton_descent(problem.objective, problem.start)
    assert proves_overlap(end.point, problem.sample(2))
    assert not proves_overlap(end.point, problem.sample(2), link="probit")
