"""Read recordings: any text of the known formats into one samples table.

Models: somebody who knows the tools reading what they printed.
Linux counterpart: none.
Invariants: each line that is not blank is taken by one reader or reported; the order of READERS
decides only about lines that two formats could claim.
Left out: binary files (sa files, PCP archives): `sadf -j` makes text of the former.
"""

import gzip
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from calibration.readers.line import Line, LineReader, Sink
from calibration.readers.recorder import RecorderReader
from calibration.samples import Recording

MakeReader = Callable[[Sink], LineReader]

# RecorderReader first: inside its samples stands text that others would claim.
READERS: Final[Sequence[MakeReader]] = (RecorderReader,)


@dataclass(frozen=True)
class WholeFormat:
    """A format that is one document rather than lines: JSON.

    `read` returns whether the document is of this format, and then has put all of it into the sink.
    """

    format: str
    read: Callable[[Any, Sink], bool]


DOCUMENTS: Final[Sequence[WholeFormat]] = ()


class UnreadableRecording(ValueError):
    """A file of which nothing could be understood."""


def read_file(path: Path, interval_s: float | None = None) -> Recording:
    """Return what a file says; text or gzip. OSError, or UnreadableRecording."""
    raw = path.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    return read_text(raw.decode("utf-8", errors="replace"), str(path), interval_s)


def read_text(text: str, source: str, interval_s: float | None = None) -> Recording:
    """Return what a text says; UnreadableRecording if no line of it was understood."""
    sink = Sink(interval_s)
    document = _document(text)
    if document is not None:
        formats = [one.format for one in DOCUMENTS if one.read(document, sink)][:1]
    else:
        formats = _feed((Line(i, line) for i, line in enumerate(text.splitlines(), start=1)), sink)
    if not sink.samples and not sink.facts:
        raise UnreadableRecording(f"{source}: nothing in it is understood")
    return Recording(
        source=source, formats=tuple(formats), samples=tuple(sink.samples),
        problems=tuple(sink.problems), facts=sink.facts,
    )  # fmt: skip


def _document(text: str) -> Any:
    """Return the JSON document that the text is; None if it is none."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _feed(lines: Iterable[Line], sink: Sink) -> list[str]:
    """Give each line to the reader that took the one before, then to the others."""
    readers = [make(sink) for make in READERS]
    used: dict[str, None] = {}
    for line in lines:
        taker = next((reader for reader in readers if reader.feed(line)), None)
        if taker is not None:
            used.setdefault(taker.format)
            readers.sort(key=lambda reader: reader is not taker)
        elif line.text.strip():
            sink.skip(line, "not of a known format")
    for reader in readers:
        reader.close()
    return list(used)
