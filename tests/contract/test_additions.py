"""A new model is two files and one entry of the catalogue; a new engine one file and one line.

Each test copies the package to a temporary folder, adds files of `additions/` and the entry, and
uses the addition in a process of its own as users would.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import discriminant

ADDITIONS = Path(__file__).parent / "additions"

USE_MODEL = """
    import subprocess, sys, warnings
    import numpy as np
    import discriminant as dd
    from sklearn.utils.estimator_checks import check_estimator

    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(60, 3)), rng.normal(size=(60, 3)) + 2.0])
    y = np.repeat(["a", "b"], 60)
    model = getattr(dd, NAME)().fit(X, y)
    assert model.score(X, y) > 0.9

    # files
    model.save("model.bin")
    loaded = dd.load("model.bin")
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))

    # export to Python and to SQL, run by a real database
    import duckdb, pandas
    frame = pandas.DataFrame(X, columns=["u", "v", "w"])
    named = getattr(dd, NAME)().fit(frame, y)
    scope = {}
    exec(dd.export(named, to="python"), scope)
    rows = frame.to_dict("records")
    answers = [scope["predict"](row) for row in rows]
    classes = [answer[0] if isinstance(answer, tuple) else answer for answer in answers]
    assert classes == named.predict(frame).tolist()
    scores = duckdb.sql(dd.export(named, to="sql", table="frame", dialect="duckdb")).df()
    assert scores["label"].tolist() == named.predict(frame).tolist()

    # assessment and the models that wrap others
    held_out = dd.cross_validate(getattr(dd, NAME)(), X, y, 5)
    assert held_out.error < 0.1
    assert dd.OneVsRest(getattr(dd, NAME)()).fit(X, y).score(X, y) > 0.9

    # studies and the command line
    frame["y"] = y
    frame.to_csv("rows.csv", index=False)
    comparison = dd.study("rows.csv", target="y").compare([CANDIDATE, "lda"])
    assert CANDIDATE in str(comparison.to_dict())
    command = [sys.executable, "-m", "discriminant", "fit", "rows.csv", "--target", "y"]
    subprocess.run([*command, "--model", CANDIDATE, "--out", "fitted.model"], check=True)
    assert dd.load("fitted.model").predict(frame[["u", "v", "w"]]).tolist().count("a") > 50

    # the contract of scikit-learn
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(getattr(dd, NAME)())
"""

STUDENT = """
    Estimator(
        "StudentNB",
        "estimators.student_nb",
        "Naive Bayes with Student's t distribution",
        values={"StudentRule": "models.student"},
        candidates=(Candidate("student_nb", "Student naive Bayes", "has heavy tails"),),
    ),
"""

ADALINE = """
    Estimator(
        "Adaline",
        "estimators.linear.adaline",
        "Widrow and Hoff's adaptive linear neuron",
        candidates=(Candidate("adaline", "Adaline", "corrects its weights after every row"),),
    ),
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Copy of the package."""
    source = Path(discriminant.__file__).parent
    ignore = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(source, tmp_path / "copy" / "discriminant", ignore=ignore))


def test_model_from_moments_is_two_files_and_one_entry(package: Path) -> None:
    add(package, {"student_rule.py": "models/student.py", "student_nb.py": "estimators/"})
    insert(package / "catalog.py", "ESTIMATORS = (\n", STUDENT.lstrip("\n"))
    run(package, 'NAME, CANDIDATE = "StudentNB", "student_nb"', USE_MODEL)
    run(
        package,
        """
        import numpy as np
        import discriminant as dd

        X = np.random.default_rng(0).normal(size=(40, 2))
        y = np.repeat([0, 1], 20)
        model = dd.StudentNB().fit_moments(dd.moments(X[:30], y[:30]))
        model.partial_fit(X[30:], y[30:])
        np.testing.assert_allclose(model.means_, dd.StudentNB().fit(X, y).means_)
        """,
    )


def test_model_that_reads_rows_is_two_files_and_one_entry(package: Path) -> None:
    files = {"delta_steps.py": "models/linear/delta.py", "adaline.py": "estimators/linear/"}
    add(package, files)
    insert(package / "catalog.py", "ESTIMATORS = (\n", ADALINE.lstrip("\n"))
    run(package, 'NAME, CANDIDATE = "Adaline", "adaline"', USE_MODEL)


def test_engine_is_one_file_and_one_line(package: Path) -> None:
    add(package, {"chunks.py": "engines/"})
    line = '    "chunks": Engine("discriminant.engines.chunks"),\n'
    insert(package / "engines" / "dispatch.py", "ENGINES: Mapping[str, Engine] = {", line)
    run(
        package,
        """
        import numpy as np, pandas
        import discriminant as dd

        rng = np.random.default_rng(0)
        frame = pandas.DataFrame(rng.normal(size=(300, 3)), columns=["u", "v", "w"])
        frame["y"] = np.where(frame.u + rng.normal(size=300) > 0, "yes", "no")
        chunks = tuple(frame.iloc[lo : lo + 100] for lo in (0, 100, 200))

        rows = dd.rows(chunks, target="y")
        X = frame[["u", "v", "w"]]
        np.testing.assert_allclose(
            dd.LDA().fit(rows).coef_, dd.LDA().fit(X, frame.y).coef_, rtol=1e-12
        )
        np.testing.assert_allclose(
            dd.Logistic().fit(rows).coef_, dd.Logistic().fit(X, frame.y).coef_, rtol=1e-6
        )
        assert 0 < dd.cross_validate(dd.QDA(), rows).error < 0.5
        comparison = dd.study(chunks, target="y").compare(["lda", "logistic"])
        assert {"lda", "logistic"} == {model["name"] for model in comparison.to_dict()["models"]}
        """,
    )


def add(package: Path, files: dict[str, str]) -> None:
    for name, place in files.items():
        shutil.copy(ADDITIONS / name, package / place)


def insert(path: Path, mark: str, text: str) -> None:
    """Insert text below the line that begins with the mark."""
    lines = path.read_text().splitlines(keepends=True)
    (place,) = [k for k, line in enumerate(lines) if line.startswith(mark)]
    lines.insert(place + 1, text)
    path.write_text("".join(lines))


def run(package: Path, *code: str) -> None:
    """Run code with the copy of the package."""
    source = "\n".join(map(dedent, code))
    path = os.pathsep.join([str(package.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", source],
        cwd=package.parent.parent,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
