"""Figures of mail servers: how many messages they took in which time, and when they took none.

Models: the mail log's count of messages, and a look at the port.
Counterpart: none of Linux; pflogsumm, `nc -z`.
Invariants: made of the marks "message_accepted" and "port_open" (1: the server listens, 0: it has
 closed its listening socket).
Left out: which messages.
"""

from typing import Final

from sim.observation import Family, Metric, Observation, number_within
from sim.results import RunResult
from sim.units import NS_PER_S


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
PORT: Final = Family("port", (Metric("port_refused_s", "s", _port_refused_s),))
