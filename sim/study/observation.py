"""One run, looked at through its measured part: what every figure is computed from.

Models: the reports and marks that an administrator would go by.
Linux counterpart: sysstat's formulas, which sim.tools has.
Invariants: a full report is one of one interval that lies wholly inside the measured part, from the
 `begin` mark to the `end` mark of [measure].
Left out: figures weighted by time between reports; every report covers the same interval.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import fmean

from sim.results import Record, RunResult
from sim.scenario.spec import MeasureSpec
from sim.tools.iostat_report import DeviceReport, IostatReport, compute_iostat
from sim.units import NS_PER_S


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
            return f"no means: no full report lies inside {self._part()}"
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

    @property
    def formula(self) -> str:
        """The first line of the computing function's docstring."""
        return (self.compute.__doc__ or "").strip().partition("\n")[0]


def mean(values: Iterable[float]) -> float | None:
    """Return the mean, None of nothing."""
    kept = list(values)
    return fmean(kept) if kept else None
