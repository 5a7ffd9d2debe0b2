"""Capacity: the greatest load at which all levels hold, between what is shown on both sides.

Models: a load test. The load is raised and lowered, always with the same seeds; at each load the
 levels are judged after 10, 20 and 40 runs, until they are met or one of them is missed. What is
 still undecided then lies in the zone that so many runs cannot tell apart. The answer is the
 interval from the greatest load that is shown to meet the levels to the least that is shown to miss
 one, and its middle.
By hand: an M/M/1 queue that serves 100/s keeps a mean of 50 ms up to 100 - 1/0.05 = 80/s. At 79/s
 the mean is 47.6 ms: runs whose means scatter by 15 % know it after 40 runs to 4 %, which is not
 enough; at 77/s it is 43.5 ms, 13 % below, and met at the first look or the second. At 82/s it is
 55.6 ms, and missed. So the interval is some 5/s wide, 6 % of the capacity.
Theory. A verdict is wrong in one of twenty cases where the true capacity is at that very load, and
 in fewer the further it is away (sim.study.levels). One side of the interval is wrong if one of the
 loads beyond the capacity was called met. These verdicts rest on the same seeds, so that the chance
 of any does not add up: both sides hold in nine cases of ten, which bare queues with exact
 capacities show (tests/study/test_capacity.py).
Counterpart: bisection; fractional factorials of load tests (Jain, The Art of Computer Systems
 Performance Analysis, 1991, chapter 25). Common random numbers: Law, Simulation Modeling and
 Analysis, chapter 11.
Invariants: no load is judged twice with the same runs; every run is told to the budget; the
 interval's ends are loads that were simulated. Levels that hold at a greater load than one at which
 they are missed are told: then the answer is the lowest of several.
Left out: loads of several parameters at a time.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Final, Protocol

from sim.scenario.levels import LevelText
from sim.scenario.spec import Scenario
from sim.study.laboratory import Laboratory, UnfinishedError
from sim.study.levels import MET, MISSED, UNDECIDED, Judged, Level, judge, overall, resolve
from sim.study.outcome import Replication, Shortfall
from sim.study.over import Path, Range, blaming
from sim.study.points import Measured, Variants, measured_point
from sim.study.points import Point as StudyPoint
from sim.study.trial import Trial, trial_of
from sim.toml.errors import Problem, ScenarioError

LOOKS: Final = (10, 20, 40)
MORE: Final = (80, 160)  # where the zone is wider than what was asked for
PRECISION: Final = 0.05
BUDGET: Final = 2000
_RISE: Final = 1.5  # from a load that is met to the next, while none is missed
_FINE: Final = 0.25  # of the precision: nearer loads tell nothing more

Judge = Callable[[float, int], Sequence[Judged]]


class Axis(Protocol):
    """What the search needs of a range (sim.study.over.Range)."""

    @property
    def low(self) -> int | float:
        """The least load."""

    @property
    def high(self) -> int | float:
        """The greatest load."""

    def near(self, number: float) -> int | float:
        """Return the load nearest to a number that can be."""


@dataclass(frozen=True)
class Point:
    """A load that was judged, after so many runs."""

    load: float
    runs: int
    judged: Sequence[Judged]

    @property
    def verdict(self) -> str:
        """Met if all levels are, missed if one is, else undecided."""
        return overall(self.judged)


@dataclass
class Search:
    """The points so far, and what they say."""

    judge: Judge
    axis: Axis
    precision: float = PRECISION
    budget: int = BUDGET
    points: dict[float, Point] = field(default_factory=dict)
    spent: int = 0
    is_out_of_budget: bool = False

    # -- What is known

    @property
    def missed(self) -> Point | None:
        """The least load that is shown to miss a level."""
        return min(self._with(MISSED), key=lambda one: one.load, default=None)

    @property
    def met(self) -> Point | None:
        """The greatest load below it that is shown to meet all levels."""
        below = math.inf if self.missed is None else self.missed.load
        found = [one for one in self._with(MET) if one.load < below]
        return max(found, key=lambda one: one.load, default=None)

    @property
    def is_monotone(self) -> bool:
        """Whether no load is met that is greater than one that is missed."""
        return not any(one.load > two.load for one in self._with(MET) for two in self._with(MISSED))

    @property
    def is_precise(self) -> bool:
        """Whether the interval reaches no further than the precision to either side."""
        if self.met is None or self.missed is None:
            return False
        low, high = self.met.load, self.missed.load
        return high - low <= self.precision * (high + low) or self._between(low, high) is None

    def _with(self, verdict: str) -> list[Point]:
        return [one for one in self.points.values() if one.verdict == verdict]

    # -- Searching

    def judged_first(self) -> Point | None:
        """Judge the least load, once; None if the budget does not reach so far."""
        return self._at(self.axis.low)

    def run(self, guess: float | None = None) -> None:
        """Search; `guess` is where the capacity may be."""
        first = self.judged_first()
        if first is None or first.verdict == MISSED:
            return
        self._rise(guess)
        for looks in (LOOKS, LOOKS + MORE[:1], LOOKS + MORE):
            self._narrow(looks)
            if self.is_precise or self.is_out_of_budget:
                return

    def _rise(self, guess: float | None) -> None:
        """Raise the load until a level is missed, or the range ends."""
        load = self.axis.low if guess is None else self.axis.near(guess)
        while self.missed is None and not self.is_out_of_budget:
            if load in self.points and load == self.axis.high:
                return
            self._at(load)
            beyond = max(load, self.axis.low) * _RISE
            load = self.axis.near(beyond if beyond > load else self.axis.high)

    def _narrow(self, looks: Sequence[int]) -> None:
        """Judge loads between what is met and what is missed, and again what is undecided."""
        while not self.is_precise and not self.is_out_of_budget:
            load = self._next(looks)
            if load is None:
                return
            self._at(load, looks)

    def _next(self, looks: Sequence[int]) -> float | None:
        """Return the load to judge next: in the widest gap, or one that more runs may decide."""
        low = self.met.load if self.met else self.axis.low
        if self.missed is None:
            return None
        high = self.missed.load
        open_ = sorted(one.load for one in self.points.values() if low < one.load < high)
        if self.met is None:
            open_ = sorted({self.axis.low, *open_})
        edges = [low, *open_, high]
        gaps = [(edges[1] / edges[0] if edges[0] > 0 else math.inf, edges[0], edges[1])]
        gaps += [(edges[-1] / edges[-2] if edges[-2] > 0 else math.inf, edges[-2], edges[-1])]
        for ratio, below, above in sorted(gaps, reverse=True):
            between = self._between(below, above)
            if between is not None and ratio > 1 + _FINE * self.precision:
                return between
        again = [load for load in open_ if self.points[load].runs < looks[-1]]
        return again[0] if again else None

    def _between(self, low: float, high: float) -> float | None:
        """Return a load between two, None if there is none."""
        middle = math.sqrt(low * high) if low > 0 else (low + high) / 2
        found = self.axis.near(middle)
        return found if low < found < high else None

    def _at(self, load: float, looks: Sequence[int] = LOOKS) -> Point | None:
        """Judge a load until it is decided, or the looks or the budget end."""
        point = self.points.get(load)
        for runs in looks:
            before = 0 if point is None else point.runs
            if runs <= before:
                continue
            if point is not None and point.verdict != UNDECIDED:
                break
            if self.spent + runs - before > self.budget:
                self.is_out_of_budget = True
                break
            point = self.points[load] = Point(load, runs, self.judge(load, runs))
            self.spent += runs - before
        return point


# -- On the twin

LOADS: Final = ("rate_per_s", "count")  # dimensions of what a program is asked to do
LOAD_SCALE: Final = "load_scale"  # a program's parameter: so many times all that it is asked to do
_BUSY: Final = ("cpu", "busy", "disk", "load")  # families that say what is busy
_LIGHT: Final = 0.02  # a lighter use of a resource says nothing of where it is full


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked: of which variants, along which load, with which further levels."""

    variants: Variants
    axis: Range
    slo: tuple[LevelText, ...] = ()
    precision: float = PRECISION
    budget: int = BUDGET

    def read(self, what_if: str | None, load: float | None = None, member: int = 0) -> Scenario:
        """Return a variant at a load, today's if none is given, with all that may be busy measured.

        With a fit each member of its ensemble is one server that may be this one.
        """
        settings = () if load is None else (self.axis.setting(load),)
        with blaming((self.axis,)):
            scenario = self.variants.read(what_if, settings, member)
        families = dict.fromkeys((*scenario.measure.families, *_BUSY))
        devices = dict.fromkeys((*scenario.measure.devices, *scenario.server.all("disk")))
        measure = replace(scenario.measure, families=tuple(families), devices=tuple(devices))
        return replace(scenario, measure=measure, slo=(*scenario.slo, *self.slo))


