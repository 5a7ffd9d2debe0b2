"""Which clocks a CPU has, and which governor chooses among them: [machine.cpufreq].

Models: the table of P-states, as firmware tells it, and the tunables of the governors in sysfs.
Linux counterpart: struct cpufreq_frequency_table, drivers/cpufreq/acpi-cpufreq.c, intel_pstate.c;
 /sys/devices/system/cpu/cpu*/cpufreq/.
Invariants: a table ascends, from the lowest clock to the highest; a CPU has one of its rows.
Left out: that turbo shrinks with the number of busy cores and with heat, hyperthreads that share a
 core; "userspace", whose only clock is a scenario's `lowest` under powersave.

All CPU times of the model are at `base`: at another clock work takes base / clock of the time, but
for `stall_share` of it, which waits for memory and knows no clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sim.param import param
from sim.sched.features import CPUFREQ_CHANGES
from sim.sched.version import changed_defaults
from sim.units import Value

ACPI: Final = "acpi-cpufreq"
INTEL: Final = "intel_pstate"
GOVERNOR_NAMES: Final = ("performance", "powersave", "ondemand", "conservative", "schedutil")
# What a distribution leaves a driver with.
DEFAULT_GOVERNOR: Final[Mapping[str, str]] = {ACPI: "ondemand", INTEL: "powersave"}


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
    setpoint_percent: float = param(
        97.0,
        dim="percent",
        minimum=1,
        maximum=200,
        source="drivers/cpufreq/intel_pstate.c 4.4: core_params.pid_policy",
        doc="how busy intel_pstate wants a CPU, to 4.12",
    )
    p_gain_percent: float = param(
        20.0,
        dim="percent",
        minimum=0,
        maximum=100,
        source="drivers/cpufreq/intel_pstate.c 4.4: core_params.pid_policy",
        doc="steps of the clock for each 1 % off that",
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
