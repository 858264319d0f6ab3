"""Writers of rows with added columns, in batches, as CSV, Parquet or Arrow IPC.

A CSV is safe to open in a spreadsheet. A text that begins with = + - @ (also full-width), a tab, a
line end or a NUL may be run as a formula, so it is prefixed with ', also in the header; numbers are
not changed. Cells of a CSV are copied unchanged from the source. The added columns use the
delimiter of the source, and a decimal comma if the source has one. Cells of other files are written
as Python prints them. Parquet and Arrow IPC keep the types of the columns.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, BinaryIO, Protocol

from discriminant.errors import FileError
from discriminant.table.column_cells import ColumnCells, Frame
from discriminant.table.files.csv_dialect import is_number, large_field_limit
from discriminant.table.files.formats import FileFormat
from discriminant.table.files.text_decoding import TextStream

_RISKY = frozenset("=+-@\t\r\n\0＝＋－＠")


def safe_cell(text: str, decimal: str = ".") -> str:
    """Return a text that no spreadsheet runs as a formula.

    >>> [safe_cell(text) for text in ("=1+1", "-5.2", "-cmd", "plain")]
    ["'=1+1", '-5.2', "'-cmd", 'plain']
    """
    if text[:1] in _RISKY and not (is_number(text) or is_number(text, decimal)):
        return f"'{text}"
    return text


class TableWriter(Protocol):
    """Writer of a file of rows with added columns."""

    def add(self, table: Any, frame: Frame, added: Mapping[str, Any]) -> None:
        """Write a batch of rows with the added columns.

        The rows are given both as an Arrow table and as a frame of cells.
        """
        ...

    def close(self) -> None:
        """Complete the file."""
        ...

    def abort(self) -> None:
        """Close all files and discard the file that was being written."""
        ...


class CsvWriter:
    """Writer of a CSV in UTF-8.

    `formats` are the formats of the CSV files whose rows are copied, if any.
    """

    def __init__(
        self, file: BinaryIO, names: Sequence[str], *, safe: bool, formats: Sequence[FileFormat]
    ) -> None:
        self.safe = safe
        dialect = formats[0].dialect if formats else None
        self.decimal = "." if dialect is None else dialect.decimal
        self._path = "" if dialect is None else formats[0].path
        self._rows = None if dialect is None else _csv_rows(formats)
        self._closed = False
        self._text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
        delimiter = dialect.delimiter if dialect is not None and self.decimal == "," else ","
        self._out = csv.writer(self._text, delimiter=delimiter, lineterminator="\n")
        self._out.writerow(self._safe_cells(names))

    def add(self, table: Any, frame: Frame, added: Mapping[str, Any]) -> None:
        """Write a batch of rows."""
        rows = self._cells(frame) if self._rows is None else map(self._safe_cells, self._rows)
        columns = zip(*(self._added_column(values) for values in added.values()), strict=True)
        # the added cells come first, so that zip does not read a row beyond the batch
        lines = [[*row, *cells] for cells, row in zip(columns, rows, strict=False)]
        if len(lines) < len(frame):
            raise FileError.rows_differ(self._path)
        self._out.writerows(lines)

    def close(self) -> None:
        """Close the files; raise an error if source rows are left over."""
        if self._rows is not None and next(self._rows, None) is not None:
            raise FileError.rows_differ(self._path)
        self.abort()

    def abort(self) -> None:
        """Close the files."""
        if self._rows is not None:
            self._rows.close()
        if not self._closed:
            self._closed = True
            self._text.detach()

    def _safe_cells(self, texts: Sequence[str]) -> list[str]:
        if not self.safe:
            return list(texts)
        return [safe_cell(text, self.decimal) if text[:1] in _RISKY else text for text in texts]

    def _added_column(self, values: Any) -> list[Any]:
        """Return the cells of an added column of numbers, or of text with few distinct values."""
        if isinstance(values, list):
            distinct = list(dict.fromkeys(values))
            safe = dict(zip(distinct, self._safe_cells(distinct), strict=True))
            return [safe[text] for text in values]
        numbers: list[Any] = values.tolist()
        if self.decimal == ",":
            return [None if value is None else repr(value).replace(".", ",") for value in numbers]
        return numbers

    def _cells(self, frame: Frame) -> Iterator[list[Any]]:
        columns = [_values(cells, self._safe_cells(cells.levels)) for cells in frame.columns]
        return map(list, zip(*columns, strict=True))


class ArrowWriter:
    """Writer of Parquet or Arrow IPC."""

    def __init__(self, file: BinaryIO, *, parquet: bool) -> None:
        self._file, self._parquet = file, parquet
        self._out: Any = None

    def add(self, table: Any, frame: Frame, added: Mapping[str, Any]) -> None:
        """Write a batch of rows."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        for name, values in added.items():
            table = table.append_column(name, pa.array(values))
        table = _without_dictionaries(table)
        if self._out is None:
            open_writer = pq.ParquetWriter if self._parquet else pa.ipc.new_file
            self._out = open_writer(self._file, table.schema)
        self._out.write_table(table)

    def close(self) -> None:
        """Write the footer."""
        if self._out is not None:
            self._out.close()
            self._out = None

    def abort(self) -> None:
        """Close the file now, while it exists; otherwise its writer would close it later."""
        with suppress(Exception):  # the original error is reported
            self.close()


def _without_dictionaries(table: Any) -> Any:
    """Return the table with text columns instead of dictionaries, which differ between batches."""
    import pyarrow as pa

    for j, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            column = table.column(j).cast(field.type.value_type)
            table = table.set_column(j, pa.field(field.name, field.type.value_type), column)
    return table


def _csv_rows(formats: Iterable[FileFormat]) -> Generator[list[str], None, None]:
    """Yield the rows of CSV files as text."""
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


def _values(cells: ColumnCells, levels: Sequence[str]) -> list[Any]:
    if cells.kind == "text":
        return [None if code < 0 else levels[code] for code in cells.values.tolist()]
    converters: dict[str, Callable[[Any], Any]] = {"boolean": bool, "date": iso_date}
    convert = converters.get(cells.kind, lambda number: number)
    return [None if value != value else convert(value) for value in cells.values.tolist()]


def iso_date(days: float) -> str:
    """Return days since 1970 as an ISO date, with the time if there is one."""
    instant = datetime(1970, 1, 1) + timedelta(days=days)
    return instant.date().isoformat() if days == int(days) else instant.isoformat()
