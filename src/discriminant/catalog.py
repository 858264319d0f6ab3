"""Catalogue of all estimators: name, module, description, and facts that other modules need.

This is the only list of estimators. `discriminant.__init__` reads the public names from it; `store`
reads the classes that files may contain; `study` and the report read the models to compare and
their descriptions. Tests and documentation use it too. This module imports the rest of the package
only when `estimator_class` is called, so that every other module can import it.

To add an estimator, add an `Estimator` to `ESTIMATORS`. `values` names the Python classes (such as
the class of its rule) whose objects its files may contain in addition to those in `SHARED_VALUES`.
`candidates` are the configurations that a study can compare, each with a rank from simple to
complex:

    1  one mean per class                 2  linear boundaries
    3  one scale per feature and class    4  between linear and quadratic boundaries
    5  quadratic boundaries: one covariance per class
    6  curved boundaries: several components per class
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

SIMPLICITY = {
    1: "only class means",
    2: "linear boundaries",
    3: "one scale per feature and class",
    4: "boundaries between linear and quadratic",
    5: "quadratic boundaries",
    6: "curved boundaries",
}


class Candidate(NamedTuple):
    """One configuration of an estimator that a study compares."""

    name: str  # name in code and on the command line
    title: str  # name shown to users
    sentence: str  # what the model assumes or does
    options: Mapping[str, Any] = MappingProxyType({})  # arguments of the constructor
    simplicity: int = 2
    default: bool = True  # whether a study compares it unless models are named
    # how a comparison chooses hyperparameters for each fold: "" (the model itself does, if at all),
    # "grid" (by the RDA grid) or "path" (by a path of penalties)
    tuning: str = ""
    basis: Mapping[str, Any] | None = None  # options of `Basis`, if the features are expanded
    may_stop_early: bool = False  # whether a fit usually ends at the limit of passes
    compiled: bool = False  # whether the first fit compiles code
    needs_order: bool = False  # whether it is for classes with an order, passed as `order`


class Estimator(NamedTuple):
    """A public estimator and its entry in the catalogue."""

    name: str  # public name, which is also its kind in a file
    home: str  # module, relative to `discriminant`
    sentence: str  # short description
    # kind -> module[:class] of values that only its files contain
    values: Mapping[str, str] = MappingProxyType({})
    candidates: tuple[Candidate, ...] = ()
    memory_mapped: bool = False  # whether `load` memory-maps its arrays by default


ESTIMATORS = (
    Estimator(
        "LDA",
        "estimators.gaussian.lda_qda",
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
            Candidate(
                "lda_student",
                "LDA, Student-t",
                "LDA with predictive densities, which allow for the uncertainty of means and "
                "covariance; probabilities are less extreme where classes have few rows",
                {"predictive": "student"},
                simplicity=4,
            ),
            Candidate(
                "lda_cv",
                "LDA, shrinkage chosen",
                "LDA with the covariance shrunk toward its diagonal by an amount that is chosen on "
                "held-out rows",
                {"shrinkage": "cv"},
                tuning="grid",
            ),
            Candidate(
                "lda_quadratic",
                "LDA, quadratic",
                "quadratic boundaries; LDA on the features, their squares and products, with "
                "shrinkage that is chosen on held-out rows",
                {"shrinkage": "cv"},
                simplicity=5,
                tuning="grid",
                basis=MappingProxyType({"degree": 2}),
            ),
            Candidate(
                "lda_random",
                "LDA, random features",
                "curved boundaries; LDA on the features and 100 random functions of them, with "
                "shrinkage that is chosen on held-out rows",
                {"shrinkage": "cv"},
                simplicity=6,
                tuning="grid",
                basis=MappingProxyType({"degree": 1, "random_features": 100}),
            ),
        ),
    ),
    Estimator(
        "QDA",
        "estimators.gaussian.lda_qda",
        "Quadratic discriminant analysis: Gaussian classes, each with its own covariance",
        candidates=(
            Candidate(
                "qda",
                "QDA",
                "quadratic boundaries; models every class as Gaussian with its own covariance",
                simplicity=5,
            ),
            Candidate(
                "qda_student",
                "QDA, Student-t",
                "QDA with predictive densities, which allow for the uncertainty of means and "
                "covariances; probabilities are less extreme where classes have few rows",
                {"predictive": "student"},
                simplicity=5,
            ),
        ),
    ),
    Estimator(
        "RDA",
        "estimators.gaussian.rda",
        "Regularised discriminant analysis: between LDA and QDA",
        candidates=(
            Candidate(
                "rda",
                "RDA",
                "between LDA and QDA, with shrinkage; both amounts are chosen on held-out rows",
                simplicity=4,
                tuning="grid",
            ),
        ),
    ),
    Estimator(
        "RobustLDA",
        "estimators.gaussian.robust",
        "LDA with robust class means and a robust covariance, by minimum covariance determinant",
        candidates=(
            Candidate(
                "robust_lda",
                "Robust LDA",
                "linear boundaries; as LDA, with estimates that outlying rows hardly change",
                default=False,
            ),
        ),
    ),
    Estimator(
        "RobustQDA",
        "estimators.gaussian.robust",
        "QDA with robust class means and covariances, by minimum covariance determinant",
        candidates=(
            Candidate(
                "robust_qda",
                "Robust QDA",
                "quadratic boundaries; as QDA, with estimates that outlying rows hardly change",
                simplicity=5,
                default=False,
            ),
        ),
    ),
    Estimator(
        "MDA",
        "estimators.gaussian.mda",
        "Mixture discriminant analysis: every class is a mixture of Gaussian components",
        values={"MixtureRule": "models.gaussian.mixture"},
        candidates=(
            Candidate(
                "mda",
                "MDA",
                "curved boundaries; models every class as a mixture of Gaussian components",
                simplicity=6,
                default=False,
                may_stop_early=True,
            ),
        ),
    ),
    Estimator(
        "SDA",
        "estimators.gaussian.sda",
        "Shrinkage discriminant analysis: LDA for more features than rows, with feature ranking",
        values={"CorrelationAdjustedRule": "models.gaussian.correlation_adjusted"},
        candidates=(
            Candidate(
                "sda",
                "SDA",
                "LDA with correlations, variances and class shares shrunk by as much as the data "
                "suggest",
                default=False,
            ),
        ),
    ),
    Estimator(
        "ShrunkenCentroids",
        "estimators.gaussian.shrunken_centroids",
        "Nearest shrunken centroids (PAM): class means shrunk towards the overall mean",
        values={"ShrunkenCentroidRule": "models.gaussian.shrunken_centroids"},
        candidates=(
            Candidate(
                "shrunken_centroids",
                "Shrunken centroids",
                "linear boundaries with few of the features, treated as independent within "
                "classes; the threshold of their means is chosen on held-out rows",
                {"threshold": "cv"},
            ),
        ),
    ),
    Estimator(
        "SparseLDA",
        "estimators.gaussian.sparse_lda",
        "Sparse discriminant directions: an L1 penalty leaves few features",
        candidates=(
            Candidate(
                "sparse_lda",
                "Sparse LDA",
                "discriminant directions with few of the features, treated as uncorrelated within "
                "classes; the penalty is chosen on held-out rows",
                {"penalty": "cv"},
                default=False,
            ),
        ),
    ),
    Estimator(
        "NearestMean",
        "estimators.gaussian.lda_qda",
        "Nearest class mean: Gaussian classes with one variance for all features",
        candidates=(
            Candidate(
                "nearest_mean",
                "Nearest mean",
                "predicts the class with the nearest mean",
                simplicity=1,
                default=False,
            ),
        ),
    ),
    Estimator(
        "Fisher",
        "estimators.gaussian.fisher",
        "Fisher's discriminant directions, and the classifier along them",
        values={"FisherRule": "models.gaussian.fisher"},
        candidates=(
            Candidate(
                "fisher",
                "Fisher, midpoint threshold",
                "linear boundaries halfway between class means, whatever the class frequencies",
                {"threshold": "midpoint"},
                default=False,
            ),
        ),
    ),
    Estimator(
        "LeastSquares",
        "estimators.linear.least_squares",
        "Least-squares regression on class indicators",
        values={"IndicatorRule": "models.linear.least_squares"},
        candidates=(
            Candidate(
                "least_squares",
                "Least squares",
                "linear boundaries; regresses a 0/1 indicator of each class on the features and "
                "predicts the class with the largest fitted value",
                default=False,
            ),
        ),
    ),
    Estimator(
        "LinearRegression",
        "estimators.linear.linear_regressor",
        "Least-squares regression of one or several numeric responses",
        values={"RegressionFit": "estimators.linear.linear_regressor:RegressionFit"},
    ),
    Estimator(
        "LaplaceNB",
        "estimators.laplace_naive_bayes",
        "Naive Bayes with Laplace-distributed features",
        values={"LaplaceRule": "models.laplace_naive_bayes"},
        candidates=(
            Candidate(
                "laplace_nb",
                "Laplace naive Bayes",
                "treats the features as independent within a class; robust to outliers",
                simplicity=3,
                default=False,
            ),
        ),
    ),
    Estimator(
        "GLM",
        "estimators.linear.glm",
        "Generalised linear model: Gaussian, binomial, Poisson or gamma responses",
        values={
            "GLMFit": "models.linear.glm",
            "Deviance": "moments.glm_families",
            "GLMKept": "estimators.linear.glm:GLMState",
        },
    ),
    Estimator(
        "LogLinear",
        "estimators.linear.glm",
        "Least-squares regression of the logarithm of a positive response",
    ),
    Estimator(
        "Logistic",
        "estimators.linear.logistic",
        "Logistic regression for two or more classes, with ridge and elastic net",
        candidates=(
            Candidate(
                "logistic",
                "Logistic, ridge 0.0001",
                "linear boundaries; models the class probabilities directly, with a small penalty: "
                "Logistic(ridge=0.0001) in Python (Logistic() has no penalty)",
                {"ridge": 1e-4},
                default=False,
            ),
            Candidate(
                "logistic_ml",
                "Logistic, no penalty",
                "logistic regression by maximum likelihood, without a penalty",
                default=False,
            ),
            Candidate(
                "logistic_cv",
                "Logistic, ridge chosen",
                "logistic regression with a penalty that is chosen on held-out rows",
                {"ridge": "cv"},
                tuning="path",
            ),
            Candidate(
                "logistic_l1_cv",
                "Logistic, lasso chosen",
                "logistic regression with a penalty that drops features and is chosen on held-out "
                "rows",
                {"ridge": "cv", "l1_ratio": 1.0},
                tuning="path",
            ),
            Candidate(
                "logistic_net_cv",
                "Logistic, elastic net chosen",
                "logistic regression with half ridge and half lasso penalty; its size is chosen on "
                "held-out rows",
                {"ridge": "cv", "l1_ratio": 0.5},
                tuning="path",
            ),
            Candidate(
                "logistic_quadratic",
                "Logistic, quadratic",
                "quadratic boundaries; logistic regression on the features, their squares and "
                "products, with a penalty that is chosen on held-out rows",
                {"ridge": "cv"},
                simplicity=5,
                tuning="path",
                basis=MappingProxyType({"degree": 2}),
            ),
            Candidate(
                "logistic_random",
                "Logistic, random features",
                "curved boundaries; logistic regression on the features and 100 random functions "
                "of them, with a penalty that is chosen on held-out rows",
                {"ridge": "cv"},
                simplicity=6,
                tuning="path",
                basis=MappingProxyType({"degree": 1, "random_features": 100}),
            ),
        ),
    ),
    Estimator(
        "OrderedLogistic",
        "estimators.linear.ordered",
        "Regression for ordered classes: cumulative logit, probit and cloglog models",
        values={
            "OrderedRule": "models.linear.ordered",
            "OrderedFit": "assessment.inference.ordered",
        },
        candidates=(
            Candidate(
                "ordered_logistic",
                "Ordered logistic",
                "parallel linear boundaries; a single score with a threshold between neighbouring "
                "classes, for classes with an order",
                needs_order=True,
            ),
        ),
    ),
    Estimator(
        "BayesianLogistic",
        "estimators.linear.bayesian_logistic",
        "Bayesian logistic regression: the prior is chosen by the evidence, without held-out rows",
        values={"ScoreVariance": "models.linear.bayesian_logistic"},
    ),
    Estimator(
        "Basis",
        "estimators.basis",
        "Polynomial, Gaussian and random basis functions of the features",
    ),
    Estimator(
        "SVM",
        "estimators.linear.svm",
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
        "estimators.linear.perceptron",
        "Rosenblatt's perceptron, with pocket and averaging",
        candidates=(
            Candidate(
                "perceptron",
                "Perceptron",
                "linear boundaries, corrected after each misclassified row; no probabilities",
                {"keep": "average", "max_passes": 100, "prove": False},
                default=False,
                may_stop_early=True,
                compiled=True,
            ),
        ),
    ),
    Estimator(
        "LabelTree",
        "extreme.label_tree",
        "Label trees for extreme classification: very many classes or labels",
        values={
            "LabelTreeLayer": "extreme.model.fitted_tree:Layer",
            "LabelTreeOne": "extreme.model.fitted_tree:Tree",
            "LabelTreeForest": "extreme.model.fitted_tree:Forest",
        },
        memory_mapped=True,
    ),
    Estimator(
        "Decision",
        "estimators.meta.decision",
        "Decisions from probabilities: costs, priors, a reject option, outliers",
    ),
    Estimator(
        "PredictionSets",
        "estimators.meta.prediction_sets",
        "Sets of classes with guaranteed coverage, by conformal prediction",
        values={
            "CalibrationScores": "decision.prediction_sets",
            "LeftOutRules": "assessment.resampling.leave_one_out",
            "LeftOutQuadraticRules": "assessment.resampling.leave_one_out",
        },
    ),
    Estimator(
        "Calibrated",
        "estimators.meta.calibrated",
        "Calibrated probabilities of any classifier, from held-out scores",
        values={
            "SigmoidCalibrator": "models.calibration",
            "BetaCalibrator": "models.calibration",
            "TemperatureCalibrator": "models.calibration",
            "IsotonicCalibrator": "models.calibration",
        },
    ),
    Estimator(
        "Fusion",
        "estimators.meta.fusion",
        "Combination of classifiers on conditionally independent groups of features",
    ),
    Estimator(
        "Pool",
        "estimators.meta.pool",
        "Weighted mean of the posteriors of several classifiers",
    ),
    Estimator(
        "Encoded",
        "estimators.meta.encoded",
        "Any estimator on tables with categories, dates and missing values",
    ),
    Estimator(
        "OneVsRest",
        "estimators.meta.multiclass",
        "Many classes by one two-class classifier per class",
    ),
    Estimator(
        "OneVsOne",
        "estimators.meta.multiclass",
        "Many classes by one two-class classifier per pair of classes",
    ),
    Estimator(
        "OutputCodes",
        "estimators.meta.multiclass",
        "Many classes by error-correcting output codes",
    ),
    Estimator(
        "Reweighted",
        "estimators.meta.resampling",
        "Any classifier fitted with class weights",
    ),
    Estimator(
        "Resampled",
        "estimators.meta.resampling",
        "Any classifier fitted to over- or undersampled rows, or with SMOTE",
    ),
    Estimator(
        "LogitAdjusted",
        "estimators.meta.logit_adjustment",
        "Any classifier, with its decisions adjusted for the class shares",
    ),
    Estimator(
        "EasyEnsemble",
        "estimators.meta.resampling",
        "Mean of classifiers, each fitted to a balanced undersample",
    ),
)

# Classes of values in the files of several estimators, or of moments alone.
SHARED_VALUES = {
    "Anchor": "moments.anchor",
    "ClassMoments": "moments.class_moments",
    "TableMoments": "engines.moments_with_encoding",
    "ClassRows": "moments.rows_instead_of_moments",
    "ScatterFactor": "moments.qr_factor",
    "Slope": "moments.loss_gradient_sums:LossSums",
    "Saturation": "moments.glm_families:SaturatedLikelihood",
    "Schema": "table.blocks",
    "PolynomialBasis": "table.basis",
    "KernelBasis": "table.basis",
    "RandomBasis": "table.basis",
    "JoinedBasis": "table.basis",
    "Metric": "models.gaussian.covariance",
    "LinearRule": "models.rules",
    "QuadraticRule": "models.rules",
    "StudentRule": "models.gaussian.predictive_densities",
    "ClassParameters": "models.gaussian.known_parameters",
    "Coordinates": "models.linear.preconditioning",
    "ScaledCoordinates": "models.linear.preconditioning",
    "Separation": "models.linear.separation",
    "Code": "models.multiclass.codes:OutputCode",
    "Members": "models.multiclass.binary_rules:BinaryRules",
    "FittedMembers": "estimators.meta.multiclass:FittedBinaryEstimators",
    "ClassFit": "assessment.inference.wald",
    "Grid": "assessment.resampling.rda_grid",
    "SelectionPath": "assessment.resampling.held_out_penalty_path",
    "PenaltyPath": "assessment.resampling.penalty_search",
}
HOMES = {each.name: each.home for each in ESTIMATORS}
VALUES = SHARED_VALUES | {kind: home for each in ESTIMATORS for kind, home in each.values.items()}
MEMORY_MAPPED = tuple(each.name for each in ESTIMATORS if each.memory_mapped)
CANDIDATES = tuple((each.name, candidate) for each in ESTIMATORS for candidate in each.candidates)


def estimator_class(name: str) -> type[Any]:
    """Import an estimator by its public name."""
    estimator: type[Any] = getattr(import_module(f"discriminant.{HOMES[name]}"), name)
    return estimator
