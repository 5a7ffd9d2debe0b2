"""Counters with settable values, as the machine's parts offer them to /proc."""

from __future__ import annotations

from dataclasses import dataclass, field

from sim.fs.proc.procfs import ProcFs
from sim.fs.proc.root import (
    Clock,
    create_cpu_files,
    create_disk_files,
    create_memory_files,
    create_process_files,
)
from sim.sched.version import kernel_version

NS_PER_S = 1_000_000_000
NS_PER_TICK = 10_000_000


@dataclass
class Cpu:
    """CpuTimes."""

    user_ns: int = 0
    nice_ns: int = 0
    system_ns: int = 0
    idle_ns: int = 0
    iowait_ns: int = 0
    irq_ns: int = 0
    softirq_ns: int = 0
    steal_ns: int = 0


@dataclass
class Disk:
    """DiskStats; remembers when it was brought up to date."""

    name: str
    major: int = 8
    minor: int = 0
    reads: int = 0
    read_merges: int = 0
    read_sectors: int = 0
    read_ns: int = 0
    writes: int = 0
    write_merges: int = 0
    write_sectors: int = 0
    write_ns: int = 0
    in_flight: int = 0
    io_ticks_ns: int = 0
    time_in_queue_ns: int = 0
    flushes: int = 0
    flush_ns: int = 0
    discards: int = 0
    discard_merges: int = 0
    discard_sectors: int = 0
    discard_ns: int = 0
    updated_at: int = -1

    def update(self, now_ns: int) -> None:
        self.updated_at = now_ns


@dataclass
class Load:
    """LoadAvg."""

    avenrun: list[int] = field(default_factory=lambda: [0, 0, 0])
    nr_running: int = 1
    nr_threads: int = 100
    last_pid: int = 4321


@dataclass
class Process:
    """Process: a shell that has run for a while."""

    pid: int = 4000
    comm: str = "sh"
    nice: int = 5
    cpu: int = 1
    start_ns: int = 3 * NS_PER_S
    utime_ns: int = 125 * NS_PER_TICK // 10
    stime_ns: int = 37 * NS_PER_TICK // 10
    ppid: int = 1
    state_letter: str = "D"


@dataclass
class Processes:
    """ProcessTable."""

    tasks: dict[int, Process] = field(default_factory=dict)


@dataclass
class System:
    """SystemCounters."""

    nr_interrupts: int = 0
    nr_switches: int = 0
    total_forks: int = 0
    nr_running: int = 1
    nr_iowait: int = 0
    processes: Processes = field(default_factory=Processes)
    tick_ns: int = 4_000_000  # HZ 250

    def update(self) -> None:
        """Nothing is behind."""


@dataclass
class ProcessMemory:
    """ProcessMemory: that of the shell."""

    pid: int = 4000
    total_pages: int = 1_000
    rss_pages: int = 600
    swap_pages: int = 150


@dataclass
class Marks:
    """Watermarks."""

    low: int = 2_000
    high: int = 2_500


@dataclass
class Names:
    """Slabs, without any name in memory."""

    nr_reclaimable: int = 0

    def dentry_counts(self) -> tuple[int, int, int, int]:
        return 0, 0, 0, 0

    def rows(self) -> list[tuple[str, int, int, int, int, int, int]]:
        return []


@dataclass
class Memory:
    """Vm, of 1 GiB."""

    nr_total: int = 262_144
    watermarks: Marks = field(default_factory=Marks)
    nr_free: int = 100_000
    nr_file: int = 120_000
    nr_buffers: int = 20_000
    nr_shmem: int = 1_000
    nr_dirty: int = 300
    nr_writeback: int = 40
    nr_unstable: int = 0
    nr_anon: int = 30_000
    nr_unmapped: int = 0
    nr_swap_cached: int = 0
    nr_active_anon: int = 30_000
    committed: int = 266_388
    commit_limit: int = 655_101
    workingset_refault_anon: int = 0
    oom_kills: int = 0
    nr_slab: int = 10_000
    slabs: Names = field(default_factory=Names)

    @property
    def events(self) -> Memory:
        """The same object: tests name a count, whosoever it is."""
        return self

    @property
    def programs(self) -> Memory:
        """The same object."""
        return self

    def zswapped(self) -> tuple[int, int]:
        return 0, 0

    def update(self) -> None:
        """Nothing is behind."""

    pgpgin_sectors: int = 960
    pgpgout_sectors: int = 480
    nr_active_file: int = 0
    nr_inactive_file: int = 119_000
    pgfree: int = 0
    pgactivate: int = 0
    pgdeactivate: int = 0
    pgscan_kswapd: int = 0
    pgscan_direct: int = 0
    pgsteal_kswapd: int = 0
    pgsteal_direct: int = 0
    pageoutrun: int = 0
    allocstall: int = 0
    workingset_refault: int = 0
    workingset_activate: int = 0
    pgfault: int = 2_000
    pgmajfault: int = 12
    pswpin: int = 50
    pswpout: int = 25
    mms: tuple[ProcessMemory, ...] = ()


@dataclass
class Swap:
    """SwapArea."""

    path: str = "/dev/sdb1"
    is_block: bool = True
    nr_pages: int = 524_029
    nr_used: int = 236_388
    prio: int = -1


@dataclass
class Machine:
    """One of each, and a clock."""

    release: str = "6.1.0"
    hz: int = 250
    now_ns: int = 1_000 * NS_PER_S
    cpus: list[Cpu] = field(default_factory=lambda: [Cpu(), Cpu()])
    disks: list[Disk] = field(default_factory=list)
    partitions: frozenset[str] = frozenset()
    system: System = field(default_factory=System)
    load: Load = field(default_factory=Load)
    memory: Memory = field(default_factory=Memory)
    swaps: list[Swap] = field(default_factory=list)

    def proc(self) -> ProcFs:
        """Return this machine's /proc."""
        clock = Clock(
            version=kernel_version(self.release),
            hz=self.hz,
            now=lambda: self.now_ns,
            btime_s=1_242_277_200,
        )
        proc = ProcFs()
        clocks_khz = [2_400_000] * len(self.cpus)
        create_cpu_files(proc, clock, self.cpus, self.system, self.load, clocks_khz)
        create_memory_files(proc, clock, self.memory, self.swaps)
        create_disk_files(proc, clock, self.disks, self.partitions)
        create_process_files(proc, clock, self.system, self.memory.mms)
        return proc
