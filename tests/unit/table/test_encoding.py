"""Columns to features: what becomes of each kind, of missing cells and of unseen levels."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from scipy.stats import multivariate_normal
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression, PoissonRegressor
from sklearn.model_selection import cross_val_score

import discriminant as dd
from discriminant import LDA, QDA, RDA, REJECT, Decision, Encoded, NearestMean, open_source
from discriminant.errors import DiscriminantWarning, OptionError, ResponseError
from discriminant.table.encoding import Encoding
from discriminant.table.load import read_frame

pytestmark = pytest.mark.filterwarnings("error::discriminant.errors.DiscriminantWarning")

RNG = np.random.default_rng(3)
ROWS = 90
Y = np.repeat(["p", "q", "r"], 30)
FRAME = pd.DataFrame(
    {
        "size": RNG.standard_normal(ROWS) + np.repeat([0.0, 1.0, 2.0], 30),
        "colour": RNG.choice(["red", "green", "blue"], ROWS, p=[0.5, 0.3, 0.2]),
        "grade": RNG.choice(["low", "medium", "high"], ROWS),
        "sold": RNG.random(ROWS) < 0.5,
    }
)
GRADES = {"grade": ["low", "medium", "high"]}


def holes(frame, column, rows):
    found = frame.copy()
    if found[column].dtype == bool:
        found[column] = found[column].astype(object)
    found.loc[rows, column] = None
    return found


def encoding_of(frame=FRAME, **options):
    return Encoded(LDA(), **options).fit(frame, Y).encoding_


# --- kinds ---------------------------------------------------------------------------------------


def test_ordered_levels_are_equally_spaced_from_0_to_1():
    found = encoding_of(ordered=GRADES).encode(FRAME)[:, 3]
    assert found.tolist() == FRAME["grade"].map({"low": 0.0, "medium": 0.5, "high": 1.0}).tolist()


@pytest.mark.parametrize("reference", ["frequent", "first"])
def test_indicators_are_those_of_pandas_without_the_reference(reference):
    found = encoding_of(reference=reference, exclude=["grade", "sold", "size"])
    all_levels = pd.get_dummies(FRAME["colour"], prefix="colour", prefix_sep="=")
    dropped = {"frequent": "colour=red", "first": "colour=blue"}[reference]
    want = all_levels.drop(columns=dropped)
    assert found.features == tuple(want.columns)
    assert np.array_equal(found.encode(FRAME), want.to_numpy(dtype=float))


def test_without_a_reference_every_level_has_an_indicator_and_they_sum_to_one():
    opened = open_source(FRAME.assign(y=Y), target="y", columns=["colour"], reference=None)
    assert opened.encoding.features == ("colour=blue", "colour=green", "colour=red")
    assert (opened.table.features[:].sum(axis=1) == 1).all()


def test_the_choice_of_the_reference_does_not_change_what_lda_says():
    models = [Encoded(LDA(), reference=r).fit(FRAME, Y) for r in ("frequent", "first")]
    with pytest.warns(DiscriminantWarning, match="colour=blue"):
        models.append(Encoded(LDA(), reference=None).fit(FRAME, Y))
    said = [model.predict_proba(FRAME) for model in models]
    np.testing.assert_allclose(said[1:], [said[0]] * 2, rtol=1e-9)


def test_an_ordered_categorical_of_pandas_is_ordered_as_it_says():
    grade = pd.Categorical(FRAME["grade"], categories=["low", "medium", "high"], ordered=True)
    found = encoding_of(FRAME.assign(grade=grade))
    assert found.columns[2].kind == "ordered" and found.columns[2].levels == (
        "low",
        "medium",
        "high",
    )


def test_numbers_named_as_categories_are_categories():
    frame = FRAME.assign(zone=np.arange(ROWS) % 3 + 100)
    found = encoding_of(frame, categories=["zone"], exclude=["colour", "grade", "sold"])
    assert found.features == ("size", "zone=101", "zone=102")


def test_what_says_nothing_is_set_aside_and_that_is_said():
    frame = FRAME.assign(
        id=[f"n{i}" for i in range(ROWS)], row=np.arange(ROWS) + 7, same=1.5, one="x", none=None
    )
    model = Encoded(LDA()).fit(frame, Y)
    assert {column.name: column.kind for column in model.encoding_.excluded} == {
        "id": "identifier",
        "row": "identifier",
        "same": "constant",
        "one": "constant",
        "none": "dropped",
    }
    assert "Column 'id' is set aside: 90 texts, all different." in model.said_
    assert "Column 'same' is set aside: 1.5 in every row." in model.said_


def test_a_category_of_too_many_levels_is_set_aside():
    names = [f"n{i % 60}" for i in range(ROWS)]
    found = encoding_of(FRAME.assign(name=names), max_levels=50)
    assert found.columns[-1].note == "60 levels, more than max_levels=50"


def test_a_column_that_is_asked_for_is_used_come_what_may():
    opened = open_source(
        FRAME.assign(row=np.arange(ROWS), y=Y), target="y", columns=["row", "size"]
    )
    assert opened.encoding.features == ("size", "row")


def test_a_feature_name_that_is_taken_is_changed():
    frame = FRAME.assign(**{"colour=green": FRAME["size"] ** 2})
    found = encoding_of(frame)
    assert len(set(found.features)) == len(found.features) == 7


# --- by name -------------------------------------------------------------------------------------


def test_columns_are_matched_by_name_in_any_order():
    model = Encoded(LDA()).fit(FRAME, Y)
    assert np.array_equal(model.predict(FRAME[FRAME.columns[::-1]]), model.predict(FRAME))


def test_an_encoding_survives_json():
    frame = holes(FRAME.assign(id=[f"n{i}" for i in range(ROWS)]), "size", [3])
    before = encoding_of(frame, ordered=GRADES, missing="indicator", unseen="ignore")
    after = Encoding.from_dict(json.loads(json.dumps(before.to_dict())))
    assert after == before
    assert np.array_equal(after.encode(frame), before.encode(frame))


def test_a_file_is_read_as_the_kinds_of_the_fit(tmp_path):
    codes = FRAME.assign(code=[f"{i % 3:03d}" for i in range(ROWS)])
    model = Encoded(LDA()).fit(codes, Y)
    codes.to_csv(tmp_path / "new.csv", index=False)
    assert np.array_equal(model.predict(tmp_path / "new.csv"), model.predict(codes))
    frame, _ = read_frame(tmp_path / "new.csv", encoding=model.encoding_)
    assert frame["code"].kind == "text"


def as_csv(frame, folder):
    frame.to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def as_parquet(frame, folder):
    frame.to_parquet(folder / "rows.parquet")
    return folder / "rows.parquet"


def as_csv_of_polars(frame, folder):
    pl.from_pandas(frame).write_csv(folder / "rows.csv")  # true and 1.0; pandas writes True
    return folder / "rows.csv"


SOURCES = {
    "pandas": lambda frame, folder: frame,
    "objects": lambda frame, folder: frame.astype({"size": float, "sold": object}),
    "nullable": lambda frame, folder: frame.convert_dtypes(),
    "polars": lambda frame, folder: pl.from_pandas(frame),
    "arrow": lambda frame, folder: pa.table(frame),
    "csv": as_csv,
    "csv of polars": as_csv_of_polars,
    "parquet": as_parquet,
}
TYPED = FRAME[["size"]].assign(sold=np.arange(ROWS) % 7 < 3, zone=np.arange(ROWS) % 3 + 1.0)
TYPED["size"] += TYPED["sold"]


@pytest.mark.parametrize("source", SOURCES)
def test_a_category_of_floats_or_truth_values_is_one_whatever_it_comes_from(source, tmp_path):
    options = {"categories": ["sold", "zone"], "unseen": "ignore"}
    made, rows = Encoded(LDA(), **options).fit(TYPED, Y), SOURCES[source](TYPED, tmp_path)
    assert np.array_equal(made.predict_proba(rows), made.predict_proba(TYPED))
    other = Encoded(LDA(), **options).fit(rows, Y)
    assert other.encoding_.features == made.encoding_.features
    assert np.array_equal(other.predict_proba(TYPED), made.predict_proba(TYPED))


def test_texts_that_look_like_one_number_are_two_levels_where_the_fit_had_two():
    frame = FRAME[["size"]].assign(code=["1", "1.0", "01"] * (ROWS // 3))
    found = encoding_of(frame, reference="first")
    assert found.features == ("size", "code=1", "code=1.0")
    assert found.encode(frame)[:3, 1:].tolist() == [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]


def test_texts_that_mean_missing_are_remembered(tmp_path):
    path = tmp_path / "t.csv"
    FRAME.assign(colour=FRAME["colour"].replace("blue", "?"), y=Y).to_csv(path, index=False)
    told = open_source(path, target="y").notes
    assert any("'?' is one of them; if it means missing" in line for line in told)
    opened = open_source(path, target="y", missing="drop", missing_texts=["?"])
    assert opened.rows_read - len(opened.table) == (FRAME["colour"] == "blue").sum()
    model = Encoded.of_fitted(LDA().fit_moments(moments_of(opened)), opened.encoding)
    with pytest.raises(ValueError, match="column 'colour': missing"):
        model.predict(path)


def moments_of(opened):
    from discriminant.engines.dispatch import read_moments

    return read_moments(opened.table, detail="class")


def test_a_model_fitted_to_the_moments_of_a_file_is_the_model_fitted_to_the_frame(tmp_path):
    FRAME.assign(y=Y).to_csv(tmp_path / "t.csv", index=False)
    opened = open_source(tmp_path / "t.csv", target="y")
    model = Encoded.of_fitted(LDA().fit_moments(moments_of(opened)), opened.encoding)
    other = Encoded(LDA()).fit(FRAME, Y)
    np.testing.assert_allclose(model.predict_proba(FRAME), other.predict_proba(FRAME), rtol=1e-12)


# --- missing cells -------------------------------------------------------------------------------


def test_the_mean_that_fills_is_that_of_the_rows_of_the_fit():
    frame = holes(holes(FRAME, "size", [3, 8]), "colour", [5])
    model = Encoded(LDA(), missing="mean", exclude=["grade", "sold"]).fit(frame, Y)
    found = model.encode(frame)
    assert found[3, 0] == pytest.approx(frame["size"].mean(), rel=1e-14)
    shares = frame["colour"].value_counts(normalize=True)
    assert found[5, 1:] == pytest.approx([shares["blue"], shares["green"]])


def test_an_indicator_says_which_cells_were_missing():
    frame = holes(FRAME, "size", [3, 8])
    model = Encoded(LDA(), missing="indicator").fit(frame, Y)
    assert model.encoding_.features[:2] == ("size", "size missing")
    assert np.flatnonzero(model.encode(frame)[:, 1]).tolist() == [3, 8]


def test_rows_with_missing_cells_are_dropped_and_counted():
    frame = holes(holes(FRAME, "size", [3, 8]), "sold", [8, 9])
    kept = [i for i in range(ROWS) if i not in (3, 8, 9)]
    model = Encoded(LDA(), missing="drop").fit(frame, Y)
    other = Encoded(LDA()).fit(FRAME.iloc[kept], Y[kept])
    assert model.rows_dropped_ == 3
    assert "3 of 90 rows have a missing cell and are dropped." in model.said_
    np.testing.assert_allclose(model.predict_proba(FRAME), other.predict_proba(FRAME), rtol=1e-10)


GAUSSIAN = [LDA(), LDA(shrinkage=0.3), QDA(), RDA(pooling=0.4), RDA(shrinkage=0.5), NearestMean()]
IRIS, SPECIES = load_iris(return_X_y=True)
FITTED = {repr(m): Encoded(m, missing="marginal").fit(IRIS, SPECIES) for m in GAUSSIAN}


@pytest.mark.parametrize("model", GAUSSIAN, ids=repr)
@given(gone=st.sets(st.integers(0, 3), min_size=1, max_size=3), row=st.integers(0, 149))
def test_a_missing_feature_is_integrated_out(model, gone, row):
    """Against SciPy's normal density of the features that are there."""
    fitted = FITTED[repr(model)]
    x, kept = IRIS[row].copy(), [j for j in range(4) if j not in gone]
    x[list(gone)] = np.nan
    inner = fitted.estimator_
    covariance = np.broadcast_to(inner.covariance_, (3, 4, 4))
    joint = np.array(
        [
            multivariate_normal(inner.means_[k][kept], covariance[k][np.ix_(kept, kept)]).logpdf(
                x[kept]
            )
            for k in range(3)
        ]
    ) + np.log(inner.prior_)
    want = joint - np.logaddexp.reduce(joint)
    np.testing.assert_allclose(fitted.predict_log_proba(x[None])[0], want, rtol=1e-8, atol=1e-9)


