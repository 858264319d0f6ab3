"""SQL of a model whose numbers a database may hold as texts: decimal comma, thousands, units."""

import numpy as np
import pytest

from discriminant import LDA, Encoded, open_source
from discriminant.errors import ExportError
from tests.unit.export.targets import run

ROWS = 40
RNG = np.random.default_rng(2)
VALUES = (RNG.standard_normal((ROWS, 2)) * [4000.0, 2.0] + 5000.0).round(2)
Y = list("ab") * (ROWS // 2)
DATABASES = ("duckdb", "postgres", "sqlite")


@pytest.fixture(params=DATABASES)
def database(request):
    if request.param == "postgres":
        return request.param, request.getfixturevalue("postgres")
    return request.param, None


def comma(value):
    return str(value).replace(".", ",")


def german(value):
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def fitted(tmp_path, first, **options):
    path = tmp_path / "rows.csv"
    lines = [f"{first(a)};{comma(b)};{y}" for (a, b), y in zip(VALUES, Y, strict=True)]
    path.write_text("\n".join(["a;b;y", *lines]) + "\n", encoding="utf-8")
    opened = open_source(path, target="y", **options)
    model = LDA().fit(
        np.asarray(opened.table.features[:]), opened.table.schema.labels[opened.table.codes]
    )
    return Encoded.of_fitted(model, opened.encoding)


def texts(first):
    return {"a": [first(a) for a, _ in VALUES], "b": [comma(b) for _, b in VALUES]}


def numbers():
    return {"a": VALUES[:, 0].tolist(), "b": VALUES[:, 1].tolist()}


def expected():
    return LDA().fit(VALUES, Y).predict_proba(VALUES)


@pytest.mark.parametrize("columns", [texts(comma), numbers()], ids=["texts", "numbers"])
def test_decimal_commas_are_read_as_the_database_has_them(database, columns, tmp_path):
    model = fitted(tmp_path, comma)
    found = run(database[0], model, columns, connection=database[1])
    np.testing.assert_allclose(found["p"], expected(), rtol=1e-9)


@pytest.mark.parametrize("columns", [texts(german), numbers()], ids=["texts", "numbers"])
@pytest.mark.parametrize("name", ["duckdb", "postgres"])
def test_grouped_digits_are_read_as_the_database_has_them(name, columns, tmp_path, request):
    connection = request.getfixturevalue("postgres") if name == "postgres" else None
    model = fitted(tmp_path, german)
    found = run(name, model, columns, connection=connection)
    np.testing.assert_allclose(found["p"], expected(), rtol=1e-9)


def test_a_unit_is_read_as_the_database_has_it(tmp_path):
    model = fitted(tmp_path, lambda value: f"{german(value)} €")
    found = run("duckdb", model, texts(lambda value: f"{german(value)} €"))
    np.testing.assert_allclose(found["p"], expected(), rtol=1e-9)


@pytest.mark.parametrize("text", ["1.5", "abc", "1,2,3", "--1"])
def test_a_text_that_is_no_such_number_has_no_answer(database, text, tmp_path):
    columns = texts(comma)
    columns["a"][3] = text
    found = run(database[0], fitted(tmp_path, comma), columns, connection=database[1])
    assert np.isnan(found["p"][3]).all() and found["label"][3] is None
    np.testing.assert_allclose(np.delete(found["p"], 3, 0), np.delete(expected(), 3, 0), rtol=1e-9)


@pytest.mark.parametrize("missing", ["NA", None])
def test_missing_texts_are_filled_as_in_python(database, missing, tmp_path):
    model = fitted(tmp_path, comma, missing="mean")
    columns = texts(comma)
    columns["a"][3] = missing
    found = run(database[0], model, columns, connection=database[1])
    row = np.array([[VALUES[:, 0].mean(), VALUES[3, 1]]])
    want = LDA().fit(VALUES, Y).predict_proba(row)[0]
    np.testing.assert_allclose(found["p"][3], want, rtol=1e-9)


def test_sqlite_refuses_grouped_digits(tmp_path):
    with pytest.raises(ExportError, match="SQLite cannot check"):
        run("sqlite", fitted(tmp_path, german), texts(german))
