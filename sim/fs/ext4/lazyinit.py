"""ext4lazyinit: what a thread does soon after a mount, so that nobody has to wait for it later.

Models: *Block bitmaps* (5.13): at a random time within five seconds the thread reads all that are
not in memory, a flexible group (or 32 groups) after the other: whoever allocates has read those of
his own flexible group before (ext4_mb_prefetch). Behind a full queue these few reads take as long
as the queue: on a new 4 GiB file system two of six reads, 0.6 s each, are the mean of all.
*Inode tables*: the thread zeroes those that mke2fs left as they were, after the first mount. mke2fs
writes none when the kernel will (lazy_itable_init, by default since e2fsprogs 1.42 where
/sys/fs/ext4/features says that it can), so that it takes seconds. The thread then takes one group
after the other: it zeroes what no inode has used of the table, journals the descriptor, and sleeps.
How long it sleeps it measures once: `init_itable` (10) times what the first group took, flush and
all, in ticks. So it has 1/11 of the time of a disk that nobody else uses; beside a writer the first
group takes longer, and so do all pauses.
Hand estimate: 16 KiB an inode, 8192 inodes of 256 bytes a group: 2 MiB of every 128 MiB. 40 GB are
300 groups, 600 MB. At 151 MB/s a group takes 14 ms, a pause 140 ms, all of them 46 s: a writer who
shares the disk loses 6 to 9 % meanwhile, and nothing afterwards. On a disk of 1 TB: an hour.
Linux counterpart: ext4_lazyinit_thread, ext4_run_li_request (fs/ext4/super.c, 2.6.37),
ext4_init_inode_table (fs/ext4/ialloc.c), blkdev_issue_zeroout (block/blk-lib.c);
ext4_mb_prefetch, ext4_mb_prefetch_fini (fs/ext4/mballoc.c, 5.13: prefetch_block_bitmaps).
Invariants: bytes written = all tables but the blocks whose inodes were used before; groups in
order, one at a time.
Left out: that one thread serves all file systems; bitmaps where a mount found all metadata in
memory (`metadata_cached`), or where somebody asks for their prefetching (an option, 5.9 to 5.12);
zeroing by the device (write same, write zeroes), which instance stores and disks of the time have
not; lazy_journal_init, which nothing makes up for later; mke2fs itself (program `mkfs`), whose
discard of the whole device has happened before: a flash drive that takes it has `used = "0 %"`.
"""

from random import Random
from typing import TYPE_CHECKING, Final

from sim.block.bio import BIO_FUA, WRITE, Bio
from sim.block.device import submit_bio
from sim.fs.buffer import SECTORS_PER_BLOCK
from sim.fs.jbd2.transaction import journal_start, modify_block, stop_handle
from sim.sched.kthread import schedule_timeout
from sim.sched.task import TASK_INTERRUPTIBLE, TASK_UNINTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue
from sim.units import NS_PER_S

if TYPE_CHECKING:
    from sim.fs.ext4.super import Ext3

SINCE: Final = (2, 6, 37)  # bfff68738f1c
SINCE_PREFETCH: Final = (5, 13)  # 21175ca434c5: prefetch_block_bitmaps is the default
SINCE_IOWAIT: Final = (3, 9)  # 5577022f4ca9: wait_for_completion_io() in blkdev_issue_zeroout()
START_DELAY_S: Final = 5  # EXT4_DEF_LI_MAX_START_DELAY, fs/ext4/ext4.h
BIO_BLOCKS: Final = 256  # BIO_MAX_PAGES


