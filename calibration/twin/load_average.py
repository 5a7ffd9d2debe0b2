"""The load average in a twin: who is in it, in the fit, in the verdict, and in an answer.

Models: reading a load average next to iostat: who of the requests' owners is counted.
Linux counterpart: kernel/sched/loadavg.c (calc_load_fold_active: nr_running + nr_uninterruptible).
Invariants: a column of the fit only where the twin's tasks are in the average as the server's are;
tasks that the twin does not have (somebody else's) stay as they are in an answer.
Left out: TASK_NOLOAD, freezing; which tasks are somebody else's.

Theory. Active are R that run or wait for a CPU, and D that sleep uninterruptibly. D has a task for
each request that a program waits for (a read, a direct write), all who wait for a commit, also
those who share it, and the journal's thread. Not in it are requests that nobody waits for so:
 - of asynchronous I/O: io_getevents and io_uring's waits are interruptible (fs/aio.c, io_uring);
 - of the flusher, which sleeps for a tag alone (block/blk-mq-tag.c);
 - of a database whose clients sleep in a semaphore while one of them commits for all.
So with Q requests in the queues, D near Q or above it says that all who wait are in the average,
up to half a task (a journal's thread comes and goes) or a fifth. D below it says that a share
v = D / Q is. A twin's programs all wait uninterruptibly: there the column is no fit's. But a twin
has a flusher as well, and knows which part of its own requests a task waits for: of Q only that
part is looked at, where a twin is there to tell.
R is the CPUs that are busy, unless these are full; then it is what /proc/stat counted at the
samples, or what Q leaves of the average: so many tasks compute in the twin.

An answer is who else is there, who of the twin's own tasks O = R + v D is there today, and O' - O
more. Who else, A - O, stays; they cannot be fewer than none. Where fewer were recorded than the
twin has, both count the same tasks: the truth lies between, nearer to what is known better: A to
the chance of so few readings of O tasks, O to what a load average is trusted to in a fit (15 %). Of
a smaller load a part of those who are there goes: where 8 were recorded to 0.1 and the twin falls
from 9 to 1, 0.9 are left.
Where v is less than 1, who is seen may be somebody who waits for something else, or a share of the
owners. So D grows as D' did, to a power: from 0, which is not at all, to 1, in proportion.
vmstat's b has of the sleepers only those in I/O (procs_blocked), not who waits for a commit. There
O is compared as vmstat counts, and the twin's own others who sleep are added, today and then.
By hand: 0.44 requests in flight, of which 24 readings found 0.07 to 0.06. They would find 0.44 to
0.15; 15 % of it are 0.07. (0.07 / 0.15^2 + 0.44 / 0.07^2) / (1 / 0.15^2 + 1 / 0.07^2) = 0.37.
A run has few readings, and what they count is chance. But the means of two parts are known: CPU
time says how many CPUs were busy, and diskstats how many requests were in the queues. So only what
is beside them is taken from the readings: runnable tasks beyond the CPUs, and D less what is in
flight at that instant.
The recording knows these two as well (`exactly_known`). So the twin's R is made as much as its CPUs
were busy, and its D as many times as much as the recorded queue is of its own. Not of programs that
always wait: their number is known, and some are always elsewhere.

By hand: 8 programs in fsync on ext4: Q = 3.8, an average of 9: D = 9 is more than Q, all are seen.
A twin with 9.2 today and 33.4 with four times the programs answers 9 + 24.2 = 33.2; 33 came.
libaio with 8 requests: Q = 7.9, an average of 0.1: v = 0.01; 32 requests are still 0.4.
A database: Q = 3.4, most of it a checkpoint's writes that nobody waits for, and D = 0.25. Its twin
has 2.5 in flight, and tasks wait for 12 % of them. 12 % of Q are 0.41, and 0.25 is as much, to half
a task: all who wait are seen. By D / Q alone every thirteenth would be.
The 8 programs by vmstat: b and r are 4.5. The twin has 4.0 in I/O of its 9.2: 0.5 are others, and
its load average today is 9.7.
"""

from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass
from math import hypot
from statistics import fmean
from typing import Final

from calibration.look import Look
from calibration.look.bottleneck import FULL
from calibration.look.devices import queues_of
from calibration.look.intervals import queue_of
from calibration.look.tasks import Active
from calibration.readers.proc_report import device_columns
from calibration.twin.draft import Draft
from sim.observation import Observation
from sim.results import ProcSample
from sim.tools.iostat import compute_iostat
from sim.tools.parse import parse_diskstats, parse_stat

COLUMN: Final = "load average"  # as "DEVICE COLUMN"
LEAST: Final = 0.5  # tasks; of fewer each that comes and goes is all of them
FEW: Final = 0.5  # tasks: a journal's thread, which comes and goes
TRUSTED: Final = 0.15  # of the twin's own tasks
SHARE: Final = 0.2  # of the queue: X R is a mean over the recording, the average one at instants


@dataclass(frozen=True, kw_only=True)
class Tasks:
    """Mean number of tasks that run or wait for a CPU, and of those asleep uninterruptibly.

    `in_io` are those of the sleepers who are in io_schedule(), as procs_blocked counts them.
    """

    running: float
    asleep: float
    in_io: float

    @property
    def active(self) -> float:
        """Return those that a load average counts."""
        return self.running + self.asleep


