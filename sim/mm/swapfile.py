"""Swap areas: which slot a page gets, and which area its slot is in: [machine.swap.NAME].

Models: areas with priorities: the highest is filled first, equal ones in turn. An area gives slots
in clusters of 256: the free slots of one to its end, so that pages that go out together lie
together, then those of the next.
Of each slot is known whose it is (the chunk, anon.py) and whether its page is in memory as well.
Clusters: never used, empty again, or in use with room (nonfull). Who has filled one takes, by
release:
- to 3.11, and to 6.13 where the device has heads to move: the empty cluster nearest the beginning
  (scan_swap_map); none left, the first free slots of used ones
- on flash from 3.12 on (2a8f94493432), everywhere from 6.14 on: first those never used, then
  the empty one that has waited longest; none left, the nonfull ones in turn
- from 6.18 on: a nonfull one in turn, and an empty one only if there is none
Theory: pages that go out together lie in one run while empty clusters are taken, whatever was freed
meanwhile. Where nonfull ones come first a run is as long as the gaps are: of clusters of which a
share u of the slots is in use, freed at random, the gaps are 1 / u slots long.
Read-ahead: the window around the next fault is made from the pages read ahead that were used since
the last (mm/swap_state.c: swapin_nr_pages, 3.14, 579f82901f6f).
Linux counterpart: mm/swapfile.c: get_swap_page, scan_swap_map_try_ssd_cluster (3.12),
cluster_alloc_swap_entry (6.12; "prefer nonfull over free clusters", 6.18), scan_swap_map,
swap_free, sys_swapon (2.6.16 to 6.5), struct swap_info_struct.
Invariants (``check()``): an area's nr_used is the number of its owned slots; slot 0, the header, is
never given. An area is a device that nothing else uses, or a file on a file system with a device;
such a file is there in full before the run.
A cluster is in one place: never used, empty, nonfull, or (full, or being filled) none.
Left out: a cluster for each CPU on flash; fragment lists, of which single pages need none; a window
of read-ahead for each region (4.14): there is one for the machine; discard; bad slots; swapon of
new areas in a run; encrypted swap.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol, TypeAlias

from sim.block.bio import SECTOR
from sim.block.genhd import BlockDevice
from sim.component import Component, Described
from sim.mm.anon import Chunk, MmStruct
from sim.mm.compressors import Compressor
from sim.mm.features import Features
from sim.mm.params import PAGE_SIZE
from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking, Task
from sim.toml.errors import unknown
from sim.units import rough_bytes

SWAPFILE_CLUSTER: Final = 256  # slots, mm/swapfile.c
PAGE_SECTORS: Final = 8
AREA_SHIFT: Final = 40
CLUSTER_MASK: Final = (1 << AREA_SHIFT) - 1
RESIDENT: Final = 1  # in an owner's entry: its page is in memory too
Entry = tuple["SwapArea", int]  # an area and a slot of it
Extents: TypeAlias = list[tuple[int, int]]  # first page of a device (of 4 KiB), pages
ROOM_SHARE: Final = 0.9  # of a device, for files: the rest is inode tables and a journal
LOWEST: Final = 0
IN_TURN: Final = 1
NONFULL_FIRST: Final = 2


class Frontswap(Protocol):
    """What may keep pages in memory in front of swap (frontswap_ops, include/linux/frontswap.h)."""

    compressor: Compressor

    def add_area(self, area: SwapArea) -> None:
        """Stand in front of an area."""

    def store(self, task: Task, area: SwapArea, slot: int) -> Blocking[bool]:
        """Keep the page of a slot; return whether it is kept."""

    def load(self, task: Task, area: SwapArea, slot: int) -> bool:
        """Return whether the page of a slot is kept, and charge for it."""

    def invalidate(self, area: SwapArea, slot: int) -> None:
        """Let the page of a slot go."""

    def zswapped(self) -> tuple[int, int]:
        """Return the pages that it takes, and those that it keeps in them."""

    def check(self) -> None:
        """Assert what must always hold."""


@dataclass(frozen=True, kw_only=True)
class SwapParams:
    """A swap area: a device, or a file of a size on a mounted file system."""

    device: str | None = param(
        None, dim="text", source="scenario", doc="disk, partition, array or volume that it is"
    )
    file: str | None = param(None, dim="text", source="scenario", doc="or the file that it is")
    size_bytes: int | None = param(
        None,
        dim="bytes",
        source="scenario",
        doc="its size; all of a device if left away",
        minimum=65536,
    )
    priority: int | None = param(
        None,
        dim="count",
        source="swapon -p; left away: below all others, in order",
        minimum=-1,
        maximum=32767,
        doc="higher ones are filled first, equal ones in turn",
    )


class Memory(Protocol):
    """What swap areas ask of a machine's memory."""

    swap: Swap


