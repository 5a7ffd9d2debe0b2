"""Programs' own memory: laws of hit ratios, conservation, who is swapped out and who is killed."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.mm.memory import Mm, touch_at_random, touch_in_order
from sim.mm.oom_kill import badness
from sim.mm.params import PAGE_SIZE
from sim.sched.task import TASK_INTERRUPTIBLE, sleep_ns
from tests.mm.anon_machine import ExactClock, add_swap, limited, program, swapping, uniform_user
from tests.mm.machines import MS, S
from tests.user.servers import boot, run_for

TMPFS_ALONE = '[machine.mount."/"]\ntype = "tmpfs"'
KERNELS = ["2.6.18", "2.6.32", "3.10", "4.4", "5.10", "6.5"]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("version", [1, 2])
def test_uniform_touches_of_w_pages_in_m_frames_fault_with_one_minus_m_by_w(kernel, version):
    machine = swapping(kernel)
    group = limited(machine, 2048, version)
    counts = []
    program(machine, group, uniform_user(4096, 8_000, counts, warm=4_000))
    machine.run_until(100)
    machine.vm.check()
    assert counts[0] / 8_000 == pytest.approx(0.5, abs=0.03)


def hot_and_cold(hot, cold, touches, share, counts):
    def body(task, mm):
        region = mm.mmap((hot + cold) * PAGE_SIZE, cuts=[hot * PAGE_SIZE])
        yield from touch_in_order(task, mm.vm, region, 0, (hot + cold) * PAGE_SIZE, True)
        faults = []
        for _ in range(2):
            before = mm.majflt
            for _ in range(touches // 20):
                to_hot = round(10 * share)
                yield from touch_at_random(task, mm.vm, region.pools[0], to_hot, 0.0)
                yield from touch_at_random(task, mm.vm, region.pools[1], 10 - to_hot, 0.0)
            faults.append(mm.majflt - before)
        counts.append(faults[1] / (touches // 2))

    return body


def exact_ratio(frames, hot, cold, touches, share):
    clock = ExactClock(frames)
    for page in range(hot + cold):
        clock.touch(page)
    rng = random.Random(5)
    misses = 0
    to_hot = round(10 * share)
    for index in range(touches):
        if index % 10 < to_hot:
            page = rng.randrange(hot)
        else:
            page = hot + rng.randrange(cold)
        missed = not clock.touch(page)
        misses += missed and index >= touches // 2
    return misses / (touches // 2)


@pytest.mark.parametrize(("hot", "cold"), [(500, 4000), (1500, 4000)])
def test_hot_and_cold_pages_fault_as_often_as_with_exact_lists(hot, cold):
    machine = swapping("4.4", page_cluster=0)
    group = limited(machine, 2048)
    counts = []
    program(machine, group, hot_and_cold(hot, cold, 40_000, 0.8, counts))
    machine.run_until(200)
    machine.vm.check()
    assert counts[0] == pytest.approx(exact_ratio(2048, hot, cold, 40_000, 0.8), abs=0.03)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_scan_of_more_than_there_is_finds_next_to_nothing(kernel):
    machine = swapping(kernel, page_cluster=0)
    group = limited(machine, 2048)
    faults = []

    def body(task, mm):
        region = mm.mmap(4096 * PAGE_SIZE)
        for _ in range(4):
            before = mm.majflt
            yield from touch_in_order(task, mm.vm, region, 0, 4096 * PAGE_SIZE, False)
            faults.append(mm.majflt - before)

    program(machine, group, body)
    machine.run_until(100)
    machine.vm.check()
    assert faults[0] == 0
    assert min(faults[2:]) > 0.75 * 4096


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_working_set_below_memory_never_swaps(kernel):
    machine = swapping(kernel, memory_mib=256)
    counts = []
    pages = machine.vm.nr_free - machine.vm.watermarks.high - 600
    mm = program(machine, None, uniform_user(pages, 1_000_000, counts))
    machine.run_until(5)
    assert counts == [0]
    assert (mm.majflt, machine.vm.events.pswpout, machine.vm.events.pswpin) == (0, 0, 0)


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_does_not_fit_into_a_whole_machine_is_out(kernel):
    machine = swapping(kernel, memory_mib=160)
    vm = machine.vm
    counts = []
    room = vm.nr_free
    mm = program(machine, None, uniform_user(room + 4000, 30_000, counts))
    while not counts:
        machine.run_until(machine.calendar.now / S + 0.05)
        vm.check()
    out = 1 - counts[0] / 30_000
    assert out == pytest.approx(room / (room + 4000), abs=0.05)
    machine.run_until(machine.calendar.now / S + 5)
    assert mm.rss_pages == vm.nr_anon == 0
    assert vm.swap.nr_used == 0
    vm.check()


@given(st.randoms(use_true_random=False), st.sampled_from(KERNELS))
def test_every_page_is_somewhere_whatever_programs_do(rng, kernel):
    machine = swapping(kernel, swap_pages=6000, rate_mib_per_s=200)
    group = limited(machine, 1500, rng.choice([1, 2]), rng.choice([None, 2500]))

    def body(task, mm):
        regions = []
        for _ in range(12):
            step = rng.randrange(5)
            if step == 0 or not regions:
                pages = rng.randrange(2, 1200)
                regions.append(mm.mmap(pages * PAGE_SIZE, cuts=[(pages // 3 or 1) * PAGE_SIZE]))
            elif step == 1 and rng.random() < 0.3:
                mm.munmap(regions.pop(rng.randrange(len(regions))))
            elif step == 2:
                pool = rng.choice(rng.choice(regions).pools)
                yield from touch_at_random(task, mm.vm, pool, rng.randrange(3000), rng.random())
            else:
                region = rng.choice(regions)
                low = rng.randrange(region.size)
                size = rng.randrange(1, region.size - low + 1)
                yield from touch_in_order(
                    task, mm.vm, region, low * PAGE_SIZE, size * PAGE_SIZE, rng.random() < 0.5
                )
            yield from sleep_ns(task, rng.randrange(5 * MS), TASK_INTERRUPTIBLE)

    for _ in range(3):
        program(machine, group, body)
    for tenth in range(1, 40):
        machine.run_until(tenth / 20)
        machine.vm.check()
    machine.run_until(200)
    machine.vm.check()
    assert machine.vm.nr_anon == machine.vm.swap.nr_used == group.usage == group.swap_used == 0


def test_pages_that_go_out_together_lie_together():
    machine = swapping("4.4", rate_mib_per_s=100)
    group = limited(machine, 1000)

    def body(task, mm):
        yield from mm.fault_in(task, 3000 * PAGE_SIZE)

    program(machine, group, body)
    machine.run_until(20)
    written = machine.device.pages(1)
    assert sum(count for _, count in written) >= 2000
    ends = [page + count for page, count in written]
    adjoining = sum(page == end for (page, _), end in zip(written[1:], ends, strict=False))
    assert adjoining > 0.8 * (len(written) - 1)


def test_the_area_of_the_highest_priority_is_filled_first_and_equals_share():
    machine = swapping(swap_pages=0)
    low = add_swap(machine, "/dev/low", 5000, prio=1)
    first = add_swap(machine, "/dev/first", 1000, prio=5, start=10_000)
    second = add_swap(machine, "/dev/second", 1000, prio=5, start=20_000)
    default = add_swap(machine, "/dev/default", 1000, start=30_000)
    group = limited(machine, 500)
    program(machine, group, uniform_user(1500, 0, []))
    used = []
    while machine.vm.swap.nr_used < 900:
        machine.run_until(machine.calendar.now / S + 0.0005)
        used.append((first.nr_used, second.nr_used, low.nr_used, default.nr_used))
    assert [area.path for area in machine.vm.swap.areas][2:] == ["/dev/low", "/dev/default"]
    assert default.prio == -1
    assert all(abs(one - other) <= 32 and not rest for one, other, rest, _ in used)


@pytest.mark.parametrize("kernel", ["2.6.32", "4.4", "6.5"])
def test_without_swap_the_largest_program_is_killed_and_the_others_live(kernel):
    machine = swapping(kernel, swap_pages=0)
    group = limited(machine, 2000)
    killed = []
    machine.vm.programs.on_oom_kill = lambda task, pages: killed.append((task, pages))
    counts = []
    small = program(machine, group, uniform_user(700, 10_000, counts, stay_ns=S))
    large = program(machine, group, uniform_user(1500, 10_000, counts, stay_ns=S))
    machine.run_until(5)
    assert [task for task, _ in killed] == [large.task]
    assert counts == [0]
    assert not small.task.killed
    machine.vm.check()


def test_a_machine_without_swap_kills_until_the_rest_fits():
    machine = swapping("6.5", memory_mib=160, swap_pages=0)
    counts = []
    share = machine.vm.nr_free * 3 // 8
    for _ in range(4):
        program(machine, None, uniform_user(share, 1000, counts, stay_ns=S))
    machine.run_until(10)
    assert machine.vm.events.oom_kills == 2
    assert counts == [0, 0]


def test_with_room_in_swap_nobody_is_killed():
    machine = swapping("6.5", memory_mib=160, rate_mib_per_s=50)
    counts = []
    for _ in range(4):
        program(machine, None, uniform_user(10_000, 1000, counts, stay_ns=S))
    machine.run_until(60)
    assert machine.vm.events.oom_kills == 0
    assert len(counts) == 4


def test_a_group_may_have_less_swap_than_there_is():
    machine = swapping("6.5")
    group = limited(machine, 1000, swap_pages=300)
    mm = program(machine, group, uniform_user(1250, 2000, [], stay_ns=S))
    other = program(machine, group, uniform_user(600, 0, [], stay_ns=S))
    machine.run_until(20)
    assert machine.vm.events.oom_kills == 1
    assert mm.task.killed
    assert not other.task.killed


def test_the_badness_of_old_kernels_forgives_who_has_worked_for_long():
    machine = swapping("2.6.32")
    young = program(machine, None, uniform_user(1000, 0, []))
    old = program(machine, None, uniform_user(1000, 0, []))
    machine.run_until(1)
    mms = []
    for mm, cpu_s in ((young, 0), (old, 128)):
        clone = Mm(machine.vm, mm.task)
        clone.total_pages = 1000
        mm.task.utime_ns = cpu_s * S
        mms.append(badness(machine.vm, clone))
    assert mms == [1000, 250]


@pytest.mark.parametrize(
    ("mode", "granted"), [(0, [True, False]), (1, [True, True]), (2, [False, False])]
)
def test_overcommit_memory_says_what_is_promised(mode, granted):
    machine = swapping(memory_mib=256, swap_pages=1000, overcommit_memory=mode)
    mm = Mm(machine.vm, None)
    total = machine.vm.nr_total
    asked = [mm.mmap((total + 900) * PAGE_SIZE), mm.mmap((total + 1100) * PAGE_SIZE)]
    assert [region is not None for region in asked] == granted


def test_a_page_that_was_only_read_since_it_came_back_goes_out_without_a_write():
    writes = []
    for share in (0.0, 1.0):
        machine = swapping("6.5")
        group = limited(machine, 2048)
        program(machine, group, uniform_user(4096, 20_000, [], write_share=share))
        machine.run_until(60)
        writes.append(machine.vm.events.pswpout)
    assert writes[0] < 0.4 * writes[1]


def test_touching_memory_that_is_there_costs_the_same_however_often():
    machine = swapping("6.5")
    counts = []
    program(machine, None, uniform_user(4096, 10**12, counts))
    machine.run_until(2)
    assert counts == [0]


def filled_tmpfs(others):
    """Write a tmpfs larger than memory; return (who was killed, pages of tmpfs) afterwards."""
    process = '[process.filler]\nprogram = "dd"\nof = "/big"\nbs = "1 MiB"\nblocks = 2000\n'
    sets = ('machine.mount."/".type="tmpfs"', 'machine.mount."/".size="4 GiB"')
    machine = run_for(boot(process + others, sets=sets, machine=TMPFS_ALONE), 20)
    killed = [record.comm for record in machine.records if record.name == "oom_kill"]
    return killed, machine.vm.nr_shmem * PAGE_SIZE >> 20


def test_who_fills_a_tmpfs_beyond_memory_is_killed_if_nobody_has_memory_of_his_own():
    killed, filled_mib = filled_tmpfs("")
    assert killed == ["dd"]
    assert 900 < filled_mib < 930  # 1024 less the kernel's 96, of which the reserve is free


def test_who_has_most_memory_of_his_own_is_killed_for_a_tmpfs_first():
    loader = '[process.loader]\nprogram = "memload"\nsize = "100 MiB"\ngrowth = "1 GB/s"\n'
    killed, _ = filled_tmpfs(loader)
    assert killed == ["memload", "dd"]
