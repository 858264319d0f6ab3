"""What is held out is what the model does: fitted to the other folds, and asked.

For every classifier and wrapper, of moments or not: the decisions of `cross_validate` are those of
a clone that is fitted to the other folds and then decides or predicts, and so is all that is
measured of them.
"""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discriminant import (
    LDA,
    QDA,
    RDA,
    REJECT,
    SDA,
    SVM,
    Decision,
    EasyEnsemble,
    Fisher,
    Fusion,
    LaplaceNB,
    LeastSquares,
    Logistic,
    NearestMean,
    OneVsOne,
    OneVsRest,
    OutputCodes,
    Perceptron,
    Resampled,
    Reweighted,
    ShrunkenCentroids,
    SparseLDA,
    compare_models,
    cross_validate,
    evaluate,
    leave_one_out,
    select_features,
)

DEAR = {"ash": {"birch": 1, "cedar": 9}, "birch": {"ash": 1, "cedar": 9}, "cedar": {"ash": 2}}
CALL = {**DEAR, "call": {"ash": 0.6, "birch": 0.6, "cedar": 0.6}}
CODE = [[1, 1, 0, 1], [-1, 0, 1, 1], [0, -1, -1, -1]]
MODELS = {
    "lda": LDA(),
    "lda with priors": LDA(prior=[0.2, 0.3, 0.5]),
    "qda": QDA(),
    "rda": RDA(pooling=0.4, shrinkage=0.2),
    "lda student": LDA(predictive="student"),
    "qda student": QDA(predictive="student"),
    "nearest mean": NearestMean(),
    "fisher": Fisher(n_components=1),
    "fisher halfway": Fisher(threshold="midpoint"),
    "sda": SDA(n_features=2),
    "shrunken centroids": ShrunkenCentroids(threshold=0.5),
    "sparse directions": SparseLDA(penalty=0.2),
    "least squares": LeastSquares(),
    "least squares signs": LeastSquares(coding="sign"),
    "least squares of products": LeastSquares(degree=2),
    "laplace": LaplaceNB(),
    "logistic": Logistic(ridge=0.1),
    "svm": SVM(),
    "perceptron": Perceptron(),
    "rest of lda": OneVsRest(LDA()),
    "rest of least squares": OneVsRest(LeastSquares()),
    "pairs of lda": OneVsOne(LDA()),
    "pairs of qda": OneVsOne(QDA()),
    "pairs of another's": OneVsOne(GaussianNB()),
    "pairs without posteriors": OneVsOne(RidgeClassifier()),
    "dense code": OutputCodes(LDA(), code="dense"),
    "sparse code": OutputCodes(LDA(), code="sparse"),
    "code by hamming": OutputCodes(LDA(), code=CODE, decoding="hamming"),
    "code by euclid": OutputCodes(LDA(), code=CODE, decoding="euclidean"),
    "code by loss": OutputCodes(LeastSquares(), code=CODE, decoding="loss"),
    "designed code": OutputCodes(LDA(), code="designed"),
    "reweighted": Reweighted(LDA()),
    "reweighted, of another's": Reweighted(LogisticRegression()),
    "over-sampled": Resampled(LDA(), "over"),
    "under-sampled": Resampled(GaussianNB(), "under", random_state=1),
    "smote": Resampled(LDA(), "smote", neighbours=2),
    "easy ensemble": EasyEnsemble(LDA(), 3),
    "dear errors": Decision(LDA(), cost=DEAR),
    "dear errors or a call": Decision(LDA(), cost=CALL),
    "thresholds": Decision(LDA(), threshold=[0.5, 0.4, 0.1]),
    "other priors": Decision(LDA(), prior=[0.1, 0.1, 0.8]),
    "reject": Decision(QDA(), reject=0.3),
    "outliers": Decision(LDA(), outlier=0.1),
    "fusion": Fusion([("one", LDA(), [0, 1]), ("two", QDA(), [2])]),
    "another's without posteriors": RidgeClassifier(),
    "pipeline": make_pipeline(StandardScaler(), LDA()),
}


