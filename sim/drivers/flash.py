"""Flash behind a controller's memory: dies, channels, a write buffer, a translation layer.

Models: what is inside an SSD of any interface. A page lies on a *die*. Data lie in stripes, a page
on each die; every stripe begins on another die. A read waits until its die has sensed what was
asked of it before, senses (tR, longer for the upper pages of a cell) and moves over the channel of
that die. A die that is programming or erasing lets the read wait until it is done, or for the
latency of a *suspend* where the drive has that; a program is held up for at most its own time.
The planes of newer dies read apart. What is still in the write buffer is read from there.

A write is in the buffer at once if there is room, else it waits for room. The buffer is emptied in
the order of writing, in batches of one program a die, two batches at a time (one moves while one
programs). A program takes all pages of a cell where the flash does (*one shot*, TLC and QLC), else
the pages of a cell in turn, lower ones fast, upper ones slow. For each page of the host the cleaner
(ssd_ftl.py) adds its share of moved pages: each a sensing and a programming. A die that has filled
a block erases one. So whatever the cleaner does takes dies from reads.

Consumer drives program one bit a cell first (*SLC cache*: fast, of a given size). It is folded,
read and programmed as a whole cell, while no write comes. When it is full, writes go past it, and
each has as much folded beside it.

A flush without capacitors programs what is unwritten, padded to a program, then the record of the
mapping's journal that finds it. A write with FUA goes past the SLC cache to its place, and the
journal: program its data, the page of the mapping that points there, the directory that finds this
page. Each waits for the one before.

A command takes the controller's processor (ssd.py, nvme.py), then flash, then the bus to the host;
a write the bus when the buffer has room for it. What overlaps with other commands (firmware, host
bus adapter) is added at the end.

Hand estimates, for dies d (reads: planes that read apart), page p, sensing r, programming w,
amplification A: random reads up to d / (r + transfer) a second, if many wait for each die; n at a
time keep n / (n + d - 1) of the dies busy. Writes d * p / (A * w + (A - 1) * r) bytes a second.
Intel DC S3700, 200 GB: 32 * 16 KiB / 1.43 ms = 367 MB/s in order. Beside x random writes of 4 KiB a
second a read meets a die that programs with probability x * A * 4 KiB / p * w / d: Intel DC P3700
with 20,000 writes/s 14,000 programs/s of 1.16 ms on 144 dies, 11 %. A TLC die of 184 MB/s with four
planes programs 192 KiB in 1.07 ms after 0.1 ms of moving, SLC pages in 0.3 ms: a small write and a
flush 0.3 + 1.17 ms, a write with FUA 3 * 1.17 ms.

Linux counterpart: none; data sheets of NAND and drives. The mapping's pages and their directory:
Gupta, Kim, Urgaonkar, "DFTL", ASPLOS 2009.
Invariants: dirty sectors never exceed the buffer (but for one request that alone is longer); a
flush ends when all that was written before it is in flash, or at once if capacitors protect the
buffer; what a power cut takes is what no batch has brought to flash, the latest writes.
Left out: on which die the run's own writes came to lie, once they are programmed (any is as likely:
they are read as older data are); folding that a read meets while no write comes; that what lies in
the SLC cache is sensed faster; read retries, refresh, wear; what programs share of a channel's time
beyond one page.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any, Final

from mypy_extensions import i64

from sim.block.bio import BIO_FUA, DISCARD, FLUSH, PAGE_SECTORS, READ, SECTOR, Request
from sim.block.driver import Complete, Driver, larger_than_the_drive
from sim.drivers.pipe import Pipe
from sim.drivers.ssd_ftl import SEGMENTS, Ftl
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.param import param
from sim.units import NS_PER_S

ATA_MAX_TRIM_SECTORS: Final = 64 * 0xFFFF  # 64 ranges: one block of a DSM command, libata
BATCHES: Final = 2  # one moves to the dies while one is programmed
HELD_PAGES_MIN: Final = 1024  # below, looking for programmed ones is not worth it
SHORT_PAGES: Final = 4  # a write of more is known as a run in the buffer, not page by page
SKEW: Final = 0x9E3779B1  # a prime whose multiples look random: which die a stripe begins on
PAGE_KINDS: Final = 4096  # a page is of one of so many, by a hash of its number
HASHED: Final = 0x7FFFFFFF  # the part of a number that is hashed: its product with SKEW is an i64
HASH_SHIFT: Final = 20  # lower bits of a hash of 32 are left out: they know the lower bits only
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
    planes: int = param(
        1,
        dim="count",
        source=_NAND + ": planes that only work together",
        doc="of a die, that read apart; they program and erase together",
        minimum=1,
    )
    programming_dies: int = param(
        0,
        dim="count",
        source="assumed: all",
        doc="dies that the drive's power lets program at a time; 0: all",
        minimum=0,
    )
    page_bytes: int = param(
        "16 KiB",
        dim="bytes",
        source=_NAND + ", 8 KiB pages in two planes",
        doc="flash page of a plane; where planes do not read apart, over all of a die",
        minimum=4096,
    )
    cell_bits: int = param(
        2,
        dim="count",
        source=_NAND,
        doc="bits of a cell: its pages lie in so many kinds, lower to upper",
        minimum=1,
        maximum=4,
    )
    one_shot: bool = param(
        False,
        dim="bool",
        source=_NAND + ": a page at a time",
        doc="the pages of a cell are programmed together, in one `program`",
    )
    read_page_ns: int = param(
        "60 us",
        dim="time_ns",
        source=_NAND + ", 50 to 75 us",
        doc="sensing a page (tR), mean over lower and upper pages",
        minimum=0,
    )
    read_spread_percent: float = param(
        20.0,
        dim="percent",
        source=_NAND + ", 50 us for lower and 75 us for upper pages",
        doc="by which sensing a lowest page is shorter, a highest longer than the mean",
        minimum=0,
        maximum=100,
        key="read_spread",
    )
    program_ns: int = param(
        "1.41 ms",
        dim="time_ns",
        source="fit: 365 MB/s sequential writes of the data sheet",
        doc="programming a page of all planes (tPROG), mean over lower and upper pages; with"
        " one_shot all pages of the cells",
        minimum=0,
    )
    program_spread_percent: float = param(
        60.0,
        dim="percent",
        source="assumed: MLC NAND programs upper pages several times as long as lower ones (Grupp"
        " et al., Characterizing Flash Memory, MICRO 2009)",
        doc="by which programming a lowest page is shorter, a highest longer; not with one_shot",
        minimum=0,
        maximum=100,
        key="program_spread",
    )
    suspend_ns: int = param(
        0,
        dim="time_ns",
        source=_NAND + ": no suspend",
        doc="until a die that programs or erases can sense instead; 0: only when it is done",
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
    slc_cache_bytes: int = param(
        0,
        dim="bytes",
        source="assumed: drives for servers have none",
        doc="flash that is written with one bit a cell first; 0: none",
        minimum=0,
    )
    slc_program_ns: int = param(
        "0.3 ms",
        dim="time_ns",
        source="assumed: SLC programs in 0.2 to 0.3 ms",
        doc="programming a page with one bit a cell",
        minimum=1,
    )
    flush_programs: int = param(
        1,
        dim="count",
        source="assumed: one record of the mapping's journal",
        doc="programs after the data of a flush, one after the other",
        minimum=0,
    )
    fua: bool | None = param(
        None,
        dim="bool",
        source="assumed: as Linux uses the drive",
        doc="whether writes with FUA are asked of it (not given: NVMe with a volatile cache)",
    )
    fua_programs: int = param(
        2,
        dim="count",
        source="assumed: a page of the mapping and the directory that finds it, as in DFTL",
        doc="programs after the data of a write with FUA, one after the other",
        minimum=0,
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


class Record:
    """What a flush or a write through still has to program of the mapping."""

    __slots__ = ("left", "request", "taken")

    def __init__(self, request: Request, taken: int, left: int) -> None:
        self.request = request
        self.taken = taken  # sectors written before it, which it makes found
        self.left = left  # programs


class Programs:
    """What is programmed together: on which dies, when each is done unless reads hold it up."""

    __slots__ = ("dies", "ends_ns", "held_up", "late_ns", "record", "sectors", "timed")

    def __init__(
        self,
        sectors: int,
        dies: list[int],
        ends_ns: list[float],
        late_ns: list[float],
        held_up: int,
    ) -> None:
        self.sectors = sectors  # of the host
        self.dies = dies
        self.ends_ns = ends_ns
        self.late_ns = late_ns  # how much reads had held up each die until then
        self.held_up = held_up  # how often any had been
        self.timed: bool = False  # its end is in the calendar
        self.record: Record | None = None


class Dies:
    """Dies and the channels to them: when each is free, and of what."""

    __slots__ = (
        "_begin_ns",
        "_block_programs",
        "_channel_of",
        "_channels",
        "_die_of",
        "_end_ns",
        "_erase_from_ns",
        "_erase_ns",
        "_erase_to_ns",
        "_factors",
        "_filled_ns",
        "_held_ns",
        "_held_up",
        "_in_block",
        "_late_ns",
        "_next",
        "_page_ns",
        "_page_sectors",
        "_paused_to_ns",
        "_planes",
        "_programs",
        "_read_ns",
        "_sector_ns",
        "_sensed_ns",
        "_senses_ns",
        "_suspend_ns",
        "_units",
        "_width",
        "_work_ns",
        "count",
        "has_others",
        "program_ns",
        "sense_ns",
    )

    def __init__(self, params: FlashParams) -> None:
        self.count = params.dies
        self.program_ns: float = float(params.program_ns)
        self.sense_ns: float = float(params.read_page_ns)
        self._page_sectors = params.page_bytes // SECTOR
        self._sector_ns: float = SECTOR * NS_PER_S / params.channel_rate_bytes_per_s
        self._page_ns: float = self._page_sectors * self._sector_ns
        self._senses_ns = _by_kind(params.read_page_ns, params.read_spread_percent, params)
        self._erase_ns: float = float(params.erase_ns)
        self._suspend_ns: float = float(params.suspend_ns)
        spread = 0.0 if params.one_shot else params.program_spread_percent
        kinds = 1 if params.one_shot else params.cell_bits
        self._factors = [1 + spread / 100 * at for at in _from_low_to_high(kinds)]
        self._block_programs = params.block_pages
        if params.one_shot:
            self._block_programs = max(1, params.block_pages // params.cell_bits)
        count = params.dies
        self._width = params.programming_dies // BATCHES or count
        self.has_others = self._width < count // 2  # than those of a batch, whichever erase
        self._planes = params.planes
        # When each plane has sensed and sent all; a die's are a multiple of the dies apart.
        self._sensed_ns: list[float] = [0.0] * (count * params.planes)
        self._units: i64 = count * params.planes
        self._die_of = [plane % count for plane in range(count * params.planes)]
        self._channel_of = [die % params.channels for die in self._die_of]
        # What each has to program: when it begins, ends, how long the last of it takes.
        self._begin_ns: list[float] = [0.0] * count
        self._end_ns: list[float] = [0.0] * count
        self._work_ns: list[float] = [1.0] * count
        self._erase_from_ns: list[float] = [0.0] * count
        self._erase_to_ns: list[float] = [0.0] * count
        self._paused_to_ns: list[float] = [0.0] * count  # suspended for reads
        self._held_ns: list[float] = [0.0] * count  # by reads, what it has to program now
        self._late_ns: list[float] = [0.0] * count  # by reads, since the run began
        self._held_up: int = 0
        # Blocks are not full all at the same time.
        self._in_block = [die * self._block_programs // count for die in range(count)]
        self._channels = params.channels
        # When each channel has carried all that was read, all that is to be programmed.
        self._read_ns: list[float] = [0.0] * params.channels
        self._filled_ns: list[float] = [0.0] * params.channels
        self._next: int = 0  # die
        self._programs: int = 0  # so far

    def read(self, when_ns: int, sector: int, sectors: int) -> int:
        """Sense and move these sectors; return when the last is in the controller."""
        ready_ns = float(when_ns)  # Comparing floats with an int takes longer.
        units = self._units
        size = self._page_sectors
        filled_ns = self._filled_ns
        page: i64 = sector // size  # Products with SKEW are slow where they are no i64.
        here: int = (page + 1) * size - sector
        last_ns = 0.0
        while True:
            if here > sectors:
                here = sectors
            plane = (page + ((page // units & HASHED) * SKEW >> HASH_SHIFT)) % units
            die = self._die_of[plane]
            sense_ns = self._senses_ns[((page & HASHED) * SKEW >> HASH_SHIFT) % PAGE_KINDS]
            start_ns = self._sensed_ns[plane]
            if start_ns < ready_ns:
                start_ns = ready_ns
            if self._end_ns[die] > start_ns:
                start_ns += self._wait_ns(die, start_ns, sense_ns, start_ns > ready_ns)
            channel = self._channel_of[plane]
            move_ns = here * self._sector_ns
            moved_ns = start_ns + sense_ns + move_ns
            # One page of a program at most is in the way.
            if filled_ns[channel] > moved_ns - move_ns:
                moved_ns += (filled_ns[channel] - moved_ns + move_ns) % self._page_ns
                filled_ns[channel] += move_ns
            # The channel has a backlog in the order of asking: who waits for a die leaves it to
            # others.
            backlog_ns = self._read_ns[channel]
            if backlog_ns < ready_ns:
                backlog_ns = ready_ns
            self._read_ns[channel] = backlog_ns = backlog_ns + move_ns
            if moved_ns < backlog_ns:
                moved_ns = backlog_ns
            self._sensed_ns[plane] = moved_ns
            if moved_ns > last_ns:
                last_ns = moved_ns
            sectors -= here
            if not sectors:
                return ceil(last_ns)
            page += 1
            here = size

    def _wait_ns(self, die: int, start_ns: float, sense_ns: float, queued: bool) -> float:
        """Return how long a read waits for a die with programs to do; hold these up for it.

        ``queued``: it comes right after another read.
        """
        begin_ns = self._begin_ns[die]
        if start_ns < begin_ns:  # their data are on the channel
            late_ns = start_ns + sense_ns - begin_ns
            if late_ns > 0.0:
                self._hold_up(die, start_ns, late_ns)
            return 0.0
        done_ns = self._operation_end_ns(die, start_ns)
        wait_ns = done_ns - start_ns
        if self._suspend_ns:
            paused_to_ns = self._paused_to_ns[die]
            if queued or start_ns <= paused_to_ns:  # it is suspended
                suspend_ns = 0.0
                from_ns = max(paused_to_ns, begin_ns)
            else:
                suspend_ns = self._suspend_ns
                from_ns = start_ns
            to_ns = start_ns + suspend_ns + sense_ns
            late_ns = to_ns - from_ns
            held_ns = self._held_ns[die] + max(0.0, late_ns)
            if suspend_ns < wait_ns and held_ns <= self._work_ns[die]:
                self._held_ns[die] = held_ns
                self._paused_to_ns[die] = max(paused_to_ns, to_ns)
                if late_ns > 0.0:
                    self._hold_up(die, start_ns, late_ns)
                return suspend_ns
        if done_ns < self._end_ns[die]:
            self._hold_up(die, done_ns, sense_ns)
        return wait_ns

    def _operation_end_ns(self, die: int, now_ns: float) -> float:
        """Return when the program or erase that a die is at will be done."""
        last_ns = self._end_ns[die]
        if now_ns < self._erase_to_ns[die]:
            if now_ns >= self._erase_from_ns[die]:
                return self._erase_to_ns[die]
            last_ns = self._erase_from_ns[die]
        return now_ns + (last_ns - now_ns) % self._work_ns[die]

    def _hold_up(self, die: int, from_ns: float, late_ns: float) -> None:
        """Delay what a die has to do after a time."""
        self._held_up += 1
        self._late_ns[die] += late_ns
        self._end_ns[die] += late_ns
        if from_ns < self._begin_ns[die]:
            self._begin_ns[die] += late_ns
        if from_ns < self._erase_from_ns[die]:
            self._erase_from_ns[die] += late_ns
        if from_ns < self._erase_to_ns[die]:
            self._erase_to_ns[die] += late_ns

    def width(self, now_ns: int) -> int:
        """Return how many dies a batch may take: those that do not erase; all if all do."""
        if self.has_others:
            return self._width
        return min(self._width, sum(to_ns <= now_ns for to_ns in self._erase_to_ns) or self.count)

    def program(
        self, now_ns: int, count: int, sectors: int, pages: int, work_ns: float
    ) -> Programs:
        """Program so often, a program being so many pages and long; ``sectors`` are the host's."""
        assert count > 0
        work_ns *= self._factors[self._programs // self.count % len(self._factors)]
        self._programs += count
        all_erase = all(to_ns > now_ns for to_ns in self._erase_to_ns)
        dies: list[int] = []
        while len(dies) < count:
            die = self._next
            self._next = (die + 1) % self.count
            if all_erase or self._erase_to_ns[die] <= now_ns:
                dies.append(die)
        ends_ns = [self._program_die(now_ns, die, pages, work_ns) for die in dies]
        late_ns = [self._late_ns[die] for die in dies]
        return Programs(sectors, dies, ends_ns, late_ns, self._held_up)

    def _program_die(self, now_ns: float, die: int, pages: int, work_ns: float) -> float:
        channel = die % self._channels
        pages *= self._planes
        moved_ns = max(now_ns, self._filled_ns[channel]) + pages * self._page_ns
        self._filled_ns[channel] = moved_ns
        start_ns = max(moved_ns, self._end_ns[die])
        for plane in range(die, self._units, self.count):
            start_ns = max(start_ns, self._sensed_ns[plane])
        if self._end_ns[die] <= now_ns:
            self._begin_ns[die] = start_ns
        end_ns = start_ns + work_ns
        self._work_ns[die] = max(work_ns, 1.0)
        self._held_ns[die] = 0.0
        self._end_ns[die] = end_ns
        self._in_block[die] += 1
        if self._in_block[die] >= self._block_programs and self._erase_ns:
            self._in_block[die] = 0
            self._erase_from_ns[die] = end_ns
            self._end_ns[die] = self._erase_to_ns[die] = end_ns + self._erase_ns
        return end_ns

    def end_ns(self, programs: Programs) -> int:
        """Return when all of them are done, as far as reads have held them up until now."""
        if self._held_up == programs.held_up:
            return ceil(max(programs.ends_ns))
        each = zip(programs.dies, programs.ends_ns, programs.late_ns, strict=True)
        return ceil(max(end_ns + self._late_ns[die] - late_ns for die, end_ns, late_ns in each))


def _from_low_to_high(kinds: int) -> list[float]:
    """Return places between -1 and 1 for so many kinds of pages."""
    return [2 * kind / (kinds - 1) - 1 for kind in range(kinds)] if kinds > 1 else [0.0]


def _by_kind(mean_ns: int, spread_percent: float, params: FlashParams) -> list[float]:
    """Return how long each kind of page takes: cells have as many lower as upper pages."""
    places = _from_low_to_high(params.cell_bits)
    return [
        mean_ns * (1 + spread_percent / 100 * places[kind * len(places) // PAGE_KINDS])
        for kind in range(PAGE_KINDS)
    ]


class SlcCache:
    """The part of flash that is written with one bit a cell first: how much of it is free."""

    def __init__(self, params: FlashParams, dies: Dies) -> None:
        self.sectors = params.slc_cache_bytes // SECTOR
        self.free = self.sectors
        self._idle_from_ns: int = 0
        pages = params.cell_bits
        fold_ns = params.program_ns + pages * params.read_page_ns
        page_sectors = params.planes * params.page_bytes // SECTOR
        self._fold_ns: float = fold_ns / (dies.count * pages * page_sectors)  # a sector, all at it

    def take(self, now_ns: int, sectors: int) -> bool:
        """Take so many sectors if there is room, after what was folded while nobody wrote."""
        if self.free < self.sectors and self._fold_ns and now_ns > self._idle_from_ns:
            folded = int((now_ns - self._idle_from_ns) / self._fold_ns)
            self.free = min(self.sectors, self.free + folded)
        if self.free < sectors:
            return False
        self.free -= sectors
        return True

    def fold(self, sectors: int) -> int:
        """Begin to fold as many sectors, or all; return how many."""
        folded = min(sectors, self.sectors - self.free)
        self.free += folded
        return folded

    def busy_until(self, when_ns: int) -> None:
        """Note that dies are being written until then."""
        self._idle_from_ns = when_ns


class Flash:
    """Buffer, translation layer and dies of one drive."""

    def __init__(self, params: FlashParams) -> None:
        self.ftl = params.make_ftl()
        self._dies = Dies(params)
        self._slc = SlcCache(params, self._dies)
        self._slc_program_ns: float = float(params.slc_program_ns)
        self._cell_pages = params.cell_bits if params.one_shot else 1
        self._page_sectors = params.planes * params.page_bytes // SECTOR  # of a die
        self._buffer_sectors = params.buffer_bytes // SECTOR
        self._protected = params.buffer_protected
        self._flush_programs = params.flush_programs
        self._fua_programs = params.fua_programs
        self._dirty: int = 0  # sectors in the buffer, those being programmed too
        self._unsent: int = 0  # of them, not in a batch yet
        self._taken: int = 0  # sectors written so far,
        self._programmed: int = 0  # and those that are in flash: batches end in order,
        self._recorded: int = 0  # and those that the journal of the mapping finds
        self._batches: deque[Programs] = deque()
        self._due: float = 0.0  # pages that the cleaner still has to program, a share of one
        self._over: float = 0.0  # of a page that the batch before left to the host
        self._waiting: deque[Request] = deque()  # for room
        # What flushes and writes through wait for, who waits; how many of them are the latter.
        self._flushes: deque[tuple[int, Request]] = deque()
        self._through: int = 0
        self._unsafe: deque[tuple[int, int]] = deque()  # sectors in the order of _taken, programmed
        self._unsafe_from: int = 0  # ones too: what _taken was before the first of them
        # Logical page -> _taken after the latest short write to it; programmed ones go now and
        # then. Long writes by their first page, the one behind their last, and _taken.
        self._held: dict[int, int] = {}
        self._held_runs: deque[tuple[int, int, int]] = deque()

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

    def read(self, ready_ns: int, sector: int, sectors: int) -> int:
        """Return when these sectors will be in the controller."""
        if self._dirty and self._holds(sector, sectors):
            return ready_ns
        return self._dies.read(ready_ns, sector, sectors)

    def write(self, request: Request) -> None:
        """Take a write; ``taken`` is told when there is room for it, at once if there is now.

        Of a write through ``flushed`` is told, too, when it is in flash.
        """
        if self._waiting or not self._has_room(request):
            self._waiting.append(request)
        else:
            self._take(request)
        self._program()

    def is_through(self, request: Request) -> bool:
        """Return whether a write is to be in flash when it ends."""
        return not self._protected and request.flags & BIO_FUA != 0

    def flush(self, request: Request) -> None:
        """Have all that was taken programmed, then tell ``flushed``."""
        if self._protected or self._recorded == self._taken:
            self._tell_flushed(request)
        elif self._programmed == self._taken:
            self._record(Record(request, self._taken, self._records_of(request)))
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

    def _holds(self, sector: int, sectors: int) -> bool:
        """Return whether the buffer has all of these sectors."""
        first = sector // PAGE_SECTORS
        end = (sector + sectors - 1) // PAGE_SECTORS + 1
        done = self._programmed
        for run_first, run_end, at in self._held_runs:
            if run_first <= first and end <= run_end and at > done:
                return True
        held = self._held
        return first in held and all(held.get(page, 0) > done for page in range(first, end))

    def _hold(self, first: int, count: int) -> None:
        """Note that pages are in the buffer."""
        if count == 1:
            self._held[first] = self._taken
        elif count <= SHORT_PAGES:
            self._held.update(dict.fromkeys(range(first, first + count), self._taken))
        else:
            self._held_runs.append((first, first + count, self._taken))

    def _forget_held(self) -> None:
        """Forget writes that are programmed, short ones if they are as many as the others."""
        done = self._programmed
        while self._held_runs and self._held_runs[0][2] <= done:
            self._held_runs.popleft()
        if not self._dirty:
            self._held.clear()
        elif len(self._held) > HELD_PAGES_MIN + 2 * self._dirty // PAGE_SECTORS:
            self._held = {page: at for page, at in self._held.items() if at > done}

    def _has_room(self, request: Request) -> bool:
        return self._dirty == 0 or self._dirty + request.nr_sectors <= self._buffer_sectors

    def _take(self, request: Request) -> None:
        first = request.sector // PAGE_SECTORS
        end = (request.sector + request.nr_sectors - 1) // PAGE_SECTORS + 1
        self.ftl.write(first, end - first)
        self._dirty += request.nr_sectors
        self._unsent += request.nr_sectors
        self._taken += request.nr_sectors
        self._hold(first, end - first)
        if not self._protected:
            self._unsafe.append((request.sector, request.end))
            self._forget_programmed()
        if self.is_through(request):
            self._flushes.append((self._taken, request))
            self._through += 1
        self._tell_taken(request)

    def _program(self) -> None:
        """Send batches while there are whole programs, or a part of one that somebody waits for."""
        while len(self._batches) < BATCHES and self._unsent:
            if not self._send():
                return

    def _send(self) -> bool:
        """Send one batch; return whether there was one to send."""
        now_ns = self._calendar.now
        unit = self._cell_pages * self._page_sectors
        amplification = self.ftl.amplification
        width = self._dies.width(now_ns)
        share = width / amplification + self._over  # of a batch, the host's
        count = self._programs_wanted(unit, int(share))
        if self._slc.sectors and not self._through:
            most = self._programs_wanted(self._page_sectors, width)
            if most and self._slc.take(now_ns, most * self._page_sectors):
                self._start(now_ns, most, most, self._page_sectors, 1, self._slc_program_ns)
                return True
        if not count:
            return False
        if self._dies.has_others:  # no die has to program twice for what is over
            self._over = min(1.0, max(0.0, share - count))
        # Past a full cache as much is folded beside it: sensed, and programmed.
        moved = count * (amplification - 1.0)
        if self._slc.sectors and not self._through:
            moved += self._slc.fold(count * unit) / unit
        self._due += count + moved
        programs = int(self._due)
        self._due -= programs
        sensed = moved / (count + moved)
        work_ns = self._dies.program_ns + sensed * self._cell_pages * self._dies.sense_ns
        self._start(now_ns, count, programs, unit, self._cell_pages, work_ns)
        return True

    def _programs_wanted(self, unit: int, most: int) -> int:
        """Return how many programs of so many sectors the buffer has, within a batch."""
        whole = self._unsent // unit
        if self._flushes or self._waiting:
            whole = -(-self._unsent // unit)
        return min(whole, max(1, most))

    def _start(
        self, now_ns: int, count: int, programs: int, unit: int, pages: int, work_ns: float
    ) -> None:
        """Begin a batch: so many programs of the host's pages, so many in all."""
        sectors = min(self._unsent, count * unit)
        self._unsent -= sectors
        batch = self._dies.program(now_ns, programs, sectors, pages, work_ns)
        self._batches.append(batch)
        self._await(batch, self._batch_done)

    def _await(self, programs: Programs, done: Callable[[Programs], None]) -> None:
        """Call ``done`` when programs are done unless reads hold them up."""
        end_ns = self._dies.end_ns(programs)
        programs.timed = True
        self._slc.busy_until(end_ns)
        self._calendar.post(end_ns - self._calendar.now, done, programs)

    def _batch_done(self, batch: Programs) -> None:
        """End the first batches: a flush counts sectors, so none may overtake another."""
        batch.timed = False
        while self._batches and not self._batches[0].timed:
            first = self._batches[0]
            if self._dies.end_ns(first) > self._calendar.now:
                self._await(first, self._batch_done)
                break
            self._end_batch(self._batches.popleft())
        self._forget_held()
        self._program()

    def _end_batch(self, batch: Programs) -> None:
        self._dirty -= batch.sectors
        self._programmed += batch.sectors
        while self._waiting and self._has_room(self._waiting[0]):
            self._take(self._waiting.popleft())
        while self._flushes and self._flushes[0][0] <= self._programmed:
            taken, request = self._flushes.popleft()
            if request.op != FLUSH:
                self._through -= 1
            self._record(Record(request, taken, self._records_of(request)))

    def _records_of(self, request: Request) -> int:
        return self._flush_programs if request.op == FLUSH else self._fua_programs

    def _record(self, record: Record) -> None:
        """Program what finds the data that are in flash, one page after the other."""
        if record.left:
            programs = self._dies.program(
                self._calendar.now, 1, 0, self._cell_pages, self._dies.program_ns
            )
            programs.record = record
            self._await(programs, self._record_done)
        else:
            self._recorded = max(self._recorded, record.taken)
            self._tell_flushed(record.request)

    def _record_done(self, programs: Programs) -> None:
        record = programs.record
        assert record is not None
        if self._dies.end_ns(programs) > self._calendar.now:
            self._await(programs, self._record_done)
        else:
            record.left -= 1
            self._record(record)


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

    @classmethod
    def refusal(cls, params: object) -> str:
        assert isinstance(params, FlashParams)
        caches = {"buffer": params.buffer_bytes, "slc_cache": params.slc_cache_bytes}
        return larger_than_the_drive(caches, params.capacity_bytes)

    def attach(self, name: str, calendar: Calendar, streams: Streams, complete: Complete) -> None:
        self._calendar = calendar
        self._complete = complete
        self._read_fn: Any = self._read  # Bound once, as it is needed for each read.
        self.flash.attach(calendar, self._taken, self._flushed)

    def unsafe_runs(self) -> list[tuple[int, int]]:
        return self.flash.unsafe_runs()

    def _carry_out(self, request: Request, ready_ns: int) -> None:
        """Begin a command that the processor has at ``ready_ns``."""
        if request.op == READ:
            done_ns = self.flash.read(ready_ns, request.sector, request.nr_sectors)
            self._calendar.post_at(done_ns, self._read_fn, request)
        elif request.op == FLUSH:
            self.flash.flush(request)
        elif request.op == DISCARD:
            self.flash.trim(request.sector, request.nr_sectors)
            self._calendar.post_at(ready_ns + self._trim_ns, self._complete, request)
        else:
            self.flash.write(request)

    def _read(self, request: Request) -> None:
        """The sectors are in the controller: send them."""
        calendar = self._calendar
        sent_ns = self._to_host.carry(calendar.now, request.nr_sectors)
        calendar.post_at(sent_ns + self._read_overhead_ns, self._complete, request)

    def _taken(self, request: Request) -> None:
        """The buffer has room: fetch the sectors."""
        now_ns = self._calendar.now
        ready_ns = max(now_ns, self._processor_free_ns)
        sent_ns = self._from_host.carry(ready_ns, request.nr_sectors)
        if not self.flash.is_through(request):
            self._calendar.post(sent_ns - now_ns + self._write_overhead_ns, self._complete, request)

    def _flushed(self, request: Request) -> None:
        """A flush is done, or a write through is in flash."""
        overhead_ns = self._flush_overhead_ns if request.op == FLUSH else self._write_overhead_ns
        self._calendar.post(overhead_ns, self._complete, request)
