"""How many replications a wanted precision takes: looks that double, until the mean is known.

Models: a sequential study. After 10, 20, 40, ... runs one looks whether the 90 % interval of the
mean reaches no further than the wanted share of it to either side.
By hand: runs that scatter by a share c of their mean know it to 1.65 c / sqrt(n): for 5 % of
 c = 0.2 that is n = 43, so the look after 80 finds it.
Counterpart: Chow and Robbins, Annals of Mathematical Statistics 36 (1965), 457, with the looks
doubled: fixed-width intervals.
Invariants: who looks often stops where the runs by chance lie near each other, and the interval of
 that look holds the mean in fewer than ninety of a hundred studies. Therefore a study that stopped
 because it was precise states the width that was asked for, not the narrower one that it saw. One
 that did not get there states what it has. Runs before a look are runs of the next one.
Left out: doing the runs (sim.study.points); several figures at once; a precision of differences.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from sim.study.intervals import Interval, mean_interval

FIRST: Final = 10
RUNS_MAX: Final = 160


@dataclass(frozen=True)
class Precise:
    """What a look found: whether the mean is known well enough, and the interval to be stated."""

    reached: bool
    interval: Interval


def looks(runs_max: int) -> Iterator[int]:
    """Yield the numbers of runs after which to look; the greatest allowed is the last."""
    runs = FIRST
    while runs < runs_max:
        yield runs
        runs *= 2
    yield runs_max


def look(values: Sequence[float], share: float) -> Precise | None:
    """Return what so many runs say of the mean; None if they are too few to say anything."""
    interval = mean_interval(values)
    if interval is None:
        return None
    mean, wanted = fmean(values), share * abs(fmean(values))
    reached = interval[1] - mean <= wanted
    stated = (mean - wanted, mean + wanted) if reached else interval
    return Precise(reached, stated)
