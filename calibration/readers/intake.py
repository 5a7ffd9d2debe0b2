"""How a file comes in: what is opened at all, and how much of it is taken.

Models: the doorman of a library.
Linux counterpart: none.
Invariants: whatever a path leads to, no more than BYTES_MAX are held, compressed or not; a thing
that has no end (a device) or that never begins (a pipe without a writer) is refused, not waited
for; a refusal names the bound, and what to give instead.
Left out: the formats.

Each bound has a reason: a recording is held in memory, with some 140 bytes for each figure. So
256 MiB of text and four million figures are several hundred MiB, and a day of `iotwin record` or of
`iostat -xz 1` with one busy disk is below both.
"""

import os
import select
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

MIB: Final = 1 << 20
BYTES_MAX: Final = 256 * MIB  # of one file, expanded
WIDE_BYTES_MAX: Final = 64 * MIB  # where characters beyond ASCII make Python take four bytes each
LINE_MAX: Final = 1 * MIB  # characters: the line `intr` of /proc/stat has 2 for each of 500,000
SAMPLES_MAX: Final = 4_000_000
UNKNOWN_MAX: Final = 100_000  # lines of no known format; a few seconds of looking at them
PROBLEMS_MAX: Final = 10_000  # that are kept word by word
DOCUMENT_MAX: Final = 16 * MIB  # characters of JSON, which takes up to 24 times that in memory
DEPTH_MAX: Final = 100  # of brackets within each other; sadf -j has 8
DIGITS_MAX: Final = 30  # of one number; a counter of 64 bits has 20
WRITER_WAIT_S: Final = 2.0  # for somebody to open the other end of a pipe
_LOOK_S: Final = 0.02  # between two looks at a pipe
_CHUNK: Final = 1 * MIB
_PART: Final = "give a part of it: `head -c 200M`, `split -C 200M`, or `sar -s 10:00:00`"


class UnreadableRecording(ValueError):
    """A file of which nothing could be understood, or that is more than is taken.

    `is_blank` says that it holds no figure and nothing that is not understood: it is empty, or its
    format is known.
    """

    def __init__(self, source: str, why: str, *, is_blank: bool = False) -> None:
        super().__init__(f"{source}: {why}")
        self.is_blank = is_blank


def take(path: Path) -> bytes:
    """Return the bytes of a file or a pipe; UnreadableRecording, OSError."""
    source = str(path)
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise UnreadableRecording(source, "it is a folder; give its files")
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        kind = "a socket" if stat.S_ISSOCK(mode) else "a device"
        raise UnreadableRecording(source, f"it is {kind}; give a file, or a pipe")
    if stat.S_ISREG(mode) and path.stat().st_size > BYTES_MAX:
        raise UnreadableRecording(source, too_much(path.stat().st_size))
    descriptor = os.open(path, os.O_RDONLY | (os.O_NONBLOCK if stat.S_ISFIFO(mode) else 0))
    try:
        chunks = _pipe(descriptor, source) if stat.S_ISFIFO(mode) else _file(descriptor)
        return gather(chunks, source)
    finally:
        os.close(descriptor)


def take_stream(stream: IO[bytes], source: str) -> bytes:
    """Return what comes from an open stream, such as standard input; UnreadableRecording."""
    return gather(iter(lambda: stream.read(_CHUNK), b""), source)


def gather(chunks: Iterator[bytes], source: str) -> bytes:
    """Return the chunks as one; UnreadableRecording if there are too many of them."""
    held = bytearray()
    for chunk in chunks:
        held += chunk
        if len(held) > BYTES_MAX:
            raise UnreadableRecording(source, too_much(None))
    return bytes(held)


def too_much(size: int | None) -> str:
    """Return what is said of a text of `size` bytes, None: of a text without a known end."""
    has = "it is longer than" if size is None else f"it has {size // MIB} MiB, more than"
    return f"{has} the {BYTES_MAX // MIB} MiB that are read; {_PART}"


def _file(descriptor: int) -> Iterator[bytes]:
    while chunk := os.read(descriptor, _CHUNK):
        yield chunk


def _pipe(descriptor: int, source: str) -> Iterator[bytes]:
    """Yield what is written into a pipe until its writers have gone."""
    looks, has_begun = round(WRITER_WAIT_S / _LOOK_S), False
    while True:
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:  # there is a writer, and it is silent: it may be at work
            has_begun = True
            select.select([descriptor], [], [])
            continue
        if chunk:
            has_begun = True
            yield chunk
        elif has_begun:
            return
        elif not looks:
            raise UnreadableRecording(
                source, f"it is a pipe, and nobody wrote into it for {WRITER_WAIT_S:g} s"
            )
        else:
            looks -= 1
            select.select([], [], [], _LOOK_S)
