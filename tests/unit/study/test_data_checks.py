"""Data checks name each planted defect with its column, and nothing on the clean table."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_wine

import discriminant as dd
from discriminant.cli.run import run as main
from discriminant.study.data_checks.columns import sentinels_of
from discriminant.study.data_checks.result import DataChecks
from tests.shared.paths import SHARED


def cancer():
    bunch = load_breast_cancer(as_frame=True)
    return bunch.data.assign(y=bunch.target_names[bunch.target])


def wine():
    bunch = load_wine(as_frame=True)
    return bunch.data.assign(y=bunch.target_names[bunch.target])


def penguins():
    path = SHARED / "penguins" / "penguins.csv"
    if not path.is_file():
        pytest.skip("the real data sets are not here: no ../shared/data beside the project")
    return pd.read_csv(path).rename(columns={"species": "y"}).drop(columns="year")


TABLES = {"cancer": cancer, "wine": wine, "penguins": penguins}
NUMBER = {"cancer": "mean texture", "wine": "alcohol", "penguins": "bill_length_mm"}


def check(frame, **reading):
    return dd.study(frame, target="y", missing="mean", **reading).check()


def named(checks):
    """Return (kind, column) of all findings of severity 'stop' or 'warning', and the notes."""
    return {
        (found["kind"], column): found["severity"]
        for found in checks.findings
        for column in (found["columns"] or [""])
    }


# --- ten planted defects --------------------------------------------------------------------------


def noise(frame, column, rng):
    numbers = frame.select_dtypes("number")
    return pd.DataFrame(
        rng.standard_normal(numbers.shape), columns=numbers.columns, index=frame.index
    ).assign(y=frame["y"])


def leak(frame, column, rng):
    return frame.assign(code=pd.factorize(frame["y"])[0] * 3.0 + rng.normal(0, 0.1, len(frame)))


def category_leak(frame, column, rng):
    ward = pd.Series(pd.factorize(frame["y"])[0]).map(lambda k: f"w{k}").to_numpy()
    return frame.assign(
        ward=np.where(rng.random(len(frame)) < 0.4, ward, np.char.add("x", ward.astype(str)))
    )


def sentinel(frame, column, rng):
    rows = rng.random(len(frame)) < 0.05
    return frame.assign(**{column: frame[column].where(~rows, -999.0)})


def groups(frame, column, rng):
    """Eight noisy copies of each of some rows, in random order."""
    chosen = frame.sample(60, random_state=1)
    copies = chosen.loc[chosen.index.repeat(8)].reset_index(drop=True)
    numbers = copies.select_dtypes("number").columns
    error = rng.standard_normal((len(copies), len(numbers)))
    noisy = copies[numbers] + 0.05 * frame[numbers].std().to_numpy() * error
    person = np.repeat(rng.permutation(1000)[:60], 8)
    grouped = copies.assign(**{name: noisy[name] for name in numbers}, person=person)
    return grouped.sample(frac=1, random_state=2).reset_index(drop=True)


def duplicates(frame, column, rng):
    copies = frame.sample(frac=0.2, random_state=3)
    return pd.concat([frame, copies]).sample(frac=1, random_state=4).reset_index(drop=True)


def doubled(frame, column, rng):
    return frame.assign(again=1.8 * frame[column] + 32)


def shuffled(frame, column, rng):
    return frame.assign(y=rng.permutation(frame["y"]))


def imbalance(frame, column, rng):
    classes = frame["y"].unique()
    many = frame[frame["y"] == classes[0]]
    few = frame[frame["y"] == classes[1]].head(max(len(many) // 100, 1))
    return pd.concat([many, few]).sample(frac=1, random_state=5).reset_index(drop=True)


def identifier(frame, column, rng):
    return frame.assign(record=rng.permutation(len(frame)) + 1000)


def drift(frame, column, rng):
    moved = frame.sample(frac=1, random_state=6).reset_index(drop=True)
    later = np.linspace(0, 2.5, len(frame)) * frame[column].std()
    return moved.assign(**{column: moved[column] + later})


TRAPS = {
    "noise": (noise, "no_signal", "", "note"),
    "leak": (leak, "leak", "code", "stop"),
    "category leak": (category_leak, "leak", "ward", "stop"),
    "sentinel": (sentinel, "sentinel", None, "warning"),
    "groups": (groups, "groups", "person", "warning"),
    "duplicates": (duplicates, "duplicates", "", "warning"),
    "doubled": (doubled, "duplicate_columns", "again", "warning"),
    "shuffled": (shuffled, "no_signal", "", "note"),
    "imbalance": (imbalance, "imbalance", "", "warning"),
    "identifier": (identifier, "identifier", "record", "warning"),
    "drift": (drift, "time_drift", None, "warning"),
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("trap", TRAPS)
def test_a_planted_defect_is_named_with_its_column_and_the_clean_table_has_none(trap, table):
    plant, kind, column, severity = TRAPS[trap]
    frame = TABLES[table]()
    if trap == "drift":
        frame = frame.sample(frac=1, random_state=6).reset_index(drop=True)
    column = NUMBER[table] if column is None else column
    planted = named(check(plant(frame, NUMBER[table], np.random.default_rng(0))))
    assert planted.get((kind, column)) == severity, planted
    clean = named(check(frame))
    assert kind not in {name for name, _ in clean}, clean
    if severity != "stop":  # a defect of one kind is not reported as another that stops
        assert "stop" not in planted.values(), planted


@pytest.mark.parametrize("table", TABLES)
def test_no_clean_table_has_a_finding_that_stops(table):
    assert "stop" not in named(check(TABLES[table]())).values()


# --- other defects --------------------------------------------------------------------------------


def test_a_column_that_indicates_one_of_several_classes_is_a_warning_and_a_strong_feature_a_note():
    frame = wine()
    frame["treated"] = (frame["y"] == "class_1").astype(int)
    found = named(check(frame))
    assert found["leak", "treated"] == "warning"
    iris = pd.DataFrame({"y": ["a"] * 40 + ["b"] * 40 + ["c"] * 40})
    rng = np.random.default_rng(1)
    iris["petal"] = np.r_[rng.normal(0, 1, 40), rng.normal(8, 1, 40), rng.normal(9, 1, 40)]
    assert named(check(iris))["separates", "petal"] == "note"


def test_a_number_that_is_constant_in_one_class_is_a_leak():
    rng = np.random.default_rng(0)
    y = np.repeat(["declined", "granted"], [100, 300])
    spent = np.where(y == "granted", rng.gamma(2.0, 50.0, 400), 0.0)
    spent[100:110] = 0.0  # some cards are not used
    income = rng.normal(3, 1, 400) + (y == "granted")
    frame = pd.DataFrame({"spent": spent, "income": income, "y": y})
    assert named(check(frame)) == {("leak", "spent"): "warning"}
    (found,) = check(frame).findings
    assert "is 0 in all 100 rows of class declined" in found["text"].replace("'", "")
    assert "10 rows (3.3%) of class granted" in found["text"].replace("'", "")
    frame.loc[rng.choice(np.arange(100, 400), 60), "spent"] = 0.0  # then it is a usual value
    assert ("leak", "spent") not in named(check(frame))


def test_many_duplicate_columns_are_one_finding():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(60, 4)), columns=["a1", "b1", "c1", "d"])
    copies = rows[["a1", "b1", "c1"]].set_axis(["a2", "b2", "c2"], axis=1)
    frame = rows.join(2.0 * copies).assign(y=np.arange(60) % 2)
    (found,) = [each for each in check(frame).findings if each["kind"] == "duplicate_columns"]
    assert found["title"] == "3 duplicate columns"
    assert found["columns"] == ["a1", "a2", "b1", "b2", "c1", "c2"]
    assert "'a2' duplicates 'a1'; 'b2' duplicates 'b1'; 'c2' duplicates 'c1'" in found["text"]
    two = check(frame.drop(columns="c2")).findings
    titles = [each["title"] for each in two if each["kind"] == "duplicate_columns"]
    assert titles == ["a2 duplicates a1", "b2 duplicates b1"]


def test_ties_of_a_measurement_in_a_small_table_are_not_groups():
    globulin = [38, 31, 37, 37, 35, 27, 33, 37, 30, 36, 42, 29, 33, 34, 38, 35]
    globulin += [31, 36, 46, 30, 32, 37, 32, 38, 37, 37, 35, 27, 33, 36, 42, 30]
    other = [g / 15 + 0.05 * (i % 3) for i, g in enumerate(globulin)]
    frame = pd.DataFrame({"globulin": globulin, "other": other, "y": [0, 1] * 16})
    assert ("groups", "globulin") not in named(check(frame))


def test_a_small_table_may_be_separated_by_chance():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.standard_normal((8, 400))).add_prefix("g").assign(y=list("aaaabbbb"))
    assert (
        "stop" not in named(check(frame, folds=2)).values()
    )  # some column of noise has an AUC of 1


@pytest.mark.parametrize(
    "values, expected",
    [
        ([-999, -999, *range(20, 80)], [-999]),
        ([9999, *range(20, 80)], [9999]),
        ([-99, 999, *range(20, 80)], [-99, 999]),
        ([0, 0, *range(44, 200)], [0]),
        ([*[99] * 30, *range(18, 91)], [99]),
        ([*range(0, 100)], []),
        ([*[0] * 50, *range(1, 60)], []),  # counts
        ([*[-1, 0, 1] * 20], []),
        ([7300, *[2.0**k for k in range(12)] * 3], []),  # a heavy tail
        ([*np.round(np.random.default_rng(0).normal(0, 1, 500), 1)], []),
    ],
)
def test_sentinels_are_extreme_codes_and_zeros_of_positive_measurements(values, expected):
    assert sorted(sentinels_of(np.array(values, dtype=float))) == expected


def test_matched_sets_fold_time_and_group_columns_are_named():
    rng = np.random.default_rng(3)
    n = 300
    frame = pd.DataFrame(rng.standard_normal((n, 3)), columns=["a", "b", "c"])
    frame["y"] = np.tile(["case", "control", "control"], n // 3)
    frame["stratum"] = np.repeat(np.arange(n // 3), 3)
    frame["cv_fold"] = rng.permutation(np.arange(n) % 5)
    frame["part"] = rng.choice(["train", "test"], n)
    frame["year"] = rng.integers(1990, 2020, n)
    found = named(check(frame))
    assert found["matched_sets", "stratum"] == "warning"
    assert found["fold_column", "cv_fold"] == found["fold_column", "part"] == "warning"
    assert found["time", "year"] == "note"


def test_customers_with_habits_are_groups_though_none_always_chooses_the_same():
    rng = np.random.default_rng(0)
    customer = np.repeat(np.arange(100), rng.integers(5, 12, 100))
    habit = rng.dirichlet([0.5, 0.5, 0.5], 100)[customer]
    choice = (rng.random(len(customer))[:, None] > habit.cumsum(axis=1)).sum(axis=1)
    prices = rng.normal(size=(len(customer), 3))
    frame = pd.DataFrame(prices, columns=list("abc")).assign(id=customer, y=choice)
    found = check(frame)
    assert named(found)["groups", "id"] == "warning"
    (text,) = (each["text"] for each in found.findings if each["kind"] == "groups")
    assert "of the variance of the class is between its values" in text
    mixed = frame.assign(y=rng.permutation(choice))
    assert ("groups", "id") not in named(check(mixed))
    smooth = (rng.random(len(customer)) < customer / 100).astype(int)
    assert ("groups", "id") not in named(check(frame.assign(y=smooth)))


def test_a_measured_integer_that_predicts_the_class_is_not_a_group():
    rng = np.random.default_rng(4)
    age = rng.integers(18, 90, 900)
    weight = 50 + 0.4 * age + rng.normal(0, 5, 900)
    frame = pd.DataFrame({"age": age, "weight": weight})
    frame["y"] = np.where(age + rng.normal(0, 4, 900) > 60, "yes", "no")
    assert not {kind for kind, _ in named(check(frame))} & {"groups", "identifier", "leak"}


def test_duplicates_count_copies_in_other_folds_and_with_other_labels():
    frame = cancer()
    frame = pd.concat([frame, frame.head(50), frame.tail(10).assign(y="other")], ignore_index=True)
    study = dd.study(frame, target="y", folds=5)
    found = next(each for each in study.check().findings if each["kind"] == "duplicates")
    assert found["rows"] == 120
    fold = study._fold
    across = sum(
        2 * (fold[i] != fold[j])
        for i, j in [
            *zip(range(50), range(569, 619), strict=True),
            *zip(range(559, 569), range(619, 629), strict=True),
        ]
    )
    assert f"{across} of these rows have a copy in another fold" in found["text"]
    assert "20 rows have a copy with another class" in found["text"]


def test_missing_cells_that_depend_on_the_class_are_named():
    frame = cancer()
    rng = np.random.default_rng(5)
    sick = (frame["y"] == "malignant").to_numpy()
    frame["mean area"] = frame["mean area"].where(
        rng.random(len(frame)) > np.where(sick, 0.4, 0.05)
    )
    frame["mean texture"] = frame["mean texture"].where(rng.random(len(frame)) > 0.2)
    found = named(check(frame))
    assert found["missing", "mean area"] == "warning"
    assert ("missing", "mean texture") not in found
    frame["symptom"] = np.where(sick, rng.standard_normal(len(frame)), np.nan)
    assert named(check(frame))["leak", "symptom"] == "stop"


def test_check_counts_missing_cells_by_column_and_names_the_options(tmp_path, capsys):
    frame = wine()
    frame.loc[[3, 5, 8], "alcohol"] = np.nan
    frame.loc[[5, 90], "hue"] = np.nan
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    assert main(["check", str(path), "--target", "y", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    (found,) = [one for one in facts["findings"] if one["kind"] == "incomplete"]
    assert found["columns"] == ["alcohol", "hue"] and found["rows"] == 4
    assert found["text"].startswith(
        "4 of 178 rows have missing cells: columns 'alcohol' (3), 'hue' (2)."
    )
    assert "--missing mean" in found["text"] and "--missing drop" in found["text"]
    assert "incomplete" not in {one["kind"] for one in check(wine()).findings}


def test_spellings_of_labels_and_levels_are_named_with_the_number_of_rows():
    frame = cancer()
    frame.loc[frame.index[:30], "y"] = "Malignant "
    frame["town"] = np.resize(["Bonn", "bonn", "Köln", "Trier"], len(frame))
    checks = check(frame)
    found = named(checks)
    assert found["labels", ""] == found["spelling", "town"] == "warning"
    text = next(each["text"] for each in checks.findings if each["kind"] == "labels")
    assert "30 rows with the rarer spelling" in text


def test_rows_without_a_label_are_dropped_with_a_warning_and_a_finding():
    frame = cancer()
    frame["y"] = frame["y"].astype(object)
    frame.loc[frame.index[:40], "y"] = None
    study = dd.study(frame, target="y")
    assert len(study.rows) == len(frame) - 40
    assert "40 of 569 rows have no label" in str(study.warnings[0])
    found = study.check().findings
    assert [each["rows"] for each in found if each["kind"] == "unlabelled"] == [40]
    with pytest.raises(dd.errors.LabelError, match="label"):
        dd.LDA().fit(frame.drop(columns="y"), frame["y"])


# --- the result -----------------------------------------------------------------------------------


def test_the_command_prints_the_findings_by_severity_and_as_json(tmp_path, capsys):
    path = tmp_path / "rows.csv"
    frame = leak(cancer(), "mean texture", np.random.default_rng(0))
    frame.loc[3, "mean area"] = np.nan  # missing cells are no error
    frame.to_csv(path, index=False)
    assert main(["check", str(path), "--target", "y"]) == 0
    printed = capsys.readouterr().out
    assert printed.index("STOP") < printed.index("Leak: code")
    assert main(["check", str(path), "--target", "y", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["findings"][0]["columns"] == ["code"]
    assert facts["rows"] == 569


def test_findings_are_in_the_facts_of_a_report_and_print_as_text_frame_and_html():
    study = dd.study(leak(wine(), "alcohol", np.random.default_rng(0)), target="y")
    study.compare(["nearest_mean"])
    checks = study.check()
    assert isinstance(checks, DataChecks)
    assert study.facts()["checks"] == checks.to_dict()["findings"]
    assert checks.frame()["kind"].tolist() == [found["kind"] for found in checks.findings]
    assert "Leak: code" in checks.text and "Leak: code" in checks._repr_html_()


def test_a_partitioned_table_is_checked_on_a_sample(tmp_path):
    path = tmp_path / "rows.csv"
    leak(cancer(), "mean texture", np.random.default_rng(0)).to_csv(path, index=False)
    checks = dd.study(path, target="y", engine="files").check()
    assert named(checks)["leak", "code"] == "stop"


def test_category_with_many_rare_levels_is_named_with_the_share_of_new_levels():
    generator = np.random.default_rng(0)
    level = np.r_[np.arange(40), np.full(560, 40)]  # 40 levels with one row each
    frame = pd.DataFrame(
        {
            "x": generator.normal(size=600),
            "time": np.char.add("t", generator.permutation(level).astype(str)),
            "kind": generator.choice(["a", "b", "c"], 600),
            "y": generator.choice(["p", "q"], 600),
        }
    )
    findings = dd.study(frame, target="y").check().findings
    rare = [one for one in findings if one["kind"] == "rare_levels"]
    assert [one["columns"] for one in rare] == [["time"]]
    assert "41 levels, 40 of them in fewer than 5 rows. About 6.7% of new rows" in rare[0]["text"]
    assert "are refused: leave" in rare[0]["text"]
    assert rare[0]["text"].endswith("or use --unseen ignore.")
    findings = dd.study(frame, target="y", unseen="ignore").check().findings
    text = next(one["text"] for one in findings if one["kind"] == "rare_levels")
    assert "which it ignores: leave" in text
    assert "refused" not in text
    assert "--unseen" not in text
