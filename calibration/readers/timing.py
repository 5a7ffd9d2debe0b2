"""What single measurements print: dd, hdparm -t and -T, time, and a count of block_dump lines.

Models: `dd if=... of=...`, `hdparm -tT /dev/sda`, `time COMMAND`, `/usr/bin/time [-v|-p] COMMAND`.
Linux counterpart: coreutils dd.c:print_stats of 5.0 to 9.x; hdparm.c:time_device; bash
execute_cmd.c:print_formatted_time; GNU time.c; fs/block_dump up to 5.12 for the last.
Invariants: each result is a report of its own; rates are bytes through seconds where both are
there, not the rounded rate; hdparm's MB is 2^20 B.
Left out: dd's count of records; progress lines of dd (whole seconds, not after "records out");
csh's and zsh's time.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from calibration.readers.line import CUT, Line, Sink, number
from calibration.readers.stamp import Pace
from calibration.samples import Kind

MIB: Final = 2**20


def _add(
    sink: Sink,
    pace: Pace,
    line: Line,
    name: str,
    values: Mapping[str, float],
    kind: Kind = "system",
) -> None:
    """Add one result as the next report; of the sink's clock only a date above it counts."""
    pace.report += 1
    sink.add(line, kind, name, values, time_s=sink.stamp_s, since_boot=False, report=pace.report)


_RECORDS: Final = re.compile(r"\s*\d+\+\d+ [^\W\d_].*")
# "... copied, 1.5 s, 9 MB/s", in any language; coreutils 5.0 said "transferred in 1.5 seconds (".
_DD: Final = re.compile(
    r"\s*(?P<bytes>\d+) [^\W\d_]+(?: \([^()]*\))? [^\d,()]+, (?P<s>\d[\d.,]*(?:e[+-]\d+)?) "
    r"[^\W\d_]+, (?P<rate>\d[\d.,]*(?:e[+-]\d+)?|\S+ ) ?[^\W\d_]+/[^\W\d_]+\s*"
    r"|\s*(?P<old_bytes>\d+) bytes transferred in (?P<old_s>\d[\d.,]*) seconds \(.*\)\s*"
)


@dataclass
class DdReader:
    """Takes what dd prints at its end."""

    sink: Sink
    format: ClassVar[str] = "dd"
    pace: Pace = field(init=False)
    records: int = 0

    def __post_init__(self) -> None:
        """Begin before the first result."""
        self.pace = Pace(self.sink)

    def feed(self, line: Line) -> bool:
        """Take a count of records, a result or a line of progress."""
        if _RECORDS.fullmatch(line.text):
            self.records += 1
            return True
        found = _DD.fullmatch(line.text)
        if found is None:
            return False
        is_final = self.records >= 2
        self.records = 0
        seconds = found["s"] or found["old_s"]
        if is_final or not seconds.isdecimal():
            self._result(line, int(found["bytes"] or found["old_bytes"]), number(seconds))
        return True

    def close(self) -> None:
        """Do nothing: a result is one line."""

    def _result(self, line: Line, size: int, seconds: float) -> None:
        values = {"copied_bytes": float(size), "elapsed_s": seconds}
        if seconds > 0:
            values["copied_bytes_per_s"] = size / seconds
        self.sink.learn("tool", "dd")
        _add(self.sink, self.pace, line, "dd", values)


HDPARM: Final[Mapping[str, str]] = {
    "cached reads": "cached_read_bytes_per_s",
    "buffer-cache reads": "cached_read_bytes_per_s",  # hdparm 5
    "O_DIRECT cached reads": "cached_read_bytes_per_s",
    "buffered disk reads": "buffered_read_bytes_per_s",
    "O_DIRECT disk reads": "direct_read_bytes_per_s",
}
_HDPARM: Final = re.compile(
    r"\s*Timing (?P<what>[\w -]+?):\s+(?P<size>\d+) MB in\s+(?P<s>\d+[.,]\d+) seconds"
    r" =\s*(?P<rate>\d+(?:[.,]\d+)?) (?P<unit>[kM])B/sec\s*"
)
_DEVICE: Final = re.compile(r"/dev/(\S+):\s*")


