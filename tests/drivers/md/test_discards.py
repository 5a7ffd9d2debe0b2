"""Discards through stacked devices and front ends: every sector reaches the drive once."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.block.bio import DISCARD
from sim.block.part_stat import DiskStats
from sim.drivers.frontend import Frontend
from sim.drivers.md.dm import member_stretches
from sim.drivers.md.dm_linear import DmLinear
from sim.drivers.ram import Ram, RamParams
from sim.drivers.virtio_blk import VirtioBlkParams
from sim.drivers.xen_blkfront import XenBlkfrontParams
from tests.drivers.md.arrays import MIB, MS, PAGE, Rig

CHUNK = 64 * 1024
WHOLE = (6, 1)


class Trimmable(Ram):
    """Memory that takes discards of up to 8 MiB."""

    def __init__(self, mib=16, latency_ns=MS):
        super().__init__(RamParams(capacity_bytes=mib << 20, latency_ns=latency_ns))
        self.max_discard_sectors = 8 * MIB
        self.discard_sectors = PAGE


def rig(level, count=4, kernel=WHOLE, sizes=None, **given):
    drives = [Trimmable(mib) for mib in sizes or [16] * count]
    return Rig(level, drives, kernel=kernel, **given)


def discarded(array_rig):
    return [disk.stats.discard_sectors for disk in array_rig.disks]


def brute_force(first, end, members, chunk):
    """Return the sectors of each member by asking sector by sector."""
    found = [[] for _ in range(members)]
    for sector in range(first, end):
        index, into = divmod(sector, chunk)
        found[index % members].append(index // members * chunk + into)
    return found


@given(
    first=st.integers(0, 300),
    count=st.integers(1, 300),
    members=st.integers(1, 5),
    chunk=st.sampled_from([1, 4, 8, 16]),
)
def test_a_members_stretch_is_its_sectors_of_the_range(first, count, members, chunk):
    stretches = member_stretches(first, first + count, members=members, chunk_sectors=chunk)
    for (low, high), sectors in zip(
        stretches, brute_force(first, first + count, members, chunk), strict=True
    ):
        assert list(range(low, high)) == sectors


@pytest.mark.parametrize("kernel", [(3, 7), (4, 4), WHOLE])
@pytest.mark.parametrize(
    "level, copies", [("raid0", 1), ("raid1", 4), ("raid10", 2), ("striped", 1)]
)
def test_sectors_of_the_drives_are_those_asked_for(level, copies, kernel):
    array = rig(level, kernel=kernel, **({} if level == "raid1" else {"chunk_bytes": CHUNK}))
    array.do(array.bio(DISCARD, 40, 9 * MIB))
    assert sum(discarded(array)) == copies * 9 * MIB
    assert array.stats.discard_sectors == 9 * MIB
    assert array.stats.reads == array.stats.writes == 0


@settings(max_examples=25)
@given(first=st.integers(0, 40 * MIB), count=st.integers(1, 10 * MIB))
def test_zones_of_unequal_members_are_discarded_where_they_are_written(first, count):
    """What the array discards is where its writes of the same sectors go."""
    array = rig("raid0", sizes=[8, 16, 32], chunk_bytes=CHUNK)
    end = min(first + count, array.array.capacity_sectors)
    first = min(first, end - 1)
    spread = array.array.discards._stretches(first, end)
    assert sum(high - low for _, low, high in spread) == end - first
    layout = array.array.writes._target
    for sector in {first, (first + end) // 2, end - 1}:
        member, moved, _room = layout.map(None, sector)
        assert any(who is member and low <= moved < high for who, low, high in spread)


@pytest.mark.parametrize("kernel, bios", [((4, 11), 16), ((4, 12), 4)])
def test_raid0_asks_each_member_once_from_4_12(kernel, bios):
    array = rig("raid0", kernel=kernel, chunk_bytes=CHUNK)
    array.do(array.bio(DISCARD, 0, 4 * 4 * CHUNK // 512))
    assert sum(disk.stats.discards + disk.stats.discard_merges for disk in array.disks) == bios


@pytest.mark.parametrize(
    "level, kernel",
    [
        ("raid0", (3, 6)),
        ("raid1", (3, 6)),
        ("raid10", (3, 6)),
        ("raid5", WHOLE),
        ("striped", (2, 6, 35)),
    ],
)
def test_releases_and_levels_that_know_none_refuse(level, kernel):
    assert rig(level, kernel=kernel).array.max_discard_sectors == 0


def test_an_array_over_a_disk_with_heads_refuses():
    mixed = Rig("raid0", [Trimmable(), Ram(RamParams(capacity_bytes=16 << 20))], kernel=WHOLE)
    assert mixed.array.max_discard_sectors == 0


def test_a_discard_that_finds_no_slot_waits_and_goes_on():
    array = rig("raid0", kernel=(3, 7), chunk_bytes=CHUNK)
    bios = [array.bio(DISCARD, number * 2 * MIB, MIB) for number in range(12)]
    array.do(*bios)
    assert sum(discarded(array)) == 12 * MIB


@pytest.mark.parametrize("kernel, knows", [((2, 6, 35), False), ((2, 6, 36), True)])
def test_a_linear_volume_passes_them_on_from_2_6_36(kernel, knows):
    below = rig("raid0", kernel=WHOLE).disks[0]
    stats = DiskStats("dm-0", 253, 0)
    volume = DmLinear(stats, below.calendar, below, 0, MIB, kernel)
    assert bool(volume.max_discard_sectors) == knows


@pytest.mark.parametrize(
    "params, kernel, knows",
    [
        (XenBlkfrontParams, "3.1", False),
        (XenBlkfrontParams, "3.2", True),
        (VirtioBlkParams, "4.20", False),
        (VirtioBlkParams, "5.0", True),
    ],
)
def test_a_front_end_passes_them_on_from_its_release_on(params, kernel, knows):
    value, _source = params.kernel_defaults(kernel).get("discard", (False, ""))
    front = Frontend(params(discard=value), Trimmable())
    assert bool(front.max_discard_sectors) == knows


def test_through_a_front_end_every_sector_reaches_the_drive():
    array = Rig(
        "raid0",
        [Frontend(VirtioBlkParams(discard=True), Trimmable()) for _ in range(2)],
        kernel=WHOLE,
        chunk_bytes=CHUNK,
    )
    array.do(array.bio(DISCARD, 0, 20 * MIB))
    assert discarded(array) == [10 * MIB, 10 * MIB]
