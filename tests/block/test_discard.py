"""Discards: they end once, merge up to the device's limit, and have columns of their own."""

import pytest

from sim.block.bio import DISCARD, READ, WRITE
from sim.drivers.hdd import Hdd, HddParams
from sim.drivers.nvme import Nvme, NvmeParams
from sim.drivers.ssd import Ssd, SsdParams
from sim.fs.proc.diskstats import render_diskstats
from sim.registry import lookup, names
from tests.block.disks import MS, Rig, Serial

DRIVES = {
    "ssd": lambda: Ssd(SsdParams(capacity_bytes=8 << 30)),
    "nvme": lambda: Nvme(NvmeParams(capacity_bytes=8 << 30)),
}


def discard(rig, page, pages=1):
    bio = rig.bio(DISCARD, page, pages=pages)
    assert rig.disk.submit_bio(bio)
    return bio


@pytest.mark.parametrize("drive", DRIVES)
@pytest.mark.parametrize("elevator", names("elevator"))
def test_under_every_elevator_each_ends_once_beside_reads_and_writes(drive, elevator):
    entry = lookup("elevator", elevator)
    rig = Rig(DRIVES[drive](), entry.cls(entry.params()))
    for number in range(8):
        discard(rig, 1000 * number, 50)
        rig.read(1000 * number + 500)
        rig.write(1000 * number + 700, flags=1)
    rig.run()
    stats = rig.stats
    assert len(rig.ended) == 24
    assert (stats.reads, stats.writes, stats.discards) == (8, 8, 8)
    assert stats.discard_sectors == 8 * 50 * 8


@pytest.mark.parametrize("drive", DRIVES)
def test_what_is_discarded_the_cleaner_need_not_move(drive):
    rig = Rig(DRIVES[drive]())
    used = rig.disk.driver.flash.ftl._map.used
    discard(rig, 0, 100_000)
    rig.run()
    assert used - rig.disk.driver.flash.ftl._map.used == 100_000


def test_parts_of_pages_stay():
    rig = Rig(DRIVES["ssd"]())
    used = rig.disk.driver.flash.ftl._map.used
    bio = rig.bio(DISCARD, 0)
    bio.sector, bio.nr_sectors, bio.size = 4, 16, 16
    assert rig.disk.submit_bio(bio)
    rig.run()
    assert used - rig.disk.driver.flash.ftl._map.used == 1


def test_a_long_one_is_split_at_the_drives_limit():
    rig = Rig(DRIVES["ssd"]())
    bio = discard(rig, 0, (5 << 30) // 4096)
    rig.run()
    assert rig.stats.discards == 3  # 2 GiB, less some, each
    assert rig.stats.discard_sectors == bio.nr_sectors
    assert len(rig.ended) == 1


def slow(limit):
    """Return a disk that takes one request a ms and discards up to so many sectors."""
    driver = Serial(MS, queue_depth=1)
    driver.max_discard_sectors = limit
    rig = Rig(driver, plug="task")
    rig.read(1_000_000)
    rig.read(1_100_000)  # one with the driver, one chosen
    return rig


def test_neighbours_become_one_up_to_the_limit():
    rig = slow(limit=8 * 8)
    for number in range(20):
        discard(rig, 4 + number)
    rig.run()
    assert [pages for _, pages in rig.issued()[2:]] == [8, 8, 4]
    assert rig.stats.discard_merges == 17


@pytest.mark.parametrize("op", [READ, WRITE])
def test_a_discard_never_becomes_part_of_something_else(op):
    rig = slow(limit=1000)
    assert rig.disk.submit_bio(rig.bio(op, 5))
    discard(rig, 6)
    assert rig.disk.submit_bio(rig.bio(op, 7))
    rig.run()
    assert [pages for _, pages in rig.issued()[2:]] == [1, 1, 1]


@pytest.mark.parametrize("kernel, columns", [((4, 17), 11), ((4, 18), 15), ((5, 5), 17)])
def test_diskstats_has_their_columns_from_4_18(kernel, columns):
    rig = Rig(DRIVES["ssd"]())
    discard(rig, 0, 50)
    rig.run()
    row = render_diskstats(
        [rig.stats], frozenset(), now=rig.calendar.now, hz=250, version=kernel
    ).split()[3:]
    assert len(row) == columns
    if columns > 11:
        assert row[11:14] == ["1", "0", "400"]


def test_a_disk_with_heads_knows_none():
    assert Rig(Hdd(HddParams(capacity_bytes=1 << 30))).disk.max_discard_sectors == 0
