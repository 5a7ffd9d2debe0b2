"""CPUs whose capacity changes: by their clock, idle states, a sibling, a hypervisor.

Models: work is measured in time at the base clock (the tasks' debts are that), time in time: at
half the clock a debt takes twice as long. A CPU that goes idle enters the state its governor says;
what wakes it, a task or an interrupt, waits for the exit latency first, in idle time. A guest's CPU
loses a share of its time to what the hypervisor makes dearer, one thread of a core to its sibling
(smt.py).
Linux counterpart: kernel/sched/idle.c (cpuidle_idle_call), arch_scale_freq_capacity; a CPU's speed
 is left to the hardware.
Invariants: the columns of CpuTime sum to the time, as on any CPU; the residencies of the idle
 states sum to idle and iowait time; a debt is worked off to the nanosecond, never below zero.
Left out: real exits from a core's idle state beside a busy sibling.

A machine without [machine.cpufreq], [machine.cpuidle], [machine.smt] and [machine.guest] has plain
RunQueues: this file costs it nothing.
"""

from math import gcd
from random import Random
from typing import Final

from sim.engine.calendar import Calendar
from sim.engine.trace import Tracer
from sim.sched.balance import ActiveBalance
from sim.sched.core import Sched
from sim.sched.cpufreq import Cpufreq, CpufreqParams, Load, Policy
from sim.sched.cpuidle import HOUSEKEEPING_NS, POLL, CpuidleParams, CState, HaltPoll, Menu, governor
from sim.sched.params import SchedParams
from sim.sched.pelt import decayed
from sim.sched.runqueue import RunQueue
from sim.sched.sched_class import SchedClass
from sim.sched.smt import SmtParams, sibling_of
from sim.sched.task import Scheduler, Task
from sim.sched.version import KernelVersion

PERMILLE: Final = 1000


