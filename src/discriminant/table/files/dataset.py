"""Datasets of several files that form one table: list of files, common schema, and parts.

A source is a path, a glob, a folder or a list of these. A folder includes all its subfolders,
in alphabetical order. Names that begin with `.` or `_` are skipped, because other programs write
marker files with such names. If some files have the extension of a table (`.csv`), files with other
extensions (`README.md`) are skipped. A file that is listed several times is read once. Folders
named `key=value` below the common folder define a column `key`, as in partitions written by Hive
and Spark. The values of this column are integers if all values of the key are integers, otherwise
texts.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from discriminant.errors import FileError, PartSchemaError, check_file_name
from discriminant.table.column_types import ReadOptions, resolve_csv_kinds
from discriminant.table.encoding import Encoding
from discriminant.table.files.csv import CsvColumns
from discriminant.table.files.csv_dialect import CsvKind
from discriminant.table.files.formats import FileFormat, FileIdentity, detect_format
from discriminant.table.files.pyarrow_readers import raise_json_error, read_arrow_schema
from discriminant.table.files.splits import (
    TEXTS,
    CsvPart,
    FilePart,
    FolderKeys,
    JsonPart,
    SplitError,
    arrow_parts,
    infer_json_schema,
    json_tables,
    line_ranges,
    parquet_parts,
)

_INTEGER = re.compile("-?[0-9]{1,18}")  # fits into int64
_MISSING_KEY = "__HIVE_DEFAULT_PARTITION__"
_ENDINGS = (
    *(".csv", ".tsv", ".tab", ".txt", ".dat", ".json", ".jsonl", ".ndjson"),
    *(".parquet", ".parq", ".pq", ".arrow", ".arrows", ".feather", ".ipc"),
)


@dataclass(frozen=True, slots=True)
class FileList:
    """Files of a source, in order, with the folder keys of each file."""

    name: str
    paths: tuple[str, ...]  # paths without duplicates
    keys: tuple[FolderKeys, ...]
    repeated: tuple[str, ...] = ()  # paths of files that were listed several times
    skipped: tuple[str, ...] = ()  # files of a folder that are not tables, such as README.md


def list_files(source: Any) -> FileList:
    """List the files of a source.

    Parameters
    ----------
    source : path, glob, folder or iterable of these
        Source as the user passed it.

    Returns
    -------
    FileList
        The files. FileError is raised if there are no files.
    """
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        paths, repeated = _distinct_files(_expand(name))[0], list[str]()
    else:
        given = [os.fspath(path) for path in source]
        name = f"{given[0]} and {len(given) - 1} more" if len(given) > 1 else "".join(given[:1])
        paths, repeated = _distinct_files(
            path for pattern in given for path in _distinct_files(_expand(pattern))[0]
        )
    is_folder = os.path.isdir(name)
    if not paths:
        raise FileError.no_files(name) if is_folder else FileError.absent(name)
    folder = name if is_folder else os.path.commonpath([_folder_of(path) for path in paths])
    others = set(_walk(name)) - set(paths) if is_folder else set[str]()
    skipped = sorted(path for path in others if not _has_table_name(path))
    return FileList(
        name, tuple(paths), _folder_keys(paths, folder), tuple(repeated), tuple(skipped)
    )


def _distinct_files(paths: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the paths of distinct files, and the paths of files that are listed again."""
    first: dict[str, str] = {}
    repeated = []
    for path in paths:
        real = os.path.realpath(path)
        if real in first:
            repeated.append(path)
        first.setdefault(real, path)
    return list(first.values()), repeated


def _expand(name: str) -> list[str]:
    """Return the files that a path, a glob or a folder refers to."""
    check_file_name(name)
    if os.path.isdir(name):
        return _tables_below(name)
    if os.path.lexists(name) or not glob.has_magic(name):
        return [name]
    paths = sorted(glob.glob(name, recursive=True))
    return [file for p in paths for file in (_tables_below(p) if os.path.isdir(p) else [p])]


def _tables_below(folder: str) -> list[str]:
    """Return the files with the extension of a table, or all files if there are none."""
    paths = _walk(folder)
    return [path for path in paths if _has_table_name(path)] or paths


def _has_table_name(path: str) -> bool:
    return os.path.basename(path).lower().removesuffix(".gz").endswith(_ENDINGS)


def _walk(folder: str) -> list[str]:
    paths = []
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _is_hidden(name))
        paths += [os.path.join(parent, name) for name in names if not _is_hidden(name)]
    return sorted(paths)


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", ".")) and "=" not in name


def _folder_of(path: str) -> str:
    return os.path.dirname(os.path.abspath(path))


def _folder_keys(paths: Sequence[str], folder: str) -> tuple[FolderKeys, ...]:
    """Return the keys of each file, from the names of its folders below the common folder."""
    top = os.path.abspath(folder)
    texts = [_key_texts(Path(os.path.relpath(_folder_of(path), top)).parts) for path in paths]
    by_name: dict[str, list[str]] = {}
    for keys in texts:
        for name, text in keys.items():
            by_name.setdefault(name, []).append(text)
    whole = frozenset(
        name
        for name, values in by_name.items()
        if all(text == _MISSING_KEY or _INTEGER.fullmatch(text) for text in values)
    )

    def value(name: str, text: str) -> int | str | None:
        return None if text == _MISSING_KEY else int(text) if name in whole else text

    return tuple(
        FolderKeys(tuple((name, value(name, text)) for name, text in keys.items()), whole)
        for keys in texts
    )


