"""Output of the studio: model file, exports, report, and the Python code of the model."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import discriminant as dd
from discriminant.errors import InputError
from discriminant.web.responses import Response
from discriminant.web.studio.specification import Edits, ModelChoice
from discriminant.web.studio.tables import BINARY, OpenTable

_FORMATS = {  # name in the page: suffix, type
    "model": (".model", BINARY),
    "sql": (".sql", b"text/plain; charset=utf-8"),
    "onnx": (".onnx", BINARY),
    "python": (".py", b"text/x-python; charset=utf-8"),
    "javascript": (".js", b"text/javascript; charset=utf-8"),
    "code": ("_studio.py", b"text/x-python; charset=utf-8"),
}


def export_choice(
    table: OpenTable, choice: ModelChoice, edits: Edits, to: Any, folder: Path
) -> Response:
    """Return the model in one of the formats, as a file to save."""
    if not isinstance(to, str) or to not in _FORMATS:
        raise InputError(f"to must be one of {', '.join(_FORMATS)}.")
    suffix, kind = _FORMATS[to]
    if to == "code":
        body = reproducing_code(table, choice, edits).encode()
    else:
        model = table.model(choice, edits)
        if to == "model":
            with tempfile.TemporaryDirectory(dir=folder) as directory:
                path = Path(directory) / "studio.model"
                model.save(path)
                body = path.read_bytes()
        else:
            exported = dd.export(model, to, **({"table": stem(table)} if to == "sql" else {}))
            body = exported.encode() if isinstance(exported, str) else exported
    name = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in stem(table))
    disposition = f'attachment; filename="{name}{suffix}"'.encode()
    return Response(body, kind, [(b"content-disposition", disposition)])


def stem(table: OpenTable) -> str:
    """Return a name for files about a table."""
    return Path(table.source.name).stem[:60] or "table"


def reproducing_code(table: OpenTable, choice: ModelChoice, edits: Edits) -> str:
    """Return the Python code that reproduces the model of the page."""
    reading, rest = _split_off(table, choice)
    options = {"target": table.target, **table.source.options, **reading}
    arguments = ", ".join([repr(table.source.written), *(f"{k}={v!r}" for k, v in options.items())])
    lines = ["import discriminant as dd", ""]
    if edits:
        lines.insert(0, "import numpy as np")
    if choice.degree == 2:
        lines.insert(-1, "from sklearn.pipeline import make_pipeline")
    constructor = choice.constructor(table.origin_of(choice))
    if table.source.target is not None:
        lines += ["# the example is written by the command: discriminant examples"]
    lines += [f"study = dd.study({arguments})"]
    if rest:
        lines += [f"study = study.without({rest})  # rows with missing cells there remain dropped"]
    if edits:
        lines += _edit_lines(table, choice, edits)
    else:
        lines += [f"model = study.fitted({constructor})"]
    model = "model"
    if choice.decides:
        given = {"cost": choice.cost_by_label(table.own_labels), "reject": choice.reject}
        options_text = ", ".join(f"{k}={v!r}" for k, v in given.items() if v is not None)
        lines += [f"decision = dd.Decision.of_fitted(model, {options_text})"]
        model = "decision"
    lines += [f'{model}.save("{stem(table)}.model")']
    return "\n".join(lines) + "\n"


def _edit_lines(table: OpenTable, choice: ModelChoice, edits: Edits) -> list[str]:
    places, labels = table.places(choice), table.own_labels
    lines = [
        "table = study.opened.table",
        "X, y = table.features[:].astype(float), table.schema.labels[table.codes]",
    ]
    if edits.removed:
        lines += [f"removed = {list(edits.removed)}", "X = np.delete(X, removed, axis=0)"]
        lines += ["y = np.delete(y, removed)"]
    for code, shift in edits.shifts:
        lines += [f"X[y == {labels[code]!r}] += {[shift[j] for j in places]}"]
    if edits.added:
        rows = [[row[j] for j in places] for _, row in edits.added]
        lines += [f"X = np.vstack([X, {rows}])"]
        lines += [f"y = np.append(y, {[labels[code] for code, _ in edits.added]})"]
    lines += [f"fitted = {choice.constructor(table.origin_of(choice))}.fit(X, y)"]
    lines += ["model = dd.Encoded.of_fitted(fitted, study.opened.encoding)"]
    return lines


def _split_off(table: OpenTable, choice: ModelChoice) -> tuple[dict[str, Any], list[str]]:
    """Return the options of reading without the columns that are off, and columns to drop later.

    Rows with a missing cell in a column that is off were dropped before the column was left out.
    """
    reading, off = dict(table.reading), list(choice.off)
    if reading.get("missing") == "drop":
        return reading, off
    if off:
        reading["exclude"] = [*reading.get("exclude", []), *off]
    return reading, []


def write_report(
    table: OpenTable, choice: ModelChoice, progress: Callable[[dict[str, Any]], None]
) -> None:
    """Compare the default models and the model of the page, and write the report."""
    reading, rest = _split_off(table, choice)

    def step(what: str, done: int, total: int) -> None:
        if done >= 0:
            progress({"step": what, "done": done, "total": total})

    study = table.new_study(reading, progress=step)
    if rest:
        study = study.without(rest)
    study.compare()
    if choice.decides:
        study.decide(choice.cost_by_label(table.own_labels), choice.reject)
    study.report(table.report_file, title=f"{table.source.name}: {table.target}", yardstick=False)
