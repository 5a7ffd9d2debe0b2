"""A run as Perfetto's trace: ui.perfetto.dev draws it, trace_processor answers SQL about it.

Models: a phone's or a server's recording with ftrace and track events. What the kernel traces is
there as ftrace events: switches of tasks, wake-ups, new tasks, where a task is blocked. Perfetto
makes of them who runs on each CPU and what state each task is in. All else is track events:

    a task's own track     its transactions, and within them its system calls
    a disk: queue, drive   each request while it waits in the queue, and in the driver
    a disk: counters       requests that wait, requests in the driver
    journal of a device    each commit (of XFS: each write of the log)
    counters               load average, tasks that it counts, dirty pages, pages under writeback

A request that is in the queue or the driver beside others needs a track of its own. Those of one
name are drawn together. What began before the time begins with it.

The format: a file is TracePackets, each a protobuf message. Protobuf by hand: a field is a varint
of its number and its wire type, and a value: a varint, eight bytes, or a length and so many bytes.
Names that come often are sent once and numbered (interned).

Estimate: a switch is 75 bytes, a wake-up 45, a slice 40: ten seconds of the sendmail storm with
10,800 switches, 6,000 wake-ups, 5,600 calls and transactions and 1,900 requests are 1.5 MB.

Linux counterpart: none; include/trace/events/sched.h says what the events tell. The messages:
 protos/perfetto/trace/{trace_packet,track_event/*,ftrace/*,ps/process_tree}.proto of Perfetto 40 to
 59. How they are read: ftrace_parser.cc, thread_state_tracker.cc of its trace_processor.
Invariants: packets of one track are in order of time; a task's running time is the CPU time that it
 was charged, and the interrupts that it was interrupted by; a task's slices lie within each other.
Left out: priorities; requests that are still in the queue when the time ends, but in the counter;
 the exit of tasks but as their last state; pages of single devices.

A task's effects may precede their cost in CPU time (sim/sched/task.py). A transaction or a call
begins and ends when the CPU time that its task owed then is spent, as in timeline.py.
"""

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import Any, BinaryIO, ClassVar, Final, NamedTuple

from sim.block.bio import FLUSH
from sim.engine.trace import Record
from sim.machine import BTIME_S, Machine
from sim.mm.params import PAGE_SIZE
from sim.sched.loadavg import FIXED_1
from sim.study.blktrace import moment, rwbs
from sim.study.timeline import spent_within
from sim.study.waits import kernel_name
from sim.units import NS_PER_MS, NS_PER_S

SAMPLE_NS: Final = 10 * NS_PER_MS  # of counters that are looked at
SEQUENCE_ID: Final = 1  # trusted_packet_sequence_id: all packets are one writer's
HARDIRQ: Final = 8  # TRACE_FLAG_HARDIRQ, include/linux/trace_events.h
CLOCK_REALTIME: Final = 1  # of ClockSnapshot
CLOCK_BOOTTIME: Final = 6  # the clock of all times here
# What sched_switch says of the state in which a task leaves the CPU; X: EXIT_DEAD of 3.14 on.
STATES: Final = {"R": 0, "S": 1, "D": 2, "Z": 16, "X": 16}
GONE: Final = frozenset("ZX")
SLICE_BEGIN: Final = 1
SLICE_END: Final = 2
COUNTER: Final = 4
UNIT_COUNT: Final = 2
UNIT_SIZE_BYTES: Final = 3
_DOUBLE: Final = Struct("<d")


# --- Protobuf


def varint(number: int) -> bytes:
    """Return a number in groups of seven bits, least first; the last has no eighth bit set."""
    if number < 0x80:
        return bytes((number,))
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def number(field: int, value: int) -> bytes:
    """Return a field that is a number, which is not negative."""
    assert value >= 0
    return varint(field << 3) + varint(value)


def double(field: int, value: float) -> bytes:
    """Return a field that is a floating-point number."""
    return varint(field << 3 | 1) + _DOUBLE.pack(value)


