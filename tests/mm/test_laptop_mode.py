"""Laptop mode: dirty data goes out while the disk runs anyway."""

import pytest

from sim.block.bio import WRITE
from tests.mm.machines import FLUSHERS, KERNELS, PAGES_PER_MIB, Machine, S, dirtier, sleeper

LAPTOP_NS = 3 * S


def write_times_s(machine):
    return [t_ns / S for t_ns, op, _, _ in machine.device.log if op == WRITE]


def write_then_read(task, machine, pages, read_at_s):
    """Make pages dirty at once, and read one of another file at each of the moments."""
    yield from dirtier(task, machine.file, pages)
    other = machine.new_file()
    for number, at_s in enumerate(read_at_s):
        yield from sleeper(task, int(at_s * S) - machine.calendar.now)
        other.start_read(number, number + 1)
        yield from machine.ops.readpages(task, other, number, number + 1)


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_is_dirty_is_written_so_long_after_the_last_read(kernel):
    machine = Machine(kernel=kernel, laptop_mode_ns=LAPTOP_NS)
    machine.task(write_then_read, machine, 64, [5, 6, 7])
    machine.run_until(20)
    assert write_times_s(machine)[0] == pytest.approx(10.0, abs=0.1)
    assert machine.vm.nr_dirty == machine.vm.nr_writeback == 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_without_it_the_same_waits_until_it_is_old(kernel):
    machine = Machine(kernel=kernel)
    machine.task(write_then_read, machine, 64, [5, 6, 7])
    machine.run_until(29)
    assert not write_times_s(machine)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_disk_that_nobody_uses_is_left_alone(kernel):
    machine = Machine(kernel=kernel, laptop_mode_ns=LAPTOP_NS)
    machine.task(dirtier, machine.file, 64)
    machine.run_until(29)
    assert not machine.device.log


@pytest.mark.parametrize("kernel", FLUSHERS)
@pytest.mark.parametrize("laptop_ns", [0, LAPTOP_NS])
def test_the_background_threshold_starts_nothing(kernel, laptop_ns):
    """Between it and the limit, or freerun: 12 of 100 MiB for thresholds of 10 and 20 %."""
    machine = Machine(
        kernel=kernel, memory_mib=196, laptop_mode_ns=laptop_ns, dirty_background_ratio=10.0,
        dirty_ratio=20.0,
    )  # fmt: skip
    machine.task(dirtier, machine.file, 12 * PAGES_PER_MIB)
    machine.run_until(4)
    assert bool(write_times_s(machine)) == (not laptop_ns)
    machine.vm.check()