@dataclass
class HdparmReader:
    """Takes the two timings of hdparm, under the name of the device."""

    sink: Sink
    format: ClassVar[str] = "hdparm"
    pace: Pace = field(init=False)
    device: str = ""

    def __post_init__(self) -> None:
        """Begin before the first result."""
        self.pace = Pace(self.sink)

    def feed(self, line: Line) -> bool:
        """Take the device's line, and a timing below it."""
        device = _DEVICE.fullmatch(line.text)
        if device is not None:
            self.device = device[1]
            return True
        found = _HDPARM.fullmatch(line.text)
        if found is None or found["what"] not in HDPARM:
            return False
        # The rate, not size by time: hdparm prints the size in whole MB.
        scale = {"k": 1024, "M": MIB}[found["unit"]]
        self.sink.learn("tool", "hdparm")
        rate = number(found["rate"]) * scale
        _add(self.sink, self.pace, line, self.device, {HDPARM[found["what"]]: rate}, "device")
        return True

    def close(self) -> None:
        """Do nothing: a timing is one line."""


TIME_WORDS: Final[Mapping[str, str]] = {
    "real": "elapsed_s",
    "user": "cpu_user_s",
    "sys": "cpu_system_s",
}
# GNU time -v: what it says -> (column, factor)
VERBOSE: Final[Mapping[str, tuple[str, float]]] = {
    "User time (seconds)": ("cpu_user_s", 1),
    "System time (seconds)": ("cpu_system_s", 1),
    "Maximum resident set size (kbytes)": ("max_rss_bytes", 1024),
    "Major (requiring I/O) page faults": ("major_faults", 1),
    "Minor (reclaiming a frame) page faults": ("minor_faults", 1),
    "Voluntary context switches": ("voluntary_switches", 1),
    "Involuntary context switches": ("involuntary_switches", 1),
}
VERBOSE_UNUSED: Final = frozenset(
    {
        "Percent of CPU this job got",
        "Average shared text size (kbytes)",
        "Average unshared data size (kbytes)",
        "Average stack size (kbytes)",
        "Average total size (kbytes)",
        "Average resident set size (kbytes)",
        "Swaps",
        "File system inputs",
        "File system outputs",
        "Socket messages sent",
        "Socket messages received",
        "Signals delivered",
        "Page size (bytes)",
        "Exit status",
    }
)
ELAPSED: Final = "Elapsed (wall clock) time (h:mm:ss or m:ss)"
_WORD: Final = re.compile(
    r"\s*(?P<word>real|user|sys)\s+"
    r"(?:(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m)?(?P<s>\d+[.,]\d+)s|(?P<p>\d+[.,]\d\d))\s*"
)
_VERBOSE: Final = re.compile(r"\s+(?P<what>[A-Z][^:]*(?:\(h:mm:ss or m:ss\))?): (?P<value>.+?)\s*")
_DEFAULT: Final = re.compile(
    r"\s*(?P<user>[\d.]+)user (?P<sys>[\d.]+)system (?P<clock>[\d:.]+)elapsed \S+CPU"
    r" \(\d+avgtext\+\d+avgdata (?P<rss>\d+)maxresident\)k\s*"
)
_DEFAULT_2: Final = re.compile(
    r"\s*\d+inputs\+\d+outputs \((?P<major>\d+)major\+(?P<minor>\d+)minor\)pagefaults \d+swaps\s*"
)


def clock_s(text: str) -> float | None:
    """Return seconds of "h:mm:ss" or "m:ss.ss"; None if it is neither."""
    parts = text.split(":")
    if not 2 <= len(parts) <= 3 or not re.fullmatch(r"\d+(?:\.\d+)?", parts[-1]):
        return None
    if not all(part.isdecimal() for part in parts[:-1]):
        return None
    seconds = float(parts[-1])
    for power, part in enumerate(reversed(parts[:-1]), start=1):
        seconds += int(part) * 60**power
    return seconds


