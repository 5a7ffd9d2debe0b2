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
from dataclasses import dataclass, field
from typing import Final, Protocol

from sim.study.levels import MET, MISSED, NO_DATA, UNDECIDED, Judged

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
        verdicts = {one.verdict for one in self.judged}
        if verdicts & {MISSED, NO_DATA}:
            return MISSED
        return MET if verdicts == {MET} else UNDECIDED


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

    def run(self, guess: float | None = None) -> None:
        """Search; `guess` is where the capacity may be."""
        first = self._at(self.axis.low)
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
            self.spent += runs - before
            point = self.points[load] = Point(load, runs, self.judge(load, runs))
        return point
