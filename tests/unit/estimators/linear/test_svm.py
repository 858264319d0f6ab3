"""Support vectors: against liblinear and libsvm, and by the conditions of their optimum."""

# ruff: noqa: E501 -- a table of cases is read line by line

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.svm import SVC, LinearSVC

from discriminant import SVM
from discriminant.errors import (
    ConstantColumnWarning,
    LabelError,
    MissingValueError,
    NotConvergedWarning,
    OptionError,
    ShapeError,
    WeightError,
)
from discriminant.models.linear.svm import fit_dual, row_duality_gaps

IRIS = load_iris(return_X_y=True)
CANCER = load_breast_cancer(return_X_y=True)
TIGHT = {"tolerance": 1e-14, "max_steps": 200_000}
WAYS = [
    {"loss": "squared_hinge", "solver": "primal"},
    {"loss": "squared_hinge", "solver": "dual", **TIGHT},
    {"loss": "hinge", "solver": "primal"},
    {"loss": "hinge", "solver": "dual", "tolerance": 1e-13, "max_steps": 200_000},
]
every_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way['loss']}-{way['solver']}")


def overlapping(seed=0, n=120, d=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 1.0
    y = (X @ rng.standard_normal(d) + rng.standard_normal(n) > 1.0).astype(int)
    y[:2] = 0, 1
    return X, y


# --- against others ------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_squared_hinge_without_intercept_is_liblinears(C, solver):
    X, y = overlapping()
    theirs = LinearSVC(C=C, fit_intercept=False, dual=False, tol=1e-13, max_iter=10**6).fit(X, y)
    ours = SVM(ridge=1 / (C * len(X)), intercept=False, solver=solver, **TIGHT).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("way", WAYS[2:], ids=["primal", "dual"])
def test_hinge_is_libsvms(C, way):
    X, y = overlapping(1)
    theirs = SVC(kernel="linear", C=C, tol=1e-12).fit(X, y)
    ours = SVM(ridge=1 / (C * len(X)), **way).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)


def test_a_penalised_bias_is_liblinears():
    X, y = overlapping(2)
    theirs = LinearSVC(dual=False, tol=1e-13, max_iter=10**6).fit(X, y)
    ours = fit_dual(sparse.csr_array(X), 2.0 * y - 1, bias=1.0, tolerance=1e-14, max_sweeps=10**5)
    np.testing.assert_allclose(ours.weights, theirs.coef_[0], rtol=1e-6)
    assert ours.intercept == pytest.approx(theirs.intercept_[0], rel=1e-6)


def test_each_class_against_the_rest_is_liblinears_for_many_classes():
    X, y = IRIS
    theirs = LinearSVC(fit_intercept=False, dual=False, tol=1e-13, max_iter=10**6).fit(X, y)
    ours = SVM(intercept=False).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_class_weights_are_liblinears():
    X, y = overlapping(3)
    for class_weight in ("balanced", {0: 3.0}):
        theirs = LinearSVC(
            fit_intercept=False, dual=False, tol=1e-13, max_iter=10**6, class_weight=class_weight
        ).fit(X, y)
        ours = SVM(intercept=False, class_weight=class_weight).fit(X, y)
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)


# --- the conditions of the optimum ---------------------------------------------------------------


@every_way
@pytest.mark.parametrize("seed", range(5))
def test_no_step_in_any_direction_is_an_improvement(way, seed):
    X, y = overlapping(seed, n=40, d=3)
    t, rng = 2 * y - 1, np.random.default_rng(seed)
    model = SVM(ridge=0.05, **way).fit(X, y)

    def objective(w, b):
        short = np.maximum(1 - t * (X @ w + b), 0)
        loss = short**2 if way["loss"] == "squared_hinge" else short
        return loss.mean() + 0.05 / 2 * w @ w

    best = objective(model.coef_[0], model.intercept_[0])
    steps = np.outer(10.0 ** -np.arange(1, 5), [1]) * rng.standard_normal((4, 4))
    others = [objective(model.coef_[0] + s[:3], model.intercept_[0] + s[3]) for s in steps]
    assert min(others) >= best - 1e-12


@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_the_gradient_of_the_squared_hinge_is_zero(solver):
    X, y = overlapping(4)
    model = SVM(ridge=0.01, solver=solver, tolerance=1e-17, max_steps=200_000).fit(X, y)
    t = 2 * y - 1
    short = np.maximum(1 - t * model.decision_function(X), 0)
    slope = 0.01 * model.coef_[0] - 2 * (t * short) @ X / len(X)
    assert np.abs(slope).max() < 1e-9 and abs((t * short).mean()) < 1e-9


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_gap_is_the_difference_of_the_two_sides_of_duality(loss):
    X, y = overlapping(5)
    t, C = 2.0 * y - 1, 0.7
    found = fit_dual(sparse.csr_array(X), t, cost=C, loss=loss, bias=0.0, tolerance=1e-3)
    w, a = (t * found.alpha) @ X, found.alpha
    np.testing.assert_allclose(found.weights, w, rtol=1e-9, atol=1e-12)
    short = np.maximum(1 - t * (X @ w), 0)
    primal = w @ w / 2 + C * (short if loss == "hinge" else short**2).sum()
    soft = 0.0 if loss == "hinge" else (a**2).sum() / (4 * C)
    assert found.gap == pytest.approx((primal - (a.sum() - w @ w / 2 - soft)) / primal, rel=1e-6)
    assert (
        found.gap <= 1e-3
        and (row_duality_gaps(t * (X @ w), a, np.full(120, C), squared=soft > 0) >= 0).all()
    )


