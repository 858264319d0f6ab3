"""Decoding of text files: decompression and conversion to UTF-8, with checks while reading.

    file -> decompressed (gzip, size limited) -> UTF-8 (from UTF-16, latin-1 or a named encoding)

The checks take little time compared with parsing: each piece is searched as a whole for NUL bytes
and for bytes that are not UTF-8. If the beginning of a file is UTF-8 but a later byte is not, the
file has another encoding. `EncodingMismatch` then reports this encoding, and the caller starts
again.
"""

from __future__ import annotations

import codecs
import io
import re
import zlib
from dataclasses import dataclass
from gzip import BadGzipFile, GzipFile
from typing import Any, BinaryIO, NoReturn, Self

from discriminant.errors import FileError, OptionError
from discriminant.table.files.csv_dialect import MAX_LINE

MAX_BYTES = 1 << 36  # largest size of decompressed text: 64 GB
_MAX_RATIO = 100  # largest ratio of decompressed to compressed bytes
_TRUSTED = 1 << 22  # decompressed bytes up to which any ratio is accepted
_PIECE = 1 << 20
_TAIL = 64  # bytes at the end of a piece that are searched again with the next piece
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_INTERNAL = ("idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape")


@dataclass(frozen=True, slots=True)
class TextEncoding:
    """Character encoding of a text file."""

    name: str = "utf-8"
    bom_length: int = 0  # number of bytes of all byte order marks
    bad_byte: tuple[int, int] | None = None  # position and line of the first byte that is not UTF-8
    by_user: bool = False  # stated by the user, so that no other encoding is tried

    @property
    def description(self) -> str:
        """Description of the encoding in a few words."""
        marked = " with a byte order mark" if self.bom_length else ""
        if self.bad_byte is None:
            return f"{self.name.upper()}{marked}"
        byte, line = self.bad_byte
        return f"{self.name} by guess, since byte {byte} (line {line}) is not valid UTF-8"


class EncodingMismatch(Exception):  # noqa: N818 -- not an error: the caller starts again
    """Raised if a file is not in the encoding that was detected from its beginning."""

    def __init__(self, encoding: TextEncoding) -> None:
        super().__init__(encoding.description)
        self.encoding = encoding


class TextStream(io.RawIOBase):
    """Stream of the text of a file as UTF-8 bytes, checked while it is read.

    Parameters
    ----------
    path : str
        Path of the file.
    gzip : bool, default=False
        Whether the file is compressed.
    encoding : TextEncoding or None
        Encoding of the text. With None, bytes are returned unchanged.
    max_bytes : int, default=MAX_BYTES
        Raise FileError beyond this size.
    quote, delimiter : str, optional
        Quote and delimiter of a CSV. Quotes are counted. If the delimiter is given, text after a
        closing quote is also detected.
    span : tuple of int, optional
        First byte and end of the range to read.
    """

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
        self._compressed = gzip
        self._source: Any = GzipFile(fileobj=self._file, mode="rb") if gzip else self._file
        self._encoding = encoding
        self._decoder = None if encoding is None else _decoder(encoding.name)
        self._position = 0 if span is None else span[0]  # number of decompressed bytes read
        self._end = None if span is None else span[1]
        if span is not None:
            self._file.seek(span[0])
        self._max_bytes = max_bytes
        self._quote = quote.encode()
        self.quotes = 0  # number of quotes; if it is odd, a quote is not closed
        self.text_after_quote = False  # text may follow a closing quote; see `csv.check_quotes`
        self._after_quote = None if delimiter is None else _after_quote(quote, delimiter)
        self._tail = b"\n"  # last bytes of the previous piece
        self._ended = False
        self._rest = b""  # decoded text that is not returned yet, because UTF-8 may need more bytes
        if encoding is not None and encoding.bom_length and not self._position:
            self._read_raw(encoding.bom_length)

    def readable(self) -> bool:
        """Return True: the stream is readable."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return at most `size` bytes, or all remaining bytes if `size` is negative.

        Return empty bytes at the end of the file.
        """
        if size < 0:
            return b"".join(iter(lambda: self.read(_PIECE), b""))
        while not self._rest and not self._ended:
            self._rest = self._next_piece(max(size, 16))
        text, self._rest = self._rest[:size], self._rest[size:]
        return text

    def readinto(self, buffer: Any) -> int:
        """Read bytes into a buffer and return their number."""
        text = self.read(len(buffer))
        buffer[: len(text)] = text
        return len(text)

    def head(self, size: int, lines: int = 6) -> str:
        """Return about the first `size` bytes of text.

        Return more if these bytes have fewer than `lines` lines.
        """
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

    def _next_piece(self, size: int) -> bytes:
        piece = self._read_raw(size)
        self._ended = not piece
        if self._decoder is None:
            return piece
        start = self._position - len(piece)
        try:
            text = self._to_utf8(piece)
        except UnicodeDecodeError as fault:
            pending = len(fault.object) - len(piece)  # bytes that the decoder had kept from before
            self._raise_undecodable(start - pending + fault.start)
        except UnicodeError:  # concerns the whole text: UTF-16 without its mark
            line, name = self._line_of(start), self._encoding_name
            raise FileError.undecodable(self._path, name, start, line) from None
        if b"\0" in text:
            self._raise_nul()
        if self._quote in text:
            self.quotes += text.count(self._quote)
            if self._after_quote is not None and not self.text_after_quote:
                self.text_after_quote = self._after_quote.search(self._tail + text) is not None
        self._tail = text[-_TAIL:]
        return text

    def _to_utf8(self, piece: bytes, *, check: bool = True) -> bytes:
        """Convert a piece of the text to UTF-8.

        With `check`, a piece that should already be UTF-8 is validated.
        """
        assert self._encoding is not None and self._decoder is not None
        if self._encoding.name == "utf-8":
            if check and not (piece.isascii() and self._decoder.getstate()[0] == b""):
                self._decoder.decode(piece, final=not piece)
            return piece
        return str(self._decoder.decode(piece, final=not piece)).encode("utf-8")

    def _read_raw(self, size: int) -> bytes:
        if self._end is not None:
            size = min(size, self._end - self._position)
        try:
            piece: bytes = self._source.read(size) or b""
        except EOFError:
            raise FileError.cut_off(self._path, "its gzip stream has no end") from None
        except (BadGzipFile, zlib.error) as fault:
            where = f"gzip after {self._position} bytes of text"
            raise FileError.damaged(self._path, where, str(fault)) from None
        self._position += len(piece)
        if self._position > self._max_bytes:
            raise FileError.too_large(self._path, self._max_bytes)
        if self._compressed and self._position > _TRUSTED:
            compressed = self._file.tell()
            if self._position > _MAX_RATIO * compressed:
                raise FileError.bomb(self._path, compressed, self._position, _MAX_RATIO)
        return piece

    @property
    def _encoding_name(self) -> str:
        return "" if self._encoding is None else self._encoding.name.upper()

    def _raise_undecodable(self, byte: int) -> NoReturn:
        assert self._encoding is not None
        line = self._line_of(byte)
        if self._encoding.name != "utf-8" or self._encoding.bom_length or self._encoding.by_user:
            raise FileError.undecodable(self._path, self._encoding_name, byte, line)
        with self._reopen(None) as raw:
            rest = raw.read(byte) and raw.read(_PIECE)
        raise EncodingMismatch(TextEncoding(_guess_single_byte(rest), 0, (byte, line)))

    def _raise_nul(self) -> None:
        """Raise FileError with the position of the first NUL byte."""
        before, lines = 0, 1
        with self._reopen(self._encoding) as text:
            while piece := text._to_utf8(text._read_raw(_PIECE), check=False):
                position = piece.find(b"\0")
                if position >= 0:
                    line = lines + _lines_in(piece[:position])
                    raise FileError.of_nul(self._path, line, before + position)
                before, lines = before + len(piece), lines + _lines_in(piece)

    def _line_of(self, byte: int) -> int:
        """Return the line, counted from 1, of position `byte` in the decompressed file."""
        line, left = 1, byte
        with self._reopen(None) as raw:
            while left > 0 and (piece := raw.read(min(left, _PIECE))):
                line, left = line + _lines_in(piece), left - len(piece)
        return line

    def _reopen(self, encoding: TextEncoding | None) -> TextStream:
        return TextStream(
            self._path, gzip=self._compressed, encoding=encoding, max_bytes=self._max_bytes
        )