class LazyInit:
    """What is left to do, and how long to wait between groups (struct ext4_li_request)."""

    def __init__(self, fs: "Ext3", wait_multiple: int, chance: Random) -> None:
        """Decide when to begin; `wait_multiple` is 0 if there are no tables to zero."""
        self.fs = fs
        delay_ns = chance.randrange(START_DELAY_S * NS_PER_S)
        self.start_delay_ns: int = max(0, delay_ns - fs.params.mounted_ago_ns)
        self.next_group: int = 0
        self.timeout_ns: int = 0  # measured at the first group
        self.blocks_zeroed: int = 0
        self.wait_multiple = wait_multiple  # s_li_wait_mult
        self._in_flight: int = 0
        self._done = WaitQueue()
        if fs.prefetches() and not self.start_delay_ns:
            self._have_read_all()

    def has_work(self) -> bool:
        """Tell whether anything is left to do."""
        return bool(self.wait_multiple) or (self.fs.prefetches() and bool(self.fs.unread_groups))

    def main(self, task: Task) -> Blocking[None]:
        """Read all bitmaps, then zero all tables, at leisure (ext4_lazyinit_thread)."""
        yield from self._pause(task, self.start_delay_ns)
        if self.fs.prefetches():
            yield from self._read_bitmaps(task)
        if self.wait_multiple:
            yield from self._zero_tables(task)

    def _have_read_all(self) -> None:
        """The thread read all bitmaps before the run."""
        fs = self.fs
        fs.unread_groups.clear()
        for group in fs.layout.groups:
            fs.metadata.add_pages(group.block_bitmap, group.block_bitmap + 1)

    def _read_bitmaps(self, task: Task) -> Blocking[None]:
        """Read what nobody has asked for (EXT4_LI_MODE_PREFETCH_BBITMAP), step after step."""
        fs = self.fs
        for first in sorted(fs.unread_groups):
            yield from fs.prefetch_bitmaps(task, first)
            for group in fs.layout.groups[first : first + fs.prefetch_step]:
                yield from fs.bread(task, group.block_bitmap)

    def _zero_tables(self, task: Task) -> Blocking[None]:
        fs = self.fs
        while self.next_group < len(fs.layout.groups):
            begun = self._jiffies()
            yield from self._init_inode_table(task, self.next_group)
            self.next_group += 1
            if not self.timeout_ns:
                ticks = self._jiffies() - begun
                self.timeout_ns = ticks * self.wait_multiple * fs.scheduler.tick_ns
            if self.timeout_ns:
                yield from self._pause(task, self.timeout_ns)
            else:
                yield from task.cond_resched()

    def _pause(self, task: Task, ns: int) -> Blocking[None]:
        return schedule_timeout(
            self.fs.scheduler, task, ns, TASK_INTERRUPTIBLE, "ext4_lazyinit_thread"
        )

    def _jiffies(self) -> int:
        return self.fs.calendar.now // self.fs.scheduler.tick_ns

    def _init_inode_table(self, task: Task, number: int) -> Blocking[None]:
        """Zero what was never used of a group's table (ext4_init_inode_table)."""
        fs = self.fs
        layout = fs.layout
        handle = yield from journal_start(task, fs.journal, 1)
        first_ino = number * layout.inodes_per_group + 1
        used = -(-(fs.inode_numbers.next_fresh[number] - first_ino) // layout.inodes_per_block)
        tables = layout.inodes_per_group // layout.inodes_per_block
        yield from modify_block(task, fs.journal, handle, layout.descriptor_block(number))
        if used < tables:
            start = layout.groups[number].inode_table + used
            yield from self._zeroout(task, start, tables - used)
        stop_handle(fs.journal, handle)

    def _zeroout(self, task: Task, start: int, count: int) -> Blocking[None]:
        """Write zeroes to blocks and wait (sb_issue_zeroout); flush behind the first group."""
        device = self.fs.device
        assert device is not None
        self.blocks_zeroed += count
        end = start + count
        while start < end:
            blocks = min(end - start, BIO_BLOCKS)
            is_last_of_first = not self.timeout_ns and start + blocks == end
            bio = Bio(
                WRITE, start * SECTORS_PER_BLOCK, blocks * SECTORS_PER_BLOCK, self._end_io, None, 1,
                BIO_FUA if is_last_of_first else 0, task.pid,
            )  # fmt: skip
            self._in_flight += 1
            if not device.submit(bio):
                yield from submit_bio(task, device, bio)
            start += blocks
        device.unplug()
        counts = self.fs.kernel >= SINCE_IOWAIT
        sleep = self._done.io_sleep_on if counts else self._done.sleep_on
        while self._in_flight:
            yield from sleep(task, TASK_UNINTERRUPTIBLE, "blkdev_issue_zeroout")

    def _end_io(self, bio: Bio) -> None:
        """One bio is on the device (interrupt)."""
        self._in_flight -= 1
        if not self._in_flight:
            self._done.wake_all()
