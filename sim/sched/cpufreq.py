"""Clocks of CPUs: [machine.cpufreq], the governors that choose them, and when a clock changes.

Models: the table of P-states, as firmware tells it, and the tunables of the governors in sysfs.
Each CPU has a policy: its governor looks every period while the CPU works; while the CPU sleeps the
timer is deferred, and the first thing after waking is the look that was due: at a load that is
mostly sleep. A choice takes effect after the transition latency; CPUs of one package that share a
clock have the highest that any of them wants. All CPU times of the model are at `base`: at another
clock work takes base / clock of the time, but for `stall_share` of it, which waits for memory and
knows no clock.

Governors go from what a CPU did since they last looked to the clock it shall have: performance,
powersave, ondemand, conservative, schedutil. Each is arithmetic on one Load.
By hand: a service that computes for 5 ms in 25 shows ondemand samples of 50 % at most, never 95:
it stays at the lowest clock and takes base / lowest as long; at full load the first sample is
100 %, and the clock is at the top 10 ms after the work began.

intel_pstate's own "powersave" follows the load, more or less. To 4.12 it is a controller (PID, of
which only P is used) that wants the CPU 97 % busy *at the clock it asked for*. While a CPU works it
gets what it asked for, so that it always seems 100 % busy, and the clock climbs one step of 100 MHz
at every look, 10 ms. What brings it down is sleep: the timer is deferred while the CPU sleeps, and
if it comes more than three periods late, the load counts for the less the later it was. From 4.13
on it is the share of time that the CPU worked, times 1.25, of the highest clock. By hand: a request
that computes for 80 ms after 250 ms of silence begins at the lowest clock, 1.2 GHz, is at 1.3 after
10 ms, at 1.9 at its end; the silence counts 10 / 250 = 4 %, the controller goes (97 - 4) x 20 % =
19 steps down: the next one begins at the lowest again.

Linux counterpart: drivers/cpufreq/cpufreq.c, cpufreq_governor.c (INIT_DEFERRABLE_WORK; since 4.7
cpufreq_update_util hooks, which a sleeping CPU does not call either), cpufreq_performance.c,
cpufreq_powersave.c, cpufreq_ondemand.c, cpufreq_conservative.c, kernel/sched/cpufreq_schedutil.c;
acpi-cpufreq.c, struct cpufreq_frequency_table; intel_pstate.c 3.9, 3.14, 4.4
(intel_pstate_get_scaled_busy, pid_calc), 4.13 (get_target_pstate);
/sys/devices/system/cpu/cpu*/cpufreq/.
Invariants: a table ascends, from the lowest clock to the highest; a CPU's clock is a row of it, and
a choice as well; time_in_state sums to the time since boot.
Left out: that turbo shrinks with the number of busy cores and with heat, hyperthreads that share a
core; "userspace", whose only clock is a scenario's `lowest` under powersave. The CPU time of
looking, stalls while the clock changes (10 to 50 us on parts before 2011), governors that look
while the CPU sleeps (before 2.6.23). Several CPUs in one policy (the package's clock is the highest
wanted); schedutil's boost of tasks that waited for I/O, and its estimate of what a sleeper will
need (util_est, 4.17). Of intel_pstate: hardware P-states (HWP: Skylake and later choose
themselves), the boost of CPUs that waited for I/O (4.6 on), the Atom's algorithm.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import floor
from typing import Final

from sim.component import Component, Described
from sim.engine.calendar import Calendar
from sim.param import param
from sim.registry import register
from sim.sched.features import (
    BY_LOAD,
    CPUFREQ_CHANGES,
    DOWN_DIFFERENTIAL,
    INVARIANT,
    JUST_BELOW,
    OF_THE_TIME,
    OF_THE_TOP,
    ONDEMAND,
    PSTATE_BUSY,
    UNLESS_LATE,
)
from sim.sched.version import KernelVersion, changed_defaults, in_force
from sim.toml.layers import Table
from sim.toml.reading import Reading
from sim.units import NS_PER_MS, Value, format_quantity, given_text

ACPI: Final = "acpi-cpufreq"
INTEL: Final = "intel_pstate"
GOVERNOR_NAMES: Final = ("performance", "powersave", "ondemand", "conservative", "schedutil")
# What a distribution leaves a driver with.
DEFAULT_GOVERNOR: Final[Mapping[str, str]] = {ACPI: "ondemand", INTEL: "powersave"}
SAMPLING_MIN_NS: Final = 10 * NS_PER_MS  # MIN_SAMPLING_RATE with micro accounting
LATENCY_MULTIPLIER: Final = 1000  # transition latencies that a sampling period is at least
SCHEDUTIL_PERIOD_MAX_NS: Final = 10 * NS_PER_MS  # CPUFREQ_DBS_MIN_SAMPLING_INTERVAL since 4.15

CONSERVATIVE_UP: Final = 80
CONSERVATIVE_DOWN: Final = 20
CONSERVATIVE_STEP_PERCENT: Final = 5  # of the highest clock
SAMPLE_NS: Final = 10 * NS_PER_MS  # pid_params.sample_rate_ms
LATE: Final = 3  # periods after which a look counts as late
# How busy intel_pstate wants a CPU, to 4.12; drivers/cpufreq/intel_pstate.c 4.4:
# core_params.pid_policy
SETPOINT_PERCENT: Final = 97.0
# Steps of the clock for each 1 % off that; drivers/cpufreq/intel_pstate.c 4.4:
# core_params.pid_policy
P_GAIN_PERCENT: Final = 20.0


@dataclass(frozen=True, kw_only=True)
class CpufreqParams:
    """[machine.cpufreq]; without that table a CPU has one clock, that of its CPU times."""

    driver: str = param(
        ACPI,
        dim="text",
        choices=(ACPI, INTEL),
        doc="who sets the clock",
        source="drivers/cpufreq/acpi-cpufreq.c",
    )
    governor: str | None = param(
        None,
        dim="text",
        choices=GOVERNOR_NAMES,
        doc="who chooses it",
        source="manual: distributions set ondemand with acpi-cpufreq, powersave with intel_pstate",
    )
    lowest_khz: int = param(
        "1.2 GHz",
        dim="clock_khz",
        minimum=1000,
        doc="lowest clock",
        source="data sheet: Xeon E5-2600, lowest ratio 12 x 100 MHz",
    )
    base_khz: int = param(
        "2.4 GHz",
        dim="clock_khz",
        minimum=1000,
        source="scenario",
        doc="highest clock without turbo; the CPU times of the model are at this one",
    )
    turbo_khz: int | None = param(
        None,
        dim="clock_khz",
        minimum=1000,
        source="scenario",
        doc="clock with turbo, as many cores are busy; left away: no turbo",
    )
    step_khz: int = param(
        "100 MHz",
        dim="clock_khz",
        minimum=1000,
        doc="between two clocks",
        source="data sheet: bus clock from Sandy Bridge on (133 MHz before)",
    )
    transition_latency_ns: int = param(
        "10 us",
        dim="time_ns",
        minimum=0,
        doc="from a decision to the new clock",
        source="data sheet: ACPI _PSS of Xeons, 10 us",
    )
    package: bool = param(
        False,
        dim="bool",
        doc="one clock for all CPUs, the highest wanted",
        source="data sheet: Xeon E5 up to v2 has one; v3 a clock a core",
    )
    stall_share: float = param(
        0.0,
        dim="number",
        minimum=0,
        maximum=0.95,
        source="assumed: programs that fit into their caches",
        doc="share of CPU time at the base clock that waits for memory, whatever the clock",
    )
    sampling_rate_ns: int | None = param(
        None,
        dim="time_ns",
        minimum=10**6,
        doc="how often ondemand and conservative look",
        source="cpufreq_ondemand.c: transition latency x 1000, at least 10 ms",
    )
    up_threshold_percent: float = param(
        95.0,
        dim="percent",
        minimum=1,
        maximum=100,
        doc="ondemand goes to the top above it",
        source="cpufreq_ondemand.c 2.6.32: MICRO_FREQUENCY_UP_THRESHOLD",
    )
    sampling_down_factor: int = param(
        1,
        dim="count",
        minimum=1,
        maximum=100_000,
        doc="ondemand looks so much rarer at the top",
        source="cpufreq_ondemand.c: DEF_SAMPLING_DOWN_FACTOR",
    )
    powersave_bias: int = param(
        0,
        dim="count",
        minimum=0,
        maximum=1000,
        doc="thousandths off the clock ondemand wants",
        source="cpufreq_ondemand.c",
    )
    io_is_busy: bool = param(
        False,
        dim="bool",
        doc="ondemand counts iowait as load",
        source="cpufreq_ondemand.c 2.6.32: iowait is idle time",
    )

    @property
    def chosen_governor(self) -> str:
        """The governor, or what a distribution leaves the driver with."""
        return self.governor or DEFAULT_GOVERNOR[self.driver]

    def table_khz(self) -> tuple[int, ...]:
        """Return the clocks, ascending; with acpi-cpufreq turbo is one row above the base."""
        rows = [*range(self.lowest_khz, self.base_khz, self.step_khz), self.base_khz]
        if self.turbo_khz is not None and self.turbo_khz > self.base_khz:
            if self.driver == INTEL:
                rows += range(self.base_khz + self.step_khz, self.turbo_khz, self.step_khz)
            rows.append(self.turbo_khz)
        return tuple(rows)

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return what differs in this release, each with its source."""
        return changed_defaults(CPUFREQ_CHANGES, kernel)


