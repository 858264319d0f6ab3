"""The command line as a person has it: by subprocess, with its files, codes and messages."""

import csv
import io
import json
import os
import resource
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import discriminant as dd
from discriminant.cli import run as command_line
from discriminant.study.prediction_writers import safe_cell
from tests.shared.paths import SHARED


class Said(NamedTuple):
    stdout: str
    stderr: str


def run(*args, cwd, code=0):
    """A command in a folder; what it printed. As `spawned`, but without a new process."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(cwd), redirect_stdout(out), redirect_stderr(err):
        found = command_line.run([str(arg) for arg in args])
    assert found == code, err.getvalue()
    return Said(out.getvalue(), err.getvalue())


def spawned(*args, cwd, code=0):
    """A command in a process of its own; what it printed."""
    found = subprocess.run(
        [sys.executable, "-m", "discriminant.cli", *map(str, args)],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "100"},
    )
    assert found.returncode == code, found.stderr
    assert "Traceback" not in found.stderr
    return found


@pytest.mark.parametrize("module", ["discriminant", "discriminant.cli"])
def test_the_package_is_the_command_line_and_calls_itself_by_its_name(module, tmp_path):
    command = [sys.executable, "-m", module, "predict"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (found.returncode, "Usage: discriminant predict" in found.stderr) == (2, True)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the bundled sets and an LDA of iris."""
    folder = tmp_path_factory.mktemp("cli")
    spawned("examples", cwd=folder)
    fit = ("fit", "iris.csv", "--target", "species", "--model", "lda", "--out", "lda.model")
    run(*fit, cwd=folder)
    return folder


# --- help ----------------------------------------------------------------------------------------


def test_help_imports_nothing_that_computes():
    heavy = "numpy scipy sklearn pandas pyarrow jinja2 numba narwhals discriminant.errors"
    code = (
        "import sys\n"
        "from discriminant.cli.run import run\n"
        "assert run(sys.argv[1:]) == 0\n"
        f"print([name for name in '{heavy}'.split() if name in sys.modules])"
    )
    for args in (["--help"], ["report", "--help"], ["predict", "--help"]):
        found = subprocess.run(
            [sys.executable, "-c", code, *args], capture_output=True, text=True, check=True
        )
        assert found.stdout.strip().endswith("[]")


def test_help_is_there_in_less_than_three_tenths_of_a_second():
    spent = (_seconds_of_help() for _ in range(10))  # the best of ten: others are at work as well
    assert any(seconds < 0.3 for seconds in spent)


