"""Logistic regression: where it ends, what it tells of the way, priors and costs, kinds of rows."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.linalg import helmert
from scipy.optimize import minimize_scalar
from scipy.special import expit, softmax
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

import discriminant as dd
from discriminant import Logistic
from discriminant.engines.partitioned_table import PartitionedTable
from discriminant.errors import (
    CollinearWarning,
    ConstantColumnWarning,
    NotConvergedWarning,
    SeparationWarning,
)
from discriminant.models.linear import optimise
from discriminant.moments.loss_gradient_sums import LossReading


def rows(classes=2, *, count=400, width=5, seed=3):
    """Correlated columns and labels drawn by softmax scores."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, width)) + 0.7 * rng.standard_normal((count, 1))
    scores = X @ rng.standard_normal((width, classes)) / np.sqrt(width)
    return X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


def chances(model, X):
    scores = X @ model.coef_.T + model.intercept_
    return softmax(scores if scores.shape[1] > 1 else np.hstack([0 * scores, scores]), axis=1)


def scaled_gradient(model, X, y, *, weight=None, ridge=0.0, standardize=True):
    """Largest entry, in coordinates where features are white: each less what those before tell."""
    share = np.ones(len(y)) if weight is None else np.asarray(weight, float)
    share = share / share.sum()
    mean = share @ X
    covariance = (share[:, None] * (X - mean)).T @ (X - mean)
    wrong = share[:, None] * (chances(model, X) - np.eye(len(model.classes_))[y])
    contrast = np.array([[0.0], [1.0]]) if len(model.coef_) == 1 else helmert(wrong.shape[1]).T
    scale = share @ (X - mean) ** 2 if standardize else np.ones(X.shape[1])
    coef = np.vstack([0 * model.coef_, model.coef_]) if len(model.coef_) == 1 else model.coef_
    slope = (X - mean).T @ wrong + ridge * scale[:, None] * coef.T
    white = np.linalg.solve(np.linalg.cholesky(covariance), slope)
    found = np.vstack([wrong.sum(axis=0), white]) @ contrast
    return float(np.abs(found).max())


def heard(act):
    """What it returns, and the warnings of it."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        return act(), [(each.category, str(each.message)) for each in found]


# --- the end --------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3, 6])
@pytest.mark.parametrize("solver", ["auto", "newton", "lbfgs", "gradient"])
@pytest.mark.parametrize(
    "plan", [{}, {"ridge": 0.03}, {"ridge": 0.03, "standardize": False}, {"weighted": True}]
)
def test_where_it_says_to_have_converged_the_gradient_is_nothing(classes, solver, plan):
    X, y = rows(classes)
    weight = np.random.default_rng(0).gamma(2, 1, len(y)) if plan.get("weighted") else None
    penalty = {key: value for key, value in plan.items() if key != "weighted"}
    model = Logistic(solver=solver, max_iter=20_000, **penalty).fit(X, y, sample_weight=weight)
    assert model.converged_
    assert scaled_gradient(model, X, y, weight=weight, **penalty) <= 1.0001e-8


@pytest.mark.parametrize(("classes", "width"), [(2, 21), (3, 15)])
def test_a_pass_is_spared_of_many_rows_only_where_the_gradient_is_nothing_without_it(
    classes, width
):
    X, y = rows(classes, count=5_100_000 // width, width=width)
    model = Logistic().fit(X, y)
    assert model.converged_
    assert scaled_gradient(model, X, y) <= 1e-8


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("solver", ["newton", "lbfgs", "gradient"])
def test_a_fit_that_stopped_early_says_so_with_its_gradient(classes, solver):
    X, y = rows(classes)
    model, told = heard(lambda: Logistic(solver=solver, max_iter=2).fit(X, y))
    assert not model.converged_ and model.n_passes_ == 2
    gradient = scaled_gradient(model, X, y)
    wanted = f"stopped after 2 passes with a scaled gradient of {gradient:.1e} (tolerance 1.0e-08)"
    assert [kind for kind, _ in told] == [NotConvergedWarning] and wanted in told[0][1]


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("solver", ["auto", "newton", "lbfgs", "gradient"])
def test_progress_is_called_once_a_pass_and_the_loss_falls_to_its_end(classes, solver):
    X, y = rows(classes)
    calls = []
    model = Logistic(solver=solver, max_iter=20_000, progress=lambda *call: calls.append(call))
    model.fit(X, y)
    passes, losses, gradients = (list(each) for each in zip(*calls, strict=True))
    assert passes == list(range(1, model.n_passes_ + 1))
    assert losses == model.loss_path_.tolist()
    assert losses[-1] <= min(losses) + 1e-14 and gradients[-1] <= 1e-8
    own = -np.log(chances(model, X)[np.arange(len(y)), y]).mean()
    assert losses[-1] == pytest.approx(own, rel=1e-13)


def test_passes_are_counted_on_where_one_way_goes_on_from_another():
    X, y = rows(12, count=600, width=12, seed=1)  # more than _FEW coefficients: L-BFGS, then Newton
    calls = []
    model = Logistic(progress=lambda *call: calls.append(call[0])).fit(X, y)
    assert calls == list(range(1, model.n_passes_ + 1)) and len(model.loss_path_) == len(calls)


@pytest.mark.parametrize("ridge", [0.0, 0.01])
@pytest.mark.parametrize(
    ("classes", "count", "width", "solver"),
    [
        *((2, 20_000, 20, solver) for solver in ("auto", "newton", "lbfgs")),
        *((5, 5000, 10, solver) for solver in ("auto", "newton", "lbfgs")),
        *((10, 5000, 30, solver) for solver in ("auto", "lbfgs")),
    ],
)
def test_scales_cost_no_pass_and_passes_are_few(classes, count, width, solver, ridge):
    X, y = rows(classes, count=count, width=width)
    unit = np.geomspace(1, 1e4, width)
    centre = 3 * X.std(axis=0)
    passes = [
        Logistic(solver=solver, ridge=ridge).fit(each, y).n_passes_
        for each in (X, (X + centre) * unit)
    ]
    assert passes[0] == passes[1] <= 40


# --- costs and priors -----------------------------------------------------------------------------


def saturated(classes, seed=0):
    """One column of zeros and ones; a model of it has a probability for each that is a share."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(5, 60, size=(2, classes))
    X = np.repeat([0.0, 1.0], counts.sum(axis=1))[:, None]
    y = np.concatenate([np.repeat(np.arange(classes), count) for count in counts])
    return X, y, counts / counts.sum(axis=1, keepdims=True)


