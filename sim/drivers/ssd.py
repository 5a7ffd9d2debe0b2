"""A SATA or SAS SSD: flash behind one half-duplex link and one command processor.

Models: a command takes the controller's processor, one at a time; a read then takes flash
(flash.py), and the link for its length; a write the link when the buffer has room for it. Latencies
that overlap with other commands (firmware, host bus adapter) are added at the end.
Hand estimates (Intel DC S3700, 200 GB): a 4 KiB read alone 13 + 60 + 20 + 8 us and 9 us of overhead
= 110 us; 75,000 reads a second from the processor's 13.3 us; 500 MB/s from the link; random writes
in the steady state 365 MB/s / 4 KiB / amplification, see ssd_ftl.py.
Linux counterpart: none; drivers/ata/ahci.c and drivers/scsi above it.
Invariants: one command in the processor, one transfer on the link; every request ends once.
Left out: the link's protocol beyond its payload rate, read-ahead, reordering, errors; that a
discard waits until the drive's queue is empty (TRIM was no queued command before SATA 3.1).
"""

from dataclasses import dataclass

from sim.block.bio import DISCARD, FLUSH, PAGE_SECTORS, READ, SECTOR, Request
from sim.block.driver import Complete, Driver
from sim.drivers.flash import ATA_MAX_TRIM_SECTORS, Flash, FlashParams
from sim.drivers.pipe import Pipe
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.param import param
from sim.registry import register


@dataclass(frozen=True, kw_only=True)
class SsdParams(FlashParams):
    """A drive on SATA or SAS. Defaults: Intel DC S3700, 200 GB."""

    interface_rate_bytes_per_s: float = param(
        "500 MB/s",
        dim="bytes_per_s",
        minimum=1,
        key="interface_rate",
        source="data sheet: sequential reads; SATA 6 Gbit/s carries 600 MB/s of 8b/10b coded data",
        doc="payload rate of the link, one direction at a time",
    )
    command_ns: int = param(
        "13.3 us",
        dim="time_ns",
        source="data sheet: 75,000 random reads/s",
        doc="processor time of a command",
        minimum=0,
    )
    read_overhead_ns: int = param(
        "8 us",
        dim="time_ns",
        source="assumed: a random 4 KiB read takes 110 us alone",
        doc="of a read, beside processor, flash and link",
        minimum=0,
    )
    write_overhead_ns: int = param(
        "43 us",
        dim="time_ns",
        source="fit: 65 us write latency of the data sheet",
        doc="of a write, beside processor and link",
        minimum=0,
    )
    flush_overhead_ns: int = param(
        "50 us",
        dim="time_ns",
        source="assumed: a command with nothing to do",
        doc="of a flush, beside programming",
        minimum=0,
    )
    queue_depth: int = param(
        31,
        dim="count",
        source="drivers/ata/libata: 32 tags, one reserved",
        doc="requests in the drive",
        minimum=1,
    )


class Ssd(Driver):
    """One drive."""

    def __init__(self, params: SsdParams) -> None:
        self.queue_depth = params.queue_depth
        self.write_cache = True
        self.max_discard_sectors = ATA_MAX_TRIM_SECTORS
        self.discard_sectors = PAGE_SECTORS
        self.rotational = False
        self.capacity_sectors = params.capacity_bytes // SECTOR
        self.flash = Flash(params)
        self._link = Pipe(params.interface_rate_bytes_per_s)
        self._command_ns = params.command_ns
        self._read_overhead_ns = params.read_overhead_ns
        self._write_overhead_ns = params.write_overhead_ns
        self._flush_overhead_ns = params.flush_overhead_ns
        self._trim_ns = params.trim_ns
        self._processor_free_ns: int = 0

    def attach(self, name: str, calendar: Calendar, streams: Streams, complete: Complete) -> None:
        self._calendar = calendar
        self._complete = complete
        self.flash.attach(calendar, self._taken, self._flushed)

    def unsafe_runs(self) -> list[tuple[int, int]]:
        return self.flash.unsafe_runs()

    def submit(self, request: Request) -> None:
        now_ns = self._calendar.now
        self._processor_free_ns = max(now_ns, self._processor_free_ns) + self._command_ns
        if request.op == READ:
            done_ns = self.flash.read(self._processor_free_ns, request.nr_sectors)
            self._calendar.post(done_ns - now_ns, self._read, request)
        elif request.op == FLUSH:
            self.flash.flush(request)
        elif request.op == DISCARD:
            self.flash.trim(request.sector, request.nr_sectors)
            done_ns = self._processor_free_ns + self._trim_ns
            self._calendar.post(done_ns - now_ns, self._complete, request)
        else:
            self.flash.write(request)

    def _read(self, request: Request) -> None:
        """The sectors are in the controller: send them."""
        now_ns = self._calendar.now
        sent_ns = self._link.carry(now_ns, request.nr_sectors)
        self._calendar.post(sent_ns - now_ns + self._read_overhead_ns, self._complete, request)

    def _taken(self, request: Request) -> None:
        """The buffer has room: fetch the sectors."""
        now_ns = self._calendar.now
        sent_ns = self._link.carry(max(now_ns, self._processor_free_ns), request.nr_sectors)
        self._calendar.post(sent_ns - now_ns + self._write_overhead_ns, self._complete, request)

    def _flushed(self, request: Request) -> None:
        self._calendar.post(self._flush_overhead_ns, self._complete, request)


# Not as a decorator: mypyc compiles no decorated class to a native one.
register("device", "ssd", params=SsdParams, doc="SATA or SAS drive: flash, cleaner, write buffer")(
    Ssd
)
