"""Rows of requests: every format gives the same cells as a frame, and errors name their place."""

import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from discriminant.errors import DiscriminantError
from discriminant.table.encoding import Column, Encoding
from discriminant.web.service.rows import (
    RequestError,
    frame_of_arrow,
    frame_of_columns,
    frame_of_csv,
    frame_of_records,
    frame_of_split,
    parse_json,
    plain_getter,
    plain_rows,
)

ENCODING = Encoding(
    (
        Column("size", "number", features=("size",)),
        Column("ok", "boolean", features=("ok",)),
        Column("day", "date", features=("day",)),
        Column("grade", "ordered", levels=("low", "high"), features=("grade",)),
        Column("colour", "category", levels=("1", "red"), reference="1", features=("colour=red",)),
        Column("label", "target"),
    )
)
FRAME = pd.DataFrame(
    {
        "size": [1.5, -2.0, 3e10],
        "ok": [True, False, True],
        "day": pd.to_datetime(["2024-01-01", "1969-12-31", "2024-02-29"]),
        "grade": ["low", "high", "low"],
        "colour": ["red", "1", "red"],
    }
)
RECORDS = [
    {"size": 1.5, "ok": True, "day": "2024-01-01", "grade": "low", "colour": "red"},
    {"size": -2, "ok": False, "day": "1969-12-31", "grade": "high", "colour": 1},
    {"size": 3e10, "ok": True, "day": "2024-02-29", "grade": "low", "colour": "red"},
]
NAMES = list(RECORDS[0])


def arrow(table, *, file=False, **options):
    sink = pa.BufferOutputStream()
    new = pa.ipc.new_file if file else pa.ipc.new_stream
    with new(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=2)
    return sink.getvalue().to_pybytes()


def csv_body():
    text = io.StringIO()
    FRAME.assign(colour=["red", "1", "red"]).to_csv(text, index=False)
    return text.getvalue().encode()


FORMATS = {
    "records": lambda: frame_of_records(RECORDS, ENCODING, 10),
    "arrays": lambda: frame_of_records([list(row.values()) for row in RECORDS], ENCODING, 10),
    "split": lambda: frame_of_split(
        NAMES[::-1], [list(row.values())[::-1] for row in RECORDS], ENCODING, 10
    ),
    "columns": lambda: frame_of_columns(
        {name: [row[name] for row in RECORDS] for name in NAMES}, ENCODING, 10
    ),
    "csv": lambda: frame_of_csv(csv_body(), ENCODING, 10, "utf-8"),
    "arrow stream": lambda: frame_of_arrow(arrow(pa.Table.from_pandas(FRAME)), ENCODING, 10),
    "arrow file": lambda: frame_of_arrow(
        arrow(pa.Table.from_pandas(FRAME), file=True), ENCODING, 10
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_features_of_a_frame(name):
    expected = ENCODING.encode(FRAME)
    np.testing.assert_array_equal(ENCODING.encode(FORMATS[name]()), expected)


def test_plain_rows_equal_rows_through_a_frame():
    encoding = Encoding(tuple(Column(n, "number", features=(n,)) for n in "abc"))
    values_of = plain_getter(encoding)
    rows = [{"c": 3, "a": 1.5, "b": -2}, {"a": 1e300, "b": 0, "c": 2**60}]
    expected = encoding.encode(frame_of_records(rows, encoding, 10))
    np.testing.assert_array_equal(plain_rows(rows, values_of).matrix(), expected)


@pytest.mark.parametrize(
    "rows",
    [
        [{"a": 1, "b": 2}],
        [{"a": 1, "b": 2, "c": 3, "d": 4}],
        [{"a": 1, "b": 2, "c": None}],
        [{"a": 1, "b": 2, "c": True}],
        [{"a": 1, "b": 2, "c": "3"}],
        [{"a": 1, "b": 2, "c": float("inf")}],
        [[1, 2, 3]],
        [],
        {"a": 1, "b": 2, "c": 3},
        [{"a": 1, "b": 2, "c": 3}] * 17,
    ],
)
def test_plain_rows_leave_other_rows_to_the_frame(rows):
    encoding = Encoding(tuple(Column(n, "number", features=(n,)) for n in "abc"))
    assert plain_rows(rows, plain_getter(encoding)) is None


def test_only_columns_of_numbers_are_plain():
    assert plain_getter(ENCODING) is None


def test_missing_cell_is_null_or_absent():
    rows = [{**RECORDS[0], "size": None}, RECORDS[1]]
    rows[1] = {name: value for name, value in rows[1].items() if name != "size"}
    with pytest.raises(DiscriminantError, match=r"Row 0.*column 'size': missing"):
        ENCODING.encode(frame_of_records([rows[0]], ENCODING, 10))
    frame = frame_of_records([RECORDS[0], rows[1]], ENCODING, 10)
    assert np.isnan(frame["size"].values[1])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"size": [1]}, r"Row 1 \(counted from 0\), column 'size': the value is an array"),
        ({"size": {"a": 1}}, r"column 'size': the value is an object"),
        ({"size": "1.5"}, r"column 'size': the value is a text, and the model expects a number"),
        ({"size": True}, r"column 'size': the value is a truth value"),
        ({"colour": []}, r"column 'colour': the value is an array"),
        ({"ok": 1}, r"column 'ok': the value is a number, and the model expects a truth value"),
        ({"day": 5}, r"column 'day': the value is a number, and the model expects a date"),
    ],
)
def test_value_of_another_type_is_refused_with_its_place(value, message):
    with pytest.raises(RequestError, match=message):
        frame_of_records([RECORDS[0], {**RECORDS[1], **value}], ENCODING, 10)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (3, "The rows are a number"),
        ([], "no rows"),
        ([RECORDS[0], None], r"Row 1 \(counted from 0\) is null"),
        ([RECORDS[0], [1]], r"Row 1 .* is an array"),
        ([[1, 2]], r"Row 0 .* is 2 values, and the columns are 'size', 'ok'"),
        (RECORDS * 4, "12 rows, more than 10"),
    ],
)
def test_rows_of_another_shape_are_refused(rows, message):
    with pytest.raises(RequestError, match=message):
        frame_of_records(rows, ENCODING, 10)