@dataclass(frozen=True, kw_only=True)
class Use:
    """How busy a resource is, in percent, and how many wait there or are served."""

    name: str
    busy_pct: float
    queue: float | None


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """The answer for one variant."""

    scenario: Scenario
    what_if: str | None
    axis: Range
    today: float | None
    search: Search
    points: tuple[Measured, ...]
    unfinished: Shortfall | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The greatest load shown to meet the levels and the least shown to miss one, if both."""
        met, missed = self.search.met, self.search.missed
        return None if met is None or missed is None else (met.load, missed.load)

    @property
    def value(self) -> float | None:
        """The load at which the levels just hold: the interval's middle; None if it has no end."""
        if self.interval is None:
            return None
        low, high = self.interval
        return self.axis.near(low) if self.axis.near((low + high) / 2) == high else (low + high) / 2

    @property
    def headroom(self) -> float | None:
        """Capacity over today's load, less one."""
        if self.value is None or not self.today:
            return None
        return self.value / self.today - 1

    @property
    def runs(self) -> int:
        """The runs that were finished, those of a load that was not judged any more as well."""
        return sum(len(one.replications) for one in self.points)

    @property
    def levels(self) -> tuple[Judged, ...]:
        """The levels that the least load beyond the capacity misses."""
        missed = self.search.missed
        return () if missed is None else tuple(one for one in missed.judged if one.is_missed)

    @property
    def uses(self) -> list[Use]:
        """The resources at the greatest load that meets the levels, else at the least, by use."""
        point = self.search.met or self.search.missed
        if point is None:
            return []
        found = self.measured(point.load)
        return uses_of({name: one.mean for name, one in found.metrics.items()})

    def measured(self, load: float) -> Measured:
        """Return what was measured at a load that was judged."""
        [found] = [one for one in self.points if one.point.values == (load,)]
        return found