def test_a_row_without_any_feature_has_the_prior():
    fitted = Encoded(LDA(prior=[0.2, 0.3, 0.5]), missing="marginal").fit(IRIS, SPECIES)
    nothing = np.full((1, 4), np.nan)
    assert fitted.predict_proba(nothing)[0] == pytest.approx([0.2, 0.3, 0.5])
    assert fitted.predict(nothing).tolist() == [2]


def test_a_complete_row_is_scored_alike_beside_rows_with_missing_cells():
    fitted = Encoded(QDA(), missing="marginal").fit(IRIS, SPECIES)
    some = IRIS[[0, 70, 140]].copy()
    some[1, 2] = np.nan
    both = fitted.predict_log_proba(some)[[0, 2]]
    np.testing.assert_allclose(both, fitted.predict_log_proba(IRIS[[0, 140]]), rtol=1e-9)


def test_a_missing_category_is_integrated_out_with_all_its_indicators():
    model = Encoded(LDA(), missing="marginal").fit(FRAME, Y)
    other = Encoded(LDA()).fit(FRAME.drop(columns="colour"), Y)
    some = holes(FRAME, "colour", slice(None))
    np.testing.assert_allclose(
        model.predict_proba(some), other.predict_proba(FRAME[["size", "grade", "sold"]]), rtol=1e-9
    )