CELLS = np.array([[0.0], [1.0]])
LINKS = ["logit", "probit", "cloglog", "cauchit"]


@pytest.mark.parametrize("weight", ["balanced", {1: 7.0}, {0: 0.2, 1: 3.0}])
@pytest.mark.parametrize(("classes", "link"), [*((2, link) for link in LINKS), (3, "logit")])
def test_with_costs_probabilities_stay_the_shares_of_the_rows(classes, link, weight):
    X, y, shares = saturated(classes)
    model = Logistic(link, class_weight=weight).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(CELLS), shares, rtol=1e-9)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(CELLS)), shares, rtol=1e-9)


@pytest.mark.parametrize("classes", [2, 3])
def test_predict_takes_the_class_that_is_dearest_to_miss(classes):
    changed = 0
    for seed in range(20):
        X, y, shares = saturated(classes, seed)
        cost = np.random.default_rng(seed).gamma(1, 2, classes)
        model = Logistic(class_weight=dict(enumerate(cost))).fit(X, y)
        assert model.predict(CELLS).tolist() == (shares * cost).argmax(axis=1).tolist()
        scores = model.decision_function(CELLS)
        chosen = scores.argmax(axis=1) if classes > 2 else (scores > 0).astype(int)
        assert chosen.tolist() == model.predict(CELLS).tolist()
        changed += (model.predict(CELLS) != shares.argmax(axis=1)).any()
    assert changed  # not the most probable class


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize(("classes", "link"), [*((2, link) for link in LINKS), (4, "logit")])
def test_another_prior_is_bayes_ratio(classes, link, class_weight, weighted):
    X, y = rows(classes)
    weight = np.random.default_rng(1).integers(1, 5, len(y)) if weighted else None
    prior = np.arange(1, classes + 1) / np.arange(1, classes + 1).sum()
    plain = Logistic(link, class_weight=class_weight).fit(X, y, sample_weight=weight)
    share = np.bincount(y, weight) / (len(y) if weight is None else weight.sum())
    wanted = plain.predict_proba(X) * prior / share
    wanted /= wanted.sum(axis=1, keepdims=True)
    model = Logistic(link, class_weight=class_weight, prior=prior).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.predict_proba(X), wanted, rtol=1e-10)
    np.testing.assert_allclose(plain.predict_proba(X, prior=prior), wanted, rtol=1e-10)
    # and from one prior to another
    np.testing.assert_allclose(
        model.predict_proba(X, prior=share), plain.predict_proba(X), rtol=1e-10
    )


# --- kinds of rows --------------------------------------------------------------------------------


def strided(X):
    wide = np.zeros((2 * len(X), 3 * X.shape[1]))
    wide[::2, 1::3] = X
    return wide[::2, 1::3]


KINDS = {
    "F order": np.asfortranarray,
    "strided": strided,
    "sparse rows": sparse.csr_array,
    "sparse columns": sparse.csc_array,
    "pandas": lambda X: pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]),
    "polars": lambda X: pl.DataFrame(X, schema=[f"c{j}" for j in range(X.shape[1])]),
    "float32": lambda X: X.astype(np.float32),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("plan", [{}, {"ridge": 0.1}, {"bias_reduction": "jeffreys"}])
