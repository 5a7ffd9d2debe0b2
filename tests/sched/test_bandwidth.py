"""Quotas of CPU time: what is used, who is throttled, and for how long."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.sched.bandwidth import Bandwidth
from sim.sched.loadavg import LoadAverage
from sim.sched.syscalls import SchedAttr
from sim.sched.task import TASK_INTERRUPTIBLE, sleep_ns
from sim.sched.task_group import TaskGroup
from tests.sched.rig import MODERN, MS, Rig, S, compute, hog
from tests.sched.test_groups import check_counts, in_turns, used_s

KERNELS = [(3, 2), MODERN, (5, 4), (6, 12), (6, 18, 44)]
PERIOD_MS = 100


def limited(rig, quota_ms, *, period_ms=PERIOD_MS, burst_ms=0, parent=None):
    bandwidth = Bandwidth(
        rig.calendar,
        rig.sched.kernel,
        quota_ns=quota_ms * MS,
        period_ns=period_ms * MS,
        burst_ns=burst_ms * MS,
    )
    group = TaskGroup("limited", 1024, parent, bandwidth)
    rig.sched.add_groups([group] if parent is None else [parent, group])
    return group


def spawn(rig, group, count=1, main=hog):
    return [rig.sched.spawn("t", main, None, 0, SchedAttr(group=group)) for _ in range(count)]


@settings(max_examples=30, deadline=None)
@given(
    hogs=st.integers(1, 6),
    cpus=st.integers(1, 4),
    quota_ms=st.integers(5, 500),
    kernel=st.sampled_from(KERNELS),
)
def test_n_hogs_use_the_quota_and_are_throttled_for_the_rest(hogs, cpus, quota_ms, kernel):
    """By hand: k = min(n, c) CPUs want k T and get q T / p; what they don't get is throttled time.

    Within a tick a CPU, and a slice each period where 3.2 to 5.3 let slices expire. In the first
    period a hog may start on a CPU that seems idle because the others of its group are throttled.
    """
    rig = Rig(cpus, kernel)
    group = limited(rig, quota_ms)
    tasks = spawn(rig, group, hogs)
    seconds = 5
    rig.run(seconds)
    busy = min(hogs, cpus)
    fair_s = min(seconds * quota_ms / PERIOD_MS, seconds * busy)
    lost_s = busy * 0.005 * seconds * 1000 / PERIOD_MS if kernel < (5, 4) else 0
    assert fair_s - lost_s - 0.01 * busy <= used_s(tasks) <= fair_s + 0.005 * busy
    bandwidth = group.bandwidth
    not_yet_ns = sum(
        rig.calendar.now - rq.local.throttled_since_ns for rq in group.rqs if rq.throttled
    )
    throttled_s = (bandwidth.throttled_ns + not_yet_ns) / S
    assert throttled_s == pytest.approx(seconds * busy - used_s(tasks), abs=0.03 + 0.1 * busy)
    assert bandwidth.nr_throttled <= bandwidth.nr_periods
    assert throttled_s <= seconds * busy - used_s(tasks) + 0.01
    if quota_ms < (busy - 0.5) * PERIOD_MS:
        assert bandwidth.nr_throttled >= bandwidth.nr_periods - 1


@pytest.mark.parametrize("kernel", KERNELS)
def test_with_a_quota_of_what_they_want_nobody_is_throttled(kernel):
    """Before 5.4 quotas want a slice of each CPU more, which is lost when a period ends."""
    rig = Rig(2, kernel)
    group = limited(rig, 2 * PERIOD_MS + (2 * 5 if kernel < (5, 4) else 0))
    tasks = spawn(rig, group, 2)
    rig.run(5)
    assert used_s(tasks) == pytest.approx(10, rel=0.01)
    assert group.bandwidth.nr_throttled == 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_job_longer_than_its_quota_waits_for_the_next_periods(kernel):
    """50 ms with 20 in 100, by ticks of 4: all of two periods, and 10 ms of the third."""
    rig = Rig(1, kernel)
    group = limited(rig, 20)
    [job] = spawn(rig, group, 1, compute(50 * MS))
    rig.run(0.205)
    assert job.gen is not None
    rig.run(0.01)
    assert job.gen is None
    assert job.utime_ns == 50 * MS


@pytest.mark.parametrize("kernel", KERNELS)
def test_who_is_throttled_leaves_the_cpu_to_others_and_the_load_average(kernel):
    rig = Rig(1, kernel)
    group = limited(rig, 20)
    inside = spawn(rig, group, 3)
    [outside] = rig.hogs(0)
    loads = []
    for _ in range(200):
        rig.run(0.01)
        loads.append(LoadAverage(rig.sched).active())
    assert [used_s(inside), used_s([outside])] == pytest.approx([0.4, 1.6], abs=0.01)
    assert sorted(set(loads)) == [1, 4]
    assert sum(loads) / len(loads) == pytest.approx(1 + 3 * 0.4, abs=0.15)


def test_what_was_not_used_may_be_saved_up_to_the_burst():
    """Idle for a second, then a job of 50 ms with a quota of 20 and a burst of 40: at once."""

    def later(task):
        yield from sleep_ns(task, S, TASK_INTERRUPTIBLE)
        task.charge_user(50 * MS)
        yield

    done_ns = {}
    for burst_ms in (0, 40):
        rig = Rig(1, (6, 12))
        group = limited(rig, 20, burst_ms=burst_ms)
        warm = spawn(rig, group, 1, in_turns(MS, 15 * MS))  # Periods go by, and none is used up.
        [job] = spawn(rig, group, 1, later)
        while job.gen is not None:
            rig.run(0.001)
        done_ns[burst_ms] = rig.calendar.now - S
        assert warm[0].utime_ns > 0
    assert done_ns[40] < 90 * MS
    assert done_ns[0] > 190 * MS


def test_time_left_on_a_cpu_is_lost_at_the_end_of_a_period_before_5_4():
    """A job of 1 ms on each of four CPUs: a slice of 5 ms each is more than the quota."""
    used = {}
    for kernel in ((4, 4), (5, 4)):
        rig = Rig(4, kernel)
        group = limited(rig, 10)
        for cpu in range(4):
            terms = SchedAttr(group=group, allowed=frozenset([cpu]))
            rig.sched.spawn("t", in_turns(3 * MS, 97 * MS), None, 0, terms)
        rig.run(10)
        used[kernel] = group.usage_ns
    assert used[4, 4] <= used[5, 4] <= 10 * 101 * MS


def test_the_quota_of_a_parent_holds_its_children():
    rig = Rig(2, MODERN)
    parent = TaskGroup(
        "p",
        1024,
        None,
        Bandwidth(rig.calendar, MODERN, quota_ns=30 * MS, period_ns=100 * MS),
    )
    child = TaskGroup("p/c", 1024, parent)
    rig.sched.add_groups([parent, child])
    tasks = spawn(rig, child, 3)
    rig.run(5)
    assert used_s(tasks) == pytest.approx(1.5, rel=0.02)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(MS // 10, 30 * MS), st.integers(0, 30 * MS)),
        min_size=1,
        max_size=8,
    ),
    st.integers(1, 3),
    st.integers(1, 150),
    st.sampled_from([10, 50, 100]),
    st.sampled_from(KERNELS),
)
def test_no_group_has_more_than_its_quota_and_no_cpu_idles_beside_who_may_run(
    drawn, cpus, quota_ms, period_ms, kernel
):
    """A CPU may run over by a tick, which the next period pays."""
    rig = Rig(cpus, kernel)
    group = limited(rig, quota_ms, period_ms=period_ms)
    for inside, compute_ns, rest_ns in drawn:
        terms = SchedAttr(group=group if inside else None)
        rig.sched.spawn("t", in_turns(compute_ns, rest_ns), None, 0, terms)
    idle_beside = {}
    for step in range(300):
        rig.run(0.002)
        for rq in rig.sched.rqs:
            check_counts(rq)
            assert rq.curr is not None or not rq.queue.nr_queued
        idle = [rq.cpu for rq in rig.sched.rqs if rq.curr is None]
        pairs = {
            (cpu, other.cpu)
            for cpu in idle
            for other in rig.sched.rqs
            if any(not rig.sched.rqs[cpu].queue.is_throttled(t) for t in other.queue.waiting())
        }
        idle_beside = {pair: idle_beside.get(pair, step) for pair in sorted(pairs)}
        assert all(2 * (step - first) <= 24 for first in idle_beside.values())
    rig.sched.update()
    periods = rig.calendar.now // (period_ms * MS) + 1
    assert group.usage_ns <= periods * quota_ms * MS + cpus * 4 * MS


@pytest.mark.parametrize("kernel", [(3, 2), MODERN])
def test_what_sleepers_do_not_need_of_a_slice_goes_to_who_is_throttled(kernel):
    """20 ms, of which three CPUs take a slice of 5 ms each for 1 ms of work: 5 ms would be left to
    the hog on the fourth. They keep 1 ms each, so it has 20 - 3 x 2."""
    rig = Rig(4, kernel)
    group = limited(rig, 20)
    for cpu in range(1, 4):
        terms = SchedAttr(group=group, allowed=frozenset([cpu]))
        rig.sched.spawn("t", in_turns(MS, 99 * MS), None, 0, terms)
    last = rig.sched.spawn("hog", hog, None, 0, SchedAttr(group=group, allowed=frozenset([0])))
    rig.run(10)
    assert last.utime_ns / (10 * 10 * MS) == pytest.approx(14, abs=2)
