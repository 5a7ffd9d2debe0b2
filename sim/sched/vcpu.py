"""CPUs of a guest that share the host's: time that the guest wants and does not get (steal).

Theory of operation. The host is a Linux of its own whose tasks are virtual CPUs (KVM; Xen's credit
scheduler does alike with other slices). A vCPU of this guest is runnable on the host as long as a
task runs on it, and blocks when it goes idle. Vcpu guests of others compute and sleep in turns. The
host's scheduler, the same code as the guest's, says who has a physical CPU when; while it is not
this guest's vCPU, the guest's CPU stands still: its burst has no timer, and what the guest would
call its task's time is steal.

    guest wakes a task -> vcpu wanted -> host runs it (or lets it wait: steal) -> the burst goes on
    guest goes idle -> vcpu blocks -> the host runs another

Linux counterpart: virt/kvm/kvm_main.c (kvm_vcpu_block, kvm_sched_out), arch/x86/kvm/x86.c
(record_steal_time), kernel/sched/cputime.c (steal_account_process_time).
Invariants: the columns of CpuTime sum to the time, as on any CPU; steal is only counted while a
 task wants to run; a guest's busy time is never more than what its vCPUs had of the host.
Left out: interrupts that come while the vCPU waits (they are served when it runs again, and wake it
 only with a task), exits, caches, pinning, memory of the host; the host's own work.
"""

from random import Random
from typing import Any, Final

from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.sched.capacity import ClockedRunQueue, ClockedSched, Power
from sim.sched.core import Sched
from sim.sched.guest import GuestParams
from sim.sched.params import SchedParams
from sim.sched.runqueue import RunQueue
from sim.sched.sched_class import SchedClass
from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Scheduler, Task
from sim.sched.version import KernelVersion

FAR_NS: Final = 3_600_000_000_000  # more than a vCPU ever runs at a stretch: burnt until it idles


class Vcpu:
    """A virtual CPU of this guest: a task of the host."""

    def __init__(self, host: "Host", name: str) -> None:
        self.host = host
        self.wanted: bool = False  # the guest has something to run
        self.runs: bool = False  # the host lets it
        self.rq: VcpuRunQueue | None = None
        self.task: Task = host.sched.spawn(name, self._main)
        host.vcpus[self.task.pid] = self

    def _main(self, task: Task) -> Blocking[None]:
        while True:
            while not self.wanted:
                task.set_state(TASK_INTERRUPTIBLE, "kvm_vcpu_block")
                yield
            task.charge_user(FAR_NS)
            yield

    def start(self) -> None:
        """The host gives it a physical CPU (kvm_sched_in)."""
        self._change(True)

    def stop(self) -> None:
        """The host takes it away (kvm_sched_out)."""
        self._change(False)

    def _change(self, runs: bool) -> None:
        rq = self.rq
        if rq is not None:
            rq.account()
        self.runs = runs
        if rq is not None:
            rq.begin_anew()

    def want(self) -> None:
        """The guest's CPU has a task to run (kvm_vcpu_kick)."""
        if not self.wanted:
            self.wanted = True
            self.host.sched.wake_up(self.task)

    def block(self) -> None:
        """The guest's CPU is idle: give the host's back (HLT)."""
        if self.wanted:
            self.wanted = False
            self.host.stop_burning(self.task)


class HostRunQueue(RunQueue):
    """A physical CPU, which tells vCPUs when they have it."""

    __slots__ = ("_vcpus", "_who_runs")

    def __init__(
        self,
        domain: Scheduler,
        cpu: int,
        queue: SchedClass,
        params: SchedParams,
        *,
        vcpus: dict[int, Vcpu],
    ) -> None:
        super().__init__(domain, cpu, queue, params)
        self._vcpus = vcpus
        self._who_runs: Vcpu | None = None

    def _start_burst(self, task: Task) -> None:
        super()._start_burst(task)
        self._let_run(self._vcpus.get(task.pid))

    def _go_idle(self) -> None:
        super()._go_idle()
        self._let_run(None)

    def _let_run(self, vcpu: Vcpu | None) -> None:
        """Stop the vCPU that had this CPU, and start the one that has it now."""
        before = self._who_runs
        if before is vcpu:
            return
        self._who_runs = vcpu
        if before is not None:
            before.stop()
        if vcpu is not None:
            vcpu.start()

    def stop_burning(self, task: Task) -> None:
        """Let the current task go on at once: what it has to burn is none any more."""
        self.account()
        task.user_debt_ns = 0
        if not self._resuming:
            self._start_burst(task)


class HostSched(Sched):
    """The host's scheduler."""

    __slots__ = ("_physical", "_vcpus")

    def __init__(
        self,
        calendar: Calendar,
        nr_cpus: int,
        kernel: KernelVersion,
        chance: Random,
        vcpus: dict[int, Vcpu],
    ) -> None:
        self._vcpus = vcpus
        self._physical: list[HostRunQueue] = []
        super().__init__(calendar, nr_cpus, kernel, SchedParams(), None, chance)

    def _make_rq(self, cpu: int) -> RunQueue:
        rq = HostRunQueue(self, cpu, self._make_queue(), self.params, vcpus=self._vcpus)
        self._physical.append(rq)
        return rq

    def physical(self, cpu: int) -> HostRunQueue:
        """Return a physical CPU."""
        return self._physical[cpu]


