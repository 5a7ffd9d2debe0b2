"""sar: what happened in each interval, and the averages at the end.

Models: `sar [-ubBdpqrRSwW] INTERVAL [COUNT]` of the layouts in `sar_layout`.
Linux counterpart: sysstat sar.c:main, read_stats, check_line_hdr, write_stats, write_stats_avg.
Invariants: the first reading makes no report; a table alone has its header once, several tables
have theirs in each report; averages come after COUNT reports, and where the readings end before
that (Ctrl-C) in the layouts that have it so.
Left out: the daily files (-f, -o, no INTERVAL), `sar 0`, -A -C -F -H -I -m -n -P -s -e -i -t -v -y,
ALL after -u -r -q -d, all --long options: refused with what is allowed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sim.tools.clock import Wall
from sim.tools.iostat_layout import IostatLayout, TimeFormat, render_title
from sim.tools.sar_layout import (
    AVERAGE,
    SarLayout,
    SarTable,
    render_header,
    render_rows,
)
from sim.tools.sar_report import Reading, Row, Window
from sim.tools.snapshot import Snapshot
from sim.tools.usage import Sampling, ToolUsageError, parse_sampling, split_clusters

_MEANING = {
    "u": "-u CPU",
    "b": "-b all disks",
    "B": "-B paging",
    "d": "-d each disk",
    "p": "-p names of disks",
    "q": "-q load",
    "r": "-r memory",
    "R": "-R pages of memory",
    "S": "-S swap space",
    "w": "-w context switches",
    "W": "-W swapping",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SarOptions:
    """A command line of sar, understood."""

    tables: tuple[SarTable, ...]
    interval_s: int
    count: int | None
    averages_on_interrupt: bool

    @property
    def sampling(self) -> Sampling:
        """Return when sar reads: once before the first interval, then after each."""
        count = None if self.count is None else self.count + 1
        return Sampling(interval_s=self.interval_s, count=count)


def parse_options(arguments: Sequence[str], layout: SarLayout) -> SarOptions:
    """Return what the arguments (without the tool's name) ask; raise ToolUsageError."""
    known = dict(layout.tables)
    letters = [
        letter for letter in _MEANING if letter in known or (letter == "p" and _has_p(layout))
    ]
    allowed = f"{', '.join(_MEANING[letter] for letter in letters)}, INTERVAL, COUNT"
    words = split_clusters(arguments)
    asked = {word[1] for word in words if word.startswith("-") and len(word) == 2}
    for word in words:
        if word.startswith("-") and (len(word) != 2 or word[1] not in letters):
            raise ToolUsageError("sar", f"unknown option {word!r}", allowed)
    numbers = [word for word in words if not word.startswith("-")]
    sampling = parse_sampling("sar", numbers, allowed)
    if sampling.interval_s is None:
        problem = "without INTERVAL it reads the daily file, which this server does not keep"
        raise ToolUsageError("sar", problem, allowed)
    if "p" in asked and layout.named_disks is not None:
        known["d"] = layout.named_disks
    tables = tuple(table for letter, table in known.items() if letter in asked)
    return SarOptions(
        tables=tables or (known["u"],),
        interval_s=sampling.interval_s,
        count=sampling.count,
        averages_on_interrupt=layout.averages_on_interrupt,
    )


def run_sar(
    options: SarOptions,
    snapshots: Iterable[Snapshot],
    *,
    title: IostatLayout,
    hostname: str,
    release: str,
    machine: str,
    wall: Wall,
    times: TimeFormat,
) -> Iterator[str]:
    """Yield the title, one text per report, and the averages, taking snapshots as they come."""
    readings = (Reading(snapshot) for snapshot in snapshots)
    first = next(readings, None)
    if first is None:
        return
    yield render_title(
        title,
        release=release,
        hostname=hostname,
        machine=machine,
        cpus=len(first.stat.cpus),
        wall=wall.at(first.t_ns),
        times=times,
    ).removesuffix("\n")
    prev, sums, count = first, [Counter[str]() for _ in options.tables], 0
    headers = _Headers(options.tables, first)
    for cur in readings:
        before, stamp = (wall.at(reading.t_ns).strftime(times.clock) for reading in (prev, cur))
        gauges = [table.gauges(cur) for table in options.tables]
        windows = [Window(prev, cur, gauge, 1) for gauge in gauges]
        yield _report(options.tables, windows, stamp, before if headers.due(count) else None)
        for total, gauge in zip(sums, gauges, strict=True):
            total.update(gauge)
        prev, count = cur, count + 1
        if count == options.count:
            break
    if count and (count == options.count or options.averages_on_interrupt):
        windows = [Window(first, prev, total, count) for total in sums]
        yield _report(options.tables, windows, AVERAGE, AVERAGE if headers.always else None)


def _report(
    tables: Sequence[SarTable], windows: Sequence[Window], stamp: str, header: str | None
) -> str:
    """Return the tables of a report; `header` is the time of their headers, None for none."""
    text = ""
    for table, window in zip(tables, windows, strict=True):
        rows: list[Row] = list(table.compute(window))
        text += render_header(table, header) if header is not None else ""
        text += render_rows(table, rows, stamp)
    return text


class _Headers:
    """When headers are printed (check_line_hdr): always if a report has more than one row."""

    def __init__(self, tables: Sequence[SarTable], first: Reading) -> None:
        since_boot = Window(first, first, Counter(), 1)
        self.always = len(tables) > 1 or (
            bool(tables[0].name_title) and len(list(tables[0].compute(since_boot))) > 1
        )

    def due(self, reports: int) -> bool:
        """Tell whether the next report has headers."""
        return self.always or reports == 0


def _has_p(layout: SarLayout) -> bool:
    return layout.named_disks is not None
