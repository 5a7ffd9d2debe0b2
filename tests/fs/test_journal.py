"""The journal: when it commits, what waits for it, how it gets its space back."""

from collections.abc import Callable

import pytest

from sim.block.bio import BIO_IDLE, BIO_PROCESS_SYNC, BIO_SYNC
from sim.fs import read_write
from sim.fs.ext4.super import Ext4
from sim.fs.jbd2 import (
    BJ_METADATA,
    forget_block,
    journal_extend,
    journal_force_commit,
    journal_start,
    journal_stop,
    modify_block,
    revoke_block,
    stop_handle,
)
from sim.fs.super import O_APPEND, O_CREAT, O_WRONLY
from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task, sleep_ns
from tests.fs.machine import MS, Machine, S, assert_sound


def test_a_transaction_is_committed_when_it_is_5_seconds_old() -> None:
    machine = Machine()
    fs = machine.mount_ext3()
    machine.run(lambda task: machine.write_file(task, "/a", 4096, fsync=False), for_ns=4900 * MS)
    assert fs.info.journal.nr_commits == 0
    machine.idle(200 * MS)
    assert fs.info.journal.nr_commits == 1


@pytest.mark.parametrize(("kernel", "rounded"), [("2.6.29", False), ("2.6.30", True)])
def test_the_commit_timer_ends_with_a_whole_second_from_2_6_30_on(
    kernel: str, rounded: bool
) -> None:
    machine = Machine(kernel)
    fs = machine.mount_ext3()
    machine.idle(300 * MS)
    machine.run(lambda task: machine.write_file(task, "/a", 4096, fsync=False), for_ns=5100 * MS)
    assert fs.info.journal.nr_commits == (0 if rounded else 1)  # at 5.4 s
    machine.idle(700 * MS)
    assert fs.info.journal.nr_commits == 1


@pytest.mark.parametrize("kernel", ["2.6.29", "2.6.30", "6.18"])
def test_a_handle_that_ends_in_a_transaction_of_5_seconds_commits_it(kernel: str) -> None:
    """journal_stop() asks the transaction's own time, not the timer's: nobody waits for 6.0 s."""
    machine = Machine(kernel)
    fs = machine.mount_ext3()
    machine.idle(300 * MS)

    def holder(task: Task) -> Blocking[None]:
        handle = yield from journal_start(task, fs.info.journal, 1)
        yield from modify_block(task, fs.info.journal, handle, 20000)
        yield from sleep_ns(task, 4900 * MS, TASK_INTERRUPTIBLE)
        stop_handle(fs.info.journal, handle)
        assert fs.info.journal.commit_request == 0
        handle = yield from journal_start(task, fs.info.journal, 1)
        yield from sleep_ns(task, 200 * MS, TASK_INTERRUPTIBLE)
        stop_handle(fs.info.journal, handle)
        assert fs.info.journal.commit_request == 1

    machine.run(holder, for_ns=5300 * MS)
    assert fs.info.journal.nr_commits == 1


def test_an_idle_journal_commits_nothing() -> None:
    machine = Machine()
    fs = machine.mount_ext3()
    machine.idle(100 * S)
    assert fs.info.journal.nr_commits == 0
    assert machine.writes() == []


def test_an_empty_forced_commit_writes_its_commit_block_alone() -> None:
    machine = Machine()
    fs = machine.mount_ext3()
    machine.run(lambda task: journal_force_commit(task, fs.info.journal), for_ns=S)
    assert machine.writes() == [(fs.info.journal_runs[0][0] + 1, 1)]


def test_metadata_goes_home_half_a_minute_later_by_pdflush() -> None:
    machine = Machine()
    fs = machine.mount_ext3()
    machine.run(lambda task: machine.write_file(task, "/a", 4096), for_ns=S)
    machine.writes()
    machine.idle(25 * S)
    assert machine.writes() == []
    machine.idle(15 * S)
    layout = fs.info.layout.groups[0]
    home = {1, layout.block_bitmap, layout.inode_bitmap, layout.inode_table}
    written = {block + i for block, count in machine.writes() for i in range(count)}
    assert home <= written
    assert len(written) == 5
    assert not fs.info.journal.checkpoint_transactions


