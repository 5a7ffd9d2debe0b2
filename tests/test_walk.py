"""One write() and fsync() through the house, step by step: the section of ARCHITECTURE.md.

A program writes 8 KiB into a new file of an ext3 on a dm volume of a 15K disk, and makes it
durable. The trace is read here in the order in which the page tells the story.
"""

import sys
from collections import defaultdict
from functools import cache
from inspect import CO_GENERATOR
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import pytest

import sim
from sim.engine.trace import Record
from sim.fs.ext4.super import Ext4
from sim.machine import Machine
from sim.sched.task import Blocking
from sim.syscall import O_CREAT, O_WRONLY, Sys
from sim.tools.parse import parse_diskstats
from tests.user.servers import MS, boot

DISK = """\
disk.sdb = { profile = "sas-15k", scheduler = "cfq" }
volume.dm-6 = { on = "sdb", offset = "1 GiB", size = "64 GiB" }
mount."/" = { type = "ext3", device = "dm-6" }
"""
OFFSET = 1 << 21  # sectors, of the volume on the disk
PAGE = 8  # sectors
STEP_NS = MS // 10
SIM = str(Path(sim.__file__).parent)
# From a system call to the device so many functions that may sleep wait for each other at most.
NESTED_MAX = 8
# So many files of sim/ are entered until the call returns, by whatever runs meanwhile.
WRITE_FILES_MAX = 15
FSYNC_FILES_MAX = 34


