"""Readings of /proc as the JSON that sadf makes of sar's files.

Models: `sadf -j FILE -- -u -w -W -B -b -r -S -q -d` of sysstat 12: each activity of each interval.
Linux counterpart: sysstat sadf.c, json_stats.c.
Invariants: the figures are those that `iotwin exec ... -- sar` prints, before they are rounded: one
 computation for both. Numbers have two decimals, counts of memory and tasks none.
Left out: other activities; restarts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from sim.report.node_metrics import unix_time_s
from sim.tools import sar
from sim.tools.parse import parse_stat
from sim.tools.snapshot import Snapshot

Named = Mapping[str, str]  # sadf's name -> sar's

_CPU: Final = {name: f"%{name}" for name in ("user", "nice", "system", "iowait", "steal", "idle")}
_PAGING: Final = {
    **{name: name for name in ("pgpgin", "pgpgout")},
    "fault": "pgfault",
    "majflt": "pgmajfault",
    **{name: name for name in ("pgfree", "pgscank", "pgscand", "pgsteal")},
    "vmeff-percent": "vmeff",
}
_MEMORY: Final = {
    "memfree": "MemFree",
    "avail": "MemAvailable",
    "memused": "used",
    "memused-percent": "used_pct",
    "buffers": "Buffers",
    "cached": "Cached",
    "commit": "Committed_AS",
    "commit-percent": "committed_pct",
    "active": "Active",
    "inactive": "Inactive",
    "dirty": "Dirty",
}
_SWAP_SPACE: Final = {
    "swpfree": "SwapFree",
    "swpused": "SwapUsed",
    "swpused-percent": "swap_used_pct",
    "swpcad": "SwapCached",
    "swpcad-percent": "swap_cached_pct",
}
_QUEUE: Final = {
    "runq-sz": "running",
    "plist-sz": "tasks",
    "ldavg-1": "load1",
    "ldavg-5": "load5",
    "ldavg-15": "load15",
    "blocked": "blocked",
}
_DISK: Final = {
    "tps": "tps",
    "rd_sec": "rsec",
    "wr_sec": "wsec",
    "rkB": "rkB",
    "wkB": "wkB",
    "dkB": "dkB",
    "avgrq-sz": "avgrq",
    "areq-sz": "areq",
    "avgqu-sz": "avgqu",
    "aqu-sz": "avgqu",
    "await": "await",
    "util-percent": "util",
}
_WHOLE: Final = frozenset(
    (
        *("memfree", "avail", "memused", "buffers", "cached", "commit", "active", "inactive"),
        *("dirty", "swpfree", "swpused", "swpcad", "runq-sz", "plist-sz", "blocked"),
    )
)


class _Activity(NamedTuple):
    """What sar computes of it, and how sadf calls that; `row` has the name of each row, if any."""

    key: str
    compute: Callable[[sar.Window], Iterator[sar.Row]]
    names: Named
    row: str = ""


_ACTIVITIES: Final = (
    _Activity("cpu-load", sar.cpu_of_each, _CPU, "cpu"),
    _Activity("process-and-context-switch", sar.switches, {"proc": "proc", "cswch": "cswch"}),
    _Activity("swap-pages", sar.swapping, {"pswpin": "pswpin", "pswpout": "pswpout"}),
    _Activity("paging", sar.paging, _PAGING),
    _Activity("io", sar.transfers, {}),
    _Activity("memory", sar.memory, _MEMORY),
    _Activity("memory", sar.swap_space, _SWAP_SPACE),
    _Activity("queue", sar.queue, _QUEUE),
    _Activity("disk", sar.disks_by_name, _DISK, "disk-device"),
)


def sadf_json(readings: Sequence[Snapshot], *, hostname: str, release: str) -> dict[str, Any]:
    """Return the document; an interval is from one reading to the next."""
    stat = parse_stat(readings[0].text("stat"))
    begin = datetime.fromtimestamp(unix_time_s(readings[0]), UTC)
    parsed = [sar.SarReading(reading) for reading in readings]
    statistics = [
        _statistics(before, after, unix_time_s(reading))
        for before, after, reading in zip(parsed, parsed[1:], readings[1:], strict=False)
    ]
    host = {
        "nodename": hostname,
        "sysname": "Linux",
        "release": release,
        "machine": "x86_64",
        "number-of-cpus": len(stat.cpus),
        "file-date": f"{begin:%Y-%m-%d}",
        "file-utc-time": f"{begin:%H:%M:%S}",
        "timezone": "UTC",
        "statistics": statistics,
        "restarts": [],
    }
    return {"sysstat": {"hosts": [host]}}


def _statistics(before: sar.SarReading, after: sar.SarReading, unix_s: float) -> dict[str, Any]:
    at = datetime.fromtimestamp(unix_s, UTC)
    sums = sar.memory_gauges(after) + sar.queue_gauges(after)
    window = sar.Window(before, after, sums, 1)
    found: dict[str, Any] = {
        "timestamp": {
            "date": f"{at:%Y-%m-%d}",
            "time": f"{at:%H:%M:%S}",
            "utc": 1,
            "interval": round(window.interval_cs / 100),
        }
    }
    for activity in _ACTIVITIES:
        rows = list(activity.compute(window))
        if activity.row:
            found[activity.key] = [
                {activity.row: row.name} | _renamed(row.values, activity.names) for row in rows
            ]
        elif activity.key == "io":
            found["io"] = _io(rows[0].values)
        else:
            found.setdefault(activity.key, {}).update(_renamed(rows[0].values, activity.names))
    return found


def _renamed(values: Mapping[str, float], names: Named) -> dict[str, float]:
    return {
        name: int(values[key]) if name in _WHOLE else round(values[key], 2)
        for name, key in names.items()
    }


def _io(values: Mapping[str, float]) -> dict[str, Any]:
    """Return requests and sectors a second, in groups as sadf has them."""
    groups = (
        ("io-reads", "rtps", "reads", "bread", "read_sectors"),
        ("io-writes", "wtps", "writes", "bwrtn", "write_sectors"),
        ("io-discard", "dtps", "discards", "bdscd", "discard_sectors"),
    )
    found: dict[str, Any] = {"tps": round(values["tps"], 2)}
    for group, requests, of_requests, sectors, of_sectors in groups:
        found[group] = {
            requests: round(values[of_requests], 2),
            sectors: round(values[of_sectors], 2),
        }
    return found
