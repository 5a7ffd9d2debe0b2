"""Tags: how many there are, who shares them, and how their waiters get on."""

import pytest

from sim.block.bio import READ, WRITE
from sim.block.noop import NoElevator, Noop, NoopParams
from sim.registry import lookup
from sim.sched.core import Sched
from tests.block.disks import MS, Rig, Serial


def tagged(elevator="none", depth=31, hardware_queues=1, **params):
    """Return a multi-queue disk that serves one request a second."""
    driver = Serial(1000 * MS, queue_depth=depth)
    driver.hardware_queues = hardware_queues
    entry = lookup("elevator", elevator)
    return Rig(driver, entry.cls(entry.params()), **params)


def filled(rig, op=READ, pid=1):
    """Return how many requests the disk takes."""
    return next(n for n in range(2000) if not rig.disk.submit_bio(rig.bio(op, 10 * n, pid=pid)))


@pytest.mark.parametrize(
    "elevator, depth, tags",
    [
        ("none", 31, 31),
        ("none", 1, 1),
        ("none", 1023, 1023),
        ("mq-deadline", 31, 62),
        ("mq-deadline", 1, 2),
        ("mq-deadline", 1023, 256),
        ("kyber", 31, 62),
        ("bfq", 64, 128),
    ],
)
def test_an_elevator_has_twice_the_devices_tags_at_most_256(elevator, depth, tags):
    assert filled(tagged(elevator, depth)) == tags


@pytest.mark.parametrize("elevator, given, tags", [("mq-deadline", 500, 500), ("none", 500, 31)])
def test_nr_requests_makes_more_of_them_but_not_of_the_devices_own(elevator, given, tags):
    assert filled(tagged(elevator, nr_requests=given)) == tags


def test_reads_and_writes_share_them():
    rig = tagged()
    assert filled(rig, WRITE) == 31
    assert not rig.disk.submit_bio(rig.bio(READ, 5000))


def test_there_is_no_congestion():
    rig = tagged()
    filled(rig, WRITE)
    assert not rig.disk.congested(WRITE)


def test_each_hardware_queue_has_its_own():
    rig = tagged(depth=64, hardware_queues=4)
    assert [filled(rig, pid=pid) for pid in (0, 1, 2, 3)] == [16] * 4
    assert not rig.disk.submit_bio(rig.bio(READ, 5000, pid=7))


def test_a_single_queue_has_slots():
    rig = Rig(Serial(1000 * MS, queue_depth=31), Noop(NoopParams()))
    assert filled(rig) == 127 + 32  # who fills the pool of 128 may take a batch


@pytest.mark.parametrize("elevator", ["none", "mq-deadline", "kyber", "bfq"])
@pytest.mark.parametrize("depth", [1, 2, 31])
def test_who_finds_no_tag_sleeps_in_iowait_and_gets_one(elevator, depth):
    entry = lookup("elevator", elevator)
    rig = Rig(Serial(MS // 10, queue_depth=depth), entry.cls(entry.params()))
    sched = Sched(rig.calendar, nr_cpus=2, kernel=(5, 10))

    def main(task):
        for number in range(40):
            bio = rig.bio(WRITE, 1000 * task.pid + 2 * number, pid=task.pid)
            yield from rig.disk.submit(task, bio)

    for writer in range(6):
        sched.spawn(f"writer{writer}", main)
    rig.calendar.run_until(MS)
    assert sched.nr_iowait == sched.nr_uninterruptible > 0
    rig.calendar.run_until(1000 * MS)
    rig.disk.check()
    assert (rig.stats.writes, sched.nr_iowait, rig.disk.requests.allocated()) == (240, 0, 0)


def test_the_elevator_says_whether_a_disk_is_multi_queue():
    assert NoElevator.multiqueue and not Noop.multiqueue
