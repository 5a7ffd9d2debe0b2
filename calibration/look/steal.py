"""Steal time: what the host gives of its CPUs to others, and how much longer requests take then.

Models: an administrator who sees the same query take twice as long when a neighbour is busy.
Linux counterpart: kernel/sched/cputime.c (account_steal_time), arch/x86/kernel/kvm.c
(kvm_steal_clock): the time in which a virtual CPU was runnable and the host ran somebody else.
Invariants: only what the recording itself shows is said: a device's requests are tied to the steal
only where they take longer in intervals with more of it, beyond chance, as much as this guest ran.
Left out: to whom the CPUs were given: other guests, threads of the host that serve this one, or
nobody, where a quota limits the guest; a host's disks that others use; waiting for other requests,
which grows faster than service where a device is busy; one `await` of reads and writes together.

A virtual CPU that ran for r of the time while s was stolen took (r + s) / r times as long for its
work: this is the stretch F. What serves a virtual disk is a thread on the same host (a virtio
device's, of QEMU or Firecracker), which waits for a CPU as long as the guest's own do. So a request
that takes S while nobody is beside takes S F^p: p is 1 if all of S is the host's CPU time, 0 if it
is the medium's. p is the slope of ln R over ln F between the intervals of a recording, both less
what goes with ln r: else a guest that runs more, and has other requests then, would be taken for a
host that gives more. A slope far above 1 is no stretch of S, and is none here.
By hand: the CPUs are 6 % busy, 3 % of it steal: F = 2. A write of 0.05 ms takes 0.1 ms if p = 1.

Neighbours come and go in minutes. So what another time will have is taken from the parts of the
recording (intervals.py), each 15 s long: in one it was 2.8, in another 1.0.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import StatisticsError, correlation, linear_regression
from typing import Final

from calibration.look.intervals import RESPONSES, Interval, parts_of

STRETCH_MIN: Final = 1.1  # of a recording: a tenth of the guest's own time
RAN_MIN: Final = 0.005  # of the CPUs, in an interval: of less the ratio is chance
INTERVALS_MIN: Final = 20  # of fewer a slope is chance
SURE: Final = 4.0  # standard errors of a slope; intervals hang together
SLOPE_MAX: Final = 1.5  # what chance and some waiting make of 1


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """How many times as long CPU work took as alone: on average, and in each part of a recording.

    `powers` has, by device and column of its response time, p of those that took longer with it.
    """

    mean: float
    parts: tuple[float, ...]
    powers: Mapping[tuple[str, str], float]

    def alone(self, device: str, column: str, response_ms: float) -> float:
        """Return what a response time is while nothing is stolen, ms."""
        return float(response_ms / self.mean ** self.powers[device, column])


def stretch_of(intervals: Sequence[Interval]) -> Stretch | None:
    """Return what the host gave to others; None if that was little, or not recorded."""
    known = [one for one in intervals if one.busy is not None and "steal_pct" in one.cpu]
    mean = _stretch(known)
    if not known or mean < STRETCH_MIN:
        return None
    names = dict.fromkeys(name for one in known for name in one.devices)
    powers = {(name, column): _power(known, name, column) for name in names for column in RESPONSES}
    return Stretch(
        mean=mean,
        parts=tuple(_stretch(one) for one in parts_of(known)),
        powers={key: power for key, power in powers.items() if power},
    )


def _stretch(intervals: Sequence[Interval]) -> float:
    """Return (r + s) / r of intervals together."""
    stolen = sum(one.cpu["steal_pct"] for one in intervals) / 100
    ran = sum(_ran(one) for one in intervals)
    return 1 + stolen / max(ran, RAN_MIN * len(intervals)) if intervals else 1.0


def _power(intervals: Sequence[Interval], name: str, column: str) -> float:
    """Return p of a device's response times, 0 to 1; 0 where it may be chance."""
    rows = [(one, one.devices[name].get(column, 0.0)) for one in intervals if name in one.devices]
    points = [
        (math.log(_stretch([one])), math.log(value), math.log(max(_ran(one), RAN_MIN)))
        for one, value in rows
        if value > 0
    ]
    if len(points) < INTERVALS_MIN:
        return 0.0
    stretches, answers, ran = (list(one) for one in zip(*points, strict=True))
    stretches, answers = _less(stretches, ran), _less(answers, ran)
    try:
        slope = linear_regression(stretches, answers).slope
        together = correlation(stretches, answers)
    except StatisticsError:  # it was the same in all intervals
        return 0.0
    sure = together / math.sqrt(max(1 - together**2, 1e-9) / (len(points) - 2))
    return min(1.0, slope) if sure > SURE and slope < SLOPE_MAX else 0.0


def _ran(interval: Interval) -> float:
    """Return the share of its CPUs' time in which a guest ran."""
    return (interval.busy or 0.0) - interval.cpu["steal_pct"] / 100


def _less(values: Sequence[float], others: Sequence[float]) -> list[float]:
    """Return values less what goes with others in a straight line."""
    try:
        line = linear_regression(others, values)
    except StatisticsError:  # the others are all alike
        return list(values)
    return [a - line.slope * b - line.intercept for a, b in zip(values, others, strict=True)]
