"""Reading and writing pages of swap areas.

Models: what goes out is submitted as one bio for each page, adjoining slots as one run, inside the
reclaimer's plug; when it has been written its pages are back at the old end of the inactive list,
to be freed by the next one who looks. What comes in ends with its pages in the swap cache.
Linux counterpart: mm/page_io.c (swap_writepage, swap_readpage, end_swap_bio_write), mm/swap.c
(rotate_reclaimable_page).
Invariants: each page submitted is ended once, also if its program has gone meanwhile.
Left out: bios of several pages (6.1 on, for files over NFS), errors.
"""

from __future__ import annotations

from typing import Final

from sim.block.bio import BIO_PROCESS_SYNC, READ, WRITE, Bio, Plug
from sim.engine.draw import hypergeometric
from sim.mm.address_space import Vm
from sim.mm.anon import DIRTY, SLOT, UNMAPPED, WRITEBACK, YOUNG, AnonLru, Chunk
from sim.mm.swapfile import Frontswap, SwapArea
from sim.mm.workingset import list_of_readahead
from sim.sched.task import Blocking, Task
from sim.sched.wait import WaitQueue

PAGE_SECTORS: Final = 8

Part = tuple[Chunk, int]  # pages of a chunk, in the order of their slots


class SwapWrite:
    """Pages of adjoining slots on their way out."""

    __slots__ = ("parts", "vm")

    def __init__(self, vm: Vm, parts: list[Part]) -> None:
        self.vm = vm
        self.parts = parts

    def end(self, bio: Bio | None) -> None:
        """They are in swap (interrupt)."""
        vm = self.vm
        for chunk, count in self.parts:
            end_writeback(vm, chunk, count)
            vm.swap.writeback -= count
        if vm.wb.nr_congestion_waiters:
            vm.wb.congestion_wqh.wake_all()


class SwapRead:
    """A page on its way in, to a node; who faults on it waits, or nobody yet (read-ahead)."""

    __slots__ = ("chunk", "done", "node", "vm", "wait")

    def __init__(self, vm: Vm, chunk: Chunk, node: int, wait: WaitQueue | None) -> None:
        self.vm = vm
        self.chunk = chunk
        self.node = node
        self.wait = wait
        self.done: bool = False

    def end(self, bio: Bio | None) -> None:
        """It is in the swap cache (interrupt)."""
        self.done = True
        if self.wait is not None:
            self.wait.wake_all()
        else:
            end_readahead(self.vm, self.chunk, self.node)


def swap_flags(vm: Vm) -> int:
    """Return the flags of a write to swap."""
    return BIO_PROCESS_SYNC if vm.features.swap_unthrottled else 0


def swap_writepages(
    task: Task, vm: Vm, area: SwapArea, slot: int, parts: list[Part], plug: Plug | None
) -> Blocking[bool]:
    """Submit pages of adjoining slots, whose state says already that they are on their way.

    Return whether that slept, for a request of a full queue.
    """
    count = sum(pages for _, pages in parts)
    vm.events.pswpout += count
    vm.swap.writeback += count
    if area.zswap is not None:
        return (yield from _store_pages(task, vm, area, area.zswap, slot, parts, plug))
    return (yield from _write_pages(task, vm, area, slot, parts, plug))


def _store_pages(
    task: Task,
    vm: Vm,
    area: SwapArea,
    zswap: Frontswap,
    slot: int,
    parts: list[Part],
    plug: Plug | None,
) -> Blocking[bool]:
    """Have pages kept in compressed memory; write those that find no room."""
    slept = False
    begun_ns = vm.calendar.now
    while parts:
        page, parts = _split(parts, 1)
        if (yield from zswap.store(task, area, slot)):
            vm.calendar.post(zswap.compressor.compress_ns, SwapWrite(vm, page).end, None)
        else:
            yield from _write_pages(task, vm, area, slot, page, plug)
        slept = slept or vm.calendar.now != begun_ns
        slot += 1
    return slept


