"""The figures of servers whose CPUs are full: of mail filters, pollers, hosts, the CPUs themselves.

Models: what a graph of the CPUs, the mail log and accounting of processes would tell.
Linux counterpart: sar -u, pflogsumm, acct(5).
Invariants: as for sim/study/metrics.py, whose families these are.
Left out: figures by process, but where programs tell of their own CPU time.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from sim.study.observation import Metric, Observation, mean
from sim.study.summary import percentile
from sim.tools.iostat_report import CpuReport
from sim.tools.parse import parse_loadavg, parse_meminfo, parse_stat
from sim.units import NS_PER_S, NS_PER_US

FULL_PCT: Final = 99.0  # what a graph shows as 100 %


def cpu_full_time_pct(seen: Observation) -> float | None:
    """Share of the full reports with less than 1 % of idle, iowait and steal together."""
    busy = [_busy_pct(report.cpu) for report in seen.full_reports]
    return 100 * sum(pct >= FULL_PCT for pct in busy) / len(busy) if busy else None


def cpu_busy_pct(seen: Observation) -> float | None:
    """Mean of 100 - %idle - %iowait - %steal of the full reports."""
    return mean(_busy_pct(report.cpu) for report in seen.full_reports)


def _busy_pct(cpu: CpuReport) -> float:
    return 100.0 - cpu.idle_pct - cpu.iowait_pct - cpu.steal_pct


def cpu_steal_pct(seen: Observation) -> float | None:
    """Mean %steal of the full reports."""
    return mean(report.cpu.steal_pct for report in seen.full_reports)


def load1(seen: Observation) -> float | None:
    """Mean of the 1-minute load average at the readings of the measured part."""
    samples = (s for s in seen.result.samples if seen.begin_ns < s.t_ns <= seen.end_ns)
    return mean(parse_loadavg(sample.text("loadavg")).load1 for sample in samples)


def anonymous_mib_peak(seen: Observation) -> float | None:
    """Highest AnonPages of /proc/meminfo at the readings: memory of programs."""
    texts = (s.text("meminfo") for s in seen.result.samples if s.t_ns >= seen.begin_ns)
    return max((parse_meminfo(text).get("AnonPages", 0) / 1024 for text in texts), default=None)


def filtered_per_s(seen: Observation) -> float | None:
    """Messages that the content filter let through in the measured part, per second."""
    length_ns = seen.end_ns - seen.begin_ns
    return len(seen.marked("message_filtered")) * NS_PER_S / length_ns if length_ns else None


def message_delay_s(seen: Observation) -> float | None:
    """Mean time from a message's arrival to the filter's or the next host's 250."""
    return mean(_delays_s(seen))


def message_delay_p95_s(seen: Observation) -> float | None:
    """95 % quantile of these times."""
    delays = sorted(_delays_s(seen))
    return percentile(delays, 0.95) if delays else None


def _delays_s(seen: Observation) -> list[float]:
    return [float(record.value) / NS_PER_S for record in seen.marked("message_delay_ns")]


def queue_peak(seen: Observation) -> float:
    """Highest number of messages that were accepted and not filtered yet."""
    steps = [(record.t_ns, 1) for record in seen.marked("message_accepted")]
    steps += [(record.t_ns, -1) for record in seen.marked("message_filtered")]
    length = highest = 0
    for _, step in sorted(steps):
        length += step
        highest = max(highest, length)
    return highest


def signatures_cpu_pct(seen: Observation) -> float | None:
    """CPU time in loading virus signatures / CPU time of all kinds, in the measured part."""
    return _share_of_cpu(seen, "signatures_cpu_ns")


def scan_cpu_pct(seen: Observation) -> float | None:
    """CPU time in scanning files for viruses / CPU time of all kinds."""
    return _share_of_cpu(seen, "scan_cpu_ns")


def _share_of_cpu(seen: Observation, mark: str) -> float | None:
    """Return the share that programs told of with `mark` in the time that the CPUs were busy."""
    busy_pct = cpu_busy_pct(seen)
    if not busy_pct:
        return None
    cpus = len(parse_stat(seen.result.samples[0].text("stat")).cpus)
    busy_ns = busy_pct / 100 * cpus * (seen.end_ns - seen.begin_ns)
    return 100 * sum(float(record.value) for record in seen.marked(mark)) / busy_ns


def transfer_bytes_per_s(seen: Observation) -> float | None:
    """Bytes that arrived on all streams / time from the client's start to the last one's end."""
    begun_ns = seen.result.first_ns("transfer_begin")
    arrived = list(seen.result.marks("transfer_bytes"))
    if begun_ns is None or not arrived:
        return None
    length_ns = max(record.t_ns for record in arrived) - begun_ns
    return sum(float(record.value) for record in arrived) * NS_PER_S / length_ns


def poll_duration_s(seen: Observation) -> float | None:
    """Longest time from the beginning of an interval to the end of poller.php."""
    times = [float(record.value) / NS_PER_S for record in seen.marked("poll_ns")]
    return max(times, default=None)


def poll_missed(seen: Observation) -> float | None:
    """Mean number of data sources that a poll did not come to."""
    return mean(float(record.value) for record in seen.marked("poll_missed"))


def sources_never_polled(seen: Observation) -> float | None:
    """Data sources that no poll came to: graphs that never work."""
    return mean(float(record.value) for record in seen.result.marks("sources_never_polled"))


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


