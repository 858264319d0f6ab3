"""Spark on two cores of this machine: tasks that fail, odd names, partitions of every size."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant.engines.dispatch import read_moments
from discriminant.errors import ColumnNamesError, EngineError, MissingCellError, ShapeError
from tests.shared import sparks
from tests.unit.engines.test_engine_laws import assert_near, mixed, numbers

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(bool(sparks.why_not()), reason=sparks.why_not() or "Spark is here"),
]
pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'discriminant[spark]'")


def same_bits(one, other):
    names = ("rows", "weight", "mean", "scatter")
    return all(np.array_equal(getattr(one, n), getattr(other, n)) for n in names)


def failing(frame, folder):
    """The same partitions; each fails when it is first asked for, after it has given rows."""

    def once(batches):
        from pyspark import TaskContext

        mark = Path(folder) / str(TaskContext.get().partitionId())
        yield from batches
        if not mark.exists():
            mark.touch()
            raise RuntimeError("lost")

    return frame.mapInArrow(once, frame.schema)


def test_tasks_that_fail_and_are_tried_again_change_no_bit(tmp_path):
    laid = sparks.lay(numbers(1), 5)
    quiet = dd.rows(laid, target="y")
    lost = failing(laid, tmp_path)
    found = dd.rows(lost, target="y")
    assert len(os.listdir(tmp_path)) == 5  # so many tasks have failed
    assert same_bits(found.moments, quiet.moments)


def test_a_task_that_always_fails_is_told_by_its_cause():
    def never(batches):
        yield from batches
        raise RuntimeError("the disk is full")

    laid = sparks.lay(numbers(1), 2)
    with pytest.raises(EngineError, match="Spark stopped: RuntimeError: the disk is full"):
        dd.rows(laid.mapInArrow(never, laid.schema), target="y")


@pytest.mark.parametrize("light", [0, 10**6])
def test_sums_of_many_partitions_are_the_same_whether_added_by_executors_or_here(
    light, monkeypatch
):
    frame = numbers(2, 1000)
    monkeypatch.setattr("discriminant.engines.spark._SMALL", light)
    found = dd.rows(sparks.lay(frame, 70), target="y").moments
    assert_near(found, dd.moments(frame.drop(columns="y"), frame["y"]))


def test_columns_may_have_any_name():
    names = {"x0": "a.b", "x1": "c`d", "x2": "e f\n☃", "x3": "`", "y": "the.class"}
    frame = numbers(3, 120).rename(columns=names)
    found = dd.rows(sparks.lay(frame, 3), target="the.class").moments
    wanted = dd.moments(frame.drop(columns="the.class"), frame["the.class"])
    assert found.features == ("a.b", "c`d", "e f\n☃", "`")
    assert_near(found, wanted)


def test_nulls_are_dropped_or_named_with_their_partition():
    frame = mixed(4, gaps=True)
    laid = sparks.lay(frame, 4)
    found = dd.rows(laid, target="y", missing="drop")
    assert len(found) == int(frame["x1"].notna().sum())
    frame = numbers(4)
    frame.loc[370, "x2"] = np.nan
    with pytest.raises(MissingCellError, match=r"'x2'.*partition 3"):
        dd.rows(sparks.lay(frame, 4), target="y")


def test_a_frame_without_rows_is_said():
    with pytest.raises(ShapeError, match="no rows"):
        dd.rows(sparks.lay(numbers(4), 2).limit(0), target="y")


def test_two_columns_of_one_name_are_refused():
    laid = sparks.lay(numbers(4, 30), 1)
    with pytest.raises(ColumnNamesError, match="'x0' occurs at positions 0, 5"):
        dd.rows(laid.select("*", "x0"), target="y")


def test_a_session_is_no_source():
    with pytest.raises(EngineError, match="reads a SparkSession"):
        dd.rows(sparks.spark(), target="y")


def test_a_frame_that_was_shuffled_counts_each_row_once():
    frame = numbers(5, 500)
    laid = sparks.lay(frame, 6).repartition(9, "y").orderBy("x0")
    found = dd.rows(laid, target="y").moments
    assert_near(found, dd.moments(frame.drop(columns="y"), frame["y"]))


def test_kinds_of_spark_are_what_they_are_in_a_frame():
    frame = mixed(6)
    frame["day"] = pd.Timestamp("2020-02-01") + pd.to_timedelta(np.arange(400) % 77, unit="D")
    laid = sparks.lay(frame, 3).selectExpr("*", "CAST(x0 AS DECIMAL(20, 6)) AS money")
    frame["money"] = frame["x0"].round(6)
    found = dd.rows(laid, target="y", weight="w")
    wanted = dd.open_source(frame, target="y", weight="w")
    assert found.plan.encoding.features == wanted.encoding.features
    assert_near(found.moments, read_moments(wanted.table, detail="class"), 1e-12)


@pytest.mark.filterwarnings("ignore::discriminant.errors.ExtraColumnsWarning")
@pytest.mark.filterwarnings("ignore::discriminant.errors.SeparatingColumnWarning")
def test_predictions_stay_lazy_and_are_those_in_memory():
    frame = mixed(7)
    model = dd.Encoded(dd.LDA()).fit(frame.drop(columns=["y", "w"]), frame["y"])
    found = dd.predict_frame(model, sparks.lay(frame.drop(columns="w"), 3))
    assert found.columns[-4:] == ["predicted", "p(low)", "p(mid)", "p(top)"]
    told = found.toPandas()
    assert told["predicted"].tolist() == model.predict(frame).tolist()
    np.testing.assert_allclose(
        told[["p(low)", "p(mid)", "p(top)"]], model.predict_proba(frame), rtol=1e-12
    )
