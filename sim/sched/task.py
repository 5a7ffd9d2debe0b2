"""A task: one thread of control, on behalf of which blocking code runs.

Models: its state, its identity, and its *debt*. Code that costs CPU time adds to the debt with
``charge_user()`` and ``charge_system()``; at the task's next ``yield`` the scheduler burns the debt
on the CPU, preemptibly, and only then lets the task sleep, or go on. So a task's effects precede
their cost, by at most DEBT_LIMIT_NS if long-running code calls ``cond_resched()``.

Sleeping is what it is in Linux:

    task.set_state(TASK_UNINTERRUPTIBLE, "log_wait_commit")
    queue.add(task)
    yield                      # schedule(): returns after somebody's wake_up(task)

A wake-up between the first line and the moment the debt is burnt cancels the sleep.

Linux counterpart: struct task_struct in include/linux/sched.h; kernel/timer.c schedule_timeout.
Invariants: debts are never negative; only the scheduler writes what is below "the scheduler's".
Left out: threads that share memory, groups, sessions, credentials; signals but SIGKILL, and SIGCHLD
ignored.
"""

from collections.abc import Callable, Generator
from typing import Any, Final, TypeAlias, TypeVar

from sim.engine.calendar import Calendar
from sim.engine.trace import Tracer
from sim.sched.features import Features
from sim.sched.version import KernelVersion

T = TypeVar("T")
Blocking: TypeAlias = Generator[Any, Any, T]

TASK_RUNNING: Final = 0
TASK_INTERRUPTIBLE: Final = 1
TASK_UNINTERRUPTIBLE: Final = 2
TASK_NORMAL: Final = TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE
EXIT_ZOMBIE: Final = 16
EXIT_DEAD: Final = 32
STATE_LETTERS: Final = {0: "R", 1: "S", 2: "D", 16: "Z", 32: "X"}

SCHED_NORMAL: Final = 0
SCHED_BATCH: Final = 3
SCHED_IDLE: Final = 5

DEBT_LIMIT_NS: Final = 1_000_000  # cond_resched() burns what is above: one tick at HZ=1000.


class Killed(BaseException):
    """A task that has been killed goes no further; whoever catches it must raise it again."""


class Scheduler:
    """What tasks and run queues ask of the machine's scheduler above them (core.py)."""

    __slots__ = (
        "calendar",
        "current",
        "features",
        "grouped",
        "kernel",
        "nr_cpus",
        "overloaded",
        "restricted",
        "tick_ns",
        "tracer",
    )

    kernel: KernelVersion
    features: Features
    nr_cpus: int
    tick_ns: int

    def __init__(self, calendar: Calendar, tracer: Tracer | None) -> None:
        self.calendar = calendar
        self.tracer: Tracer = Tracer(calendar) if tracer is None else tracer
        self.current: Task | None = None  # whose generator is running
        # Tasks wait for a CPU, or did at the last look (rd->overload); see balance.py.
        self.overloaded: bool = False
        self.restricted: bool = False  # some task may not run everywhere
        self.grouped: bool = False  # tasks compete in groups

    def wake_up(self, task: "Task") -> bool:
        """Make the task runnable; return False when it was (try_to_wake_up)."""
        raise NotImplementedError

    def wake_up_for(self, waker: "Task", task: "Task") -> bool:
        """Wake `task` on behalf of `waker`, who works its debt off, if it still runs."""
        raise NotImplementedError

    def on_cpu(self, task: "Task") -> bool:
        """Return whether the task has a CPU (owner_on_cpu)."""
        raise NotImplementedError

    def kill(self, task: "Task") -> None:
        """Make a task that has been marked `killed` see it."""
        raise NotImplementedError

    def return_from_main(self, task: "Task") -> None:
        """The task's generator has returned."""
        raise NotImplementedError

    def wait_for(self, task: "Task", event: Any) -> None:
        """The task's generator has yielded a SimPy event."""
        raise NotImplementedError

    def send_outcome(self, task: "Task") -> Any:
        """Run the generator of a task that yielded an event before; return what it yields."""
        raise NotImplementedError

    def exited(self, task: "Task") -> None:
        """The task has left its CPU for good."""
        raise NotImplementedError

    def pull(self, cpu: int) -> None:
        """The CPU is about to go idle: move a waiting task to it, if the release would."""
        raise NotImplementedError

    def queue_grew(self) -> None:
        """A task waits on some CPU: an idle one may look for it."""
        raise NotImplementedError

    def process_timeout(self, task: "Task") -> None:
        """Wake the task: the handler of a timer that was set for it."""
        self.wake_up(task)