def message(field: int, content: bytes) -> bytes:
    """Return a field that is a message, or bytes."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def text(field: int, value: str) -> bytes:
    """Return a field that is a text."""
    return message(field, value.encode())


class PacketFile:
    """Writes TracePackets, and keeps what has a number."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._interned: dict[tuple[int, str], int] = {}
        self._last_track: int = 0
        # SEQ_INCREMENTAL_STATE_CLEARED: no number was given before.
        self._file.write(message(1, number(10, SEQUENCE_ID) + number(13, 1)))

    def packet(self, content: bytes) -> None:
        """Write one packet; it may use numbers (SEQ_NEEDS_INCREMENTAL_STATE)."""
        self._file.write(message(1, content + number(10, SEQUENCE_ID) + number(13, 2)))

    def intern(self, field: int, name: str) -> int:
        """Return the number of a name in a field of InternedData; tell it at its first use."""
        known = self._interned.get((field, name))
        if known is None:
            known = self._interned[field, name] = len(self._interned) + 1
            self.packet(message(12, message(field, number(1, known) + text(2, name))))
        return known

    def track(self, content: bytes, parent: int = 0) -> int:
        """Describe a new track; return its number (TrackDescriptor.uuid)."""
        self._last_track += 1
        inside = number(5, parent) if parent else b""
        self.packet(message(60, number(1, self._last_track) + inside + content))
        return self._last_track

    def ftrace(self, cpu: int, now_ns: int, pid: int, event: bytes) -> None:
        """Write an ftrace event."""
        entry = number(1, now_ns) + number(2, pid) + event
        self.packet(message(1, number(1, cpu) + message(2, entry)))

    def slice_begin(self, now_ns: int, track: int, name: bytes) -> None:
        """Begin a slice of a track; `name` is the field that says its name."""
        event = number(9, SLICE_BEGIN) + number(11, track) + name
        self.packet(number(8, now_ns) + message(11, event))

    def slice_end(self, now_ns: int, track: int) -> None:
        """End the slice of the track that began last."""
        event = number(9, SLICE_END) + number(11, track)
        self.packet(number(8, now_ns) + message(11, event))

    def counter(self, now_ns: int, track: int, value: bytes) -> None:
        """Tell the value of a counter; `value` is the field that has it."""
        event = number(9, COUNTER) + number(11, track) + value
        self.packet(number(8, now_ns) + message(11, event))


# --- What the tracks show


class _Lanes:
    """Tracks of one name for things that overlap: each is drawn where nothing else is."""

    def __init__(self, out: PacketFile, name: str, parent: int) -> None:
        self._out = out
        self._name = name
        self._parent = parent
        self._free: list[tuple[int, int]] = []  # sorted: until when a track is taken, which

    def draw(self, start_ns: int, end_ns: int | None, name: str) -> None:
        """Draw from start to end (None: beyond the end of the trace)."""
        at = bisect_right(self._free, start_ns, key=_until)
        if at:  # The one that ended last before it: the others suit what began earlier.
            _, track = self._free.pop(at - 1)
        else:
            track = self._out.track(text(2, self._name), self._parent)
        self._out.slice_begin(start_ns, track, text(23, name))
        if end_ns is not None:
            self._out.slice_end(end_ns, track)
            insort(self._free, (end_ns, track))


def _until(lane: tuple[int, int]) -> int:
    return lane[0]


class _Counter:
    """A counter that is written when it has changed."""

    def __init__(
        self,
        out: PacketFile,
        name: str,
        unit: int,
        look: Callable[[], int | float],
        parent: int = 0,
    ) -> None:
        self._out = out
        self._track = out.track(text(2, name) + message(8, number(3, unit)), parent)
        self._look = look
        self._told: int | float = -1

    def tell(self, now_ns: int) -> None:
        """Write its value, if that is another one."""
        value = self._look()
        if value != self._told:
            self._told = value
            field = double(44, value) if isinstance(value, float) else number(30, value)
            self._out.counter(now_ns, self._track, field)


class _Request(NamedTuple):
    """A request in the driver."""

    issued_ns: int
    name: str


