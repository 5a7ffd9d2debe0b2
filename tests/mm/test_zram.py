"""zram: swap in compressed memory: what it takes, what it costs, and what comes back alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.block.part_stat import DiskStats
from sim.mm.compressors import compressor_of
from sim.mm.zpool import LOSS, Zpool
from sim.mm.zram import Zram
from sim.scenario import ScenarioError
from sim.sched.task import TASK_INTERRUPTIBLE, sleep_ns
from tests.mm.anon_machine import add_swap, program, swapping, uniform_user
from tests.mm.machines import Machine, S
from tests.scenario.test_swaps import BASE, booted, load

KERNELS = ["3.14", "4.4", "4.14", "4.15", "5.15", "6.5"]


def with_zram(kernel="5.15", memory_mib=128, pages=1 << 17, ratio=2.7, mem_limit_bytes=0):
    """Return a machine that swaps to compressed memory, and the device."""
    machine = swapping(kernel, memory_mib, 0)
    vm = machine.vm
    row = compressor_of("lzo", None, None, ratio)
    device = Zram(vm, DiskStats("zram0", 252, 0), pages, row, mem_limit_bytes)
    vm.swap.swapon("/dev/zram0", device, [(0, device.usable_pages())], 100, True)
    return machine, device


def staying(*args, **more):
    """Return the body of a uniform user that does not end."""
    body = uniform_user(*args, **more)

    def forever(task, mm):
        yield from body(task, mm)
        yield from sleep_ns(task, 10_000 * S, TASK_INTERRUPTIBLE)

    return forever


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_set_larger_than_memory_lives_in_it_and_waits_for_nothing(kernel):
    machine, device = with_zram(kernel, 256)
    counts = []
    free = machine.vm.nr_free
    program(machine, None, staying(free + free // 2, 4000, counts))
    machine.run_until(20)
    [faults] = counts
    vm = machine.vm
    assert faults > 500 and device.stats.reads >= faults
    assert sum(times.iowait_ns for times in machine.sched.cpu_times) == 0
    assert device.pool.stored == vm.swap.nr_used
    assert abs(device.pool.pages - device.pool.stored / 2.7 * (1 + LOSS)) <= 1
    vm.check()


def test_what_is_out_is_the_excess_and_what_holding_it_takes():
    """c slots take c (1 + loss) / r of memory: c = (W - M) / (1 - (1 + loss) / r)."""
    machine, device = with_zram("5.15", 256)
    counts = []
    vm = machine.vm
    room = vm.nr_free - (vm.watermarks.high + vm.watermarks.low) // 2
    excess = room // 4
    program(machine, None, staying(room + excess, 3000, counts, stay_ns=S))
    machine.run_until(20)
    assert device.pool.stored == pytest.approx(excess / (1 - (1 + LOSS) / 2.7), rel=0.1)


@pytest.mark.parametrize("kernel", KERNELS)
def test_from_4_15_on_a_page_comes_alone_and_gives_its_slot_back(kernel):
    machine, _ = with_zram(kernel, 256)
    counts = []
    free = machine.vm.nr_free
    program(machine, None, staying(free + free // 4, 3000, counts, write_share=0.0))
    machine.run_until(20)
    vm = machine.vm
    if vm.kernel >= (4, 15):
        assert vm.events.pswpin == vm.events.pgmajfault
        assert vm.nr_swap_cached < counts[0] / 10  # what was used while it was on its way out
    else:
        assert vm.nr_swap_cached > counts[0] / 2


def test_the_next_area_is_used_when_it_is_full():
    machine, device = with_zram("5.15", 256, pages=4000)
    disk = add_swap(machine, "/dev/test", 1 << 16)
    free = machine.vm.nr_free
    program(machine, None, staying(free + free // 3, 500, []))
    machine.run_until(20)
    assert machine.vm.swap.areas[0].nr_used > 3500 and disk.nr_used > 5000
    assert machine.vm.swap.areas[0].device is device
    machine.vm.check()


def test_a_limit_of_memory_bounds_what_it_takes():
    machine, device = with_zram("5.15", 256, mem_limit_bytes=8 << 20)
    add_swap(machine, "/dev/test", 1 << 16)
    free = machine.vm.nr_free
    program(machine, None, staying(free + free // 3, 500, []))
    machine.run_until(20)
    assert 7 << 20 < device.pool.pages * 4096 <= 8 << 20


def test_a_program_that_ends_gives_all_back():
    machine, device = with_zram("5.15", 256)
    vm = machine.vm
    free = vm.nr_free
    program(machine, None, staying(free + free // 4, 100, []))
    machine.run_until(20)
    assert device.pool.stored
    for mm in list(vm.programs.mms):
        mm.release()
    assert (device.pool.stored, device.pool.pages, vm.nr_zspages) == (0, 0, 0)
    assert vm.nr_free == free
    vm.check()


@given(steps=st.lists(st.booleans(), max_size=300), ratio=st.floats(1.0, 8.0))
def test_a_pool_takes_what_its_objects_need(steps, ratio):
    machine = Machine("5.15", 256)
    pool = Zpool(machine.vm, ratio, LOSS)
    for stores in steps:
        if stores:
            pool.store()
        elif pool.stored:
            pool.free()
        pool.check()
        machine.vm.check()
        needed = pool.stored * (1 + LOSS) / ratio
        assert needed - 1e-6 <= pool.pages < needed + 1


def test_a_scenario_has_it_in_proc_and_sys():
    machine = booted('[machine.zram.zram0]\nsize = "64 MiB"\nalgorithm = "lz4"\n')
    row = "/dev/zram0                              partition\t65532\t0\t100"
    assert row in machine.proc.read("swaps").split("\n")
    files = machine.proc.snapshot()
    assert files["zram0/mm_stat"].split() == ["0"] * 8
    assert files["zram0/disksize"] == f"{64 << 20}\n"
    assert " zram0 " in files["diskstats"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('[machine.zram.zram0]\nalgorithm = "lz4"\n', "lacks 'size'"),
        ('[machine.zram.ram0]\nsize = "1 GiB"\n', "zram device 'ram0' (accepted: zram0, zram1"),
        ('[machine.zram.zram0]\nsize = "1 GiB"\nalgorithm = "lz"\n', "did you mean 'lz"),
        ('[machine.zram.zram0]\nsize = "1 GiB"\nalgorithm = "zstd"\n', "unknown algorithm 'zstd'"),
        ('[machine.zram.zram0]\nsize = "1 GiB"\nlimit = "1 GiB"\n', "unknown key 'limit'"),
    ],
)
def test_what_cannot_be_is_told_with_its_place(more, said):
    with pytest.raises(ScenarioError) as caught:
        load(more)
    assert said in str(caught.value)


def test_a_release_without_zram_is_told():
    with pytest.raises(ScenarioError) as caught:
        load('[machine.zram.zram0]\nsize = "1 GiB"\n', BASE.replace("4.4", "3.10"))
    assert "Linux 3.10 has no zram (accepted: 3.14 and later)" in str(caught.value)
