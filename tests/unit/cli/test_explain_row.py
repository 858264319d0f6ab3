"""The commands explain-row and assess on the rows of the fit, and input from Excel."""

import datetime
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

import discriminant as dd
from discriminant.cli.run import run as main
from discriminant.study.row_explanation import explain_rows
from discriminant.table.files.excel import read_workbook


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wine")
    bunch = load_wine(as_frame=True)
    frame = bunch.data.assign(
        colour=np.where(bunch.data["hue"] > 1, "red", "white"),
        kind=bunch.target_names[bunch.target],
    )
    frame = frame.sample(frac=1, random_state=0)
    frame[:120].to_csv(folder / "train.csv", index=False)
    frame[120:].to_csv(folder / "rest.csv", index=False)
    frame[100:].to_csv(folder / "mixed.csv", index=False)
    model = str(folder / "lda.model")
    train = str(folder / "train.csv")
    assert main(["fit", train, "--target", "kind", "--model", "lda", "--out", model]) == 0
    return folder, frame


def test_explain_row_gives_contributions_and_values_that_change_the_prediction(fitted, capsys):
    folder, frame = fitted
    rows = folder / "rest.csv"
    capsys.readouterr()
    assert main(["explain-row", str(folder / "lda.model"), str(rows), "--rows", "3", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    model = dd.load(folder / "lda.model")
    rest = frame[120:123].reset_index(drop=True)
    predicted, proba = model.predict(rest), model.predict_proba(rest)
    assert [row["decision"] for row in answer["rows"]] == predicted.tolist()
    for i, row in enumerate(answer["rows"]):
        assert row["probability"] == pytest.approx(proba[i].max())
        for one in row["columns"]:
            if one["flips_at"] is None or one["column"] == "colour":
                continue
            changed = rest.iloc[[i]].copy()
            own, value = rest.loc[i, one["column"]], one["flips_at"]
            assert one["value"] == pytest.approx(own)
            low, high = frame[:120][one["column"]].agg(["min", "max"])
            assert low <= value <= high
            changed[one["column"]] = value
            assert model.predict(changed)[0] == one["becomes"]
            changed[one["column"]] = own + 0.99 * (value - own)
            assert model.predict(changed)[0] == row["decision"]


@pytest.fixture(scope="module")
def applicants(tmp_path_factory):
    """Rows with dates such as 08.04.2021, ordered levels, and numbers above 10,000."""
    folder = tmp_path_factory.mktemp("applicants")
    rng, n = np.random.default_rng(1), 200
    day = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 365, n), "D")
    level, income = rng.integers(0, 3, n), rng.normal(30941.33, 5000, n).round(2)
    score = (day - pd.Timestamp("2021-07-01")).days / 50 + level - 1 + rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "income": income,
            "noise": rng.normal(size=n),
            "day": day.strftime("%d.%m.%Y"),
            "risk": np.array(["low", "medium", "high"])[level],
            "status": np.where(score > 0, "paid", "late"),
        }
    )
    frame.to_csv(folder / "rows.csv", index=False)
    arguments = ["fit", str(folder / "rows.csv"), "--target", "status", "--model", "lda"]
    arguments += ["--ordered", "risk=low,medium,high", "--out", str(folder / "lda.model")]
    assert main(arguments) == 0
    return folder, frame


def test_explain_row_searches_within_the_range_and_writes_cells_as_the_file_does(
    applicants, capsys
):
    folder, frame = applicants
    capsys.readouterr()
    arguments = ["explain-row", str(folder / "lda.model"), str(folder / "rows.csv"), "--rows", "50"]
    assert main([*arguments, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    model = dd.load(folder / "lda.model")
    changed_columns = set()
    for i, row in enumerate(answer["rows"]):
        assert row["row"] == i
        cells = {one["column"]: one["value"] for one in row["columns"]}
        assert cells["income"] == frame.loc[i, "income"]
        assert cells["risk"] == frame.loc[i, "risk"]
        assert cells["day"] == "-".join(reversed(frame.loc[i, "day"].split(".")))
        for one in row["columns"]:
            if one["flips_at"] is None:
                continue
            changed_columns.add(one["column"])
            changed = frame.iloc[[i]].assign(**{one["column"]: one["flips_at"]})
            assert model.predict(changed)[0] == one["becomes"] != row["decision"]
            if one["column"] == "risk":
                assert one["flips_at"] in ("low", "medium", "high")
            if one["column"] == "day":
                assert "2021-01-01" <= one["flips_at"] <= "2021-12-31"
            if one["column"] in ("income", "noise"):
                column = frame[one["column"]]
                assert column.min() <= one["flips_at"] <= column.max()
    assert {"day", "risk"} <= changed_columns
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert text.startswith("Row 0:") and "none within the range" in text


def test_explain_row_without_a_stored_range_says_why_numbers_are_not_searched():
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 5.0, 6.0, 7.0], "c": list("ababab")})
    model = dd.Encoded(dd.LDA()).fit(frame, list("pppqqq"))
    explanation = explain_rows(model, frame, model.encoding_, most=1)
    by_name = {one["column"]: one for one in explanation.to_dict()["rows"][0]["columns"]}
    assert by_name["x"]["flips_at"] is None and not by_name["x"]["searched"]
    assert "stores no range" in str(explanation) and "none within" not in str(explanation)


