"""The O(1) scheduler: slices, arrays, bonus for sleeping."""

import pytest

from sim.sched.prio_array import (
    BONUS_NS,
    MAX_SLEEP_AVG_NS,
    PrioArrays,
    effective_prio,
    is_interactive,
    task_timeslice_ns,
)
from sim.sched.task import TASK_INTERRUPTIBLE, TASK_UNINTERRUPTIBLE, sleep_ns
from tests.sched.rig import MS, O1, Rig, S, compute, hog


@pytest.mark.parametrize(("nice", "ms"), [(-20, 800), (-1, 420), (0, 100), (10, 50), (19, 5)])
def test_time_slices_are_those_of_the_kernel_comment(nice, ms):
    assert task_timeslice_ns(nice) == ms * MS


@pytest.mark.parametrize(("nice", "bonuses"), [(-20, 9), (-10, 7), (0, 4), (10, 2), (19, 0)])
def test_nicer_tasks_need_more_bonus_to_be_interactive(nice, bonuses):
    """The table in the comment above TASK_INTERACTIVE."""
    task = a_task(nice)
    interactive = 0
    for bonus in range(11):
        task.sleep_avg_ns = bonus * BONUS_NS
        task.prio = 120 + nice + 5 - bonus  # As if there were no best and worst priority.
        interactive += is_interactive(task)
    assert interactive == bonuses


def a_task(nice=0):
    return Rig(kernel=O1).hogs(nice)[0]


def test_the_bonus_moves_the_priority_by_five_either_way():
    task = a_task()
    task.sleep_avg_ns = 0
    worst = effective_prio(task)
    task.sleep_avg_ns = MAX_SLEEP_AVG_NS
    assert (worst, effective_prio(task)) == (125, 115)


def test_waiting_for_the_disk_alone_does_not_make_best_priority():
    disk, terminal = a_task(), a_task()
    for _ in range(50):
        PrioArrays(1).place_woken(disk, TASK_UNINTERRUPTIBLE, 200 * MS)
        PrioArrays(1).place_woken(terminal, TASK_INTERRUPTIBLE, 200 * MS)
    assert (disk.sleep_avg_ns, terminal.sleep_avg_ns) == (8 * BONUS_NS, MAX_SLEEP_AVG_NS)


def test_a_long_idle_sleep_leaves_a_reserve():
    task = a_task()
    PrioArrays(1).place_woken(task, TASK_INTERRUPTIBLE, 3600 * S)
    assert task.sleep_avg_ns == MAX_SLEEP_AVG_NS - 100 * MS
    assert is_interactive(task)


def test_hogs_share_by_time_slice():
    rig = Rig(kernel=O1)
    hogs = rig.hogs(0, 0, 5, 10)
    slices = [100, 100, 75, 50]
    shares = rig.run(100).shares(hogs)
    assert shares == pytest.approx([s / 325 for s in slices], rel=0.03)  # Ends at whole ticks.


def test_hogs_take_turns_of_100_ms():
    rig = Rig(kernel=O1)
    rig.hogs(0, 0)
    assert rig.run(10).sched.nr_switches == pytest.approx(100, abs=3)


def test_a_task_that_mostly_waits_preempts_a_hog_at_once():
    rig = Rig(kernel=O1)
    rig.hogs(0)
    waits = []

    def daemon(task):
        while True:
            yield from sleep_ns(task, 40 * MS, TASK_UNINTERRUPTIBLE)
            woken = rig.calendar.now
            task.charge_user(MS)
            yield
            waits.append(rig.calendar.now - woken - MS)

    rig.sched.spawn("daemon", daemon)
    rig.run(10)
    assert len(waits) > 200
    assert max(waits[20:]) == 0


def test_a_child_runs_before_its_parent():
    rig = Rig(kernel=O1)

    def child(task):
        rig.note("child")
        yield

    def parent(task):
        task.charge_system(MS)
        yield
        rig.sched.spawn("child", child, task)
        task.charge_system(MS)
        yield
        rig.note("parent")

    rig.sched.spawn("parent", parent)
    rig.run(1)
    assert rig.log == [(1 * MS, "child"), (2 * MS, "parent")]


def test_forking_halves_the_slice():
    rig = Rig(kernel=O1)
    parent = rig.sched.spawn("parent", hog)
    rig.run(0.001)
    rig.sched.update()
    before = parent.time_slice_ns
    child = rig.sched.spawn("child", compute(MS), parent)
    assert (parent.time_slice_ns, child.time_slice_ns) == (before // 2, before // 2)


def test_expired_tasks_are_not_starved_by_interactive_ones():
    """Two tasks that keep a high bonus rotate; the expired hog still gets its slice in the end."""
    rig = Rig(kernel=O1)
    hog_task = rig.hogs(0)[0]

    def editor(task):
        while True:
            task.charge_user(4 * MS)
            yield
            yield from sleep_ns(task, 6 * MS, TASK_INTERRUPTIBLE)

    for _ in range(3):
        rig.sched.spawn("editor", editor)
    rig.run(30)
    assert hog_task.utime_ns > 0.5 * S


def test_a_parent_that_forks_twice_runs_after_both_children():
    rig = Rig(kernel=O1)

    def child(task):
        task.charge_user(MS)
        yield
        rig.note(task.comm)

    def parent(task):
        for name in ("one", "two"):
            rig.sched.spawn(name, child, task)
        task.charge_system(MS)
        yield
        rig.note("parent")

    rig.sched.spawn("parent", parent)
    rig.sched.spawn("other", child)
    rig.run(1)
    assert [what for _, what in rig.log][2:] == ["parent", "other"]


def test_a_child_that_wakes_later_has_no_privilege():
    """Its parent has forked it, then slept: on waking, it queues behind its equals."""
    rig = Rig(kernel=O1)

    def worker(task):
        yield from sleep_ns(task, 5 * MS, TASK_INTERRUPTIBLE)
        task.charge_user(2 * MS)
        yield
        rig.note(task.comm)

    def parent(task):
        yield from sleep_ns(task, MS, TASK_INTERRUPTIBLE)
        rig.sched.spawn("child", worker, task)
        yield from sleep_ns(task, 100 * MS, TASK_INTERRUPTIBLE)

    rig.sched.spawn("other", worker)
    rig.sched.spawn("parent", parent)
    rig.run(1)
    assert [what for _, what in rig.log] == ["other", "child"]
