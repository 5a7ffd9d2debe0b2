"""/proc/PID/stat, statm and status: what each process has and does.

Models: the fields that top and ps read: name, state, parent, CPU time, priority, start, memory.
Linux counterpart: fs/proc/array.c (do_task_stat, proc_pid_statm, proc_pid_status), fs/proc/
task_mmu.c (task_mem), 2.6.16 to 6.5.
Invariants: times in ticks of 1/100 s, truncated; sizes in pages in stat and statm, in kB in status.
Left out: all other fields are 0, and stat ends with the field of 2.6.16 (41); a process is root's;
pages of its program and libraries, which have no memory here. VmSwap came with 2.6.34.
"""

from __future__ import annotations

from sim.fs.proc.counters import Process, ProcessMemory
from sim.sched.version import KernelVersion

USER_HZ_NS = 10_000_000
PAGE_SIZE = 4096
KIB_PER_PAGE = 4
STAT_FIELDS = 41
PRIORITY_OF_NICE_0 = 20
VM_SWAP_SINCE: KernelVersion = (2, 6, 34)
STATE_NAMES = {
    "R": "running",
    "S": "sleeping",
    "D": "disk sleep",
    "T": "stopped",
    "Z": "zombie",
    "X": "dead",
}


def render_process(
    process: Process, memory: ProcessMemory | None, *, version: KernelVersion
) -> dict[str, str]:
    """Return the texts of a process's files, by path below /proc; a kernel thread has no memory."""
    return {
        f"{process.pid}/stat": _stat(process, memory),
        f"{process.pid}/statm": _statm(memory),
        f"{process.pid}/status": _status(process, memory, version),
    }


def _stat(process: Process, memory: ProcessMemory | None) -> str:
    fields = {  # by number, of those after the name
        3: process.state_letter,
        4: process.ppid,
        14: process.utime_ns // USER_HZ_NS,
        15: process.stime_ns // USER_HZ_NS,
        18: PRIORITY_OF_NICE_0 + process.nice,
        19: process.nice,
        20: 1,
        22: process.start_ns // USER_HZ_NS,
        39: process.cpu,
    }
    if memory is not None:
        fields |= {23: memory.total_pages * PAGE_SIZE, 24: memory.rss_pages}
    values = (str(fields.get(number, 0)) for number in range(3, STAT_FIELDS + 1))
    return f"{process.pid} ({process.comm}) {' '.join(values)}\n"


def _statm(memory: ProcessMemory | None) -> str:
    """Return size, resident, shared, text, lib, data, dirty, in pages."""
    size, resident = (0, 0) if memory is None else (memory.total_pages, memory.rss_pages)
    return f"{size} {resident} 0 0 0 {size} 0\n"


def _status(process: Process, memory: ProcessMemory | None, version: KernelVersion) -> str:
    state = process.state_letter
    lines = {
        "Name": process.comm,
        "State": f"{state} ({STATE_NAMES[state]})",
        "Pid": process.pid,
        "PPid": process.ppid,
        "Uid": "0\t0\t0\t0",
        "Gid": "0\t0\t0\t0",
    }
    text = "".join(f"{name}:\t{value}\n" for name, value in lines.items())
    if memory is not None:
        pages = {"VmSize": memory.total_pages, "VmRSS": memory.rss_pages}
        if version >= VM_SWAP_SINCE:
            pages["VmSwap"] = memory.swap_pages
        text += "".join(f"{name}:\t{n * KIB_PER_PAGE:8d} kB\n" for name, n in pages.items())
    return text + "Threads:\t1\n"
