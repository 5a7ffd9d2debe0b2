"""When governors look, and when a CPU's clock changes.

Models: each CPU's policy: its governor looks every period while the CPU works; while the CPU sleeps
the timer is deferred, and the first thing after waking is the look that was due: at a load that is
mostly sleep. A choice takes effect after the transition latency; CPUs of one package that share a
clock have the highest that any of them wants.
Linux counterpart: drivers/cpufreq/cpufreq.c, cpufreq_governor.c (INIT_DEFERRABLE_WORK; since 4.7
 cpufreq_update_util hooks, which a sleeping CPU does not call either), intel_pstate.c.
Invariants: a CPU's clock is a row of the table; time_in_state sums to the time since boot.
Left out: the CPU time of looking, stalls while the clock changes (10 to 50 us on parts before
 2011), governors that look while the CPU sleeps (before 2.6.23).
"""

from collections.abc import Callable, Mapping
from typing import Final

from sim.component import Component, Described
from sim.engine.calendar import Calendar
from sim.registry import register
from sim.sched.cpufreq_governors import (
    Conservative,
    Governor,
    Load,
    Ondemand,
    Performance,
    Powersave,
    Schedutil,
)
from sim.sched.cpufreq_params import ACPI, INTEL, CpufreqParams
from sim.sched.features import INVARIANT
from sim.sched.intel_pstate import PstatePowersave
from sim.sched.version import KernelVersion, in_force
from sim.toml.layers import Table
from sim.toml.reading import Reading
from sim.units import format_quantity, given_text

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
