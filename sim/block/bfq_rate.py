"""How fast the disk is at most, as bfq learns it from what it dispatches.

Models: sectors dispatched over intervals of a second of uninterrupted work; an interval counts the
more, the more of its requests were sequential. From the rate follow the largest budget (what the
disk does in a turn's time) and how long a weight stays raised (slow disks need longer to start a
program). And whether the device queues commands.
Linux counterpart: bfq_update_peak_rate, bfq_update_rate_reset, bfq_wr_duration,
bfq_calc_max_budget, bfq_update_hw_tag, block/bfq-iosched.c (5.4).
Invariants: rates are sectors a microsecond; an interval without 32 requests or 0.3 s says nothing.
Left out: last_rq_max_size (injection).
"""

from typing import Final

from sim.block.bfq_queue import is_far
from sim.block.request import Request
from sim.units import NS_PER_US

# (rotational, flash): ref_rate[] >> BFQ_RATE_SHIFT, sectors/us: 109 and 258 MB/s
REFERENCE_RATES: Final = (14_000 / 65_536, 33_000 / 65_536)
REFERENCE_RAISES_NS: Final = (7_000_000_000, 2_500_000_000)  # ref_wr_duration[]
RAISE_NS_MIN: Final = 3_000_000_000
RAISE_NS_MAX: Final = 25_000_000_000
INTERVAL_NS: Final = 1_000_000_000  # BFQ_RATE_REF_INTERVAL
INTERVAL_NS_MIN: Final = 300_000_000  # BFQ_RATE_MIN_INTERVAL
SAMPLES_MIN: Final = 32  # BFQ_RATE_MIN_SAMPLES
PAUSE_NS: Final = 100_000_000  # a disk idle for longer begins anew
STEADY_NS: Final = 2_000_000  # BFQ_MIN_TT
RATE_MAX: Final = 20.0  # sectors/us: unreasonably high
HW_TAG_DEPTH: Final = 3  # BFQ_HW_QUEUE_THRESHOLD
HW_TAG_SAMPLES: Final = 32  # BFQ_HW_QUEUE_SAMPLES


class PeakRate:
    """The estimate, and the interval under way."""

    def __init__(self, rotational: bool) -> None:
        kind = 0 if rotational else 1
        self._rotational = rotational
        self.rate: float = REFERENCE_RATES[kind] * 2 / 3
        self._raise_product: float = REFERENCE_RATES[kind] * REFERENCE_RAISES_NS[kind]
        self._samples: int = 0
        self._sequential: int = 0
        self._sectors: int = 0
        self._first_ns: int = 0
        self._last_ns: int = 0
        self._position: int = 0
        self._last_completion_ns: int = 0

    def max_budget(self, turn_ns: int) -> int:
        """Return the sectors that the disk can do in a turn."""
        return max(1, int(self.rate * (turn_ns // NS_PER_US)))

    def raise_ns(self) -> int:
        """Return how long an interactive process's weight stays raised."""
        duration = int(self._raise_product / self.rate)
        return min(max(duration, RAISE_NS_MIN), RAISE_NS_MAX)

    def completed(self, now_ns: int) -> None:
        """Learn that the device has ended a request."""
        self._last_completion_ns = now_ns

    def dispatched(self, request: Request, in_driver: int, now_ns: int) -> None:
        """Learn of a request that goes to the device, which has ``in_driver`` others."""
        if self._samples and not (now_ns - self._last_ns > PAUSE_NS and not in_driver):
            self._count(request, in_driver, now_ns)
            if now_ns - self._first_ns >= INTERVAL_NS:
                self._end_interval(now_ns)
                self._begin(request, now_ns)
        else:
            self._end_interval(self._last_ns)
            self._begin(request, now_ns)
        self._position = request.end
        self._last_ns = now_ns

    def _begin(self, request: Request, now_ns: int) -> None:
        self._samples = 1
        self._sequential = 0
        self._sectors = request.nr_sectors
        self._first_ns = now_ns

    def _count(self, request: Request, in_driver: int, now_ns: int) -> None:
        self._samples += 1
        steady = in_driver > 0 or now_ns - self._last_completion_ns < STEADY_NS
        if steady and not is_far(self._position, request, self._rotational):
            self._sequential += 1
        self._sectors += request.nr_sectors

    def _end_interval(self, now_ns: int) -> None:
        """Move the estimate towards the interval's rate, by its worth (1/10 to 1/2)."""
        elapsed_ns = now_ns - self._first_ns
        if self._samples < SAMPLES_MIN or elapsed_ns < INTERVAL_NS_MIN:
            return
        elapsed_ns = max(elapsed_ns, self._last_completion_ns - self._first_ns)
        rate = self._sectors * NS_PER_US / elapsed_ns
        sequential = self._sequential >= 3 * self._samples // 4
        if (not sequential and rate <= self.rate) or rate > RATE_MAX:
            return
        worth = min(8, 9 * self._sequential // self._samples * elapsed_ns // INTERVAL_NS)
        self.rate += (rate - self.rate) / (10 - worth)


class HwTag:
    """Whether the device takes several requests at a time (hw_tag)."""

    def __init__(self) -> None:
        self.is_on: bool = False
        self._samples: int = 0
        self._most: int = 0

    def completed(self, in_driver: int, waiting: int) -> None:
        """Look at a completion, of this many in the device, where it could have had more."""
        self._most = max(self._most, in_driver)
        if in_driver + waiting <= HW_TAG_DEPTH:
            return
        self._samples += 1
        if self._samples >= HW_TAG_SAMPLES:
            self.is_on = self._most > HW_TAG_DEPTH
            self._most = 0
            self._samples = 0
