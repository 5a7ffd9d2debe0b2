"""Flash behind a controller's memory: dies, channels, a write buffer, a translation layer.

Models: what is inside an SSD of any interface. A read takes the next free die for the time of
sensing a page and a channel for moving what was asked for; a longer one is spread over as many dies
as it has pages. A write is in the buffer at once if there is room, else it waits for room. The
buffer is emptied in batches of up to one page for each die, two batches at a time (one moves while
one programs). For each page of the host the cleaner (ssd_ftl.py) adds its share of moved pages:
each a sensing and a programming, and every programming its share of an erasure. A command takes the
controller's processor (ssd.py, nvme.py), then flash, then the bus to the host; a write the bus when
the buffer has room for it. What overlaps with other commands (firmware, host bus adapter) is added
at the end.

Hand estimates, for dies d, page p, sensing r, programming w, amplification A: random reads up to d
/ (r + transfer) a second; writes d * p / (A * w + (A - 1) * r) bytes a second. Intel DC S3700, 200
GB: 32 * 16 KiB / 1.43 ms = 367 MB/s in order.

Linux counterpart: none; data sheets of NAND and drives.
Invariants: dirty sectors never exceed the buffer (but for one request that alone is longer); a
flush ends when all that was written before it is in flash, or at once if capacitors protect the
buffer; what a power cut takes is what no batch has brought to flash, the latest writes.
Left out: which die a page lies on (the next free one has it), reads answered from the buffer,
suspended programming, planes, the spread of programming times, collections that stall a drive.
"""

from collections import deque
from dataclasses import dataclass
from heapq import heapreplace
from math import ceil
from typing import Final

from sim.block.bio import DISCARD, FLUSH, PAGE_SECTORS, READ, SECTOR, Request
from sim.block.driver import Complete, Driver
from sim.drivers.pipe import Pipe
from sim.drivers.ssd_ftl import SEGMENTS, Ftl
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.param import param
from sim.units import NS_PER_S

ATA_MAX_TRIM_SECTORS: Final = 64 * 0xFFFF  # 64 ranges: one block of a DSM command, libata
BATCHES: Final = 2  # one moves to the dies while one is programmed
SPARE_PERCENT_MIN: Final = 1.0
assert SPARE_PERCENT_MIN / 100 > 2 / SEGMENTS, "two segments are never full"

_SHEET: Final = "data sheet"
_NAND: Final = "assumed: 25 nm MLC NAND"


