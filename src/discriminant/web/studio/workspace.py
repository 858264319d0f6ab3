"""The open tables of a studio, and the requests of the page about them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any

from discriminant.errors import InputError, capture_warnings
from discriminant.redaction import is_address
from discriminant.web.responses import HttpError, Response, dump
from discriminant.web.studio.cohorts import compare_moments, slice_columns
from discriminant.web.studio.evaluation_on_all_rows import (
    count_density,
    error_surface,
    evaluate_choice,
)
from discriminant.web.studio.exports import export_choice, reproducing_code, write_report
from discriminant.web.studio.sources import Sources, preview
from discriminant.web.studio.specification import Edits, ModelChoice
from discriminant.web.studio.tables import BINARY, OpenTable

_MOST_TABLES = 3
_MISSING = ("error", "drop", "mean", "indicator")


class Workspace:
    """The tables that are open, and the sources that can be opened."""

    def __init__(self, folder: Path, *, given: str | None = None, table: str | None = None) -> None:
        self.folder = folder
        self.sources = Sources(folder, given, table)
        self._tables: OrderedDict[int, OpenTable] = OrderedDict()
        self._numbers = count(1)
        self._lock = Lock()

    # --- opening ----------------------------------------------------------------------------------

    def new_upload(self, name: str) -> tuple[int, Path]:
        """Return the number of a new upload and the file to write it to."""
        with self._lock:
            in_use = {table.source.path for table in self._tables.values()}
            return self.sources.new_upload(name, in_use)

    def preview(self, body: dict[str, Any]) -> Response:
        """Return the columns and the first rows of a source."""
        return Response(dump(preview(self.sources.resolve(body.get("source")))))

    def open(self, body: dict[str, Any]) -> Response:
        """Open a table with a target and options for its columns."""
        source = self.sources.resolve(body.get("source"))
        target = body.get("target")
        if not isinstance(target, str):
            raise InputError("target must be the name of a column.")
        with self._lock:
            number = next(self._numbers)
        table = OpenTable(number, source, target, _reading(body), self.folder)
        answer = table.describe()
        with self._lock:
            self._tables[number] = table
            while len(self._tables) > _MOST_TABLES:
                _, closed = self._tables.popitem(last=False)
                closed.report_file.unlink(missing_ok=True)
                if all(each.source.path != closed.source.path for each in self._tables.values()):
                    self.sources.delete_path(closed.source.path)
        return answer

    def table(self, number: int) -> OpenTable:
        """Return an open table."""
        with self._lock:
            table = self._tables.get(number)
            if table is None:
                raise HttpError(404, "TableError", "This table is no longer open. Open it again.")
            self._tables.move_to_end(number)
        return table

    # --- questions about a table ------------------------------------------------------------------

    def checked_spec(self, table: OpenTable, body: dict[str, Any]) -> tuple[ModelChoice, Edits]:
        """Check the model and the edits of a request."""
        return table.choice(body.get("model", {}), body.get("edits"))

    def density(self, table: OpenTable, body: dict[str, Any]) -> Response:
        """Count the rows of each class in the cells of a map."""
        return Response(count_density(table, body), BINARY)

    def evaluate(self, table: OpenTable, body: dict[str, Any]) -> Response:
        """Count decisions over all rows."""
        choice, edits = self.checked_spec(table, body)
        return Response(dump(evaluate_choice(table, choice, edits, body.get("label"))))

    def surface(self, table: OpenTable, body: dict[str, Any]) -> Response:
        """Return the cross-validation error over pooling and shrinkage."""
        choice, _ = self.checked_spec(table, body)
        return Response(dump(error_surface(table, choice)))

    def slices(self, table: OpenTable, body: dict[str, Any]) -> Response:
        """Return groups of rows by a column, with their measures if not all rows are shown."""
        choice, edits = self.checked_spec(table, body)
        return Response(dump(slice_columns(table, choice, edits, body.get("column"))))

    def drift(self, table: OpenTable, body: dict[str, Any]) -> Response:
        """Compare the means of the table with those of another file."""
        source = self.sources.resolve(body.get("source"))
        if is_address(source.path):
            raise InputError("Drift compares files. Export the rows of the database to a file.")
        try:
            return Response(dump(compare_moments(table, source)))
        finally:
            if source.path != table.source.path:
                self.sources.delete_path(source.path)

    def export(self, table: OpenTable, body: dict[str, Any]) -> Response:
        """Return the model in a format."""
        choice, edits = self.checked_spec(table, body)
        return export_choice(table, choice, edits, body.get("to"), self.folder)

    def code(self, table: OpenTable, body: dict[str, Any]) -> Response:
        """Return the Python code that reproduces the model."""
        choice, edits = self.checked_spec(table, body)
        return Response(dump({"code": reproducing_code(table, choice, edits)}))

    def report(
        self,
        table: OpenTable,
        spec: tuple[ModelChoice, Edits],
        progress: Callable[[dict[str, Any]], None],
    ) -> None:
        """Write the report page of a table."""
        with capture_warnings():
            write_report(table, spec[0], progress)


def _reading(body: dict[str, Any]) -> dict[str, Any]:
    """Return the options of `dd.study` that correspond to the options in the page."""
    reading: dict[str, Any] = {}
    for name in ("exclude", "categories"):
        columns = body.get(name) or []
        if not isinstance(columns, list) or not all(isinstance(each, str) for each in columns):
            raise InputError(f"{name} must be a list of columns.")
        reading[name] = columns
    missing = body.get("missing") or "error"
    if missing not in _MISSING:
        raise InputError(f"missing must be one of {', '.join(_MISSING)}.")
    reading["missing"] = "" if missing == "error" else missing
    return reading
