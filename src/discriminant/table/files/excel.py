"""Excel workbooks (.xlsx, .xlsm, .xlsb, .xls, .ods): the first sheet as an Arrow table.

The first row that is not empty holds the names of the columns. Cells are numbers, texts, truth
values and dates as Excel stores them; a column of several kinds is read as text. A cell with a
formula has the value that was saved with the file. The library python-calamine reads the file;
macros are never run.
"""

from __future__ import annotations

import datetime
import zipfile
from typing import Any

from discriminant.errors import FileError, LibraryMissingError

_OLD_OFFICE = b"\xd0\xcf\x11\xe0"
_SHEETS = ("xl/workbook.xml", "xl/workbook.bin", "content.xml")


def is_workbook(path: str, start: bytes) -> bool:
    """Whether a file is an Excel workbook (or an OpenDocument sheet), by its content."""
    if start.startswith(_OLD_OFFICE):
        return True
    if not start.startswith(b"PK\x03\x04"):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, NotImplementedError, OSError):  # a newer version of ZIP
        return False
    return any(name in names for name in _SHEETS)


def read_workbook(path: str) -> Any:
    """Return the first sheet of a workbook as an Arrow table."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise LibraryMissingError.of(
            "python-calamine", what="An Excel workbook", extra="excel"
        ) from None
    import pyarrow as pa

    try:
        workbook = CalamineWorkbook.from_path(path)
        rows = workbook.get_sheet_by_index(0).to_python(skip_empty_area=True)
    except (CalamineError, IndexError, OSError) as fault:
        kind = f"a workbook that can be read ({str(fault)[:100]})"
        raise FileError.not_a_table(path, f"not {kind}", "Save the sheet as CSV.") from None
    if not rows:
        raise FileError.empty(path)
    names, *cells = rows
    columns = list(zip(*cells, strict=True)) if cells else [()] * len(names)
    arrays = [_column(list(column)) for column in columns]
    texts = ["" if name is None else _text(name) or "" for name in names]
    return pa.Table.from_arrays(arrays, names=texts)


def _column(cells: list[Any]) -> Any:
    """Return a column as an Arrow array of one type; empty cells are missing."""
    import pyarrow as pa

    values = [None if cell == "" else cell for cell in cells]
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float}:
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    if kinds <= {datetime.date, datetime.datetime}:
        midnight = datetime.time()
        times = [
            datetime.datetime.combine(v, midnight) if type(v) is datetime.date else v
            for v in values
        ]
        return pa.array(times, pa.timestamp("us"))
    return pa.array([None if v is None else _text(v) for v in values], pa.string())


def _text(value: Any) -> str:
    """Return a cell as text; whole numbers without a decimal point."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
