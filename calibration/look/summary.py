"""The whole look at a recording: intervals, CPUs, devices, demands, bottleneck, checks.

Models: one page of an administrator's notebook.
Linux counterpart: none.
Invariants: everything is computed from the intervals that are used; checks look at all intervals
but those since boot.
Left out: drawing it (report.py).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from calibration.dataset import Source
from calibration.look.bottleneck import Seen, Verdict, bottleneck
from calibration.look.checks import (
    Checked,
    Finding,
    laws_of,
    overcounted,
    release,
    run_checks,
)
from calibration.look.cpus import CpuLook, look_at_cpus
from calibration.look.demand import Customers, Demands, demands_of
from calibration.look.devices import DeviceLook, look_at_devices, lowest
from calibration.look.files import check_one_server, findings_of, told_once
from calibration.look.intervals import (
    Interval,
    intervals_of,
    mean_row,
    with_busy_time,
    without_ends,
)
from calibration.look.outliers import outliers
from calibration.look.processes import ProcessLook, likeliest_writer, look_at_processes
from calibration.look.stacking import Stack, stacks_of
from calibration.look.tasks import Active, active_of, running_at_samples
from calibration.readers import UnreadableRecording
from calibration.samples import PRESSURES, Recording
from sim.scenario import RecordedSpec
from sim.scenario.calibrate import recorded_metrics
from sim.study.recorded import load_figures

BEFORE = "before"  # the set of figures of the state that was recorded
STACK_TOLERANCE = 0.1
PRESSURE_SHOWN_PCT = 1.0
SHARE_WHOLE_PCT = 9.95  # from there on without decimals
LOAD_FACTOR = 2.0  # a mean of samples against an average over a minute: less says nothing


def _share(pct: float) -> str:
    """Return a share of the time in as many digits as one reads."""
    return f"{pct:.1f} %" if pct < SHARE_WHOLE_PCT else f"{pct:.0f} %"


class NothingToLookAt(UnreadableRecording):
    """A recording without one interval of CPU or device figures."""


@dataclass(frozen=True, kw_only=True)
class Throughput:
    """Transactions per second, and who says so."""

    per_s: float
    source: str


@dataclass(frozen=True, kw_only=True)
class System:
    """Of the whole server: load average with its source, swap in use (least and most), tasks."""

    load: float | None
    load_source: str
    swap_used_bytes: tuple[float, ...]
    running: float | None
    blocked: float | None
    uninterruptible: float | None
    pressure_pct: Mapping[str, float] = field(default_factory=dict)  # "io_some" -> % of the time
    tasks: Active | None = None  # that the load average counts, or those of them in I/O

    @property
    def pressure(self) -> str:
        """Say for how much of the time tasks waited; "" if hardly any did, or nothing tells."""
        told = []
        for name, words in PRESSURES.items():
            some = self.pressure_pct.get(f"{name}_some", 0.0)
            full = self.pressure_pct.get(f"{name}_full", 0.0)
            if some >= PRESSURE_SHOWN_PCT:
                all_wait = f" ({_share(full)}: all that are not idle)" if full else ""
                told.append(f"for {words} {_share(some)} of the time{all_wait}")
        return f"Pressure: some task waits {', '.join(told)}." if told else ""

    @property
    def active(self) -> float | None:
        """Return how many tasks the load average counts; None if only a part of them is known."""
        return None if self.tasks is None or self.tasks.in_io_alone else self.tasks.mean


@dataclass(frozen=True, kw_only=True)
class Look:
    """What a recording says."""

    source: Source
    formats: tuple[str, ...]
    since_boot: int
    intervals: tuple[Interval, ...]
    used: tuple[Interval, ...]
    cpu: CpuLook
    devices: tuple[DeviceLook, ...]
    swap_devices: tuple[str, ...]
    stacks: tuple[Stack, ...]
    system: System
    demands: Demands | None
    verdict: Verdict
    laws: tuple[str, ...]  # that could be checked
    findings: tuple[Finding, ...]
    processes: tuple[ProcessLook, ...]  # the busiest
    writer: tuple[str, str] | None  # the command that most of the waiting is of, and what says so
    outliers: Mapping[int, str]  # number among those used -> what a device did in it


def look(
    source: Source, *, throughput: Throughput | None = None, customers: Customers | None = None
) -> Look:
    """Return what the recordings of one server say; NothingToLookAt."""
    check_one_server(source.recordings)
    intervals = intervals_of(told_once(source.recordings))
    if not intervals:
        raise NothingToLookAt(source.name, _why_nothing(source))
    checked = Checked(intervals=intervals, kernel=release(source.facts.get("kernel")))
    used = with_busy_time(_used(source, intervals), overcounted(checked))
    blocks = source.host.devices if source.host is not None else {}
    devices = look_at_devices(used, blocks)
    cpu = _cpus(source, used, devices)
    stacks = stacks_of(devices, blocks)
    system = _system(source, cpu, devices)
    swapping = _swap_devices(source, devices)
    unlike = outliers(used)
    return Look(
        source=source,
        formats=tuple(dict.fromkeys(name for one in source.recordings for name in one.formats)),
        since_boot=_since_boot(source.recordings),
        intervals=tuple(intervals),
        used=tuple(used),
        cpu=cpu,
        devices=tuple(devices),
        swap_devices=swapping,
        stacks=tuple(stacks),
        system=system,
        demands=_demands(source, used, devices, cpu, throughput, customers),
        verdict=bottleneck(
            Seen(
                cpu=cpu,
                devices=devices,
                swap_devices=swapping,
                load=system.load,
                intervals=used,
                swap_used_bytes=max(system.swap_used_bytes, default=None),
            )
        ),
        laws=tuple(laws_of(checked)),
        findings=(
            *run_checks(checked),
            *_outlier_findings(unlike),
            *_host_findings(source),
            *findings_of(source.recordings),
            *_stack_findings(stacks),
            *_wait_findings(cpu),
            *_load_findings(system),
        ),
        processes=tuple(look_at_processes(source.recordings)),
        writer=likeliest_writer(source.recordings),
        outliers=unlike,
    )


def steady(seen: Look) -> Look:
    """Return the look without the intervals that are out; the same if there are none."""
    if not seen.outliers:
        return seen
    source = seen.source
    used = [one for number, one in enumerate(seen.used) if number not in seen.outliers]
    blocks = source.host.devices if source.host is not None else {}
    devices = look_at_devices(used, blocks)
    return replace(
        seen,
        used=tuple(used),
        devices=tuple(devices),
        cpu=_cpus(source, used, devices),
        stacks=tuple(stacks_of(devices, blocks)),
        outliers={},
    )


def _outlier_findings(unlike: Mapping[int, str]) -> Iterator[Finding]:
    """An interval that is unlike all the others is told: it may make half of a mean."""
    for number, told in unlike.items():
        yield Finding(
            check="outlier",
            severity="note",
            where=f"interval {number + 1}",
            text=f"{told}: unlike the others; a twin is made without it",
        )


def _used(source: Source, intervals: Sequence[Interval]) -> list[Interval]:
    """Leave out the warm-up and the cool-down of a data set, if that leaves anything."""
    data = source.data_set
    if data is None:
        return list(intervals)
    return without_ends(intervals, data.warm_up_s, data.cool_down_s) or list(intervals)


def _cpus(source: Source, used: Sequence[Interval], devices: Sequence[DeviceLook]) -> CpuLook:
    disks = [one for one in lowest(devices) if one.util_pct]
    busiest = max(disks, key=lambda one: one.util_pct or 0.0, default=None)
    return look_at_cpus(
        used,
        mean_row(one.cpu for one in used),
        stated=_stated_cpus(source),
        device=busiest.name if busiest else None,
    )


def _demands(
    source: Source,
    used: Sequence[Interval],
    devices: Sequence[DeviceLook],
    cpu: CpuLook,
    throughput: Throughput | None,
    customers: Customers | None,
) -> Demands | None:
    """Return demands at the throughput given, else at the one recorded."""
    known = throughput or _recorded_throughput(source)
    if known is None:
        return None
    return demands_of(
        used,
        devices,
        cpus=cpu.cpus,
        busy=cpu.busy,
        throughput_per_s=known.per_s,
        source=known.source,
        customers=customers,
    )


def _system(source: Source, cpu: CpuLook, devices: Sequence[DeviceLook]) -> System:
    load, load_source = _load(source)
    disks = {one.name for one in lowest(devices)}
    busy_cpus = None if cpu.busy is None or cpu.cpus is None else cpu.busy * cpu.cpus
    running = [value for one in source.recordings for value in running_at_samples(one, busy_cpus)]
    return System(
        load=load,
        load_source=load_source,
        swap_used_bytes=_swap_used_bytes(source.recordings),
        running=fmean(running) if running else None,
        blocked=_mean(source.recordings, "procs_blocked"),
        uninterruptible=_uninterruptible(source.recordings),
        pressure_pct=_pressures(source.recordings),
        tasks=active_of(source.recordings, busy_cpus, cpu.cpus, disks),
    )


def _host_findings(source: Source) -> Iterator[Finding]:
    """Lines of the host's description that could not be understood are told, not guessed."""
    for line in source.host.unread if source.host is not None else ():
        yield Finding(
            check="host", severity="note", where="", text=f"host.txt: {line!r} is not understood"
        )