@dataclass(frozen=True, kw_only=True)
class Exactly:
    """What counters tell of the tasks without the chance of readings.

    `running` is how many CPUs were busy (None: not told); `queues` has the requests in the queue
    and in service of each device that tells. Where programs always wait for one of them (`closed`),
    queues tell nothing of who is elsewhere, and none is here.
    """

    running: float | None
    queues: Mapping[str, float]
    closed: Collection[str] = ()


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Mean number of a recording's tasks that run, and of those sleepers who were counted."""

    running: float
    asleep: float


def tasks_of_run(seen: Observation) -> Tasks:
    """Return the tasks of a run's measured part: at its readings, without most of their chance."""
    inside = [one for one in seen.result.samples if seen.begin_ns <= one.t_ns <= seen.end_ns]
    marks = {one.t_ns: float(one.value) for one in seen.marked("tasks_uninterruptible")}
    if len(inside) < 2:
        return Tasks(running=0.0, asleep=0.0, in_io=0.0)
    whole = compute_iostat(inside[0], inside[-1])
    stats = [parse_stat(one.text("stat")) for one in inside[1:]]
    cpus = len(stats[0].cpus) or 1
    waiting = fmean(max(0, one.procs_running - cpus) for one in stats)
    idle_pct = whole.cpu.idle_pct + whole.cpu.iowait_pct + whole.cpu.steal_pct
    disks = {one.name: queue_of(device_columns(one)) for one in whole.devices}
    in_flight = fmean(_in_flight(one, disks) for one in inside[1:])
    queue = sum(disks.values())
    asleep = fmean(marks.get(one.t_ns, 0.0) for one in inside[1:]) - in_flight + queue
    in_io = fmean(one.procs_blocked for one in stats) - in_flight + queue
    return Tasks(
        running=waiting + cpus * (1 - idle_pct / 100),
        asleep=max(0.0, asleep),
        in_io=max(0.0, min(in_io, asleep)),
    )


def _in_flight(sample: ProcSample, disks: Container[str]) -> int:
    """Return the requests that are at the disks at a reading."""
    rows = parse_diskstats(sample.text("diskstats"))
    return sum(one.in_flight for one in rows if one.name in disks)


def recorded_tasks(seen: Look) -> Counted | None:
    """Return the tasks of a recording; None if nothing counted them."""
    told, busy = seen.system.tasks, seen.cpu.busy
    if told is None or busy is None:
        return None
    running = exactly_known(seen).running
    if running is None:
        counted = seen.system.running
        running = told.mean - queued(seen) if counted is None else counted
    running = min(max(running, 0.0), told.mean)
    return Counted(running=running, asleep=told.mean - running)


def exactly_known(seen: Look, closed: Collection[str] = ()) -> Exactly:
    """Return what a recording's counters tell of its tasks: CPU time, and the disks' queues.

    Of full CPUs their time does not tell who waits for them, and of programs that always wait for
    the devices `closed` the queues do not tell who is elsewhere.
    """
    busy = seen.cpu.busy
    running = None if busy is None or busy >= FULL else seen.cpu.busy_cpus
    queues = {} if closed else queues_of(seen.devices)
    return Exactly(running=running, queues=queues, closed=closed)


def queued(seen: Look) -> float:
    """Return the requests in the queues and in service of all devices, on average."""
    return sum(queues_of(seen.devices).values())


def share_seen(seen: Look, waited_for: float = 1.0) -> float:
    """Return the share of those who wait for a request that is in the load average: 0 to 1.

    `waited_for` is the share of the requests that a task waits for in the twin; see above.
    """
    tasks, queue = recorded_tasks(seen), waited_for * queued(seen)
    if tasks is None or queue - tasks.asleep <= max(FEW, SHARE * queue):
        return 1.0
    return tasks.asleep / queue


def error_of(told: Active) -> float:
    """Return the standard error of the active tasks that were recorded."""
    return hypot(told.known_to, told.lookers)


def known_better(recorded: float, own: float, told: Active) -> float:
    """Return how many of the twin's own tasks are there, of which fewer were recorded."""
    weights = [1 / one**2 for one in (told.error_at(own), TRUSTED * own)]
    return (weights[0] * recorded + weights[1] * own) / sum(weights)


def draw_load(draft: Draft, seen: Look) -> None:
    """Say why the load average is in no fit, where it is in none; note who else is in it."""
    told, share = seen.system.tasks, share_seen(seen)
    if told is None or told.in_io_alone:
        draft.server.left_out[COLUMN] = "it was not recorded (sar -q, uptime, iotwin record)"
    elif share < 1:
        draft.server.left_out[COLUMN] = (
            f"{queued(seen):.1f} requests are under way, and {told.mean:.1f} tasks are active: who"
            " waits sleeps interruptibly (asynchronous I/O, a lock), or nobody waits (writeback)"
        )
    elif told.mean < LEAST:
        draft.server.left_out[COLUMN] = "hardly a task is active"
