"""Cells of a CSV that are easily misread: quotes, long integers, thousands and decimal signs."""

import csv
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discriminant as dd
from discriminant.errors import BadNumberError, FileError, OptionError
from discriminant.table.files import splits

ROWS = 60
X = np.random.default_rng(0).standard_normal(ROWS).round(3)
Y = list("ab") * (ROWS // 2)
READERS = [dd.open_source, dd.rows]


def table(path, cells, name="n"):
    lines = [f"{cell},{x},{y}" for cell, x, y in zip(cells, X, Y, strict=True)]
    path.write_text("\n".join([f"{name},x,y", *lines]) + "\n")
    return path


def encoding(found):
    return found.encoding if hasattr(found, "encoding") else found.plan.encoding


def column(found, name="n"):
    return next(column for column in encoding(found).columns if column.name == name)


# --- quotes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    "cell, options",
    [('"1"5', {}), ('""5', {})]
    + [(cell, {"categories": ["n"]}) for cell in ('"1"5', '"1""2"5', '"1,5"2', '"1\n""2"5')],
)
def test_text_after_a_closing_quote_is_refused_with_its_place(read, cell, options, tmp_path):
    path = table(tmp_path / "rows.csv", [*range(40), cell, *range(41, ROWS)])
    line = 42 + cell.count("\n")
    where = rf"rows\.csv, line {line}, column 'n': the text '\d' follows"
    with pytest.raises(FileError, match=where):
        read(path, target="y", **options)


@pytest.mark.parametrize("read", READERS)
def test_text_after_a_quote_is_found_in_later_parts_of_a_file(read, tmp_path, monkeypatch):
    monkeypatch.setattr(splits, "RANGE", 200)
    path = table(tmp_path / "rows.csv", [*range(40), '"1"5', *range(41, ROWS)])
    with pytest.raises(FileError, match="line 42, column 'n'"):
        read(path, target="y")


@pytest.mark.parametrize("read", READERS)
def test_quotes_that_are_well_formed_are_read(read, tmp_path):
    # RFC 4180: a quote within a quoted field is doubled; Python's own reader is the reference.
    texts = ['"a,""b"" c"', '"""q"""', '5"x', '"line\nend"', '"1" ', '""', '"{""k"":1,""m"":2}"']
    path = table(tmp_path / "rows.csv", (texts * ROWS)[:ROWS])
    with open(path, newline="") as file:
        want = {row["n"] for row in csv.DictReader(file)} - {""}
    found = column(read(path, target="y", missing="indicator"))
    assert set(found.levels) == want


@pytest.mark.parametrize("read", READERS)
def test_text_after_a_quote_in_an_excluded_column_is_ignored(read, tmp_path):
    path = table(tmp_path / "rows.csv", ['"a"b', "c"] * (ROWS // 2))
    assert encoding(read(path, target="y", exclude=["n"])).features == ("x",)


# --- integers -------------------------------------------------------------------------------------

LONG = [2**64 + i for i in range(ROWS)]
IN_64_BITS = [2**60 + i * 7 % ROWS for i in range(ROWS)]  # float64 has one number for all


@pytest.mark.parametrize("ids", [LONG, IN_64_BITS], ids=["beyond 64 bits", "64 bits"])
@pytest.mark.parametrize("read", READERS)
def test_long_integers_in_a_csv_are_identifiers(read, ids, tmp_path):
    found = column(read(table(tmp_path / "rows.csv", ids), target="y"))
    assert (found.kind, found.note) == ("identifier", "60 texts, all different")


SOURCES = {
    "objects": lambda ids: pd.DataFrame({"n": pd.Series(ids, dtype=object), "x": X, "y": Y}),
    "polars": lambda ids: pl.DataFrame({"n": pl.Series(ids, dtype=pl.Int128), "x": X, "y": Y}),
}


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("ids", [LONG, IN_64_BITS], ids=["beyond 64 bits", "64 bits"])
def test_long_integers_in_a_frame_are_identifiers(kind, ids):
    assert column(dd.open_source(SOURCES[kind](ids), target="y")).kind == "identifier"


@pytest.mark.parametrize("ids", [IN_64_BITS, [2**60 + i for i in range(ROWS)]])
def test_long_integers_in_partitioned_rows_are_identifiers(ids, tmp_path):
    frame = pd.DataFrame({"n": ids, "x": X, "y": Y})
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "rows.parquet", row_group_size=10)
    found = column(dd.rows(tmp_path / "rows.parquet", target="y"))
    assert found.kind == "identifier"
    assert found.kind == column(dd.open_source(frame, target="y")).kind


def test_long_integers_that_repeat_are_categories(tmp_path):
    path = table(tmp_path / "rows.csv", [2**64 + i % 3 for i in range(ROWS)])
    found = column(dd.open_source(path, target="y", reference="first"))
    assert found.features == ("n=18446744073709551617", "n=18446744073709551618")


def test_large_integers_that_float64_tells_apart_stay_numbers(tmp_path):
    times = [1_700_000_000_000_000_000 + i * 10**12 for i in np.argsort(X)]  # nanoseconds
    with pytest.warns(dd.errors.LargeIntegerWarning, match="'n'"):
        found = dd.open_source(table(tmp_path / "rows.csv", times), target="y")
    assert column(found).kind == "number"


def test_a_rounded_constant_is_not_called_one_value(tmp_path):
    decimals = pa.table({"n": pa.array([Decimal(i) for i in LONG]), "x": X, "y": Y})
    found = column(dd.open_source(decimals, target="y"))
    assert "after rounding to float64" in found.note and "texts" in found.note


# --- thousands ------------------------------------------------------------------------------------


@pytest.mark.parametrize("read", READERS)
def test_two_groups_of_digits_are_thousands(read, tmp_path):
    values = [(i * 37 % ROWS + 100) * 10_000 for i in range(ROWS)]  # 1,000,000 to 1,590,000
    path = table(tmp_path / "rows.csv", [f'"{value:,}"' for value in values])
    found = read(path, target="y")
    assert column(found).kind == "number"
    if read is dd.open_source:
        assert found.table.features[:][:, 0].tolist() == values


def test_one_value_with_thousands_is_constant(tmp_path):
    path = table(tmp_path / "rows.csv", ['"1,000,000"'] * ROWS)
    assert column(dd.open_source(path, target="y")).note == "1e+06 in every row"


SINGLE = [f"{1001 + i * 37 % ROWS:,}" for i in range(ROWS)]


@pytest.mark.parametrize("read", READERS)
def test_one_group_of_digits_names_both_readings(read, tmp_path):
    path = table(tmp_path / "rows.csv", [f'"{cell}"' for cell in SINGLE])
    with pytest.raises(BadNumberError, match=r"1001 or 1\.001.*thousands=','.*decimal=','"):
        read(path, target="y")


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    "option, scale", [({"thousands": ","}, 1.0), ({"decimal": ","}, 0.001)], ids=str
)
def test_thousands_and_decimal_are_chosen_by_options(read, option, scale, tmp_path):
    path = tmp_path / "rows.csv"
    lines = [f"{cell};{i % 7};{y}" for i, (cell, y) in enumerate(zip(SINGLE, Y, strict=True))]
    path.write_text("\n".join(["n;x;y", *lines]) + "\n")
    found = read(path, target="y", **option)
    values = found.table.features[:] if read is dd.open_source else found.sample.features
    want = [float(cell.replace(",", "")) * scale for cell in SINGLE]
    np.testing.assert_allclose(np.asarray(values)[:, 0], want, rtol=1e-15)