def _write_pages(
    task: Task, vm: Vm, area: SwapArea, slot: int, parts: list[Part], plug: Plug | None
) -> Blocking[bool]:
    """Write pages of adjoining slots to the device; return whether that slept."""
    slept = False
    count = sum(pages for _, pages in parts)
    task.charge_system(vm.params.page_write_ns * count)
    for sector, pages in area.sectors(slot, count):
        own, parts = _split(parts, pages)
        bio = Bio(
            WRITE,
            sector,
            pages * PAGE_SECTORS,
            SwapWrite(vm, own).end,
            None,
            pages,
            swap_flags(vm),
            task.pid,
        )
        bio.plug = plug
        if (yield from area.device.submit(task, bio)):
            slept = True
    return slept


def swap_readpage(
    task: Task, area: SwapArea, slot: int, read: SwapRead, plug: Plug | None
) -> Blocking[None]:
    """Submit the read of a page, whose state says already that it is on its way."""
    read.vm.events.pswpin += 1
    zswap = area.zswap
    if zswap is not None and zswap.load(task, area, slot):
        read.vm.calendar.post(zswap.compressor.decompress_ns, read.end, None)
        return
    [(sector, _)] = area.sectors(slot, 1)
    bio = Bio(READ, sector, PAGE_SECTORS, read.end, None, 1, 0, task.pid)
    bio.plug = plug
    yield from area.device.submit(task, bio)


def _split(parts: list[Part], pages: int) -> tuple[list[Part], list[Part]]:
    """Return the parts of the first pages, and the others."""
    own: list[Part] = []
    rest: list[Part] = []
    for chunk, count in parts:
        here = min(count, pages)
        pages -= here
        if here:
            own.append((chunk, here))
        if count > here:
            rest.append((chunk, count - here))
    return own, rest


def end_writeback(vm: Vm, chunk: Chunk, count: int) -> None:
    """Pages of a chunk are in swap: rotate them, or free them if nobody owns them any more."""
    random = vm.programs.chance
    mapped = chunk.io_read + chunk.io_written
    again = hypergeometric(random, mapped, chunk.io, count)
    written = hypergeometric(random, chunk.io_written, mapped, again)
    chunk.io -= count
    chunk.io_written -= written
    chunk.io_read -= again - written
    left = {UNMAPPED | SLOT: count - again, SLOT | YOUNG: again - written}
    left[SLOT | DIRTY | YOUNG] = written
    for lru, pages in _take_written(chunk, count):
        while pages:
            kind = next(kind for kind, number in left.items() if number)
            number = min(left[kind], pages)
            left[kind] -= number
            pages -= number
            if chunk.dead:
                vm.uncharge_anon(chunk.mm, lru.node_number, number)
            else:
                lru.add_tail(chunk, kind, number)
    if not chunk.dead:
        chunk.cached += count - again
    else:
        forget(vm, chunk)
    if chunk.io_wait is not None:
        chunk.io_wait.wake_all()


def _take_written(chunk: Chunk, count: int) -> list[tuple[AnonLru, int]]:
    """Take pages that were under writeback off their lists, those of the oldest first."""
    taken: list[tuple[AnonLru, int]] = []
    for generation in list(chunk.generations.values()):
        for cohort in list(generation.cohorts.values()):
            if count and cohort.chunk is chunk and cohort.kind & WRITEBACK:
                pages = min(count, cohort.count)
                count -= pages
                generation.remove(cohort, pages)
                taken.append((generation.owner, pages))
    assert not count
    return taken


def end_readahead(vm: Vm, chunk: Chunk, node: int) -> None:
    """A page that nobody waits for is in the swap cache."""
    chunk.reading -= 1
    if chunk.dead:
        vm.uncharge_anon(chunk.mm, node, 1)
        forget(vm, chunk)
        return
    chunk.cached += 1
    chunk.ahead += 1
    lru = vm.lru_of(chunk.mm, node)
    lru.add(list_of_readahead(vm, lru, chunk), chunk, UNMAPPED | SLOT, 1)
    if chunk.io_wait is not None:
        chunk.io_wait.wake_all()


def forget(vm: Vm, chunk: Chunk) -> None:
    """Give the slots of a chunk back whose program is gone, once none of it is under I/O."""
    assert chunk.dead
    if not chunk.io and not chunk.reading:
        vm.swap.free_all(chunk)
        del vm.programs.chunks[chunk.number]
