"""A run that is stopped, however, goes on where it was and gives the same to the last bit (F3)."""

import errno
import io
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import discriminant as dd
from discriminant.engines import checkpoint
from discriminant.engines.checkpoint import NotSerializableError, deserialize, digest, serialize
from discriminant.errors import CheckpointError, CheckpointWarning, WriteError
from discriminant.table.files import splits
from discriminant.table.survey import LevelSet
from tests.laws.kinds import KINDS
from tests.shared.blocks import random_rows

RUN = Path(__file__).parent / "slow_run.py"
PARTS = 40


def lay_rows(folder, rows=4000, seed=0):
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 3, rows)
    X = 5.0 + 0.7 * code[:, None] * [1, 0.5, 0, -1] + rng.normal(size=(rows, 4))
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=np.array(list("uvw"))[code])
    frame["kind"] = rng.choice(["p", "q"], rows)
    frame.to_parquet(folder / "rows.parquet", row_group_size=rows // PARTS)
    return folder / "rows.parquet"


def run(folder, model):
    """To the end: the bits of what was fitted, and how many parts were read for it."""
    words = [sys.executable, RUN, str(folder), model]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    bits, read = told.splitlines()[-1].split()[1:]
    return bits, int(read)


@cache
def uninterrupted(model):
    """The bits and the number of parts read, without a checkpoint."""
    with tempfile.TemporaryDirectory() as folder:
        lay_rows(Path(folder))
        return run(folder, f"{model}-plain")


def stopped(folder, model, after, by):
    """Stopped by a signal after so many parts; how many were read."""
    words = [sys.executable, RUN, str(folder), model, "0.01"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        read = 0
        for line in process.stdout:
            if line.startswith("read"):
                read = int(line.split()[1])
            if read == after:
                process.send_signal(by)
                break
        process.stdout.read()
    return process.returncode


@pytest.mark.parametrize(
    ("model", "by"),
    [
        ("moments", signal.SIGTERM),
        ("logistic", signal.SIGINT),
        pytest.param("moments", signal.SIGINT, marks=pytest.mark.slow),
        pytest.param("logistic", signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_a_run_that_is_told_to_stop_loses_nothing(model, by, tmp_path):
    lay_rows(tmp_path)
    wanted, whole = uninterrupted(model)
    assert stopped(tmp_path, model, 55, by) != 0
    found, read = run(tmp_path, model)
    assert found == wanted
    assert read <= whole - 53  # parts that were done are not read again


@pytest.mark.parametrize("model", ["moments", "logistic"])
def test_a_run_that_is_killed_gives_the_same_bits_when_it_is_run_again(model, tmp_path):
    lay_rows(tmp_path)
    wanted, whole = uninterrupted(model)
    for after in (13, 37):
        assert stopped(tmp_path, model, after, signal.SIGKILL) == -signal.SIGKILL
    found, read = run(tmp_path, model)
    assert found == wanted
    assert read < whole - PARTS  # though what was read in the last moments is read again


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(0, id="SIGINT", marks=pytest.mark.slow),
        pytest.param(1, id="SIGTERM", marks=pytest.mark.slow),
        pytest.param(2, id="SIGKILL"),
    ],
)
def test_so_it_does_when_stopped_at_some_moment(seed, tmp_path):
    lay_rows(tmp_path)
    wanted, whole = uninterrupted("logistic")
    stopped_anywhere(tmp_path, whole, np.random.default_rng(seed), SIGNALS[seed])
    assert run(tmp_path, "logistic")[0] == wanted


@pytest.mark.slow
def test_so_it_does_when_stopped_at_any_of_fifty_moments(tmp_path, request):
    rng = np.random.default_rng(0)
    lay_rows(tmp_path)
    wanted, whole = uninterrupted("logistic")
    for k in range(request.config.getoption("--kills") or 50):
        stopped_anywhere(tmp_path, whole, rng, SIGNALS[k % 3])
        assert run(tmp_path, "logistic")[0] == wanted, k
        shutil.rmtree(tmp_path / "kept")


def stopped_anywhere(folder, whole, rng, by):
    stopped(folder, "logistic", int(rng.integers(1, whole)), by)


def test_what_is_under_way_is_kept_every_few_seconds(tmp_path, monkeypatch):
    monkeypatch.setattr(splits, "SMALL", 1)
    monkeypatch.setattr(checkpoint, "_INTERVAL", 0.0)
    monkeypatch.setattr(checkpoint, "_MIN_WORK", 0)
    path, seen = lay_rows(tmp_path), []

    def progress(done, whole):
        seen.append(len(list((tmp_path / "kept").glob("*.begun"))))

    dd.rows(path, target="y", exclude=["kind"], checkpoint=tmp_path / "kept", progress=progress)
    assert sum(seen) >= PARTS - 2
    assert not list((tmp_path / "kept").glob("*.begun"))


def test_a_checkpoint_of_other_rows_is_refused_and_kept(tmp_path):
    path = lay_rows(tmp_path)
    dd.rows(path, target="y", checkpoint=tmp_path / "kept")
    lay_rows(tmp_path, seed=1)
    with pytest.raises(CheckpointError, match=r"of another run: the (size|time of the last)"):
        dd.rows(path, target="y", checkpoint=tmp_path / "kept")
    assert (tmp_path / "kept" / "journal.json").exists()


def test_a_checkpoint_of_another_version_is_refused(tmp_path, monkeypatch):
    path = lay_rows(tmp_path)
    dd.rows(path, target="y", checkpoint=tmp_path / "kept")
    monkeypatch.setattr(checkpoint, "version", lambda name: "99.0")
    with pytest.raises(CheckpointError, match=r"discriminant's version was .*, and is 99\.0 now"):
        dd.rows(path, target="y", checkpoint=tmp_path / "kept")


def test_a_folder_that_is_no_checkpoint_is_left_alone(tmp_path):
    path = lay_rows(tmp_path)
    with pytest.raises(CheckpointError, match="exists and is not a checkpoint"):
        dd.rows(path, target="y", checkpoint=tmp_path)


def test_a_damaged_checkpoint_is_named(tmp_path):
    path = lay_rows(tmp_path)
    dd.rows(path, target="y", checkpoint=tmp_path / "kept")
    for kept in (tmp_path / "kept").glob("*.sum"):
        kept.write_bytes(kept.read_bytes()[:-40])
    with pytest.raises(CheckpointError, match=r"\.sum is damaged"):
        dd.rows(path, target="y", checkpoint=tmp_path / "kept")


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "null",
        "5",
        '"text"',
        "{}",
        '{"format": 1, "versions": [], "files": []}',
        '{"format": 1, "versions": {}, "files": 5}',
        '{"format": 1, "versions": {}, "files": [[]]}',
        "[" * 100_000,
    ],
    ids=lambda content: content[:30],
)
def test_journal_of_other_content_is_damaged(tmp_path, content):
    path = lay_rows(tmp_path)
    dd.rows(path, target="y", checkpoint=tmp_path / "kept")
    (tmp_path / "kept" / "journal.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"journal\.json is damaged .*Remove it"):
        dd.rows(path, target="y", checkpoint=tmp_path / "kept")


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "5",
        "null",
        "[" * 100_000,
        '{"facts": {}, "value": {"class": "discriminant.none:X"}}',
        '{"facts": {}, "value": {"array": 7}}',
        '{"facts": {}, "value": {"class": 5}}',
    ],
    ids=lambda text: text[:60],
)
def test_sum_of_other_content_is_damaged(text):
    file = io.BytesIO()
    np.savez(file, text=np.frombuffer(text.encode(), dtype=np.uint8))
    with pytest.raises(ValueError, match="Error"):
        deserialize(file.getvalue())