# --- unseen levels -------------------------------------------------------------------------------


def test_an_unseen_level_that_is_ignored_is_no_level():
    model = Encoded(LDA(), unseen="ignore").fit(FRAME, Y)
    new, reference = FRAME.assign(colour="mauve"), FRAME.assign(colour="red")
    assert np.array_equal(model.predict_proba(new), model.predict_proba(reference))


@pytest.mark.parametrize(
    "wrap", [lambda m: m, lambda m: Decision(m), lambda m: Decision(m, reject=0.4)]
)
def test_a_row_with_an_unseen_level_is_rejected_but_has_a_class(wrap):
    model = wrap(Encoded(LDA(), unseen="reject")).fit(FRAME, Y)
    new = FRAME.copy()
    new.loc[4, "colour"] = "mauve"
    assert model.decide(new)[4] is REJECT
    assert model.predict(new)[4] in Y


def test_only_rows_with_unseen_levels_are_rejected():
    model = Encoded(LDA(), unseen="reject").fit(FRAME, Y)
    assert model.decide(FRAME).tolist() == model.predict(FRAME).tolist()
    assert not model.rejected(FRAME).any()


# --- company -------------------------------------------------------------------------------------


def test_weights_are_passed_on():
    weight = RNG.integers(1, 4, ROWS)
    weighed = Encoded(LDA()).fit(FRAME, Y, sample_weight=weight)
    repeated = Encoded(LDA(), reference="first").fit(
        FRAME.loc[FRAME.index.repeat(weight)].reset_index(drop=True), Y.repeat(weight)
    )
    np.testing.assert_allclose(
        weighed.predict_proba(FRAME), repeated.predict_proba(FRAME), rtol=1e-10
    )


