"""ext4 without a journal: metadata are dirty in the block device's cache, and fsync writes them.

Theory of operation (mke2fs -O ^has_journal; cloud images and micro-VMs have such roots)
 - A handle is a counter. It never waits, and nothing ends with it (ext4_get_nojournal).
 - A metadata block that changes is dirty in the block device's page cache at once, as any page. The
   device's flusher writes it when it is 30 s old. Nothing orders one block before another.
 - Blocks of a directory and of a file's tree of extents are noted with their inode as well
   (mark_buffer_dirty_inode). Bitmaps, descriptors and inode tables are not.
 - fsync writes the file's data and waits; then the noted blocks, all at once, and waits; then the
   block of the inode table that has the inode, if it is dirty, and waits. If the file's name is
   new, the directory's noted blocks follow, and its inode if the vfs holds it for dirty; and so on
   up while the directories are new themselves (ext4_sync_parent). Then one flush, if the mount has
   barriers. Each caller does all this alone: nobody shares it, no thread does it for him.
 - Freed blocks may be used again at once. There is no list of orphans on the disk.
 - Data are never ordered: a size may be on the disk before what was written (as data=writeback).

 Counted on a loop device, Linux 6.18.44, 4 KiB blocks (writes with the flush's own, KiB, flushes):

    create, write 6000 bytes, fsync         4 writes   16 KiB   1   data; inode; directory; flush
    create, fsync                           3           8       1         inode; directory; flush
    rename in a directory, fsync of it      3           8       1   directory; its inode; flush
    overwrite 8 KiB, fdatasync              3          12       1   data; inode (its time); flush
    append 8 KiB, fdatasync                 3          12       1   data; inode; flush
    fsync of what has not changed           1           0       1   flush

 With a journal the first is 3 writes, 36 to 40 KiB and 2 flushes.
After a power cut there is no log to replay: e2fsck repairs. A name is there if the block with it
was written and its inode's block as well: an entry of an unused inode is cleared (pass 2).
A file whose name was not written is in lost+found, and so not found.
Models: struct buffer_head in the block device's cache (JournalHead's flags that need no journal);
 i_private_list; what of the changes is on the medium.
Linux counterpart: fs/ext4/ext4_jbd2.c (ext4_get_nojournal, __ext4_handle_dirty_metadata),
 fs/ext4/inode.c ext4_write_inode, fs/ext4/fsync.c ext4_fsync_nojournal (in inode.py here),
 fs/buffer.c (sync_mapping_buffers, fsync_buffers_list, __sync_dirty_buffer), 6.18; e2fsck pass 2.
Invariants: one transaction runs for ever, commits never, and holds no block; a block noted with an
 inode is written when that inode's fsync returns; without a write cache, or with barriers, so is on
 the medium what fsync promised. A block is dirty again while it is being written if it changed.
Left out: e2fsck's other work: blocks that two files claim (those of a file whose deletion was not
 written, used again), both halves of a directory's split block, trees of extents whose leaf was not
 written; lost+found. A transaction's cost here is that of a block (`buffer`), though marking a
 buffer dirty costs less than the journal's access to it. Earlier releases from 2.6.35 on wrote a
 directory for a new name only if the name took a new block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from sim.block.bio import BIO_SYNC, Plug
from sim.engine.ranges import RangeSet
from sim.fs.buffer import SECTORS_PER_BLOCK, issue_flush
from sim.fs.ext4.balloc import Layout
from sim.fs.features import features
from sim.fs.jbd2 import (
    DiscardFreed,
    Handle,
    HomeWrite,
    Journal,
    JournalHead,
    JournalParams,
    Log,
    MetadataOps,
    Transaction,
    Undo,
    submit_home,
)
from sim.fs.super import Inode, MountContext
from sim.mm.address_space import AddressSpace
from sim.mm.writeback import ALL_PAGES, LAST_PAGE, WB_SYNC_ALL, WritebackControl
from sim.sched.task import TASK_UNINTERRUPTIBLE, Blocking, Task, no_wait

NO_LIMIT: Final = 1 << 60  # of credits, and of a transaction's age
# Sizes of an Undo that tell of an inode's life.
UNBORN: Final = -1  # before the change it was not in use
ALIVE: Final = -2  # before the change it was


class NoJournal(Journal):
    """Metadata blocks in the block device's cache, for a file system without a journal."""

    def __init__(
        self,
        context: MountContext,
        params: JournalParams,
        layout: Layout,
        *,
        released: Callable[[int, int], None],
        discard: DiscardFreed | None,
        syncs_directories: bool,
    ) -> None:
        device, bdi = context.on_disk()
        has = features(context.vm.kernel)
        super().__init__(
            context.vm,
            bdi,
            device,
            Log(device, [], 0, has, False),
            params,
            jiffy_ns=context.scheduler.tick_ns,
            released=released,
            discard=discard,
        )
        self.layout = layout
        self.max_transaction_buffers = NO_LIMIT
        self.forever = self.running = Transaction(1, 0, NO_LIMIT)
        self.transaction_sequence = 2
        self.syncs_directories = syncs_directories  # their blocks are written at once (dirsync)
        self.sync_flags: int = BIO_SYNC if has.write_sync else 0
        self.noted: dict[int, dict[JournalHead, None]] = {}  # i_private_list, by inode number
        # Of a run with a power cut: changes by block, each with its number, and where they are:
        self.nr_changes: int = 0
        self.unwritten: dict[int, list[Change]] = {}  # in memory alone,
        self.in_flight: dict[int, list[Change]] = {}  # on the way,
        self.written: dict[int, list[Change]] = {}  # perhaps in the drive's cache alone;
        self.nr_flushes: int = 0
        self.flushing: dict[int, dict[int, list[Change]]] = {}  # the same, a flush is under way.
        self.dead: dict[Inode, None] = {}

    def home_ops(self) -> MetadataOps:
        return BufferOps(self)

    # --- handles

    def space_left(self) -> int:
        """Return that no handle ever has to wait for room."""
        return NO_LIMIT

    def modify_head(
        self, task: Task, handle: Handle, head: JournalHead, undo: bool
    ) -> Blocking[None]:
        """Make a block dirty, also while it is being written (mark_buffer_dirty)."""
        task.charge_system(self.buffer_ns)
        yield from self.mapping.wait_on_page(task, head.page, head.page + 1)
        head.dirty = True
        self.mapping.set_dirty(head.page, head.page + 1)

    def modify_for(self, task: Task, handle: Handle, inode: Inode, block: int) -> Blocking[None]:
        """Make a block dirty and note it with its inode (mark_buffer_dirty_inode)."""
        head = self.head_of(block)
        yield from self.modify_head(task, handle, head, False)
        if self.syncs_directories and inode.is_dir():
            yield from self.sync_buffer(task, head)
            return
        self.noted.setdefault(inode.ino, {})[head] = None

    def revoke(self, handle: Handle, block: int) -> None:
        """Nothing: there are no older copies of a block (bforget)."""

    def free(self, task: Task, handle: Handle, start: int, end: int) -> Blocking[None]:
        """Give blocks back at once (ext4_free_blocks)."""
        if self.discard is not None:
            yield from self.discard(task, [(start, end)])
        self.released(start, end)

    # --- sync

    def will_flush_data(self, tid: int) -> bool:
        """Return that no commit will: who wants a flush asks for it himself."""
        return False

    def force_commit_nested(self, task: Task) -> Blocking[None]:
        """Nothing: what was freed is free already, and sync_home() writes what is dirty."""
        return no_wait()

    def sync_home(self, task: Task) -> Blocking[None]:
        """Write all metadata that is dirty, and wait (sync_blockdev)."""
        mapping = self.mapping
        if mapping.nr_dirty:
            wbc = WritebackControl(WB_SYNC_ALL, ALL_PAGES)
            yield from mapping.a_ops.writepages(task, mapping, wbc)
        yield from mapping.wait_on_writeback(task, 0, LAST_PAGE)

    # --- fsync

    def write_inode(self, task: Task, ino: int, wait: bool) -> Blocking[None]:
        """Write the block that an inode is in, if somebody waits (ext4_write_inode)."""
        head = self.heads.get(self.layout.inode_block(ino))
        return no_wait() if head is None or not wait else self.sync_buffer(task, head)

    def sync_noted(self, task: Task, inode: Inode) -> Blocking[None]:
        """Write what is noted with an inode, and wait for all of it (sync_mapping_buffers)."""
        heads = list(self.noted.pop(inode.ino, {}))
        for head in heads:
            if head.dirty:
                yield from self._lock(task, head)
        yield from self._submit(task, [head for head in heads if head.dirty and not head.locked])
        for head in reversed(heads):
            yield from self._lock(task, head)

    def sync_buffer(self, task: Task, head: JournalHead) -> Blocking[None]:
        """Write a block if it is dirty, and wait for it (sync_dirty_buffer)."""
        yield from self._lock(task, head)
        if head.dirty:
            yield from self._submit(task, [head])
            yield from self._lock(task, head)

    def flush(self, task: Task) -> Blocking[None]:
        """Flush the drive's cache, which puts on the medium what was written before."""
        self.nr_flushes += 1
        number = self.nr_flushes
        self.flushing[number] = self.written
        self.written = {}
        yield from issue_flush(task, self.home)
        for earlier in [one for one in self.flushing if one <= number]:
            del self.flushing[earlier]

    def _lock(self, task: Task, head: JournalHead) -> Blocking[None]:
        """Wait until a block is not being written (lock_buffer, wait_on_buffer)."""
        while head.locked:
            self.home.unplug()
            yield from self.wait_buffer.io_sleep_on(task, TASK_UNINTERRUPTIBLE, "sync_buffer")

    def _submit(self, task: Task, heads: list[JournalHead]) -> Blocking[None]:
        """Submit dirty blocks together, each as a bio; adjacent ones merge in the plug."""
        task.charge_system(self.buffer_ns * len(heads))
        plug = Plug() if len(heads) > 1 and self.log.task_plug else None
        for head in heads:
            yield from submit_home(task, HomeWrite(self, [head]), self.sync_flags, plug)
        if plug is not None:
            plug.flush()

    # --- what a power cut takes back

    def expect_power_cut(self) -> None:
        super().expect_power_cut()
        self.forever.keeps_undo = self.forever.keeps_lives = True

    def send_home(self, head: JournalHead) -> None:
        """All changes to the block until now go with it."""
        super().send_home(head)
        if self.kept is None:
            return
        self._file_changes()
        block = head.block
        if block in self.written and not self._is_unsafe(block):
            del self.written[block]
        self.in_flight[block] = self.unwritten.pop(block, [])

    def came_home(self, head: JournalHead) -> None:
        """It is written: on the medium, or in the drive's cache."""
        super().came_home(head)
        if self.kept is not None:
            self.written.setdefault(head.block, []).extend(self.in_flight.pop(head.block))

    def lost_changes(self, unsafe: RangeSet) -> list[Undo]:
        """Return what is not on the medium, newest first; `unsafe` blocks are in a cache alone."""
        self._file_changes()
        lost = [one for changes in self.unwritten.values() for one in changes]
        lost += [one for changes in self.in_flight.values() for one in changes]
        for written in (self.written, *self.flushing.values()):
            for block, changes in written.items():
                if unsafe.intersects(block, block + 1):
                    lost += changes
        return [one.undo for one in sorted(lost, key=_number, reverse=True)]

    def _file_changes(self) -> None:
        """Sort what handles noted since the last look by the blocks that it is in."""
        for undo in self.forever.undo:
            self.nr_changes += 1
            self.unwritten.setdefault(undo.block, []).append(Change(self.nr_changes, undo))
            if undo.name is None and undo.size == ALIVE:
                self.dead[undo.inode] = None
        self.forever.undo.clear()

    def _is_unsafe(self, block: int) -> bool:
        """Return whether the block's latest write is in a cache alone."""
        first, last = block * SECTORS_PER_BLOCK, (block + 1) * SECTORS_PER_BLOCK
        return any(start < last and end > first for start, end in self.home.unsafe_runs())


class Change(NamedTuple):
    """A change, and how many came before it."""

    number: int
    undo: Undo


def _number(change: Change) -> int:
    return change.number


class BufferOps(MetadataOps):
    """Metadata in the block device's cache: a block may change while it is being written."""

    def __init__(self, buffers: NoJournal) -> None:
        super().__init__(buffers)
        self.buffers = buffers

    def writepage(
        self, task: Task, mapping: AddressSpace, start: int, end: int, wbc: WritebackControl
    ) -> Blocking[None]:
        """Submit what is dirty; what is dirty and being written waits, or stays dirty."""
        busy: list[int] = []
        for block in range(start, end):
            head = self.buffers.heads.get(block)
            if head is not None and head.dirty and head.locked:
                busy.append(block)
                if wbc.sync_mode == WB_SYNC_ALL:
                    yield from self.buffers.sync_buffer(task, head)
        yield from MetadataOps.writepage(self, task, mapping, start, end, wbc)
        for block in busy:
            head = self.buffers.heads.get(block)
            if head is not None and head.dirty:  # redirty_page_for_writepage
                mapping.set_dirty(block, block + 1)