class Host:
    """A host with its CPUs, and the guests of others on them."""

    def __init__(
        self, calendar: Calendar, guest: GuestParams, kernel: KernelVersion, streams: Streams
    ) -> None:
        self.guest = guest
        self.guests: list[Sched] = []  # that are simulated, the one described first
        self.vcpus: dict[int, Vcpu] = {}
        self.sched = HostSched(
            calendar, guest.host_cpus, kernel, streams.stream("host.newidle"), self.vcpus
        )
        self.neighbours: list[Neighbour] = [
            Neighbour(self.sched, guest, number, streams.stream(f"host.neighbour.{number}"))
            for number in range(guest.neighbours)
        ]

    def busy_ns(self) -> int:
        """Return how long the physical CPUs have worked, summed."""
        return sum(times.busy_ns() for times in self.sched.cpu_times)

    def stop_burning(self, task: Task) -> None:
        """Take away what is left of a vCPU's turn: it blocks now, or when it gets a CPU."""
        rq = self.sched.physical(task.cpu)
        if rq.curr is task:
            rq.stop_burning(task)
        else:
            task.user_debt_ns = 0


class Neighbour:
    """A vCPU of somebody else's: works for a while, sleeps for a while."""

    def __init__(self, host: HostSched, guest: GuestParams, number: int, chance: Random) -> None:
        self.guest = guest
        self.chance = chance
        self.wanted_ns: int = 0  # CPU time asked for in bursts that are over
        self.took_ns: int = 0  # and how long these took
        host.spawn(f"neighbour-{number}", self._main)

    def _main(self, task: Task) -> Blocking[None]:
        guest = self.guest
        busy = guest.neighbour_busy_percent / 100
        if not busy:
            return
        calendar = task.sched.calendar
        idle_ns = guest.neighbour_burst_ns * (1 - busy) / busy
        while True:
            if idle_ns:
                calendar.call_after(
                    round(self.chance.expovariate(1.0) * idle_ns), task.sched.process_timeout, task
                )
                task.set_state(TASK_INTERRUPTIBLE, "kvm_vcpu_block")
                yield
            burst_ns = round(self.chance.expovariate(1.0) * guest.neighbour_burst_ns)
            began_ns = calendar.now
            task.charge_user(burst_ns)
            yield
            self.wanted_ns += burst_ns
            self.took_ns += calendar.now - began_ns


class VcpuRunQueue(ClockedRunQueue):
    """A CPU of the guest that stands still while its vCPU has no physical one."""

    __slots__ = ("_vcpu",)

    def __init__(
        self,
        domain: Scheduler,
        cpu: int,
        queue: SchedClass,
        params: SchedParams,
        *,
        clocked: Power,
        kernel: KernelVersion,
        vcpu: Vcpu,
    ) -> None:
        self._vcpu = vcpu
        super().__init__(domain, cpu, queue, params, clocked=clocked, kernel=kernel)
        vcpu.rq = self

    def account(self) -> None:
        """Time in which a task wants to run and the vCPU does not is stolen."""
        if self.curr is None or self._vcpu.runs:
            super().account()
            return
        elapsed = self._calendar.now - self.clock_ns
        if elapsed:
            self.clock_ns += elapsed
            if self.clock_ns >= self._next_tick_ns:
                self._pass_tick(self.clock_ns)
            self.cpu_time.steal_ns += elapsed

    def begin_anew(self) -> None:
        """The vCPU has just got a physical CPU, or lost it: set the timer, or take it back."""
        curr = self.curr
        if curr is not None and not self._resuming:
            self._start_burst(curr)

    def _start_burst(self, task: Task) -> None:
        self._vcpu.want()
        if self._vcpu.runs:
            super()._start_burst(task)
            return
        self._burst_ends_ns = self.clock_ns + FAR_NS
        self._generation += 1  # A timer set before is void, and there is no other.

    def _go_idle(self) -> None:
        super()._go_idle()
        self._vcpu.block()


class GuestSched(ClockedSched):
    """The scheduler of a guest among others."""

    __slots__ = ("_host", "_vcpus")

    def __init__(
        self,
        calendar: Calendar,
        nr_cpus: int,
        kernel: KernelVersion,
        params: SchedParams,
        tracer: Any,
        chance: Random,
        *,
        power: Power,
        host: Host,
    ) -> None:
        self._host = host
        host.guests.append(self)
        self._vcpus = [Vcpu(host, f"vcpu-{cpu}") for cpu in range(nr_cpus)]
        super().__init__(calendar, nr_cpus, kernel, params, tracer, chance, power=power)

    def _make_rq(self, cpu: int) -> RunQueue:
        rq = VcpuRunQueue(
            self,
            cpu,
            self._make_queue(),
            self.params,
            clocked=self._power,
            kernel=self.kernel,
            vcpu=self._vcpus[cpu],
        )
        self._clocked.append(rq)
        return rq

    @property
    def host(self) -> Host:
        """The host that this guest is on."""
        return self._host
