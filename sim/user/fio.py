"""fio: operations at places, sizes, depth and pace that a job file says, and what it counts.

Models: *psync*, *sync*, *pvsync*: one operation after the other, each waited for in the call.
*libaio*, *io_uring*: up to `iodepth` operations in flight, submitted and reaped in batches of any
size, by default one by one. libaio's buffered operations, and trims (BLKDISCARD), are done when
they are submitted; those of io_uring go as sim/fs/io_uring.py says. Reads, writes or a
mixture, or trims; sequential or at random.
`FioSession` is fio as it is typed. It makes the files, job after job, and forks a process for each
job, which waits. 100 ms later fio lets all of them go at once. It looks every 100 ms whether a job
may start that has a delay (from fio's own start) or waits at a stonewall for those before. When all
have started it looks every 10 ms whether they have ended.
Counterpart: fio backend.c (do_io, thread_main, run_threads, reap_threads), io_u.c, rate-submit.c,
 ioengines.c, filesetup.c, options.c, stat.c, lib/lfsr.c, lib/zipf.c, HOWTO; 3.36.
Invariants: an operation that was started before the time was up is counted when it ends, as fio
 does. What ends before `ramp` is over is not counted. Records: "fio_start", "fio_done" (the number
 of operations), and "fio_ns" for each with `latency_log`; "fio_end" with the number of jobs.
 The jobs of one group run at the same time; when the session ends, every job has ended.
A file that is read, or written asynchronously, or overwritten (`overwrite`), is there beforehand
 with its size (fio lays it out in a run of its own). What else is written is made by the job.
A job's time begins before it opens its file (set_epoch_time): what opening and dropping pages take
is in its runtime. Whether time is left is asked before (do_io; get_io_u opens the file), so that a
job whose runtime is over by then does one operation.
When a job has opened its file it tells the kernel how it will read it (`fadvise_hint`): at random,
so that nothing is read ahead, or in sequence, so that twice as much is.
A job has the file's dirty pages written and the others dropped (`invalidate`) when it has opened
the file; one without O_DIRECT also before each further pass through its blocks
(loop_cache_invalidate; with `norandommap` there are no passes). By hand: writers of 256 MiB that do
30,000 operations of 4 KiB a second each begin another pass after 65,536 / 30,000 = 2.2 s. So the
file is written every 2.2 s, at 120 MB/s, however far away the limits of dirty memory are.
What `fsync` and `fdatasync` ask for is an operation of its own, after the write that made it due
and before the next one (get_rw_ddir): a job does not end with it. With several in flight it is a
plain fsync() beside them (fio_libaio_queue), with io_uring an operation of the ring. The one of
`end_fsync` takes time and counts nowhere.
Where a mixture has rates, a direction that is ahead of its own lets the other one go (rate_ddir):
the rates hold, not the mixture.
Defaults of `FioParams` are what fio's recorded runs of this project use; a reader of job files
gives every value (sim/scenario/fio_file.py), fio's own defaults included.

Figures (stat.c: plat_val_to_idx, calc_clat_percentiles, add_stat_sample, sum_thread_stats; io_u.c:
io_u_mark_depth, io_u_mark_latency) are struct thread_stat, in constant memory. A latency goes into
running moments and into one of 1856 bins: exact up to 127 ns, above that 64 bins for each power of
two, so that a percentile is within 0.8 % of itself. The number of a latency's values is that of the
operations counted; the bins of a direction sum to it; minimum <= every percentile's bin <= maximum.
Bandwidth and iops are sampled at the first completion after half a second (bwavgtime, iopsavgtime).

Places (get_next_offset, get_next_buflen) are sequential; random with a map (each block once in a
pass) or without one; by Zipf's or Pareto's law; block sizes are one, or drawn by weights (bssplit).
A place lies within its region and is a multiple of the smallest block from its beginning. fio's bit
map of blocks done and its LFSR are replaced: a pass here is a Feistel permutation of the block
numbers, drawn anew for each pass, which needs no memory and has no neighbours that follow each
other, as an LFSR has. Where operations are larger than the map's block, the map is of their
beginnings. fio scatters the ranks of Zipf by a hash, in which ranks may meet; here a permutation
gives each block its own rank. Zipf: rank k of n has the probability k^-theta / zeta(n, theta);
drawn by the approximation of Gray et al., "Quickly generating billion-record synthetic databases"
(1994), which is exact for the first two ranks.
Left out: trims of files (holes), trimwrite, verifying, several files a job, threads; a batch of
 libaio as one io_submit(); exitall, reports while it runs; percentiles of submission and total
 latency, log files, priorities, steady state.

Estimate: N jobs of psync, or one of libaio with depth N, on a server of S: X = 1/S, R = N S.
"""

import errno
import math
import os
import random
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from sim.param import param
from sim.registry import register
from sim.sched.task import Blocking
from sim.sched.wait import WaitQueue
from sim.syscall import (
    IORING_ENTER_GETEVENTS,
    IORING_ENTER_SQ_WAKEUP,
    IORING_FSYNC_DATASYNC,
    IORING_OP_FSYNC,
    IORING_OP_READ,
    IORING_OP_READ_FIXED,
    IORING_OP_WRITE,
    IORING_OP_WRITE_FIXED,
    IORING_SETUP_IOPOLL,
    IORING_SETUP_SQPOLL,
    O_CREAT,
    O_DIRECT,
    O_DSYNC,
    O_RDONLY,
    O_RDWR,
    O_SYNC,
    O_WRONLY,
    POSIX_FADV_DONTNEED,
    POSIX_FADV_RANDOM,
    POSIX_FADV_SEQUENTIAL,
    Sys,
)
from sim.units import NS_PER_S
from sim.user.program import ServerProgram

PLAT_BITS: Final = 6
PLAT_VAL: Final = 1 << PLAT_BITS
PLAT_NR: Final = 29 * PLAT_VAL
AVERAGE_NS: Final = 500_000_000  # bwavgtime=500, iopsavgtime=500
START_POLL_NS: Final = 100_000_000  # run_threads: do_usleep(100000) while jobs are to be started
END_POLL_NS: Final = 10_000_000  # run_threads: do_usleep(10000) while jobs run
KIB: Final = 1024

READ: Final = 0
WRITE: Final = 1
TRIM: Final = 2
SYNC: Final = 3
# Upper ends of the classes of latency_ns and latency_us, and of latency_ms.
LATENCY_BOUNDS: Final = (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)
LATENCY_MS_BOUNDS: Final = (*LATENCY_BOUNDS, 2000)
BATCH_BOUNDS: Final = (0, 4, 8, 16, 32, 64)  # __io_u_mark_map: 0, up to 4, ..., 64, more
DEPTH_BOUNDS: Final = (2, 4, 8, 16, 32, 64)  # io_u_mark_depth: 1, 2 to 3, 4 to 7, ..., 64 on
# User CPU of an operation; assumed: fio's own code for an operation, 3 GHz
OPERATION_USER_NS: Final = 2000


def plat_index(ns: int) -> int:
    """Return the bin of a latency."""
    error_bits = ns.bit_length() - 1 - PLAT_BITS
    if error_bits <= 0:
        return ns
    index = ((error_bits + 1) << PLAT_BITS) + ((ns >> error_bits) & (PLAT_VAL - 1))
    return index if index < PLAT_NR else PLAT_NR - 1


