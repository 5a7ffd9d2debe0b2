"""Telegraf's metrics: lines of InfluxDB's protocol, and CSV with a header.

Models: `[[outputs.file]] data_format = "influx"` (the default) or `"csv"` with `csv_header = true`,
of the inputs diskio, cpu, system, kernel, mem, swap and processes.
Linux counterpart: Telegraf plugins/serializers/csv/README.md, plugins/inputs/*/README.md; InfluxDB
line protocol reference. It was written from these documents; no recording was at hand.
Invariants: a moment is all points of one time, and goes to the reader of scrapes under
node_exporter's names; of several hosts none is taken; a row under a header of another number of
columns is told: each input needs a file of its own for CSV. CPUs need `collect_cpu_time = true`.
Left out: usage_* (percent over an interval that the point does not tell), csv_columns that leave
out the time, other separators than the comma, times that are neither seconds nor ISO 8601.
"""

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar, Final

from calibration.readers.line import Line, Sink
from calibration.readers.scrape import Scrape, ScrapeReader, is_counted, is_time

MS: Final = 1 / 1000
# Input -> field -> node_exporter's name, and what a value is in its unit.
_DISKIO: Final = {
    "reads": ("node_disk_reads_completed_total", 1.0),
    "merged_reads": ("node_disk_reads_merged_total", 1.0),
    "read_bytes": ("node_disk_read_bytes_total", 1.0),
    "read_time": ("node_disk_read_time_seconds_total", MS),
    "writes": ("node_disk_writes_completed_total", 1.0),
    "merged_writes": ("node_disk_writes_merged_total", 1.0),
    "write_bytes": ("node_disk_written_bytes_total", 1.0),
    "write_time": ("node_disk_write_time_seconds_total", MS),
    "iops_in_progress": ("node_disk_io_now", 1.0),
    "io_time": ("node_disk_io_time_seconds_total", MS),
    "weighted_io_time": ("node_disk_io_time_weighted_seconds_total", MS),
}
_SINGLE: Final = {
    "system": {name: (f"node_{name}", 1.0) for name in ("load1", "load5", "load15")},
    "kernel": {
        "boot_time": ("node_boot_time_seconds", 1.0),
        "interrupts": ("node_intr_total", 1.0),
        "context_switches": ("node_context_switches_total", 1.0),
        "processes_forked": ("node_forks_total", 1.0),
        "disk_pages_in": ("node_vmstat_pgpgin", 1.0),
        "disk_pages_out": ("node_vmstat_pgpgout", 1.0),
    },
    "mem": {
        name: (f"node_memory_{theirs}_bytes", 1.0)
        for name, theirs in {
            "total": "MemTotal",
            "free": "MemFree",
            "available": "MemAvailable",
            "buffered": "Buffers",
            "cached": "Cached",
            "dirty": "Dirty",
            "active": "Active",
            "inactive": "Inactive",
            "slab": "Slab",
            "committed_as": "Committed_AS",
        }.items()
    },
    "swap": {
        "total": ("node_memory_SwapTotal_bytes", 1.0),
        "free": ("node_memory_SwapFree_bytes", 1.0),
    },
    "processes": {
        "running": ("node_procs_running", 1.0),
        "blocked": ("node_procs_blocked", 1.0),
    },
}
_CPU: Final = re.compile(r"cpu(\d+)", re.ASCII)
_CPU_TIME: Final = re.compile(r"time_(user|nice|system|idle|iowait|irq|softirq|steal)")
_INPUTS: Final = frozenset({"diskio", "cpu", *_SINGLE})
_POINT: Final = re.compile(
    r"(?P<input>[a-z]\w*)(?P<tags>(?:,[^\s=,]++=(?:[^\s,\\]|\\.)++)*+) (?P<fields>\S++)"
    r" (?P<ns>\d{16,19})",
    re.ASCII,
)
_PAIR: Final = re.compile(r"([^\s=,]+)=((?:[^\s,\\]|\\.)+)")
_HEADER: Final = re.compile(r"timestamp,(?:measurement|name),[\w,.-]+", re.ASCII)
ONE: Final = "Telegraf: one moment: only totals since boot; take two or more in one file"
COLUMNS: Final = (
    "Telegraf: {has} columns under a header of {expected}: give each input a file of its own"
    " (namepass), or use data_format = 'influx'"
)


@dataclass(frozen=True, slots=True)
class Point:
    """One metric: its input, tags, values by field, and time since 1970."""

    input: str
    tags: Mapping[str, str]
    values: Mapping[str, float]
    at_s: float


