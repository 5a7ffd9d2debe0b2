"""Resync and recovery: what they read and write, how fast, and what others feel of it."""

import pytest

from sim.block.bio import READ, WRITE
from sim.drivers.hdd import Hdd, HddParams
from sim.drivers.md.md import IDLE_SECTORS
from sim.sched.task import TASK_UNINTERRUPTIBLE
from tests.drivers.md.arrays import MIB, MS, Rig, S, ram

KIB = 2  # sectors
OLD, LATER, NEW = (2, 6, 16), (2, 6, 32), (4, 4)


def fast(mib=16):
    return ram(mib, latency_ns=MS // 5)


def recovering(level, kernel=NEW, count=3, make=fast, **more):
    return Rig(
        level,
        [make() for _ in range(count)],
        kernel,
        sync_action="recover",
        rebuilding=1,
        **more,
    )


def finish(rig, seconds=600):
    rig.run(seconds)
    assert rig.array.sync.done
    return rig


@pytest.mark.parametrize(
    ("level", "reads"), [("raid1", 1), ("raid5", 2), ("raid10", 1)], ids=lambda v: str(v)
)
def test_recovery_fills_the_member_from_what_is_good(level, reads):
    rig = finish(recovering(level))
    end = rig.array.sync.end
    written = [disk.stats.write_sectors for disk in rig.disks]
    assert written[0] == written[2] == 0
    assert end - 128 <= written[1] <= end
    assert rig.sectors(READ) == reads * written[1]
    assert all(member.in_sync for member in rig.array.members)


def test_resync_of_mirrors_copies_the_first_and_of_raid5_compares():
    copied = finish(Rig("raid1", [fast() for _ in range(2)], NEW, sync_action="resync"))
    assert [disk.stats.write_sectors for disk in copied.disks] == [0, copied.array.sync.end]
    compared = finish(Rig("raid5", [fast() for _ in range(3)], NEW, sync_action="resync"))
    assert compared.sectors(WRITE) == 0
    assert compared.sectors(READ) == 3 * compared.array.sync.end


def test_a_member_that_is_filled_is_written_and_not_read():
    rig = recovering("raid1", count=2)
    bios = [rig.bio(READ, 8 * n, 8) for n in range(20)] + [rig.bio(WRITE, 9000, 8)]
    before = rig.disks[1].stats.reads
    rig.spawn(bios)
    rig.calendar.run_until(50 * MS)
    assert rig.disks[1].stats.reads == before
    finish(rig)
    assert rig.disks[1].stats.write_sectors == rig.array.sync.end + 8


@pytest.mark.parametrize("kernel", [OLD, LATER, NEW])
def test_alone_it_is_as_fast_as_speed_limit_max_allows(kernel):
    rig = recovering("raid1", kernel, 2, lambda: fast(64), speed_limit_max_bytes_per_s=4096 * 1024)
    rig.calendar.run_until(10 * S)
    assert rig.array.sync.position / KIB / 10 == pytest.approx(4096, rel=0.25)


def test_alone_and_unlimited_it_takes_what_the_disks_give():
    """One 64 KiB request at a time on each, 0.2 ms: up to 312 MiB/s; md allows 195 MiB/s."""
    rig = recovering("raid1", NEW, 2, lambda: fast(64))
    rig.calendar.run_until(S)
    assert rig.array.sync.position / MIB > 60


def busy(kernel, seconds=40, **more):
    """Return the speed (KiB/s) of a recovery beside a random reader, and the reader's reads.

    The first minute does not count: what is under way at first hides what others do.
    """

    def make():
        return Hdd(HddParams(capacity_bytes=8 << 30, queue_depth=1))

    rig = recovering("raid1", kernel, 2, make, **more)
    done = [0]

    def main(task):
        while True:
            bio = rig.bio(READ, 8 * ((done[0] * 7919 + 13) % 200_000), 8)
            bio.task_id = task.pid
            bio.end_io = lambda _bio: task.sched.wake_up(task)
            yield from rig.array.submit(task, bio)
            rig.array.unplug()
            while bio.pending:
                task.state = TASK_UNINTERRUPTIBLE
                yield
            done[0] += 1

    rig.sched.spawn("reader", main)
    rig.calendar.run_until(60 * S)
    begin, reads = rig.array.sync.position, done[0]
    rig.calendar.run_until((60 + seconds) * S)
    return (rig.array.sync.position - begin) / KIB / seconds, done[0] - reads


@pytest.mark.parametrize("kernel", [OLD, LATER])
def test_beside_others_it_gets_about_speed_limit_min(kernel):
    """md takes the speed since a mark of some 30 s ago, in whole KiB and seconds: 5 per cent."""
    speed, reads = busy(kernel)
    assert speed == pytest.approx(1000, rel=0.05)
    faster, fewer_reads = busy(kernel, speed_limit_min_bytes_per_s=8192 * 1024)
    assert faster == pytest.approx(8192, rel=0.05)
    assert 0 < fewer_reads < reads


def test_others_are_slower_beside_it_the_more_it_may_take():
    low = busy(LATER)[1]
    high = busy(LATER, speed_limit_min_bytes_per_s=50_000 * 1024)[1]
    assert high < 0.7 * low


def test_from_4_1_it_waits_for_itself_instead_of_half_a_second():
    assert busy(NEW)[0] > 2 * busy(LATER)[0]


def test_its_thread_is_in_d_while_it_pauses():
    """msleep() is uninterruptible: a throttled resync is one in the load average."""
    rig = recovering("raid1", LATER, 2, speed_limit_max_bytes_per_s=1024 * 1024)
    states = set()
    for _ in range(100):
        rig.calendar.run_until(rig.calendar.now + 20 * MS)
        states.add(rig.sched.nr_uninterruptible)
    assert states == {1}


def test_its_own_requests_do_not_count_as_others():
    rig = recovering("raid1", LATER, 2, lambda: fast(64), speed_limit_max_bytes_per_s=1e9)
    rig.calendar.run_until(S)
    assert rig.array.sync.position > 100 * IDLE_SECTORS
