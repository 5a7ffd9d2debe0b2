"""Read-write semaphores: one writer or many readers, for as long as their work takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.sched.features import features
from sim.sched.locking import RwSemaphore, mutex_rules, owed_until_ns, rwsem_rules
from sim.sched.task import TASK_INTERRUPTIBLE, TASK_UNINTERRUPTIBLE, sleep_ns
from tests.sched.rig import MS, US, Rig

KERNELS = [(2, 6, 16), (3, 10), (4, 4), (5, 4), (6, 12)]
TODAY = KERNELS[-1]


def semaphore(kernel=TODAY, rules=rwsem_rules):
    return RwSemaphore(rules(features(kernel)))


class Users:
    """Tasks that take a lock again and again, and when each had it."""

    def __init__(self, rig, lock):
        self.rig = rig
        self.lock = lock
        self.held = []  # task, whether it read, from when, until when

    def start(self, *, reads, times, inside_ns, outside_ns=0, asleep_ns=0, begins_ns=0, name="u"):
        def main(task):
            if begins_ns:
                yield from sleep_ns(task, begins_ns, TASK_INTERRUPTIBLE)
            for _ in range(times):
                task.charge_user(outside_ns)
                yield from self.lock.lock_shared(task) if reads else self.lock.lock(task)
                from_ns = owed_until_ns(task)
                if asleep_ns:
                    yield from sleep_ns(task, asleep_ns, TASK_UNINTERRUPTIBLE)
                task.charge_system(inside_ns)
                self.held.append((task, reads, from_ns, owed_until_ns(task)))
                self.lock.unlock_shared(task) if reads else self.lock.unlock(task)
                yield from task.cond_resched()

        return self.rig.sched.spawn(name, main)

    def start_all(self, wishes, may_read=True):
        """Start a task for each of the `turns`; without `may_read` all of them write."""
        for reads, times, inside_us, outside_us, asleep_us, begins_us in wishes:
            self.start(
                reads=reads and may_read,
                times=times,
                inside_ns=inside_us * US,
                outside_ns=outside_us * US,
                asleep_ns=asleep_us * US,
                begins_ns=begins_us * US,
            )

    def turns(self, reads):
        return [until for _, is_reader, _, until in self.held if is_reader is reads]


turns = st.tuples(
    st.booleans(),  # reads
    st.integers(1, 6),  # times
    st.integers(1, 30),  # inside, us
    st.integers(0, 30),  # outside, us
    st.sampled_from([0, 0, 50, 3000]),  # asleep inside, us
    st.integers(0, 40),  # begins, us
)


@given(
    st.lists(turns, min_size=2, max_size=4),
    st.sampled_from(KERNELS),
    st.sampled_from([rwsem_rules, mutex_rules]),
)
def test_nobody_has_it_beside_a_writer(wishes, kernel, rules):
    """Each task has a CPU of its own here; the times include what was still owed at the unlock."""
    rig, lock = Rig(4, kernel, switch_ns=2 * US), semaphore(kernel, rules)
    users = Users(rig, lock)
    users.start_all(wishes, may_read=rules is rwsem_rules)
    rig.run(2)
    assert len(users.held) == sum(times for _, times, *_ in wishes)
    assert not lock.waiting() and not lock.readers and lock.owner is None
    for number, (task, reads, from_ns, until_ns) in enumerate(users.held):
        for other, other_reads, begins_ns, ends_ns in users.held[:number]:
            both_read = reads and other_reads
            assert both_read or task is other or ends_ns <= from_ns or until_ns <= begins_ns


@given(st.lists(turns, min_size=1, max_size=8), st.sampled_from(KERNELS), st.sampled_from([1, 2]))
def test_each_gets_it_as_often_as_it_asks(wishes, kernel, cpus):
    rig, lock = Rig(cpus, kernel, switch_ns=2 * US), semaphore(kernel)
    users = Users(rig, lock)
    users.start_all(wishes)
    rig.run(5)
    assert len(users.held) == sum(times for _, times, *_ in wishes)
    assert not lock.waiting() and not lock.readers and lock.owner is None


@pytest.mark.parametrize("reads", [False, True])
def test_who_has_it_alone_pays_nothing(reads):
    """A thousand turns of 5 us take 5 ms, and no more entries of the calendar than work does."""
    rig = Rig(2, TODAY)
    users = Users(rig, semaphore())
    task = users.start(reads=reads, times=1000, inside_ns=4 * US, outside_ns=1 * US)
    rig.run(1)
    assert max(users.turns(reads)) == 5 * MS
    assert task.stime_ns == 4 * MS


@pytest.mark.parametrize("kernel", [(3, 16), (5, 4), TODAY])
@pytest.mark.parametrize("count", [2, 4])
def test_writers_together_are_as_fast_as_the_lock_and_their_cpus_spin(kernel, count):
    """4 us inside, 1 us outside: 250,000 turns a second, whoever has them."""
    rig = Rig(count, kernel)
    users = Users(rig, semaphore(kernel))
    tasks = [
        users.start(reads=False, times=9999, inside_ns=4 * US, outside_ns=1 * US)
        for _ in range(count)
    ]
    rig.run(0.02)
    done = users.turns(False)
    assert len(done) / (max(done) / 1e9) == pytest.approx(250_000, rel=0.05)
    busy_ns = sum(task.utime_ns + task.stime_ns for task in tasks)
    assert busy_ns == pytest.approx(count * 20 * MS, rel=0.02)


def test_before_3_16_writers_sleep_for_each_other():
    """So they are no faster together, and the one that waits needs no CPU."""
    rig = Rig(2, (3, 10), switch_ns=2 * US)
    users = Users(rig, semaphore((3, 10)))
    tasks = [
        users.start(reads=False, times=4000, inside_ns=40 * US, outside_ns=1 * US) for _ in range(2)
    ]
    rig.run(0.04)
    assert sum(task.nvcsw for task in tasks) > 10
    busy_ns = sum(task.utime_ns + task.stime_ns for task in tasks)
    assert busy_ns < 1.2 * 40 * MS


def test_readers_share():
    rig = Rig(4, TODAY)
    users = Users(rig, semaphore())
    for _ in range(4):
        users.start(reads=True, times=1000, inside_ns=4 * US, outside_ns=1 * US)
    rig.run(1)
    assert max(users.turns(True)) == 5 * MS


@pytest.mark.parametrize(
    ("kernel", "least_ns", "most_ns"),
    [
        ((4, 4), 28 * MS, 30 * MS),
        ((5, 4), 0, 100 * US),
        ((5, 10), 0, 100 * US),
        (TODAY, 4 * MS, 12 * MS),
    ],
)
def test_writers_that_spin_starve_a_reader_until_the_handoff(kernel, least_ns, most_ns):
    """From 5.11 on until more than one tick of 4 ms is over; to 5.2 until they are done, 29 ms on.

    5.3 to 5.10 the reader spins itself, and has its turn among the writers.
    """
    rig = Rig(4, kernel, hz=250)
    users = Users(rig, semaphore(kernel))
    for number in range(3):
        users.start(
            reads=False,
            times=2500,
            inside_ns=4 * US,
            outside_ns=1 * US,
            begins_ns=number * US,
        )
    users.start(reads=True, times=1, inside_ns=4 * US, begins_ns=MS + 1)
    rig.run(1)
    [got_ns] = users.turns(True)
    assert least_ns <= got_ns - MS <= most_ns


@pytest.mark.parametrize(("kernel", "most_ns"), [((4, 4), 400 * US), (TODAY, 12 * MS)])
def test_a_writer_that_sleeps_is_not_passed_by_readers_for_ever(kernel, most_ns):
    """Readers that come behind it sleep too; from 5.11 on the last may steal, until the handoff."""
    rig = Rig(4, kernel, hz=250)
    users = Users(rig, semaphore(kernel))
    for number in range(3):
        users.start(
            reads=True,
            times=50,
            inside_ns=1 * US,
            asleep_ns=300 * US,
            begins_ns=number * 100 * US + 1,
        )
    users.start(reads=False, times=1, inside_ns=4 * US, begins_ns=MS)
    rig.run(1)
    assert users.turns(False)[0] - MS < most_ns


def test_a_downgrade_lets_the_readers_in_and_no_writer():
    rig, lock = Rig(4, TODAY), semaphore()
    users = Users(rig, lock)

    def main(task):
        yield from lock.lock(task)
        yield from sleep_ns(task, MS, TASK_UNINTERRUPTIBLE)
        lock.downgrade(task)
        rig.note("downgraded")
        yield from sleep_ns(task, MS, TASK_UNINTERRUPTIBLE)
        lock.unlock_shared(task)

    rig.sched.spawn("owner", main)
    users.start(reads=True, times=1, inside_ns=US, begins_ns=100 * US)
    users.start(reads=False, times=1, inside_ns=US, begins_ns=200 * US)
    rig.run(1)
    assert users.turns(True) == [MS + US]
    assert users.turns(False) == [2 * MS + US]


def test_waiters_are_load_and_not_iowait():
    rig, lock = Rig(2, TODAY), semaphore()
    users = Users(rig, lock)
    for reads in (False, True, False):
        users.start(reads=reads, times=1, inside_ns=US, asleep_ns=10 * MS)
    rig.run(0.005)
    assert (rig.sched.nr_uninterruptible, rig.sched.nr_iowait, lock.waiting()) == (3, 0, 2)


def test_unlocking_what_one_does_not_hold_is_an_error():
    rig, lock = Rig(), semaphore()
    one, other = (rig.sched.spawn("t", lambda task: iter(())) for _ in range(2))
    assert lock.trylock(one)
    with pytest.raises(AssertionError, match="does not hold"):
        lock.unlock(other)
    with pytest.raises(AssertionError, match="does not hold"):
        lock.downgrade(other)
    with pytest.raises(AssertionError, match="does not hold"):
        lock.unlock_shared(other)
