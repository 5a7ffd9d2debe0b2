"""Active balancing: a running task leaves a core that two share for one that is idle.

Theory of operation. Balancing takes waiting tasks only; of two that run on the threads of one core
nobody waits. So an idle core looks at each tick, finds a core with two tasks that it can take none
of, and counts that as failed; at the fourth failure in a row (cache_nice_tries + 3) the stopper of
a thread of that core pushes its task over.

Estimate: of four tasks on two cores of 1.25 the two on one core end; of the others one moves
within five ticks, and both work at full speed: 1.6 times as fast as before.

Linux counterpart: need_active_balance, active_load_balance_cpu_stop (kernel/sched/fair.c); to
 2.6.34 active_load_balance, migration_thread (kernel/sched.c).
Invariants: only a task that is alone on its CPU moves, and only to a core that is idle as a whole
 and that it may run on; with every core idle or none nobody looks.
Left out: the stopper's own time (some 10 us), intervals of looks of more than a tick on machines
 with many CPUs.
"""

from typing import Final

from sim.engine.calendar import Calendar
from sim.sched.runqueue import RunQueue

LOOKS: Final = 4  # cache_nice_tries 1 of a domain of cores, + 3


class ActiveBalance:
    """The looks of one machine's idle cores."""

    def __init__(
        self, calendar: Calendar, rqs: list[RunQueue], siblings: list[RunQueue], tick_ns: int
    ) -> None:
        self._calendar = calendar
        self._rqs = rqs
        self._siblings = siblings
        self._tick_ns = tick_ns
        self._failed: int = 0
        self._pending: bool = False

    def look(self) -> None:
        """Begin to look at ticks: a core has become idle, or full."""
        if not self._pending:
            self._pending = True
            self._calendar.post(
                self._tick_ns - self._calendar.now % self._tick_ns, self._tick, None
            )

    def _tick(self, _: None) -> None:
        """Count a look that found a full core beside an idle one; push after the fourth."""
        self._pending = False
        full = self._full_thread()
        if full is None:
            self._failed = 0
            return
        self._failed += 1
        if self._failed >= LOOKS:
            self._failed = 0
            self._push(full)
        self.look()

    def _full_thread(self) -> RunQueue | None:
        """Return a CPU whose task may have a whole core instead of half of one."""
        for rq in self._rqs:
            if (
                rq.curr is not None
                and not rq.queue.nr_queued
                and self._siblings[rq.cpu].curr is not None
                and self._idle_core_for(rq) is not None
            ):
                return rq
        return None

    def _idle_core_for(self, rq: RunQueue) -> RunQueue | None:
        """Return a CPU of an idle core that the CPU's task may run on."""
        task = rq.curr
        assert task is not None
        for other in self._rqs:
            if (
                other.curr is None
                and self._siblings[other.cpu].curr is None
                and (task.allowed is None or other.cpu in task.allowed)
            ):
                return other
        return None

    def _push(self, rq: RunQueue) -> None:
        """Move the CPU's task to an idle core (active_load_balance_cpu_stop)."""
        target = self._idle_core_for(rq)
        assert target is not None
        task = rq.give_up()
        target.attach(task)
        target.run_attached()
