"""Service levels: whether a server does what is asked of it, and how sure that is.

Models: a level of a quantile ("95 of 100 mails within a second") is one of transactions: of those
 of all runs together less than 5 % may take longer. A level of any other figure is one of its mean
 over runs, "in 90 % of runs" one of how often a run keeps it.
Verdicts: *met* and *missed* are said with 95 % on one side: of servers that are just on the level
 one in twenty is called met. In between is *undecided*; fewer than three runs decide nothing. A
 level of a figure that half of the runs have not, or more, has *no data*, and that is missed: a
 server that accepts nothing has no slow mail.
By hand: 5 runs of 1800 mails, of which 2 % took longer than the limit, in some runs 1 %, in others
 3 %: standard error 1 % / sqrt(5) = 0.45 %, times 2.13 (t, 4 degrees) is 1 %: 3 % at most, so that
 "95 of 100" is met. "< 12 in 90 % of runs" takes 29 runs that all keep it: 0.9^29 < 5 %.
Counterpart: ratio estimator of a cluster sample, the run being the cluster, since transactions of
 one run wait for each other (Cochran, Sampling Techniques, 3rd edition, 1977, chapter 6). It says
 too little where hardly any is beyond: then the binomial tail of transactions counts as well.
Who judges many levels, or one several times, and wants all to be right, asks for more than 95 %.
Invariants: a level's figure is one of the scenario's, its limit has the figure's dimension; no two
 levels of a scenario exclude each other.
Left out: levels of two figures together, error budgets over time.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final

from sim.histogram import Histogram
from sim.observation import MeasureSpec, Quantile
from sim.scenario.levels import EXAMPLES, LevelText
from sim.study.intervals import (
    ONE_SIDED,
    RUNS_MIN,
    binomial_share,
    mean_interval,
    t_quantile,
)
from sim.study.metrics import quantiles_of, units_of
from sim.toml.errors import Problem, ScenarioError, unknown
from sim.units import NS_PER_MS, NS_PER_S, NS_PER_US, UnitError, given_text, parse_quantity

MET: Final = "met"
MISSED: Final = "missed"
UNDECIDED: Final = "undecided"
NO_DATA: Final = "no data"
RUNS: Final = "runs"
TRANSACTIONS: Final = "transactions"

# unit of a figure -> dimension, and how many of its canonical unit that is
_DIMENSIONS: Final[Mapping[str, tuple[str, float]]] = {
    "s": ("time_ns", NS_PER_S),
    "ms": ("time_ns", NS_PER_MS),
    "us": ("time_ns", NS_PER_US),
    "B": ("bytes", 1),
    "MiB": ("bytes", 2**20),
    "B/s": ("bytes_per_s", 1),
    "/s": ("rate_per_s", 1),
    "%": ("percent", 1),
}
_WORDS: Final = re.compile(
    r"\s*(?P<relation><=|>=|<|>|=)\s*(?P<value>.*?)"
    r"(?:\s+in\s+(?P<share>[0-9]+(?:\.[0-9]+)?)\s*%\s+of\s+runs)?\s*"
)
_BELOW: Final = ("<", "<=")
_ABOVE: Final = (">", ">=")


@dataclass(frozen=True, kw_only=True)
class Level:
    """A level that can be judged; `limit` is in the figure's unit, `share` one of runs."""

    figure: str
    relation: str
    limit: float
    share: float | None
    unit: str
    quantile: Quantile | None
    text: str

    def holds(self, value: float) -> bool:
        """Return whether a run with that figure keeps it."""
        return {
            "<": value < self.limit,
            "<=": value <= self.limit,
            ">": value > self.limit,
            ">=": value >= self.limit,
            "=": value == self.limit,
        }[self.relation]


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A level and its verdict; `seen` is the mean or the share that decided, within `interval`.

    The unit of both is the figure's, or % of what `of` says: runs that keep the level, transactions
    beyond it. Of the runs `asked`, `runs` had data.
    """

    level: Level
    verdict: str
    runs: int
    asked: int
    seen: float | None = None
    interval: tuple[float, float] | None = None
    of: str = ""

    @property
    def is_missed(self) -> bool:
        """Whether it is missed; no data is."""
        return self.verdict in (MISSED, NO_DATA)


# -- Reading


def resolve(given: Sequence[LevelText], measure: MeasureSpec) -> tuple[Level, ...]:
    """Return the levels of a scenario's figures; raise ScenarioError with all that is wrong."""
    return resolve_among(given, units_of(measure), quantiles_of(measure))


