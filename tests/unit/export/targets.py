"""Ways to run an exported model on rows; the outputs of all are converted to the same shape.

An answer is a dict: for a number of each class {"p": {part: (n,)}}, for one number (n,), for labels
a list. Rows stay in order: SQL gets a key, and hands it back.
"""

import sqlite3
import subprocess
import sys

import numpy as np

from discriminant.export.javascript import to_javascript
from discriminant.export.onnx import NAMES, to_onnx
from discriminant.export.plan import make_plan
from discriminant.export.python import to_python
from discriminant.export.sql import to_sql

KEY = "key of the row"


def run(target, model, columns, *, table="t", connection=None, **options):
    """What the target says of the rows; `columns` is a dict of lists, None for a missing cell."""
    if target in ("duckdb", "sqlite", "postgres"):
        return in_database(target, model, columns, table, connection, options)
    plan = make_plan(model, options.get("outputs"))
    if target == "onnx":
        return on_onnxruntime(model, plan, columns, options)
    if target in ("node", "chromium"):
        return in_javascript(connection, model, plan, columns, options)
    return in_python(model, plan, columns, options)


# --- databases -----------------------------------------------------------------------------------


def in_database(target, model, columns, table, connection, options):
    query = to_sql(model, table=table, dialect=target, keep=[KEY], **options)
    with_key = {KEY: list(range(len(next(iter(columns.values()))))), **columns}
    names, rows = {"duckdb": _duckdb, "sqlite": _sqlite, "postgres": _postgres}[target](
        with_key, table, query, connection
    )
    place = names.index(KEY)
    rows.sort(key=lambda row: row[place])
    found = {name: [row[j] for row in rows] for j, name in enumerate(names) if j != place}
    return grouped(found, make_plan(model, options.get("outputs")))


def grouped(found, plan):
    """Columns score_a, score_b of a SELECT as {"score": [...]}; they come in the plan's order."""
    values = iter(found.values())
    answer = {}
    for output in plan.outputs:
        if output.choices:
            answer[output.name] = next(values)
        elif output.components:
            answer[output.name] = np.array([_floats(next(values)) for _ in output.components]).T
        else:
            answer[output.name] = _floats(next(values))
    return answer


def _floats(values):
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def _declared(columns, names):
    """SQL types from the values."""

    def kind(values):
        some = [value for value in values if value is not None]
        if some and isinstance(some[0], bool):
            return "BOOLEAN"
        if some and isinstance(some[0], str):
            return "TEXT"
        if some and isinstance(some[0], int):
            return "BIGINT"
        return names["double"] if not some or isinstance(some[0], float) else names["date"]

    return ", ".join(f"{quoted(name)} {kind(values)}" for name, values in columns.items())


def _duckdb(columns, table, query, connection):
    import duckdb
    import pyarrow as pa

    with duckdb.connect() as database:
        given = pa.table([pa.array(values) for values in columns.values()], names=list(columns))
        database.register("rows as given", given)
        database.execute(f'CREATE TABLE {quoted(table)} AS SELECT * FROM "rows as given"')
        found = database.execute(query)
        return [column[0] for column in found.description], found.fetchall()


def _sqlite(columns, table, query, connection):
    with sqlite3.connect(":memory:") as database:
        declared = _declared(columns, {"double": "REAL", "date": "TEXT"})
        database.execute(f"CREATE TABLE {quoted(table)} ({declared})")
        marks = ", ".join("?" for _ in columns)
        rows = [tuple(map(_plain, row)) for row in zip(*columns.values(), strict=True)]
        database.executemany(f"INSERT INTO {quoted(table)} VALUES ({marks})", rows)
        found = database.execute(query)
        return [column[0] for column in found.description], found.fetchall()


def _plain(value):
    return value.isoformat() if hasattr(value, "isoformat") else value


def _postgres(columns, table, query, connection):
    declared = _declared(columns, {"double": "DOUBLE PRECISION", "date": "DATE"})
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TEMP TABLE {quoted(table)} ({declared})".encode())
        listed = ", ".join(map(quoted, columns))
        copy = f"COPY {quoted(table)} ({listed}) FROM STDIN".encode()
        with cursor.copy(copy) as lines:
            for row in zip(*columns.values(), strict=True):
                lines.write_row(row)
        cursor.execute(query.encode())
        found = [column.name for column in cursor.description], cursor.fetchall()
        cursor.execute(f"DROP TABLE {quoted(table)}".encode())
    return found


# --- the others ----------------------------------------------------------------------------------


def on_onnxruntime(model, plan, columns, options):
    import onnxruntime

    made = to_onnx(model, **options)
    session = onnxruntime.InferenceSession(made, providers=["CPUExecutionProvider"])
    wanted = {one.name: one.type for one in session.get_inputs()}
    if set(wanted) == {"X"} and "X" not in columns:
        given = {"X": np.column_stack([_floats(columns[s.column]) for s in plan.sources])}
    else:
        given = {name: _tensor(columns[name], kind) for name, kind in wanted.items()}
    names = [one.name for one in session.get_outputs()]
    found = dict(zip(names, session.run(None, given), strict=True))
    answer = {}
    for output in plan.outputs:
        name = NAMES.get(output.name, output.name)
        value = found[name if name in found and name not in columns else f"{name}_out"]
        single = not output.components and not output.choices
        answer[output.name] = value[:, 0] if single else value
        if output.choices:
            answer[output.name] = value.tolist()
    return answer


def _tensor(values, kind):
    if kind == "tensor(string)":
        return np.array([["" if value is None else str(value)] for value in values], dtype=object)
    return _floats(values)[:, None]


def in_python(model, plan, columns, options):
    scope = {}
    exec(compile(to_python(model, **options), "exported", "exec"), scope)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return columns_of_outputs(plan, [scope["answer"](row) for row in rows])


def columns_of_outputs(plan, rows):
    """Outputs of single rows, collected by output."""
    answer = {}
    for output in plan.outputs:
        values = [row[output.name] for row in rows]
        if output.components:
            listed = (one.values() if isinstance(one, dict) else one for one in values)
            values = [[float(number) for number in one] for one in listed]
        answer[output.name] = values if output.choices else np.array(values, dtype=float)
    return answer


def in_javascript(engine, model, plan, columns, options):
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return columns_of_outputs(plan, engine.outputs(to_javascript(model, **options), rows))


def in_bare_python(text, expression):
    """What an interpreter without any library says."""
    command = [sys.executable, "-I", "-S", "-c", f"{text}\nprint({expression})"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
