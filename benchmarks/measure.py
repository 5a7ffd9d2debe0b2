"""Measure several things in turn, so that whatever slows the machine slows all of them.

A *case* is a function that does a known amount of work and returns it in units; its rate is units
per second of CPU time (all cases are one thread; wall time would measure the neighbours as well).
Cases of a group take turns, round after round. The best rate of a case is the least disturbed one;
the ratio of two cases is the median of their ratios round by round.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

Case = Callable[[], float]


@dataclass(frozen=True)
class Row:
    """One line of the result: a rate, or with a baseline also the ratio to it."""

    group: str
    case: str
    value: float
    unit: str
    ratio: float | None = None  # to the group's first case
    spread: float | None = None  # of the rounds: (highest - lowest) / median

    def to_json(self) -> dict[str, object]:
        """Return the row as what json can write."""
        return asdict(self)


def measure(group: str, unit: str, cases: Mapping[str, Case], rounds: int) -> list[Row]:
    """Run all cases in turn, ``rounds`` times; the first is the baseline of the ratios."""
    rates: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            start = time.process_time()
            units = case()
            rates[name].append(units / (time.process_time() - start))
    baseline = rates[next(iter(cases))]
    return [_row(group, name, unit, found, baseline) for name, found in rates.items()]


def _row(group: str, name: str, unit: str, rates: list[float], baseline: list[float]) -> Row:
    ratio = statistics.median(a / b for a, b in zip(rates, baseline, strict=True))
    spread = (max(rates) - min(rates)) / statistics.median(rates)
    return Row(group, name, max(rates), unit, ratio, spread)
