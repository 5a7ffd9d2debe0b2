"""Why a task took as long as it did: follow each moment to what the task waited for.

Theory. A task is on a CPU, on a run queue, or asleep. While it sleeps, it waits for its waker: it
waited for what the waker did in that time. If the waker slept as well, it waited for the waker's
own waker, and so on (the chains of `offwaketime`, the critical path of Yang and Miller 1988). A
chain ends on a CPU, on a run queue, at a disk whose interrupt woke a task, or at a sleep that only
time, another host or nothing ended. A task that sleeps for a message waits for its sender until the
message is sent, if the sender is on the same machine, and then for the network. Every moment of a
response time ends in one place, so the parts add up to it exactly.

A part's path says how it came there, outermost first: ``("mutex_lock", "log_wait_commit",
"kjournald", "sync_buffer", "sdb", "rotation")``. The lock that one task after another hands on is
in it once.

Estimate for the storm on the disk: a message's reception makes two files durable and creates them
under the lock of the queue directory, which some 16 sessions and their deliveries share, one commit
a turn: nearly all of its time is lock, underneath journal, underneath rotation and seek of sdb.

Linux counterpart: BCC's offwaketime, wakeuptime; perf sched timehist --wakeup-visual.
Invariants: the parts of an interval sum to its length; a path has no frame twice in a row.
Left out: a waker that joined only in the middle (took a lock that it had not queued for) is held
responsible from the beginning of the sleep; what a disk did before it got the request.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from sim.block.bio import FLUSH
from sim.study.timeline import (
    BLOCKED,
    INTERRUPT,
    ON_CPU,
    RUNNABLE,
    Access,
    BlockIo,
    Span,
    TaskLine,
    Timeline,
)

USER: Final = "CPU, user"
SYSTEM: Final = "CPU, system"
INTERRUPTS: Final = "CPU, interrupts"
RUN_QUEUE: Final = "run queue"
BLOCK_QUEUE: Final = "block queue"
DRIVE_QUEUE: Final = "drive's queue"
COMMAND: Final = "command"
SEEK: Final = "seek"
ROTATION: Final = "rotation"
TRANSFER: Final = "transfer"
FLUSHING: Final = "flush"
DEVICE: Final = "device"  # one whose inside is not seen
PLUG: Final = "not yet submitted"

Path = tuple[str, ...]
Add = Callable[[Path, int], None]


class _Open(NamedTuple):
    """What is still to be followed: a task's time from start to end, reached by a path."""

    task: TaskLine
    start_ns: int
    end_ns: int
    path: Path


def follow(timeline: Timeline, pid: int, start_ns: int, end_ns: int, add: Add) -> None:
    """Split a task's time into parts; call ``add(path, ns)`` for each."""
    waiting = [_Open(timeline.tasks[pid], start_ns, end_ns, ())]
    while waiting:
        task, start, end, path = waiting.pop()
        covered = 0
        for low, high, span in task.between(start, end):
            covered += high - low
            if span.doing == ON_CPU:
                _split_cpu(span, high - low, path, add)
            elif span.doing == RUNNABLE:
                add((*path, RUN_QUEUE), high - low)
            else:
                inner = _joined(path, span.wchan)
                waker = timeline.tasks.get(span.waker) if span.waker != INTERRUPT else None
                if waker is not None:
                    frame = inner if waker.comm == task.comm else _joined(inner, waker.comm)
                    waiting.append(_Open(waker, low, high, frame))
                elif span.io is not None:
                    _split_io(span.io, low, high, inner, add)
                else:
                    add(inner, high - low)
        if covered < end - start:  # Before its first switch, or after its end.
            add((*path, f"{task.comm} (not seen)"), end - start - covered)


def _joined(path: Path, frame: str) -> Path:
    """Append a frame, unless the path ends in it: a lock that is handed on, a chain of equals."""
    if path and path[-1] == frame:
        return path
    if len(path) > 1 and path[-2] == frame:  # a, b, a: the second turn of the same cycle
        return path[:-1]
    return (*path, frame)


def _split_cpu(span: Span, ns: int, path: Path, add: Add) -> None:
    """Share time on a CPU as the whole span's was; what nobody was charged for, interrupts took."""
    whole = span.end_ns - span.start_ns
    user = span.user_ns * ns // whole
    system = span.system_ns * ns // whole
    for frame, part in ((USER, user), (SYSTEM, system), (INTERRUPTS, ns - user - system)):
        if part:
            add((*path, frame), part)


def _split_io(io: BlockIo, low: int, high: int, path: Path, add: Add) -> None:
    """Share a time that ended with a request by what happened to the request."""
    path = _joined(path, io.device)
    for start, end, frame in _phases(io):
        part = min(end, high) - max(start, low)
        if part > 0:
            add((*path, frame), part)
    if low < io.accepted_ns:
        add((*path, PLUG), min(io.accepted_ns, high) - low)
    if high > io.completed_ns:
        add((*path, DEVICE), high - max(io.completed_ns, low))


def _phases(io: BlockIo) -> Iterator[tuple[int, int, str]]:
    """Yield what happened to a request from the time it was accepted to its end."""
    yield io.accepted_ns, io.issued_ns, BLOCK_QUEUE
    access = io.access
    if io.op == FLUSH:
        yield io.issued_ns, io.completed_ns, FLUSHING
    elif access is None:
        yield io.issued_ns, io.completed_ns, DEVICE
    else:
        yield io.issued_ns, access.begins_ns, DRIVE_QUEUE
        yield from _access_phases(access, io.completed_ns)


def _access_phases(access: Access, completed_ns: int) -> Iterator[tuple[int, int, str]]:
    at = access.begins_ns
    for ns, frame in (
        (access.overhead_ns, COMMAND),
        (access.seek_ns, SEEK),
        (access.rotation_ns, ROTATION),
    ):
        yield at, at + ns, frame
        at += ns
    yield at, completed_ns, TRANSFER


def is_load(span: Span) -> bool:
    """Return whether a task counts into the load average in that span."""
    return span.doing in (ON_CPU, RUNNABLE, BLOCKED)
