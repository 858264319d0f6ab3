"""Label trees from file to file, from Python and from the command line."""

import csv
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import discriminant as dd
from discriminant.cli.run import run
from discriminant.errors import SparseFileError

pytestmark = pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = sparse.random_array((120, 25), density=0.3, format="csr", rng=rng).astype(np.float32)
    Y = sparse.csr_array(sparse.random_array((120, 12), density=0.15, format="csr", rng=rng) > 0)
    return X, Y.astype(np.int8)


@pytest.fixture
def place(rows, tmp_path):
    dd.write_xmc(tmp_path / "rows.txt", *rows)
    return tmp_path


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_file_is_answered_as_its_rows_are(rows, place):
    model = dd.LabelTree(trees=1).fit(*rows)
    done = dd.predict_file(model, place / "rows.txt", place / "said.csv", k=3)
    codes, scores = model.predict_topk(rows[0], k=3)
    said = read(place / "said.csv")
    assert [[int(row[f"label_{j}"]) for j in (1, 2, 3)] for row in said] == codes.tolist()
    assert [[float(row[f"score_{j}"]) for j in (1, 2, 3)] for row in said] == scores.tolist()
    assert done.rows == 120 and sum(done.counts.values()) == 120


def test_a_parquet_file_says_the_same_as_a_csv(rows, place):
    model = dd.LabelTree(trees=1).fit(*rows)
    dd.predict_file(model, place / "rows.txt", place / "said.parquet", k=2)
    dd.predict_file(model, place / "rows.txt", place / "said.csv", k=2)
    found = pq.read_table(place / "said.parquet").to_pylist()
    assert [row["label_2"] for row in found] == [row["label_2"] for row in read(place / "said.csv")]


def test_rows_of_svmlight_are_answered_alike(rows, place):
    model = dd.LabelTree(trees=1).fit(*rows)
    dd.write_svmlight(place / "rows.svm", *rows)
    dd.predict_file(model, place / "rows.svm", place / "a.csv")
    dd.predict_file(model, place / "rows.txt", place / "b.csv")
    assert read(place / "a.csv") == read(place / "b.csv")


def test_beyond_the_last_label_cells_are_empty(rows, place):
    dd.predict_file(dd.LabelTree(trees=1).fit(*rows), place / "rows.txt", place / "a.csv", k=14)
    assert {row["label_14"] + row["score_14"] for row in read(place / "a.csv")} == {""}


def test_a_file_of_other_features_is_refused_and_nothing_written(rows, place):
    model = dd.LabelTree(trees=1).fit(rows[0][:, :20], rows[1])
    with pytest.raises(
        SparseFileError, match=r"rows.txt, line 1: the header states 25 .* fitted to 20"
    ):
        dd.predict_file(model, place / "rows.txt", place / "said.csv")
    assert not (place / "said.csv").exists()


def test_the_command_line_fits_and_predicts_as_python_does(rows, place, capsys):
    held = {name: str(place / name) for name in ("rows.txt", "tree.model", "said.csv", "ours.csv")}
    fit = ["fit", held["rows.txt"], "--model", "label-tree", "--out", held["tree.model"]]
    assert run([*fit, "--with", "trees=2", "--with", "tree=wide", "--json", "--quiet"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"], told["labels"], told["trees"]) == (120, 12, 2)
    predict = ["predict", held["tree.model"], held["rows.txt"], "--out", held["said.csv"]]
    assert run([*predict, "--top", "2", "--quiet"]) == 0
    model = dd.LabelTree(trees=2, tree="wide", unit_rows=True).fit(*dd_rows(held["rows.txt"]))
    dd.predict_file(model, held["rows.txt"], held["ours.csv"], k=2)
    assert read(held["said.csv"]) == read(held["ours.csv"])


def dd_rows(path):
    found = dd.read_xmc(path)
    return found.features, found.labels


def test_an_option_that_the_model_does_not_have_is_told(place, capsys):
    fit = ["fit", str(place / "rows.txt"), "--model", "label-tree", "--out", str(place / "m")]
    assert run([*fit, "--with", "colour=red"]) != 0
    assert "has no option 'colour'" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "\n# nothing\n", "0 6 4\n"], ids=["empty", "blank", "header"])
