"""The sysctls of memory management and the CPU costs of its paths.

Models: /proc/sys/vm and what the page cache's code costs.
Linux counterpart: mm/page-writeback.c, mm/page_alloc.c (sysctl tables: kernel/sysctl.c).
Invariants: frozen; the declared defaults are 2.6.16's; features.py has what a release changes.
Left out: highmem. What read() and write() cost besides is sim.fs's to charge.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sim.mm.features import VM_CHANGES
from sim.param import param
from sim.sched.version import changed_defaults
from sim.units import Value

PAGE_SIZE: Final = 4096


@dataclass(frozen=True, kw_only=True)
class VmParams:
    """Sysctls and costs; time in ns, memory in bytes."""

    dirty_background_ratio: float = param(
        10,
        dim="percent",
        minimum=0,
        maximum=100,
        source="mm/page-writeback.c 2.6.16: dirty_background_ratio",
        doc="dirty share of memory above which writeback starts in the background",
    )
    dirty_ratio: float = param(
        40,
        dim="percent",
        minimum=0,
        maximum=100,
        source="mm/page-writeback.c 2.6.16: vm_dirty_ratio",
        doc="dirty share of memory above which writers are held back",
    )
    dirty_background_limit_bytes: int = param(
        0,
        dim="bytes",
        minimum=0,
        source="mm/page-writeback.c 2.6.29: vm.dirty_background_bytes",
        doc="dirty memory above which writeback starts; 0: dirty_background_ratio says it",
    )
    dirty_limit_bytes: int = param(
        0,
        dim="bytes",
        minimum=0,
        source="mm/page-writeback.c 2.6.29: vm.dirty_bytes",
        doc="dirty memory above which writers are held back; 0: dirty_ratio says it",
    )
    dirty_expire_ns: int = param(
        "30 s",
        dim="time_ns",
        minimum=0,
        source="mm/page-writeback.c 2.6.16: dirty_expire_centisecs 3000",
        doc="dirty data older than this is written by the periodic pass",
    )
    dirty_writeback_ns: int = param(
        "5 s",
        dim="time_ns",
        minimum=0,
        source="mm/page-writeback.c 2.6.16: dirty_writeback_centisecs 500",
        doc="period of the pass over old dirty data; 0 switches it off",
    )
    min_free_bytes: int = param(
        0,
        dim="bytes",
        minimum=0,
        source="mm/page_alloc.c: init_per_zone_pages_min",
        doc="reserve of free memory; 0: computed from the size of memory",
    )
    kernel_bytes: int = param(
        "96 MiB",
        dim="bytes",
        minimum=0,
        source="assumed: 'Slab' in /proc/meminfo of small servers is 50 to 150 MiB",
        doc="slab and other memory of the kernel; dentries and inodes beyond a quarter come on top",
    )
    vfs_cache_pressure: int = param(
        100,
        dim="count",
        minimum=0,
        source="fs/dcache.c 2.6.0: sysctl_vfs_cache_pressure",
        doc="how readily dentries and inodes go, pages: 100; 0: never (vm.vfs_cache_pressure)",
    )
    page_add_ns: int = param(
        "600 ns",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: allocating, inserting into radix tree and LRU, about 1500 cycles",
        doc="bringing one new page into the page cache",
    )
    page_write_ns: int = param(
        "500 ns",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: tag changes, building a bio and ending writeback, about 1200 cycles",
        doc="writing one page back, apart from the block layer",
    )
    page_scan_ns: int = param(
        "300 ns",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: isolating and freeing a clean page, about 1000 cycles",
        doc="looking at one page, dentry or inode in reclaim",
    )
    fault_ns: int = param(
        "700 ns",
        dim="time_ns",
        minimum=0,
        source="assumed: trap, page table, and clearing 4 KiB at 10 GB/s",
        doc="first use of one page of a program's own memory",
    )
    remote_page_ns: int = param(
        "500 ns",
        dim="time_ns",
        minimum=0,
        source="assumed: 4 KiB over the link between two sockets, at half of the local rate",
        doc="copying a page that lies on another node, beyond copying it on the own one",
    )
    contended_page_ns: int = param(
        0,
        dim="time_ns",
        minimum=0,
        source="assumed: locks are free on a machine of few CPUs",
        doc="adding a page in a write, for each other task that runs on the same node (lru_lock)",
    )
    read_ahead_bytes: int = param(
        0,
        dim="bytes",
        minimum=0,
        key="read_ahead",
        source="include/linux/mm.h: VM_MAX_READAHEAD, 128 KiB; arrays: by their stripes",
        doc="read-ahead of every disk at most (queue/read_ahead_kb); 0: the device's own",
    )
    write_bandwidth_bytes_per_s: float = param(
        "104.8576 MB/s",
        dim="bytes_per_s",
        minimum=1,
        key="write_bandwidth",
        source="mm/backing-dev.c 3.2: INIT_BW, 100 MiB/s",
        doc="estimate of every device's write rate and of its dirty_ratelimit when the run begins",
    )
    swappiness: int = param(
        60,
        dim="count",
        minimum=0,
        maximum=200,
        source="mm/vmscan.c: vm_swappiness",
        doc="how readily programs' pages go to swap rather than file pages (vm.swappiness)",
    )
    page_cluster: int = param(
        3,
        dim="count",
        minimum=0,
        maximum=10,
        source="mm/swap.c: swap_setup, from 16 MiB on",
        doc="read-ahead from swap at most, as a power of two (vm.page-cluster)",
    )
    overcommit_memory: int = param(
        0,
        dim="count",
        minimum=0,
        maximum=2,
        source="mm/mmap.c: sysctl_overcommit_memory",
        doc="0: obvious overcommits of memory are refused, 1: none, 2: all (vm.overcommit_memory)",
    )
    overcommit_ratio: float = param(
        50,
        dim="percent",
        minimum=0,
        source="mm/mmap.c: sysctl_overcommit_ratio",
        doc="share of memory beside swap that may be promised with overcommit_memory 2",
    )
    numa_nodes: int = param(
        1,
        dim="count",
        minimum=1,
        maximum=64,
        source="scenario",
        doc="memory nodes, each with its part of memory and of the CPUs",
    )

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return what differs from 2.6.16 in this release, each with its source."""
        return changed_defaults(VM_CHANGES, kernel)
