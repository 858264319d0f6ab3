"""Files that cannot be read as a table, and the places in them that are wrong.

Tables in parts: what cannot be done without their rows in memory, and what went wrong there.

Files that cannot be loaded, states that cannot be saved, places that cannot be written to.

Files of sparse rows, XMC text or svmlight, and the lines in them that are wrong.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from discriminant.errors.base import DiscriminantError, DiscriminantWarning, InputError, template
from discriminant.redaction import is_address, register, shown_address


class FileError(InputError):
    """A file cannot be read as a table."""

    # --- what it is ----------------------------------------------------------------------------

    of_address = template("shown")(
        "{shown} is an address, not a file. To read a table of a database, pass the address as "
        "the source, with table= or query= (--table, --query)."
    )

    absent = template("path")("{path}: there is no such file. Check the name and the folder.")

    no_files = template("path")(
        "{path} is a directory with no file in it. Name a file, or a folder of files: CSV, "
        "Parquet, Arrow IPC or JSON lines."
    )

    of_kind = template("path, kind, way_out")(
        "{path} is {kind}, not a regular file, and is not read. {way_out}"
    )

    not_allowed = template("path, reason")(
        "{path} cannot be opened: {reason}. Check who may read it."
    )

    not_a_table = template("path, kind, way_out")(
        "{path} is {kind} by its first bytes, not CSV, Parquet, Arrow IPC or JSON lines. {way_out}"
    )

    stored = template("path")(
        "{path} is a file of discriminant, a model or moments, and no table. A model is opened "
        "with discriminant.load, or answers rows: 'discriminant predict {path} ROWS --out ...'; "
        "from moments a model is made: 'discriminant fit {path} --model lda --out ...'."
    )

    empty = template("path")(
        "{path}: the file is empty (0 bytes of text). Was it written to the end?"
    )

    no_rows = template("path, columns")(
        "{path}: no data rows (0 sample(s)): there is a header of {columns} column(s) and "
        "nothing after it. Add rows, one a line."
    )

    rows_differ = template("path")(
        "{path}: its text has another number of rows than were answered, so that answers would "
        "stand beside other rows. Nothing was written. Look for stray quotes and line ends, or "
        "write to a .parquet file."
    )

    @classmethod
    def no_header(cls, path: str, names: Sequence[str]) -> FileError:
        shown = ", ".join(names[:3])
        return cls(
            f"{path}: line 1 holds numbers only ({shown}{', ...' if len(names) > 3 else ''}) "
            "where the names of the columns should stand. Put a line of names before the rows."
        )

    changed = template("path, before, after")(
        "{path} changed while it was read ({before} bytes before, {after} after, or the time of "
        "its last change): rows of two versions may be mixed. Wait until its writer is done, or "
        "read a copy."
    )

    # --- limits --------------------------------------------------------------------------------

    bomb = template("path, packed, unpacked, ratio")(
        "{path}: {packed} bytes of gzip have become {unpacked}, more than {ratio} times as many, "
        "and reading stopped there: it may be a decompression bomb. If you trust it, unpack it "
        "yourself (gunzip) and pass the result."
    )

    too_large = template("path, limit")(
        "{path} holds more than max_bytes={limit} bytes of text, and reading stopped there. Pass "
        "a larger max_bytes (--max-bytes) if you have the memory."
    )

    long_line = template("path, line, limit")(
        "{path}, line {line}: longer than the limit of {limit} bytes for a line. Are the line "
        "ends missing, or a quote not closed?"
    )

    many_columns = template("path, found, limit")(
        "{path}: {found} columns, more than the limit of {limit}. Store so wide a table as "
        "Parquet with fewer columns, or transposed."
    )

    long_field = template("path, line, column, limit")(
        "{path}, line {line}, column '{column}': a field longer than the limit of {limit} bytes. "
        "Is a quote not closed?"
    )

    # --- lines ---------------------------------------------------------------------------------

    ragged = template("path, line, *, expected, found")(
        "{path}, line {line}: {found} field(s) where the header has {expected}. Correct the "
        "line; a field that contains the delimiter must stand in quotes."
    )

    all_ragged = template("path, *, expected, found, delimiter")(
        "{path}: line 2 and all lines looked at have {found} fields where the header has "
        "{expected} (delimiter {delimiter!r}): is a column without a name, perhaps one of row "
        "numbers? Name every column in the header."
    )

    open_quote = template("path, line")(
        "{path}, line {line}: a quote is opened there and never closed, so that all that follows "
        "would be one field. Close it, or double a quote that is part of the text."
    )

    after_quote = template("path, line, column, text, quote")(
        "{path}, line {line}, column '{column}': the text {text:short} follows a closing quote "
        "({quote}), so that the cell has no certain value. Remove the quotes, write a quote "
        "within a quoted field twice, or name the column in exclude."
    )

    of_nul = template("path, line, byte")(
        "{path}, line {line}: a NUL byte (byte {byte} of the text, counted from 0): the file is "
        "damaged or no text. Write it again, or remove the NUL bytes."
    )

    undecodable = template("path, encoding, byte, line")(
        "{path}, line {line}: byte {byte} (counted from 0) is no {encoding}. Save the file as "
        "UTF-8, or pass encoding= with the name of the one it has."
    )

    of_json = template("path, line, reason")(
        "{path}, line {line}: {reason}. JSON lines have one object a line, all with the same "
        "names and kinds of values: correct the line."
    )

    # --- damage --------------------------------------------------------------------------------

    cut_off = template("path, what")(
        "{path}: file incomplete ({what}). Was it copied or written to the end? Fetch it again."
    )

    damaged = template("path, where, reason")(
        "{path} is damaged: {where} cannot be read ({reason}). Fetch or write it again."
    )

    of_extension = template("path, column, kind")(
        "{path}: column '{column}' has the extension type {kind}, which is refused: what it "
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

    of = template("who, source, rows, drawn")(
        "{who} needs its rows in memory, and {source} has {rows:,} rows in parts. Fit it to some "
        "of them (`rows.sample` holds {drawn:,}, spread over the parts), or take a model that "
        "reads rows in parts: LDA, QDA, RDA, NearestMean, Fisher, LeastSquares, Logistic."
    )


class SourceChangedError(DiscriminantError):
    """A source gave other rows than before."""

    of_rows = template("source, before, after")(
        "{source} gave {before:,} rows when it was opened and {after:,} now: it changed, and "
        "sums over both would be of neither. Open it again when nobody writes to it."
    )

    of_count = template("source, known, read")(
        "{source} has {known:,} rows by its own account, and {read:,} were read: sums would not "
        "be of all of them. Read it again; if that helps nothing, a file is damaged."
    )

    of_class = template("source, column, level")(
        "{source} holds {level!r} in '{column}' now, which it did not when it was opened: it "
        "changed, and sums over both would be of neither. Open it again when nobody writes to it."
    )


class EngineError(InputError):
    """No engine reads such a source."""

    unknown = template("name, known")("engine={name!r} is none of {known:list}.")

    other = template("engine, reader")(
        "engine='{engine}' does not read this source; '{reader}' does. Leave engine= out, or "
        "pass engine='{reader}'."
    )

    of_source = template("kind, known")(
        "No engine ({known:list}) reads a {kind}. Pass a path, a glob, a folder, a data frame, a "
        "Dask or Spark frame, or discriminant.sql(connection, table)."
    )

    not_installed = template("library, extra")(
        "This needs {library}, which is not installed. Install it with: pip install "
        "'discriminant[{extra}]' (in a clone: pip install '.[{extra}]')"
    )

    no_checkpoint = template("name")(
        "{name}: with pushdown=True no row leaves the database, so nothing would tell that a "
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

    stopped = template("engine, reason")(
        "{engine} stopped: {reason}. Nothing was changed; the whole text of it is what caused "
        "this error."
    )


class PartSchemaError(InputError):
    """Files of one source have different columns."""

    of_type = template("path, column, kind, other, first")(
        "{path}: column '{column}' is {kind}, and {first} in {other}. Files that are read as one "
        "table have one schema: write the file again with that type, leave it out, or name the "
        "column in exclude= (of text also in categories=)."
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

    of_formats = template("path, kind, other, first")(
        "{path} is {kind}, and {other} is {first}. Pass files of one format, by a glob such as "
        "'*.{first}' or '*.{kind}'."
    )


class CheckpointError(DiscriminantError):
    """A checkpoint belongs to other work, or cannot be kept."""

    of_other = template("path, what, was, now")(
        "{path} is a checkpoint of another run: {what} was {was}, and is {now} now. Parts of "
        "both would make neither. Remove it to begin anew, or pass another path."
    )

    foreign = template("path")(
        "{path} is there and is no checkpoint. Pass a path that does not exist yet, or one where "
        "a run was stopped."
    )

    @classmethod
    def in_use(cls, path: str, owner: str) -> CheckpointError:
        return cls(
            f"{path} is a checkpoint in which {owner or 'another process'} is at work now; two at "
            "a time would spoil it. Wait until that is done, or stop it: the same fit then goes on "
            "from what is there. Or pass another path."
        )

    of_disk = template("path, reason")(
        "The checkpoint folder {path} cannot be used: {reason}. Name another for the checkpoint, "
        "which may be written to (one that is not there is made), make room if the disk is full, "
        "or fit without. Whatever was kept there stays, and the same fit goes on from it."
    )

    damaged = template("path, reason")(
        "{path} is damaged ({reason}). Remove it: its part of the work is done again."
    )


class CheckpointWarning(DiscriminantWarning):
    """Some work is not kept."""

    of_work = template("path, kind")(
        "Sums that a {kind} has a part in are not kept in {path}: its content cannot be read, so "
        "another would be taken for it. They are worked out again if the run is stopped."
    )

    not_written = template("path, reason")(
        "The checkpoint {path} cannot be written ({reason}). The run goes on; if it is stopped, "
        "what was not written is done again. Make room, or pass another folder."
    )


class DatabaseError(InputError):
    """A database cannot be read, or went away."""

    no_query = template("given")(
        "{given!r} names no rows. Pass the name of a table or view, or a SELECT."
    )

    no_select = template("kinds")(
        "The query is {kinds:list}, and only one SELECT is run, for nothing is to be written. "
        "Run the rest yourself, and pass the SELECT, or the name of a view."
    )

    no_rows = template("name")(
        "{name}: no rows. Is it the right table, and does a condition hold for any?"
    )

    unknown_url = template("shown, known")(
        "{shown} is neither the address of a known database nor a database file. Addresses begin "
        "with {known:list}."
    )

    unclear_address = template("shown")(
        "The address {shown} cannot be parsed, and is not shown because it may contain a "
        "password. Write it as postgresql://user:***@host:port/dbname, and percent-encode "
        "special characters in the user name and the password: %40 for @, %2F for /, %25 for %, "
        "%23 for #, %3F for ?, %26 for &, %20 for a space."
    )

    unknown_connection = template("kind")(
        "A {kind} is no connection that is known here: DuckDB, psycopg 3 and sqlite3 are. Pass "
        "one of these, or a URL such as duckdb:///file.db."
    )

    not_reached = template("title, reason")(
        "{title} could not be reached: {reason}. Check the URL and that it runs."
    )

    of = template("name, title, reason")(
        "{name}: {title} stopped: {reason}. Nothing was changed there; when it answers again, "
        "run the same again."
    )

    of_query = template("name, title, reason")(
        "{name}: {title} does not take it: {reason}. Correct the query or the name; nothing was "
        "changed there."
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

    forbidden = template("name, title, reason")(
        "{name}: {title} does not allow it: {reason}. Connect as a role that may read it, or "
        "have it granted."
    )

    damaged = template("name, title, reason")(
        "{name}: {title} cannot read the file: {reason}. It is damaged, cut off or of another "
        "kind: copy it again, or restore it."
    )

    not_opened = template("path, title, reason")(
        "{path}: {title} cannot open the file: {reason}. It may be damaged, of another kind, or "
        "locked by a program that writes to it."
    )

    no_file = template("path")("{path}: there is no such file. Check the name and the folder.")

    other_kind = template("path, found, taken")(
        "{path} is a file of {found}, not {taken}. Write {found}:///{path}."
    )

    mixed = template("column, kinds")(
        "Column '{column}' holds cells of several kinds: {kinds:list}. Cast it in the query, or "
        "leave it out (exclude=['{column}'])."
    )

    missing = template("name, column, rows")(
        "{name}: column '{column}' is missing in {rows:,} row(s). Pass missing='drop', 'mean' or "
        "'indicator', or leave these rows out in the query; of the target no cell may be."
    )

    infinite = template("name, column, rows")(
        "{name}: column '{column}' is infinite in {rows:,} row(s), or too large for float64. "
        "Leave these rows out in the query; of a ratio, the denominator may be zero."
    )

    weights = template("name, column, rows")(
        "{name}: weight '{column}' is missing, negative or infinite in {rows:,} row(s). To leave "
        "a row out, give it weight 0."
    )

    reserved = template("column, title")(
        "Column '{column}': {title} takes that name for a truth value. Give it another in the "
        'query: SELECT "{column}" AS other ...'
    )

    @classmethod
    def no_table(cls, title: str, scheme: str, known: list[str]) -> DatabaseError:
        return cls(
            f"A database names no rows: say which table or view of {title} is meant, by table= "
            f"(--table), {scheme}://...#table or discriminant.sql(url, table_or_query)."
            f"{_tables(known)}"
        )

    must_stay = template("name, what")(
        "{name}: {what} needs rows, and pushdown=True keeps them in the database. Fit a model "
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

    absent = template("path")("There is no file {path}. Check the name and the folder.")

    not_a_file = template("path, kind")(
        "{path} is a {kind}, and only a regular file can be loaded. Pass the file of a model or "
        "of moments."
    )

    unreadable = template("path, why")("{path} cannot be read: {why}. Check who may read it.")

    damaged = template("path, byte, why")(
        "The file {path} is damaged at byte {byte:,}: {why}. Nothing was loaded; take a copy or "
        "save it again."
    )

    @classmethod
    def wrong_digest(cls, path: object, stated: str, found: str) -> StoredFileError:
        return cls(
            f"The content of {path} was changed after it was saved: its SHA-256 should be "
            f"{stated[:16]}... and is {found[:16]}... Nothing was loaded; take a copy or save it "
            "again."
        )

    future = template("path, found, most, package")(
        "{path} has format version {found}, written by discriminant {package}; this one reads "
        "versions 1 to {most}. Upgrade: pip install --upgrade discriminant."
    )

    foreign = template("path, kind")(
        "{path} is not a file of discriminant but {kind}. It was not opened. Files to load are "
        "made by model.save(path) or discriminant.save(thing, path)."
    )

    runs_code = template("path, kind")(
        "{path} is {kind}, which can run any code when it is opened. It was not opened. If you "
        "trust whoever made it, open it with the library that wrote it, then model.save(path) "
        "makes a file that holds only numbers and text."
    )

    unknown_kind = template("path, kind, version, package")(
        "{path} holds a '{kind}' (format version {version}, written by discriminant {package}), "
        "which this version does not know. Upgrade discriminant, or ask whoever made the file."
    )

    unsound = template("path, part, why")(
        "{path} says what cannot be: {part}: {why}. Nothing was loaded; get the file again from "
        "whoever made it, or save the model again."
    )

    too_large = template("path, size, most")(
        "{path} has {size:,} bytes, and at most {most:,} are to be loaded. Pass a larger "
        "max_bytes, or mmap=True to leave the arrays on disk."
    )


class StateError(InputError):
    """Something of a model cannot be put into a file."""

    of_part = template("part, kind")(
        "{part} is a {kind}, and a file holds only numbers, text, arrays and the parts of this "
        "package. Set it to one of those (a list or an array for a frame, an integer for a "
        "generator, None for a function), fit again and save."
    )

    of_estimator = template("part, kind")(
        "{part} is a {kind}, which is not of this package, so that no safe file can hold it. Fit "
        "one of ours in its place (LDA, Logistic, SVM, ...), or keep the whole with joblib.dump, "
        "which must only be loaded by who trusts the file."
    )

    of_dtype = template("part, dtype")(
        "{part} is an array of {dtype}, and a file holds booleans, integers, floats up to 64 "
        "bits, dates and text. Convert it (for instance to float64), fit again and save."
    )

    unsound = template("part, why")("{part} is not fit to be saved: {why}.")

    too_long = template("size, most")(
        "The names, options and structure take {size:,} bytes, and a file of this size holds "
        "{most:,}. Shorten the names of the columns, or save parts of the model apart."
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

    of_header = template("path, found, wanted")(
        "{path}, line 1: the header should be {wanted}, whole numbers parted by spaces, and is "
        "{found!r}. Put it before the rows; a file without a header is read by read_svmlight."
    )

    without_header = template("path, wanted")(
        "{path} is empty: it should begin with a header, {wanted}, and a line for each row. Was "
        "it copied or written to the end?"
    )

    without_rows = template("path")(
        "{path}: no rows (0 sample(s)). Was it copied or written to the end? Rows are lines "
        "'label,label feature:value feature:value', those of XMC text below a header 'rows "
        "features labels'."
    )

    not_sparse = template("path")(
        "{path} is no file of sparse rows: its first line is neither the header of XMC text, "
        "'rows features labels', nor 'label,label feature:value' of svmlight. If it is a table: "
        "a label tree that was fitted to one ('fit --target COLUMN') answers tables, and one "
        "that was fitted to sparse rows answers such files."
    )

    of_width = template("path, found, wanted")(
        "{path}, line 1: the header tells of {found} features, and the rows that were learnt "
        "from have {wanted}. Columns are told apart by their number alone: pass a file whose "
        "features are the same ones."
    )

    unwritable = template("path, row, feature, value")(
        "{path} was not written: row {row}, feature {feature} (counted from 0) is {value}, and "
        "no reader takes that. Leave the feature out, or give it a value."
    )

    too_few = template("path, *, told, found")(
        "{path}: the header (line 1) tells of {told} rows and the file ends after {found}. Was "
        "it copied or written to the end? Fetch it again, or correct the header."
    )

    too_many = template("path, line, told")(
        "{path}, line {line}: a row more than the {told} that the header (line 1) tells of. "
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

    of_size = template("path, found, most")(
        "{path}, line 1: the header tells of {found:,}, and rows, features and labels go up to "
        "{most:,}. Correct the header, 'rows features labels'."
    )

    of_folder = template("path")(
        "{path} is a folder: a label tree of sparse rows takes one file. Name it."
    )

    @classmethod
    def of_range(
        cls, path: str, line: int, kind: str, found: int, *, first: int, many: int
    ) -> SparseFileError:
        return cls(
            f"{path}, line {line}: {kind} {found}, where there are {many} {kind}s, {first} to "
            f"{first + many - 1}. Correct the line, or the number of {kind}s."
        )

    repeated = template("path, line, kind, found")(
        "{path}, line {line}: {kind} {found} stands twice in the row. Keep one of them: which of "
        "two is meant cannot be known."
    )

    @classmethod
    def not_finite(cls, path: str, line: int, feature: int, found: str) -> SparseFileError:
        return cls(
            f"{path}, line {line}: feature {feature} is {_shown(found)}, which is no finite "
            "number. Leave the feature out (it is 0 then), or give it a value."
        )

    one_label = template("path, line, found")(
        "{path}, line {line}: {found} labels where each row should have one. Pass many=True to "
        "read sets of labels."
    )

    of_nothing = template("path, row, many")(
        "{path}: row {row} has neither labels nor features (so have {many} in all), and svmlight "
        "has no line for that. Leave such rows out, or write them with write_xmc."
    )

    of_lengths = template("path, rows, labels, sets")(
        "{path} has {rows} rows and {labels} has {sets}: row i of one should belong to row i of "
        "the other. Were both made by the same run?"
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

    of = template("path, features")(
        "{path} does not tell whether its features count from 0 or from 1: there are {features}, "
        "and it has no feature 0 and no feature {features} (feature {features} would be the last "
        "counted from 1). It was read as counted from 1; if it counts from 0, each value stands "
        "in the column before its own. Say which: --first 0 or --first 1 (commands), first=0 "
        "(read_svmlight), model.first_feature_ = 0 (predict_file). A model that 'discriminant "
        "fit' makes of svmlight remembers it."
    )


def _shown(text: str, most: int = 40) -> str:
    return repr(text if len(text) <= most else text[:most] + "…")
