"""What a sync promised is there after a power cut, and the drive is flushed as often as Linux does.

One writer overwrites blocks that its file has long had, on a drive with a volatile cache. Nothing
of the file changes that fdatasync would have to see to, so that no commit flushes the cache: the
normal path of every database log. Others append, or are several at a time.
"""

import pytest

from sim.fs.super import O_CREAT, O_DIRECT, O_DSYNC, O_RDWR, O_SYNC
from sim.sched.version import kernel_version
from tests.user.servers import S, boot

SIZE = 1 << 18
BLOCK = 8192
WRITES = 8
STEP_NS = 50_000  # how exactly the moment of the power cut is found
DRIVES = {
    "slow disk": 'profile = "sata-7200", write_cache = true',
    "disk": 'profile = "sas-15k", write_cache = true',
    "flash": 'profile = "ssd-nvme", buffer_protected = false',
    "flash without FUA": 'profile = "ssd-nvme", buffer_protected = false, fua = false',
}
# file system, kernel: the oldest whose fsync flushes, one with jbd2's tid rules, those of today
SERVERS = (
    ("ext3", "2.6.33"),
    ("ext3", "3.2"),
    ("ext4", "2.6.38"),
    ("ext4", "3.10"),
    ("ext4", "6.1"),
    ("ext4 without a journal", "3.16"),
    ("ext4 without a journal", "6.18"),
    ("xfs", "3.2"),
    ("xfs", "6.1"),
)


class Log:
    """A machine with a file /wal that one program overwrites, and what became durable when."""

    def __init__(self, fs, kernel, drive, barrier=True, appends=False):
        self.first = SIZE if appends else 0
        kind, _, bare = fs.partition(" without ")
        mount = f'mount."/" = {{ type = "{kind}", device = "sda"'
        mount += ", has_journal = false" if bare else ""
        mount += f", barrier = {str(barrier).lower()} }}\n" if fs != "xfs" else " }\n"
        self.machine = boot(
            machine=f"disk.sda = {{ {DRIVES[drive]} }}\n{mount}",
            sets=(f'machine.kernel="{kernel}"',),
        )
        for _, file_system in self.machine.vfs.mounts:
            file_system.expect_power_cut()
        self.durations_ns = []
        self.flushes = 0

    def run(self, flags, write):
        """Overwrite the file WRITES times; stop when the last is promised, or the time is up."""
        disk = self.machine.disks[0]

        def program(sys):
            fd = yield from sys.open("/wal", O_RDWR | O_CREAT)
            yield from sys.write(fd, SIZE)
            yield from sys.fsync(fd)
            yield from sys.close(fd)
            yield from sys.sleep(2 * S)
            fd = yield from sys.open("/wal", O_RDWR | flags)
            flushed = disk.stats.flushes
            for number in range(WRITES):
                begin_ns = sys.clock_ns()
                yield from write(sys, fd, self.first + number * BLOCK)
                self.durations_ns.append(sys.clock_ns() - begin_ns)
            self.flushes = disk.stats.flushes - flushed
            yield from sys.sleep(100 * S)

        self.machine.kernel.start("writer", "writer", program)
        self.machine.run_until(2 * S)  # It has been written, and sleeps.
        while len(self.durations_ns) < WRITES and self.machine.calendar.now < 5 * S:
            self.machine.run_until(self.machine.calendar.now + STEP_NS)
        assert len(self.durations_ns) == WRITES
        return self

    def remains(self):
        """Return what is read back of the file after a power cut now."""
        [file_system] = [one for path, one in self.machine.vfs.mounts if path == ""]
        return file_system.remains()


def _then(call):
    def write(sys, fd, at):
        yield from sys.pwrite(fd, BLOCK, at)
        if call:
            yield from getattr(sys, call)(fd)

    return write


def _aio(sys, fd, at):
    yield from sys.io_submit(fd, BLOCK, at, 1, True)
    yield from sys.io_getevents()


WAYS = {
    "write, fdatasync": (0, _then("fdatasync")),
    "write, fsync": (0, _then("fsync")),
    "O_DSYNC": (O_DSYNC, _then("")),
    "O_SYNC": (O_SYNC, _then("")),
    "O_DIRECT, fdatasync": (O_DIRECT, _then("fdatasync")),
    "O_DIRECT, fsync": (O_DIRECT, _then("fsync")),
    "O_DIRECT | O_DSYNC": (O_DIRECT | O_DSYNC, _then("")),
    "asynchronous, O_DSYNC": (O_DIRECT | O_DSYNC, _aio),
}


@pytest.mark.parametrize("drive", ["disk", "flash"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("fs", "kernel"), SERVERS)
def test_an_overwrite_that_was_promised_survives_a_power_cut(fs, kernel, way, drive):
    if way.startswith("asynchronous") and kernel_version(kernel) < (3, 12):
        pytest.skip("O_DSYNC of asynchronous writes means something from 3.12 on")
    log = Log(fs, kernel, drive).run(*WAYS[way])
    assert log.remains().has("/wal", SIZE)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("fs", "kernel"), SERVERS)
def test_an_append_that_was_promised_survives_a_power_cut(fs, kernel, way):
    if way.startswith("asynchronous") and kernel_version(kernel) < (3, 12):
        pytest.skip("O_DSYNC of asynchronous writes means something from 3.12 on")
    log = Log(fs, kernel, "disk", appends=True).run(*WAYS[way])
    assert log.remains().has("/wal", SIZE + WRITES * BLOCK)


