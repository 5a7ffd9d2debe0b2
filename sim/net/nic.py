"""The network card of a guest: what a packet costs beside the TCP stack: [machine.nic].

Models: exits to the hypervisor for each packet sent and each received, CPU time of the guest, and
the time that a packet spends in the host (its I/O thread, bridge or tap) each way. An emulated
e1000 needs several register accesses a packet, each an exit to the emulator in user space; virtio a
kick or an interrupt, an exit that ends in the host's kernel. The same table says how far apart the
parts of a service are that talk through "localhost": guests of their own, so that their packets
pass the card. A card may also hold packets back until some time after its last interrupt
(`coalesce`, link.py) and tell of all at once.
Linux counterpart: drivers/net/e1000, virtio_net.c; hw/net/e1000.c and vhost of the emulator.
Invariants: a physical card costs nothing here.
Left out: batches that are sent, the cards' offloads, rates that follow the traffic (e1000's dynamic
InterruptThrottleRate).

Estimate of coalescing: at most 1 / coalesce interrupts a second and link; a packet waits for half
of it on average where they are frequent, a lone one not at all; the exits and the interrupt itself
are paid once for all that came together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sim.component import Component
from sim.param import param
from sim.registry import register


@dataclass(frozen=True, kw_only=True)
class NicModel:
    """What one packet takes, one way."""

    user_exits: int  # to the emulator
    kernel_exits: int  # to the host's kernel


# 3 to 6 exits a packet or burst of an e1000 (tail register, cause, mask), typical.
MODELS: Final[Mapping[str, NicModel]] = {
    "physical": NicModel(user_exits=0, kernel_exits=0),
    "virtio-net": NicModel(user_exits=0, kernel_exits=1),
    "e1000": NicModel(user_exits=3, kernel_exits=1),
}


@dataclass(frozen=True, kw_only=True)
class NicParams:
    """[machine.nic]"""

    model: str = param(
        "physical", dim="text", choices=tuple(MODELS), source="scenario", doc="the card"
    )
    user_exit_ns: int = param(
        "8 us",
        dim="time_ns",
        minimum=0,
        doc="guest's CPU time of an exit to the emulator",
        source="assumed: 3 to 10 us, KVM of 2008 to 2012",
    )
    kernel_exit_ns: int = param(
        "3 us",
        dim="time_ns",
        minimum=0,
        doc="guest's CPU time of an exit to the host's kernel",
        source="assumed: 0.5 to 1.5 us, an injected interrupt and its end",
    )
    host_ns: int = param(
        "15 us",
        dim="time_ns",
        minimum=0,
        doc="time of a guest's packet in the host, each way",
        source="assumed: a thread of the host wakes, a bridge or a tap",
    )
    localhost_ns: int = param(
        "10 us",
        dim="time_ns",
        minimum=0,
        source="assumed: loopback, one softirq",
        doc="one way between two programs of this server: more, if they stand for several",
    )

    coalesce_ns: int = param(
        0,
        dim="time_ns",
        minimum=0,
        source="manual: ethtool -C rx-usecs 0 is off; e1000 InterruptThrottleRate=8000 is 125 us",
        doc="the card interrupts once in so long at most",
    )
    interrupt_ns: int = param(
        "1 us",
        dim="time_ns",
        is_code=True,
        minimum=0,
        doc="of a packet's interrupt time, the interrupt's own",
        source="assumed: entry, cause register, NAPI's poll scheduled and ended; the rest is TCP",
    )

    def packet_times_ns(self, packet_ns: int) -> tuple[int, int]:
        """Return what a packet takes, `packet_ns`, and what one more of the same interrupt."""
        if not self.coalesce_ns:
            return packet_ns, packet_ns
        return packet_ns, max(packet_ns - self.interrupt_ns - self.exits_ns(), 0)

    def exits_ns(self) -> int:
        """Return the CPU time that exits add to a packet, sent or received."""
        model = MODELS[self.model]
        return model.user_exits * self.user_exit_ns + model.kernel_exits * self.kernel_exit_ns

    def delay_ns(self) -> int:
        """Return how long a packet is in the host."""
        return self.host_ns if MODELS[self.model].kernel_exits else 0


@register("component", "nic", params=NicParams, doc="the network card")
class NicTable(Component[NicParams]):
    """[machine.nic]"""
