"""Open a file, a frame or a stream of Arrow batches as a Table, and say what was done to it.

    source -> cells (of each column) -> encoding (what becomes of each) -> Table

The columns stay apart, as they were read: no matrix is made of them here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discriminant.errors import (
    LabelError,
    LookalikeWarning,
    MissingCellError,
    OptionError,
    TargetError,
    TooFewRowsError,
    WeightError,
    warn,
)
from discriminant.table.blocks import Codes, Floats, Labels, Places, Schema
from discriminant.table.cells import Cells, Frame, encode_label_cells
from discriminant.table.column_types import (
    ReadOptions,
    csv_column_kinds,
    frame_with_options,
    infer_encoding,
)
from discriminant.table.encoding import Encoding
from discriminant.table.files.arrow import arrow_names, json_frame, read_arrow, read_json
from discriminant.table.files.csv import CsvColumns, read_csv
from discriminant.table.files.csv_dialect import is_number
from discriminant.table.files.formats import FileFormat, FileIdentity, detect_format
from discriminant.table.files.text import MAX_BYTES
from discriminant.table.labels import drop_empty_classes, lookalike_pairs
from discriminant.table.memory import ColumnarFeatures, Table, check_weight


@dataclass(frozen=True, slots=True, eq=False)
class EncodedTable:
    """A table, what its columns became, and what there is to say of it."""

    table: Table
    encoding: Encoding
    notes: tuple[str, ...]
    format: FileFormat | None  # None of a frame
    rows_read: int  # before rows with missing cells were dropped
    kept_rows: Places | None = None  # numbers of those that were not, where some were

    def __repr__(self) -> str:
        """One line: how many rows, features and classes."""
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
) -> EncodedTable:
    """Read all rows, learn what becomes of each column, and make a table of it.

    Parameters
    ----------
    source
        The path of a file, a data frame, or anything with an Arrow stream.
    target, weight
        The columns of labels, and of weights.
    columns, exclude
        The columns to use (then even if they would be set aside), or not to use.
    ordered
        {column: levels from lowest to highest}.
    categories
        Columns that are categories though they look like numbers, such as postal codes.
    missing
        'error', 'drop' (the row; also one without a label), 'mean', 'indicator' or 'marginal'; see
        `table.encoding`.
    unseen
        What a level not seen here shall be when predicting: 'error', 'ignore' or 'reject'.
    reference
        The level of a category that has no indicator: the most 'frequent' one, the 'first' in the
        order of its categories (of texts in that of the alphabet), or None: then all levels have
        one, and they sum to one.
    max_classes, max_levels, max_bytes
        Limits: more classes are refused, a category of more levels is set aside, reading stops.
    min_classes
        Fewer classes are refused. 1: for moments of a part of the rows, which are merged later.
    missing_texts
        Texts of a CSV that stand for a missing cell. None: the empty one, and in columns of
        numbers also NA, NaN, nan, null and NULL. Of labels only an empty one is missing.
    encoding, delimiter, decimal
        How a CSV is written, where it should not be guessed.
    thousands
        The sign between groups of three digits in texts, such as ',' for 1,234. None: recognised
        where it is certain; a column of 1,234 alone is refused, for it may mean 1.234.
    """
    wishes = ReadOptions.from_arguments(
        target=target,
        weight=weight,
        columns=columns,
        exclude=exclude,
        ordered=ordered,
        categories=categories,
        missing=missing,
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
    frame, format = _read(source, wishes, None, max_bytes, style)
    return _opened(frame, format, wishes, max_classes, min_classes)


def read_frame(
    source: Any,
    *,
    encoding: Encoding | None = None,
    target: str | None = None,
    max_bytes: int = MAX_BYTES,
    style: Mapping[str, str | None] | None = None,
    format: FileFormat | None = None,
) -> tuple[Frame, FileFormat | None]:
    """The cells of a source, of the kinds that an encoding was learnt from.

    So that a column that was text at the fit is read as text, whatever it looks like now; and
    labels, if a `target` is named, as they are written. `style`: encoding, delimiter, decimal and
    thousands of a CSV, where they should not be guessed. A known `format` is not detected again.
    """
    style = style or {}
    wishes = ReadOptions(
        target,
        missing_texts=None if encoding is None else encoding.missing_texts,
        thousands=style.get("thousands"),
    )
    wishes.check()
    return _read(source, wishes, encoding, max_bytes, style, format)


def is_path(source: Any) -> bool:
    """Whether a source is the name of a file."""
    return isinstance(source, str | os.PathLike)


# --- reading -------------------------------------------------------------------------------------


def _read(
    source: Any,
    wishes: ReadOptions,
    fitted: Encoding | None,
    max_bytes: int,
    style: Mapping[str, str | None],
    format: FileFormat | None = None,
) -> tuple[Frame, FileFormat | None]:
    if not is_path(source):
        return frame_with_options(source, wishes), None
    format = detect_format(source, **style) if format is None else format
    identity = FileIdentity.current(format.path)
    frame, format = _read_file(format, wishes, fitted, max_bytes)
    identity.check()
    return frame, format


def _read_file(
    format: FileFormat,
    wishes: ReadOptions,
    fitted: Encoding | None,
    max_bytes: int,
) -> tuple[Frame, FileFormat]:
    if format.kind == "csv":
        assert format.dialect is not None
        names = format.dialect.names
        wishes.check_names(names)
        kinds = csv_column_kinds(
            dict(zip(names, format.dialect.kinds, strict=True)), wishes, fitted
        )
        texts = wishes.missing_texts
        gone = {} if texts is None else {"missing": texts, "empty": texts}
        target = wishes.target if fitted is None else fitted.target
        return read_csv(CsvColumns(format, kinds, target=target, max_bytes=max_bytes, **gone))
    if format.kind == "jsonl":
        names, table, format = read_json(format, max_bytes=max_bytes)
        wishes.check_names(names)
        return json_frame(table, names, wishes.columns_to_read(names)), format
    names = arrow_names(format)
    wishes.check_names(names)
    return read_arrow(format, names, wishes.columns_to_read(names)), format


# --- making the table ----------------------------------------------------------------------------


def _opened(
    frame: Frame, format: FileFormat | None, wishes: ReadOptions, max_classes: int, min_classes: int
) -> EncodedTable:
    assert wishes.target is not None
    said = [] if format is None else [format.description]
    read = len(frame)
    if wishes.missing == "drop":
        frame = frame.drop_unlabelled(wishes.target)
        if not len(frame):
            raise LabelError.none_left(wishes.target, read)
        said += unlabelled_rows_note(read, len(frame))
    labels, codes = _labels(frame, frame[wishes.target], max_classes, min_classes)
    weight = _weight(frame, wishes)
    encoding, told = infer_encoding(frame, wishes, weight=weight)
    encoding = replace(encoding, decimal="." if format is None else format.decimal)
    rows = encoding.encode_rows(frame, fitting=True)
    features: Any = rows.features
    keep = frame.row_numbers
    if rows.incomplete.any() and wishes.missing in ("drop", "marginal"):
        keep = np.flatnonzero(~rows.incomplete)
        told.append(dropped_rows_note(len(frame), len(keep), wishes.missing))
        _check_left(len(keep), len(frame), encoding)
        features = ColumnarFeatures(tuple(column[keep] for column in features.columns))
        labels, codes = drop_empty_classes(labels, codes[keep])
        weight = None if weight is None else weight[keep]
        keep = keep if frame.row_numbers is None else frame.row_numbers[keep]
    told += _filled(encoding)
    table = Table(Schema(encoding.features, labels, True), features, codes, weight)
    return EncodedTable(table, encoding, tuple(said + told), format, read, keep)


def unlabelled_rows_note(rows: int, kept: int) -> list[str]:
    """A note on rows that were dropped for want of a label, if there are any."""
    return [f"{rows - kept} of {rows} rows have no label and are dropped."] if kept < rows else []


def dropped_rows_note(rows: int, kept: int, missing: str, *, labels: bool = False) -> str:
    """A note on rows that were dropped for a missing cell, or also for want of a label."""
    why = "" if missing == "drop" else ": the fit is to complete rows"
    also = " or no label" if labels and missing == "drop" else ""
    return f"{rows - kept} of {rows} rows have a missing cell{also} and are dropped{why}."


def _check_left(kept: int, rows: int, encoding: Encoding) -> None:
    if not kept:
        gaps = [column.name for column in encoding.used if column.missing]
        raise MissingCellError.of_all(rows, gaps)


def _filled(encoding: Encoding) -> list[str]:
    if encoding.missing not in ("mean", "indicator"):
        return []
    gaps = [column for column in encoding.used if column.missing]
    count = sum(column.missing for column in gaps)
    also = ", and marked by a feature of their own" if encoding.missing == "indicator" else ""
    if not count:
        return []
    return [f"{count} missing cells in {len(gaps)} column(s) are filled with means{also}."]


def _weight(frame: Frame, wishes: ReadOptions) -> Floats | None:
    if wishes.weight is None:
        return None
    cells = frame[wishes.weight]
    if cells.kind not in ("number", "boolean"):
        raise WeightError.not_numbers(f"{cells.kind} (column '{cells.name}')")
    return check_weight(cells.values, len(frame))


def _labels(frame: Frame, cells: Cells, max_classes: int, min_classes: int) -> tuple[Labels, Codes]:
    """The classes, exactly as they are written, and the code of every row."""
    labels, codes = encode_label_cells(cells)
    check_classes(cells.name, labels, len(frame), max_classes, min_classes=min_classes)
    return labels, codes


def check_classes(
    name: str,
    labels: Labels,
    rows: int,
    max_classes: int,
    *,
    whole: bool = True,
    min_classes: int = 2,
) -> None:
    """Refuse labels that are no classes: one for each row, too many, only one, or numbers.

    Unless the rows are the `whole` table, one label for each is no reason.
    """
    if not isinstance(max_classes, int) or max_classes < 2:
        raise OptionError.of("max_classes", max_classes, "a whole number, 2 or more")
    classes = len(labels)
    texts = [label for label in labels.tolist() if isinstance(label, str)]
    if len(texts) == classes > 20 and _continuous(texts):
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


def _continuous(texts: Sequence[str]) -> bool:
    """Whether labels are numbers with decimals."""
    whole = [text.strip("+-").isdigit() for text in texts]
    return not all(whole) and all(is_number(text) for text in texts)