@dataclass
class TimeReader:
    """Takes what the shell's time and GNU time print; a column that comes again begins anew."""

    sink: Sink
    format: ClassVar[str] = "time"
    pace: Pace = field(init=False)
    seen: list[str] = field(default_factory=list)
    verbose: str = ""

    def __post_init__(self) -> None:
        """Begin before the first result."""
        self.pace = Pace(self.sink)

    def feed(self, line: Line) -> bool:
        """Take a line of any of the layouts."""
        values = self._word(line.text) or self._default(line.text)
        if values is None:
            return self._verbose(line)
        self._take(line, values)
        return True

    def close(self) -> None:
        """Do nothing: what is missing at the end is not made up."""

    def _take(self, line: Line, values: Mapping[str, float]) -> None:
        if not self.seen or any(column in self.seen for column in values):
            self.seen.clear()
            self.pace.report += 1
        self.seen.extend(values)
        self.sink.learn("tool", "time")
        self.sink.add(
            line,
            "system",
            self.verbose or "time",
            values,
            time_s=self.sink.stamp_s,
            since_boot=False,
            report=self.pace.report,
        )

    def _word(self, text: str) -> dict[str, float] | None:
        """Return "real 0m16.088s" of a shell, "real 16.09" of POSIX."""
        found = _WORD.fullmatch(text)
        if found is None:
            return None
        seconds = (
            int(found["h"] or 0) * 3600
            + int(found["m"] or 0) * 60
            + number(found["s"] or found["p"])
        )
        return {TIME_WORDS[found["word"]]: seconds}

    def _default(self, text: str) -> dict[str, float] | None:
        """Return either line of GNU time without options."""
        found = _DEFAULT.fullmatch(text)
        if found is not None:
            elapsed = clock_s(found["clock"])
            values = {
                "cpu_user_s": number(found["user"]),
                "cpu_system_s": number(found["sys"]),
                "max_rss_bytes": int(found["rss"]) * 1024.0,
            }
            return values if elapsed is None else values | {"elapsed_s": elapsed}
        found = _DEFAULT_2.fullmatch(text)
        if found is None:
            return None
        return {"major_faults": int(found["major"]), "minor_faults": int(found["minor"])}

    def _verbose(self, line: Line) -> bool:
        found = _VERBOSE.fullmatch(line.text)
        if found is None:
            return False
        what, value = found["what"], found["value"]
        if what == "Command being timed":
            self.verbose = value.strip('"')
            self.seen.clear()
            return True
        if what == ELAPSED or what in VERBOSE:
            return self._verbose_value(line, what, value)
        return what in VERBOSE_UNUSED

    def _verbose_value(self, line: Line, what: str, value: str) -> bool:
        elapsed = clock_s(value) if what == ELAPSED else None
        if line.may_be_cut:
            self.sink.skip(line, CUT)
        elif elapsed is not None:
            self._take(line, {"elapsed_s": elapsed})
        elif what in VERBOSE and re.fullmatch(r"\d+(?:\.\d+)?", value):
            column, factor = VERBOSE[what]
            self._take(line, {column: float(value) * factor})
        else:
            self.sink.skip(line, "not a number")
        return True


_BLOCK_DUMP: Final = re.compile(r"\s*(?P<process>\S.*\(\d+\)): (?P<count>\d+)\s*")


@dataclass
class BlockDumpReader:
    """Takes `sort | uniq -c` of block_dump lines: "kjournald(1624): 582"."""

    sink: Sink
    format: ClassVar[str] = "block_dump"

    def feed(self, line: Line) -> bool:
        """Take a process and its count."""
        found = _BLOCK_DUMP.fullmatch(line.text)
        if found is None:
            return False
        if line.may_be_cut:
            self.sink.skip(line, CUT)
            return True
        self.sink.add(
            line,
            "system",
            found["process"],
            {"block_events": int(found["count"])},
            time_s=None,
            since_boot=False,
            report=0,
        )
        return True

    def close(self) -> None:
        """Do nothing: a count is one line."""
