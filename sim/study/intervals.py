"""What a few runs say of all runs: intervals, and which of many changes are more than chance.

Models: Student's interval of a mean; the interval of a median between two order statistics, which
 holds for every distribution; the exact binomial tail; Holm's procedure for the figures of one
 table, of which each alone would be named by chance once in ten times.
By hand: five runs, standard deviation s: the mean's 90 % interval is 2.13 s / sqrt(5) = 0.95 s to
 either side; the median's is from the least to the greatest run, which holds it in
 1 - 2 / 2^5 = 94 of a hundred cases; of four runs that would be 88, so four have none.
Linux counterpart: none. The t distribution for whole degrees of freedom: Abramowitz and Stegun,
 Handbook of Mathematical Functions (1964), 26.7.3 and 26.7.4. Holm, Scandinavian Journal of
 Statistics 6 (1979), 65.
Invariants: fewer than `RUNS_MIN` runs say nothing of others: their interval is None. Runs that are
 all alike have an interval without width. Nothing here is nan.
Left out: bootstrap; intervals of a ratio; degrees of freedom that are no whole number.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import fmean
from typing import Final

CONFIDENCE: Final = 0.90  # of every two-sided interval; its two sides are one-sided 95 %
ONE_SIDED: Final = 1 - (1 - CONFIDENCE) / 2
RUNS_MIN: Final = 3

Interval = tuple[float, float]


def t_share(t: float, freedom: int) -> float:
    """Return the share of Student's distribution that lies below t."""
    theta = math.atan2(t, math.sqrt(freedom))
    cos_2 = math.cos(theta) ** 2
    odd = freedom % 2
    # The sum has a term for every second degree of freedom, each the last one times a ratio.
    term = math.sin(theta) * (math.cos(theta) if odd else 1.0)
    total = 0.0
    for n in range(2 + odd, freedom + 1, 2):
        total += term
        term *= cos_2 * (n - 1) / n
    between = 2 / math.pi * (theta + total) if odd else total
    return 0.5 + between / 2


@lru_cache(maxsize=4096)
def t_quantile(share: float, freedom: int) -> float:
    """Return the t below which that share lies; 0 < share < 1."""
    if share < 0.5:
        return -t_quantile(1 - share, freedom)
    low, high = 0.0, 1.0
    while t_share(high, freedom) < share:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if t_share(middle, freedom) < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def deviation(values: Sequence[float]) -> float:
    """Return the standard deviation that a sample of at least two shows; exactly 0 of equals."""
    if min(values) == max(values):
        return 0.0
    centre = fmean(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1))


def mean_interval(values: Sequence[float], one_sided: float = ONE_SIDED) -> Interval | None:
    """Return the interval of the mean of all runs, of 90 % as it is; None for too few.

    `one_sided` is how sure each of its ends is.
    """
    if len(values) < RUNS_MIN:
        return None
    half = t_quantile(one_sided, len(values) - 1) * deviation(values) / math.sqrt(len(values))
    centre = fmean(values)
    return centre - half, centre + half


@lru_cache(maxsize=4096)
def _median_rank(runs: int) -> int:
    """Return how many runs lie on either side of the median's interval; -1: there is none."""
    outside, term, rank = 0, 1, -1
    # Twice the binomial tail of one half, in whole numbers: outside / 2^runs.
    while 20 * (outside + term) <= 2**runs:
        rank += 1
        outside += term
        term = term * (runs - rank) // (rank + 1)
    return rank


def median_interval(values: Sequence[float]) -> Interval | None:
    """Return two runs between which the median of all runs lies with at least 90 %; None if none.

    That takes five runs.
    """
    rank = _median_rank(len(values))
    if rank < 0:
        return None
    ordered = sorted(values)
    return ordered[rank], ordered[-1 - rank]


def paired_chance(differences: Sequence[float]) -> float:
    """Return how often chance alone makes a mean difference at least this large; 1 for too few."""
    if len(differences) < RUNS_MIN:
        return 1.0
    centre, spread = fmean(differences), deviation(differences)
    if spread == 0:
        return 0.0 if centre else 1.0
    t = centre / spread * math.sqrt(len(differences))
    return 2 * t_share(-abs(t), len(differences) - 1)


def holm(chances: Mapping[str, float], error: float = 1 - CONFIDENCE) -> list[str]:
    """Return the names that stand, in their order, so that one falsely stands once in 1 / error."""
    standing = set()
    for left, name in zip(
        range(len(chances), 0, -1), sorted(chances, key=chances.__getitem__), strict=True
    ):
        if chances[name] > error / left:
            break
        standing.add(name)
    return [name for name in chances if name in standing]


def binomial_share(most: int, trials: int, chance: float) -> float:
    """Return how often at most `most` of the trials succeed; 0 < chance < 1."""
    if most < 0:
        return 0.0
    if most >= trials:
        return 1.0
    if most > trials * chance:
        # The short tail is the other one, and it is summed without cancelling.
        return 1.0 - binomial_share(trials - most - 1, trials, 1 - chance)
    log = math.lgamma(trials + 1) - math.lgamma(most + 1) - math.lgamma(trials - most + 1)
    term = math.exp(log + most * math.log(chance) + (trials - most) * math.log1p(-chance))
    total = 0.0
    for k in range(most, -1, -1):
        total += term
        if term <= 1e-18 * total:
            break
        term *= k / (trials - k + 1) * (1 - chance) / chance
    return min(1.0, total)
