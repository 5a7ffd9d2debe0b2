"""The laws as arithmetic, and CPUs and waiters implied by iowait."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.look.cpus import look_at_cpus
from calibration.look.intervals import intervals_of, mean_row, without_ends
from calibration.look.laws import (
    CPU_COUNTS,
    capacity_per_s,
    demand_ms,
    expected_ratio,
    idle_steps,
    iowait_ratio,
    placings,
    population_bound_per_s,
    requests_in_system,
    service_ms,
    waiters_on,
)
from calibration.samples import Recording, Sample
from tests.calibration.look_rows import cpu_row, device_row, interval

several = st.sampled_from(CPU_COUNTS[1:])
shares = st.floats(0.01, 0.99)


@given(rate=st.floats(0.1, 1e5), utilisation=st.floats(0.001, 1), stretch=st.floats(1, 100))
def test_little_and_utilisation_law_fit_together(
    rate: float, utilisation: float, stretch: float
) -> None:
    service = service_ms(utilisation, rate)
    in_system = requests_in_system(rate, stretch * service)
    assert in_system == pytest.approx(stretch * utilisation)


@given(busy=shares, cpus=several, rate=st.floats(0.1, 1e4))
def test_capacity_is_the_servers_over_the_demand(busy: float, cpus: int, rate: float) -> None:
    demand = demand_ms(busy, cpus, rate)
    assert capacity_per_s(busy, rate) == pytest.approx(1000 * cpus / demand)


def test_customers_that_never_wait_are_a_bound() -> None:
    assert population_bound_per_s(16, [90, 41], 0.269) == pytest.approx(16 / 0.4)
    assert population_bound_per_s(1, [], 0) == math.inf


@given(cpus=several, waiters=st.integers(1, 16))
def test_waiters_are_found_again(cpus: int, waiters: int) -> None:
    assert waiters_on(cpus, expected_ratio(cpus, waiters)) == pytest.approx(waiters)


@given(cpus=several, busy=st.floats(0, 0.95), util=st.floats(0.05, 1))
def test_one_waiter_tells_the_number_of_cpus(cpus: int, busy: float, util: float) -> None:
    iowait = util * (1 - busy) / cpus
    best = placings(iowait_ratio(iowait, util, busy), 0.05)[0]
    assert (best.cpus, best.waiters) == (cpus, 1)


def test_on_one_cpu_waiters_cannot_be_counted() -> None:
    assert waiters_on(1, 0.9) == waiters_on(4, 1.0) == math.inf


@given(cpus=st.sampled_from((2, 3, 4, 8)), steps=st.lists(st.integers(1, 99), min_size=12))
def test_steps_of_idle_time_tell_the_number_of_cpus(cpus: int, steps: list[int]) -> None:
    # Steps of 1/8 alone: those of 1/4 and 1/2 among them would be explained by fewer CPUs.
    idle = [(step % (cpus - 1) + 1) / cpus for step in steps]
    found = idle_steps([1 / cpus, *idle], 1.0)
    assert found is not None
    assert cpus % found.cpus == 0
    assert found.hits == found.intervals


@given(idle=st.lists(st.sampled_from((0.0, 1.0)), min_size=1, max_size=100))
def test_wholly_idle_or_busy_intervals_say_nothing(idle: list[float]) -> None:
    assert idle_steps(idle, 1.0) is None


def test_idle_time_without_steps_says_nothing() -> None:
    assert idle_steps([0.03 + 0.94 * ((i * 0.618) % 1) for i in range(40)], 1.0) is None


def test_a_number_that_is_recorded_wins_over_one_that_is_implied() -> None:
    row = device_row(r_per_s=0, w_per_s=180, utilisation=0.96, stretch=4, skew=1, size_bytes=4096)
    one = interval(row, cpu_row(0.1, 0.96 * 0.9 / 4))
    implied = look_at_cpus([one], mean_row([one.cpu]), stated=None, device="sda")
    stated = look_at_cpus([one], mean_row([one.cpu]), stated=8, device="sda")
    assert (implied.cpus, implied.waiters) == (4, pytest.approx(1))
    assert (stated.cpus, stated.source) == (8, "recorded")
    assert stated.waiters == pytest.approx(math.log(0.75) / math.log(7 / 8))


def test_a_mean_response_time_is_weighted_by_requests() -> None:
    quiet = {"r_per_s": 1.0, "w_per_s": 0.0, "r_await_ms": 100.0, "await_ms": 100.0}
    busy = {"r_per_s": 99.0, "w_per_s": 0.0, "r_await_ms": 1.0, "await_ms": 1.0}
    mean = mean_row([quiet, busy])
    assert (mean["r_per_s"], mean["await_ms"]) == (50.0, pytest.approx(1.99))
    assert mean["r_await_ms"] == pytest.approx(1.99)


def test_warm_up_and_cool_down_are_left_out() -> None:
    row = device_row(r_per_s=1, w_per_s=0, utilisation=0.1, stretch=1, skew=1, size_bytes=4096)
    given = [interval(row, cpu_row(0.1, 0.1), number) for number in range(5)]
    assert without_ends(given, 0, 0) == given
    assert without_ends(given, 5, 0) == given[1:]
    assert without_ends(given, 7, 10) == given[2:3]


def reading(*rows: tuple[int, float, bool, str, float]) -> Recording:
    """Return a recording of (report, time, since boot, device, util)."""
    return Recording(
        source="x",
        formats=("iostat",),
        samples=tuple(
            Sample(
                time_s=time_s,
                kind="device",
                name=name,
                column="util_pct",
                value=util,
                since_boot=since_boot,
                report=report,
                line=1,
            )
            for report, time_s, since_boot, name, util in rows
        ),
    )


def test_an_interval_begins_where_the_report_before_ended_even_after_a_gap() -> None:
    found = intervals_of(
        [
            reading(
                (0, 0, True, "sda", 1),
                (1, 5, False, "sda", 2),
                (2, 10, False, "sda", 3),
                (3, 100, True, "sda", 4),
                (4, 105, False, "sda", 5),
            )
        ]
    )
    assert [(one.end_s, one.length_s) for one in found] == [(5, 5), (10, 5), (105, 5)]


@pytest.mark.parametrize(
    ("names", "whole"),
    [
        (["sda", "sda1", "sda10"], ["sda"]),
        (["nvme0n1", "nvme0n1p1", "nvme0n10"], ["nvme0n1", "nvme0n10"]),
        (["dm-1", "dm-10"], ["dm-1", "dm-10"]),
        (["xvde", "xvdep3"], ["xvde"]),
        (["sda1"], ["sda1"]),
        (["sda", "sdaa"], ["sda", "sdaa"]),
    ],
)
def test_partitions_are_left_to_their_disk(names: list[str], whole: list[str]) -> None:
    (found,) = intervals_of([reading(*((0, 5.0, False, name, 1.0) for name in names))])
    assert list(found.devices) == whole
