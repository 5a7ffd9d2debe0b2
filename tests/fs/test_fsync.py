"""What an fsync on ext3 writes, when it commits, and what it holds up."""

import pytest

from sim.block.bio import Request
from sim.block.driver import Complete, Driver
from sim.engine.calendar import Calendar
from sim.engine.rng import Streams
from sim.fs import read_write, sync
from sim.fs.super import O_DSYNC, O_SYNC, O_WRONLY
from sim.sched.task import TASK_INTERRUPTIBLE, Blocking, Task, sleep_ns
from tests.fs.machine import MS, Machine, S, assert_sound


def test_create_write_fsync_is_data_then_journal_then_commit_block() -> None:
    machine = Machine()
    fs = machine.mount_ext3()
    journal = fs.info.journal_runs[0][0]
    machine.run(lambda task: machine.write_file(task, "/df1", 4096), for_ns=S)
    data, body, commit = machine.writes()
    # Inode bitmap, descriptor, inode block (the directory's too), directory, block bitmap.
    assert data[1] == 1
    assert body == (journal + 1, 1 + 5)
    assert commit == (journal + 7, 1)
    assert_sound(machine, fs)


def test_32_kib_take_the_same_three_requests() -> None:
    machine = Machine()
    machine.mount_ext3()
    machine.run(lambda task: machine.write_file(task, "/df1", 32768), for_ns=S)
    assert [blocks for _, blocks in machine.writes()] == [8, 6, 1]


def test_data_journal_writes_data_twice_the_second_time_later() -> None:
    machine = Machine()
    fs = machine.mount_ext3(data="journal")
    machine.run(lambda task: machine.write_file(task, "/df1", 32768), for_ns=S)
    assert [blocks for _, blocks in machine.writes()] == [1 + 5 + 8, 1]
    assert machine.vm.nr_dirty == 5 + 8  # Metadata and data, to be written home.
    assert_sound(machine, fs)


def test_sync_file_range_begins_to_write_the_data_waits_for_none_and_commits_nothing() -> None:
    machine = Machine()
    fs = machine.mount_ext3()
    returned: list[tuple[int, int]] = []

    def main(task: Task) -> Blocking[None]:
        yield from machine.write_file(task, "/big", 1 << 20, fsync=False)
        file = yield from machine.vfs.open(task, "/big", O_WRONLY)
        begun = machine.calendar.now
        yield from sync.sync_file_range(machine.vfs, task, file)
        returned.append((machine.calendar.now - begun, machine.vm.nr_writeback))

    machine.run(main, for_ns=S)
    [(took_ns, under_way)] = returned
    assert took_ns < 5 * MS  # CPU time; the disk needs more than 15
    assert under_way == 256
    assert sum(blocks for _, blocks in machine.writes()) == 256
    assert fs.info.journal.nr_commits == 0


def test_data_writeback_does_not_wait_for_the_data_of_others() -> None:
    machine = Machine()
    machine.mount_ext3(data="writeback")

    def main(task: Task) -> Blocking[None]:
        yield from machine.write_file(task, "/big", 1 << 20, fsync=False)
        yield from machine.write_file(task, "/df1", 4096)

    machine.run(main, for_ns=S)
    assert sum(blocks for _, blocks in machine.writes()) < 20


def test_in_ordered_mode_an_fsync_writes_everybodys_new_data() -> None:
    machine = Machine()
    machine.mount_ext3()

    def main(task: Task) -> Blocking[None]:
        yield from machine.write_file(task, "/big", 1 << 20, fsync=False)
        yield from machine.write_file(task, "/df1", 4096)

    machine.run(main, for_ns=S)
    assert sum(blocks for _, blocks in machine.writes()) > 256


def test_ordered_data_is_on_the_disk_before_the_commit_block_is_issued() -> None:
    machine = Machine()
    fs = machine.mount_ext3()
    machine.run(lambda task: machine.write_file(task, "/df1", 200 * 4096), for_ns=2 * S)
    start, end = fs.info.journal_runs[0]
    in_journal = [start <= block < end for block, _ in machine.writes()]
    assert in_journal == sorted(in_journal)


class SlowData(Driver):
    """Serves all at once, the journal in 1 ms, all else in 50 ms; knows what data is under way."""

    def __init__(self) -> None:
        self.queue_depth = 64
        self.rotational = False
        self.capacity_sectors = (2 << 30) // 512
        self.journal = range(0)  # sectors
        self.data = 0  # requests under way
        self.beside: list[int] = []  # for each request to the journal, data under way

    def attach(self, name: str, calendar: Calendar, streams: Streams, complete: Complete) -> None:
        self.calendar = calendar
        self.complete = complete

    def submit(self, request: Request) -> None:
        if request.sector in self.journal:
            self.beside.append(self.data)
            self.calendar.post(MS, self.complete, request)
        else:
            self.data += 1
            self.calendar.post(50 * MS, self.data_done, request)

    def data_done(self, request: Request) -> None:
        self.data -= 1
        self.complete(request)


