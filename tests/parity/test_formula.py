"""Formulas against R: model matrices with the names of their columns, glm and lda by formula."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant import GLM, LDA, LinearRegression, Logistic
from discriminant.errors import CollinearWarning
from tests.parity.golden import frozen
from tests.shared.paths import SHARED

R = frozen("formula")
LEVELS = {"a": ["p", "q", "r"], "b": ["no", "yes"]}
BIRTHS = SHARED / "glm_classics" / "birthwt.csv"

needs_births = pytest.mark.skipif(not BIRTHS.is_file(), reason=f"{BIRTHS} is not here")


def frame_of(name):
    columns = {key: np.asarray(values) for key, values in R[name].items()}
    frame = pd.DataFrame(columns)
    for column, levels in LEVELS.items():
        frame[column] = pd.Categorical(frame[column], categories=levels)
    return frame.assign(flag=frame["flag"] > 0, y=np.arange(len(frame)) % 7.0)


@pytest.mark.parametrize("text", R["matrices"])
def test_features_are_those_of_the_model_matrix(text):
    """Names, order and values, in the rows of the fit and in new rows."""
    golden = R["matrices"][text]
    columns = np.array(golden["rows"])
    deficient = np.linalg.matrix_rank(columns) < columns.shape[1]
    with pytest.warns(CollinearWarning) if deficient else nullcontext():
        model = LinearRegression.from_formula(f"y ~ {text}", frame_of("table"))
    assert list(model.encoding_.features) == golden["names"]
    np.testing.assert_allclose(model.encode(frame_of("table")), golden["rows"], atol=1e-11)
    np.testing.assert_allclose(model.encode(frame_of("new")), golden["new"], atol=1e-11)


@needs_births
@pytest.mark.parametrize("name", R["glm"])
def test_coefficients_and_names_are_those_of_glm(name):
    golden = R["glm"][name]
    births = pd.read_csv(BIRTHS)
    model = Logistic.from_formula(golden["formula"], births)
    summary = model.summary().frame()
    names = ["(Intercept)" if each == "intercept" else each for each in summary.index]
    assert names == golden["names"]
    np.testing.assert_allclose(summary["estimate"], golden["coef"], rtol=1e-8)
    np.testing.assert_allclose(summary["std_error"], golden["se"], rtol=1e-7)
    np.testing.assert_allclose(
        model.summary().to_dict()["deviance"], golden["deviance"], rtol=1e-11
    )
    posterior = model.predict_proba(births[:20])[:, 1]
    np.testing.assert_allclose(posterior, golden["posterior"], rtol=1e-8)


@needs_births
def test_a_glm_by_formula_predicts_as_r_does():
    golden = R["glm"]["terms"]
    births = pd.read_csv(BIRTHS)
    model = GLM.from_formula(golden["formula"], births, family="binomial")
    np.testing.assert_allclose(model.predict(births[:20]), golden["posterior"], rtol=1e-8)


@needs_births
def test_lda_by_formula_is_that_of_mass(tmp_path):
    golden = R["lda"]
    births = pd.read_csv(BIRTHS)
    model = LDA.from_formula(golden["formula"], births)
    assert list(model.encoding_.features) == golden["names"]
    np.testing.assert_allclose(model.estimator_.means_, golden["means"], rtol=1e-12)
    ratio = model.scalings_[:, 0] / np.array(golden["scaling"])
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-8)
    posterior = model.predict_proba(births[:20])[:, 1]
    np.testing.assert_allclose(posterior, golden["posterior"], rtol=1e-9)
    model.save(tmp_path / "lda.dd")
    loaded = dd.load(tmp_path / "lda.dd")
    np.testing.assert_array_equal(loaded.predict_proba(births), model.predict_proba(births))
