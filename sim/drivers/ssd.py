"""A SATA or SAS SSD: flash behind one half-duplex link and one command processor.

Models: flash (flash.py); a command takes the controller's processor, one at a time, and the link,
which carries one direction at a time.
Hand estimates (Intel DC S3700, 200 GB): a 4 KiB read alone 13 + 60 + 20 + 8 us and 9 us of overhead
= 110 us; 75,000 reads a second from the processor's 13.3 us; 500 MB/s from the link; random writes
in the steady state 365 MB/s / 4 KiB / amplification, see ssd_ftl.py.
Linux counterpart: none; drivers/ata/ahci.c and drivers/scsi above it.
Invariants: one command in the processor, one transfer on the link; every request ends once.
Left out: the link's protocol beyond its payload rate, read-ahead, reordering, errors; that a
discard waits until the drive's queue is empty (TRIM was no queued command before SATA 3.1).
"""

from dataclasses import dataclass

from sim.block.bio import Request
from sim.drivers.flash import ATA_MAX_TRIM_SECTORS, FlashDrive, FlashParams
from sim.drivers.pipe import Pipe
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
    queue_depth: int = param(
        31,
        dim="count",
        source="drivers/ata/libata: 32 tags, one reserved",
        doc="requests in the drive",
        minimum=1,
    )


class Ssd(FlashDrive):
    """One drive."""

    def __init__(self, params: SsdParams) -> None:
        link = Pipe(params.interface_rate_bytes_per_s)
        super().__init__(params, link, link)
        self.queue_depth = params.queue_depth
        self.write_cache = True
        self.fua = params.fua is True  # libata.fua=0: not asked of SATA drives
        self.max_discard_sectors = ATA_MAX_TRIM_SECTORS

    def submit(self, request: Request) -> None:
        now_ns = self._calendar.now
        self._processor_free_ns = max(now_ns, self._processor_free_ns) + self._command_ns
        self._carry_out(request, self._processor_free_ns)


# Not as a decorator: mypyc compiles no decorated class to a native one.
register("device", "ssd", params=SsdParams, doc="SATA or SAS drive: flash, cleaner, write buffer")(
    Ssd
)
