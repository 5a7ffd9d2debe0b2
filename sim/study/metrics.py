"""The figures of a run, computed from /proc text and programs' marks as an administrator would.

Models: looking at iostat and uptime every few seconds during the storm, and averaging the reports.
Linux counterpart: sysstat's formulas, which sim.tools has.
Invariants: a figure is a row of a table: name, unit, family, formula; per device `disk.NAME.*`.
 Figures of CPU and disk are means over the *full reports*: those of one interval that lie wholly
 inside the measured part (from the `begin` mark to the `end` mark of [measure]). The report in
 which the storm begins and the one in which it ends are not averaged.
Left out: figures weighted by time between reports; every report covers the same interval.
"""

from collections.abc import Mapping
from typing import Final

from sim.results import RunResult
from sim.scenario.spec import MeasureSpec
from sim.study import metrics_mail, metrics_memory, metrics_servers
from sim.study.observation import Metric, Observation, mean
from sim.study.summary import percentile
from sim.tools.parse import parse_loadavg, parse_stat
from sim.units import NS_PER_MS, NS_PER_S

PHASES: Final = 6  # of a pipeline that are shown one by one


def messages_accepted(seen: Observation) -> float:
    """Messages that the server took over in the measured part, the normal mail's among them."""
    return len(seen.marked("message_accepted"))


def duration_s(seen: Observation) -> float | None:
    """End mark - begin mark: the first connection of the storm to its last message accepted."""
    return (seen.end_ns - seen.begin_ns) / NS_PER_S if seen.is_marked else None


def throughput_per_s(seen: Observation) -> float | None:
    """messages_accepted / duration_s."""
    duration = duration_s(seen)
    return messages_accepted(seen) / duration if duration else None


def dd_real_s(seen: Observation) -> float | None:
    """Time from the start of dd to its last line, mean over all dd of the run."""
    return mean(float(record.value) / NS_PER_S for record in seen.result.marks("dd_ns"))


def dd_user_s(seen: Observation) -> float | None:
    """User CPU time of dd (getrusage), mean over all dd of the run."""
    return mean(float(record.value) / NS_PER_S for record in seen.result.marks("dd_user_ns"))


def dd_system_s(seen: Observation) -> float | None:
    """System CPU time of dd (getrusage), mean over all dd of the run."""
    return mean(float(record.value) / NS_PER_S for record in seen.result.marks("dd_system_ns"))


def dd_bytes(seen: Observation) -> float | None:
    """Bytes that dd copied, mean over all dd of the run."""
    return mean(float(record.value) for record in seen.result.marks("dd_done"))


def dd_bytes_per_s(seen: Observation) -> float | None:
    """dd_bytes / dd_real_s: what dd's last line says, mean over all dd of the run."""
    marks = seen.result.marks
    pairs = zip(marks("dd_done"), marks("dd_ns"), strict=True)
    return mean(
        float(size.value) * NS_PER_S / float(took.value) for size, took in pairs if took.value
    )


def mkfs_s(seen: Observation) -> float | None:
    """Time of mkfs from its start to its end, mean over all of the run."""
    return mean(float(record.value) / NS_PER_S for record in seen.result.marks("mkfs_ns"))


def mkfs_discard_s(seen: Observation) -> float | None:
    """Time that mkfs took to discard its device, mean over all of the run."""
    return mean(float(record.value) / NS_PER_S for record in seen.result.marks("mkfs_discard_ns"))


def mkfs_written_bytes(seen: Observation) -> float | None:
    """Bytes that mkfs wrote, mean over all of the run."""
    return mean(float(record.value) for record in seen.result.marks("mkfs_written"))


def transactions_per_s(seen: Observation) -> float | None:
    """Transactions completed in the measured part, of all classes, per second."""
    length_ns = seen.end_ns - seen.begin_ns
    done = len(seen.marked("transaction_ns"))
    return done * NS_PER_S / length_ns if done and length_ns else None


def transaction_ms(seen: Observation) -> float | None:
    """Mean response time of these transactions."""
    return mean(float(record.value) / NS_PER_MS for record in seen.marked("transaction_ns"))


def transaction_p95_ms(seen: Observation) -> float | None:
    """95 % quantile of these response times."""
    times = sorted(float(record.value) / NS_PER_MS for record in seen.marked("transaction_ns"))
    return percentile(times, 0.95) if times else None


def read_s_sum(seen: Observation) -> float | None:
    """Time in the reads of pipelines, summed over all phases and processes."""
    return _sum_s(seen, "phase_read_ns")


def write_s_sum(seen: Observation) -> float | None:
    """Time in their writes, summed likewise."""
    return _sum_s(seen, "phase_write_ns")


