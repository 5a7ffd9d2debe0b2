"""Figures of a poller: how long a poll takes, what it misses, and what its data base does.

Models: Cacti's log, its graphs that never work, and SHOW STATUS.
Counterpart: cacti.log (SYSTEM STATS), mysqladmin extended-status.
Invariants: a status variable counts from mysqld's start; a figure is its growth.
Left out: figures of single hosts.
"""

from typing import Final

from sim.observation import Family, Metric, Observation, max_within, mean_of, mean_within
from sim.units import NS_PER_S


def snmp_timeouts(seen: Observation) -> float | None:
    """Questions without an answer, each poll."""
    polls = len(seen.marked("poll_ns"))
    lost = sum(float(record.value) for record in seen.marked("snmp_timeouts"))
    return lost / polls if polls else None


def mysqld_cpu_pct(seen: Observation) -> float | None:
    """CPU time of mysqld's threads that ended in the measured part / its length."""
    spent_ns = [float(record.value) for record in seen.marked("mysqld_cpu_ns")]
    length_ns = seen.end_ns - seen.begin_ns
    return 100 * sum(spent_ns) / length_ns if spent_ns and length_ns else None


def mysql_lock_waits(seen: Observation) -> float | None:
    """Row locks (or table locks) that somebody had to wait for in the measured part."""
    return _grown(seen, "mysqld_lock_waits")


def innodb_io_per_s(seen: Observation) -> float | None:
    """Fsyncs of InnoDB's log and pages that it wrote, per second."""
    length_s = (seen.end_ns - seen.begin_ns) / NS_PER_S
    grown = [_grown(seen, f"mysqld_{name}") for name in ("log_fsyncs", "page_writes")]
    known = [value for value in grown if value is not None]
    return sum(known) / length_s if known and length_s else None


def _grown(seen: Observation, name: str) -> float | None:
    """Return how much a status variable of mysqld grew in the measured part."""
    seen_values = [float(record.value) for record in seen.marked(name)]
    before = [float(r.value) for r in seen.result.marks(name) if r.t_ns < seen.begin_ns]
    return seen_values[-1] - (before[-1] if before else 0.0) if seen_values else None


POLL: Final = Family(
    "poll",
    (
        # The longest time from the beginning of an interval to the end of poller.php; data sources
        # that a poll did not come to, on the mean, and those that no poll came to.
        Metric("poll_duration_s", "s", max_within("poll_ns", per=NS_PER_S)),
        Metric("poll_missed", "sources", mean_within("poll_missed")),
        Metric("sources_never_polled", "sources", mean_of("sources_never_polled")),
        Metric("snmp_timeouts", "", snmp_timeouts),
        Metric("cpu.mysqld_pct", "%", mysqld_cpu_pct),
        Metric("mysql_lock_waits", "", mysql_lock_waits),
        Metric("innodb_io_per_s", "/s", innodb_io_per_s),
    ),
)
