"""sadf -j: what sar collected, as JSON.

Models: `sadf -j [FILE] [-- -A]` of sysstat 10.0 to 12.
Linux counterpart: sysstat sadf.c, sadf_misc.c:print_json_header, json_stats.c.
Invariants: the same columns as sar's text (`sar_columns`), to the same decimals; a value that is no
number is reported.
Left out: activities that sar_columns leaves out: they are named in one report.

A name in JSON is a title without what the other half of it says: "rkB" for rkB/s, "util-percent"
for %util, "memfree" for kbmemfree.
"""

import math
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from calibration.readers.clock import parse_dates, parse_time
from calibration.readers.line import Sink
from calibration.readers.sar_columns import FAMILIES, SYSTEM, Cell, Family

HOST_FACTS: Final = {
    "release": "kernel",
    "nodename": "hostname",
    "machine": "arch",
    "number-of-cpus": "cpus",
    "file-date": "date",
}
INTERVAL_MAX_S: Final = 31 * 86400  # sa1 keeps a month of days


class Activity(NamedTuple):
    """An activity of sadf: the table of sar that it is, and what holds the names of its rows."""

    family: Family
    name: str = ""


def _pressure(name: str) -> Family:
    """Return the table of a resource's pressure; its columns have the same names for each."""
    cells = {f"{line}_avg": Cell(f"pressure_{name}_{line}_pct") for line in ("some", "full")}
    return Family("system", named=False, cells=cells)


ACTIVITIES: Final[Mapping[str, Activity]] = {
    "cpu-load": Activity(FAMILIES["CPU"], "cpu"),
    "cpu-load-all": Activity(FAMILIES["CPU"], "cpu"),  # 10.0 to 10.2, of -u ALL
    "disk": Activity(FAMILIES["DEV"], "disk-device"),
    "net-dev": Activity(FAMILIES["IFACE"], "iface"),
    "process-and-context-switch": Activity(SYSTEM),
    "swap-pages": Activity(SYSTEM),
    "paging": Activity(SYSTEM),
    "io": Activity(SYSTEM),
    "memory": Activity(SYSTEM),
    "queue": Activity(SYSTEM),
    "cpu-frequency": Activity(FAMILIES["CPU"], "number"),
    **{
        f"psi-{short}": Activity(_pressure(name))
        for short, name in (("cpu", "cpu"), ("io", "io"), ("mem", "memory"))
    },
}
GROUPS: Final = ("network", "power-management", "psi")  # of activities
ALIASES: Final[Mapping[str, str]] = {"inactive": "kbinact", "frequency": "MHz"}


def read_sadf_json(document: Any, sink: Sink) -> bool:
    """Put a document of sadf -j into the sink; False if it is none."""
    hosts = hosts_in(document)
    if not any(_is_sadf(host) for host in hosts):
        return False
    sink.learn("tool", "sadf")
    left_out: dict[str, None] = {}
    report = 0
    for host in hosts:
        _learn(host, sink)
        for statistics in _list(host.get("statistics")):
            left_out.update(dict.fromkeys(_report(statistics, sink, report)))
            report += 1
    if left_out:
        sink.skip(sink.document, f"sadf: not taken: {', '.join(left_out)}")
    return True


def hosts_in(document: Any) -> list[dict[str, Any]]:
    """Return the hosts of a document of sysstat's."""
    sysstat = document.get("sysstat") if isinstance(document, dict) else None
    hosts = sysstat.get("hosts") if isinstance(sysstat, dict) else None
    return [host for host in _list(hosts) if isinstance(host, dict)]


def _is_sadf(host: Mapping[str, Any]) -> bool:
    """Tell sadf's document from iostat's, which has no file and whose times are text."""
    reports = _list(host.get("statistics"))
    stamps = [report.get("timestamp") for report in reports if isinstance(report, dict)]
    return "file-date" in host or any(isinstance(stamp, dict) for stamp in stamps)


def _learn(host: Mapping[str, Any], sink: Sink) -> None:
    for key, fact in HOST_FACTS.items():
        if isinstance(host.get(key), str | int):
            sink.learn(fact, str(host[key]))


def _report(statistics: Any, sink: Sink, report: int) -> Iterator[str]:
    """Add one report; yield the names of the activities that are not taken."""
    if not isinstance(statistics, dict):
        sink.skip(sink.document, f"sadf: report {report} is not an object")
        return
    time_s = _time_s(statistics.get("timestamp"), sink)
    parts = {key: content for key, content in statistics.items() if key not in GROUPS}
    for group in GROUPS:
        members = statistics.get(group)
        parts.update(members if isinstance(members, dict) else {})
    for key, content in parts.items():
        activity = ACTIVITIES.get(key)
        if activity is not None:
            for row in _rows(content):
                add_row(row, activity, sink, time_s, report)
        elif key != "timestamp":
            yield key


def _time_s(timestamp: Any, sink: Sink) -> float | None:
    """Return when a report was made; the first interval begins at second 0, as in sar's text."""
    stamp = timestamp if isinstance(timestamp, dict) else {}
    clock, interval = parse_time(str(stamp.get("time", ""))), stamp.get("interval")
    day = parse_dates(str(stamp.get("date", ""))).get("ymd")
    if clock is None or day is None:
        sink.skip(sink.document, f"sadf: {timestamp!r} is not a date and a time")
        return None
    moment = datetime.combine(day, clock)
    if sink.clock.start is None and type(interval) is int and 0 < interval <= INTERVAL_MAX_S:
        began = moment - timedelta(seconds=interval)
        sink.learn("start", began.isoformat())
        sink.learn("interval_s", f"{interval:g}")
        sink.clock.at(began.time(), began.date())
    return sink.clock.at(moment.time(), moment.date())


def add_row(
    row: Mapping[str, Any], activity: Activity, sink: Sink, time_s: float | None, report: int
) -> None:
    """Add a row of an activity; what is no number is reported."""
    name = str(row.get(activity.name, ""))
    values = {}
    for key, value in row.items():
        cell = None if key == activity.name else _cell(key, activity.family)
        if cell is None:
            continue
        if type(value) in (int, float) and math.isfinite(value):
            values[cell.column] = value * cell.factor
        else:
            of = f" of {name}" if name else ""
            sink.skip(sink.document, f"sadf: report {report}: {key}{of}: {value!r}")
    sink.add(
        sink.document,
        activity.family.kind,
        name,
        values,
        time_s=time_s,
        since_boot=False,
        report=report,
    )


def _rows(content: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of an activity; groups inside one ("io-reads") are its columns."""
    for row in content if isinstance(content, list) else [content]:
        if isinstance(row, dict):
            groups = [value for value in row.values() if isinstance(value, dict)]
            flat = {key: value for key, value in row.items() if not isinstance(value, dict)}
            yield {**flat, **{key: value for group in groups for key, value in group.items()}}


def _cell(key: str, family: Family) -> Cell | None:
    """Return where a column goes; None for those that are not taken."""
    stem = f"%{key.removesuffix('-percent')}" if key.endswith("-percent") else key
    stem = ALIASES.get(stem, stem)
    titles = (stem, f"{stem}/s", f"kb{stem}", f"%{stem}") if "%" not in stem else (stem,)
    return next((cell for title in titles if (cell := family.cells.get(title)) is not None), None)


def _list(content: Any) -> list[Any]:
    return content if isinstance(content, list) else []
