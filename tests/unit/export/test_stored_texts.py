"""SQL of a model for tables that store numbers, truth values and dates as texts."""

import datetime as dt
import sqlite3

import numpy as np
import pandas as pd
import pytest

from discriminant import LDA, Encoded, open_source
from discriminant.export.javascript import to_javascript
from discriminant.export.python import to_python
from discriminant.export.sql import to_sql
from tests.unit.export.targets import run

ROWS = 60
RNG = np.random.default_rng(5)
INCOME = (RNG.standard_normal(ROWS) * 3.0 + 10.0).round(2)
DAYS = RNG.integers(0, 900, ROWS)
DATES = [dt.date(2021, 1, 1) + dt.timedelta(days=int(day)) for day in DAYS]
Y = np.where(INCOME + DAYS / 200 + RNG.standard_normal(ROWS) > 12.0, "yes", "no")
FORMATS = {
    "DD/MM/YYYY": "%d/%m/%Y",
    "MM/DD/YYYY": "%m/%d/%Y",
    "DD.MM.YYYY": "%d.%m.%Y",
    "DD-MM-YYYY": "%d-%m-%Y",
    "YYYY/MM/DD": "%Y/%m/%d",
    "YYYY-MM-DD": "%Y-%m-%d",
}


@pytest.fixture(params=["duckdb", "postgres", "sqlite"])
def database(request):
    if request.param == "postgres":
        return request.param, request.getfixturevalue("postgres")
    return request.param, None


def fitted_to_csv(tmp_path, columns, **options):
    path = tmp_path / "rows.csv"
    pd.DataFrame({**columns, "y": Y}).to_csv(path, index=False)
    opened = open_source(path, target="y", **options)
    schema = opened.table.schema
    features = pd.DataFrame(np.asarray(opened.table.features[:]), columns=list(schema.features))
    model = LDA().fit(features, schema.labels[opened.table.codes])
    return Encoded.of_fitted(model, opened.encoding)


def answers(database, model, columns):
    return run(database[0], model, columns, connection=database[1])


# --- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["error", "mean", "indicator"])
def test_numbers_stored_as_text_are_read_as_numbers(database, missing, tmp_path):
    values = INCOME.astype(object)
    if missing != "error":
        values[7] = None
    model = fitted_to_csv(tmp_path, {"income": values, "day": DAYS}, missing=missing)
    new = pd.DataFrame({"income": INCOME, "day": DAYS})
    texts = {"income": [str(v) for v in INCOME], "day": [str(v) for v in DAYS]}
    found = answers(database, model, texts)
    np.testing.assert_allclose(found["p"], model.predict_proba(new), rtol=1e-9)
    assert found["label"] == model.predict(new).tolist()


@pytest.mark.parametrize("text", ["1e1", " 10 ", "+10", "10.", ".1E2", "010"])
def test_every_spelling_of_a_number_is_read_in_sqlite(text, tmp_path):
    model = fitted_to_csv(tmp_path, {"income": INCOME}, missing="mean")
    found = run("sqlite", model, {"income": [text, *map(str, INCOME)]})
    want = model.predict_proba(pd.DataFrame({"income": [10.0]}))[0]
    np.testing.assert_allclose(found["p"][0], want, rtol=1e-9)


@pytest.mark.parametrize("text", ["abc", "1.5x", "0xFF", "1,5", "inf", "-", "12 34"])
@pytest.mark.parametrize("missing", ["mean", "indicator"])
def test_text_that_is_not_a_number_gives_null_in_sqlite_and_is_not_imputed(text, missing, tmp_path):
    values = INCOME.astype(object)
    values[7] = None
    model = fitted_to_csv(tmp_path, {"income": values}, missing=missing)
    found = run("sqlite", model, {"income": [text, *map(str, INCOME)]})
    assert found["label"][0] is None and np.isnan(found["p"][0]).all()
    assert None not in found["label"][1:]


