"""A folder of files that is believed if every one of them is what was written.

    seal      force all files to the disk, and keep beside them what they are
    opened    what was kept, once all files have been found to be the same

What is kept, in `kinds.json`: the size and the checksum (CRC-32) of each file, and a checksum of
itself. Files are read some megabytes at a time, at about the pace of the disk.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from discriminant.errors import CheckpointError
from discriminant.table.replacing import force_folder

NAME = "kinds.json"
_PIECE = 1 << 22


def seal(folder: Path, kinds: Mapping[str, str]) -> None:
    """Keep what the files of a folder are, which has no other; all is on the disk afterwards."""
    files = {path.name: [path.stat().st_size, _checksum(path)] for path in folder.iterdir()}
    told: dict[str, Any] = {"kinds": dict(kinds), "files": files}
    (folder / NAME).write_text(json.dumps(told | {"checksum": _of_text(told)}))
    for path in folder.iterdir():
        with path.open("rb+") as file:
            os.fsync(file.fileno())
    force_folder(folder)


def opened(folder: Path) -> dict[str, str]:
    """The kinds that were kept with a folder, all files of which are whole."""
    try:
        told = json.loads((folder / NAME).read_text())
        if told.pop("checksum") != _of_text(told):
            raise ValueError(f"{NAME} is not what was written")
        for name, (size, checksum) in told["files"].items():
            _check(folder / name, size, checksum)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as fault:
        raise CheckpointError.damaged(os.fspath(folder), _said(fault)) from None
    return dict(told["kinds"])


def _check(path: Path, size: int, checksum: int) -> None:
    found = path.stat().st_size
    if found != size:
        raise ValueError(f"{path.name} has {found} bytes of {size}")
    if _checksum(path) != checksum:
        raise ValueError(f"{path.name} is not what was written")


def _checksum(path: Path) -> int:
    found = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            found = zlib.crc32(piece, found)
    return found


def _of_text(told: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(told, sort_keys=True).encode())


def _said(fault: Exception) -> str:
    if isinstance(fault, FileNotFoundError):
        return f"{Path(fault.filename).name} is not there"
    if isinstance(fault, json.JSONDecodeError | UnicodeDecodeError):
        return f"{NAME} cannot be read"
    if isinstance(fault, KeyError | TypeError | AttributeError | RecursionError):
        return f"{NAME} does not say what the files should be"
    return str(fault)
