"""Sparse discriminant directions: optimality conditions, an independent solver, limits, options."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_wine

import discriminant as dd
from discriminant.errors import NoFeatureSelectedWarning, NotConvergedWarning, OptionError


def standardised_means(X, y):
    """M of the formulas: weighted class means in units of the pooled standard deviations."""
    labels, codes = np.unique(y, return_inverse=True)
    means = np.array([X[codes == k].mean(axis=0) for k in range(len(labels))])
    shares = np.bincount(codes) / len(y)
    scatter = ((X - means[codes]) ** 2).sum(axis=0)
    sd = np.sqrt(scatter / (len(y) - len(labels)))
    return np.sqrt(shares)[:, None] * (means - X.mean(axis=0)) / sd, sd


def example(seed, d=8):
    rng = np.random.default_rng(seed)
    y = np.repeat(["ash", "birch", "cedar"], [20, 30, 25])
    X = rng.normal(size=(75, d)) * rng.uniform(0.1, 10.0, d)
    codes = np.unique(y, return_inverse=True)[1]
    return X + (rng.normal(size=(3, d)) * X.std(axis=0))[codes], y


def objective(M, strength, v):
    return ((M @ v) ** 2).sum() - strength * np.abs(v).sum()


def test_without_penalty_it_is_diagonal_lda():
    X, y = load_wine(return_X_y=True)
    model, wanted = dd.SparseLDA(penalty=0.0).fit(X, y), dd.LDA(shrinkage=1.0).fit(X, y)
    np.testing.assert_allclose(
        model.predict_log_proba(X), wanted.predict_log_proba(X), rtol=1e-8, atol=1e-8
    )
    directions = dd.Fisher(shrinkage=1.0).fit(X, y)
    np.testing.assert_allclose(np.abs(model.scalings_), np.abs(directions.scalings_), rtol=1e-5)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("penalty", [0.1, 0.15, 0.2])
def test_directions_satisfy_the_optimality_conditions(seed, penalty):
    X, y = example(seed, d=30)
    model = dd.SparseLDA(penalty=penalty).fit(X, y)
    M, sd = standardised_means(X, y)
    assert model.scalings_.shape[1] == 2 and (model.scalings_ == 0).any()
    for direction in model.scalings_.T:
        v = direction * sd
        assert np.linalg.norm(v) == pytest.approx(1.0, abs=1e-12)
        strength = penalty * np.linalg.norm(M, ord=2) ** 2
        slope = 2 * M.T @ (M @ v)
        used = v != 0
        factor = (slope - strength * np.sign(v))[used] / v[used]
        np.testing.assert_allclose(factor, factor.mean(), rtol=1e-6)
        assert factor.mean() >= 0 and (np.abs(slope[~used]) <= strength * (1 + 1e-9)).all()
        along = M @ v / np.linalg.norm(M @ v)  # later directions are uncorrelated with this one
        M = M - np.outer(along, along @ M)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("penalty", [0.1, 0.3])
def test_no_other_solver_improves_the_first_direction(seed, penalty):
    X, y = example(seed)
    M, sd = standardised_means(X, y)
    strength = penalty * np.linalg.norm(M, ord=2) ** 2
    v = dd.SparseLDA(penalty=penalty, n_components=1).fit(X, y).scalings_[:, 0] * sd
    d = len(v)

    def negative(parts):  # v is the difference of two vectors of positive parts
        return strength * parts.sum() - ((M @ (parts[:d] - parts[d:])) ** 2).sum()

    inside = {"type": "ineq", "fun": lambda p: 1.0 - ((p[:d] - p[d:]) ** 2).sum()}
    best = -np.inf
    rng = np.random.default_rng(seed)
    for start in [v, np.linalg.svd(M)[2][0], *rng.normal(size=(10, d))]:
        start = start / np.linalg.norm(start)
        parts = np.concatenate([np.maximum(start, 0), np.maximum(-start, 0)])
        result = minimize(negative, parts, bounds=[(0, 1)] * (2 * d), constraints=inside)
        if result.success:
            best = max(best, -result.fun)
    assert best > 0
    assert best <= objective(M, strength, v) * (1 + 1e-5)
    assert best >= objective(M, strength, v) * (1 - 1e-5)  # and it finds the same maximum


def test_the_unit_of_a_column_changes_nothing():
    X, y = example(1)
    scale = 10.0 ** np.arange(-4, 4)
    one, other = dd.SparseLDA().fit(X, y), dd.SparseLDA().fit(X * scale, y)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X * scale), atol=1e-8)
    np.testing.assert_allclose(one.transform(X), other.transform(X * scale), atol=1e-6)


def test_projections_are_those_of_the_scalings():
    X, y = example(2)
    model = dd.SparseLDA(penalty=0.2).fit(X, y)
    np.testing.assert_allclose(
        model.transform(X), (X - model.centre_) @ model.scalings_, rtol=1e-9, atol=1e-9
    )
    assert model.get_feature_names_out().tolist() == ["sparselda0", "sparselda1"]
    assert np.array_equal(model.support_, model.scalings_.any(axis=1))


def test_a_penalty_that_removes_every_feature_is_named():
    X, y = example(3)
    with pytest.warns(NoFeatureSelectedWarning, match=r"penalty=1.99 removes every feature"):
        model = dd.SparseLDA(penalty=1.99).fit(X, y)
    assert model.scalings_.shape == (8, 0) and set(model.predict(X)) == {"birch"}
    np.testing.assert_allclose(model.predict_proba(X[:1])[0], [20 / 75, 30 / 75, 25 / 75])
    with pytest.raises(OptionError, match="a number from 0 to less than 2, or 'cv'"):
        dd.SparseLDA(penalty=2.0).fit(X, y)


def test_the_grid_ends_where_every_feature_is_removed_and_sparser_models_have_fewer_features():
    X, y = example(4, d=40)
    path = dd.SparseLDA(penalty="cv").fit(X, y).cv_
    assert path.n_features[0] == 40 and path.n_features[-1] == 0 and path.penalty[0] == 0.0
    assert (np.diff(path.n_features) <= 0).mean() > 0.9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty": "auto"}, "penalty='auto'"),
        ({"n_components": 3}, r"None or a whole number from 1 to 2 \(3 classes\)"),
        ({"n_components": 0}, "None or a whole number of 1 or more"),
        ({"penalty": "cv", "penalties": [0.1, 2.0]}, "numbers from 0 to less than 2"),
        ({"tolerance": 0.0}, "a positive number"),
        ({"max_steps": 0}, "a whole number of 1 or more"),
    ],
    ids=str,
)
def test_invalid_options_are_named(options, message):
    with pytest.raises(OptionError, match=message):
        dd.SparseLDA(**options).fit(*example(0))


def test_too_few_steps_are_named():
    with pytest.warns(NotConvergedWarning, match="A sparse direction stopped after 1 steps"):
        dd.SparseLDA(penalty=0.3, max_steps=1).fit(*example(0))


@pytest.mark.filterwarnings("ignore::discriminant.errors.NoFeatureSelectedWarning")
def test_errors_from_fold_moments_are_those_of_models_fitted_to_each_training_set():
    X, y = example(5, d=12)
    X = X + 1.5 * np.random.default_rng(0).normal(size=X.shape) * X.std(axis=0)
    fold = np.arange(len(y)) % 4
    model = dd.SparseLDA(penalty="cv", penalties=[0.0, 0.1, 0.3, 0.7], folds=fold).fit(X, y)
    wrong, loss = np.zeros(4), np.zeros(4)
    codes = np.unique(y, return_inverse=True)[1]
    for f in range(4):
        for p, penalty in enumerate(model.cv_.penalty):
            fitted = dd.SparseLDA(penalty=penalty).fit(X[fold != f], y[fold != f])
            wrong[p] += (fitted.predict(X[fold == f]) != y[fold == f]).sum()
            logs = fitted.predict_log_proba(X[fold == f])
            loss[p] -= logs[np.arange(len(logs)), codes[fold == f]].sum()
    np.testing.assert_allclose(model.cv_.error, wrong / len(y), atol=1e-12)
    np.testing.assert_allclose(model.cv_.log_loss, loss / len(y), rtol=1e-9)
    assert model.penalty_ == model.cv_.penalty[model.cv_.best()]
