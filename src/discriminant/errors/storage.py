"""Errors and warnings about storage: files, databases, engines, checkpoints and stored models."""

from __future__ import annotations

import errno
import os

from discriminant.errors.base import DiscriminantError, DiscriminantWarning, InputError, template
from discriminant.redaction import is_address, register, shown_address


class FileError(InputError):
    """A file cannot be read as a table."""

    of_address = template("shown")(
        "{shown} is an address, not a file. To read a table of a database, pass the address as "
        "the source, with table= or query= (--table, --query)."
    )

    absent = template("path")("{path}: there is no such file. Check the name and the folder.")

    no_files = template("path")(
        "{path} is a directory without files. Name a file, or a folder of files: CSV, Parquet, "
        "Arrow IPC or JSON lines."
    )

    of_kind = template("path, kind, way_out")(
        "{path} is {kind}, not a regular file, and cannot be read. {way_out}"
    )

    not_allowed = template("path, reason")(
        "{path} cannot be opened: {reason}. Check its permissions."
    )

    not_a_table = template("path, kind, way_out")(
        "{path} is {kind} by its first bytes, not CSV, Parquet, Arrow IPC or JSON lines. {way_out}"
    )

    stored = template("path")(
        "{path} is a file of discriminant (a model or moments), not a table. Load it with "
        "discriminant.load; predict with a model: 'discriminant predict {path} ROWS --out ...'; "
        "fit a model to moments: 'discriminant fit {path} --model lda --out ...'."
    )

    empty = template("path")(
        "{path}: the file is empty (0 bytes of text). The file may not have been written "
        "completely."
    )

    no_rows = template("path, columns")(
        "{path}: no data rows (0 sample(s)): there is a header of {columns:n column} and nothing "
        "after it. Add rows, one per line."
    )

    rows_differ = template("path")(
        "{path}: its text has a different number of rows than predictions, so predictions would "
        "be written next to other rows. Nothing was written. Check for stray quotes and line "
        "ends, or write to a .parquet file."
    )

    no_header = template("path, names")(
        "{path}: line 1 holds only numbers ({names:list 3}) instead of column names. Put a line of "
        "names before the rows."
    )

    changed = template("path, before, after")(
        "{path} changed while it was read ({before} bytes before, {after} after, or its "
        "modification time), so rows of two versions may be mixed. Wait until the file is "
        "written completely, or read a copy."
    )

    bomb = template("path, packed, unpacked, ratio")(
        "{path}: {packed} bytes of gzip have expanded to {unpacked}, more than {ratio} times as "
        "many, and reading stopped there: it may be a decompression bomb. If you trust it, "
        "unpack it yourself (gunzip) and pass the result."
    )

    too_large = template("path, limit")(
        "{path} holds more than max_bytes={limit} bytes of text, and reading stopped there. Pass "
        "a larger max_bytes (--max-bytes) if you have the memory."
    )

    long_line = template("path, line, limit")(
        "{path}, line {line}: longer than the limit of {limit} bytes per line. Check for missing "
        "line ends, or a quote that is not closed."
    )

    many_columns = template("path, columns, limit")(
        "{path}: {columns} columns, more than the limit of {limit}. Store so wide a table as "
        "Parquet with fewer columns, or transposed."
    )

    long_field = template("path, line, column, limit")(
        "{path}, line {line}, column '{column}': a field longer than the limit of {limit} bytes. "
        "Check for a quote that is not closed."
    )

    ragged = template("path, line, *, expected, found")(
        "{path}, line {line}: {found:n field}, but the header has {expected}. Correct the line; "
        "a field that contains the delimiter must be quoted."
    )

    all_ragged = template("path, *, expected, found, delimiter")(
        "{path}: line 2 and all lines checked have {found} fields, but the header has {expected} "
        "(delimiter {delimiter!r}). A column, perhaps one of row numbers, may have no name: name "
        "every column in the header."
    )

    open_quote = template("path, line")(
        "{path}, line {line}: a quote is opened there and never closed, so everything after it "
        "would be one field. Close the quote, or double a quote that is part of the text."
    )

    after_quote = template("path, line, column, text, quote")(
        "{path}, line {line}, column '{column}': the text {text:short} follows a closing quote "
        "({quote}), so the value of the cell is ambiguous. Remove the quotes, double a quote "
        "within a quoted field, or list the column in exclude."
    )

    of_nul = template("path, line, byte")(
        "{path}, line {line}: a NUL byte (byte {byte} of the text, counted from 0), so the file "
        "is damaged or not text. Write the file again, or remove the NUL bytes."
    )

    undecodable = template("path, encoding, byte, line")(
        "{path}, line {line}: byte {byte} (counted from 0) is not valid {encoding}. Save the "
        "file as UTF-8, or pass its encoding as encoding=."
    )

    of_json = template("path, line, reason")(
        "{path}, line {line}: {reason}. JSON lines have one object per line, all with the same "
        "names and types of values: correct the line."
    )

    cut_off = template("path, what")(
        "{path}: file incomplete ({what}). The file may not have been copied or written "
        "completely: fetch it again."
    )

    damaged = template("path, where, reason")(
        "{path} is damaged: {where} cannot be read ({reason}). Fetch or write it again."
    )

    of_extension = template("path, column, kind")(
        "{path}: column '{column}' has the extension type {kind}, which is not supported: its "
        "meaning depends on other programs, and such types have been used to run code. Write the "
        "column as plain numbers or text."
    )


