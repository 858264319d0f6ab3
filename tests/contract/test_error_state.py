"""Under np.seterr(under="raise") intended underflow is silent, and answers are the same."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import discriminant
from discriminant import LDA, QDA, Decision, Logistic
from discriminant.errors import DiscriminantError
from tests.shared.estimators import BASES, ESTIMATORS, WRAPPERS, X, Y, answers, one_per_class

pytestmark = pytest.mark.filterwarnings("ignore")

METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "transform",
    "mahalanobis",
    "log_density",
    "typicality",
    "decide",
    "expected_cost",
)
ROWS = {
    "iris": X,
    "units from 1e-140 to 1e6": X * np.array([1e-140, 1.0, 1e3, 1e6]) + np.array([0, 0, 0, 1e3]),
}


def said(model, rows):
    found = {}
    for name in METHODS:
        if hasattr(model, name):
            for far in (1.0, 1e8):
                try:
                    found[name, far] = getattr(model, name)(far * rows[::10])
                except DiscriminantError as fault:
                    found[name, far] = np.array(str(fault))
    return found


ALL = [*ESTIMATORS, *BASES, *WRAPPERS]
FIRST = one_per_class(ALL)
EACH = [
    pytest.param(model, id=repr(model), marks=() if model in FIRST else pytest.mark.slow)
    for model in ALL
]


@pytest.mark.parametrize("state", ["under", "all"])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("model", EACH)
def test_no_error_state_of_the_caller_changes_an_answer(model, rows, state):
    rows, y, model = ROWS[rows], answers(model), clone(model)
    if "random_state" in model.get_params(deep=False):
        model.set_params(random_state=0)
    foreign = any(name in repr(model) for name in ("LogisticRegression", "LinearSVC"))
    if state == "all" and foreign:
        pytest.skip("scikit-learn's own estimators overflow in their solvers")
    try:
        wanted = said(clone(model).fit(rows, y), rows)
    except DiscriminantError:
        pytest.skip("these rows are refused")
    with np.errstate(**{state: "raise"}):
        found = said(clone(model).fit(rows, y), rows)
    assert found.keys() == wanted.keys()
    for name in wanted:
        np.testing.assert_array_equal(found[name], wanted[name], err_msg=str(name))


# Every public function that computes; FAR makes posteriors of exp(-1e6) and less.
FAR = 1e3 * X
FOLDS = np.arange(len(Y)) % 3
FUNCTIONS = {
    "assess": lambda: discriminant.assess(
        Y, Y, log_posterior=QDA().fit(X, Y).predict_log_proba(FAR)
    ),
    "evaluate": lambda: discriminant.evaluate(QDA().fit(X, Y), FAR, Y),
    "evaluate a decision": lambda: discriminant.evaluate(
        Decision(LDA(), reject=0.1).fit(X, Y), FAR, Y
    ),
    "cross_validate": lambda: discriminant.cross_validate(QDA(), X * 1e-160, Y, FOLDS),
    "cross_validate logistic": lambda: discriminant.cross_validate(Logistic(), X, Y, FOLDS),
    "leave_one_out": lambda: discriminant.leave_one_out(LDA(), X, Y),
    "rda_grid": lambda: discriminant.rda_grid(X, Y, folds=3),
    "select_features": lambda: discriminant.select_features(LDA(), X, Y),
    "stepwise": lambda: discriminant.stepwise(X * 1e-160, Y),
    "manova": lambda: discriminant.manova(X * 1e-160, Y),
    "box_m": lambda: discriminant.box_m(X * 1e-160, Y),
    "hotelling": lambda: discriminant.hotelling(X[:100] * 1e-160, Y[:100]),
    "auc": lambda: discriminant.auc(Y == 1, X[:, 0] * 1e-300),
    "roc": lambda: discriminant.roc(Y == 1, X[:, 0] * 1e-300),
    "estimated_prior": lambda: discriminant.estimated_prior(
        QDA().fit(X, Y).predict_log_proba(FAR), [0.2, 0.3, 0.5]
    ),
    "moments": lambda: discriminant.moments(X * 1e-200, Y),
    "compare_imbalance": lambda: discriminant.compare_imbalance(LDA(), FAR, Y == 1),
    "study": lambda: _study().compare(["lda", "qda", "logistic"]),
}


def _study():
    columns = {f"x{j}": column for j, column in enumerate(FAR.T)}
    return discriminant.study(pd.DataFrame({**columns, "kind": Y.astype(str)}), target="kind")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_ignore_underflow_whatever_the_error_state(name):
    with np.errstate(under="raise"):
        FUNCTIONS[name]()
