"""A pipe: something that carries one transfer after the other at a constant rate.

Models: a SATA link, one direction of PCIe lanes, a network path. A transfer takes the pipe when it
is ready and the one before has gone through: an M/G/1 queue without the queue as an object.
Hand estimate: 128 KiB at 600 MB/s take 218 us; two that come together end after 218 and 437 us.
Linux counterpart: none; the wire.
Invariants: never more than the rate over any busy time; transfers go in order of asking.
Left out: packets, arbitration between long and short transfers, encoding beyond the rate given.
"""

from math import ceil

from sim.block.bio import SECTOR
from sim.units import NS_PER_S


class Pipe:
    """A rate, and when the last transfer is through."""

    def __init__(self, rate_bytes_per_s: float) -> None:
        assert rate_bytes_per_s > 0
        self._sector_ns: float = SECTOR * NS_PER_S / rate_bytes_per_s
        self._free_ns: float = 0.0

    def carry(self, ready_ns: int, sectors: int) -> int:
        """Send so many sectors that are ready at ``ready_ns``; return when they have arrived."""
        free_ns = self._free_ns
        from_ns = float(ready_ns)  # Comparing a float with an int takes longer.
        if free_ns < from_ns:
            free_ns = from_ns
        self._free_ns = free_ns = free_ns + sectors * self._sector_ns
        return ceil(free_ns)