def test_an_unlinked_file_that_was_not_committed_is_never_written() -> None:
    machine = Machine()
    fs = machine.mount_ext3()

    def main(task: Task) -> Blocking[None]:
        yield from machine.write_file(task, "/a", 100 * 4096, fsync=False)
        yield from machine.vfs.unlink(task, "/a")

    machine.run(main, for_ns=60 * S)
    assert machine.vm.discarded == 100
    start, end = fs.info.journal_runs[0]
    metadata_end = fs.info.layout.groups[0].first_data
    directory = fs.info.inodes[2].map.blocks[0]
    for block, _ in machine.writes():
        assert start <= block < end or block < metadata_end or block == directory
    assert_sound(machine, fs)


def test_freed_blocks_come_back_with_the_commit() -> None:
    machine = Machine()
    fs = machine.mount_ext3()
    seen: list[int] = []

    def main(task: Task) -> Blocking[None]:
        yield from machine.write_file(task, "/a", 40960)
        free = fs.info.blocks.free_total
        yield from machine.vfs.unlink(task, "/a")
        seen.append(fs.info.blocks.free_total - free)
        yield from journal_force_commit(task, fs.info.journal)
        seen.append(fs.info.blocks.free_total - free)

    machine.run(main)
    assert seen == [0, 10]


def blocks_logged_by_deleting(pages: int) -> int:
    """Return how much log it takes to delete a file of `pages` blocks."""
    machine = Machine()
    fs = machine.mount_ext3()
    logged: list[int] = []

    def main(task: Task) -> Blocking[None]:
        yield from machine.write_file(task, "/a", pages * 4096)
        before = fs.info.journal.log.nr_blocks
        yield from machine.vfs.unlink(task, "/a")
        yield from journal_force_commit(task, fs.info.journal)
        logged.append(fs.info.journal.log.nr_blocks - before)

    machine.run(main)
    assert_sound(machine, fs)
    return logged[0]


def test_deleting_a_file_with_an_indirect_block_logs_a_revoke_block() -> None:
    assert blocks_logged_by_deleting(13) == blocks_logged_by_deleting(12) + 1


@pytest.mark.parametrize(("blocks", "records"), [(1020, 1), (1021, 2)])
def test_a_revoke_record_has_room_for_1020_blocks(blocks: int, records: int) -> None:
    """(4096 - 16) / 4: a header, then a block number of 32 bits each."""
    machine = Machine()
    fs = machine.mount_ext3()

    def main(task: Task) -> Blocking[None]:
        handle = yield from journal_start(task, fs.info.journal, 1)
        for block in range(20000, 20000 + blocks):
            revoke_block(fs.info.journal, handle, block)
        stop_handle(fs.info.journal, handle)
        yield from journal_force_commit(task, fs.info.journal)

    machine.run(main)
    assert fs.info.journal.log.nr_blocks == records + 1  # and the commit block


def test_a_block_on_its_way_to_the_log_makes_its_modifier_wait_without_iowait() -> None:
    machine = Machine(latency_ns=10 * MS)
    fs = machine.mount_ext3()
    seen: list[tuple[str, bool]] = []
    tasks: list[Task] = []

    def second(task: Task) -> Blocking[None]:
        tasks.append(task)
        yield from sleep_ns(task, 16 * MS, TASK_INTERRUPTIBLE)  # Data is on disk, the log is not.
        yield from machine.write_file(task, "/b", 0, fsync=False)

    machine.calendar.post(
        18 * MS, lambda _: seen.append((tasks[0].wchan, tasks[0].in_iowait)), None
    )
    machine.run(lambda task: machine.write_file(task, "/a", 4096), second, for_ns=S)
    assert seen == [("do_get_write_access", False)]
    assert fs.info.journal.nr_commits == 1


def test_new_handles_wait_while_a_transaction_is_locked() -> None:
    machine = Machine()
    fs = machine.mount_ext3()
    started: list[int] = []

    def holder(task: Task) -> Blocking[None]:
        handle = yield from journal_start(task, fs.info.journal, 1)
        fs.info.journal.log_start_commit(handle.transaction.tid)
        yield from sleep_ns(task, 50 * MS, TASK_INTERRUPTIBLE)
        stop_handle(fs.info.journal, handle)

    def late(task: Task) -> Blocking[None]:
        yield from sleep_ns(task, 10 * MS, TASK_INTERRUPTIBLE)
        handle = yield from journal_start(task, fs.info.journal, 1)
        started.append(machine.calendar.now)
        assert handle.transaction.tid == 2
        stop_handle(fs.info.journal, handle)

    machine.run(holder, late)
    assert 50 * MS <= started[0] < 51 * MS


