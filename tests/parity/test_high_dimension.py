"""Sparse and shrunken discriminants: parity with pamr, sda and corpcor, and published figures."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import NearestCentroid

import discriminant as dd
from discriminant.errors import NoFeatureSelectedWarning
from tests.parity.golden import frozen, rows_of

PAM = frozen("shrunken_centroids")
CORPCOR = frozen("corpcor")
PAM_CASES = [
    (name, percent, number)
    for name, by_percent in PAM["sets"].items()
    for percent, answers in by_percent.items()
    for number in range(len(answers))
]


# --- golden files ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "percent", "number"), PAM_CASES)
@pytest.mark.filterwarnings("ignore::discriminant.errors.NoFeatureSelectedWarning")
def test_shrunken_centroids_follow_the_published_formulas(name, percent, number):
    golden, (X, y) = PAM["sets"][name][percent][number], rows_of(name)
    model = dd.ShrunkenCentroids(threshold=golden["threshold"], offset_percent=float(percent))
    model.fit(X, y)
    assert np.flatnonzero(model.support_).tolist() == golden["selected"]
    assert model.offset_ == pytest.approx(golden["offset"], rel=1e-12)
    np.testing.assert_allclose(model.centroids_, golden["centroids"], rtol=1e-11)
    rows = X[:: PAM["every"]]
    np.testing.assert_allclose(model.predict_proba(rows), golden["posterior"], atol=1e-11)


@pytest.mark.parametrize(("name", "percent", "number"), PAM_CASES)
@pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")
def test_errors_from_fold_moments_are_those_of_models_fitted_to_each_training_set(
    name, percent, number
):
    (X, y), answers = rows_of(name), PAM["sets"][name][percent]
    model = dd.ShrunkenCentroids(
        threshold="cv",
        offset_percent=float(percent),
        thresholds=[each["threshold"] for each in answers],
        folds=np.arange(len(y)) % PAM["folds"],
    ).fit(X, y)
    wrong = round(float(model.cv_.error[number] * len(y)))
    assert wrong == answers[number]["held_out_errors"]


@pytest.mark.parametrize("name", CORPCOR["sets"])
def test_sda_shrinks_as_corpcor_does(name):
    golden, (X, y) = CORPCOR["sets"][name], rows_of(name)
    model = dd.SDA().fit(X, y)
    assert model.shrinkage_ == pytest.approx(golden["lambda"], rel=1e-9)
    assert model.variance_shrinkage_ == pytest.approx(golden["lambda_var"], rel=1e-9)
    assert model.frequency_shrinkage_ == pytest.approx(golden["lambda_freqs"], rel=1e-9)
    np.testing.assert_allclose(model.prior_, golden["shares"], rtol=1e-12)
    np.testing.assert_allclose(model.cat_scores_, golden["cat_scores"], rtol=1e-8, atol=1e-9)
    rows = X[:: CORPCOR["every"]]
    np.testing.assert_allclose(model.predict_proba(rows), golden["posterior"], atol=1e-9)
    t = dd.SDA(shrinkage=1.0).fit(X, y)
    np.testing.assert_allclose(t.cat_scores_, golden["t_scores"], rtol=1e-9, atol=1e-12)


# --- real data ------------------------------------------------------------------------------------


def read_set(folder, name, part):
    X = pd.read_parquet(folder / name / f"x_{part}.parquet")
    y = pd.read_csv(folder / name / f"labels_{part}.csv")["class"].to_numpy()
    values = X.select_dtypes("number").to_numpy(dtype=float)
    return (values.T if values.shape[1] == len(y) else values), y


def errors_of(model, X, y):
    return int((model.predict(X) != y).sum())


@pytest.fixture(scope="module")
def khan(shared_data):
    """Training and test rows of the blue cell tumours, with the answers of pamr and sda."""
    folder = shared_data / "khan_srbct"
    reference = json.loads((folder / "reference.json").read_text())
    return (
        *read_set(shared_data, "khan_srbct", "train"),
        *read_set(shared_data, "khan_srbct", "test"),
        reference,
    )


@pytest.mark.filterwarnings("ignore::discriminant.errors.NoFeatureSelectedWarning")
def test_khan_thresholds_select_the_genes_and_make_the_errors_of_pamr(khan):
    X, y, new, truth, reference = khan
    golden = reference["nearest_shrunken_centroids"]
    numbers, train, test = [], [], []
    for threshold in golden["threshold"]:
        model = dd.ShrunkenCentroids(threshold=threshold).fit(X, y)
        numbers.append(model.n_selected_)
        train.append(errors_of(model, X, y))
        test.append(errors_of(model, new, truth))
    assert numbers == golden["nonzero"]
    assert train == golden["train_errors"]
    assert test == golden["test_errors"]


def test_khan_published_figure_43_genes_and_no_error(khan):
    X, y, new, truth, reference = khan
    golden = reference["nearest_shrunken_centroids"]
    model = dd.ShrunkenCentroids(threshold=4.34).fit(X, y)
    assert (model.n_selected_, errors_of(model, new, truth)) == (43, 0)
    assert (np.flatnonzero(model.support_) + 1).tolist() == golden["genes_4.34"]
    assert model.offset_ == pytest.approx(golden["s0"], rel=1e-12)
    np.testing.assert_allclose(model.scales_[:20], golden["sd_plus_s0_first20"], rtol=1e-11)
    found = model.predict_proba(new)
    np.testing.assert_allclose(found, golden["posterior_test_threshold_4.34"], atol=1e-11)


def test_khan_threshold_chosen_by_cross_validation_is_the_largest_without_held_out_error(khan):
    X, y, new, truth, _ = khan
    model = dd.ShrunkenCentroids(threshold="cv").fit(X, y)
    assert 4.0 < model.threshold_ < 4.3  # pamr makes 1 test error at 4, and none at 4.3
    assert model.cv_.error.min() == 0.0 and errors_of(model, new, truth) <= 1
    path = model.cv_
    best = path.best()
    assert model.threshold_ == path.penalty[best] and model.n_selected_ == path.n_features[best]
    assert (
        path.error[best] == path.error.min() and (path.error[best + 1 :] > path.error[best]).all()
    )


@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_khan_sda_with_all_genes_is_that_of_sda(khan, kind):
    X, y, new, truth, reference = khan
    golden = reference["sda"][kind]
    model = dd.SDA(shrinkage=1.0 if kind == "diagonal" else "auto").fit(X, y)
    wanted = golden["regularization"]
    assert model.shrinkage_ == pytest.approx(wanted["lambda"], rel=1e-9)
    assert model.variance_shrinkage_ == pytest.approx(wanted["lambda.var"], rel=1e-9)
    assert model.frequency_shrinkage_ == pytest.approx(wanted["lambda.freqs"], rel=1e-9)
    assert errors_of(model, new, truth) == golden["test_errors"]
    np.testing.assert_allclose(model.predict_proba(new), golden["posterior_test"], atol=1e-7)
    if kind == "full":
        # coefficients differ by a vector that all classes share
        ours = model.coef_[:, :20] - model.coef_[:1, :20]
        theirs = np.array(golden["beta_first20"])
        np.testing.assert_allclose(ours, theirs - theirs[:1], rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(("shrinkage", "genes", "errors"), [(1.0, 99, 1), ("auto", 97, 0)])
def test_khan_sda_with_selected_genes_makes_the_published_errors(khan, shrinkage, genes, errors):
    X, y, new, truth, _ = khan
    model = dd.SDA(n_features=genes, shrinkage=shrinkage).fit(X, y)
    assert model.n_selected_ == genes == len(model.ranking_)
    assert errors_of(model, new, truth) == errors


def test_colon_genes_and_errors_are_those_of_pamr_and_sda(shared_data):
    X, y = read_set(shared_data, "alon_colon", "all")
    X = np.log2(X)
    reference = json.loads((shared_data / "alon_colon" / "reference.json").read_text())
    golden = reference["nsc"]
    for threshold, genes, errors in zip(
        golden["threshold"], golden["nonzero"], golden["train_errors"], strict=True
    ):
        model = dd.ShrunkenCentroids(threshold=threshold)
        if genes:
            model.fit(X, y)
        else:
            with pytest.warns(NoFeatureSelectedWarning, match="removes every feature"):
                model.fit(X, y)
        assert (model.n_selected_, errors_of(model, X, y)) == (genes, errors)
    full = dd.SDA().fit(X, y)
    wanted = reference["sda_full"]["regularization"]
    assert full.shrinkage_ == pytest.approx(wanted["lambda"], rel=1e-9)
    assert full.variance_shrinkage_ == pytest.approx(wanted["lambda.var"], rel=1e-9)
    assert errors_of(full, X, y) == reference["sda_full"]["train_errors"]


def test_colon_leave_one_out_of_diagonal_rules_is_that_of_r(shared_data):
    X, y = read_set(shared_data, "alon_colon", "all")
    reference = json.loads((shared_data / "alon_colon" / "reference.json").read_text())
    golden = reference["diagonal_lda"]
    for model in (dd.LDA(shrinkage=1.0), dd.SparseLDA(penalty=0.0)):
        held_out = dd.leave_one_out(model, np.log2(X), y)
        assert round(held_out.error * len(y)) == golden["loo_errors"]


@pytest.mark.parametrize("threshold", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("name", PAM["sets"])
def test_centroids_are_those_of_scikit_learn(name, threshold):
    X, y = rows_of(name)
    peer = NearestCentroid(shrink_threshold=threshold or None).fit(X, y)
    model = dd.ShrunkenCentroids(threshold=threshold).fit(X, y)
    np.testing.assert_allclose(model.centroids_, peer.centroids_, rtol=1e-10)
