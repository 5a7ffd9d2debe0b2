"""Mutexes and reader-writer semaphores."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.sched.locking import Mutex, RwSemaphore
from sim.sched.task import TASK_INTERRUPTIBLE, TASK_UNINTERRUPTIBLE, sleep_ns
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


operations = st.lists(
    st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=12
)


@settings(max_examples=60, deadline=None)
@given(operations, st.integers(1, 3))
def test_writers_are_alone_and_everybody_gets_in(operations, cpus):
    rig, lock = Rig(cpus=cpus), RwSemaphore()
    inside = []
    done = []

    def reader(task, hold_ns):
        yield from lock.down_read(task)
        inside.append("r")
        assert "w" not in inside
        yield from sleep_ns(task, hold_ns, TASK_UNINTERRUPTIBLE)
        inside.remove("r")
        lock.up_read()
        done.append(task)

    def writer(task, hold_ns):
        yield from lock.down_write(task)
        assert inside == []
        inside.append("w")
        yield from sleep_ns(task, hold_ns, TASK_UNINTERRUPTIBLE)
        inside.remove("w")
        lock.up_write(task)
        done.append(task)

    for to_write, start, hold in operations:
        body = writer if to_write else reader

        def start_one(_, body=body, hold_ns=hold * MS):
            rig.sched.spawn("t", lambda task: body(task, hold_ns))

        rig.at(start * MS, start_one)
    rig.run(1)
    assert len(done) == len(operations)
    assert (lock.readers, lock.writer) == (0, None)


def test_readers_do_not_overtake_a_waiting_writer():
    rig, lock = Rig(kernel=O1), RwSemaphore()

    def main(down, up, name):
        def run(task):
            yield from down(task)
            rig.note(name)
            yield from sleep_ns(task, MS, TASK_INTERRUPTIBLE)
            up(task)

        return run

    def up_read(task):
        lock.up_read()

    for name in ("r1", "w", "r2", "r3"):
        to_write = name == "w"
        down = lock.down_write if to_write else lock.down_read
        rig.sched.spawn(name, main(down, lock.up_write if to_write else up_read, name))
    assert rig.run(1).log == [(0, "r1"), (MS, "w"), (2 * MS, "r2"), (2 * MS, "r3")]
