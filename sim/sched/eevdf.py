"""Earliest eligible virtual deadline first: who is owed time goes first, the most urgent before.

Theory of operation. A task's *vruntime* v advances by its run time x 1024 / weight. The queue's
average V, weighted, current task included, is what all would have with perfect sharing; a task's
*lag* is V - v, and it is *eligible* while that is not negative. Each asks for slices, of the
release's length or (6.12 on) of one of its own; its virtual *deadline* is where v will be at the
end of the slice. Of the eligible the one with the earliest deadline runs: to the end of its slice,
or, if somebody urgent wakes, until it has had its share (RUN_TO_PARITY). This protection begins
when the CPU switches to the task. It is not renewed: who is picked again, or is alone and begins
its next slice, is protected no more, and gives way to the first urgent one that wakes. It is gone,
too, when one with a shorter slice is eligible (PREEMPT_SHORT). Lag outlives a sleep: a sleeper that
was owed time still is, and one that had too much (6.12 on) stays in the average until V has caught
up (*delayed dequeue*), so that short sleeps cancel no debts.

Estimate: n hogs of equal weight take turns of a slice, rounded up to ticks; a sleeper that works
for less than it is owed takes the CPU at once, one that has used up its lag waits for a slice. A
short slice gives no more CPU, but sooner: beside one hog a task of nice 0 that asks for 0.1 ms has
its deadline 0.1 ms from V, and the hog with 3 ms gives way to it when it wakes and is owed
anything; one that asks for 100 ms waits for all the hog's slices until V is 50 ms further.

Linux counterpart: kernel/sched/fair.c 6.6-6.18: avg_vruntime, place_entity, update_entity_lag,
 pick_eevdf, update_deadline, set_protect_slice, do_preempt_short, did_preempt_short,
 check_preempt_wakeup_fair, requeue_delayed_entity; syscalls.c __setparam_fair; features.h.
Invariants: the sums are those of the queued and the delayed; each of these is at one place of the
 list sorted by deadline; somebody there is always eligible.
Left out: buddies; moving a delayed task to another CPU (it owes less than a slice, and a balancer
 comes by every 16 ms); a group's slice, which is the shortest of its members' (here the release's).
 Slices end at ticks; run time is measured exactly, so the slices of one who is alone follow each
 other without gaps, and not from tick to tick. Groups are group_queue.py's.
"""

from bisect import insort
from dataclasses import dataclass

from sim.sched.fair import NICE_0_LOAD, policy_preempts
from sim.sched.features import (
    BASE_SLICE_NS,
    DELAY_DEQUEUE,
    KEEP_DEADLINE,
    PREEMPT_SHORT,
    SHORTEST_PROTECTS,
)
from sim.sched.sched_class import SchedClass
from sim.sched.task import SCHED_IDLE, Task
from sim.sched.version import KernelVersion, in_force

Entry = tuple[int, int, Task]  # deadline, order among equals, task


@dataclass(frozen=True, kw_only=True)
class EevdfTunables:
    """What a release does on this number of CPUs."""

    slice_ns: int
    delay_dequeue: bool  # who sleeps in debt stays in the average until it is paid
    keep_deadline: bool  # who moves to another CPU keeps what is left of the slice
    preempt_short: bool  # who is eligible and asks for less ends the protection of who runs
    shortest_protects: bool  # for the shortest slice of all, not its own; then a tick looks again


def eevdf_tunables(kernel: KernelVersion, nr_cpus: int) -> EevdfTunables:
    """Return the defaults of a release; slices times 1 + log2(CPUs, at most 8) (update_sysctl)."""
    return EevdfTunables(
        slice_ns=in_force(BASE_SLICE_NS, kernel) * min(nr_cpus, 8).bit_length(),
        delay_dequeue=in_force(DELAY_DEQUEUE, kernel),
        keep_deadline=in_force(KEEP_DEADLINE, kernel),
        preempt_short=in_force(PREEMPT_SHORT, kernel),
        shortest_protects=in_force(SHORTEST_PROTECTS, kernel),
    )


