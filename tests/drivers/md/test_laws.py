"""What an array makes of its disks: multiples that hold whatever the disk is."""

import random

import pytest

from sim.block.bio import READ, WRITE
from sim.drivers.hdd import Hdd, HddParams
from sim.sched.task import TASK_UNINTERRUPTIBLE
from tests.drivers.md.arrays import MIB, Rig, S, ram, sequential

KERNEL = (3, 2)
LENGTH = 64 * MIB


def hdd(write_cache=False):
    return Hdd(HddParams(capacity_bytes=8 << 30, write_cache=write_cache))


def drives(count, make=hdd):
    return [make() for _ in range(count)]


def rate(level, count, op, length=LENGTH, **more):
    """Return sectors a second of a large sequential transfer."""
    rig = Rig(level, drives(count), KERNEL, trace=False, **more)
    return length * S / rig.time_ns(*sequential(rig, op, 0, length))


def random_rate(level, make, count, op, tasks=16, size=8, **more):
    """Return requests a second of tasks that each wait for their own."""
    rig = Rig(level, [make() for _ in range(count)], KERNEL, trace=False, **more)
    draw = random.Random(1)
    sectors = rig.array.capacity_sectors // 8 - size // 8
    done = [0]

    def main(task):
        while True:
            bio = rig.bio(op, 8 * draw.randrange(sectors), size)
            bio.task_id = task.pid
            bio.end_io = lambda _bio: task.sched.wake_up(task)
            yield from rig.array.submit(task, bio)
            rig.array.unplug()
            while bio.pending:
                task.state = TASK_UNINTERRUPTIBLE
                yield
            done[0] += 1

    for number in range(tasks):
        rig.sched.spawn(f"reader{number}", main)
    rig.calendar.run_until(8 * S)
    return done[0] / 8, rig


@pytest.fixture(scope="module")
def one():
    """Return the rates of a single disk: a striped volume of one."""
    return {op: rate("striped", 1, op) for op in (READ, WRITE)}


@pytest.mark.parametrize("op", [READ, WRITE], ids=["read", "write"])
@pytest.mark.parametrize("level", ["raid0", "striped"])
def test_striping_multiplies_large_sequential_transfers(one, level, op):
    for count in (2, 4):
        assert rate(level, count, op, LENGTH * count) / one[op] == pytest.approx(count, rel=0.1)


def test_a_mirror_writes_like_one_disk_and_a_lone_reader_reads_like_one(one):
    assert rate("raid1", 2, WRITE) / one[WRITE] == pytest.approx(1, rel=0.05)
    assert rate("raid1", 2, READ) / one[READ] == pytest.approx(1, rel=0.05)


def test_raid5_writes_full_stripes_at_the_rate_of_its_data_disks(one):
    found = rate("raid5", 4, WRITE, 3 * LENGTH, stripe_cache_size=8192)
    assert found / one[WRITE] == pytest.approx(3, rel=0.15)


def test_raid10_writes_like_half_its_disks(one):
    assert rate("raid10", 4, WRITE, 2 * LENGTH) / one[WRITE] == pytest.approx(2, rel=0.1)


def test_far_copies_are_read_like_raid0(one):
    near, far = (rate("raid10", 2, READ, 2 * LENGTH, layout=layout) for layout in ("near", "far"))
    assert far / one[READ] == pytest.approx(2, rel=0.15)
    assert near < 0.9 * far


def test_two_random_readers_use_both_mirrors():
    single, _ = random_rate("striped", hdd, 1, READ, tasks=1)
    mirrored, _ = random_rate("raid1", hdd, 2, READ, tasks=2)
    assert 1.8 < mirrored / single < 2.2


def test_random_writes_of_raid5_cost_four_requests_and_of_raid10_two():
    """On disks that serve 1,000 requests a second each, six of them."""
    four, rig5 = random_rate("raid5", ram, 6, WRITE, tasks=32)
    two, _rig10 = random_rate("raid10", ram, 6, WRITE, tasks=32)
    reads, writes = rig5.counts()
    written = rig5.stats.writes
    assert writes / written == pytest.approx(2, rel=0.05)
    assert reads / written == pytest.approx(2, rel=0.25)  # some stripes are in memory
    assert two / four == pytest.approx(2, rel=0.3)


def test_small_random_writes_of_raid5_on_three_disks_read_once():
    _, rig = random_rate("raid5", lambda: ram(mib=1024), 3, WRITE, tasks=4)
    reads, writes = rig.counts()
    assert (reads / rig.stats.writes, writes / rig.stats.writes) == pytest.approx((1, 2), rel=0.05)


def test_reading_a_lost_member_loads_all_others():
    """Of four disks each read of the lost quarter is three: 1.5 requests a read, not 1."""
    _, rig = random_rate("raid5", lambda: ram(mib=1024), 3, READ, tasks=8, missing={1})
    assert rig.counts()[0] / rig.stats.reads == pytest.approx(1.5, rel=0.05)


@pytest.mark.parametrize(
    ("level", "count", "kib"),
    [("raid0", 2, 2048), ("raid5", 3, 2048), ("raid10", 4, 2048), ("raid1", 2, 128)],
)
def test_read_ahead_covers_two_stripes(level, count, kib):
    """Data in a chunk of 512 KiB of each member, twice; a mirror has no stripes."""
    chunks = {} if level == "raid1" else {"chunk_bytes": 512 << 10}
    rig = Rig(level, [ram() for _ in range(count)], KERNEL, **chunks)
    assert rig.array.read_ahead_bytes() == kib << 10
