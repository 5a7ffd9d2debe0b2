"""Read recordings: any text of the known formats into one samples table.

Models: somebody who knows the tools reading what they printed.
Linux counterpart: none.
Invariants: each line that is not blank is taken by one reader or reported; the order of READERS
decides only about lines that two formats could claim; a JSON document is read by one of DOCUMENTS
or taken for lines; what is cut (compressed, JSON) is read as far as it goes, and reported; time is
in proportion to the text, and memory bounded (`intake`): a line of more than SHORT characters is
shown only to those of LONG_LINES, whose patterns look at each character once.
Left out: PCP archives. Other binary files: sar's own go through the system's sadf (`sa_file`).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from calibration.readers.cloudwatch import read_cloudwatch
from calibration.readers.compressed import TooMuch, expand, is_binary, tool_for
from calibration.readers.cpuinfo import CpuinfoReader
from calibration.readers.fio import read_fio
from calibration.readers.free import FreeReader
from calibration.readers.hints import hint_for
from calibration.readers.intake import (
    DIGITS_MAX,
    LINE_MAX,
    MIB,
    SAMPLES_MAX,
    UNKNOWN_MAX,
    WIDE_BYTES_MAX,
    UnreadableRecording,
    take,
    too_much,
)
from calibration.readers.iostat import IostatReader
from calibration.readers.iostat_json import read_iostat_json
from calibration.readers.iotop import IotopReader
from calibration.readers.json_text import Document, find_documents
from calibration.readers.line import TEXT_KEPT, Line, LineReader, NotANumber, Sink, lines_of
from calibration.readers.mpstat import MpstatReader, read_mpstat_json
from calibration.readers.node_exporter import NodeExporterReader
from calibration.readers.pidstat import PidstatReader
from calibration.readers.proc import ProcReader
from calibration.readers.prometheus import read_prometheus
from calibration.readers.prompt import Command, PromptReader
from calibration.readers.recorder import RecorderReader
from calibration.readers.sa_file import command, is_sa, text_of
from calibration.readers.sadf import read_sadf_json
from calibration.readers.sadf_text import SadfTextReader
from calibration.readers.sar import SarReader
from calibration.readers.stamp import StampReader
from calibration.readers.swaps import SwapsReader
from calibration.readers.telegraf import TelegrafReader
from calibration.readers.timing import BlockDumpReader, DdReader, HdparmReader, TimeReader
from calibration.readers.title import LoneTime, Title
from calibration.readers.top import TopReader
from calibration.readers.uptime import UptimeReader
from calibration.readers.vmstat import VmstatReader
from calibration.readers.vmstat_totals import VmstatDiskReader, VmstatSumReader
from calibration.samples import Problem, Recording

__all__ = (
    "DOCUMENTS",
    "READERS",
    "UnreadableRecording",
    "WholeFormat",
    "read_bytes",
    "read_file",
    "read_text",
)

MakeReader = Callable[[Sink], LineReader]

# RecorderReader first: inside its samples stands text that others would claim.
READERS: Final[Sequence[MakeReader]] = (
    RecorderReader,
    Title,
    LoneTime,
    PromptReader,
    StampReader,
    IostatReader,
    VmstatReader,
    UptimeReader,
    TopReader,
    FreeReader,
    SwapsReader,
    VmstatDiskReader,
    VmstatSumReader,
    DdReader,
    HdparmReader,
    TimeReader,
    CpuinfoReader,
    NodeExporterReader,
    TelegrafReader,
    ProcReader,
    BlockDumpReader,
    IotopReader,
    SadfTextReader,
    PidstatReader,
    MpstatReader,
    SarReader,
)


@dataclass(frozen=True)
class WholeFormat:
    """A format that is one document rather than lines: JSON.

    `read` returns whether the document is of this format, and then has put all of it into the sink.
    """

    format: str
    read: Callable[[Any, Sink], bool]


# Readers of lines that may be longer than SHORT: lists of interrupts and of flags, command lines.
LONG_LINES: Final = (
    RecorderReader,
    PromptReader,
    CpuinfoReader,
    NodeExporterReader,
    TelegrafReader,
    ProcReader,
    IotopReader,
    PidstatReader,
    SarReader,
    TopReader,
)
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
SHORT: Final = 1024  # characters; the widest table of iostat has 250
BINARY: Final = "it is binary, not text; sadf -j makes text of sar's files"
_LONG: Final = re.compile(rf"\d{{{DIGITS_MAX + 1}}}")

DOCUMENTS: Final[Sequence[WholeFormat]] = (
    WholeFormat("iostat -o JSON", read_iostat_json),
    WholeFormat("mpstat -o JSON", read_mpstat_json),
    WholeFormat("sadf -j", read_sadf_json),
    WholeFormat("fio", read_fio),
    WholeFormat("Prometheus", read_prometheus),
    WholeFormat("CloudWatch", read_cloudwatch),
)


def read_file(
    path: Path,
    interval_s: float | None = None,
    commands: tuple[Command, ...] = (),
    known: Mapping[str, str] = NOTHING,
) -> Recording:
    """Return what a file says; text, or compressed. OSError, or UnreadableRecording.

    `known` are facts of the server that other files tell.
    """
    raw = take(path)
    return read_bytes(text_of(path) if is_sa(raw) else raw, str(path), interval_s, commands, known)


def read_bytes(
    raw: bytes,
    source: str,
    interval_s: float | None = None,
    commands: tuple[Command, ...] = (),
    known: Mapping[str, str] = NOTHING,
) -> Recording:
    """Return what bytes say: text in UTF-8 or UTF-16, or compressed. UnreadableRecording.

    `commands` printed them, as far as the text itself has no prompt with a command.
    """
    try:
        raw, fault = expand(raw)
    except TooMuch:
        raise UnreadableRecording(source, f"expanded, {too_much(None)}") from None
    tool = tool_for(raw)
    if tool:
        raise UnreadableRecording(source, f"it is compressed; `{tool}` makes text of it")
    if is_sa(raw):
        why = f"it is a file of sar's: unpack it, or type `{command('FILE')}`"
        raise UnreadableRecording(source, why)
    if is_binary(raw):
        raise UnreadableRecording(source, BINARY)
    if len(raw) > WIDE_BYTES_MAX and not raw.isascii():
        why = f"{WIDE_BYTES_MAX // MIB} MiB are read of a text that is not plain ASCII, and it has"
        raise UnreadableRecording(source, f"{why} {len(raw) // MIB} MiB; give a part of it")
    return _read(_decode(raw), source, interval_s, fault, commands, known)


def read_text(text: str, source: str, interval_s: float | None = None) -> Recording:
    """Return what a text says; UnreadableRecording if no line of it was understood."""
    return _read(text, source, interval_s, "")


def _read(
    text: str,
    source: str,
    interval_s: float | None,
    fault: str,
    commands: tuple[Command, ...] = (),
    known: Mapping[str, str] = NOTHING,
) -> Recording:
    sink = Sink(interval_s, commands=commands, facts=dict(known))
    reading = _Reading(sink)
    try:
        formats = reading.read(text)
    except _Enough as error:
        raise UnreadableRecording(source, str(error)) from None
    if sink.more:
        sink.problems.append(Problem(line=0, text="", why=f"{sink.more} more lines are not taken"))
    if fault:
        sink.skip(Line(text.count("\n") + 1, ""), fault)
    if not sink.samples:
        is_known = bool(formats) and not reading.unknown
        why = _why_nothing(text, sink, formats, is_known=is_known)
        is_blank = is_known or not (text.strip() or fault)
        raise UnreadableRecording(source, why, is_blank=is_blank)
    return Recording(
        source=source,
        formats=tuple(formats),
        samples=tuple(sink.samples),
        problems=tuple(sink.problems),
        facts=sink.facts,
    )


class _Enough(ValueError):
    """There is more of something than is read."""


class _Reading:
    """The readers of one text, which of them were of use, and how many lines none took."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._readers = [make(sink) for make in READERS]
        self._used: dict[str, None] = {}
        self.unknown = 0

    def read(self, text: str) -> list[str]:
        """Read documents and the lines around them; return the formats found."""
        done, number = 0, 1
        for document in find_documents(text):
            self._feed(lines_of(text[done : document.begin], number))
            number += text.count("\n", done, document.begin)
            done = document.begin
            if document.refused:
                begin = text[document.begin : document.begin + TEXT_KEPT].split("\n", 1)[0]
                self._sink.skip(Line(number, begin), document.refused)
            if document.refused or self._understands(document, number, text):
                number += text.count("\n", done, document.end)
                done = document.end
        self._feed(lines_of(text[done:], number))
        for reader in self._readers:
            reader.close()
        return [name for name in self._used if name]

    def _understands(self, document: Document, number: int, text: str) -> bool:
        begin = text[document.begin : min(document.end, document.begin + TEXT_KEPT)]
        self._sink.document = Line(number, begin.split("\n", 1)[0])
        for one in DOCUMENTS:
            if one.read(document.content, self._sink):
                self._used.setdefault(one.format)
                if document.mended:
                    self._sink.skip(self._sink.document, document.mended)
                return True
        return False

    def _feed(self, lines: Iterator[Line]) -> None:
        """Give each line to the reader that took the one before, then to the others."""
        for line in lines:
            why = _why_not(line)
            taker = None
            if not why:
                try:
                    taker = self._taker(line)
                except NotANumber as error:  # a line of a known format, and not as it should be
                    why = str(error)
            if taker is not None:
                self._used.setdefault(taker.format)
                if taker is not self._readers[0]:
                    self._readers.remove(taker)
                    self._readers.insert(0, taker)
            elif line.text and not line.text.isspace():
                self._sink.skip(line, why or "not of a known format")
                self.unknown += 1
                if self.unknown > UNKNOWN_MAX:
                    told = f"more than {UNKNOWN_MAX} lines are of no known format, the first:"
                    raise _Enough(f"{told} {next(iter(self._sink.problems))}; leave them out")
            if len(self._sink.samples) > SAMPLES_MAX:
                why = f"it has more than the {SAMPLES_MAX:,} figures that are read"
                raise _Enough(f"{why} (line {line.number}); give a part of it")

    def _taker(self, line: Line) -> LineReader | None:
        """Return the reader that takes a line; a long one is shown to those of LONG_LINES alone."""
        if len(line.text) <= SHORT:
            return next((reader for reader in self._readers if reader.feed(line)), None)
        able = (reader for reader in self._readers if isinstance(reader, LONG_LINES))
        return next((reader for reader in able if reader.feed(line)), None)


def _why_not(line: Line) -> str:
    """Return why no reader is shown a line; "" if they are."""
    if len(line.text) > LINE_MAX:
        return f"a line of {len(line.text):,} characters (at most {LINE_MAX:,} are read)"
    if _LONG.search(line.text):
        return f"a number of more than {DIGITS_MAX} digits"
    return ""


def _decode(raw: bytes) -> str:
    """Return the text; a byte that is no character stands as a replacement character."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return raw.decode("utf-16", errors="replace")
    return raw.decode("utf-8-sig", errors="replace")


def _why_nothing(text: str, sink: Sink, read: Sequence[str], *, is_known: bool) -> str:
    if not text.strip():
        return "it is empty"
    if "\0" in text or text.count("�") * 10 > len(text):
        return BINARY
    hint = hint_for(text)
    if hint:
        return f"it is of {hint}"
    first = next(iter(sink.problems), None)
    told = f"; {first}" if first else ""
    if is_known:
        return f"it is understood ({', '.join(read)}), and gives no figures{told}"
    formats = (make(sink).format for make in READERS)
    known = sorted({name for name in (*formats, *(d.format for d in DOCUMENTS)) if name})
    return f"nothing in it is understood{told} (known, with English titles: {', '.join(known)})"
