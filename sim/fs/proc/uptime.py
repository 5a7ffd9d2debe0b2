"""/proc/uptime: seconds since boot and seconds idle.

Models: the file's text; the idle time is summed over the CPUs.
Linux counterpart: fs/proc/proc_misc.c:uptime_read_proc (2.6.16), fs/proc/uptime.c (2.6.27 on).
Invariants: both truncated to 1/100 s.
Left out: nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from sim.fs.proc.counters import CpuTimes
from sim.sched.version import KernelVersion

NS_PER_CS = 10_000_000
# the second number is the idle time of all CPUs; before, that of the boot CPU's
# idle task, which is charged the time of its I/O waits too.
SUMMED_SINCE: KernelVersion = (2, 6, 32)


def render_uptime(uptime_ns: int, cpus: Sequence[CpuTimes], *, version: KernelVersion) -> str:
    """Return the text of /proc/uptime."""
    if version >= SUMMED_SINCE:
        idle_ns = sum(cpu.idle_ns for cpu in cpus)
    else:
        idle_ns = cpus[0].idle_ns + cpus[0].iowait_ns
    return f"{_seconds(uptime_ns)} {_seconds(idle_ns)}\n"


def _seconds(ns: int) -> str:
    hundredths = ns // NS_PER_CS
    return f"{hundredths // 100}.{hundredths % 100:02d}"