def test_a_model_inside_knows_the_names_of_the_features():
    model = Encoded(LDA()).fit(FRAME, Y)
    assert tuple(model.estimator_.feature_names_in_) == model.encoding_.features
    assert model.feature_names_in_.tolist() == list(FRAME.columns)


def test_a_real_table_with_categories_and_missing_cells_is_learnt(shared_data):
    path = shared_data / "penguins" / "penguins.csv"
    opened = open_source(path, target="species", missing="marginal")
    model = Encoded.of_fitted(LDA().fit_moments(moments_of(opened)), opened.encoding)
    assert opened.rows_read == 344 and len(opened.table) == 333
    assert (model.predict(path) == pd.read_csv(path)["species"]).mean() > 0.98


def test_a_factor_is_projected_as_its_indicators_are():
    frame, y = _with_factor()
    model = dd.Encoded(dd.LDA()).fit(frame, y)
    along = (model.encode(frame) - model.centre_) @ model.scalings_
    np.testing.assert_allclose(model.transform(frame), along, atol=1e-12)


def test_leaving_one_out_keeps_priors_of_a_table_with_a_factor():
    frame, y = _with_factor()
    model = dd.Encoded(dd.LDA())
    by_table = dd.leave_one_out(model, frame, y, prior="fixed")
    by_features = dd.leave_one_out(dd.LDA(), model.fit(frame, y).encode(frame), y, prior="fixed")
    np.testing.assert_allclose(by_table.log_posterior, by_features.log_posterior, atol=1e-9)


