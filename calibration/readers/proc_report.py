"""From /proc text to columns: what every reader of raw counters shares.

Models: iostat's and vmstat's arithmetic over recorded /proc text.
Linux counterpart: sysstat iostat.c, whose arithmetic sim.tools.iostat has; mm/vmstat.c.
Invariants: a column's conversion stands here once; parse errors (ProcFormatError) are the caller's.
Left out: everything of /proc/meminfo and /proc/vmstat that the tables do not name.
"""

import re
from collections.abc import Mapping
from typing import Final

from sim.tools.iostat import CPU_COLUMNS, DeviceReport, cpu_percents
from sim.tools.parse import (
    CPU_FIELDS,
    CpuTicks,
    DiskRow,
    parse_loadavg,
    parse_meminfo,
    parse_stat,
    parse_vmstat,
)

SECTOR_BYTES: Final = 512
TICK_MS: Final = 10  # USER_HZ is 100
# Canonical column -> field of DeviceReport, and what a unit of it is worth.
DEVICE: Final = {
    "rrqm_per_s": ("rrqm_per_s", 1),
    "wrqm_per_s": ("wrqm_per_s", 1),
    "drqm_per_s": ("drqm_per_s", 1),
    "r_per_s": ("r_per_s", 1),
    "w_per_s": ("w_per_s", 1),
    "d_per_s": ("d_per_s", 1),
    "f_per_s": ("f_per_s", 1),
    "io_per_s": ("tps", 1),
    "read_bytes_per_s": ("rsec_per_s", SECTOR_BYTES),
    "write_bytes_per_s": ("wsec_per_s", SECTOR_BYTES),
    "discard_bytes_per_s": ("dsec_per_s", SECTOR_BYTES),
    "areq_bytes": ("avgrq_sectors", SECTOR_BYTES),
    "rareq_bytes": ("rareq_sectors", SECTOR_BYTES),
    "wareq_bytes": ("wareq_sectors", SECTOR_BYTES),
    "aqu_sz": ("avgqu_sz", 1),
    "await_ms": ("await_ms", 1),
    "r_await_ms": ("r_await_ms", 1),
    "w_await_ms": ("w_await_ms", 1),
    "d_await_ms": ("d_await_ms", 1),
    "f_await_ms": ("f_await_ms", 1),
    "svctm_ms": ("svctm_ms", 1),
    "util_pct": ("util_pct", 1),
}
CPU: Final = ("user_pct", "nice_pct", "system_pct", "iowait_pct", "steal_pct", "idle_pct")
MEMORY: Final = {
    "mem_total_bytes": "MemTotal",
    "mem_free_bytes": "MemFree",
    "mem_buffers_bytes": "Buffers",
    "mem_available_bytes": "MemAvailable",
    "mem_cached_bytes": "Cached",
    "mem_dirty_bytes": "Dirty",
    "mem_writeback_bytes": "Writeback",
    "swap_total_bytes": "SwapTotal",
    "swap_free_bytes": "SwapFree",
}
# pgpgin and pgpgout count KiB, the others pages (mm/vmstat.c).
PAGING: Final = {
    "pgin_bytes": ("pgpgin", 1024),
    "pgout_bytes": ("pgpgout", 1024),
    "swapin_pages": ("pswpin", 1),
    "swapout_pages": ("pswpout", 1),
    "pgfault": ("pgfault", 1),
    "pgmajfault": ("pgmajfault", 1),
    "refault": ("workingset_refault_file", 1),
    "reactivated": ("workingset_activate_file", 1),
}
DISK_TOTALS: Final = {
    "reads_total": ("reads", 1),
    "read_merges_total": ("read_merges", 1),
    "read_bytes_total": ("read_sectors", SECTOR_BYTES),
    "read_ms_total": ("read_ms", 1),
    "writes_total": ("writes", 1),
    "write_merges_total": ("write_merges", 1),
    "write_bytes_total": ("write_sectors", SECTOR_BYTES),
    "write_ms_total": ("write_ms", 1),
    "discards_total": ("discards", 1),
    "discard_merges_total": ("discard_merges", 1),
    "discard_bytes_total": ("discard_sectors", SECTOR_BYTES),
    "discard_ms_total": ("discard_ms", 1),
    "flushes_total": ("flushes", 1),
    "flush_ms_total": ("flush_ms", 1),
    "io_ticks_ms_total": ("io_ticks_ms", 1),
    "time_in_queue_ms_total": ("time_in_queue_ms", 1),
}
# kernel/sched/psi.c: psi_show
_PRESSURE: Final = re.compile(r"^(some|full) avg10=.* total=(\d{1,20})$", re.MULTILINE | re.ASCII)
# Kernel's name of a state of the CPU -> ours, where they differ.
_STATES: Final = {"softirq": "soft", "guest_nice": "gnice"}


def device_columns(device: DeviceReport) -> dict[str, float]:
    """Return the columns of one device over one interval."""
    return {column: getattr(device, name) * worth for column, (name, worth) in DEVICE.items()}


def device_totals(row: DiskRow) -> dict[str, float]:
    """Return the counters of one device since boot."""
    return {column: getattr(row, name) * worth for column, (name, worth) in DISK_TOTALS.items()}


def cpu_ticks(stat: str) -> dict[str, CpuTicks]:
    """Return the ticks of all CPUs together ("all") and of each, from /proc/stat."""
    parsed = parse_stat(stat)
    return {"all": parsed.cpu} | {str(number): ticks for number, ticks in parsed.cpus.items()}


def cpu_shares(
    before: Mapping[str, CpuTicks], now: Mapping[str, CpuTicks]
) -> dict[str, dict[str, float]]:
    """Return the shares of each CPU as iostat adds them up; since boot for one not seen before."""
    return {
        name: dict(
            zip(CPU, cpu_percents(ticks - before.get(name, CpuTicks()), CPU_COLUMNS), strict=True)
        )
        for name, ticks in now.items()
    }


def cpu_totals(ticks: CpuTicks) -> dict[str, float]:
    """Return the time in each state since boot, ms; guest is inside user too."""
    return {
        f"{_STATES.get(name, name)}_ms_total": getattr(ticks, name) * TICK_MS for name in CPU_FIELDS
    }


def loads(loadavg: str) -> dict[str, float]:
    """Return the columns of /proc/loadavg."""
    load = parse_loadavg(loadavg)
    return {"load1": load.load1, "load5": load.load5, "load15": load.load15}


def memory(meminfo: str) -> dict[str, float]:
    """Return the columns of /proc/meminfo, bytes."""
    kb = parse_meminfo(meminfo)
    values = {column: kb[name] * 1024 for column, name in MEMORY.items() if name in kb}
    if "SwapTotal" in kb and "SwapFree" in kb:
        values["swap_used_bytes"] = (kb["SwapTotal"] - kb["SwapFree"]) * 1024
    return dict(values)


def stalled_us(pressure: str) -> dict[str, int]:
    """Return for how long some and all tasks waited for a resource (/proc/pressure), us."""
    return {line: int(total) for line, total in _PRESSURE.findall(pressure)}


def stat_counters(stat: str) -> dict[str, float]:
    """Return the counters of /proc/stat that are not CPU time, by the stem of their column."""
    parsed = parse_stat(stat)
    return {"intr": parsed.intr, "ctxt": parsed.ctxt, "forks": parsed.processes}


def vm_counters(vmstat: str) -> dict[str, float]:
    """Return the counters of /proc/vmstat, by the stem of their column."""
    counters = parse_vmstat(vmstat)
    return {
        stem: counters[name] * worth for stem, (name, worth) in PAGING.items() if name in counters
    }
