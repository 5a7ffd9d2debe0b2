"""Limits on what a disk is given: so many operations, so many bytes a second.

Theory of operation: time is cut into slices of 0.1 s. In a slice each direction may use what its
limits allow up to the slice's end; what was not used is kept within the slice and lost with it.
A bio that is within the limits goes on at once. Others wait in line, each direction its own, and
the submitter is free to go on (it waits where it would wait for the I/O); a kernel thread sends
them down when their time has come.

Models: blkio.throttle.{read,write}_{bps,iops}_device of cgroup v1 on the root group, io.max of v2,
as limits of a disk for all processes. Waiting here is not in the disk's counters: no request yet.
Linux counterpart: block/blk-throttle.c (2.6.37): tg_may_dispatch, throtl_trim_slice,
blk_throtl_dispatch_work_fn.
Invariants: a direction's bios leave in the order in which they came; each is charged once; bytes in
any interval <= rate x (interval + two slices), and one bio.
Left out: groups and their hierarchy, io.low (4.12), jiffies.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

from sim.block.bio import BIO_THROTTLED, SECTOR, Bio, Plug, end_bios
from sim.block.features import PER_TASK
from sim.block.genhd import BlockDevice
from sim.block.queue import Disk
from sim.engine.calendar import Timer
from sim.param import param
from sim.sched.core import Sched
from sim.sched.kthread import kthread_run
from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task
from sim.sched.wait import WaitQueue
from sim.units import NS_PER_S

SLICE_NS: Final = 100_000_000  # throtl_slice = HZ / 10
QUANTA: Final = (6, 2)  # of reads, of writes, in a round (throtl_grp_quantum 8)
_SOURCE: Final = "scenario: io.max, blkio.throttle.*"


@dataclass(frozen=True, kw_only=True)
class ThrottleParams:
    """The four limits of io.max; left away: no limit."""

    rbps: float | None = param(
        None, dim="bytes_per_s", source=_SOURCE, doc="most bytes read a second", minimum=1
    )
    wbps: float | None = param(
        None, dim="bytes_per_s", source=_SOURCE, doc="most bytes written a second", minimum=1
    )
    riops: float | None = param(
        None, dim="rate_per_s", source=_SOURCE, doc="most reads a second", minimum=1
    )
    wiops: float | None = param(
        None, dim="rate_per_s", source=_SOURCE, doc="most writes a second", minimum=1
    )

    def has_limits(self) -> bool:
        """Return whether there is any."""
        return any(one is not None for one in (self.rbps, self.wbps, self.riops, self.wiops))


NO_LIMITS: Final = ThrottleParams()


class Limit:
    """One direction: its limits, and what it has used of its slice (struct throtl_grp [rw])."""

    def __init__(self, bytes_per_s: float | None, ios_per_s: float | None) -> None:
        self.limited: bool = bytes_per_s is not None or ios_per_s is not None
        self._bps: float = bytes_per_s or float("inf")
        self._iops: float = ios_per_s or float("inf")
        self._start_ns: int = 0
        self._end_ns: int = -1
        self._bytes: float = 0.0
        self._ios: float = 0.0

    def room(self, nbytes: int, now_ns: int) -> int:
        """Return how many bios of so many bytes may go now, at most 2**30 (tg_may_dispatch)."""
        if now_ns > self._end_ns:
            self._start_ns = now_ns
            self._bytes = self._ios = 0.0
        self._extend(now_ns + SLICE_NS)
        allowed_s = self._allowed_ns(now_ns) / NS_PER_S
        by_bytes = (self._bps * allowed_s - self._bytes) / nbytes if nbytes else float("inf")
        return max(0, int(min(by_bytes, self._iops * allowed_s - self._ios, 2.0**30)))

    def _allowed_ns(self, now_ns: int) -> int:
        """Return the time since the slice began, up to the end of a whole slice."""
        return max(1, -(-(now_ns - self._start_ns) // SLICE_NS)) * SLICE_NS

    def wait_ns(self, nbytes: int, now_ns: int) -> int:
        """Return after which time the next bio may go, which may not now."""
        elapsed_ns = now_ns - self._start_ns
        allowed_ns = self._allowed_ns(now_ns)
        extra = self._bytes + nbytes - self._bps * allowed_ns / NS_PER_S
        by_bytes = 0
        if extra > 0:
            by_bytes = int(extra * NS_PER_S / self._bps) + allowed_ns - elapsed_ns
        by_ios = int((self._ios + 1) * NS_PER_S / self._iops) - elapsed_ns
        wait_ns = max(by_bytes, by_ios, 1)
        self._extend(now_ns + wait_ns)
        return wait_ns

    def _extend(self, end_ns: int) -> None:
        self._end_ns = max(self._end_ns, -(-end_ns // SLICE_NS) * SLICE_NS)

    def charge(self, count: int, nbytes: int, now_ns: int) -> None:
        """Charge bios that go; give up what whole slices have passed (throtl_trim_slice)."""
        self._bytes += count * nbytes
        self._ios += count
        slices = (now_ns - self._start_ns) // SLICE_NS
        if slices:
            passed_s = slices * SLICE_NS / NS_PER_S
            self._bytes = max(0.0, self._bytes - self._bps * passed_s)
            self._ios = max(0.0, self._ios - self._iops * passed_s)
            self._start_ns += slices * SLICE_NS


class Waiting:
    """A run of bios in line, and how many of them have gone."""

    def __init__(self, bio: Bio) -> None:
        self.bio = bio
        self.gone: int = 0

    def piece(self, count: int) -> Bio:
        """Return the next bios of the run as a run of their own, which ends them."""
        bio = self.bio
        sector = bio.sector + self.gone * bio.size
        flags = bio.flags | BIO_THROTTLED
        made = Bio(bio.op, sector, count * bio.size, _ended, bio, count, flags, bio.task_id)
        made.end_part = _end_part
        made.partition = bio.partition
        self.gone += count
        return made


class Throttle(BlockDevice):
    """A disk behind its limits; it has the disk's name and row."""

    def __init__(
        self, below: BlockDevice, params: ThrottleParams, sched: Sched, plugs: bool
    ) -> None:
        super().__init__(below.stats, below.capacity_sectors)
        self.supports_barriers = below.supports_barriers
        self.takes_fua = below.takes_fua
        self.rotational = below.rotational
        self.max_sectors = below.max_sectors
        self.max_discard_sectors = below.max_discard_sectors
        self.discard_sectors = below.discard_sectors
        self._below = below
        self._calendar = sched.calendar
        self._plugs = plugs
        self._limits = (Limit(params.rbps, params.riops), Limit(params.wbps, params.wiops))
        self._lines: tuple[deque[Waiting], deque[Waiting]] = (deque(), deque())
        self._wanted: bool = False
        self._timer: Timer | None = None
        self._wait = WaitQueue()
        self.task: Task = kthread_run(sched, "kthrotld", self._main)

    def submit_bio(self, bio: Bio) -> bool:
        """Pass the run on if it is within the limits, else put it in line (blk_throtl_bio)."""
        direction = bio.op & 1
        limit = self._limits[direction]
        if bio.flags & BIO_THROTTLED or not limit.limited:
            return self._below.submit_bio(bio)
        now_ns = self._calendar.now
        line = self._lines[direction]
        nbytes = bio.size * SECTOR
        if not line and limit.room(nbytes, now_ns) >= bio.count:
            limit.charge(bio.count, nbytes, now_ns)
            bio.flags |= BIO_THROTTLED
            return self._below.submit_bio(bio)
        line.append(Waiting(bio))
        bio.submitted = bio.count
        if len(line) == 1:
            self._wake_thread(None)
        return True

    def get_request_wait(self, task: Task, bio: Bio) -> Blocking[None]:
        yield from self._below.get_request_wait(task, bio)

    def unplug(self) -> None:
        self._below.unplug()

    def congested(self, op: int) -> bool:
        return self._below.congested(op)

    def dirtier_sleeps(self, now_ns: int) -> None:
        self._below.dirtier_sleeps(now_ns)

    # -- kthrotld.

    def _wake_thread(self, _: object) -> None:
        self._wanted = True
        self._wait.wake_one()

    def _main(self, task: Task) -> Blocking[None]:
        while True:
            while not self._wanted:
                yield from self._wait.sleep_on(task, TASK_INTERRUPTIBLE, "worker_thread")
            self._wanted = False
            yield from self._dispatch(task)
            self._set_timer()

    def _dispatch(self, task: Task) -> Blocking[None]:
        """Send down what may go, in rounds of reads and writes."""
        plug = Plug() if self._plugs else None
        sent = True
        while sent:
            sent = False
            for direction, quantum in enumerate(QUANTA):
                left = quantum
                while left > 0 and (piece := self._take(direction, left)) is not None:
                    sent = True
                    left -= piece.count
                    piece.plug = plug
                    yield from self._below.submit(task, piece)
        if plug is not None:
            plug.flush()
        self._below.unplug()

    def _take(self, direction: int, quantum: int) -> Bio | None:
        """Take up to a quantum of the first run in line, as far as the limits allow."""
        line = self._lines[direction]
        if not line:
            return None
        first = line[0]
        nbytes = first.bio.size * SECTOR
        limit = self._limits[direction]
        now_ns = self._calendar.now
        count = min(limit.room(nbytes, now_ns), quantum, first.bio.count - first.gone)
        if not count:
            return None
        limit.charge(count, nbytes, now_ns)
        piece = first.piece(count)
        if first.gone == first.bio.count:
            line.popleft()
        return piece

    def _set_timer(self) -> None:
        """Look again when the first bio of a line may go."""
        if self._timer is not None:
            self._timer.cancel()
        now_ns = self._calendar.now
        waits = [
            limit.wait_ns(line[0].bio.size * SECTOR, now_ns)
            for limit, line in zip(self._limits, self._lines, strict=True)
            if line
        ]
        if waits:
            self._timer = self._calendar.call_after(min(waits), self._wake_thread, None)


def behind_limits(disk: Disk, params: ThrottleParams, sched: Sched) -> BlockDevice:
    """Return the disk, behind its limits if it has any."""
    if not params.has_limits():
        return disk
    return Throttle(disk, params, sched, disk.params.plug == PER_TASK)


def _end_part(piece: Bio, sector: int, count: int) -> None:
    bio = piece.private
    assert isinstance(bio, Bio)
    if piece.error:
        bio.error = piece.error
    end_bios(bio, sector, count)


def _ended(piece: Bio) -> None:
    """Its parts have ended the bio that it is of."""
