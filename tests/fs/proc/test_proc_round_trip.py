"""What /proc shows, the tools read back: for any counters and any version."""

from __future__ import annotations

from dataclasses import fields

from hypothesis import given
from hypothesis import strategies as st

from sim.tools.parse import (
    parse_diskstats,
    parse_loadavg,
    parse_meminfo,
    parse_stat,
    parse_uptime,
    parse_vmstat,
)
from tests.fs.proc.proc_counters import NS_PER_TICK, Cpu, Disk, Machine, Memory, System

releases = st.sampled_from(["2.6.16", "2.6.18", "2.6.25", "2.6.32", "3.2", "4.19", "5.4", "6.12"])
small = st.integers(0, 2**31)
times = st.integers(0, 2**62)
cpus = st.builds(Cpu, *[times] * 8)
disks = st.builds(
    Disk,
    st.sampled_from(["sda", "dm-6", "nvme0n1"]),
    st.integers(0, 255),
    st.integers(0, 255),
    **{f.name: times if f.name.endswith("_ns") else small for f in fields(Disk)[3:-1]},
)


@given(releases, st.lists(cpus, min_size=1, max_size=8), st.builds(System, *[small] * 5))
def test_stat(release: str, processors: list[Cpu], system: System) -> None:
    stat = parse_stat(Machine(release, cpus=processors, system=system).proc().read("stat"))
    assert [ticks.user for ticks in stat.cpus.values()] == [
        cpu.user_ns // NS_PER_TICK for cpu in processors
    ]
    assert stat.cpu.iowait == sum(cpu.iowait_ns for cpu in processors) // NS_PER_TICK
    assert stat.intr >= system.nr_interrupts
    assert stat.ctxt == system.nr_switches
    assert (stat.procs_running, stat.procs_blocked) == (system.nr_running, system.nr_iowait)


@given(releases, disks, st.sampled_from([100, 250, 1000]))
def test_diskstats(release: str, disk: Disk, hz: int) -> None:
    row = parse_diskstats(Machine(release, hz=hz, disks=[disk]).proc().read("diskstats"))[0]
    for name in ("name", "major", "minor", "reads", "read_merges", "writes", "write_sectors"):
        assert getattr(row, name) == getattr(disk, name)
    jiffy_ms = 1000 // hz
    assert (disk.write_ns // 1_000_000 - row.write_ms) % 2**32 < jiffy_ms
    assert (disk.io_ticks_ns // 1_000_000 - row.io_ticks_ms) % 2**32 < jiffy_ms


@given(st.lists(small, min_size=3, max_size=3))
def test_loadavg(avenrun: list[int]) -> None:
    machine = Machine()
    machine.load.avenrun = avenrun
    load = parse_loadavg(machine.proc().read("loadavg"))
    for shown, value in zip((load.load1, load.load5, load.load15), avenrun, strict=True):
        assert abs(shown - value / 2048) <= 0.0051


@given(releases, times)
def test_uptime(release: str, now_ns: int) -> None:
    machine = Machine(release, now_ns=now_ns)
    assert parse_uptime(machine.proc().read("uptime")).uptime_cs == now_ns // 10_000_000


@given(releases, small, small)
def test_memory(release: str, dirty: int, paged_in: int) -> None:
    memory = Memory(nr_dirty=dirty, pgpgin_sectors=paged_in)
    proc = Machine(release, memory=memory).proc()
    assert parse_meminfo(proc.read("meminfo"))["Dirty"] == dirty * 4
    vmstat = parse_vmstat(proc.read("vmstat"))
    assert (vmstat["nr_dirty"], vmstat["pgpgin"]) == (dirty, paged_in // 2)
