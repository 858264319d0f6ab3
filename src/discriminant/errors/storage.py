"""Files that cannot be read as a table, and the places in them that are wrong.

Tables in parts: what cannot be done without their rows in memory, and what went wrong there.

Files that cannot be loaded, states that cannot be saved, places that cannot be written to.

Files of sparse rows, XMC text or svmlight, and the lines in them that are wrong.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from discriminant.errors.base import DiscriminantError, DiscriminantWarning, InputError
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


class NeedsMemoryError(InputError):
    """Something needs all rows at hand."""

    @classmethod
    def of(cls, who: str, source: str, rows: int, drawn: int) -> NeedsMemoryError:
        return cls(
            f"{who} needs its rows in memory, and {source} has {rows:,} rows in parts. Fit it to "
            f"some of them (`rows.drawn` holds {drawn:,}, spread over the parts), or take a model "
            "that reads rows in parts: LDA, QDA, RDA, NearestMean, Fisher, LeastSquares, Logistic."
        )


class SourceChangedError(DiscriminantError):
    """A source gave other rows than before."""

    @classmethod
    def of_rows(cls, source: str, before: int, after: int) -> SourceChangedError:
        return cls(
            f"{source} gave {before:,} rows when it was opened and {after:,} now: it changed, and "
            "sums over both would be of neither. Open it again when nobody writes to it."
        )

    @classmethod
    def of_count(cls, source: str, known: int, read: int) -> SourceChangedError:
        return cls(
            f"{source} has {known:,} rows by its own account, and {read:,} were read: sums would "
            "not be of all of them. Read it again; if that helps nothing, a file is damaged."
        )

    @classmethod
    def of_class(cls, source: str, column: str, level: object) -> SourceChangedError:
        return cls(
            f"{source} holds {level!r} in '{column}' now, which it did not when it was opened: it "
            "changed, and sums over both would be of neither. Open it again when nobody writes to "
            "it."
        )


class EngineError(InputError):
    """No engine reads such a source."""

    @classmethod
    def unknown(cls, name: object, known: list[str]) -> EngineError:
        return cls(f"engine={name!r} is none of {', '.join(known)}.")

    @classmethod
    def other(cls, engine: str, reader: str) -> EngineError:
        return cls(
            f"engine='{engine}' does not read this source; '{reader}' does. Leave engine= out, or "
            f"pass engine='{reader}'."
        )

    @classmethod
    def of_source(cls, kind: str, known: list[str]) -> EngineError:
        return cls(
            f"No engine ({', '.join(known)}) reads a {kind}. Pass a path, a glob, a folder, a data "
            "frame, a Dask or Spark frame, or discriminant.sql(connection, table)."
        )

    @classmethod
    def not_installed(cls, library: str, extra: str) -> EngineError:
        return cls(
            f"This needs {library}, which is not installed. Install it with: "
            f"pip install 'discriminant[{extra}]' (in a clone: pip install '.[{extra}]')"
        )

    @classmethod
    def no_checkpoint(cls, name: str) -> EngineError:
        return cls(
            f"{name}: with pushdown=True no row leaves the database, so nothing would tell that a "
            "checkpoint is of other rows. Leave checkpoint= out, or pass pushdown=False."
        )

    @classmethod
    def taken(cls, name: str) -> EngineError:
        what = "labels" if name == "y" else "weights"
        return cls(
            f"The features have a column '{name}', and so are the {what} called that are passed "
            "beside them. Rename it, or pass one frame that holds all, and the names of its "
            "columns."
        )

    @classmethod
    def of_chunks(cls, counts: list[int]) -> EngineError:
        return cls(
            f"Features and what is passed beside them lie in {', '.join(map(str, counts))} chunks "
            "of unknown lengths, so that rows cannot be brought together. Call "
            "compute_chunk_sizes() on each first."
        )

    @classmethod
    def stopped(cls, engine: str, reason: str) -> EngineError:
        return cls(
            f"{engine} stopped: {reason}. Nothing was changed; the whole text of it is what "
            "caused this error."
        )


class PartSchemaError(InputError):
    """Files of one source have different columns."""

    @classmethod
    def of_type(cls, path: str, column: str, kind: str, other: str, first: str) -> PartSchemaError:
        return cls(
            f"{path}: column '{column}' is {kind}, and {first} in {other}. Files that are read "
            "as one table have one schema: write the file again with that type, leave it out, or "
            "name the column in exclude= (of text also in categories=)."
        )

    @classmethod
    def of_columns(
        cls, path: str, absent: list[str], extra: list[str], other: str
    ) -> PartSchemaError:
        facts = [f"lacks {', '.join(map(repr, absent[:5]))}"] if absent else []
        facts += [f"has also {', '.join(map(repr, extra[:5]))}"] if extra else []
        return cls(
            f"{path} {' and '.join(facts)}, beside {other}. Files that are read as one table have "
            "the same columns: write it again, or leave it out."
        )

    @classmethod
    def of_formats(cls, path: str, kind: str, other: str, first: str) -> PartSchemaError:
        return cls(
            f"{path} is {kind}, and {other} is {first}. Pass files of one format, by a glob such "
            f"as '*.{first}' or '*.{kind}'."
        )


class CheckpointError(DiscriminantError):
    """A checkpoint belongs to other work, or cannot be kept."""

    @classmethod
    def of_other(cls, path: str, what: str, was: str, now: str) -> CheckpointError:
        return cls(
            f"{path} is a checkpoint of another run: {what} was {was}, and is {now} now. Parts of "
            "both would make neither. Remove it to begin anew, or pass another path."
        )

    @classmethod
    def foreign(cls, path: str) -> CheckpointError:
        return cls(
            f"{path} is there and is no checkpoint. Pass a path that does not exist yet, or one "
            "where a run was stopped."
        )

    @classmethod
    def in_use(cls, path: str, owner: str) -> CheckpointError:
        return cls(
            f"{path} is a checkpoint in which {owner or 'another process'} is at work now; two at "
            "a time would spoil it. Wait until that is done, or stop it: the same fit then goes on "
            "from what is there. Or pass another path."
        )

    @classmethod
    def of_disk(cls, path: str, reason: str) -> CheckpointError:
        return cls(
            f"The checkpoint folder {path} cannot be used: {reason}. Name another for the "
            "checkpoint, which may be written to (one that is not there is made), make room if the "
            "disk is full, or fit without. Whatever was kept there stays, and the same fit goes on "
            "from it."
        )

    @classmethod
    def damaged(cls, path: str, reason: str) -> CheckpointError:
        return cls(f"{path} is damaged ({reason}). Remove it: its part of the work is done again.")


class CheckpointWarning(DiscriminantWarning):
    """Some work is not kept."""

    @classmethod
    def of_work(cls, path: str, kind: str) -> CheckpointWarning:
        return cls(
            f"Sums that a {kind} has a part in are not kept in {path}: its content cannot be read, "
            "so another would be taken for it. They are worked out again if the run is stopped."
        )

    @classmethod
    def not_written(cls, path: str, reason: str) -> CheckpointWarning:
        return cls(
            f"The checkpoint {path} cannot be written ({reason}). The run goes on; if it is "
            "stopped, what was not written is done again. Make room, or pass another folder."
        )


class DatabaseError(InputError):
    """A database cannot be read, or went away."""

    @classmethod
    def no_query(cls, given: object) -> DatabaseError:
        return cls(f"{given!r} names no rows. Pass the name of a table or view, or a SELECT.")

    @classmethod
    def no_select(cls, kinds: list[str]) -> DatabaseError:
        return cls(
            f"The query is {', '.join(kinds)}, and only one SELECT is run, for nothing is to be "
            "written. Run the rest yourself, and pass the SELECT, or the name of a view."
        )

    @classmethod
    def no_rows(cls, name: str) -> DatabaseError:
        return cls(f"{name}: no rows. Is it the right table, and does a condition hold for any?")

    @classmethod
    def unknown_url(cls, shown: str, known: list[str]) -> DatabaseError:
        return cls(
            f"{shown} is neither the address of a known database nor a database file. Addresses "
            f"begin with {', '.join(known)}."
        )

    @classmethod
    def unclear_address(cls, shown: str) -> DatabaseError:
        return cls(
            f"The address {shown} cannot be parsed, and is not shown because it may contain a "
            "password. Write it as postgresql://user:***@host:port/dbname, and percent-encode "
            "special characters in the user name and the password: %40 for @, %2F for /, %25 for "
            "%, %23 for #, %3F for ?, %26 for &, %20 for a space."
        )

    @classmethod
    def unknown_connection(cls, kind: str) -> DatabaseError:
        return cls(
            f"A {kind} is no connection that is known here: DuckDB, psycopg 3 and sqlite3 are. "
            "Pass one of these, or a URL such as duckdb:///file.db."
        )

    @classmethod
    def not_reached(cls, title: str, reason: str) -> DatabaseError:
        return cls(f"{title} could not be reached: {reason}. Check the URL and that it runs.")

    @classmethod
    def of(cls, name: str, title: str, reason: str) -> DatabaseError:
        return cls(
            f"{name}: {title} stopped: {reason}. Nothing was changed there; when it answers "
            "again, run the same again."
        )

    @classmethod
    def of_query(cls, name: str, title: str, reason: str) -> DatabaseError:
        return cls(
            f"{name}: {title} does not take it: {reason}. Correct the query or the name; nothing "
            "was changed there."
        )

    @classmethod
    def no_such_table(
        cls, name: str, title: str, absent: str, known: list[str], near: str | None
    ) -> DatabaseError:
        hint = f" Did you mean '{near}'?" if near is not None else ""
        hint += _tables(known)
        if len(absent.split()) > 1:
            hint += " If a query is meant: only one SELECT is run."
        return cls(f"{name}: {title} has no table or view '{absent}'.{hint}")

    @classmethod
    def forbidden(cls, name: str, title: str, reason: str) -> DatabaseError:
        return cls(
            f"{name}: {title} does not allow it: {reason}. Connect as a role that may read it, or "
            "have it granted."
        )

    @classmethod
    def damaged(cls, name: str, title: str, reason: str) -> DatabaseError:
        return cls(
            f"{name}: {title} cannot read the file: {reason}. It is damaged, cut off or of another "
            "kind: copy it again, or restore it."
        )

    @classmethod
    def not_opened(cls, path: str, title: str, reason: str) -> DatabaseError:
        return cls(
            f"{path}: {title} cannot open the file: {reason}. It may be damaged, of another kind, "
            "or locked by a program that writes to it."
        )

    @classmethod
    def no_file(cls, path: str) -> DatabaseError:
        return cls(f"{path}: there is no such file. Check the name and the folder.")

    @classmethod
    def other_kind(cls, path: str, found: str, taken: str) -> DatabaseError:
        return cls(f"{path} is a file of {found}, not {taken}. Write {found}:///{path}.")

    @classmethod
    def mixed(cls, column: str, kinds: list[str]) -> DatabaseError:
        return cls(
            f"Column '{column}' holds cells of several kinds: {', '.join(kinds)}. Cast it in the "
            f"query, or leave it out (exclude=['{column}'])."
        )

    @classmethod
    def missing(cls, name: str, column: str, rows: int) -> DatabaseError:
        return cls(
            f"{name}: column '{column}' is missing in {rows:,} row(s). Pass missing='drop', 'mean' "
            "or 'indicator', or leave these rows out in the query; of the target no cell may be."
        )

    @classmethod
    def infinite(cls, name: str, column: str, rows: int) -> DatabaseError:
        return cls(
            f"{name}: column '{column}' is infinite in {rows:,} row(s), or too large for float64. "
            "Leave these rows out in the query; of a ratio, the denominator may be zero."
        )

    @classmethod
    def weights(cls, name: str, column: str, rows: int) -> DatabaseError:
        return cls(
            f"{name}: weight '{column}' is missing, negative or infinite in {rows:,} row(s). To "
            "leave a row out, give it weight 0."
        )

    @classmethod
    def reserved(cls, column: str, title: str) -> DatabaseError:
        return cls(
            f"Column '{column}': {title} takes that name for a truth value. Give it another in the "
            f'query: SELECT "{column}" AS other ...'
        )

    @classmethod
    def no_table(cls, title: str, scheme: str, known: list[str]) -> DatabaseError:
        return cls(
            f"A database names no rows: say which table or view of {title} is meant, by table= "
            f"(--table), {scheme}://...#table or discriminant.sql(url, table_or_query)."
            f"{_tables(known)}"
        )

    @classmethod
    def must_stay(cls, name: str, what: str) -> DatabaseError:
        return cls(
            f"{name}: {what} needs rows, and pushdown=True keeps them in the database. Fit a model "
            "made from moments (LDA, QDA, RDA, NearestMean, Fisher, LeastSquares), or pass "
            "pushdown=False."
        )


def _tables(known: list[str]) -> str:
    """Which tables there are, some of them if they are many."""
    if not known:
        return ""
    more = f" and {len(known) - 10} more" if len(known) > 10 else ""
    return f" It has {', '.join(map(repr, known[:10]))}{more}."


class StoredFileError(InputError):
    """A file is not one of ours, or is damaged, or says what cannot be."""

    @classmethod
    def absent(cls, path: object) -> StoredFileError:
        return cls(f"There is no file {path}. Check the name and the folder.")

    @classmethod
    def not_a_file(cls, path: object, kind: str) -> StoredFileError:
        return cls(
            f"{path} is a {kind}, and only a regular file can be loaded. Pass the file of a model "
            "or of moments."
        )

    @classmethod
    def unreadable(cls, path: object, why: str) -> StoredFileError:
        return cls(f"{path} cannot be read: {why}. Check who may read it.")

    @classmethod
    def damaged(cls, path: object, byte: int, why: str) -> StoredFileError:
        return cls(
            f"The file {path} is damaged at byte {byte:,}: {why}. Nothing was loaded; take a copy "
            "or save it again."
        )

    @classmethod
    def wrong_digest(cls, path: object, stated: str, found: str) -> StoredFileError:
        return cls(
            f"The content of {path} was changed after it was saved: its SHA-256 should be "
            f"{stated[:16]}... and is {found[:16]}... Nothing was loaded; take a copy or save it "
            "again."
        )

    @classmethod
    def future(cls, path: object, found: int, most: int, package: str) -> StoredFileError:
        return cls(
            f"{path} has format version {found}, written by discriminant {package}; this one "
            f"reads versions 1 to {most}. Upgrade: pip install --upgrade discriminant."
        )

    @classmethod
    def foreign(cls, path: object, kind: str) -> StoredFileError:
        return cls(
            f"{path} is not a file of discriminant but {kind}. It was not opened. Files to load "
            "are made by model.save(path) or discriminant.save(thing, path)."
        )

    @classmethod
    def runs_code(cls, path: object, kind: str) -> StoredFileError:
        return cls(
            f"{path} is {kind}, which can run any code when it is opened. It was not opened. If "
            "you trust whoever made it, open it with the library that wrote it, then "
            "model.save(path) makes a file that holds only numbers and text."
        )

    @classmethod
    def unknown_kind(
        cls, path: object, kind: object, version: int, package: str
    ) -> StoredFileError:
        return cls(
            f"{path} holds a '{kind}' (format version {version}, written by discriminant "
            f"{package}), which this version does not know. Upgrade discriminant, or ask whoever "
            "made the file."
        )

    @classmethod
    def unsound(cls, path: object, part: str, why: str) -> StoredFileError:
        return cls(
            f"{path} says what cannot be: {part}: {why}. Nothing was loaded; get the file again "
            "from whoever made it, or save the model again."
        )

    @classmethod
    def too_large(cls, path: object, size: int, most: int) -> StoredFileError:
        return cls(
            f"{path} has {size:,} bytes, and at most {most:,} are to be loaded. Pass a larger "
            "max_bytes, or mmap=True to leave the arrays on disk."
        )


class StateError(InputError):
    """Something of a model cannot be put into a file."""

    @classmethod
    def of_part(cls, part: str, kind: str) -> StateError:
        return cls(
            f"{part} is a {kind}, and a file holds only numbers, text, arrays and the parts of "
            "this package. Set it to one of those (a list or an array for a frame, an integer for "
            "a generator, None for a function), fit again and save."
        )

    @classmethod
    def of_estimator(cls, part: str, kind: str) -> StateError:
        return cls(
            f"{part} is a {kind}, which is not of this package, so that no safe file can hold it. "
            "Fit one of ours in its place (LDA, Logistic, SVM, ...), or keep the whole with "
            "joblib.dump, which must only be loaded by who trusts the file."
        )

    @classmethod
    def of_dtype(cls, part: str, dtype: object) -> StateError:
        return cls(
            f"{part} is an array of {dtype}, and a file holds booleans, integers, floats up to "
            "64 bits, dates and text. Convert it (for instance to float64), fit again and save."
        )

    @classmethod
    def unsound(cls, part: str, why: str) -> StateError:
        return cls(f"{part} is not fit to be saved: {why}.")

    @classmethod
    def too_long(cls, size: int, most: int) -> StateError:
        return cls(
            f"The names, options and structure take {size:,} bytes, and a file of this size holds "
            f"{most:,}. Shorten the names of the columns, or save parts of the model apart."
        )


_AS_IT_WAS = "A file that was there before is as it was."


class WriteError(DiscriminantError, OSError):
    """A file cannot be written; what was there before is as it was."""

    @classmethod
    def _of(cls, number: int, text: str) -> WriteError:
        made = cls(text)
        made.errno = number
        return made

    @classmethod
    def no_room(cls, path: object, needed: int, free: int, cause: OSError) -> WriteError:
        number = cause.errno or errno.ENOSPC
        return cls._of(
            number,
            f"No room for {path}: it needs {needed:,} bytes, and {free:,} are free "
            f"({os.strerror(number)}). {_AS_IT_WAS} Make room, or choose another folder.",
        )

    @classmethod
    def no_room_after(cls, path: object, written: int, free: int, cause: OSError) -> WriteError:
        number = cause.errno or errno.ENOSPC
        return cls._of(
            number,
            f"No room for {path}: it needs more than the {written:,} bytes that could be written, "
            f"and {free:,} are free ({os.strerror(number)}). {_AS_IT_WAS} Make room, or choose "
            "another folder.",
        )

    @classmethod
    def locked(cls, path: object, pid: str) -> WriteError:
        return cls._of(
            errno.EAGAIN,
            f"{path} is locked by pid {pid or 'unknown'}, which is writing it now. Wait for it to "
            "end, or save under another name.",
        )

    @classmethod
    def closed_folder(cls, path: object, folder: object, cause: OSError) -> WriteError:
        number = cause.errno or errno.EACCES
        return cls._of(
            number,
            f"{path} cannot be written: folder {folder}: {os.strerror(number)}. Choose another "
            "folder, or change its permissions.",
        )

    @classmethod
    def not_a_file(cls, path: object, kind: str) -> WriteError:
        return cls._of(
            errno.EEXIST, f"{path} is a {kind} and is not overwritten. Choose another name."
        )

    @classmethod
    def not_a_name(cls, path: object, why: object) -> WriteError:
        return cls._of(
            errno.EINVAL, f"{str(path)!r} cannot be written: {why}. Choose another name."
        )

    @classmethod
    def failed(cls, path: object, cause: OSError) -> WriteError:
        number = cause.errno or errno.EIO
        return cls._of(
            number,
            f"{path} could not be written: {os.strerror(number)}. {_AS_IT_WAS} Choose another "
            "folder, or see what is wrong with this one.",
        )


class SparseFileError(FileError):
    """A file of sparse rows cannot be read: the line, what stands there, and what should."""

    @classmethod
    def of_header(cls, path: str, found: str, wanted: str) -> SparseFileError:
        return cls(
            f"{path}, line 1: the header should be {wanted}, whole numbers parted by spaces, and "
            f"is {found!r}. Put it before the rows; a file without a header is read by "
            "read_svmlight."
        )

    @classmethod
    def without_header(cls, path: str, wanted: str) -> SparseFileError:
        return cls(
            f"{path} is empty: it should begin with a header, {wanted}, and a line for each row. "
            "Was it copied or written to the end?"
        )

    @classmethod
    def without_rows(cls, path: str) -> SparseFileError:
        return cls(
            f"{path}: no rows (0 sample(s)). Was it copied or written to the end? Rows are lines "
            "'label,label feature:value feature:value', those of XMC text below a header 'rows "
            "features labels'."
        )

    @classmethod
    def not_sparse(cls, path: str) -> SparseFileError:
        return cls(
            f"{path} is no file of sparse rows: its first line is neither the header of XMC text, "
            "'rows features labels', nor 'label,label feature:value' of svmlight. If it is a "
            "table: a label tree that was fitted to one ('fit --target COLUMN') answers tables, "
            "and one that was fitted to sparse rows answers such files."
        )

    @classmethod
    def of_width(cls, path: str, found: int, wanted: int) -> SparseFileError:
        return cls(
            f"{path}, line 1: the header tells of {found} features, and the rows that were learnt "
            f"from have {wanted}. Columns are told apart by their number alone: pass a file whose "
            "features are the same ones."
        )

    @classmethod
    def unwritable(cls, path: str, row: int, feature: int, value: object) -> SparseFileError:
        return cls(
            f"{path} was not written: row {row}, feature {feature} (counted from 0) is {value}, "
            "and no reader takes that. Leave the feature out, or give it a value."
        )

    @classmethod
    def too_few(cls, path: str, *, told: int, found: int) -> SparseFileError:
        return cls(
            f"{path}: the header (line 1) tells of {told} rows and the file ends after {found}. "
            "Was it copied or written to the end? Fetch it again, or correct the header."
        )

    @classmethod
    def too_many(cls, path: str, line: int, told: int) -> SparseFileError:
        return cls(
            f"{path}, line {line}: a row more than the {told} that the header (line 1) tells of. "
            "Correct the header, or remove what follows the last row."
        )

    @classmethod
    def of_token(cls, path: str, line: int, found: str, wanted: str) -> SparseFileError:
        return cls(
            f"{path}, line {line}: {_shown(found)} stands where {wanted} should. A row is "
            "'label,label feature:value feature:value': correct the line."
        )

    @classmethod
    def negative(cls, path: str, line: int, found: str) -> SparseFileError:
        return cls(
            f"{path}, line {line}: label {_shown(found)}, and labels are numbers counted from 0. "
            "Of two classes that are -1 and 1, write 0 for -1; read_svmlight(path) reads any "
            "numbers, one for each row, for model.fit(X, y)."
        )

    @classmethod
    def of_size(cls, path: str, found: int, most: int) -> SparseFileError:
        return cls(
            f"{path}, line 1: the header tells of {found:,}, and rows, features and labels go up "
            f"to {most:,}. Correct the header, 'rows features labels'."
        )

    @classmethod
    def of_folder(cls, path: str) -> SparseFileError:
        return cls(f"{path} is a folder: a label tree of sparse rows takes one file. Name it.")

    @classmethod
    def of_range(
        cls, path: str, line: int, kind: str, found: int, *, first: int, many: int
    ) -> SparseFileError:
        return cls(
            f"{path}, line {line}: {kind} {found}, where there are {many} {kind}s, {first} to "
            f"{first + many - 1}. Correct the line, or the number of {kind}s."
        )

    @classmethod
    def repeated(cls, path: str, line: int, kind: str, found: int) -> SparseFileError:
        return cls(
            f"{path}, line {line}: {kind} {found} stands twice in the row. Keep one of them: "
            "which of two is meant cannot be known."
        )

    @classmethod
    def not_finite(cls, path: str, line: int, feature: int, found: str) -> SparseFileError:
        return cls(
            f"{path}, line {line}: feature {feature} is {_shown(found)}, which is no finite "
            "number. Leave the feature out (it is 0 then), or give it a value."
        )

    @classmethod
    def one_label(cls, path: str, line: int, found: int) -> SparseFileError:
        return cls(
            f"{path}, line {line}: {found} labels where each row should have one. Pass many=True "
            "to read sets of labels."
        )

    @classmethod
    def of_nothing(cls, path: str, row: int, many: int) -> SparseFileError:
        return cls(
            f"{path}: row {row} has neither labels nor features (so have {many} in all), and "
            "svmlight has no line for that. Leave such rows out, or write them with write_xmc."
        )

    @classmethod
    def of_lengths(cls, path: str, rows: int, labels: str, sets: int) -> SparseFileError:
        return cls(
            f"{path} has {rows} rows and {labels} has {sets}: row i of one should belong to row i "
            "of the other. Were both made by the same run?"
        )


class MoreFeaturesWarning(DiscriminantWarning):
    """A file of svmlight has features that the model does not know."""

    @classmethod
    def of(cls, path: str, last: int, first: int, known: int) -> MoreFeaturesWarning:
        return cls(
            f"{path} has features up to {last}, and the model knows {known}, {first} to "
            f"{first + known - 1}: it has no weight for the others, and they were left out. If "
            "the file counts its features otherwise than the rows that were learnt from, say "
            f"--first {1 - first}."
        )


class FirstFeatureWarning(DiscriminantWarning):
    """A file of svmlight does not tell whether its features count from 0 or from 1."""

    @classmethod
    def of(cls, path: str, features: int) -> FirstFeatureWarning:
        return cls(
            f"{path} does not tell whether its features count from 0 or from 1: there are "
            f"{features}, and it has no feature 0 and no feature {features} (feature {features} "
            "would be the last counted from 1). It was read as counted from 1; if it counts from "
            "0, each value stands in the column before its own. Say which: --first 0 or --first 1 "
            "(commands), first=0 (read_svmlight), model.first_feature_ = 0 (predict_file). A model "
            "that 'discriminant fit' makes of svmlight remembers it."
        )


def _shown(text: str, most: int = 40) -> str:
    return repr(text if len(text) <= most else text[:most] + "…")
