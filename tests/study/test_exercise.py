"""Exercise tables: what their cells must be to each other, whatever the disks."""

import pytest

from sim.study.exercise import LOADS, access, fill, measure, raid

READ, WRITE, RANDOM_READ, RANDOM_WRITE = LOADS
RATE = 358  # MB/s of one SSD, profiles/ec2/m3.xlarge.toml


def array(level, count, one, profile="ec2/m3.xlarge"):
    return measure(raid([level], [count], profile).subjects[1], one, 1)


def fact(level, count, key):
    return raid([level], [count]).subjects[1].facts[key]


@pytest.mark.parametrize("count", [2, 4, 8])
def test_raid0_is_so_many_times_one_disk_until_the_bus(count):
    """The host's way to its drives carries 4 GB/s."""
    assert array("raid0", count, READ) == pytest.approx(count * RATE, rel=0.01)
    assert array("raid0", count, RANDOM_READ) == pytest.approx(count * 10_000, rel=0.05)


def test_the_bus_limits_many_fast_disks():
    """Eight disks of 500 MB/s are 4 GB/s, which the host just carries; it never carries more."""
    found = array("raid0", 8, READ, "ec2/i2.8xlarge")
    assert 0.95 * 4000 <= found <= 4000


@pytest.mark.parametrize("count", [2, 3, 8])
def test_capacities_and_losses_are_those_of_the_level(count):
    one = raid([], []).subjects[0].facts["capacity_gb"]
    assert fact("raid0", count, "capacity_gb") == pytest.approx(count * one, rel=0.001)
    assert fact("raid1", count, "capacity_gb") == pytest.approx(one, rel=0.001)
    assert fact("raid10", count, "capacity_gb") == pytest.approx(count * one / 2, rel=0.001)
    assert fact("raid0", count, "may_lose") == 0
    assert fact("raid1", count, "may_lose") == count - 1
    assert fact("raid10", count, "may_lose") == 1
    if count > 2:
        assert fact("raid5", count, "capacity_gb") == pytest.approx((count - 1) * one, rel=0.001)
        assert fact("raid5", count, "may_lose") == 1


def test_a_mirror_writes_like_one_disk():
    assert array("raid1", 4, WRITE) == pytest.approx(151, rel=0.02)
    assert array("raid1", 4, RANDOM_WRITE) == pytest.approx(6000, rel=0.05)


def test_random_writes_of_raid5_cost_four_requests():
    """6000 writes/s of each of 4 disks, two of four requests of each write: half of them."""
    assert array("raid5", 4, RANDOM_WRITE) == pytest.approx(4 * 6000 / 2, rel=0.1)


def test_the_grid_leaves_out_what_no_level_can_be():
    pairs = {(s.facts["level"], s.facts["disks"]) for s in raid().subjects}
    assert ("raid5", 2) not in pairs
    assert {("raid5", 3), ("raid10", 2), ("raid1", 8), ("raid0", 8), ("-", 1)} <= pairs
    assert len(pairs) == 1 + 3 * 7 + 6


def test_an_arm_is_a_hundred_times_slower_at_random_and_flash_is_not():
    table = access()
    disk, flash = (
        fill(
            type(table)(
                name="a",
                title="",
                headings=table.headings,
                loads=table.loads[:2],
                subjects=tuple(s for s in table.subjects if s.facts["device"] == name),
            ),
            1,
        )[0]
        for name in ("sata-7200", "ssd-sata")
    )
    assert disk["read_mb_per_s"] > 100 * disk["random_read_alone_mb_per_s"]
    assert flash["read_mb_per_s"] < 30 * flash["random_read_alone_mb_per_s"]
