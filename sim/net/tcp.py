"""TCP's constants: how long it waits, how much it sends before it hears back.

Models: the tunables of a host's TCP, with the defaults of its kernel release. A receive window
begins at `window`; from 2.6.7 on it grows with what the reader takes in a round trip (sock.py), up
to what tcp_adv_win_scale leaves of tcp_rmem's maximum. What a sender may have on its way is no more
than tcp_wmem's maximum, either.
By hand, of 6.1: half of 6 MiB is a window of 3 MiB; at a round trip of 50 ms a stream carries
3 MiB / 50 ms = 63 MB/s. With 64 KiB for ever it would be 1.3 MB/s.
Linux counterpart: include/net/tcp.h, net/ipv4/tcp.c, net/ipv4/tcp_timer.c, 2.6.16; tcp_input.c
 (tcp_rcv_space_adjust), tcp.c (tcp_init: tcp_rmem, tcp_wmem).
Invariants: waits double from one SYN to the next (exponential back-off, tcp_retransmit_timer).
Left out: everything that loss would bring (links lose nothing; see connection.py); that the maxima
 are less on machines of less than 512 MiB (tcp_init); that from 6.6 on the share of a buffer that
 is window is measured (scaling_ratio): it stays half; that from 3.13 on a window grows faster while
 the sender is in slow start (b0983d3c9b13).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
        doc="receive window to begin with: bytes on the way or unread",
    )
    moderate_rcvbuf: bool = param(
        False,
        dim="bool",
        source="net/ipv4/tcp_input.c 2.6.6: there is none",
        doc="whether windows grow (tcp_moderate_rcvbuf); not where a program sets SO_RCVBUF",
    )
    rmem_max_bytes: int = param(
        174760,
        dim="bytes",
        minimum=1,
        key="rmem_max",
        source="net/ipv4/tcp.c 2.6.16: tcp_rmem 4096, 87380, 87380 * 2",
        doc="receive buffer at most, the third number of tcp_rmem",
    )
    adv_win_scale: int = param(
        2,
        dim="count",
        minimum=1,
        maximum=31,
        source="net/ipv4/tcp_input.c 2.6.16: sysctl_tcp_adv_win_scale 2",
        doc="a buffer is window but for 1 / 2^adv_win_scale of it (tcp_adv_win_scale)",
    )
    wmem_max_bytes: int = param(
        131072,
        dim="bytes",
        minimum=1,
        key="wmem_max",
        source="net/ipv4/tcp.c 2.6.16: tcp_wmem 4096, 16 KiB, 128 KiB",
        doc="bytes on the way at most, for the sender's buffer: the third number of tcp_wmem",
    )
    send_buffer_bytes: int = param(
        16384,
        dim="bytes",
        minimum=1,
        source="net/ipv4/tcp.c 2.6.16: tcp_wmem default",
        doc="bytes that a sender may leave behind unsent",
    )

    def window_max_bytes(self) -> int:
        """Return where a receive window stops to grow (tcp_win_from_space)."""
        return self.rmem_max_bytes - (self.rmem_max_bytes >> self.adv_win_scale)

    @classmethod
    def kernel_defaults(cls, kernel: str) -> Mapping[str, tuple[Value, str]]:
        """Return what differs from 2.6.16 in this release, each with its source."""
        return changed_defaults(KERNEL_CHANGES, kernel)


_BUFFERS: Final = "net/ipv4/tcp.c 2.6.17: tcp_init, 7b4f4b5ebcea"
_SIX: Final = "net/ipv4/tcp.c 3.4: tcp_init, b49960a05e32"

KERNEL_CHANGES: Final[tuple[Change, ...]] = (
    ((2, 6, 7), "moderate_rcvbuf", True, "net/ipv4/tcp_input.c 2.6.7: sysctl_tcp_moderate_rcvbuf"),
    ((2, 6, 17), "rmem_max_bytes", 4 * 2**20, _BUFFERS),
    ((2, 6, 17), "wmem_max_bytes", 4 * 2**20, _BUFFERS),
    ((2, 6, 39), "initial_window_segments", 10, "include/net/tcp.h 2.6.39: TCP_INIT_CWND"),
    ((3, 1), "syn_timeout_ns", 1_000_000_000, "include/net/tcp.h 3.1: TCP_TIMEOUT_INIT, RFC 6298"),
    ((3, 4), "rmem_max_bytes", 6 * 2**20, _SIX),
    ((3, 4), "adv_win_scale", 1, _SIX),
    ((3, 7), "syn_retries", 6, "include/net/tcp.h 3.7: TCP_SYN_RETRIES, 6c9ff979d192"),
)

# Hosts outside are of unknown make: a SYN again after 1, 2, 4, 8, ... s, as today's systems do.
OUTSIDE_TCP: Final = TcpParams(
    syn_timeout_ns=1_000_000_000, syn_retries=6, initial_window_segments=10
)


def outside_of(server: TcpParams) -> TcpParams:
    """Return the TCP of a server's outside hosts: nobody describes them, so as large buffers."""
    return replace(
        OUTSIDE_TCP,
        window_bytes=server.window_bytes,
        moderate_rcvbuf=server.moderate_rcvbuf,
        rmem_max_bytes=server.rmem_max_bytes,
        adv_win_scale=server.adv_win_scale,
        wmem_max_bytes=server.wmem_max_bytes,
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
