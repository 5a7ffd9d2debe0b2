"""ext3 as a whole: large files, full disks, what fsck sees, where things lie."""

from collections.abc import Callable

import pytest

from sim.fs import read_write, sync
from sim.fs.ext4.super import Ext4
from sim.fs.super import O_CREAT, O_WRONLY
from sim.registry import lookup, names
from sim.sched.task import Blocking, Task
from tests.fs.machine import GIB, Machine, S, assert_sound


def test_the_registry_knows_the_file_systems() -> None:
    assert {"ext3", "tmpfs"} <= set(names("filesystem"))
    assert lookup("filesystem", "ext3").cls is Ext4


@pytest.mark.parametrize("size", [12 * 4096, 13 * 4096, 1037 * 4096, 5 * GIB])
def test_files_of_any_size_have_their_indirect_blocks(size: int) -> None:
    machine = Machine(capacity_bytes=8 * GIB)
    fs = machine.mount_ext3()
    machine.vfs.prepare_file("/big", size)
    inode = fs.info.inodes[12]
    pages = -(-size // 4096)
    leaves = -(-(pages - 12) // 1024)
    uppers = 0 if leaves <= 1 else 1 if leaves <= 1025 else 2 + -(-(leaves - 1025) // 1024)
    assert sum(end - start for start, end in inode.map.all_runs()) == pages + leaves + uppers
    machine.run(lambda task: machine.vfs.unlink(task, "/big"), for_ns=60 * S)
    assert_sound(machine, fs)
    assert fs.statfs().blocks_free == fs.info.blocks.free_total


def test_growing_past_the_twelfth_block_journals_the_indirect_block() -> None:
    machine = Machine()
    fs = machine.mount_ext3()

    def main(task: Task) -> Blocking[None]:
        file = yield from machine.vfs.open(task, "/a", O_WRONLY | O_CREAT)
        yield from read_write.write(machine.vfs, task, file, 12 * 4096)
        yield from sync.fsync(machine.vfs, task, file)
        before = fs.info.journal.log.nr_blocks
        yield from read_write.write(machine.vfs, task, file, 4096)
        yield from sync.fsync(machine.vfs, task, file)
        # Descriptor, bitmap, group descriptor, indirect block, inode; commit block.
        assert fs.info.journal.log.nr_blocks - before == 6
        yield from machine.vfs.close(task, file)

    machine.run(main)
    indirect = fs.info.inodes[12].map.leaves[0]
    assert fs.info.inodes[12].map.block_of(12) == indirect + 1


def test_a_full_disk_is_enospc_and_unlinking_makes_room_after_a_commit() -> None:
    machine = Machine(capacity_bytes=32 << 20)
    fs = machine.mount_ext3()
    free = fs.info.blocks.free_total

    def main(task: Task) -> Blocking[None]:
        with pytest.raises(OSError, match="No space"):
            for number in range(1000):
                yield from machine.write_file(task, f"/{number}", 1 << 20, fsync=False)
        assert fs.info.blocks.free_total < 256
        for name in list(fs.root.directory()):
            yield from machine.vfs.unlink(task, f"/{name}")
        yield from machine.write_file(task, "/again", 1 << 20)

    machine.run(main, for_ns=60 * S)
    assert_sound(machine, fs)
    assert fs.info.blocks.free_total == free - 256 - 1  # One indirect block.


def test_files_of_two_processes_do_not_interleave_for_their_colours_differ() -> None:
    machine = Machine()
    fs = machine.mount_ext3()

    def writer(name: str) -> Callable[[Task], Blocking[None]]:
        def main(task: Task) -> Blocking[None]:
            file = yield from machine.vfs.open(task, name, O_WRONLY | O_CREAT)
            for _ in range(12):
                yield from read_write.write(machine.vfs, task, file, 4096)
                yield
            yield from machine.vfs.close(task, file)

        return main

    machine.run(writer("/a"), writer("/b"))
    first, second = fs.info.inodes[12].map, fs.info.inodes[13].map
    assert len(first.starts) == len(second.starts) == 1
    assert abs(first.blocks[0] - second.blocks[0]) % 2048 == 0


def test_the_journal_of_old_mke2fs_lies_behind_the_first_inode_table() -> None:
    old = Machine("2.6.16").mount_ext3().info
    new = Machine("2.6.32").mount_ext3().info
    assert old.journal_runs[0][0] == old.layout.groups[0].first_data + 1  # The root comes first.
    assert new.journal_runs[0][0] >= new.layout.blocks // 2


def forget_a_block(fs: Ext4) -> None:
    fs.info.blocks.groups[0].remove(30000, 30001)
    fs.info.blocks.free_total -= 1


def give_a_block_twice(fs: Ext4) -> None:
    fs.root.map.insert(100, 30000, 1)  # type: ignore[attr-defined]


def lose_a_link(fs: Ext4) -> None:
    fs.info.inodes[12].nlink = 2


def forget_a_name(fs: Ext4) -> None:
    del fs.root.directory()["a"]


def lose_log_space(fs: Ext4) -> None:
    fs.info.journal.log.free -= 1


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (forget_a_block, "nobody's"),
        (give_a_block_twice, "two owners"),
        (lose_a_link, "links"),
        (forget_a_name, "entries and blocks differ"),
        (lose_log_space, "journal"),
    ],
)
def test_fsck_finds_damage(damage: Callable[[Ext4], None], found: str) -> None:
    machine = Machine()
    fs = machine.mount_ext3()
    machine.run(lambda task: machine.write_file(task, "/a", 4096), for_ns=S)
    assert fs.check() == []
    damage(fs)
    assert any(found in line for line in fs.check())
