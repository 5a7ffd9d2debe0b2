"""vmstat -s and -d: what has been counted since boot, of the machine and of each disk.

Models: both tables of two generations.
Linux counterpart: procps 3.2.x vmstat.c (sum_format, diskformat), procps-ng 4.0.2 src/vmstat.c.
Invariants: nothing is divided by time; disks stand in the order of the file (4.0: with whole disks
that never did I/O too), partitions nowhere.
Left out: -S, -D, -p.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sim.tools.free import memory_cached, memory_used
from sim.tools.iostat_report import disks_of_partitions
from sim.tools.parse import DiskRow, parse_diskstats, parse_meminfo, parse_stat, parse_vmstat
from sim.tools.snapshot import Snapshot

MS_PER_S = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsLayout:
    """All in which one generation differs from another."""

    memory_unit: str  # between a number of kB and what it counts
    paged_unit: str
    guest: bool  # CPU time of guests
    memory: Callable[[dict[str, int]], tuple[int, int]]  # used, and "swap cache"; kB


def totals(snapshot: Snapshot, layout: TotalsLayout) -> str:
    """Return the text of `vmstat -s`."""
    stat, paging = parse_stat(snapshot.text("stat")), parse_vmstat(snapshot.text("vmstat"))
    memory = parse_meminfo(snapshot.text("meminfo"))
    unit, paged, cpu = layout.memory_unit, layout.paged_unit, stat.cpu
    used, cached = layout.memory(memory)
    swap_total, swap_free = memory.get("SwapTotal", 0), memory.get("SwapFree", 0)
    rows: list[tuple[int, str, str]] = [
        (memory["MemTotal"], unit, "total memory"),
        (used, unit, "used memory"),
        (memory.get("Active", 0), unit, "active memory"),
        (memory.get("Inactive", 0), unit, "inactive memory"),
        (memory["MemFree"], unit, "free memory"),
        (memory.get("Buffers", 0), unit, "buffer memory"),
        (cached, unit, "swap cache"),
        (swap_total, unit, "total swap"),
        (swap_total - swap_free, unit, "used swap"),
        (swap_free, unit, "free swap"),
        (cpu.user, "", "non-nice user cpu ticks"),
        (cpu.nice, "", "nice user cpu ticks"),
        (cpu.system, "", "system cpu ticks"),
        (cpu.idle, "", "idle cpu ticks"),
        (cpu.iowait, "", "IO-wait cpu ticks"),
        (cpu.irq, "", "IRQ cpu ticks"),
        (cpu.softirq, "", "softirq cpu ticks"),
        (cpu.steal, "", "stolen cpu ticks"),
    ]
    if layout.guest:
        rows.append((cpu.guest, "", "non-nice guest cpu ticks"))
        rows.append((cpu.guest_nice, "", "nice guest cpu ticks"))
    rows += [
        (paging.get("pgpgin", 0), paged, f"{_pages(paged)}paged in"),
        (paging.get("pgpgout", 0), paged, f"{_pages(paged)}paged out"),
        (paging.get("pswpin", 0), "", "pages swapped in"),
        (paging.get("pswpout", 0), "", "pages swapped out"),
        (stat.intr, "", "interrupts"),
        (stat.ctxt, "", "CPU context switches"),
        (stat.btime_s, "", "boot time"),
        (stat.processes, "", "forks"),
    ]
    return "".join(f"{number:13d}{unit} {label}\n" for number, unit, label in rows)


def disks(snapshot: Snapshot, _layout: TotalsLayout) -> str:
    """Return the text of `vmstat -d`."""
    rows = parse_diskstats(snapshot.text("diskstats"))
    partitions = disks_of_partitions(rows)
    header = (
        "disk- ------------reads------------ ------------writes----------- -----IO------\n"
        "       total merged sectors      ms  total merged sectors      ms    cur    sec\n"
    )
    return header + "".join(_disk(row) for row in rows if row.name not in partitions)


def _disk(row: DiskRow) -> str:
    return (
        f"{row.name:<5} {row.reads:6d} {row.read_merges:6d} {row.read_sectors:7d} {row.read_ms:7d}"
        f" {row.writes:6d} {row.write_merges:6d} {row.write_sectors:7d} {row.write_ms:7d}"
        # The tool divides what is in flight by 1000 too.
        f" {row.in_flight // MS_PER_S:6d} {row.io_ticks_ms // MS_PER_S:6d}\n"
    )


def _pages(unit: str) -> str:
    return "" if unit else "pages "


def _memory_3_2(memory: dict[str, int]) -> tuple[int, int]:
    return memory["MemTotal"] - memory["MemFree"], memory.get("Cached", 0)


def _memory_4_0(memory: dict[str, int]) -> tuple[int, int]:
    return memory_used(memory), memory_cached(memory)


TOTALS = {"s": totals, "d": disks}
TOTALS_3_2 = TotalsLayout(memory_unit=" ", paged_unit="", guest=False, memory=_memory_3_2)
TOTALS_4_0 = TotalsLayout(memory_unit=" K", paged_unit=" K", guest=True, memory=_memory_4_0)
