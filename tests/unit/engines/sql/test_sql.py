"""Databases: DuckDB, SQLite and a real PostgreSQL server, rows streamed out or summed inside."""

import datetime
import sqlite3
import threading
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant.engines.dispatch import read_moments
from discriminant.engines.sql import connection as unloading
from discriminant.engines.sql.aggregate import AggregateQuery
from discriminant.engines.summation import ReadingTask
from discriminant.errors import (
    ColumnNamesError,
    DatabaseError,
    EngineError,
    InfiniteCellError,
    LabelError,
    MissingCellError,
    WeightError,
)
from tests.shared import databases
from tests.unit.engines.test_engine_laws import assert_near, mixed, numbers
from tests.unit.export.test_hostile_names import apart, corpus

KINDS = ("duckdb", "sqlite", "postgres")
WAYS = pytest.mark.parametrize("pushdown", [False, True], ids=["streamed", "inside"])


@pytest.fixture(params=KINDS)
def connection(request):
    """An open connection to an empty database."""
    if request.param == "duckdb":
        pytest.importorskip("duckdb", reason="DuckDB is not installed")
    if request.param == "postgres" and databases.postgres()[1]:
        pytest.skip(databases.postgres()[1])
    found = databases.connect(request.param)
    yield found
    found.close()


@pytest.fixture
def server():
    """Another connection to PostgreSQL, in the state that psycopg gives."""
    url, why_not = databases.postgres()
    if why_not:
        pytest.skip(why_not)
    import psycopg

    found = psycopg.connect(url)
    yield found
    found.close()  # what was not committed is gone


def wanted_of(frame, **wishes):
    return read_moments(dd.open_source(frame, **wishes).table, detail="class")


# --- kinds of cells -------------------------------------------------------------------------------


def every_kind(rows=120):
    """Columns of every kind that a database has."""
    rng = np.random.default_rng(3)
    first = pd.Timestamp("2019-03-01")
    frame = numbers(1, rows, 2)
    frame["whole"] = rng.integers(-5, 2**40, rows)
    frame["flag"] = rng.random(rows) < 0.4
    frame["money"] = [Decimal(int(cents)) / 100 for cents in rng.integers(0, 10**6, rows)]
    frame["day"] = [first + pd.Timedelta(days=int(k)) for k in rng.integers(0, 900, rows)]
    frame["time"] = first + pd.to_timedelta(rng.integers(0, 10**15, rows), unit="us")
    frame["colour"] = rng.choice(["red", "", "a,b", 'say "x"', "line\nbreak", "naïve ☃"], rows)
    return frame


@WAYS
@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
def test_columns_of_every_kind_are_what_they_are_in_a_frame(kind, pushdown, server):
    connection = databases.connect(kind)
    frame = every_kind()
    types = {"money": "NUMERIC(12, 2)", "day": "DATE", "whole": "BIGINT"}
    name = databases.lay(connection, frame, types=types)
    found = dd.rows(dd.sql(connection, (name,), pushdown=pushdown), target="y")
    frame["money"] = frame["money"].astype(float)
    assert found.plan.encoding.features == dd.open_source(frame, target="y").encoding.features
    assert_near(found.moments, wanted_of(frame, target="y"))


@WAYS
@pytest.mark.parametrize("labels", [[True, False], [-3, 7, 2**40], [0, 1]])
def test_classes_may_be_truth_values_or_whole_numbers(connection, pushdown, labels):
    frame = numbers(2, 60)
    frame["y"] = np.array(labels)[np.arange(60) % len(labels)]
    name = databases.lay(connection, frame)
    found = dd.rows(dd.sql(connection, (name,), pushdown=pushdown), target="y").moments
    wanted = dd.moments(frame.drop(columns="y"), frame["y"])
    assert np.array_equal(found.labels, wanted.labels)
    np.testing.assert_allclose(found.within(), wanted.within(), rtol=1e-13)