def _with_factor():
    rng = np.random.default_rng(5)
    y = np.repeat(["a", "b", "c"], 12)
    size = rng.normal(size=36) + (y == "b") + 2 * (y == "c")
    return pd.DataFrame({"size": size, "sex": np.tile(["f", "m", "m", "f"], 9)}), y


def test_numbers_that_sound_like_names_are_used_with_a_word_about_it():
    rows = pd.DataFrame({"zip": [10249.0, 10115, 10999, 80331] * 5, "area": np.arange(20.0) ** 2})
    opened = open_source(rows.assign(y=list("ab") * 10), target="y")
    assert [line for line in opened.notes if "suggests a code" in line] == [
        "Column 'zip' is used as a number, although its name suggests a code: if it is one, name "
        "it in categories (--category)."
    ]


# --- regressors ----------------------------------------------------------------------------------

NUMBERS = np.exp(
    1.0
    + 0.3 * FRAME["size"]
    + 0.4 * (FRAME["colour"] == "red")
    + 0.2 * FRAME["sold"]
    + 0.1 * np.random.default_rng(8).standard_normal(ROWS)
).to_numpy()
REGRESSORS = [dd.LinearRegression(), dd.GLM("gamma", "log"), dd.LogLinear(), LinearRegression()]


def design(frame=FRAME):
    """(n, 6) intercept, size, blue, green, grade from 0 to 1, sold: red is the reference."""
    grade = frame["grade"].map({"low": 0.0, "medium": 0.5, "high": 1.0})
    colours = [frame["colour"] == level for level in ("blue", "green")]
    return np.column_stack(
        [np.ones(len(frame)), frame["size"], *colours, grade, frame["sold"]]
    ).astype(float)


@pytest.mark.parametrize(
    "inner", [dd.LinearRegression(), LinearRegression()], ids=["ours", "theirs"]
)
def test_encoded_linear_regression_is_least_squares_on_the_indicators(inner):
    model = Encoded(inner, ordered=GRADES).fit(FRAME, NUMBERS)
    assert model.encoding_.features == ("size", "colour=blue", "colour=green", "grade", "sold")
    beta = np.linalg.lstsq(design(), NUMBERS, rcond=None)[0]
    np.testing.assert_allclose(model.predict(FRAME), design() @ beta, rtol=1e-10)
    left = ((NUMBERS - design() @ beta) ** 2).sum()
    r2 = 1 - left / ((NUMBERS - NUMBERS.mean()) ** 2).sum()
    assert model.score(FRAME, NUMBERS) == pytest.approx(r2, rel=1e-10)


