"""What fio counts of a job: latencies, bandwidth, depths, in constant memory.

Models: struct thread_stat. A latency goes into running moments and into one of 1856 bins: exact up
to 127 ns, above that 64 bins for each power of two, so that a percentile is within 0.8 % of itself.
Counterpart: fio stat.c (plat_val_to_idx, plat_idx_to_val, calc_clat_percentiles, add_stat_sample,
sum_thread_stats, __add_samples), io_u.c (io_u_mark_depth, io_u_mark_latency), 3.36.
Invariants: N of a latency = operations counted; the bins of a direction sum to N; minimum <= every
 percentile's bin <= maximum. Bandwidth and iops are sampled at the first completion after half a
 second (bwavgtime, iopsavgtime).
Left out: percentiles of submission and total latency, log files, priorities, steady state.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from sim.units import NS_PER_S

PLAT_BITS: Final = 6
PLAT_VAL: Final = 1 << PLAT_BITS
PLAT_NR: Final = 29 * PLAT_VAL
AVERAGE_NS: Final = 500_000_000  # bwavgtime=500, iopsavgtime=500
KIB: Final = 1024

READ: Final = 0
WRITE: Final = 1
TRIM: Final = 2
# Upper ends of the classes of latency_ns and latency_us, and of latency_ms.
LATENCY_BOUNDS: Final = (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)
LATENCY_MS_BOUNDS: Final = (*LATENCY_BOUNDS, 2000)
DEPTH_BOUNDS: Final = (2, 4, 8, 16, 32, 64)  # io_u_mark_depth: 1, 2 to 3, 4 to 7, ..., 64 on
BATCH_BOUNDS: Final = (1, 5, 9, 17, 33, 65)  # __io_u_mark_map: 0, 1 to 4, 5 to 8, ..., 65 on


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
        "bw", "clat", "iops", "lat", "plat", "runtime_ns", "sampled_bytes", "sampled_ios",
        "sampled_ns", "slat", "total_bytes", "total_ios",
    )  # fmt: skip

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

    def queued(self, depth: int) -> None:
        """Count an operation started with `depth` in flight, itself included."""
        self.depth[bisect_right(DEPTH_BOUNDS, depth)] += 1

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
