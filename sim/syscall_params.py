"""What system calls cost besides what they do.

Models: CPU time of entering the kernel, of processes, packets and interrupts.
Linux counterpart: none; measured with lmbench and the like.
Invariants: frozen; nothing here depends on the release.
Left out: the costs of a part of the kernel that has parameters of its own (vm, vfs, sched).
"""

from dataclasses import dataclass, replace

from sim.net.nic import NicParams
from sim.param import param


@dataclass(frozen=True, kw_only=True)
class SyscallParams:
    """What entering the kernel and its process calls cost, on a 3 GHz Xeon of 2005."""

    entry_ns: int = param(
        "0.2 us",
        dim="time_ns",
        minimum=0,
        source="assumed: lmbench null call, Netburst Xeon",
        doc="one entry into the kernel and back",
    )
    fork_ns: int = param(
        "0.4 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: copying the page tables of a 5 MB process, lmbench fork of the time",
        doc="system CPU of the parent in fork()",
    )
    fork_child_ns: int = param(
        "0.5 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: some 250 copy-on-write faults of 2 us until the child has its own pages",
        doc="system CPU of the child after fork()",
    )
    exit_ns: int = param(
        "0.2 ms",
        dim="time_ns",
        minimum=0,
        source="assumed: unmapping the same pages",
        doc="system CPU of exit()",
    )
    wait_ns: int = param(
        "5 us",
        dim="time_ns",
        minimum=0,
        source="assumed: releasing a task_struct",
        doc="system CPU of reaping a child",
    )
    packet_ns: int = param(
        "3 us",
        dim="time_ns",
        minimum=0,
        source="assumed: 1 cycle a bit of TCP, half of it in the process: 1500 bytes at 3 GHz",
        doc="system CPU of a process for sending or receiving one packet of 1460 bytes",
    )
    packet_interrupt_ns: int = param(
        "3 us",
        dim="time_ns",
        minimum=0,
        source="assumed: 1 cycle a bit of TCP, half of it in the interrupt: 1500 bytes at 3 GHz",
        doc="time of a CPU that a packet's arrival takes in interrupts",
    )
    datagram_ns: int = param(
        "5 us",
        dim="time_ns",
        minimum=0,
        source="assumed: unix_dgram_sendmsg and its wake-up",
        doc="system CPU of a datagram to or from /dev/log",
    )
    interrupt_ns: int = param(
        "8 us",
        dim="time_ns",
        minimum=0,
        source="assumed: SCSI interrupt, softirq and end_io of a request, 2 to 6 us each",
        doc="time of a CPU that a disk's completion takes",
    )
    proc_read_ns: int = param(
        "12 us",
        dim="time_ns",
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


def with_exits(params: SyscallParams, nic: NicParams) -> SyscallParams:
    """Return what calls cost where each packet is exits to a hypervisor as well."""
    return replace(
        params,
        packet_ns=params.packet_ns + nic.exits_ns(),
        packet_interrupt_ns=params.packet_interrupt_ns + nic.exits_ns(),
    )