def test_encoded_log_linear_is_least_squares_on_the_logarithm():
    model = Encoded(dd.LogLinear(), ordered=GRADES).fit(FRAME, NUMBERS)
    beta = np.linalg.lstsq(design(), np.log(NUMBERS), rcond=None)[0]
    np.testing.assert_allclose(model.predict(FRAME), np.exp(design() @ beta), rtol=1e-10)


def test_encoded_poisson_model_is_that_of_scikit_learn():
    counts = np.random.default_rng(5).poisson(NUMBERS)
    model = Encoded(dd.GLM("poisson"), ordered=GRADES).fit(FRAME, counts)
    theirs = PoissonRegressor(alpha=0.0, tol=1e-10, solver="newton-cholesky")
    theirs.fit(design()[:, 1:], counts)
    np.testing.assert_allclose(model.predict(FRAME), theirs.predict(design()[:, 1:]), rtol=1e-7)
    assert model.score(FRAME, counts) == pytest.approx(theirs.score(design()[:, 1:], counts))


def test_encoded_poisson_model_of_factors_is_that_of_r():
    """Dobson (1990), the example of R's ?glm: counts ~ outcome + treatment, both factors."""
    factors = pd.DataFrame({"outcome": list("123") * 3, "treatment": np.repeat(list("abc"), 3)})
    counts = [18, 17, 15, 20, 10, 20, 25, 13, 12]
    model = Encoded(dd.GLM("poisson"), reference="first").fit(factors, counts).estimator_
    published = [3.045, -0.4543, -0.2930, 0.0, 0.0]
    assert [model.intercept_, *model.coef_] == pytest.approx(published, abs=5e-4)
    assert model.deviance_ == pytest.approx(5.1291, abs=5e-5)
    errors = [0.1709, 0.2022, 0.1927, 0.2000, 0.2000]
    assert model.inference().std_error == pytest.approx(errors, abs=5e-5)


def test_encoded_regression_takes_weights_and_several_responses():
    weight = np.random.default_rng(6).integers(1, 4, ROWS)
    both = np.column_stack([NUMBERS, np.log(NUMBERS)])
    model = Encoded(dd.LinearRegression(), ordered=GRADES).fit(FRAME, both, weight)
    repeated = np.repeat(np.arange(ROWS), weight)
    beta = np.linalg.lstsq(design()[repeated], both[repeated], rcond=None)[0]
    np.testing.assert_allclose(model.predict(FRAME), design() @ beta, rtol=1e-9)


def test_encoded_regression_drops_rows_with_missing_cells_and_their_responses():
    frame = holes(FRAME, "size", [3, 8])
    kept = [i for i in range(ROWS) if i not in (3, 8)]
    model = Encoded(dd.LinearRegression(), ordered=GRADES, missing="drop").fit(frame, NUMBERS)
    beta = np.linalg.lstsq(design()[kept], NUMBERS[kept], rcond=None)[0]
    assert model.rows_dropped_ == 2
    np.testing.assert_allclose(model.predict(FRAME), design() @ beta, rtol=1e-10)


@pytest.mark.parametrize("inner", REGRESSORS, ids=lambda m: type(m).__module__ + repr(m))
def test_encoded_around_a_regressor_is_a_regressor(inner):
    model = Encoded(clone(inner))
    assert is_regressor(model) and not is_classifier(model)
    assert len(cross_val_score(model, FRAME, NUMBERS, cv=3)) == 3
    model.fit(FRAME, NUMBERS)
    for name in ("classes_", "predict_proba", "decide", "rejected", "decision_function"):
        assert not hasattr(model, name)
    assert is_classifier(Encoded(LDA())) and not is_regressor(Encoded(LDA()))


