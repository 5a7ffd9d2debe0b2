"""Coming back from swap: the swap cache and read-ahead.

Models: a fault on a page that is not mapped. It may still be in the swap cache (a minor fault);
otherwise it is read, with pages that lie near its slot, or near its address, and the task waits for
it in io_schedule. How many:
- to 3.13: the aligned window of 2^page-cluster slots around it, always
- 3.14 on: as many as of those before were of use, one at least (swapin_nr_pages, 579f82901f6f)
- 4.14 on, where seeks cost nothing: by address, not by slot (vma_readahead, ec560175c0b6)
- 4.15 on, from memory (zram.py): none, and the slot is given back (0bcac06f27d7)
A page that is written to, or comes in while swap is over half full, gives its slot back.
Linux counterpart: mm/swap_state.c (swapin_readahead), mm/memory.c (do_swap_page), 2.6.16 to 6.5.
Invariants: a page on its way in is counted in `reading`, and is in memory already.
Left out: addresses: what is near one is drawn, others of the chunk, in order if it is so used.
"""

from __future__ import annotations

from sim.block.bio import Plug
from sim.engine.draw import binomial
from sim.mm.address_space import Vm
from sim.mm.anon import DIRTY, SLOT, YOUNG, Chunk
from sim.mm.page_alloc import alloc_pages
from sim.mm.page_io import SwapRead, forget, swap_readpage
from sim.mm.swapfile import RESIDENT, SWAPFILE_CLUSTER, SwapArea
from sim.mm.workingset import list_of_swapin
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue

Found = tuple[SwapArea, int, Chunk]  # area, slot, whose


def map_cached(vm: Vm, chunk: Chunk, write: bool) -> None:
    """Map a page that is in the swap cache and was not used since it came there."""
    if chunk.ahead and vm.programs.chance.random() * chunk.idle < chunk.ahead:
        chunk.ahead -= 1
        vm.swap.ra.hits += 1
    if write or vm.swap.is_full_for(chunk.mm):
        vm.swap.free_kept(vm.programs.chance, chunk)
        chunk.rewritten += 1
    else:
        chunk.remapped += 1
        chunk.rewritten_at += (chunk.writes - chunk.rewritten_at) / chunk.remapped
    chunk.map(1)


def map_under_writeback(chunk: Chunk, write: bool) -> None:
    """Map a page that is being written."""
    if write:
        chunk.io_written += 1
    else:
        chunk.io_read += 1
    chunk.map(1)


def swap_in(task: Task, vm: Vm, chunk: Chunk, write: bool, in_order: bool) -> Blocking[None]:
    """Read a page that is out, wait for it, and map it; memory for it there is."""
    slot = vm.swap.pick(vm.programs.chance, chunk, kept=False, in_order=in_order)
    target = (slot[0], slot[1], chunk)
    wanted = _readahead(vm, target, in_order)
    wanted.sort(key=_by_slot)
    node = alloc_pages(vm, len(wanted)).number
    wait = WaitQueue()
    plug = Plug() if len(wanted) > 1 and vm.features.task_plug else None
    own = SwapRead(vm, chunk, node, wait)
    for area, number, owner in wanted:
        vm.swap.set_kept(owner, (area, number))
        owner.out -= 1
        owner.reading += 1
        vm.charge_anon(owner.mm, node, 1)
    for area, number, owner in wanted:
        read = SwapRead(vm, owner, node, None)
        yield from swap_readpage(
            task, area, number, own if (area, number, owner) == target else read, plug
        )
    if plug is not None:
        plug.flush()
    slot[0].device.unplug()
    while not own.done:
        yield from wait.io_sleep_on(task, TASK_UNINTERRUPTIBLE, "lock_page")
    _map_read(vm, chunk, node, slot, write)


def _map_read(vm: Vm, chunk: Chunk, node: int, slot: tuple[SwapArea, int], write: bool) -> None:
    """Map a page that was read; put it on the list it belongs to."""
    chunk.reading -= 1
    if chunk.dead:
        vm.uncharge_anon(chunk.mm, node, 1)
        forget(vm, chunk)
        return
    kind = SLOT | YOUNG
    if write or vm.swap.is_full_for(chunk.mm) or is_alone(vm, slot[0]):
        vm.swap.free_entry(vm.programs.chance, chunk, slot)
        kind = DIRTY | YOUNG
    chunk.map(1)
    lru = vm.lru_of(chunk.mm, node)
    lru.add(list_of_swapin(vm, lru, chunk), chunk, kind, 1)


def is_alone(vm: Vm, area: SwapArea) -> bool:
    """Return whether a page is read without others, past the swap cache (SWP_SYNCHRONOUS_IO)."""
    return area.device.synchronous and vm.features.synchronous_swap


def _readahead(vm: Vm, target: Found, in_order: bool) -> list[Found]:
    """Return the pages to read: the one wanted, and others that may be of use."""
    area, slot, chunk = target
    if is_alone(vm, area):
        return [target]
    most = 1 << vm.params.page_cluster
    if not vm.features.readahead_hits:
        return _around_slot(vm, target, most)
    pages = vm.swap.ra.window(slot, most)
    if pages == 1:
        return [target]
    if vm.features.readahead_by_address and not area.device.rotational:
        return [target, *_near_address(vm, chunk, target, pages - 1, in_order)]
    return _around_slot(vm, target, pages)


def _around_slot(vm: Vm, target: Found, pages: int) -> list[Found]:
    """Return what is out in the aligned window of slots around one."""
    area, slot, _ = target
    window = pages - 1 if not pages & pages - 1 else (1 << pages.bit_length()) - 1
    found = []
    for other in range(max(slot & ~window, 1), min((slot | window) + 1, area.nr_slots)):
        owners = area.owners.get(other // SWAPFILE_CLUSTER)
        owner = 0 if owners is None else owners[other % SWAPFILE_CLUSTER]
        if owner and not owner & RESIDENT:
            found.append((area, other, vm.programs.chunks[owner >> 1]))
    return found


def _near_address(vm: Vm, chunk: Chunk, target: Found, pages: int, in_order: bool) -> list[Found]:
    """Return others of a chunk that are out and lie near a page of it."""
    found: list[Found] = []
    near = binomial(vm.programs.chance, pages, (chunk.out - 1) / max(chunk.used - 1, 1))
    slots = vm.swap.some_out(vm.programs.chance, chunk, near + 1, in_order)
    for area, slot in slots:
        if (area, slot) != target[:2] and len(found) < near:
            found.append((area, slot, chunk))
    return found


def _by_slot(found: Found) -> tuple[int, int]:
    return found[0].number, found[1]
