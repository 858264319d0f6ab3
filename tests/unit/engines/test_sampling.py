"""Rows drawn to fit and judge models by stand for all: files are often in the order of time."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import discriminant as dd
from discriminant.engines import sampling
from discriminant.errors import ColumnNamesError, ShapeError
from tests.shared.engine_kinds import ENGINES

N = 6000


def in_order_of_time(rows=N):
    """A month of rows, one after the other; half way the classes change sides."""
    rng = np.random.default_rng(6)
    time = np.arange(rows) / rows + 0.25
    x = rng.standard_normal(rows)
    y = np.where((x > 0) == (time < 0.75), "a", "b")
    return pd.DataFrame({"time": time, "x": x, "y": y})


def middle_of_drawn(rows):
    """The mean time of the rows drawn, from 0 to 1."""
    place = list(rows.schema.features).index("time")
    return float(np.asarray(rows.sample.features[:])[:, place].mean()) - 0.25


@pytest.mark.parametrize("parts", [1, 7])
def test_rows_are_drawn_from_the_beginning_to_the_end(engine, parts, tmp_path):
    rows = engine.rows(in_order_of_time(), parts, tmp_path, target="y")
    if engine.inside:  # no row leaves: means of classes, and these with their spread added
        assert len(rows.sample) == 4
        return
    few = len(rows.sample) < N / 2
    assert few and abs(middle_of_drawn(rows) - 0.5) < 0.05 + 1.5 / np.sqrt(len(rows.sample)) * (
        engine.name in ("spark", "sql-duckdb", "sql-sqlite", "sql-postgres")
    )


@pytest.mark.parametrize("name", ["files-csv", "files-parquet", "files-csv-gzip", "dask"])
def test_the_same_rows_are_drawn_every_time(name, tmp_path):
    engine = next(one for one in ENGINES if one.name == name)
    laid = engine.laid(in_order_of_time(), 3, tmp_path)
    first, second = (dd.rows(laid, target="y").sample.features[:] for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_parts_are_drawn_from_by_their_size(tmp_path):
    frame = in_order_of_time()
    for number, (lo, hi) in enumerate([(0, 5400), (5400, 5700), (5700, 6000)]):
        frame[lo:hi].to_parquet(tmp_path / f"{number}.parquet", index=False)
    rows = dd.rows(tmp_path, target="y")
    assert middle_of_drawn(rows) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_lines_are_drawn_at_places_all_over_a_long_text(ending, tmp_path, monkeypatch):
    monkeypatch.setattr(sampling, "_SHORT", 0)
    monkeypatch.setattr(sampling, "_MAX_POSITIONS", 25)
    path = tmp_path / f"long.{ending}"
    frame = in_order_of_time()
    if ending == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_json(path, orient="records", lines=True)
    rows = dd.rows(path, target="y")
    assert 75 <= len(rows.sample) <= 100 and middle_of_drawn(rows) == pytest.approx(0.5, abs=0.025)


def test_a_quoted_line_end_does_not_lead_the_draw_astray(tmp_path, monkeypatch):
    monkeypatch.setattr(sampling, "_SHORT", 0)
    monkeypatch.setattr(sampling, "_MAX_POSITIONS", 25)
    frame = in_order_of_time()
    frame["text"] = np.where(np.arange(N) % 2, "one", "one\n7,8,b,two\n7,8,b,three")
    frame.to_csv(tmp_path / "quoted.csv", index=False)
    rows = dd.rows(tmp_path / "quoted.csv", target="y")
    assert middle_of_drawn(rows) == pytest.approx(0.5, abs=0.025)


def test_a_packed_text_is_drawn_from_its_beginning_to_its_end(tmp_path):
    text = in_order_of_time().to_csv(index=False)
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(text.encode()))
    rows = dd.rows(tmp_path / "packed.csv.gz", target="y")
    assert len(rows.sample) == 100 and middle_of_drawn(rows) == pytest.approx(0.5, abs=0.01)


# --- models fitted to rows in parts ---------------------------------------------------------------


def with_soil(folder):
    """A file with a category, and its rows."""
    frame = in_order_of_time(600).assign(soil=["clay", "sand", "peat"] * 200)
    frame.to_csv(folder / "soil.csv", index=False)
    return frame, dd.rows(folder / "soil.csv", target="y")


def test_a_model_of_features_says_what_takes_the_columns_as_they_are(tmp_path):
    frame, rows = with_soil(tmp_path)
    with pytest.raises(ColumnNamesError, match=r"'soil=.*within Encoded\(\.\.\.\)"):
        dd.LDA().fit(rows).predict(frame)
    inner = dd.LDA().fit(rows)
    said = dd.Encoded(dd.LDA()).fit(rows).predict_proba(frame)
    names = rows.schema.features
    cells = {c: frame[c] if c in frame else (frame["soil"] == c[5:]) * 1.0 for c in names}
    np.testing.assert_allclose(said, inner.predict_proba(pd.DataFrame(cells)))


def test_rows_in_parts_are_told_who_answers_them(tmp_path):
    _, rows = with_soil(tmp_path)
    with pytest.raises(ShapeError, match=r"discriminant\.rows.*predict_file.*predict_frame"):
        dd.LDA().fit(rows).predict(rows)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv"])
def test_drawn_rows_hold_no_memory_but_their_own(kind, tmp_path):
    """A table made of a batch by the wrong way keeps all columns alive for some codes of texts."""
    n, d = 20_000, 10
    columns = {f"x{j}": np.random.default_rng(j).normal(size=n) for j in range(d)}
    table = pa.table({**columns, "y": np.array(["no", "yes"])[np.arange(n) % 2]})
    path = tmp_path / f"t.{kind}"
    {"parquet": pq.write_table, "arrow": pa.feather.write_feather, "csv": pa.csv.write_csv}[kind](
        table, path
    )
    source = dd.rows(path, target="y").source
    before = pa.total_allocated_bytes()
    held = sampling.systematic_sample(source.parts, [*columns, "y"], rows=200)
    own = sum(one.nbytes for one in held)
    assert own < 1 << 16
    assert pa.total_allocated_bytes() - before < 4 * own + (1 << 18)  # all are 1.7 MB
