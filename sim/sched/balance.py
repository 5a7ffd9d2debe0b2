"""Load balancing: CPUs with little to do take waiting tasks from CPUs with too much.

Models, on one domain of CPUs that share a cache:
- new-idle balance: a CPU that runs out of tasks looks once at the others before it idles;
  It looks only if some queue has been longer than one since a look found nothing (rd->overloaded);
  from 6.18.2 on it throws a die as well, loaded with the share of looks that were worth it;
- idle balance: at every tick an idle CPU looks again. One calendar entry stands for these ticks of
  all CPUs, and only while a task waits somewhere;
- busy balance: much rarer, a busy CPU looks for a busier one; from 5.10 on half as often after a
  look that found balance, so that a CPU with too much is slow to notice that it has too little;
  and who runs one task that has used less than 85 % of a CPU lately (pelt.py) has capacity to
  spare and takes no load: a task that others have left needs 57 ms to be seen to fill its CPU.
Loads remember the last tick, as cpu_load[] does: for old releases a queue must have been there at
the last tick, and a CPU that was busy then does not pull when it goes idle. So a waiting task meets
an idle CPU after a tick or two, not at once.
Linux counterpart: load_balance, load_balance_newidle, find_busiest_group, can_migrate_task,
 rebalance_tick in kernel/sched.c (2.6.16); kernel/sched/fair.c later: sched_balance_newidle,
 update_newidle_stats of 6.19 (33cf66d88306), which is in 6.18.y too; need_active_balance,
 active_load_balance_cpu_stop; to 2.6.34 active_load_balance, migration_thread.

Active balancing: a running task leaves a core that two share for one that is idle. Balancing takes
waiting tasks only; of two that run on the threads of one core nobody waits. So an idle core looks
at each tick, finds a core with two tasks that it can take none of, and counts that as failed; at
the fourth failure in a row (cache_nice_tries + 3) the stopper of a thread of that core pushes its
task over.

Estimate: of four tasks on two cores of 1.25 the two on one core end; of the others one moves
within five ticks, and both work at full speed: 1.6 times as fast as before.

Estimate: three hogs and two of nice 19 on two CPUs. The CPU with one hog looks after 28, 56 and
84 ms before it takes a hog (load >> 2 fits); the one that lost it looks within 60 ms, in vain
before 57 ms, so again 60 ms later, and takes those of nice 19. So these are beside two hogs for
about half of the time: 0.5 x 15/2078 + 0.5 x 15/1054 of a CPU, 0.54 % of the two.

Invariants: only waiting tasks are moved, and only to where they may run; but for active balancing:
there only a task that is alone on its CPU moves, and only to a core that is idle as a whole and
that it may run on. With every core idle or none nobody looks.
Left out: several domains (NUMA, packages), CPU power; the stopper's own time (some 10 us),
intervals of active balancing's looks of more than a tick on machines with many CPUs.
"""

from random import Random
from typing import Final

from sim.engine.calendar import Calendar
from sim.sched.features import SPARE_NOTHING, Features
from sim.sched.pelt import utilisation
from sim.sched.runqueue import RunQueue
from sim.sched.task import Scheduler, Task
from sim.units import NS_PER_MS

CACHE_NICE_TRIES: Final = 1  # SD_CPU_INIT: after more failed attempts, hot tasks are moved as well.
NEWIDLE_LOOKS: Final = 1024  # over which the share of useful looks is taken
LOOKS: Final = 4  # cache_nice_tries 1 of a domain of cores, + 3


