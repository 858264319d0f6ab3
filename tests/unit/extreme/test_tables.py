"""Label trees of ordinary tables: fitted, asked and measured from the command line, as others."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import discriminant as dd
from discriminant.cli.run import run
from discriminant.errors import LabelTreeError, OptionError, SparseFileError, WeightError

pytestmark = pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")


@pytest.fixture(scope="module")
def goods():
    """600 rows of 12 kinds, told by a size in grams, a share, and a colour."""
    rng = np.random.default_rng(5)
    kind = rng.integers(12, size=600)
    size = 40_000.0 + 9_000 * (kind % 4) + rng.normal(0, 900, 600)
    share = 0.001 * (kind // 4) + rng.normal(0, 0.0002, 600)
    colour = np.where(kind % 2, "red", "blue")
    return pd.DataFrame(
        {"size": size, "share": share, "colour": colour, "kind": [f"k{c}" for c in kind]}
    )


@pytest.fixture(params=["csv", "parquet"])
def table(goods, tmp_path, request):
    path = tmp_path / f"goods.{request.param}"
    goods.to_csv(path, index=False) if request.param == "csv" else goods.to_parquet(path)
    return path


def told(words, capsys):
    assert run([*map(str, words), "--json", "--quiet"]) == 0
    return json.loads(capsys.readouterr().out)


def answers(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


FIT = ("--target", "kind", "--model", "label-tree", "--out")


@pytest.mark.parametrize("tree", ["balanced", "moments"])
def test_a_table_is_fitted_asked_and_measured(goods, table, tmp_path, capsys, tree):
    place, said = tmp_path / "goods.model", tmp_path / "said.csv"
    fitted = told(["fit", table, *FIT, place, "--with", f"tree={tree}"], capsys)
    assert (fitted["rows"], fitted["labels"], fitted["features"]) == (600, 12, 3)
    found = told(["predict", place, table, "--out", said, "--top", "3"], capsys)
    assert found["columns"] == ["predicted", *(f"{a}_{j}" for j in (1, 2, 3) for a in LABELS)]
    rows = answers(said)
    assert [row["label_1"] for row in rows] == [row["predicted"] for row in rows]
    right = np.mean([row["predicted"] == row["kind"] for row in rows])
    counted = np.array(told(["assess", place, table], capsys)["confusion"])
    assert np.trace(counted) / counted.sum() == pytest.approx(right)
    features = StandardScaler().fit_transform(pd.get_dummies(goods[["size", "share", "colour"]]))
    theirs = LinearSVC().fit(features, goods["kind"]).score(features, goods["kind"])
    assert right >= theirs  # one class against all others cuts badly between three in a row


LABELS = ("label", "score")


def test_the_command_line_and_an_encoded_tree_say_the_same(goods, tmp_path, capsys):
    table, place = tmp_path / "goods.csv", tmp_path / "goods.model"
    goods.to_csv(table, index=False)
    told(["fit", table, *FIT, place], capsys)
    ours = dd.Encoded(dd.LabelTree(standardize=True)).fit(goods.drop(columns="kind"), goods["kind"])
    codes, scores = dd.load(place).predict_topk(goods, k=4)
    wanted = ours.predict_topk(goods, k=4)
    assert np.array_equal(codes, wanted[0]) and np.array_equal(scores, wanted[1])


def test_labels_and_scores_are_in_parquet_too(goods, tmp_path):
    model = dd.Encoded(dd.LabelTree(standardize=True)).fit(
        goods.drop(columns="kind"), goods["kind"]
    )
    goods.to_csv(tmp_path / "goods.csv", index=False)
    dd.predict_file(model, tmp_path / "goods.csv", tmp_path / "said.parquet", k=2)
    found = pd.read_parquet(tmp_path / "said.parquet")
    codes, scores = model.predict_topk(goods, k=2)
    assert found["label_2"].tolist() == model.classes_[codes[:, 1]].tolist()
    assert found["score_2"].tolist() == scores[:, 1].tolist()


def test_a_tree_fitted_to_a_frame_answers_files_of_its_columns(goods, tmp_path):
    numbers = goods[["size", "share"]]
    numbers.to_csv(tmp_path / "goods.csv", index=False)
    model = dd.LabelTree(standardize=True).fit(numbers, goods["kind"])
    dd.predict_file(model, tmp_path / "goods.csv", tmp_path / "said.csv", k=1)
    said = [row["predicted"] for row in answers(tmp_path / "said.csv")]
    assert said == model.predict(numbers).tolist()


def test_more_classes_than_other_models_take_are_no_obstacle(tmp_path, capsys):
    rng = np.random.default_rng(0)
    centre = rng.normal(size=(1100, 8))
    rows = pd.DataFrame(np.repeat(centre, 3, axis=0) + rng.normal(0, 0.01, (3300, 8)))
    rows.columns = [f"x{j}" for j in range(8)]
    rows["kind"] = np.repeat([f"k{c}" for c in range(1100)], 3)
    rows.to_csv(tmp_path / "many.csv", index=False)
    fit = ["fit", tmp_path / "many.csv", *FIT, tmp_path / "m", "--with", "tree=moments"]
    assert told(fit, capsys)["labels"] == 1100
    assert run([*map(str, fit), "--max-classes", "1000"]) != 0
    assert "1100" in capsys.readouterr().err


# --- which of both a file is ----------------------------------------------------------------------


def test_a_table_without_a_target_says_what_to_name(table, tmp_path, capsys):
    assert run(["fit", str(table), "--model", "label-tree", "--out", str(tmp_path / "m")]) != 0
    assert "not a file of sparse rows" in (err := capsys.readouterr().err) and "--target" in err


@pytest.mark.parametrize("text", ["2 3 2\n0 0:1 2:0.5\n1 1:1\n", "0 1:1 3:0.5\n1 2:1\n"])
def test_sparse_rows_with_a_target_say_to_leave_it_out(tmp_path, capsys, text):
    path = tmp_path / "rows.txt"
    path.write_text(text)
    assert run(["fit", str(path), *FIT, str(tmp_path / "m")]) != 0
    err = capsys.readouterr().err
    assert "holds sparse rows" in err and "no --target" in " ".join(err.split())


def test_a_tree_of_sparse_rows_says_of_a_table_what_it_takes(goods, tmp_path):
    goods.to_csv(tmp_path / "goods.csv", index=False)
    model = dd.LabelTree().fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(SparseFileError, match=r"goods\.csv is not a file of sparse rows"):
        dd.predict_file(model, tmp_path / "goods.csv", tmp_path / "said.csv")


def test_weights_are_refused_by_name(goods, tmp_path, capsys):
    weighed = goods.assign(w=1.0)
    weighed.to_csv(tmp_path / "w.csv", index=False)
    fit = ["fit", str(tmp_path / "w.csv"), *FIT, str(tmp_path / "m"), "--weight", "w"]
    assert run(fit) != 0
    assert "LabelTree does not support sample_weight" in capsys.readouterr().err


def test_a_study_fits_a_classifier_of_ones_own(goods):
    found = dd.study(goods, target="kind", folds=3).fitted(dd.LabelTree(tree="moments"))
    alone = dd.Encoded(dd.LabelTree(tree="moments")).fit(goods.drop(columns="kind"), goods["kind"])
    assert found.predict(goods).tolist() == alone.predict(goods).tolist()


def test_a_classifier_that_takes_no_weights_is_told_of_them(goods):
    found = dd.study(goods.assign(w=1.0), target="kind", weight="w", folds=3)
    with pytest.raises(WeightError, match="LabelTree does not support sample_weight"):
        found.fitted(dd.LabelTree())


def test_rows_in_parts_are_fitted_as_rows_at_hand(goods, tmp_path):
    goods.to_csv(tmp_path / "goods.csv", index=False)
    rows = dd.rows(tmp_path / "goods.csv", target="kind", exclude=["colour"])
    model = dd.LabelTree(standardize=True).fit(rows)
    alone = dd.LabelTree(standardize=True).fit(goods[["size", "share"]], goods["kind"])
    numbers = goods[["size", "share"]]
    assert model.predict(numbers).tolist() == alone.predict(numbers).tolist()


# --- columns of different units -------------------------------------------------------------------


def test_standardized_columns_are_those_of_scikit_learn():
    X, y = load_digits(return_X_y=True)
    X = X * 10.0 ** np.arange(-32, 32) + 3.0
    scaled = StandardScaler().fit_transform(X)
    ours, theirs = dd.LabelTree(standardize=True).fit(X, y), dd.LabelTree().fit(scaled, y)
    same = (ours.predict(X) == theirs.predict(scaled)).mean()
    np.testing.assert_allclose(ours.scale_[0], X.mean(axis=0), rtol=1e-12)
    assert same > 0.999  # the last bit of a float32 may differ


def test_units_do_not_matter_when_columns_are_standardized(goods):
    X = goods[["size", "share"]].to_numpy()
    model = dd.LabelTree(standardize=True).fit(X, goods["kind"])
    other = dd.LabelTree(standardize=True).fit(X * [2.0**-10, 2.0**12], goods["kind"])
    assert np.array_equal(model.predict_topk(X)[1], other.predict_topk(X * [2.0**-10, 2.0**12])[1])


def test_sparse_columns_are_not_standardized():
    from scipy import sparse

    with pytest.raises(LabelTreeError, match="standardize=True needs dense rows"):
        dd.LabelTree(standardize=True).fit(sparse.csr_array(np.eye(4)), [0, 1, 0, 1])


def test_standardize_is_true_or_false():
    with pytest.raises(OptionError, match="standardize"):
        dd.LabelTree(standardize="yes").fit(np.eye(4), [0, 1, 0, 1])


def test_a_standardized_tree_is_saved_with_its_scale(goods, tmp_path):
    X = goods[["size", "share"]].to_numpy()
    model = dd.LabelTree(standardize=True).fit(X, goods["kind"])
    model.save(tmp_path / "m")
    assert np.array_equal(dd.load(tmp_path / "m").predict_topk(X)[1], model.predict_topk(X)[1])


@pytest.mark.parametrize("words", [[], ["--model", "labeltree"], ["--model", "lda"]])
def test_sparse_rows_without_a_target_are_named_before_it_is_missed(tmp_path, capsys, words):
    path = tmp_path / "rows.txt"
    path.write_text("2 3 2\n0 0:1 2:0.5\n1 1:1\n")
    assert run(["fit", str(path), *words, "--out", str(tmp_path / "m")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "holds sparse rows" in said and "--model label-tree" in said


@pytest.mark.parametrize("words", [["--reject", "0.3"], ["--folds", "5"], ["--weight", "w"]])
def test_options_of_tables_are_refused_for_sparse_rows(tmp_path, capsys, words):
    path = tmp_path / "rows.txt"
    path.write_text("2 3 2\n0 0:1 2:0.5\n1 1:1\n")
    asked = ["fit", str(path), "--model", "label-tree", *words, "--out", str(tmp_path / "m")]
    assert run(asked) == 2
    assert f"{words[0]} applies only to tables" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    "words",
    [
        ("report", "--model", "label-tree", "--out", "page.html"),
        ("explain", "--model", "label-tree"),
        ("compare", "--models", "lda,label-tree"),
    ],
    ids=lambda words: words[0],
)
def test_what_compares_models_says_how_a_label_tree_of_a_table_is_made(
    goods, tmp_path, monkeypatch, capsys, words
):
    monkeypatch.chdir(tmp_path)
    goods.to_csv("goods.csv", index=False)
    assert run([words[0], "goods.csv", "--target", "kind", *words[1:]]) == 2
    said = capsys.readouterr().err
    assert "'discriminant fit', --target and --model label-tree" in said
    assert "[1/" not in said  # told before the work


def test_a_report_of_a_model_that_is_none_says_so_before_the_work(goods, tmp_path, capsys):
    goods.to_csv(tmp_path / "goods.csv", index=False)
    asked = ["report", str(tmp_path / "goods.csv"), "--target", "kind", "--model", "oak"]
    assert run([*asked, "--out", str(tmp_path / "page.html")]) == 2
    said = capsys.readouterr().err
    assert ("no model 'oak'" in said, "[1/" in said) == (True, False)