def test_a_block_that_a_handle_forgets_gives_its_credit_back() -> None:
    """With room for one block it modifies two, one after the other; only the second is logged."""
    machine = Machine()
    fs = machine.mount_ext3()

    def main(task: Task) -> Blocking[None]:
        handle = yield from journal_start(task, fs.info.journal, 1)
        yield from modify_block(task, fs.info.journal, handle, 20000)
        forget_block(fs.info.journal, handle, 20000)
        yield from modify_block(task, fs.info.journal, handle, 20001)
        assert handle.credits == 0
        yield from journal_stop(task, fs.info.journal, handle)
        yield from journal_force_commit(task, fs.info.journal)

    machine.run(main, for_ns=S)
    assert machine.writes() == [
        (fs.info.journal_runs[0][0] + 1, 2),
        (fs.info.journal_runs[0][0] + 3, 1),
    ]


def test_a_block_freed_while_it_is_committed_never_goes_home() -> None:
    """The log has it, but its place may be a file's by then (JBD's b_freed)."""
    machine = Machine(latency_ns=10 * MS)
    fs = machine.mount_ext3()

    def main(task: Task) -> Blocking[None]:
        handle = yield from journal_start(task, fs.info.journal, 2)
        for block in (20000, 20010):
            yield from modify_block(task, fs.info.journal, handle, block)
        fs.info.journal.log_start_commit(handle.transaction.tid)
        stop_handle(fs.info.journal, handle)
        yield from sleep_ns(task, 5 * MS, TASK_INTERRUPTIBLE)
        assert fs.info.journal.committing is not None
        handle = yield from journal_start(task, fs.info.journal, 1)
        forget_block(fs.info.journal, handle, 20000)
        stop_handle(fs.info.journal, handle)

    machine.run(main, for_ns=60 * S)
    written = {block + i for block, count in machine.writes() for i in range(count)}
    assert 20010 in written
    assert 20000 not in written


def test_a_block_that_is_used_again_in_the_transaction_that_freed_it_is_not_revoked() -> None:
    """journal_cancel_revoke: descriptor and block, commit block, and no revoke record."""
    machine = Machine()
    fs = machine.mount_ext3()

    def main(task: Task) -> Blocking[None]:
        handle = yield from journal_start(task, fs.info.journal, 2)
        revoke_block(fs.info.journal, handle, 20000)
        yield from modify_block(task, fs.info.journal, handle, 20000)
        assert not handle.transaction.revoked
        yield from journal_stop(task, fs.info.journal, handle)
        yield from journal_force_commit(task, fs.info.journal)

    machine.run(main, for_ns=S)
    start = fs.info.journal_runs[0][0]
    assert machine.writes() == [(start + 1, 2), (start + 3, 1)]


def test_a_transaction_larger_than_a_quarter_of_the_log_is_split() -> None:
    machine = Machine()
    fs = machine.mount_ext3(journal_bytes=4 << 20)  # 1024 blocks: 256 in a transaction

    def main(task: Task) -> Blocking[None]:
        for number in range(40):
            yield from machine.write_file(task, f"/{number}", 0, fsync=False)
        handle = yield from journal_start(task, fs.info.journal, 200)
        for block in range(20000, 20200):
            yield from modify_block(task, fs.info.journal, handle, block)
        yield from journal_extend(task, fs.info.journal, handle, 100)
        for block in range(20200, 20300):
            yield from modify_block(task, fs.info.journal, handle, block)
        stop_handle(fs.info.journal, handle)

    machine.run(main)
    assert fs.info.journal.nr_commits == 2
    assert_sound(machine, fs)


def small_commits(fs: Ext4, count: int) -> Callable[[Task], Blocking[None]]:
    """Return a task that journals `count` blocks, each in a transaction of its own."""

    def main(task: Task) -> Blocking[None]:
        for block in range(20000, 20000 + count):
            handle = yield from journal_start(task, fs.info.journal, 1)
            yield from modify_block(task, fs.info.journal, handle, block)
            handle.sync = True
            yield from journal_stop(task, fs.info.journal, handle)

    return main


