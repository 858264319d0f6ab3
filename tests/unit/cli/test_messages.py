"""What the command line says in its own words, and where it says it."""

import csv
import io
from contextlib import chdir, redirect_stderr, redirect_stdout

import numpy as np
import pytest

from discriminant.cli import run as command_line
from discriminant.cli.commands import cli
from discriminant.cli.session import in_options
from discriminant.errors import (
    BadNumberError,
    CategoryError,
    CollinearWarning,
    LabelError,
    MissingCellError,
    ScarceRowsWarning,
    TargetError,
    UnreadTextWarning,
)


def run(*args, cwd, code=0):
    out, err = io.StringIO(), io.StringIO()
    with chdir(cwd), redirect_stdout(out), redirect_stderr(err):
        found = command_line.run([str(arg) for arg in args])
    assert found == code, err.getvalue()
    return out.getvalue(), err.getvalue()


@pytest.fixture
def place(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        f"{x:.3f},{'no' if x < 0 else 'yes'},{'?' if i == 5 else i % 4}"
        for i, x in enumerate(rng.normal(size=60).tolist())
    ]
    (tmp_path / "rows.csv").write_text("\n".join(["x,y,n", *rows]) + "\n")
    return tmp_path


PYTHON = {
    "texts": BadNumberError.of(3, "n", "n/a"),
    "commas": BadNumberError.of(3, "n", "1,5"),
    "gaps": MissingCellError.of(1, "n", rows=1, columns=1),
    "classes": TargetError.too_many("y", 2000, 3000, 1000),
    "columns": UnreadTextWarning.of([("n", "dates", "1/2/2023", "day and month", True)]),
    "unseen": CategoryError.unseen(3, "n", "new", known=("old", "older")),
    "unlabelled": LabelError.missing_in_table("y", [3, 4]),
    "collinear": CollinearWarning.of_columns(["n", "x"], rank=1, features=2, condition=1e9),
    "scarce": ScarceRowsWarning.of("The covariance", rows=9, degrees=8, features=6),
}


@pytest.mark.parametrize("said", PYTHON.values(), ids=PYTHON)
def test_no_message_at_the_command_line_names_an_option_of_python(said):
    told = in_options(str(said))
    names = ("missing_text", "categories=", "in categories", "exclude=", "max_cl", "missing=")
    names += ("in exclude", "or exclude", "shrinkage", "ridge >", "unseen=", "'reject'")
    assert "--" in told and not any(name in told for name in names)


def test_a_decimal_comma_is_answered_with_the_option():
    assert "--decimal ," in in_options(str(BadNumberError.of(3, "n", "1,5")))


def test_a_text_that_means_missing_is_named(place):
    fit = ("fit", "rows.csv", "--target", "y", "--model", "lda", "--out", "m.model")
    assert "--missing-text" in run(*fit, cwd=place, code=2)[1]
    told = run(*fit, "--missing-text", "?", "--missing", "drop", cwd=place)[0]
    assert "59 rows" in told


def test_levels_beyond_the_limit_are_told_by_the_option(place):
    args = ("fit", "rows.csv", "--target", "y", "--model", "lda", "--out", "m.model")
    said = run(*args, "--category", "n", "--max-levels", "3", cwd=place)[1]
    assert "5 levels, more than --max-levels 3" in said


def test_answers_go_to_stdout_and_nothing_else_does(place):
    args = ("rows.csv", "--target", "y", "--exclude", "n", "--model", "lda", "--out", "m.model")
    run("fit", *args, cwd=place)
    out, err = run("predict", "m.model", "rows.csv", "--out", "-", cwd=place)
    rows = list(csv.reader(io.StringIO(out)))
    assert rows[0] == ["x", "y", "n", "predicted", "p(no)", "p(yes)"] and len(rows) == 61
    assert "60 rows" in err and not (place / "-").exists()


def test_quiet_moments_say_only_the_result(place):
    args = ("rows.csv", "--target", "y", "--exclude", "n", "--quiet", "--out", "m.moments")
    out, err = run("moments", *args, cwd=place)
    assert out.startswith("Moments of 60 rows") and not err


def test_a_title_above_the_names_is_suspected(tmp_path):
    (tmp_path / "rows.csv").write_text("Sales 2023,,\n,,\na,b,y\n1,2,u\n3,4,v\n")
    said = run("compare", "rows.csv", "--target", "y", cwd=tmp_path, code=2)[1]
    assert "positions 2, 3 are empty" in said and "Delete titles" in said


def test_a_target_of_numbers_with_decimals_is_told_truly(tmp_path):
    rows = [f"{i},{i % 40}.0" for i in range(80)]
    (tmp_path / "rows.csv").write_text("\n".join(["x,y", *rows]) + "\n")
    said = run("compare", "rows.csv", "--target", "y", cwd=tmp_path, code=2)[1]
    assert "40 different numbers in 80 rows, written with decimals" in said


def test_explain_prints_text_without_markdown_and_names_the_model(place):
    rng = np.random.default_rng(1)
    y = np.repeat(["lo_w+", "hi<1>"], 30)
    x = rng.normal(size=60) + (y == "lo_w+")
    lines = [f"{value:.3f},{name}" for value, name in zip(x, y, strict=True)]
    (place / "marks.csv").write_text("\n".join(["a_b|c,y", *lines]) + "\n")
    told = run("explain", "marks.csv", "--target", "y", "--models", "lda,qda", cwd=place)[0]
    assert told.startswith("Model: ") and told.splitlines()[0] in ("Model: LDA", "Model: QDA")
    assert "+ a_b|c" in told and "lo_w+" in told
    assert not any(mark in told for mark in ("\\", "## ", "| ---"))


def test_unlabelled_rows_are_answered_with_options_that_work(place):
    with open(place / "rows.csv", "a") as file:
        file.write("0.5,,1\n")
    fit = ("fit", "rows.csv", "--target", "y", "--model", "lda", "--exclude", "n", "--out", "m")
    told = run(*fit, cwd=place, code=2)[1]
    assert "Column 'y', the target: the label is missing in row(s) 60 " in told
    assert "--missing drop" in told and "--missing mean" in told and "Input y" not in told
    for missing in ("drop", "mean"):
        assert "60 rows" in run(*fit, "--missing", missing, cwd=place)[0]


@pytest.mark.parametrize("command", ["report", "compare", "explain", "fit"])
def test_target_is_the_first_option_and_marked_as_required(command):
    options = [p for p in cli.commands[command].params if p.param_type_name == "option"]
    assert options[0].opts == ["--target"] and "Required" in options[0].help
