"""An option of another library is answered with ours."""

import inspect
import pickle
from inspect import isfunction

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

import discriminant
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
    decision,
)
from discriminant.errors import UnknownOptionError

X, Y = load_iris(return_X_y=True)
PUBLIC = [name for name in discriminant.__all__ if isfunction(getattr(discriminant, name))]
FREE = {"moments", "rows", "export", "study"}  # they hand options on to whoever reads or writes
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
        (Logistic, "penalty", r"ridge > 0 for 'l2', and also l1_ratio=1 for 'l1'"),
        (Logistic, "fit_intercept", r"intercept="),
        (LDA, "solver", r"leave it out; the solution is unique"),
        (LDA, "priors", r"pass prior="),
        (LDA, "n_components", r"Fisher\(n_components="),
        (LDA, "store_covariance", r"covariance_ is always available"),
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
        "predictive",
        "folds",
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


# --- functions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in PUBLIC if name not in FREE])
def test_every_function_answers_a_foreign_option(name):
    """Names of scikit-learn and pandas: an answer that names the function and has a way out."""
    function = getattr(discriminant, name)
    known = list(inspect.signature(function).parameters)
    for option in ("n_jobs", "cv", "figsize"):
        with pytest.raises(UnknownOptionError) as told:
            function(**{option: 1})
        text = str(told.value)
        assert text.startswith(f"{name} has no option '{option}': ")
        assert text.endswith(f"Its options are {', '.join(known)}.")


@pytest.mark.parametrize("name", [name for name in PUBLIC if name not in FREE])
def test_every_function_answers_a_slip_of_the_pen(name):
    function = getattr(discriminant, name)
    option = list(inspect.signature(function).parameters)[-1]
    slip = f"{option}_" if len(option) > 1 else f"the_{option}"
    with pytest.raises(TypeError, match=f"{name} has no option '{slip}'"):
        function(**{slip: 1})


@pytest.mark.parametrize("name", PUBLIC)
def test_a_function_that_answers_keeps_its_signature_and_is_pickled(name):
    function = getattr(discriminant, name)
    assert function.__doc__ and function.__name__ == name
    assert inspect.signature(function) == inspect.signature(inspect.unwrap(function))
    assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: discriminant.cross_validate(LDA(), X, Y, cv=5), r"pass folds="),
        (lambda: discriminant.cross_validate(LDA(), X, Y, random_state=0), r"pass seed="),
        (lambda: discriminant.cross_validate(LDA(), X, Y, scoring="f1"), r"every measure"),
        (lambda: discriminant.leave_one_out(LDA(), X, Y, priors=[1]), r"pass prior="),
        (lambda: discriminant.rda_grid(X, Y, K=5), r"pass folds="),
        (lambda: discriminant.select_features(LDA(), X, Y, scoring="accuracy"), r"pass criterion="),
        (lambda: discriminant.select_features(LDA(), X, Y, n_features_to_select=2), r"n_features="),
        (lambda: discriminant.assess(y_true=Y, y_pred=Y), r"pass truth="),
        (lambda: discriminant.auc(Y, X, pos_label=1), r"pass positive="),
        (lambda: discriminant.roc(Y, y_score=X), r"pass scores="),
        (lambda: discriminant.interval_over([], "error", n_resamples=9), r"pass draws="),
        (lambda: discriminant.save(LDA(), filename="a"), r"pass path="),
        (lambda: discriminant.load("a", mmap_mode="r"), r"pass mmap="),
        (lambda: discriminant.open_source("a.csv", target="y", sep=";"), r"pass delimiter="),
        (lambda: discriminant.plot_confusion(None, normalize="true"), r"pass normalise="),
        (lambda: discriminant.moments(X, Y, cv=5), r"moments has no option 'cv': leave it out"),
        (lambda: discriminant.moments(X, Y, sample_weight=Y), r"pass weight="),
        (
            lambda: discriminant.export(LDA().fit(X, Y), "onnx", initial_types=[]),
            r"to_onnx has no option 'initial_types': leave it out",
        ),
        (
            lambda: discriminant.export(LDA().fit(X, Y), "sql", tables="t"),
            r"to_sql has no option 'tables': did you mean table\?",
        ),
        (lambda: decision.tuned_threshold(X, Y, labels=[1]), r"pass classes="),
    ],
)
def test_an_option_of_another_library_is_answered_by_a_function(ask, said):
    with pytest.raises(UnknownOptionError, match=said):
        ask()


def test_options_that_are_handed_on_are_answered(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n1,a\n2,b\n3,a\n1.5,b\n")
    for ask in (discriminant.rows, discriminant.moments):
        with pytest.raises(UnknownOptionError, match=r"has no option 'sep'.*delimiter"):
            ask(str(path), target="y", sep=";")
    with pytest.raises(UnknownOptionError, match=r"study has no option 'cv': pass folds="):
        discriminant.study(str(path), target="y", cv=5)


def test_a_type_error_of_another_cause_stays_what_it_is():
    with pytest.raises(TypeError, match="missing 1 required") as told:
        discriminant.save(LDA())
    assert not isinstance(told.value, UnknownOptionError)
