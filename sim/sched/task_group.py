"""Groups of tasks that compete as one: the cpu controller's control groups.

Theory of operation. On each CPU a group is an *entity* in its parent's queue, and has a queue of
its own for its tasks and its child groups. The parent's queue shares the CPU among entities by
weight, the group's among its members. A group's weight is its shares, split over the CPUs by where
its members are: shares x (weight of its members here) / (weight of them all). So a group has its
share of the machine however many tasks it has.

Estimate: two groups of equal shares, one task in one and nine in the other: half of a CPU for the
one, a 18th for each of the nine.

Linux counterpart: struct task_group, struct cfs_rq, struct sched_entity (kernel/sched/sched.h);
 calc_group_shares, update_cfs_group (kernel/sched/fair.c): cpu.shares from 2.6.24 on,
 29f59db3a74b.
Invariants: an entity's weight changes only while it is in no queue: at the ends of its turns, and
 while it runs at each tick (entity_tick; before 2.6.38 update_shares() of the balancer).
Left out: averages of the members' weights over the last tens of milliseconds (load_avg, 3.8 on):
 what runs or waits now counts. Linux takes the larger of the two for a CPU's own members, so that
 what differs is what sleepers of other CPUs still count there: less than their part of the time.
"""

from typing import Final

from sim.sched.bandwidth import Bandwidth, LocalRuntime
from sim.sched.sched_class import SchedClass
from sim.sched.task import Task

SHARES_DEFAULT: Final = 1024  # NICE_0_LOAD
SHARES_MIN: Final = 2  # MIN_SHARES
WEIGHT_DEFAULT: Final = 100  # CGROUP_WEIGHT_DFL of cpu.weight


def weight_to_shares(weight: int) -> int:
    """Return the shares of a cpu.weight (sched_weight_from_cgroup)."""
    return max(-(-weight * SHARES_DEFAULT // WEIGHT_DEFAULT), SHARES_MIN)


class GroupRq:
    """A group on one CPU: its queue, and its entity in the parent's (struct cfs_rq)."""

    __slots__ = (
        "entity",
        "group",
        "local",
        "nr_waiting",
        "on_rq",
        "parent",
        "queue",
        "running",
        "throttled",
    )

    def __init__(
        self,
        queue: SchedClass,
        group: "TaskGroup | None",
        entity: Task | None,
        parent: "GroupRq | None",
    ) -> None:
        self.queue = queue
        self.group = group  # None: all tasks that are in none
        self.entity = entity
        self.parent = parent
        self.local: LocalRuntime | None = None  # its part of the group's quota, if that has one
        self.nr_waiting: int = 0  # tasks that wait below, but those in throttled groups below
        self.running: Task | None = None  # the member that is, or holds, the current task
        self.on_rq: bool = False  # the entity waits in the parent's queue or runs
        self.throttled: bool = False

    def load(self) -> int:
        """Return the weight of the members that run or wait here."""
        running = self.running
        return self.queue.load if running is None else self.queue.load + running.weight

    def renew_weight(self, joining: int) -> None:
        """Give the entity the part of the group's shares that this CPU's members have.

        `joining` is the weight of who is about to be one of them.
        """
        entity = self.entity
        assert entity is not None
        weight = self.due_weight(joining)
        if weight:
            entity.weight = weight

    def due_weight(self, joining: int) -> int:
        """Return that part of the shares, 0 if no member wants to run anywhere."""
        group = self.group
        assert group is not None
        total = group.load() + joining
        return max(group.shares * (self.load() + joining) // total, SHARES_MIN) if total else 0


class TaskGroup:
    """A group of tasks (struct task_group)."""

    __slots__ = ("bandwidth", "name", "parent", "rqs", "shares", "usage_ns")

    def __init__(
        self,
        name: str,
        shares: int = SHARES_DEFAULT,
        parent: "TaskGroup | None" = None,
        bandwidth: Bandwidth | None = None,
    ) -> None:
        self.name = name
        self.shares = shares
        self.parent = parent
        self.bandwidth = bandwidth
        self.rqs: list[GroupRq] = []  # by CPU
        self.usage_ns: int = 0  # CPU time of its members and of groups in it

    def load(self) -> int:
        """Return the weight of the members that run or wait anywhere."""
        total = 0
        for rq in self.rqs:
            total += rq.load()
        return total