class Walk(NamedTuple):
    """The machine after the walk, what its trace says, and who waited for the disk meanwhile."""

    machine: Machine
    trace: list[Record]
    in_iowait: set[str]
    asleep_in: set[tuple[str, str, str]]  # (comm, state, wchan)

    def mark(self, text: str) -> int:
        """Return the place of the program's own note in the trace."""
        (place,) = self.where("trace_marker", text)
        return place

    def where(self, name: str, *args: object) -> list[int]:
        """Return the places of a tracepoint whose first fields are `args`."""
        return [
            place
            for place, record in enumerate(self.trace)
            if record.name == name and record.args[: len(args)] == args
        ]

    def between(self, first: str, last: str) -> list[Record]:
        """Return what happened between two notes."""
        return self.trace[self.mark(first) + 1 : self.mark(last)]

    def pid(self) -> int:
        """Return the program's process id."""
        (pid,) = {r.args[1] for r in self.trace if r.name == "sys_enter" and r.args[0] == "test"}
        return int(pid)

    def requests(self, name: str) -> list[tuple[int, int]]:
        """Return (block of the volume, blocks) of the disk's requests, in order."""
        fields = [self.trace[place].args for place in self.where(name, "sdb")]
        return [((sector - OFFSET) // PAGE, count // PAGE) for _, _, sector, count, *_ in fields]


@cache
def walk() -> Walk:
    """Take the walk once; every test looks at a part of it."""
    machine = boot(machine=DISK, trace=True)
    note = machine.tracer.trace_marker

    def program(sys: Sys) -> Blocking[None]:
        fd = yield from sys.open("/letter", O_WRONLY | O_CREAT)
        yield from sys.sleep(10 * MS)
        note("write")
        yield from sys.write(fd, 8192)
        note("written")
        yield from sys.sleep(10 * MS)
        note("fsync")
        yield from sys.fsync(fd)
        note("durable")
        yield from sys.close(fd)

    machine.kernel.start("test", "test", program)
    in_iowait = set()
    asleep_in = set()
    while machine.calendar.now < 100 * MS:
        machine.run_until(machine.calendar.now + STEP_NS)
        for task in machine.sched.processes.tasks.values():
            asleep_in.add((task.comm, task.state_letter, task.wchan))
            if task.in_iowait:
                in_iowait.add(task.comm)
    machine.check()
    return Walk(machine, machine.tracer.records(), in_iowait, asleep_in)


def log_blocks() -> range:
    """Return the blocks of the volume that the journal has."""
    fs = walk().machine.vfs.file_system_of("/")
    assert isinstance(fs, Ext4)
    ((start, end),) = fs.info.journal.log.runs
    return range(start, end)


def parts() -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the requests to the file's place, and those to the log."""
    issued = walk().requests("block_rq_issue")
    data = [request for request in issued if request[0] not in log_blocks()]
    return data, [request for request in issued if request[0] in log_blocks()]


def test_write_has_its_answer_before_any_device_has_seen_anything() -> None:
    assert all(place > walk().mark("fsync") for place in walk().where("block_bio_queue"))
    between = walk().between("write", "written")
    assert [(r.name, *r.args[2:-1]) for r in between if r.name.startswith("sys_")] == [
        ("sys_enter", "write"),
        ("sys_exit", "write", 8192),
    ]


def test_fsync_is_one_call_from_before_its_first_bio_to_after_its_last_wakeup() -> None:
    (enter,) = walk().where("sys_enter", "test", walk().pid(), "fsync")
    (leave,) = walk().where("sys_exit", "test", walk().pid(), "fsync", 0)
    disk = walk().where("block_bio_queue") + walk().where("block_rq_complete")
    assert enter < min(disk) and max(disk) < leave
    assert leave > walk().where("sched_wakeup", "test")[-1]


def test_all_bios_but_the_first_of_each_request_are_merges() -> None:
    """One record may stand for a run of them: sectors add up to what the requests have."""
    queued = sum(walk().trace[place].args[3] for place in walk().where("block_rq_insert"))
    merged = sum(walk().trace[place].args[3] for place in walk().where("block_bio_backmerge"))
    written = sum(count for _, count in walk().requests("block_rq_complete"))
    assert merged > 0
    assert queued + merged == PAGE * written


def test_fsync_writes_data_then_the_log_then_the_commit_block() -> None:
    data, log = parts()
    assert walk().requests("block_rq_issue") == data + log
    assert sum(count for _, count in data) == 2  # 8 KiB
    body, commit = log
    assert commit == (body[0] + body[1], 1)


def test_the_log_has_a_descriptor_and_what_a_new_file_changes() -> None:
    """Group descriptor, two bitmaps, a block of the inode table, a block of the directory."""
    body = parts()[1][0]
    assert body[1] == 1 + 5


def test_each_step_is_on_the_disk_before_the_next_is_submitted() -> None:
    disk = [r for r in walk().trace if r.name in ("block_bio_queue", "block_rq_complete")]
    steps = [r.name for r in disk if (r.args[2] - OFFSET) // PAGE in log_blocks()]
    assert steps == ["block_bio_queue", "block_rq_complete"] * 2
    data_done = [r.when_ns for r in disk if (r.args[2] - OFFSET) // PAGE not in log_blocks()][-1]
    log_begun = next(r.when_ns for r in disk if (r.args[2] - OFFSET) // PAGE in log_blocks())
    assert data_done <= log_begun


def test_fsync_returns_when_kjournald_has_finished_the_commit() -> None:
    last = walk().where("block_rq_complete")[-1]
    follows = [
        (record.name, record.args[0])
        for record in walk().trace[last + 1 : walk().mark("durable")]
        if record.name == "sched_wakeup"
    ]
    assert follows == [("sched_wakeup", "kjournald"), ("sched_wakeup", "test")]
    fs = walk().machine.vfs.file_system_of("/")
    assert isinstance(fs, Ext4)
    assert fs.info.journal.nr_commits == 1


def test_the_commit_is_what_lies_between_its_two_tracepoints() -> None:
    """The data that fsync itself submitted may come before; the log comes within."""
    (start,), (end,) = walk().where("jbd_start_commit"), walk().where("jbd_end_commit")
    assert walk().mark("fsync") < start < end < walk().mark("durable")
    log = [
        place
        for place in walk().where("block_bio_queue")
        if (walk().trace[place].args[2] - OFFSET) // PAGE in log_blocks()
    ]
    assert all(start < place < end for place in log)


def test_only_kjournald_waits_for_the_disk_in_iowait() -> None:
    assert walk().in_iowait == {"kjournald"}
    assert ("test", "D", "log_wait_commit") in walk().asleep_in


def test_the_volume_counts_bios_and_the_disk_what_it_made_of_them() -> None:
    text = walk().machine.read_proc().text("diskstats")
    rows = {row.name: row for row in parse_diskstats(text)}
    volume, disk = rows["dm-6"], rows["sdb"]
    requests = walk().requests("block_rq_complete")
    assert volume.write_sectors == disk.write_sectors == PAGE * volume.writes
    assert disk.writes == len(requests)
    assert disk.writes + disk.write_merges == volume.writes
    assert volume.write_merges == 0
    assert disk.in_flight == volume.in_flight == 0


class Entered(NamedTuple):
    """What a call went through: files of sim/, and the longest chain of nested generators."""

    files: set[str]
    nested: list[str]


def entered(kind: str) -> dict[str, Entered]:
    """Follow every function that is called during a write() and an fsync()."""
    machine = boot(machine=DISK.replace("ext3", kind))
    found: dict[str, Entered] = defaultdict(lambda: Entered(set(), []))
    call = [""]

    def program(sys: Sys) -> Blocking[None]:
        fd = yield from sys.open("/letter", O_WRONLY | O_CREAT)
        yield from sys.sleep(10 * MS)
        call[0] = "write"
        yield from sys.write(fd, 8192)
        call[0] = ""
        yield from sys.sleep(10 * MS)
        call[0] = "fsync"
        yield from sys.fsync(fd)
        call[0] = ""
        yield from sys.close(fd)

    def note(frame: FrameType, event: str, arg: object) -> None:
        if not call[0] or event != "call" or not frame.f_code.co_filename.startswith(SIM):
            return
        what = found[call[0]]
        what.files.add(frame.f_code.co_filename)
        chain = []
        walk: FrameType | None = frame
        while walk is not None:
            code = walk.f_code
            if code.co_flags & CO_GENERATOR and code.co_filename.startswith(SIM):
                chain.append(code.co_qualname)
            walk = walk.f_back
        if len(chain) > len(what.nested):
            what.nested[:] = chain

    machine.kernel.start("test", "test", program)
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        machine.run_until(machine.calendar.now + 300 * MS)
    finally:
        sys.setprofile(before)
    assert not call[0], "the calls have returned"
    return found


@pytest.mark.parametrize("kind", ["ext3", "ext4", "xfs"])
def test_few_functions_lie_between_a_system_call_and_the_device(kind: str) -> None:
    for name, what in entered(kind).items():
        assert len(what.nested) <= NESTED_MAX, (name, what.nested)


def test_a_reader_of_one_call_opens_few_files() -> None:
    found = entered("ext3")
    assert len(found["write"].files) <= WRITE_FILES_MAX, sorted(found["write"].files)
    assert len(found["fsync"].files) <= FSYNC_FILES_MAX, sorted(found["fsync"].files)