def makespan_s_sum(seen: Observation) -> float | None:
    """Time from the start to the end of a pipeline, summed over all processes."""
    return _sum_s(seen, "pipeline_done")


def _sum_s(seen: Observation, name: str) -> float | None:
    times = [float(record.value) for record in seen.result.marks(name)]
    return sum(times) / NS_PER_S if times else None


def ttfb_ms(seen: Observation) -> float | None:
    """Mean time to first byte, at the balancer, of the pages of the measured part."""
    return mean(float(record.value) / NS_PER_MS for record in seen.marked("ttfb_ns"))


def ttfb_p95_ms(seen: Observation) -> float | None:
    """95 % quantile of these times."""
    times = sorted(float(record.value) / NS_PER_MS for record in seen.marked("ttfb_ns"))
    return percentile(times, 0.95) if times else None


def ping_ms(seen: Observation) -> float | None:
    """Mean time of an ICMP echo in the measured part."""
    return mean(float(record.value) / NS_PER_MS for record in seen.marked("ping_ns"))


def load1_peak(seen: Observation) -> float | None:
    """Highest 1-minute load average of all readings since the begin mark."""
    texts = (s.text("loadavg") for s in seen.result.samples if s.t_ns >= seen.begin_ns)
    return max((parse_loadavg(text).load1 for text in texts), default=None)


def tasks_iowait(seen: Observation) -> float | None:
    """Mean of procs_blocked in /proc/stat: tasks sleeping inside I/O, at the readings."""
    samples = (s for s in seen.result.samples if seen.begin_ns < s.t_ns <= seen.end_ns)
    return mean(float(parse_stat(s.text("stat")).procs_blocked) for s in samples)


def tasks_d(seen: Observation) -> float | None:
    """Mean number of tasks in state D, as ps would count them at the readings."""
    return mean(float(record.value) for record in seen.marked("tasks_uninterruptible"))


def cpu_idle_pct_min(seen: Observation) -> float | None:
    """Lowest %idle of a full report."""
    return min((report.cpu.idle_pct for report in seen.full_reports), default=None)


def iowait_of_util(seen: Observation) -> float | None:
    """mean %iowait / mean %util of the busiest measured device."""
    iowait = mean(report.cpu.iowait_pct for report in seen.full_reports)
    utils = [mean(d.util_pct for d in seen.device(name)) for name in seen.measure.devices]
    busiest = max((util for util in utils if util is not None), default=0.0)
    return iowait / busiest if iowait is not None and busiest >= 1 else None


def port_refused_s(seen: Observation) -> float | None:
    """Time in the measured part in which the listening socket was closed."""
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


def _cpu(state: str) -> Metric:
    def compute(seen: Observation) -> float | None:
        return mean(getattr(report.cpu, f"{state}_pct") for report in seen.full_reports)

    compute.__doc__ = f"Mean %{state} of the full reports."
    return Metric(f"cpu.{state}_pct", "%", compute)


def _disk(device: str, column: str, unit: str) -> Metric:
    def compute(seen: Observation) -> float | None:
        return mean(getattr(report, column) for report in seen.device(device))

    compute.__doc__ = f"Mean of iostat's {column} for {device} over the full reports."
    return Metric(f"disk.{device}.{column}", unit, compute)


def _transfer(device: str, name: str, unit: str, column: str, factor: int) -> Metric:
    def compute(seen: Observation) -> float | None:
        return mean(factor * float(getattr(report, column)) for report in seen.device(device))

    times = "" if factor == 1 else f"{factor} x "
    compute.__doc__ = f"Mean of {times}iostat's {column} for {device} over the full reports."
    return Metric(f"disk.{device}.{name}", unit, compute)


def _merges_per_write(device: str) -> Metric:
    def compute(seen: Observation) -> float | None:
        writes = mean(report.w_per_s for report in seen.device(device))
        merges = mean(report.wrqm_per_s for report in seen.device(device))
        return merges / writes if writes and merges is not None else None

    compute.__doc__ = f"mean wrqm/s / mean w/s of {device}."
    return Metric(f"disk.{device}.wrqm_per_w", "", compute)


def _phase(number: int) -> Metric:
    """Return the time of one phase of a pipeline: odd ones read, even ones write."""
    kind = "read" if number % 2 else "write"

    def compute(seen: Observation) -> float | None:
        times = list(seen.result.marks(f"phase_{kind}_ns"))
        place = (number - 1) // 2
        return float(times[place].value) / NS_PER_S if place < len(times) else None

    compute.__doc__ = f"Time of the {kind} that is phase {number} of a pipeline."
    return Metric(f"phase.{number}.{kind}_s", "s", compute)


