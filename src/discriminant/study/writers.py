"""Rows as they were, with answers beside them, written some at a time.

A CSV is safe to open in a spreadsheet. A text that begins with = + - @ (of any width), a tab, a
line end or a NUL may be a formula there: such texts get a ' in front, header included; numbers are
left as they are. Cells of a CSV are passed on as they were written, and if they have a decimal
comma, so have the answers, with the delimiter of that file; cells of other files are
written as Python writes them. Parquet and Arrow IPC keep the kinds of the columns.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, BinaryIO, Protocol

from discriminant.errors import FileError
from discriminant.table.cells import Cells, Frame
from discriminant.table.files.csv_dialect import is_number, large_field_limit
from discriminant.table.files.formats import FileFormat
from discriminant.table.files.text_decoding import TextStream

_RISKY = ("=", "+", "-", "@", "\t", "\r", "\n", "\0", "＝", "＋", "－", "＠")
_FIRST = frozenset(_RISKY)


def safe_cell(text: str, decimal: str = ".") -> str:
    """A text that no spreadsheet takes for a formula.

    >>> [safe_cell(text) for text in ("=1+1", "-5.2", "-cmd", "plain")]
    ["'=1+1", '-5.2', "'-cmd", 'plain']
    """
    if text.startswith(_RISKY) and not (is_number(text) or is_number(text, decimal)):
        return f"'{text}"
    return text


class TableWriter(Protocol):
    """A file under way."""

    def add(self, table: Any, frame: Frame, answers: Mapping[str, Any]) -> None:
        """Write some rows: as Arrow has them and as cells, and what is said of them."""
        ...

    def close(self) -> None:
        """All is written."""
        ...

    def abort(self) -> None:
        """Let go of all files: what was written is not wanted."""
        ...


class CsvWriter:
    """A CSV, in UTF-8; of rows that were a CSV with their cells as they stand there."""

    def __init__(
        self, file: BinaryIO, names: Sequence[str], *, safe: bool, formats: Sequence[FileFormat]
    ) -> None:
        self.safe = safe
        texts = bool(formats) and formats[0].dialect is not None
        self.decimal = formats[0].dialect.decimal if texts and formats[0].dialect else "."
        self._path = formats[0].path if texts else ""
        self._rows = _written(formats) if texts else None
        self._ended = False
        self._text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
        delimiter = ","
        if self.decimal == "," and formats[0].dialect is not None:
            delimiter = formats[0].dialect.delimiter
        self._out = csv.writer(self._text, delimiter=delimiter, lineterminator="\n")
        self._out.writerow(self._safely(names))

    def add(self, table: Any, frame: Frame, answers: Mapping[str, Any]) -> None:
        """Write some rows."""
        rows = self._cells(frame) if self._rows is None else self._safe_rows(self._rows)
        said = zip(*(self._column(values) for values in answers.values()), strict=True)
        both = [[*row, *answer] for answer, row in zip(said, rows, strict=False)]
        if len(both) < len(frame):
            raise FileError.rows_differ(self._path)
        self._out.writerows(both)

    def close(self) -> None:
        """Let go of the files; every row has its answer."""
        if self._rows is not None and next(self._rows, None) is not None:
            raise FileError.rows_differ(self._path)
        self.abort()

    def abort(self) -> None:
        """Let go of the files."""
        if self._rows is not None:
            self._rows.close()
        if not self._ended:
            self._ended = True
            self._text.detach()

    def _safely(self, texts: Sequence[str]) -> list[str]:
        if not self.safe:
            return list(texts)
        sign = self.decimal  # looked at is the first letter alone, of most
        return [text if text[:1] not in _FIRST else safe_cell(text, sign) for text in texts]

    def _safe_rows(self, rows: Iterator[list[str]]) -> Iterator[list[str]]:
        return map(self._safely, rows)

    def _column(self, values: Any) -> list[Any]:
        """An answer to every row: numbers, or texts of which there are few."""
        if not isinstance(values, list):
            found: list[Any] = values.tolist()
            if self.decimal == ",":
                return [None if value is None else repr(value).replace(".", ",") for value in found]
            return found
        few = list(dict.fromkeys(values))
        safe = dict(zip(few, self._safely(few), strict=True))
        return [safe[text] for text in values]

    def _cells(self, frame: Frame) -> Iterator[list[Any]]:
        columns = [_values(cells, self._safely(cells.levels)) for cells in frame.columns]
        return map(list, zip(*columns, strict=True))


class ArrowWriter:
    """Parquet, or Arrow IPC."""

    def __init__(self, file: BinaryIO, *, parquet: bool) -> None:
        self._file, self._parquet = file, parquet
        self._out: Any = None

    def add(self, table: Any, frame: Frame, answers: Mapping[str, Any]) -> None:
        """Write some rows."""
        import pyarrow as pa

        for name, values in answers.items():
            table = table.append_column(name, pa.array(values))
        table = _plain(table)
        if self._out is None:
            self._out = self._opened(table.schema)
        self._out.write_table(table)

    def close(self) -> None:
        """Write the footer."""
        if self._out is not None:
            self._out.close()
            self._out = None

    def abort(self) -> None:
        """End the file while it is there, or its writer would try that later on."""
        with suppress(Exception):  # whatever it is, something else went wrong before
            self.close()

    def _opened(self, schema: Any) -> Any:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._parquet:
            return pq.ParquetWriter(self._file, schema)
        return pa.ipc.new_file(self._file, schema)


def _plain(table: Any) -> Any:
    """Texts as texts: codes of one batch are not those of the next."""
    import pyarrow as pa

    for j, one in enumerate(table.schema):
        if pa.types.is_dictionary(one.type):
            column = table.column(j).cast(one.type.value_type)
            table = table.set_column(j, pa.field(one.name, one.type.value_type), column)
    return table


def _written(formats: Iterable[FileFormat]) -> Generator[list[str], None, None]:
    """Rows of CSV files as they stand there."""
    for format in formats:
        dialect = format.dialect
        assert dialect is not None
        stream = TextStream(
            format.path, gzip=format.gzip, encoding=format.encoding, quote=dialect.quote
        )
        with (
            large_field_limit(),
            io.TextIOWrapper(io.BufferedReader(stream), "utf-8", newline="") as text,
        ):
            rows = csv.reader(text, delimiter=dialect.delimiter, quotechar=dialect.quote)
            next(rows)
            yield from (row for row in rows if row)


def _values(cells: Cells, levels: Sequence[str]) -> list[Any]:
    if cells.kind == "text":
        return [None if code < 0 else levels[code] for code in cells.values.tolist()]
    if cells.kind == "boolean":
        return [None if value != value else bool(value) for value in cells.values.tolist()]
    if cells.kind == "date":
        return [_day(value) for value in cells.values.tolist()]
    return [None if value != value else value for value in cells.values.tolist()]


def _day(value: float) -> str | None:
    """A day, or an instant, as ISO writes it."""
    from datetime import datetime, timedelta

    if value != value:
        return None
    found = datetime(1970, 1, 1) + timedelta(days=value)
    return found.date().isoformat() if value == int(value) else found.isoformat()
