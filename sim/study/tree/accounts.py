"""What the kernel counts for each process and no tool of ours shows: I/O, waiting, turns.

Models: task_io_accounting and sched_info of each task, kept by looking at a run: system calls that
read and write, blocks that a task reads from a device, the time from becoming runnable to running.
What a task makes to be written the task itself counts (sim/sched/task.py).
Linux counterpart: include/linux/task_io_accounting_ops.h, task_io_account_read in submit_bio
 (block/blk-core.c); kernel/sched/stats.h (sched_info_queued, sched_info_arrive).
Invariants: looking changes nothing that is simulated; counters never decrease; what runs from the
 boot on is counted from the boot on. A run of bios is as many bytes as it has sectors.
Left out: read_bytes has no read-ahead that interrupts would start. Vectors of aio and io_uring are
 no system calls of read or write.
"""

from dataclasses import dataclass, field
from typing import Final

from sim.block.bio import READ, Bio
from sim.engine.trace import Record
from sim.machine import Machine
from sim.study.tree.pressure import IO, MEMORY, MEMORY_SLEEPS, RUNNABLE, Pressure
from sim.study.tree.pressure import SINCE as PRESSURE_SINCE

SECTOR: Final = 512
READS: Final = frozenset(("read", "pread64", "recvfrom"))
WRITES: Final = frozenset(("write", "pwrite64", "sendto"))
_IDLE: Final = 0  # the pid of the idle tasks
_RUNNING: Final = "R"


@dataclass(slots=True)
class TaskAccount:
    """What one task did and waited for since it began."""

    rchar: int = 0  # bytes that its calls returned
    wchar: int = 0
    syscr: int = 0  # calls
    syscw: int = 0
    read_bytes: int = 0  # asked of devices
    run_delay_ns: int = 0  # runnable, and not running
    turns: int = 0  # times that it was given a CPU


@dataclass(slots=True)
class CpuAccount:
    """What the tasks of one CPU waited."""

    run_delay_ns: int = 0
    turns: int = 0


@dataclass
class Accounts:
    """The accounts of all tasks of a machine, by pid; those that have gone are kept."""

    tasks: dict[int, TaskAccount] = field(default_factory=dict)
    cpus: dict[int, CpuAccount] = field(default_factory=dict)
    _runnable_since_ns: dict[int, int] = field(default_factory=dict)
    pressure: Pressure | None = None  # of kernels that tell it
    _machine: Machine | None = None

    def attach(self, machine: Machine) -> None:
        """Listen to a booted machine."""
        self._machine = machine
        for device in machine.devices.values():
            device.watch(self._submitted)
        if machine.version >= PRESSURE_SINCE:
            self.pressure = Pressure(machine.sched.nr_cpus)
        for pid, task in machine.sched.processes.tasks.items():
            if task.on_rq:
                self._runnable(machine.now(), pid, task.cpu)
        machine.tracer.start("sys_exit", "sched_*", sink=self._hit)

    def of(self, pid: int) -> TaskAccount:
        """Return a task's account."""
        return self.tasks.setdefault(pid, TaskAccount())

    def cpu(self, number: int) -> CpuAccount:
        """Return a CPU's account."""
        return self.cpus.setdefault(number, CpuAccount())

    def _submitted(self, _device: str, bio: Bio) -> None:
        """A task asks a device for blocks: reads count here (submit_bio: task_io_account_read)."""
        machine = self._machine
        assert machine is not None
        task = machine.sched.current
        if task is not None and bio.op == READ:
            self.of(task.pid).read_bytes += bio.nr_sectors * SECTOR

    def _hit(self, hit: Record) -> None:
        name, args = hit.name, hit.args
        if name == "sys_exit":
            _, pid, call, ret, _ = args
            self._called(pid, call, ret)
        elif name == "sched_switch":
            cpu, _, before, state, _, after, wchan, *_ = args
            self._switched(hit.when_ns, cpu, before, state == _RUNNING, after)
            if self.pressure is not None:
                self._press(hit.when_ns, cpu, before, state, after, wchan)
        elif name == "sched_wakeup":
            self._runnable(hit.when_ns, args[1], args[2])
        elif name == "sched_process_fork":
            self._runnable(hit.when_ns, args[3], self._cpu_of(args[3]))
        elif name == "sched_process_exit":
            self._runnable_since_ns.pop(args[1], None)

    def _runnable(self, now_ns: int, pid: int, cpu: int) -> None:
        """A task waits for a CPU."""
        self._runnable_since_ns.setdefault(pid, now_ns)
        if self.pressure is not None:
            self.pressure.change(now_ns, pid, cpu, RUNNABLE)

    def _cpu_of(self, pid: int) -> int:
        """Return the CPU that a task was put on."""
        assert self._machine is not None
        return self._machine.sched.processes.tasks[pid].cpu

    def _press(
        self, now_ns: int, cpu: int, before: int, state: str, after: int, wchan: str
    ) -> None:
        """Tell the pressure what the task does that gave up the CPU, and who has it."""
        assert self._machine is not None
        assert self.pressure is not None
        if before != _IDLE and state != _RUNNING:
            task = self._machine.sched.processes.tasks.get(before)
            waits_for = MEMORY if wchan in MEMORY_SLEEPS else IO
            is_stalled = task is not None and (task.in_iowait or waits_for == MEMORY)
            self.pressure.change(now_ns, before, cpu, waits_for if is_stalled else "")
        if after != _IDLE:
            self.pressure.change(now_ns, after, cpu, RUNNABLE)

    def _called(self, pid: int, call: str, ret: int) -> None:
        """A system call returned; a negative number is an error, and still a call."""
        account = self.of(pid)
        if call in READS:
            account.syscr += 1
            account.rchar += max(ret, 0)
        elif call in WRITES:
            account.syscw += 1
            account.wchar += max(ret, 0)

    def _switched(self, now_ns: int, cpu: int, before: int, still_runs: bool, after: int) -> None:
        """One task gives the CPU to another (sched_info_switch)."""
        if before != _IDLE and still_runs:
            self._runnable_since_ns[before] = now_ns
        if after == _IDLE:
            return
        waited_ns = now_ns - self._runnable_since_ns.pop(after, now_ns)
        for account in (self.of(after), self.cpu(cpu)):
            account.run_delay_ns += waited_ns
            account.turns += 1