def check_file_name(path: object) -> None:
    """Raise an error if a path is the address of a database, where a file is expected."""
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if isinstance(text, str) and is_address(text) and not os.path.lexists(text):
        register(text)
        raise FileError.of_address(shown_address(text))


class NeedsMemoryError(InputError):
    """A model needs all rows in memory."""

    of = template("name, source, rows, sampled")(
        "{name} needs its rows in memory, but {source} is a partitioned table of {rows:,} rows. "
        "Fit the model to a sample (`rows.sample` holds {sampled:,}, from all partitions), or "
        "use a model that reads partitions: LDA, QDA, RDA, NearestMean, Fisher, LeastSquares, "
        "Logistic."
    )

    of_jackknife = template("source, rows, sampled")(
        "method='jackknife+' leaves out each row by itself, but {source} is a partitioned table "
        "of {rows:,} rows. Pass method='cross' or 'split', or fit to a sample (`rows.sample` "
        "holds {sampled:,})."
    )


class SourceChangedError(DiscriminantError):
    """A source changed while it was read."""

    of_rows = template("source, before, after")(
        "{source} had {before:,} rows when it was opened and has {after:,} now, so sums would "
        "mix two versions. Open the source again when no program writes to it."
    )

    of_count = template("source, stated, read")(
        "{source} states {stated:,} rows, but {read:,} were read, so sums would not include all "
        "of them. Read the source again; if that does not help, a file is damaged."
    )

    of_class = template("source, column, level")(
        "{source} now holds {level!r} in '{column}', which it did not when it was opened, so "
        "sums would mix two versions. Open the source again when no program writes to it."
    )


class EngineError(InputError):
    """No engine can read this kind of source."""

    unknown = template("name, known")("engine={name!r} is not one of {known:list}.")

    other = template("engine, reader")(
        "engine='{engine}' cannot read this source, but '{reader}' can. Leave engine= out, or "
        "pass engine='{reader}'."
    )

    of_source = template("kind, known")(
        "No engine ({known:list}) reads a {kind}. Pass a path, a glob, a folder, a Dask or Spark "
        "frame, or discriminant.sql(connection, table). Rows in memory need no engine: pass them "
        "to fit(X, y)."
    )

    not_installed = template("library, extra")(
        "This needs {library}, which is not installed. Install it with: pip install "
        "'discriminant[{extra}]' (in a clone: pip install '.[{extra}]')"
    )

    no_checkpoint = template("name")(
        "{name}: with pushdown=True no row leaves the database, so a checkpoint could not be "
        "checked against the rows. Leave checkpoint= out, or pass pushdown=False."
    )

    duplicate_column = template("name")(
        "The features have a column '{name}', which is also the name of the labels or weights "
        "passed with them. Rename the column, or pass one frame with all columns, and the names "
        "of the label and weight columns."
    )

    of_chunks = template("counts")(
        "The features and the other arrays have {counts:list} chunks of unknown lengths, so their "
        "rows cannot be aligned. Call compute_chunk_sizes() on each first."
    )

    stopped = template("engine, reason")(
        "{engine} stopped: {reason}. Nothing was changed; the full text is in the cause of this "
        "error."
    )