@pytest.mark.parametrize("left", [".journal.json.0a1b2c3d", ".journal.json.3f0a9c-0a1b2c3d.tmp"])
def test_checkpoint_of_a_temporary_file_alone_is_resumed(tmp_path, left):
    """A run was killed before its journal took its name."""
    path, folder = lay_rows(tmp_path), tmp_path / "kept"
    folder.mkdir()
    (folder / left).write_text('{"for')
    kept = dd.rows(path, target="y", checkpoint=folder).moments
    assert np.array_equal(kept.mean, dd.rows(path, target="y").moments.mean)


def test_special_file_is_no_checkpoint(tmp_path):
    with pytest.raises(CheckpointError, match="exists and is not a checkpoint"):
        dd.rows(lay_rows(tmp_path), target="y", checkpoint="/dev/null")


def test_other_wishes_are_other_work(tmp_path):
    path = lay_rows(tmp_path)
    options = {"target": "y", "checkpoint": tmp_path / "kept"}
    dd.rows(path, **options)
    found = dd.rows(path, exclude=["a"], **options).moments
    assert np.array_equal(found.scatter, dd.rows(path, target="y", exclude=["a"]).moments.scatter)


def test_a_completed_checkpoint_is_gone(tmp_path):
    rows = dd.rows(lay_rows(tmp_path), target="y", checkpoint=tmp_path / "kept")
    rows.complete()
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_every_summary_comes_back_with_every_bit(kind):
    summary = kind.read(random_rows(3))
    again, _ = deserialize(serialize(summary, {}))
    assert type(again) is type(summary)
    assert digest(again) == digest(summary)


