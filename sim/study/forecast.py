"""Forecast: the month in which growth breaks each service level.

Models: a load that grows by a share every month, and for each level the load at which it just holds
 (sim.study.capacity, one level at a time, on the runs of all).
By hand: 45/s that grow by 3 to 5 % a month are 45 * 1.05^m at the most; a level that is shown to
 hold at 82/s and to fail at 88/s breaks after ln(82 / 45) / ln 1.05 = 12.3 months at the earliest,
 in month 13, and in month ceil(ln(88 / 45) / ln 1.03) = 23 at the latest.
Theory. Two things are not known: the growth, of which only a range is given, all rates in it being
 equally likely, and the same in every month; and the capacity, of which [greatest load shown to
 meet, least shown to miss] holds the true one in nine studies of ten. The interval of the month
 goes from the worst of both (fastest growth, least capacity) to the best of both. If the growth is
 in its range, it holds the month at least where the capacity's holds the capacity, so in nine of
 ten studies; it is wider than a 90 % interval of both together would be. The month in its middle is
 that of the median growth and of the capacity's middle.
Counterpart: Menasce and Almeida, Capacity Planning for Web Services (2002), chapter 9: forecasting
 workload, then saturation; here the inverse of compound growth instead of a regression.
Invariants: month 0 is today, with the scenario's own load. A level breaks in the first whole month
 whose load is beyond what it bears. No load beyond that of the last month is simulated.
Left out: growth that is read from a history; seasons; changes of what a transaction demands.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sim.scenario.levels import LevelText
from sim.scenario.spec import Scenario
from sim.study.capacity import (
    BUDGET,
    PRECISION,
    Asked,
    Question,
    Search,
    check_load,
    guess,
)
from sim.study.laboratory import Laboratory, UnfinishedError
from sim.study.levels import Judged, Level, resolve
from sim.study.outcome import Shortfall
from sim.study.over import Range, read_path
from sim.study.points import Measured, Variants
from sim.toml.errors import Place, Problem, ScenarioError
from sim.units import INTEGER

MONTHS: Final = 36
MONTHS_MAX: Final = 600
GROWTHS: Final = "'3..5 %/month', '4 %/month', '30..60 %/year'"
BREAKS, HOLDS, TODAY, OPEN = "breaks", "holds", "missed today", "undecided"
_PERIODS: Final = {"month": 1, "year": 12}
_TIMES_MAX: Final = 1e6  # today's load: more can only be a slip
_SLIP: Final = 1e-9  # of a month, reckoned in binary fractions
_GROWTH: Final = re.compile(
    r"\s*(?P<low>[+-]?[0-9]+(?:\.[0-9]+)?)\s*%?\s*"
    r"(?:\.\.\s*(?P<high>[+-]?[0-9]+(?:\.[0-9]+)?)\s*)?"
    r"%\s*(?:/|a|per)\s*(?P<period>[a-z]+)\s*"
)


@dataclass(frozen=True)
class Growth:
    """By what share a load grows in a month, at the least and at the most."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """The median, all between being equally likely."""
        return (self.low + self.high) / 2

    def load(self, today: float, month: float, share: float) -> float:
        """Return the load in a month, with a growth by that share."""
        return float(today * (1 + share) ** month)


def read_growth(text: str) -> Growth:
    """Return what --growth says, by the month; raise ScenarioError."""
    place = Place(f"--growth {text!r}", 0, 1, len(text), text)
    match = _GROWTH.fullmatch(text)
    if match is None or match["period"] not in _PERIODS:
        raise ScenarioError([Problem(place, "not a growth", "", GROWTHS)])
    ends = [float(match["low"]), float(match["high"] or match["low"])]
    if ends[0] < 0 or ends[1] <= 0:
        problem = "a load that does not grow breaks nothing: 0 % at the least, and more at the most"
        raise ScenarioError([Problem(place, problem, "", GROWTHS)])
    if ends[0] > ends[1]:
        raise ScenarioError([Problem(place, "LOW must not be above HIGH", "", GROWTHS)])
    low, high = ((1 + end / 100) ** (1 / _PERIODS[match["period"]]) - 1 for end in ends)
    return Growth(low, high)


def months_until(load: float, today: float, share: float) -> float:
    """Return after how many months a load is reached; inf if it never is."""
    if load <= today:
        return 0.0
    return math.log(load / today) / math.log1p(share) if share > 0 else math.inf


def first_beyond(load: float, today: float, share: float) -> float:
    """Return the first whole month whose load is beyond that which is still borne."""
    months = months_until(load, today, share)
    return math.floor(months + _SLIP) + 1 if math.isfinite(months) else math.inf


def first_at(load: float, today: float, share: float) -> float:
    """Return the first whole month whose load is at least that which is borne no more."""
    months = months_until(load, today, share)
    return math.ceil(months - _SLIP) if math.isfinite(months) else math.inf


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What is asked: when which load of a variant breaks its levels."""

    variants: Variants
    what_if: str | None
    load: str  # PATH
    growth: Growth
    months: int = MONTHS
    slo: tuple[LevelText, ...] = ()
    precision: float = PRECISION
    budget: int = BUDGET

    def question(self) -> Question:
        """Return what capacity is asked: loads from today's to the greatest of the last month.

        Raise ScenarioError where there is no load today, or none so great can be.
        """
        scenario = self.variants.read(self.what_if)
        path = read_path(self.load, scenario, "--load")
        check_load(path)
        [today] = [one.value for one in scenario.parameters if one.path == path.path]
        if not isinstance(today, int | float) or isinstance(today, bool) or today <= 0:
            given = "none" if today is None else path.text(today)
            problem = "today's load must be above 0: what grows from nothing stays nothing"
            allowed = f"--set '{path.path}=VALUE'"
            raise ScenarioError([Problem(path.place, problem, given, allowed)])
        if self.months * math.log1p(self.growth.high) > math.log(_TIMES_MAX):
            problem = (
                f"in {self.months} months that is more than {_TIMES_MAX:,.0f} times today's load"
            )
            raise ScenarioError([Problem(path.place, problem, "", "less growth, fewer --months")])
        most = self.growth.load(today, self.months, self.growth.high)
        axis = Range(
            path=path.path,
            dim=path.dim,
            place=path.place,
            spec="",
            low=today,
            high=math.ceil(most) if path.dim in INTEGER else most,
        )
        question = Question(
            variants=self.variants,
            axis=axis,
            slo=self.slo,
            precision=self.precision,
            budget=self.budget,
        )
        question.read(self.what_if, axis.high)  # what cannot be is told before anything runs
        return question


