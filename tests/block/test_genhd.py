"""Counters: integrals, Little's law, partitions."""

import random

import pytest

from sim.block.bio import READ, WRITE
from sim.block.genhd import Partition
from sim.block.part_stat import DiskStats
from tests.block.disks import MS, Rig, ram


def test_integrals_count_time_with_and_weighted_by_what_is_in_flight():
    stats = DiskStats("sda", 8, 0)
    stats.start(1, 10)
    stats.start(2, 15)
    stats.done(READ, 1, 8, 20, 30)
    stats.done(WRITE, 2, 16, 50, 40)
    stats.update(100)
    assert (stats.io_ticks_ns, stats.time_in_queue_ns) == (30, 5 + 3 * 15 + 2 * 10)
    stats.check(100)


def test_time_in_queue_is_the_sum_of_completed_times_when_all_is_done():
    rig = Rig(ram(queue_depth=3))
    draw = random.Random(1)
    for _ in range(200):
        rig.at(draw.randrange(500 * MS), rig.read, draw.randrange(10_000))
    rig.run()
    assert rig.stats.time_in_queue_ns == rig.stats.read_ns  # Little's law, exactly


def test_utilisation_is_the_share_of_time_a_single_server_works():
    rig = Rig(ram(2 * MS))
    for number in range(10):
        rig.at(10 * MS * number, rig.read, 100 * number)
        rig.at(10 * MS * number, rig.disk.unplug)
    rig.run()
    assert rig.stats.io_ticks_ns == 20 * MS


def partition(rig, full_row):
    return Partition(DiskStats("sdb1", 8, 17), rig.disk, 1000, 8000, full_row)


def test_a_partition_moves_bios_to_the_disk():
    rig = Rig()
    part = partition(rig, full_row=False)
    bio = rig.bio(WRITE, 5)
    part.submit_bio(bio)
    rig.run()
    assert bio.sector == 1040


def test_partition_rows_count_bios_to_2_6_24_and_requests_from_2_6_25():
    rows = []
    for full_row in (False, True):
        rig = Rig()
        part = partition(rig, full_row)
        part.submit_bio(rig.bio(WRITE, 0, 10))
        rig.run()
        row = part.stats
        rows.append((row.writes, row.write_merges, row.write_sectors, row.in_flight))
    assert rows == [(10, 0, 80, 0), (1, 9, 80, 0)]


def test_a_full_partition_row_agrees_with_the_disk():
    rig = Rig(ram(queue_depth=2))
    part = partition(rig, full_row=True)
    draw = random.Random(2)
    for _ in range(100):
        bio = rig.bio(WRITE, draw.randrange(900))
        rig.at(draw.randrange(100 * MS), part.submit_bio, bio)
    rig.run()
    part.stats.check(rig.calendar.now)
    names = ("writes", "write_merges", "write_sectors", "write_ns", "io_ticks_ns")
    assert [getattr(part.stats, name) for name in names] == [
        getattr(rig.stats, name) for name in names
    ]


def test_a_bio_beyond_the_partition_is_a_mistake():
    rig = Rig()
    with pytest.raises(AssertionError):
        partition(rig, full_row=True).submit_bio(rig.bio(WRITE, 1000))
