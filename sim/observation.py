"""One run, looked at through its measured part: what every figure is computed from.

Models: the reports and marks that an administrator would go by.
Linux counterpart: sysstat's formulas, which sim.tools has.
Invariants: a full report is one of one interval that lies wholly inside the measured part, from the
 `begin` mark to the `end` mark of [measure]. Where that asks for a steady state, the measured part
 begins when the transient is over (sim/truncation.py), as the times of transactions show it; a run
 that reaches no steady state, or completes less than is offered, has no measured part to speak of:
 `unsteady` says why, and no figure is computed.
Left out: figures weighted by time between reports; every report covers the same interval.

A program declares the figures that are made of its marks beside it, in its class:

    figures: ClassVar[tuple[Family, ...]] = (
        Family("hello", (Metric("hello_ms", "ms", mean_within("hello_ns", per=NS_PER_MS)),)),
    )

A scenario that runs the program may name the family in [measure].
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import fmean

from sim.param import param
from sim.registry import lookup
from sim.results import Record, RunResult
from sim.tools.iostat import DeviceReport, IostatReport, compute_iostat
from sim.tools.parse import parse_meminfo
from sim.truncation import SHORTEST, mser_5
from sim.units import NS_PER_S


@dataclass(frozen=True, kw_only=True)
class MeasureSpec:
    """Which figures are taken, of which devices, over which part of the run.

    A mark "" is none: the beginning or the end of the run. `programs` are those of the scenario,
    which may have figures of their own.
    """

    interval_ns: int = param(
        "5 s", dim="time_ns", source="scenario", doc="between two readings of /proc", minimum=10**7
    )
    begin: str = param(
        "storm_begin", dim="text", source="scenario", doc="marker that begins the measured part"
    )
    end: str = param(
        "storm_end", dim="text", source="scenario", doc="marker that ends the measured part"
    )
    steady: bool = param(
        False,
        dim="bool",
        source="scenario",
        doc="whether the measured part begins only when the transient is over (MSER-5)",
    )
    families: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()


class Observation:
    """One run, looked at through its measured part."""

    def __init__(self, result: RunResult, measure: MeasureSpec) -> None:
        self.result = result
        self.measure = measure
        last_ns = result.samples[-1].t_ns if result.samples else 0
        begin, end = result.first_ns(measure.begin), result.first_ns(measure.end)
        self.is_marked = begin is not None and end is not None
        self.begin_ns = 0 if begin is None else begin
        self.end_ns = last_ns if end is None else end
        self.unsteady = ""
        self.cut = 0  # transactions before the steady state
        if measure.steady:
            self._truncate()

    def _truncate(self) -> None:
        """Begin the measured part where the transient ends, or say why there is no steady state."""
        timed = timed_by(self.measure)
        assert timed is not None
        done = self.marked(timed.mark)
        cut = mser_5([float(record.value) for record in done])
        if len(done) < SHORTEST:
            self.unsteady = f"{len(done)} transactions, of at least {SHORTEST}"
        elif cut is None:
            self.unsteady = f"of {len(done)} transactions more than half would be cut (MSER-5)"
        elif cut:
            self.begin_ns = done[cut].t_ns
            self.cut = cut
        offered = len(self.marked(timed.offered)) if timed.offered else 0
        # By chance they differ by the root of the arrivals, and twice that is rare.
        if not self.unsteady and len(done) - self.cut < offered - 2 * math.sqrt(offered):
            self.unsteady = f"{len(done) - self.cut} transactions done of {offered} offered"

    @cached_property
    def reports(self) -> tuple[IostatReport, ...]:
        """All reports after the one since boot."""
        samples = self.result.samples
        return tuple(compute_iostat(prev, cur) for prev, cur in pairwise(samples))

    @cached_property
    def full_reports(self) -> tuple[IostatReport, ...]:
        """The reports that lie wholly inside the measured part."""
        starts = [sample.t_ns for sample in self.result.samples]
        return tuple(
            report
            for start_ns, report in zip(starts, self.reports, strict=False)
            if self.begin_ns <= start_ns and report.t_ns <= self.end_ns
        )

    def device(self, name: str) -> tuple[DeviceReport, ...]:
        """Return the full reports of one device."""
        return tuple(
            device
            for report in self.full_reports
            for device in report.devices
            if device.name == name
        )

    def meminfo(self) -> list[dict[str, int]]:
        """Return /proc/meminfo, in kB, at the readings of the measured part."""
        samples = (s for s in self.result.samples if self.begin_ns <= s.t_ns <= self.end_ns)
        return [parse_meminfo(sample.text("meminfo")) for sample in samples]

    def marked(self, name: str) -> list[Record]:
        """Return the marks of that name inside the measured part."""
        return [r for r in self.result.marks(name) if self.begin_ns <= r.t_ns <= self.end_ns]

    @property
    def missing(self) -> tuple[str, ...]:
        """The marks of the measured part that the run ended without."""
        names = (self.measure.begin, self.measure.end)
        return tuple(name for name in names if name and self.result.first_ns(name) is None)

    def unfinished(self) -> str:
        """Say that the measured part did not end, or begin, within the run; "" if it did."""
        if not self.missing:
            return ""
        samples = self.result.samples
        end_s = samples[-1].t_ns / NS_PER_S if samples else 0
        return (
            f"unfinished: no {' and no '.join(self.missing)} until the run's end at {end_s:.1f} s"
        )

    def describe(self) -> str:
        """Say of which reports the means are."""
        number = len(self.full_reports)
        if not number:
            length = f"reports of {self.measure.interval_ns / NS_PER_S:g} s, [measure] interval"
            return f"no means: no full report lies inside {self._part()} ({length})"
        interval_s = self.measure.interval_ns / NS_PER_S
        first_s = self.full_reports[0].t_ns / NS_PER_S - interval_s
        last_s = self.full_reports[-1].t_ns / NS_PER_S
        return (
            f"mean of iostat's {number} full reports of {interval_s:g} s,"
            f" from {first_s:g} s to {last_s:g} s, inside {self._part()}"
        )

    def _part(self) -> str:
        """Name the ends of the measured part."""
        begin = self._moment(self.measure.begin, self.begin_ns, "the run's beginning")
        if self.cut:
            begin = f"the steady state at {self.begin_ns / NS_PER_S:.1f} s"
        end = self._moment(self.measure.end, self.end_ns, "the run's end")
        return f"{begin} to {end}"

    def _moment(self, mark: str, at_ns: int, otherwise: str) -> str:
        name = otherwise if self.result.first_ns(mark) is None else mark
        return f"{name} at {at_ns / NS_PER_S:.1f} s"


Compute = Callable[[Observation], float | None]


@dataclass(frozen=True)
class Metric:
    """A figure: how it is called, in which unit, and how it is computed."""

    name: str
    unit: str
    compute: Compute


@dataclass(frozen=True)
class Family:
    """Figures that are asked for together; families of one name are one."""

    name: str
    metrics: tuple[Metric, ...]


def figures_of(cls: type) -> tuple[Family, ...]:
    """Return the families of figures that a program's class declares."""
    found: tuple[Family, ...] = getattr(cls, "figures", ())
    return found


