"""One CPU's queues with groups: the walk from a task up through the entities that hold it.

Theory of operation. What the run queue asks of a scheduling class is asked here of one queue after
the other: of the group's that the task is in, then, with the group's entity in place of the task,
of the parent's, up to the root (for_each_sched_entity). An entity is in its parent's queue while a
member waits, and *current* there while a member runs. A throttled group is in nobody's queue: its
members wait unseen, and count neither as running nor in the load average.

Linux counterpart: kernel/sched/fair.c: enqueue_task_fair, dequeue_task_fair, pick_next_task_fair,
 put_prev_entity, find_matching_se, throttle_cfs_rq, unthrottle_cfs_rq, task_h_load.
Invariants: nr_queued is the number of waiting tasks outside of throttled groups; the entities from
 the current task up are in no queue.
Left out: slices made shorter by the parents' shares (sched_slice): a member runs its slice when its
 group has its turn; a group that waits already is not looked at again when one more member wakes.

A machine without groups has plain queues: this file costs it nothing.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from sim.sched.bandwidth import LocalRuntime
from sim.sched.sched_class import SchedClass
from sim.sched.task import TASK_INTERRUPTIBLE, Scheduler, Task
from sim.sched.task_group import GroupRq, TaskGroup

FAR_NS: Final = 1_000_000_000  # nobody waits at any level: nothing ends the turn


class GroupQueue(SchedClass):
    """All queues of one CPU."""

    __slots__ = ("_below", "_by_group", "_put", "_root", "_sched", "_unthrottled")

    def __init__(
        self,
        sched: Scheduler,
        make_queue: Callable[[], SchedClass],
        groups: list[TaskGroup],
        unthrottled: Callable[[Callable[[], None]], None],
    ) -> None:
        """Make a queue for each group, parents before children.

        `unthrottled` is called with what puts a group back, to tell the run queue as well.
        """
        super().__init__()
        self.told_of_sleep = True
        self._sched = sched
        self._unthrottled = unthrottled
        self._root = GroupRq(make_queue(), None, None, None)
        self._put: GroupRq | None = None  # where the task put back last waits
        self._by_group: dict[str, GroupRq] = {}
        self._below: dict[int, GroupRq] = {}  # by the pid of the entity
        for number, group in enumerate(groups, start=1):
            self._add(group, number, make_queue())

    def _add(self, group: TaskGroup, number: int, queue: SchedClass) -> None:
        parent = self._root if group.parent is None else self._by_group[group.parent.name]
        entity = Task(self._sched, -number, group.name, None, 0, group.shares)
        rq = GroupRq(queue, group, entity, parent)
        if group.bandwidth is not None:
            self.quotas += 1
            restart = partial(self._unthrottled, partial(self._come_back, rq))
            rq.local = LocalRuntime(group.bandwidth, restart)
        self._by_group[group.name] = rq
        self._below[entity.pid] = rq
        group.rqs.append(rq)

    def _rq_of(self, task: Task) -> GroupRq:
        """Return the queue that a task waits in."""
        group = task.group
        return self._by_group[group] if group else self._root

    # -- Placement

    def place_new(self, task: Task, curr: Task | None) -> None:
        """Place the task among its like, and its group where that does not compete yet."""
        rq = self._rq_of(task)
        fellow = curr if curr is not None and curr.group == task.group else None
        rq.queue.place_new(task, fellow)
        self._place_above(rq, task.weight)

    def place_woken(self, task: Task, slept_as: int, now_ns: int) -> None:
        """Place the task among its like, and its group where that does not compete yet."""
        rq = self._rq_of(task)
        rq.queue.place_woken(task, slept_as, now_ns)
        self._place_above(rq, task.weight)

    def _place_above(self, rq: GroupRq, joining: int) -> None:
        """Place the entities that are to join; `joining` is the weight of who joins `rq`."""
        parent = rq.parent
        while parent is not None and not rq.on_rq:
            entity = rq.entity
            assert entity is not None
            if not entity.sched_delayed:  # Else it is still in the queue, with its old weight.
                rq.renew_weight(joining)
            joining = entity.weight
            now_ns = self._sched.calendar.now
            parent.queue.place_woken(entity, TASK_INTERRUPTIBLE, now_ns)
            rq = parent
            parent = rq.parent

    def migrate_out(self, task: Task) -> None:
        """Make the task's place among its like relative."""
        self._rq_of(task).queue.migrate_out(task)

    def migrate_in(self, task: Task) -> None:
        """Give the task a place among its like on this CPU."""
        rq = self._rq_of(task)
        rq.queue.migrate_in(task)
        if task.on_rq:
            self._place_above(rq, task.weight)

    # -- The queues

    def enqueue(self, task: Task) -> None:
        """Add a task, and the entities above it that are not there yet."""
        rq = self._rq_of(task)
        rq.queue.enqueue(task)
        rq.nr_waiting += 1
        self._join_above(rq, 1)

    def _join_above(self, rq: GroupRq, tasks: int) -> None:
        """Tell the queues above `rq` that so many more tasks wait there."""
        parent = rq.parent
        while parent is not None:
            if rq.throttled or (not rq.on_rq and self._throttles(rq)):
                return
            if not rq.on_rq:
                entity = rq.entity
                assert entity is not None
                rq.on_rq = True
                parent.queue.enqueue(entity)
            parent.nr_waiting += tasks
            rq = parent
            parent = rq.parent
        self.nr_queued += tasks

    def requeue(self, curr: Task) -> None:
        """Put the current task back among its like, and each group if it may go on."""
        rq = self._rq_of(curr)
        rq.running = None
        rq.queue.requeue(curr)
        rq.nr_waiting += 1
        self._leave_above(rq, 1)
        self._put = rq
        if not self.nr_queued:  # Quotas are used up: nobody runs next.
            self._end_put()

    def put_to_sleep(self, curr: Task) -> None:
        """Let go of the current task; a group stays if other members wait."""
        rq = self._rq_of(curr)
        rq.running = None
        rq.queue.put_to_sleep(curr)
        local = rq.local
        if local is not None and not rq.queue.nr_queued:
            local.pool.give_back(local)
        self._leave_above(rq, 0)

    def _leave_above(self, rq: GroupRq, tasks: int) -> None:
        """End the turn of the entities above; `tasks` more wait in `rq` than before."""
        self.bounded = False
        parent = rq.parent
        while parent is not None:
            entity = rq.entity
            assert entity is not None
            parent.running = None
            stays = rq.queue.nr_queued > 0
            if stays and self._throttles(rq):
                stays = False
                tasks -= rq.nr_waiting
            rq.on_rq = stays
            if stays:
                rq.renew_weight(0)
                parent.queue.requeue(entity)
            else:
                parent.queue.put_to_sleep(entity)
            parent.nr_waiting += tasks
            rq = parent
            parent = rq.parent
        self.nr_queued += tasks

    def dequeue(self, task: Task) -> None:
        """Take out a waiting task, and the groups that are left without any."""
        rq = self._rq_of(task)
        rq.queue.dequeue(task)
        rq.nr_waiting -= 1
        parent = rq.parent
        while parent is not None:
            if rq.running is None and not rq.queue.nr_queued and rq.on_rq:
                entity = rq.entity
                assert entity is not None
                rq.on_rq = False
                parent.queue.dequeue(entity)
            parent.nr_waiting -= 1
            rq = parent
            parent = rq.parent
        self.nr_queued -= 1

    def pick_next(self) -> Task | None:
        """Take out the next entity, of its queue the next, down to a task."""
        if not self.nr_queued:
            return None
        rq = self._root
        while True:
            rq.nr_waiting -= 1
            picked = rq.queue.pick_next()
            assert picked is not None
            rq.running = picked
            below = self._below.get(picked.pid)
            if below is None:
                break
            rq = below
        self.nr_queued -= 1
        self._end_put()
        self._begin_turn(picked)
        return picked

    def _end_put(self) -> None:
        """Tell the groups that have lost the CPU that a turn there is over (put_prev_entity)."""
        rq = self._put
        self._put = None
        while rq is not None and rq.running is None:
            rq.queue.switched_away()
            rq = rq.parent

    def run_alone(self, task: Task) -> bool:
        """Begin the turns of a task and of all groups above it, if they have time left."""
        if self.holds_back(task):
            self.enqueue(task)
            return False
        rq = self._rq_of(task)
        entity: Task | None = task
        while entity is not None:
            rq.running = entity
            rq.queue.run_alone(entity)
            rq.on_rq = True
            entity = rq.entity
            if rq.parent is not None:
                rq.renew_weight(0)
                rq = rq.parent
        self._begin_turn(task)
        return True

    def _begin_turn(self, task: Task) -> None:
        """Note whether a quota may end the turn."""
        rq: GroupRq | None = self._rq_of(task)
        self.bounded = False
        while rq is not None:
            if rq.local is not None:
                self.bounded = True
            rq = rq.parent

    def waiting(self) -> list[Task]:
        """Return the waiting tasks that may run, a group's together."""
        return self._waiting_in(self._root)

    def _waiting_in(self, rq: GroupRq) -> list[Task]:
        found: list[Task] = []
        entities = rq.queue.waiting()
        if rq.running is not None:
            entities = [rq.running, *entities]  # Others of its group wait.
        for entity in entities:
            below = self._below.get(entity.pid)
            if below is not None:
                found += self._waiting_in(below)
            elif entity is not rq.running:
                found.append(entity)
        return found

    # -- Weights, as the balancer sees them

    def total_load(self, curr: Task | None) -> int:
        """Return the weights of what runs or waits at the root."""
        return self._root.load()

    def load_of(self, task: Task) -> int:
        """Return a task's part of that: its weight, scaled down from group to group."""
        rq = self._rq_of(task)
        load = task.weight
        while rq.parent is not None:
            entity = rq.entity
            assert entity is not None
            load = load * entity.weight // max(rq.load(), 1)
            rq = rq.parent
        return max(load, 1)

    def renew_weights(self) -> None:
        """Renew the weights of the groups that run, from the root down (entity_tick).

        A group that is alone on a CPU has no other occasion: its turn does not end.
        """
        rq = self._root
        while rq.running is not None:
            below = self._below.get(rq.running.pid)
            if below is None:
                return
            weight = below.due_weight(0)
            if weight and weight != rq.running.weight:
                rq.queue.reweight(rq.running, weight)
            rq = below

    # -- The current task

    def account(self, curr: Task, ns: int) -> None:
        """Charge the task and every group that it is in."""
        rq = self._rq_of(curr)
        entity: Task = curr
        while True:
            rq.queue.account(entity, ns)
            local = rq.local
            if local is not None:
                local.pool.charge(local, ns)
            above = rq.entity
            if above is None or rq.parent is None:
                return
            assert rq.group is not None
            rq.group.usage_ns += ns
            entity = above
            rq = rq.parent

    def slice_left_ns(self, curr: Task) -> int:
        """Return what is left of the turn at the level where it ends first, or of the quota."""
        rq = self._rq_of(curr)
        entity: Task = curr
        left = FAR_NS
        while True:
            if rq.queue.nr_queued:
                left = min(left, rq.queue.slice_left_ns(entity))
            if rq.local is not None:
                left = min(left, rq.local.runtime_ns)
            above = rq.entity
            if above is None or rq.parent is None:
                return left
            entity = above
            rq = rq.parent

    def preempts(self, curr: Task, woken: Task) -> bool:
        """Compare the two at the level where both, or groups of theirs, are in one queue."""
        if self.holds_back(woken):
            return False
        rq = self._rq_of(woken)
        entity: Task = woken
        waits = False
        while rq.running is None:  # Nothing of the current task's is in this group.
            above = rq.entity
            assert above is not None
            assert rq.parent is not None
            waits = rq.on_rq
            entity = above
            rq = rq.parent
        running = rq.running
        return not waits and running is not entity and rq.queue.preempts(running, entity)

    # -- Quotas

    def _throttles(self, rq: GroupRq) -> bool:
        """Throttle the group here if its time is up; return whether it is."""
        local = rq.local
        if local is None or not local.pool.is_exhausted(local):
            return False
        local.pool.throttle(local)
        rq.throttled = True
        return True

    def holds_back(self, task: Task) -> bool:
        """Return whether a task that wakes may not run: a group that it is in has no time left."""
        if not self.quotas:
            return False
        rq = self._rq_of(task)
        while rq.parent is not None:
            if rq.throttled or (not rq.on_rq and self._throttles(rq)):
                return True
            rq = rq.parent
        return False

    def is_throttled(self, task: Task) -> bool:
        """Return whether a group that the task is in waits for its next period on this CPU."""
        rq = self._rq_of(task)
        while rq.parent is not None:
            if rq.throttled:
                return True
            rq = rq.parent
        return False

    def _come_back(self, rq: GroupRq) -> None:
        """End the throttling of a group on this CPU (unthrottle_cfs_rq)."""
        rq.throttled = False
        if rq.queue.nr_queued:
            self._place_above(rq, 0)
            self._join_above(rq, rq.nr_waiting)