def _seconds_of_help():
    """Of the processor, which other work on the machine hardly changes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "discriminant.cli", "--help"]
    subprocess.run(command, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_every_command_takes_json_and_help(tmp_path):
    from discriminant.cli.commands import cli

    servers = {"serve", "studio"}  # they print no result
    for name, command in cli.commands.items():
        options = {option for p in command.params for option in p.opts}
        assert ("--json" in options) == (name not in servers), name
        assert command.help, name


# --- the main job --------------------------------------------------------------------------------


def test_report_writes_a_page_and_a_model_that_predicts(place, tmp_path):
    found = spawned(
        *("report", place / "iris.csv", "--target", "species", "--models", "lda,qda,nearest_mean"),
        *("--facts", "facts.json", "--markdown", "page.md"),
        cwd=tmp_path,
    )
    assert "seed 0): discriminant report" in found.stdout
    facts = json.loads((tmp_path / "facts.json").read_text())
    assert (tmp_path / "iris.html").read_text().startswith("<!doctype html>")
    assert facts["comparison"]["models"][0]["name"] == "lda"
    assert (tmp_path / "page.md").read_text().startswith("# ")
    spawned("predict", "iris.model", place / "iris.csv", "--out", "said.csv", cwd=tmp_path)
    assert len((tmp_path / "said.csv").read_text().splitlines()) == 151


def test_stdout_is_one_json_object_and_progress_is_on_stderr(place, tmp_path):
    found = spawned(
        *("compare", place / "wine.csv", "--target", "cultivar", "--models", "lda,qda", "--json"),
        cwd=tmp_path,
    )
    told = json.loads(found.stdout)
    assert [one["name"] for one in told["comparison"]["models"]] == ["lda", "qda", "pool"]
    assert told["made"]["command"].startswith("discriminant compare")
    assert "[1/2] LDA" in found.stderr


def test_the_same_command_gives_the_same_figures(place, tmp_path):
    def figures():
        args = ("compare", place / "iris.csv", "--target", "species", "--models", "lda,rda")
        told = json.loads(run(*args, "--seed", "7", "--json", cwd=tmp_path).stdout)
        return [(one["error"], one["log_loss"]) for one in told["comparison"]["models"]]

    assert figures() == figures()


def test_explain_says_what_tells_classes_apart(place, tmp_path):
    args = ("explain", place / "iris.csv", "--target", "species", "--models", "lda")
    told = json.loads(run(*args, "--json", cwd=tmp_path).stdout)
    top = max(told["space"]["canonical"], key=lambda one: one["correlation"])
    assert top["correlation"] == pytest.approx(0.984821, abs=1e-6)  # R's candisc on iris
    assert "petal" in run(*args, "--quiet", cwd=tmp_path).stdout


# --- models --------------------------------------------------------------------------------------


def test_predict_keeps_columns_and_says_what_the_model_says(place, tmp_path):
    run("predict", place / "lda.model", place / "iris.csv", "--out", "said.csv", cwd=tmp_path)
    with open(tmp_path / "said.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    X, y = load_iris(return_X_y=True)
    names = load_iris().target_names
    model = dd.LDA().fit(X, names[y])
    p = [[float(row[f"p({name})"]) for name in names] for row in rows]
    np.testing.assert_allclose(p, model.predict_proba(X), atol=1e-9)
    assert [row["species"] for row in rows] == names[y].tolist()


def test_predict_passes_on_a_cell_of_many_letters(place, tmp_path):
    head, first, *_ = (place / "iris.csv").read_text().splitlines()
    (tmp_path / "long.csv").write_text(f"{head},note\n{first},{'n' * 200_000}\n")
    run("predict", place / "lda.model", "long.csv", "--out", "out.csv", cwd=tmp_path)
    assert f",{'n' * 200_000}," in (tmp_path / "out.csv").read_text()


def test_costs_and_passing_on_add_a_decision(place, tmp_path):
    args = ("predict", place / "lda.model", place / "iris.csv", "--out", "said.csv", "--json")
    told = json.loads(run(*args, "--reject", "0.05", cwd=tmp_path).stdout)
    X, y = load_iris(return_X_y=True)
    model = dd.Decision(dd.LDA(), reject=0.05).fit(X, y)
    assert told["counts"]["REJECT"] == sum(v is dd.REJECT for v in model.decide(X))


def test_assess_counts_what_the_model_gets_wrong(place, tmp_path):
    args = ("assess", place / "lda.model", place / "iris.csv", "--json")
    told = json.loads(run(*args, cwd=tmp_path).stdout)
    X, y = load_iris(return_X_y=True)
    wrong = dd.LDA().fit(X, y).predict(X) != y
    assert 150 - np.trace(told["confusion"]) == wrong.sum()


@pytest.mark.parametrize("engine", ["memory", "files"])
def test_assess_gives_the_mean_cost_of_decisions_with_costs(engine, place, tmp_path):
    costs = json.dumps({"versicolor": {"virginica": 5}})
    fit = ("fit", place / "iris.csv", "--target", "species", "--model", "lda", "--out", "m")
    run(*fit, "--cost", costs, "--reject", "0.2", cwd=tmp_path)
    told = json.loads(
        run("assess", "m", place / "iris.csv", "--engine", engine, "--json", cwd=tmp_path).stdout
    )
    X, y = load_iris(return_X_y=True)
    decisions = dd.Decision(dd.LDA(), cost={1: {2: 5}}, reject=0.2).fit(X, y).decide(X)
    own = [
        0.2 if k is dd.REJECT else (5.0 if (k, t) == (1, 2) else k != t)
        for k, t in zip(decisions, y, strict=True)
    ]
    assert told["mean_cost"] == pytest.approx(np.mean(own)) and told["mean_cost"] > 0
    text = run("assess", "m", place / "iris.csv", "--engine", engine, cwd=tmp_path).stdout
    assert "Mean cost of a decision: 0.0" in text


def test_assess_leaves_out_rows_without_a_label(place, tmp_path):
    lines = (place / "iris.csv").read_text().splitlines()
    without = [lines[0], lines[1].rsplit(",", 1)[0] + ",", *lines[2:]]
    (tmp_path / "rows.csv").write_text("\n".join(without) + "\n")
    done = run("assess", place / "lda.model", "rows.csv", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["rows"] == 149
    assert "1 row of 150 without a label cannot be assessed" in done.stderr


@pytest.mark.parametrize("kind", [pa.bool_(), pa.int8(), pa.float64(), pa.string()])
@pytest.mark.parametrize("engine", ["memory", "files"])
def test_assess_takes_classes_of_every_kind(kind, engine, tmp_path):
    truth = [i % 2 for i in range(40)]
    x = [0.3 * (i % 2) + 0.1 * (i % 7) for i in range(40)]
    y = pa.array(truth).cast(kind)
    pq.write_table(pa.table({"x": x, "y": y}), tmp_path / "rows.parquet")
    run("fit", "rows.parquet", "--target", "y", "--model", "lda", "--out", "m", cwd=tmp_path)
    how = ("assess", "m", "rows.parquet", "--engine", engine, "--json")
    told = json.loads(run(*how, cwd=tmp_path).stdout)
    pq.write_table(pa.table({"x": x, "y": pa.array(truth)}), tmp_path / "rows.parquet")
    assert json.loads(run(*how, cwd=tmp_path).stdout)["confusion"] == told["confusion"]
    right = LinearDiscriminantAnalysis().fit(np.c_[x], truth).predict(np.c_[x]) == truth
    assert np.trace(told["confusion"]) == right.sum() < 40


@pytest.mark.parametrize("engine", ["memory", "files"])
def test_dates_are_no_classes(engine, tmp_path):
    days = pa.array([i % 2 for i in range(40)], pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"x": list(range(40)), "y": days}), tmp_path / "rows.parquet")
    said = run("compare", "rows.parquet", "--target", "y", "--engine", engine, cwd=tmp_path, code=2)
    assert "column 'y'" in said.stderr.lower() and "dates" in said.stderr


def test_exports_run_elsewhere(place, tmp_path):
    run("export", place / "lda.model", "--to", "python", "--out", "said.py", cwd=tmp_path)
    scope = {}
    exec((tmp_path / "said.py").read_text(), scope)
    names = load_iris().feature_names
    row = dict(zip(names, load_iris().data[0].tolist(), strict=True))
    said = scope["predict"](row)
    assert "setosa" in (said if isinstance(said, str) else said[0])
    assert "SELECT" in run("export", place / "lda.model", "--to", "sql", cwd=tmp_path).stdout
    more = ("--keep", "id", "--outputs", "label")
    text = run("export", place / "lda.model", "--to", "sql", *more, cwd=tmp_path).stdout
    assert 's."id" AS "id"' in text and "EXP(" not in text


def test_parquet_is_read_and_answered(place, tmp_path):
    X, names = load_iris().data, load_iris().feature_names
    pq.write_table(pa.table({n: X[:, j] for j, n in enumerate(names)}), tmp_path / "new.parquet")
    run("predict", place / "lda.model", "new.parquet", "--out", "said.csv", cwd=tmp_path)
    first = (tmp_path / "said.csv").read_text().splitlines()[1]
    assert first.startswith("5.1,3.5,1.4,0.2,setosa,")


# --- moments -------------------------------------------------------------------------------------


def test_moment_files_add_and_subtract(place, tmp_path):
    text = (place / "iris.csv").read_text().splitlines()
    for name, rows in (("odd", text[1::2]), ("even", text[2::2])):
        (tmp_path / f"{name}.csv").write_text("\n".join([text[0], *rows]) + "\n")
        moments = ("moments", f"{name}.csv", "--target", "species", "--out", f"{name}.moments")
        run(*moments, cwd=tmp_path)
    run("merge", "odd.moments", "even.moments", "--out", "all.moments", cwd=tmp_path)
    X, y = load_iris(return_X_y=True)
    whole = dd.moments(X, load_iris().target_names[y])
    merged = dd.load(tmp_path / "all.moments")
    np.testing.assert_allclose(merged.within(), whole.within(), rtol=1e-12)
    run("forget", "all.moments", "even.moments", "--out", "left.moments", cwd=tmp_path)
    odd = dd.load(tmp_path / "odd.moments")
    np.testing.assert_allclose(dd.load(tmp_path / "left.moments").means, odd.means, rtol=1e-9)
    told = json.loads(run("drift", "odd.moments", "even.moments", "--json", cwd=tmp_path).stdout)
    assert 0.05 < told["t2"]["p"] <= 1


def test_moments_that_are_added_twice_are_told(place, tmp_path):
    args = ("moments", place / "iris.csv", "--target", "species", "--out")
    run(*args, "a.moments", cwd=tmp_path)
    run(*args, "b.moments", cwd=tmp_path)
    twice = run("merge", "a.moments", "b.moments", "--out", "ab.moments", cwd=tmp_path)
    assert "a.moments and b.moments are the same, so these rows count twice" in twice.stderr
    assert dd.load(tmp_path / "ab.moments").rows.tolist() == [100, 100, 100]
    more = run("merge", "ab.moments", "a.moments", "--out", "more", cwd=tmp_path)
    assert "Warning" not in more.stderr


@pytest.mark.parametrize("name", ["said.xlsx", "said.XLSX", "said.csv.gz", "said.json"])
def test_predictions_with_an_unknown_suffix_are_refused_before_reading(name, place, tmp_path):
    args = ("predict", place / "lda.model", place / "iris.csv", "--out", name)
    told = run(*args, cwd=tmp_path, code=2)
    assert all(s in told.stderr for s in (".csv", ".txt", ".parquet", ".arrow", ".feather"))
    assert "predicting ..." not in told.stderr and list(tmp_path.iterdir()) == []


def test_suffixes_of_predictions_may_be_in_capitals(place, tmp_path):
    args = ("predict", place / "lda.model", place / "iris.csv", "--out")
    for name in ("said.PARQUET", "said.parquet"):
        run(*args, name, cwd=tmp_path)
    capitals, lower = (tmp_path / name for name in ("said.PARQUET", "said.parquet"))
    assert capitals.read_bytes()[:4] == b"PAR1" and capitals.read_bytes() == lower.read_bytes()


def test_separation_is_the_reason_where_it_prevents_convergence(tmp_path):
    rows = [f"{i % 7 + 20 * (i % 2)},{i * i % 11},{'uv'[i % 2]}" for i in range(60)]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,y", *rows]) + "\n")
    args = ("rows.csv", "--target", "y", "--models", "logistic_ml", "--folds", "3")
    told = run("compare", *args, cwd=tmp_path, code=3)
    reason = "did not converge because the classes of their training rows are separated"
    assert told.stdout.count(reason) == 2
    assert "did not converge because the classes are separated: exit code 3" in told.stderr


def test_one_row_and_one_feature_are_singular(tmp_path):
    rows = [f"{i % 7},{'uv'[i % 2]}" for i in range(20)]
    (tmp_path / "rows.csv").write_text("\n".join(["a,y", *rows]) + "\n")
    args = ("fit", "rows.csv", "--target", "y", "--model", "lda", "--out", "m.model")
    assert "fitted to 20 rows of 1 feature." in run(*args, cwd=tmp_path).stdout


# --- what goes wrong -----------------------------------------------------------------------------

BAD = {
    "no such file": (["report", "none.csv", "--target", "y"], "there is no such file"),
    "no such column": (["compare", "iris.csv", "--target", "kind"], "no column 'kind'"),
    "no such model": (
        ["compare", "iris.csv", "--target", "species", "--models", "forest"],
        "no model 'forest'",
    ),
    "moments are no model": (["assess", "iris.csv", "iris.csv"], "iris.csv"),
    "a model is no moments": (["drift", "lda.model", "lda.model"], "not moments"),
    "costs are JSON": (
        ["predict", "lda.model", "iris.csv", "--out", "x.csv", "--cost", "{yes"],
        "--cost is not valid JSON",
    ),
    "costs of no class": (
        ["report", "iris.csv", "--target", "species", "--cost", '{"rose": {"lily": 5}}'],
        "rose",
    ),
    "too many folds": (
        ["compare", "iris.csv", "--target", "species", "--folds", "1000"],
        "from 2 to the number of rows (150)",
    ),
    "no such folder": (
        ["report", "iris.csv", "--target", "species", "--out", "no/such/page.html"],
        "cannot be written",
    ),
    "the source is the target": (
        ["predict", "lda.model", "iris.csv", "--out", "iris.csv"],
        "both read and written",
    ),
    "an encoding of bytes": (
        ["compare", "iris.csv", "--target", "species", "--encoding", "base64"],
        "an encoding of texts",
    ),
    "an encoding that changes letters": (
        ["compare", "iris.csv", "--target", "species", "--encoding", "rot13"],
        "an encoding of texts",
    ),
    "UTF-16 without its mark": (
        ["compare", "iris.csv", "--target", "species", "--encoding", "utf-16"],
        "line 1: byte 0 (counted from 0) is not valid UTF-16",
    ),
    "a decimal sign that is none": (
        ["compare", "iris.csv", "--target", "species", "--decimal", "x"],
        "it must be '.' or ','",
    ),
    "a delimiter that is a quote": (
        ["compare", "iris.csv", "--target", "species", "--delimiter", '"'],
        "no quote and no line end",
    ),
    "bytes below nothing": (
        ["compare", "iris.csv", "--target", "species", "--max-bytes", "-5"],
        "-5 is not in the range x>=1",
    ),
    "an option is missing": (["report", "iris.csv"], "--target"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_message_code_2_and_nothing_written(case, place):
    args, message = BAD[case]
    before = {file: file.stat().st_mtime_ns for file in place.iterdir()}
    found = run(*args, cwd=place, code=2)
    assert message in found.stderr and found.stdout == ""
    assert {file: file.stat().st_mtime_ns for file in place.iterdir()} == before


@pytest.mark.parametrize("option", ["--save", "--facts", "--markdown"])
def test_two_outputs_in_one_file_are_refused_before_any_work(option, place, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    args = ("report", place / "iris.csv", "--target", "species", "--out", "same")
    said = run(*args, option, "link/same", cwd=tmp_path, code=2)
    assert "one file, would be written twice" in said.stderr
    assert not (tmp_path / "same").exists()


def test_examples_make_their_folder_and_write_over_nothing_unless_forced(tmp_path):
    run("examples", "new/tables", cwd=tmp_path)
    own = tmp_path / "new" / "tables" / "wine.csv"
    written = own.read_bytes()
    run("examples", "new/tables", cwd=tmp_path)  # the same again is no loss
    own.write_text("mine\n")
    (own.parent / "iris.csv").unlink()
    assert "--force" in run("examples", "new/tables", cwd=tmp_path, code=2).stderr
    assert own.read_text() == "mine\n" and not (own.parent / "iris.csv").exists()
    run("examples", "new/tables", "--force", cwd=tmp_path)
    assert own.read_bytes() == written


def test_a_mistake_of_ours_is_one_json_object_too_and_ends_with_1(place, monkeypatch):
    def broken(*_, **__):
        raise KeyError("within")

    monkeypatch.setattr("discriminant.store.load", broken)
    said = run("assess", "lda.model", "iris.csv", "--json", cwd=place, code=1)
    assert json.loads(said.stdout)["error"]["kind"] == "KeyError"
    assert "Traceback" in said.stderr and "Please report it" in said.stderr


def test_errors_of_a_row_name_line_and_column_and_are_json_too(tmp_path):
    lines = ["x,y", *(f"{i}.5,{'ab'[i % 2]}" for i in range(30)), "n/a,b"]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    found = spawned("compare", "rows.csv", "--target", "y", "--json", cwd=tmp_path, code=2)
    told = json.loads(found.stdout)["error"]
    assert "line 32" in told["message"] and "column 'x'" in told["message"]
    assert "in: discriminant compare rows.csv" in found.stderr


COMMANDS = {
    "fit": ("--model", "logistic_ml", "--out", "m.model"),
    "report": ("--models", "logistic_ml"),
    "compare": ("--models", "logistic_ml"),
    "explain": ("--models", "logistic_ml"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_model_that_does_not_converge_ends_with_3_and_says_so(command, tmp_path):
    rows = ["x,y", *(f"{i},{'a' if i < 20 else 'b'}" for i in range(40))]
    (tmp_path / "apart.csv").write_text("\n".join(rows).replace("0,", "0.5,") + "\n")
    found = run(command, "apart.csv", "--target", "y", *COMMANDS[command], cwd=tmp_path, code=3)
    assert "did not converge because the classes are separated: exit code 3" in found.stderr


# --- safe to open --------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-cmd", "@SUM(A1)", "\tx", "\rx", "＝1"])
def test_texts_that_a_spreadsheet_would_run_are_quoted(text):
    assert safe_cell(text) == "'" + text


def test_numbers_and_plain_texts_are_left_alone():
    assert [safe_cell(t) for t in ("-5.2", "+1e3", "plain", "")] == ["-5.2", "+1e3", "plain", ""]


def test_formulas_among_names_and_labels_come_out_harmless(tmp_path):
    rows = ["=cmd|'/c calc'!A0,size,kind"]
    rows += [f"@risk{i % 3},{i}.25,{'=EVIL()' if i % 2 else '-lo'}" for i in range(24)]
    (tmp_path / "rows.csv").write_text("\n".join(rows) + "\n")
    fit = ("fit", "rows.csv", "--target", "kind", "--model", "nearest_mean", "--out", "m.model")
    run(*fit, cwd=tmp_path)
    run("predict", "m.model", "rows.csv", "--out", "safe.csv", cwd=tmp_path)
    with open(tmp_path / "safe.csv", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    risky = [c for c in cells if c[:1] in "=+-@\t\r" and c and not c.lstrip("+-")[:1].isdigit()]
    assert risky == []
    run("predict", "m.model", "rows.csv", "--out", "raw.csv", "--raw-csv", cwd=tmp_path)
    assert "\n@risk0,0.25,-lo," in (tmp_path / "raw.csv").read_text()


def test_controls_in_names_do_not_reach_the_terminal(tmp_path):
    (tmp_path / "rows.csv").write_text("a\x1b[2Jb,y\n" + "1,u\n2.5,v\n" * 9)
    found = run("compare", "rows.csv", "--target", "none", cwd=tmp_path, code=2)
    assert "\x1b" not in found.stderr


# --- real sets -----------------------------------------------------------------------------------

REAL = {
    "penguins": ("penguins/penguins.csv", "species", ["--missing", "indicator"], 0.05),
    "default": ("islr_default/Default.csv", "default", [], 0.05),
    "vowel": ("esl_vowel/vowel_train.csv", "y", [], 0.2),
}


@pytest.mark.skipif(not SHARED.exists(), reason="the shared sets are not here")
@pytest.mark.parametrize("name", REAL)
def test_reports_of_real_sets(name, tmp_path):
    file, target, more, most = REAL[name]
    models = ["--models", "lda,qda,rda,logistic"]
    args = ("report", SHARED / file, "--target", target, *more, *models, "--json")
    told = json.loads(run(*args, cwd=tmp_path).stdout)
    chosen = {one["name"]: one for one in told["comparison"]["models"]}[told["chosen"]]
    assert chosen["error"] < most
    assert Path(tmp_path, told["written"]["page"]).stat().st_size < 1_000_000