class Load:
    """What one CPU did since the governor last looked."""

    __slots__ = ("busy_ns", "cycles", "iowait_ns", "util", "wall_ns")

    def __init__(
        self, wall_ns: int, busy_ns: int, iowait_ns: int, cycles: int, util: float = 0.0
    ) -> None:
        self.wall_ns = wall_ns
        self.busy_ns = busy_ns
        self.iowait_ns = iowait_ns
        self.cycles = cycles  # ns x kHz: APERF
        self.util = util  # of the CPU (PELT), 0 to 1

    def percent(self, io_is_busy: bool) -> float:
        """Return the load as ondemand computes it."""
        busy_ns = self.busy_ns + self.iowait_ns if io_is_busy else self.busy_ns
        return 100.0 * busy_ns / self.wall_ns

    def mean_khz(self, otherwise: int) -> float:
        """Return the mean clock while it worked (APERF / MPERF)."""
        return self.cycles / self.busy_ns if self.busy_ns else otherwise


def at_least(table_khz: Sequence[int], khz: float) -> int:
    """Return the lowest clock not below `khz`, or the highest (CPUFREQ_RELATION_L)."""
    row = bisect_left(table_khz, khz)
    return table_khz[row] if row < len(table_khz) else table_khz[-1]


def at_most(table_khz: Sequence[int], khz: float) -> int:
    """Return the highest clock not above `khz`, or the lowest (CPUFREQ_RELATION_H)."""
    row = bisect_right(table_khz, khz)
    return table_khz[row - 1] if row else table_khz[0]


