"""Statistics kept while a run goes on: levels over time, tallies, histograms.

Models: what an observer notes. ``Level`` for what has a value at every instant (a queue's length),
``Tally`` for what happens one by one (a waiting time), ``Histogram`` for a tally's quantiles.

Linux counterpart: none in the kernel, whose counters stay where Linux keeps them. The histogram's
bins are fio's (fio 3, stat.c: plat_val_to_idx), so quantiles compare with fio's own.

Invariants: a level's integral never decreases while the level is not negative; a histogram's
quantile is within 1/128 of the exact one.

Left out: windows and confidence intervals; they are computed afterwards, from samples (sim/study).
"""

from math import inf, nan, sqrt
from typing import Final

GROUP_BITS: Final = 6  # fio's FIO_IO_U_PLAT_BITS: 64 bins for each doubling of the value
GROUP_BINS: Final = 1 << GROUP_BITS


class Level:
    """A value over time and its integral, in value x ns."""

    __slots__ = ("_integral", "_since_ns", "_start_ns", "maximum", "value")

    def __init__(self, now_ns: int, value: int = 0) -> None:
        self.value = value
        self.maximum = value
        self._integral = 0
        self._since_ns = now_ns
        self._start_ns = now_ns

    def set(self, now_ns: int, value: int) -> None:
        """Change the value at ``now_ns``."""
        assert now_ns >= self._since_ns
        self._integral += self.value * (now_ns - self._since_ns)
        self._since_ns = now_ns
        self.value = value
        if value > self.maximum:
            self.maximum = value

    def add(self, now_ns: int, difference: int) -> None:
        """Change the value by ``difference`` at ``now_ns``."""
        self.set(now_ns, self.value + difference)

    def integral(self, now_ns: int) -> int:
        """Return the integral from the start to ``now_ns`` (value x ns)."""
        assert now_ns >= self._since_ns
        return self._integral + self.value * (now_ns - self._since_ns)

    def mean(self, now_ns: int) -> float:
        """Return the time-weighted mean from the start to ``now_ns``, nan when no time passed."""
        elapsed_ns = now_ns - self._start_ns
        return self.integral(now_ns) / elapsed_ns if elapsed_ns else nan


class Tally:
    """Count, sum, extremes, mean and deviation of values seen one by one."""

    __slots__ = ("_square_sum", "count", "maximum", "minimum", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.minimum = inf
        self.maximum = -inf
        self._square_sum = 0.0  # of the differences from the mean (Welford)

    def add(self, value: float) -> None:
        """Count one value."""
        mean_before = self.total / self.count if self.count else 0.0
        self.count += 1
        self.total += value
        self._square_sum += (value - mean_before) * (value - self.total / self.count)
        if value < self.minimum:
            self.minimum = value
        if value > self.maximum:
            self.maximum = value

    def mean(self) -> float:
        """Return the mean, nan of nothing."""
        return self.total / self.count if self.count else nan

    def deviation(self) -> float:
        """Return the sample's standard deviation, nan of fewer than two values."""
        return sqrt(self._square_sum / (self.count - 1)) if self.count > 1 else nan


class Histogram:
    """Counts of non-negative ints (ns, usually) in bins that grow with the value."""

    __slots__ = ("counts", "tally")

    def __init__(self) -> None:
        self.counts: list[int] = []
        self.tally = Tally()

    def add(self, value: int) -> None:
        """Count one value."""
        self.tally.add(value)
        index = bin_index(value)
        missing = index + 1 - len(self.counts)
        if missing > 0:
            self.counts.extend([0] * missing)
        self.counts[index] += 1

    def quantile(self, share: float) -> float:
        """Return the value that ``share`` (0 to 1) of the values do not exceed, nan of nothing."""
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"quantile {share}: must be from 0 to 1")
        rank = max(1.0, share * self.tally.count)
        seen = 0
        for index, count in enumerate(self.counts):
            seen += count
            if seen >= rank:
                return min(max(bin_middle(index), self.tally.minimum), self.tally.maximum)
        return nan


def bin_index(value: int) -> int:
    """Return the bin of ``value``: exact below 128, then 64 bins per doubling."""
    if value < 0:
        raise ValueError(f"{value}: a histogram counts values from 0")
    if value < 2 * GROUP_BINS:
        return value
    dropped_bits = value.bit_length() - 1 - GROUP_BITS
    return ((dropped_bits + 1) << GROUP_BITS) + ((value >> dropped_bits) & (GROUP_BINS - 1))


def bin_middle(index: int) -> float:
    """Return the value in the middle of a bin."""
    if index < 2 * GROUP_BINS:
        return float(index)
    dropped_bits = (index >> GROUP_BITS) - 1
    lower = (GROUP_BINS + (index & (GROUP_BINS - 1))) << dropped_bits
    return lower + (1 << dropped_bits) / 2
