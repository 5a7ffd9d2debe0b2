"""Is it a twin? The written scenario's own run against the recording, column by column.

Models: the judgement of somebody who reads the table of residuals.
Linux counterpart: none.
Invariants: of a simulation, never of the emulator; the limits are the declared trust of each
column, decided before anything was recorded; a device that is less than a tenth as busy as the
busiest one is told, and decides nothing. Beside that trust the limits have how exactly a mean could
be read (that of the load average comes of a few updates), and the chance of a run: of n requests
that come by themselves it may have 1 / sqrt(n) more or less. By hand: 0.59 reads/s in 40 s are 24,
known to 20 %; a tenth is trusted, so that the limit is twice 0.22.
Left out: what the recording has no column of.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from calibration.fit.columns import RecordedColumn

TRUST_MIN: Final = 0.1  # no what-if is asked for less than a tenth
FAIR: Final = 2.0  # times the trust, as 2 standard deviations
ROUGH: Final = 4.0
# Below it, small and nothing are the same: a point of CPU time or utilisation; what iostat prints.
NEGLIGIBLE: Final[Mapping[str, float]] = {"%": 1.0}
_MADE: Final = (
    "are the file system's: `iotwin record` tells which one is mounted, and nothing tells all of"
    " how it was made"
)
# A column's end -> what to do if a twin misses it.
ADVICE: Final[Mapping[str, str]] = {
    "util_pct": "leave util aside, for it says how often the device is not idle, not how full it"
    " is, and Linux counts whole jiffies from 5.0 on",
    "r_await_ms": "record longer, five minutes or more, so that no burst makes half of the mean;"
    " `iotwin look` names intervals to cut",
    "w_await_ms": "record longer, five minutes or more, for writeback comes in bursts; `iotwin"
    " look` names intervals to cut",
    "_bytes": f"sizes {_MADE}",
    "_bytes_per_s": f"sizes {_MADE}",
    "w_per_s": f"writes {_MADE}",
    "iowait_pct": "leave iowait aside: which CPU a task sleeps on is chance",
    "load average": "leave the load average aside: tasks that do no I/O and use no CPU time are in"
    " it (a lock, a file server), or I/O that nobody waits for is not",
}
ADVICE_ELSE: Final = (
    "record longer while the load is steady, and with `iotwin record`, which says what the machine"
    " is; if the load changes, cut the recording where it does"
)
PRINTED: Final = 0.01
COUNTED: Final = (" r_per_s", " w_per_s", " f_per_s")  # ends of columns that count requests


@dataclass(frozen=True, kw_only=True)
class Miss:
    """A column and how far the run is off it, relative, and in what the column is trusted to."""

    metric: str
    off: float
    trusts: float

    @property
    def text(self) -> str:
        """Return both as a reader takes them in."""
        return f"{self.metric} {100 * self.off:+.0f} %"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """All columns that decide, worst first; the loss is their mean square, in trusts.

    `beside` are those of devices that do hardly anything beside the busiest one.
    """

    misses: tuple[Miss, ...]
    beside: tuple[Miss, ...] = ()

    @property
    def loss(self) -> float:
        """Return the mean square of the columns' distances, in what each is trusted to."""
        return sum(one.trusts**2 for one in self.misses) / len(self.misses)

    @property
    def is_fair(self) -> bool:
        """Whether every column is within twice what it is trusted to."""
        return self.misses[0].trusts <= FAIR

    @property
    def is_rough(self) -> bool:
        """Whether no column is further off than a rough twin's may be."""
        return self.misses[0].trusts <= ROUGH

    @property
    def missed(self) -> tuple[Miss, ...]:
        """Return the columns that are not fair."""
        return tuple(one for one in self.misses if one.trusts > FAIR)

    @property
    def text(self) -> str:
        """Return the verdict in words."""
        off = ", ".join(one.text for one in self.missed)
        others = ", ".join(one.text for one in self.beside if one.trusts > FAIR)
        less = f"; of a device that is hardly busy it misses {others}" if others else ""
        if self.is_fair:
            return f"a fair twin: every column within twice what it is trusted to{less}"
        if self.is_rough:
            return f"a rough twin: {off}{less}"
        return f"NOT A TWIN: {off}{less}"

    @property
    def advice(self) -> str:
        """Return what to do about it, as a sentence; nothing for a fair twin."""
        worst = self.misses[0]
        if self.is_fair:
            return ""
        kinds = [kind for kind in ADVICE if worst.metric.endswith(kind)]
        told = ADVICE[kinds[0]] if kinds else ADVICE_ELSE
        others = len(self.missed) > 1
        alone = "" if others else " Every other column is fair: answers about those can be used."
        return f"{worst.metric} is what it misses: {told}.{alone}"


def verdict_of(
    columns: Sequence[RecordedColumn],
    simulated: Mapping[str, float],
    beside: Collection[str] = (),
    *,
    measured_s: float = math.inf,
) -> Verdict:
    """Return the verdict on the figures of a run, of which so many seconds were measured.

    Devices `beside` the others do not decide it.
    """
    misses = [_miss(one, simulated.get(one.metric, 0.0), measured_s) for one in columns]
    misses.sort(key=lambda one: -one.trusts)
    decide = tuple(one for one in misses if one.metric.split()[0] not in beside)
    return Verdict(
        misses=decide or tuple(misses), beside=tuple(one for one in misses if one not in decide)
    )


def _miss(column: RecordedColumn, value: float, measured_s: float) -> Miss:
    least = NEGLIGIBLE.get(column.unit, PRINTED)
    distance = abs(math.log((value + least) / (column.value + least)))
    read = column.resolution / (column.value + least)  # how exactly it could be read at all
    is_counted = column.metric.endswith(COUNTED)
    chance = 1 / math.sqrt(max(1.0, column.value * measured_s)) if is_counted else 0.0
    trust = math.hypot(math.log1p(max(column.discrepancy, TRUST_MIN)), read, chance)
    return Miss(metric=column.metric, off=value / column.value - 1, trusts=distance / trust)
