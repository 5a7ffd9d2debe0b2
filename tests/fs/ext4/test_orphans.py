"""The orphan list: files without a name that somebody still has open."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sim.fs.jbd2 import journal_force_commit
from sim.fs.super import O_CREAT, O_WRONLY
from sim.sched.task import Blocking, Task
from tests.fs.machine import Machine, assert_sound

FILES = 5
steps = st.lists(
    st.tuples(st.sampled_from(["open", "unlink", "close"]), st.integers(0, FILES - 1)), max_size=30
)


@settings(max_examples=60)
@given(todo=steps, kernel=st.sampled_from(["2.6.16", "6.1"]))
def test_the_orphans_are_the_unlinked_files_that_are_open_the_last_one_at_the_head(todo, kernel):
    machine = Machine(kernel)
    fs = machine.mount_ext3()
    expected: list[int] = []

    def program(task: Task) -> Blocking[None]:
        opened = {}
        nameless = set()
        for what, number in todo:
            if what == "open" and number not in opened:
                file = yield from machine.vfs.open(task, f"/{number}", O_WRONLY | O_CREAT)
                opened[number] = file
            elif what == "unlink" and number in opened and number not in nameless:
                yield from machine.vfs.unlink(task, f"/{number}")
                nameless.add(number)
                expected.append(opened[number].inode.ino)
            elif what == "close" and number in opened:
                file = opened.pop(number)
                if number in nameless:
                    nameless.remove(number)
                    expected.remove(file.inode.ino)
                yield from machine.vfs.close(task, file)
            assert list(fs.info.orphans) == expected
        for file in opened.values():
            yield from machine.vfs.close(task, file)
        assert not fs.info.orphans

    machine.run(program)
    assert_sound(machine, fs)


def inodes_and_blocks_touched(names: int, removed: int) -> set[int]:
    """Return the metadata blocks that closing one of so many orphans modifies."""
    machine = Machine("6.1")
    fs = machine.mount_ext3()
    touched: set[int] = set()

    def program(task: Task) -> Blocking[None]:
        files = []
        for number in range(names):
            path = f"/{number}"
            files.append((yield from machine.vfs.open(task, path, O_WRONLY | O_CREAT)))
            yield from machine.vfs.unlink(task, path)
        yield from journal_force_commit(task, fs.info.journal)
        yield from machine.vfs.close(task, files[removed])
        running = fs.info.journal.running
        assert running is not None
        touched.update(head.block for head in running.buffers)

    machine.run(program)
    return touched


def test_the_superblock_is_written_for_the_head_of_the_list_alone() -> None:
    """What lies further down is pointed to by an inode: no block that everybody shares."""
    assert 0 in inodes_and_blocks_touched(3, removed=2)
    assert 0 not in inodes_and_blocks_touched(3, removed=0)
