"""Which files a path, a glob, a folder or a list of them names, and what their folders say.

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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from discriminant.errors import FileError, check_file_name
from discriminant.table.file_parts import Keys

_NUMBER = re.compile("-?[0-9]{1,18}")  # that int64 holds
_ABSENT = "__HIVE_DEFAULT_PARTITION__"
_ENDINGS = (
    *(".csv", ".tsv", ".tab", ".txt", ".dat", ".json", ".jsonl", ".ndjson"),
    *(".parquet", ".parq", ".pq", ".arrow", ".arrows", ".feather", ".ipc"),
)


@dataclass(frozen=True, slots=True)
class Listed:
    """Files in their order, and the keys of each."""

    name: str
    paths: tuple[str, ...]  # each file once
    keys: tuple[Keys, ...]
    again: tuple[str, ...] = ()  # files of a list that were named before
    aside: tuple[str, ...] = ()  # files of a folder that are called no table, such as README.md


def listed(source: Any) -> Listed:
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
    return Listed(name, tuple(paths), _keys(paths, folder), tuple(again), tuple(aside))


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


def _keys(paths: Sequence[str], folder: str) -> tuple[Keys, ...]:
    top = os.path.abspath(folder)
    found = [_pairs(Path(os.path.relpath(_folder(path), top)).parts) for path in paths]
    whole = frozenset(name for one in found for name in one if _whole(name, found))
    return tuple(
        Keys(tuple((name, _value(text, name in whole)) for name, text in one.items()), whole)
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
