"""CFQ: whose turn it is, and how long the disk waits for a process."""

from itertools import groupby

import pytest

from sim.block.bio import BIO_NOIDLE, BIO_PROCESS_SYNC, BIO_SYNC
from sim.block.cfq import Cfq, CfqParams
from tests.block.disks import MS, Reader, Rig, ram


def cfq_rig(driver=None, **changes):
    """Return a disk under the CFQ of 2.6.18, changed as told."""
    values = {"early": False, "slice_idle_ns": 8 * MS} | changes
    return Rig(driver or ram(), Cfq(CfqParams(**values)))


def turns(rig):
    """Return who was served, one entry for each turn: (pid, requests)."""
    pids = [bio.task_id for _, bio in sorted(rig.ended, key=lambda end: end[0])]
    return [(pid, len(list(group))) for pid, group in groupby(pids)]


def test_processes_take_turns_of_a_slice():
    rig = cfq_rig()
    Reader(rig, 1, 0, 300)
    Reader(rig, 2, 100_000, 300)
    rig.run()
    # 100 ms at 1 ms a request; the slice ends with the first completion after it.
    lengths = [length for _, length in turns(rig)[:4]]
    assert all(100 <= length <= 102 for length in lengths)


def test_two_processes_get_equal_shares_whatever_they_ask_for():
    rig = cfq_rig()
    Reader(rig, 1, 0, 3000)
    Reader(rig, 2, 100_000, 3000, think_ns=MS)
    rig.calendar.run_until(2000 * MS)
    # The second one's turns last as long, half of it spent waiting for it.
    served = [sum(bio.task_id == pid for _, bio in rig.ended) for pid in (1, 2)]
    assert served[0] / served[1] == pytest.approx(2, rel=0.05)


def test_the_disk_waits_for_a_process_that_thinks_briefly():
    rig = cfq_rig()
    Reader(rig, 1, 0, 20, think_ns=5 * MS)
    rig.at(2 * MS, Reader, rig, 2, 100_000, 1)
    rig.run()
    # Every 6 ms from 0 to 96 ms, and one more: what it waits for when the slice ends, it gets.
    assert turns(rig)[0] == (1, 18)


@pytest.mark.parametrize("restarts, until_ms", [(True, 2 + 8), (False, 1 + 8)])
def test_the_disk_waits_no_longer_than_slice_idle(restarts, until_ms):
    rig = cfq_rig(restarts_idling=restarts)
    Reader(rig, 1, 0, 2, think_ns=50 * MS)
    rig.at(2 * MS, Reader, rig, 2, 100_000, 1)
    rig.run()
    # The wait begins when the first request ends, to 2.6.21 again when the other one comes.
    assert rig.issue_times()[1][:2] == (until_ms * MS, 100_000)


def test_without_slice_idle_it_does_not_wait():
    rig = cfq_rig(slice_idle_ns=0)
    Reader(rig, 1, 0, 2, think_ns=50 * MS)
    rig.at(2 * MS, Reader, rig, 2, 100_000, 1)
    rig.run()
    assert rig.issue_times()[1][:2] == (2 * MS, 100_000)


def test_the_wait_ends_when_its_process_does():
    rig = cfq_rig()
    Reader(rig, 1, 0, 1)
    rig.at(2 * MS, Reader, rig, 2, 100_000, 1)
    rig.at(4 * MS, rig.disk.elevator.exit_io_context, 1)
    rig.run()
    assert rig.issue_times()[1][:2] == (4 * MS, 100_000)


def test_a_process_that_is_gone_leaves_no_queue_behind():
    rig = cfq_rig()
    rig.write(0, flags=BIO_SYNC, pid=1)
    rig.write(100_000, flags=BIO_SYNC, pid=2)
    for pid in (1, 2):  # One of them has requests left at its exit.
        rig.disk.elevator.exit_io_context(pid)
    rig.run()
    assert rig.disk.elevator._queues == {}


def test_it_does_not_wait_after_a_request_marked_noidle():
    rig = cfq_rig(restarts_idling=False)
    rig.write(0, flags=BIO_SYNC | BIO_NOIDLE, pid=1)
    rig.at(2 * MS, Reader, rig, 2, 100_000, 1)
    rig.run()
    assert rig.issue_times()[1][:2] == (2 * MS, 100_000)


def test_it_learns_not_to_wait_for_a_slow_thinker():
    rig = cfq_rig()
    Reader(rig, 1, 0, 12, think_ns=20 * MS)
    rig.calendar.run_until(230 * MS)
    started = rig.calendar.now
    Reader(rig, 1, 500, 1)
    rig.at(started + 2 * MS, Reader, rig, 2, 100_000, 1)
    rig.run()
    times = {page: time for time, page, _ in rig.issue_times()}
    assert times[100_000] == started + 2 * MS