def host_busy_pct(seen: Observation) -> float | None:
    """CPU time of the virtual host's CPUs, of all guests, / their number and the time."""
    cpus = seen.result.marks("host_cpus")
    busy = seen.marked("host_busy_ns")
    if len(busy) < 2:
        return None
    elapsed_ns = busy[-1].t_ns - busy[0].t_ns
    number = float(next(iter(cpus)).value)
    return 100 * (float(busy[-1].value) - float(busy[0].value)) / (elapsed_ns * number)


def neighbours_slowdown(seen: Observation) -> float | None:
    """Time that bursts of the other guests took / what they would take alone on a CPU."""
    took, wanted = (_between(seen, f"neighbours_{name}_ns") for name in ("took", "wanted"))
    return took / wanted if took and wanted else None


def _between(seen: Observation, name: str) -> float | None:
    """Return how much a reading grew from the first to the last of the measured part."""
    found = seen.marked(name)
    return float(found[-1].value) - float(found[0].value) if found else None


def logins(seen: Observation) -> float | None:
    """Log-ins that came to a prompt in the measured part."""
    return float(len(seen.marked("login_ns")))


def login_duration_s(seen: Observation) -> float | None:
    """Median time from a connection to the prompt."""
    return _login_percentile(seen, 0.5)


def login_duration_p95_s(seen: Observation) -> float | None:
    """Time from a connection to the prompt that one log-in in twenty exceeds."""
    return _login_percentile(seen, 0.95)


def _login_percentile(seen: Observation, share: float) -> float | None:
    times = sorted(float(record.value) / NS_PER_S for record in seen.marked("login_ns"))
    return percentile(times, share) if times else None


def backup_mb_per_s(seen: Observation) -> float | None:
    """Rate of the backups that ended, their close() included."""
    sizes = [float(record.value) for record in seen.marked("backup_done")]
    times = [float(record.value) for record in seen.marked("backup_ns")]
    return sum(sizes) * NS_PER_S / sum(times) / 1e6 if sum(times) else None


def _quota_counts(seen: Observation) -> Counter[str]:
    """Return by how much the counters of all groups' cpu.stat grew in the measured part."""
    samples = [s for s in seen.result.samples if seen.begin_ns <= s.t_ns <= seen.end_ns]
    grown: Counter[str] = Counter()
    for sample, sign in ((samples[-1], 1), (samples[0], -1)) if samples else ():
        for path, text in sample.files.items():
            if path.startswith("cgroup/") and path.endswith("/cpu.stat"):
                for line in text.splitlines():
                    name, value = line.split()
                    grown[name] += sign * int(value)
    return grown


def throttled_periods_pct(seen: Observation) -> float | None:
    """Share of the periods of quotas in which somebody was throttled."""
    grown = _quota_counts(seen)
    periods = grown["nr_periods"]
    return 100 * grown["nr_throttled"] / periods if periods else None


def throttled_cpus(seen: Observation) -> float | None:
    """Mean number of CPUs on which a group was throttled."""
    grown = _quota_counts(seen)
    throttled_ns = grown["throttled_time"] + grown["throttled_usec"] * NS_PER_US
    length_ns = seen.end_ns - seen.begin_ns
    return throttled_ns / length_ns if length_ns and grown["nr_periods"] else None


FAMILIES: Final[Mapping[str, tuple[Metric, ...]]] = {
    "throttling": (
        Metric("throttled_periods_pct", "%", throttled_periods_pct),
        Metric("throttled_cpus", "CPUs", throttled_cpus),
    ),
    "filter": (
        Metric("filtered_per_s", "/s", filtered_per_s),
        Metric("message_delay_s", "s", message_delay_s),
        Metric("message_delay_p95_s", "s", message_delay_p95_s),
        Metric("queue_peak", "messages", queue_peak),
        Metric("signatures_cpu_pct", "%", signatures_cpu_pct),
        Metric("scan_cpu_pct", "%", scan_cpu_pct),
    ),
    "poll": (
        Metric("poll_duration_s", "s", poll_duration_s),
        Metric("poll_missed", "sources", poll_missed),
        Metric("sources_never_polled", "sources", sources_never_polled),
        Metric("snmp_timeouts", "", snmp_timeouts),
        Metric("cpu.mysqld_pct", "%", mysqld_cpu_pct),
        Metric("mysql_lock_waits", "", mysql_lock_waits),
        Metric("innodb_io_per_s", "/s", innodb_io_per_s),
    ),
    "host": (
        Metric("host.cpu.busy_pct", "%", host_busy_pct),
        Metric("host.neighbours_slowdown", "", neighbours_slowdown),
    ),
    "transfer": (Metric("transfer_bytes_per_s", "B/s", transfer_bytes_per_s),),
    "logins": (
        Metric("logins", "", logins),
        Metric("login_duration_s", "s", login_duration_s),
        Metric("login_duration_p95_s", "s", login_duration_p95_s),
        Metric("backup_mb_per_s", "MB/s", backup_mb_per_s),
    ),
    "busy": (
        Metric("cpu_full_time_pct", "%", cpu_full_time_pct),
        Metric("cpu.busy_pct", "%", cpu_busy_pct),
        Metric("cpu.steal_pct", "%", cpu_steal_pct),
        Metric("load1", "tasks", load1),
        Metric("anonymous_mib_peak", "MiB", anonymous_mib_peak),
    ),
}
