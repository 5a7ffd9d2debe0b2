"""Plugs: when requests are held back, and when they go."""

import pytest

from sim.block.bio import BIO_SYNC, WRITE, Plug
from sim.block.queue import QueueParams
from tests.block.disks import MS, Rig, ram


def test_a_lone_write_waits_three_milliseconds():
    rig = Rig()
    rig.write(0)
    assert rig.run().issue_times() == [(3 * MS, 0, 1)]


def test_each_plug_lasts_three_milliseconds():
    rig = Rig()
    rig.write(0)
    rig.at(2 * MS, rig.disk.unplug)
    rig.at(4 * MS, rig.write, 50)
    assert rig.run().issue_times() == [(2 * MS, 0, 1), (7 * MS, 50, 1)]


def test_the_fourth_request_removes_the_plug():
    rig = Rig(ram(queue_depth=32))
    for page in (0, 100, 200, 300):
        rig.write(page)
    assert rig.run().issue_times() == [(0, 0, 1), (0, 100, 1), (0, 200, 1), (0, 300, 1)]


def test_the_fourth_request_goes_with_the_one_bio_that_made_it():
    rig = Rig(ram(queue_depth=32))
    for page in (0, 100, 200):
        rig.write(page, 10)
    rig.write(300, 10)
    # The rest of the run begins a request, plugged anew until the first completion.
    assert rig.run().issue_times() == [
        (0, 0, 10),
        (0, 100, 10),
        (0, 200, 10),
        (0, 300, 1),
        (1 * MS, 301, 9),
    ]


def test_with_the_driver_full_the_rest_of_the_run_merges():
    rig = Rig(ram(queue_depth=1))
    for page in (0, 100, 200, 300):
        rig.write(page, 10)
    # 0 is in the driver, 100 chosen; 300 still waits and grows.
    assert rig.run().issued() == [(0, 10), (100, 10), (200, 10), (300, 10)]


def test_a_sync_bio_removes_the_plug():
    rig = Rig()
    rig.write(0)
    rig.at(1 * MS, rig.write, 50, flags=BIO_SYNC)
    assert rig.run().issue_times() == [(1 * MS, 0, 1), (2 * MS, 50, 1)]


def test_a_waiter_removes_the_plug():
    rig = Rig()
    rig.write(0)
    rig.at(1 * MS, rig.disk.unplug)
    assert rig.run().issue_times() == [(1 * MS, 0, 1)]


