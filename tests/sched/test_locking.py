"""Mutexes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.sched.locking import Mutex, patience_of_mutex, patience_of_rwsem
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


def greedy(rig, mutex, times, hold_ns=MS, *, work_ns=0, pause_ns=0):
    """Lock it that often: sleep under it, work under it, unlock it, compute for a while."""

    def main(task):
        for _ in range(times):
            yield from mutex.lock(task)
            rig.note("greedy")
            yield from sleep_ns(task, hold_ns, TASK_INTERRUPTIBLE)
            task.charge_system(work_ns)
            mutex.unlock(task)
            task.charge_user(pause_ns)

    return rig.sched.spawn("greedy", main)


def names(rig):
    return [what for _, what in rig.log]


@pytest.mark.parametrize(
    ("pause_ns", "order"),
    [
        (0, ["greedy", "greedy", "u0"]),
        (5 * US, ["greedy", "greedy", "u0"]),
        (20 * US, ["greedy", "u0", "greedy"]),
    ],
)
@pytest.mark.parametrize("cpus", [2, 4])
@pytest.mark.parametrize("work_ns", [0, 100 * US])
def test_who_asks_before_the_waiter_has_come_takes_the_lock(cpus, work_ns, pause_ns, order):
    """The waiter needs 10 us for its switch; it is woken when the work under the lock is done."""
    rig, mutex = Rig(cpus, switch_ns=10 * US), Mutex()
    greedy(rig, mutex, 2, work_ns=work_ns, pause_ns=pause_ns)
    users(rig, mutex, 1)
    rig.run(1)
    assert names(rig) == order


def test_the_lock_is_held_until_the_work_done_under_it_is_paid_for():
    rig, mutex = Rig(2), Mutex()
    greedy(rig, mutex, 1, work_ns=300 * US)
    users(rig, mutex, 1)
    assert rig.run(1).log == [(0, "greedy"), (MS + 300 * US, "u0")]


@pytest.mark.parametrize(
    ("kernel", "first", "spun_ns"),
    [((2, 6, 28), "waiter", 0), ((2, 6, 30), "late", 200 * US), (EEVDF, "late", 200 * US)],
)
def test_who_finds_the_owner_on_its_way_out_spins_and_is_there_first(kernel, first, spun_ns):
    """0.2 ms before the owner has paid for its work; it was there, running, the sleeper was not."""
    rig, mutex = Rig(4, kernel, switch_ns=10 * US), Mutex()

    def user(begins_ns, name):
        def main(task):
            yield from sleep_ns(task, begins_ns, TASK_INTERRUPTIBLE)
            yield from mutex.lock(task)
            rig.note(name)
            task.charge_system(MS)
            mutex.unlock(task)

        return rig.sched.spawn(name, main)

    greedy(rig, mutex, 1, work_ns=400 * US)
    user(MS // 2, "waiter")
    late = user(MS + 200 * US, "late")
    rig.run(1)
    assert names(rig)[:2] == ["greedy", first]
    assert late.stime_ns == pytest.approx(MS + spun_ns, abs=50 * US)


@pytest.mark.parametrize("kernel", [O1, CFS, (4, 9)])
def test_with_one_cpu_who_unlocks_is_there_first_again(kernel):
    rig, mutex = Rig(kernel=kernel), Mutex()
    greedy(rig, mutex, 3)
    users(rig, mutex, 1)
    rig.run(1)
    assert names(rig) == ["greedy", "greedy", "greedy", "u0"]


@pytest.mark.parametrize("kernel", [(4, 10), EEVDF])
def test_a_mutex_is_kept_for_the_first_waiter_that_was_woken_in_vain(kernel):
    """MUTEX_FLAG_HANDOFF: overtaken once, not twice."""
    rig, mutex = Rig(kernel=kernel), Mutex()
    greedy(rig, mutex, 4)
    users(rig, mutex, 1)
    rig.run(1)
    assert names(rig) == ["greedy", "greedy", "u0", "greedy", "greedy"]


@pytest.mark.parametrize(("kernel", "overtaken"), [((5, 2), 29), ((5, 3), 9)])
def test_a_waiter_of_a_semaphore_is_overtaken_for_two_ticks(kernel, overtaken):
    """Ticks of 4 ms: from 8 ms on a wake-up in vain, which is at 9 ms, is the last."""
    rig, mutex = Rig(kernel=kernel, hz=250), Mutex(patience_of_rwsem)
    greedy(rig, mutex, 30)
    users(rig, mutex, 1)
    rig.run(1)
    order = names(rig)
    assert order.index("u0") == overtaken + 1
    assert order.count("greedy") == 30
    assert mutex.trylock(rig.sched.spawn("late", lambda task: iter(())))  # kept for nobody


wishes = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 3), st.integers(1, 4)),
    min_size=1,
    max_size=8,
)
PATIENCE = st.sampled_from([patience_of_mutex, patience_of_rwsem])


@given(wishes, st.sampled_from([1, 2]), st.sampled_from([O1, CFS, (5, 4), EEVDF]), PATIENCE)
def test_one_at_a_time_holds_it_and_each_gets_it_as_often_as_it_asks(
    wishes, cpus, kernel, patience
):
    rig, mutex = Rig(cpus, kernel, switch_ns=10 * US), Mutex(patience)
    inside = []

    def main(pause_ms, hold_ms, work, times):
        def user(task):
            for _ in range(times):
                yield from sleep_ns(task, pause_ms * MS, TASK_INTERRUPTIBLE)
                yield from mutex.lock(task)
                inside.append(task)
                if hold_ms:
                    yield from sleep_ns(task, hold_ms * MS, TASK_INTERRUPTIBLE)
                assert inside == [task]
                inside.clear()
                task.charge_system(work * 30 * US)
                mutex.unlock(task)
                rig.note(task.comm)

        return user

    for wish in wishes:
        rig.sched.spawn("u", main(*wish))
    rig.run(5)
    assert len(rig.log) == sum(times for *_, times in wishes)
    assert not mutex.is_locked()
    assert not mutex.waiting()


def test_unlocking_what_one_does_not_hold_is_an_error():
    rig, mutex = Rig(kernel=O1), Mutex()
    one, other = (rig.sched.spawn("t", lambda task: iter(())) for _ in range(2))
    assert mutex.trylock(one)
    assert not mutex.trylock(other)
    with pytest.raises(AssertionError, match="does not hold"):
        mutex.unlock(other)
