"""The laws, as arithmetic on numbers.

Models: operational analysis, as the package's opening states it.
Linux counterpart: none.
Invariants: no function knows where its numbers come from; shares are 0 to 1 here, not percent.
Left out: everything stochastic.
"""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

# CPUs that machines are sold with, up to where one waiter is lost in two printed decimals.
CPU_COUNTS: Final = (1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 48, 64)
WAITERS_MAX: Final = 16
USER_HZ: Final = 100


def requests_in_system(rate_per_s: float, response_ms: float) -> float:
    """Return N = X R."""
    return rate_per_s * response_ms / 1000


def service_ms(utilisation: float, rate_per_s: float) -> float:
    """Return S = U / X in ms; 0 without requests."""
    return 1000 * utilisation / rate_per_s if rate_per_s else 0.0


def demand_ms(utilisation: float, servers: int, throughput_per_s: float) -> float:
    """Return D = c U / X in ms."""
    return 1000 * utilisation * servers / throughput_per_s


def capacity_per_s(utilisation: float, throughput_per_s: float) -> float:
    """Return the throughput at which a resource would be full: X / U = c / D."""
    return throughput_per_s / utilisation if utilisation else math.inf


def population_bound_per_s(customers: float, demands_ms: Sequence[float], think_s: float) -> float:
    """Return N / (sum D + Z): the throughput of customers that never wait for each other."""
    cycle_s = sum(demands_ms) / 1000 + think_s
    return customers / cycle_s if cycle_s else math.inf


def iowait_ratio(iowait: float, utilisation: float, busy: float) -> float:
    """Return iowait / (U (1 - busy)): the share of CPUs on which somebody waits."""
    return iowait / (utilisation * (1 - busy))


def expected_ratio(cpus: int, waiters: int) -> float:
    """Return the share of CPUs with at least one of n waiters, each on any CPU."""
    return 1 - (1 - 1 / cpus) ** waiters


def waiters_on(cpus: int, ratio: float) -> float:
    """Return the (fractional) number of waiters that gives a ratio; inf from 1 on."""
    if cpus == 1 or ratio >= 1:
        return math.inf
    return math.log(1 - ratio) / math.log(1 - 1 / cpus)


class Placing(NamedTuple):
    """So many CPUs with so many waiters, and the ratio that they would show."""

    cpus: int
    waiters: int
    ratio: float


def placings(ratio: float, tolerance: float) -> list[Placing]:
    """Return what would show a ratio within a relative tolerance: fewest waiters first."""
    found = [
        Placing(cpus, waiters, expected)
        for cpus in CPU_COUNTS
        for waiters in range(1, WAITERS_MAX + 1)
        if abs((expected := expected_ratio(cpus, waiters)) - ratio) <= tolerance * ratio
    ]
    return sorted(found, key=lambda p: (p.waiters, abs(p.ratio - ratio)))


class Steps(NamedTuple):
    """CPUs by the steps of idle time: how many of how many intervals stand on a step."""

    cpus: int
    hits: int
    intervals: int


def idle_steps(idle: Sequence[float], interval_s: float, *, ticks: int = 3) -> Steps | None:
    """Return the CPUs whose number explains steps in idle time; None if chance does as well.

    A step is k/c with 0 < k < c (wholly idle or busy says nothing), met within so many ticks of
    1/100 s. The fewest CPUs that explain most win, if chance would do so once in 1000 times.
    """
    best: Steps | None = None
    for cpus in CPU_COUNTS[1:]:
        width = ticks / (USER_HZ * interval_s * cpus)
        hits = sum(0.5 / cpus < x < 1 - 0.5 / cpus and _off_step(x, cpus) <= width for x in idle)
        chance = min(2 * width * (cpus - 1), 1.0)
        if _at_least(hits, len(idle), chance) < 0.001 and (best is None or hits > best.hits):
            best = Steps(cpus, hits, len(idle))
    return best


def _off_step(share: float, cpus: int) -> float:
    return abs(share - round(share * cpus) / cpus)


def _at_least(hits: int, trials: int, chance: float) -> float:
    """Return the probability of that many hits or more (binomial)."""
    return sum(
        math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k)
        for k in range(hits, trials + 1)
    )
