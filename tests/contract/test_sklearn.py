"""The contract with scikit-learn and with the frames and pipelines around it."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import discriminant
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
    LogLinear,
    NearestMean,
    OneVsOne,
    OneVsRest,
    OutputCodes,
    Perceptron,
    Resampled,
    Reweighted,
)

# Every public estimator, in all its variants. A new one joins here.
ESTIMATORS = [
    LDA(),
    LDA(shrinkage="auto"),
    LDA(shrinkage=1.0),
    LDA(shrinkage=0.3, target="identity", denominator="ml"),
    LDA(shrinkage="oas", target="scaled_identity"),
    QDA(),
    QDA(shrinkage=0.5),
    QDA(shrinkage="auto", denominator="ml"),
    RDA(),
    RDA(pooling=0.3, shrinkage=0.5),
    RDA(pooling=1.0, shrinkage="oas"),
    RDA.from_klar(0.1, 0.5),
    RDA.from_friedman(0.5, 0.1),
    RDA.from_sklearn(0.1),
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
    LaplaceNB(),
    Logistic(),
    Logistic(ridge=0.1, standardize=False),
    Logistic(ridge=0.01, intercept=False),
    Logistic(bias_reduction="jeffreys"),
    Logistic(ridge=0.1, solver="lbfgs"),
    Logistic(ridge=0.01, l1_ratio=0.5),
    Logistic(ridge=0.01, l1_ratio=1.0, solver="lbfgs"),
    GLM(),
    GLM(ridge=0.1, intercept=False),
    GLM("poisson"),
    GLM("gamma", "log"),
    LogLinear(),
    LogLinear(predicted="smearing"),
    Perceptron(),
    Perceptron(keep="average", shuffle=True),
    Perceptron(update="batch", standardize=False),
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
]
# Around other classifiers, whose options are their own.
WRAPPERS = [
    Decision(LDA()),
    Decision(Logistic(ridge=0.1)),
    Decision(LogisticRegression(max_iter=1000)),
    Fusion([("first", LDA(), slice(0, 1)), ("others", Logistic(ridge=0.1), slice(1, None))]),
    OneVsRest(LDA()),
    OneVsRest(LogisticRegression(max_iter=1000)),
    OneVsRest(LinearSVC(dual=False, tol=1e-14)),
    OneVsOne(LDA()),
    OneVsOne(QDA()),
    OneVsOne(LogisticRegression(max_iter=1000)),
    OneVsOne(LinearSVC(dual=False, tol=1e-14)),
    OutputCodes(LDA()),
    OutputCodes(LDA(), code="sparse"),
    OutputCodes(LDA(), code="exhaustive", decoding="hamming"),
    OutputCodes(LDA(), code="designed", decoding="euclidean"),
    OutputCodes(LogisticRegression(max_iter=1000)),
    OutputCodes(LinearSVC(dual=False, tol=1e-14), code="exhaustive"),
    Encoded(LDA()),
    Encoded(QDA(), missing="mean"),
    Encoded(LogisticRegression(max_iter=1000)),
    Reweighted(LDA()),
    Reweighted(LogisticRegression(max_iter=1000), "effective"),
    Resampled(LDA()),
    Resampled(LDA(), "smote", neighbours=1),
    Resampled(Logistic(ridge=0.1), "under"),
    Resampled(LogisticRegression(max_iter=1000), "smote", neighbours=1),
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

every_estimator = pytest.mark.parametrize("model", ESTIMATORS, ids=repr)
every_model = pytest.mark.parametrize("model", [*ESTIMATORS, *WRAPPERS], ids=repr)
every_classifier = pytest.mark.parametrize("model", CLASSIFIERS, ids=repr)
every_transformer = pytest.mark.parametrize("model", TRANSFORMERS, ids=repr)
every_frame = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)


def answers(model):
    """Labels as numbers; above zero for a model that takes only such."""
    return Y + 1 if model.__sklearn_tags__().target_tags.positive_only else Y


pytestmark = pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")


@parametrize_with_checks([*ESTIMATORS, *BASES, *WRAPPERS])
def test_scikit_learn_finds_no_fault(estimator, check):
    check(estimator)


def test_every_public_estimator_is_held_to_the_contract():
    public = [getattr(discriminant, name) for name in discriminant.__all__]
    estimators = {kind for kind in public if isinstance(kind, type) and hasattr(kind, "fit")}
    assert estimators == {type(model) for model in [*ESTIMATORS, *BASES, *WRAPPERS]}


# --- frames and names ----------------------------------------------------------------------------


@every_model
@every_frame
def test_a_frame_is_fitted_as_its_array_and_its_names_are_remembered(model, frame):
    from_frame, from_array = (
        clone(model).fit(frame, answers(model)),
        clone(model).fit(X, answers(model)),
    )
    assert from_frame.feature_names_in_.tolist() == NAMES
    assert not hasattr(from_array, "feature_names_in_")
    np.testing.assert_allclose(from_frame.predict(frame), from_array.predict(X), atol=1e-12)


@every_estimator
@every_frame
def test_columns_are_matched_by_name(model, frame):
    fitted = clone(model).fit(frame, answers(model))
    assert np.array_equal(fitted.predict(frame[NAMES[::-1]]), fitted.predict(frame))


@every_classifier
def test_labels_of_text_come_back_as_they_are(model):
    fitted = clone(model).fit(X, SPECIES)
    assert set(fitted.predict(X)) <= {"setosa", "versicolor", "virginica"}
    assert fitted.classes_.tolist() == ["setosa", "versicolor", "virginica"]


@every_transformer
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_transformer_gives_the_frame_that_was_asked_for(model, kind):
    fitted = clone(model).set_output(transform=kind).fit(FRAMES["pandas"], Y)
    found = fitted.transform(FRAMES["pandas"])
    assert isinstance(found, pd.DataFrame if kind == "pandas" else pl.DataFrame)
    assert list(found.columns) == fitted.get_feature_names_out().tolist()


@every_transformer
def test_a_transformer_gives_as_many_columns_as_names(model):
    fitted = clone(model).fit(X, Y)
    assert fitted.transform(X).shape == (len(X), len(fitted.get_feature_names_out()))


# --- copies --------------------------------------------------------------------------------------


@every_model
def test_a_pickled_model_says_the_same(model):
    fitted = clone(model).fit(X, answers(model))
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict(X), fitted.predict(X))


@every_model
def test_a_clone_has_the_options_and_not_the_fit(model):
    copy = clone(clone(model).fit(X, answers(model)))
    assert repr(copy) == repr(model)
    with pytest.raises(NotFittedError, match=type(model).__name__):
        copy.predict(X)


@every_estimator
def test_options_are_only_read_when_fitting(model):
    for name, value in model.get_params().items():
        made = type(model)(**{name: "anything"})
        assert getattr(made, name) == "anything"
        assert made.set_params(**{name: value}).get_params()[name] == value


@pytest.mark.parametrize(
    "changed",
    [
        {"prior": [0.9, 0.05, 0.05]},
        {"shrinkage": 0.9},
        {"target": "identity"},
        {"denominator": "ml"},
    ],
    ids=repr,
)
def test_options_changed_after_a_fit_wait_for_the_next(changed):
    model = LDA(shrinkage=0.1).fit(X, Y)

    def told():
        return [
            model.predict_proba(X, prior=[0.2, 0.3, 0.5]),
            model.mahalanobis(X),
            model.log_density(X),
            model.transform(X),
            model.scalings_,
            model.prior_,
            model.shrinkage_,
            model.sample(5, 0)[0],
        ]

    before = told()
    model._derived.clear()
    model.set_params(**changed)
    for was, now in zip(before, told(), strict=True):
        np.testing.assert_array_equal(was, now)


@pytest.mark.parametrize("model", [LDA(), QDA(), RDA(), NearestMean()], ids=repr)
def test_a_fitted_model_has_all_its_attributes_at_once(model):
    fitted = clone(model).fit(X, Y)
    for name in ("classes_", "prior_", "means_", "moments_", "n_features_in_", "shrinkage_"):
        assert getattr(fitted, name) is not None


# --- company -------------------------------------------------------------------------------------


@every_classifier
def test_a_classifier_works_in_a_pipeline(model):
    pipeline = make_pipeline(StandardScaler(), clone(model)).fit(X, SPECIES)
    assert pipeline.score(X, SPECIES) > 0.6


@every_classifier
def test_a_classifier_is_cross_validated_by_scikit_learn(model):
    assert cross_val_score(clone(model), X, SPECIES, cv=3).mean() > 0.6


def test_a_grid_of_options_is_searched():
    grid = {"pooling": [0.0, 0.5, 1.0], "shrinkage": [0.0, 0.5]}
    search = GridSearchCV(RDA(), grid, cv=3, scoring="neg_log_loss").fit(X, SPECIES)
    assert search.best_estimator_.score(X, SPECIES) > 0.95


def test_sample_weight_is_routed_through_a_pipeline():
    weight = np.where(Y == 0, 2.0, 1.0)
    pipeline = make_pipeline(StandardScaler(), LDA()).fit(X, Y, lda__sample_weight=weight)
    assert pipeline[-1].prior_ == pytest.approx([0.5, 0.25, 0.25])


# --- looks ---------------------------------------------------------------------------------------


@every_estimator
def test_the_text_names_the_model_and_what_was_changed(model):
    changed = {
        name
        for name, value in model.get_params().items()
        if value != type(model)().get_params()[name]
    }
    text = repr(model)
    assert text.startswith(type(model).__name__)
    assert all(f"{name}=" in text for name in changed) and text.count("=") == len(changed)


@every_model
def test_the_page_shows_the_model_before_and_after_fitting(model):
    before, after = clone(model)._repr_html_(), clone(model).fit(X, answers(model))._repr_html_()
    assert "Not fitted" in before and "Not fitted" not in after
    assert all(type(model).__name__ in page for page in (before, after))


# --- imports -------------------------------------------------------------------------------------


def run(code):
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return found.stdout.strip()


HEAVY = [
    "sklearn",
    "pandas",
    "polars",
    "pyarrow",
    "narwhals",
    "matplotlib",
    "dask",
    "pyspark",
    "duckdb",
]


def test_importing_the_package_imports_nothing_heavy():
    code = f"import sys, discriminant; print([m for m in {HEAVY} if m in sys.modules])"
    assert run(code) == "[]"


def test_a_single_row_is_predicted_without_a_warning():
    fitted = LDA().fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fitted.predict(X[:1]).tolist() == [0]