def plat_value(index: int) -> int:
    """Return the middle of a bin, ns."""
    if index < PLAT_VAL << 1:
        return index
    error_bits = (index >> PLAT_BITS) - 1
    base = 1 << (error_bits + PLAT_BITS)
    return base + (2 * (index % PLAT_VAL) + 1) * (1 << error_bits) // 2


def percentiles(plat: Sequence[int], wanted: Sequence[float]) -> list[int]:
    """Return for each of the ascending `wanted` (per cent) the bin that reaches it, ns."""
    samples = sum(plat)
    found: list[int] = []
    total = 0
    for index, count in enumerate(plat):
        total += count
        while count and len(found) < len(wanted) and total >= wanted[len(found)] / 100 * samples:
            found.append(plat_value(index))
    return found


class IoStat:
    """Running moments of something (struct io_stat)."""

    __slots__ = ("largest", "mean", "samples", "smallest", "squares")

    def __init__(self) -> None:
        self.samples: int = 0
        self.smallest: int = 0
        self.largest: int = 0
        self.mean: float = 0.0
        self.squares: float = 0.0  # sum of squared deviations

    def add(self, value: int) -> None:
        """Count one value (add_stat_sample: Welford's recurrence)."""
        self.samples += 1
        if value > self.largest:
            self.largest = value
        if value < self.smallest or self.samples == 1:
            self.smallest = value
        delta = value - self.mean
        self.mean += delta / self.samples
        self.squares += delta * (value - self.mean)

    def merge(self, other: "IoStat") -> None:
        """Take in what another one counted (__sum_stat)."""
        if not other.samples:
            return
        if not self.samples:
            self.smallest = other.smallest
        samples = self.samples + other.samples
        delta = other.mean - self.mean
        self.squares += other.squares + delta * delta * self.samples * other.samples / samples
        self.mean += delta * other.samples / samples
        self.samples = samples
        self.smallest = min(self.smallest, other.smallest)
        self.largest = max(self.largest, other.largest)

    def add_rates(self, other: "IoStat") -> None:
        """Add the rates of a job that ran at the same time (sum_stat with pure_sum)."""
        self.samples += other.samples
        self.smallest += other.smallest
        self.largest += other.largest
        self.mean += other.mean
        self.squares += other.squares

    def stddev(self) -> float:
        """Return the standard deviation of the sample; 0 below two values."""
        if self.samples < 2:
            return 0.0
        return float((self.squares / (self.samples - 1)) ** 0.5)


