"""Models fitted by formula: every estimator, files, tables of any library, and the same numbers."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import discriminant as dd
from discriminant import GLM, LDA, QDA, Basis, Encoded, LinearRegression, Logistic, LogLinear
from discriminant.errors import ExportError, FormulaError, MissingCellError, StoredFileError
from tests.shared.stored import differences, signed, taken_apart

RNG = np.random.default_rng(1)
N = 60
FRAME = pd.DataFrame(
    {
        "case": np.where(RNG.normal(size=N) > 0, "yes", "no"),
        "age": RNG.integers(20, 60, N),
        "dose": RNG.uniform(1, 5, N).round(2),
        "group": np.array(["a", "b", "c"])[np.arange(N) % 3],
        "count": RNG.integers(1, 9, N),
    }
)
CASE = "case ~ age + log(dose) + C(group, sum) + poly(age, 2, raw=TRUE):group - age"
PLAIN = "case ~ poly(age, 2) + log(dose) * group"


@pytest.mark.parametrize(
    ("cls", "text", "options"),
    [
        (Logistic, PLAIN, {}),
        (Logistic, PLAIN, {"ridge": 0.1}),
        (LDA, PLAIN, {"shrinkage": 0.1}),
        (QDA, "case ~ age + log(dose)", {}),
        (dd.RDA, "case ~ age + log(dose)", {}),
        (dd.SVM, PLAIN, {}),
        (dd.LeastSquares, PLAIN, {}),
        (dd.OneVsRest, "group ~ age + dose", {"estimator": LDA()}),
        (dd.Decision, PLAIN, {"estimator": LDA(), "reject": 0.1}),
        (GLM, "count ~ age + group", {"family": "poisson"}),
        (LogLinear, "count ~ age + group", {}),
        (LinearRegression, "dose ~ poly(age, 3) + group", {}),
    ],
)
def test_every_estimator_fits_and_loads(cls, text, options, tmp_path):
    """The model equals one fitted to the features, and a file holds it without formulaic."""
    model = cls.from_formula(text, FRAME, **options)
    response = FRAME[text.partition(" ~")[0]]
    features = pd.DataFrame(model.encode(FRAME), columns=model.encoding_.features)
    plain = cls(**options).fit(features, response)
    np.testing.assert_allclose(
        *(
            np.unique(each, return_inverse=True)[1] if each.dtype.kind in "UO" else each
            for each in (model.predict(FRAME), plain.predict(features))
        )
    )
    model.save(tmp_path / "model.dd")
    loaded = dd.load(tmp_path / "model.dd")
    assert differences(model.encoding_, loaded.encoding_) == []
    np.testing.assert_array_equal(loaded.predict(FRAME), model.predict(FRAME))


@pytest.mark.parametrize("kind", [pl.from_pandas, pa.Table.from_pandas], ids=["polars", "arrow"])
def test_every_kind_of_table_gives_the_same_model(kind):
    model = Logistic.from_formula(PLAIN, FRAME)
    other = Logistic.from_formula(PLAIN, kind(FRAME))
    np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-12)
    np.testing.assert_allclose(other.predict_proba(FRAME), model.predict_proba(kind(FRAME)))


def test_columns_are_matched_by_name_and_others_are_ignored():
    model = Logistic.from_formula("case ~ age + log(dose)", FRAME)
    shuffled = FRAME[["dose", "age"]]
    np.testing.assert_array_equal(model.predict(shuffled), model.predict(FRAME))
    with pytest.raises(dd.errors.ColumnNamesError, match="'dose'"):
        model.predict(FRAME[["age"]])


def test_a_summary_has_the_names_of_the_formula():
    summary = Logistic.from_formula("case ~ age + C(group, sum)", FRAME).summary()
    for name in ("age", "C(group, sum)1", "C(group, sum)2"):
        assert name in summary.text


def test_weights_are_repeats():
    weight = np.arange(N) % 3 + 1
    weighted = Logistic.from_formula("case ~ age + group", FRAME, sample_weight=weight)
    repeated = Logistic.from_formula("case ~ age + group", FRAME.loc[FRAME.index.repeat(weight)])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-7)


def test_rows_in_any_order_give_the_same_model():
    order = np.random.default_rng(2).permutation(N)
    model, other = (Logistic.from_formula(PLAIN, f) for f in (FRAME, FRAME.iloc[order]))
    np.testing.assert_allclose(other.predict_proba(FRAME), model.predict_proba(FRAME), rtol=1e-7)


def test_a_wrapper_with_a_formula_is_cloned_and_wraps_other_libraries():
    model = Encoded(LogisticRegression(), formula="~ scale(age) + group")
    again = clone(model).fit(FRAME, FRAME["case"])
    assert again.encoding_.features == ("scale(age)", "groupb", "groupc")
    assert again.predict(FRAME).shape == (N,)


def test_an_array_has_the_default_names():
    rows = FRAME[["age", "dose"]].to_numpy()
    model = Encoded(LDA(), formula="~ x0 + log(x1)").fit(rows, FRAME["case"])
    assert model.encoding_.features == ("x0", "log(x1)")
    frame = LDA.from_formula("case ~ age + log(dose)", FRAME)
    np.testing.assert_allclose(model.predict_proba(rows), frame.predict_proba(FRAME))


def test_what_predicts_nothing_has_no_formula():
    with pytest.raises(FormulaError, match="Basis predicts nothing"):
        Basis.from_formula("case ~ age", FRAME)


def test_partitioned_rows_are_refused_with_the_way_out(tmp_path):
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    parts = dd.rows(tmp_path / "rows.csv", target="case")
    with pytest.raises(FormulaError, match="engine='memory'"):
        Encoded(LDA(), formula="~ age").fit(parts)


def test_an_export_is_refused_with_the_way_out():
    with pytest.raises(ExportError, match="Add these features to the table"):
        dd.export(Logistic.from_formula("case ~ log(dose)", FRAME), "sql", table="rows")


def test_a_study_by_formula_compares_and_predicts(tmp_path):
    study = dd.study(FRAME, formula="case ~ age + log(dose) + group", folds=3)
    study.compare(["lda", "logistic_ml"])
    study.choose("logistic_ml")
    model = study.model()
    direct = Logistic.from_formula("case ~ age + log(dose) + group", FRAME)
    np.testing.assert_allclose(model.predict_proba(FRAME), direct.predict_proba(FRAME), rtol=1e-6)


# --- files ----------------------------------------------------------------------------------------


EXPRESSIONS = [
    "__import__('os').system('touch was_run')",
    "age.__class__",
    "open('x')",
    "exec('import os')",
    "log(age, out=age)",
    "poly(age, 3)",  # another call than that whose state is stored
    "no_such_column",
    "(" * 300,
    "I(" + "-" * 1900 + "age)",
    "",
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_no_formula_in_a_file_can_run_code(expression, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Logistic.from_formula("case ~ poly(age, 2) + group", FRAME).save(tmp_path / "honest.dd")
    header, manifest, arrays = taken_apart((tmp_path / "honest.dd").read_bytes())
    text = json.dumps(manifest)
    honest = '["expression", "poly(age, 2)"]'
    assert honest in text
    forged = text.replace(honest, json.dumps(["expression", expression]))
    (tmp_path / "forged.dd").write_bytes(signed(header, forged, arrays))
    with pytest.raises(StoredFileError):
        model = dd.load(tmp_path / "forged.dd")
        model.predict(FRAME)
    assert not (tmp_path / "was_run").exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('["kind", "category"], ["width", 1]', '["kind", "number"], ["width", 1]'),
        ('["coding", "treatment"]', '["coding", "evil"]'),
        ('["reference", null]', '["reference", "z"]'),
        ('["width", 2]', '["width", 1]'),
        ('["width", 2]', '["width", "2"]'),
        ('["intercept", true]', '["intercept", 3]'),
        ('{"tuple": [1, 1, true]}', '{"tuple": [1, 2, true]}'),
        ('{"tuple": [1, 1, true]}', '{"tuple": [7, 1, true]}'),
        ('{"tuple": [1, 1, true]}', '{"tuple": [-1, 0, true]}'),
        ('["poly(age, 2)", {"tuple": [2.0, ', '["poly(age, 2)", {"tuple": [3.0, '),
        ('["poly(age, 2)", {"tuple": [2.0, ', '["poly(age, 2)", {"tuple": [{"float": "nan"}, '),
    ],
)
def test_a_design_whose_parts_do_not_fit_is_refused(old, new, tmp_path):
    Logistic.from_formula("case ~ poly(age, 2) + group", FRAME).save(tmp_path / "honest.dd")
    header, manifest, arrays = taken_apart((tmp_path / "honest.dd").read_bytes())
    text = json.dumps(manifest)
    assert old in text
    (tmp_path / "forged.dd").write_bytes(signed(header, text.replace(old, new), arrays))
    with pytest.raises((StoredFileError, FormulaError)):
        dd.load(tmp_path / "forged.dd").predict(FRAME)


def test_a_file_with_a_formula_loads_in_a_fresh_process(tmp_path):
    model = Logistic.from_formula(CASE, FRAME)
    model.save(tmp_path / "model.dd")
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    code = (
        "import sys, discriminant as dd, pandas as pd\n"
        f"model = dd.load({str(tmp_path / 'model.dd')!r})\n"
        f"rows = pd.read_csv({str(tmp_path / 'rows.csv')!r})\n"
        "print(model.predict_proba(rows)[:, 1].sum().hex())\n"
        "assert 'formulaic' not in sys.modules"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    assert float.fromhex(shown.stdout.strip()) == model.predict_proba(FRAME)[:, 1].sum()


# --- encoded regressors ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "regressor", [LinearRegression(), GLM("poisson"), GLM("gamma", "log"), LogLinear()]
)
def test_encoded_wraps_regressors(regressor, tmp_path):
    """Fit, predict, score, save and load; there are no classes."""
    columns = FRAME[["age", "dose", "group"]]
    model = Encoded(regressor, missing="mean").fit(columns, FRAME["count"])
    assert not hasattr(model, "classes_")
    plain = clone(regressor).fit(model.encode(columns), FRAME["count"])
    np.testing.assert_allclose(model.predict(columns), plain.predict(model.encode(columns)))
    np.testing.assert_allclose(
        model.score(columns, FRAME["count"]), plain.score(model.encode(columns), FRAME["count"])
    )
    model.save(tmp_path / "model.dd")
    loaded = dd.load(tmp_path / "model.dd")
    np.testing.assert_array_equal(loaded.predict(columns), model.predict(columns))
    assert "fitted" in str(loaded)


def test_columns_that_the_formula_does_not_use_may_be_of_any_type():
    frame = FRAME.assign(note=[[i] for i in range(N)])
    model = Logistic.from_formula("case ~ age", frame)
    assert model.n_features_in_ == 1
    np.testing.assert_array_equal(model.predict(frame), model.predict(FRAME))


def test_an_array_may_have_columns_that_the_formula_does_not_use():
    rows = FRAME[["count", "age", "dose"]].to_numpy()
    model = Encoded(LDA(), formula="~ log(x2)").fit(rows, FRAME["case"])
    frame = LDA.from_formula("case ~ log(dose)", FRAME)
    np.testing.assert_allclose(model.predict_proba(rows), frame.predict_proba(FRAME))
    assert model.n_features_in_ == 3


def test_encoded_by_formula_is_not_encoded_twice():
    model = Encoded.from_formula("case ~ age + group", FRAME, estimator=LDA())
    assert type(model.estimator_) is LDA
    same = LDA.from_formula("case ~ age + group", FRAME)
    np.testing.assert_array_equal(model.predict_proba(FRAME), same.predict_proba(FRAME))


def test_a_regressor_refuses_a_response_of_texts():
    with pytest.raises(dd.errors.DiscriminantError):
        LinearRegression.from_formula("case ~ age", FRAME)


def test_ways_out_of_missing_cells_and_of_an_absent_response_work():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=40), "y": list("pq") * 20})
    gappy = frame.copy()
    gappy.loc[3, "a"] = np.nan
    with pytest.raises(MissingCellError, match=r"missing='drop'.*or fill the cells") as told:
        dd.Logistic.from_formula("y ~ a", gappy)
    assert "mean" not in str(told.value)
    model = dd.Logistic.from_formula("y ~ a", gappy, missing="drop")
    with pytest.raises(MissingCellError, match="Fill the cell in the table"):
        model.predict(gappy)
    assert len(dd.Logistic.from_formula("y ~ a", gappy.fillna({"a": 0.0})).predict(frame)) == 40
    advice = (
        r"has no response.*\(y ~ \.\.\.\).*Encoded\(Logistic\(\), formula=\.\.\.\)\.fit\(X, y\)"
    )
    for text in ("~ a", "a"):
        with pytest.raises(FormulaError, match=advice):
            dd.Logistic.from_formula(text, frame)
        assert (
            dd.Encoded(dd.Logistic(), formula=text).fit(frame, frame["y"]).score(frame, frame["y"])
        )


def test_column_with_more_levels_than_max_levels_is_rejected_unless_enclosed_in_c():
    frame = FRAME.assign(id=[f"r{i}" for i in range(N)])
    limited = Encoded(LDA(), formula="case ~ .", max_levels=50)
    with pytest.raises(FormulaError, match=r"'id' in the formula has 60 levels; the limit is 50"):
        limited.fit(frame)
    assert "id" not in limited.set_params(formula="case ~ . - id").fit(frame).encoding_.columns
    many = pd.concat([frame] * 2, ignore_index=True)
    many["id"] = [f"r{i}" for i in range(2 * N)]
    with pytest.raises(FormulaError, match="120 levels; the limit is 100"):
        LDA.from_formula("case ~ age:id", many)
    model = LinearRegression.from_formula("dose ~ C(id)", many)
    assert len(model.encoding_.features) == 119
