"""Mixture discriminant analysis against exact densities, scikit-learn and single Gaussians."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture

import discriminant as dd
from discriminant.assessment.resampling.folds import content_folds
from discriminant.engines.dispatch import read_moments
from discriminant.errors import LabelError, MixtureError, NotConvergedWarning, OptionError
from discriminant.estimators.gaussian.mda import _StartSearch
from discriminant.table.memory import as_table


def two_groups(n=300, seed=0, d=2):
    """Rows of a class in the middle, and of a class with a group on each side."""
    rng = np.random.default_rng(seed)
    inner, outer = rng.normal(size=(n, d)), rng.normal(size=(n, d))
    outer[:, 0] += np.where(rng.random(n) < 0.4, -5.0, 5.0)
    outer[:, 1] *= 0.5
    return np.vstack([inner, outer]), np.repeat(["in", "out"], n)


# --- one component --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("structure", "single"),
    [("component", dd.QDA(denominator="ml")), ("class", dd.QDA(denominator="ml"))],
)
def test_one_component_per_class_is_qda(structure, single):
    X, y = two_groups()
    mixture = dd.MDA(components=1, covariance=structure).fit(X, y)
    wanted = single.fit(X, y)
    np.testing.assert_allclose(mixture.predict_proba(X), wanted.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(mixture.log_density(X), wanted.log_density(X), rtol=1e-11)


def test_one_component_and_one_covariance_is_lda():
    X, y = two_groups()
    mixture = dd.MDA(components=1, covariance="shared").fit(X, y)
    wanted = dd.LDA(denominator="ml").fit(X, y)
    np.testing.assert_allclose(mixture.predict_proba(X), wanted.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(mixture.log_density(X), wanted.log_density(X), rtol=1e-11)


# --- several components ---------------------------------------------------------------------------


def test_components_are_those_of_scikit_learn_in_each_class():
    X, y = two_groups(seed=3)
    model = dd.MDA(components={"in": 1, "out": 2}, covariance="component", tolerance=1e-12)
    model.fit(X, y)
    peer = GaussianMixture(2, n_init=3, tol=1e-12, max_iter=5000, reg_covar=0, random_state=0)
    peer.fit(X[y == "out"])
    ours, theirs = (np.argsort(means[:, 0]) for means in (model.means_[1:], peer.means_))
    np.testing.assert_allclose(model.means_[1:][ours], peer.means_[theirs], rtol=1e-6)
    np.testing.assert_allclose(model.shares_[1:][ours], peer.weights_[theirs], rtol=1e-6)
    np.testing.assert_allclose(
        model.covariances_[1:][ours], peer.covariances_[theirs], rtol=1e-6, atol=1e-8
    )
    inner = multivariate_normal(X[y == "in"].mean(0), np.cov(X[y == "in"].T, bias=True))
    total = peer.score(X[y == "out"]) * 300 + inner.logpdf(X[y == "in"]).sum()
    assert model.log_likelihood_ == pytest.approx(total, rel=1e-10)
    parameters = 2 + 3 + 2 * (2 + 3) + 1
    assert model.bic_ == pytest.approx(parameters * np.log(600) - 2 * total, rel=1e-10)


@pytest.mark.parametrize("structure", ["shared", "class", "component"])
def test_densities_are_sums_of_gaussian_densities(structure):
    X, y = two_groups(seed=1)
    model = dd.MDA(components=2, covariance=structure).fit(X, y)
    components = [
        share * multivariate_normal(mean, covariance).pdf(X)
        for share, mean, covariance in zip(
            model.shares_, model.means_, model.covariances_, strict=True
        )
    ]
    by_class = np.column_stack([sum(components[:2]), sum(components[2:])])
    np.testing.assert_allclose(model.log_density(X, by_class=True), np.log(by_class), rtol=1e-9)
    joint = by_class * model.prior_
    np.testing.assert_allclose(model.log_density(X), np.log(joint.sum(axis=1)), rtol=1e-9)
    wanted = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), wanted, atol=1e-11)
    own = np.log(by_class[np.arange(len(y)), (y == "out").astype(int)]).sum()
    assert model.log_likelihood_ == pytest.approx(own, rel=1e-5)
    rows, labels = model.sample(4000, seed=5)
    for label in ("in", "out"):
        np.testing.assert_allclose(
            rows[labels == label].mean(axis=0), X[y == label].mean(axis=0), atol=0.35
        )


@pytest.mark.parametrize("structure", ["shared", "class", "component"])
def test_every_step_increases_the_likelihood(structure):
    X, y = two_groups(seed=2, d=4)
    path = []
    with pytest.warns(NotConvergedWarning, match="EM stopped after 2 steps"):
        dd.MDA(
            components=3, covariance=structure, tolerance=1e-15, max_steps=2, starts=1,
            progress=lambda step, value: path.append(value),
        ).fit(X, y)  # fmt: skip
    dd.MDA(
        components=3, covariance=structure, tolerance=1e-8, starts=1,
        progress=lambda step, value: path.append(value),
    ).fit(X, y)  # fmt: skip
    assert np.all(np.diff(path[:2]) >= -1e-9) and np.all(np.diff(path[2:]) >= -1e-9)


def test_numbers_and_covariances_are_chosen_by_bic():
    X, y = two_groups(n=600, seed=4)
    model = dd.MDA().fit(X, y)
    assert model.components_.tolist() == [1, 2]
    assert model.covariance_structure_ == "class"  # the two groups of a class differ in their means
    others = [
        dd.MDA(components={"in": a, "out": b}, covariance=structure).fit(X, y).bic_
        for a, b in [(1, 1), (1, 2), (2, 2), (1, 3)]
        for structure in ("shared", "class", "component")
    ]
    assert model.bic_ == pytest.approx(min(others), rel=1e-6)


def three_groups(n, seed):
    """Rows of a class of one group and of a class of three."""
    rng = np.random.default_rng(seed)
    middles = np.array([[-6.0, 0.0], [0.0, 6.0], [6.0, 0.0]])[rng.integers(3, size=n)]
    rows = np.vstack([rng.normal(size=(n, 2)), middles + rng.normal(size=(n, 2))])
    return rows, np.repeat(["in", "out"], n)


def test_held_out_densities_are_those_of_scikit_learn():
    X, y = three_groups(240, 2)
    model, table = dd.MDA(components="cv", covariance="component", tolerance=1e-9), as_table(X, y)
    search = _StartSearch.of(model, table, read_moments(table, detail="class").anchor)
    whole = search._model("component", search.sample).restrict(1)
    losses = [search._held_out_loss(whole, search._rows_of(1), c) for c in (1, 2, 3)]
    own = X[y == "out"]
    fold = content_folds(own, np.zeros(len(own), dtype=np.intp), None, 10)
    held = np.zeros(3)
    for f in range(10):
        for c in range(3):
            peer = GaussianMixture(c + 1, n_init=5, tol=1e-9, max_iter=999, reg_covar=0)
            peer.set_params(random_state=0).fit(own[fold != f])
            held[c] -= peer.score_samples(own[fold == f]).sum()
    # two components for three groups have several maxima of nearly the same likelihood
    assert losses[2] - losses[0] == pytest.approx(held[2] - held[0], rel=1e-5)
    assert model.set_params(max_components=3).fit(X, y).components_[1] == 1 + held.argmin() == 3


def test_numbers_chosen_by_folds_are_the_same_in_partitions_and_with_weights(tmp_path):
    X, y = three_groups(60, 3)
    times = np.random.default_rng(0).integers(1, 3, len(y))
    options = {"components": "cv", "covariance": "class", "max_components": 4}
    weighted = dd.MDA(**options).fit(X, y, sample_weight=times.astype(float))
    repeated = dd.MDA(**options).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.means_, repeated.means_, rtol=1e-9)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=y)
    for part in range(3):
        frame.iloc[part::3].to_parquet(tmp_path / f"{part}.parquet")
    rows = dd.rows(str(tmp_path / "*.parquet"), target="y", engine="files")
    memory, parts = dd.MDA(**options).fit(X, y), dd.MDA(**options).fit(rows)
    assert memory.components_.tolist() == parts.components_.tolist() == [1, 3]
    np.testing.assert_allclose(parts.means_, memory.means_, rtol=1e-9)


def test_classes_of_few_rows_have_one_component_by_folds():
    X, y = np.array([[0.0], [1.0], [5.0], [7.0], [6.0]]), [0, 0, 1, 1, 1]
    assert dd.MDA(components="cv", covariance="shared").fit(X, y).components_.tolist() == [1, 1]
    with pytest.raises(OptionError, match="'bic', 'cv', a whole number"):
        dd.MDA(components="aic").fit(X, y)


# --- truth ----------------------------------------------------------------------------------------

DESIGNS = {
    "groups": ([[0, 0], [5, 0], [-5, 0]], [0, 1, 1], [np.eye(2)] * 3),
    "nested": ([[0, 0], [0, 0], [4, 4]], [0, 1, 1], [0.5 * np.eye(2), 6 * np.eye(2), np.eye(2)]),
    "in a row": ([[-6, 0], [-2, 0], [2, 0], [6, 0]], [0, 1, 0, 1], [np.eye(2)] * 4),
}


@pytest.mark.parametrize("design", DESIGNS)
def test_error_is_close_to_that_of_the_true_densities(design):
    means, classes, covariances = DESIGNS[design]
    rng, C = np.random.default_rng(11), len(means)

    def draw(n):
        codes = rng.integers(0, C, n)
        noise = rng.normal(size=(n, 2))
        roots = np.linalg.cholesky(np.array(covariances))[codes]
        return np.array(means)[codes] + (roots @ noise[:, :, None])[:, :, 0], np.array(classes)[
            codes
        ]

    X, y = draw(5000)
    new, truth = draw(100_000)
    densities = [
        multivariate_normal(m, s).pdf(new) for m, s in zip(means, covariances, strict=True)
    ]
    sums = np.zeros((len(new), 2))
    for k, density in zip(classes, densities, strict=True):
        sums[:, k] += density
    bayes = np.mean(sums.argmax(axis=1) != truth)
    error = np.mean(dd.MDA().fit(X, y).predict(new) != truth)
    assert error <= bayes + 0.01
    assert np.mean(dd.QDA().fit(X, y).predict(new) != truth) > error


# --- laws -----------------------------------------------------------------------------------------


def test_rows_in_partitions_give_the_same_model(tmp_path):
    X, y = two_groups(n=2500, seed=6)  # more rows than the sample has
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(y=y)
    for part in range(5):
        frame.iloc[part::5].to_parquet(tmp_path / f"{part}.parquet")
    rows = dd.rows(str(tmp_path / "*.parquet"), target="y", engine="files")
    options = {"covariance": "component", "components": {"in": 2, "out": 3}}
    memory, parts = dd.MDA(**options).fit(X, y), dd.MDA(**options).fit(rows)
    assert memory.n_iter_ == parts.n_iter_ > 1
    np.testing.assert_allclose(parts.means_, memory.means_, rtol=1e-9)
    np.testing.assert_allclose(
        parts.predict_proba(frame[["a", "b"]]), memory.predict_proba(X), atol=1e-9
    )


@pytest.mark.parametrize("structure", ["shared", "class", "component"])
def test_weights_are_repetitions_and_the_order_of_rows_does_not_matter(structure):
    X, y = two_groups(seed=7)
    times = np.random.default_rng(0).integers(0, 3, len(y))
    options = {"components": 2, "covariance": structure}
    weighted = dd.MDA(**options).fit(X, y, sample_weight=times.astype(float))
    order = np.random.default_rng(1).permutation(times.sum())
    repeated = dd.MDA(**options).fit(np.repeat(X, times, 0)[order], np.repeat(y, times)[order])
    np.testing.assert_allclose(weighted.means_, repeated.means_, rtol=1e-9)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("structure", ["shared", "class", "component"])
def test_posteriors_do_not_depend_on_units(structure):
    X, y = two_groups(seed=8)
    scale, shift = np.array([1e-6, 1e6]), np.array([3.0, -1e7])
    options = {"components": {"in": 1, "out": 2}, "covariance": structure, "tolerance": 1e-12}
    model, scaled = dd.MDA(**options).fit(X, y), dd.MDA(**options).fit(X * scale + shift, y)
    np.testing.assert_allclose(
        scaled.predict_proba(X * scale + shift), model.predict_proba(X), atol=1e-6
    )


def test_missing_features_are_integrated_out():
    X, y = two_groups(seed=9)
    model = dd.MDA(components=2, covariance="component").fit(X, y)
    rows = np.array([[1.5, np.nan], [np.nan, 0.3], [np.nan, np.nan], [0.2, 0.1]])
    scores = model.marginal_scores(rows)
    found = np.exp(scores - scores.max(axis=1, keepdims=True))
    found /= found.sum(axis=1, keepdims=True)

    def density(k, row):
        return np.exp(model.log_density([row], by_class=True)[0, k]) * model.prior_[k]

    for i, j in ((0, 1), (1, 0)):

        def at(value, k, i=i, j=j):
            row = rows[i].copy()
            row[j] = value
            return density(k, row)

        wanted = np.array([quad(at, -15, 15, args=(k,), limit=200)[0] for k in range(2)])
        np.testing.assert_allclose(found[i], wanted / wanted.sum(), rtol=1e-6)
    np.testing.assert_allclose(found[2], model.prior_, rtol=1e-12)
    np.testing.assert_allclose(found[3], model.predict_proba(rows[3:])[0], rtol=1e-9)


def test_priors_of_a_prediction_replace_those_of_the_fit():
    X, y = two_groups(seed=10)
    rare = {"in": 0.9, "out": 0.1}
    model, other = dd.MDA(components=2).fit(X, y), dd.MDA(components=2, prior=rare).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X, rare), other.predict_proba(X), atol=1e-12)


def test_model_is_saved_and_exported(tmp_path):
    X, y = two_groups(seed=12)
    model = dd.MDA(components=2, covariance="component").fit(X, y)
    model.save(tmp_path / "model.dda")
    loaded = dd.load(tmp_path / "model.dda")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.log_density(X), model.log_density(X))


# --- bad input ------------------------------------------------------------------------------------


def test_more_components_than_rows_is_an_error():
    X, y = two_groups(n=4)
    with pytest.raises(
        MixtureError, match="components=5 for class 'in', which has 4 different rows"
    ):
        dd.MDA(components=5).fit(X, y)


def test_class_of_identical_rows_has_one_component():
    X, y = two_groups()
    X[y == "in"] = 0.5
    with pytest.raises(
        MixtureError, match="components=2 for class 'in', which has 1 different row:"
    ):
        dd.MDA(components=2).fit(X, y)


def test_collapsed_component_is_an_error_with_a_way_out():
    X, y = two_groups(n=30)
    with pytest.raises(MixtureError, match=r"collapsed.*components='bic', shrinkage > 0"):
        dd.MDA(components=15, covariance="component").fit(X, y)
    assert dd.MDA(components=3, covariance="component", shrinkage=0.5).fit(X, y).converged_


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("components", 0),
        ("components", "aic"),
        ("components", {"in": 1.5}),
        ("covariance", "full"),
        ("shrinkage", 1.5),
        ("tolerance", 0.0),
        ("starts", 0),
        ("max_steps", 2.5),
        ("max_components", -1),
        ("random_state", -1),
    ],
)
def test_invalid_option_is_named(option, value):
    X, y = two_groups(n=10)
    with pytest.raises(OptionError, match=option):
        dd.MDA(**{option: value}).fit(X, y)


def test_unknown_label_of_components_is_named():
    X, y = two_groups(n=10)
    with pytest.raises(LabelError, match="middle"):
        dd.MDA(components={"middle": 2}).fit(X, y)