@pytest.mark.parametrize("call", ["fsync", "fdatasync"])
@pytest.mark.parametrize(
    ("fs", "kernel"),
    (
        ("ext3", "2.6.33"),
        ("ext4", "3.12"),
        ("ext4 without a journal", "6.18"),
        ("xfs", "6.1"),
    ),
)
def test_what_one_of_several_writers_was_promised_survives_a_power_cut(fs, kernel, call):
    """Their commits and flushes are shared: none may end before what it shares has."""
    log = Log(fs, kernel, "disk")
    promised = {}

    def writer(path):
        def program(sys):
            fd = yield from sys.open(path, O_RDWR | O_CREAT)
            for number in range(1, 7):
                yield from sys.write(fd, BLOCK)
                yield from getattr(sys, call)(fd)
                promised[path] = number * BLOCK

        return program

    for number in range(4):
        log.machine.kernel.start(f"writer{number}", "writer", writer(f"/log{number}"))
    seen = {}
    while sum(promised.values()) < 4 * 6 * BLOCK:
        log.machine.run_until(log.machine.calendar.now + STEP_NS)
        assert log.machine.calendar.now < 5 * S
        if seen != promised:
            seen = dict(promised)
            remains = log.remains()
            assert all(remains.has(path, size) for path, size in seen.items())


@pytest.mark.parametrize("drive", ["slow disk", "flash"])
@pytest.mark.parametrize("fs", ["ext4", "ext4 without a journal", "xfs"])
def test_fdatasync_of_an_overwrite_is_one_flush_of_the_drive(fs, drive):
    log = Log(fs, "6.1", drive).run(*WAYS["write, fdatasync"])
    assert log.flushes == WRITES


def test_fdatasync_of_a_log_is_a_turn_of_a_slow_disk_on_ext4_as_on_xfs():
    # The drive writes what its cache has at once: a short seek, half a turn of 8.3 ms, or a whole
    # one if it has just gone by: 100 to 120 a second.
    rates = []
    for fs in ("ext4", "xfs"):
        durations = Log(fs, "6.1", "slow disk").run(*WAYS["write, fdatasync"]).durations_ns
        rates.append(len(durations) * S / sum(durations))
    assert all(90 < rate < 130 for rate in rates), rates
    assert rates[0] == pytest.approx(rates[1], rel=0.2)


@pytest.mark.parametrize("way", ["O_DIRECT | O_DSYNC", "asynchronous, O_DSYNC"])
@pytest.mark.parametrize(
    ("fs", "kernel", "flushes"),
    [("xfs", "4.17", True), ("xfs", "4.18", False), ("ext4", "5.4", True), ("ext4", "5.5", False)],
)
def test_a_direct_overwrite_with_o_dsync_is_fua_where_drive_and_release_have_it(
    fs, kernel, flushes, way
):
    """fs/iomap/direct-io.c: IOMAP_DIO_WRITE_FUA; a flush for each write where it is not."""
    log = Log(fs, kernel, "flash").run(*WAYS[way])
    assert log.flushes == (WRITES if flushes else 0)
    assert log.remains().has("/wal", SIZE)
    log = Log(fs, kernel, "flash without FUA").run(*WAYS[way])
    assert log.flushes == WRITES
    assert log.remains().has("/wal", SIZE)


def test_o_sync_is_a_flush_and_not_fua():
    """The times are to be durable, too: a commit (IOCB_SYNC)."""
    log = Log("ext4", "6.1", "flash").run(O_DIRECT | O_SYNC, _then(""))
    assert log.flushes >= WRITES


def test_fsync_after_a_direct_write_commits_the_times_and_fdatasync_does_not():
    for fs in ("ext4", "xfs"):
        data, both = (
            sum(Log(fs, "6.1", "flash").run(*WAYS[f"O_DIRECT, {call}"]).durations_ns)
            for call in ("fdatasync", "fsync")
        )
        assert both > 1.2 * data, fs


def test_without_barriers_fdatasync_of_an_overwrite_costs_no_flush():
    log = Log("ext4", "6.1", "slow disk", barrier=False).run(*WAYS["write, fdatasync"])
    assert log.flushes == 0


def test_what_xfs_allocated_behind_the_end_of_a_file_does_not_keep_fua_from_what_is_there():
    """A file that was written bit by bit has blocks without data behind its end (5.8 on)."""
    log = Log("xfs", "6.1", "flash")
    disk = log.machine.disks[0]
    flushes = []

    def program(sys):
        fd = yield from sys.open("/wal", O_RDWR | O_CREAT)
        for _ in range(SIZE // BLOCK):
            yield from sys.write(fd, BLOCK)
        yield from sys.fsync(fd)
        through = yield from sys.open("/wal", O_RDWR | O_DIRECT | O_DSYNC)
        before = disk.stats.flushes
        for number in range(WRITES):
            yield from sys.pwrite(through, BLOCK, number * BLOCK)
        flushes.append(disk.stats.flushes - before)

    log.machine.kernel.start("writer", "writer", program)
    log.machine.run_until(2 * S)
    assert flushes == [0]
