"""/sys/fs/cgroup: the cpu controller's files of each group, as text.

Linux counterpart: kernel/sched/core.c: cpu_legacy_files (version 1), cpu_files (2),
 cpu_extra_stat_show, cpu_cfs_stat_show; kernel/cgroup/rstat.c (usage_usec); kernel/sched/cpuacct.c.
Invariants: names are paths below /sys/fs; a quota of none is "max" in version 2 and -1 in 1; times
 in us, but throttled_time and cpuacct.usage in ns.
Left out: user_usec and system_usec; cgroup.procs, pressure; writing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sim.sched.bandwidth import Bandwidth
from sim.sched.task_group import SHARES_DEFAULT, WEIGHT_DEFAULT, TaskGroup
from sim.units import NS_PER_US

LEGACY = 1
PERIOD_DEFAULT_US = 100_000


def render_cgroups(groups: Mapping[str, TaskGroup], versions: Mapping[str, int]) -> dict[str, str]:
    """Return the texts by path, each group in the version of the interface that it has."""
    files: dict[str, str] = {}
    for name, group in groups.items():
        below, render = _INTERFACES[versions[name] == LEGACY]
        files |= {f"{below}/{name}/{file}": text for file, text in render(group).items()}
    return files


def _legacy_files(group: TaskGroup) -> dict[str, str]:
    bandwidth = group.bandwidth
    quota_us = -1 if bandwidth is None else bandwidth.quota_ns // NS_PER_US
    periods, throttled, throttled_ns = _counts(bandwidth)
    lines = {"nr_periods": periods, "nr_throttled": throttled, "throttled_time": throttled_ns}
    return {
        "cpu.shares": f"{group.shares}\n",
        "cpu.cfs_period_us": f"{_period_us(bandwidth)}\n",
        "cpu.cfs_quota_us": f"{quota_us}\n",
        "cpu.stat": _flat(lines),
        "cpuacct.usage": f"{group.usage_ns}\n",
    }


def _unified_files(group: TaskGroup) -> dict[str, str]:
    bandwidth = group.bandwidth
    quota = "max" if bandwidth is None else f"{bandwidth.quota_ns // NS_PER_US}"
    periods, throttled, throttled_ns = _counts(bandwidth)
    lines = {
        "usage_usec": group.usage_ns // NS_PER_US, "nr_periods": periods,
        "nr_throttled": throttled, "throttled_usec": throttled_ns // NS_PER_US,
    }  # fmt: skip
    return {
        "cpu.weight": f"{group.shares * WEIGHT_DEFAULT // SHARES_DEFAULT}\n",
        "cpu.max": f"{quota} {_period_us(bandwidth)}\n",
        "cpu.stat": _flat(lines),
    }


_INTERFACES: Mapping[bool, tuple[str, Callable[[TaskGroup], dict[str, str]]]] = {
    True: ("cgroup/cpu", _legacy_files),
    False: ("cgroup", _unified_files),
}


def _flat(lines: Mapping[str, int]) -> str:
    """Return a flat keyed file (Documentation/admin-guide/cgroup-v2.rst)."""
    return "".join(f"{name} {value}\n" for name, value in lines.items())


def _period_us(bandwidth: Bandwidth | None) -> int:
    return PERIOD_DEFAULT_US if bandwidth is None else bandwidth.period_ns // NS_PER_US


def _counts(bandwidth: Bandwidth | None) -> tuple[int, int, int]:
    """Return the periods, those in which somebody was throttled, and for how long, ns."""
    if bandwidth is None:
        return 0, 0, 0
    return bandwidth.nr_periods, bandwidth.nr_throttled, bandwidth.throttled_ns
