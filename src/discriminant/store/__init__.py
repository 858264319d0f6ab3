"""Storage of models and moments: save and load a model as one file of numbers and text.

    save(model, path)    a temporary file is written and renamed, so a crash loses nothing
    load(path)           the same model, bit by bit; damaged or modified files are rejected
    look(path)           contents of a file, without constructing the model

The format is safetensors with a manifest in JSON, described in docs/file_format.md. A file contains
no code, and loading a file imports no module named in the file: `store.kinds` lists what a file may
contain.
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

_DECODING_ERRORS = (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError)


def save(thing: Any, path: str | os.PathLike[str]) -> None:
    """Save a model, or moments, as one file.

    Parameters
    ----------
    thing : estimator or moments
        An estimator of this package, fitted or not, or the result of `discriminant.moments`. If an
        attribute cannot be stored, an error is raised that states where in the model it is.
    path : path-like
        File to write. An existing file is replaced atomically when the new one is complete.

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
        message = StateError.of_estimator if hasattr(thing, "fit") else StateError.of_part
        raise message("What is to be saved", type(thing).__name__)
    with lock_for_writing(Path(path)) as place:
        encoder = Encoder()
        encoder.value(thing, "")
        # the widest numbers come first, so that each array is aligned to the width of its numbers
        arrays = sorted(encoder.arrays.items(), key=lambda item: -item[1].itemsize)
        header, digest_at = build_header(kind, _package(), encoder.manifest(), arrays)
        write_file(place, header, digest_at, [values for _, values in arrays])


def load(
    path: str | os.PathLike[str], *, mmap: bool | None = None, max_bytes: int | None = None
) -> Any:
    """Load a model or moments from a file.

    Parameters
    ----------
    path : path-like
        File written by `save`. Damaged or modified files, and files of other formats, are rejected.
        No file can run code.
    mmap : bool, optional
        Whether to memory-map the arrays: parts of an array are read when they are used, and
        processes that load the same file share the memory. While the model is in use, the file must
        not be modified in place (`save` never modifies a file in place). The default is True for
        label trees, which may be larger than memory, otherwise False.
    max_bytes : int, optional
        Largest size of a file in bytes; larger files are rejected. Set a limit for files from
        untrusted sources.

    Returns
    -------
    estimator or moments
        The object that was saved, with bitwise equal numbers.
    """
    with open_regular(path) as file:
        header, first = _read_header(file, path, max_bytes)
        mapped = header.kind in MEMORY_MAPPED if mmap is None else mmap
        try:
            arrays = (map_arrays if mapped else read_arrays)(file, header, first, path)
        except StoredFileError:
            raise
        except ValueError as error:
            raise StoredFileError.invalid(path, "its arrays", str(error)) from None
    return _construct(header, arrays, path)


def look(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Describe a file: format version, package, kind, options, and the arrays with their shapes.

    This function is fast, because it does not verify the digest.
    """
    with open_regular(path) as file:
        header, _ = _read_header(file, path, None)
    objects = header.manifest.get("objects")
    last = objects[-1] if isinstance(objects, list) and objects else {}
    return {
        "version": header.version,
        "package": header.package,
        "kind": header.kind,
        "bytes": header.size,
        "sha256": header.sha256,
        "options": last.get("options", {}) if isinstance(last, dict) else {},
        "arrays": {entry.name: (str(entry.dtype), entry.shape) for entry in header.places},
    }


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise an error if `save` cannot write to a path. Call this function before a long fit."""
    with lock_for_writing(Path(path)):
        pass


def _read_header(file: Any, path: object, max_bytes: int | None) -> tuple[Header, bytes]:
    size = os.fstat(file.fileno()).st_size
    if max_bytes is not None and size > max_bytes:
        raise StoredFileError.too_large(path, size, max_bytes)
    header, first = read_header(file, path)
    if not is_kind(header.kind):
        kind = header.kind[:100]
        raise StoredFileError.unknown_kind(path, kind, header.version, header.package)
    return header, first


def _construct(header: Header, arrays: dict[str, Any], path: object) -> Any:
    decoder = Decoder(arrays)
    try:
        thing = decoder.decode(header.manifest)
    except UnknownKindError as error:
        raise StoredFileError.unknown_kind(path, error, header.version, header.package) from None
    except InvalidPartError as error:
        raise StoredFileError.invalid(path, error.part, error.why) from None
    except (*_DECODING_ERRORS, RecursionError, MemoryError) as error:
        raise StoredFileError.invalid(path, decoder.part, str(error)[:300]) from error
    if kind_of(thing) != header.kind:
        raise StoredFileError.invalid(path, "kind", f"it is not of kind {header.kind}")
    return thing


def _package() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("discriminant")
    except PackageNotFoundError:
        return "of no release"
