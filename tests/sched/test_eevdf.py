"""Earliest eligible virtual deadline first: lag, eligibility, deadlines, sleeping in debt."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.sched.eevdf import EevdfQueue, EevdfTunables, eevdf_tunables
from sim.sched.fair import nice_to_weight
from sim.sched.task import TASK_INTERRUPTIBLE, sleep_ns
from tests.sched.rig import MS, Rig, S, compute

SLICE = 3 * MS
FIRST, DELAYING = (6, 6), (6, 12)


def a_queue(*nices, delay=True):
    """A queue, and tasks of those nice values that were forked one after the other."""
    tunables = EevdfTunables(slice_ns=SLICE, delay_dequeue=delay, keep_deadline=True)
    queue = EevdfQueue(tunables, tick_ns=4 * MS)
    sched = Rig().sched
    tasks = [
        sched.processes.create(sched, f"t{i}", None, nice, nice_to_weight(nice))
        for i, nice in enumerate(nices)
    ]
    for task in tasks:
        task.gen = iter(())
        queue.place_new(task, None)
        queue.enqueue(task)
    return queue, tasks


def average(tasks):
    return Fraction(sum(t.weight * t.vruntime for t in tasks), sum(t.weight for t in tasks))


# -- The choice, against its definition


@settings(deadline=None)
@given(
    st.lists(st.integers(-5, 10), min_size=1, max_size=6),
    st.lists(st.integers(1, 9 * MS), min_size=1, max_size=30),
)
def test_the_eligible_task_with_the_earliest_deadline_runs(nices, runs):
    queue, tasks = a_queue(*nices)
    for ran in runs:
        mean = average(tasks)
        earliest = min(task.deadline for task in tasks if task.vruntime <= mean)
        task = queue.pick_next()
        assert task.vruntime <= mean
        assert task.deadline == earliest
        queue.account(task, ran)
        queue.requeue(task)


STEPS = st.tuples(st.sampled_from(["turn", "sleep", "wake"]), st.integers(1, 9 * MS))


@settings(deadline=None)
@given(
    st.lists(st.integers(-5, 10), min_size=2, max_size=5),
    st.lists(STEPS, max_size=40),
    st.booleans(),
)
def test_nobody_is_lost_whoever_sleeps_and_wakes(nices, steps, delay):
    queue, tasks = a_queue(*nices, delay=delay)
    asleep = []
    for step, ns in steps:
        if step == "wake" and asleep:
            task = asleep.pop(0)
            queue.place_woken(task, TASK_INTERRUPTIBLE, 0)
            queue.enqueue(task)
        elif queue.nr_queued:
            task = queue.pick_next()
            queue.account(task, ns)
            if step == "sleep":
                queue.put_to_sleep(task)
                asleep.append(task)
            else:
                queue.requeue(task)
        awake = [task for task in tasks if task not in asleep]
        assert sorted(queue.waiting(), key=str) == sorted(awake, key=str)
        assert queue.load == sum(task.weight for task in awake)


# -- Lag


@pytest.mark.parametrize("kernel", [FIRST, DELAYING, (6, 18)])
@settings(max_examples=15, deadline=None)
@given(nices=st.lists(st.integers(-5, 10), min_size=2, max_size=6))
def test_no_hog_is_ever_further_from_its_share_than_a_slice_and_a_tick(kernel, nices):
    """Stoica et al. 1995, theorem 1: lag is bounded by the largest request; ours end at ticks."""
    rig = Rig(kernel=kernel, hz=1000)
    hogs = rig.hogs(*nices)
    weights = sum(hog.weight for hog in hogs)
    bound = eevdf_tunables(kernel, 1).slice_ns + MS
    for _ in range(200):
        rig.run(0.005)
        rig.sched.update()
        for hog in hogs:
            fair = rig.calendar.now * hog.weight / weights
            assert abs(fair - hog.utime_ns) <= 2 * bound


def test_lag_outlives_a_sleep():
    queue, (hog, sleeper) = a_queue(0, 0)
    for task in (hog, sleeper):  # Both have had a turn; the sleeper a shorter one.
        assert queue.pick_next() is task
        queue.account(task, 2 * MS if task is hog else MS)
        if task is hog:
            queue.requeue(task)
    owed = average([hog, sleeper]) - sleeper.vruntime
    queue.put_to_sleep(sleeper)
    assert owed == sleeper.vlag == MS // 2
    assert queue.pick_next() is hog
    queue.account(hog, 700_000)
    queue.place_woken(sleeper, TASK_INTERRUPTIBLE, 0)
    assert average([hog, sleeper]) - sleeper.vruntime == owed


def test_debt_is_paid_while_asleep_only_as_the_average_moves_on():
    queue, (spender, hog) = a_queue(0, 0)
    assert queue.pick_next() is spender
    queue.account(spender, 4 * MS)
    queue.put_to_sleep(spender)
    assert spender.sched_delayed
    assert queue.pick_next() is hog
    queue.account(hog, MS)
    queue.place_woken(spender, TASK_INTERRUPTIBLE, 0)
    assert spender.vruntime == 4 * MS  # as it was: V is at 2.5 ms
    assert not spender.sched_delayed


def test_a_debt_paid_is_no_credit():
    queue, (spender, hog) = a_queue(0, 0)
    queue.pick_next()
    queue.account(spender, 4 * MS)
    queue.put_to_sleep(spender)
    queue.pick_next()
    queue.account(hog, 10 * MS)
    queue.place_woken(spender, TASK_INTERRUPTIBLE, 0)
    assert spender.vruntime == hog.vruntime


def test_debts_end_when_nobody_wants_to_run():
    queue, (spender, other) = a_queue(0, 0)
    for task, ran in ((spender, 4 * MS), (other, MS)):
        assert queue.pick_next() is task
        queue.account(task, ran)
        queue.put_to_sleep(task)
    assert not spender.sched_delayed
    assert (spender.vlag, other.vlag) == (0, 3 * MS // 2)


def test_lag_that_is_carried_along_is_bounded_by_two_slices():
    queue, (spender, _hog) = a_queue(0, 0, delay=False)
    queue.pick_next()
    queue.account(spender, S)
    queue.put_to_sleep(spender)
    assert spender.vlag == -2 * SLICE


# -- On a CPU


def turns(task, work):
    """A program that computes for `work` and sleeps for next to nothing, for ever."""
    while True:
        task.charge_user(work)
        yield
        yield from sleep_ns(task, 1_000, TASK_INTERRUPTIBLE)


@pytest.mark.parametrize("kernel", [FIRST, DELAYING])
def test_short_sleeps_win_no_more_than_the_share(kernel):
    rig = Rig(kernel=kernel)
    dozer = rig.sched.spawn("dozer", lambda task: turns(task, 6 * MS))
    hog = rig.hogs(0)[0]
    rig.run(20)
    assert rig.shares([dozer, hog])[0] == pytest.approx(0.5, abs=0.02)


def test_who_wakes_waits_for_a_slice_at_most():
    """One hog: its slice, rounded up to a tick, is the longest that a sleeper waits."""
    rig = Rig(kernel=DELAYING, hz=250)
    rig.hogs(0)
    waits = []

    def sleeper(task):
        while True:
            yield from sleep_ns(task, 7 * MS, TASK_INTERRUPTIBLE)
            before = rig.calendar.now
            task.charge_user(2 * MS)
            yield
            waits.append(rig.calendar.now - before - 2 * MS)

    rig.sched.spawn("sleeper", sleeper)
    rig.run(20)
    assert len(waits) > 1000
    assert max(waits) <= 4 * MS + eevdf_tunables(DELAYING, 1).slice_ns


def test_a_new_task_starts_on_the_average():
    """No START_DEBIT: a fork gets its first turn within a slice of the other's."""
    rig = Rig(kernel=DELAYING)
    hogs = rig.hogs(0)
    rig.run(1)
    new = rig.sched.spawn("new", compute(S))
    rig.run(0.1)
    rig.sched.update()
    assert new.utime_ns == pytest.approx(50 * MS, abs=8 * MS)
    assert hogs[0].utime_ns == pytest.approx(S + 50 * MS, abs=8 * MS)


def test_slices_grow_with_the_number_of_cpus():
    assert eevdf_tunables((6, 6), 1).slice_ns == 750_000
    assert eevdf_tunables((6, 15), 2).slice_ns == 1_400_000
    assert eevdf_tunables((6, 15), 64).slice_ns == 2_800_000


def test_a_new_task_asks_for_half_a_slice_at_first():
    """PLACE_DEADLINE_INITIAL: who has just come makes room soon."""
    _, [first, nice] = a_queue(0, 5)
    assert first.deadline - first.vruntime == SLICE // 2
    assert nice.deadline - nice.vruntime == SLICE * 1024 // 335 // 2