def _stack_findings(stacks: Sequence[Stack]) -> Iterator[Finding]:
    """What volumes hand down enters the disk: w(dm) = w + wrqm."""
    for stack in stacks:
        if abs(stack.unexplained) > STACK_TOLERANCE:
            yield Finding(
                check="stacked",
                severity="note",
                where=stack.disk,
                text=f"{stack.entered_per_s:.1f} writes/s entered (w + wrqm), its volumes"
                f" {', '.join(stack.volumes)} handed down {stack.handed_per_s:.1f}: other writers,"
                " or volumes that are not on it",
            )


def _wait_findings(cpu: CpuLook) -> Iterator[Finding]:
    """Iowait needs a device that is busy: iowait <= U (1 - busy)."""
    if cpu.ratio is not None and cpu.ratio > 1 + STACK_TOLERANCE:
        yield Finding(
            check="iowait",
            severity="note",
            where="CPU",
            text=f"iowait is {cpu.ratio:.1f} times what {cpu.device} can cause"
            " (util (1 - busy)): tasks wait for several devices in turn, or util is too low",
        )


def _load_findings(system: System) -> Iterator[Finding]:
    """The load average is the tasks that run or sleep uninterruptibly, smoothed over a minute."""
    if system.load is None or system.running is None:
        return
    active = system.running + max(system.blocked or 0.0, system.uninterruptible or 0.0)
    if system.load > LOAD_FACTOR * (active + 1):
        yield Finding(
            check="load",
            severity="note",
            where="",
            text=f"the load average is {system.load:.1f}, but {active:.1f} tasks run or wait for"
            " I/O at the samples: others sleep uninterruptibly outside I/O (a lock, a journal,"
            " NFS), or the load was higher before",
        )


