"""vm.block_dump: who submits which blocks and dirties which inodes, as the kernel logs it.

Models: echo 1 > /proc/sys/vm/block_dump: a line for each bio that comes from above all devices, and
one for each inode that becomes dirty, with the process that did it. What md or device mapper pass
on below is nobody's line.

    kjournald(1624): WRITE block 5678 on xvda1
    exim4(3508): dirtied inode 98313 (000007-D) on xvda1

Linux counterpart: submit_bio, block/ll_rw_blk.c; __mark_inode_dirty, fs/fs-writeback.c, 2.6.18;
the number of sectors behind the device from 2.6.37; removed in 5.14.
Invariants: looking changes nothing that is simulated; a run of bios is as many lines; the process
 is who called the kernel, a kernel thread where that is one.
Left out: an inode dirtied twice before it was written, for its times and then for its size, is one
 line, not two; names of inodes that have none yet, or several; lines lost where the log's buffer is
 full.
"""

from collections import Counter
from dataclasses import replace
from typing import Final

from sim.block.bio import DISCARD, READ, Bio
from sim.engine.trace import Record as Hit
from sim.fs.super import Inode
from sim.machine import Machine
from sim.results import Record, RunResult
from sim.sched.version import KernelVersion

WINDOW_NS: Final = 1_000_000_000  # of the counts that go into a result
SECTORS_SINCE: Final = (2, 6, 37)
REMOVED_IN: Final = (5, 14)
BLOCKS: Final = "blocks"  # the family of figures made of them
EVENTS: Final = "block_events"  # the mark of the counts
JOURNAL_THREAD: Final = "kjournald"
IDLE: Final = ("swapper", 0)


class BlockDump:
    """Attached to a booted machine (`simulate(..., watch=dump.attach)`), takes its events."""

    def __init__(self, *, keep_lines: bool) -> None:
        self.lines: list[str] | None = [] if keep_lines else None
        self.processes: Counter[str] = Counter()  # lines of each "comm(pid)"
        self._windows: dict[int, Counter[str]] = {}  # of each second: lines by comm
        self._machine: Machine | None = None

    def attach(self, machine: Machine) -> None:
        """Listen to all devices with file systems, and to inodes that become dirty."""
        self._machine = machine
        for device in machine.devices.values():
            device.watch(self._submitted)
        machine.tracer.start("writeback_dirty_inode", sink=self._dirtied)

    def in_result(self, result: RunResult) -> RunResult:
        """Return the result with a mark for each second and command: how many lines there were."""
        added = [
            Record((second + 1) * WINDOW_NS, EVENTS, comm, count)
            for second, counts in self._windows.items()
            for comm, count in sorted(counts.items())
        ]
        records = sorted((*result.records, *added), key=lambda record: record.t_ns)
        return replace(result, records=tuple(records))

    # -- What happens.

    def _submitted(self, device: str, bio: Bio) -> None:
        """A run of bios comes to a device: a line each."""
        if not bio.nr_sectors or bio.op == DISCARD:
            return
        verb = "READ" if bio.op == READ else "WRITE"
        who = self._count(bio.count)
        if self.lines is not None:
            suffix = f" ({bio.size} sectors)" if self._version() >= SECTORS_SINCE else ""
            self.lines += [
                f"{who}: {verb} block {bio.sector + n * bio.size} on {device}{suffix}"
                for n in range(bio.count)
            ]

    def _dirtied(self, hit: Hit) -> None:
        """An inode becomes dirty: a line, unless it is a device's own (bdev)."""
        device, number = hit.args
        if not number:
            return
        who = self._count(1)
        if self.lines is not None:
            name = self._name_of(device, number)
            self.lines.append(f"{who}: dirtied inode {number} ({name}) on {device}")

    def _count(self, lines: int) -> str:
        """Count lines of whoever is in the kernel now; return who."""
        machine = self._machine
        assert machine is not None
        task = machine.sched.current
        comm, pid = IDLE if task is None else (task.comm, task.pid)
        who = f"{comm}({pid})"
        self.processes[who] += lines
        second = machine.calendar.now // WINDOW_NS
        self._windows.setdefault(second, Counter())[comm] += lines
        return who

    def _version(self) -> KernelVersion:
        assert self._machine is not None
        return self._machine.version

    def _name_of(self, device: str, number: int) -> str:
        """Return a name of an inode, "?" if it has none (yet)."""
        assert self._machine is not None
        for _, file_system in self._machine.vfs.mounts:
            found = file_system.device
            if found is not None and found.name == device:
                return _name_below(file_system.root, number)
        return "?"


def _name_below(directory: Inode, number: int) -> str:
    """Look for an inode below a directory."""
    below = [directory]
    while below:
        for name, inode in (below.pop().entries or {}).items():
            if inode.ino == number:
                return name
            if inode.is_dir():
                below.append(inode)
    return "?"


def counts_text(dump: BlockDump) -> str:
    """Return the lines by process, most first, as `sort | uniq -c` of the log would tell."""
    ordered = sorted(dump.processes.items(), key=lambda item: (-item[1], item[0]))
    return "".join(f"{who}: {count}\n" for who, count in ordered)
