"""Running tasks that share a core beside an idle one: they get it within five ticks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.sched.balance import LOOKS
from sim.sched.syscalls import SchedAttr
from sim.sched.task import TASK_INTERRUPTIBLE, sleep_ns
from tests.sched.rig import CFS, EEVDF, MODERN, MS, US, compute
from tests.sched.test_smt import SmtRig, finish_s, on

TICK_MS = 4  # at 250 Hz


def four_tasks(kernel, allowed=None):
    """Two short and two long tasks, each kind on a core of its own; return the long ones."""
    rig = SmtRig(4, kernel)
    short = [on(rig, cpu, compute(100 * MS)) for cpu in (0, 2)]
    terms = SchedAttr(allowed=frozenset([1, 3]))
    long = [rig.sched.spawn("t", compute(500 * MS), None, 0, terms) for _ in range(2)]
    for task in long:
        task.allowed = allowed
    return rig, short, long


@pytest.mark.parametrize("kernel", [(2, 6, 18), CFS, MODERN, EEVDF])
def test_one_of_two_on_a_core_moves_to_the_core_that_becomes_idle(kernel):
    """160 ms for the short ones; 400 ms of work are left then, of it 5 ticks at most shared."""
    rig, short, long = four_tasks(kernel)
    assert finish_s(rig, *short) == pytest.approx([0.16, 0.16], abs=0.002)
    assert sorted(task.cpu for task in long) == [1, 3]
    assert finish_s(rig, *long) == pytest.approx([0.565, 0.565], abs=0.008)


def test_who_may_not_run_there_stays():
    rig, short, long = four_tasks(MODERN, allowed=frozenset([1, 3]))
    finish_s(rig, *short)
    assert finish_s(rig, *long) == pytest.approx([0.8, 0.8], abs=0.003)


def test_a_core_that_is_idle_beside_no_full_one_does_not_look():
    rig = SmtRig(4, MODERN)
    rig.hogs(0)
    rig.run(1)
    before = rig.calendar.entries_run()
    rig.run(1)
    assert rig.calendar.entries_run() - before <= 1000 / 50 + 2  # The hog's own bursts.


programs = st.lists(
    st.tuples(st.integers(200 * US, 60 * MS), st.integers(0, 60 * MS)), min_size=1, max_size=8
)


def in_turns(compute_ns, rest_ns, offset_ns):
    def main(task):
        yield from sleep_ns(task, offset_ns, TASK_INTERRUPTIBLE)
        while True:
            task.charge_user(compute_ns)
            yield
            if rest_ns:
                yield from sleep_ns(task, rest_ns, TASK_INTERRUPTIBLE)

    return main


@settings(max_examples=40, deadline=None)
@given(programs, st.sampled_from([4, 6, 8]), st.sampled_from([(2, 6, 18), CFS, MODERN, EEVDF]))
def test_no_core_is_idle_for_long_beside_one_that_two_share(given_programs, cpus, kernel):
    rig = SmtRig(cpus, kernel)
    tasks = [
        rig.sched.spawn("t", in_turns(work, rest, number * MS))
        for number, (work, rest) in enumerate(given_programs)
    ]
    cores = [(cpu, cpu + cpus // 2) for cpu in range(cpus // 2)]
    since = {}
    for ms in range(300):
        rig.run(0.001)
        busy = [sum(rig.sched.rqs[cpu].curr is not None for cpu in core) for core in cores]
        waits = any(rq.queue.nr_queued for rq in rig.sched.rqs)
        pairs = {
            (one, other)
            for one in range(len(cores))
            for other in range(len(cores))
            if not waits and busy[one] == 0 and busy[other] == 2
        }
        since = {pair: since.get(pair, ms) for pair in sorted(pairs)}
        limit_ms = (LOOKS + 2) * TICK_MS * (cpus // 2)  # One moves at a time.
        assert all(ms - first <= limit_ms for first in since.values())
    rig.sched.update()
    ran_ns = sum(task.utime_ns + task.stime_ns for task in tasks)
    assert ran_ns == sum(times.busy_ns() for times in rig.sched.cpu_times)