@pytest.mark.parametrize(
    "sign, text", [(".", "1.234,5"), (" ", "1 234.5"), ("'", "1'234.5"), (",", "1,234.5")]
)
def test_every_sign_between_thousands_is_read(sign, text, tmp_path):
    path = tmp_path / "rows.csv"
    cells = [text if i % 3 else "7" for i in range(ROWS)]
    lines = [f"{cell}|{i % 7}|{y}" for i, (cell, y) in enumerate(zip(cells, Y, strict=True))]
    path.write_text("\n".join(["n|x|y", *lines]) + "\n")
    found = dd.open_source(path, target="y", thousands=sign)
    assert set(found.table.features[:][:, 0]) == {1234.5, 7.0}


def test_a_sign_that_groups_no_digits_is_refused(tmp_path):
    path = table(tmp_path / "rows.csv", range(ROWS))
    with pytest.raises(OptionError, match="thousands"):
        dd.open_source(path, target="y", thousands="x")
    with pytest.raises(OptionError, match="thousands"):
        dd.open_source(path, target="y", thousands=",", decimal=",")


def fitted_on_plain_numbers():
    frame = pd.DataFrame({"n": [float(cell.replace(",", "")) for cell in SINGLE], "x": X})
    return frame, dd.Encoded(dd.LDA()).fit(frame, Y)


@pytest.mark.filterwarnings("ignore::discriminant.errors.ExtraColumnsWarning")
def test_predict_reads_thousands(tmp_path):
    frame, model = fitted_on_plain_numbers()
    path = table(tmp_path / "rows.csv", [f'"{cell}"' for cell in SINGLE])
    with pytest.raises(BadNumberError, match=r"1001 or 1\.001"):
        dd.predict_file(model, path, tmp_path / "out.csv")
    dd.predict_file(model, path, tmp_path / "out.csv", thousands=",")
    found = pd.read_csv(tmp_path / "out.csv", thousands=",")
    assert found["predicted"].tolist() == model.predict(frame).tolist()
    np.testing.assert_allclose(found["p(a)"], model.predict_proba(frame)[:, 0], rtol=1e-12)


def test_predictions_for_a_decimal_comma_have_one_too(tmp_path):
    frame, model = fitted_on_plain_numbers()
    frame.to_csv(tmp_path / "rows.csv", sep=";", decimal=",", index=False)
    dd.predict_file(model, tmp_path / "rows.csv", tmp_path / "out.csv")
    found = pd.read_csv(tmp_path / "out.csv", sep=";", decimal=",")
    assert found[["n", "x", "p(a)"]].dtypes.tolist() == [np.float64] * 3
    np.testing.assert_allclose(found["p(a)"], model.predict_proba(frame)[:, 0], rtol=1e-12)


def test_files_with_different_decimal_signs_are_written_with_one(tmp_path):
    frame, model = fitted_on_plain_numbers()
    frame.iloc[:30].to_csv(tmp_path / "1.csv", sep=";", decimal=",", index=False)
    frame.iloc[30:].to_csv(tmp_path / "2.csv", sep=";", index=False)
    dd.predict_file(model, [tmp_path / "1.csv", tmp_path / "2.csv"], tmp_path / "out.csv")
    found = pd.read_csv(tmp_path / "out.csv")
    np.testing.assert_allclose(found[["n", "x"]], frame[["n", "x"]], rtol=1e-15)
    np.testing.assert_allclose(found["p(a)"], model.predict_proba(frame)[:, 0], rtol=1e-12)
