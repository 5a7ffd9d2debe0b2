"""Tags: how many there are, who shares them, and how their waiters get on."""

import pytest

from sim.block.bio import BIO_IDLE, BIO_SYNC, READ, WRITE
from sim.block.mq_deadline import MqDeadline, MqDeadlineParams
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


def of_release(kernel, depth=31):
    """Return a disk under mq-deadline as a release has it."""
    defaults = MqDeadlineParams.kernel_defaults(kernel)
    params = MqDeadlineParams(**{name: value for name, (value, _) in defaults.items()})
    return Rig(Serial(MS, queue_depth=depth), MqDeadline(params))


@pytest.mark.parametrize(
    "kernel, writes",
    [
        ("4.11", 62),
        ("5.14", 62),  # shallow_depth 46 of words of 8 tags (39823b47bbd4 says so)
        ("6.1", 62),
        ("6.1.60", 46),  # d47f9717e5cf: 3/4 of each word
        ("6.6", 46),
        ("6.8", 46),
        ("6.9", 62),  # 256aab46e316
        ("6.18", 62),
    ],
)
@pytest.mark.parametrize("flags", [0, BIO_SYNC, BIO_SYNC | BIO_IDLE])
def test_mq_deadline_keeps_tags_for_reads_from_6_6_to_6_8(kernel, writes, flags):
    rig = of_release(kernel)
    taken = [rig.disk.submit_bio(rig.bio(WRITE, 10 * n, flags=flags)) for n in range(70)]
    assert sum(taken) == writes
    assert sum(rig.disk.submit_bio(rig.bio(READ, 5000 + 10 * n)) for n in range(70)) == 62 - writes


@pytest.mark.parametrize("kernel, batch", [("6.10", 7), ("6.11", 1), ("6.18", 1), ("7.0", 7)])
def test_mq_deadline_wakes_waiters_one_by_one_from_6_11_on(kernel, batch):
    """62 tags: a batch is of 62 / 8 waiters, with min_shallow_depth 1 of one (sbitmap)."""
    rig = of_release(kernel)
    sched = Sched(rig.calendar, nr_cpus=1, kernel=(6, 18))
    filled(rig)

    def main(task):
        yield from rig.disk.submit(task, rig.bio(READ, 90_000 + 10 * task.pid, pid=task.pid))

    for number in range(20):
        sched.spawn(f"reader{number}", main)
    woken = []
    rig.calendar.run_until(MS // 2)
    for step in range(1, 16):
        rig.calendar.run_until(step * MS + MS // 2)
        woken.append(20 - sched.nr_iowait)
    assert woken == [step // batch * batch for step in range(1, 16)]


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