@WAYS
@pytest.mark.parametrize("type_", ["NUMERIC(6, 0)", "DOUBLE PRECISION", "CHAR(8)", "VARCHAR(9)"])
def test_classes_of_odd_types_are_the_same_ones_both_ways(server, pushdown, type_):
    connection = databases.connect("postgres")
    frame = numbers(2, 60)
    frame["y"] = ([3, 1, 2] if "CHAR" not in type_ else ["a", "bb", "c c"]) * 20
    name = databases.lay(connection, frame, types={"y": type_})
    found = dd.rows(dd.sql(connection, (name,), pushdown=pushdown), target="y").moments
    assert found.labels.tolist() == sorted(frame["y"].unique())


@WAYS
def test_a_column_that_counts_the_rows_is_set_aside(connection, pushdown):
    frame = numbers(3, 50).assign(id=np.arange(7, 57))
    name = databases.lay(connection, frame)
    found = dd.rows(dd.sql(connection, (name,), pushdown=pushdown), target="y")
    assert found.plan.encoding.features == ("x0", "x1", "x2", "x3")
    assert any("'id' is set aside: whole numbers that count the rows" in s for s in found.notes)


@WAYS
def test_a_constant_column_is_set_aside(connection, pushdown):
    name = databases.lay(connection, numbers(3, 50).assign(same=2.5))
    found = dd.rows(dd.sql(connection, (name,), pushdown=pushdown), target="y")
    assert any("'same' is set aside: 2.5 in every row" in s for s in found.notes)


@WAYS
def test_an_ordered_category_has_its_places(connection, pushdown):
    frame = numbers(4, 90).assign(size=["small", "large", "middle"] * 30)
    wishes = {"target": "y", "ordered": {"size": ["small", "middle", "large"]}}
    name = databases.lay(connection, frame)
    found = dd.rows(dd.sql(connection, (name,), pushdown=pushdown), **wishes)
    assert_near(found.moments, wanted_of(frame, **wishes))


@pytest.mark.parametrize("value", [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, -2.5e-17, 2**53 + 2])
def test_a_copy_of_doubles_out_of_postgresql_has_every_bit(server, value):
    draw = np.random.default_rng(0).integers(0, 2**62, 2000, dtype=np.int64).view(np.float64)
    values = np.concatenate([[value], draw[np.isfinite(draw)]])
    cursor = server.cursor()
    cursor.execute("SET extra_float_digits = -5")  # of the user, who likes them short
    cursor.execute("CREATE TEMP TABLE t (x DOUBLE PRECISION, y TEXT)")
    with cursor.copy("COPY t FROM STDIN") as copy:
        for one in values.tolist():
            copy.write_row((one, "a"))
    source = dd.sql(server, "t")
    from discriminant.engines.dispatch import partitioned_source

    found = partitioned_source(source).sample(["x"], 10**6)["x"].values
    assert np.array_equal(found, values)
    assert cursor.execute("SHOW extra_float_digits").fetchone() == ("-5",)


# --- what cannot be -------------------------------------------------------------------------------


@WAYS
@pytest.mark.parametrize("bad", ["x1", "y"])
def test_a_missing_cell_is_refused_by_column(connection, pushdown, bad):
    frame = numbers(5, 80)
    frame[bad] = frame[bad].astype(object).where(frame.index != 61, None)
    kind = {"x1": "DOUBLE PRECISION"}
    name = databases.lay(connection, frame, types=kind)
    with pytest.raises((DatabaseError, MissingCellError, LabelError), match=r"missing|x1"):
        dd.rows(dd.sql(connection, (name,), pushdown=pushdown), target="y")


