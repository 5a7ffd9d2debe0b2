"""The real sar of sysstat 12 prints, on the same /proc, what ours prints."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest

from sim.tools.run import run_tool
from sim.tools.snapshot import Snapshot
from tests.oracle import real_tools

pytestmark = pytest.mark.oracle
NS_PER_S = 1_000_000_000
# Named as sar does from major 8 and the minors 0, 16, 32, 48; the last is never used.
DEVICES = ("sda", "sdb", "sdc", "sdd")
SAR = [
    f"sar {options} {real_tools.INTERVAL_S} 1"
    for options in ("-u", "-q", "-b", "-B", "-W", "-d", "-r", "-S", "-w", "-ubBdqrSwW")
]
CLOCK = re.compile(r"^\d\d:\d\d:\d\d", re.MULTILINE)


def needs_sar() -> None:
    """Skip unless the real sar is there in the generation that ours imitates."""
    reason = real_tools.why_unavailable("sar")
    if not reason and not re.search(r"sysstat version 12\.[67]", real_tools.version("sar")):
        reason = f"sar is {real_tools.version('sar').splitlines()[0]}"
    if reason:
        pytest.skip(f"oracle: {reason}")


def server(seed: int) -> list[Snapshot]:
    """Return two readings of a server that counts at random, up to large figures."""
    draw = random.Random(seed)
    scale = 10 ** draw.randint(1, 5)
    disks = [[draw.randrange(10 * scale) for _ in range(17)] for _ in DEVICES]
    cpus = [[draw.randrange(10**6) for _ in range(8)] for _ in range(2)]
    single = {name: draw.randrange(10**6) for name in ("ctxt", "processes", *VMSTAT)}
    readings = []
    for seconds in (1000, 1000 + draw.randint(1, 60)):
        readings.append(reading(draw, seconds, disks, cpus, single))
        disks = [[n + draw.randrange(scale) for n in row] for row in disks]
        cpus = [[n + draw.randrange(6000) for n in row] for row in cpus]
        single = {name: n + draw.randrange(30 * scale) for name, n in single.items()}
    return readings


VMSTAT = (
    "pgpgin", "pgpgout", "pswpin", "pswpout", "pgfree", "pgfault", "pgmajfault",
    "pgsteal_kswapd", "pgsteal_direct", "pgscan_kswapd", "pgscan_direct",
)  # fmt: skip
MEMINFO = (
    "MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "SwapCached", "Active",
    "Inactive", "SwapTotal", "SwapFree", "Dirty", "Slab", "Committed_AS",
)  # fmt: skip


def reading(
    draw: random.Random,
    seconds: int,
    disks: Sequence[Sequence[int]],
    cpus: Sequence[Sequence[int]],
    single: dict[str, int],
) -> Snapshot:
    lines = [("cpu ", [sum(column) for column in zip(*cpus, strict=True)])]
    lines += [(f"cpu{number}", ticks) for number, ticks in enumerate(cpus)]
    memory = {name: draw.randrange(1, 10**6) for name in MEMINFO}
    memory["MemTotal"], memory["SwapTotal"] = 8 * 10**6, 2 * 10**6
    rows = [*disks[:-1], [0] * 17]
    return Snapshot(
        seconds * NS_PER_S,
        {
            "stat": "".join(f"{name} {' '.join(map(str, t))} 0 0\n" for name, t in lines)
            + f"intr 5 0\nctxt {single['ctxt']}\nbtime 1200000000\n"
            f"processes {single['processes']}\nprocs_running 3\n"
            f"procs_blocked {draw.randrange(99)}\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n",
            "uptime": f"{seconds}.{draw.randrange(100):02d} {seconds}.00\n",
            "loadavg": f"{draw.randrange(99)}.02 12.41 4.90 {draw.randrange(9)}/131 9021\n",
            "diskstats": "".join(
                f"   8 {16 * n:7d} {name} {' '.join(map(str, row))}\n"
                for n, (name, row) in enumerate(zip(DEVICES, rows, strict=True))
            ),
            "meminfo": "".join(f"{name}: {kb} kB\n" for name, kb in memory.items()),
            "vmstat": "".join(f"{name} {single[name]}\n" for name in VMSTAT),
        },
    )


def ours(command: str, snapshots: Sequence[Snapshot]) -> str:
    texts = run_tool(
        command.split(), snapshots, hostname="h", release="r",
        boot_wallclock=datetime(2026, 1, 1), locale="ISO",
    )  # fmt: skip
    return "".join(texts)


def without_times(text: str) -> str:
    """Drop sysstat's first line, which names the real host, and replace times of day."""
    return CLOCK.sub("00:00:00", text.partition("\n")[2])


@pytest.mark.parametrize("seed", range(3))
def test_sar(seed: int, tmp_path: Path) -> None:
    needs_sar()
    snapshots = server(seed)
    real = real_tools.outputs(SAR, snapshots, tmp_path)
    printed = [ours(command, snapshots) for command in SAR]
    assert [without_times(text) for text in printed] == [without_times(text) for text in real]