@dataclass(frozen=True, kw_only=True)
class FlashParams:
    """The inside of a drive. Defaults: Intel DC S3700, 200 GB."""

    capacity_bytes: int = param(
        "200 GB", dim="bytes", source="scenario", doc="size", minimum=1 << 20
    )
    channels: int = param(
        8,
        dim="count",
        source="data sheet: 8 channels",
        doc="buses between controller and dies",
        minimum=1,
    )
    dies: int = param(
        32,
        dim="count",
        source="assumed: 264 GiB of flash in dies of 8 GiB",
        doc="dies that work side by side",
        minimum=1,
    )
    page_bytes: int = param(
        "16 KiB",
        dim="bytes",
        source=_NAND + ", 8 KiB pages in two planes",
        doc="flash page, over all planes of a die",
        minimum=4096,
    )
    read_page_ns: int = param(
        "60 us", dim="time_ns", source=_NAND + ", 50 to 75 us", doc="sensing a page (tR)", minimum=0
    )
    program_ns: int = param(
        "1.41 ms",
        dim="time_ns",
        source="fit: 365 MB/s sequential writes of the data sheet",
        doc="programming a page (tPROG)",
        minimum=0,
    )
    erase_ns: int = param(
        "5 ms",
        dim="time_ns",
        source=_NAND + ", 3 to 10 ms",
        doc="erasing a block (tBERS)",
        minimum=0,
    )
    block_pages: int = param(
        256, dim="count", source=_NAND, doc="pages that are erased together", minimum=1
    )
    channel_rate_bytes_per_s: float = param(
        "200 MB/s",
        dim="bytes_per_s",
        source="assumed: ONFI 2.x, 200 MT/s",
        minimum=1,
        doc="transfer rate of a channel",
        key="channel_rate",
    )
    buffer_bytes: int = param(
        "64 MiB",
        dim="bytes",
        source="assumed: a quarter of the DRAM, the mapping has the rest",
        doc="write buffer",
        minimum=4096,
    )
    buffer_protected: bool = param(
        True,
        dim="bool",
        source="data sheet: enhanced power-loss data protection",
        doc="capacitors save the buffer: a flush has nothing to do",
    )
    trim_ns: int = param(
        "100 us",
        dim="time_ns",
        minimum=0,
        source="assumed: entries of the map are marked; drives of the time: 0.05 to some ms",
        doc="time of a discard (Data Set Management), whatever its length",
        key="trim",
    )
    spare_percent: float = param(
        25.0,
        dim="percent",
        source="fit: 32,000 random writes/s of the data sheet",
        doc="flash beyond the capacity, for the cleaner",
        minimum=SPARE_PERCENT_MIN,
        key="spare",
    )
    used_percent: float = param(
        100.0,
        dim="percent",
        minimum=0,
        maximum=100,
        key="used",
        source="data sheet: random writes are given for a full drive in its steady state",
        doc="logical pages with data when the run begins, worn in; 0 = as new or trimmed",
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
        doc="of a read, beside processor, flash and bus",
        minimum=0,
    )
    write_overhead_ns: int = param(
        "43 us",
        dim="time_ns",
        source="fit: 65 us write latency of the data sheet",
        doc="of a write, beside processor and bus",
        minimum=0,
    )
    flush_overhead_ns: int = param(
        "50 us",
        dim="time_ns",
        source="assumed: a command with nothing to do",
        doc="of a flush, beside programming",
        minimum=0,
    )

    def make_ftl(self) -> Ftl:
        """Return the translation layer in the state that the parameters say."""
        pages = self.capacity_bytes // (PAGE_SECTORS * SECTOR)
        return Ftl(
            pages=pages,
            physical_pages=int(pages * (1 + self.spare_percent / 100)) + 1,
            used_pages=int(pages * self.used_percent / 100),
        )


