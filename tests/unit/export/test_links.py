"""Links that no database has a function for are written out, exact to 1e-12 in both tails."""

import numpy as np
import pytest
from mpmath import mp, mpf

from discriminant.export.feature_columns import number_columns
from discriminant.export.plan import ExportPlan, Output
from discriminant.export.sql import _SQLWriter
from discriminant.models.expressions import LINK_EXPRESSIONS
from discriminant.table.sql_dialect import SQL_DIALECTS

SCORES = [-1e6, -300.0, -40.0, -9.0, -5.7, -2.0, -0.66, -0.5, -1e-3, -1e-9, 0.0]
SCORES += [-score for score in SCORES[:-1]] + [0.4, 0.67, 1.0, 4.0, 5.65, 6.5]


def exact(link, score):
    """(log p0, log p1) with forty digits."""
    mp.dps = 40
    s = mpf(score)
    if link == "probit":
        return mp.log(mp.erfc(s / mp.sqrt(2)) / 2), mp.log(mp.erfc(-s / mp.sqrt(2)) / 2)
    if link == "cloglog":
        rate = mp.exp(min(s, mpf(700)))
        return -rate, mp.log(-mp.expm1(-rate))
    small = mp.atan(1 / abs(s)) / mp.pi if s else mpf(1) / 2
    sides = mp.log(1 - small), mp.log(small)
    return sides if s < 0 else sides[::-1]


@pytest.mark.parametrize("link", ["probit", "cloglog", "cauchit"])
def test_log_probabilities_are_exact_in_both_tails(link):
    import duckdb

    scores = [s for s in SCORES if link != "cloglog" or abs(s) < 500]
    sources = number_columns(["s"], named=True)
    x = sources.as_expression()
    output = Output("log_p", LINK_EXPRESSIONS[link](x), ("no", "yes"))
    spec = ExportPlan("a link", sources.features, (), x, True, (output,))
    query = _SQLWriter(spec, SQL_DIALECTS["duckdb"], ()).select(("t",))
    with duckdb.connect() as database:
        database.execute("CREATE TABLE t (s DOUBLE)")
        database.executemany("INSERT INTO t VALUES (?)", [(s,) for s in scores])
        found = np.array(database.execute(query).fetchall())
    wanted = np.array([[float(one) for one in exact(link, s)] for s in scores])
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-15)
