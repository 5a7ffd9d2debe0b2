"""The way from an EC2 instance to its EBS volumes.

Models: one pipe for all volumes of an instance. An instance that is EBS-optimized has one of its
own; any other reaches its volumes through its network card, which carries the bursts of whatever
else it sends and receives as well (`card_traffic`).
Hand estimate: m3.xlarge, a gigabit card, 125 MB/s. With 60 MB/s of other traffic a stream that
could have all has 65 MB/s, and a request of 4 KiB meets a burst of 0.5 ms half of the time.
Linux counterpart: none.
Invariants: volumes and other traffic together never exceed the rate.
Left out: that other traffic is held back where it meets a full card (TCP): it goes on at its rate,
99 % of the card at most; the two directions of a card are one.
"""

from typing import Final

from sim.drivers.ec2 import OPTIMIZED
from sim.drivers.pipe import Pipe, SharedPipe
from sim.engine.rng import Streams

TRAFFIC_SHARE_MAX: Final = 0.99


class EbsPath:
    """The pipe of an instance, made when the first request goes through it."""

    def __init__(self, instance: str, rate_bytes_per_s: float) -> None:
        self._is_shared: bool = not instance.endswith(OPTIMIZED)
        self._rate_bytes_per_s = rate_bytes_per_s
        self._traffic_bytes_per_s: float = 0.0
        self._pipe: Pipe | None = None

    def add_traffic(self, bytes_per_s: float) -> None:
        """Have other traffic on the network card; a path of the volumes' own has none."""
        if self._is_shared:
            most = TRAFFIC_SHARE_MAX * self._rate_bytes_per_s
            self._traffic_bytes_per_s = min(self._traffic_bytes_per_s + bytes_per_s, most)

    def attach(self, streams: Streams) -> None:
        """Learn the chance of the machine, the same for all volumes."""
        self._streams = streams

    def carry(self, ready_ns: int, sectors: int) -> int:
        """Send so many sectors; return when they have arrived."""
        pipe = self._pipe
        if pipe is None:
            pipe = self._pipe = self._make_pipe()
        return pipe.carry(ready_ns, sectors)

    def _make_pipe(self) -> Pipe:
        rate, traffic = self._rate_bytes_per_s, self._traffic_bytes_per_s
        if not traffic:
            return Pipe(rate)
        return SharedPipe(rate, traffic, self._streams.stream("ebs.card_traffic"))
