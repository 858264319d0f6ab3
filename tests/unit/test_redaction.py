"""Passwords of database addresses appear in no output, whatever characters they contain."""

import io
import json
import random
import string
import subprocess
import sys
import traceback
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest

import discriminant as dd
from discriminant.cli import run as command_line
from discriminant.errors import DiscriminantError, FileError
from discriminant.redaction import (
    is_address,
    masked,
    parse_address,
    redact,
    register,
    shown_address,
    split_table,
)
from tests.shared import databases

HOSTILE = "?#/@%& =:'\"\\,;+[]<>$*~ä|`!{}"
_LETTERS = string.ascii_letters + string.digits
_HOSTS = ("127.0.0.1:1", "127.0.0.1:1,[::1]:1", "[::1]:1", "localhost:1")


def raw(text):
    """As somebody types it who has not heard of percent-encoding."""
    return text


def encoded(text):
    """As libpq asks for it."""
    return quote(text, safe="")


def half_encoded(text):
    """As `urllib.parse.quote` does it by default, which leaves '/'."""
    return quote(text)


SHAPES = (
    "postgresql://ann:{password}@{host}/db",
    "postgresql+psycopg://ann:{password}@{host}/db",
    "postgres://:{password}@{host}",
    "postgresql://ann@{host}/db?password={password}",
    "postgresql://ann@{host}/db?sslmode=prefer&PASSWORD={password}",
    "postgresql://ann@{host}/db?sslpassword={password}&connect_timeout=1",
    "postgresql://ann@{host}/db?pass%77ord={password}",
    "mysql://ann:{password}@{host}/db",
    "md:db?motherduck_token={password}",
    "host=127.0.0.1 port=1 password={password}",
    "host = 127.0.0.1 password = '{password}' port = 1",
)


def generated(count, seed=20):
    """Addresses, each with the parts of its password that no output may contain."""
    rng = random.Random(seed)
    made = []
    for number in range(count):
        cores = ["".join(rng.choices(_LETTERS, k=5)) + rng.choice("xyz") for _ in range(2)]
        between = "".join(rng.choices(HOSTILE, k=rng.randint(1, 3)))
        password = between.join(cores) + rng.choice(("", *HOSTILE))
        shape = SHAPES[number % len(SHAPES)]
        spell = rng.choice((raw, encoded, half_encoded))
        if shape.startswith("host"):
            spell = rng.choice((raw, lambda text: text.replace("\\", r"\\").replace("'", r"\'")))
        made.append((shape.format(password=spell(password), host=rng.choice(_HOSTS)), cores))
    return made


ADDRESSES = generated(200)


def run(*args, cwd):
    """The exit code of a command, and all that it printed."""
    printed = io.StringIO()
    with chdir(cwd), redirect_stdout(printed), redirect_stderr(printed):
        code = command_line.run([str(arg) for arg in args])
    return code, printed.getvalue()


def contents(folder):
    """Names and bytes of all files below a folder."""
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    return "\n".join(f"{f}\n{f.read_bytes().decode('utf-8', 'replace')}" for f in files)


