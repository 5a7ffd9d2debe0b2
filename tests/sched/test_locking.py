"""Mutexes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.sched.locking import Mutex
from sim.sched.task import TASK_INTERRUPTIBLE, sleep_ns
from tests.sched.rig import CFS, EEVDF, MS, O1, US, Rig


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


def greedy(rig, mutex, times, hold_ns=MS):
    """Lock it that often, one time after the other, without a pause."""

    def main(task):
        for _ in range(times):
            yield from mutex.lock(task)
            rig.note("greedy")
            yield from sleep_ns(task, hold_ns, TASK_INTERRUPTIBLE)
            mutex.unlock(task)

    return rig.sched.spawn("greedy", main)


def test_nobody_overtakes_the_heir_where_that_has_a_cpu():
    """u1 inherits while it sleeps; the running u0 asks again and has to wait."""
    rig, mutex = Rig(2, switch_ns=10 * US), Mutex()
    greedy(rig, mutex, 2)
    users(rig, mutex, 1)
    rig.run(1)
    assert [what for _, what in rig.log] == ["greedy", "u0", "greedy"]


@pytest.mark.parametrize("kernel", [O1, CFS, EEVDF])
def test_with_one_cpu_who_unlocks_is_there_first_again(kernel):
    rig, mutex = Rig(kernel=kernel), Mutex()
    greedy(rig, mutex, 3)
    users(rig, mutex, 1)
    rig.run(1)
    assert [what for _, what in rig.log] == ["greedy", "greedy", "greedy", "u0"]


@pytest.mark.parametrize(("kernel", "overtaken"), [((5, 2), 29), ((5, 3), 9)])
def test_a_waiter_that_has_waited_for_two_ticks_is_overtaken_no_more(kernel, overtaken):
    """Ticks of 4 ms: from 8 ms on a wake-up in vain, which is at 9 ms, is the last."""
    rig, mutex = Rig(kernel=kernel, hz=250), Mutex()
    greedy(rig, mutex, 30)
    users(rig, mutex, 1)
    rig.run(1)
    order = [what for _, what in rig.log]
    assert order.index("u0") == overtaken + 1
    assert order.count("greedy") == 30
    assert mutex.trylock(rig.sched.spawn("late", lambda task: iter(())))  # kept for nobody


wishes = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=8
)


@given(wishes, st.sampled_from([1, 2]), st.sampled_from([O1, (5, 4), EEVDF]))
def test_one_at_a_time_holds_a_mutex_and_each_gets_it_as_often_as_it_asks(wishes, cpus, kernel):
    rig, mutex = Rig(cpus, kernel, switch_ns=10 * US), Mutex()
    inside = []

    def main(pause_ms, hold_ms, times):
        def user(task):
            for _ in range(times):
                yield from sleep_ns(task, pause_ms * MS, TASK_INTERRUPTIBLE)
                yield from mutex.lock(task)
                inside.append(task)
                if hold_ms:
                    yield from sleep_ns(task, hold_ms * MS, TASK_INTERRUPTIBLE)
                assert inside == [task]
                inside.clear()
                mutex.unlock(task)
                rig.note(task.comm)

        return user

    for wish in wishes:
        rig.sched.spawn("u", main(*wish))
    rig.run(5)
    assert len(rig.log) == sum(times for _, _, times in wishes)
    assert not mutex.is_locked()
    assert not mutex.waiting()


def test_unlocking_what_one_does_not_hold_is_an_error():
    rig, mutex = Rig(kernel=O1), Mutex()
    one, other = (rig.sched.spawn("t", lambda task: iter(())) for _ in range(2))
    assert mutex.trylock(one)
    assert not mutex.trylock(other)
    with pytest.raises(AssertionError, match="does not hold"):
        mutex.unlock(other)