def closest(table_khz: Sequence[int], khz: float) -> int:
    """Return the nearest clock (CPUFREQ_RELATION_C)."""
    low, high = at_most(table_khz, khz), at_least(table_khz, khz)
    return low if khz - low <= high - khz else high


class Governor:
    """One CPU's governor; `period_ns` 0: it never looks again."""

    def __init__(self, params: CpufreqParams, kernel: KernelVersion) -> None:
        self.params = params
        self.table_khz: tuple[int, ...] = params.table_khz()
        self.period_ns: int = 0
        # What next_khz() chose holds so long, then `later_khz` (0: until the next look).
        self.hold_ns: int = 0
        self.later_khz: int = 0

    def first_khz(self) -> int:
        """Return the clock at boot."""
        return self.table_khz[0]

    def next_khz(self, load: Load, cur_khz: int) -> int:
        """Return the clock to have from now on, which was `cur_khz`."""
        raise NotImplementedError


class Performance(Governor):
    """The highest clock."""

    def first_khz(self) -> int:
        return self.table_khz[-1]


class Powersave(Governor):
    """The lowest clock (of acpi-cpufreq; intel_pstate's governor of that name is another)."""


class Ondemand(Governor):
    """To the top above the threshold; below it as low as the load allows."""

    def __init__(self, params: CpufreqParams, kernel: KernelVersion) -> None:
        super().__init__(params, kernel)
        self._look_ns = sampling_period_ns(params)
        self.period_ns = self._look_ns
        self._formula: str = in_force(ONDEMAND, kernel)
        self._keep_below = params.up_threshold_percent - in_force(DOWN_DIFFERENTIAL, kernel)

    def next_khz(self, load: Load, cur_khz: int) -> int:
        table = self.table_khz
        percent = load.percent(self.params.io_is_busy)
        self.period_ns = self._look_ns
        self.hold_ns = self.later_khz = 0
        if self._is_over(percent, load, cur_khz):
            self.period_ns *= self.params.sampling_down_factor
            return self._biased(table[-1])
        if self._formula == JUST_BELOW:
            wanted = percent * load.mean_khz(cur_khz)
            if wanted >= self._keep_below * cur_khz:
                return cur_khz
            return self._biased(at_least(table, wanted / self._keep_below))
        if self._formula == OF_THE_TOP:
            return self._biased(at_least(table, percent * table[-1] / 100))
        return self._biased(closest(table, table[0] + percent * (table[-1] - table[0]) / 100))

    def _is_over(self, percent: float, load: Load, cur_khz: int) -> bool:
        """Whether the load is above the threshold; to 3.11 as a share of the clock it is at."""
        threshold = self.params.up_threshold_percent
        if self._formula == JUST_BELOW:
            return percent * load.mean_khz(cur_khz) > threshold * cur_khz
        return percent > threshold

    def _biased(self, khz: int) -> int:
        """Take powersave_bias off: the clock above what is left, then the one below."""
        if not self.params.powersave_bias:
            return khz
        average = khz - khz * self.params.powersave_bias // 1000
        low, high = at_most(self.table_khz, average), at_least(self.table_khz, average)
        if low < high:
            self.hold_ns = self.period_ns * (average - low) // (high - low)
            self.later_khz = low
        return high if self.hold_ns or low == high else low