class ClockedRunQueue(RunQueue):
    """One CPU with a clock and idle states."""

    __slots__ = (
        "_base_khz",
        "_clocked",
        "_denominator",
        "_exit_permille",
        "_far_ns",
        "_governor",
        "_idle_since_ns",
        "_numerator",
        "_overhead_permille",
        "_seen",
        "_share_permille",
        "_stall_permille",
        "_util",
        "_wake_state",
        "_waking_ns",
        "active_balance",
        "cycles",
        "idle_state",
        "khz",
        "policy",
        "residency_ns",
        "sibling",
        "states",
        "usage",
        "worked_ns",
    )

    def __init__(
        self,
        domain: Scheduler,
        cpu: int,
        queue: SchedClass,
        params: SchedParams,
        *,
        clocked: "Power",
        kernel: KernelVersion,
    ) -> None:
        super().__init__(domain, cpu, queue, params)
        clock, idle = clocked.cpufreq, clocked.cpuidle
        self._clocked = clocked
        self._base_khz: int = 1 if clock is None else clock.base_khz
        self._stall_permille: int = 0 if clock is None else round(clock.stall_share * PERMILLE)
        self._overhead_permille: int = clocked.overhead_permille
        self._numerator: int = 1  # work = time x numerator / denominator
        self._denominator: int = 1
        self.khz: int = self._base_khz
        self.policy: Policy | None = None
        self.worked_ns: int = 0  # in C0 (MPERF), and
        self.cycles: int = 0  # ns x kHz in C0 (APERF)
        self._util: float = 0.0
        self._seen: tuple[int, int, int, int] = (self.clock_ns, 0, 0, 0)  # at the last look
        self.states: tuple[CState, ...] = (POLL,) if idle is None else idle.states()
        self._far_ns: int = 0 if idle is None else HOUSEKEEPING_NS
        self._exit_permille: int = 0 if idle is None else round(idle.exit_scale * PERMILLE)
        self._governor: Menu | HaltPoll | None = None if idle is None else governor(idle, kernel)
        self.residency_ns: list[int] = [0] * len(self.states)
        self.usage: list[int] = [0] * len(self.states)
        self.idle_state: int = 0
        self._idle_since_ns: int = self.clock_ns  # or when it will be idle again, after interrupts
        self._waking_ns: int = 0  # what is left of an exit from an idle state; part of stolen_ns
        self._wake_state: int = 0  # which that was
        self.active_balance: ActiveBalance | None = None  # where cores have two threads
        self.sibling: ClockedRunQueue | None = None  # the other thread of its core, and
        self._share_permille: int = PERMILLE  # what that leaves of the core
        self.set_clock(self._base_khz)
        self._enter_idle(self.clock_ns)

    # -- The clock

    def set_clock(self, khz: int) -> None:
        """Run at `khz` from now on."""
        self.account()
        self.khz = khz
        stalls = self._stall_permille
        numerator = khz * PERMILLE * self._share_permille
        denominator = (PERMILLE - stalls) * self._base_khz + stalls * khz
        denominator *= PERMILLE + self._overhead_permille
        divisor = gcd(numerator, denominator)
        self._numerator = numerator // divisor
        self._denominator = denominator // divisor
        curr = self.curr
        if curr is not None and not self._resuming:
            self._start_burst(curr)

    def share_core(self, permille: int) -> None:
        """Have so much of the core from now on: the sibling has got work, or has none any more."""
        if permille != self._share_permille:
            self._share_permille = permille
            self.set_clock(self.khz)

    def time_ns(self, work_ns: int) -> int:
        """Return how long that work takes at the present clock, rounded up."""
        return -(-work_ns * self._denominator // self._numerator)

    def look(self) -> Load:
        """Return what the CPU did since the last look."""
        self.account()
        seen = (self.clock_ns, self.worked_ns, self.cpu_time.iowait_ns, self.cycles)
        wall, worked, iowait, cycles = self._seen
        self._seen = seen
        return Load(
            seen[0] - wall, seen[1] - worked, seen[2] - iowait, seen[3] - cycles, self._util
        )

    def is_idle(self) -> bool:
        """Return whether no task is on the CPU."""
        return self.curr is None

    # -- Time

    def account(self) -> None:
        """Bring everything up to now: RunQueue's part last, on debts told in time."""
        elapsed = self._calendar.now - self.clock_ns
        if elapsed == 0:
            return
        if self._waking_ns:
            elapsed -= self._wake_for(elapsed)
        if elapsed:
            stolen = self.stolen_ns if self.stolen_ns < elapsed else elapsed
            own = elapsed - stolen
            task = self.curr
            if task is None:
                self.residency_ns[self.idle_state] += own
                self._work(stolen)
                self._remember(own, 0.0)
            else:
                if own and self._numerator != self._denominator:
                    self._tell_in_time(task, own)
                self._work(elapsed)
        super().account()

    def _wake_for(self, elapsed: int) -> int:
        """Spend waking what is left of the exit latency; return how long, at most `elapsed`."""
        waking = self._waking_ns if self._waking_ns < elapsed else elapsed
        self._waking_ns -= waking
        self.stolen_ns -= waking
        self.clock_ns += waking
        self.cpu_time.idle_ns += waking
        self.residency_ns[self._wake_state] += waking
        self._remember(waking, 0.0)
        return waking

    def _work(self, ns: int) -> None:
        self.worked_ns += ns
        self.cycles += ns * self.khz
        self._remember(ns, self.khz / self._clocked.top_khz if self._clocked.invariant else 1.0)

    def _remember(self, ns: int, level: float) -> None:
        """Let the utilisation go towards `level` (accumulate_sum)."""
        if ns and self._clocked.remembers:
            self._util = decayed(self._util, level, ns)

    def _tell_in_time(self, task: Task, ns: int) -> None:
        """Change the debts so that burning `ns` off them leaves what work in `ns` leaves."""
        user_ns = self.time_ns(task.user_debt_ns)
        if ns < user_ns:
            task.user_debt_ns += ns - ns * self._numerator // self._denominator
            return
        task.user_debt_ns = user_ns
        ns -= user_ns
        work = ns * self._numerator // self._denominator
        if work > task.system_debt_ns:
            work = task.system_debt_ns
        task.system_debt_ns += ns - work

    def _start_burst(self, task: Task) -> None:
        """Set the timer as RunQueue does, with the debts told in time."""
        if self._numerator == self._denominator:
            super()._start_burst(task)
            return
        user, system = task.user_debt_ns, task.system_debt_ns
        task.user_debt_ns = self.time_ns(user)
        task.system_debt_ns = self.time_ns(system)
        super()._start_burst(task)
        task.user_debt_ns, task.system_debt_ns = user, system

    # -- Idle

    def activate(self, task: Task) -> None:
        """Wake the CPU if it sleeps, then run the task, or queue it."""
        if self.curr is None:
            self._leave_idle(self._clocked.interrupt_waits_ns(self.cpu, self._calendar.now))
            if self.sibling is not None:
                self._fill_core(self.sibling)
        super().activate(task)

    def run_attached(self) -> None:
        """Wake the CPU for what was attached to it."""
        if self.curr is None and self.queue.nr_queued:
            self._leave_idle(0)
            if self.sibling is not None:
                self._fill_core(self.sibling)
        super().run_attached()

    def _fill_core(self, sibling: "ClockedRunQueue") -> None:
        """Take half of the core from the other thread; look for an idle core if that is busy."""
        sibling.share_core(self._clocked.share_permille)
        if sibling.curr is not None and self.active_balance is not None:
            self.active_balance.look()

    def interrupted(self, ns: int) -> None:
        """Serve an interrupt; a CPU that sleeps wakes for it, and goes back to sleep."""
        if self.curr is not None:
            self.account()
            self.stolen_ns += self.time_ns(ns)
            return
        latency_ns = self._leave_idle(0)
        self._clocked.note_interrupt(self.cpu, self._calendar.now, latency_ns)
        self.stolen_ns += self.time_ns(ns)
        self._enter_idle(self._calendar.now + self.stolen_ns)

    def _leave_idle(self, delay_ns: int) -> int:
        """Begin to wake, `delay_ns` after now; return the exit latency of the state it was in."""
        self.account()
        latency_ns = 0
        idle_ns = self._calendar.now - self._idle_since_ns
        if idle_ns > 0:
            if self._governor is not None:
                self._note_polled(self._governor.reflect(idle_ns), idle_ns)
            state = self.states[self.idle_state]
            latency_ns = state.exit_latency_ns * self._exit_permille // PERMILLE
            self._wake_state = self.idle_state
            self.usage[self.idle_state] += 1
        self._waking_ns += latency_ns + delay_ns
        self.stolen_ns += latency_ns + delay_ns
        if self.policy is not None:
            self.policy.cpu_woke()
        return latency_ns

    def _note_polled(self, polled_ns: int, idle_ns: int) -> None:
        """Count as polling what came before the idle state; it may never have been entered."""
        if not polled_ns:
            return
        self.residency_ns[self.idle_state] -= polled_ns
        self.residency_ns[0] += polled_ns
        if polled_ns == idle_ns:
            self.idle_state = 0
        else:
            self.usage[0] += 1

    def _go_idle(self) -> None:
        super()._go_idle()
        self._enter_idle(self._calendar.now)
        if self.sibling is not None:
            self.sibling.share_core(PERMILLE)
            if self.sibling.curr is None and self.active_balance is not None:
                self.active_balance.look()

    def _enter_idle(self, since_ns: int) -> None:
        """Sleep from `since_ns` on, as deep as the governor says."""
        self._idle_since_ns = since_ns
        if self._governor is not None:
            timer_ns = self._calendar.next_timer_ns(self._is_mine, self._far_ns)
            self.idle_state = self._governor.select(timer_ns, self.nr_iowait)

    def _is_mine(self, arg: object) -> bool:
        """Whether a timer wakes a task of this CPU."""
        return isinstance(arg, Task) and arg.cpu == self.cpu


class Power:
    """What the CPUs of a machine have in common: parameters, and the interrupt of this moment."""

    def __init__(
        self,
        cpufreq: CpufreqParams | None = None,
        cpuidle: CpuidleParams | None = None,
        overhead_percent: float = 0.0,
        smt: SmtParams | None = None,
    ) -> None:
        self.cpufreq = cpufreq
        self.cpuidle = cpuidle
        self.overhead_permille: int = round(overhead_percent * 10)
        self.has_siblings: bool = smt is not None
        self.share_permille: int = PERMILLE if smt is None else smt.share_permille
        self.top_khz: int = 1 if cpufreq is None else cpufreq.table_khz()[-1]
        self.remembers: bool = False  # somebody asks for the utilisation
        self.invariant: bool = False
        self._interrupted_cpu: int = 0
        self._interrupted_ns: int = -1
        self._interrupt_waits_ns: int = 0

    def note_interrupt(self, cpu: int, now_ns: int, latency_ns: int) -> None:
        """An interrupt of now is served on `cpu` when that has woken."""
        if self._interrupted_ns == now_ns and self._interrupted_cpu == cpu:
            return  # It wakes already.
        self._interrupted_cpu = cpu
        self._interrupted_ns = now_ns
        self._interrupt_waits_ns = latency_ns

    def interrupt_waits_ns(self, cpu: int, now_ns: int) -> int:
        """Return how long a wake-up of now on another CPU waits for the one that causes it."""
        if self._interrupted_ns != now_ns or self._interrupted_cpu == cpu:
            return 0
        return self._interrupt_waits_ns


class ClockedSched(Sched):
    """The scheduler of a machine whose CPUs have clocks and idle states."""

    __slots__ = ("_clocked", "_power", "clocks_khz", "cpufreq")

    def __init__(
        self,
        calendar: Calendar,
        nr_cpus: int,
        kernel: KernelVersion,
        params: SchedParams | None = None,
        tracer: Tracer | None = None,
        chance: Random | None = None,
        *,
        power: Power,
    ) -> None:
        self._power = power
        self._clocked: list[ClockedRunQueue] = []
        super().__init__(calendar, nr_cpus, kernel, params, tracer, chance)
        if power.has_siblings:
            self.siblings = [self.rqs[sibling_of(cpu, nr_cpus)] for cpu in range(nr_cpus)]
            active = ActiveBalance(calendar, self.rqs, self.siblings, self.tick_ns)
            for cpu, rq in enumerate(self._clocked):
                rq.active_balance = active
                rq.sibling = self._clocked[sibling_of(cpu, nr_cpus)]
        self.cpufreq: Cpufreq | None = None
        self.clocks_khz: list[int] = []
        if power.cpufreq is not None:
            self.cpufreq = Cpufreq(calendar, power.cpufreq, kernel)
            self.clocks_khz = self.cpufreq.clocks_khz
            power.remembers = self.cpufreq.asks_for_utilisation
            power.invariant = self.cpufreq.is_invariant
            for rq in self._clocked:
                rq.policy = self.cpufreq.add(rq.look, rq.is_idle, rq.set_clock)
            self.cpufreq.start()

    def _make_rq(self, cpu: int) -> RunQueue:
        rq = ClockedRunQueue(
            self, cpu, self._make_queue(), self.params, clocked=self._power, kernel=self.kernel
        )
        self._clocked.append(rq)
        return rq

    def cpu_at(self, cpu: int) -> ClockedRunQueue:
        """Return a CPU, with its clock and residencies."""
        return self._clocked[cpu]
