"""Arrays, lists and dicts given as options or rows may change after the fit; the model does not."""

import copy

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

from discriminant import (
    GLM,
    LDA,
    QDA,
    RDA,
    SVM,
    Basis,
    Decision,
    EasyEnsemble,
    Encoded,
    Fisher,
    Fusion,
    LabelTree,
    LaplaceNB,
    LeastSquares,
    LinearRegression,
    Logistic,
    NearestMean,
    OneVsOne,
    OutputCodes,
    Perceptron,
    Resampled,
    Reweighted,
    load,
)

pytestmark = pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")

X, Y = load_iris(return_X_y=True)
FRAME = pd.DataFrame(
    {"width": X[:, 1], "kind": np.array(list("abc"))[np.arange(150) % 3], "size": Y + 1}
)
PRIOR = np.array([0.2, 0.3, 0.5])
OTHER_PRIOR = np.array([0.9, 0.05, 0.05])
COST = np.array([[0.0, 1.0, 1.0], [5.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
CODE = np.array([[1, -1, -1], [-1, 1, -1], [-1, -1, 1]])

# Estimator (a function of the option), the option, its value, and what it is changed into in place.
CASES = {
    **{
        f"{kind.__name__} prior": (lambda value, kind=kind: kind(prior=value), PRIOR, OTHER_PRIOR)
        for kind in (LDA, QDA, RDA, NearestMean, Fisher, LaplaceNB, Logistic)
    },
    "LDA prior by label": (
        lambda value: LDA(prior=value),
        {0: 0.2, 1: 0.3, 2: 0.5},
        {0: 0.9, 1: 0.05, 2: 0.05},
    ),
    "LDA prior as a list": (lambda value: LDA(prior=value), [0.2, 0.3, 0.5], [0.9, 0.05, 0.05]),
    "Fusion prior": (
        lambda value: Fusion([("a", LDA(), [0, 1]), ("b", QDA(), [2, 3])], prior=value),
        PRIOR,
        OTHER_PRIOR,
    ),
    "Fusion estimators": (
        Fusion,
        [("a", LDA(), [0, 1]), ("b", QDA(), [2, 3])],
        [("other", LDA(), [3, 1])],
    ),
    "Decision cost": (lambda value: Decision(LDA(), cost=value), COST, np.ones((3, 3)) - np.eye(3)),
    "Decision cost by label": (
        lambda value: Decision(LDA(), cost=value),
        {0: {1: 50.0}},
        {2: {1: 50.0}},
    ),
    "Decision prior": (lambda value: Decision(LDA(), prior=value), PRIOR, OTHER_PRIOR),
    "Decision fitted_prior": (
        lambda value: Decision(LDA(), prior=[0.3, 0.3, 0.4], fitted_prior=value),
        PRIOR,
        OTHER_PRIOR,
    ),
    "Decision threshold": (
        lambda value: Decision(LDA(), threshold=value),
        [0.5, 0.2, 0.3],
        [0.9, 0.05, 0.9],
    ),
    "Decision reject": (
        lambda value: Decision(LDA(), reject=value),
        {"threshold": 0.99},
        {"threshold": 0.4},
    ),
    "Logistic class_weight": (
        lambda value: Logistic(ridge=0.1, class_weight=value),
        {0: 1.0, 1: 5.0, 2: 1.0},
        {0: 1.0, 1: 0.1, 2: 1.0},
    ),
    "SVM class_weight": (
        lambda value: SVM(class_weight=value),
        {0: 1.0, 1: 5.0, 2: 1.0},
        {0: 1.0, 1: 0.1, 2: 1.0},
    ),
    "Basis centres": (lambda value: Basis(centres=value), X[::50].copy(), X[5:8].copy()),
    "OutputCodes code": (
        lambda value: OutputCodes(LDA(), code=value),
        CODE,
        np.array([[1, 1, -1], [-1, 1, 1], [1, -1, 1]]),
    ),
    "Reweighted weights": (
        lambda value: Reweighted(LDA(), value),
        np.array([1.0, 5.0, 2.0]),
        np.array([9.0, 1.0, 1.0]),
    ),
    "Reweighted weights by label": (
        lambda value: Reweighted(LDA(), value),
        {0: 1.0, 1: 5.0, 2: 2.0},
        {0: 9.0, 1: 1.0, 2: 1.0},
    ),
    "Resampled strategy": (
        lambda value: Resampled(LDA(), "under", strategy=value),
        {0: 20, 1: 40},
        {0: 40, 1: 5},
    ),
    "Resampled nominal": (
        lambda value: Resampled(LDA(), "smote", strategy={0: 60}, nominal=value),
        [3],
        [0],
    ),
    "EasyEnsemble strategy": (
        lambda value: EasyEnsemble(LDA(), 3, strategy=value),
        {0: 20, 1: 40},
        {0: 40, 1: 5},
    ),
    "LabelTree tree": (
        lambda value: LabelTree(trees=1, tree=value),
        [0, [1, 2]],
        [2, [1, 0]],
    ),
    "Encoded ordered": (
        lambda value: Encoded(LDA(), ordered=value),
        {"kind": ["a", "b", "c"]},
        {"kind": ["c", "a", "b"]},
    ),
    "Encoded categories": (lambda value: Encoded(LDA(), categories=value), ["size"], ["width"]),
    "Encoded exclude": (lambda value: Encoded(LDA(), exclude=value), ["size"], ["width"]),
}
METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "decide",
    "expected_cost",
    "typicality",
    "transform",
)


def change(value, into):
    """Make a container equal to another in place."""
    if isinstance(value, np.ndarray):
        value[...] = into
    else:
        value.clear()
        value.update(into) if isinstance(value, dict) else value.extend(into)


def answers(model, rows):
    return {name: getattr(model, name)(rows) for name in METHODS if hasattr(model, name)}


def assert_same(found, wanted):
    assert found.keys() == wanted.keys()
    for name in wanted:
        np.testing.assert_array_equal(found[name], wanted[name], err_msg=name)


def saved(model, path):
    model.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("case", CASES)
def test_changing_an_option_in_place_changes_nothing_fitted(case, tmp_path):
    build, value, into = CASES[case]
    value, rows = copy.deepcopy(value), FRAME if case.startswith("Encoded") else X
    model = build(value).fit(rows, Y)
    before, kept = answers(model, rows), saved(model, tmp_path / "before.dm")
    change(value, into)
    assert_same(answers(model, rows), before)
    assert saved(model, tmp_path / "after.dm") == kept
    assert_same(answers(load(tmp_path / "after.dm"), rows), before)


@pytest.mark.parametrize("case", CASES)
def test_the_next_fit_uses_the_changed_option(case):
    build, value, into = CASES[case]
    value, rows = copy.deepcopy(value), FRAME if case.startswith("Encoded") else X
    model = build(value).fit(rows, Y)
    (name,) = [name for name, given in model.get_params(deep=False).items() if given is value]
    change(value, into)
    again = answers(model.fit(rows, Y), rows)
    assert getattr(model, name) is value
    assert_same(again, answers(build(copy.deepcopy(into)).fit(rows, Y), rows))


@pytest.mark.parametrize("kind", ["attribute", "set_params"])
def test_a_decision_reads_replaced_options(kind):
    model = Decision(LDA(), cost=COST.copy()).fit(X, Y)
    cost = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 90.0], [1.0, 1.0, 0.0]])
    wanted = Decision(LDA(), cost=cost.copy()).fit(X, Y).predict(X)
    if kind == "attribute":
        model.cost = cost
    else:
        model.set_params(cost=cost)
    assert np.array_equal(model.predict(X), wanted)
    cost[...] = COST
    assert np.array_equal(model.predict(X), wanted)


