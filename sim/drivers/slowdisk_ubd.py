"""The way to an emulated disk from a user mode Linux guest.

Models: one I/O thread of the host takes all requests that wait, works through them one page at a
time, and hands all back together. After a page it goes on at once, or, if the host's CPUs are busy
with other work, only when that has had its slice.
Linux counterpart: arch/um/drivers/ubd_kern.c (7.2: io_thread, bulk_req_safe_read,
UBD_REQ_BUFFER_SIZE).
Invariants: a request costs one round trip for each page; requests are served in order. Flushes do
not reach the emulator (the disk traces of u_c_mailq have none).
Left out: the guest's interrupt path, which is in the scheduler's cost of interrupts.
"""

from sim.block.bio import PAGE_SECTORS
from sim.block.request import FLUSH, Request
from sim.drivers.slowdisk_model import Job
from sim.drivers.slowdisk_way import SlowdiskParams, Way


class UbdWay(Way):
    """The disk driver of user mode Linux."""

    depth = 64  # UBD_REQ_BUFFER_SIZE

    def __init__(self, params: SlowdiskParams) -> None:
        self._path_ns = params.ubd_path_ns
        self._poll_ns = params.loop_poll_ns
        self._wake_ns = params.ubd_wake_ns
        self._stall_share = params.ubd_stall_share
        self._stall_share_long = params.ubd_stall_share_long
        self._stall_ns = params.ubd_stall_ns
        self._waiting: list[Request] = []
        self._bulk: list[Request] = []
        self._current: int = 0  # index in the bulk
        self._sectors_done: int = 0  # of the current request

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
        if request.op == FLUSH:  # os_sync_file(): the host's fdatasync, which asks no emulator
            self.calendar.post(self._path_ns, self._back, self.ask(request, 0, 0, self._replied))
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
        done = self._bulk
        self._bulk = []
        for request in done:
            self.complete(request)
        if self._waiting and not self._bulk:
            self._take_bulk()
