"""Files that cannot be read as a table, and the places in them that are wrong."""

from __future__ import annotations

import os
from collections.abc import Sequence

from discriminant.errors.base import InputError
from discriminant.redaction import is_address, register, shown_address


class FileError(InputError):
    """A file cannot be read as a table."""

    # --- what it is ----------------------------------------------------------------------------

    @classmethod
    def of_address(cls, shown: str) -> FileError:
        return cls(
            f"{shown} is an address, not a file. To read a table of a database, pass the address "
            "as the source, with table= or query= (--table, --query)."
        )

    @classmethod
    def absent(cls, path: str) -> FileError:
        return cls(f"{path}: there is no such file. Check the name and the folder.")

    @classmethod
    def no_files(cls, path: str) -> FileError:
        return cls(
            f"{path} is a directory with no file in it. Name a file, or a folder of files: CSV, "
            "Parquet, Arrow IPC or JSON lines."
        )

    @classmethod
    def of_kind(cls, path: str, kind: str, way_out: str) -> FileError:
        return cls(f"{path} is {kind}, not a regular file, and is not read. {way_out}")

    @classmethod
    def not_allowed(cls, path: str, reason: str) -> FileError:
        return cls(f"{path} cannot be opened: {reason}. Check who may read it.")

    @classmethod
    def not_a_table(cls, path: str, kind: str, way_out: str) -> FileError:
        return cls(
            f"{path} is {kind} by its first bytes, not CSV, Parquet, Arrow IPC or JSON lines. "
            f"{way_out}"
        )

    @classmethod
    def stored(cls, path: str) -> FileError:
        return cls(
            f"{path} is a file of discriminant, a model or moments, and no table. A model is "
            f"opened with discriminant.load, or answers rows: 'discriminant predict {path} ROWS "
            f"--out ...'; from moments a model is made: 'discriminant fit {path} --model lda "
            "--out ...'."
        )

    @classmethod
    def empty(cls, path: str) -> FileError:
        return cls(f"{path}: the file is empty (0 bytes of text). Was it written to the end?")

    @classmethod
    def no_rows(cls, path: str, columns: int) -> FileError:
        return cls(
            f"{path}: no data rows (0 sample(s)): there is a header of {columns} column(s) and "
            "nothing after it. Add rows, one a line."
        )

    @classmethod
    def rows_differ(cls, path: str) -> FileError:
        return cls(
            f"{path}: its text has another number of rows than were answered, so that answers "
            "would stand beside other rows. Nothing was written. Look for stray quotes and line "
            "ends, or write to a .parquet file."
        )

    @classmethod
    def no_header(cls, path: str, names: Sequence[str]) -> FileError:
        shown = ", ".join(names[:3])
        return cls(
            f"{path}: line 1 holds numbers only ({shown}{', ...' if len(names) > 3 else ''}) "
            "where the names of the columns should stand. Put a line of names before the rows."
        )

    @classmethod
    def changed(cls, path: str, before: int, after: int) -> FileError:
        return cls(
            f"{path} changed while it was read ({before} bytes before, {after} after, or the time "
            "of its last change): rows of two versions may be mixed. Wait until its writer is "
            "done, or read a copy."
        )

    # --- limits --------------------------------------------------------------------------------

    @classmethod
    def bomb(cls, path: str, packed: int, unpacked: int, ratio: int) -> FileError:
        return cls(
            f"{path}: {packed} bytes of gzip have become {unpacked}, more than {ratio} times as "
            "many, and reading stopped there: it may be a decompression bomb. If you trust it, "
            "unpack it yourself (gunzip) and pass the result."
        )

    @classmethod
    def too_large(cls, path: str, limit: int) -> FileError:
        return cls(
            f"{path} holds more than max_bytes={limit} bytes of text, and reading stopped there. "
            "Pass a larger max_bytes (--max-bytes) if you have the memory."
        )

    @classmethod
    def long_line(cls, path: str, line: int, limit: int) -> FileError:
        return cls(
            f"{path}, line {line}: longer than the limit of {limit} bytes for a line. Are the "
            "line ends missing, or a quote not closed?"
        )

    @classmethod
    def many_columns(cls, path: str, found: int, limit: int) -> FileError:
        return cls(
            f"{path}: {found} columns, more than the limit of {limit}. Store so wide a table as "
            "Parquet with fewer columns, or transposed."
        )

    @classmethod
    def long_field(cls, path: str, line: int, column: str, limit: int) -> FileError:
        return cls(
            f"{path}, line {line}, column '{column}': a field longer than the limit of {limit} "
            "bytes. Is a quote not closed?"
        )

    # --- lines ---------------------------------------------------------------------------------

    @classmethod
    def ragged(cls, path: str, line: int, *, expected: int, found: int) -> FileError:
        return cls(
            f"{path}, line {line}: {found} field(s) where the header has {expected}. "
            "Correct the line; a field that contains the delimiter must stand in quotes."
        )

    @classmethod
    def all_ragged(cls, path: str, *, expected: int, found: int, delimiter: str) -> FileError:
        return cls(
            f"{path}: line 2 and all lines looked at have {found} fields where the header has "
            f"{expected} (delimiter {delimiter!r}): is a column without a name, perhaps one of row "
            "numbers? Name every column in the header."
        )

    @classmethod
    def open_quote(cls, path: str, line: int) -> FileError:
        return cls(
            f"{path}, line {line}: a quote is opened there and never closed, so that all that "
            "follows would be one field. Close it, or double a quote that is part of the text."
        )

    @classmethod
    def after_quote(cls, path: str, line: int, column: str, text: str, quote: str) -> FileError:
        return cls(
            f"{path}, line {line}, column '{column}': the text {text[:80]!r} follows a closing "
            f"quote ({quote}), so that the cell has no certain value. Remove the quotes, write a "
            "quote within a quoted field twice, or name the column in exclude."
        )

    @classmethod
    def of_nul(cls, path: str, line: int, byte: int) -> FileError:
        return cls(
            f"{path}, line {line}: a NUL byte (byte {byte} of the text, counted from 0): the file "
            "is damaged or no text. Write it again, or remove the NUL bytes."
        )

    @classmethod
    def undecodable(cls, path: str, encoding: str, byte: int, line: int) -> FileError:
        return cls(
            f"{path}, line {line}: byte {byte} (counted from 0) is no {encoding}. Save the file as "
            "UTF-8, or pass encoding= with the name of the one it has."
        )

    @classmethod
    def of_json(cls, path: str, line: int, reason: str) -> FileError:
        return cls(
            f"{path}, line {line}: {reason}. JSON lines have one object a line, all with the same "
            "names and kinds of values: correct the line."
        )

    # --- damage --------------------------------------------------------------------------------

    @classmethod
    def cut_off(cls, path: str, what: str) -> FileError:
        return cls(
            f"{path}: file incomplete ({what}). Was it copied or written to the end? Fetch it "
            "again."
        )

    @classmethod
    def damaged(cls, path: str, where: str, reason: str) -> FileError:
        return cls(
            f"{path} is damaged: {where} cannot be read ({reason}). Fetch or write it again."
        )

    @classmethod
    def of_extension(cls, path: str, column: str, kind: str) -> FileError:
        return cls(
            f"{path}: column '{column}' has the extension type {kind}, which is refused: what it "
            "means is known to some program only, and such types have been used to run code. Write "
            "the column as plain numbers or text."
        )


def check_file_name(path: object) -> None:
    """Refuse the address of a database where a file is expected, before anything is opened."""
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if isinstance(text, str) and is_address(text) and not os.path.lexists(text):
        register(text)
        raise FileError.of_address(shown_address(text))