@pytest.mark.parametrize("classes", [2, 3])
def test_however_rows_are_handed_in_the_answer_is_the_same(kind, plan, classes):
    X, y = rows(classes)
    X = np.round(X * 64) / 64 * (np.abs(X) > 0.5)  # which float32 holds, and with zeros
    wanted, made = Logistic(**plan).fit(X, y), KINDS[kind](X)
    model = Logistic(**plan).fit(made, y)
    np.testing.assert_allclose(model.predict_proba(made), wanted.predict_proba(X), rtol=1e-9)
    np.testing.assert_allclose(model.coef_, wanted.coef_, rtol=1e-9, atol=1e-12)


def sparse_rows(classes, *, count=300, width=1600):
    """More features than are multiplied with one another."""
    rng = np.random.default_rng(7)
    X = sparse.random_array((count, width), density=0.01, rng=rng, format="csr")
    scores = X @ rng.standard_normal((width, classes)) * 3
    return X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
def test_many_sparse_features_are_fitted_as_dense_ones(classes, standardize, intercept):
    X, y = sparse_rows(classes)
    plan = {"ridge": 0.02, "standardize": standardize, "intercept": intercept}
    one, other = Logistic(**plan).fit(X, y), Logistic(**plan).fit(X.toarray(), y)
    assert one.converged_ and other.converged_
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X.toarray()), atol=1e-6)


@pytest.mark.parametrize(("count", "width"), [(60, 1000), (60, 200), (60, 59), (60, 5)])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
def test_ridge_is_scikit_learns_on_standardised_columns(classes, intercept, count, width):
    X, y = rows(classes, count=count, width=width)
    X = X * np.geomspace(1e-3, 1e3, width)
    mean = X.mean(axis=0) if intercept else 0.0  # else about zero, where scores are
    Z = (X - mean) / np.sqrt(((X - mean) ** 2).mean(axis=0))
    model, told = heard(lambda: Logistic(ridge=0.05, intercept=intercept).fit(X, y))
    theirs = scikit_learns(Z, y, ridge=0.05, intercept=intercept)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(Z), atol=1e-6)
    assert told == []


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("count", [100, 30])
def test_a_ridge_on_columns_as_they_are_chooses_among_dependent_ones(classes, intercept, count):
    X, y = rows(classes, count=count, width=40)
    X = np.column_stack([X, 10 * X[:, 0], X[:, 1] - 3 * X[:, 2]])
    plan = {"ridge": 0.05, "intercept": intercept}
    model, told = heard(lambda: Logistic(standardize=False, **plan).fit(X, y))
    theirs = scikit_learns(X, y, **plan)
    np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-6)
    assert told == []


def scikit_learns(X, y, *, ridge, intercept):
    """C is one over the ridge and the number of rows."""
    model = LogisticRegression(
        C=1 / (ridge * len(y)), fit_intercept=intercept, tol=1e-10, max_iter=100_000
    )
    return model.fit(X, y)


