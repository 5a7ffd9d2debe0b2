"""A change of one figure, noticed: a two-sided cumulative sum that starts itself.

Models: the clerk who adds up how far each reading is off, until chance is no excuse.
Linux counterpart: none; the package's opening has the theory and its sources.
Invariants: a reading is learned when both sums are at zero again, so that a change does not make
its own excuse; after an alarm the readings since the change are what is usual, SINCE_MIN of them at
least.
Left out: readings that hang together; figures that follow the time of day.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

ALLOWANCE: Final = 1.0  # standard deviations that a reading may be off at no charge
CUT: Final = 4.0  # of a single reading
LEARNED_MIN: Final = 6  # readings before any is judged
SINCE_MIN: Final = 3  # of them since the last change
REMEMBERED: Final = 360  # readings: half an hour of them
BEYOND: Final = 1.166  # Siegmund: what a sum is over its threshold, on average, and under zero
WEEK_S: Final = 7 * 86400.0


def run_length(threshold: float) -> float:
    """Return how many readings a one-sided sum goes until a false alarm, on average."""
    double = 2 * ALLOWANCE * (threshold + BEYOND)
    return (math.exp(double) - double - 1) / (2 * ALLOWANCE**2)


def threshold_for(figures: int, reading_s: float) -> float:
    """Return the threshold at which so many figures have one false alarm a week together."""
    wanted = 2 * figures * WEEK_S / reading_s
    low, high = 0.0, 50.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if run_length(middle) < wanted else (low, middle)
    return high


def as_normal(t: float, freedom: int) -> float:
    """Return the normal deviate that is as seldom as Student's t (Wallace 1959, within 0.02)."""
    size = math.sqrt(freedom * math.log1p(t * t / freedom))
    return math.copysign((8 * freedom + 1) / (8 * freedom + 3) * size, t)


@dataclass(frozen=True, kw_only=True)
class Parting:
    """A figure is no longer what it was: since when, and both logarithms."""

    since_s: float
    before: float
    now: float


@dataclass(kw_only=True)
class Channel:
    """One figure's logarithm: what is usual of it, and both sums.

    `least` is the change of the logarithm that matters, if either level is above `floor`. `held`
    are readings that are not learned yet, each with the time at which it began; while `is_paused`
    they are not judged either.
    """

    least: float
    threshold: float
    floor: float = -math.inf
    mean: float = 0.0
    known: int = 0  # readings that made the mean
    squares: float = 0.0  # sum of squared deviations, of `freedom` readings more than one
    freedom: int = 0
    up: float = 0.0
    down: float = 0.0
    held: list[tuple[float, float]] = field(default_factory=list)
    is_paused: bool = False

    @property
    def is_suspect(self) -> bool:
        """Whether a sum is over half of its threshold."""
        return max(self.up, self.down) > self.threshold / 2

    @property
    def is_learned(self) -> bool:
        """Whether enough is known to judge a reading."""
        return self.known >= SINCE_MIN and self.freedom >= LEARNED_MIN - 1

    def take(self, at_s: float, value: float, chance: float) -> Parting | None:
        """Take a logarithm; `chance` is the least that it can scatter by, 1 / sqrt(count)."""
        if self.is_paused:
            self.held.append((at_s, value))
            return None
        if not self.is_learned:
            self._learn(value)
            return None
        self.held.append((at_s, value))
        off = self._off(value, chance)
        self.up = max(0.0, self.up + off - ALLOWANCE)
        self.down = max(0.0, self.down - off - ALLOWANCE)
        if max(self.up, self.down) > self.threshold:
            return self._part()
        if not self.up and not self.down:
            self._learn_held()
        return None

    def part_now(self) -> Parting | None:
        """Say what a suspect figure is now, as another one has had its alarm."""
        return self._part() if self.is_suspect else None

    def pause(self) -> None:
        """Judge nothing until resume(): what is usual is being worked out anew."""
        self.is_paused = True

    def resume(self, change: float, chance: float, since_s: float) -> Parting | None:
        """Go on, with the usual changed by `change`; judge what came since then."""
        self.is_paused = False
        self.mean += change
        held = [one for one in self.held if one[0] >= since_s]
        self._clear()
        for number, (at_s, value) in enumerate(held):
            parting = self.take(at_s, value, chance)
            if parting is not None:
                for later_s, later in held[number + 1 :]:
                    self.take(later_s, later, chance)
                return parting
        return None

    def settle(self, since_s: float) -> None:
        """Go on, with the readings since then as what is usual."""
        values = [value for at_s, value in self.held if at_s >= since_s]
        self.is_paused = False
        self._clear()
        if values:
            self.mean, self.known = median(values), len(values)

    def _off(self, value: float, chance: float) -> float:
        """Return how far a value is off, in standard deviations, CUT at most."""
        spread = max(math.sqrt(self.squares / self.freedom), chance, 1e-9)
        t = (value - self.mean) / (spread * math.sqrt(1 + 1 / self.known))
        return max(-CUT, min(CUT, as_normal(t, self.freedom)))

    def _part(self) -> Parting | None:
        """Tell the change if it matters; take its readings for what is usual, or learn them."""
        changed = _since_change(self.held, self.mean)
        level = median([value for _at_s, value in changed])
        change = level - self.mean
        if abs(change) < self.least or max(level, self.mean) < self.floor:
            self._learn_held()
            return None
        parting = Parting(since_s=changed[0][0], before=self.mean, now=level)
        self._clear()
        self.mean, self.known = level, len(changed)
        return parting

    def _clear(self) -> None:
        self.up = self.down = 0.0
        self.held = []

    def _learn_held(self) -> None:
        for _at_s, value in self.held:
            self._learn(value)
        self._clear()

    def _learn(self, value: float) -> None:
        """Add a reading to mean and scatter (Welford); beyond REMEMBERED the old ones fade."""
        if self.known:
            step = value - self.mean
            self.freedom += 1
            self.squares += step * step * self.known / (self.known + 1)
            if self.freedom > REMEMBERED:
                self.squares *= REMEMBERED / self.freedom
                self.freedom = REMEMBERED
            self.mean += step / (self.known + 1)
        else:
            self.mean = value
        self.known = min(self.known + 1, REMEMBERED)


def _since_change(
    held: Sequence[tuple[float, float]], mean: float
) -> Sequence[tuple[float, float]]:
    """Return the readings since the likeliest moment of a change (Hinkley).

    Of normal readings with a known mean before, that is where n (mean since - mean)^2 is largest.
    """
    best, first, total = -1.0, 0, 0.0
    for number in range(len(held) - 1, -1, -1):
        total += held[number][1] - mean
        size = total * total / (len(held) - number)
        if size >= best:
            best, first = size, number
    return held[first:]