def test_missing_column_is_named():
    with pytest.raises(DiscriminantError, match="'size'"):
        ENCODING.encode(frame_of_records([{"ok": True}], ENCODING, 10))


def test_columns_need_equal_lengths_and_names_once():
    with pytest.raises(RequestError, match="'size': 2, 'ok': 1"):
        frame_of_columns({"size": [1, 2], "ok": [True]}, ENCODING, 10)
    with pytest.raises(DiscriminantError, match="size"):
        frame_of_split(["size", "size"], [[1, 2]], ENCODING, 10)


def test_extra_columns_are_recorded_but_the_target_is_known():
    frame = frame_of_records([{**RECORDS[0], "label": "a", "id": 7}], ENCODING, 10)
    with pytest.warns(UserWarning, match="'id'") as caught:
        ENCODING.encode_rows(frame)
    assert "label" not in str(caught[0].message)


@pytest.mark.parametrize("body", [b"[NaN]", b"[1", b"", b"\xff", b"[" * 5000])
def test_invalid_json_is_refused(body):
    with pytest.raises(RequestError, match="not valid JSON"):
        parse_json(body)


def test_csv_error_names_line_and_column_and_no_file():
    body = csv_body().replace(b"-2.0", b"two")
    with pytest.raises(DiscriminantError, match=r"line 3.*column 'size'") as caught:
        ENCODING.encode(frame_of_csv(body, ENCODING, 10, None))
    assert "rows.csv" not in str(caught.value)


@pytest.mark.parametrize(
    "body", [b"PAR1 not a csv", b"\x1f\x8b\x08\x00", b"ARROW1\x00\x00", b'{"size": 1}\n']
)
def test_csv_of_another_format_is_refused(body):
    with pytest.raises((RequestError, DiscriminantError)) as caught:
        frame_of_csv(body, ENCODING, 10, None)
    assert "rows.csv" not in str(caught.value)


def test_csv_without_rows_is_refused():
    with pytest.raises(DiscriminantError, match=r"no .*rows"):
        frame_of_csv(b"size,ok,day,grade,colour\n", ENCODING, 10, None)


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
@pytest.mark.parametrize("file", [False, True])
def test_compressed_arrow_is_refused(codec, file):
    with pytest.raises(RequestError, match="compressed"):
        frame_of_arrow(
            arrow(pa.Table.from_pandas(FRAME), file=file, compression=codec), ENCODING, 10
        )


def test_compressed_dictionary_of_arrow_is_refused():
    table = pa.table({"colour": pa.array(["red"] * 50 + ["1"] * 50).dictionary_encode()})
    with pytest.raises(RequestError, match="compressed"):
        frame_of_arrow(arrow(table, compression="zstd"), ENCODING, 1000)


def test_arrow_with_too_many_rows_is_refused_before_it_is_read():
    table = pa.table({"size": pa.nulls(1_000_000)})
    with pytest.raises(RequestError, match="more than 10"):
        frame_of_arrow(arrow(table), ENCODING, 10)


@pytest.mark.parametrize("seed", range(60))
def test_damaged_arrow_is_refused_or_read_but_never_crashes(seed):
    random = np.random.default_rng(seed)
    body = bytearray(arrow(pa.Table.from_pandas(FRAME), file=bool(seed % 2)))
    for place in random.integers(0, len(body), 1 + seed % 6):
        body[place] = random.integers(0, 256)
    try:
        frame = frame_of_arrow(bytes(body), ENCODING, 10)
    except (RequestError, DiscriminantError):
        return
    assert len(frame) <= 10