def test_explain_row_with_costs_explains_the_decision(fitted, capsys):
    folder, frame = fitted
    costs = {one: {"class_2": 1e9} for one in ("class_0", "class_1")}  # never miss a class_2
    arguments = ["explain-row", str(folder / "lda.model"), str(folder / "rest.csv"), "--json"]
    capsys.readouterr()
    assert main([*arguments, "--cost", json.dumps(costs)]) == 0
    with_costs = [row["decision"] for row in json.loads(capsys.readouterr().out)["rows"]]
    model = dd.Decision.of_fitted(dd.load(folder / "lda.model"), cost=costs)
    assert with_costs == model.decide(frame[120:130]).tolist()
    assert with_costs != dd.load(folder / "lda.model").predict(frame[120:130]).tolist()


def test_contributions_of_a_linear_model_add_up_to_the_log_odds(fitted, capsys):
    folder, frame = fitted
    main(
        [
            "explain-row",
            str(folder / "lda.model"),
            str(folder / "rest.csv"),
            "--rows",
            "1",
            "--json",
        ]
    )
    (row,) = json.loads(capsys.readouterr().out.partition("{")[2].join(["{", ""]))["rows"]
    model = dd.load(folder / "lda.model")
    one = frame[120:121]
    logs, classes = model.predict_log_proba(one)[0], model.classes_.tolist()
    k, other = classes.index(row["decision"]), classes.index(row["against"])
    origin = model.estimator_.rule_.anchor.origin
    origin_row = pd.DataFrame(origin[None], columns=model.estimator_.feature_names_in_)
    typical = model.estimator_.predict_log_proba(origin_row)[0]
    total = (logs[k] - logs[other]) - (typical[k] - typical[other])
    assert sum(c["contribution"] for c in row["columns"]) == pytest.approx(total)


@pytest.mark.parametrize(("file", "share"), [("train", 1.0), ("mixed", 20 / 78), ("rest", 0.0)])
def test_assess_tells_rows_of_the_fit(fitted, capsys, file, share):
    folder, _ = fitted
    capsys.readouterr()
    assert main(["assess", str(folder / "lda.model"), str(folder / f"{file}.csv"), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["training_share"] == pytest.approx(share)
    assert ("used to fit the model" in err) == (share > 0)


def test_json_of_report_is_the_object_of_facts(fitted, capsys):
    folder, _ = fitted
    facts = folder / "facts.json"
    arguments = ["report", str(folder / "train.csv"), "--target", "kind", "--models", "lda,qda"]
    arguments += ["--out", str(folder / "page.html"), "--facts", str(facts), "--no-yardstick"]
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    printed, written = json.loads(capsys.readouterr().out), json.loads(facts.read_text())
    assert {name: printed[name] for name in written} == written
    assert "yardstick" not in written["comparison"] and "headline" in written["comparison"]


def test_workbook_is_read_as_the_table_that_was_written(tmp_path):
    pytest.importorskip("python_calamine")
    pytest.importorskip("openpyxl")
    bunch = load_wine(as_frame=True)
    frame = bunch.data.assign(kind=bunch.target_names[bunch.target])
    frame["day"] = [datetime.datetime(2024, 1, 1) + datetime.timedelta(i) for i in range(178)]
    frame.loc[3, "alcohol"] = np.nan
    path = tmp_path / "wine.xlsx"
    frame.to_excel(path, index=False)
    table = read_workbook(str(path)).to_pandas()
    pd.testing.assert_frame_equal(table, frame, check_dtype=False)
    from_excel = dd.study(path, target="kind", missing="mean").compare(["lda"])
    from_frame = dd.study(frame, target="kind", missing="mean").compare(["lda"])
    assert from_excel["lda"].facts["log_loss"] == from_frame["lda"].facts["log_loss"]


def test_an_archive_of_an_unknown_version_is_not_a_workbook(tmp_path):
    import zipfile

    from discriminant.table.files.excel import is_workbook

    path = tmp_path / "sheet.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook/>")
    content = bytearray(path.read_bytes())
    assert is_workbook(str(path), bytes(content[:8]))
    content[content.index(b"PK\x01\x02") + 6] = 99  # version needed to extract
    path.write_bytes(content)
    assert not is_workbook(str(path), bytes(content[:8]))
