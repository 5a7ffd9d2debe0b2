"""fio's counting: bins within 0.8 % of what they hold, moments as computed from all values."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.user.fio import (
    PLAT_NR,
    DirectionStat,
    IoStat,
    JobStat,
    percentiles,
    plat_index,
    plat_value,
)

latencies = st.lists(st.integers(0, 2 * 10**9), min_size=1, max_size=60)


@given(st.integers(0, 2**33))
def test_a_bin_is_within_0_8_per_cent_of_its_values(ns):
    assert abs(plat_value(plat_index(ns)) - ns) <= ns / 127


def test_bins_ascend_and_every_bin_holds_its_own_middle():
    values = [plat_value(index) for index in range(PLAT_NR)]
    assert values == sorted(set(values))
    assert [plat_index(value) for value in values] == list(range(PLAT_NR))


def test_bins_are_fio_s():
    """Percentiles that fio 3 printed on real disks: each is the middle of its bin."""
    printed = [856064, 1036288, 1187840, 4947968, 8454144, 10813440, 13041664, 20316160]
    assert [plat_value(plat_index(ns)) for ns in printed] == printed


@given(latencies)
def test_a_percentile_is_the_value_that_so_many_do_not_exceed(values):
    plat = [0] * PLAT_NR
    for value in values:
        plat[plat_index(value)] += 1
    ordered = sorted(values)
    wanted = [1.0, 50.0, 99.0, 100.0]
    ranks = [max(-(-p * len(values) // 100), 1) for p in wanted]
    exact = [plat_value(plat_index(ordered[int(rank) - 1])) for rank in ranks]
    assert percentiles(plat, wanted) == exact


@given(latencies)
def test_moments_are_those_of_all_values(values):
    stat = IoStat()
    for value in values:
        stat.add(value)
    assert (stat.samples, stat.smallest, stat.largest) == (len(values), min(values), max(values))
    assert stat.mean == pytest.approx(statistics.fmean(values), rel=1e-9, abs=1e-6)
    deviation = statistics.stdev(values) if len(values) > 1 else 0
    assert stat.stddev() == pytest.approx(deviation, rel=1e-6, abs=1e-3)


@given(latencies, latencies)
def test_merging_two_jobs_is_counting_both(first, second):
    apart = [IoStat(), IoStat()]
    together = IoStat()
    for stat, values in zip(apart, (first, second), strict=True):
        for value in values:
            stat.add(value)
            together.add(value)
    apart[0].merge(apart[1])
    assert apart[0].mean == pytest.approx(together.mean, rel=1e-9, abs=1e-6)
    assert apart[0].stddev() == pytest.approx(together.stddev(), rel=1e-6, abs=1e-3)
    assert apart[0].smallest == together.smallest and apart[0].largest == together.largest


@given(latencies)
def test_every_latency_has_one_class(values):
    stat = JobStat(0)
    for value in values:
        stat.mark_latency(value)
    assert sum(stat.latency_ns) + sum(stat.latency_us) + sum(stat.latency_ms) == len(values)


@pytest.mark.parametrize(
    ("depth", "index"), [(1, 0), (2, 1), (3, 1), (4, 2), (8, 3), (31, 4), (32, 5), (64, 6)]
)
def test_depths_are_classed_as_fio_does(depth, index):
    stat = JobStat(0)
    stat.queued(depth, 1)
    assert stat.depth[index] == 1


def test_bandwidth_is_sampled_twice_a_second():
    direction = DirectionStat(0)
    for n in range(1, 101):
        direction.complete(n * 20_000_000, 4096, 0, 1000)  # 50 a second for 2 s
    assert (direction.iops.samples, direction.iops.mean) == (4, 50)
    assert direction.bw.mean == 200
