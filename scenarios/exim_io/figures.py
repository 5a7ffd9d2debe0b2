"""Figures of Exim's mail: what it took, how long delivery took, what piled up, who wrote.

Models: eximstats, `exim -bpc` every moment, sar while mail is being delivered, a count of
block_dump's lines, and hdparm in the guest and in dom0.
Counterpart: eximstats(8), exim(8) -bpc, hdparm(8).
Invariants: a message is in the queue from its acceptance until its delivery.
Left out: which messages.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from statistics import fmean, median
from typing import Final

from sim.observation import Family, Metric, Observation, number_within, percentile_within
from sim.study.block_dump import BLOCKS, EVENTS, JOURNAL_THREAD
from sim.units import NS_PER_S

DUMP_WINDOW_S: Final = 5  # assumed: the few seconds in which a server's lines were counted


def queue_length_max(seen: Observation) -> float:
    """Most messages in the queue at a time."""
    return max((length for _, length in _queue(seen)), default=0)


def queue_length_end(seen: Observation) -> float:
    """Messages in the queue when the measured part ends."""
    return [0, *(length for _, length in _queue(seen))][-1]


def _queue(seen: Observation) -> Iterator[tuple[int, int]]:
    """Yield (time, messages in the queue then) at each change before the end."""
    return _lengths(seen, {"message_accepted": 1, "message_delivered": -1})


def _lengths(seen: Observation, steps: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """Yield (time, sum of the steps that marks have made) at each change before the end."""
    length = 0
    for record in seen.result.records:
        if record.name in steps and record.t_ns <= seen.end_ns:
            length += steps[record.name]
            yield record.t_ns, length


def iowait_median(seen: Observation) -> float | None:
    """Median %iowait of the reports during which a message was being delivered."""
    values = _iowait_in_deliveries(seen)
    return median(values) if values else None


def iowait_max(seen: Observation) -> float | None:
    """Highest %iowait of these reports."""
    return max(_iowait_in_deliveries(seen), default=None)


def iowait_half_pct(seen: Observation) -> float | None:
    """Share of these reports in which %iowait was 40 or more: a CPU of two waited throughout."""
    values = _iowait_in_deliveries(seen)
    return 100 * fmean(value >= 40 for value in values) if values else None


def _iowait_in_deliveries(seen: Observation) -> list[float]:
    """Return %iowait of the full reports in which a delivery was under way."""
    steps = {"delivery_started": 1, "message_delivered": -1, "message_deferred": -1}
    changes = list(_lengths(seen, steps))
    times = [t_ns for t_ns, _ in changes]
    values = []
    for report in seen.full_reports:
        start_ns = report.t_ns - seen.measure.interval_ns
        first = max(0, bisect_right(times, start_ns) - 1)
        last = bisect_right(times, report.t_ns)
        if any(length > 0 for _, length in changes[first:last]):
            values.append(report.cpu.iowait_pct)
    return values


def journal_events(seen: Observation) -> float | None:
    """Lines of kjournald in block_dump's log, in the 5 s from a message's acceptance on, mean."""
    return _events(seen, lambda comm: comm == JOURNAL_THREAD)


def other_events(seen: Observation) -> float | None:
    """Lines of all other processes, likewise."""
    return _events(seen, lambda comm: comm != JOURNAL_THREAD)


def _events(seen: Observation, is_counted: Callable[[str], bool]) -> float | None:
    """Return the mean number of lines in the windows that begin at acceptances."""
    seconds: dict[int, float] = {}
    for record in seen.result.marks(EVENTS):
        if is_counted(record.comm):
            at = record.t_ns // NS_PER_S - 1
            seconds[at] = seconds.get(at, 0.0) + float(record.value)
    begins = [record.t_ns // NS_PER_S for record in seen.marked("message_accepted")]
    if not begins or seen.result.first_ns(EVENTS) is None:
        return None
    return fmean(_sum_from(seconds, begin) for begin in begins)


def _sum_from(seconds: dict[int, float], begin: int) -> float:
    return sum(seconds.get(at, 0.0) for at in range(begin, begin + DUMP_WINDOW_S))


def _hdparm(host: str, kind: str) -> Metric:
    """Return what the process named after its host told of one kind of read."""
    mark = f"hdparm_{kind}_bytes_per_s"

    def compute(seen: Observation) -> float | None:
        found = [float(one.value) for one in seen.result.marks(mark) if one.comm == host]
        return fmean(found) if found else None

    return Metric(f"{host}.{kind}_read_bytes_per_s", "B/s", compute)


MAIL: Final = Family(
    "mail",
    (
        # Answered 250 in the measured part; refused with 5xx; accepted and left for a queue run,
        # for the load or their connection; connections answered 421.
        Metric("mail.accepted", "messages", number_within("message_accepted")),
        Metric("mail.rejected", "messages", number_within("message_rejected")),
        Metric("mail.queued", "messages", number_within("message_queued")),
        Metric("mail.turned_away", "", number_within("client_turned_away")),
        # From a message's 250 to its end, of those delivered in the measured part.
        Metric("mail.delivery_s", "s", percentile_within("delivery_ns", 0.5, per=NS_PER_S)),
        Metric("mail.delivery_p95_s", "s", percentile_within("delivery_ns", 0.95, per=NS_PER_S)),
        Metric("mail.queue_max", "messages", queue_length_max),
        Metric("mail.queue_end", "messages", queue_length_end),
        Metric("cpu.iowait_pct_median", "%", iowait_median),
        Metric("cpu.iowait_pct_max", "%", iowait_max),
        Metric("cpu.iowait_half_pct", "%", iowait_half_pct),
    ),
)
BLOCK_EVENTS: Final = Family(
    BLOCKS,
    (
        Metric("block_events.kjournald", "", journal_events),
        Metric("block_events.others", "", other_events),
    ),
)
HDPARM: Final = Family(
    "hdparm",
    tuple(_hdparm(host, kind) for host in ("dom0", "guest") for kind in ("cached", "buffered")),
)
