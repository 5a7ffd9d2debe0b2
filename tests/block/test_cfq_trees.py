"""CFQ from 2.6.33 on: trees of queues for each kind of load."""

import random

import pytest

from sim.block.cfq import Cfq, CfqParams, CfqTrees
from sim.drivers.hdd import Hdd, HddParams
from tests.block.disks import MS, Reader, Rig, ram
from tests.block.test_cfq import turns


def disk(queue_depth=1):
    """Return a device with heads that takes 1 ms for everything."""
    device = ram(queue_depth=queue_depth)
    device.rotational = True
    return device


def trees_rig(driver=None, kernel="3.2", **changes):
    """Return a disk under the CFQ of a release."""
    values = {name: value for name, (value, _) in CfqParams.kernel_defaults(kernel).items()}
    return Rig(
        driver or disk(), Cfq.make(CfqParams(**(values | changes))), plug="task", pools="sync"
    )


class RandomReader:
    """Reads single pages at random, one after the other."""

    def __init__(self, rig, pid, seed, first, pages):
        self.rig, self.pid, self.draw = rig, pid, random.Random(seed)
        self.first, self.pages, self.done = first, pages, 0
        self.go()

    def go(self):
        page = self.first + self.draw.randrange(self.pages)
        bio = self.rig.bio(0, page, pid=self.pid)
        bio.end_io = self.end
        assert self.rig.disk.submit_bio(bio)

    def end(self, bio):
        self.done += 1
        self.rig.calendar.post(10_000, lambda _: self.go(), None)


def test_the_release_decides_on_the_form():
    assert isinstance(trees_rig(kernel="2.6.33").disk.elevator, CfqTrees)
    assert isinstance(trees_rig(kernel="2.6.32").disk.elevator, Cfq)


def test_processes_take_turns_of_a_slice():
    rig = trees_rig()
    Reader(rig, 1, 0, 300)
    Reader(rig, 2, 1_000_000, 300)
    rig.run()
    lengths = [length for _, length in turns(rig)[:4]]
    assert all(98 <= length <= 104 for length in lengths)


def test_slices_shrink_so_that_all_have_a_turn_in_target_latency():
    """Ten readers: 300 ms / 10 = 30 ms a turn, where each had 100 (low_latency)."""
    rig = trees_rig()
    for pid in range(1, 11):
        Reader(rig, pid, 1_000_000 * pid, 400)
    rig.calendar.run_until(3000 * MS)
    lengths = [length for _, length in turns(rig)[20:60]]
    assert sorted(lengths)[len(lengths) // 2] == pytest.approx(30, abs=8)
    slow = trees_rig(low_latency=False)
    for pid in range(1, 11):
        Reader(slow, pid, 1_000_000 * pid, 400)
    slow.calendar.run_until(3000 * MS)
    assert max(length for _, length in turns(slow)[5:20]) >= 98


@pytest.mark.parametrize("kernel, served_together", [("2.6.32", False), ("3.2", True)])
def test_readers_that_seek_share_one_wait(kernel, served_together):
    """Sync-noidle: a disk that queues serves eight of them as one load, beside a stream."""
    rig = trees_rig(Hdd(HddParams()), kernel=kernel)
    seekers = [RandomReader(rig, pid, pid, 0, 20_000_000) for pid in range(10, 18)]
    rig.calendar.run_until(3000 * MS)
    assert min(one.done for one in seekers) > 0.5 * max(one.done for one in seekers)
    assert (max(rig.disk.in_driver, 1) > 2) is served_together


def test_a_sync_request_preempts_writes_that_nobody_waits_for():
    rig = trees_rig()
    for page in range(0, 4000, 40):
        rig.write(page, pid=1)
    rig.at(20 * MS, Reader, rig, 2, 1_000_000, 5)
    rig.run()
    reads = [when for when, bio in rig.ended if bio.task_id == 2]
    assert reads[0] <= 24 * MS


def test_without_heads_and_with_a_queue_it_does_not_idle():
    """blk_queue_nonrot and hw_tag: cfq_arm_slice_timer (f7d7b7a7a3db of 2.6.28)."""
    rig = trees_rig(ram(queue_depth=32))
    Reader(rig, 1, 0, 20, think_ns=5 * MS)
    rig.at(2 * MS, Reader, rig, 2, 1_000_000, 1)
    rig.run()
    [(when, _)] = [end for end in rig.ended if end[1].task_id == 2]
    assert when <= 4 * MS


def test_close_cooperators_share_a_queue():
    """Two processes that read one stream by turns: neither waits while the other is there."""
    rig = trees_rig()
    Reader(rig, 1, 0, 200, step=2, think_ns=MS // 10)
    Reader(rig, 2, 1, 200, step=2, think_ns=MS // 10)
    rig.run()
    assert rig.calendar.now < 1.2 * 400 * MS
    elevator = rig.disk.elevator
    assert elevator._of_pid[1] is elevator._of_pid[2]
