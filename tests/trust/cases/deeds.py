"""Bad input that takes more than a file and a command: what is done, and what must come of it.

Each takes a folder as `running.prepare` leaves it, and fails with what was found instead.
"""

import csv as csv_module
import os
import re
import signal
import subprocess
import sys

import pytest

from discriminant import open_source, store
from discriminant.errors import FileError, WriteError
from discriminant.store.container import lock_for_writing
from discriminant.table import load
from tests.trust.cases.running import GOOD, call, small_files, state
from tests.trust.cases.tables import csv
from tests.unit.report.test_html import Tags

NAMES = [  # of files that somebody sends
    "<img src=x onerror=document.title='owned'>.csv",
    '"><svg onload=document.title=1>.csv',
    "{{7*7}}.csv",
    "{% for x in y %}.csv",
    "\x1b[2J\x1b[1;31mError.csv",
    "\u202evsc.exe",
    "a\nError: all is lost.csv",
    "C:\\x.csv",
    "CON.csv",
    "'; DROP TABLE t;--.csv",
    "$(touch owned).csv",
    "`touch owned`.csv",
    "\udcff.csv",
    "=cmd|' !A0.csv",
    "x" * 230 + ".csv",
]


def columns_in_another_order_give_the_same_answers(folder):
    GOOD[["y", "c", "b", "a"]].to_csv(folder / "t.csv", index=False)
    for name in ("good", "t"):
        assert call(f"predict good.model {name}.csv --out {name}.txt", folder).code == 0
    texts = [(folder / f"{name}.txt").read_text().splitlines() for name in ("good", "t")]
    same, turned = (list(csv_module.DictReader(lines)) for lines in texts)
    assert same == [{name: row[name] for name in same[0]} for row in turned]


