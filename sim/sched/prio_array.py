"""The O(1) scheduler of 2.6.0 to 2.6.22: priorities, time slices, and a bonus for sleeping.

Models: one CPU's two arrays of tasks by priority. The best priority of the *active* array runs,
equals in turn; who has used up the time slice goes to the *expired* array, and when the active one
is empty they change places. Sleeping earns ``sleep_avg``, running spends it: it moves the priority
by -5 to +5 around the static one, so a task that mostly waits preempts a CPU hog at once, and as
long as it counts as interactive its used-up slice does not send it to the expired array.
Linux counterpart: kernel/sched.c 2.6.16: recalc_task_prio, effective_prio, task_timeslice,
 scheduler_tick, wake_up_new_task, TASK_INTERACTIVE, EXPIRED_STARVING. RHEL5's 2.6.18 is the same.
Invariants: a queued task is in one array, once; 0 <= sleep_avg <= MAX_SLEEP_AVG.
Left out: credit for waiting on the run queue (activated > 0), inheritance at exit, real-time
 priorities. Slices are spent by exact run time, Linux takes whole ticks.
"""

from bisect import insort
from typing import Final

from sim.sched.sched_class import SchedClass
from sim.sched.task import SCHED_BATCH, TASK_UNINTERRUPTIBLE, Task

MS: Final = 1_000_000
DEF_TIMESLICE_NS: Final = 100 * MS  # of nice 0
MIN_TIMESLICE_NS: Final = 5 * MS
MAX_BONUS: Final = 10
MAX_SLEEP_AVG_NS: Final = DEF_TIMESLICE_NS * MAX_BONUS
BONUS_NS: Final = MAX_SLEEP_AVG_NS // MAX_BONUS  # sleep_avg for one point of bonus
STARVATION_LIMIT_NS: Final = MAX_SLEEP_AVG_NS
INTERACTIVE_DELTA: Final = 2
CHILD_PENALTY_PERCENT: Final = 95
GRANULARITY_NS: Final = 10 * MS  # interactive tasks take turns in multiples of this
NICE_0_PRIO: Final = 120
BEST_PRIO: Final = 100
WORST_PRIO: Final = 139
PRIO_AT_REST: Final = NICE_0_PRIO + MAX_BONUS // 2  # of nice 0 without a bonus


