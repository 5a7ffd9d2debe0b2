"""One CPU: its current task, the tasks that wait for it, and what its time was spent on.

Theory of operation. The current task is either being *resumed* (its generator runs, which takes no
simulated time and leaves a debt) or *burns* that debt until a timer. A task that wakes owes a
context switch, so the cycle of a task that does little is two bursts, and one calendar entry if
nothing else happens on the machine meanwhile (Calendar.advance):

    wake_up -> burn the switch -> resume the generator -> burn what it owes -> sleep -> next task

Slices need no ticks: the timer is set to the end of the debt, or, if others wait, to the tick at
which Linux would find the slice used up. Whoever changes what the timer was computed from starts
the burst anew; the old timer's entry stays in the calendar with an outdated number and is ignored.

With ``preemption = "none"`` a task that burns system time keeps the CPU from who is woken until it
sleeps or, being no kernel thread, has burnt it all: it is on its way back to its program then. With
"lazy" it keeps it until then or until the next tick (TIF_NEED_RESCHED_LAZY), if that comes before.

Linux counterpart: struct rq, schedule(), scheduler_tick() in kernel/sched.c; preempt_schedule().
Invariants: an idle CPU has an empty queue. clock_ns is when the time was last accounted for; the
 columns of CpuTime sum to it. nr_iowait is the number of tasks that went to sleep here in
 io_schedule() and have not been woken.
Left out: real-time classes, hot-plug; cond_resched() of CONFIG_PREEMPT_VOLUNTARY; that the end of
 a slice, too, would wait for the kernel's code.
"""

from collections.abc import Callable
from typing import Any, Final

from sim.sched.cputime import CpuTime
from sim.sched.params import PREEMPT_FULL, PREEMPT_LAZY, SchedParams
from sim.sched.sched_class import SchedClass
from sim.sched.task import Killed, Scheduler, Task
from sim.units import NS_PER_S

SPINNING_RESUMES: Final = 100_000  # A task that goes on so often at no cost would never end.


