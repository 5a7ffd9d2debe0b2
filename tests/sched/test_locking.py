"""Mutexes."""

import pytest

from sim.sched.locking import Mutex
from sim.sched.task import TASK_INTERRUPTIBLE, sleep_ns
from tests.sched.rig import MS, O1, US, Rig


def users(rig, mutex, count, hold_ns=MS):
    def main(task):
        yield from mutex.lock(task)
        rig.note(task.comm)
        yield from sleep_ns(task, hold_ns, TASK_INTERRUPTIBLE)
        mutex.unlock(task)

    return [rig.sched.spawn(f"u{number}", main) for number in range(count)]


def test_a_mutex_is_handed_on_in_the_order_of_asking():
    rig, mutex = Rig(kernel=O1), Mutex()
    users(rig, mutex, 4)
    assert rig.run(1).log == [(0, "u0"), (MS, "u1"), (2 * MS, "u2"), (3 * MS, "u3")]
    assert not mutex.is_locked()


def test_waiters_for_a_mutex_are_load_and_not_iowait():
    rig, mutex = Rig(2, O1), Mutex()
    users(rig, mutex, 5, hold_ns=10 * MS)
    rig.run(0.005)
    assert (rig.sched.nr_uninterruptible, rig.sched.nr_iowait, mutex.waiting()) == (4, 0, 4)
    assert rig.cpu_s("iowait_ns") == 0


def test_nobody_overtakes_the_heir():
    """u1 inherits while it sleeps; the running u0 asks again and has to wait."""
    rig, mutex = Rig(switch_ns=10 * US), Mutex()

    def greedy(task):
        for _ in range(2):
            yield from mutex.lock(task)
            rig.note("greedy")
            yield from sleep_ns(task, MS, TASK_INTERRUPTIBLE)
            mutex.unlock(task)

    rig.sched.spawn("greedy", greedy)
    users(rig, mutex, 1)
    rig.run(1)
    assert [what for _, what in rig.log] == ["greedy", "u0", "greedy"]


def test_unlocking_what_one_does_not_hold_is_an_error():
    rig, mutex = Rig(kernel=O1), Mutex()
    one, other = (rig.sched.spawn("t", lambda task: iter(())) for _ in range(2))
    assert mutex.trylock(one)
    assert not mutex.trylock(other)
    with pytest.raises(AssertionError, match="does not hold"):
        mutex.unlock(other)
