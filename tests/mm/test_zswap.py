"""zswap: pages kept compressed before the swap device, and what goes there from a full pool."""

import pytest

from sim.block.bio import READ, WRITE
from sim.mm.zswap import Zswap, ZswapParams
from sim.scenario import ScenarioError
from sim.sched.task import TASK_INTERRUPTIBLE, sleep_ns
from tests.mm.anon_machine import add_swap, program, swapping, uniform_user
from tests.mm.machines import S
from tests.scenario.test_swaps import BASE, booted, load

KERNELS = ["3.11", "4.4", "5.4", "5.15", "6.5"]


def with_zswap(kernel="5.15", rate_mib_per_s=400, **params):
    """Return a machine of 256 MiB with swap on a device, and zswap before it."""
    machine = swapping(kernel, 256, 0, rate_mib_per_s)
    machine.vm.swap.zswap = Zswap(machine.vm, ZswapParams(**params))
    add_swap(machine, "/dev/test", 1 << 17)
    return machine, machine.vm.swap.zswap


def user(machine, excess, touches=2000, counts=None, write_share=0.3):
    """Start a program that needs so many pages more than there are, and does not end."""
    vm = machine.vm
    marks = (vm.watermarks.high + vm.watermarks.low) // 2
    body = uniform_user(
        vm.nr_free - marks + excess, touches, [] if counts is None else counts, write_share
    )

    def forever(task, mm):
        yield from body(task, mm)
        yield from sleep_ns(task, 10_000 * S, TASK_INTERRUPTIBLE)

    program(machine, None, forever)
    machine.run_until(60)
    vm.check()


@pytest.mark.parametrize("kernel", KERNELS)
def test_while_the_pool_has_room_the_device_sees_nothing(kernel):
    machine, zswap = with_zswap(kernel)
    counts = []
    user(machine, 4000, counts=counts)
    assert counts[0] > 100
    assert machine.device.pages(WRITE) == machine.device.pages(READ) == []
    assert zswap.pool.stored == machine.vm.swap.nr_used
    assert sum(cpu.iowait_ns for cpu in machine.sched.cpu_times) == 0


def test_two_pages_in_one_need_twice_the_excess():
    machine, zswap = with_zswap()
    user(machine, 4000, touches=3000)
    assert zswap.pool.stored == pytest.approx(2 * 4000, rel=0.15)
    assert zswap.pool.pages == -(-zswap.pool.stored // 2)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("percent", [5, 10])
def test_the_pool_stays_below_its_share_and_the_oldest_go_to_the_device(kernel, percent):
    machine, zswap = with_zswap(kernel, max_pool_percent=percent)
    user(machine, 15_000)
    limit = machine.vm.nr_total * percent // 100
    assert 0.8 * limit < zswap.pool.pages <= limit + 1
    assert zswap.written_back_pages > 1000
    assert zswap.pool_limit_hit > 0
    assert machine.device.pages(WRITE)


def test_zsmalloc_to_6_1_keeps_what_is_old_and_sends_the_new_to_the_device():
    machine, zswap = with_zswap("5.15", zpool="zsmalloc", max_pool_percent=5)
    user(machine, 15_000)
    assert zswap.written_back_pages == 0
    assert sum(pages for _, pages in machine.device.pages(WRITE)) > 5000


def test_what_is_kept_is_not_read_from_the_device():
    machine, zswap = with_zswap("5.15", max_pool_percent=10)
    user(machine, 15_000, touches=4000)
    read = sum(pages for _, pages in machine.device.pages(READ))
    assert 0 < read < machine.vm.events.pswpin
    assert zswap.pool.stored > 0


def test_a_program_that_ends_empties_the_pool():
    machine, zswap = with_zswap("5.4", max_pool_percent=10)
    free = machine.vm.nr_free
    user(machine, 10_000)
    for mm in list(machine.vm.programs.mms):
        mm.release()
    machine.run_until(100)
    assert (zswap.pool.stored, machine.vm.nr_zspages) == (0, 0)
    assert machine.vm.nr_free == free
    machine.vm.check()


def test_a_scenario_has_it_in_sys_and_meminfo():
    swap = '[machine.swap.a]\ndevice = "sdb"\n'
    machine = booted(swap + '[machine.zswap]\ncompressor = "lz4"\n')
    files = machine.proc.snapshot()
    assert files["zswap/parameters/compressor"] == "lz4\n"
    assert files["zswap/parameters/max_pool_percent"] == "20\n"
    assert files["zswap/stored_pages"] == "0\n"
    assert not [name for name in booted(swap).proc.snapshot() if name.startswith("zswap")]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("max_pool_percent = 101", "at most 100"),
        ('compressor = "lz44"', "did you mean 'lz4'"),
        ('compressor = "zstd"', "unknown compressor 'zstd'"),
        ('zpool = "z3fold"', "Linux 4.4 has no z3fold (accepted: zbud, zsmalloc)"),
        ("pool_percent = 3", "did you mean 'max_pool_percent'"),
    ],
)
def test_what_cannot_be_is_told_with_its_place(more, said):
    with pytest.raises(ScenarioError) as caught:
        load(f"[machine.zswap]\n{more}\n")
    assert said in str(caught.value)


def test_a_release_without_zswap_is_told():
    with pytest.raises(ScenarioError) as caught:
        load("[machine.zswap]\nmax_pool_percent = 10\n", BASE.replace("4.4", "3.10"))
    assert "Linux 3.10 has no zswap (accepted: 3.11 and later)" in str(caught.value)
