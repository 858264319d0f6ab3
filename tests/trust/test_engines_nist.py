"""NIST's certified sums of squares by every engine, in any number of parts (trust.md, N3)."""

import pandas as pd
import pytest

from discriminant.moments import accumulate
from tests.shared.engine_kinds import ENGINES
from tests.trust.test_nist_anova import CLOSE, LARGE, SETS, digits_lost, rows_of
from tests.unit.engines.conftest import engine as engine, small_parts as small_parts


def frame_of(name):
    """The rows in an order of their own; all engines take labels that are texts."""
    X, y = rows_of(name, 3)
    return pd.DataFrame({"x": X[:, 0], "y": [f"treatment {code}" for code in y]})


@pytest.mark.parametrize("parts", [pytest.param(1, marks=pytest.mark.slow), 3, 64])
@pytest.mark.parametrize("name", [name for name in SETS if name not in LARGE])
def test_every_engine_has_the_digits_that_the_rows_allow(engine, name, parts, tmp_path):
    moments = engine.rows(frame_of(name), parts, tmp_path, target="y").moments
    assert digits_lost(name, moments) <= CLOSE


@pytest.mark.parametrize("name", LARGE)
def test_so_it_has_of_many_rows(engine, name, tmp_path):
    moments = engine.rows(frame_of(name), 8, tmp_path, target="y").moments
    assert digits_lost(name, moments) <= CLOSE


@pytest.mark.parametrize("name", SETS)
def test_so_it_has_where_columns_are_read_as_those_of_very_many_rows(name, tmp_path, monkeypatch):
    monkeypatch.setattr(accumulate, "_LARGE", 0)
    parquet = next(engine for engine in ENGINES if engine.name == "files-parquet")
    moments = parquet.rows(frame_of(name), 8, tmp_path, target="y").moments
    assert digits_lost(name, moments) <= CLOSE
