"""zram: a block device in compressed memory, to swap to: [machine.zram.NAME].

Models: a device without a queue: who writes a page to it compresses it, who reads one decompresses
it, at once and on his own CPU. A slot that swap gives back frees its memory.
Theory: a fault that a disk serves in 1 ms costs 3 us here, of CPU time instead of I/O wait: no
%iowait, nobody in D. The memory is not free: who needs E bytes more than there are has c = E / (1 -
1.057 / r) of them here, in c x 1.057 / r of memory (zpool.py): with r = 2.7 1.6 E in 0.6 E; and W =
2.5 M at most of a memory M, when all that is left is compressed. With uses of W alike c / W of them
take 3 us, and 5 more for the page that goes instead.
Linux counterpart: drivers/block/zram/zram_drv.c (3.14: disksize_store and its like, mm_stat_show),
SWP_SYNCHRONOUS_IO (4.15, 0bcac06f27d7), swap_slot_free_notify; 3.14 to 6.18.
Invariants: a slot is stored at most once; a read finds its slot stored; a device is called zram and
a number.
From 4.15 on a page that is read comes alone, into no swap cache, and gives its slot back; before,
as from any device, with its neighbours (vm.page-cluster).
Left out: file systems on it; writing idle pages back to a disk (4.14), recompression (6.2),
deduplication. mem_limit bounds the slots that swap is given, where zram would fail the write and
swap keep the page: the same pages stay.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sim.block.bio import SECTOR, WRITE, Bio
from sim.block.genhd import BlockDevice
from sim.block.part_stat import DiskStats
from sim.component import Component, Described
from sim.mm.address_space import Vm
from sim.mm.compressors import (
    COMPRESSION,
    Compressor,
    check_algorithm,
    compressor_of,
    following,
)
from sim.mm.features import ZRAM_CHANGES, ZRAM_SINCE
from sim.mm.zpool import LOSS, PAGE_SIZE, Zpool
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking, Task
from sim.sched.version import changed_defaults
from sim.units import Value

PAGE_SECTORS: Final = 8
MAJOR: Final = 252  # register_blkdev(0): the first dynamic one beside device mapper's 253
_NAME: Final = re.compile(r"zram(\d+)")


@dataclass(frozen=True, kw_only=True)
class ZramParams:
    """What is written to disksize, comp_algorithm and mem_limit, and said to swapon."""

    size_bytes: int = param(
        dim="bytes",
        minimum=1 << 20,
        source="scenario",
        doc="what it holds, uncompressed (disksize)",
    )
    algorithm: str = param(
        "lzo",
        dim="text",
        source="drivers/block/zram/zram_drv.c",
        doc="how pages are compressed (comp_algorithm); left away: that of the release",
    )
    compress_ns: int | None = param(
        None,
        dim="time_ns",
        minimum=0,
        source=COMPRESSION,
        doc="time to compress a page; left away: the algorithm's",
    )
    decompress_ns: int | None = param(
        None,
        dim="time_ns",
        minimum=0,
        source=COMPRESSION,
        doc="time to decompress a page; left away: the algorithm's",
    )
    ratio: float | None = param(
        None,
        dim="number",
        minimum=1,
        maximum=100,
        source=COMPRESSION,
        doc="how many times smaller pages become; left away: as the algorithm does on average",
    )
    mem_limit_bytes: int = param(
        0,
        dim="bytes",
        minimum=0,
        source="Documentation/blockdev/zram.txt: none",
        doc="memory that it takes at most; 0: no limit",
    )
    priority: int = param(
        100,
        dim="count",
        minimum=-1,
        maximum=32767,
        source="zram-generator: swap-priority 100",
        doc="swapon -p: higher ones are filled first",
    )

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return the algorithm that a device of this kernel gets without a choice."""
        return changed_defaults(ZRAM_CHANGES, kernel)

    @classmethod
    def following(cls, values: Mapping[str, Any]) -> Mapping[str, tuple[Value, str]]:
        """Return times and ratio of the algorithm, where they are not given."""
        return following(str(values["algorithm"]), values)


class Machine(Protocol):
    """What zram asks of a machine."""

    vm: Vm
    devices: dict[str, BlockDevice]