def resolve_among(
    given: Sequence[LevelText], units: Mapping[str, str], quantiles: Mapping[str, Quantile]
) -> tuple[Level, ...]:
    """Return the levels of figures with these units; raise ScenarioError."""
    problems: list[Problem] = []
    found: list[tuple[LevelText, Level]] = []
    for one in given:
        if one.figure not in units:
            problems.append(unknown(one.key, "figure", one.figure, units))
            continue
        level = _level(one, units[one.figure], quantiles.get(one.figure))
        if isinstance(level, Problem):
            problems.append(level)
            continue
        for _, other in found:
            if _exclude(level, other):
                message = f"no server keeps this level and '{other.text}'"
                words = given_text(one.words.strip())
                problems.append(Problem(one.at, message, words, f"what leaves '{other.text}' room"))
        found.append((one, level))
    if problems:
        raise ScenarioError(problems)
    return tuple(level for _, level in found)


def _level(given: LevelText, unit: str, quantile: Quantile | None) -> Level | Problem:
    words = _WORDS.fullmatch(given.words)
    told = given_text(given.words)
    if words is None:
        return Problem(given.at, f"slo.{given.figure}: not a level", told, EXAMPLES)
    try:
        limit = in_unit(words["value"], unit)
    except UnitError as error:
        message = f"slo.{given.figure}: {error.problem}"
        return Problem(given.at, message, error.given, error.allowed)
    share = None if words["share"] is None else float(words["share"]) / 100
    if share is not None and not 0 < share < 1:
        message = f"slo.{given.figure}: a share of runs is more than 0 % and less than 100 %"
        return Problem(given.at, message, f"{words['share']} %", "such as 95 %")
    relation = words["relation"]
    is_below_all = limit <= 0 if relation == "<" else limit < 0 and relation not in _ABOVE
    if unit in _DIMENSIONS and is_below_all:
        message = f"slo.{given.figure}: no server keeps this level: the figure is never below 0"
        return Problem(given.at, message, told, f"a limit above 0, such as {EXAMPLES}")
    if share is None and relation == "=":
        message = f"slo.{given.figure}: no mean is ever known to be equal to a value"
        return Problem(given.at, message, told, '"= 0 in 95 % of runs", "< 1"')
    return Level(
        figure=given.figure,
        relation=relation,
        limit=limit,
        share=share,
        unit=unit,
        quantile=quantile if share is None else None,
        text=f"{given.figure} {' '.join(given.words.split())}",
    )


def in_unit(text: str, unit: str) -> float:
    """Return a value in a figure's unit; raise UnitError."""
    if unit not in _DIMENSIONS:
        own = text.removesuffix(unit).rstrip() if unit else text
        return float(parse_quantity(own, "number"))
    dim, factor = _DIMENSIONS[unit]
    value = parse_quantity(text, dim)
    assert isinstance(value, int | float)
    return value / factor


def _exclude(one: Level, other: Level) -> bool:
    """Return whether no server can keep both."""
    if one.figure != other.figure or (one.share is None) != (other.share is None):
        return False
    if one.share is not None and other.share is not None and one.share + other.share <= 1:
        return False
    low, high = max(_low(one), _low(other)), min(_high(one), _high(other))
    is_open = any(level.relation in ("<", ">") for level in (one, other))
    return low > high or (low == high and is_open)


def _low(level: Level) -> float:
    return -math.inf if level.relation in _BELOW else level.limit


def _high(level: Level) -> float:
    return math.inf if level.relation in _ABOVE else level.limit


# -- Judging