def test_a_completion_removes_the_plug():
    rig = Rig(ram(queue_depth=2))
    rig.write(0, flags=BIO_SYNC)  # until 1 ms
    rig.at(MS // 2, rig.write, 50)  # plugged until 3.5 ms
    assert rig.run().issue_times() == [(0, 0, 1), (1 * MS, 50, 1)]


def test_an_unplugged_queue_with_waiting_requests_is_not_plugged():
    rig = Rig()
    rig.write(0, flags=BIO_SYNC)
    rig.write(50, flags=BIO_SYNC)
    rig.write(100)
    assert not rig.disk.plugged


def test_tracepoints_tell_plug_and_unplug():
    rig = Rig()
    rig.tracer.start("block_*")
    rig.write(0)
    rig.run()
    assert rig.tracer.names() == [
        "block_bio_queue",
        "block_getrq",
        "block_plug",
        "block_rq_insert",
        "block_unplug_timer",
        "block_rq_issue",
        "block_rq_complete",
    ]


# -- On the task's stack, from 2.6.39.


def submit_plugged(rig, plug, page, count=1):
    bio = rig.bio(WRITE, page, count)
    bio.plug = plug
    assert rig.disk.submit_bio(bio)


def test_a_task_plug_holds_requests_until_it_is_flushed():
    rig = Rig(plug="task", pools="sync")
    plug = Plug()
    submit_plugged(rig, plug, 0)
    rig.calendar.run_until(20 * MS)
    assert rig.issued() == []
    rig.disk.check()
    plug.flush()
    assert rig.run().issued() == [(0, 1)]


def test_a_task_plug_merges_and_sorts():
    rig = Rig(plug="task", pools="sync")
    plug = Plug()
    for page in (9, 5, 6, 4):
        submit_plugged(rig, plug, page)
    submit_plugged(rig, plug, 20, 5)
    plug.flush()
    rig.run()
    assert (rig.issued(), rig.stats.write_merges) == ([(4, 3), (9, 1), (20, 5)], 6)


def habits_of(kernel):
    """What a release sets of the plug on a task's stack."""
    defaults = QueueParams.kernel_defaults(kernel)
    names = [name for name in defaults if name.startswith("plug") or name == "pools"]
    return {name: defaults[name][0] for name in names}


@pytest.mark.parametrize(
    ("kernel", "held"), [("2.6.39", 40), ("3.1", 16), ("5.15", 16), ("5.16", 32)]
)
def test_a_task_plug_holds_as_many_requests_as_the_release_allows(kernel, held):
    rig = Rig(ram(queue_depth=64), **habits_of(kernel))
    plug = Plug()
    for number in range(40):
        submit_plugged(rig, plug, 10 * number)
    assert len(rig.issued()) == (40 // held * held if held < 40 else 0)
    plug.flush()
    assert len(rig.run().issued()) == 40


@pytest.mark.parametrize(
    ("kernel", "held"),
    [
        ("4.20", (16, 16)),  # each queue's own
        ("5.0", (8, 8)),  # plug->rq_count (5f0ed774ed29)
        ("5.15", (32, 32)),  # blk_plug_max_rq_count: four times (7f2a6a69f7ce)
        ("5.16", (32, 32)),  # twice of 32 (ba0ffdd8ce48)
    ],
)
def test_requests_of_two_queues_in_a_plug_are_counted_together_from_5_0_on(kernel, held):
    rigs = [Rig(ram(queue_depth=100), **habits_of(kernel)) for _ in range(2)]
    plug = Plug()
    for number in range(100):
        for rig in rigs:
            submit_plugged(rig, plug, 10 * number)
        if any(rig.issued() for rig in rigs):
            break
    assert tuple(len(rig.issued()) for rig in rigs) == held


@pytest.mark.parametrize(("kernel", "merged"), [("5.15", 1), ("5.16", 0), ("6.18", 0)])
def test_a_bio_joins_only_the_last_request_of_the_plug_from_5_16_on(kernel, merged):
    """Two streams in turn: d38a9c04c0d5 looks at the previous entry alone."""
    rig = Rig(ram(queue_depth=64), **habits_of(kernel))
    plug = Plug()
    for page in (0, 100, 1):
        submit_plugged(rig, plug, page)
    assert rig.stats.write_merges == merged
    submit_plugged(rig, plug, 2)
    assert rig.stats.write_merges == merged + 1
    plug.flush()
    assert sum(count for _, count in rig.run().issued()) == 4


@pytest.mark.parametrize(("kernel", "goes"), [("4.9", False), ("4.10", True), ("6.18", True)])
@pytest.mark.parametrize(("pages", "large"), [(31, False), (32, True)])
def test_a_large_request_leaves_the_plug_when_another_comes(kernel, goes, pages, large):
    """BLK_PLUG_FLUSH_SIZE: 128 KiB are worth no more waiting."""
    rig = Rig(ram(queue_depth=64), **habits_of(kernel))
    plug = Plug()
    submit_plugged(rig, plug, 0, pages)
    assert rig.issued() == []
    submit_plugged(rig, plug, 100)
    assert rig.issued() == ([(0, pages)] if goes and large else [])
    plug.flush()
    assert rig.run().issued() == [(0, pages), (100, 1)]


def test_without_a_task_plug_requests_go_at_once():
    rig = Rig(plug="task", pools="sync")
    rig.write(0)
    assert rig.run().issue_times() == [(0, 0, 1)]


def test_a_flushed_request_joins_one_that_waits_in_the_queue():
    rig = Rig(ram(queue_depth=1), plug="task", pools="sync")
    for page in (100, 200, 0):
        rig.write(page)
    plug = Plug()
    submit_plugged(rig, plug, 2)
    submit_plugged(rig, plug, 300)
    submit_plugged(rig, plug, 1)
    plug.flush()
    assert rig.run().issued() == [(100, 1), (200, 1), (0, 3), (300, 1)]


def test_who_charges_interrupts_is_told_of_each_completion():
    rig = Rig()
    told = []
    rig.disk.on_interrupt = lambda pid: told.append((rig.calendar.now, pid))
    rig.write(0, flags=BIO_SYNC)
    rig.write(100, flags=BIO_SYNC)
    rig.run()
    assert told == [(1 * MS, 1), (2 * MS, 1)]
