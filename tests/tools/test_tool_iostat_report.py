"""iostat's arithmetic: a worked example, and the laws between its columns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.tools.iostat import (
    CPU_COLUMNS,
    CPU_COLUMNS_BEFORE_8_1_5,
    IostatReport,
    compute_iostat,
    cpu_percents,
)
from sim.tools.parse import CpuTicks
from tests.tools.tool_texts import disk_text, snapshot

IDLE = (0,) * 11
# 10 s: 1200 writes of 8 sectors, 300 merged, 48 s of waiting in all, busy for 9.7 s.
WRITES = (0, 0, 0, 0, 1200, 300, 9600, 48_000, 4, 9_700, 48_000)
counters = st.tuples(*[st.integers(0, 10**6)] * 11).filter(lambda c: c[0] > 0 and c[4] > 0)


def report_of(before: tuple[int, ...], after: tuple[int, ...], seconds: float) -> IostatReport:
    first = snapshot(1000.0, [disk_text("sda", before)])
    return compute_iostat(first, snapshot(1000.0 + seconds, [disk_text("sda", after)]))


def test_worked_example() -> None:
    sda = report_of(IDLE, WRITES, 10.0).device("sda")
    rates = (sda.w_per_s, sda.wrqm_per_s, sda.wsec_per_s, sda.avgrq_sectors, sda.avgqu_sz)
    assert rates == (120.0, 30.0, 960.0, 8.0, 4.8)
    assert (sda.await_ms, sda.w_await_ms) == (40.0, 40.0)
    assert sda.util_pct == pytest.approx(97.0)
    assert sda.svctm_ms == pytest.approx(9700 / 1200)


@given(before=counters, growth=counters, centiseconds=st.integers(1, 10**6))
def test_reads_and_writes_add_up_and_utilisation_is_throughput_times_service(
    before: tuple[int, ...], growth: tuple[int, ...], centiseconds: int
) -> None:
    after = tuple(a + b for a, b in zip(before, growth, strict=True))
    sda = report_of(before, after, centiseconds / 100).device("sda")
    assert sda.tps == pytest.approx(sda.r_per_s + sda.w_per_s)
    waited = sda.r_per_s * sda.r_await_ms + sda.w_per_s * sda.w_await_ms
    assert sda.tps * sda.await_ms == pytest.approx(waited)
    assert sda.tps * sda.svctm_ms == pytest.approx(10 * sda.util_pct)


@given(counters)
def test_little_holds_when_the_queue_integral_is_the_sum_of_waits(growth: tuple[int, ...]) -> None:
    sda = report_of(IDLE, (*growth[:10], growth[3] + growth[7]), 5.0).device("sda")
    assert sda.avgqu_sz == pytest.approx(sda.tps * sda.await_ms / 1000)


def test_first_report_is_the_average_since_boot() -> None:
    since_boot = compute_iostat(None, snapshot(1000.0, [disk_text("sda", WRITES)]))
    assert since_boot.interval_s == 1000.0
    assert since_boot.device("sda").w_per_s == pytest.approx(1.2)


def test_device_that_was_removed_and_came_back_counts_from_zero() -> None:
    assert report_of(tuple(9 * n for n in WRITES), WRITES, 10.0).device("sda").w_per_s == 120.0


def test_device_first_seen_in_the_interval_counts_from_zero() -> None:
    after = snapshot(10.0, [disk_text("sda", IDLE), disk_text("sdb", WRITES)])
    report = compute_iostat(snapshot(0.0, [disk_text("sda", IDLE)]), after)
    assert report.device("sdb").w_per_s == 120.0


def test_milliseconds_wrap_at_32_bits() -> None:
    before = (*IDLE[:7], 2**32 - 8_000, 0, 2**32 - 700, 2**32 - 8_000)
    after = (*IDLE[:4], 1200, 0, 9600, 40_000, 0, 9_000, 40_000)
    sda = report_of(before, after, 10.0).device("sda")
    assert (sda.w_await_ms, sda.avgqu_sz) == (40.0, 4.8)
    assert sda.util_pct == pytest.approx(97.0)


def test_two_readings_at_the_same_time_do_not_divide_by_zero() -> None:
    assert report_of(WRITES, WRITES, 0.0).device("sda").w_per_s == 0.0


def test_unknown_device_is_named_with_the_known() -> None:
    with pytest.raises(KeyError, match="no device 'sdc'; known: sda"):
        report_of(IDLE, WRITES, 1.0).device("sdc")


def test_interrupt_time_is_system_time_only_from_8_1_5_on() -> None:
    ticks = CpuTicks(user=10, system=10, idle=60, irq=5, softirq=15)
    assert cpu_percents(ticks, CPU_COLUMNS)[2] == 30.0
    assert cpu_percents(ticks, CPU_COLUMNS_BEFORE_8_1_5)[2] == 12.5


@given(st.lists(st.integers(0, 10**9), min_size=8, max_size=8).filter(any))
def test_cpu_percents_add_up_to_100(ticks: list[int]) -> None:
    prev = snapshot(0.0, [], cpu=(0,) * 8)
    cpu = compute_iostat(prev, snapshot(5.0, [], cpu=ticks)).cpu
    columns = (cpu.user_pct, cpu.nice_pct, cpu.system_pct, cpu.iowait_pct, cpu.steal_pct)
    assert sum(columns) + cpu.idle_pct == pytest.approx(100.0)


@pytest.mark.parametrize(
    ("partition", "disk"),
    [("sda1", "sda"), ("sda12", "sda"), ("nvme0n1p2", "nvme0n1"), ("mmcblk0p1", "mmcblk0")],
)
def test_partition_is_told_from_its_disk_by_the_kernels_naming(partition: str, disk: str) -> None:
    rows = [disk_text(disk, IDLE), disk_text(partition, IDLE, minor=1)]
    report = compute_iostat(None, snapshot(1.0, rows))
    assert [device.disk for device in report.devices] == ["", disk]


@pytest.mark.parametrize("name", ["dm-1", "dm-10", "loop0", "md127", "sdaa", "xvdep3", "nvme0n1"])
def test_whole_device_with_digits_is_no_partition(name: str) -> None:
    rows = [disk_text("sda", IDLE), disk_text("xvde", IDLE), disk_text(name, IDLE)]
    assert compute_iostat(None, snapshot(1.0, rows)).device(name).disk == ""
