"""Checkpoints of rows that lie in no file: sums are kept for the same rows, and for no others."""

import numpy as np
import pytest

import discriminant as dd
from discriminant.engines.summation import ReadingTask
from discriminant.errors import EngineError
from tests.shared import databases
from tests.shared.engine_kinds import ENGINES, pieces_of
from tests.unit.engines.test_engine_laws import assert_near, mixed, numbers


def each(chosen):
    """Tests of these engines, each in one process."""
    found = [pytest.param(e, id=e.name, marks=pytest.mark.xdist_group(e.name)) for e in chosen]
    return pytest.mark.parametrize("engine", found, indirect=True)


OUTSIDE = each(e for e in ENGINES if not e.inside and not e.name.startswith("files"))
INSIDE = each(e for e in ENGINES if e.inside)


@pytest.fixture(autouse=True)
def one_name(monkeypatch):
    """Tables are of one name, whatever is in them, and whichever database they are in."""
    lay = databases.lay

    def laid(connection, frame):
        connection.execute('DROP TABLE IF EXISTS "kept rows"')
        return lay(connection, frame, "kept rows")

    monkeypatch.setattr(databases, "lay", laid)


def same_bits(one, other):
    return all(np.array_equal(getattr(one, n), getattr(other, n)) for n in ("mean", "scatter"))


@OUTSIDE
def test_sums_that_are_kept_are_not_worked_out_again(engine, tmp_path, monkeypatch):
    frame, kept = numbers(1), tmp_path / "kept"
    first = engine.rows(frame, 3, tmp_path, target="y", checkpoint=kept)
    monkeypatch.setattr(ReadingTask, "__call__", None)  # whoever reads rows for a sum fails
    again = engine.rows(frame, 3, tmp_path, target="y", checkpoint=kept)
    assert same_bits(again.moments, first.moments)


@OUTSIDE
def test_sums_of_other_rows_are_not_taken_for_these(engine, tmp_path):
    frame, kept = mixed(2), tmp_path / "kept"
    other = frame.assign(y=np.roll(frame["y"], 7))
    wishes = {"target": "y", "weight": "w", "checkpoint": kept}
    engine.rows(frame, 3, tmp_path, **wishes)
    found = engine.rows(other, 3, tmp_path, **wishes).moments
    wanted = engine.rows(other, 3, tmp_path, target="y", weight="w").moments
    assert same_bits(found, wanted)


def test_rows_in_another_order_and_other_parts_are_the_same_rows(tmp_path):
    dask = pytest.importorskip("dask")
    frame, kept = numbers(3), tmp_path / "kept"
    first = dd.rows(list(map(dask.delayed, pieces_of(frame, 4))), target="y", checkpoint=kept)
    turned = frame.sample(frac=1.0, random_state=1)
    again = dd.rows(list(map(dask.delayed, pieces_of(turned, 9))), target="y", checkpoint=kept)
    assert_near(again.moments, first.moments)


@INSIDE
def test_a_checkpoint_of_rows_that_may_not_leave_is_refused(engine, tmp_path):
    with pytest.raises(EngineError, match=r"pushdown=True no row leaves.*Leave checkpoint= out"):
        engine.rows(numbers(4), 2, tmp_path, target="y", checkpoint=tmp_path / "kept")
    assert not (tmp_path / "kept").exists()
