"""Memory cgroups: what a group of programs may have of memory and swap, and what it has.

Models: a group with a limit of memory, and one of swap. In memory counts what its programs have of
their own, and the pages of files (tmpfs too) that they were the first to read or write: a file that
somebody else has read is free. A task that would exceed the limit reclaims from the group's own
lists first (try_charge, vmscan.py); where what is left is dirty or under I/O it waits for it; if
all that frees nothing, the group's worst program is killed. The two versions differ in how dirty
pages are held back: in version 1 not at all, but a task that reclaims waits for what it meets on
its way to the disk; version 2 has the dirty ratios of the group itself (from 4.2 on), so that a
writer is paced below them (page_writeback.py).
Theory: a group is a machine of `limit` pages: its hit ratio is that of a machine of this size, and
what it reads takes nothing from others. A backup of any size in a group of 64 MiB takes 64 MiB. A
writer may dirty dirty_ratio of the limit: 20 % of 64 MiB is 13 MiB, at 100 MiB/s an eighth of a
second of writes, and then goes at the pace of the disk.
Linux counterpart: struct mem_cgroup, include/linux/memcontrol.h; mm/page_counter.c; 2.6.25 to 6.5.
Invariants (``Vm.check()``): ``usage`` is the sum of the pages on the group's lists, those on their
way in from swap as well; ``swap_used`` that of its slots. usage exceeds the limit by no more than
what is taken at once (``batch``) by each of its tasks.
Left out: a device's own pages (metadata) and kernel memory, which belong to the machine; children's
limits; memory.high, min, low; one flusher for each group and device: here one writes old files of
others on its way.
"""

from __future__ import annotations

from typing import Final

BATCHES: Final = 8  # of which the limit is made, at least
BATCH_PAGES_MAX: Final = 1024


class MemCgroup:
    """One group; pages."""

    __slots__ = (
        "batch",
        "failcnt",
        "limit",
        "name",
        "oom_kills",
        "paces_writers",
        "swap_limit",
        "swap_used",
        "usage",
        "version",
    )

    def __init__(
        self, name: str, limit: int, swap_limit: int | None, version: int, *, paces_writers: bool
    ) -> None:
        """``swap_limit`` is what may be in swap, None for all there is."""
        self.name = name
        self.limit = limit
        self.paces_writers = paces_writers
        self.swap_limit = swap_limit
        self.version = version
        self.batch: int = min(max(limit // BATCHES, 1), BATCH_PAGES_MAX)  # of files, at once
        self.usage: int = 0
        self.swap_used: int = 0
        self.failcnt: int = 0  # times that the limit was met
        self.oom_kills: int = 0

    def swap_room(self, pages: int) -> int:
        """Return how many of so many pages may go to swap."""
        if self.swap_limit is None:
            return pages
        return max(min(pages, self.swap_limit - self.swap_used), 0)

    def swap_is_full(self) -> bool:
        """Return whether over half of the swap it may have is used."""
        return self.swap_limit is not None and 2 * self.swap_used > self.swap_limit
