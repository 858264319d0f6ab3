"""The text of a file as UTF-8 bytes, checked as it goes by.

    file -> unpacked (gzip, with guards) -> UTF-8 (from UTF-16, latin-1 or what was named)

Checks cost next to nothing beside parsing: NUL bytes and bytes that are not UTF-8 are searched in
each piece as a whole. A file of which the first part was UTF-8 and a later byte is not has another
encoding than was thought: `Recoded` says which, and the reader starts again.
"""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from dataclasses import dataclass
from typing import Any, BinaryIO, Self

from discriminant.errors import FileError
from discriminant.table.files.csv_dialect import MAX_LINE

MAX_BYTES = 1 << 36  # of text, unpacked: 64 GB
_RATIO = 100  # of unpacked bytes to packed ones
_TRUSTED = 1 << 22  # unpacked bytes up to which the ratio does not matter
_PIECE = 1 << 20
_TAIL = 64  # bytes looked at again with the next piece
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_PYTHONS_OWN = ("idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape")


@dataclass(frozen=True, slots=True)
class TextEncoding:
    """How letters became bytes."""

    name: str = "utf-8"
    bom_length: int = 0  # bytes of the byte order mark, or of several
    bad_byte: tuple[int, int] | None = None  # byte and line that are not valid UTF-8, if guessed
    by_user: bool = False  # named by the user, so that nothing is guessed

    @property
    def description(self) -> str:
        """The encoding in a few words."""
        marked = " with a byte order mark" if self.bom_length else ""
        if self.bad_byte is None:
            return f"{self.name.upper()}{marked}"
        byte, line = self.bad_byte
        return f"{self.name} by guess, since byte {byte} (line {line}) is not valid UTF-8"


class EncodingMismatch(Exception):  # noqa: N818 -- not a fault: the reader starts again
    """The file has another encoding than its first part showed."""

    def __init__(self, encoding: TextEncoding) -> None:
        super().__init__(encoding.description)
        self.encoding = encoding


