"""The way to an emulated disk from a user mode Linux guest.

Theory of operation (arch/um/drivers/ubd_kern.c, 7.2)
 - The guest writes a request to a pipe. One I/O thread of the host, which sleeps in poll() while
   there are none, takes all that wait (bulk_req_safe_read), works through them, a pread() or
   pwrite() for each page, and writes them all back together.
 - That raises SIGIO in the guest's kernel, whose handler ends all of them: one interrupt. So a
   request that is done first waits for the last of its bulk, and a flush behind sixty pages ends
   with them.
 - A flush has no descriptors (do_io is never called for it), so it costs the round trip alone and
   never reaches the emulator: the disk traces of u_c_mailq have none.

Models: that; after a page the thread goes on at once, or, if the host's CPUs are busy with other
work, only when that has had its slice.
Waking the thread and the signal take their time together, at the end of a bulk: what a task of the
twin submits at one instant is some microseconds apart in the guest, where the first request is gone
before the next is there.
Estimate: 40 us for a flush that finds the thread asleep, 191 us for a page of a sequential write.
Linux counterpart: arch/um/drivers/ubd_kern.c (7.2: io_thread, bulk_req_safe_read, ubd_handler,
UBD_REQ_BUFFER_SIZE), arch/um/os-Linux/signal.c.
Invariants: a request costs one round trip for each page; requests are served in order; those of a
bulk end together, after one interrupt.
Left out: signals that the guest has blocked: a handler begins at once, where a system call of the
guest's would let it wait for some microseconds.
"""

from collections.abc import Callable

from sim.block.bio import FLUSH, PAGE_SECTORS, Request
from sim.drivers.slowdisk_model import Job
from sim.drivers.slowdisk_way import SlowdiskParams, Way


def _unheard() -> None:
    """Interrupt nobody: no machine has wired the disk."""


class UbdWay(Way):
    """The disk driver of user mode Linux."""

    depth = 64  # UBD_REQ_BUFFER_SIZE

    def __init__(self, params: SlowdiskParams) -> None:
        self._turn_ns = params.ubd_turn_ns
        self._path_ns = params.ubd_path_ns
        self._poll_ns = params.loop_poll_ns
        self._wake_ns = params.ubd_wake_ns
        self._stall_share = params.ubd_stall_share
        self._stall_share_long = params.ubd_stall_share_long
        self._stall_ns = params.ubd_stall_ns
        self._waiting: list[Request] = []
        self._interrupt: Callable[[], None] = _unheard
        self._bulk: list[Request] = []
        self._current: int = 0  # index in the bulk
        self._sectors_done: int = 0  # of the current request

    def wire(self, serve: Callable[[], None]) -> bool:
        self._interrupt = serve
        return True

    def submit(self, request: Request) -> None:
        self._waiting.append(request)
        if not self._bulk:
            self._take_bulk()

    def _take_bulk(self) -> None:
        """bulk_req_safe_read(): all that waits, up to the size of the buffer."""
        self._bulk = self._waiting
        self._waiting = []
        self._current = self._sectors_done = 0
        self._segment()

    def _segment(self) -> None:
        """Start the next page of the current request (do_io of one descriptor)."""
        request = self._bulk[self._current]
        if request.op == FLUSH:  # It has no descriptors, so that there is nothing to do.
            self._back(self.ask(request, 0, 0, self._replied))
            return
        sectors = min(PAGE_SECTORS, request.nr_sectors - self._sectors_done)
        sector = request.sector + self._sectors_done
        self.model.arrive(self.ask(request, sector, sectors, self._replied))

    def _replied(self, job: Job) -> None:
        """The page is done: the thread wakes, and may find the host's CPUs busy."""
        delay_ns = self._path_ns
        share = self._stall_share
        if self.calendar.now - job.arrived_ns > self._poll_ns:  # The CPUs have gone to sleep.
            delay_ns += int(self.chance.expovariate(1.0) * self._wake_ns)
            share = self._stall_share_long
        if self.chance.random() < share:
            delay_ns += int(self.chance.expovariate(1.0) * self._stall_ns)
        self.calendar.post(delay_ns, self._back, job)

    def _back(self, job: Job) -> None:
        self._sectors_done += job.sectors
        if self._sectors_done >= self._bulk[self._current].nr_sectors:
            self._current += 1
            self._sectors_done = 0
        if self._current < len(self._bulk):
            self._segment()
            return
        self.calendar.post(self._turn_ns, self._handle, self._bulk)
        self._bulk = []
        if self._waiting:
            self._take_bulk()

    def _handle(self, done: list[Request]) -> None:
        """The guest has had its signal and reads what was written (ubd_handler)."""
        self._interrupt()
        for request in done:
            self.complete(request)
