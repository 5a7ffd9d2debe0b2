"""Readings of /proc under the names of node_exporter: Prometheus text and OpenMetrics.

Models: what node_exporter 1.5 makes of loadavg, stat, diskstats, meminfo, vmstat with its default
options: names, labels, units, which devices and which lines of vmstat.
Linux counterpart: none; node_exporter's collector/*_linux.go; the formats: Prometheus' exposition
 format 0.0.4, OpenMetrics 1.0.
Invariants: a reading of the same texts gives node_exporter's figures (tests/oracle). All points of
 a metric stand together, in order of time. Times are of the server's clock (btime of /proc/stat).
Left out: metrics of other collectors; partitions, as in node_exporter; exemplars.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from sim.tools.parse import (
    DISK_COLUMNS,
    DiskRow,
    parse_diskstats,
    parse_loadavg,
    parse_meminfo,
    parse_stat,
    parse_vmstat,
)
from sim.tools.snapshot import Snapshot
from sim.units import NS_PER_S

GAUGE: Final = "gauge"
COUNTER: Final = "counter"
UNTYPED: Final = "untyped"
SECTOR: Final = 512
USER_HZ: Final = 100
# --collector.diskstats.device-exclude and --collector.vmstat.fields, as they are by default.
PARTITIONS: Final = re.compile(r"(z?ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\d+n\d+p)\d+")
VMSTAT: Final = re.compile(r"oom_kill|pgpg.*|pswp.*|pg.*fault.*")
CPU_MODES: Final = ("idle", "iowait", "irq", "nice", "softirq", "steal", "system", "user")
# metric, the counter of a row, what one of it is in the metric's unit
DISK: Final = (
    ("reads_completed_total", "reads", 1),
    ("reads_merged_total", "read_merges", 1),
    ("read_bytes_total", "read_sectors", SECTOR),
    ("read_time_seconds_total", "read_ms", 0.001),
    ("writes_completed_total", "writes", 1),
    ("writes_merged_total", "write_merges", 1),
    ("written_bytes_total", "write_sectors", SECTOR),
    ("write_time_seconds_total", "write_ms", 0.001),
    ("io_now", "in_flight", 1),
    ("io_time_seconds_total", "io_ticks_ms", 0.001),
    ("io_time_weighted_seconds_total", "time_in_queue_ms", 0.001),
    ("discards_completed_total", "discards", 1),
    ("discards_merged_total", "discard_merges", 1),
    ("discarded_sectors_total", "discard_sectors", 1),
    ("discard_time_seconds_total", "discard_ms", 0.001),
    ("flush_requests_total", "flushes", 1),
    ("flush_requests_time_seconds_total", "flush_ms", 0.001),
)
_HELP: Final = {
    "node_load": "Load average.",
    "node_cpu": "Seconds that the CPUs spent in each mode.",
    "node_disk": "Field of /proc/diskstats.",
    "node_memory": "Line of /proc/meminfo.",
    "node_vmstat": "Line of /proc/vmstat.",
}


class Metric(NamedTuple):
    """One figure of one reading."""

    name: str
    kind: str
    labels: tuple[tuple[str, str], ...]
    value: float


def metrics(reading: Snapshot) -> Iterator[Metric]:
    """Yield all figures of a reading, those of a name together."""
    yield from _load(reading)
    yield from _cpu(reading)
    yield from _disks(reading)
    for name, value in parse_meminfo(reading.text("meminfo")).items():
        counted = name.startswith("HugePages_")
        plain = name.replace("(", "_").replace(")", "")
        metric = f"node_memory_{plain}" + ("" if counted else "_bytes")
        yield Metric(metric, GAUGE, (), value if counted else value * 1024)
    for name, value in parse_vmstat(reading.text("vmstat")).items():
        if VMSTAT.fullmatch(name):
            yield Metric(f"node_vmstat_{name}", UNTYPED, (), value)


def unix_time_s(reading: Snapshot) -> float:
    """Return what the server's clock showed, seconds since 1970."""
    return parse_stat(reading.text("stat")).btime_s + reading.t_ns / NS_PER_S


