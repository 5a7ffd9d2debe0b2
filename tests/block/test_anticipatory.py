"""anticipatory: for whom the disk stands still, for how long, and who gets on all the same."""

from itertools import groupby

import pytest

from sim.block.anticipatory import Anticipatory, AsParams
from sim.block.bio import READ, WRITE
from sim.block.deadline import Deadline, DeadlineParams
from sim.drivers.hdd import Hdd, HddParams
from tests.block.disks import MS, Flood, Reader, Rig


def as_rig(driver=None, **changes):
    return Rig(driver, Anticipatory(AsParams(**changes)), plug="task")  # no plug of the queue


def hdd():
    return Hdd(HddParams(capacity_bytes=64 << 30))


def turns(rig):
    """Return who was served, one entry for each turn: (pid, requests)."""
    pids = [bio.task_id for _, bio in sorted(rig.ended, key=lambda end: end[0])]
    return [(pid, len(list(group))) for pid, group in groupby(pids)]


def throughput(elevator):
    """Return the reads of four readers of neighbouring pages in a second of a disk."""
    rig = Rig(hdd(), elevator)
    for pid in range(4):
        Reader(rig, pid, pid * 3_000_000, 100_000, think_ns=MS // 5, step=1)
    rig.calendar.run_until(2000 * MS)
    return len(rig.ended)


def test_four_sequential_readers_get_more_where_the_disk_waits_for_them():
    assert throughput(Anticipatory(AsParams())) > 4 * throughput(Deadline(DeadlineParams()))


def test_without_waiting_readers_alternate():
    rig = as_rig(antic_expire_ns=0)
    for pid in (1, 2):
        Reader(rig, pid, pid * 1_000_000, 50, think_ns=MS // 2)
    rig.run()
    assert max(length for _, length in turns(rig)[:40]) <= 2


def test_the_disk_waits_for_a_reader_that_comes_back():
    rig = as_rig()
    for pid in (1, 2):
        Reader(rig, pid, pid * 1_000_000, 200, think_ns=MS // 2)
    rig.run()
    # 1.5 ms a cycle; an expired request of the other ends the turn after 125 ms.
    assert turns(rig)[0][1] > 50


def test_it_does_not_wait_for_a_process_that_thinks_long():
    """20 ms between two reads: learned, after which the other one is not held up by 6.67 ms."""
    rig = as_rig()
    Reader(rig, 1, 0, 100, think_ns=20 * MS)
    Reader(rig, 2, 1_000_000, 1000)
    rig.calendar.run_until(1000 * MS)
    late = [when for when, bio in rig.ended if bio.task_id == 2 and when > 500 * MS]
    assert len(late) > 450  # of 500 at 1 ms each, less those of the first


def test_waiting_ends_after_antic_expire():
    rig = as_rig(antic_expire_ns=5 * MS)
    rig.read(0, pid=1)
    rig.at(MS // 2, rig.read, 1_000_000, pid=2)
    rig.run()
    # The read of 1 ends at 1 ms; nothing comes from it until 6 ms.
    assert [when for when, _, _ in rig.issue_times()][1] == 6 * MS


def test_something_near_ends_the_waiting():
    rig = as_rig(antic_expire_ns=5 * MS)
    rig.read(0, pid=1)
    rig.at(MS // 2, rig.read, 100, pid=2)  # 800 sectors on: within 8192
    rig.run()
    assert [when for when, _, _ in rig.issue_times()][1] == MS


def test_a_process_that_is_gone_is_not_waited_for_again_and_again():
    rig = as_rig()
    for pid in range(1, 40):
        rig.at(10 * pid * MS, rig.read, pid * 100_000, pid=pid)
        rig.at(10 * pid * MS + MS // 2, rig.read, 9_500_000 + pid * 50_000, pid=100)
        rig.at(10 * pid * MS + MS // 2, rig.disk.elevator.exit_io_context, pid)
    rig.at(500 * MS, rig.read, 0, pid=50)
    rig.at(500 * MS + MS // 2, rig.read, 9_000_000, pid=51)
    rig.at(500 * MS + MS // 2, rig.disk.elevator.exit_io_context, 50)
    rig.run()
    issued = [when for when, page, _ in rig.issue_times() if page == 9_000_000]
    assert issued == [501 * MS]


@pytest.mark.parametrize("readers", [1, 4])
def test_neither_reads_nor_writes_starve(readers):
    rig = as_rig()
    for pid in range(readers):
        Reader(rig, pid + 1, pid * 1_000_000, 100_000, think_ns=MS // 10)
    flood = Flood(rig, 99, 40)
    rig.calendar.run_until(4000 * MS)
    reads = sum(bio.op == READ for _, bio in rig.ended)
    assert reads > 1000
    gaps = [
        after - before for before, after in zip(flood.ended_ns, flood.ended_ns[1:], strict=False)
    ]
    # A batch of reads lasts 500 ms; an expired write (250 ms) is not looked at within it.
    assert max(gaps) < 700 * MS


def test_a_batch_of_writes_adapts_to_the_time_it_takes():
    rig = as_rig()
    Reader(rig, 1, 0, 100_000)
    Flood(rig, 99, 100)
    rig.calendar.run_until(5000 * MS)
    batches = [
        len(list(group))
        for kind, group in groupby(rig.tracer.records(), key=lambda r: r.args[1])
        if kind == WRITE
    ]
    # 1 ms each: twice as many as long as they take less than a third of 125 ms, then one more.
    assert batches[:6] == [12, 24, 48, 49, 50, 51]