def uses_of(figures: dict[str, float]) -> list[Use]:
    """Return how busy the CPUs and disks are by figures, the busiest first."""
    found = []
    if "cpu.busy_pct" in figures:
        found.append(Use(name="CPUs", busy_pct=figures["cpu.busy_pct"], queue=figures.get("load1")))
    for name, value in figures.items():
        if name.startswith("disk.") and name.endswith(".util_pct"):
            disk = name.removeprefix("disk.").removesuffix(".util_pct")
            queue = figures.get(f"disk.{disk}.avgqu_sz")
            found.append(Use(name=disk, busy_pct=value, queue=queue))
    return sorted(found, key=lambda one: -one.busy_pct)


def check_load(axis: Path) -> None:
    """Raise ScenarioError for a parameter that is no load."""
    parts = axis.path.split(".")
    is_load = axis.dim in LOADS or parts[-1] == LOAD_SCALE
    if parts[0] != "process" or not is_load:
        allowed = (
            "a program's rate, number or multiple: process.NAME.rate, .concurrency, .load_scale"
        )
        problem = "not a load: it says what the server is, not what it is asked to do"
        raise ScenarioError([Problem(axis.place, problem, axis.path, allowed)])


def find_capacity(question: Question, what_if: str | None, laboratory: Laboratory) -> Capacity:
    """Search one variant; an interrupted search has what it found, and says so."""
    today = question.read(what_if)
    levels = resolve(today.slo, today.measure)
    asked = Asked(question, what_if, levels, laboratory)
    search = Search(
        asked.judge, question.axis, precision=question.precision, budget=question.budget
    )
    unfinished = None
    try:
        search.judged_first()
        search.run(guess(asked, question.axis))
    except UnfinishedError as error:
        unfinished = error.shortfall
    value = next((one.value for one in today.parameters if one.path == question.axis.path), None)
    return Capacity(
        scenario=today,
        what_if=what_if,
        axis=question.axis,
        today=float(value) if isinstance(value, int | float) else None,
        search=search,
        points=tuple(asked.measured()),
        unfinished=unfinished,
    )


def guess(asked: "Asked", axis: Range) -> float | None:
    """Return where the busiest resource would be full, from its use at the least load."""
    done = asked.done.get(axis.low, [])
    if axis.dim != "rate_per_s" or not done:
        return None
    names = {name for run in done for name in run.metrics}
    means = {
        name: fmean(run.metrics[name] for run in done if name in run.metrics) for name in names
    }
    busiest = max((one.busy_pct / 100 for one in uses_of(means)), default=0.0)
    return axis.low / busiest if busiest > _LIGHT else None


@dataclass
class Asked:
    """The runs of one variant at all loads that were asked for."""

    question: Question
    what_if: str | None
    levels: tuple[Level, ...]
    laboratory: Laboratory
    done: dict[float, list[Replication]] = field(default_factory=dict)
    scenarios: dict[float, Scenario] = field(default_factory=dict)

    def judge(self, load: float, runs: int) -> list[Judged]:
        """Return the verdicts after so many runs at a load."""
        done = self.done.setdefault(load, [])
        trials = [self._trial(load, i) for i in range(len(done), runs)]
        try:
            done += self.laboratory.run(trials)
        except UnfinishedError as error:
            done += [one for one in error.done if one is not None]
            raise
        figures = [run.metrics for run in done[:runs]]
        times = [run.histograms for run in done[:runs]]
        return [judge(level, figures, times) for level in self.levels]

    def _trial(self, load: float, number: int) -> Trial:
        member = number if self.question.variants.fit is not None else 0
        scenario = self.scenarios.get(load)
        if scenario is None or member:
            scenario = self.question.read(self.what_if, load, member)
            self.scenarios.setdefault(load, scenario)
        sets = (*self.question.variants.sets, self.question.axis.setting(load))
        return trial_of(scenario, scenario.seed + number, sets=sets)

    def measured(self) -> list[Measured]:
        """Return what was measured at each load, the least first."""
        return [
            measured_point(self._point(load), runs)
            for load, runs in sorted(self.done.items())
            if runs
        ]

    def _point(self, load: float) -> StudyPoint:
        return StudyPoint(
            scenario=self.scenarios[load],
            what_if=self.what_if,
            values=(load,),
            settings=(self.question.axis.setting(load),),
            levels=self.levels,
        )
