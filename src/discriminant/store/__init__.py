"""Save and load models and moments as one file of numbers and text, without code.

    save(model, path)    written to a temporary file and renamed: a crash loses nothing
    load(path)           the same model, to the last bit; damaged or modified files are rejected
    look(path)           contents of a file, without constructing it

The format is safetensors with a manifest in JSON: docs/file_format.md. Nothing in a file is run or
imported: `store.kinds` lists what a file may hold.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from discriminant.catalog import MEMORY_MAPPED
from discriminant.errors import StateError, StoredFileError
from discriminant.store.codec import Decoder, Encoder, InvalidPartError, UnknownKindError
from discriminant.store.container import (
    VERSION,
    Header,
    build_header,
    lock_for_writing,
    map_arrays,
    open_regular,
    read_arrays,
    read_header,
    write_file,
)
from discriminant.store.kinds import is_kind, kind_of

__all__ = ["VERSION", "check_writable", "load", "look", "save"]

_FAULTS = (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError)


def save(thing: Any, path: str | os.PathLike[str]) -> None:
    """Save a model, or moments, as one file.

    Parameters
    ----------
    thing
        An estimator of this package, fitted or not, with all it holds; or moments
        (`discriminant.moments`). What a file cannot hold is refused by its place in the model.
    path
        Where to; a file that is there is replaced in one step, once the new one is on the disk.

    Examples
    --------
    >>> import tempfile, discriminant as dd
    >>> model = dd.LDA().fit([[0.0], [1.0], [4.0], [5.0]], ["a", "a", "b", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.dd")
    ...     dd.load(f"{folder}/model.dd").predict([[0.4], [4.6]])
    array(['a', 'b'], dtype='<U1')
    """
    kind = kind_of(thing)
    if kind is None:
        raise StateError.of_part("What is to be saved", type(thing).__name__)
    with lock_for_writing(Path(path)) as place:
        encoder = Encoder()
        encoder.value(thing, "")
        # the widest numbers first, so that each array lies at a multiple of its own width
        arrays = sorted(encoder.arrays.items(), key=lambda item: -item[1].itemsize)
        header, digest_at = build_header(kind, _package(), encoder.manifest(), arrays)
        write_file(place, header, digest_at, [values for _, values in arrays])


def load(
    path: str | os.PathLike[str], *, mmap: bool | None = None, max_bytes: int | None = None
) -> Any:
    """Load a model or moments from a file.

    Parameters
    ----------
    path
        A file of discriminant. Any other, a damaged or a changed one is refused; none runs code.
    mmap
        Leave the arrays in the file: they are read when they are used, and processes that load the
        same file share them. The file must not be written in place meanwhile; `save` never does.
        None: so for label trees, which may be larger than the memory.
    max_bytes
        Refuse files that are larger; for files from strangers.
    """
    with open_regular(path) as file:
        head = _head(file, path, max_bytes)
        mapped = head[0].kind in MEMORY_MAPPED if mmap is None else mmap
        take = map_arrays if mapped else read_arrays
        try:
            arrays = take(file, head[0], head[1], path)
        except ValueError as fault:
            if isinstance(fault, StoredFileError):
                raise
            raise StoredFileError.invalid(path, "its arrays", str(fault)) from None
    return _made(head[0], arrays, path)


def look(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Describe a file: format version, package, kind, options, arrays and their shapes.

    The digest is not verified, so this is fast.
    """
    with open_regular(path) as file:
        head, _ = _head(file, path, None)
    objects = head.manifest.get("objects")
    last = objects[-1] if isinstance(objects, list) and objects else {}
    return {
        "version": head.version,
        "package": head.package,
        "kind": head.kind,
        "bytes": head.size,
        "sha256": head.sha256,
        "options": last.get("options", {}) if isinstance(last, dict) else {},
        "arrays": {place.name: (str(place.dtype), place.shape) for place in head.places},
    }


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise now if `save` could not write there: before a long fit, not after it."""
    with lock_for_writing(Path(path)):
        pass


def _head(file: Any, path: object, max_bytes: int | None) -> tuple[Header, bytes]:
    size = os.fstat(file.fileno()).st_size
    if max_bytes is not None and size > max_bytes:
        raise StoredFileError.too_large(path, size, max_bytes)
    head, first = read_header(file, path)
    if not is_kind(head.kind):
        raise StoredFileError.unknown_kind(path, head.kind[:100], head.version, head.package)
    return head, first


def _made(head: Header, arrays: dict[str, Any], path: object) -> Any:
    decoder = Decoder(arrays)
    try:
        thing = decoder.decode(head.manifest)
    except UnknownKindError as fault:
        raise StoredFileError.unknown_kind(path, fault, head.version, head.package) from None
    except InvalidPartError as fault:
        raise StoredFileError.invalid(path, fault.part, fault.why) from None
    except (*_FAULTS, RecursionError, MemoryError) as fault:
        raise StoredFileError.invalid(path, decoder.part, str(fault)[:300]) from fault
    if kind_of(thing) != head.kind:
        raise StoredFileError.invalid(path, "kind", f"it is no {head.kind}")
    return thing


def _package() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("discriminant")
    except PackageNotFoundError:
        return "of no release"
