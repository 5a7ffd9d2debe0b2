"""A pipe: something that carries one transfer after the other at a constant rate.

Models: a SATA link, one direction of PCIe lanes, a network path. A transfer takes the pipe when it
is ready and the one before has gone through: an M/G/1 queue without the queue as an object.
Hand estimate: 128 KiB at 600 MB/s take 218 us; two that come together end after 218 and 437 us.
Linux counterpart: none; the wire.
Invariants: never more than the rate over any busy time; transfers go in order of asking.
A pipe that others use too carries their bursts as well, whenever one is due before a transfer.
Left out: packets, arbitration between long and short transfers, encoding beyond the rate given.
"""

from math import ceil
from random import Random
from typing import Final

from sim.block.bio import SECTOR
from sim.units import NS_PER_S

BURST_BYTES: Final = 64 * 1024  # what TCP hands to a card at a time (GSO_MAX_SIZE)


class Pipe:
    """A rate, and when the last transfer is through."""

    def __init__(self, rate_bytes_per_s: float) -> None:
        assert rate_bytes_per_s > 0
        self._sector_ns: float = SECTOR * NS_PER_S / rate_bytes_per_s
        self._free_ns: float = 0.0

    def carry(self, ready_ns: int, sectors: int) -> int:
        """Send so many sectors that are ready at ``ready_ns``; return when they have arrived."""
        self._free_ns = max(float(ready_ns), self._free_ns) + sectors * self._sector_ns
        return ceil(self._free_ns)


class SharedPipe(Pipe):
    """A pipe with other people's traffic: bursts at random moments, served in their turn."""

    def __init__(self, rate_bytes_per_s: float, traffic_bytes_per_s: float, chance: Random) -> None:
        super().__init__(rate_bytes_per_s)
        assert 0 < traffic_bytes_per_s < rate_bytes_per_s
        self._burst_rate: float = traffic_bytes_per_s / BURST_BYTES / NS_PER_S  # bursts a ns
        self._chance = chance
        self._next_ns: float = chance.expovariate(self._burst_rate)

    def carry(self, ready_ns: int, sectors: int) -> int:
        """Send the bursts that came before, then so many sectors."""
        while self._next_ns <= ready_ns:
            super().carry(ceil(self._next_ns), BURST_BYTES // SECTOR)
            self._next_ns += self._chance.expovariate(self._burst_rate)
        return super().carry(ready_ns, sectors)
