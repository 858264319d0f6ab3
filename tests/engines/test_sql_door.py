"""At the door of a database: what its cells are, which table is meant, what is wrong with it."""

import sqlite3

import numpy as np
import pandas as pd
import pytest

import discriminant as dd

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
