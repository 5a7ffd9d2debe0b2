"""Barriers and cache flushes.

Models two mechanisms. A *hard barrier* (BIO_BARRIER, to 2.6.36) waits until the driver is empty,
then flush, write, flush; meanwhile nothing else is dispatched, and nothing submitted later passes
it. From 2.6.37 BIO_FLUSH and BIO_FUA order nothing: flush, write, flush for this bio alone.
Flushes wanted while one is under way share the next one, and while the data of such a bio is being
written, the flush that follows it (2.6.39, ae1b1539622f: conditions C1 to C3). Without a volatile
write cache a barrier only drains, and the flags of the second kind mean nothing.
Linux counterpart: blk_do_ordered, start_ordered, block/ll_rw_blk.c (2.6.16; QUEUE_ORDERED_DRAIN,
_DRAIN_FLUSH); block/blk-flush.c (2.6.37). For BIO_FLUSH before 2.6.37 read blkdev_issue_flush.
Invariants: a barrier is alone in the driver; at most one flush is under way and one set of
sequences waits for the next; a sequence's bio ends after its last step. A bio without data (an
fsync that finds nothing to write, blkdev_issue_flush) counts as a write of no sectors.
Left out: that a barrier without data costs a drive without cache nothing; FUA in the drive (few
SATA drives of the time were asked for it: libata.fua=0).
"""

from typing import TYPE_CHECKING, Final

from sim.block.bio import BIO_BARRIER, BIO_FLUSH, BIO_FUA, WRITE, Bio, end_bios
from sim.block.request import FLUSH, Request
from sim.block.requeue import RequeueList, put_before

if TYPE_CHECKING:
    from sim.block.queue import Disk

PENDING_NS_MAX: Final = 5_000_000_000  # FLUSH_PENDING_TIMEOUT, block/blk-flush.c
_DRAIN: Final = 0
_PREFLUSH: Final = 1
_WRITE: Final = 2
_POSTFLUSH: Final = 3
_EMPTY: Final = 4  # a barrier without data: one flush (start_ordered, 2.6.33)


