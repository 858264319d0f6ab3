"""File formats: detection of Parquet, Arrow IPC, Excel, JSON lines and CSV from the content.

    Parquet      starts with PAR1
    Arrow IPC    starts with ARROW1 (file) or a continuation mark (stream)
    Excel        a zip archive with a workbook, or an old Office file
    JSON lines   text that starts with an object, {
    CSV          any other text; `csv_dialect` detects delimiter, decimal sign, quote and encoding

The name of a file has no influence. A text may be compressed with gzip. Only regular files are
read, because a symbolic link may point anywhere, and a pipe or a device may never end. This module
does not read rows.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from discriminant.errors import FileError, OptionError, check_file_name
from discriminant.table.files.csv_dialect import CsvDialect, detect_dialect
from discriminant.table.files.excel import is_workbook
from discriminant.table.files.text_decoding import (
    EncodingMismatch,
    TextEncoding,
    TextStream,
    detect_encoding,
)

FileKind = Literal["csv", "parquet", "arrow", "jsonl", "excel"]

SAMPLE = 1 << 20  # bytes of text from which the format is detected

_FOREIGN = {  # first bytes of other files that are often passed by mistake
    b"PK\x03\x04": ("a zip archive (or an Excel workbook)", "Unpack it, or save as CSV."),
    b"BZh": ("packed with bzip2", "Unpack it with bunzip2, or pack it with gzip."),
    b"\xfd7zXZ": ("packed with xz", "Unpack it with unxz, or pack it with gzip."),
    b"\x28\xb5\x2f\xfd": ("packed with zstd", "Unpack it with unzstd, or pack it with gzip."),
    b"SQLite format 3": (
        "a SQLite database",
        "Name the table: --table, or #table after sqlite:///PATH.",
    ),
    b"FEA1": ("an old Feather file", "Write it again as Parquet or Arrow IPC."),
    b"%PDF": ("a PDF", "Save the table as CSV."),
    b"\x89HDF": ("an HDF5 file", "Save the table as Parquet or CSV."),
    b"\x80\x04": ("a pickle", "A pickle can run code and is never opened: save as CSV or Parquet."),
    b"\x80\x05": ("a pickle", "A pickle can run code and is never opened: save as CSV or Parquet."),
}


@dataclass(frozen=True, slots=True)
class FileFormat:
    """Format of a file."""

    path: str
    kind: FileKind
    gzip: bool = False
    encoding: TextEncoding = TextEncoding()  # noqa: RUF009 -- frozen
    dialect: CsvDialect | None = None  # set for CSV only

    @property
    def csv_dialect(self) -> CsvDialect:
        """Dialect of a CSV file."""
        assert self.dialect is not None
        return self.dialect

    @property
    def decimal(self) -> str:
        """Decimal sign of the numbers in the file."""
        return "." if self.dialect is None else self.dialect.decimal

    def open_text(self, **options: Any) -> TextStream:
        """Open the text of the file as UTF-8. `options` are passed to `TextStream`."""
        return TextStream(self.path, gzip=self.gzip, encoding=self.encoding, **options)

    @property
    def description(self) -> str:
        """Description of the format in a sentence."""
        packed = ", packed with gzip" if self.gzip else ""
        if self.kind == "parquet":
            return "Read as Parquet."
        if self.kind == "arrow":
            return "Read as Arrow IPC."
        if self.kind == "excel":
            return "Read as an Excel workbook: its first sheet."
        if self.dialect is None:
            return f"Read as JSON lines, {self.encoding.description}{packed}."
        return f"Read as CSV: {self.dialect.description}, {self.encoding.description}{packed}."

    def with_encoding(self, encoding: TextEncoding) -> FileFormat:
        """Return the format with another text encoding."""
        return replace(self, encoding=encoding)


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """Size, time and inode of a file, which show whether it changed since it was opened."""

    path: str
    size: int
    changed: int
    inode: int

    @classmethod
    def current(cls, path: str) -> FileIdentity:
        """Return the current identity of a file."""
        status = os.stat(path)
        return cls(path, status.st_size, status.st_mtime_ns, status.st_ino)

    def check(self) -> None:
        """Raise FileError if the file has changed since this identity was recorded."""
        exists = os.path.exists(self.path)
        now = FileIdentity.current(self.path) if exists else replace(self, size=0)
        if now != self:
            raise FileError.changed(self.path, self.size, now.size)


def regular_file(path: str | os.PathLike[str]) -> str:
    """Return the path of a regular file; raise FileError for a folder, link, pipe or device."""
    check_file_name(path)
    path = os.fspath(path)
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise FileError.absent(path) from None
    except (OSError, ValueError) as fault:
        raise FileError.not_allowed(path, str(fault)) from None
    if stat.S_ISREG(mode):
        return path
    if stat.S_ISLNK(mode):
        target = Path(path).parent / os.readlink(path)
        raise FileError.of_kind(path, "a symbolic link", f"Pass the file it leads to: {target}.")
    kinds = (
        (stat.S_ISDIR, "a directory", "Pass one of the files in it."),
        (stat.S_ISFIFO, "a named pipe (FIFO)", "Write its content to a file first."),
        (stat.S_ISCHR, "a character device", "Pass a file."),
        (stat.S_ISBLK, "a block device", "Pass a file."),
        (stat.S_ISSOCK, "a socket", "Pass a file."),
    )
    kind, way_out = next((name, out) for test, name, out in kinds if test(mode))
    raise FileError.of_kind(path, kind, way_out)


def detect_format(
    path: str | os.PathLike[str],
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
) -> FileFormat:
    """Detect the format of a file.

    Parameters
    ----------
    path : path
        A regular file: CSV, JSON lines, Parquet, Arrow IPC or Excel.
    encoding, delimiter, decimal, thousands : str, optional
        Text encoding, separators and decimal sign of a CSV. Options that are None are detected.

    Returns
    -------
    FileFormat
        The format, with the dialect of a CSV.
    """
    path = regular_file(path)
    start = _first_bytes(path)
    if start.startswith((b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")):
        _reject_csv_options(
            encoding=encoding, delimiter=delimiter, decimal=decimal, thousands=thousands
        )
        return FileFormat(path, "parquet" if start[:4] == b"PAR1" else "arrow")
    if is_model_file(path):
        raise FileError.stored(path)
    packed = start[:2] == b"\x1f\x8b"
    if is_workbook(path, start):
        _reject_csv_options(
            encoding=encoding, delimiter=delimiter, decimal=decimal, thousands=thousands
        )
        return FileFormat(path, "excel")
    if not packed:
        _reject_foreign(path, start)
    style = {"delimiter": delimiter, "decimal": decimal, "thousands": thousands}
    return _text_format(path, packed, encoding, style)


def _reject_csv_options(**given: str | None) -> None:
    for name, value in given.items():
        if value is not None:
            raise OptionError.of(name, value, "left out: it applies only to CSV files")


def is_model_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file was saved by discriminant: a model, or moments."""
    if not os.path.isfile(path) or not os.path.getsize(path):
        return False
    with open(path, "rb") as file:
        start = file.read(64)
    return b"\0" in start[:8] and start[8:].startswith(b'{"__metadata__":{"format":"discriminant"')


