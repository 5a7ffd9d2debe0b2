"""The tables of [machine] that set parameters of kernel parts, and the classes they are read into.

Models: sysctl and the constants of kernel parts that belong to no single device or mount.
Linux counterpart: kernel/sysctl.c.
Invariants: one row a table; the class declares its parameters (sim.param).
Left out: importing them all for a question that needs none: a row names module and class.
"""

from collections.abc import Mapping
from typing import Final

TUNABLES: Final[Mapping[str, tuple[str, str]]] = {
    "sched": ("sim.sched.params", "SchedParams"),
    "syscall": ("sim.syscall_params", "SyscallParams"),
    "tcp": ("sim.net.tcp", "TcpParams"),
    "vfs": ("sim.fs.super", "VfsParams"),
    "vm": ("sim.mm.params", "VmParams"),
}
