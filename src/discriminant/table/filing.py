"""Files that are one table: their formats, one schema for all, and the parts they are cut into."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from discriminant.errors import FileError, PartSchemaError
from discriminant.table.arrow_files import arrow_schema, blame_json
from discriminant.table.csv_files import CsvPlan
from discriminant.table.dialect import Kind
from discriminant.table.encoding import Encoding
from discriminant.table.file_parts import TEXTS, FilePart, Keys, arrow_parts, parquet_parts
from discriminant.table.files import Format, Identity, sniff
from discriminant.table.folders import Listed
from discriminant.table.learning import Wishes
from discriminant.table.opening import csv_kinds
from discriminant.table.text_parts import (
    CsvPart,
    JsonPart,
    Recut,
    first_fields,
    json_tables,
    line_ranges,
)

Types = Mapping[str, str]  # of columns: an Arrow type, or the kind of a CSV


@dataclass(frozen=True, slots=True)
class File:
    """One of the files."""

    format: Format
    identity: Identity
    keys: Keys
    types: Types
    whole: bool = False  # not to be cut
    long: bool = False  # has lines longer than a block


@dataclass(frozen=True, slots=True, eq=False)
class Filed:
    """All files, and what is wished of texts."""

    files: tuple[File, ...]
    said: tuple[str, ...]
    wishes: Wishes = field(default_factory=Wishes)
    fitted: Encoding | None = None
    fields: Any = None  # of all lines of JSON, where the first ones do not have them all

    @property
    def names(self) -> tuple[str, ...]:
        """Of all columns, those of folders last."""
        first = self.files[0]
        return (*first.types, *first.keys.names)

    @property
    def identities(self) -> tuple[Identity, ...]:
        """Of the files."""
        return tuple(file.identity for file in self.files)

    @property
    def counted(self) -> bool:
        """Whether the number of rows is known before they are read."""
        return self.files[0].format.kind in ("parquet", "arrow")

    def wishing(self, wishes: Wishes, fitted: Encoding | None) -> Filed:
        """With texts read as wished; columns of all files are then of one kind."""
        found = replace(self, wishes=wishes, fitted=fitted)
        if self.files[0].format.kind == "csv":
            kinds = found._kinds()
            for file in self.files[1:]:  # a cell of the first is named when it is read
                _check_kinds(file, self.files[0], kinds, wishes)
        return found

    def cut_again(self, found: Recut) -> Filed:
        """With a file cut another way."""
        if found.late:
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
            start += sum(part.share for part in new) if self.counted else 0
            parts += new
        return tuple(parts)

    def _csv(self, file: File, kinds: Mapping[str, Kind]) -> list[CsvPart]:
        texts = self.wishes.missing_texts
        gone: Any = {} if texts is None else {"missing": texts, "empty": texts}
        target = self.wishes.target if self.fitted is None else self.fitted.target
        plan = CsvPlan(file.format, kinds, target=target, **gone)
        return [
            CsvPart(plan, file.identity, span, keys=file.keys, long=file.long)
            for span in _spans(file)
        ]

    def _kinds(self) -> dict[str, Kind]:
        """Of every column, from the first file in which it has a value."""
        found: dict[str, Kind] = {}
        for file in self.files:
            for name, kind in file.types.items():
                if found.get(name, "empty") == "empty":
                    found[name] = kind  # type: ignore[assignment]
        wishes = replace(self.wishes, columns=None, exclude=())
        return csv_kinds(found, wishes, self.fitted)

    def _json_schema(self) -> Any:
        """Numbers may have decimals in later lines; labels are taken as they are."""
        import pyarrow as pa

        file = self.files[0]
        found = self.fields or first_fields(file.format, next(iter(_spans(file))))
        return pa.schema(
            [
                pa.field(one.name, pa.float64())
                if pa.types.is_integer(one.type) and one.name != self.wishes.target
                else one
                for one in found
            ]
        )

    def _with_all_fields(self) -> Filed:
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
                        blame_json(file.format)
                        path = file.format.path
                        raise FileError.damaged(path, "the text", str(fault)) from None
        assert found is not None
        types = {one.name: str(one.type) for one in found}
        return replace(
            self, fields=found, files=tuple(replace(file, types=types) for file in self.files)
        )


def filed(found: Listed, style: Mapping[str, str | None]) -> Filed:
    """What each file is; empty ones among several are left out."""
    files, empty = [], []
    for path, keys in zip(found.paths, found.keys, strict=True):
        try:
            format = sniff(path, **style)
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
    said = [files[0].format.said]
    if len(files) > 1:
        said.append(f"{len(files)} files are read as one table.")
    if empty:
        said.append(f"{len(empty)} empty file(s) are left out: {', '.join(empty[:3])}.")
    if found.again:
        names = ", ".join(found.again[:3])
        said.append(f"{len(found.again)} file(s) are named more than once and read once: {names}.")
    if found.aside:
        names = ", ".join(found.aside[:3])
        said.append(f"{len(found.aside)} file(s) are left out, by their names no tables: {names}.")
    return Filed(tuple(files), tuple(said))


def _alike(files: list[File]) -> list[File]:
    """With a column of texts read the same way from all files of CSV."""
    varied = {
        name
        for file in files
        if file.format.dialect is not None
        for name, many in zip(file.format.dialect.names, file.format.dialect.varied, strict=True)
        if many
    }
    return [replace(file, format=_with_varied(file.format, varied)) for file in files]


def _with_varied(format: Format, varied: set[str]) -> Format:
    if format.dialect is None:
        return format
    many = tuple(name in varied for name in format.dialect.names)
    return replace(format, dialect=replace(format.dialect, varied=many))


def _is_empty(path: str) -> bool:
    try:
        return Identity.of(path).size == 0
    except OSError:
        return False


def _file(format: Format, keys: Keys) -> File:
    identity = Identity.of(format.path)
    if format.kind == "csv":
        assert format.dialect is not None
        types: dict[str, str] = dict(zip(format.dialect.names, format.dialect.kinds, strict=True))
    elif format.kind == "jsonl":
        ranges = line_ranges(format, identity.size)
        schema = first_fields(format, ranges[0] if ranges else None)
        types = {one.name: str(one.type) for one in schema}
    else:
        types = {one.name: str(one.type) for one in arrow_schema(format)}
    others = tuple(key for key in keys.values if key[0] not in types)
    return File(format, identity, replace(keys, values=others), types)


def _check_same(file: File, first: File) -> None:
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


def _check_kinds(file: File, first: File, kinds: Mapping[str, Kind], wishes: Wishes) -> None:
    for name in wishes.wanted(list(file.types)):
        kind = file.types[name]
        if kinds[name] not in ("text", kind) and kind != "empty":
            raise PartSchemaError.of_type(
                file.format.path, name, kind, first.format.path, kinds[name]
            )


def _cut_again(file: File, found: Recut) -> File:
    if found.encoding is not None:
        return replace(file, format=file.format.recoded(found.encoding))
    if found.long:
        return replace(file, long=True)
    return replace(file, whole=True)


def _spans(file: File) -> list[tuple[int, int] | None]:
    ranges = None if file.whole else line_ranges(file.format, file.identity.size)
    return [None] if ranges is None else list(ranges)