def test_without_an_intercept_scores_are_zero_at_zero():
    X, y = rows(3)
    model = Logistic(intercept=False).fit(X + 1, y)
    wrong = chances(model, X + 1) - np.eye(3)[y]
    assert (model.intercept_ == 0).all()
    assert np.abs((X + 1).T @ wrong).max() / len(y) <= 1e-8
    np.testing.assert_allclose(model.predict_proba(np.zeros((1, 5))), 1 / 3, rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_constant_and_collinear_columns_warn_and_change_no_probability(classes):
    X, y = rows(classes)
    plain = Logistic().fit(X, y).predict_proba(X)
    more = np.column_stack([X, np.full(len(X), 7.5), X[:, 0] - 2 * X[:, 1] + 3])
    model, told = heard(lambda: Logistic().fit(more, y))
    assert model.converged_ and model.separation_ == "none"
    np.testing.assert_allclose(model.predict_proba(more), plain, rtol=1e-9)
    text = {kind: words for kind, words in told}
    assert set(text) == {ConstantColumnWarning, CollinearWarning}
    assert "'x5'" in text[ConstantColumnWarning]
    assert "'x0', 'x1', 'x6'" in text[CollinearWarning]


@pytest.mark.parametrize("classes", [2, 4])
def test_means_of_1e8_cost_no_digit(classes):
    X, y = rows(classes)
    X = np.round(X * 2**20) / 2**20
    far = X + 2.0**27  # 1.3e8, and no digit of a row is lost
    near, there = Logistic().fit(X, y), Logistic().fit(far, y)
    assert there.n_passes_ == near.n_passes_
    np.testing.assert_allclose(there.predict_proba(far), near.predict_proba(X), rtol=1e-11)


# --- what separated classes leave -----------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "newton", "lbfgs", "gradient"])
def test_every_solver_reports_separation(solver):
    X, y = rows()
    apart = np.column_stack([X, (np.arange(len(y)) == np.flatnonzero(y)[0])])
    model, told = heard(lambda: Logistic(solver=solver, max_iter=50).fit(apart, y))
    assert model.separation_ == "quasi" and not model.converged_
    assert [kind for kind, _ in told] == [SeparationWarning]
    assert model.separation_found_.columns == ("x5",)


@pytest.mark.parametrize("plan", [{"ridge": 1e-3}, {"bias_reduction": "jeffreys"}])
def test_what_makes_separated_classes_finite_is_not_warned_of(plan):
    X = np.linspace(-1, 1, 20)[:, None]
    model, told = heard(lambda: Logistic(**plan).fit(X, X[:, 0] > 0))
    assert told == [] and model.converged_ and model.separation_ is None


def test_jeffreys_of_a_saturated_design_adds_half_a_row_to_each_cell():
    # Firth (1993): for a saturated logit the penalised estimate is that of counts plus one half.
    X, y, _ = saturated(2)
    counts = np.array([[((X[:, 0] == x) & (y == k)).sum() for k in (0, 1)] for x in (0, 1)])
    model = Logistic(bias_reduction="jeffreys").fit(X, y)
    halves = (counts + 0.5) / (counts + 0.5).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(CELLS), halves, rtol=1e-9)
    assert expit(model.intercept_[0]) == pytest.approx(halves[0, 1], rel=1e-9)


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog", "cauchit"])
def test_classes_that_only_an_intercept_could_separate_have_an_estimate_without_one(link):
    x, y = np.arange(1.0, 7.0), np.array([0, 0, 0, 1, 1, 1])
    chance = {
        "logit": expit,
        "probit": norm.cdf,
        "cloglog": lambda s: -np.expm1(-np.exp(s)),
        "cauchit": lambda s: 0.5 + np.arctan(s) / np.pi,
    }[link]

    def loss(b):
        return -np.log(np.where(y == 1, chance(b * x), 1.0 - chance(b * x))).sum()

    best = minimize_scalar(loss, bounds=(-1.0, 1.0), method="bounded", options={"xatol": 1e-12})
    model, told = heard(lambda: Logistic(link, intercept=False).fit(x[:, None], y))
    assert told == [] and model.converged_ and model.separation_ == "none"
    assert model.coef_[0, 0] == pytest.approx(best.x, rel=1e-6)


def test_a_column_of_ones_without_intercept_is_separated_as_with_one():
    x, y = np.arange(1.0, 7.0), np.array([0, 0, 0, 1, 1, 1])
    ones = np.column_stack([np.ones(6), x])
    model, _ = heard(lambda: Logistic(intercept=False).fit(ones, y))
    assert model.separation_ == "complete" and model.separation_found_.columns == ("x0", "x1")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_partitioned_table_takes_as_many_passes_as_newtons_method(kind, tmp_path, monkeypatch):
    # Reusing the curvature takes more passes, which partitioned tables have to read again.
    rng = np.random.default_rng(3)
    X = rng.standard_normal((6000, 30))
    y = (X @ rng.standard_normal(30) + rng.logistic(size=6000) > 0).astype(int)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(30)]).assign(y=y)
    path = tmp_path / f"rows.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
    wants, fold = [], PartitionedTable.fold

    def recorded(self, reading, *args, **options):
        if isinstance(reading, LossReading):
            wants.append(reading.want)
        return fold(self, reading, *args, **options)

    monkeypatch.setattr(PartitionedTable, "fold", recorded)
    model = Logistic().fit(dd.rows(path, target="y"))
    in_memory = Logistic().fit(X, y)
    np.testing.assert_allclose(model.coef_, in_memory.coef_, rtol=1e-7)
    assert wants[: model.n_passes_] == ["curvature"] * model.n_passes_
    monkeypatch.setattr(optimise, "_CHEAP_PRODUCTS", np.inf)  # never reuse the curvature
    newton = Logistic().fit(X, y)
    assert model.n_passes_ == newton.n_passes_ < in_memory.n_passes_


def test_many_classes_with_few_rows_converge_in_few_passes():
    """The curvature at the minimum is far below that at the start: L-BFGS sketches it again."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 60))
    slopes = rng.standard_normal((60, 40)) * (2.0 / np.sqrt(60))
    y = (X @ slopes + rng.gumbel(size=(300, 40))).argmax(axis=1)
    model = Logistic(ridge=1e-4, standardize=False).fit(X, y)
    assert model.converged_
    assert model.n_passes_ <= 150
