"""Tables that can be opened: examples, uploads, and the source named on the command line.

A page names a source by one of the following objects, so it can name no file other than a database:

    {"given": true}                       file or database that was named on the command line
    {"example": "iris"}                   an example table
    {"upload": 3}                         a file that the page has sent
    {"address": "...", "table": "..."}    a table of a database, typed by the user; no query
"""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import Any

from discriminant.engines.sql.connection import kind_of, open_connection
from discriminant.errors import InputError
from discriminant.redaction import is_address, masked, register, split_table
from discriminant.study.data_source import reject_sparse_file
from discriminant.table.files.example_tables import EXAMPLES
from discriminant.table.files.formats import detect_format
from discriminant.table.sql_dialect import SQL_DIALECTS

_PREVIEW_ROWS = 200
_SHOWN_ROWS = 6
_SHOWN_TEXT = 40
_MOST_UNUSED = 4  # uploads that belong to no open table
_NAME_BYTES = 100  # file systems allow 255
_TABLE_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*){0,2}")


@dataclass(frozen=True, slots=True)
class Source:
    """A source of rows: the argument of `dd.study`, and the code for it in reproducing code."""

    path: str  # file or address
    name: str  # shown to the user, secrets masked
    written: str  # name of the source in code, secrets masked
    table: str | None = None  # of a database
    target: str | None = None  # known target, of an example

    @property
    def options(self) -> dict[str, Any]:
        """Options of `dd.study` that the source needs."""
        return {} if self.table is None else {"table": self.table}


@dataclass(slots=True)
class Sources:
    """All sources of a studio."""

    folder: Path
    given: str | None = None
    given_table: str | None = None
    most_bytes: int = 4 << 30  # of all uploads
    _uploads: dict[int, Path] = field(default_factory=dict)
    _numbers: Any = field(default_factory=lambda: count(1))

    def new_upload(self, name: str, in_use: Collection[str] = ()) -> tuple[int, Path]:
        """Return the number of a new upload and the file to write it to.

        Uploads that no open table uses (`in_use`) are deleted, the oldest first, while there are
        more than 4 of them or all uploads together exceed `most_bytes`.
        """
        unused = [each for each, path in self._uploads.items() if str(path) not in in_use]
        while unused and (len(unused) > _MOST_UNUSED or self._upload_bytes() > self.most_bytes):
            self.delete_upload(unused.pop(0))
        if self._upload_bytes() > self.most_bytes:
            raise InputError(
                f"The uploads of the open tables take more than {self.most_bytes >> 20:,} MB. "
                "Restart the studio, and name a large file on the command line."
            )
        number = next(self._numbers)
        folder = self.folder / str(number)
        folder.mkdir()
        self._uploads[number] = folder / safe_name(name)
        return number, self._uploads[number]

    def _upload_bytes(self) -> int:
        return sum(path.stat().st_size for path in self._uploads.values() if path.exists())

    def delete_upload(self, number: Any) -> None:
        """Delete an upload, if there is one of this number."""
        path = self._uploads.pop(number, None)
        if path is not None:
            shutil.rmtree(path.parent, ignore_errors=True)

    def delete_path(self, path: str) -> None:
        """Delete the upload at a path, if there is one."""
        for number, each in list(self._uploads.items()):
            if str(each) == path:
                self.delete_upload(number)

    def resolve(self, given: Any) -> Source:
        """Return the source that a page names."""
        if not isinstance(given, dict):
            raise InputError("source must be an object.")
        if given.get("given") is True and self.given is not None:
            name = masked(self.given) if is_address(self.given) else Path(self.given).name
            return Source(self.given, name, masked(self.given), self.given_table)
        if "example" in given:
            return self._example(given["example"])
        if "upload" in given:
            path = self._uploads.get(given["upload"]) if type(given["upload"]) is int else None
            if path is None or not path.exists():
                raise InputError("This upload is no longer here. Choose the file again.")
            return Source(str(path), path.name, path.name)
        if isinstance(given.get("address"), str):
            return self._address(given["address"].strip(), given.get("table"))
        raise InputError("source names no table.")

    def _example(self, name: Any) -> Source:
        for example in EXAMPLES:
            if example.name == name:
                path = self.folder / f"{example.name}.csv"
                if not path.exists():  # two requests may write it at the same time
                    with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
                        file.write(example.csv())
                    os.replace(file.name, path)
                return Source(str(path), path.name, path.name, target=example.target)
        raise InputError(f"example must be one of {', '.join(each.name for each in EXAMPLES)}.")

    def _address(self, address: str, table: Any) -> Source:
        if not is_address(address):
            raise InputError(
                "This is not the address of a database, such as postgresql://user@host/name. Drop "
                "a file on the page, or name it on the command line: discriminant studio FILE."
            )
        if table is not None and not isinstance(table, str):
            raise InputError("table must be a text.")
        register(address)
        address, fragment = split_table(address)
        table = table or fragment
        if table and not _TABLE_NAME.fullmatch(table):
            raise InputError(
                "table must be the name of a table, such as loans or bank.loans, without special "
                "characters. For a query, name the database on the command line."
            )
        if table and kind_of(address) == "duckdb":
            _check_duckdb_table(address, table)
        shown = masked(address)
        return Source(address, shown, shown, table or None)


