"""Files: what they are is found from their bytes, and the same table comes out of every kind."""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

import discriminant as dd
from discriminant import open_source
from discriminant.errors import BadNumberError, ColumnNamesError, FileError
from discriminant.table.files.csv_dialect import fits_kind, infer_kind, is_number
from discriminant.table.files.formats import detect_format
from discriminant.table.files.svmlight import line_blocks

RNG = np.random.default_rng(5)
ROWS = 50
FRAME = pd.DataFrame(
    {
        "size": RNG.standard_normal(ROWS),
        "count": RNG.integers(0, 9, ROWS),
        "sold": RNG.random(ROWS) < 0.5,
        "day": pd.to_datetime("2020-01-01") + pd.to_timedelta(RNG.integers(0, 400, ROWS), "D"),
        "colour": RNG.choice(["red", "grün", "a, b", 'say "x"', "two\nlines"], ROWS),
        "label": RNG.choice(["yes", "no"], ROWS),
    }
)
NAMES = ("size", "count", "sold", "day")


def expected():
    """Features worked out with pandas alone."""
    days = (FRAME["day"] - pd.Timestamp("1970-01-01")).dt.days
    numbers = FRAME[["size", "count", "sold"]].assign(day=days)
    levels = sorted(FRAME["colour"].unique())
    reference = max(levels, key=lambda level: (FRAME["colour"] == level).sum())
    for level in levels:
        if level != reference:
            numbers[f"colour={level}"] = FRAME["colour"] == level
    return numbers.astype(float)


def text(sep=",", decimal=".", **options):
    return FRAME.to_csv(index=False, sep=sep, decimal=decimal, **options)


def check(opened):
    want = expected()
    assert opened.table.schema.features == tuple(want.columns)
    np.testing.assert_allclose(opened.table.features[:], want.to_numpy(), rtol=1e-15, atol=1e-15)
    assert opened.table.schema.labels[opened.table.codes].tolist() == FRAME["label"].tolist()


def written(folder, content):
    path = folder / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


TEXTS = {
    "commas": (text(), "fields separated by commas"),
    "semicolons": (text(";"), "fields separated by semicolons"),
    "semicolons and decimal commas": (text(";", ","), "semicolons, decimal comma"),
    "decimal commas in quotes": (text(",", ",", quoting=2).replace("'", "’"), "decimal comma"),
    "tabs": (text("\t"), "fields separated by tabs"),
    "bars": (text("|"), "fields separated by bars"),
    "all in quotes": (text(quoting=1), "fields separated by commas"),
    "Windows line ends": (text(lineterminator="\r\n"), "commas"),
    "a byte order mark": (b"\xef\xbb\xbf" + text().encode(), "UTF-8 with a byte order mark"),
    "UTF-16": (text().encode("utf-16"), "UTF-16-LE with a byte order mark"),
    "UTF-16, big end first": (b"\xfe\xff" + text().encode("utf-16-be"), "UTF-16-BE"),
    "UTF-16 without a mark": (text().encode("utf-16-le"), "UTF-16-LE"),
    "latin-1": (text().encode("latin-1"), r"latin-1 by guess, since byte \d+ \(line \d+\)"),
    "gzip": (gzip.compress(text().encode()), "packed with gzip"),
    "gzip of two parts": (
        gzip.compress(text().encode()[:700]) + gzip.compress(text().encode()[700:]),
        "packed with gzip",
    ),
    "empty lines": ("\n" + text().replace("\n", "\n\n").replace("two\n\nl", "two\nl"), "commas"),
    "no line end at the end": (text().rstrip("\n"), "commas"),
}


@pytest.mark.parametrize(("content", "said"), TEXTS.values(), ids=TEXTS)
def test_a_csv_is_read_however_it_is_written_and_that_is_said(content, said, tmp_path):
    import re

    opened = open_source(written(tmp_path, content), target="label")
    check(opened)
    assert re.search(said, opened.notes[0])


def test_lines_that_end_as_on_old_machines_are_lines(tmp_path):
    plain = FRAME.assign(colour=FRAME["colour"].str.replace("\n", " "))
    path = written(tmp_path, plain.to_csv(index=False, lineterminator="\r"))
    assert open_source(path, target="label").rows_read == ROWS


def test_single_quotes_are_quotes_where_the_header_has_them(tmp_path):
    path = written(tmp_path, "'a','y'\n" + "'1.5','p'\n'2.5','q, r'\n" * 10)
    opened = open_source(path, target="y")
    assert opened.table.schema.labels.tolist() == ["p", "q, r"]
    assert "quotes are '" in opened.notes[0]


