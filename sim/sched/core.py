"""The scheduler of one machine: its CPUs, and the tasks that run, sleep and wake on them.

Models: the run queues of all CPUs (runqueue.py), which of them a task wakes on (select_cpu.py),
what idle CPUs pull (balance.py), and a task's life from fork to exit (process.py).
Linux counterpart: kernel/sched.c: try_to_wake_up, sched_fork, wake_up_new_task, nr_running.
Invariants: a task is on exactly one run queue, or asleep, or dead; nr_uninterruptible is the number
 of tasks asleep in TASK_UNINTERRUPTIBLE, the sum of the CPUs' nr_iowait that of the sleepers in
 io_schedule().
Left out: signals, real-time priorities; changing a task's terms once it runs.

A task may also wait for something outside the kernel: ``value = yield event`` with a SimPy event is
an interruptible sleep until it is processed; a failed event raises its exception in the task.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from sim.engine.calendar import Calendar
from sim.engine.environment import call_when
from sim.engine.rng import Streams
from sim.engine.trace import Tracer
from sim.sched.balance import Balancer
from sim.sched.cputime import CpuTime
from sim.sched.eevdf import EevdfQueue, eevdf_tunables
from sim.sched.fair import FairQueue, fair_tunables, nice_to_weight
from sim.sched.features import WAKE_IDLE_SIBLING, features
from sim.sched.group_queue import GroupQueue
from sim.sched.params import SchedParams
from sim.sched.prio_array import PrioArrays
from sim.sched.process import ProcessTable
from sim.sched.runqueue import RunQueue
from sim.sched.sched_class import SchedClass
from sim.sched.select_cpu import (
    allowed_of,
    idle_sibling,
    idlest,
    record_wakee,
    wake_affine,
    wake_wide,
)
from sim.sched.smt import idle_core, idlest_core
from sim.sched.syscalls import SchedAttr
from sim.sched.task import (
    EXIT_ZOMBIE,
    SCHED_IDLE,
    TASK_INTERRUPTIBLE,
    TASK_NORMAL,
    TASK_RUNNING,
    TASK_UNINTERRUPTIBLE,
    Blocking,
    Scheduler,
    Task,
    no_wait,
)
from sim.sched.task_group import TaskGroup
from sim.sched.version import KernelVersion
from sim.units import NS_PER_S


class Sched(Scheduler):
    """The scheduler of one machine."""

    __slots__ = (
        "_balancer",
        "_wake_idle",
        "_wake_wide",
        "interrupted_ns",
        "interrupted_rq",
        "nr_interrupts",
        "params",
        "processes",
        "rqs",
        "siblings",
    )

    def __init__(
        self,
        calendar: Calendar,
        nr_cpus: int,
        kernel: KernelVersion,
        params: SchedParams | None = None,
        tracer: Tracer | None = None,
        chance: Random | None = None,
    ) -> None:
        super().__init__(calendar, tracer)
        if nr_cpus < 1:
            raise ValueError(f"{nr_cpus} CPUs: at least one is needed")
        self.nr_cpus = nr_cpus
        self.kernel = kernel
        self.params = SchedParams() if params is None else params
        self.tick_ns = NS_PER_S // self.params.hz
        self.processes = ProcessTable()
        self.nr_interrupts: int = 0
        self.features = features(kernel)
        self._wake_wide: bool = self.features.wake_wide
        self._wake_idle: bool = self.features.wake == WAKE_IDLE_SIBLING
        self.siblings: list[RunQueue] = []  # each CPU's, where cores have two threads
        self.rqs: list[RunQueue] = [self._make_rq(cpu) for cpu in range(nr_cpus)]
        self.interrupted_rq: RunQueue = self.rqs[0]  # which CPU served the last interrupt,
        self.interrupted_ns: int = -1  # and when: wake-ups of then come from there
        if chance is None:  # sched_rng()
            chance = Streams(0).stream("sched.newidle")
        self._balancer = Balancer(self, self.rqs, self.features, self.tick_ns, chance)

    def _make_queue(self) -> SchedClass:
        """Return an empty queue of the release's class."""
        if self.features.prio_array:
            return PrioArrays(self.nr_cpus)
        if self.features.eevdf:
            return EevdfQueue(eevdf_tunables(self.kernel, self.nr_cpus), self.tick_ns)
        tunables = fair_tunables(self.kernel, self.nr_cpus)
        return FairQueue(tunables, child_first=self.features.child_runs_first)

    def _make_rq(self, cpu: int) -> RunQueue:
        return RunQueue(self, cpu, self._make_queue(), self.params)

    # -- A task's life

    def spawn(
        self,
        comm: str,
        main: Callable[[Task], Blocking[None]],
        parent: Task | None = None,
        nice: int = 0,
        terms: SchedAttr | None = None,
    ) -> Task:
        """Start a task that runs ``main(task)``; the cost of forking is its parent's to charge.

        A child competes on its parent's terms, a task without a parent on `terms`, if any.
        """
        task = self.processes.create(self, comm, parent, nice, nice_to_weight(nice))
        task.gen = main(task)
        if parent is not None:
            task.allowed = parent.allowed
            task.group = parent.group
            task.policy = parent.policy
            task.slice_ns = parent.slice_ns
            if task.policy == SCHED_IDLE:
                task.weight = parent.weight
        elif terms is not None:
            self._set_terms(task, terms)
        if self.tracer.enabled:
            by = ("swapper", 0) if parent is None else (parent.comm, parent.pid)
            self.tracer.emit("sched_process_fork", *by, comm, task.pid)
        rq = self._select_new(parent, task.allowed)
        curr = self.current
        rq.account()
        rq.queue.place_new(task, rq.curr)
        rq.activate(task)
        if curr is not None and curr.cpu == rq.cpu and self.features.child_runs_first:
            rq.resched()
        return task

    def _set_terms(self, task: Task, terms: SchedAttr) -> None:
        """Have a new task compete on these terms."""
        task.policy = terms.policy
        task.slice_ns = terms.slice_ns
        if terms.policy == SCHED_IDLE:
            task.weight = self.features.idle_weight
        if terms.group is not None:
            task.group = terms.group.name
        task.allowed = terms.allowed
        if terms.allowed is not None:
            self.restricted = True

    def _select_new(self, parent: Task | None, allowed: frozenset[int] | None) -> RunQueue:
        """Return where a new task starts (sched_fork, sched_balance_self)."""
        if parent is None:
            rqs = self.rqs if allowed is None else allowed_of(self.rqs, allowed)
            return self._idlest(rqs[0], rqs)
        rq = self.rqs[parent.cpu]
        if not self.features.balance_fork:
            return rq
        return self._idlest(rq, self.rqs if allowed is None else allowed_of(self.rqs, allowed))

    def _idlest(self, parent: RunQueue, rqs: list[RunQueue]) -> RunQueue:
        """Return the idlest of `rqs`, by core where these have two threads."""
        if self.siblings:
            return idlest_core(parent, rqs, self.siblings)
        return idlest(parent, rqs)

    def add_groups(self, groups: list[TaskGroup]) -> None:
        """Have tasks compete in groups, parents named before children; before any task runs."""
        self.grouped = True
        for rq in self.rqs:
            assert rq.curr is None
            assert not rq.queue.nr_queued
            rq.queue = GroupQueue(self, self._make_queue, groups, rq.unthrottled)

    def waitpid(self, task: Task, pid: int) -> Blocking[None]:
        """Wait until that child has exited, and reap it; ChildProcessError if there is none."""
        yield from self.processes.waitpid(task, pid)

    def wait(self, task: Task) -> Blocking[int]:
        """Wait until any child has exited, and reap it; ChildProcessError if there is none."""
        return (yield from self.processes.wait(task))

    # -- Waking

    def wake_up(self, task: Task) -> bool:
        """Make a sleeping task runnable; return False if it was not asleep (try_to_wake_up)."""
        state = task.state
        if not state & TASK_NORMAL:  # It runs, or is gone.
            return False
        task.state = TASK_RUNNING
        if task.on_rq:  # It was about to sleep.
            return True
        now = self.calendar.now
        rq = self.rqs[task.cpu]
        if task.in_iowait:
            if rq.clock_ns != now:
                rq.account()
            rq.nr_iowait -= 1
        if self.current is not None or self._wake_idle or task.allowed is not None:
            if self.nr_cpus > 1 and not task.sched_delayed:  # One who is still queued stays there.
                rq = self._move(task, rq, self._select_woken(task, rq, now))
        elif self.interrupted_rq is not rq and self.interrupted_ns == now:
            # By an interrupt, to a release that looks no further: _select_woken() without the call.
            rq = self._move(task, rq, wake_affine(self.interrupted_rq, rq))
        if self.tracer.enabled:
            by = 0 if self.current is None else self.current.pid
            self.tracer.emit("sched_wakeup", task.comm, task.pid, rq.cpu, by)
        rq.queue.place_woken(task, state, now)
        rq.activate(task)
        return True

    def wake_up_for(self, waker: Task, task: Task) -> bool:
        """Wake `task` from the CPU of `waker`, who works its debt off, if it still runs."""
        if self.current is not None or not self.on_cpu(waker):
            return self.wake_up(task)
        self.current = waker
        woken = self.wake_up(task)
        self.current = None
        return woken

    def end_spin(self, task: Task) -> None:
        """What the task spun for is there: it owes no more of the time it meant to spin."""
        self.rqs[task.cpu].end_spin(task)

    def on_cpu(self, task: Task) -> bool:
        """Return whether the task has a CPU."""
        return self.rqs[task.cpu].curr is task

    def _move(self, task: Task, previous: RunQueue, rq: RunQueue) -> RunQueue:
        """Take a task that wakes to `rq`, which is returned (set_task_cpu)."""
        if rq is not previous:
            previous.queue.migrate_out(task)
            rq.queue.migrate_in(task)
        return rq

    def _select_woken(self, task: Task, previous: RunQueue, now: int) -> RunQueue:
        """Return the CPU on which a task wakes that last ran on `previous`.

        With an affinity it is what the release chooses, if that is one of its CPUs; else an idle
        one of these, or the one with the fewest tasks (select_fallback_rq).
        """
        rq = self._select_among_all(task, previous, now)
        allowed = task.allowed
        if allowed is None or (rq.cpu in allowed and (rq.curr is None or not self._wake_idle)):
            return rq
        return self._idlest(previous, allowed_of(self.rqs, allowed))

    def _select_among_all(self, task: Task, previous: RunQueue, now: int) -> RunQueue:
        """Return what the release chooses for a task that may run everywhere."""
        current = self.current
        wide = False
        if current is not None:
            waker = self.rqs[current.cpu]
            if self._wake_wide:
                record_wakee(current, task, now)
                wide = wake_wide(current, self.nr_cpus)
        elif self.interrupted_ns == now:
            waker = self.interrupted_rq
        else:
            waker = previous  # Its own timer went off there.
        if self._wake_idle:
            if self.siblings and previous.curr is not None and waker.curr is not None:
                idle = idle_core(self.rqs, self.siblings)
                if idle is not None:
                    return idle
            return idle_sibling(waker, previous, self.rqs, wide)
        return previous if waker is previous else wake_affine(waker, previous)

    def kill(self, task: Task) -> None:
        """Have a task that is marked `killed` end: at once if it sleeps where signals wake.

        Others end when they leave the kernel (syscall.py) or next fault.
        """
        gen = task.gen
        if task.state != TASK_INTERRUPTIBLE or gen is None:
            return
        if task.on_rq:  # It is about to sleep: it does not (signal_pending).
            self.wake_up(task)
            return
        gen.close()
        if task.waiting_on is not None:
            task.waiting_on.remove(task)
            task.waiting_on = None
        task.happening = None
        task.gen = no_wait()
        self.wake_up(task)
        task.in_iowait = False

    # -- What the run queues ask

    def return_from_main(self, task: Task) -> None:
        """The task has nothing more to do."""
        at_exit = task.at_exit
        if at_exit is not None:
            task.at_exit = None
            at_exit(task)
        task.gen = None
        task.state = EXIT_ZOMBIE

    def wait_for(self, task: Task, event: Any) -> None:
        """Let the task sleep until a SimPy event is processed."""
        task.happening = event
        task.set_state(TASK_INTERRUPTIBLE, "simpy")
        call_when(event, self._happened, task)

    def send_outcome(self, task: Task) -> Any:
        """Go on after a SimPy event: with its value, or with its exception."""
        event = task.happening
        gen = task.gen
        assert gen is not None
        if event.callbacks is not None:  # Woken by something else: wait on.
            task.set_state(TASK_INTERRUPTIBLE, "simpy")
            return None
        task.happening = None
        if event.ok:
            return gen.send(event.value)
        return gen.throw(event.value)

    def _happened(self, task: Task) -> None:
        """A SimPy event is processed: wake who waits for it, and answer for its failure."""
        if not task.happening.ok:
            task.happening.defused = True
        self.wake_up(task)

    def exited(self, task: Task) -> None:
        """Tell the parent."""
        if self.tracer.enabled:
            self.tracer.emit("sched_process_exit", task.comm, task.pid)
        self.processes.exit_notify(task)

    def pull(self, cpu: int) -> None:
        """Look for work on other CPUs."""
        self._balancer.newidle(self.rqs[cpu])

    def queue_grew(self) -> None:
        """Let idle CPUs look at the next tick."""
        if self.nr_cpus > 1:
            self._balancer.queue_grew()

    # -- What /proc shows

    def update(self) -> None:
        """Bring the CPUs' times up to now; call it before reading them."""
        for rq in self.rqs:
            rq.account()

    @property
    def cpu_times(self) -> list[CpuTime]:
        """Return the CPUs' times, up to date now; the objects stay, see update()."""
        self.update()
        return [rq.cpu_time for rq in self.rqs]

    @property
    def nr_running(self) -> int:
        """Return how many tasks run or wait for a CPU."""
        running = 0
        for rq in self.rqs:
            running += rq.nr_running()
        return running

    @property
    def nr_uninterruptible(self) -> int:
        """Return how many tasks sleep in TASK_UNINTERRUPTIBLE."""
        tasks = self.processes.tasks.values()
        return sum(task.state & TASK_UNINTERRUPTIBLE != 0 and not task.on_rq for task in tasks)

    @property
    def nr_iowait(self) -> int:
        """Return how many tasks sleep inside io_schedule()."""
        waiting = 0
        for rq in self.rqs:
            waiting += rq.nr_iowait
        return waiting

    @property
    def nr_switches(self) -> int:
        """Return the number of context switches since boot."""
        switches = 0
        for rq in self.rqs:
            switches += rq.nr_switches
        return switches

    @property
    def nr_threads(self) -> int:
        """Return how many tasks exist, zombies included."""
        return len(self.processes.tasks)

    @property
    def last_pid(self) -> int:
        """Return the pid given out last."""
        return self.processes.last_pid

    @property
    def total_forks(self) -> int:
        """Return the number of tasks ever created."""
        return self.processes.total_forks
