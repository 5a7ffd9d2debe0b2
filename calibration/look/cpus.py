"""How many CPUs there are, and how many tasks wait inside I/O, from what iowait says.

Models: iowait as the kernel counts it (the package's opening has the formula).
Linux counterpart: kernel/sched/cputime.c:account_idle_time, kernel/sched/core.c:io_schedule.
Invariants: a number that the recording states wins over one that is implied; what is implied says
so, and what else would show the same.
Left out: several devices waited for at the same time by different tasks: then the ratio is an upper
bound, and above 1 it is a finding of its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from calibration.look.intervals import Interval
from calibration.look.laws import (
    Placing,
    Steps,
    idle_steps,
    iowait_ratio,
    placings,
    waiters_on,
)

IOWAIT_MIN_PCT = 1.0
UTIL_MIN_PCT = 10.0
# Two printed decimals and a disk that others use too: 10 % of the ratio.
RATIO_TOLERANCE = 0.1
OTHERS_SHOWN = 2


@dataclass(frozen=True, kw_only=True)
class CpuLook:
    """CPUs and waiters: `ratio` is iowait / (util (1 - busy)) against the busiest device.

    `waiters` is a lower bound: tasks that are woken by the same interrupt gather on one CPU, and
    count once there. `placings`: what else would show the ratio, where CPUs were not recorded.
    """

    cpus: int | None
    source: str
    shares_pct: Mapping[str, float]
    busy: float | None
    device: str | None
    ratio: float | None
    waiters: float | None
    placings: tuple[Placing, ...]
    steps: Steps | None

    @property
    def busy_cpus(self) -> float | None:
        """Return how many CPUs were busy on average, of one if their number is not known."""
        return None if self.busy is None else self.busy * (self.cpus or 1)


def look_at_cpus(
    intervals: Sequence[Interval],
    shares_pct: Mapping[str, float],
    *,
    stated: int | None,
    device: str | None,
) -> CpuLook:
    """Return what is known of the CPUs; `device` is the busiest that is not a volume."""
    ratio = _ratio(intervals, device)
    found = tuple(placings(ratio, RATIO_TOLERANCE)) if ratio is not None and ratio < 1 else ()
    steps = _steps(intervals)
    cpus, source = _count(stated, found, steps)
    busy = [one.busy for one in intervals if one.busy is not None]
    return CpuLook(
        cpus=cpus,
        source=source,
        shares_pct=shares_pct,
        busy=fmean(busy) if busy else None,
        device=device,
        ratio=ratio,
        waiters=waiters_on(cpus, ratio) if cpus is not None and ratio is not None else None,
        placings=found[1 : 1 + OTHERS_SHOWN] if stated is None else (),
        steps=steps,
    )


def _count(
    stated: int | None, found: Sequence[Placing], steps: Steps | None
) -> tuple[int | None, str]:
    if stated is not None:
        return stated, "recorded"
    if found and found[0].waiters == 1:
        return found[0].cpus, "implied by iowait against util: one waiter"
    if steps is not None:
        return steps.cpus, f"implied by steps of idle time of {100 / steps.cpus:.3g} %"
    return None, "not recorded"


def _ratio(intervals: Sequence[Interval], device: str | None) -> float | None:
    """Return the mean ratio, weighted by the device's utilisation."""
    sums = [0.0, 0.0]
    for one in intervals:
        util = one.devices.get(device or "", {}).get("util_pct", 0.0)  # without a row: passed over
        iowait = one.cpu.get("iowait_pct", 0.0)
        if util < UTIL_MIN_PCT or iowait < IOWAIT_MIN_PCT or not one.busy or one.busy >= 1:
            continue
        sums[0] += util * iowait_ratio(iowait / 100, util / 100, one.busy)
        sums[1] += util
    return sums[0] / sums[1] if sums[1] else None


def _steps(intervals: Sequence[Interval]) -> Steps | None:
    """Return the steps of idle time, over intervals in which somebody waited."""
    idle = [
        one.cpu["idle_pct"] / 100
        for one in intervals
        if "idle_pct" in one.cpu and one.cpu.get("iowait_pct", 0.0) >= IOWAIT_MIN_PCT
    ]
    lengths = [one.length_s for one in intervals if one.length_s]
    return idle_steps(idle, min(lengths, default=1.0)) if idle else None