class PartSchemaError(InputError):
    """Files of one source have different columns."""

    of_type = template("path, column, kind, other, first")(
        "{path}: column '{column}' is {kind}, but {first} in {other}. Files that are read as one "
        "table need one schema: write the file again with that type, leave the file out, or list "
        "the column in exclude= (a text column may also be listed in categories=)."
    )

    of_columns = template("path, absent, extra, other")(
        "{path} does not have the columns of {other}{absent:?; it lacks {absent:names}}{extra:?; "
        "it also has {extra:names}}. Files that are read as one table need the same columns: write "
        "it again, or leave it out."
    )

    of_formats = template("path, kind, other, first")(
        "{path} is {kind}, but {other} is {first}. Pass files of one format, by a glob such as "
        "'*.{first}' or '*.{kind}'."
    )


class CheckpointError(DiscriminantError):
    """A checkpoint belongs to another run, or cannot be used."""

    of_other = template("path, what, was, now")(
        "{path} is a checkpoint of another run: {what} was {was}, and is {now} now, so the two "
        "cannot be combined. Remove the checkpoint to start again, or pass another path."
    )

    foreign = template("path")(
        "{path} exists and is not a checkpoint. Pass a path that does not exist yet, or the "
        "checkpoint of a run that was stopped."
    )

    in_use = template("path, owner")(
        "{path} is a checkpoint that {owner:?{owner}|another process} is using now. Wait until "
        "that process is done, or stop it: the same fit then resumes from the stored results. Or "
        "pass another path."
    )

    of_disk = template("path, reason")(
        "The checkpoint folder {path} cannot be used: {reason}. Name another folder that can be "
        "written to (it is created if needed), free some space if the disk is full, or fit "
        "without a checkpoint. Existing results stay in the folder, and the same fit resumes "
        "from them."
    )

    damaged = template("path, reason")(
        "{path} is damaged ({reason}). Remove it: its part of the work is repeated."
    )


class CheckpointWarning(DiscriminantWarning):
    """Some intermediate results are not stored in a checkpoint."""

    of_work = template("path, kind")(
        "Sums that involve a {kind} are not stored in {path}, because the content of such an "
        "object cannot be identified. If the run is stopped and restarted, these sums are computed "
        "again."
    )

    not_written = template("path, reason")(
        "The checkpoint {path} cannot be written ({reason}). The run continues; if it is "
        "stopped, work that was not written is repeated. Free some space, or pass another folder."
    )


