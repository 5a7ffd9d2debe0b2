"""Fast commits: one write of tags for a commit of blocks, and the same promises."""

import pytest

from sim.fs.ext4.super import Ext4
from sim.machine import Machine
from sim.sched.task import Blocking
from sim.syscall import O_CREAT, O_WRONLY, Sys
from sim.toml.errors import ScenarioError
from tests.user.servers import S, boot

MS = 1_000_000
FAST = "fast_commit = true"


def server(options: str = "", kernel: str = "5.10", disk: str = 'profile = "sas-15k"') -> Machine:
    """Boot a machine with an ext4 on one disk."""
    beside = f", {options}" if options else ""
    text = f"""\
disk.sda = {{ {disk} }}
mount."/" = {{ type = "ext4", device = "sda"{beside} }}
"""
    return boot(machine=text, sets=(f'machine.kernel="{kernel}"',))


def ext4(machine: Machine) -> Ext4:
    found = machine.vfs.file_system_of("/")
    assert isinstance(found, Ext4)
    return found


def writer(files: list[str], pages: int = 1):
    """Return a program that writes and syncs one file after the other."""

    def program(sys: Sys) -> Blocking[None]:
        for path in files:
            fd = yield from sys.open(path, O_WRONLY | O_CREAT)
            yield from sys.write(fd, 4096 * pages)
            yield from sys.fsync(fd)
            yield from sys.close(fd)

    return program


def run_writers(options: str, writers: int, files: int) -> tuple[Machine, int]:
    """Let several write at once; return the machine and when the last was done, in ns."""
    machine = server(options)
    ended = [0] * writers

    def one(number: int):
        paths = [f"/{number}-{n}" for n in range(files)]

        def program(sys: Sys) -> Blocking[None]:
            yield from writer(paths)(sys)
            ended[number] = machine.calendar.now

        return program

    for number in range(writers):
        machine.kernel.start(f"w{number}", "w", one(number))
    machine.run_until(4 * S)
    assert all(ended)
    machine.check()
    return machine, max(ended)


def test_the_first_fsync_commits_in_full_and_the_next_ones_write_one_block_of_tags():
    machine = server(FAST)
    machine.kernel.start("w", "w", writer([f"/{n}" for n in range(4)]))
    machine.run_until(2 * S)
    journal = ext4(machine).info.journal
    assert (journal.nr_commits, journal.log.fast.sequence) == (1, 3)
    assert journal.log.fast.used == 3


def test_the_running_transaction_is_committed_when_it_is_old_and_the_area_begins_anew():
    machine = server(FAST)
    machine.kernel.start("w", "w", writer([f"/{n}" for n in range(4)]))
    machine.run_until(12 * S)
    journal = ext4(machine).info.journal
    assert (journal.nr_commits, journal.log.fast.sequence, journal.log.fast.used) == (2, 3, 0)


def test_those_who_come_during_a_fast_commit_share_the_next_one():
    machine, _ = run_writers(FAST, 8, 10)
    journal = ext4(machine).info.journal
    assert journal.log.fast.sequence < 80 * 0.6


def test_a_commit_of_n_files_takes_as_many_blocks_as_their_tags_fill():
    """A file: created (inode 168, name 12 + 5), its inode again, one range: 373 bytes."""
    machine = server(FAST)

    def program(sys: Sys) -> Blocking[None]:
        for count in (1, 30):
            for number in range(count):
                fd = yield from sys.open(f"/{count:02d}-{number:02d}", O_WRONLY | O_CREAT)
                yield from sys.write(fd, 4096)
                yield from sys.sync_file_range(fd)
            yield from sys.sleep(100 * MS)
            yield from sys.fsync(fd)

    machine.kernel.start("w", "w", program)
    machine.run_until(3 * S)
    journal = ext4(machine).info.journal
    assert (journal.nr_commits, journal.log.fast.sequence) == (1, 1)
    tags = 12 + 30 * (168 + 17 + 168 + 20) + 12
    assert journal.log.fast.used == -(-tags // 4096) == 3


def test_what_has_no_tag_is_committed_in_full():
    machine = server(FAST)

    def program(sys: Sys) -> Blocking[None]:
        yield from sys.mkdir("/a")
        yield from sys.mkdir("/b")
        yield from writer(["/one", "/two"])(sys)
        yield from sys.rename("/a", "/b/a")
        yield from writer(["/three", "/four"])(sys)

    machine.kernel.start("w", "w", program)
    machine.run_until(3 * S)
    journal = ext4(machine).info.journal
    assert (journal.nr_commits, journal.log.fast.sequence) == (2, 2)


def test_a_full_area_makes_the_next_commit_a_full_one():
    machine = server(f'{FAST}, fast_commit_size = "16 KiB"')
    machine.kernel.start("w", "w", writer([f"/{n}" for n in range(11)]))
    machine.run_until(3 * S)
    journal = ext4(machine).info.journal
    assert (journal.nr_commits, journal.log.fast.sequence) == (3, 8)


def test_fsync_of_what_is_committed_costs_nothing():
    machine = server(FAST)

    def program(sys: Sys) -> Blocking[None]:
        fd = yield from sys.open("/a", O_WRONLY | O_CREAT)
        yield from sys.write(fd, 4096)
        for _ in range(5):
            yield from sys.fsync(fd)

    machine.kernel.start("w", "w", program)
    machine.run_until(1 * S)
    assert ext4(machine).info.journal.log.fast.sequence == 0


def test_mke2fs_gives_a_part_in_65_of_the_journal_to_fast_commits():
    journal = ext4(server(FAST)).info.journal
    whole = ext4(server()).info.journal.log.length_blocks
    assert journal.log.fast.blocks == whole - whole * 64 // 65
    assert journal.log.fast.blocks + journal.log.length_blocks == whole


@pytest.mark.parametrize(
    ("options", "kernel", "told"),
    [
        (FAST, "5.9", "needs kernel 5.10"),
        ('fast_commit_size = "1 MiB"', "5.10", "fast_commit = true"),
        (f'{FAST}, journal = "5 MiB", fast_commit_size = "2 MiB"', "5.10", "at most 1024 KiB"),
    ],
)
def test_an_area_that_cannot_be_is_told(options, kernel, told):
    with pytest.raises(ScenarioError, match=told):
        server(options, kernel)
