"""Counters under node_exporter's names, as the lines of /proc that they were read from.

Models: node_exporter (0.17 on) read backwards.
Linux counterpart: node_exporter collector/diskstats_linux.go, cpu_linux.go, stat_linux.go,
loadavg.go, meminfo.go, vmstat_linux.go: each metric is a number of /proc, in base units.
Invariants: the arithmetic of rates is ProcReader's; seconds become the ms and ticks that they were;
of several hosts none is taken: their counters must not be subtracted from each other's; a moment at
which no counter of a CPU or disk differs from the one before is the same scrape again.
Left out: node_exporter before 0.17 (times in ms, sectors); file systems, network, sensors,
pressure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from calibration.readers.clock import YEARS, Moment
from calibration.readers.line import Line, Sink
from calibration.readers.proc import STAT_LINES, ProcReader
from calibration.readers.stamp import learn_stamp

Labels = Mapping[str, str]
Scrape = dict[str, list[tuple[Labels, float]]]  # name -> values with their labels

TIME: Final = "node_time_seconds"
BOOT: Final = "node_boot_time_seconds"
UNAME: Final = "node_uname_info"
CPU: Final = "node_cpu_seconds_total"
GUEST: Final = "node_cpu_guest_seconds_total"
# In the order of /proc/diskstats; factor: seconds to ms, bytes to sectors.
DISK: Final[Sequence[tuple[str, float]]] = (
    ("node_disk_reads_completed_total", 1),
    ("node_disk_reads_merged_total", 1),
    ("node_disk_read_bytes_total", 1 / 512),
    ("node_disk_read_time_seconds_total", 1000),
    ("node_disk_writes_completed_total", 1),
    ("node_disk_writes_merged_total", 1),
    ("node_disk_written_bytes_total", 1 / 512),
    ("node_disk_write_time_seconds_total", 1000),
    ("node_disk_io_now", 1),
    ("node_disk_io_time_seconds_total", 1000),
    ("node_disk_io_time_weighted_seconds_total", 1000),
)
DISCARDS: Final[Sequence[tuple[str, float]]] = (
    ("node_disk_discards_completed_total", 1),
    ("node_disk_discards_merged_total", 1),
    ("node_disk_discarded_sectors_total", 1),
    ("node_disk_discard_time_seconds_total", 1000),
)
FLUSHES: Final[Sequence[tuple[str, float]]] = (
    ("node_disk_flush_requests_total", 1),
    ("node_disk_flush_requests_time_seconds_total", 1000),
)
COUNTED_MAX: Final = 2.0**64
HOST: Final = (("release", "kernel"), ("nodename", "hostname"), ("machine", "arch"))
MODES: Final = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
# Lines that hold one number -> what is printed before it.
SINGLE: Final[Mapping[str, str]] = {
    "node_intr_total": "intr",
    "node_context_switches_total": "ctxt",
    "node_forks_total": "processes",
    "node_procs_running": "procs_running",
    "node_procs_blocked": "procs_blocked",
    "node_vmstat_pgpgin": "pgpgin",
    "node_vmstat_pgpgout": "pgpgout",
    "node_vmstat_pswpin": "pswpin",
    "node_vmstat_pswpout": "pswpout",
    "node_vmstat_pgfault": "pgfault",
    "node_vmstat_pgmajfault": "pgmajfault",
}
MEMORY: Final = "node_memory_"
LOADS: Final = ("node_load1", "node_load5", "node_load15")
NAMES: Final = frozenset(
    {TIME, BOOT, UNAME, CPU, GUEST, *SINGLE, *LOADS}
    | {name for name, _factor in (*DISK, *DISCARDS, *FLUSHES)}
)


def is_taken(name: str) -> bool:
    """Tell whether a metric says anything of what is read."""
    return name in NAMES or name.startswith(MEMORY)


@dataclass
class ScrapeReader:
    """Gives the scrapes of one host to a reader of /proc, in the order of their times."""

    sink: Sink
    taken: int = 0
    _proc: ProcReader = field(init=False)
    _before: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin before the first scrape."""
        self._proc = ProcReader(self.sink)

    def take(self, line: Line, scrape: Scrape, at_s: float | None) -> None:
        """Take a scrape; `at_s` is its time since 1970, if it is known from outside of it."""
        counters = [*_diskstats(scrape), *_cpus(scrape)]
        if not counters or counters == self._before:
            return
        self._before = counters
        stated = _one(scrape, TIME)
        now_s = stated if stated is not None else at_s
        if now_s is not None:
            self._stamp(now_s)
        self._learn(scrape)
        for text in (*counters, *_others(scrape), *_uptime(scrape, now_s)):
            self._proc.feed(Line(line.number, text))
        self.taken += 1

    def close(self) -> None:
        """Give the last scrape."""
        self._proc.close()

    def _stamp(self, now_s: float) -> None:
        moment = datetime.fromtimestamp(round(now_s, 3), UTC)
        stamp = Moment(clock=moment.time(), dates={"ymd": moment.date()})
        self.sink.stamp_s = learn_stamp(self.sink, stamp)
        self.sink.stamps += 1

    def _learn(self, scrape: Scrape) -> None:
        for labels, _value in scrape.get(UNAME, ()):
            for label, fact in HOST:
                if labels.get(label):
                    self.sink.learn(fact, labels[label])