class DatabaseError(InputError):
    """A database cannot be read."""

    no_query = template("given")(
        "{given!r} names no rows. Pass the name of a table or view, or a SELECT."
    )

    no_select = template("kinds")(
        "The query is {kinds:list}, but only a single SELECT is allowed, so that nothing is "
        "written. Run the other statements yourself, and pass only the SELECT or the name of a "
        "view."
    )

    no_rows = template("name")(
        "{name}: no rows. Check the name of the table and the conditions of the query."
    )

    unknown_url = template("shown, known")(
        "{shown} is neither the address of a supported database nor a database file. Addresses "
        "begin with {known:list}."
    )

    unclear_address = template("shown")(
        "The address {shown} cannot be parsed, and is not shown because it may contain a "
        "password. Write it as postgresql://user:***@host:port/dbname, and percent-encode "
        "special characters in the user name and the password: %40 for @, %2F for /, %25 for %, "
        "%23 for #, %3F for ?, %26 for &, %20 for a space."
    )

    unknown_connection = template("kind")(
        "A {kind} is not a supported connection: DuckDB, psycopg 3 and sqlite3 are. Pass a "
        "supported connection, or a URL such as duckdb:///file.db."
    )

    not_reached = template("title, reason")(
        "{title} could not be reached: {reason}. Check the URL and that the server is running."
    )

    of = template("name, title, reason")(
        "{name}: {title} stopped: {reason}. Nothing was changed in the database; run the same "
        "command again when it responds."
    )

    of_query = template("name, title, reason")(
        "{name}: {title} rejected the query: {reason}. Correct the query or the name; nothing "
        "was changed in the database."
    )

    no_such_table = template("name, title, absent, known, near, *, query=False")(
        "{name}: {title} has no table or view '{absent}'.{near:? Did you mean '{near}'?}{known:? "
        "It has {known:names 10}.}{query:? If this is a query: only a single SELECT is allowed.}"
    )

    forbidden = template("name, title, reason")(
        "{name}: {title} does not allow it: {reason}. Connect as a role that may read it, or "
        "have it granted."
    )

    damaged = template("name, title, reason")(
        "{name}: {title} cannot read the file: {reason}. The file is damaged, incomplete or of "
        "another kind: copy it again, or restore it."
    )

    not_opened = template("path, title, reason")(
        "{path}: {title} cannot open the file: {reason}. The file may be damaged, of another "
        "kind, or locked by a program that writes to it."
    )

    no_file = template("path")("{path}: there is no such file. Check the name and the folder.")

    other_kind = template("path, kind, expected")(
        "{path} is a file of {kind}, not {expected}. Write {kind}:///{path}."
    )

    mixed = template("column, kinds")(
        "Column '{column}' holds cells of several types: {kinds:list}. Cast the column in the "
        "query, or leave it out (exclude=['{column}'])."
    )

    missing = template("name, column, rows")(
        "{name}: column '{column}' is missing in {rows:,} row(s). Pass missing='drop', 'mean' or "
        "'indicator', or leave these rows out in the query; the target must not be missing."
    )

    infinite = template("name, column, rows")(
        "{name}: column '{column}' is infinite in {rows:,} row(s), or too large for float64. "
        "Leave these rows out in the query; in a ratio, the denominator may be zero."
    )

    weights = template("name, column, rows")(
        "{name}: weight '{column}' is missing, negative or infinite in {rows:,} row(s). To leave "
        "a row out, give it weight 0."
    )

    reserved = template("column, title")(
        "Column '{column}': {title} reads that name as a truth value. Rename the column in "
        'the query: SELECT "{column}" AS other ...'
    )

    no_table = template("title, scheme, known")(
        "The address of a database names no rows. Name a table or view of {title}: by table= "
        "(--table), {scheme}://...#table or discriminant.sql(url, table_or_query).{known:? It has "
        "{known:names 10}.}"
    )

    must_stay = template("name, what")(
        "{name}: {what} needs rows, but pushdown=True keeps them in the database. Fit a model "
        "from moments (LDA, QDA, RDA, NearestMean, Fisher, LeastSquares), or pass "
        "pushdown=False."
    )


class StoredFileError(InputError):
    """A stored file is damaged, not valid, or not of this package."""

    absent = template("path")("There is no file {path}. Check the name and the folder.")

    not_a_file = template("path, kind")(
        "{path} is a {kind}, but only a regular file can be loaded. Pass the file of a model or "
        "of moments."
    )

    unreadable = template("path, why")("{path} cannot be read: {why}. Check its permissions.")

    damaged = template("path, byte, why")(
        "The file {path} is damaged at byte {byte:,}: {why}. Nothing was loaded; use a copy or "
        "save it again."
    )

    wrong_digest = template("path, stated, actual")(
        "The content of {path} was changed after it was saved: its SHA-256 should be "
        "{stated:.16}... and is {actual:.16}... Nothing was loaded; use a copy or save it again."
    )

    future = template("path, version, most, package")(
        "{path} has format version {version}, written by discriminant {package}; this version "
        "reads 1 to {most}. Upgrade: pip install --upgrade discriminant."
    )

    foreign = template("path, kind")(
        "{path} is not a file of discriminant but {kind}. It was not opened. Files that can be "
        "loaded are written by model.save(path) or discriminant.save(thing, path)."
    )

    runs_code = template("path, kind")(
        "{path} is {kind}, which can run any code when it is opened. It was not opened. If you "
        "trust the source of the file, open it with the library that wrote it; then "
        "model.save(path) writes a file that holds only numbers and text."
    )

    unknown_kind = template("path, kind, version, package")(
        "{path} holds a '{kind}' (format version {version}, written by discriminant {package}), "
        "which this version does not know. Upgrade discriminant, or ask the author of the file."
    )

    invalid = template("path, part, why")(
        "{path} is not valid: {part}: {why}. Nothing was loaded; get the file again from its "
        "source, or save the model again."
    )

    too_large = template("path, size, most")(
        "{path} has {size:,} bytes, and at most {most:,} are loaded. Pass a larger max_bytes, or "
        "mmap=True to leave the arrays on disk."
    )