@WAYS
@pytest.mark.parametrize("value", ["Infinity", "-Infinity"])
@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
def test_an_infinite_cell_is_refused_by_column(kind, pushdown, value, server):
    connection = databases.connect(kind)
    name = databases.lay(connection, numbers(5, 80))
    change = f"UPDATE {databases.quoted(name)} SET x1 = '{value}' WHERE x0 > 100.5"
    connection.execute(change)
    with pytest.raises((DatabaseError, InfiniteCellError), match=r"'x1'.*infini"):
        dd.rows(dd.sql(connection, (name,), pushdown=pushdown), target="y")


@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
@WAYS
def test_nan_is_missing(kind, pushdown, server):
    connection = databases.connect(kind)
    frame = numbers(5, 80)
    name = databases.lay(connection, frame)
    connection.execute(f"UPDATE {databases.quoted(name)} SET x1 = 'NaN' WHERE x0 > 100.5")
    frame.loc[frame.x0 > 100.5, "x1"] = np.nan
    for missing in ("drop", "mean"):
        wishes = {"target": "y", "missing": missing}
        found = dd.rows(dd.sql(connection, (name,), pushdown=pushdown), **wishes)
        assert_near(found.moments, wanted_of(frame, **wishes), 1e-12)


@WAYS
@pytest.mark.parametrize("weight", [-1.0, None])
def test_a_weight_that_is_none_is_refused(connection, pushdown, weight):
    frame = mixed(5, 80)
    frame["w"] = frame["w"].astype(object).where(frame.index != 3, weight)
    name = databases.lay(connection, frame, types={"w": "DOUBLE PRECISION"})
    with pytest.raises((DatabaseError, WeightError), match=r"negative|finite|missing"):
        dd.rows(dd.sql(connection, (name,), pushdown=pushdown), target="y", weight="w")


def test_cells_of_two_kinds_in_a_column_of_sqlite_are_refused():
    connection = databases.connect("sqlite")
    frame = numbers(5, 80)
    frame["x1"] = frame["x1"].astype(object).where(frame.index != 61, "many")
    name = databases.lay(connection, frame, types={"x1": ""})
    for pushdown in (False, True):
        with pytest.raises(DatabaseError, match="'x1' holds cells of several types"):
            dd.rows(dd.sql(connection, (name,), pushdown=pushdown), target="y")


@WAYS
def test_a_table_without_rows_is_said(connection, pushdown):
    name = databases.lay(connection, numbers(5, 80).iloc[:0])
    with pytest.raises(DatabaseError, match="no rows"):
        dd.rows(dd.sql(connection, (name,), pushdown=pushdown), target="y")


@WAYS
def test_a_table_that_is_not_there_is_said(connection, pushdown):
    with pytest.raises(DatabaseError, match=r"^nowhere: .*nowhere"):
        dd.rows(dd.sql(connection, "nowhere", pushdown=pushdown), target="y")


def test_two_columns_of_one_name_are_refused(server):
    with pytest.raises(ColumnNamesError, match="'a' occurs at positions 0, 1"):
        dd.rows(dd.sql(server, "SELECT 1 AS a, 2 AS a, 'u' AS y"), target="y")


@pytest.mark.parametrize("given", ["", "  ", None, 3, []])
def test_what_names_no_rows_is_refused(given):
    with pytest.raises(DatabaseError, match="names no rows"):
        dd.sql("duckdb:///x.db", given)


def test_what_is_no_connection_is_refused():
    with pytest.raises(DatabaseError, match="A dict is not a supported connection"):
        dd.rows(dd.sql({}, "t"), target="y")


# --- tables, views, queries, names ----------------------------------------------------------------


QUERIES = [
    'SELECT * FROM "the rows" ORDER BY x0 DESC LIMIT 300',
    'WITH chosen AS (SELECT * FROM "the rows") SELECT * FROM chosen WHERE x0 > 0;',
    '( SELECT * FROM "the rows" )',
    'SELECT * FROM "the rows" -- all of them',
    '  select *\nfrom "the rows" /* ; */ ;  ',
    "the rows",
    '"the rows"',
    "a.view",
]


