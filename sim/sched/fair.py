"""The completely fair scheduler: everybody's weighted run time advances alike.

Models: one CPU's fair queue. A task's *vruntime* advances by its run time x 1024 / weight; the task
with the smallest runs next, for its share (by weight) of a period of ``latency``, or of
``min_granularity`` a task when there are many. One who wakes is placed at most ``sleeper_credit``
behind the queue's minimum, and preempts when it is more than ``wakeup_granularity`` behind.
Linux counterpart: kernel/sched_fair.c 2.6.24-2.6.39, kernel/sched/fair.c 3.x-6.5: place_entity,
 sched_slice, check_preempt_tick, check_preempt_wakeup. From 6.6 on: eevdf.py.
Invariants: min_vruntime never decreases; every queued task is at one place of the sorted list.
Left out: buddies. Groups are group_queue.py's. Slices end at ticks; run time is measured
 exactly.
"""

from bisect import insort
from dataclasses import dataclass
from typing import Final

from sim.sched.features import FAIR_DEFAULTS
from sim.sched.sched_class import SchedClass
from sim.sched.task import SCHED_IDLE, Task
from sim.sched.version import KernelVersion, in_force

NICE_0_LOAD: Final = 1024
# kernel/sched.c prio_to_weight, nice -20 to 19: each step is a factor of 1.25, about 10 % of CPU.
PRIO_TO_WEIGHT: Final[tuple[int, ...]] = (
    88761,
    71755,
    56483,
    46273,
    36291,
    29154,
    23254,
    18705,
    14949,
    11916,
    9548,
    7620,
    6100,
    4904,
    3906,
    3121,
    2501,
    1991,
    1586,
    1277,
    1024,
    820,
    655,
    526,
    423,
    335,
    272,
    215,
    172,
    137,
    110,
    87,
    70,
    56,
    45,
    36,
    29,
    23,
    18,
    15,
)


def nice_to_weight(nice: int) -> int:
    """Return the load weight of a nice value."""
    if not -20 <= nice <= 19:
        raise ValueError(f"nice {nice}: must be from -20 to 19")
    return PRIO_TO_WEIGHT[nice + 20]


def policy_preempts(running: int, woken: int) -> bool:
    """Return whether a woken task preempts where policies decide alone.

    They do if SCHED_IDLE runs, or if the woken one is not SCHED_NORMAL; a batch task that runs is
    preempted like any other.
    """
    return running == SCHED_IDLE and woken != SCHED_IDLE


@dataclass(frozen=True, kw_only=True)
class FairTunables:
    """/proc/sys/kernel/sched_*, in force on this number of CPUs."""

    latency_ns: int
    min_granularity_ns: int
    wakeup_granularity_ns: int
    nr_latency: int  # more tasks than this: the period grows
    sleeper_credit_ns: int


MS: Final = 1_000_000


def fair_tunables(kernel: KernelVersion, nr_cpus: int) -> FairTunables:
    """Return the defaults of a release, times 1 + log2(CPUs, at most 8) (update_sysctl)."""
    latency, granularity, wakeup, divisor = in_force(FAIR_DEFAULTS, kernel)
    factor = min(nr_cpus, 8).bit_length()
    return FairTunables(
        latency_ns=latency * factor,
        min_granularity_ns=granularity * factor,
        wakeup_granularity_ns=wakeup * factor,
        nr_latency=latency // granularity,
        sleeper_credit_ns=latency * factor // divisor,
    )