def _check_duckdb_table(address: str, table: str) -> None:
    """Raise an error if a name is not that of a table: DuckDB would read a file of this name."""
    with open_connection(address, table, SQL_DIALECTS["duckdb"]) as connection:
        tables = connection.execute(
            "SELECT lower(table_catalog), lower(table_schema), lower(table_name) "
            "FROM information_schema.tables"
        ).fetchall()
    parts = tuple(table.lower().split("."))
    if not any(names[-len(parts) :] == parts for names in tables):
        known = ", ".join(sorted(names[2] for names in tables)[:10]) or "none"
        raise InputError(f"There is no table {table} in this database. Its tables: {known}.")


def safe_name(name: str) -> str:
    """Return a file name without folders and without special characters.

    >>> safe_name("../../etc/loans 2024.csv"), safe_name("..")
    ('loans 2024.csv', 'table')
    """
    base = re.split(r"[/\\\\]", name)[-1]
    base = re.sub(r"[^\w .()+-]", "_", base).strip(" .")
    return base.encode()[-_NAME_BYTES:].decode(errors="ignore").strip() or "table"


def preview(source: Source) -> dict[str, Any]:
    """Return the columns of a source, its first rows, and a guess of the target."""
    if is_address(source.path):
        names, rows = _database_head(source)
    else:
        names, rows = _file_head(source.path)
    columns = []
    for j, name in enumerate(names):
        texts = [row[j] for row in rows if j < len(row) and row[j] not in ("", "None")]
        columns.append(
            {"name": name, "distinct": len(set(texts)), "number": all(map(_is_number, texts))}
        )
    return {
        "name": source.name,
        "columns": columns,
        "rows": [[cell[:_SHOWN_TEXT] for cell in row] for row in rows[:_SHOWN_ROWS]],
        "previewed": len(rows),
        "target": source.target or guess_target(columns, len(rows)),
    }


def guess_target(columns: Sequence[dict[str, Any]], rows: int) -> str | None:
    """Return the column that most looks like a target.

    The last column, if it has few values; else the last column of texts with few values; else the
    last column.
    """
    few = [each for each in columns if 2 <= each["distinct"] <= max(min(rows // 3, 20), 2)]
    if columns and columns[-1] in few:
        return str(columns[-1]["name"])
    texts = [each for each in few if not each["number"]]
    for group in (texts, few, columns):
        if group:
            return str(group[-1]["name"])
    return None


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True


def _file_head(path: str) -> tuple[list[str], list[list[str]]]:
    reject_sparse_file(path)
    format = detect_format(path)
    if format.kind == "csv":
        dialect = format.csv_dialect
        with io.BufferedReader(format.open_text()) as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
            reader = csv.reader(text, delimiter=dialect.delimiter, quotechar=dialect.quote)
            try:
                rows = list(islice(filter(None, reader), _PREVIEW_ROWS + 1))
            except csv.Error:
                raise InputError(
                    f"Line {reader.line_num + 1} has a cell of more than "
                    f"{csv.field_size_limit():,} characters, or a quotation mark that is not "
                    "closed. Correct the line."
                ) from None
        return list(dialect.names), rows[1:]
    return _arrow_head(_arrow_table(format))


def _arrow_table(format: Any) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from discriminant.table.files.excel import read_workbook
    from discriminant.table.files.pyarrow_readers import (
        read_arrow_schema,
        read_json,
        translate_arrow_errors,
    )

    if format.kind == "excel":
        return read_workbook(format.path)
    if format.kind == "jsonl":
        return read_json(format)[0]
    schema = read_arrow_schema(format)
    if format.kind == "parquet":
        with translate_arrow_errors(format), pq.ParquetFile(format.path) as file:
            batch = next(file.iter_batches(_PREVIEW_ROWS), None)
        return schema.empty_table() if batch is None else pa.table(batch)
    return schema.empty_table()


def _arrow_head(table: Any) -> tuple[list[str], list[list[str]]]:
    head = table.slice(0, _PREVIEW_ROWS).to_pylist()
    names = [str(name) for name in table.column_names]
    return names, [
        ["" if row[n] is None else str(row[n]) for n in table.column_names] for row in head
    ]


def _database_head(source: Source) -> tuple[list[str], list[list[str]]]:
    from discriminant.study.data_source import open_partitions

    partitions = open_partitions(source.path, engine=None, **source.options)
    frame = partitions.sample(list(partitions.names), _PREVIEW_ROWS)
    columns = [frame[name].as_text() for name in frame.names]
    rows = []
    for i in range(min(len(frame), _PREVIEW_ROWS)):
        rows.append(["" if c.values[i] < 0 else str(c.levels[c.values[i]]) for c in columns])
    return list(frame.names), rows
