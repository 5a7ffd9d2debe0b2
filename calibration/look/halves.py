"""A load that is not the same throughout: the second half of a recording beside the first.

Models: laying both halves of a printout side by side before a mean is taken of them.
Linux counterpart: none.
Invariants: a change is told by the recording's own figures: it is large, and no chance.
Left out: what comes and goes within a half; what is the same in all of a recording, and another day
is not.

Each half is cut into parts (intervals.py). The logarithms of a figure scatter by s between the n
parts of a half, so that two halves of one load differ by d = s sqrt(2 / n), and a change of c is
c / d standard errors by Student's t. Parts are used, and not the intervals themselves, for seconds
that lie side by side are alike: a flusher's or a checkpoint's last several.
By hand: two minutes have eight parts. Writes that took 0.07 ms, and then 0.14, 0.35, 0.18 and 0.2,
have a mean of the logarithm that is 1.1 larger; s = 0.27, d = 0.19: 5.5 standard errors. Of a load
that stays one figure in 140 has 4 of them by chance (six degrees of freedom); a change by less than
FACTOR is not told.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, variance
from typing import Final

from calibration.look.intervals import RESPONSES, Interval, mean_row, parts_of

PARTS_MIN: Final = 3  # of a half: of fewer no scatter is known
SURE: Final = 4.0  # standard errors
FACTOR: Final = 1.3  # less is no other load
SELDOM: Final = 0.1  # requests a second: of fewer a part has hardly any
# Column -> as one says it, and what is too little to matter.
FIGURES: Final[Mapping[str, tuple[str, float]]] = {
    "r_per_s": ("reads/s", 1.0),
    "w_per_s": ("writes/s", 1.0),
    "r_await_ms": ("ms a read", 0.01),
    "w_await_ms": ("ms a write", 0.01),
}


@dataclass(frozen=True, kw_only=True)
class Change:
    """What a device had of a figure in either half of a recording."""

    device: str
    column: str
    first: float
    second: float

    @property
    def words(self) -> str:
        """Return the figure as one says it."""
        return FIGURES[self.column][0]


def changes(intervals: Sequence[Interval], devices: Sequence[str]) -> list[Change]:
    """Return what changed from the first half of a recording to the second; nothing if too short.

    A response time is judged where requests come in every part.
    """
    parts = parts_of(intervals)
    size = len(parts) // 2
    if size < PARTS_MIN:
        return []
    found = []
    for name in devices:
        rows = [mean_row(one.devices.get(name, {}) for one in part) for part in parts]
        for column, (_words, least) in FIGURES.items():
            requests = RESPONSES.get(column)
            if requests and any(row.get(requests, 0.0) < SELDOM for row in rows):
                continue
            values = [max(row.get(column, 0.0), least / 10) for row in rows]
            first, second = values[:size], values[-size:]
            if max(fmean(first), fmean(second)) >= least and _is_other(first, second):
                found.append(
                    Change(device=name, column=column, first=fmean(first), second=fmean(second))
                )
    return found


def _is_other(first: Sequence[float], second: Sequence[float]) -> bool:
    """Return whether one half has another level than the other."""
    logs = [[math.log(one) for one in half] for half in (first, second)]
    change = abs(fmean(logs[1]) - fmean(logs[0]))
    error = math.sqrt(sum(variance(half) for half in logs) / len(first))
    return change > math.log(FACTOR) and change > SURE * error
