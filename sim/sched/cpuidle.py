"""Idle states of CPUs: how deep a CPU that has nothing to do sleeps, and what waking it takes.

Models: [machine.cpuidle]: the table of C-states of a processor, which of them may be used, and how
long the wake-up from each takes. State 0 is the polling loop.
Linux counterpart: drivers/idle/intel_idle.c (tables of 4.4, of later processors 5.4 and 6.5),
 drivers/cpuidle/; /sys/devices/system/cpu/cpu*/cpuidle/, /dev/cpu_dma_latency.
Invariants: deeper states take longer to leave and pay later.
Left out: package states beyond the cores', what sleep saves and turbo gains, HLT of processors
 before Nehalem (1 to 5 us: in the cost of a context switch).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sim.component import Component, Described
from sim.param import param
from sim.registry import register

US: Final = 1_000


@dataclass(frozen=True, kw_only=True)
class CState:
    """One state: how long leaving it takes, and how long a stay must be to save energy."""

    name: str
    exit_latency_ns: int
    target_residency_ns: int


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
    # A virtual CPU of KVM: the host polls for 200 us (halt_poll_ns) before it takes the CPU away.
    "vcpu": _states(("HLT", 40, 240)),
}
# Where the latencies of a table are from.
SOURCES: Final[Mapping[str, str]] = {
    "nehalem": "drivers/idle/intel_idle.c 4.4: nehalem_cstates",
    "sandy-bridge": "drivers/idle/intel_idle.c 4.4: snb_cstates",
    "ivy-town": "drivers/idle/intel_idle.c 4.4: ivt_cstates",
    "haswell": "drivers/idle/intel_idle.c 4.4: hsw_cstates",
    "skylake-sp": "drivers/idle/intel_idle.c 5.4: skx_cstates",
    "vcpu": "fit: recorded c_mailq, one writer: what each thread that wakes the next waits for",
}


@dataclass(frozen=True, kw_only=True)
class CpuidleParams:
    """[machine.cpuidle]; without that table a CPU wakes at once."""

    table: str = param(
        dim="text", choices=tuple(TABLES), doc="processor whose states these are",
        source="drivers/idle/intel_idle.c 4.4, 5.4",
    )  # fmt: skip
    max_cstate: int = param(
        9, dim="count", minimum=0, maximum=9, source="intel_idle.max_cstate",
        doc="deepest state, as numbered in cpuidle; 0: the CPU polls (idle=poll)",
    )  # fmt: skip
    latency_limit_ns: int = param(
        "2000 s", dim="time_ns", minimum=0, doc="longest wake-up that somebody bears",
        source="include/linux/pm_qos.h: PM_QOS_CPU_DMA_LAT_DEFAULT_VALUE; /dev/cpu_dma_latency",
    )  # fmt: skip
    exit_scale: float = param(
        1.0, dim="number", minimum=0, maximum=20, doc="measured wake-ups in those of the table",
        source="drivers/idle/intel_idle.c: the table is the processor's worst case",
    )  # fmt: skip

    housekeeping_ns: int = param(
        "1 s", dim="time_ns", minimum=1, source="assumed: vmstat's and other timers, once a second",
        doc="a CPU's own timers, of which none is simulated: it expects no longer sleep",
    )  # fmt: skip

    def states(self) -> tuple[CState, ...]:
        """Return the states that may be used, POLL first."""
        return TABLES[self.table][: self.max_cstate + 1]

    def exit_latency_ns(self, state: CState) -> int:
        """Return how long waking from a state takes here."""
        return int(state.exit_latency_ns * self.exit_scale)


@register("component", "cpuidle", params=CpuidleParams, doc="idle states of the CPUs")
class CpuidleTable(Component[CpuidleParams]):
    """[machine.cpuidle]"""

    @classmethod
    def examine(cls, described: Described, name: str, params: CpuidleParams) -> None:
        """List how long a CPU takes to wake from each of its idle states; nothing can be wrong."""
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
