"""Tracepoints: what happened, when, under the kernel's names.

Models: Linux's static tracepoints and its ring buffer. A place worth watching says

    if tracer.enabled:
        tracer.emit("block_rq_issue", disk.name, request.sector, request.nr_sectors)

so that a run without tracing pays one attribute look-up there and nothing else.

Linux counterpart: include/trace/events/*.h, kernel/trace/trace.c (trace_pipe, trace_marker).

Invariants: records are in order of time; a ring keeps the newest ``size`` records and counts the
others as dropped; while disabled, nothing is kept.

Left out: filters on fields, stack traces, per-CPU buffers, BPF but as a sink.
"""

from collections import deque
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from sim.engine.calendar import Calendar
from sim.units import NS_PER_S

# Field names, for printing; the kernel's own where it has them. What a probe program would look up
# elsewhere at that moment follows them: who woke (by_pid; 0: an interrupt), where a task sleeps and
# its CPU time so far (cpu_ns: with what it still owes), since when a request exists (start_ns) and
# with which flags (of sim.block.bio). A name that is not here is printed with its arguments as they
# are.
TRACEPOINTS: dict[str, tuple[str, ...]] = {
    "block_bio_queue": ("dev", "rwbs", "sector", "nr_sector"),
    "block_bio_frontmerge": ("dev", "rwbs", "sector", "nr_sector", "flags", "nr_bio"),
    "block_bio_backmerge": ("dev", "rwbs", "sector", "nr_sector", "flags", "nr_bio"),
    "block_getrq": ("dev", "rwbs", "sector", "nr_sector", "start_ns", "flags"),
    "block_sleeprq": ("dev", "rwbs", "sector", "nr_sector", "flags", "nr_bio"),
    "block_rq_insert": ("dev", "rwbs", "sector", "nr_sector", "start_ns", "flags"),
    "block_rq_merge": ("dev", "rwbs", "sector", "nr_sector", "start_ns", "flags"),
    "block_rq_issue": ("dev", "rwbs", "sector", "nr_sector", "start_ns", "flags"),
    "block_rq_complete": ("dev", "rwbs", "sector", "nr_sector", "start_ns", "flags"),
    "block_plug": ("dev",),
    "block_unplug": ("dev", "nr_rq"),
    "block_unplug_timer": ("dev", "nr_rq"),
    "disk_access": ("dev", "sector", "overhead_ns", "seek_ns", "rotation_ns", "transfer_ns"),
    "sched_switch": (
        "cpu",
        "prev_comm",
        "prev_pid",
        "prev_state",
        "next_comm",
        "next_pid",
        "prev_wchan",
        "prev_utime_ns",
        "prev_stime_ns",
    ),
    "sched_wakeup": ("comm", "pid", "cpu", "by_pid"),
    "sched_process_fork": ("comm", "pid", "child_comm", "child_pid"),
    "sched_process_exit": ("comm", "pid"),
    "jbd_start_commit": ("dev", "transaction"),
    "jbd_end_commit": ("dev", "transaction"),
    "jbd_checkpoint": ("dev", "transaction"),
    "ext4_fc_commit_start": ("dev", "tid"),
    "ext4_fc_commit_stop": ("dev", "nblks", "tid"),
    "xlog_iclog_syncing": ("dev", "lsn"),
    "xlog_iclog_sync_done": ("dev", "lsn"),
    "sys_enter": ("comm", "pid", "name", "cpu_ns"),
    "sys_exit": ("comm", "pid", "name", "ret", "cpu_ns"),
    "writeback_start": ("dev", "nr_pages"),
    "writeback_dirty_inode": ("dev", "ino"),
    "balance_dirty_pages": ("comm", "pid", "pause_ns"),
    "tcp_retransmit_syn": ("port", "attempt"),
    "sock_rcv": ("comm", "pid", "by_pid", "sent_ns"),
    "trace_marker": ("text",),
    "usdt": ("comm", "pid", "name", "cpu_ns"),
}


class Record(NamedTuple):
    """One tracepoint hit."""

    when_ns: int
    name: str
    args: tuple[Any, ...]


class Tracer:
    """The tracepoints of one machine: off until ``start()``."""

    __slots__ = ("_calendar", "_patterns", "_records", "_sink", "_wanted", "dropped", "enabled")

    def __init__(self, calendar: Calendar) -> None:
        self.enabled: bool = False
        self.dropped: int = 0  # records that a full ring forgot
        self._calendar = calendar
        self._records: deque[Record] = deque()
        self._patterns: tuple[str, ...] = ()
        self._sink: Callable[[Record], None] | None = None
        self._wanted: dict[str, bool] = {}  # name -> does a pattern match

    def start(
        self,
        *patterns: str,
        size: int | None = None,
        sink: Callable[[Record], None] | None = None,
    ) -> None:
        """Keep records whose name matches a pattern ("block_rq_*"; none: all), newest ``size``.

        With a sink none is kept: it is called with each, and must change nothing in the twin.
        """
        self._sink = sink
        self._patterns = patterns or ("*",)
        self._wanted = {}
        self._records = deque(self._records, maxlen=size)
        self.enabled = True

    def stop(self) -> None:
        """Keep what was recorded, record no more."""
        self.enabled = False

    def emit(self, name: str, *args: Any) -> None:
        """Record that tracepoint ``name`` was hit now; call only ``if tracer.enabled``."""
        wanted = self._wanted.get(name)
        if wanted is None:
            wanted = any(fnmatchcase(name, pattern) for pattern in self._patterns)
            self._wanted[name] = wanted
        if not wanted or not self.enabled:
            return
        if self._sink is not None:
            self._sink(Record(self._calendar.now, name, args))
            return
        if len(self._records) == self._records.maxlen:
            self.dropped += 1
        self._records.append(Record(self._calendar.now, name, args))

    def trace_marker(self, text: str) -> None:
        """Write a note into the trace, as into /sys/kernel/debug/tracing/trace_marker."""
        if self.enabled:
            self.emit("trace_marker", text)

    def records(self) -> list[Record]:
        """Return the records kept, oldest first."""
        return list(self._records)

    def names(self) -> list[str]:
        """Return the names hit, in order: what a test of a sequence compares."""
        return [record.name for record in self._records]

    def clear(self) -> None:
        """Forget all records."""
        self._records.clear()
        self.dropped = 0


def format_record(record: Record) -> str:
    """Return a record as a line of trace_pipe: ``   12.004211: block_rq_issue: dev=sdb ...``."""
    seconds, rest_ns = divmod(record.when_ns, NS_PER_S)
    fields = TRACEPOINTS.get(record.name, ())
    named = [f"{name}={value}" for name, value in zip(fields, record.args, strict=False)]
    words = named + [str(value) for value in record.args[len(fields) :]]
    return f"{seconds:5d}.{rest_ns // 1000:06d}: {record.name}: {' '.join(words)}"
