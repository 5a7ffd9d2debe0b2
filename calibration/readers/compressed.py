"""Compressed files: gzip, xz, bzip2, as logrotate leaves them; as far as they go.

Models: zcat, xzcat, bzcat.
Linux counterpart: gzip(1), xz(1), bzip2(1).
Invariants: a format is told by its first bytes, never by the file's name; what comes before a cut
or a damage is kept, and the fault is told; several members in one file are one text.
Left out: zstd and lz4, which Python 3.11 cannot read: they are named.
"""

import bz2
import lzma
import zlib
from collections.abc import Callable, Mapping
from typing import Final, Protocol


class _Decompressor(Protocol):
    """One member of a file."""

    @property
    def eof(self) -> bool:
        """Whether its end was seen."""

    @property
    def unused_data(self) -> bytes:
        """What comes after it."""

    def decompress(self, data: bytes, /) -> bytes:
        """Return what is in it."""


# First bytes -> name, and what reads a member.
FORMATS: Final[Mapping[bytes, tuple[str, Callable[[], _Decompressor]]]] = {
    b"\x1f\x8b": ("gzip", lambda: zlib.decompressobj(wbits=31)),
    b"\xfd7zXZ\0": ("xz", lzma.LZMADecompressor),
    b"BZh": ("bzip2", bz2.BZ2Decompressor),
}
UNREADABLE: Final[Mapping[bytes, str]] = {
    b"\x28\xb5\x2f\xfd": "zstd -d",
    b"\x04\x22\x4d\x18": "lz4 -d",
    b"PK\x03\x04": "unzip",
}


def expand(raw: bytes) -> tuple[bytes, str]:
    """Return the bytes, expanded if they are compressed, and what is wrong with them or ""."""
    for begin, (name, make) in FORMATS.items():
        if raw.startswith(begin):
            return _members(raw, name, make)
    return raw, ""


def tool_for(raw: bytes) -> str:
    """Return the command that expands what expand() cannot; "" if it is not known as compressed."""
    return next((tool for begin, tool in UNREADABLE.items() if raw.startswith(begin)), "")


def _members(raw: bytes, name: str, make: Callable[[], _Decompressor]) -> tuple[bytes, str]:
    parts = []
    while raw:
        member = make()
        try:
            parts.append(member.decompress(raw))
        except (zlib.error, lzma.LZMAError, OSError) as error:
            return b"".join(parts), f"the {name} data are damaged ({error})"
        if not member.eof:
            return b"".join(parts), f"the {name} data are cut"
        raw = member.unused_data.lstrip(b"\0")
    return b"".join(parts), ""
