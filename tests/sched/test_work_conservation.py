"""What any scheduler owes any set of tasks: no CPU idle beside a waiting task, a share each."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.sched.task import TASK_INTERRUPTIBLE, sleep_ns
from tests.sched.rig import CFS, MODERN, MS, RELEASES, US, Rig

TICK_MS = 4  # at 250 Hz

tasks = st.lists(
    st.tuples(
        st.integers(100 * US, 30 * MS),  # computing
        st.integers(0, 30 * MS),  # and sleeping in turns; 0: never
        st.integers(-10, 10),
    ),
    min_size=1,
    max_size=12,
)


def in_turns(compute_ns, sleep, offset_ns):
    def main(task):
        yield from sleep_ns(task, offset_ns, TASK_INTERRUPTIBLE)
        while True:
            task.charge_user(compute_ns)
            yield
            if sleep:
                yield from sleep_ns(task, sleep, TASK_INTERRUPTIBLE)

    return main


def start(rig, programs):
    return [
        rig.sched.spawn("task", in_turns(compute_ns, sleep, number * MS), nice=nice)
        for number, (compute_ns, sleep, nice) in enumerate(programs)
    ]


@settings(max_examples=40, deadline=None)
@given(tasks, st.integers(2, 4), st.sampled_from(RELEASES))
def test_no_cpu_idles_for_longer_than_some_ticks_while_a_task_waits(programs, cpus, kernel):
    """An idle CPU looks at each tick; what ran there just now is left alone for a tick or two, and
    loads are those of the last tick: 2.6.16 needs up to five of them."""
    rig = Rig(cpus, kernel)
    start(rig, programs)
    since = {}  # a pair of an idle CPU and one with a queue -> when it was first seen
    for ms in range(400):
        rig.run(0.001)
        rqs = rig.sched.rqs
        idle = [rq.cpu for rq in rqs if rq.curr is None]
        waits = [rq.cpu for rq in rqs if rq.queue.nr_queued]
        pairs = {(one, other) for one in idle for other in waits}
        since = {pair: since.get(pair, ms) for pair in sorted(pairs)}
        assert all(ms - first <= 6 * TICK_MS for first in since.values())


@settings(max_examples=40, deadline=None)
@given(tasks, st.integers(1, 4), st.sampled_from(RELEASES))
def test_what_is_computed_is_what_the_cpus_were_busy_and_nobody_computes_twice_at_once(
    programs, cpus, kernel
):
    rig = Rig(cpus, kernel)
    started = start(rig, programs)
    rig.run(0.5)
    busy_ns = sum(cpu.busy_ns() for cpu in rig.sched.cpu_times)
    assert busy_ns == sum(task.utime_ns + task.stime_ns for task in started)
    for task in started:
        assert task.utime_ns <= rig.calendar.now
    never_sleep = sum(not sleep for _, sleep, _ in programs)
    if never_sleep >= cpus:  # Then nobody idles, but while tasks are still spread.
        assert busy_ns >= 0.85 * cpus * rig.calendar.now


@pytest.mark.parametrize("kernel", [CFS, MODERN])
@settings(max_examples=20, deadline=None)
@given(nices=st.lists(st.integers(-5, 10), min_size=2, max_size=6))
def test_no_hog_is_further_from_its_share_than_a_turn_of_all_and_a_tick_each(kernel, nices):
    """CFS: all run once in a latency (20 ms on one CPU at most), each turn up to a tick longer."""
    rig = Rig(kernel=kernel, hz=1000)
    hogs = rig.hogs(*nices)
    weights = sum(hog.weight for hog in hogs)
    bound_ns = 20 * MS + len(nices) * MS
    for _ in range(100):
        rig.run(0.007)
        rig.sched.update()
        for hog in hogs:
            fair_ns = rig.calendar.now * hog.weight / weights
            assert abs(fair_ns - hog.utime_ns) <= bound_ns
