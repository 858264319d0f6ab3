"""What commands write where, what they say of it, and what rows they can do without."""

import io
import os
import re
import signal
from contextlib import chdir, redirect_stderr, redirect_stdout

import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant.cli import run as command_line, session
from discriminant.cli.commands import cli


def run(*args, cwd, code=0):
    """What a command says, on either channel."""
    said = io.StringIO()
    with chdir(cwd), redirect_stdout(said), redirect_stderr(said):
        found = command_line.run([str(arg) for arg in args])
    assert found == code, said.getvalue()
    return said.getvalue()


@pytest.fixture
def place(tmp_path):
    """A folder with some rows, and a model of them."""
    rng = np.random.default_rng(0)
    y = np.array(["no", "yes"])[np.arange(200) % 2]
    size = rng.normal(size=200) + (y == "yes")
    frame = pd.DataFrame({"size": size, "soil": rng.choice(["clay", "sand"], 200), "y": y})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    dd.save(dd.Encoded(dd.LDA()).fit(frame[["size", "soil"]], y), tmp_path / "fitted.model")
    return tmp_path


# --- what is written ------------------------------------------------------------------------------


def test_the_model_of_a_report_is_called_as_its_page(place):
    (place / "rows.model").write_text("of another run")
    args = ("report", "rows.csv", "--target", "y", "--models", "lda", "--folds", 3)
    run(*args, "--out", "other.html", cwd=place)
    assert (place / "other.model").exists()
    assert (place / "rows.model").read_text() == "of another run"


def test_a_file_that_is_written_over_is_told(place):
    args = ("moments", "rows.csv", "--target", "y", "--out", "m")
    first, second = run(*args, cwd=place), run(*args, cwd=place)
    assert "replacing" not in first
    assert "Written: m (moments), replacing the previous file" in second


def test_a_stop_tells_files_that_are_as_before_from_those_that_never_were(place, monkeypatch):
    (place / "old.csv").write_text("old")
    with chdir(place), redirect_stderr(io.StringIO()) as said:
        session.forget_outputs()
        session.track_output("old.csv")
        session.track_output("new.csv")
        command_line._stopped(signal.SIGINT, "discriminant ...", ["--checkpoint", "kept"])
    assert (
        "Unchanged: old.csv. Not written: new.csv. Checkpoint kept has no intermediate results"
        in (said.getvalue())
    )


def test_a_touched_file_is_told_by_its_time_and_not_by_a_count_of_nanoseconds(place):
    dd.rows(place / "rows.csv", target="y", checkpoint=place / "kept")
    os.utime(place / "rows.csv", ns=(0, 1_500_000_000_000_000_007))
    with pytest.raises(dd.errors.CheckpointError, match=r"is 2017-07-14T02:40:00\.000000007Z now"):
        dd.rows(place / "rows.csv", target="y", checkpoint=place / "kept")


# --- rows that cannot be answered as they are -----------------------------------------------------


def answered(place, text, *options, code=0):
    """What predict says of some rows, and its answers."""
    (place / "new.csv").write_text(f"size,soil\n{text}\n")
    said = run(
        "predict", "fitted.model", "new.csv", "--out", "a.csv", *options, cwd=place, code=code
    )
    return said if code else pd.read_csv(place / "a.csv")


@pytest.mark.parametrize("text", ["1.5,peat", "n.a.,clay"])
def test_predict_speaks_only_of_options_that_it_has(text, place):
    said = answered(place, text, code=2).partition("  in: ")[0]
    has = {name for one in cli.commands["predict"].params for name in one.opts}
    assert "--" in said and set(re.findall(r"--[a-z-]+", said)) <= has


def test_a_level_that_the_fit_did_not_have_need_not_end_the_work(place):
    found = answered(place, "1.5,peat\n1.5,clay", "--unseen", "reject")
    assert found["decision"].tolist()[0] == "REJECT" != found["decision"].tolist()[1]


def test_a_text_may_be_said_to_mean_missing(place):
    frame = pd.read_csv(place / "rows.csv")
    model = dd.Encoded(dd.LDA(), missing="mean").fit(frame[["size", "soil"]], frame["y"])
    dd.save(model, place / "fitted.model")
    found = answered(place, "n.a.,clay", "--missing-text", "n.a.")
    filled = pd.DataFrame({"size": [frame["size"].mean()], "soil": ["clay"]})
    assert found["p(yes)"][0] == pytest.approx(model.predict_proba(filled)[0, 1], rel=1e-9)


def test_an_export_to_javascript_is_written_as_text(place):
    run("export", "fitted.model", "--to", "javascript", "--out", "m.js", cwd=place)
    text = (place / "m.js").read_text()
    assert text == dd.export(dd.load(place / "fitted.model"), "javascript")
    assert 'export const columns = ["size", "soil"];' in text
