"""Memory cgroups: a limit for what some programs use, with lists of its own.

Models: a group with a limit of memory, and one of swap. In memory counts what its programs have of
their own, and the pages of files (tmpfs too) that they were the first to read or write: a file that
somebody else has read is free. Who would exceed the limit reclaims from the group's own lists
first; where what is left is dirty or under I/O he waits for it; if all that frees nothing, the
group's worst program is killed. The two versions differ in how dirty pages are held back: in
version 1 not at all, but who reclaims waits for what he meets on its way to the disk; version 2
has the dirty ratios of the group itself (from 4.2 on), so that a writer is paced below them.
Theory: a group is a machine of `limit` pages: its hit ratio is that of a machine of this size, and
what it reads takes nothing from others. A backup of any size in a group of 64 MiB takes 64 MiB. A
writer may dirty dirty_ratio of the limit: 20 % of 64 MiB is 13 MiB, at 100 MiB/s an eighth of a
second of writes, and then goes at the pace of the disk.
Linux counterpart: mm/memcontrol.c (try_charge, mem_cgroup_charge, mem_cgroup_out_of_memory,
mem_cgroup_wb_stats), 2.6.25 to 6.5; 841710aa6e4a and c2aa723a6093 (4.2).
Invariants (``check()``): ``usage`` is the sum of the pages on the group's lists, those on their way
in from swap as well; ``swap_used`` that of its slots. usage exceeds the limit by no more than what
is taken at once (``batch``) by each of its tasks.
Left out: a device's own pages (metadata) and kernel memory, which belong to the machine; children's
limits; memory.high, min, low; one flusher for each group and device: here one writes old files of
others on its way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sim.mm.backing_dev import congestion_wait
from sim.mm.lruvec import Lruvec
from sim.mm.oom_kill import out_of_memory
from sim.mm.vmscan import MAX_RECLAIM_RETRIES, SWAP_CLUSTER_MAX, Reclaim, try_to_free_pages
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Killed, Task, sleep_ns

if TYPE_CHECKING:
    from sim.mm.address_space import AddressSpace
    from sim.mm.anon import Chunk
    from sim.mm.mmzone import Vm

GRAINS: Final = 512  # generations in which the group's pages would be if they were one list
GRAIN_PAGES_MIN: Final = 8
BATCHES: Final = 8  # of which the limit is made, at least
BATCH_PAGES_MAX: Final = 1024
UNCLEAN_MAX: Final = 256  # files until those are forgotten that are clean again


class MemCgroup:
    """One group; pages."""

    __slots__ = (
        "_prune_at",
        "batch",
        "failcnt",
        "limit",
        "lruvecs",
        "name",
        "oom_kills",
        "paces_writers",
        "swap_limit",
        "swap_used",
        "unclean",
        "usage",
        "version",
        "vm",
    )

    def __init__(self, vm: Vm, name: str, limit: int, swap_limit: int | None, version: int) -> None:
        """``swap_limit`` is what may be in swap, None for all there is."""
        self.vm = vm
        self.name = name
        self.limit = limit
        self.paces_writers: bool = version != 1 and vm.features.memcg_dirty_limits
        self.swap_limit = swap_limit
        self.version = version
        self.batch: int = min(max(limit // BATCHES, 1), BATCH_PAGES_MAX)  # of files, at once
        self.usage: int = 0
        self.swap_used: int = 0
        self.failcnt: int = 0  # times that the limit was met
        self.oom_kills: int = 0
        self.unclean: dict[AddressSpace, None] = {}  # files that its programs made dirty
        self._prune_at: int = UNCLEAN_MAX
        grain = max(limit // GRAINS, GRAIN_PAGES_MIN)
        self.lruvecs: list[Lruvec] = [vm.new_lruvec(self, node, grain) for node in vm.nodes]

    # -- What it has.

    @property
    def nr_anon(self) -> int:
        """Return the pages of programs in memory."""
        return self.usage - self.nr_file

    @property
    def nr_file(self) -> int:
        """Return the pages of files, those of tmpfs as well."""
        return sum(sum(lruvec.nr) for lruvec in self.lruvecs)

    @property
    def dirtyable(self) -> int:
        """Return the pages that dirty ratios are of: of files, and what is left to the limit."""
        file_pages = sum(lruvec.file_pages() for lruvec in self.lruvecs)
        return file_pages + max(self.limit - self.usage, 0)

    def note_dirty(self, mapping: AddressSpace) -> None:
        """Note a file that one of its programs has made dirty (inode_attach_wb)."""
        self.unclean[mapping] = None
        if len(self.unclean) >= self._prune_at:
            self.nr_unclean()
            self._prune_at = max(UNCLEAN_MAX, 2 * len(self.unclean))

    def nr_unclean(self) -> int:
        """Return the pages dirty or under writeback of files that its programs made dirty."""
        for mapping in [m for m in self.unclean if _is_clean(m)]:
            del self.unclean[mapping]
        return sum(mapping.nr_dirty + mapping.nr_writeback for mapping in self.unclean)

    def nr_dirty(self) -> int:
        """Return those of them that nobody is writing."""
        return self.nr_unclean() - sum(mapping.nr_writeback for mapping in self.unclean)

    def swap_room(self, pages: int) -> int:
        """Return how many of so many pages may go to swap."""
        if self.swap_limit is None:
            return pages
        return max(min(pages, self.swap_limit - self.swap_used), 0)

    def swap_is_full(self) -> bool:
        """Return whether over half of the swap it may have is used."""
        return self.swap_limit is not None and 2 * self.swap_used > self.swap_limit

    # -- The limit.

    def charge(self, task: Task, pages: int) -> Blocking[None]:
        """See that so many pages fit under the limit (try_charge)."""
        vm = self.vm
        failures = 0
        while self.usage + pages > self.limit:
            self.failcnt += 1
            wanted = max(pages, SWAP_CLUSTER_MAX)
            control = Reclaim(self.lruvecs, wanted, vm.params.swappiness, self)
            freed = yield from try_to_free_pages(task, vm, control)
            if task.killed:
                raise Killed(task.comm)
            failures = 0 if freed else failures + 1
            if freed:
                continue
            if self._has_unclean():
                failures = 0
                yield from congestion_wait(task, vm)
            elif failures >= MAX_RECLAIM_RETRIES and self._is_under_io():
                failures = 0
                yield from self._pause(task, "try_charge")
            elif failures >= MAX_RECLAIM_RETRIES:
                failures = 0
                self.oom_kills += 1
                out_of_memory(vm, self, task)
                if task.killed:
                    raise Killed(task.comm)
                yield from self._pause(task, "out_of_memory")

    def _pause(self, task: Task, wchan: str) -> Blocking[None]:
        yield from sleep_ns(task, self.vm.tick_ns, TASK_UNINTERRUPTIBLE, wchan)

    def _is_under_io(self) -> bool:
        """Return whether pages are being read, or written to swap."""
        if any(chunk.io + chunk.reading for chunk in self._chunks()):
            return True
        return any(mapping.locked.count for mapping in self._mappings())

    def _has_unclean(self) -> bool:
        """Return whether a file that it has pages of is dirty, or being written."""
        return any(mapping.nr_dirty + mapping.nr_writeback for mapping in self._mappings())

    def _mappings(self) -> list[AddressSpace]:
        """Return the files that it has pages of."""
        found: dict[AddressSpace, None] = {}
        for lruvec in self.lruvecs:
            for generations in lruvec.lists:
                for generation in generations.values():
                    found.update(generation.mappings)
        return list(found)

    def _chunks(self) -> list[Chunk]:
        return [chunk for chunk in self.vm.programs.chunks.values() if chunk.mm.memcg is self]

    def check(self) -> None:
        """Assert the invariants of the file's opening lines."""
        chunks = self._chunks()
        anon = sum(sum(lruvec.anon.nr) for lruvec in self.lruvecs)
        assert self.usage == anon + sum(chunk.reading for chunk in chunks) + self.nr_file
        slots = sum(sum(c.kept_slots.values()) + sum(c.out_slots.values()) for c in chunks)
        assert self.swap_used == slots


def _is_clean(mapping: AddressSpace) -> bool:
    """Return whether nothing of a file is dirty, nor may be made so unseen while a pass has it."""
    if mapping.dirty_state or mapping.i_lock:
        return False
    return not mapping.nr_dirty + mapping.nr_writeback
