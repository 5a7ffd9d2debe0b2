"""Shares of what was written lately: what they sum to, how they grow, how they age."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.mm.proportions import (
    PERIOD_NS,
    FlexProportions,
    FloatingProportions,
    LocalEvents,
)

LIMIT = 50_000  # pages
HALF_PERIOD = 65_536  # 2 << 15, the largest power of two below the limit being 1 << 15

STEPS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(1, 256), st.integers(0, 4 * PERIOD_NS)), max_size=60
)


@given(STEPS)
def test_flexible_shares_are_between_0_and_1_and_sum_to_1_at_most(steps):
    completions, devices = FlexProportions(), [LocalEvents() for _ in range(3)]
    now_ns = 0
    for device, pages, later_ns in steps:
        now_ns += later_ns
        completions.add(devices[device], pages, now_ns)
        shares = [completions.fraction(each, now_ns) for each in devices]
        assert all(0.0 <= share <= 1.0 for share in shares)
        assert sum(shares) <= 1.0 + 1e-9
        assert shares[device] > 0.0


@given(STEPS)
def test_floating_shares_are_between_0_and_1_whatever_the_times(steps):
    completions, devices = FloatingProportions(64), [LocalEvents() for _ in range(3)]
    for device, pages, _ in steps:
        completions.add(devices[device], pages, 0)
        for each in devices:
            assert 0.0 <= completions.fraction(each, 0) <= 1.0


@pytest.mark.parametrize("completions", [FlexProportions(), FloatingProportions(LIMIT)])
def test_a_device_that_was_never_written_has_no_share(completions):
    fresh, busy = LocalEvents(), LocalEvents()
    assert completions.fraction(fresh, 0) == 0.0
    completions.add(busy, 100, 0)
    assert completions.fraction(fresh, 0) == 0.0 < completions.fraction(busy, 0)


def test_the_docstring_s_two_disks_after_15_halvings():
    completions, one, other = FlexProportions(), LocalEvents(), LocalEvents()
    completions.add(one, 40_000, 0)
    completions.add(other, 20_000, 0)
    assert completions.fraction(one, 0) == pytest.approx(2 / 3, rel=1e-4)
    assert completions.fraction(other, 0) == pytest.approx(1 / 3, rel=1e-4)
    half_way_ns = 7 * PERIOD_NS
    assert completions.fraction(one, half_way_ns) == pytest.approx(2 / 3, rel=1e-2)
    for later_ns in (15 * PERIOD_NS, 3600 * 10**9):
        assert completions.fraction(one, later_ns) == 1.0
        assert completions.fraction(other, later_ns) == 0.0


def test_the_only_disk_keeps_its_share_for_ever():
    completions, disk = FlexProportions(), LocalEvents()
    completions.add(disk, 12_345, 0)
    assert completions.fraction(disk, 10**15) == 1.0


def test_how_often_one_looks_does_not_change_a_share():
    seen, unseen = [FlexProportions() for _ in range(2)]
    disks = [(LocalEvents(), LocalEvents()) for _ in range(2)]
    for completions, (one, other) in zip((seen, unseen), disks, strict=True):
        completions.add(one, 10_000, 0)
        completions.add(other, 30_000, PERIOD_NS + 1)
    for now_ns in range(0, 6 * PERIOD_NS, PERIOD_NS // 3):
        seen.fraction(disks[0][0], now_ns)
    end_ns = 6 * PERIOD_NS
    assert seen.fraction(disks[0][1], end_ns) == unseen.fraction(disks[1][1], end_ns)


def test_floating_the_only_disk_s_share_grows_by_half_of_the_rest_with_each_half_period():
    completions, disk = FloatingProportions(LIMIT), LocalEvents()
    for share in (1 / 2, 3 / 4, 7 / 8):
        for _ in range(HALF_PERIOD // 256):
            completions.add(disk, 256, 0)
        assert completions.fraction(disk, 0) == pytest.approx(share, rel=1e-2)
    assert completions.fraction(disk, 10**15) == completions.fraction(disk, 0)
