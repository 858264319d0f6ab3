"""Every estimator of the package, once: its name, its module and what the rest needs to know of it.

`discriminant.__init__` takes the public names from here, `store` the classes that a file may hold,
`study` and the report the models to compare and their descriptions, the tests and the documentation
the list of estimators. The module imports nothing of the package, so that every other may read it.

A new estimator is one `Estimator` in `ESTIMATORS`. `values` names the classes that its files hold
beside those in `SHARED_VALUES`: its rule, for instance. `candidates` are the configurations that a
study compares, with their place in the order of simplicity:

    1  one mean per class                 2  linear boundaries
    3  one scale per feature and class    4  between linear and quadratic boundaries
    5  quadratic boundaries: one covariance per class
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

SIMPLICITY = {
    1: "only class means",
    2: "linear boundaries",
    3: "one scale per feature and class",
    4: "boundaries between linear and quadratic",
    5: "quadratic boundaries",
}


class Candidate(NamedTuple):
    """One configuration of an estimator that a study compares."""

    name: str  # for code and the command line
    title: str  # for people
    sentence: str  # what it assumes or does
    options: Mapping[str, Any] = MappingProxyType({})  # constructor arguments
    simplicity: int = 2
    tuned: bool = False  # its hyperparameters are chosen on held-out rows
    may_stop_early: bool = False  # its fit usually ends at the limit of passes
    compiled: bool = False  # its first fit compiles a loop


class Estimator(NamedTuple):
    """A public estimator."""

    name: str  # public name, and its kind in a file
    home: str  # module below `discriminant`
    sentence: str  # what it is
    values: Mapping[str, str] = MappingProxyType({})  # kind -> module[:class], in its files only
    candidates: tuple[Candidate, ...] = ()
    memory_mapped: bool = False  # load leaves its arrays in the file unless told otherwise


ESTIMATORS = (
    Estimator(
        "LDA",
        "estimators.gaussian",
        "Linear discriminant analysis: Gaussian classes with one covariance",
        candidates=(
            Candidate(
                "lda",
                "LDA",
                "linear boundaries; models every class as Gaussian, all with one covariance",
            ),
            Candidate(
                "lda_shrunk",
                "LDA, shrunk",
                "LDA with the covariance shrunk toward its diagonal by as much as the data suggest",
                {"shrinkage": "auto"},
            ),
        ),
    ),
    Estimator(
        "QDA",
        "estimators.gaussian",
        "Quadratic discriminant analysis: Gaussian classes, each with its own covariance",
        candidates=(
            Candidate(
                "qda",
                "QDA",
                "quadratic boundaries; models every class as Gaussian with its own covariance",
                simplicity=5,
            ),
        ),
    ),
    Estimator(
        "RDA",
        "estimators.regularised",
        "Regularised discriminant analysis: between LDA and QDA",
        candidates=(
            Candidate(
                "rda",
                "RDA",
                "between LDA and QDA, with shrinkage; both amounts are chosen on held-out rows",
                simplicity=4,
                tuned=True,
            ),
        ),
    ),
    Estimator(
        "NearestMean",
        "estimators.gaussian",
        "Nearest class mean: Gaussian classes with one variance for all features",
        candidates=(
            Candidate(
                "nearest_mean",
                "Nearest mean",
                "predicts the class with the nearest mean",
                simplicity=1,
            ),
        ),
    ),
    Estimator(
        "Fisher",
        "estimators.fisher",
        "Fisher's discriminant directions, and the classifier along them",
        values={"FisherRule": "models.fisher"},
        candidates=(
            Candidate(
                "fisher",
                "Fisher, midpoint",
                "linear boundaries halfway between class means, whatever the class frequencies",
                {"threshold": "midpoint"},
            ),
        ),
    ),
    Estimator(
        "LeastSquares",
        "estimators.least_squares",
        "Least-squares regression on class indicators",
        values={"IndicatorRule": "models.indicator"},
        candidates=(
            Candidate(
                "least_squares",
                "Least squares",
                "linear boundaries; regresses a 0/1 indicator of each class on the features and "
                "predicts the class with the largest fitted value",
            ),
        ),
    ),
    Estimator(
        "LinearRegression",
        "estimators.regression",
        "Least-squares regression of one or several numeric responses",
        values={"RegressionFit": "estimators.regression:_Fit"},
    ),
    Estimator(
        "LaplaceNB",
        "estimators.laplace",
        "Naive Bayes with Laplace-distributed features",
        values={"LaplaceRule": "models.laplace"},
        candidates=(
            Candidate(
                "laplace_nb",
                "Laplace naive Bayes",
                "treats the features as independent within a class; robust to outliers",
                simplicity=3,
            ),
        ),
    ),
    Estimator(
        "GLM",
        "estimators.glm",
        "Generalised linear model: Gaussian, binomial, Poisson or gamma responses",
        values={
            "GLMFit": "models.glm",
            "Deviance": "moments.families",
            "GLMKept": "estimators.generalised:_Kept",
        },
    ),
    Estimator(
        "LogLinear",
        "estimators.glm",
        "Least-squares regression of the logarithm of a positive response",
    ),
    Estimator(
        "Logistic",
        "estimators.logistic",
        "Logistic regression for two or more classes, with ridge and elastic net",
        candidates=(
            Candidate(
                "logistic",
                "Logistic",
                "linear boundaries; models the class probabilities directly, with a small penalty",
                {"ridge": 1e-4},
            ),
            Candidate(
                "logistic_ml",
                "Logistic, no penalty",
                "logistic regression by maximum likelihood, without a penalty",
            ),
        ),
    ),
    Estimator(
        "Basis",
        "estimators.basis",
        "Polynomial and Gaussian basis functions of the features",
    ),
    Estimator(
        "SVM",
        "estimators.svm",
        "Linear support vector machine",
        candidates=(
            Candidate(
                "svm",
                "SVM",
                "linear boundaries with the widest margin; no probabilities",
                {"standardize": True},
            ),
        ),
    ),
    Estimator(
        "Perceptron",
        "estimators.perceptron",
        "Rosenblatt's perceptron, with pocket and averaging",
        candidates=(
            Candidate(
                "perceptron",
                "Perceptron",
                "linear boundaries, corrected after each misclassified row; no probabilities",
                {"keep": "average", "max_passes": 100, "prove": False},
                may_stop_early=True,
                compiled=True,
            ),
        ),
    ),
    Estimator(
        "LabelTree",
        "estimators.label_tree",
        "Label trees for extreme classification: very many classes or labels",
        values={
            "LabelTreeLayer": "models.label_tree.layers:Layer",
            "LabelTreeOne": "models.label_tree.layers:Tree",
            "LabelTreeForest": "models.label_tree.layers:Forest",
        },
        memory_mapped=True,
    ),
    Estimator(
        "Decision",
        "estimators.decision",
        "Decisions from probabilities: costs, priors, a reject option, outliers",
    ),
    Estimator(
        "Fusion",
        "estimators.fusion",
        "Combination of classifiers on conditionally independent groups of features",
    ),
    Estimator(
        "Encoded",
        "estimators.encoded",
        "Any estimator on tables with categories, dates and missing values",
    ),
    Estimator(
        "OneVsRest",
        "estimators.many_classes",
        "Many classes by one two-class classifier per class",
    ),
    Estimator(
        "OneVsOne",
        "estimators.many_classes",
        "Many classes by one two-class classifier per pair of classes",
    ),
    Estimator(
        "OutputCodes",
        "estimators.many_classes",
        "Many classes by error-correcting output codes",
    ),
    Estimator(
        "Reweighted",
        "estimators.imbalance",
        "Any classifier fitted with class weights",
    ),
    Estimator(
        "Resampled",
        "estimators.imbalance",
        "Any classifier fitted to over- or undersampled rows, or with SMOTE",
    ),
    Estimator(
        "EasyEnsemble",
        "estimators.easy_ensemble",
        "Mean of classifiers, each fitted to a balanced undersample",
    ),
)

# Classes of values that the files of several estimators, or moments by themselves, hold.
SHARED_VALUES = {
    "Anchor": "moments.anchor",
    "ClassMoments": "moments.class_moments",
    "TableMoments": "engines.table_moments",
    "ClassRows": "moments.class_rows",
    "ScatterFactor": "moments.factor",
    "Slope": "moments.slope",
    "Saturation": "moments.saturation",
    "Schema": "table.schema",
    "PolynomialBasis": "table.basis",
    "KernelBasis": "table.basis",
    "JoinedBasis": "table.basis",
    "Metric": "models.metric",
    "LinearRule": "models.rules",
    "QuadraticRule": "models.rules",
    "Coordinates": "models.coordinates",
    "Separation": "models.separation",
    "Code": "models.codes",
    "Members": "models.decomposition",
    "FittedMembers": "estimators.members",
    "ClassFit": "assessment.class_inference",
    "Grid": "assessment.grid",
}
HOMES = {each.name: each.home for each in ESTIMATORS}
VALUES = SHARED_VALUES | {kind: home for each in ESTIMATORS for kind, home in each.values.items()}
MEMORY_MAPPED = tuple(each.name for each in ESTIMATORS if each.memory_mapped)
CANDIDATES = tuple((each.name, candidate) for each in ESTIMATORS for candidate in each.candidates)
