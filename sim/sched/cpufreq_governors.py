"""Governors: from what a CPU did since they last looked to the clock it shall have.

Models: performance, powersave, ondemand, conservative, schedutil. Each is arithmetic on one Load;
when they look, and when the clock changes, is cpufreq.py's part.
Linux counterpart: drivers/cpufreq/cpufreq_performance.c, cpufreq_powersave.c, cpufreq_ondemand.c,
 cpufreq_conservative.c, kernel/sched/cpufreq_schedutil.c.
Invariants: a choice is a row of the table.
Left out: several CPUs in one policy (the package's clock is the highest wanted); schedutil's boost
 of tasks that waited for I/O, and its estimate of what a sleeper will need (util_est, 4.17).

By hand: a service that computes for 5 ms in 25 shows ondemand samples of 50 % at most, never 95:
it stays at the lowest clock and takes base / lowest as long; at full load the first sample is
100 %, and the clock is at the top 10 ms after the work began.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

from sim.sched.cpufreq_params import CpufreqParams
from sim.sched.features import DOWN_DIFFERENTIAL, INVARIANT, JUST_BELOW, OF_THE_TOP, ONDEMAND
from sim.sched.version import KernelVersion, in_force
from sim.units import NS_PER_MS

SAMPLING_MIN_NS: Final = 10 * NS_PER_MS  # MIN_SAMPLING_RATE with micro accounting
LATENCY_MULTIPLIER: Final = 1000  # transition latencies that a sampling period is at least
SCHEDUTIL_PERIOD_MAX_NS: Final = 10 * NS_PER_MS  # CPUFREQ_DBS_MIN_SAMPLING_INTERVAL since 4.15

CONSERVATIVE_UP: Final = 80
CONSERVATIVE_DOWN: Final = 20
CONSERVATIVE_STEP_PERCENT: Final = 5  # of the highest clock


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
