"""Files that are one table: their formats, one schema for all, and the parts they are cut into.

Which files a path, a glob, a folder or a list of them names, and what their folders say.

A folder is read with all folders below it, in the order of the names; what begins with `.` or `_`
is not (writers leave marks of that name), nor is what is called no table (`README.md`) beside files
that are (`.csv`). No file is read twice, however often it is named. Folders named `key=value` below
the one that all files share give every row of a file that value, as Hive and Spark write
partitions: whole numbers if all values of a key are, else texts.
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
from discriminant.table.column_types import ReadOptions, csv_column_kinds
from discriminant.table.encoding import Encoding
from discriminant.table.files.arrow import arrow_schema, raise_json_error
from discriminant.table.files.csv import CsvColumns
from discriminant.table.files.csv_dialect import CsvKind
from discriminant.table.files.formats import FileFormat, FileIdentity, detect_format
from discriminant.table.files.splits import (
    TEXTS,
    CsvPart,
    FilePart,
    FolderKeys,
    JsonPart,
    SplitError,
    arrow_parts,
    first_schema,
    json_tables,
    line_ranges,
    parquet_parts,
)

_NUMBER = re.compile("-?[0-9]{1,18}")  # that int64 holds
_ABSENT = "__HIVE_DEFAULT_PARTITION__"
_ENDINGS = (
    *(".csv", ".tsv", ".tab", ".txt", ".dat", ".json", ".jsonl", ".ndjson"),
    *(".parquet", ".parq", ".pq", ".arrow", ".arrows", ".feather", ".ipc"),
)


@dataclass(frozen=True, slots=True)
class FileList:
    """Files in their order, and the keys of each."""

    name: str
    paths: tuple[str, ...]  # each file once
    keys: tuple[FolderKeys, ...]
    repeated: tuple[str, ...] = ()  # files of a list that were named before
    skipped: tuple[str, ...] = ()  # files of a folder that are called no table, such as README.md


def list_files(source: Any) -> FileList:
    """The files that a source names."""
    if isinstance(source, str | os.PathLike):
        name = os.fspath(source)
        paths, again = _once(_named(name))[0], list[str]()
    else:
        some = [os.fspath(one) for one in source]
        name = f"{some[0]} and {len(some) - 1} more" if len(some) > 1 else "".join(some[:1])
        paths, again = _once(path for one in some for path in _once(_named(one))[0])
    if not paths:
        raise FileError.no_files(name) if os.path.isdir(name) else FileError.absent(name)
    folder = name if os.path.isdir(name) else os.path.commonpath([_folder(p) for p in paths])
    walked = set(_walked(name)) - set(paths) if os.path.isdir(name) else set[str]()
    aside = sorted(path for path in walked if not _is_called_a_table(path))
    return FileList(name, tuple(paths), _keys(paths, folder), tuple(again), tuple(aside))


def _once(paths: Iterable[str]) -> tuple[list[str], list[str]]:
    """Every file once, and those that came again, under whatever name."""
    first: dict[str, str] = {}
    again = []
    for path in paths:
        place = os.path.realpath(path)
        if place in first:
            again.append(path)
        first.setdefault(place, path)
    return list(first.values()), again


def _named(name: str) -> list[str]:
    check_file_name(name)
    if os.path.isdir(name):
        return _below(name)
    if os.path.lexists(name) or not glob.has_magic(name):
        return [name]
    found = sorted(glob.glob(name, recursive=True))
    return [path for one in found for path in (_below(one) if os.path.isdir(one) else [one])]


def _below(folder: str) -> list[str]:
    """Its tables: if any file is called one, those that are not so called are left out."""
    found = _walked(folder)
    return [path for path in found if _is_called_a_table(path)] or found


def _is_called_a_table(path: str) -> bool:
    return os.path.basename(path).lower().removesuffix(".gz").endswith(_ENDINGS)


def _walked(folder: str) -> list[str]:
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(one for one in folders if not _hidden(one))
        found += [os.path.join(place, one) for one in names if not _hidden(one)]
    return sorted(found)


def _hidden(name: str) -> bool:
    return name.startswith(("_", ".")) and "=" not in name


def _folder(path: str) -> str:
    return os.path.dirname(os.path.abspath(path))


def _keys(paths: Sequence[str], folder: str) -> tuple[FolderKeys, ...]:
    top = os.path.abspath(folder)
    found = [_pairs(Path(os.path.relpath(_folder(path), top)).parts) for path in paths]
    whole = frozenset(name for one in found for name in one if _whole(name, found))
    return tuple(
        FolderKeys(tuple((name, _value(text, name in whole)) for name, text in one.items()), whole)
        for one in found
    )


def _pairs(folders: Iterable[str]) -> dict[str, str]:
    split = (folder.partition("=") for folder in folders)
    return {unquote(name): unquote(text) for name, mark, text in split if mark and name}


def _whole(name: str, found: Sequence[dict[str, str]]) -> bool:
    texts = [one[name] for one in found if name in one and one[name] != _ABSENT]
    return all(_NUMBER.fullmatch(text) for text in texts)


def _value(text: str, whole: bool) -> int | str | None:
    if text == _ABSENT:
        return None
    return int(text) if whole else text


Types = Mapping[str, str]  # of columns: an Arrow type, or the kind of a CSV


@dataclass(frozen=True, slots=True)
class DatasetFile:
    """One of the files."""

    format: FileFormat
    identity: FileIdentity
    keys: FolderKeys
    types: Types
    unsplittable: bool = False  # not to be cut
    long_lines: bool = False  # has lines longer than a block


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """All files, and what is wished of texts."""

    files: tuple[DatasetFile, ...]
    notes: tuple[str, ...]
    options: ReadOptions = field(default_factory=ReadOptions)
    fitted: Encoding | None = None
    fields: Any = None  # of all lines of JSON, where the first ones do not have them all

    @property
    def names(self) -> tuple[str, ...]:
        """Of all columns, those of folders last."""
        first = self.files[0]
        return (*first.types, *first.keys.names)

    @property
    def identities(self) -> tuple[FileIdentity, ...]:
        """Of the files."""
        return tuple(file.identity for file in self.files)

    @property
    def knows_row_count(self) -> bool:
        """Whether the number of rows is known before they are read."""
        return self.files[0].format.kind in ("parquet", "arrow")

    def with_options(self, wishes: ReadOptions, fitted: Encoding | None) -> Dataset:
        """With texts read as wished; columns of all files are then of one kind."""
        found = replace(self, options=wishes, fitted=fitted)
        if self.files[0].format.kind == "csv":
            kinds = found._kinds()
            for file in self.files[1:]:  # a cell of the first is named when it is read
                _check_kinds(file, self.files[0], kinds, wishes)
        return found

    def split_again(self, found: SplitError) -> Dataset:
        """With a file cut another way."""
        if found.new_fields:
            return self._with_all_fields()
        return replace(
            self,
            files=tuple(
                _cut_again(f, found) if f.format.path == found.path else f for f in self.files
            ),
        )

    def parts(self) -> tuple[FilePart, ...]:
        """Where the rows are."""
        parts: list[Any] = []
        start = 0
        kinds = self._kinds() if self.files[0].format.kind == "csv" else {}
        schema: Any = None
        for file in self.files:
            kind = file.format.kind
            if kind == "parquet":
                new: list[Any] = parquet_parts(file.identity, start, file.keys)
            elif kind == "arrow":
                new = arrow_parts(file.format, file.identity, start, file.keys)
            elif kind == "csv":
                new = self._csv(file, kinds)
            else:
                schema = schema or self._json_schema()
                new = [
                    JsonPart(
                        file.format,
                        file.identity,
                        schema,
                        span,
                        every=self.fields is not None,
                        keys=file.keys,
                    )
                    for span in _spans(file)
                ]
            start += sum(part.size for part in new) if self.knows_row_count else 0
            parts += new
        return tuple(parts)

    def _csv(self, file: DatasetFile, kinds: Mapping[str, CsvKind]) -> list[CsvPart]:
        texts = self.options.missing_texts
        gone: Any = {} if texts is None else {"missing": texts, "empty": texts}
        target = self.options.target if self.fitted is None else self.fitted.target
        plan = CsvColumns(file.format, kinds, target=target, **gone)
        return [
            CsvPart(plan, file.identity, span, keys=file.keys, long=file.long_lines)
            for span in _spans(file)
        ]

    def _kinds(self) -> dict[str, CsvKind]:
        """Of every column, from the first file in which it has a value."""
        found: dict[str, CsvKind] = {}
        for file in self.files:
            for name, kind in file.types.items():
                if found.get(name, "empty") == "empty":
                    found[name] = kind  # type: ignore[assignment]
        wishes = replace(self.options, columns=None, exclude=())
        return csv_column_kinds(found, wishes, self.fitted)

    def _json_schema(self) -> Any:
        """Numbers may have decimals in later lines; labels are taken as they are."""
        import pyarrow as pa

        file = self.files[0]
        found = self.fields or first_schema(file.format, next(iter(_spans(file))))
        return pa.schema(
            [
                pa.field(one.name, pa.float64())
                if pa.types.is_integer(one.type) and one.name != self.options.target
                else one
                for one in found
            ]
        )

    def _with_all_fields(self) -> Dataset:
        """All lines are looked at: a field may be in the last one alone."""
        import pyarrow as pa

        found = None
        for file in self.files:
            for span in _spans(file):
                for table in json_tables(file.format, span):
                    both = [table.schema] if found is None else [found, table.schema]
                    try:
                        found = pa.unify_schemas(both, promote_options="permissive")
                    except pa.ArrowTypeError as fault:
                        raise_json_error(file.format)
                        path = file.format.path
                        raise FileError.damaged(path, "the text", str(fault)) from None
        assert found is not None
        types = {one.name: str(one.type) for one in found}
        return replace(
            self, fields=found, files=tuple(replace(file, types=types) for file in self.files)
        )


def open_dataset(found: FileList, style: Mapping[str, str | None]) -> Dataset:
    """What each file is; empty ones among several are left out."""
    files, empty = [], []
    for path, keys in zip(found.paths, found.keys, strict=True):
        try:
            format = detect_format(path, **style)
        except FileError:
            if len(found.paths) == 1 or not _is_empty(path):
                raise
            empty.append(path)
            continue
        files.append(_file(format, keys))
    if not files:
        raise FileError.empty(found.name)
    for file in files[1:]:
        _check_same(file, files[0])
    files = _alike(files)
    said = [files[0].format.description]
    if len(files) > 1:
        said.append(f"{len(files)} files are read as one table.")
    if empty:
        said.append(f"{len(empty)} empty file(s) are left out: {', '.join(empty[:3])}.")
    if found.repeated:
        names = ", ".join(found.repeated[:3])
        said.append(
            f"{len(found.repeated)} file(s) are named more than once and read once: {names}."
        )
    if found.skipped:
        names = ", ".join(found.skipped[:3])
        said.append(
            f"{len(found.skipped)} file(s) are left out, by their names no tables: {names}."
        )
    return Dataset(tuple(files), tuple(said))


def _alike(files: list[DatasetFile]) -> list[DatasetFile]:
    """With a column of texts read the same way from all files of CSV."""
    varied = {
        name
        for file in files
        if file.format.dialect is not None
        for name, many in zip(
            file.format.dialect.names, file.format.dialect.mostly_distinct, strict=True
        )
        if many
    }
    return [replace(file, format=_with_varied(file.format, varied)) for file in files]


def _with_varied(format: FileFormat, varied: set[str]) -> FileFormat:
    if format.dialect is None:
        return format
    many = tuple(name in varied for name in format.dialect.names)
    return replace(format, dialect=replace(format.dialect, mostly_distinct=many))


def _is_empty(path: str) -> bool:
    try:
        return FileIdentity.current(path).size == 0
    except OSError:
        return False


def _file(format: FileFormat, keys: FolderKeys) -> DatasetFile:
    identity = FileIdentity.current(format.path)
    if format.kind == "csv":
        assert format.dialect is not None
        types: dict[str, str] = dict(zip(format.dialect.names, format.dialect.kinds, strict=True))
    elif format.kind == "jsonl":
        ranges = line_ranges(format, identity.size)
        schema = first_schema(format, ranges[0] if ranges else None)
        types = {one.name: str(one.type) for one in schema}
    else:
        types = {one.name: str(one.type) for one in arrow_schema(format)}
    others = tuple(key for key in keys.values if key[0] not in types)
    return DatasetFile(format, identity, replace(keys, values=others), types)


def _check_same(file: DatasetFile, first: DatasetFile) -> None:
    path, other = file.format.path, first.format.path
    if file.format.kind != first.format.kind:
        raise PartSchemaError.of_formats(path, file.format.kind, other, first.format.kind)
    ours, theirs = ([*one.types, *one.keys.names] for one in (file, first))
    absent = [name for name in theirs if name not in ours]
    extra = [name for name in ours if name not in theirs]
    if absent or extra:
        raise PartSchemaError.of_columns(path, absent, extra, other)
    if file.format.kind == "csv":
        return  # kinds are judged from some lines, and wishes have a say in them
    for name, kind in file.types.items():
        if kind != first.types[name] and not {kind, first.types[name]} <= set(TEXTS):
            raise PartSchemaError.of_type(path, name, kind, other, first.types[name])


def _check_kinds(
    file: DatasetFile, first: DatasetFile, kinds: Mapping[str, CsvKind], wishes: ReadOptions
) -> None:
    for name in wishes.columns_to_read(list(file.types)):
        kind = file.types[name]
        if kinds[name] not in ("text", kind) and kind != "empty":
            raise PartSchemaError.of_type(
                file.format.path, name, kind, first.format.path, kinds[name]
            )


def _cut_again(file: DatasetFile, found: SplitError) -> DatasetFile:
    if found.encoding is not None:
        return replace(file, format=file.format.with_encoding(found.encoding))
    if found.long_lines:
        return replace(file, long_lines=True)
    return replace(file, unsplittable=True)


def _spans(file: DatasetFile) -> list[tuple[int, int] | None]:
    ranges = None if file.unsplittable else line_ranges(file.format, file.identity.size)
    return [None] if ranges is None else list(ranges)