def test_a_full_log_makes_a_handle_write_the_oldest_metadata_home() -> None:
    machine = Machine()
    fs = machine.mount_ext3(journal_bytes=4 << 20)
    machine.run(small_commits(fs, 600), for_ns=8 * S)
    assert fs.info.journal.log.nr_blocks > 1024  # The ring went round.
    home = [block for block, _ in machine.writes() if 20000 <= block < 20600]
    assert home[0] == 20000  # Sooner than pdflush would have: the run took a few seconds.
    assert_sound(machine, fs)


def test_when_all_is_home_a_checkpoint_only_moves_the_tail() -> None:
    machine = Machine()
    fs = machine.mount_ext3(journal_bytes=4 << 20)
    superblock = fs.info.journal_runs[0][0]
    machine.run(small_commits(fs, 180), for_ns=2 * S)
    machine.idle(40 * S)
    machine.writes()
    machine.run(small_commits(fs, 60), for_ns=2 * S)
    writes = machine.writes()
    assert writes.count((superblock, 1)) == 1
    assert not [block for block, _ in writes if 20000 <= block < 20600]


def test_a_block_modified_in_each_transaction_pins_only_the_newest() -> None:
    machine = Machine()
    fs = machine.mount_ext3()

    def main(task: Task) -> Blocking[None]:
        file = yield from machine.vfs.open(task, "/log", O_WRONLY | O_CREAT | O_APPEND)
        for _ in range(20):
            yield from read_write.write(machine.vfs, task, file, 4096)
            yield from journal_force_commit(task, fs.info.journal)
        yield from machine.vfs.close(task, file)

    machine.run(main, for_ns=2 * S)
    assert (
        len(fs.info.journal.checkpoint_transactions) <= 3
    )  # Those of the create, the indirect block.
    assert_sound(machine, fs)


@pytest.mark.parametrize(("blocks", "descriptors"), [(506, 1), (507, 2), (600, 2), (1013, 3)])
def test_a_commit_of_more_than_506_blocks_needs_another_descriptor(
    blocks: int, descriptors: int
) -> None:
    machine = Machine()
    fs = machine.mount_ext3()

    def main(task: Task) -> Blocking[None]:
        handle = yield from journal_start(task, fs.info.journal, blocks)
        for block in range(20000, 20000 + blocks):
            yield from modify_block(task, fs.info.journal, handle, block)
        assert fs.info.journal.heads[20000].jlist == BJ_METADATA
        stop_handle(fs.info.journal, handle)
        yield from journal_force_commit(task, fs.info.journal)

    machine.run(main)
    assert fs.info.journal.log.nr_blocks == blocks + descriptors + 1


@pytest.mark.parametrize(
    ("kernel", "barrier", "flushes"),
    [("2.6.16", False, 0), ("2.6.16", True, 2), ("2.6.30", True, 2), ("3.2", True, 2)],
)
def test_a_commit_with_barriers_flushes_before_and_after_its_commit_block(
    kernel: str, barrier: bool, flushes: int
) -> None:
    machine = Machine(kernel, write_cache=True)
    machine.mount_ext3(barrier=barrier)
    machine.run(lambda task: machine.write_file(task, "/a", 4096), for_ns=S)
    writes = machine.writes()
    assert [blocks for _, blocks in writes].count(0) == flushes
    assert len(writes) == 3 + flushes


@pytest.mark.parametrize(
    "kernel, somebody_waits, nobody_waits",
    [
        ("2.6.16", 0, 0),
        ("2.6.32", BIO_PROCESS_SYNC, 0),
        ("2.6.38", BIO_PROCESS_SYNC, 0),
        ("3.0", BIO_SYNC, BIO_SYNC),
        ("3.10", BIO_SYNC, BIO_SYNC),
        ("6.18", BIO_SYNC | BIO_IDLE, BIO_SYNC | BIO_IDLE),
    ],
)
def test_a_commit_is_written_with_its_releases_flags(
    kernel: str, somebody_waits: int, nobody_waits: int
) -> None:
    """From 6.8 on with REQ_IDLE as well: writeback throttling lets these requests through."""
    journal = Machine(kernel).mount_ext3().info.journal
    assert journal.log.commit_flags(True) == somebody_waits
    assert journal.log.commit_flags(False) == nobody_waits
