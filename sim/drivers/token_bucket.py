"""A token bucket: a rate that can be exceeded for as long as what was saved up lasts.

Models: credits flow in at ``base_per_s`` up to ``credits_max``, an operation takes as many as it
has units, and leaves no sooner than 1/``burst_per_s`` a unit after the one before it. So an
operation stream without pause runs at burst_per_s for credits_max / (burst_per_s - base_per_s)
seconds, then at base_per_s (gp2 of 100 GiB: 5.4 M / (3000 - 300) = 2000 s).
Linux counterpart: none; net/sched/sch_tbf.c and block/blk-throttle.c are of the kind.
Invariants: 0 <= credits <= credits_max; over t seconds at most credits_max + base_per_s * t units.
Left out: the granularity at which a provider settles accounts (a second or less).
"""

from math import ceil
from typing import Final

NS_PER_S: Final = 1_000_000_000


class TokenBucket:
    """Credits, and when the next operation may leave. It starts full."""

    def __init__(self, *, credits_max: float, base_per_s: float, burst_per_s: float) -> None:
        assert credits_max >= 0.0
        assert 0.0 < base_per_s <= burst_per_s
        self._credits_max = credits_max
        self._credits: float = credits_max
        self._credited_ns: float = 0.0  # up to when credits have flowed in
        self._next_ns: float = 0.0  # when the pace lets the next one out
        self._credit_ns: float = NS_PER_S / base_per_s
        self._unit_ns: float = NS_PER_S / burst_per_s

    def admit(self, now_ns: int, units: int) -> int:
        """Take an operation of so many units; return when it leaves, ns."""
        leaves_ns = max(float(now_ns), self._next_ns)
        gained = (leaves_ns - self._credited_ns) / self._credit_ns
        credits = min(self._credits_max, self._credits + gained)
        if credits >= units:
            credits -= units
        else:
            leaves_ns += (units - credits) * self._credit_ns
            credits = 0.0
        self._credits = credits
        self._credited_ns = leaves_ns
        self._next_ns = leaves_ns + units * self._unit_ns
        return ceil(leaves_ns)
