"""ONNX under onnxruntime's default optimisation: no unit of the columns changes an answer."""

import warnings

import numpy as np
import onnxruntime
import pytest
from sklearn.pipeline import make_pipeline

from discriminant import (
    GLM,
    LDA,
    QDA,
    RDA,
    SVM,
    Basis,
    Decision,
    EasyEnsemble,
    Fisher,
    Fusion,
    LaplaceNB,
    LeastSquares,
    LinearRegression,
    Logistic,
    LogLinear,
    NearestMean,
    OneVsOne,
    OneVsRest,
    OutputCodes,
    Perceptron,
    Resampled,
    Reweighted,
)
from discriminant.export.onnx import to_onnx

onnxruntime.set_default_logger_severity(4)

MODELS = {
    "lda": LDA(),
    "lda shrunk": LDA(shrinkage=0.3),
    "qda": QDA(),
    "qda diagonal": QDA(shrinkage=1.0),
    "rda": RDA(),
    "nearest mean": NearestMean(),
    "fisher": Fisher(),
    "laplace": LaplaceNB(),
    "logit": Logistic(ridge=0.1),
    "probit": Logistic("probit"),
    "cloglog": Logistic("cloglog"),
    "cauchit": Logistic("cauchit"),
    "least squares": LeastSquares(),
    "least squares of products": LeastSquares(degree=2),
    "least squares of fisher's codes": LeastSquares(coding="fisher"),
    "perceptron": Perceptron(max_passes=5),
    "svm": SVM(standardize=True),
    "reweighted": Reweighted(LDA()),
    "resampled": Resampled(QDA(), "under"),
    "easy ensemble": EasyEnsemble(LDA(), 3),
    "one against the rest": OneVsRest(LDA()),
    "pairs": OneVsOne(QDA()),
    "codes": OutputCodes(LDA(), code="one-vs-rest"),
    "decision": Decision(QDA(), reject=0.1, outlier=0.05),
    "fusion": Fusion([("one", LDA(), [0]), ("two", QDA(), [-1])]),
    "regression": LinearRegression(),
    "poisson": GLM("poisson"),
    "log-linear": LogLinear(),
    "products": make_pipeline(Basis(degree=2), LDA()),
    "kernels": make_pipeline(Basis(degree=None, centres=3), Logistic(ridge=0.01)),
}
UNITS = [1e-150, 1e-100, 1e-60, 1e-30, 1.0, 1e30, 1e60, 1e100, 1e150]


def rows_of(width):
    rng = np.random.default_rng(5)
    y = np.repeat([1, 2], 60)
    rows = rng.normal(size=(120, width))
    return np.where(y[:, None] == 2, 1.3 * rows + 1.0, rows), y


def answers(model, rows, level):
    """What the graph says, by the name of the output."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = to_onnx(model)
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    given = {session.get_inputs()[0].name: rows}
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(None, given), strict=True))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kind", MODELS)
def test_the_optimised_graph_gives_the_answers_of_the_model(kind, unit, width):
    rows, y = rows_of(width)
    rows = rows * unit
    model = MODELS[kind].fit(rows, y)
    found = answers(model, rows, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)
    if "value" in found:
        np.testing.assert_allclose(found["value"][:, 0], model.predict(rows), rtol=1e-9)
        return
    assert found["label"].tolist() == model.predict(rows).tolist()
    if "probabilities" in found:
        wanted = model.predict_proba(rows)
        np.testing.assert_allclose(found["probabilities"], wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shift", [1e-60, 3e-46])
def test_a_small_number_is_not_taken_for_zero(shift):
    """float32 has no 1e-60: an optimiser dropped the subtraction of a mean of that size."""
    rows, y = rows_of(1)
    rows = (rows + 0.5) * shift
    model = QDA().fit(rows, y)
    found = answers(model, rows, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)
    wanted = model.predict_proba(rows)
    np.testing.assert_allclose(found["probabilities"], wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_a_factor_close_to_one_is_not_taken_for_one():
    """1 + 5e-9, the mean of exp(residual), is 1 in float32: an optimiser dropped the factor."""
    rows, _ = rows_of(2)
    noise = 1e-4 * np.random.default_rng(6).normal(size=len(rows))
    model = LogLinear(predicted="smearing").fit(rows, np.exp(rows.sum(axis=1) + noise))
    assert 1e-9 < model.smearing_ - 1.0 < 1e-8
    found = answers(model, rows, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)
    np.testing.assert_allclose(found["value"][:, 0], model.predict(rows), rtol=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_features_that_need_neither_origin_nor_unit_are_exported():
    rows, y = rows_of(2)
    rows -= rows.mean(axis=0)
    model = make_pipeline(Basis(degree=2, origin="zero"), LDA()).fit(rows, y)
    found = answers(model, rows, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(rows), rtol=1e-9)
