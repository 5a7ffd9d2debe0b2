"""Queues without a kernel whose exact answers are known: what statements of studies are tried on.

Models: M/G/1 with processor sharing, whose mean time depends on the mean of the service alone
(Kleinrock, Queueing Systems 2, 1976, 4.4): s / (1 - load); machine repair, N machines that break
after z and one who mends each in s (Lazowska and others, Quantitative System Performance, 1984, 6);
who waits in any queue of one server, by Lindley's recursion.
"""

import random
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

import numpy as np

Draw = Callable[[random.Random], float]

# Services of mean 1: none, some, and much spread (squared coefficient of variation 0, 1, 4).
SERVICES: dict[str, Draw] = {
    "constant": lambda _rng: 1.0,
    "exponential": lambda rng: rng.expovariate(1.0),
    "hyperexponential": lambda rng: rng.expovariate(0.2254 if rng.random() < 0.1127 else 1.7746),
}


def shared_processor(rng: random.Random, service: Draw, load: float, customers: int) -> float:
    """Return the mean time of customers in M/G/1-PS; the first fifth, from empty on, is cut."""
    now = attained = 0.0  # who came first of all and is still there would have attained so much
    present: list[tuple[float, int, float]] = []  # it ends at that attained service; number; since
    arrival = rng.expovariate(load)
    number = done = 0
    total = 0.0
    while done < customers:
        rest = (present[0][0] - attained) * len(present) if present else float("inf")
        if now + rest < arrival:
            now += rest
            attained, which, since = heappop(present)
            if which >= customers // 5:
                total += now - since
                done += 1
            continue
        attained += (arrival - now) / len(present) if present else 0.0
        now = arrival
        heappush(present, (attained + service(rng), number, now))
        number += 1
        arrival = now + rng.expovariate(load)
    return total / done


def machine_repair(machines: int, think: float) -> tuple[list[float], float]:
    """Return the shares of time with 0, 1, ... machines broken (service 1), and the mean time."""
    weights = [1.0]
    for broken in range(machines):
        weights.append(weights[-1] * (machines - broken) / think)
    shares = [weight / sum(weights) for weight in weights]
    return shares, machines / (1 - shares[0]) - think


def repaired(rng: random.Random, machines: int, think: float, repairs: int) -> float:
    """Return the mean time from break to mended, from a stationary start on (Little's law)."""
    shares, _mean = machine_repair(machines, think)
    [broken] = rng.choices(range(machines + 1), shares)
    area, done = 0.0, 0
    while done < repairs:
        breaks, mends = (machines - broken) / think, float(broken > 0)
        area += broken * rng.expovariate(breaks + mends)
        if rng.random() * (breaks + mends) < mends:
            broken -= 1
            done += 1
        else:
            broken += 1
    return area / done


def waits(gaps: np.ndarray[Any, Any], services: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return waiting times (Lindley's recursion) of rows of customers, first in first out."""
    steps = services[:, :-1] - gaps[:, 1:]
    sums = np.concatenate([np.zeros((len(steps), 1)), np.cumsum(steps, axis=1)], axis=1)
    return np.asarray(sums - np.minimum.accumulate(np.minimum(sums, 0), axis=1))
