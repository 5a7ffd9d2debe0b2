"""The figures of a server, computed from /proc text as an administrator would.

Models: looking at iostat, uptime, free, vmstat and sar every few seconds during the storm, and
averaging the reports; the kernel's log; a count of block_dump's lines.
Linux counterpart: sysstat's and procps's formulas, which sim.tools has; dmesg.
Invariants: a figure is a row of a table: name, unit, family, formula; per device `disk.NAME.*`.
 What programs report of themselves they declare beside them (sim/observation.py).
 Figures of CPU and disk are means over the *full reports*: those of one interval that lie wholly
 inside the measured part (from the `begin` mark to the `end` mark of [measure]). The report in
 which the storm begins and the one in which it ends are not averaged. Rates are of the measured
 part.
Left out: figures weighted by time between reports (every report covers the same interval), figures
 by process or cgroup.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from sim.histogram import Histogram, histogram_of
from sim.observation import Family, MeasureSpec, Metric, Observation, Quantile, figures_of, mean
from sim.registry import lookup
from sim.results import RunResult
from sim.study.block_dump import BLOCKS, EVENTS, JOURNAL_THREAD
from sim.tools.iostat import CpuReport
from sim.tools.parse import parse_loadavg, parse_meminfo, parse_stat, parse_vmstat
from sim.units import NS_PER_S, NS_PER_US

KIB: Final = 1024
FULL_PCT: Final = 99.0  # what a graph shows as 100 %


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


def journal_share_pct(seen: Observation) -> float | None:
    """Share of kjournald in all lines of the measured part."""
    counts = {True: 0.0, False: 0.0}
    for record in seen.marked(EVENTS):
        counts[record.comm == JOURNAL_THREAD] += float(record.value)
    total = sum(counts.values())
    return 100 * counts[True] / total if total else None


def swap_used_bytes(seen: Observation) -> float | None:
    """Mean of SwapTotal - SwapFree at the readings of the measured part."""
    return mean(
        float(memory.get("SwapTotal", 0) - memory.get("SwapFree", 0)) * KIB
        for memory in seen.meminfo()
    )


def mem_cached_bytes(seen: Observation) -> float | None:
    """Mean of Cached at these readings."""
    return mean(float(memory["Cached"]) * KIB for memory in seen.meminfo())


def mem_free_bytes(seen: Observation) -> float | None:
    """Mean of MemFree at these readings."""
    return mean(float(memory["MemFree"]) * KIB for memory in seen.meminfo())


def oom_kills(seen: Observation) -> float:
    """Programs that the kernel killed for want of memory, in all of the run."""
    return len(list(seen.result.marks("oom_kill")))


def oom_kill_s(seen: Observation) -> float | None:
    """Time of the first OOM kill since the run began."""
    at_ns = seen.result.first_ns("oom_kill")
    return None if at_ns is None else at_ns / NS_PER_S


def _event(name: str, unit: str, counter: str) -> Metric:
    """Return how much a counter of /proc/vmstat grew, a second of the measured part."""

    def compute(seen: Observation) -> float | None:
        counts = _counts(seen.result, counter, seen.begin_ns, seen.end_ns)
        if len(counts) < 2 or counts[-1][0] == counts[0][0]:
            return None
        return (counts[-1][1] - counts[0][1]) * NS_PER_S / (counts[-1][0] - counts[0][0])

    return Metric(name, unit, compute)


def _counts(result: RunResult, counter: str, begin_ns: int, end_ns: int) -> list[tuple[int, int]]:
    samples = (s for s in result.samples if begin_ns <= s.t_ns <= end_ns)
    return [(s.t_ns, parse_vmstat(s.text("vmstat")).get(counter, 0)) for s in samples]


def _cpu(state: str) -> Metric:
    """Return the mean %state of the full reports."""

    def compute(seen: Observation) -> float | None:
        return mean(getattr(report.cpu, f"{state}_pct") for report in seen.full_reports)

    return Metric(f"cpu.{state}_pct", "%", compute)


def _disk(device: str, column: str, unit: str) -> Metric:
    """Return the mean of a column of iostat for a device over the full reports."""

    def compute(seen: Observation) -> float | None:
        return mean(getattr(report, column) for report in seen.device(device))

    return Metric(f"disk.{device}.{column}", unit, compute)


def _transfer(device: str, name: str, unit: str, column: str, factor: int) -> Metric:
    """Return `factor` times the mean of such a column."""

    def compute(seen: Observation) -> float | None:
        return mean(factor * float(getattr(report, column)) for report in seen.device(device))

    return Metric(f"disk.{device}.{name}", unit, compute)


def _merges_per_write(device: str) -> Metric:
    """Return mean wrqm/s / mean w/s of a device."""

    def compute(seen: Observation) -> float | None:
        writes = mean(report.w_per_s for report in seen.device(device))
        merges = mean(report.wrqm_per_s for report in seen.device(device))
        return merges / writes if writes and merges is not None else None

    return Metric(f"disk.{device}.wrqm_per_w", "", compute)


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
_FAMILIES: Final = (
    Family(
        "load",
        (
            Metric("load1_peak", "tasks", load1_peak),
            Metric("tasks_d", "tasks", tasks_d),
            Metric("tasks_iowait", "tasks", tasks_iowait),
        ),
    ),
    Family(
        "cpu",
        (
            Metric("cpu_idle_pct_min", "%", cpu_idle_pct_min),
            *(_cpu(state) for state in ("user", "system", "iowait", "idle")),
            Metric("cpu.iowait_of_util", "", iowait_of_util),
        ),
    ),
    Family(
        "throttling",
        (
            Metric("throttled_periods_pct", "%", throttled_periods_pct),
            Metric("throttled_cpus", "CPUs", throttled_cpus),
        ),
    ),
    Family(
        "host",
        (
            Metric("host.cpu.busy_pct", "%", host_busy_pct),
            Metric("host.neighbours_slowdown", "", neighbours_slowdown),
        ),
    ),
    Family(
        "busy",
        (
            Metric("cpu_full_time_pct", "%", cpu_full_time_pct),
            Metric("cpu.busy_pct", "%", cpu_busy_pct),
            Metric("cpu.steal_pct", "%", cpu_steal_pct),
            Metric("load1", "tasks", load1),
            Metric("anonymous_mib_peak", "MiB", anonymous_mib_peak),
        ),
    ),
    Family(BLOCKS, (Metric("block_events.kjournald_pct", "%", journal_share_pct),)),
    Family(
        "memory",
        (
            Metric("swap_used_bytes", "B", swap_used_bytes),
            Metric("mem_cached_bytes", "B", mem_cached_bytes),
            Metric("mem_free_bytes", "B", mem_free_bytes),
            _event("swap_in_per_s", "pages/s", "pswpin"),
            _event("swap_out_per_s", "pages/s", "pswpout"),
            _event("major_faults_per_s", "/s", "pgmajfault"),
            Metric("oom_kills", "", oom_kills),
            Metric("oom_kill_s", "s", oom_kill_s),
        ),
    ),
)


def metrics_of(measure: MeasureSpec) -> tuple[Metric, ...]:
    """Return the figures that a scenario asks for: the programs' first, then the server's."""
    found: dict[str, Metric] = {
        metric.name: metric
        for family in (*own_families(measure), *_FAMILIES)
        if family.name in measure.families
        for metric in family.metrics
    }
    for metric in _of_devices(measure):
        found[metric.name] = metric
    return tuple(found.values())


def own_families(measure: MeasureSpec) -> list[Family]:
    """Return what the programs of a scenario declare, of what it measures."""
    return [
        family
        for program in dict.fromkeys(measure.programs)
        for family in figures_of(lookup("program", program).cls)
        if family.name in measure.families
    ]


def own_figures(measure: MeasureSpec) -> tuple[Metric, ...]:
    """Return the figures that the programs of a scenario declare, of those that it measures."""
    found = {one.name: one for family in own_families(measure) for one in family.metrics}
    return tuple(found.values())


def _of_devices(measure: MeasureSpec) -> Iterator[Metric]:
    """Yield the figures of the measured devices."""
    if "disk" in measure.families:
        for device in measure.devices:
            yield from (_disk(device, column, unit) for column, unit in _DISK_COLUMNS)
            yield _merges_per_write(device)
    if "waits" in measure.families:
        for device in measure.devices:
            yield from (_disk(device, column, unit) for column, unit in _WAIT_COLUMNS)
            yield _transfer(device, "aqu_sz", "", "avgqu_sz", 1)
    if "transfers" in measure.families:
        for device in measure.devices:
            yield from (_transfer(device, *row) for row in _TRANSFER_COLUMNS)


def compute_metrics(result: RunResult, measure: MeasureSpec) -> dict[str, float]:
    """Return the figures of one run by name; a figure without data is left out.

    A run without the steady state that was asked for has none.
    """
    return metrics_seen(Observation(result, measure))


def metrics_seen(seen: Observation) -> dict[str, float]:
    """Return the figures of a run that is looked at already; see compute_metrics()."""
    if seen.unsteady:
        return {}
    values = {metric.name: metric.compute(seen) for metric in metrics_of(seen.measure)}
    return {name: value for name, value in values.items() if value is not None}


def histograms_seen(seen: Observation) -> dict[str, Histogram]:
    """Return the times, by mark, of which the figures of one run have quantiles."""
    if seen.unsteady:
        return {}
    return {
        one.mark: histogram_of(
            (float(record.value) for record in seen.marked(one.mark)), one.lost(seen)
        )
        for one in quantiles_of(seen.measure).values()
    }


def quantiles_of(measure: MeasureSpec) -> dict[str, Quantile]:
    """Return the figures that are quantiles of times, by name."""
    return {
        metric.name: metric.compute
        for metric in metrics_of(measure)
        if isinstance(metric.compute, Quantile)
    }


def units_of(measure: MeasureSpec) -> dict[str, str]:
    """Return the unit of each figure by name."""
    return {metric.name: metric.unit for metric in metrics_of(measure)}