def test_writeback_waits_for_readers():
    """Each turn of its own is over after 2 * (2 + 2 * 3) = 16 requests (cfq_prio_to_maxrq)."""
    rig = cfq_rig()
    Reader(rig, 1, 0, 400)
    for number in range(100):
        rig.at(10 * MS, rig.write, 200_000 + 2 * number, pid=99)
    rig.calendar.run_until(300 * MS)
    served = turns(rig)
    assert [length for pid, length in served if pid == 99] == [16, 16]
    # The reader has 100 ms at 1 ms a request; then the disk has waited 8 ms for it in vain.
    assert all(92 <= length <= 102 for pid, length in served[:-1] if pid == 1)


def test_synchronous_writes_have_the_queue_of_their_process():
    rig = cfq_rig()
    rig.write(0, flags=BIO_PROCESS_SYNC, pid=5)
    rig.write(100, flags=BIO_PROCESS_SYNC, pid=6)
    rig.write(200, pid=7)
    assert sorted(rig.disk.elevator._queues) == [0, 5, 6]


def test_bios_of_two_processes_merge_only_before_2_6_20():
    merged = []
    for across in (True, False):
        rig = cfq_rig(merge_across=across)
        rig.write(0, flags=BIO_PROCESS_SYNC, pid=5)
        rig.write(1, flags=BIO_PROCESS_SYNC, pid=6)
        rig.run()
        merged.append(rig.stats.write_merges)
    assert merged == [1, 0]


def test_a_quantum_of_requests_goes_together():
    rig = cfq_rig(ram(queue_depth=32))
    rig.write(0, flags=BIO_PROCESS_SYNC, pid=5)
    for number in range(1, 10):
        rig.write(10 * number, flags=BIO_PROCESS_SYNC, pid=5)
    rig.disk.unplug()
    assert len(rig.issued()) >= 4
    rig.run()


def test_drain_gives_up_everything():
    rig = cfq_rig()
    for number in range(3):
        rig.write(10 * number, flags=BIO_PROCESS_SYNC, pid=number)
    waiting = rig.disk.elevator.drain(0)
    assert sorted(request.sector // 8 for request in waiting) == [0, 10, 20]


def test_versions_set_the_defaults():
    assert CfqParams.kernel_defaults("2.6.16") == {}
    assert set(CfqParams.kernel_defaults("2.6.18")) == {"early", "slice_idle_ns"}
    changed = {name: value for name, (value, _) in CfqParams.kernel_defaults("2.6.34").items()}
    assert changed == {
        "early": False,
        "slice_idle_ns": 8 * MS,
        "merge_across": False,
        "sync_preempts": True,
        "restarts_idling": False,
        "service_trees": True,
        "quantum": 8,
    }


# -- The form of 2.6.16.


def test_to_2_6_16_it_waits_ten_milliseconds():
    rig = cfq_rig(early=True, slice_idle_ns=10 * MS)
    Reader(rig, 1, 0, 2, think_ns=50 * MS)
    rig.at(2 * MS, Reader, rig, 2, 100_000, 1)
    rig.run()
    assert rig.issue_times()[1][:2] == (12 * MS, 100_000)


def test_to_2_6_16_a_sync_write_that_finds_no_queue_active_goes_at_once():
    times = []
    for early in (True, False):
        rig = cfq_rig(early=early)
        rig.write(0, 4, flags=BIO_PROCESS_SYNC)
        rig.run()
        times.append(rig.issue_times())
    # The first page of the four goes alone, the others after it, and they merge.
    assert times == [[(0, 0, 1), (1 * MS, 1, 3)], [(3 * MS, 0, 4)]]


def test_to_2_6_16_processes_take_turns_all_the_same():
    rig = cfq_rig(early=True)
    Reader(rig, 1, 0, 300)
    Reader(rig, 2, 100_000, 300)
    rig.run()
    assert all(100 <= length <= 103 for _, length in turns(rig)[:4])


def test_to_2_6_16_a_slow_thinker_may_have_two_requests_in_the_driver():
    rig = cfq_rig(ram(queue_depth=32), early=True, quantum=1)
    Reader(rig, 1, 0, 12, think_ns=20 * MS)
    rig.run()
    for number in range(4):
        rig.read(1000 + 10 * number)
    rig.disk.unplug()
    depth = rig.disk.in_driver
    rig.run()
    assert depth == 2
