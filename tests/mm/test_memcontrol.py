"""Memory cgroups: file pages count, a group is a machine of its limit, its writers are paced."""

import random

import pytest

from sim.mm.address_space import MAPPING_SHMEM, AddressSpace, BackingDevInfo
from sim.mm.memory import touch_in_order
from sim.mm.page_writeback import balance_dirty_pages
from sim.mm.params import PAGE_SIZE
from sim.mm.readahead import submit_pages
from sim.mm.vmscan import reserve_for_file
from sim.sched.version import kernel_version
from tests.mm.anon_machine import limited, program, swapping
from tests.mm.lru_oracle import ExactLists
from tests.mm.machines import MS, PAGES_PER_MIB, FlatFile, Machine

LIMIT = 8 * PAGES_PER_MIB


def do_in(machine, group, body, *args):
    """Run a program of a group to its end; return whether it came there alive."""
    ended = []

    def main(task):
        yield from body(task, *args)
        ended.append(True)

    task = machine.sched.spawn("program", main)
    task.memcg = group
    machine.calendar.run_until(machine.calendar.now + 100_000 * MS)
    return bool(ended)


def read(task, mapping, start, end, step=64):
    """Read pages in order, as a program does: what is missing is submitted and waited for."""
    for page in range(start, end, step):
        yield from submit_pages(task, mapping, page, step, end)
        yield from mapping.wait_on_page(task, page, page + step)
        mapping.mark_accessed(page, page + step)


def write(task, mapping, pages, step=32, peak=None):
    """Write pages in order; note in `peak` how many were dirty or on their way, at most."""
    vm = mapping.vm
    for page in range(0, pages, step):
        yield from reserve_for_file(task, vm, step)
        mapping.set_dirty(page, page + step)
        if peak is not None:
            peak.append(mapping.nr_dirty + mapping.nr_writeback)
        yield from balance_dirty_pages(task, vm, mapping, step)
        task.charge_system(10_000)
        yield from task.cond_resched()


def read_at_random(task, mapping, exact, references, found):
    """Read pages of twice what the group may have; count hits here and in the exact lists."""
    rng = random.Random(1)
    for _ in range(references):
        page = rng.randrange(2 * LIMIT)
        found[0] += not mapping.missing(page, page + 1)
        found[1] += exact.read(page)
        yield from read(task, mapping, page, page + 1, 1)


@pytest.mark.parametrize("kernel", ["3.10", "4.18", "6.5"])
def test_the_hit_ratio_in_a_group_is_that_of_a_machine_of_its_limit(kernel):
    machine = Machine(kernel=kernel, memory_mib=256, rate_mib_per_s=4000)
    group = limited(machine, LIMIT)
    found = [0, 0]
    exact = ExactLists(kernel_version(kernel), LIMIT)
    assert do_in(machine, group, read_at_random, machine.file, exact, 10_000, found)
    machine.vm.check()
    assert found[0] == pytest.approx(found[1], rel=0.03)


def test_a_group_that_reads_far_more_than_its_limit_takes_nothing_from_others():
    machine = Machine(kernel="4.18", memory_mib=160, rate_mib_per_s=4000)
    group = limited(machine, LIMIT)
    kept, stream = machine.file, machine.new_file(512)
    assert do_in(machine, None, read, kept, 0, 30 * PAGES_PER_MIB)
    assert do_in(machine, group, read, stream, 0, 512 * PAGES_PER_MIB)
    machine.vm.check()
    assert kept.nr_pages == 30 * PAGES_PER_MIB
    assert LIMIT * 0.9 < group.usage <= LIMIT + group.batch
    files = machine.vm.memcg_file_pages(group)
    assert files == stream.nr_pages == group.usage
    assert group.failcnt > 0 and group.oom_kills == 0


def test_who_reads_a_file_first_pays_for_it():
    machine = Machine(kernel="4.18", memory_mib=256, rate_mib_per_s=4000)
    first, second = limited(machine, LIMIT), limited(machine, LIMIT)
    machine.vm.memcgs = {"first": first, "second": second}
    for group in (first, second):
        assert do_in(machine, group, read, machine.file, 0, PAGES_PER_MIB)
    assert (first.usage, second.usage) == (PAGES_PER_MIB, 0)
    machine.file.truncate(0)
    assert first.usage == 0
    machine.vm.check()


def test_a_writer_in_a_group_is_paced_by_the_groups_own_dirty_ratio():
    """20 % of 8 MiB, while the machine's limit is far away."""
    machine = Machine(kernel="6.5", memory_mib=512, rate_mib_per_s=20)
    group = limited(machine, LIMIT)
    peak = []
    assert do_in(machine, group, write, machine.file, 40 * PAGES_PER_MIB, 32, peak)
    machine.vm.check()
    assert max(peak) < 0.3 * LIMIT
    assert group.oom_kills == 0