def test_a_decision_around_a_fitted_model_copies_its_options():
    cost = COST.copy()
    model = Decision.of_fitted(LDA().fit(X, Y), cost=cost)
    cost[...] = [[0.0, 1.0, 1.0], [1.0, 0.0, 90.0], [1.0, 1.0, 0.0]]
    wanted = Decision.of_fitted(LDA().fit(X, Y), cost=COST.copy()).predict(X)
    assert np.array_equal(model.predict(X), wanted)


MODELS = [
    LDA(),
    LDA(shrinkage=0.1),
    QDA(),
    RDA(),
    NearestMean(),
    Fisher(),
    LaplaceNB(),
    LeastSquares(),
    LinearRegression(),
    GLM(),
    Logistic(ridge=0.1),
    Perceptron(),
    SVM(),
    SVM(loss="hinge"),
    Basis(degree=1, centres=2),
    LabelTree(),
    Decision(LDA(), outlier=0.1),
    OneVsOne(Logistic(ridge=0.1)),
    Reweighted(LDA()),
]
SHAPES = {
    "dense": lambda: X.copy(),
    "about zero": lambda: X - np.median(X, axis=0),
    "wide": lambda: np.hstack([X[:, :], np.zeros((150, 200))]) + np.eye(150, 204),
    "sparse": lambda: sparse.csr_array(X),
}
WEIGHTLESS = (Perceptron, LabelTree, Basis)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_changing_rows_labels_and_weights_in_place_changes_nothing_fitted(model, shape, tmp_path):
    if shape == "sparse" and not model.__sklearn_tags__().input_tags.sparse:
        pytest.skip("no sparse rows")
    if shape == "wide" and isinstance(model, Decision):
        pytest.skip("outliers need more rows than features")
    rows, y, weight = SHAPES[shape](), Y.astype(float), np.linspace(0.5, 1.5, 150)
    new = SHAPES[shape]()
    options = {} if isinstance(model, WEIGHTLESS) else {"sample_weight": weight}
    fitted = copy.deepcopy(model).fit(rows, y, **options)
    before, kept = answers(fitted, new), saved(fitted, tmp_path / "before.dm")
    (rows.data if shape == "sparse" else rows)[...] = 3.0
    y[...], weight[...] = 1.0, 7.0
    assert_same(answers(fitted, new), before)
    assert saved(fitted, tmp_path / "after.dm") == kept
