"""Figures of mail servers: how many messages they took in which time, and when they took none.

Models: the mail log's count of messages, a look at the port, and the sending hosts' logs, which say
how long each message took to hand over.
Counterpart: none of Linux; pflogsumm, `nc -z`; Postfix's delays=a/b/c/d, c and d.
Invariants: made of the server's marks "message_accepted" and "port_open" (1: the server listens, 0:
 it has closed its listening socket), and of the senders' "message_offered", "accept_ns" (from the
 connection, on one that stays open from MAIL on, to the 250 after the text) and "not_accepted" (an
 attempt that was refused, broken off or answered 4xx). A message that is tried again is a new
 attempt: one that is not accepted took longer than any.
Left out: which messages. The CPU time that a server owes for a message when it answers is paid
 after the answer (ARCHITECTURE.md): where no disk makes it sleep before, as on tmpfs, accept_ms
 lacks some milliseconds.
"""

from typing import Final

from sim.observation import (
    Family,
    Metric,
    Observation,
    mean_within,
    number_within,
    percentile_within,
)
from sim.results import RunResult
from sim.units import NS_PER_MS, NS_PER_S


def _duration_s(seen: Observation) -> float | None:
    """End mark - begin mark: the first connection of the storm to its last message accepted."""
    return (seen.end_ns - seen.begin_ns) / NS_PER_S if seen.is_marked else None


def _throughput_per_s(seen: Observation) -> float | None:
    """messages_accepted / duration_s."""
    duration = _duration_s(seen)
    return len(seen.marked("message_accepted")) / duration if duration else None


def _port_refused_s(seen: Observation) -> float | None:
    """Return the time in the measured part in which the listening socket was closed."""
    if seen.result.first_ns("port_open") is None:
        return None
    spans = refused_spans(seen.result)
    inside = (min(end, seen.end_ns) - max(begin, seen.begin_ns) for begin, end in spans)
    return sum(max(0, span_ns) for span_ns in inside) / NS_PER_S


def refused_spans(result: RunResult) -> list[tuple[int, int]]:
    """Return the times (begin, end in ns) in which the port was closed after it had been open."""
    spans = []
    since: int | None = None
    for record in result.marks("port_open"):
        if not record.value and since is None:
            since = record.t_ns
        elif record.value and since is not None:
            spans.append((since, record.t_ns))
            since = None
    if since is not None:
        spans.append((since, max(since, result.samples[-1].t_ns)))
    return spans


# Messages that the server took over in the measured part, the normal mail's among them.
STORM: Final = Family(
    "storm",
    (
        Metric("messages_accepted", "messages", number_within("message_accepted")),
        Metric("duration_s", "s", _duration_s),
        Metric("throughput_per_s", "/s", _throughput_per_s),
    ),
)
_ACCEPT_P95: Final = percentile_within(
    "accept_ns", 0.95, NS_PER_MS, never="not_accepted", offered="message_offered"
)
ACCEPT: Final = Family(
    "accept",
    (
        Metric("accept_ms", "ms", mean_within("accept_ns", NS_PER_MS)),  # of those accepted
        Metric("accept_p95_ms", "ms", _ACCEPT_P95),
        Metric("not_accepted", "", number_within("not_accepted")),
    ),
)
ACCEPT_MARKS: Final = ("accept_ns", "message_offered", "not_accepted")
PORT: Final = Family("port", (Metric("port_refused_s", "s", _port_refused_s),))
