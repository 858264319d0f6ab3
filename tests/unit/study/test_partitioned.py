"""A study of rows that are not in memory: what it reads, what it draws, and what it says."""

import json
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression

import discriminant as dd
from discriminant.cli.run import run
from discriminant.engines import available_memory, dispatch
from discriminant.engines.partitioned_table import PartitionedTable
from discriminant.errors import EngineError, OptionError, SampledRowsWarning, TargetError
from discriminant.study import progress
from discriminant.table.memory import Table

NAMES = ["p", "q", "r"]
QUICK = ["lda", "qda", "rda", "logistic", "svm"]


def table(rows=2400, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    code = rng.integers(0, classes, rows)
    frame = pd.DataFrame(rng.normal(size=(rows, 3)) + 0.8 * code[:, None], columns=NAMES)
    frame["site"] = rng.choice(["north", "south", "west"], rows)
    return frame.assign(kind=np.array(list("abc"))[code])


def laid(frame, folder, files=4):
    """A folder of Parquet files, each of several row groups."""
    folder.mkdir(exist_ok=True)
    for number, piece in enumerate(np.array_split(np.arange(len(frame)), files)):
        some = pa.Table.from_pandas(frame.iloc[piece], preserve_index=False)
        pq.write_table(some, folder / f"{number}.parquet", row_group_size=150)
    return folder


@pytest.fixture
def few_drawn(monkeypatch):
    """Of a table some 400 rows are drawn."""
    monkeypatch.setattr(dispatch, "_SAMPLE_ROWS", 400)
    monkeypatch.setattr("discriminant.assessment.resampling.folds._SAMPLE_ROWS", 400)
    monkeypatch.setattr("discriminant.table.files.splits.SMALL", 1)


# --- which way a source goes ---------------------------------------------------------------------


def test_a_small_file_is_read_into_memory_and_a_large_one_in_parts(tmp_path, monkeypatch):
    file = tmp_path / "rows.csv"
    table().to_csv(file, index=False)
    assert isinstance(dd.study(file, target="kind").rows, Table)
    monkeypatch.setattr(available_memory, "SMALL_FILE", 1000)
    monkeypatch.setattr(available_memory, "free_memory", lambda: 8000)
    found = dd.study(file, target="kind")
    assert isinstance(found.rows, PartitionedTable) and "in partitions (files)" in " ".join(
        found.opened.notes
    )
    assert isinstance(dd.study(file, target="kind", engine="memory").rows, Table)


@pytest.mark.parametrize("form", ["folder", "glob", "list", "rows", "engine"])
def test_several_files_are_read_in_parts_whatever_names_them(form, tmp_path):
    folder = laid(table(), tmp_path / "rows")
    source = {
        "folder": folder,
        "glob": str(folder / "*.parquet"),
        "list": sorted(folder.iterdir()),
        "rows": dd.rows(folder, target="kind", exclude=["site"]),
        "engine": folder,
    }[form]
    more = {"engine": "files"} if form == "engine" else {}
    reading = {} if form == "rows" else {"exclude": ["site"]}
    found = dd.study(source, target="kind", **more, **reading)
    assert len(found.rows) == 2400 and isinstance(found.rows, PartitionedTable)
    assert found.model("lda").classes_.tolist() == ["a", "b"]


@pytest.mark.parametrize("how", ["url", "query", "connection", "fragment"])
def test_a_database_is_named_by_a_url_with_a_table_or_a_query(how, tmp_path):
    frame = table(300)
    file = tmp_path / "rows.db"
    with sqlite3.connect(file) as connection:
        frame.to_sql("people", connection, index=False)
    url = f"sqlite:///{file}"
    source, more = {
        "url": (url, {"table": "people"}),
        "query": (url, {"query": "SELECT p, q, kind FROM people"}),
        "connection": (dd.sql(sqlite3.connect(file), "people"), {}),
        "fragment": (f"{url}#people", {}),
    }[how]
    found = dd.study(source, target="kind", **more)
    assert len(found.rows) == 300
    assert found.source == ("query" if how == "query" else "people")


def test_what_cannot_be_is_said_before_there_is_work(tmp_path):
    folder = laid(table(), tmp_path / "rows")
    with pytest.raises(EngineError, match="not one of sql, spark, dask, files, memory"):
        dd.study(folder, target="kind", engine="abacus")
    with pytest.raises(OptionError, match="one file"):
        dd.study(folder, target="kind", engine="memory")
    with pytest.raises(OptionError, match="'kind'"):
        dd.study(dd.rows(folder, target="kind"), target="p")
    with pytest.raises(TargetError, match="no column 'nowhere'"):
        dd.study(folder, target="kind", folds="nowhere")
    with pytest.raises(OptionError, match="from 2"):
        dd.study(folder, target="kind", folds=1)


# --- all rows, and those drawn -------------------------------------------------------------------


@pytest.mark.usefixtures("few_drawn")
def test_models_made_from_moments_are_measured_on_all_rows_though_few_are_drawn(tmp_path):
    frame = table()
    found = dd.study(laid(frame, tmp_path / "rows"), target="kind", folds="site").compare(["lda"])
    held = dd.cross_validate(dd.LDA(), frame[NAMES], frame["kind"], groups=frame["site"])
    facts = found["lda"].facts
    assert facts["error"] == held.error
    assert facts["log_loss"] == pytest.approx(held.log_loss, rel=1e-12)
    wanted = dd.auc(frame["kind"], held.log_posterior @ [-1.0, 1.0])
    ends = facts["auc_low"], facts["auc"], facts["auc_high"]
    assert ends == pytest.approx((wanted.low, wanted.value, wanted.high), rel=1e-12)


@pytest.mark.usefixtures("few_drawn")
def test_models_that_read_rows_are_fitted_to_drawn_ones_and_scored_on_all(tmp_path):
    frame = table()
    study = dd.study(laid(frame, tmp_path / "rows"), target="kind", folds="site")
    one = study.compare(["logistic", "svm"])["logistic"]
    assert "rows of each training set" in one.facts["note"]
    run = study._get_run()
    said = np.empty(len(frame), dtype=object)
    for f, site in enumerate(sorted(frame["site"].unique())):
        own = run.in_memory.fold != f
        some = np.asarray(run.table.features[:])[own], run.table.codes[own]
        model = dd.Logistic(ridge=1e-4).fit(some[0], np.array(["a", "b"])[some[1]])
        rows = (frame["site"] == site).to_numpy()
        said[rows] = model.predict(frame.loc[rows, NAMES].to_numpy())
    assert one.facts["error"] == pytest.approx((said != frame["kind"]).mean())


@pytest.mark.usefixtures("few_drawn")
def test_the_report_says_which_rows_it_shows(tmp_path):
    study = dd.study(laid(table(), tmp_path / "rows"), target="kind", exclude=["site"])
    study.compare(QUICK)
    facts = study.report(tmp_path / "page.html", save=tmp_path / "rows.model")
    assert facts["read"]["rows"] == sum(one["rows"] for one in facts["read"]["classes"]) == 2400
    assert "of the 2,400 rows" in facts["decision"]["drawn"]
    assert any("of the 2,400 rows" in note for note in facts["space"]["notes"])
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert "of the 2,400 rows" in (tmp_path / "page.html").read_text()
    assert dd.load(tmp_path / "rows.model").predict(table(5)).shape == (5,)


@pytest.mark.usefixtures("few_drawn")
def test_logistic_is_fitted_to_all_rows_and_support_vectors_say_to_how_many(tmp_path):
    frame = table()
    study = dd.study(laid(frame, tmp_path / "rows"), target="kind", exclude=["site"])
    ours = study.model("logistic_ml").predict_proba(frame)[:, 1]
    theirs = LogisticRegression(C=np.inf, tol=1e-10).fit(frame[NAMES], frame["kind"])
    np.testing.assert_allclose(ours, theirs.predict_proba(frame[NAMES])[:, 1], atol=1e-5)
    study.model("svm")
    told = [one for one in study.warnings if isinstance(one, SampledRowsWarning)]
    assert "of the 2,400" in str(told[0])


def test_mistakes_are_paired_by_weight_in_memory_and_in_parts(tmp_path):
    frame = table().assign(w=np.arange(2400) % 3 + 1.0)
    more = {"target": "kind", "weight": "w", "folds": "site"}
    ours = dd.study(laid(frame, tmp_path / "rows"), **more).compare(["lda", "qda"])
    theirs = dd.study(frame, **more).compare(["lda", "qda"])
    right = [one.predictions.decided == one.predictions.codes for one in theirs.results]
    both = frame["w"][right[0] & right[1]].sum()
    assert ours.both_correct[0, 1] == theirs.both_correct[0, 1] == both


def test_a_column_of_folds_is_no_feature_and_keeps_to_rows_that_are_kept(tmp_path):
    frame = table()
    frame.loc[::7, "p"] = np.nan
    more = {"target": "kind", "folds": "site", "missing": "drop"}
    ours = dd.study(laid(frame, tmp_path / "rows"), **more)
    theirs = dd.study(frame, **more)
    assert ours.rows.schema.features == theirs.rows.schema.features == tuple(NAMES)
    found, wanted = ours.compare(["lda"])["lda"].facts, theirs.compare(["lda"])["lda"].facts
    assert found["error"] == wanted["error"]


def test_progress_tells_rows_a_second_and_the_time_left(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "_INTERVAL", 0.0)
    monkeypatch.setattr("discriminant.table.files.splits.SMALL", 1)
    told = []
    study = dd.study(
        laid(table(), tmp_path / "rows"), target="kind", progress=lambda *one: told.append(one)
    )
    study.compare(["lda"])
    rows = [what for what, done, _ in told if done == -1]
    assert any(what.startswith("scoring: ") and what.endswith(" left") for what in rows)
    assert any("of 2,400 rows" in what for what in rows)


# --- the command line ----------------------------------------------------------------------------


def said(capsys, *args):
    code = run([*map(str, args), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_commands_take_several_files_folders_and_globs(tmp_path, capsys):
    frame = table()
    folder = laid(frame, tmp_path / "rows")
    files = sorted(folder.iterdir())
    model = tmp_path / "lda.model"
    for source in ([folder], [folder / "*.parquet"], files):
        code, found = said(
            capsys, "fit", *source, "--target", "kind", "--model", "lda", "--out", model
        )
        assert code == 0 and found["rows"] == 2400
    _, found = said(capsys, "assess", model, *files)
    wanted = dd.evaluate(dd.load(model), frame, frame["kind"])
    assert found["rows"] == 2400
    assert found["confusion"] == wanted.to_dict()["confusion"]
    _, found = said(capsys, "predict", model, *files, "--out", tmp_path / "said.csv")
    assert found["rows"] == 2400
    place = tmp_path / "rows.moments"
    said(capsys, "moments", folder, "--target", "kind", "--exclude", "site", "--out", place)
    whole = dd.moments(frame[NAMES], frame["kind"])
    np.testing.assert_allclose(dd.load(place).means, whole.means, rtol=1e-13)


def test_commands_read_databases_and_never_show_a_password(tmp_path, capsys):
    with sqlite3.connect(tmp_path / "rows.db") as connection:
        table().to_sql("people", connection, index=False)
    url = f"sqlite:///{tmp_path}/rows.db"
    code, found = said(
        capsys, "compare", url, "--table", "people", "--target", "kind", "--models", "lda,qda"
    )
    assert code == 0 and found["comparison"]["rows"] == 2400
    args = ["compare", "postgresql://ann:secret@127.0.0.1:1/db", "--table", "t", "--target", "y"]
    assert run(args) == 2
    told = capsys.readouterr()
    assert "secret" not in told.err + told.out and "ann:***@" in told.err


def test_a_report_that_was_stopped_goes_on_from_its_checkpoint(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("discriminant.table.files.splits.SMALL", 1)
    folder = laid(table(6000), tmp_path / "rows", files=8)
    kept = tmp_path / "kept"
    args = ["report", str(folder), "--target", "kind", "--checkpoint", str(kept)]
    args += ["--facts", str(tmp_path / "facts.json"), "--models", "lda,qda", "--json"]
    slow = (
        "import sys, time\n"
        "from discriminant.table.files import splits\n"
        "splits.SMALL = 1\n"
        "from discriminant.engines.summation import ReadingTask\n"
        "call = ReadingTask.__call__\n"
        "ReadingTask.__call__ = lambda self, part: (time.sleep(0.3), call(self, part))[1]\n"
        "from discriminant.cli import main\n"
        "main(sys.argv[1:])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", slow, *args],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 60
    while not any(kept.glob("*.sum")) and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(1.0)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143 and "to resume" in err
    assert f"--checkpoint {kept}" in err.split("rerun: ")[1]
    assert any(kept.glob("*.sum"))
    assert run(args) == 0 and not kept.exists()
    resumed = json.loads(capsys.readouterr().out)["comparison"]["models"]
    whole = [arg for arg in args if arg not in ("--checkpoint", str(kept))]
    assert run(whole) == 0
    models = json.loads(capsys.readouterr().out)["comparison"]["models"]
    assert [untimed(one) for one in resumed] == [untimed(one) for one in models]  # to the last bit
    compared = dd.study(folder, target="kind").compare(["lda", "qda"]).to_dict()["models"]
    for name in ("name", "error", "log_loss", "auc", "brier", "calibration"):
        assert [one[name] for one in resumed] == [one[name] for one in compared]


def untimed(facts):
    return {name: value for name, value in facts.items() if name != "seconds"}
