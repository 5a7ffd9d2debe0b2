"""Figures of a mail server: what it took, how long delivery took, what piled up, who wrote.

Models: eximstats, `exim -bpc` every moment, sar while mail is being delivered, and a count of
block_dump's lines.
Counterpart: eximstats(8), exim(8) -bpc.
Invariants: as for sim/study/metrics.py, whose families these are. A message is in the queue from
 its acceptance until its delivery.
Left out: which messages.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from statistics import fmean, median
from typing import Final

from sim.study.observation import Metric, Observation
from sim.study.summary import percentile
from sim.units import NS_PER_S

JOURNAL_THREAD: Final = "kjournald"


def messages_taken(seen: Observation) -> float:
    """Messages answered 250 in the measured part."""
    return len(seen.marked("message_accepted"))


def messages_rejected(seen: Observation) -> float:
    """Messages refused with 5xx in the measured part."""
    return len(seen.marked("message_rejected"))


def messages_queued(seen: Observation) -> float:
    """Accepted messages that were left for a queue run, for the load or their connection."""
    return len(seen.marked("message_queued"))


def clients_turned_away(seen: Observation) -> float:
    """Connections answered 421: too many sessions, or too high a load."""
    return len(seen.marked("client_turned_away"))


def delivery_s(seen: Observation) -> float | None:
    """Median time from a message's 250 to its end, of those delivered in the measured part."""
    times = _deliveries_s(seen)
    return median(times) if times else None


def delivery_p95_s(seen: Observation) -> float | None:
    """95 % quantile of these times."""
    times = sorted(_deliveries_s(seen))
    return percentile(times, 0.95) if times else None


def _deliveries_s(seen: Observation) -> list[float]:
    return [float(record.value) / NS_PER_S for record in seen.marked("delivery_ns")]


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


def journal_share_pct(seen: Observation) -> float | None:
    """Share of kjournald in all lines of the measured part."""
    counts = {True: 0.0, False: 0.0}
    for record in seen.marked("block_events"):
        counts[record.comm == JOURNAL_THREAD] += float(record.value)
    total = sum(counts.values())
    return 100 * counts[True] / total if total else None


def _events(seen: Observation, is_counted: Callable[[str], bool]) -> float | None:
    """Return the mean number of lines in the windows that begin at acceptances."""
    seconds: dict[int, float] = {}
    for record in seen.result.marks("block_events"):
        if is_counted(record.comm):
            at = record.t_ns // NS_PER_S - 1
            seconds[at] = seconds.get(at, 0.0) + float(record.value)
    begins = [record.t_ns // NS_PER_S for record in seen.marked("message_accepted")]
    if not begins or seen.result.first_ns("block_events") is None:
        return None
    window_s = seen.measure.dump_window_ns // NS_PER_S
    return fmean(_sum_from(seconds, begin, window_s) for begin in begins)


def _sum_from(seconds: dict[int, float], begin: int, window_s: int) -> float:
    return sum(seconds.get(at, 0.0) for at in range(begin, begin + window_s))


def _hdparm(host: str, kind: str) -> Metric:
    """Return what the process named after its host told of one kind of read."""
    mark = f"hdparm_{kind}_bytes_per_s"

    def compute(seen: Observation) -> float | None:
        found = [float(one.value) for one in seen.result.marks(mark) if one.comm == host]
        return fmean(found) if found else None

    compute.__doc__ = f"hdparm's {kind} reads, in the process {host}."
    return Metric(f"{host}.{kind}_read_bytes_per_s", "B/s", compute)


FAMILIES: Final[Mapping[str, tuple[Metric, ...]]] = {
    "mail": (
        Metric("mail.accepted", "messages", messages_taken),
        Metric("mail.rejected", "messages", messages_rejected),
        Metric("mail.queued", "messages", messages_queued),
        Metric("mail.turned_away", "", clients_turned_away),
        Metric("mail.delivery_s", "s", delivery_s),
        Metric("mail.delivery_p95_s", "s", delivery_p95_s),
        Metric("mail.queue_max", "messages", queue_length_max),
        Metric("mail.queue_end", "messages", queue_length_end),
        Metric("cpu.iowait_pct_median", "%", iowait_median),
        Metric("cpu.iowait_pct_max", "%", iowait_max),
        Metric("cpu.iowait_half_pct", "%", iowait_half_pct),
    ),
    "blocks": (
        Metric("block_events.kjournald", "", journal_events),
        Metric("block_events.others", "", other_events),
        Metric("block_events.kjournald_pct", "%", journal_share_pct),
    ),
    "hdparm": tuple(
        _hdparm(host, kind) for host in ("dom0", "guest") for kind in ("cached", "buffered")
    ),
}
