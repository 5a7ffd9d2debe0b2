"""Servers that count at random, as /proc texts with all that sar reads."""

from __future__ import annotations

import random
from collections.abc import Sequence

from sim.tools.snapshot import Snapshot

NS_PER_S = 1_000_000_000
# Named as sar 12 does from major 8 and the minors 0, 16, 32, 48; the last is never used.
DEVICES = ("sda", "sdb", "sdc", "sdd")
VMSTAT = (
    "pgpgin",
    "pgpgout",
    "pswpin",
    "pswpout",
    "pgfree",
    "pgfault",
    "pgmajfault",
    "pgsteal_kswapd",
    "pgsteal_direct",
    "pgscan_kswapd",
    "pgscan_direct",
)
MEMINFO = (
    "MemFree",
    "MemAvailable",
    "Buffers",
    "Cached",
    "SwapCached",
    "Active",
    "Inactive",
    "SwapFree",
    "Dirty",
    "Slab",
    "Committed_AS",
)


def server(draw: random.Random, seconds: Sequence[int]) -> list[Snapshot]:
    """Return readings at those uptimes of a server with 2 CPUs and 3 busy disks."""
    scale = 10 ** draw.randint(1, 5)
    disks = [[draw.randrange(10 * scale) for _ in range(17)] for _ in DEVICES[:-1]]
    cpus = [[draw.randrange(10**6) for _ in range(8)] for _ in range(2)]
    single = {name: draw.randrange(10**6) for name in ("ctxt", "processes", *VMSTAT)}
    readings = []
    for uptime_s in seconds:
        readings.append(reading(draw, uptime_s, [*disks, [0] * 17], cpus, single))
        disks = [[n + draw.randrange(scale) for n in row] for row in disks]
        cpus = [[n + draw.randrange(1, 6000) for n in row] for row in cpus]
        single = {name: n + draw.randrange(30 * scale) for name, n in single.items()}
    return readings


def reading(
    draw: random.Random,
    uptime_s: int,
    disks: Sequence[Sequence[int]],
    cpus: Sequence[Sequence[int]],
    single: dict[str, int],
) -> Snapshot:
    """Return one reading; gauges are drawn anew."""
    lines = [("cpu ", [sum(column) for column in zip(*cpus, strict=True)])]
    lines += [(f"cpu{number}", ticks) for number, ticks in enumerate(cpus)]
    memory = {name: draw.randrange(1, 10**6) for name in MEMINFO}
    memory |= {"MemTotal": 8_000_000, "SwapTotal": 2_000_000}
    return Snapshot(
        uptime_s * NS_PER_S,
        {
            "stat": "".join(f"{name} {' '.join(map(str, t))} 0 0\n" for name, t in lines)
            + f"intr 5 0\nctxt {single['ctxt']}\nbtime 1200000000\n"
            f"processes {single['processes']}\nprocs_running 3\n"
            f"procs_blocked {draw.randrange(99)}\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n",
            "uptime": f"{uptime_s}.{draw.randrange(100):02d} {uptime_s}.00\n",
            "loadavg": f"{draw.randrange(99)}.02 12.41 4.90 {draw.randrange(9)}/131 9021\n",
            "diskstats": "".join(
                f"   8 {16 * n:7d} {name} {' '.join(map(str, row))}\n"
                for n, (name, row) in enumerate(zip(DEVICES, disks, strict=True))
            ),
            "meminfo": "".join(f"{name}: {kb} kB\n" for name, kb in memory.items()),
            "vmstat": "".join(f"{name} {single[name]}\n" for name in VMSTAT),
        },
    )