class Conservative(Governor):
    """A step up above 80 %, a step down below 20 %."""

    def __init__(self, params: CpufreqParams, kernel: KernelVersion) -> None:
        super().__init__(params, kernel)
        self.period_ns = sampling_period_ns(params)
        self._wanted_khz = self.table_khz[0]

    def next_khz(self, load: Load, cur_khz: int) -> int:
        table = self.table_khz
        step = table[-1] * CONSERVATIVE_STEP_PERCENT // 100
        percent = load.percent(io_is_busy=False)
        if percent > CONSERVATIVE_UP:
            self._wanted_khz = min(self._wanted_khz + step, table[-1])
            return at_most(table, self._wanted_khz)
        if percent < CONSERVATIVE_DOWN:
            self._wanted_khz = max(self._wanted_khz - step, table[0])
            return at_least(table, self._wanted_khz)
        return cur_khz


class Schedutil(Governor):
    """A quarter more than the CPU's utilisation, as the scheduler remembers it."""

    def __init__(self, params: CpufreqParams, kernel: KernelVersion) -> None:
        super().__init__(params, kernel)
        latency_ns = params.transition_latency_ns * LATENCY_MULTIPLIER
        self.period_ns = max(NS_PER_MS, min(latency_ns, SCHEDUTIL_PERIOD_MAX_NS))
        self._invariant: bool = in_force(INVARIANT, kernel)

    def next_khz(self, load: Load, cur_khz: int) -> int:
        reference_khz = self.table_khz[-1] if self._invariant else cur_khz
        return at_least(self.table_khz, 1.25 * reference_khz * load.util)


def sampling_period_ns(params: CpufreqParams) -> int:
    """Return how often ondemand and conservative look."""
    if params.sampling_rate_ns is not None:
        return params.sampling_rate_ns
    return max(SAMPLING_MIN_NS, params.transition_latency_ns * LATENCY_MULTIPLIER)


