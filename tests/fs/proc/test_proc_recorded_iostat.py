"""The recorded sendmail storm: counters -> /proc of 2.6.16 -> iostat, byte for byte the recording.

The counters are rebuilt from the recorded figures: whole requests, and times in whole jiffies of
4 ms (HZ 250), which is possible for every figure of the recording.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import pytest

from sim.tools.run import run_tool
from sim.tools.snapshot import Snapshot
from tests.fs.proc.proc_counters import NS_PER_S, NS_PER_TICK, Cpu, Disk, Machine

SHARED = Path(os.environ.get("IOTWIN_SHARED", "../shared"))
RECORDED = SHARED / "cases" / "sendmail" / "iostat.txt"
ARGV = ["iostat", "-t", "-c", "-m", "-x", "5", "4"]
INTERVAL_S = 5
JIFFY_MS = 4
MS = 1_000_000
BOOTED_S = 1_000_000  # up for eleven days when the first report of the recording began


def whole(text: str, per_unit: float, step: int) -> int:
    """Return a multiple of `step` whose multiple of `per_unit` prints as `text`."""
    middle = round(float(text) / per_unit)
    for distance in range(round(0.01 / per_unit) + step + 1):
        for value in (middle - distance, middle + distance):
            if value % step == 0 and value >= 0 and f"{value * per_unit:.2f}" == text:
                return value
    raise AssertionError(f"no whole multiple of {step} prints as {text}")


def add_device_row(disk: Disk, row: list[str]) -> None:
    """Add to the counters what one recorded row counted (the recording has no reads)."""
    _name, _rrqm, wrqm, _r, w, _rmb, wmb, size, queue, wait, _svctm, util = row
    writes = whole(w, 1 / INTERVAL_S, 1)
    disk.writes += writes
    disk.write_merges += whole(wrqm, 1 / INTERVAL_S, 1)
    sectors = [
        n
        for n in range(round(float(size) * writes) + 99)
        if writes and f"{n / writes:.2f}" == size and f"{n / INTERVAL_S / 2048:.2f}" == wmb
    ]
    disk.write_sectors += sectors[len(sectors) // 2] if sectors else 0
    disk.write_ns += whole(wait, 1 / writes, JIFFY_MS) * MS if writes else 0
    disk.io_ticks_ns += whole(util, 100 / (1000 * INTERVAL_S), JIFFY_MS) * MS
    disk.time_in_queue_ns += whole(queue, 1 / (1000 * INTERVAL_S), JIFFY_MS) * MS


def add_cpu_row(cpu: Cpu, row: list[str]) -> None:
    """Add the ticks of one avg-cpu line: the one total that makes all columns whole."""
    for total in range(1900, 2001):
        ticks = [round(float(text) * total / 100) for text in row]
        shown = [f"{n / total * 100:.2f}" for n in ticks]
        if shown == row and sum(ticks) == total:
            user, _nice, system, iowait, _steal, idle = (n * NS_PER_TICK for n in ticks)
            cpu.user_ns += user
            cpu.system_ns += system
            cpu.iowait_ns += iowait
            cpu.idle_ns += idle
            cpu.softirq_ns += (2000 - total) * NS_PER_TICK  # 4 CPUs, 5 s: the rest
            return
    raise AssertionError(f"no whole number of ticks prints as {row}")


def snapshots_of(recording: str) -> list[Snapshot]:
    """Return /proc before and after each report of the recording."""
    reports = [block.splitlines() for block in recording.split("Time: ")[1:]]
    names = [line.split()[0] for line in reports[0][5:] if line]
    machine = Machine("2.6.16.60-0.21-smp", cpus=[Cpu() for _ in range(4)])
    machine.disks += [Disk(name, minor=n, writes=1000) for n, name in enumerate(names)]
    machine.now_ns = BOOTED_S * NS_PER_S
    taken = [Snapshot(0, machine.proc().snapshot())]
    for number, lines in enumerate(reports, start=1):
        machine.now_ns += INTERVAL_S * NS_PER_S
        add_cpu_row(machine.cpus[0], lines[2].split())
        for disk, line in zip(machine.disks, lines[5:], strict=False):
            add_device_row(disk, line.split())
        taken.append(Snapshot(number * INTERVAL_S * NS_PER_S, machine.proc().snapshot()))
    return taken


@pytest.mark.skipif(not RECORDED.exists(), reason=f"no recording at {RECORDED}")
def test_storm_prints_as_recorded() -> None:
    recording = RECORDED.read_text()
    printed = list(
        run_tool(
            ARGV,
            snapshots_of(recording),
            hostname="mail",
            release="2.6.16.60-0.21-smp",
            boot_wallclock=datetime(2009, 5, 14, 5, 11, 51),
            layout="sysstat-7",
        )
    )
    assert printed[0] == "Linux 2.6.16.60-0.21-smp (mail) \t05/14/2009\n\n"
    assert "".join(printed[2:]) == recording + "\n"
