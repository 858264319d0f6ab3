"""CSV to cells, by pyarrow: every column of the kind that the sample showed.

Blocks of 1 MB are parsed in parallel while the file is read. pyarrow takes a block at a time for
whole lines; a quoted field with a line end in it that happens to lie at the border of two blocks
makes it stop, and only then is the slower way taken that looks for such fields. What else stops it
is a mistake in the file: `table.csv_faults` finds the place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discriminant.errors import BadNumberError, FileError
from discriminant.table.cells import Cells, Frame, arrow_cells
from discriminant.table.csv_faults import blame, cell_at, check_quotes, line_at
from discriminant.table.dialect import FALSE, MAX_FIELD, MAX_LINE, MISSING, TRUE, Kind, is_number
from discriminant.table.files import Format
from discriminant.table.stream import MAX_BYTES, Recoded, Stream
from discriminant.table.writing import grouped_style, read_as

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class CsvPlan:
    """What to read of a CSV, and as what."""

    format: Format
    kinds: Mapping[str, Kind]  # of the columns to read
    missing: tuple[str, ...] = MISSING  # texts that stand for no number
    empty: tuple[str, ...] = ("",)  # texts that stand for no category
    target: str | None = None  # of which only an empty cell is missing
    max_bytes: int = MAX_BYTES


def read_csv(plan: CsvPlan) -> tuple[Frame, Format]:
    """All rows, and the format with the encoding that it was found to have."""
    try:
        table = _read(plan)
    except Recoded as found:
        plan = replace(plan, format=plan.format.recoded(found.encoding))
        table = _read(plan)
    if not table.num_rows:
        assert plan.format.dialect is not None
        raise FileError.no_rows(plan.format.path, len(plan.format.dialect.names))
    assert plan.format.dialect is not None
    rows, cells = table.num_rows, csv_cells(table, plan)
    others = tuple(name for name in plan.format.dialect.names if name not in plan.kinds)
    frame = Frame(
        cells,
        rows,
        line_of=lambda row: line_at(plan.format, row),
        text_of=lambda row, column: cell_at(plan.format, row, column),
        left_out=others,
    )
    return frame, plan.format


def _read(plan: CsvPlan) -> Any:
    """The table, tried the quick way first."""
    import pyarrow as pa

    dialect = plan.format.dialect
    assert dialect is not None
    broken, block = dialect.broken, _BLOCK
    while True:
        try:
            return _attempt(plan, broken=broken, block=block)
        except pa.ArrowInvalid as fault:
            text = str(fault)
            if "out of sync" in text and not broken:
                broken = True
            elif "straddl" in text and block == _BLOCK:
                block = 4 * MAX_LINE
            else:
                blame(plan.format, plan.kinds, plan.missing)
                raise FileError.damaged(plan.format.path, "the text", text) from None


def _attempt(plan: CsvPlan, *, broken: bool, block: int) -> Any:
    from pyarrow import csv

    dialect = plan.format.dialect
    assert dialect is not None
    text = plan.format.encoding
    with Stream(
        plan.format.path,
        gzip=plan.format.gzip,
        encoding=text,
        max_bytes=plan.max_bytes,
        quote=dialect.quote,
        delimiter=dialect.delimiter,
    ) as stream:
        table = csv.read_csv(
            stream,
            read_options=csv.ReadOptions(block_size=block),
            parse_options=csv.ParseOptions(
                delimiter=dialect.delimiter, quote_char=dialect.quote, newlines_in_values=broken
            ),
            convert_options=conversion(plan),
        )
        if stream.quotes % 2:
            blame(plan.format, plan.kinds, plan.missing)
        if stream.suspect:
            check_quotes(plan.format, plan.kinds)
    return table.rename_columns(list(plan.kinds))


def conversion(plan: CsvPlan) -> Any:
    """How pyarrow shall turn the columns to be read."""
    from pyarrow import csv

    dialect = plan.format.dialect
    assert dialect is not None
    place = {name: j for j, name in enumerate(dialect.names)}
    types = {
        dialect.header[place[name]]: _type(kind, dialect.varied[place[name]])
        for name, kind in plan.kinds.items()
    }
    return csv.ConvertOptions(
        column_types=types,
        include_columns=list(types),
        null_values=list(plan.missing),
        strings_can_be_null=False,
        true_values=list(TRUE),
        false_values=list(FALSE),
        decimal_point=dialect.decimal,
    )


def _type(kind: Kind, varied: bool) -> Any:
    import pyarrow as pa

    if kind in ("text", "empty", "grouped"):
        return pa.string() if varied else pa.dictionary(pa.int32(), pa.string())
    known = {"number": pa.float64(), "boolean": pa.bool_(), "date": pa.date32()}
    return known.get(kind, pa.timestamp("us"))


def csv_cells(table: Any, plan: CsvPlan) -> tuple[Cells, ...]:
    """Cells column by column, each let go by Arrow when it is turned."""
    assert plan.format.dialect is not None
    names, columns = table.column_names, list(table.columns)
    del table
    found = []
    for name in names:
        gone = ("",) if name == plan.target else plan.empty
        cells = arrow_cells(name, columns.pop(0), missing=gone)
        if cells.kind == "text":
            _check_lengths(cells, plan)
            if plan.kinds[name] == "empty":
                cells = _numbers_after_all(cells, plan.missing, plan.format.dialect.decimal)
            if plan.kinds[name] == "grouped":
                cells = _grouped_numbers(cells, plan)
        found.append(cells)
    return tuple(found)


def _check_lengths(cells: Cells, plan: CsvPlan) -> None:
    if max(map(len, cells.levels), default=0) > MAX_FIELD:
        blame(plan.format, plan.kinds, plan.missing)


def _grouped_numbers(cells: Cells, plan: CsvPlan) -> Cells:
    """Numbers with grouped digits, where the user named the sign and the model has a number."""
    dialect = plan.format.dialect
    assert dialect is not None and dialect.thousands is not None
    read = read_as(grouped_style(dialect.thousands, dialect.decimal))
    values = [np.nan if text in plan.missing else read(text) for text in cells.levels]
    for code, value in enumerate(values):
        rows = np.flatnonzero(cells.values == code) if value is None else ()
        for row in rows[:1]:
            raise BadNumberError.of(int(row), cells.name, cells.levels[code])
    table = np.array([np.nan if value is None else value for value in values] + [np.nan])
    return Cells(cells.name, "number", table[cells.values])


def _numbers_after_all(cells: Cells, missing: Sequence[str], decimal: str) -> Cells:
    """A column that had no value in the sample: numbers, if all its values are."""
    values = [text for text in cells.levels if text not in missing]
    if not all(is_number(text, decimal) for text in values):
        return cells
    number = {text: float(text.replace(decimal, ".")) for text in values}
    table = np.array([number.get(text, np.nan) for text in cells.levels] + [np.nan])
    return Cells(cells.name, "number", table[cells.values])
