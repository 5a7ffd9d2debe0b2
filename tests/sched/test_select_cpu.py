"""Where tasks wake, start, and are moved to."""

import pytest

from sim.sched.irq import InterruptLine
from sim.sched.select_cpu import idle_sibling, idlest, record_wakee, wake_affine, wake_wide
from sim.sched.syscalls import SchedAttr
from sim.sched.task import TASK_INTERRUPTIBLE
from tests.sched.rig import CFS, MODERN, MS, O1, Rig, compute, sleeper


@pytest.mark.parametrize(
    ("waker", "previous", "chosen"),
    [(0, 0, "waker"), (0, 1, "waker"), (1, 1, "previous"), (1, 0, "previous"), (1, 2, "waker")],
)
def test_2_6_16_moves_to_the_waker_only_if_that_is_clearly_better(waker, previous, chosen):
    """(1, 1): 1 + 1 task is more than 112 % of 1. (1, 2): 2 is less than 112 % of 2."""
    rigs = [Rig(1, O1) for _ in range(2)]
    for rig, count in zip(rigs, (waker, previous), strict=True):
        rig.hogs(*[0] * count)
        rig.run(0.0081)
    rqs = {"waker": rigs[0].sched.rqs[0], "previous": rigs[1].sched.rqs[0]}
    assert wake_affine(rqs["waker"], rqs["previous"]) is rqs[chosen]


def test_later_releases_find_any_idle_cpu():
    rig = Rig(4, CFS)
    rig.hogs(0, 0, 0)
    rqs = rig.sched.rqs
    assert idle_sibling(rqs[0], rqs[1], rqs, False) is rqs[3]
    assert idle_sibling(rqs[0], rqs[3], rqs, False) is rqs[3]
    assert idle_sibling(rqs[3], rqs[0], rqs, False) is rqs[3]


@pytest.mark.parametrize(("last", "chosen"), [(0, 1), (1, 3), (2, 3), (4, 5), (5, 1)])
def test_the_search_for_an_idle_cpu_goes_round_from_the_last_one(last, chosen):
    """CPUs 0, 2 and 4 have a hog; a task that was last on a taken one goes to the next idle one."""
    rig = Rig(6, CFS)
    for cpu in (0, 2, 4):
        rig.sched.spawn("hog", compute(10**12), None, 0, SchedAttr(allowed=frozenset({cpu})))
    rqs = rig.sched.rqs
    chosen = last if rqs[last].curr is None else chosen
    assert idle_sibling(rqs[0], rqs[last], rqs, False) is rqs[chosen]
    parent = rqs[last]
    assert idlest(parent, rqs) is rqs[chosen]


def test_an_interrupt_draws_its_tasks_to_its_idle_cpu():
    """2.6.16: woken from the interrupt on CPU 0, a sleeper of CPU 1 moves there if both idle."""
    rig = Rig(2, O1)
    first, second = (rig.sched.spawn("t", sleeper(TASK_INTERRUPTIBLE, 10**12)) for _ in range(2))
    rig.run(0.01)
    second.cpu = 1

    def interrupt(_):
        InterruptLine(rig.sched, 0, 1000).serve()
        rig.sched.wake_up(second)

    rig.at(20 * MS, interrupt)
    rig.run(0.1)
    assert (first.cpu, second.cpu) == (0, 0)


def test_a_child_starts_on_its_parents_cpu_before_2_6_32():
    cpus = {}
    for kernel in (O1, (2, 6, 24), CFS, MODERN):
        rig = Rig(2, kernel)

        def parent(task, rig=rig):
            task.charge_user(MS)
            yield
            child = rig.sched.spawn("child", compute(MS), task)
            rig.note(child.cpu == task.cpu)

        rig.sched.spawn("parent", parent)
        cpus[kernel] = rig.run(1).log[0][1]
    assert cpus == {O1: True, (2, 6, 24): True, CFS: False, MODERN: False}


@pytest.mark.parametrize(("kernel", "until_ms"), [(O1, (4, 12)), (CFS, (0, 0.01))])
def test_a_waiting_child_meets_the_idle_cpu_after_a_tick_or_at_once(kernel, until_ms):
    rig = Rig(2, kernel)

    def child(task):
        task.charge_user(30 * MS)
        yield
        rig.note("child")

    def parent(task):
        task.charge_user(MS)
        yield
        rig.sched.spawn("child", child, task)
        task.charge_user(30 * MS)
        yield
        rig.note("parent")

    rig.sched.spawn("parent", parent)
    rig.run(1)
    last_ms = rig.log[-1][0] / MS
    assert 31 + until_ms[0] - 4 <= last_ms <= 31 + until_ms[1] + 4


def test_who_wakes_many_leaves_them_where_they_were():
    """3.12 on, no CPU idle: of many wakees each stays; a single one may go to the emptier CPU."""
    rig = Rig(2, MODERN)
    rig.hogs(0, 0, 0)
    fuller, emptier = sorted(rig.sched.rqs, key=lambda rq: -rq.nr_running())
    assert (fuller.nr_running(), emptier.nr_running()) == (2, 1)
    assert idle_sibling(emptier, fuller, rig.sched.rqs, True) is fuller
    assert idle_sibling(emptier, fuller, rig.sched.rqs, False) is emptier


def test_one_wakes_many_when_the_wakee_keeps_changing():
    rig = Rig(2, MODERN)
    one, *others = (rig.sched.spawn("t", sleeper(TASK_INTERRUPTIBLE, 10**12)) for _ in range(9))
    for _ in range(8):
        record_wakee(one, others[0], 0)
    assert not wake_wide(one, 2)
    for other in others:
        record_wakee(one, other, 0)
    assert wake_wide(one, 2)
    for second in range(1, 4):  # Halved each second that somebody is woken.
        record_wakee(one, others[-1], second * 1000 * MS)
    assert not wake_wide(one, 2)