@pytest.mark.filterwarnings("ignore::discriminant.errors.NotConvergedWarning")
@pytest.mark.parametrize("C", [0.001, 0.1, 10.0])
@every_way
def test_the_objective_is_never_farther_from_the_least_than_the_gap_says(way, C):
    """A search cut short after any number of steps is held to one that is not."""
    X, y = overlapping(5, n=60)
    sign, power = np.where(y == 1, 1.0, -1.0), 2 if way["loss"] == "squared_hinge" else 1

    def objective(model):
        short = np.maximum(0.0, 1.0 - sign * model.decision_function(X))
        return 0.5 * (model.coef_**2).sum() + C * (short**power).sum()

    options = {**way, "ridge": 1 / (C * len(X))}
    least = objective(SVM(**{**options, "solver": "primal"}).fit(X, y))
    for steps in (1, 2, 3, 4, 6, 9, 14, 30, 100):
        model = SVM(**{**options, "max_steps": steps}).fit(X, y)
        reached = objective(model)
        assert (reached - least) / reached <= model.gap_[0] + 1e-12


def test_two_points_have_the_border_half_way_and_the_margin_between_them():
    for way in WAYS:
        model = SVM(ridge=1e-7, **{**way, "tolerance": 1e-6}).fit([[1.0], [5.0]], ["a", "b"])
        assert model.coef_[0, 0] == pytest.approx(0.5, rel=1e-3)
        assert model.intercept_[0] == pytest.approx(-1.5, rel=1e-3)


# --- laws ----------------------------------------------------------------------------------------


@every_way
def test_a_weight_of_a_whole_number_is_as_many_rows(way):
    X, y = overlapping(6, n=60)
    times = np.random.default_rng(0).integers(0, 4, size=60)
    times[:2] = 1
    ours = SVM(**way).fit(X, y, sample_weight=times)
    again = SVM(**way).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(ours.coef_, again.coef_, rtol=1e-5, atol=1e-7)


@every_way
def test_the_order_of_rows_does_not_matter(way):
    X, y = overlapping(7)
    order = np.random.default_rng(1).permutation(len(X))
    np.testing.assert_allclose(
        SVM(**way).fit(X, y).coef_, SVM(**way).fit(X[order], y[order]).coef_, rtol=1e-5, atol=1e-7
    )


@every_way
def test_the_origin_of_columns_does_not_matter(way):
    X, y = overlapping(8, n=60)
    if way["solver"] == "dual":
        way = {**way, "tolerance": 1e-10}
    moved = SVM(**way).fit(X + 1e6, y)
    np.testing.assert_allclose(moved.coef_, SVM(**way).fit(X, y).coef_, rtol=1e-3, atol=1e-4)


@every_way
def test_a_constant_column_without_intercept_is_a_penalised_one(way):
    X, y = overlapping()
    X = X / np.sqrt((X**2).mean(axis=0))  # in units of size, so that standardising changes nothing
    augmented = np.column_stack([np.ones(len(X)), X])
    plain = SVM(**way, intercept=False).fit(augmented, y)
    scaled = SVM(**way, intercept=False, standardize=True).fit(augmented * [7.0, 1, 1, 1, 1], y)
    np.testing.assert_allclose(scaled.coef_ * [7.0, 1, 1, 1, 1], plain.coef_, rtol=1e-4)
    assert abs(plain.coef_[0, 0]) > 0.01


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_standardised_slopes_do_not_know_the_units_of_columns(loss):
    X, y = CANCER
    units = 10.0 ** np.random.default_rng(0).integers(-6, 7, size=X.shape[1])
    ours, theirs = (SVM(loss=loss, standardize=True).fit(rows, y) for rows in (X, X * units))
    np.testing.assert_allclose(theirs.coef_ * units, ours.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
def test_sparse_rows_are_fitted_as_dense_ones(kind):
    X, y = np.round(IRIS[0]), IRIS[1]
    rows = sparse.csr_matrix(X.astype(kind))
    dense, model = SVM().fit(X, y), SVM(solver="dual", **TIGHT).fit(rows, y)
    np.testing.assert_allclose(model.decision_function(rows), dense.decision_function(X), atol=1e-7)


def test_wide_rows_are_fitted_without_products():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 2000)), np.arange(40) % 2
    found = [
        SVM(solver=solver, tolerance=1e-14, max_steps=10**5).fit(X, y)
        for solver in ("auto", "primal")
    ]
    np.testing.assert_allclose(found[0].coef_, found[1].coef_, atol=1e-7)


