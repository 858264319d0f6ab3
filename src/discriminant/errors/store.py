"""Files that cannot be loaded, states that cannot be saved, places that cannot be written to."""

from __future__ import annotations

import errno
import os

from discriminant.errors.base import DiscriminantError, InputError


class StoredFileError(InputError):
    """A file is not one of ours, or is damaged, or says what cannot be."""

    @classmethod
    def absent(cls, path: object) -> StoredFileError:
        return cls(f"There is no file {path}. Check the name and the folder.")

    @classmethod
    def not_a_file(cls, path: object, kind: str) -> StoredFileError:
        return cls(
            f"{path} is a {kind}, and only a regular file can be loaded. Pass the file of a model "
            "or of moments."
        )

    @classmethod
    def unreadable(cls, path: object, why: str) -> StoredFileError:
        return cls(f"{path} cannot be read: {why}. Check who may read it.")

    @classmethod
    def damaged(cls, path: object, byte: int, why: str) -> StoredFileError:
        return cls(
            f"The file {path} is damaged at byte {byte:,}: {why}. Nothing was loaded; take a copy "
            "or save it again."
        )

    @classmethod
    def wrong_digest(cls, path: object, stated: str, found: str) -> StoredFileError:
        return cls(
            f"The content of {path} was changed after it was saved: its SHA-256 should be "
            f"{stated[:16]}... and is {found[:16]}... Nothing was loaded; take a copy or save it "
            "again."
        )

    @classmethod
    def future(cls, path: object, found: int, most: int, package: str) -> StoredFileError:
        return cls(
            f"{path} has format version {found}, written by discriminant {package}; this one "
            f"reads versions 1 to {most}. Upgrade: pip install --upgrade discriminant."
        )

    @classmethod
    def foreign(cls, path: object, kind: str) -> StoredFileError:
        return cls(
            f"{path} is not a file of discriminant but {kind}. It was not opened. Files to load "
            "are made by model.save(path) or discriminant.save(thing, path)."
        )

    @classmethod
    def runs_code(cls, path: object, kind: str) -> StoredFileError:
        return cls(
            f"{path} is {kind}, which can run any code when it is opened. It was not opened. If "
            "you trust whoever made it, open it with the library that wrote it, then "
            "model.save(path) makes a file that holds only numbers and text."
        )

    @classmethod
    def unknown_kind(
        cls, path: object, kind: object, version: int, package: str
    ) -> StoredFileError:
        return cls(
            f"{path} holds a '{kind}' (format version {version}, written by discriminant "
            f"{package}), which this version does not know. Upgrade discriminant, or ask whoever "
            "made the file."
        )

    @classmethod
    def unsound(cls, path: object, part: str, why: str) -> StoredFileError:
        return cls(
            f"{path} says what cannot be: {part}: {why}. Nothing was loaded; get the file again "
            "from whoever made it, or save the model again."
        )

    @classmethod
    def too_large(cls, path: object, size: int, most: int) -> StoredFileError:
        return cls(
            f"{path} has {size:,} bytes, and at most {most:,} are to be loaded. Pass a larger "
            "max_bytes, or mmap=True to leave the arrays on disk."
        )


class StateError(InputError):
    """Something of a model cannot be put into a file."""

    @classmethod
    def of_part(cls, part: str, kind: str) -> StateError:
        return cls(
            f"{part} is a {kind}, and a file holds only numbers, text, arrays and the parts of "
            "this package. Set it to one of those (a list or an array for a frame, an integer for "
            "a generator, None for a function), fit again and save."
        )

    @classmethod
    def of_estimator(cls, part: str, kind: str) -> StateError:
        return cls(
            f"{part} is a {kind}, which is not of this package, so that no safe file can hold it. "
            "Fit one of ours in its place (LDA, Logistic, SVM, ...), or keep the whole with "
            "joblib.dump, which must only be loaded by who trusts the file."
        )

    @classmethod
    def of_dtype(cls, part: str, dtype: object) -> StateError:
        return cls(
            f"{part} is an array of {dtype}, and a file holds booleans, integers, floats up to "
            "64 bits, dates and text. Convert it (for instance to float64), fit again and save."
        )

    @classmethod
    def unsound(cls, part: str, why: str) -> StateError:
        return cls(f"{part} is not fit to be saved: {why}.")

    @classmethod
    def too_long(cls, size: int, most: int) -> StateError:
        return cls(
            f"The names, options and structure take {size:,} bytes, and a file of this size holds "
            f"{most:,}. Shorten the names of the columns, or save parts of the model apart."
        )


_AS_IT_WAS = "A file that was there before is as it was."


class WriteError(DiscriminantError, OSError):
    """A file cannot be written; what was there before is as it was."""

    @classmethod
    def _of(cls, number: int, text: str) -> WriteError:
        made = cls(text)
        made.errno = number
        return made

    @classmethod
    def no_room(cls, path: object, needed: int, free: int, cause: OSError) -> WriteError:
        number = cause.errno or errno.ENOSPC
        return cls._of(
            number,
            f"No room for {path}: it needs {needed:,} bytes, and {free:,} are free "
            f"({os.strerror(number)}). {_AS_IT_WAS} Make room, or choose another folder.",
        )

    @classmethod
    def no_room_after(cls, path: object, written: int, free: int, cause: OSError) -> WriteError:
        number = cause.errno or errno.ENOSPC
        return cls._of(
            number,
            f"No room for {path}: it needs more than the {written:,} bytes that could be written, "
            f"and {free:,} are free ({os.strerror(number)}). {_AS_IT_WAS} Make room, or choose "
            "another folder.",
        )

    @classmethod
    def locked(cls, path: object, pid: str) -> WriteError:
        return cls._of(
            errno.EAGAIN,
            f"{path} is locked by pid {pid or 'unknown'}, which is writing it now. Wait for it to "
            "end, or save under another name.",
        )

    @classmethod
    def closed_folder(cls, path: object, folder: object, cause: OSError) -> WriteError:
        number = cause.errno or errno.EACCES
        return cls._of(
            number,
            f"{path} cannot be written: folder {folder}: {os.strerror(number)}. Choose another "
            "folder, or change its permissions.",
        )

    @classmethod
    def not_a_file(cls, path: object, kind: str) -> WriteError:
        return cls._of(
            errno.EEXIST, f"{path} is a {kind} and is not overwritten. Choose another name."
        )

    @classmethod
    def not_a_name(cls, path: object, why: object) -> WriteError:
        return cls._of(
            errno.EINVAL, f"{str(path)!r} cannot be written: {why}. Choose another name."
        )

    @classmethod
    def failed(cls, path: object, cause: OSError) -> WriteError:
        number = cause.errno or errno.EIO
        return cls._of(
            number,
            f"{path} could not be written: {os.strerror(number)}. {_AS_IT_WAS} Choose another "
            "folder, or see what is wrong with this one.",
        )