def test_a_file_that_names_another_class_is_refused():
    told = {"facts": {}, "value": {"class": "subprocess:Popen", "fields": {"args": ["true"]}}}
    file = io.BytesIO()
    np.savez(file, text=np.frombuffer(json.dumps(told).encode(), dtype=np.uint8))
    with pytest.raises(ValueError, match="subprocess is not part of this package"):
        deserialize(file.getvalue())


# --- what has a name, and what has none -----------------------------------------------------------


def pipeline_of(turn):
    return make_pipeline(FunctionTransformer(turn), LogisticRegression())


def test_two_works_that_differ_in_their_code_alone_have_two_sums(tmp_path):
    path, frame = lay_rows(tmp_path), pd.read_parquet(tmp_path / "rows.parquet")
    X, y = frame[list("abcd")].to_numpy(), frame["y"].to_numpy()
    rows = dd.rows(path, target="y", exclude=["kind"], checkpoint=tmp_path / "kept")
    models = [pipeline_of(turn) for turn in (lambda X: X, lambda X: -X)]
    for model in models:
        model.named_steps["logisticregression"].fit(X, y)
    found = [dd.evaluate(model, rows).error for model in models]
    wanted = [np.mean(model.predict(X) != y) for model in models]
    assert found == pytest.approx(wanted) and found[0] != found[1]


class Shifted:
    """Holds a number, and answers by it."""

    def __init__(self, by):
        self.by = by

    def __call__(self, X):
        return X + self.by

    def answers(self, X):
        return X + self.by


def shifted(by):
    def inner(X, times=by):
        return X * times

    return inner


DIFFERENT = {
    "code": (lambda X: X, lambda X: -X),
    "numbers in the code": (lambda X: X + 1, lambda X: X + 2),
    "defaults": (shifted(1), shifted(2)),
    "what a method is bound to": (Shifted(1).answers, Shifted(2).answers),
    "objects": (Shifted(1), Shifted(2)),
    "arguments given before": (partial(max, 1), partial(max, 2)),
    "functions of a library": (np.log, np.exp),
    "code within": (lambda X: [x for x in X if x > 1], lambda X: [x for x in X if x > 2]),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_what_answers_differently_has_another_name(what):
    one, other = DIFFERENT[what]
    assert digest(one) != digest(other) and digest(one) == digest(one)


def test_what_is_around_a_function_is_in_its_name():
    around = {"by": 1}
    exec("def f(X): return X + by", around)
    before = digest(around["f"])
    around["by"] = 2
    assert digest(around["f"]) != before


@pytest.mark.parametrize("thing", [threading.Lock(), (x for x in "ab")], ids=["lock", "generator"])
def test_what_cannot_be_looked_into_has_no_name(thing):
    with pytest.raises(NotSerializableError):
        digest(thing)


def test_sums_without_a_name_are_not_kept_and_that_is_said(tmp_path):
    path, frame = lay_rows(tmp_path), pd.read_parquet(tmp_path / "rows.parquet")
    rows = dd.rows(path, target="y", exclude=["kind"], checkpoint=tmp_path / "kept")
    kept = sorted((tmp_path / "kept").iterdir())
    model = dd.LDA().fit(frame[list("abcd")], frame["y"])
    model.lock_ = threading.Lock()
    with pytest.warns(CheckpointWarning, match="Sums that involve a lock are not stored"):
        found = dd.evaluate(model, rows).error
    assert found == pytest.approx(np.mean(model.predict(frame[list("abcd")]) != frame["y"]))
    assert sorted((tmp_path / "kept").iterdir()) == kept


def test_a_full_disk_does_not_end_the_run(tmp_path, monkeypatch):
    path = lay_rows(tmp_path)
    wanted = dd.rows(path, target="y").moments
    real = checkpoint.atomic_write_bytes

    def full(place, content):
        if str(place).endswith((".begun", ".sum")):
            raise WriteError.no_room(place, len(content), 0, OSError(errno.ENOSPC, "full"))
        real(place, content)

    monkeypatch.setattr(checkpoint, "atomic_write_bytes", full)
    with pytest.warns(CheckpointWarning, match="cannot be written") as told:
        found = dd.rows(path, target="y", checkpoint=tmp_path / "kept").moments
    assert np.array_equal(found.scatter, wanted.scatter) and len(told) == 1


def test_levels_of_a_column_of_folds_are_kept():
    value = LevelSet(frozenset(["b", "a"]), 10)
    assert deserialize(serialize(value, {}))[0] == value
