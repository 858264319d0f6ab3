"""--formula of fit, compare and report: the model of Python, and the errors of a formula."""

import io
import json
from contextlib import chdir, redirect_stderr, redirect_stdout

import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant.cli import run as command_line

RNG = np.random.default_rng(4)
N = 120
FRAME = pd.DataFrame(
    {
        "id": [f"r{i}" for i in range(N)],
        "age": RNG.integers(20, 60, N),
        "dose": RNG.uniform(1, 5, N).round(2),
        "group": np.array(["a", "b", "c"])[np.arange(N) % 3],
    }
)
FRAME["case"] = np.where(RNG.logistic(size=N) < np.log(FRAME["dose"]) - 0.8, "yes", "no")
FORMULA = "case ~ age + log(dose) * C(group, sum)"


@pytest.fixture
def place(tmp_path):
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path


def run(*args, cwd, code=0):
    out, err = io.StringIO(), io.StringIO()
    with chdir(cwd), redirect_stdout(out), redirect_stderr(err):
        found = command_line.run([str(arg) for arg in args])
    assert found == code, err.getvalue()
    return out.getvalue(), err.getvalue()


def test_fit_and_predict_are_those_of_python(place):
    fit = ("fit", "rows.csv", "--formula", FORMULA, "--model", "logistic_ml", "--out", "m.model")
    out, _ = run(*fit, cwd=place)
    assert "6 features" in out
    run("predict", "m.model", "rows.csv", "--out", "predicted.csv", cwd=place)
    predicted = pd.read_csv(place / "predicted.csv")
    model = dd.Logistic.from_formula(FORMULA, FRAME)
    np.testing.assert_allclose(predicted["p(yes)"], model.predict_proba(FRAME)[:, 1], rtol=1e-6)
    assert dd.load(place / "m.model").encoding_.features == model.encoding_.features
    out, _ = run("assess", "m.model", "rows.csv", "--json", cwd=place)
    assert json.loads(out)


def test_compare_and_report_use_the_features_of_the_formula(place):
    models = ("--models", "lda,logistic_ml", "--folds", "3")
    out, _ = run("compare", "rows.csv", "--formula", FORMULA, *models, "--json", cwd=place)
    assert json.loads(out)["chosen"] in ("lda", "logistic_ml")
    run("report", "rows.csv", "--formula", FORMULA, *models, "--out", "page.html", cwd=place)
    page = (place / "page.html").read_text()
    assert "log(dose)" in page and "C(group, sum)1" in page
    loaded = dd.load(place / "page.model")
    assert loaded.predict(FRAME).shape == (N,)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--formula", "case ~ agee"), "Did you mean 'age'?"),
        (("--formula", "case ~ age + system('ls')"), "'system' is not allowed"),
        (("--formula", "case ~ age", "--target", "group"), "target='group'"),
        (("--formula", "log(case) ~ age"), "is not a column"),
        (("--formula", "case ~ age - 1"), "with an intercept"),
        (("--formula", "case ~ age", "--engine", "files"), "--engine memory"),
        (("--formula", "case ~ age", "--missing", "mean"), "'error' or 'drop'"),
        (("--formula", "case ~ ."), "'id' in the formula has 120 levels; the limit is 100"),
    ],
)
def test_a_bad_formula_is_named(args, words, place):
    _, err = run("compare", "rows.csv", *args, cwd=place, code=2)
    assert words in " ".join(err.split())


def test_a_label_tree_has_no_formula(place):
    args = ("fit", "rows.csv", "--model", "label-tree", "--target", "case", "--out", "t.model")
    _, err = run(*args, "--formula", "~ age", cwd=place, code=2)
    assert "--formula applies only to other models" in " ".join(err.split())


def test_without_a_left_hand_side_the_target_names_the_response(place):
    fit = ("fit", "rows.csv", "--formula", "~ age + dose", "--target", "case", "--model", "lda")
    run(*fit, "--out", "m.model", cwd=place)
    assert dd.load(place / "m.model").encoding_.features == ("age", "dose")
