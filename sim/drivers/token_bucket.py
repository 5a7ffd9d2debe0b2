"""A token bucket: a rate that can be exceeded for as long as what was saved up lasts.

Models: credits flow in at ``base_per_s`` up to ``credits_max``, an operation takes as many as it
has units. It leaves when those before it are paid for, and no sooner than 1/``burst_per_s`` a unit
after the one before it. So a stream without pause runs at burst_per_s for credits_max /
(burst_per_s - base_per_s) seconds, then at base_per_s (gp2 of 100 GiB: 5.4 M / (3000 - 300) = 2000
s). The state is one point in time: when all that left would be paid for at the base rate alone (the
*generic cell rate algorithm*, ITU-T I.371, which has no credits to count and so none to round).
Linux counterpart: none; net/sched/sch_tbf.c and block/blk-throttle.c are of the kind.
Invariants: over t seconds at most credits_max + base_per_s * t units leave before the last
operation.
Left out: the granularity at which a provider settles accounts (a second or less).
"""

from math import ceil

from sim.units import NS_PER_S


class TokenBucket:
    """When all that left is paid for, and when the next may leave. It starts full."""

    def __init__(self, *, credits_max: float, base_per_s: float, burst_per_s: float) -> None:
        assert credits_max >= 0.0
        assert 0.0 < base_per_s <= burst_per_s
        self._base_unit_ns: float = NS_PER_S / base_per_s
        self._burst_unit_ns: float = NS_PER_S / burst_per_s
        self._saved_ns: float = credits_max * self._base_unit_ns  # ahead of being paid for, at most
        self._paid_ns: float = 0.0
        self._next_ns: float = 0.0

    def admit(self, now_ns: int, units: int) -> int:
        """Take an operation of so many units; return when it leaves, ns."""
        leaves_ns = max(float(now_ns), self._next_ns, self._paid_ns - self._saved_ns)
        self._paid_ns = max(self._paid_ns, leaves_ns) + units * self._base_unit_ns
        self._next_ns = leaves_ns + units * self._burst_unit_ns
        return ceil(leaves_ns)
