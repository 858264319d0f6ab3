"""Files larger than memory: what they may be, and what is said of those that are wrong."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discriminant as dd
from discriminant.engines.dispatch import read_moments
from discriminant.engines.out_of_core import as_source
from discriminant.errors import BadNumberError, FileError, MissingCellError, PartSchemaError
from discriminant.table.files import splits
from discriminant.table.load import open_source


def frame_of(seed=0, rows=900):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(rows, 3)), columns=["a", "b", "c"])
    frame["kind"] = rng.choice(["red", "blue"], rows)
    return frame.assign(y=rng.choice(["u", "v"], rows))


def assert_as_in_memory(found, source, **wishes):
    wanted = open_source(source, target="y", **wishes)
    assert found.plan.encoding.features == wanted.encoding.features
    mine, theirs = found.moments, read_moments(wanted.table, detail="class")
    assert np.allclose(mine.within(), theirs.within(), rtol=1e-13, atol=1e-13)
    assert np.allclose(mine.means, theirs.means, rtol=1e-13, atol=1e-13)


def test_keys_of_a_partitioned_folder_are_columns(tmp_path):
    frame = frame_of().assign(year=lambda f: np.where(f.a > 0, 2023, 2024))
    for (year, kind), rows in frame.groupby(["year", "kind"]):
        folder = tmp_path / f"year={year}" / f"kind={kind}"
        folder.mkdir(parents=True)
        rows.drop(columns=["year", "kind"]).to_parquet(folder / "rows.parquet", index=False)
    (tmp_path / "_SUCCESS").touch()
    order = ["a", "b", "c", "y", "year", "kind"]
    assert_as_in_memory(dd.rows(tmp_path, target="y"), frame[order])


def test_keys_of_folders_of_csv_are_columns_too(tmp_path):
    frame = frame_of(1)
    for kind, rows in frame.groupby("kind"):
        (tmp_path / f"kind={kind}").mkdir()
        rows.drop(columns="kind").to_csv(tmp_path / f"kind={kind}" / "rows.csv", index=False)
    assert_as_in_memory(dd.rows(tmp_path, target="y"), frame[["a", "b", "c", "y", "kind"]])


@pytest.mark.parametrize("way", ["glob", "list", "folder"])
def test_files_are_named_by_a_glob_a_list_or_their_folder(way, tmp_path):
    frame = frame_of(2)
    paths = [tmp_path / f"{k}.parquet" for k in range(3)]
    for k, path in enumerate(paths):
        frame.iloc[k::3].to_parquet(path, index=False)
    source = {"glob": f"{tmp_path}/*.parquet", "list": paths, "folder": tmp_path}[way]
    assert_as_in_memory(dd.rows(source, target="y"), frame)


def test_lines_of_json_are_read_in_ranges(tmp_path):
    frame, path = frame_of(3), tmp_path / "rows.jsonl"
    frame.to_json(path, orient="records", lines=True, double_precision=15)
    found = dd.rows(path, target="y")
    assert len(found.source.parts) > 5
    assert_as_in_memory(found, path)


def test_an_arrow_stream_is_one_part(tmp_path):
    frame, path = frame_of(4), tmp_path / "rows.arrows"
    table = pa.Table.from_pandas(frame)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)
    assert_as_in_memory(dd.rows(path, target="y"), frame)


@pytest.mark.parametrize("where", [0, 500, 899])
def test_a_line_end_in_quotes_is_no_end_of_a_row(where, tmp_path):
    frame, path = frame_of(5), tmp_path / "rows.csv"
    frame.loc[where:, "kind"] = "two\nlines"
    frame.to_csv(path, index=False)
    assert_as_in_memory(dd.rows(path, target="y"), path)


def test_a_line_end_in_quotes_at_every_cut_is_found_by_counting_quotes(tmp_path, monkeypatch):
    monkeypatch.setattr(splits, "RANGE", 50)
    path = tmp_path / "rows.csv"
    rows = [f'{k}.5,"u\n{k}.25,v"' if k > 1200 else f"{k}.5,u" for k in range(1300)]
    path.write_text("x,y\n" + "\n".join(rows) + "\n1.5,w\n2.5,w\n")
    found = dd.rows(path, target="y")
    assert found.moments.rows.sum() == 1302  # not 1401, as if each line were a row


def test_a_letter_that_is_no_utf8_far_down_starts_reading_again(tmp_path):
    frame, path = frame_of(6), tmp_path / "rows.csv"
    frame.loc[800, "kind"] = "café"
    frame.to_csv(path, index=False, encoding="latin-1")
    assert_as_in_memory(dd.rows(path, target="y"), path)


def test_labels_that_are_digits_are_the_texts_that_a_csv_has(tmp_path):
    frame, path = frame_of(7), tmp_path / "rows.csv"
    frame.assign(y=lambda f: (f.y == "u").astype(int)).to_csv(path, index=False)
    assert dd.rows(path, target="y").schema.labels.tolist() == ["0", "1"]


@pytest.mark.parametrize("packed", [False, True])
def test_a_wrong_cell_far_down_is_named_by_row_and_line(packed, tmp_path):
    path = tmp_path / "rows.csv"
    lines = frame_of(8).to_csv(index=False).splitlines()
    lines[700] = "oops," + lines[700].split(",", 1)[1]
    text = "\n".join(lines).encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    with pytest.raises(BadNumberError, match=r"Row 699 \(counted from 0, line 701 .*'oops'"):
        dd.rows(path, target="y")


def test_a_missing_cell_far_down_is_named_by_row_and_line(tmp_path):
    frame, path = frame_of(9), tmp_path / "rows.csv"
    frame.loc[650, "b"] = np.nan
    frame.to_csv(path, index=False)
    with pytest.raises(MissingCellError, match=r"Row 650 \(counted from 0, line 652 .*'b'"):
        dd.rows(path, target="y")


def test_only_the_columns_that_are_needed_are_read(tmp_path):
    path = tmp_path / "rows.parquet"
    frame_of(10).assign(unread=[{"a": 1}] * 900).to_parquet(path, index=False)
    found = dd.rows(path, target="y", exclude=["unread"])  # a struct, which is no feature
    assert found.width == 4


def test_a_file_of_another_schema_is_refused_by_name_column_and_types(tmp_path):
    frame_of(11).to_parquet(tmp_path / "1.parquet", index=False)
    other = frame_of(12).assign(b=lambda f: f.b.round().astype(int))
    other.to_parquet(tmp_path / "2.parquet", index=False)
    with pytest.raises(PartSchemaError, match=r"2\.parquet: column 'b' is int64, but double in"):
        dd.rows(tmp_path, target="y")


def test_a_file_that_lacks_a_column_is_refused_by_name(tmp_path):
    frame_of(11).to_parquet(tmp_path / "1.parquet", index=False)
    frame_of(12).drop(columns="b").to_parquet(tmp_path / "2.parquet", index=False)
    message = r"2\.parquet does not have the columns of .*1\.parquet; it lacks 'b'"
    with pytest.raises(PartSchemaError, match=message):
        dd.rows(tmp_path, target="y")


def test_a_csv_of_texts_among_csv_of_numbers_is_refused(tmp_path):
    frame_of(11).to_csv(tmp_path / "1.csv", index=False)
    frame_of(12).assign(b="red").to_csv(tmp_path / "2.csv", index=False)
    with pytest.raises(PartSchemaError, match=r"2\.csv: column 'b' is text, but number in"):
        dd.rows(tmp_path, target="y")


def test_files_of_two_formats_are_refused(tmp_path):
    frame_of(11).to_csv(tmp_path / "1.csv", index=False)
    frame_of(12).to_parquet(tmp_path / "2.parquet", index=False)
    with pytest.raises(PartSchemaError, match=r"2\.parquet is parquet, but .*1\.csv is csv"):
        dd.rows(tmp_path, target="y")


def test_empty_files_among_others_are_left_out_and_told(tmp_path):
    frame_of(13).to_csv(tmp_path / "1.csv", index=False)
    frame_of(13).iloc[:0].to_csv(tmp_path / "2.csv", index=False)
    (tmp_path / "3.csv").touch()
    found = dd.rows(tmp_path, target="y")
    assert len(found) == 900
    assert any("1 empty file(s) are left out" in line for line in found.notes)


def test_parquet_that_is_cut_off_is_named(tmp_path):
    whole, path = tmp_path / "1.parquet", tmp_path / "2.parquet"
    frame_of(14).to_parquet(whole, index=False)
    path.write_bytes(whole.read_bytes()[:-1000])
    with pytest.raises(FileError, match=r"2\.parquet: file incomplete \(no footer"):
        dd.rows(tmp_path, target="y")


def test_parquet_that_is_damaged_inside_is_named_by_column_and_row_group(tmp_path):
    path = tmp_path / "rows.parquet"
    table = pa.Table.from_pandas(frame_of(15, rows=4000))
    pq.write_table(table, path, row_group_size=1000, write_page_checksum=True)
    place = pq.read_metadata(path).row_group(2).column(1).data_page_offset
    content = bytearray(path.read_bytes())
    content[place + 200 : place + 300] = bytes(100)
    path.write_bytes(bytes(content))
    with pytest.raises(FileError, match=r"rows\.parquet is damaged.*column 'b' in row group 2"):
        dd.rows(path, target="y")


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_file_that_changes_while_it_is_read_is_refused(ending, tmp_path):
    path = tmp_path / f"rows.{ending}"
    write = {"parquet": pd.DataFrame.to_parquet, "csv": pd.DataFrame.to_csv}[ending]
    write(frame_of(16, rows=4000), path, index=False)

    def grow(done, whole):
        with open(path, "ab") as file:
            file.write(b"more")

    with pytest.raises(FileError, match="changed while it was read"):
        dd.rows(path, target="y", progress=grow, checkpoint=tmp_path / "kept")
    assert (tmp_path / "kept" / "journal.json").exists()


def test_nothing_there_is_said(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        dd.rows(f"{tmp_path}/*.parquet", target="y")


def test_progress_tells_rows_and_of_how_many(tmp_path):
    seen, path = [], tmp_path / "rows.parquet"
    frame_of(17).to_parquet(path, row_group_size=300, index=False)
    dd.rows(path, target="y", columns=["a", "b"], progress=lambda *told: seen.append(told))
    assert seen == [(300, 900), (600, 900), (900, 900)]


def test_progress_of_a_text_estimates_how_many(tmp_path):
    seen, path = [], tmp_path / "rows.csv"
    frame_of(17).to_csv(path, index=False)
    dd.rows(path, target="y", columns=["a", "b"], progress=lambda *told: seen.append(told))
    assert seen[-1] == (900, 900)
    assert abs(seen[0][1] - 900) < 90


def test_a_sample_is_from_all_over_the_files(tmp_path):
    path = tmp_path / "rows.parquet"
    pd.DataFrame({"x": np.arange(10_000.0)}).to_parquet(path, row_group_size=100)
    source = as_source(path)
    for draw, least in ((source.sample, 300), (source.systematic_sample, 320)):
        found = draw(["x"], 320)["x"].values
        assert least <= len(found) <= 320
        assert found.min() < 500
        assert found.max() > 9_000


def test_memory_does_not_grow_with_the_number_of_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(splits, "BATCH", 4096)
    path, most = tmp_path / "rows.parquet", []
    schema = pa.schema([(f"x{j}", pa.float64()) for j in range(20)] + [("y", pa.int64())])
    rng = np.random.default_rng(0)
    with pq.ParquetWriter(path, schema) as writer:
        for _ in range(40):
            columns = [*rng.normal(size=(20, 20_000)), rng.integers(0, 2, 20_000)]
            writer.write_table(pa.table(columns, schema=schema))

    def watch(done, whole):
        most.append(pa.total_allocated_bytes())

    before = pa.total_allocated_bytes()
    dd.rows(path, target="y", progress=watch)
    assert max(most) - before < 50e6  # of 134 MB


def test_no_file_is_read_twice(tmp_path):
    """However it is named: by a glob that finds folders too, or beside its folder in a list."""
    (tmp_path / "sub").mkdir()
    frame_of(3, 100).to_csv(tmp_path / "x.csv", index=False)
    frame_of(4, 50).to_csv(tmp_path / "sub" / "y.csv", index=False)
    (tmp_path / "z.csv").symlink_to(tmp_path / "x.csv")
    for way in ("", "*", "**", "**/*", "**/*.csv"):
        assert len(dd.rows(f"{tmp_path}/{way}", target="y")) == 150, way
    found = dd.rows([tmp_path / "x.csv", tmp_path, tmp_path / "sub" / "y.csv"], target="y")
    assert len(found) == 150
    assert any("named more than once" in line and "y.csv" in line for line in found.notes)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_field_that_appears_late_is_a_column(packed, tmp_path):
    frame = frame_of(5, 1000).drop(columns="kind")
    lines = frame.to_json(orient="records", lines=True, double_precision=15).splitlines()
    bare = frame.drop(columns="b").to_json(orient="records", lines=True, double_precision=15)
    text = "\n".join([*bare.splitlines()[:900], *lines[900:], ""])
    path = tmp_path / ("rows.jsonl.gz" if packed else "rows.jsonl")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    found = dd.rows(path, target="y", missing="mean")
    frame.loc[:899, "b"] = np.nan
    assert_as_in_memory(found, frame[["a", "c", "y", "b"]], missing="mean")


def test_packed_lines_of_json_are_read_some_at_a_time(tmp_path):
    text = frame_of(6).to_json(orient="records", lines=True).encode()
    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(text))
    (part,) = as_source(tmp_path / "rows.jsonl.gz").parts
    pieces = list(splits.json_tables(part.format, part.span, part.schema))
    assert max(len(piece) for piece in pieces) < 100 and sum(map(len, pieces)) == 900


def test_a_line_of_json_that_never_ends_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(splits, "MAX_LINE", 5000)
    (tmp_path / "rows.jsonl.gz").write_bytes(
        gzip.compress(b'{"a": 1, "y": "u"}\n' * 500 + b'{"a": "' + b"x" * 20_000)
    )
    with pytest.raises(FileError, match=r"rows\.jsonl\.gz"):
        dd.rows(tmp_path / "rows.jsonl.gz", target="y")


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_texts_may_be_held_in_more_than_one_way(ending, tmp_path):
    """As pandas, Polars and Spark write them."""
    frame = frame_of(7)
    for k, text in enumerate([pa.string(), pa.large_string()]):
        names = {"a": pa.float64(), "b": pa.float64(), "c": pa.float64(), "kind": text, "y": text}
        rows = pa.Table.from_pandas(frame.iloc[k::2], pa.schema(names), preserve_index=False)
        with pa.OSFile(f"{tmp_path}/{k}.{ending}", "wb") as file:
            if ending == "parquet":
                pq.write_table(rows, file)
            else:
                with pa.ipc.new_file(file, rows.schema) as writer:
                    writer.write_table(rows)
    assert_as_in_memory(dd.rows(tmp_path, target="y"), frame)


def test_large_texts_of_parquet_are_read_as_codes(tmp_path):
    names = pa.schema({"k": pa.large_string()})
    pq.write_table(pa.table({"k": ["u", "v"] * 50}, schema=names), tmp_path / "1.parquet")
    (part,) = as_source(tmp_path / "1.parquet").parts
    kinds = [one.schema.field("k").type for one in part.tables(["k"])]
    assert all(pa.types.is_dictionary(kind) for kind in kinds)


def test_a_text_among_the_numbers_of_the_only_file_is_named_by_its_cell(tmp_path):
    frame = frame_of(8, 300)[["a", "b", "y"]]
    model = dd.Encoded(dd.LDA()).fit(frame[["a", "b"]], frame["y"])
    lines = frame.to_csv(index=False).splitlines()
    lines[5] = "n. a.," + lines[5].split(",", 1)[1]
    (tmp_path / "p.csv").write_text("\n".join([*lines, ""]))
    with pytest.raises(BadNumberError, match=r"[Rr]ow 4 .*line 6.*'a'.*'n\. a\.'"):
        dd.predict_file(model, tmp_path / "p.csv", tmp_path / "said.csv")


def test_what_is_called_no_table_is_left_out_of_a_folder_and_said(tmp_path):
    frame = frame_of(1)
    for number, piece in enumerate(np.array_split(np.arange(len(frame)), 3)):
        frame.iloc[piece].to_parquet(tmp_path / f"p{number}.parquet", index=False)
    for name in ("README.md", "_SUCCESS", ".p0.parquet.crc", "p0.parquet.crc", "LICENSE"):
        (tmp_path / name).write_text("not a table")
    rows = dd.rows(tmp_path, target="y")
    assert len(rows) == len(frame)
    assert any(line.startswith("3 file(s) are left out") for line in rows.notes)
