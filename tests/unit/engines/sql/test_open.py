"""At the door of a database: what its cells are, which table is meant, what is wrong with it."""

import io
import sqlite3
from contextlib import chdir, redirect_stderr, redirect_stdout

import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant.cli import run as command_line
from discriminant.engines.sql.connection import open_connection
from discriminant.errors import DatabaseError
from discriminant.table.sql_dialect import SQL_DIALECTS
from tests.shared import databases
from tests.unit.engines.sql.test_sql import server  # noqa: F401 -- a fixture

N = 400


def loans(rows=N):
    """Rows with a day, which SQLite keeps as a text."""
    rng = np.random.default_rng(6)
    late = rng.integers(0, 2, rows)
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), unit="D")
    since = day.strftime("%Y-%m-%d")
    amount = rng.normal(size=rows) + late
    return pd.DataFrame({"amount": amount, "since": since, "late": np.where(late, "yes", "no")})


def sqlite_of(frame, path=":memory:"):
    """A database with these rows as a table, and a view of them."""
    connection = sqlite3.connect(path)
    frame.to_sql("loans", connection, index=False)
    connection.execute("CREATE VIEW recent AS SELECT * FROM loans WHERE since > '2021'")
    connection.commit()
    return connection


# --- days, which SQLite keeps as texts ------------------------------------------------------------


@pytest.mark.parametrize("pushdown", [False, True])
def test_days_of_sqlite_are_days(pushdown):
    frame = loans()
    rows = dd.rows(dd.sql(sqlite_of(frame), "loans", pushdown=pushdown), target="late")
    days = (pd.to_datetime(frame["since"]) - pd.Timestamp("1970-01-01")).dt.days
    means = [days[frame["late"] == label].mean() for label in ("no", "yes")]
    assert rows.schema.features == ("amount", "since")
    np.testing.assert_allclose(rows.moments.means[:, 1], means, rtol=1e-12)


def test_seconds_of_sqlite_are_days_too():
    frame = loans()
    frame["since"] += " 06:00:00"
    rows = dd.rows(dd.sql(sqlite_of(frame), "loans"), target="late")
    whole = dd.rows(dd.sql(sqlite_of(loans()), "loans"), target="late")
    np.testing.assert_allclose(rows.moments.means[:, 1], whole.moments.means[:, 1] + 0.25)


def test_a_column_with_one_text_that_is_no_day_stays_a_category():
    frame = loans()
    frame["since"] = np.where(np.arange(N) % 2, "2021-01-01", "2022-01-01")
    frame.loc[N - 1, "since"] = "2021-02-30"
    rows = dd.rows(dd.sql(sqlite_of(frame), "loans"), target="late")
    assert "since=2022-01-01" in rows.schema.features or "since=2021-01-01" in rows.schema.features


# --- what is wrong, and what to do ----------------------------------------------------------------


@pytest.fixture(params=["sqlite", "duckdb"])
def file(request, tmp_path):
    """A database in a file, that is called by no ending that says what it is."""
    path = tmp_path / f"{request.param}.bank"
    if request.param == "sqlite":
        sqlite_of(loans(), path).close()
        return path
    duckdb = pytest.importorskip("duckdb")
    frame = loans()
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE loans AS SELECT * FROM frame")
        connection.execute("CREATE VIEW recent AS SELECT * FROM loans")
    assert len(frame) == N
    return path


def told(*given, **options):
    """The error of a reading."""
    with pytest.raises(DatabaseError) as found:
        dd.rows(dd.sql(*given), target="late", **options)
    return str(found.value)


def test_a_file_that_is_a_database_is_read_by_its_name(file):
    by_name = dd.rows(file, target="late", table="loans", exclude=["since"])
    by_query = dd.rows(dd.sql(str(file), "SELECT amount, late FROM loans"), target="late")
    assert len(by_name) == N
    np.testing.assert_array_equal(by_name.moments.means, by_query.moments.means)


def test_a_database_without_a_table_says_which_it_has(file):
    with pytest.raises(DatabaseError, match=r"by table= .*It has 'loans', 'recent'\."):
        dd.rows(file, target="late")


def test_a_wrong_table_is_told_with_those_there_are(file):
    said = told(str(file), "loan")
    assert "no table or view 'loan'. Did you mean 'loans'? It has 'loans', 'recent'." in said


def test_so_it_is_in_postgres(server):  # noqa: F811
    name = databases.lay(server, loans())
    said = told(server, f"{name}s")
    assert f"no table or view '{name}s'. Did you mean '{name}'?" in said


@pytest.mark.parametrize("query", ["SELECT * FRO loans", "SELECT nothing FROM loans"])
def test_a_wrong_query_is_not_to_be_run_again(file, query):
    assert "Correct the query or the name" in told(str(file), query)


