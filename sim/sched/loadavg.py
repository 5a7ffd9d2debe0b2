"""The load average.

Models: every 5 s the number of tasks that run, wait for a CPU, or sleep uninterruptibly enters
three exponentially decaying averages of 1, 5 and 15 minutes, in fixed point with 11 fraction bits.
Linux counterpart: kernel/timer.c calc_load, CALC_LOAD (2.6.16); kernel/sched.c calc_global_load
 (2.6.31-3.x); kernel/sched/loadavg.c (4.2 on); include/linux/sched.h.
Invariants: the sample is an instant's, not a mean over the 5 s.
Left out: folding per CPU with its delay of 10 ticks (2.6.31 on), lost samples of tickless idle CPUs
 (2.6.32-2.6.36), TASK_NOLOAD.
"""

from typing import Any, Final

from sim.sched.core import Sched
from sim.sched.features import ROUND_HALF_UP, ROUND_TOWARDS_ACTIVE, features
from sim.units import NS_PER_S

FSHIFT: Final = 11
FIXED_1: Final = 1 << FSHIFT
EXP_N: Final = (1884, 2014, 2037)  # 1/exp(5 s / 1, 5, 15 min) in fixed point
LOAD_FREQ_S: Final = 5


class LoadAverage:
    """avenrun[], and the counts that /proc/loadavg shows beside it."""

    __slots__ = ("_period_ns", "_rounding", "_sched", "avenrun")

    def __init__(self, sched: Sched) -> None:
        self._sched = sched
        release = features(sched.kernel)
        self._rounding: str = release.load_rounding
        self._period_ns: int = LOAD_FREQ_S * NS_PER_S
        if release.load_extra_tick:
            self._period_ns += sched.tick_ns
        self.avenrun: list[int] = [0, 0, 0]

    def start(self) -> None:
        """Begin to sample, one period from now."""
        self._sched.calendar.post(self._period_ns, self._sample, None)

    def _sample(self, _: Any) -> None:
        active = self.active()
        self.avenrun = [
            calc_load(load, exp, active * FIXED_1, self._rounding)
            for load, exp in zip(self.avenrun, EXP_N, strict=True)
        ]
        self.start()

    def active(self) -> int:
        """Return the tasks that count now: running and uninterruptible."""
        return self._sched.nr_running + self._sched.nr_uninterruptible

    @property
    def nr_running(self) -> int:
        """Return how many tasks run or wait for a CPU."""
        return self._sched.nr_running

    @property
    def nr_threads(self) -> int:
        """Return how many tasks exist."""
        return self._sched.nr_threads

    @property
    def last_pid(self) -> int:
        """Return the pid given out last."""
        return self._sched.last_pid


def calc_load(load: int, exp: int, active: int, rounding: str) -> int:
    """Return the average after one more sample; all in fixed point but `rounding`."""
    new = load * exp + active * (FIXED_1 - exp)
    if rounding == ROUND_HALF_UP:
        new += FIXED_1 // 2
    elif rounding == ROUND_TOWARDS_ACTIVE and active >= load:
        new += FIXED_1 - 1
    return new >> FSHIFT
