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

from sim.block.bio import DISCARD, FLUSH, PAGE_SECTORS, READ, SECTOR, Request
from sim.block.driver import Complete, Driver
from sim.drivers.flash import Flash, FlashParams
from sim.drivers.pipe import Pipe
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.param import param
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
    command_ns: int = param(
        "2.17 us",
        dim="time_ns",
        source="data sheet: 460,000 random reads/s",
        doc="processor time of a command",
        minimum=0,
    )
    read_overhead_ns: int = param(
        "5 us",
        dim="time_ns",
        source="assumed: firmware and bus, data sheet: 20 us sequential",
        doc="of a read, beside processor, flash and lanes",
        minimum=0,
    )
    write_overhead_ns: int = param(
        "16 us",
        dim="time_ns",
        source="fit: 20 us sequential write latency of the data sheet",
        doc="of a write, beside processor and lanes",
        minimum=0,
    )
    flush_overhead_ns: int = param(
        "10 us",
        dim="time_ns",
        source="assumed: a command with nothing to do",
        doc="of a flush, beside programming",
        minimum=0,
    )


class Nvme(Driver):
    """One drive with one namespace."""

    def __init__(self, params: NvmeParams) -> None:
        self.queue_depth = params.queues * params.queue_entries
        self.hardware_queues = params.queues
        self.max_discard_sectors = 0xFFFFFFFF // SECTOR
        self.discard_sectors = PAGE_SECTORS
        self.write_cache = not params.buffer_protected  # Identify Controller, VWC
        self.rotational = False
        self.capacity_sectors = params.capacity_bytes // SECTOR
        self.flash = Flash(params)
        self._to_host = Pipe(params.read_lanes_bytes_per_s)
        self._from_host = Pipe(params.write_lanes_bytes_per_s)
        self._command_ns = params.command_ns
        self._read_overhead_ns = params.read_overhead_ns
        self._write_overhead_ns = params.write_overhead_ns
        self._flush_overhead_ns = params.flush_overhead_ns
        self._trim_ns = params.trim_ns
        self._queues: list[deque[Request]] = [deque() for _ in range(params.queues)]
        self._waiting: int = 0
        self._turn: int = 0  # the queue that was served last
        self._busy: bool = False

    def attach(self, name: str, calendar: Calendar, streams: Streams, complete: Complete) -> None:
        self._calendar = calendar
        self._complete = complete
        self.flash.attach(calendar, self._taken, self._flushed)

    def unsafe_runs(self) -> list[tuple[int, int]]:
        return self.flash.unsafe_runs()

    def submit(self, request: Request) -> None:
        self._queues[request.task_id % len(self._queues)].append(request)
        self._waiting += 1
        if not self._busy:
            self._fetch()

    def _fetch(self) -> None:
        """Take a command from the next queue that has one."""
        self._busy = True
        self._waiting -= 1
        self._turn = (self._turn + 1) % len(self._queues)
        while not self._queues[self._turn]:
            self._turn = (self._turn + 1) % len(self._queues)
        request = self._queues[self._turn].popleft()
        self._calendar.post(self._command_ns, self._fetched, request)

    def _fetched(self, request: Request) -> None:
        now_ns = self._calendar.now
        if request.op == READ:
            done_ns = self.flash.read(now_ns, request.nr_sectors)
            self._calendar.post(done_ns - now_ns, self._read, request)
        elif request.op == FLUSH:
            self.flash.flush(request)
        elif request.op == DISCARD:
            self.flash.trim(request.sector, request.nr_sectors)
            self._calendar.post(self._trim_ns, self._complete, request)
        else:
            self.flash.write(request)
        self._busy = False
        if self._waiting:
            self._fetch()

    def _read(self, request: Request) -> None:
        """The sectors are in the controller: send them."""
        now_ns = self._calendar.now
        sent_ns = self._to_host.carry(now_ns, request.nr_sectors)
        self._calendar.post(sent_ns - now_ns + self._read_overhead_ns, self._complete, request)

    def _taken(self, request: Request) -> None:
        """The buffer has room: fetch the sectors."""
        now_ns = self._calendar.now
        sent_ns = self._from_host.carry(now_ns, request.nr_sectors)
        self._calendar.post(sent_ns - now_ns + self._write_overhead_ns, self._complete, request)

    def _flushed(self, request: Request) -> None:
        self._calendar.post(self._flush_overhead_ns, self._complete, request)


# Not as a decorator: mypyc compiles no decorated class to a native one.
register("device", "nvme", params=NvmeParams, doc="PCIe drive with several queues")(Nvme)
