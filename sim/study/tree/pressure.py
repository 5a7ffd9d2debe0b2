"""/proc/pressure: the share of time in which tasks waited for a CPU, memory or I/O.

Models: the states of each CPU (some of its tasks are stalled; all that are not idle are), summed up
over CPUs by how long each was not idle, in periods of 2 s; the averages over 10, 60 and 300 s.
Linux counterpart: kernel/sched/psi.c (psi_group_change, test_state, collect_percpu_times,
 psi_show), 4.20 to 6.5; calc_load, kernel/sched/loadavg.c.
Invariants: "full" is at most "some"; a total never decreases, and is up to the moment at which it
 is read; the averages are of whole periods.
Left out: the stalls of control groups; "irq" (6.1). Of memory only sleep is counted: a task that
 waits for a page of swap, or in reclaim for writeback or the OOM killer. CPU time of reclaim,
 kswapd, and waits for pages that the page cache had before (refaults) are no stalls here.

By hand: two tasks that always compute on one CPU: one of them waits all the time, some = 100 %, and
avg10 after t seconds is 1 - exp(-t / 10). A task that alone reads from a disk and never computes:
some = full = 100 % of I/O.
"""

from collections.abc import Iterable
from typing import Final

from sim.fs.proc.loadavg import FIXED_1
from sim.sched.version import KernelVersion
from sim.units import NS_PER_S, NS_PER_US

SINCE: Final = (4, 20)
CPU_FULL_SINCE: Final = (5, 13)  # a line of zeroes for the whole system
PERIOD_NS: Final = 2 * NS_PER_S  # PSI_FREQ
WINDOWS: Final = ((10, 1677), (60, 1981), (300, 2034))  # s, EXP_10s: FIXED_1 x exp(-2 s / window)
RESOURCES: Final = ("cpu", "io", "memory")
RUNNABLE: Final = "R"
IO: Final = "io"
MEMORY: Final = "memory"
# Where a task sleeps that waits for memory (psi_memstall_enter).
MEMORY_SLEEPS: Final = frozenset(
    ("lock_page", "folio_wait_writeback", "try_charge", "out_of_memory")
)


class CpuStates:
    """The tasks of one CPU by what they do, and how long it was in each state in this period."""

    __slots__ = ("running", "since_ns", "times_ns", "waiting")

    def __init__(self) -> None:
        self.running = 0  # runnable, the one that runs included
        self.waiting = {IO: 0, MEMORY: 0}  # asleep for it
        self.since_ns = 0
        self.times_ns: dict[tuple[str, str], int] = dict.fromkeys(_STATES, 0)

    def account(self, now_ns: int) -> None:
        """Add the time since the last change to the states that hold."""
        passed_ns = now_ns - self.since_ns
        self.since_ns = now_ns
        if not passed_ns:
            return
        for state in self._holding():
            self.times_ns[state] += passed_ns

    def _holding(self) -> Iterable[tuple[str, str]]:
        if self.running > 1:
            yield "cpu", "some"
        for resource, tasks in self.waiting.items():
            if tasks:
                yield resource, "some"
                if not self.running:
                    yield resource, "full"
        if self.running or any(self.waiting.values()):
            yield _NOT_IDLE


_NOT_IDLE: Final = ("", "not idle")
_STATES: Final = (*((name, how) for name in RESOURCES for how in ("some", "full")), _NOT_IDLE)


class Pressure:
    """Keeps the pressure of one machine; told what its tasks do, in order of time."""

    def __init__(self, nr_cpus: int) -> None:
        self._cpus = [CpuStates() for _ in range(nr_cpus)]
        self._tasks: dict[int, tuple[int, str]] = {}  # pid -> its CPU, and what it does there
        self._totals_ns = dict.fromkeys(_STATES, 0)
        self._averaged_ns = dict.fromkeys(_STATES, 0)  # of the totals, what is in the averages
        self._averages = {state: [0] * len(WINDOWS) for state in _STATES}
        self._due_ns = PERIOD_NS

    def change(self, now_ns: int, pid: int, cpu: int, does: str) -> None:
        """A task now runs or waits to run (RUNNABLE), or sleeps for I/O or MEMORY; "": neither."""
        self.update(now_ns)
        before = self._tasks.pop(pid, None)
        if before is not None:
            self._count(now_ns, *before, -1)
        if does:
            self._tasks[pid] = (cpu, does)
            self._count(now_ns, cpu, does, 1)

    def _count(self, now_ns: int, number: int, does: str, by: int) -> None:
        cpu = self._cpus[number]
        cpu.account(now_ns)
        if does == RUNNABLE:
            cpu.running += by
        else:
            cpu.waiting[does] += by

    def update(self, now_ns: int) -> None:
        """End the periods that are over (update_averages)."""
        while self._due_ns <= now_ns:
            self._collect(self._due_ns)
            for state, total_ns in self._totals_ns.items():
                self._end_period(state, total_ns - self._averaged_ns[state])
                self._averaged_ns[state] = total_ns
            self._due_ns += PERIOD_NS

    def _collect(self, now_ns: int) -> None:
        """Add to the totals the states of each CPU since the last time (collect_percpu_times)."""
        for cpu in self._cpus:
            cpu.account(now_ns)
        busy_ns = max(1, sum(cpu.times_ns[_NOT_IDLE] for cpu in self._cpus))
        for state in _STATES:
            weighted = sum(cpu.times_ns[state] * cpu.times_ns[_NOT_IDLE] for cpu in self._cpus)
            self._totals_ns[state] += weighted // busy_ns
        for cpu in self._cpus:
            cpu.times_ns = dict.fromkeys(_STATES, 0)

    def _end_period(self, state: tuple[str, str], stalled_ns: int) -> None:
        percent = min(stalled_ns, PERIOD_NS) * 100 * FIXED_1 // PERIOD_NS
        averages = self._averages[state]
        for place, (_, decay) in enumerate(WINDOWS):
            averages[place] = _calc_load(averages[place], decay, percent)

    def files(self, now_ns: int, version: KernelVersion) -> dict[str, str]:
        """Return the texts by path below /proc."""
        self.update(now_ns)
        self._collect(now_ns)
        found = {}
        for resource in RESOURCES:
            lines = [self._line(resource, "some")]
            if resource != "cpu" or version >= CPU_FULL_SINCE:
                lines.append(self._line(resource, "full"))
            found[f"pressure/{resource}"] = "".join(lines)
        return found

    def _line(self, resource: str, how: str) -> str:
        state = (resource, how)
        averages = (
            f"avg{window_s}={_hundredths(average)}"
            for (window_s, _), average in zip(WINDOWS, self._averages[state], strict=True)
        )
        return f"{how} {' '.join(averages)} total={self._totals_ns[state] // NS_PER_US}\n"


def _calc_load(load: int, decay: int, active: int) -> int:
    """Return the average one period later, in fixed point; it rises rounded up (calc_load)."""
    later = load * decay + active * (FIXED_1 - decay)
    if active >= load:
        later += FIXED_1 - 1
    return later // FIXED_1


def _hundredths(average: int) -> str:
    return f"{average // FIXED_1}.{average % FIXED_1 * 100 // FIXED_1:02d}"
