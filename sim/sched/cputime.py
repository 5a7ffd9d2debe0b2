"""Where the CPUs' time goes.

Models: the columns of /proc/stat, per CPU, to the nanosecond.
Linux counterpart: struct cpu_usage_stat; kernel/sched.c account_system_time, account_user_time.
Invariants: the states of a CPU sum to the time since boot, exactly, whenever RunQueue.account()
 has just run. iowait is idle time of a CPU on which a task went to sleep inside io_schedule() and
 has not been woken; tasks sleeping elsewhere do not count, and any work on the CPU hides it.
Left out: sampling by ticks (Linux charges a whole tick to what it interrupts; the expectation is
 the same), guest. steal is 0 but for a guest among others (vcpu.py).
"""


class CpuTime:
    """What one CPU has done since boot, ns."""

    __slots__ = (
        "idle_ns",
        "iowait_ns",
        "irq_ns",
        "nice_ns",
        "softirq_ns",
        "steal_ns",
        "system_ns",
        "user_ns",
    )

    def __init__(self) -> None:
        self.user_ns: int = 0
        self.nice_ns: int = 0
        self.system_ns: int = 0
        self.idle_ns: int = 0
        self.iowait_ns: int = 0
        self.irq_ns: int = 0
        self.softirq_ns: int = 0
        self.steal_ns: int = 0

    def busy_ns(self) -> int:
        """Return the time in all states but idle and iowait."""
        return (
            self.user_ns
            + self.nice_ns
            + self.system_ns
            + self.irq_ns
            + self.softirq_ns
            + self.steal_ns
        )

    def total_ns(self) -> int:
        """Return the time in all states."""
        return self.busy_ns() + self.idle_ns + self.iowait_ns