class TextStream(io.RawIOBase):
    """A file as UTF-8 bytes; with encoding None as the bytes that it holds."""

    def __init__(
        self,
        path: str,
        *,
        gzip: bool = False,
        encoding: TextEncoding | None,
        max_bytes: int = MAX_BYTES,
        quote: str = '"',
        delimiter: str | None = None,
        span: tuple[int, int] | None = None,
    ) -> None:
        self._path = path
        self._file: BinaryIO = open(path, "rb", buffering=0)  # noqa: SIM115 -- closed by close
        self._source: Any = _unpacked(self._file) if gzip else self._file
        self._packed = gzip
        self._encoding = encoding
        self._decoder = None if encoding is None else _decoder(encoding.name)
        self._given = 0 if span is None else span[0]  # bytes unpacked so far
        self._end = None if span is None else span[1]  # where to stop, of some lines of a file
        if span is not None:
            self._file.seek(span[0])
        self._most = max_bytes
        self._quote = quote.encode()
        self.quotes = 0  # quotes seen: an odd number is one that was not closed
        self.text_after_quote = (
            False  # whether text may follow a closing quote: see `table.csv_faults`
        )
        self._after_quote = None if delimiter is None else _after_quote(quote, delimiter)
        self._tail = b"\n"  # the last bytes of the piece before
        self._ended = False
        self._rest = b""  # read and not yet given: letters may take more bytes than they took
        if encoding is not None and encoding.bom_length and not self._given:
            self._raw(encoding.bom_length)

    def readable(self) -> bool:
        """Yes."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes, at most so many; none at the end."""
        if size < 0:
            return b"".join(iter(lambda: self.read(_PIECE), b""))
        while not self._rest and not self._ended:
            self._rest = self._next(max(size, 16))
        found, self._rest = self._rest[:size], self._rest[size:]
        return found

    def readinto(self, buffer: Any) -> int:
        """The next bytes into a buffer; how many there were."""
        found = self.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def head(self, size: int, lines: int = 6) -> str:
        """The first `size` bytes of text; more if they hold fewer than so many lines."""
        pieces: list[bytes] = []
        length = ends = 0
        while (length < size or (ends < lines and length < MAX_LINE) or not ends) and (
            piece := self.read(_PIECE)
        ):
            pieces.append(piece)
            length, ends = length + len(piece), ends + _lines_in(piece)
            if length > MAX_LINE and not ends:
                raise FileError.long_line(self._path, 1, MAX_LINE)
        return b"".join(pieces).decode("utf-8", errors="replace")

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()

    def __enter__(self) -> Self:
        return self

    # --- inside ---------------------------------------------------------------------------------

    def _next(self, size: int) -> bytes:
        piece = self._raw(size)
        self._ended = not piece
        if self._decoder is None:
            return piece
        start = self._given - len(piece)
        try:
            text = self._checked(piece, start)
        except UnicodeDecodeError as fault:
            held = len(fault.object) - len(piece)  # bytes kept back from the piece before
            self._undecodable(start - held + fault.start)
            raise AssertionError from fault  # not reached
        except UnicodeError:  # of a text as a whole, such as UTF-16 without its mark
            line, name = self._line_of(start), self._encoding_name
            raise FileError.undecodable(self._path, name, start, line) from None
        if b"\0" in text:
            self._refuse_nul()
        if self._quote in text:
            self.quotes += text.count(self._quote)
            if self._after_quote is not None and not self.text_after_quote:
                self.text_after_quote = self._after_quote.search(self._tail + text) is not None
        self._tail = text[-_TAIL:]
        return text

    def _checked(self, piece: bytes, start: int) -> bytes:
        """The piece as UTF-8."""
        assert self._encoding is not None and self._decoder is not None
        if self._encoding.name == "utf-8":
            if not (piece.isascii() and self._decoder.getstate()[0] == b""):
                self._decoder.decode(piece, final=self._ended)
            return piece
        return str(self._decoder.decode(piece, final=self._ended)).encode("utf-8")

    def _raw(self, size: int) -> bytes:
        if self._end is not None:
            size = min(size, self._end - self._given)
        try:
            piece: bytes = self._source.read(size) or b""
        except EOFError:
            raise FileError.cut_off(self._path, "its gzip stream has no end") from None
        except (gzip.BadGzipFile, zlib.error) as fault:
            where = f"gzip after {self._given} bytes of text"
            raise FileError.damaged(self._path, where, str(fault)) from None
        self._given += len(piece)
        if self._given > self._most:
            raise FileError.too_large(self._path, self._most)
        if self._packed and self._given > _TRUSTED:
            packed = self._file.tell()
            if self._given > _RATIO * packed:
                raise FileError.bomb(self._path, packed, self._given, _RATIO)
        return piece

    @property
    def _encoding_name(self) -> str:
        return "" if self._encoding is None else self._encoding.name.upper()

    def _undecodable(self, byte: int) -> None:
        assert self._encoding is not None
        line = self._line_of(byte)
        if self._encoding.name != "utf-8" or self._encoding.bom_length or self._encoding.by_user:
            raise FileError.undecodable(self._path, self._encoding_name, byte, line)
        with self._again(None) as raw:
            rest = raw.read(byte) and raw.read(_PIECE)
        raise EncodingMismatch(TextEncoding(_single_byte(rest), 0, (byte, line)))

    def _refuse_nul(self) -> None:
        assert self._encoding is not None
        before, lines = 0, 1
        with self._again(self._encoding) as text:
            text._decoder = _decoder(self._encoding.name)
            while piece := text._plain(_PIECE):
                place = piece.find(b"\0")
                if place >= 0:
                    line = lines + _lines_in(piece[:place])
                    raise FileError.of_nul(self._path, line, before + place)
                before, lines = before + len(piece), lines + _lines_in(piece)

    def _plain(self, size: int) -> bytes:
        """The next bytes of text, unchecked."""
        assert self._decoder is not None
        piece = self._raw(size)
        if self._encoding is not None and self._encoding.name == "utf-8":
            return piece
        return str(self._decoder.decode(piece, final=not piece)).encode("utf-8")

    def _line_of(self, byte: int) -> int:
        """The line, counted from 1, that a byte of the unpacked file is in."""
        line, left = 1, byte
        with self._again(None) as raw:
            while left > 0 and (piece := raw.read(min(left, _PIECE))):
                line, left = line + _lines_in(piece), left - len(piece)
        return line

    def _again(self, encoding: TextEncoding | None) -> TextStream:
        return TextStream(self._path, gzip=self._packed, encoding=encoding, max_bytes=self._most)


