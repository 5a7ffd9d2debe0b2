"""Two threads of a core: what they take from each other, and who is put where."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.fs.proc.sys_cpu import render_cpu_files
from sim.sched.capacity import ClockedSched, Power
from sim.sched.init import cores_of
from sim.sched.params import SchedParams
from sim.sched.smt import SmtParams, sibling_of
from sim.sched.syscalls import SchedAttr
from sim.sched.task import TASK_INTERRUPTIBLE, sleep_ns
from tests.sched.clocks import ClockedRig, clock
from tests.sched.rig import EEVDF, MODERN, MS, RELEASES, Rig, S, compute

THREADS = SmtParams()


class SmtRig(ClockedRig):
    """Cores of two threads, at one clock."""

    def __init__(self, cpus=2, kernel=MODERN, *, smt=THREADS, cpufreq=None):
        Rig.__init__(self, cpus, kernel)
        power = Power(cpufreq, smt=smt)
        params = SchedParams(context_switch_ns=0)
        self.sched = ClockedSched(self.calendar, cpus, kernel, params, power=power)


def on(rig, cpu, main):
    return rig.sched.spawn("t", main, None, 0, SchedAttr(allowed=frozenset([cpu])))


def finish_s(rig, *tasks):
    """Return when each is done, to the tick of the clock that looks: 1 ms."""
    done = {}
    while len(done) < len(tasks):
        rig.run(0.001)
        for task in tasks:
            if task.gen is None:
                done.setdefault(task.pid, rig.calendar.now / S)
    return [done[task.pid] for task in tasks]


def test_two_on_one_core_take_1_6_times_as_long_as_one():
    alone = SmtRig()
    assert finish_s(alone, on(alone, 0, compute(500 * MS))) == [pytest.approx(0.5, abs=0.002)]
    pair = SmtRig()
    tasks = [on(pair, cpu, compute(500 * MS)) for cpu in (0, 1)]
    assert finish_s(pair, *tasks) == pytest.approx([0.8, 0.8], abs=0.002)


def test_who_is_left_alone_has_the_whole_core_again():
    """200 ms of work take the short one 320 ms; the other has 300 ms left then: 620 ms."""
    rig = SmtRig()
    tasks = [on(rig, 0, compute(200 * MS)), on(rig, 1, compute(500 * MS))]
    assert finish_s(rig, *tasks) == pytest.approx([0.32, 0.62], abs=0.002)


def test_the_kernel_counts_full_time_for_half_a_core():
    rig = SmtRig()
    tasks = [on(rig, cpu, compute(500 * MS)) for cpu in (0, 1)]
    finish_s(rig, *tasks)
    assert rig.cpu_s("user_ns") == pytest.approx(1.6, abs=0.002)


def test_threads_that_cost_each_other_nothing_are_cpus():
    rig = SmtRig(smt=SmtParams(pair_throughput=2.0))
    tasks = [on(rig, cpu, compute(300 * MS)) for cpu in (0, 1)]
    assert finish_s(rig, *tasks) == pytest.approx([0.3, 0.3], abs=0.002)


def test_a_core_at_half_the_clock_is_half_as_fast_with_both_threads_too():
    rig = SmtRig(cpufreq=clock())
    tasks = [on(rig, cpu, compute(100 * MS)) for cpu in (0, 1)]
    assert finish_s(rig, *tasks) == pytest.approx([0.32, 0.32], abs=0.002)


@pytest.mark.parametrize("kernel", RELEASES)
def test_as_many_hogs_as_cores_have_a_core_each(kernel):
    rig = SmtRig(8, kernel)
    tasks = [rig.sched.spawn("t", compute(500 * MS)) for _ in range(4)]
    assert finish_s(rig, *tasks) == pytest.approx([0.5] * 4, abs=0.002)


@pytest.mark.parametrize("kernel", [(2, 6, 32), MODERN, EEVDF])
def test_who_wakes_and_finds_its_cpu_taken_goes_to_a_whole_core(kernel):
    rig = SmtRig(8, kernel)

    def late(task):
        yield from sleep_ns(task, 10 * MS, TASK_INTERRUPTIBLE)
        task.charge_user(100 * MS)
        yield

    woken = rig.sched.spawn("late", late)
    rig.run(0.001)
    assert woken.cpu == 0
    for cpu in (0, 1):
        on(rig, cpu, compute(S))
    rig.run(0.05)
    assert rig.sched.rqs[2].curr is woken


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(MS, 20 * MS), st.integers(0, 20 * MS)),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from(RELEASES),
)
def test_work_done_is_time_times_the_share_of_the_core(drawn, kernel):
    """Of each thread: what its tasks have done, from the debts they had, equals busy time alone
    plus share times busy time beside a busy sibling."""
    rig = SmtRig(4, kernel)
    given_ns = [0] * 4

    def turns(cpu, work_ns, rest_ns):
        def main(task):
            while True:
                given_ns[cpu] += work_ns
                task.charge_user(work_ns)
                yield
                yield from sleep_ns(task, rest_ns, TASK_INTERRUPTIBLE)

        return main

    tasks = [(cpu, on(rig, cpu, turns(cpu, work, rest))) for cpu, work, rest in drawn]
    alone_ns, beside_ns = [0] * 4, [0] * 4
    step_ns = MS // 4
    for _ in range(800):
        rig.calendar.run_until(rig.calendar.now + step_ns)
        for rq in rig.sched.rqs:
            if rq.curr is not None:
                kind = beside_ns if rig.sched.siblings[rq.cpu].curr is not None else alone_ns
                kind[rq.cpu] += step_ns
    rig.sched.update()
    for cpu in range(4):
        left_ns = sum(t.user_debt_ns for own, t in tasks if own == cpu)
        expected = alone_ns[cpu] + beside_ns[cpu] * THREADS.share_permille / 1000
        # What is left of a running task's debt is told in work; sampling errs by a step a change.
        assert given_ns[cpu] - left_ns == pytest.approx(expected, abs=0.06 * 200 * MS)


@given(st.integers(1, 64), st.integers(0, 127))
def test_siblings_are_each_others_and_on_another_cpu(cores, cpu):
    cpus = 2 * cores
    cpu %= cpus
    assert sibling_of(sibling_of(cpu, cpus), cpus) == cpu != sibling_of(cpu, cpus)


def test_sys_tells_which_threads_are_a_core():
    rig = SmtRig(4)
    files = render_cpu_files(rig.sched)
    assert files["cpu3/topology/thread_siblings_list"] == "1,3\n"
    assert files["cpu2/topology/core_id"] == "0\n"
    assert cores_of(rig.sched) == [0, 1, 0, 1]
    assert cores_of(Rig(4).sched) == []
