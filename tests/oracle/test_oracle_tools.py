"""The real sysstat 12 and procps 4 print, on the same /proc, what ours print."""

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
SEEDS = range(3)
DEVICES = ("sda", "sdb", "dm-0", "nvme0n1", "sdz")  # the last is never used
IOSTAT = [
    f"iostat {options.format(real_tools.INTERVAL_S)}"
    for options in (
        "-x {} 2",
        "-xmc -z {} 2",
        "-d {} 2",
        "-dm -y {} 1",
        "-c {} 2",
        "-d sdz sda {} 2",
        "-dx -p ALL {} 2",
        "-p {} 2",
        "-c -p sdb {} 2",
    )
]
VMSTAT = f"vmstat {real_tools.INTERVAL_S} 2"


def needs(tool: str, pattern: str) -> None:
    """Skip unless the real tool is there in the generation that ours imitates."""
    reason = real_tools.why_unavailable(tool)
    if not reason and not re.search(pattern, real_tools.version(tool)):
        reason = f"{tool} is {real_tools.version(tool).splitlines()[0]}, not {pattern}"
    if reason:
        pytest.skip(f"oracle: {reason}")


def server(seed: int) -> list[Snapshot]:
    """Return two readings of a server that counts at random, up to large figures."""
    draw = random.Random(seed)
    scale = 10 ** draw.randint(1, 5)
    seconds = [draw.randint(100, 10**6), 0]
    seconds[1] = seconds[0] + draw.randint(1, 60)
    disks = [[draw.randrange(10 * scale) for _ in range(17)] for _ in DEVICES]
    cpus = [[draw.randrange(10**6) for _ in range(8)] for _ in range(2)]
    single = [draw.randrange(10**6) for _ in range(6)]
    readings = []
    for uptime_s in seconds:
        readings.append(reading(uptime_s, disks, cpus, single, draw.randrange(100)))
        still = disks[1]  # sdb does nothing in the interval
        disks = [[n + draw.randrange(scale) for n in row] for row in disks]
        disks[1] = still
        cpus = [[n + draw.randrange(6000) for n in row] for row in cpus]
        single = [n + draw.randrange(30 * scale) for n in single]
    return readings


def reading(
    uptime_s: int,
    disks: Sequence[Sequence[int]],
    cpus: Sequence[Sequence[int]],
    single: Sequence[int],
    centiseconds: int,
) -> Snapshot:
    intr, ctxt, pgpgin, pgpgout, pswpin, pswpout = single
    total = [sum(column) for column in zip(*cpus, strict=True)]
    lines = [("cpu ", total), ("cpu0", cpus[0]), ("cpu1", cpus[1])]
    rows = [*disks[:-1], [0] * 17]
    return Snapshot(
        uptime_s * NS_PER_S,
        {
            "stat": "".join(f"{name} {' '.join(map(str, t))} 0 0\n" for name, t in lines)
            + f"intr {intr} 0\nctxt {ctxt}\nbtime 1200000000\nprocesses 4000\n"
            "procs_running 3\nprocs_blocked 7\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n",
            "uptime": f"{uptime_s}.{centiseconds:02d} {uptime_s}.00\n",
            "loadavg": "37.02 12.41 4.90 2/131 9021\n",
            "diskstats": "".join(
                f"   8 {16 * n:7d} {name} {' '.join(map(str, row))}\n"
                for n, (name, row) in enumerate(zip(DEVICES, rows, strict=True))
            ),
            "meminfo": "MemTotal: 8174332 kB\nMemFree: 65536 kB\nMemAvailable: 524288 kB\n"
            "Buffers: 32768 kB\nCached: 4587520 kB\nSwapTotal: 2097152 kB\n"
            "SwapFree: 1572864 kB\nSlab: 40000 kB\nSReclaimable: 20000 kB\n"
            "SUnreclaim: 20000 kB\nShmem: 4096 kB\nDirty: 100 kB\nActive: 300000 kB\n"
            "Inactive: 200000 kB\n",
            "vmstat": f"nr_free_pages 16384\npgpgin {pgpgin}\npgpgout {pgpgout}\n"
            f"pswpin {pswpin}\npswpout {pswpout}\n",
        },
    )


def ours(command: str, snapshots: Sequence[Snapshot]) -> str:
    texts = run_tool(
        command.split(),
        snapshots,
        hostname="h",
        release="r",
        boot_wallclock=datetime(2026, 1, 1),
        locale="ISO",
        users=0,
    )
    return "".join(texts)


def without_title(text: str) -> str:
    """Drop sysstat's first line: it names the real host."""
    return text.partition("\n")[2]


@pytest.mark.parametrize("seed", SEEDS)
def test_iostat(seed: int, tmp_path: Path) -> None:
    needs("iostat", r"sysstat version 12\.([3-7])")
    snapshots = server(seed)
    real = real_tools.outputs(IOSTAT, snapshots, tmp_path)
    printed = [ours(command, snapshots) for command in IOSTAT]
    assert [without_title(text) for text in printed] == [without_title(text) for text in real]


@pytest.mark.parametrize("seed", SEEDS)
def test_vmstat_and_uptime(seed: int, tmp_path: Path) -> None:
    needs("vmstat", r"procps-ng 4\.0\.[0-2]$")
    snapshots = server(seed)
    vmstat, uptime = real_tools.outputs([VMSTAT, "uptime"], snapshots, tmp_path)
    assert ours(VMSTAT, snapshots) == vmstat
    assert ours("uptime", snapshots)[9:] == uptime[9:]  # after the time of day