class StateError(InputError):
    """Some part of a model cannot be saved."""

    of_part = template("part, kind")(
        "{part} is a {kind}, but a file holds only numbers, text, arrays and parts of this "
        "package. Set it to a value of one of these types (a list or an array for a frame, an "
        "integer for a generator, None for a function), fit again and save."
    )

    of_estimator = template("part, kind")(
        "{part} is a {kind}, which is not an estimator of this package, so no safe file can hold "
        "it. Fit a model of this package instead (LDA, Logistic, SVM, ...), or use "
        "joblib.dump, whose files must be loaded only by those who trust them."
    )

    of_dtype = template("part, dtype")(
        "{part} is an array of {dtype}, but a file holds booleans, integers, floats up to 64 "
        "bits, dates and text. Convert the array (for instance to float64), fit again and save."
    )

    invalid = template("part, why")("{part} cannot be saved: {why}.")

    too_long = template("size, most")(
        "The names, options and structure take {size:,} bytes, but a file of this size holds "
        "{most:,}. Shorten the column names, or save parts of the model separately."
    )


_UNCHANGED = "An existing file is unchanged."


class WriteError(DiscriminantError, OSError):
    """A file cannot be written; an existing file is unchanged."""

    @classmethod
    def _of(cls, number: int, text: str) -> WriteError:
        error = cls(text)
        error.errno = number
        return error

    @classmethod
    def no_room(cls, path: object, needed: int, free: int, cause: OSError) -> WriteError:
        number = cause.errno or errno.ENOSPC
        return cls._of(
            number,
            f"No space for {path}: it needs {needed:,} bytes, and {free:,} are free "
            f"({os.strerror(number)}). {_UNCHANGED} Free some space, or choose another folder.",
        )

    @classmethod
    def no_room_after(cls, path: object, written: int, free: int, cause: OSError) -> WriteError:
        number = cause.errno or errno.ENOSPC
        return cls._of(
            number,
            f"No space for {path}: it needs more than the {written:,} bytes that could be written, "
            f"and {free:,} are free ({os.strerror(number)}). {_UNCHANGED} Free some space, or "
            "choose another folder.",
        )

    @classmethod
    def locked(cls, path: object, pid: str) -> WriteError:
        return cls._of(
            errno.EAGAIN,
            f"{path} is locked by pid {pid or 'unknown'}, which is writing it now. Wait until it "
            "ends, or save under another name.",
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
            f"{path} could not be written: {os.strerror(number)}. {_UNCHANGED} Choose another "
            "folder, or check this folder.",
        )