class Machine(Protocol):
    """What swap areas ask of a machine."""

    @property
    def vm(self) -> Memory:
        """Its memory."""

    devices: dict[str, BlockDevice]

    def swap_file(self, path: str, pages: int) -> tuple[BlockDevice, Extents]:
        """Make a file, keep it open, and return where it lies."""


@register("component", "swap", params=SwapParams, doc="a swap area")
class SwapAreas(Component[SwapParams]):
    """[machine.swap.NAME]: swapon -a, in the order of the description."""

    named = True
    after = ("mount", "zswap")

    @classmethod
    def examine(cls, described: Described, name: str, params: SwapParams) -> None:
        table = described.given("swap", name)
        if (params.device is None) == (params.file is None):
            message = f"swap '{name}' needs either 'device' or 'file'"
            described.reading.error(table.place, message)
        elif params.file is not None:
            cls._check_file(described, name, params, params.file)
        else:
            cls._check_device(described, name, params, str(params.device))

    @classmethod
    def _check_file(cls, described: Described, name: str, params: SwapParams, file: str) -> None:
        """Note a swap file without a size, too large, or on a file system without a device."""
        reading = described.reading
        place = described.given("swap", name).place_of("file")
        if params.size_bytes is None:
            reading.error(place, f"swap file {file} lacks 'size'")
        mount = described.mount_of(file)
        if not file.startswith("/") or mount is None or mount.device is None:
            mounts = described.mounts.items()
            disks = [where for where, one in mounts if one and one.device is not None]
            message = f"swap file {file} lies on no file system with a device"
            reading.error(place, message, allowed=", ".join(disks) or "none is mounted")
            return
        whole = described.sizes.get(mount.device)
        if whole is None or params.size_bytes is None:
            return
        room = int(whole * ROOM_SHARE)
        if params.size_bytes > room:
            reading.error(
                place,
                f"swap '{name}': no room for {file}",
                given=rough_bytes(params.size_bytes),
                allowed=f"up to {rough_bytes(room)} on {mount.path}",
            )

    @classmethod
    def _check_device(
        cls, described: Described, name: str, params: SwapParams, device: str
    ) -> None:
        """Note a device that is none, is used already, or is smaller than the area."""
        reading = described.reading
        place = described.given("swap", name).place_of("device")
        if device not in described.sizes:
            reading.problems.append(unknown(place, "device", device, described.sizes))
            return
        mounts = described.mounts.items()
        users = [f"mounted on {where}" for where, one in mounts if one and one.device == device]
        for other, area in described.tables["swap"].items():
            if other == name:
                break
            if area is not None and area.device == device:
                users.append(f"swap '{other}'")
        if users:
            reading.error(place, f"{device} is {users[0]} already")
        described.is_free(place, device)
        whole = described.sizes[device]
        if params.size_bytes is not None and whole is not None and params.size_bytes > whole:
            message = f"swap '{name}' is larger than {device}"
            reading.error(place, message, allowed=f"up to {rough_bytes(whole)}")

    def start(self, machine: Machine) -> None:
        for params in self.tables.values():
            device, extents = self._place_of(params, machine)
            path = f"/dev/{params.device}" if params.file is None else params.file
            device.hold()
            machine.vm.swap.swapon(path, device, extents, params.priority, params.file is None)

    def _place_of(self, params: SwapParams, machine: Machine) -> tuple[BlockDevice, Extents]:
        if params.file is None:
            device = machine.devices[str(params.device)]
            whole = device.capacity_sectors * SECTOR
            size = whole if params.size_bytes is None else min(params.size_bytes, whole)
            return device, [(0, size // PAGE_SIZE)]
        assert params.size_bytes is not None, "checked when the scenario was read"
        return machine.swap_file(params.file, params.size_bytes // PAGE_SIZE)


def order_of(release: Features, rotational: bool) -> int:
    """Return in which order a release fills the clusters of a device."""
    if release.nonfull_first:
        return NONFULL_FIRST
    if not release.cluster_lists or (rotational and not release.one_allocator):
        return LOWEST
    return IN_TURN


class SwapClusters:
    """The clusters of an area that are not full."""

    __slots__ = ("_empty", "_nonfull", "_number", "_order", "_unused")

    def __init__(self, order: int, number: int) -> None:
        self._order = order
        self._number = number
        self._unused: int = 0  # never used, from here on
        self._empty: dict[int, None] = {}  # again
        self._nonfull: dict[int, None] = {}

    def has_room(self, cluster: int) -> None:
        """Note that slots of a used cluster are free."""
        self._nonfull[cluster] = None

    def is_empty(self, cluster: int) -> None:
        """Note that all of its slots are free again."""
        self._nonfull.pop(cluster, None)
        self._empty[cluster] = None

    def next(self) -> int:
        """Take a cluster; return -1 if all are full."""
        if self._order == NONFULL_FIRST and self._nonfull:
            return _take(self._nonfull, next(iter(self._nonfull)))
        if self._order == LOWEST and self._empty:
            return _take(self._empty, min(self._empty))
        if self._unused < self._number:
            self._unused += 1
            return self._unused - 1
        for clusters in (self._empty, self._nonfull):
            if clusters:
                first = min(clusters) if self._order == LOWEST else next(iter(clusters))
                return _take(clusters, first)
        return -1


def _take(clusters: dict[int, None], cluster: int) -> int:
    del clusters[cluster]
    return cluster


class SwapRa:
    """How useful read-ahead was (3.14 on)."""

    __slots__ = ("hits", "last_pages", "last_slot")

    def __init__(self) -> None:
        self.hits: int = 4  # atomic_set(&swapin_readahead_hits, 4)
        self.last_pages: int = 0
        self.last_slot: int = -2

    def window(self, slot: int, most: int) -> int:
        """Return how many pages to read around a slot (__swapin_nr_pages)."""
        pages = self.hits + 2
        if pages == 2:
            if abs(slot - self.last_slot) != 1:
                pages = 1
        else:
            pages = max(4, 1 << (pages - 1).bit_length())
        pages = max(min(pages, most), self.last_pages // 2)
        self.hits = 0
        self.last_slot = slot
        self.last_pages = pages
        return pages


class SwapArea:
    """One area (struct swap_info_struct); it is /proc/swaps' row as well."""

    def __init__(
        self,
        number: int,
        path: str,
        device: BlockDevice,
        extents: list[tuple[int, int]],
        prio: int,
        is_block: bool,
        order: int,
    ) -> None:
        """``extents`` are (first page of the device, pages), in order of slots."""
        self.number = number
        self.path = path
        self.device = device
        self.extents = extents
        self.prio = prio
        self.is_block = is_block
        self.nr_slots: int = sum(pages for _, pages in extents)  # with the header
        self.nr_pages: int = self.nr_slots - 1
        self.nr_used: int = 0
        self.zswap: Frontswap | None = None  # compressed memory before it
        self.owners: dict[int, array[int]] = {}  # of clusters in use, by slot; 0 is free
        self._used_in: dict[int, int] = {}  # slots used, of clusters in use
        clusters = -(-self.nr_slots // SWAPFILE_CLUSTER)
        self._clusters = SwapClusters(order, clusters)
        self._cluster: int = self._clusters.next()  # being filled
        self._slot: int = 1  # next of it
        self._end: int = min(SWAPFILE_CLUSTER, self.nr_slots)  # of the stretch it may give

    def take(self, chunk: Chunk, limit: int) -> tuple[int, int]:
        """Give up to ``limit`` adjoining slots to pages of a chunk; return (first, how many)."""
        if self._slot >= self._end:
            self._choose_stretch()
        first = self._slot
        count = min(limit, self._end - first)
        if count <= 0:
            return first, 0
        self._slot += count
        cluster = first // SWAPFILE_CLUSTER
        owners = self.owners.get(cluster)
        if owners is None:
            owners = self.owners[cluster] = array("I", bytes(4 * SWAPFILE_CLUSTER))
        value = chunk.number << 1 | RESIDENT
        at = first % SWAPFILE_CLUSTER
        for index in range(at, at + count):
            assert not owners[index]
            owners[index] = value
        self._used_in[cluster] = self._used_in.get(cluster, 0) + count
        self.nr_used += count
        key = self.number << AREA_SHIFT | cluster
        chunk.kept_slots[key] = chunk.kept_slots.get(key, 0) + count
        return first, count

    def _choose_stretch(self) -> None:
        """Go on in the current cluster, then in the next."""
        low = self._end
        if self._cluster < 0:  # It was full.
            self._cluster = self._clusters.next()
            low = self._cluster * SWAPFILE_CLUSTER
        while self._cluster >= 0:
            self._slot, self._end = self._free_stretch(self._cluster, low)
            if self._slot < self._end:
                return
            self._leave(self._cluster)
            self._cluster = self._clusters.next()
            low = self._cluster * SWAPFILE_CLUSTER
        self._slot = self._end = 0

    def _free_stretch(self, cluster: int, low: int) -> tuple[int, int]:
        """Return the first free stretch of a cluster from a slot on (start, end), if any."""
        start = cluster * SWAPFILE_CLUSTER
        stop = min(start + SWAPFILE_CLUSTER, self.nr_slots)
        low = max(low, start, 1)
        owners = self.owners.get(cluster)
        if owners is None:
            return low, stop
        while low < stop and owners[low - start]:
            low += 1
        high = low
        while high < stop and not owners[high - start]:
            high += 1
        return low, high

    def _leave(self, cluster: int) -> None:
        """Have a cluster that was being filled among the others again, if it is not full."""
        used = self._used_in.get(cluster, 0)
        start = cluster * SWAPFILE_CLUSTER
        if not used:
            self._forget(cluster)
        elif used < min(SWAPFILE_CLUSTER, self.nr_slots - start) - (cluster == 0):
            self._clusters.has_room(cluster)

    def _forget(self, cluster: int) -> None:
        self._used_in.pop(cluster, None)
        self.owners.pop(cluster, None)
        self._clusters.is_empty(cluster)

    def free(self, slot: int) -> None:
        """Take a slot back (swap_free)."""
        cluster = slot // SWAPFILE_CLUSTER
        owners = self.owners[cluster]
        assert owners[slot % SWAPFILE_CLUSTER]
        owners[slot % SWAPFILE_CLUSTER] = 0
        self.nr_used -= 1
        self.device.swap_slot_free_notify(slot)
        if self.zswap is not None:
            self.zswap.invalidate(self, slot)
        left = self._used_in[cluster] = self._used_in[cluster] - 1
        if cluster != self._cluster:
            if left:
                self._clusters.has_room(cluster)
            else:
                self._forget(cluster)

    def sectors(self, slot: int, count: int) -> list[tuple[int, int]]:
        """Return where adjoining slots lie on the device: (first sector, pages)."""
        found: list[tuple[int, int]] = []
        at = 0
        for first, pages in self.extents:
            low, high = max(slot, at), min(slot + count, at + pages)
            if low < high:
                found.append(((first + low - at) * PAGE_SECTORS, high - low))
            at += pages
        return found

    def check(self) -> None:
        """Assert the invariants of the file's opening lines."""
        owned = sum(sum(1 for owner in owners if owner) for owners in self.owners.values())
        assert owned == self.nr_used == sum(self._used_in.values())
        assert 0 not in self.owners or not self.owners[0][0]


class Swap:
    """All areas, the highest priority first."""

    def __init__(self, release: Features) -> None:
        self.features = release
        self.areas: list[SwapArea] = []  # in the order in which they are asked
        self.by_number: list[SwapArea] = []  # in that of swapon
        self.zswap: Frontswap | None = None  # before all of them
        self.ra = SwapRa()
        self.writeback: int = 0  # pages on their way out
        self.promised: int = 0  # slots, to pages on their way out that have none yet

    def swapon(
        self,
        path: str,
        device: BlockDevice,
        extents: list[tuple[int, int]],
        prio: int | None,
        is_block: bool,
    ) -> SwapArea:
        """Add an area; without a priority it comes after all others (-1, -2, ...)."""
        if prio is None:
            prio = min([0, *(area.prio for area in self.areas)]) - 1
        order = order_of(self.features, device.rotational)
        area = SwapArea(len(self.by_number), path, device, extents, prio, is_block, order)
        self.by_number.append(area)
        self.areas.append(area)
        self.areas.sort(key=_by_priority)
        if self.zswap is not None:
            self.zswap.add_area(area)
        return area

    @property
    def nr_total(self) -> int:
        """Return the slots of all areas."""
        return sum(area.nr_pages for area in self.areas)

    @property
    def nr_free(self) -> int:
        """Return the slots that nobody has (nr_swap_pages)."""
        return sum(area.nr_pages - area.nr_used for area in self.areas) - self.promised

    @property
    def nr_used(self) -> int:
        """Return the slots in use."""
        return sum(area.nr_used for area in self.areas)

    def zswapped(self) -> tuple[int, int]:
        """Return the pages that zswap takes, and those that it keeps in them."""
        return (0, 0) if self.zswap is None else self.zswap.zswapped()

    def is_full(self) -> bool:
        """Return whether slots are worth more than copies: over half are used (vm_swap_full)."""
        return self.nr_free * 2 < self.nr_total

    def is_full_for(self, mm: MmStruct) -> bool:
        """Return the same for a program, whose group may have less (mem_cgroup_swap_full)."""
        if mm.memcg is not None and mm.memcg.swap_is_full():
            return True
        return self.is_full()

    def promise(self, chunk: Chunk, count: int) -> int:
        """Set slots aside for pages of a chunk; return how many, fewer if swap is full."""
        promised = min(count, self.nr_free)
        self.promised += promised
        _charge(chunk, promised)
        return promised

    def take(self, chunk: Chunk, count: int) -> list[tuple[SwapArea, int, int]]:
        """Give the slots that were promised to pages of a chunk: runs (area, first, how many).

        Areas of equal priority get equal shares of what goes out together.
        """
        runs: list[tuple[SwapArea, int, int]] = []
        assert count <= self.promised
        self.promised -= count
        index = 0
        while count and index < len(self.areas):
            equals = [area for area in self.areas if area.prio == self.areas[index].prio]
            index += len(equals)
            share = -(-count // len(equals))
            if len(equals) > 1:  # Another one begins next time (plist_requeue).
                self.areas[index - len(equals) : index] = [*equals[1:], equals[0]]
            for area in equals:
                wanted = min(share, count)
                while wanted:
                    first, got = area.take(chunk, wanted)
                    if not got:
                        break
                    runs.append((area, first, got))
                    wanted -= got
                    count -= got
        assert not count
        return runs

    def _entry(self, key: int) -> tuple[SwapArea, int]:
        return self.by_number[key >> AREA_SHIFT], key & CLUSTER_MASK

    def pick(self, stream: Random, chunk: Chunk, kept: bool, in_order: bool) -> Entry:
        """Return a slot of a chunk, of a page in memory (``kept``) or out: any, or the first."""
        slots = chunk.kept_slots if kept else chunk.out_slots
        key, left = _cluster_of(stream, slots, in_order)
        area, cluster = self._entry(key)
        wanted = chunk.number << 1 | (RESIDENT if kept else 0)
        owners = area.owners[cluster]
        index = owners.index(wanted)
        for _ in range(left):
            index = owners.index(wanted, index + 1)
        return area, cluster * SWAPFILE_CLUSTER + index

    def some_out(self, stream: Random, chunk: Chunk, limit: int, in_order: bool) -> list[Entry]:
        """Return up to ``limit`` slots of pages that are out, none twice: any, or the first."""
        found: dict[Entry, None] = {}
        if not in_order:
            for _ in range(min(limit, chunk.out)):
                found[self.pick(stream, chunk, kept=False, in_order=False)] = None
            return list(found)
        for key, count in chunk.out_slots.items():
            area, cluster = self._entry(key)
            index = -1
            for _ in range(min(count, limit - len(found))):
                index = area.owners[cluster].index(chunk.number << 1, index + 1)
                found[area, cluster * SWAPFILE_CLUSTER + index] = None
            if len(found) >= limit:
                break
        return list(found)

    def set_out(self, chunk: Chunk, entry: Entry) -> None:
        """A page has gone; its slot is all there is of it."""
        self._move(chunk, entry, chunk.kept_slots, chunk.out_slots, 0)

    def set_kept(self, chunk: Chunk, entry: Entry) -> None:
        """A page is in memory again; its slot is kept."""
        self._move(chunk, entry, chunk.out_slots, chunk.kept_slots, RESIDENT)

    def _move(
        self,
        chunk: Chunk,
        entry: Entry,
        origin: dict[int, int],
        target: dict[int, int],
        resident: int,
    ) -> None:
        area, slot = entry
        cluster = slot // SWAPFILE_CLUSTER
        area.owners[cluster][slot % SWAPFILE_CLUSTER] = chunk.number << 1 | resident
        key = area.number << AREA_SHIFT | cluster
        _discount(origin, key)
        target[key] = target.get(key, 0) + 1

    def set_out_many(self, chunk: Chunk, count: int) -> None:
        """So many pages have gone that were written longest ago."""
        while count:
            key = next(iter(chunk.kept_slots))
            area, cluster = self._entry(key)
            owners = area.owners[cluster]
            wanted = chunk.number << 1 | RESIDENT
            moved = min(count, chunk.kept_slots[key])
            index = -1
            for _ in range(moved):
                index = owners.index(wanted, index + 1)
                owners[index] = chunk.number << 1
            _discount(chunk.kept_slots, key, moved)
            chunk.out_slots[key] = chunk.out_slots.get(key, 0) + moved
            count -= moved

    def free_kept(self, stream: Random, chunk: Chunk) -> None:
        """Give back a slot of a page in memory."""
        area, slot = self.pick(stream, chunk, kept=True, in_order=False)
        self._free(chunk, area, slot)

    def free_entry(self, stream: Random, chunk: Chunk, entry: Entry) -> None:
        """Give back this slot, whose page is in memory; another one if it went out meanwhile.

        A page of the chunk was taken for this one: nothing tells them apart.
        """
        area, slot = entry
        owner = area.owners[slot // SWAPFILE_CLUSTER][slot % SWAPFILE_CLUSTER]
        if owner == chunk.number << 1 | RESIDENT:
            self._free(chunk, area, slot)
        else:
            self.free_kept(stream, chunk)

    def _free(self, chunk: Chunk, area: SwapArea, slot: int) -> None:
        _discount(chunk.kept_slots, area.number << AREA_SHIFT | slot // SWAPFILE_CLUSTER)
        area.free(slot)
        _charge(chunk, -1)

    def free_all(self, chunk: Chunk) -> None:
        """Give back all slots of a chunk."""
        mine = chunk.number
        for key in [*chunk.kept_slots, *(k for k in chunk.out_slots if k not in chunk.kept_slots)]:
            area, cluster = self._entry(key)
            start = cluster * SWAPFILE_CLUSTER
            for index, owner in enumerate(list(area.owners[cluster])):
                if owner >> 1 == mine:
                    area.free(start + index)
                    _charge(chunk, -1)
        chunk.kept_slots.clear()
        chunk.out_slots.clear()

    def check(self) -> None:
        """Assert the invariants of the file's opening lines."""
        for area in self.areas:
            area.check()
        if self.zswap is not None:
            self.zswap.check()


def _charge(chunk: Chunk, slots: int) -> None:
    """Count slots that a chunk got for its memory cgroup (mem_cgroup_try_charge_swap)."""
    group = chunk.mm.memcg
    if group is not None:
        group.swap_used += slots


def _by_priority(area: SwapArea) -> int:
    return -area.prio


def _cluster_of(stream: Random, slots: dict[int, int], in_order: bool) -> tuple[int, int]:
    """Return a cluster, and the how-manieth of its slots: any slot, or the first of all."""
    if in_order:
        return next(iter(slots)), 0
    left = int(stream.random() * sum(slots.values()))
    for key, count in slots.items():
        if left < count:
            return key, left
        left -= count
    raise AssertionError("no slot is left")


def _discount(slots: dict[int, int], key: int, count: int = 1) -> None:
    left = slots[key] - count
    assert left >= 0
    if left:
        slots[key] = left
    else:
        del slots[key]
