"""Open a file, a data frame or an Arrow stream as a Table in memory.

    source -> cells of each column -> encoding of each column -> Table

Columns stay separate arrays, as they were read; no matrix is formed here. `engines.dispatch` opens
sources that are read in partitions.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discriminant.errors import (
    FileError,
    LabelError,
    LookalikeWarning,
    MissingCellError,
    OptionError,
    TargetError,
    TooFewRowsError,
    UnlabelledRowsWarning,
    WeightError,
    warn,
)
from discriminant.table.blocks import Floats, Labels, Places, Schema, check_weight
from discriminant.table.column_cells import Frame, encode_label_cells
from discriminant.table.column_types import (
    ReadOptions,
    frame_with_options,
    infer_encoding,
    resolve_csv_kinds,
)
from discriminant.table.encoding import Encoding
from discriminant.table.files.csv import CsvColumns, read_csv
from discriminant.table.files.csv_dialect import is_number
from discriminant.table.files.excel import read_workbook
from discriminant.table.files.formats import FileFormat, FileIdentity, detect_format
from discriminant.table.files.pyarrow_readers import (
    json_frame,
    read_arrow,
    read_arrow_schema,
    read_json,
)
from discriminant.table.files.text_decoding import MAX_BYTES
from discriminant.table.formula.fit import complete_rows, formula_encoding, formula_for_columns
from discriminant.table.labels import drop_empty_classes, lookalike_pairs
from discriminant.table.memory import ColumnarFeatures, Table
from discriminant.table.missing_and_unseen import MISSING_IN_TABLES


@dataclass(frozen=True, slots=True, eq=False)
class EncodedTable:
    """A table with the encoding of its columns and notes on how it was read.

    Attributes
    ----------
    table : Table
        Features, class codes and weights of the rows.
    encoding : Encoding
        How each column became features. The encoding is applied to new rows in the same way.
    notes : tuple of str
        Notes on the format, dropped rows, excluded columns and filled cells.
    format : FileFormat or None
        Format of the file, or None if the source is a data frame.
    rows_read : int
        Number of rows before rows with missing cells were dropped.
    kept_rows : array of int or None
        Numbers of the remaining rows, or None if no row was dropped.
    frame : Frame or None
        Cells of all labelled rows, including columns that are not features, or None for a sample of
        a partitioned table.
    """

    table: Table
    encoding: Encoding
    notes: tuple[str, ...]
    format: FileFormat | None
    rows_read: int
    kept_rows: Places | None = None
    frame: Frame | None = None

    def __repr__(self) -> str:
        """Return one line with the number of rows, features and classes."""
        classes = len(self.table.schema.labels)
        return (
            f"EncodedTable({len(self.table)} rows, {self.table.width} features, {classes} classes)"
        )


def open_source(
    source: Any,
    *,
    target: str,
    weight: str | None = None,
    ordered: Mapping[str, Sequence[str]] | None = None,
    categories: Iterable[str] = (),
    missing: str = "error",
    unlabelled: str = "error",
    unseen: str = "error",
    columns: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    reference: str | None = "frequent",
    max_classes: int = 1000,
    min_classes: int = 2,
    max_levels: int = 100,
    max_bytes: int = MAX_BYTES,
    missing_texts: Iterable[str] | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    formula: str | None = None,
) -> EncodedTable:
    """Read all rows of a source into memory and encode its columns as features.

    Parameters
    ----------
    source : path, data frame or Arrow stream
        A file (CSV, Parquet, Arrow IPC or JSON lines), a pandas, Polars or Arrow table, or any
        object with an Arrow stream.
    target : str
        Name of the column of labels.
    weight : str, optional
        Name of the column of sample weights.
    ordered : dict of str to list of str, optional
        Ordered categories: {column: levels from lowest to highest}.
    categories : iterable of str, default=()
        Columns that are categories although they look like numbers, such as postal codes.
    missing : {'error', 'drop', 'mean', 'indicator', 'marginal'}, default='error'
        Treatment of missing cells; see `table.encoding`. All values except 'error' also drop rows
        without a label: 'drop' with a note, the others with a warning.
    unlabelled : {'error', 'drop'}, default='error'
        Treatment of rows without a label if `missing` is 'error': raise an error, or drop them with
        a warning.
    unseen : {'error', 'ignore', 'reject'}, default='error'
        Treatment of levels that do not occur in these rows but in the rows to predict.
    columns : iterable of str, optional
        The only columns to use. Columns that are listed are used even if they would otherwise be
        excluded.
    exclude : iterable of str, default=()
        Columns not to use.
    reference : {'frequent', 'first', None}, default='frequent'
        Level of a category that has no indicator: the most frequent level, or the first one (in the
        declared order, or alphabetically if there is none). With None every level has an indicator,
        and the indicators sum to one.
    max_classes : int, default=1000
        Raise an error if the target has more classes than this.
    min_classes : {1, 2}, default=2
        Raise an error if the target has fewer classes than this. Use 1 for moments of a part of the
        rows that will be merged later.
    max_levels : int, default=100
        Exclude categories with more levels than this.
    max_bytes : int, default=2**36
        Stop reading text beyond this size.
    missing_texts : iterable of str, optional
        Texts of a CSV that mean "missing". The empty text and, in numeric columns, NA, NaN, nan,
        null and NULL are always included. A label is missing only if it is empty.
    encoding, delimiter, decimal : str, optional
        Text encoding, field delimiter and decimal sign of a CSV; detected by default.
    thousands : str, optional
        Sign between groups of three digits, such as ',' in 1,234. By default the sign is detected
        in columns in which it is unambiguous. A column that contains only texts such as 1,234 is
        not parsed, because 1,234 might mean 1.234.
    formula : str, optional
        Formula of the features, such as 'case ~ age + C(education)'; the left-hand side may be left
        out. Columns that the formula does not name are not used. A formula replaces the options
        `columns`, `ordered`, `categories` and `reference`, and requires `missing` to be 'error' or
        'drop'.

    Returns
    -------
    EncodedTable
        The table, the encoding of its columns, and notes on how it was read.

    See Also
    --------
    discriminant.rows : Open rows that need not fit into memory.
    """
    if missing == "em":
        allowed = "one of " + ", ".join(map(repr, MISSING_IN_TABLES))
        also = "EM is part of a fit: Encoded(model, missing='em'), or rows(..., missing='em')"
        raise OptionError.of("missing", missing, f"{allowed}. {also}")
    options = ReadOptions.from_arguments(
        target=target,
        weight=weight,
        columns=columns,
        exclude=exclude,
        ordered=ordered,
        categories=categories,
        missing=missing,
        unlabelled=unlabelled,
        unseen=unseen,
        reference=reference,
        max_levels=max_levels,
        missing_texts=missing_texts,
        thousands=thousands,
    )
    style = {
        "encoding": encoding,
        "delimiter": delimiter,
        "decimal": decimal,
        "thousands": thousands,
    }
    frame, format = _read_cells(source, options, None, max_bytes, style)
    return _encode_table(frame, format, options, max_classes, min_classes, formula)


def read_frame(
    source: Any,
    *,
    encoding: Encoding | None = None,
    target: str | None = None,
    max_bytes: int = MAX_BYTES,
    style: Mapping[str, str | None] | None = None,
    format: FileFormat | None = None,
) -> tuple[Frame, FileFormat | None]:
    """Read the cells of a source into memory, with columns of the kinds that an encoding expects.

    A column that contained text when the model was fitted is read as text, even if its values now
    look like numbers. If a `target` is given, labels are read exactly as they are written. `style`
    may state encoding, delimiter, decimal and thousands of a CSV, which are then not detected. Pass
    `format` if the format is already known; it is then not detected again.
    """
    style = style or {}
    options = ReadOptions(
        target,
        missing_texts=None if encoding is None else encoding.missing_texts,
        thousands=style.get("thousands"),
    )
    options.check()
    return _read_cells(source, options, encoding, max_bytes, style, format)


def is_path(source: Any) -> bool:
    """Whether a source is the name of a file."""
    return isinstance(source, str | os.PathLike)


# --- cells ----------------------------------------------------------------------------------------


def _read_cells(
    source: Any,
    options: ReadOptions,
    fitted: Encoding | None,
    max_bytes: int,
    style: Mapping[str, str | None],
    format: FileFormat | None = None,
) -> tuple[Frame, FileFormat | None]:
    if not is_path(source):
        return frame_with_options(source, options), None
    format = detect_format(source, **style) if format is None else format
    identity = FileIdentity.current(format.path)
    if format.kind == "excel":
        if identity.size > max_bytes:
            raise FileError.too_large(format.path, max_bytes)
        return frame_with_options(read_workbook(format.path), options), format
    frame, format = _read_file(format, options, fitted, max_bytes)
    identity.check()
    return frame, format


def _read_file(
    format: FileFormat, options: ReadOptions, fitted: Encoding | None, max_bytes: int
) -> tuple[Frame, FileFormat]:
    if format.kind == "csv":
        names = format.csv_dialect.names
        options.check_names(names)
        detected = dict(zip(names, format.csv_dialect.kinds, strict=True))
        kinds = resolve_csv_kinds(detected, options, fitted)
        return read_csv(
            CsvColumns.from_options(format, kinds, options, fitted, max_bytes=max_bytes)
        )
    if format.kind == "jsonl":
        table, format = read_json(format, max_bytes=max_bytes)
        options.check_names(table.column_names)
        return json_frame(table, options.columns_to_read(table.column_names)), format
    names = tuple(read_arrow_schema(format).names)
    options.check_names(names)
    return read_arrow(format, names, options.columns_to_read(names)), format


# --- table ----------------------------------------------------------------------------------------


def _encode_table(
    frame: Frame,
    format: FileFormat | None,
    options: ReadOptions,
    max_classes: int,
    min_classes: int,
    formula: str | None,
) -> EncodedTable:
    assert options.target is not None
    notes = [] if format is None else [format.description]
    rows_read = len(frame)
    if options.drops_unlabelled:
        frame = frame.drop_unlabelled(options.target)
        if not len(frame):
            raise LabelError.none_left(options.target, rows_read)
        if options.missing == "drop":
            notes += unlabelled_rows_note(rows_read, len(frame))
        elif len(frame) < rows_read:
            warn(UnlabelledRowsWarning.dropped(rows_read - len(frame), rows_read))
    parsed = None if formula is None else formula_for_columns(formula, frame.names, options)
    if parsed is not None and options.missing == "drop":
        labelled, complete = len(frame), complete_rows(frame, parsed)
        if len(complete) < labelled:
            frame = frame.take(complete)
            notes.append(dropped_rows_note(labelled, len(frame), options.missing))
    labels, codes = encode_label_cells(frame[options.target])
    check_classes(options.target, labels, len(frame), max_classes, min_classes=min_classes)
    weight = _weight(frame, options)
    if parsed is None:
        encoding, column_notes = infer_encoding(frame, options, weight=weight)
    else:
        encoding, column_notes = formula_encoding(frame, parsed, options)
    notes += column_notes
    encoding = replace(encoding, decimal="." if format is None else format.decimal)
    rows = encoding.encode_rows(frame, fitting=True)
    features: Any = rows.features
    kept_rows = frame.row_numbers
    if rows.incomplete.any() and options.missing in ("drop", "marginal"):
        complete = np.flatnonzero(~rows.incomplete)
        notes.append(dropped_rows_note(len(frame), len(complete), options.missing))
        if not len(complete):
            with_missing = [column.name for column in encoding.used if column.missing]
            raise MissingCellError.of_all(len(frame), with_missing)
        features = ColumnarFeatures(tuple(column[complete] for column in features.columns))
        labels, codes = drop_empty_classes(labels, codes[complete])
        weight = None if weight is None else weight[complete]
        kept_rows = complete if kept_rows is None else kept_rows[complete]
    notes += _filled_cells_note(encoding)
    table = Table(Schema(encoding.features, labels, True), features, codes, weight)
    return EncodedTable(table, encoding, tuple(notes), format, rows_read, kept_rows, frame)


def unlabelled_rows_note(rows: int, kept: int) -> list[str]:
    """Return a note on rows that were dropped because their label is missing, if any were."""
    return [f"{rows - kept} of {rows} rows have no label and are dropped."] if kept < rows else []


def dropped_rows_note(rows: int, kept: int, missing: str, *, labels: bool = False) -> str:
    """Return a note on rows that were dropped because of missing cells.

    With `labels`, the note also counts rows dropped because of a missing label.
    """
    why = "" if missing == "drop" else ": the fit is to complete rows"
    also = " or no label" if labels else ""
    return f"{rows - kept} of {rows} rows have a missing cell{also} and are dropped{why}."


def _filled_cells_note(encoding: Encoding) -> list[str]:
    counts = [column.missing for column in encoding.used if column.missing]
    if encoding.missing not in ("mean", "indicator") or not counts:
        return []
    kinds = {column.kind in ("category", "boolean") for column in encoding.used if column.missing}
    means = "the mean of the column"
    shares = "the shares of the levels (the mean of each indicator)"
    filled = {
        frozenset({False}): means,
        frozenset({True}): shares,
        frozenset({False, True}): f"{means}, or, in a category, by {shares}",
    }[frozenset(kinds)]
    also = ", and marked by a feature of their own" if encoding.missing == "indicator" else ""
    cells = "1 missing cell" if sum(counts) == 1 else f"{sum(counts):,} missing cells"
    columns = "1 column" if len(counts) == 1 else f"{len(counts)} columns"
    verb = "is" if sum(counts) == 1 else "are"
    return [f"{cells} in {columns} {verb} replaced by {filled}{also}."]


def _weight(frame: Frame, options: ReadOptions) -> Floats | None:
    if options.weight is None:
        return None
    cells = frame[options.weight]
    if cells.kind not in ("number", "boolean"):
        raise WeightError.not_numbers(f"{cells.kind} (column '{cells.name}')")
    return check_weight(cells.values, len(frame))


def check_classes(
    name: str,
    labels: Labels,
    rows: int,
    max_classes: int,
    *,
    whole: bool = True,
    min_classes: int = 2,
) -> None:
    """Raise an error for labels that cannot be classes.

    Labels are rejected if all are different, if there are too many or only one, or if they look
    continuous.

    That all labels are different is an error only if the rows are the whole table (`whole`).
    """
    if not isinstance(max_classes, int) or max_classes < 2:
        raise OptionError.of("max_classes", max_classes, "a whole number, 2 or more")
    classes = len(labels)
    texts = [label for label in labels.tolist() if isinstance(label, str)]
    if len(texts) == classes > 20 and _has_decimals(texts):
        raise TargetError.continuous_text(name, classes, rows)
    if whole and classes == rows > 2:
        raise TargetError.all_unique(name, rows)
    if classes > max_classes:
        raise TargetError.too_many(name, classes, rows, max_classes)
    if min_classes not in (1, 2):
        raise OptionError.of("min_classes", min_classes, "1 or 2")
    if whole and rows == 1 and min_classes > 1:
        raise TooFewRowsError.of_one_row("any classifier", 2)
    if classes < min_classes:
        raise LabelError.one_class(labels[0])
    pairs = lookalike_pairs(texts)
    if pairs:
        warn(LookalikeWarning.of(f"labels (column '{name}')", pairs))


def _has_decimals(texts: Sequence[str]) -> bool:
    """Whether all labels are numbers and some are not integers."""
    whole = [text.strip("+-").isdigit() for text in texts]
    return not all(whole) and all(is_number(text) for text in texts)
