"""Parameters of the CPU scheduler.

Models: [machine.sched]: how often the timer ticks, what a switch costs, who may be preempted.
Linux counterpart: CONFIG_HZ, kernel/Kconfig.preempt, the costs of arch/x86/kernel/process.c
 __switch_to and what it evicts.
Invariants: a release or a generation of machines changes defaults; what a scenario says stands.
Left out: /proc/sys/kernel/sched_*, whose defaults fair.py has by kernel version; voluntary
 preemption (CONFIG_PREEMPT_VOLUNTARY), which some distributions choose: take none for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sim.param import param
from sim.sched.features import SCHED_CHANGES
from sim.sched.version import changed_defaults
from sim.units import Value

PREEMPT_FULL: Final = "full"
PREEMPT_NONE: Final = "none"
PREEMPT_LAZY: Final = "lazy"
_KCONFIG: Final = "kernel/Kconfig.preempt"


@dataclass(frozen=True, kw_only=True)
class SchedParams:
    """[machine.sched]"""

    hz: int = param(
        250,
        dim="count",
        minimum=24,
        maximum=10000,
        key="hz",
        source="kernel/Kconfig.hz: default HZ_250 since 2.6.13",
        doc="timer ticks a second",
    )
    context_switch_ns: int = param(
        "2 us",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="manual: lmbench lat_ctx, Xeons of 2005-2010: 1.1-1.9 us; 3-4.5 us with a wake-up",
        doc="system time from one task, or idle, to the next",
    )
    notsc: bool = param(
        False,
        dim="bool",
        source="arch/x86/kernel/tsc.c: native_sched_clock(); notsc is a boot parameter, and"
        " architectures without such a clock do as kernel/sched/clock.c",
        doc="sched_clock() counts jiffies, so that tasks' run time is measured in ticks",
    )
    preemption: str = param(
        PREEMPT_NONE,
        dim="text",
        choices=(PREEMPT_FULL, PREEMPT_LAZY, PREEMPT_NONE),
        source=_KCONFIG + " 2.6.13: default PREEMPT_NONE",
        doc="whether who wakes takes the CPU from the kernel's code at once (full), or when that"
        " sleeps or goes back to the program (none), or at the next tick, too (lazy)",
    )
    autogroup: bool = param(
        False,
        dim="bool",
        source="assumed: off on servers (tuned profiles); kernel/sched/autogroup.c: on if built in",
        doc="each session is a group of its own, from 2.6.38 on (sched_autogroup_enabled)",
    )

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return what differs from 2.6.16 in this release, each with its source."""
        return changed_defaults(SCHED_CHANGES, kernel)
