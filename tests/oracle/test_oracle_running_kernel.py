"""The kernel that runs the tests: its /proc is read, and ours for its version has its shape."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from sim.tools.parse import (
    parse_diskstats,
    parse_loadavg,
    parse_meminfo,
    parse_stat,
    parse_uptime,
    parse_vmstat,
)
from tests.fs.proc.proc_counters import Disk, Machine

PROC = Path("/proc")
NEEDED = ("stat", "diskstats", "loadavg", "uptime", "meminfo", "vmstat")
pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(
        not all((PROC / name).exists() for name in NEEDED), reason="no Linux /proc here"
    ),
]


def real(name: str) -> str:
    return (PROC / name).read_text()


def ours(name: str) -> str:
    return Machine(platform.release(), disks=[Disk("sda")]).proc().read(name)


def line_names(text: str) -> list[str]:
    """Return the first words of the lines, without the single CPUs."""
    return [line.split()[0] for line in text.splitlines() if not line[3:4].isdigit()]


def test_every_file_of_the_running_kernel_is_understood() -> None:
    assert parse_stat(real("stat")).cpu.user > 0
    assert parse_uptime(real("uptime")).uptime_cs > 0
    assert parse_loadavg(real("loadavg")).threads > 0
    assert parse_meminfo(real("meminfo"))["MemTotal"] > 0
    assert "pgpgin" in parse_vmstat(real("vmstat"))
    parse_diskstats(real("diskstats"))


def test_cpu_lines_have_as_many_columns() -> None:
    assert len(ours("stat").splitlines()[0].split()) == len(real("stat").splitlines()[0].split())


def test_stat_has_the_same_lines_in_the_same_order() -> None:
    names = [
        [line.split()[0] for line in text.splitlines()] for text in (ours("stat"), real("stat"))
    ]
    mine, theirs = ([n for n in group if not n[3:].isdigit()] for group in names)
    assert mine == theirs


def test_disk_rows_have_as_many_columns() -> None:
    rows = real("diskstats").splitlines()
    if not rows:
        pytest.skip("this kernel shows no disks")
    assert len(ours("diskstats").split()) == len(rows[0].split())


@pytest.mark.parametrize("file", ["meminfo", "vmstat"])
def test_lines_are_those_of_the_kernel_in_its_order(file: str) -> None:
    theirs = [line.split()[0] for line in real(file).splitlines()]
    mine = [line.split()[0] for line in ours(file).splitlines()]
    shared = [name for name in mine if name in theirs]
    assert [name for name in theirs if name in mine] == shared
    configurable = {"Zswap:", "Zswapped:", "HardwareCorrupted:", "AnonHugePages:", "Percpu:"}
    huge = {name for name in mine if "Huge" in name or "PmdMapped" in name}
    assert set(mine) - set(theirs) <= configurable | huge
