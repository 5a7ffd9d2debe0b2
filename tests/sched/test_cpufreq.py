"""Governors: what they do with a load, and what a service of bursts gets."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.sched.cpufreq import (
    ACPI,
    GOVERNORS,
    INTEL,
    Conservative,
    CpufreqParams,
    Load,
    Ondemand,
    PstatePowersave,
    at_least,
    at_most,
    closest,
)
from sim.sched.version import kernel_version
from tests.sched.clocks import GHZ, ClockedRig, bursts, clock
from tests.sched.rig import MS, S, hog

LOWEST_KHZ, BASE_KHZ = 1_200_000, 2_400_000
KERNELS = ("2.6.18", "2.6.32", "3.10", "3.13", "3.14", "3.16", "4.4", "5.4", "6.12")
FOLLOWERS = [
    (ACPI, name, kernel)
    for name in GOVERNORS[ACPI]
    if name not in ("performance", "powersave")
    for kernel in KERNELS
] + [(INTEL, "powersave", kernel) for kernel in KERNELS if kernel_version(kernel) >= (3, 9)]


def rig_of(driver="acpi-cpufreq", governor="ondemand", kernel="4.4", cpus=1, **more):
    defaults = {name: value for name, (value, _) in CpufreqParams.kernel_defaults(kernel).items()}
    params = clock(**defaults | {"driver": driver, "governor": governor} | more)
    return ClockedRig(cpus, kernel_version(kernel), cpufreq=params)


@pytest.mark.parametrize(("driver", "governor", "kernel"), FOLLOWERS)
def test_at_full_load_every_governor_that_follows_it_reaches_the_top(driver, governor, kernel):
    rig = rig_of(driver, governor, kernel)
    rig.sched.spawn("hog", hog)
    rig.run(1)
    assert rig.khz == BASE_KHZ


@pytest.mark.parametrize(("driver", "governor", "kernel"), FOLLOWERS)
def test_with_nothing_to_do_none_stays_at_the_top(driver, governor, kernel):
    """Looks of a CPU that sleeps are put off: a daemon that does next to nothing wakes it.

    But for intel_pstate to 3.13, which "will notice a decrease in load" from fcb6a15c2e7e on only.
    """
    rig = rig_of(driver, governor, kernel)
    rig.sched.spawn("burst", bursts(800 * MS, 20 * S))
    rig.sched.spawn("daemon", bursts(1000, 250 * MS))
    rig.run(21 + 10)
    stays = driver == INTEL and kernel in ("3.10", "3.13")
    assert rig.khz == (BASE_KHZ if stays else LOWEST_KHZ)


def test_acpis_powersave_is_the_lowest_clock_whatever_the_load():
    rig = rig_of(governor="powersave")
    rig.sched.spawn("hog", hog)
    rig.run(1)
    assert rig.khz == LOWEST_KHZ


def test_ondemand_is_at_the_top_one_sample_after_work_began():
    rig = rig_of()
    rig.run(0.1)
    rig.sched.spawn("hog", hog)
    rig.run(0.008)
    assert rig.khz == LOWEST_KHZ
    rig.run(0.013)
    assert rig.khz == BASE_KHZ


@pytest.mark.parametrize(
    ("driver", "governor", "kernel"),
    [
        ("acpi-cpufreq", "ondemand", "2.6.32"),
        ("acpi-cpufreq", "conservative", "4.4"),
        (INTEL, "powersave", "3.14"),
    ],
)
def test_many_short_bursts_look_idle(driver, governor, kernel):
    """A fifth of the time at the base clock in bursts of 2 ms: each burst takes twice as long."""
    rig = rig_of(driver, governor, kernel)
    log = []
    rig.sched.spawn("service", bursts(2 * MS, 20 * MS, log))
    rig.run(4)
    assert sum(log[20:]) / len(log[20:]) == pytest.approx(4 * MS, rel=0.1)


def test_one_long_burst_of_the_same_work_does_not():
    rig = rig_of(kernel="2.6.32")
    log = []
    rig.sched.spawn("service", bursts(200 * MS, 2 * S, log))
    rig.run(10)
    assert max(log) < 225 * MS


@pytest.mark.parametrize(
    ("kernel", "khz"),
    [
        ("2.6.32", 1_200_000),  # 20 % of 1.2 GHz, over 92 %
        ("3.13", 1_200_000),  # 20 % of 2.4 GHz
        ("4.4", 1_400_000),  # 1.2 + 20 % of 1.2 GHz, the nearest
    ],
)
def test_ondemands_formula_is_that_of_the_release(kernel, khz):
    governor = Ondemand(
        clock(governor="ondemand", up_threshold_percent=95.0), kernel_version(kernel)
    )
    load = Load(10 * MS, 2 * MS, 0, 2 * MS * LOWEST_KHZ)
    assert governor.next_khz(load, LOWEST_KHZ) == khz


def test_ondemand_comes_down_to_the_row_that_is_just_fast_enough():
    """2.6.32: half of 2.4 GHz at 92 % of the time is 1.304 GHz, CPUFREQ_RELATION_L: 1.4."""
    governor = Ondemand(clock(governor="ondemand", up_threshold_percent=95.0), (2, 6, 32))
    load = Load(10 * MS, 5 * MS, 0, 5 * MS * BASE_KHZ)
    assert governor.next_khz(load, BASE_KHZ) == 1_400_000


def test_iowait_is_load_for_ondemand_from_2_6_35_on():
    load = Load(10 * MS, 1 * MS, 9 * MS, 1 * MS * LOWEST_KHZ)
    chosen = []
    for kernel in ("2.6.32", "2.6.39"):
        defaults = {
            name: value for name, (value, _) in CpufreqParams.kernel_defaults(kernel).items()
        }
        governor = Ondemand(clock(**defaults | {"governor": "ondemand"}), kernel_version(kernel))
        chosen.append(governor.next_khz(load, LOWEST_KHZ))
    assert chosen == [LOWEST_KHZ, BASE_KHZ]


def test_sampling_down_factor_keeps_ondemand_at_the_top_for_longer():
    stays = []
    for factor in (1, 20):
        rig = rig_of(sampling_down_factor=factor)
        rig.sched.spawn("burst", bursts(100 * MS, S))
        rig.sched.spawn("daemon", bursts(1000, 4 * MS))
        rig.run(1 + 0.9)
        rig.sched.cpufreq.update(0)
        stays.append(rig.sched.cpufreq.time_in_state_ns[0][BASE_KHZ])
    assert stays[1] > stays[0] + 100 * MS


def test_powersave_bias_takes_its_share_off_the_mean_clock():
    rig = rig_of(powersave_bias=125)  # an eighth
    rig.sched.spawn("hog", hog)
    rig.run(10)
    cpu = rig.sched.cpu_at(0)
    assert cpu.cycles / cpu.worked_ns == pytest.approx(BASE_KHZ * 0.875, rel=0.01)


def test_conservative_climbs_in_steps_of_5_percent():
    rig = rig_of(governor="conservative")
    rig.sched.spawn("hog", hog)
    seen = []
    for _ in range(12):
        rig.run(0.0101)
        seen.append(rig.khz)
    assert seen == sorted(seen) and len(set(seen)) > 8


def test_intel_pstate_climbs_a_step_a_look_and_falls_at_once_after_a_long_sleep():
    """The example at the head of sim/sched/cpufreq.py."""
    rig = rig_of(INTEL, "powersave", "4.4")
    rig.sched.spawn("request", bursts(100 * MS, 350 * MS))
    rig.run(0.355)
    seen = []
    for _ in range(30):
        rig.run(0.010)
        seen.append(rig.khz)
    rising = seen[:10]
    assert all(0 <= later - before <= 100_000 for before, later in pairwise(rising))
    assert rising[0] == 1_300_000
    assert rising[-1] >= 2_000_000
    rig.run(0.040)  # asleep: nobody looks
    assert rig.khz == seen[-1]
    rig.run(0.010)  # awake
    assert rig.khz == LOWEST_KHZ


def test_a_package_has_the_highest_clock_that_any_cpu_wants():
    rig = rig_of(cpus=2, package=True)
    rig.sched.spawn("hog", hog)
    rig.run(0.2)
    assert rig.sched.clocks_khz == [BASE_KHZ, BASE_KHZ]


def test_time_in_state_sums_to_the_time():
    rig = rig_of()
    rig.sched.spawn("service", bursts(30 * MS, 90 * MS))
    rig.run(3)
    cpufreq = rig.sched.cpufreq
    cpufreq.update(0)
    assert sum(cpufreq.time_in_state_ns[0].values()) == rig.calendar.now
    assert cpufreq.transitions > 10


def test_a_new_clock_takes_effect_after_the_transition_latency():
    rig = rig_of(transition_latency_ns=3 * MS, sampling_rate_ns=10 * MS)
    rig.sched.spawn("hog", hog)
    rig.run(0.0125)
    assert rig.khz == LOWEST_KHZ
    rig.run(0.001)
    assert rig.khz == BASE_KHZ


@given(
    st.floats(0, 5 * GHZ),
    st.sampled_from([None, 3_300_000]),
    st.sampled_from(["acpi-cpufreq", INTEL]),
)
def test_relations_choose_rows_that_are_there(khz, turbo_khz, driver):
    table = clock(driver, "performance", turbo_khz=turbo_khz).table_khz()
    assert list(table) == sorted(set(table))
    low, high, near = at_most(table, khz), at_least(table, khz), closest(table, khz)
    assert {low, high, near} <= set(table)
    assert low <= khz or low == table[0]
    assert high >= khz or high == table[-1]
    assert abs(near - khz) == min(abs(row - khz) for row in table)


@pytest.mark.parametrize(
    ("percent", "at_khz", "khz"),
    [
        (81, 1_200_000, 1_300_000),
        (80, 1_200_000, 1_200_000),
        (50, 1_200_000, 1_200_000),
        (100, 2_400_000, 2_400_000),
        (20, 2_400_000, 2_400_000),
        (19, 2_400_000, 2_300_000),
        (0, 1_200_000, 1_200_000),
    ],
)
def test_conservative_goes_a_step_above_80_percent_and_back_below_20(percent, at_khz, khz):
    """A step is 5 % of 2.4 GHz: up to the row below 1.32 GHz, down to the row above 2.28 GHz."""
    governor = Conservative(clock(governor="conservative"), (4, 4))
    full = Load(10 * MS, 10 * MS, 0, 10 * MS * at_khz)
    while governor.next_khz(full, at_khz) < at_khz:
        pass
    if at_khz == LOWEST_KHZ:
        governor = Conservative(clock(governor="conservative"), (4, 4))
    load = Load(10 * MS, percent * MS // 10, 0, percent * MS // 10 * at_khz)
    assert governor.next_khz(load, at_khz) == khz


def test_intel_pstate_by_load_comes_down_halfway_a_look():
    """4.13: 125 % of 2.4 GHz when full; then 1.2 + 1.8 / 2, / 4, ... GHz, rounded down to a row."""
    governor = PstatePowersave(clock(driver=INTEL), (4, 14))
    full = Load(10 * MS, 10 * MS, 0, 10 * MS * BASE_KHZ)
    idle = Load(10 * MS, 0, 0, 0)
    assert governor.next_khz(full, BASE_KHZ) == BASE_KHZ
    seen = [governor.next_khz(idle, BASE_KHZ) // 100_000 for _ in range(5)]
    assert seen == [21, 16, 14, 13, 12]
