"""Earliest eligible virtual deadline first: lag, eligibility, deadlines, sleeping in debt."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.sched.eevdf import EevdfQueue, eevdf_tunables
from sim.sched.fair import nice_to_weight
from sim.sched.syscalls import SchedAttr
from sim.sched.task import TASK_INTERRUPTIBLE, sleep_ns
from tests.sched.rig import MS, Rig, S, compute, hog

SLICE = 3 * MS
FIRST, DELAYING = (6, 6), (6, 12)


def a_queue(*nices, delay=True):
    """A queue, and tasks of those nice values that were forked one after the other."""
    tunables = replace(eevdf_tunables((6, 12), 8), slice_ns=SLICE, delay_dequeue=delay)
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
        for one in hogs:
            fair = rig.calendar.now * one.weight / weights
            assert abs(fair - one.utime_ns) <= 2 * bound


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


# -- Slices of a task's own


def ask(rig, slice_ns, main, nice=0):
    return rig.sched.spawn("asker", main, None, nice, SchedAttr(slice_ns=slice_ns))


SLICES = st.sampled_from([0, MS // 10, MS, 10 * MS, 100 * MS])


@settings(deadline=None, max_examples=20)
@given(
    st.sampled_from([(6, 12), (6, 17)]),
    st.lists(st.tuples(st.integers(-5, 10), SLICES), min_size=2, max_size=4),
)
def test_a_slice_gives_no_more_cpu_than_the_weight_and_debts_of_a_slice_at_most(kernel, wishes):
    """Stoica et al. 1995, theorem 1: lag is bounded by the task's own request or the largest."""
    rig = Rig(kernel=kernel, hz=1000)
    hogs = [ask(rig, own, hog, nice) for nice, own in wishes]
    weights = sum(one.weight for one in hogs)
    usual = eevdf_tunables(kernel, 1).slice_ns
    bound = max(own or usual for _, own in wishes) + MS
    for _ in range(100):
        rig.run(0.02)
        rig.sched.update()
        for one in hogs:
            fair = rig.calendar.now * one.weight / weights
            assert abs(fair - one.utime_ns) <= 2 * bound


def longest_wait_ms(kernel, slice_ns):
    """How long a hog is without a CPU at the most, beside two that ask for 10 ms."""
    rig = Rig(kernel=kernel, hz=1000)
    asker, *_ = [ask(rig, own, hog) for own in (slice_ns, 10 * MS, 10 * MS)]
    longest = waited = before = 0
    for _ in range(3000):
        rig.run(0.001)
        rig.sched.update()
        waited = waited + 1 if asker.utime_ns == before else 0
        before = asker.utime_ns
        longest = max(longest, waited)
    return longest