class PstatePowersave(Governor):
    """The governor "powersave" of intel_pstate."""

    def __init__(self, params: CpufreqParams, kernel: KernelVersion) -> None:
        super().__init__(params, kernel)
        self.period_ns = SAMPLE_NS
        self._busy: str = in_force(PSTATE_BUSY, kernel)
        self._average_khz: float = float(self.table_khz[0])

    def next_khz(self, load: Load, cur_khz: int) -> int:
        wanted_khz = self._by_load(load) if self._busy == BY_LOAD else self._by_pid(load, cur_khz)
        return self._row(wanted_khz)

    def _by_pid(self, load: Load, cur_khz: int) -> float:
        """Return the clock so many steps off as the controller says (pid_calc)."""
        error = SETPOINT_PERCENT - self._scaled_busy(load, cur_khz)
        steps = floor(P_GAIN_PERCENT / 100 * error + 0.5)
        return cur_khz - steps * self.params.step_khz

    def _scaled_busy(self, load: Load, cur_khz: int) -> float:
        """Return how busy the CPU was at the clock wanted, % (intel_pstate_get_scaled_busy)."""
        busy = 100.0 * load.mean_khz(cur_khz) / cur_khz
        if self._busy == OF_THE_TIME:
            return busy * load.busy_ns / load.wall_ns
        if self._busy == UNLESS_LATE and load.wall_ns > LATE * SAMPLE_NS:
            return busy * SAMPLE_NS / load.wall_ns
        return busy

    def _by_load(self, load: Load) -> float:
        """Return a clock a quarter above the load; halfway down only (get_target_pstate)."""
        top_khz = self.table_khz[-1]
        wanted_khz = 1.25 * top_khz * load.busy_ns / load.wall_ns
        wanted_khz = max(wanted_khz, float(self.table_khz[0]))
        if self._average_khz > wanted_khz:
            wanted_khz += (self._average_khz - wanted_khz) / 2
        self._average_khz = wanted_khz
        return wanted_khz

    def _row(self, khz: float) -> int:
        """Return the row at or below; P-states are whole numbers of steps."""
        table = self.table_khz
        found = table[0]
        for row in table:
            if row <= khz:
                found = row
        return found


GOVERNORS: Final[Mapping[str, Mapping[str, type[Governor]]]] = {
    ACPI: {
        "performance": Performance,
        "powersave": Powersave,
        "ondemand": Ondemand,
        "conservative": Conservative,
        "schedutil": Schedutil,
    },
    INTEL: {"performance": Performance, "powersave": PstatePowersave},
}


class Policy:
    """One CPU's clock: what its governor wants, and since when (struct cpufreq_policy)."""

    __slots__ = (
        "_cpufreq",
        "_deferred",
        "_governor",
        "_is_idle",
        "_look",
        "cpu",
        "wanted_khz",
    )

    def __init__(
        self,
        cpufreq: "Cpufreq",
        cpu: int,
        governor: Governor,
        look: Callable[[], Load],
        is_idle: Callable[[], bool],
    ) -> None:
        self._cpufreq = cpufreq
        self.cpu = cpu
        self._governor = governor
        self._look = look
        self._is_idle = is_idle
        self._deferred: bool = False  # a look was due while the CPU slept
        self.wanted_khz: int = governor.first_khz()

    def start(self) -> None:
        """Set the timer for the first look."""
        if self._governor.period_ns:
            self._cpufreq.calendar.post(self._governor.period_ns, _due, self)

    def due(self) -> None:
        """Look, unless the CPU sleeps."""
        if self._is_idle():
            self._deferred = True
        else:
            self._decide()

    def cpu_woke(self) -> None:
        """Look if that was put off."""
        if self._deferred:
            self._deferred = False
            self._decide()

    def _decide(self) -> None:
        governor = self._governor
        load = self._look()
        if load.wall_ns:
            self._want(governor.next_khz(load, self.wanted_khz))
            if governor.hold_ns and governor.later_khz:
                self._cpufreq.calendar.post(governor.hold_ns, _hold_is_over, self)
        self._cpufreq.calendar.post(governor.period_ns, _due, self)

    def hold_is_over(self) -> None:
        """Take the second clock of a choice that has two (powersave_bias)."""
        if self._governor.later_khz:
            self._want(self._governor.later_khz)

    def _want(self, khz: int) -> None:
        if khz != self.wanted_khz:
            self.wanted_khz = khz
            self._cpufreq.choose()


def _due(policy: Policy) -> None:
    policy.due()


