"""The page cache of the block device: metadata on its way home.

Theory of operation: a page of this cache is one metadata block. Only a block that the journal
made dirty (JournalHead.dirty) is written; a page whose block has joined a transaction again since
is dirty for the page cache alone, and just becomes clean (block_write_full_page finds no dirty
buffer).
Linux counterpart: fs/block_dev.c, fs/buffer.c __block_write_full_page, 2.6.16.
Invariants: a block in a running or committing transaction is not written from here.
Left out: file systems that keep data here.
"""

from sim.block.bio import WRITE, Bio
from sim.fs.buffer import SECTORS_PER_BLOCK, submit_read, submit_run
from sim.fs.jbd2.checkpoint import HomeWrite
from sim.fs.jbd2.journal import Journal
from sim.fs.jbd2.state import JournalHead
from sim.mm.filemap import AddressSpace, AddressSpaceOps
from sim.mm.page_writeback import write_cache_pages
from sim.mm.writeback import WritebackControl
from sim.sched.task import Blocking, Task


class MetadataOps(AddressSpaceOps):
    """What the page cache asks of the block device that holds a journalled file system."""

    journal: Journal  # Set by the mount, which makes the journal on this cache.

    def writepages(
        self, task: Task, mapping: AddressSpace, wbc: WritebackControl
    ) -> Blocking[None]:
        """Write dirty blocks home."""
        yield from write_cache_pages(task, mapping, wbc)

    def writepage(
        self, task: Task, mapping: AddressSpace, start: int, end: int, wbc: WritebackControl
    ) -> Blocking[None]:
        """Submit the blocks of a run that are dirty; the others are clean already."""
        heads = self.journal.heads
        run: list[JournalHead] = []
        for block in range(start, end):
            head = heads.get(block)
            if head is not None and head.dirty and not head.locked and head.mapping is mapping:
                run.append(head)
                continue
            if run:
                yield from self._submit(task, mapping, run)
                run = []
            mapping.end_writeback(block, block + 1)
        if run:
            yield from self._submit(task, mapping, run)

    def _submit(self, task: Task, mapping: AddressSpace, run: list[JournalHead]) -> Blocking[None]:
        """Write adjacent blocks home."""
        journal = self.journal
        task.charge_system(journal.buffer_ns * len(run))
        for head in run:
            head.dirty = False
            head.locked = True
        write = PageHomeWrite(journal, run, mapping)
        count = len(run)
        bio = Bio(
            WRITE, run[0].block * SECTORS_PER_BLOCK, count * SECTORS_PER_BLOCK, write.end_io,
            None, count, 0, task.pid,
        )  # fmt: skip
        yield from submit_run(task, journal.home, bio, journal.kernel)

    def readpages(self, task: Task, mapping: AddressSpace, start: int, end: int) -> Blocking[None]:
        """Read metadata blocks."""
        yield from submit_read(task, self.journal.home, mapping, start, start, end - start)

    def end_page(self, mapping: AddressSpace) -> int:
        """Return where the device ends."""
        return self.journal.home.capacity_sectors // SECTORS_PER_BLOCK

    def sync_page(self) -> None:
        """Somebody waits for the device."""
        self.journal.home.unplug()

    def write_inode(self, task: Task, mapping: AddressSpace, wait: bool) -> Blocking[None]:
        """A block device's inode is not on it."""
        return
        yield


class PageHomeWrite(HomeWrite):
    """Adjacent blocks written home by way of their pages."""

    def __init__(self, journal: Journal, run: list[JournalHead], mapping: AddressSpace) -> None:
        super().__init__(journal, run)
        self.mapping = mapping
        self.start = run[0].page
        self.end = run[-1].page + 1

    def end_io(self, bio: Bio) -> None:
        """They are home (interrupt)."""
        super().end_io(bio)
        self.mapping.end_writeback(self.start, self.end)