class Balancer:
    """The balancing of one machine's run queues."""

    __slots__ = (
        "_busy_ns",
        "_calendar",
        "_chance",
        "_domain",
        "_failed",
        "_features",
        "_intervals",
        "_looks",
        "_pending",
        "_ratio",
        "_rqs",
        "_tick_ns",
        "_worth",
    )

    def __init__(
        self,
        domain: Scheduler,
        rqs: list[RunQueue],
        features: Features,
        tick_ns: int,
        chance: Random,
    ) -> None:
        self._domain = domain
        self._calendar = domain.calendar
        self._chance = chance
        self._looks: int = NEWIDLE_LOOKS // 2  # newidle_call and
        self._worth: int = NEWIDLE_LOOKS // 4  # newidle_success of struct sched_domain, and
        self._ratio: int = NEWIDLE_LOOKS // 2  # newidle_ratio
        self._rqs = rqs
        self._features = features
        self._tick_ns = tick_ns
        self._intervals: list[int] = [1] * len(rqs)  # balance_interval, in units of the shortest
        first_ns = busy_period_ns(features, len(rqs), tick_ns, 1)
        self._failed: list[int] = [0] * len(rqs)  # attempts in a row that moved nothing
        self._pending: bool = False  # the next tick is in the calendar
        # When each CPU looks next although it is busy. Not all at once, or tasks come and go back.
        self._busy_ns: list[int] = [cpu * first_ns // len(rqs) for cpu in range(len(rqs))]

    def newidle(self, rq: RunQueue) -> None:
        """Pull a task to a CPU about to go idle, in an overloaded domain (idle_balance)."""
        weight = 1
        if self._features.newidle_by_chance:
            ratio = 1 + self._ratio
            if self._chance.randrange(NEWIDLE_LOOKS) > ratio:
                self._note_look(0)
                return
            weight = (NEWIDLE_LOOKS + ratio // 2) // ratio
        self._look(rq)
        self._note_look(weight if rq.queue.nr_queued else 0)

    def _look(self, rq: RunQueue) -> None:
        """Pull if another CPU has somebody waiting."""
        for other in self._rqs:
            if other.queue.nr_queued:
                failed = self._failed[rq.cpu]
                self._load_balance(rq, rq.target_load() if self._features.newidle_by_tick else 0)
                self._failed[rq.cpu] = min(failed, self._failed[rq.cpu])  # It does not count.
                return
        self._domain.overloaded = False

    def _note_look(self, worth: int) -> None:
        """Keep count of what the looks are worth (update_newidle_stats)."""
        self._looks += 1
        self._worth += worth
        if self._looks >= NEWIDLE_LOOKS:
            self._ratio = self._worth
            self._looks //= 2
            self._worth //= 2

    def queue_grew(self) -> None:
        """Look at the next tick, now that a task waits somewhere."""
        self._domain.overloaded = True
        if self._pending:
            return
        self._pending = True
        now = self._calendar.now
        self._calendar.post(self._tick_ns - now % self._tick_ns, self._tick, None)

    def _tick(self, _: None) -> None:
        """Balance for all CPUs (rebalance_tick); come again while somebody waits."""
        self._pending = False
        now = self._calendar.now
        waiting = 0
        if self._domain.grouped:
            for rq in self._rqs:
                rq.account()
                rq.queue.renew_weights()
        for rq in self._rqs:
            if rq.curr is None:
                self._idle_balance(rq)
                rq.run_attached()
            elif now >= self._busy_ns[rq.cpu]:
                self._busy_balance(rq, now)
            elif self._features.spare_busy:
                rq.account()
                utilisation(rq.curr, now)
            waiting += rq.queue.nr_queued
        if waiting:
            self.queue_grew()

    def _busy_balance(self, rq: RunQueue, now: int) -> None:
        """Pull for a busy CPU; say when it looks next (rebalance_domains)."""
        rq.account()
        if self._features.spare_busy and self._has_spare(rq, now):
            uneven = self._fill_spare(rq)
        else:
            uneven = self._load_balance(rq, rq.load())
        intervals = 1 if uneven else self._intervals[rq.cpu] * 2
        intervals = self._intervals[rq.cpu] = min(intervals, self._features.busy_balance_most)
        period_ns = busy_period_ns(self._features, len(self._rqs), self._tick_ns, intervals)
        missed_ns = (now - self._busy_ns[rq.cpu]) // period_ns * period_ns
        self._busy_ns[rq.cpu] += missed_ns + period_ns

    def _has_spare(self, rq: RunQueue, now: int) -> bool:
        """Return whether a busy CPU has had capacity to spare lately (group_has_capacity)."""
        curr = rq.curr
        assert curr is not None
        used = utilisation(curr, now)
        return not rq.queue.nr_queued and used * self._features.imbalance_pct < 100

    def _fill_spare(self, rq: RunQueue) -> bool:
        """Pull half of the tasks that the CPU with most has more (migrate_task), if any.

        Who runs one task and has time to spare expects no more load than it can do.
        """
        if self._features.spare_busy == SPARE_NOTHING:
            return False
        busiest = max(self._rqs, key=lambda other: other.nr_running())
        tasks = (busiest.nr_running() - rq.nr_running()) // 2
        for task in reversed(busiest.queue.waiting()[-tasks:] if tasks > 0 else []):
            if _may_run_on(task, rq):
                busiest.detach(task)
                rq.attach(task)
        return tasks > 0

    def _idle_balance(self, rq: RunQueue) -> None:
        """Pull for an idle CPU: one task; from 5.10 on half of the difference."""
        if self._features.small_imbalance_tasks:
            self._load_balance(rq, 0)
            return
        longest = max(other.nr_running() for other in self._rqs)
        for _ in range(max(longest // 2, 1)):
            self._load_balance(rq, 0)

    def _load_balance(self, rq: RunQueue, load: int) -> bool:
        """Pull tasks to `rq`, whose load is taken to be `load`, from the busiest (load_balance).

        Return whether there was something to pull, even if no task was small enough.
        """
        by_tick = self._features.newidle_by_tick
        total = load
        most = 0
        busiest = None
        for other in self._rqs:
            if other is rq:
                continue
            theirs = other.source_load() if by_tick else other.load()
            total += theirs
            if theirs > most and other.queue.nr_queued and self._has_for(rq, other):
                busiest = other
                most = theirs
        if busiest is None or 100 * most <= self._features.imbalance_pct * load:
            return False
        imbalance = self._imbalance(busiest, most, load, total // len(self._rqs))
        if imbalance:
            self._move_tasks(rq, busiest, imbalance)
        return imbalance > 0

    def _has_for(self, rq: RunQueue, other: RunQueue) -> bool:
        """Return whether a task that waits on `other` may run on `rq` (LBF_ALL_PINNED if not)."""
        if not self._domain.restricted:
            return True
        return any(_may_run_on(task, rq) for task in other.queue.waiting())

    def _imbalance(self, busiest: RunQueue, most: int, load: int, average: int) -> int:
        """Return the weight to move, 0 for none (find_busiest_group)."""
        if load >= average:
            return 0
        imbalance = min(most - average, average - load)
        if not self._features.small_imbalance_tasks:
            return imbalance if load else busiest.load()
        one_task = busiest.load() // busiest.nr_running()
        if imbalance < one_task:
            if most - load < self._features.small_imbalance_tasks * one_task:
                return 0
            imbalance = one_task
        return imbalance

    def _move_tasks(self, rq: RunQueue, busiest: RunQueue, imbalance: int) -> None:
        """Move waiting tasks of that weight, the last to run first (move_tasks)."""
        now = self._calendar.now
        failed = self._failed[rq.cpu]
        patience = 1 if self._features.small_imbalance_tasks else failed
        hot_ns = self._features.cache_hot_ns if failed <= CACHE_NICE_TRIES else 0
        self._failed[rq.cpu] = failed + 1
        busiest.account()
        for task in reversed(busiest.queue.waiting()):
            weight = busiest.queue.load_of(task)
            if now - task.last_ran_ns < hot_ns or weight >> patience > imbalance:
                continue
            if not _may_run_on(task, rq):
                continue
            busiest.detach(task)
            rq.attach(task)
            self._failed[rq.cpu] = 0
            imbalance -= weight
            if imbalance <= 0 or rq.curr is None:
                return


def _may_run_on(task: Task, rq: RunQueue) -> bool:
    """Return whether affinity and quotas let a task run there (can_migrate_task)."""
    if task.allowed is not None and rq.cpu not in task.allowed:
        return False
    return not rq.queue.quotas or not rq.queue.is_throttled(task)


def busy_period_ns(features: Features, nr_cpus: int, tick_ns: int, intervals: int) -> int:
    """Return how often a busy CPU looks for a busier one (get_sd_balance_interval)."""
    period_ns = intervals * features.busy_balance_ms * NS_PER_MS
    if features.busy_balance_per_cpu:
        period_ns *= nr_cpus
    return max(period_ns - tick_ns * features.busy_balance_off_beat, tick_ns)


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
