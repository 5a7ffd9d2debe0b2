"""ICMP echo: a host outside pings the server.

Models: an echo request is answered where it arrives, in the interrupt that brings it, by no task;
the answer leaves when the CPU of that interrupt has woken and served it.
Linux counterpart: net/ipv4/icmp.c (icmp_echo).
Invariants: each request is answered once.
Left out: loss, limits of the answers' rate, requests of the server's own.
"""

from collections.abc import Callable
from typing import Any, Final

from sim.net.link import Link

PACKET_BYTES: Final = 64  # ping's 56 bytes of data and the ICMP header


class Echo:
    """One request and its answer."""

    def __init__(
        self,
        link: Link,
        on_interrupt: Callable[[int], None] | None,
        backlog_ns: Callable[[], int] | None,
        answered: Callable[[], Any],
    ) -> None:
        self._link = link
        self._on_interrupt = on_interrupt
        self._backlog_ns = backlog_ns
        self._answered = answered

    def send(self) -> None:
        """Send the request to the server."""
        wire = self._link.inbound
        wire.calendar.post_at(wire.transmit(PACKET_BYTES), _request_arrives, self)

    def request_arrives(self) -> None:
        """Answer it, when the CPU that serves the interrupt is done with it."""
        if self._on_interrupt is not None:
            self._on_interrupt(1)
        delay_ns = 0 if self._backlog_ns is None else self._backlog_ns()
        self._link.inbound.calendar.post(delay_ns, _answer_leaves, self)

    def answer_leaves(self) -> None:
        """Send the answer to the outside host."""
        wire = self._link.outbound
        wire.calendar.post_at(wire.transmit(PACKET_BYTES), _answer_arrives, self)

    def answer_arrives(self) -> None:
        """The answer is at the outside host."""
        self._answered()


def _request_arrives(echo: Echo) -> None:
    echo.request_arrives()


def _answer_leaves(echo: Echo) -> None:
    echo.answer_leaves()


def _answer_arrives(echo: Echo) -> None:
    echo.answer_arrives()
