"""The suites of peers that are run, and the names in them that adapters replace."""

from __future__ import annotations

from dataclasses import dataclass

_DISCRIMINANTS = ("LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis")
_LINEAR = ("LogisticRegression", "Perceptron", "LinearSVC")
_MULTICLASS = ("OneVsRestClassifier", "OneVsOneClassifier", "OutputCodeClassifier")
_SAMPLERS = ("RandomOverSampler", "RandomUnderSampler", "SMOTE", "SMOTENC")


@dataclass(frozen=True, slots=True)
class Suite:
    """One test file of a peer."""

    name: str
    distribution: str
    package: str
    file: str  # in the package
    adapter: str  # module in `adapters`
    names: tuple[str, ...] = ()  # imported from the adapter in place of the package
    data: tuple[str, ...] = ()  # folders of the package that the test reads by their place
    without: tuple[str, ...] = ()  # tests of the class of an object that the peer itself creates


def _sklearn(name: str, file: str, *names: str, without: tuple[str, ...] = ()) -> Suite:
    return Suite(name, "scikit-learn", "sklearn", file, "sklearn_adapter", names, without=without)


def _imblearn(name: str, file: str) -> Suite:
    return Suite(name, "imbalanced-learn", "imblearn", file, "imblearn_adapter", _SAMPLERS)


def _statsmodels(name: str, file: str, *data: str) -> Suite:
    # Its fits are replaced inside the library: see the adapter.
    return Suite(name, "statsmodels", "statsmodels", file, "statsmodels_adapter", data=data)


SUITES = (
    _sklearn("discriminant", "tests/test_discriminant_analysis.py", *_DISCRIMINANTS, "_cov"),
    _sklearn("logistic", "linear_model/tests/test_logistic.py", "LogisticRegression"),
    _sklearn("perceptron", "linear_model/tests/test_perceptron.py", "Perceptron"),
    _sklearn("svm", "svm/tests/test_svm.py", "LinearSVC"),
    _sklearn("svm_sparse", "svm/tests/test_sparse.py", "LinearSVC"),
    _sklearn("multiclass", "tests/test_multiclass.py", *_MULTICLASS),
    _sklearn(
        "calibration",
        "tests/test_calibration.py",
        *_LINEAR,
        *_DISCRIMINANTS,
        without=("test_calibration_default_estimator",),
    ),
    _sklearn(
        "threshold",
        "model_selection/tests/test_classification_threshold.py",
        "LogisticRegression",
        "FixedThresholdClassifier",
    ),
    _imblearn("smote", "over_sampling/_smote/tests/test_smote.py"),
    _imblearn("smote_nominal", "over_sampling/_smote/tests/test_smote_nc.py"),
    _imblearn("over", "over_sampling/tests/test_random_over_sampler.py"),
    _imblearn("under", "under_sampling/_prototype_selection/tests/test_random_under_sampler.py"),
    _statsmodels("glm", "genmod/tests/test_glm.py"),
    _statsmodels("glm_weights", "genmod/tests/test_glm_weights.py"),
    _statsmodels("discrete", "discrete/tests/test_discrete.py", "genmod/tests/results"),
    _statsmodels("margins", "discrete/tests/test_margins.py"),
)
