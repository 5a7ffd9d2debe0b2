"""System calls: all that a program on the server sees.

Models: the boundary between user and kernel mode. A `Sys` belongs to one task and is its program's
view of the kernel. Each method is a system call, except the two that compute. The parameters are
what entering the kernel costs, and what processes, packets and interrupts do (measured with lmbench
and the like); parts of the kernel that have parameters of their own (vm, vfs, sched) add theirs.
Linux counterpart: arch/i386/kernel/syscall_table.S, kernel/fork.c, net/socket.c (2.6.16).
Invariants: every call charges its entry to the task's system time; a program holds no kernel object
 but its descriptors; the CPU cost of a call is burnt no later than at the task's next sleep, and a
 task computes at most DEBT_LIMIT_NS ahead of its CPU.
A call charges its entry when it is made and returns the rest as a generator, which ``yield from``
 runs at once. That is one generator less between a program and the kernel.
 The tracepoints sys_enter and sys_exit use Linux's names of the calls. A loop of chunks is one
 call.
Left out: signals but SIGCHLD and SIGKILL (a killed program's files stay open), mapped files, user
ids, select() on more than one listening socket (one task per client here).

`write(fd, size, chunk=4096)` stands for a program's loop of `write(fd, 4096)`. Each write is
charged, but the kernel sees one extent. The result differs from the loop only if another task
dirties the same file in between, or if memory runs short within the loop.
"""

import errno
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Concatenate, ParamSpec, TypeVar

from sim.block.blk_cgroup import BlkioCgroup
from sim.block.elevator import Elevator
from sim.engine import Streams
from sim.fs import aio, read_write, sync
from sim.fs.direct_io import direct_io
from sim.fs.discard import blkdiscard
from sim.fs.errors import invalid
from sim.fs.io_uring import (
    IORING_ENTER_GETEVENTS,
    IORING_ENTER_SQ_WAKEUP,
    IORING_FSYNC_DATASYNC,
    IORING_OP_FSYNC,
    IORING_OP_READ,
    IORING_OP_READ_FIXED,
    IORING_OP_WRITE,
    IORING_OP_WRITE_FIXED,
    IORING_SETUP_IOPOLL,
    IORING_SETUP_SQPOLL,
    RWF_DSYNC,
    SQ_THREAD_IDLE_NS,
    IoUring,
)
from sim.fs.namei import Vfs
from sim.fs.pipe import Pipe
from sim.fs.proc.procfs import ProcFs
from sim.fs.super import (
    O_APPEND,
    O_CREAT,
    O_DIRECT,
    O_DSYNC,
    O_EXCL,
    O_RDONLY,
    O_RDWR,
    O_SYNC,
    O_TRUNC,
    O_WRONLY,
    PAGE_SIZE,
    File,
)
from sim.mm.address_space import Vm
from sim.mm.anon import Pool, Region
from sim.mm.drop_caches import drop_pagecache, drop_slab
from sim.mm.fadvise import (
    KNOWN,
    POSIX_FADV_DONTNEED,
    POSIX_FADV_NORMAL,
    POSIX_FADV_RANDOM,
    POSIX_FADV_SEQUENTIAL,
    generic_fadvise,
)
from sim.mm.filemap import touch_mapped
from sim.mm.memory import Mm, touch_at_random, touch_in_order
from sim.net import Connection, DatagramSocket, ListeningSocket, Network, UdpSocket
from sim.net.nic import NicParams
from sim.param import param
from sim.sched.core import Sched
from sim.sched.features import PTI
from sim.sched.generation import CpuParams
from sim.sched.syscalls import SchedAttr
from sim.sched.task import (
    DEBT_LIMIT_NS,
    TASK_INTERRUPTIBLE,
    Blocking,
    Killed,
    Task,
    sleep_ns,
)
from sim.sched.version import KernelVersion, in_force
from sim.sched.wait import WaitQueue

