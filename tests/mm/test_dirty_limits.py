"""Dirty limits by kernel version, worked out by hand."""

import pytest

from sim.mm.bandwidth import ratelimit_pages
from sim.mm.page_alloc import alloc_anon
from sim.mm.page_writeback import dirty_limits, dirtyable_memory
from sim.mm.params import VmParams
from tests.mm.machines import KERNELS, Machine, vm_params

GIB = 1 << 18  # pages


@pytest.mark.parametrize(
    "kernel, background, limit",
    [
        ("2.6.16", 10, 40),
        ("2.6.21", 10, 40),
        ("2.6.22", 5, 10),
        ("2.6.29", 5, 10),
        ("2.6.30", 10, 20),
        ("6.5", 10, 20),
    ],
)
def test_default_ratios_changed_in_2_6_22_and_2_6_30(kernel, background, limit):
    params = vm_params(kernel)
    assert (params.dirty_background_ratio, params.dirty_ratio) == (background, limit)


def test_every_changed_default_names_its_source():
    for _, source in VmParams.kernel_defaults("6.5").values():
        assert source.startswith("mm/page-writeback.c")


def test_2_6_16_takes_percentages_of_all_memory():
    assert dirty_limits(Machine(memory_mib=8192).vm) == (8 * GIB // 10, 8 * GIB * 4 // 10)


def test_2_6_16_halves_what_programs_leave_over():
    vm = Machine(memory_mib=4096).vm
    alloc_anon(vm, 4 * GIB * 60 // 100)
    background, limit = dirty_limits(vm)
    assert limit == pytest.approx(4 * GIB * 20 / 100, rel=0.03)
    assert background == pytest.approx(4 * GIB * 10 / 100, rel=0.03)


def test_2_6_16_never_goes_below_five_percent():
    vm = Machine(memory_mib=4096).vm
    alloc_anon(vm, 4 * GIB * 95 // 100)
    background, limit = dirty_limits(vm)
    assert limit == 4 * GIB * 5 // 100
    assert background == limit // 2


@pytest.mark.parametrize("kernel, counts", [("2.6.31", True), ("2.6.32", False), ("4.4", False)])
def test_memory_of_programs_counts_until_2_6_31_without_swap(kernel, counts):
    vm = Machine(kernel=kernel).vm
    before = dirtyable_memory(vm)
    alloc_anon(vm, 10_000)
    after = dirtyable_memory(vm)
    assert before - after == (0 if counts else 10_000)


def test_3_3_leaves_out_what_the_watermarks_keep_back():
    machine, later = Machine(kernel="3.2"), Machine(kernel="3.3")
    reserve = dirtyable_memory(machine.vm) - dirtyable_memory(later.vm)
    assert reserve == later.vm.watermarks.high


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("ratios", [(0, 0), (10, 5), (50, 50), (100, 100)])
def test_the_background_threshold_is_always_below_the_limit(kernel, ratios):
    background, limit = ratios
    machine = Machine(kernel=kernel, dirty_background_ratio=background, dirty_ratio=limit)
    low, high = dirty_limits(machine.vm)
    assert 0 <= low < high


@pytest.mark.parametrize(
    "mib, cpus, pages", [(8192, 4, 1024), (512, 4, 1024), (64, 4, 128), (16, 32, 16)]
)
def test_ratelimit_is_a_32nd_of_memory_over_all_cpus_within_bounds(mib, cpus, pages):
    assert ratelimit_pages(mib * 256, cpus) == pages


def test_a_limit_in_bytes_is_taken_as_it_is():
    vm = Machine(kernel="6.5", dirty_background_limit_bytes=32 << 20, dirty_limit_bytes=96 << 20).vm
    assert dirty_limits(vm) == (32 * 256, 96 * 256)


def test_a_background_limit_in_bytes_is_halved_below_a_smaller_limit():
    vm = Machine(kernel="6.5", dirty_background_limit_bytes=96 << 20, dirty_limit_bytes=32 << 20).vm
    assert dirty_limits(vm) == (16 * 256, 32 * 256)


def test_a_limit_in_bytes_leaves_the_other_a_ratio():
    machine = Machine(kernel="6.5", dirty_limit_bytes=96 << 20, dirty_background_ratio=1)
    background, limit = dirty_limits(machine.vm)
    assert limit == 96 * 256
    assert background == int(dirtyable_memory(machine.vm) / 100)