@register(
    "component",
    "zram",
    params=ZramParams,
    since=ZRAM_SINCE,
    doc="swap in compressed memory, a device",
)
class Zrams(Component[ZramParams]):
    """[machine.zram.NAME]: modprobe zram, mkswap and swapon of each device."""

    named = True
    before = ("mount", "swap")

    def __init__(self, tables: Mapping[str, ZramParams]) -> None:
        super().__init__(tables)
        self.devices: list[Zram] = []

    @classmethod
    def examine(cls, described: Described, name: str, params: ZramParams) -> None:
        table = described.given("zram", name)
        if not _NAME.fullmatch(name):
            described.reading.error(
                table.place, f"zram device '{name}'", allowed="zram0, zram1, ..."
            )
        check_algorithm(described.reading, table, "algorithm")

    def init(self, machine: Machine) -> None:
        for name, params in self.tables.items():
            device = Zram(
                machine.vm,
                DiskStats(name, MAJOR, int(name.removeprefix("zram"))),
                params.size_bytes // PAGE_SIZE,
                compressor_of(
                    params.algorithm, params.compress_ns, params.decompress_ns, params.ratio
                ),
                params.mem_limit_bytes,
            )
            self.devices.append(device)
            machine.devices[name] = device

    def start(self, machine: Machine) -> None:
        for device, params in zip(self.devices, self.tables.values(), strict=True):
            extents = [(0, device.usable_pages())]
            machine.vm.swap.swapon(f"/dev/{device.name}", device, extents, params.priority, True)

    def files(self) -> dict[str, str]:
        """Return disksize and mm_stat, whose numbers are 8 wide, below /sys/block."""
        found = {}
        for device in self.devices:
            columns = (f"{number:>8}" for number in device.mm_stat())
            found[f"{device.name}/disksize"] = f"{device.capacity_sectors * SECTOR}\n"
            found[f"{device.name}/mm_stat"] = " ".join(columns) + "\n"
        return found

    def check(self) -> None:
        for device in self.devices:
            device.pool.check()
            assert device.pool.stored == sum(device.stored)


class Zram(BlockDevice):
    """One device; its pages are numbered from 0."""

    __slots__ = ("compressor", "mem_limit_bytes", "pool", "stored", "vm")

    def __init__(
        self,
        vm: Vm,
        stats: DiskStats,
        pages: int,
        compressor: Compressor,
        mem_limit_bytes: int,
    ) -> None:
        """``mem_limit_bytes`` is 0 where there is none."""
        super().__init__(stats, pages * PAGE_SECTORS)
        self.vm = vm
        self.compressor = compressor
        self.pool = Zpool(vm, compressor.ratio, LOSS)
        self.mem_limit_bytes = mem_limit_bytes
        self.stored: bytearray = bytearray(pages)
        self.rotational = False
        self.synchronous = True

    def usable_pages(self) -> int:
        """Return how many pages swap may have on it, the header too."""
        pages = len(self.stored)
        if not self.mem_limit_bytes:
            return pages
        while self.pool.pages_for(pages) * PAGE_SIZE > self.mem_limit_bytes:
            pages = pages * 63 // 64
        return pages

    def submit_bio(self, bio: Bio) -> bool:
        """Do it on the CPU of who asks; it ends right after."""
        pages = bio.nr_sectors // PAGE_SECTORS
        first = bio.sector // PAGE_SECTORS
        now = self.vm.calendar.now
        self.stats.start(bio.count, now)
        if bio.op == WRITE:
            cost_ns = pages * self.compressor.compress_ns
            for page in range(first, first + pages):
                self._store(page)
        else:
            cost_ns = pages * self.compressor.decompress_ns
            assert all(self.stored[first : first + pages])
        task = self.vm.sched.current
        if task is not None:
            task.charge_system(cost_ns)
        self.vm.calendar.post(cost_ns, self._end, bio)
        return True

    def _store(self, page: int) -> None:
        if not self.stored[page]:
            self.stored[page] = 1
            self.pool.store()

    def _end(self, bio: Bio) -> None:
        now = self.vm.calendar.now
        self.stats.done(bio.op, bio.count, bio.nr_sectors, 0, now)
        assert bio.end_io is not None
        bio.end_io(bio)

    def swap_slot_free_notify(self, slot: int) -> None:
        if self.stored[slot]:
            self.stored[slot] = 0
            self.pool.free()

    def get_request_wait(self, task: Task, bio: Bio) -> Blocking[None]:
        raise AssertionError("zram has no queue")

    def unplug(self) -> None:
        """Nothing is held back."""

    def congested(self, op: int) -> bool:
        return False

    def mm_stat(self) -> tuple[int, ...]:
        """Return the columns of /sys/block/zramN/mm_stat, bytes (pages of the last three)."""
        pool = self.pool
        return (
            pool.stored * PAGE_SIZE,
            pool.compressed_bytes,
            pool.pages * PAGE_SIZE,
            self.mem_limit_bytes,
            pool.pages_max * PAGE_SIZE,
            0,
            0,
            0,
        )
