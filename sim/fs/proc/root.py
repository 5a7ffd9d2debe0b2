"""Which files /proc has, and which counters each of them shows.

Models: every file of /proc that the twin has, by the part of the kernel whose counters it shows.
Linux counterpart: fs/proc/root.c (proc_root_init), fs/proc/proc_misc.c (proc_misc_init).
Invariants: counters that are integrals are brought up to now before they are shown.
Left out: what each file lacks is told where it is rendered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from sim.fs.proc.counters import (
    CpuTimes,
    DiskStats,
    LoadAvg,
    ProcessMemory,
    SwapArea,
    SystemCounters,
    Vm,
)
from sim.fs.proc.cpuinfo import CpuModel, render_cpuinfo
from sim.fs.proc.dentry_state import render_dentry_state, render_inode_nr, render_inode_state
from sim.fs.proc.diskstats import render_diskstats
from sim.fs.proc.loadavg import render_averages
from sim.fs.proc.mdstat import MdArray, render_mdstat
from sim.fs.proc.meminfo import render_meminfo
from sim.fs.proc.process import render_process
from sim.fs.proc.procfs import ProcFs
from sim.fs.proc.slabinfo import render_slabinfo
from sim.fs.proc.stat import render_stat
from sim.fs.proc.swaps import render_swaps
from sim.fs.proc.uptime import render_uptime
from sim.fs.proc.vmstat import render_vmstat
from sim.sched.version import KernelVersion

PROCESSES = "processes"  # all of /proc/PID


@dataclass(frozen=True, kw_only=True)
class Clock:
    """The kernel's release and its clocks; the machine booted at 0."""

    version: KernelVersion
    hz: int
    now: Callable[[], int]  # simulated time, ns
    btime_s: int  # the wall clock at boot, Unix time


def create_cpu_files(
    proc: ProcFs,
    clock: Clock,
    cpus: Sequence[CpuTimes],
    system: SystemCounters,
    load: LoadAvg,
    clocks_khz: Sequence[int] = (),
    cores: Sequence[int] = (),
) -> None:
    """Create stat, uptime, loadavg, cpuinfo; `cores` has each CPU's core, if one has two threads.

    `clocks_khz` always has the clocks of now.
    """

    def stat() -> str:
        system.update()
        return render_stat(cpus, system, btime_s=clock.btime_s, version=clock.version)

    def uptime() -> str:
        system.update()
        return render_uptime(clock.now(), cpus, version=clock.version)

    proc.create("stat", stat)
    proc.create("uptime", uptime)
    proc.create("loadavg", LoadavgFile(load).render)
    proc.create("cpuinfo", lambda: render_cpuinfo(CpuModel(), clocks_khz, cores))


class LoadavgFile:
    """/proc/loadavg; its averages change every 5 s, and a mail storm looks more often."""

    def __init__(self, load: LoadAvg) -> None:
        self._load = load
        self._avenrun: list[int] = []  # of which this is the text:
        self._averages = ""

    def render(self) -> str:
        """Return the text of /proc/loadavg."""
        load = self._load
        if load.avenrun != self._avenrun:
            self._avenrun = list(load.avenrun)
            self._averages = render_averages(self._avenrun)
        return f"{self._averages} {load.nr_running}/{load.nr_threads} {load.last_pid}\n"


def create_memory_files(proc: ProcFs, clock: Clock, vm: Vm, swaps: Sequence[SwapArea]) -> None:
    """Create meminfo, vmstat, swaps, slabinfo, and the states of dentries and inodes."""

    def vmstat() -> str:
        vm.update()
        return render_vmstat(vm, version=clock.version)

    proc.create("meminfo", partial(render_meminfo, vm, swaps, version=clock.version))
    proc.create("vmstat", vmstat)
    proc.create("swaps", partial(render_swaps, swaps, version=clock.version))
    proc.create("slabinfo", partial(render_slabinfo, vm))
    proc.create("sys/fs/dentry-state", partial(render_dentry_state, vm))
    proc.create("sys/fs/inode-nr", partial(render_inode_nr, vm))
    proc.create("sys/fs/inode-state", partial(render_inode_state, vm))


def create_disk_files(
    proc: ProcFs,
    clock: Clock,
    disks: Sequence[DiskStats],
    partitions: frozenset[str] = frozenset(),
    arrays: Sequence[MdArray] = (),
) -> None:
    """Create diskstats and mdstat; `disks` are the rows, those named in `partitions` partitions."""

    def diskstats() -> str:
        now = clock.now()
        return render_diskstats(disks, partitions, now=now, hz=clock.hz, version=clock.version)

    proc.create("diskstats", diskstats)
    proc.create("mdstat", partial(render_mdstat, arrays))


def create_process_files(
    proc: ProcFs, clock: Clock, system: SystemCounters, mms: Iterable[ProcessMemory]
) -> None:
    """Create the directories of processes; `mms` always has the memories of those that have any."""

    def processes() -> dict[str, str]:
        memories = {mm.pid: mm for mm in mms}
        texts: dict[str, str] = {}
        for pid, process in sorted(system.processes.tasks.items()):
            texts |= render_process(process, memories.get(pid), version=clock.version)
        return texts

    proc.create_tree(processes, PROCESSES)
