"""The log: laws of records, group commit, order, and what a power cut leaves."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sim.block.bio import BIO_BARRIER, BIO_FLUSH, BIO_FUA, BIO_IDLE, BIO_SYNC
from sim.fs import read_write, sync
from sim.fs.super import O_CREAT, O_WRONLY
from sim.fs.xfs.buf import REGION_BYTES, buffer_bytes, inode_bytes
from sim.fs.xfs.mount import XfsInode
from sim.fs.xfs.super import Xfs
from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task, sleep_ns
from tests.fs.machine import MS, Machine, S, assert_sound
from tests.fs.test_storm_of_calls import apply, steps

MIB = 1 << 20
KERNELS = ["2.6.16", "2.6.39", "4.19", "6.18"]
Main = Callable[[Task], Blocking[None]]


def fsyncer(machine: Machine, name: str, count: int) -> Main:
    """Return a task that appends to a file of its own and fsyncs, `count` times."""

    def main(task: Task) -> Blocking[None]:
        file = yield from machine.vfs.open(task, name, O_WRONLY | O_CREAT)
        for _ in range(count):
            yield from read_write.write(machine.vfs, task, file, 4096)
            yield from sync.fsync(machine.vfs, task, file)
        yield from machine.vfs.close(task, file)

    return main


def test_a_region_has_a_header_and_adjacent_chunks_are_one() -> None:
    assert buffer_bytes(0b1) == 12 + 28 + 12 + 128
    assert buffer_bytes(0b111) == 12 + 28 + 12 + 3 * 128
    assert buffer_bytes(0b101) == 12 + 28 + 2 * (12 + 128)
    assert inode_bytes(176, 16) == 12 + 56 + 12 + 176 + 12 + 16


def test_a_record_is_its_regions_rounded_up_to_a_sector() -> None:
    """Create, allocate, size: three headers, four leaves, two inodes, one of them the root's."""
    machine = Machine("6.18")
    fs = machine.mount_xfs()
    machine.run(lambda task: machine.write_file(task, "/a", 4096))
    headers = 2 * buffer_bytes(1)  # AGI and AGF, a chunk each
    leaves = 4 * buffer_bytes(1)  # free inodes, inodes, free space by place and by size
    root = inode_bytes(176, 6 + 1 + 2 + 1 + 1 + 4)  # the entry is in it
    file = inode_bytes(176, 16)
    payload = 40 + headers + leaves + root + file + 12
    assert fs.info.log.written_sectors == 1 + -(-payload // 512)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_head_moves_by_what_is_written(kernel: str) -> None:
    machine = Machine(kernel)
    fs = machine.mount_xfs()
    machine.run(*[fsyncer(machine, f"/{n}", 20) for n in range(5)])
    assert fs.info.log.head == 2 + fs.info.log.written_sectors
    start = fs.info.log.start_sector
    issued = [(r.args[2], r.args[3]) for r in machine.tracer.records()]
    records = [run for run in issued if run[0] >= start and run[1]]
    assert len(records) == fs.info.log.records
    assert sum(length for _, length in records) == fs.info.log.written_sectors
    at = start + 2
    for sector, length in records:  # One behind the other, in order.
        assert sector == at
        at += length


def test_a_record_of_several_buffers_has_a_header_of_its_own_in_each() -> None:
    """Two buffers and 4096 bytes: without the two headers in what follows it were a sector less."""
    machine = Machine("6.18")
    fs = machine.mount_xfs()
    first = fs.info.log.iclogs[0]
    assert first.room_bytes % 512 == 0

    def main(task: Task) -> Blocking[None]:
        yield from fs.info.log.write(task, 2 * first.room_bytes + 4096)
        yield from fs.info.log.force(task)

    machine.run(main)
    whole = first.header_sectors + first.room_bytes // 512
    assert fs.info.log.written_sectors == 2 * whole + first.header_sectors + 4096 // 512 + 1
    assert 0 < 2 * REGION_BYTES <= 512


@pytest.mark.parametrize(
    ("kernel", "barrier", "flags"),
    [
        ("2.6.36", True, BIO_SYNC | BIO_BARRIER),
        ("2.6.37", True, BIO_SYNC | BIO_FUA | BIO_FLUSH),
        ("2.6.37", False, BIO_SYNC),
        ("5.6", True, BIO_SYNC | BIO_FUA | BIO_FLUSH),
        ("5.7", True, BIO_SYNC | BIO_IDLE | BIO_FUA | BIO_FLUSH),
        ("5.14", True, BIO_SYNC | BIO_IDLE),
    ],
)
def test_a_record_that_nobody_forced_has_its_releases_flags(
    kernel: str, barrier: bool, flags: int
) -> None:
    """From 5.14 on only the record with a commit, or the first one of a checkpoint, flushes."""
    log = Machine(kernel, write_cache=True).mount_xfs(barrier=barrier).info.log
    assert log._flags(log.iclogs[0]) == flags


@pytest.mark.parametrize("kernel", KERNELS)
def test_waiters_share_log_writes(kernel: str) -> None:
    """n fsyncers on a disk with a queue: a record each for n = 1, two or three a cycle above.

    The first whose data arrive sends his record; all others copy into the next one meanwhile, wait
    for the first, and share it (Log.force_lsn). The first is a turn ahead of them then, and has his
    next record for himself, or with those. So a cycle has two to three, whatever n.
    """
    per_fsync = {}
    for n in (1, 4, 16):
        machine = Machine(kernel, latency_ns=5 * MS)
        machine.disk.driver.queue_depth = machine.disk._depth = 64
        fs = machine.mount_xfs()
        machine.run(*[fsyncer(machine, f"/{k}", 40) for k in range(n)], for_ns=60 * S)
        per_fsync[n] = fs.info.log.records / (40 * n)
    assert per_fsync[1] == pytest.approx(1.0, abs=0.05)
    assert 1 / 4 <= per_fsync[4] <= 3 / 4
    assert 1 / 16 <= per_fsync[16] <= 3 / 16


def test_delayed_logging_writes_a_changed_object_once() -> None:
    """1000 creates and unlinks: megabytes of records without, one checkpoint with."""
    sectors = {}
    for kernel in ("2.6.38", "2.6.39"):
        machine = Machine(kernel)
        fs = machine.mount_xfs()

        def main(task: Task, machine: Machine = machine) -> Blocking[None]:
            for number in range(1000):
                yield from machine.write_file(task, f"/{number}", 0, fsync=False)
                yield from machine.vfs.unlink(task, f"/{number}")
            yield from sync.sync(machine.vfs, task)

        machine.run(main, for_ns=20 * S)
        sectors[kernel] = fs.info.log.written_sectors
        assert_sound(machine, fs)
    assert sectors["2.6.38"] > 1000 * 2
    assert sectors["2.6.39"] < 20


def test_a_checkpoint_longer_than_a_buffer_is_several_records_and_the_last_waits() -> None:
    machine = Machine("6.18", write_cache=True)
    fs = machine.mount_xfs()

    def main(task: Task) -> Blocking[None]:
        for number in range(300):
            yield from machine.write_file(task, f"/{number:03}", 0, fsync=False)
        yield from machine.fsync_path(task, "/")

    machine.run(main)
    records = [(r.when_ns, r.args[3]) for r in machine.tracer.records() if r.args[3]]
    assert [length for _, length in records[:-1]] == [64] * (len(records) - 1)
    assert len(records) > 1 and records[-1][0] > records[-2][0]
    assert fs.info.log.records == len(records)


def test_the_cache_is_flushed_between_the_records_of_a_checkpoint_and_its_last() -> None:
    """The commit record may not be on the disk where the others are not (XLOG_ICL_NEED_FLUSH)."""
    machine = Machine("6.18", write_cache=True)
    machine.mount_xfs()

    def main(task: Task) -> Blocking[None]:
        for number in range(300):
            yield from machine.write_file(task, f"/{number:03}", 0, fsync=False)
        yield from machine.fsync_path(task, "/")

    machine.run(main)
    issued = [r.args[3] for r in machine.tracer.records()]  # sectors, 0: a flush
    last = max(at for at, sectors in enumerate(issued) if sectors)
    assert sum(sectors > 0 for sectors in issued) > 1
    assert issued[last - 1] == 0


def test_a_checkpoint_that_reaches_its_limit_is_pushed_before_anybody_forces_it() -> None:
    """It is an eighth of the log or 32 MiB; here a 64th of that, so that a short run reaches it."""
    machine = Machine("6.18")
    fs = machine.mount_xfs(log_bytes=10 * MIB)
    assert fs.info.cil is not None
    limit = fs.info.cil.limit_bytes = 10 * MIB // 8 // 64
    bytes_seen: list[int] = []

    def main(task: Task) -> Blocking[None]:
        assert fs.info.cil is not None
        for number in range(150):
            yield from machine.write_file(task, f"/{number:04}", 0, fsync=False)
            yield from sleep_ns(task, MS, TASK_INTERRUPTIBLE)  # The kworker has its turn.
            bytes_seen.append(fs.info.cil.checkpoint.bytes)

    machine.run(main)
    assert limit // 2 < max(bytes_seen) <= limit


@pytest.mark.parametrize("kernel", KERNELS)
def test_half_a_minute_later_all_is_home_without_being_asked(kernel: str) -> None:
    machine = Machine(kernel)
    fs = machine.mount_xfs()
    machine.run(lambda task: machine.write_file(task, "/a", 0, fsync=False), for_ns=S)
    assert fs.info.ail.durable_transaction == 0 or kernel < "2.6.39"
    machine.idle(62 * S)
    assert not fs.info.ail.items and fs.info.durable_transactions() == fs.info.transactions
    assert fs.info.log.reserved_bytes == 0
    homes = {record.args[2] for record in machine.tracer.records()}
    assert {2, fs.info.geometry.inode_block(128) * 8} <= homes  # The AGI, and the inodes.


@pytest.mark.parametrize("kernel", ["2.6.32", "6.18"])
def test_a_small_log_makes_changes_wait_for_its_tail(kernel: str) -> None:
    took = {}
    for mib in (4, 64):
        machine = Machine(kernel, latency_ns=2 * MS)
        fs = machine.mount_xfs(log_bytes=mib * MIB)

        def main(
            task: Task, machine: Machine = machine, fs: Xfs = fs, mib: int = mib
        ) -> Blocking[None]:
            for number in range(4000):
                yield from machine.write_file(task, f"/{number}", 0, fsync=False)
                if number % 4 == 3:
                    yield from machine.fsync_path(task, "/")
                assert fs.info.log.head - fs.info.log.tail() <= fs.info.log.size_sectors
            took[mib] = machine.calendar.now

        machine.run(main, for_ns=200 * S)
        assert_sound(machine, fs)
        if mib == 4:
            assert fs.info.log.head > 1.5 * fs.info.log.size_sectors  # It went round.
    assert took[4] >= took[64]


@pytest.mark.parametrize("kernel", ["2.6.32", "6.18"])
def test_a_quarter_of_a_log_is_kept_free_without_anybody_waiting(kernel: str) -> None:
    """xlog_grant_push_ail: with pauses between the changes the tail moves in time."""
    machine = Machine(kernel, latency_ns=MS // 20)
    fs = machine.mount_xfs(log_bytes=4 * MIB)
    least = [fs.info.log.free_bytes()]

    def main(task: Task) -> Blocking[None]:
        for number in range(4000):
            yield from machine.write_file(task, f"/{number}", 0, fsync=number % 2 == 0)
            yield from sleep_ns(task, 4 * MS, TASK_INTERRUPTIBLE)
            least.append(fs.info.log.free_bytes())

    machine.run(main, for_ns=60 * S)
    assert fs.info.log.head > 1.5 * fs.info.log.size_sectors  # It went round.
    assert min(least) > 0.2 * fs.info.log.size_sectors * 512
    assert_sound(machine, fs)


# --- promises, whatever happens


def watch(machine: Machine, fs: Xfs, for_ns: int) -> None:
    """Let time pass, and find at every half millisecond that the log comes before home."""
    end = machine.calendar.now + for_ns
    while machine.calendar.now < end:
        machine.idle(MS // 2)
        for buf in fs.info.buffers.values():
            if buf.io and buf.uptodate:
                assert not buf.pin_count, "a pinned buffer is on its way home"
                assert buf.lsn <= fs.info.log.last_sync, (
                    "a change is on its way home before its record"
                )
        assert fs.info.log.head - fs.info.log.tail() <= fs.info.log.size_sectors
        assert fs.info.log.free_bytes() <= fs.info.log.size_sectors * 512


@pytest.mark.parametrize("kernel", ["2.6.16", "2.6.39", "6.18"])
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs=st.lists(steps, min_size=1, max_size=3))
def test_nothing_is_written_home_before_its_record(
    kernel: str, programs: list[list[tuple[str, int, int, int]]]
) -> None:
    machine = Machine(kernel, capacity_bytes=256 * MIB)
    fs = machine.mount_xfs(log_bytes=4 * MIB, syncd_ns=S)

    def body(program: list[tuple[str, int, int, int]]) -> Main:
        def main(task: Task) -> Blocking[None]:
            for step in program:
                try:
                    yield from apply(machine, task, step)
                except OSError:
                    continue

        return main

    for program in programs:
        machine.spawn(body(program))
    watch(machine, fs, 6 * S)


@pytest.mark.parametrize("kernel", KERNELS)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(sizes=st.lists(st.integers(0, 30), min_size=1, max_size=8), tasks=st.integers(1, 4))
def test_what_was_fsynced_is_durable_and_all_before_it(
    kernel: str, sizes: list[int], tasks: int
) -> None:
    machine = Machine(kernel)
    fs = machine.mount_xfs()
    promised: list[int] = []

    def writer(me: int) -> Main:
        def main(task: Task) -> Blocking[None]:
            for number, pages in enumerate(sizes):
                file = yield from machine.vfs.open(task, f"/{me}.{number}", O_WRONLY | O_CREAT)
                yield from read_write.write(machine.vfs, task, file, pages * 4096)
                inode = file.inode
                assert isinstance(inode, XfsInode)
                yield from sync.fsync(machine.vfs, task, file)
                promised.append(inode.last_commit.number)
                assert fs.info.durable_transactions() >= inode.last_commit.number
                assert not inode.mapping.nr_dirty and not inode.unwritten.count
                yield from machine.vfs.close(task, file)

        return main

    machine.run(*[writer(me) for me in range(tasks)], for_ns=60 * S)
    assert fs.info.durable_transactions() >= max(promised)


def test_what_was_not_fsynced_is_lost_with_the_power() -> None:
    machine = Machine("6.18")
    fs = machine.mount_xfs()
    machine.run(lambda task: machine.write_file(task, "/a", 4096, fsync=False), for_ns=S)
    assert fs.info.transactions > 0 and fs.info.durable_transactions() == 0


def test_every_block_written_belongs_to_something() -> None:
    machine = Machine("6.18", capacity_bytes=256 * MIB)
    fs = machine.mount_xfs(syncd_ns=2 * S)

    def main(task: Task) -> Blocking[None]:
        for number in range(300):
            yield from machine.write_file(task, f"/{number}", number % 5 * 4096)

    machine.run(main, for_ns=30 * S)
    known = {sector for start, count in _owned(fs) for sector in range(start, start + count)}
    for record in machine.tracer.records():
        sector, count = record.args[2], record.args[3]
        assert set(range(sector, sector + count)) <= known


def _owned(fs: Xfs) -> list[tuple[int, int]]:
    """Return (first sector, sectors) of the log, of metadata buffers, of files' data."""
    owned = [(fs.info.log.start_sector, fs.info.log.size_sectors)]
    owned += [(buf.sector, buf.sectors) for buf in fs.info.buffers.values()]
    for inode in fs.info.inodes.values():
        runs = zip(inode.map.blocks, inode.map.counts, strict=True)
        owned += [(block * 8, count * 8) for block, count in runs]
    return owned