class Task:
    """One task (struct task_struct)."""

    __slots__ = (
        "allowed",
        "at_exit",
        "blkcg",
        "cancelled_write_bytes",
        "children",
        "comm",
        "cpu",
        "deadline",
        "flips_halved_ns",
        "gen",
        "group",
        "happening",
        "ignores_sigchld",
        "in_iowait",
        "is_kthread",
        "killed",
        "last_ran_ns",
        "last_wakee",
        "memcg",
        "nice",
        "nivcsw",
        "nvcsw",
        "on_rq",
        "parent",
        "pid",
        "policy",
        "prio",
        "sched",
        "sched_delayed",
        "sleep_avg_ns",
        "slice_ns",
        "start_ns",
        "state",
        "stime_ns",
        "system_debt_ns",
        "time_slice_ns",
        "user_debt_ns",
        "util_avg",
        "util_ns",
        "util_ran_ns",
        "utime_ns",
        "vlag",
        "vruntime",
        "waiting_on",
        "wakee_flips",
        "wchan",
        "weight",
        "write_bytes",
    )

    def __init__(
        self, sched: Scheduler, pid: int, comm: str, parent: "Task | None", nice: int, weight: int
    ) -> None:
        self.sched = sched
        self.pid = pid
        self.comm = comm
        self.parent = parent
        self.nice = nice
        self.weight = weight
        self.state: int = TASK_RUNNING
        self.wchan: str = ""  # where it sleeps, or last slept
        self.in_iowait: bool = False
        self.ignores_sigchld: bool = False  # its children vanish at exit
        self.killed: bool = False  # SIGKILL is pending: it dies when it next leaves the kernel
        self.at_exit: Callable[[Task], None] | None = None  # what its end costs, and undoes
        self.user_debt_ns: int = 0
        self.system_debt_ns: int = 0
        self.waiting_on: list[Task] | None = None  # the waiters of the queue that it is on
        self.children: dict[int, Task] = {}  # not yet reaped, by pid
        # The scheduler's.
        self.gen: Blocking[None] | None = None
        self.happening: Any = None  # the SimPy event it waits for
        self.is_kthread: bool = False
        self.allowed: frozenset[int] | None = None  # CPUs that it may run on; None: all
        self.group: str = ""  # the name of the group that it competes in; "" for none
        self.memcg: Any = None  # the memory cgroup (sim.mm's) that its pages count in
        self.blkcg: Any = None  # the cgroup of block I/O (sim.block's); None: the root group
        self.policy: int = SCHED_NORMAL
        self.cpu: int = 0  # where it runs, or ran last
        self.on_rq: bool = False
        self.vruntime: int = 0  # of the fair class,
        self.slice_ns: int = 0  # that it asks for itself (sched_setattr); 0: the release's
        self.deadline: int = 0  # of EEVDF, as are the next two
        self.vlag: int = 0
        self.sched_delayed: bool = False
        self.prio: int = 120 + nice  # of the O(1) scheduler, as are the next two
        self.time_slice_ns: int = 0
        self.sleep_avg_ns: int = 0
        self.utime_ns: int = 0
        self.stime_ns: int = 0
        self.nvcsw: int = 0  # switches away because it slept
        self.nivcsw: int = 0  # and because it was preempted
        # Bytes that it made to be written (pages became dirty, or went past the page cache), and
        # that its truncates saved from that (task_io_accounting).
        self.write_bytes: int = 0
        self.cancelled_write_bytes: int = 0
        self.start_ns: int = sched.calendar.now
        self.last_ran_ns: int = 0
        self.last_wakee: Task | None = None  # whom it woke last, and
        self.wakee_flips: int = 0  # how often that was another one
        self.flips_halved_ns: int = 0
        self.util_avg: float = 0.5  # what it has used of a CPU (pelt.py), up to
        self.util_ns: int = sched.calendar.now  # this time, when it had run
        self.util_ran_ns: int = 0  # for so long

    @property
    def ppid(self) -> int:
        """Return the parent's pid, 0 for the first tasks."""
        return 0 if self.parent is None else self.parent.pid

    @property
    def state_letter(self) -> str:
        """Return the state as ps prints it."""
        return STATE_LETTERS[self.state]

    def charge_user(self, ns: int) -> None:
        """Owe `ns` of user time."""
        self.user_debt_ns += ns

    def charge_system(self, ns: int) -> None:
        """Owe `ns` of system time."""
        self.system_debt_ns += ns

    def set_state(self, state: int, wchan: str = "") -> None:
        """Announce a sleep; the following ``yield`` is it (set_current_state)."""
        self.state = state
        self.wchan = wchan

    def cond_resched(self) -> Blocking[None]:
        """Burn the debt if it is above DEBT_LIMIT_NS; others may run meanwhile."""
        if self.user_debt_ns + self.system_debt_ns > DEBT_LIMIT_NS:
            yield

    def __repr__(self) -> str:
        return f"{self.comm}[{self.pid}] {self.state_letter} {self.wchan}"


def no_wait() -> Blocking[None]:
    """Do nothing, without sleeping."""
    return
    yield


def sleep_ns(task: Task, ns: int, state: int, wchan: str = "schedule_timeout") -> Blocking[None]:
    """Sleep for `ns`, or less if something else wakes the task."""
    sched = task.sched
    task.state = state
    task.wchan = wchan
    timer = sched.calendar.call_after(ns, sched.process_timeout, task)
    yield
    timer.cancel()