def proc_texts(scrape: Scrape, at_s: float) -> dict[str, str]:
    """Return the files of /proc that a scrape was read from.

    `at_s` is its time since 1970, if it does not say it itself. Nothing if no counter of a CPU or
    of a disk is in it.
    """
    counters = {"diskstats": [*_diskstats(scrape)], "stat": [*_cpus(scrape)]}
    if not all(counters.values()):
        return {}
    stated = _one(scrape, TIME)
    now_s = stated if stated is not None else at_s
    others = [*_others(scrape)]
    single = {line.split()[0] for line in others}
    stat = [line for line in others if line.split()[0] in STAT_LINES]
    stat += [f"{name} 0" for name in STAT_LINES if name not in single]
    files = counters | {
        "uptime": [*_uptime(scrape, now_s)] or [f"{now_s:.2f} 0.00"],
        "meminfo": [line for line in others if line.endswith(" kB")],
        "vmstat": [line for line in others if line.startswith(("pg", "psw"))],
        "loadavg": [line for line in others if line.endswith(" 0/0 0")],
    }
    files["stat"] = files["stat"] + stat
    return {
        f"/proc/{name}": "".join(f"{line}\n" for line in lines)
        for name, lines in files.items()
        if lines
    }


def is_counted(value: float) -> bool:
    """Tell whether a value can be one of /proc: of 64 bits, and never below 0."""
    return 0 <= value <= COUNTED_MAX  # no NaN is


def is_time(seconds: float) -> bool:
    """Tell whether seconds since 1970 lie in the years of recordings."""
    return 86400 <= seconds < (YEARS.stop - 1971) * 365 * 86400


def hosts_of(labels: Iterator[Labels]) -> list[str]:
    """Return the hosts that series are of."""
    return list(dict.fromkeys(one.get("instance", "") for one in labels))


def _one(scrape: Scrape, name: str) -> float | None:
    values = scrape.get(name)
    if not values or (name == TIME and not is_time(values[0][1])):
        return None
    return values[0][1]


def _by(scrape: Scrape, name: str, label: str) -> dict[str, float]:
    return {labels[label]: value for labels, value in scrape.get(name, ()) if label in labels}


def _diskstats(scrape: Scrape) -> Iterator[str]:
    """Yield rows of /proc/diskstats; none of a device of which a column is missing."""
    known = {name: _by(scrape, name, "device") for name, _factor in (*DISK, *DISCARDS, *FLUSHES)}
    for device in known[DISK[0][0]]:
        columns = list(DISK)
        for more in (DISCARDS, FLUSHES):
            if all(device in known[name] for name, _factor in more):
                columns += more
        if all(device in known[name] for name, _factor in columns) and not set(device) & set(" \t"):
            words = (_whole(known[name][device] * factor) for name, factor in columns)
            yield f"0 0 {device} {' '.join(words)}"


def _cpus(scrape: Scrape) -> Iterator[str]:
    """Yield the lines of the CPUs, that of all first."""
    ticks: dict[str, dict[str, float]] = {}
    for labels, value in scrape.get(CPU, ()):
        ticks.setdefault(labels.get("cpu", ""), {})[labels.get("mode", "")] = value * 100
    rows = [
        [round(modes.get(mode, 0.0)) for mode in MODES]
        for cpu, modes in ticks.items()
        if cpu.isdecimal() and "idle" in modes
    ]
    names = [cpu for cpu, modes in ticks.items() if cpu.isdecimal() and "idle" in modes]
    if rows:
        yield f"cpu {' '.join(str(sum(column)) for column in zip(*rows, strict=True))}"
    for name, row in zip(names, rows, strict=True):
        yield f"cpu{name} {' '.join(map(str, row))}"


def _others(scrape: Scrape) -> Iterator[str]:
    for name, word in SINGLE.items():
        value = _one(scrape, name)
        if value is not None:
            yield f"{word} {_whole(value)}"
    for name, values in scrape.items():
        if name.startswith(MEMORY) and name.endswith("_bytes"):
            yield f"{name[len(MEMORY) : -len('_bytes')]}: {_whole(values[0][1] / 1024)} kB"
    loads = [_one(scrape, name) for name in LOADS]
    if None not in loads:
        yield f"{' '.join(f'{load:.2f}' for load in loads)} 0/0 0"


def _uptime(scrape: Scrape, now_s: float | None) -> Iterator[str]:
    boot = _one(scrape, BOOT)
    if boot is not None and now_s is not None and now_s > boot:
        yield f"{now_s - boot:.2f} 0.00"


def _whole(value: float) -> str:
    return str(round(value))