_DISK_COLUMNS: Final = (
    ("r_per_s", "/s"),
    ("w_per_s", "/s"),
    ("wrqm_per_s", "/s"),
    ("avgrq_sectors", "sectors"),
    ("avgqu_sz", ""),
    ("await_ms", "ms"),
    ("svctm_ms", "ms"),
    ("util_pct", "%"),
)
_WAIT_COLUMNS: Final = (("rrqm_per_s", "/s"), ("r_await_ms", "ms"), ("w_await_ms", "ms"))
# What iostat without -x says, with its kilobytes as bytes.
_TRANSFER_COLUMNS: Final = (
    ("io_per_s", "/s", "tps", 1),
    ("read_bytes_per_s", "B/s", "rsec_per_s", 512),
    ("write_bytes_per_s", "B/s", "wsec_per_s", 512),
    ("areq_bytes", "B", "avgrq_sectors", 512),
)
_FAMILIES: Final[Mapping[str, tuple[Metric, ...]]] = {
    "storm": (
        Metric("messages_accepted", "messages", messages_accepted),
        Metric("duration_s", "s", duration_s),
        Metric("throughput_per_s", "/s", throughput_per_s),
    ),
    "transactions": (
        Metric("transactions_per_s", "/s", transactions_per_s),
        Metric("transaction_ms", "ms", transaction_ms),
        Metric("transaction_p95_ms", "ms", transaction_p95_ms),
    ),
    "web": (
        Metric("ttfb_ms", "ms", ttfb_ms),
        Metric("ttfb_p95_ms", "ms", ttfb_p95_ms),
        Metric("ping_ms", "ms", ping_ms),
    ),
    "dd": (
        Metric("dd_real_s", "s", dd_real_s),
        Metric("dd_user_s", "s", dd_user_s),
        Metric("dd_system_s", "s", dd_system_s),
        Metric("dd_bytes", "B", dd_bytes),
        Metric("dd_bytes_per_s", "B/s", dd_bytes_per_s),
    ),
    "mkfs": (
        Metric("mkfs_s", "s", mkfs_s),
        Metric("mkfs_discard_s", "s", mkfs_discard_s),
        Metric("mkfs_written_bytes", "B", mkfs_written_bytes),
    ),
    "phases": tuple(_phase(number) for number in range(1, PHASES + 1)),
    "pipelines": (
        Metric("read_s_sum", "s", read_s_sum),
        Metric("write_s_sum", "s", write_s_sum),
        Metric("makespan_s_sum", "s", makespan_s_sum),
    ),
    "port": (Metric("port_refused_s", "s", port_refused_s),),
    "load": (
        Metric("load1_peak", "tasks", load1_peak),
        Metric("tasks_d", "tasks", tasks_d),
        Metric("tasks_iowait", "tasks", tasks_iowait),
    ),
    "cpu": (
        Metric("cpu_idle_pct_min", "%", cpu_idle_pct_min),
        *(_cpu(state) for state in ("user", "system", "iowait", "idle")),
        Metric("cpu.iowait_of_util", "", iowait_of_util),
    ),
}


_ALL_FAMILIES: Final = (
    *_FAMILIES.items(), *metrics_servers.FAMILIES.items(), *metrics_mail.FAMILIES.items(),
    *metrics_memory.FAMILIES.items(),
)  # fmt: skip


def metrics_of(measure: MeasureSpec) -> tuple[Metric, ...]:
    """Return the figures that a scenario asks for, in the order of the tables."""
    found: list[Metric] = []
    for family, metrics in _ALL_FAMILIES:
        if family in measure.families:
            found += metrics
    if "disk" in measure.families:
        for device in measure.devices:
            found += [_disk(device, column, unit) for column, unit in _DISK_COLUMNS]
            found.append(_merges_per_write(device))
    if "waits" in measure.families:
        for device in measure.devices:
            found += [_disk(device, column, unit) for column, unit in _WAIT_COLUMNS]
            found.append(_transfer(device, "aqu_sz", "", "avgqu_sz", 1))
    if "transfers" in measure.families:
        for device in measure.devices:
            found += [_transfer(device, *row) for row in _TRANSFER_COLUMNS]
    return tuple(found)


def compute_metrics(result: RunResult, measure: MeasureSpec) -> dict[str, float]:
    """Return the figures of one run by name; a figure without data is left out."""
    seen = Observation(result, measure)
    values = {metric.name: metric.compute(seen) for metric in metrics_of(measure)}
    return {name: value for name, value in values.items() if value is not None}


def units_of(measure: MeasureSpec) -> dict[str, str]:
    """Return the unit of each figure by name."""
    return {metric.name: metric.unit for metric in metrics_of(measure)}
