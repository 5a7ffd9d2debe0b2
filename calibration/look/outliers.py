"""Intervals in which a device did something else: a burst that dominates a mean.

Models: crossing out a line of iostat with a pencil, and saying so.
Linux counterpart: none.
Invariants: an interval is out by its own figures against the others' median, never by what a model
says; two intervals are out at most, or 3 % of them: what happens oftener is the load (a flusher
that writes every 5 s has a fifth of the seconds).
Left out: slow changes of the load, which no median tells from the load.

The spread of the middle half tells what is usual, whatever the rest does: for a normal
distribution 0.74 of it is the standard deviation. Out is what is more than so many of these, and
more than FACTOR times or less than 1 / FACTOR of the median: counts scatter by their root.
By hand: 150 reads/s, of which one interval in twelve has 900 of somebody's backup: median 150,
quarters at 145 and 156; 900 is 91 spreads away, and 6 times as much.
"""

from collections.abc import Sequence
from statistics import median, quantiles
from typing import Final

from calibration.look.intervals import Interval, Row, bytes_of

INTERVALS_MIN: Final = 8  # of which a middle half is known
FACTOR: Final = 2.5
SPREADS: Final = 6.0  # standard deviations, of which chance has no interval in an hour's recording
OF_QUARTERS: Final = 0.74  # of the middle half's width: a standard deviation
NUMBER_MAX: Final = 2
SHARE_MAX: Final = 0.03
_COUNTED_MIN: Final = 1.0  # requests/s, KiB/s: less is a journal's occasional write
_WORDS: Final = {"r_per_s": "reads/s", "w_per_s": "writes/s", "moved": "KiB/s"}


def outliers(intervals: Sequence[Interval]) -> dict[int, str]:
    """Return the numbers of the intervals that are out, and what each had of what."""
    if len(intervals) < INTERVALS_MIN:
        return {}
    found: dict[int, str] = {}
    for name in dict.fromkeys(name for one in intervals for name in one.devices):
        for column, word in _WORDS.items():
            values = [_of(one.devices.get(name, {}), column) for one in intervals]
            usual = median(values)
            for number in _out(values):
                told = f"{name} {values[number]:.4g} {word}, usually {usual:.4g}"
                found.setdefault(number, told)
    most = max(NUMBER_MAX, SHARE_MAX * len(intervals))
    return found if len(found) <= most else {}


def _of(row: Row, column: str) -> float:
    return (bytes_of(row) or 0.0) / 1024 if column == "moved" else row.get(column, 0.0)


def _out(values: Sequence[float]) -> list[int]:
    """Return the numbers of the values that are far from the middle ones."""
    low, usual, high = quantiles(values, n=4)
    spread = max(OF_QUARTERS * (high - low), usual**0.5, _COUNTED_MIN)
    return [
        number
        for number, value in enumerate(values)
        if abs(value - usual) > SPREADS * spread
        and not usual / FACTOR <= value + _COUNTED_MIN <= FACTOR * usual
    ]
