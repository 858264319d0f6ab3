"""Names and labels are data: quoted or bound, never run. 300 strings, on three databases."""

import sqlite3
import warnings

import numpy as np
import pandas as pd
import pytest

from discriminant import LDA, Encoded
from discriminant.errors import ExportError
from discriminant.export.python import to_python
from discriminant.export.sql import to_sql
from tests.unit.export.targets import KEY, in_bare_python, quoted, run

SEEDS = (
    'a"; DROP TABLE t;--', "'; DROP TABLE t;--", "'", "''", '"', '""', '`', '``', '\\',
    "\\'", '\\"', "a'b", 'a"b', 'a`b', 'a\\b', "x' OR '1'='1", 'x" OR "1"="1',
    '1; SELECT 1', '--', '/*', '*/', '/* x */', '#', ';', '%s', '%', '%(a)s', '?', '?1',
    ':name', '$1', '$$', '$x$ DROP $x$', '@v', '{{7*7}}', '${7*7}', '{0}', '{x!r}',
    '<script>', '</script>', ']]>', '[a]', 'a]b', 'a.b', 'a b', ' a', 'a ', '\t', 'a\nb',
    'a\r\nb', '\x1f', '\x7f', 'é', 'ß', 'İ', 'ı', 'ſ', '🙂', '👩\u200d👩\u200d👧', '日本語',
    '\u202egnirts', '\u200b', '\ufeffx', '\u2028', 'á', 'null', 'NULL', 'select', 'SELECT',
    'from', 'table', 'order', 'group', 'user', 'default', 'true', 'rowid', 'oid', 's', 't',
    'features', 'step_1', 'complete', 'label', 'score', 'p_a', 'p', 'u', 'x', 'x0', 'top',
    'total', 'weight_a', "E'\\x41'", "U&'\\0041'", "N'x'", "b'1'", "x'41'", '1', '-1',
    '1e5', '0x41', '+', '=1+1', 'a=b', 'a,b', '(', ')', '((', 'a()', '*', 's.*', 't."a"',
    '__class__', "__import__('os')", 'lambda: 0', '"""', "'''", '\\N{BULLET}', '\\u0041',
    '#{x}', 'a' * 62, 'a' * 63, "a" * 64 + 'b', "a" * 64 + 'c', 'é' * 40,
    '🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂🙂',
)  # fmt: skip


def corpus():
    """At least 300 strings: those above, alone and in pairs."""
    rng = np.random.default_rng(0)
    pairs = [SEEDS[i] + SEEDS[j] for i, j in rng.integers(0, len(SEEDS), (260, 2))]
    return list(dict.fromkeys([*SEEDS, *pairs]))


def apart(names, size):
    """Groups of names that a database keeps apart: by case, and within their first 63 bytes."""
    groups, seen = [], []
    for name in names:
        short = name.encode()[:63].decode("utf-8", "ignore").casefold()
        for group, known in zip(groups, seen, strict=True):
            if len(group) < size and short not in known:
                group.append(name)
                known.add(short)
                break
        else:
            groups.append([name])
            seen.append({short})
    return groups


@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "postgres"])
def test_three_hundred_strings_are_columns_classes_categories_and_tables_and_nothing_else(
    kind, request
):
    connection = request.getfixturevalue("postgres") if kind == "postgres" else None
    assert len(corpus()) >= 300
    for group in apart(corpus(), 12):
        model, frame = hostile(group)
        said = run(kind, model, frame, table=group[0], connection=connection)
        expected = pd.DataFrame(frame)
        assert said["label"] == model.predict(expected).tolist()
        np.testing.assert_allclose(said["p"], model.predict_proba(expected), atol=1e-12)


@pytest.mark.parametrize("kind", ["onnx", "python", "node", "chromium"])
def test_they_are_names_in_graphs_and_in_source_files_too(kind, request):
    engine = request.getfixturevalue(kind) if kind in ("node", "chromium") else None
    for group in apart(corpus(), 40):
        model, frame = hostile(group)
        said = run(kind, model, frame, connection=engine)
        assert said["label"] == model.predict(pd.DataFrame(frame)).tolist()


def hostile(names):
    """A model whose columns, classes and categories all have these names."""
    rng = np.random.default_rng(len(names))
    rows = 5 * len(names)
    columns = {name: rng.normal(size=rows).tolist() for name in names}
    columns["which category"] = [names[k % len(names)] for k in range(rows)]
    labels = np.array([names[(k // 2) % len(names)] for k in range(rows)], dtype=object)
    if len(names) == 1:
        labels[::2] = "other"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Encoded(LDA(shrinkage=0.5), categories=["which category"], missing="mean")
        model.fit(pd.DataFrame(columns), labels)
    return model, columns


@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "postgres"])
def test_a_nul_in_a_name_is_refused_by_name(kind):
    model = LDA().fit(pd.DataFrame({"a\0b": [0.0, 1.0, 4.0, 5.0]}), list("aabb"))
    with pytest.raises(ExportError, match=r"a\\x00b.*Nothing was written"):
        to_sql(model, table="t", dialect=kind)
    plain = LDA().fit(pd.DataFrame({"a": [0.0, 1.0, 4.0, 5.0]}), ["x", "x", "y\0z", "y\0z"])
    with pytest.raises(ExportError, match="NUL"):
        to_sql(plain, table="t", dialect=kind)
    with pytest.raises(ExportError, match="NUL"):
        to_sql(plain, table="t\0", dialect=kind, outputs=["score"])


def test_columns_that_differ_in_case_alone_are_refused_where_the_database_takes_them_for_one():
    frame = pd.DataFrame({"a": [0.0, 1, 2, 4, 5, 6], "A": [1.0, 3, 1, 2, 7, 4]})
    model = LDA().fit(frame, list("aaabbb"))
    for kind in ("duckdb", "sqlite"):
        with pytest.raises(ExportError, match=r"'a' and 'A' differ only in case"):
            to_sql(model, table="t", dialect=kind)
    assert '"A"' in to_sql(model, table="t", dialect="postgres")


def test_a_column_that_is_absent_is_an_error_and_not_a_text():
    model = LDA().fit(pd.DataFrame({"a": [0.0, 1.0, 4.0, 5.0]}), list("aabb"))
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE t (b REAL)")
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            database.execute(to_sql(model, table="t", dialect="sqlite"))


def test_nothing_but_the_table_asked_for_is_read_or_changed():
    name = "t'; DROP TABLE other;--"
    model = LDA().fit(pd.DataFrame({name: [0.0, 1.0, 4.0, 5.0]}), list("aabb"))
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE other (k)")
        database.execute(f"CREATE TABLE {quoted(name)} ({quoted(name)} REAL, {quoted(KEY)} INT)")
        query = to_sql(model, table=name, dialect="sqlite", keep=[KEY])
        touched = []
        database.set_authorizer(lambda code, a, b, c, d: touched.append((code, a)) or 0)
        database.execute(query).fetchall()
        database.set_authorizer(None)
    reads = {a for code, a in touched if code == sqlite3.SQLITE_READ and a}
    assert reads <= {name, "sqlite_master"} | {a for a in reads if a.startswith(("step_", "feat"))}
    codes = {sqlite3.SQLITE_READ, sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION}
    assert {code for code, _ in touched} <= codes


def test_a_file_of_python_runs_in_a_bare_interpreter():
    names = ["it's", '"""', "\\", "🙂"]
    model, frame = hostile(names)
    row = {name: values[0] for name, values in frame.items()}
    found = in_bare_python(to_python(model), f"ascii(predict({row!a})[0])")
    assert found == ascii(model.predict(pd.DataFrame(frame)[:1])[0])