def _first_bytes(path: str) -> bytes:
    try:
        if not os.path.getsize(path):  # includes /proc files, whose content may never end
            raise FileError.empty(path)
        with open(path, "rb") as file:
            return file.read(16)
    except FileError:
        raise
    except OSError as fault:
        raise FileError.not_allowed(path, fault.strerror or str(fault)) from None


def _reject_foreign(path: str, start: bytes) -> None:
    for mark, (kind, way_out) in _FOREIGN.items():
        if start.startswith(mark):
            raise FileError.not_a_table(path, kind, way_out)


def _decode_sample(path: str, packed: bool, encoding: TextEncoding) -> tuple[TextEncoding, str]:
    """Return the first part of a text and its encoding, which may differ from the expected one."""
    try:
        with TextStream(path, gzip=packed, encoding=encoding) as text:
            return encoding, text.head(SAMPLE)
    except EncodingMismatch as mismatch:
        return _decode_sample(path, packed, mismatch.encoding)


def _text_format(
    path: str, packed: bool, encoding: str | None, style: Mapping[str, str | None]
) -> FileFormat:
    with TextStream(path, gzip=packed, encoding=None) as raw:
        start = raw.read(SAMPLE)
    if packed:
        if start.startswith((b"PAR1", b"ARROW1")):
            raise FileError.not_a_table(path, "a packed Parquet or Arrow file", "Unpack it.")
        _reject_foreign(path, start)
    detected, sample = _decode_sample(path, packed, detect_encoding(start, encoding))
    first = sample.lstrip()[:1]
    if not first:
        raise FileError.empty(path)
    if first == "{":
        _reject_csv_options(**style)
        return FileFormat(path, "jsonl", packed, detected)
    if first == "[" and sample.lstrip()[1:].lstrip()[:1] == "{":
        raise FileError.not_a_table(path, "a JSON array", "Write one object a line instead.")
    return FileFormat(path, "csv", packed, detected, detect_dialect(path, sample, **style))
