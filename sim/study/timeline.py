"""What every task did at every moment, and what every disk did: a trace put in order.

Models: what `perf sched timehist` and `offwaketime` make of the scheduler's tracepoints: a task is
on a CPU, or waits for one, or sleeps somewhere until somebody wakes it. An interrupt that ends a
request of a disk wakes on behalf of that request.
Linux counterpart: tools/perf/builtin-sched.c; offwaketime of BCC.
Invariants: the spans of a task follow each other without gap or overlap from its first switch on;
 a request is accepted, issued and completed in this order, its accesses lie between the latter two.
Left out: CPU time of interrupts is not told apart by interrupt; which of several requests that end
 at one moment woke a task (the last one is taken).

A task's effects may precede their cost in CPU time (sim/sched/task.py). A transaction begins and
ends when the CPU time that its task owed at the probe is spent; tasks it woke were woken before.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from sim.engine.trace import Record

ON_CPU: Final = "R"
RUNNABLE: Final = "Q"  # on a run queue
ASLEEP: Final = "S"
BLOCKED: Final = "D"
INTERRUPT: Final = 0  # as a waker's pid
PATTERNS: Final = (
    "sched_*",
    "block_rq_*",
    "disk_access",
    "jbd_*_commit",
    "xlog_iclog_*",
    "usdt",
    "sys_*",
    "sock_rcv",
)


class Access(NamedTuple):
    """One operation of a disk's arm: four parts of time, ns, from ``begins_ns`` on."""

    begins_ns: int
    overhead_ns: int
    seek_ns: int
    rotation_ns: int
    transfer_ns: int


@dataclass(slots=True)
class BlockIo:
    """One request of a disk."""

    device: str
    op: int
    accepted_ns: int
    issued_ns: int
    completed_ns: int = -1
    access: Access | None = None


class Span(NamedTuple):
    """A time in which a task did one thing."""

    start_ns: int
    end_ns: int
    doing: str  # ON_CPU, RUNNABLE, ASLEEP, BLOCKED
    wchan: str = ""  # where it slept
    waker: int = INTERRUPT
    io: BlockIo | None = None  # whose end woke it
    user_ns: int = 0
    system_ns: int = 0


def spent_within(start_ns: int, end_ns: int, used_ns: int, left_ns: int) -> int:
    """Return when a task on a CPU had all but `left_ns` spent of what it used; evenly spread."""
    return end_ns - left_ns * (end_ns - start_ns) // used_ns


@dataclass(slots=True)
class TaskLine:
    """One task's spans, oldest first, and what it is doing now."""

    pid: int
    comm: str
    spans: list[Span] = field(default_factory=list)
    starts_ns: list[int] = field(default_factory=list)
    cpu_ns: list[int] = field(default_factory=list)  # spent at the end of each span
    since_ns: int = -1  # -1: nothing is known yet
    doing: str = RUNNABLE
    wchan: str = ""
    utime_ns: int = 0
    stime_ns: int = 0

    def between(self, start_ns: int, end_ns: int) -> Iterator[tuple[int, int, Span]]:
        """Yield the parts of spans within a time, as (start, end, span)."""
        first = max(0, bisect_right(self.starts_ns, start_ns) - 1)
        for at in range(first, len(self.spans)):
            span = self.spans[at]
            if span.start_ns >= end_ns:
                return
            low = max(span.start_ns, start_ns)
            high = min(span.end_ns, end_ns)
            if low < high:
                yield low, high, span

    def spent_at(self, now_ns: int, cpu_ns: int) -> int:
        """Return when, from ``now_ns`` on, the task will have spent that much CPU time."""
        at = max(0, bisect_right(self.starts_ns, now_ns) - 1)
        for number in range(at, len(self.spans)):
            span = self.spans[number]
            left = self.cpu_ns[number] - cpu_ns
            if left < 0:
                continue
            used = span.user_ns + span.system_ns
            if left >= used:  # Before this span already.
                return max(now_ns, span.start_ns)
            return max(now_ns, spent_within(span.start_ns, span.end_ns, used, left))
        return max(now_ns, self.since_ns)

    def waited_for(self, waker: int, until_ns: int) -> None:
        """Split the last sleep: until then another task was waited for, the rest is the way."""
        for at in range(len(self.spans) - 1, max(-1, len(self.spans) - 4), -1):
            if self.spans[at].doing == ASLEEP:
                self._split(at, waker, until_ns)
                return

    def _split(self, at: int, waker: int, until_ns: int) -> None:
        span = self.spans[at]
        if not span.start_ns < until_ns <= span.end_ns:
            return  # It was sent before he slept: only the way is left.
        self.spans[at] = span._replace(end_ns=until_ns, waker=waker)
        if until_ns < span.end_ns:
            self.spans.insert(at + 1, span._replace(start_ns=until_ns))
            self.starts_ns.insert(at + 1, until_ns)
            self.cpu_ns.insert(at + 1, self.cpu_ns[at])

    def close(self, now_ns: int, then: str, span: Span | None = None) -> None:
        """End the present span (the one given, or one without particulars) and begin the next."""
        if 0 <= self.since_ns < now_ns:
            self.spans.append(span or Span(self.since_ns, now_ns, self.doing, self.wchan))
            self.starts_ns.append(self.since_ns)
            self.cpu_ns.append(self.utime_ns + self.stime_ns)
        self.since_ns = now_ns
        self.doing = then