def judge(
    level: Level,
    metrics: Sequence[Mapping[str, float]],
    histograms: Sequence[Mapping[str, Histogram]],
    sure: float = ONE_SIDED,
) -> Judged:
    """Return the verdict of a level over runs: their figures, and their times by mark.

    `sure` is how sure, on one side, *met* and *missed* are.
    """
    if level.quantile is not None:
        return _of_transactions(level, level.quantile, histograms, sure)
    values = [run[level.figure] for run in metrics if level.figure in run]
    if 2 * len(values) <= len(metrics):
        return Judged(level=level, verdict=NO_DATA, runs=len(values), asked=len(metrics))
    if level.share is not None:
        kept = sum(map(level.holds, values))
        return _of_runs(level, level.share, kept, len(metrics), sure)
    interval = mean_interval(values, sure)
    verdict = UNDECIDED
    if interval is not None and all(map(level.holds, interval)):
        verdict = MET
    elif interval is not None and not any(map(level.holds, interval)):
        verdict = MISSED
    return Judged(
        level=level,
        verdict=verdict,
        runs=len(values),
        asked=len(metrics),
        seen=fmean(values),
        interval=interval,
    )


def overall(judged: Sequence[Judged]) -> str:
    """Return met if all levels are, missed if one is, else undecided."""
    if any(one.is_missed for one in judged):
        return MISSED
    return MET if all(one.verdict == MET for one in judged) else UNDECIDED


def _of_runs(level: Level, share: float, kept: int, runs: int, sure: float) -> Judged:
    """Judge how often runs keep it; a run without the figure does not."""
    verdict = UNDECIDED
    if runs >= RUNS_MIN and _at_least(kept, runs, share) <= 1 - sure:
        verdict = MET
    elif runs >= RUNS_MIN and binomial_share(kept, runs, share) <= 1 - sure:
        verdict = MISSED
    return Judged(
        level=level, verdict=verdict, runs=runs, asked=runs, seen=100 * kept / runs, of=RUNS
    )


def _at_least(number: int, trials: int, chance: float) -> float:
    """Return how often at least so many of the trials succeed."""
    return binomial_share(trials - number, trials, 1 - chance)


def _of_transactions(
    level: Level, quantile: Quantile, histograms: Sequence[Mapping[str, Histogram]], sure: float
) -> Judged:
    """Judge the share of all transactions of all runs that are beyond the limit."""
    found = [run[quantile.mark] for run in histograms if quantile.mark in run]
    times = [one for one in found if one.total]
    if 2 * len(times) <= len(histograms):
        return Judged(level=level, verdict=NO_DATA, runs=len(times), asked=len(histograms))
    totals = [one.total for one in times]
    beyond = [one.beyond(level.limit * quantile.per) for one in times]
    total = sum(totals)
    share, allowed = sum(beyond) / total, 1 - quantile.share
    judged = Judged(
        level=level,
        verdict=UNDECIDED,
        runs=len(times),
        asked=len(histograms),
        seen=100 * share,
        of=TRANSACTIONS,
    )
    if len(times) < RUNS_MIN:
        return judged
    low, high = _share_interval(beyond, totals, sure)
    few = binomial_share(math.ceil(sum(beyond)), total, allowed)
    many = _at_least(math.floor(sum(beyond)), total, allowed)
    verdict = UNDECIDED
    if high < allowed and few <= 1 - sure:
        verdict = MET if level.relation in _BELOW else MISSED
    elif low > allowed and many <= 1 - sure:
        verdict = MISSED if level.relation in _BELOW else MET
    return replace(judged, verdict=verdict, interval=(100 * low, 100 * high))


def _share_interval(
    beyond: Sequence[float], totals: Sequence[int], sure: float
) -> tuple[float, float]:
    """Return the interval of a share of all runs' transactions, each run being a cluster.

    Each of its ends is so `sure`. The interval is one of the log-odds: bad runs are few and very
    bad, which makes shares skewed.
    """
    total, runs = sum(totals), len(totals)
    share = sum(beyond) / total
    if share in (0, 1):
        return share, share
    off = math.fsum((b - share * n) ** 2 for b, n in zip(beyond, totals, strict=True))
    error = math.sqrt(off * runs / (runs - 1)) / total
    half = t_quantile(sure, runs - 1) * error / (share * (1 - share))
    odds = share / (1 - share)
    low, high = (odds * math.exp(max(-700.0, min(700.0, by))) for by in (-half, half))
    return low / (1 + low), high / (1 + high)
