"""Counters recorded once a second on real kernels give the iostat recorded beside them.

The two recorders read /proc at slightly different moments, so a request may fall into one second
here and into the next there: most rows agree byte for byte, and the sums always.
"""

from __future__ import annotations

import csv
import gzip
import os
from datetime import datetime
from pathlib import Path

import pytest

from sim.tools.run import run_tool
from sim.tools.snapshot import Snapshot

pytestmark = pytest.mark.oracle
SHARED = Path(os.environ.get("IOTWIN_SHARED", "../shared"))
RUNS = {
    "c_mailq/ext4-p8-hdd7200.r1": "loop0",
    "a_randread/randread-jobs4-hdd7200.r1": "loop0",
    "c_mailq/xfs-p32-hdd7200.r1": "loop0",
}
NS_PER_S = 1_000_000_000
CPU = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
DISK = (
    "rd_ios",
    "rd_merges",
    "rd_sectors",
    "rd_ticks",
    "wr_ios",
    "wr_merges",
    "wr_sectors",
    "wr_ticks",
    "in_flight",
    "io_ticks",
    "time_in_queue",
    "dc_ios",
    "dc_merges",
    "dc_sectors",
    "dc_ticks",
    "fl_ios",
    "fl_ticks",
)


def sampled(run: Path, device: str) -> list[Snapshot]:
    """Return the sampler's counters as /proc texts, a second apart."""
    with gzip.open(run / "sampler.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    return [
        Snapshot(
            second * NS_PER_S,
            {
                "stat": f"cpu  {' '.join(row[f'cpu_{name}'] for name in CPU)}\n"
                "intr 0\nctxt 0\nbtime 0\nprocesses 0\nprocs_running 0\nprocs_blocked 0\n",
                "uptime": f"{1000 + second}.00 0.00\n",
                "diskstats": f"7 0 {device} {' '.join(row[f'ds_{name}'] for name in DISK)}\n",
            },
        )
        for second, row in enumerate(rows)
    ]


def figures(text: str, device: str) -> list[str]:
    """Return the rows of the device after the report since boot."""
    return [line for line in text.splitlines() if line.startswith(device)][1:]


@pytest.mark.parametrize("name", RUNS)
def test_sampled_counters_give_the_recorded_iostat(name: str) -> None:
    run, device = SHARED / "groundtruth" / name, RUNS[name]
    if not run.exists():
        pytest.skip(f"no recording at {run}")
    with gzip.open(run / "iostat.txt.gz", "rt") as file:
        recorded = figures(file.read(), device)
    texts = run_tool(
        ["iostat", "-xmc", "1"],
        sampled(run, device),
        hostname="vm",
        release="6.18",
        boot_wallclock=datetime(2026, 11, 21),
    )
    ours = figures("".join(texts), device)[: len(recorded)]
    recorded = recorded[: len(ours)]
    same = sum(line == other for line, other in zip(ours, recorded, strict=True))
    assert same >= 0.6 * len(recorded), f"{same} of {len(recorded)} rows agree"
    for column in (1, 2, 7, 8):  # r/s, rMB/s, w/s, wMB/s
        theirs = sum(float(line.split()[column]) for line in recorded)
        assert sum(float(line.split()[column]) for line in ours) == pytest.approx(theirs, rel=0.02)