class RunQueue:
    """One CPU (struct rq)."""

    __slots__ = (
        "_burst_ends_ns",
        "_calendar",
        "_domain",
        "_expire_fn",
        "_expiring",
        "_generation",
        "_lazy",
        "_need_resched",
        "_next_tick_ns",
        "_preemptible",
        "_resuming",
        "_step_ns",
        "_switch_ns",
        "_tick_load",
        "_tick_ns",
        "_tracer",
        "clock_ns",
        "cpu",
        "cpu_time",
        "curr",
        "last",
        "nr_iowait",
        "nr_switches",
        "queue",
        "stolen_ns",
    )

    def __init__(self, domain: Scheduler, cpu: int, queue: SchedClass, params: SchedParams) -> None:
        self._step_ns = NS_PER_S // params.hz if params.notsc else 0  # of sched_clock(); 0: exact
        self._preemptible: bool = params.preemption == PREEMPT_FULL  # in the kernel's code
        self._lazy: bool = params.preemption == PREEMPT_LAZY  # there by the next tick only
        self._domain = domain
        self._calendar = domain.calendar
        self._tracer = domain.tracer
        self.cpu = cpu
        self.queue = queue
        self._switch_ns = params.context_switch_ns
        self._tick_ns = NS_PER_S // params.hz
        self.cpu_time = CpuTime()
        self.curr: Task | None = None
        self.last: Task | None = None  # who ran last, or runs
        self.nr_iowait: int = 0
        self.nr_switches: int = 0
        self.clock_ns: int = domain.calendar.now
        self._tick_load: int = 0  # load() at the last tick
        self._next_tick_ns: int = 0
        self.stolen_ns: int = 0  # interrupt time not yet taken off somebody's time
        self._burst_ends_ns: int = -1  # -1: the CPU is idle
        self._generation: int = 0  # of the timer in force
        self._expiring: bool = False  # _expire() will see to the timer
        self._resuming: bool = False
        self._need_resched: bool = False
        self._expire_fn: Any = self._expire  # Bound once: 1.05x in a wake and sleep cycle.

    def nr_running(self) -> int:
        """Return how many tasks run or wait here."""
        return self.queue.nr_queued + (self.curr is not None)

    def load(self) -> int:
        """Return the weights of the tasks that run or wait here; 1024 is one task of nice 0."""
        return self.queue.total_load(self.curr)

    def source_load(self) -> int:
        """Return a low guess of the load: of now or of the last tick, the smaller."""
        if self.curr is None and not self.queue.nr_queued:
            now = self._calendar.now
            if now >= self._next_tick_ns and now != self.clock_ns:
                self._pass_tick(now)
            return 0  # Nothing to account for that can't wait.
        if self.clock_ns != self._calendar.now:
            self.account()
        load = self.load()
        return load if load < self._tick_load else self._tick_load

    def target_load(self) -> int:
        """Return a high guess of the load: of now or of the last tick, the larger."""
        if self.clock_ns != self._calendar.now:
            self.account()
        load = self.load()
        return load if load > self._tick_load else self._tick_load

    # -- Waking

    def activate(self, task: Task) -> None:
        """Run the task, or queue it; it has its place (activate_task, check_preempt_curr)."""
        task.on_rq = True
        task.cpu = self.cpu
        curr = self.curr
        if curr is None:
            if self.clock_ns != self._calendar.now:
                self.account()
            if self.queue.run_alone(task):
                self._switch_to(task)
            return
        if self._resuming:
            self._need_resched = self._need_resched or self.queue.preempts(curr, task)
            self.queue.enqueue(task)
        else:
            self.account()
            preempts = self.queue.preempts(curr, task)
            self.queue.enqueue(task)
            if preempts and (self._preemptible or curr.user_debt_ns):
                self._preempt(curr)
            elif preempts:
                self._need_resched = True
                if self._lazy:
                    self._limit_burst(curr)
            else:
                self._limit_burst(curr)
        self._domain.queue_grew()

    def attach(self, task: Task) -> None:
        """Take a task over from another CPU; this one is idle or has others (pull_task)."""
        task.cpu = self.cpu
        self.queue.migrate_in(task)
        if self.curr is not None:
            self.account()
            self.queue.enqueue(task)
            if not self._resuming:
                self._limit_burst(self.curr)
        else:
            self.queue.enqueue(task)

    def detach(self, task: Task) -> None:
        """Give a waiting task away."""
        self.queue.dequeue(task)
        self.queue.migrate_out(task)

    def give_up(self) -> Task:
        """Take the current task off this CPU, for another one to run."""
        task = self.curr
        assert task is not None
        assert not self._resuming
        self.account()
        task.nivcsw += 1
        task.last_ran_ns = self.clock_ns
        self.queue.requeue(task)
        self.detach(task)
        self.curr = None
        self._run_next_or_none()
        return task

    def run_attached(self) -> None:
        """Start what was attached while this CPU was idle."""
        if self.curr is None and self.queue.nr_queued:
            self.account()
            self._run_next()

    def resched(self) -> None:
        """Make the current task give way to the queued ones, at once or at its next yield."""
        curr = self.curr
        if curr is None or not self.queue.nr_queued:
            return
        if self._resuming:
            self._need_resched = True
        else:
            self.account()
            self._preempt(curr)

    def end_spin(self, task: Task) -> None:
        """Let a task go on that burns a debt for nothing but to wait (a loop of cpu_relax())."""
        self.account()
        task.user_debt_ns = task.system_debt_ns = 0
        if self.curr is task and not self._resuming:
            self._start_burst(task)

    def unthrottled(self, come_back: Callable[[], None]) -> None:
        """Let a group of tasks come back to this queue; run them if nobody else does."""
        self.account()
        come_back()
        if self.curr is None:
            self.run_attached()
        elif not self._resuming:
            self._limit_burst(self.curr)
        if self.queue.nr_queued:
            self._domain.queue_grew()

    # -- Time

    def account(self) -> None:
        """Bring everything that is measured in time up to now (update_rq_clock, update_curr)."""
        now = self._calendar.now
        elapsed = now - self.clock_ns
        if not elapsed:
            return
        self.clock_ns = now
        if now >= self._next_tick_ns:
            self._pass_tick(now)
        own = elapsed
        if self.stolen_ns:
            stolen = self.stolen_ns
            if stolen > elapsed:
                stolen = elapsed
            self.stolen_ns -= stolen
            self.cpu_time.softirq_ns += stolen
            own = elapsed - stolen
        task = self.curr
        if task is None:
            if self.nr_iowait:
                self.cpu_time.iowait_ns += own
            else:
                self.cpu_time.idle_ns += own
            return
        self.queue.account(task, self._steps_ns(now, elapsed) if self._step_ns else own)
        if task.user_debt_ns:
            own -= self._burn_user(task, own)
        left = task.system_debt_ns - own
        assert left >= 0
        task.system_debt_ns = left
        task.stime_ns += own
        self.cpu_time.system_ns += own

    def _steps_ns(self, now: int, elapsed: int) -> int:
        """Return what of the last `elapsed` a clock shows that goes on in steps."""
        step_ns = self._step_ns
        return (now // step_ns - (now - elapsed) // step_ns) * step_ns

    def interrupted(self, ns: int) -> None:
        """Serve an interrupt that takes `ns`, of whatever runs here.

        While the CPU serves earlier ones, all time since is theirs: that can be told later.
        """
        if ns:
            if self._calendar.now - self.clock_ns > self.stolen_ns:
                self.account()
            self.stolen_ns += ns

    def _pass_tick(self, now: int) -> None:
        """Note the load of the last tick: it is that of now, nothing has changed since."""
        self._tick_load = self.queue.total_load(self.curr)
        self._next_tick_ns = (now // self._tick_ns + 1) * self._tick_ns

    def _burn_user(self, task: Task, ns: int) -> int:
        """Work off at most `ns` of the task's debt of user time, which comes first."""
        user = task.user_debt_ns
        if user > ns:
            user = ns
        task.user_debt_ns -= user
        task.utime_ns += user
        if task.nice > 0:
            self.cpu_time.nice_ns += user
        else:
            self.cpu_time.user_ns += user
        return user

    # -- The current task

    def _run_next(self) -> None:
        """Run the next of those that wait."""
        task = self.queue.pick_next()
        assert task is not None
        self._switch_to(task)

    def _switch_to(self, task: Task) -> None:
        """Make `task` current (context_switch)."""
        self.curr = task
        if task is not self.last:
            self.nr_switches += 1
            if self._tracer.enabled:
                self._trace_switch(task.comm, task.pid)
            self.last = task
            task.system_debt_ns += self._switch_ns
        self._need_resched = False
        self._start_burst(task)

    def _trace_switch(self, comm: str, pid: int) -> None:
        """Record a switch from `last` (None: idle) to that task."""
        last = self.last
        if last is None:
            self._tracer.emit("sched_switch", self.cpu, "swapper", 0, "R", comm, pid, "", 0, 0)
            return
        # A preempted task is runnable, whatever it was about to do.
        letter = "R" if last.on_rq else last.state_letter
        self._tracer.emit(
            "sched_switch",
            self.cpu,
            last.comm,
            last.pid,
            letter,
            comm,
            pid,
            last.wchan,
            last.utime_ns,
            last.stime_ns,
        )

    def _start_burst(self, task: Task) -> None:
        """Set the timer to when the debt will be burnt or the slice is over."""
        delay = task.user_debt_ns + task.system_debt_ns + self.stolen_ns
        queue = self.queue
        if queue.nr_queued or queue.bounded:
            left = self._slice_left_ns(task)
            if left < delay:
                delay = left
        ends_ns = self._burst_ends_ns = self.clock_ns + delay
        if not self._expiring:  # A timer set before is void.
            self._generation = generation = self._generation + 1
            self._calendar.post_at(ends_ns, self._expire_fn, generation)

    def _slice_left_ns(self, task: Task) -> int:
        """Return how long until the tick that ends the slice."""
        left = self.queue.slice_left_ns(task)
        if self._lazy and self._need_resched:
            left = 0
        tick_ns = self._tick_ns
        ends_ns = self.clock_ns + left if left > 0 else self.clock_ns
        return -(-ends_ns // tick_ns) * tick_ns - self.clock_ns

    def _limit_burst(self, task: Task) -> None:
        """The queue has grown: let the burst end earlier if the slice does."""
        if self.clock_ns + self._slice_left_ns(task) < self._burst_ends_ns:
            self._start_burst(task)

    def _expire(self, generation: int) -> None:
        """Go on from burst to burst, by timer where something else happens in between."""
        if generation != self._generation:
            return
        calendar = self._calendar
        queue = self.queue
        self._expiring = True
        while True:
            # The debt is burnt, or the slice is over: go on, or let another task run.
            task = self.curr
            assert task is not None
            self.account()
            if task.system_debt_ns or task.user_debt_ns:
                if (queue.nr_queued or queue.bounded) and self._slice_left_ns(task) == 0:
                    self._preempt(task)
                else:
                    self._start_burst(task)
            elif task.state:  # not TASK_RUNNING
                self._put_asleep(task)
            elif (queue.nr_queued or queue.bounded) and (
                self._returns_late(task) or self._slice_left_ns(task) == 0
            ):
                self._preempt(task)
            else:
                self._resume(task)
            ends_ns = self._burst_ends_ns
            if ends_ns < 0:
                break
            if not calendar.advance(ends_ns):
                self._generation = generation = self._generation + 1
                calendar.post_at(ends_ns, self._expire_fn, generation)
                break
        self._expiring = False

    def _resume(self, task: Task) -> None:
        """Let the task compute, sleep or exit: run its generator until there is a debt to burn."""
        domain = self._domain
        gen = task.gen
        assert gen is not None
        self._resuming = True
        domain.current = task
        resumes = 0
        event: Any = None
        try:
            while True:
                if task.happening is not None:
                    event = domain.send_outcome(task)
                else:
                    for happening in gen:  # next(gen) without look-ups: 1.02x, compiled storm.
                        event = happening
                        break
                    else:
                        domain.return_from_main(task)
                        break
                if event is not None:
                    domain.wait_for(task, event)
                if task.state or task.system_debt_ns or task.user_debt_ns:
                    break
                resumes += 1
                if resumes == SPINNING_RESUMES:
                    raise RuntimeError(f"{task} goes on for ever without using CPU time")
        except StopIteration:
            domain.return_from_main(task)
        except Killed:
            domain.return_from_main(task)
        except Exception as error:
            seconds = self._calendar.now / NS_PER_S
            error.add_note(f"in task {task!r} at {seconds:.9f} s")
            raise
        finally:
            domain.current = None
        self._resuming = False
        if not task.system_debt_ns and not task.user_debt_ns:
            self._put_asleep(task)
        elif (
            self._need_resched and self.queue.nr_queued and (self._preemptible or task.user_debt_ns)
        ):
            self._preempt(task)
        else:
            self._start_burst(task)

    def _returns_late(self, task: Task) -> bool:
        """Whether the task goes back to its program, and somebody could not have its CPU before."""
        return (
            self._need_resched
            and not self._preemptible
            and not task.is_kthread
            and self.queue.nr_queued > 0
        )

    def _preempt(self, task: Task) -> None:
        """Queue the current task again and run the next, if its group's quota leaves any."""
        task.nivcsw += 1
        task.last_ran_ns = self.clock_ns
        self.queue.requeue(task)
        if self.queue.nr_queued:
            self._run_next()
            return
        self.curr = None
        if self._domain.overloaded:
            self._domain.pull(self.cpu)
        self._run_next_or_none()

    def _run_next_or_none(self) -> None:
        """Go on after a task whose burst has not ended."""
        if self.queue.nr_queued:
            self._run_next()
        else:
            self._generation += 1  # A timer set before is void: nobody's burst ends.
            self._go_idle()

    def _put_asleep(self, task: Task) -> None:
        """Take the current task off the CPU: its debt is burnt and it is not runnable."""
        queue = self.queue
        task.on_rq = False
        task.last_ran_ns = self.clock_ns
        task.nvcsw += 1
        if task.gen is None:
            self._resuming = True  # A parent that this wakes is queued like any other.
            self._domain.exited(task)
            self._resuming = False
        elif task.in_iowait:
            self.nr_iowait += 1
        self.curr = None
        if queue.told_of_sleep:
            queue.put_to_sleep(task)
        if queue.nr_queued:
            self._run_next()
            return
        if self._domain.overloaded:
            self._domain.pull(self.cpu)
            if queue.nr_queued:
                self._run_next()
                return
        self._go_idle()

    def _go_idle(self) -> None:
        """Run nobody."""
        self._burst_ends_ns = -1
        self.nr_switches += 1
        if self._tracer.enabled:
            self._trace_switch("swapper", 0)
        self.last = None
