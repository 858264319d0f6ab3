"""ADASYN, borderline-SMOTE and Gaussian rows: those of imbalanced-learn, and their moments."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from imblearn.over_sampling import ADASYN, BorderlineSMOTE
from scipy import sparse
from sklearn.datasets import make_classification

import discriminant
from discriminant import LDA, QDA, Logistic, OneVsRest, Resampled, Reweighted
from discriminant.errors import OptionError, ResamplingError
from discriminant.imbalance.synthetic_rows import ClassAmongAll


def problem(classes=2, seed=0):
    weights = {2: [0.9, 0.1], 3: [0.7, 0.2, 0.1]}[classes]
    return make_classification(
        n_samples=400,
        n_features=6,
        n_informative=4,
        n_redundant=0,
        n_classes=classes,
        weights=weights,
        class_sep=0.7,
        random_state=seed,
    )


X, Y = problem()
X3, Y3 = problem(3)


def resample(method, rows, y, **options):
    options = {"random_state": np.random.RandomState(7), **options}
    return Resampled(LDA(), method, **options).resample(rows, y)


@pytest.mark.parametrize(("rows", "y"), [(X, Y), (X3, Y3)], ids=["two", "three"])
@pytest.mark.parametrize("neighbours", [3, 5])
def test_adasyn_rows_are_those_of_imbalanced_learn(rows, y, neighbours):
    peer = ADASYN(n_neighbors=neighbours, random_state=np.random.RandomState(7))
    theirs, labels = peer.fit_resample(rows, y)
    found, codes = resample("adasyn", rows, y, neighbours=neighbours)
    assert codes.tolist() == labels.tolist()
    np.testing.assert_allclose(found, theirs, atol=1e-12)


@pytest.mark.parametrize("kind", ["borderline-1", "borderline-2"])
@pytest.mark.parametrize("danger", [5, 10])
def test_borderline_rows_are_those_of_imbalanced_learn(kind, danger):
    peer = BorderlineSMOTE(m_neighbors=danger, kind=kind, random_state=np.random.RandomState(7))
    theirs, labels = peer.fit_resample(X, Y)
    found, codes = resample(kind, X, Y, danger_neighbours=danger)
    assert codes.tolist() == labels.tolist()
    np.testing.assert_allclose(found, theirs, atol=1e-12)
    rows = ClassAmongAll.of(X, Y, 1, 1).in_danger(danger)
    assert rows.tolist() == peer.in_danger_indices[1].tolist()


@pytest.mark.parametrize("kind", ["borderline-1", "borderline-2"])
def test_borderline_rows_of_several_classes_are_those_of_imbalanced_learn(kind):
    theirs, labels = BorderlineSMOTE(kind=kind, random_state=np.random.RandomState(7)).fit_resample(
        X3, Y3
    )
    found, codes = resample(kind, X3, Y3)
    assert codes.tolist() == labels.tolist()
    np.testing.assert_allclose(found, theirs, atol=1e-12)


@pytest.mark.parametrize("method", ["adasyn", "borderline-1", "borderline-2"])
def test_a_row_is_not_its_own_neighbour_among_equal_rows(method):
    """With each row twice, every row has its twin as the nearest neighbour."""
    rows, y = np.repeat(X, 2, axis=0), np.repeat(Y, 2)
    near = ClassAmongAll.of(rows, y, 1, 1)
    own = near._neighbours(near.rows, np.arange(len(y)), 3)
    assert not (own == near.rows[:, None]).any()
    assert {len(set(line)) for line in own.tolist()} == {3}
    assert len(resample(method, rows, y)[0]) > len(rows)


@pytest.mark.parametrize("method", ["adasyn", "borderline-1", "borderline-2", "gaussian"])
def test_synthetic_rows_do_not_depend_on_the_kind_of_table(method):
    found, codes = resample(method, X, Y)
    names = [f"c{j}" for j in range(X.shape[1])]
    for kind in (pd.DataFrame, lambda rows, columns: pl.DataFrame(rows, schema=columns)):
        frame, labels = resample(method, kind(X, columns=names), Y)
        assert list(frame.columns) == names and labels.tolist() == codes.tolist()
        np.testing.assert_allclose(frame.to_numpy(), found, atol=1e-12)
    thin, _ = resample(method, sparse.csr_array(X), Y)
    np.testing.assert_allclose(thin.toarray(), found, atol=1e-12)


@pytest.mark.parametrize("method", ["adasyn", "borderline-1", "gaussian"])
def test_a_resampled_model_fits_and_loads(method, tmp_path):
    model = Resampled(Logistic(), method).fit(X, Y)
    assert model.rows_.tolist() == np.bincount(model.resample(X, Y)[1]).tolist()
    model.save(tmp_path / "model.dd")
    loaded = discriminant.load(tmp_path / "model.dd")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_gaussian_rows_have_the_mean_and_covariance_of_the_class():
    target = {1: 200_000}
    found, _ = resample("gaussian", X, Y, strategy=target)
    new, rare = found[len(X) :], X[Y == 1]
    np.testing.assert_allclose(new.mean(axis=0), rare.mean(axis=0), atol=0.03)
    np.testing.assert_allclose(np.cov(new.T), np.cov(rare.T), atol=0.1)


def test_expected_moments_of_gaussian_rows_are_the_mean_over_draws():
    """Mean over draws of the scatter of the extended class: 1 + (r - 1 + n / m) / (n - 1) times."""
    rows, y = X[:120, :2], Y[:120]
    expected = Resampled(QDA(denominator="ml"), "gaussian").fit(rows, y)
    assert expected.expected_
    drawn = []
    for seed in range(2000):
        sample, codes = resample("gaussian", rows, y, random_state=seed)
        drawn.append(np.cov(sample[codes == 1].T, bias=True))
    mean = np.mean(drawn, axis=0)
    error = np.std(drawn, axis=0) / np.sqrt(len(drawn))
    exact = expected.estimator_.covariance_[1]
    assert (np.abs(mean - exact) < 5 * error).all()
    moments = discriminant.moments(rows, y)
    stored = Resampled(QDA(denominator="ml"), "gaussian").fit_moments(moments)
    np.testing.assert_allclose(stored.estimator_.covariance_, expected.estimator_.covariance_)


def test_gaussian_rows_of_wide_data_lie_in_the_span_of_the_class():
    wide = np.random.default_rng(0).normal(size=(14, 30))
    y = np.array([0] * 10 + [1] * 4)
    found, _ = resample("gaussian", wide, y)
    new, rare = found[14:], wide[10:]
    centred = rare - rare.mean(axis=0)
    basis = np.linalg.svd(centred, full_matrices=False)[2][:3]
    rest = (new - rare.mean(axis=0)) @ (np.eye(30) - basis.T @ basis)
    assert np.abs(rest).max() < 1e-10


def test_errors_say_what_to_do():
    apart = np.concatenate([np.zeros(30), np.full(8, 100.0)])[:, None] + np.arange(38)[:, None] / 50
    y = np.array([0] * 30 + [1] * 8)
    with pytest.raises(ResamplingError, match=r"Class '1' belong to the class|of class '1' belong"):
        resample("adasyn", apart, y)
    with pytest.raises(ResamplingError, match=r"No row of class '1' is in danger.*method='smote'"):
        resample("borderline-1", apart, y, danger_neighbours=5)
    with pytest.raises(ResamplingError, match=r"Class '1' has 1 row, and a Gaussian needs 2"):
        resample("gaussian", apart[:31], y[:31])
    frame = pd.DataFrame({"size": apart[:, 0], "kind": list("ab") * 19})
    with pytest.raises(ResamplingError, match=r"method='adasyn' needs numbers, and 1 column of X"):
        resample("adasyn", frame, y)
    with pytest.raises(OptionError, match=r"danger_neighbours=0"):
        resample("borderline-1", X, Y, danger_neighbours=0)
    moments = discriminant.moments(X, Y)
    with pytest.raises(OptionError, match=r"method='adasyn'"):
        Resampled(LDA(), "adasyn").fit_moments(moments)


# --- one-vs-rest ----------------------------------------------------------------------------------


def test_balanced_one_vs_rest_reweights_each_problem():
    model = OneVsRest(Logistic(ridge=0.01), balanced=True).fit(X3, Y3)
    scores = []
    for k in range(3):
        side = (k == Y3).astype(int)
        own = Reweighted(Logistic(ridge=0.01), "balanced").fit(X3, side)
        scores.append(own.decision_function(X3))
    np.testing.assert_allclose(model.decision_function(X3), np.column_stack(scores), rtol=1e-9)
    plain = OneVsRest(Logistic(ridge=0.01)).fit(X3, Y3)
    rarest = Y3 == 2
    assert (model.predict(X3) == Y3)[rarest].mean() > (plain.predict(X3) == Y3)[rarest].mean()
    # probabilities refer to the class shares of the rows
    np.testing.assert_allclose(
        model.predict_proba(X3).mean(axis=0), np.bincount(Y3) / len(Y3), atol=0.03
    )


def test_balanced_one_vs_rest_of_lda_reads_the_rows_and_loads(tmp_path):
    model = OneVsRest(LDA(), balanced=True)
    assert model.needs_rows and not OneVsRest(LDA()).needs_rows
    with pytest.raises(AttributeError, match=r"OneVsRest\(balanced=True\) is not fitted from"):
        model.fit_moments(discriminant.moments(X3, Y3))
    model.fit(X3, Y3).save(tmp_path / "model.dd")
    loaded = discriminant.load(tmp_path / "model.dd")
    np.testing.assert_array_equal(loaded.predict_proba(X3), model.predict_proba(X3))
    with pytest.raises(OptionError, match=r"balanced='yes'"):
        OneVsRest(LDA(), balanced="yes").fit(X3, Y3)
