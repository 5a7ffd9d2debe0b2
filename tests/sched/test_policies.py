"""SCHED_BATCH and SCHED_IDLE: who preempts whom, and what the idle ones get."""

import pytest

from sim.sched.syscalls import SchedAttr
from sim.sched.task import SCHED_BATCH, SCHED_IDLE, TASK_INTERRUPTIBLE, sleep_ns
from tests.sched.rig import CFS, EEVDF, MODERN, MS, Rig, S, hog

FAIR = [(2, 6, 24), CFS, MODERN, (5, 4), EEVDF, (6, 18, 44)]


def started(rig, policy, main=hog):
    return rig.sched.spawn("t", main, None, 0, SchedAttr(policy=policy))


@pytest.mark.parametrize("kernel", FAIR)
def test_an_idle_task_has_three_of_1027_beside_another(kernel):
    """Two until 2.6.30. Its turns end at ticks, so that it has a turn every second or so."""
    rig = Rig(1, kernel)
    idle = started(rig, SCHED_IDLE)
    rig.hogs(0)
    rig.run(60)
    weight = 2 if kernel < (2, 6, 30) else 3
    assert idle.utime_ns / (60 * S) == pytest.approx(weight / (1024 + weight), rel=0.05)


@pytest.mark.parametrize("kernel", FAIR)
def test_who_wakes_takes_the_cpu_from_a_batch_task_as_from_any_other(kernel):
    """SCHED_BATCH is about waking: who runs under it is protected from nobody."""
    waits = []
    for running in (0, SCHED_BATCH):
        rig = Rig(1, kernel)
        started(rig, running)
        woken = []

        def wakes(task, rig=rig, woken=woken):
            for _ in range(20):
                yield from sleep_ns(task, 50 * MS, TASK_INTERRUPTIBLE)
                task.charge_user(MS // 10)
                yield
                woken.append(rig.calendar.now)

        started(rig, 0, wakes)
        rig.run(2)
        waits.append(woken)
    assert len(waits[0]) == 20
    assert waits[0] == waits[1]


@pytest.mark.parametrize("kernel", FAIR)
def test_who_wakes_takes_the_cpu_from_an_idle_task_at_once(kernel):
    """And from a batch or a usual task only after the turn, if it is batch itself."""
    waits_ns = {}
    for running, waking in [(SCHED_IDLE, 0), (SCHED_IDLE, SCHED_BATCH), (0, SCHED_BATCH)]:
        rig = Rig(1, kernel)
        started(rig, running)
        seen = []

        def wakes(task, rig=rig, seen=seen):
            while True:
                due_ns = rig.calendar.now + 50 * MS
                yield from sleep_ns(task, 50 * MS, TASK_INTERRUPTIBLE)
                seen.append(rig.calendar.now - due_ns)
                task.charge_user(MS // 10)
                yield

        started(rig, waking, wakes)
        rig.run(2)
        waits_ns[running, waking] = sum(seen) / len(seen)
    assert waits_ns[SCHED_IDLE, 0] < MS / 2
    assert waits_ns[SCHED_IDLE, SCHED_BATCH] < MS / 2
    assert waits_ns[0, SCHED_BATCH] > MS


def test_before_cfs_a_batch_program_earns_nothing_by_sleeping():
    rig = Rig(1, (2, 6, 16))
    sleepy = started(rig, SCHED_BATCH, lambda task: sleep_ns(task, 2 * S, TASK_INTERRUPTIBLE))
    usual = started(rig, 0, lambda task: sleep_ns(task, 2 * S, TASK_INTERRUPTIBLE))
    rig.run(2.5)
    assert sleepy.sleep_avg_ns == 0
    assert usual.sleep_avg_ns > 0


def test_children_of_an_idle_task_are_idle():
    rig = Rig(1)
    children = []

    def parent(task):
        children.append(rig.sched.spawn("child", hog, task))
        return
        yield

    started(rig, SCHED_IDLE, parent)
    rig.run(0.1)
    assert [(child.policy, child.weight) for child in children] == [(SCHED_IDLE, 3)]