def _after_quote(quote: str, delimiter: str) -> re.Pattern[bytes]:
    """Finds a run of quotes with text after it that may not be the opening of a field.

    An opening run follows a delimiter or a line end and is odd; a run within a quoted field is
    even. The other runs may close a field, so that no text may follow them.
    """
    q, ends = re.escape(quote.encode()), re.escape(delimiter.encode()) + rb"\r\n"
    inside = rb"(?<=[^%b%b]%b)(?:%b%b)*" % (ends, q, q, q, q)
    empty = rb"(?<=[%b]%b)%b(?:%b%b)*" % (ends, q, q, q, q)
    return re.compile(rb"%b(?:%b|%b)(?=[^%b%b \t])" % (q, inside, empty, ends, q))


def detect_encoding(path: str, start: bytes, named: str | None) -> TextEncoding:
    """The encoding of a text from its first bytes, if it is not named."""
    for mark, name in _MARKS:
        if start.startswith(mark) and named in (None, name, "utf-8", "utf-16", "utf-8-sig"):
            length = len(mark)
            while start.startswith(mark, length):  # joined files may begin with several
                length += len(mark)
            return TextEncoding(name, length)
    if named is not None:
        return TextEncoding(_known(named), by_user=True)
    zeros = [start[k : 1 << 12 : 2].count(0) for k in (0, 1)]
    half = max(len(start[: 1 << 12]) // 2, 1)
    if zeros[1] > 0.4 * half and zeros[0] < 0.1 * half:
        return TextEncoding("utf-16-le")
    if zeros[0] > 0.4 * half and zeros[1] < 0.1 * half:
        return TextEncoding("utf-16-be")
    try:
        _decoder("utf-8").decode(start)
    except UnicodeDecodeError as fault:
        line = _lines_in(start[: fault.start]) + 1
        return TextEncoding(_single_byte(start), 0, (fault.start, line))
    return TextEncoding()


def _known(named: str) -> str:
    """The name of an encoding that files are in; Python knows more, of bytes and of its own."""
    try:
        found = codecs.lookup(named)
        "".encode(found.name)  # refused by those that make bytes of bytes, such as base64
        if found.name not in _PYTHONS_OWN:
            return found.name
    except (LookupError, ValueError):  # no such name, or one with a NUL
        pass
    from discriminant.errors import OptionError

    allowed = "the name of an encoding of texts, such as 'utf-8' or 'latin-1'"
    raise OptionError.of("encoding", named, allowed)


def _single_byte(some: bytes) -> str:
    """Windows's letters have bytes that latin-1 gives to control characters, which texts lack."""
    high = {byte for byte in some if 0x80 <= byte < 0xA0}
    return "cp1252" if high and not high & {0x81, 0x8D, 0x8F, 0x90, 0x9D} else "latin-1"


def _lines_in(piece: bytes) -> int:
    return piece.count(b"\n") or piece.count(b"\r")


def _decoder(name: str) -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder(name)()


def _unpacked(file: BinaryIO) -> Any:
    return gzip.GzipFile(fileobj=file, mode="rb")
