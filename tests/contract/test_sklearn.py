"""The contract with scikit-learn and with the frames and pipelines around it."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import discriminant
from discriminant import LDA, QDA, RDA, NearestMean
from tests.shared.estimators import (
    BASES,
    CLASSIFIERS,
    ESTIMATORS,
    FRAMES,
    NAMES,
    SPECIES,
    TRANSFORMERS,
    WRAPPERS,
    X,
    Y,
    answers,
    one_per_class,
)

every_estimator = pytest.mark.parametrize("model", ESTIMATORS, ids=repr)
every_model = pytest.mark.parametrize("model", [*ESTIMATORS, *WRAPPERS], ids=repr)
every_classifier = pytest.mark.parametrize("model", CLASSIFIERS, ids=repr)
every_transformer = pytest.mark.parametrize("model", TRANSFORMERS, ids=repr)
every_frame = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)


pytestmark = pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")


ALL = [*ESTIMATORS, *BASES, *WRAPPERS]
FIRST = one_per_class(ALL)


@parametrize_with_checks(FIRST)
def test_estimator_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow  # the same checks for every other configuration: make soak
@parametrize_with_checks([model for model in ALL if model not in FIRST])
def test_configuration_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_every_public_estimator_is_checked():
    public = [getattr(discriminant, name) for name in discriminant.__all__]
    estimators = {kind for kind in public if isinstance(kind, type) and hasattr(kind, "fit")}
    assert estimators == {type(model) for model in ALL}


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
