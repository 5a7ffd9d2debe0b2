"""Free memory: watermarks of real machines, room made from clean pages, and the end of it."""

import pytest

from sim.mm.address_space import MAPPING_SHMEM, AddressSpace, AddressSpaceOps, BackingDevInfo
from sim.mm.features import features
from sim.mm.memory import Mm
from sim.mm.mmzone import Watermarks, min_free_kbytes
from sim.mm.page_alloc import OutOfMemory, alloc_anon
from tests.mm.machines import Machine

MIB = 1024  # KiB
GIB = 1024 * MIB


@pytest.mark.parametrize(
    "memory_kib, expected_kib",
    [(512 * MIB, 2896), (GIB, 4096), (4 * GIB, 8192), (8 * GIB, 11585), (16 * GIB, 16384)],
)
def test_min_free_kbytes_is_the_root_of_sixteen_times_memory(memory_kib, expected_kib):
    assert min_free_kbytes(memory_kib, features((2, 6, 16))) == expected_kib


def test_min_free_kbytes_is_bounded_and_the_bound_moved_in_5_7():
    assert min_free_kbytes(100, features((2, 6, 16))) == 128
    assert min_free_kbytes(1024 * GIB, features((5, 6))) == 65536
    assert min_free_kbytes(1024 * GIB, features((5, 7))) == 131072


@pytest.mark.parametrize("kernel", [(2, 6, 16), (4, 5)])
def test_watermarks_are_a_quarter_and_a_half_above_the_reserve(kernel):
    marks = Watermarks(30 * GIB // 4, 0, features(kernel))
    assert (marks.low, marks.high) == (marks.min + marks.min // 4, marks.min + 2 * (marks.min // 4))


def test_since_4_6_the_gap_is_a_thousandth_of_memory():
    marks = Watermarks(30 * GIB // 4, 0, features((4, 6)))
    assert marks.low - marks.min == marks.high - marks.low == 30 * GIB // 4 // 1000


def test_nodes_share_the_reserve_by_their_memory():
    vm = Machine(kernel="4.18", memory_mib=4096, numa_nodes=4, cpus=4).vm
    assert sum(node.nr_total for node in vm.nodes) == vm.nr_total
    assert vm.watermarks.min - 4 <= sum(node.watermarks.min for node in vm.nodes)
    vm.check()


def test_programs_take_and_return_memory():
    vm = Machine().vm
    free = vm.nr_free
    mm = Mm(vm)
    mm.nr_by_node = alloc_anon(vm, 1000)
    assert (vm.nr_anon, vm.nr_free) == (1000, free - 1000)
    vm.uncharge_anon(mm, 0, 1000)
    assert (vm.nr_anon, vm.nr_free) == (0, free)
    vm.check()


def test_memory_comes_from_the_own_node_until_that_is_down_to_its_low_watermark():
    vm = Machine(kernel="4.18", memory_mib=4096, numa_nodes=2, cpus=2).vm
    room = vm.nodes[0].nr_free - vm.nodes[0].watermarks.low
    assert alloc_anon(vm, room - 300)[1] == 0
    taken = alloc_anon(vm, 2000)
    assert taken[0] <= 300
    assert sum(taken) == 2000


def test_dirty_pages_do_not_make_room():
    machine = Machine(memory_mib=256)
    machine.file.set_dirty(0, 5000)
    machine.file.add_pages(5000, 10_000)
    assert machine.file.evict_pages(0, 10_000) == 5000
    assert machine.file.nr_pages == machine.file.nr_dirty == 5000
    machine.vm.check()


@pytest.mark.parametrize("kernel", ["2.6.16", "4.4"])
def test_memory_that_is_all_in_use_ends_the_run_with_who_uses_it(kernel):
    machine = Machine(kernel=kernel, memory_mib=256)
    vm = machine.vm
    tmpfs = AddressSpace(vm, None, AddressSpaceOps(), BackingDevInfo("tmpfs", None), MAPPING_SHMEM)
    tmpfs.add_pages(0, 1000)
    with pytest.raises(OutOfMemory, match=r"1000 of tmpfs.*OOM killer"):
        alloc_anon(vm, vm.nr_free + 1)
    vm.check()


def test_a_machine_smaller_than_its_kernel_is_refused():
    with pytest.raises(ValueError, match="the kernel itself takes"):
        Machine(memory_mib=64)
