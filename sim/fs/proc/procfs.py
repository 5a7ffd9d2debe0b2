"""The /proc file system: a name in, the kernel's text out.

Models: reading a whole file; each read sees the counters of its moment.
Linux counterpart: fs/proc/root.c, fs/proc/proc_misc.c:proc_misc_init.
Invariants: rendering changes nothing that a program could see (disks integrate up to now).
Left out: partial reads, directories, writing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sim.fs.proc.counters import (
    CpuTimes,
    DiskStats,
    LoadAvg,
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
from sim.fs.proc.slabinfo import render_slabinfo
from sim.fs.proc.stat import render_stat
from sim.fs.proc.swaps import render_swaps
from sim.fs.proc.uptime import render_uptime
from sim.fs.proc.vmstat import render_vmstat
from sim.sched.version import kernel_version

SNAPSHOT_FILES = ("stat", "diskstats", "loadavg", "uptime", "meminfo", "vmstat")
PROCESSES = "processes"


class ProcFs:
    """/proc of one machine.

    `now` returns simulated time (ns); the machine booted at `boot_ns` (0 or before) when the wall
    clock showed `btime_s` (Unix time). `disks` are the rows of diskstats in order of registration,
    the names in `partitions` being partitions. The sequences may grow while the machine runs.
    `refresh` brings the CPUs' times up to now before they are read. `cpu_files` returns what tools
    read of /sys/devices/system/cpu. `cores` has each CPU's core, if cores have two threads.
    """

    def __init__(
        self, *, release: str, hz: int, now: Callable[[], int], boot_ns: int, btime_s: int,
        cpus: Sequence[CpuTimes], system: SystemCounters, load: LoadAvg, vm: Vm,
        disks: Sequence[DiskStats], partitions: frozenset[str] = frozenset(),
        swaps: Sequence[SwapArea] = (), cpu_model: CpuModel | None = None,
        clocks_khz: Sequence[int] = (), refresh: Callable[[], None] | None = None,
        arrays: Sequence[MdArray] = (), cpu_files: Callable[[], dict[str, str]] | None = None,
        cores: Sequence[int] = (),
    ) -> None:  # fmt: skip
        self.version = kernel_version(release)
        self._hz = hz
        self._now = now
        self._boot_ns = boot_ns
        self._btime_s = btime_s
        self._cpus = cpus
        self._system = system
        self._load = load
        self._vm = vm
        self._disks = disks
        self._partitions = partitions
        self._swaps = swaps
        self._cpu_model = cpu_model or CpuModel()
        self._clocks_khz = clocks_khz
        self._refresh = refresh
        self._arrays = arrays
        self._cpu_files = cpu_files
        self._cores = cores
        self._more: tuple[str, ...] = ()
        self._avenrun: list[int] = []  # of which this is the text:
        self._averages = ""
        self._renderers: dict[str, Callable[[], str]] = {
            "stat": self._stat,
            "diskstats": self._diskstats,
            "loadavg": self._loadavg,
            "uptime": self._uptime,
            "mdstat": self._mdstat,
            "meminfo": self._meminfo,
            "vmstat": self._vmstat,
            "swaps": self._read_swaps,
            "cpuinfo": self._cpuinfo,
            "slabinfo": self._slabinfo,
            "sys/fs/dentry-state": self._dentry_state,
            "sys/fs/inode-nr": self._inode_nr,
            "sys/fs/inode-state": self._inode_state,
        }

    def read(self, path: str) -> str:
        """Return the text of `path` ("loadavg" or "/proc/loadavg"); FileNotFoundError if none."""
        name = path.removeprefix("/proc/")
        renderer = self._renderers.get(name)
        if renderer is None:
            raise FileNotFoundError(f"/proc/{name}: not modelled; there are {self.files()}")
        return renderer()

    def files(self) -> tuple[str, ...]:
        """Return the names of the files."""
        return tuple(sorted(self._renderers))

    def snapshot_also(self, names: Iterable[str]) -> None:
        """Put more files into what snapshot() returns; PROCESSES stands for all of /proc/PID."""
        self._more = tuple(names)

    def snapshot(self) -> dict[str, str]:
        """Return the texts that the tools read, all of this moment, by name."""
        own = [name for name in self._more if name != PROCESSES]
        texts = {name: self._renderers[name]() for name in dict.fromkeys((*SNAPSHOT_FILES, *own))}
        if self._cpu_files is not None:
            texts |= self._cpu_files()
        if PROCESSES in self._more:
            memories = {mm.pid: mm for mm in self._vm.mms}
            for pid, process in sorted(self._system.processes.tasks.items()):
                texts |= render_process(process, memories.get(pid), version=self.version)
        return texts

    def _stat(self) -> str:
        if self._refresh is not None:
            self._refresh()
        return render_stat(self._cpus, self._system, btime_s=self._btime_s, version=self.version)

    def _diskstats(self) -> str:
        return render_diskstats(
            self._disks, self._partitions, now=self._now(), hz=self._hz, version=self.version
        )

    def _loadavg(self) -> str:
        load = self._load
        if load.avenrun != self._avenrun:  # They change every 5 s; a mail storm looks more often.
            self._avenrun = list(load.avenrun)
            self._averages = render_averages(self._avenrun)
        return f"{self._averages} {load.nr_running}/{load.nr_threads} {load.last_pid}\n"

    def _uptime(self) -> str:
        if self._refresh is not None:
            self._refresh()
        return render_uptime(self._now() - self._boot_ns, self._cpus, version=self.version)

    def _mdstat(self) -> str:
        return render_mdstat(self._arrays)

    def _meminfo(self) -> str:
        return render_meminfo(self._vm, self._swaps, version=self.version)

    def _vmstat(self) -> str:
        return render_vmstat(self._vm, version=self.version)

    def _slabinfo(self) -> str:
        return render_slabinfo(self._vm)

    def _dentry_state(self) -> str:
        return render_dentry_state(self._vm)

    def _inode_nr(self) -> str:
        return render_inode_nr(self._vm)

    def _inode_state(self) -> str:
        return render_inode_state(self._vm)

    def _read_swaps(self) -> str:
        return render_swaps(self._swaps, version=self.version)

    def _cpuinfo(self) -> str:
        return render_cpuinfo(self._cpu_model, self._clocks_khz, self._cores)