SOURCES = {
    "pandas": lambda f: FRAME,
    "polars": lambda f: pl.from_pandas(FRAME),
    "pyarrow": lambda f: pa.Table.from_pandas(FRAME),
    "a batch": lambda f: pa.RecordBatch.from_pandas(FRAME),
    "a reader of batches": lambda f: pa.Table.from_pandas(FRAME).to_reader(7),
    "pandas categories": lambda f: FRAME.astype({"colour": "category", "label": "category"}),
    "polars categories": lambda f: pl.from_pandas(FRAME).with_columns(
        pl.col("colour").cast(pl.Categorical)
    ),
    "Parquet": lambda f: stored(f, "parquet"),
    "Parquet of several parts": lambda f: stored(f, "parquet", row_group_size=7),
    "Arrow": lambda f: stored(f, "file"),
    "an Arrow stream": lambda f: stored(f, "stream"),
    "JSON lines": lambda f: stored(f, "jsonl"),
}


def stored(folder, kind, **options):
    path, table = folder / "a file", pa.Table.from_pandas(FRAME, preserve_index=False)
    if kind == "parquet":
        pq.write_table(table, path, **options)
    elif kind == "jsonl":
        iso = FRAME.assign(day=FRAME["day"].dt.strftime("%Y-%m-%d"))
        path.write_text(iso.to_json(orient="records", lines=True, double_precision=15))
    else:
        make = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
        with make(path, table.schema) as writer:
            writer.write_table(table, 7)
    return path


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_every_source_gives_the_same_table(source, tmp_path):
    check(open_source(source(tmp_path), target="label"))


# --- labels and names ----------------------------------------------------------------------------


def test_labels_stay_as_they_are_written(tmp_path):
    labels = ["NA", "null", "nan", "001", "1", "1.0", "TRUE", "0x1"]
    rows = "".join(f"{i},{label}\n" for i, label in enumerate(labels * 5))
    opened = open_source(written(tmp_path, "a,y\n" + rows), target="y", columns=["a"])
    assert opened.table.schema.labels.tolist() == sorted(labels)


def test_levels_of_a_category_stay_as_they_are_written(tmp_path):
    rows = "".join(f"{i % 7},{c},{'pq'[i % 2]}\n" for i, c in enumerate(["NA", "null", "x"] * 9))
    opened = open_source(written(tmp_path, "a,c,y\n" + rows), target="y", reference=None)
    assert opened.table.schema.features == ("a", "c=NA", "c=null", "c=x")


@pytest.mark.parametrize("kind", [int, bool, str])
def test_labels_of_a_frame_keep_their_kind(kind):
    labels = (FRAME["label"] == "yes").astype(kind)
    opened = open_source(FRAME.assign(label=labels), target="label")
    assert opened.table.schema.labels.tolist() == sorted(set(labels.tolist()))


def test_a_column_without_a_name_is_named_by_its_place(tmp_path):
    opened = open_source(written(tmp_path, FRAME.to_csv()), target="label")
    assert opened.encoding.columns[0].name == "column 1"
    assert "Column 'column 1' is set aside: whole numbers that count the rows." in opened.notes


def test_the_index_that_pandas_writes_is_no_feature(tmp_path):
    frame = pd.DataFrame({"x": [1.5, 2.5, 3.5, 0.5] * 3, "y": list("aabb") * 3})
    frame[frame["x"] > 1].to_parquet(tmp_path / "some.parquet")
    opened = open_source(tmp_path / "some.parquet", target="y")
    assert "Column '__index_level_0__' is set aside: the index of a pandas frame." in opened.notes


def test_columns_are_read_only_if_they_are_asked_for(tmp_path):
    path = written(tmp_path, text())
    opened = open_source(path, target="label", columns=["count", "size"])
    assert opened.table.schema.features == ("size", "count")
    assert open_source(
        path, target="label", exclude=["colour", "sold", "day"]
    ).encoding.features == (
        "size",
        "count",
    )


def test_an_excluded_column_may_be_of_any_kind():
    opened = open_source(FRAME.assign(odd=[[1]] * ROWS), target="label", exclude=["odd"])
    assert "odd" not in opened.encoding.features


def test_weights_come_from_their_column():
    opened = open_source(FRAME, target="label", weight="count")
    assert opened.table.weight.tolist() == FRAME["count"].tolist()
    assert "count" not in opened.encoding.features


def test_a_quoted_field_of_two_lines_may_lie_across_blocks(tmp_path):
    line = '1.5,"' + "x" * 50 + "\n" + "y" * 50 + '",p\n' + "2.5,z,q\n"
    opened = open_source(written(tmp_path, "a,c,y\n1,z,p\n" * 1 + line * 40_000), target="y")
    assert opened.rows_read == 80_001


def test_an_encoding_that_shows_only_late_is_found(tmp_path):
    start = text().encode("ascii", "ignore") * 1
    body = b"\n".join(start.replace(b"two\nlines", b"two").split(b"\n")[1:]) * 900
    path = written(
        tmp_path,
        start.split(b"\n")[0] + b"\n" + body + "1,2,True,2020-01-01,grün,no\n".encode("latin-1"),
    )
    opened = open_source(path, target="label")
    assert "latin-1 by guess" in opened.notes[0]
    assert "colour=grün" in opened.encoding.features


# --- kinds ---------------------------------------------------------------------------------------


@given(st.floats(allow_nan=False) | st.integers(-(10**20), 10**20))
def test_every_number_that_python_writes_is_a_number(value):
    assert is_number(str(value)) and is_number(f" {value} ")