def test_what_is_no_select_is_told_so(file):
    assert "only a single SELECT is allowed" in told(str(file), "delete from loans")


def test_a_damaged_file_is_told_as_such(file):
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    said = told(str(file), "loans")
    assert "damaged" in said and "run the same again" not in said


def test_a_file_of_another_kind_is_told_with_its_url(file):
    kind, other = ("sqlite", "duckdb") if file.name.startswith("sqlite") else ("duckdb", "sqlite")
    said = told(f"{other}:///{file}", "loans")
    assert said == f"{file} is a file of {kind}, not {other}. Write {kind}:///{file}."


@pytest.mark.parametrize("scheme", ["duckdb", "sqlite"])
def test_a_file_that_is_not_there_is_told_by_its_name(scheme, tmp_path):
    assert told(f"{scheme}:///{tmp_path}/no.db", "loans").endswith("Check the name and the folder.")


def test_duckdb_fetches_nothing_from_a_network(tmp_path):
    pytest.importorskip("duckdb").connect(tmp_path / "x.db").close()
    with open_connection(f"duckdb:///{tmp_path}/x.db", "x", SQL_DIALECTS["duckdb"]) as connection:
        asked = connection.execute("SELECT current_setting('autoinstall_known_extensions')")
        assert asked.fetchall() == [(False,)]


# --- rows answered --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "postgres"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.filterwarnings("ignore::discriminant.errors.ExtraColumnsWarning")
def test_rows_of_a_database_are_answered_as_those_of_a_file(kind, ending, tmp_path, request):
    frame = loans()
    if kind == "postgres":
        connection = request.getfixturevalue("server")
        name = databases.lay(connection, frame)
    elif kind == "sqlite":
        connection, name = sqlite_of(frame), "loans"
    else:
        connection = pytest.importorskip("duckdb").connect()
        connection.execute("CREATE TABLE loans AS SELECT * FROM frame")
        name = "loans"
    model = dd.Encoded(dd.LDA()).fit(frame[["amount"]], frame["late"])
    done = dd.predict_file(model, dd.sql(connection, name), tmp_path / f"said.{ending}")
    said = getattr(pd, f"read_{ending}")(tmp_path / f"said.{ending}")
    assert done.rows == N and said["since"].astype(str).str[:10].tolist() == frame["since"].tolist()
    np.testing.assert_array_equal(said["predicted"], model.predict(frame[["amount"]]))


def test_the_command_answers_a_table_of_a_database_in_a_file(tmp_path):
    frame = loans()
    sqlite_of(frame, tmp_path / "bank.sqlite").close()
    dd.save(dd.Encoded(dd.LDA()).fit(frame[["amount"]], frame["late"]), tmp_path / "loans.model")
    asked = ["--query", "SELECT amount FROM loans WHERE amount > 0", "--out"]
    with chdir(tmp_path), redirect_stdout(io.StringIO()):
        code = command_line.run(["predict", "loans.model", "bank.sqlite", *asked, "said.csv"])
    assert code == 0 and len(pd.read_csv(tmp_path / "said.csv")) == (frame["amount"] > 0).sum()


# --- no row leaves --------------------------------------------------------------------------------


def asked(folder, *args):
    """The exit code of a command, and what it says."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        code = command_line.run([*args, "--target", "late"])
    return code, out.getvalue() + err.getvalue()


def test_the_command_sums_inside_a_database(tmp_path):
    sqlite_of(loans(), tmp_path / "bank.sqlite").close()
    place = ("bank.sqlite", "--table", "loans", "--pushdown", "--out", "found")
    assert "no row leaves" in asked(tmp_path, "moments", *place)[1]
    assert asked(tmp_path, "fit", *place, "--model", "lda")[0] == 0


@pytest.mark.parametrize(
    ("args", "who"),
    [
        (("fit", "--model", "logistic", "--out", "x"), "loans: Logistic regression needs rows"),
        (("compare",), "loans: Holding out rows needs rows"),
    ],
)
def test_what_needs_rows_says_who_it_is(args, who, tmp_path):
    sqlite_of(loans(), tmp_path / "bank.sqlite").close()
    code, said = asked(tmp_path, *args, "bank.sqlite", "--table", "loans", "--pushdown")
    assert code == 2 and who in said and "--pushdown" in said and "pushdown=" not in said


def test_a_file_cannot_sum_itself(tmp_path):
    loans().to_csv(tmp_path / "loans.csv", index=False)
    code, said = asked(tmp_path, "moments", "loans.csv", "--pushdown", "--out", "x")
    assert code == 2 and "only a database can compute the moments of its own tables" in said
