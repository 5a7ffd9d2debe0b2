"""The machines that runs were recorded on: what their CPUs need for the kernel's code.

Models: a virtual machine of 2026 with 3 GHz CPUs, a slower one, and a user mode Linux guest, where
 every system call is two switches of the host's processes.
Linux counterpart: none.
Invariants: one row a parameter, with its source; a row names a key of a scenario's [machine]. A
 source begins with "fit:" if the value was fitted to recordings of these machines, with "result:"
 if it was read off what a recorded run measured, with "assumed:" if it is a guess; the validation
 report counts them by that.
Left out: caches, frequencies, other guests of the host.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

_TMPFS = "fit: 9.7 us a message of six calls and 3.5 pages on tmpfs, one process, c_mailq/tmpfs-p1"
_SHARED = "fit: 8.8 us a message with 8 processes on two CPUs, c_mailq/tmpfs-p8"
_STORM = "fit: 5.6 ms of system time a message with four forks and an exec, d_mta s20-m2000"
_EXT3 = "fit: 65 us from one message's write to the next on a CPU, traces of c_mailq/ext3-p32"
_FREE = "assumed: a quarter of what it takes to allocate one"
_AS_EXT3 = "assumed: what ext3 needs for such a thing; a transaction as five handles"
_GUEST_EXT3 = "fit: 600 us of CPU a message, 290 us of them as on tmpfs, u_c_mailq/ext3-p32"
_FILL = "fit: 1.7 us a page, of which 1 us fills it: populate_s of e_overcommit, the run that fits"
_GUEST_FILL = "fit: 13 us a page: populate_s of u_e_overcommit, the run that fits"
_GUEST_FORK = "recorded: the rigs' README: fork takes 10 ms in the guest; its parts are assumed"
_MAIL = "fit: 2.3 ms of user time a message, client included, d_mta s20-m2000"
_GUEST_MAIL = "fit: 70 ms of CPU a message, four forks of 10 ms included, u_d_mta s20-m300"
_VIRTUAL = "manual: the rigs are virtual machines"
_HALT = "fit: 40 us to leave HLT: from each thread to the next it wakes, c_mailq p1"
_GUEST_HALT = "fit: as the virtual machine whose process the guest's CPU is"
_FIO_START = "result: wall and CPU time of fio beside its job, a_randread"
_GUEST_FIO_START = "result: wall and CPU time of fio beside its job, u_a_randread"
_JIFFIES = "recorded: the rigs' README: process CPU clocks advance in ticks of 10 ms"
_PINNED = (
    "fit: 533 against 146 us from reply to request of 1 MiB and 128 KiB, less copies, b direct"
)
_PREEMPTION = "kernel: init/Makefile, preempt-flag: uname -v of the guest has no PREEMPT"
_COLD = "recorded: pread and pwrite after 0.02 to 50 ms of sleep, on a guest of KVM, Linux 6.18"
_GUEST = (
    "fit: 290 us a message of six calls and 3.5 pages on tmpfs, one process, u_c_mailq/tmpfs-p1"
)


@dataclass(frozen=True, kw_only=True)
class Rig:
    """What one kind of machine adds to a scenario."""

    disk: str  # name of the block device
    under: str  # what makes a block device of the emulated disk
    costs: Mapping[str, tuple[str, str]]  # key below [machine] -> (value, source)
    tmpfs: Mapping[str, tuple[str, str]]  # key below its mount -> (value, source)
    ext3: Mapping[str, tuple[str, str]]  # key below its mount -> (value, source)
    xfs: Mapping[str, tuple[str, str]]  # key below its mount -> (value, source)
    sendmail: Mapping[str, tuple[str, str]]  # key below its process -> (value, source)
    kernel_mib: tuple[int, str]  # memory that is never page cache, where it is short
    beside_programs_kib: tuple[int, str]  # of memory or of a limit, what is not programs' pages
    fio_start: tuple[float, float, str]  # ms of fio before its jobs: wall, user CPU; source
    nice: int  # of the workload; the kernel's threads have 0


LOOP: Final = Rig(
    disk="loop0",
    under="loop",
    costs={
        "cpuidle.table": ("haltpoll", _VIRTUAL),
        "cpuidle.exit_scale": ("40", _HALT),
        "syscall.entry": ("0.1 us", "assumed: a null call without mitigations, 3 GHz"),
        "syscall.interrupt": ("0 us", "manual: the emulator's process ends requests itself"),
        "syscall.fork": ("0.6 ms", _STORM),
        "syscall.fork_child": ("0.6 ms", _STORM),
        "syscall.exit": ("0.2 ms", _STORM),
        "sched.context_switch": ("1 us", "assumed: lmbench lat_ctx, 3 GHz"),
        "vfs.component": ("0.1 us", _TMPFS),
        "vfs.open": ("0.4 us", _TMPFS),
        "vfs.close": ("0.2 us", _TMPFS),
        "vfs.page_copy": ("0.4 us", _TMPFS),
        "vfs.sync": ("0.1 us", _TMPFS),
        "vfs.lock_transfer": ("2.6 us", _SHARED),
        "vm.page_add": ("0.2 us", _TMPFS),
        "vm.fault": ("0.7 us", _FILL),
        "vfs.direct": ("2 us", "assumed: get_user_pages, bio, blk-mq, queue_work"),
        "vfs.direct_page": ("0.36 us", _PINNED),
    },
    tmpfs={"operation": ("1.4 us", _TMPFS), "page": ("0.3 us", _TMPFS)},
    ext3={
        "operation": ("4 us", _EXT3),
        "block": ("0.7 us", _EXT3),
        "free_block": ("0.175 us", _FREE),
        "buffer": ("0.5 us", _EXT3),
        "handle": ("0.4 us", _EXT3),
    },
    xfs={
        "operation": ("4 us", _AS_EXT3),
        "block": ("0.7 us", _AS_EXT3),
        "buffer": ("0.5 us", _AS_EXT3),
        "transaction": ("2 us", _AS_EXT3),
    },
    sendmail={
        "session_user": ("0.3 ms", _MAIL),
        "message_user": ("1 ms", _MAIL),
        "delivery_user": ("0.9 ms", _MAIL),
        "byte_user_ns": ("5", "assumed: a third of what the model's machine of 2005 needs"),
        "mailer_exec": ("1 ms", _STORM),
    },
    kernel_mib=(16, "assumed: any; what the kernel takes does not count towards a group's limit"),
    beside_programs_kib=(1360, "result: rss and cache in memory.stat end at 64176 KiB, e"),
    fio_start=(320, 80, _FIO_START),
    nice=-15,  # the rigs' README: "nice -15, autogroup -15 in the loop rig"
)
# The machine that i_fio and p_pgbench were recorded on: of the same kind, and slower. What was
# measured there by itself (hostcost.json, made by the rig's hostcost.c) is its own.
SLOWER_LOOP: Final = replace(
    LOOP,
    costs={
        **LOOP.costs,
        "syscall.entry": ("722 ns", "recorded: hostcost.json: getppid"),
        "vfs.page_copy": ("343 ns", "recorded: hostcost.json: a hot read of 1 MiB, 87.7 us"),
        "sched.context_switch": (
            "4.5 us",
            "recorded: hostcost.json: half of 12 us there and back through pipes, less two calls",
        ),
        # 229 us from fork() to the end of a child that ends at once, divided as LOOP's.
        "syscall.fork": ("98 us", "recorded: hostcost.json: fork and wait, 229 us, three sevenths"),
        "syscall.fork_child": ("98 us", "recorded: hostcost.json: as fork"),
        "syscall.exit": ("33 us", "recorded: hostcost.json: as fork, one seventh"),
        # Of another machine of this kind, while nothing else ran there. The costs above are those
        # of calls that were repeated, and warm. LOOP's and GUEST's were fitted to whole messages:
        # what the pauses between their calls cost is a part of them already.
        "vfs.cache_life": ("5.5 ms", _COLD),
        "vfs.read_refill": ("12 us", _COLD),
        "vfs.write_refill": ("27 us", _COLD),
    },
)
GUEST: Final = Rig(
    disk="ubda",
    under="ubd",
    costs={
        "cpuidle.table": ("haltpoll", _VIRTUAL),
        "cpuidle.exit_scale": ("40", _GUEST_HALT),
        "syscall.entry": (
            "6 us",
            "recorded: the rigs' README: a system call takes 6 us in the guest",
        ),
        "syscall.interrupt": ("20 us", "assumed: a signal of the host, two switches"),
        "syscall.fork": ("3 ms", _GUEST_FORK),
        "syscall.fork_child": ("5 ms", _GUEST_FORK),
        "syscall.exit": ("2 ms", _GUEST_FORK),
        "sched.context_switch": ("10 us", "assumed: two switches of the host"),
        "sched.notsc": ("true", _JIFFIES),
        "sched.preemption": ("none", _PREEMPTION),
        "vfs.component": ("1 us", _GUEST),
        "vfs.open": ("40 us", _GUEST),
        "vfs.close": ("10 us", _GUEST),
        "vfs.page_copy": ("10 us", _GUEST),
        "vfs.sync": ("5 us", _GUEST),
        "vm.fault": ("12 us", _GUEST_FILL),
        "vfs.direct": ("70 us", "fit: 217 us from a read's reply to the next, u_a_randread jobs1"),
    },
    tmpfs={"operation": ("30 us", _GUEST), "page": ("10 us", _GUEST)},
    ext3={
        "operation": ("30 us", _GUEST_EXT3),
        "block": ("10 us", _GUEST_EXT3),
        "free_block": ("2.5 us", _FREE),
        "buffer": ("5 us", _GUEST_EXT3),
        "handle": ("4 us", _GUEST_EXT3),
    },
    xfs={
        "operation": ("30 us", _AS_EXT3),
        "block": ("10 us", _AS_EXT3),
        "buffer": ("5 us", _AS_EXT3),
        "transaction": ("20 us", _AS_EXT3),
    },
    sendmail={
        "session_user": ("3 ms", _GUEST_MAIL),
        "message_user": ("8 ms", _GUEST_MAIL),
        "delivery_user": ("8 ms", _GUEST_MAIL),
        "byte_user_ns": ("5", "assumed: user code runs as fast as on the host"),
        "mailer_exec": ("12 ms", _GUEST_MAIL),
    },
    kernel_mib=(32, "fit: 139 to 149 MiB of page cache in 176 MiB, u_f_pagecache a0"),
    beside_programs_kib=(42584, "result: dmesg of an OOM kill, u_e: on no list, or locked"),
    fio_start=(450, 400, _GUEST_FIO_START),
    nice=0,
)


def rows(rig: Rig) -> Iterator[tuple[str, str, str]]:
    """Yield everything that the rig adds to scenarios: key, value, source."""
    groups = {
        "machine": rig.costs,
        "tmpfs": rig.tmpfs,
        "ext3, ext4": rig.ext3,
        "xfs": rig.xfs,
        "sendmail": rig.sendmail,
    }
    for group, values in groups.items():
        for key, (value, source) in values.items():
            yield key if group == "machine" else f"{group}: {key}", value, source
    memory_mib, source = rig.kernel_mib
    yield "vm.kernel (readers of a large file)", f"{memory_mib} MiB", source
    beside_kib, source = rig.beside_programs_kib
    yield "memory beside programs' pages", f"{beside_kib} KiB", source
    wall_ms, user_ms, source = rig.fio_start
    yield "fio: start, start_user", f"{wall_ms:g} ms, {user_ms:g} ms", source
