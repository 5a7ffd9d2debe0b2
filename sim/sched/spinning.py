"""The CPU time for which a lock is held, and spinning until it is free.

Theory of operation. Code under a lock that does not sleep happens at one instant of simulated time
and leaves a debt of CPU time, so that two CPUs would both be found to hold the lock while they work
the debts off. The holdings are therefore kept as intervals of time: from where the debt stood when
the lock was taken, for what was charged while it was held. One that would overlap another CPU's is
moved behind it, into the first gap that is long enough; the time until then is spent spinning,
which is CPU time too, and charged.

Models: a mutex or rw_semaphore whose waiters spin while the owner runs, and the cache lines that
the lock protects, which come from the other CPU if that had it last.
Linux counterpart: kernel/mutex.c mutex_spin_on_owner (2.6.30, 0d66bf6d3514),
kernel/locking/rwsem.c rwsem_optimistic_spin (3.16).
Invariants: intervals of different CPUs do not overlap; a machine with one CPU never spins.
Left out: an owner that is preempted while it works its debt off (waiters would sleep); the order of
arrival among those who spin.
"""

from sim.sched.task import Task


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
