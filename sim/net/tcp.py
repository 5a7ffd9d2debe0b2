"""TCP's constants: how long it waits, how much it sends before it hears back.

Models: the tunables of a host's TCP, with the defaults of its kernel release.
Linux counterpart: include/net/tcp.h, net/ipv4/tcp.c, net/ipv4/tcp_timer.c, 2.6.16.
Invariants: waits double from one SYN to the next (exponential back-off, tcp_retransmit_timer).
Left out: everything that loss would bring (links lose nothing; see connection.py), buffer
 auto-tuning: windows have their default size for ever.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sim.param import param
from sim.sched.version import Change, changed_defaults
from sim.units import Value


@dataclass(frozen=True, kw_only=True)
class TcpParams:
    """A host's TCP."""

    syn_timeout_ns: int = param(
        "3 s",
        dim="time_ns",
        minimum=1,
        source="include/net/tcp.h 2.6.16: TCP_TIMEOUT_INIT",
        doc="from a SYN that is not answered to the next one; doubles each time",
    )
    syn_retries: int = param(
        5,
        dim="count",
        minimum=0,
        source="include/net/tcp.h 2.6.16: TCP_SYN_RETRIES",
        doc="SYNs sent again before a connection attempt times out",
    )
    initial_window_segments: int = param(
        3,
        dim="count",
        minimum=1,
        source="net/ipv4/tcp_input.c 2.6.16: tcp_init_cwnd (RFC 3390)",
        doc="segments sent before the first acknowledgement",
    )
    window_bytes: int = param(
        65535,
        dim="bytes",
        minimum=1,
        source="net/ipv4/tcp.c 2.6.16: tcp_rmem 87380, of which tcp_adv_win_scale leaves 3/4",
        doc="receive window: bytes on the way or unread",
    )
    send_buffer_bytes: int = param(
        16384,
        dim="bytes",
        minimum=1,
        source="net/ipv4/tcp.c 2.6.16: tcp_wmem default",
        doc="bytes that a sender may leave behind unsent",
    )

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return what differs from 2.6.16 in this release, each with its source."""
        return changed_defaults(KERNEL_CHANGES, kernel)


KERNEL_CHANGES: Final[tuple[Change, ...]] = (
    ((2, 6, 39), "initial_window_segments", 10, "include/net/tcp.h 2.6.39: TCP_INIT_CWND"),
    ((3, 1), "syn_timeout_ns", 1_000_000_000, "include/net/tcp.h 3.1: TCP_TIMEOUT_INIT, RFC 6298"),
    ((3, 7), "syn_retries", 6, "include/net/tcp.h 3.7: TCP_SYN_RETRIES, 6c9ff979d192"),
)

# Hosts outside are of unknown make: a SYN again after 1, 2, 4, 8, ... s, as today's systems do.
OUTSIDE_TCP: Final = TcpParams(
    syn_timeout_ns=1_000_000_000, syn_retries=6, initial_window_segments=10
)

RESTART_AFTER_IDLE_NS: Final = 200_000_000  # TCP_RTO_MIN, HZ/5: the window's memory (RFC 2861)


class NetworkError(Exception):
    """A connection could not be made."""


class ConnectionRefused(NetworkError):
    """Nobody listens at that port (ECONNREFUSED)."""


class ConnectionTimedOut(NetworkError):
    """No SYN was answered (ETIMEDOUT)."""


class AddressInUse(NetworkError):
    """Somebody listens at that port already (EADDRINUSE)."""
