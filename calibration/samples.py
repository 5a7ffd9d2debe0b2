"""The samples table: what any recording says, in one set of columns and units.

Models: the administrator's figures without the tool that printed them.
Linux counterpart: none; the columns are named after sysstat's, their units are in the names.
Invariants: a column stands in COLUMNS with its kind and meaning before a reader may use it; sizes
are bytes, times ms, shares percent of the interval, rates per second, whatever unit the tool
printed; a value is finite; a value that stands for the time since boot says so.
Left out: derived figures (a difference, a ratio, a mean): look and fit compute them.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from sim.registry import nearest

Kind = Literal["device", "cpu", "system", "interface", "process"]


@dataclass(frozen=True, slots=True)
class Column:
    """What a column means: the kind of thing it belongs to, and its meaning with the unit."""

    kind: Kind
    meaning: str


def _columns(kind: Kind, meanings: Mapping[str, str]) -> dict[str, Column]:
    return {name: Column(kind, meaning) for name, meaning in meanings.items()}


def _directions(template: str, meaning: str) -> dict[str, str]:
    words = {"r": "read", "w": "write", "d": "discard"}
    return {
        template.format(letter=letter, word=word): meaning.format(word=word)
        for letter, word in words.items()
    }


_MEMORY: Final = {
    "total": "all",
    "used": "used, as the tool counts it",
    "free": "free",
    "available": "available without swapping",
    "shared": "shared, and in tmpfs",
    "buffers": "buffers",
    "cached": "page cache, as the tool counts it",
    "buffcache": "buffers and page cache together",
    "active": "active",
    "inactive": "inactive",
    "dirty": "dirty",
    "writeback": "on its way to a device",
    "anon": "anonymous, mapped",
    "slab": "slab",
    "committed": "promised to processes",
    "kstack": "kernel stacks",
    "pagetables": "page tables",
    "vmalloc": "vmalloc area in use",
}

# Files of /proc/pressure that are read -> what a task waits for: Documentation/accounting/psi.rst.
PRESSURES: Final[Mapping[str, str]] = {"io": "I/O", "cpu": "a CPU", "memory": "memory"}

COLUMNS: Final[Mapping[str, Column]] = {
    **_columns(
        "device",
        _directions("{letter}_per_s", "{word} requests completed per second")
        | {"f_per_s": "flush requests completed per second"}
        | {"io_per_s": "requests per second, both directions (tps)"}
        | _directions("{letter}rqm_per_s", "{word} requests merged per second")
        | _directions("{letter}rqm_pct", "share of {word} requests that were merged, %")
        | _directions("{word}_bytes_per_s", "bytes {word} per second")
        | _directions("{word}_bytes", "bytes {word} in the interval (or since boot)")
        | {
            "bytes_per_s": "bytes transferred per second, all directions",
            "write_discard_bytes_per_s": "bytes written or discarded per second (iostat -s)",
            "write_discard_bytes": "bytes written or discarded in the interval (or since boot)",
        }
        | _directions("{letter}_await_ms", "mean response time of a {word} request, ms")
        | {
            "await_ms": "mean response time of a request, ms",
            "f_await_ms": "mean response time of a flush, ms",
            "svctm_ms": "utilisation / throughput as iostat prints it, ms",
        }
        | _directions("{letter}areq_bytes", "mean size of a {word} request, bytes")
        | {
            "areq_bytes": "mean size of a request, bytes",
            "aqu_sz": "mean number of requests in queue and service",
            "rqm_per_s": "requests merged per second, both directions",
            "util_pct": "share of time with a request in flight, %",
        }
        | _directions("{word}s_total", "{word} requests completed since boot")
        | _directions("{word}_merges_total", "{word} requests merged since boot")
        | _directions("{word}_bytes_total", "bytes {word} since boot")
        | _directions("{word}_ms_total", "time of all {word} requests since boot, ms")
        | {
            "flushes_total": "flush requests completed since boot",
            "flush_ms_total": "time of all flush requests since boot, ms",
            "io_ticks_ms_total": "time with a request in flight since boot, ms",
            "time_in_queue_ms_total": "time of all requests in queue and service since boot, ms",
            "in_flight": "requests in queue and service now",
            "cached_read_bytes_per_s": "rate of reads from the page cache that hdparm -T timed",
            "buffered_read_bytes_per_s": "rate of sequential reads that hdparm -t timed",
            "direct_read_bytes_per_s": "rate of sequential O_DIRECT reads that hdparm -t timed",
            "swapspace_bytes": "size of the swap space on it, bytes",
            "swapspace_used_bytes": "swap in use on it, bytes",
            "swapspace_priority": "priority of the swap space on it",
        },
    ),
    **_columns(
        "cpu",
        {
            "user_pct": "user time, % (with niced unless nice_pct stands beside it)",
            "nice_pct": "user time of niced tasks, %",
            "system_pct": "kernel time, % (with interrupts unless irq_pct stands beside it)",
            "iowait_pct": "idle with a task waiting inside I/O, %",
            "steal_pct": "taken by the hypervisor, %",
            "irq_pct": "interrupts, %",
            "soft_pct": "softirqs, %",
            "guest_pct": "running a guest, %",
            "gnice_pct": "running a niced guest, %",
            "idle_pct": "idle without one, %",
            "clock_mhz": "clock rate, MHz",
        }
        | {
            f"{state}_ms_total": f"{state} time since boot, ms"
            for state in (
                "user",
                "nice",
                "system",
                "idle",
                "iowait",
                "irq",
                "soft",
                "steal",
                "guest",
                "gnice",
            )
        },
    ),
    **_columns(
        "system",
        {
            "load1": "load average over 1 minute, tasks",
            "load5": "load average over 5 minutes, tasks",
            "load15": "load average over 15 minutes, tasks",
            "uptime_s": "time since boot, s",
            "procs_running": "tasks running or waiting for a CPU",
            "procs_blocked": "tasks blocked by I/O as /proc/stat counts them",
            "procs_uninterruptible": "processes whose main thread sleeps uninterruptibly",
            "tasks_uninterruptible": "tasks that sleep uninterruptibly: threads, the kernel's too",
            "procs_total": "tasks, in any state",
            "intr_per_s": "interrupts per second",
            "ctxt_per_s": "context switches per second",
            "forks_per_s": "tasks made per second",
            "pgin_bytes_per_s": "bytes that block I/O brought in per second, paging and files",
            "pgout_bytes_per_s": "bytes that block I/O brought out per second, paging and files",
            "swapin_bytes_per_s": "bytes swapped in per second",
            "swapout_bytes_per_s": "bytes swapped out per second",
            "mem_free_pages_per_s": "growth of free memory in pages per second",
            "mem_buffers_pages_per_s": "growth of buffers in pages per second",
            "mem_cached_pages_per_s": "growth of the page cache in pages per second",
            "swapin_pages_per_s": "pages swapped in per second",
            "swapout_pages_per_s": "pages swapped out per second",
            "pgfault_per_s": "page faults per second, major and minor",
            "pgmajfault_per_s": "page faults that needed I/O per second",
            "refault_per_s": "file pages read again after they were reclaimed, per second",
            "reactivated_per_s": "of these, pages that a cache twice as large would have had",
            "refault_total": "file pages read again after they were reclaimed, since boot",
            "reactivated_total": "of these, pages that a cache twice as large would have had",
            "intr_total": "interrupts since boot",
            "ctxt_total": "context switches since boot",
            "forks_total": "tasks made since boot",
            "pgin_bytes_total": "bytes that block I/O brought in since boot",
            "pgout_bytes_total": "bytes that block I/O brought out since boot",
            "swapin_pages_total": "pages swapped in since boot",
            "swapout_pages_total": "pages swapped out since boot",
            "pgfault_total": "page faults since boot, major and minor",
            "pgmajfault_total": "page faults that needed I/O since boot",
            "pgfree_per_s": "pages freed per second",
            "pgscan_kswapd_per_s": "pages that kswapd scanned per second",
            "pgscan_direct_per_s": "pages scanned in direct reclaim per second",
            "pgsteal_per_s": "pages reclaimed from the caches per second",
            "vmeff_pct": "pages reclaimed of those scanned, %",
            "dirty_pages": "dirty pages of files",
            "writeback_pages": "pages on their way to a device",
        }
        | {
            f"pressure_{name}_{line}_pct": f"share of time in which {who} waited for {what}, %"
            for name, what in PRESSURES.items()
            for line, who in (("some", "a task"), ("full", "all that were not idle"))
        }
        | {f"mem_{name}_bytes": f"memory: {meaning}, bytes" for name, meaning in _MEMORY.items()}
        | {
            "swap_total_bytes": "swap space, bytes",
            "swap_used_bytes": "swap space in use, bytes",
            "swap_free_bytes": "swap space not in use, bytes",
            "swap_used_pct": "swap space in use, % of it",
            "swap_cached_bytes": "swap space whose pages are in memory too, bytes",
            "swap_cached_pct": "of the swap space in use, that whose pages are in memory too, %",
            "mem_used_pct": "memory used, as the tool counts it, % of all",
            "mem_committed_pct": "promised to processes, % of memory and swap space",
            "all_io_per_s": "requests of all disks completed per second",
            "elapsed_s": "how long a command ran, s",
            "cpu_user_s": "CPU time of a command in user mode, s",
            "cpu_system_s": "CPU time of a command in the kernel, s",
            "max_rss_bytes": "most memory that a command had resident, bytes",
            "major_faults": "page faults of a command that needed I/O",
            "minor_faults": "page faults of a command that did not",
            "voluntary_switches": "context switches of a command that waited",
            "involuntary_switches": "context switches of a command that was preempted",
            "copied_bytes": "bytes that dd copied",
            "copied_bytes_per_s": "rate at which dd copied",
            "block_events": "lines of block_dump that name a process",
            "job_runtime_s": "how long a job of fio ran, s",
            "job_user_pct": "CPU time of a job of fio in user mode, % of its run time",
            "job_system_pct": "CPU time of a job of fio in the kernel, % of its run time",
            "job_sync_ms": "mean duration of an fsync of a job of fio, ms",
        }
        | _directions("all_{letter}_per_s", "{word} requests of all disks completed per second")
        | _directions("all_{word}_bytes_per_s", "bytes {word} per second, all disks")
        | _directions("job_{letter}_per_s", "{word}s per second that a job of fio saw")
        | _directions("job_{word}_bytes_per_s", "bytes {word} per second that a job of fio saw")
        | _directions("job_{letter}_ms", "mean duration of a {word} that a job of fio saw, ms")
        | _directions("job_{letter}_p50_ms", "median of those durations ({word}), ms")
        | _directions("job_{letter}_p95_ms", "95 % quantile of those durations ({word}), ms")
        | _directions("job_{letter}_p99_ms", "99 % quantile of those durations ({word}), ms"),
    ),
    **_columns(
        "interface",
        {
            "rx_packets_per_s": "packets received per second",
            "tx_packets_per_s": "packets sent per second",
            "rx_bytes_per_s": "bytes received per second",
            "tx_bytes_per_s": "bytes sent per second",
            "rx_multicast_per_s": "multicast packets received per second",
            "ifutil_pct": "share of the line rate in use, the busier direction if full duplex, %",
        },
    ),
    **_columns(
        "process",
        {
            "process_user_pct": "user time, % of one CPU, without guests",
            "process_system_pct": "kernel time, % of one CPU",
            "process_guest_pct": "running a guest, % of one CPU",
            "process_wait_pct": "runnable without a CPU, % of the interval",
            "process_cpu_pct": "CPU time, % of one CPU (pidstat -I: of all)",
            "process_minflt_per_s": "page faults without I/O per second",
            "process_majflt_per_s": "page faults that needed I/O per second",
            "process_vsz_bytes": "address space, bytes",
            "process_rss_bytes": "resident memory, bytes",
            "process_mem_pct": "resident memory, % of all",
            "process_read_bytes_per_s": "bytes per second that it made to be read from disks",
            "process_write_bytes_per_s": "bytes per second that it made dirty, to be written",
            "process_cancelled_bytes_per_s": "of these, bytes per second that a truncate saved",
            "process_iodelay_ticks": "time blocked by block I/O in the interval, 1/100 s",
            "process_switches_per_s": "switches per second because it waited",
            "process_preempted_per_s": "switches per second because it was preempted",
            "process_asleep": "tasks of a command that sleep uninterruptibly",
        },
    ),
}


class UnknownColumn(ValueError):
    """A reader made a sample in a column that COLUMNS lacks."""

    def __init__(self, name: str) -> None:
        found = nearest(name, tuple(COLUMNS))
        super().__init__(f"no column {name!r}" + (f"; the nearest is {found!r}" if found else ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One value of one column at one time, and where it was read.

    `time_s` counts from the first time of day in the recording; None where the recording has no
    clock and the interval is not known. `report` numbers the reports of a file from 0.
    """

    time_s: float | None
    kind: Kind
    name: str
    column: str
    value: float
    since_boot: bool
    report: int
    line: int

    def __post_init__(self) -> None:
        """Check the column and the value."""
        known = COLUMNS.get(self.column)
        if known is None:
            raise UnknownColumn(self.column)
        if known.kind != self.kind:
            raise ValueError(f"column {self.column!r} belongs to a {known.kind}, not {self.kind}")
        if not math.isfinite(self.value):
            raise ValueError(f"{self.column} of {self.name}: {self.value} is not finite")

    def to_json(self) -> dict[str, Any]:
        """Return the row that `iotwin samples --json` prints."""
        return {
            "time_s": self.time_s,
            "kind": self.kind,
            "name": self.name,
            "column": self.column,
            "value": self.value,
            "since_boot": self.since_boot,
            "report": self.report,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A line that was not taken, and why."""

    line: int
    text: str
    why: str

    def __str__(self) -> str:
        shown = self.text if len(self.text) <= 60 else self.text[:57] + "..."
        return f"line {self.line}: {self.why}: {shown!r}"


@dataclass(frozen=True, kw_only=True)
class Recording:
    """What one file said: samples, what was skipped, and facts such as kernel, cpus, tool.

    Facts have the names of FACTS; a value is text as recorded.
    """

    source: str
    formats: tuple[str, ...]
    samples: tuple[Sample, ...]
    problems: tuple[Problem, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)

    def select(
        self, column: str, name: str | None = None, *, since_boot: bool = False
    ) -> list[Sample]:
        """Return the samples of a column (of one device, of one CPU), in the order recorded."""
        if column not in COLUMNS:
            raise UnknownColumn(column)
        return [
            sample
            for sample in self.samples
            if sample.column == column
            and (name is None or sample.name == name)
            and sample.since_boot == since_boot
        ]

    def names(self, kind: Kind) -> list[str]:
        """Return the devices, or CPUs, in the order in which they appear first."""
        return list(dict.fromkeys(s.name for s in self.samples if s.kind == kind))


FACTS: Final[Mapping[str, str]] = {
    "tool": "the program that printed, with its generation where that can be told",
    "kernel": "release as in uname -r",
    "hostname": "name of the host",
    "arch": "machine as in uname -m",
    "cpus": "number of CPUs",
    "date": "date of the first report, as recorded",
    "start": "time of day of the first report, ISO 8601, with the date where that is known",
    "interval_s": "interval between reports, seconds, from their clocks",
    "memory_bytes": "memory of the host",
    "cpu_model": "name of the CPU, as in /proc/cpuinfo",
    "cpu_mhz": "clock rate of the first CPU, MHz",
    "command": "command line, where the recording holds it",
    "ends_in_table": "yes: the text ends inside a table, of which rows may be missing",
}


def merge(parts: Iterable[Recording], source: str) -> Recording:
    """Return several files of one server as one recording: samples in the order given.

    Facts of earlier files win.
    """
    files = list(parts)
    facts: dict[str, str] = {}
    for part in reversed(files):
        facts.update(part.facts)
    return Recording(
        source=source,
        formats=tuple(dict.fromkeys(name for part in files for name in part.formats)),
        samples=tuple(sample for part in files for sample in part.samples),
        problems=tuple(problem for part in files for problem in part.problems),
        facts=facts,
    )
