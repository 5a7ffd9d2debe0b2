"""What a program is started with: policy, slice, affinity, group.

Models: what taskset, chrt and a control group set for a program before it starts; its children
inherit it.
Linux counterpart: sched_setscheduler, sched_setattr, sched_setaffinity (kernel/sched/core.c,
 kernel/sched/syscalls.c from 6.11), cpuset.cpus.
Invariants: an affinity has at least one CPU. Who is SCHED_BATCH or SCHED_IDLE takes the CPU from
 nobody when it wakes; who is SCHED_IDLE gives it to everybody else (fair.py, eevdf.py). Before
 2.6.23 a batch program earns nothing by sleeping (prio_array.py).
Left out: changing terms while the program runs; real-time policies.
"""

from dataclasses import dataclass
from typing import Final

from sim.sched.task import SCHED_BATCH, SCHED_IDLE, SCHED_NORMAL
from sim.sched.task_group import TaskGroup

POLICIES: Final = {"other": SCHED_NORMAL, "batch": SCHED_BATCH, "idle": SCHED_IDLE}

CPUS_MAX: Final = 8192  # NR_CPUS of today's distributions


@dataclass(frozen=True, kw_only=True)
class SchedAttr:
    """On what terms a program competes for the CPUs (struct sched_attr)."""

    policy: int = SCHED_NORMAL
    slice_ns: int = 0  # 0: the release's (eevdf.py)
    allowed: frozenset[int] | None = None  # CPUs; None: all
    group: TaskGroup | None = None


def parse_cpus(text: str) -> frozenset[int]:
    """Return the CPUs of a list such as "0-2,5" (cpulist_parse); raise ValueError if it is none."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"not a list of CPUs: {text!r}")
        low, high = int(first), int(last or first)
        if low > high or high >= CPUS_MAX:
            raise ValueError(f"not a range of CPUs: {part.strip()!r}")
        found.update(range(low, high + 1))
    return frozenset(found)