@pytest.mark.parametrize(("kernel", "expected"), [((6, 12), (10, 20, 100)), ((6, 17), (2, 20, 20))])
def test_who_asks_for_shorter_turns_has_them_more_often(kernel, expected):
    """Up to 6.16 a turn lasts as long as was asked for, from 6.17 on as the shortest of all asked.

    So beside two of 10 ms: one turn, two turns; 50 ms are paid for with 100, or come in fifths.
    """
    waits = [longest_wait_ms(kernel, own) for own in (MS // 2, 10 * MS, 50 * MS)]
    assert waits == pytest.approx(expected, abs=2)


def a_turn(kernel, nice=0, own=0, mean_ms=0.0):
    """A current task 1 ms into its turn, owed `mean_ms` ms, and one that wakes with no lag."""
    queue = EevdfQueue(replace(eevdf_tunables(kernel, 1), slice_ns=SLICE), tick_ns=MS)
    sched = Rig().sched
    curr, other, woken = (
        sched.processes.create(sched, name, None, level, nice_to_weight(level))
        for name, level in (("curr", 0), ("other", 0), ("woken", nice))
    )
    woken.slice_ns = own
    queue.run_alone(curr)
    curr.deadline = SLICE
    queue.run_alone(curr)
    queue.account(curr, MS)
    other.vruntime = MS + round(2 * mean_ms * MS)
    other.deadline = other.vruntime + SLICE
    queue.enqueue(other)
    queue.place_woken(woken, TASK_INTERRUPTIBLE, 0)
    return queue, curr, woken


@pytest.mark.parametrize(
    ("kernel", "own", "preempts"),
    [
        ((6, 6), 0, False),
        ((6, 6), MS // 10, False),  # It would, were there PREEMPT_SHORT.
        ((6, 12), 0, False),
        ((6, 12), MS // 10, True),
        ((6, 12), 2 * MS + MS // 2, False),  # Shorter, and its deadline is later.
        ((6, 17), MS // 10, True),
    ],
)
def test_who_asks_for_less_and_is_urgent_ends_the_protection_of_who_runs(kernel, own, preempts):
    queue, curr, woken = a_turn(kernel, own=own)
    assert queue.preempts(curr, woken) is preempts


@pytest.mark.parametrize(("kernel", "left_ms"), [((6, 6), 2), ((6, 12), 0.5), ((6, 16), 0.5)])
def test_who_has_lost_protection_runs_while_it_is_owed(kernel, left_ms):
    """did_preempt_short(): a tick looks; to 6.11 the slice is all that ends a turn."""
    queue, curr, woken = a_turn(kernel, own=MS // 10, mean_ms=0.25)
    queue.preempts(curr, woken)
    assert queue.slice_left_ns(curr) == left_ms * MS


def test_who_is_alone_loses_protection_with_its_first_slice():
    """RUN_TO_PARITY is for a slice: then who weighs more, and is due earlier, need not wait."""
    for ran_ms, preempts in ((1, False), (4, True)):
        queue, [curr] = a_queue(0)
        sched = Rig().sched
        heavy = sched.processes.create(sched, "heavy", None, -10, nice_to_weight(-10))
        assert queue.pick_next() is curr
        queue.account(curr, ran_ms * MS)
        queue.place_woken(heavy, TASK_INTERRUPTIBLE, 0)
        assert heavy.deadline < curr.deadline
        assert queue.preempts(curr, heavy) is preempts


def owed_and_late(kernel):
    """A current task in a turn, and another that waits with a later deadline and a debt."""
    queue = EevdfQueue(replace(eevdf_tunables(kernel, 1), slice_ns=SLICE), tick_ns=MS)
    sched = Rig().sched
    curr, other = (sched.processes.create(sched, name, None, 0, 1024) for name in "co")
    curr.deadline, other.vruntime, other.deadline = SLICE, 8 * MS, 8 * MS + SLICE
    queue.run_alone(curr)
    queue.enqueue(other)
    return queue, curr, sched


@pytest.mark.parametrize("kernel", [FIRST, DELAYING, (6, 17)])
def test_who_is_picked_again_is_not_protected_anew(kernel):
    """set_protect_slice() is for who was not current before."""
    for switches in (False, True):
        queue, curr, sched = owed_and_late(kernel)
        queue.account(curr, SLICE)
        queue.requeue(curr)
        if switches:
            queue.switched_away()
        assert queue.pick_next() is curr
        woken = sched.processes.create(sched, "woken", None, -10, nice_to_weight(-10))
        woken.vruntime, woken.deadline = curr.vruntime, curr.vruntime + MS
        assert queue.preempts(curr, woken) is not switches


def test_without_protection_each_tick_looks_once_since_6_17():
    """update_curr(): "resched || !protect_slice(curr)", after it has run."""
    queue, curr, _ = owed_and_late((6, 17))
    queue.account(curr, SLICE)
    queue.requeue(curr)
    assert queue.pick_next() is curr
    assert queue.slice_left_ns(curr) == 1
    queue.account(curr, 1)
    assert queue.slice_left_ns(curr) < 0


@pytest.mark.parametrize(("own", "left_ms"), [(0, 2), (MS // 2, 0.5), (3 * MS // 2, 1.5)])
def test_who_asks_for_less_and_must_wait_shortens_the_protection_since_6_17(own, left_ms):
    """update_protect_slice(): one shortest slice from now on."""
    queue, curr, woken = a_turn((6, 17), own=own)
    woken.vruntime += 5 * MS
    assert not queue.preempts(curr, woken)
    assert queue.slice_left_ns(curr) == left_ms * MS


@pytest.mark.parametrize(("kernel", "left_ms"), [((6, 16), 3), ((6, 17), 1)])
def test_protection_is_for_the_shortest_slice_of_all_since_6_17(kernel, left_ms):
    queue = EevdfQueue(replace(eevdf_tunables(kernel, 1), slice_ns=SLICE), tick_ns=MS)
    sched = Rig().sched
    usual, short = (sched.processes.create(sched, name, None, 0, 1024) for name in "us")
    short.slice_ns = MS
    queue.place_new(short, None)
    queue.enqueue(short)
    usual.deadline = SLICE
    queue.run_alone(usual)
    assert queue.slice_left_ns(usual) == left_ms * MS


def test_a_child_asks_for_its_parent_s_slice():
    rig = Rig(kernel=DELAYING)
    children = []

    def parent(task):
        children.append(rig.sched.spawn("child", hog, task))
        return
        yield

    ask(rig, 5 * MS, parent)
    rig.run(0.01)
    assert [child.slice_ns for child in children] == [5 * MS]


def test_a_change_of_weight_leaves_what_is_owed_and_the_rest_of_turn_and_protection():
    """reweight_entity(): in time they are the same, in virtual time half of it."""
    queue = EevdfQueue(replace(eevdf_tunables((6, 17), 1), slice_ns=SLICE), tick_ns=MS)
    sched = Rig().sched
    curr, short = (sched.processes.create(sched, name, None, 0, 1024) for name in "cs")
    short.slice_ns = MS
    queue.place_new(short, None)
    queue.enqueue(short)
    curr.deadline = SLICE
    queue.run_alone(curr)
    queue.account(curr, 400_000)
    owed = (average([curr, short]) - curr.vruntime) * curr.weight
    queue.reweight(curr, 2048)
    assert queue.slice_left_ns(curr) == 600_000
    assert curr.deadline - curr.vruntime == (SLICE - 400_000) // 2
    before = Fraction(400_000, 2)  # where the average was, and is not told anew
    assert (before - curr.vruntime) * curr.weight == owed