__all__ = [
    "IORING_ENTER_GETEVENTS",
    "IORING_ENTER_SQ_WAKEUP",
    "IORING_FSYNC_DATASYNC",
    "IORING_OP_FSYNC",
    "IORING_OP_READ",
    "IORING_OP_READ_FIXED",
    "IORING_OP_WRITE",
    "IORING_OP_WRITE_FIXED",
    "IORING_SETUP_IOPOLL",
    "IORING_SETUP_SQPOLL",
    "O_APPEND",
    "O_CREAT",
    "O_DIRECT",
    "O_DSYNC",
    "O_EXCL",
    "O_RDONLY",
    "O_RDWR",
    "O_SYNC",
    "O_TRUNC",
    "O_WRONLY",
    "POSIX_FADV_DONTNEED",
    "POSIX_FADV_NORMAL",
    "POSIX_FADV_RANDOM",
    "POSIX_FADV_SEQUENTIAL",
    "RWF_DSYNC",
    "IoUring",
    "Kernel",
    "Pipe",
    "Pool",
    "Region",
    "Sys",
]

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class SyscallParams:
    """What entering the kernel and its process calls cost, on a 3 GHz Xeon of 2005."""

    entry_ns: int = param(
        "0.2 us",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: lmbench null call, Netburst Xeon",
        doc="one entry into the kernel and back",
    )
    fork_ns: int = param(
        "0.4 ms",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: copying the page tables of a 5 MB process, lmbench fork of the time",
        doc="system CPU of the parent in fork()",
    )
    fork_child_ns: int = param(
        "0.5 ms",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: some 250 copy-on-write faults of 2 us until the child has its own pages",
        doc="system CPU of the child after fork()",
    )
    exit_ns: int = param(
        "0.2 ms",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: unmapping the same pages",
        doc="system CPU of exit()",
    )
    wait_ns: int = param(
        "5 us",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: releasing a task_struct",
        doc="system CPU of reaping a child",
    )
    packet_ns: int = param(
        "3 us",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: 1 cycle a bit of TCP, half of it in the process: 1500 bytes at 3 GHz",
        doc="system CPU of a process for sending or receiving one packet of 1460 bytes",
    )
    packet_interrupt_ns: int = param(
        "3 us",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: 1 cycle a bit of TCP, half of it in the interrupt: 1500 bytes at 3 GHz",
        doc="time of a CPU that a packet's arrival takes in interrupts",
    )
    datagram_ns: int = param(
        "5 us",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: unix_dgram_sendmsg and its wake-up",
        doc="system CPU of a datagram to or from /dev/log",
    )
    interrupt_ns: int = param(
        "8 us",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: SCSI interrupt, softirq and end_io of a request, 2 to 6 us each",
        doc="time of a CPU that a disk's completion takes",
    )
    proc_read_ns: int = param(
        "12 us",
        dim="time_ns",
        is_code=True,
        minimum=0,
        source="assumed: open, read and close of a small /proc file",
        doc="system CPU of reading a file of /proc",
    )
    zero_page_ns: int = param(
        "0.8 us",
        dim="time_ns",
        minimum=0,
        source="assumed: clear_user of 4 KiB at 5 GB/s, memory of 2005",
        doc="system CPU of reading one page of /dev/zero",
    )


def with_isolation(params: SyscallParams, cpu: CpuParams, version: KernelVersion) -> SyscallParams:
    """Return what calls cost where each entry and exit changes the page tables (PTI)."""
    if not in_force(PTI, version):
        return params
    return replace(params, entry_ns=params.entry_ns + cpu.pti_ns)


def with_exits(params: SyscallParams, nic: NicParams) -> SyscallParams:
    """Return what calls cost where each packet is exits to a hypervisor as well."""
    return replace(
        params,
        packet_ns=params.packet_ns + nic.exits_ns(),
        packet_interrupt_ns=params.packet_interrupt_ns + nic.exits_ns(),
    )


@dataclass(kw_only=True)
class Kernel:
    """What the calls act on: one booted server."""

    params: SyscallParams
    sched: Sched
    vm: Vm
    vfs: Vfs
    proc: ProcFs
    network: Network
    streams: Streams
    elevators: Sequence[Elevator]  # of all disks: they keep something for each process
    terms: Mapping[str, SchedAttr]  # on which a process competes, if they are not the usual ones
    cgroups: Mapping[str, str]  # process in the scenario: its top control group
    blkcgs: Mapping[str, BlkioCgroup]  # the control groups of block I/O by name
    mark: Callable[[str, str, int | str], None]
    on_last_exit: Callable[[], None] | None  # when all programs that init started are through
    log: DatagramSocket = field(default_factory=DatagramSocket)
    nr_programs: int = 0  # started by init, and not yet at their end

    def do_exit(self, task: Task) -> None:
        """What the kernel does for a task that ends (kernel/exit.c do_exit, exit_io_context)."""
        task.charge_system(self.params.exit_ns)
        for elevator in self.elevators:
            elevator.exit_io_context(task.pid)

    def start(
        self,
        name: str,
        comm: str,
        body: Callable[["Sys"], Blocking[None]],
        nice: int = 0,
    ) -> Task:
        """Start a program as a child of init; `name` is its process in the scenario."""
        self.nr_programs += 1
        run = _Program(self, name, body).run
        return self.sched.spawn(comm, run, None, nice, self.terms.get(name))

    def program_exited(self) -> None:
        """Note that a program that init started is through; tell if it was the last."""
        self.nr_programs -= 1
        if not self.nr_programs and self.on_last_exit is not None:
            self.on_last_exit()