@pytest.mark.parametrize("command", ["fit", "predict", "assess"])
def test_a_file_without_rows_is_refused_by_name_and_nothing_written(
    rows, tmp_path, capsys, command, text
):
    X, Y = rows
    dd.LabelTree(trees=1).fit(X, Y).save(tmp_path / "tree.model")
    none, out = tmp_path / "none.txt", tmp_path / "out"
    none.write_text(text.replace("6 4", f"{X.shape[1]} {Y.shape[1]}"))
    given = ["--model", "label-tree"] if command == "fit" else [tmp_path / "tree.model"]
    to = [] if command == "assess" else ["--out", out]
    code = run([*map(str, [command, *given, none, *to])])
    said = capsys.readouterr().err
    assert (code, out.exists(), f"{none}: no rows (0 sample(s))" in said) == (2, False, True)


def test_answers_can_go_to_stdout(rows, tmp_path, capsys):
    X, Y = rows
    dd.LabelTree(trees=1).fit(X, Y).save(tmp_path / "tree.model")
    dd.write_xmc(tmp_path / "rows.txt", X, Y)
    predict = ["predict", str(tmp_path / "tree.model"), str(tmp_path / "rows.txt"), "--top", "2"]
    assert run([*predict, "--out", str(tmp_path / "said.csv"), "--quiet"]) == 0
    capsys.readouterr()
    assert run([*predict, "--out", "-", "--quiet"]) == 0
    assert capsys.readouterr().out == (tmp_path / "said.csv").read_text()


@pytest.mark.parametrize(
    "words",
    [
        ["predict", "m", "rows.txt", "--out", "said.csv", "--reject", "0.3"],
        ["predict", "m", "rows.txt", "--out", "said.csv", "--cost", '{"1": {"2": 3}}'],
        ["predict", "m", "rows.txt", "--out", "said.csv", "--prefix", "z_"],
        ["predict", "m", "rows.txt", "--out", "said.csv", "--no-probabilities"],
        ["assess", "m", "rows.txt", "--reject", "0.3"],
        ["assess", "m", "rows.txt", "--target", "kind"],
    ],
    ids=lambda words: f"{words[0]} {words[-2] if words[-1][0] != '-' else words[-1]}",
)
def test_options_of_tables_are_refused_where_rows_are_sparse(
    rows, place, words, monkeypatch, capsys
):
    monkeypatch.chdir(place)
    dd.LabelTree(trees=1).fit(*rows).save("m")
    assert run(words) == 2
    assert "applies only to tables (--target)" in capsys.readouterr().err


def test_a_test_file_of_other_features_is_refused_before_the_work(place, capsys, monkeypatch):
    dd.write_xmc(place / "other.txt", sparse.csr_matrix(np.eye(3)), sparse.csr_matrix(np.eye(3)))
    monkeypatch.setattr("discriminant.cli.label_tree.train", None)
    told = ["report", place / "rows.txt", "--model", "label-tree", "--test", place / "other.txt"]
    assert run([*map(str, told), "--out", str(place / "page.html")]) == 2
    assert "other.txt, line 1: the header states 3 features" in capsys.readouterr().err


def test_a_model_is_kept_before_it_is_measured(place, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("discriminant.cli.label_tree.assess_file", stopped)
    told = ["report", place / "rows.txt", "--model", "label-tree", "--test", place / "rows.txt"]
    assert run([*map(str, told), "--out", str(place / "page.html"), "--quiet"]) == 130
    assert len(dd.load(place / "page.model").classes_) == 12


def test_an_option_that_cannot_be_is_told_before_the_file_is_read(place, capsys, monkeypatch):
    monkeypatch.setattr("discriminant.cli.label_tree.read_labelled_rows", None)
    told = ["fit", str(place / "rows.txt"), "--model", "label-tree", "--out", str(place / "m")]
    assert run([*told, "--with", "arity=1"]) == 2
    assert "arity" in capsys.readouterr().err
