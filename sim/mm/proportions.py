"""Shares of recent events: which part of what was written lately each device has written.

Models: struct wb_domain's completions. Each page that is written counts once for its device and
once for the machine; a device's share is the ratio of the two. What is long past counts for little:
- to 3.5 (floating proportions) the device's count is halved each time that the machine has written
  half a period more: twice the largest power of two below the dirty limit (calc_period_shift). The
  share is of half a period and what came since one ended. So it grows with what is written after
  boot, and does not change while nothing is
- from 3.6 on (flexible proportions) both counts are halved every 3 s, until the machine's is 1
By hand, flexible: the only disk that was written since boot has a share of 1 from its first page on
and keeps it. Of 60,000 pages one disk wrote 40,000 and another 20,000. After 15 halvings, 45 s, the
counts are 60001 >> 15 = 1, 1 and 0: the shares were 2/3 and 1/3, and are 1 and 0. Floating, a limit
of 50,000 pages: half a period is 65,536 pages. As many written by the only disk make a share of
1/2, as many again 3/4.
Linux counterpart: lib/proportions.c (prop_norm_percpu, prop_fraction_percpu; to 3.5),
 lib/flex_proportions.c (fprop_new_period, fprop_reflect_period_percpu, fprop_fraction_percpu; 3.6),
 mm/page-writeback.c (calc_period_shift; writeout_period, VM_COMPLETIONS_PERIOD_LEN).
Invariants: 0 <= share <= 1; without an event of its own a device has no share; the shares of all
 devices sum to 1 at most, but for halves that are rounded.
Left out: that a device with a max_ratio is not counted beyond it (fprop_inc_percpu_max); that each
 CPU counts some tens of events by itself before others see them; that a period ends at a tick.
"""

from __future__ import annotations

from typing import Final

from sim.units import NS_PER_S

PERIOD_NS: Final = 3 * NS_PER_S  # VM_COMPLETIONS_PERIOD_LEN


class LocalEvents:
    """The events of one device (struct fprop_local_percpu)."""

    __slots__ = ("events", "period")

    def __init__(self) -> None:
        self.events: int = 0  # as of that period
        self.period: int = 0


class Proportions:
    """The events of all devices together, and who had how many of them."""

    def __init__(self) -> None:
        self.events: int = 0
        self.period: int = 0

    def add(self, local: LocalEvents, events: int, now_ns: int) -> None:
        """Count events of one device."""
        raise NotImplementedError

    def fraction(self, local: LocalEvents, now_ns: int) -> float:
        """Return the device's share of the recent events, 0 to 1."""
        raise NotImplementedError

    def _reflect_period(self, local: LocalEvents) -> None:
        """Halve a device's events for each period that it has missed."""
        local.events >>= self.period - local.period
        local.period = self.period


class FloatingProportions(Proportions):
    """Periods of so many events (to 3.5)."""

    def __init__(self, dirty_limit: int) -> None:
        """``dirty_limit`` is in pages."""
        super().__init__()
        self.half_period: int = 2 << (max(dirty_limit - 1, 1).bit_length() - 1)

    def add(self, local: LocalEvents, events: int, now_ns: int) -> None:
        self._reflect_period(local)
        self.events += events
        local.events += events
        self.period = self.events // self.half_period

    def fraction(self, local: LocalEvents, now_ns: int) -> float:
        self._reflect_period(local)
        recent = self.half_period + self.events % self.half_period
        return min(local.events / recent, 1.0)


class FlexProportions(Proportions):
    """Periods of 3 s (3.6 on)."""

    def __init__(self) -> None:
        super().__init__()
        self.events = 1  # There is always something to have a share of.
        self.period_end_ns: int = 0  # 0: no period is under way, as nothing is left to halve

    def add(self, local: LocalEvents, events: int, now_ns: int) -> None:
        if self.period_end_ns and now_ns >= self.period_end_ns:
            self._new_periods(now_ns)
        if local.period != self.period:
            self._reflect_period(local)
        self.events += events
        local.events += events
        if not self.period_end_ns:
            self.period_end_ns = now_ns + PERIOD_NS

    def fraction(self, local: LocalEvents, now_ns: int) -> float:
        if self.period_end_ns and now_ns >= self.period_end_ns:
            self._new_periods(now_ns)
        self._reflect_period(local)
        if not local.events:
            return 0.0
        return min(local.events / self.events, 1.0)

    def _new_periods(self, now_ns: int) -> None:
        """Begin the periods that are due (writeout_period)."""
        while self.period_end_ns and now_ns >= self.period_end_ns:
            if self.events <= 1:
                self.period_end_ns = 0
                return
            self.events >>= 1
            self.period += 1
            self.period_end_ns += PERIOD_NS
