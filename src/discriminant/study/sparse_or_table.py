"""Sparse rows or a table: what a file is by its first line, and who may read it.

    XMC text    three whole numbers                  3 1836 159
    svmlight    labels, then feature:value           12,47 1:0.5 17:1.25
    labels      alone: a row without features, or a CSV of numbers
    None        none of these: a table, as far as can be told

A wrong guess is refused before rows are read, with the way to what was meant.
"""

from __future__ import annotations

import os
import re
from typing import Any

from discriminant.errors import CommandError, SparseFileError
from discriminant.table.files import is_stored
from discriminant.table.opening import is_path
from discriminant.table.sparse_pieces import pieces_of

_LABELS = re.compile(rb"[-+]?[0-9.]+(,[-+]?[0-9.]+)*")
_PAIR = re.compile(rb"(qid|[0-9]+):\S*")


def refuse_table(path: Any) -> None:
    """Say of what is no file of sparse rows how it is read as a table."""
    if os.path.isdir(path):
        raise SparseFileError.of_folder(os.fspath(path))
    if "://" in os.fspath(path) or begins_as(path) is None:
        raise SparseFileError.not_sparse(os.fspath(path))


def refuse_sparse(source: Any) -> None:
    """Say of a file of sparse rows that it is no table."""
    if isinstance(source, list | tuple) and len(source) == 1:
        source = source[0]
    if is_path(source) and os.path.isfile(source) and not is_stored(source):
        kind = begins_as(source)
        if kind in ("XMC text", "svmlight"):
            raise CommandError.sparse_rows(source, kind)


def begins_as(path: Any) -> str | None:
    """What the first line of a file that holds something is of.

    A line of which any word is feature:value is of svmlight, so that its reader names what is
    wrong with the others; but not one that begins as neither labels nor features do.
    """
    words = _first_words(path)
    if len(words) == 3 and all(word.isdigit() for word in words):
        return "XMC text"
    if not words or not (_LABELS.fullmatch(words[0]) or _PAIR.fullmatch(words[0])):
        return None if words else "labels"
    if any(_PAIR.fullmatch(word) for word in words):
        return "svmlight"
    return "labels" if len(words) == 1 else None


def label_columns(k: int, prefix: str = "") -> list[str]:
    """Names of the columns of k labels and their scores."""
    return [f"{prefix}{name}_{j}" for j in range(1, k + 1) for name in ("label", "score")]


def _first_words(path: Any) -> list[bytes]:
    """Of the first line that holds some; none of a file without."""
    for piece in pieces_of(path):
        for line in piece.split(b"\n", 1000):
            words = line.partition(b"#")[0].split()
            if words:
                return words
    return []
