"""Intervals in which a device did something else: a burst that dominates a mean.

Models: crossing out a line of iostat with a pencil, and saying so.
Linux counterpart: none.
Invariants: an interval is out by its own figures against the others' median, never by what a model
says; two intervals are out at most, or 3 % of them, for either cause: what happens oftener is the
load (a flusher that writes every 5 s has a fifth of the seconds).
Left out: slow changes of the load, which no median tells from the load.

The spread of the middle half tells what is usual, whatever the rest does: for a normal
distribution 0.74 of it is the standard deviation. Out is what is more than so many of these, and
more than FACTOR times or less than 1 / FACTOR of the median: counts scatter by their root.
By hand: 150 reads/s, of which one interval in twelve has 900 of somebody's backup: median 150,
quarters at 145 and 156; 900 is 91 spreads away, and 6 times as much.

The other cause is a disk that is held up, by the host of a virtual machine for one: as many
requests as ever, each of which takes many times as long. Such times are spread by factors, so it
is their logarithm that is compared. An interval with more requests, bytes, flushes or discards than
usual stays: its requests wait for these, and that is the load. A mean of a few requests is chance:
an interval counts if it has ten, and a device if most of its intervals do.
By hand: 580 requests/s of 0.13 ms, quarters at 0.115 and 0.145 (of the logarithm: a spread of
0.17), in one second 18.5 ms: ln(18.5 / 0.13) is 5, 29 spreads. That second has 10.7 requests in
the queue, the other 99 of a hundred have 0.075 each: it makes six tenths of the mean.
"""

from collections.abc import Iterator, Sequence
from math import exp, log
from statistics import quantiles
from typing import Final

from calibration.look.intervals import Interval, Row, await_of, bytes_of

INTERVALS_MIN: Final = 8  # of which a middle half is known
FACTOR: Final = 2.5
SPREADS: Final = 6.0  # standard deviations, of which chance has no interval in an hour's recording
MORE: Final = 2.0  # standard deviations: with more requests or bytes than that, a queue is the load
OF_QUARTERS: Final = 0.74  # of the middle half's width: a standard deviation
NUMBER_MAX: Final = 2
SHARE_MAX: Final = 0.03
_COUNTED_MIN: Final = 1.0  # requests/s, KiB/s: less is a journal's occasional write
REQUESTS_MIN: Final = 10.0  # in an interval: a mean of fewer says little of how long they take
MOST: Final = 0.5  # of the intervals
_COMMANDS: Final = ("f_per_s", "d_per_s")  # others wait for these as well
_WORDS: Final = {"r_per_s": "reads/s", "w_per_s": "writes/s", "moved": "KiB/s"}


def outliers(intervals: Sequence[Interval]) -> dict[int, str]:
    """Return the numbers of the intervals that are out, and what each had of what."""
    if len(intervals) < INTERVALS_MIN:
        return {}
    bursts: dict[int, str] = {}
    held_up: dict[int, str] = {}
    lengths = [one.length_s or 1.0 for one in intervals]
    for name in dict.fromkeys(name for one in intervals for name in one.devices):
        rows = [one.devices.get(name, {}) for one in intervals]
        asked = {column: _Column(rows, column) for column in (*_WORDS, *_COMMANDS)}
        for column, word in _WORDS.items():
            one = asked[column]
            for number in one.out():
                told = f"{name} {one.values[number]:.4g} {word}, usually {one.usual:.4g}"
                bursts.setdefault(number, told)
        for number, told in _held_up(rows, lengths, list(asked.values())):
            held_up.setdefault(number, f"{name} {told}")
    most = max(NUMBER_MAX, SHARE_MAX * len(intervals))
    few = [found for found in (held_up, bursts) if len(found) <= most]
    return {number: told for found in few for number, told in sorted(found.items())}


class _Column:
    """What was asked of a device in each interval; what is usual, and its spread by chance."""

    def __init__(self, rows: Sequence[Row], name: str) -> None:
        self.values: list[float] = [_of(row, name) for row in rows]
        low, usual, high = quantiles(self.values, n=4)
        self.usual: float = usual
        self.spread: float = max(OF_QUARTERS * (high - low), usual**0.5, _COUNTED_MIN)

    def out(self) -> list[int]:
        """Return the numbers of the values that are far from the middle ones."""
        return [
            number
            for number, value in enumerate(self.values)
            if abs(value - self.usual) > SPREADS * self.spread
            and not self.usual / FACTOR <= value + _COUNTED_MIN <= FACTOR * self.usual
        ]

    def has_more(self, number: int) -> bool:
        """Return whether an interval has more than usual."""
        return self.values[number] > self.usual + MORE * self.spread


def _of(row: Row, column: str) -> float:
    return (bytes_of(row) or 0.0) / 1024 if column == "moved" else row.get(column, 0.0)


def _held_up(
    rows: Sequence[Row], lengths_s: Sequence[float], asked: Sequence[_Column]
) -> Iterator[tuple[int, str]]:
    """Yield the intervals whose requests took long, though no more was asked for than usual."""
    waits = {
        number: await_ms
        for number, (row, length_s) in enumerate(zip(rows, lengths_s, strict=True))
        if length_s * (row.get("r_per_s", 0.0) + row.get("w_per_s", 0.0)) >= REQUESTS_MIN
        and (await_ms := await_of(row))
    }
    if len(waits) < max(INTERVALS_MIN, MOST * len(rows)):
        return
    low, middle, high = quantiles([log(wait) for wait in waits.values()], n=4)
    usual = exp(middle)
    limit = max(FACTOR, exp(SPREADS * OF_QUARTERS * (high - low))) * usual
    for number, wait in waits.items():
        if wait > limit and not any(one.has_more(number) for one in asked):
            yield number, f"{wait:.3g} ms a request, usually {usual:.3g}"