class DirectionStat:
    """Reads, or writes, of a job."""

    __slots__ = (
        "bw",
        "clat",
        "iops",
        "lat",
        "plat",
        "runtime_ns",
        "sampled_bytes",
        "sampled_ios",
        "sampled_ns",
        "slat",
        "total_bytes",
        "total_ios",
    )

    def __init__(self, begin_ns: int) -> None:
        self.total_ios: int = 0
        self.total_bytes: int = 0
        self.runtime_ns: int = 0
        self.slat = IoStat()
        self.clat = IoStat()
        self.lat = IoStat()
        self.plat: list[int] = [0] * PLAT_NR  # of clat
        self.bw = IoStat()  # KiB/s
        self.iops = IoStat()
        self.sampled_ns: int = begin_ns
        self.sampled_bytes: int = 0
        self.sampled_ios: int = 0

    def complete(self, now_ns: int, size: int, submit_ns: int, complete_ns: int) -> None:
        """Count an operation that took `submit_ns` to submit and then `complete_ns`."""
        self.total_ios += 1
        self.total_bytes += size
        self.clat.add(complete_ns)
        self.lat.add(submit_ns + complete_ns)
        self.plat[plat_index(complete_ns)] += 1
        if now_ns - self.sampled_ns >= AVERAGE_NS:
            self._sample(now_ns)

    def _sample(self, now_ns: int) -> None:
        """Take the rates since the last sample (__add_samples)."""
        spent_ns = now_ns - self.sampled_ns
        moved = self.total_bytes - self.sampled_bytes
        self.bw.add(moved * NS_PER_S // spent_ns // KIB)
        self.iops.add((self.total_ios - self.sampled_ios) * NS_PER_S // spent_ns)
        self.sampled_ns = now_ns
        self.sampled_bytes = self.total_bytes
        self.sampled_ios = self.total_ios

    def merge(self, other: "DirectionStat") -> None:
        """Take in a job of the same group."""
        self.total_ios += other.total_ios
        self.total_bytes += other.total_bytes
        self.runtime_ns = max(self.runtime_ns, other.runtime_ns)
        self.slat.merge(other.slat)
        self.clat.merge(other.clat)
        self.lat.merge(other.lat)
        self.plat = [mine + theirs for mine, theirs in zip(self.plat, other.plat, strict=True)]
        self.bw.add_rates(other.bw)
        self.iops.add_rates(other.iops)


class JobStat:
    """All that is counted of a job, from `begin_ns` on; with ramp_time, from its end."""

    def __init__(self, begin_ns: int) -> None:
        self.begin_ns = begin_ns
        self.run_ns: int = 0  # summed over the jobs of a group
        self.end_ns: int = begin_ns
        self.directions = [DirectionStat(begin_ns) for _ in (READ, WRITE, TRIM)]
        self.sync = IoStat()  # of fsync() and fdatasync()
        self.fsyncs: int = 0
        self.sync_plat: list[int] = [0] * PLAT_NR
        self.depth: list[int] = [0] * 7
        self.submit: list[int] = [0] * 7
        self.reaped: list[int] = [0] * 7
        self.latency_ns: list[int] = [0] * 10
        self.latency_us: list[int] = [0] * 10
        self.latency_ms: list[int] = [0] * 12
        self.user_ns: int = 0
        self.system_ns: int = 0
        self.context_switches: int = 0
        self.error: int = 0  # errno that ended the job
        self.error_where: str = ""
        self.members: int = 1

    def queued(self, depth: int, count: int) -> None:
        """Count operations started with `depth` in flight, themselves included."""
        self.depth[bisect_right(DEPTH_BOUNDS, depth)] += count

    def mark_latency(self, ns: int) -> None:
        """Count a completion latency in its class (io_u_mark_latency)."""
        if ns < 1000:
            self.latency_ns[bisect_right(LATENCY_BOUNDS, ns)] += 1
        elif ns < 1_000_000:
            self.latency_us[bisect_right(LATENCY_BOUNDS, ns // 1000)] += 1
        else:
            self.latency_ms[bisect_right(LATENCY_MS_BOUNDS, ns // 1_000_000)] += 1

    def synced(self, ns: int) -> None:
        """Count the time of an fsync() or fdatasync()."""
        self.sync.add(ns)
        self.sync_plat[plat_index(ns)] += 1

    def end(self, now_ns: int) -> None:
        """The job is over: its runtime counts for each direction that was used."""
        self.end_ns = now_ns
        self.run_ns = now_ns - self.begin_ns
        for direction in self.directions:
            if direction.total_ios:
                direction.runtime_ns = self.run_ns

    def merge(self, other: "JobStat") -> None:
        """Take in a job of the same group (group_reporting)."""
        self.begin_ns = min(self.begin_ns, other.begin_ns)
        self.end_ns = max(self.end_ns, other.end_ns)
        self.run_ns += other.run_ns
        for mine, theirs in zip(self.directions, other.directions, strict=True):
            mine.merge(theirs)
        self.sync.merge(other.sync)
        self.fsyncs += other.fsyncs
        self.sync_plat = _added(self.sync_plat, other.sync_plat)
        self.depth = _added(self.depth, other.depth)
        self.submit = _added(self.submit, other.submit)
        self.reaped = _added(self.reaped, other.reaped)
        self.latency_ns = _added(self.latency_ns, other.latency_ns)
        self.latency_us = _added(self.latency_us, other.latency_us)
        self.latency_ms = _added(self.latency_ms, other.latency_ms)
        self.user_ns += other.user_ns
        self.system_ns += other.system_ns
        self.context_switches += other.context_switches
        self.members += other.members
        if not self.error:
            self.error, self.error_where = other.error, other.error_where


def _added(mine: list[int], theirs: list[int]) -> list[int]:
    return [a + b for a, b in zip(mine, theirs, strict=True)]


ROUNDS: Final = 6
KEY_BITS: Final = 30
ODD: Final = 0x2545F491  # an odd multiplier: it carries every bit of a half upwards
ZETA_EXACT: Final = 4096  # terms summed one by one


class Permutation:
    """A random permutation of 0 .. size - 1 (an unbalanced Feistel network with cycle walking)."""

    __slots__ = ("high_bits", "keys", "low_bits", "size")

    def __init__(self, size: int, chance: random.Random) -> None:
        bits = max((size - 1).bit_length(), 2)
        self.size = size
        self.high_bits: int = bits // 2
        self.low_bits: int = bits - self.high_bits
        self.keys: list[int] = [chance.getrandbits(KEY_BITS) for _ in range(ROUNDS)]

    def at(self, index: int) -> int:
        """Return where `index` goes."""
        place = self._mixed(index)
        while place >= self.size:
            place = self._mixed(place)
        return place

    def _mixed(self, value: int) -> int:
        """Exchange the halves, mixing one into the other, an even number of times."""
        wide, narrow = self.low_bits, self.high_bits
        left, right = value >> wide, value & ((1 << wide) - 1)
        for key in self.keys:
            mixed = ((right ^ key) * ODD) & 0xFFFFFFFF
            mixed ^= mixed >> 15
            left, right = right, (left ^ ((mixed * 0x2C1B3C6D) >> 17)) & ((1 << narrow) - 1)
            wide, narrow = narrow, wide
        return (left << wide) | right


class Places:
    """The next place of a direction, bytes from the beginning of the file."""

    def __init__(self, begin: int, size: int, block: int) -> None:
        self.begin = begin
        self.size = size
        self.block = block
        self.blocks = size // block

    def next(self, size: int) -> int:
        """Return the place of an operation of `size` bytes."""
        raise NotImplementedError

    def is_through(self) -> bool:
        """Return whether a pass through all blocks has ended."""
        return False


class Sequential(Places):
    """One behind the other; from the beginning again at the end."""

    def __init__(self, begin: int, size: int, block: int) -> None:
        super().__init__(begin, size, block)
        self.position: int = 0

    def is_through(self) -> bool:
        return self.position + self.block > self.size

    def next(self, size: int) -> int:
        """Return the end of the last one."""
        if self.position + size > self.size:
            self.position = 0
        place = self.begin + self.position
        self.position += size
        return place


class Uniform(Places):
    """Anywhere, blocks seen before or not (norandommap)."""

    def __init__(self, begin: int, size: int, block: int, chance: random.Random) -> None:
        super().__init__(begin, size, block)
        self.chance = chance

    def next(self, size: int) -> int:
        """Draw a block."""
        return self.begin + int(self.chance.random() * self.blocks) * self.block


class Mapped(Places):
    """Each block once, in random order; then again in another order."""

    def __init__(self, begin: int, size: int, block: int, chance: random.Random) -> None:
        super().__init__(begin, size, block)
        self.chance = chance
        self.done: int = 0
        self.order = Permutation(self.blocks, chance)

    def is_through(self) -> bool:
        return self.done == self.blocks

    def next(self, size: int) -> int:
        """Take the next block of the order."""
        if self.done == self.blocks:
            self.done = 0
            self.order = Permutation(self.blocks, self.chance)
        place = self.order.at(self.done)
        self.done += 1
        return self.begin + place * self.block


class Ranked(Places):
    """By popularity: a rank is drawn, and each rank has its block."""

    def __init__(self, begin: int, size: int, block: int, chance: random.Random) -> None:
        super().__init__(begin, size, block)
        self.chance = chance
        self.scatter = Permutation(self.blocks, chance)

    def next(self, size: int) -> int:
        """Draw a rank and go to its block."""
        return self.begin + self.scatter.at(self.rank(self.chance.random())) * self.block

    def rank(self, uniform: float) -> int:
        """Return the rank, from 0, of a number drawn from [0, 1)."""
        raise NotImplementedError


class Zipf(Ranked):
    """Rank k + 1 in proportion to (k + 1)^-theta."""

    def __init__(
        self, begin: int, size: int, block: int, chance: random.Random, theta: float
    ) -> None:
        super().__init__(begin, size, block, chance)
        self.theta = theta
        self.zeta: float = zeta(self.blocks, theta)
        first_two = 1.0 + 0.5**theta
        self.eta: float = 1.0
        if self.blocks > 2:
            tail = 1.0 - float((2.0 / self.blocks) ** (1.0 - theta))
            self.eta = tail / (1.0 - first_two / self.zeta)

    def rank(self, uniform: float) -> int:
        """Invert the distribution (zipf_next)."""
        scaled = uniform * self.zeta
        if scaled < 1.0:
            return 0
        if scaled < 1.0 + 0.5**self.theta:
            return min(1, self.blocks - 1)
        share = float((self.eta * uniform - self.eta + 1.0) ** (1.0 / (1.0 - self.theta)))
        return min(int(self.blocks * share), self.blocks - 1)


class Pareto(Ranked):
    """A share h of the blocks gets a share 1 - h of the operations, again and again within it."""

    def __init__(self, begin: int, size: int, block: int, chance: random.Random, h: float) -> None:
        super().__init__(begin, size, block, chance)
        self.power: float = math.log(h) / math.log(1.0 - h)

    def rank(self, uniform: float) -> int:
        """Invert the distribution (pareto_next)."""
        return int((self.blocks - 1) * float(uniform**self.power))


def zeta(count: int, theta: float) -> float:
    """Return the sum of k^-theta for k = 1 to `count` (Euler and Maclaurin behind 4096 terms)."""
    exact = min(count, ZETA_EXACT)
    total = math.fsum(float(k**-theta) for k in range(1, exact + 1))
    if count == exact:
        return total
    low, high = float(exact), float(count)
    integral = (high ** (1.0 - theta) - low ** (1.0 - theta)) / (1.0 - theta)
    ends = (high**-theta - low**-theta) / 2.0
    slopes = theta * (low ** (-theta - 1.0) - high ** (-theta - 1.0)) / 12.0
    return float(total + integral + ends + slopes)


class Sizes:
    """The size of the next operation: always the same, or drawn by weights."""

    def __init__(self, split: Sequence[tuple[int, float]], chance: random.Random | None) -> None:
        self.smallest: int = min(size for size, _ in split)
        self.sizes: list[int] = [size for size, _ in split]
        self.chance = chance
        self.until: list[float] = []
        total = 0.0
        for _, weight in split:
            total += weight
            self.until.append(total)

    def next(self) -> int:
        """Return a size, bytes."""
        if self.chance is None:
            return self.sizes[0]
        drawn = self.chance.random() * self.until[-1]
        for index, bound in enumerate(self.until):
            if drawn < bound:
                return self.sizes[index]
        return self.sizes[-1]


RANDREAD: Final = "randread"
KINDS: Final = ("read", "write", RANDREAD, "randwrite", "rw", "randrw", "trim", "randtrim")
DIRECTIONS: Final[Mapping[str, tuple[int, ...]]] = {
    "read": (READ,),
    RANDREAD: (READ,),
    "write": (WRITE,),
    "randwrite": (WRITE,),
    "rw": (READ, WRITE),
    "randrw": (READ, WRITE),
    "trim": (TRIM,),
    "randtrim": (TRIM,),
}
PSYNC: Final = "psync"
SYNCHRONOUS: Final = ("psync", "sync", "pvsync", "pvsync2", "vsync")
IO_URING: Final = "io_uring"
ADVICE: Final = ("0", "1", "random", "sequential")
FALLOCATES: Final = ("native", "keep", "truncate", "none")
ENGINES: Final = (*SYNCHRONOUS, "libaio", IO_URING)
# Options of io_uring -> the feature of the release that has it (sim/fs/features.py).
URING_OPTIONS: Final[Mapping[str, str]] = {
    "hipri": "io_uring",
    "fixedbufs": "io_uring",
    "registerfiles": "io_uring",
    "sqthread_poll": "io_uring",
    "sqthread_poll_cpu": "io_uring",
    "nonvectored": "io_uring_reads",
}
SYNC_FLAGS: Final[Mapping[str, int]] = {"none": 0, "sync": O_SYNC, "dsync": O_DSYNC}


@dataclass(frozen=True, kw_only=True)
class FioParams:
    """A section of a job file."""

    filename: str = param("/data", dim="text", source="scenario", doc="file or device")
    rw: str = param(RANDREAD, dim="text", choices=KINDS, source="scenario", doc="what is done")
    rwmixread: float = param(
        50.0,
        dim="percent",
        minimum=0,
        maximum=100,
        source="fio: rwmixread=50",
        doc="share of reads in a mixture",
    )
    ioengine: str = param(
        PSYNC, dim="text", choices=ENGINES, source="fio: psync", doc="how it is done"
    )
    iodepth: int = param(
        1,
        dim="count",
        minimum=1,
        source="fio: iodepth=1",
        doc="operations in flight, libaio and io_uring",
    )
    iodepth_batch: int = param(
        1,
        dim="count",
        minimum=0,
        source="fio: iodepth_batch=1",
        doc="operations that are submitted together; 0 = iodepth",
    )
    iodepth_batch_complete_min: int = param(
        1,
        dim="count",
        minimum=0,
        source="fio: iodepth_batch_complete_min=1",
        doc="operations that are waited for together; 0 = one, after each submission",
    )
    iodepth_batch_complete_max: int = param(
        0,
        dim="count",
        minimum=0,
        source="fio: iodepth_batch_complete_max=0",
        doc="operations that are reaped together at most; at least as many as are waited for",
    )
    iodepth_low: int = param(
        0,
        dim="count",
        minimum=0,
        source="fio: iodepth_low=0",
        doc="a full queue is reaped until so many are in flight; 0 = iodepth",
    )
    hipri: bool = param(
        False, dim="bool", source="fio: hipri=0", doc="io_uring: look for completions on the CPU"
    )
    fixedbufs: bool = param(
        False, dim="bool", source="fio: fixedbufs=0", doc="io_uring: registered buffers"
    )
    registerfiles: bool = param(
        False, dim="bool", source="fio: registerfiles=0", doc="io_uring: registered files"
    )
    sqthread_poll: bool = param(
        False,
        dim="bool",
        source="fio: sqthread_poll=0",
        doc="io_uring: a thread of the kernel submits; files are registered",
    )
    sqthread_poll_cpu: int = param(
        -1,
        dim="count",
        minimum=-1,
        source="fio: sqthread_poll_cpu",
        doc="CPU of that thread; -1 = any",
    )
    nonvectored: bool = param(
        False,
        dim="bool",
        source="fio: nonvectored=-1",
        doc="io_uring: operations without a vector; costs and does the same",
    )
    block_size_bytes: int = param(
        "4 KiB", dim="bytes", minimum=512, source="scenario", doc="bytes of one operation"
    )
    size_bytes: int = param(
        "1 GiB",
        dim="bytes",
        minimum=0,
        source="scenario",
        doc="the part of the file that is used; a file that is read exists with this size; 0 = all"
        " of a file that is there",
    )
    offset_bytes: int = param(
        0, dim="bytes", minimum=0, source="fio: offset=0", doc="where that part begins"
    )
    loops: int = param(1, dim="count", minimum=1, source="fio: loops=1", doc="times through it")
    direct: bool = param(True, dim="bool", source="scenario", doc="O_DIRECT")
    sync: str = param(
        "none",
        dim="text",
        choices=tuple(SYNC_FLAGS),
        source="fio: sync=none",
        doc="O_SYNC or O_DSYNC",
    )
    fsync: int = param(0, dim="count", minimum=0, source="fio: 0", doc="fsync after so many writes")
    fdatasync: int = param(
        0, dim="count", minimum=0, source="fio: 0", doc="fdatasync after so many writes"
    )
    end_fsync: bool = param(False, dim="bool", source="fio: 0", doc="fsync at the end")
    invalidate: bool = param(
        True, dim="bool", source="fio: invalidate=1", doc="drop the file's cached pages first"
    )
    fadvise_hint: str = param(
        "1",
        dim="text",
        choices=ADVICE,
        source="fio: fadvise_hint=1",
        doc="what the kernel is told for its read-ahead: random, sequential, 1 = whichever `rw` is,"
        " 0 = nothing",
    )
    laid_out: bool = param(
        True, dim="bool", source="fio: create_on_open=0", doc="what is read is there beforehand"
    )
    overwrite: bool = param(
        False, dim="bool", source="fio: overwrite=0", doc="what is written is there beforehand"
    )
    fallocate: str = param(
        "native",
        dim="text",
        choices=FALLOCATES,
        source="fio: fallocate=native (3.33, filesetup.c fallocate_file)",
        doc="how a file that is only written gets its blocks before the job: native, keep (the"
        " size stays), truncate (a size without blocks), none",
    )
    norandommap: bool = param(
        True, dim="bool", source="scenario", doc="random places again and again; false: once each"
    )
    random_distribution: str = param(
        "random",
        dim="text",
        choices=("random", "zipf", "pareto"),
        source="fio: random",
        doc="law of random places",
    )
    theta: float = param(
        1.1, dim="number", minimum=0.0, source="fio: zipf:1.1", doc="exponent of zipf, h of pareto"
    )
    runtime_ns: int = param(
        0, dim="time_ns", minimum=0, source="scenario", doc="time at most; 0 = until all is done"
    )
    time_based: bool = param(
        True, dim="bool", source="scenario", doc="with a runtime: go on until it is over"
    )
    ramp_ns: int = param(
        0, dim="time_ns", minimum=0, source="fio: ramp_time=0", doc="time before anything counts"
    )
    read_iops: float = param(
        0.0,
        dim="rate_per_s",
        minimum=0,
        source="fio: rate_iops",
        doc="most reads a second; 0 = any",
    )
    write_iops: float = param(
        0.0, dim="rate_per_s", minimum=0, source="fio: rate_iops", doc="the same of writes"
    )
    read_rate_bytes_per_s: float = param(
        0.0, dim="bytes_per_s", minimum=0, source="fio: rate", doc="most bytes read; 0 = any"
    )
    write_rate_bytes_per_s: float = param(
        0.0, dim="bytes_per_s", minimum=0, source="fio: rate", doc="the same of writes"
    )
    think_ns: int = param(
        0, dim="time_ns", minimum=0, source="fio: thinktime=0", doc="pause after operations"
    )
    think_blocks: int = param(
        1, dim="count", minimum=1, source="fio: thinktime_blocks=1", doc="after so many"
    )
    start_ns: int = param(
        0, dim="time_ns", minimum=0, source="scenario", doc="fio's own start, before the job"
    )
    start_user_ns: int = param(
        0, dim="time_ns", minimum=0, source="scenario", doc="user CPU of fio's own start"
    )
    latency_log: bool = param(
        True, dim="bool", source="scenario", doc="a record for each operation"
    )
    # What a job file says that no single value can: sizes with weights, a stream of one's own.
    read_split: tuple[tuple[int, float], ...] = ()
    write_split: tuple[tuple[int, float], ...] = ()
    stream: str = ""

    def batch_submit(self) -> int:
        """Return how many operations are submitted together (fixup_options)."""
        if 0 < self.iodepth_batch < self.iodepth:
            return self.iodepth_batch
        return self.iodepth

    def low(self) -> int:
        """Return to how many in flight a full queue is reaped (fixup_options)."""
        if 0 < self.iodepth_low < self.iodepth:
            return self.iodepth_low
        return self.iodepth

    def splits(self) -> tuple[tuple[tuple[int, float], ...], ...]:
        """Return the sizes of reads, writes and trims (as those of writes), with their weights."""
        plain = ((self.block_size_bytes, 100.0),)
        writes = self.write_split or plain
        return self.read_split or plain, writes, writes


class Libaio:
    """Engine libaio: io_submit() and io_getevents()."""

    syncs = False  # fsync is waited for (fio_libaio_queue)

    def __init__(self, sys: Sys, fd: int, params: FioParams) -> None:
        self.sys = sys
        self.fd = fd
        self.direct = params.direct
        self.queue_: list[tuple[int, int, int, int]] = []
        self.done: deque[int] = deque()

    def queue(self, direction: int, size: int, place: int, tag: int) -> None:
        """Take an operation."""
        self.queue_.append((direction, size, place, tag))

    def commit(self) -> Blocking[None]:
        """Submit; buffered ones are done when io_submit() returns, a trim is waited for."""
        for direction, size, place, tag in self.queue_:
            if self.direct and direction != TRIM:
                yield from self.sys.io_submit(self.fd, size, place, tag, direction == WRITE)
            else:
                yield from one_operation(self.sys, self.fd, direction, size, place)
                self.done.append(tag)
        self.queue_.clear()

    def reap(self, least: int, most: int) -> Blocking[list[int]]:
        """Wait for completions; return their tags."""
        found: list[int] = []
        while len(found) < least:
            found.append(self.done.popleft() if self.done else (yield from self.sys.io_getevents()))
        while self.done and len(found) < most:
            found.append(self.done.popleft())
        return found


class Uring:
    """Engine io_uring (engines/io_uring.c)."""

    syncs = True  # fsync is an operation like others

    def __init__(self, sys: Sys, fd: int, params: FioParams) -> None:
        self.sys = sys
        self.fd = fd
        flags = IORING_SETUP_IOPOLL if params.hipri else 0
        self.by_thread = params.sqthread_poll
        if self.by_thread:
            flags |= IORING_SETUP_SQPOLL
        cpu = params.sqthread_poll_cpu
        self.ring = sys.io_uring_setup(params.iodepth, flags, sq_thread_cpu=cpu)
        if params.registerfiles or self.by_thread:
            sys.io_uring_register(self.ring, files=(fd,))
        self.opcodes = (IORING_OP_READ, IORING_OP_WRITE)
        if params.fixedbufs:
            sys.io_uring_register(self.ring, buffers=True)
            self.opcodes = (IORING_OP_READ_FIXED, IORING_OP_WRITE_FIXED)
        self.queued: int = 0
        self.trims: list[tuple[int, int, int]] = []
        self.done: deque[int] = deque()

    def queue(self, direction: int, size: int, place: int, tag: int) -> None:
        """Fill in an entry of the ring; a trim is no operation of it."""
        if direction == TRIM:
            self.trims.append((size, place, tag))
            return
        if direction == SYNC:
            flags = 0 if size else IORING_FSYNC_DATASYNC
            has_room = self.ring.prep(IORING_OP_FSYNC, self.fd, 0, 0, tag, flags)
        else:
            has_room = self.ring.prep(self.opcodes[direction], self.fd, size, place, tag)
        assert has_room, "the ring has as many entries as operations are in flight"
        self.queued += 1

    def commit(self) -> Blocking[None]:
        """Have the kernel take the entries; its thread takes them itself, unless it sleeps."""
        count = self.queued
        self.queued = 0
        if count and self.by_thread:
            if self.ring.needs_wakeup:
                yield from self.sys.io_uring_enter(self.ring, count, 0, IORING_ENTER_SQ_WAKEUP)
        elif count:
            yield from self.sys.io_uring_enter(self.ring, count, 0, IORING_ENTER_GETEVENTS)
        for size, place, tag in self.trims:
            yield from self.sys.blkdiscard(self.fd, size, place)
            self.done.append(tag)
        self.trims.clear()

    def reap(self, least: int, most: int) -> Blocking[list[int]]:
        """Take completions out of the ring; wait where there are too few."""
        completions = self.ring.cq
        found: list[int] = []
        while True:
            while self.done and len(found) < most:
                found.append(self.done.popleft())
            while completions and len(found) < most:
                tag, result = completions.popleft()
                if result < 0:
                    raise OSError(-result, os.strerror(-result))
                found.append(tag)
            missing = least - len(found)
            if missing <= 0:
                return found
            if self.by_thread:
                yield from self.sys.look_for_cqe(self.ring)
            else:
                yield from self.sys.io_uring_enter(self.ring, 0, missing, IORING_ENTER_GETEVENTS)


def one_operation(sys: Sys, fd: int, direction: int, size: int, place: int) -> Blocking[object]:
    """Do one operation that is waited for in the call."""
    if direction == READ:
        return sys.pread(fd, size, place)
    if direction == WRITE:
        return sys.pwrite(fd, size, place)
    return sys.blkdiscard(fd, size, place)


@register("program", "fio", params=FioParams, doc="fio: a job of reads and writes")
class Fio(ServerProgram):
    """One job."""

    marks: ClassVar[tuple[str, ...]] = ("fio_done", "fio_ns", "fio_start")

    def __init__(self, params: FioParams) -> None:
        self.params = params
        self.stat = JobStat(0)
        self.directions = DIRECTIONS[params.rw]
        self.drops_cache: bool = params.invalidate and not params.direct  # between two passes
        self.end_ns: int = 0  # no operation is started then or later; 0 = no such time
        self.ramp_end_ns: int = 0  # 0: over
        self.limit: int = 0  # bytes to move in all
        self.issued: list[int] = [0, 0, 0]  # bytes, by direction
        self.started: list[int] = [0, 0, 0]  # bytes, by direction
        self.writes: int = 0
        self.sync_due: bool = False
        self.done: int = 0
        self.next_direction: int = -1  # drawn, not yet used
        # In flight: direction, bytes, when begun, ns until the kernel had it.
        self.flying: dict[int, tuple[int, int, int, int]] = {}
        self.uncommitted: list[int] = []  # those that the kernel does not know of yet
        self.has_begun: bool = False
        self.has_asked: bool = False  # whether an operation may be started
        self.places: list[Places] = []
        self.sizes: list[Sizes] = []

    @classmethod
    def kernel_needs(cls, params: FioParams) -> Mapping[str, str]:
        """Return which options ask for a feature of the kernel, and its name."""
        if params.ioengine != IO_URING:
            return {}
        used = {
            option: feature
            for option, feature in URING_OPTIONS.items()
            if getattr(params, option) not in (False, -1)
        }
        return {"ioengine": "io_uring", **used}

    def files(self) -> Mapping[str, int]:
        params = self.params
        if self._makes_its_file() or not params.laid_out or not params.size_bytes:
            return {}
        return {params.filename: params.offset_bytes + params.size_bytes}

    def _makes_its_file(self) -> bool:
        """Return whether the file is written alone, so that it is not laid out (extend_file)."""
        return self.directions == (WRITE,) and not self.params.overwrite

    def main(self, sys: Sys) -> Blocking[None]:
        """Be fio with this job alone, let go at once."""
        params = self.params
        sys.compute(params.start_user_ns)
        yield from sys.sleep(params.start_ns)
        if (yield from self.set_up(sys)):
            yield from self.run(sys)

    def set_up(self, sys: Sys) -> Blocking[bool]:
        """Make the file that the job is to write; return whether that went well (setup_files)."""
        params = self.params
        is_file = not params.filename.startswith("/dev/")
        if is_file and self._makes_its_file() and params.laid_out:
            try:
                fd = yield from sys.open(params.filename, O_WRONLY | O_CREAT)
                yield from self._fallocate(sys, fd)
                yield from sys.close(fd)
            except OSError as error:
                self._fail(sys, error)
                return False
        return True

    def run(self, sys: Sys) -> Blocking[None]:
        """Open, do the operations, tell how many."""
        try:
            yield from self._job(sys)
        except OSError as error:
            self._fail(sys, error)
        sys.trace_marker("fio_done", self.done)

    def _fail(self, sys: Sys, error: OSError) -> None:
        """End the job with what is counted so far."""
        if not self.has_begun:
            self.stat = JobStat(sys.clock_ns())
        self.stat.error = error.errno or 0
        self.stat.error_where = str(error.filename)
        self.stat.end(sys.clock_ns())
        if self.has_begun:
            self._note_usage(sys, 1)

    def _job(self, sys: Sys) -> Blocking[None]:
        """Be the job from its first moment to its last (thread_main, do_io)."""
        params = self.params
        sys.trace_marker("fio_start", 0)
        self._begin(sys)
        fd = yield from sys.open(params.filename, self._flags())
        if params.invalidate:
            yield from sys.fadvise(fd, POSIX_FADV_DONTNEED)
        yield from self._advise(sys, fd)
        self._draw_from(sys, params.size_bytes or sys.fstat_size(fd) - params.offset_bytes)
        if params.ioengine in SYNCHRONOUS:
            yield from self._synchronous(sys, fd)
        else:
            yield from self._queued(sys, fd)
        if params.end_fsync and WRITE in self.directions:
            yield from sys.fsync(fd)
        self.stat.end(sys.clock_ns())
        self._note_usage(sys, 1)
        yield from sys.close(fd)

    def _fallocate(self, sys: Sys, fd: int) -> Blocking[None]:
        """Give a file that is too short its size, without data (fallocate_file)."""
        params = self.params
        size = params.offset_bytes + params.size_bytes
        if params.fallocate == "none" or sys.fstat_size(fd) >= size or not params.size_bytes:
            return
        if params.fallocate == "truncate":
            yield from sys.ftruncate(fd, size)
            return
        try:
            yield from sys.fallocate(fd, 0, size, keep_size=params.fallocate == "keep")
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise

    def _advise(self, sys: Sys, fd: int) -> Blocking[None]:
        """Tell the kernel how the file will be read (td_io_open_file); direct I/O does so too."""
        hint = self.params.fadvise_hint
        if hint == "0":
            return
        is_random = self.params.rw.startswith("rand") if hint == "1" else hint == "random"
        yield from sys.fadvise(fd, POSIX_FADV_RANDOM if is_random else POSIX_FADV_SEQUENTIAL)

    def _flags(self) -> int:
        """Return the flags of open()."""
        params = self.params
        direct = O_DIRECT if params.direct else 0
        if self.directions == (READ,):
            return O_RDONLY | direct
        create = 0 if params.filename.startswith("/dev/") else O_CREAT
        access = O_WRONLY if READ not in self.directions else O_RDWR
        return access | create | direct | SYNC_FLAGS[params.sync]

    def _draw_from(self, sys: Sys, size: int) -> None:
        """Make the sources of places and sizes for both directions."""
        params = self.params
        for split, name in zip(params.splits(), ("read", "write", "trim"), strict=True):
            chance = sys.stream(f"{params.stream}{name}_sizes") if len(split) > 1 else None
            self.sizes.append(Sizes(split, chance))
        smallest = min(self.sizes[direction].smallest for direction in self.directions)
        if size < smallest:
            raise OSError(errno.EINVAL, "smaller than a block", params.filename)
        for name in ("places", "writes"):
            self.places.append(self._places(sys, size, smallest, name))
        self.places.append(self.places[WRITE])  # A job of trims does nothing else.
        self.limit = size // smallest * smallest * params.loops

    def _places(self, sys: Sys, size: int, block: int, name: str) -> Places:
        """Return where one direction goes; a job of one direction draws from "places"."""
        params = self.params
        begin = params.offset_bytes
        if not params.rw.startswith("rand"):
            return Sequential(begin, size, block)
        one = len(self.directions) == 1
        chance = sys.stream(params.stream + ("places" if one else name))
        if params.random_distribution == "zipf":
            return Zipf(begin, size, block, chance, params.theta)
        if params.random_distribution == "pareto":
            return Pareto(begin, size, block, chance, params.theta)
        if params.norandommap:
            return Uniform(begin, size, block, chance)
        return self.places[0] if self.places else Mapped(begin, size, block, chance)

    def _begin(self, sys: Sys) -> None:
        """Start the clock, or the ramp before it."""
        params = self.params
        now_ns = sys.clock_ns()
        self.has_begun = True
        self.ramp_end_ns = now_ns + params.ramp_ns if params.ramp_ns else 0
        self.stat = JobStat(now_ns + params.ramp_ns)
        if params.runtime_ns:
            self.end_ns = now_ns + params.ramp_ns + params.runtime_ns
        self._note_usage(sys, -1)

    def _end_ramp(self, sys: Sys) -> None:
        """Count from here on (reset_all_stats)."""
        self.stat = JobStat(self.stat.begin_ns)
        self.ramp_end_ns = 0
        self.issued = [0, 0, 0]
        self.started = [0, 0, 0]
        self._note_usage(sys, -1)

    def _note_usage(self, sys: Sys, sign: int) -> None:
        """Count CPU time and context switches: -1 where counting begins, 1 where it ends."""
        user_ns, system_ns = sys.getrusage()
        self.stat.user_ns += sign * user_ns
        self.stat.system_ns += sign * system_ns
        self.stat.context_switches += sign * sys.context_switches()

    def progress(self, now_ns: int) -> float:
        """Return which part of the job is done, 0 to 1; 0 before it has begun."""
        if not self.limit:
            return 0.0
        if self.stat.run_ns:
            return 1.0
        params = self.params
        by_size = sum(self.issued) / self.limit
        if not self.end_ns:
            return min(by_size, 1.0)
        whole_ns = params.ramp_ns + params.runtime_ns
        by_time = 1.0 - (self.end_ns - now_ns) / whole_ns
        return min(by_time if params.time_based else max(by_time, by_size), 1.0)

    # -- What comes next, and when.

    def _goes_on(self, sys: Sys, now_ns: int) -> bool:
        """Whether another operation may be started.

        fio asks before it opens the file for the first one, which is done however late it is then.
        """
        if self.ramp_end_ns and now_ns >= self.ramp_end_ns:
            self._end_ramp(sys)
        is_first = not self.has_asked
        self.has_asked = True
        if self.end_ns:
            if now_ns >= self.end_ns and not is_first:
                return False
            if self.params.time_based or self.ramp_end_ns:
                return True
        return sum(self.issued) < self.limit

    def _direction(self, sys: Sys) -> int:
        """Return the next direction; drawn once, however often its turn is put off."""
        if self.next_direction < 0:
            self.next_direction = self.directions[0]
            if len(self.directions) > 1:
                drawn = 100.0 * sys.stream(self.params.stream + "mix").random()
                self.next_direction = READ if drawn < self.params.rwmixread else WRITE
        return self.next_direction

    def _delay_ns(self, sys: Sys, now_ns: int) -> int:
        """Return how long no operation may begin; choose which direction may first (rate_ddir)."""
        direction = self._direction(sys)
        delay_ns = self._due_in_ns(direction, now_ns)
        if delay_ns and len(self.directions) > 1 and 0 < self.params.rwmixread < 100:
            other = WRITE if direction == READ else READ
            other_ns = self._due_in_ns(other, now_ns)
            if other_ns < delay_ns:
                self.next_direction = other
                return other_ns
        return delay_ns

    def _due_in_ns(self, direction: int, now_ns: int) -> int:
        """Return how long the rate forbids the next operation (rate_next_io_time)."""
        params = self.params
        iops = params.read_iops if direction == READ else params.write_iops
        rate = params.read_rate_bytes_per_s if direction == READ else params.write_rate_bytes_per_s
        due_ns = 0
        if iops:
            due_ns = int(self.started[direction] * NS_PER_S / iops)
        if rate:
            due_ns = max(due_ns, int(self.issued[direction] * NS_PER_S / rate))
        if not due_ns:
            return 0
        begin_ns = self.stat.begin_ns
        if self.ramp_end_ns:
            begin_ns -= params.ramp_ns
        return max(0, begin_ns + due_ns - now_ns)

    def _take(self, direction: int) -> tuple[int, int]:
        """Return size and place of the next operation, which begins now."""
        size = self.sizes[direction].next()
        left = self.limit - sum(self.issued)
        if not self.params.time_based and 0 < left < size:
            size = left
        place = self.places[direction].next(size)
        region_end = self.params.offset_bytes + self.places[direction].size
        size = min(size, region_end - place)
        self.next_direction = -1
        self.issued[direction] += size
        self.started[direction] += 1
        if direction == WRITE:
            self._note_write()
        return size, place

    def _note_write(self) -> None:
        """Count a write; the next operation may have to be a sync."""
        params = self.params
        self.writes += 1
        for every in (params.fsync, params.fdatasync):
            if every and self.writes % every == 0:
                self.sync_due = True

    def _wait_for_rate(self, sys: Sys, delay_ns: int) -> Blocking[None]:
        """Sleep until the rate allows the next operation, or the time is up."""
        left_ns = self.end_ns - sys.clock_ns() if self.end_ns else delay_ns
        yield from sys.sleep(max(1, min(delay_ns, left_ns)))

    # -- One operation after another.

    def _synchronous(self, sys: Sys, fd: int) -> Blocking[None]:
        """psync: pread() or pwrite() after one another."""
        while True:
            now_ns = sys.clock_ns()
            if not self._goes_on(sys, now_ns):
                return
            if self.sync_due:
                yield from self._sync(sys, fd, 0)
                continue
            delay_ns = self._delay_ns(sys, now_ns)
            if delay_ns:
                yield from self._wait_for_rate(sys, delay_ns)
                continue
            direction = self.next_direction
            if self.drops_cache and self.places[direction].is_through():
                yield from sys.fadvise(fd, POSIX_FADV_DONTNEED)
            sys.compute(OPERATION_USER_NS)
            size, place = self._take(direction)
            begun_ns = sys.clock_ns()
            yield from one_operation(sys, fd, direction, size, place)
            now_ns = sys.clock_ns()
            self.stat.queued(1, 1)
            self.stat.submit[1] += 1
            self.stat.reaped[1] += 1
            self._complete(sys, direction, size, begun_ns, 0, now_ns)
            yield from self._after(sys)

    # -- Several in flight.

    def _queued(self, sys: Sys, fd: int) -> Blocking[None]:
        """Keep the queue full, submit and reap as many at a time as is wanted (do_io)."""
        params = self.params
        engine = self._engine(sys, fd)
        flying = self.flying
        tag = 0
        while True:
            now_ns = sys.clock_ns()
            delay_ns = 0
            if len(flying) < params.iodepth and self._goes_on(sys, now_ns):
                if self.sync_due and not engine.syncs:
                    yield from self._sync(sys, fd, len(flying))
                    continue
                delay_ns = 0 if self.sync_due else self._delay_ns(sys, now_ns)
                if not delay_ns:
                    sys.compute(OPERATION_USER_NS)
                    if self.sync_due:
                        self._queue_sync(sys, engine, tag)
                    else:
                        if self.drops_cache and self.places[self.next_direction].is_through():
                            yield from sys.fadvise(fd, POSIX_FADV_DONTNEED)
                        self._queue(sys, engine, tag)
                    tag += 1
                    if len(self.uncommitted) >= params.batch_submit():
                        yield from self._commit(sys, engine)
                    if params.iodepth_batch_complete_min:
                        continue
            if flying:
                yield from self._reap(sys, engine)
            elif delay_ns:
                yield from self._wait_for_rate(sys, delay_ns)
            else:
                return

    def _engine(self, sys: Sys, fd: int) -> "Libaio | Uring":
        """Return what hands operations to the kernel."""
        if self.params.ioengine == IO_URING:
            return Uring(sys, fd, self.params)
        return Libaio(sys, fd, self.params)

    def _queue(self, sys: Sys, engine: "Libaio | Uring", tag: int) -> None:
        """Hand the next operation to the engine (td_io_queue)."""
        direction = self.next_direction
        size, place = self._take(direction)
        self.flying[tag] = (direction, size, sys.clock_ns(), 0)
        self.uncommitted.append(tag)
        engine.queue(direction, size, place, tag)

    def _queue_sync(self, sys: Sys, engine: "Libaio | Uring", tag: int) -> None:
        """Hand the engine the fsync or fdatasync that is due."""
        self.sync_due = False
        is_fsync = self.params.fsync > 0 and self.writes % self.params.fsync == 0
        self.flying[tag] = (SYNC, int(is_fsync), sys.clock_ns(), 0)
        self.uncommitted.append(tag)
        engine.queue(SYNC, int(is_fsync), 0, tag)

    def _commit(self, sys: Sys, engine: "Libaio | Uring") -> Blocking[None]:
        """Have the kernel take what is queued (td_io_commit)."""
        tags = self.uncommitted
        self.stat.queued(len(self.flying), len(tags))
        self.stat.submit[bisect_left(BATCH_BOUNDS, len(tags))] += 1
        yield from engine.commit()
        now_ns = sys.clock_ns()
        for tag in tags:
            direction, size, begun_ns, _ = self.flying[tag]
            self.flying[tag] = direction, size, begun_ns, now_ns - begun_ns
        tags.clear()

    def _reap(self, sys: Sys, engine: "Libaio | Uring") -> Blocking[None]:
        """Wait for operations to complete, and count them (wait_for_completions)."""
        params = self.params
        flying = self.flying
        is_full = len(flying) >= params.iodepth
        while True:
            if self.uncommitted:
                yield from self._commit(sys, engine)
            least = min(params.iodepth_batch_complete_min, len(flying)) or 1
            most = max(least, params.iodepth_batch_complete_max)
            tags = yield from engine.reap(least, most)
            self.stat.reaped[bisect_left(BATCH_BOUNDS, len(tags))] += 1
            now_ns = sys.clock_ns()
            pays = not params.direct
            for tag in tags:
                direction, size, begun_ns, submit_ns = flying.pop(tag)
                if direction == SYNC:
                    self._synced(now_ns - begun_ns, size > 0)
                    continue
                self._complete(sys, direction, size, begun_ns, submit_ns, now_ns)
                if not self.ramp_end_ns:
                    self.stat.directions[direction].slat.add(submit_ns)
                pays = pays or direction == WRITE
            if pays or params.think_ns:
                yield from self._after(sys)
            if not is_full or len(flying) <= params.low():
                return

    # -- When one is complete.

    def _complete(
        self, sys: Sys, direction: int, size: int, begun_ns: int, submit_ns: int, now_ns: int
    ) -> None:
        """Count an operation (account_io_completion); nothing counts before the ramp is over."""
        self.done += 1
        if self.params.latency_log:
            sys.trace_marker("fio_ns", now_ns - begun_ns)
        if self.ramp_end_ns:
            if now_ns < self.ramp_end_ns:
                return
            self._end_ramp(sys)
        stat = self.stat
        complete_ns = now_ns - begun_ns - submit_ns
        stat.directions[direction].complete(now_ns, size, submit_ns, complete_ns)
        stat.mark_latency(complete_ns)

    def _after(self, sys: Sys) -> Blocking[None]:
        """Think, let CPU time pass that no sleep would."""
        params = self.params
        if params.think_ns and self.done % params.think_blocks == 0:
            yield from sys.sleep(params.think_ns)
        if sys.owes_cpu():
            yield

    def _sync(self, sys: Sys, fd: int, in_flight: int) -> Blocking[None]:
        """Make durable what is written, beside what is in flight; count it."""
        params = self.params
        self.sync_due = False
        is_fsync = params.fsync > 0 and self.writes % params.fsync == 0
        begun_ns = sys.clock_ns()
        yield from sys.fsync(fd) if is_fsync else sys.fdatasync(fd)
        self._synced(sys.clock_ns() - begun_ns, is_fsync)
        if not self.ramp_end_ns:
            self.stat.queued(in_flight + 1, 1)

    def _synced(self, ns: int, is_fsync: bool) -> None:
        """Count what made durable."""
        if not self.ramp_end_ns:
            self.stat.synced(ns)
            self.stat.fsyncs += is_fsync


class FioThread:
    """A job's process as fio sees it (struct thread_data)."""

    def __init__(self, job: Fio, *, stonewall: bool) -> None:
        self.job = job
        self.stonewall = stonewall  # begins when those before have ended
        self.pid: int = 0  # of the child that is the job; 0 = there is none
        self.is_initialized: bool = False
        self.may_run: bool = False
        self.has_exited: bool = False
        self.sem = WaitQueue()  # where the job waits to be let go
        self.startup_sem = WaitQueue()  # where fio waits for the job

    def main(self, sys: Sys) -> Blocking[None]:
        """Tell fio that the job is there, wait to be let go, be the job (thread_main)."""
        self.is_initialized = True
        sys.futex_wake(self.startup_sem, 1)
        while not self.may_run:
            yield from sys.futex_wait(self.sem)
        yield from self.job.run(sys)
        self.has_exited = True

    def create(self, sys: Sys) -> Blocking[None]:
        """Fork the job and wait until it is there."""
        self.pid = yield from sys.fork("fio", self.main)
        while not self.is_initialized:
            yield from sys.futex_wait(self.startup_sem)

    def release(self, sys: Sys) -> None:
        """Let the job go."""
        self.may_run = True
        sys.futex_wake(self.sem, 1)


class FioSession:
    """Groups of jobs, one group after the other."""

    def __init__(
        self, groups: Sequence[Sequence[Fio]], start_ns: int = 0, start_user_ns: int = 0
    ) -> None:
        """Take the jobs; before them fio itself starts for `start_ns`, computing so much."""
        self.groups = groups
        self.start_ns = start_ns
        self.start_user_ns = start_user_ns
        self.ended_ns: int = -1  # when the last job had ended

    def files(self) -> Mapping[str, int]:
        """Return the files that are there beforehand, as large as the largest user needs."""
        sizes: dict[str, int] = {}
        for group in self.groups:
            for job in group:
                for path, size in job.files().items():
                    sizes[path] = max(size, sizes.get(path, 0))
        return sizes

    def main(self, sys: Sys) -> Blocking[None]:
        """Run the groups (run_threads)."""
        sys.compute(self.start_user_ns)
        if self.start_ns:
            yield from sys.sleep(self.start_ns)
        to_do = yield from self._set_up(sys)
        running: list[FioThread] = []
        genesis_ns = sys.clock_ns()
        while to_do:
            created = yield from self._create(sys, to_do, genesis_ns, bool(running))
            if created:
                yield from sys.sleep(START_POLL_NS)
                for thread in created:
                    thread.release(sys)
                running += created
                to_do = [thread for thread in to_do if not thread.may_run]
            running = yield from self._reap(sys, running)
            if to_do:
                yield from sys.sleep(START_POLL_NS)
        while running:
            running = yield from self._reap(sys, running)
            yield from sys.sleep(END_POLL_NS)
        self.ended_ns = sys.clock_ns()
        sys.trace_marker("fio_end", sum(len(group) for group in self.groups))

    def _set_up(self, sys: Sys) -> Blocking[list[FioThread]]:
        """Make the files, job after job; return the jobs whose files are there."""
        found: list[FioThread] = []
        for number, group in enumerate(self.groups):
            for index, job in enumerate(group):
                if (yield from job.set_up(sys)):
                    found.append(FioThread(job, stonewall=number > 0 and index == 0))
        return found

    def _create(
        self, sys: Sys, to_do: Sequence[FioThread], genesis_ns: int, is_any_running: bool
    ) -> Blocking[list[FioThread]]:
        """Fork the jobs whose time has come, up to a stonewall; return them."""
        created: list[FioThread] = []
        for thread in to_do:
            if thread.job.params.start_ns > sys.clock_ns() - genesis_ns:
                continue
            if thread.stonewall and (created or is_any_running):
                break
            yield from thread.create(sys)
            created.append(thread)
        return created

    def _reap(self, sys: Sys, running: Sequence[FioThread]) -> Blocking[list[FioThread]]:
        """Take leave of the jobs that have ended; return the others (reap_threads)."""
        left: list[FioThread] = []
        for thread in running:
            if thread.has_exited:
                yield from sys.waitpid(thread.pid)
            else:
                left.append(thread)
        return left