class Ordered:
    """The barrier and flush sequences of one queue."""

    def __init__(self, disk: "Disk") -> None:
        self._disk = disk
        self.slotless: int = 0  # FLUSH requests: they exist beside the pools
        self.held: int = 0  # requests with a slot that are neither waiting nor in the driver
        self.active: bool = False  # a barrier's sequence is under way
        self.requeue_list: RequeueList | None = None  # through which steps go, from kblockd on
        self._barrier: Request | None = None
        self._step: int = _DRAIN
        self._due: Request | None = None  # what the sequence dispatches next
        self._pending: list[Request] = []  # wait for the next flush
        self._flushing: list[Request] = []  # wait for the one under way
        self._flush_under_way: bool = False
        self._data_in_flight: int = 0  # sequences whose data is being written
        self._pending_since_ns: int = 0

    def submit(self, bio: Bio) -> bool:
        """Take over a bio with one of the flags; False when it needs a slot."""
        assert bio.count == 1
        if bio.flags & BIO_BARRIER == 0 and not self._disk.driver.write_cache:
            return self._submit_plain(bio)
        now_ns = self._disk.calendar.now
        if bio.nr_sectors:
            if not bio.granted and not self._disk.get_request(bio, now_ns):
                return False
            bio.granted = False
            request = self._disk.take_request(bio, bio.sector, now_ns)
            self._disk.account_start(request, now_ns)
        else:
            request = Request(FLUSH, bio.sector, 0, now_ns, bio, 0, bio.flags)
        self._disk.accept_bios(bio, 1)
        if bio.plug is not None:
            bio.plug.flush()
        if bio.flags & BIO_BARRIER:
            self._add_barrier(request)
        else:
            self._begin(request)
        return True

    def _submit_plain(self, bio: Bio) -> bool:
        """Submit without the flags: nothing is cached, nothing to flush."""
        if bio.nr_sectors:
            bio.flags &= ~(BIO_FLUSH | BIO_FUA)
            return self._disk.submit_bio(bio)
        bio.submitted = 1
        self._disk.calendar.post(0, _end_empty, bio)
        return True

    # -- Hard barriers.

    def _add_barrier(self, request: Request) -> None:
        """Queue it behind all that came before (ELEVATOR_INSERT_BACK)."""
        disk = self._disk
        for waiting in disk.elevator.drain(disk.calendar.now):
            disk.merges.remove(waiting)
            disk.dispatch.append(waiting)
        if request.op == FLUSH:
            self.slotless += 1
        disk.nr_waiting += 1
        disk.dispatch.append(request)
        disk.plugged = False
        disk.run_queue()

    def next(self) -> Request | None:
        """Return the next request from ahead of the elevator, if it may go now."""
        if self._barrier is not None:
            due = self._due
            self._due = None
            return due
        disk = self._disk
        if disk.dispatch[0].flags & BIO_BARRIER == 0:
            return disk.dispatch.popleft()
        if disk.in_driver:
            return None
        barrier = self._barrier = disk.dispatch.popleft()
        self.active = True
        if barrier.op == FLUSH:
            self._step = _EMPTY
            return barrier
        if disk.driver.write_cache:
            self._step = _PREFLUSH
            return self._flush_request()
        self._step = _WRITE
        return barrier

    def _flush_request(self) -> Request:
        self.slotless += 1
        self._disk.nr_waiting += 1
        return Request(FLUSH, 0, 0, self._disk.calendar.now, None, 0, BIO_FLUSH)

    def completed(self, request: Request) -> None:
        """Take the next step of the sequence that ``request`` was a step of."""
        if request.op == FLUSH:
            self.slotless -= 1
            self._account_flush(request)
        if self._barrier is not None:
            self._advance_barrier()
        elif request.op == FLUSH:
            self._flush_done()
        else:
            self._data_in_flight -= 1
            if request.flags & BIO_FUA:
                self.held += 1
                self._wait_for_flush(request)
            else:
                self._disk.finish(request)
                self._kick_flush()

    def _account_flush(self, request: Request) -> None:
        """Count a flush that the device has executed (blk_account_io_flush)."""
        stats = self._disk.stats
        stats.flushes += 1
        stats.flush_ns += self._disk.calendar.now - request.start_ns

    def _advance_barrier(self) -> None:
        barrier = self._barrier
        assert barrier is not None
        if self._step == _PREFLUSH:
            self._step = _WRITE
            self._due = barrier
        elif self._step == _WRITE and self._disk.driver.write_cache:
            self._step = _POSTFLUSH
            self.held += 1
            self._due = self._flush_request()
        else:
            if self._step == _POSTFLUSH:
                self.held -= 1
            self._step = _DRAIN
            self._barrier = None
            self.active = False
            if barrier.op == FLUSH:
                self._end_flush_bio(barrier)
            else:
                self._disk.finish(barrier)

    # -- Flushes that order nothing.

    def _begin(self, request: Request) -> None:
        if request.op != FLUSH:
            self.held += 1
        else:
            self._disk.stats.start(1, request.start_ns)
        if request.flags & BIO_FLUSH:
            request.elevator_private = None
            self._wait_for_flush(request)
        else:
            self._let_go(request)
            put_before(self._disk.dispatch, request)
            self._disk.run_queue()

    def _let_go(self, request: Request) -> None:
        """A sequence's data go to the driver now, ahead of the elevator."""
        self.held -= 1
        self._data_in_flight += 1
        self._disk.nr_waiting += 1

    def _wait_for_flush(self, request: Request) -> None:
        if not self._pending:
            self._pending_since_ns = self._disk.calendar.now
        self._pending.append(request)
        self._kick_flush()

    def _kick_flush(self) -> None:
        """Flush for all that wait, unless one is under way or will be after data (blk_kick_flush).

        While a sequence's data is being written its flush is to come, and serves them all.
        """
        if self._flush_under_way or not self._pending:
            return
        waited_ns = self._disk.calendar.now - self._pending_since_ns
        if self._data_in_flight and waited_ns < PENDING_NS_MAX:
            return
        self._flush_under_way = True
        self._flushing = self._pending
        self._pending = []
        self._disk.plugged = False
        self._dispatch(self._flush_request())

    def _dispatch(self, step: Request) -> None:
        """Have the next step of a sequence go to the driver, at once or through kblockd."""
        if self.requeue_list is None:
            put_before(self._disk.dispatch, step)
            self._disk.run_queue()
        else:
            self.requeue_list.add(step)

    def _flush_done(self) -> None:
        """Let all that waited for this flush go on (blk_flush_complete_seq)."""
        waiting = self._flushing
        self._flushing = []
        self._flush_under_way = False
        for request in waiting:
            if request.op == FLUSH:
                self._account_empty(request)
                self._end_flush_bio(request)
            elif request.started:  # The data is written: this was the flush after it.
                self.held -= 1
                self._disk.finish(request)
            else:
                self._let_go(request)
                self._dispatch(request)
        self._kick_flush()

    def _account_empty(self, request: Request) -> None:
        """Count a bio without data as the write of no sectors that its request is."""
        now_ns = self._disk.calendar.now
        self._disk.stats.done(WRITE, 1, 0, now_ns - request.start_ns, now_ns)

    def _end_flush_bio(self, request: Request) -> None:
        assert request.bio is not None
        self._disk.bios_held -= 1
        end_bios(request.bio, request.sector, 1)


def _end_empty(bio: Bio) -> None:
    end_bios(bio, bio.sector, 1)
