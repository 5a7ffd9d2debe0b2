"""Links: what lies between two hosts, as a delay and a rate.

Models: one wire each way. Packets leave one after the other at the wire's rate (serialisation, a
queue without limit) and arrive after its latency. When a packet is handed over, all of this is
known, so it is arithmetic and no event. The card at the server's end may keep what has come until
some time after its last interrupt (coalescing, per link: each has a queue of the card): packets are
seen together then, and what answers them, acknowledgements too, waits.

Linux counterpart: a network driver's transmit ring and queueing discipline
(drivers/net/e1000, net/sched/sch_generic.c: pfifo_fast), the cable, switches.

Invariants: on one wire, arrivals keep the order of departures; a busy wire carries exactly its
rate, headers included.

Left out: loss, a limit to the queue, packets of two messages taking turns (a message of several
segments holds the wire until its last one; at 1 Gbit/s a 64 KiB message does so for 0.6 ms).
"""

from typing import Final

from sim.engine.calendar import Calendar
from sim.units import NS_PER_S

MSS_BYTES: Final = 1448  # payload of a full segment: MTU 1500 less IPv4, TCP and timestamps
# 20 IPv4, 20 TCP, 12 timestamps, 14 Ethernet, 4 check sum, 8 preamble, 12 gap between frames.
HEADER_BYTES: Final = 90


class Wire:
    """One direction of a link; counters as the rows of /proc/net/dev."""

    __slots__ = (
        "_free_at_ns",
        "_interrupt_at_ns",
        "bytes",
        "calendar",
        "coalesce_ns",
        "latency_ns",
        "packets",
        "rate_bytes_per_s",
    )

    def __init__(self, calendar: Calendar, latency_ns: int, rate_bytes_per_s: int) -> None:
        self.calendar = calendar
        self.latency_ns = latency_ns
        self.rate_bytes_per_s = rate_bytes_per_s
        self.bytes: int = 0
        self.packets: int = 0
        self._free_at_ns: int = 0  # when the last packet so far has left
        self.coalesce_ns: int = 0  # the card at its end interrupts once in so long; 0: at once
        self._interrupt_at_ns: int = 0  # when it does next, or did last

    def transmit(self, payload_bytes: int) -> int:
        """Send a message in as many packets as it takes (an empty one in one); return its arrival.

        The time is that of the last packet, in ns.
        """
        packets = segments(payload_bytes) or 1
        wire_bytes = payload_bytes + packets * HEADER_BYTES
        self.packets += packets
        self.bytes += wire_bytes
        start_ns = max(self._free_at_ns, self.calendar.now)
        # Rounded up, once, here.
        rate = self.rate_bytes_per_s
        self._free_at_ns = start_ns + (wire_bytes * NS_PER_S + rate - 1) // rate
        if self.coalesce_ns:
            return self._interrupt(self._free_at_ns + self.latency_ns)
        return self._free_at_ns + self.latency_ns

    def _interrupt(self, arrival_ns: int) -> int:
        """Return when the card tells of a packet that it has from `arrival_ns` on."""
        if arrival_ns > self._interrupt_at_ns:
            self._interrupt_at_ns = max(arrival_ns, self._interrupt_at_ns + self.coalesce_ns)
        return self._interrupt_at_ns

    def serialisation_ns(self, nr_segments: int) -> int:
        """Return how long full segments occupy the wire."""
        return nr_segments * (MSS_BYTES + HEADER_BYTES) * NS_PER_S // self.rate_bytes_per_s


def segments(payload_bytes: int) -> int:
    """Return how many segments a message fills."""
    return -(-payload_bytes // MSS_BYTES)


class Link:
    """Two wires between the server and a place outside."""

    __slots__ = ("inbound", "name", "outbound")

    def __init__(
        self, calendar: Calendar, name: str, *, latency_ns: int, rate_bytes_per_s: float
    ) -> None:
        if latency_ns < 0:
            raise ValueError(f"link {name}: latency of {latency_ns} ns: must not be negative")
        rate = round(rate_bytes_per_s)
        if rate <= 0:
            raise ValueError(f"link {name}: rate of {rate_bytes_per_s} B/s: must be at least 1")
        self.name = name
        self.inbound = Wire(calendar, latency_ns, rate)  # to the server
        self.outbound = Wire(calendar, latency_ns, rate)  # from the server