def _hold_is_over(policy: Policy) -> None:
    policy.hold_is_over()


class Cpufreq:
    """The clocks of one machine's CPUs."""

    def __init__(self, calendar: Calendar, params: CpufreqParams, kernel: KernelVersion) -> None:
        self.calendar = calendar
        self.params = params
        self._kernel = kernel
        self._class = GOVERNORS[params.driver][params.chosen_governor]
        self.policies: list[Policy] = []
        self._set_clock: list[Callable[[int], None]] = []
        self.clocks_khz: list[int] = []  # as scaling_cur_freq and /proc/cpuinfo say
        self._since_ns: list[int] = []
        self.time_in_state_ns: list[dict[int, int]] = []
        self.transitions: int = 0
        self.asks_for_utilisation: bool = params.chosen_governor == "schedutil"
        self.is_invariant: bool = in_force(INVARIANT, kernel)

    def add(
        self,
        look: Callable[[], Load],
        is_idle: Callable[[], bool],
        set_clock: Callable[[int], None],
    ) -> Policy:
        """Give the next CPU its policy; return it."""
        governor = self._class(self.params, self._kernel)
        policy = Policy(self, len(self.policies), governor, look, is_idle)
        self.policies.append(policy)
        self._set_clock.append(set_clock)
        self.clocks_khz.append(policy.wanted_khz)
        self._since_ns.append(self.calendar.now)
        self.time_in_state_ns.append(dict.fromkeys(self.params.table_khz(), 0))
        return policy

    def start(self) -> None:
        """Boot: the first clocks are in force at once."""
        for policy in self.policies:
            self._set_clock[policy.cpu](policy.wanted_khz)
            policy.start()

    def choose(self) -> None:
        """Let what the policies want take effect after the transition latency."""
        self.calendar.post(self.params.transition_latency_ns, _transit, self)

    def transit(self) -> None:
        """Set every clock to what is wanted of it now."""
        highest = max(policy.wanted_khz for policy in self.policies)
        for policy in self.policies:
            khz = highest if self.params.package else policy.wanted_khz
            if khz != self.clocks_khz[policy.cpu]:
                self._change(policy.cpu, khz)

    def _change(self, cpu: int, khz: int) -> None:
        self.update(cpu)
        self.clocks_khz[cpu] = khz
        self.transitions += 1
        self._set_clock[cpu](khz)

    def update(self, cpu: int) -> None:
        """Bring a CPU's time_in_state up to now."""
        now = self.calendar.now
        self.time_in_state_ns[cpu][self.clocks_khz[cpu]] += now - self._since_ns[cpu]
        self._since_ns[cpu] = now


def _transit(cpufreq: Cpufreq) -> None:
    cpufreq.transit()


@register("component", "cpufreq", params=CpufreqParams, doc="clocks, and who chooses them")
class CpufreqTable(Component[CpufreqParams]):
    """[machine.cpufreq]: what the driver's probe refuses (cpufreq_register_driver)."""

    @classmethod
    def examine(cls, described: Described, name: str, params: CpufreqParams) -> None:
        """Note clocks out of order, and a governor that is another driver's."""
        reading = described.reading
        table = described.given("cpufreq")
        known = GOVERNORS[params.driver]
        if params.chosen_governor not in known:
            reading.error(
                table.place_of("governor"),
                f"machine.cpufreq.governor: {params.driver} has no such governor",
                given=given_text(params.chosen_governor),
                allowed=", ".join(known),
            )
        base = format_quantity(params.base_khz, "clock_khz")
        if params.lowest_khz > params.base_khz:
            _out_of_order(reading, table, "lowest", params.lowest_khz, f"up to the base, {base}")
        if params.turbo_khz is not None and params.turbo_khz < params.base_khz:
            _out_of_order(reading, table, "turbo", params.turbo_khz, f"from the base, {base}, on")


def _out_of_order(reading: Reading, table: Table, key: str, khz: int, allowed: str) -> None:
    reading.error(
        table.place_of(key, "base"),
        f"machine.cpufreq.{key}: clocks out of order",
        given=given_text(format_quantity(khz, "clock_khz")),
        allowed=allowed,
    )