class _Program:
    """Binds the body of a program to the Sys of the task that will run it."""

    __slots__ = ("body", "kernel", "name")

    def __init__(self, kernel: Kernel, name: str, body: Callable[["Sys"], Blocking[None]]) -> None:
        self.kernel = kernel
        self.name = name
        self.body = body

    def run(self, task: Task) -> Blocking[None]:
        """Return the task's main function; have its exit charged."""
        sys = Sys(self.kernel, task, self.name)
        task.at_exit = sys._exit
        return self.body(sys)


class _Forked:
    """The child's side of fork(): copy-on-write faults, then its own part of the program."""

    __slots__ = ("args", "body", "parent")

    def __init__(self, parent: "Sys", body: Callable[..., Blocking[None]], args: Any) -> None:
        self.parent = parent
        self.body = body
        self.args = args

    def run(self, task: Task) -> Blocking[None]:
        """Be the child's main function."""
        kernel = self.parent.kernel
        task.charge_system(kernel.params.fork_child_ns)
        sys = Sys(kernel, task, self.parent.name)
        try:
            yield from self.body(sys, *self.args)
        finally:  # also when it is killed
            sys.free_memory()
            sys.close_rings()
            kernel.do_exit(task)


class Sys:
    """The kernel as one task's program sees it; `name` is the process in the scenario."""

    __slots__ = (
        "_aio",
        "_entry_ns",
        "_files",
        "_mm",
        "_next_fd",
        "_rings",
        "_tracer",
        "_vfs",
        "kernel",
        "name",
        "task",
    )

    def __init__(self, kernel: Kernel, task: Task, name: str) -> None:
        self.kernel = kernel
        self.task = task
        self.name = name
        self._entry_ns = kernel.params.entry_ns
        self._tracer = kernel.sched.tracer
        self._vfs = kernel.vfs
        self._files: dict[int, File] = {}
        self._next_fd = 3
        self._aio: aio.AioContext | None = None
        self._rings: list[IoUring] = []
        self._mm: Mm | None = None  # the program's own memory, if it has any
        if kernel.vm.memcgs:
            task.memcg = kernel.vm.memcgs.get(kernel.cgroups.get(name, ""))
        if kernel.blkcgs:
            task.blkcg = kernel.blkcgs.get(kernel.cgroups.get(name, ""))

    def _exit(self, task: Task) -> None:
        """Undo and charge what the end of a program does that init started."""
        self.free_memory()
        self.close_rings()
        self.kernel.do_exit(task)
        self.kernel.program_exited()

    def _call(self, name: str, rest: Blocking[T]) -> Blocking[T]:
        """Return the rest of a call, between its tracepoints if tracing is on."""
        if self.task.killed:
            raise Killed(self.task.comm)
        return self._traced(name, rest) if self._tracer.enabled else rest

    def _traced(self, name: str, call: Blocking[T]) -> Blocking[T]:
        """Make the call between its two tracepoints; OSError leaves as a negative errno."""
        self._trace_enter(name)
        try:
            answer = yield from call
        except OSError as error:
            self._trace_exit(name, -(error.errno or 0))
            raise
        self._trace_exit(name, answer if isinstance(answer, int) else 0)
        return answer

    def _trace_enter(self, name: str) -> None:
        task = self.task
        self._tracer.emit("sys_enter", task.comm, task.pid, name, self.cpu_clock_ns())

    def _trace_exit(self, name: str, ret: int) -> None:
        """Note what a call returns: 0 where that is an object here (a socket, a text)."""
        task = self.task
        self._tracer.emit("sys_exit", task.comm, task.pid, name, ret, self.cpu_clock_ns())

    def probe(self, name: str, *values: int | str) -> None:
        """Hit a probe of the program (USDT).

        x__start and x__done bound a transaction; promise__made says by a key and pairs of path and
        size what must survive a power cut from now on, promise__kept that it need not any more.
        """
        if self._tracer.enabled:
            task = self.task
            self._tracer.emit("usdt", task.comm, task.pid, name, self.cpu_clock_ns(), *values)

    # --- CPU and processes

    def compute(self, ns: int) -> None:
        """Spend `ns` of user time (at nominal frequency)."""
        self.task.charge_user(ns)

    def compute_system(self, ns: int) -> None:
        """Spend `ns` of system time that no modelled call accounts for (page faults, say)."""
        self.task.charge_system(ns)

    def clock_ns(self) -> int:
        """Return CLOCK_MONOTONIC (from the vdso: no entry), the CPU time still owed included."""
        return self.task.sched.calendar.now + self.task.user_debt_ns + self.task.system_debt_ns

    def cpu_clock_ns(self) -> int:
        """Return CLOCK_PROCESS_CPUTIME_ID, the CPU time still owed included."""
        task = self.task
        return task.utime_ns + task.stime_ns + task.user_debt_ns + task.system_debt_ns

    def owes_cpu(self) -> bool:
        """Return whether the task owes so much CPU time that it should ``yield`` to pay it."""
        task = self.task
        return task.user_debt_ns + task.system_debt_ns > DEBT_LIMIT_NS

    def getrusage(self) -> tuple[int, int]:
        """Return this task's user and system CPU time, ns, unpaid debt included."""
        task = self.task
        return task.utime_ns + task.user_debt_ns, task.stime_ns + task.system_debt_ns

    def context_switches(self) -> int:
        """Return voluntary and involuntary switches of this task (ru_nvcsw + ru_nivcsw)."""
        return self.task.nvcsw + self.task.nivcsw

    def nr_children(self) -> int:
        """Return the number of children that have not been reaped."""
        return len(self.task.children)

    def getpid(self) -> int:
        """Return the process id."""
        return self.task.pid

    def stream(self, purpose: str) -> random.Random:
        """Return a random stream of this process: its own source of chance (/dev/urandom)."""
        return self.kernel.streams.stream(f"{self.name}.{purpose}")

    def cpus_online(self) -> int:
        """Return sysconf(_SC_NPROCESSORS_ONLN)."""
        return self.kernel.sched.nr_cpus

    def fork(
        self,
        comm: str,
        body: Callable[Concatenate["Sys", P], Blocking[None]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Blocking[int]:
        """Start a child that runs `body(sys, *args)`; return its pid. Files stay the parent's."""
        assert not kwargs
        return self._call("clone", self._fork(comm, body, args))

    def _fork(self, comm: str, body: Callable[..., Blocking[None]], args: Any) -> Blocking[int]:
        self.task.charge_system(self.kernel.params.fork_ns)
        yield from self.task.cond_resched()
        run = _Forked(self, body, args).run
        child = self.kernel.sched.spawn(comm, run, self.task, self.task.nice)
        return child.pid

    def ignore_children(self) -> None:
        """Let children vanish when they exit unless somebody waits (SIGCHLD ignored or handled)."""
        self.task.ignores_sigchld = True

    def waitpid(self, pid: int) -> Blocking[None]:
        """Wait until that child has exited, and reap it."""
        self.task.charge_system(self.kernel.params.wait_ns)
        return self._call("wait4", self.kernel.sched.waitpid(self.task, pid))

    def wait(self) -> Blocking[int]:
        """Wait until some child has exited, reap it, and return its pid."""
        self.task.charge_system(self.kernel.params.wait_ns)
        return self._call("wait4", self.kernel.sched.wait(self.task))

    def sleep(self, ns: int) -> Blocking[None]:
        """Sleep interruptibly for `ns`."""
        self.task.charge_system(self._entry_ns)
        return self._call("nanosleep", sleep_ns(self.task, ns, TASK_INTERRUPTIBLE))

    # --- memory

    def _memory(self) -> Mm:
        """Return the program's memory, an empty one if it has told of none yet."""
        if self._mm is None:
            self._mm = Mm(self.kernel.vm, self.task, self.task.memcg)
        return self._mm

    def mmap(self, size: int, cuts: Sequence[int] = ()) -> Region:
        """Reserve `size` bytes; raise OSError (ENOMEM) if vm.overcommit_memory refuses them.

        Nothing is in memory yet: first use it in order, touch(). `cuts` are offsets, in bytes, of
        parts that are used unlike each other: `region.pools` has them in order.
        """
        self.task.charge_system(self._entry_ns)
        if self._tracer.enabled:
            self._trace_enter("mmap")
        region = self._memory().mmap(size, cuts)
        if self._tracer.enabled:
            self._trace_exit("mmap", -errno.ENOMEM if region is None else 0)
        if region is None:
            raise OSError(errno.ENOMEM, f"mmap of {size} bytes")
        return region

    def munmap(self, region: Region) -> None:
        """Give a region back, with its pages in swap."""
        self.task.charge_system(self._entry_ns)
        region.mm.munmap(region)

    def touch(
        self, region: Region, offset: int = 0, size: int = -1, write: bool = True
    ) -> Blocking[None]:
        """Use each page of a stretch of bytes once, in order (-1: to the end); no system call.

        Growing, scanning, collecting garbage: what was never used is taken, what is out comes in.
        """
        if size < 0:
            size = region.size * PAGE_SIZE - offset
        return touch_in_order(self.task, self._memory().vm, region, offset, size, write)

    def touch_at_random(self, pool: Pool, touches: int, write_share: float = 0.0) -> Blocking[None]:
        """Use a page of a part of a region so many times, each time any that was used before.

        `region.pools[0]` is the part of a region without cuts; a write share of 0 to 1.
        """
        return touch_at_random(self.task, self._memory().vm, pool, touches, write_share)

    def run_text(self, fd: int, position: int) -> Blocking[None]:
        """Run through the page of a mapped program or library at a byte; no system call.

        `fd` stands for the mapping. What is not in memory is a major fault.
        """
        file = self._files[fd]
        page = position // PAGE_SIZE
        missed = yield from touch_mapped(self.task, file.inode.mapping, file.ra, page)
        if missed:
            self._memory().majflt += 1

    def faults(self) -> tuple[int, int]:
        """Return minor and major page faults (ru_minflt, ru_majflt)."""
        return (0, 0) if self._mm is None else (self._mm.minflt, self._mm.majflt)

    def touch_memory(self, size: int) -> Blocking[None]:
        """Use `size` bytes of memory for the first time: mmap() and a fault on each page."""
        return self._memory().fault_in(self.task, size)

    def free_memory(self) -> None:
        """Give back all memory (munmap, or exit)."""
        if self._mm is not None:
            self._mm.release()

    # --- threads

    def futex_wait(self, queue: WaitQueue) -> Blocking[None]:
        """Sleep (S) until futex_wake(); the caller looks at its word again after it."""
        self.task.charge_system(self._entry_ns)
        return self._call("futex", queue.sleep_on(self.task, TASK_INTERRUPTIBLE, "futex_wait"))

    def futex_wake(self, queue: WaitQueue, count: int) -> None:
        """Wake up to `count` threads that sleep there, oldest first."""
        self.task.charge_system(self._entry_ns)
        while count > 0 and queue.wake_one():
            count -= 1

    # --- files

    def open(self, path: str, flags: int = O_RDONLY) -> Blocking[int]:
        """Open a file or directory; return the descriptor. Raise OSError as open(2) would fail."""
        return self._call("open", self._open(path, flags))

    def _open(self, path: str, flags: int) -> Blocking[int]:
        self.task.charge_system(self._entry_ns)
        file = yield from self._vfs.open(self.task, path, flags)
        fd = self._next_fd
        self._next_fd += 1
        self._files[fd] = file
        return fd

    def read(self, fd: int, size: int, chunk: int = 0) -> Blocking[int]:
        """Read at the file position; return the number of bytes."""
        self.task.charge_system(self._entry_ns * _calls(size, chunk))
        return self._call("read", read_write.read(self._vfs, self.task, self._files[fd], size))

    def pread(self, fd: int, size: int, position: int) -> Blocking[int]:
        """Read at a position; return the number of bytes."""
        task = self.task
        task.system_debt_ns += self._entry_ns
        file = self._files[fd]
        if self._tracer.enabled:
            return self._traced("pread64", read_write.read(self._vfs, task, file, size, position))
        if file.flags & O_DIRECT:
            return direct_io(self._vfs, task, file, position, size, False)
        return read_write.read(self._vfs, task, file, size, position)

    def write(self, fd: int, size: int, chunk: int = 0) -> Blocking[int]:
        """Write at the file position (or the end, O_APPEND); return the number of bytes."""
        self.task.charge_system(self._entry_ns * _calls(size, chunk))
        return self._call("write", read_write.write(self._vfs, self.task, self._files[fd], size))

    def pwrite(self, fd: int, size: int, position: int) -> Blocking[int]:
        """Write at a position; return the number of bytes."""
        self.task.charge_system(self._entry_ns)
        file = self._files[fd]
        return self._call("pwrite64", read_write.write(self._vfs, self.task, file, size, position))

    def io_submit(self, fd: int, size: int, position: int, tag: int, write: bool) -> Blocking[None]:
        """Start a direct read or write; io_getevents() returns `tag` when it is done."""
        self.task.charge_system(self._entry_ns)
        self._aio = self._aio or aio.AioContext()
        file = self._files[fd]
        return self._call(
            "io_submit",
            aio.io_submit(self._vfs, self.task, self._aio, file, position, size, write, tag),
        )

    def io_getevents(self) -> Blocking[int]:
        """Wait for an operation of io_submit() to complete; return its tag."""
        assert self._aio is not None, "io_submit() comes first"
        self.task.charge_system(self._entry_ns)
        return self._call("io_getevents", aio.io_getevents(self.task, self._aio))

    def io_uring_setup(
        self,
        entries: int,
        flags: int = 0,
        sq_thread_idle_ns: int = SQ_THREAD_IDLE_NS,
        sq_thread_cpu: int = -1,
    ) -> IoUring:
        """Make rings, mapped into the program's memory; ENOSYS before Linux 5.1.

        `ring.prep()` fills in an entry, `ring.cq` has the completions: neither is a system call.
        """
        self.task.charge_system(self._entry_ns)
        if not self._vfs.features.io_uring:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), "io_uring_setup")
        ring = IoUring(
            self._vfs,
            self.kernel.sched,
            self.task.pid,
            self._files,
            entries,
            flags,
            sq_thread_idle_ns,
            sq_thread_cpu,
        )
        self._rings.append(ring)
        return ring

    def io_uring_register(
        self, ring: IoUring, files: Sequence[int] = (), buffers: bool = False
    ) -> None:
        """Have the kernel keep files at hand, and the buffers of fixed operations pinned."""
        self.task.charge_system(self._entry_ns)
        if files:
            ring.register_files(frozenset(files))
        if buffers:
            ring.register_buffers()

    def io_uring_enter(
        self, ring: IoUring, to_submit: int, min_complete: int = 0, flags: int = 0
    ) -> Blocking[int]:
        """Submit entries; with IORING_ENTER_GETEVENTS wait for completions; return how many."""
        self.task.system_debt_ns += self._entry_ns
        return self._call("io_uring_enter", ring.enter(self.task, to_submit, min_complete, flags))

    def look_for_cqe(self, ring: IoUring) -> Blocking[None]:
        """Look at the completion ring again and again until there is one; no system call."""
        return ring.look(self.task)

    def close_rings(self) -> None:
        """Close the descriptors of all rings, as exit() does."""
        for ring in self._rings:
            ring.close()

    def blkdiscard(self, fd: int, size: int, position: int) -> Blocking[None]:
        """ioctl(BLKDISCARD): nobody needs these bytes of a device any more."""
        self.task.charge_system(self._entry_ns)
        return self._call("ioctl", blkdiscard(self.task, self._files[fd], position, size))

    def fitrim(self, path: str, least_bytes: int) -> Blocking[int]:
        """ioctl(FITRIM) on a mount point: discard what is free; return the bytes."""
        self.task.charge_system(self._entry_ns)
        found = dict(self._vfs.mounts).get(path.rstrip("/"))
        if found is None:
            raise OSError(errno.EINVAL, "no file system is mounted there", path)
        return self._call("ioctl", found.trim_fs(self.task, least_bytes))

    def read_zero(self, size: int) -> Blocking[int]:
        """read() of /dev/zero: clear `size` bytes of the program's memory (read_zero)."""
        pages = -(-size // PAGE_SIZE)
        self.task.charge_system(self._entry_ns + self.kernel.params.zero_page_ns * pages)
        return self._call("read", self._transferred(size))

    def write_null(self, size: int) -> Blocking[int]:
        """write() to /dev/null: nothing but the entry (write_null)."""
        self.task.charge_system(self._entry_ns)
        return self._call("write", self._transferred(size))

    def _transferred(self, size: int) -> Blocking[int]:
        yield from self.task.cond_resched()
        return size

    def lseek(self, fd: int, position: int) -> None:
        """Set the position of an open file (SEEK_SET)."""
        self.task.charge_system(self._entry_ns)
        self._files[fd].pos = position

    def fsync(self, fd: int) -> Blocking[None]:
        """Make a file's data and metadata durable."""
        self.task.charge_system(self._entry_ns)
        return self._call("fsync", sync.fsync(self._vfs, self.task, self._files[fd]))

    def fdatasync(self, fd: int) -> Blocking[None]:
        """Make a file's data durable, and of its metadata what reading it needs."""
        self.task.charge_system(self._entry_ns)
        return self._call("fdatasync", sync.fdatasync(self._vfs, self.task, self._files[fd]))

    def sync_file_range(self, fd: int) -> Blocking[None]:
        """Begin to write a file's dirty pages; wait for none (SYNC_FILE_RANGE_WRITE)."""
        self.task.charge_system(self._entry_ns)
        file = self._files[fd]
        return self._call("sync_file_range", sync.sync_file_range(self._vfs, self.task, file))

    def close(self, fd: int) -> Blocking[None]:
        """Close a descriptor."""
        self.task.charge_system(self._entry_ns)
        return self._call("close", self._vfs.close(self.task, self._files.pop(fd)))

    def ftruncate(self, fd: int, size: int) -> Blocking[None]:
        """Make an open file `size` bytes long."""
        self.task.charge_system(self._entry_ns)
        return self._call("ftruncate", self._vfs.ftruncate(self.task, self._files[fd], size))

    def fallocate(self, fd: int, at: int, count: int, keep_size: bool = False) -> Blocking[None]:
        """Give `count` bytes from `at` on blocks that read as zeroes (ext4 and XFS).

        EOPNOTSUPP where the file system has none that are not written.
        """
        self.task.charge_system(self._entry_ns)
        file = self._files[fd]
        return self._call("fallocate", self._vfs.fallocate(self.task, file, at, count, keep_size))

    def fstat_size(self, fd: int) -> int:
        """Return the size of a file or device, bytes (fstat, BLKGETSIZE64)."""
        self.task.charge_system(self._entry_ns)
        return self._files[fd].inode.size

    def fadvise(self, fd: int, advice: int) -> Blocking[None]:
        """Tell how a file will be read (posix_fadvise of all of it); EINVAL for what is unknown."""
        self.task.charge_system(self._entry_ns)
        return self._call("fadvise64", self._fadvise(self._files[fd], advice))

    def _fadvise(self, file: File, advice: int) -> Blocking[None]:
        if advice not in KNOWN:
            raise invalid(file.path)
        yield from generic_fadvise(self.task, file.inode.mapping, file.ra, advice)

    def drop_pagecache(self) -> int:
        """Drop all clean page cache (write 1 to /proc/sys/vm/drop_caches); return the pages."""
        vm = self.kernel.vm
        pages = drop_pagecache(vm)
        self.task.charge_system(self._entry_ns + vm.params.page_scan_ns * pages)
        return pages

    def drop_slab(self) -> int:
        """Drop unused dentries and inodes (write 2 to the same file); return how many."""
        self.task.charge_system(self._entry_ns)
        return drop_slab(self.kernel.vm)

    def lstat(self, path: str) -> Blocking[None]:
        """Look at a file without opening it."""
        self.task.charge_system(self._entry_ns)
        return self._call("lstat", self._lstat(path))

    def _lstat(self, path: str) -> Blocking[None]:
        yield from self._vfs.lookup(self.task, path)

    def unlink(self, path: str) -> Blocking[None]:
        """Remove a name."""
        self.task.charge_system(self._entry_ns)
        return self._call("unlink", self._vfs.unlink(self.task, path))

    def rename(self, old: str, new: str) -> Blocking[None]:
        """Rename a file; a file that has the new name is replaced."""
        self.task.charge_system(self._entry_ns)
        return self._call("rename", self._vfs.rename(self.task, old, new))

    def mkdir(self, path: str) -> Blocking[None]:
        """Make a directory."""
        self.task.charge_system(self._entry_ns)
        return self._call("mkdir", self._vfs.mkdir(self.task, path))

    def readdir(self, fd: int) -> Blocking[list[str]]:
        """Return the names in an open directory (getdents until there are no more)."""
        self.task.charge_system(self._entry_ns)
        return self._call("getdents", self._vfs.readdir(self.task, self._files[fd]))

    def pipe(self) -> Pipe:
        """Make a pipe; its holder may read and write."""
        self.task.charge_system(self._entry_ns)
        return Pipe()

    def pipe_write(self, pipe: Pipe, size: int, payload: Any) -> Blocking[None]:
        """Write `size` bytes that stand for `payload`; waits for room."""
        self.task.charge_system(self._entry_ns)
        return self._call("write", pipe.write(self.task, size, payload))

    def pipe_read(self, pipe: Pipe) -> Blocking[Any]:
        """Wait for the next write, and return its payload."""
        self.task.charge_system(self._entry_ns)
        return self._call("read", pipe.read(self.task))

    def read_text(self, path: str) -> Blocking[str]:
        """Open, read and close a file of /proc; return its text."""
        return self._call("read", self._read_text(path))

    def _read_text(self, path: str) -> Blocking[str]:
        self.task.charge_system(self.kernel.params.proc_read_ns)
        yield from self.task.cond_resched()
        return self.kernel.proc.read(path)

    # --- network

    def listen(self, port: int, backlog: int) -> Blocking[ListeningSocket]:
        """socket(), bind(), listen()."""
        return self._call("listen", self._listen(port, backlog))

    def _listen(self, port: int, backlog: int) -> Blocking[ListeningSocket]:
        self.task.charge_system(3 * self._entry_ns)
        yield from self.task.cond_resched()
        return self.kernel.network.listen(port, backlog)

    def close_listener(self, listener: ListeningSocket) -> None:
        """Close a listening socket; clients are refused from now on."""
        self.task.charge_system(self._entry_ns)
        if self._tracer.enabled:
            self._trace_enter("close")
            self._trace_exit("close", 0)
        listener.close()

    def accept(self, listener: ListeningSocket) -> Blocking[Connection]:
        """Wait for a connection and take it."""
        self.task.charge_system(self._entry_ns + self.kernel.params.packet_ns)
        return self._call("accept", listener.accept(self.task))

    def select(self, listener: ListeningSocket, timeout_ns: int) -> Blocking[bool]:
        """Wait for a connection to accept, at most so long; return whether there is one."""
        self.task.charge_system(self._entry_ns)
        return self._call("select", listener.select(self.task, timeout_ns))

    def connect(self, host: str, port: int) -> Blocking[Connection | None]:
        """Connect to a host, or "localhost"; None if there is none, it refuses, or times out."""
        self.task.charge_system(self._entry_ns + 2 * self.kernel.params.packet_ns)
        return self._call("connect", self.kernel.network.connect(self.task, host, port))

    def recv(self, connection: Connection) -> Blocking[Any]:
        """Wait for the next message of the peer and return it; None at the end of the stream."""
        return self._call("recvfrom", self._recv(connection))

    def _recv(self, connection: Connection) -> Blocking[Any]:
        task = self.task
        task.charge_system(self._entry_ns)
        payload = yield from connection.recv(task)
        if payload is not None:
            task.charge_system(self.kernel.params.packet_ns * _packets(connection.received_bytes))
        return payload

    def send(self, connection: Connection, size: int, payload: Any) -> Blocking[bool]:
        """Send `size` bytes that stand for `payload`; False if the connection is broken."""
        self.task.charge_system(self._entry_ns + self.kernel.params.packet_ns * _packets(size))
        return self._call("sendto", connection.send(self.task, size, payload))

    def close_connection(self, connection: Connection) -> Blocking[None]:
        """Close a connection."""
        return self._call("close", self._close_connection(connection))

    def _close_connection(self, connection: Connection) -> Blocking[None]:
        self.task.charge_system(self._entry_ns)
        yield from self.task.cond_resched()
        connection.close()

    def udp_socket(self) -> UdpSocket:
        """socket(AF_INET, SOCK_DGRAM)"""
        self.task.charge_system(self._entry_ns)
        return self.kernel.network.udp_socket()

    def sendto(self, sock: UdpSocket, host: str, size: int, payload: Any) -> bool:
        """Send a datagram of `size` bytes that stands for `payload`; False if there is no host."""
        self.task.charge_system(self._entry_ns + self.kernel.params.packet_ns * _packets(size))
        return self.kernel.network.send_datagram(sock, host, size, payload)

    def recvfrom(self, sock: UdpSocket, timeout_ns: int) -> Blocking[Any]:
        """Wait for a datagram, at most so long; return its payload, None when time is over."""
        return self._call("recvfrom", self._recvfrom(sock, timeout_ns))

    def _recvfrom(self, sock: UdpSocket, timeout_ns: int) -> Blocking[Any]:
        task = self.task
        task.charge_system(self._entry_ns)
        datagram = yield from sock.receive(task, timeout_ns)
        if datagram is None:
            return None
        task.charge_system(self.kernel.params.packet_ns * _packets(datagram.nbytes))
        return datagram.payload

    # --- /dev/log, and the trace

    def syslog(self, facility: str, size: int) -> Blocking[None]:
        """Send one line to /dev/log."""
        self.task.charge_system(self._entry_ns + self.kernel.params.datagram_ns)
        return self._call("sendto", self.kernel.log.send(self.task, size))

    def syslog_bind(self) -> None:
        """Be the one who reads /dev/log."""
        self.kernel.log.bind()

    def syslog_receive(self) -> Blocking[int]:
        """Wait for a line on /dev/log; return its size."""
        self.task.charge_system(self._entry_ns + self.kernel.params.datagram_ns)
        return self._call("recvfrom", self.kernel.log.receive(self.task))

    def print_text(self, text: str) -> None:
        """Print on the terminal: a record "stdout" of the results, at no cost."""
        self.kernel.mark(self.name, "stdout", text)

    def trace_marker(self, name: str, value: int) -> None:
        """Write to /sys/kernel/debug/tracing/trace_marker: a record of the results, at no cost."""
        self.kernel.mark(self.name, name, value)


def _calls(size: int, chunk: int) -> int:
    """Return how many calls of `chunk` bytes move `size` bytes (0: one call)."""
    return -(-size // chunk) if chunk else 1


def _packets(size: int) -> int:
    """Return how many packets of 1460 bytes `size` bytes fill."""
    return -(-size // 1460)
