"""Linear volumes: a row that counts bios above a disk that counts requests."""

import pytest

from sim.block.bio import READ, WRITE
from sim.block.part_stat import DiskStats
from sim.drivers.md.dm_linear import DmLinear
from sim.sched.core import Sched
from tests.block.disks import MS, PAGE, Rig, ram


def volume(rig, offset_pages=100):
    stats = DiskStats("dm-6", 253, 6)
    return DmLinear(stats, rig.calendar, rig.disk, offset_pages * PAGE, 10_000 * PAGE, (2, 6, 16))


def test_bios_are_moved_to_the_disk():
    rig = Rig()
    volume(rig).submit_bio(rig.bio(WRITE, 5))
    assert rig.run().issued() == [(105, 1)]


def test_the_volume_counts_bios_the_disk_requests_and_merges():
    rig = Rig(ram(queue_depth=32))
    dm = volume(rig)
    for number in range(20):
        rig.at(50 * MS * number, dm.submit_bio, rig.bio(WRITE, 300 * number, 49))
    rig.run()
    dm.stats.check(rig.calendar.now)
    assert (dm.stats.writes, dm.stats.write_merges) == (980, 0)
    assert dm.stats.write_sectors / dm.stats.writes == 8
    assert rig.stats.writes + rig.stats.write_merges == dm.stats.writes
    assert rig.stats.write_sectors == dm.stats.write_sectors


def test_time_is_counted_for_each_bio():
    rig = Rig()
    dm = volume(rig)
    dm.submit_bio(rig.bio(READ, 0, 10))
    rig.run()
    # 3 ms behind the plug, 1 ms of service, for each of the ten.
    assert (dm.stats.reads, dm.stats.read_ns, rig.stats.read_ns) == (10, 40 * MS, 4 * MS)
    assert dm.stats.time_in_queue_ns == 40 * MS


def test_parts_end_at_the_volumes_sectors():
    rig = Rig()
    dm = volume(rig)
    parts = []
    bio = rig.bio(WRITE, 0, 200)
    bio.end_part = lambda bio, sector, count: parts.append((sector // PAGE, count))
    dm.submit_bio(bio)
    rig.run()
    assert parts == [(0, 128), (128, 72)]


def test_volumes_stack():
    rig = Rig()
    upper = DmLinear(DiskStats("dm-7", 253, 7), rig.calendar, volume(rig), 80, 800, (2, 6, 16))
    upper.submit_bio(rig.bio(WRITE, 1, 3))
    assert rig.run().issued() == [(111, 3)]
    assert (upper.stats.writes, upper.stats.in_flight) == (3, 0)


def test_under_a_full_queue_a_bio_waits_longer_above_than_below():
    rig = Rig(ram(MS), nr_requests=4, max_segments=1)
    dm = volume(rig)
    sched = Sched(rig.calendar, nr_cpus=1, kernel=(2, 6, 16))

    def main(task):
        yield from dm.submit(task, rig.bio(WRITE, 0, 100, pid=task.pid))

    sched.spawn("writer", main)
    rig.calendar.run_until(1000 * MS)
    dm.stats.check(rig.calendar.now)
    assert (dm.stats.writes, rig.stats.writes, len(rig.ended)) == (100, 100, 1)
    assert dm.stats.write_ns > rig.stats.write_ns
    assert dm.stats.time_in_queue_ns == pytest.approx(dm.stats.write_ns, rel=1e-9)


def test_barriers_are_not_for_volumes_of_2_6_16():
    assert volume(Rig()).supports_barriers is False
