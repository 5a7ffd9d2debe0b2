"""Request slots: congestion, a full queue, batches, and waiting for a slot."""

from sim.block.bio import WRITE
from sim.block.tags import RequestList
from sim.sched.core import Sched
from tests.block.disks import MS, Rig, ram


def fill(slots, count, pid=1, now_ns=0):
    return sum(slots.get(WRITE, pid, now_ns) for _ in range(count))


def test_congestion_begins_at_113_and_ends_below_103():
    slots = RequestList(128)
    seen = []
    for _ in range(113):
        slots.get(WRITE, 1, 0)
        seen.append(slots.congested[WRITE])
    assert (seen.count(True), seen[112]) == (1, True)
    while slots.congested[WRITE]:
        slots.put(WRITE)
    assert slots.count[WRITE] == 102


def test_reads_have_slots_of_their_own():
    slots = RequestList(128)
    fill(slots, 200)
    assert (slots.get(0, 2, 0), slots.congested) == (True, [False, True])


def test_who_fills_the_queue_may_take_a_batch_beyond_it():
    slots = RequestList(128)
    # The 128th request makes the queue full and its task a batcher of 32, that one included.
    assert fill(slots, 500) == 127 + 32


def test_others_find_the_queue_full():
    slots = RequestList(128)
    fill(slots, 128, pid=1)
    assert not slots.get(WRITE, 2, 0)


def test_a_batch_ends_after_20_ms():
    slots = RequestList(128)
    fill(slots, 130, pid=1)
    assert not slots.get(WRITE, 1, 20 * MS)


def test_all_batchers_together_get_half_as_many_again_at_most():
    slots = RequestList(128)
    fill(slots, 128, pid=1)
    for pid in range(2, 10):
        slots.allow_batch(pid, 0)
        fill(slots, 32, pid)
    assert slots.count[WRITE] == 192


class Writers:
    """Tasks that each write scattered pages, on two CPUs."""

    def __init__(self, count, pages, nr_requests=8):
        self.rig = Rig(ram(MS), nr_requests=nr_requests)
        self.sched = Sched(self.rig.calendar, nr_cpus=2, kernel=(2, 6, 16))
        self.waiting = []
        for writer in range(count):
            self.sched.spawn(f"writer{writer}", self.body(writer, pages))

    def body(self, writer, pages):
        def main(task):
            for number in range(pages):
                bio = self.rig.bio(WRITE, 1000 * writer + 2 * number, pid=task.pid)
                yield from self.rig.disk.submit(task, bio)

        return main


def test_submitters_sleep_in_iowait_until_a_slot_is_free():
    writers = Writers(count=3, pages=40)
    rig, sched = writers.rig, writers.sched
    rig.calendar.run_until(5 * MS)
    assert (sched.nr_iowait, sched.nr_uninterruptible) == (3, 3)
    assert rig.disk.congested(WRITE)
    rig.calendar.run_until(1000 * MS)
    rig.disk.check()
    assert (rig.stats.writes, rig.stats.in_flight, sched.nr_iowait) == (120, 0, 0)


def test_a_run_longer_than_the_queue_gets_through():
    rig = Rig(ram(MS), nr_requests=4, max_segments=1)
    sched = Sched(rig.calendar, nr_cpus=1, kernel=(2, 6, 16))

    def main(task):
        yield from rig.disk.submit(task, rig.bio(WRITE, 0, 100, pid=task.pid))

    sched.spawn("writer", main)
    rig.calendar.run_until(1000 * MS)
    assert (rig.stats.writes, len(rig.ended)) == (100, 1)