@pytest.mark.parametrize("inner", REGRESSORS[:3], ids=repr)
def test_encoded_regressor_is_saved_and_loaded(inner, tmp_path):
    model = Encoded(clone(inner), ordered=GRADES).fit(FRAME, NUMBERS)
    model.save(tmp_path / "model")
    again = dd.load(tmp_path / "model")
    assert again.predict(FRAME).tolist() == model.predict(FRAME).tolist()
    assert again.score(FRAME, NUMBERS) == model.score(FRAME, NUMBERS)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_predictions_of_a_regressor_are_written_as_numbers(suffix, tmp_path):
    model = Encoded(dd.LinearRegression()).fit(FRAME, NUMBERS)
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / f"out.{suffix}"
    done = dd.predict_file(model, tmp_path / "rows.csv", out)
    written = pd.read_csv(out) if suffix == "csv" else pd.read_parquet(out)
    assert done.rows == ROWS and done.counts == {} and done.columns == ("predicted",)
    np.testing.assert_allclose(written["predicted"], model.predict(FRAME), rtol=1e-14)
    both = Encoded(dd.LinearRegression()).fit(FRAME, np.column_stack([NUMBERS, NUMBERS]))
    with pytest.raises(ResponseError, match="fitted to 2 responses"):
        dd.predict_file(both, tmp_path / "rows.csv", tmp_path / "both.csv")


def test_encoded_regressor_refuses_what_only_classes_have(tmp_path):
    FRAME.assign(y=Y).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(ResponseError, match="a partitioned table is a class, and LinearRegression"):
        Encoded(dd.LinearRegression()).fit(dd.rows(tmp_path / "t.csv", target="y"))
    with pytest.raises(OptionError, match=r"unseen='reject'.*regressor"):
        Encoded(dd.LinearRegression(), unseen="reject").fit(FRAME, NUMBERS)
    with pytest.raises(ResponseError, match="requires y"):
        Encoded(dd.LinearRegression()).fit(FRAME)
    with pytest.raises(ResponseError, match="y holds"):
        Encoded(dd.LinearRegression()).fit(FRAME, Y)


def test_encoded_refitted_around_another_kind_of_estimator_forgets_the_classes():
    model = Encoded(LDA()).fit(FRAME, Y)
    model.set_params(estimator=dd.LinearRegression()).fit(FRAME, NUMBERS)
    assert not hasattr(model, "classes_") and model.predict(FRAME).dtype == float


def test_missing_texts_add_to_the_usual_ones(tmp_path):
    path = tmp_path / "rows.csv"
    cells = ["1.5", "?", "NA", "2.5", "", "null", "4.0", "3.0"]
    path.write_text(
        "x,region,y\n"
        + "".join(
            f"{cell},{'NA' if i % 2 else 'EU'},{'ab'[i // 2 % 2]}\n" for i, cell in enumerate(cells)
        )
    )
    opened = open_source(path, target="y", missing="drop", missing_texts=["?"])
    assert np.asarray(opened.table.features[:])[:, 0].tolist() == [1.5, 2.5, 4.0, 3.0]
    levels = {column.name: column.levels for column in opened.encoding.columns}
    assert set(levels["region"]) == {"EU", "NA"}  # a category called NA is no missing cell


def test_note_on_filled_cells_names_means_for_numbers_and_shares_for_categories():
    size, colour = [1.0, None, 2.0, 4.0, 5.0, 3.0], ["red", "blue", None, "red", "blue", "red"]
    frame = pd.DataFrame({"size": size, "colour": colour, "kind": list("aabbab")})
    notes = {
        column: dd.study(
            frame[[column, "kind"]], target="kind", missing="mean", folds=2
        ).opened.notes[-1]
        for column in ("size", "colour")
    }
    assert notes == {
        "size": "1 missing cell in 1 column is replaced by the mean of the column.",
        "colour": "1 missing cell in 1 column is replaced by the shares of the levels (the mean "
        "of each indicator).",
    }


def test_column_with_one_value_and_missing_cells_is_not_said_to_have_it_in_every_row():
    mark, x = ["call me", None, None, None, "call me", None], [1.0, 3.0, 2.0, 5.0, 4.0, 6.0]
    frame = pd.DataFrame({"x": x, "mark": mark, "kind": list("aabbab")})
    columns = dd.study(frame, target="kind", missing="mean", folds=2).opened.encoding.columns
    note = {column.name: column.note for column in columns}["mark"]
    assert note == "'call me' in all 2 cells that are not missing (4 of 6 are)"
