"""The sleeping lock: mutex.

Models: waiters sleep uninterruptibly, so they count as load, and outside io_schedule(), so they are
not iowait, whatever the owner does (mutex_lock_io of 4.11 on is a matter of the caller's).
Theory of operation. Unlocking frees the lock and wakes the oldest waiter. Nothing is handed over:
the waiter has to come and take the lock, and whoever asks before it is there takes it first
(*stealing*); then the waiter goes back to sleep in front of all others. So it is a race. The waiter
needs a CPU and a context switch; who unlocked runs already, and so do those who ask for the first
time. With one CPU the waiter cannot come before who unlocked has slept or used its slice: a task
that renames, unlinks, creates and writes in one directory does all of that at one go, and its data
are on their way before the next task has renamed anything. That is what decides which of several
writers' data go out before a journal's commit block. With an idle CPU the waiter is there within
microseconds, and wins unless the next request comes sooner.

A race is decided by when things happen, and a task's effects precede their cost (task.py). So where
somebody waits, the lock is free once the debt of who unlocks is worked off, and who asks for it
works its own debt off first. Who finds the lock's owner on the way out, on another CPU, spins until
then (*optimistic spinning*, from 2.6.30 on), and is there before any sleeper.

A lock is kept for a waiter that was overtaken too often (*handoff*): a mutex of 4.10 or later for
the first waiter that was woken in vain, a rw_semaphore of 5.3 or later for one that has waited for
more than a tick or two, too.

Where nobody waits, the lock is free at once; ``Holdings`` has the CPU time for which such a lock is
held, and spinning until it is free. Code under a lock that does not sleep happens at one instant of
simulated time and leaves a debt of CPU time, so that two CPUs would both be found to hold the lock
while they work the debts off. The holdings are therefore kept as intervals of time: from where the
debt stood when the lock was taken, for what was charged while it was held. One that would overlap
another CPU's is moved behind it, into the first gap that is long enough; the time until then is
spent spinning, which is CPU time too, and charged.

Estimate: eight writers of one directory, with four calls each of 100 us under its lock: handed on
in turn, all first data are ready after 4 x 8 x 100 us; stolen, the first after 0.4 ms.
Linux counterpart: kernel/mutex.c, kernel/locking/mutex.c: __mutex_lock_common, mutex_spin_on_owner
 (0d66bf6d3514, 2.6.30), __mutex_unlock_slowpath (2.6.16; before, a semaphore), MUTEX_FLAG_HANDOFF
 (9d659ae14b54, 4.10); kernel/locking/rwsem.c: rwsem_down_write_slowpath, rwsem_try_write_lock,
 RWSEM_WAIT_TIMEOUT (of inodes from 4.7 on; handoff: 4f23dbc1e657, 5.3), rwsem_optimistic_spin
 (3.16).
Invariants: a mutex has at most one owner, who alone unlocks it; sleepers get it in FIFO order; once
 it is kept for one of them, nobody else gets it before. Intervals of holdings of different CPUs do
 not overlap; a machine with one CPU never spins.
Left out: readers; spinning on an owner that runs and will yet sleep, and of the first waiter; a
 rw_semaphore to 3.9 is handed to who waits. Of holdings: an owner that is preempted while it works
 its debt off (waiters would sleep); the order of arrival among those who spin.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.units import NS_PER_S

_EVER_NS: Final = 1 << 62
WAITS_PER_S: Final = 250  # RWSEM_WAIT_TIMEOUT: DIV_ROUND_UP(HZ, 250) ticks

Patience: TypeAlias = Callable[[Task], int]


def patience_of_mutex(task: Task) -> int:
    """Return until when a waiter bears to be woken in vain: not at all, or for ever."""
    sched = task.sched
    return sched.calendar.now if sched.features.mutex_handoff else _EVER_NS


def patience_of_rwsem(task: Task) -> int:
    """Return until when a waiter bears to be overtaken: so many whole ticks (time_after)."""
    sched = task.sched
    if not sched.features.rwsem_handoff:
        return _EVER_NS
    ticks = -(-NS_PER_S // (sched.tick_ns * WAITS_PER_S)) + 1
    return (sched.calendar.now // sched.tick_ns + ticks) * sched.tick_ns


class Mutex:
    """A mutex (struct mutex), or a rw_semaphore that is only taken for writing."""

    __slots__ = ("_free_ns", "_kept_for", "_patience", "_waiters", "owner")

    def __init__(self, patience: Patience = patience_of_mutex) -> None:
        """``patience(task)`` is until when a waiter lets itself be overtaken."""
        self._patience = patience
        self.owner: Task | None = None
        self._free_ns: int = -1  # when who has unlocked it will have got there; -1: it has not
        self._waiters: deque[Task] = deque()
        self._kept_for: Task | None = None  # the waiter that nobody may overtake any more

    def trylock(self, task: Task) -> bool:
        """Take the lock if it is free."""
        if self.owner is not None or self._kept_for is not None:
            return False
        self.owner = task
        return True

    def lock(self, task: Task, wchan: str = "mutex_lock") -> Blocking[None]:
        """Take the lock; sleep until it is free and nobody is there before."""
        if self.owner is None and not self._waiters:
            self.owner = task
            return
        if task.system_debt_ns or task.user_debt_ns:
            yield
        while not self.trylock(task):
            if not self._may_spin():
                yield from self._wait(task, wchan)
                return
            task.charge_system(self._free_ns - task.sched.calendar.now)
            yield

    def _may_spin(self) -> bool:
        """Return whether the lock's owner runs, and has but to free it (mutex_spin_on_owner)."""
        owner = self.owner
        if owner is None or self._kept_for is not None:
            return False
        sched = owner.sched
        if not sched.features.mutex_spins or self._free_ns <= sched.calendar.now:
            return False
        return sched.on_cpu(owner)

    def _wait(self, task: Task, wchan: str) -> Blocking[None]:
        """Sleep until woken as the first waiter, and there before anybody else."""
        assert self.owner is not task, f"{task} locks twice"
        self._waiters.append(task)
        patient_until_ns = self._patience(task)
        while True:
            task.state = TASK_UNINTERRUPTIBLE
            task.wchan = wchan
            yield
            if self._waiters[0] is not task:
                continue
            if self.owner is None:
                break
            if task.sched.calendar.now > patient_until_ns:
                self._kept_for = task
        self._waiters.popleft()
        self._kept_for = None
        self.owner = task

    def unlock(self, task: Task) -> None:
        """Free the lock and wake the oldest waiter, once the work done under it is paid for."""
        assert self.owner is task, f"{task} unlocks what it does not hold"
        assert self._free_ns < 0, f"{task} unlocks twice"
        if not self._waiters:
            self.owner = None
            return
        debt_ns = task.user_debt_ns + task.system_debt_ns
        if not debt_ns:
            self._free(task)
            return
        calendar = task.sched.calendar
        self._free_ns = calendar.now + debt_ns
        calendar.post_at(self._free_ns, self._free, task)

    def _free(self, task: Any) -> None:
        """Let go of the lock; wake the oldest waiter (__mutex_unlock_slowpath)."""
        self._free_ns = -1
        self.owner = None
        task.sched.wake_up_for(task, self._waiters[0])

    def is_locked(self) -> bool:
        """Return whether somebody holds it."""
        return self.owner is not None

    def waiting(self) -> int:
        """Return how many tasks sleep for it."""
        return len(self._waiters)


