"""Compressed files: gzip, xz, bzip2, as logrotate leaves them; as far as they go.

Models: zcat, xzcat, bzcat.
Linux counterpart: gzip(1), xz(1), bzip2(1).
Invariants: a format is told by its first bytes, never by the file's name; what comes before a cut
or a damage is kept, and the fault is told; several members in one file are one text; no more than
BYTES_MAX are ever expanded, and of what is no text only the beginning.
Left out: zstd and lz4, which Python 3.11 cannot read: they are named.
"""

import bz2
import lzma
import zlib
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from calibration.readers.intake import BYTES_MAX, MIB

_PIECE: Final = 1 * MIB  # expanded at a time
_SLICE: Final = 1 << 16  # of the compressed bytes, taken at a time
_MEMBERS_MAX: Final = 1000  # logrotate and pigz make one; the rest is copied for each
_XZ_MEMORY_MAX: Final = 128 * MIB  # xz -9 asks for 65 MiB to expand
_ZEROS_MAX: Final = 0.1  # share of the beginning; a text has some where power was cut
_BEGIN: Final = 1 << 16
WIDE: Final = (b"\xff\xfe", b"\xfe\xff")  # UTF-16, whose ASCII is half zeros


class _Decompressor(Protocol):
    """One member of a file."""

    @property
    def eof(self) -> bool:
        """Whether its end was seen."""

    @property
    def unused_data(self) -> bytes:
        """What comes after it."""

    def decompress(self, data: bytes, max_length: int = -1, /) -> bytes:
        """Return what is in it, `max_length` bytes at most."""


class _Gzip:
    """zlib's object, which hands back what it did not take, as one that keeps it."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)
        self._data = b""
        self._at = 0

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data + self._data[self._at :]

    def decompress(self, data: bytes, max_length: int = -1, /) -> bytes:
        """Take a slice at a time: what zlib hands back is copied at each call."""
        self._data = data or self._data
        piece = b""
        while not piece and not self.eof:
            given = self._inner.unconsumed_tail
            if not given:
                given = self._data[self._at : self._at + _SLICE]
                self._at += len(given)
            piece = self._inner.decompress(given, max(max_length, 0))
            if not given:
                break
        return piece


class TooMuch(ValueError):
    """More comes out of a compressed file than is read."""


# First bytes -> name, and what reads a member.
FORMATS: Final[Mapping[bytes, tuple[str, Callable[[], _Decompressor]]]] = {
    b"\x1f\x8b": ("gzip", _Gzip),
    b"\xfd7zXZ\0": ("xz", lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY_MAX)),
    b"BZh": ("bzip2", bz2.BZ2Decompressor),
}
UNREADABLE: Final[Mapping[bytes, str]] = {
    b"\x28\xb5\x2f\xfd": "zstd -d",
    b"\x04\x22\x4d\x18": "lz4 -d",
    b"PK\x03\x04": "unzip",
}


def expand(raw: bytes) -> tuple[bytes, str]:
    """Return the bytes, expanded if they are compressed, and what is wrong with them or "".

    Raise TooMuch.
    """
    for begin, (name, make) in FORMATS.items():
        if raw.startswith(begin):
            return _members(raw, name, make)
    return raw, ""


def is_binary(raw: bytes) -> bool:
    """Tell bytes that are no text by the zeros at their beginning; UTF-16 says what it is."""
    begin = raw[:_BEGIN]
    return begin.count(0) > _ZEROS_MAX * len(begin) and not raw.startswith(WIDE)


def tool_for(raw: bytes) -> str:
    """Return the command that expands what expand() cannot; "" if it is not known as compressed."""
    return next((tool for begin, tool in UNREADABLE.items() if raw.startswith(begin)), "")


def _members(raw: bytes, name: str, make: Callable[[], _Decompressor]) -> tuple[bytes, str]:
    text = bytearray()
    for _member in range(_MEMBERS_MAX):
        if not raw:
            return bytes(text), ""
        member = make()
        given = raw
        try:
            while not member.eof:
                piece = member.decompress(given, _PIECE)
                given = b""
                text += piece
                if len(text) > BYTES_MAX:
                    raise TooMuch
                if not piece and not member.eof:
                    return bytes(text), f"the {name} data are cut"
                if len(text) == len(piece) and is_binary(piece):
                    return bytes(text), ""  # no text, and refused as that
        except (zlib.error, lzma.LZMAError, OSError) as error:
            return bytes(text), f"the {name} data are damaged ({error})"
        raw = member.unused_data.lstrip(b"\0")
    return bytes(text), f"of the {name} data only the first {_MEMBERS_MAX} members are read"