@WAYS
@pytest.mark.parametrize("query", QUERIES)
def test_tables_views_and_queries_are_sources(connection, pushdown, query):
    frame = numbers(6, 200)
    with databases_of_own(connection):
        databases.lay(connection, frame, "the rows")
        if query == "a.view":
            connection.execute('CREATE VIEW "a.view" AS SELECT * FROM "the rows"')
            query = '"a.view"'
        found = dd.rows(dd.sql(connection, query, pushdown=pushdown), target="y").moments
    assert_near(found, dd.moments(frame.drop(columns="y"), frame["y"]))


class databases_of_own:  # noqa: N801 -- a context
    """What is made inside is gone afterwards."""

    def __init__(self, connection):
        self.connection = connection

    def __enter__(self):
        self.connection.execute("BEGIN")

    def __exit__(self, *fault):
        self.connection.execute("ROLLBACK")


@WAYS
def test_a_table_may_lie_in_a_schema_and_have_dots_in_its_name(server, pushdown):
    frame = numbers(6, 100)
    server.execute('CREATE SCHEMA "my.schema"')
    databases.lay(server, frame, "t.1")
    server.execute('ALTER TABLE "t.1" SET SCHEMA "my.schema"')
    wanted = dd.moments(frame.drop(columns="y"), frame["y"])
    for name in ('"my.schema"."t.1"', ("my.schema", "t.1")):
        found = dd.rows(dd.sql(server, name, pushdown=pushdown), target="y").moments
        assert_near(found, wanted)


