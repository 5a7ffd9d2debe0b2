"""How much CPU time a group of tasks may have: a quota each period, shared by all CPUs.

Theory of operation. A pool is filled with the quota at the beginning of each period. A CPU on which
the group runs takes slices of 5 ms out of it and spends them; that is looked at at ticks, so it may
owe up to a tick, which the next period pays. A CPU with nothing left, and nothing in the pool, is
*throttled*: the group leaves its queue until the next period. What an idle CPU has left of a slice
goes back into the pool, but for 1 ms.

Estimate: n hogs on c >= n CPUs with quota q in a period p want n p and get q, so that each period
they are throttled n p - q, summed over CPUs, and nr_throttled counts every period. With n p <= q
nobody ever waits.

Linux counterpart: struct cfs_bandwidth in kernel/sched/sched.h; kernel/sched/fair.c 3.2 on:
 account_cfs_rq_runtime, assign_cfs_rq_runtime, distribute_cfs_runtime, do_sched_cfs_period_timer,
 return_cfs_rq_runtime.
Invariants: the pool is never negative and never more than quota and burst; a CPU's part is negative
 by what it ran over; nr_throttled <= nr_periods.
Left out: throttling task by task when they leave the kernel (6.18); slices expire in 3.2 to 5.3
 exactly (512ac999d275 and de53fd7aedb1 mend how they did).
"""

from collections.abc import Callable
from typing import Any, Final

from sim.engine.calendar import Calendar
from sim.sched.features import EXPIRES
from sim.sched.version import KernelVersion, in_force

MS: Final = 1_000_000
SLICE_NS: Final = 5 * MS  # sysctl_sched_cfs_bandwidth_slice
KEPT_NS: Final = 1 * MS  # min_cfs_rq_runtime
SLACK_NS: Final = 5 * MS  # cfs_bandwidth_slack_period: what is given back is dealt out after that


class LocalRuntime:
    """One CPU's part of a group's time (the runtime_* fields of struct cfs_rq)."""

    __slots__ = ("period", "pool", "restart", "runtime_ns", "throttled_since_ns")

    def __init__(self, pool: "Bandwidth", restart: Callable[[], None]) -> None:
        self.pool = pool
        self.restart = restart  # puts the group back on the CPU's queue
        self.runtime_ns: int = 0
        self.period: int = 0  # in which it last took a slice
        self.throttled_since_ns: int = -1


class Bandwidth:
    """The pool of one group, and the counters of its cpu.stat."""

    __slots__ = (
        "_active",
        "_burst_ns",
        "_calendar",
        "_expires",
        "_idle",
        "_period",
        "_runtime_ns",
        "_slack_pending",
        "_throttled",
        "nr_periods",
        "nr_throttled",
        "period_ns",
        "quota_ns",
        "throttled_ns",
    )

    def __init__(
        self,
        calendar: Calendar,
        kernel: KernelVersion,
        *,
        quota_ns: int,
        period_ns: int,
        burst_ns: int = 0,
    ) -> None:
        self._calendar = calendar
        self._expires: bool = in_force(EXPIRES, kernel)
        self.quota_ns = quota_ns
        self.period_ns = period_ns
        self._burst_ns = burst_ns
        self._runtime_ns: int = quota_ns
        self._throttled: list[LocalRuntime] = []
        self._active: bool = False  # the period's timer is set
        self._idle: bool = False  # nobody has taken a slice in this period
        self._slack_pending: bool = False
        self._period: int = 0  # its number
        self.nr_periods: int = 0
        self.nr_throttled: int = 0
        self.throttled_ns: int = 0

    # -- What a CPU does

    def charge(self, local: LocalRuntime, ns: int) -> None:
        """Take `ns` of a CPU's part, and a slice of the pool if it has none left."""
        if self._expires and local.period != self._period and local.runtime_ns > 0:
            local.runtime_ns = 0
        local.runtime_ns -= ns
        if local.runtime_ns <= 0:
            self._assign(local)

    def is_exhausted(self, local: LocalRuntime) -> bool:
        """Return whether the CPU has no time left and can't get any (check_cfs_rq_runtime)."""
        if local.throttled_since_ns >= 0:
            return True
        self.charge(local, 0)
        return local.runtime_ns <= 0

    def throttle(self, local: LocalRuntime) -> None:
        """Note that the group has left that CPU's queue (throttle_cfs_rq)."""
        assert local.throttled_since_ns < 0
        local.throttled_since_ns = self._calendar.now
        self._throttled.append(local)

    def give_back(self, local: LocalRuntime) -> None:
        """Take back what a CPU does not need: the group's last task there sleeps."""
        slack_ns = local.runtime_ns - KEPT_NS
        if slack_ns <= 0 or (self._expires and local.period != self._period):
            return
        local.runtime_ns -= slack_ns
        self._runtime_ns += slack_ns
        if self._throttled and self._runtime_ns > SLICE_NS and not self._slack_pending:
            self._slack_pending = True
            self._calendar.post(SLACK_NS, self._slack_expired, None)

    def _assign(self, local: LocalRuntime) -> None:
        """Give a CPU a slice, or what there is of one."""
        if not self._active:
            self._active = True
            self._calendar.post(
                self.period_ns - self._calendar.now % self.period_ns, self._period_expired, None
            )
        if self._runtime_ns > 0:
            given = min(SLICE_NS - local.runtime_ns, self._runtime_ns)
            self._runtime_ns -= given
            local.runtime_ns += given
            local.period = self._period
            self._idle = False

    # -- What the timers do

    def _period_expired(self, _: Any) -> None:
        """Fill the pool and let the throttled go on (do_sched_cfs_period_timer)."""
        throttled = bool(self._throttled)
        self.nr_periods += 1
        self._period += 1
        full_ns = self.quota_ns + self._burst_ns
        self._runtime_ns = min(self._runtime_ns + self.quota_ns, full_ns)
        if self._idle and not throttled:
            self._active = False
            return
        self._calendar.post(self.period_ns, self._period_expired, None)
        self._idle = not throttled
        if throttled:
            self.nr_throttled += 1
            self._distribute()

    def _slack_expired(self, _: Any) -> None:
        """Deal out what was given back (do_sched_cfs_slack_timer)."""
        self._slack_pending = False
        self._distribute()

    def _distribute(self) -> None:
        """Pay the debts of the throttled CPUs, and 1 ns; who is in the black goes on."""
        for local in list(self._throttled):
            if self._runtime_ns <= 0:
                return
            given = min(1 - local.runtime_ns, self._runtime_ns)
            self._runtime_ns -= given
            local.runtime_ns += given
            local.period = self._period
            if local.runtime_ns > 0:
                self._unthrottle(local)

    def _unthrottle(self, local: LocalRuntime) -> None:
        self._throttled.remove(local)
        self.throttled_ns += self._calendar.now - local.throttled_since_ns
        local.throttled_since_ns = -1
        local.restart()
