"""An option of another library is answered with ours."""

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.linear_model import (
    LogisticRegression,
    Perceptron as TheirPerceptron,
    RidgeClassifier,
)
from sklearn.neighbors import NearestCentroid
from sklearn.svm import LinearSVC

from discriminant import (
    GLM,
    LDA,
    QDA,
    RDA,
    SVM,
    Decision,
    Fisher,
    LeastSquares,
    LinearRegression,
    Logistic,
    NearestMean,
    Perceptron,
)
from discriminant.errors import UnknownOptionError

X, Y = load_iris(return_X_y=True)
PAIRS = [
    (LDA, LinearDiscriminantAnalysis),
    (Fisher, LinearDiscriminantAnalysis),
    (QDA, QuadraticDiscriminantAnalysis),
    (RDA, QuadraticDiscriminantAnalysis),
    (NearestMean, NearestCentroid),
    (Logistic, LogisticRegression),
    (SVM, LinearSVC),
    (Perceptron, TheirPerceptron),
    (LeastSquares, RidgeClassifier),
]
# What only their way of fitting has, and what a perceptron of ours has no place for.
THEIRS_ALONE = {
    "intercept_scaling",
    "l1_ratio",
    "multi_class",
    "early_stopping",
    "validation_fraction",
    "n_iter_no_change",
    "positive",
}


@pytest.mark.parametrize(
    ("kind", "option", "said"),
    [
        (Logistic, "C", r"Logistic has no option 'C': pass ridge=1/\(C\*n\).*docs/from_sklearn.md"),
        (Logistic, "penalty", r"ridge > 0 for 'l2', with l1_ratio=1"),
        (Logistic, "fit_intercept", r"intercept="),
        (LDA, "solver", r"leave it out; there is one answer"),
        (LDA, "priors", r"pass prior="),
        (LDA, "n_components", r"Fisher\(n_components="),
        (LDA, "store_covariance", r"covariance_ is always there"),
        (QDA, "reg_param", r"RDA.from_sklearn\(reg_param="),
        (QDA, "priors", r"pass prior="),
        (Perceptron, "alpha", r"SVM\(ridge=...\)"),
        (SVM, "kernel", r"Basis"),
        (LDA, "class_weight", r"Reweighted"),
        (LinearRegression, "alpha", r"pass ridge="),
        (GLM, "power", r"family='poisson'"),
    ],
)
def test_an_option_of_scikit_learn_is_answered_with_ours(kind, option, said):
    with pytest.raises(UnknownOptionError, match=said):
        kind(**{option: 1})


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_every_option_of_its_peer_is_there_or_has_an_answer(ours, theirs):
    peer = set(inspect.signature(theirs).parameters)
    peer -= set(inspect.signature(ours).parameters) | THEIRS_ALONE
    unanswered = []
    for option in sorted(peer):
        with pytest.raises(UnknownOptionError) as told:
            ours(**{option: 1})
        if "from_sklearn" not in str(told.value):
            unanswered.append(option)
    assert unanswered == []


def test_a_slip_of_the_pen_is_answered_with_the_nearest_name():
    with pytest.raises(TypeError, match=r"no option 'shrinkge': did you mean shrinkage\? Its opt"):
        LDA(shrinkge=0.1)


def test_a_wrapper_answers_too():
    with pytest.raises(UnknownOptionError, match=r"Decision has no option 'costs': did you mean c"):
        Decision(LDA(), costs=[1, 2])


def test_a_class_made_from_ours_has_our_answers_and_its_own_options():
    class Halved(LDA):
        def __init__(self, *, half=0.5):
            super().__init__(shrinkage=half)
            self.half = half

    with pytest.raises(UnknownOptionError, match=r"Halved has no option 'priors': pass prior="):
        Halved(priors=[1])
    assert Halved(half=0.2).get_params() == {"half": 0.2}


def test_the_signature_is_that_of_the_options():
    assert list(inspect.signature(LDA).parameters) == [
        "prior",
        "shrinkage",
        "target",
        "denominator",
    ]


@pytest.mark.parametrize("again", [clone, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_keep_their_options(again):
    model = LDA(shrinkage=0.25, prior=[0.2, 0.3, 0.5])
    assert again(model).set_params(target="identity").get_params() == {
        **model.get_params(),
        "target": "identity",
    }


@pytest.mark.parametrize("strength", [0.1, 10.0])
def test_what_is_said_of_the_penalty_is_right(strength):
    """'pass ridge=1/(C*n) for n rows and standardize=False'."""
    peer = LogisticRegression(C=strength, solver="newton-cholesky", tol=1e-12).fit(X, Y)
    ours = Logistic(ridge=1 / (strength * len(X)), standardize=False).fit(X, Y)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-6)
