"""The tables of [machine] that set parameters of kernel parts, and the classes they are read into.

Models: sysctl and the constants of kernel parts that belong to no single device or mount.
Linux counterpart: kernel/sysctl.c.
Invariants: one row a table; the class declares its parameters (sim.param).
Left out: importing them all for a question that needs none: a row names module and class.
"""

from collections.abc import Mapping
from typing import Final

TUNABLES: Final[Mapping[str, tuple[str, str]]] = {
    "cpufreq": ("sim.sched.cpufreq_params", "CpufreqParams"),
    "cpuidle": ("sim.sched.cpuidle", "CpuidleParams"),
    "guest": ("sim.sched.guest", "GuestParams"),
    "nic": ("sim.net.nic", "NicParams"),
    "sched": ("sim.sched.params", "SchedParams"),
    "smt": ("sim.sched.smt", "SmtParams"),
    "syscall": ("sim.syscall_params", "SyscallParams"),
    "tcp": ("sim.net.tcp", "TcpParams"),
    "vfs": ("sim.fs.super", "VfsParams"),
    "vm": ("sim.mm.params", "VmParams"),
    "zswap": ("sim.mm.zswap_params", "ZswapParams"),
}
# Hardware that a machine may lack: its parameters are there only if its table is.
OPTIONAL: Final = frozenset(("cpufreq", "cpuidle", "guest", "nic", "smt", "zswap"))