@pytest.mark.parametrize(
    ("mount", "kernel"),
    [
        ("mount_ext3", "2.6.16"),
        ("mount_ext3", "2.6.32"),
        ("mount_ext3", "6.1"),
        ("mount_ext4", "2.6.32"),
        ("mount_ext4", "6.1"),
    ],
)
def test_no_ordered_data_is_under_way_when_the_commit_block_is_issued(
    mount: str, kernel: str
) -> None:
    """Whatever the disk does first; jbd2 writes the log beside the data, jbd after it."""
    driver = SlowData()
    machine = Machine(kernel, driver=driver)
    options = {"delalloc": False} if mount == "mount_ext4" else {}
    fs = getattr(machine, mount)(**options)
    [(start, end)] = fs.info.journal_runs
    driver.journal = range(start * 8, end * 8)

    def main(task: Task) -> Blocking[None]:
        yield from machine.write_file(task, "/big", 64 * 4096, fsync=False)
        yield from machine.write_file(task, "/df1", 4096)

    machine.run(main, for_ns=2 * S)
    *log, commit_block = driver.beside
    assert commit_block == 0
    assert bool(max(log)) == (fs.info.form.driver.name == "ext4")


def test_a_second_fsync_of_an_unmodified_file_is_free() -> None:
    machine = Machine()
    fs = machine.mount_ext3()

    def main(task: Task) -> Blocking[None]:
        yield from machine.write_file(task, "/df1", 4096)
        machine.writes()
        before = machine.calendar.now
        yield from machine.fsync_path(task, "/df1")
        assert machine.calendar.now == before

    machine.run(main)
    assert machine.writes() == []
    assert fs.info.journal.nr_commits == 1


def times_of_two_fsyncs(kernel: str) -> list[int]:
    """Return how long one task takes to write and fsync a file, twice, in ns."""
    machine = Machine(kernel)
    machine.mount_ext3()
    took = []

    def main(task: Task) -> Blocking[None]:
        for name in ("a", "b"):
            before = machine.calendar.now
            yield from machine.write_file(task, f"/{name}", 4096)
            took.append(machine.calendar.now - before)

    machine.run(main)
    return took


def test_a_jiffy_of_pause_lets_others_join_but_not_for_the_same_task_again() -> None:
    first, second = times_of_two_fsyncs("2.6.16")
    assert first > second + 2 * MS  # HZ=250: up to 4 ms
    assert second < 3.6 * MS  # three dependent writes of 1 ms


def test_before_2_6_16_who_syncs_alone_pauses_each_time() -> None:
    first, second = times_of_two_fsyncs("2.6.14")
    assert second > 3 * MS + 1 * MS
    assert first > 3 * MS + 1 * MS


@pytest.mark.parametrize("kernel", ["2.6.5", "2.6.16", "2.6.30", "3.2"])
def test_the_fsync_of_a_directory_commits_even_when_nothing_changed(kernel: str) -> None:
    machine = Machine(kernel)
    fs = machine.mount_ext3()
    machine.vfs.prepare_directory("/mqueue")

    def main(task: Task) -> Blocking[None]:
        yield from machine.write_file(task, "/mqueue/df1", 4096)
        yield from machine.vfs.unlink(task, "/mqueue/df1")
        yield from machine.fsync_path(task, "/mqueue")
        yield from machine.fsync_path(task, "/mqueue")

    machine.run(main, for_ns=S)
    assert fs.info.journal.nr_commits == 3
    assert_sound(machine, fs)


def test_an_fsync_after_pdflush_has_been_there_commits_nothing_before_2_6_32() -> None:
    commits = {}
    for kernel in ("2.6.16", "3.2"):
        machine = Machine(kernel)
        fs = machine.mount_ext3(commit_ns=1000 * S)

        def main(task: Task, machine: Machine = machine) -> Blocking[None]:
            yield from machine.write_file(task, "/df1", 4096, fsync=False)
            yield from sleep_ns(task, 40 * S, TASK_INTERRUPTIBLE)
            yield from machine.fsync_path(task, "/df1")

        machine.run(main, for_ns=50 * S)
        commits[kernel] = fs.info.journal.nr_commits
    assert commits == {"2.6.16": 0, "3.2": 1}


