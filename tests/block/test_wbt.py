"""Writeback throttling: the limits, the scale, and reads beside a flood of buffered writes."""

from itertools import pairwise

import pytest

from sim.block.bfq import Bfq, BfqParams
from sim.block.bio import BIO_IDLE, BIO_SYNC, WRITE
from sim.block.noop import NoElevator, NoopParams
from sim.block.wbt import Depth
from sim.sched.core import Sched
from sim.sched.task import TASK_UNINTERRUPTIBLE, sleep_ns
from tests.block.disks import MS, Flood, Reader, Rig, Serial


def throttled(depth=128, service_ns=200_000, elevator=None, wbt=True, **params):
    driver = Serial(service_ns, queue_depth=depth)
    return Rig(driver, elevator or NoElevator(NoopParams()), wbt=wbt, **params)


def admitted(rig, flags):
    """Return how many writes are taken at once."""
    return next(n for n in range(500) if not rig.disk.submit_bio(rig.bio(WRITE, 10 * n, 1, flags)))


def read_ms(flags=0, **how):
    """Return the mean of a read in the second second of a flood of writes."""
    rig = throttled(**how)
    Reader(rig, 1, 0, 10**6, think_ns=2 * MS)
    Flood(rig, 99, 100, flags=flags)
    rig.calendar.run_until(1000 * MS)
    before = rig.stats.reads, rig.stats.read_ns
    rig.calendar.run_until(2000 * MS)
    return (rig.stats.read_ns - before[1]) / (rig.stats.reads - before[0]) / MS


def test_reads_beside_buffered_writes_get_faster():
    assert read_ms(wbt=False) == pytest.approx(20, rel=0.1)  # behind 100 of 0.2 ms
    assert read_ms() < 2.5


def test_the_target_is_kept_to():
    assert read_ms(wbt_lat_ns=1 * MS) < read_ms(wbt_lat_ns=8 * MS) <= 8.5


def test_direct_writes_are_not_throttled():
    assert read_ms(flags=BIO_SYNC | BIO_IDLE) == pytest.approx(20, rel=0.1)


@pytest.mark.parametrize(
    "flags, count", [(0, (16 + 3) // 4), (BIO_SYNC, 16), (BIO_SYNC | BIO_IDLE, 128)]
)
def test_how_many_depends_on_who_waits(flags, count):
    assert admitted(throttled(service_ns=1000 * MS), flags) == count


def in_turn(latecomer_ns):
    """Return who was served when four tasks write pages apart, a fifth begins later; 1 ms each."""
    rig = throttled(service_ns=MS)
    sched = Sched(rig.calendar, nr_cpus=1, kernel=(6, 1))
    served = []

    def main(task):
        if task.pid == last:
            yield from sleep_ns(task, latecomer_ns, TASK_UNINTERRUPTIBLE)
        for number in range(20):
            bio = rig.bio(WRITE, 1000 * task.pid + 2 * number, pid=task.pid)
            yield from rig.disk.submit(task, bio)
            served.append(task.pid)

    pids = [sched.spawn(f"writer{n}", main).pid for n in range(5)]
    last = pids[-1]
    rig.calendar.run_until(1000 * MS)
    rig.disk.check()
    assert len(served) == 100
    return pids, served


def test_who_waits_is_served_in_turn():
    """A place goes to the first who waits (rq_qos_wake_function), not to who runs first."""
    pids, served = in_turn(latecomer_ns=0)
    turns = served[20:80]
    assert [turns.count(pid) for pid in pids] == [12] * 5
    assert turns == turns[:5] * 12


def test_who_comes_while_others_wait_goes_to_the_end():
    """By hand: a place is free each ms, four wait, so a newcomer has its first one after 4 to 5."""
    pids, served = in_turn(latecomer_ns=10 * MS + MS // 2)
    before = served.index(pids[-1])
    assert 4 + 10 + 4 <= before <= 4 + 10 + 5  # wb_background at once, then one each ms


def test_a_dirtier_that_sleeps_makes_the_flusher_hurry():
    rig = throttled(service_ns=1000 * MS)
    rig.disk.dirtier_sleeps(0)
    assert admitted(rig, 0) == 16


def test_with_writes_alone_it_goes_to_three_quarters_of_the_device():
    rig = throttled()
    Flood(rig, 99, 100)
    rig.calendar.run_until(2000 * MS)
    assert rig.disk.wbt.depth.max_depth == 96


def test_with_nothing_to_judge_it_drifts_back_a_step_every_five_windows():
    """RWB_UNKNOWN_BUMP windows of 100 ms without I/O; a step is a halving down to 16."""
    rig = throttled()
    flood = Flood(rig, 99, 100)
    rig.calendar.run_until(2000 * MS)
    flood.fill = lambda _: None  # what is in flight is the last
    depths = []
    for tenth in range(1, 24):
        rig.calendar.run_until((2050 + 100 * tenth) * MS)
        depths.append(rig.disk.wbt.depth.max_depth)
    assert depths[:4] == 4 * [96] and depths[-1] == 16
    steps = [tenth for tenth in range(1, 23) if depths[tenth] != depths[tenth - 1]]
    assert {later - earlier for earlier, later in pairwise(steps)} == {5}


@pytest.mark.parametrize("writes, judged", [(2, False), (3, True)])
def test_reads_are_judged_beside_three_writes_at_least(writes, judged):
    """Reads of 10 ms for a target of 2 ms: too few writes to blame, and nothing is cut."""
    rig = throttled(service_ns=10 * MS)
    for number in range(writes):
        assert rig.disk.submit_bio(rig.bio(WRITE, 100 * number, 1))
    rig.disk.unplug()
    Reader(rig, 1, 0, 3)
    rig.calendar.run_until(99 * MS)
    before = rig.disk.wbt.depth.max_depth
    rig.calendar.run_until(101 * MS)
    assert (rig.disk.wbt.depth.max_depth < before) == judged


def test_when_reads_come_it_snaps_back():
    rig = throttled()
    Flood(rig, 99, 100)
    rig.calendar.run_until(2000 * MS)
    Reader(rig, 1, 0, 10**6)
    rig.calendar.run_until(2150 * MS)
    assert rig.disk.wbt.depth.max_depth <= 16


@pytest.mark.parametrize(
    "depth, scales", [(128, [1, 2, 4, 8, 16, 31, 61, 96]), (1, [1, 2]), (31, [1, 2, 4, 8, 16, 23])]
)
def test_scales_are_halvings_and_doublings_of_16(depth, scales):
    one = Depth(depth)
    while one.scale_down(hard=True):
        pass
    seen = [one.max_depth]
    while one.scale_up():
        seen.append(one.max_depth)
    assert sorted(set(seen)) == scales


def test_it_is_off_beside_bfq_and_where_the_target_is_0():
    assert throttled(elevator=Bfq(BfqParams())).disk.wbt is None
    assert throttled(wbt_lat_ns=0).disk.wbt is None
    assert throttled(wbt=False).disk.wbt is None


@pytest.mark.parametrize("rotational, target_ns", [(True, 75 * MS), (False, 2 * MS)])
def test_the_target_follows_the_medium(rotational, target_ns):
    driver = Serial()
    driver.rotational = rotational
    rig = Rig(driver, NoElevator(NoopParams()), wbt=True)
    assert rig.disk.wbt._min_lat_ns == target_ns