@dataclass
class TelegrafReader:
    """Takes points of either form, moment by moment."""

    sink: Sink
    format: ClassVar[str] = "Telegraf"
    _scrapes: ScrapeReader = field(init=False)
    _titles: tuple[str, ...] = ()  # of the CSV that is being read
    _scrape: Scrape = field(default_factory=dict)
    _at_s: float | None = None
    _begin: Line | None = None
    _host: str | None = None

    def __post_init__(self) -> None:
        """Begin before the first moment."""
        self._scrapes = ScrapeReader(self.sink)

    def feed(self, line: Line) -> bool:
        """Take a point, or the header of a CSV."""
        if _HEADER.fullmatch(line.text):
            self._titles = tuple(line.text.split(","))
            return True
        found = _POINT.fullmatch(line.text)
        if found is not None:
            point = _of_protocol(found)
        elif self._titles and line.text[:1].isdigit() and line.text.count(",") > 1:
            row = _row(line.text)
            if len(row) != len(self._titles):
                why = COLUMNS.format(has=len(row), expected=len(self._titles))
                self.sink.skip(line, why)
                return True
            point = _of_row(self._titles, row)
        else:
            return False
        if point is None:
            self.sink.skip(line, "Telegraf: a point without a time in seconds or ISO 8601")
        elif line.may_be_cut:
            self.sink.skip(line, "the end of the last line may be cut")
        else:
            self._take(line, point)
        return True

    def close(self) -> None:
        """Take the last moment; say so if it was the only one."""
        self._finish()
        self._scrapes.close()
        if self._scrapes.taken == 1 and self._begin is not None:
            self.sink.skip(self._begin, ONE)

    def _take(self, line: Line, point: Point) -> None:
        """Add a point to its moment."""
        if point.input not in _INPUTS:
            return
        host = point.tags.get("host", "")
        if self._host is None:
            self._host = host
            if host:
                self.sink.learn("hostname", host)
        if host != self._host:
            self.sink.skip(line, f"Telegraf: a point of another host ({host}); one host a file")
            return
        if point.at_s != self._at_s:
            self._finish()
            self._begin, self._at_s = line, point.at_s
        for name, labels, value in _series(point):
            if is_counted(value):
                self._scrape.setdefault(name, []).append((labels, value))

    def _finish(self) -> None:
        if self._begin is not None and self._scrape:
            self._scrapes.take(self._begin, self._scrape, self._at_s)
        self._scrape = {}


def _of_protocol(found: re.Match[str]) -> Point | None:
    """Return the point of a line of the protocol; its time is in ns."""
    at_s = int(found["ns"]) / 1e9
    values = ((name, _number(text.removesuffix("i"))) for name, text in _pairs(found["fields"]))
    known = {name: value for name, value in values if value is not None}
    tags = dict(_pairs(found["tags"]))
    return Point(found["input"], tags, known, at_s) if is_time(at_s) else None


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for found in _PAIR.finditer(text):
        yield found[1], re.sub(r"\\(.)", r"\1", found[2])


def _row(text: str) -> list[str]:
    """Return the cells of a row of CSV."""
    return next(csv.reader([text]), [])


def _of_row(titles: tuple[str, ...], row: list[str]) -> Point | None:
    """Return the point of a row; what is no number is a tag."""
    cells = {
        title.removeprefix("tag_").removeprefix("field_"): cell
        for title, cell in zip(titles[2:], row[2:], strict=True)
    }
    at_s = _seconds(row[0])
    values = {name: _number(cell) for name, cell in cells.items()}
    known = {name: value for name, value in values.items() if value is not None}
    return Point(row[1], cells, known, at_s) if at_s is not None else None


def _seconds(text: str) -> float | None:
    """Return a time since 1970: seconds, or ISO 8601."""
    value = _number(text)
    if value is None:
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            return None
        value = (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()
    return value if is_time(value) else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _series(point: Point) -> Iterator[tuple[str, dict[str, str], float]]:
    """Yield a point's values under node_exporter's names."""
    if point.input == "diskio" and "name" in point.tags:
        for name, (theirs, factor) in _DISKIO.items():
            if name in point.values:
                yield theirs, {"device": point.tags["name"]}, point.values[name] * factor
    elif point.input == "cpu":
        number = _CPU.fullmatch(point.tags.get("cpu", ""))
        for name, value in point.values.items():
            mode = _CPU_TIME.fullmatch(name)
            if number is not None and mode is not None:
                labels = {"cpu": number[1], "mode": mode[1]}
                yield "node_cpu_seconds_total", labels, value
    else:
        for name, (theirs, factor) in _SINGLE.get(point.input, {}).items():
            if name in point.values:
                yield theirs, {}, point.values[name] * factor