def owed_until_ns(task: Task) -> int:
    """Return when the task's debt of CPU time will be worked off, if nothing keeps it."""
    return task.sched.calendar.now + task.user_debt_ns + task.system_debt_ns


class Holdings:
    """When one lock is held, as far as that is still to come."""

    __slots__ = ("_intervals", "_last_cpu")

    def __init__(self) -> None:
        self._intervals: list[tuple[int, int, int]] = []  # start, end, CPU; by start
        self._last_cpu: int = -1

    def add(self, task: Task, begun_ns: int, transfer_ns: int) -> None:
        """Take note that `task` held the lock from `begun_ns`, its owed_until_ns(), until now's.

        What it had to spin, and `transfer_ns` if another CPU had the lock last, is charged.
        """
        now_ns = task.sched.calendar.now
        ends_ns = owed_until_ns(task)
        length_ns = ends_ns - begun_ns
        self._forget(now_ns)
        if self._last_cpu not in (-1, task.cpu):
            length_ns += transfer_ns
        starts_ns = self._first_gap(begun_ns, length_ns, task.cpu)
        task.charge_system(starts_ns + length_ns - ends_ns)
        self._intervals.append((starts_ns, starts_ns + length_ns, task.cpu))
        self._intervals.sort()
        self._last_cpu = task.cpu

    def _forget(self, now_ns: int) -> None:
        """Drop what is over."""
        if self._intervals and self._intervals[0][1] <= now_ns:
            self._intervals = [held for held in self._intervals if held[1] > now_ns]

    def _first_gap(self, begun_ns: int, length_ns: int, cpu: int) -> int:
        """Return the first time from `begun_ns` on at which no other CPU holds it for so long."""
        for start_ns, end_ns, holder in self._intervals:
            if holder != cpu and start_ns < begun_ns + length_ns and end_ns > begun_ns:
                begun_ns = end_ns
        return begun_ns