class SparseFileError(FileError):
    """A file of sparse rows (XMC text or svmlight) cannot be read or written."""

    of_header = template("path, header, expected")(
        "{path}, line 1: the header should be {expected}, whole numbers separated by spaces, but "
        "is {header!r}. Put the header before the rows; a file without a header is read by "
        "read_svmlight."
    )

    without_header = template("path, expected")(
        "{path} is empty: it should begin with a header, {expected}, and a line for each row. "
        "The file may not have been copied or written completely."
    )

    without_rows = template("path")(
        "{path}: no rows (0 sample(s)). The file may not have been copied or written completely. "
        "Each row is a line 'label,label feature:value feature:value'; a file of XMC text begins "
        "with a header 'rows features labels'."
    )

    not_sparse = template("path")(
        "{path} is not a file of sparse rows: its first line is neither the header of XMC text, "
        "'rows features labels', nor 'label,label feature:value' of svmlight. For a table, use a "
        "label tree that was fitted to one ('fit --target COLUMN')."
    )

    of_width = template("path, features, fitted")(
        "{path}, line 1: the header states {features} features, but the model was fitted to "
        "{fitted}. Columns are identified by number only: pass a file with the same features."
    )

    unwritable = template("path, row, feature, value")(
        "{path} was not written: row {row}, feature {feature} (counted from 0) is {value}, which "
        "no reader accepts. Leave the feature out, or give it a value."
    )

    too_few = template("path, *, stated, rows")(
        "{path}: the header (line 1) states {stated} rows, but the file ends after {rows}. The "
        "file may not have been copied or written completely: fetch it again, or correct the "
        "header."
    )

    too_many = template("path, line, stated")(
        "{path}, line {line}: one row more than the {stated} that the header (line 1) states. "
        "Correct the header, or remove what follows the last row."
    )

    of_token = template("path, line, token, expected")(
        "{path}, line {line}: {token:short 40} instead of {expected}. A row is 'label,label "
        "feature:value feature:value': correct the line."
    )

    negative = template("path, line, label")(
        "{path}, line {line}: label {label:short 40}, but labels are numbers counted from 0. If "
        "the classes are -1 and 1, write 0 instead of -1. To fit another model than a label tree, "
        "read the file with X, y = read_svmlight(path), which accepts any numbers as labels."
    )

    of_size = template("path, size, most")(
        "{path}, line 1: the header states {size:,}, but rows, features and labels are limited "
        "to {most:,}. Correct the header, 'rows features labels'."
    )

    of_folder = template("path")(
        "{path} is a folder, but a label tree of sparse rows reads one file. Name a file."
    )

    of_range = template("path, line, kind, number, *, first, many")(
        "{path}, line {line}: {kind} {number}, but there are {many} {kind}s, {first} to "
        "{first + many - 1}. Correct the line, or the number of {kind}s."
    )

    repeated = template("path, line, kind, number")(
        "{path}, line {line}: {kind} {number} occurs twice in the row, so its value is "
        "ambiguous. Keep one of them."
    )

    not_finite = template("path, line, feature, value")(
        "{path}, line {line}: feature {feature} is {value:short 40}, which is not a finite number. "
        "Leave the feature out (it is 0 then), or give it a value."
    )

    one_label = template("path, line, labels")(
        "{path}, line {line}: {labels} labels, but each row should have one. Pass many=True to "
        "read label sets."
    )

    empty_row = template("path, row, many")(
        "{path}: row {row} has neither labels nor features ({many} such rows in total), and "
        "svmlight has no line for that. Leave such rows out, or write them with write_xmc."
    )

    of_lengths = template("path, rows, labels, sets")(
        "{path} has {rows} rows but {labels} has {sets}: row i of one should belong to row i of "
        "the other. Check that both come from the same run."
    )


class MoreFeaturesWarning(DiscriminantWarning):
    """A svmlight file has features that the model does not know."""

    of = template("path, last, first, known")(
        "{path} has features up to {last}, but the model knows {known}, {first} to {first + known "
        "- 1}; the others were ignored. If the file numbers its features differently from the "
        "training rows, pass --first {1 - first}."
    )


class FirstFeatureWarning(DiscriminantWarning):
    """A svmlight file does not show whether its features are numbered from 0 or 1."""

    of = template("path, features")(
        "{path} does not show whether its features are numbered from 0 or from 1: there are "
        "{features}, and it has neither feature 0 nor feature {features}. Features were read as "
        "numbered from 1; if they start at 0, each value is in the wrong column. Pass --first 0 "
        "or --first 1 (commands), first=0 (read_svmlight), or set model.first_feature_ = 0 "
        "(predict_file). A model that 'discriminant fit' fits to an svmlight file stores this "
        "number."
    )
