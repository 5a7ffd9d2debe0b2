"""bfq: shares by weight, budgets, idling, raised weights."""

import itertools

import pytest

from sim.block.bfq import (
    BUDGET_EXHAUSTED,
    KEY_ASYNC,
    NO_MORE_REQUESTS,
    TOO_IDLE,
    Bfq,
    BfqParams,
    BfqQueue,
    ServiceTree,
    is_far,
)
from sim.block.bio import BIO_IDLE, BIO_SYNC, READ, Request
from sim.drivers.hdd import Hdd, HddParams
from tests.block.disks import MS, Flood, Reader, Rig, Serial


def rig_of(driver=None, nice=None, elevator=None, **changes):
    """Return a disk under bfq; ``nice`` maps pids to I/O priorities."""
    values = {"low_latency": False} | changes
    rig = Rig(
        driver or Serial(),
        elevator or Bfq(BfqParams(**values)),
        ioprio=lambda pid: (nice or {}).get(pid, 4),
        nr_requests=128,
    )
    return rig


def hdd():
    return Hdd(HddParams(capacity_bytes=64 << 30, queue_depth=1))


def served(rig, pid):
    """Return the sectors a process was served."""
    return sum(bio.nr_sectors for _, bio in rig.ended if bio.task_id == pid)


@pytest.mark.parametrize("ioprios", [(4, 4), (0, 4), (0, 7), (3, 6)])
def test_readers_share_the_sectors_by_weight(ioprios):
    rig = rig_of(nice={1: ioprios[0], 2: ioprios[1]}, max_budget=500)
    for pid in (1, 2):
        Reader(rig, pid, pid * 10_000_000, 10**6, step=1)
    rig.calendar.run_until(3000 * MS)
    expected = (8 - ioprios[0]) / (8 - ioprios[1])
    assert served(rig, 1) / served(rig, 2) == pytest.approx(expected, rel=0.12)


def test_who_reads_larger_pieces_gets_no_more():
    rig = rig_of(max_budget=500)
    Reader(rig, 1, 0, 10**6, step=1)
    Reader(rig, 2, 10_000_000, 10**6, step=16, pages=16)
    rig.calendar.run_until(4000 * MS)
    assert served(rig, 1) / served(rig, 2) == pytest.approx(1, rel=0.1)


def test_a_raised_weight_lasts_as_long_as_the_disk_is_slow():
    """7 s at the reference rate, which is 3/2 of what it begins with."""
    peak = Rig(hdd(), Bfq(BfqParams())).disk.elevator.peak
    assert peak.raise_ns() == pytest.approx(10.5e9)
    peak.rate *= 3
    assert peak.raise_ns() == pytest.approx(3.5e9)


def test_a_raised_weight_ends():
    rig = rig_of(Serial(10 * MS), low_latency=True)
    Reader(rig, 1, 0, 10**6, step=1000)
    rig.calendar.run_until(2000 * MS)
    queue = rig.disk.elevator._queues[1]
    assert queue.wr_coeff == 30
    rig.calendar.run_until(26_000 * MS)
    assert queue.wr_coeff == 1


def latency_beside_a_flood(elevator):
    """Return the mean of a read (ms) every 50 ms beside 60 writes of a disk."""
    rig = rig_of(hdd(), elevator=elevator)
    Flood(rig, 99, 40, flags=0)
    rig.calendar.run_until(3000 * MS)
    before = rig.stats.reads, rig.stats.read_ns
    Reader(rig, 1, 5_000_000, 40, think_ns=50 * MS, step=1000)
    rig.calendar.run_until(6000 * MS)
    return (rig.stats.read_ns - before[1]) / (rig.stats.reads - before[0]) / MS


def test_who_comes_after_a_pause_is_served_at_once():
    raised = latency_beside_a_flood(Bfq(BfqParams()))
    assert raised < latency_beside_a_flood(Bfq(BfqParams(low_latency=False)))
    assert raised < 30


def test_the_disk_waits_for_a_reader_and_not_longer_than_slice_idle():
    rig = rig_of(hdd())
    rig.read(0, pid=1, flags=BIO_SYNC)
    rig.at(MS, rig.read, 10_000_000, pid=2)
    rig.run()
    first_ended = next(when for when, bio in rig.ended if bio.task_id == 1)
    assert rig.issue_times()[1][0] == first_ended + 8 * MS


def test_without_slice_idle_it_does_not_wait():
    rig = rig_of(hdd(), slice_idle_ns=0)
    rig.read(0, pid=1)
    rig.at(MS, rig.read, 10_000_000, pid=2)
    rig.run()
    first_ended = next(when for when, bio in rig.ended if bio.task_id == 1)
    assert rig.issue_times()[1][0] == first_ended


def test_nobody_starves():
    rig = rig_of(hdd())
    for pid in range(1, 6):
        Reader(rig, pid, pid * 2_000_000, 10**6, think_ns=MS, step=1)
    flood = Flood(rig, 99, 30)
    rig.calendar.run_until(20_000 * MS)
    assert all(served(rig, pid) > 0.1 * served(rig, 1) for pid in range(1, 6))
    late = [when for when in flood.ended_ns if when > 10_000 * MS]
    gaps = [after - before for before, after in itertools.pairwise(late)]
    # Five turns of 125 ms, each with its last request and the idling after it, then its own.
    assert max(gaps) < 1200 * MS


def test_direct_writes_have_queues_of_their_own():
    rig = rig_of()
    rig.write(0, pid=7, flags=BIO_SYNC | BIO_IDLE)
    rig.write(100, pid=8)
    assert set(rig.disk.elevator._queues) == {7, KEY_ASYNC}
    rig.run()


# -- Budgets and the tree.


def queue(weight=40, budget=100):
    made = BfqQueue(1, 4, budget, 0)
    made.weight = weight
    return made


@pytest.mark.parametrize(
    "reason, expected",
    [(BUDGET_EXHAUSTED, 3200), (TOO_IDLE, 800 - 4 * 100), (NO_MORE_REQUESTS, 333)],
)
def test_budgets_follow_their_use(reason, expected):
    one = queue(budget=800)
    one.service = 333
    one.adapt_budget(reason, 3200)
    assert one.max_budget == expected


def test_the_tree_serves_who_finishes_first_of_those_that_have_started():
    tree = ServiceTree()
    light, heavy = queue(10), queue(80)
    order = []
    for one in (light, heavy):
        one.busy = True
        tree.activate(one)
    for _ in range(18):
        chosen = tree.choose()
        order.append(chosen.weight)
        tree.charge(chosen, 100)
        tree.requeue(chosen)
    assert (order.count(80), order.count(10)) == (16, 2)


def test_a_queue_that_was_away_gets_no_credit():
    tree = ServiceTree()
    stays, comes = queue(), queue()
    stays.busy = True
    tree.activate(stays)
    for _ in range(10):
        tree.charge(tree.choose(), 100)
        tree.requeue(stays)
    comes.busy = True
    tree.activate(comes)
    assert comes.start == tree.vtime


@pytest.mark.parametrize(
    ("sectors", "rotational", "far"), [(56, False, True), (64, False, False), (64, True, True)]
)
def test_a_large_request_far_away_is_no_seek_for_a_flash_drive(sectors, rotational, far):
    """BFQQ_SEEK_THR: more than 800 sectors; BFQQ_SECT_THR_NONROT: 64 sectors are large."""
    assert is_far(0, Request(READ, 801, sectors, 0), rotational) is far
    assert not is_far(0, Request(READ, 800, sectors, 0), rotational)
