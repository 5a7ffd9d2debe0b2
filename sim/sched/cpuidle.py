"""Idle states of CPUs: how deep a CPU that has nothing to do sleeps, and what waking it takes.

Models: [machine.cpuidle]: the table of C-states of a processor, which of them may be used, and how
long the wake-up from each takes. State 0 is the polling loop. The menu governor chooses the state
that a CPU enters. It makes a guess how long the CPU will be idle: the time to its next timer, times
what such guesses were worth lately (a factor for each magnitude, apart for CPUs on which somebody
waits for I/O), or less if the last eight idle times were alike. Then the deepest state that pays
within the guess and whose exit is short against it: shorter by 1 + 10 for each task that waits for
I/O there. The governor haltpoll of virtual machines (5.4 on) polls before it halts, because to wake
a halted virtual CPU the host is needed. It polls for longer if a halt was short, up to
guest_halt_poll_ns (grown from 50 us on, by 2), and for less after a long one.
Linux counterpart: drivers/idle/intel_idle.c (tables of 4.4, of later processors 5.4 and 6.5),
 drivers/cpuidle/; /sys/devices/system/cpu/cpu*/cpuidle/, /dev/cpu_dma_latency;
 drivers/cpuidle/governors/menu.c 2.6.32 to 4.4: menu_select, menu_update, detect_repeating_patterns
 (get_typical_interval since 3.12), performance_multiplier;
 drivers/cpuidle/governors/haltpoll.c 5.4: haltpoll_select, adjust_poll_limit.
Invariants: deeper states take longer to leave and pay later. Without states below POLL the choice
is POLL; no state above the limit is chosen.
Left out: package states beyond the cores', what sleep saves and turbo gains, HLT of processors
 before Nehalem (1 to 5 us: in the cost of a context switch). Of the governor: the load average's
 part in the multiplier (an idle CPU's load is near 0), the state "C1 rather than POLL" for guesses
 below 5 us; the tick that stays on for short sleeps (4.17 on); teo. Of haltpoll: its other module
 parameters; what a polling CPU takes from other guests of the host (steal), the host's own polling
 (kvm.halt_poll_ns).

By hand: one task waits for a disk on this CPU, 5 ms a read: an exit of up to 5000 / 11 = 454 us is
allowed, so C6 (82 to 200 us). With an SSD, 0.3 ms: 27 us, so C1E.
By hand, haltpoll, 40 us to leave HLT, a device that answers in 100 us: at first the CPU halts, and
the task goes on after 140 us. The halt was of 140 us, below 200, so that next time it polls for 50
us, halts for 50 and 40, and then polls for 100 us: from the third answer on the task goes on after
100 us. With a disk of 5 ms it halts each time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sim.component import Component, Described
from sim.param import param
from sim.registry import register
from sim.sched.features import COUNTS_IOWAIT, DETECTS_PATTERNS
from sim.sched.version import KernelVersion, in_force, numbers

US: Final = 1_000
BUCKETS: Final = 12
INTERVALS: Final = 8
RESOLUTION: Final = 1024
DECAY: Final = 8
INTERESTING_NS: Final = 50_000 * US  # MAX_INTERESTING: longer ones count as right
STEADY_US: Final = 20  # a standard deviation that is small whatever the mean
IOWAIT_MULTIPLIER: Final = 10
# A CPU's own timers, of which none is simulated: it expects no longer sleep; assumed: vmstat's and
# other timers, once a second
HOUSEKEEPING_NS: Final = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class CState:
    """One state: how long leaving it takes, and how long a stay must be to save energy."""

    name: str
    exit_latency_ns: int
    target_residency_ns: int


MENU: Final = "menu"
HALTPOLL: Final = "haltpoll"
HALTPOLL_SINCE: Final = (5, 4)  # 2cffe9f6b96f
GUEST_HALT_POLL_GROW: Final = 2
GUEST_HALT_POLL_GROW_START_NS: Final = 50 * US
GUEST_HALT_POLL_SHRINK: Final = 2
POLL: Final = CState(name="POLL", exit_latency_ns=0, target_residency_ns=0)


def _states(*rows: tuple[str, int, int]) -> tuple[CState, ...]:
    """Return POLL and the rows: name, exit latency and target residency in us."""
    return POLL, *(
        CState(name=name, exit_latency_ns=latency * US, target_residency_ns=residency * US)
        for name, latency, residency in rows
    )


TABLES: Final[Mapping[str, tuple[CState, ...]]] = {
    "nehalem": _states(("C1", 3, 6), ("C1E", 10, 20), ("C3", 20, 80), ("C6", 200, 800)),
    "sandy-bridge": _states(
        ("C1", 2, 2), ("C1E", 10, 20), ("C3", 80, 211), ("C6", 104, 345), ("C7", 109, 345)
    ),
    "ivy-town": _states(("C1", 1, 1), ("C1E", 10, 80), ("C3", 59, 156), ("C6", 82, 300)),
    "haswell": _states(("C1", 2, 2), ("C1E", 10, 20), ("C3", 33, 100), ("C6", 133, 400)),
    "skylake-sp": _states(("C1", 2, 2), ("C1E", 10, 20), ("C6", 133, 600)),
    # A virtual CPU has one state, and its driver says that leaving it takes 1 us: exit_scale is
    # what the host needs, in us. Its stay stands for guest_halt_poll_ns under the governor menu.
    "haltpoll": _states(("HLT", 1, 200)),
}
# Where the latencies of a table are from.
SOURCES: Final[Mapping[str, str]] = {
    "nehalem": "drivers/idle/intel_idle.c 4.4: nehalem_cstates",
    "sandy-bridge": "drivers/idle/intel_idle.c 4.4: snb_cstates",
    "ivy-town": "drivers/idle/intel_idle.c 4.4: ivt_cstates",
    "haswell": "drivers/idle/intel_idle.c 4.4: hsw_cstates",
    "skylake-sp": "drivers/idle/intel_idle.c 5.4: skx_cstates",
    "haltpoll": "drivers/cpuidle/cpuidle-haltpoll.c 5.4; guest_halt_poll_ns 200000",
}


@dataclass(frozen=True, kw_only=True)
class CpuidleParams:
    """[machine.cpuidle]; without that table a CPU wakes at once."""

    table: str = param(
        dim="text",
        choices=tuple(TABLES),
        doc="processor whose states these are",
        source="drivers/idle/intel_idle.c 4.4, 5.4",
    )
    max_cstate: int = param(
        9,
        dim="count",
        minimum=0,
        maximum=9,
        source="intel_idle.max_cstate",
        doc="deepest state, as numbered in cpuidle; 0: the CPU polls (idle=poll)",
    )
    governor: str = param(
        MENU,
        dim="text",
        choices=(MENU, HALTPOLL),
        source="drivers/cpuidle/governors/menu.c: the highest rating until teo is chosen",
        doc="what chooses the state; haltpoll polls before it halts (virtual machines, 5.4 on)",
    )
    guest_halt_poll_ns: int = param(
        "200 us",
        dim="time_ns",
        minimum=0,
        maximum=10_000_000,
        source="drivers/cpuidle/governors/haltpoll.c 5.4: guest_halt_poll_ns",
        doc="haltpoll: longest polling before the CPU halts",
    )
    latency_limit_ns: int = param(
        "2000 s",
        dim="time_ns",
        minimum=0,
        doc="longest wake-up that somebody bears",
        source="include/linux/pm_qos.h: PM_QOS_CPU_DMA_LAT_DEFAULT_VALUE; /dev/cpu_dma_latency",
    )
    exit_scale: float = param(
        1.0,
        dim="number",
        minimum=0,
        maximum=100,
        doc="measured wake-ups in those of the table",
        source="drivers/idle/intel_idle.c: the table is the processor's worst case",
    )

    def states(self) -> tuple[CState, ...]:
        """Return the states that may be used, POLL first."""
        return TABLES[self.table][: self.max_cstate + 1]

    def exit_latency_ns(self, state: CState) -> int:
        """Return how long waking from a state takes here."""
        return int(state.exit_latency_ns * self.exit_scale)


def which_bucket(ns: int, nr_iowait: int) -> int:
    """Return the bucket of a time: below 10 us, 100 us, ... 100 ms, above; with waiters 6 on."""
    bucket = BUCKETS // 2 if nr_iowait else 0
    limit_ns = 10 * US
    while ns >= limit_ns and limit_ns <= 100_000 * US:
        bucket += 1
        limit_ns *= 10
    return bucket


def typical_interval_us(intervals_us: list[int]) -> int | None:
    """Return the mean of the last intervals if they are alike, up to two long ones apart."""
    kept = sorted(intervals_us)
    while len(kept) * 4 >= INTERVALS * 3:
        mean = sum(kept) // len(kept)
        variance = sum((one - mean) ** 2 for one in kept) / len(kept)
        if variance <= STEADY_US**2 or mean * mean > 36 * variance:
            return mean
        kept.pop()
    return None


class Menu:
    """One CPU's guesses (struct menu_device)."""

    __slots__ = (
        "_bucket",
        "_counts_iowait",
        "_detects",
        "_expected_ns",
        "_factors",
        "_intervals_us",
        "_limit_ns",
        "states",
    )

    def __init__(self, states: tuple[CState, ...], limit_ns: int, kernel: KernelVersion) -> None:
        self.states = states
        self._limit_ns = limit_ns
        self._detects: bool = in_force(DETECTS_PATTERNS, kernel)
        self._counts_iowait: bool = in_force(COUNTS_IOWAIT, kernel)
        self._factors: list[int] = [RESOLUTION * DECAY] * BUCKETS
        self._intervals_us: list[int] = []
        self._expected_ns: int = 0
        self._bucket: int = 0

    def select(self, next_timer_ns: int, nr_iowait: int) -> int:
        """Return the number of the state to enter; the next timer is that far away."""
        self._expected_ns = next_timer_ns
        self._bucket = which_bucket(next_timer_ns, nr_iowait)
        predicted_ns = self._predict_ns()
        waiters = nr_iowait if self._counts_iowait else 0
        limit_ns = min(self._limit_ns, predicted_ns // (1 + IOWAIT_MULTIPLIER * waiters))
        chosen = 0
        for number, state in enumerate(self.states):
            if state.target_residency_ns <= predicted_ns and state.exit_latency_ns <= limit_ns:
                chosen = number
        return chosen

    def _predict_ns(self) -> int:
        """Return how long the CPU will be idle, as far as it can know."""
        factor = self._factors[self._bucket]
        predicted_ns = self._expected_ns * factor // (RESOLUTION * DECAY)
        if self._detects and len(self._intervals_us) == INTERVALS:
            typical_us = typical_interval_us(self._intervals_us)
            if typical_us is not None:
                predicted_ns = min(predicted_ns, typical_us * US)
        return predicted_ns

    def reflect(self, idle_ns: int) -> int:
        """Learn from how long it was (menu_update); return how long of it the CPU polled first."""
        factor = self._factors[self._bucket]
        factor -= factor // DECAY
        if self._expected_ns > 0 and idle_ns < INTERESTING_NS:
            factor += RESOLUTION * min(idle_ns, self._expected_ns) // self._expected_ns
        else:
            factor += RESOLUTION
        self._factors[self._bucket] = max(factor, 1)
        self._intervals_us.append(idle_ns // US)
        if len(self._intervals_us) > INTERVALS:
            self._intervals_us.pop(0)
        return 0


class HaltPoll:
    """One CPU that polls for a while and then halts (the fields of struct cpuidle_device)."""

    __slots__ = ("_exit_ns", "_longest_ns", "_may_halt", "poll_limit_ns")

    def __init__(self, params: CpuidleParams) -> None:
        states = params.states()
        self._may_halt: bool = len(states) > 1 and params.latency_limit_ns > 0
        self._exit_ns: int = params.exit_latency_ns(states[1]) if self._may_halt else 0
        self._longest_ns: int = params.guest_halt_poll_ns
        self.poll_limit_ns: int = 0

    def select(self, next_timer_ns: int, nr_iowait: int) -> int:
        """Return the state that the CPU ends in if it stays idle."""
        return 1 if self._may_halt else 0

    def reflect(self, idle_ns: int) -> int:
        """Learn from how long the CPU was halted; return how long it polled before."""
        if not self._may_halt:
            return 0
        polled_ns = min(idle_ns, self.poll_limit_ns)
        if polled_ns < idle_ns:
            self._adjust_poll_limit(idle_ns - polled_ns + self._exit_ns)
        return polled_ns

    def _adjust_poll_limit(self, block_ns: int) -> None:
        """Poll longer if that would have made a halt needless, less if nothing would."""
        limit_ns = self.poll_limit_ns
        if limit_ns < block_ns <= self._longest_ns:
            grown_ns = max(limit_ns * GUEST_HALT_POLL_GROW, GUEST_HALT_POLL_GROW_START_NS)
            self.poll_limit_ns = min(grown_ns, self._longest_ns)
        elif block_ns > self._longest_ns:
            shrunk_ns = limit_ns // GUEST_HALT_POLL_SHRINK
            long_enough = shrunk_ns >= GUEST_HALT_POLL_GROW_START_NS
            self.poll_limit_ns = shrunk_ns if long_enough else 0


def governor(params: CpuidleParams, kernel: KernelVersion) -> Menu | HaltPoll:
    """Return what chooses the states of one CPU."""
    if params.governor == HALTPOLL:
        return HaltPoll(params)
    return Menu(params.states(), params.latency_limit_ns, kernel)


@register("component", "cpuidle", params=CpuidleParams, doc="idle states of the CPUs")
class CpuidleTable(Component[CpuidleParams]):
    """[machine.cpuidle]"""

    @classmethod
    def examine(cls, described: Described, name: str, params: CpuidleParams) -> None:
        """List how long a CPU takes to wake from each state; note a governor that comes later."""
        kernel = described.reading.version
        if params.governor == HALTPOLL and kernel is not None and kernel < HALTPOLL_SINCE:
            described.reading.error(
                described.given("cpuidle").place_of("governor"),
                f"Linux {numbers(kernel)} has no governor haltpoll",
                allowed=f"{numbers(HALTPOLL_SINCE)} and later, or {MENU}",
            )
        source = SOURCES[params.table]
        if params.exit_scale != 1:
            source = f"{source}; times exit_scale"
        for state in params.states()[1:]:
            described.reading.derive(
                ("machine", "cpuidle", state.name, "exit_latency"),
                params.exit_latency_ns(state),
                "time_ns",
                source,
                f"time to wake from the idle state {state.name}",
            )
