"""The smallest change of a row: closed forms, brute force, bounds, fixed features."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import linprog, minimize
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from discriminant import (
    LDA,
    QDA,
    BayesianLogistic,
    Logistic,
    OrderedLogistic,
    Perceptron,
    smallest_change,
)
from discriminant.errors import LinearModelError, OptionError, ShapeError

X, Y = load_iris(return_X_y=True)
TWO = Y > 0
BINARY = LDA().fit(X[TWO], Y[TWO])
MODELS = [
    BINARY,
    LDA().fit(X, Y),
    Logistic(ridge=0.01).fit(X, Y),
    Perceptron(keep="average", max_passes=20, prove=False).fit(X[Y < 2], Y[Y < 2]),
    LogisticRegression(max_iter=1000).fit(X, Y),
]


@pytest.mark.parametrize("norm, dual", [("l2", 2), ("l1", np.inf), ("linf", 1)])
def test_two_classes_have_the_closed_form(norm, dual):
    row = X[60]
    change = smallest_change(BINARY, row, norm=norm)
    distance = abs(BINARY.decision_function(row[None])[0]) / np.linalg.norm(BINARY.coef_[0], dual)
    assert change.size == pytest.approx(distance, rel=1e-6)
    assert change.before == BINARY.predict(row[None])[0] != change.after


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
def test_the_changed_row_has_another_class_and_a_smaller_change_has_not(model, norm):
    for row in X[[0, 60, 120]]:
        change = smallest_change(model, row, norm=norm)
        assert model.predict(change.row[None])[0] == change.after != change.before
        less = row + 0.999 * change.change
        assert model.predict(less[None])[0] == change.before
        np.testing.assert_allclose(change.row, row + change.change)


def test_features_of_a_row_are_matched_by_name():
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = LDA().fit(frame, Y)
    wanted = smallest_change(model, frame.iloc[[60]], scale=[1.0, 2.0, 3.0, 4.0])
    other = frame[list("dbca")]
    for row in (other.iloc[[60]], other.iloc[60]):
        change = smallest_change(model, row, scale=[4.0, 2.0, 3.0, 1.0])
        assert change.features == tuple("dbca") and change.after == wanted.after
        np.testing.assert_allclose(change.row, wanted.row[[3, 1, 2, 0]], rtol=1e-12)


def test_models_without_a_linear_score_for_each_class_are_refused():
    three = OrderedLogistic(ridge=0.1).fit(X, Y)
    pairs = SVC(kernel="linear").fit(X, Y)  # its weights are those of pairs of classes
    curved = BayesianLogistic().fit(X[TWO], Y[TWO])
    for model, row in ((three, X[0]), (pairs, X[0]), (curved, X[60])):
        with pytest.raises(LinearModelError, match="one linear score for each class"):
            smallest_change(model, row)


def smallest_by_search(slope, goal, lower, upper, norm):
    """Size of the smallest z with slope . z >= goal between the bounds, by a solver."""
    d = len(slope)
    if norm == "l2":
        result = minimize(
            lambda z: z @ z,
            np.clip(slope, lower, upper),
            jac=lambda z: 2 * z,
            bounds=list(zip(lower, upper, strict=True)),
            constraints={"type": "ineq", "fun": lambda z: slope @ z - goal, "jac": lambda z: slope},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        return np.sqrt(result.fun)
    eye, sizes = np.eye(d), np.eye(d) if norm == "l1" else np.ones((d, 1))
    above = np.vstack(
        [
            np.hstack([eye, -sizes]),
            np.hstack([-eye, -sizes]),
            np.append(-slope, np.zeros(sizes.shape[1])),
        ]
    )
    limits = [*zip(lower, upper, strict=True), *[(0, None)] * sizes.shape[1]]
    cost = np.append(np.zeros(d), np.ones(sizes.shape[1]))
    return linprog(cost, above, np.append(np.zeros(2 * d), -goal), bounds=limits).fun


@given(seed=st.integers(0, 999), norm=st.sampled_from(["l2", "l1", "linf"]))
def test_bounds_give_the_solution_of_a_general_solver(seed, norm):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(40, 5))
    model = LDA().fit(rows, np.arange(40) % 2)
    row, width = rows[0], rng.uniform(0.2, 3.0, 5)
    lead, slope = model.decision_function(row[None])[0], model.coef_[0]
    slope = -slope if lead > 0 else slope
    if 0.9 * np.abs(slope) @ width < abs(lead):
        return
    change = smallest_change(model, row, norm=norm, bounds=(row - width, row + width))
    expected = smallest_by_search(slope, abs(lead), -width, width, norm)
    assert change.size == pytest.approx(expected, rel=2e-4, abs=1e-7)
    assert (np.abs(change.change) <= width * (1 + 1e-9)).all()


def test_fixed_features_do_not_change():
    change = smallest_change(BINARY, X[60], fixed=[0, "x2"])
    assert change.change[0] == change.change[2] == 0.0 and change.change[1] != 0.0
    assert list(change.frame().index) == ["x1", "x3"]


def test_the_scale_is_the_unit_of_the_change():
    scale = X.std(axis=0)
    change = smallest_change(BINARY, X[60], scale=scale)
    other = LDA().fit(X[TWO] / scale, Y[TWO])
    expected = smallest_change(other, X[60] / scale)
    assert change.size == pytest.approx(expected.size, rel=1e-6)
    np.testing.assert_allclose(change.change / scale, expected.change, rtol=1e-5)


def test_a_row_of_a_data_frame_and_bounds_by_name():
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = LDA().fit(frame[TWO], Y[TWO])
    change = smallest_change(model, frame.iloc[[60]], norm="l1", bounds={"d": (1.0, 1.1)})
    assert change.features == ("a", "b", "c", "d") and change.row[3] <= 1.1 + 1e-12
    assert model.predict(pd.DataFrame(change.row[None], columns=frame.columns))[0] == change.after


@pytest.mark.parametrize(
    "call, error, words",
    [
        (
            lambda: smallest_change(BINARY, X[60], bounds=(X[60] - 1e-6, X[60] + 1e-6)),
            LinearModelError,
            "No change within",
        ),
        (
            lambda: smallest_change(BINARY, X[60], bounds=(6, 8)),
            LinearModelError,
            "outside the bounds of 'x",
        ),
        (lambda: smallest_change(QDA().fit(X, Y), X[60]), LinearModelError, "QDA has no weights"),
        (lambda: smallest_change(BINARY, X[60], norm="l3"), OptionError, "one of l2, l1, linf"),
        (lambda: smallest_change(BINARY, X[60], fixed=["e"]), OptionError, "positions from 0 to 3"),
        (
            lambda: smallest_change(BINARY, X[60], scale=[1, 1, 0, 1]),
            OptionError,
            "4 positive numbers",
        ),
        (lambda: smallest_change(BINARY, X[60, :3]), ShapeError, "3"),
    ],
)
def test_what_is_impossible_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()