def _after_quote(quote: str, delimiter: str) -> re.Pattern[bytes]:
    """Return a pattern that finds text after quotes that may close a field.

    Consecutive quotes open a field if they follow a delimiter or a line end and their number is
    odd. Within a quoted field, the number of consecutive quotes is even. In all other cases the
    last of the consecutive quotes may close a field, and no text may follow a closing quote.
    """
    q, ends = re.escape(quote.encode()), re.escape(delimiter.encode()) + rb"\r\n"
    inside = rb"(?<=[^%b%b]%b)(?:%b%b)*" % (ends, q, q, q, q)
    empty = rb"(?<=[%b]%b)%b(?:%b%b)*" % (ends, q, q, q, q)
    return re.compile(rb"%b(?:%b|%b)(?=[^%b%b \t])" % (q, inside, empty, ends, q))


def detect_encoding(start: bytes, named: str | None) -> TextEncoding:
    """Detect the encoding of a text.

    Parameters
    ----------
    start : bytes
        First bytes of the text.
    named : str or None
        Encoding stated by the user; if given, no encoding is detected.
    """
    for mark, name in _MARKS:
        if start.startswith(mark) and named in (None, name, "utf-8", "utf-16", "utf-8-sig"):
            length = len(mark)
            while start.startswith(mark, length):  # concatenated files may have several marks
                length += len(mark)
            return TextEncoding(name, length)
    if named is not None:
        return TextEncoding(_canonical_name(named), by_user=True)
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
        return TextEncoding(_guess_single_byte(start), 0, (fault.start, line))
    return TextEncoding()


def _canonical_name(named: str) -> str:
    """Return Python's name of a text encoding, or raise OptionError.

    Codecs that convert bytes to bytes and codecs that are specific to Python are not accepted.
    """
    try:
        codec = codecs.lookup(named)
        "".encode(codec.name)  # fails for codecs that convert bytes to bytes, such as base64
        if codec.name not in _INTERNAL:
            return codec.name
    except (LookupError, ValueError):  # unknown name, or a name that contains a NUL
        pass
    allowed = "the name of an encoding of texts, such as 'utf-8' or 'latin-1'"
    raise OptionError.of("encoding", named, allowed)


def _guess_single_byte(text: bytes) -> str:
    """Return 'cp1252' or 'latin-1' as the likely encoding.

    Some letters of cp1252 are control characters in latin-1, which texts do not contain.
    """
    high = {byte for byte in text if 0x80 <= byte < 0xA0}
    return "cp1252" if high and not high & {0x81, 0x8D, 0x8F, 0x90, 0x9D} else "latin-1"


def _lines_in(piece: bytes) -> int:
    return piece.count(b"\n") or piece.count(b"\r")


def _decoder(name: str) -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder(name)()
