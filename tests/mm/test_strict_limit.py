"""A device's share of the dirty limit, and a strict one: what it has at most, and who waits."""

import pytest

from sim.machine import Machine as Server
from sim.mm.address_space import BackingDevInfo
from sim.mm.page_writeback import StrictDomain, bdi_dirty_limit, dirty_limits, strict_domain
from sim.scenario import ScenarioError
from tests.mm.machines import MIB, MS, FixedRate, Machine, dirtier
from tests.scenario.test_swaps import BASE, load

CHUNK = 64


def peak_of(share, strict, kernel="6.2", seconds=30):
    """Write without end to a device at 10 MiB/s; return (peak dirty pages, limit, MiB written)."""
    machine = Machine(kernel, memory_mib=1024, rate_mib_per_s=10)
    machine.bdi.max_share = share
    machine.bdi.strict_limit = strict
    progress = []
    machine.task(dirtier, machine.file, 1 << 22, progress, CHUNK)
    peak = 0
    for half_second in range(2 * seconds):
        machine.run_until((half_second + 1) / 2)
        bdi = machine.bdi
        peak = max(peak, bdi.nr_dirty + bdi.nr_writeback)
    machine.vm.check()
    return peak, dirty_limits(machine.vm)[1], machine.bdi.written / 256


@pytest.mark.parametrize("share", [0.05, 0.2])
def test_what_a_strict_device_has_dirty_stays_below_its_share(share):
    peak, limit, written = peak_of(share, True)
    assert 0.5 * share * limit < peak <= share * limit + CHUNK
    assert written > 0.8 * 10 * 30  # and the device does not starve


def test_a_share_that_is_not_strict_counts_only_when_the_whole_limit_is_near():
    peak, limit, _ = peak_of(0.05, False)
    assert peak > 0.5 * limit


def test_a_strict_device_that_is_full_holds_nobody_else_back():
    machine = Machine("6.2", memory_mib=1024, rate_mib_per_s=100)
    vm = machine.vm
    slow = vm.add_bdi(BackingDevInfo("slow", FixedRate(machine.calendar, MIB)))
    slow.max_share, slow.strict_limit = 0.05, True
    slow.nr_dirty = int(dirty_limits(vm)[1] * 0.05)
    assert not strict_domain(vm, slow).is_free()
    assert strict_domain(vm, machine.bdi) is None
    machine.do(dirtier, machine.file, 640, None, CHUNK)
    assert vm.calendar.now < 100 * MS


def test_shares_are_between_their_bounds_and_without_bounds_sum_up_to_the_limit():
    machine = Machine("6.2")
    vm, one = machine.vm, machine.bdi
    other = vm.add_bdi(BackingDevInfo("other", FixedRate(machine.calendar, MIB)))
    vm.wb.completions.add(one.completions, 900_000, 0)
    vm.wb.completions.add(other.completions, 100_000, 0)
    shares = [bdi_dirty_limit(vm, bdi, 1000, 0) for bdi in (one, other)]
    assert sum(shares) == pytest.approx(1000, rel=1e-5)
    other.min_share = 0.5
    assert bdi_dirty_limit(vm, other, 1000, 0) == pytest.approx(550, rel=1e-5)
    one.max_share = 0.2
    assert bdi_dirty_limit(vm, one, 1000, 0) == 200


@pytest.mark.parametrize(("dirty", "ratio"), [(0, 2.0), (7, 2.0), (60, 1.0), (80, 0.0), (200, 0.0)])
def test_the_feedback_is_1_at_the_setpoint_and_0_at_the_limit(dirty, ratio):
    domain = StrictDomain(dirty, 40, 80, few=8)
    assert domain.pos_ratio(BackingDevInfo("x", None), 1.0) == ratio


@pytest.mark.parametrize(
    ("more", "kernel", "said"),
    [
        ("[machine.bdi.sdb]\nmax_ratio = 10\n", "6.2", "unknown mounted device 'sdb'"),
        ("[machine.bdi.sda]\nmax_ratio = 101\n", "6.2", "at most 100"),
        (
            "[machine.bdi.sda]\nmax_ratio = 1\nmin_ratio = 2\n",
            "6.2",
            "min_ratio is above max_rat",
        ),
        ("[machine.bdi.sda]\nstrict_limit = true\n", "4.4", "Linux 4.4 has no strict_limit in sys"),
        ("[machine.bdi.sda]\nmax_ratio = 10\n", "2.6.32", "not modelled for Linux 2.6.32"),
        ("[machine.bdi.sda]\nmaxratio = 10\n", "6.2", "did you mean 'max_ratio'"),
    ],
)
def test_what_cannot_be_is_told_with_its_place(more, kernel, said):
    with pytest.raises(ScenarioError) as caught:
        load(more, BASE.replace("4.4", kernel))
    assert said in str(caught.value)


def test_a_scenario_has_its_shares_in_sys():
    more = '[machine.bdi.sda]\nmax_ratio = "10 %"\nstrict_limit = true\n'
    machine = Server(load(more, BASE.replace("4.4", "6.2")), 1)
    files = machine.proc.snapshot()
    assert files["bdi/8:0/max_ratio"] == "10\n"
    assert files["bdi/8:0/strict_limit"] == "1\n"
