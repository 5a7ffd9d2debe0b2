"""Names and inodes in memory: what reclaim takes, what stays, and what it costs to look again."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.fs.super import O_CREAT, O_RDONLY, O_WRONLY, FileSystem
from sim.mm.drop_caches import drop_pagecache, drop_slab
from sim.mm.features import OBJECT_BYTES, features
from sim.mm.params import VmParams
from sim.mm.shrinker import objects_due, priority_of, vfs_pressure_ratio
from sim.mm.slab import SlabCache
from sim.sched.task import Blocking, Task
from tests.fs.machine import MS, Machine, assert_sound
from tests.user.servers import boot, run_for, values_of

KINDS = ("ext3", "ext4", "xfs")
KERNELS = ("2.6.18", "2.6.32", "3.2", "3.10", "4.4", "4.18", "5.10", "6.5")


def mounted(kind: str, kernel: str = "4.4", **more: object) -> tuple[Machine, FileSystem]:
    machine = Machine(kernel, **more)
    return machine, getattr(machine, f"mount_{kind}")("/")


def reads_of_open(machine: Machine, path: str) -> int:
    """Return the requests that opening and closing a file takes."""

    def main(task: Task) -> Blocking[None]:
        file = yield from machine.vfs.open(task, path, O_RDONLY)
        yield from machine.vfs.close(task, file)

    before = machine.disk.stats.reads
    machine.run(main)
    return machine.disk.stats.reads - before


def take_all(fs: FileSystem) -> None:
    """Have reclaim look at every name and inode until none of them goes any more."""
    cache = fs.dcache
    for _ in range(2 + len(cache.dentry_lru)):
        cache.prune_dcache(len(cache.dentry_lru))
        cache.prune_icache(len(cache.inode_lru))


def objects(machine: Machine) -> dict[str, int]:
    return {name: cache.objects for name, cache in machine.vm.slabs.caches.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_that_was_dropped_is_read_once_and_then_found(kind: str) -> None:
    machine, fs = mounted(kind)
    machine.vfs.prepare_file("/d/f", 4096)
    assert reads_of_open(machine, "/d/f") == 0
    before = objects(machine)
    take_all(fs)
    drop_pagecache(machine.vm)
    assert objects(machine)["dentry"] == 1  # the root's
    assert reads_of_open(machine, "/d/f") > 0
    assert reads_of_open(machine, "/d/f") == 0
    assert objects(machine) == before
    fs.dcache.check()
    assert_sound(machine, fs)


def test_with_its_blocks_in_memory_a_name_costs_no_read() -> None:
    machine, fs = mounted("ext4")
    machine.vfs.prepare_file("/d/f", 4096)
    take_all(fs)
    assert reads_of_open(machine, "/d/f") > 0
    take_all(fs)  # echo 2 leaves the page cache, and the blocks of directories in it.
    assert reads_of_open(machine, "/d/f") == 0


def test_two_files_made_together_share_the_blocks_that_are_read() -> None:
    machine, fs = mounted("ext4")
    for name in "ab":
        machine.vfs.prepare_file(f"/d/{name}", 4096)
    take_all(fs)
    assert reads_of_open(machine, "/d/a") > 0
    assert reads_of_open(machine, "/d/b") == 0


def test_an_open_file_and_the_directories_above_it_stay() -> None:
    machine, fs = mounted("ext3")
    machine.vfs.prepare_file("/a/b/f", 4096)
    machine.vfs.prepare_file("/a/b/g", 4096)

    def main(task: Task) -> Blocking[None]:
        file = yield from machine.vfs.open(task, "/a/b/f", O_RDONLY)
        take_all(fs)
        assert objects(machine)["dentry"] == 4  # the root, a, b and f
        yield from machine.vfs.close(task, file)
        take_all(fs)
        assert objects(machine)["dentry"] == 1

    machine.run(main)


@pytest.mark.parametrize("kernel", KERNELS)
def test_an_inode_takes_its_clean_pages_along_until_pages_hold_it(kernel: str) -> None:
    machine, fs = mounted("ext4", kernel) if kernel >= "2.6.3" else mounted("ext3", kernel)
    inode = machine.vfs.prepare_file("/f", 1 << 20)
    inode.mapping.add_pages(0, 256)
    take_all(fs)
    stays = machine.vm.kernel >= (5, 16)
    assert inode.mapping.nr_pages == (256 if stays else 0)
    assert inode.in_memory == stays
    machine.vm.check()


def test_a_dirty_file_is_never_taken() -> None:
    machine, fs = mounted("ext4")

    def main(task: Task) -> Blocking[None]:
        file = yield from machine.vfs.open(task, "/f", O_WRONLY | O_CREAT)
        yield from machine.vfs.close(task, file)
        file.inode.mapping.set_dirty(0, 1)
        take_all(fs)
        assert file.inode.in_memory and file.inode.mapping.nr_dirty == 1
        file.inode.mapping.truncate(0)

    machine.run(main)
    machine.vm.check()
    fs.dcache.check()


def test_a_tmpfs_is_pinned() -> None:
    machine = Machine("4.4")
    fs = machine.mount_tmpfs("/")
    machine.vfs.prepare_file("/d/f", 4096)
    before = objects(machine)
    take_all(fs)
    assert objects(machine) == before


@pytest.mark.parametrize("kernel", KERNELS[1:])
def test_drop_caches_2_takes_all_but_a_few_and_none_at_pressure_0(kernel: str) -> None:
    machine, _ = mounted("ext4", kernel)
    for number in range(400):
        machine.vfs.prepare_file(f"/d/{number}", 4096)
    pressed, machine.vm.params = machine.vm.params, VmParams(vfs_cache_pressure=0)
    assert drop_slab(machine.vm) == 0
    machine.vm.params = pressed
    drop_slab(machine.vm)
    assert objects(machine)["dentry"] <= 100  # to 3.11 they are counted in hundreds
    machine.vm.check()


@given(
    kind=st.sampled_from(KINDS),
    kernel=st.sampled_from(("2.6.32", "3.2", "4.18", "6.5")),
    steps=st.lists(st.tuples(st.sampled_from("cdursp"), st.integers(0, 5)), max_size=25),
)
def test_whatever_is_taken_files_are_as_they_were(
    kind: str, kernel: str, steps: list[tuple[str, int]]
) -> None:
    """Create, drop, unlink, rename, sync and page drops in any order; fsck finds nothing."""
    machine, fs = mounted(kind, kernel)
    vfs = machine.vfs
    vfs.prepare_directory("/d")
    there: set[int] = set()

    def main(task: Task) -> Blocking[None]:
        for step, number in steps:
            path = f"/d/f{number}"
            if step == "c":
                yield from machine.write_file(task, path, 9000, fsync=False)
                there.add(number)
            elif step == "d":
                take_all(fs)
            elif step == "p":
                drop_pagecache(machine.vm)
            elif step == "s":
                yield from fs.sync_fs(task)
            elif step == "u" and number in there:
                yield from vfs.unlink(task, path)
                there.discard(number)
            elif step == "r" and number in there:
                yield from vfs.rename(task, path, f"/d/f{number + 1}")
                there.discard(number)
                there.add(number + 1)

    machine.run(main, for_ns=20_000 * MS)
    assert set(vfs.prepare_directory("/d").directory()) == {f"f{n}" for n in there}
    fs.dcache.check()
    assert machine.vm.slabs.dentry_counts()[0] <= 2 + len(there)
    assert_sound(machine, fs)


@given(count=st.integers(0, 5000), gone=st.integers(0, 5000), kernel=st.sampled_from(KERNELS))
def test_slabs_hold_their_objects_and_give_pages_back(count: int, gone: int, kernel: str) -> None:
    machine = Machine(kernel)
    slabs = machine.vm.slabs
    slabs.room = 0
    free = machine.vm.nr_free
    cache = slabs.cache("ext4_inode_cache")
    for _ in range(count):
        slabs.alloc(cache)
    for _ in range(min(gone, count)):
        slabs.free(cache)
    machine.vm.check()
    assert free - machine.vm.nr_free == cache.pages
    assert cache.pages * 4096 >= (count - min(gone, count)) * cache.object_bytes


@pytest.mark.parametrize("name", OBJECT_BYTES)
@pytest.mark.parametrize("kernel", [(2, 6, 18), (2, 6, 32), (3, 10), (6, 5)])
def test_a_slab_wastes_less_than_a_fourth(name: str, kernel: tuple[int, ...]) -> None:
    cache = SlabCache(name, kernel)
    used = cache.per_slab * cache.object_bytes / (cache.slab_pages * 4096)
    assert 0.75 < used <= 1


@pytest.mark.parametrize("kernel", [(2, 6, 18), (3, 2), (3, 12), (6, 5)])
@pytest.mark.parametrize("objects", [1000, 50_000])
def test_more_pressure_never_takes_less(kernel: tuple[int, ...], objects: int) -> None:
    release = features(kernel)
    told = [vfs_pressure_ratio(objects, pressure, release) for pressure in (0, 10, 50, 100, 1000)]
    assert told[0] == 0 and told[3] == objects
    assert all(low < high for low, high in pairwise(told))


@given(eligible=st.integers(32, 10**7), share=st.integers(0, 12), objects=st.integers(1, 10**6))
def test_old_and_new_rounds_ask_for_the_same_share(eligible: int, share: int, objects: int) -> None:
    """Twice the share of the pages that were scanned, whether told by pages or by priority."""
    scanned = max(eligible >> share, 1)
    priority = priority_of(scanned, eligible)
    new = objects_due(features((6, 5)), objects, scanned, eligible, priority)
    old = objects_due(features((3, 2)), objects, scanned, eligible, priority)
    assert new <= 4 * (old + 2) and old <= 4 * (new + 2)


def walks(pressure: int, kernel: str, stream: str = "1 GiB") -> list[float]:
    """Return the reads that a walk takes before and after a stream through the page cache."""
    text = f"""
[process.walk]
program = "find"
directories = 20
files = 200
start = "1 s"
period = "25 s"
[process.stream]
program = "dd"
if = "/srv/stream"
input_size = "{stream}"
bs = "1 MiB"
start = "2 s"
"""
    elevator = "none" if kernel == "5.10" else "noop"
    sets = (
        f'machine.kernel="{kernel}"',
        f'machine.disk.sda.scheduler="{elevator}"',
        'machine.memory="192 MiB"',
        f"machine.vm.vfs_cache_pressure={pressure}",
        'machine.vm.kernel_bytes="16 MiB"',
    )
    machine = run_for(boot(text, sets=sets), 32)
    return [float(value) / MS for value in values_of(machine, "find_ns")]


@pytest.mark.parametrize("kernel", ["2.6.32", "3.2", "5.10"])
def test_a_stream_larger_than_memory_takes_the_names_unless_told_not_to(kernel: str) -> None:
    warm, cold = walks(100, kernel)
    assert cold > 5 * warm
    warm, kept = walks(0, kernel)
    assert kept < 1.5 * warm


def test_a_stream_that_fits_takes_none() -> None:
    warm, later = walks(100, "5.10", "64 MiB")
    assert later < 1.5 * warm
