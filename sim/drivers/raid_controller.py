"""A RAID controller: a cache with a battery before a drive.

Models: the controller's processor takes commands one after the other. *Write-back*: a write ends
when it is in the controller's memory; from there it goes to the drive (destaging), joined with what
adjoins it, in ascending order from the last place on and then from the lowest again. A write that
finds the memory full waits until enough is destaged. *Write-through*: a write ends when the drive
has it. A read that lies wholly in what is not yet destaged is answered from there, any other by the
drive. A flush is answered at once: what the controller has acknowledged is safe, as it says.

The policy and the battery decide: "write-back" writes through while the battery cannot hold the
memory, because it is missing or because the controller discharges it to learn its capacity, every
90 days for some hours. "force-write-back" does not, and then what was synced is lost when the power
goes. With a good battery, or when it writes through, Linux sees a disk without a volatile cache and
sends no flush. Otherwise it sends them, and they are worth nothing: megaraid_sas ends them itself
unless the firmware says that it can handle them.
An array is made of drives that have a controller each, with [machine.array] above them: its cache
is then divided among the drives.

Hand estimate: 15 us of the processor, 8 KiB at 2 GB/s 4 us, 20 us to the interrupt: a write in 39
us, whatever the drive, as long as the memory has room. In the long run it is what the drive takes,
in ascending order: 49,000 scattered pages of 8 KiB fill 384 MiB and lie so near each other that the
arm needs 2 ms with settling, and then half a revolution, 4.2 ms: 160 a second instead of 70.

Linux counterpart: none but the drivers before it: drivers/scsi/hpsa.c; drivers/scsi/megaraid/
megaraid_sas_base.c, megasas_queue_command (6.1: SYNCHRONIZE_CACHE of a logical drive).
Invariants: those of frontend.py; never more is acknowledged and not given to the drive than the
cache holds, but for a single write that is longer; every write reaches the drive in the end.
Left out: mirrors and parity inside the controller, its read-ahead and the part of its memory that
keeps what was read, a learn cycle that begins while the scenario runs, several drives that share
one memory.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

from sim.block.bio import FLUSH, READ, SECTOR, WRITE, Request
from sim.block.driver import Driver
from sim.drivers.frontend import Frontend, FrontendParams, figure
from sim.drivers.hdd import DESTAGE_SECTORS_MAX, WriteCache
from sim.drivers.pipe import Pipe
from sim.param import param
from sim.registry import register
from sim.units import format_quantity

WRITE_BACK: Final = "write-back"
WRITE_THROUGH: Final = "write-through"
FORCE_WRITE_BACK: Final = "force-write-back"
GOOD: Final = "good"
LEARNING: Final = "learning"
MISSING: Final = "missing"
# Writes under way to the drive from the cache. With one, a drive would have passed the next place
# when it is told of it; assumed: firmware keeps a few.
DESTAGES_MAX: Final = 4
_POLICIES: Final = "Dell OpenManage Server Administrator 7.4 User's Guide, RAID Controller Cache"


@dataclass(frozen=True, kw_only=True)
class RaidControllerParams(FrontendParams):
    """The controller's figures. Defaults: a card of 2010, with 512 MiB."""

    slots: int = figure(
        "slots", 256, "drivers/scsi/megaraid/megaraid_sas.h: MEGASAS_DEFAULT_CMD_PER_LUN 256"
    )
    segments: int = figure(
        "segments", 70, "assumed: the firmware tells the driver, 70 to 128 on cards of 2010"
    )
    longest_bytes: int = figure("longest_bytes", "280 KiB", "derived: 70 segments of a 4 KiB page")
    bell_ns: int = figure("bell_ns", "1 us", "assumed: a write to a register over PCIe")
    backend_ns: int = figure(
        "backend_ns", "15 us", "assumed: 60,000 to 70,000 commands/s of a card's processor of 2010"
    )
    notify_ns: int = figure("notify_ns", "20 us", "assumed: the reply's way and an MSI")
    cache_bytes: int = param(
        "384 MiB",
        dim="bytes",
        key="cache",
        minimum=4096,
        source="data sheet: HP Smart Array P410: 512 MiB, of which 75 % for writes as shipped",
        doc="memory for what is not on the drive yet",
    )
    memory_rate_bytes_per_s: float = param(
        "2 GB/s",
        dim="bytes_per_s",
        key="memory_rate",
        minimum=1,
        source="assumed: half of what eight lanes of PCIe 2.0 carry",
        doc="from the host into the memory, and back",
    )
    policy: str = param(
        WRITE_BACK,
        dim="text",
        choices=(WRITE_BACK, WRITE_THROUGH, FORCE_WRITE_BACK),
        source=f"manual: {_POLICIES}: write-back is the default",
        doc="when a write ends: in the memory or on the drive; forced: whatever the battery",
    )
    battery: str = param(
        GOOD,
        dim="text",
        choices=(GOOD, LEARNING, MISSING),
        source=f"manual: {_POLICIES}: write-through while a learn cycle is under way",
        doc="whether it could hold the memory if the power went now",
    )

    @property
    def writes_back(self) -> bool:
        """Return whether a write ends in the memory."""
        if self.policy == WRITE_BACK:
            return self.battery == GOOD
        return self.policy == FORCE_WRITE_BACK

    def refusal(self, device: object) -> str:
        """Return why it cannot stand before this drive: too small, or with a cache of its own."""
        capacity = getattr(device, "capacity_bytes", None)
        if capacity is not None and self.cache_bytes > capacity:
            given, most = (format_quantity(n, "bytes") for n in (self.cache_bytes, capacity))
            return f"front.cache of {given}, more than the drive behind (accepted: up to {most})"
        if getattr(device, "write_cache", False):
            return (
                "behind a RAID controller the drive's own write cache is off, so that what left"
                " the battery's memory is on the medium (accepted: write_cache = false)"
            )
        return ""