class Transaction(NamedTuple):
    """What a program calls one: from a probe x__start to x__done, or a system call.

    `since_ns` before the start it came, and `waited_ns` of these it waited for its task to be free.
    """

    kind: str
    pid: int
    start_ns: int
    end_ns: int
    since_ns: int = 0
    waited_ns: int = 0

    @property
    def response_ns(self) -> int:
        """Return the time from its arrival to its end."""
        return self.end_ns - self.start_ns + self.since_ns


class _Edge(NamedTuple):
    """A probe: when it was hit, and the task's CPU time with what it owed."""

    now_ns: int
    cpu_ns: int
    since_ns: int = 0
    waited_ns: int = 0


class Timeline:
    """Takes the records of a tracer one by one (``Tracer.start(*PATTERNS, sink=...)``)."""

    def __init__(self) -> None:
        self.tasks: dict[int, TaskLine] = {}
        self.transactions: list[Transaction] = []
        self.ios: list[BlockIo] = []
        self.commits: dict[str, list[tuple[int, int]]] = {}  # of a journal, records of a log
        self._started: dict[tuple[int, str], _Edge] = {}
        self._ended_edges: list[tuple[str, int, _Edge, _Edge]] = []
        self._in_driver: dict[tuple[str, int, int], BlockIo] = {}
        self._committing: dict[tuple[str, int], int] = {}
        self._ended: BlockIo | None = None  # the latest request that did
        self._exited: tuple[int, int] = (-1, 0)  # when, and which task, last
        self._takes: dict[str, Callable[..., None]] = {
            "sched_switch": self._switch,
            "sched_wakeup": self._wakeup,
            "sched_process_fork": self._fork,
            "sched_process_exit": self._exit,
            "sock_rcv": self._received,
            "block_rq_issue": self._issue,
            "block_rq_complete": self._complete,
            "disk_access": self._disk_access,
            "jbd_start_commit": self._start_commit,
            "jbd_end_commit": self._end_commit,
            "xlog_iclog_syncing": self._start_commit,
            "xlog_iclog_sync_done": self._end_commit,
            "usdt": self._probe,
            "sys_enter": self._sys_enter,
            "sys_exit": self._sys_exit,
        }

    def take(self, record: Record) -> None:
        """Put one record in its place."""
        take = self._takes.get(record.name)
        if take is not None:
            take(record.when_ns, *record.args)

    def finish(self, now_ns: int) -> None:
        """The trace ends: close what is open."""
        for task in self.tasks.values():
            task.close(now_ns, task.doing)
        for kind, pid, start, end in self._ended_edges:
            task = self.tasks[pid]
            start_ns = task.spent_at(start.now_ns, start.cpu_ns)
            end_ns = task.spent_at(end.now_ns, end.cpu_ns)
            if start_ns < end_ns:
                late_ns = start_ns - start.now_ns  # until the CPU time owed at the probe was spent
                since_ns = start.since_ns + late_ns if start.since_ns else 0
                self.transactions.append(
                    Transaction(kind, pid, start_ns, end_ns, since_ns, start.waited_ns)
                )

    def _task(self, pid: int, comm: str) -> TaskLine:
        task = self.tasks.get(pid)
        if task is None:
            task = self.tasks[pid] = TaskLine(pid, comm)
        return task

    # -- The scheduler

    def _switch(
        self,
        now_ns: int,
        _cpu: int,
        comm: str,
        pid: int,
        letter: str,
        next_comm: str,
        next_pid: int,
        wchan: str,
        utime_ns: int,
        stime_ns: int,
    ) -> None:
        if pid:
            self._off_cpu(self._task(pid, comm), now_ns, letter, wchan, utime_ns, stime_ns)
        if next_pid:
            self._task(next_pid, next_comm).close(now_ns, ON_CPU)

    def _off_cpu(
        self, task: TaskLine, now_ns: int, letter: str, wchan: str, utime_ns: int, stime_ns: int
    ) -> None:
        span = Span(
            task.since_ns,
            now_ns,
            ON_CPU,
            user_ns=utime_ns - task.utime_ns,
            system_ns=stime_ns - task.stime_ns,
        )
        task.utime_ns = utime_ns
        task.stime_ns = stime_ns
        if letter in "ZX":
            task.close(now_ns, letter, span)
            task.since_ns = -1
            return
        task.close(now_ns, RUNNABLE if letter == "R" else letter, span)
        task.wchan = wchan

    def _wakeup(self, now_ns: int, comm: str, pid: int, _cpu: int, waker: int) -> None:
        task = self._task(pid, comm)
        io = None
        if waker == INTERRUPT:
            when_ns, who = self._exited
            if when_ns == now_ns:
                waker = who  # A child that ends wakes its parent.
            elif self._ended is not None and self._ended.completed_ns == now_ns:
                io = self._ended
        span = Span(task.since_ns, now_ns, task.doing, task.wchan, waker, io)
        task.close(now_ns, RUNNABLE, span)

    def _fork(self, now_ns: int, _comm: str, _pid: int, child_comm: str, child: int) -> None:
        task = self._task(child, child_comm)
        task.comm = child_comm
        task.utime_ns = task.stime_ns = 0  # The pid may have been another's.
        task.close(now_ns, RUNNABLE)

    def _exit(self, now_ns: int, _comm: str, pid: int) -> None:
        self._exited = (now_ns, pid)

    def _received(self, _now_ns: int, comm: str, pid: int, sender: int, sent_ns: int) -> None:
        """A task of this server has sent what a reader slept for: until then he waited for it."""
        if sender:
            self._task(pid, comm).waited_for(sender, sent_ns)

    # -- Disks and journals

    def _issue(
        self, now_ns: int, device: str, op: int, sector: int, _nr: int, accepted_ns: int, *_: Any
    ) -> None:
        # A flush is no program's request: it exists from the moment on at which it is issued.
        io = BlockIo(device, op, min(accepted_ns, now_ns) or now_ns, now_ns)
        self._in_driver[device, op, sector] = io

    def _complete(self, now_ns: int, device: str, op: int, sector: int, *_: Any) -> None:
        io = self._in_driver.pop((device, op, sector), None)
        if io is not None:
            io.completed_ns = now_ns
            self.ios.append(io)
            self._ended = io

    def _disk_access(self, now_ns: int, device: str, sector: int, *parts_ns: int) -> None:
        for op in (0, 1):
            io = self._in_driver.get((device, op, sector))
            if io is not None:
                io.access = Access(now_ns, *parts_ns)

    def _start_commit(self, now_ns: int, device: str, number: int) -> None:
        self._committing[device, number] = now_ns

    def _end_commit(self, now_ns: int, device: str, number: int) -> None:
        start_ns = self._committing.pop((device, number), None)
        if start_ns is not None:
            self.commits.setdefault(device, []).append((start_ns, now_ns))

    # -- Programs

    def _probe(
        self, now_ns: int, _comm: str, pid: int, name: str, cpu_ns: int, *values: int | str
    ) -> None:
        kind, _, edge = name.rpartition("__")
        if edge == "start":
            since_ns, waited_ns = (int(one) for one in values) if values else (0, 0)
            self._begin(kind, pid, _Edge(now_ns, cpu_ns, since_ns, waited_ns))
        elif edge == "done":
            self._end(kind, pid, _Edge(now_ns, cpu_ns))

    def _sys_enter(self, now_ns: int, _comm: str, pid: int, name: str, cpu_ns: int) -> None:
        self._begin(f"{name}()", pid, _Edge(now_ns, cpu_ns))

    def _sys_exit(
        self, now_ns: int, _comm: str, pid: int, name: str, _ret: int, cpu_ns: int
    ) -> None:
        self._end(f"{name}()", pid, _Edge(now_ns, cpu_ns))

    def _begin(self, kind: str, pid: int, edge: _Edge) -> None:
        self._started[pid, kind] = edge

    def _end(self, kind: str, pid: int, edge: _Edge) -> None:
        start = self._started.pop((pid, kind), None)
        if start is not None:
            self._ended_edges.append((kind, pid, start, edge))
