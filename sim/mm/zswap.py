"""zswap: compressed memory in front of the swap devices: [machine.zswap].

Models: a page on its way to its slot is compressed and kept; the slot stays empty on the device. A
fault finds it there. Where the pool is full, by release:
- to 5.5 who swaps out first writes the oldest kept page to its slot, then has his own kept
- from 5.6 on pages go to the device past the pool, until a worker has written so many of the oldest
  that it is below accept_threshold_percent (45190f01dd40); to 6.3 one for each page refused
A pool of zsmalloc could not write pages out to 6.1 (9997bc017549): then what is kept stays, however
old, and all that is newer goes to the device.
Theory: the pool takes up to p of the memory M, and so holds p x r x M, r being at most 2 with zbud,
3 with z3fold: a fifth of 2 GiB at 2 is 800 MiB. A set that exceeds memory by E needs E / (1 - 1/r)
kept, as with zram.py, while that is less than p x r x M: no page goes to the device at all. Beyond
it the device serves the share of faults whose pages are the coldest.
Linux counterpart: mm/zswap.c (zswap_store, zswap_load, zswap_writeback_entry, shrink_worker,
module_param_cb, zswap_debugfs_init), 3.11 to 6.18; mm/zbud.c, mm/z3fold.c.
Invariants: a slot is kept at most once; what is kept is not read from the device.
Left out: pages of one repeated word; the page that writing back needs for a moment; loads that give
the kept copy up (6.1, an option; 6.8); memory cgroups' limits (zswap.max); the shrinker (6.8, off).
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sim.block.bio import WRITE, Bio
from sim.component import Component, Described, GivenTable
from sim.mm.address_space import Vm
from sim.mm.compressors import (
    COMPRESSION,
    check_algorithm,
    compressor_of,
    following,
)
from sim.mm.features import ZSWAP_CHANGES, ZSWAP_SINCE, features
from sim.mm.swapfile import SwapArea
from sim.mm.zpool import LOSS, PAGE_SIZE, Zpool
from sim.param import param
from sim.registry import Entry, register
from sim.sched.task import Blocking, Task
from sim.sched.version import changed_defaults
from sim.sched.workqueue import Workqueue
from sim.units import Value

PAGE_SECTORS: Final = 8
PACKED: Final = {"zbud": 2.0, "z3fold": 3.0}  # compressed pages in a page, at most
AREA_SHIFT: Final = 40
SLOT_MASK: Final = (1 << AREA_SHIFT) - 1
FORGET_AT: Final = 1 << 16  # places of the queue that were passed, until these are let go


@dataclass(frozen=True, kw_only=True)
class ZswapParams:
    """/sys/module/zswap/parameters: how much of memory, and how it is compressed."""

    max_pool_percent: int = param(
        20,
        dim="count",
        minimum=1,
        maximum=100,
        source="mm/zswap.c 3.11: zswap_max_pool_percent",
        doc="share of memory that the pool takes at most",
    )
    accept_threshold_percent: int = param(
        90,
        dim="count",
        minimum=1,
        maximum=100,
        source="mm/zswap.c 5.6: zswap_accept_thr_percent (45190f01dd40)",
        doc="share of this below which a pool that was full takes pages again (5.6 on)",
    )
    compressor: str = param(
        "lzo",
        dim="text",
        choices=("lzo", "lz4", "zstd", "lzo-rle"),
        source="mm/zswap.c: ZSWAP_COMPRESSOR_DEFAULT",
        doc="how pages are compressed",
    )
    zpool: str = param(
        "zbud",
        dim="text",
        choices=("zbud", "z3fold", "zsmalloc"),
        source="mm/zswap.c: ZSWAP_ZPOOL_DEFAULT",
        doc="how they are packed: two in a page, three, or by size",
    )
    compress_ns: int | None = param(
        None,
        dim="time_ns",
        minimum=0,
        source=COMPRESSION,
        doc="time to compress a page; left away: the compressor's",
    )
    decompress_ns: int | None = param(
        None,
        dim="time_ns",
        minimum=0,
        source=COMPRESSION,
        doc="time to decompress a page; left away: the compressor's",
    )
    ratio: float | None = param(
        None,
        dim="number",
        minimum=1,
        maximum=100,
        source=COMPRESSION,
        doc="how many times smaller pages become; left away: as the compressor does on average;"
        " at most 2 in zbud, 3 in z3fold",
    )

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return what differs in this release, each with its source."""
        return changed_defaults(ZSWAP_CHANGES, kernel)

    @classmethod
    def following(cls, values: Mapping[str, Any]) -> Mapping[str, tuple[Value, str]]:
        """Return times and ratio of the compressor, where they are not given."""
        return following(str(values["compressor"]), values)