class Dies:
    """Dies and the channels to them: when each is free."""

    def __init__(self, params: FlashParams) -> None:
        self.count = params.dies
        self._page_sectors = params.page_bytes // SECTOR
        self._sense_ns = params.read_page_ns
        self._sector_ns: float = SECTOR * NS_PER_S / params.channel_rate_bytes_per_s
        self._program_ns: float = params.program_ns + params.erase_ns / params.block_pages
        self._page_ns: float = self._page_sectors * self._sector_ns
        self._die_free_ns: list[float] = [0.0] * params.dies  # heaps
        self._channel_free_ns: list[float] = [0.0] * params.channels
        self._all_free_ns: float = 0.0  # when the last of both is

    def read(self, ready_ns: int, sectors: int) -> int:
        """Sense and move so many sectors; return when the last is in the controller."""
        pages = -(-sectors // self._page_sectors)
        width = min(pages, self.count)
        sense_ns = self._sense_ns * pages / width
        move_ns = sectors * self._sector_ns / width
        if self._all_free_ns <= ready_ns:
            last_ns = self._read_idle(ready_ns + sense_ns, move_ns, width)
        else:
            last_ns = self._read_busy(ready_ns, sense_ns, move_ns, width)
        self._all_free_ns = max(self._all_free_ns, last_ns)
        return ceil(last_ns)

    def _read_idle(self, sensed_ns: float, move_ns: float, width: int) -> float:
        """Read with every die and channel free: all sense at once, and the channels take turns.

        As _read_busy() would, without its heaps: sorted lists are heaps. 128 KiB: 0.5 us, not 1.2.
        """
        dies, channels = self._die_free_ns, self._channel_free_ns
        dies.sort()
        channels.sort()
        del dies[:width]
        moved_ns = sensed_ns
        left = width
        while left > 0:
            moved_ns += move_ns
            turn = min(left, len(channels))
            dies.extend([moved_ns] * turn)
            del channels[:turn]
            channels.extend([moved_ns] * turn)
            left -= turn
        return moved_ns

    def _read_busy(self, ready_ns: int, sense_ns: float, move_ns: float, width: int) -> float:
        """Read with whatever die and channel are free first."""
        dies = self._die_free_ns
        channels = self._channel_free_ns
        moved_ns = last_ns = float(ready_ns)
        for _ in range(width):
            sensed_ns = max(ready_ns, dies[0]) + sense_ns
            moved_ns = max(sensed_ns, channels[0]) + move_ns
            heapreplace(dies, moved_ns)
            heapreplace(channels, moved_ns)
            last_ns = max(last_ns, moved_ns)
        return last_ns

    def program(self, now_ns: int, pages: int, sensed: float) -> int:
        """Program so many pages, each after sensing a share of one; return when all are."""
        assert pages > 0
        work_ns = self._program_ns + sensed * self._sense_ns
        dies = self._die_free_ns
        channels = self._channel_free_ns
        done_ns = last_ns = 0.0
        for _ in range(pages):
            moved_ns = max(float(now_ns), channels[0]) + self._page_ns
            heapreplace(channels, moved_ns)
            done_ns = max(moved_ns, dies[0]) + work_ns
            heapreplace(dies, done_ns)
            last_ns = max(last_ns, done_ns)
        self._all_free_ns = max(self._all_free_ns, last_ns)
        return ceil(last_ns)


class Flash:
    """Buffer, translation layer and dies of one drive."""

    def __init__(self, params: FlashParams) -> None:
        self.ftl = params.make_ftl()
        self._dies = Dies(params)
        self._page_sectors = params.page_bytes // SECTOR
        self._buffer_sectors = params.buffer_bytes // SECTOR
        self._protected = params.buffer_protected
        self._dirty: int = 0  # sectors in the buffer, those being programmed too
        self._unsent: int = 0  # of them, not in a batch yet
        self._taken: int = 0  # sectors written so far,
        self._programmed: int = 0  # and those that are in flash: batches end in order
        self._batches: int = 0
        self._batch_ends_ns: int = 0  # the latest
        self._due: float = 0.0  # pages that the cleaner still has to program, a share of one
        self._waiting: deque[Request] = deque()  # for room
        self._flushes: deque[tuple[int, Request]] = deque()  # what they wait for, who waits
        self._unsafe: deque[tuple[int, int]] = deque()  # sectors in the order of _taken, programmed
        self._unsafe_from: int = 0  # ones too: what _taken was before the first of them

    def attach(
        self,
        calendar: Calendar,
        taken: Complete,
        flushed: Complete,
    ) -> None:
        """Learn whom to tell that the buffer has room for a write, that a flush is done."""
        self._calendar = calendar
        self._tell_taken = taken
        self._tell_flushed = flushed

    def read(self, ready_ns: int, sectors: int) -> int:
        """Return when so many sectors will be in the controller."""
        return self._dies.read(ready_ns, sectors)

    def write(self, request: Request) -> None:
        """Take a write; ``taken`` is told when there is room for it, at once if there is now."""
        if self._waiting or not self._has_room(request):
            self._waiting.append(request)
        else:
            self._take(request)
        self._program()

    def flush(self, request: Request) -> None:
        """Have all that was taken programmed, then tell ``flushed``."""
        if self._protected or self._programmed == self._taken:
            self._tell_flushed(request)
        else:
            self._flushes.append((self._taken, request))
            self._program()

    def unsafe_runs(self) -> list[tuple[int, int]]:
        """Return the sectors in the buffer alone, none if capacitors save it."""
        self._forget_programmed()
        runs = list(self._unsafe)
        if runs:
            start, end = runs[0]
            runs[0] = (start + self._programmed - self._unsafe_from, end)
        return runs

    def _forget_programmed(self) -> None:
        """Forget the writes that are in flash as a whole."""
        while self._unsafe:
            start, end = self._unsafe[0]
            if self._unsafe_from + end - start > self._programmed:
                break
            self._unsafe_from += end - start
            self._unsafe.popleft()

    def trim(self, sector: int, sectors: int) -> None:
        """Give up sectors; what covers pages in part stays."""
        first = -(-sector // PAGE_SECTORS)
        end = (sector + sectors) // PAGE_SECTORS
        if end > first:
            self.ftl.trim(first, end - first)

    def _has_room(self, request: Request) -> bool:
        return self._dirty == 0 or self._dirty + request.nr_sectors <= self._buffer_sectors

    def _take(self, request: Request) -> None:
        first = request.sector // PAGE_SECTORS
        end = (request.sector + request.nr_sectors - 1) // PAGE_SECTORS + 1
        self.ftl.write(first, end - first)
        self._dirty += request.nr_sectors
        self._unsent += request.nr_sectors
        self._taken += request.nr_sectors
        if not self._protected:
            self._unsafe.append((request.sector, request.end))
            self._forget_programmed()
        self._tell_taken(request)

    def _program(self) -> None:
        """Send batches while there are whole pages, or a part of one that somebody waits for."""
        while self._batches < BATCHES and self._unsent:
            amplification = self.ftl.amplification
            pages = -(-self._unsent // self._page_sectors)
            if not self._flushes and not self._waiting:
                pages = self._unsent // self._page_sectors
            pages = min(pages, max(1, int(self._dies.count / amplification)))
            if not pages:
                return
            self._due += pages * amplification
            programmed = int(self._due)
            self._due -= programmed
            sectors = min(self._unsent, pages * self._page_sectors)
            self._unsent -= sectors
            self._batches += 1
            sensed = (amplification - 1.0) / amplification
            now_ns = self._calendar.now
            done_ns = self._dies.program(now_ns, programmed, sensed)
            # A flush counts sectors: no batch may overtake another.
            self._batch_ends_ns = max(self._batch_ends_ns, done_ns)
            self._calendar.post(self._batch_ends_ns - now_ns, self._batch_done, sectors)

    def _batch_done(self, sectors: int) -> None:
        self._batches -= 1
        self._dirty -= sectors
        self._programmed += sectors
        while self._waiting and self._has_room(self._waiting[0]):
            self._take(self._waiting.popleft())
        while self._flushes and self._flushes[0][0] <= self._programmed:
            self._tell_flushed(self._flushes.popleft()[1])
        self._program()


class FlashDrive(Driver):
    """A drive of flash, whatever its bus; a subclass says when the processor has a command."""

    def __init__(self, params: FlashParams, to_host: Pipe, from_host: Pipe) -> None:
        self.discard_sectors = PAGE_SECTORS
        self.rotational = False
        self.capacity_sectors = params.capacity_bytes // SECTOR
        self.flash = Flash(params)
        self._to_host = to_host
        self._from_host = from_host
        self._command_ns = params.command_ns
        self._read_overhead_ns = params.read_overhead_ns
        self._write_overhead_ns = params.write_overhead_ns
        self._flush_overhead_ns = params.flush_overhead_ns
        self._trim_ns = params.trim_ns
        self._processor_free_ns: int = 0  # when it has fetched all that was submitted

    def attach(self, name: str, calendar: Calendar, streams: Streams, complete: Complete) -> None:
        self._calendar = calendar
        self._complete = complete
        self.flash.attach(calendar, self._taken, self._flushed)

    def unsafe_runs(self) -> list[tuple[int, int]]:
        return self.flash.unsafe_runs()

    def _carry_out(self, request: Request, ready_ns: int) -> None:
        """Begin a command that the processor has at ``ready_ns``."""
        now_ns = self._calendar.now
        if request.op == READ:
            done_ns = self.flash.read(ready_ns, request.nr_sectors)
            self._calendar.post(done_ns - now_ns, self._read, request)
        elif request.op == FLUSH:
            self.flash.flush(request)
        elif request.op == DISCARD:
            self.flash.trim(request.sector, request.nr_sectors)
            self._calendar.post(ready_ns - now_ns + self._trim_ns, self._complete, request)
        else:
            self.flash.write(request)

    def _read(self, request: Request) -> None:
        """The sectors are in the controller: send them."""
        now_ns = self._calendar.now
        sent_ns = self._to_host.carry(now_ns, request.nr_sectors)
        self._calendar.post(sent_ns - now_ns + self._read_overhead_ns, self._complete, request)

    def _taken(self, request: Request) -> None:
        """The buffer has room: fetch the sectors."""
        now_ns = self._calendar.now
        ready_ns = max(now_ns, self._processor_free_ns)
        sent_ns = self._from_host.carry(ready_ns, request.nr_sectors)
        self._calendar.post(sent_ns - now_ns + self._write_overhead_ns, self._complete, request)

    def _flushed(self, request: Request) -> None:
        self._calendar.post(self._flush_overhead_ns, self._complete, request)
