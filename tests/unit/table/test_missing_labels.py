"""missing='drop' drops rows without a label too; moments may be those of one class."""

import duckdb
import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant import LDA, Encoded, store
from discriminant.cli.run import run as main
from discriminant.errors import LabelError, UnlabelledRowsWarning

ROWS = 90
RNG = np.random.default_rng(4)
FRAME = pd.DataFrame(
    {
        "x": RNG.standard_normal(ROWS).round(3),
        "z": RNG.standard_normal(ROWS).round(3),
        "kind": ["only without a label" if i % 9 == 0 else "uv"[i // 2 % 2] for i in range(ROWS)],
        "y": [None if i % 9 == 0 else "ab"[i % 2] for i in range(ROWS)],
    }
)
FRAME.loc[[4, 9], "x"] = np.nan  # row 9 has no label either
COMPLETE = FRAME.dropna().reset_index(drop=True)
WANT = LDA().fit(COMPLETE[["x", "z"]].assign(v=COMPLETE["kind"] == "v"), COMPLETE["y"])


@pytest.fixture
def csv(tmp_path):
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "rows.csv"


def check(model, encoding):
    assert encoding.features == ("x", "z", "kind=v")  # no level of a row that was dropped
    np.testing.assert_allclose(model.coef_, WANT.coef_, rtol=1e-9)


def test_open_source_drops_rows_without_a_label(csv):
    found = dd.open_source(csv, target="y", missing="drop", reference="first")
    assert "10 of 90 rows have no label and are dropped." in found.notes
    assert "1 of 80 rows have a missing cell and are dropped." in found.notes
    assert found.kept_rows.tolist() == [i for i in range(ROWS) if i % 9 and i != 4]
    table = found.table
    labels = table.schema.labels[table.codes]
    check(LDA().fit(np.asarray(table.features[:]), labels), found.encoding)


def test_partitioned_rows_drop_rows_without_a_label(csv):
    found = dd.rows(csv, target="y", missing="drop", reference="first")
    assert "11 of 90 rows have a missing cell or no label and are dropped." in found.notes
    check(LDA().fit(found), found.plan.encoding)


@pytest.mark.parametrize("pushdown", [False, True])
def test_a_database_drops_rows_without_a_label(pushdown):
    with duckdb.connect() as connection:
        connection.register("frame", FRAME)
        connection.execute("CREATE TABLE t AS SELECT * FROM frame")
        source = dd.sql(connection, "t", pushdown=pushdown)
        found = dd.rows(source, target="y", missing="drop", reference="first")
        assert "11 of 90 rows have a missing cell or no label and are dropped." in found.notes
        check(LDA().fit(found), found.plan.encoding)


def test_encoded_drops_rows_without_a_label():
    model = Encoded(LDA(), missing="drop", reference="first")
    model.fit(FRAME[["x", "z", "kind"]], FRAME["y"], sample_weight=np.ones(ROWS))
    assert "10 of 90 rows have no label and are dropped." in model.said_
    assert model.rows_dropped_ == 11
    check(model.estimator_, model.encoding_)


def test_a_study_drops_rows_without_a_label(csv, tmp_path, capsys):
    options = ["--target", "y", "--missing", "drop", "--reference", "first"]
    out = str(tmp_path / "m.model")
    assert main(["fit", str(csv), *options, "--model", "lda", "--out", out]) == 0
    assert "10 of 90 rows have no label" in capsys.readouterr().err
    check(store.load(out).estimator_, store.load(out).encoding_)
    assert main(["compare", str(csv), *options, "--models", "lda,logistic", "--folds", "3"]) == 0


def test_rows_in_messages_are_numbered_as_in_the_source(csv):
    text = csv.read_text().splitlines()
    text[31] = "oops,1.0,u,a"
    csv.write_text("\n".join(text) + "\n")
    with pytest.raises(dd.errors.BadNumberError, match=r"Row 30 .*line 32"):
        dd.open_source(csv, target="y", missing="drop")
    frame = FRAME.assign(x=FRAME["x"].astype(object))
    frame.loc[30, "x"] = np.inf
    with pytest.raises(dd.errors.InfiniteValueError, match="Row 30"):
        dd.open_source(frame.astype({"x": float}), target="y", missing="drop")


@pytest.mark.parametrize("missing", ["mean", "indicator", "marginal"])
def test_policies_for_missing_features_drop_rows_without_a_label(missing, csv):
    labelled = FRAME[FRAME["y"].notna()].reset_index(drop=True)
    options = {"target": "y", "missing": missing, "reference": "first"}
    expected = dd.open_source(labelled, **options)
    with pytest.warns(UnlabelledRowsWarning, match="10 of 90 rows have no label and are dropped"):
        found = dd.open_source(csv, **options)
    assert found.encoding.features == expected.encoding.features
    np.testing.assert_allclose(found.table.features[:], expected.table.features[:], rtol=1e-12)
    np.testing.assert_array_equal(found.table.codes, expected.table.codes)


@pytest.mark.parametrize("database", [False, True])
def test_partitions_with_filled_features_drop_rows_without_a_label(database, csv):
    labelled = FRAME[FRAME["y"].notna()]
    options = {"target": "y", "missing": "mean", "reference": "first"}
    expected = dd.open_source(labelled, **options).table
    model = LDA().fit(np.asarray(expected.features[:]), expected.schema.labels[expected.codes])
    with duckdb.connect() as connection:
        connection.register("frame", FRAME)
        source = dd.sql(connection, "frame") if database else csv
        with pytest.warns(UnlabelledRowsWarning, match="10 of 90 rows have no label and are drop"):
            found = dd.rows(source, **options)
        np.testing.assert_allclose(LDA().fit(found).coef_, model.coef_, rtol=1e-9)


def test_command_that_fills_features_warns_of_rows_without_a_label(csv, tmp_path, capsys):
    options = ["--target", "y", "--missing", "mean", "--model", "lda", "--quiet"]
    assert main(["fit", str(csv), *options, "--out", str(tmp_path / "m.model")]) == 0
    assert "Warning: 10 of 90 rows have no label and are dropped." in capsys.readouterr().err


def test_no_label_at_all_is_an_error(csv):
    FRAME.assign(y=None).to_csv(csv, index=False)
    for read in (dd.open_source, dd.rows):
        with pytest.raises(LabelError, match="'y', the target, is missing in all 90 rows"):
            read(csv, target="y", missing="drop")


def test_the_message_names_the_option(csv):
    with pytest.raises(LabelError, match="missing='drop'"):
        dd.open_source(csv, target="y")


# --- one class ------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", [[], ["--engine", "files"]])
def test_moments_of_one_class_are_merged(engine, tmp_path, capsys):
    paths = []
    for label in "ab":
        path = tmp_path / f"{label}.csv"
        COMPLETE[COMPLETE["y"] == label].drop(columns="kind").to_csv(path, index=False)
        paths.append(str(tmp_path / f"{label}.moments"))
        given = ["moments", str(path), "--target", "y", "--out", paths[-1], *engine]
        assert main(given) == 0, capsys.readouterr().err
    assert main(["merge", *paths, "--out", str(tmp_path / "all.moments")]) == 0
    found = LDA().fit_moments(store.load(tmp_path / "all.moments"))
    want = LDA().fit(COMPLETE[["x", "z"]], COMPLETE["y"])
    np.testing.assert_allclose(found.coef_, want.coef_, rtol=1e-9)
    capsys.readouterr()
    assert main(["fit", paths[0], "--model", "lda", "--out", str(tmp_path / "m.model")]) == 2
    assert "one class" in capsys.readouterr().err


def test_fit_still_refuses_one_class(csv, tmp_path):
    one = COMPLETE[COMPLETE["y"] == "a"]
    one.to_csv(csv, index=False)
    for read in (dd.open_source, dd.rows):
        with pytest.raises(LabelError, match="Only one class"):
            read(csv, target="y")
        assert read(csv, target="y", min_classes=1) is not None