def test_truth_values_stored_as_text_are_read_in_sqlite(tmp_path):
    sure = RNG.random(ROWS) < 0.5
    frame = pd.DataFrame({"income": INCOME, "sure": sure})
    model = fitted_to_csv(tmp_path, dict(frame), missing="mean")
    texts = [("true", "false")[not value] for value in sure[:-1]]
    found = run("sqlite", model, {"income": INCOME.tolist(), "sure": [*texts, "perhaps"]})
    np.testing.assert_allclose(found["p"][:-1], model.predict_proba(frame[:-1]), rtol=1e-9)
    assert found["label"][-1] is None


# --- texts that mean "missing" --------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["mean", "indicator"])
def test_missing_texts_of_a_numeric_column_are_imputed_as_in_python(database, missing, tmp_path):
    texts = [str(value) for value in INCOME]
    texts[3] = texts[9] = "unknown"
    texts[4] = "-99"
    options = {"missing": missing, "missing_texts": ["unknown", "-99"]}
    model = fitted_to_csv(tmp_path, {"income": texts, "day": DAYS}, **options)
    gaps = INCOME.copy()
    gaps[[3, 4, 9]] = np.nan
    found = answers(database, model, {"income": texts, "day": DAYS.tolist()})
    want = model.predict_proba(pd.DataFrame({"income": gaps, "day": DAYS}))
    np.testing.assert_allclose(found["p"], want, rtol=1e-9)


def test_a_number_is_not_a_missing_text(database, tmp_path):
    model = fitted_to_csv(
        tmp_path, {"income": INCOME}, missing="mean", missing_texts=["unknown", "-99"]
    )
    found = answers(database, model, {"income": [-99.0, *INCOME]})
    want = model.predict_proba(pd.DataFrame({"income": [-99.0]}))[0]
    np.testing.assert_allclose(found["p"][0], want, rtol=1e-9)


# --- dates ----------------------------------------------------------------------------------------


DATE_CELLS = [
    (written, stored)
    for written in FORMATS
    for stored in ("text", "iso", "date")
    if stored == "date" or written != "YYYY-MM-DD"  # the SQL then expects a column of dates
]


@pytest.mark.parametrize(("written", "stored"), DATE_CELLS)
def test_dates_are_read_as_the_database_stores_them(database, written, stored, tmp_path):
    texts = [date.strftime(FORMATS[written]) for date in DATES]
    model = fitted_to_csv(tmp_path, {"income": INCOME, "at": texts}, missing="mean")
    assert next(c for c in model.encoding_.columns if c.name == "at").kind == "date"
    cells = {"text": texts, "iso": [d.isoformat() for d in DATES], "date": DATES}[stored]
    found = answers(database, model, {"income": INCOME.tolist(), "at": cells})
    want = model.predict_proba(pd.DataFrame({"income": INCOME, "at": DATES}))
    np.testing.assert_allclose(found["p"], want, rtol=1e-8)


@pytest.mark.parametrize("written", FORMATS)
def test_python_and_javascript_accept_the_date_format_of_the_fit(written, tmp_path, node):
    texts = [date.strftime(FORMATS[written]) for date in DATES]
    model = fitted_to_csv(tmp_path, {"income": INCOME, "at": texts})
    cells = [*texts[:20], *[date.isoformat() for date in DATES[20:40]], f"{texts[40]} 18:30"]
    rows = [{"income": x, "at": at} for x, at in zip(INCOME.tolist()[:41], cells, strict=True)]
    days = [*DATES[:40], dt.datetime.combine(DATES[40], dt.time(18, 30))]
    new = pd.DataFrame({"income": INCOME[:41], "at": pd.to_datetime(pd.Series(days))})
    want = model.predict_proba(new)
    scope = {}
    exec(to_python(model), scope)
    found = [list(scope["answer"](row)["p"].values()) for row in rows]
    np.testing.assert_allclose(found, want, rtol=1e-8)
    found = [row["p"] for row in node.outputs(to_javascript(model), rows)]
    np.testing.assert_allclose(found, want, rtol=1e-8)
    for text in ("31.02.2022", "32/01/2022", "soon", "2022.01.05", "5-2022-01"):
        with pytest.raises(ValueError, match="'at' is not a date such as 2023-10-27"):
            scope["answer"]({"income": 1.0, "at": text})
        (answer,) = node.answers(to_javascript(model), "outputs", [{"income": 1.0, "at": text}])
        assert answer["error"].startswith("The column 'at' is not a date such as 2023-10-27")