def _load(reading: Snapshot) -> Iterator[Metric]:
    load = parse_loadavg(reading.text("loadavg"))
    for name, value in (("1", load.load1), ("15", load.load15), ("5", load.load5)):
        yield Metric(f"node_load{name}", GAUGE, (), value)


def _cpu(reading: Snapshot) -> Iterator[Metric]:
    stat = parse_stat(reading.text("stat"))
    for number, ticks in sorted(stat.cpus.items()):
        for mode in CPU_MODES:
            labels = (("cpu", str(number)), ("mode", mode))
            seconds = getattr(ticks, mode) / USER_HZ
            yield Metric("node_cpu_seconds_total", COUNTER, labels, seconds)
    yield Metric("node_boot_time_seconds", GAUGE, (), stat.btime_s)
    yield Metric("node_context_switches_total", COUNTER, (), stat.ctxt)
    yield Metric("node_forks_total", COUNTER, (), stat.processes)
    yield Metric("node_intr_total", COUNTER, (), stat.intr)
    yield Metric("node_procs_blocked", GAUGE, (), stat.procs_blocked)
    yield Metric("node_procs_running", GAUGE, (), stat.procs_running)
    yield Metric("node_time_seconds", GAUGE, (), unix_time_s(reading))


def _disks(reading: Snapshot) -> Iterator[Metric]:
    text = reading.text("diskstats")
    rows = [row for row in parse_diskstats(text) if not PARTITIONS.fullmatch(row.name)]
    widest = max((len(line.split()) - 3 for line in text.splitlines()), default=0)
    there = DISK_COLUMNS.get(widest, ())
    for metric, counter, unit in DISK:
        if counter in there:
            kind = GAUGE if counter == "in_flight" else COUNTER
            yield from (_disk(row, f"node_disk_{metric}", kind, counter, unit) for row in rows)


def _disk(row: DiskRow, name: str, kind: str, counter: str, unit: float) -> Metric:
    count = getattr(row, counter)
    # A division is right to the last digit, as a product with 0.001 is not.
    value = count / 1000 if unit == 0.001 else count * unit
    return Metric(name, kind, (("device", row.name),), value)


def prometheus_text(reading: Snapshot) -> str:
    """Return a reading as a target of Prometheus shows it when it is asked."""
    lines: list[str] = []
    last = ""
    for metric in metrics(reading):
        if metric.name != last:
            lines += [f"# HELP {metric.name} {_help(metric.name)}"]
            lines += [f"# TYPE {metric.name} {metric.kind}"]
            last = metric.name
        lines.append(f"{metric.name}{_labels(metric.labels)} {_number(metric.value)}")
    return "".join(f"{line}\n" for line in lines)


def open_metrics(readings: Iterable[Snapshot], more: Mapping[str, str]) -> Iterator[str]:
    """Yield all readings of a run as OpenMetrics, each point with its time; `more` are labels."""
    families: dict[str, dict[str, list[str]]] = {}  # by head; by name and labels
    for reading in readings:
        at = _number(unix_time_s(reading))
        for metric in metrics(reading):
            name = metric.name + _labels((*metric.labels, *more.items()))
            point = f"{name} {_number(metric.value)} {at}\n"
            kind = "unknown" if metric.kind == UNTYPED else metric.kind
            family = metric.name.removesuffix("_total") if kind == COUNTER else metric.name
            head = f"# TYPE {family} {kind}\n# HELP {family} {_help(metric.name)}\n"
            families.setdefault(head, {}).setdefault(name, []).append(point)
    for head, metric_points in families.items():
        yield head + "".join(point for points in metric_points.values() for point in points)
    yield "# EOF\n"


def _help(name: str) -> str:
    found = (text for beginning, text in _HELP.items() if name.startswith(beginning))
    return next(found, "Line of /proc/stat.")


def _labels(labels: Iterable[tuple[str, str]]) -> str:
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{inside}}}" if inside else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    """Return a number with all of its digits, whole ones without a point."""
    return str(int(value)) if value == int(value) else repr(value)