@dataclass(frozen=True, kw_only=True)
class Broken:
    """A level, what it bears, and when growth breaks it."""

    level: Level
    search: Search
    axis: Range
    growth: Growth
    months: int

    @property
    def state(self) -> str:
        """Whether it breaks within the months, holds so long, is missed today, or is undecided."""
        met, missed = self.search.met, self.search.missed
        if missed is not None and missed.load == self.axis.low:
            return TODAY
        if missed is not None:
            return BREAKS
        return HOLDS if met is not None and met.load == self.axis.high else OPEN

    @property
    def month_lo(self) -> int | None:
        """The first month in which it may be broken; None if it holds to the end."""
        met = self.search.met
        if self.state in (TODAY, HOLDS):
            return 0 if self.state == TODAY else None
        if met is None:
            return 0
        return self._within(first_beyond(met.load, self.axis.low, self.growth.high))

    @property
    def month_hi(self) -> int | None:
        """The month in which it is broken at the latest; None if that is after the last."""
        missed = self.search.missed
        if missed is None:
            return None
        return self._within(first_at(missed.load, self.axis.low, self.growth.low))

    @property
    def month(self) -> int | None:
        """The month at the middle of growth and capacity; None if that is after the last."""
        met, missed = self.search.met, self.search.missed
        if missed is None or self.state == TODAY:
            return 0 if missed is not None else None
        low = self.axis.low if met is None else met.load
        return self._within(first_at((low + missed.load) / 2, self.axis.low, self.growth.middle))

    def _within(self, month: float) -> int | None:
        return int(month) if month <= self.months else None


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The answer: each level, and the runs that say so."""

    scenario: Scenario
    what_if: str | None
    axis: Range
    growth: Growth
    months: int
    levels: tuple[Broken, ...]
    points: tuple[Measured, ...]
    spent: int
    unfinished: Shortfall | None = None

    @property
    def today(self) -> float:
        """The load of month 0."""
        return float(self.axis.low)


def forecast(ask: Ask, laboratory: Laboratory) -> Forecast:
    """Search the load of each level, one after the other; an interrupted forecast says so."""
    question = ask.question()
    today = question.read(ask.what_if)
    levels = resolve(today.slo, today.measure)
    asked = Asked(question, ask.what_if, levels, laboratory)
    found = [
        Broken(
            level=level,
            search=Search(_Alone(asked, number).judge, question.axis, ask.precision, ask.budget),
            axis=question.axis,
            growth=ask.growth,
            months=ask.months,
        )
        for number, level in enumerate(levels)
    ]
    unfinished = None
    try:
        for one in found:
            one.search.judged_first()
            one.search.run(guess(asked, question.axis))
    except UnfinishedError as error:
        unfinished = error.shortfall
    return Forecast(
        scenario=today,
        what_if=ask.what_if,
        axis=question.axis,
        growth=ask.growth,
        months=ask.months,
        levels=tuple(found),
        points=tuple(asked.measured()),
        spent=sum(len(runs) for runs in asked.done.values()),
        unfinished=unfinished,
    )


@dataclass(frozen=True)
class _Alone:
    """One level of several that are judged on the same runs."""

    asked: Asked
    number: int

    def judge(self, load: float, runs: int) -> Sequence[Judged]:
        """Return its verdict after so many runs at a load."""
        return [self.asked.judge(load, runs)[self.number]]