def test_a_writer_in_a_group_of_version_1_fills_it_and_waits_for_the_disk():
    machine = Machine(kernel="6.5", memory_mib=512, rate_mib_per_s=20)
    group = limited(machine, LIMIT, version=1)
    peak = []
    assert do_in(machine, group, write, machine.file, 40 * PAGES_PER_MIB, 32, peak)
    machine.vm.check()
    assert max(peak) > 0.8 * LIMIT
    assert group.usage <= LIMIT + group.batch
    assert group.oom_kills == 0


@pytest.mark.parametrize("pages", [16, 64, 300])
@pytest.mark.parametrize("version", [1, 2])
def test_who_writes_a_file_is_never_killed_however_small_his_group(version, pages):
    machine = Machine(kernel="6.5", memory_mib=128, rate_mib_per_s=100)
    group = limited(machine, pages, version=version)
    step = max(group.batch // 2, 1)
    assert do_in(machine, group, write, machine.file, 40 * pages // step * step, step)
    assert group.usage <= pages + group.batch
    assert group.oom_kills == 0
    machine.vm.check()


@pytest.mark.parametrize("version", [1, 2])
def test_who_fills_a_tmpfs_beyond_the_limit_of_his_group_is_killed(version):
    machine = Machine(kernel="5.10", memory_mib=256)
    group = limited(machine, LIMIT, version=version)
    shm = AddressSpace(
        machine.vm, FlatFile(1 << 30), machine.ops, BackingDevInfo("tmpfs", None), MAPPING_SHMEM
    )

    def fill(task):
        for page in range(0, 2 * LIMIT, 32):
            yield from reserve_for_file(task, machine.vm, 32)
            shm.add_pages(page, page + 32)

    assert not do_in(machine, group, fill)
    assert group.oom_kills == machine.vm.events.oom_kills == 1
    assert shm.nr_pages == group.usage <= LIMIT


def test_programs_pages_and_files_of_a_group_compete_for_its_limit():
    machine = swapping(kernel="4.18", memory_mib=256)
    group = limited(machine, LIMIT)

    def body(task, mm):
        region = mm.mmap(LIMIT // 2 * PAGE_SIZE)
        yield from touch_in_order(task, mm.vm, region, 0, LIMIT // 2 * PAGE_SIZE, True)
        yield from read(task, machine.file, 0, 4 * LIMIT)

        files = machine.vm.memcg_file_pages(group)
        found.append((mm.rss_pages, group.usage - files, files, mm.swap_pages))

    found = []
    program(machine, group, body)
    machine.run_until(50)
    machine.vm.check()
    resident, anon, file_pages, out = found[0]
    assert resident == anon
    assert resident + out == LIMIT // 2
    assert 0.9 * LIMIT < anon + file_pages <= LIMIT + group.batch


def test_reclaim_for_the_machine_takes_from_each_group_as_much_of_its_share():
    machine = Machine(kernel="4.18", memory_mib=200, rate_mib_per_s=4000)
    groups = [limited(machine, 1 << 20), limited(machine, 1 << 20)]
    machine.vm.memcgs = {"a": groups[0], "b": groups[1]}
    files = [machine.new_file(), machine.new_file(), machine.new_file()]
    assert do_in(machine, groups[0], read, files[0], 0, 30 * PAGES_PER_MIB)
    assert do_in(machine, groups[1], read, files[1], 0, 60 * PAGES_PER_MIB)
    assert do_in(machine, None, read, files[2], 0, 60 * PAGES_PER_MIB)
    machine.vm.check()
    ratio = groups[1].usage / groups[0].usage
    assert groups[0].usage < 30 * PAGES_PER_MIB
    assert ratio == pytest.approx(2.0, rel=0.2)


def test_every_page_of_a_group_is_counted_whatever_its_programs_do():
    rng = random.Random(5)
    machine = swapping(kernel="6.5", memory_mib=192, rate_mib_per_s=2000)
    groups = [limited(machine, LIMIT, version) for version in (1, 2)]
    machine.vm.memcgs = dict(zip("ab", groups, strict=True))

    def body(task, number):
        mapping = machine.new_file(64)
        for _ in range(12):
            start = rng.randrange(16) * PAGES_PER_MIB
            if rng.random() < 0.5:
                yield from read(task, mapping, start, start + rng.randrange(64, 1024))
            else:
                yield from write(task, mapping, rng.randrange(64, 2048))
        mapping.truncate(number * PAGES_PER_MIB)

    for number in range(6):
        machine.task(body, number).memcg = [*groups, None][number % 3]
    for step in range(1, 40):
        machine.run_until(step / 10)
        machine.vm.check()
    assert all(group.usage <= LIMIT + 2 * group.batch for group in groups)