def frame(rows=40):
    """Two classes that are easy to separate."""
    rng = np.random.default_rng(0)
    y = np.array(["no", "yes"])[np.arange(rows) % 2]
    return pd.DataFrame({"size": rng.normal(size=rows) + 3 * (y == "yes"), "y": y})


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a table and a model of it."""
    folder = tmp_path_factory.mktemp("secrets")
    frame().to_csv(folder / "rows.csv", index=False)
    dd.save(dd.Encoded(dd.LDA()).fit(frame()[["size"]], frame()["y"]), folder / "fitted.model")
    return folder


def leaked(cores, text):
    """The parts of a password that a text contains."""
    return [core for core in cores if core in text]


# --- the command line -----------------------------------------------------------------------------

COMMANDS = {
    "table": ("report", "{}", "--target", "y", "--table", "t"),
    "no table": ("report", "{}", "--target", "y"),
    "json": ("compare", "{}", "--target", "y", "--query", "SELECT 1", "--json"),
    "files": ("report", "{}", "--target", "y", "--table", "t", "--engine", "files"),
    "memory": ("moments", "{}", "--target", "y", "--engine", "memory", "--out", "m"),
    "several": ("compare", "rows.csv", "{}", "--target", "y"),
    "model": ("predict", "{}", "rows.csv", "--out", "answers.csv"),
    "predict": ("predict", "fitted.model", "{}", "--out", "answers.csv"),
    "assess": ("assess", "fitted.model", "{}"),
    "export": ("export", "{}", "--to", "sql"),
    "merge": ("merge", "{}", "--out", "sum"),
    "written": ("merge", "fitted.model", "--out", "{}"),
    "title": ("drift", "{}", "rows.csv"),
    "folder": ("examples", "{}"),
    "extra": ("forget", "a", "b", "{}", "--out", "c"),
    "test": ("report", "rows.csv", "--model", "label-tree", "--test={}"),
    "sparse": ("fit", "{}", "--model", "label-tree", "--out", "labels.model"),
    "checkpoint": ("compare", "rows.csv", "--target", "y", "--checkpoint", "{}/x"),
    "option": ("compare", "rows.csv", "--target", "{}"),
    "unknown": ("compare", "rows.csv", "--pasword={}"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_prints_or_writes_a_password(command, place):
    """All 200 addresses are spread over the commands; the tables get all of them."""
    every = ADDRESSES if command in ("table", "no table", "model") else ADDRESSES[::5]
    for address, cores in every:
        args = [part.replace("{}", address) for part in COMMANDS[command]]
        code, printed = run(*args, cwd=place)
        assert code == 2, (address, printed)
        assert not leaked(cores, printed), (address, printed)
        assert "Traceback" not in printed, (address, printed)
    found = contents(place)
    assert not [address for address, cores in every if leaked(cores, found)]


def test_a_process_of_its_own_prints_no_password(place):
    for address, cores in ADDRESSES[:1]:
        command = [sys.executable, "-m", "discriminant.cli", "report", address, "--target", "y"]
        done = subprocess.run(command, capture_output=True, cwd=place, check=False, text=True)
        assert done.returncode == 2 and "***" in done.stderr
        assert not leaked(cores, done.stdout + done.stderr)


def test_a_traceback_and_a_warning_of_somebody_else_show_no_password(place, monkeypatch):
    import warnings

    from discriminant.cli import study_commands

    address, cores = "postgresql://ann:Qx7%2Fwq?Zk9pt@127.0.0.1:1/db", ["Qx7", "Zk9pt"]

    def fails(*_, **__):
        warnings.warn(f"deprecated: {address}", stacklevel=1)
        raise RuntimeError(f"a bug, connecting to {address!r} with 'Qx7/wq?Zk9pt'")

    monkeypatch.setattr(study_commands, "study", fails)
    code, printed = run("report", address, "--target", "y", "--table", "t", cwd=place)
    assert code == 1 and "RuntimeError: a bug" in printed and "deprecated" in printed
    assert not leaked(cores, printed)


# --- errors in Python -----------------------------------------------------------------------------

CALLS = {
    "study": lambda address: dd.study(address, target="y", table="t"),
    "study without table": lambda address: dd.study(address, target="y"),
    "study of files": lambda address: dd.study(address, target="y", table="t", engine="files"),
    "rows": lambda address: dd.rows(address, target="y"),
    "rows of files": lambda address: dd.rows(address, target="y", engine="files"),
    "rows of several": lambda address: dd.rows([address, address], target="y"),
    "sql": lambda address: dd.rows(dd.sql(address, "t"), target="y"),
    "query": lambda address: dd.rows(
        dd.sql("duckdb:///", f"SELECT * FROM postgres_scan('{address}', 'a', 't')"), target="y"
    ),
    "quoted query": lambda address: dd.rows(
        dd.sql("duckdb:///", f"SELECT * FROM postgres_scan({_literal(address)}, 'a')"), target="y"
    ),
    "path": lambda address: dd.rows(Path(address), target="y"),
    "load": dd.load,
    "save": lambda address: dd.save(dd.LDA(), address),
    "moments": lambda address: dd.moments(dd.sql(address, "t"), target="y"),
}


def chain(fault):
    """Everything that an exception and those before it hold as text."""
    texts, waiting, seen = [], [fault], set()
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        waiting += [one.__cause__, one.__context__]
        texts += [str(one), repr(one), repr(one.args), repr(getattr(one, "__notes__", ""))]
        texts += [repr(value) for value in vars(one).values()]
        texts += [repr(getattr(one, name, "")) for name in ("filename", "filename2", "strerror")]
    return "\n".join([*texts, *traceback.format_exception(fault)])


@pytest.mark.parametrize("call", CALLS)
def test_no_exception_of_a_chain_contains_a_password(call, tmp_path):
    for address, cores in ADDRESSES[::3]:
        with chdir(tmp_path), pytest.raises((DiscriminantError, TypeError)) as failed:
            CALLS[call](address)
        assert not leaked(cores, chain(failed.value)), address


def test_a_short_password_is_removed_from_a_message_of_the_driver(monkeypatch):
    psycopg = pytest.importorskip("psycopg")

    def fails(address):
        password = parse_address(address).values["password"]
        raise psycopg.OperationalError(f'no entry for "{password}" (is {password}) in {address}')

    monkeypatch.setattr(psycopg, "connect", fails)
    with pytest.raises(DiscriminantError) as failed:
        dd.rows(dd.sql("postgresql://ann:zq@127.0.0.1:1/db", "t"), target="y")
    assert "zq" not in chain(failed.value).replace('ann:zq@127.0.0.1:1/db", "t', "")
    assert 'no entry for "***" (is ***) in postgresql://ann:***@127.0.0.1' in str(failed.value)


# --- a server -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(postgres):
    """A role whose password holds what addresses use as signs, checked by the server."""
    password = "Kd4?w#e/r@t%y Zu8 'q"
    postgres.execute("DROP ROLE IF EXISTS guarded")
    postgres.execute(f"CREATE ROLE guarded LOGIN PASSWORD {_literal(password)}")
    name = databases.lay(postgres, frame(), "guarded rows")
    postgres.execute(f"GRANT SELECT ON {databases.quoted(name)} TO guarded")
    return password, name


def _literal(text):
    return "'" + text.replace("'", "''") + "'"


@pytest.fixture
def checked(server):
    """Whether the server asks for passwords: its file of rules is put back afterwards."""
    folder = databases.postgres()[0].partition("host=")[2]
    rules = Path(folder) / "data" / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text("local all guarded scram-sha-256\nlocal all all trust\n")
    with databases.connect("postgres") as connection:
        connection.execute("SELECT pg_reload_conf()")
    yield folder
    rules.write_text(before)
    with databases.connect("postgres") as connection:
        connection.execute("SELECT pg_reload_conf()")


@pytest.mark.xdist_group("postgres")
def test_a_password_of_signs_connects_and_appears_in_no_output(server, checked, tmp_path):
    password, table = server
    cores = ["Kd4", "Zu8"]
    urls = (
        f"postgresql://guarded:{quote(password, safe='')}@/postgres?host={checked}",
        f"postgresql://guarded@/postgres?host={checked}&password={quote(password, safe='')}",
        f"postgresql://guarded@/postgres?pass%77ord={quote(password, safe='')}&host={checked}",
    )
    for number, url in enumerate(urls):
        folder = tmp_path / str(number)
        folder.mkdir()
        source = (url, "--table", table) if number else (f"{url}#{table}",)
        written = ("--facts", "facts.json", "--markdown", "page.md", "--checkpoint", "sums")
        options = ("--target", "y", "--models", "lda,svm", "--folds", 3)
        code, printed = run("report", *source, *options, *written, cwd=folder)
        assert code == 0, printed
        assert {p.suffix for p in folder.iterdir()} >= {".html", ".model", ".json", ".md"}
        assert not leaked(cores, printed + contents(folder))
        shown = json.loads((folder / "facts.json").read_text())["made"]["command"]
        assert "***" in shown and "guarded" in shown
    wrong = urls[0].replace("Kd4", "Kd4x")
    code, printed = run("compare", wrong, "--table", table, "--target", "y", cwd=tmp_path)
    assert code == 2 and "authentication failed" in printed and not leaked(cores, printed)


@pytest.mark.xdist_group("postgres")
def test_reports_of_generated_addresses_contain_no_password(server, tmp_path):
    """The server trusts the role, whatever its password; '?' and '#' need no encoding."""
    folder = databases.postgres()[0].partition("host=")[2]
    rng = random.Random(3)
    for number in range(20):
        cores = ["".join(rng.choices(_LETTERS, k=5)) + "x" for _ in range(2)]
        hostile = rng.choice("?#:&='\",;+<>$*~| ")
        spelled = hostile.join(cores) if number % 2 else quote(hostile.join(cores), safe="")
        if hostile == " ":
            spelled = spelled.replace(" ", "%20")
        url = f"postgresql://guarded:{spelled}@/postgres?host={folder}#guarded rows"
        code, printed = run(
            *("report", url, "--target", "y", "--models", "lda", "--folds", 2),
            *("--facts", "facts.json", "--markdown", "page.md", "--checkpoint", "sums"),
            cwd=tmp_path,
        )
        assert code == 0, (url, printed)
        assert not leaked(cores, printed + contents(tmp_path)), url


@pytest.mark.xdist_group("postgres")
def test_a_checkpoint_under_way_contains_no_password(server, tmp_path):
    folder = databases.postgres()[0].partition("host=")[2]
    url = f"postgresql://guarded:Kd4zz?Zu8zz@/postgres?host={folder}"
    dd.rows(dd.sql(url, server[1]), target="y", checkpoint=tmp_path / "sums")
    assert (tmp_path / "sums" / "journal.json").exists()
    assert not leaked(["Kd4zz", "Zu8zz"], contents(tmp_path))


# --- parsing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_addresses_are_parsed_as_libpq_parses_them(seed):
    """Where both parse; an address of several readings is only refused by ours."""
    conninfo = pytest.importorskip("psycopg.conninfo")
    rng = random.Random(seed)
    both = 0
    for _ in range(300):
        text = rng.choice([shape for shape in SHAPES if shape[0] in "ph" and "+" not in shape])
        hosts = rng.choice((*_HOSTS, "a,b:2", "", "a.b.c:12,[::2]"))
        spell = rng.choice((raw, encoded, half_encoded))
        password = "".join(rng.choices(HOSTILE + "ab1", k=rng.randint(1, 8)))
        text = text.format(password=spell(password), host=hosts)
        try:
            expected = conninfo.conninfo_to_dict(text)
        except Exception:
            continue
        address = parse_address(text)
        if address is not None:
            both += 1
            assert address.values == {name: str(value) for name, value in expected.items()}, text
    assert both > 100


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://ann:p?q@h/db", "postgresql://ann:***@h/db"),
        ("postgresql://ann:p#q@h/db#loans", "postgresql://ann:***@h/db#loans"),
        ("postgresql://ann:p/q@h/db", "postgresql://***"),
        ("postgresql://ann:1/q@h/db", "postgresql://***"),
        ("postgresql://ann:p@q@h/db", "postgresql://***"),
        ("postgresql://ann:p%q@h/db", "postgresql://***"),
        ("postgresql://a:1,[::1]:2/db?pass%77ord=p", "postgresql://a:1,[::1]:2/db?pass%77ord=***"),
        ("postgresql://h/db?PASSWORD=p&user=ann", "postgresql://h/db?PASSWORD=***&user=ann"),
        ("postgresql://h/db?password=p&q=r", "postgresql://***"),  # of which q=r may be a part
        ("postgresql://h/db?user=ann@site", "postgresql://h/db?user=ann@site"),
        ("postgresql://h/db?passfile=/home/ann/.p", "postgresql://h/db?passfile=/home/ann/.p"),
        ("postgresql://h/db?unheard_of=p", "postgresql://h/db?unheard_of=***"),
        ("postgresql:ann:p@h/db", "postgresql:***"),
        ("jdbc:postgresql://h/db?user=a&password=b", "jdbc:postgresql://h/db?user=a&password=***"),
        ("mysql+pymysql://ann:p@h/db?charset=utf8", "mysql+pymysql://ann:***@h/db?charset=***"),
        ("md:?motherduck_token=p", "md:?motherduck_token=***"),
        ("md:db", "md:db"),
        ("duckdb:///data/a:b@c.db#t", "duckdb:///data/a:b@c.db#t"),
        (r"host=h password='a\'b c' port=1", "host=h password=*** port=1"),
        ("host = h  PWD = x", "host=h PWD=***"),
        ("host=h password='open", "***"),
        ("host=h password=a b", "***"),
        ("loans.csv", "loans.csv"),
        ("folder/kind=a/part.parquet", "folder/kind=a/part.parquet"),
    ],
)
def test_address_is_shown_without_secrets(text, shown):
    assert shown_address(text) == shown


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("postgresql://ann:a#b@h/db", ("postgresql://ann:a#b@h/db", "")),
        ("postgresql://ann:a#b@h/db#t", ("postgresql://ann:a#b@h/db", "t")),
        ("postgresql://h/db?password=a#b", ("postgresql://h/db?password=a#b", "")),
        ("postgresql://h/db?password=a&user=b#t", ("postgresql://h/db?password=a&user=b", "t")),
        ("duckdb:///file.db#t", ("duckdb:///file.db", "t")),
    ],
)
def test_a_table_is_named_after_the_password(url, parts):
    assert split_table(url) == parts


def test_a_column_and_a_level_named_like_a_secret_stay_as_they_are():
    text = "token=abcdef12 and password=abcdef12 are features"
    assert redact(text) == text


def test_a_password_that_is_a_word_of_the_data_does_not_change_the_report():
    register("postgresql://ann:iris@host/db")
    assert redact("iris.csv: 150 rows of iris") == "iris.csv: 150 rows of iris"
    assert redact("in: postgresql://ann:iris@host/db") == "in: postgresql://ann:***@host/db"


def test_a_secret_within_a_query_is_masked():
    query = "SELECT * FROM postgres_scan('host=h password=''a b'' user=u', 'public', 't')"
    assert masked(query).startswith("SELECT * FROM postgres_scan('host=h password=*** user=u'")
    assert repr(dd.sql("duckdb:///", query)).count("***") == 1


def test_a_file_that_looks_like_an_address_is_still_a_file(tmp_path):
    with chdir(tmp_path):
        Path("password=1.csv").write_text("size,y\n1,a\n2,b\n3,a\n4,b\n")
        assert not is_address("password=1.csv")
        assert len(dd.study("password=1.csv", target="y", folds=2).rows) == 4


def test_an_address_where_a_file_is_expected_is_refused_by_name():
    with pytest.raises(FileError, match=r"^mysql://ann:\*\*\*@h/db is an address, not a file"):
        dd.load("mysql://ann:pw@h/db")
