"""Load balancing: CPUs with nothing to do take waiting tasks from CPUs with too much.

Models, on one domain of CPUs that share a cache:
- new-idle balance: a CPU that runs out of tasks looks once at the others before it idles;
- idle balance: at every tick an idle CPU looks again. One calendar entry stands for these ticks of
  all CPUs, and only while one CPU idles and another has tasks waiting;
- busy balance: much rarer, a busy CPU looks for one with two tasks more.
"Too much" is judged by loads that remember the last tick, as cpu_load[] does: a queue must have
been there at the last tick, and in old releases a CPU that was busy then does not pull when it goes
idle. So waiting tasks meet an idle CPU after up to a tick or two, not at once.
Linux counterpart: load_balance, load_balance_newidle, find_busiest_group, can_migrate_task,
 rebalance_tick in kernel/sched.c (2.6.16); kernel/sched/fair.c later.
Invariants: the running task is never moved; a pull leaves the source with a task.
Left out: several domains (NUMA, packages), active balancing of a running task, CPU power, weights
 (tasks are counted).
"""

from sim.engine.calendar import Calendar
from sim.sched.features import Features
from sim.sched.runqueue import RunQueue
from sim.sched.task import Task

CACHE_NICE_TRIES = 1  # SD_CPU_INIT: after more failed attempts, hot tasks are moved as well.


class Balancer:
    """The balancing of one machine's run queues."""

    __slots__ = ("_busy_ns", "_calendar", "_failed", "_features", "_pending", "_rqs", "_tick_ns")

    def __init__(
        self, calendar: Calendar, rqs: list[RunQueue], features: Features, tick_ns: int
    ) -> None:
        self._calendar = calendar
        self._rqs = rqs
        self._features = features
        self._tick_ns = tick_ns
        self._failed: int = 0  # attempts in a row that found hot tasks only
        self._pending: bool = False  # the next tick is in the calendar
        self._busy_ns: int = 0  # when busy CPUs look next

    def newidle(self, rq: RunQueue) -> None:
        """Pull a task to a CPU that is about to go idle (idle_balance)."""
        load = rq.target_load() if self._features.newidle_by_tick else 0
        busiest = self._find_busiest(rq, load)
        if busiest is not None:
            self._pull(rq, busiest)

    def queue_grew(self) -> None:
        """Look at the next tick, now that a task waits somewhere."""
        if self._pending or len(self._rqs) == 1:
            return
        self._pending = True
        now = self._calendar.now
        self._calendar.post(self._tick_ns - now % self._tick_ns, self._tick, None)

    def _tick(self, _: None) -> None:
        """Balance for all CPUs (rebalance_tick); come again while somebody waits."""
        self._pending = False
        now = self._calendar.now
        busy_too = now >= self._busy_ns
        if busy_too:
            self._busy_ns = now + self._features.busy_balance_ns
        for rq in self._rqs:
            if rq.is_idle() or busy_too:
                busiest = self._find_busiest(rq, rq.nr_running())
                if busiest is not None and self._pull(rq, busiest):
                    rq.run_attached()
        for rq in self._rqs:
            if rq.queue.nr_queued:
                self.queue_grew()
                return

    def _find_busiest(self, rq: RunQueue, load: int) -> RunQueue | None:
        """Return the CPU with the most tasks, if it has two more than `rq` (find_busiest_group)."""
        busiest = None
        most = load + 1
        for other in self._rqs:
            if other is not rq and other.queue.nr_queued:
                by_tick = self._features.newidle_by_tick
                theirs = other.source_load() if by_tick else other.nr_running()
                if theirs > most:
                    busiest = other
                    most = theirs
        return busiest

    def _pull(self, rq: RunQueue, busiest: RunQueue) -> bool:
        """Move one waiting task, last of the queue first, unless all are cache hot (move_tasks)."""
        task = self._choose(busiest)
        if task is None:
            self._failed += 1
            return False
        self._failed = 0
        busiest.account()
        busiest.detach(task)
        rq.attach(task)
        return True

    def _choose(self, busiest: RunQueue) -> Task | None:
        now = self._calendar.now
        hot_ns = self._features.cache_hot_ns if self._failed <= CACHE_NICE_TRIES else 0
        for task in reversed(busiest.queue.waiting()):
            if now - task.last_ran_ns >= hot_ns:
                return task
        return None
