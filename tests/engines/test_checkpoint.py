"""A run that is stopped, however, goes on where it was and gives the same to the last bit (F3)."""

import io
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant.engines import checkpoint
from discriminant.engines.keeping import digest, packed, unpacked
from discriminant.errors import CheckpointError
from discriminant.table import file_parts
from tests.blocks import random_rows
from tests.laws.kinds import KINDS

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


@pytest.mark.parametrize("model", ["moments", "logistic"])
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_told_to_stop_loses_nothing(model, by, tmp_path):
    lay_rows(tmp_path)
    wanted, whole = run(tmp_path, f"{model}-plain")
    assert stopped(tmp_path, model, 55, by) != 0
    found, read = run(tmp_path, model)
    assert found == wanted
    assert read <= whole - 53  # parts that were done are not read again


@pytest.mark.parametrize("model", ["moments", "logistic"])
def test_a_run_that_is_killed_gives_the_same_bits_when_it_is_run_again(model, tmp_path):
    lay_rows(tmp_path)
    wanted, whole = run(tmp_path, f"{model}-plain")
    for after in (13, 20, 37):
        assert stopped(tmp_path, model, after, signal.SIGKILL) == -signal.SIGKILL
    found, read = run(tmp_path, model)
    assert found == wanted
    assert read < whole - PARTS  # though what was read in the last moments is read again


@pytest.mark.slow
def test_so_it_does_when_stopped_at_any_moment(tmp_path, request):
    rng = np.random.default_rng(0)
    lay_rows(tmp_path)
    wanted, whole = run(tmp_path, "logistic-plain")
    for _ in range((request.config.getoption("--kills") or 60) // 20):
        stopped(tmp_path, "logistic", int(rng.integers(1, whole)), signal.SIGINT)
        assert run(tmp_path, "logistic")[0] == wanted
        shutil.rmtree(tmp_path / "kept")


def test_what_is_under_way_is_kept_every_few_seconds(tmp_path, monkeypatch):
    monkeypatch.setattr(file_parts, "SMALL", 1)
    monkeypatch.setattr(checkpoint, "_EVERY", 0.0)
    monkeypatch.setattr(checkpoint, "_SHARE", 0)
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
    with pytest.raises(CheckpointError, match="is there and is no checkpoint"):
        dd.rows(path, target="y", checkpoint=tmp_path)


def test_a_damaged_checkpoint_is_named(tmp_path):
    path = lay_rows(tmp_path)
    dd.rows(path, target="y", checkpoint=tmp_path / "kept")
    for kept in (tmp_path / "kept").glob("*.sum"):
        kept.write_bytes(kept.read_bytes()[:-40])
    with pytest.raises(CheckpointError, match=r"\.sum is damaged"):
        dd.rows(path, target="y", checkpoint=tmp_path / "kept")


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
    again, _ = unpacked(packed(summary, {}))
    assert type(again) is type(summary)
    assert digest(again) == digest(summary)


def test_a_file_that_names_another_class_is_refused():
    told = {"facts": {}, "value": {"class": "subprocess:Popen", "fields": {"args": ["true"]}}}
    file = io.BytesIO()
    np.savez(file, text=np.frombuffer(json.dumps(told).encode(), dtype=np.uint8))
    with pytest.raises(ValueError, match="subprocess is not of this package"):
        unpacked(file.getvalue())
