"""Whatever tasks do to a file system at the same time, it stays consistent."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sim.fs import read_write, sync
from sim.fs.super import (
    O_APPEND,
    O_CREAT,
    O_DIRECT,
    O_RDONLY,
    O_SYNC,
    O_TRUNC,
    O_WRONLY,
    FileSystem,
)
from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task, sleep_ns
from tests.fs.machine import MS, Machine, S, assert_sound

Step = tuple[str, int, int, int]

PATHS = ["/a", "/b", "/d/a", "/d/b", "/d/e/a", "/d", "/d/e", "/f", "/f/a"]
KINDS = [
    "write",
    "append",
    "overwrite",
    "fsync",
    "fdatasync",
    "fsyncdir",
    "unlink",
    "rename",
    "mkdir",
    "rmdir",
    "link",
    "truncate",
    "read",
    "readdir",
    "sleep",
    "sync",
    "osync",
    "direct",
    "trunc",
]
steps = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 8), st.integers(0, 8), st.integers(0, 90)),
    max_size=25,
)


def apply(machine: Machine, task: Task, step: Step) -> Blocking[None]:
    """Make one call; those that fail are fine."""
    kind, one, other, pages = step
    vfs, path = machine.vfs, PATHS[one]
    size = pages * 4096 - (one * 100 if pages else 0)
    if kind in ("write", "append", "overwrite", "osync", "direct", "trunc", "fsync", "fdatasync"):
        flags = {"append": O_APPEND, "osync": O_SYNC, "direct": O_DIRECT, "trunc": O_TRUNC}
        if kind == "direct":
            size = pages * 4096
        file = yield from vfs.open(task, path, O_WRONLY | O_CREAT | flags.get(kind, 0))
        try:
            if "sync" not in kind or kind == "osync":
                yield from read_write.write(vfs, task, file, size, other * 4096 * 100)
            if kind == "fdatasync":
                yield from sync.fdatasync(vfs, task, file)
            elif kind == "fsync":
                yield from sync.fsync(vfs, task, file)
        finally:
            yield from vfs.close(task, file)
    elif kind in ("read", "readdir", "fsyncdir"):
        file = yield from vfs.open(task, path, O_RDONLY)
        try:
            if kind == "read":
                yield from read_write.read(vfs, task, file, size)
            elif kind == "readdir":
                yield from vfs.readdir(task, file)
            else:
                yield from sync.fsync(vfs, task, file)
        finally:
            yield from vfs.close(task, file)
    elif kind in ("unlink", "mkdir", "rmdir"):
        yield from getattr(vfs, kind)(task, path)
    elif kind in ("rename", "link"):
        yield from getattr(vfs, kind)(task, path, PATHS[other])
    elif kind == "truncate":
        yield from vfs.truncate(task, path, size)
    elif kind == "sync":
        yield from sync.sync(vfs, task)
    else:
        yield from sleep_ns(task, pages * 40 * MS + 1, TASK_INTERRUPTIBLE)


def run_all(machine: Machine, fs: FileSystem, programs: list[list[Step]]) -> None:
    """Run each program as a task; check when all have ended, and after a minute of quiet."""

    def body(program: list[Step]) -> Callable[[Task], Blocking[None]]:
        def main(task: Task) -> Blocking[None]:
            for step in program:
                try:
                    yield from apply(machine, task, step)
                except OSError:
                    continue

        return main

    machine.run(*[body(program) for program in programs], for_ns=400 * S)
    assert_sound(machine, fs)


OPTIONS = [
    {},
    {"data": "journal"},
    {"data": "writeback"},
    {"dir_index": True},
    {"dirsync": True},
    {"metadata_cached": False},
    {"sync": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs=st.lists(steps, min_size=1, max_size=4))
def test_ext3_stays_consistent(options: dict[str, object], programs: list[list[Step]]) -> None:
    machine = Machine(capacity_bytes=256 << 20)
    fs = machine.mount_ext3(**options)
    free = fs.statfs().blocks_free
    run_all(machine, fs, programs)

    def clear(task: Task) -> Blocking[None]:
        yield from remove_all(machine, task, "")
        yield from sync.sync(machine.vfs, task)

    machine.run(clear, for_ns=100 * S)
    assert_sound(machine, fs)
    grown = fs.root.size // 4096 - 1  # The root keeps the blocks it grew to.
    assert fs.statfs().blocks_free == free - grown
    assert fs.info.blocks.pending_total == 0


EXT4_MACHINES: list[tuple[str, dict[str, object]]] = [
    ("6.18", {}),
    ("4.19", {}),
    ("2.6.32", {}),
    ("6.18", {"delalloc": False}),
    ("6.18", {"data": "journal"}),
    ("6.18", {"data": "writeback"}),
    ("6.18", {"metadata_cached": False}),
    ("6.18", {"sync": True}),
    ("6.18", {"has_journal": False}),
    ("2.6.32", {"has_journal": False, "metadata_cached": False}),
    ("6.18", {"has_journal": False, "sync": True}),
]


@pytest.mark.parametrize(("kernel", "options"), EXT4_MACHINES, ids=str)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs=st.lists(steps, min_size=1, max_size=4))
def test_ext4_stays_consistent_and_keeps_its_promises(
    kernel: str, options: dict[str, object], programs: list[list[Step]]
) -> None:
    machine = Machine(kernel, capacity_bytes=256 << 20)
    fs = machine.mount_ext4(**options)
    free = fs.statfs().blocks_free
    run_all(machine, fs, programs)

    def clear(task: Task) -> Blocking[None]:
        yield from remove_all(machine, task, "")
        yield from sync.sync(machine.vfs, task)

    machine.run(clear, for_ns=100 * S)
    assert_sound(machine, fs)
    grown = fs.root.size // 4096 - 1
    assert fs.statfs().blocks_free == free - grown
    assert fs.info.promised_blocks == 0


XFS_MACHINES: list[tuple[str, dict[str, object]]] = [
    ("6.18", {}),
    ("4.19", {}),
    ("2.6.39", {}),
    ("2.6.16", {}),
    ("2.6.32", {"barrier": False}),
    ("6.18", {"log_bytes": 4 << 20}),
    ("2.6.32", {"log_bytes": 4 << 20, "wsync": True}),
    ("6.18", {"metadata_cached": False}),
    ("3.2", {"sync": True}),
]


@pytest.mark.parametrize(("kernel", "options"), XFS_MACHINES, ids=str)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs=st.lists(steps, min_size=1, max_size=4))
def test_xfs_stays_consistent_and_loses_no_block(
    kernel: str, options: dict[str, object], programs: list[list[Step]]
) -> None:
    machine = Machine(kernel, capacity_bytes=256 << 20)
    fs = machine.mount_xfs(**options)
    free = fs.info.free_blocks()
    run_all(machine, fs, programs)

    def clear(task: Task) -> Blocking[None]:
        yield from remove_all(machine, task, "")
        yield from sync.sync(machine.vfs, task)

    machine.run(clear, for_ns=100 * S)
    assert_sound(machine, fs)
    assert fs.info.free_blocks() == free
    assert fs.info.promised_blocks == 0 and not fs.info.unlinked
    assert not fs.info.ail.items and fs.info.log.reserved_bytes == 0


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs=st.lists(steps, min_size=1, max_size=4))
def test_a_full_xfs_stays_consistent(programs: list[list[Step]]) -> None:
    machine = Machine("6.18", capacity_bytes=32 << 20)
    fs = machine.mount_xfs()
    run_all(machine, fs, [[*program, *program] for program in programs])


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs=st.lists(steps, min_size=1, max_size=4))
def test_a_full_ext4_stays_consistent(programs: list[list[Step]]) -> None:
    machine = Machine("6.18", capacity_bytes=32 << 20)
    fs = machine.mount_ext4()
    run_all(machine, fs, [[*program, *program] for program in programs])


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs=st.lists(steps, min_size=1, max_size=4))
def test_a_full_ext4_without_a_journal_stays_consistent(programs: list[list[Step]]) -> None:
    machine = Machine("6.18", capacity_bytes=32 << 20)
    fs = machine.mount_ext4(has_journal=False)
    run_all(machine, fs, [[*program, *program] for program in programs])


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs=st.lists(steps, min_size=1, max_size=4))
def test_a_full_ext3_stays_consistent(programs: list[list[Step]]) -> None:
    machine = Machine(capacity_bytes=32 << 20)
    fs = machine.mount_ext3()
    run_all(machine, fs, [[*program, *program] for program in programs])


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs=st.lists(steps, min_size=1, max_size=4))
def test_tmpfs_stays_consistent_and_asks_nothing_of_the_disk(programs: list[list[Step]]) -> None:
    machine = Machine()
    fs = machine.mount_tmpfs(size_bytes=200 * 4096)
    run_all(machine, fs, programs)
    assert machine.writes() == []


def remove_all(machine: Machine, task: Task, path: str) -> Blocking[None]:
    """rm -r."""
    inode = yield from machine.vfs.lookup(task, path or "/")
    for name, child in list(inode.directory().items()):
        if child.is_dir():
            yield from remove_all(machine, task, f"{path}/{name}")
            yield from machine.vfs.rmdir(task, f"{path}/{name}")
        else:
            yield from machine.vfs.unlink(task, f"{path}/{name}")
