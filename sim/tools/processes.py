"""Read what /proc says of each process: /proc/PID/stat, statm and status.

Models: what top and ps take from these files.
Linux counterpart: fs/proc/array.c (do_task_stat, proc_pid_statm, task_state), 2.6.16 to 6.5.
Invariants: times in ticks of 1/100 s, memory in KiB; a process is there if its stat is.
Left out: the other fields; names of users come from /etc/passwd, not from /proc: 0 is root, others
are shown by number.
"""

from __future__ import annotations

from dataclasses import dataclass

from sim.tools.parse import ProcFormatError
from sim.tools.snapshot import Snapshot

KIB_PER_PAGE = 4
STAT_FIELDS_MIN = 24  # up to the resident set
ROOT = "root"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRow:
    """One process."""

    pid: int
    comm: str
    state: str
    ticks: int  # user and system time
    priority: int
    nice: int
    user: str
    virtual_kib: int
    resident_kib: int
    shared_kib: int


@dataclass(frozen=True, slots=True)
class StatFields:
    """/proc/PID/stat: the name, and the fields after it, which proc(5) counts from 3."""

    comm: str
    after_comm: tuple[str, ...]

    def __len__(self) -> int:
        """Return how many fields the text has, with pid and name."""
        return len(self.after_comm) + 2

    def __getitem__(self, number: int) -> str:
        """Return a field by its number in proc(5), 3 (the state) and on."""
        return self.after_comm[number - 3]


def parse_processes(snapshot: Snapshot) -> tuple[ProcessRow, ...]:
    """Return the processes by pid."""
    return tuple(_process(snapshot, pid) for pid in pids(snapshot))


def pids(snapshot: Snapshot) -> list[int]:
    """Return the pids that there are, in order."""
    return sorted(int(name.removesuffix("/stat")) for name in snapshot.files if _is_stat(name))


def _is_stat(name: str) -> bool:
    pid, _, file = name.partition("/")
    return file == "stat" and pid.isdecimal()


def stat_fields(snapshot: Snapshot, pid: int) -> StatFields:
    """Return /proc/PID/stat."""
    text = snapshot.text(f"{pid}/stat")
    head, closing, tail = text.rpartition(")")  # A name may hold anything, ")" too.
    found = StatFields(head.partition("(")[2], tuple(tail.split()))
    if not closing or len(found) < STAT_FIELDS_MIN:
        raise ProcFormatError(f"{pid}/stat", 1, text, f"at least {STAT_FIELDS_MIN} fields")
    return found


def _process(snapshot: Snapshot, pid: int) -> ProcessRow:
    fields = stat_fields(snapshot, pid)
    # utime 14, stime 15, priority 18, nice 19
    utime, stime, priority, nice = (int(fields[number]) for number in (14, 15, 18, 19))
    size, resident, shared = map(int, snapshot.text(f"{pid}/statm").split()[:3])
    return ProcessRow(
        pid=pid,
        comm=fields.comm,
        state=fields[3],
        ticks=utime + stime,
        priority=priority,
        nice=nice,
        user=_user(snapshot.text(f"{pid}/status")),
        virtual_kib=size * KIB_PER_PAGE,
        resident_kib=resident * KIB_PER_PAGE,
        shared_kib=shared * KIB_PER_PAGE,
    )


def _user(status: str) -> str:
    """Return the owner by the effective uid (the second one)."""
    for line in status.splitlines():
        if line.startswith("Uid:"):
            uid = line.split()[2]
            return ROOT if uid == "0" else uid
    return ROOT