def a_file_that_changes_while_it_is_read(folder):
    path, read = folder / "t.csv", load._read_file
    path.write_text(csv())

    def meddled(*args):
        path.write_text(csv() + "1,2,p\n")
        return read(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(load, "_read_file", meddled)
        found = call("fit t.csv --target y --model lda --out out.model", folder)
    assert found.code == 2
    assert re.search(r"t\.csv changed while .* \(\d+ bytes before, \d+ after.*copy", found.stderr)
    assert (folder / "out.model").read_bytes() == b"old"


def names_of_files_are_shown_and_do_nothing(folder):
    plain = call("report good.csv --target y --models lda,qda", folder)
    known = set(Tags((folder / "good.html").read_text()).tags)
    for name in NAMES:
        (folder / name).write_bytes((folder / "good.csv").read_bytes())
        found = call(["report", name, "--target", "y", "--models", "lda,qda"], folder)
        assert found.code == 0, (name, found.stderr)
        assert all(c.isprintable() or c == "\n" for c in found.all), name
        assert len(found.stdout.splitlines()) == len(plain.stdout.splitlines()), name
        page = (folder / f"{name.removesuffix('.csv').removesuffix('.exe')}.html").read_text()
        assert set(Tags(page).tags) <= known, name
    assert not (folder / "owned").exists()


def a_way_out_of_the_folder_is_not_taken(folder):
    inner = folder / "in"
    inner.mkdir()
    before = state(folder)
    assert call("report ../good.csv --target y --models lda,qda", inner).code == 0
    assert sorted(os.listdir(inner)) == ["good.html", "good.model"]
    assert {name: v for name, v in state(folder).items() if name != "in"} == {
        name: v for name, v in before.items() if name != "in"
    }


def a_name_that_no_file_can_have(folder):
    before = state(folder)
    for name, words in {"x" * 300: "too long", "../../x": "no such file"}.items():
        found = call(["fit", name, "--target", "y", "--model", "lda", "--out", "out.model"], folder)
        assert (found.code, words in found.stderr) == (2, True), found.stderr
    long = call(f"fit good.csv --target y --model lda --out {'x' * 300}", folder)
    assert (long.code, "cannot be written: " in long.stderr) == (2, True), long.stderr
    with pytest.raises(WriteError, match=r"'a\\x00b' cannot be written: .*Choose another name"):
        store.check_writable("a\0b")
    with pytest.raises(FileError, match="null byte"):
        open_source("a\0b", target="y")
    assert state(folder) == before


def names_in_sql_are_quoted(folder):
    odd = GOOD.rename(columns={"a": 'a"; DROP TABLE t;--', "b": "it's"})
    odd.assign(y=odd.y.replace("p", "p'; DROP TABLE t;--")).to_csv(folder / "t.csv", index=False)
    assert call("fit t.csv --target y --model lda --out odd.model", folder).code == 0
    for dialect in ("duckdb", "postgres", "sqlite"):
        found = call(f"export odd.model --to sql --dialect {dialect} --table t --quiet", folder)
        assert (found.code, '"a""; DROP TABLE t;--"' in found.stdout) == (0, True)
        assert "'p''; DROP TABLE t;--'" in found.stdout


def numbers_with_a_decimal_comma_are_no_formulas(folder):
    (folder / "t.csv").write_text(csv(sep=";", dec=","))
    assert call("fit t.csv --target y --model lda --out t.model", folder).code == 0
    assert call("predict t.model t.csv --out t.txt", folder).code == 0
    assert ";-0,132;" in (folder / "t.txt").read_text()


def an_export_that_cannot_be_names_the_part(folder):
    before = state(folder)
    for to in ("sql", "onnx", "python"):
        found = call(f"export rest.model --to {to} --out out.sql", folder)
        assert found.code == 2
        assert re.search(r"The probabilities of OneVsRest.*outputs=", found.stderr), found.stderr
        assert state(folder) == before


FULL = {  # command, bytes of disk that are left to it
    "a model": ("fit good.csv --target y --model lda --out out.model", 1000),
    "moments": ("moments good.csv --target y --out out.moments", 1000),
    "answers": ("predict good.model good.csv --out out.csv", 1000),
    "a page": ("report good.csv --target y --models lda,qda --no-model --out out.html", 1000),
    "SQL": ("export good.model --to sql --out out.sql", 100),
}


def a_disk_that_is_full(folder):
    before = state(folder)
    for what, (line, room) in FULL.items():
        with small_files(room):
            found = call(line, folder)
        assert found.code == 2, what
        assert re.search(
            r"No space for \S+: it needs .*[\d,]+ bytes.*unchanged.*Free some space", found.stderr
        )
        assert state(folder) == before, what


def a_folder_that_cannot_be_written_is_told_before_the_work(folder):
    before = state(folder)
    lines = [line for line, _ in FULL.values()]
    for place in ("none/x", "good.csv/x", "/proc/x", "/dev/full/x"):
        for line in lines:
            found = call(re.sub(r"--out \S+", f"--out {place}", line), folder)
            words = rf"{place.rpartition('/')[2]} cannot be written: folder .*Choose another folder"
            assert (found.code, bool(re.search(words, found.stderr))) == (2, True), found.stderr
            assert "reading" not in found.stderr
    assert state(folder) == before


def a_second_writer_is_told_who_is_the_first(folder):
    with lock_for_writing(folder / "out.model"):
        found = call("fit good.csv --target y --model lda --out out.model", folder)
    assert (found.code, "reading" in found.stderr) == (2, False)
    assert f"out.model is locked by pid {os.getpid()}" in found.stderr
    assert (folder / "out.model").read_bytes() == b"old"
    store.save(store.load(folder / "good.model"), folder / "out.model")  # the first is done


def commands_that_are_stopped_leave_nothing_half_done(folder):
    GOOD.sample(8_000, replace=True, random_state=0).to_csv(folder / "t.csv", index=False)
    before = state(folder)
    for name, code in (("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)):
        stopped, words = _stopped(getattr(signal, name), folder)
        assert stopped == code, words
        assert re.search(
            rf"Stopped by {name}; no file is half written\. Unchanged: out\.html, out\.model\.\n"
            r"  rerun: discriminant report t\.csv --target y",
            words,
        ), words
        assert state(folder) == before


def _heeding():
    """Signals as a terminal leaves them: under nohup, or behind `&`, they come ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _stopped(number, folder):
    """The code and the words of a report that is stopped while it compares."""
    args = ["report", "t.csv", "--target", "y", "--out", "out.html", "--save", "out.model"]
    child = subprocess.Popen(
        [sys.executable, "-m", "discriminant.cli", *args],
        cwd=folder,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        preexec_fn=_heeding,
    )
    said = ""
    while "[2/" not in said:
        line = child.stderr.readline()
        assert line, said
        said += line
    child.send_signal(number)
    said += child.communicate(timeout=120)[1]
    return child.returncode, said


DEEDS = [
    (13, columns_in_another_order_give_the_same_answers),
    (62, a_file_that_changes_while_it_is_read),
    (69, names_of_files_are_shown_and_do_nothing),
    (69, a_way_out_of_the_folder_is_not_taken),
    (69, a_name_that_no_file_can_have),
    (71, names_in_sql_are_quoted),
    (72, numbers_with_a_decimal_comma_are_no_formulas),
    (73, an_export_that_cannot_be_names_the_part),
    (75, a_disk_that_is_full),
    (76, a_folder_that_cannot_be_written_is_told_before_the_work),
    (77, a_second_writer_is_told_who_is_the_first),
    (78, commands_that_are_stopped_leave_nothing_half_done),
]
