"""How long the intervals of a text without a clock are, told by its rates.

Models: a reader who sees 12.00, 17.00 and 26.00 requests a second, and concludes that each report
is of one second.
Linux counterpart: sysstat rd_stats.h (S_VALUE: a difference over an interval, in hundredths).
Invariants: rates that are no counts over one length tell nothing.
Left out: intervals of more than LONGEST_S seconds, of which too many numbers are multiples, and of
parts of a second.

Theory. A rate is a count over a length: of L seconds it is a multiple of 1 / L, but for the half of
a hundredth that printing takes. So L is the least number of seconds of which most rates are
multiples. Not all are: iostat divides by a clock of hundredths, and makes 17 requests in 1.01 s
into 16.83. Of half as many seconds (or a third) only every second rate (or third) is a multiple.
By hand: multiples of 0.2 are whole in one of five, and all are multiples of 1 / 5. By chance a
number fits 1 / L to half of a hundredth with the probability L / 100: a tenth at most.
Each column must fit, for two may be tied: overwrites are two writes for a flush, so that in 2 s all
writes are whole and half of the flushes. Where no column has hundredths (`--dec=0`), all is whole.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from calibration.samples import Sample

LONGEST_S: Final = 10
FITS: Final = 0.7  # of the rates; of half of their length a half does
DISTINCT_MIN: Final = 10  # fewer rates may be whole by chance, or are a made-up text's
HALF_HUNDREDTH: Final = 0.005 + 1e-9
HALF, TENTH = 0.5, 0.05  # of a tenth: what is printed in tenths is whole, to half of that
_PRINTED: Final = frozenset({"r_await_ms", "w_await_ms", "await_ms", "aqu_sz", "util_pct"})
_COUNTED: Final = frozenset(
    f"{what}_per_s" for what in ("r", "w", "d", "f", "io", "rrqm", "wrqm", "drqm")
)


def length_by_rates(samples: Iterable[Sample]) -> int | None:
    """Return how long the intervals of a text are, s; None if its rates do not tell."""
    rates: dict[str, list[float]] = {}
    has_hundredths = False
    for one in samples:
        if one.kind == "device" and one.value and not one.since_boot:
            if one.column in _COUNTED:
                rates.setdefault(one.column, []).append(one.value)
            elif one.column in _PRINTED:
                has_hundredths = has_hundredths or abs(10 * one.value % 1 - HALF) < HALF - TENTH
    telling = [values for values in rates.values() if len(values) >= DISTINCT_MIN]
    if not has_hundredths or len({one for values in telling for one in values}) < DISTINCT_MIN:
        return None
    lengths = range(1, LONGEST_S + 1)
    return next((one for one in lengths if all(_fits(values, one) for values in telling)), None)


def _fits(rates: Sequence[float], length_s: int) -> bool:
    """Return whether most rates are counts over so many seconds."""
    counts = [one * length_s for one in rates]
    fitting = sum(abs(one - round(one)) <= HALF_HUNDREDTH * length_s for one in counts)
    return fitting >= FITS * len(counts)