class _Disk:
    """A disk's requests: how many wait, which are in the driver."""

    def __init__(self) -> None:
        self.waiting: int = 0
        self.in_driver: int = 0
        self.requests: dict[tuple[int, int], deque[_Request]] = {}  # by op and sector
        self.queue: _Lanes | None = None  # tracks, as soon as the time has begun
        self.drive: _Lanes | None = None
        self.counters: tuple[_Counter, ...] = ()
        self.changed: bool = False

    def show(self, out: PacketFile, name: str) -> None:
        """Describe its tracks."""
        group = out.track(text(2, f"disk {name}"))
        self.queue = _Lanes(out, "queue", group)
        self.drive = _Lanes(out, "drive", group)
        self.counters = (
            _Counter(out, f"{name}: waiting", UNIT_COUNT, lambda: self.waiting, group),
            _Counter(out, f"{name}: in the drive", UNIT_COUNT, lambda: self.in_driver, group),
        )
        self.changed = True

    def issue(self, now_ns: int, op: int, sector: int, name: str) -> None:
        """Note a request that goes to the driver."""
        self.waiting -= op != FLUSH
        self.in_driver += 1
        self.requests.setdefault((op, sector), deque()).append(_Request(now_ns, name))
        self.changed = True

    def complete(self, op: int, sector: int) -> _Request | None:
        """Return the request that ends, None for one that never was in the driver."""
        found = self.requests.get((op, sector))
        if found is None:
            return None
        request = found.popleft()
        if not found:
            del self.requests[op, sector]
        self.in_driver -= 1
        self.changed = True
        return request


class _Edge(NamedTuple):
    """A beginning or an end: with what CPU time spent it counts."""

    now_ns: int
    cpu_ns: int
    name: str
    begins: bool


class _Task:
    """A task's state, and what it is in."""

    def __init__(self, comm: str, cpu: int, state: str) -> None:
        self.comm = comm
        self.cpu = cpu  # where it ran last
        self.state = state  # as sched_switch says it; "": it runs
        self.wchan: str = ""
        self.is_iowait: bool = False
        self.since_ns: int = 0  # on its CPU
        self.cpu_ns: int = 0  # spent before that
        self.edges: list[_Edge] = []  # of which the CPU time is not spent
        self.inside: list[str] = []  # transactions and calls, outermost first
        self.track: int = 0  # 0: it has none yet