@given(st.text(alphabet="0123456789+-.eEx_,naif ", max_size=8))
def test_a_number_is_what_float_takes_but_for_grouped_digits(text):
    def python():
        try:
            float(text)
        except ValueError:
            return False
        return "_" not in text

    assert is_number(text) == python()


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "2", "NA", ""], "number"),
        (["0", "1", "2", "3+"] * 5, "text"),
        ([str(i) for i in range(30)] + ["oops"], "number"),
        (["1", "2", "?"], "number"),
        (["1.5", "2.5"] * 9 + ["none yet"], "number"),
        (["TRUE", "false", ""], "boolean"),
        (["2020-01-31"], "date"),
        (["2020-01-31 10:15", "2020-01-31T10:15:30"], "time"),
        (["31/01/2020"], "text"),
        (["", "NA"], "empty"),
        (["yes", "no"], "text"),
    ],
)
def test_the_kind_of_a_column_is_judged_from_its_cells(cells, kind):
    assert infer_kind(cells, ".") == kind


@given(st.integers(0, 9999), st.integers(0, 13), st.integers(0, 32))
def test_a_day_is_a_day_if_arrow_reads_it(year, month, day):
    text = f"{year:04}-{month:02}-{day:02}"
    try:
        read = pa.array([text]).cast(pa.date32()).is_valid()[0].as_py()
    except pa.ArrowInvalid:
        read = False
    assert fits_kind(text, "date", ".") is read


@pytest.mark.parametrize("row", [3, 2500])  # among the rows that kinds are judged by, and after
def test_a_day_that_no_calendar_has_is_told_with_its_line(row, tmp_path):
    lines = [f"2024-03-{1 + i % 28:02},{i},{'ab'[i % 2]}" for i in range(3000)]
    lines[row] = "2024-02-30,1,a"
    path = written(tmp_path, "\n".join(["day,x,y", *lines]))
    with pytest.raises(BadNumberError, match=f"line {row + 2}.*column 'day'.*'2024-02-30'"):
        open_source(path, target="y")


def test_a_column_that_is_empty_at_first_may_hold_numbers(tmp_path):
    rows = "".join(f",{i % 7},{'pq'[i % 2]}\n" for i in range(1500))
    later = "".join(f"{i}.5,{i % 7},{'pq'[i % 2]}\n" for i in range(50))
    path = written(tmp_path, "a,b,y\n" + rows + later)
    opened = open_source(path, target="y", missing="mean")
    assert opened.encoding.columns[0].kind == "number"
    assert opened.encoding.columns[0].fill == pytest.approx((25.0,))


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "x.json", "x"])
def test_the_name_of_a_file_says_nothing(name, tmp_path):
    path = tmp_path / name
    path.write_text(text())
    assert detect_format(path).kind == "csv"


def test_names_that_are_twice_in_a_frame_are_refused():
    with pytest.raises(ColumnNamesError, match="positions 0, 1"):
        open_source(FRAME.set_axis(["a", "a", "b", "c", "d", "label"], axis=1), target="label")


def test_real_tables_are_read(shared_data):
    files = sorted(shared_data.rglob("*.csv"))[:5]
    assert all(detect_format(path).kind == "csv" for path in files)


# --- content that no reader should follow ---------------------------------------------------------


@pytest.mark.parametrize("engine", ["memory", "files"])
@pytest.mark.parametrize(("before", "after"), [("[", "]"), ('{"a":', "}")], ids=["array", "object"])
@pytest.mark.parametrize("depth", [70, 20_000])
def test_json_nested_too_deep_is_refused_with_its_line(tmp_path, depth, before, after, engine):
    """Arrow's parser recurses for each level, and overflows the stack at some thousands."""
    deep = before * depth + "1" + after * depth
    lines = ['{"x": 1.5, "y": "p"}', '{"x": 2.5, "y": "q"}', f'{{"x": {deep}, "y": "q"}}']
    path = written(tmp_path, "\n".join(lines) + "\n")
    with pytest.raises(FileError, match="line 3: nested more than 64 deep"):
        if engine == "memory":
            open_source(path, target="y")
        else:
            dd.rows(path, target="y")


def test_brackets_in_texts_are_not_nested(tmp_path):
    text = json.dumps("[" * 1000 + '"{\\')
    lines = [f'{{"x": {x}, "z": {text}, "y": "{y}"}}' for x, y in [(1, "p"), (2, "q")] * 5]
    opened = open_source(written(tmp_path, "\n".join(lines) + "\n"), target="y", exclude=["z"])
    assert len(opened.table) == 10


@pytest.mark.skipif(not os.path.exists("/proc/self/pagemap"), reason="a file of Linux")
def test_file_of_the_kernel_is_empty():
    """Its size is zero; some of these files end never, or wait for an event."""
    with pytest.raises(FileError, match="the file is empty"):
        open_source("/proc/self/pagemap", target="y")
    assert list(line_blocks(Path("/proc/self/pagemap"))) == []
