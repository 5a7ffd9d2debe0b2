"""The active item list: what is in the log and not home yet; and who writes it home.

Theory of operation (fs/xfs/xfs_trans_ail.c)
 - When a record is on the disk its items are unpinned and enter the list, at the record's lsn; an
   item that is in it already moves to its end. The first one's lsn is the log's tail.
 - The tail is pushed when less than a quarter of the log is free, and every 30 s all of it: buffers
   are written home in the order of their sectors. An inode goes with its cluster, and takes the
   other dirty ones of the cluster along. Pinned items need the log forced first.
 - So metadata changed all the time (headers, a busy directory) is written home twice a minute,
   however often it is logged.
Linux counterpart: fs/xfs/xfs_trans_ail.c xfsaild_push, xfs_inode_item.c xfs_iflush_cluster, 6.18;
 the thread exists from 2.6.28 (249a8c1124653); before, whoever waited for space pushed and
 xfsbufd wrote, which has both parts here then.
Invariants: the list is ascending by lsn; nothing on it is written home while it is pinned.
Left out: the pauses of 10 to 50 ms by what was met (20 ms here); transactions in flight that have
 their own order (intents).
"""

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from sim.block.bio import Bio
from sim.block.plug import Plug
from sim.fs.buffer import SINCE_TASK_PLUG
from sim.fs.xfs.alloc import FreeSpace
from sim.fs.xfs.buf import Buf, HomeWrite
from sim.fs.xfs.discard import Discards
from sim.fs.xfs.items import LogItem
from sim.sched.task import (
    TASK_INTERRUPTIBLE,
    Blocking,
    Task,
)
from sim.sched.wait import WaitQueue

if TYPE_CHECKING:
    from sim.fs.xfs.sb import InodeItem, XfsSb

# xfsaild_push (fs/xfs/xfs_trans_ail.c, 2.6.39 on): 20 ms if most of what it met was stuck; the
# 10 and 50 ms of its other answers are left out.
PAUSE_NS: Final = 20_000_000
ITEMS_MAX: Final = 1000  # looked at in one go


class Ail:
    """The active item list (struct xfs_ail)."""

    def __init__(self, fs: "XfsSb", discards: Discards) -> None:
        self.fs = fs
        self.discards = discards
        self.items: dict[LogItem, None] = {}  # ascending by lsn
        self.target: int = -1
        self.work = WaitQueue()
        self.durable_transaction: int = 0
        self.log_force_due: bool = False

    def oldest_lsn(self) -> int:
        """Return the lsn of the first item, -1 if there is none."""
        for item in self.items:
            return item.lsn
        return -1

    def committed(
        self, items: dict[LogItem, None], freed: list[tuple[FreeSpace, int, int]], lsn: int,
        transaction: int,
    ) -> None:  # fmt: skip
        """A record with these items is on the disk (xfs_trans_committed_bulk)."""
        for item in items:
            item.pin_count -= 1
            assert item.pin_count >= 0
            self._insert(item, lsn)
        self.discards.committed(freed)
        assert transaction >= self.durable_transaction
        self.durable_transaction = transaction
        if self.target >= lsn:
            self.work.wake_all()

    def _insert(self, item: LogItem, lsn: int) -> None:
        """Put an item at the end of the list; one without a home leaves it."""
        if lsn < item.lsn:
            return
        self.items.pop(item, None)
        item.lsn = -1
        if item.home() is None:
            return
        item.lsn = lsn
        youngest = next(reversed(self.items)).lsn if self.items else lsn
        self.items[item] = None
        if lsn < youngest:  # Without delayed logging, a commit record may overtake another's.
            self.items = {one: None for one in sorted(self.items, key=attrgetter("lsn"))}

    def remove(self, item: LogItem) -> None:
        """An item is home, or its blocks are nobody's."""
        if item.lsn >= 0:
            item.lsn = -1
            del self.items[item]

    # --- pushing

    def push(self, target: int) -> None:
        """Have everything up to `target` written home (xfs_ail_push)."""
        if target > self.target:
            self.target = target
            self.work.wake_all()

    def push_all(self) -> None:
        """Have everything written home that is in the list now."""
        for item in reversed(self.items):
            self.push(item.lsn)
            return

    def daemon(self, task: Task) -> Blocking[None]:
        """xfsaild: write home what the target asks for; sleep."""
        while True:
            busy = yield from self._push_some(task)
            if self.log_force_due:
                self.log_force_due = False
                yield from self.fs.force_log(task)
            if busy:
                yield from self.work.sleep_on_timeout(task, PAUSE_NS, TASK_INTERRUPTIBLE, "xfsaild")
            else:
                yield from self.work.sleep_on(task, TASK_INTERRUPTIBLE, "xfsaild")

    def _push_some(self, task: Task) -> Blocking[bool]:
        """Submit what may be written home; return whether there is more to do up to the target."""
        buffers: dict[Buf, None] = {}
        looked_at = 0
        for item in self.items:
            if item.lsn > self.target or looked_at == ITEMS_MAX:
                break
            looked_at += 1
            home = item.home()
            # Without a home: freed by a transaction that is not on the disk yet, and then leaves.
            if home is None or item.pin_count or home.pin_count:
                self.log_force_due = True
            elif home.may_go():
                buffers[home] = None
        plug = Plug() if self.fs.kernel >= SINCE_TASK_PLUG else None
        for buf in sorted(buffers, key=attrgetter("sector")):
            if buf.may_go():
                yield from self.write_home(task, buf, plug)
        if plug is not None:
            plug.flush()
        return looked_at > 0

    def write_home(self, task: Task, buf: Buf, plug: Plug | None) -> Blocking[None]:
        """Write a buffer with all that may go with it."""
        fs = self.fs
        task.charge_system(fs.params.buffer_ns * (1 + len(buf.inodes)))
        if not buf.uptodate:
            yield from buf.bread(task, fs.disk)
            if not buf.may_go():
                return
        write = BufHomeWrite(self, buf)
        yield from buf.write(task, fs.disk, write, plug)


class BufHomeWrite(HomeWrite):
    """A buffer on its way home with the items in it that are not pinned."""

    def __init__(self, ail: Ail, buf: Buf) -> None:
        self.ail = ail
        self.buf = buf
        self.lsn = buf.lsn
        self.items: list[tuple[InodeItem, int]] = []
        for item in list(buf.inodes):
            if not item.pin_count and item.lsn >= 0:
                self.items.append((item, item.lsn))
                item.begin_flush()

    def end_io(self, bio: Bio) -> None:
        """It is home (interrupt): its items leave the list, unless they were logged anew."""
        ail, buf = self.ail, self.buf
        buf.io = False
        buf.mask = 0
        if buf.lsn == self.lsn:
            ail.remove(buf)
        for item, lsn in self.items:
            if item.lsn == lsn:
                ail.remove(item)
                if not item.pin_count:
                    ail.fs.inode_is_home(item)
        buf.wait.wake_all()
        ail.fs.log.tail_moved()
