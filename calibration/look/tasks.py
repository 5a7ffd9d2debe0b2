"""How many tasks made a load average: those that run or sleep uninterruptibly, from its own steps.

Models: undoing the smoothing of a load average.
Linux counterpart: kernel/sched/loadavg.c: calc_global_load, every LOAD_FREQ (5 s and a tick).
Invariants: nothing is assumed of what the tasks are; an average that never changed is where it
would settle, and says how many there are by itself.
Left out: the averages over 5 and 15 minutes, which move too little in a recording; tickless CPUs,
whose updates are made up for later.

Every 5 s an average y becomes y e + n (1 - e), e = exp(-5 / 60), with n tasks. Over k updates that
    n = (y_k - y_0 e^k) / (1 - e^k)
were active on average, the later ones counting a little more. y is printed in hundredths: over two
updates n is known to 0.01 / (1 - e^2) = 0.07.
By hand: 2.00 that is 2.79 after 12 updates: e^12 = 0.368, n = (2.79 - 0.74) / 0.632 = 3.25.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from calibration.samples import Recording

UPDATE_S: Final = 5.0  # LOAD_FREQ
PERIOD_S: Final = 60.0  # of the first average


def active_tasks(recordings: Sequence[Recording]) -> float | None:
    """Return the mean number of active tasks while the recordings lasted; None: no load average.

    Of several recordings the one with most averages tells: they are of the same time.
    """
    series = [_averages(one) for one in recordings]
    longest = max(series, key=len, default=[])
    return tasks_of(longest) if longest else None


def tasks_of(averages: Sequence[tuple[float | None, float]]) -> float:
    """Return the mean number of tasks that led from the first average to the last (time s, y).

    How many updates lie between is counted between the first and the last step that is seen.
    """
    steps = [(a, b) for a, b in pairwise(averages) if a[1] != b[1]]
    if not steps or any(time_s is None for time_s, _y in averages):
        return averages[-1][1]
    (_before_s, before), (first_s, _first) = steps[0]
    last_s, last = steps[-1][1]
    updates = 1 + round(((last_s or 0.0) - (first_s or 0.0)) / UPDATE_S)
    return settled(before, last, updates * UPDATE_S)


def settled(first: float, last: float, length_s: float) -> float:
    """Return the mean number of active tasks in the time in which an average went so far."""
    left = math.exp(-length_s / PERIOD_S)
    return max(0.0, (last - first * left) / (1 - left))


def _averages(recording: Recording) -> list[tuple[float | None, float]]:
    return [
        (one.time_s, one.value)
        for one in recording.samples
        if one.column == "load1" and not one.since_boot
    ]