def hostile(names):
    """Rows whose columns, classes and categories all have these names."""
    rng = np.random.default_rng(len(names))
    rows = 5 * len(names)
    frame = pd.DataFrame({name: rng.normal(size=rows) for name in names})
    frame["which category"] = [names[k % len(names)] for k in range(rows)]
    frame["which class"] = [names[(k // 2) % len(names)] for k in range(rows)]
    if len(names) == 1:
        frame.loc[::2, "which class"] = "other"
    return frame


@pytest.mark.filterwarnings("ignore")
@WAYS
def test_three_hundred_strings_are_columns_classes_categories_and_tables(connection, pushdown):
    groups = apart([text for text in corpus() if "\0" not in text], 12)
    for group in groups[:: 1 if not pushdown else 4]:
        words = ("true", "false") if isinstance(connection, sqlite3.Connection) else ()
        names = [n for n in group if len(n.encode()) < 60 and n.lower() not in words]
        if not names:
            continue
        frame, wishes = hostile(names), {"target": "which class"}
        with databases_of_own(connection):
            databases.lay(connection, frame, names[0])
            source = dd.sql(connection, (names[0],), pushdown=pushdown)
            found = dd.rows(source, **wishes)
        wanted = dd.open_source(frame, **wishes)
        assert found.plan.encoding.features == wanted.encoding.features
        assert_near(found.moments, read_moments(wanted.table, detail="class"))


def test_a_column_that_sqlite_takes_for_a_truth_value_is_refused():
    connection = databases.connect("sqlite")
    databases.lay(connection, numbers(7, 90).rename(columns={"x0": "True"}), "few")
    with pytest.raises(DatabaseError, match="'True': SQLite reads that name as a truth value"):
        dd.rows(dd.sql(connection, "few"), target="y")


def test_columns_that_differ_in_case_alone_are_two_in_postgresql(server):
    frame = numbers(7, 90).rename(columns={"x0": "a", "x1": "A"})
    databases.lay(server, frame, "cases")
    for pushdown in (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = dd.rows(dd.sql(server, "cases", pushdown=pushdown), target="y").moments
        assert_near(found, dd.moments(frame.drop(columns="y"), frame["y"]))


@pytest.mark.parametrize("collation", ["sqlite", "postgres"])
@pytest.mark.filterwarnings("ignore::discriminant.errors.LookalikeWarning")
def test_classes_that_differ_in_case_alone_are_two_whatever_the_collation(collation, server):
    connection = databases.connect(collation)
    frame = numbers(7, 90).assign(y=["a", "A", "b"] * 30)
    kind = "TEXT COLLATE NOCASE"
    if collation == "postgres":
        connection.execute(
            "CREATE COLLATION IF NOT EXISTS loose (provider = icu, locale = 'und-u-ks-level2', "
            "deterministic = false)"
        )
        kind = "TEXT COLLATE loose"
    name = databases.lay(connection, frame, types={"y": kind})
    for pushdown in (False, True):
        found = dd.rows(dd.sql(connection, (name,), pushdown=pushdown), target="y").moments
        assert found.rows.tolist() == [30, 30, 30]


# --- many columns, many classes -------------------------------------------------------------------


def wide(d, rows=40):
    rng = np.random.default_rng(d)
    frame = pd.DataFrame(50 + rng.normal(size=(rows, d)), columns=[f"v{j}" for j in range(d)])
    return frame.assign(y=np.array(["p", "q"])[np.arange(rows) % 2])


def test_products_of_many_columns_are_asked_for_in_blocks(connection):
    frame = wide(80)
    name = databases.lay(connection, frame)
    found = dd.rows(dd.sql(connection, (name,), pushdown=True), target="y").moments
    assert_near(found, dd.moments(frame.drop(columns="y"), frame["y"]))


@pytest.mark.slow
def test_so_are_those_of_more_columns_than_a_statement_of_postgresql_has_room_for(server):
    rng = np.random.default_rng(0)
    frame = numbers(1, 1500, 2)
    for j in range(18):
        frame[f"c{j}"] = [f"level {k}" for k in rng.integers(0, 95, len(frame))]
    databases.lay(server, frame, "wide")
    found = dd.rows(dd.sql(server, "wide", pushdown=True), target="y", detail="diagonal")
    assert found.width > 1664
    wanted = read_moments(dd.open_source(frame, target="y").table, detail="diagonal")
    np.testing.assert_allclose(found.moments.scatter, wanted.scatter, rtol=1e-12, atol=1e-12)


def test_there_may_be_many_classes(connection):
    frame = numbers(1, 1800, 2).assign(y=[f"class {k % 600:03d}" for k in range(1800)])
    name = databases.lay(connection, frame)
    found = dd.rows(dd.sql(connection, (name,), pushdown=True), target="y").moments
    assert_near(found, dd.moments(frame.drop(columns="y"), frame["y"]))


# --- accuracy -------------------------------------------------------------------------------------


@WAYS
def test_a_mean_of_a_hundred_million_costs_no_digit(connection, pushdown):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(1e8 + rng.normal(size=(4000, 3)), columns=list("abc"))
    frame["y"] = np.array(["u", "v"])[np.arange(4000) % 2]
    name = databases.lay(connection, frame)
    found = dd.rows(dd.sql(connection, (name,), pushdown=pushdown), target="y").moments
    shifted = frame.drop(columns="y") - 1e8  # exact
    wanted = dd.moments(shifted, frame["y"]).within()
    assert np.abs(found.within() - wanted).max() / np.abs(wanted).max() <= 2e-14


# --- nobody's transaction, nobody's settings ------------------------------------------------------


@WAYS
def test_a_transaction_of_the_user_goes_on_with_what_it_did(server, pushdown):
    databases.lay(server, numbers(8, 90), "mine")  # not committed
    server.execute("SET LOCAL jit = on")
    dd.rows(dd.sql(server, "mine", pushdown=pushdown), target="y")
    with pytest.raises(DatabaseError):
        dd.rows(dd.sql(server, "not mine", pushdown=pushdown), target="y")
    assert server.execute("SELECT COUNT(*) FROM mine").fetchone() == (90,)
    assert server.execute("SHOW jit").fetchone() == ("on",)
    server.rollback()
    assert server.execute("SELECT TO_REGCLASS('mine')").fetchone() == (None,)


@WAYS
def test_no_transaction_is_left_open(server, pushdown):
    from psycopg.pq import TransactionStatus

    own = databases.connect("postgres")
    name = databases.lay(own, numbers(8, 90))
    server.rollback()
    dd.rows(dd.sql(server, (name,), pushdown=pushdown), target="y")
    assert server.info.transaction_status == TransactionStatus.IDLE


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
@WAYS
def test_so_it_does_in_databases_within_the_process(kind, pushdown):
    connection = databases.connect(kind)
    connection.execute("BEGIN")
    databases.lay(connection, numbers(8, 90), "mine")
    dd.rows(dd.sql(connection, "mine", pushdown=pushdown), target="y")
    connection.execute("ROLLBACK")
    with pytest.raises(DatabaseError, match="mine"):
        dd.rows(dd.sql(connection, "mine", pushdown=pushdown), target="y")


def test_statements_of_one_reading_see_one_snapshot(server, monkeypatch):
    """Rows that somebody adds between the two statements are in neither."""
    other = databases.connect("postgres")
    frame = numbers(8, 90)
    name = databases.lay(other, frame)
    ask = AggregateQuery.fetch

    def ask_and_disturb(self, statement):
        found = ask(self, statement)
        if "SUM(s0)" in statement and len(seen) < 3:
            seen.append(statement)
            databases.insert(other, name, [(1e6, 1e6, 1e6, 1e6, "low")])
        return found

    seen = []
    server.rollback()
    monkeypatch.setattr(AggregateQuery, "fetch", ask_and_disturb)
    found = dd.rows(dd.sql(server, (name,), pushdown=True), target="y").moments
    assert seen
    assert_near(found, dd.moments(frame.drop(columns="y"), frame["y"]))


def test_temporary_tables_and_registered_frames_of_duckdb_are_seen():
    connection = databases.connect("duckdb")
    frame = numbers(9, 60)
    connection.register("registered", frame)
    connection.execute("CREATE TEMP TABLE passing AS SELECT * FROM registered")
    for name in ("registered", "passing"):
        assert len(dd.rows(dd.sql(connection, name), target="y")) == 60


def test_rows_come_as_tuples_whatever_the_user_likes(server):
    from psycopg.rows import dict_row

    lite = databases.connect("sqlite")
    lite.row_factory = lambda cursor, row: dict(enumerate(row))
    server.row_factory = dict_row
    for connection in (lite, server):
        databases.lay(connection, numbers(9, 60), "few")
        for pushdown in (False, True):
            source = dd.sql(connection, "few", pushdown=pushdown)
            assert len(dd.rows(source, target="y")) == 60


# --- nothing leaves -------------------------------------------------------------------------------


def test_no_row_and_no_name_of_a_person_leaves(connection, monkeypatch):
    frame = mixed(10, 300).assign(person=[f"Person {k}" for k in range(300)])
    name = databases.lay(connection, frame)
    answers, ask = [], AggregateQuery.fetch

    def listening(self, statement):
        found = ask(self, statement)
        answers.extend(found)
        return found

    monkeypatch.setattr(AggregateQuery, "fetch", listening)
    found = dd.rows(dd.sql(connection, (name,), pushdown=True), target="y")
    told = {value for row in answers for value in row if isinstance(value, str)}
    named = {value for value in told if value.startswith("Person")}
    assert len(named) <= 1  # the one by which a column is looked at
    assert any("'person' is set aside: 300 texts, all different" in s for s in found.notes)
    cells = set(frame[["x0", "x1"]].to_numpy().ravel().tolist())
    assert not cells & {value for row in answers for value in row if isinstance(value, float)}


def test_a_source_does_not_show_its_password():
    source = dd.sql("postgresql://me:secret@host/name", "t")
    from discriminant.engines.sql import SqlSource
    from discriminant.table.sql_dialect import SQL_DIALECTS

    made = SqlSource("t", (), source.connection, "SELECT 1", SQL_DIALECTS["postgres"])
    assert "secret" not in repr(source) + repr(made)


@pytest.mark.parametrize("pushdown", [False, True])
def test_a_server_that_is_not_there_is_said_without_the_password(pushdown):
    pytest.importorskip("psycopg")
    source = dd.sql("postgresql://me:secret@127.0.0.1:1/name", "t", pushdown=pushdown)
    with pytest.raises(DatabaseError, match="PostgreSQL could not be reached") as told:
        dd.rows(source, target="y")
    assert "secret" not in str(told.value)


# --- URLs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_a_url_leads_to_a_file(kind, tmp_path):
    frame, path = numbers(11, 80), tmp_path / "a file #1?.db"
    if kind == "duckdb":
        path = tmp_path / "file.db"
        import duckdb as library
    else:
        import sqlite3 as library

        path = tmp_path / "file 1%?.db"
    connection = library.connect(str(path))
    databases.lay(connection, frame, "loans")
    connection.commit()
    connection.close()
    url = f"{kind}:///{path}"
    wanted = dd.moments(frame.drop(columns="y"), frame["y"])
    sources = [(dd.sql(url, "loans"), {}), (f"{url}#loans", {}), (url, {"table": "loans"})]
    for source, options in sources:
        assert_near(dd.rows(source, target="y", **options).moments, wanted)
    with pytest.raises(DatabaseError, match=rf"{kind}://\.\.\.#table"):
        dd.rows(url, target="y")


def test_a_url_leads_to_a_server(server):
    name = databases.lay(databases.connect("postgres"), numbers(11, 80), "loans by url")
    url = databases.postgres()[0]
    for source in (f"{url}#{name}", dd.sql(url.replace("postgresql", "postgres"), name)):
        assert len(dd.rows(source, target="y")) == 80


def test_an_unknown_url_is_refused():
    with pytest.raises(DatabaseError, match="mysql://host/db is neither"):
        dd.rows(dd.sql("mysql://host/db", "t"), target="y")
    with pytest.raises(EngineError, match="engine='orbit'"):
        dd.rows("duckdb:///x.db", target="y", engine="orbit")


# --- a database that goes away --------------------------------------------------------------------


def stopped_at(monkeypatch, stop, after=3):
    """Have `stop` called when so many parts have been read."""
    call, seen = ReadingTask.__call__, []

    def work(self, part):
        seen.append(part)
        if len(seen) == after:
            stop()
        return call(self, part)

    monkeypatch.setattr(ReadingTask, "__call__", work)


def test_a_server_that_goes_away_in_the_middle_is_said(server, monkeypatch):
    own = databases.connect("postgres")
    name = databases.lay(own, numbers(12, 200))
    wide_query = f"SELECT r.* FROM {databases.quoted(name)} r, GENERATE_SERIES(1, 2000) g"
    number = server.info.backend_pid
    rows = dd.sql(server, wide_query)
    monkeypatch.setattr(unloading, "_PIECE", 1 << 16)
    stopped_at(monkeypatch, lambda: own.execute("SELECT PG_TERMINATE_BACKEND(%s)", [number]))
    stopped = r"PostgreSQL stopped: .*Nothing was changed in the database"
    with pytest.raises(DatabaseError, match=stopped):
        dd.rows(rows, target="y")
    monkeypatch.undo()
    assert own.execute(f"SELECT COUNT(*) FROM {databases.quoted(name)}").fetchone() == (200,)


def test_a_server_that_goes_away_between_statements_is_said(server, monkeypatch):
    own = databases.connect("postgres")
    name = databases.lay(own, numbers(12, 200))
    number, ask = server.info.backend_pid, AggregateQuery.fetch

    def last_words(self, statement):
        if "WITH m" in statement:
            own.execute("SELECT PG_TERMINATE_BACKEND(%s)", [number])
        return ask(self, statement)

    monkeypatch.setattr(AggregateQuery, "fetch", last_words)
    with pytest.raises(DatabaseError, match="PostgreSQL stopped"):
        dd.rows(dd.sql(server, (name,), pushdown=True), target="y")


def test_duckdb_that_is_interrupted_is_said(monkeypatch):
    connection = databases.connect("duckdb")
    databases.lay(connection, numbers(12, 500), "few")
    query = "SELECT few.* FROM few, RANGE(400)"
    stopped_at(monkeypatch, connection.interrupt, after=5)
    with pytest.raises(DatabaseError, match=r"DuckDB stopped: .*[Ii]nterrupt"):
        dd.rows(dd.sql(connection, query), target="y")
    assert connection.execute("SELECT COUNT(*) FROM few").fetchall() == [(500,)]


def test_a_row_that_a_database_cannot_work_out_is_said():
    connection = databases.connect("duckdb")
    query = (
        "SELECT CASE WHEN range = 150000 THEN CAST('x' || range AS DOUBLE) ELSE range * 0.5 END "
        "AS a, RANDOM() AS b, range % 2 AS y FROM RANGE(200000)"
    )
    with pytest.raises(DatabaseError, match=r"DuckDB stopped: .*x150000"):
        dd.rows(dd.sql(connection, query), target="y")


def test_sqlite_that_is_closed_is_said():
    connection = databases.connect("sqlite")
    databases.lay(connection, numbers(12, 500), "few")
    rows = dd.rows(dd.sql(connection, "few"), target="y")
    connection.close()
    with pytest.raises(DatabaseError, match="SQLite stopped: Cannot operate on a closed database"):
        dd.Logistic().fit(rows)


# --- memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
def test_only_a_few_batches_are_in_memory(kind, server, monkeypatch):
    connection = databases.connect(kind)
    series = "RANGE" if kind == "duckdb" else "GENERATE_SERIES"
    number = "range" if kind == "duckdb" else "n"
    alias = "" if kind == "duckdb" else " AS n"
    ends = "(200000)" if kind == "duckdb" else "(0, 199999)"
    query = (
        f"SELECT SIN({number}) AS a, COS({number}) AS b, {number} % 3 AS y "
        f"FROM {series}{ends}{alias}"
    )
    monkeypatch.setattr(unloading, "_BATCH", 2000)
    lock, held, most = threading.Lock(), [0], [0]
    call, parts = ReadingTask.__call__, unloading.stream_rows

    def counted(*some, **options):
        for part in parts(*some, **options):
            with lock:
                held[0] += part.count
                most[0] = max(most[0], held[0])
            yield part

    def let_go(self, part):
        found = call(self, part)
        with lock:
            held[0] -= part.count
        return found

    source = dd.sql(connection, query)
    rows = dd.rows(source, target="y")
    from discriminant.engines import sql

    monkeypatch.setattr(sql, "stream_rows", counted)
    monkeypatch.setattr(ReadingTask, "__call__", let_go)
    held[0] = most[0] = 0
    rows.fold(_reading(rows))
    assert most[0] <= 12 * 2048


def _reading(rows):
    from discriminant.moments.accumulate import MomentsReading

    found = rows.moments
    return MomentsReading(found.labels, found.features, found.anchor, "pooled")


def test_dates_before_1970_and_after_2255_are_days(server):
    days = [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(9999, 12, 31)]
    frame = pd.DataFrame({"day": days * 4, "x": np.arange(12.0) ** 2, "y": ["u", "v"] * 6})
    server.execute("SET LOCAL datestyle = 'German'")
    databases.lay(server, frame, "days", types={"day": "DATE"})
    found = dd.rows(dd.sql(server, "days"), target="y").sample
    wanted = [(day - datetime.date(1970, 1, 1)).days for day in days]
    assert np.asarray(found.features[:])[:3, 0].tolist() == wanted
