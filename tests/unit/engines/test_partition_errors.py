"""Faults of rows in parts: none costs a row, and each is named by its place."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discriminant as dd
from discriminant.errors import (
    FileError,
    InfiniteValueError,
    LabelError,
    MissingCellError,
    SourceChangedError,
    WeightError,
)
from discriminant.table.files import splits


def table(rows=700, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(rows, 2)), columns=["a", "b"])
    return frame.assign(w=1.0, y=rng.choice(["u", "v"], rows))


def in_groups(frame, path, rows=100):
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, row_group_size=rows)
    return path


def failing_once(monkeypatch, group):
    """The first reading of a row group, of all rows, ends in a fault; the next ones do not."""
    met = []
    real = splits.ParquetPart.frames

    def frames(part, columns):
        if part.groups == (group,) and not met:
            met.append(part)
            raise FileError(f"{part.identity.path}: too many open files.")
        return real(part, columns)

    monkeypatch.setattr(splits.ParquetPart, "frames", frames)
    return met


def test_a_fault_that_passes_costs_no_row(tmp_path, monkeypatch):
    path = in_groups(table(), tmp_path / "rows.parquet")
    wanted = dd.rows(path, target="y").moments
    met = failing_once(monkeypatch, 2)
    found = dd.rows(path, target="y", checkpoint=tmp_path / "kept")
    assert met and len(found) == 700
    assert np.array_equal(found.moments.scatter, wanted.scatter)


def test_fewer_rows_than_a_file_says_it_has_are_refused(tmp_path, monkeypatch):
    path = in_groups(table(), tmp_path / "rows.parquet")
    real = splits.ParquetPart.frames

    def frames(part, columns):
        return iter(()) if part.groups == (3,) else real(part, columns)

    monkeypatch.setattr(splits.ParquetPart, "frames", frames)
    with pytest.raises(SourceChangedError, match=r"700 rows.*600"):
        dd.rows(path, target="y")


@pytest.mark.parametrize(
    ("cell", "error"), [("", MissingCellError), ("inf", InfiniteValueError)], ids=["gap", "inf"]
)
def test_a_bad_cell_in_the_second_csv_is_named_by_its_line(cell, error, tmp_path):
    table(300).to_csv(tmp_path / "1.csv", index=False)
    lines = table(300, 1).to_csv(index=False).splitlines()
    lines[251] = ",".join(["0.5", cell, *lines[251].split(",")[2:]])
    (tmp_path / "2.csv").write_text("\n".join([*lines, ""]))
    with pytest.raises(error, match=r"Row 250 .*line 252 .*'b'.*2\.csv"):
        dd.rows(tmp_path / "*.csv", target="y")


@pytest.mark.parametrize("row", [0, 355, 699])
def test_a_missing_label_is_named_by_its_row(row, tmp_path):
    frame = table()
    frame.loc[row, "y"] = None
    path = in_groups(frame, tmp_path / "rows.parquet")
    with pytest.raises(LabelError, match=rf"row\(s\) {row} \(.*row group {row // 100}\."):
        dd.rows(path, target="y")


@pytest.mark.parametrize("weight", [-1.0, np.nan])
def test_a_bad_weight_is_named_by_its_row(weight, tmp_path):
    frame = table()
    frame.loc[455, "w"] = weight
    path = in_groups(frame, tmp_path / "rows.parquet")
    with pytest.raises(WeightError, match=r"row 455 .*row group 4\."):
        dd.rows(path, target="y", weight="w")


@pytest.fixture
def growing():
    """A table of a database, which others may change after it was opened."""
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    with duckdb.connect() as connection:
        frame = table()  # noqa: F841 -- the database reads it by its name
        connection.execute("CREATE TABLE t AS SELECT * FROM frame")
        yield connection


def test_a_class_that_appears_after_the_opening_is_told_as_a_change(growing):
    rows = dd.rows(dd.sql(growing, "t"), target="y", exclude=["w"])
    growing.execute("UPDATE t SET y = 'new' WHERE rowid = 650")
    with pytest.raises(SourceChangedError, match=r"'new' in 'y'"):
        dd.Logistic().fit(rows)


def test_rows_of_which_none_counts_any_more_are_told_as_a_change(growing):
    rows = dd.rows(dd.sql(growing, "t"), target="y", exclude=["w"], missing="drop")
    growing.execute("UPDATE t SET a = NULL")
    with pytest.raises(SourceChangedError, match=r"700 rows .* 0 now"):
        dd.Logistic().fit(rows)