def iso_dates(tmp_path):
    texts = [date.isoformat() for date in DATES]
    model = fitted_to_csv(tmp_path, {"income": INCOME, "at": texts}, missing="mean")
    return model, {"income": INCOME.tolist(), "at": texts}


def test_iso_dates_stored_as_text_are_read_in_sqlite(tmp_path):
    model, cells = iso_dates(tmp_path)
    want = model.predict_proba(pd.DataFrame({"income": INCOME, "at": DATES}))
    np.testing.assert_allclose(run("sqlite", model, cells)["p"], want, rtol=1e-8)


def test_iso_dates_stored_as_text_are_an_error_in_duckdb(tmp_path):
    with pytest.raises(Exception, match="No function matches the given name and argument types"):
        run("duckdb", *iso_dates(tmp_path))


def test_short_dates_and_times_of_day_are_read(database, tmp_path):
    texts = [date.strftime("%d/%m/%Y") for date in DATES]
    model = fitted_to_csv(tmp_path, {"income": INCOME, "at": texts}, missing="mean")
    new = ["1/2/2022", "1/12/2022", "21/2/2022", "3/4/2022 18:30", "03/04/2022 18:30:15.5"]
    moments = ["2022-02-01", "2022-12-01", "2022-02-21", "2022-04-03 18:30"]
    moments = pd.to_datetime([*moments, "2022-04-03 18:30:15.5"], format="mixed")
    incomes = INCOME[:5].tolist()
    found = answers(database, model, {"income": incomes, "at": new})
    want = model.predict_proba(pd.DataFrame({"income": incomes, "at": moments}))
    np.testing.assert_allclose(found["p"], want, rtol=1e-8)


@pytest.mark.parametrize(
    "text", ["31/02/2022", "01/13/2022", "1/2/22", "soon", "00/01/2022", "01/02/20223", "2022"]
)
def test_text_that_is_not_a_date_gives_null_and_is_not_imputed(database, text, tmp_path):
    texts = [date.strftime("%d/%m/%Y") for date in DATES]
    model = fitted_to_csv(tmp_path, {"income": INCOME, "at": texts}, missing="mean")
    found = answers(database, model, {"income": INCOME[:2].tolist(), "at": [text, texts[1]]})
    assert found["label"][0] is None and np.isnan(found["p"][0]).all()
    assert found["label"][1] is not None


def test_a_missing_date_is_imputed(database, tmp_path):
    texts = [date.strftime("%d/%m/%Y") for date in DATES]
    model = fitted_to_csv(tmp_path, {"income": INCOME, "at": texts}, missing="mean")
    found = answers(database, model, {"income": INCOME[:3].tolist(), "at": ["", None, texts[2]]})
    gaps = pd.Series([None, None, DATES[2]])
    want = model.predict_proba(pd.DataFrame({"income": INCOME[:3], "at": gaps}))
    np.testing.assert_allclose(found["p"], want, rtol=1e-8)


def test_a_table_imported_from_csv_into_sqlite_is_predicted_as_the_file(tmp_path):
    """All columns of such a table are TEXT, and empty cells are empty texts."""
    texts = [str(value) for value in INCOME]
    texts[2] = ""
    columns = {"income": texts, "at": [date.strftime("%d/%m/%Y") for date in DATES]}
    model = fitted_to_csv(tmp_path, columns, missing="indicator")
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE t (id TEXT, income TEXT, at TEXT)")
        rows = zip(range(ROWS), *columns.values(), strict=True)
        database.executemany("INSERT INTO t VALUES (?, ?, ?)", list(rows))
        query = to_sql(model, table="t", dialect="sqlite", keep=["id"], outputs=["label"])
        found = {int(key): label for key, label in database.execute(query).fetchall()}
    gaps = INCOME.copy()
    gaps[2] = np.nan
    want = model.predict(pd.DataFrame({"income": gaps, "at": DATES})).tolist()
    assert [found[k] for k in range(ROWS)] == want