class Machine(Protocol):
    """What zswap asks of a machine."""

    vm: Vm


@register(
    "component",
    "zswap",
    params=ZswapParams,
    since=ZSWAP_SINCE,
    doc="compressed memory in front of swap",
)
class ZswapModule(Component[ZswapParams]):
    """[machine.zswap]: zswap.enabled=1 on the kernel's command line, and its other parameters."""

    def __init__(self, tables: Mapping[str, ZswapParams]) -> None:
        super().__init__(tables)
        self.zswap: Zswap | None = None

    @classmethod
    def read(
        cls, described: Described, entry: Entry, tables: Sequence[GivenTable]
    ) -> dict[str, ZswapParams | None]:
        for _, table, _ in tables:
            check_algorithm(described.reading, table, "compressor")
        return super().read(described, entry, tables)

    @classmethod
    def examine(cls, described: Described, name: str, params: ZswapParams) -> None:
        reading = described.reading
        table = described.given("zswap")
        too_old = reading.version is not None and not features(reading.version).z3fold
        if params.zpool == "z3fold" and too_old:
            reading.error(
                table.place_of("zpool"),
                f"Linux {reading.kernel} has no z3fold",
                allowed="zbud, zsmalloc",
            )

    def init(self, machine: Machine) -> None:
        self.zswap = machine.vm.swap.zswap = Zswap(machine.vm, self.params)

    def files(self) -> dict[str, str]:
        """Return the files below /sys/module and /sys/kernel/debug."""
        if self.zswap is None:
            return {}
        params = self.params
        values = {
            "enabled": "Y",
            "compressor": params.compressor,
            "zpool": params.zpool,
            "max_pool_percent": params.max_pool_percent,
            "accept_threshold_percent": params.accept_threshold_percent,
        }
        found = {f"zswap/parameters/{name}": f"{value}\n" for name, value in values.items()}
        counters = self.zswap.counters().items()
        return found | {f"zswap/{name}": f"{value}\n" for name, value in counters}