class Perfetto:
    """Takes the records of a tracer, and writes those of a time into a file."""

    NAMES: ClassVar[frozenset[str]] = frozenset(
        (
            "block_getrq",
            "block_rq_complete",
            "block_rq_issue",
            "block_rq_merge",
            "ext4_fc_commit_start",
            "ext4_fc_commit_stop",
            "jbd_end_commit",
            "jbd_start_commit",
            "sched_process_fork",
            "sched_switch",
            "sched_wakeup",
            "sys_enter",
            "sys_exit",
            "usdt",
            "xlog_iclog_sync_done",
            "xlog_iclog_syncing",
        )
    )

    def __init__(self, machine: Machine, file: BinaryIO) -> None:
        self._machine = machine
        self._file = file
        self._out: PacketFile | None = None  # from the beginning of the time on
        self._from_ns: int = 0
        self._now_ns: int = 0  # of the latest record
        self._sampled_ns: int = 0
        self._disks: dict[str, _Disk] = {disk.name: _Disk() for disk in machine.disks}
        self._commits: dict[tuple[str, str], int] = {}  # under way: since when
        self._journals: dict[str, _Lanes] = {}
        self._counters: tuple[_Counter, ...] = ()
        self._tasks: dict[int, _Task] = {
            task.pid: _Task(task.comm, task.cpu, task.state_letter)
            for task in machine.sched.processes.tasks.values()
        }
        self._running: list[int] = [0] * len(machine.sched.rqs)  # pid on each CPU
        for rq in machine.sched.rqs:
            if rq.curr is not None:
                self._running[rq.cpu] = rq.curr.pid
                self._tasks[rq.curr.pid].state = ""
        self._takes: dict[str, Callable[..., None]] = {
            "block_getrq": self._getrq,
            "block_rq_complete": self._complete,
            "block_rq_issue": self._issue,
            "block_rq_merge": self._merge,
            "ext4_fc_commit_start": self._start_fast_commit,
            "ext4_fc_commit_stop": self._end_fast_commit,
            "jbd_end_commit": self._end_commit,
            "jbd_start_commit": self._start_commit,
            "sched_process_fork": self._fork,
            "sched_switch": self._switch,
            "sched_wakeup": self._wakeup,
            "sys_enter": self._sys_enter,
            "sys_exit": self._sys_exit,
            "usdt": self._probe,
            "xlog_iclog_sync_done": self._end_log_write,
            "xlog_iclog_syncing": self._start_log_write,
        }

    # -- The time

    def before(self, record: Record) -> None:
        """Note what happens before the time."""
        self._takes[record.name](record.when_ns, *record.args)

    def begin(self, now_ns: int) -> None:
        """Write what there is when the time begins."""
        out = self._out = PacketFile(self._file)
        self._from_ns = self._now_ns = self._sampled_ns = now_ns
        self._write_system(out)
        self._write_tasks(out)
        for name, disk in self._disks.items():
            disk.show(out, name)
        vm, load = self._machine.vm, self._machine.load
        self._counters = (
            _Counter(out, "load average, 1 min", UNIT_COUNT, lambda: load.avenrun[0] / FIXED_1),
            _Counter(out, "running or blocked tasks", UNIT_COUNT, load.active),
            _Counter(out, "dirty", UNIT_SIZE_BYTES, lambda: vm.nr_dirty * PAGE_SIZE),
            _Counter(out, "writeback", UNIT_SIZE_BYTES, lambda: vm.nr_writeback * PAGE_SIZE),
        )
        self._sample(now_ns)

    def take(self, record: Record) -> None:
        """Write what happens within the time."""
        now_ns = record.when_ns
        if now_ns > self._now_ns:
            self._count_requests(self._now_ns)
            self._now_ns = now_ns
            if now_ns - self._sampled_ns >= SAMPLE_NS:
                self._sample(now_ns)
        self._takes[record.name](now_ns, *record.args)

    def finish(self, now_ns: int) -> None:
        """Write what is under way when the time ends: it has no end."""
        self._count_requests(self._now_ns)
        for disk in self._disks.values():
            for requests in disk.requests.values():
                for request in requests:
                    self._draw(disk.drive, request.issued_ns, None, request.name)
        for (device, name), start_ns in self._commits.items():
            self._draw(self._journal(device), start_ns, None, name)
        self._sample(now_ns)

    def _draw(self, lanes: _Lanes | None, start_ns: int, end_ns: int | None, name: str) -> None:
        if lanes is not None:
            lanes.draw(max(start_ns, self._from_ns), end_ns, name)

    def _sample(self, now_ns: int) -> None:
        self._sampled_ns = now_ns - now_ns % SAMPLE_NS
        for counter in self._counters:
            counter.tell(now_ns)

    def _count_requests(self, now_ns: int) -> None:
        """Tell how many requests there were at the end of that moment."""
        for disk in self._disks.values():
            if disk.changed:
                disk.changed = False
                for counter in disk.counters:
                    counter.tell(now_ns)

    # -- What there is when the time begins

    def _write_system(self, out: PacketFile) -> None:
        """Say which kernel it is, and what time."""
        server = self._machine.scenario.server
        names = text(1, "Linux") + text(3, server.kernel) + text(4, "x86_64")
        out.packet(message(45, message(1, names)))
        since_1970_ns = BTIME_S * NS_PER_S + self._from_ns
        boot = number(1, CLOCK_BOOTTIME) + number(2, self._from_ns)
        real = number(1, CLOCK_REALTIME) + number(2, since_1970_ns)
        out.packet(message(6, message(1, boot) + message(1, real)))

    def _write_tasks(self, out: PacketFile) -> None:
        """Name all tasks, and have each leave a CPU in the state that it is in, or run there."""
        now_ns = self._from_ns
        parents = self._machine.sched.processes.tasks
        tree = b""
        for pid, task in self._tasks.items():
            ppid = parents[pid].ppid if pid in parents else 0
            tree += message(1, number(1, pid) + number(2, ppid) + text(3, task.comm))
        out.packet(number(8, now_ns) + message(2, tree))
        for pid, task in self._tasks.items():
            if task.state:
                self._write_switch(task.cpu, 0, "R", pid)
                self._write_switch(task.cpu, pid, task.state, 0)
                self._write_wchan(pid, task)
        for cpu, pid in enumerate(self._running):
            if pid:
                self._write_switch(cpu, 0, "R", pid)
        for pid, task in self._tasks.items():
            for name in task.inside:
                self._write_begin(now_ns, pid, task, name)

    # -- The scheduler

    def _switch(
        self,
        now_ns: int,
        cpu: int,
        comm: str,
        pid: int,
        letter: str,
        next_comm: str,
        next_pid: int,
        wchan: str,
        utime_ns: int,
        stime_ns: int,
    ) -> None:
        if self._out is not None:
            self._write_switch(cpu, pid, letter, next_pid)
        self._running[cpu] = next_pid
        if pid:
            task = self._tasks[pid]
            self._spend(now_ns, pid, task, utime_ns + stime_ns)
            task.state = letter
            task.wchan = wchan
            known = self._machine.sched.processes.tasks.get(pid)
            task.is_iowait = known is not None and known.in_iowait
            if letter in GONE:
                del self._tasks[pid]
            elif self._out is not None:
                self._write_wchan(pid, task)
        if next_pid:
            task = self._tasks[next_pid]
            task.comm = next_comm
            task.state = ""
            task.cpu = cpu
            task.since_ns = now_ns

    def _wakeup(self, now_ns: int, comm: str, pid: int, cpu: int, by: int) -> None:
        self._tasks[pid].state = "R"
        if self._out is not None:
            at = moment(self._machine)
            event = text(1, comm) + number(2, pid) + number(4, 1) + number(5, cpu)
            flags = b"" if by else number(5, HARDIRQ)
            self._out.ftrace(at.cpu, now_ns, at.pid, flags + message(20, event))

    def _fork(self, now_ns: int, _comm: str, pid: int, child_comm: str, child: int) -> None:
        self._tasks[child] = _Task(child_comm, 0, "R")
        if self._out is not None:
            event = number(1, child) + text(2, child_comm) + number(3, 0)
            at = moment(self._machine)
            self._out.ftrace(at.cpu, now_ns, pid, message(235, event))

    def _write_switch(self, cpu: int, pid: int, letter: str, next_pid: int) -> None:
        assert self._out is not None
        event = (
            text(1, self._name(pid, cpu))
            + number(2, pid)
            + number(4, STATES[letter])
            + text(5, self._name(next_pid, cpu))
            + number(6, next_pid)
        )
        self._out.ftrace(cpu, self._now_ns, pid, message(4, event))

    def _name(self, pid: int, cpu: int) -> str:
        return self._tasks[pid].comm if pid else f"swapper/{cpu}"

    def _write_wchan(self, pid: int, task: _Task) -> None:
        """Say where a task is blocked."""
        assert self._out is not None
        if task.state == "D":
            version = self._machine.version
            where = number(2, self._out.intern(26, kernel_name(task.wchan, version)))
            event = number(1, pid) + where + number(3, task.is_iowait)
            self._out.ftrace(task.cpu, self._now_ns, pid, message(18, event))

    # -- Transactions and system calls

    def _probe(
        self, now_ns: int, _comm: str, pid: int, name: str, cpu_ns: int, *_values: int | str
    ) -> None:
        kind, _, edge = name.rpartition("__")
        if edge in ("start", "done"):
            self._tasks[pid].edges.append(_Edge(now_ns, cpu_ns, kind, edge == "start"))

    def _sys_enter(self, now_ns: int, _comm: str, pid: int, name: str, cpu_ns: int) -> None:
        self._tasks[pid].edges.append(_Edge(now_ns, cpu_ns, name, begins=True))

    def _sys_exit(
        self, now_ns: int, _comm: str, pid: int, name: str, _ret: int, cpu_ns: int
    ) -> None:
        self._tasks[pid].edges.append(_Edge(now_ns, cpu_ns, name, begins=False))

    def _spend(self, now_ns: int, pid: int, task: _Task, cpu_ns: int) -> None:
        """A task leaves its CPU, having spent so much in its life: let pass what that pays for."""
        used_ns = cpu_ns - task.cpu_ns
        done = 0
        for edge in task.edges:
            left_ns = cpu_ns - edge.cpu_ns
            if left_ns < 0:
                break
            done += 1
            when_ns = max(edge.now_ns, task.since_ns)
            if left_ns < used_ns:
                when_ns = spent_within(task.since_ns, now_ns, used_ns, left_ns)
                when_ns = max(edge.now_ns, when_ns)
            self._pass(pid, task, edge, when_ns)
        del task.edges[:done]
        task.cpu_ns = cpu_ns

    def _pass(self, pid: int, task: _Task, edge: _Edge, when_ns: int) -> None:
        """Begin a slice, or end one and those that are still open within it."""
        when_ns = max(when_ns, self._from_ns)
        if edge.begins:
            task.inside.append(edge.name)
            self._write_begin(when_ns, pid, task, edge.name)
            return
        if edge.name not in task.inside:
            return
        while True:
            name = task.inside.pop()
            if self._out is not None:
                self._out.slice_end(when_ns, task.track)
            if name == edge.name:
                return

    def _write_begin(self, now_ns: int, pid: int, task: _Task, name: str) -> None:
        if self._out is None:
            return
        if not task.track:
            thread = number(1, pid) + number(2, pid) + text(5, task.comm)
            task.track = self._out.track(message(4, thread))
        self._out.slice_begin(now_ns, task.track, number(10, self._out.intern(2, name)))

    # -- Disks and journals

    def _getrq(self, _now_ns: int, device: str, op: int, *_: Any) -> None:
        if op != FLUSH:
            self._disks[device].waiting += 1
            self._disks[device].changed = True

    def _merge(self, _now_ns: int, device: str, *_: Any) -> None:
        self._disks[device].waiting -= 1
        self._disks[device].changed = True

    def _issue(
        self,
        now_ns: int,
        device: str,
        op: int,
        sector: int,
        nr_sectors: int,
        start_ns: int,
        flags: int,
    ) -> None:
        disk = self._disks[device]
        name = f"{rwbs(op, flags, nr_sectors)} {sector}+{nr_sectors}"
        disk.issue(now_ns, op, sector, name)
        if start_ns < now_ns:
            self._draw(disk.queue, start_ns, now_ns, name)

    def _complete(self, now_ns: int, device: str, op: int, sector: int, *_: Any) -> None:
        disk = self._disks[device]
        request = disk.complete(op, sector)
        if request is not None:
            self._draw(disk.drive, request.issued_ns, now_ns, request.name)

    def _start_commit(self, now_ns: int, device: str, tid: int) -> None:
        self._commits[device, f"commit {tid}"] = now_ns

    def _end_commit(self, now_ns: int, device: str, tid: int) -> None:
        self._end_of(now_ns, device, f"commit {tid}")

    def _start_fast_commit(self, now_ns: int, device: str, tid: int) -> None:
        self._commits[device, f"fast commit {tid}"] = now_ns

    def _end_fast_commit(self, now_ns: int, device: str, _blocks: int, tid: int) -> None:
        self._end_of(now_ns, device, f"fast commit {tid}")

    def _start_log_write(self, now_ns: int, device: str, lsn: int) -> None:
        self._commits[device, f"log write {lsn}"] = now_ns

    def _end_log_write(self, now_ns: int, device: str, lsn: int) -> None:
        self._end_of(now_ns, device, f"log write {lsn}")

    def _end_of(self, now_ns: int, device: str, name: str) -> None:
        start_ns = self._commits.pop((device, name), None)
        if start_ns is not None and self._out is not None:
            self._draw(self._journal(device), start_ns, now_ns, name)

    def _journal(self, device: str) -> _Lanes:
        known = self._journals.get(device)
        if known is None:
            assert self._out is not None
            known = self._journals[device] = _Lanes(self._out, f"journal of {device}", 0)
        return known
