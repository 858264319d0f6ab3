"""Tables in parts: what cannot be done without their rows in memory, and what went wrong there."""

from __future__ import annotations

from discriminant.errors.base import DiscriminantError, DiscriminantWarning, InputError


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
