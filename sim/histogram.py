"""Times that transactions took, as a histogram: what a run leaves of them.

Models: a sheet of logarithmic paper: 64 bins to each doubling, so that a bin is 1.1 % wide.
By hand: from 1 ms to 17 minutes are twenty doublings, 1280 bins, most of them empty: 2 KB as text,
less than 1 KB compressed.
Linux counterpart: fio's stat.c has 64 bins to a doubling, too, up to 17 s.
Invariants: every transaction is in one bin, or among those that never ended as they should; what is
 beyond a limit and what is not are all of them.
Left out: which transaction it was, and when.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

BINS_PER_DOUBLING: Final = 64


@dataclass(frozen=True)
class Histogram:
    """`counts` of bins from number `first` on; `never`: transactions beyond every limit."""

    first: int
    counts: tuple[int, ...]
    never: int = 0

    @property
    def total(self) -> int:
        """Number of transactions."""
        return sum(self.counts) + self.never

    def beyond(self, limit: float) -> float:
        """Return how many took as long as a limit or longer; in its bin they lie evenly."""
        if limit <= 0:
            return self.total
        place = _place(limit) - self.first
        number = math.floor(place)
        if number < 0:
            return self.total
        inside = self.counts[number] if number < len(self.counts) else 0
        return sum(self.counts[number + 1 :]) + self.never + inside * (number + 1 - place)

    def plain(self) -> dict[str, Any]:
        """Return it as what json can write."""
        return {"first": self.first, "counts": list(self.counts), "never": self.never}


def histogram_of(values: Iterable[float], never: int = 0) -> Histogram:
    """Return the histogram of times; one of 0 counts as the least that is more."""
    found = Counter(math.floor(_place(max(value, 1))) for value in values)
    if not found:
        return Histogram(0, (), never)
    first, last = min(found), max(found)
    return Histogram(first, tuple(found[number] for number in range(first, last + 1)), never)


def from_plain(content: Mapping[str, Any]) -> Histogram:
    """Return the histogram that plain() wrote."""
    return Histogram(content["first"], tuple(content["counts"]), content["never"])


def _place(value: float) -> float:
    """Return where a time lies, in bins."""
    return BINS_PER_DOUBLING * math.log2(value)