def _key_texts(folders: Iterable[str]) -> dict[str, str]:
    split = (folder.partition("=") for folder in folders)
    return {unquote(name): unquote(text) for name, mark, text in split if mark and name}


Types = Mapping[str, str]  # type of each column: that of Arrow, or the kind in a CSV


@dataclass(frozen=True, slots=True)
class DatasetFile:
    """One file of a dataset."""

    format: FileFormat
    identity: FileIdentity
    keys: FolderKeys
    types: Types
    unsplittable: bool = False  # whether the file must be read in one part
    long_lines: bool = False  # whether the file has lines longer than a block


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Files that are read as one table, with the options for reading text files."""

    files: tuple[DatasetFile, ...]
    notes: tuple[str, ...]
    options: ReadOptions = field(default_factory=ReadOptions)
    fitted: Encoding | None = None
    fields: Any = None  # schema of all JSON lines, if the first lines lack some fields

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns. Columns defined by folder names come last."""
        first = self.files[0]
        return (*first.types, *first.keys.names)

    @property
    def identities(self) -> tuple[FileIdentity, ...]:
        """Identities of the files."""
        return tuple(file.identity for file in self.files)

    @property
    def knows_row_count(self) -> bool:
        """Whether the number of rows is known before they are read."""
        return self.files[0].format.kind in ("parquet", "arrow")

    def with_options(self, options: ReadOptions, fitted: Encoding | None) -> Dataset:
        """Return the dataset with its text files read according to the options.

        Raise an error if the type of a column differs between files.
        """
        dataset = replace(self, options=options, fitted=fitted)
        if self.files[0].format.kind == "csv":
            kinds = dataset._kinds()
            for file in self.files[1:]:  # errors in the first file are located when it is read
                _check_kinds(file, self.files[0], kinds, options)
        return dataset

    def split_again(self, error: SplitError) -> Dataset:
        """Split the file that raised the error in another way; return the dataset."""
        if error.new_fields:
            return self._with_all_fields()
        files = (
            _split_again(file, error) if file.format.path == error.path else file
            for file in self.files
        )
        return replace(self, files=tuple(files))

    def parts(self) -> tuple[FilePart, ...]:
        """Return the parts of all files."""
        parts: list[FilePart] = []
        start = 0
        kinds = self._kinds() if self.files[0].format.kind == "csv" else {}
        schema: Any = None
        for file in self.files:
            format, identity, keys = file.format, file.identity, file.keys
            new: Sequence[FilePart]
            if format.kind == "parquet":
                new = parquet_parts(identity, start, keys)
            elif format.kind == "arrow":
                new = arrow_parts(format, identity, start, keys)
            elif format.kind == "csv":
                plan = CsvColumns.from_options(format, kinds, self.options, self.fitted)
                new = [
                    CsvPart(plan, identity, span, keys=keys, long_lines=file.long_lines)
                    for span in _spans(file)
                ]
            else:
                schema = schema or self._json_schema()
                all_fields = self.fields is not None
                new = [
                    JsonPart(format, identity, schema, span, all_fields=all_fields, keys=keys)
                    for span in _spans(file)
                ]
            start += sum(part.size for part in new) if self.knows_row_count else 0
            parts += new
        return tuple(parts)

    def _kinds(self) -> dict[str, CsvKind]:
        """Return the kind of every column, judging by the first file in which it has a value."""
        kinds: dict[str, CsvKind] = {}
        for file in self.files:
            for name, kind in file.types.items():
                if kinds.get(name, "empty") == "empty":
                    kinds[name] = kind  # type: ignore[assignment]
        options = replace(self.options, columns=None, exclude=())
        return resolve_csv_kinds(kinds, options, self.fitted)

    def _json_schema(self) -> Any:
        """Return the schema of JSON lines.

        Integers are read as float64, because later lines may have decimals. Labels keep their type.
        """
        import pyarrow as pa

        file = self.files[0]
        schema = self.fields or infer_json_schema(file.format, next(iter(_spans(file))))
        return pa.schema(
            [
                pa.field(field.name, pa.float64())
                if pa.types.is_integer(field.type) and field.name != self.options.target
                else field
                for field in schema
            ]
        )

    def _with_all_fields(self) -> Dataset:
        """Return the dataset with a schema that has the fields of all lines.

        All lines are read, because a field may occur for the first time in the last line.
        """
        import pyarrow as pa

        schema = None
        for file in self.files:
            for span in _spans(file):
                for table in json_tables(file.format, span):
                    schemas = [table.schema] if schema is None else [schema, table.schema]
                    try:
                        schema = pa.unify_schemas(schemas, promote_options="permissive")
                    except pa.ArrowTypeError as fault:
                        raise_json_error(file.format, str(fault))
        assert schema is not None
        types = _field_types(schema)
        files = tuple(replace(file, types=types) for file in self.files)
        return replace(self, fields=schema, files=files)


