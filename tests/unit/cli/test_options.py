"""Every option of every command has an effect, or is refused before rows are read."""

import io
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout

import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant.cli import run as command_line
from discriminant.cli.commands import cli
from discriminant.cli.options import INAPPLICABLE
from tests.shared import databases


def run(*args, cwd, code=0):
    """Everything that a command prints."""
    printed = io.StringIO()
    with chdir(cwd), redirect_stdout(printed), redirect_stderr(printed):
        found = command_line.run([str(arg) for arg in args])
    assert found == code, printed.getvalue()
    return printed.getvalue()


def grouped(seed=0, patients=20, rows=200):
    """Rows of patients, whose features say who they are: random folds flatter the model."""
    rng = np.random.default_rng(seed)
    patient = np.arange(rows) % patients
    own = rng.normal(size=(patients, 3))
    y = np.array(["ill", "well"])[rng.integers(0, 2, patients)][patient]
    made = pd.DataFrame(own[patient] + 0.1 * rng.normal(size=(rows, 3)), columns=list("abc"))
    return made.assign(patient=[f"p{number}" for number in patient], y=y)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a table, sparse rows, moments and models."""
    folder = tmp_path_factory.mktemp("options")
    frame = grouped()
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_parquet(folder / "rows.parquet")
    features = frame[["a", "b", "c"]]
    dd.save(dd.Encoded(dd.LDA()).fit(features, frame["y"]), folder / "table.model")
    dd.save(dd.LabelTree().fit(features, frame["y"]), folder / "plain.model")
    lines = "\n".join(f"{i % 3} {i % 5 + 1}:1.5 {i % 7 + 6}:0.5" for i in range(40))
    (folder / "sparse.txt").write_text(lines + "\n")
    run("fit", "sparse.txt", "--model", "label-tree", "--out", "sparse.model", cwd=folder)
    run("moments", "rows.csv", "--target", "y", "--exclude", "patient", "--out", "m", cwd=folder)
    return folder


VALUES = {
    "test": "sparse.txt",
    "settings": "beam=2",
    "first": "1",
    "top": "2",
    "unknown": "count",
    "by": "error",
    "rule": "least",
    "save": "other.model",
    "table": "t",
    "query": "SELECT 1",
    "engine": "files",
    "pushdown": None,
    "weight": "a",
    "formula": "y ~ a",
    "missing": "mean",
    "unseen": "ignore",
    "ordered": "a=1,2",
    "category": "a",
    "exclude": "a",
    "column": "a",
    "reference": "first",
    "missing_text": "x",
    "delimiter": ";",
    "decimal": ",",
    "thousands": ".",
    "encoding": "utf-8",
    "max_classes": "5",
    "max_levels": "5",
    "max_bytes": "100000",
    "models": "lda",
    "folds": "3",
    "most": "200",
    "groups": "name",
    "time": "day",
    "repeats": "2",
    "no_yardstick": None,
    "select": "pool",
    "cost": '{"ill": {"well": 2}}',
    "reject": "0.2",
    "target": "y",
    "checkpoint": "sums",
    "seed": "3",
    "prefix": "p_",
    "no_probabilities": None,
    "raw_csv": None,
    "page": "page.html",
    "dialect": "sqlite",
    "keep": "a",
}
_TREE = ("--model", "label-tree")
CASES = {
    ("report", "table"): ("rows.csv", "--target", "y", "--models", "lda"),
    ("report", "named model"): ("rows.csv", "--target", "y", "--model", "lda"),
    ("report", "no model file"): ("rows.csv", "--target", "y", "--no-model"),
    ("report", "sparse rows"): ("sparse.txt", *_TREE),
    ("report", "no test file"): ("sparse.txt", *_TREE),
    ("explain", "named model"): ("rows.csv", "--target", "y", "--model", "lda"),
    ("fit", "table"): ("rows.csv", "--target", "y", "--model", "lda", "--out", "x"),
    ("fit", "named model"): ("rows.csv", "--target", "y", "--model", "lda", "--out", "x"),
    ("fit", "table of a label tree"): ("rows.csv", "--target", "y", *_TREE, "--out", "x"),
    ("fit", "label tree"): ("rows.csv", "--target", "y", *_TREE, "--out", "x"),
    ("fit", "sparse rows"): ("sparse.txt", *_TREE, "--out", "x"),
    ("fit", "moments"): ("m", "--model", "lda", "--out", "x"),
    ("predict", "table"): ("table.model", "rows.csv", "--out", "x"),
    ("predict", "no label tree"): ("table.model", "rows.csv", "--out", "x"),
    ("predict", "no encoding"): ("plain.model", "rows.csv", "--out", "x"),
    ("predict", "binary output"): ("table.model", "rows.csv", "--out", "x.parquet"),
    ("predict", "sparse rows"): ("sparse.model", "sparse.txt", "--out", "x"),
    ("assess", "table"): ("table.model", "rows.csv"),
    ("assess", "sparse rows"): ("sparse.model", "sparse.txt"),
    ("export", "no SQL"): ("table.model", "--to", "python"),
}


def flag(command, name):
    """An option as it is written."""
    return next(one.opts[0] for one in cli.commands[command].params if one.name == name)


EVERY = [(*case, name) for case, (names, _) in INAPPLICABLE.items() for name in sorted(names)]


@pytest.mark.parametrize(("command", "case", "name"), EVERY)
def test_option_without_effect_is_refused_by_name(command, case, name, place):
    option = flag(command, name)
    value = () if VALUES[name] is None else (VALUES[name],)
    before = sorted(place.iterdir())
    printed = run(command, *CASES[command, case], option, *value, cwd=place, code=2)
    assert f"Error: {option} " in printed and f"Leave {option} out" in printed
    assert "reading ..." not in printed
    assert sorted(place.iterdir()) == before


def test_every_case_is_tested_and_names_options_of_its_command():
    assert set(CASES) == set(INAPPLICABLE)
    for (command, _), (names, _) in INAPPLICABLE.items():
        assert names <= {one.name for one in cli.commands[command].params}


# Options that apply to every input of a command, and those of which another test shows the effect.
_ALWAYS = {"source", "model", "out", "as_json", "quiet", "files", "whole", "part", "before"}
_ALWAYS |= {"after", "folder", "to", "outputs", "no_model", "facts", "markdown", "title"}
_ALWAYS |= {"label", "force", "detail", "seed", "target", "checkpoint"}


@pytest.mark.parametrize("command", cli.commands)
def test_every_option_is_known_to_apply_or_to_be_refused_somewhere(command):
    """A new option must join a case of `cli.unused`, or the list of those that always apply."""
    reading = {one.name for one in cli.commands["moments"].params}
    comparing = {one.name for one in cli.commands["compare"].params}
    known = _ALWAYS | {
        name for (c, _), (names, _) in INAPPLICABLE.items() if c == command for name in names
    }
    if command in ("check", "compare", "explain"):
        known |= comparing
    if command == "moments":
        known |= reading
    if command == "assess":
        known |= {"unknown"}
    if command == "explain-row":
        known |= {"rows", "cost", "reject"}
    if command == "serve":  # tested in tests/unit/web
        known |= {"models", "host", "port", "token_file", "allow_hosts", "max_bytes", "max_rows"}
        known |= {"max_requests", "seconds", "stop_seconds", "reload_seconds"}
    if command == "studio":  # tested in tests/unit/web
        known |= {"source", "table", "port", "no_browser", "max_bytes"}
    assert {one.name for one in cli.commands[command].params} <= known


# --- columns --------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["memory", "files"])
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--exclude", "y"), "--exclude 'y' is not valid: it must be a column other than the"),
        (("--weight", "a", "--exclude", "a"), "other than the weight"),
        (("--ordered", "y=ill,hale"), "it must be every label once, lowest first: ill, well"),
        (("--category", "a", "--exclude", "a"), "a column that is used"),
        (("--column", "b", "--ordered", "a=1,2"), "a column that is used"),
    ],
)
def test_column_with_contradictory_roles_is_refused(options, says, engine, place):
    args = ("compare", "rows.csv", "--target", "y", "--engine", engine, *options)
    assert says in run(*args, cwd=place, code=2)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("rows.parquet", "--delimiter", ";"), "--delimiter ';' is not valid: it must be left"),
        (
            ("rows.parquet", "--engine", "files", "--encoding", "utf-8"),
            "it applies only to CSV files",
        ),
        (("rows.csv", "--engine", "files", "--max-bytes", "99999"), "read into memory"),
        (
            ("rows.csv", "--engine", "sql"),
            "--engine 'sql' cannot read this source, but 'files' can",
        ),
        (("rows.csv", "--table", "t"), "neither the address of a supported database"),
        (("rows.csv", "--pushdown"), "only a database can compute the moments of its own tables"),
    ],
)
def test_option_of_another_kind_of_source_is_refused(options, says, place):
    assert says in run("compare", *options, "--target", "y", cwd=place, code=2)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--decimal", ","), "it applies only to CSV files"),
        (("--max-bytes", "99999"), "read into memory"),
        (("--engine", "files"), "--engine 'files' cannot read this source, but 'sql' can"),
        (("--engine", "memory"), "--engine 'memory' cannot read this source, but 'sql' can"),
    ],
)
def test_option_of_files_is_refused_for_a_database(options, says, place):
    import sqlite3

    with sqlite3.connect(place / "rows.sqlite") as connection:
        grouped().to_sql("rows", connection, if_exists="replace", index=False)
    args = ("compare", "rows.sqlite", "--table", "rows", "--target", "y", *options)
    assert says in run(*args, cwd=place, code=2)


# --- folds by a column ----------------------------------------------------------------------------


def expected_error():
    """Leave one patient out: LDA with the unbiased pooled covariance, by its formula."""
    frame = grouped()
    X, y = frame[["a", "b", "c"]].to_numpy(), frame["y"].to_numpy()
    wrong = 0
    for patient in frame["patient"].unique():
        out = (frame["patient"] == patient).to_numpy()
        parts = [X[~out & (y == label)] for label in ("ill", "well")]
        scatter = sum((part - part.mean(0)).T @ (part - part.mean(0)) for part in parts)
        inverse = np.linalg.inv(scatter / ((~out).sum() - 2))
        scores = [
            X[out] @ inverse @ part.mean(0)
            - part.mean(0) @ inverse @ part.mean(0) / 2
            + np.log(len(part) / (~out).sum())
            for part in parts
        ]
        wrong += (np.array(["ill", "well"])[np.argmax(scores, axis=0)] != y[out]).sum()
    return wrong / len(frame)


@pytest.mark.parametrize("engine", ["memory", "files", "sqlite", "duckdb", "postgres"])
def test_folds_by_a_column_hold_out_its_values_together(engine, tmp_path):
    import json

    frame = grouped()
    source = _source(engine, frame, tmp_path)
    options = ("--target", "y", "--models", "lda", "--folds", "patient", "--quiet")
    printed = run("compare", *source, *options, "--json", cwd=tmp_path)
    found = json.loads(printed)["comparison"]
    assert found["folds"] == 20 and found["fold_column"] == "patient"
    assert found["models"][0]["error"] == pytest.approx(expected_error(), abs=1e-12)
    by_rows = run("compare", *source, *options, "--folds", 10, "--json", cwd=tmp_path)
    assert json.loads(by_rows)["comparison"]["models"][0]["error"] < expected_error()


def _source(engine, frame, folder):
    if engine in ("memory", "files"):
        frame.to_csv(folder / "rows.csv", index=False)
        return "rows.csv", "--engine", engine
    if engine == "sqlite":
        import sqlite3

        with sqlite3.connect(folder / "rows.db") as connection:
            frame.to_sql("rows", connection, index=False)
        return "rows.db", "--table", "rows"
    if engine == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect(folder / "rows.db") as connection:
            databases.lay(connection, frame, "rows")
        return "rows.db", "--table", "rows"
    url, why_not = databases.postgres()
    if why_not:
        pytest.skip(why_not)
    with databases.connect("postgres") as connection:
        connection.execute('DROP TABLE IF EXISTS "patients"')
        databases.lay(connection, frame, "patients")
    return url, "--table", "patients"


def test_report_says_that_folds_are_by_a_column(place):
    args = ("--target", "y", "--models", "lda", "--folds", "patient", "--out", "by.html")
    printed = run("report", "rows.csv", *args, "--markdown", "by.md", cwd=place)
    says = "20 folds (one for each value of 'patient')"
    assert says in printed and says in (place / "by.md").read_text()
    assert "of &#39;patient&#39;)" in (place / "by.html").read_text()
    assert "patient" not in dd.load(place / "by.model").encoding_.features


def test_fold_column_is_read_with_the_options_of_the_file(place):
    grouped().to_csv(place / "semi.csv", index=False, sep="|")
    args = ("--target", "y", "--models", "lda", "--folds", "patient", "--delimiter", "|")
    assert "20 folds" in run("compare", "semi.csv", *args, cwd=place)


@pytest.mark.parametrize(
    ("folds", "says"),
    [("y", "a column other than the target"), ("patien", "Did you mean 'patient'?")],
)
def test_unusable_fold_column_is_refused(folds, says, place):
    printed = run("compare", "rows.csv", "--target", "y", "--folds", folds, cwd=place, code=2)
    assert says in printed


# --- what is said before rows are read ------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        ("report", "--models", "svm,perceptron"),
        ("report", "--models", "least_squares"),
        ("compare", "--models", "svm,perceptron", "--by", "brier"),
        ("explain", "--models", "svm"),
        ("fit", "--models", "svm,perceptron", "--out", "x"),
        ("report", "--model", "svm", "--reject", "0.1"),
        ("fit", "--model", "perceptron", "--cost", '{"ill": {"well": 2}}', "--out", "x"),
    ],
)
def test_models_without_probabilities_are_refused_before_reading(args, place):
    printed = run(args[0], "rows.csv", "--target", "y", *args[1:], cwd=place, code=2)
    assert "gives probabilities, which" in printed and "reading ..." not in printed


def test_misspelt_model_is_refused_before_reading_with_the_nearest_name(place):
    args = ("--target", "y", "--models", "lgistic")
    printed = run("compare", "rows.csv", *args, cwd=place, code=2)
    assert "did you mean 'logistic'?" in printed and "reading ..." not in printed


def test_named_model_joins_the_default_comparison(place):
    args = ("--target", "y", "--model", "laplace_nb", "--folds", 3, "--out", "named.html")
    printed = run("report", "rows.csv", *args, cwd=place)
    assert "Laplace naive Bayes" in printed and "QDA" in printed


def test_all_models_are_compared_on_request(place):
    grouped(rows=60).to_csv(place / "few.csv", index=False)
    args = ("--target", "y", "--exclude", "patient", "--models", "all", "--folds", 2)
    printed = run("compare", "few.csv", *args, cwd=place)
    assert all(title in printed for title in ("Least squares", "Laplace naive Bayes", "Perceptron"))


def test_models_without_probabilities_are_compared_by_error(place):
    args = ("--target", "y", "--models", "svm", "--by", "error", "--folds", 3)
    assert "SVM" in run("compare", "rows.csv", *args, cwd=place)


def test_model_that_is_not_compared_is_refused_before_reading(place):
    args = ("--target", "y", "--models", "lda,qda", "--model", "rda")
    printed = run("report", "rows.csv", *args, cwd=place, code=2)
    assert "Model 'rda' was not compared" in printed and "reading ..." not in printed


@pytest.mark.parametrize("command", ["report", "fit"])
def test_model_that_cannot_predict_without_a_feature_is_refused_before_reading(command, place):
    args = ("--target", "y", "--missing", "marginal", "--model", "logistic_cv", "--out", "x.out")
    printed = " ".join(run(command, "rows.csv", *args, cwd=place, code=2).split())
    assert "--missing marginal is only for LDA, QDA, RDA" in printed
    assert "reading ..." not in printed


_HEAVY = "numpy scipy sklearn pandas pyarrow jinja2 numba narwhals discriminant.study.workflow"


@pytest.mark.parametrize(
    "args",
    [
        ("report", "absent.csv", "--target", "y"),
        ("fit", "absent.csv", "--target", "y", "--out", "x"),
        ("predict", "absent.model", "absent.csv", "--out", "x"),
        ("merge", "absent.moments", "--out", "x"),
    ],
)
def test_missing_file_is_reported_before_heavy_imports(args, tmp_path):
    code = (
        "import sys\n"
        "from discriminant.cli.run import run\n"
        "assert run(sys.argv[1:]) == 2\n"
        f"print([name for name in '{_HEAVY}'.split() if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert "absent." in done.stderr and "there is no such file" in done.stderr
    assert done.stdout.strip() == "[]"


# --- JSON -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "1" * 5000,
        "[]",
        "5",
        '"a"',
        "{",
        '{"ill": 3}',
        '{"ill": {"well": "much"}}',
        '{"ill": {"well": NaN}}',
        '{"ill": {"well": 1e999}}',
    ],
)
@pytest.mark.parametrize(
    "args",
    [
        ("report", "rows.csv", "--target", "y", "--models", "lda", "--out", "cost.html"),
        ("fit", "rows.csv", "--target", "y", "--model", "lda", "--out", "cost.model"),
        ("fit", "m", "--model", "lda", "--out", "cost.model"),
        ("predict", "table.model", "rows.csv", "--out", "cost.csv"),
    ],
)
def test_unusable_cost_is_an_error_of_ours(args, text, place):
    printed = run(*args, "--cost", text, cwd=place, code=2)
    assert "Traceback" not in printed and len(printed) < 5000


@pytest.mark.parametrize("value", ["[" * 100_000, "1" * 5000, "{"])
def test_unusable_setting_of_a_label_tree_is_an_error_of_ours(value, place):
    args = ("fit", "sparse.txt", "--model", "label-tree", "--out", "x", "--with", f"beam={value}")
    assert "Traceback" not in run(*args, cwd=place, code=2)