def mean(values: Iterable[float]) -> float | None:
    """Return the mean, None of nothing."""
    kept = list(values)
    return fmean(kept) if kept else None


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the `share` quantile (0..1) of sorted values by linear interpolation."""
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


# -- Figures that are made of one mark. `per` is the divisor of its values.


def mean_of(mark: str, per: int = 1) -> Compute:
    """Return the mean of a mark's values in all of the run."""

    def compute(seen: Observation) -> float | None:
        return mean(float(record.value) / per for record in seen.result.marks(mark))

    return compute


def sum_of(mark: str, per: int = 1) -> Compute:
    """Return the sum of a mark's values in all of the run, None without one."""

    def compute(seen: Observation) -> float | None:
        values = [float(record.value) for record in seen.result.marks(mark)]
        return sum(values) / per if values else None

    return compute


def number_within(mark: str) -> Compute:
    """Return how often a mark was left in the measured part."""

    def compute(seen: Observation) -> float | None:
        return float(len(seen.marked(mark)))

    return compute


def rate_within(mark: str) -> Compute:
    """Return how often a second a mark was left in the measured part."""

    def compute(seen: Observation) -> float | None:
        length_ns = seen.end_ns - seen.begin_ns
        return len(seen.marked(mark)) * NS_PER_S / length_ns if length_ns else None

    return compute


def mean_within(mark: str, per: int = 1) -> Compute:
    """Return the mean of a mark's values in the measured part."""

    def compute(seen: Observation) -> float | None:
        return mean(float(record.value) / per for record in seen.marked(mark))

    return compute


def max_within(mark: str, per: int = 1) -> Compute:
    """Return the greatest of a mark's values in the measured part."""

    def compute(seen: Observation) -> float | None:
        return max((float(record.value) / per for record in seen.marked(mark)), default=None)

    return compute


@dataclass(frozen=True)
class Quantile:
    """The figure that is a quantile of a mark's values in the measured part.

    A run keeps a histogram of these values, so that a limit can be held against them later. `never`
    is a mark of transactions that did not end as they should: they are longer than any value.
    `offered` is left when one arrives, where arrivals do not wait for the server.
    """

    mark: str
    share: float
    per: int = 1
    never: str = ""
    offered: str = ""

    def __call__(self, seen: Observation) -> float | None:
        """Return the quantile; None of nothing, and if it lies among those that never ended."""
        values = sorted(float(record.value) / self.per for record in seen.marked(self.mark))
        if not values:
            return None
        whole = values + [values[-1]] * self.lost(seen)
        is_known = self.share * (len(whole) - 1) <= len(values) - 1
        return percentile(whole, self.share) if is_known else None

    def lost(self, seen: Observation) -> int:
        """Return how many transactions of the measured part did not end as they should."""
        return len(seen.marked(self.never)) if self.never else 0


def percentile_within(
    mark: str, share: float, per: int = 1, *, never: str = "", offered: str = ""
) -> Quantile:
    """Return a quantile of a mark's values in the measured part."""
    return Quantile(mark, share, per, never, offered)


def timed_by(measure: MeasureSpec) -> Quantile | None:
    """Return the first quantile of times that [measure] asks for: it tells a steady state."""
    declared = (
        metric.compute
        for program in measure.programs
        for family in figures_of(lookup("program", program).cls)
        if family.name in measure.families
        for metric in family.metrics
    )
    return next((compute for compute in declared if isinstance(compute, Quantile)), None)