def open_dataset(listing: FileList, style: Mapping[str, str | None]) -> Dataset:
    """Detect the format of each file and check that all have the same columns.

    Parameters
    ----------
    listing : FileList
        Files to open. If there are several files, empty files are left out.
    style : dict of str to str
        Encoding, delimiter, decimal and thousands of CSV files, if the user states them.
    """
    files, empty = [], []
    for path, keys in zip(listing.paths, listing.keys, strict=True):
        try:
            format = detect_format(path, **style)
        except FileError:
            if len(listing.paths) == 1 or not _is_empty(path):
                raise
            empty.append(path)
            continue
        files.append(_dataset_file(format, keys))
    if not files:
        raise FileError.empty(listing.name)
    for file in files[1:]:
        _check_same_columns(file, files[0])
    notes = [files[0].format.description]
    if len(files) > 1:
        notes.append(f"{len(files)} files are read as one table.")
    for paths, treatment in (
        (empty, "empty file(s) are left out"),
        (listing.repeated, "file(s) are named more than once and read once"),
        (listing.skipped, "file(s) are left out: their names are not those of tables"),
    ):
        if paths:
            notes.append(f"{len(paths)} {treatment}: {', '.join(paths[:3])}.")
    return Dataset(tuple(_unify_text_types(files)), tuple(notes))


def _unify_text_types(files: Sequence[DatasetFile]) -> list[DatasetFile]:
    """Give each column of texts the same Arrow type in all files."""
    distinct: set[str] = set()
    for file in files:
        if (dialect := file.format.dialect) is not None:
            pairs = zip(dialect.names, dialect.mostly_distinct, strict=True)
            distinct.update(name for name, mostly_distinct in pairs if mostly_distinct)
    return [replace(file, format=_with_distinct(file.format, distinct)) for file in files]


def _with_distinct(format: FileFormat, distinct: set[str]) -> FileFormat:
    if format.dialect is None:
        return format
    flags = tuple(name in distinct for name in format.dialect.names)
    return replace(format, dialect=replace(format.dialect, mostly_distinct=flags))


def _is_empty(path: str) -> bool:
    try:
        return FileIdentity.current(path).size == 0
    except OSError:
        return False


def _dataset_file(format: FileFormat, keys: FolderKeys) -> DatasetFile:
    identity = FileIdentity.current(format.path)
    if format.kind == "csv":
        dialect = format.csv_dialect
        types: dict[str, str] = dict(zip(dialect.names, dialect.kinds, strict=True))
    elif format.kind == "jsonl":
        ranges = line_ranges(format, identity.size)
        types = _field_types(infer_json_schema(format, ranges[0] if ranges else None))
    elif format.kind == "excel":
        way_out = "Read it into memory (engine='memory'), or save the sheet as CSV or Parquet."
        raise FileError.not_a_table(format.path, "an Excel workbook, which has no parts", way_out)
    else:
        types = _field_types(read_arrow_schema(format))
    others = tuple(key for key in keys.values if key[0] not in types)
    return DatasetFile(format, identity, replace(keys, values=others), types)


def _field_types(schema: Any) -> dict[str, str]:
    return {field.name: str(field.type) for field in schema}


def _check_same_columns(file: DatasetFile, first: DatasetFile) -> None:
    path, first_path = file.format.path, first.format.path
    if file.format.kind != first.format.kind:
        raise PartSchemaError.of_formats(path, file.format.kind, first_path, first.format.kind)
    ours, theirs = ([*each.types, *each.keys.names] for each in (file, first))
    absent = [name for name in theirs if name not in ours]
    extra = [name for name in ours if name not in theirs]
    if absent or extra:
        raise PartSchemaError.of_columns(path, absent, extra, first_path)
    if file.format.kind == "csv":
        return  # the kinds are inferred from a few lines, and depend on the options
    for name, kind in file.types.items():
        if kind != first.types[name] and not {kind, first.types[name]} <= set(TEXTS):
            raise PartSchemaError.of_type(path, name, kind, first_path, first.types[name])


def _check_kinds(
    file: DatasetFile, first: DatasetFile, kinds: Mapping[str, CsvKind], options: ReadOptions
) -> None:
    for name in options.columns_to_read(list(file.types)):
        kind = file.types[name]
        if kinds[name] not in ("text", kind) and kind != "empty":
            path, first_path = file.format.path, first.format.path
            raise PartSchemaError.of_type(path, name, kind, first_path, kinds[name])


def _split_again(file: DatasetFile, error: SplitError) -> DatasetFile:
    if error.encoding is not None:
        return replace(file, format=file.format.with_encoding(error.encoding))
    if error.long_lines:
        return replace(file, long_lines=True)
    return replace(file, unsplittable=True)


def _spans(file: DatasetFile) -> list[tuple[int, int] | None]:
    ranges = None if file.unsplittable else line_ranges(file.format, file.identity.size)
    return [None] if ranges is None else list(ranges)
