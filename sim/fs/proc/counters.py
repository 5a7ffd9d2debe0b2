"""The counters that /proc shows, as what their owners must offer.

Linux counterpart: include/linux/kernel_stat.h, genhd.h, vmstat.h, swap.h.
Invariants: cumulative counters never decrease; times are int ns, `sectors` 512 B, `pages` 4 KiB.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class CpuTimes(Protocol):
    """Where one CPU's time went since boot (struct cpu_usage_stat); the states are disjoint."""

    user_ns: int
    nice_ns: int
    system_ns: int
    idle_ns: int
    iowait_ns: int
    irq_ns: int
    softirq_ns: int
    steal_ns: int


class DiskStats(Protocol):
    """The counters of one disk, partition or mapped device (struct disk_stats)."""

    name: str
    major: int
    minor: int
    reads: int
    read_merges: int
    read_sectors: int
    read_ns: int
    writes: int
    write_merges: int
    write_sectors: int
    write_ns: int
    in_flight: int
    io_ticks_ns: int
    time_in_queue_ns: int
    discards: int
    discard_merges: int
    discard_sectors: int
    discard_ns: int
    flushes: int
    flush_ns: int

    def update(self, now_ns: int) -> None:
        """Bring io_ticks_ns and time_in_queue_ns up to `now_ns` (part_round_stats)."""


class LoadAvg(Protocol):
    """The load averages (fixed point, 11 fraction bits) and the counts beside them."""

    avenrun: list[int]

    @property
    def nr_running(self) -> int:
        """Tasks running or runnable, the reader included."""

    @property
    def nr_threads(self) -> int:
        """Tasks that exist."""

    @property
    def last_pid(self) -> int:
        """The pid given out last."""


class Process(Protocol):
    """One process or kernel thread (struct task_struct)."""

    pid: int
    comm: str
    nice: int
    cpu: int
    start_ns: int
    utime_ns: int
    stime_ns: int

    @property
    def ppid(self) -> int:
        """The parent's pid."""

    @property
    def state_letter(self) -> str:
        """The state as ps prints it."""


class ProcessMemory(Protocol):
    """The memory of a process (struct mm_struct), in pages."""

    @property
    def pid(self) -> int:
        """Whose it is."""

    @property
    def total_pages(self) -> int:
        """Pages of address space in use."""

    @property
    def rss_pages(self) -> int:
        """Of these, in memory."""

    @property
    def swap_pages(self) -> int:
        """Of these, in swap alone."""


class ProcessTable(Protocol):
    """All processes by pid."""

    @property
    def tasks(self) -> Mapping[int, Process]:
        """Those that live, and zombies."""


class SystemCounters(Protocol):
    """The single counters of /proc/stat."""

    def update(self) -> None:
        """Bring the times of the CPUs up to now."""

    @property
    def nr_interrupts(self) -> int:
        """Interrupts of devices served since boot, all CPUs."""

    @property
    def tick_ns(self) -> int:
        """Time between two ticks of the timer: 1 / HZ."""

    @property
    def nr_switches(self) -> int:
        """Context switches since boot, all CPUs."""

    @property
    def total_forks(self) -> int:
        """Tasks created since boot."""

    @property
    def nr_running(self) -> int:
        """Tasks running or runnable now."""

    @property
    def nr_iowait(self) -> int:
        """Tasks asleep inside an I/O wait now."""

    @property
    def processes(self) -> ProcessTable:
        """The processes."""


class Watermarks(Protocol):
    """Pages of free memory below which reclaim begins, and at which it ends."""

    low: int
    high: int


class Slabs(Protocol):
    """Caches of dentries and inodes."""

    @property
    def nr_reclaimable(self) -> int:
        """Pages that reclaim may free; part of nr_slab."""

    def dentry_counts(self) -> tuple[int, int, int, int]:
        """Return the dentries there are and those unused, and inodes alike."""

    def rows(self) -> list[tuple[str, int, int, int, int, int, int]]:
        """Return each cache: name, objects, room for, bytes, objects and pages a slab, slabs."""


class VmEvents(Protocol):
    """Paging events since boot (vm_event_states)."""

    pgfree: int
    pgactivate: int
    pgdeactivate: int
    pgscan_kswapd: int
    pgscan_direct: int
    pgsteal_kswapd: int
    pgsteal_direct: int
    pageoutrun: int
    allocstall: int
    workingset_refault: int
    workingset_refault_anon: int
    oom_kills: int
    pgpgin_sectors: int
    pgpgout_sectors: int
    pgfault: int
    pgmajfault: int
    pswpin: int
    pswpout: int


class Programs(Protocol):
    """The memory of all programs."""

    @property
    def committed(self) -> int:
        """Pages that they may use (vm_committed_as), without tmpfs."""


class Vm(Protocol):
    """Page counts of now (vm_stat)."""

    @property
    def events(self) -> VmEvents:
        """Paging events."""

    @property
    def programs(self) -> Programs:
        """The memory of programs."""

    def update(self) -> None:
        """Bring pgpgin_sectors and pgpgout_sectors up to now."""

    @property
    def nr_total(self) -> int:
        """Pages that the kernel manages (totalram_pages)."""

    def zswapped(self) -> tuple[int, int]:
        """Return the pages that zswap takes, and those that it keeps in them."""

    @property
    def slabs(self) -> Slabs:
        """Memory of dentries and inodes."""

    @property
    def watermarks(self) -> Watermarks:
        """The marks of free memory, of the whole machine."""

    nr_free: int
    nr_file: int  # page cache, including buffers and tmpfs (NR_FILE_PAGES)
    nr_buffers: int  # of these: pages of block devices
    nr_shmem: int  # of these: pages of tmpfs
    nr_dirty: int
    nr_writeback: int
    nr_unstable: int
    nr_anon: int
    nr_slab: int

    @property
    def nr_unmapped(self) -> int:
        """Pages of nr_anon that are in no page table, but in the swap cache."""

    @property
    def nr_swap_cached(self) -> int:
        """Pages of nr_anon that have a slot in swap."""

    @property
    def nr_active_anon(self) -> int:
        """Programs' pages on the active list."""

    @property
    def commit_limit(self) -> int:
        """Pages that may be committed with vm.overcommit_memory 2."""

    @property
    def nr_active_file(self) -> int:
        """Pages of files on the active list."""

    @property
    def nr_inactive_file(self) -> int:
        """Pages of files on the inactive list."""

    @property
    def workingset_activate(self) -> int:
        """Pages activated when they came back."""


class SwapArea(Protocol):
    """One active swap area (struct swap_info_struct)."""

    path: str
    is_block: bool
    nr_pages: int
    nr_used: int
    prio: int