def overlapping(n=150, seed=0):
    """Rows of three classes, the last one rare, that no rule tells apart."""
    rng = np.random.default_rng(seed)
    y = np.repeat(["ash", "birch", "cedar"], [n // 2, n - n // 2 - n // 8, n // 8])
    shift = {"ash": [0.0, 0.0, 0.0], "birch": [1.0, 0.5, 0.0], "cedar": [1.0, -0.5, 1.0]}
    X = rng.standard_normal((n, 3)) * [1.0, 2.0, 0.5] + [shift[label] for label in y]
    order = rng.permutation(n)
    return X[order], y[order]


def asked(model, X, y, fold):
    """What a clone that is fitted to the other folds says of each row."""
    said = np.empty(len(y), dtype=object)
    for f in np.unique(fold):
        fitted = clone(model).fit(X[fold != f], y[fold != f])
        how = fitted.decide if hasattr(fitted, "decide") else fitted.predict
        said[fold == f] = how(X[fold == f]).tolist()
    return said


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore")
def test_a_held_out_decision_is_that_of_a_refit(name):
    X, y = overlapping()
    held = cross_validate(MODELS[name], X, y, 4)
    assert held.predicted.tolist() == asked(MODELS[name], X, y, held.fold).tolist()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore")
def test_held_out_measures_are_those_of_refits_that_are_evaluated(name):
    X, y = overlapping(seed=1)
    held = cross_validate(MODELS[name], X, y, 3)
    parts = []
    for f in range(3):
        out = held.fold == f
        parts.append(evaluate(clone(MODELS[name]).fit(X[~out], y[~out]), X[out], y[out]))
    np.testing.assert_allclose(held.tally.confusion(), sum(parts).confusion())
    assert held.error == pytest.approx(sum(parts).error, abs=1e-12)
    assert [part.error for part in held.tallies] == pytest.approx([part.error for part in parts])


@pytest.mark.parametrize(
    "name",
    ["lda", "qda", "fisher", "least squares", "pairs of lda", "code by hamming", "dear errors"],
)
@pytest.mark.filterwarnings("ignore")
def test_a_row_left_out_is_decided_as_by_a_refit(name):
    X, y = overlapping(48, seed=2)
    held = leave_one_out(MODELS[name], X, y)
    assert held.predicted.tolist() == asked(MODELS[name], X, y, held.fold).tolist()


def test_models_that_differ_in_decisions_alone_are_told_apart():
    X, y = overlapping(400, seed=3)
    fold = np.arange(400) % 8
    models = {"plain": LDA(), "dear": Decision(LDA(), cost=DEAR)}
    held = {name: cross_validate(model, X, y, fold) for name, model in models.items()}
    wrong = {name: asked(model, X, y, fold) != y for name, model in models.items()}
    pair = compare_models(held).pairs[0]
    assert pair.difference == pytest.approx(wrong["plain"].mean() - wrong["dear"].mean())
    assert pair.only_first == np.sum(wrong["dear"] & ~wrong["plain"]) > 0


def test_error_is_that_of_the_rows_not_rejected():
    X, y = overlapping(seed=4)
    held = cross_validate(Decision(LDA(), reject=0.4), X, y, 3)
    said = held.predicted
    assert (said == REJECT).any()
    decided = said != REJECT
    assert held.error == pytest.approx(np.mean(said[decided] != y[decided]))


def test_features_are_chosen_by_what_the_model_does():
    X, y = overlapping(200, seed=5)
    model = Reweighted(LDA())
    found = select_features(model, X, y, np.arange(200) % 4, n_features=3)
    said = asked(model, X, y, np.arange(200) % 4)
    assert found.stages[-1].error == pytest.approx(np.mean(said != y), abs=1e-12)


def test_a_row_of_no_weight_counts_for_nothing_however_improbable():
    X, y = overlapping(90, seed=6)
    y = y.astype(object)
    y[-1] = "yew"  # of which no training part knows anything
    weight = np.ones(90)
    weight[-1] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        held = cross_validate(LDA(), X, y, np.arange(90) % 3, sample_weight=weight)
    own = held.log_posterior[np.arange(89), held.codes[:89]]
    assert held.log_loss == pytest.approx(-own.mean(), rel=1e-12)
