"""An NVMe SSD: flash behind PCIe lanes, with several submission queues.

Models: every queue is served in order, the controller takes from them in turn (round robin), a
command at a time; tasks are spread over the queues by number, as CPUs are. Then flash (flash.py),
and the lanes of the direction: reads and writes do not share them.
Hand estimates (Intel DC P3700, 2 TB): 460,000 reads a second from 2.17 us a command; 2.8 GB/s from
the lanes; random writes of a full drive with 24 % spare: 2 GB/s / 4 KiB / 2.8 = 173,000 a second,
as its data sheet says.
Linux counterpart: drivers/nvme/host/pci.c: one queue for each CPU (3.19), round robin arbitration.
Invariants: one command in the processor, one transfer a direction; a queue is never overtaken by
itself; every request ends once.
Left out: weighted arbitration, completion queues and their interrupts apart, host memory buffers.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any

from sim.block.bio import SECTOR, Request
from sim.block.features import NVME
from sim.drivers.flash import FlashDrive, FlashParams
from sim.drivers.pipe import Pipe
from sim.param import param, redeclare
from sim.registry import register


@dataclass(frozen=True, kw_only=True)
class NvmeParams(FlashParams):
    """A drive on PCIe. The flash has the defaults of a small drive: a profile says more."""

    queues: int = param(
        8,
        dim="count",
        source="assumed: one for each CPU of a small server",
        minimum=1,
        doc="submission queues",
    )
    poll_queues: int = param(
        0,
        dim="count",
        source="drivers/nvme/host/pci.c: poll_queues=0",
        minimum=0,
        doc="queues without an interrupt beside them, for io_uring's polled I/O (5.1 on)",
    )
    queue_entries: int = param(
        1023,
        dim="count",
        source="drivers/nvme/host/pci.c: NVME_Q_DEPTH 1024, one stays empty",
        doc="commands in a queue",
        minimum=1,
    )
    read_lanes_bytes_per_s: float = param(
        "2.8 GB/s",
        dim="bytes_per_s",
        minimum=1,
        key="read_lanes",
        source="data sheet: sequential reads; PCIe 3.0 x4 carries 3.9 GB/s",
        doc="to the host",
    )
    write_lanes_bytes_per_s: float = param(
        "3.2 GB/s",
        dim="bytes_per_s",
        minimum=1,
        key="write_lanes",
        source="assumed: PCIe 3.0 x4, 3.9 GB/s less a fifth for packets",
        doc="from the host",
    )
    command_ns: int = redeclare(
        FlashParams, "command_ns", "2.17 us", source="data sheet: 460,000 random reads/s"
    )
    read_overhead_ns: int = redeclare(
        FlashParams,
        "read_overhead_ns",
        "5 us",
        source="assumed: firmware and bus, data sheet: 20 us sequential",
    )
    write_overhead_ns: int = redeclare(
        FlashParams,
        "write_overhead_ns",
        "16 us",
        source="fit: 20 us sequential write latency of the data sheet",
    )
    flush_overhead_ns: int = redeclare(
        FlashParams, "flush_overhead_ns", "10 us", source="assumed: a command with nothing to do"
    )


class Nvme(FlashDrive):
    """One drive with one namespace."""

    kind = NVME

    @classmethod
    def nr_hw_queues(cls, params: object) -> int:
        assert isinstance(params, NvmeParams)
        return params.queues

    def __init__(self, params: NvmeParams) -> None:
        super().__init__(
            params, Pipe(params.read_lanes_bytes_per_s), Pipe(params.write_lanes_bytes_per_s)
        )
        self.queue_depth = params.queues * params.queue_entries
        self.hardware_queues = params.queues
        self.poll_queues = params.poll_queues
        self.max_discard_sectors = 0xFFFFFFFF // SECTOR
        self.write_cache = not params.buffer_protected  # Identify Controller, VWC
        # nvme_update_disk_info(): blk_queue_write_cache(queue, vwc, vwc)
        self.fua = self.write_cache if params.fua is None else params.fua
        self._queues: list[deque[Request]] = [deque() for _ in range(params.queues)]
        self._filled: int = 0  # a bit for each queue: whether it has commands
        self._turn: int = 0  # the queue that was served last,
        self._bit: int = 1  # and its bit
        self._busy: bool = False
        self._fetched_fn: Any = self._fetched  # Bound once, as it is needed for each command.

    @classmethod
    def refusal(cls, params: object) -> str:
        assert isinstance(params, NvmeParams)
        if params.fua and params.buffer_protected:
            return (
                "fua: a drive with buffer_protected has no volatile cache to write through, got"
                " true (accepted: false, or buffer_protected = false)"
            )
        return super().refusal(params)

    def submit(self, request: Request) -> None:
        number = request.task_id % self.hardware_queues
        queue = self._queues[number]
        if not queue:
            self._filled |= 1 << number
        queue.append(request)
        if not self._busy:
            self._busy = True
            calendar = self._calendar
            first = self._next_command()
            calendar.post_at(calendar.now + self._command_ns, self._fetched_fn, first)

    def _next_command(self) -> Request:
        """Take a command from the next queue that has one."""
        filled = self._filled
        if filled != self._bit:
            behind = filled >> self._turn + 1
            if behind:  # The lowest bit that is set: 20 times as fast as asking 31 queues.
                self._turn += (behind & -behind).bit_length()
            else:
                self._turn = (filled & -filled).bit_length() - 1
            self._bit = 1 << self._turn
        queue = self._queues[self._turn]
        request = queue.popleft()
        if not queue:
            self._filled = filled - self._bit
        return request

    def _fetched(self, request: Request) -> None:
        """Carry out a command, and fetch the next ones as long as nothing else happens."""
        calendar = self._calendar
        command_ns = self._command_ns
        while True:
            now_ns = calendar.now
            self._carry_out(request, now_ns)
            if not self._filled:
                self._busy = False
                return
            request = self._next_command()
            if not calendar.advance(now_ns + command_ns):
                calendar.post_at(now_ns + command_ns, self._fetched_fn, request)
                return


# Not as a decorator: mypyc compiles no decorated class to a native one.
register("device", "nvme", params=NvmeParams, doc="PCIe drive with several queues")(Nvme)
