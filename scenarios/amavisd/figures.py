"""Figures of a mail filter: what it let through, how late that was, and what its CPUs did.

Models: the mail log, and accounting of processes.
Counterpart: pflogsumm, acct(5).
Invariants: a message waits from its acceptance until the filter or the next host took it.
Left out: which messages.
"""

from typing import Final

from sim.observation import (
    Compute,
    Family,
    Metric,
    Observation,
    mean_within,
    percentile_within,
    rate_within,
)
from sim.study.metrics import cpu_busy_pct
from sim.tools.parse import parse_stat
from sim.units import NS_PER_S


def queue_peak(seen: Observation) -> float:
    """Highest number of messages that were accepted and not filtered yet."""
    steps = [(record.t_ns, 1) for record in seen.marked("message_accepted")]
    steps += [(record.t_ns, -1) for record in seen.marked("message_filtered")]
    length = highest = 0
    for _, step in sorted(steps):
        length += step
        highest = max(highest, length)
    return highest


def _share_of_cpu(mark: str) -> Compute:
    """Return the share that programs told of with `mark` in the time that the CPUs were busy."""

    def compute(seen: Observation) -> float | None:
        busy_pct = cpu_busy_pct(seen)
        if not busy_pct:
            return None
        cpus = len(parse_stat(seen.result.samples[0].text("stat")).cpus)
        busy_ns = busy_pct / 100 * cpus * (seen.end_ns - seen.begin_ns)
        return 100 * sum(float(record.value) for record in seen.marked(mark)) / busy_ns

    return compute


FILTER: Final = Family(
    "filter",
    (
        # Messages that the content filter let through in the measured part; the time from their
        # arrival to the filter's or the next host's 250.
        Metric("filtered_per_s", "/s", rate_within("message_filtered")),
        Metric("message_delay_s", "s", mean_within("message_delay_ns", per=NS_PER_S)),
        Metric("message_delay_p95_s", "s", percentile_within("message_delay_ns", 0.95, NS_PER_S)),
        Metric("queue_peak", "messages", queue_peak),
        # CPU time in loading virus signatures, in scanning files / CPU time of all kinds.
        Metric("signatures_cpu_pct", "%", _share_of_cpu("signatures_cpu_ns")),
        Metric("scan_cpu_pct", "%", _share_of_cpu("scan_cpu_ns")),
    ),
)
