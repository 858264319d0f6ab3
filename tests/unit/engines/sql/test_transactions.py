"""Databases are left as they were: whatever stops a reading, and whatever a query would do."""

import threading

import numpy as np
import pytest

import discriminant as dd
from discriminant.engines.dispatch import read_moments
from discriminant.engines.sql import connection as unloading
from discriminant.errors import DatabaseError
from tests.shared import databases
from tests.unit.engines.sql.test_sql import WAYS, connection, server, stopped_at  # noqa: F401 -- fixtures
from tests.unit.engines.test_engine_laws import assert_near, numbers

# --- a reading that is stopped --------------------------------------------------------------------


def within(seconds, ask):
    """What a call raises; a call that hangs fails."""
    told = []

    def run():
        try:
            ask()
        except BaseException as fault:
            told.append(fault)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), f"it hangs: no answer within {seconds} s"
    return told[0] if told else None


def raising(fault):
    """Something that raises it."""

    def stop():
        raise fault

    return stop


@pytest.mark.parametrize("fault", [KeyboardInterrupt, MemoryError], ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
def test_a_reading_that_is_stopped_ends_and_leaves_the_connection_as_it_was(
    kind,
    fault,
    monkeypatch,
    server,  # noqa: F811
):
    connection = databases.connect(kind)  # noqa: F811
    name = databases.quoted(databases.lay(connection, numbers(12, 200)))
    many = ", ".join(f"({k})" for k in range(400))
    query = f"SELECT r.* FROM {name} r, (VALUES {many}) AS more"
    monkeypatch.setattr(unloading, "_PIECE", 1 << 16)
    stopped_at(monkeypatch, raising(fault))
    told = within(60, lambda: dd.rows(dd.sql(connection, query), target="y"))
    assert type(told) is fault
    counted = connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()
    assert counted == (200,)


def test_rows_come_in_the_same_order_whoever_else_scans_the_table(server):  # noqa: F811
    """PostgreSQL lets a scan join another one that is under way; here it begins at the start."""
    server.execute("SET synchronize_seqscans = on")
    query = (
        "SELECT RANDOM() AS x, CURRENT_SETTING('synchronize_seqscans') || (n % 2) AS y "
        "FROM GENERATE_SERIES(1, 60) AS n"
    )
    assert dd.rows(dd.sql(server, query), target="y").schema.labels.tolist() == ["off0", "off1"]
    assert server.execute("SHOW synchronize_seqscans").fetchone() == ("on",)


# --- a query that would write ---------------------------------------------------------------------

WRITING = [
    "WITH q AS (SELECT 1) DELETE FROM victim",
    "SELECT 1) AS rows; DROP TABLE victim; SELECT * FROM (SELECT 1 a",
    "SELECT 1 AS a; DELETE FROM victim",
    "SELECT 1) AS rows; COMMIT; DELETE FROM victim; SELECT * FROM (SELECT 1 a",
    "WITH gone AS (DELETE FROM victim RETURNING *) SELECT * FROM gone",
    "(SELECT 1); DELETE FROM victim; (SELECT 1)",
]


@WAYS
@pytest.mark.parametrize("in_transaction", [False, True], ids=["alone", "in a transaction"])
@pytest.mark.parametrize("query", WRITING)
def test_a_query_that_would_write_is_refused_and_writes_nothing(
    connection,  # noqa: F811
    query,
    in_transaction,
    pushdown,
):
    name = databases.lay(connection, numbers(3, 50))
    query = query.replace("victim", databases.quoted(name))
    if in_transaction:
        connection.execute("BEGIN")
    with pytest.raises(DatabaseError):
        dd.rows(dd.sql(connection, query, pushdown=pushdown), target="y")
    if in_transaction and "RETURNING" in query and "duckdb" in type(connection).__module__:
        connection.execute("ROLLBACK")  # DuckDB aborts a transaction in which a statement fails
    assert connection.execute(f"SELECT COUNT(*) FROM {databases.quoted(name)}").fetchone() == (50,)


def test_a_function_that_writes_is_refused_in_a_transaction_of_the_user(server):  # noqa: F811
    server.execute("CREATE TABLE log (n INT)")
    server.execute(
        "CREATE FUNCTION wrote(n INT) RETURNS INT LANGUAGE SQL AS "
        "'INSERT INTO log VALUES (n) RETURNING n'"
    )
    with pytest.raises(DatabaseError, match="read-only"):
        dd.rows(dd.sql(server, "SELECT wrote(1) AS a, 'u' AS y"), target="y")
    server.execute("INSERT INTO log VALUES (7)")  # the user's transaction may go on to write
    assert server.execute("SELECT n FROM log").fetchall() == [(7,)]


def test_sqlite_may_write_again_afterwards():
    lite = databases.connect("sqlite")
    name = databases.quoted(databases.lay(lite, numbers(3, 50)))
    dd.rows(dd.sql(lite, name), target="y")
    assert lite.execute(f"DELETE FROM {name}").rowcount == 50


# --- cells that come late -------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [300, 120])
def test_a_column_of_texts_may_begin_with_many_cells_that_are_missing(connection, rows):  # noqa: F811
    frame = numbers(4, 400).assign(colour=np.resize(["red", "green", "blue"], 400))
    frame.loc[: rows - 1, "colour"] = None
    name = databases.lay(connection, frame)
    found = dd.rows(dd.sql(connection, (name,)), target="y", missing="indicator")
    wanted = dd.open_source(frame, target="y", missing="indicator")
    assert found.plan.encoding.features == wanted.encoding.features
    assert_near(found.moments, read_moments(wanted.table, detail="class"))


def test_texts_beside_numbers_in_a_column_of_sqlite_are_refused_however_far_apart():
    lite = databases.connect("sqlite")
    frame = numbers(5, 400)
    frame["x1"] = frame["x1"].astype(object).where(frame.index < 350, "many")
    frame.loc[:149, "x1"] = None
    name = databases.lay(lite, frame, types={"x1": ""})
    with pytest.raises(DatabaseError, match="'x1' holds cells of several types"):
        dd.rows(dd.sql(lite, (name,)), target="y", missing="drop")


def test_numbers_that_are_not_whole_do_not_count_the_rows(connection):  # noqa: F811
    """All different, from 0 to rows - 1, and yet a measurement."""
    frame = numbers(6, 60)
    frame["x1"] = np.arange(60.0)
    frame.loc[1:58, "x1"] += 0.25
    name = databases.lay(connection, frame)
    for pushdown in (False, True):
        found = dd.rows(dd.sql(connection, (name,), pushdown=pushdown), target="y")
        assert found.plan.encoding.features == ("x0", "x1", "x2", "x3")