class FairQueue(SchedClass):
    """One CPU's queue (struct cfs_rq)."""

    __slots__ = (
        "_child_first",
        "_credit_ns",
        "_granularity_ns",
        "_latency_ns",
        "_nr_latency",
        "_queue",
        "_ran_ns",
        "_sequence",
        "_wakeup_ns",
        "min_vruntime",
    )

    def __init__(self, tunables: FairTunables, *, child_first: bool) -> None:
        super().__init__()
        self._child_first = child_first
        self._latency_ns: int = tunables.latency_ns
        self._granularity_ns: int = tunables.min_granularity_ns
        self._wakeup_ns: int = tunables.wakeup_granularity_ns
        self._nr_latency: int = tunables.nr_latency
        self._credit_ns: int = tunables.sleeper_credit_ns
        self._queue: list[tuple[int, int, Task]] = []  # by vruntime, then by arrival
        self._sequence: int = 0
        self._ran_ns: int = 0  # by the current task since it was picked
        self.min_vruntime: int = 0

    # -- Placement

    def place_new(self, task: Task, curr: Task | None) -> None:
        """Start one slice behind, so that forking does not win CPU (START_DEBIT)."""
        start = self.min_vruntime if curr is None else max(self.min_vruntime, curr.vruntime)
        task.vruntime = start + self._slice_ns(task.weight) * NICE_0_LOAD // task.weight
        if self._child_first and curr is not None and curr is task.parent:
            curr.vruntime, task.vruntime = task.vruntime, curr.vruntime

    def place_woken(self, task: Task, slept_as: int, now_ns: int) -> None:
        """Grant a sleeper its credit, and not more (place_entity)."""
        earliest = self.min_vruntime - self._credit_ns
        if task.vruntime < earliest:
            task.vruntime = earliest

    def migrate_out(self, task: Task) -> None:
        """Keep the distance to the queue's minimum."""
        task.vruntime -= self.min_vruntime

    def migrate_in(self, task: Task) -> None:
        """Add this queue's minimum."""
        task.vruntime += self.min_vruntime

    # -- The queue

    def enqueue(self, task: Task) -> None:
        """Sort the task in."""
        self._sequence = sequence = self._sequence + 1
        insort(self._queue, (task.vruntime, sequence, task))
        self.load += task.weight
        self.nr_queued += 1

    def requeue(self, curr: Task) -> None:
        """Sort the current task in again."""
        self.enqueue(curr)

    def dequeue(self, task: Task) -> None:
        """Take the task out."""
        for index, entry in enumerate(self._queue):
            if entry[2] is task:
                del self._queue[index]
                break
        else:
            raise AssertionError(f"{task} is not queued")
        self.load -= task.weight
        self.nr_queued -= 1

    def pick_next(self) -> Task | None:
        """Take out the task with the smallest vruntime."""
        self._ran_ns = 0
        if not self._queue:
            return None
        vruntime, _, task = self._queue.pop(0)
        self.load -= task.weight
        self.nr_queued -= 1
        if vruntime > self.min_vruntime:
            self.min_vruntime = vruntime
        return task

    def run_alone(self, task: Task) -> bool:
        """Begin a slice."""
        self._ran_ns = 0
        if task.vruntime > self.min_vruntime:
            self.min_vruntime = task.vruntime
        return True

    def waiting(self) -> list[Task]:
        """Return the queued tasks in the order of vruntime."""
        return [entry[2] for entry in self._queue]

    # -- The current task

    def account(self, curr: Task, ns: int) -> None:
        """Advance vruntime, and the minimum with it (update_curr)."""
        self._ran_ns += ns
        if curr.weight != NICE_0_LOAD:
            ns = ns * NICE_0_LOAD // curr.weight
        vruntime = curr.vruntime = curr.vruntime + ns
        if self._queue and self._queue[0][0] < vruntime:
            vruntime = self._queue[0][0]
        if vruntime > self.min_vruntime:
            self.min_vruntime = vruntime

    def slice_left_ns(self, curr: Task) -> int:
        """Return when a tick would preempt: slice used, or too far ahead (check_preempt_tick)."""
        ideal = self._slice_ns(curr.weight)
        left = ideal - self._ran_ns
        if self._queue:
            lead = curr.vruntime - self._queue[0][0]
            until_ahead = (ideal - lead) * curr.weight // NICE_0_LOAD
            ahead = max(until_ahead, self._granularity_ns - self._ran_ns)
            if ahead < left:
                return ahead
        return left

    def preempts(self, curr: Task, woken: Task) -> bool:
        """Return whether the woken task is a wake-up granularity behind (wakeup_preempt_entity)."""
        if woken.policy or curr.policy == SCHED_IDLE:
            return policy_preempts(curr.policy, woken.policy)
        granularity = self._wakeup_ns
        if woken.weight != NICE_0_LOAD:
            granularity = granularity * NICE_0_LOAD // woken.weight
        return curr.vruntime - woken.vruntime > granularity

    def _slice_ns(self, weight: int) -> int:
        """Return a task's share of the period, when it runs beside the queued (sched_slice)."""
        running = self.nr_queued + 1
        period = self._latency_ns
        if running > self._nr_latency:
            period = running * self._granularity_ns
        return period * weight // (self.load + weight)