def _why_nothing(source: Source) -> str:
    """Say why there is no interval."""
    samples = sum(len(one.samples) for one in source.recordings)
    reports = _since_boot(source.recordings)
    if reports > 1:
        return (
            f"{reports} reports, each since boot, and nothing tells the time between"
            " them; put a line of `date` before each"
        )
    if reports:
        return "only figures since boot; record two reports or more"
    told = f"{samples} values, none of CPUs or devices over an interval"
    if any(one.names("process") for one in source.recordings):
        told += "; of processes alone no server is known: record `iostat -xz 5` beside pidstat"
    return told


def _since_boot(recordings: Sequence[Recording]) -> int:
    """Return how many reports are since boot."""
    return sum(
        len({sample.report for sample in one.samples if sample.since_boot}) for one in recordings
    )


def _stated_cpus(source: Source) -> int | None:
    stated = source.facts.get("cpus")
    if stated is not None:
        return int(stated)
    single = {name for one in source.recordings for name in one.names("cpu") if name.isdigit()}
    return len(single) or None


def _load(source: Source) -> tuple[float | None, str]:
    """Return the load average: the mean recorded, else the figure of the data set."""
    mean = _mean(source.recordings, "load1")
    if mean is not None:
        return mean, "mean of the recording"
    figure = _figure(source, "load1_peak")
    return (figure, "the data set's figures, peak") if figure is not None else (None, "")


def _recorded_throughput(source: Source) -> Throughput | None:
    value = _figure(source, "throughput_per_s")
    if value is None:
        return None
    return Throughput(per_s=value, source=f"figures.{BEFORE} of the data set")


def _figure(source: Source, name: str) -> float | None:
    data = source.data_set
    if data is None or BEFORE not in recorded_metrics(data.folder):
        return None
    spec = RecordedSpec(figures=BEFORE, folder=data.folder)
    figure = load_figures(spec).figures.get(name)
    return figure.value if figure is not None else None


def _mean(recordings: Sequence[Recording], column: str) -> float | None:
    values = [sample.value for one in recordings for sample in one.select(column)]
    return fmean(values) if values else None


def _pressures(recordings: Sequence[Recording]) -> dict[str, float]:
    """Return the share of the time for which tasks waited for each resource, as far as is told."""
    names = [f"{name}_{line}" for name in PRESSURES for line in ("some", "full")]
    found = {name: _mean(recordings, f"pressure_{name}_pct") for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _uninterruptible(recordings: Sequence[Recording]) -> float | None:
    """Return how many sleep uninterruptibly; recordings of before had main threads alone."""
    census = _mean(recordings, "tasks_uninterruptible")
    return _mean(recordings, "procs_uninterruptible") if census is None else census


def _swap_used_bytes(recordings: Sequence[Recording]) -> tuple[float, ...]:
    values = {
        sample.value
        for one in recordings
        for column in ("swap_used_bytes", "swapspace_used_bytes")
        for sample in one.select(column)
    }
    return tuple(sorted({min(values), max(values)})) if values else ()


def _swap_devices(source: Source, devices: Sequence[DeviceLook]) -> tuple[str, ...]:
    """Return the devices that hold swap: those named, or the disks of partitions named."""
    places = [swap.source for swap in source.host.swaps] if source.host is not None else []
    places += [s.name for one in source.recordings for s in one.select("swapspace_used_bytes")]
    names = [place.removeprefix("/dev/") for place in places]
    return tuple(one.name for one in devices if any(n.startswith(one.name) for n in names))
