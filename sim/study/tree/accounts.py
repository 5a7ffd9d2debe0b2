"""What the kernel counts for each process and no tool of ours shows: I/O, waiting, turns.

Models: task_io_accounting and sched_info of each task, kept by looking at a run: system calls that
read and write, blocks that a task asks a device for, the time from becoming runnable to running.
Linux counterpart: include/linux/task_io_accounting_ops.h, task_io_account_read in submit_bio
 (block/blk-core.c); kernel/sched/stats.h (sched_info_queued, sched_info_arrive).
Invariants: looking changes nothing that is simulated; counters never decrease; what runs from the
 boot on is counted from the boot on. A run of bios is as many bytes as it has sectors.
Left out: write_bytes counts blocks that a process submits itself, in fsync or direct I/O: what the
 flusher writes for it later is the flusher's, where Linux counts at the page that becomes dirty.
 read_bytes has no read-ahead that interrupts would start. Vectors of aio and io_uring are no
 system calls of read or write.
"""

from dataclasses import dataclass, field
from typing import Final

from sim.block.bio import DISCARD, READ, Bio
from sim.engine.trace import Record
from sim.machine import Machine

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
    write_bytes: int = 0
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
    _machine: Machine | None = None

    def attach(self, machine: Machine) -> None:
        """Listen to a booted machine."""
        self._machine = machine
        for device in machine.devices.values():
            device.watch(self._submitted)
        for pid, task in machine.sched.processes.tasks.items():
            if task.on_rq:
                self._runnable_since_ns[pid] = machine.now()
        machine.tracer.start("sys_exit", "sched_*", sink=self._hit)

    def of(self, pid: int) -> TaskAccount:
        """Return a task's account."""
        return self.tasks.setdefault(pid, TaskAccount())

    def cpu(self, number: int) -> CpuAccount:
        """Return a CPU's account."""
        return self.cpus.setdefault(number, CpuAccount())

    def _submitted(self, _device: str, bio: Bio) -> None:
        """A task asks a device for blocks."""
        machine = self._machine
        assert machine is not None
        task = machine.sched.current
        if task is None or bio.op == DISCARD:
            return
        account = self.of(task.pid)
        n = bio.nr_sectors * SECTOR
        if bio.op == READ:
            account.read_bytes += n
        else:
            account.write_bytes += n

    def _hit(self, hit: Record) -> None:
        name, args = hit.name, hit.args
        if name == "sys_exit":
            _, pid, call, ret, _ = args
            self._called(pid, call, ret)
        elif name == "sched_switch":
            cpu, _, before, state, _, after, *_ = args
            self._switched(hit.when_ns, cpu, before, state == _RUNNING, after)
        elif name == "sched_wakeup":
            self._runnable_since_ns.setdefault(args[1], hit.when_ns)
        elif name == "sched_process_fork":
            self._runnable_since_ns.setdefault(args[3], hit.when_ns)
        elif name == "sched_process_exit":
            self._runnable_since_ns.pop(args[1], None)

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
