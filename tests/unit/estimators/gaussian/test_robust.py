"""Robust LDA and QDA: parity with R's rrcov, breakdown, reports of outlying rows, invalid input."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

import discriminant as dd
from discriminant.errors import (
    NeedsMemoryError,
    NoRobustEstimateWarning,
    OptionError,
    WeightError,
)
from tests.parity.golden import answers, rows_of

SETS = answers("robust")
BOTH = [dd.RobustLDA(), dd.RobustQDA()]
both = pytest.mark.parametrize("model", BOTH, ids=repr)


def rows_of_set(name):
    features, codes = rows_of(name.removeprefix("shifted_"))
    if name.endswith("iris"):  # more than half of setosa have the same petal width
        features = features[:, :3]
    if name.startswith("shifted"):
        features = features.copy()
        features[::12] += 10
    return features, codes


def three_classes(rng, shifted):
    """600 rows of three classes in four features, some of them shifted; and 5,000 clean rows."""
    centres = 2.65 * np.eye(4)[:3]
    codes = np.repeat([0, 1, 2], 200)
    X = centres[codes] + rng.normal(size=(600, 4))
    wrong = rng.choice(600, int(shifted * 600), replace=False)
    X[wrong] += [10.0, -10.0, 10.0, -10.0]  # 10 sd in every feature
    new = rng.integers(0, 3, 5000)
    return X, codes, wrong, centres[new] + rng.normal(size=(5000, 4)), new


# --- parity with rrcov ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(("model", "golden"), [(dd.RobustLDA(), "lda"), (dd.RobustQDA(), "qda")])
def test_posteriors_are_those_of_rrcov(name, model, golden):
    features, codes = rows_of_set(name)
    model = clone(model).fit(features, codes)
    wanted, rows = SETS[name][golden], SETS[name]["rows"]
    posterior = model.predict_proba(features[rows])
    np.testing.assert_allclose(posterior, wanted["posterior"], rtol=0, atol=1e-8)
    assert model.predict(features[rows]).tolist() == wanted["class"]


@pytest.mark.parametrize("name", SETS)
def test_means_and_covariance_are_those_of_linda(name):
    features, codes = rows_of_set(name)
    model = dd.RobustLDA().fit(features, codes)
    wanted = SETS[name]["lda"]
    sd = np.sqrt(np.diagonal(wanted["cov"]))
    np.testing.assert_allclose(model.means_ / sd, wanted["means"] / sd, rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        model.covariance_ / sd[:, None] / sd, wanted["cov"] / sd[:, None] / sd, atol=1e-9
    )


@both
def test_distances_are_those_from_the_own_class(model):
    features, codes = rows_of_set("shifted_iris")
    model = clone(model).fit(features, codes)
    own = model.mahalanobis(features)[np.arange(150), codes]
    np.testing.assert_allclose(model.distances_, own, rtol=1e-12)
    assert model.outlying_[::12].all()  # the shifted rows
    assert model.outlying_.mean() < 0.25


# --- breakdown ------------------------------------------------------------------------------------


def accuracies(draws, shifted):
    rows = []
    for seed in range(draws):
        X, codes, _, new, truth = three_classes(np.random.default_rng(seed), shifted)
        models = [dd.LDA(), dd.RobustLDA(), dd.RobustQDA()]
        rows.append([np.mean(model.fit(X, codes).predict(new) == truth) for model in models])
    return np.mean(rows, axis=0)


@pytest.mark.parametrize("draws", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_shifted_rows_lower_the_accuracy_of_lda_only(draws):
    clean, shifted = accuracies(draws, 0.0), accuracies(draws, 0.08)
    assert clean[0] == pytest.approx(0.945, abs=0.005)
    assert shifted[0] < 0.89
    assert (shifted[1:] > 0.94).all() and (clean[1:] > clean[0] - 0.004).all()


@both
def test_outlying_rows_are_reported(model):
    X, codes, wrong, _, _ = three_classes(np.random.default_rng(1), 0.08)
    model = clone(model).fit(X, codes)
    assert model.outlying_[wrong].mean() > 0.95
    assert np.delete(model.outlying_, wrong).mean() < 0.06


@both
def test_without_outlying_rows_the_estimates_are_close_to_the_ordinary_ones(model):
    X, codes, _, new, _ = three_classes(np.random.default_rng(2), 0.0)
    plain = {"RobustLDA": dd.LDA(), "RobustQDA": dd.QDA()}[type(model).__name__].fit(X, codes)
    same = np.mean(clone(model).fit(X, codes).predict(new) == plain.predict(new))
    assert same > 0.97


# --- laws -----------------------------------------------------------------------------------------


@both
def test_a_weight_of_two_counts_as_two_rows_and_zero_as_none(model):
    X, codes = rows_of_set("iris")
    repeats = np.random.default_rng(0).integers(0, 4, 150)
    weighted = clone(model).fit(X, codes, sample_weight=repeats)
    repeated = clone(model).fit(np.repeat(X, repeats, axis=0), np.repeat(codes, repeats))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-10)
    assert len(weighted.outlying_) == 150


@both
def test_the_order_of_rows_changes_nothing(model):
    X, codes = rows_of_set("shifted_iris")
    order = np.random.default_rng(0).permutation(150)
    first, second = clone(model).fit(X, codes), clone(model).fit(X[order], codes[order])
    np.testing.assert_allclose(first.predict_proba(X), second.predict_proba(X), atol=1e-12)
    assert np.array_equal(first.outlying_[order], second.outlying_)


@both
def test_scores_of_missing_features_are_those_of_a_model_with_the_same_moments(model):
    X, codes = rows_of_set("shifted_iris")
    model = clone(model).fit(X, codes)
    part = np.array([5.0, np.nan, 4.0])
    scores = model.marginal_scores(part[None])
    means, covariance = model.means_, np.broadcast_to(model.covariance_, (3, 3, 3))
    wanted = []
    for mean, each in zip(means, covariance, strict=True):
        block, gap = each[np.ix_([0, 2], [0, 2])], part[[0, 2]] - mean[[0, 2]]
        wanted.append(-0.5 * (gap @ np.linalg.solve(block, gap) + np.linalg.slogdet(block)[1]))
    np.testing.assert_allclose(np.diff(scores[0]), np.diff(wanted), rtol=1e-8)


@both
def test_cross_validation_refits_to_rows(model):
    X, codes, _, _, _ = three_classes(np.random.default_rng(4), 0.08)
    fold = np.arange(600) % 5
    held = dd.cross_validate(model, X, codes, fold)
    for f in (0, 3):
        fitted = clone(model).fit(X[fold != f], codes[fold != f])
        wanted = fitted.predict_log_proba(X[fold == f])
        np.testing.assert_allclose(held.log_posterior[fold == f], wanted, rtol=1e-10, atol=1e-10)


@both
def test_partitioned_rows_in_memory_give_the_same_model(model, tmp_path):
    import pandas as pd

    X, codes = rows_of_set("shifted_iris")
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=codes)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    table = dd.rows(tmp_path / "rows.csv", target="y", engine="files")
    partitioned = clone(model).fit(table)
    wanted = clone(model).fit(frame[list("abc")], frame["y"].astype(str))
    np.testing.assert_allclose(partitioned.covariance_, wanted.covariance_, rtol=1e-9, atol=1e-12)


@both
def test_a_saved_model_has_the_same_attributes(model, tmp_path):
    X, codes = rows_of_set("shifted_iris")
    model = clone(model).fit(X, codes)
    model.save(tmp_path / "robust.model")
    loaded = dd.load(tmp_path / "robust.model")
    assert np.array_equal(loaded.outlying_, model.outlying_)
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))


# --- invalid input --------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("fraction", [0.4, 1.1, "half", None, float("nan")])
def test_an_invalid_fraction_is_an_error(model, fraction):
    X, codes = rows_of_set("iris")
    with pytest.raises(OptionError, match=r"support_fraction=.* a number from 0\.5 to 1"):
        clone(model).set_params(support_fraction=fraction).fit(X, codes)


@pytest.mark.parametrize("shrinkage", [0.3, 1.0])
@both
def test_robust_covariances_can_be_shrunk(model, shrinkage):
    X, codes = rows_of_set("shifted_iris")
    plain = clone(model).fit(X, codes).covariance_
    diagonal = plain * np.eye(3)
    shrunk = clone(model).set_params(shrinkage=shrinkage).fit(X, codes)
    wanted = (1 - shrinkage) * plain + shrinkage * diagonal
    np.testing.assert_allclose(shrunk.covariance_, wanted, rtol=1e-10, atol=1e-12)


@both
@pytest.mark.parametrize("shrinkage", ["auto", 2.0])
def test_an_invalid_shrinkage_is_an_error(model, shrinkage):
    with pytest.raises(OptionError, match=r"shrinkage=.* a number from 0 to 1"):
        clone(model).set_params(shrinkage=shrinkage).fit(*rows_of_set("iris"))


def few(rows=5):
    X, codes = rows_of_set("iris")
    keep = np.concatenate([np.arange(100), np.arange(100, 100 + rows)])
    return X[keep], codes[keep]


def test_a_class_with_few_rows_gets_medians_in_lda():
    X, codes = few()
    with pytest.warns(NoRobustEstimateWarning, match=r"Class '2' has 5 rows for 3 features.* 6\."):
        model = dd.RobustLDA().fit(X, codes)
    gap = model.means_[2] - np.median(X[codes == 2], axis=0)
    np.testing.assert_allclose(gap, 0.0, atol=0.2)  # the common correction of all classes
    assert model.score(X, codes) > 0.95


def test_a_class_with_few_rows_gets_its_ordinary_covariance_in_qda():
    X, codes = few()
    with pytest.warns() as caught:
        model = dd.RobustQDA().fit(X, codes)
    assert any("ordinary mean and covariance" in str(each.message) for each in caught)
    np.testing.assert_allclose(model.covariance_[2], np.cov(X[codes == 2].T), rtol=1e-9)
    np.testing.assert_allclose(model.means_[2], X[codes == 2].mean(axis=0))


@both
def test_a_class_of_equal_rows_is_named(model):
    X, codes = rows_of_set("iris")
    X = X.copy()
    X[codes == 1] = X[codes == 1][0]
    with pytest.warns() as caught:
        model = clone(model).fit(X, codes)
    text = str(next(w.message for w in caught if w.category is NoRobustEstimateWarning))
    assert "Class '1' has equal values of 'x0', 'x1', 'x2' in half of its rows" in text
    np.testing.assert_allclose(model.means_[1], X[codes == 1][0], atol=0.3)
    assert np.isfinite(model.predict_log_proba(X)).any(axis=1).all()


@both
def test_a_feature_with_half_equal_values_is_named(model):
    X, codes = rows_of_set("iris")
    X = X.copy()
    X[:30, 2] = 1.5
    with pytest.warns(NoRobustEstimateWarning, match="Class '0' has equal values of 'x2' in half"):
        clone(model).fit(X, codes)


@both
def test_linearly_dependent_rows_are_named(model):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(120, 3)), 2)
    X[:, 2] = X[:, 0] + X[:, 1]
    y = np.repeat(["a", "b"], 60)
    with pytest.warns() as caught:
        clone(model).fit(X, y)
    texts = [str(w.message) for w in caught if w.category is NoRobustEstimateWarning]
    assert any("linearly dependent columns in half of its rows" in text for text in texts)


@both
def test_weights_that_are_not_whole_are_an_error(model):
    X, codes = rows_of_set("iris")
    weight = np.ones(150)
    weight[3] = 0.5
    with pytest.raises(WeightError, match=r"row 3 .* is 0\.5: .* must be whole numbers"):
        clone(model).fit(X, codes, sample_weight=weight)


@both
def test_moments_and_batches_are_refused(model):
    X, codes = rows_of_set("iris")
    with pytest.raises(OptionError, match="moments include the outlying rows"):
        clone(model).fit_moments(dd.moments(X, codes))
    assert not hasattr(model, "partial_fit") and not hasattr(model, "forget")
    with pytest.raises(AttributeError, match="robust estimates are not sums over rows"):
        model.partial_fit(X, codes)


@both
def test_rows_beyond_memory_are_refused_with_the_way_out(model, tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60_000, 3)), columns=list("abc"))
    frame["y"] = np.where(frame["a"] > 0, "u", "v")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    table = dd.rows(tmp_path / "rows.csv", target="y", engine="files")
    assert not table.sample_is_complete
    with pytest.raises(NeedsMemoryError, match=type(model).__name__):
        clone(model).fit(table)


@both
def test_clean_rows_cause_no_warning(model):
    X, codes = rows_of_set("iris")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(model).fit(X + 1e-3 * np.random.default_rng(0).normal(size=X.shape), codes)
