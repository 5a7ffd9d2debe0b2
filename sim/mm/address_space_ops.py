"""What a file system does for the pages of its files.

Models: reading and writing runs of pages, and the inode behind them.
Linux counterpart: struct address_space_operations, struct super_operations, include/linux/fs.h.
Invariants: a call that submits I/O for a run sees to it that each page of the run is ended once.
Left out: what the twin's file systems do not need (direct_IO, migratepage).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from sim.mm.writeback import LAST_PAGE, WritebackControl
from sim.sched.task import Blocking, Task

if TYPE_CHECKING:
    from sim.mm.address_space import AddressSpace


@mypyc_attr(allow_interpreted_subclasses=True)
class AddressSpaceOps:
    """What a file system does for its pages (struct address_space_operations, super_operations)."""

    def writepages(
        self, task: Task, mapping: AddressSpace, wbc: WritebackControl
    ) -> Blocking[None]:
        """Write dirty pages; usually ``yield from write_cache_pages(task, mapping, wbc)``."""
        raise NotImplementedError

    def writepage(
        self, task: Task, mapping: AddressSpace, start: int, end: int, wbc: WritebackControl
    ) -> Blocking[None]:
        """Submit the writes of a run of pages, all under writeback already.

        The completion calls ``mapping.end_writeback()`` for every page of the run, in any parts.
        """
        raise NotImplementedError

    def readpages(self, task: Task, mapping: AddressSpace, start: int, end: int) -> Blocking[None]:
        """Submit the reads of a run of pages, all locked already (start_read).

        The completion (or this function itself, for a hole) calls ``mapping.end_read()``.
        """
        raise NotImplementedError

    def end_page(self, mapping: AddressSpace) -> int:
        """Return the page behind the last of the file: read-ahead stops there."""
        return LAST_PAGE

    def sync_page(self) -> None:
        """Start what the device's plug holds back: somebody is about to wait for a page."""
        raise NotImplementedError

    def write_inode(self, task: Task, mapping: AddressSpace, wait: bool) -> Blocking[None]:
        """Write the inode itself, whose I_DIRTY_INODE has just been cleared."""
        raise NotImplementedError