class EevdfQueue(SchedClass):
    """One CPU's queue (struct cfs_rq)."""

    __slots__ = (
        "_curr",
        "_delay",
        "_keep_deadline",
        "_picked_at",
        "_preempt_short",
        "_protected",
        "_put",
        "_queue",
        "_sequence",
        "_shortest_protects",
        "_slice_ns",
        "_tick_ns",
        "_weighted_sum",
        "_weights",
        "_zero",
    )

    def __init__(self, tunables: EevdfTunables, tick_ns: int) -> None:
        super().__init__()
        self.told_of_sleep = True
        self._slice_ns: int = tunables.slice_ns
        self._tick_ns: int = tick_ns
        self._delay: bool = tunables.delay_dequeue
        self._keep_deadline: bool = tunables.keep_deadline
        self._preempt_short: bool = tunables.preempt_short
        self._shortest_protects: bool = tunables.shortest_protects
        self._protected: int = 0  # vruntime up to which the current task runs to parity
        self._put: Task | None = None  # the current task, put back and nobody picked since
        self._picked_at: int | None = None  # vruntime at which the current task was picked again
        self._queue: list[Entry] = []  # queued and delayed
        self._sequence: int = 0
        self._weights: int = 0  # of those in the list
        self._weighted_sum: int = 0  # of weight x vruntime
        self._curr: Task | None = None
        self._zero: int = 0  # V of an empty queue: where the last one left it

    # -- The average

    def _sums(self) -> tuple[int, int]:
        """Return the sum of weight x vruntime and that of the weights, with the current task's."""
        curr = self._curr
        if curr is None:
            return self._weighted_sum, self._weights
        return self._weighted_sum + curr.weight * curr.vruntime, self._weights + curr.weight

    def _average(self) -> int:
        """Return V (avg_vruntime)."""
        weighted, weights = self._sums()
        return weighted // weights if weights else self._zero

    def _lag(self, task: Task) -> int:
        """Return what the task is owed, in virtual time, within bounds (update_entity_lag)."""
        limit = max(2 * self._slice_of(task), self._tick_ns) * NICE_0_LOAD // task.weight
        return max(-limit, min(self._average() - task.vruntime, limit))

    # -- Placement

    def place_new(self, task: Task, curr: Task | None) -> None:
        """Start on the average, with half a slice to make room soon (PLACE_DEADLINE_INITIAL)."""
        task.vruntime = self._average()
        task.deadline = task.vruntime + self._vslice(task) // 2

    def place_woken(self, task: Task, slept_as: int, now_ns: int) -> None:
        """Give back the lag with which the task went to sleep, or what is left of its debt."""
        if not task.sched_delayed:
            self._place(task)
            task.deadline = task.vruntime + self._vslice(task)
            return
        lag = self._lag(task)
        self._forget_delayed(task)
        if lag > 0:  # Paid, and more: on the average, as if it had just come.
            task.vruntime = self._average()
            task.deadline = task.vruntime + self._vslice(task)

    def _place(self, task: Task) -> None:
        """Set vruntime so that the lag is as it was, this task included in the average."""
        weighted, weights = self._sums()
        if not weights:
            task.vruntime = self._zero
            return
        task.vruntime = weighted // weights - task.vlag * (weights + task.weight) // weights

    def _vslice(self, task: Task) -> int:
        """Return a slice in the task's virtual time."""
        return self._slice_of(task) * NICE_0_LOAD // task.weight

    def _slice_of(self, task: Task) -> int:
        """Return how long a slice the task asks for."""
        return task.slice_ns or self._slice_ns

    def migrate_out(self, task: Task) -> None:
        """Leave lag and deadline as dequeue() and put_to_sleep() have noted them."""

    def migrate_in(self, task: Task) -> None:
        """Place one that waits for a CPU; a sleeper gets its place when it has woken."""
        if not task.on_rq:
            return
        self._place(task)
        left = task.deadline if self._keep_deadline else self._vslice(task)
        task.deadline = task.vruntime + left

    # -- The queue

    def enqueue(self, task: Task) -> None:
        """Sort the task in."""
        self._add(task)
        self.load += task.weight
        self.nr_queued += 1

    def _add(self, task: Task) -> None:
        self._sequence = sequence = self._sequence + 1
        insort(self._queue, (task.deadline, sequence, task))
        self._weights += task.weight
        self._weighted_sum += task.weight * task.vruntime

    def _remove(self, index: int) -> Task:
        task = self._queue.pop(index)[2]
        self._weights -= task.weight
        self._weighted_sum -= task.weight * task.vruntime
        return task

    def _index(self, task: Task) -> int:
        for index, entry in enumerate(self._queue):
            if entry[2] is task:
                return index
        raise AssertionError(f"{task} is not queued")

    def requeue(self, curr: Task) -> None:
        """Sort the current task in again, with a new slice if it has had its own."""
        self._curr = None
        self._renew(curr)
        self.enqueue(curr)
        self._put = curr

    def switched_away(self) -> None:
        """Let the next turn of the task put back last be a new one, with its own protection."""
        self._put = None

    def _renew(self, curr: Task) -> None:
        """Begin a new slice where the last one is used up (update_deadline)."""
        if curr.vruntime >= curr.deadline:
            curr.deadline = curr.vruntime + self._vslice(curr)

    def dequeue(self, task: Task) -> None:
        """Take the task out; note what it is owed and how far it is from its deadline."""
        task.vlag = self._lag(task)
        task.deadline -= task.vruntime
        self._remove(self._index(task))
        self.load -= task.weight
        self.nr_queued -= 1
        self._put = None

    def pick_next(self) -> Task | None:
        """Take out the eligible task with the earliest deadline (pick_eevdf)."""
        while self.nr_queued:
            task = self._remove(self._first_eligible(self._weighted_sum, self._weights))
            if not task.sched_delayed:
                self.load -= task.weight
                self.nr_queued -= 1
                self._begin_turn(task)
                return task
            self._dequeue_delayed(task)
        return None

    def _first_eligible(self, weighted: int, weights: int) -> int:
        """Return the place of the first task that is not ahead of the average of these sums."""
        for index, entry in enumerate(self._queue):
            if entry[2].vruntime * weights <= weighted:
                return index
        return len(self._queue)

    def run_alone(self, task: Task) -> bool:
        """Begin a turn."""
        self._put = None
        self._begin_turn(task)
        return True

    def _begin_turn(self, task: Task) -> None:
        """Make the task current, and protect it if that is a switch (set_next_entity).

        Who is picked again goes on as it was: pick_next_task_fair() does not set it anew.
        """
        self._curr = task
        again = self._put is task
        self._put = None
        if again:
            self._picked_at = task.vruntime
            return
        self._picked_at = None
        self._protected = task.deadline
        if self._shortest_protects:
            self._protect_less(task, self._slice_of(task))

    def _protect_less(self, curr: Task, shortest: int) -> None:
        """Protect the current task for no longer than `shortest`, or the shortest slice of all.

        set_protect_slice() does so at the switch, update_protect_slice() when who wakes asks for
        less and does not preempt.
        """
        own = self._slice_of(curr)
        for entry in self._queue:
            shortest = min(shortest, self._slice_of(entry[2]))
        if shortest < own:
            until = curr.vruntime + shortest * NICE_0_LOAD // curr.weight
            self._protected = min(self._protected, until)

    def waiting(self) -> list[Task]:
        """Return the queued tasks in the order of their deadlines."""
        return [entry[2] for entry in self._queue if not entry[2].sched_delayed]

    # -- Going to sleep

    def put_to_sleep(self, curr: Task) -> None:
        """Note the lag; who sleeps in debt stays in the average (dequeue_entity, set_delayed)."""
        lag = self._lag(curr)
        self._curr = None
        # Who exits has no debts; who is a group (pid < 0) may well.
        if self._delay and lag < 0 and self.nr_queued and (curr.gen is not None or curr.pid < 0):
            self._renew(curr)
            self._add(curr)
            curr.sched_delayed = True
            return
        curr.vlag = 0 if self._delay and lag < 0 else lag
        if not self.nr_queued:
            self._empty(curr)

    def _empty(self, last: Task) -> None:
        """Nobody wants to run: debts are off (pick_task_fair takes out the delayed, one by one)."""
        for entry in self._queue:
            self._dequeue_delayed(entry[2])
        self._queue.clear()
        self._weights = self._weighted_sum = 0
        self._zero = max(self._zero, last.vruntime)

    def _dequeue_delayed(self, task: Task) -> None:
        """End the delay of a task whose debt is paid; what it is owed since is forgotten."""
        task.sched_delayed = False
        task.vlag = 0

    def _forget_delayed(self, task: Task) -> None:
        """Take out a delayed task that wakes."""
        self._remove(self._index(task))
        self._dequeue_delayed(task)

    # -- The current task

    def account(self, curr: Task, ns: int) -> None:
        """Advance vruntime; one who is alone gets slice after slice (update_curr)."""
        if curr.weight != NICE_0_LOAD:
            ns = ns * NICE_0_LOAD // curr.weight
        curr.vruntime += ns
        if not self.nr_queued and curr.vruntime >= curr.deadline:
            self._renew(curr)

    def reweight(self, curr: Task, weight: int) -> None:
        """Keep what it is owed in time, and how much of its slice is left (reweight_entity)."""
        average = self._average()
        owed = (average - curr.vruntime) * curr.weight // weight
        left = (curr.deadline - curr.vruntime) * curr.weight // weight
        protected = (self._protected - curr.vruntime) * curr.weight // weight
        curr.weight = weight
        curr.vruntime = average - owed
        curr.deadline = curr.vruntime + left
        self._protected = curr.vruntime + protected

    def slice_left_ns(self, curr: Task) -> int:
        """Return when a tick would find the slice used up, or another's turn."""
        until = curr.deadline
        if self._shortest_protects:
            until = min(until, self._protected)
        elif self._preempt_short and curr.vruntime >= self._protected:
            until = min(until, self._eligible_until(curr))
        # Rounded up: who has anything left is not picked again for nothing, for ever.
        left = -((curr.vruntime - until) * curr.weight // NICE_0_LOAD)
        if left <= 0 and curr.vruntime == self._picked_at:
            return 1  # This tick has looked: update_curr() does so once it has run again.
        return left

    def _eligible_until(self, curr: Task) -> int:
        """Return the vruntime up to which the current task is eligible (did_preempt_short).

        Running for t moves v by t / weight and V by t / weights: they meet where the others' mean
        is, which does not move.
        """
        return self._weighted_sum // self._weights if self._weights else curr.deadline

    def preempts(self, curr: Task, woken: Task) -> bool:
        """Return whether the woken task would be picked (check_preempt_wakeup_fair)."""
        if woken.policy or curr.policy == SCHED_IDLE:
            return policy_preempts(curr.policy, woken.policy)
        if curr.vruntime >= curr.deadline:
            return True
        if not self._shortest_protects:
            return self._would_pick(curr, woken)
        if self._queue and curr.vruntime >= self._protected:
            return True  # enqueue_entity() calls update_curr(), which looks if others wait.
        if not self._preempt_short or self._slice_of(woken) >= self._slice_of(curr):
            return self._would_pick(curr, woken)
        protected, self._protected = self._protected, curr.vruntime
        if self._would_pick(curr, woken):
            return True
        self._protected = protected
        self._protect_less(curr, self._slice_of(woken))
        return False

    def _would_pick(self, curr: Task, woken: Task) -> bool:
        """Return whether the woken task would be picked, with the current one's protection.

        To 6.16 that ends when the woken one asks for less and is urgent (do_preempt_short).
        """
        weighted, weights = self._sums()
        weighted += woken.weight * woken.vruntime
        weights += woken.weight
        if woken.vruntime * weights > weighted:
            return False
        is_eligible = curr.vruntime * weights <= weighted
        is_urgent = woken.deadline < curr.deadline
        if self._preempt_short and not self._shortest_protects:
            asks_for_less = self._slice_of(woken) < self._slice_of(curr)
            if asks_for_less and (is_urgent or not is_eligible):
                self._protected = curr.vruntime  # Whoever is picked now.
        if is_eligible and (not is_urgent or curr.vruntime < self._protected):
            return False
        first = self._first_eligible(weighted, weights)
        return first == len(self._queue) or woken.deadline < self._queue[first][0]