# --- what is said --------------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [1e2, 1e8])
def test_many_rows_are_proved_to_be_at_the_least_and_raise_no_alarm(weight):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((50_000, 3))
    y = (X @ rng.standard_normal(3) / 2 + rng.standard_normal(50_000) > 0).astype(int)
    model = SVM().fit(X, y, sample_weight=np.full(50_000, weight))
    assert model.converged_ and model.gap_[0] <= 1e-8


def test_a_search_cut_short_says_so():
    X, y = overlapping(9)
    with pytest.warns(
        NotConvergedWarning, match=r"class '1' stopped after 3 steps.*tolerance 1.0e-12"
    ):
        model = SVM(solver="dual", max_steps=3, tolerance=1e-12).fit(X, y)
    assert not model.converged_ and model.n_iter_ == 3 and model.gap_[0] > 1e-12


@pytest.mark.parametrize("C", [0.001, 0.01, 0.1, 1.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_sweeps_end_soon_after_the_gap_is_closed(C, intercept):
    X, y = overlapping(3, n=250, d=2)
    options = {"loss": "hinge", "ridge": 1 / (C * len(X)), "solver": "dual", "intercept": intercept}
    found = SVM(**options, max_steps=20_000).fit(X, y)
    assert found.converged_
    if found.n_iter_ > 2:  # half as many do not do
        with pytest.warns(NotConvergedWarning):
            SVM(**options, max_steps=(found.n_iter_ + 1) // 2 - 1).fit(X, y)


@pytest.mark.parametrize("C", [1e-4, 1e-3, 1e-2])
def test_a_free_intercept_is_found_in_few_sweeps_however_small_the_cost(C):
    for seed in range(4):
        X, y = overlapping(seed, n=300)
        assert SVM(ridge=1 / (C * len(X)), solver="dual").fit(X, y).n_iter_ <= 30


def test_convergence_is_reported_for_every_class():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SVM().fit(*IRIS)
    assert model.converged_ and model.gap_.shape == (3,) and (model.gap_ <= 1e-8).all()


ROWS, LABELS = IRIS[0], np.array(["a", "b", "c"])[IRIS[1]]


def weight(value, rows):
    found = np.ones(150)
    found[rows] = value
    return found


# number in the list of bad inputs, what is done, what is raised, what it must say
BAD = [
    (29, lambda: SVM().fit(ROWS, ROWS[:, 0]), LabelError, "regression target"),
    (36, lambda: SVM().fit(ROWS, LABELS, weight(-1.0, 5)), WeightError, "row 5 .*is -1"),
    (37, lambda: SVM().fit(ROWS, LABELS, np.zeros(150)), WeightError, "zero for every row"),
    (37, lambda: SVM().fit(ROWS, LABELS, weight(np.nan, 7)), WeightError, "row 7 .*nan"),
    (37, lambda: SVM().fit(ROWS, LABELS, weight(np.inf, 7)), WeightError, "row 7 .*inf"),
    (38, lambda: SVM().fit(ROWS, LABELS, weight(0.0, slice(50))), WeightError, "'a' has total weight 0"),
    (39, lambda: SVM().fit(ROWS, LABELS, np.ones(149)), ShapeError, "149.*150"),
    (0, lambda: SVM().fit(ROWS, LABELS, weight(0.0, slice(100))), WeightError, "'a' has total weight 0"),
    (0, lambda: SVM().fit(np.where(ROWS[3, 1] == ROWS, np.nan, ROWS), LABELS), MissingValueError, "missing"),
    (0, lambda: SVM(loss="log").fit(ROWS, LABELS), OptionError, "loss='log'.*one of squared_hinge, hinge"),
    (0, lambda: SVM(ridge=0.0).fit(ROWS, LABELS), OptionError, "ridge=0.0.*positive"),
    (0, lambda: SVM(solver="best").fit(ROWS, LABELS), OptionError, "solver='best'.*one of auto, primal, dual"),
    (0, lambda: SVM(class_weight={"d": 1.0}).fit(ROWS, LABELS), LabelError, "'d'.*'a', 'b', 'c'"),
]  # fmt: skip


@pytest.mark.parametrize("case, act, kind, said", BAD, ids=[f"{c[0]}: {c[3]}" for c in BAD])
def test_bad_input_is_named(case, act, kind, said):
    with pytest.raises(kind, match=said):
        act()


def test_importing_the_estimators_does_not_import_numba():
    import subprocess
    import sys

    code = "import sys; from discriminant import SVM, Perceptron; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_constant_column_is_named():
    X, y = IRIS
    frame = pd.DataFrame(np.column_stack([X[:, 0], np.full(len(X), 7.0)]), columns=["a", "same"])
    with pytest.warns(ConstantColumnWarning, match="'same'"):
        SVM().fit(frame, y == 0)
