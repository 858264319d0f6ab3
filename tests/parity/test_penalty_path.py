"""Held-out losses of a path of penalties against glmnet's cv.glmnet, on the same folds."""

import numpy as np
import pandas as pd
import pytest

from discriminant import GLM, Logistic
from tests.parity.golden import frozen
from tests.shared.paths import SHARED

R = frozen("penalty_path")
SETS = frozen("glm_sets")
ALPHAS = R["alpha"]
CLASSES = ["two", "three", "pima", "wine"]
TOLERANCE = 2e-6  # of the deviance: glmnet stops there, and clips probabilities at 1e-5


def class_rows(name):
    """Features and labels of a set of classes."""
    if name in ("two", "three"):
        features, codes = (np.array(SETS["classes"][key]) for key in ("features", "codes"))
        selected = codes < 2 if name == "two" else codes >= 0
        return features[selected], codes[selected]
    file, label = {"pima": ("pima/pima_tr.csv", "type"), "wine": ("wine/wine.csv", "class")}[name]
    if not (SHARED / file).exists():
        pytest.skip(f"{file} is not in the shared data")
    frame = pd.read_csv(SHARED / file)
    return frame.drop(columns=label).to_numpy(float), frame[label].to_numpy()


def folds_of(rows):
    return np.arange(len(rows)) % 5


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("name", CLASSES)
def test_held_out_losses_are_those_of_cv_glmnet(name, alpha):
    features, labels = class_rows(name)
    golden = R["paths"][name][f"alpha_{alpha:g}"]
    model = Logistic(ridge="cv", l1_ratio=alpha, ridges=R["lambda"], folds=folds_of(features))
    path = model.fit(features, labels).path_
    np.testing.assert_allclose(path.ridges, R["lambda"])
    np.testing.assert_allclose(2 * path.loss, golden["cvm"], rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(2 * path.standard_error, golden["cvsd"], rtol=0, atol=TOLERANCE)
    assert model.ridge_ == pytest.approx(golden["lambda_min"])


@pytest.mark.parametrize("name", CLASSES)
def test_one_standard_error_rule_is_that_of_cv_glmnet(name):
    features, labels = class_rows(name)
    model = Logistic(
        ridge="cv", l1_ratio=1.0, ridges=R["lambda"], folds=folds_of(features), rule="one_se"
    ).fit(features, labels)
    assert model.ridge_ == pytest.approx(R["paths"][name]["alpha_1"]["lambda_1se"])


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_held_out_deviance_is_that_of_cv_glmnet(family, alpha):
    features = np.array(SETS["glm"]["features"])
    response = SETS["glm"]["responses"][
        {"gaussian": "gaussian-identity", "poisson": "poisson-log"}[family]
    ]
    golden = R["paths"][family][f"alpha_{alpha:g}"]
    model = GLM(family, ridge="cv", l1_ratio=alpha, ridges=R["lambda"], folds=folds_of(features))
    path = model.fit(features, response).path_
    np.testing.assert_allclose(2 * path.loss, golden["cvm"], rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(2 * path.standard_error, golden["cvsd"], rtol=0, atol=TOLERANCE)
    assert model.ridge_ == pytest.approx(golden["lambda_min"])


NETS = {
    "gaussian": ("gaussian", None, "gaussian-identity"),
    "binomial": ("binomial", None, "binomial-logit"),
    "poisson": ("poisson", None, "poisson-log"),
    "poisson_offset": ("poisson", None, "poisson-log"),
    "gamma": ("gamma", "log", "Gamma-log"),
}


@pytest.mark.parametrize("alpha", [0.5, 1.0])
@pytest.mark.parametrize("name", list(NETS))
def test_elastic_net_of_a_glm_is_that_of_glmnet(name, alpha):
    family, link, response = NETS[name]
    rows = SETS["glm"]
    offset = np.array(rows["offset"]) if name.endswith("offset") else None
    golden = np.array(R["nets"][name][f"alpha_{alpha:g}"]["coef"])
    for ridge, expected in zip([0.1, 0.01], golden, strict=True):
        model = GLM(family, link, ridge=ridge, l1_ratio=alpha).fit(
            rows["features"], rows["responses"][response], rows["weight"], offset
        )
        np.testing.assert_allclose([model.intercept_, *model.coef_], expected, rtol=0, atol=1e-7)
        np.testing.assert_array_equal(model.coef_ == 0, expected[1:] == 0)
