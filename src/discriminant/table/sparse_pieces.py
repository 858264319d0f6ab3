"""Whole lines of a text file, plain or packed with gzip or xz, some megabytes at a time.

What a file is packed with is found from its first bytes; the guards against a few bytes that unpack
to a disk full are those of `table.stream`, for xz with a larger ratio: it packs better.
"""

from __future__ import annotations

import codecs
import gzip
import lzma
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, cast

from discriminant.errors import FileError
from discriminant.table.files import regular
from discriminant.table.replacing import replacing
from discriminant.table.stream import MAX_BYTES, Stream

Path = str | os.PathLike[str]

PIECE = 1 << 22  # bytes of text parsed at once
MAX_ROW = 1 << 28  # bytes of a line: a row of some ten million features
_RATIO = 1000
_TRUSTED = 1 << 24


def pieces_of(path: Path, *, size: int = PIECE) -> Iterator[bytes]:
    """Bytes of whole lines, the last made to end with a line end; nothing of an empty file.

    The mark with which some writers begin UTF-8 is skipped.
    """
    name, rest, lines, mark = regular(path), b"", 1, codecs.BOM_UTF8
    if not os.path.getsize(name):  # also files of the kernel, whose content may never end
        return
    for piece in _unpacked(name, size):
        piece, mark = piece.removeprefix(mark), b""
        head, end, tail = piece.rpartition(b"\n")
        if not end:
            rest += tail
            if len(rest) > MAX_ROW:
                raise FileError.long_line(name, lines, MAX_ROW)
            continue
        lines += piece.count(b"\n")
        yield rest + head + end
        rest = tail
    if rest:
        yield rest + b"\n"


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """A file to be filled, packed as its name ends: .gz, .xz or anything else for plain text."""
    name = os.fspath(path)
    with replacing(name) as file:
        if name.endswith(".gz"):
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                yield cast("BinaryIO", packed)
        elif name.endswith(".xz"):
            with lzma.LZMAFile(file, "wb") as tight:
                yield cast("BinaryIO", tight)
        else:
            yield file


def _unpacked(name: str, size: int) -> Iterator[bytes]:
    try:
        with open(name, "rb") as file:
            start = file.read(6)
    except OSError as fault:
        raise FileError.not_allowed(name, fault.strerror or str(fault)) from None
    if start == b"\xfd7zXZ\0":
        yield from _of_xz(name, size)
        return
    with Stream(name, gzip=start[:2] == b"\x1f\x8b", encoding=None) as text:
        while piece := text.read(size):
            yield piece


def _of_xz(name: str, size: int) -> Iterator[bytes]:
    given = 0
    with open(name, "rb") as file, lzma.LZMAFile(file) as text:
        while piece := _next(text, name, size, given):
            given += len(piece)
            if given > MAX_BYTES:
                raise FileError.too_large(name, MAX_BYTES)
            if given > _TRUSTED and given > _RATIO * file.tell():
                raise FileError.bomb(name, file.tell(), given, _RATIO)
            yield piece


def _next(text: Any, name: str, size: int, given: int) -> bytes:
    try:
        return bytes(text.read(size))
    except EOFError:
        raise FileError.cut_off(name, "its xz stream has no end") from None
    except lzma.LZMAError as fault:
        raise FileError.damaged(name, f"xz after {given} bytes of text", str(fault)) from None
