"""Every public estimator in several configurations, and the iris data to fit them to.

A new estimator joins by being added to one of the three lists; tests/contract checks that none is
missing.
"""

import numpy as np
import pandas as pd
import polars as pl
from sklearn.base import is_classifier
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from discriminant import (
    GLM,
    LDA,
    MDA,
    QDA,
    RDA,
    SDA,
    SVM,
    Basis,
    BayesianLogistic,
    Calibrated,
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
    LogitAdjusted,
    LogLinear,
    NearestMean,
    OneVsOne,
    OneVsRest,
    OrderedLogistic,
    OutputCodes,
    Perceptron,
    Pool,
    PredictionSets,
    Resampled,
    Reweighted,
    RobustLDA,
    RobustQDA,
    ShrunkenCentroids,
    SparseLDA,
)

# Every public estimator, in all its variants. A new one joins here.
ESTIMATORS = [
    LDA(),
    LDA(shrinkage="auto"),
    LDA(shrinkage=1.0),
    LDA(shrinkage=0.3, target="identity", denominator="ml"),
    LDA(shrinkage="oas", target="scaled_identity"),
    LDA(predictive="student"),
    QDA(),
    QDA(shrinkage=0.5),
    QDA(shrinkage="auto", denominator="ml"),
    QDA(predictive="student"),
    QDA(covariance="diagonal"),
    QDA(covariance="spherical", shrinkage=0.1),
    QDA(covariance="factor"),
    QDA(map_prior="default"),
    RDA(),
    RDA(pooling=0.3, shrinkage=0.5),
    RDA(pooling=1.0, shrinkage="oas"),
    RDA.from_klar(0.1, 0.5),
    RDA.from_friedman(0.5, 0.1),
    RDA.from_sklearn(0.1),
    RDA(pooling=0.3, shrinkage=0.2, predictive="student"),
    RDA(pooling="empirical_bayes"),
    RobustLDA(),
    RobustLDA(support_fraction=0.75),
    RobustQDA(),
    NearestMean(),
    Fisher(),
    Fisher(shrinkage=0.3, threshold="midpoint"),
    Fisher(criterion="trace_ratio"),
    Fisher(method="mean_difference"),
    LeastSquares(),
    LeastSquares(coding="sign"),
    LeastSquares(degree=2, ridge=0.1),
    LeastSquares(precision="high"),
    LinearRegression(),
    LinearRegression(ridge=1.0, fit_intercept=False),
    LinearRegression(precision="high"),
    SDA(),
    SDA(n_features=2, shrinkage=0.3, variance_shrinkage=0.1),
    SDA(n_features="fdr", shrinkage=1.0, frequency_shrinkage=0.0),
    ShrunkenCentroids(),
    ShrunkenCentroids(threshold=0.0, offset_percent=0.0),
    SparseLDA(),
    SparseLDA(penalty=0.2, tolerance=1e-9),
    LaplaceNB(),
    MDA(starts=1),
    MDA(),
    MDA(covariance="shared", shrinkage=0.1),
    MDA(components=1, covariance="component", starts=2),
    Logistic(),
    Logistic(ridge=0.1, standardize=False),
    Logistic(ridge=0.01, intercept=False),
    Logistic(bias_reduction="jeffreys"),
    Logistic(ridge=0.1, solver="lbfgs"),
    Logistic(ridge=0.01, l1_ratio=0.5),
    Logistic(ridge=0.01, l1_ratio=1.0, solver="lbfgs"),
    OrderedLogistic(order="sorted"),
    OrderedLogistic("probit", order="sorted", ridge=0.1),
    OrderedLogistic("cloglog", order="sorted", ridge=0.01, standardize=False),
    BayesianLogistic(),
    BayesianLogistic(precision=2.0, predictive="mode", intercept=False),
    GLM(),
    GLM(ridge=0.1, intercept=False),
    GLM(ridge=0.1, l1_ratio=0.5),
    GLM("poisson"),
    GLM("gamma", "log"),
    LogLinear(),
    LogLinear(predicted="smearing"),
    Perceptron(),
    Perceptron(keep="average", shuffle=True),
    Perceptron(update="batch", standardize=False),
    Perceptron(start="random", learning_rate=0.5, record=True, random_state=0),
    SVM(),
    SVM(loss="hinge", standardize=True, class_weight="balanced"),
    SVM(solver="dual", tolerance=1e-16, max_steps=100_000),
    LabelTree(),
    LabelTree(trees=2, arity=2, leaf=2, loss="logistic", precision="float64"),
]
BASES = [
    Basis(),
    Basis(degree=3, interactions="only", origin="zero"),
    Basis(degree=3, interactions=False),
    Basis(degree=1, centres=3),
    Basis(degree=None, centres=1, width=2.0),
    Basis(degree=1, random_features=6),
    Basis(degree=None, random_features=5, activation="fourier", width=2.0),
]
# Around other classifiers, whose options are their own.
WRAPPERS = [
    Decision(LDA()),
    Decision(Logistic(ridge=0.1)),
    Decision(LogisticRegression(max_iter=1000)),
    PredictionSets(LDA(), 0.8),
    PredictionSets(LDA(), 0.8, method="jackknife+", conformity="aps"),
    PredictionSets(QDA(), 0.8, folds=3, nonempty=True),
    PredictionSets(LogisticRegression(max_iter=1000), 0.8, by_class=False, folds=3),
    Calibrated(LDA()),
    Calibrated(QDA(), "isotonic", folds=3),
    Calibrated(LDA(), "beta", folds=3),
    Calibrated(SVM(), "temperature", folds=3),
    Calibrated(LogisticRegression(max_iter=1000), folds=3),
    Fusion([("first", LDA(), slice(0, 1)), ("others", Logistic(ridge=0.1), slice(1, None))]),
    # Weights are given: folds of weighted rows differ from folds of repeated rows.
    Pool([("lda", LDA()), ("mean", NearestMean())], weights=[0.7, 0.3]),
    OneVsRest(LDA()),
    OneVsRest(LogisticRegression(max_iter=1000)),
    OneVsRest(LinearSVC(dual=False, tol=1e-14)),
    OneVsOne(LDA()),
    OneVsOne(QDA()),
    OneVsOne(LogisticRegression(max_iter=1000)),
    OneVsOne(LinearSVC(dual=False, tol=1e-14)),
    OutputCodes(LDA()),
    OutputCodes(LDA(), code="sparse"),
    OutputCodes(LDA(), code="optimal"),
    OutputCodes(LDA(), code="exhaustive", decoding="hamming"),
    OutputCodes(LDA(), code="designed", decoding="euclidean"),
    OutputCodes(LogisticRegression(max_iter=1000)),
    OutputCodes(LinearSVC(dual=False, tol=1e-14), code="exhaustive"),
    Encoded(LDA()),
    Encoded(QDA(), missing="mean"),
    Encoded(QDA(), missing="em"),
    Encoded(LogisticRegression(max_iter=1000)),
    Reweighted(LDA()),
    Reweighted(LogisticRegression(max_iter=1000), "effective"),
    Resampled(LDA()),
    Resampled(LDA(), "smote", neighbours=1),
    Resampled(Logistic(ridge=0.1), "under"),
    Resampled(LogisticRegression(max_iter=1000), "smote", neighbours=1),
    Resampled(LDA(), "gaussian"),
    Resampled(Logistic(ridge=0.1), "gaussian"),
    LogitAdjusted(LDA()),
    LogitAdjusted(LogisticRegression(max_iter=1000), 0.5),
    OneVsRest(LDA(), balanced=True),
    Encoded(LDA(), formula="~ ."),
    EasyEnsemble(LDA()),
    EasyEnsemble(LogisticRegression(max_iter=1000), 3),
]
CLASSIFIERS = [model for model in [*ESTIMATORS, *WRAPPERS] if is_classifier(model)]
TRANSFORMERS = [model for model in [*ESTIMATORS, *BASES] if hasattr(model, "transform")]

X, Y = load_iris(return_X_y=True)
NAMES = ["sepal length", "sepal width", "petal length", "petal width"]
SPECIES = np.array(["setosa", "versicolor", "virginica"])[Y]

FRAMES = {
    "pandas": pd.DataFrame(X, columns=NAMES),
    "polars": pl.DataFrame(X, schema=NAMES),
}


def answers(model):
    """Labels as numbers; above zero for a model that takes only such."""
    return Y + 1 if model.__sklearn_tags__().target_tags.positive_only else Y


def one_per_class(models):
    """Return the first configuration of each class."""
    return list({type(model): model for model in reversed(models)}.values())[::-1]