class Zswap:
    """The pool and what is in it."""

    def __init__(self, vm: Vm, params: ZswapParams) -> None:
        self.vm = vm
        self.params = params
        self.compressor = compressor_of(
            params.compressor, params.compress_ns, params.decompress_ns, params.ratio
        )
        ratio = self.compressor.ratio
        most = PACKED.get(params.zpool)
        loss = LOSS if most is None else 0.0
        self.pool = Zpool(vm, ratio if most is None else min(ratio, most), loss)
        self.writes_back: bool = most is not None or vm.features.zsmalloc_writes
        self.reached_full: bool = False
        self.pool_limit_hit: int = 0
        self.written_back_pages: int = 0
        self._kept: dict[SwapArea, bytearray] = {}  # by slot
        self._queue: array[int] = array("Q")  # oldest first; what was freed since is passed over
        self._head: int = 0
        self._worker: Workqueue | None = None

    @property
    def limit_pages(self) -> int:
        """Return the memory that the pool may take."""
        return self.vm.nr_total * self.params.max_pool_percent // 100

    def add_area(self, area: SwapArea) -> None:
        """Stand in front of an area (zswap_swapon)."""
        self._kept[area] = bytearray(area.nr_slots)
        area.zswap = self

    # --- pages on their way out and in

    def store(self, task: Task, area: SwapArea, slot: int) -> Blocking[bool]:
        """Keep a page, if there is room or can be made; return whether it is kept."""
        if not (yield from self._make_room(task)):
            self.invalidate(area, slot)
            return False
        task.charge_system(self.compressor.compress_ns)
        kept = self._kept[area]
        if not kept[slot]:
            kept[slot] = 1
            self.pool.store()
        self._queue.append(area.number << AREA_SHIFT | slot)
        return True

    def load(self, task: Task, area: SwapArea, slot: int) -> bool:
        """Return whether a page is kept, and charge for making it whole."""
        if not self._kept[area][slot]:
            return False
        task.charge_system(self.compressor.decompress_ns)
        return True

    def invalidate(self, area: SwapArea, slot: int) -> None:
        """Let a page go whose slot is free, or gets another one (zswap_invalidate)."""
        kept = self._kept[area]
        if kept[slot]:
            kept[slot] = 0
            self.pool.free()

    # --- a full pool

    def _make_room(self, task: Task) -> Blocking[bool]:
        """Return whether a page more may come in."""
        if not self.vm.features.accept_threshold:
            if self.pool.pages <= self.limit_pages:
                return True
            self.pool_limit_hit += 1
            return self.writes_back and (yield from self._write_back_oldest(task))
        if self.pool.pages > self.limit_pages:
            self.pool_limit_hit += 1
            self.reached_full = True
        elif self.reached_full:
            self.reached_full = not self._can_accept()
        if self.reached_full and self.writes_back:
            self._wake_worker()
        return not self.reached_full

    def _can_accept(self) -> bool:
        threshold = self.limit_pages * self.params.accept_threshold_percent // 100
        return self.pool.pages <= threshold

    def _wake_worker(self) -> None:
        if self._worker is None:
            self._worker = Workqueue(self.vm.sched, "kworker/zswap", 1)
        self._worker.queue(self._shrink)

    def _shrink(self, task: Task) -> Blocking[None]:
        """Write the oldest (shrink_worker)."""
        while not self._can_accept():
            written = yield from self._write_back_oldest(task)
            if not written or not self.vm.features.zswap_worker_goes_on:
                break
            yield from task.cond_resched()

    def _write_back_oldest(self, task: Task) -> Blocking[bool]:
        """Write the page kept longest to its slot, and let it go (zswap_writeback_entry)."""
        found = self._take_oldest()
        if found is None:
            return False
        area, slot = found
        task.charge_system(self.compressor.decompress_ns)
        self.invalidate(area, slot)
        self.written_back_pages += 1
        [(sector, _)] = area.sectors(slot, 1)
        bio = Bio(WRITE, sector, PAGE_SECTORS, _written, None, 1, 0, task.pid)
        yield from area.device.submit(task, bio)
        return True

    def _take_oldest(self) -> tuple[SwapArea, int] | None:
        queue = self._queue
        areas = self.vm.swap.by_number
        while self._head < len(queue):
            entry = queue[self._head]
            self._head += 1
            area, slot = areas[entry >> AREA_SHIFT], entry & SLOT_MASK
            if self._kept[area][slot]:
                self._forget_passed()
                return area, slot
        return None

    def _forget_passed(self) -> None:
        if self._head >= FORGET_AT:
            del self._queue[: self._head]
            self._head = 0

    # --- what it tells

    def zswapped(self) -> tuple[int, int]:
        """Return the pages that the pool takes, and those that it keeps in them."""
        return self.pool.pages, self.pool.stored

    def counters(self) -> dict[str, int]:
        """Return what /sys/kernel/debug/zswap shows."""
        return {
            "pool_limit_hit": self.pool_limit_hit,
            "pool_total_size": self.pool.pages * PAGE_SIZE,
            "stored_pages": self.pool.stored,
            "written_back_pages": self.written_back_pages,
        }

    def check(self) -> None:
        """Assert the invariants of the file's opening lines."""
        self.pool.check()
        assert self.pool.stored == sum(sum(kept) for kept in self._kept.values())
        for area, kept in self._kept.items():
            assert sum(kept) <= area.nr_used


def _written(bio: Bio) -> None:
    """Nobody waits for it."""
