"""Joins a server's network: its card, its interrupts, its loopback, the links to hosts outside.

Models: what stands between the TCP stack and the cables.
Linux counterpart: drivers/net/loopback.c, register_netdev, ip link.
Invariants: what a packet passes in a guest's host is part of every link.
Left out: several cards, bridges, routes.
"""

from collections.abc import Mapping
from typing import Final, Protocol

from sim.engine.calendar import Calendar
from sim.engine.environment import Environment
from sim.engine.trace import Tracer
from sim.net.link import Link
from sim.net.network import Network
from sim.net.nic import NicParams
from sim.net.tcp import TcpParams, outside_of
from sim.sched.core import Sched
from sim.sched.irq import InterruptLine

# 10 Gbit/s: copies in memory, or a fast switch between guests.
LOOPBACK_BYTES_PER_S: Final = 10**10 / 8


class LinkPlan(Protocol):
    """What a scenario says of a link."""

    @property
    def latency_ns(self) -> int:
        """One way."""

    @property
    def rate_bytes_per_s(self) -> float:
        """Each way."""


def make_network(
    env: Environment, tcp: TcpParams, tracer: Tracer, nic: NicParams, sched: Sched, packet_ns: int
) -> Network:
    """Return the network of a server whose CPU 0 takes `packet_ns` for a packet's interrupt."""
    line = InterruptLine(sched, 0, *nic.packet_times_ns(packet_ns))
    loopback = Link(
        env.calendar,
        "lo",
        latency_ns=nic.localhost_ns + 2 * nic.delay_ns(),
        rate_bytes_per_s=LOOPBACK_BYTES_PER_S,
    )
    return Network(
        env,
        tcp,
        tracer,
        outside_of(tcp),
        on_interrupt=line.serve,
        backlog_ns=line.backlog_ns,
        loopback=loopback,
    )


def make_links(
    calendar: Calendar, plans: Mapping[str, LinkPlan], nic: NicParams
) -> dict[str, Link]:
    """Return the links by name."""
    links = {
        name: Link(
            calendar,
            name,
            latency_ns=plan.latency_ns + nic.delay_ns(),
            rate_bytes_per_s=plan.rate_bytes_per_s,
        )
        for name, plan in plans.items()
    }
    for link in links.values():
        link.inbound.coalesce_ns = nic.coalesce_ns
    return links