def test_a_directory_fsync_that_commits_holds_up_every_create_in_the_directory() -> None:
    machine = Machine(latency_ns=10 * MS)
    machine.mount_ext3()
    machine.vfs.prepare_directory("/mqueue")
    created: list[int] = []
    states: list[tuple[str, bool]] = []

    def deliver(task: Task) -> Blocking[None]:
        yield from machine.write_file(task, "/mqueue/df1", 4096, fsync=False)
        yield from machine.fsync_path(task, "/mqueue")

    def receive(task: Task) -> Blocking[None]:
        yield from sleep_ns(task, 8 * MS, TASK_INTERRUPTIBLE)
        machine.calendar.post(5 * MS, lambda _: states.append((task.wchan, task.in_iowait)), None)
        yield from machine.write_file(task, "/mqueue/df2", 0, fsync=False)
        created.append(machine.calendar.now)

    machine.run(deliver, receive, for_ns=S)
    assert created[0] > 30 * MS  # data, journal, commit block of 10 ms each
    assert states == [("mutex_lock", False)]


def test_with_dirsync_every_create_and_unlink_is_a_commit() -> None:
    machine = Machine()
    fs = machine.mount_ext3(dirsync=True)

    def main(task: Task) -> Blocking[None]:
        yield from machine.write_file(task, "/df1", 4096, fsync=False)
        yield from machine.vfs.unlink(task, "/df1")

    machine.run(main, for_ns=S)
    assert fs.info.journal.nr_commits == 2


def test_only_kjournald_waits_for_the_disk_the_others_wait_for_kjournald() -> None:
    machine = Machine(latency_ns=10 * MS)
    machine.mount_ext3()
    seen: list[tuple[int, int]] = []

    def look(_: object) -> None:
        seen.append((machine.sched.nr_iowait, machine.sched.nr_uninterruptible))

    machine.calendar.post(25 * MS, look, None)
    machine.run(
        *[lambda task, n=n: machine.write_file(task, f"/df{n}", 4096) for n in range(8)], for_ns=S
    )
    assert seen == [(1, 9)]


def test_n_processes_share_commits() -> None:
    commits = {}
    for processes in (1, 4, 16):
        machine = Machine()
        fs = machine.mount_ext3()

        def main(task: Task, machine: Machine = machine) -> Blocking[None]:
            for number in range(20):
                yield from machine.write_file(task, f"/{task.pid}.{number}", 4096)

        machine.run(*[main] * processes)
        commits[processes] = fs.info.journal.nr_commits / (processes * 20)
        assert_sound(machine, fs)
    assert commits[1] == 1
    assert commits[4] < 0.6
    assert commits[16] < 0.2


@pytest.mark.parametrize(
    ("kernel", "flag"), [("2.6.16", O_SYNC), ("2.6.16", O_DSYNC), ("2.6.33", O_DSYNC)]
)
def test_o_dsync_writes_commit_and_overwrites_only_write(kernel: str, flag: int) -> None:
    machine = Machine(kernel)
    fs = machine.mount_ext3()
    machine.vfs.prepare_file("/log", 40960)

    def main(task: Task) -> Blocking[None]:
        file = yield from machine.vfs.open(task, "/log", O_WRONLY | flag)
        yield from read_write.write(machine.vfs, task, file, 4096)
        assert fs.info.journal.nr_commits == 0
        yield from read_write.write(machine.vfs, task, file, 4096, 40960)
        assert fs.info.journal.nr_commits == 1
        yield from machine.vfs.close(task, file)

    machine.run(main, for_ns=S)


@pytest.mark.parametrize(
    ("kernel", "flag", "commits"),
    [("2.6.32", O_SYNC, 0), ("2.6.33", O_DSYNC, 0), ("2.6.33", O_SYNC, 1), ("6.18", O_SYNC, 1)],
)
def test_o_sync_makes_new_times_durable_too_from_2_6_33(
    kernel: str, flag: int, commits: int
) -> None:
    machine = Machine(kernel)
    fs = machine.mount_ext3()
    machine.vfs.prepare_file("/log", 40960)

    def main(task: Task) -> Blocking[None]:
        yield from sleep_ns(task, 2 * S, TASK_INTERRUPTIBLE)
        file = yield from machine.vfs.open(task, "/log", O_WRONLY | flag)
        yield from read_write.write(machine.vfs, task, file, 4096)
        assert fs.info.journal.nr_commits == commits
        yield from machine.vfs.close(task, file)

    machine.run(main, for_ns=3 * S)


def test_fdatasync_skips_the_commit_when_only_times_changed_from_2_6_25() -> None:
    for kernel, commits in (("2.6.16", 1), ("2.6.25", 0), ("3.2", 0)):
        machine = Machine(kernel)
        fs = machine.mount_ext3()
        machine.vfs.prepare_file("/db", 40960)

        def main(task: Task, machine: Machine = machine) -> Blocking[None]:
            yield from sleep_ns(task, 2 * S, TASK_INTERRUPTIBLE)
            file = yield from machine.vfs.open(task, "/db", O_WRONLY)
            yield from read_write.write(machine.vfs, task, file, 4096)
            yield from sync.fdatasync(machine.vfs, task, file)
            yield from machine.vfs.close(task, file)

        machine.run(main, for_ns=3 * S)
        assert fs.info.journal.nr_commits == commits