class RaidController(Frontend):
    """A ring, the memory of the controller, and the drive behind it."""

    def __init__(self, params: RaidControllerParams, device: Driver) -> None:
        super().__init__(params, device)
        self._writes_back = params.writes_back
        self.write_cache = params.writes_back and params.battery != GOOD
        self._cache = WriteCache(params.cache_bytes // SECTOR)
        self._memory = Pipe(params.memory_rate_bytes_per_s)
        self._held: deque[Request] = deque()  # writes for which the memory is full
        self._destaging: list[Request] = []
        self._end: int = 0  # sector behind the last one destaged

    def unsafe_runs(self) -> list[tuple[int, int]]:
        return self._cache.runs() + [(one.sector, one.end) for one in self._destaging]

    def _process(self, request: Request) -> None:
        """The processor has the request: answer it from the memory, or pass it on."""
        if request.op == FLUSH:
            self._reply(request)
        elif request.op == WRITE and self._writes_back:
            self._held.append(request)
            self._fill()
        elif request.op == READ and self._cache.holds(request.sector, request.end):
            self._carry(request)
        else:
            super()._process(request)

    def _carry(self, request: Request) -> None:
        """Answer when the data have gone between host and memory."""
        now_ns = self._calendar.now
        done_ns = self._memory.carry(now_ns, request.nr_sectors)
        self._calendar.post(done_ns - now_ns, self._reply, request)

    def _fill(self) -> None:
        """Take the writes into the memory for which there is room; destage."""
        while self._held and self._cache.has_room(self._held[0].nr_sectors):
            request = self._held.popleft()
            self._cache.add(request.sector, request.end)
            self._carry(request)
        self._pass_on()

    def _pass_on(self) -> None:
        """Give the drive what it takes: the host's requests first, unless writes wait for room."""
        if self._held:
            self._destage()
        super()._pass_on()
        while not self._waiting and self._destage():
            pass

    def _destage(self) -> bool:
        """Give the drive the next stretch of the memory, if it may have one more."""
        if (
            not self._cache.dirty_sectors()
            or len(self._destaging) == DESTAGES_MAX
            or self._in_device == self._device.queue_depth
        ):
            return False
        start, end = self._cache.take(self._end, DESTAGE_SECTORS_MAX)
        self._end = end
        request = Request(WRITE, start, end - start, self._calendar.now)
        self._destaging.append(request)
        self._in_device += 1
        self._device.submit(request)
        return True

    def _answer(self, request: Request) -> None:
        """The drive has done it: for the host, or for the memory."""
        if request not in self._destaging:
            super()._answer(request)
            return
        self._destaging.remove(request)
        self._in_device -= 1
        self._fill()


register("frontend", "raid-controller", params=RaidControllerParams, doc="cache with a battery")(
    RaidController
)