def task_timeslice_ns(nice: int) -> int:
    """Return the time slice: 800 ms at nice -20, 100 ms at 0, 5 ms at 19."""
    base = DEF_TIMESLICE_NS if nice >= 0 else 4 * DEF_TIMESLICE_NS
    return max(base * (20 - nice) // 20, MIN_TIMESLICE_NS)


def current_bonus(task: Task) -> int:
    """Return the bonus for sleeping, 0 to 10."""
    return task.sleep_avg_ns // BONUS_NS


def interactive_delta(nice: int) -> int:
    """Return how far above its static priority a task is interactive (DELTA)."""
    return (nice + 20) * MAX_BONUS // 40 - 20 * MAX_BONUS // 40 + INTERACTIVE_DELTA


def interactive_sleep_ns(nice: int) -> int:
    """Return the sleep that makes a task interactive (INTERACTIVE_SLEEP): 0.8 s at nice 0."""
    return MAX_SLEEP_AVG_NS * (MAX_BONUS // 2 + interactive_delta(nice) + 1) // MAX_BONUS


def effective_prio(task: Task) -> int:
    """Return the dynamic priority; a smaller number is better."""
    return PRIO_BY_NICE_AND_BONUS[task.nice + 20][task.sleep_avg_ns // BONUS_NS]


def prio_with_bonus(nice: int, bonus: int) -> int:
    """Return the dynamic priority with a bonus for sleeping of 0 to 10."""
    return min(max(BEST_PRIO, PRIO_AT_REST + nice - bonus), WORST_PRIO)


# By nice + 20; looked up at each wake-up.
INTERACTIVE_SLEEP_NS: Final = tuple(interactive_sleep_ns(nice) for nice in range(-20, 20))
PRIO_BY_NICE_AND_BONUS: Final = tuple(
    tuple(prio_with_bonus(nice, bonus) for bonus in range(MAX_BONUS + 1)) for nice in range(-20, 20)
)


def is_interactive(task: Task) -> bool:
    """Return whether a used-up slice leaves the task in the active array (TASK_INTERACTIVE)."""
    return task.prio <= NICE_0_PRIO + task.nice - interactive_delta(task.nice)


Entry = tuple[int, int, Task]  # priority, order among equals, task


class PrioArrays(SchedClass):
    """One CPU's active and expired arrays (struct prio_array)."""

    __slots__ = (
        "_active",
        "_behind",
        "_clock_ns",
        "_expired",
        "_expired_since_ns",
        "_forked",
        "_granularity_ns",
        "_head",
        "_newborn",
        "_tail",
        "_turn_began_ns",
    )

    def __init__(self, nr_cpus: int) -> None:
        super().__init__()
        self._granularity_ns: int = GRANULARITY_NS * nr_cpus
        self._active: list[Entry] = []
        self._expired: list[Entry] = []
        self._expired_since_ns: int = -1  # by this CPU's run time, as _clock_ns
        self._clock_ns: int = 0
        self._turn_began_ns: int = 0  # when the current task was last at the back, by _clock_ns
        self._head: int = 0
        self._tail: int = 0
        self._newborn: Task | None = None  # goes before its parent, who runs now
        self._forked: bool = False  # the current task has forked since it was picked,
        self._behind: int = 0  # and goes here, behind its children

    # -- Placement

    def place_new(self, task: Task, curr: Task | None) -> None:
        """Halve the parent's slice with its child, which runs first (sched_fork)."""
        parent = task.parent
        if parent is None:
            task.time_slice_ns = task_timeslice_ns(task.nice)
        else:
            parent.time_slice_ns //= 2
            task.time_slice_ns = parent.time_slice_ns
            task.sleep_avg_ns = parent.sleep_avg_ns * CHILD_PENALTY_PERCENT // 100
        task.prio = effective_prio(task)
        self._newborn = None
        if parent is not None and parent is curr:
            task.prio = parent.prio
            self._newborn = task

    def place_woken(self, task: Task, slept_as: int, now_ns: int) -> None:
        """Credit the sleep (recalc_task_prio); for a program, waiting for a disk is little."""
        slept_ns = 0 if task.policy == SCHED_BATCH else now_ns - task.last_ran_ns
        had_ns = task.sleep_avg_ns
        ceiling_ns = MAX_SLEEP_AVG_NS
        if not task.is_kthread:
            interactive_ns = INTERACTIVE_SLEEP_NS[task.nice + 20]
            if slept_as & TASK_UNINTERRUPTIBLE:
                ceiling_ns = had_ns if had_ns > interactive_ns else interactive_ns
            elif slept_ns > interactive_ns:
                # It leaves a reserve of one slice: idling must not earn the best priority.
                ceiling_ns = had_ns = MAX_SLEEP_AVG_NS - DEF_TIMESLICE_NS
        has_ns = had_ns + slept_ns  # times what it has yet to the highest bonus
        if has_ns < ceiling_ns:
            has_ns += slept_ns * ((MAX_BONUS - had_ns // BONUS_NS or 1) - 1)
        if has_ns > ceiling_ns:
            has_ns = ceiling_ns
        task.sleep_avg_ns = has_ns
        task.prio = PRIO_BY_NICE_AND_BONUS[task.nice + 20][has_ns // BONUS_NS]

    def migrate_out(self, task: Task) -> None:
        """Priorities mean the same everywhere."""

    def migrate_in(self, task: Task) -> None:
        """Priorities mean the same everywhere."""

    # -- The arrays

    def enqueue(self, task: Task) -> None:
        """Put the task behind its equals, or a new child before its parent."""
        if task is self._newborn:
            self._newborn = None
            self._head -= 2
            if not self._forked:
                self._forked = True
                self._behind = self._head + 1
            insort(self._active, (task.prio, self._head, task))
        else:
            self._tail += 1
            active = self._active
            if not active or active[-1][0] <= task.prio:
                active.append((task.prio, self._tail, task))
            else:
                insort(active, (task.prio, self._tail, task))
        self.load += task.weight
        self.nr_queued += 1

    def requeue(self, curr: Task) -> None:
        """Put the preempted task before its equals; who has used up the slice, behind or away."""
        self.load += curr.weight
        self.nr_queued += 1
        if curr.time_slice_ns <= 0:
            curr.time_slice_ns = task_timeslice_ns(curr.nice)
            curr.prio = effective_prio(curr)
            self._tail += 1
            entry = (curr.prio, self._tail, curr)
            if is_interactive(curr) and not self._expired_starving():
                insort(self._active, entry)
                return
            if self._expired_since_ns < 0:
                self._expired_since_ns = self._clock_ns
            insort(self._expired, entry)
        elif is_interactive(curr) and self._clock_ns - self._turn_began_ns >= self._turn_ns(curr):
            self._tail += 1
            insort(self._active, (curr.prio, self._tail, curr))
        elif self._forked:
            insort(self._active, (curr.prio, self._behind, curr))
        else:
            self._head -= 1
            insort(self._active, (curr.prio, self._head, curr))

    def dequeue(self, task: Task) -> None:
        """Take the task out of its array."""
        self._active = [entry for entry in self._active if entry[2] is not task]
        self._expired = [entry for entry in self._expired if entry[2] is not task]
        self.load -= task.weight
        self.nr_queued -= 1
        assert self.nr_queued == len(self._active) + len(self._expired)

    def pick_next(self) -> Task | None:
        """Take out the first of the best priority; exchange the arrays when none is active."""
        self._turn_began_ns = self._clock_ns
        self._forked = False
        if not self._active:
            self._expired_since_ns = -1
            if not self._expired:
                return None
            self._active, self._expired = self._expired, self._active
        task = self._active.pop(0)[2]
        self.load -= task.weight
        self.nr_queued -= 1
        return task

    def run_alone(self, task: Task) -> bool:
        """Begin a turn."""
        self._turn_began_ns = self._clock_ns
        self._forked = False
        self._expired_since_ns = -1
        return True

    def waiting(self) -> list[Task]:
        """Return the active tasks, then the expired."""
        return [entry[2] for entry in self._active + self._expired]

    # -- The current task

    def account(self, curr: Task, ns: int) -> None:
        """Spend slice and sleep_avg; a high bonus is spent slowly."""
        self._clock_ns += ns
        curr.time_slice_ns -= ns
        sleep_avg = curr.sleep_avg_ns
        if sleep_avg:
            sleep_avg -= ns // (sleep_avg // BONUS_NS or 1)
            if sleep_avg < 0:
                sleep_avg = 0
            curr.sleep_avg_ns = sleep_avg

    def slice_left_ns(self, curr: Task) -> int:
        """Return what is left of the slice, or of an interactive task's turn."""
        left = curr.time_slice_ns
        if is_interactive(curr):
            turn = self._turn_ns(curr) - (self._clock_ns - self._turn_began_ns)
            if turn < left:
                return turn
        return left

    def preempts(self, curr: Task, woken: Task) -> bool:
        """Return whether the woken task's priority is better (TASK_PREEMPTS_CURR)."""
        return woken.prio < curr.prio

    def _turn_ns(self, task: Task) -> int:
        """Return the turn of an interactive task (TIMESLICE_GRANULARITY)."""
        return self._granularity_ns << (((MAX_BONUS - current_bonus(task)) or 1) - 1)

    def _expired_starving(self) -> bool:
        """Return whether the expired have waited for a second of run time per task."""
        if self._expired_since_ns < 0:
            return False
        waited_ns = self._clock_ns - self._expired_since_ns
        return waited_ns >= STARVATION_LIMIT_NS * (self.nr_queued + 1)
